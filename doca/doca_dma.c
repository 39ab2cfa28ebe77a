/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_dma.c - copies, done by the CPU of the thread that progresses: one task per doca_pe_progress, in order.
 */
#include <doca_dma.h>

#include <stdlib.h>

#include "ctx.h"
#include "device.h"
#include "dma.h"
#include "log.h"

enum { MAX_TASKS = 65536 };

struct doca_dma_task_memcpy {
	struct doca_task task;
	const struct doca_buf *src;
	struct doca_buf *dst;
};

struct doca_dma {
	struct doca_ctx ctx;
	struct gd_pool memcpys;
	struct doca_task *first, *last; /* submitted */
};

/* -- tasks -- */

static uint32_t list_length(const struct doca_buf *buf)
{
	uint32_t n = 0;

	for (; buf && n <= GD_DMA_MAX_LIST; buf = buf->next)
		n++;
	return n;
}

/* Could it be done? SUCCESS or INVALID_VALUE. */
static doca_error_t check_ends(const struct doca_buf *src, const struct doca_buf *dst)
{
	size_t bytes;

	if (!src || !dst || list_length(src) > GD_DMA_MAX_LIST || list_length(dst) > GD_DMA_MAX_LIST)
		return DOCA_ERROR_INVALID_VALUE;
	bytes = gd_buf_data_bytes(src);
	if (bytes == 0 || bytes > GD_DMA_MAX_BYTES || bytes > gd_buf_room(dst))
		return DOCA_ERROR_INVALID_VALUE;
	return DOCA_SUCCESS;
}

doca_error_t gd_dma_copy(const struct doca_buf *src, struct doca_buf *dst)
{
	const doca_error_t result = check_ends(src, dst);

	return result == DOCA_SUCCESS ? gd_buf_copy(dst, src) : result;
}

static doca_error_t check(const struct doca_task *task)
{
	const struct doca_dma_task_memcpy *copy = (const struct doca_dma_task_memcpy *)task;

	return check_ends(copy->src, copy->dst);
}

static doca_error_t submit(struct doca_task *task)
{
	struct doca_dma *dma = (struct doca_dma *)task->ctx;

	task->next = NULL;
	if (dma->first)
		dma->last->next = task;
	else
		dma->first = task;
	dma->last = task;
	return DOCA_SUCCESS;
}

static void withdraw(struct doca_task *task)
{
	struct doca_dma *dma = (struct doca_dma *)task->ctx;
	struct doca_task **link = &dma->first, *before = NULL;

	for (; *link != task; link = &before->next)
		before = *link;
	*link = task->next;
	if (dma->last == task)
		dma->last = before;
}

static const struct gd_task_ops memcpy_ops = { .check = check, .submit = submit, .withdraw = withdraw };

static struct doca_task *pop(struct doca_dma *dma)
{
	struct doca_task *task = dma->first;

	if (task)
		dma->first = task->next;
	return task;
}

/* -- the context -- */

static doca_error_t start(struct doca_ctx *ctx)
{
	if (((struct doca_dma *)ctx)->memcpys.is_set)
		return DOCA_SUCCESS;
	gd_log(DOCA_LOG_LEVEL_ERROR, "a DMA context cannot start: no task is configured; call doca_dma_task_memcpy_set_conf first");
	return DOCA_ERROR_INVALID_VALUE;
}

static doca_error_t stop(struct doca_ctx *ctx)
{
	struct doca_task *task;

	while ((task = pop((struct doca_dma *)ctx)))
		gd_task_done(task, GD_FLUSHED);
	return DOCA_SUCCESS;
}

static int poll(struct doca_ctx *ctx)
{
	struct doca_task *task = ctx->failed ? NULL : pop((struct doca_dma *)ctx);
	struct doca_dma_task_memcpy *copy = (struct doca_dma_task_memcpy *)task;

	if (!task)
		return 0;
	gd_task_done_or_fail(task, gd_dma_copy(copy->src, copy->dst));
	return 1;
}

static int arm(struct doca_ctx *ctx)
{
	return ((struct doca_dma *)ctx)->first != NULL;
}

static const struct gd_ctx_ops ops = { .name = "DMA", .start = start, .stop = stop, .poll = poll, .arm = arm };

/* -- for programs -- */

doca_error_t doca_dma_create(struct doca_dev *dev, struct doca_dma **dma_p)
{
	struct doca_dma *dma;

	if (!dev || !dma_p)
		return DOCA_ERROR_INVALID_VALUE;
	dma = calloc(1, sizeof(*dma));
	if (!dma)
		return DOCA_ERROR_NO_MEMORY;
	gd_ctx_init(&dma->ctx, &ops, dev);
	gd_pool_init(&dma->memcpys, &dma->ctx, &memcpy_ops, sizeof(struct doca_dma_task_memcpy));
	*dma_p = dma;
	return DOCA_SUCCESS;
}

doca_error_t doca_dma_destroy(struct doca_dma *dma)
{
	doca_error_t result;

	if (!dma)
		return DOCA_ERROR_INVALID_VALUE;
	result = gd_ctx_fini(&dma->ctx, DOCA_ERROR_IN_USE);
	if (result == DOCA_SUCCESS)
		free(dma);
	return result;
}

struct doca_ctx *doca_dma_as_ctx(struct doca_dma *dma)
{
	return dma ? &dma->ctx : NULL;
}

doca_error_t doca_dma_cap_task_memcpy_is_supported(const struct doca_devinfo *devinfo)
{
	return gd_cap(devinfo, true);
}

doca_error_t doca_dma_cap_get_max_num_tasks(struct doca_dma *dma, uint32_t *max_num_tasks)
{
	if (!dma || !max_num_tasks)
		return DOCA_ERROR_INVALID_VALUE;
	*max_num_tasks = MAX_TASKS;
	return DOCA_SUCCESS;
}

doca_error_t doca_dma_cap_task_memcpy_get_max_buf_list_len(const struct doca_devinfo *devinfo, uint32_t *max_buf_list_len)
{
	return gd_cap_u32(devinfo, true, GD_DMA_MAX_LIST, max_buf_list_len);
}

doca_error_t doca_dma_cap_task_memcpy_get_max_buf_size(const struct doca_devinfo *devinfo, uint64_t *buf_size)
{
	return gd_cap_u64(devinfo, true, GD_DMA_MAX_BYTES, buf_size);
}

doca_error_t doca_dma_task_memcpy_set_conf(struct doca_dma *dma, doca_dma_task_memcpy_completion_cb_t task_completion_cb,
					   doca_dma_task_memcpy_completion_cb_t task_error_cb, uint32_t num_memcpy_tasks)
{
	if (!dma || num_memcpy_tasks > MAX_TASKS)
		return DOCA_ERROR_INVALID_VALUE;
	return gd_pool_conf(&dma->memcpys, (void *)task_completion_cb, (void *)task_error_cb, num_memcpy_tasks,
			    DOCA_ERROR_BAD_STATE);
}

doca_error_t doca_dma_task_memcpy_alloc_init(struct doca_dma *dma, const struct doca_buf *src, struct doca_buf *dst,
					     union doca_data user_data, struct doca_dma_task_memcpy **task_p)
{
	struct doca_dma_task_memcpy *copy;

	if (!dma || !task_p)
		return DOCA_ERROR_INVALID_VALUE;
	if (dma->ctx.state == DOCA_CTX_STATE_IDLE)
		return DOCA_ERROR_BAD_STATE;
	copy = (struct doca_dma_task_memcpy *)gd_task_take(&dma->memcpys, user_data);
	if (!copy)
		return DOCA_ERROR_NO_MEMORY;
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
