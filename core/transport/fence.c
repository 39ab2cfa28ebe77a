/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/fence.h"

#include <stddef.h>

void gn_fence_init(struct gn_fence *fence)
{
	*fence = (struct gn_fence){.n = 0};
	pthread_mutex_init(&fence->lock, NULL);
}

void gn_fence_fini(struct gn_fence *fence)
{
	pthread_mutex_destroy(&fence->lock);
}

void gn_fence_enter(struct gn_fence *fence, struct gn_fence_entry *entry, uint64_t offset,
		    uint64_t length)
{
	pthread_mutex_lock(&fence->lock);
	*entry = (struct gn_fence_entry){
		.offset = offset, .length = length, .next = fence->first, .at = &fence->first};
	if (entry->next)
		entry->next->at = &entry->next;
	fence->first = entry;
	__atomic_store_n(&fence->n, fence->n + 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&fence->lock);
}

void gn_fence_remove(struct gn_fence *fence, struct gn_fence_entry *entry)
{
	if (!entry->at)
		return;
	pthread_mutex_lock(&fence->lock);
	*entry->at = entry->next;
	if (entry->next)
		entry->next->at = entry->at;
	entry->at = NULL;
	__atomic_store_n(&fence->n, fence->n - 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&fence->lock);
}

bool gn_fence_blocks(struct gn_fence *fence, uint64_t offset, uint64_t length)
{
	bool blocks = false;

	pthread_mutex_lock(&fence->lock);
	for (const struct gn_fence_entry *e = fence->first; e && !blocks; e = e->next)
		/* unsigned: cannot overflow */
		blocks = offset - e->offset < e->length || e->offset - offset < length;
	pthread_mutex_unlock(&fence->lock);
	return blocks;
}
