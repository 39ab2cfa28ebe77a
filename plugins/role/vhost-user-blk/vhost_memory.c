/* SPDX-License-Identifier: BSD-3-Clause */
/* vhost_memory.c - look-ups in the memory of a guest. Any thread. */
#include "vhost_ring.h"

#include <stddef.h>

/* An address below the region gives a difference above region->bytes by unsigned wrap-around. */
const struct vhost_region *vhost_memory_find(const struct vhost_memory *memory, uint64_t gpa,
					     uint64_t *bytes_p)
{
	for (uint32_t i = 0; i < memory->n; i++) {
		const struct vhost_region *region = &memory->region[i];
		const uint64_t skip = gpa - region->gpa;

		if (skip >= region->bytes)
			continue;
		if (*bytes_p > region->bytes - skip)
			*bytes_p = region->bytes - skip;
		return region;
	}
	return NULL;
}

void *vhost_memory_at(const struct vhost_memory *memory, uint64_t uva, uint64_t bytes)
{
	for (uint32_t i = 0; i < memory->n; i++) {
		const struct vhost_region *region = &memory->region[i];
		const uint64_t skip = uva - region->uva;

		if (skip < region->bytes)
			return bytes <= region->bytes - skip ? region->addr + skip : NULL;
	}
	return NULL;
}
