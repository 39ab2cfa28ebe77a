/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mmap_share.h - maps shared between processes: interface between doca_mmap.c, mmap_share.c (owner)
 * and mmap_share_import.c (importer)
 */
#ifndef GD_SHARE_H
#define GD_SHARE_H

#include "mmap/mmap_blob.h"

#include <pthread.h>

/* State of a map that is shared with other processes. */
struct gd_share {
	struct gd_blob pci, rdma; /* exports; kind 0: none */
	/* owner; under gd_mmaps_lock: */
	bool is_held;    /* pages are in memfds, see mmap_pages.h */
	bool is_common;  /* in the common memfd, which all Comch peers get */
	bool is_tainted; /* a connection of an importer ended without RELEASED */
	/* importer: */
	int fd;   /* memfd of the memory; -1: not mapped, or in several memfds */
	int conn; /* connection to the owner; -1: the owner is on another machine */
	int gone; /* __atomic: the owner has stopped the map or ended */
	/* under gd_mmaps_lock: list of imports whose owner waits for RELEASED */
	struct gd_share *next;
	struct gd_mmap_id id; /* id of the map of the owner */
	void *base;           /* address of the mapping, in whole pages */
	size_t base_bytes;
	int prot;
};

/*
 * Guards the list of maps, the shares, and the connections of importers. Lock order: after the lock
 * of a transport.
 */
extern pthread_mutex_t gd_mmaps_lock;

/* gd_mmaps_lock held. Returns the started local map with that id, or NULL. */
struct doca_mmap *gd_mmap_owned(const struct gd_mmap_id *id);
/* gd_mmaps_lock held. Returns the list of all started maps. */
struct doca_mmap *gd_mmaps(void);

/*
 * Without gd_mmaps_lock. Install the fork handlers, once for each process. Call before state is
 * kept that a child of fork(2) must not use.
 */
void gd_share_watch_forks(void);

/* The caller holds gd_mmaps_lock, unless a comment says otherwise. */
/*
 * Returns the share of a map, which is created if needed. NULL: out of memory. The lock is not
 * needed for a map that is not started.
 */
struct gd_share *gd_share_make(struct doca_mmap *mmap);
/* Move the pages into memfds. common: for Comch peers, which only read. */
doca_error_t gd_share_hold(struct doca_mmap *mmap, bool common);
/*
 * Returns the memfd of a map whose memory is in one memfd, at the offset equal to its address.
 * -ENOMEM, or other -errno: the memory is not in one memfd.
 */
int gd_share_fd(const struct doca_mmap *mmap);
/*
 * Export a map. here: true if processes of this machine map the memory, false if peers reach it
 * only through a network.
 */
doca_error_t gd_share_export(struct doca_mmap *mmap, enum gd_blob_kind kind, bool here,
			     const struct gd_blob **blob_p);
/*
 * Without the lock, for a local map that is no longer in the list. After SUCCESS no other process
 * can write the memory: each importer has released it, or keeps the old pages after GD_SILENT_NS.
 * The share is freed. After an error nothing has changed; call it again.
 */
doca_error_t gd_share_revoke(struct doca_mmap *mmap);
/*
 * Without the lock. Import the memory of a descriptor. map: true to map the memory, false to set
 * only address and length.
 */
doca_error_t gd_share_import(struct doca_mmap *mmap, const struct gd_blob *blob, bool map);
/*
 * Without the lock. End an import, or undo a failed one, and free the share. is_out: a device can
 * still use the memory, so RELEASED is not sent.
 */
void gd_share_release(struct doca_mmap *mmap, bool is_out);
/* In a child of fork(2): discard the imports of the parent. */
void gd_share_forget_import(struct gd_share *s);
void gd_share_forget_timer(void);

/* An importer, or a device of a peer, must release the memory of a stopped map in this time. */
#define GD_SILENT_NS 100000000ull

#endif
