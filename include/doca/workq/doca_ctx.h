/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_ctx.h - contexts, work queues, jobs and events of the WorkQ interface (DOCA before tasks)
 *
 * A program submits a job to a work queue and retrieves an event when the job has ended. All
 * functions return INVALID_VALUE if a required pointer is NULL.
 */
#ifndef DOCA_WORKQ_CTX_H
#define DOCA_WORKQ_CTX_H

#include <stddef.h>
#include <stdint.h>

#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doca_ctx;
struct doca_dev;
struct doca_workq;

enum doca_job_flags {
	DOCA_JOB_FLAGS_NONE = 0,
};

/* A job: the first member of the job structure of each type. */
struct doca_job {
	int type;
	int flags;
	struct doca_ctx *ctx;
	union doca_data user_data;
};

/* Reports the end of a job. */
struct doca_event {
	int type;                  /* type of the job */
	union doca_data user_data; /* user data of the job */
	union doca_data result;
};

enum doca_workq_retrieve_flags {
	DOCA_WORKQ_RETRIEVE_FLAGS_NONE = 0,
};

/* -- contexts -- */

/*
 * Add a device to a stopped context, or remove it.
 * Errors:
 *     INVALID_VALUE  the device is not open
 *     BAD_STATE      the context is started
 *     IN_USE         add: the context has the device already
 *     NO_MEMORY      add: the context has the maximum number of devices
 *     NOT_FOUND      remove: the context does not have the device
 */
DOCA_STABLE doca_error_t doca_ctx_dev_add(struct doca_ctx *ctx, struct doca_dev *dev);
DOCA_STABLE doca_error_t doca_ctx_dev_rm(struct doca_ctx *ctx, struct doca_dev *dev);

/*
 * Start the context.
 * Errors:
 *     BAD_STATE  the context is started, or has no device
 */
DOCA_STABLE doca_error_t doca_workq_ctx_start(struct doca_ctx *ctx);
/*
 * Stop the context.
 * Errors:
 *     BAD_STATE      the context is not started
 *     NOT_PERMITTED  the context has a work queue
 */
DOCA_STABLE doca_error_t doca_workq_ctx_stop(struct doca_ctx *ctx);
#define doca_ctx_start doca_workq_ctx_start
#define doca_ctx_stop doca_workq_ctx_stop

/*
 * Add a work queue to a started context.
 * Errors:
 *     BAD_STATE  the context is not started
 *     IN_USE     the context has the queue already
 *     NO_MEMORY  the queue serves the maximum number of contexts, or memory allocation failed
 */
DOCA_STABLE doca_error_t doca_ctx_workq_add(struct doca_ctx *ctx, struct doca_workq *workq);
/*
 * Remove a work queue from a started context.
 * Errors:
 *     BAD_STATE      the context is not started
 *     NOT_FOUND      the context does not have the queue
 *     NOT_PERMITTED  the queue has jobs of the context
 */
DOCA_STABLE doca_error_t doca_ctx_workq_rm(struct doca_ctx *ctx, struct doca_workq *workq);

/* Get the maximum number of contexts that a work queue can serve. */
DOCA_STABLE doca_error_t doca_ctx_get_max_num_ctx(uint32_t *max_num_ctx);
/* Stores 1: the program can wait for the work queues of the context. */
DOCA_STABLE doca_error_t doca_ctx_get_event_driven_supported(struct doca_ctx *ctx,
							     uint8_t *event_driven_supported);

/* -- work queues: one thread uses a queue -- */

/*
 * Create a work queue. depth: maximum number of jobs in the queue.
 * Errors:
 *     NO_MEMORY  memory allocation failed
 */
DOCA_STABLE doca_error_t doca_workq_create(uint32_t depth, struct doca_workq **workq);
/*
 * Destroy the queue.
 * Errors:
 *     IN_USE  a context has the queue
 */
DOCA_STABLE doca_error_t doca_workq_destroy(struct doca_workq *workq);
/* Get the depth of the queue. */
DOCA_STABLE doca_error_t doca_workq_get_depth(const struct doca_workq *workq, uint32_t *depth);
/*
 * Set the depth of the queue.
 * Errors:
 *     BAD_STATE  a context has the queue
 *     NO_MEMORY  memory allocation failed
 */
DOCA_STABLE doca_error_t doca_workq_set_depth(struct doca_workq *workq, uint32_t depth);

/*
 * Submit a job. The library copies the job structure.
 * Errors:
 *     INVALID_VALUE  the type of the job is unknown, or the job has no context or buffers
 *     BAD_STATE      the context of the job is not started
 *     NOT_FOUND      the context of the job does not have the queue
 *     NO_MEMORY      the queue is full
 */
DOCA_STABLE doca_error_t doca_workq_submit(struct doca_workq *workq, const struct doca_job *job);
/*
 * Run the oldest job and store its event. flags: DOCA_WORKQ_RETRIEVE_FLAGS_NONE.
 * Errors:
 *     IO_FAILED  the job failed; ev has the event of the job
 *     AGAIN      the queue is empty
 */
DOCA_STABLE doca_error_t doca_workq_progress_retrieve(struct doca_workq *workq,
						      struct doca_event *ev, int flags);

/*
 * Set and get whether the program can wait for the queue: 1 or 0. Set it before a context has the
 * queue.
 * Errors:
 *     BAD_STATE  a context has the queue
 *     DRIVER     the process or the system has too many open files
 */
DOCA_STABLE doca_error_t doca_workq_set_event_driven_enable(struct doca_workq *workq,
							    uint8_t enable);
DOCA_STABLE doca_error_t doca_workq_get_event_driven_enable(struct doca_workq *workq,
							    uint8_t *enabled);
/*
 * Get a file descriptor for poll(2).
 * Errors:
 *     BAD_STATE  waiting is not enabled
 */
DOCA_STABLE doca_error_t doca_workq_get_event_handle(struct doca_workq *workq,
						     doca_event_handle_t *handle);
/*
 * Arm the file descriptor: it becomes readable when an event can be retrieved. When it is readable,
 * clear it and retrieve events until the queue returns AGAIN.
 * Errors:
 *     BAD_STATE  waiting is not enabled
 */
DOCA_STABLE doca_error_t doca_workq_event_handle_arm(struct doca_workq *workq);
DOCA_STABLE doca_error_t doca_workq_event_handle_clear(struct doca_workq *workq,
						       doca_event_handle_t handle);

#ifdef __cplusplus
}
#endif

#endif
