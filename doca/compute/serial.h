/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * serial.h - contexts that the CPU executes: one task after another, each completely in one poll of
 * the engine
 *
 * The object of the library begins with a struct gd_serial, its tasks with a struct doca_task. A
 * struct gd_serial_ops describes each task type:
 *
 *     static const struct gd_serial_ops hash_ops = GD_SERIAL_TASK(check_hash, run_hash);
 *     gd_pool_init(&sha->hash_pool, &sha->serial.ctx, &hash_ops.ops,
 *                  sizeof(struct doca_sha_task_hash));
 *
 * Thread: the thread of the engine.
 */
#ifndef GD_SERIAL_H
#define GD_SERIAL_H

#include "buf/buf.h"
#include "engine/ctx.h"

#define GD_SERIAL_TASKS_MAX 65536 /* maximum number of tasks of one type */
#define GD_SERIAL_LIST_MAX 64     /* maximum number of buffers of a list */

/* Reusable memory that grows to the maximum size needed. */
struct gd_scratch {
	void *bytes;
	size_t size;
};

struct gd_serial {
	struct doca_ctx ctx;            /* must be first */
	struct doca_task *first, *last; /* submitted, not started */
	struct gd_scratch source, result;
	const struct doca_buf *read; /* source of the running task */
};

struct gd_serial_ops {
	struct gd_task_ops ops; /* must be first */
	/* Run the task. Returns its status. */
	doca_error_t (*run)(struct gd_serial *serial, struct doca_task *task);
	/* an error stops the context and flushes its tasks */
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

/*
 * Disconnect the context from its engine and free the object, whose first member is `serial`; or
 * return `busy`; for NULL return INVALID_VALUE.
 */
doca_error_t gd_serial_destroy(struct gd_serial *serial, doca_error_t busy);

/*
 * For functions *_set_conf. Returns INVALID_VALUE (also for too many tasks), `late` after start, or
 * NO_MEMORY.
 */
doca_error_t gd_serial_conf(struct gd_pool *pool, void *done_cb, void *error_cb, uint64_t n,
			    doca_error_t late);
/*
 * For functions *_alloc_init. BAD_STATE: the context is idle; NO_MEMORY: all tasks are allocated.
 */
doca_error_t gd_serial_take(struct gd_pool *pool, union doca_data user_data,
			    struct doca_task **task_p);

/*
 * True if the context can use both lists: they are on its device, and have at most
 * GD_SERIAL_LIST_MAX buffers. src, dst: NULL is a list without buffers.
 */
bool gd_serial_can_use(const struct doca_ctx *ctx, const struct doca_buf *src,
		       const struct doca_buf *dst);
/*
 * Get all data of a list as one piece, valid while the task runs. Errors as for gd_buf_read(), and
 * NO_MEMORY.
 */
doca_error_t gd_serial_source(struct gd_serial *serial, const struct doca_buf *list,
			      const uint8_t **data_p, size_t *length_p);

/*
 * Destination of the result of a task: directly behind the data of the list if that space is one
 * piece, else a buffer of the context.
 */
struct gd_serial_dst {
	struct doca_buf *list;
	uint8_t *bytes;
	size_t size;
	bool is_direct;
};

/*
 * Get a destination for at most `most` bytes, limited by the space of the list. Errors as for
 * gd_buf_append(), and NO_MEMORY.
 */
doca_error_t gd_serial_room(struct gd_serial *serial, struct doca_buf *list, size_t most,
			    struct gd_serial_dst *room);
/* Append the first `length` bytes of the result to the list, which does not change before. */
doca_error_t gd_serial_put(const struct gd_serial_dst *room, size_t length);

#endif
