/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_consumer.c - the receiving lane: takes messages out of the rings, returns credit, and sleeps.
 *
 * A hostile peer can change the content of a ring at any time. So each word is loaded once into
 * private memory, checked there, and used from there.
 */
#include <errno.h>
#include <string.h>

#include "shm_comch.h"

#define BUDGET 64u          /* limit of the messages of one ring per call */
#define AHEAD 8u            /* trailers to check before the first of their slots is taken */
#define STRAY_WAKES 4u      /* wake-ups without a message after which the lane clears the bell */
#define SKIPPED 0x80000000u /* flag in a number of slots: the message in them was withdrawn */

enum ready { RING_EMPTY, RING_READY, RING_BROKEN };

/* Evaluate the trailer of the next slot. */
static enum ready check_trailer(const struct comch_in *in, uint64_t word)
{
	uint32_t seq = (uint32_t)word, expected = (uint32_t)in->position + 1;

	if (gantry_likely(seq == expected))
		return RING_READY;
	if (seq == (in->position <= in->mask ? 0 : expected - (in->mask + 1)))
		return RING_EMPTY;
	return RING_BROKEN;
}

static const struct comch_slot *slot_at(const struct comch_in *in, uint64_t position)
{
	return &in->slots[position & in->mask];
}

/*
 * Returns the slot at `position`; NULL: it does not continue the message. Needs no acquire: take()
 * has loaded the first slot with an acquire, and the producer publishes that slot last.
 */
static const struct comch_slot *continuation_slot(const struct comch_in *in, uint64_t position)
{
	const struct comch_slot *slot = slot_at(in, position);

	return gantry_shm_ld64(&slot->trailer) == comch_more_word(position) ? slot : NULL;
}

static bool fits(const struct gantry_recv *post, uint32_t length, struct gantry_msg *msg)
{
	if (length > post->length || !post->buf) {
		msg->status = -EMSGSIZE;
		return false;
	}
	msg->length = length;
	return true;
}

/* Copy less than a word. */
static __attribute__((noinline)) void copy_bytes(char *to, const uint8_t *from, uint32_t bytes)
{
	uint64_t word;

	gantry_shm_read(&word, from, sizeof(word));
	gantry_copy_fresh(to, &word, bytes);
}

/* Copy up to 7 words directly to the user: data is not checked, so it needs no private copy. */
static inline void take_words(char *to, const uint8_t *from, uint32_t bytes)
{
	if (bytes & 32) {
		gantry_shm_read(to, from, 32);
		to += 32;
		from += 32;
	}
	if (bytes & 16) {
		gantry_shm_read(to, from, 16);
		to += 16;
		from += 16;
	}
	if (bytes & 8)
		gantry_shm_read(to, from, 8);
}

/* Copy the last slot of a message, if it is not full. */
static inline void take_last_slot(char *to, const uint8_t *from, uint32_t bytes)
{
	const uint32_t words = bytes & ~7u;

	take_words(to, from, words);
	if (gantry_unlikely(bytes != words))
		copy_bytes(to + words, from + words, bytes - words);
}

/* Take inline data, whose first part is in msg->imm. Returns the number of slots; 0: corrupt. */
static uint32_t take_inline(struct comch_consumer *c, const struct comch_in *in,
			    struct comch_trailer t, const struct gantry_recv *post,
			    struct gantry_msg *msg)
{
	uint32_t at = comch_inline_here(t.imm_len, t.length), n = 1;
	char *to = fits(post, t.length, msg) ? post->buf : NULL;

	if (to && at == COMCH_BEHIND_WORD)
		gantry_copy_fresh(to, msg->imm + t.imm_len, COMCH_BEHIND_WORD);
	else if (to)
		gantry_copy_fresh(to, msg->imm + t.imm_len, at);
	for (; at < t.length; at += COMCH_SLOT_PAYLOAD, n++) {
		const struct comch_slot *slot = continuation_slot(in, in->position + n);
		uint32_t rest = t.length - at;

		if (!slot)
			return 0;
		if (to && rest >= COMCH_SLOT_PAYLOAD)
			gantry_shm_read(to + at, slot->payload, COMCH_SLOT_PAYLOAD);
		else if (to)
			take_last_slot(to + at, slot->payload, rest);
	}
	if (to)
		gantry_count(c->payload, t.length);
	return n;
}

/*
 * Take a message of two slots. `slot` is the first. The data is not checked, so it is copied
 * directly into the buffer. Returns the number of slots; 0: corrupt.
 */
