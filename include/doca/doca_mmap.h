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

/* A map without range, devices and rights. It belongs to the caller. Errors: NO_MEMORY. */
DOCA_STABLE doca_error_t doca_mmap_create(struct doca_mmap **mmap);

/*
 * Stops the map first, as doca_mmap_stop does, and calls the free callback if the map was ever
 * started. The program may have freed or unmapped the memory before. Errors: those of
 * doca_mmap_stop. The map then still exists, and the library has not called the free callback.
 */
DOCA_STABLE doca_error_t doca_mmap_destroy(struct doca_mmap *mmap);

/*
 * Set-up is over: from now on it can be exported, and buffers can be made. Needs a range. Errors:
 * NO_MEMORY,
 * NOT_PERMITTED.
 */
DOCA_STABLE doca_error_t doca_mmap_start(struct doca_mmap *mmap);

/*
 * Ends all use of the map, which may be a private, an exported or an imported one.
 * After SUCCESS, nothing outside this process writes the memory of an exported map: no other
 * process, no device of a peer and no copy of an emulated DPA.
 * - The library of each importer releases the memory and confirms that, without help of the
 *   importer's program. Tasks of the importer that use the map then fail with IO_FAILED.
 * - When an importer or a device has not confirmed within 100 ms, the library replaces the pages:
 *   it copies the range into other pages at the same addresses. The importer keeps the old pages.
 * - When an importer's connection ended without a confirmation, the library replaces the pages at
 *   once, because a child of the importer may still have the memory.
 * The call takes at most 100 ms, plus 1 s for each GB of the map, if a processor is free for it.
 * While the library copies pages, threads of this process may read and write them, and no write is
 * lost. But for some hundred microseconds a thread may not see what another thread wrote last. So
 * the range must not contain a lock or atomic counter that is in use, or the stack of another
 * thread. The program must not unmap or remap the range during the call. The library also copies a
 * page that belongs to another exported map. Importers of that map lose the page and must import
 * the map again.
 * The library does not wait for tasks of this process: the program must complete all tasks that use
 * the map before.
 * Errors:
 *     NOT_PERMITTED     buffers refer to the map
 *     NO_MEMORY         there is no memory for the copy; importers may still write: call it again
 *     OPERATING_SYSTEM  a system call failed, see the log; importers may still write: call it again
 */
DOCA_STABLE doca_error_t doca_mmap_stop(struct doca_mmap *mmap);

/*
 * Before start. NO_MEMORY beyond the greatest number of devices; NOT_PERMITTED for imported maps.
 * Errors:
 * ALREADY_EXIST, NOT_SUPPORTED.
 */
DOCA_STABLE doca_error_t doca_mmap_add_dev(struct doca_mmap *mmap, struct doca_dev *dev);

/* Before start. Errors: NOT_FOUND, NOT_PERMITTED. */
DOCA_STABLE doca_error_t doca_mmap_rm_dev(struct doca_mmap *mmap, struct doca_dev *dev);

/*
 * A descriptor for the other side of the PCI bus; it belongs to the map until that is stopped.
 * Needs a started map of this device with a PCI right, else NOT_PERMITTED. May be repeated. Errors:
 * NOT_FOUND, NO_MEMORY, NOT_SUPPORTED, DRIVER.
 */
DOCA_STABLE doca_error_t doca_mmap_export_pci(struct doca_mmap *mmap, const struct doca_dev *dev,
					      const void **export_desc, size_t *export_desc_len);

/*
 * The same for peers over RDMA. A map that was imported over PCI may be exported again. Errors:
 * NOT_FOUND,
 * NOT_PERMITTED, NO_MEMORY, NOT_SUPPORTED, DRIVER.
 */
DOCA_STABLE doca_error_t doca_mmap_export_rdma(struct doca_mmap *mmap, const struct doca_dev *dev,
					       const void **export_desc, size_t *export_desc_len);

