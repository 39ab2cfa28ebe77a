/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sender.h - sends descriptors: over a producer, or where the peer is on this thread, straight to
 * whoever takes them.
 */
#ifndef GN_TRANSPORT_SENDER_H
#define GN_TRANSPORT_SENDER_H

#include <gantry/io.h>
#include <gantry/transport.h>

#include <errno.h>
#include <stdbool.h>

struct gn_sender {
	const struct gantry_transport_ops *ops;
	void *producer;
	const struct gantry_inline_handler *direct; /* of the producer */
	bool dirty;                                 /* sent without a doorbell */
	struct gantry_send send;                    /* filled but for the descriptor */
};

static inline void gn_sender_init(struct gn_sender *s, const struct gantry_transport_ops *ops,
				  void *producer)
{
	*s = (struct gn_sender){
		.ops = ops,
		.producer = producer,
		.direct = ops->producer_inline_handler(producer),
		.send.imm_len = GANTRY_IO_WIRE_BYTES,
	};
}

static inline int gn_sender_refuse(void *arg, const void *imm, uint32_t imm_len)
{
	(void)arg;
	(void)imm;
	(void)imm_len;
	return -ENOTCONN;
}

/* From now on, and before it is set up: it refuses what it is to send with -ENOTCONN. */
static inline void gn_sender_stop(struct gn_sender *s)
{
	static const struct gantry_inline_handler nobody = {.take = gn_sender_refuse};

	s->producer = NULL;
	s->direct = &nobody;
	s->dirty = false;
}

/* Whoever it sends to is on this thread, and takes what is sent at once. */
static inline bool gn_sender_is_inline(const struct gn_sender *s)
{
	return s->direct->take != NULL;
}

/*
 * Without a doorbell. What `send` of the producer returns. Where it is direct, the descriptor has
 * been read before anybody else is called, and who is called may send here again.
 */
static inline int gn_sender_send(struct gn_sender *s, const struct gantry_io *io)
{
	const struct gantry_inline_handler *direct = s->direct;

	if (direct->take)
		return direct->take(direct->arg, io, GANTRY_IO_WIRE_BYTES);
	s->dirty = true;
	s->send.imm = io;
	return s->ops->send(s->producer, &s->send, GANTRY_SEND_MORE);
}

/* Ring the doorbell, where one is owed. */
static inline void gn_sender_flush(struct gn_sender *s)
{
	if (!s->dirty)
		return;
	s->dirty = false;
	s->ops->flush(s->producer);
}

#endif
