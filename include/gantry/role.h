/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * role.h - a role: initiator, gateway, target, or one of your own.
 *
 * The host does what all roles need: it connects and listens, runs the sessions (hello, query,
 * export, queues, start, stop, bye, heartbeat), owns the lanes and their pipelines, and checks
 * every descriptor that comes in. A role decides: what to submit (initiator), where a session's IO
 * goes (gateway), what stores it (target).
 *
 * Everything here is called on the control thread, except the hops of a chain, which run on the
 * lane's.
 *
 *                          +-------- session ---------+
 *   role of the client:    client_open ... client_hop    the terminal hop of its own chains
 *   role of the server:    gantry_server_ops.lane        gives the terminal hop for what comes in
 */
#ifndef GANTRY_ROLE_H
#define GANTRY_ROLE_H

#include <gantry/backend.h>
#include <gantry/plugin.h>
#include <gantry/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gantry_client;  /* this side's end of a session that it opened */
struct gantry_session; /* this side's end of a session that a peer opened */

/* size of the secret of a session, which a peer must present to resume the session */
#define GANTRY_SECRET_BYTES 16

/*
 * The largest epoch that a server accepts. It is below UINT32_MAX, so that the next epoch never
 * wraps around to 0. A client that tries to resume every 50 ms reaches it after 6 years.
 */
#define GANTRY_EPOCH_MAX 4294901759u /* UINT32_MAX - 65536 */

/* What a client asks of a session. */
struct gantry_session_attr {
	uint64_t id; /* 0: choose one; a relay keeps the id of the session that it serves */
	/* counts the reconnects of a session; 1 at first, GANTRY_EPOCH_MAX at most */
	uint32_t epoch;
	uint32_t lanes;   /* queues that it wants */
	uint32_t depth;   /* IOs in flight on each */
	uint32_t regions; /* regions that it will export */
};

/* Events of a client. An -errno comes with a text that says what went wrong and where. */
struct gantry_client_events {
	/* Hello and query are done. */
	void (*ready)(void *arg, struct gantry_client *client,
		      const struct gantry_volume_info *volume);
	/* The peer has imported a region. */
	void (*exported)(void *arg, struct gantry_client *client,
			 const struct gantry_region *region);
	/* IO may be submitted. */
	void (*started)(void *arg, struct gantry_client *client);
	/*
	 * The session is over, every IO that it had taken has completed; last event. What is
	 * submitted later is refused with -ENOTCONN. reason: 0 after client_close, else -errno.
	 */
	void (*closed)(void *arg, struct gantry_client *client, int reason, const char *text);
};

/*
 * What a server role does at each step of a session. Each of the first four returns 0, -errno to
 * refuse (with the text set by session_refuse), or -EINPROGRESS and later session_continue().
 */
struct gantry_server_ops {
	int (*hello)(void *role, struct gantry_session *session,
		     const struct gantry_session_attr *attr);
	int (*query)(void *role, struct gantry_session *session, struct gantry_volume_info *volume);
	/* A region of the client was imported; it is valid until `closed` is done. */
	int (*region)(void *role, struct gantry_session *session, struct gantry_region *region);
	/* All lanes are set up and receives are posted: get ready for IO. */
	int (*start)(void *role, struct gantry_session *session);
	/* Between region and start, for each lane of the session: where its IO goes. */
	int (*lane)(void *role, struct gantry_session *session, struct gantry_lane *lane,
		    uint32_t index, struct gantry_hop *terminal);
	/*
	 * The client wants to stop, and all lanes are drained: have whoever was given its regions
	 * let go of them.
	 * Returns 0, or -EINPROGRESS and later session_continue().
	 */
	int (*stop)(void *role, struct gantry_session *session);
	/*
	 * The session is over and drained; release what belongs to it. Always called when hello
	 * was. Returns 0; or -EINPROGRESS, and later session_continue() as the last use of the
	 * session: the regions stay until then, for a role that handed them on and must have them
	 * back first.
	 */
	int (*closed)(void *role, struct gantry_session *session, int reason);
	/*
	 * Whether regions are to be mapped here: a relay says 0 and never has the data in its
	 * address space.
	 */
	int map_regions;
	/*
	 * The session is lost, and its IO is being given back: end what would make that take long.
	 * `closed` follows.
	 * May be NULL.
	 */
	void (*lost)(void *role, struct gantry_session *session);
};

