/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring [MS [SLOTS...]] - messages of 64 bytes one way between two processes, each published by itself and each checked.
 *
 * The sequence number lies in the slot, behind the message; credit comes back for a quarter of the ring at a time. The
 * value is the mean of the whole run.
 */
#include "common.h"

#define BURST 4096 /* messages between two looks at the clock */

struct slot {
	uint64_t word[7];
	uint64_t seq;
} __attribute__((aligned(LINE)));

struct ring {
	struct slot *slots;
	uint64_t n_slots;
	uint64_t *taken; /* a line of the consumer's */
};

static void consume(void *arg)
{
	const struct ring *ring = arg;
	uint64_t quarter = ring->n_slots / 4;

	for (uint64_t at = 1;; at++) {
		const struct slot *slot = &ring->slots[at % ring->n_slots];
		uint64_t word[7];

		while (load(&slot->seq) != at)
			relax();
		memcpy(word, slot->word, sizeof(word));
		if (at % quarter == 0)
			store(ring->taken, at);
		if (word[0] == STOP) {
			store(ring->taken, at);
			return;
		}
		if (!words_ok(word, at)) {
			fprintf(stderr, "message %llu is wrong\n", (unsigned long long)at);
			_exit(1);
		}
	}
}

static void put(const struct ring *ring, uint64_t at, uint64_t seq)
{
	static uint64_t taken;
	struct slot *slot = &ring->slots[at % ring->n_slots];

	if (at == 1)
		taken = 0;
	while (at - taken > ring->n_slots) {
		taken = load(ring->taken);
		if (at - taken > ring->n_slots)
			relax();
	}
	fill_words(slot->word, seq);
	store(&slot->seq, at);
}

static void measure(uint64_t n_slots, uint64_t length)
{
	static struct stats stats;
	struct ring ring = {.slots = share(n_slots * sizeof(struct slot)), .n_slots = n_slots, .taken = share(4096)};
	uint64_t at = 0, start, before, t;
	char name[64];
	pid_t pid = run_beside(consume, &ring);

	stats.n = 0;
	while (at < 4 * n_slots) { /* until both are there */
		at++;
		put(&ring, at, at);
	}
	start = before = now_ns();
	do {
		for (unsigned i = 0; i < BURST; i++) {
			at++;
			put(&ring, at, at);
		}
		t = now_ns();
		note(&stats, BURST * 1e3 / (double)(t - before));
		before = t;
	} while (t - start < length);
	at++;
	put(&ring, at, STOP);
	while (load(ring.taken) != at)
		relax();
	t = now_ns();
	join(pid);
	snprintf(name, sizeof(name), "ring_%llu", (unsigned long long)n_slots);
	print_extremes(name, &stats, "M/s");
	print_value(name, (double)(at - 4 * n_slots) * 1e3 / (double)(t - start), "M/s");
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
			fprintf(stderr, "ring: %s: not a power of two between 8 and 1048576\n", argv[i]);
			return 2;
		}
		measure(n, length);
	}
	return 0;
}
