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

/* New progress engine. Errors: NO_MEMORY. */
DOCA_STABLE doca_error_t doca_pe_create(struct doca_pe **pe);

/* IN_USE while any context is still connected (i.e. not destroyed). */
DOCA_STABLE doca_error_t doca_pe_destroy(struct doca_pe *pe);

/* Handles at most one event / completion; returns 1 if progress was made, 0 otherwise (uint8_t). Runs callbacks. */
DOCA_STABLE uint8_t doca_pe_progress(struct doca_pe *pe);

/* Linux: an epoll-able fd owned by the PE, stable; requested before any ctx connects. */
DOCA_STABLE doca_error_t doca_pe_get_notification_handle(const struct doca_pe *pe,
		doca_notification_handle_t *handle);

/* Before start. */
DOCA_STABLE doca_error_t doca_pe_set_notification_handle(struct doca_pe *pe, doca_notification_handle_t handle,
		union doca_data completion_key);

/*
 * Resets the triggered fd; handle argument ignored on Linux (samples pass 0 or the handle). Errors:
 * OPERATING_SYSTEM.
 */
DOCA_STABLE doca_error_t doca_pe_clear_notification(struct doca_pe *pe, doca_notification_handle_t handle);

/* Arms; fd must become readable at once if something is already pending. */
DOCA_STABLE doca_error_t doca_pe_request_notification(struct doca_pe *pe);

/* Sum over all connected contexts. */
DOCA_STABLE doca_error_t doca_pe_get_num_inflight_tasks(const struct doca_pe *pe, size_t *num_inflight_tasks);

/*
 * No validation; on SUCCESS ownership goes to the library and one of the two callbacks will run from
 * doca_pe_progress; on error the user keeps it. Seen errors: AGAIN (producer without remote credit), NO_MEMORY,
 * BAD_STATE.
 */
DOCA_STABLE doca_error_t doca_task_submit(struct doca_task *task);

/* Submit with flags FLUSH=1 / OPTIMIZE_REPORTS=2; plain submit behaves as FLUSH. */
DOCA_EXPERIMENTAL doca_error_t doca_task_submit_ex(struct doca_task *task, uint32_t flags);

/* Not for batches yet: NOT_SUPPORTED, or nothing. */
DOCA_EXPERIMENTAL doca_error_t doca_task_batch_submit(struct doca_task_batch *task_batch);

/* As submit but validates first (INVALID_VALUE). */
DOCA_STABLE doca_error_t doca_task_try_submit(struct doca_task *task);

/* Not for batches yet: NOT_SUPPORTED, or nothing. */
DOCA_EXPERIMENTAL doca_error_t doca_task_batch_try_submit(struct doca_task_batch *task_batch);

/* Returns the task to its pool; any time the user owns it; needed before ctx can reach IDLE. void. */
DOCA_STABLE void doca_task_free(struct doca_task *task);

/* Not for batches yet: NOT_SUPPORTED, or nothing. */
DOCA_EXPERIMENTAL void doca_task_batch_free(struct doca_task_batch *task_batch);

/* doca_error_t result, valid in / after the error callback. */
DOCA_STABLE doca_error_t doca_task_get_status(const struct doca_task *task);

/* Not for batches yet: NOT_SUPPORTED, or nothing. */
DOCA_EXPERIMENTAL doca_error_t doca_task_batch_get_status(const struct doca_task_batch *task_batch);

/* Replaces task user data before submit. */
DOCA_STABLE void doca_task_set_user_data(struct doca_task *task, union doca_data user_data);

/* Not for batches yet: NOT_SUPPORTED, or nothing. */
DOCA_EXPERIMENTAL void doca_task_batch_set_user_data(struct doca_task_batch *task_batch, union doca_data user_data);

/* union doca_data by value. */
DOCA_STABLE union doca_data doca_task_get_user_data(const struct doca_task *task);

/* Not for batches yet: NOT_SUPPORTED, or nothing. */
DOCA_EXPERIMENTAL union doca_data doca_task_batch_get_user_data(const struct doca_task_batch *task_batch);

/* Tells the ctx. */
DOCA_STABLE struct doca_ctx *doca_task_get_ctx(const struct doca_task *task);

/* Not for batches yet: NOT_SUPPORTED, or nothing. */
DOCA_EXPERIMENTAL struct doca_ctx *doca_task_batch_get_ctx(const struct doca_task_batch *task_batch);
DOCA_EXPERIMENTAL union doca_data doca_task_batch_get_ctx_user_data(const struct doca_task_batch *task_batch);
DOCA_EXPERIMENTAL uint16_t doca_task_batch_get_tasks_num(struct doca_task_batch *task_batch);

/* Only for IDLE ctx (BAD_STATE) and once (NOT_PERMITTED); undone only by destroying the ctx. Errors: NO_MEMORY. */
DOCA_STABLE doca_error_t doca_pe_connect_ctx(struct doca_pe *pe, struct doca_ctx *ctx);

/* SELECTIVE (0) or ALL (1); in ALL mode clear_notification is not needed. */
DOCA_EXPERIMENTAL doca_error_t doca_pe_set_event_mode(struct doca_pe *pe, enum doca_pe_event_mode event_mode);

#ifdef __cplusplus
}
#endif

#endif
