/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop_queue.c - creation and destruction of consumers and producers of the loop transport. Thread:
 * control.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "loop.h"

static void ring_free(struct loop_ring *r)
{
	if (r->bell >= 0)
		close(r->bell);
	free(r->inline_data);
	free(r->regions);
	free(r->msgs);
	free(r);
}

static void ring_put(struct loop_ring *r)
{
	if (--r->refs == 0)
		ring_free(r);
}

static int ring_create(const struct loop_consumer *c, uint32_t depth, uint32_t max_data,
		       struct loop_ring **r_p)
{
	struct loop_ring *r = gantry_zalloc_lines(sizeof(*r));
	uint32_t n = tc_power_of_two(depth);
	int rc;

	if (!r)
		return -ENOMEM;
	r->refs = 2;
	r->mask = n - 1;
	r->max_data = max_data < LOOP_INLINE ? max_data : LOOP_INLINE;
	r->msgs = aligned_alloc(sizeof(*r->msgs), n * sizeof(*r->msgs));
	r->regions = calloc(n, sizeof(*r->regions));
	r->inline_data = r->max_data ? calloc(n, r->max_data) : NULL;
	r->bell = fcntl(c->bell, F_DUPFD_CLOEXEC, 0);
	rc = r->bell < 0 ? -errno : 0;
	if (!r->msgs || !r->regions || (r->max_data && !r->inline_data))
		rc = -ENOMEM;
	if (rc)
		ring_free(r);
	else
		*r_p = r;
	return rc;
}

int loop_consumer_create(void *arg, const struct gantry_queue_attr *attr, uint32_t *id_p,
			 void **consumer_p)
{
	struct loop_conn *conn = arg;
	struct loop_consumer *c;
	int rc = loop_usable(conn);

	if (rc)
		return rc;
	if (attr->depth == 0 || attr->depth > conn->dev->conf->max_depth)
		return -EINVAL;
	c = gantry_zalloc_lines(sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->conn = conn;
	c->depth = attr->depth;
	c->thread = attr->thread;
	c->max_data = attr->max_data;
	c->mask = tc_power_of_two(attr->depth) - 1;
	c->posts = calloc((size_t)c->mask + 1, sizeof(*c->posts));
	c->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	c->payload = tc_cell_get(&conn->dev->payload, conn->dev->host);
	rc = !c->posts || !c->payload ? -ENOMEM : c->bell < 0 ? -errno : 0;
	if (!rc)
		rc = loop_event(conn->peer, LOOP_CONSUMER, conn->next_consumer + 1, 1, NULL, 0);
	if (rc) {
		tc_cell_put(&conn->dev->payload, c->payload);
		if (c->bell >= 0)
			close(c->bell);
		free(c->posts);
		free(c);
		return rc;
	}
	c->id = ++conn->next_consumer;
	LIST_INSERT_HEAD(&conn->consumers, c, link);
	*id_p = c->id;
	*consumer_p = c;
	return 0;
}

void loop_consumer_destroy(void *arg)
{
	struct loop_consumer *c = arg;

	if (!c)
		return;
	tc_cell_put(&c->conn->dev->payload, c->payload);
	LIST_REMOVE(c, link);
	for (unsigned int i = 0; i < LOOP_RINGS; i++)
		if (c->rings[i]) {
			__atomic_store_n(&c->rings[i]->closed, 1, __ATOMIC_RELAXED);
			ring_put(c->rings[i]);
		}
	if (c->conn->peer)
		loop_event(c->conn->peer, LOOP_CONSUMER, c->id, 0, NULL, 0);
	close(c->bell);
	free(c->posts);
	free(c);
}

/*
 * Make the ring visible to the lane of the consumer. First releases rings that the lane has
 * detached.
 */
static int attach(struct loop_consumer *c, struct loop_ring *r)
{
	unsigned int line = LOOP_RINGS;
	uint64_t one = 1;

	for (unsigned int i = LOOP_RINGS; i-- > 0;) {
		if (c->rings[i] && __atomic_load_n(&c->rings[i]->detached, __ATOMIC_ACQUIRE)) {
			ring_put(c->rings[i]);
			c->rings[i] = NULL;
		}
		if (!c->rings[i])
			line = i;
	}
	if (line == LOOP_RINGS)
		return -ENOSPC;
	r->number = line;
	loop_ring_set_peer(r, c);
	c->rings[line] = r;
	/* pairs with loop_poll_recv */
	__atomic_fetch_or(&c->active, 1ull << line, __ATOMIC_RELEASE);
	/* Wake the lane: a lane that sleeps does not know the ring, and so gives it no credit. */
	return write(c->bell, &one, sizeof(one)) < 0 ? -errno : 0;
}

int loop_producer_create(void *arg, uint32_t id, const struct gantry_queue_attr *attr,
			 void **producer_p)
{
	struct loop_conn *conn = arg;
	struct loop_producer *p;
	struct loop_consumer *c;
	int rc = loop_usable(conn);

	if (rc)
		return rc;
	LIST_FOREACH (c, &conn->peer->consumers, link)
		if (c->id == id)
			break;
	if (!c)
		return -ENOENT;
	if (attr->depth == 0 || attr->depth > conn->dev->conf->max_depth)
		return -EINVAL;
	p = gantry_zalloc_lines(sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->conn = conn;
	p->max_data = attr->max_data < c->max_data ? attr->max_data : c->max_data;
	p->cookies = calloc(tc_power_of_two(attr->depth), sizeof(*p->cookies));
	rc = p->cookies ? ring_create(c, attr->depth, p->max_data, &p->ring) : -ENOMEM;
	if (!rc) {
		p->ring->thread = attr->thread;
		rc = attach(c, p->ring);
	}
	if (rc) {
		if (p->ring) {
			p->ring->refs = 1;
			ring_put(p->ring);
		}
		free(p->cookies);
		free(p);
		return rc;
	}
	*producer_p = p;
	return 0;
}

void loop_producer_destroy(void *arg)
{
	struct loop_producer *p = arg;

	if (!p)
		return;
	loop_flush(p);
	/*
	 * After this store no lane starts to read regions of the producer's messages. Wait for a
	 * copy in progress.
	 */
	__atomic_store_n(&p->ring->gone, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&p->ring->copying, __ATOMIC_SEQ_CST))
		sched_yield();
	ring_put(p->ring);
	free(p->cookies);
	free(p);
}
