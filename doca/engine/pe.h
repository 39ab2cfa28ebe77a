/* SPDX-License-Identifier: BSD-3-Clause */
/* pe.h - the progress engine, as this module and the fast paths of libraries use it */
#ifndef GD_PE_H
#define GD_PE_H

#include <stdatomic.h>

#include "engine/ctx.h"

/* The waiter for the fd of an engine. */
enum gd_pe_waiter {
	GD_PE_AWAKE,
	GD_PE_SLEEPS, /* the engine, see pe_sleep.c: all events wake it */
	GD_PE_WAITS   /* the program, see doca_pe_request_notification(): silent events do not */
};

struct doca_pe {
	struct gd_event *first, *last;
	struct doca_ctx *turn; /* the context that was polled last, in the ring of contexts */
	/*
	 * the consumer that received the last message, if nothing was sent since; see
	 * doca_comch_consumer.c
	 */
	struct doca_ctx *last_receiver;
	uint32_t in_a_row;
	uint32_t n_idle; /* consecutive calls without work */
	/* remaining idle periods that sleep instead of yielding, see pe_sleep.c */
	uint32_t n_sleeps_left;
	uint32_t n_sleeps_woken; /* sleeps that an event ended */
	bool polling;
	enum doca_pe_event_mode mode;
	int fd;
	_Alignas(64) _Atomic(struct gd_event *) inbox; /* this and the fields below: any thread */
	atomic_int armed;                              /* enum gd_pe_waiter */
};

/* -- thread of the engine: fast path of each message -- */

void gd_pe_collect_inbox(struct doca_pe *pe);
void gd_pe_wake_armed(struct doca_pe *pe, bool is_silent);
/* Slow path of gd_pe_post_own(): other threads have posted events, or the engine is armed. */
void gd_pe_post_slowly(struct doca_pe *pe, struct gd_event *event);

static inline void gd_pe_append(struct doca_pe *pe, struct gd_event *first, struct gd_event *last)
{
	if (pe->first)
		pe->last->next = first;
	else
		pe->first = first;
	pe->last = last;
}

static inline void gd_pe_collect(struct doca_pe *pe)
{
	if (doca_unlikely(atomic_load_explicit(&pe->inbox, memory_order_relaxed) != NULL))
		gd_pe_collect_inbox(pe);
}

/* gd_pe_wake() for the thread of the engine. */
static inline void gd_pe_wake_own(struct doca_pe *pe, bool is_silent)
{
	if (doca_unlikely(atomic_load_explicit(&pe->armed, memory_order_relaxed)))
		gd_pe_wake_armed(pe, is_silent);
}

/* gd_pe_post() for the thread of the engine, inline. */
static inline void gd_pe_post_own(struct doca_pe *pe, struct gd_event *event)
{
	event->next = NULL;
	if (doca_unlikely(atomic_load_explicit(&pe->inbox, memory_order_relaxed) ||
			  atomic_load_explicit(&pe->armed, memory_order_relaxed)))
		gd_pe_post_slowly(pe, event);
	else
		gd_pe_append(pe, event, event);
}

/* The engine has been idle for a while: yield the processor, see pe_sleep.c. */
void gd_pe_yield(struct doca_pe *pe);

/* gd_task_done(), inline. */
static inline void gd_task_done_own(struct doca_task *task, doca_error_t status)
{
	task->status = status;
	task->state = GD_TASK_DONE;
	gd_pe_post_own(task->ctx->pe, &task->event);
}

/* Thread of the engine. Disconnect a context from its engine. */
void gd_pe_remove(struct doca_ctx *ctx);
/*
 * Returns whether a context of the engine is being polled. Callbacks must then wait until the poll
 * has returned.
 */
bool gd_pe_is_polling(const struct doca_pe *pe);

/* Returns whether this thread is in a callback of the engine. */
bool gd_pe_is_running(const struct doca_pe *pe);

/* A task was freed: if it was the last one, a stopping context becomes idle. */
void gd_ctx_task_freed(struct doca_ctx *ctx);
/* gd_ctx_fail() at the next doca_pe_progress(), for callers that must not run callbacks. */
void gd_ctx_fail_later(struct doca_ctx *ctx);

/* Free the tasks of a pool. */
void gd_pool_fini(struct gd_pool *pool);

#endif
