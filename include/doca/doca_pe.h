/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_pe.h - progress engines and tasks
 *
 * A progress engine runs the callbacks of the contexts that are connected to it. A task is one
 * operation of a context:
 *
 *     allocate -> submit -> callback -> submit again, or free
 */
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

/* Sizes of task batches, which are not supported. */
enum doca_task_batch_max_tasks_number {
	DOCA_TASK_BATCH_MAX_TASKS_NUMBER_16 = 0,
	DOCA_TASK_BATCH_MAX_TASKS_NUMBER_32 = 1,
	DOCA_TASK_BATCH_MAX_TASKS_NUMBER_64 = 2,
	DOCA_TASK_BATCH_MAX_TASKS_NUMBER_128 = 3,
};

/* Sizes of event batches, which are not supported. */
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

/* Flags of doca_task_submit_ex(). They have no effect: each task starts immediately. */
enum doca_task_submit_flag {
	DOCA_TASK_SUBMIT_FLAG_NONE = 0,
	DOCA_TASK_SUBMIT_FLAG_FLUSH = 1,
	DOCA_TASK_SUBMIT_FLAG_OPTIMIZE_REPORTS = 2,
};

/* Event modes of doca_pe_set_event_mode(). */
enum doca_pe_event_mode {
	DOCA_PE_EVENT_MODE_PROGRESS_SELECTIVE = 0,
	DOCA_PE_EVENT_MODE_PROGRESS_ALL = 1,
};

/*
 * Completion callback: the program owns the task again, and submits or frees it. The library passes
 * the user data of the task and of the context. Thread: in doca_pe_progress().
 */
typedef void (*doca_task_completion_cb_t)(struct doca_task *task, union doca_data task_user_data,
					  union doca_data ctx_user_data);

/*
 * Create a progress engine. One thread at a time may use it.
 * Errors:
 *     NO_MEMORY  memory allocation failed, or no file descriptor is left
 */
DOCA_STABLE doca_error_t doca_pe_create(struct doca_pe **pe);

/*
 * Destroy the engine.
 * Errors:
 *     IN_USE  a context is connected to the engine
 */
DOCA_STABLE doca_error_t doca_pe_destroy(struct doca_pe *pe);

/*
 * Run at most one callback of a task or event, or one change of state. Returns 1 if the engine did
 * work, 0 if not. Never blocks. Do not call it in a callback of the same engine.
 */
DOCA_STABLE uint8_t doca_pe_progress(struct doca_pe *pe);

/* Get the notification handle: a file descriptor for poll(2) or epoll(7). The engine owns it. */
DOCA_STABLE doca_error_t doca_pe_get_notification_handle(const struct doca_pe *pe,
							 doca_notification_handle_t *handle);

/* Not supported: the handle of the engine cannot be replaced. Returns NOT_SUPPORTED. */
DOCA_STABLE doca_error_t doca_pe_set_notification_handle(struct doca_pe *pe,
							 doca_notification_handle_t handle,
							 union doca_data completion_key);

/*
 * Clear the notification after a wait. The engine ignores `handle`.
 * Errors:
 *     OPERATING_SYSTEM  read(2) failed
 */
DOCA_STABLE doca_error_t doca_pe_clear_notification(struct doca_pe *pe,
						    doca_notification_handle_t handle);

/*
 * Arm the notification before a wait. The descriptor becomes readable when doca_pe_progress() has
 * work, or immediately if it has work already. Work of Comch contexts does not count: Comch has no
 * notifications.
 * Errors:
 *     NOT_SUPPORTED  the engine has only Comch contexts
 */
DOCA_STABLE doca_error_t doca_pe_request_notification(struct doca_pe *pe);

/* Get the number of submitted tasks of all contexts of the engine whose callback has not run. */
DOCA_STABLE doca_error_t doca_pe_get_num_inflight_tasks(const struct doca_pe *pe,
							size_t *num_inflight_tasks);

