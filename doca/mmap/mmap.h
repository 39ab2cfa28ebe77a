/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mmap.h - memory maps as the libraries see them.
 *
 * A map is local (the program's own memory) or imported (memory of another process that exported
 * it). Buffer addresses of an imported map are those of the exporter: gd_buf_host() turns one into
 * an address of this process.
 *
 * Export makes the pages shareable in place: they are copied once into a memfd, which is then
 * mapped over the same addresses, see pages.h. The descriptor (blob.h) names the owner: a Unix
 * socket served by the owner's service thread, a 128-bit secret, the range and the rights. Import
 * asks that socket for the memfd, maps it, and holds the connection: when it breaks the owner is
 * gone, and when the owner stops the map it asks the memory back there. So the exporter's program
 * need not do anything, and a bad descriptor is an error. An RDMA export that is imported for a
 * device with a transport of the network is not mapped: it is reached through a connection, by its
 * id.
 */
#ifndef GD_MEMORY_H
#define GD_MEMORY_H

#include <doca_mmap.h>

#include <gantry/transport.h>

#include <stdbool.h>
#include <stdint.h>

#define GD_BLOB_MAX 512 /* bytes of an export descriptor: programs read it into that much */

/* names a map in all processes: random, also the secret */
struct gd_mmap_id {
	uint8_t bytes[16];
};

struct doca_mmap {
	struct gd_mmap_id id; /* of the original owner's map */
	void *addr;           /* as buffers use it: the exporter's, when imported */
	size_t length;
	/* where that is in this process: addr itself when it is our own; NULL: not mapped here */
	void *local;
	/*
	 * __atomic; doca_access_flag: set by the owner, or what the export allows, and passing it
	 * on
	 */
	uint32_t access;
	bool is_alive, started, imported, has_range, thread_safe, was_started;
	uint32_t n_bufs;  /* __atomic */
	uint32_t n_users; /* under gd_mmaps_lock: threads of the library in gd_mmap_use */
	/* __atomic: grows when what Comch peers have of it is not its memory any more */
	uint32_t moves;
	uint32_t n_devs, max_devs;
	struct doca_dev **devs;
	union doca_data user_data;
	doca_mmap_memrange_free_cb_t *free_cb;
	void *free_opaque;
	uint32_t dpa_handle;    /* unlike those of all other maps of the process */
	struct gd_share *share; /* once exported or imported; see share.h */
	/* started maps; or those that were destroyed, whose memory is kept */
	struct doca_mmap *next;
};

static inline uint32_t gd_mmap_access(const struct doca_mmap *mmap)
{
	return __atomic_load_n(&mmap->access, __ATOMIC_RELAXED);
}

/*
 * SUCCESS; BAD_STATE: not started; IO_FAILED: imported, and its owner has stopped it or is gone.
 * Any thread, no system call.
 */
doca_error_t gd_mmap_check(const struct doca_mmap *mmap);

/*
 * Receivers of the memory of a region: a device here; one peer; all Comch peers, which may read
 * each other's.
 */
enum gd_sharing { GD_REGION_OWN, GD_REGION_APART, GD_REGION_COMMON };

/*
 * The same after a copy by the CPU. IO_FAILED: bytes may have come from, or gone to, pages that are
 * not the owner's any more.
 */
doca_error_t gd_mmap_copied(const struct doca_mmap *mmap);

/*
 * Memory of a map as a region that a transport can register and export (fd set when it is shared):
 * refreshed at each call, valid until the map is stopped. Makes local memory shareable unless it is
 * for a device here. Rights are what the map lets others do: 0 when only local use was asked for.
 * Errors of gd_mmap_check; NOT_SUPPORTED: not mapped here, not private memory, or it has pages in
 * common with several maps that were imported before; NOT_PERMITTED, NO_MEMORY, ... Any thread.
 */
doca_error_t gd_mmap_region(struct doca_mmap *mmap, enum gd_sharing sharing,
			    struct gantry_region *region);
/* What takes time and memory at the first export of a local map, done now. Errors as above. */
doca_error_t gd_mmap_prepare_export(struct doca_mmap *mmap);

/*
 * The started map of this process with that id whose owner allowed it to be exported over RDMA;
 * NULL. Any thread. The memory of struct doca_mmap is never given back: one that is destroyed
 * meanwhile is only not started.
 */
struct doca_mmap *gd_mmap_find(const struct gd_mmap_id *id);
/*
 * rdma/revoke.c: may a device of a peer reach that map, or, of an imported one, a device here? Then
 * it has been asked back. Not with a lock held.
 */
bool gd_rdma_is_out(const struct gd_mmap_id *map, bool imported);
/* Wait until it is not, at the latest until gn_now_ns() is end. Is it still? */
bool gd_rdma_take_back(const struct gd_mmap_id *map, bool imported, uint64_t end);
/*
 * For threads of the library that copy: the started map that doca_mmap_dev_get_dpa_handle gave that
 * handle, which stays mapped until gd_mmap_unuse; NULL. doca_mmap_stop waits for them.
 */
struct doca_mmap *gd_mmap_use(uint32_t handle);
void gd_mmap_unuse(struct doca_mmap *mmap);

/* May its memory be written (is_filled), or read, from here? */
bool gd_mmap_allows(const struct doca_mmap *mmap, bool is_filled);

#endif
