/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * role.h - the interface of a role: a plugin such as initiator, gateway or target.
 *
 * The host implements what all roles need: it connects and listens, runs the sessions (HELLO,
 * QUERY, EXPORT, UNEXPORT, QUEUES, START, STOP, BYE, keepalive), owns the lanes and their
 * pipelines, and checks every received descriptor. A role decides what to submit (initiator), where
 * the IO of a session is sent (gateway), or what stores it (target).
 *
 * All functions run on the control thread, except the hops of a chain and functions marked "lane's
 * thread" or "any thread".
 *
 *                            +-------- session ---------+
 *   role on the client side: client_open ... client_hop    the terminal hop of its own chains
 *   role on the server side: gantry_server_ops.lane        provides the terminal hop of received IO
 */
#ifndef GANTRY_ROLE_H
#define GANTRY_ROLE_H

#include <gantry/backend.h>
#include <gantry/plugin.h>
#include <gantry/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gantry_engine_ops;
struct gantry_client;  /* client end of a session: this process opened it */
struct gantry_session; /* server end of a session: a peer opened it */

/* bytes of the secret of a session, which a client must present to resume the session */
#define GANTRY_SECRET_BYTES 16

/*
 * The largest epoch that a server accepts. It is below UINT32_MAX, so that the next epoch never
 * wraps around to 0. A client that tries to resume every 50 ms reaches it after 6 years.
 */
#define GANTRY_EPOCH_MAX 4294901759u /* UINT32_MAX - 65536 */

/* What a client requests from a session. */
struct gantry_session_attr {
	/* id of the session; 0: the host chooses one; a relay uses that of the session it serves */
	uint64_t id;
	/* counts the attempts to open the session; 1 at first, at most GANTRY_EPOCH_MAX */
	uint32_t epoch;
	uint32_t lanes;   /* number of lanes */
	uint32_t depth;   /* IOs in flight on each lane */
	uint32_t regions; /* most regions that are exported at a time */
};

/*
 * Events of a client. Control thread. An -errno comes with a text that states the problem and where
 * it occurred.
 *
 * arg        the argument of client_open
 * client     the client
 * ownership  volume and text are valid during the call
 */
struct gantry_client_events {
	/*
	 * HELLO and QUERY are done: export the regions, then call client_start.
	 *
	 * volume  the properties of the volume
	 */
	void (*ready)(void *arg, struct gantry_client *client,
		      const struct gantry_volume_info *volume);
	/*
	 * The peer has imported the region of the last client_export.
	 *
	 * region  that region
	 */
	void (*exported)(void *arg, struct gantry_client *client,
			 const struct gantry_region *region);
	/* The role can submit IO from now on. */
	void (*started)(void *arg, struct gantry_client *client);
	/*
	 * Last event: the session has ended, and every IO that it had accepted has completed. A
	 * later submit fails with -ENOTCONN.
	 *
	 * reason  0 after client_close, else -errno
	 * text    the problem, and where it occurred
	 */
	void (*closed)(void *arg, struct gantry_client *client, int reason, const char *text);
	/*
	 * The export of client_unexport has ended: no agent of the peer can access the region any
	 * more, and its handle is free. May be NULL for a role that does not call client_unexport.
	 *
	 * handle  of client_unexport
	 */
	void (*unexported)(void *arg, struct gantry_client *client, uint32_t handle);
	/*
	 * The size of the volume has changed while the session runs. All other properties stay. IO
	 * beyond the end completes with GANTRY_S_RANGE. May be NULL: the role does not use the
	 * size.
	 *
	 * size  the new one, in bytes
	 */
	void (*resized)(void *arg, struct gantry_client *client, uint64_t size);
};

/*
 * Callbacks of a server role for each step of a session. Control thread.
 *
 * role     the pointer that open of the role returned
 * session  the session; valid from hello until closed is done
 * returns  0: done
 *          -EINPROGRESS: the role calls session_continue() later
 *          another -errno: the step is rejected, with the text of session_refuse()
 * ownership  arguments are valid during the call, unless stated otherwise
 */
