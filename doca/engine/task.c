/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * task.c - tasks: allocation, submission, completion, release
 *
 *     FREE -> TAKEN -> SUBMITTED -> DONE -> TAKEN (its callback runs) -> FREE
 *
 * The program owns a task while it is TAKEN. A task that is freed in flight is dropped: it returns
 * to its pool after its completion, without a callback.
 */
#include <stdlib.h>
#include <string.h>

#include "base/container_of.h"
#include "engine/pe.h"

static void release_task(struct doca_task *task)
{
	struct doca_ctx *ctx = task->ctx;

	if (doca_unlikely(task->ops->freed != NULL))
		task->ops->freed(task);
	task->state = GD_TASK_FREE;
	task->dropped = false;
	task->next = task->pool->free;
	task->pool->free = task;
	ctx->n_taken--;
	gd_ctx_task_freed(ctx);
}

/*
 * Free a dropped task without its callback. A graph that runs it is notified, or its run would
 * never end.
 */
static __attribute__((noinline)) void end_dropped(struct doca_task *task)
{
	void (*const ended)(struct doca_task * task, void *arg) = task->ended;

	release_task(task);
	if (ended)
		ended(task, task->ended_arg);
}

/* Complete a task. Do not touch the task or its context after the callback. */
static void run_end(struct gd_event *event)
{
	struct doca_task *task = gn_container_of(event, struct doca_task, event);
	struct doca_ctx *ctx = task->ctx;
	const doca_task_completion_cb_t callback = task->status == DOCA_SUCCESS
							   ? task->pool->done_cb
							   : task->pool->error_cb;

	ctx->n_inflight--;
	task->state = GD_TASK_TAKEN;
	if (doca_unlikely(task->dropped))
		end_dropped(task);
	else if (task->ended)
		task->ended(task, task->ended_arg);
	else
		callback(task, task->user_data, ctx->user_data);
}

/* -- for libraries -- */

void gd_pool_init(struct gd_pool *pool, struct doca_ctx *ctx, const struct gd_task_ops *ops,
		  size_t size)
{
	*pool = (struct gd_pool){.next = ctx->pools, .ctx = ctx, .ops = ops, .size = size};
	ctx->pools = pool;
}

void gd_pool_fini(struct gd_pool *pool)
{
	free(pool->tasks);
	pool->tasks = NULL;
	pool->free = NULL;
	pool->n = 0;
	pool->is_set = false;
}

static void fill(struct gd_pool *pool)
{
	uint32_t i = pool->n;

	while (i-- > 0) {
		struct doca_task *task = (struct doca_task *)((char *)pool->tasks + i * pool->size);

		task->event.run = run_end;
		task->event.is_silent = pool->ctx->ops->is_silent;
		task->ops = pool->ops;
		task->ctx = pool->ctx;
		task->pool = pool;
		task->next = pool->free;
		pool->free = task;
	}
}

doca_error_t gd_pool_conf(struct gd_pool *pool, void *done_cb, void *error_cb, uint32_t n,
			  doca_error_t late)
{
	const doca_error_t result = gd_ctx_configurable(pool->ctx, late);
	void *tasks;

	if (!done_cb || !error_cb || n == 0)
		return DOCA_ERROR_INVALID_VALUE;
	if (result != DOCA_SUCCESS)
		return result;
	tasks = calloc(n, pool->size);
	if (!tasks)
		return DOCA_ERROR_NO_MEMORY;
	gd_pool_fini(pool);
	pool->tasks = tasks;
	pool->n = n;
	/*
	 * The completion callbacks of all task types have the same signature, except for the type
	 * of the pointer to the task.
	 */
	memcpy(&pool->done_cb, &done_cb, sizeof(done_cb));
	memcpy(&pool->error_cb, &error_cb, sizeof(error_cb));
	pool->is_set = true;
	fill(pool);
	return DOCA_SUCCESS;
}

struct doca_task *gd_task_take(struct gd_pool *pool, union doca_data user_data)
{
	struct doca_task *task = pool->free;

