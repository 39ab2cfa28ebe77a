/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sender.h - sends descriptors: over a producer, or where the peer is on this thread, straight to whoever takes them.
 */
#ifndef GN_TRANSPORT_SENDER_H
#define GN_TRANSPORT_SENDER_H

#include <gantry/io.h>
#include <gantry/transport.h>

struct gn_sender {
	const struct gantry_transport_ops *ops;
	void *producer;
	const struct gantry_direct *direct; /* of the producer */
	struct gantry_send send;            /* filled but for the descriptor */
};

static inline void gn_sender_init(struct gn_sender *s, const struct gantry_transport_ops *ops, void *producer)
{
	*s = (struct gn_sender){
		.ops = ops,
		.producer = producer,
		.direct = ops->producer_direct(producer),
		.send.imm_len = GANTRY_IO_WIRE_BYTES,
	};
}

/* Without a doorbell. What `send` of the producer returns. */
static inline int gn_sender_send(struct gn_sender *s, const struct gantry_io *io)
{
	const struct gantry_direct *direct = s->direct;

	if (direct->take != NULL)
		return direct->take(direct->arg, io, GANTRY_IO_WIRE_BYTES);
	s->send.imm = io;
	return s->ops->send(s->producer, &s->send, GANTRY_SEND_MORE);
}

#endif
