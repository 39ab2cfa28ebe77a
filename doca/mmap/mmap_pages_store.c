/* SPDX-License-Identifier: BSD-3-Clause */
/* mmap_pages_store.c - stores (memfds with pages of the program), and the ranges that maps hold */
#include "mmap/mmap_pages_store.h"

#include <gantry/memfd.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static struct gd_store *stores;
static struct gd_range *held;
static size_t n_held;

/* -- stores -- */

static int open_store(struct gd_store *s)
{
	struct rlimit limit;
	struct stat st;
	int rc;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < GD_ADDRESSES)
		return -EFBIG; /* the kernel would send SIGXFSZ */
	s->fd = gantry_memfd_create("gantry-doca", GD_ADDRESSES, 0);
	if (s->fd < 0)
		return s->fd;
	rc = gantry_memfd_seal(s->fd, 0);
	if (rc == 0 && fstat(s->fd, &st) != 0)
		rc = -errno;
	if (rc != 0) {
		close(s->fd);
		return rc;
	}
	s->file = (struct gd_file){.device = st.st_dev, .inode = st.st_ino};
	return 0;
}

int gd_store_make(bool is_common, struct gd_store **store_p)
{
	struct gd_store *s = calloc(1, sizeof(*s));
	int rc = s ? open_store(s) : -ENOMEM;

	if (rc != 0) {
		free(s);
		return rc;
	}
	s->is_common = is_common;
	s->next = stores;
	stores = s;
	*store_p = s;
	return 0;
}

bool gd_store_has_holes(const struct gd_store *s)
{
	uint64_t bytes = 0, present;

	for (size_t i = 0; i < s->n_tracked; i++)
		bytes += s->tracked[i].to - s->tracked[i].from;
	return gantry_memfd_check_pages(s->fd, bytes, &present) != 0;
}

static void free_store(struct gd_store *s)
{
	close(s->fd);
	free(s->tracked);
	free(s);
}

void gd_store_discard(struct gd_store *s)
{
	if (s == stores) {
		stores = s->next;
		free_store(s);
	}
}

struct gd_store *gd_store_of(const struct gd_piece *p)
{
	struct gd_store *s = p->file.inode != 0 ? stores : NULL;

	while (s && (s->file.inode != p->file.inode || s->file.device != p->file.device))
		s = s->next;
	return s;
}

struct gd_store *gd_store_place(const struct gd_piece *p)
{
	return p->shared && p->offset == p->from ? gd_store_of(p) : NULL;
}

struct gd_store *gd_store_common(void)
{
	struct gd_store *s = stores;

	while (s && !(s->is_common && !s->is_stale))
		s = s->next;
	return s;
}

/* -- lists of ranges -- */

static int add_range(struct gd_range **list, size_t *n, const struct gd_range *range)
{
	struct gd_range *more = realloc(*list, (*n + 1) * sizeof(**list));

	if (!more)
		return -ENOMEM;
	more[(*n)++] = *range;
	*list = more;
	return 0;
}

int gd_store_track(struct gd_store *s, const struct gd_range *range)
{
	struct gd_range all = *range, *tracked = s->tracked;
	size_t kept = 0;

	for (size_t i = 0; i < s->n_tracked; i++) {
		if (tracked[i].to < all.from || tracked[i].from > all.to) {
			tracked[kept++] = tracked[i];
			continue;
		}
		all.from = tracked[i].from < all.from ? tracked[i].from : all.from;
		all.to = tracked[i].to > all.to ? tracked[i].to : all.to;
	}
	if (kept == s->n_tracked)
		return add_range(&s->tracked, &s->n_tracked, &all);
	tracked[kept] = all; /* replaces the ranges that were merged */
	s->n_tracked = kept + 1;
	return 0;
}

/*
 * Store whether the page at `from` is held. Returns an address, at most `to`, up to which the same
 * holds for all pages.
 */
uintptr_t gd_held_until(uintptr_t from, uintptr_t to, bool *is_held_p)
{
	uintptr_t next = to, end = from;

	for (size_t i = 0; i < n_held; i++) {
		if (held[i].from <= from && held[i].to > end)
			end = held[i].to;
		if (held[i].from > from && held[i].from < next)
			next = held[i].from;
	}
	*is_held_p = end > from;
	if (*is_held_p)
		return end < to ? end : to;
	return next;
}