static inline __attribute__((always_inline)) uint32_t take_pair(
	struct comch_consumer *c, const struct comch_in *in, const struct comch_slot *slot,
	uint32_t length, const struct gantry_recv *post, struct gantry_msg *msg)
{
	const struct comch_slot *second = continuation_slot(in, in->position + 1);
	char *const to = post->buf;

	if (gantry_unlikely(!second || length > c->max_data))
		return 0;
	gantry_shm_read(msg->imm, slot->payload, 8);
	msg->imm_len = 8;
	msg->status = 0;
	msg->length = 0;
	msg->cookie = post->cookie;
	if (gantry_likely(fits(post, length, msg))) {
		gantry_shm_read(to, slot->payload + 8, COMCH_BEHIND_WORD);
		take_words(to + COMCH_BEHIND_WORD, second->payload, length - COMCH_BEHIND_WORD);
		gantry_count(c->payload, length);
	}
	return 2;
}

/*
 * Copy from a region of the peer. The control thread does not unmap the region while `copying`
 * names it, and this lane reads the state after it has set `copying`. Pairs with comch_on_revoke()
 * and sign_off(): each side stores its own word and then loads the word of the other side. All four
 * accesses are seq_cst.
 */
static int copy_region(struct comch_consumer *c, const struct comch_region_send *from,
		       const struct gantry_recv *post, struct gantry_msg *msg)
{
	uint32_t slot = COMCH_REF_SLOT(from->ref), state, ref;
	const struct comch_import *r = &c->conn->imported[slot];
	int rc = 0;

	__atomic_store_n(&c->copying, slot + 1, __ATOMIC_SEQ_CST);
	state = __atomic_load_n(&r->state, __ATOMIC_SEQ_CST);
	ref = __atomic_load_n(&r->ref, __ATOMIC_RELAXED);
	if (state == COMCH_I_LIVE && ref == from->ref && r->addr) {
		if (!(r->rights & GANTRY_REMOTE_READ) ||
		    !gantry_range_ok(from->offset, from->length, r->length))
			rc = -EPROTO;
		else if (fits(post, from->length, msg))
			memcpy(post->buf, (const char *)r->addr + from->offset, from->length);
	} else if (COMCH_REF_GENERATION(from->ref) == 0 ||
		   COMCH_REF_GENERATION(from->ref) > COMCH_REF_GENERATION(ref)) {
		rc = -EPROTO; /* the peer never exported the region */
	} else {
		/* the region was revoked before it was read, or mapping it failed */
		msg->status = -EFAULT;
	}
	__atomic_store_n(&c->copying, 0, __ATOMIC_RELEASE);
	if (rc == 0 && msg->status == 0)
		gantry_count(c->payload, from->length);
	return rc;
}

/*
 * Called after data of a region was copied. Returns true if the message has been withdrawn, so that
 * the data might have changed during the copy. Pairs with comch_withdraw().
 */
static bool is_withdrawn(const struct comch_in *in)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return comch_trailer_unpack(gantry_shm_ld64(&slot_at(in, in->position)->trailer)).length ==
	       COMCH_WITHDRAWN;
}

/*
 * Skip a withdrawn message. Returns the number of slots with SKIPPED; 0: corrupt. A skip beyond the
 * slots that the last credit permits is a protocol error. This check limits the number of messages
 * that a hostile peer can make one call skip.
 */
static uint32_t skip(const struct comch_in *in, uint32_t slots)
{
	return (uint32_t)in->position + slots - in->given_tail > in->mask + 1 ? 0 : slots | SKIPPED;
}

/*
 * Take a message with data of a region. msg->imm has the payload of the first slot. Returns the
 * number of slots; with SKIPPED: it was withdrawn; 0: corrupt.
 */
static __attribute__((noinline)) uint32_t take_region(struct comch_consumer *c, struct comch_in *in,
						      struct comch_trailer t,
						      const struct gantry_recv *post,
						      struct gantry_msg *msg)
{
	const struct comch_slot *slot;
	struct comch_region_send from;
	uint32_t n = 1;

	memcpy(&from, msg->imm, sizeof(from));
	if (t.kind == COMCH_K_REGION) {
		if (t.imm_len > COMCH_REGION_IMM)
			return 0;
		memmove(msg->imm, msg->imm + sizeof(from), COMCH_REGION_IMM);
	} else {
		slot = continuation_slot(in, in->position + 1);
		if (!slot)
			return 0;
		gantry_shm_read(msg->imm, slot->payload, COMCH_SLOT_PAYLOAD);
		n = 2;
	}
	if (from.length == 0 || from.length > c->max_data)
		return 0;
	if (t.length == COMCH_WITHDRAWN) /* leave the buffer unchanged for the next message */
		return skip(in, n);
	in->copied = true;
	if (copy_region(c, &from, post, msg))
		return 0;
	return is_withdrawn(in) ? skip(in, n) : n;
}