struct gantry_server_ops {
	/*
	 * A client requests a session. First event of the session.
	 *
	 * attr  what the client requests; valid during the call
	 */
	int (*hello)(void *role, struct gantry_session *session,
		     const struct gantry_session_attr *attr);
	/*
	 * The client asks for the properties of the volume.
	 *
	 * volume  in: all 0. Out: the properties, at the latest when the role calls
	 *         session_continue()
	 */
	int (*query)(void *role, struct gantry_session *session, struct gantry_volume_info *volume);
	/*
	 * The host has imported a region of the client, before or after start. The region is valid
	 * until `unexport` or `closed` is done.
	 *
	 * region  the region
	 */
	int (*region)(void *role, struct gantry_session *session, struct gantry_region *region);
	/* All lanes are set up, and receives are posted: prepare for IO. */
	int (*start)(void *role, struct gantry_session *session);
	/*
	 * Store in *terminal the hop for the IO of one lane of the session. The host calls it for
	 * each lane, between region and start.
	 *
	 * lane      the lane of the role
	 * index     number of the lane in the session, from 0
	 * terminal  out: the hop; used until `closed`
	 * returns   0
	 *           -errno: the session is rejected
	 */
	int (*lane)(void *role, struct gantry_session *session, struct gantry_lane *lane,
		    uint32_t index, struct gantry_hop *terminal);
	/*
	 * The client has sent STOP, and all lanes are drained. A role that has re-exported the
	 * regions of the client must end these exports. Returns 0; or -EINPROGRESS: the role calls
	 * session_continue() later.
	 */
	int (*stop)(void *role, struct gantry_session *session);
	/*
	 * The session has ended and is drained: release its resources. The host calls it for every
	 * session for which it has called hello. Returns 0; or -EINPROGRESS: the role calls
	 * session_continue() later. The regions stay valid until session_continue(), for a role
	 * that has re-exported them and waits for their release. After session_continue() the role
	 * must not use the session.
	 *
	 * reason  0 after an orderly end, else -errno
	 */
	int (*closed)(void *role, struct gantry_session *session, int reason);
	/*
	 * 1: the host maps the regions of clients. 0, for a relay: the data is never in the address
	 * space of this process.
	 */
	int map_regions;
	/*
	 * The session is lost, and its IO is being drained: cancel whatever would delay the drain.
	 * `closed` follows. May be NULL.
	 */
	void (*lost)(void *role, struct gantry_session *session);
	/*
	 * The client ends the export of a region, and no IO in flight uses it. A role that has
	 * re-exported the region must end these exports. When the step is done, the host releases
	 * the region.
	 *
	 * region  of `region`
	 * NULL    the host rejects UNEXPORT, and EXPORT after start
	 */
	int (*unexport)(void *role, struct gantry_session *session, struct gantry_region *region);
};

struct gantry_chain;  /* the hops of a pipeline, and their descriptors */
struct gantry_fanout; /* parent descriptors that wait for their children, on one lane */

/* A part of the range of a descriptor, for one of the terminals. */
struct gantry_piece {
	uint32_t terminal; /* index in the array `terminals` of fanout_create */
	uint32_t length;   /* bytes */
	uint64_t offset;   /* bytes, in the volume of that terminal */
	uint64_t skip;     /* bytes of the parent's data before this piece */
};

/* Flags of region_create. */
#define GANTRY_REGION_HUGE 0x1 /* use huge pages if any are reserved */
/*
 * Fault pages in lazily: client_export allocates the pages that are still missing. Without this
 * flag region_create allocates all pages.
 */
#define GANTRY_REGION_LAZY 0x2

