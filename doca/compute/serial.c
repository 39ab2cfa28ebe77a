/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * serial.c - contexts that the CPU executes: the task queue, and memory for data that is not
 * contiguous
 */
#include "buf/buf.h"
#include "compute/serial.h"

#include <stdlib.h>

#include "base/container_of.h"

/* -- the queue -- */

doca_error_t gd_serial_submit(struct doca_task *task)
{
	struct gd_serial *serial = gn_container_of(task->ctx, struct gd_serial, ctx);

	task->next = NULL;
	if (serial->last)
		serial->last->next = task;
	else
		serial->first = task;
	serial->last = task;
	return DOCA_SUCCESS;
}

void gd_serial_withdraw(struct doca_task *task)
{
	struct gd_serial *serial = gn_container_of(task->ctx, struct gd_serial, ctx);
	struct doca_task *before = NULL, *t = serial->first;

	for (; t && t != task; t = t->next)
		before = t;
	if (!t)
		return;
	*(before ? &before->next : &serial->first) = task->next;
	if (serial->last == task)
		serial->last = before;
}

static struct doca_task *take_first(struct gd_serial *serial)
{
	struct doca_task *task = serial->first;

	if (!task)
		return NULL;
	serial->first = task->next;
	if (!serial->first)
		serial->last = NULL;
	return task;
}

/* -- the context -- */

doca_error_t gd_serial_start(struct doca_ctx *ctx)
{
	struct gd_serial *serial = gn_container_of(ctx, struct gd_serial, ctx);

	serial->first = serial->last = NULL;
	return DOCA_SUCCESS;
}

doca_error_t gd_serial_stop(struct doca_ctx *ctx)
{
	struct gd_serial *serial = gn_container_of(ctx, struct gd_serial, ctx);

	for (struct doca_task *task = take_first(serial); task; task = take_first(serial))
		gd_task_done(task, GD_FLUSHED);
	return DOCA_SUCCESS;
}

int gd_serial_poll(struct doca_ctx *ctx)
{
	struct gd_serial *serial = gn_container_of(ctx, struct gd_serial, ctx);
	struct doca_task *task = ctx->failed ? NULL : take_first(serial);
	const struct gd_serial_ops *ops;
	doca_error_t result;

	if (!task)
		return 0;
	ops = gn_container_of(task->ops, const struct gd_serial_ops, ops);
	serial->read = NULL;
	result = ops->run(serial, task);
	if (result == DOCA_SUCCESS)
		result = gd_buf_moved(serial->read);
	(ops->stops_at_errors ? gd_task_done_or_fail : gd_task_done)(task, result);
	return 1;
}

int gd_serial_arm(struct doca_ctx *ctx)
{
	return gn_container_of(ctx, struct gd_serial, ctx)->first != NULL;
}

doca_error_t gd_serial_destroy(struct gd_serial *serial, doca_error_t busy)
{
	doca_error_t result = serial ? gd_ctx_fini(&serial->ctx, busy) : DOCA_ERROR_INVALID_VALUE;

	if (result == DOCA_SUCCESS) {
		free(serial->source.bytes);
		free(serial->result.bytes);
		free(serial);
	}
	return result;
}

doca_error_t gd_serial_conf(struct gd_pool *pool, void *done_cb, void *error_cb, uint64_t n,
			    doca_error_t late)
{
	if (n > GD_SERIAL_TASKS_MAX)
		return DOCA_ERROR_INVALID_VALUE;
	return gd_pool_conf(pool, done_cb, error_cb, (uint32_t)n, late);
}

doca_error_t gd_serial_take(struct gd_pool *pool, union doca_data user_data,
			    struct doca_task **task_p)
{
	struct doca_task *task;

	if (pool->ctx->state == DOCA_CTX_STATE_IDLE)
		return DOCA_ERROR_BAD_STATE;
	task = gd_task_take(pool, user_data);
	if (!task)
		return DOCA_ERROR_NO_MEMORY;
	*task_p = task;
	return DOCA_SUCCESS;
}

/* -- memory -- */

bool gd_serial_can_use(const struct doca_ctx *ctx, const struct doca_buf *src,
		       const struct doca_buf *dst)
{
	return gd_buf_is_on(src, ctx->dev) && gd_buf_is_on(dst, ctx->dev) &&
	       gd_buf_list_length(src, GD_SERIAL_LIST_MAX + 1) <= GD_SERIAL_LIST_MAX &&
	       gd_buf_list_length(dst, GD_SERIAL_LIST_MAX + 1) <= GD_SERIAL_LIST_MAX;
}

/* Returns at least `size` bytes, valid until the next call; NULL: memory allocation failed. */
static void *scratch_get(struct gd_scratch *scratch, size_t size)
{
	if (size > scratch->size || !scratch->bytes) {
		free(scratch->bytes);
		scratch->bytes = malloc(size ? size : 1);
		scratch->size = scratch->bytes ? size : 0;
	}
	return scratch->bytes;
}

doca_error_t gd_serial_source(struct gd_serial *serial, const struct doca_buf *list,
			      const uint8_t **data_p, size_t *length_p)
{
	static const uint8_t nothing[1];
	size_t length = gd_buf_data_bytes(list), stretch = length;
	const struct doca_buf *buf;
	doca_error_t result;
	void *here;

	serial->read = list;
	*length_p = length;
	*data_p = nothing;
	if (length == 0)
		return DOCA_SUCCESS;
	result = gd_buf_piece(list, false, 0, &buf, &here, &stretch);
	*data_p = here;
	if (result != DOCA_SUCCESS || stretch == length)
		return result;
	here = scratch_get(&serial->source, length);
	*data_p = here;
	return here ? gd_buf_read(list, 0, here, length) : DOCA_ERROR_NO_MEMORY;
}

doca_error_t gd_serial_room(struct gd_serial *serial, struct doca_buf *list, size_t most,
			    struct gd_serial_dst *room)
{
	size_t size = gd_buf_room(list), stretch;
	const struct doca_buf *buf;
	doca_error_t result;
	void *here;

	stretch = size = size < most ? size : most;
	*room = (struct gd_serial_dst){.list = list, .size = size};
	if (size == 0)
		return DOCA_ERROR_INVALID_VALUE;
	result = gd_buf_piece(list, true, 0, &buf, &here, &stretch);
	if (result != DOCA_SUCCESS)
		return result;
	room->is_direct = stretch == size;
	room->bytes = room->is_direct ? here : scratch_get(&serial->result, size);
	return room->bytes ? DOCA_SUCCESS : DOCA_ERROR_NO_MEMORY;
}

doca_error_t gd_serial_put(const struct gd_serial_dst *room, size_t length)
{
	const doca_error_t result = gd_buf_moved(room->list);

	if (!room->is_direct)
		return gd_buf_append(room->list, room->bytes, length);
	if (result == DOCA_SUCCESS)
		gd_buf_grow(room->list, length);
	return result;
}
