/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session_priv.h - the server end of a session, shared by session_server.c (accept, frames, end),
 * admit.c (quotas of a peer), steps.c (the requests), supersede.c (a session that is opened again)
 * and start_order.c (what START waits for)
 */
#ifndef GN_SESSION_SESSION_PRIV_H
#define GN_SESSION_SESSION_PRIV_H

#include "session/channel.h"
#include "session/role_priv.h"
#include "session/secret.h"
#include "transport/responder.h"

struct gn_session_lane {
	struct gantry_session *session;
	struct gantry_hop terminal;
	void *consumer, *producer, *rma;
	/* bounce buffers, registered on the connection; NULL if `rma` is NULL */
	struct gantry_region *move_memory;
	uint32_t consumer_id, peer_consumer_id;
	struct gn_responder *resp;
	/* -errno: why the lane is broken; the lane writes it before it posts broken_post */
	int broken;
	struct gn_post broken_post, idle_post, drained_post;
};

/* The phases of a session, in order. `state` is the state of the protocol. */
enum gn_session_phase {
	GN_SESSION_OPEN,    /* takes requests as `state` permits them */
	GN_SESSION_ENDING,  /* the responders complete the IOs in flight */
	GN_SESSION_CLOSING, /* the role handles the event `closed` */
	GN_SESSION_CLOSED   /* the role is done, and destroy() is posted */
};

/* What the rows of `listen.allow` permit to a session. */
struct gn_rights {
	uint64_t lanes, sessions, region_bytes;
	bool read_only;
};

struct gantry_session {
	struct gn_role *role;
	const struct gn_endpoint *ep;
	LIST_ENTRY(gantry_session) link; /* in server.sessions of the role */
	struct gn_channel ch;
	struct gn_timer deadline; /* deadline of the next request */
	struct gn_post last;      /* runs teardown(), then destroy(), in session_server.c */
	enum gn_session_phase phase;
	enum gn_state state;
	uint64_t state_ns; /* when the session reached `state` */
	struct gantry_peer peer;
	/* from HELLO on: whose session it is; "": a user, or a peer that is not authenticated */
	char identity[GN_IDENTITY_MAX + 1];
	char client[GN_IDENTITY_MAX + 1]; /* that the peer has stated in HELLO */
	struct gn_rights rights;          /* from HELLO on */
	struct gn_peer *account;          /* quotas of the peer, shared by its sessions */
	struct gn_amounts held;           /* amounts that this session uses of the quotas */
	struct gantry_session_attr attr;
	uint64_t features;         /* features of both ends: GN_FEATURE_* */
	bool takes_lists;          /* backend and stages accept descriptors with GANTRY_IO_LIST */
	uint8_t expected_uuid[16]; /* uuid of struct gn_hello */
	uint64_t expected_verifier;
	bool admitted; /* the HELLO was accepted: attr and secret are valid */
	uint8_t secret[GANTRY_SECRET_BYTES];

	unsigned pending; /* type of the request in progress; 0: none */
	uint32_t pending_id;
	enum gn_state pending_next;
	union {
		struct gn_hello_answer hello;
		struct gantry_volume_info volume;
		struct gn_queues queues;
	} answer;
	size_t answer_len;
	char refusal[GN_FRAME_TEXT];

	struct gn_io_rules rules;                  /* with the volume that the client sees */
	struct gantry_volume_info terminal_volume; /* what the stages make `rules.volume` of */
	bool volume_changed; /* the size in `rules` is to be reported to the client */
	uint64_t region_bytes;
	/*
	 * The volume, if it is memory that is registered on the connection. addr NULL: the volume
	 * is not registered.
	 */
	struct gantry_region store;
	struct gantry_region *importing;
	struct gantry_region *unexporting; /* region of the request UNEXPORT in progress */
	struct gn_session_lane *lanes;
	uint32_t n_lanes;           /* number of lanes with a consumer */
	uint32_t n_busy;            /* responders that are not idle yet */
	uint32_t n_draining;        /* responders with IO in flight that uses `unexporting` */
	struct gn_io_counts counts; /* those of responders that are destroyed */
	/* the part of the counts that the counters of the role contain */
	struct {
		uint64_t done, failed, list_bounces;
	} in_role;

	void *user;                /* pointer of the role, from session_set */
	int waits_for_predecessor; /* HELLO waits for an older session of the same id to end */
	int hello_delivered; /* event hello of the role was called, so event closed must follow */
	/* The peer reached a quota: the session sends END with the reason and takes no requests. */
	int turned_away;
	int refused; /* the refusal, or the error of the transport, was logged */
	int reason;
	uint64_t ended_ns; /* when the session began to end */

	struct { /* state of start_order.c */
		bool waits;
		/*
		 * asked_ns: time at which START arrived. until_ns: time at which the server rejects
		 * START if it still waits
		 */
		uint64_t asked_ns, until_ns;
		uint64_t mark; /* result of `quiesce` of the backend */
		uint32_t round;
		struct gn_timer timer;
	} start;
};