/*
 * Services of the host for roles; valid until close.
 *
 * rh        the struct that open got
 * lane      a lane of this role
 * terminal  the last hop
 * client    of client_open
 * session   the session, as the callbacks of struct gantry_server_ops got it
 * region    of region_create
 * index     number of the lane in the session, from 0
 * fn        the function to call
 * arg       the argument of fn
 * thread    control thread
 * ownership  arguments are valid during the call, unless stated otherwise
 */
struct gantry_role_host {
	uint32_t struct_size;
	uint32_t n_lanes;    /* number of lanes of this role */
	uint32_t n_connects; /* number of entries of `connect` */
	uint32_t reserved;
	const struct gantry_host *host;
	void *core;
	/* the client engine, for roles that issue IO: see engine.h */
	const struct gantry_engine_ops *engine;

	/*
	 * Get a lane of this role.
	 *
	 * index      number of the lane in the role, from 0
	 * returns    the lane
	 *            NULL: index is out of range
	 * ownership  the lane belongs to the host
	 */
	struct gantry_lane *(*lane)(const struct gantry_role_host *rh, uint32_t index);
	/*
	 * Add a poller. `self` identifies the poller, and must stay valid until the poller is
	 * removed. The lane's thread applies the change before the call returns.
	 *
	 * poller   the functions; copied
	 * returns  0
	 *          -ENOMEM: out of memory
	 *          another -errno: the fd cannot be polled
	 */
	int (*poller_add)(struct gantry_lane *lane, const struct gantry_poller *poller);
	/*
	 * Remove a poller. The lane's thread applies the change before the call returns.
	 *
	 * self  identifies the poller
	 */
	void (*poller_remove)(struct gantry_lane *lane, void *self);

	/*
	 * Create a chain for a lane, owner -> stages of the configuration -> terminal, with n idle
	 * descriptors.
	 *
	 * owner     copied; owner->complete is called for each completion
	 * terminal  copied
	 * volume    volume that the descriptors address, copied; stages get it from
	 *           gantry_stage_volume(). NULL: unknown
	 * n         1 to 65535
	 * chain_p   out: the chain; the caller destroys it
	 * ios_p     out: array of n descriptors, whose index is their slot; the chain owns them
	 * returns   0
	 *           -EINVAL: n is out of range
	 *           -ENOMEM: out of memory
	 */
	int (*chain_create)(struct gantry_lane *lane, const struct gantry_hop *owner,
			    const struct gantry_hop *terminal,
			    const struct gantry_volume_info *volume, uint32_t n,
			    struct gantry_chain **chain_p, struct gantry_io **ios_p);
	/*
	 * Destroy a chain and its descriptors. No descriptor may be in flight.
	 *
	 * chain  of chain_create
	 */
	void (*chain_destroy)(struct gantry_chain *chain);
	/*
	 * Change the size of the volume that the descriptors of a chain address.
	 *
	 * chain   of chain_create with a volume
	 * size    bytes
	 * thread  lane's thread
	 */
	void (*chain_resize)(struct gantry_chain *chain, uint64_t size);

	/*
	 * Create memory that can be exported: a sealed memfd, zeroed.
	 *
	 * bytes     size of the memory
	 * flags     GANTRY_REGION_*
	 * region_p  out: the region; the caller destroys it
	 * returns   0
	 *           -EINVAL: bytes is 0
	 *           -ENOMEM: out of memory
	 *           -EMFILE: out of descriptors
	 */
	int (*region_create)(const struct gantry_role_host *rh, uint64_t bytes, int flags,
			     struct gantry_region **region_p);
	/*
	 * Destroy a region.
	 *
	 * quiet  1: no agent can access the region any more
	 *        0: an agent might still access it, so its pages go to quarantine and are never
	 *        used again
	 */
	void (*region_destroy)(const struct gantry_role_host *rh, struct gantry_region *region,
			       int quiet);

