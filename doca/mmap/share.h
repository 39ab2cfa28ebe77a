/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * share.h - memory maps between processes: between doca_mmap.c, share.c (the owner) and
 * share_import.c (the importer).
 */
#ifndef GD_SHARE_H
#define GD_SHARE_H

#include "mmap/blob.h"

#include <pthread.h>

/* What a map has in common with other processes. */
struct gd_share {
	struct gd_blob pci, rdma; /* exports; kind 0: not made */
	/* owned: under gd_mmaps_lock */
	bool is_held;    /* pages are in memfds: pages.h */
	bool is_common;  /* in the one that all Comch peers get */
	bool is_tainted; /* an importer left without a word that it released the memory */
	/* imported */
	int fd;                /* that holds its memory; -1: several do, or none */
	int conn;              /* to the owner; -1: it is in another machine */
	int gone;              /* __atomic: the owner has stopped the map, or ended */
	struct gd_share *next; /* under gd_mmaps_lock: of those whose owner waits for RELEASED */
	struct gd_mmap_id id;  /* of the owner's map */
	void *base;            /* where whole pages of it are mapped */
	size_t base_bytes;
	int prot;
};

/*
 * Guards the list of maps, what shares hold, and the connections of importers. Taken within the
 * lock of a transport.
 */
extern pthread_mutex_t gd_mmaps_lock;

/* The list of started maps, with gd_mmaps_lock held: our own one with that id; NULL. */
struct doca_mmap *gd_mmap_owned(const struct gd_mmap_id *id);
/* All started maps, with it held. */
struct doca_mmap *gd_mmaps(void);

/* Once per process, before something is kept that a child of fork() must not have. Not held. */
void gd_share_watch_forks(void);

/* All with gd_mmaps_lock held, except where it says otherwise. */
/*
 * The share of a map, made when needed. NULL: out of memory. Also not held, for a map that is not
 * started.
 */
struct gd_share *gd_share_make(struct doca_mmap *mmap);
/* common: for Comch peers, which only read. */
doca_error_t gd_share_hold(struct doca_mmap *mmap, bool common);
/*
 * The one memfd of a map's memory, which is at the offset that is its address; -ENOMEM; other
 * -errno: it has not one.
 */
int gd_share_fd(const struct doca_mmap *mmap);
/*
 * here: processes of this machine are to have its memory; else it is reached through a network,
 * wherever it is.
 */
doca_error_t gd_share_export(struct doca_mmap *mmap, enum gd_blob_kind kind, bool here,
			     const struct gd_blob **blob_p);
/*
 * Not held; an owned map that is on the list no more. When SUCCESS is returned no other process can
 * write its memory: importers have released it, or, after GD_SILENT_NS, keep the old pages. The
 * share is freed. Else it is as before, and to be called again.
 */
doca_error_t gd_share_revoke(struct doca_mmap *mmap);
/*
 * Not held: a map for what a descriptor names; map: its memory as well, else only its address and
 * length.
 */
doca_error_t gd_share_import(struct doca_mmap *mmap, const struct gd_blob *blob, bool map);
/*
 * Not held: the importer's end, also of an import that failed half way; frees the share. is_out: a
 * device may still use it.
 */
void gd_share_release(struct doca_mmap *mmap, bool is_out);
/* In a child: what the parent imported is not the child's. */
void gd_share_forget_import(struct gd_share *s);
void gd_share_forget_timer(void);

#define GD_SILENT_NS 100000000ull /* for importers, and for devices of peers */

#endif
