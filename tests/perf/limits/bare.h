/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bare.h - what nothing that talks over memory is faster than: a line of the cache there and back,
 * and a ring one way.
 *
 * In pieces: a program that is compared to them runs a piece of theirs in turn with a piece of its
 * own, because the machine may have another speed in the next millisecond.
 */
#ifndef PERF_BARE_H
#define PERF_BARE_H

#include "common.h"

/* the sequence number of a message that is answered, and followed by a piece of the limit */
#define TURN (STOP - 1)
#define LINE_ROUNDS 256 /* of such a piece */

/*
 * Print the median of ours, and as the limit what it was beside that: by the median of the ratios
 * of slices that belong together, for the medians of the two may be of different speeds of the
 * machine. Sorts ours.
 */
static inline void print_beside(const char *name, struct stats *ours, const char *limit_name,
				const struct stats *limit, const char *unit)
{
	static struct stats ratios;

	ratios.n = 0;
	for (unsigned i = 0; i < ours->n && i < limit->n; i++)
		note(&ratios, ours->v[i] / limit->v[i]);
	qsort(ratios.v, ratios.n, sizeof(ratios.v[0]), compare);
	print_median(name, ours, unit);
	if (ratios.n)
		print_value(limit_name, ours->v[ours->n / 2] / ratios.v[ratios.n / 2], unit);
}

/* Run n rounds of a line with value `at`, as the side that begins. Returns the new value. */
static inline uint64_t line_throw(uint64_t *line, uint64_t at, unsigned n)
{
	while (n--) {
		store(line, at + 1);
		at += 2;
		while (load(line) != at)
			relax();
	}
	return at;
}

/* The same as the side that answers; STOP ends it. */
static inline uint64_t line_answer(uint64_t *line, uint64_t at, unsigned n)
{
	uint64_t seen;

	while (n--) {
		while ((seen = load(line)) != at + 1) {
			if (seen == STOP)
				return STOP;
			relax();
		}
		at += 2;
		store(line, at);
	}
	return at;
}

/*
 * The slot holds the sequence number, behind the message. Credit is returned in batches of a
 * quarter of the ring.
 */
struct bare_slot {
	uint64_t word[7];
	uint64_t seq;
} __attribute__((aligned(LINE)));

/* One end of a ring. */
struct bare_ring {
	struct bare_slot *slots; /* shared */
	uint64_t *taken;         /* shared: a line of the consumer's */
	uint64_t n_slots, at;    /* at: messages so far */
	uint64_t seen;           /* of `taken`, by the producer */
};

static inline struct bare_ring bare_ring(uint64_t n_slots)
{
	return (struct bare_ring){.slots = share(n_slots * sizeof(struct bare_slot)),
				  .n_slots = n_slots,
				  .taken = share(4096)};
}

/* The next message; its words are filled from `first`. */
static inline void ring_put(struct bare_ring *ring, uint64_t first)
{
	uint64_t at = ++ring->at;
	struct bare_slot *slot = &ring->slots[at % ring->n_slots];

	while (at - ring->seen > ring->n_slots) {
		ring->seen = load(ring->taken);
		if (at - ring->seen > ring->n_slots)
			relax();
	}
	fill_words(slot->word, first);
	store(&slot->seq, at);
}

/* Wait for the next message: its number, or STOP. */
static inline uint64_t ring_take(struct bare_ring *ring)
{
	uint64_t at = ++ring->at, word[7];
	const struct bare_slot *slot = &ring->slots[at % ring->n_slots];

	while (load(&slot->seq) != at)
		relax();
	memcpy(word, slot->word, sizeof(word));
	if (at % (ring->n_slots / 4) == 0)
		store(ring->taken, at);
	if (word[0] != STOP && !words_ok(word, at)) {
		fprintf(stderr, "message %llu is wrong\n", (unsigned long long)at);
		_exit(1);
	}
	return word[0];
}

/* Return credit to the producer for all consumed messages. */
static inline void ring_tell(const struct bare_ring *ring)
{
	store(ring->taken, ring->at);
}

/* Wait until all messages are consumed and their credit is returned. */
static inline void ring_drain(const struct bare_ring *ring)
{
	while (load(ring->taken) != ring->at)
		relax();
}

#endif
