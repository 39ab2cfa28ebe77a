/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_pe.c - progress engines: event queues, polling and notification
 *
 * An engine has two queues of events. Any thread pushes to `inbox`, a stack with the newest event
 * first. `first`..`last` is in order and belongs to the thread of the engine. That thread takes the
 * whole inbox and reverses it. So the order of posting is kept, and no event is removed from the
 * middle of a stack that other threads push to.
 *
 * Notification: the waiter sets `armed` before it checks for work. A poster reads `armed` after it
 * has posted. So one of them sees the other, and the eventfd is written at most once for each
 * arming.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/gd_log.h"
#include "engine/pe.h"

/*
 * Consecutive events after which the engine polls the contexts, so that neither events nor polling
 * starve.
 */
#define EVENTS_IN_A_ROW 16

/*
 * Programs call doca_pe_progress() in a loop. After this number of idle calls the engine yields the
 * processor, because the peer might be waiting for the processor. A yield costs about 500 ns, which
 * is 4 ns for each call.
 */
#define IDLE_ROUNDS 128

doca_error_t doca_pe_create(struct doca_pe **pe_p)
{
	struct doca_pe *pe;

	if (!pe_p)
		return DOCA_ERROR_INVALID_VALUE;
	pe = aligned_alloc(_Alignof(struct doca_pe), sizeof(*pe));
	if (!pe)
		return DOCA_ERROR_NO_MEMORY;
	*pe = (struct doca_pe){.mode = DOCA_PE_EVENT_MODE_PROGRESS_SELECTIVE};
	pe->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (pe->fd < 0) {
		free(pe);
		return DOCA_ERROR_NO_MEMORY;
	}
	*pe_p = pe;
	return DOCA_SUCCESS;
}

doca_error_t doca_pe_destroy(struct doca_pe *pe)
{
	if (!pe)
		return DOCA_ERROR_INVALID_VALUE;
	if (pe->turn)
		return DOCA_ERROR_IN_USE;
	close(pe->fd);
	free(pe);
	return DOCA_SUCCESS;
}

/* -- contexts: a ring -- */

doca_error_t doca_pe_connect_ctx(struct doca_pe *pe, struct doca_ctx *ctx)
{
	if (!pe || !ctx)
		return DOCA_ERROR_INVALID_VALUE;
	if (ctx->state != DOCA_CTX_STATE_IDLE)
		return DOCA_ERROR_BAD_STATE;
	if (ctx->pe)
		return DOCA_ERROR_NOT_PERMITTED;
	ctx->pe = pe;
	if (pe->turn) {
		ctx->next = pe->turn->next;
		pe->turn->next = ctx;
	} else {
		ctx->next = ctx;
	}
	pe->turn = ctx;
	return DOCA_SUCCESS;
}

void gd_pe_remove(struct doca_ctx *ctx)
{
	struct doca_pe *pe = ctx->pe;
	struct doca_ctx *before = ctx;

	if (!pe)
		return;
	while (before->next != ctx)
		before = before->next;
	before->next = ctx->next;
	if (pe->turn == ctx)
		pe->turn = before == ctx ? NULL : before;
	ctx->pe = NULL;
	ctx->next = NULL;
}

/* -- events -- */

static void signal_fd(struct doca_pe *pe)
{
	const uint64_t one = 1;
	ssize_t n;

	do
		n = write(pe->fd, &one, sizeof(one));
	while (n < 0 && errno == EINTR); /* EAGAIN: the fd is readable already */
}

void gd_pe_wake_armed(struct doca_pe *pe, bool is_silent)
{
	if (is_silent && atomic_load(&pe->armed) == GD_PE_WAITS)
		return;
	if (atomic_exchange(&pe->armed, GD_PE_AWAKE))
		signal_fd(pe);
}

static void wake(struct doca_pe *pe, bool is_silent)
{
	if (atomic_load(&pe->armed))
		gd_pe_wake_armed(pe, is_silent);
}

void gd_pe_wake(struct doca_pe *pe)
{
	wake(pe, false);
}

void gd_pe_post_slowly(struct doca_pe *pe, struct gd_event *event)
{
	gd_pe_collect(pe);
	gd_pe_append(pe, event, event);
	gd_pe_wake_own(pe, event->is_silent);
}

