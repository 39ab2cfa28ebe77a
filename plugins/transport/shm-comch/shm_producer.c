/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_producer.c - the sending lane: writes messages into its ring, and rings the bell of a
 * consumer that sleeps.
 */
#include <errno.h>
#include <string.h>

#include "shm_comch.h"

static inline void ring_if_asleep(struct comch_producer *p)
{
	if (p->unrung)
		p->unrung = false;
	/*
	 * The slot is published before the flag is read. Pairs with request_bell() in
	 * shm_consumer.c, which sets the flag before it reads the slot. If p->fence is not set,
	 * request_bell() uses membarrier(2), which issues a fence on this CPU. Then only the
	 * compiler must keep the order.
	 */
	if (gantry_unlikely(p->fence))
		gantry_shm_fence();
	else
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (gantry_unlikely(gantry_shm_ld32(p->asleep)))
		comch_bell_ring(p->conn, p->bell);
}

static inline bool has_room(const struct comch_producer *p, uint32_t n)
{
	return p->limit != (uint32_t)p->position - p->more &&
	       p->position + n - p->tail <= (uint64_t)p->mask + 1;
}

/*
 * Load the credit that the consumer has published since the last load. Returns true if a message of
 * n slots can be sent.
 */
static bool refresh(struct comch_producer *p, uint32_t n)
{
	/* pairs with comch_on_producer_ok() */
	const struct comch_line *line = __atomic_load_n(&p->line, __ATOMIC_ACQUIRE);
	uint32_t tail, limit;
	uint64_t credit;

	if (!line)
		return false;
	/* pairs with publish_credit(): the consumer has read the slots before `tail` */
	credit = gantry_shm_ld64_acquire(&line->credit);
	tail = (uint32_t)credit;
	limit = (uint32_t)(credit >> 32);
	if (gantry_unlikely(tail - (uint32_t)p->tail > (uint32_t)(p->position - p->tail))) {
		comch_conn_poison(p->conn, COMCH_CORRUPT_SEND);
		return false;
	}
	p->tail += tail - (uint32_t)p->tail;
	if ((int32_t)(limit - p->limit) > 0)
		p->limit = limit;
	return has_room(p, n);
}

static __attribute__((noinline)) bool may_send(struct comch_producer *p, uint32_t n)
{
	if (has_room(p, n) || refresh(p, n))
		return true;
	if (p->unrung) /* the caller waits for credit, so the consumer must not sleep */
		ring_if_asleep(p);
	return false;
}

static inline void put(struct comch_producer *p, uint64_t position, const void *payload,
		       struct comch_trailer t)
{
	struct comch_slot *slot = &p->slots[position & p->mask];

	t.seq = (uint32_t)position + 1;
	gantry_shm_write(slot->payload, payload, COMCH_SLOT_PAYLOAD);
	gantry_shm_st64_release(&slot->trailer, comch_trailer_pack(t)); /* pairs with take() */
}

/* Store less than a word. */
static __attribute__((noinline)) void put_bytes(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	uint64_t word = 0;

	gantry_copy_fresh(&word, from, bytes);
	gantry_shm_write(to, &word, sizeof(word));
}

/*
 * Store up to 7 words. The rest of the slot keeps data of an earlier message of this producer,
 * which the consumer can read.
 */
static inline void put_words(uint8_t *to, const uint8_t *data, uint32_t bytes)
{
	if (bytes & 32) {
		gantry_shm_write(to, data, 32);
		to += 32;
		data += 32;
	}
	if (bytes & 16) {
		gantry_shm_write(to, data, 16);
		to += 16;
		data += 16;
	}
	if (bytes & 8)
		gantry_shm_write(to, data, 8);
}

/* Store the last slot of a message, if it is not full. */
static inline void put_last_slot(uint8_t *to, const uint8_t *data, uint32_t bytes)
{
	const uint32_t words = bytes & ~7u;

	put_words(to, data, words);
	if (gantry_unlikely(bytes != words))
		put_bytes(to + words, data + words, bytes - words);
}

/* Store the first slot: immediate data, then data. */
static __attribute__((noinline)) void put_mixed(uint8_t *to, const struct gantry_send *s,
						uint32_t here)
{
	uint8_t payload[COMCH_SLOT_PAYLOAD] = {0};

	gantry_copy_fresh(payload, s->imm, s->imm_len);
	gantry_copy_fresh(payload + s->imm_len, s->data, here);
	gantry_shm_write(to, payload, COMCH_SLOT_PAYLOAD);
}

/*
 * Send data inline: after the immediate data, and in the slots that follow. The consumer reads
 * those slots only after it has seen the first slot. So the first slot is stored last, with a
 * release for all of them, which pairs with take().
 */
