/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_data.c - messages with data, which follow the frame of their message.
 *
 * The producer sends the data out of the memory of its user. What the socket does not take at once
 * stays there if the memory is an exported region, and is copied to a slot of the producer else.
 *
 * The consumer assigns the next posted receive to a message when its frame arrives, and the link
 * receives the data into the buffer of this receive. poll_recv returns messages in the order of
 * their receives, so a message waits until the data of those before it has arrived. These come from
 * the same peer, whose connection ends if it does not make progress.
 *
 * Credit. Data of a message without a receive would have to wait in memory of this process, or on
 * the socket, where it would block the accesses behind it. So a consumer with data gives each
 * receive as credit to one producer only. A producer that is alone gets all receives at once.
 * Several producers share them on request, and a producer gives unused credit back if another one
 * needs it:
 *
 *     producer A            consumer            producer B
 *                <- CREDIT
 *                                        <- ASK                send() has no credit
 *                <- RECALL
 *     RETURN ->                                                messages of A come before it
 *                                        CREDIT ->
 *
 * A consumer without data (max_data 0) keeps messages in rings, so it gives each receive to all
 * producers, and needs none of these frames.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../common/power.h"
#include "tcp.h"

/* -- creation and destruction. Thread: control -- */

int tcp_data_consumer_init(struct tcp_consumer *c, const struct gantry_queue_attr *attr)
{
	uint32_t n = tc_power_of_two(attr->depth);

	c->prompt = (attr->flags & GANTRY_QUEUE_PROMPT) != 0;
	c->max_data = attr->max_data;
	c->mask = n - 1;
	c->recvs = calloc(n, sizeof(*c->recvs));
	if (c->max_data)
		c->arrivals = calloc(n, sizeof(*c->arrivals));
	return c->recvs && (c->arrivals || !c->max_data) ? 0 : -ENOMEM;
}

void tcp_data_consumer_fini(struct tcp_consumer *c)
{
	free(c->recvs);
	free(c->arrivals);
}

int tcp_data_producer_init(struct tcp_producer *p)
{
	uint32_t n = tc_power_of_two(p->depth);

	if (p->max_data == 0)
		return 0;
	p->mask = n - 1;
	p->slot_bytes = p->max_data < TCP_INLINE ? p->max_data : TCP_INLINE;
	p->slots = calloc(n, p->slot_bytes);
	p->cookies = calloc(n, sizeof(*p->cookies));
	return p->slots && p->cookies ? 0 : -ENOMEM;
}

void tcp_data_producer_fini(struct tcp_producer *p)
{
	free(p->slots);
	free(p->cookies);
}

/* -- the producer -- */

/* Find the export of a region that the peer can read. Returns its memory, or NULL. */
static const uint8_t *exported(const struct tcp_conn *conn, const struct gantry_send *send)
{
	for (uint32_t i = 0; i < TCP_REGIONS; i++) {
		const struct tcp_export *e = &conn->exports[i];

		/* pairs with tcp_export(); a region is forgotten after reject() */
		if (__atomic_load_n(&e->open, __ATOMIC_ACQUIRE) && e->region == send->region &&
		    (e->rights & GANTRY_REMOTE_READ) && !e->relay &&
		    gantry_range_ok(send->region_offset, send->length, e->length))
			return e->at + send->region_offset;
	}
	return NULL;
}

/* Fill the item of a message. Returns 0, -EMSGSIZE or -EINVAL. */
static int find_data(const struct tcp_producer *p, const struct gantry_send *send,
		     struct tcp_item *item)
{
	*item = (struct tcp_item){.length = send->length, .source = TCP_FROM_LENT};
	if (send->length > p->max_data)
		return -EMSGSIZE;
	if (send->region) {
		item->source = TCP_FROM_REGION;
		item->data = exported(p->link->lane->conn, send);
	} else {
		item->data = send->data;
		if (item->data && send->length > TCP_INLINE)
			return -EMSGSIZE;
	}
	return item->data ? 0 : -EINVAL;
}

/* Returns true if the producer has an unused slot, or place for a cookie. */
static bool has_place(const struct tcp_producer *p, const struct tcp_item *item)
{
	return item->source == TCP_FROM_REGION ? p->cookie_head - p->cookie_tail < p->depth
					       : p->slot_head - p->slot_tail < p->depth;
}

/* Returns 0, -EAGAIN or -ENOTCONN. */
static int prepare(struct tcp_producer *p, const struct tcp_item *item)
{
	int rc = tcp_producer_prepare(p);

	if (!rc && !has_place(p, item)) {
		tcp_lane_flush(p->link->lane); /* only what is sent gives a place back */
		if (!has_place(p, item))
			rc = -EAGAIN;
	}
	return rc;
}

static void copy_to_slot(struct tcp_producer *p, struct tcp_item *item)
{
	uint8_t *slot = p->slots + (size_t)(p->slot_head++ & p->mask) * p->slot_bytes;

	memcpy(slot, item->data, item->length);
	item->data = slot;
	item->source = TCP_FROM_SLOT;
}

