/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ctx.h - contexts and tasks, as all libraries of this tree build them
 *
 * A library object (struct doca_dma, ...) embeds struct doca_ctx as its first member and gives it a
 * table of operations. Its tasks begin with struct doca_task. The engine module then handles
 * states, callbacks, task counts and flushes.
 *
 * Threads: a context and its tasks belong to the thread that progresses their engine. Any thread
 * may call only gd_pe_post() and gd_pe_wake(). The engine holds no lock while a callback of the
 * program runs. After the callback that reports IDLE the engine does not touch the context: the
 * program can have destroyed it in that callback.
 */
#ifndef GD_CTX_H
#define GD_CTX_H

#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_error.h>
#include <doca_pe.h>
#include <doca_types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gd_pool;
struct pollfd;

/*
 * An event: a function that runs on the thread of an engine. It is embedded in the object that it
 * concerns, and is in one queue at a time.
 */
struct gd_event {
	struct gd_event *next;
	void (*run)(struct gd_event *event); /* may free the event or post it again */
	bool is_silent; /* of a library without notifications, see gd_ctx_ops.is_silent */
	/*
	 * doca_pe_progress() runs it before all other events, and does not count it as work: it
	 * must not call the program
	 */
	bool is_first;
};

/*
 * Any thread. Post an event. doca_pe_progress() runs one event per call, in the order of posting.
 * The call makes an armed notification fd readable, unless the event is silent. The engine must
 * exist until the call returns.
 */
void gd_pe_post(struct doca_pe *pe, struct gd_event *event);
/*
 * Any thread. Make the notification fd of the engine readable if it is armed, because polling would
 * find work.
 */
void gd_pe_wake(struct doca_pe *pe);
/* Thread of the engine. Remove an event that has not run. Returns whether it was queued. */
bool gd_pe_withdraw(struct doca_pe *pe, struct gd_event *event);

struct gd_ctx_ops {
	const char *name; /* name in messages, such as "DMA" */
	/*
	 * Start. Returns SUCCESS: the context is RUNNING. IN_PROGRESS: the context is STARTING, and
	 * gd_ctx_started() or gd_ctx_stopped() follows from an event or a poll. Other: the context
	 * stays IDLE.
	 */
	doca_error_t (*start)(struct doca_ctx *ctx);
	/*
	 * Stop. Called once for each start. All tasks in flight must complete soon, by
	 * gd_task_done() with an error. Returns SUCCESS: the context becomes idle when no task is
	 * allocated. IN_PROGRESS: the context becomes idle when no task is allocated and
	 * gd_ctx_stopped() was called. Other: the stop is rejected, and the state does not change
	 * (for example IN_USE). A function pointer of NULL has the effect of SUCCESS.
	 */
	doca_error_t (*stop)(struct doca_ctx *ctx);
	/*
	 * The context has become idle. The engine reports IDLE to the program after this returns.
	 * NULL: no action. Called on the thread of the engine.
	 */
	void (*idle)(struct doca_ctx *ctx);
	/*
	 * Do one step of work. Returns 1 if a task has completed or a state is about to change,
	 * else 0. gd_task_done(), gd_ctx_started() and others queue their callbacks; the engine
	 * runs them after the poll, in the same doca_pe_progress(). Not called in IDLE. NULL: the
	 * context is event driven.
	 */
	int (*poll)(struct doca_ctx *ctx);
	/*
	 * The engine is about to wait. Arrange for gd_pe_post() or gd_pe_wake() when poll has work.
	 * Returns non-zero if poll has work now. NULL: nothing to arrange.
	 */
	int (*arm)(struct doca_ctx *ctx);
	/*
	 * The engine is about to sleep for a short time. Store fds that become readable when poll
	 * has work, and return their number, 0 if gd_pe_post() reports all work. Returns -1 if poll
	 * has work now or cannot report it. The engine calls rouse in either case. NULL: the engine
	 * calls arm.
	 */
	int (*sleep_until_event)(struct doca_ctx *ctx, struct pollfd *fds, int max);
	void (*rouse)(struct doca_ctx *ctx);
	bool on_dpa; /* used by code on an emulated DPA: needs no engine */
	/*
	 * The library is documented to have no notifications: its work does not make the
	 * notification fd readable, and an engine with only such contexts cannot be armed.
	 */
	bool is_silent;
};

struct doca_ctx {
	const struct gd_ctx_ops *ops;
	struct doca_dev *dev;
	struct doca_pe *pe;    /* NULL until connected */
	struct doca_ctx *next; /* next context of the engine, a ring */
	enum doca_ctx_states state;
	int (*poll)(struct doca_ctx *ctx); /* ops->poll; NULL in IDLE */
	union doca_data user_data;
	doca_ctx_state_changed_callback_t state_cb;
	size_t n_inflight; /* submitted, and the callback has not run */
	size_t n_taken;    /* allocated and not freed */
	bool stop_pending; /* stop returned IN_PROGRESS: gd_ctx_stopped() must follow */
	/* a task or the context failed: the context stops without a call of the program */
	bool failed;
	struct gd_pool *pools;
	struct gd_event event; /* carries changes of state to the engine */
	bool event_posted;
	uint8_t due; /* changes that the event carries, see doca_ctx.c */
};

