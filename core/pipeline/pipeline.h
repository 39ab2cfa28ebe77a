/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pipeline.h - lanes, the stages of a role on each of its lanes, and the chains that descriptors
 * pass through.
 *
 *      chain:  [guard] [owner] [stage 0] .. [stage n-1] [terminal]
 *                         ^
 *                         hop of an idle descriptor
 *
 * All chains of a lane share the stages of that lane. Owner and terminal differ: an initiator has
 * its generator and a requester, a session has a responder and the backend. The guard receives
 * unexpected completions.
 */
#ifndef GN_PIPELINE_PIPELINE_H
#define GN_PIPELINE_PIPELINE_H

#include "base/host.h"
#include "pipeline/worker.h"

#include <gantry/histogram.h>
#include <gantry/role.h>
#include <gantry/stage.h>

#include <pthread.h>
#include <sys/queue.h>

struct gn_pipeline;

/* Places of a chain that can hold a descriptor in flight: owner, stages, terminal. */
#define GN_CHAIN_PLACES (GANTRY_CHAIN_STAGES + 2)

/* One lane of a role. It has its own cache lines: the worker writes the clock in every turn. */
struct gn_lane {
	struct gantry_lane pub;
	const char *name; /* of the host, such as "roles.load"; for probes */
	struct gn_worker *worker;
	struct gn_pipeline *pipeline;
	uint64_t *double_completions; /* counter of completions that the guard received */
	/* key and plugin of the terminals in the configuration, for messages; set before open */
	const char *terminal_name;
	/* check each completion, see chain_watch.h; set before the pipeline is opened */
	bool check_stages;
	/* with check_stages: 1 + index of the stage whose code runs; 0: other code runs */
	uint32_t running;
	/* named double completions: [1 + i]: by stage i, [0]: by a terminal */
	uint64_t doubled[GN_CHAIN_PLACES];
	/* measure the own times of all places, see chain_watch.h; gn_lane_measure() sets it */
	bool measures;
	/* own times of stages and terminals, from place 1 on; NULL: never measured */
	struct gantry_histogram *own_times;
	pthread_mutex_t chains_lock;
	LIST_HEAD(, gantry_chain) chains; /* all chains of this lane */
} __attribute__((aligned(GANTRY_CACHE_LINE)));

/*
 * Parameters of a plugin instance. ops is complete (no NULL function), conf is filled. Both must
 * outlive the instance.
 */
struct gn_plugin_instance {
	const char *name; /* name of the plugin */
	const void *ops;
	const void *conf;
};

/*
 * gn_lane_init - create a lane on a worker, which updates its clock. Returns 0 or -errno. Control
 * thread.
 */
int gn_lane_init(struct gn_lane *lane, uint32_t index, uint32_t n_lanes, struct gn_host *host,
		 struct gn_worker *worker);
/* gn_lane_fini - release a lane. Chains that still exist detach from it. Control thread. */
void gn_lane_fini(struct gn_lane *lane);

/* gn_pipeline_stage - get the object that `open` of a stage stored. index: of the stage. */
void *gn_pipeline_stage(const struct gn_pipeline *pipeline, uint32_t index);

/*
 * gn_pipeline_open - open n stages, start them on every lane, and set lane->pipeline. Logs a
 * failure.
 *
 * owner    name for messages, such as "roles.bridge"
 * parts    ops: struct gantry_stage_ops
 * Returns 0,
 * -E2BIG   too many stages or context words
 * -ENOMEM  out of memory
 * -errno   of `open` or `start` of a stage
 * Control thread.
 */
int gn_pipeline_open(const char *owner, const struct gn_plugin_instance *parts, uint32_t n,
		     struct gn_lane *lanes, uint32_t n_lanes, struct gn_pipeline **pipeline_p);
/* gn_pipeline_close - stop and close all stages. No IO may be in flight. Control thread. */
void gn_pipeline_close(struct gn_pipeline **pipeline_p);
/*
 * gn_pipeline_drain - let every stage of a lane complete the descriptors that it holds for an owner
 * (io->owner); NULL: for all owners. Lane's thread.
 */
