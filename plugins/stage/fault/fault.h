/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fault.h - a stage that makes trouble: what its files share.
 *
 *	conf.c     options, and rates as people write them
 *	hold.c     descriptors that are held until a time
 *	fault.c    which fault, and the faults themselves; the plugin
 */
#ifndef FAULT_H
#define FAULT_H

#include <gantry/random.h>
#include <gantry/stage.h>

/* What can happen to an IO. The order is the order in which it is decided. */
enum fault_kind {
	FAULT_DROP,
	FAULT_ERROR,
	FAULT_DELAY,
	FAULT_SHORT,
	FAULT_CORRUPT,
	FAULT_DUPLICATE,
	FAULT_COUNT
};

enum fault_only { FAULT_ANY, FAULT_READS, FAULT_WRITES, FAULT_FLUSHES };

struct fault_conf {
	int64_t seed;
	uint64_t delay_ns;
	uint32_t error; /* index of the status, less one */
	uint32_t only;  /* enum fault_only */
	int64_t limit;
	int64_t disconnect_after;
	const char *rate[FAULT_COUNT];
	int64_t nth[FAULT_COUNT];
};

/* A fault that an IO carries; the IO's frame points to it, and is 0 for an IO without. */
struct fault_record {
	struct gantry_io *io;
	struct fault_record *next, *prev; /* of the hold, or of the free list (next) */
	uint64_t due_ns;
	uint32_t kinds;  /* bit 1 << enum fault_kind for each that is still to happen */
	uint32_t length; /* of the IO, as it came */
	uint32_t bit;    /* to flip in its data */
	uint8_t flipped;
	uint8_t dropped; /* held for good: it never goes down */
};

/* Records in order of their time. */
struct fault_hold {
	struct fault_record *first, *last;
	uint32_t n;
};

struct fault {
	const struct gantry_host *host;
	const struct fault_conf *conf;
	uint64_t threshold[FAULT_COUNT]; /* rate times 2^32 */
	int disconnected;                /* __atomic, set by any lane */
	uint32_t n_lanes;
	struct fault_lane **lanes;
};

struct fault_lane {
	struct fault *fault;
	struct gantry_lane *lane;
	struct gantry_random random;
	struct fault_record *records, *free;
	struct fault_hold hold;
	uint64_t n_seen;              /* IOs that a fault could have hit */
	uint64_t n_done[FAULT_COUNT]; /* faults that happened */
	uint64_t n_lost;              /* failed because of disconnect_after */
	/* too many faults at a time, or a duplicate that could not be */
	uint64_t n_spared;
} __attribute__((aligned(GANTRY_CACHE_LINE)));

extern const struct gantry_option fault_options[];

void fault_check(const void *arg, const struct gantry_option_faults *faults);
/* Turn the rates into thresholds. */
void fault_rates(struct fault *fault);

/* O(distance from the end): O(1) where all wait equally long. */
void fault_hold_add(struct fault_hold *hold, struct fault_record *record, uint64_t due_ns);
void fault_hold_remove(struct fault_hold *hold, struct fault_record *record);

#endif