/*
 * Push to the inbox, then read `armed`. The thread that arms writes `armed`, then reads the inbox.
 * So one of the two sees the other. All four accesses are seq_cst, see
 * doca_pe_request_notification() and sleep_until_event().
 */
void gd_pe_post(struct doca_pe *pe, struct gd_event *event)
{
	struct gd_event *old = atomic_load_explicit(&pe->inbox, memory_order_relaxed);
	const bool is_silent = event->is_silent; /* the engine may run it as soon as it is pushed */

	do
		event->next = old;
	while (!atomic_compare_exchange_weak(&pe->inbox, &old, event));
	wake(pe, is_silent);
}

/*
 * Append the events of the inbox to the ordered queue, in the order of posting, and insert those
 * with is_first before it.
 */
void gd_pe_collect_inbox(struct doca_pe *pe)
{
	struct gd_event *event = atomic_exchange_explicit(&pe->inbox, NULL, memory_order_acquire),
			*next, *first = NULL, *last = NULL;

	for (; event; event = next) {
		next = event->next;
		if (event->is_first) {
			event->next = pe->first;
			if (!pe->first)
				pe->last = event;
			pe->first = event;
			continue;
		}
		event->next = first;
		first = event;
		if (!last)
			last = event;
	}
	if (first)
		gd_pe_append(pe, first, last);
}

bool gd_pe_withdraw(struct doca_pe *pe, struct gd_event *event)
{
	struct gd_event **link, *before = NULL;

	gd_pe_collect(pe);
	for (link = &pe->first; *link && *link != event; link = &before->next)
		before = *link;
	if (!*link)
		return false;
	*link = event->next;
	if (pe->last == event)
		pe->last = before;
	return true;
}

/* -- progress -- */

/*
 * Poll the contexts, beginning after the one polled last, until one has done work. Runs no
 * callback.
 */
static bool poll_contexts(struct doca_pe *pe)
{
	struct doca_ctx *const end = pe->turn, *ctx = end;
	bool done = false;

	if (!end)
		return false;
	pe->polling = true;
	do {
		ctx = ctx->next;
		if (ctx->poll && ctx->poll(ctx)) {
			pe->turn = ctx;
			done = true;
			break;
		}
	} while (ctx != end);
	pe->polling = false;
	return done;
}

bool gd_pe_is_polling(const struct doca_pe *pe)
{
	return pe->polling;
}

/* The engine whose callback runs on this thread; only compared: a callback can destroy it. */
static _Thread_local const struct doca_pe *running __attribute__((tls_model("initial-exec")));

bool gd_pe_is_running(const struct doca_pe *pe)
{
	return running == pe;
}

/* Run the first event. Do not touch the engine after that: a callback may have destroyed it. */
static void run_first(struct doca_pe *pe)
{
	const struct doca_pe *before = running; /* a callback may progress another engine */
	struct gd_event *event = pe->first;

	pe->first = event->next;
	running = pe;
	event->run(event);
	running = before;
}

/* Run the events with is_first, which precede all others. Returns whether others are queued. */
static __attribute__((noinline)) bool run_preceding(struct doca_pe *pe)
{
	while (pe->first && pe->first->is_first)
		run_first(pe);
	return pe->first != NULL;
}

static inline bool has_events(struct doca_pe *pe)
{
	return pe->first && (doca_likely(!pe->first->is_first) || run_preceding(pe));
}

uint8_t doca_pe_progress(struct doca_pe *pe)
{
	bool done = false;

	if (doca_unlikely(!pe))
		return 0;
	gd_pe_collect(pe);
	if (!has_events(pe) || doca_unlikely(pe->in_a_row == EVENTS_IN_A_ROW)) {
		pe->in_a_row = 0;
		done = poll_contexts(pe);
		gd_pe_collect(pe);
	}
	if (has_events(pe)) {
		pe->in_a_row++;
		pe->n_idle = 0;
		run_first(pe);
		return 1;
	}
	if (!done && ++pe->n_idle % IDLE_ROUNDS == 0)
		gd_pe_yield(pe);
	return done;
}

/* -- waiting -- */

