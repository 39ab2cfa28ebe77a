/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pages.c - page bitmap. A set bit is a free page.
 */
#include "memory/pages.h"

#include <errno.h>
#include <stdlib.h>

#define WORD 64u

struct gn_pages {
	uint32_t n;
	uint32_t low; /* no page before this one is free */
	/* one bit for each page; the bits after the last page are 0, and there is at least one */
	uint64_t free[];
};

int gn_pages_create(uint32_t n, struct gn_pages **pages_p)
{
	struct gn_pages *pages = calloc(1,
					sizeof(*pages) + (n / WORD + 1) * sizeof(pages->free[0]));

	if (!pages)
		return -ENOMEM;
	pages->n = n;
	gn_pages_give(pages, 0, n);
	*pages_p = pages;
	return 0;
}

void gn_pages_destroy(struct gn_pages **pages_p)
{
	free(*pages_p);
	*pages_p = NULL;
}

/* Returns the first free page from `at` on; pages->n: none. */
static uint32_t next_free(const struct gn_pages *pages, uint32_t at)
{
	uint32_t i = at / WORD;
	uint64_t word = pages->free[i] & (~0ull << at % WORD);

	while (word == 0) {
		if (++i > pages->n / WORD)
			return pages->n;
		word = pages->free[i];
	}
	return i * WORD + (uint32_t)__builtin_ctzll(word);
}

/* Returns the first allocated page from `at` on, or `end`. */
static uint32_t next_taken(const struct gn_pages *pages, uint32_t at, uint32_t end)
{
	uint32_t i = at / WORD;
	uint64_t word = ~pages->free[i] & (~0ull << at % WORD);

	while (word == 0) {
		if (++i * WORD >= end)
			return end;
		word = ~pages->free[i];
	}
	at = i * WORD + (uint32_t)__builtin_ctzll(word);
	return at < end ? at : end;
}

/* Returns the first of n consecutive free pages; pages->n: there are none. */
static uint32_t find(const struct gn_pages *pages, uint32_t n)
{
	uint32_t at = next_free(pages, pages->low);

	while (at < pages->n && n <= pages->n - at) {
		uint32_t end = next_taken(pages, at, at + n);

		if (end == at + n)
			return at;
		at = next_free(pages, end);
	}
	return pages->n;
}

static void flip(struct gn_pages *pages, uint32_t first, uint32_t n)
{
	while (n > 0) {
		uint32_t bit = first % WORD, some = WORD - bit < n ? WORD - bit : n;

		pages->free[first / WORD] ^= (~0ull >> (WORD - some)) << bit;
		first += some;
		n -= some;
	}
}

int gn_pages_take(struct gn_pages *pages, uint32_t n, uint32_t *first_p)
{
	uint32_t at = find(pages, n);

	if (at == pages->n)
		return -ENOSPC;
	flip(pages, at, n);
	if (next_free(pages, pages->low) > at)
		pages->low = at + n;
	*first_p = at;
	return 0;
}

void gn_pages_give(struct gn_pages *pages, uint32_t first, uint32_t n)
{
	flip(pages, first, n);
	if (first < pages->low)
		pages->low = first;
}

int gn_pages_fit(const struct gn_pages *pages, uint32_t n)
{
	return find(pages, n) != pages->n;
}
