/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pingpong [MS] - round trip of one cache line between two processes: the lower bound for
 * communication over memory
 */
#include "bare.h"

#define SLICE 1000

static void answer(void *line)
{
	for (uint64_t at = 0; at != STOP;)
		at = line_answer(line, at, SLICE);
}

int main(int argc, char **argv)
{
	static struct stats stats;
	uint64_t length = duration_ns(argc, argv, 300), *line = share(4096), at, t, before, end;
	pid_t pid = run_beside(answer, line);

	at = line_throw(line, 0, SLICE);
	before = now_ns();
	end = before + length;
	do {
		at = line_throw(line, at, SLICE);
		t = now_ns();
		note(&stats, (double)(t - before) / SLICE);
		before = t;
	} while (t < end);
	store(line, STOP);
	join(pid);
	print_median("pingpong", &stats, "ns");
	return 0;
}