struct gantry_chain;  /* a pipeline's hops with the descriptors that walk it */
struct gantry_fanout; /* parents that wait for children, on one lane */

/* One child of a descriptor: a piece of it, for one of the terminals. */
struct gantry_piece {
	uint32_t terminal; /* index */
	uint32_t length;   /* bytes */
	uint64_t offset;   /* bytes, in the volume of that terminal */
	uint64_t skip;     /* bytes of the parent's data before this piece */
};

/* How a region is made. */
#define GANTRY_REGION_HUGE 0x1 /* of huge pages, when there are any */
/* client_export allocates the pages that are still missing; else region_create allocates all */
#define GANTRY_REGION_LAZY 0x2

/* Services of the host for roles; valid until close. */
struct gantry_role_host {
	uint32_t struct_size;
	uint32_t n_lanes;    /* of this role */
	uint32_t n_connects; /* entries of `connect` */
	uint32_t reserved;
	const struct gantry_host *host;
	void *core;

	struct gantry_lane *(*lane)(const struct gantry_role_host *rh, uint32_t index);
	/*
	 * Add or remove a poller, which is copied; `self` names it, and stays until it is removed.
	 * The lane's thread runs the change before this returns. 0; -ENOMEM, or why its fd cannot
	 * be waited for.
	 */
	int (*poller_add)(struct gantry_lane *lane, const struct gantry_poller *poller);
	void (*poller_remove)(struct gantry_lane *lane, void *self);

	/*
	 * Build owner -> stages of the configuration -> terminal for a lane, and n descriptors that
	 * rest at the owner. owner->complete is called for each completion. *ios_p: n descriptors,
	 * index = slot. The chain owns them. n is 1 to 65535. Both hops are copied. 0, -EINVAL,
	 * -ENOMEM.
	 */
	int (*chain_create)(struct gantry_lane *lane, const struct gantry_hop *owner,
			    const struct gantry_hop *terminal, uint32_t n,
			    struct gantry_chain **chain_p, struct gantry_io **ios_p);
	void (*chain_destroy)(struct gantry_chain *chain); /* nothing may be in flight */

	/*
	 * Memory that can be exported: a sealed memfd, zeroed. flags: GANTRY_REGION_*. 0, -EINVAL:
	 * no bytes; -ENOMEM, -EMFILE.
	 */
	int (*region_create)(const struct gantry_role_host *rh, uint64_t bytes, int flags,
			     struct gantry_region **region_p);
	/*
	 * quiet == 0: an agent may still touch it; it goes to quarantine and is never used again.
	 */
	void (*region_destroy)(const struct gantry_role_host *rh, struct gantry_region *region,
			       int quiet);

