/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mmap.h - memory maps, as the other modules of the library use them
 *
 * A map is local (memory of this program) or imported (memory of another process that exported it).
 * Buffer addresses of an imported map are those of the exporter. gd_buf_host() converts them to
 * addresses of this process.
 *
 * An export makes the pages shareable in place: the library copies them once into a memfd, which it
 * then maps at the same addresses, see mmap_pages.h. The descriptor (mmap_blob.h) contains the path
 * of a Unix socket of the owner, a 128-bit secret, the range and the rights. The service thread of
 * the owner serves the socket. An importer requests the memfd on it, maps it and keeps the
 * connection. If the connection ends, the owner has ended. If the owner stops its map, it revokes
 * the memory on that connection. So the program of the exporter need not act, and an invalid
 * descriptor is an error.
 *
 * An RDMA export that is imported for a device with a network transport is not mapped: the importer
 * reaches it through a connection, by its id.
 */
#ifndef GD_MEMORY_H
#define GD_MEMORY_H

#include <doca_mmap.h>

#include <gantry/transport.h>

#include <stdbool.h>
#include <stdint.h>

/* maximum bytes of an export descriptor: programs use buffers of this size */
#define GD_BLOB_MAX 512

/* random bytes that identify a map in all processes. An importer must know them */
struct gd_mmap_id {
	uint8_t bytes[16];
};

struct doca_mmap {
	struct gd_mmap_id id; /* id of the map of the original owner */
	void *addr;           /* address in buffers: that of the exporter if the map is imported */
	size_t length;
	/* address in this process: equal to addr for a local map; NULL: not mapped */
	void *local;
	/*
	 * __atomic; doca_access_flag: set by the program, or granted by the import; an RDMA export
	 * of an imported map adds its rights
	 */
	uint32_t access;
	bool is_alive, started, imported, has_range, thread_safe, was_started;
	uint32_t n_bufs; /* __atomic: buffers that refer to the map */
	/* under gd_mmaps_lock: threads of the library between gd_mmap_use() and gd_mmap_unuse() */
	uint32_t n_users;
	/*
	 * __atomic: incremented when the pages that Comch peers have mapped are no longer those of
	 * the map
	 */
	uint32_t moves;
	uint32_t n_devs, max_devs;
	struct doca_dev **devs;
	union doca_data user_data;
	doca_mmap_memrange_free_cb_t *free_cb;
	void *free_opaque;
	uint32_t dpa_handle;    /* unique in the process */
	struct gd_share *share; /* set by an export or import, see mmap_share.h */
	/* next map of the list of started maps, or next of the list of free structures */
	struct doca_mmap *next;
};

static inline uint32_t gd_mmap_access(const struct doca_mmap *mmap)
{
	return __atomic_load_n(&mmap->access, __ATOMIC_RELAXED);
}

/*
 * Check whether the memory can be used. SUCCESS; BAD_STATE: not started; IO_FAILED: imported, and
 * its owner has stopped it or ended. Any thread, no system call.
 */
doca_error_t gd_mmap_check(const struct doca_mmap *mmap);

/*
 * Users of the memory of a region. OWN: a device of this process. APART: one peer. COMMON: all
 * Comch peers, which can then read all maps that are in COMMON regions.
 */
enum gd_sharing { GD_REGION_OWN, GD_REGION_APART, GD_REGION_COMMON };

/*
 * Check a map after a copy by the CPU, like gd_mmap_check(). IO_FAILED: the copy might have used
 * pages that no longer belong to the owner.
 */
doca_error_t gd_mmap_copied(const struct doca_mmap *mmap);

/*
 * Describe the memory of a map as a region that a transport can register and export. A region with
 * a descriptor (fd) can be shared. Valid until the map is stopped. Makes local memory shareable,
 * except for OWN. The rights are those that the map grants to peers, 0 for local use only. Any
 * thread.
 * Errors: those of gd_mmap_check(), and
 *     NOT_SUPPORTED  the map is not mapped here, not private memory, or in several memfds
 *     NOT_PERMITTED, NO_MEMORY, DRIVER, INVALID_VALUE  the memory cannot be made shareable
 */
doca_error_t gd_mmap_region(struct doca_mmap *mmap, enum gd_sharing sharing,
			    struct gantry_region *region);
/*
 * Make the memory of a local map shareable, before its first export. Errors: those of
 * gd_mmap_region().
 */
doca_error_t gd_mmap_prepare_export(struct doca_mmap *mmap);

/*
 * Returns the started map with that id whose memory is here and that is exported over RDMA, or
 * NULL. Any thread. A struct doca_mmap is never freed: if the program destroys the map meanwhile,
 * the structure is only marked as not started.
 */
struct doca_mmap *gd_mmap_find(const struct gd_mmap_id *id);
/*
 * Like gd_mmap_find(). The map stays mapped until gd_mmap_unuse(), for which doca_mmap_stop()
 * waits.
 */
struct doca_mmap *gd_mmap_find_use(const struct gd_mmap_id *id);
/*
 * rdma/rdma_revoke.c: returns whether a device of a peer can reach the map, or, for an imported
 * map, a device of this process. If so, the function has requested the revocation. Call without a
 * lock.
 */
bool gd_rdma_is_in_use(const struct gd_mmap_id *map, bool imported);
/*
 * Wait until no device reaches the map, at the latest until gn_now_ns() is `end`. Returns whether a
 * device still reaches the map.
 */
bool gd_rdma_revoke_map(const struct gd_mmap_id *map, bool imported, uint64_t end);
/*
 * For threads of the library that copy: find the started map with a handle of
 * doca_mmap_dev_get_dpa_handle(), or NULL. The map stays mapped until gd_mmap_unuse(), for which
 * doca_mmap_stop() waits.
 */
struct doca_mmap *gd_mmap_use(uint32_t handle);
void gd_mmap_unuse(struct doca_mmap *mmap);

/* Returns whether the program has given the map to the device, or imported the map for it. */
static inline bool gd_mmap_has_dev(const struct doca_mmap *mmap, const struct doca_dev *dev)
{
	for (uint32_t i = 0; i < mmap->n_devs; i++)
		if (doca_likely(mmap->devs[i] == dev))
			return true;
	return false;
}

/* Returns whether this process may write (is_filled) or read the memory. */
bool gd_mmap_allows(const struct doca_mmap *mmap, bool is_filled);

#endif
