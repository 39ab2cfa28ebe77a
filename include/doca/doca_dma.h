/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_dma.h - DMA: tasks that copy memory */
#ifndef DOCA_DMA_H
#define DOCA_DMA_H

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>

#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doca_buf;
struct doca_ctx;
struct doca_dev;
struct doca_devinfo;
struct doca_dma;
struct doca_dma_task_memcpy;

/*
 * Completion callbacks: the program owns the task again, and submits or frees it. The library
 * passes the user data of the task and of the context. Thread: in doca_pe_progress().
 */
typedef void (*doca_dma_task_memcpy_completion_cb_t)(struct doca_dma_task_memcpy *task,
						     union doca_data task_user_data,
						     union doca_data ctx_user_data);

/*
 * Create a context on an open device.
 * Errors:
 *     NO_MEMORY       memory allocation failed
 *     INITIALIZATION  never returned
 */
DOCA_STABLE doca_error_t doca_dma_create(struct doca_dev *dev, struct doca_dma **dma);

/*
 * Destroy the context. The state callback that reports IDLE may call this function.
 * Errors:
 *     IN_USE  the context is not idle
 */
DOCA_STABLE doca_error_t doca_dma_destroy(struct doca_dma *dma);

/*
 * Returns SUCCESS if the device supports memcpy tasks, NOT_SUPPORTED if not. Never returns DRIVER.
 */
DOCA_STABLE doca_error_t doca_dma_cap_task_memcpy_is_supported(const struct doca_devinfo *devinfo);

/* Returns the object as a context, valid until the object is destroyed. Returns NULL for NULL. */
DOCA_STABLE struct doca_ctx *doca_dma_as_ctx(struct doca_dma *dma);

/* Get the maximum number of tasks for doca_dma_task_memcpy_set_conf(). */
DOCA_STABLE doca_error_t doca_dma_cap_get_max_num_tasks(struct doca_dma *dma,
							uint32_t *max_num_tasks);

/* Get the maximum number of buffers in a list. 1 means that lists are not supported. */
DOCA_STABLE doca_error_t doca_dma_cap_task_memcpy_get_max_buf_list_len(
	const struct doca_devinfo *devinfo, uint32_t *max_buf_list_len);

/* Get the maximum number of bytes of one task. */
DOCA_STABLE doca_error_t
doca_dma_cap_task_memcpy_get_max_buf_size(const struct doca_devinfo *devinfo, uint64_t *buf_size);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     BAD_STATE      the context is started
 *     NOT_SUPPORTED  never returned
 */
DOCA_STABLE doca_error_t doca_dma_task_memcpy_set_conf(
	struct doca_dma *dma, doca_dma_task_memcpy_completion_cb_t task_completion_cb,
	doca_dma_task_memcpy_completion_cb_t task_error_cb, uint32_t num_memcpy_tasks);

/*
 * Allocate a task that appends the data of src to the data of dst. Both may be lists, and may refer
 * to imported maps. If the task fails, the context stops.
 * Errors:
 *     BAD_STATE  the context is idle
 *     NO_MEMORY  all tasks are allocated
 */
DOCA_STABLE doca_error_t doca_dma_task_memcpy_alloc_init(struct doca_dma *dma,
							 const struct doca_buf *src,
							 struct doca_buf *dst,
							 union doca_data user_data,
							 struct doca_dma_task_memcpy **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_STABLE struct doca_task *doca_dma_task_memcpy_as_task(struct doca_dma_task_memcpy *task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_STABLE void doca_dma_task_memcpy_set_src(struct doca_dma_task_memcpy *task,
					      const struct doca_buf *src);
DOCA_STABLE const struct doca_buf *doca_dma_task_memcpy_get_src(
	const struct doca_dma_task_memcpy *task);
DOCA_STABLE void doca_dma_task_memcpy_set_dst(struct doca_dma_task_memcpy *task,
					      struct doca_buf *dst);
DOCA_STABLE struct doca_buf *doca_dma_task_memcpy_get_dst(const struct doca_dma_task_memcpy *task);

#ifdef __cplusplus
}
#endif

#endif
