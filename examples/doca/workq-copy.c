/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * workq-copy.c - copies its argument by a job of a work queue, the interface for DMA before tasks
 * existed
 *
 *     eval "$(gantry env dpu)"
 *     cc -o workq-copy workq-copy.c $(pkg-config --cflags --libs doca-dma-workq)
 */
#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_dma.h>
#include <doca_error.h>
#include <doca_mmap.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void need(const char *what, doca_error_t result)
{
	if (result == DOCA_SUCCESS)
		return;
	fprintf(stderr, "workq-copy: %s: %s\n", what, doca_get_error_string(result));
	exit(1);
}

static struct doca_dev *open_device(void)
{
	struct doca_devinfo **list;
	struct doca_dev *dev = NULL;
	uint32_t n;

	need("no devices", doca_devinfo_list_create(&list, &n));
	for (uint32_t i = 0; i < n && !dev; i++)
		if (doca_dma_job_get_supported(list[i], DOCA_DMA_JOB_MEMCPY) == DOCA_SUCCESS)
			need("cannot open the device", doca_dev_open(list[i], &dev));
	doca_devinfo_list_destroy(list);
	if (!dev)
		need("no device for DMA", DOCA_ERROR_NOT_FOUND);
	return dev;
}

static struct doca_mmap *map_memory(struct doca_dev *dev, void *addr, size_t len,
				    uint32_t permissions)
{
	struct doca_mmap *mmap;

	need("cannot create a map", doca_mmap_create(NULL, &mmap));
	need("cannot set the range of the map", doca_mmap_set_memrange(mmap, addr, len));
	need("cannot add the device", doca_mmap_dev_add(mmap, dev));
	need("cannot set permissions", doca_mmap_set_permissions(mmap, permissions));
	need("cannot start the map", doca_mmap_start(mmap));
	return mmap;
}

int main(int argc, char **argv)
{
	static char copy[256];
	char *text = argc > 1 ? argv[1] : argv[0];
	struct doca_dma_job_memcpy job = {
		.base = {.type = DOCA_DMA_JOB_MEMCPY, .flags = DOCA_JOB_FLAGS_NONE}};
	struct doca_buf *src, *dst;
	struct doca_buf_inventory *inventory;
	struct doca_dev *dev = open_device();
	struct doca_mmap *from = map_memory(dev, text, strlen(text) + 1,
					    DOCA_ACCESS_LOCAL_READ_ONLY);
	struct doca_mmap *to = map_memory(dev, copy, sizeof(copy), DOCA_ACCESS_LOCAL_READ_WRITE);
	struct doca_workq *workq;
	struct doca_event event;
	struct doca_dma *dma;
	struct doca_ctx *ctx;
	doca_error_t result;

	need("no buffers", doca_buf_inventory_create(NULL, 2, DOCA_BUF_EXTENSION_NONE, &inventory));
	need("no buffers", doca_buf_inventory_start(inventory));
	need("no buffer",
	     doca_buf_inventory_buf_by_data(inventory, from, text, strlen(text) + 1, &src));
	need("no buffer", doca_buf_inventory_buf_by_addr(inventory, to, copy, sizeof(copy), &dst));
	need("no work queue", doca_workq_create(1, &workq));
	need("no DMA", doca_dma_create(&dma));
	ctx = doca_dma_as_ctx(dma);
	need("cannot add the device", doca_ctx_dev_add(ctx, dev));
	need("cannot start the context", doca_ctx_start(ctx));
	need("cannot add the work queue", doca_ctx_workq_add(ctx, workq));

	job.base.ctx = ctx;
	job.src_buff = src;
	job.dst_buff = dst;
	need("cannot submit the job", doca_workq_submit(workq, &job.base));
	do
		result = doca_workq_progress_retrieve(workq, &event,
						      DOCA_WORKQ_RETRIEVE_FLAGS_NONE);
	while (result == DOCA_ERROR_AGAIN);
	if (result == DOCA_ERROR_IO_FAILED)
		need("the copy failed", (doca_error_t)event.result.u64);
	need("no event", result);
	printf("%s\n", copy);

	doca_buf_refcount_rm(src, NULL);
	doca_buf_refcount_rm(dst, NULL);
	doca_ctx_workq_rm(ctx, workq);
	doca_ctx_stop(ctx);
	doca_ctx_dev_rm(ctx, dev);
	doca_workq_destroy(workq);
	doca_dma_destroy(dma);
	doca_buf_inventory_destroy(inventory);
	doca_mmap_destroy(from);
	doca_mmap_destroy(to);
	doca_dev_close(dev);
	return 0;
}