/*
 * Take a message of any kind. word: its trailer. Returns the number of slots; with SKIPPED: it was
 * withdrawn; 0: corrupt.
 */
static __attribute__((noinline)) uint32_t take_any(struct comch_consumer *c, struct comch_in *in,
						   uint64_t word, const struct gantry_recv *post,
						   struct gantry_msg *msg)
{
	struct comch_trailer t = comch_trailer_unpack(word);

	if (gantry_unlikely(t.imm_len > GANTRY_IMM_MAX))
		return 0;
	gantry_shm_read(msg->imm, slot_at(in, in->position)->payload, COMCH_SLOT_PAYLOAD);
	msg->imm_len = t.imm_len;
	msg->status = 0;
	msg->length = 0;
	msg->cookie = post->cookie;
	if (t.kind == COMCH_K_INLINE)
		return t.length && t.length <= c->max_data && t.length <= COMCH_INLINE_MAX
			       ? take_inline(c, in, t, post, msg)
			       : 0;
	if ((t.kind == COMCH_K_REGION || t.kind == COMCH_K_REGION2) && t.length <= COMCH_WITHDRAWN)
		return take_region(c, in, t, post, msg);
	return t.kind == COMCH_K_IMM && t.length == 0;
}

/*
 * Returns the number of consecutive slots full of immediate data, up to max. The caller has checked
 * the first trailer. Each line must be fetched from the producer's CPU. The function reads only
 * trailers, so that the CPU fetches all lines at the same time. On a CPU that can reorder loads,
 * one fence follows all loads: an acquire for each load would make the next load wait.
 */
#ifdef __x86_64__
#define ld64_ahead gantry_shm_ld64_acquire
#define acquire_ahead() (void)0
#else
#define ld64_ahead gantry_shm_ld64
#define acquire_ahead() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#endif
static inline uint32_t count_full(const struct comch_in *in, uint32_t max)
{
	uint32_t n = 1;

	while (n < max && ld64_ahead(&slot_at(in, in->position + n)->trailer) ==
				  comch_full_word(in->position + n))
		n++;
	if (n > 1)
		acquire_ahead();
	return n;
}

/* Take n slots whose trailers have been checked. */
static inline void take_full(const struct comch_consumer *c, struct comch_in *in,
			     struct gantry_msg *msgs, uint32_t used, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct gantry_msg *msg = &msgs[i];

		gantry_shm_read(msg->imm, slot_at(in, in->position + i)->payload,
				COMCH_SLOT_PAYLOAD);
		msg->imm_len = COMCH_SLOT_PAYLOAD;
		msg->status = 0;
		msg->length = 0;
		msg->cookie = c->posts[(used + i) & c->post_mask].cookie;
	}
	in->last_slots = 1;
	in->position += n;
}

/* Take up to max messages of one ring. Returns their number, or -EPROTO. */
static inline __attribute__((always_inline)) int take(struct comch_consumer *c, struct comch_in *in,
						      struct gantry_msg *msgs, uint32_t max)
{
	const uint32_t first = c->n_used, left = c->n_posted - first;
	enum ready ready = RING_READY;
	uint32_t n = 0;

	if (max > left)
		max = left;
	while (n < max) {
		const struct comch_slot *slot = slot_at(in, in->position);
		const struct gantry_recv *post;
		uint32_t most, full, slots;
		uint64_t word;

		/* the next message probably also has several slots: prefetch its second slot */
		if (in->last_slots > 1)
			__builtin_prefetch(slot_at(in, in->position + 1));
		/* pairs with the release of put(), put_full(), ... in shm_producer.c */
		word = gantry_shm_ld64_acquire(&slot->trailer);
		if (gantry_likely(word == comch_full_word(in->position))) {
			most = max - n < AHEAD ? max - n : AHEAD;
			full = count_full(in, most);
			take_full(c, in, msgs + n, first + n, full);
			n += full;
			if (full < most)
				break;
			continue;
		}
		ready = check_trailer(in, word);
		if (ready != RING_READY)
			break;
		post = &c->posts[(first + n) & c->post_mask];
		if (comch_is_pair(in->position, word)) {
			slots = take_pair(c, in, slot, (uint32_t)(word >> 48), post, &msgs[n]);
		} else {
			slots = take_any(c, in, word, post, &msgs[n]);
			if (gantry_unlikely(slots & SKIPPED)) {
				in->position += slots & ~SKIPPED;
				in->taken++;
				continue;
			}
		}
		in->last_slots = slots;
		if (gantry_unlikely(!slots)) {
			ready = RING_BROKEN;
			break;
		}
		in->position += slots;
		n++;
	}
	if (n == 0)
		/* deliver the intact messages first; the next call detects the corruption again */
		return ready == RING_BROKEN ? -EPROTO : 0;
	in->taken += n;
	__atomic_store_n(&c->n_used, first + n, __ATOMIC_RELAXED);
	return (int)n;
}