static int send_inline(struct comch_producer *p, const struct gantry_send *s)
{
	const uint32_t n = comch_more_slots(s->imm_len, s->length),
		       here = comch_inline_here(s->imm_len, s->length);
	const uint8_t *data = (const uint8_t *)s->data + here;
	struct comch_slot *slot;

	if (!has_room(p, n + 1) && !may_send(p, n + 1))
		return -EAGAIN;
	for (uint32_t i = 1, rest = s->length - here; i <= n;
	     i++, rest -= COMCH_SLOT_PAYLOAD, data += COMCH_SLOT_PAYLOAD) {
		slot = &p->slots[(p->position + i) & p->mask];
		if (rest < COMCH_SLOT_PAYLOAD)
			put_last_slot(slot->payload, data, rest);
		else
			gantry_shm_write(slot->payload, data, COMCH_SLOT_PAYLOAD);
		gantry_shm_st64(&slot->trailer, comch_more_word(p->position + i));
	}
	slot = &p->slots[p->position & p->mask];
	if (s->imm_len == 8 && here == COMCH_BEHIND_WORD) {
		gantry_shm_write(slot->payload, s->imm, 8);
		gantry_shm_write(slot->payload + 8, s->data, COMCH_BEHIND_WORD);
	} else {
		put_mixed(slot->payload, s, here);
	}
	gantry_shm_st64_release(&slot->trailer, comch_trailer_pack((struct comch_trailer){
							.seq = (uint32_t)p->position + 1,
							.kind = COMCH_K_INLINE,
							.imm_len = (uint8_t)s->imm_len,
							.length = (uint16_t)s->length}));
	return (int)n + 1;
}

/*
 * Fetch the line of a slot for writing, before the message is complete. The consumer polls the
 * line, so it is in the cache of another CPU.
 */
static inline void fetch_to_write(const struct comch_slot *slot)
{
#ifdef __x86_64__
	/* __builtin_prefetch() would fetch the line for reading */
	__asm__ volatile("prefetchw %0" : : "m"(*slot));
#else
	__builtin_prefetch(slot, 1);
#endif
}

/*
 * Store a message of two slots. The caller has checked the credit. The first slot is stored last;
 * its release covers both.
 */
static inline void put_pair(uint64_t position, struct comch_slot *slot, struct comch_slot *second,
			    const struct gantry_send *s)
{
	const uint8_t *data = s->data;

	put_words(second->payload, data + COMCH_BEHIND_WORD, s->length - COMCH_BEHIND_WORD);
	gantry_shm_st64(&second->trailer, comch_more_word(position + 1));
	gantry_shm_write(slot->payload, s->imm, 8);
	gantry_shm_write(slot->payload + 8, data, COMCH_BEHIND_WORD);
	gantry_shm_st64_release(&slot->trailer, comch_pair_word(position, s->length));
}

/*
 * Returns the index of a region in exported[]; -1: not exported. The user has not revoked the
 * region, so the index stays valid until the message is sent.
 */
static int find_region(struct comch_producer *p, const struct gantry_region *region)
{
	/*
	 * load before the search: if the table changes after this load, the next call searches
	 * again
	 */
	uint32_t epoch = __atomic_load_n(&p->conn->export_epoch, __ATOMIC_ACQUIRE);

	if (p->last_region == region && p->last_epoch == epoch)
		return (int)p->last_slot;
	for (uint32_t i = 0; i < COMCH_REGIONS; i++) {
		const struct comch_export *e = &p->conn->exported[i];
		uint32_t state = __atomic_load_n(&e->state, __ATOMIC_ACQUIRE);

		if ((state != COMCH_E_SENT && state != COMCH_E_LIVE) ||
		    __atomic_load_n(&e->region, __ATOMIC_RELAXED) != region ||
		    !(e->rights & GANTRY_REMOTE_READ))
			continue;
		p->last_region = region;
		p->last_epoch = epoch;
		p->last_slot = i;
		return (int)i;
	}
	return -1;
}