bool gd_is_held(const struct gd_range *range)
{
	bool first;

	return gd_held_until(range->from, range->to, &first) < range->to || first;
}

int gd_stores_mapped(struct gd_piece **pieces_p, size_t *n_p)
{
	struct gd_piece *pieces = NULL;
	size_t n = 0, kept = 0;
	int rc = stores ? gd_maps_read(0, UINTPTR_MAX, &pieces, &n) : 0;

	for (size_t i = 0; i < n; i++) {
		const struct gd_store *s = gd_store_of(&pieces[i]);

		if (!s)
			continue;
		pieces[kept] = pieces[i];
		pieces[kept++].fd = s->fd;
	}
	*pieces_p = pieces;
	*n_p = kept;
	return rc;
}

/* -- memory that is no longer mapped -- */

/* Returns the first part of a range of the memfd that is mapped; empty at its end if none is. */
static struct gd_range first_mapped(const struct gd_store *s, const struct gd_piece *pieces,
				    size_t n, uintptr_t from, uintptr_t to)
{
	struct gd_range first = {to, to};

	for (size_t i = 0; i < n; i++) {
		uintptr_t begin = (uintptr_t)pieces[i].offset,
			  end = begin + (pieces[i].to - pieces[i].from);

		if (pieces[i].fd != s->fd)
			continue;
		if (begin < from)
			begin = from;
		if (end > to)
			end = to;
		if (begin < end && begin < first.from)
			first = (struct gd_range){begin, end};
	}
	return first;
}

/*
 * Free pages of a memfd. Another process can still write to a stale store, so the kernel frees its
 * pages with the last descriptor.
 */
static void punch(const struct gd_store *s, uintptr_t from, uintptr_t to)
{
	if (from < to && !s->is_stale)
		fallocate(s->fd, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, (off_t)from,
			  (off_t)(to - from));
}

/* Keep tracking the mapped parts of a range, and free the rest. 0 or -ENOMEM. */
static int sweep_range(struct gd_store *s, const struct gd_range *range,
		       const struct gd_piece *pieces, size_t n)
{
	uintptr_t at = range->from;
	int rc = 0;

	while (at < range->to) {
		struct gd_range used = first_mapped(s, pieces, n, at, range->to);

		if (at < used.from && gd_is_held(&(struct gd_range){at, used.from}))
			used = (struct gd_range){at, range->to}; /* held: keep */
		punch(s, at, used.from);
		if (used.from < used.to && gd_store_track(s, &used) != 0)
			rc = -ENOMEM;
		at = used.to;
	}
	return rc;
}

/* Sweep one store. If memory allocation fails, the tracked ranges do not change. */
static void sweep_store(struct gd_store *s, const struct gd_piece *pieces, size_t n)
{
	struct gd_range *before = s->tracked;
	size_t n_before = s->n_tracked;
	int rc = 0;

	s->tracked = NULL;
	s->n_tracked = 0;
	for (size_t i = 0; i < n_before; i++)
		rc |= sweep_range(s, &before[i], pieces, n);
	if (rc != 0) {
		free(s->tracked);
		s->tracked = before;
		s->n_tracked = n_before;
		before = NULL;
	}
	free(before);
}

/* Free memory that is neither mapped nor held, and stores without pages. */
void gd_stores_sweep(void)
{
	struct gd_piece *pieces = NULL;
	size_t n = 0;

	if (!stores || gd_stores_mapped(&pieces, &n) != 0) {
		free(pieces);
		return;
	}
	for (struct gd_store **at = &stores, *s; (s = *at);) {
		sweep_store(s, pieces, n);
		if (s->n_tracked != 0 || (s->is_common && !s->is_stale)) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		free_store(s);
	}
	free(pieces);
}

void gd_stores_forget(void)
{
	for (struct gd_store *s; (s = stores);) {
		stores = s->next;
		free_store(s);
	}
	n_held = 0;
}

/* -- held ranges -- */

int gd_held_reserve(void)
{
	struct gd_range *more = realloc(held, (n_held + 1) * sizeof(*held));

	if (!more)
		return -ENOMEM;
	held = more;
	return 0;
}

void gd_held_add(const struct gd_range *range)
{
	held[n_held++] = *range;
}

void gd_held_drop(const struct gd_range *range)
{
	for (size_t i = 0; i < n_held; i++)
		if (held[i].from == range->from && held[i].to == range->to) {
			held[i] = held[--n_held];
			break;
		}
}
