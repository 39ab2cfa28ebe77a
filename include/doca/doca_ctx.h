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

typedef void (*doca_ctx_state_changed_callback_t)(const union doca_data user_data,
						  struct doca_ctx *ctx,
						  enum doca_ctx_states prev_state,
						  enum doca_ctx_states next_state);

/*
 * From IDLE to RUNNING, with SUCCESS; a Comch client or consumer to STARTING, with IN_PROGRESS, and
 * on by doca_pe_progress. State callbacks run inside. NOT_CONNECTED: on no engine. Errors:
 * NOT_SUPPORTED, INITIALIZATION, UNEXPECTED.
 */
DOCA_STABLE doca_error_t doca_ctx_start(struct doca_ctx *ctx);

/*
 * To IDLE, with SUCCESS, also from there; with work or tasks left to STOPPING, with IN_PROGRESS,
 * and on by doca_pe_progress. May be called in every callback. Errors: NOT_CONNECTED, UNEXPECTED.
 */
DOCA_STABLE doca_error_t doca_ctx_stop(struct doca_ctx *ctx);

/* Tasks that were submitted and whose callback has not run. */
DOCA_STABLE doca_error_t doca_ctx_get_num_inflight_tasks(const struct doca_ctx *ctx,
							 size_t *num_inflight_tasks);

/* For its state callback and the callbacks of its tasks. At any time. */
DOCA_STABLE doca_error_t doca_ctx_set_user_data(struct doca_ctx *ctx, union doca_data user_data);

/* What was set, or 0. */
DOCA_STABLE doca_error_t doca_ctx_get_user_data(const struct doca_ctx *ctx,
						union doca_data *user_data);

/* Called at each change of state. The context may be destroyed in it when it has become IDLE. */
DOCA_STABLE doca_error_t doca_ctx_set_state_changed_cb(struct doca_ctx *ctx,
						       doca_ctx_state_changed_callback_t cb);

/* The state of now. */
DOCA_STABLE doca_error_t doca_ctx_get_state(const struct doca_ctx *ctx,
					    enum doca_ctx_states *state);

/* Let tasks go that were submitted without DOCA_TASK_SUBMIT_FLAG_FLUSH. */
DOCA_EXPERIMENTAL void doca_ctx_flush_tasks(struct doca_ctx *ctx);

/*
 * Before start: code on an emulated DPA will use it, as consumers and producers of a MsgQ on that
 * side. Errors: BAD_STATE, NOT_SUPPORTED.
 */
DOCA_EXPERIMENTAL doca_error_t doca_ctx_set_datapath_on_dpa(struct doca_ctx *ctx,
							    struct doca_dpa *dpa_dev);

/* Before start: which of the device's interrupts it uses. Errors: BAD_STATE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL doca_error_t doca_ctx_set_completion_vector(struct doca_ctx *ctx,
							      uint32_t comp_vector);

/* How many interrupts the device has. */
DOCA_EXPERIMENTAL doca_error_t doca_ctx_cap_get_num_completion_vectors(
	const struct doca_devinfo *devinfo, uint32_t *num_comp_vectors);

#ifdef __cplusplus
}
#endif

#endif
