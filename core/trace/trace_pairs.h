/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace_pairs.h - the submissions of traces that have no completion yet.
 *
 * A record has no number of its IO. A completion belongs to the oldest submission of the same role,
 * lane, operation, range and place in the region. Equal IOs at the same time can be confused, which
 * changes no sum.
 */
#ifndef GN_TRACE_TRACE_PAIRS_H
#define GN_TRACE_TRACE_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

#include <gantry/io.h>

#define GN_TRACE_MAX_PAIRS (1u << 17) /* submissions in memory; the oldest are then forgotten */
#define GN_TRACE_MAX_ROLES 64u        /* traces in one call */

/* A submission. */
struct gn_trace_pair {
	uint64_t ns;     /* time of the submission */
	uint64_t number; /* of all submissions, from 1 on */
	uint64_t depth;  /* IOs of the role in flight, with this one */
	bool sequential; /* begins where the previous such operation of its lane ended */
	bool accepted;   /* by the filter */
};

struct gn_trace_pairs;

/* Returns a new table; NULL: out of memory. */
struct gn_trace_pairs *gn_trace_pairs_new(void);

/*
 * Add a submission.
 *
 * role   index of the trace
 * io     its wire form
 * returns 0; -ENOMEM: out of memory
 */
int gn_trace_pairs_add(struct gn_trace_pairs *pairs, uint32_t role, uint16_t lane,
		       const struct gantry_io *io, const struct gn_trace_pair *pair);

/*
 * Find the submission of a completion, and remove it.
 *
 * returns  true: `*pair` has it; false: the trace does not have it, or it was forgotten
 */
bool gn_trace_pairs_take(struct gn_trace_pairs *pairs, uint32_t role, uint16_t lane,
			 const struct gantry_io *io, struct gn_trace_pair *pair);

/* Returns the number of submissions of a role without a completion, without forgotten ones. */
uint64_t gn_trace_pairs_in_flight(const struct gn_trace_pairs *pairs, uint32_t role);

/* Free a table. NULL is permitted. */
void gn_trace_pairs_free(struct gn_trace_pairs *pairs);

#endif