/*
 * Publish the credit of a producer. Never lower the limit: a receive is credit for each of several
 * producers, until one of them uses it.
 */
static void publish_credit(struct comch_consumer *c, struct comch_in *in)
{
	uint32_t tail = (uint32_t)in->position, limit = in->taken + (c->n_posted - c->n_used);

	if ((int32_t)(limit - in->given_limit) < 0)
		limit = in->given_limit;
	if (tail == in->given_tail && limit == in->given_limit)
		return;
	in->copied = false;
	in->given_tail = tail;
	in->given_limit = limit;
	/* pairs with refresh() of the producer */
	gantry_shm_st64_release(&in->line->credit, comch_credit_pack(tail, limit));
}

/*
 * Publish credit when a batch of receives is free, when the producer has no credit left, when it
 * waits for the end of a copy, or when a quarter of its ring has been consumed.
 */
static inline void publish_in_batches(struct comch_consumer *c, struct comch_in *in)
{
	uint32_t limit = in->taken + (c->n_posted - c->n_used);

	if ((int32_t)(limit - in->given_limit) >= (int32_t)c->credit_batch ||
	    in->given_limit == in->taken || in->copied ||
	    (uint32_t)in->position - in->given_tail > in->mask / 4)
		publish_credit(c, in);
	else
		c->dirty = true;
}

static void publish_all_credit(struct comch_consumer *c)
{
	c->dirty = false;
	for (uint64_t left = __atomic_load_n(&c->active, __ATOMIC_ACQUIRE); left; left &= left - 1)
		publish_credit(c, c->in[__builtin_ctzll(left)]);
}

static void detach_ring(struct comch_consumer *c, uint32_t number)
{
	struct comch_in *in = c->in[number];

	c->known &= ~(1ull << number);
	__atomic_fetch_and(&c->active, ~(1ull << number), __ATOMIC_RELAXED);
	/* from here on the control thread can free the ring: free_line() */
	__atomic_store_n(&in->detached, 1, __ATOMIC_RELEASE);
}

static int fail_consumer(struct comch_consumer *c)
{
	c->broken = true;
	comch_conn_poison(c->conn, COMCH_CORRUPT_RECEIVE);
	return -EPROTO;
}

/* Poll one ring. Messages before a corruption are delivered first. */
static inline __attribute__((always_inline)) int poll_ring(struct comch_consumer *c,
							   uint32_t number, struct gantry_msg *msgs,
							   uint32_t max)
{
	struct comch_in *in = c->in[number];
	/* load before the slots: pairs with comch_on_producer_gone() */
	uint32_t gone = __atomic_load_n(&in->gone, __ATOMIC_ACQUIRE);
	int n = take(c, in, msgs, max);

	if (gantry_unlikely(n < 0))
		return fail_consumer(c);
	if (n > 0) {
		publish_in_batches(c, in);
	} else if (gantry_unlikely(gone) && c->n_used != c->n_posted) {
		detach_ring(c, number);
	}
	return n;
}

/*
 * Called after messages have arrived. The second call without a sleep in between shows that the
 * lane polls, so it cancels the request to ring.
 */
static void on_messages(struct comch_consumer *c)
{
	if (c->asks++ == 1)
		return;
	c->asks = 0;
	gantry_shm_st32(&c->page->asleep.asleep, 0);
	if (c->clears)
		comch_bell_clear(c->conn, c->bell);
}

static __attribute__((noinline)) int poll_one_of(struct comch_consumer *c, uint32_t number,
						 struct gantry_msg *msgs, uint32_t max)
{
	return poll_ring(c, number, msgs, max);
}

/* Poll all rings, starting after the ring that was first in the last call. */
static __attribute__((noinline)) int poll_rings(struct comch_consumer *c, uint64_t left,
						struct gantry_msg *msgs, uint32_t max)
{
	uint64_t from = left & ~((2ull << c->next) - 1);
	uint32_t n = 0;

