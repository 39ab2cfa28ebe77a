/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mmap_pages_store.h - interface between mmap_pages.c and mmap_pages_store.c: memfds (stores) and
 * held ranges. The caller holds the lock of mmap_pages.c.
 */
#ifndef GD_PAGES_STORE_H
#define GD_PAGES_STORE_H

#include "mmap/mmap_maps.h"

#define GD_ADDRESSES (1ull << 48)

struct gd_range {
	uintptr_t from, to;
};

/* A memfd. The offset of each page in use equals its address. */
struct gd_store {
	struct gd_store *next;
	int fd;
	struct gd_file file;
	bool is_common;
	bool is_given;            /* another process has or had the descriptor */
	bool is_stale;            /* another process can keep the memfd: no page is added to it */
	struct gd_range *tracked; /* offsets in use */
	size_t n_tracked;
};

/* Create an empty store. 0, -EFBIG, -EMFILE, -ENOMEM, or other -errno. */
int gd_store_make(bool is_common, struct gd_store **store_p);
/* Free the newest store. None of its pages was ever mapped. */
void gd_store_discard(struct gd_store *s);
/* Returns the store of all common ranges; NULL: none exists. */
struct gd_store *gd_store_common(void);
/* Returns the store whose memfd a piece maps; NULL: none. */
struct gd_store *gd_store_of(const struct gd_piece *p);
/*
 * Like gd_store_of(), if the pages are mapped at the addresses equal to their offsets; else NULL.
 */
struct gd_store *gd_store_place(const struct gd_piece *p);
/* Returns whether the program has freed pages in use, as madvise(MADV_REMOVE) does. */
bool gd_store_has_holes(const struct gd_store *s);
/* Record that a range of offsets is in use. 0 or -ENOMEM. */
int gd_store_track(struct gd_store *s, const struct gd_range *range);

/*
 * List all mapped pieces of stores (fd: that of the store), including those that the program has
 * moved by mremap(2). The caller frees the list.
 */
int gd_stores_mapped(struct gd_piece **pieces_p, size_t *n_p);
/* Free memory that is neither mapped nor held, and stores without pages. */
void gd_stores_sweep(void);
/* In a child of fork(2): discard the stores and holds of the parent. */
void gd_stores_forget(void);

/*
 * Holds are counted; gd_held_drop() drops one of exactly that range. gd_held_reserve() allocates
 * memory for the next gd_held_add(): 0 or -ENOMEM.
 */
int gd_held_reserve(void);
void gd_held_add(const struct gd_range *range);
void gd_held_drop(const struct gd_range *range);
/* Returns whether a page of the range is held. */
bool gd_is_held(const struct gd_range *range);
/*
 * Store whether the page at `from` is held. Returns an address, at most `to`, up to which the same
 * holds for all pages.
 */
uintptr_t gd_held_until(uintptr_t from, uintptr_t to, bool *is_held_p);

#endif
