/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pages.h - allocator of pages of a memory block: first fit, in a bitmap. It allocates no memory
 * after create. Single-threaded.
 *
 * First fit keeps the used pages at the start of the block, so that few pages are ever touched. An
 * allocation of n pages succeeds at the latest when all other pages have been released.
 */
#ifndef GN_MEMORY_PAGES_H
#define GN_MEMORY_PAGES_H

#include <stdint.h>

#define GN_PAGE_BYTES 4096u

/* gn_page_count - returns the number of pages for this many bytes */
static inline uint32_t gn_page_count(uint64_t bytes)
{
	return (uint32_t)((bytes + GN_PAGE_BYTES - 1) / GN_PAGE_BYTES);
}

struct gn_pages;

/* gn_pages_create - create an allocator of n free pages. Returns 0 or -ENOMEM. */
int gn_pages_create(uint32_t n, struct gn_pages **pages_p);
/* gn_pages_destroy - free an allocator and set *pages_p to NULL. */
void gn_pages_destroy(struct gn_pages **pages_p);

/*
 * gn_pages_take - allocate the first n consecutive free pages, n > 0. *first_p: number of the first
 * page. Returns 0, or -ENOSPC: there are none.
 */
int gn_pages_take(struct gn_pages *pages, uint32_t n, uint32_t *first_p);
/* gn_pages_give - release n pages from `first` on, which gn_pages_take() allocated. */
void gn_pages_give(struct gn_pages *pages, uint32_t first, uint32_t n);
/* gn_pages_fit - returns true if gn_pages_take() would succeed. */
int gn_pages_fit(const struct gn_pages *pages, uint32_t n);

#endif
