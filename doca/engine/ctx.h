/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ctx.h - what every context is made of: its states, its tasks, and its place on a progress engine.
 *
 * A library object (struct doca_dma, ...) embeds struct doca_ctx as its first member, gives it a
 * table of operations, and builds its tasks on struct doca_task. All that is common then happens
 * here: states, callbacks, counting, flushing.
 *
 * Threads: a context and its tasks belong to the thread that progresses their engine, one at a
 * time. The single function that any thread may call is gd_pe_post(). No lock is held while a
 * callback of the program runs, and after the callback that reports IDLE the context is not
 * touched: the program may have destroyed it there.
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
 * Something that is to happen on the thread of an engine. Embedded in whatever it is about; in one
 * queue at a time.
 */
struct gd_event {
	struct gd_event *next;
	void (*run)(struct gd_event *event); /* may free it, or post it again */
};

/*
 * Any thread: the engine runs the event, one per doca_pe_progress, in the order of posting; wakes
 * its notification fd.
 * The engine must be there until the call has returned.
 */
void gd_pe_post(struct doca_pe *pe, struct gd_event *event);
/*
 * Any thread: the engine has work that it finds by polling; makes its notification fd readable when
 * that was requested.
 */
void gd_pe_wake(struct doca_pe *pe);
/* Thread of the engine: take an event back that has not run; returns whether it was waiting. */
bool gd_pe_withdraw(struct doca_pe *pe, struct gd_event *event);

struct gd_ctx_ops {
	const char *name; /* "DMA", for messages */
	/*
	 * Leave IDLE. SUCCESS: RUNNING at once. IN_PROGRESS: STARTING; gd_ctx_started() or
	 * gd_ctx_stopped() follows from an event or a poll. Any other: stays IDLE.
	 */
	doca_error_t (*start)(struct doca_ctx *ctx);
	/*
	 * Begin to stop. Whatever is in flight must end soon, by gd_task_done() with an error.
	 * Called once for each start. SUCCESS: idle as soon as no task is left. IN_PROGRESS: as
	 * well, but not before gd_ctx_stopped(). Any other: refused, the state does not change
	 * (live producers, ...). NULL: SUCCESS.
	 */
	doca_error_t (*stop)(struct doca_ctx *ctx);
	/*
	 * The context has become idle. The engine reports IDLE to the program after this returns.
	 * NULL: no action.
	 * Called on the thread of the engine.
	 */
	void (*idle)(struct doca_ctx *ctx);
	/*
	 * Do a step of work; how many things were done, 0 or 1: a task has ended, a state is about
	 * to change. Callbacks follow when it has returned, in the same doca_pe_progress:
	 * gd_task_done(), gd_ctx_started(), ... queue them. Not called in IDLE. NULL: event driven.
	 */
	int (*poll)(struct doca_ctx *ctx);
	/*
	 * The engine is about to wait: gd_pe_post() when poll has work; non-zero: it has work now.
	 * NULL: none needed.
	 */
	int (*arm)(struct doca_ctx *ctx);
	/*
	 * The engine is about to sleep for a moment: fds that become readable when poll has work,
	 * how many, none if it gets all of it by gd_pe_post(); -1: it has work now, or cannot tell.
	 * rouse follows in any case. NULL: what arm says.
	 */
	int (*sleep_until_event)(struct doca_ctx *ctx, struct pollfd *fds, int max);
	void (*rouse)(struct doca_ctx *ctx);
	bool on_dpa; /* used by code on an emulated DPA: may run without an engine */
};

struct doca_ctx {
	const struct gd_ctx_ops *ops;
	struct doca_dev *dev;
	struct doca_pe *pe;    /* NULL until connected */
	struct doca_ctx *next; /* on that engine: a ring */
	enum doca_ctx_states state;
	int (*poll)(struct doca_ctx *ctx); /* of its operations; NULL in IDLE as well */
	union doca_data user_data;
	doca_ctx_state_changed_callback_t state_cb;
	size_t n_inflight; /* submitted, callback not yet run */
	size_t n_taken;    /* allocated and not freed */
	bool stop_pending; /* stop returned IN_PROGRESS, gd_ctx_stopped() is due */
	bool failed;       /* a task failed: it stops by itself */
	struct gd_pool *pools;
	struct gd_event event; /* brings a change of state to the engine */
	bool event_posted;
	uint8_t due; /* changes that it brings, of doca_ctx.c */
};

/* Status of a task that a stop or an error ended before it was done. */
#define GD_FLUSHED DOCA_ERROR_SHUTDOWN

