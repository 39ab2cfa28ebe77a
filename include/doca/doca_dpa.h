/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_dpa.h - the emulated DPA: threads of this process run the code that a DPA of a card would
 * run
 *
 * The program contains the code of the DPA: functions declared with __dpa_global__. doca_dpa_dev.h
 * has the functions that this code may call.
 */
#ifndef DOCA_DPA_H
#define DOCA_DPA_H

#include <stdint.h>

#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doca_dev;
struct doca_devinfo;
struct doca_dpa;
struct doca_dpa_app;
struct doca_dpa_completion;
struct doca_dpa_thread;

typedef uint64_t doca_dpa_dev_completion_t;
/* Function that a DPA thread runs once for each activation. */
typedef void(doca_dpa_func_t)(uint64_t arg);

/* Returns SUCCESS if the device has a DPA, NOT_SUPPORTED if not. */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_cap_is_supported(const struct doca_devinfo *devinfo);

/*
 * Create the DPA of a device.
 * Errors:
 *     NO_MEMORY  memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_create(struct doca_dev *dev, struct doca_dpa **dpa);

/*
 * Destroy the DPA.
 * Errors:
 *     IN_USE  threads, completion queues or message queues of the DPA exist
 */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_destroy(struct doca_dpa *dpa);

/*
 * Set the application. It has no effect: the program contains the code of the DPA.
 * Errors:
 *     BAD_STATE  the DPA is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_set_app(struct doca_dpa *dpa, struct doca_dpa_app *app);

/*
 * Start or stop the DPA. Start it before its threads and queues.
 * Errors:
 *     BAD_STATE  the DPA is started (start) or not started (stop)
 */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_start(struct doca_dpa *dpa);
DOCA_EXPERIMENTAL doca_error_t doca_dpa_stop(struct doca_dpa *dpa);

/*
 * Create a thread. doca_dpa_thread_run() activates it, and so does a completion queue whose
 * notification was requested.
 * Errors:
 *     NO_MEMORY  memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_thread_create(struct doca_dpa *dpa,
						      struct doca_dpa_thread **dpa_thread);

/*
 * Stop and destroy the thread.
 * Errors:
 *     IN_USE         completion queues activate the thread
 *     NOT_PERMITTED  the calling thread is that thread
 */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_thread_destroy(struct doca_dpa_thread *dpa_thread);

/*
 * Set the function, which is required, and its argument. Call before start.
 * Errors:
 *     BAD_STATE  the thread is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_thread_set_func_arg(struct doca_dpa_thread *dpa_thread,
							    doca_dpa_func_t *func, uint64_t arg);

/*
 * Start the thread. It waits for its first activation.
 * Errors:
 *     BAD_STATE         the thread is started or has no function, or the DPA is not started
 *     OPERATING_SYSTEM  the system cannot create a thread
 */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_thread_start(struct doca_dpa_thread *dpa_thread);

/*
 * Stop the thread. Waits until its current activation has ended.
 * Errors:
 *     BAD_STATE      the thread is not started
 *     NOT_PERMITTED  the calling thread is that thread
 */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_thread_stop(struct doca_dpa_thread *dpa_thread);

/*
 * Activate the thread once.
 * Errors:
 *     BAD_STATE  the thread is not started
 */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_thread_run(struct doca_dpa_thread *dpa_thread);

/*
 * Create a queue for completions of sends of the DPA, with queue_size entries.
 * Errors:
 *     NO_MEMORY  memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_completion_create(struct doca_dpa *dpa,
							  unsigned int queue_size,
							  struct doca_dpa_completion **dpa_comp);

/*
 * Destroy the queue.
 * Errors:
 *     IN_USE  producers use the queue
 */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_completion_destroy(struct doca_dpa_completion *dpa_comp);

/*
 * Set the thread that the queue activates, a thread of the same DPA. Call before start.
 * Errors:
 *     BAD_STATE  the queue is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_completion_set_thread(struct doca_dpa_completion *dpa_comp,
							      struct doca_dpa_thread *thread);
/*
 * Start the queue, empty.
 * Errors:
 *     BAD_STATE  the queue is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_completion_start(struct doca_dpa_completion *dpa_comp);
/*
 * Stop the queue.
 * Errors:
 *     BAD_STATE  the queue is not started
 *     IN_USE     producers use the queue
 */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_completion_stop(struct doca_dpa_completion *dpa_comp);

/*
 * Get the handle of a started queue for code on the DPA.
 * Errors:
 *     BAD_STATE  the queue is not started
 */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_completion_get_dpa_handle(
	struct doca_dpa_completion *dpa_comp, doca_dpa_dev_completion_t *handle);

#ifdef __cplusplus
}
#endif

#endif