	if (!task || pool->ctx->state == DOCA_CTX_STATE_IDLE)
		return NULL;
	pool->free = task->next;
	pool->ctx->n_taken++;
	task->next = NULL;
	task->user_data = user_data;
	task->status = DOCA_SUCCESS;
	task->state = GD_TASK_TAKEN;
	task->ended = NULL;
	return task;
}

void gd_task_done(struct doca_task *task, doca_error_t status)
{
	gd_task_done_own(task, status);
}

void gd_task_end(struct doca_task *task, doca_error_t status)
{
	task->status = status;
	run_end(&task->event);
}

void gd_task_done_or_fail(struct doca_task *task, doca_error_t status)
{
	if (status != DOCA_SUCCESS)
		gd_ctx_fail_later(task->ctx);
	gd_task_done(task, status);
}

/* -- for programs -- */

static doca_error_t submit_running(struct doca_task *task)
{
	struct doca_ctx *ctx = task->ctx;
	doca_error_t result;

	task->state = GD_TASK_SUBMITTED;
	ctx->n_inflight++;
	result = task->ops->submit(task);
	if (result != DOCA_SUCCESS) {
		task->state = GD_TASK_TAKEN;
		ctx->n_inflight--;
		return result;
	}
	gd_pe_wake_own(ctx->pe, ctx->ops->is_silent);
	return DOCA_SUCCESS;
}

doca_error_t doca_task_submit(struct doca_task *task)
{
	if (!task)
		return DOCA_ERROR_INVALID_VALUE;
	if (task->state != GD_TASK_TAKEN)
		return DOCA_ERROR_BAD_STATE;
	switch (task->ctx->state) {
	case DOCA_CTX_STATE_RUNNING:
		return submit_running(task);
	case DOCA_CTX_STATE_STOPPING:
		task->ctx->n_inflight++;
		gd_task_done(task, GD_FLUSHED);
		return DOCA_SUCCESS;
	default:
		return DOCA_ERROR_BAD_STATE;
	}
}

doca_error_t doca_task_submit_ex(struct doca_task *task, uint32_t flags)
{
	if (flags &
	    ~(uint32_t)(DOCA_TASK_SUBMIT_FLAG_FLUSH | DOCA_TASK_SUBMIT_FLAG_OPTIMIZE_REPORTS))
		return DOCA_ERROR_INVALID_VALUE;
	return doca_task_submit(task);
}

doca_error_t doca_task_try_submit(struct doca_task *task)
{
	doca_error_t result;

	if (!task)
		return DOCA_ERROR_INVALID_VALUE;
	result = task->ops->check ? task->ops->check(task) : DOCA_SUCCESS;
	return result == DOCA_SUCCESS ? doca_task_submit(task) : result;
}

void doca_task_free(struct doca_task *task)
{
	if (!task)
		return;
	switch (task->state) {
	case GD_TASK_TAKEN:
		release_task(task);
		break;
	case GD_TASK_SUBMITTED:
		task->dropped = true;
		if (!task->ops->withdraw)
			break;
		task->ops->withdraw(task);
		if (task->state != GD_TASK_SUBMITTED) /* withdraw completed it */
			break;
		if (task->ended) {
			gd_task_done(task, GD_FLUSHED);
			break;
		}
		task->ctx->n_inflight--;
		release_task(task);
		break;
	case GD_TASK_DONE:
		task->dropped = true;
		break;
	default: /* freed already */
		break;
	}
}

doca_error_t doca_task_get_status(const struct doca_task *task)
{
	return task ? task->status : DOCA_ERROR_INVALID_VALUE;
}

void doca_task_set_user_data(struct doca_task *task, union doca_data user_data)
{
	if (task)
		task->user_data = user_data;
}

union doca_data doca_task_get_user_data(const struct doca_task *task)
{
	return task ? task->user_data : (union doca_data){.u64 = 0};
}

struct doca_ctx *doca_task_get_ctx(const struct doca_task *task)
{
	return task ? task->ctx : NULL;
}
