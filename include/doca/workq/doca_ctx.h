/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_ctx.h - contexts, work queues, jobs and events: how operations ran before there were tasks
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

/* What is to be done: the first member of the job of each kind. */
struct doca_job {
	int type;
	int flags;
	struct doca_ctx *ctx;
	union doca_data user_data;
};

/* What was done. */
struct doca_event {
	int type;                  /* of the job */
	union doca_data user_data; /* of the job */
	union doca_data result;
};

enum doca_workq_retrieve_flags {
	DOCA_WORKQ_RETRIEVE_FLAGS_NONE = 0,
};

/* -- contexts -- */

/* While stopped. INVALID_VALUE, BAD_STATE, IN_USE (it is there already), NO_MEMORY; NOT_FOUND. */
DOCA_STABLE doca_error_t doca_ctx_dev_add(struct doca_ctx *ctx, struct doca_dev *dev);
DOCA_STABLE doca_error_t doca_ctx_dev_rm(struct doca_ctx *ctx, struct doca_dev *dev);

/* At once. INVALID_VALUE; BAD_STATE: it is started, or has no device. */
DOCA_STABLE doca_error_t doca_workq_ctx_start(struct doca_ctx *ctx);
/* INVALID_VALUE; BAD_STATE: it is not started; NOT_PERMITTED: a work queue is still there. */
DOCA_STABLE doca_error_t doca_workq_ctx_stop(struct doca_ctx *ctx);
#define doca_ctx_start doca_workq_ctx_start
#define doca_ctx_stop doca_workq_ctx_stop

/* While started. INVALID_VALUE, BAD_STATE, IN_USE (it is there already), NO_MEMORY. */
DOCA_STABLE doca_error_t doca_ctx_workq_add(struct doca_ctx *ctx, struct doca_workq *workq);
/*
 * While started. INVALID_VALUE, BAD_STATE, NOT_FOUND; NOT_PERMITTED: jobs for this context are in
 * it.
 */
DOCA_STABLE doca_error_t doca_ctx_workq_rm(struct doca_ctx *ctx, struct doca_workq *workq);

/* How many contexts a work queue can serve. INVALID_VALUE. */
DOCA_STABLE doca_error_t doca_ctx_get_max_num_ctx(uint32_t *max_num_ctx);
/* 1: its work queues can be waited on. INVALID_VALUE. */
DOCA_STABLE doca_error_t doca_ctx_get_event_driven_supported(struct doca_ctx *ctx,
							     uint8_t *event_driven_supported);

/* -- work queues: of one thread -- */

/* depth: jobs at a time. INVALID_VALUE, NO_MEMORY. */
DOCA_STABLE doca_error_t doca_workq_create(uint32_t depth, struct doca_workq **workq);
/* INVALID_VALUE; IN_USE: a context has it. */
DOCA_STABLE doca_error_t doca_workq_destroy(struct doca_workq *workq);
/* INVALID_VALUE. */
DOCA_STABLE doca_error_t doca_workq_get_depth(const struct doca_workq *workq, uint32_t *depth);
/* INVALID_VALUE, NO_MEMORY; BAD_STATE: a context has it. */
DOCA_STABLE doca_error_t doca_workq_set_depth(struct doca_workq *workq, uint32_t depth);

/*
 * Take a copy of the job. INVALID_VALUE; BAD_STATE: its context is stopped; NOT_FOUND: its context
 * does not have this queue; NO_MEMORY: the queue is full.
 */
DOCA_STABLE doca_error_t doca_workq_submit(struct doca_workq *workq, const struct doca_job *job);
/*
 * SUCCESS: ev tells of a job; IO_FAILED: so it does, and the job failed; AGAIN: nothing has ended.
 * INVALID_VALUE.
 */
DOCA_STABLE doca_error_t doca_workq_progress_retrieve(struct doca_workq *workq,
						      struct doca_event *ev, int flags);

/* May it be waited on? Set before a context has it. INVALID_VALUE, BAD_STATE, DRIVER. */
DOCA_STABLE doca_error_t doca_workq_set_event_driven_enable(struct doca_workq *workq,
							    uint8_t enable);
DOCA_STABLE doca_error_t doca_workq_get_event_driven_enable(struct doca_workq *workq,
							    uint8_t *enabled);
/* A file descriptor, for poll(2). INVALID_VALUE; BAD_STATE: not enabled. */
DOCA_STABLE doca_error_t doca_workq_get_event_handle(struct doca_workq *workq,
						     doca_event_handle_t *handle);
/*
 * Make it readable as soon as there is something to retrieve; then clear it, and retrieve until
 * AGAIN.
 */
DOCA_STABLE doca_error_t doca_workq_event_handle_arm(struct doca_workq *workq);
DOCA_STABLE doca_error_t doca_workq_event_handle_clear(struct doca_workq *workq,
						       doca_event_handle_t handle);

#ifdef __cplusplus
}
#endif

#endif
