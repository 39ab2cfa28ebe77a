/* SPDX-License-Identifier: BSD-3-Clause */
/* sender.h - sends descriptors through a producer, and finds the local peer. */
#ifndef GN_TRANSPORT_SENDER_H
#define GN_TRANSPORT_SENDER_H

#include "transport/local_peer.h"

#include <stdbool.h>

struct gn_sender {
	const struct gantry_transport_ops *ops;
	void *producer;
	/* place where the transport keeps the local peer; *peer is NULL: use gn_sender_send() */
	struct gantry_local_peer *const *peer;
	bool dirty; /* messages were sent and not flushed */
};

static inline void gn_sender_init(struct gn_sender *s, const struct gantry_transport_ops *ops,
				  void *producer)
{
	*s = (struct gn_sender){
		.ops = ops,
		.producer = producer,
		.peer = ops->producer_local_peer(producer),
	};
}

/*
 * gn_sender_send - send the wire form of a descriptor through the producer, without a doorbell.
 * Returns what `send` of the producer returns.
 */
static inline int gn_sender_send(struct gn_sender *s, const struct gantry_io *io)
{
	s->dirty = true;
	return s->ops->send(s->producer, io, GANTRY_IO_WIRE_BYTES, GANTRY_SEND_MORE);
}

/* gn_sender_flush - ring the doorbell if messages were sent since the last flush. */
static inline void gn_sender_flush(struct gn_sender *s)
{
	if (!s->dirty)
		return;
	s->dirty = false;
	s->ops->flush(s->producer);
}

#endif
