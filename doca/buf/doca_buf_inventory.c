/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_buf_inventory.c - inventories: pools of buffers */
#include <stdint.h>
#include <stdlib.h>

#include "buf/buf.h"

struct chunk {
	struct chunk *next;
	struct doca_buf bufs[];
};

struct doca_buf_inventory {
	struct chunk *chunks;
	struct doca_buf *free;
	uint32_t n, n_free;
	bool started;
	union doca_data user_data;
};

static doca_error_t add_chunk(struct doca_buf_inventory *inventory, uint32_t n)
{
	struct chunk *chunk;
	uint32_t i;

	if (n > UINT32_MAX - inventory->n)
		return DOCA_ERROR_INVALID_VALUE;
	chunk = calloc(1, sizeof(*chunk) + n * sizeof(struct doca_buf));
	if (!chunk)
		return DOCA_ERROR_NO_MEMORY;
	chunk->next = inventory->chunks;
	inventory->chunks = chunk;
	for (i = n; i-- > 0;) {
		chunk->bufs[i].inventory = inventory;
		chunk->bufs[i].free_next = inventory->free;
		inventory->free = &chunk->bufs[i];
	}
	inventory->n += n;
	inventory->n_free += n;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_inventory_create(size_t num_elements, struct doca_buf_inventory **inventory_p)
{
	struct doca_buf_inventory *inventory;
	doca_error_t result;

	if (num_elements == 0 || num_elements > UINT32_MAX || !inventory_p)
		return DOCA_ERROR_INVALID_VALUE;
	inventory = calloc(1, sizeof(*inventory));
	if (!inventory)
		return DOCA_ERROR_NO_MEMORY;
	result = add_chunk(inventory, (uint32_t)num_elements);
	if (result != DOCA_SUCCESS) {
		free(inventory);
		return result;
	}
	*inventory_p = inventory;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_inventory_destroy(struct doca_buf_inventory *inventory)
{
	struct chunk *chunk, *next;

	if (!inventory)
		return DOCA_ERROR_INVALID_VALUE;
	if (inventory->n_free != inventory->n)
		return DOCA_ERROR_IN_USE;
	for (chunk = inventory->chunks; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	free(inventory);
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_inventory_start(struct doca_buf_inventory *inventory)
{
	if (!inventory)
		return DOCA_ERROR_INVALID_VALUE;
	inventory->started = true;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_inventory_stop(struct doca_buf_inventory *inventory)
{
	if (!inventory)
		return DOCA_ERROR_INVALID_VALUE;
	inventory->started = false;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_inventory_expand(struct doca_buf_inventory *inventory, uint32_t num_elements)
{
	if (!inventory || num_elements == 0)
		return DOCA_ERROR_INVALID_VALUE;
	if (!inventory->started)
		return DOCA_ERROR_BAD_STATE;
	return add_chunk(inventory, num_elements);
}

/* -- allocation and release of buffers -- */

static bool is_inside(const void *addr, size_t len, const void *part, size_t part_len)
{
	const uintptr_t begin = (uintptr_t)addr, at = (uintptr_t)part;

	return at >= begin && part_len <= len && at - begin <= len - part_len;
}

doca_error_t gd_buf_point(struct doca_buf *buf, void *addr, size_t len, void *data, size_t data_len)
{
	if (!data && data_len == 0)
		data = addr;
	if (!is_inside(buf->mmap->addr, buf->mmap->length, addr, len) ||
	    !is_inside(addr, len, data, data_len))
		return DOCA_ERROR_INVALID_VALUE;
	buf->head = addr;
	buf->len = len;
	buf->data = data;
	buf->data_len = data_len;
	return DOCA_SUCCESS;
}

static void take(struct doca_buf_inventory *inventory, struct doca_buf *buf)
{
	inventory->free = buf->free_next;
	inventory->n_free--;
	buf->references = 1;
	buf->in_list = false;
	buf->next = NULL;
	buf->last = buf;
	buf->is_counted = !buf->mmap->thread_safe;
	if (buf->is_counted)
		__atomic_fetch_add(&buf->mmap->n_bufs, 1, __ATOMIC_RELAXED);
}

/*
 * Return a buffer to its inventory. It keeps its range and map but no list link: a task that uses
 * it after its release, against the rules, finds one valid buffer.
 */
static void give_back_one(struct doca_buf *buf)
{
	struct doca_buf_inventory *inventory = buf->inventory;

	if (buf->is_counted)
		/* pairs with the acquire loads of n_bufs in doca_mmap.c */
		__atomic_fetch_sub(&buf->mmap->n_bufs, 1, __ATOMIC_RELEASE);
	buf->references = 0;
	buf->in_list = false;
	buf->next = NULL;
	buf->last = buf;
	buf->free_next = inventory->free;
	inventory->free = buf;
	inventory->n_free++;
}

void gd_buf_give_back(struct doca_buf *list)
{
	struct doca_buf *next;

	for (; list; list = next) {
		next = list->next;
		give_back_one(list);
	}
}

struct doca_buf *gd_inventory_take(struct doca_buf_inventory *inventory, struct doca_mmap *mmap,
				   size_t *index_p)
{
	struct doca_buf *buf = inventory->free;

	if (!buf)
		return NULL;
	buf->mmap = mmap;
	take(inventory, buf);
	*index_p = (size_t)(buf - inventory->chunks->bufs);
	return buf;
}

doca_error_t doca_buf_inventory_buf_get_by_args(struct doca_buf_inventory *inventory,
						struct doca_mmap *mmap, void *addr, size_t len,
						void *data, size_t data_len,
						struct doca_buf **buf_p)
{
	struct doca_buf *buf;

	if (!inventory || !mmap || !buf_p || !inventory->started || !mmap->started)
		return DOCA_ERROR_INVALID_VALUE;
	buf = inventory->free;
	if (!buf)
		return DOCA_ERROR_NO_MEMORY;
	buf->mmap = mmap;
	if (gd_buf_point(buf, addr, len, data, data_len) != DOCA_SUCCESS)
		return DOCA_ERROR_INVALID_VALUE;
	take(inventory, buf);
	*buf_p = buf;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_inventory_buf_dup(struct doca_buf_inventory *inventory,
					const struct doca_buf *src_buf, struct doca_buf **dst_buf)
{
	struct doca_buf *buf;

	if (!inventory || !src_buf || !dst_buf)
		return DOCA_ERROR_INVALID_VALUE;
	if (!inventory->started)
		return DOCA_ERROR_BAD_STATE;
	if (src_buf->references == 0 || !src_buf->mmap->started)
		return DOCA_ERROR_NOT_PERMITTED;
	buf = inventory->free;
	if (!buf)
		return DOCA_ERROR_NO_MEMORY;
	buf->mmap = src_buf->mmap;
	buf->head = src_buf->head;
	buf->len = src_buf->len;
	buf->data = src_buf->data;
	buf->data_len = src_buf->data_len;
	take(inventory, buf);
	*dst_buf = buf;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_inventory_buf_reuse_by_args(struct doca_buf *buf, void *addr, size_t len,
						  void *data, size_t data_len)
{
	if (!buf || buf->references == 0)
		return DOCA_ERROR_INVALID_VALUE;
	return gd_buf_point(buf, addr, len, data, data_len);
}

doca_error_t doca_buf_inventory_buf_reuse_by_addr(struct doca_buf *buf, void *addr, size_t len)
{
	return doca_buf_inventory_buf_reuse_by_args(buf, addr, len, addr, 0);
}

doca_error_t doca_buf_inventory_buf_reuse_by_data(struct doca_buf *buf, void *data, size_t data_len)
{
	return doca_buf_inventory_buf_reuse_by_args(buf, data, data_len, data, data_len);
}

/* -- getters and setters -- */

doca_error_t doca_buf_inventory_set_user_data(struct doca_buf_inventory *inventory,
					      union doca_data user_data)
{
	if (!inventory)
		return DOCA_ERROR_INVALID_VALUE;
	if (inventory->started)
		return DOCA_ERROR_BAD_STATE;
	inventory->user_data = user_data;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_inventory_get_user_data(const struct doca_buf_inventory *inventory,
					      union doca_data *user_data)
{
	if (!inventory || !user_data)
		return DOCA_ERROR_INVALID_VALUE;
	*user_data = inventory->user_data;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_inventory_get_num_elements(const struct doca_buf_inventory *inventory,
						 uint32_t *num_of_elements)
{
	if (!inventory || !num_of_elements)
		return DOCA_ERROR_INVALID_VALUE;
	*num_of_elements = inventory->n;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_inventory_get_num_free_elements(const struct doca_buf_inventory *inventory,
						      uint32_t *num_of_free_elements)
{
	if (!inventory || !num_of_free_elements)
		return DOCA_ERROR_INVALID_VALUE;
	*num_of_free_elements = inventory->n_free;
	return DOCA_SUCCESS;
}
