/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chain_watch.h - watching hops, for two purposes. A chain has them in the place of its hops if its
 * role has `check_stages`, or while its lane measures (gn_lane_measure()).
 *
 * Check: name the stage or terminal that completes an IO which it does not hold. gantry_complete()
 * does not show its caller. So the lane records in `running` which stage's code runs: each watching
 * hop sets it for the duration of a call and restores it afterwards, and the lane polls its stages
 * through gn_watch_poll(). The code of owners and terminals, and their pollers, count as "no
 * stage". A completion for a hop is valid only if the code of the next hop runs. Any other one is
 * counted against the code that runs, and is not passed on. A completion by a stage that holds the
 * descriptor again, because the owner has submitted it again, is not detected. A role without
 * stages needs no checks: only the terminal can complete an IO twice.
 *
 * Measure: the own time of a stage or terminal is the time from the submit of an IO into it to the
 * completion, without the time that the IO spent in the next place. A place that gets an IO again
 * before the one above has completed it, as a stage that retries causes, has a sample for each
 * visit.
 *
 * Lane's thread.
 */
#ifndef GN_PIPELINE_CHAIN_WATCH_H
#define GN_PIPELINE_CHAIN_WATCH_H

#include "pipeline/pipeline.h"

/* Times of a descriptor in one place. */
struct gn_visit {
	uint64_t start_ns; /* 0: it is not there, or was not measured when it came */
	/* time there since the place above got it */
	uint64_t spent_ns;
};

/* A hop that is watched. The watched hops of a chain are an array in the order of their places. */
struct gn_watch {
	struct gn_lane *lane;
	struct gantry_hop hop;
	uint32_t running; /* value of lane->running while the hop runs */
	uint32_t next;    /* the same of the next hop of the chain */
	/* with measuring, indexed by slot; NULL: the owner, whose time is not measured */
	struct gn_visit *visits;
	struct gantry_histogram *own_time;
	bool is_last; /* the terminal */
};

/* gn_watch_hop - returns the hop that replaces watch->hop in a chain. */
struct gantry_hop gn_watch_hop(struct gn_watch *watch);
/* gn_watch_enter - start the time of a descriptor in a place. */
void gn_watch_enter(const struct gn_watch *watch, const struct gantry_io *io);

/* The poller of a stage on a lane with check_stages. */
struct gn_watch_poller {
	struct gn_lane *lane;
	const struct gantry_stage_ops *ops;
	void *self;
	uint32_t running;
};

/* gn_watch_poll, gn_watch_wake_ns - `poll` and `wake_ns` of the stage. self: gn_watch_poller. */
int gn_watch_poll(void *self);
uint64_t gn_watch_wake_ns(void *self);

/* gn_watch_double - count a double completion, and log the first one of each place. */
void gn_watch_double(struct gn_lane *lane);

#endif
