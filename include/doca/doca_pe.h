/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_pe.h - progress engine and tasks */
#ifndef DOCA_PE_H
#define DOCA_PE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doca_ctx;
struct doca_devinfo;
struct doca_pe;
struct doca_task;
struct doca_task_batch;

enum doca_task_batch_max_tasks_number {
	DOCA_TASK_BATCH_MAX_TASKS_NUMBER_16 = 0,
	DOCA_TASK_BATCH_MAX_TASKS_NUMBER_32 = 1,
	DOCA_TASK_BATCH_MAX_TASKS_NUMBER_64 = 2,
	DOCA_TASK_BATCH_MAX_TASKS_NUMBER_128 = 3,
};

enum doca_event_batch_events_number {
	DOCA_EVENT_BATCH_EVENTS_NUMBER_1 = 0,
	DOCA_EVENT_BATCH_EVENTS_NUMBER_2 = 1,
	DOCA_EVENT_BATCH_EVENTS_NUMBER_4 = 2,
	DOCA_EVENT_BATCH_EVENTS_NUMBER_8 = 3,
	DOCA_EVENT_BATCH_EVENTS_NUMBER_16 = 4,
	DOCA_EVENT_BATCH_EVENTS_NUMBER_32 = 5,
	DOCA_EVENT_BATCH_EVENTS_NUMBER_64 = 6,
	DOCA_EVENT_BATCH_EVENTS_NUMBER_128 = 7,
};

enum doca_task_submit_flag {
	DOCA_TASK_SUBMIT_FLAG_NONE = 0,
	DOCA_TASK_SUBMIT_FLAG_FLUSH = 1,
	DOCA_TASK_SUBMIT_FLAG_OPTIMIZE_REPORTS = 2,
};

enum doca_pe_event_mode {
	DOCA_PE_EVENT_MODE_PROGRESS_SELECTIVE = 0,
	DOCA_PE_EVENT_MODE_PROGRESS_ALL = 1,
};

typedef void (*doca_task_completion_cb_t)(struct doca_task *task, union doca_data task_user_data,
					  union doca_data ctx_user_data);

/* An engine, for one thread at a time. Errors: NO_MEMORY. */
DOCA_STABLE doca_error_t doca_pe_create(struct doca_pe **pe);

/* IN_USE while a context is on it. */
DOCA_STABLE doca_error_t doca_pe_destroy(struct doca_pe *pe);

/*
 * Do one thing: run a callback of a task or an event, or a change of state. 1: done; 0: nothing to
 * do. Never blocks;
 * not to be called in a callback of the same engine.
 */
DOCA_STABLE uint8_t doca_pe_progress(struct doca_pe *pe);

/* A descriptor for poll or epoll; it stays the engine's. */
DOCA_STABLE doca_error_t doca_pe_get_notification_handle(const struct doca_pe *pe,
							 doca_notification_handle_t *handle);

/* Have notifications come to a handle of the caller's; not on Linux. */
DOCA_STABLE doca_error_t doca_pe_set_notification_handle(struct doca_pe *pe,
							 doca_notification_handle_t handle,
							 union doca_data completion_key);

/* After the wait; the handle is not looked at. Errors: OPERATING_SYSTEM. */
DOCA_STABLE doca_error_t doca_pe_clear_notification(struct doca_pe *pe,
						    doca_notification_handle_t handle);

/*
 * Before the wait: the descriptor becomes readable as soon as there is something to do, at once
 * when there is.
 */
DOCA_STABLE doca_error_t doca_pe_request_notification(struct doca_pe *pe);

/* Tasks of all its contexts. */
DOCA_STABLE doca_error_t doca_pe_get_num_inflight_tasks(const struct doca_pe *pe,
							size_t *num_inflight_tasks);

/*
 * Hand a task to its context. SUCCESS: one of its two callbacks will run from doca_pe_progress. An
 * error: it stays the caller's; AGAIN, NO_MEMORY, BAD_STATE. Nothing in it is checked here: a task
 * that makes no sense fails.
 */
DOCA_STABLE doca_error_t doca_task_submit(struct doca_task *task);

/* The same with flags, bits of doca_task_submit_flag. */
DOCA_EXPERIMENTAL doca_error_t doca_task_submit_ex(struct doca_task *task, uint32_t flags);

/* Not for batches yet: NOT_SUPPORTED, or nothing. */
DOCA_EXPERIMENTAL doca_error_t doca_task_batch_submit(struct doca_task_batch *task_batch);

/* The same, but a task that makes no sense is refused with INVALID_VALUE. */
DOCA_STABLE doca_error_t doca_task_try_submit(struct doca_task *task);

/* Not for batches yet: NOT_SUPPORTED, or nothing. */
DOCA_EXPERIMENTAL doca_error_t doca_task_batch_try_submit(struct doca_task_batch *task_batch);

/*
 * Back to where it was allocated; not touched after that by the library. Context and engine are
 * those of the caller's thread.
 */
DOCA_STABLE void doca_task_free(struct doca_task *task);

/* Not for batches yet: NOT_SUPPORTED, or nothing. */
DOCA_EXPERIMENTAL void doca_task_batch_free(struct doca_task_batch *task_batch);

/* How it ended. */
DOCA_STABLE doca_error_t doca_task_get_status(const struct doca_task *task);

/* Not for batches yet: NOT_SUPPORTED, or nothing. */
DOCA_EXPERIMENTAL doca_error_t doca_task_batch_get_status(const struct doca_task_batch *task_batch);

/* While it is not submitted. */
DOCA_STABLE void doca_task_set_user_data(struct doca_task *task, union doca_data user_data);

/* Not for batches yet: NOT_SUPPORTED, or nothing. */
DOCA_EXPERIMENTAL void doca_task_batch_set_user_data(struct doca_task_batch *task_batch,
						     union doca_data user_data);

/* What was set, or 0. */
DOCA_STABLE union doca_data doca_task_get_user_data(const struct doca_task *task);

/* Not for batches yet: NOT_SUPPORTED, or nothing. */
DOCA_EXPERIMENTAL union doca_data doca_task_batch_get_user_data(
	const struct doca_task_batch *task_batch);

/* The context that it belongs to. */
DOCA_STABLE struct doca_ctx *doca_task_get_ctx(const struct doca_task *task);

/* Not for batches yet: NOT_SUPPORTED, or nothing. */
DOCA_EXPERIMENTAL struct doca_ctx *doca_task_batch_get_ctx(
	const struct doca_task_batch *task_batch);
DOCA_EXPERIMENTAL union doca_data doca_task_batch_get_ctx_user_data(
	const struct doca_task_batch *task_batch);
DOCA_EXPERIMENTAL uint16_t doca_task_batch_get_tasks_num(struct doca_task_batch *task_batch);

/*
 * An idle context onto this engine, for as long as it lives. NOT_PERMITTED: it is on one already.
 * Errors: NO_MEMORY, BAD_STATE.
 */
DOCA_STABLE doca_error_t doca_pe_connect_ctx(struct doca_pe *pe, struct doca_ctx *ctx);

/* When doca_pe_progress looks at everything, or only at what was notified. */
DOCA_EXPERIMENTAL doca_error_t doca_pe_set_event_mode(struct doca_pe *pe,
						      enum doca_pe_event_mode event_mode);

#ifdef __cplusplus
}
#endif

#endif
