/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost_packed.c - walks a packed virtqueue. Lane's thread.
 *
 *      ... | returned | taken, not returned | available | ...
 *                     ^ used                ^ avail
 *
 * A request is a chain of adjacent descriptors. The device returns it by one descriptor at `used`,
 * with the buffer id of the request, and skips as many descriptors as the chain has. The flags of a
 * descriptor, compared with the wrap counter, tell in which state it is. The word with the flags
 * also has the length and the buffer id, so one load or store has all three.
 *
 * The inflight memory has an entry for each descriptor that was taken. The entries of a request and
 * the free entries form lists. A change of these lists is prepared in entries that the former state
 * does not use, and takes effect by one store:
 *
 *      take    copy the descriptors to free entries -> heads: the entries are not free any more
 *      return  heads, used: new values, and the old ones -> descriptor in the ring
 *              -> the request is not in flight -> heads, used: no old values any more
 */
#include "vhost_chain.h"

#include <errno.h>

#define F_AVAIL (1u << VRING_PACKED_DESC_F_AVAIL)
#define F_USED (1u << VRING_PACKED_DESC_F_USED)

#define WRAP_BIT (1u << VRING_PACKED_EVENT_F_WRAP_CTR)
#define EVENT_FLAGS 3u

/* -- places -- */

/* Advance by n <= num descriptors. */
static struct vhost_packed_at advance_at(struct vhost_packed_at at, uint16_t n, uint16_t num)
{
	at.index = (uint16_t)(at.index + n);
	if (at.index >= num) {
		at.index = (uint16_t)(at.index - num);
		at.wrap = !at.wrap;
	}
	return at;
}

static uint16_t encode_at(struct vhost_packed_at at)
{
	return (uint16_t)(at.index | (at.wrap ? WRAP_BIT : 0));
}

static struct vhost_packed_at decode_at(uint16_t word)
{
	return (struct vhost_packed_at){(uint16_t)(word & (WRAP_BIT - 1)), (word & WRAP_BIT) != 0};
}

static bool is_available(uint16_t flags, bool wrap)
{
	return ((flags & F_AVAIL) != 0) == wrap && ((flags & F_USED) != 0) != wrap;
}

/* -- descriptors -- */

static struct vring_packed_desc load_packed(const struct vring_packed_desc *from)
{
	const uint64_t *word = (const uint64_t *)(const void *)from;
	struct vring_packed_desc d;
	uint64_t details;

	/* with the flags the other words become visible */
	details = le64toh(GANTRY_SHM_LOAD(&word[1], 64, __ATOMIC_ACQUIRE));
	d.addr = le64toh(GANTRY_SHM_LOAD(&word[0], 64, __ATOMIC_RELAXED));
	d.len = (uint32_t)details;
	d.id = (uint16_t)(details >> 32);
	d.flags = (uint16_t)(details >> 48);
	return d;
}

/*
 * Add descriptor k of a chain. In an indirect table each entry belongs to the request, and no flag
 * except that for writes has a meaning.
 */
static int add_packed(struct vhost_ring *ring, const struct vhost_memory *memory,
		      const struct vring_packed_desc *from, uint16_t k, struct vhost_chain *chain)
{
	const struct vring_desc d = {.addr = from->addr, .len = from->len, .flags = from->flags};
	const struct vring_packed_desc *table;
	uint32_t n;

	if ((d.flags & VRING_DESC_F_INDIRECT) == 0)
		return vhost_chain_add(ring, memory, &d, chain);
	if (k != 0 || (d.flags & VRING_DESC_F_NEXT) != 0)
		return vhost_ring_broken(ring, "indirect descriptor is inside a chain", "flags",
					 d.flags);
	table = vhost_ring_indirect(ring, memory, &d, &n);
	if (!table)
		return -1;
	for (uint32_t i = 0; i < n; i++) {
		const struct vring_packed_desc e = load_packed(&table[i]);
		const struct vring_desc entry = {.addr = e.addr, .len = e.len, .flags = e.flags};

		if (vhost_chain_add(ring, memory, &entry, chain) != 0)
			return -1;
	}
	return 0;
}

