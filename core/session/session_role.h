/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session_role.h - one entry of `roles` of the configuration: the plugin instance with its lanes,
 * stages, backend and sessions. Control thread, except where noted.
 */
#ifndef GN_SESSION_ROLE_H
#define GN_SESSION_ROLE_H

#include "base/log.h"
#include "base/event_loop.h"
#include "pipeline/pipeline.h"
#include "session/access_list.h"
#include "transport/device.h"

#include <gantry/role.h>
#include <gantry/stage.h>

/* Share of a lane's bytes for the sessions of a peer, relative to other peers. */
struct gn_weight {
	const char *peer; /* name as gn_peer_name() writes it */
	uint32_t weight;
};

/*
 * Where a role listens or connects, with the limits and deadlines of its sessions. The option
 * tables of core/topology/endpoint.c fill the members that are options.
 */
struct gn_endpoint {
	struct gn_device *device;
	const char *name;    /* the service, as the role names it */
	const char *service; /* the text that the transport uses for it: a name or an address */
	const char *where;   /* "FILE:LINE", for messages */

	uint64_t connect_timeout_ns; /* connects only: how long to retry */
	/* connects only: how long to try to resume a lost session; 0: do not resume */
	uint64_t resume_ns;
	/* longest wait for an answer of the peer, and for its next request before START */
	uint64_t control_timeout_ns;
	/* heartbeat interval; the peer counts as lost after four intervals without an answer */
	uint64_t heartbeat_ns;
	uint64_t io_timeout_ns; /* deadline of an IO that has none */
	/* connects only: longest wait for the late reply to an IO that timed out */
	uint64_t fence_timeout_ns;

	/* listen only */
	/* finish after this many sessions have ended; 0: serve until stopped */
	uint64_t exit_after;
	uint64_t max_sessions;     /* limit of sessions at a time */
	uint64_t max_lanes;        /* limit of lanes of each session */
	uint64_t max_depth;        /* limit of IOs in flight on each lane */
	uint64_t max_regions;      /* limit of regions of each session */
	uint64_t max_region_bytes; /* limit of the bytes of all regions of each session */
	uint64_t move_memory;      /* bytes of bounce buffers for each lane of a session */
	/*
	 * bytes; a volume in memory up to this size is registered instead of using bounce buffers
	 */
	uint64_t direct_memory;
	uint64_t max_half_open; /* limit of connections of a peer without HELLO */
	/* limit of sessions of each peer at a time; 0: automatic, see peers.h */
	uint64_t max_peer_sessions;
	/* limit of bytes of all regions of a peer; 0: automatic, see peers.h */
	uint64_t max_peer_region_bytes;
	uint64_t max_peer_queue_memory; /* limit of GN_QUOTA_QUEUE_MEMORY, in bytes */
	/* peers that may open sessions; NULL: those of `uids`, or that `auth` accepts */
	struct gn_access *access;
	/* users that have permission to connect; n_uids 0: only the uid of this process */
	const uint32_t *uids;
	uint32_t n_uids;
	/* weights of peers; a peer that is not listed has weight 1 */
	const struct gn_weight *weights;
	uint32_t n_weights;
	uint32_t max_weight; /* largest weight in `weights` */
};

struct gn_role_spec {
	const char *name;
	struct gn_plugin_instance part; /* ops: struct gantry_role_ops */
	uint32_t n_lanes;
	bool stage_times;  /* measure from the start, see gn_role_measure() */
	bool check_stages; /* name each double completion, see pipeline/chain_watch.h */
	/* n_lanes entries; several lanes can have the same worker */
	struct gn_worker **workers;
	const struct gn_endpoint *listen; /* NULL: none */
	const struct gn_endpoint *connects;
	uint32_t n_connects;
	const struct gn_plugin_instance *stages; /* ops: struct gantry_stage_ops */
	uint32_t n_stages;
	const struct gn_plugin_instance *backend; /* ops: struct gantry_backend_ops; NULL: none */
	/* Called once, on the control thread, when the role has finished. */
	void (*finished)(void *arg, int status);
	void *arg;
};

