/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_queue.c - consumers and producers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../common/power.h"
#include "tcp.h"

/* -- creation and destruction. Thread: control -- */

static int check(const struct tcp_conn *conn, const struct gantry_queue_attr *attr)
{
	if (!tcp_usable(conn->dev))
		return -EPERM;
	if (!tcp_conn_usable(conn))
		return -ENOTCONN;
	if (attr->depth == 0 || attr->depth > (uint32_t)conn->dev->conf->max_depth)
		return -EINVAL;
	return 0;
}

/* Get the lane, and count a user of it. */
static int use_lane(struct tcp_conn *conn, uint32_t number, struct tcp_lane **lane_p)
{
	int rc = tcp_lane_get(conn, number, lane_p);

	return rc ? rc : tcp_lane_use(*lane_p);
}

static int announce(struct tcp_conn *conn, const struct tcp_consumer *c, uint16_t up)
{
	const struct tcp_ctrl_consumer body = {
		.id = c->id, .lane = (uint16_t)c->lane->number, .up = up, .max_data = c->max_data};

	return tcp_control_put(conn, TCP_CTRL_CONSUMER, &body, sizeof(body));
}

int tcp_consumer_create(void *arg, const struct gantry_queue_attr *attr, uint32_t *id_p,
			void **consumer_p)
{
	struct tcp_conn *conn = arg;
	struct tcp_consumer *c;
	int rc = check(conn, attr);

	if (rc)
		return rc;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	TAILQ_INIT(&c->sources);
	c->depth = attr->depth;
	rc = tcp_data_consumer_init(c, attr);
	if (!rc)
		rc = use_lane(conn, attr->lane, &c->lane);
	if (rc)
		goto out_free;
	c->id = ++conn->next_consumer;
	rc = c->lane->consumer ? -EEXIST : announce(conn, c, 1);
	if (rc) {
		tcp_lane_put(c->lane);
		goto out_free;
	}
	pthread_mutex_lock(&c->lane->lock);
	c->lane->consumer = c;
	pthread_mutex_unlock(&c->lane->lock);
	*id_p = c->id;
	*consumer_p = c;
	return 0;

out_free:
	tcp_data_consumer_fini(c);
	free(c);
	return rc;
}

static void free_peer_producer(struct tcp_consumer *c, struct tcp_peer_producer *s)
{
	TAILQ_REMOVE(&c->sources, s, entry);
	if (s->link)
		s->link->sources[s->queue] = NULL;
	if (c->max_data)
		c->n_granted -= s->allowed - s->head;
	free(s);
}

void tcp_consumer_destroy(void *arg)
{
	struct tcp_consumer *c = arg;

	if (!c)
		return;
	pthread_mutex_lock(&c->lane->lock);
	while (!TAILQ_EMPTY(&c->sources))
		free_peer_producer(c, TAILQ_FIRST(&c->sources));
	tcp_data_forget_consumer(c->lane);
	c->lane->consumer = NULL;
	pthread_mutex_unlock(&c->lane->lock);
	if (tcp_conn_usable(c->lane->conn))
		announce(c->lane->conn, c, 0);
	tcp_lane_put(c->lane);
	tcp_data_consumer_fini(c);
	free(c);
}

/* A free entry of the table has id 0. */
static struct tcp_peer_consumer *find_peer_consumer(struct tcp_conn *conn, uint32_t id)
{
	for (uint32_t i = 0; i < TCP_CONSUMERS; i++)
		if (conn->peer_consumers[i].id == id)
			return &conn->peer_consumers[i];
	return NULL;
}

/* Its consumer was destroyed: mark all producers. */
static void mark_gone(struct tcp_conn *conn, uint32_t consumer)
{
	struct tcp_lane *lane;
	struct tcp_link *link;

	LIST_FOREACH (lane, &conn->lanes, entry) {
		pthread_mutex_lock(&lane->lock);
		LIST_FOREACH (link, &lane->links, entry)
			for (uint32_t i = 0; i < TCP_PRODUCERS; i++)
				if (link->producers[i] && link->producers[i]->consumer == consumer)
					__atomic_store_n(&link->producers[i]->gone, 1,
							 __ATOMIC_RELAXED);
		pthread_mutex_unlock(&lane->lock);
	}
}