	/* -- client side -- */
	/*
	 * Start to open a session. The host retries while there is no listener. No event comes
	 * before this function returns. `closed` always comes in the end.
	 *
	 * connect   index of an entry of `connect`
	 * attr      copied
	 * events    valid until `closed`
	 * arg       the argument of the events
	 * client_p  out: the client, which the caller frees with client_free
	 * returns   0
	 *           -EINVAL: no such connect, lanes or depth is 0, or too many lanes
	 *           -ENOMEM: out of memory
	 */
	int (*client_open)(const struct gantry_role_host *rh, uint32_t connect,
			   const struct gantry_session_attr *attr,
			   const struct gantry_client_events *events, void *arg,
			   struct gantry_client **client_p);
	/*
	 * Export a region to the server. Call it between `ready` and client_start, or after
	 * `started`; the next call must wait for `exported`. The host allocates the missing pages
	 * of a memfd that is not imported. A session that resumes has no exports: the role exports
	 * its regions again. If the server rejects the region, the session ends.
	 *
	 * region    valid until `unexported` or `closed`
	 * rights    GANTRY_REMOTE_*
	 * handle    1 to attr.regions, not in use. IO can use it after `exported`
	 * returns   0: `exported` follows
	 *           -EBUSY: a request is in flight, or the state does not permit it
	 *           -ENOTCONN: the session is lost; `closed` follows with the reason
	 *           -ENOTSUP: after `started`: the server does not support it
	 *           -ENOSPC: more than attr.regions
	 *           -EEXIST: the handle is in use
	 *           -ENOMEM: pages cannot be allocated
	 *           -EXDEV: the transport cannot access the memory
	 *           another -errno of the transport; if it ends the session, `closed` follows
	 */
	int (*client_export)(struct gantry_client *client, const struct gantry_region *region,
			     uint32_t rights, uint32_t handle);
	/*
	 * Create the queues of all lanes and start the session. Each lane must have its client_hop.
	 *
	 * returns   0: `started` follows
	 *           -EBUSY: a request is in flight, or the state does not permit it
	 *           -EINVAL: a lane has no hop, or the device does not support queues of that depth
	 *           another -errno as for client_export
	 */
	int (*client_start)(struct gantry_client *client);
	/*
	 * Get the terminal hop of lane `index` of the session, for use by `lane` of this role. Call
	 * it after `ready` and before client_start. Chains may contain the hop until client_free.
	 * Before `started` and after the end of the session, its submit fails with -ENOTCONN.
	 *
	 * terminal  out: the hop
	 * returns   0
	 *           -EINVAL: index is out of range
	 *           -ENOMEM: out of memory
	 */
	int (*client_hop)(struct gantry_client *client, uint32_t index, struct gantry_lane *lane,
			  struct gantry_hop *terminal);
	/*
	 * End the session in order: the server answers STOP when all IO in flight has completed.
	 * BYE and the revocation of all exports follow, then `closed`. Idempotent.
	 */
	void (*client_close)(struct gantry_client *client);
	/*
	 * End the session immediately: IO in flight completes with GANTRY_S_SESSION_LOST. `closed`
	 * follows. Idempotent.
	 */
	void (*client_abort)(struct gantry_client *client);
	/*
	 * Free a client, after `closed` or in the close of the role. No chain may contain its hops
	 * any more. The host frees the remaining clients when it closes the role.
	 */
	void (*client_free)(struct gantry_client *client);

