/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring [MS [SLOTS...]] - messages of 64 bytes one way between two processes, each published
 * separately and checked
 *
 * The value is the mean of the whole run.
 */
#include "bare.h"

#define BURST 4096 /* messages between two reads of the clock */

static void consume(void *arg)
{
	struct bare_ring *ring = arg;

	while (ring_take(ring) != STOP)
		;
	ring_tell(ring);
}

static void put(struct bare_ring *ring, unsigned n)
{
	while (n--)
		ring_put(ring, ring->at + 1);
}

static void measure(uint64_t n_slots, uint64_t length)
{
	static struct stats stats;
	struct bare_ring ring = bare_ring(n_slots);
	uint64_t start, before, t;
	char name[64];
	pid_t pid = run_beside(consume, &ring);

	stats.n = 0;
	put(&ring, 4 * (unsigned)n_slots); /* waits until both processes run */
	start = before = now_ns();
	do {
		put(&ring, BURST);
		t = now_ns();
		note(&stats, BURST * 1e3 / (double)(t - before));
		before = t;
	} while (t - start < length);
	ring_put(&ring, STOP);
	ring_drain(&ring);
	t = now_ns();
	join(pid);
	snprintf(name, sizeof(name), "ring_%llu", (unsigned long long)n_slots);
	print_extremes(name, &stats, "M/s");
	print_value(name, (double)(ring.at - 4 * n_slots) * 1e3 / (double)(t - start), "M/s");
}

int main(int argc, char **argv)
{
	uint64_t length = duration_ns(argc, argv, 300);

	if (argc < 3) {
		measure(1024, length);
		measure(4096, length);
	}
	for (int i = 2; i < argc; i++) {
		unsigned long n = strtoul(argv[i], NULL, 10);

		if (n < 8 || n > 1u << 20 || (n & (n - 1))) {
			fprintf(stderr, "ring: %s: not a power of two between 8 and 1048576\n",
				argv[i]);
			return 2;
		}
		measure(n, length);
	}
	return 0;
}
