/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_mmap.h - memory maps: memory that devices and other processes may use
 *
 * A map refers to memory of the program, or, if it is imported, to the memory of another map in
 * another process. An export is a descriptor: plain bytes that the program sends to the importer.
 * Knowledge of the descriptor is the right to import the memory.
 */
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

/* doca_mmap_destroy() calls it with the range. cookie: as passed to doca_mmap_set_free_cb(). */
typedef void(doca_mmap_memrange_free_cb_t)(void *addr, size_t len, void *cookie);
typedef uint32_t doca_dpa_dev_mmap_t;

/*
 * Create a map without range and devices. Only local access is permitted.
 * Errors:
 *     NO_MEMORY  memory allocation failed
 */
DOCA_STABLE doca_error_t doca_mmap_create(struct doca_mmap **mmap);

/*
 * Destroy the map. The library stops it first, like doca_mmap_stop(), and calls the free callback
 * if the map was ever started. The program may free or unmap the memory before this call. Errors:
 * those of doca_mmap_stop(). After an error the map still exists, and the library has not called
 * the free callback.
 */
DOCA_STABLE doca_error_t doca_mmap_destroy(struct doca_mmap *mmap);

/*
 * Start the map. Required before an export and before the first buffer.
 * Errors:
 *     NOT_PERMITTED  the map has no range, is started or imported, or the last stop failed
 *     NO_MEMORY      never returned
 */
DOCA_STABLE doca_error_t doca_mmap_start(struct doca_mmap *mmap);

/*
 * Stop the map: end all use of it. The map can be private, exported or imported. After SUCCESS,
 * nothing outside this process writes the memory of an exported map: no other process, no device of
 * a peer and no copy of an emulated DPA.
 * - The library of each importer releases the memory and confirms the release, without help of the
 *   importer's program. Tasks of the importer that use the map then fail with IO_FAILED.
 * - When an importer or a device has not confirmed within 100 ms, the library replaces the pages:
 *   it copies the range into other pages at the same addresses. The importer keeps the old pages.
 * - When an importer's connection ended without a confirmation, the library replaces the pages
 *   immediately, because a child process of the importer can still have the memory.
 * The call takes at most 100 ms, plus 1 s for each GB of the map, if a processor is free for it.
 * While the library copies pages, threads of this process may read and write them, and no write is
 * lost. But for some hundred microseconds a thread might not see the last write of another one. So
 * the range must not contain a lock or atomic counter that is in use, or the stack of another
 * thread. The program must not unmap or remap the range during the call. The library also copies a
 * page that belongs to another exported map. Importers of that map lose the page and must import
 * the map again. The library does not wait for tasks of this process: the program must complete all
 * tasks that use the map before.
 * Errors:
 *     NOT_PERMITTED     buffers refer to the map
 *     NO_MEMORY         there is no memory for the copy; importers can still write: call it again
 *     OPERATING_SYSTEM  a system call failed, see the log; importers can still write: call it again
 */
DOCA_STABLE doca_error_t doca_mmap_stop(struct doca_mmap *mmap);

/*
 * Add a device that may use the map. Call before start.
 * Errors:
 *     ALREADY_EXIST  the map has the device already
 *     NO_MEMORY      the map has the maximum number of devices, or memory allocation failed
 *     NOT_PERMITTED  the map is started or imported
 *     NOT_SUPPORTED  never returned
 */
DOCA_STABLE doca_error_t doca_mmap_add_dev(struct doca_mmap *mmap, struct doca_dev *dev);

/*
 * Remove a device. Call before start.
 * Errors:
 *     NOT_FOUND      the map does not have the device
 *     NOT_PERMITTED  the map is started or imported
 */
DOCA_STABLE doca_error_t doca_mmap_rm_dev(struct doca_mmap *mmap, struct doca_dev *dev);

/*
 * Export a started map to the other side of the PCI bus. The descriptor belongs to the map and is
 * valid until the map is stopped. Repeated calls return the same descriptor.
 * Errors:
 *     NOT_PERMITTED  the map is not started, is imported, or has no PCI right; or the protection of
 *                    the memory in this process does not permit what the right permits
 *     NOT_FOUND      the map does not have the device
 *     NOT_SUPPORTED  the memory is mapped as shared
 *     NO_MEMORY      memory allocation failed
 *     DRIVER         a system call failed or a resource limit was reached, see the log
 */
DOCA_STABLE doca_error_t doca_mmap_export_pci(struct doca_mmap *mmap, const struct doca_dev *dev,
					      const void **export_desc, size_t *export_desc_len);

/*
 * Export a started map to RDMA peers. Like doca_mmap_export_pci() otherwise. A map that was
 * imported over PCI may be exported, too.
 * Errors:
 *     NOT_PERMITTED  the map is not started or has no RDMA right (imported map: no PCI right)
 *     NOT_FOUND      the map does not have the device
 *     NOT_SUPPORTED  the memory is mapped as shared
 *     NO_MEMORY      memory allocation failed
 *     DRIVER         a system call failed or a resource limit was reached, see the log
 */
DOCA_STABLE doca_error_t doca_mmap_export_rdma(struct doca_mmap *mmap, const struct doca_dev *dev,
					       const void **export_desc, size_t *export_desc_len);