	/* -- server side -- */
	/*
	 * Start to listen, as `listen` of the configuration states. Call it once.
	 *
	 * ops       valid until close
	 * role      the pointer that open returned
	 * returns   0
	 *           -errno: failed; the host has logged the cause
	 */
	int (*serve)(const struct gantry_role_host *rh, const struct gantry_server_ops *ops,
		     void *role);
	/*
	 * Finish a step that returned -EINPROGRESS. The call has no effect if no step is
	 * unfinished.
	 *
	 * rc  0, or -errno to reject the step
	 */
	void (*session_continue)(struct gantry_session *session, int rc);
	/*
	 * Set the reason for which a step is rejected. The text is sent to the client.
	 *
	 * fmt  text and arguments as for printf(3)
	 */
	void (*session_refuse)(struct gantry_session *session, const char *fmt, ...)
#ifdef __GNUC__
		__attribute__((format(printf, 2, 3)))
#endif
		;
	/*
	 * End the session; `closed` follows.
	 *
	 * reason  -errno
	 */
	void (*session_end)(struct gantry_session *session, int reason);
	/*
	 * Set the role's pointer for a session.
	 *
	 * user  the pointer
	 */
	void (*session_set)(struct gantry_session *session, void *user);
	/* Get the role's pointer for a session. Returns the pointer; NULL: none was set. */
	void *(*session_user)(struct gantry_session *session);
	/* Get the id of a session. Returns the id. */
	uint64_t (*session_id)(struct gantry_session *session);

	/* -- target: the backend of the configuration, which the host opens before the role -- */
	/*
	 * Get the properties of the volume.
	 *
	 * volume  out: the properties; all zero if the role has no backend
	 */
	void (*backend_volume)(const struct gantry_role_host *rh,
			       struct gantry_volume_info *volume);
	/*
	 * Get the terminal hop for chains of this lane.
	 *
	 * terminal  out: the hop
	 * returns   0
	 *           -EINVAL: the role has no backend
	 */
	int (*backend_hop)(const struct gantry_role_host *rh, struct gantry_lane *lane,
			   struct gantry_hop *terminal);

	/*
	 * Report that the role has finished.
	 *
	 * status  0: its work is done; 1: it has failed
	 */
	void (*finished)(const struct gantry_role_host *rh, int status);

	/*
	 * Create a fan-out: one parent descriptor has several children, which go to several
	 * terminals. The status of the parent is the first error of a child. But a status after
	 * which the buffer is in use takes precedence over other errors. A parent that one piece
	 * covers has no child: its terminal gets the parent itself, with the offset of the piece.
	 *
	 * terminals    n_terminals hops; copied
	 * n_terminals  number of terminals
	 * n_parents    the slots of the parents are 0 to n_parents - 1
	 * max_pieces   children of one parent at a time
	 * fanout_p     out: the fan-out; the caller destroys it
	 * returns      0
	 *              -EINVAL: n_parents times max_pieces is not in 1 to 65535
	 *              -ENOMEM: out of memory
	 */
	int (*fanout_create)(struct gantry_lane *lane, const struct gantry_hop *terminals,
			     uint32_t n_terminals, uint32_t n_parents, uint32_t max_pieces,
			     struct gantry_fanout **fanout_p);
	/*
	 * Destroy a fan-out. No descriptor may be in flight.
	 *
	 * fanout  of fanout_create
	 */
	void (*fanout_destroy)(struct gantry_fanout *fanout);
	/*
	 * Submit the pieces of a parent. Lane's thread.
	 *
	 * fanout    of fanout_create
	 * parent    the descriptor
	 * pieces    n pieces; copied before the first one is submitted. `skip` of a piece that
	 *           covers the parent is 0
	 * n         number of pieces
	 * returns   0: the parent completes when all its pieces have completed
	 *           -E2BIG: no piece, or more than max_pieces
	 */
	int (*fanout_submit)(struct gantry_fanout *fanout, struct gantry_io *parent,
			     const struct gantry_piece *pieces, uint32_t n);

	/* Run fn(arg) in a later turn of the control thread. Any thread; not for the IO path. */
	void (*post)(const struct gantry_role_host *rh, void (*fn)(void *arg), void *arg);

	/*
	 * Client side, from `closed` on: get whether agents can access the exported regions. The
	 * result is 1 after an orderly end, and if the transport revokes the exports when the
	 * connection ends and no process maps them. Before `closed`: the result after client_abort.
	 *
	 * returns  1: no agent can access the regions any more, whatever the status of their IO
	 *          0: an agent might
	 */
	int (*client_regions_released)(const struct gantry_client *client);

