/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rings [MS] - round trip of messages of 64 bytes between two processes through two bare rings;
 * each message is checked
 *
 * As in `ring` the slot holds the sequence number, but there is no explicit credit: the answer is
 * the credit. The cache line of a slot was last in the cache of the other CPU, so it moves twice
 * for each message: once for the write and once for the read.
 */
#include "bare.h"

#define SLICE 1000
#define SLOTS 1024

struct rings {
	struct bare_slot there[SLOTS], back[SLOTS];
};

static void put(struct bare_slot *ring, uint64_t at, uint64_t first)
{
	struct bare_slot *slot = &ring[at % SLOTS];

	fill_words(slot->word, first);
	store(&slot->seq, at);
}

static uint64_t take(const struct bare_slot *ring, uint64_t at)
{
	const struct bare_slot *slot = &ring[at % SLOTS];
	uint64_t word[7];

	while (load(&slot->seq) != at)
		relax();
	memcpy(word, slot->word, sizeof(word));
	if (!words_ok(word, word[0]) || (word[0] != at && word[0] != STOP)) {
		fprintf(stderr, "message %llu is wrong\n", (unsigned long long)at);
		exit(1);
	}
	return word[0];
}

static void answer(void *arg)
{
	struct rings *rings = arg;

	for (uint64_t at = 1; take(rings->there, at) != STOP; at++)
		put(rings->back, at, at);
}

int main(int argc, char **argv)
{
	static struct stats stats;
	uint64_t length = duration_ns(argc, argv, 300), at = 0, before, end, t;
	struct rings *rings = share(sizeof(*rings));
	pid_t pid = run_beside(answer, rings);

	before = now_ns();
	end = before + length;
	do {
		for (unsigned i = 0; i < SLICE; i++) {
			at++;
			put(rings->there, at, at);
			take(rings->back, at);
		}
		t = now_ns();
		note(&stats, (double)(t - before) / SLICE);
		before = t;
	} while (t < end);
	put(rings->there, at + 1, STOP);
	join(pid);
	print_median("rings", &stats, "ns");
	return 0;
}
