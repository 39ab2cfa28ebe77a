/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pingpong [MS] - one cache line, there and back between two processes: nothing that talks over memory is faster.
 */
#include "common.h"

#define SLICE 1000

static void answer(void *arg)
{
	uint64_t *line = arg, seen;

	for (uint64_t expected = 1;; expected += 2) {
		while ((seen = load(line)) != expected) {
			if (seen == STOP)
				return;
			relax();
		}
		store(line, expected + 1);
	}
}

static uint64_t rounds(uint64_t *line, uint64_t at, unsigned n)
{
	while (n--) {
		store(line, at + 1);
		at += 2;
		while (load(line) != at)
			relax();
	}
	return at;
}

int main(int argc, char **argv)
{
	static struct stats stats;
	uint64_t length = duration_ns(argc, argv, 300), *line = share(4096), at, t, before, end;
	pid_t pid = run_beside(answer, line);

	at = rounds(line, 0, SLICE);
	before = now_ns();
	end = before + length;
	do {
		at = rounds(line, at, SLICE);
		t = now_ns();
		note(&stats, (double)(t - before) / SLICE);
		before = t;
	} while (t < end);
	store(line, STOP);
	join(pid);
	print_median("pingpong", &stats, "ns");
	return 0;
}
