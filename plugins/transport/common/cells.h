/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cells.h - per-queue cells of one counter. Each cell has one writer. When a queue is destroyed,
 * another queue reuses its cell and adds to its count. Thread: control.
 */
#ifndef TRANSPORT_COMMON_CELLS_H
#define TRANSPORT_COMMON_CELLS_H

#include <gantry/plugin.h>

struct tc_cells {
	const char *name; /* name of the counter */
	uint64_t **free;  /* cells that no queue uses */
	unsigned int n_free, n, room;
};

/*
 * Create the counter, so that reports have it before the first queue. name: constant. Returns 0 or
 * -ENOMEM.
 */
int tc_cells_init(struct tc_cells *cells, const struct gantry_host *host, const char *name);
/* Get a cell for a queue. Returns NULL if out of memory. */
uint64_t *tc_cell_get(struct tc_cells *cells, const struct gantry_host *host);
/* Release a cell. NULL is ignored. */
void tc_cell_put(struct tc_cells *cells, uint64_t *cell);
/* Frees the list. The cells belong to the host. */
void tc_cells_fini(struct tc_cells *cells);

#endif