/*
 * Get the handle of the map for code on an emulated DPA.
 * Errors:
 *     NOT_PERMITTED  the map is not started
 *     NOT_FOUND      the map does not have the device
 */
DOCA_EXPERIMENTAL doca_error_t doca_mmap_dev_get_dpa_handle(struct doca_mmap *mmap,
							    const struct doca_dev *dev,
							    doca_dpa_dev_mmap_t *dpa_mmap_handle);

/*
 * Import the memory of a map in another process. The new map is started. Its addresses are those of
 * the exporter, not of this process. After the exporter has stopped its map, tasks that use the
 * imported map fail with IO_FAILED. A child of fork(2) cannot use the imported map. user_data may
 * be NULL.
 * Errors:
 *     INVALID_VALUE  the descriptor is damaged or incomplete, see the log
 *     NOT_SUPPORTED  the memory is on another machine, and the device has no network transport
 *     NOT_PERMITTED  the exporter rejects the import, or belongs to another user
 *     DRIVER         the exporter cannot be reached, or the memory cannot be mapped
 *     NO_MEMORY      memory allocation failed
 */
DOCA_STABLE doca_error_t doca_mmap_create_from_export(const union doca_data *user_data,
						      const void *export_desc,
						      size_t export_desc_len, struct doca_dev *dev,
						      struct doca_mmap **mmap);

/*
 * Set the range: any address, and a length in bytes. The memory must exist until the map is
 * destroyed. Call once, before start.
 * Errors:
 *     BAD_STATE      the map is started
 *     NOT_PERMITTED  the map has a range already, or is imported
 */
DOCA_STABLE doca_error_t doca_mmap_set_memrange(struct doca_mmap *mmap, void *addr, size_t len);

/*
 * Get the range. For an imported map it is the range of the exporter.
 * Errors:
 *     BAD_STATE  the map has no range
 */
DOCA_STABLE doca_error_t doca_mmap_get_memrange(const struct doca_mmap *mmap, void **addr,
						size_t *len);

/*
 * Set the function that doca_mmap_destroy() calls with the range and `opaque`. Call before start.
 * Errors:
 *     BAD_STATE  the map is started or imported
 */
DOCA_STABLE doca_error_t doca_mmap_set_free_cb(struct doca_mmap *mmap,
					       doca_mmap_memrange_free_cb_t *free_cb, void *opaque);

/* Get the user data that was set, or 0. */
DOCA_STABLE doca_error_t doca_mmap_get_user_data(const struct doca_mmap *mmap,
						 union doca_data *user_data);

/* Get the maximum number of devices that was set, or the default. */
DOCA_STABLE doca_error_t doca_mmap_get_max_num_devices(const struct doca_mmap *mmap,
						       uint32_t *max_num_devices);

/*
 * Get the number of buffers that refer to the map. It is 0 after doca_mmap_enable_thread_safety(),
 * because the library then does not count buffers.
 */
DOCA_STABLE doca_error_t doca_mmap_get_num_bufs(const struct doca_mmap *mmap, uint32_t *num_bufs);

/* Stores 1 if the map was exported, 0 if not. */
DOCA_STABLE doca_error_t doca_mmap_get_exported(const struct doca_mmap *mmap, uint8_t *exported);

/* Stores 1 if the map is imported, 0 if not. */
DOCA_STABLE doca_error_t doca_mmap_get_from_export(const struct doca_mmap *mmap,
						   uint8_t *from_export);

/*
 * Set the maximum number of devices of the map. Call before start.
 * Errors:
 *     NOT_PERMITTED  the map is started
 */
DOCA_STABLE doca_error_t doca_mmap_set_max_num_devices(struct doca_mmap *mmap,
						       uint32_t max_num_devices);

/*
 * Set the rights: bits of doca_access_flag. The default is LOCAL_READ_WRITE. Call before start.
 * Errors:
 *     INVALID_VALUE  unknown bits, or both PCI_READ_ONLY and PCI_READ_WRITE
 *     BAD_STATE      the map is started or imported
 */
DOCA_STABLE doca_error_t doca_mmap_set_permissions(struct doca_mmap *mmap, uint32_t access_mask);

/*
 * Set the user data of the map. Call before start.
 * Errors:
 *     BAD_STATE  the map is started
 */
DOCA_STABLE doca_error_t doca_mmap_set_user_data(struct doca_mmap *mmap, union doca_data user_data);

/*
 * Stores 1 if a map with the device can be exported over PCI (second function: imported), 0 if not.
 * Never returns DRIVER.
 */
DOCA_STABLE doca_error_t doca_mmap_cap_is_export_pci_supported(const struct doca_devinfo *devinfo,
							       uint8_t *mmap_export);
DOCA_STABLE doca_error_t doca_mmap_cap_is_create_from_export_pci_supported(
	const struct doca_devinfo *devinfo, uint8_t *from_export);

/*
 * Let several threads allocate buffers that refer to the map. The library then does not count the
 * buffers. Call before start, or for an imported map at any time.
 * Errors:
 *     NOT_PERMITTED  the map is started and not imported
 */
DOCA_EXPERIMENTAL doca_error_t doca_mmap_enable_thread_safety(struct doca_mmap *mmap);

#ifdef __cplusplus
}
#endif

#endif
