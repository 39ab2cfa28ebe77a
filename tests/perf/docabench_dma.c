/* SPDX-License-Identifier: BSD-3-Clause */
/* docabench_dma.c - measures copies by the DMA context, and an idle engine */
#include <doca_dma.h>

#include "perf/docabench.h"

static void copied(struct doca_dma_task_memcpy *task, union doca_data flag, union doca_data own)
{
	(void)task;
	(void)own;
	*(int *)flag.ptr = 1;
}

static void not_copied(struct doca_dma_task_memcpy *task, union doca_data flag, union doca_data own)
{
	(void)flag;
	(void)own;
	ok(doca_task_get_status(doca_dma_task_memcpy_as_task(task)), "copy");
}

static struct doca_dma *make_dma(struct end *e)
{
	struct doca_dma *dma;

	ok(doca_pe_create(&e->pe), "engine");
	e->dev = open_device(CARD);
	ok(doca_dma_create(e->dev, &dma), "DMA");
	ok(doca_dma_task_memcpy_set_conf(dma, copied, not_copied, 1), "DMA");
	connect_engine(e, doca_dma_as_ctx(dma));
	start(e, doca_dma_as_ctx(dma), "start DMA");
	return dma;
}

static void copies(struct end *e, struct doca_task *task, struct doca_buf *dst, const int *done,
		   unsigned n)
{
	for (; n; n--) {
		*(volatile int *)done = 0;
		ok(doca_buf_reset_data_len(dst), "reset");
		ok(doca_task_submit(task), "copy");
		while (!*(volatile const int *)done)
			doca_pe_progress(e->pe);
	}
}

void measure_dma(size_t bytes, uint64_t length_ns, const char *name)
{
	static struct end e;
	struct doca_dma *dma = make_dma(&e);
	struct doca_dma_task_memcpy *task;
	struct doca_buf *src, *dst;
	static struct stats stats;
	int done = 0;
	union doca_data flag = {.ptr = &done};
	uint64_t before, end, t;
	char *memory;
	unsigned slice;

	make_memory(&e, 2 * bytes, 2);
	memory = (char *)e.memory;
	memset(memory, 0x5a, bytes);
	ok(doca_buf_inventory_buf_get_by_data(e.inventory, e.mmap, memory, bytes, &src), "source");
	ok(doca_buf_inventory_buf_get_by_addr(e.inventory, e.mmap, memory + bytes, bytes, &dst),
	   "destination");
	ok(doca_dma_task_memcpy_alloc_init(dma, src, dst, flag, &task), "task");
	before = now_ns();
	copies(&e, doca_dma_task_memcpy_as_task(task), dst, &done, WARM);
	slice = slice_of(now_ns() - before, WARM);
	before = now_ns();
	end = before + length_ns;
	do {
		copies(&e, doca_dma_task_memcpy_as_task(task), dst, &done, slice);
		t = now_ns();
		note(&stats, (double)(t - before) / slice);
		before = t;
	} while (t < end);
	if (memcmp(memory, memory + bytes, bytes) != 0)
		wrong(0, "not what was to be copied");
	print_median(name, &stats, "ns");
}

void measure_idle(uint64_t length_ns)
{
	static struct end e;
	static struct stats stats;
	uint64_t before, end, t;

	make_dma(&e);
	before = now_ns();
	end = before + length_ns;
	do {
		for (int i = 0; i < 1000; i++)
			if (doca_pe_progress(e.pe))
				wrong(0, "progress without work");
		t = now_ns();
		note(&stats, (double)(t - before) / 1000);
		before = t;
	} while (t < end);
	print_median("idle", &stats, "ns");
}