static __attribute__((noinline)) int send_region(struct comch_producer *p,
						 const struct gantry_send *s)
{
	bool one = s->imm_len <= COMCH_REGION_IMM;
	int slots = one ? 1 : 2;
	struct comch_trailer t = {.kind = one ? COMCH_K_REGION : COMCH_K_REGION2,
				  .imm_len = (uint8_t)s->imm_len};
	uint8_t payload[COMCH_SLOT_PAYLOAD] = {0}, imm[COMCH_SLOT_PAYLOAD] = {0};
	struct comch_region_send to;
	const struct comch_export *e;
	int slot = find_region(p, s->region);

	if (slot < 0)
		return -EINVAL;
	e = &p->conn->exported[slot];
	if (!gantry_range_ok(s->region_offset, s->length, e->length))
		return -EINVAL;
	if (!may_send(p, (uint32_t)slots))
		return -EAGAIN;
	if (p->cookie_head - p->cookie_tail > p->cookie_mask ||
	    /* the peer has not mapped the region yet */
	    __atomic_load_n(&e->state, __ATOMIC_ACQUIRE) != COMCH_E_LIVE) {
		if (p->unrung) /* as in may_send(), the caller waits for the peer */
			ring_if_asleep(p);
		return -EAGAIN;
	}
	to = (struct comch_region_send){
		.ref = e->ref, .length = s->length, .offset = s->region_offset};
	memcpy(payload, &to, sizeof(to));
	if (s->imm_len)
		memcpy(one ? payload + sizeof(to) : imm, s->imm, s->imm_len);
	if (!one)
		put(p, p->position + 1, imm, (struct comch_trailer){.kind = COMCH_K_MORE});
	put(p, p->position, payload, t);
	p->cookies[p->cookie_head++ & p->cookie_mask] =
		(struct comch_cookie){.cookie = s->cookie, .end = p->position + (uint32_t)slots};
	return slots;
}

/* Returns the number of slots, or -errno. */
static int send_data(struct comch_producer *p, const struct gantry_send *s)
{
	if (s->length > p->max_data)
		return -EMSGSIZE;
	if (s->region)
		return send_region(p, s);
	if (!s->data)
		return -EINVAL;
	return s->length > COMCH_INLINE_MAX ? -EMSGSIZE : send_inline(p, s);
}

static inline int sent(struct comch_producer *p, uint32_t slots, uint32_t flags)
{
	p->position += slots;
	if (!(flags & GANTRY_SEND_MORE))
		ring_if_asleep(p);
	else if (!p->unrung)
		p->unrung = true;
	return 0;
}

/*
 * The widths of the fields with which a caller stores a descriptor: a few narrow ones, then words.
 */
struct fields {
	uint8_t byte[2];
	uint16_t half;
	uint32_t word[COMCH_SLOT_PAYLOAD / 4 - 1];
} __attribute__((packed, may_alias));

/*
 * Types for wide stores. The fewer stores a message needs, the more messages the CPU can have in
 * its store buffer.
 */
typedef uint32_t two_words __attribute__((vector_size(8), may_alias));
typedef uint32_t four_words __attribute__((vector_size(16), may_alias));

