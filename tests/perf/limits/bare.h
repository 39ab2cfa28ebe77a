/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bare.h - the limits of communication over shared memory: the round trip of a cache line, and
 * messages through a bare ring one way
 *
 * A limit is what the machine can do without any code of the product. The measurements are divided
 * into slices. A program that compares itself with a limit runs its own slices and those of the
 * limit alternately, because the speed of the machine can change from one millisecond to the next.
 */
#ifndef PERF_BARE_H
#define PERF_BARE_H

#include "common.h"

/*
 * Number of the message with which one end announces a slice of the limit. The peer answers the
 * message; then both ends run the slice.
 */
#define TURN (STOP - 1)
#define LINE_ROUNDS 256 /* round trips of a slice of the limit */

/*
 * Print the median of `ours`, and the limit: that median divided by the median of the ratios
 * ours / limit of adjacent slices. The median of `limit` itself is not used: it can come from a
 * slice in which the machine had another speed than in the median slice of `ours`. Sorts `ours`.
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

/* Do n round trips with a line of value `at`, as the side that begins. Returns the new value. */
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

/* Like line_throw(), for the side that answers; returns early at STOP. */
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
 * The slot holds the message, then the sequence number. Credit is returned in batches of a
 * quarter of the ring.
 */
struct bare_slot {
	uint64_t word[7];
	uint64_t seq;
} __attribute__((aligned(LINE)));

/* One end of a ring. */
struct bare_ring {
	struct bare_slot *slots; /* shared */
	uint64_t *taken;         /* shared: a line that the consumer writes */
	uint64_t n_slots, at;    /* at: number of messages so far */
	uint64_t seen;           /* last value of `taken` that the producer read */
};

static inline struct bare_ring bare_ring(uint64_t n_slots)
{
	return (struct bare_ring){.slots = share(n_slots * sizeof(struct bare_slot)),
				  .n_slots = n_slots,
				  .taken = share(4096)};
}

/* Send the next message; `first` determines its words. */
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

/* Wait for the next message. Returns its number, or STOP. */
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