static void put(struct tcp_producer *p, const struct gantry_send *send, const struct tcp_item *what,
		uint32_t flags)
{
	struct tcp_link *link = p->link;
	uint32_t at = link->head;
	struct tcp_item *item;
	struct tcp_frame *frame = tcp_link_append(link, TCP_MESSAGE, &item);

	frame->queue = p->queue;
	frame->length = send->length;
	frame->imm_len = (uint8_t)send->imm_len;
	if (send->imm_len)
		memcpy(frame->imm, send->imm, send->imm_len);
	*item = *what;
	p->sent++;
	if (item->source == TCP_FROM_REGION)
		p->cookies[p->cookie_head++ & p->mask] = send->cookie;
	if (!(flags & GANTRY_SEND_MORE))
		tcp_lane_flush(link->lane);
	if (what->source == TCP_FROM_LENT && (int32_t)(at - link->tail) >= 0)
		copy_to_slot(p, item);
}

static int send_data(void *arg, const struct gantry_send *send, uint32_t flags)
{
	struct tcp_producer *p = arg;
	struct tcp_item item;
	int rc;

	if (send->length == 0)
		return tcp_send(p, send->imm, send->imm_len, flags);
	if (send->imm_len > GANTRY_IMM_MAX)
		return -EINVAL;
	pthread_mutex_lock(&p->link->lane->lock);
	rc = tcp_producer_status(p);
	if (!rc)
		rc = find_data(p, send, &item);
	if (!rc)
		rc = prepare(p, &item);
	if (!rc)
		put(p, send, &item, flags);
	pthread_mutex_unlock(&p->link->lane->lock);
	return rc;
}

static int poll_send(void *arg, uint64_t *cookies, uint32_t max)
{
	struct tcp_producer *p = arg;
	struct tcp_lane *lane = p->link->lane;
	uint32_t n = 0;

	if (p->cookie_head == p->cookie_tail)
		return 0;
	pthread_mutex_lock(&lane->lock);
	if (p->cookie_done == p->cookie_tail) {
		tcp_lane_flush(lane);
		tcp_lane_poll(lane);
	}
	for (; n < max && p->cookie_tail != p->cookie_done; n++)
		cookies[n] = p->cookies[p->cookie_tail++ & p->mask];
	pthread_mutex_unlock(&lane->lock);
	return (int)n;
}

void tcp_data_sent(struct tcp_link *link, const struct tcp_frame *frame,
		   const struct tcp_item *item)
{
	struct tcp_producer *p = link->producers[frame->queue];

	if (!p)
		return;
	if (frame->kind == TCP_RETURN)
		p->returning = false;
	else if (item->source == TCP_FROM_SLOT)
		p->slot_tail++;
	else if (item->source == TCP_FROM_REGION)
		p->cookie_done++;
}

void tcp_data_ask(struct tcp_producer *p)
{
	struct tcp_link *link = p->link;
	struct tcp_item *item;

	if (!p->must_ask || p->asked || !p->opened || p->sent != p->allowed ||
	    !tcp_link_has_spare(link))
		return;
	tcp_link_append(link, TCP_ASK, &item)->queue = p->queue;
	p->asked = true;
}

const char *tcp_on_recall(struct tcp_link *link, const struct tcp_frame *frame)
{
	struct tcp_producer *p = frame->queue < TCP_PRODUCERS ? link->producers[frame->queue]
							      : NULL;
	struct tcp_item *item;

	if (!p || p->serial != frame->credit.serial)
		return NULL;
	/* a RETURN that waits has the entry that is reserved for it */
	if (p->returning || !p->opened)
		return "recalls credit that is being returned";
	p->allowed = p->sent;
	p->asked = false;
	p->returning = true;
	tcp_link_append(link, TCP_RETURN, &item)->queue = p->queue;
	link->urgent = true;
	return NULL;
}

/* -- the consumer -- */

static int post_recv(void *arg, const struct gantry_recv *recvs, uint32_t n)
{
	struct tcp_consumer *c = arg;

	if (n > c->depth - (c->n_posted - c->n_used))
		return -ENOSPC;
	for (uint32_t i = 0; i < n; i++)
		c->recvs[(c->n_posted + i) & c->mask] = recvs[i];
	c->has_recvs = true;
	return tcp_post_recv(c, n);
}

const char *tcp_data_arrived(struct tcp_link *link, struct tcp_peer_producer *s,
			     const struct tcp_frame *frame)
{
	struct tcp_consumer *c = link->lane->consumer;
	const struct gantry_recv *recv = &c->recvs[c->n_arrived & c->mask];
	struct tcp_arrival *a = &c->arrivals[c->n_arrived & c->mask];
	bool fits = recv->buf && frame->length <= recv->length;

	if (frame->length > c->max_data)
		return "sends an invalid message";
	c->n_arrived++;
	c->n_granted--;
	s->tail = ++s->head;
	*a = (struct tcp_arrival){.frame = *frame, .state = TCP_A_COMPLETE};
	if (frame->length == 0)
		return NULL;
	a->state = TCP_A_INCOMPLETE;
	if (!fits)
		a->status = -EMSGSIZE;
	tcp_body_expect(link, TCP_MESSAGE, 0, frame->length, fits ? recv->buf : NULL, NULL);
	link->body.arrival = a;
	return NULL;
}

