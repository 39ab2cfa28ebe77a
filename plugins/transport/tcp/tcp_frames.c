/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_frames.c - what each frame of the peer does. Each function returns NULL, or what the peer did
 * wrong. The caller holds the lock of the lane.
 */
#include <errno.h>
#include <string.h>

#include "tcp.h"

void tcp_body_expect(struct tcp_link *link, uint8_t kind, uint16_t op, uint32_t length,
		     uint8_t *into, const struct tcp_export *target)
{
	link->body.into = into;
	link->body.rest = link->body.length = length;
	link->body.kind = kind;
	link->body.op = op;
	link->body.target = target;
	if (length == 0)
		tcp_body_done(link);
}

static const char *on_open(struct tcp_link *link, const struct tcp_frame *frame)
{
	int rc = tcp_on_open(link, frame);

	if (rc == -ENOMEM)
		tcp_conn_fail(link->lane->conn, rc);
	return rc == -EPROTO ? "opens an invalid producer" : NULL;
}

static const char *on_shut(struct tcp_link *link, const struct tcp_frame *frame)
{
	if (frame->queue >= TCP_PRODUCERS)
		return "ends an invalid producer";
	tcp_peer_producer_end(link, frame->queue);
	return NULL;
}

static const char *on_credit(struct tcp_link *link, const struct tcp_frame *frame)
{
	struct tcp_producer *p = frame->queue < TCP_PRODUCERS ? link->producers[frame->queue]
							      : NULL;

	/* the producer can have ended since then, and another one can have its number */
	if (p && p->serial == frame->credit.serial &&
	    (int32_t)(frame->credit.allowed - p->allowed) > 0) {
		p->allowed = frame->credit.allowed;
		p->asked = false;
	}
	return NULL;
}

static const char *on_message(struct tcp_link *link, const struct tcp_frame *frame)
{
	struct tcp_peer_producer *s = frame->queue < TCP_PRODUCERS ? link->sources[frame->queue]
								   : NULL;

	if (frame->queue >= TCP_PRODUCERS || frame->imm_len > GANTRY_IMM_MAX)
		return "sends an invalid message";
	if (!s) { /* its consumer was destroyed */
		link->body.arrival = NULL;
		if (frame->length)
			tcp_body_expect(link, TCP_MESSAGE, 0, frame->length, NULL, NULL);
		return NULL;
	}
	if (frame->length && !link->lane->consumer->max_data)
		return "sends an invalid message";
	if (s->head == s->sent)
		return "exceeds its credit";
	if (link->lane->consumer->max_data)
		return tcp_data_arrived(link, s, frame);
	s->ring[s->head++ & s->mask] = *frame;
	return NULL;
}

/* Find the memory of an access. Returns NULL, or what is wrong. */
static const char *target(struct tcp_link *link, const struct tcp_frame *frame, uint32_t right,
			  const struct tcp_export **e_p)
{
	struct tcp_conn *conn = link->lane->conn;

	if (__atomic_load_n(&conn->over, __ATOMIC_ACQUIRE)) {
		/* messages that follow a rejected write must not arrive */
		tcp_link_close(link);
		return NULL;
	}
	*e_p = tcp_export_find(conn, &frame->access, frame->length, right);
	if (!*e_p || ((*e_p)->relay && !link->relay))
		return "accesses memory that this end does not export";
	if (link->n_unanswered++ == link->n_ops)
		return "exceeds its limit of accesses";
	if ((*e_p)->mapped) /* memory of a third party: the data passes through this process */
		gantry_count(link->lane->payload, frame->length);
	return NULL;
}

static const char *on_read(struct tcp_link *link, const struct tcp_frame *frame)
{
	const struct tcp_export *e = NULL;
	const char *why = target(link, frame, GANTRY_REMOTE_READ, &e);

	if (!e || why)
		return why;
	if (e->relay) {
		tcp_relay_start(link, frame, e);
		return NULL;
	}
	tcp_link_answer(link, &(struct tcp_answer){.data = e->at + frame->access.offset,
						   .left = frame->length,
						   .op = frame->queue,
						   .last = true,
						   .source = e});
	return NULL;
}

