/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rouse FILE ROLE [MS [PAUSE_MS]] - how long it takes to wake a target that sleeps, until the answer of an IO is seen: what
 * limits/wake measures of an eventfd, between the same two CPUs and in the same way.
 *
 * The client, on our first CPU, pauses (10 ms), long enough for the target to be asleep, and reads one block; it spins until the
 * answer has come. The target is to be on the second CPU. Median, in microseconds.
 */
#include <poll.h>

#include <gantry/client.h>

#include "limits/common.h"

static int is_done, failed;

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

int main(int argc, char **argv)
{
	struct gantry_volume_attr attr = {.struct_size = sizeof(attr), .queues = 1, .depth = 1, .buffer_bytes = 1 << 16};
	uint64_t length, start, before, bytes;
	struct gantry_volume_info info;
	struct gantry_volume *volume;
	struct gantry_queue *queue;
	static struct stats stats;
	int pause_ms = argc > 4 ? atoi(argv[4]) : 10;
	void *buf;

	if (argc < 3) {
		fprintf(stderr, "usage: rouse FILE ROLE [MS [PAUSE_MS]]\n");
		return 2;
	}
	length = (argc > 3 ? strtoull(argv[3], NULL, 10) : 300) * 1000000;
	alarm(TOO_LONG_S);
	pin(nth_cpu(0));
	if (gantry_volume_open_role(argv[1], argv[2], &attr, &volume) || gantry_queue_open(volume, &queue))
		give_up("no volume");
	gantry_volume_get_info(volume, &info);
	buf = gantry_volume_buffers(volume, &bytes);
	start = now_ns();
	for (uint64_t n = 1; n < 5 || now_ns() - start < length; n++) {
		poll(NULL, 0, pause_ms);
		is_done = 0;
		before = now_ns();
		if (gantry_queue_read(queue, buf, info.block_size, 0, done, NULL))
			give_up("refused");
		while (!is_done)
			if (gantry_queue_poll(queue) == 0)
				relax();
		note(&stats, (double)(now_ns() - before) / 1e3);
	}
	print_median("rouse", &stats, "us");
	return gantry_queue_close(&queue) || gantry_volume_close(&volume) || failed;
}
