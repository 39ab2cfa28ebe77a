/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_buf_pool.h - buffers of one size out of one memory map */
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

/* num_elements buffers of element_size bytes each, out of a started map. Errors: NO_MEMORY. */
DOCA_STABLE doca_error_t doca_buf_pool_create(size_t num_elements, size_t element_size,
					      const struct doca_mmap *mmap,
					      struct doca_buf_pool **buf_pool);

/* IN_USE while buffers are out. */
DOCA_STABLE doca_error_t doca_buf_pool_destroy(struct doca_buf_pool *buf_pool);

/* From now on buffers can be taken. Errors: INITIALIZATION, BAD_STATE. */
DOCA_STABLE doca_error_t doca_buf_pool_start(struct doca_buf_pool *buf_pool);

/* IN_USE while buffers are out. */
DOCA_STABLE doca_error_t doca_buf_pool_stop(struct doca_buf_pool *buf_pool);

/* A buffer with one reference and no data in it. NO_MEMORY: all are out. */
DOCA_STABLE doca_error_t doca_buf_pool_buf_alloc(struct doca_buf_pool *buf_pool,
						 struct doca_buf **buf);

/* Before start. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t doca_buf_pool_set_user_data(struct doca_buf_pool *buf_pool,
						     union doca_data user_data);

/* Before start: a power of two. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t doca_buf_pool_set_element_alignment(struct doca_buf_pool *buf_pool,
							     size_t element_alignment);

/* Tells the num elements. */
DOCA_STABLE doca_error_t doca_buf_pool_get_num_elements(const struct doca_buf_pool *buf_pool,
							uint32_t *num_of_elements);

/* Tells the num free elements. */
DOCA_STABLE doca_error_t doca_buf_pool_get_num_free_elements(const struct doca_buf_pool *buf_pool,
							     uint32_t *num_of_free_elements);

/* What was set, or the default. */
DOCA_STABLE doca_error_t doca_buf_pool_get_user_data(const struct doca_buf_pool *buf_pool,
						     union doca_data *user_data);
DOCA_STABLE doca_error_t doca_buf_pool_get_element_alignment(const struct doca_buf_pool *buf_pool,
							     size_t *element_alignment);

#ifdef __cplusplus
}
#endif

#endif
