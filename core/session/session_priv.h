/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session_priv.h - one session at its server: shared by server.c (life of sessions), admit.c (what
 * each peer may have), steps.c (what each request does), supersede.c (sessions that come again) and
 * start_order.c (what START waits for)
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
	struct gantry_region *move_memory; /* with rma: registered on the connection */
	uint32_t consumer_id, peer_consumer_id;
	struct gn_responder *port;
	int broken; /* why; written by the lane before it posts */
	struct gn_post broken_post, idle_post;
};

struct gantry_session {
	struct gn_role *role;
	const struct gn_endpoint *ep;
	struct gantry_session *next;
	struct gn_channel ch;
	struct gn_timer deadline; /* of the next request */
	struct gn_post last;      /* at the end: teardown, then destroy */
	enum gn_state state;
	struct gantry_peer peer;
	struct gn_peer *account; /* of the peer */
	struct gn_amounts held;  /* taken from it */
	struct gantry_session_attr attr;
	uint64_t features;         /* agreed: GN_FEATURE_* */
	uint8_t expected_uuid[16]; /* as in struct gn_hello */
	uint64_t expected_verifier;
	bool admitted; /* its HELLO was accepted: attr and secret are valid */
	uint8_t secret[GANTRY_SECRET_BYTES];

	unsigned pending; /* type of the request that is being worked on; 0: none */
	uint32_t pending_id;
	enum gn_state pending_next;
	union {
		struct gn_hello_answer hello;
		struct gantry_volume_info volume;
		struct gn_queues queues;
	} answer;
	size_t answer_len;
	char refusal[GN_FRAME_TEXT];

	struct gn_io_rules rules;
	uint64_t region_bytes;
	/*
	 * the volume, when it is memory that is registered on the connection; addr NULL: it is not
	 */
	struct gantry_region store;
	struct gantry_region *importing;
	struct gn_session_lane *lanes;
	uint32_t n_lanes; /* with queues */
	uint32_t n_busy;  /* ports that are not idle yet */

	void *user;                /* the role's */
	int waits_for_predecessor; /* its hello waits for an older session of the same id to end */
	int hello_delivered;       /* the role's hello was called: closed must be */
	/* a quota of its peer is reached: it sends END with the reason, and takes no requests */
	int turned_away;
	int ending;
	int tearing_down; /* the role's closed is under way */
	int reason;
	uint64_t ended_ns; /* when the session began to end */

	struct { /* start_order.c */
		bool waits;
		uint64_t asked_ns, until_ns; /* when START arrived; when the server rejects it */
		uint64_t mark;               /* of the backend's quiesce */
		uint32_t round;
		struct gn_timer timer;
	} start;
};

/* What a request does. Each returns 0, -EINPROGRESS, or the -errno to refuse it with. */
int gn_step_begin(struct gantry_session *s, unsigned type, const void *payload);
/* The second half, after the role has agreed. Returns as above. */
int gn_step_finish(struct gantry_session *s, unsigned type);

/*
 * Admit s, whose peer has presented this secret: end the sessions of its id that have a lower
 * epoch. Without such a session s takes the secret, or a new one if its peer has none.
 *
 * returns  0: there is no other session of this id
 *          -EINPROGRESS: gn_step_hello follows when they are drained and gone
 *          -EACCES: the peer does not have their secret, one of them has this epoch or a higher
 *          one, or it belongs to another user; no session has changed
 *          -EAGAIN: no secret can be made
 */
int gn_session_supersede(struct gantry_session *s, uint32_t epoch,
			 const uint8_t secret[GANTRY_SECRET_BYTES]);
/* `gone` has left the list of sessions: continue the HELLO that waited for it, if there is one. */
void gn_session_resume_waiting(const struct gantry_session *gone);
/* The last part of the step hello: ask the role. */
int gn_step_hello(struct gantry_session *s);

/* -- admit.c -- */
/* Open the account of the peer. 0, -ENOMEM, or -EACCES: the peer may not connect. Logs why. */
int gn_admit_peer(struct gantry_session *s);
/*
 * A new connection becomes half-open. 0; -EBUSY: the peer is turned away, and the refusal says why.
 */
int gn_admit_half_open(struct gantry_session *s);
/* The half-open connection becomes a session. Returns as above. */
int gn_admit_session(struct gantry_session *s);
/* Another session takes the place of this one, which ends. */
void gn_admit_yield(struct gantry_session *s);
/*
 * Call before memory of this quota is allocated for a session. As above; -EACCES: more than the
 * peer may ever have.
 */
int gn_admit_memory(struct gantry_session *s, enum gn_quota quota, uint64_t bytes);
/* Give back the memory quotas of a session, which has released the memory. */
void gn_admit_memory_released(struct gantry_session *s);
/* The connection is gone: give back all, and close the account. */
void gn_admit_gone(struct gantry_session *s);

/* -- start_order.c -- */
/*
 * Process START: call the role's start after no write of an ended session can reach the volume any
 * more. Returns its result; -EINPROGRESS: gn_session_continue follows; -EBUSY or another -errno:
 * the session is rejected.
 */
int gn_start_await(struct gantry_session *s);
/* Stop waiting to start the session. */
void gn_start_forget(struct gantry_session *s);
/*
 * A session has ended, or a peer has answered a PING: check all sessions that wait to start again.
 */
void gn_start_look(struct gn_role *role);

/* Pieces of the teardown. */
/* ends in gn_session_idle, at once when no port is there */
void gn_session_quiesce(struct gantry_session *s);
void gn_session_idle(struct gantry_session *s);
/* queues and regions; after the ports are gone */
void gn_session_release(struct gantry_session *s);

#endif