	/*
	 * Run fn(arg) on the lane's thread, between two turns, and wait for its return. Control
	 * thread; not for the IO path.
	 */
	void (*lane_call)(struct gantry_lane *lane, void (*fn)(void *arg), void *arg);

	/*
	 * Client side: get how long the role may try to resume a lost session of this connect.
	 *
	 * connect  index of an entry of `connect`
	 * returns  nanoseconds; 0: not at all
	 *
	 * To resume, call client_free, then client_open with the same id and the next epoch, then
	 * client_use_secret with the secret of the session. The server replies when it has drained
	 * the lost session, so no IO of the lost session takes effect after IO of the new session.
	 */
	uint64_t (*connect_resume)(const struct gantry_role_host *rh, uint32_t connect);
	/* Get the id of a session, whether the role or client_open chose it. Returns the id. */
	uint64_t (*client_id)(const struct gantry_client *client);

	/*
	 * Run fn(arg) once on the control thread, `ns` nanoseconds from now.
	 *
	 * ns       nanoseconds
	 * returns  0
	 *          -ENOMEM: out of memory
	 */
	int (*after)(const struct gantry_role_host *rh, uint64_t ns, void (*fn)(void *arg),
		     void *arg);
	/*
	 * Cancel all pending calls of `after` with this arg.
	 *
	 * arg  argument of the calls
	 */
	void (*after_cancel)(const struct gantry_role_host *rh, const void *arg);

	/*
	 * Client side, between `started` and `closed`: get a time T (gantry_lane.now_ns clock). No
	 * agent can access the buffer of an IO that completed on lane `index` of the session before
	 * T, whatever its status: all IOs that timed out before T have been answered since.
	 *
	 * returns  T, in nanoseconds
	 *          UINT64_MAX: no agent can access the buffer of any completed IO
	 * thread   lane's thread
	 */
	uint64_t (*client_settled_ns)(const struct gantry_client *client, uint32_t index);

	/*
	 * Client side, between `ready` and `closed`: get the largest region that the peer is known
	 * to accept. client_export of a larger one fails.
	 *
	 * returns  bytes
	 */
	uint64_t (*client_export_limit)(const struct gantry_client *client);

	/*
	 * Client side: let the server reject the session unless it serves this volume. Call it
	 * right after client_open.
	 *
	 * The server compares the uuid and, for a GANTRY_VOLUME_VOLATILE volume, the verifier. It
	 * does not compare a value that is 0. If one differs, `closed` reports -ESTALE and a text
	 * with both values.
	 *
	 * volume   only uuid and verifier matter
	 * thread   control thread
	 * ownership  the host copies *volume
	 */
	void (*client_expect)(struct gantry_client *client,
			      const struct gantry_volume_info *volume);
	/*
	 * Client side, between `started` and `closed`: count the writes that timed out and are not
	 * answered yet. Each of them can still change the volume.
	 *
	 * index    number of the lane, from 0
	 * returns  the count; UINT32_MAX: the connection of the lane is broken, so no answers will
	 *          come
	 * thread   lane's thread
	 */
	uint32_t (*client_late_writes)(const struct gantry_client *client, uint32_t index);

	/*
	 * Move a region of region_create to private pages. Address and content stay the same. The
	 * importers keep the old pages. No session may use the region any more. Other threads can
	 * write to the region during the call, but in a region of huge pages such a write can be
	 * lost. Takes up to 1 s for each GB.
	 *
	 * returns  0
	 *          -ENOMEM: no memory for the copy; importers can still access some of the pages of
	 *          the region. A later call continues
	 * thread   control thread
	 * ownership  the caller still owns the region
	 */
	int (*region_withdraw)(const struct gantry_role_host *rh, struct gantry_region *region);