/*
 * Submit a task. After SUCCESS the context owns the task until doca_pe_progress() runs one of its
 * two callbacks. This function does not check the fields of the task: a task with invalid fields
 * completes with an error.
 * Errors; the caller still owns the task:
 *     AGAIN          the context cannot accept the task now: try again
 *     NO_MEMORY      memory allocation failed
 *     BAD_STATE      the context is not running, or the task is already submitted
 *     NOT_CONNECTED  the peer or the connection has ended
 */
DOCA_STABLE doca_error_t doca_task_submit(struct doca_task *task);

/* Like doca_task_submit(), with flags: bits of doca_task_submit_flag. The flags have no effect. */
DOCA_EXPERIMENTAL doca_error_t doca_task_submit_ex(struct doca_task *task, uint32_t flags);

/* Batches are not supported. Returns NOT_SUPPORTED; INVALID_VALUE if task_batch is NULL. */
DOCA_EXPERIMENTAL doca_error_t doca_task_batch_submit(struct doca_task_batch *task_batch);

/*
 * Like doca_task_submit(), but checks the fields of the task first and returns INVALID_VALUE if
 * they are invalid.
 */
DOCA_STABLE doca_error_t doca_task_try_submit(struct doca_task *task);

/* Batches are not supported. Returns NOT_SUPPORTED; INVALID_VALUE if task_batch is NULL. */
DOCA_EXPERIMENTAL doca_error_t doca_task_batch_try_submit(struct doca_task_batch *task_batch);

/*
 * Free a task. If it is submitted, its callback does not run; the library releases it when the
 * operation has ended. Thread: the thread that progresses the engine.
 */
DOCA_STABLE void doca_task_free(struct doca_task *task);

/* Batches are not supported: this function has no effect. */
DOCA_EXPERIMENTAL void doca_task_batch_free(struct doca_task_batch *task_batch);

/* Get the status with which the task completed. */
DOCA_STABLE doca_error_t doca_task_get_status(const struct doca_task *task);

/* Batches are not supported. Returns NOT_SUPPORTED; INVALID_VALUE if task_batch is NULL. */
DOCA_EXPERIMENTAL doca_error_t doca_task_batch_get_status(const struct doca_task_batch *task_batch);

/* Set the user data of the task. Call while the task is not submitted. */
DOCA_STABLE void doca_task_set_user_data(struct doca_task *task, union doca_data user_data);

/* Batches are not supported: this function has no effect. */
DOCA_EXPERIMENTAL void doca_task_batch_set_user_data(struct doca_task_batch *task_batch,
						     union doca_data user_data);

/* Get the user data that was set, or 0. */
DOCA_STABLE union doca_data doca_task_get_user_data(const struct doca_task *task);

/* Batches are not supported. Returns 0. */
DOCA_EXPERIMENTAL union doca_data doca_task_batch_get_user_data(
	const struct doca_task_batch *task_batch);

/* Returns the context of the task. */
DOCA_STABLE struct doca_ctx *doca_task_get_ctx(const struct doca_task *task);

/* Batches are not supported. These functions return NULL or 0. */
DOCA_EXPERIMENTAL struct doca_ctx *doca_task_batch_get_ctx(
	const struct doca_task_batch *task_batch);
DOCA_EXPERIMENTAL union doca_data doca_task_batch_get_ctx_user_data(
	const struct doca_task_batch *task_batch);
DOCA_EXPERIMENTAL uint16_t doca_task_batch_get_tasks_num(struct doca_task_batch *task_batch);

/*
 * Connect an idle context to the engine. The connection lasts until the context is destroyed.
 * Errors:
 *     BAD_STATE      the context is not idle
 *     NOT_PERMITTED  the context is already connected to an engine
 *     NO_MEMORY      never returned
 */
DOCA_STABLE doca_error_t doca_pe_connect_ctx(struct doca_pe *pe, struct doca_ctx *ctx);

/*
 * Set the event mode. In mode PROGRESS_ALL, doca_pe_request_notification() also clears the
 * notification.
 */
DOCA_EXPERIMENTAL doca_error_t doca_pe_set_event_mode(struct doca_pe *pe,
						      enum doca_pe_event_mode event_mode);

#ifdef __cplusplus
}
#endif

#endif
