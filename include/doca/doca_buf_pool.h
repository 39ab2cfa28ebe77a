/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_buf_pool.h - pools of buffers of equal size in one memory map */
#ifndef DOCA_BUF_POOL_H
#define DOCA_BUF_POOL_H

#include <stddef.h>
#include <stdint.h>

#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doca_buf;
struct doca_buf_pool;
struct doca_mmap;

/*
 * Create a pool of num_elements buffers of element_size bytes each in a map. Each buffer has a
 * fixed address in the map.
 * Errors:
 *     NO_MEMORY  memory allocation failed
 */
DOCA_STABLE doca_error_t doca_buf_pool_create(size_t num_elements, size_t element_size,
					      const struct doca_mmap *mmap,
					      struct doca_buf_pool **buf_pool);

/*
 * Destroy the pool.
 * Errors:
 *     IN_USE  buffers are allocated
 */
DOCA_STABLE doca_error_t doca_buf_pool_destroy(struct doca_buf_pool *buf_pool);

/*
 * Start the pool. Required before the first buffer is allocated.
 * Errors:
 *     INITIALIZATION  the buffers do not fit into the map
 *     BAD_STATE       the pool is started, or its map is not started
 */
DOCA_STABLE doca_error_t doca_buf_pool_start(struct doca_buf_pool *buf_pool);

/*
 * Stop the pool.
 * Errors:
 *     IN_USE  buffers are allocated
 */
DOCA_STABLE doca_error_t doca_buf_pool_stop(struct doca_buf_pool *buf_pool);

/*
 * Allocate a buffer with one reference and without data.
 * Errors:
 *     NO_MEMORY  all buffers are allocated
 *     BAD_STATE  the pool or its map is not started
 */
DOCA_STABLE doca_error_t doca_buf_pool_buf_alloc(struct doca_buf_pool *buf_pool,
						 struct doca_buf **buf);

/*
 * Set the user data of the pool. Call before start.
 * Errors:
 *     BAD_STATE  the pool is started
 */
DOCA_STABLE doca_error_t doca_buf_pool_set_user_data(struct doca_buf_pool *buf_pool,
						     union doca_data user_data);

/*
 * Set the alignment of buffers in bytes: a power of two. The default is 1. Call before start.
 * Errors:
 *     BAD_STATE  the pool is started
 */
DOCA_STABLE doca_error_t doca_buf_pool_set_element_alignment(struct doca_buf_pool *buf_pool,
							     size_t element_alignment);

/* Get the number of buffers of the pool. */
DOCA_STABLE doca_error_t doca_buf_pool_get_num_elements(const struct doca_buf_pool *buf_pool,
							uint32_t *num_of_elements);

/* Get the number of buffers that are not allocated. */
DOCA_STABLE doca_error_t doca_buf_pool_get_num_free_elements(const struct doca_buf_pool *buf_pool,
							     uint32_t *num_of_free_elements);

/* Get the user data that was set, or 0. */
DOCA_STABLE doca_error_t doca_buf_pool_get_user_data(const struct doca_buf_pool *buf_pool,
						     union doca_data *user_data);
DOCA_STABLE doca_error_t doca_buf_pool_get_element_alignment(const struct doca_buf_pool *buf_pool,
							     size_t *element_alignment);

#ifdef __cplusplus
}
#endif

#endif
