/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_ctx.h"

#include <stdlib.h>

static doca_error_t start(struct doca_ctx *ctx)
{
	struct fake *fake = (struct fake *)ctx;

	fake->n_starts++;
	return fake->start_result;
}

static struct doca_task *pop(struct fake *fake)
{
	struct doca_task *task = fake->first;

	if (task)
		fake->first = task->next;
	return task;
}

static doca_error_t stop(struct doca_ctx *ctx)
{
	struct fake *fake = (struct fake *)ctx;
	struct doca_task *task;

	fake->n_stops++;
	if (fake->stop_result != DOCA_SUCCESS && fake->stop_result != DOCA_ERROR_IN_PROGRESS)
		return fake->stop_result;
	while ((task = pop(fake)))
		gd_task_done(task, GD_FLUSHED);
	return fake->stop_result;
}

static void end(struct fake *fake, struct doca_task *task)
{
	if (fake->fails)
		gd_task_done_or_fail(task, fake->task_result);
	else
		gd_task_done(task, fake->task_result);
}

static int poll(struct doca_ctx *ctx)
{
	struct fake *fake = (struct fake *)ctx;
	struct doca_task *task;

	fake->n_polls++;
	if (fake->starts_in_poll && ctx->state == DOCA_CTX_STATE_STARTING) {
		gd_ctx_started(ctx);
		return 1;
	}
	if (fake->stops_in_poll && ctx->state == DOCA_CTX_STATE_STOPPING) {
		fake->stops_in_poll = false;
		gd_ctx_stopped(ctx);
		return 1;
	}
	task = fake->holds ? NULL : pop(fake);
	if (!task)
		return 0;
	end(fake, task);
	return 1;
}

static int arm(struct doca_ctx *ctx)
{
	struct fake *fake = (struct fake *)ctx;

	return fake->first && !fake->holds;
}

const struct gd_ctx_ops fake_ops = {
	.name = "fake", .start = start, .stop = stop, .poll = poll, .arm = arm};

static doca_error_t check(const struct doca_task *task)
{
	return ((struct fake *)task->ctx)->check_result;
}

static doca_error_t submit(struct doca_task *task)
{
	struct fake *fake = (struct fake *)task->ctx;

	if (fake->submit_result != DOCA_SUCCESS)
		return fake->submit_result;
	if (fake->ends_in_submit) {
		end(fake, task);
		return DOCA_SUCCESS;
	}
	task->next = NULL;
	if (fake->first)
		fake->last->next = task;
	else
		fake->first = task;
	fake->last = task;
	return DOCA_SUCCESS;
}

static void withdraw(struct doca_task *task)
{
	struct fake *fake = (struct fake *)task->ctx;
	struct doca_task **link = &fake->first, *before = NULL;

	for (; *link != task; link = &before->next)
		before = *link;
	*link = task->next;
	if (fake->last == task)
		fake->last = before;
}

static const struct gd_task_ops task_ops = {.check = check, .submit = submit, .withdraw = withdraw};

struct fake *fake_create(struct doca_pe *pe, uint32_t n_tasks, void *done_cb, void *error_cb)
{
	struct fake *fake = calloc(1, sizeof(*fake));

	if (!fake)
		abort();
	gd_ctx_init(&fake->ctx, &fake_ops, NULL);
	gd_pool_init(&fake->pool, &fake->ctx, &task_ops, sizeof(struct fake_task));
	if (n_tasks && gd_pool_conf(&fake->pool, done_cb, error_cb, n_tasks,
				    DOCA_ERROR_BAD_STATE) != DOCA_SUCCESS)
		abort();
	if (pe && doca_pe_connect_ctx(pe, &fake->ctx) != DOCA_SUCCESS)
		abort();
	return fake;
}

doca_error_t fake_destroy(struct fake *fake)
{
	const doca_error_t result = gd_ctx_fini(&fake->ctx, DOCA_ERROR_IN_USE);

	if (result == DOCA_SUCCESS)
		free(fake);
	return result;
}

struct doca_task *fake_task(struct fake *fake, uint64_t user_data)
{
	return gd_task_take(&fake->pool, (union doca_data){.u64 = user_data});
}