	/* -- client side -- */
	/*
	 * Begin a session at the place that `connect`, an index, names; the host tries again while
	 * there is no listener. attr is copied, events and arg stay until `closed`, which comes in
	 * any case. No event comes before this returns. -EINVAL: no such connect, or no lanes, no
	 * depth, too many lanes; -ENOMEM.
	 */
	int (*client_open)(const struct gantry_role_host *rh, uint32_t connect,
			   const struct gantry_session_attr *attr,
			   const struct gantry_client_events *events, void *arg,
			   struct gantry_client **client_p);
	/*
	 * After `ready`, before client_start: `exported` follows, then the next may be exported.
	 * handle: 1 to attr.regions, each once; rights: GANTRY_REMOTE_*. The host allocates missing
	 * pages of a memfd that is not imported. The region stays until `closed`. -EBUSY: not now;
	 * -ENOTCONN: the session is lost, `closed` follows with the reason;
	 * -ENOSPC: more than attr.regions; -ENOMEM: pages cannot be allocated; else what the
	 * transport says, of which some is the end of the session: `closed` follows then as well.
	 */
	int (*client_export)(struct gantry_client *client, const struct gantry_region *region,
			     uint32_t rights, uint32_t handle);
	/*
	 * Create the queues of all lanes, each of which has its client_hop by then, and start:
	 * `started` follows. -EBUSY: not now; -EINVAL: a lane has no hop, or the device has no
	 * queues of that depth; else as client_export.
	 */
	int (*client_start)(struct gantry_client *client);
	/*
	 * Lane `index` of the session, to be used by `lane` of this role; after `ready`, before
	 * client_start. The hop may stand in chains until client_free; before `started` and after
	 * the end it refuses with -ENOTCONN. 0, -EINVAL, -ENOMEM.
	 */
	int (*client_hop)(struct gantry_client *client, uint32_t index, struct gantry_lane *lane,
			  struct gantry_hop *terminal);
	/*
	 * What is in flight completes; stop, bye; ends with `closed`. Idempotent, as is
	 * client_abort.
	 */
	void (*client_close)(struct gantry_client *client);
	/*
	 * End it at once: what is in flight completes with GANTRY_S_SESSION_LOST; `closed` follows.
	 */
	void (*client_abort)(struct gantry_client *client);
	/*
	 * After `closed`, or as the role itself closes; no chain ends in it any more. What a role
	 * has not freed goes with it.
	 */
	void (*client_free)(struct gantry_client *client);

	/* -- server side -- */
	/*
	 * Listen, as `listen` of the configuration says; once. ops stays until close; role: what
	 * open gave. 0; -errno, logged.
	 */
	int (*serve)(const struct gantry_role_host *rh, const struct gantry_server_ops *ops,
		     void *role);
	/*
	 * After -EINPROGRESS of a step: it is done, or with -errno refused. Without one under way
	 * it does nothing.
	 */
	void (*session_continue)(struct gantry_session *session, int rc);
	/* Say why a step is refused; the text reaches the client. */
	void (*session_refuse)(struct gantry_session *session, const char *fmt, ...)
#ifdef __GNUC__
		__attribute__((format(printf, 2, 3)))
#endif
		;
	void (*session_end)(struct gantry_session *session, int reason); /* ends with `closed` */
	/* The role's own pointer for a session: NULL until it is set. */
	void (*session_set)(struct gantry_session *session, void *user);
	void *(*session_user)(struct gantry_session *session);
	uint64_t (*session_id)(struct gantry_session *session);

	/* -- target: the backend of the configuration; opened before the role -- */
	/* All zero when the role has no backend. */
	void (*backend_volume)(const struct gantry_role_host *rh,
			       struct gantry_volume_info *volume);
	/* The terminal for chains of this lane. -EINVAL: no backend. */
	int (*backend_hop)(const struct gantry_role_host *rh, struct gantry_lane *lane,
			   struct gantry_hop *terminal);

	/* The role's work is done (initiator) or it cannot go on: exit status 0 or 1. */
	void (*finished)(const struct gantry_role_host *rh, int status);

	/*
	 * One parent, several children, the first error wins; before it, one that leaves the data
	 * in doubt. A fan-out serves parents with slots 0 .. n_parents - 1, each with up to
	 * max_pieces children at a time, and passes those to its terminals. n_parents times
	 * max_pieces is 1 .. 65535. 0, -EINVAL: it is not; -ENOMEM.
	 */
	int (*fanout_create)(struct gantry_lane *lane, const struct gantry_hop *terminals,
			     uint32_t n_terminals, uint32_t n_parents, uint32_t max_pieces,
			     struct gantry_fanout **fanout_p);
	void (*fanout_destroy)(struct gantry_fanout *fanout); /* nothing may be in flight */
	/*
	 * Lane's thread. 0: the parent completes when all children have; -EAGAIN; -E2BIG: more than
	 * max_pieces.
	 */
	int (*fanout_submit)(struct gantry_fanout *fanout, struct gantry_io *parent,
			     const struct gantry_piece *pieces, uint32_t n);

