/* SPDX-License-Identifier: BSD-3-Clause */
/* trace_pairs.c - a hash table of submissions, with a limit */
#include "trace/trace_pairs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define BUCKETS (1u << 14)

/* What a submission and its completion have in common. No padding: it is compared as bytes. */
struct key {
	uint64_t offset, region_offset;
	uint32_t length, region, role;
	uint16_t lane;
	uint16_t opcode;
};

_Static_assert(sizeof(struct key) == 32, "no padding");

struct entry {
	TAILQ_ENTRY(entry) by_key; /* in its bucket, the oldest first */
	TAILQ_ENTRY(entry) by_age;
	struct key key;
	struct gn_trace_pair pair;
};

TAILQ_HEAD(entries, entry);

struct gn_trace_pairs {
	struct entries bucket[BUCKETS];
	struct entries all, unused;
	uint32_t n_entries;                     /* in `all` and `unused` */
	uint64_t in_flight[GN_TRACE_MAX_ROLES]; /* by role */
};

struct gn_trace_pairs *gn_trace_pairs_new(void)
{
	struct gn_trace_pairs *pairs = calloc(1, sizeof(*pairs));

	if (!pairs)
		return NULL;
	for (uint32_t i = 0; i < BUCKETS; i++)
		TAILQ_INIT(&pairs->bucket[i]);
	TAILQ_INIT(&pairs->all);
	TAILQ_INIT(&pairs->unused);
	return pairs;
}

static void free_entries(struct entries *entries)
{
	struct entry *e;

	while ((e = TAILQ_FIRST(entries))) {
		TAILQ_REMOVE(entries, e, by_age);
		free(e);
	}
}

void gn_trace_pairs_free(struct gn_trace_pairs *pairs)
{
	if (!pairs)
		return;
	free_entries(&pairs->all);
	free_entries(&pairs->unused);
	free(pairs);
}

static struct key key_of(uint32_t role, uint16_t lane, const struct gantry_io *io)
{
	return (struct key){.offset = io->offset,
			    .region_offset = io->region_offset,
			    .length = io->length,
			    .region = io->region,
			    .role = role,
			    .lane = lane,
			    .opcode = io->opcode};
}

static struct entries *bucket_of(struct gn_trace_pairs *pairs, const struct key *key)
{
	uint64_t hash = key->offset;

	hash = hash * 31 + key->region_offset;
	hash = hash * 31 + key->lane;
	hash = hash * 31 + key->role;
	hash = hash * 31 + key->opcode;
	hash *= 0x9e3779b97f4a7c15ull; /* Fibonacci hashing: the upper bits depend on all bits */
	return &pairs->bucket[hash >> 50];
}

static void drop(struct gn_trace_pairs *pairs, struct entry *e)
{
	TAILQ_REMOVE(bucket_of(pairs, &e->key), e, by_key);
	TAILQ_REMOVE(&pairs->all, e, by_age);
	TAILQ_INSERT_HEAD(&pairs->unused, e, by_age);
	pairs->in_flight[e->key.role]--;
}

/* Returns an entry that is in no list; NULL: out of memory. */
static struct entry *new_entry(struct gn_trace_pairs *pairs)
{
	struct entry *e;

	if (pairs->n_entries == GN_TRACE_MAX_PAIRS && TAILQ_EMPTY(&pairs->unused))
		drop(pairs, TAILQ_FIRST(&pairs->all));
	e = TAILQ_FIRST(&pairs->unused);
	if (e) {
		TAILQ_REMOVE(&pairs->unused, e, by_age);
		return e;
	}
	e = malloc(sizeof(*e));
	pairs->n_entries += e != NULL;
	return e;
}

int gn_trace_pairs_add(struct gn_trace_pairs *pairs, uint32_t role, uint16_t lane,
		       const struct gantry_io *io, const struct gn_trace_pair *pair)
{
	struct entry *e = new_entry(pairs);

	if (!e)
		return -ENOMEM;
	e->key = key_of(role, lane, io);
	e->pair = *pair;
	TAILQ_INSERT_TAIL(bucket_of(pairs, &e->key), e, by_key);
	TAILQ_INSERT_TAIL(&pairs->all, e, by_age);
	pairs->in_flight[role]++;
	return 0;
}

bool gn_trace_pairs_take(struct gn_trace_pairs *pairs, uint32_t role, uint16_t lane,
			 const struct gantry_io *io, struct gn_trace_pair *pair)
{
	const struct key key = key_of(role, lane, io);
	struct entry *e;

	TAILQ_FOREACH (e, bucket_of(pairs, &key), by_key) {
		if (memcmp(&e->key, &key, sizeof(key)))
			continue;
		*pair = e->pair;
		drop(pairs, e);
		return true;
	}
	return false;
}

uint64_t gn_trace_pairs_in_flight(const struct gn_trace_pairs *pairs, uint32_t role)
{
	return pairs->in_flight[role];
}
