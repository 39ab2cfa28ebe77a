/* SPDX-License-Identifier: BSD-3-Clause */
/* vhost_ring.c - walks a split virtqueue. Lane's thread. */
#include "vhost_ring.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <gantry/shm.h>

/* Load a word that the guest can change, in the byte order of the machine. */
static uint16_t load16(const uint16_t *p, int acquire)
{
	return le16toh(acquire ? GANTRY_SHM_LOAD(p, 16, __ATOMIC_ACQUIRE)
			       : GANTRY_SHM_LOAD(p, 16, __ATOMIC_RELAXED));
}

static int broken(struct vhost_ring *ring, const char *fault, const char *key, uint64_t value)
{
	ring->fault = fault;
	ring->fault_key = key;
	ring->fault_value = value;
	return -1;
}

/* The words of the event index follow the entries of the other ring. */
static const uint16_t *used_event(const struct vhost_ring *ring)
{
	return &ring->avail->ring[ring->num];
}

static uint16_t *avail_event(const struct vhost_ring *ring)
{
	return (uint16_t *)(void *)&ring->used->ring[ring->num];
}

static int by_counter(const void *a, const void *b, void *arg)
{
	const uint16_t *x = a, *y = b;
	const uint64_t *counter = arg;

	return counter[*x] < counter[*y] ? -1 : counter[*x] > counter[*y];
}

/*
 * Find the requests that an earlier process took and did not return. If the process ended after it
 * stored used->idx and before it stored inflight->used_idx, the guest already has the request
 * last_batch_head.
 */
static void recover(struct vhost_ring *ring)
{
	struct vhost_inflight *inflight = ring->inflight;
	const bool is_new = __atomic_load_n(&inflight->version, __ATOMIC_RELAXED) == 0;
	uint64_t counter[VHOST_RING_MAX];

	if (is_new) {
		inflight->version = 1;
		inflight->num = ring->num;
	} else if (__atomic_load_n(&inflight->used_idx, __ATOMIC_RELAXED) != ring->next_used) {
		const uint16_t last = __atomic_load_n(&inflight->last_batch_head,
						      __ATOMIC_RELAXED) &
				      (ring->num - 1);

		__atomic_store_n(&inflight->desc[last].inflight, 0, __ATOMIC_RELEASE);
	}
	/* not before the store above: this process can end between the two stores as well */
	__atomic_store_n(&inflight->used_idx, ring->next_used, __ATOMIC_RELEASE);
	for (uint16_t i = 0; i < ring->num; i++) {
		counter[i] = __atomic_load_n(&inflight->desc[i].counter, __ATOMIC_RELAXED);
		if (__atomic_load_n(&inflight->desc[i].inflight, __ATOMIC_RELAXED) != 1)
			continue;
		ring->resubmit[ring->n_resubmit++] = i;
		if (counter[i] >= ring->counter)
			ring->counter = counter[i] + 1;
	}
	qsort_r(ring->resubmit, ring->n_resubmit, sizeof(ring->resubmit[0]), by_counter, counter);
	/*
	 * Every taken request is in flight or in the used ring. The front end's base is not used:
	 * it is the index of the used ring when the front end noticed the loss, and the earlier
	 * process can have returned more requests since.
	 */
	if (!is_new)
		ring->next_avail = (uint16_t)(ring->next_used + ring->n_resubmit);
}

int vhost_ring_init(struct vhost_ring *ring, const struct vhost_vring *vring,
		    const struct vhost_memory *memory, struct vhost_inflight *inflight,
		    bool has_event_idx)
{
	const uint32_t num = vring->num;

	if (num == 0)
		return -EINVAL;
	*ring = (struct vhost_ring){
		.num = (uint16_t)num,
		.next_avail = vring->base,
		.has_event_idx = has_event_idx,
		.must_call = true,
		.desc = vhost_memory_at(memory, vring->desc, num * sizeof(struct vring_desc)),
		/* 6: flags, idx, and the word of the event index */
		.avail = vhost_memory_at(memory, vring->avail, 6 + num * sizeof(uint16_t)),
		.used = vhost_memory_at(memory, vring->used,
					6 + num * sizeof(struct vring_used_elem)),
		.fault = ""};
	if (!ring->desc || !ring->avail || !ring->used)
		return -EFAULT;
	/* a front end need not map memory at aligned addresses of its own */
	if ((uintptr_t)ring->desc % 8 || (uintptr_t)ring->avail % 2 || (uintptr_t)ring->used % 4)
		return -EFAULT;
	ring->next_used = ring->called_used = load16(&ring->used->idx, 0);
	if (has_event_idx) /* an earlier process may have left another value */
		__atomic_store_n(&ring->used->flags, 0, __ATOMIC_RELAXED);
	ring->inflight = inflight;
	if (inflight)
		recover(ring);
	return 0;
}

