/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_dpa_dev.h - functions for code on the emulated DPA: completion queues, and the end of an
 * activation
 */
#ifndef DOCA_DPA_DEV_H
#define DOCA_DPA_DEV_H

#include <stdint.h>

#include <doca_compat.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Attributes of functions that the DPA runs. They have no effect on an emulated DPA. */
#ifndef __dpa_global__
#define __dpa_global__
#define __dpa_rpc__
#endif

typedef uint64_t doca_dpa_dev_completion_t;
typedef uint64_t doca_dpa_dev_completion_element_t;

/* Get the next completion. Returns 1, or 0 if there is none. */
DOCA_EXPERIMENTAL int doca_dpa_dev_get_completion(doca_dpa_dev_completion_t dpa_comp_handle,
						  doca_dpa_dev_completion_element_t *comp_element);

/* Returns the user data of the producer. Valid until the completion is acknowledged. */
DOCA_EXPERIMENTAL uint32_t
doca_dpa_dev_get_completion_user_data(doca_dpa_dev_completion_element_t comp_element);

/* Acknowledge the oldest completions: the library may reuse their entries. */
DOCA_EXPERIMENTAL void doca_dpa_dev_completion_ack(doca_dpa_dev_completion_t dpa_comp_handle,
						   uint64_t num_comp);

/* Request one activation of the thread of the queue as soon as the queue has a completion. */
DOCA_EXPERIMENTAL void doca_dpa_dev_completion_request_notification(
	doca_dpa_dev_completion_t dpa_comp_handle);

/*
 * End the activation. The next completion after a requested notification activates the thread
 * again. Does not return.
 */
DOCA_EXPERIMENTAL void doca_dpa_dev_thread_reschedule(void);

/*
 * End the activation. After that only doca_dpa_thread_run() activates the thread, not a completion.
 * Does not return.
 */
DOCA_EXPERIMENTAL void doca_dpa_dev_thread_finish(void);

#ifdef __cplusplus
}
#endif

#endif
