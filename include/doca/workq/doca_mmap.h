/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_mmap.h - memory maps, for programs of the WorkQ interface (DOCA before tasks) */
#ifndef DOCA_WORKQ_MMAP_H
#define DOCA_WORKQ_MMAP_H

#include <stdlib.h>
#include <string.h>

#include <doca_error.h>
#include <doca_types.h>

#include_next <doca_mmap.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Create a map. user_data may be NULL. The rights permit reads and writes by the program and by the
 * other side of the PCI bus.
 */
static inline doca_error_t doca_workq_mmap_create(const union doca_data *user_data,
						  struct doca_mmap **mmap)
{
	doca_error_t result = doca_mmap_create(mmap);

	if (result != DOCA_SUCCESS)
		return result;
	result = doca_mmap_set_permissions(*mmap, DOCA_ACCESS_LOCAL_READ_WRITE |
							  DOCA_ACCESS_DPU_READ_WRITE);
	if (result == DOCA_SUCCESS && user_data)
		result = doca_mmap_set_user_data(*mmap, *user_data);
	if (result != DOCA_SUCCESS)
		(void)doca_mmap_destroy(*mmap);
	return result;
}

/*
 * Start the map. A map without a range starts in doca_mmap_populate(); until then devices can be
 * added.
 */
static inline doca_error_t doca_workq_mmap_start(struct doca_mmap *mmap)
{
	void *addr;
	size_t len;

	if (mmap && doca_mmap_get_memrange(mmap, &addr, &len) == DOCA_ERROR_BAD_STATE)
		return DOCA_SUCCESS;
	return doca_mmap_start(mmap);
}

/* Add a device. Returns IN_USE if the map has the device already. */
static inline doca_error_t doca_mmap_dev_add(struct doca_mmap *mmap, struct doca_dev *dev)
{
	const doca_error_t result = doca_mmap_add_dev(mmap, dev);

	return result == DOCA_ERROR_ALREADY_EXIST ? DOCA_ERROR_IN_USE : result;
}

static inline doca_error_t doca_mmap_dev_rm(struct doca_mmap *mmap, struct doca_dev *dev)
{
	return doca_mmap_rm_dev(mmap, dev);
}

/*
 * Set the range of a map that was started without a range. pg_sz: a power of two, at least 4096.
 * free_cb may be NULL.
 */
static inline doca_error_t doca_mmap_populate(struct doca_mmap *mmap, void *addr, size_t len,
					      size_t pg_sz, doca_mmap_memrange_free_cb_t *free_cb,
					      void *opaque)
{
	doca_error_t result;

	if (pg_sz < 4096 || (pg_sz & (pg_sz - 1)))
		return DOCA_ERROR_INVALID_VALUE;
	result = doca_mmap_set_memrange(mmap, addr, len);
	if (result == DOCA_SUCCESS && free_cb)
		result = doca_mmap_set_free_cb(mmap, free_cb, opaque);
	return result == DOCA_SUCCESS ? doca_mmap_start(mmap) : result;
}

/* Export the map to the other side of the PCI bus. The caller frees the descriptor by free(3). */
static inline doca_error_t doca_mmap_export(struct doca_mmap *mmap, const struct doca_dev *dev,
					    void **export_desc, size_t *export_desc_len)
{
	const void *desc = NULL;
	doca_error_t result;

	if (!export_desc || !export_desc_len)
		return DOCA_ERROR_INVALID_VALUE;
	result = doca_mmap_export_pci(mmap, dev, &desc, export_desc_len);
	if (result != DOCA_SUCCESS)
		return result;
	*export_desc = malloc(*export_desc_len);
	if (!*export_desc)
		return DOCA_ERROR_NO_MEMORY;
	memcpy(*export_desc, desc, *export_desc_len);
	return DOCA_SUCCESS;
}

/*
 * Like doca_mmap_export(), but the descriptor belongs to the map and is valid until the map is
 * stopped.
 */
static inline doca_error_t doca_mmap_export_dpu(struct doca_mmap *mmap, const struct doca_dev *dev,
						const void **export_desc, size_t *export_desc_len)
{
	return doca_mmap_export_pci(mmap, dev, export_desc, export_desc_len);
}

#define doca_mmap_create doca_workq_mmap_create
#define doca_mmap_start doca_workq_mmap_start

#ifdef __cplusplus
}
#endif

#endif