static const char *on_write(struct tcp_link *link, const struct tcp_frame *frame)
{
	const struct tcp_export *e = NULL;
	const char *why = target(link, frame, GANTRY_REMOTE_WRITE, &e);

	if (!e || why)
		return why;
	if (e->relay)
		tcp_relay_start(link, frame, e);
	else
		tcp_body_expect(link, TCP_WRITE, frame->queue, frame->length,
				e->at + frame->access.offset, e);
	return NULL;
}

static const char *on_data(struct tcp_link *link, const struct tcp_frame *frame)
{
	struct tcp_op *op = frame->queue < link->n_ops ? &link->ops[frame->queue] : NULL;

	if (!op || op->kind != TCP_READ || !op->sent || frame->length > op->length - op->done ||
	    (frame->length == 0 && op->length))
		return "answers a read that does not exist";
	tcp_body_expect(link, TCP_DATA, frame->queue, frame->length,
			op->local ? op->local + op->done : NULL, NULL);
	return NULL;
}

static const char *on_ack(struct tcp_link *link, const struct tcp_frame *frame)
{
	if (frame->acks.n > TCP_ACKS)
		return "acknowledges too many writes";
	for (uint16_t i = 0; i < frame->acks.n; i++) {
		uint16_t op = frame->acks.done[i];

		if (op >= link->n_ops || link->ops[op].kind != TCP_WRITE || !link->ops[op].sent)
			return "acknowledges a write that does not exist";
		tcp_link_op_done(link, op, 0);
	}
	return NULL;
}

static const char *(*const frames[TCP_FRAMES])(struct tcp_link *link,
					       const struct tcp_frame *frame) = {
	[TCP_OPEN] = on_open,         [TCP_SHUT] = on_shut,         [TCP_CREDIT] = on_credit,
	[TCP_MESSAGE] = on_message,   [TCP_READ] = on_read,         [TCP_WRITE] = on_write,
	[TCP_DATA] = on_data,         [TCP_ACK] = on_ack,           [TCP_ASK] = tcp_on_ask,
	[TCP_RECALL] = tcp_on_recall, [TCP_RETURN] = tcp_on_return,
};

void tcp_frame_take(struct tcp_link *link, const struct tcp_frame *frame)
{
	const char *why = frame->kind < TCP_FRAMES && frames[frame->kind]
				  ? frames[frame->kind](link, frame)
				  : "sends an unknown frame";

	if (why)
		tcp_link_invalid(link, why);
}

void tcp_link_invalid(struct tcp_link *link, const char *why)
{
	if (link->peer_lane >= TCP_LANES)
		gantry_log_warn(link->lane->conn->dev->host,
				"dropping a direct link to memory that %s has passed on: a third "
				"party %s",
				link->lane->conn->peer.address, why);
	else
		tcp_conn_broken(link->lane->conn, why);
	tcp_link_close(link);
}

/* Acknowledge a write: in the last frame, if that is an ACK that can grow. */
void tcp_acknowledge(struct tcp_link *link, uint16_t op)
{
	struct tcp_frame *last = &link->frames[(link->head - 1) & link->mask];
	struct tcp_item *item;
	bool started = link->head - 1 == link->tail && link->tail_sent;

	if (link->head == link->tail || started || last->kind != TCP_ACK ||
	    last->acks.n == TCP_ACKS) {
		last = tcp_link_append(link, TCP_ACK, &item);
		last->acks.n = 0;
	}
	last->acks.done[last->acks.n++] = op;
}

void tcp_body_done(struct tcp_link *link)
{
	struct tcp_op *op = &link->ops[link->body.op];

	if (link->body.kind == TCP_WRITE && link->body.target->relay) {
		tcp_relay_filled(link);
	} else if (link->body.kind == TCP_WRITE) {
		tcp_acknowledge(link, link->body.op);
	} else if (link->body.kind == TCP_MESSAGE) {
		tcp_data_body_end(link, TCP_A_COMPLETE);
	} else {
		op->done += link->body.length;
		if (op->done == op->length)
			tcp_link_op_done(link, link->body.op, 0);
	}
}