int vhost_ring_take(struct vhost_ring *ring, uint16_t *head_p)
{
	uint16_t head, n;

	if (vhost_ring_has_resubmit(ring)) {
		*head_p = ring->resubmit[ring->resubmit_at++];
		return 1;
	}
	n = (uint16_t)(load16(&ring->avail->idx, 1) - ring->next_avail);
	if (n == 0)
		return 0;
	if (n > ring->num)
		return broken(ring, "index of the available ring jumps", "entries", n);
	head = load16(&ring->avail->ring[ring->next_avail & (ring->num - 1)], 0);
	if (head >= ring->num)
		return broken(ring, "descriptor is outside the table", "descriptor", head);
	ring->next_avail++;
	if (ring->inflight) {
		ring->inflight->desc[head].counter = ring->counter++;
		__atomic_store_n(&ring->inflight->desc[head].inflight, 1, __ATOMIC_RELEASE);
	}
	*head_p = head;
	return 1;
}

/* The table that a chain is in: that of the ring, or an indirect one. */
struct table {
	const struct vring_desc *desc;
	uint32_t n;
	bool indirect;
};

/* Add the range of a descriptor to the chain, a piece for each region. */
static int add(struct vhost_ring *ring, const struct vhost_memory *memory,
	       const struct vring_desc *d, struct vhost_chain *chain)
{
	const bool in = (d->flags & VRING_DESC_F_WRITE) != 0;
	uint64_t *total = in ? &chain->in_bytes : &chain->out_bytes;
	uint64_t at = d->addr, left = d->len;

	if (!in && chain->n_in != 0)
		return broken(ring, "readable descriptor follows a writable one", "addr", at);
	if (*total + left > UINT32_MAX)
		return broken(ring, "request is too long", "bytes", *total + left);
	*total += left;
	while (left != 0) {
		uint64_t bytes = left;
		const struct vhost_region *region = vhost_memory_find(memory, at, &bytes);
		const uint32_t n = chain->n_out + chain->n_in;

		if (!region)
			return broken(ring, "address is outside the memory of the guest", "addr",
				      at);
		if (n == VHOST_PIECES_MAX)
			return broken(ring, "request has too many pieces", "limit", n);
		chain->piece[n] = (struct vhost_piece){.addr = region->addr + (at - region->gpa),
						       .offset = at - region->gpa,
						       .handle = region->handle,
						       .bytes = (uint32_t)bytes};
		if (in)
			chain->n_in++;
		else
			chain->n_out++;
		at += bytes;
		left -= bytes;
	}
	return 0;
}

/* Enter the indirect table of a descriptor. */
static int enter(struct vhost_ring *ring, const struct vhost_memory *memory,
		 const struct vring_desc *d, struct table *table)
{
	const uint64_t wanted = d->len;
	uint64_t bytes = wanted;
	const struct vhost_region *region;
	uint8_t *addr;

	if (table->indirect || (d->flags & VRING_DESC_F_NEXT) != 0)
		return broken(ring, "indirect descriptor is inside a chain", "flags", d->flags);
	if (wanted == 0 || wanted % sizeof(*d) != 0 || wanted / sizeof(*d) > VHOST_RING_MAX)
		return broken(ring, "indirect table has a wrong length", "bytes", wanted);
	region = vhost_memory_find(memory, d->addr, &bytes);
	if (!region || bytes != wanted)
		return broken(ring, "indirect table is not in one region", "addr", d->addr);
	addr = region->addr + (d->addr - region->gpa);
	if ((uintptr_t)addr % 8 != 0)
		return broken(ring, "indirect table is not aligned", "addr", d->addr);
	*table = (struct table){(const struct vring_desc *)(void *)addr,
				(uint32_t)(wanted / sizeof(*d)), true};
	return 0;
}

static struct vring_desc load_desc(const struct vring_desc *from)
{
	struct vring_desc d;

	gantry_shm_read(&d, from, sizeof(d));
	d.addr = le64toh(d.addr);
	d.len = le32toh(d.len);
	d.flags = le16toh(d.flags);
	d.next = le16toh(d.next);
	return d;
}

int vhost_ring_chain(struct vhost_ring *ring, const struct vhost_memory *memory, uint16_t head,
		     struct vhost_chain *chain)
{
	struct table table = {ring->desc, ring->num, false};
	uint32_t next = head, steps = 0;

