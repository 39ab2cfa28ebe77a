/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pages.h - which pages of a piece of memory are taken: first fit, in a bitmap. No allocation after
 * create; one thread.
 *
 * First fit keeps the pages in use at the beginning, so that few of them are ever touched. Whoever
 * needs many pages in a row gets them at the latest when all others have been given back.
 */
#ifndef GN_MEMORY_PAGES_H
#define GN_MEMORY_PAGES_H

#include <stdint.h>

#define GN_PAGE_BYTES 4096u

/* gn_page_count - pages that this many bytes need */
static inline uint32_t gn_page_count(uint64_t bytes)
{
	return (uint32_t)((bytes + GN_PAGE_BYTES - 1) / GN_PAGE_BYTES);
}

struct gn_pages;

/* n pages, all free. 0, -ENOMEM. */
int gn_pages_create(uint32_t n, struct gn_pages **pages_p);
void gn_pages_destroy(struct gn_pages **pages_p);

/* Take the first n free pages in a row; their first number in *first_p. 0, -ENOSPC. n > 0. */
int gn_pages_take(struct gn_pages *pages, uint32_t n, uint32_t *first_p);
/* Give back what was taken. */
void gn_pages_give(struct gn_pages *pages, uint32_t first, uint32_t n);
/* Whether gn_pages_take would succeed. */
int gn_pages_fit(const struct gn_pages *pages, uint32_t n);

#endif
