/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_handles.c - memory of connections
 *
 * A program can pass a connection to the library as long as its server or client exists, even after
 * the library has released the connection. So a released address is never reused: its memory reads
 * as zeroes. The library returns the memory to the system page by page. A server with many short
 * connections uses up address space, and a few bytes of memory, for each of them.
 *
 * The lock of the transport is held in all functions except gd_conn_end().
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "comch/comch.h"

#define BLOCK (256u << 10) /* bytes, a power of two. Addresses of blocks are multiples of it */
#define CONN ((sizeof(struct doca_comch_connection) + 63) & ~(size_t)63)

_Static_assert(CONN <= 4096, "at least one in a page");

/* Header of a block. It occupies the first page of the block. */
struct gd_conn_block {
	struct gd_conn_block *next; /* next block of the end */
	struct gd_end *end;         /* NULL: the end is destroyed */
	uint32_t page;              /* bytes of a page */
	/* connections allocated so far; connections allocated and not released */
	uint32_t n_taken, n_live;
	uint16_t n_gone[BLOCK / 4096]; /* released connections of each page */
};

static struct gd_conn_block *block_of(const struct doca_comch_connection *conn)
{
	return (struct gd_conn_block *)((uintptr_t)conn & ~(uintptr_t)(BLOCK - 1));
}

static struct gd_conn_block *make_block(struct gd_end *end)
{
	char *base = mmap(NULL, 2 * BLOCK, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
	     *at;
	struct gd_conn_block *block;

	if (base == MAP_FAILED)
		return NULL;
	at = base + (-(uintptr_t)base & (BLOCK - 1));
	if (at > base)
		munmap(base, (size_t)(at - base));
	munmap(at + BLOCK, (size_t)(base + BLOCK - at));
	block = (struct gd_conn_block *)at;
	block->page = (uint32_t)sysconf(_SC_PAGESIZE);
	block->end = end;
	block->next = end->blocks;
	end->blocks = block;
	return block;
}

static void drop_block(struct gd_conn_block *block)
{
	munmap(block, BLOCK);
}

struct doca_comch_connection *gd_conn_alloc(struct gd_end *end)
{
	struct gd_conn_block *block = end->blocks;
	uint32_t each, i;

	if (!block || block->n_taken == (BLOCK / block->page - 1) * (block->page / CONN))
		block = make_block(end);
	if (!block)
		return NULL;
	each = block->page / CONN;
	i = block->n_taken++;
	block->n_live++;
	return (struct doca_comch_connection *)((char *)block + (1 + i / each) * block->page +
						i % each * CONN);
}

/* Returns the page to the system after the last connection in it is released. */
void gd_conn_forget(struct doca_comch_connection *conn)
{
	struct gd_conn_block *block = block_of(conn);
	uint32_t page = (uint32_t)((uintptr_t)conn & (BLOCK - 1)) / block->page;

	block->n_live--;
	__atomic_store_n(&conn->transport, NULL, __ATOMIC_RELAXED);
	/*
	 * pairs with gd_end_send(): a thread that increments the cleared n_tasks then reads
	 * transport == NULL
	 */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memset(conn, 0, sizeof(*conn));
	if (!block->end && !block->n_live)
		drop_block(block);
	else if (++block->n_gone[page] == block->page / CONN)
		madvise((char *)block + page * block->page, block->page, MADV_DONTNEED);
}

void gd_conn_blocks_leave(struct gd_end *end)
{
	struct gd_conn_block *block;

	while ((block = end->blocks)) {
		end->blocks = block->next;
		block->end = NULL;
		if (!block->n_live)
			drop_block(block);
	}
}

struct gd_end *gd_conn_end(const struct doca_comch_connection *conn)
{
	return block_of(conn)->end;
}
