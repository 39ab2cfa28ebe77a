/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_buf_inventory.h - where buffers come from */
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

/* Pool of num_elements descriptors; num 0 / NULL -> INVALID_VALUE. Errors: NO_MEMORY. */
DOCA_STABLE doca_error_t doca_buf_inventory_create(size_t num_elements, struct doca_buf_inventory **inventory);

/* Implicit stop; IN_USE while any buf is outstanding. */
DOCA_STABLE doca_error_t doca_buf_inventory_destroy(struct doca_buf_inventory *inventory);

/* Needed before get_by_*. */
DOCA_STABLE doca_error_t doca_buf_inventory_start(struct doca_buf_inventory *inventory);

/* No new bufs afterwards; optional before destroy. */
DOCA_STABLE doca_error_t doca_buf_inventory_stop(struct doca_buf_inventory *inventory);

/*
 * General allocator: capacity (addr,len), data (data,data_len); refcount 1; range outside mmap -> INVALID_VALUE;
 * pool empty -> NO_MEMORY. The only exported symbol of the family.
 */
DOCA_STABLE doca_error_t doca_buf_inventory_buf_get_by_args(struct doca_buf_inventory *inventory,
		struct doca_mmap *mmap, void *addr, size_t len, void *data, size_t data_len, struct doca_buf **buf);

/* New element with the same pointers. Errors: BAD_STATE, NOT_PERMITTED, NO_MEMORY. */
DOCA_STABLE doca_error_t doca_buf_inventory_buf_dup(struct doca_buf_inventory *inventory,
		const struct doca_buf *src_buf, struct doca_buf **dst_buf);

/* Before start. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t doca_buf_inventory_set_user_data(struct doca_buf_inventory *inventory,
		union doca_data user_data);

/* Tells the num elements. */
DOCA_STABLE doca_error_t doca_buf_inventory_get_num_elements(const struct doca_buf_inventory *inventory,
		uint32_t *num_of_elements);

/* Tells the num free elements. */
DOCA_STABLE doca_error_t doca_buf_inventory_get_num_free_elements(const struct doca_buf_inventory *inventory,
		uint32_t *num_of_free_elements);

/* What was set, or the default. */
DOCA_STABLE doca_error_t doca_buf_inventory_get_user_data(const struct doca_buf_inventory *inventory,
		union doca_data *user_data);

/* Adds elements to a started inventory. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_buf_inventory_expand(struct doca_buf_inventory *inventory,
		uint32_t num_elements);

/* Inline: capacity (addr,len), data=addr, data_len=0 (destination style). Errors: NO_MEMORY. */
static inline doca_error_t doca_buf_inventory_buf_get_by_addr(struct doca_buf_inventory *inventory,
		struct doca_mmap *mmap, void *addr, size_t len, struct doca_buf **buf)
{
	return doca_buf_inventory_buf_get_by_args(inventory, mmap, addr, len, addr, 0, buf);
}

/* Inline: capacity = data, data_len=len (source style). Errors: NO_MEMORY. */
static inline doca_error_t doca_buf_inventory_buf_get_by_data(struct doca_buf_inventory *inventory,
		struct doca_mmap *mmap, void *data, size_t data_len, struct doca_buf **buf)
{
	return doca_buf_inventory_buf_get_by_args(inventory, mmap, data, data_len, data, data_len, buf);
}

/*
 * General form; third-party notes report it as experimental. Real header may define by_addr/by_data inline over it
 * (either way links).
 */
DOCA_EXPERIMENTAL doca_error_t doca_buf_inventory_buf_reuse_by_args(struct doca_buf *buf, void *addr, size_t len,
		void *data, size_t data_len);

/* Re-points an existing buf (same mmap) as get_by_addr would. */
DOCA_EXPERIMENTAL doca_error_t doca_buf_inventory_buf_reuse_by_addr(struct doca_buf *buf, void *addr, size_t len);

/* Re-points an existing buf (same mmap) as get_by_data would. */
DOCA_EXPERIMENTAL doca_error_t doca_buf_inventory_buf_reuse_by_data(struct doca_buf *buf, void *data,
		size_t data_len);

#ifdef __cplusplus
}
#endif

#endif
