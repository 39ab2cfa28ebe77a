/* SPDX-License-Identifier: BSD-3-Clause */
/* vhost_split.c - walks a split virtqueue. Lane's thread. */
#include "vhost_chain.h"

#include <errno.h>

/* The words of the event index follow the entries of the other ring. */
static const uint16_t *used_event(const struct vhost_ring *ring)
{
	return &ring->split.avail->ring[ring->num];
}

static uint16_t *avail_event(const struct vhost_ring *ring)
{
	return (uint16_t *)(void *)&ring->split.used->ring[ring->num];
}

/*
 * Find the requests that an earlier process took and did not return. If the process ended after it
 * stored used->idx and before it stored inflight->used_idx, the guest already has the request
 * last_batch_head.
 */
static void split_recover(struct vhost_ring *ring)
{
	struct vhost_split *s = &ring->split;
	struct vhost_inflight *inflight = s->inflight;
	const bool is_new = __atomic_load_n(&inflight->version, __ATOMIC_RELAXED) == 0;
	uint64_t counter[VHOST_RING_MAX];

	if (is_new) {
		inflight->version = 1;
		inflight->num = ring->num;
	} else if (__atomic_load_n(&inflight->used_idx, __ATOMIC_RELAXED) != s->next_used) {
		const uint16_t last = __atomic_load_n(&inflight->last_batch_head,
						      __ATOMIC_RELAXED) &
				      (ring->num - 1);

		__atomic_store_n(&inflight->desc[last].inflight, 0, __ATOMIC_RELEASE);
	}
	/* not before the store above: this process can end between the two stores as well */
	__atomic_store_n(&inflight->used_idx, s->next_used, __ATOMIC_RELEASE);
	for (uint16_t i = 0; i < ring->num; i++) {
		counter[i] = __atomic_load_n(&inflight->desc[i].counter, __ATOMIC_RELAXED);
		if (__atomic_load_n(&inflight->desc[i].inflight, __ATOMIC_RELAXED) == 1)
			ring->resubmit[ring->n_resubmit++] = i;
	}
	vhost_ring_sort(ring, counter);
	/*
	 * Every taken request is in flight or in the used ring. The front end's base is not used:
	 * it is the index of the used ring when the front end noticed the loss, and the earlier
	 * process can have returned more requests since.
	 */
	if (!is_new)
		s->next_avail = (uint16_t)(s->next_used + ring->n_resubmit);
}

static int split_init(struct vhost_ring *ring, const struct vhost_vring *vring,
		      const struct vhost_memory *memory, void *inflight)
{
	struct vhost_split *s = &ring->split;
	const uint32_t num = vring->num;

	if ((num & (num - 1)) != 0) {
		ring->fault = "size of the ring is not a power of two";
		return -EINVAL;
	}
	*s = (struct vhost_split){
		.next_avail = (uint16_t)vring->base,
		.desc = vhost_memory_at(memory, vring->desc, num * sizeof(struct vring_desc)),
		/* 6: flags, idx, and the word of the event index */
		.avail = vhost_memory_at(memory, vring->avail, 6 + num * sizeof(uint16_t)),
		.used = vhost_memory_at(memory, vring->used,
					6 + num * sizeof(struct vring_used_elem))};
	if (!s->desc || !s->avail || !s->used)
		return -EFAULT;
	/* a front end need not map memory at aligned addresses of its own */
	if ((uintptr_t)s->desc % 8 || (uintptr_t)s->avail % 2 || (uintptr_t)s->used % 4)
		return -EFAULT;
	s->next_used = s->called_used = vhost_load16(&s->used->idx, 0);
	if (ring->has_event_idx) /* an earlier process may have left another value */
		__atomic_store_n(&s->used->flags, 0, __ATOMIC_RELAXED);
	s->inflight = inflight;
	if (inflight)
		split_recover(ring);
	return 0;
}

static uint32_t split_base(const struct vhost_ring *ring)
{
	return ring->split.next_avail;
}

/* Take the head of the next available request. Returns as vhost_ring_take(). */
static int take_head(struct vhost_ring *ring, uint16_t *head_p)
{
	struct vhost_split *s = &ring->split;
	uint16_t head, n;

	if (vhost_ring_has_resubmit(ring)) {
		*head_p = ring->resubmit[ring->resubmit_at++];
		return 1;
	}
	n = (uint16_t)(vhost_load16(&s->avail->idx, 1) - s->next_avail);
	if (n == 0)
		return 0;
	if (n > ring->num)
		return vhost_ring_broken(ring, "index of the available ring jumps", "entries", n);
	head = vhost_load16(&s->avail->ring[s->next_avail & (ring->num - 1)], 0);
	if (head >= ring->num)
		return vhost_ring_broken(ring, "descriptor is outside the table", "descriptor",
					 head);
	s->next_avail++;
	if (s->inflight) {
		s->inflight->desc[head].counter = ring->counter++;
		__atomic_store_n(&s->inflight->desc[head].inflight, 1, __ATOMIC_RELEASE);
	}
	*head_p = head;
	return 1;
}

