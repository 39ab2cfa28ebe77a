/* SPDX-License-Identifier: BSD-3-Clause */
/* vhost_ring.c - what split and packed virtqueues have in common. Lane's thread. */
#include "vhost_chain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_packed(uint64_t features)
{
	return (features & 1ull << VIRTIO_F_RING_PACKED) != 0;
}

uint64_t vhost_inflight_bytes(uint32_t num, uint64_t features)
{
	const uint64_t bytes = is_packed(features)
				       ? sizeof(struct vhost_inflight_packed) +
						 num * sizeof(struct vhost_inflight_entry)
				       : sizeof(struct vhost_inflight) +
						 num * sizeof(struct vhost_inflight_desc);

	return (bytes + 63) & ~63ull;
}

int vhost_ring_init(struct vhost_ring *ring, const struct vhost_vring *vring,
		    const struct vhost_memory *memory, void *inflight, uint64_t features)
{
	int rc;

	memset(ring, 0, sizeof(*ring));
	ring->ops = is_packed(features) ? &vhost_packed_ops : &vhost_split_ops;
	ring->num = (uint16_t)vring->num;
	ring->has_event_idx = (features & 1ull << VIRTIO_RING_F_EVENT_IDX) != 0;
	ring->must_call = true;
	ring->fault = "";
	if (vring->num == 0 || vring->num > VHOST_RING_MAX) {
		ring->fault = "size of the ring is wrong";
		return -EINVAL;
	}
	rc = ring->ops->init(ring, vring, memory, inflight);
	if (rc == -EFAULT)
		ring->fault = "a part of the ring is misaligned or not in one region";
	return rc;
}

int vhost_ring_broken(struct vhost_ring *ring, const char *fault, const char *key, uint64_t value)
{
	ring->fault = fault;
	ring->fault_key = key;
	ring->fault_value = value;
	return -1;
}

static int by_counter(const void *a, const void *b, void *arg)
{
	const uint16_t *x = a, *y = b;
	const uint64_t *counter = arg;

	return counter[*x] < counter[*y] ? -1 : counter[*x] > counter[*y];
}

void vhost_ring_sort(struct vhost_ring *ring, uint64_t *counter)
{
	qsort_r(ring->resubmit, ring->n_resubmit, sizeof(ring->resubmit[0]), by_counter, counter);
	for (uint32_t i = 0; i < ring->n_resubmit; i++)
		if (counter[ring->resubmit[i]] >= ring->counter)
			ring->counter = counter[ring->resubmit[i]] + 1;
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
