/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * local_peer.h - a requester and a responder on the same thread call each other instead of sending.
 *
 * Each sets itself as the local peer of its consumer, and finds the other one by its producer: see
 * consumer_set_local_peer in gantry/transport.h.
 */
#ifndef GN_TRANSPORT_LOCAL_PEER_H
#define GN_TRANSPORT_LOCAL_PEER_H

#include <gantry/io.h>
#include <gantry/transport.h>

/*
 * First member of struct gn_requester and of struct gn_responder. Lane's thread.
 *
 * Both functions read the descriptor completely before they call other code, which can call back
 * into the sender.
 */
struct gantry_local_peer {
	int is_ready; /* take_request() returns 0 for the next request */
	/*
	 * Take a request. Returns 0; or -EAGAIN: the sender sends it again later. NULL in a
	 * requester.
	 */
	int (*take_request)(struct gantry_local_peer *self, const struct gantry_io *io);
	/* Take a reply. NULL in a responder. */
	void (*take_reply)(struct gantry_local_peer *self, const struct gantry_io *io);
};

#endif