static inline uint32_t first_word(const volatile struct fields *from)
{
	const uint8_t bytes[] = {from->byte[0], from->byte[1]};
	uint32_t half = from->half;

	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
		       ? bytes[0] | (uint32_t)bytes[1] << 8 | half << 16
		       : (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | half;
}

/*
 * Store a slot full of immediate data, which the caller has just stored field by field. The data is
 * loaded in pieces that are not wider than these fields. A wider load could not be forwarded from
 * the store buffer. It would wait until those stores, and the earlier stores to the previous slot,
 * are in the cache. The consumer owns the line of that slot, so two slots would never be in flight
 * at the same time.
 */
static inline void put_full(struct comch_producer *p, const void *imm)
{
	const struct comch_trailer t = {.seq = (uint32_t)p->position + 1,
					.kind = COMCH_K_IMM,
					.imm_len = COMCH_SLOT_PAYLOAD};
	struct comch_slot *slot = &p->slots[p->position & p->mask];
	const volatile struct fields *from = imm;
	volatile four_words *to = (void *)slot->payload;

	to[0] = (four_words){first_word(from), from->word[0], from->word[1], from->word[2]};
	to[1] = (four_words){from->word[3], from->word[4], from->word[5], from->word[6]};
	to[2] = (four_words){from->word[7], from->word[8], from->word[9], from->word[10]};
	*(volatile two_words *)&to[3] = (two_words){from->word[11], from->word[12]};
	gantry_shm_st64_release(&slot->trailer, comch_trailer_pack(t));
}

/* Send a message of immediate data that is not a full slot, or for which has_room() is false. */
static __attribute__((noinline)) int send_imm(struct comch_producer *p, const void *imm,
					      uint32_t imm_len, uint32_t flags)
{
	struct comch_trailer t = {.kind = COMCH_K_IMM, .imm_len = (uint8_t)imm_len};
	uint8_t payload[COMCH_SLOT_PAYLOAD] = {0};

	if (imm_len > GANTRY_IMM_MAX)
		return -EINVAL;
	if (!may_send(p, 1))
		return -EAGAIN;
	if (imm_len)
		memcpy(payload, imm, imm_len);
	put(p, p->position, payload, t);
	return sent(p, 1, flags);
}

static inline bool is_gone(const struct comch_producer *p)
{
	return gantry_unlikely(__atomic_load_n(&p->conn->lost, __ATOMIC_RELAXED) |
			       __atomic_load_n(&p->gone, __ATOMIC_RELAXED));
}

int comch_send(void *arg, const void *imm, uint32_t imm_len, uint32_t flags)
{
	struct comch_producer *p = arg;

	if (is_gone(p))
		return -ENOTCONN;
	if (gantry_unlikely(imm_len != COMCH_SLOT_PAYLOAD || !has_room(p, 1)))
		return send_imm(p, imm, imm_len, flags);
	put_full(p, imm);
	return sent(p, 1, flags);
}

/* Send a message with data of any kind, with all checks. */
static __attribute__((noinline)) int send_any(struct comch_producer *p, const struct gantry_send *s,
					      uint32_t flags)
{
	int slots;

	if (gantry_unlikely(s->imm_len > GANTRY_IMM_MAX))
		return -EINVAL;
	slots = send_data(p, s);
	if (slots < 0)
		return slots;
	p->more += (uint32_t)slots - 1;
	return sent(p, (uint32_t)slots, flags);
}

/* Send a message with data, of two slots in the usual case. */
static __attribute__((noinline)) int send_pair(struct comch_producer *p,
					       const struct gantry_send *s, uint32_t flags)
{
	const uint64_t position = p->position;
	struct comch_slot *slot = &p->slots[position & p->mask],
			  *second = &p->slots[(position + 1) & p->mask];

	if (!has_room(p, 2))
		return send_any(p, s, flags);
	fetch_to_write(second);
	fetch_to_write(slot);
	if (s->imm_len != 8 || !comch_fits_pair(s->length) || s->length > p->max_data ||
	    s->region || !s->data)
		return send_any(p, s, flags);
	put_pair(position, slot, second, s);
	p->more++;
	return sent(p, 2, flags);
}

int comch_send_data(void *arg, const struct gantry_send *s, uint32_t flags)
{
	struct comch_producer *p = arg;
	/*
	 * atomic, so that the compiler does not merge both into one wider load, which put_full()
	 * explains
	 */
	uint32_t imm_len = __atomic_load_n(&s->imm_len, __ATOMIC_RELAXED),
		 length = __atomic_load_n(&s->length, __ATOMIC_RELAXED);

	if (!length)
		return comch_send(p, s->imm, imm_len, flags);
	return is_gone(p) ? -ENOTCONN : send_pair(p, s, flags);
}

/*
 * Fetch the lines of the next slots for writing. A poll of the consumer can take the lines back
 * before the send, so the send fetches them again.
 */
void comch_send_prefetch(void *arg)
{
	const struct comch_producer *p = arg;

	fetch_to_write(&p->slots[(p->position + 1) & p->mask]);
	fetch_to_write(&p->slots[p->position & p->mask]);
}

void comch_flush(void *arg)
{
	struct comch_producer *p = arg;

	if (p->unrung)
		ring_if_asleep(p);
}

/*
 * Mark the messages of regions whose slots the consumer has not returned. The lane has stopped.
 * Slots from p->tail on have not been overwritten, so their trailers belong to these messages.
 */
void comch_withdraw(struct comch_producer *p)
{
	for (uint32_t i = p->cookie_tail; i != p->cookie_head; i++) {
		uint64_t position = p->cookies[i & p->cookie_mask].end - 1;
		struct comch_trailer t;

		if (position < p->tail)
			continue;
		if (p->slots[position & p->mask].trailer == comch_more_word(position))
			position--; /* COMCH_K_REGION2: the message has two slots */
		t = comch_trailer_unpack(p->slots[position & p->mask].trailer);
		t.length = COMCH_WITHDRAWN;
		gantry_shm_st64(&p->slots[position & p->mask].trailer, comch_trailer_pack(t));
	}
	/*
	 * Pairs with is_withdrawn() of the consumer: a consumer that has read data which changes
	 * after this fence finds the mark.
	 */
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

int comch_poll_send(void *arg, uint64_t *cookies, uint32_t max)
{
	struct comch_producer *p = arg;
	uint32_t n = 0;

	if (p->cookie_tail == p->cookie_head)
		return 0;
	if (p->cookies[p->cookie_tail & p->cookie_mask].end > p->tail)
		refresh(p, 1);
	while (n < max && p->cookie_tail != p->cookie_head) {
		const struct comch_cookie *c = &p->cookies[p->cookie_tail & p->cookie_mask];

		if (c->end > p->tail)
			break;
		cookies[n++] = c->cookie;
		p->cookie_tail++;
	}
	return (int)n;
}
