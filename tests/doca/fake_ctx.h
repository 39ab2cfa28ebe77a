/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_ctx.h - a context with start, stop and work that a test controls.
 */
#ifndef TESTS_DOCA_FAKE_CTX_H
#define TESTS_DOCA_FAKE_CTX_H

#include "engine/ctx.h"

struct fake_task {
	struct doca_task task;
	int number;
};

struct fake {
	struct doca_ctx ctx;
	struct gd_pool pool;
	doca_error_t start_result, stop_result; /* SUCCESS at first */
	doca_error_t check_result, submit_result;
	doca_error_t task_result; /* result of tasks that a poll ends */
	bool fails;               /* a task that ends with an error stops the context */
	bool ends_in_submit;      /* gd_task_done() inside submit */
	bool starts_in_poll, stops_in_poll, holds; /* holds: polls end no task */
	int n_starts, n_stops, n_polls;
	struct doca_task *first, *last; /* list of submitted tasks */
};

/* The table of operations, including `poll` and `arm`. */
extern const struct gd_ctx_ops fake_ops;

/* Allocate a fake and configure n_tasks tasks (0: none). pe NULL: do not connect it to one. */
struct fake *fake_create(struct doca_pe *pe, uint32_t n_tasks, void *done_cb, void *error_cb);
doca_error_t fake_destroy(struct fake *fake);
struct doca_task *fake_task(struct fake *fake, uint64_t user_data);

#endif
