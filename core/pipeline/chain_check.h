/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chain_check.h - names the stage or terminal that completes an IO which it does not hold. The
 * chains of a role with `check_stages` have a checking hop in the place of each hop, and the lane
 * polls its stages through gn_check_poll(). A role without stages needs no checking hops: only the
 * terminal can complete an IO twice.
 *
 * gantry_complete() does not show its caller. So the lane records in `running` which stage's code
 * runs: each checking hop sets it for the duration of a call and restores it afterwards. The code
 * of owners and terminals, and their pollers, count as "no stage". A completion for a hop is valid
 * only if the code of the next hop runs. Any other one is counted against the code that runs, and
 * is not passed on. A completion by a stage that holds the descriptor again, because the owner has
 * submitted it again, is not detected.
 *
 * Lane's thread.
 */
#ifndef GN_PIPELINE_CHAIN_CHECK_H
#define GN_PIPELINE_CHAIN_CHECK_H

#include "pipeline/pipeline.h"

/* A hop with its check. */
struct gn_check {
	struct gn_lane *lane;
	struct gantry_hop hop; /* the hop that is checked */
	uint32_t running;      /* value of lane->running while the hop runs */
	uint32_t next;         /* the same of the next hop of the chain */
};

/* gn_check_hop - returns the hop that replaces check->hop in a chain. */
struct gantry_hop gn_check_hop(struct gn_check *check);

/* The poller of a stage on a lane. */
struct gn_check_poller {
	struct gn_lane *lane;
	const struct gantry_stage_ops *ops;
	void *self;
	uint32_t running;
};

/* gn_check_poll, gn_check_wake_ns - `poll` and `wake_ns` of the stage. self: a gn_check_poller. */
int gn_check_poll(void *self);
uint64_t gn_check_wake_ns(void *self);

/* gn_check_double - count a double completion, and log the first one of each place. */
void gn_check_double(struct gn_lane *lane);

#endif
