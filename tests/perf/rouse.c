/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rouse FILE ROLE [MS [PAUSE_MS]] - measures the time from an IO to a sleeping target until its
 * answer arrives ("rouse"), and from a write to the eventfd of a sleeping process until its answer
 * arrives ("wake"); medians in microseconds
 *
 * Both sleepers run on the second CPU (the target by its settings), the waker on the first. The
 * waker wakes them alternately, each after a pause (10 ms) in which the sleeper blocks. They
 * alternate because the cost of a wake-up can double from one second to the next, and grows with
 * the time that the CPUs and their caches were idle.
 */
#include <poll.h>
#include <sys/eventfd.h>

#include <gantry/client.h>

#include "limits/common.h"

#define LAST 2 /* value of the last write to the eventfd */

struct pair {
	uint64_t *line;
	int fd;
};

static int is_done, failed;

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

static void wake_process(const struct pair *pair, uint64_t n)
{
	ring(pair, 1);
	while (load(pair->line) != n)
		relax();
}

static void done(void *arg, int result)
{
	(void)arg;
	is_done = 1;
	failed |= result != 0;
}

static void give_up(const char *what)
{
	fprintf(stderr, "rouse: %s: %s\n", what, gantry_error());
	exit(1);
}

static void wake_target(struct gantry_queue *queue, void *buf, uint32_t bytes)
{
	is_done = 0;
	if (gantry_queue_read(queue, buf, bytes, 0, done, NULL))
		give_up("refused");
	while (!is_done)
		if (gantry_queue_poll(queue) == 0)
			relax();
}

int main(int argc, char **argv)
{
	struct gantry_volume_attr attr = {
		.struct_size = sizeof(attr), .queues = 1, .depth = 1, .buffer_bytes = 1 << 16};
	struct pair pair = {.line = share(4096), .fd = eventfd(0, EFD_CLOEXEC)};
	uint64_t length, start, before, bytes;
	struct gantry_volume_info info;
	struct gantry_volume *volume;
	struct gantry_queue *queue;
	static struct stats wake, rouse;
	int pause_ms = argc > 4 ? atoi(argv[4]) : 10;
	pid_t pid;
	void *buf;

	if (argc < 3) {
		fprintf(stderr, "usage: rouse FILE ROLE [MS [PAUSE_MS]]\n");
		return 2;
	}
	if (pair.fd < 0)
		die("eventfd");
	length = (argc > 3 ? strtoull(argv[3], NULL, 10) : 300) * 1000000;
	pid = run_beside(answer, &pair);
	if (gantry_volume_open_role(argv[1], argv[2], &attr, &volume) ||
	    gantry_queue_open(volume, &queue))
		give_up("no volume");
	gantry_volume_get_info(volume, &info);
	buf = gantry_volume_buffers(volume, &bytes);
	start = now_ns();
	for (uint64_t n = 1; n < 5 || now_ns() - start < length; n++) {
		poll(NULL, 0, pause_ms);
		before = now_ns();
		wake_process(&pair, n);
		note(&wake, (double)(now_ns() - before) / 1e3);
		poll(NULL, 0, pause_ms);
		before = now_ns();
		wake_target(queue, buf, info.block_size);
		note(&rouse, (double)(now_ns() - before) / 1e3);
	}
	ring(&pair, LAST);
	join(pid);
	print_median("wake", &wake, "us");
	print_median("rouse", &rouse, "us");
	return gantry_queue_close(&queue) || gantry_volume_close(&volume) || failed;
}