	c->next = (uint32_t)__builtin_ctzll(from ? from : left);
	for (uint32_t number = c->next; left && n < max;) {
		int got = poll_one_of(c, number, msgs + n, max - n < BUDGET ? max - n : BUDGET);

		if (gantry_unlikely(got < 0))
			return n ? (int)n : got;
		n += (uint32_t)got;
		left &= ~(1ull << number);
		if (left) {
			from = number == 63 ? 0 : left & ~((2ull << number) - 1);
			number = (uint32_t)__builtin_ctzll(from ? from : left);
		}
	}
	return (int)n;
}

int comch_poll_recv(void *arg, struct gantry_msg *msgs, uint32_t max)
{
	struct comch_consumer *c = arg;
	uint64_t left = __atomic_load_n(&c->active, __ATOMIC_ACQUIRE); /* pairs with attach() */
	int n;

	if (gantry_unlikely(c->broken))
		return -EPROTO;
	if (gantry_unlikely(left != c->known)) { /* a new ring has no credit yet */
		c->known = left;
		c->dirty = true;
	}
	if (gantry_unlikely(!left || !max))
		n = 0;
	else if (gantry_likely(!(left & (left - 1))))
		n = poll_ring(c, (uint32_t)__builtin_ctzll(left), msgs,
			      max < BUDGET ? max : BUDGET);
	else
		n = poll_rings(c, left, msgs, max);
	if (n == 0 && c->dirty)
		publish_all_credit(c);
	if (gantry_unlikely(c->asks) && n > 0)
		on_messages(c);
	return n;
}

int comch_post_recv(void *arg, uint32_t n)
{
	struct comch_consumer *c = arg;

	if (n > c->depth - (c->n_posted - c->n_used))
		return -ENOSPC;
	__atomic_store_n(&c->n_posted, c->n_posted + n, __ATOMIC_RELAXED);
	for (uint64_t left = __atomic_load_n(&c->active, __ATOMIC_ACQUIRE); left; left &= left - 1)
		publish_in_batches(c, c->in[__builtin_ctzll(left)]);
	return 0;
}

int comch_post_recv_data(void *arg, const struct gantry_recv *recvs, uint32_t n)
{
	struct comch_consumer *c = arg;
	const uint32_t first = c->n_posted;

	if (n > c->depth - (first - c->n_used))
		return -ENOSPC;
	c->post_mask = c->posts_last;
	for (uint32_t i = 0; i < n; i++)
		c->posts[(first + i) & c->posts_last] = recvs[i];
	return comch_post_recv(c, n);
}

static bool has_work(const struct comch_consumer *c)
{
	if (c->broken)
		return true;
	if (c->n_used == c->n_posted)
		return false;
	for (uint64_t left = __atomic_load_n(&c->active, __ATOMIC_ACQUIRE); left;
	     left &= left - 1) {
		const struct comch_in *in = c->in[__builtin_ctzll(left)];

		if (check_trailer(in, gantry_shm_ld64_acquire(
					      &slot_at(in, in->position)->trailer)) != RING_EMPTY)
			return true;
	}
	return false;
}

/*
 * Request producers to ring the bell. The request stays after the sleep, so a lane that sleeps
 * after each message pays for the fence once. A lane that does not sleep any more cancels it in
 * on_messages().
 */
static int request_bell(struct comch_consumer *c)
{
	int rc;

	if (!c->asks) {
		gantry_shm_st32(&c->page->asleep.asleep, 1);
		/*
		 * Pairs with ring_if_asleep(): either the producer sees the flag, or has_work()
		 * sees its slot. This holds for later sleeps, too, because the flag stays set. A
		 * producer that skips its fence relies on membarrier(2), which issues a fence on
		 * its CPU.
		 */
		gantry_shm_fence();
		rc = c->conn->membarrier ? comch_membarrier() : 0;
		if (rc) {
			gantry_shm_st32(&c->page->asleep.asleep, 0);
			return rc;
		}
	}
	c->asks = 1;
	return 0;
}

int comch_consumer_arm(void *arg)
{
	struct comch_consumer *c = arg;

	publish_all_credit(c);
	if (request_bell(c))
		return 1;
	return has_work(c);
}

/*
 * Clear the bell of a consumer that needs it. A consumer without a message assumes that another
 * queue woke the lane, and skips the system call. But a bell that was rung without a message would
 * wake the lane without end. So the STRAY_WAKES-th wake-up without a message clears the bell.
 */
void comch_consumer_disarm(void *arg)
{
	struct comch_consumer *c = arg;

	if (!c->clears || !c->asks || (c->asks == 1 && !has_work(c) && ++c->unsure < STRAY_WAKES))
		return;
	c->unsure = 0;
	comch_bell_clear(c->conn, c->bell);
}

int comch_consumer_fd(void *arg)
{
	return ((struct comch_consumer *)arg)->bell;
}
