/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * role.h - one entry of `roles`, put together: the plugin instance with its lanes, stages, backend,
 * sessions.
 */
#ifndef GN_SESSION_ROLE_H
#define GN_SESSION_ROLE_H

#include "base/log.h"
#include "base/loop.h"
#include "pipeline/pipeline.h"
#include "transport/device.h"

#include <gantry/role.h>
#include <gantry/stage.h>

/* Where to listen or to connect, with the limits and deadlines of its sessions. */
/*
 * The share that the sessions of a peer have of the bytes of a lane, relative to those of other
 * peers.
 */
struct gn_weight {
	const char *peer; /* as gn_peer_name() writes it */
	uint32_t weight;
};

struct gn_endpoint {
	struct gn_device *device;
	const char *service; /* name or address */
	const char *where;   /* "FILE:LINE", for messages */

	uint64_t connect_timeout_ns; /* connects only: keep trying this long */
	/* connects only: keep trying this long when a session is lost; 0: do not */
	uint64_t resume_ns;
	/* wait for one answer of the peer, and for its next request before start */
	uint64_t control_timeout_ns;
	/* interval of heartbeats; the peer is lost after four without an answer */
	uint64_t heartbeat_ns;
	uint64_t io_timeout_ns; /* deadline of an IO that brings none */
	/* connects only: longest wait for the answer to an IO that timed out */
	uint64_t fence_timeout_ns;

	/* listen only */
	/* finish after that many sessions have ended; 0: serve until stopped */
	uint64_t exit_after;
	uint32_t max_sessions;      /* at a time */
	uint32_t max_lanes;         /* of a session */
	uint32_t max_depth;         /* of a lane */
	uint32_t max_regions;       /* of a session */
	uint64_t max_region_bytes;  /* of all regions of a session */
	uint64_t move_memory;       /* bytes for each lane of a session that has to move its data */
	uint64_t direct_memory;     /* largest volume in memory that is registered instead */
	uint32_t max_half_open;     /* connections of a peer without HELLO */
	uint32_t max_peer_sessions; /* of a peer, at a time; 0: automatic, see peers.h */
	uint64_t max_peer_region_bytes; /* of all regions of a peer; 0: automatic, see peers.h */
	uint64_t max_peer_queue_memory; /* bytes of queues and move_memory of a peer */
	const uint32_t *uids;           /* who may connect; n_uids 0: the same uid only */
	uint32_t n_uids;
	bool insecure; /* on a network: serve peers that nothing authenticates */
	/* shares of a lane; peers that are not listed have weight 1 */
	const struct gn_weight *weights;
	uint32_t n_weights;
	uint32_t max_weight; /* the largest of weights */
};

struct gn_role_spec {
	const char *name;
	struct gn_plugin_instance part; /* ops: struct gantry_role_ops */
	uint32_t n_lanes;
	struct gn_worker **workers;       /* n_lanes entries; several may be the same */
	const struct gn_endpoint *listen; /* NULL: none */
	const struct gn_endpoint *connects;
	uint32_t n_connects;
	const struct gn_plugin_instance *stages; /* ops: struct gantry_stage_ops */
	uint32_t n_stages;
	const struct gn_plugin_instance *backend; /* ops: struct gantry_backend_ops; NULL: none */
	/* The role has finished; control thread; called once. */
	void (*finished)(void *arg, int status);
	void *arg;
};

struct gn_role;

/*
 * Open backend, stages and role, in that order; logs why it failed. spec is copied, what it points
 * to is not.
 */
int gn_role_create(struct gn_loop *loop, const struct gn_role_spec *spec, struct gn_role **role_p);
int gn_role_start(struct gn_role *role);
/* Ask it to wind down: sessions end, then `finished`. Idempotent. */
void gn_role_stop(struct gn_role *role);
/* Listen no more: its service name is free. For those who leave in a hurry; control thread. */
void gn_role_unlisten(struct gn_role *role);
/*
 * gn_role_log_held - log for each lane how many IOs each stage and the backend hold
 *
 * level    log level of the lines
 * returns  the number of held IOs
 * thread   any, while the role exists. The counts are approximate while its lanes run
 */
uint32_t gn_role_log_held(struct gn_role *role, enum gn_log_level level);
/* After `finished`; or after a failed start. */
void gn_role_destroy(struct gn_role **role_p);
/* The role's object of a report: plugin's values, stages, backend, sessions, counters. */
void gn_role_report(struct gn_role *role, struct gantry_writer *w);
/* For `gantry check`: what a role that listens promises, as a plan. */
void gn_role_plan_listen(const struct gn_role *role, struct gantry_plan *plan);
/* For `gantry check`: what a created role will ask for through its n-th connect. */
void gn_role_plan(const struct gn_role *role, uint32_t connect, struct gantry_plan *plan);
/* For `gantry check`: as expect of the role's ops; works on a created role. */
void gn_role_expect(const struct gn_role *role, const struct gantry_volume_info *volumes,
		    struct gantry_volume_info *shown, const struct gantry_option_faults *faults);
/* For `gantry check`: lanes, chain, memory and credits as they will be; works on a created role. */
void gn_role_describe(struct gn_role *role, struct gantry_writer *w);

#endif