void tcp_data_body_end(struct tcp_link *link, enum tcp_arrival_state state)
{
	struct tcp_arrival *a = link->body.arrival;

	link->body.arrival = NULL;
	if (!a)
		return;
	a->state = state;
	if (state == TCP_A_COMPLETE && a->status == 0)
		gantry_count(link->lane->payload, a->frame.length);
}

void tcp_data_forget_consumer(const struct tcp_lane *lane)
{
	struct tcp_link *link;

	LIST_FOREACH (link, &lane->links, entry)
		if (link->body.rest && link->body.kind == TCP_MESSAGE) {
			link->body.into = NULL;
			link->body.arrival = NULL;
		}
}

uint32_t tcp_data_take(struct tcp_consumer *c, struct gantry_msg *msgs, uint32_t max)
{
	uint32_t n = 0;

	while (n < max && tcp_data_has_message(c)) {
		const struct tcp_arrival *a = &c->arrivals[c->n_used & c->mask];
		struct gantry_msg *out = &msgs[n];

		out->cookie = c->recvs[c->n_used++ & c->mask].cookie;
		if (a->state == TCP_A_LOST)
			continue;
		memcpy(out->imm, a->frame.imm, sizeof(out->imm));
		out->imm_len = a->frame.imm_len;
		out->status = a->status;
		out->length = a->status ? 0 : a->frame.length;
		n++;
	}
	return n;
}

bool tcp_data_has_message(const struct tcp_consumer *c)
{
	return c->n_used != c->n_arrived &&
	       c->arrivals[c->n_used & c->mask].state != TCP_A_INCOMPLETE;
}

/* -- credit of a consumer with data -- */

static void give(struct tcp_consumer *c, struct tcp_peer_producer *s, uint32_t n)
{
	s->allowed += n;
	c->n_granted += n;
	s->asks = false;
	/* the next free receive goes to another source */
	TAILQ_REMOVE(&c->sources, s, entry);
	TAILQ_INSERT_TAIL(&c->sources, s, entry);
}

/* Returns the first source that asks; *n_p: their number. */
static struct tcp_peer_producer *first_asking(const struct tcp_consumer *c, uint32_t *n_p)
{
	struct tcp_peer_producer *s, *first = NULL;

	*n_p = 0;
	TAILQ_FOREACH (s, &c->sources, entry) {
		if (!s->asks || s->recalled)
			continue;
		first = first ? first : s;
		++*n_p;
	}
	return first;
}

/* Recall the credit that other sources do not use. */
static void recall(struct tcp_consumer *c)
{
	struct tcp_peer_producer *s;
	struct tcp_frame *frame;
	struct tcp_item *item;

	TAILQ_FOREACH (s, &c->sources, entry) {
		if (s->recalled || s->sent == s->head || s->allowed != s->sent ||
		    !tcp_link_has_spare(s->link))
			continue;
		frame = tcp_link_append(s->link, TCP_RECALL, &item);
		frame->queue = s->queue;
		frame->credit = (struct tcp_credit){.serial = s->serial};
		s->recalled = true;
		s->link->urgent = true;
	}
}

void tcp_data_grant(struct tcp_consumer *c)
{
	uint32_t n_free = c->n_posted - c->n_arrived - c->n_granted, n;
	struct tcp_peer_producer *s = TAILQ_FIRST(&c->sources);

	if (s && !TAILQ_NEXT(s, entry)) {
		if (n_free && !s->recalled)
			give(c, s, n_free);
		return;
	}
	for (s = first_asking(c, &n); s && n_free; s = first_asking(c, &n)) {
		uint32_t share = n_free > n ? n_free / n : 1;

		give(c, s, share);
		n_free -= share;
	}
	/* receives that are not posted yet help as well, but they may never be */
	if (s)
		recall(c);
}

static struct tcp_peer_producer *source_of(const struct tcp_link *link,
					   const struct tcp_frame *frame)
{
	struct tcp_peer_producer *s = frame->queue < TCP_PRODUCERS ? link->sources[frame->queue]
								   : NULL;

	return s && link->lane->consumer->max_data ? s : NULL;
}

const char *tcp_on_ask(struct tcp_link *link, const struct tcp_frame *frame)
{
	struct tcp_peer_producer *s = source_of(link, frame);

	/* else the credit that it needs is on its way */
	if (s && s->sent == s->head)
		s->asks = true;
	return NULL;
}

const char *tcp_on_return(struct tcp_link *link, const struct tcp_frame *frame)
{
	struct tcp_peer_producer *s = source_of(link, frame);

	if (!s)
		return NULL; /* its consumer was destroyed */
	if (!s->recalled)
		return "returns credit that was not recalled";
	s->recalled = false;
	link->lane->consumer->n_granted -= s->allowed - s->head;
	s->allowed = s->sent = s->head;
	return NULL;
}

const struct gantry_data_queue_ops tcp_data_ops = {
	.struct_size = sizeof(tcp_data_ops),
	.post_recv = post_recv,
	.send = send_data,
	.poll_send = poll_send,
};
