/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "cells.h"

uint64_t *tc_cell_get(struct tc_cells *cells, const struct gantry_host *host)
{
	if (cells->n_free)
		return cells->free[--cells->n_free];
	/* allocate an entry of `free` for each cell now, so that tc_cell_put() cannot fail */
	if (cells->n == cells->room) {
		unsigned int room = cells->room * 2 + 8;
		uint64_t **p = realloc(cells->free, room * sizeof(*p));

		if (!p)
			return NULL;
		cells->free = p;
		cells->room = room;
	}
	cells->n++;
	return host->counter(host, cells->name);
}

void tc_cell_put(struct tc_cells *cells, uint64_t *cell)
{
	if (cell)
		cells->free[cells->n_free++] = cell;
}

void tc_cells_fini(struct tc_cells *cells)
{
	free(cells->free);
	cells->free = NULL;
}
