/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fence.h - the writes of one session that timed out and may still change the volume.
 *
 * A link that completes a write with GANTRY_S_TIMEOUT, before its answer came, enters the range of that write here, and
 * removes it when the late answer has come. Meanwhile the links of all lanes of the session hold back what would change
 * that range: the target gives no order to two writes that it has at the same time, so a newer one could be overtaken.
 *
 * An entry is entered before its write completes. So whoever submits a write because of that completion finds it.
 * Entries are the memory of the link that enters them.
 */
#ifndef GN_TRANSPORT_FENCE_H
#define GN_TRANSPORT_FENCE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct gn_fence_entry {
	uint64_t offset, length;
	struct gn_fence_entry *next, **at; /* at NULL: not entered */
};

struct gn_fence {
	uint32_t n; /* entries */
	pthread_mutex_t lock;
	struct gn_fence_entry *first;
};

void gn_fence_init(struct gn_fence *fence);
void gn_fence_fini(struct gn_fence *fence);

/* Any lane. */
void gn_fence_enter(struct gn_fence *fence, struct gn_fence_entry *entry, uint64_t offset, uint64_t length);
/* An entry that is not entered is left alone. */
void gn_fence_remove(struct gn_fence *fence, struct gn_fence_entry *entry);
/* True when the range overlaps an entry. */
bool gn_fence_blocks(struct gn_fence *fence, uint64_t offset, uint64_t length);

/*
 * False while there is no entry: one relaxed load. That is enough, also on Arm: a lane that reads 0 here, and sends a write
 * then, has a control dependency from that load to its send, and the entry was removed after the late answer was read.
 */
static inline bool gn_fence_is_up(const struct gn_fence *fence)
{
	return __atomic_load_n(&fence->n, __ATOMIC_RELAXED) != 0;
}

#endif
