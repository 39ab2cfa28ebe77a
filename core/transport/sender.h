/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sender.h - sends descriptors: through a producer, or by a function call to the consumer if the
 * consumer is on the same thread.
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
	/* inline handler of the producer; take NULL: use `send` */
	const struct gantry_inline_handler *direct;
	bool dirty;              /* messages were sent and not flushed */
	struct gantry_send send; /* complete except for the descriptor */
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

static inline int gn_sender_reject(void *arg, const void *imm, uint32_t imm_len)
{
	(void)arg;
	(void)imm;
	(void)imm_len;
	return -ENOTCONN;
}

/* gn_sender_stop - let every send fail with -ENOTCONN, until gn_sender_init. */
static inline void gn_sender_stop(struct gn_sender *s)
{
	static const struct gantry_inline_handler rejecting = {.take = gn_sender_reject};

	s->producer = NULL;
	s->direct = &rejecting;
	s->dirty = false;
}

/* Returns true if the consumer is on this thread and takes each message inside the send. */
static inline bool gn_sender_is_inline(const struct gn_sender *s)
{
	return s->direct->take != NULL;
}

/*
 * gn_sender_send - send the wire form of a descriptor, without a doorbell.
 *
 * Returns what `send` of the producer or `take` of the inline handler returns. An inline handler
 * copies the descriptor before it calls other code, which can call gn_sender_send() again.
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

/* gn_sender_flush - ring the doorbell if messages were sent since the last flush. */
static inline void gn_sender_flush(struct gn_sender *s)
{
	if (!s->dirty)
		return;
	s->dirty = false;
	s->ops->flush(s->producer);
}

#endif
