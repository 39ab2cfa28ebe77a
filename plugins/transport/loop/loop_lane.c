/* SPDX-License-Identifier: BSD-3-Clause */
/* loop_lane.c - data path of the loop transport: a ring of messages between two threads. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "loop.h"

static void update_credit(struct loop_consumer *c, struct loop_ring *r)
{
	uint32_t limit = __atomic_load_n(&r->tail, __ATOMIC_RELAXED) + (c->n_posted - c->n_used);

	/*
	 * Never lower the limit: a receive is credit for each of several producers, until one of
	 * them uses it. Relaxed order is enough, because the limit publishes no other data.
	 */
	if ((int32_t)(limit - __atomic_load_n(&r->limit, __ATOMIC_RELAXED)) > 0)
		__atomic_store_n(&r->limit, limit, __ATOMIC_RELAXED);
}

static void update_all_credit(struct loop_consumer *c)
{
	for (uint64_t left = __atomic_load_n(&c->active, __ATOMIC_ACQUIRE); left; left &= left - 1)
		update_credit(c, c->rings[__builtin_ctzll(left)]);
}

int loop_post_recv(void *arg, uint32_t n)
{
	struct loop_consumer *c = arg;

	if (n > c->depth - (c->n_posted - c->n_used))
		return -ENOSPC;
	c->n_posted += n;
	update_all_credit(c);
	return 0;
}

int loop_post_recv_data(void *arg, const struct gantry_recv *recvs, uint32_t n)
{
	struct loop_consumer *c = arg;

	if (n > c->depth - (c->n_posted - c->n_used))
		return -ENOSPC;
	for (uint32_t i = 0; i < n; i++)
		c->posts[(c->n_posted + i) & c->mask] = recvs[i];
	return loop_post_recv(c, n);
}

static __attribute__((noinline)) void copy_data(struct loop_consumer *c, struct loop_ring *r,
						uint32_t index, const struct gantry_recv *post,
						struct gantry_msg *out)
{
	const struct loop_msg *m = &r->msgs[index];
	const uint8_t *region = r->regions[index];

	if (m->length > post->length || !post->buf) {
		out->status = -EMSGSIZE;
		return;
	}
	/*
	 * Pairs with loop_producer_destroy(): each side stores its own word and then loads the word
	 * of the other side. All four accesses are seq_cst.
	 */
	if (region) {
		__atomic_store_n(&r->copying, 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&r->gone, __ATOMIC_SEQ_CST))
			/* the producer is destroyed, so its region might be unmapped */
			out->status = -EFAULT;
		else
			memcpy(post->buf, region, m->length);
		__atomic_store_n(&r->copying, 0, __ATOMIC_SEQ_CST);
		if (out->status)
			return;
	} else {
		memcpy(post->buf, r->inline_data + (size_t)index * r->max_data, m->length);
	}
	out->length = m->length;
	gantry_count(c->payload, m->length);
}

static uint32_t take(struct loop_consumer *c, struct loop_ring *r, struct gantry_msg *msgs,
		     uint32_t max)
{
	/* Load `gone` before `head`: if `gone` is set, `head` includes the last message. */
	uint32_t gone = __atomic_load_n(&r->gone, __ATOMIC_ACQUIRE);
	uint32_t head = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE), tail = r->tail, n = 0;

	for (; n < max && tail + n != head && c->n_used != c->n_posted; n++, c->n_used++) {
		const struct gantry_recv *post = &c->posts[c->n_used & c->mask];
		uint32_t index = (tail + n) & r->mask;
		const struct loop_msg *m = &r->msgs[index];
		struct gantry_msg *out = &msgs[n];

		memcpy(out->imm, m->imm, sizeof(out->imm));
		out->imm_len = m->imm_len;
		out->status = 0;
		out->length = 0;
		out->cookie = post->cookie;
		if (gantry_unlikely(m->length))
			copy_data(c, r, index, post, out);
	}
	if (n) {
		__atomic_store_n(&r->tail, tail + n, __ATOMIC_RELEASE);
		update_credit(c, r);
	} else if (gone && tail == head) {
		__atomic_fetch_and(&c->active, ~(1ull << r->number), __ATOMIC_RELAXED);
		__atomic_store_n(&r->detached, 1, __ATOMIC_RELEASE);
	}
	return n;
}

