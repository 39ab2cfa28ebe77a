/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_queues.c - creates, connects and destroys consumers and producers. The lanes work in
 * shm_consumer.c and shm_producer.c.
 *
 *   consumer's side                                       producer's side
 *   consumer_create     --- CONSUMER (page, doorbell) --> event `consumer`
 *   attaches the ring   <-- PRODUCER (ring) ------------- producer_create; sends wait
 *                       --- PRODUCER_OK (line) ---------> sends proceed
 *   drains, detaches    <-- PRODUCER_GONE --------------- producer_destroy
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gantry/memfd.h>

#include "shm_comch.h"

/*
 * Allocate zeroed memory with all its pages, which only this mapping can ever write. Returns its
 * descriptor, and its address in *p_p; or -errno.
 */
static int own_memory(const char *name, size_t bytes, void **p_p)
{
	int fd = gantry_memfd_create(name, bytes, 0), rc;

	if (fd < 0)
		return fd;
	*p_p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	rc = *p_p == MAP_FAILED ? -errno : gantry_memfd_populate(fd, 0, *p_p, bytes, 1);
	if (!rc)
		rc = gantry_memfd_seal(fd, F_SEAL_FUTURE_WRITE);
	if (rc) {
		if (*p_p != MAP_FAILED)
			munmap(*p_p, bytes);
		close(fd);
		return rc;
	}
	madvise(*p_p, bytes, MADV_DONTFORK);
	return fd;
}

/*
 * Check memory of the peer, and map it for reading. After success the descriptor is no longer
 * needed. Returns NULL with the reason in *why_p.
 */