	/* Run fn(arg) on the control thread, soon. Any thread; not for the IO path. */
	void (*post)(const struct gantry_role_host *rh, void (*fn)(void *arg), void *arg);

	/*
	 * Client side, from `closed` on: whether nobody can touch the regions that were exported
	 * any more, also those of IO whose status leaves that open. True after an orderly end, and
	 * where the transport itself takes care of it.
	 */
	int (*client_regions_released)(const struct gantry_client *client);

	/*
	 * Run fn(arg) on the lane's thread, between two turns, and wait for it. Control thread; not
	 * for the IO path.
	 */
	void (*lane_call)(struct gantry_lane *lane, void (*fn)(void *arg), void *arg);

	/*
	 * Client side: how long a session of this connect may be opened again after it was lost,
	 * nanoseconds; 0: not at all. That is done by client_open with the id of the lost one,
	 * after its client_free, and the next epoch, and by client_use_secret with its secret: the
	 * peer answers when the lost one is drained there, so that nothing of it comes after what
	 * the new one does.
	 */
	uint64_t (*connect_resume)(const struct gantry_role_host *rh, uint32_t connect);
	/* The id of a client's session, also when it was chosen by client_open. */
	uint64_t (*client_id)(const struct gantry_client *client);

	/*
	 * Run fn(arg) on the control thread, once, so many nanoseconds from now. Control thread. 0,
	 * -ENOMEM.
	 */
	int (*after)(const struct gantry_role_host *rh, uint64_t ns, void (*fn)(void *arg),
		     void *arg);
	/* Forget what `after` was given with this arg. */
	void (*after_cancel)(const struct gantry_role_host *rh, const void *arg);

	/*
	 * Client side, between `started` and `closed`: a time (gantry_lane.now_ns clock). Nobody
	 * can touch the buffers of IOs that came back from lane `index` of the session before it,
	 * whatever their status: those that timed out have been answered after all. UINT64_MAX:
	 * that is true of all. Lane's thread.
	 */
	uint64_t (*client_settled_ns)(const struct gantry_client *client, uint32_t index);

	/*
	 * Client side, between `ready` and `closed`: bytes that a region may have, as far as is
	 * known; client_export of more fails. Part of 1.1: the struct_size of a host of 1.0 ends
	 * before it.
	 */
	uint64_t (*client_export_limit)(const struct gantry_client *client);

	/*
	 * Client side: let the server reject the session unless it serves this volume. Call it
	 * right after client_open.
	 *
	 * The server compares the uuid and, of a GANTRY_VOLUME_VOLATILE volume, the verifier. It
	 * does not compare a value that is 0. If one differs, `closed` reports -ESTALE and a text
	 * with both values.
	 *
	 * volume   only uuid and verifier matter
	 * thread   control thread
	 * owner    the host copies *volume
	 * since    1.1
	 */
	void (*client_expect)(struct gantry_client *client,
			      const struct gantry_volume_info *volume);
	/*
	 * Client side, between `started` and `closed`: count the writes that timed out and are not
	 * answered yet. Each of them may still change the volume.
	 *
	 * index    number of the lane, from 0
	 * returns  the count; UINT32_MAX: the lane's connection is broken, so their answers never
	 *          come
	 * thread   lane's thread
	 * since    1.1
	 */
	uint32_t (*client_late_writes)(const struct gantry_client *client, uint32_t index);

	/*
	 * Move a region of region_create to pages that no importer has. Address and content stay
	 * the same. The importers keep the old pages. No session may use the region any more.
	 * Another thread's write to the region during the call may be lost. Takes up to 1 s for
	 * each GB.
	 *
	 * returns  0
	 *          -ENOMEM: no memory for the copy; the region is unchanged
	 * thread   control thread
	 * owner    the caller still owns the region
	 * since    1.1
	 */
	int (*region_withdraw)(const struct gantry_role_host *rh, struct gantry_region *region);