void gn_pipeline_drain(struct gn_lane *lane, const void *owner);
/*
 * gn_lane_measure - measure the own time of each stage and terminal on a lane from now on, or stop.
 * The report keeps what was measured. Returns 0; -ENOMEM: nothing has changed. Control thread,
 * after the pipeline was opened; waits for the lane.
 */
int gn_lane_measure(struct gn_lane *lane, bool on);
/* IOs of all lanes of a pipeline, by place as in gn_lane_count_held(). */
struct gn_place_counts {
	uint64_t held[GN_CHAIN_PLACES];    /* in flight now; approximate while the lanes run */
	uint64_t doubled[GN_CHAIN_PLACES]; /* double completions whose origin is known */
	const struct gn_pipeline *pipeline;
	uint64_t own_ns; /* own times of all places together */
};
void gn_pipeline_count(const struct gn_pipeline *pipeline, struct gn_place_counts *counts);
/* Write the counts of a place, and its own time if it was measured, into the open object. */
void gn_place_report(const struct gn_place_counts *counts, uint32_t place, struct gantry_writer *w);
/* gn_pipeline_report - write the array `stages` into the open object. Control thread. */
void gn_pipeline_report(const struct gn_pipeline *pipeline, const struct gn_place_counts *counts,
			struct gantry_writer *w);
/*
 * gn_pipeline_volume - let the stages change the properties of a volume, from the last stage to the
 * first
 *
 * volume  in: of the terminal. Out: what the client sees
 * Returns 0, or -errno of a stage. Any thread.
 */
int gn_pipeline_volume(const struct gn_pipeline *pipeline, struct gantry_volume_info *volume);
/* Return the number of stages, and the plugin name of stage i. */
uint32_t gn_pipeline_length(const struct gn_pipeline *pipeline);
/* Return the number of stages with needs_bounce. They get no descriptors with lists. */
uint32_t gn_pipeline_count_bouncing(const struct gn_pipeline *pipeline);
const char *gn_pipeline_stage_name(const struct gn_pipeline *pipeline, uint32_t i);

/*
 * Same contracts as chain_create and chain_destroy of struct gantry_role_host. volume: that of the
 * terminal. Any thread.
 */
int gn_chain_create(struct gn_lane *lane, const struct gantry_hop *owner,
		    const struct gantry_hop *terminal, const struct gantry_volume_info *volume,
		    uint32_t n, struct gantry_chain **chain_p, struct gantry_io **ios_p);
void gn_chain_destroy(struct gantry_chain *chain);
/*
 * gn_chain_enter_terminal - measure an IO that the owner passes to the terminal without the
 * `submit` of the hop, after io->hop was set. Lane's thread.
 */
void gn_chain_enter_terminal(const struct gantry_chain *chain, const struct gantry_io *io);
/* gn_chain_set_size - change the size of the volume of the terminal. Lane's thread. */
void gn_chain_set_size(struct gantry_chain *chain, uint64_t size);

/*
 * gn_lane_name_place - write the key of a place of the chains of a lane in the configuration, and
 * the name of its plugin. place: as in gn_lane_count_held(). Any thread.
 */
#define GN_PLACE_NAME 64
void gn_lane_name_place(const struct gn_lane *lane, uint32_t place, char name[GN_PLACE_NAME]);

/*
 * gn_lane_guard - returns the hop before an owner. It counts completions of idle descriptors in
 * double_completions of the lane and otherwise ignores them.
 */
struct gantry_hop gn_lane_guard(struct gn_lane *lane);

/*
 * gn_lane_count_held - count the descriptors in flight on all chains of a lane, by the hop that
 * accepted them last
 *
 * owner    count only descriptors of this owner (io->owner); NULL: of all
 * held     out: numbers of descriptors. [0]: at the owners; no stage has accepted them. [1 + i]: at
 *          stage i. [1 + n_stages]: at the terminals
 * Thread   any. The counts are approximate while the lane runs
 */
void gn_lane_count_held(struct gn_lane *lane, const void *owner, uint32_t held[GN_CHAIN_PLACES]);

#endif
