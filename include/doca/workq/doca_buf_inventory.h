/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_buf_inventory.h - inventories of buffers, for programs of the WorkQ interface (DOCA before
 * tasks)
 */
#ifndef DOCA_WORKQ_BUF_INVENTORY_H
#define DOCA_WORKQ_BUF_INVENTORY_H

#include <doca_buf.h>
#include <doca_error.h>
#include <doca_types.h>

#include_next <doca_buf_inventory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Create an inventory. user_data may be NULL. extensions has no effect. */
static inline doca_error_t doca_workq_buf_inventory_create(const union doca_data *user_data,
							   size_t num_elements, uint32_t extensions,
							   struct doca_buf_inventory **inventory)
{
	const doca_error_t result = doca_buf_inventory_create(num_elements, inventory);

	(void)extensions;
	if (result == DOCA_SUCCESS && user_data)
		(void)doca_buf_inventory_set_user_data(*inventory, *user_data);
	return result;
}

#define doca_buf_inventory_create doca_workq_buf_inventory_create

/* Allocate a buffer without data. */
static inline doca_error_t doca_buf_inventory_buf_by_addr(struct doca_buf_inventory *inventory,
							  struct doca_mmap *mmap, void *addr,
							  size_t len, struct doca_buf **buf)
{
	return doca_buf_inventory_buf_get_by_addr(inventory, mmap, addr, len, buf);
}

/* Allocate a buffer whose data part is its whole range. */
static inline doca_error_t doca_buf_inventory_buf_by_data(struct doca_buf_inventory *inventory,
							  struct doca_mmap *mmap, void *data,
							  size_t data_len, struct doca_buf **buf)
{
	return doca_buf_inventory_buf_get_by_data(inventory, mmap, data, data_len, buf);
}

static inline doca_error_t doca_buf_inventory_buf_by_args(struct doca_buf_inventory *inventory,
							  struct doca_mmap *mmap, void *addr,
							  size_t len, void *data, size_t data_len,
							  struct doca_buf **buf)
{
	return doca_buf_inventory_buf_get_by_args(inventory, mmap, addr, len, data, data_len, buf);
}

#ifdef __cplusplus
}
#endif

#endif
