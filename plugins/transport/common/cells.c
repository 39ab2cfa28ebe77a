/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "cells.h"

int tc_cells_init(struct tc_cells *cells, const struct gantry_host *host, const char *name)
{
	uint64_t *cell;

	*cells = (struct tc_cells){.name = name};
	cell = tc_cell_get(cells, host);
	tc_cell_put(cells, cell);
	return cell ? 0 : -ENOMEM;
}

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
