/* SPDX-License-Identifier: BSD-3-Clause */
/* cells.c - counter cells for queues: each has one writer; a queue that goes leaves its cell, and the count, to another. */
#include <stdlib.h>

#include "loop.h"

uint64_t *loop_cell_get(struct loop_device *dev)
{
	if (dev->n_free_cells)
		return dev->free_cells[--dev->n_free_cells];
	if (dev->n_cells == dev->room_cells) { /* there is always room to give all of them back */
		unsigned int room = dev->room_cells * 2 + 8;
		uint64_t **p = realloc(dev->free_cells, room * sizeof(*p));

		if (!p)
			return NULL;
		dev->free_cells = p;
		dev->room_cells = room;
	}
	dev->n_cells++;
	return dev->host->counter(dev->host, "payload_bytes");
}

void loop_cell_put(struct loop_device *dev, uint64_t *cell)
{
	if (cell)
		dev->free_cells[dev->n_free_cells++] = cell;
}
