/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_mmap.h - memory maps: memory that a device, or another process, may use */
#ifndef DOCA_MMAP_H
#define DOCA_MMAP_H

#include <stddef.h>
#include <stdint.h>

#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doca_dev;
struct doca_devinfo;
struct doca_mmap;

typedef void(doca_mmap_memrange_free_cb_t)(void *addr, size_t len, void *cookie);
typedef uint32_t doca_dpa_dev_mmap_t;

/* New unstarted mmap without range, devices or permissions. Errors: NO_MEMORY. */
DOCA_STABLE doca_error_t doca_mmap_create(struct doca_mmap **mmap);

/*
 * Implicit stop; runs free_cb if it was started; NOT_PERMITTED if doca_bufs still refer to it (unless thread safety
 * on). Must not touch the user's memory.
 */
DOCA_STABLE doca_error_t doca_mmap_destroy(struct doca_mmap *mmap);

/*
 * Finalises configuration; needs a memrange; after it only export / buf allocation is allowed. Errors: NO_MEMORY,
 * NOT_PERMITTED.
 */
DOCA_STABLE doca_error_t doca_mmap_start(struct doca_mmap *mmap);

/*
 * Frees export descriptors, invalidates imported copies. Docs: NOT_PERMITTED if exported/imported or bufs exist -
 * but rdma samples stop exported and imported mmaps and treat an error as failure, so return SUCCESS.
 */
DOCA_STABLE doca_error_t doca_mmap_stop(struct doca_mmap *mmap);

/*
 * Before start only; same device twice -> ALREADY_EXIST; beyond max devices -> NO_MEMORY; not on imported mmaps.
 * Errors: NOT_PERMITTED, NOT_SUPPORTED.
 */
DOCA_STABLE doca_error_t doca_mmap_add_dev(struct doca_mmap *mmap, struct doca_dev *dev);

/* Before start; unknown dev -> NOT_FOUND. Errors: NOT_PERMITTED. */
DOCA_STABLE doca_error_t doca_mmap_rm_dev(struct doca_mmap *mmap, struct doca_dev *dev);

/*
 * Needs started mmap with a PCI permission and dev added; out blob is owned by the mmap until stop; repeat/other
 * device allowed. dma_copy_dpu needs blob <= 512 bytes (real observed: 267). Errors: NOT_FOUND, NOT_PERMITTED,
 * NO_MEMORY, NOT_SUPPORTED, DRIVER.
 */
DOCA_STABLE doca_error_t doca_mmap_export_pci(struct doca_mmap *mmap, const struct doca_dev *dev,
		const void **export_desc, size_t *export_desc_len);

/*
 * Needs started mmap with an RDMA permission; allowed on an imported (PCI) mmap: zero_copy re-exports the
 * initiator's mmap. Errors: NOT_FOUND, NOT_PERMITTED, NO_MEMORY, NOT_SUPPORTED, DRIVER.
 */
DOCA_STABLE doca_error_t doca_mmap_export_rdma(struct doca_mmap *mmap, const struct doca_dev *dev,
		const void **export_desc, size_t *export_desc_len);

/* For the side on an emulated DPA. Errors: NOT_FOUND, NOT_PERMITTED. */
DOCA_EXPERIMENTAL doca_error_t doca_mmap_dev_get_dpa_handle(struct doca_mmap *mmap, const struct doca_dev *dev,
		doca_dpa_dev_mmap_t *dpa_mmap_handle);

/*
 * Creates an already-started mmap for remote memory; user_data may be NULL; a bad blob gives an error, not a crash.
 * Errors: NO_MEMORY, NOT_SUPPORTED, NOT_PERMITTED, DRIVER.
 */
DOCA_STABLE doca_error_t doca_mmap_create_from_export(const union doca_data *user_data, const void *export_desc,
		size_t export_desc_len, struct doca_dev *dev, struct doca_mmap **mmap);

/* Mandatory and once only (again -> NOT_PERMITTED); before start; any alignment, any length. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t doca_mmap_set_memrange(struct doca_mmap *mmap, void *addr, size_t len);

/* Returns the range; on an imported mmap the exporter's virtual address and length. Unset -> BAD_STATE. */
DOCA_STABLE doca_error_t doca_mmap_get_memrange(const struct doca_mmap *mmap, void **addr, size_t *len);

/* Callback (addr,len,opaque) run by destroy if the mmap had been started. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t doca_mmap_set_free_cb(struct doca_mmap *mmap, doca_mmap_memrange_free_cb_t *free_cb,
		void *opaque);

/* What was set, or the default. */
DOCA_STABLE doca_error_t doca_mmap_get_user_data(const struct doca_mmap *mmap, union doca_data *user_data);
DOCA_STABLE doca_error_t doca_mmap_get_max_num_devices(const struct doca_mmap *mmap, uint32_t *max_num_devices);

/* Number of doca_bufs referring to the mmap (not counted with thread safety). */
DOCA_STABLE doca_error_t doca_mmap_get_num_bufs(const struct doca_mmap *mmap, uint32_t *num_bufs);

/* Tells the exported. */
DOCA_STABLE doca_error_t doca_mmap_get_exported(const struct doca_mmap *mmap, uint8_t *exported);

/* Tells the from export. */
DOCA_STABLE doca_error_t doca_mmap_get_from_export(const struct doca_mmap *mmap, uint8_t *from_export);

/* Before start. Errors: NOT_PERMITTED. */
DOCA_STABLE doca_error_t doca_mmap_set_max_num_devices(struct doca_mmap *mmap, uint32_t max_num_devices);

/* OR of doca_access_flag; before start. Undefined/contradictory flags -> INVALID_VALUE. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t doca_mmap_set_permissions(struct doca_mmap *mmap, uint32_t access_mask);

/* Before start. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t doca_mmap_set_user_data(struct doca_mmap *mmap, union doca_data user_data);

/* 1 or 0. Errors: DRIVER. */
DOCA_STABLE doca_error_t doca_mmap_cap_is_export_pci_supported(const struct doca_devinfo *devinfo,
		uint8_t *mmap_export);
DOCA_STABLE doca_error_t doca_mmap_cap_is_create_from_export_pci_supported(const struct doca_devinfo *devinfo,
		uint8_t *from_export);

/*
 * Makes get_by_* safe from threads and turns off buf counting. target_rdma calls it on an imported (started) mmap:
 * must succeed. Errors: NOT_PERMITTED.
 */
DOCA_EXPERIMENTAL doca_error_t doca_mmap_enable_thread_safety(struct doca_mmap *mmap);

#ifdef __cplusplus
}
#endif

#endif
