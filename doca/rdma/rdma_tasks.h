/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_tasks.h - macros for the public functions of task types
 *
 * Eleven task types have about a hundred functions that differ only in their names.
 */
#ifndef GD_RDMA_TASKS_H
#define GD_RDMA_TASKS_H

#include "rdma/rdma.h"

/* Set callbacks and number of tasks, before start. */
doca_error_t gd_rdma_task_conf(struct doca_rdma *rdma, enum gd_rdma_kind kind, void *done_cb,
			       void *error_cb, uint32_t n);
/*
 * Allocate a task of with->kind, and set its fields. task_p: destination for the pointer to the
 * public type.
 */
doca_error_t gd_rdma_task_init(struct doca_rdma *rdma, const struct gd_rdma_task *with,
			       union doca_data user_data, void *task_p);

/* Define the type, its conversion and its configuration. */
#define GD_RDMA_TASK(name, kind) \
	struct doca_rdma_task_##name { \
		struct gd_rdma_task any; \
	}; \
	struct doca_task *doca_rdma_task_##name##_as_task(struct doca_rdma_task_##name *task) \
	{ \
		return task ? &task->any.task : NULL; \
	} \
	doca_error_t doca_rdma_task_##name##_set_conf( \
		struct doca_rdma *rdma, \
		doca_rdma_task_##name##_completion_cb_t successful_task_completion_cb, \
		doca_rdma_task_##name##_completion_cb_t error_task_completion_cb, \
		uint32_t num_tasks) \
	{ \
		return gd_rdma_task_conf(rdma, kind, (void *)successful_task_completion_cb, \
					 (void *)error_task_completion_cb, num_tasks); \
	}

/* Define setter and getter of a field. */
#define GD_RDMA_FIELD(name, what, field, set_type, get_type) \
	void doca_rdma_task_##name##_set_##what(struct doca_rdma_task_##name *task, set_type what) \
	{ \
		if (task) \
			task->any.field = what; \
	} \
	get_type doca_rdma_task_##name##_get_##what(const struct doca_rdma_task_##name *task) \
	{ \
		return task ? (get_type)task->any.field : (get_type)0; \
	}

#define GD_RDMA_CONNECTION(name) \
	GD_RDMA_FIELD(name, rdma_connection, conn, struct doca_rdma_connection *, \
		      const struct doca_rdma_connection *)

#endif
