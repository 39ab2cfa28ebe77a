/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_mmap_advise.c - hints about memory. Caches are coherent here. So a task that writes a cache
 * back only checks the memory and is a memory barrier.
 */
#include <doca_mmap_advise.h>

#include <stdlib.h>

#include "buf/buf.h"
#include "compute/serial.h"
#include "device/gd_device.h"

struct doca_mmap_advise {
	struct gd_serial serial; /* must be first */
	struct gd_pool pool;
};

struct doca_mmap_advise_task_invalidate_cache {
	struct doca_task task; /* must be first */
	struct doca_buf *buf;
};

static const struct gd_ctx_ops ctx_ops = GD_SERIAL_CTX("mmap advise");

static doca_error_t check(const struct doca_task *task)
{
	const struct doca_buf *buf =
		((const struct doca_mmap_advise_task_invalidate_cache *)task)->buf;

	return buf && gd_buf_is_on(buf, task->ctx->dev) &&
			       gd_buf_host(buf, buf->data, buf->data_len)
		       ? DOCA_SUCCESS
		       : DOCA_ERROR_INVALID_VALUE;
}

static doca_error_t run(struct gd_serial *serial, struct doca_task *task)
{
	(void)serial;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return check(task);
}

static const struct gd_serial_ops task_ops = GD_SERIAL_TASK(check, run);

doca_error_t doca_mmap_advise_create(struct doca_dev *dev, struct doca_mmap_advise **mmap_advise)
{
	struct doca_mmap_advise *advise;

	if (!gd_dev_is_open(dev) || !mmap_advise)
		return DOCA_ERROR_INVALID_VALUE;
	advise = calloc(1, sizeof(*advise));
	if (!advise)
		return DOCA_ERROR_NO_MEMORY;
	gd_ctx_init(&advise->serial.ctx, &ctx_ops, dev);
	gd_pool_init(&advise->pool, &advise->serial.ctx, &task_ops.ops,
		     sizeof(struct doca_mmap_advise_task_invalidate_cache));
	*mmap_advise = advise;
	return DOCA_SUCCESS;
}

doca_error_t doca_mmap_advise_destroy(struct doca_mmap_advise *mmap_advise)
{
	return gd_serial_destroy(mmap_advise ? &mmap_advise->serial : NULL, DOCA_ERROR_IN_USE);
}

struct doca_ctx *doca_mmap_advise_as_ctx(struct doca_mmap_advise *mmap_advise)
{
	return mmap_advise ? &mmap_advise->serial.ctx : NULL;
}

doca_error_t doca_mmap_advise_cap_task_cache_invalidate_is_supported(
	const struct doca_devinfo *devinfo)
{
	return gd_cap(devinfo, true);
}

doca_error_t doca_mmap_advise_task_cache_invalidate_get_max_buf_size(
	const struct doca_devinfo *devinfo, uint64_t *buf_size)
{
	return gd_cap_u64(devinfo, true, SIZE_MAX, buf_size);
}

doca_error_t doca_mmap_advise_task_invalidate_cache_set_conf(
	struct doca_mmap_advise *mmap_advise,
	doca_mmap_advise_task_invalidate_cache_completion_cb_t completion_cb,
	doca_mmap_advise_task_invalidate_cache_completion_cb_t error_cb, uint32_t num_tasks)
{
	if (!mmap_advise)
		return DOCA_ERROR_INVALID_VALUE;
	return gd_serial_conf(&mmap_advise->pool, completion_cb, error_cb, num_tasks,
			      DOCA_ERROR_NOT_PERMITTED);
}

doca_error_t doca_mmap_advise_task_invalidate_cache_alloc_init(
	struct doca_mmap_advise *mmap_advise, struct doca_buf *buf, union doca_data user_data,
	struct doca_mmap_advise_task_invalidate_cache **task)
{
	struct doca_task *taken;
	doca_error_t result;

	if (!mmap_advise || !buf || !task)
		return DOCA_ERROR_INVALID_VALUE;
	result = gd_serial_take(&mmap_advise->pool, user_data, &taken);
	if (result != DOCA_SUCCESS)
		return result;
	*task = (struct doca_mmap_advise_task_invalidate_cache *)taken;
	(*task)->buf = buf;
	return DOCA_SUCCESS;
}

struct doca_task *doca_mmap_advise_task_invalidate_cache_as_doca_task(
	struct doca_mmap_advise_task_invalidate_cache *task)
{
	return task ? &task->task : NULL;
}

void doca_mmap_advise_task_invalidate_cache_set_buf(
	struct doca_mmap_advise_task_invalidate_cache *task, struct doca_buf *buf)
{
	if (task)
		task->buf = buf;
}

struct doca_buf *doca_mmap_advise_task_invalidate_cache_get_buf(
	const struct doca_mmap_advise_task_invalidate_cache *task)
{
	return task ? task->buf : NULL;
}
