/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cells.h - the cells of one counter, for queues that come and go: each cell has one writer, and a
 * queue that goes leaves it, with the count, to another. Control thread.
 */
#ifndef TRANSPORT_COMMON_CELLS_H
#define TRANSPORT_COMMON_CELLS_H

#include <gantry/plugin.h>

/* Zeroed but for the name: no cell yet. */
struct tc_cells {
	const char *name; /* of the counter */
	uint64_t **free;  /* that no queue uses */
	unsigned int n_free, n, room;
};

/* A cell for a queue; NULL: out of memory. */
uint64_t *tc_cell_get(struct tc_cells *cells, const struct gantry_host *host);
/* Back again; NULL is legal. */
void tc_cell_put(struct tc_cells *cells, uint64_t *cell);
/* The cells themselves are the host's. */
void tc_cells_fini(struct tc_cells *cells);

#endif