/* Status of a task that a stop ended before its completion. */
#define GD_FLUSHED DOCA_ERROR_SHUTDOWN

void gd_ctx_init(struct doca_ctx *ctx, const struct gd_ctx_ops *ops, struct doca_dev *dev);
/*
 * Disconnect the context from its engine and free its pools. Returns `busy` if the context is not
 * idle (IN_USE or BAD_STATE, as documented for the library).
 */
doca_error_t gd_ctx_fini(struct doca_ctx *ctx, doca_error_t busy);
/* Thread of the engine. Change STARTING to RUNNING. */
void gd_ctx_started(struct doca_ctx *ctx);
/*
 * Change STARTING to IDLE because the start failed. In STOPPING: complete a stop that returned
 * IN_PROGRESS. Do not use ctx after that. Do not call it in ops->stop, which returns SUCCESS
 * instead.
 */
void gd_ctx_stopped(struct doca_ctx *ctx);
/*
 * Stop the context because of a fatal error or the end of the peer. Calls ops->stop with `failed`
 * set. If ops->stop rejects the stop, this counts as IN_PROGRESS: gd_ctx_stopped() must follow.
 */
void gd_ctx_fail(struct doca_ctx *ctx);
/*
 * Returns SUCCESS if a setter may change the context, INVALID_VALUE for NULL, and `late` after
 * start.
 */
doca_error_t gd_ctx_configurable(const struct doca_ctx *ctx, doca_error_t late);

/* -- tasks -- */

enum gd_task_state { GD_TASK_FREE, GD_TASK_TAKEN, GD_TASK_SUBMITTED, GD_TASK_DONE };

struct gd_task_ops {
	/* Check the fields for doca_task_try_submit(): SUCCESS or INVALID_VALUE. NULL: no check. */
	doca_error_t (*check)(const struct doca_task *task);
	/*
	 * Submit. Called only in RUNNING. Returns SUCCESS: gd_task_done() follows, in this call or
	 * later, with an error if the fields are invalid. Other: the program keeps the task (AGAIN,
	 * NO_MEMORY, ...). In STOPPING the engine accepts the task and completes it with
	 * GD_FLUSHED. In IDLE and STARTING the engine rejects the task with BAD_STATE.
	 */
	doca_error_t (*submit)(struct doca_task *task);
	/*
	 * doca_task_free() of a task in flight: cancel it. NULL: the engine frees it after its
	 * completion.
	 */
	void (*withdraw)(struct doca_task *task);
	/*
	 * The task returns to its pool: release what it has held since its allocation. NULL:
	 * nothing to release.
	 */
	void (*freed)(struct doca_task *task);
};

/*
 * First member of every task type. A freed task keeps its values, because programs free a task
 * before they read it.
 */
struct doca_task {
	struct gd_event event; /* carries the completion to the engine */
	const struct gd_task_ops *ops;
	struct doca_ctx *ctx;
	struct gd_pool *pool;
	/* link in the free list of the pool, or in a queue of the library */
	struct doca_task *next;
	union doca_data user_data;
	doca_error_t status;
	enum gd_task_state state;
	bool dropped; /* freed while in flight */
	/* set by a graph: called instead of the callbacks */
	void (*ended)(struct doca_task *task, void *arg);
	void *ended_arg;
};

/*
 * The tasks of one type of one context. *_set_conf fixes their number before start. Each has `size`
 * bytes, zeroed, and begins with struct doca_task.
 */
struct gd_pool {
	struct gd_pool *next;
	struct doca_ctx *ctx;
	const struct gd_task_ops *ops;
	size_t size;
	uint32_t n;
	doca_task_completion_cb_t done_cb, error_cb;
	struct doca_task *free;
	void *tasks;
	bool is_set;
};

/*
 * Initialize a pool, which is embedded in the object, at create. *_set_conf then calls
 * gd_pool_conf(), which returns INVALID_VALUE for a missing callback or 0 tasks, `late` after
 * start, or NO_MEMORY. A second call replaces the first.
 */
void gd_pool_init(struct gd_pool *pool, struct doca_ctx *ctx, const struct gd_task_ops *ops,
		  size_t size);
doca_error_t gd_pool_conf(struct gd_pool *pool, void *done_cb, void *error_cb, uint32_t n,
			  doca_error_t late);
/*
 * Allocate a task with user data and status SUCCESS. NULL: all tasks are allocated, or the context
 * is IDLE.
 */
struct doca_task *gd_task_take(struct gd_pool *pool, union doca_data user_data);
/*
 * Thread of the engine. The task has completed; doca_pe_progress() runs its callback later, never
 * this call.
 */
void gd_task_done(struct doca_task *task, doca_error_t status);
/* The task has completed: run its callback now. Call it as the last action of an event. */
void gd_task_end(struct doca_task *task, doca_error_t status);
/* Like gd_task_done(). An error also stops the context, as documented for DMA and RDMA. */
void gd_task_done_or_fail(struct doca_task *task, doca_error_t status);

#endif
