/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_buf_pool.c - pools: an inventory whose buffers each have a fixed element of one map */
#include <doca_buf_pool.h>

#include <stdint.h>
#include <stdlib.h>

#include "buf/buf.h"

struct doca_buf_pool {
	struct doca_buf_inventory *inventory;
	struct doca_mmap *mmap;
	size_t n, size, alignment;
	char *first; /* set by start */
	size_t stride;
	bool started;
	union doca_data user_data;
};

doca_error_t doca_buf_pool_create(size_t num_elements, size_t element_size,
				  const struct doca_mmap *mmap, struct doca_buf_pool **pool_p)
{
	struct doca_buf_pool *pool;
	doca_error_t result;

	if (element_size == 0 || !mmap || !pool_p)
		return DOCA_ERROR_INVALID_VALUE;
	pool = calloc(1, sizeof(*pool));
	if (!pool)
		return DOCA_ERROR_NO_MEMORY;
	result = doca_buf_inventory_create(num_elements, &pool->inventory);
	if (result != DOCA_SUCCESS) {
		free(pool);
		return result;
	}
	pool->mmap = (struct doca_mmap *)mmap;
	pool->n = num_elements;
	pool->size = element_size;
	pool->alignment = 1;
	*pool_p = pool;
	return DOCA_SUCCESS;
}

static bool has_bufs_out(const struct doca_buf_pool *pool)
{
	uint32_t n_free = 0;

	doca_buf_inventory_get_num_free_elements(pool->inventory, &n_free);
	return n_free != pool->n;
}

doca_error_t doca_buf_pool_destroy(struct doca_buf_pool *pool)
{
	doca_error_t result;

	if (!pool)
		return DOCA_ERROR_INVALID_VALUE;
	result = doca_buf_inventory_destroy(pool->inventory);
	if (result == DOCA_SUCCESS)
		free(pool);
	return result;
}

/* Compute the addresses of the elements. INITIALIZATION: they do not fit into the map. */
doca_error_t doca_buf_pool_start(struct doca_buf_pool *pool)
{
	const size_t mask = pool ? pool->alignment - 1 : 0;
	size_t skip, bytes;

	if (!pool)
		return DOCA_ERROR_INVALID_VALUE;
	if (pool->started || !pool->mmap->started)
		return DOCA_ERROR_BAD_STATE;
	skip = -(uintptr_t)pool->mmap->addr & mask;
	pool->stride = (pool->size + mask) & ~mask;
	if (pool->stride < pool->size ||
	    __builtin_mul_overflow(pool->stride, pool->n - 1, &bytes) ||
	    __builtin_add_overflow(bytes, pool->size, &bytes) ||
	    __builtin_add_overflow(bytes, skip, &bytes) || bytes > pool->mmap->length)
		return DOCA_ERROR_INITIALIZATION;
	pool->first = (char *)pool->mmap->addr + skip;
	pool->started = true;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_pool_stop(struct doca_buf_pool *pool)
{
	if (!pool)
		return DOCA_ERROR_INVALID_VALUE;
	if (has_bufs_out(pool))
		return DOCA_ERROR_IN_USE;
	pool->started = false;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_pool_buf_alloc(struct doca_buf_pool *pool, struct doca_buf **buf_p)
{
	struct doca_buf *buf;
	doca_error_t result;
	size_t index;
	char *element;

	if (!pool || !buf_p)
		return DOCA_ERROR_INVALID_VALUE;
	if (!pool->started || !pool->mmap->started)
		return DOCA_ERROR_BAD_STATE;
	buf = gd_inventory_take(pool->inventory, pool->mmap, &index);
	if (!buf)
		return DOCA_ERROR_NO_MEMORY;
	element = pool->first + index * pool->stride;
	result = gd_buf_point(buf, element, pool->size, element, 0);
	if (result == DOCA_SUCCESS)
		*buf_p = buf;
	else
		gd_buf_give_back(buf);
	return result;
}

doca_error_t doca_buf_pool_set_user_data(struct doca_buf_pool *pool, union doca_data user_data)
{
	if (!pool)
		return DOCA_ERROR_INVALID_VALUE;
	if (pool->started)
		return DOCA_ERROR_BAD_STATE;
	pool->user_data = user_data;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_pool_set_element_alignment(struct doca_buf_pool *pool,
						 size_t element_alignment)
{
	if (!pool || element_alignment == 0 || (element_alignment & (element_alignment - 1)))
		return DOCA_ERROR_INVALID_VALUE;
	if (pool->started)
		return DOCA_ERROR_BAD_STATE;
	pool->alignment = element_alignment;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_pool_get_num_elements(const struct doca_buf_pool *pool,
					    uint32_t *num_of_elements)
{
	return pool ? doca_buf_inventory_get_num_elements(pool->inventory, num_of_elements)
		    : DOCA_ERROR_INVALID_VALUE;
}

doca_error_t doca_buf_pool_get_num_free_elements(const struct doca_buf_pool *pool,
						 uint32_t *num_of_free_elements)
{
	return pool ? doca_buf_inventory_get_num_free_elements(pool->inventory,
							       num_of_free_elements)
		    : DOCA_ERROR_INVALID_VALUE;
}

doca_error_t doca_buf_pool_get_user_data(const struct doca_buf_pool *pool,
					 union doca_data *user_data)
{
	if (!pool || !user_data)
		return DOCA_ERROR_INVALID_VALUE;
	*user_data = pool->user_data;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_pool_get_element_alignment(const struct doca_buf_pool *pool,
						 size_t *element_alignment)
{
	if (!pool || !element_alignment)
		return DOCA_ERROR_INVALID_VALUE;
	*element_alignment = pool->alignment;
	return DOCA_SUCCESS;
}
