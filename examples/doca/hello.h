/* SPDX-License-Identifier: BSD-3-Clause */
/* hello.h - common part of both sides of the example: open a device, progress an engine */
#ifndef HELLO_H
#define HELLO_H

#include <doca_comch.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_error.h>
#include <doca_pe.h>

#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#define SERVER_NAME "hello"
#define MAX_TEXT 200

/* Print what failed. Returns true for an error. */
static inline bool failed(const char *what, doca_error_t error)
{
	if (error == DOCA_SUCCESS)
		return false;
	fprintf(stderr, "%s: %s\n", what, doca_error_get_descr(error));
	return true;
}

/*
 * Open the first device for which can() returns SUCCESS. The list can be freed immediately; the
 * opened device remains valid.
 */
static inline struct doca_dev *open_device(doca_error_t (*can)(const struct doca_devinfo *info))
{
	struct doca_devinfo **list;
	struct doca_dev *dev = NULL;
	uint32_t n;

	if (failed("list devices", doca_devinfo_create_list(&list, &n)))
		return NULL;
	for (uint32_t i = 0; i < n && !dev; i++)
		if (can(list[i]) == DOCA_SUCCESS)
			failed("open the device", doca_dev_open(list[i], &dev));
	doca_devinfo_destroy_list(list);
	return dev;
}

/*
 * Progress the engine until the context is in the wanted state or idle. Sleep for a short time if
 * there is no work.
 */
static inline bool reaches(struct doca_pe *pe, struct doca_ctx *ctx, enum doca_ctx_states wanted)
{
	const struct timespec pause = {.tv_nsec = 20000};
	enum doca_ctx_states state;

	while (doca_ctx_get_state(ctx, &state) == DOCA_SUCCESS && state != wanted &&
	       state != DOCA_CTX_STATE_IDLE)
		if (!doca_pe_progress(pe))
			nanosleep(&pause, NULL);
	return state == wanted;
}

/*
 * Completion of a send task, for success and failure. The program owns the task again and frees it.
 */
static inline void send_is_over(struct doca_comch_task_send *task, union doca_data task_data,
				union doca_data ctx_data)
{
	(void)task_data;
	(void)ctx_data;
	failed("send", doca_task_get_status(doca_comch_task_send_as_task(task)));
	doca_task_free(doca_comch_task_send_as_task(task));
}

#endif