/* A chain of n descriptors has this buffer id. Returns 0 or -1. */
static int check_id(struct vhost_ring *ring, uint16_t id)
{
	if (id >= ring->num)
		return vhost_ring_broken(ring, "buffer id is not below the size of the ring", "id",
					 id);
	if (ring->packed.buffer[id].n != 0)
		return vhost_ring_broken(ring, "buffer id is in use by another request", "id", id);
	return 0;
}

/* -- the inflight memory -- */

static void store_heads(struct vhost_packed *p, uint16_t head, uint16_t old_head)
{
	const union vhost_inflight_heads heads = {{head, old_head}};

	__atomic_store_n(&p->inflight->heads.word, heads.word, __ATOMIC_RELEASE);
}

static void store_used(struct vhost_packed *p, struct vhost_packed_at at,
		       struct vhost_packed_at old)
{
	const union vhost_inflight_used used = {{at.index, old.index, at.wrap, old.wrap, {0, 0}}};

	__atomic_store_n(&p->inflight->used.word, used.word, __ATOMIC_RELEASE);
}

/* Copy a descriptor to an entry. */
static void keep(struct vhost_inflight_entry *entry, const struct vring_packed_desc *d)
{
	entry->addr = d->addr;
	entry->len = d->len;
	entry->flags = d->flags;
	entry->id = d->id;
}

static void link_entry(struct vhost_packed *p, uint16_t entry, uint16_t next)
{
	p->next[entry] = next;
	__atomic_store_n(&p->inflight->entry[entry].next, next, __ATOMIC_RELAXED);
}

/* The free entries from p->free_head up to buffer->last become a request. */
static void keep_request(struct vhost_ring *ring, struct vhost_packed_buffer *buffer)
{
	struct vhost_packed *p = &ring->packed;
	struct vhost_inflight_entry *first = &p->inflight->entry[p->free_head];

	buffer->first = p->free_head;
	first->num = buffer->n;
	first->last = buffer->last;
	first->counter = ring->counter++;
	__atomic_store_n(&first->inflight, 1, __ATOMIC_RELAXED);
	p->free_head = p->next[buffer->last];
	store_heads(p, p->free_head, p->free_head);
}

/* The entries of a new front end: all are free. */
static void make_entries(struct vhost_ring *ring)
{
	struct vhost_packed *p = &ring->packed;

	for (uint16_t i = 0; i < ring->num; i++)
		link_entry(p, i, (uint16_t)(i + 1));
	store_heads(p, 0, 0);
	store_used(p, p->used, p->used);
	p->inflight->num = ring->num;
	__atomic_store_n(&p->inflight->version, 1, __ATOMIC_RELEASE);
}

/*
 * Finish the return of a request that an earlier process had begun, or undo it: the descriptor at
 * the old place shows whether the guest has got the request. Sets p->used and p->free_head.
 */
static int recover_return(struct vhost_ring *ring)
{
	struct vhost_packed *p = &ring->packed;
	union vhost_inflight_heads heads = {
		.word = __atomic_load_n(&p->inflight->heads.word, __ATOMIC_ACQUIRE)};
	const union vhost_inflight_used used = {
		.word = __atomic_load_n(&p->inflight->used.word, __ATOMIC_ACQUIRE)};
	const struct vhost_packed_at at = {used.used_idx, used.used_wrap_counter & 1},
				     old = {used.old_used_idx, used.old_used_wrap_counter & 1};

	if (at.index >= ring->num || old.index >= ring->num)
		return -EINVAL;
	if ((at.index != old.index || at.wrap != old.wrap) &&
	    !is_available(vhost_load16(&p->desc[old.index].flags, 1), old.wrap)) {
		p->used = at;
		p->free_head = heads.free_head;
	} else {
		p->used = old;
		p->free_head = heads.old_free_head;
	}
	store_heads(p, p->free_head, p->free_head);
	store_used(p, p->used, p->used);
	return 0;
}