	/*
	 * Client side: present a secret to the server. Call it right after client_open. The server
	 * accepts the id of a session that it has already only with the secret of that session;
	 * else `closed` reports -EACCES. If the server has no session of the id, this secret
	 * becomes that of the new one. Without a call the server makes a secret.
	 *
	 * secret   of client_secret or session_secret
	 * thread   control thread
	 * owner    the host copies it
	 * since    1.1
	 */
	void (*client_use_secret)(struct gantry_client *client,
				  const uint8_t secret[GANTRY_SECRET_BYTES]);
	/*
	 * Client side, from `ready` on: copy the secret of the session. A peer that has it can take
	 * over the session: keep it out of logs and reports.
	 *
	 * thread   control thread
	 * since    1.1
	 */
	void (*client_secret)(const struct gantry_client *client,
			      uint8_t secret[GANTRY_SECRET_BYTES]);
	/*
	 * Server side, from `hello` to `closed`: copy the secret of the session. A relay presents
	 * it to its own servers, so that a client can resume its session through another relay.
	 *
	 * thread   control thread
	 * since    1.1
	 */
	void (*session_secret)(const struct gantry_session *session,
			       uint8_t secret[GANTRY_SECRET_BYTES]);
};

/*
 * What a role will ask for through one of its connects, at the most. Options are named as in its
 * table, "group.option", so that messages can say what to change; NULL: none has a say.
 */
struct gantry_plan {
	uint32_t sessions;     /* at a time */
	uint32_t lanes, depth; /* of each; depth 0: not known */
	uint32_t regions;      /* of each */
	uint32_t reserved;
	uint64_t region_bytes; /* in the regions of a session; 0: not known */
	/* share of one IO in them, when each of lanes x depth has its own; 0: it is otherwise */
	uint64_t io_bytes;
	const char *sessions_option, *lanes_option, *depth_option, *regions_option;
	const char *bytes_option; /* that says io_bytes, or else region_bytes */
};

struct gantry_role_ops {
	/*
	 * Make the role from its options; `conf` lives as long as the role. 0, or -errno having
	 * logged why.
	 */
	int (*open)(const struct gantry_role_host *rh, const void *conf, void **role_p);
	int (*start)(void *role); /* begin: serve, or open clients; 0 or -errno */
	/* Wind down; ends with finished(). Idempotent. */
	void (*stop)(void *role);
	/* after finished(), or a start that failed, or without a start */
	void (*close)(void *role);
	/* values for the report; the lanes may be running */
	void (*report)(void *role, struct gantry_writer *w);
	/* GANTRY_ROLE_*: what configuration sections it needs. */
	uint32_t flags;
	/*
	 * Say what it will ask for, for `gantry check`; after open. The plan comes filled: of a
	 * role that listens, with the limits of `listen`, as for a relay; else with one session of
	 * all lanes.
	 */
	void (*plan)(void *role, uint32_t connect, struct gantry_plan *plan);
	/*
	 * For `gantry check`, after open: volumes[i] is what the i-th connect will lead to, as far
	 * as the configuration says; what is not known is 0. Add a fault for what this role cannot
	 * do with them. One that listens says what it will show in *shown, which comes as its
	 * backend says it, or with nothing known.
	 */
	void (*expect)(void *role, const struct gantry_volume_info *volumes,
		       struct gantry_volume_info *shown, const struct gantry_option_faults *faults);
};

#define GANTRY_ROLE_LISTENS 0x1u  /* needs `listen` */
#define GANTRY_ROLE_CONNECTS 0x2u /* needs `connect` */
#define GANTRY_ROLE_STORES 0x4u   /* needs `backend` */
/* ends by itself: the process ends when all such roles have finished */
#define GANTRY_ROLE_WORKS 0x8u
#define GANTRY_ROLE_ONE_CONNECT 0x10u /* `connect` names one place, not several */

#ifdef __cplusplus
}
#endif

#endif