	/*
	 * Client side: present a secret to the server. Call it right after client_open.
	 *
	 * If the server already has a session with this id, it accepts only the secret of that
	 * session; otherwise `closed` reports -EACCES. If the server has no such session, this
	 * secret becomes that of the new session. Without this call the server creates a secret.
	 *
	 * secret   of client_secret or session_secret
	 * thread   control thread
	 * ownership  the host copies it
	 */
	void (*client_use_secret)(struct gantry_client *client,
				  const uint8_t secret[GANTRY_SECRET_BYTES]);
	/*
	 * Client side, from `ready` on: copy the secret of the session. A peer that has it can take
	 * over the session: keep it out of logs and reports.
	 *
	 * secret   out: the secret
	 * thread   control thread
	 */
	void (*client_secret)(const struct gantry_client *client,
			      uint8_t secret[GANTRY_SECRET_BYTES]);
	/*
	 * Server side, from `hello` to `closed`: copy the secret of the session. A relay presents
	 * it to its own servers, so that a client can resume its session through another relay.
	 *
	 * secret   out: the secret
	 * thread   control thread
	 */
	void (*session_secret)(const struct gantry_session *session,
			       uint8_t secret[GANTRY_SECRET_BYTES]);
	/*
	 * Client side: end the export of a region, while other regions stay in use. Call it when
	 * client_export is permitted.
	 *
	 * IO in flight that uses the region completes with its own status, or with GANTRY_S_ACCESS
	 * if the server has taken the request before that IO. Later IO that names the handle fails
	 * with GANTRY_S_ACCESS.
	 *
	 * handle   of client_export
	 * returns  0: `unexported` follows, unless the session ends before
	 *          -EBUSY: a request is in flight, or the state does not permit it
	 *          -ENOTCONN: the session is lost; `closed` follows with the reason
	 *          -ENOTSUP: the server does not support it
	 *          -ENOENT: no region has this handle, or its export is ending
	 * thread   control thread
	 * ownership  the caller still owns the region. It must stay valid until `unexported` or
	 *            `closed`
	 */
	int (*client_unexport)(struct gantry_client *client, uint32_t handle);
	/*
	 * Server side, after `query`: the size of the volume of a session has changed, and no other
	 * property. The host rejects IO beyond the new end with GANTRY_S_RANGE, and reports the
	 * size to the client, if the client supports it. The host itself does this for a role with
	 * a backend.
	 *
	 * size     the new one, in bytes
	 * returns  0
	 *          -EINVAL: 0, or not a multiple of the block size
	 *          -EBUSY: a device has registered the memory of the volume
	 * thread   control thread
	 */
	int (*session_resize)(struct gantry_session *session, uint64_t size);

	/*
	 * Create a region from memory of another process: [offset, offset + bytes) of a memfd that
	 * is sealed against shrinking and growing. The host maps it. region_withdraw does not
	 * support such a region.
	 *
	 * fd        the memfd
	 * offset    bytes, a multiple of the page size
	 * bytes     size of the memory, a multiple of the page size, more than 0
	 * region_p  out: the region; the caller destroys it
	 * reason_p  out: the problem as text, a literal; "" after success
	 * returns   0
	 *           -EINVAL: offset or bytes is not a multiple of the page size, or fd is not a
	 *           regular file
	 *           -EPERM: the memfd is not sealed against shrinking and growing, or is sealed
	 *           against writing
	 *           -ERANGE: the memfd is shorter
	 *           -ENOMEM: out of memory, or the memfd has huge pages that are not reserved
	 *           another -errno of fstat(2), fstatfs(2) or mmap(2)
	 * thread    control thread
	 * ownership  after success the region owns fd, and region_destroy closes it
	 */
	int (*region_map)(const struct gantry_role_host *rh, int fd, uint64_t offset,
			  uint64_t bytes, struct gantry_region **region_p, const char **reason_p);
	/*
	 * Run fn(arg) on the control thread in each turn in which an fd is readable, hung up or in
	 * error, until fd_unwatch.
	 *
	 * fd       a socket or pipe
	 * returns  0
	 *          -EEXIST: the fd is watched already
	 *          another -errno of epoll_ctl(2)
	 * thread   control thread
	 * ownership  the caller owns fd, and must not close it before fd_unwatch
	 */
	int (*fd_watch)(const struct gantry_role_host *rh, int fd, void (*fn)(void *arg),
			void *arg);
	/*
	 * Stop watching an fd. After the return, fn does not run.
	 *
	 * fd       of fd_watch
	 * thread   control thread; fn can call it
	 */
	void (*fd_unwatch)(const struct gantry_role_host *rh, int fd);
	/* Get what the servers accept in all further exports together. Returns it, in bytes. */
	uint64_t (*client_export_quota)(const struct gantry_client *client);
};