/*
 * First half of a request. Returns 0; -EINPROGRESS: gn_session_continue() follows; another -errno:
 * reject the request with it.
 */
int gn_step_begin(struct gantry_session *s, unsigned type, const void *payload);
/* Second half, after the role has accepted the request. Returns as gn_step_begin(). */
int gn_step_finish(struct gantry_session *s, unsigned type);

/*
 * Admit s, whose peer presented this secret: end the sessions of its id that have a lower epoch. If
 * no other session has this id, s gets this secret, or a new secret if the peer sent none.
 *
 * Returns 0: there is no other session of this id
 * -EINPROGRESS  gn_step_hello() follows when the other sessions have ended
 * -EACCES       the secret is wrong, or another session of this id has this epoch or a higher one,
 *               or belongs to another user; no session has changed
 * -EAGAIN       no random secret is available
 */
int gn_session_supersede(struct gantry_session *s, uint32_t epoch,
			 const uint8_t secret[GANTRY_SECRET_BYTES]);
/* `gone` has left the list of sessions: continue the HELLO that waited for it, if any. */
void gn_session_resume_waiting(const struct gantry_session *gone);
/* Process the last part of HELLO: call `hello` of the role. Returns as gn_step_begin(). */
int gn_step_hello(struct gantry_session *s);

/* -- admit.c -- */
/*
 * Find or create the account of the peer. Returns 0; -ENOMEM; -EACCES: the peer has no permission
 * to connect, which was logged.
 */
int gn_admit_peer(struct gantry_session *s);
/*
 * Count a new connection as half-open. Returns 0, or -EBUSY: a quota is reached, and s->refusal has
 * the reason.
 */
int gn_admit_half_open(struct gantry_session *s);
/* Count the half-open connection as a session. Returns as gn_admit_half_open(). */
int gn_admit_session(struct gantry_session *s);
/* Release the quotas of this session, which ends because another session replaces it. */
void gn_admit_yield(struct gantry_session *s);
/*
 * Call before memory of this quota is allocated for a session. Returns 0; -EBUSY: the quota is
 * reached now; -EACCES: the request exceeds the quota of the peer in any case.
 */
int gn_admit_memory(struct gantry_session *s, enum gn_quota quota, uint64_t bytes);
/* Undo gn_admit_memory(), after the memory was released. */
void gn_admit_return(struct gantry_session *s, enum gn_quota quota, uint64_t bytes);
/* Release the memory quotas of a session, which has released the memory. */
void gn_admit_memory_released(struct gantry_session *s);
/* Release all quotas of a connection that has ended, and close the account. */
void gn_admit_release(struct gantry_session *s);

/* -- rights.c -- */
/* Returns true if the peer must prove an identity, and has not. */
bool gn_rights_unproved(const struct gantry_session *s);
/* Returns true if the user of the peer may connect; also true if the transport reports no users. */
bool gn_rights_user(const struct gantry_session *s);
/*
 * Process HELLO: set identity and rights of the session.
 *
 * client   identity that the peer states for its client; "": none
 * lanes    that the peer requests
 * Returns 0, or with a reason in s->refusal: -EACCES: no row of listen.allow; -EINVAL: malformed,
 * or more lanes than the row permits; -EBUSY: the peer has as many sessions as its row permits
 */
int gn_rights_hello(struct gantry_session *s, const char client[GN_IDENTITY_MAX + 1],
		    uint32_t lanes);
/* Returns true if both sessions belong to the same identity or user. */
bool gn_rights_same_peer(const struct gantry_session *s, const struct gantry_session *t);

/* -- start_order.c -- */
/*
 * Process START: call event start of the role when no write of an ended session can reach the
 * volume any more. Returns the result of the event; -EINPROGRESS: gn_session_continue() follows;
 * -EBUSY or another -errno: the session is rejected.
 */
int gn_start_await(struct gantry_session *s);
/* Stop waiting to start the session. */
void gn_start_forget(struct gantry_session *s);
/*
 * A session has ended, or a peer has answered a PING. Check again whether the waiting sessions can
 * start.
 */
void gn_start_check_waiting(struct gn_role *role);

/* -- role_held.c -- */
/* As gn_role_log_held(), but only the IOs of one session. It has responders. */
void gn_session_log_held(const struct gantry_session *s, enum gn_log_level level);

/* -- volume_change.c -- */
/*
 * The session runs from now on: report a change of the volume since QUERY to the client, and watch
 * the volume of the backend.
 */
void gn_session_watch_volume(struct gantry_session *s);

/* -- the end of a session -- */
/* Quiesce all responders, then call gn_session_idle(): immediately if there are no responders. */
void gn_session_quiesce(struct gantry_session *s);
/* All responders are idle: continue with STOP, or with the end. */
void gn_session_idle(struct gantry_session *s);
/* Release queues and regions, after the responders are destroyed. */
void gn_session_release(struct gantry_session *s);

#endif