	chain->n_out = chain->n_in = 0;
	chain->out_bytes = chain->in_bytes = 0;
	for (;;) {
		struct vring_desc d;

		if (next >= table.n)
			return broken(ring, "descriptor is outside the table", "descriptor", next);
		if (steps++ == table.n)
			return broken(ring, "descriptors form a loop", "descriptor", next);
		d = load_desc(&table.desc[next]);
		if (d.flags & VRING_DESC_F_INDIRECT) {
			if (enter(ring, memory, &d, &table) != 0)
				return -1;
			next = steps = 0;
			continue;
		}
		if (add(ring, memory, &d, chain) != 0)
			return -1;
		if ((d.flags & VRING_DESC_F_NEXT) == 0)
			return 0;
		next = d.next;
	}
}

void vhost_ring_put(struct vhost_ring *ring, uint16_t head, uint32_t written)
{
	struct vring_used_elem *element = &ring->used->ring[ring->next_used & (ring->num - 1)];

	__atomic_store_n(&element->id, htole32(head), __ATOMIC_RELAXED);
	__atomic_store_n(&element->len, htole32(written), __ATOMIC_RELAXED);
	ring->next_used++;
	/* recover() relies on the order of these stores */
	if (ring->inflight)
		__atomic_store_n(&ring->inflight->last_batch_head, head, __ATOMIC_RELAXED);
	__atomic_store_n(&ring->used->idx, htole16(ring->next_used), __ATOMIC_RELEASE);
	if (ring->inflight) {
		__atomic_store_n(&ring->inflight->desc[head].inflight, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&ring->inflight->used_idx, ring->next_used, __ATOMIC_RELEASE);
	}
}

bool vhost_ring_wants_call(struct vhost_ring *ring)
{
	const uint16_t before = ring->called_used;
	const bool must_call = ring->must_call;

	gantry_shm_fence();
	if (!ring->has_event_idx)
		return (load16(&ring->avail->flags, 0) & VRING_AVAIL_F_NO_INTERRUPT) == 0;
	ring->called_used = ring->next_used;
	ring->must_call = false;
	return vring_need_event(load16(used_event(ring), 0), ring->next_used, before) || must_call;
}

bool vhost_ring_notify(struct vhost_ring *ring, bool on)
{
	/* the next entry; or the last one, which the guest reaches again after 65535 entries */
	const uint16_t event = (uint16_t)(ring->next_avail - !on);

	if (ring->has_event_idx)
		__atomic_store_n(avail_event(ring), htole16(event), __ATOMIC_RELAXED);
	else
		__atomic_store_n(&ring->used->flags, htole16(on ? 0 : VRING_USED_F_NO_NOTIFY),
				 __ATOMIC_RELAXED);
	if (!on)
		return false;
	gantry_shm_fence();
	return load16(&ring->avail->idx, 1) != ring->next_avail || vhost_ring_has_resubmit(ring);
}

/* Copy bytes of the guest memory, with any alignment. Each byte is loaded once. */
static void load_bytes(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	if (((uintptr_t)from | bytes) % 8 == 0)
		gantry_shm_read(to, from, bytes);
	else
		for (uint32_t i = 0; i < bytes; i++)
			to[i] = GANTRY_SHM_LOAD(from + i, 8, __ATOMIC_RELAXED);
}

int vhost_chain_read(struct vhost_chain *chain, void *to, uint32_t bytes)
{
	uint8_t *at = to;
	uint32_t n = 0;

	if (chain->out_bytes < bytes)
		return -1;
	chain->out_bytes -= bytes;
	while (bytes != 0) {
		struct vhost_piece *piece = &chain->piece[n];
		const uint32_t part = bytes < piece->bytes ? bytes : piece->bytes;

		load_bytes(at, piece->addr, part);
		at += part;
		bytes -= part;
		piece->addr += part;
		piece->offset += part;
		piece->bytes -= part;
		n += piece->bytes == 0;
	}
	chain->n_out -= n;
	memmove(chain->piece, chain->piece + n,
		(chain->n_out + chain->n_in) * sizeof(chain->piece[0]));
	return 0;
}

uint8_t *vhost_chain_status(struct vhost_chain *chain)
{
	struct vhost_piece *last;

	if (chain->in_bytes == 0)
		return NULL;
	last = &chain->piece[chain->n_out + chain->n_in - 1];
	last->bytes--;
	chain->in_bytes--;
	chain->n_in -= last->bytes == 0;
	return last->addr + last->bytes;
}