/*
 * Upper bounds of what a role needs through one of its connects. Each bound comes with the name of
 * the option that sets it, as in the option table ("group.option"), so that messages can name it.
 * NULL: no option sets it.
 */
struct gantry_plan {
	uint32_t sessions; /* limit of sessions at a time */
	/* lanes: number of lanes of each session. depth: IOs on each lane; 0: unknown */
	uint32_t lanes, depth;
	uint32_t regions; /* regions of each session */
	uint32_t reserved;
	uint64_t region_bytes; /* bytes of all regions of a session; 0: unknown */
	/* bytes of the regions for one IO, if each of the lanes x depth IOs has a part; else 0 */
	uint64_t io_bytes;
	const char *sessions_option, *lanes_option, *depth_option, *regions_option;
	const char *bytes_option; /* sets io_bytes or, if that is 0, region_bytes */
};

/*
 * The functions of a role.
 *
 * role    what open stored in *role_p
 * thread  control thread
 * ownership  arguments are valid during the call, unless stated otherwise
 */
struct gantry_role_ops {
	/*
	 * Create the role from its options.
	 *
	 * rh         services of the host for roles; valid until close
	 * conf       the options; valid until close
	 * role_p     out: the object of the role, with which the host calls the other functions
	 * returns    0
	 *            -errno: failed; the role has logged the cause
	 * ownership  the role owns *role_p until close
	 * NULL       not permitted
	 */
	int (*open)(const struct gantry_role_host *rh, const void *conf, void **role_p);
	/*
	 * Start to serve, or open clients.
	 *
	 * returns  0
	 *          -errno: failed; the role has logged the cause
	 * NULL     not permitted
	 */
	int (*start)(void *role);
	/*
	 * Start to end the role, which calls finished() when it has ended. Idempotent.
	 *
	 * NULL  the host ends the sessions of the role
	 */
	void (*stop)(void *role);
	/*
	 * Free the role: after finished(), after a start that failed, or without a start.
	 *
	 * NULL  nothing
	 */
	void (*close)(void *role);
	/*
	 * Write values to the report, while the lanes run.
	 *
	 * w     an object of the report, which is open
	 * NULL  no values
	 */
	void (*report)(void *role, struct gantry_writer *w);
	/* GANTRY_ROLE_*: sections of the configuration that the role needs */
	uint32_t flags;
};

#define GANTRY_ROLE_LISTENS 0x1u  /* needs `listen` */
#define GANTRY_ROLE_CONNECTS 0x2u /* needs `connect` */
#define GANTRY_ROLE_STORES 0x4u   /* needs `backend` */
/* the role finishes without a stop; the process ends when all such roles have finished */
#define GANTRY_ROLE_WORKS 0x8u
#define GANTRY_ROLE_ONE_VOLUME 0x10u /* all entries of `connect` are paths to one volume */
/*
 * the role serves a disk by the vhost-user protocol on the Unix socket that its option `socket`
 * names, with a queue for each lane: gantry vm prints the options of QEMU for it
 */
#define GANTRY_ROLE_VHOST_DISK 0x20u

#ifdef __cplusplus
}
#endif

#endif
