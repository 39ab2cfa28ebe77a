/* SPDX-License-Identifier: BSD-3-Clause */
/* leak_cases.c - what a program forgets before it exits */
#include "cases.h"

#include <doca_graph.h>
#include <stdlib.h>

CASE(leak_context)
{
	struct dma d;

	dma_open(&d);
	if (!bad)
		dma_close(&d);
}

CASE(leak_task)
{
	struct dma d;

	dma_task(&d);
	if (bad)
		return;
	dma_free(&d);
	dma_close(&d);
}

CASE(completion_not_polled)
{
	struct dma d;

	dma_submit(&d);
	if (bad)
		return;
	dma_wait(&d);
	dma_free(&d);
	dma_close(&d);
}

CASE(stop_not_finished)
{
	struct dma d;

	dma_submit(&d);
	(void)doca_ctx_stop(d.ctx);
	if (bad)
		return;
	dma_wait(&d);
	dma_free(&d);
	dma_close(&d);
}

CASE(leak_map)
{
	struct doca_dev *dev = open_device("03:00.0");
	struct doca_mmap *map = new_map(dev, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, true);

	if (bad)
		return;
	MUST(doca_mmap_destroy(map));
	MUST(doca_dev_close(dev));
}

CASE(leak_buffer)
{
	struct doca_dev *dev = open_device("03:00.0");
	struct doca_mmap *map = new_map(dev, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, true);
	struct doca_buf_inventory *inventory = new_inventory(true);
	struct doca_buf *buf;

	MUST(doca_buf_inventory_buf_get_by_addr(inventory, map, memory, 64, &buf));
	if (bad)
		return;
	MUST(doca_buf_dec_refcount(buf, NULL));
	MUST(doca_buf_inventory_destroy(inventory));
	MUST(doca_mmap_destroy(map));
	MUST(doca_dev_close(dev));
}

CASE(leak_inventory)
{
	struct doca_buf_inventory *inventory = new_inventory(true);

	if (!bad)
		MUST(doca_buf_inventory_destroy(inventory));
}

CASE(leak_engine)
{
	struct doca_pe *pe;

	MUST(doca_pe_create(&pe));
	if (!bad)
		MUST(doca_pe_destroy(pe));
}

CASE(leak_device)
{
	struct doca_dev *dev = open_device("03:00.0");

	if (!bad)
		MUST(doca_dev_close(dev));
}

CASE(leak_list)
{
	struct doca_devinfo **list;
	uint32_t n;

	MUST(doca_devinfo_create_list(&list, &n));
	if (!bad)
		MUST(doca_devinfo_destroy_list(list));
}

CASE(leak_object)
{
	struct doca_graph *graph;
	struct doca_pe *pe;

	MUST(doca_pe_create(&pe));
	MUST(doca_graph_create(pe, &graph));
	if (bad)
		return;
	MUST(doca_graph_destroy(graph));
	MUST(doca_pe_destroy(pe));
}

const struct test_case leak_cases[] = {
	RULE("leak-context", leak_context),
	RULE("leak-task", leak_task),
	RULE("completion-not-polled", completion_not_polled),
	RULE("stop-not-finished", stop_not_finished),
	RULE("leak-map", leak_map),
	RULE("leak-buffer", leak_buffer),
	RULE("leak-inventory", leak_inventory),
	RULE("leak-engine", leak_engine),
	RULE("leak-device", leak_device),
	RULE("leak-list", leak_list),
	RULE("leak-object", leak_object),
	{NULL, NULL},
};