static struct vring_desc load_split(const struct vring_desc *from)
{
	struct vring_desc d;

	gantry_shm_read(&d, from, sizeof(d));
	d.addr = le64toh(d.addr);
	d.len = le32toh(d.len);
	d.flags = le16toh(d.flags);
	d.next = le16toh(d.next);
	return d;
}

/* The table that a chain is in: that of the ring, or an indirect one. */
struct table {
	const struct vring_desc *desc;
	uint32_t n;
	bool indirect;
};

/* Enter the indirect table of a descriptor. */
static int enter(struct vhost_ring *ring, const struct vhost_memory *memory,
		 const struct vring_desc *d, struct table *table)
{
	if (table->indirect || (d->flags & VRING_DESC_F_NEXT) != 0)
		return vhost_ring_broken(ring, "indirect descriptor is inside a chain", "flags",
					 d->flags);
	table->desc = vhost_ring_indirect(ring, memory, d, &table->n);
	table->indirect = true;
	return table->desc ? 0 : -1;
}

static int read_chain(struct vhost_ring *ring, const struct vhost_memory *memory, uint16_t head,
		      struct vhost_chain *chain)
{
	struct table table = {ring->split.desc, ring->num, false};
	uint32_t next = head, steps = 0;

	vhost_chain_init(chain);
	for (;;) {
		struct vring_desc d;

		if (next >= table.n)
			return vhost_ring_broken(ring, "descriptor is outside the table",
						 "descriptor", next);
		if (steps++ == table.n)
			return vhost_ring_broken(ring, "descriptors form a loop", "descriptor",
						 next);
		d = load_split(&table.desc[next]);
		if (d.flags & VRING_DESC_F_INDIRECT) {
			if (enter(ring, memory, &d, &table) != 0)
				return -1;
			next = steps = 0;
			continue;
		}
		if (vhost_chain_add(ring, memory, &d, chain) != 0)
			return -1;
		if ((d.flags & VRING_DESC_F_NEXT) == 0)
			return 0;
		next = d.next;
	}
}

static int split_take(struct vhost_ring *ring, const struct vhost_memory *memory,
		      struct vhost_chain *chain, uint16_t *id_p)
{
	const int rc = take_head(ring, id_p);

	if (rc <= 0)
		return rc;
	return read_chain(ring, memory, *id_p, chain) == 0 ? 1 : -1;
}

static void split_put(struct vhost_ring *ring, uint16_t head, uint32_t written)
{
	struct vhost_split *s = &ring->split;
	struct vring_used_elem *element = &s->used->ring[s->next_used & (ring->num - 1)];

	__atomic_store_n(&element->id, htole32(head), __ATOMIC_RELAXED);
	__atomic_store_n(&element->len, htole32(written), __ATOMIC_RELAXED);
	s->next_used++;
	/* split_recover() relies on the order of these stores */
	if (s->inflight)
		__atomic_store_n(&s->inflight->last_batch_head, head, __ATOMIC_RELAXED);
	__atomic_store_n(&s->used->idx, htole16(s->next_used), __ATOMIC_RELEASE);
	if (s->inflight) {
		__atomic_store_n(&s->inflight->desc[head].inflight, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&s->inflight->used_idx, s->next_used, __ATOMIC_RELEASE);
	}
}

static bool split_wants_call(struct vhost_ring *ring)
{
	struct vhost_split *s = &ring->split;
	const uint16_t before = s->called_used;
	const bool must_call = ring->must_call;
	uint16_t event;

	gantry_shm_fence();
	if (!ring->has_event_idx)
		return (vhost_load16(&s->avail->flags, 0) & VRING_AVAIL_F_NO_INTERRUPT) == 0;
	event = vhost_load16(used_event(ring), 0);
	s->called_used = s->next_used;
	ring->must_call = false;
	return vring_need_event(event, s->next_used, before) || must_call;
}

static bool split_notify(struct vhost_ring *ring, bool on)
{
	struct vhost_split *s = &ring->split;
	/* the next entry; or the last one, which the guest reaches again after 65535 entries */
	const uint16_t event = (uint16_t)(s->next_avail - !on);

	if (ring->has_event_idx)
		__atomic_store_n(avail_event(ring), htole16(event), __ATOMIC_RELAXED);
	else
		__atomic_store_n(&s->used->flags, htole16(on ? 0 : VRING_USED_F_NO_NOTIFY),
				 __ATOMIC_RELAXED);
	if (!on)
		return false;
	gantry_shm_fence();
	return vhost_load16(&s->avail->idx, 1) != s->next_avail || vhost_ring_has_resubmit(ring);
}

const struct vhost_ring_ops vhost_split_ops = {.init = split_init,
					       .base = split_base,
					       .take = split_take,
					       .put = split_put,
					       .wants_call = split_wants_call,
					       .notify = split_notify};
