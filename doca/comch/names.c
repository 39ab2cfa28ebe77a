/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * names.c - where connections lie. A program may name one for as long as its server or client exists, also when the
 * library has forgotten it: its address is given to no other, and reads as zeroes. The memory is given back page by page,
 * so peers that come and go for years cost a server addresses, and some bytes of memory each.
 *
 * All with the lock of the transport held, but for gd_conn_end.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "comch/comch.h"

#define LOT (256u << 10) /* bytes; a power of two, and so is the address */
#define CONN ((sizeof(struct doca_comch_connection) + 63) & ~(size_t)63)

_Static_assert(CONN <= 4096, "at least one in a page");

/* At the beginning of its first page, which holds nothing else. */
struct gd_conn_lot {
	struct gd_conn_lot *next; /* of the end */
	struct gd_end *end;       /* NULL: destroyed */
	uint32_t page;            /* bytes */
	uint32_t n_taken, n_live; /* ever; and not forgotten */
	uint16_t n_gone[LOT / 4096]; /* by page: forgotten */
};

static struct gd_conn_lot *lot_of(const struct doca_comch_connection *conn)
{
	return (struct gd_conn_lot *)((uintptr_t)conn & ~(uintptr_t)(LOT - 1));
}

static struct gd_conn_lot *make_lot(struct gd_end *end)
{
	char *base = mmap(NULL, 2 * LOT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), *at;
	struct gd_conn_lot *lot;

	if (base == MAP_FAILED)
		return NULL;
	at = base + (-(uintptr_t)base & (LOT - 1));
	if (at > base)
		munmap(base, (size_t)(at - base));
	munmap(at + LOT, (size_t)(base + LOT - at));
	lot = (struct gd_conn_lot *)at;
	lot->page = (uint32_t)sysconf(_SC_PAGESIZE);
	lot->end = end;
	lot->next = end->lots;
	end->lots = lot;
	return lot;
}

static void drop_lot(struct gd_conn_lot *lot)
{
	munmap(lot, LOT);
}

struct doca_comch_connection *gd_conn_alloc(struct gd_end *end)
{
	struct gd_conn_lot *lot = end->lots;
	uint32_t each, i;

	if (!lot || lot->n_taken == (LOT / lot->page - 1) * (lot->page / CONN))
		lot = make_lot(end);
	if (!lot)
		return NULL;
	each = lot->page / CONN;
	i = lot->n_taken++;
	lot->n_live++;
	return (struct doca_comch_connection *)((char *)lot + (1 + i / each) * lot->page + i % each * CONN);
}

/* Its page goes when it was the last one there. */
void gd_conn_forget(struct doca_comch_connection *conn)
{
	struct gd_conn_lot *lot = lot_of(conn);
	uint32_t page = (uint32_t)((uintptr_t)conn & (LOT - 1)) / lot->page;

	lot->n_live--;
	__atomic_store_n(&conn->transport, NULL, __ATOMIC_RELAXED);
	/* pairs with gd_end_send: who counts from the n_tasks that is cleared here finds no transport */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memset(conn, 0, sizeof(*conn));
	if (!lot->end && !lot->n_live)
		drop_lot(lot);
	else if (++lot->n_gone[page] == lot->page / CONN)
		madvise((char *)lot + page * lot->page, lot->page, MADV_DONTNEED);
}

void gd_conn_lots_leave(struct gd_end *end)
{
	struct gd_conn_lot *lot;

	while ((lot = end->lots)) {
		end->lots = lot->next;
		lot->end = NULL;
		if (!lot->n_live)
			drop_lot(lot);
	}
}

struct gd_end *gd_conn_end(const struct doca_comch_connection *conn)
{
	return lot_of(conn)->end;
}