/* The map as code on an emulated DPA names it. Errors: NOT_FOUND, NOT_PERMITTED. */
DOCA_EXPERIMENTAL doca_error_t doca_mmap_dev_get_dpa_handle(struct doca_mmap *mmap,
							    const struct doca_dev *dev,
							    doca_dpa_dev_mmap_t *dpa_mmap_handle);

/*
 * A map of the exporter's memory, started already. Its addresses are those of the exporter, not of
 * this process.
 * After the exporter has stopped its map, tasks that use this one fail with IO_FAILED. A child of
 * fork() cannot use it. user_data may be NULL. A descriptor that makes no sense is an error.
 * Errors: NO_MEMORY, NOT_SUPPORTED,
 * NOT_PERMITTED, DRIVER.
 */
DOCA_STABLE doca_error_t doca_mmap_create_from_export(const union doca_data *user_data,
						      const void *export_desc,
						      size_t export_desc_len, struct doca_dev *dev,
						      struct doca_mmap **mmap);

/*
 * Before start, once: NOT_PERMITTED for a second time. Any address and length of memory that
 * outlives the map.
 * Errors: BAD_STATE.
 */
DOCA_STABLE doca_error_t doca_mmap_set_memrange(struct doca_mmap *mmap, void *addr, size_t len);

/* The range; of an imported map, that of the exporter. BAD_STATE: none yet. */
DOCA_STABLE doca_error_t doca_mmap_get_memrange(const struct doca_mmap *mmap, void **addr,
						size_t *len);

/* Before start: called by doca_mmap_destroy with the range and `opaque`. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t doca_mmap_set_free_cb(struct doca_mmap *mmap,
					       doca_mmap_memrange_free_cb_t *free_cb, void *opaque);

/* What was set, or 0. */
DOCA_STABLE doca_error_t doca_mmap_get_user_data(const struct doca_mmap *mmap,
						 union doca_data *user_data);

/* What was set, or the default. */
DOCA_STABLE doca_error_t doca_mmap_get_max_num_devices(const struct doca_mmap *mmap,
						       uint32_t *max_num_devices);

/* Buffers that refer to it; 0 when they are not counted, see doca_mmap_enable_thread_safety. */
DOCA_STABLE doca_error_t doca_mmap_get_num_bufs(const struct doca_mmap *mmap, uint32_t *num_bufs);

/* 1 when it was exported, or 0. */
DOCA_STABLE doca_error_t doca_mmap_get_exported(const struct doca_mmap *mmap, uint8_t *exported);

/* 1 when it was imported, or 0. */
DOCA_STABLE doca_error_t doca_mmap_get_from_export(const struct doca_mmap *mmap,
						   uint8_t *from_export);

/* Before start. Errors: NOT_PERMITTED. */
DOCA_STABLE doca_error_t doca_mmap_set_max_num_devices(struct doca_mmap *mmap,
						       uint32_t max_num_devices);

/*
 * Before start: bits of doca_access_flag; memory may be read and written locally when nothing is
 * set. INVALID_VALUE:
 * bits that contradict each other, or are none. Errors: BAD_STATE.
 */
DOCA_STABLE doca_error_t doca_mmap_set_permissions(struct doca_mmap *mmap, uint32_t access_mask);

/* Before start. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t doca_mmap_set_user_data(struct doca_mmap *mmap, union doca_data user_data);

/* 1 or 0. Errors: DRIVER. */
DOCA_STABLE doca_error_t doca_mmap_cap_is_export_pci_supported(const struct doca_devinfo *devinfo,
							       uint8_t *mmap_export);
DOCA_STABLE doca_error_t doca_mmap_cap_is_create_from_export_pci_supported(
	const struct doca_devinfo *devinfo, uint8_t *from_export);

/*
 * Several threads may make buffers of it; buffers are not counted then. Also for a started map.
 * Errors:
 * NOT_PERMITTED.
 */
DOCA_EXPERIMENTAL doca_error_t doca_mmap_enable_thread_safety(struct doca_mmap *mmap);

#ifdef __cplusplus
}
#endif

#endif
