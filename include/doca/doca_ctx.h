/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_ctx.h - a context: what all libraries have in common, its states */
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

enum doca_ctx_states {
	DOCA_CTX_STATE_IDLE = 0,
	DOCA_CTX_STATE_STARTING = 1,
	DOCA_CTX_STATE_RUNNING = 2,
	DOCA_CTX_STATE_STOPPING = 3,
};

typedef void (*doca_ctx_state_changed_callback_t)(const union doca_data user_data, struct doca_ctx *ctx,
		enum doca_ctx_states prev_state, enum doca_ctx_states next_state);

/*
 * IDLE -> RUNNING with SUCCESS (sync libraries) or IDLE -> STARTING with DOCA_ERROR_IN_PROGRESS (comch client, comch
 * consumer). Not connected to a PE -> NOT_CONNECTED. State callbacks run inside the call. IN_PROGRESS is not in the
 * doxygen error list but every program requires it. Errors: NOT_SUPPORTED, INITIALIZATION, UNEXPECTED.
 */
DOCA_STABLE doca_error_t doca_ctx_start(struct doca_ctx *ctx);

/*
 * RUNNING -> IDLE with SUCCESS if nothing is outstanding, else -> STOPPING with IN_PROGRESS and IDLE later from
 * doca_pe_progress. Stopping an IDLE ctx must give SUCCESS. Errors: NOT_CONNECTED, UNEXPECTED.
 */
DOCA_STABLE doca_error_t doca_ctx_stop(struct doca_ctx *ctx);

/* Tasks submitted and not yet called back. */
DOCA_STABLE doca_error_t doca_ctx_get_num_inflight_tasks(const struct doca_ctx *ctx, size_t *num_inflight_tasks);

/* Passed to the state callback and as ctx_user_data to every task callback. Settable at any time. */
DOCA_STABLE doca_error_t doca_ctx_set_user_data(struct doca_ctx *ctx, union doca_data user_data);

/* Reads it back. */
DOCA_STABLE doca_error_t doca_ctx_get_user_data(const struct doca_ctx *ctx, union doca_data *user_data);

/* callback(user_data, ctx, prev, next) on every transition. */
DOCA_STABLE doca_error_t doca_ctx_set_state_changed_cb(struct doca_ctx *ctx, doca_ctx_state_changed_callback_t cb);

/* Current state. */
DOCA_STABLE doca_error_t doca_ctx_get_state(const struct doca_ctx *ctx, enum doca_ctx_states *state);

/* Flushes tasks submitted without FLUSH. */
DOCA_EXPERIMENTAL void doca_ctx_flush_tasks(struct doca_ctx *ctx);

/* Before start. Errors: BAD_STATE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL doca_error_t doca_ctx_set_completion_vector(struct doca_ctx *ctx, uint32_t comp_vector);

/* Tells what the device can. */
DOCA_EXPERIMENTAL doca_error_t doca_ctx_cap_get_num_completion_vectors(const struct doca_devinfo *devinfo,
		uint32_t *num_comp_vectors);

#ifdef __cplusplus
}
#endif

#endif