/* Find the free entries; is_known: out: of each. Returns their number; -1: the list is a loop. */
static int recover_free(struct vhost_ring *ring, bool *is_known)
{
	struct vhost_packed *p = &ring->packed;
	int n = 0;

	for (uint16_t i = p->free_head; i < ring->num; i = p->next[i], n++) {
		if (is_known[i])
			return -1;
		is_known[i] = true;
		__atomic_store_n(&p->inflight->entry[i].inflight, 0, __ATOMIC_RELAXED);
	}
	return n;
}

/* Find the request that begins at an entry. Returns the number of its entries; -1: it has none. */
static int recover_request(struct vhost_ring *ring, uint16_t first, bool *is_known)
{
	struct vhost_packed *p = &ring->packed;
	const uint16_t n = __atomic_load_n(&p->inflight->entry[first].num, __ATOMIC_RELAXED);

	if (n == 0)
		return -1;
	for (uint16_t k = 0, i = first; k < n; k++, i = p->next[i]) {
		if (i >= ring->num || is_known[i])
			return -1;
		is_known[i] = true;
	}
	p->n_left[first] = n;
	ring->resubmit[ring->n_resubmit++] = first;
	return n;
}

/*
 * Find the requests that an earlier process took and did not return. Each entry is free or part of
 * one request. The front end's base is not used, as for split rings.
 */
static int packed_recover(struct vhost_ring *ring)
{
	struct vhost_packed *p = &ring->packed;
	uint64_t counter[VHOST_RING_MAX];
	bool is_known[VHOST_RING_MAX] = {false};
	int n_free;

	if (__atomic_load_n(&p->inflight->num, __ATOMIC_RELAXED) != ring->num ||
	    recover_return(ring) != 0)
		return -EINVAL;
	for (uint16_t i = 0; i < ring->num; i++) {
		p->next[i] = __atomic_load_n(&p->inflight->entry[i].next, __ATOMIC_RELAXED);
		counter[i] = __atomic_load_n(&p->inflight->entry[i].counter, __ATOMIC_RELAXED);
	}
	n_free = recover_free(ring, is_known);
	if (n_free < 0)
		return -EINVAL;
	for (uint16_t i = 0; i < ring->num; i++) {
		int n = 0;

		if (!is_known[i] &&
		    __atomic_load_n(&p->inflight->entry[i].inflight, __ATOMIC_RELAXED) == 1)
			n = recover_request(ring, i, is_known);
		if (n < 0)
			return -EINVAL;
		p->n_taken = (uint16_t)(p->n_taken + n);
	}
	if (n_free + p->n_taken != ring->num)
		return -EINVAL;
	if (p->free_head > ring->num)
		p->free_head = ring->num;
	vhost_ring_sort(ring, counter);
	p->avail = advance_at(p->used, p->n_taken, ring->num);
	return 0;
}

/* Take a request that an earlier process took: its descriptors are in the inflight memory. */
static int take_again(struct vhost_ring *ring, const struct vhost_memory *memory,
		      struct vhost_chain *chain, uint16_t *id_p)
{
	struct vhost_packed *p = &ring->packed;
	const uint16_t first = ring->resubmit[ring->resubmit_at++];
	struct vhost_packed_buffer buffer = {.n = p->n_left[first], .first = first, .last = first};
	struct vring_packed_desc d = {0};

	vhost_chain_init(chain);
	for (uint16_t k = 0, i = first; k < buffer.n; k++, i = p->next[i]) {
		const struct vhost_inflight_entry *entry = &p->inflight->entry[i];

		d = (struct vring_packed_desc){
			.addr = __atomic_load_n(&entry->addr, __ATOMIC_RELAXED),
			.len = __atomic_load_n(&entry->len, __ATOMIC_RELAXED),
			.id = __atomic_load_n(&entry->id, __ATOMIC_RELAXED),
			.flags = __atomic_load_n(&entry->flags, __ATOMIC_RELAXED)};
		if (add_packed(ring, memory, &d, k, chain) != 0)
			return -1;
		buffer.last = i;
	}
	if (check_id(ring, d.id) != 0)
		return -1;
	p->buffer[d.id] = buffer;
	*id_p = d.id;
	return 1;
}

