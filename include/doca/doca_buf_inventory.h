/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_buf_inventory.h - inventories: pools of buffers that can refer to any memory map */
#ifndef DOCA_BUF_INVENTORY_H
#define DOCA_BUF_INVENTORY_H

#include <stddef.h>
#include <stdint.h>

#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doca_buf;
struct doca_buf_inventory;
struct doca_mmap;

/*
 * Create an inventory of num_elements buffers, at least one. One thread at a time may use it.
 * Errors:
 *     NO_MEMORY  memory allocation failed
 */
DOCA_STABLE doca_error_t doca_buf_inventory_create(size_t num_elements,
						   struct doca_buf_inventory **inventory);

/*
 * Stop and destroy the inventory.
 * Errors:
 *     IN_USE  buffers are allocated
 */
DOCA_STABLE doca_error_t doca_buf_inventory_destroy(struct doca_buf_inventory *inventory);

/* Start the inventory. Required before the first buffer is allocated. */
DOCA_STABLE doca_error_t doca_buf_inventory_start(struct doca_buf_inventory *inventory);

/* Stop the inventory. No buffer can be allocated until the next start. */
DOCA_STABLE doca_error_t doca_buf_inventory_stop(struct doca_buf_inventory *inventory);

/*
 * Allocate a buffer with one reference. Its range is the `len` bytes at `addr` of a started map.
 * The data part is in this range.
 * Errors:
 *     NO_MEMORY      all buffers are allocated
 *     INVALID_VALUE  the range is outside the map or the data outside the range, or the inventory
 *                    or the map is not started
 */
DOCA_STABLE doca_error_t doca_buf_inventory_buf_get_by_args(struct doca_buf_inventory *inventory,
							    struct doca_mmap *mmap, void *addr,
							    size_t len, void *data, size_t data_len,
							    struct doca_buf **buf);

/*
 * Allocate a buffer with the same range and data as src_buf.
 * Errors:
 *     BAD_STATE      the inventory is not started
 *     NOT_PERMITTED  src_buf has no reference, or its map is not started
 *     NO_MEMORY      all buffers are allocated
 */
DOCA_STABLE doca_error_t doca_buf_inventory_buf_dup(struct doca_buf_inventory *inventory,
						    const struct doca_buf *src_buf,
						    struct doca_buf **dst_buf);

/*
 * Set the user data of the inventory. Call before start.
 * Errors:
 *     BAD_STATE  the inventory is started
 */
DOCA_STABLE doca_error_t doca_buf_inventory_set_user_data(struct doca_buf_inventory *inventory,
							  union doca_data user_data);

/* Get the number of buffers of the inventory. */
DOCA_STABLE doca_error_t doca_buf_inventory_get_num_elements(
	const struct doca_buf_inventory *inventory, uint32_t *num_of_elements);

/* Get the number of buffers that are not allocated. */
DOCA_STABLE doca_error_t doca_buf_inventory_get_num_free_elements(
	const struct doca_buf_inventory *inventory, uint32_t *num_of_free_elements);

/* Get the user data that was set, or 0. */
DOCA_STABLE doca_error_t doca_buf_inventory_get_user_data(
	const struct doca_buf_inventory *inventory, union doca_data *user_data);

/*
 * Add buffers to a started inventory.
 * Errors:
 *     BAD_STATE  the inventory is not started
 */
DOCA_EXPERIMENTAL doca_error_t doca_buf_inventory_expand(struct doca_buf_inventory *inventory,
							 uint32_t num_elements);

/*
 * Allocate a buffer without data.
 * Errors:
 *     NO_MEMORY  all buffers are allocated
 */
static inline doca_error_t doca_buf_inventory_buf_get_by_addr(struct doca_buf_inventory *inventory,
							      struct doca_mmap *mmap, void *addr,
							      size_t len, struct doca_buf **buf)
{
	return doca_buf_inventory_buf_get_by_args(inventory, mmap, addr, len, addr, 0, buf);
}

/*
 * Allocate a buffer whose data part is its whole range.
 * Errors:
 *     NO_MEMORY  all buffers are allocated
 */
static inline doca_error_t doca_buf_inventory_buf_get_by_data(struct doca_buf_inventory *inventory,
							      struct doca_mmap *mmap, void *data,
							      size_t data_len,
							      struct doca_buf **buf)
{
	return doca_buf_inventory_buf_get_by_args(inventory, mmap, data, data_len, data, data_len,
						  buf);
}

/* Set another range of the same map, and the data part in it. */
DOCA_EXPERIMENTAL doca_error_t doca_buf_inventory_buf_reuse_by_args(struct doca_buf *buf,
								    void *addr, size_t len,
								    void *data, size_t data_len);

/* Set another range of the same map, without data. */
DOCA_EXPERIMENTAL doca_error_t doca_buf_inventory_buf_reuse_by_addr(struct doca_buf *buf,
								    void *addr, size_t len);

/* Set another range of the same map. The data part is the whole range. */
DOCA_EXPERIMENTAL doca_error_t doca_buf_inventory_buf_reuse_by_data(struct doca_buf *buf,
								    void *data, size_t data_len);

#ifdef __cplusplus
}
#endif

#endif