void tcp_on_consumer(struct tcp_conn *conn, const struct tcp_ctrl_consumer *c)
{
	struct tcp_peer_consumer *o = find_peer_consumer(conn, c->up ? 0 : c->id);

	if (!o || (c->up && find_peer_consumer(conn, c->id))) {
		tcp_conn_broken(conn, "announces an invalid consumer");
		return;
	}
	*o = (struct tcp_peer_consumer){
		.id = c->up ? c->id : 0, .lane = c->lane, .max_data = c->max_data};
	if (!c->up)
		mark_gone(conn, c->id);
	conn->dev->n_events++;
	conn->events->consumer(conn->arg, conn, c->id, c->up);
}

void tcp_producer_open(struct tcp_producer *p)
{
	struct tcp_item *item;
	struct tcp_frame *frame = tcp_link_append(p->link, TCP_OPEN, &item);

	frame->queue = p->queue;
	frame->open = (struct tcp_open){.consumer = p->consumer, .serial = p->serial};
	p->opened = true;
}

/* Enter the producer into the table of its link. */
static int join(struct tcp_producer *p)
{
	struct tcp_link *link = p->link;
	int rc = -ENOSPC;

	pthread_mutex_lock(&link->lane->lock);
	for (uint16_t i = 0; i < TCP_PRODUCERS && rc; i++) {
		if (link->producers[i] || !tcp_link_has_spare(link))
			continue;
		rc = 0;
		link->producers[i] = p;
		p->queue = i;
		p->serial = link->next_serial++;
		if (link->state == TCP_L_UP) {
			tcp_producer_open(p);
			tcp_link_send(link);
		}
	}
	pthread_mutex_unlock(&link->lane->lock);
	return rc;
}

int tcp_producer_create(void *arg, uint32_t consumer_id, const struct gantry_queue_attr *attr,
			void **producer_p)
{
	struct tcp_conn *conn = arg;
	const struct tcp_peer_consumer *o = consumer_id ? find_peer_consumer(conn, consumer_id)
							: NULL;
	struct tcp_producer *p;
	struct tcp_lane *lane;
	int rc = check(conn, attr);

	if (!rc && !o)
		rc = -ENOENT;
	if (rc)
		return rc;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->consumer = consumer_id;
	p->depth = attr->depth;
	p->must_ask = o->max_data != 0;
	p->max_data = attr->max_data < o->max_data ? attr->max_data : o->max_data;
	rc = tcp_data_producer_init(p);
	if (!rc)
		rc = use_lane(conn, attr->lane, &lane);
	if (rc)
		goto out_free;
	rc = tcp_link_want(lane, o->lane, &p->link);
	if (!rc)
		rc = join(p);
	if (rc)
		goto out_lane;
	*producer_p = p;
	return 0;

out_lane:
	tcp_lane_put(lane);
out_free:
	tcp_data_producer_fini(p);
	free(p);
	return rc;
}

void tcp_producer_destroy(void *arg)
{
	struct tcp_producer *p = arg;
	struct tcp_link *link;
	struct tcp_item *item;

	if (!p)
		return;
	link = p->link;
	pthread_mutex_lock(&link->lane->lock);
	tcp_link_forget_producer(link, p);
	link->producers[p->queue] = NULL;
	if (p->opened && link->state == TCP_L_UP) {
		tcp_link_append(link, TCP_SHUT, &item)->queue = p->queue;
		tcp_link_send(link);
	}
	pthread_mutex_unlock(&link->lane->lock);
	tcp_lane_put(link->lane);
	tcp_data_producer_fini(p);
	free(p);
}

/* -- sources. The caller holds the lock -- */

int tcp_on_open(struct tcp_link *link, const struct tcp_frame *frame)
{
	struct tcp_consumer *c = link->lane->consumer;
	struct tcp_peer_producer *s;
	uint16_t queue = frame->queue;
	uint32_t n;

	if (queue >= TCP_PRODUCERS || link->sources[queue])
		return -EPROTO;
	if (!c || c->id != frame->open.consumer) /* it was destroyed */
		return 0;
	n = c->max_data ? 1 : tc_power_of_two(c->depth);
	s = calloc(1, sizeof(*s) + n * sizeof(s->ring[0]));
	if (!s)
		return -ENOMEM;
	s->link = link;
	s->queue = queue;
	s->serial = frame->open.serial;
	s->mask = n - 1;
	link->sources[queue] = s;
	if (link->n_sources <= queue)
		link->n_sources = queue + 1u;
	TAILQ_INSERT_TAIL(&c->sources, s, entry);
	return 0;
}

