/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_dpa_dev.h - what code on an emulated DPA may call: completions, and the end of an activation
 */
#ifndef DOCA_DPA_DEV_H
#define DOCA_DPA_DEV_H

#include <stdint.h>

#include <doca_compat.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks of functions that the DPA runs. Here they are functions like all others. */
#ifndef __dpa_global__
#define __dpa_global__
#define __dpa_rpc__
#endif

typedef uint64_t doca_dpa_dev_completion_t;
typedef uint64_t doca_dpa_dev_completion_element_t;

/* The next completion that was not looked at; 1, or 0 when there is none. */
DOCA_EXPERIMENTAL int doca_dpa_dev_get_completion(doca_dpa_dev_completion_t dpa_comp_handle,
						  doca_dpa_dev_completion_element_t *comp_element);

/* The user data of the producer that it is of. Until it is acknowledged. */
DOCA_EXPERIMENTAL uint32_t
doca_dpa_dev_get_completion_user_data(doca_dpa_dev_completion_element_t comp_element);

/* The oldest of them are done with: their places are free. */
DOCA_EXPERIMENTAL void doca_dpa_dev_completion_ack(doca_dpa_dev_completion_t dpa_comp_handle,
						   uint64_t num_comp);

/* Activate the thread of it when there is one to look at: once. */
DOCA_EXPERIMENTAL void doca_dpa_dev_completion_request_notification(
	doca_dpa_dev_completion_t dpa_comp_handle);

/*
 * The activation ends here; the next completion that was asked to begins another. Does not return.
 */
DOCA_EXPERIMENTAL void doca_dpa_dev_thread_reschedule(void);

/*
 * The activation ends here, and completions do not begin another; doca_dpa_thread_run does. Does
 * not return.
 */
DOCA_EXPERIMENTAL void doca_dpa_dev_thread_finish(void);

#ifdef __cplusplus
}
#endif

#endif