static const void *peer_memory(struct comch_conn *conn, struct comch_memory memory,
			       const char **why_p)
{
	const size_t bytes = memory.bytes;
	const int fd = memory.fd;
	void *p;

	memory.quota_bytes = bytes;
	*why_p = conn->why;
	if (comch_memory_check_frozen(conn, &memory, conn->why))
		return NULL;
	p = mmap(NULL, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (p == MAP_FAILED) {
		conn->lack = errno == ENOMEM ? -ENOMEM : 0;
		*why_p = "queue memory cannot be mapped";
		return NULL;
	}
	madvise(p, bytes, MADV_DONTFORK);
	return p;
}

static void unmap(const void *p, size_t bytes)
{
	munmap((void *)(uintptr_t)p, bytes);
}

/* -- consumers of this side -- */

static int send_consumer(struct comch_consumer *c)
{
	struct comch_frame frame;
	int fds[2] = {c->page_fd, c->bell_ring};

	comch_frame_init(&frame, COMCH_CONSUMER, sizeof(frame.consumer));
	frame.consumer =
		(struct comch_consumer_up){.id = c->id, .depth = c->depth, .max_data = c->max_data};
	return comch_out_send(c->conn, &frame, fds, 2);
}

int comch_consumer_create(void *arg, const struct gantry_queue_attr *attr, uint32_t *id_p,
			  void **consumer_p)
{
	struct comch_conn *conn = arg;
	struct comch_consumer *c;
	int rc = comch_conn_usable(conn);
	void *memory;

	if (rc)
		return rc;
	if (attr->depth == 0 || attr->depth > conn->dev->conf->max_depth)
		return -EINVAL;
	if (conn->n_consumers >= COMCH_CONSUMERS)
		return -ENOSPC;
	rc = attr->max_data ? comch_regions_map(conn) : 0;
	if (rc)
		return rc;
	c = aligned_alloc(64, sizeof(*c));
	if (!c)
		return -ENOMEM;
	memset(c, 0, sizeof(*c));
	rc = -ENOMEM;
	c->conn = conn;
	c->id = conn->next_consumer + 1;
	c->depth = attr->depth;
	c->max_data = attr->max_data;
	c->clears = !(attr->flags & GANTRY_QUEUE_EDGES) || comch_bell_fills(conn);
	c->credit_batch = attr->flags & GANTRY_QUEUE_PROMPT || attr->depth < 4 ? 1
									       : attr->depth / 4;
	c->posts_last = tc_power_of_two(attr->depth > 1 ? attr->depth : 2) - 1;
	c->posts = calloc((size_t)c->posts_last + 1, sizeof(*c->posts));
	if (!c->posts)
		goto out_undo_alloc;
	c->payload = tc_cell_get(&conn->dev->payload, conn->dev->host);
	if (!c->payload)
		goto out_undo_posts;
	rc = -EMFILE;
	if (!comch_conn_take_fds(conn, COMCH_CONSUMER_FDS))
		goto out_undo_posts;
	rc = own_memory("gantry-credit", COMCH_PAGE_BYTES, &memory);
	if (rc < 0)
		goto out_undo_fds;
	c->page_fd = rc;
	c->page = memory;
	rc = comch_bell_create(conn, &c->bell, &c->bell_ring);
	if (rc)
		goto out_undo_page;
	rc = send_consumer(c);
	if (rc)
		goto out_undo_bell;
	conn->next_consumer++;
	conn->n_consumers++;
	LIST_INSERT_HEAD(&conn->consumers, c, link);
	*id_p = c->id;
	*consumer_p = c;
	return 0;

out_undo_bell:
	close(c->bell);
	close(c->bell_ring);
out_undo_page:
	munmap(c->page, COMCH_PAGE_BYTES);
	close(c->page_fd);
out_undo_fds:
	comch_fds_sub(conn->user, COMCH_CONSUMER_FDS);
out_undo_posts:
	tc_cell_put(&conn->dev->payload, c->payload);
	free(c->posts);
out_undo_alloc:
	free(c);
	return rc;
}

static void free_in(struct comch_consumer *c, unsigned int i)
{
	struct comch_in *in = c->in[i];

	unmap(in->slots, ((size_t)in->mask + 1) * sizeof(*in->slots));
	free(in);
	c->in[i] = NULL;
	c->conn->n_rings--;
}

void comch_consumer_destroy(void *arg)
{
	struct comch_consumer *c = arg;

	if (!c)
		return;
	tc_cell_put(&c->conn->dev->payload, c->payload);
	LIST_REMOVE(c, link);
	c->conn->n_consumers--;
	if (comch_conn_usable(c->conn) == 0)
		comch_out_id(c->conn, COMCH_CONSUMER_GONE, c->id);
	for (unsigned int i = 0; i < COMCH_RINGS; i++)
		if (c->in[i])
			free_in(c, i);
	comch_conn_close_fds(c->conn, &c->bell, 1);
	close(c->bell_ring);
	munmap(c->page, COMCH_PAGE_BYTES);
	close(c->page_fd);
	/* the bell stays counted until the closer has closed it */
	comch_fds_sub(c->conn->user, COMCH_CONSUMER_FDS - 1);
	free(c->posts);
	free(c);
}

static struct comch_consumer *find_consumer(struct comch_conn *conn, uint32_t id)
{
	struct comch_consumer *c;

	LIST_FOREACH (c, &conn->consumers, link) {
		if (c->id == id)
			return c;
	}
	return NULL;
}

/* Find a free line, after freeing the rings that the lane has detached. */
static unsigned int free_line(struct comch_consumer *c)
{
	unsigned int found = COMCH_RINGS;

	for (unsigned int i = COMCH_RINGS; i-- > 0;) {
		if (c->in[i] && __atomic_load_n(&c->in[i]->detached, __ATOMIC_ACQUIRE))
			free_in(c, i);
		if (!c->in[i])
			found = i;
	}
	return found;
}

/*
 * Returns the number of posted receives, as seen by the control thread. The result can be too high
 * for a moment, because the lane changes both counts. That is permitted: each of several producers
 * can get credit for all receives.
 */
static uint32_t outstanding(const struct comch_consumer *c)
{
	return __atomic_load_n(&c->n_posted, __ATOMIC_RELAXED) -
	       __atomic_load_n(&c->n_used, __ATOMIC_RELAXED);
}

/*
 * Give a new ring the credit for receives that the lane posted before it knew the ring. The control
 * thread does so, because the thread of the lane can be busy, waiting for the peer. Credit that the
 * lane has published in the meantime stays.
 */
static void add_initial_credit(struct comch_consumer *c, unsigned int line, uint32_t limit)
{
	uint64_t first = comch_credit_pack(0, limit);
	uint32_t now;

	/*
	 * Pairs with comch_post_recv(): either the lane sees the ring, or this thread sees the
	 * receives of the lane. comch_post_recv() has no fence, so comch_membarrier() issues one on
	 * its CPU. Without membarrier(2) both can miss; then the lane publishes the receives at its
	 * next poll.
	 */
	if (c->conn->dev->membarrier)
		comch_membarrier();
	now = outstanding(c);
	if ((int32_t)(now - limit) > 0)
		__atomic_compare_exchange_n(&c->page->ring[line].credit, &first,
					    comch_credit_pack(0, now), false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED);
}

static const char *attach(struct comch_consumer *c, unsigned int line,
			  const struct comch_producer_up *up, int fd, uint32_t *limit_p)
{
	struct comch_in *in = calloc(1, sizeof(*in));
	const char *why = "out of memory: its ring cannot be attached";

	if (!in) {
		c->conn->lack = -ENOMEM;
		return why;
	}
	in->slots = peer_memory(c->conn,
				(struct comch_memory){.what = "ring",
						      .number = up->id,
						      .fd = fd,
						      .bytes = up->slots * sizeof(*in->slots)},
				&why);
	if (!in->slots) {
		free(in);
		return why;
	}
	in->mask = up->slots - 1;
	in->producer = up->id;
	in->line = &c->page->ring[line];
	*limit_p = in->given_limit = outstanding(c); /* the lane continues from this limit */
	gantry_shm_st64(&in->line->credit, comch_credit_pack(0, in->given_limit));
	c->in[line] = in;
	c->conn->n_rings++;
	__atomic_fetch_or(&c->active, 1ull << line, __ATOMIC_RELEASE);
	return NULL;
}

const char *comch_on_producer(struct comch_conn *conn, const struct comch_producer_up *up, int *fds)
{
	struct comch_consumer *c = find_consumer(conn, up->consumer);
	struct comch_frame frame;
	const char *why;
	unsigned int line;
	uint32_t limit = 0;

	if (up->id <= conn->seen_producers || up->zero)
		return "malformed producer";
	conn->seen_producers = up->id;
	if (up->slots < COMCH_SLOTS_MIN || up->slots > COMCH_SLOTS_MAX ||
	    (up->slots & (up->slots - 1)))
		return "ring with an invalid number of slots";
	if (up->consumer == 0 || up->consumer > conn->next_consumer)
		return "producer for a consumer that never existed";
	comch_frame_init(&frame, COMCH_PRODUCER_OK, sizeof(frame.ok));
	frame.ok = (struct comch_producer_ok){up->id, COMCH_NO_LINE};
	line = c ? free_line(c) : COMCH_RINGS;
	if (line < COMCH_RINGS && conn->n_rings < COMCH_PRODUCERS) {
		why = attach(c, line, up, fds[0], &limit);
		if (why)
			return why;
		frame.ok.line = line;
		/*
		 * Wake the lane: a lane that sleeps does not know the ring, and so gives it no
		 * credit.
		 */
		comch_bell_ring(conn, c->bell_ring);
	}
	comch_out_must(conn, &frame);
	if (frame.ok.line != COMCH_NO_LINE)
		add_initial_credit(c, line, limit);
	return NULL;
}

const char *comch_on_producer_gone(struct comch_conn *conn, uint32_t id)
{
	struct comch_consumer *c;

	if (id == 0 || id > conn->seen_producers)
		return "destroys a producer that never existed";
	LIST_FOREACH (c, &conn->consumers, link) {
		for (unsigned int i = 0; i < COMCH_RINGS; i++)
			if (c->in[i] && c->in[i]->producer == id)
				__atomic_store_n(&c->in[i]->gone, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* -- consumers of the peer, and producers of this side -- */

static struct comch_remote *find_remote(struct comch_conn *conn, uint32_t id)
{
	struct comch_remote *r;

	LIST_FOREACH (r, &conn->remotes, link) {
		if (r->id == id && r->up)
			return r;
	}
	return NULL;
}

static void put_remote(struct comch_conn *conn, struct comch_remote *r)
{
	if (r->up || r->refs)
		return;
	LIST_REMOVE(r, link);
	conn->n_remotes--;
	unmap(r->page, COMCH_PAGE_BYTES);
	comch_conn_close_fds(conn, &r->bell, 1);
	free(r);
}

const char *comch_on_consumer(struct comch_conn *conn, const struct comch_consumer_up *up, int *fds)
{
	const char *why = "out of memory: its consumer cannot be attached";
	struct comch_remote *r;

	if (up->id <= conn->seen_consumers || up->depth == 0 || up->zero)
		return "malformed consumer";
	conn->seen_consumers = up->id;
	if (conn->n_remotes >= COMCH_CONSUMERS + COMCH_PRODUCERS)
		return "too many consumers";
	r = calloc(1, sizeof(*r));
	if (!r) {
		conn->lack = -ENOMEM;
		return why;
	}
	r->page = peer_memory(conn,
			      (struct comch_memory){.what = "credit page",
						    .number = up->id,
						    .fd = fds[0],
						    .bytes = COMCH_PAGE_BYTES},
			      &why);
	if (r->page && !comch_bell_ok(conn, fds[1])) {
		unmap(r->page, COMCH_PAGE_BYTES);
		r->page = NULL;
		why = "invalid type of doorbell";
	}
	if (!r->page) {
		free(r);
		return why;
	}
	r->id = up->id;
	r->max_data = up->max_data;
	r->bell = fds[1];
	r->up = true;
	fds[1] = -1;
	LIST_INSERT_HEAD(&conn->remotes, r, link);
	conn->n_remotes++;
	conn->dev->events++;
	conn->events->consumer(conn->arg, conn, r->id, 1);
	return NULL;
}

const char *comch_on_consumer_gone(struct comch_conn *conn, uint32_t id)
{
	struct comch_remote *r = find_remote(conn, id);
	struct comch_producer *p;

	if (!r)
		return "destroys a consumer that never existed";
	r->up = false;
	LIST_FOREACH (p, &conn->producers, link) {
		if (p->remote == r)
			__atomic_store_n(&p->gone, 1, __ATOMIC_RELEASE);
	}
	put_remote(conn, r);
	conn->dev->events++;
	conn->events->consumer(conn->arg, conn, id, 0);
	return NULL;
}

static int send_producer(struct comch_producer *p)
{
	struct comch_frame frame;

	comch_frame_init(&frame, COMCH_PRODUCER, sizeof(frame.producer));
	frame.producer = (struct comch_producer_up){
		.id = p->id, .consumer = p->remote->id, .slots = p->n_slots};
	return comch_out_send(p->conn, &frame, &p->ring_fd, 1);
}

/*
 * Returns the number of slots of a ring. A producer that sends only immediate data never uses more
 * than its depth.
 */
static uint32_t ring_slots(const struct comch_conf *conf, const struct gantry_queue_attr *attr)
{
	uint32_t most = (uint32_t)conf->ring_slots, slots = tc_power_of_two(attr->depth);

	if (attr->max_data || slots > most)
		return most;
	return slots < COMCH_SLOTS_MIN ? COMCH_SLOTS_MIN : slots;
}

int comch_producer_create(void *arg, uint32_t consumer_id, const struct gantry_queue_attr *attr,
			  void **producer_p)
{
	struct comch_conn *conn = arg;
	struct comch_remote *remote = find_remote(conn, consumer_id);
	struct comch_producer *p;
	int rc = comch_conn_usable(conn);
	void *memory;

	if (rc)
		return rc;
	if (!remote)
		return -ENOENT;
	if (attr->depth == 0 || attr->depth > conn->dev->conf->max_depth)
		return -EINVAL;
	if (conn->n_producers >= COMCH_PRODUCERS || remote->refs >= COMCH_RINGS)
		return -ENOSPC;
	p = gantry_zalloc_lines(sizeof(*p));
	if (!p)
		return -ENOMEM;
	rc = -ENOMEM;
	p->conn = conn;
	p->remote = remote;
	p->id = conn->next_producer + 1;
	p->n_slots = ring_slots(conn->dev->conf, attr);
	p->mask = p->n_slots - 1;
	p->max_data = attr->max_data < remote->max_data ? attr->max_data : remote->max_data;
	p->asleep = &remote->page->asleep.asleep;
	p->bell = remote->bell;
	p->fence = !conn->membarrier;
	p->cookie_mask = tc_power_of_two(attr->depth) - 1;
	p->cookies = calloc((size_t)p->cookie_mask + 1, sizeof(*p->cookies));
	if (!p->cookies)
		goto out_undo_alloc;
	rc = -EMFILE;
	if (!comch_conn_take_fds(conn, COMCH_PRODUCER_FDS))
		goto out_undo_cookies;
	rc = own_memory("gantry-ring", p->n_slots * sizeof(*p->slots), &memory);
	if (rc < 0)
		goto out_undo_fds;
	p->ring_fd = rc;
	p->slots = memory;
	rc = send_producer(p);
	if (rc)
		goto out_undo_ring;
	conn->next_producer++;
	conn->n_producers++;
	remote->refs++;
	LIST_INSERT_HEAD(&conn->producers, p, link);
	*producer_p = p;
	return 0;

out_undo_ring:
	munmap(p->slots, p->n_slots * sizeof(*p->slots));
	close(p->ring_fd);
out_undo_fds:
	comch_fds_sub(conn->user, COMCH_PRODUCER_FDS);
out_undo_cookies:
	free(p->cookies);
out_undo_alloc:
	free(p);
	return rc;
}

void comch_producer_destroy(void *arg)
{
	struct comch_producer *p = arg;

	if (!p)
		return;
	comch_withdraw(p);
	if (comch_conn_usable(p->conn) == 0) {
		comch_flush(p);
		comch_out_id(p->conn, COMCH_PRODUCER_GONE, p->id);
	}
	LIST_REMOVE(p, link);
	p->conn->n_producers--;
	p->remote->refs--;
	put_remote(p->conn, p->remote);
	munmap(p->slots, p->n_slots * sizeof(*p->slots));
	close(p->ring_fd);
	comch_fds_sub(p->conn->user, COMCH_PRODUCER_FDS);
	free(p->cookies);
	free(p);
}

const char *comch_on_producer_ok(struct comch_conn *conn, const struct comch_producer_ok *ok)
{
	struct comch_producer *p;

	if (ok->id == 0 || ok->id > conn->next_producer ||
	    (ok->line >= COMCH_RINGS && ok->line != COMCH_NO_LINE))
		return "confirms a producer that never existed";
	LIST_FOREACH (p, &conn->producers, link) {
		if (p->id != ok->id)
			continue;
		if (p->line)
			return "confirms a producer twice";
		if (ok->line == COMCH_NO_LINE)
			__atomic_store_n(&p->gone, 1, __ATOMIC_RELEASE);
		else
			__atomic_store_n(&p->line, &p->remote->page->ring[ok->line],
					 __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Destroy the queues that the user has not destroyed. */
void comch_queues_free(struct comch_conn *conn)
{
	struct comch_rma *rma, *next_rma;
	struct comch_producer *p, *next_p;
	struct comch_consumer *c, *next_c;
	struct comch_remote *r, *next_r;

	comch_each (rma, next_rma, &conn->rmas)
		comch_rma_destroy(rma);
	comch_each (p, next_p, &conn->producers)
		comch_producer_destroy(p);
	comch_each (c, next_c, &conn->consumers)
		comch_consumer_destroy(c);
	comch_each (r, next_r, &conn->remotes) {
		r->up = false;
		put_remote(conn, r);
	}
}