struct gn_role;

/*
 * gn_role_create - open backend, stages and role plugin, in this order. Logs a failure. spec is
 * copied, but the objects that it points to are not: they must outlive the role. Returns 0 or
 * -errno.
 */
int gn_role_create(struct gn_loop *loop, const struct gn_role_spec *spec, struct gn_role **role_p);
/* gn_role_start - start the role plugin. Returns 0 or the -errno of its `start`. */
int gn_role_start(struct gn_role *role);
/*
 * gn_role_stop - request the end of the role: its sessions end, then it calls `finished`. A second
 * call has no effect.
 */
void gn_role_stop(struct gn_role *role);
/*
 * Returns the address at which the role listens, or will listen, valid until it stops listening;
 * NULL: the role has no `listen`, or the address is the name of the service. Control thread.
 */
const char *gn_role_address(const struct gn_role *role);
/*
 * Write "service=NAME", and " address=ADDRESS" if the transport uses another text than the name.
 * address: NULL, or as gn_role_address() returns it. Returns buf.
 */
#define GN_SERVICE_WORDS 160
const char *gn_service_words(char buf[GN_SERVICE_WORDS], const struct gn_endpoint *endpoint,
			     const char *address);
/*
 * gn_role_unlisten - stop listening, which frees the service name. For a process that exits without
 * waiting for `finished`.
 */
void gn_role_unlisten(struct gn_role *role);
/*
 * gn_role_instance - get the object that `open` of a plugin of the role stored
 *
 * kind     GANTRY_KIND_ROLE, GANTRY_KIND_STAGE or GANTRY_KIND_BACKEND
 * stage    index of the stage; ignored for other kinds
 * Thread   control thread
 */
void *gn_role_instance(const struct gn_role *role, unsigned kind, uint32_t stage);
/*
 * gn_role_measure - measure the own time of each stage and of the terminal from now on, or stop.
 * Logs a failure. Control thread; waits for the lanes.
 */
void gn_role_measure(struct gn_role *role, bool on);
/*
 * gn_role_has_sessions - return whether peers have sessions with the role. Control thread.
 */
bool gn_role_has_sessions(const struct gn_role *role);
/*
 * gn_role_log_held - log for each lane how many IOs the sessions, each stage and the terminal hold
 *
 * level    log level of the lines
 * Returns  the number of held IOs
 * Thread   any, while the role exists. The counts are approximate while its lanes run
 */
uint32_t gn_role_log_held(struct gn_role *role, enum gn_log_level level);
/* gn_role_destroy - destroy a role, after `finished` or a failed start. */
void gn_role_destroy(struct gn_role **role_p);
/*
 * gn_role_no_session - get the reason why none of the sessions that a role opened has started
 *
 * Returns  NULL: a session has started, or the role opened none. Else the reason of the last
 *          session; empty: the role ended that session. Valid until the role opens a session or is
 *          destroyed
 */
const char *gn_role_no_session(const struct gn_role *role);
/*
 * gn_role_report - write the object of the role: values of the plugin, stages, backend, sessions,
 * counters.
 */
void gn_role_report(struct gn_role *role, struct gantry_writer *w);
/* For `gantry check`: the limits that a listening role grants, as a plan. */
void gn_role_plan_listen(const struct gn_role *role, struct gantry_plan *plan);
/*
 * For `gantry check`: fill the inputs of the check of a role that is created, not started, except
 * for the volumes. check->plans: an entry for each connect.
 */
void gn_role_fill_check(struct gn_role *role, struct gantry_check *check);
/* Let the stages change the properties of the role's volume, as for its clients. 0 or -errno. */
int gn_role_stage_volume(const struct gn_role *role, struct gantry_volume_info *volume);
/*
 * For `gantry check`: write lanes, chain, memory and credits of a role that is created, not
 * started.
 */
void gn_role_describe(struct gn_role *role, struct gantry_writer *w);

#endif
