/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_dma.c - DMA contexts: the thread that progresses the engine copies by the CPU, one task per
 * doca_pe_progress(), in order
 */
#include <doca_dma.h>

#include <stdlib.h>

#include "buf/buf.h"
#include "common/gd_log.h"
#include "compute/serial.h"
#include "device/gd_device.h"
#include "dma/dma.h"

struct doca_dma_task_memcpy {
	struct doca_task task;
	const struct doca_buf *src;
	struct doca_buf *dst;
};

struct doca_dma {
	struct gd_serial serial; /* must be first */
	struct gd_pool memcpys;
};

/* -- tasks -- */

/* Check the buffers of a copy: SUCCESS or INVALID_VALUE. */
static doca_error_t check_ends(const struct doca_buf *src, const struct doca_buf *dst)
{
	size_t bytes;

	if (!src || !dst || gd_buf_list_length(src, GD_DMA_MAX_LIST + 1) > GD_DMA_MAX_LIST ||
	    gd_buf_list_length(dst, GD_DMA_MAX_LIST + 1) > GD_DMA_MAX_LIST)
		return DOCA_ERROR_INVALID_VALUE;
	bytes = gd_buf_data_bytes(src);
	if (bytes == 0 || bytes > GD_DMA_MAX_BYTES || bytes > gd_buf_room(dst))
		return DOCA_ERROR_INVALID_VALUE;
	return DOCA_SUCCESS;
}

static bool is_on(struct doca_dev *const *devs, uint32_t n_devs, const struct doca_buf *list)
{
	for (uint32_t i = 0; i < n_devs; i++)
		if (gd_buf_is_on(list, devs[i]))
			return true;
	return false;
}

doca_error_t gd_dma_copy(struct doca_dev *const *devs, uint32_t n_devs, const struct doca_buf *src,
			 struct doca_buf *dst)
{
	const doca_error_t result = is_on(devs, n_devs, src) && is_on(devs, n_devs, dst)
					    ? check_ends(src, dst)
					    : DOCA_ERROR_INVALID_VALUE;

	return result == DOCA_SUCCESS ? gd_buf_copy(dst, src) : result;
}

static doca_error_t check(const struct doca_task *task)
{
	const struct doca_dma_task_memcpy *copy = (const struct doca_dma_task_memcpy *)task;

	return gd_buf_is_on(copy->src, task->ctx->dev) && gd_buf_is_on(copy->dst, task->ctx->dev)
		       ? check_ends(copy->src, copy->dst)
		       : DOCA_ERROR_INVALID_VALUE;
}

static doca_error_t run(struct gd_serial *serial, struct doca_task *task)
{
	const struct doca_dma_task_memcpy *copy = (const struct doca_dma_task_memcpy *)task;

	(void)serial;
	return gd_dma_copy(&task->ctx->dev, 1, copy->src, copy->dst);
}

static const struct gd_serial_ops memcpy_ops = {
	.ops = {.check = check, .submit = gd_serial_submit, .withdraw = gd_serial_withdraw},
	.run = run,
	.stops_at_errors = true,
};

/* -- the context -- */

static doca_error_t start(struct doca_ctx *ctx)
{
	if (((struct doca_dma *)ctx)->memcpys.is_set)
		return gd_serial_start(ctx);
	gd_log(DOCA_LOG_LEVEL_ERROR,
	       "DMA context cannot start: no task is configured: call doca_dma_task_memcpy_set_conf() first");
	return DOCA_ERROR_INVALID_VALUE;
}

static const struct gd_ctx_ops ctx_ops = {
	.name = "DMA",
	.start = start,
	.stop = gd_serial_stop,
	.poll = gd_serial_poll,
	.arm = gd_serial_arm,
};

/* -- for programs -- */

