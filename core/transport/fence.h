/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fence.h - the writes of one session that timed out and can still change the volume
 *
 * A requester that completes a write with GANTRY_S_TIMEOUT adds the range of that write. It removes
 * the range when the late reply arrives. Meanwhile the requesters of all lanes of the session hold
 * back writes that overlap the range. The target does not order two writes that are in flight at
 * the same time, so the late write could overwrite a newer write.
 *
 * A requester adds an entry before it completes the write. So a write that is submitted because of
 * that completion finds the entry. The requester owns the memory of its entries.
 */
#ifndef GN_TRANSPORT_FENCE_H
#define GN_TRANSPORT_FENCE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct gn_fence_entry {
	uint64_t offset, length;
	/* position in the list; `at` is NULL while the entry is not in the list */
	struct gn_fence_entry *next, **at;
};

struct gn_fence {
	uint32_t n; /* number of entries */
	pthread_mutex_t lock;
	struct gn_fence_entry *first;
};

/* gn_fence_init, gn_fence_fini - initialise and release a fence. Control thread. */
void gn_fence_init(struct gn_fence *fence);
void gn_fence_fini(struct gn_fence *fence);

/*
 * gn_fence_enter - add the range of a write to the fence. The entry must not be in the list; its
 * memory stays the caller's. Any lane.
 */
void gn_fence_enter(struct gn_fence *fence, struct gn_fence_entry *entry, uint64_t offset,
		    uint64_t length);
/* gn_fence_remove - remove an entry. No effect if it is not in the list. Any lane. */
void gn_fence_remove(struct gn_fence *fence, struct gn_fence_entry *entry);
/* gn_fence_blocks - returns true if the range overlaps an entry. Any lane. */
bool gn_fence_blocks(struct gn_fence *fence, uint64_t offset, uint64_t length);

/*
 * True if there is an entry: one relaxed load. No barrier is needed, not even on Arm. A lane that
 * reads 0 here and then sends a write has a control dependency from this load to its send. The
 * requester removed the entry after it had read the late reply, so the write is sent after the
 * target has finished the late write.
 */
static inline bool gn_fence_is_up(const struct gn_fence *fence)
{
	return __atomic_load_n(&fence->n, __ATOMIC_RELAXED) != 0;
}

#endif