void tcp_peer_producer_end(struct tcp_link *link, uint16_t queue)
{
	struct tcp_peer_producer *s = link->sources[queue];

	link->sources[queue] = NULL;
	if (!s)
		return;
	s->link = NULL; /* the consumer frees it after its last message */
	if (s->tail == s->head)
		free_peer_producer(link->lane->consumer, s);
}

/*
 * Never lower the credit: a receive is credit for each of several producers, until one of them uses
 * it.
 */
static void allow(struct tcp_peer_producer *s, const struct tcp_consumer *c)
{
	uint32_t allowed = s->tail + (c->n_posted - c->n_used);

	if ((int32_t)(allowed - s->allowed) > 0)
		s->allowed = allowed;
}

void tcp_credits(struct tcp_link *link, bool all)
{
	struct tcp_consumer *c = link->lane->consumer;

	if (c && c->max_data)
		tcp_data_grant(c);
	for (uint16_t i = 0; c && i < link->n_sources; i++) {
		struct tcp_peer_producer *s = link->sources[i];
		struct tcp_frame *frame;
		struct tcp_item *item;

		if (!s)
			continue;
		if (!c->max_data)
			allow(s, c);
		/* without `all`: the peer can send no more, or can soon send no more */
		if (s->allowed == s->sent ||
		    (!all && s->sent != s->head && s->allowed - s->sent < c->depth / 4 * 3))
			continue;
		if (!tcp_link_has_spare(link))
			continue; /* the socket takes no more: later */
		frame = tcp_link_append(link, TCP_CREDIT, &item);
		frame->queue = i;
		s->sent = s->allowed;
		frame->credit = (struct tcp_credit){.allowed = s->allowed, .serial = s->serial};
	}
}

/* -- the data path. Thread: lane -- */

int tcp_post_recv(void *arg, uint32_t n)
{
	struct tcp_consumer *c = arg;

	if (n > c->depth - (c->n_posted - c->n_used))
		return -ENOSPC;
	/* the control thread can read it, to send credit of a lane that is not polled */
	pthread_mutex_lock(&c->lane->lock);
	c->n_posted += n;
	if (c->prompt)
		tcp_lane_flush(c->lane);
	pthread_mutex_unlock(&c->lane->lock);
	return 0;
}

static uint32_t take(struct tcp_consumer *c, struct tcp_peer_producer *s, struct gantry_msg *msgs,
		     uint32_t max)
{
	uint32_t n = 0;

	for (; n < max && s->tail != s->head && c->n_used != c->n_posted; n++, c->n_used++) {
		const struct tcp_frame *frame = &s->ring[s->tail++ & s->mask];
		struct gantry_msg *out = &msgs[n];

		memcpy(out->imm, frame->imm, sizeof(out->imm));
		out->imm_len = frame->imm_len;
		out->status = 0;
		out->length = 0;
		out->cookie = c->has_recvs ? c->recvs[c->n_used & c->mask].cookie : 0;
	}
	return n;
}

/* Take messages of all sources, each in its turn. */
static uint32_t take_all(struct tcp_consumer *c, struct gantry_msg *msgs, uint32_t max)
{
	struct tcp_peer_producer *s = TAILQ_FIRST(&c->sources),
				 *last = TAILQ_LAST(&c->sources, tcp_peer_producers), *next;
	uint32_t n = 0;

	if (c->max_data)
		return tcp_data_take(c, msgs, max);
	for (; s && n < max; s = next) {
		next = s == last ? NULL : TAILQ_NEXT(s, entry);
		n += take(c, s, msgs + n, max - n);
		if (!s->link && s->tail == s->head) {
			free_peer_producer(c, s);
		} else if (next || s != TAILQ_FIRST(&c->sources)) {
			TAILQ_REMOVE(&c->sources, s, entry);
			TAILQ_INSERT_TAIL(&c->sources, s, entry);
		}
	}
	return n;
}

