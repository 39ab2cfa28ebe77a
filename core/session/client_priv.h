/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client_priv.h - the client end of a session, shared by session_client.c (open, frames, end) and
 * client_steps.c (the requests and what their answers do)
 */
#ifndef GN_SESSION_CLIENT_PRIV_H
#define GN_SESSION_CLIENT_PRIV_H

#include "session/channel.h"
#include "session/session_client.h"
#include "session/role_priv.h"
#include "session/secret.h"
#include "transport/requester.h"

struct gn_client_lane {
	struct gantry_client *client;
	struct gn_requester *req;
	void *consumer, *producer;
	uint32_t consumer_id;
	/* -errno: why the lane is broken; the lane writes it before it posts broken_post */
	int broken;
	struct gn_post broken_post;
};

struct gn_client_export {
	uint32_t handle;
	uint64_t bytes;
	bool revoking; /* the transport of the peer has not confirmed its revocation */
	bool revoked;  /* it has: no agent of the peer can access the region */
};

/*
 * The phases of a client. gn_client_end() leads to ENDED from each earlier phase.
 *
 *      RETRYING <--> CONNECTING --> OPEN --> CLOSING --> RELEASING --> ENDED --> CLOSED
 *          ^------ peer busy --------'
 */
enum gn_client_phase {
	GN_CLIENT_RETRYING,   /* the timer `retry` starts the next attempt to connect */
	GN_CLIENT_CONNECTING, /* the device connects */
	GN_CLIENT_OPEN,       /* connected: requests as `state` permits them */
	GN_CLIENT_CLOSING,    /* the role closes the session: STOP and BYE are the next requests */
	GN_CLIENT_RELEASING,  /* BYE was answered: the transport revokes the regions */
	GN_CLIENT_ENDED,      /* no IO is in flight, and destroy() is posted */
	GN_CLIENT_CLOSED      /* the role got the event `closed` */
};

struct gantry_client {
	struct gn_role *role;
	const struct gn_endpoint *ep;
	LIST_ENTRY(gantry_client) link; /* in role->clients */
	struct gn_channel ch;
	struct gn_timer retry;    /* starts the next attempt to connect */
	struct gn_timer deadline; /* deadline of the answer to `pending`, or of the connection */
	struct gn_timer notice;   /* logs what the session waits for; set until it is open */
	struct gn_post last;      /* runs destroy() in session_client.c */
	uint64_t connect_until_ns;
	int failed_connect; /* -ECONNREFUSED or -EBUSY of the last attempt; 0: none has failed */
	enum gn_client_phase phase;
	enum gn_state state; /* state of the protocol, which the answers to requests advance */
	uint64_t state_ns;   /* when the client began to wait, to run or to end */
	struct gantry_session_attr attr;
	uint64_t features; /* features of both ends: GN_FEATURE_* */
	/* of all servers on the path, and what of it is in use; bytes; UINT64_MAX: unknown */
	uint64_t region_limit, exported_bytes;
	const struct gantry_client_events *events;
	void *arg;

	unsigned pending; /* type of the request in flight; 0: none */
	uint32_t pending_id;
	const struct gantry_region *exporting;
	uint32_t exporting_rights, exporting_handle;
	uint32_t unexporting; /* handle of the request UNEXPORT in flight */
	uint64_t allocated;   /* bytes of `exporting` whose pages are allocated */
	/* allocates the next part of the pages; while it is set, the region is not exported yet */
	struct gn_timer alloc;
	/* zero until HELLO is answered, unless the session is resumed */
	uint8_t secret[GANTRY_SECRET_BYTES];
	/* expected: all 0 unless the role called client_expect */
	struct gantry_volume_info volume, expected;
	struct gn_client_lane *lanes;
	uint32_t n_queues;     /* lanes with a consumer */
	struct gn_fence fence; /* fence that all lanes share */
	struct gn_client_export *exports;
	uint32_t n_exports;
	uint32_t n_revokes_pending; /* exports whose revocation the peer has not confirmed */
	/*
	 * 1: no agent of the peer can access the exported regions. 0 from the start of the queues
	 * until all exports are revoked; see client_regions_released in gantry/role.h
	 */
	int released;
	bool asks_holders; /* hold_exports was called, or is not supported */
	/* the processes that map the exported memory; NULL: the peer does not map it */
	struct gn_holders *holders;
	struct gn_timer wait; /* set while holders of an earlier client are left */
	uint64_t waits_since_ns;
	int reason;
	/* explains `reason`, or why the peer of the last attempt was busy */
	char text[GN_FRAME_TEXT + 64];
	bool is_logged; /* the transport has logged why the connection was not established */
};

/*
 * Send a request. gn_client_answered() gets the answer. Returns 0; -EBUSY: another request is in
 * flight; another -errno: the send failed, and the session has ended with this error.
 */
int gn_client_request(struct gantry_client *c, unsigned type, const void *payload, size_t len);
/* Send HELLO on the new connection. */
void gn_client_hello(struct gantry_client *c);
/* The peer accepted the request of this type. payload: has the size that the type requires. */
void gn_client_answered(struct gantry_client *c, unsigned type, const void *payload);
/*
 * Function of the timer `alloc`: allocate the next part of the region, or export it. arg: the
 * client.
 */
void gn_client_make_more(void *arg);
/* Returns the export of this handle, or NULL. */
struct gn_client_export *gn_client_find_export(struct gantry_client *c, uint32_t handle);
/* Send the next request of an orderly end. */
void gn_client_go_on_closing(struct gantry_client *c);
/*
 * Stop the requesters of all lanes: each IO in flight completes. No lane sends after the first of
 * these completions, because a write that is in flight on one lane could overwrite a newer write of
 * another lane.
 */
void gn_client_stop_requesters(struct gantry_client *c);
/* Destroy the producers and consumers of all lanes, after their requesters have stopped. */
void gn_client_drop_queues(struct gantry_client *c);

/* Send END to the server and end the session. text: reason, at most GN_FRAME_TEXT bytes. */
void gn_client_abandon(struct gantry_client *c, int reason, const char *text);

/*
 * End the session: stop the requesters, which completes each IO in flight, and post the event
 * `closed`. reason: 0, or -errno if the session is lost. A second call has no effect.
 */
void gn_client_end(struct gantry_client *c, int reason, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* -- client_memory.c -- */
/* Returns true if the end of the connection revokes all regions. */
int gn_client_disconnect_revokes(const struct gantry_client *c);
/* Call it before each export: request reports from the holders. Returns 0 or -errno. */
int gn_client_ask_holders(struct gantry_client *c);
/* The connection has ended: keep the processes that still map the regions. */
void gn_client_keep_holders(struct gantry_client *c);
/*
 * The volume is known: call `ready` when no process maps memory for an earlier client with this
 * session id. Also the function of the timer `wait`.
 */
void gn_client_become_ready(void *client);

#endif
