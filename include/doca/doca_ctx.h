/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_ctx.h - contexts: the states and functions that all libraries share
 *
 *     IDLE -> RUNNING -> (STOPPING ->) IDLE    most contexts
 *     IDLE -> STARTING -> RUNNING              a Comch client or consumer
 */
#ifndef DOCA_CTX_H
#define DOCA_CTX_H

#include <stddef.h>
#include <stdint.h>

#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doca_ctx;
struct doca_devinfo;
struct doca_dpa;

/* States of a context. */
enum doca_ctx_states {
	DOCA_CTX_STATE_IDLE = 0,
	DOCA_CTX_STATE_STARTING = 1,
	DOCA_CTX_STATE_RUNNING = 2,
	DOCA_CTX_STATE_STOPPING = 3,
};

/*
 * Called after a change of state, in doca_pe_progress(), doca_ctx_start() or doca_ctx_stop().
 * user_data: the user data of the context.
 */
typedef void (*doca_ctx_state_changed_callback_t)(const union doca_data user_data,
						  struct doca_ctx *ctx,
						  enum doca_ctx_states prev_state,
						  enum doca_ctx_states next_state);

/*
 * Start the context. Most contexts become RUNNING before the call returns SUCCESS. A Comch client
 * or consumer becomes STARTING, and the call returns IN_PROGRESS; doca_pe_progress() completes the
 * start. The library calls the state callback inside this call.
 * Errors:
 *     BAD_STATE       the context is not idle
 *     NOT_CONNECTED   the context is not connected to an engine
 *     INITIALIZATION  the transport cannot be opened or used, see the log
 *     NOT_SUPPORTED   the transport of the device lacks an operation that the context needs
 *     UNEXPECTED      never returned
 */
DOCA_STABLE doca_error_t doca_ctx_start(struct doca_ctx *ctx);

/*
 * Stop the context. Returns SUCCESS if the context is idle now, or was idle before. If tasks or
 * other work are pending, the context becomes STOPPING, and the call returns IN_PROGRESS;
 * doca_pe_progress() completes the stop. Every callback may call doca_ctx_stop().
 * Errors:
 *     IN_USE         consumers or producers of a Comch server or client still run
 *     NOT_CONNECTED  never returned
 *     UNEXPECTED     never returned
 */
DOCA_STABLE doca_error_t doca_ctx_stop(struct doca_ctx *ctx);

/* Get the number of tasks that were submitted and whose callback has not run. */
DOCA_STABLE doca_error_t doca_ctx_get_num_inflight_tasks(const struct doca_ctx *ctx,
							 size_t *num_inflight_tasks);

/*
 * Set the user data that the library passes to the state callback and to the callbacks of tasks.
 * Any state.
 */
DOCA_STABLE doca_error_t doca_ctx_set_user_data(struct doca_ctx *ctx, union doca_data user_data);

/* Get the user data that was set, or 0. */
DOCA_STABLE doca_error_t doca_ctx_get_user_data(const struct doca_ctx *ctx,
						union doca_data *user_data);

/* Set the callback for changes of state. The callback may destroy a context that is now IDLE. */
DOCA_STABLE doca_error_t doca_ctx_set_state_changed_cb(struct doca_ctx *ctx,
						       doca_ctx_state_changed_callback_t cb);

/* Get the current state. */
DOCA_STABLE doca_error_t doca_ctx_get_state(const struct doca_ctx *ctx,
					    enum doca_ctx_states *state);

/* Has no effect: each task starts when it is submitted. */
DOCA_EXPERIMENTAL void doca_ctx_flush_tasks(struct doca_ctx *ctx);

/*
 * Let code on an emulated DPA use the context: a consumer or producer of a MsgQ. Call before start.
 * Errors:
 *     BAD_STATE      the context is started
 *     NOT_SUPPORTED  the context is not a consumer or producer on the DPA side of a MsgQ
 */
DOCA_EXPERIMENTAL doca_error_t doca_ctx_set_datapath_on_dpa(struct doca_ctx *ctx,
							    struct doca_dpa *dpa_dev);

/*
 * Set the completion vector. Only vector 0 exists. Call before start.
 * Errors:
 *     BAD_STATE      the context is started
 *     NOT_SUPPORTED  never returned
 */
DOCA_EXPERIMENTAL doca_error_t doca_ctx_set_completion_vector(struct doca_ctx *ctx,
							      uint32_t comp_vector);

/* Get the number of completion vectors of the device. */
DOCA_EXPERIMENTAL doca_error_t doca_ctx_cap_get_num_completion_vectors(
	const struct doca_devinfo *devinfo, uint32_t *num_comp_vectors);

#ifdef __cplusplus
}
#endif

#endif