int tcp_poll_recv(void *arg, struct gantry_msg *msgs, uint32_t max)
{
	struct tcp_consumer *c = arg;
	uint32_t n;

	pthread_mutex_lock(&c->lane->lock);
	n = take_all(c, msgs, max);
	if (n == 0 && tcp_lane_poll_unless_drained(c->lane))
		n = take_all(c, msgs, max);
	if (n == 0)
		tcp_lane_idle(c->lane, false);
	pthread_mutex_unlock(&c->lane->lock);
	return (int)n;
}

static bool has_message(const struct tcp_consumer *c)
{
	const struct tcp_peer_producer *s;

	if (c->max_data)
		return tcp_data_has_message(c);
	if (c->n_used == c->n_posted)
		return false;
	TAILQ_FOREACH (s, &c->sources, entry)
		if (s->tail != s->head)
			return true;
	return false;
}

/*
 * The epoll of the lane reports nothing new for what a link has left in its socket, or has inside
 * its stream.
 */
static bool has_work(const struct tcp_lane *lane)
{
	struct tcp_link *link;

	LIST_FOREACH (link, &lane->links, entry)
		if ((link->state == TCP_L_UP && (link->unread || tcp_link_inside(link))) ||
		    (link->relay && tcp_relay_has_work(link)))
			return true;
	return false;
}

int tcp_consumer_arm(void *arg)
{
	struct tcp_consumer *c = arg;
	int work;

	pthread_mutex_lock(&c->lane->lock);
	/* before the check of the relays: see tcp_relay_has_work() */
	__atomic_store_n(&c->lane->armed, 1, __ATOMIC_RELAXED);
	work = has_message(c);
	if (!work) {
		tcp_lane_poll(c->lane);
		tcp_lane_idle(c->lane, true);
		work = has_message(c) || has_work(c->lane);
	}
	pthread_mutex_unlock(&c->lane->lock);
	return work;
}

void tcp_consumer_disarm(void *arg)
{
	struct tcp_consumer *c = arg;

	__atomic_store_n(&c->lane->armed, 0, __ATOMIC_RELAXED);
}

int tcp_consumer_fd(void *arg)
{
	return ((const struct tcp_consumer *)arg)->lane->epoll;
}

static inline int status(const struct tcp_producer *p)
{
	return tcp_lost(p->link->lane->conn) || __atomic_load_n(&p->gone, __ATOMIC_RELAXED) ||
			       p->link->state == TCP_L_CLOSED
		       ? -ENOTCONN
		       : 0;
}

static bool may_send(const struct tcp_producer *p)
{
	return p->sent != p->allowed && tcp_link_room(p->link);
}

/* The peer may wait for what is held back; its credit may have arrived. */
static __attribute__((noinline)) int get_credit(struct tcp_producer *p)
{
	int rc;

	tcp_data_ask(p);
	tcp_lane_flush(p->link->lane);
	tcp_lane_poll(p->link->lane);
	rc = status(p);
	return rc || may_send(p) ? rc : -EAGAIN;
}

static inline int prepare(struct tcp_producer *p)
{
	int rc = status(p);

	return rc || may_send(p) ? rc : get_credit(p);
}

int tcp_producer_status(const struct tcp_producer *p)
{
	return status(p);
}

int tcp_producer_prepare(struct tcp_producer *p)
{
	return prepare(p);
}

int tcp_send(void *arg, const void *imm, uint32_t imm_len, uint32_t flags)
{
	struct tcp_producer *p = arg;
	struct tcp_link *link = p->link;
	struct tcp_frame *frame;
	struct tcp_item *item;
	int rc;

	if (imm_len > GANTRY_IMM_MAX)
		return -EINVAL;
	pthread_mutex_lock(&link->lane->lock);
	rc = prepare(p);
	if (!rc) {
		frame = tcp_link_append(link, TCP_MESSAGE, &item);
		frame->queue = p->queue;
		frame->imm_len = (uint8_t)imm_len;
		if (imm_len)
			memcpy(frame->imm, imm, imm_len);
		p->sent++;
		if (!(flags & GANTRY_SEND_MORE))
			tcp_lane_flush(link->lane);
	}
	pthread_mutex_unlock(&link->lane->lock);
	return rc;
}

void tcp_flush(void *arg)
{
	struct tcp_lane *lane = ((struct tcp_producer *)arg)->link->lane;

	pthread_mutex_lock(&lane->lock);
	tcp_lane_flush(lane);
	pthread_mutex_unlock(&lane->lock);
}
