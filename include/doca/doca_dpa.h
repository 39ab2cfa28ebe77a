/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_dpa.h - an emulated DPA: threads of this process stand for those of the processor on the
 * card
 *
 * Code for it is compiled with the program, and declared __dpa_global__; doca_dpa_dev.h has what it
 * may call.
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
/* What a thread of the DPA runs, once for each activation. */
typedef void(doca_dpa_func_t)(uint64_t arg);

/* SUCCESS when the device has one, NOT_SUPPORTED when not. */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_cap_is_supported(const struct doca_devinfo *devinfo);

/* The DPA of a device. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_create(struct doca_dev *dev, struct doca_dpa **dpa);

/* IN_USE with threads, completions or message queues. */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_destroy(struct doca_dpa *dpa);

/* Taken, and not needed: the code is there already. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_set_app(struct doca_dpa *dpa, struct doca_dpa_app *app);

/* Before anything else of it is started. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_start(struct doca_dpa *dpa);
DOCA_EXPERIMENTAL doca_error_t doca_dpa_stop(struct doca_dpa *dpa);

/*
 * A thread. It is activated by doca_dpa_thread_run, and by completions that were asked to. Errors:
 * NO_MEMORY.
 */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_thread_create(struct doca_dpa *dpa,
						      struct doca_dpa_thread **dpa_thread);

/* Stops it first. IN_USE with completions of it. */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_thread_destroy(struct doca_dpa_thread *dpa_thread);

/* Before start, needed. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_thread_set_func_arg(struct doca_dpa_thread *dpa_thread,
							    doca_dpa_func_t *func, uint64_t arg);

/* It is there, and waits. Errors: BAD_STATE, OPERATING_SYSTEM. */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_thread_start(struct doca_dpa_thread *dpa_thread);

/* Waits for the end of the activation that runs. NOT_PERMITTED from that thread. */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_thread_stop(struct doca_dpa_thread *dpa_thread);

/* Activate it. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_thread_run(struct doca_dpa_thread *dpa_thread);

/* Where ends of sends of the DPA are found: room for queue_size of them. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_completion_create(struct doca_dpa *dpa,
							  unsigned int queue_size,
							  struct doca_dpa_completion **dpa_comp);

/* IN_USE with producers. */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_completion_destroy(struct doca_dpa_completion *dpa_comp);

/* Before start: the thread that it activates, of the same DPA. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_completion_set_thread(struct doca_dpa_completion *dpa_comp,
							      struct doca_dpa_thread *thread);
DOCA_EXPERIMENTAL doca_error_t doca_dpa_completion_start(struct doca_dpa_completion *dpa_comp);
/* IN_USE with producers. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_completion_stop(struct doca_dpa_completion *dpa_comp);

/* After start: the completion as code on the DPA names it. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_dpa_completion_get_dpa_handle(
	struct doca_dpa_completion *dpa_comp, doca_dpa_dev_completion_t *handle);

#ifdef __cplusplus
}
#endif

#endif
