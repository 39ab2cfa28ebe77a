/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fault.h - internal interface of the fault stage.
 *
 *     conf.c   options, and parsing of rates
 *     hold.c   list of descriptors that are held until a time
 *     fault.c  plugin interface; chooses and injects the faults
 */
#ifndef FAULT_H
#define FAULT_H

#include <gantry/random.h>
#include <gantry/stage.h>

/* Faults of an IO, in the order in which they are decided. */
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
	uint32_t error; /* enum gantry_status of the injected error, minus 1 */
	uint32_t only;  /* enum fault_only */
	int64_t limit;
	int64_t disconnect_after;
	const char *rate[FAULT_COUNT];
	int64_t nth[FAULT_COUNT];
};

/*
 * Faults of one IO. The stage context of the IO points to its record; the context of an IO without
 * faults is 0.
 */
struct fault_record {
	struct gantry_io *io;
	/* links in the hold; in the free list only `next` is used */
	struct fault_record *next, *prev;
	uint64_t due_ns;
	uint32_t kinds;  /* bit mask of 1 << enum fault_kind: faults still to inject */
	uint32_t length; /* original length of the IO */
	uint32_t bit;    /* index of the bit to flip in the data */
	uint8_t flipped;
	/* held until its deadline, then completed with an error; never submitted */
	uint8_t dropped;
};

/* List of records, ordered by due_ns. */
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
	uint64_t n_seen;              /* number of IOs that match the option `only` */
	uint64_t n_done[FAULT_COUNT]; /* faults injected */
	uint64_t n_lost;              /* IOs that failed because of disconnect_after */
	/* faults not injected: no free record, or the descriptor of a duplicate was in use */
	uint64_t n_spared;
} __attribute__((aligned(GANTRY_CACHE_LINE)));

extern const struct gantry_option fault_options[];

void fault_check(const void *arg, struct gantry_check *check);
/* Parse the rates into thresholds. */
void fault_rates(struct fault *fault);

/* Insert a record. Searches from the end of the list: O(1) if all delays are equal. */
void fault_hold_add(struct fault_hold *hold, struct fault_record *record, uint64_t due_ns);
void fault_hold_remove(struct fault_hold *hold, struct fault_record *record);

#endif