doca_error_t doca_pe_get_notification_handle(const struct doca_pe *pe,
					     doca_notification_handle_t *handle)
{
	if (!pe || !handle)
		return DOCA_ERROR_INVALID_VALUE;
	*handle = pe->fd;
	return DOCA_SUCCESS;
}

/* Not supported: the handle is a file descriptor of the engine. */
doca_error_t doca_pe_set_notification_handle(struct doca_pe *pe, doca_notification_handle_t handle,
					     union doca_data completion_key)
{
	(void)handle;
	(void)completion_key;
	return pe ? DOCA_ERROR_NOT_SUPPORTED : DOCA_ERROR_INVALID_VALUE;
}

doca_error_t doca_pe_clear_notification(struct doca_pe *pe, doca_notification_handle_t handle)
{
	uint64_t count;

	(void)handle;
	if (!pe)
		return DOCA_ERROR_INVALID_VALUE;
	while (read(pe->fd, &count, sizeof(count)) < 0) {
		if (errno == EAGAIN)
			break;
		if (errno != EINTR)
			return DOCA_ERROR_OPERATING_SYSTEM;
	}
	return DOCA_SUCCESS;
}

/* Returns whether an event is queued that is not silent. */
static bool has_event(struct doca_pe *pe)
{
	const struct gd_event *event;

	if (atomic_load(&pe->inbox))
		gd_pe_collect_inbox(pe);
	for (event = pe->first; event; event = event->next)
		if (!event->is_silent)
			return true;
	return false;
}

/*
 * Arm the contexts. Returns whether there is work now. If not, the contexts wake the engine when
 * they have work.
 */
static bool has_work(struct doca_pe *pe)
{
	struct doca_ctx *ctx = pe->turn;
	bool work = has_event(pe);

	if (!ctx)
		return work;
	do {
		ctx = ctx->next;
		if (ctx->ops->arm && ctx->state != DOCA_CTX_STATE_IDLE && !ctx->ops->is_silent &&
		    ctx->ops->arm(ctx))
			work = true;
	} while (ctx != pe->turn);
	return work;
}

/* Returns whether the engine has contexts, none of which reports events. */
static bool is_silent(const struct doca_pe *pe)
{
	const struct doca_ctx *ctx = pe->turn;

	if (!ctx)
		return false;
	do {
		ctx = ctx->next;
		if (!ctx->ops->is_silent)
			return false;
	} while (ctx != pe->turn);
	gd_log(DOCA_LOG_LEVEL_ERROR,
	       "progress engine: no context has notifications (last context: %s): call doca_pe_progress() in a loop instead of doca_pe_request_notification()",
	       ctx->ops->name);
	return true;
}

doca_error_t doca_pe_request_notification(struct doca_pe *pe)
{
	if (!pe)
		return DOCA_ERROR_INVALID_VALUE;
	if (is_silent(pe))
		return DOCA_ERROR_NOT_SUPPORTED;
	if (pe->mode == DOCA_PE_EVENT_MODE_PROGRESS_ALL)
		doca_pe_clear_notification(pe, pe->fd);
	atomic_store(&pe->armed, GD_PE_WAITS);
	if (has_work(pe))
		gd_pe_wake(pe);
	return DOCA_SUCCESS;
}

doca_error_t doca_pe_set_event_mode(struct doca_pe *pe, enum doca_pe_event_mode event_mode)
{
	if (!pe || (event_mode != DOCA_PE_EVENT_MODE_PROGRESS_SELECTIVE &&
		    event_mode != DOCA_PE_EVENT_MODE_PROGRESS_ALL))
		return DOCA_ERROR_INVALID_VALUE;
	pe->mode = event_mode;
	return DOCA_SUCCESS;
}

doca_error_t doca_pe_get_num_inflight_tasks(const struct doca_pe *pe, size_t *num_inflight_tasks)
{
	const struct doca_ctx *ctx;
	size_t sum = 0;

	if (!pe || !num_inflight_tasks)
		return DOCA_ERROR_INVALID_VALUE;
	ctx = pe->turn;
	if (ctx) {
		do {
			sum += ctx->n_inflight;
			ctx = ctx->next;
		} while (ctx != pe->turn);
	}
	*num_inflight_tasks = sum;
	return DOCA_SUCCESS;
}
