/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pipeline.h - the stages of a role, on each of its lanes, and the chains that descriptors walk.
 *
 *      chain:  [guard] [owner] [stage 0] .. [stage n-1] [terminal]
 *                         ^
 *                         a descriptor at rest stands here
 *
 * The stages of a lane are shared by all chains of that lane; owner and terminal differ: an
 * initiator's generator and its link, a session's port and the backend. The guard takes completions
 * that nobody waits for.
 */
#ifndef GN_PIPELINE_PIPELINE_H
#define GN_PIPELINE_PIPELINE_H

#include "base/host.h"
#include "pipeline/worker.h"

#include <gantry/role.h>
#include <gantry/stage.h>

#include <pthread.h>

struct gn_pipeline;

/* One lane of a role. */
struct gn_lane {
	struct gantry_lane pub;
	struct gn_worker *worker;
	struct gn_pipeline *pipeline;
	uint64_t *double_completions; /* counter */
	pthread_mutex_t chains_lock;
	struct gantry_chain *chains;           /* list of all chains of this lane */
} __attribute__((aligned(GANTRY_CACHE_LINE))); /* its worker sets the clock all the time */

/*
 * A plugin instance to be made: ops complete (no NULL slot), conf filled; all of it outlives the
 * instance.
 */
struct gn_plugin_instance {
	const char *name; /* of the plugin */
	const void *ops;
	const void *conf;
	bool never_holds; /* the stage passes each descriptor on at once */
};

/* Make a lane on a worker; its clock is that of the worker. 0 or -errno. */
int gn_lane_init(struct gn_lane *lane, uint32_t index, uint32_t n_lanes, struct gn_host *host,
		 struct gn_worker *worker);
void gn_lane_fini(struct gn_lane *lane);

/*
 * Open n stages (ops: struct gantry_stage_ops) and start them on every lane; sets lane->pipeline.
 * Logs what failed.
 * owner: for messages, "roles.bridge". 0, -E2BIG: too many stages or frames, or what a stage
 * returned.
 */
int gn_pipeline_open(const char *owner, const struct gn_plugin_instance *parts, uint32_t n,
		     struct gn_lane *lanes, uint32_t n_lanes, struct gn_pipeline **pipeline_p);
/* Nothing may be in flight. */
void gn_pipeline_close(struct gn_pipeline **pipeline_p);
/*
 * Have every stage of a lane complete what it holds of an owner (io->owner), or of all (NULL);
 * lane's thread.
 */
void gn_pipeline_drain(struct gn_lane *lane, const void *owner);
void gn_pipeline_report(const struct gn_pipeline *pipeline, struct gantry_writer *w);
/* True if a stage of the pipeline may hold a descriptor. */
bool gn_pipeline_holds(const struct gn_pipeline *pipeline);
uint32_t gn_pipeline_length(const struct gn_pipeline *pipeline);
const char *gn_pipeline_stage_name(const struct gn_pipeline *pipeline, uint32_t i);

/* As chain_create and chain_destroy of struct gantry_role_host. Any thread. */
int gn_chain_create(struct gn_lane *lane, const struct gantry_hop *owner,
		    const struct gantry_hop *terminal, uint32_t n, struct gantry_chain **chain_p,
		    struct gantry_io **ios_p);
void gn_chain_destroy(struct gantry_chain *chain);

/* Places of a chain that can hold a descriptor in flight: the owner, the stages, the terminal. */
#define GN_CHAIN_PLACES (GANTRY_CHAIN_STAGES + 2)

/*
 * gn_lane_count_held - count the descriptors in flight on all chains of a lane, by the place that
 * accepted them last
 *
 * held     out, in descriptors. [0]: held by the owners, no stage accepted them. [1 + i]: held by
 *          stage i.
 *          [1 + n_stages]: held by the terminals
 * thread   any. The counts are approximate while the lane runs, and exact while it does not
 */
void gn_lane_count_held(struct gn_lane *lane, uint32_t held[GN_CHAIN_PLACES]);

#endif