/* -- verbs -- */

/*
 * User-mode Linux sends base 0 for a new ring, which means the start of a second lap. A ring in its
 * second lap has entries that the device has used, the first of them at index 0.
 */
static bool is_never_used(const struct vhost_packed *p)
{
	return (vhost_load16(&p->desc[0].flags, 0) & F_USED) == 0;
}

static int packed_init(struct vhost_ring *ring, const struct vhost_vring *vring,
		       const struct vhost_memory *memory, void *inflight)
{
	struct vhost_packed *p = &ring->packed;
	const uint16_t num = ring->num;
	int taken;

	p->avail = decode_at((uint16_t)vring->base);
	p->used = decode_at((uint16_t)(vring->base >> 16));
	p->desc = vhost_memory_at(memory, vring->desc, num * sizeof(*p->desc));
	p->driver = vhost_memory_at(memory, vring->avail, sizeof(*p->driver));
	p->device = vhost_memory_at(memory, vring->used, sizeof(*p->device));
	if (!p->desc || !p->driver || !p->device)
		return -EFAULT;
	if ((uintptr_t)p->desc % 8 || (uintptr_t)p->driver % 4 || (uintptr_t)p->device % 4)
		return -EFAULT;
	if (vring->base == 0 && is_never_used(p))
		p->avail = p->used = decode_at(WRAP_BIT);
	p->inflight = inflight;
	if (inflight && __atomic_load_n(&p->inflight->version, __ATOMIC_ACQUIRE) != 0) {
		if (packed_recover(ring) == 0)
			return 0;
		ring->fault = "the memory for requests in flight contradicts itself";
		return -EINVAL;
	}
	taken = p->avail.index - p->used.index + (p->avail.wrap != p->used.wrap ? num : 0);
	if (p->avail.index >= num || p->used.index >= num || taken < 0 || taken > num) {
		ring->fault = "base of the ring is wrong";
		return -EINVAL;
	}
	p->n_taken = (uint16_t)taken; /* without inflight memory these requests are lost */
	if (inflight)
		make_entries(ring);
	return 0;
}

static uint32_t packed_base(const struct vhost_ring *ring)
{
	return encode_at(ring->packed.avail) | (uint32_t)encode_at(ring->packed.used) << 16;
}

/* Returns true if the guest may use another descriptor, and there is an entry for it. */
static bool has_room(const struct vhost_ring *ring, uint16_t n, uint16_t entry)
{
	return n < ring->num - ring->packed.n_taken &&
	       (!ring->packed.inflight || entry < ring->num);
}

static int packed_take(struct vhost_ring *ring, const struct vhost_memory *memory,
		       struct vhost_chain *chain, uint16_t *id_p)
{
	struct vhost_packed *p = &ring->packed;
	struct vhost_packed_buffer buffer = {.n = 0};
	struct vhost_packed_at at = p->avail;
	struct vring_packed_desc d;

	if (vhost_ring_has_resubmit(ring))
		return take_again(ring, memory, chain, id_p);
	vhost_chain_init(chain);
	for (uint16_t entry = p->free_head;; entry = p->next[entry]) {
		d = load_packed(&p->desc[at.index]);
		if (!is_available(d.flags, at.wrap))
			return buffer.n == 0 ? 0
					     : vhost_ring_broken(ring,
								 "descriptor of a chain is not "
								 "available",
								 "descriptor", at.index);
		if (!has_room(ring, buffer.n, entry))
			return vhost_ring_broken(ring, "more descriptors than the ring has",
						 "descriptor", at.index);
		if (add_packed(ring, memory, &d, buffer.n, chain) != 0)
			return -1;
		if (p->inflight)
			keep(&p->inflight->entry[entry], &d);
		buffer.last = entry;
		buffer.n++;
		at = advance_at(at, 1, ring->num);
		if ((d.flags & VRING_DESC_F_NEXT) == 0)
			break;
	}
	if (check_id(ring, d.id) != 0)
		return -1;
	if (p->inflight)
		keep_request(ring, &buffer);
	p->buffer[d.id] = buffer;
	p->n_taken = (uint16_t)(p->n_taken + buffer.n);
	p->avail = at;
	*id_p = d.id;
	return 1;
}