int loop_poll_recv(void *arg, struct gantry_msg *msgs, uint32_t max)
{
	struct loop_consumer *c = arg;
	uint64_t all = __atomic_load_n(&c->active, __ATOMIC_ACQUIRE);
	uint64_t later = all & ((1ull << c->turn) - 1), left = all & ~later;
	uint32_t n = 0;

	/* poll the rings from `turn` to the last, then those from the first to `turn` */
	for (int half = 0; half < 2; half++, left = later)
		for (; left && n < max; left &= left - 1) {
			uint32_t number = (uint32_t)__builtin_ctzll(left);

			n += take(c, c->rings[number], msgs + n, max - n < 64 ? max - n : 64);
			c->turn = (number + 1) % LOOP_RINGS;
		}
	if (!n) /* a new ring has no credit yet */
		update_all_credit(c);
	return (int)n;
}

int loop_consumer_arm(void *arg)
{
	struct loop_consumer *c = arg;
	int work = 0;

	c->armed = true;
	update_all_credit(c);
	for (uint64_t left = __atomic_load_n(&c->active, __ATOMIC_ACQUIRE); left;
	     left &= left - 1) {
		struct loop_ring *r = c->rings[__builtin_ctzll(left)];

		__atomic_store_n(&r->asleep, 1, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		work |= __atomic_load_n(&r->head, __ATOMIC_ACQUIRE) != r->tail &&
			c->n_used != c->n_posted;
	}
	return work;
}

void loop_consumer_disarm(void *arg)
{
	struct loop_consumer *c = arg;
	uint64_t n;

	if (!c->armed)
		return;
	c->armed = false;
	for (uint64_t left = __atomic_load_n(&c->active, __ATOMIC_ACQUIRE); left; left &= left - 1)
		__atomic_store_n(&c->rings[__builtin_ctzll(left)]->asleep, 0, __ATOMIC_RELAXED);
	if (read(c->bell, &n, sizeof(n)) < 0)
		return; /* the bell was not rung */
}

/*
 * Show the local peer of the consumer to the producer of a ring, if the producer runs on the same
 * thread. While a ring is not empty it shows no peer, because a call of the peer would overtake the
 * messages in the ring. If the producer runs on another thread, that thread reads r->peer, so this
 * thread must not write it.
 */
void loop_ring_set_peer(struct loop_ring *r, const struct loop_consumer *c)
{
	if (c->thread && c->thread == r->thread)
		r->peer = r->tail == r->head ? c->peer : NULL;
}

void loop_consumer_set_local_peer(void *arg, struct gantry_local_peer *peer)
{
	struct loop_consumer *c = arg;

	c->peer = peer;
	for (uint64_t left = __atomic_load_n(&c->active, __ATOMIC_ACQUIRE); left; left &= left - 1)
		loop_ring_set_peer(c->rings[__builtin_ctzll(left)], c);
}

struct gantry_local_peer *const *loop_producer_local_peer(void *arg)
{
	return &((struct loop_producer *)arg)->ring->peer;
}

int loop_consumer_fd(void *arg)
{
	return ((struct loop_consumer *)arg)->bell;
}

void loop_flush(void *arg)
{
	struct loop_producer *p = arg;
	uint64_t one = 1;

	if (!p->unrung)
		return;
	p->unrung = false;
	/*
	 * The message is published before the flag is read. The consumer sets the flag before it
	 * reads the ring: loop_consumer_arm().
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&p->ring->asleep, __ATOMIC_RELAXED) &&
	    write(p->ring->bell, &one, sizeof(one)) < 0)
		return; /* the bell has already been rung */
}

/*
 * Load the credit that the consumer has published since the last load. Returns true if the next
 * message can be sent.
 */
static __attribute__((noinline)) bool refresh(struct loop_producer *p)
{
	const struct loop_ring *r = p->ring;
	uint32_t limit = __atomic_load_n(&r->limit, __ATOMIC_RELAXED);
	/* pairs with take(): the consumer has read these slots */
	uint32_t full = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) + r->mask + 1;

	p->end = (int32_t)(limit - full) < 0 ? limit : full;
	if ((int32_t)(p->end - p->head) > 0)
		return true;
	p->end = p->head;
	return false;
}

