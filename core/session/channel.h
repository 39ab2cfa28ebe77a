/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * channel.h - the connection of a session, for both ends: send frames, keep a heartbeat. Control
 * thread.
 *
 * An end that has received nothing for a while sends a PING, and then one in each heartbeat
 * interval. PING and answer show both ends that the peer is alive. The end that connected sends its
 * first PING after 1.5 intervals without a frame, the other end after 2, so normally only the end
 * that connected sends requests. After 4 intervals without a frame the peer counts as lost.
 */
#ifndef GN_SESSION_CHANNEL_H
#define GN_SESSION_CHANNEL_H

#include "session/frame.h"
#include "transport/device.h"

#include <stdbool.h>

struct gn_channel {
	struct gn_device *device;
	void *conn; /* NULL: no connection */
	uint64_t session;
	uint64_t heartbeat_ns;
	uint64_t patience_ns; /* send a PING after this time without a frame */
	uint64_t heard_ns;    /* when the last frame was received */
	uint32_t ask_id;      /* id of the last PING of gn_channel_ask() */
	uint64_t asked_ns;    /* when that PING was sent; 0: it was answered */
	/* when the last PING of gn_channel_ask() that has an answer was sent */
	uint64_t answered_ns;
	struct gn_timer beat;
	/*
	 * Called when no frame, or no answer to gn_channel_ask(), has arrived for four heartbeat
	 * intervals.
	 */
	void (*silent)(void *arg);
	void *arg;
};

/* Returns the GN_FEATURE_* that this end supports over the device. */
uint64_t gn_features_over(const struct gn_device *device);

/*
 * gn_channel_init - initialise a channel without a connection. connected: this end opens the
 * connection, not the peer.
 */
void gn_channel_init(struct gn_channel *ch, struct gn_device *device, uint64_t heartbeat_ns,
		     bool connected, void (*silent)(void *arg), void *arg);
/* Start the heartbeat. */
void gn_channel_start(struct gn_channel *ch);
/* Stop the heartbeat and disconnect. A second call has no effect. */
void gn_channel_stop(struct gn_channel *ch);
/* A valid frame was received: restart the heartbeat. */
void gn_channel_received(struct gn_channel *ch, const struct gn_parsed *p);
/*
 * Process a received PING with this id. Always answers a request, because the peer can have a
 * shorter heartbeat interval and count this end as lost. Returns true if the PING is the answer to
 * gn_channel_ask().
 */
bool gn_channel_take_ping(struct gn_channel *ch, uint32_t id);
/*
 * Send a PING now, unless an earlier one has no answer yet. Without an answer within four heartbeat
 * intervals the peer counts as lost.
 */
void gn_channel_ask(struct gn_channel *ch);
/* Send a frame. Returns 0 or -errno. The event `closed` reports an error of the connection too. */
int gn_channel_send(struct gn_channel *ch, unsigned type, uint32_t id,
		    const struct gn_verdict *verdict, const void *payload, size_t payload_len);

#endif
