/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client_priv.h - one session at the side that opened it: shared by client.c (life of sessions),
 * client_steps.c (what each request asks, and what its answer does)
 */
#ifndef GN_SESSION_CLIENT_PRIV_H
#define GN_SESSION_CLIENT_PRIV_H

#include "session/channel.h"
#include "session/client.h"
#include "session/role_priv.h"
#include "session/secret.h"
#include "transport/requester.h"

struct gn_client_lane {
	struct gantry_client *client;
	struct gn_requester *link;
	void *consumer, *producer;
	uint32_t consumer_id;
	int broken; /* why; written by the lane before it posts */
	struct gn_post broken_post;
};

struct gantry_client {
	struct gn_role *role;
	const struct gn_endpoint *ep;
	struct gantry_client *next;
	struct gn_channel ch;
	struct gn_timer retry;    /* of the connect */
	struct gn_timer deadline; /* of the answer that is due */
	struct gn_post last;      /* of its end */
	uint64_t connect_until_ns;
	enum gn_state state;
	struct gantry_session_attr attr;
	uint64_t features; /* agreed: GN_FEATURE_* */
	const struct gantry_client_events *events;
	void *arg;

	unsigned pending; /* request that is not answered; 0: none */
	uint32_t pending_id;
	const struct gantry_region *exporting;
	uint32_t exporting_rights, exporting_handle;
	uint64_t made;        /* bytes of it that the device will find made */
	struct gn_timer make; /* the next of them; set: it is not exported yet */
	/* 0 until HELLO is answered, unless the session is resumed */
	uint8_t secret[GANTRY_SECRET_BYTES];
	/* expected: all 0 unless a session is resumed */
	struct gantry_volume_info volume, expected;
	struct gn_client_lane *lanes;
	uint32_t n_queues;     /* lanes with a consumer */
	struct gn_fence fence; /* of all lanes */
	uint32_t *exports;     /* handles */
	uint32_t n_exports;
	uint32_t n_revokes_pending; /* exports that were asked back, and are not */
	int quiet;                  /* see role.h */

	int connecting, closing, lost, destroyed;
	int again; /* the peer was busy: the connection ends, and `retry` makes another one */
	int ran;   /* IO may have been submitted */
	int tearing_down; /* bye was answered */
	int reason;
	char text[GN_FRAME_TEXT + 64];
};

/*
 * Send a request; its answer comes to gn_client_answered. 0, -EBUSY, or -errno when the session is
 * lost with it.
 */
int gn_client_request(struct gantry_client *c, unsigned type, const void *payload, size_t len);
/* The connection is there: say hello. */
void gn_client_hello(struct gantry_client *c);
/* The request of this type was granted; payload of the size that the type has. */
void gn_client_answered(struct gantry_client *c, unsigned type, const void *payload);
/* Of `make`: another piece of the region, or its export. arg: the client. */
void gn_client_make_more(void *arg);
/* The next request on the way to the end. */
void gn_client_go_on_closing(struct gantry_client *c);
void gn_client_drop_queues(struct gantry_client *c);

/*
 * It is over: reason 0, or -errno. The links give back what is in flight; `closed` follows.
 * Idempotent.
 */
void gn_client_end(struct gantry_client *c, int reason, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
