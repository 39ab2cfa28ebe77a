/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_ctx.c - states of contexts
 *
 *     IDLE -> RUNNING              start of most libraries
 *     IDLE -> STARTING -> RUNNING  start that takes time; back to IDLE if it fails
 *     RUNNING -> IDLE              stop with no task allocated and nothing pending in the library
 *     RUNNING -> STOPPING -> IDLE  other stops, and every failure; also STARTING -> STOPPING
 *
 * change() must be the last access to a context: its callback may destroy the context. Changes that
 * arise where no callback may run (in a poll, a submit, a free) are recorded in `due` and carried
 * by an event.
 */
#include <stdlib.h>

#include "base/container_of.h"
#include "device/gd_device.h"
#include "engine/pe.h"

enum { DUE_STARTED = 1, DUE_FAIL = 2, DUE_STOPPED = 4, DUE_IDLE = 8 };

static void cancel_due(struct doca_ctx *ctx)
{
	if (ctx->event_posted)
		gd_pe_withdraw(ctx->pe, &ctx->event);
	ctx->event_posted = false;
	ctx->due = 0;
}

static void change(struct doca_ctx *ctx, enum doca_ctx_states next)
{
	const enum doca_ctx_states prev = ctx->state;

	ctx->state = next;
	ctx->poll = next == DOCA_CTX_STATE_IDLE ? NULL : ctx->ops->poll;
	if (next == DOCA_CTX_STATE_IDLE) {
		cancel_due(ctx);
		if (ctx->ops->idle)
			ctx->ops->idle(ctx);
	}
	if (ctx->state_cb)
		ctx->state_cb(ctx->user_data, ctx, prev, next);
}

static bool is_over(const struct doca_ctx *ctx)
{
	return ctx->n_taken == 0 && !ctx->stop_pending;
}

/* Make one of the changes that are due, and post the event again if others are due. */
static void run_due(struct gd_event *event)
{
	struct doca_ctx *ctx = gn_container_of(event, struct doca_ctx, event);
	const uint8_t due = ctx->due & -ctx->due;

	ctx->event_posted = false;
	ctx->due &= ~due;
	if (ctx->due) {
		ctx->event_posted = true;
		gd_pe_post_own(ctx->pe, &ctx->event);
	}
	switch (due) {
	case DUE_STARTED:
		gd_ctx_started(ctx);
		break;
	case DUE_FAIL:
		gd_ctx_fail(ctx);
		break;
	case DUE_STOPPED:
		gd_ctx_stopped(ctx);
		break;
	case DUE_IDLE:
		if (ctx->state == DOCA_CTX_STATE_STOPPING && is_over(ctx))
			change(ctx, DOCA_CTX_STATE_IDLE);
		break;
	default:
		break;
	}
}

static void make_due(struct doca_ctx *ctx, uint8_t due)
{
	ctx->due |= due;
	if (ctx->event_posted)
		return;
	ctx->event_posted = true;
	gd_pe_post_own(ctx->pe, &ctx->event);
}

/* -- for libraries -- */

void gd_ctx_init(struct doca_ctx *ctx, const struct gd_ctx_ops *ops, struct doca_dev *dev)
{
	*ctx = (struct doca_ctx){
		.ops = ops,
		.dev = dev,
		.state = DOCA_CTX_STATE_IDLE,
		.event = {.run = run_due, .is_silent = ops->is_silent},
	};
	gd_dev_hold(dev);
}

doca_error_t gd_ctx_fini(struct doca_ctx *ctx, doca_error_t busy)
{
	struct gd_pool *pool;

	if (ctx->state != DOCA_CTX_STATE_IDLE)
		return busy;
	gd_pe_remove(ctx);
	for (pool = ctx->pools; pool; pool = pool->next)
		gd_pool_fini(pool);
	gd_dev_release(ctx->dev);
	return DOCA_SUCCESS;
}

void gd_ctx_started(struct doca_ctx *ctx)
{
	if (gd_pe_is_polling(ctx->pe))
		make_due(ctx, DUE_STARTED);
	else if (ctx->state == DOCA_CTX_STATE_STARTING)
		change(ctx, DOCA_CTX_STATE_RUNNING);
}

void gd_ctx_stopped(struct doca_ctx *ctx)
{
	if (gd_pe_is_polling(ctx->pe)) {
		make_due(ctx, DUE_STOPPED);
		return;
	}
	if (ctx->state == DOCA_CTX_STATE_STARTING) {
		change(ctx, ctx->n_taken ? DOCA_CTX_STATE_STOPPING : DOCA_CTX_STATE_IDLE);
	} else if (ctx->state == DOCA_CTX_STATE_STOPPING) {
		ctx->stop_pending = false;
		if (is_over(ctx))
			change(ctx, DOCA_CTX_STATE_IDLE);
	}
}

void gd_ctx_fail(struct doca_ctx *ctx)
{
	if (gd_pe_is_polling(ctx->pe)) {
		make_due(ctx, DUE_FAIL);
		return;
	}
	if (ctx->state != DOCA_CTX_STATE_RUNNING && ctx->state != DOCA_CTX_STATE_STARTING)
		return;
	ctx->failed = true;
	ctx->stop_pending = ctx->ops->stop && ctx->ops->stop(ctx) != DOCA_SUCCESS;
	if (is_over(ctx))
		make_due(ctx, DUE_IDLE);
	change(ctx, DOCA_CTX_STATE_STOPPING);
}

