/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * channel.h - what both ends of a session do with their connection: send frames, keep a heartbeat.
 *
 * An end asks for a sign of life when it has heard nothing for a heartbeat and a half, and then
 * with every heartbeat; question and answer are a sign of life for both. The end that connected
 * asks first: the other one waits half a heartbeat longer, and so does not ask at all.
 */
#ifndef GN_SESSION_CHANNEL_H
#define GN_SESSION_CHANNEL_H

#include "session/frame.h"
#include "transport/device.h"

#include <stdbool.h>

struct gn_channel {
	struct gn_device *device;
	void *conn; /* NULL: none */
	uint64_t session;
	uint64_t heartbeat_ns;
	uint64_t patience_ns; /* so long may the peer be silent before it is asked */
	uint64_t heard_ns;    /* when the peer was last heard */
	uint32_t ask_id;      /* of the last PING of gn_channel_ask() */
	uint64_t asked_ns;    /* when that PING was sent; 0: it is answered */
	uint64_t answered_ns; /* when the last answered PING of gn_channel_ask() was sent */
	struct gn_timer beat;
	/* Nothing was heard for four heartbeats. */
	void (*silent)(void *arg);
	void *arg;
};

/* GN_FEATURE_* that an end of a session over this device has. */
uint64_t gn_features_over(const struct gn_device *device);

/* connected: this end, not the peer. */
void gn_channel_init(struct gn_channel *ch, struct gn_device *device, uint64_t heartbeat_ns,
		     bool connected, void (*silent)(void *arg), void *arg);
/* Start the heartbeat. */
void gn_channel_start(struct gn_channel *ch);
/* Stop it, and end the connection. Idempotent. */
void gn_channel_stop(struct gn_channel *ch);
/* Note that the peer was heard. */
void gn_channel_heard(struct gn_channel *ch);
/*
 * Process a received PING with this id. Answers a request, because the heartbeat of the peer may be
 * shorter than ours. Returns true if the PING is the answer to gn_channel_ask().
 */
bool gn_channel_take_ping(struct gn_channel *ch, uint32_t id);
/*
 * Send a PING to the peer now, unless an earlier one is not answered yet. Without an answer within
 * four heartbeats the peer counts as silent.
 */
void gn_channel_ask(struct gn_channel *ch);
/* 0 or -errno; an error of the connection comes as its `closed` event as well. */
int gn_channel_send(struct gn_channel *ch, unsigned type, uint32_t id,
		    const struct gn_verdict *verdict, const void *payload, size_t payload_len);

#endif
