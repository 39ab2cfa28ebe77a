/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * os_contents.c - contents of an inode of the simulated file system: pages, extended attributes,
 * and entries of a directory
 */
#include <string.h>

#include "disk.h"

/* stands for each page of a file that is allocated, but was never written */
static uint8_t zero_page[SIM_PAGE];

/* -- pages -- */

static void free_page(uint8_t *page)
{
	if (page != zero_page)
		sim_host_free(page);
}

static void reserve_pages(struct sim_contents *c, size_t n)
{
	uint8_t **pages;
	size_t room = c->n_pages * 2 > n ? c->n_pages * 2 : n;

	if (n <= c->n_pages)
		return;
	pages = sim_host_alloc(room * sizeof(*pages));
	if (c->n_pages != 0)
		memcpy(pages, c->pages, c->n_pages * sizeof(*pages));
	sim_host_free(c->pages);
	c->pages = pages;
	c->n_pages = room;
}

/* Returns page i for a write: a page that only `c` uses, instead of the shared zero page. */
static uint8_t *private_page(struct sim_contents *c, size_t i)
{
	reserve_pages(c, i + 1);
	if (!c->pages[i] || c->pages[i] == zero_page)
		c->pages[i] = sim_host_alloc(SIM_PAGE);
	return c->pages[i];
}

/* Write to the contents. from NULL: write zeroes to the allocated part of the range. */
void sim_contents_write(struct sim_contents *c, uint64_t at, const uint8_t *from, uint64_t bytes)
{
	uint64_t n;

	for (; bytes != 0; at += n, bytes -= n) {
		size_t i = at / SIM_PAGE, within = at % SIM_PAGE;

		n = bytes < SIM_PAGE - within ? bytes : SIM_PAGE - within;
		if (from) {
			memcpy(private_page(c, i) + within, from, n);
			from += n;
		} else if (i >= c->n_pages) {
			return;
		} else if (c->pages[i] && c->pages[i] != zero_page) {
			memset(c->pages[i] + within, 0, n);
		}
	}
}

void sim_contents_drop(struct sim_contents *c, uint64_t from, uint64_t to)
{
	uint64_t first = (from + SIM_PAGE - 1) / SIM_PAGE, last = to / SIM_PAGE;

	sim_contents_write(c, from, NULL, to - from);
	for (uint64_t i = first; i < last && i < c->n_pages; i++) {
		free_page(c->pages[i]);
		c->pages[i] = NULL;
	}
}

void sim_contents_allocate(struct sim_contents *c, uint64_t from, uint64_t to)
{
	uint64_t last = (to + SIM_PAGE - 1) / SIM_PAGE;

	reserve_pages(c, last);
	for (uint64_t i = from / SIM_PAGE; i < last; i++)
		if (!c->pages[i])
			c->pages[i] = zero_page;
}

bool sim_contents_have_hole(const struct sim_contents *c, uint64_t from, uint64_t to)
{
	for (uint64_t i = from / SIM_PAGE; i * SIM_PAGE < to; i++)
		if (i >= c->n_pages || !c->pages[i])
			return true;
	return false;
}

void sim_contents_read(const struct sim_contents *c, uint64_t at, uint8_t *to, uint64_t bytes)
{
	uint64_t n;

	for (; bytes != 0; at += n, to += n, bytes -= n) {
		size_t i = at / SIM_PAGE, within = at % SIM_PAGE;

		n = bytes < SIM_PAGE - within ? bytes : SIM_PAGE - within;
		if (i < c->n_pages && c->pages[i])
			memcpy(to, c->pages[i] + within, n);
		else
			memset(to, 0, n);
	}
}

void sim_contents_set_size(struct sim_contents *c, uint64_t size)
{
	if (size < c->size)
		sim_contents_drop(c, size, ((uint64_t)c->n_pages + 1) * SIM_PAGE);
	c->size = size;
}

/* -- attributes -- */

struct sim_xattr *sim_contents_find_xattr(const struct sim_contents *c, const char *name)
{
	struct sim_xattr *x = c->xattrs;

	while (x && strcmp(x->name, name) != 0)
		x = x->next;
	return x;
}

void sim_contents_set_xattr(struct sim_contents *c, const struct sim_xattr *from)
{
	struct sim_xattr *x = sim_contents_find_xattr(c, from->name), *next;

	if (!x) {
		x = sim_host_alloc(sizeof(*x));
		x->next = c->xattrs;
		c->xattrs = x;
	}
	next = x->next;
	*x = *from;
	x->next = next;
}

void sim_contents_free(struct sim_contents *c)
{
	for (size_t i = 0; i < c->n_pages; i++)
		free_page(c->pages[i]);
	sim_host_free(c->pages);
	while (c->xattrs) {
		struct sim_xattr *x = c->xattrs;

		c->xattrs = x->next;
		sim_host_free(x);
	}
	while (c->entries) {
		struct sim_entry *e = c->entries;

		c->entries = e->next;
		sim_host_free(e);
	}
	*c = (struct sim_contents){0};
}

/* -- entries of a directory -- */

struct sim_entry **sim_contents_find_entry(struct sim_contents *c, const char *name)
{
	struct sim_entry **at = &c->entries;

	while (*at && strcmp((*at)->name, name) != 0)
		at = &(*at)->next;
	return at;
}

void sim_contents_set_entry(struct sim_contents *c, const char *name, struct sim_inode *inode)
{
	struct sim_entry **at = sim_contents_find_entry(c, name), *e = *at;

	if (!inode) {
		if (e) {
			*at = e->next;
			sim_host_free(e);
		}
		return;
	}
	if (!e) {
		e = *at = sim_host_alloc(sizeof(*e));
		strcpy(e->name, name);
	}
	e->inode = inode;
}

void sim_contents_copy(struct sim_contents *to, const struct sim_contents *from)
{
	sim_contents_free(to);
	to->mode = from->mode;
	to->size = from->size;
	reserve_pages(to, from->n_pages);
	for (size_t i = 0; i < from->n_pages; i++)
		if (from->pages[i])
			to->pages[i] = from->pages[i] == zero_page
					       ? zero_page
					       : memcpy(sim_host_alloc(SIM_PAGE), from->pages[i],
							SIM_PAGE);
	for (const struct sim_xattr *x = from->xattrs; x; x = x->next)
		sim_contents_set_xattr(to, x);
	for (const struct sim_entry *e = from->entries; e; e = e->next)
		sim_contents_set_entry(to, e->name, e->inode);
}
