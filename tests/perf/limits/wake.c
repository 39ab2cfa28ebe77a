/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wake [MS [PAUSE_MS]] - how long it takes to wake another process that sleeps on an eventfd, until its answer is seen.
 *
 * The client pauses (10 ms), long enough for the other CPU to be idle, writes the eventfd, and spins on a cache line that the
 * other process writes when it has woken. Median, in microseconds.
 */
#include <poll.h>
#include <sys/eventfd.h>

#include "common.h"

#define LAST 2 /* rung once, at the end */

struct pair {
	uint64_t *line;
	int fd;
};

static void answer(void *arg)
{
	const struct pair *pair = arg;
	uint64_t n, value;

	for (n = 1;; n++) {
		if (read(pair->fd, &value, sizeof(value)) != sizeof(value))
			die("read of the eventfd");
		if (value == LAST)
			return;
		store(pair->line, n);
	}
}

static void ring(const struct pair *pair, uint64_t value)
{
	if (write(pair->fd, &value, sizeof(value)) != sizeof(value))
		die("write to the eventfd");
}

int main(int argc, char **argv)
{
	static struct stats stats;
	uint64_t length = duration_ns(argc, argv, 300), start = now_ns(), before, t;
	int pause_ms = argc > 2 ? atoi(argv[2]) : 10;
	struct pair pair = {.line = share(4096), .fd = eventfd(0, EFD_CLOEXEC)};
	pid_t pid;

	if (pair.fd < 0)
		die("eventfd");
	pid = run_beside(answer, &pair);
	for (uint64_t n = 1; n < 5 || now_ns() - start < length; n++) {
		poll(NULL, 0, pause_ms);
		before = now_ns();
		ring(&pair, 1);
		while (load(pair.line) != n)
			relax();
		t = now_ns();
		note(&stats, (double)(t - before) / 1e3);
	}
	ring(&pair, LAST);
	join(pid);
	print_median("wake", &stats, "us");
	return 0;
}
