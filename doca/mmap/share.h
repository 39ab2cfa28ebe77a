/* SPDX-License-Identifier: BSD-3-Clause */
/* share.h - memory maps between processes: between doca_mmap.c and share.c. */
#ifndef GD_SHARE_H
#define GD_SHARE_H

#include "mmap/blob.h"

#include <pthread.h>

/* What a map has in common with other processes. */
struct gd_share {
	int fd;          /* that holds its memory: pages.h's, or received; -1 */
	uint64_t offset; /* of its first byte there */
	bool is_held;    /* local: pages are in the memfd */
	struct gd_blob pci, rdma; /* exports; kind 0: not made */
	/* imported */
	int conn;        /* to the owner; -1: it is in another machine */
	int gone;        /* __atomic: the owner has stopped the map, or ended */
	void *base;      /* where whole pages of it are mapped */
	size_t base_bytes;
};

/* Guards the list of maps, what shares hold, and the connections of importers. Taken within the lock of a transport. */
extern pthread_mutex_t gd_mmaps_lock;

/* The list of started maps, with gd_mmaps_lock held: our own one with that id; NULL. */
struct doca_mmap *gd_mmap_owned(const struct gd_mmap_id *id);
/* All started maps, with it held. */
struct doca_mmap *gd_mmaps(void);

/* All with gd_mmaps_lock held, except where it says otherwise. */
doca_error_t gd_share_hold(struct doca_mmap *mmap);
/* here: processes of this machine are to have its memory; else it is reached through a network, wherever it is. */
doca_error_t gd_share_export(struct doca_mmap *mmap, enum gd_blob_kind kind, bool here, const struct gd_blob **blob_p);
/* Not held: ends what importers have, and what we have of an owner; frees the share. */
void gd_share_release(struct doca_mmap *mmap);
/* Not held: a map for what a descriptor names; map: its memory as well, else only its address and length. */
doca_error_t gd_share_import(struct doca_mmap *mmap, const struct gd_blob *blob, bool map);

#endif