/*
 * The ring has no free slot or no credit. Rings the bell: the caller waits for the consumer, so the
 * consumer must not sleep.
 */
static __attribute__((noinline)) int ring_full(struct loop_producer *p)
{
	if (p->unrung)
		loop_flush(p);
	return -EAGAIN;
}

static int find_region(const struct loop_producer *p, const struct gantry_send *s,
		       const uint8_t **at_p)
{
	for (unsigned int i = 0; i < LOOP_REGIONS; i++) {
		const struct loop_export *e = &p->conn->exports[i];

		if (__atomic_load_n(&e->region, __ATOMIC_ACQUIRE) != s->region ||
		    !(e->rights & GANTRY_REMOTE_READ))
			continue;
		if (!gantry_range_ok(s->region_offset, s->length, e->length))
			return -EINVAL;
		*at_p = e->addr + s->region_offset;
		return 0;
	}
	return -EINVAL;
}

/* Store the data of the next message, which has slot `index`. */
static __attribute__((noinline)) int put_data(struct loop_producer *p, const struct gantry_send *s,
					      uint32_t index)
{
	struct loop_ring *r = p->ring;
	int rc;

	if (s->length > p->max_data)
		return -EMSGSIZE;
	r->regions[index] = NULL;
	if (!s->region) {
		if (!s->data)
			return -EINVAL;
		if (s->length > r->max_data)
			return -EMSGSIZE;
		memcpy(r->inline_data + (size_t)index * r->max_data, s->data, s->length);
		return 0;
	}
	if (p->cookie_head - p->cookie_tail > r->mask)
		return ring_full(p);
	rc = find_region(p, s, &r->regions[index]);
	if (rc == 0)
		p->cookies[p->cookie_head++ & r->mask] = (struct loop_cookie){.cookie = s->cookie,
									      .end = p->head + 1};
	return rc;
}

static bool gone(const struct loop_producer *p)
{
	return __atomic_load_n(&p->conn->lost, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&p->ring->closed, __ATOMIC_RELAXED);
}

/* Send a message. data: its data, or NULL. */
static inline __attribute__((always_inline)) int send_any(struct loop_producer *p, const void *imm,
							  uint32_t imm_len,
							  const struct gantry_send *data,
							  uint32_t flags)
{
	struct loop_ring *r = p->ring;
	uint32_t index = p->head & r->mask;
	struct loop_msg *m = &r->msgs[index];
	int rc;

	if (gantry_unlikely(gone(p)))
		return -ENOTCONN;
	if (gantry_unlikely(imm_len > GANTRY_IMM_MAX))
		return -EINVAL;
	if (gantry_unlikely(p->end == p->head) && !refresh(p))
		return ring_full(p);
	if (data) {
		rc = put_data(p, data, index);
		if (rc)
			return rc;
	}
	if (gantry_likely(imm_len == GANTRY_IMM_MAX))
		/* constant size: compiled to moves without a call */
		memcpy(m->imm, imm, GANTRY_IMM_MAX);
	else if (imm_len)
		memcpy(m->imm, imm, imm_len);
	m->imm_len = imm_len;
	m->length = data ? data->length : 0;
	__atomic_store_n(&r->head, ++p->head, __ATOMIC_RELEASE);
	p->unrung = true;
	if (!(flags & GANTRY_SEND_MORE))
		loop_flush(p);
	return 0;
}

int loop_send(void *arg, const void *imm, uint32_t imm_len, uint32_t flags)
{
	return send_any(arg, imm, imm_len, NULL, flags);
}

int loop_send_data(void *arg, const struct gantry_send *s, uint32_t flags)
{
	return send_any(arg, s->imm, s->imm_len, s->length ? s : NULL, flags);
}

int loop_poll_send(void *arg, uint64_t *cookies, uint32_t max)
{
	struct loop_producer *p = arg;
	struct loop_ring *r = p->ring;
	uint32_t tail = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE), n = 0;

	for (; n < max && p->cookie_tail != p->cookie_head; p->cookie_tail++) {
		const struct loop_cookie *c = &p->cookies[p->cookie_tail & r->mask];

		if ((int32_t)(tail - c->end) < 0)
			break;
		cookies[n++] = c->cookie;
	}
	return (int)n;
}
