/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pages_store.h - between pages.c and pages_store.c: memfds, and the ranges that are held. All of
 * it is called with the lock of pages.c held.
 */
#ifndef GD_PAGES_STORE_H
#define GD_PAGES_STORE_H

#include "mmap/maps.h"

#define GD_ADDRESSES (1ull << 48)

struct gd_range {
	uintptr_t from, to;
};

/* A memfd. Each page of it that is in use is at the offset that is its address. */
struct gd_store {
	struct gd_store *next;
	int fd;
	struct gd_file file;
	bool is_common;
	bool is_given;            /* another process has, or had, the descriptor */
	bool is_stale;            /* another process may keep it for ever: no page is put into it */
	struct gd_range *tracked; /* offsets in use */
	size_t n_tracked;
};

/* An empty one. 0, -EFBIG, -EMFILE, -ENOMEM, other -errno. */
int gd_store_make(bool is_common, struct gd_store **store_p);
/* The newest, if none of its pages was ever mapped. */
void gd_store_discard(struct gd_store *s);
/* The one that all common ranges go into; NULL: none yet. */
struct gd_store *gd_store_common(void);
/* The store whose memfd a piece maps; NULL: none. */
struct gd_store *gd_store_of(const struct gd_piece *p);
/* The same when its pages are at the addresses that are their offsets; else NULL. */
struct gd_store *gd_store_place(const struct gd_piece *p);
/* Whether the program has freed pages that are in use, as madvise(MADV_REMOVE) does. */
bool gd_store_has_holes(const struct gd_store *s);
/* The range of offsets is in use. -ENOMEM. */
int gd_store_track(struct gd_store *s, const struct gd_range *range);

/*
 * All pieces of stores that are mapped (fd: the store's), also where the program has moved them to
 * (mremap); the caller's to free.
 */
int gd_stores_mapped(struct gd_piece **pieces_p, size_t *n_p);
/*
 * Free memory that the program does not map any more and no peer holds; free a store that has no
 * pages left.
 */
void gd_stores_sweep(void);
/* In a child: they are the parent's. */
void gd_stores_forget(void);

/*
 * Holds add up; one of exactly that range is dropped. Room for the next one is reserved first:
 * -ENOMEM.
 */
int gd_held_reserve(void);
void gd_held_add(const struct gd_range *range);
void gd_held_drop(const struct gd_range *range);
/* Is a page of it held? */
bool gd_is_held(const struct gd_range *range);
/* How far the pages at `from` are all held, or all not held. At most `to`. */
uintptr_t gd_held_until(uintptr_t from, uintptr_t to, bool *is_held_p);

#endif