doca_error_t doca_dma_create(struct doca_dev *dev, struct doca_dma **dma_p)
{
	struct doca_dma *dma;

	if (!gd_dev_is_open(dev) || !dma_p)
		return DOCA_ERROR_INVALID_VALUE;
	dma = calloc(1, sizeof(*dma));
	if (!dma)
		return DOCA_ERROR_NO_MEMORY;
	gd_ctx_init(&dma->serial.ctx, &ctx_ops, dev);
	gd_pool_init(&dma->memcpys, &dma->serial.ctx, &memcpy_ops.ops,
		     sizeof(struct doca_dma_task_memcpy));
	*dma_p = dma;
	return DOCA_SUCCESS;
}

doca_error_t doca_dma_destroy(struct doca_dma *dma)
{
	return gd_serial_destroy(dma ? &dma->serial : NULL, DOCA_ERROR_IN_USE);
}

struct doca_ctx *doca_dma_as_ctx(struct doca_dma *dma)
{
	return dma ? &dma->serial.ctx : NULL;
}

doca_error_t doca_dma_cap_task_memcpy_is_supported(const struct doca_devinfo *devinfo)
{
	return gd_cap(devinfo, true);
}

doca_error_t doca_dma_cap_get_max_num_tasks(struct doca_dma *dma, uint32_t *max_num_tasks)
{
	if (!dma || !max_num_tasks)
		return DOCA_ERROR_INVALID_VALUE;
	*max_num_tasks = GD_SERIAL_TASKS_MAX;
	return DOCA_SUCCESS;
}

doca_error_t doca_dma_cap_task_memcpy_get_max_buf_list_len(const struct doca_devinfo *devinfo,
							   uint32_t *max_buf_list_len)
{
	return gd_cap_u32(devinfo, true, GD_DMA_MAX_LIST, max_buf_list_len);
}

doca_error_t doca_dma_cap_task_memcpy_get_max_buf_size(const struct doca_devinfo *devinfo,
						       uint64_t *buf_size)
{
	return gd_cap_u64(devinfo, true, GD_DMA_MAX_BYTES, buf_size);
}

doca_error_t doca_dma_task_memcpy_set_conf(struct doca_dma *dma,
					   doca_dma_task_memcpy_completion_cb_t task_completion_cb,
					   doca_dma_task_memcpy_completion_cb_t task_error_cb,
					   uint32_t num_memcpy_tasks)
{
	if (!dma)
		return DOCA_ERROR_INVALID_VALUE;
	return gd_serial_conf(&dma->memcpys, (void *)task_completion_cb, (void *)task_error_cb,
			      num_memcpy_tasks, DOCA_ERROR_BAD_STATE);
}

doca_error_t doca_dma_task_memcpy_alloc_init(struct doca_dma *dma, const struct doca_buf *src,
					     struct doca_buf *dst, union doca_data user_data,
					     struct doca_dma_task_memcpy **task_p)
{
	struct doca_dma_task_memcpy *copy;
	struct doca_task *task;
	doca_error_t result;

	if (!dma || !task_p)
		return DOCA_ERROR_INVALID_VALUE;
	result = gd_serial_take(&dma->memcpys, user_data, &task);
	if (result != DOCA_SUCCESS)
		return result;
	copy = (struct doca_dma_task_memcpy *)task;
	copy->src = src;
	copy->dst = dst;
	*task_p = copy;
	return DOCA_SUCCESS;
}

struct doca_task *doca_dma_task_memcpy_as_task(struct doca_dma_task_memcpy *task)
{
	return task ? &task->task : NULL;
}

void doca_dma_task_memcpy_set_src(struct doca_dma_task_memcpy *task, const struct doca_buf *src)
{
	if (task)
		task->src = src;
}

const struct doca_buf *doca_dma_task_memcpy_get_src(const struct doca_dma_task_memcpy *task)
{
	return task ? task->src : NULL;
}

void doca_dma_task_memcpy_set_dst(struct doca_dma_task_memcpy *task, struct doca_buf *dst)
{
	if (task)
		task->dst = dst;
}

struct doca_buf *doca_dma_task_memcpy_get_dst(const struct doca_dma_task_memcpy *task)
{
	return task ? task->dst : NULL;
}
