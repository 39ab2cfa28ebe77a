/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost_chain.h - shared by vhost_split.c and vhost_packed.c: descriptors to pieces. Lane's thread.
 *
 * The functions are inline, because a lane calls them for each descriptor.
 */
#ifndef VHOST_CHAIN_H
#define VHOST_CHAIN_H

#include "vhost_ring.h"

#include <endian.h>
#include <linux/virtio_config.h>

#include <gantry/shm.h>

/* vhost_load16 - load a word that the guest can change, in the byte order of the machine */
static inline uint16_t vhost_load16(const uint16_t *p, int acquire)
{
	return le16toh(acquire ? GANTRY_SHM_LOAD(p, 16, __ATOMIC_ACQUIRE)
			       : GANTRY_SHM_LOAD(p, 16, __ATOMIC_RELAXED));
}

/*
 * vhost_ring_sort - sort the requests to take again
 *
 * counter  by request: the order in which an earlier process took them
 */
void vhost_ring_sort(struct vhost_ring *ring, uint64_t *counter);

/* vhost_chain_init - empty a chain */
static inline void vhost_chain_init(struct vhost_chain *chain)
{
	chain->n_out = chain->n_in = 0;
	chain->out_bytes = chain->in_bytes = 0;
}

/* vhost_chain_add - add the range of a descriptor, a piece for each region. Returns 0 or -1. */
static inline int vhost_chain_add(struct vhost_ring *ring, const struct vhost_memory *memory,
				  const struct vring_desc *d, struct vhost_chain *chain)
{
	const bool in = (d->flags & VRING_DESC_F_WRITE) != 0;
	uint64_t *total = in ? &chain->in_bytes : &chain->out_bytes;
	uint64_t at = d->addr, left = d->len;

	if (!in && chain->n_in != 0)
		return vhost_ring_broken(ring, "readable descriptor follows a writable one", "addr",
					 at);
	if (*total + left > UINT32_MAX)
		return vhost_ring_broken(ring, "request is too long", "bytes", *total + left);
	*total += left;
	while (left != 0) {
		uint64_t bytes = left;
		const struct vhost_region *region = vhost_memory_find(memory, at, &bytes);
		const uint32_t n = chain->n_out + chain->n_in;

		if (!region)
			return vhost_ring_broken(ring, "address is outside the memory of the guest",
						 "addr", at);
		if (n == VHOST_PIECES_MAX)
			return vhost_ring_broken(ring, "request has too many pieces", "limit", n);
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

/*
 * vhost_ring_indirect - find the indirect table of a descriptor
 *
 * n_p      out: entries, 1 to VHOST_RING_MAX
 * returns  the table, whose entries have the format of the ring; NULL: the ring is broken
 */
static inline const void *vhost_ring_indirect(struct vhost_ring *ring,
					      const struct vhost_memory *memory,
					      const struct vring_desc *d, uint32_t *n_p)
{
	const uint64_t wanted = d->len;
	uint64_t bytes = wanted;
	const struct vhost_region *region;
	uint8_t *addr;

	if (wanted == 0 || wanted % sizeof(*d) != 0 || wanted / sizeof(*d) > VHOST_RING_MAX) {
		vhost_ring_broken(ring, "indirect table has a wrong length", "bytes", wanted);
		return NULL;
	}
	region = vhost_memory_find(memory, d->addr, &bytes);
	if (!region || bytes != wanted) {
		vhost_ring_broken(ring, "indirect table is not in one region", "addr", d->addr);
		return NULL;
	}
	addr = region->addr + (d->addr - region->gpa);
	if ((uintptr_t)addr % 8 != 0) {
		vhost_ring_broken(ring, "indirect table is not aligned", "addr", d->addr);
		return NULL;
	}
	*n_p = (uint32_t)(wanted / sizeof(*d));
	return addr;
}

#endif