void gd_ctx_fail_later(struct doca_ctx *ctx)
{
	if (ctx->state == DOCA_CTX_STATE_RUNNING && !ctx->failed) {
		ctx->failed = true;
		make_due(ctx, DUE_FAIL);
	}
}

void gd_ctx_task_freed(struct doca_ctx *ctx)
{
	if (ctx->state == DOCA_CTX_STATE_STOPPING && is_over(ctx))
		make_due(ctx, DUE_IDLE);
}

doca_error_t gd_ctx_configurable(const struct doca_ctx *ctx, doca_error_t late)
{
	if (!ctx)
		return DOCA_ERROR_INVALID_VALUE;
	return ctx->state == DOCA_CTX_STATE_IDLE ? DOCA_SUCCESS : late;
}

/* -- for programs -- */

doca_error_t doca_ctx_start(struct doca_ctx *ctx)
{
	doca_error_t result;

	if (!ctx)
		return DOCA_ERROR_INVALID_VALUE;
	if (ctx->state != DOCA_CTX_STATE_IDLE)
		return DOCA_ERROR_BAD_STATE;
	if (!ctx->pe && !ctx->ops->on_dpa)
		return DOCA_ERROR_NOT_CONNECTED;
	ctx->failed = false;
	ctx->stop_pending = false;
	result = ctx->ops->start(ctx);
	if (result == DOCA_SUCCESS)
		change(ctx, DOCA_CTX_STATE_RUNNING);
	else if (result == DOCA_ERROR_IN_PROGRESS)
		change(ctx, DOCA_CTX_STATE_STARTING);
	return result;
}

doca_error_t doca_ctx_stop(struct doca_ctx *ctx)
{
	doca_error_t result;

	if (!ctx)
		return DOCA_ERROR_INVALID_VALUE;
	if (ctx->state == DOCA_CTX_STATE_IDLE)
		return DOCA_SUCCESS;
	if (ctx->state == DOCA_CTX_STATE_STOPPING)
		return DOCA_ERROR_IN_PROGRESS;
	result = ctx->ops->stop ? ctx->ops->stop(ctx) : DOCA_SUCCESS;
	if (result != DOCA_SUCCESS && result != DOCA_ERROR_IN_PROGRESS)
		return result;
	cancel_due(ctx);
	ctx->stop_pending = result == DOCA_ERROR_IN_PROGRESS;
	if (is_over(ctx)) {
		change(ctx, DOCA_CTX_STATE_IDLE);
		return DOCA_SUCCESS;
	}
	change(ctx, DOCA_CTX_STATE_STOPPING);
	return DOCA_ERROR_IN_PROGRESS;
}

doca_error_t doca_ctx_get_num_inflight_tasks(const struct doca_ctx *ctx, size_t *num_inflight_tasks)
{
	if (!ctx || !num_inflight_tasks)
		return DOCA_ERROR_INVALID_VALUE;
	*num_inflight_tasks = ctx->n_inflight;
	return DOCA_SUCCESS;
}

doca_error_t doca_ctx_set_user_data(struct doca_ctx *ctx, union doca_data user_data)
{
	if (!ctx)
		return DOCA_ERROR_INVALID_VALUE;
	ctx->user_data = user_data;
	return DOCA_SUCCESS;
}

doca_error_t doca_ctx_get_user_data(const struct doca_ctx *ctx, union doca_data *user_data)
{
	if (!ctx || !user_data)
		return DOCA_ERROR_INVALID_VALUE;
	*user_data = ctx->user_data;
	return DOCA_SUCCESS;
}

doca_error_t doca_ctx_set_state_changed_cb(struct doca_ctx *ctx,
					   doca_ctx_state_changed_callback_t cb)
{
	if (!ctx || !cb)
		return DOCA_ERROR_INVALID_VALUE;
	ctx->state_cb = cb;
	return DOCA_SUCCESS;
}

doca_error_t doca_ctx_get_state(const struct doca_ctx *ctx, enum doca_ctx_states *state)
{
	if (!ctx || !state)
		return DOCA_ERROR_INVALID_VALUE;
	*state = ctx->state;
	return DOCA_SUCCESS;
}

/* Nothing to do: each submit passes the task to its library immediately. */
void doca_ctx_flush_tasks(struct doca_ctx *ctx)
{
	(void)ctx;
}

/* Only vector 0 exists: completions have no interrupts. */
doca_error_t doca_ctx_set_completion_vector(struct doca_ctx *ctx, uint32_t comp_vector)
{
	if (!ctx || comp_vector != 0)
		return DOCA_ERROR_INVALID_VALUE;
	return gd_ctx_configurable(ctx, DOCA_ERROR_BAD_STATE);
}

doca_error_t doca_ctx_set_datapath_on_dpa(struct doca_ctx *ctx, struct doca_dpa *dpa_dev)
{
	if (!ctx || !dpa_dev)
		return DOCA_ERROR_INVALID_VALUE;
	return ctx->ops->on_dpa ? gd_ctx_configurable(ctx, DOCA_ERROR_BAD_STATE)
				: DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t doca_ctx_cap_get_num_completion_vectors(const struct doca_devinfo *devinfo,
						     uint32_t *num_comp_vectors)
{
	if (!devinfo || !num_comp_vectors)
		return DOCA_ERROR_INVALID_VALUE;
	*num_comp_vectors = 1;
	return DOCA_SUCCESS;
}
