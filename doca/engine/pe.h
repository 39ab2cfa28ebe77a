/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pe.h - what a progress engine shares with the contexts on it.
 */
#ifndef GD_PE_H
#define GD_PE_H

#include <stdatomic.h>

#include "engine/ctx.h"

struct doca_pe {
	struct gd_event *first, *last;
	struct doca_ctx *turn; /* the context that was polled last, in the ring of all of them */
	/* it brought the last message, and nothing has been sent since; a consumer's */
	struct doca_ctx *asked;
	uint32_t in_a_row;
	uint32_t n_idle;    /* calls in a row that found nothing to do */
	uint32_t n_crowded; /* so often it had better sleep than yield */
	uint32_t n_rung;    /* sleeps that were ended by something to do */
	bool polling;
	enum doca_pe_event_mode mode;
	int fd;
	_Alignas(64) _Atomic(struct gd_event *) inbox; /* and below: any thread */
	atomic_bool armed;
};

/* -- thread of the engine: what every message goes through -- */

void gd_pe_collect_inbox(struct doca_pe *pe);
void gd_pe_wake_armed(struct doca_pe *pe);
/* Behind what other threads have posted, or while somebody waits. */
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

/* gd_pe_wake() by the thread that arms the engine itself. */
static inline void gd_pe_wake_own(struct doca_pe *pe)
{
	if (doca_unlikely(atomic_load_explicit(&pe->armed, memory_order_relaxed)))
		gd_pe_wake_armed(pe);
}

/* As gd_pe_post, by the thread of the engine: without a call. */
static inline void gd_pe_post_own(struct doca_pe *pe, struct gd_event *event)
{
	event->next = NULL;
	if (doca_unlikely(atomic_load_explicit(&pe->inbox, memory_order_relaxed) ||
			  atomic_load_explicit(&pe->armed, memory_order_relaxed)))
		gd_pe_post_slowly(pe, event);
	else
		gd_pe_append(pe, event, event);
}

/* It has found nothing for a while: others may have the processor. */
void gd_pe_offer(struct doca_pe *pe);

/* gd_task_done() without a call. */
static inline void gd_task_done_own(struct doca_task *task, doca_error_t status)
{
	task->status = status;
	task->state = GD_TASK_DONE;
	gd_pe_post_own(task->ctx->pe, &task->event);
}

/* Take a context off its engine. Thread of the engine. */
void gd_pe_remove(struct doca_ctx *ctx);
/*
 * Is a context of this engine being polled right now? Then callbacks have to wait until that is
 * over.
 */
bool gd_pe_is_polling(const struct doca_pe *pe);

/* Does a callback of this engine run right now, on this thread? */
bool gd_pe_is_running(const struct doca_pe *pe);

/* The last task of a context was given back: it may have become idle. */
void gd_ctx_task_freed(struct doca_ctx *ctx);
/* gd_ctx_fail(), but at the next doca_pe_progress: for callers that must not run callbacks. */
void gd_ctx_fail_later(struct doca_ctx *ctx);

/* The tasks of a pool go. */
void gd_pool_fini(struct gd_pool *pool);

#endif
