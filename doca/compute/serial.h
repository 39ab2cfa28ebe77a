/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * serial.h - contexts that do their tasks by themselves: one after another, each in one step, while
 * the engine progresses.
 *
 * The library's object begins with a struct gd_serial, its tasks with a struct doca_task, and its
 * kinds of tasks are told by a struct gd_serial_ops each:
 *
 *     static const struct gd_serial_ops hash_ops = GD_SERIAL_TASK(check_hash, run_hash);
 *     gd_pool_init(&sha->hash_pool, &sha->serial.ctx, &hash_ops.ops, sizeof(struct
 *     doca_sha_task_hash));
 *
 * Thread: that of the engine.
 */
#ifndef GD_SERIAL_H
#define GD_SERIAL_H

#include "buf/buf.h"
#include "engine/ctx.h"

#define GD_SERIAL_TASKS_MAX 65536 /* of one kind */
#define GD_SERIAL_LIST_MAX 64     /* elements of a list of buffers, as the capabilities say */

/* Memory that grows to what was needed most, and stays. */
struct gd_scratch {
	void *bytes;
	size_t size;
};

struct gd_serial {
	struct doca_ctx ctx;            /* first */
	struct doca_task *first, *last; /* submitted, not yet begun */
	struct gd_scratch source, result;
	const struct doca_buf *read; /* source of the running task */
};

struct gd_serial_ops {
	struct gd_task_ops ops; /* first */
	/* Do it; the status of the task. */
	doca_error_t (*run)(struct gd_serial *serial, struct doca_task *task);
	/* the context does, by itself; what is left of its tasks is flushed */
	bool stops_at_errors;
};

doca_error_t gd_serial_submit(struct doca_task *task);
void gd_serial_withdraw(struct doca_task *task);
doca_error_t gd_serial_start(struct doca_ctx *ctx);
doca_error_t gd_serial_stop(struct doca_ctx *ctx);
int gd_serial_poll(struct doca_ctx *ctx);
int gd_serial_arm(struct doca_ctx *ctx);

#define GD_SERIAL_TASK(check_fn, run_fn) \
	{ \
		.ops = {.check = (check_fn), \
			.submit = gd_serial_submit, \
			.withdraw = gd_serial_withdraw}, \
		.run = (run_fn) \
	}

#define GD_SERIAL_CTX(text) \
	{ \
		.name = (text), .start = gd_serial_start, .stop = gd_serial_stop, \
		.poll = gd_serial_poll, .arm = gd_serial_arm \
	}

/* The context off its engine and its memory freed; or `busy`. The object itself is the caller's. */
doca_error_t gd_serial_fini(struct gd_serial *serial, doca_error_t busy);

/* *_set_conf: INVALID_VALUE (too many tasks, too), `late`, NO_MEMORY. */
doca_error_t gd_serial_conf(struct gd_pool *pool, void *done_cb, void *error_cb, uint64_t n,
			    doca_error_t late);
/* *_alloc_init: BAD_STATE while idle, NO_MEMORY when none is left. */
doca_error_t gd_serial_take(struct gd_pool *pool, union doca_data user_data,
			    struct doca_task **task_p);

/*
 * All data of a list in one piece, valid while the task runs. Errors as of gd_buf_read, and
 * NO_MEMORY.
 */
doca_error_t gd_serial_source(struct gd_serial *serial, const struct doca_buf *list,
			      const uint8_t **data_p, size_t *length_p);

/*
 * Where the result of a task is made: behind the data of its destination, or, when that is in
 * pieces, in the context.
 */
struct gd_recv_credit {
	struct doca_buf *list;
	uint8_t *bytes;
	size_t size;
	bool is_direct;
};

/*
 * Room for `most` bytes, or for what the list can hold if that is less. Errors as of gd_buf_append,
 * and NO_MEMORY.
 */
doca_error_t gd_serial_room(struct gd_serial *serial, struct doca_buf *list, size_t most,
			    struct gd_recv_credit *room);
/*
 * The first `length` bytes of the room become data of the list. Until then the list is as it was.
 */
doca_error_t gd_serial_put(const struct gd_recv_credit *room, size_t length);

#endif