void gd_ctx_init(struct doca_ctx *ctx, const struct gd_ctx_ops *ops, struct doca_dev *dev);
/*
 * Off its engine, pools freed; SUCCESS, or `busy` when it is not idle (IN_USE or BAD_STATE, as the
 * library documents).
 */
doca_error_t gd_ctx_fini(struct doca_ctx *ctx, doca_error_t busy);
/* Thread of the engine. From STARTING to RUNNING. */
void gd_ctx_started(struct doca_ctx *ctx);
/*
 * From STARTING to IDLE (the start failed), or, in STOPPING, the IN_PROGRESS of stop is over. Not
 * to be followed by any use of ctx. Not from ops->stop: that returns SUCCESS.
 */
void gd_ctx_stopped(struct doca_ctx *ctx);
/*
 * Into STOPPING by itself: an error that nobody can go on from, or the peer is gone. Calls
 * ops->stop, with `failed` set; when it refuses all the same, that counts as IN_PROGRESS:
 * gd_ctx_stopped() is due.
 */
void gd_ctx_fail(struct doca_ctx *ctx);
/* May a setter still change it? SUCCESS, INVALID_VALUE for NULL, `late` after start. */
doca_error_t gd_ctx_configurable(const struct doca_ctx *ctx, doca_error_t late);

/* -- tasks -- */

enum gd_task_state { GD_TASK_FREE, GD_TASK_TAKEN, GD_TASK_SUBMITTED, GD_TASK_DONE };

struct gd_task_ops {
	/* What doca_task_try_submit asks first: INVALID_VALUE, or SUCCESS. NULL: SUCCESS. */
	doca_error_t (*check)(const struct doca_task *task);
	/*
	 * Take it; only called in RUNNING. SUCCESS: gd_task_done() follows, now or later. Any
	 * other: the program keeps it (AGAIN, NO_MEMORY, ...). A task that makes no sense is
	 * accepted, and then fails. What is submitted in STOPPING is accepted and ends as
	 * GD_FLUSHED; IDLE and STARTING refuse with BAD_STATE: the library is not asked.
	 */
	doca_error_t (*submit)(struct doca_task *task);
	/*
	 * doca_task_free() on one that is in flight: forget it, no callback. NULL: it is dropped
	 * when its end comes.
	 */
	void (*withdraw)(struct doca_task *task);
	/*
	 * It goes back to its pool: let go of what it held since it was allocated. NULL: nothing.
	 */
	void (*freed)(struct doca_task *task);
};

/*
 * First member of every task type. Keeps its values after it was freed: programs read them in that
 * order.
 */
struct doca_task {
	struct gd_event event; /* carries its end to the engine */
	const struct gd_task_ops *ops;
	struct doca_ctx *ctx;
	struct gd_pool *pool;
	/* for the owner of the moment: free list, or a queue of the library */
	struct doca_task *next;
	union doca_data user_data;
	doca_error_t status;
	enum gd_task_state state;
	bool dropped; /* freed while in flight */
	/* a graph runs it: called instead of the callbacks */
	void (*ended)(struct doca_task *task, void *arg);
	void *ended_arg;
};

/*
 * One kind of task of one context. conf: by *_set_conf, before start. The number of tasks is fixed
 * then, each `size` bytes, zeroed, the first member a struct doca_task.
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
 * Put a pool (embedded in the object) in place, at create. Then *_set_conf calls gd_pool_conf:
 * INVALID_VALUE for a missing callback or 0 tasks, `late` after start, NO_MEMORY; a second call
 * replaces the first.
 */
void gd_pool_init(struct gd_pool *pool, struct doca_ctx *ctx, const struct gd_task_ops *ops,
		  size_t size);
doca_error_t gd_pool_conf(struct gd_pool *pool, void *done_cb, void *error_cb, uint32_t n,
			  doca_error_t late);
/* A task with user data, status SUCCESS; NULL: none left, or the context is IDLE. */
struct doca_task *gd_task_take(struct gd_pool *pool, union doca_data user_data);
/*
 * Any library code on the thread of the engine: the task has ended; its callback runs from
 * doca_pe_progress, never here.
 */
void gd_task_done(struct doca_task *task, doca_error_t status);
/*
 * The last thing that an event of the engine does: the task has ended, and its callback runs at
 * once.
 */
void gd_task_end(struct doca_task *task, doca_error_t status);
/* As gd_task_done; an error also stops the context, as DMA and RDMA document. */
void gd_task_done_or_fail(struct doca_task *task, doca_error_t status);

#endif