static void packed_put(struct vhost_ring *ring, uint16_t id, uint32_t written)
{
	struct vhost_packed *p = &ring->packed;
	const struct vhost_packed_buffer buffer = p->buffer[id];
	const struct vhost_packed_at old = p->used;
	uint64_t *word = (uint64_t *)(void *)&p->desc[old.index] + 1;
	/* the status byte, at least, is written */
	const uint64_t flags = VRING_DESC_F_WRITE | (old.wrap ? F_AVAIL | F_USED : 0);

	p->used = advance_at(old, buffer.n, ring->num);
	/* packed_recover() relies on the order of these stores */
	if (p->inflight) {
		link_entry(p, buffer.last, p->free_head);
		store_heads(p, buffer.first, p->free_head);
		store_used(p, p->used, old);
		p->free_head = buffer.first;
	}
	__atomic_store_n(word, htole64(written | (uint64_t)id << 32 | flags << 48),
			 __ATOMIC_RELEASE);
	if (p->inflight) {
		__atomic_store_n(&p->inflight->entry[buffer.first].inflight, 0, __ATOMIC_RELEASE);
		store_heads(p, p->free_head, p->free_head);
		store_used(p, p->used, p->used);
	}
	p->buffer[id].n = 0;
	p->n_taken = (uint16_t)(p->n_taken - buffer.n);
	p->n_returned = (uint16_t)(p->n_returned + buffer.n);
	if (p->n_returned > ring->num)
		p->n_returned = ring->num;
}

/* Returns true if the last n descriptors before `used` include the one that the guest names. */
static bool includes_event(const struct vhost_ring *ring, uint16_t n)
{
	const struct vhost_packed *p = &ring->packed;
	const struct vhost_packed_at event = decode_at(vhost_load16(&p->driver->off_wrap, 0));
	const int behind = p->used.index - event.index +
			   (event.wrap != p->used.wrap ? ring->num : 0);

	return event.index < ring->num && behind > 0 && behind <= n;
}

static bool packed_wants_call(struct vhost_ring *ring)
{
	const uint16_t n = ring->packed.n_returned;
	const bool must_call = ring->must_call;
	uint16_t flags;

	gantry_shm_fence();
	flags = vhost_load16(&ring->packed.driver->flags, 1) & EVENT_FLAGS;
	if (!ring->has_event_idx || flags == VRING_PACKED_EVENT_FLAG_DISABLE)
		return flags != VRING_PACKED_EVENT_FLAG_DISABLE;
	ring->packed.n_returned = 0;
	ring->must_call = false;
	return must_call ||
	       (flags == VRING_PACKED_EVENT_FLAG_DESC ? includes_event(ring, n) : n != 0);
}

static bool packed_notify(struct vhost_ring *ring, bool on)
{
	struct vhost_packed *p = &ring->packed;
	uint32_t event = (uint32_t)VRING_PACKED_EVENT_FLAG_DISABLE << 16;

	if (on)
		event = ring->has_event_idx
				? encode_at(p->avail) | VRING_PACKED_EVENT_FLAG_DESC << 16
				: VRING_PACKED_EVENT_FLAG_ENABLE << 16;
	__atomic_store_n(p->device, htole32(event), __ATOMIC_RELAXED);
	if (!on)
		return false;
	gantry_shm_fence();
	return is_available(vhost_load16(&p->desc[p->avail.index].flags, 1), p->avail.wrap) ||
	       vhost_ring_has_resubmit(ring);
}

const struct vhost_ring_ops vhost_packed_ops = {.init = packed_init,
						.base = packed_base,
						.take = packed_take,
						.put = packed_put,
						.wants_call = packed_wants_call,
						.notify = packed_notify};
