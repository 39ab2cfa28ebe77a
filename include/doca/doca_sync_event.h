/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_sync_event.h - sync events: 64-bit values that processes set and wait for
 *
 * A publisher sets the value, a subscriber waits for it. A program uses an event either directly,
 * after doca_sync_event_start(), or by tasks, after doca_sync_event_as_ctx().
 */
#ifndef DOCA_SYNC_EVENT_H
#define DOCA_SYNC_EVENT_H

#include <stddef.h>
#include <stdint.h>

#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doca_buf;
struct doca_ctx;
struct doca_dev;
struct doca_devinfo;
struct doca_sync_event;
struct doca_sync_event_remote_net;
struct doca_sync_event_task_get;
struct doca_sync_event_task_notify_add;
struct doca_sync_event_task_notify_set;
struct doca_sync_event_task_wait_eq;
struct doca_sync_event_task_wait_neq;

/*
 * Completion callbacks: the program owns the task again, and submits or frees it. The library
 * passes the user data of the task and of the context. Thread: in doca_pe_progress().
 */
typedef void (*doca_sync_event_task_get_completion_cb_t)(struct doca_sync_event_task_get *task,
							 union doca_data task_user_data,
							 union doca_data ctx_user_data);
typedef void (*doca_sync_event_task_notify_set_completion_cb_t)(
	struct doca_sync_event_task_notify_set *task, union doca_data task_user_data,
	union doca_data ctx_user_data);
typedef void (*doca_sync_event_task_notify_add_completion_cb_t)(
	struct doca_sync_event_task_notify_add *task, union doca_data task_user_data,
	union doca_data ctx_user_data);
typedef void (*doca_sync_event_task_wait_eq_completion_cb_t)(
	struct doca_sync_event_task_wait_eq *task, union doca_data task_user_data,
	union doca_data ctx_user_data);
typedef void (*doca_sync_event_task_wait_neq_completion_cb_t)(
	struct doca_sync_event_task_wait_neq *task, union doca_data task_user_data,
	union doca_data ctx_user_data);

/*
 * Create an event. Configure and start it before use.
 * Errors:
 *     NO_MEMORY  memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_create(struct doca_sync_event **event);

/*
 * Import an event of the other side of the PCI bus. It is ready for use.
 * Errors:
 *     NOT_SUPPORTED  the event is on another machine, or its memory is not mapped here
 *     NO_MEMORY      memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_create_from_export(struct doca_dev *dev,
								  const uint8_t *data, size_t sz,
								  struct doca_sync_event **event);

/* Returns SUCCESS if the device supports the import of events over PCI, NOT_SUPPORTED if not. */
DOCA_EXPERIMENTAL doca_error_t
doca_sync_event_cap_is_create_from_export_supported(const struct doca_devinfo *devinfo);

/*
 * Import an event of an RDMA peer, for the tasks of doca_rdma_remote.h.
 * Errors:
 *     NOT_SUPPORTED  the event is on another machine, and the device has no network transport
 *     NO_MEMORY      memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t
doca_sync_event_remote_net_create_from_export(struct doca_dev *dev, const uint8_t *data, size_t sz,
					      struct doca_sync_event_remote_net **event);

/*
 * Returns SUCCESS if the device supports the import of events of RDMA peers, NOT_SUPPORTED if not.
 */
DOCA_EXPERIMENTAL doca_error_t
doca_sync_event_cap_remote_net_is_create_from_export_supported(const struct doca_devinfo *devinfo);

/* Destroy the event. Its context must be idle. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_destroy(struct doca_sync_event *event);

/* Destroy the imported event. Do not call it while a submitted task uses it. */
DOCA_EXPERIMENTAL doca_error_t
doca_sync_event_remote_net_destroy(struct doca_sync_event_remote_net *event);

/* Declare that this process sets the event. Call before start. */
DOCA_EXPERIMENTAL doca_error_t
doca_sync_event_add_publisher_location_cpu(struct doca_sync_event *event, struct doca_dev *dev);

/* Declare that the other side of the PCI bus sets the event. Call before start. */
DOCA_EXPERIMENTAL doca_error_t
doca_sync_event_add_publisher_location_remote_pci(struct doca_sync_event *event);

/* Declare that an RDMA peer sets the event. Call before start. */
DOCA_EXPERIMENTAL doca_error_t
doca_sync_event_add_publisher_location_remote_net(struct doca_sync_event *event);

/* Declare that this process waits for the event. Call before start. */
DOCA_EXPERIMENTAL doca_error_t
doca_sync_event_add_subscriber_location_cpu(struct doca_sync_event *event, struct doca_dev *dev);

/* Declare that the other side of the PCI bus waits for the event. Call before start. */
DOCA_EXPERIMENTAL doca_error_t
doca_sync_event_add_subscriber_location_remote_pci(struct doca_sync_event *event);

/*
 * Set the address of the value; by default the value is in memory of the library. addr: 8-byte
 * aligned. An event with such an address cannot be exported. Call before start.
 * Errors:
 *     BAD_STATE      the event is started or imported
 *     NOT_SUPPORTED  never returned
 */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_set_addr(struct doca_sync_event *event,
							uint64_t *addr);

/*
 * Like doca_sync_event_set_addr(), with the first 8 bytes of a buffer.
 * Errors:
 *     BAD_STATE      the event is started or imported
 *     NOT_PERMITTED  the map of the buffer does not permit writes
 */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_set_doca_buf(struct doca_sync_event *event,
							    struct doca_buf *buf);

/* Start the event for direct use. Do not call it for an event that is used as a context. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_start(struct doca_sync_event *event);

/* End direct use of the event. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_stop(struct doca_sync_event *event);

/*
 * Returns the event as a context, for use by tasks instead of doca_sync_event_start(). Returns NULL
 * for NULL and for a started event.
 */
DOCA_EXPERIMENTAL struct doca_ctx *doca_sync_event_as_ctx(struct doca_sync_event *event);

/* Returns SUCCESS if the device supports get tasks, NOT_SUPPORTED if not. */
DOCA_EXPERIMENTAL doca_error_t
doca_sync_event_cap_task_get_is_supported(const struct doca_devinfo *devinfo);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     NOT_PERMITTED  the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_task_get_set_conf(
	struct doca_sync_event *event, doca_sync_event_task_get_completion_cb_t completion_cb,
	doca_sync_event_task_get_completion_cb_t error_cb, uint32_t num_tasks);

/*
 * Allocate a task that reads the value.
 * Errors:
 *     NO_MEMORY  all tasks are allocated
 */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_task_get_alloc_init(
	struct doca_sync_event *event, uint64_t *ret_val_ptr, union doca_data user_data,
	struct doca_sync_event_task_get **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_sync_event_task_get_as_doca_task(
	struct doca_sync_event_task_get *task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_EXPERIMENTAL void doca_sync_event_task_get_set_ret_val_ptr(
	struct doca_sync_event_task_get *task, uint64_t *ret_val_ptr);
DOCA_EXPERIMENTAL uint64_t *doca_sync_event_task_get_get_ret_val_ptr(
	const struct doca_sync_event_task_get *task);

/* Returns SUCCESS if the device supports set tasks, NOT_SUPPORTED if not. */
DOCA_EXPERIMENTAL doca_error_t
doca_sync_event_cap_task_notify_set_is_supported(const struct doca_devinfo *devinfo);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     NOT_PERMITTED  the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_task_notify_set_set_conf(
	struct doca_sync_event *event,
	doca_sync_event_task_notify_set_completion_cb_t completion_cb,
	doca_sync_event_task_notify_set_completion_cb_t error_cb, uint32_t num_tasks);

/*
 * Allocate a task that sets the value.
 * Errors:
 *     NO_MEMORY  all tasks are allocated
 */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_task_notify_set_alloc_init(
	struct doca_sync_event *event, uint64_t set_val, union doca_data user_data,
	struct doca_sync_event_task_notify_set **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_sync_event_task_notify_set_as_doca_task(
	struct doca_sync_event_task_notify_set *task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_EXPERIMENTAL void doca_sync_event_task_notify_set_set_set_val(
	struct doca_sync_event_task_notify_set *task, uint64_t set_val);
DOCA_EXPERIMENTAL uint64_t
doca_sync_event_task_notify_set_get_set_val(const struct doca_sync_event_task_notify_set *task);

/* Returns SUCCESS if the device supports add tasks, NOT_SUPPORTED if not. */
DOCA_EXPERIMENTAL doca_error_t
doca_sync_event_cap_task_notify_add_is_supported(const struct doca_devinfo *devinfo);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     NOT_PERMITTED  the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_task_notify_add_set_conf(
	struct doca_sync_event *event,
	doca_sync_event_task_notify_add_completion_cb_t completion_cb,
	doca_sync_event_task_notify_add_completion_cb_t error_cb, uint32_t num_tasks);

/*
 * Allocate a task that adds inc_val to the value. fetched_val_ptr gets the value before the
 * addition.
 * Errors:
 *     NO_MEMORY  all tasks are allocated
 */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_task_notify_add_alloc_init(
	struct doca_sync_event *event, uint64_t inc_val, uint64_t *fetched_val_ptr,
	union doca_data user_data, struct doca_sync_event_task_notify_add **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_sync_event_task_notify_add_as_doca_task(
	struct doca_sync_event_task_notify_add *task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_EXPERIMENTAL void doca_sync_event_task_notify_add_set_inc_val(
	struct doca_sync_event_task_notify_add *task, uint64_t inc_val);
DOCA_EXPERIMENTAL uint64_t
doca_sync_event_task_notify_add_get_inc_val(const struct doca_sync_event_task_notify_add *task);
DOCA_EXPERIMENTAL void doca_sync_event_task_notify_add_set_fetched_val_ptr(
	struct doca_sync_event_task_notify_add *task, uint64_t *fetched_val_ptr);
DOCA_EXPERIMENTAL uint64_t *doca_sync_event_task_notify_add_get_fetched_val_ptr(
	const struct doca_sync_event_task_notify_add *task);

/* Returns SUCCESS if the device supports tasks that wait for a value, NOT_SUPPORTED if not. */
DOCA_EXPERIMENTAL doca_error_t
doca_sync_event_cap_task_wait_eq_is_supported(const struct doca_devinfo *devinfo);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     NOT_PERMITTED  the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_task_wait_eq_set_conf(
	struct doca_sync_event *event, doca_sync_event_task_wait_eq_completion_cb_t completion_cb,
	doca_sync_event_task_wait_eq_completion_cb_t error_cb, uint32_t num_tasks);

/*
 * Allocate a task that completes when (value & mask) equals wait_val. Each byte of the mask is 00
 * or FF.
 * Errors:
 *     NO_MEMORY  all tasks are allocated
 */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_task_wait_eq_alloc_init(
	struct doca_sync_event *event, uint64_t wait_val, uint64_t mask, union doca_data user_data,
	struct doca_sync_event_task_wait_eq **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_sync_event_task_wait_eq_as_doca_task(
	struct doca_sync_event_task_wait_eq *task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_EXPERIMENTAL void doca_sync_event_task_wait_eq_set_wait_val(
	struct doca_sync_event_task_wait_eq *task, uint64_t wait_val);
DOCA_EXPERIMENTAL uint64_t
doca_sync_event_task_wait_eq_get_wait_val(const struct doca_sync_event_task_wait_eq *task);
DOCA_EXPERIMENTAL void doca_sync_event_task_wait_eq_set_mask(
	struct doca_sync_event_task_wait_eq *task, uint64_t mask);
DOCA_EXPERIMENTAL uint64_t
doca_sync_event_task_wait_eq_get_mask(const struct doca_sync_event_task_wait_eq *task);

/*
 * Returns SUCCESS if the device supports tasks that wait until the value differs, NOT_SUPPORTED if
 * not.
 */
DOCA_EXPERIMENTAL doca_error_t
doca_sync_event_cap_task_wait_neq_is_supported(const struct doca_devinfo *devinfo);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     NOT_PERMITTED  the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_task_wait_neq_set_conf(
	struct doca_sync_event *event, doca_sync_event_task_wait_neq_completion_cb_t completion_cb,
	doca_sync_event_task_wait_neq_completion_cb_t error_cb, uint32_t num_tasks);

/*
 * Allocate a task that completes when (value & mask) differs from wait_val. Each byte of the mask
 * is 00 or FF.
 * Errors:
 *     NO_MEMORY  all tasks are allocated
 */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_task_wait_neq_alloc_init(
	struct doca_sync_event *event, uint64_t wait_val, uint64_t mask, union doca_data user_data,
	struct doca_sync_event_task_wait_neq **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_sync_event_task_wait_neq_as_doca_task(
	struct doca_sync_event_task_wait_neq *task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_EXPERIMENTAL void doca_sync_event_task_wait_neq_set_wait_val(
	struct doca_sync_event_task_wait_neq *task, uint64_t wait_val);
DOCA_EXPERIMENTAL uint64_t
doca_sync_event_task_wait_neq_get_wait_val(const struct doca_sync_event_task_wait_neq *task);
DOCA_EXPERIMENTAL void doca_sync_event_task_wait_neq_set_mask(
	struct doca_sync_event_task_wait_neq *task, uint64_t mask);
DOCA_EXPERIMENTAL uint64_t
doca_sync_event_task_wait_neq_get_mask(const struct doca_sync_event_task_wait_neq *task);

/*
 * Export a started event to the other side of the PCI bus. The descriptor belongs to the event.
 * Errors:
 *     INVALID_VALUE  the event is not started, or has no remote PCI location
 *     NOT_SUPPORTED  the event is imported, or its value is in memory of the program
 *     NO_MEMORY      never returned
 */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_export_to_remote_pci(struct doca_sync_event *event,
								    struct doca_dev *dev,
								    const uint8_t **data,
								    size_t *sz);

/* Returns SUCCESS if the device supports the export of events over PCI, NOT_SUPPORTED if not. */
DOCA_EXPERIMENTAL doca_error_t
doca_sync_event_cap_is_export_to_remote_pci_supported(const struct doca_devinfo *devinfo);

/*
 * Export a started event to an RDMA peer. The descriptor belongs to the event.
 * Errors:
 *     INVALID_VALUE  the event is not started, or has no remote net location
 *     NOT_SUPPORTED  the event is imported, or its value is in memory of the program
 *     NO_MEMORY      never returned
 */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_export_to_remote_net(struct doca_sync_event *event,
								    const uint8_t **data,
								    size_t *sz);

/*
 * Returns SUCCESS if the device supports the export of events to RDMA peers, NOT_SUPPORTED if not.
 */
DOCA_EXPERIMENTAL doca_error_t
doca_sync_event_cap_is_export_to_remote_net_supported(const struct doca_devinfo *devinfo);

/* Get the value. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_get(struct doca_sync_event *event, uint64_t *value);

/* Add to the value. fetched gets the value before the addition. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_update_add(struct doca_sync_event *event,
							  uint64_t value, uint64_t *fetched);

/* Set the value. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_update_set(struct doca_sync_event *event,
							  uint64_t value);

/*
 * Wait until (value & mask) is greater than `value`. The thread polls without pause and yields the
 * processor rarely.
 * Errors:
 *     IO_FAILED  the event is imported, and its owner has stopped it or ended
 */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_wait_gt(struct doca_sync_event *event,
						       uint64_t value, uint64_t mask);

/* Like doca_sync_event_wait_gt(), but yields the processor after each poll. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_wait_gt_yield(struct doca_sync_event *event,
							     uint64_t value, uint64_t mask);

/* Wait until (value & mask) equals `value`. Like doca_sync_event_wait_gt() otherwise. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_wait_eq(struct doca_sync_event *event,
						       uint64_t value, uint64_t mask);

/* Like doca_sync_event_wait_eq(), but yields the processor after each poll. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_wait_eq_yield(struct doca_sync_event *event,
							     uint64_t value, uint64_t mask);

/* Wait until (value & mask) differs from `value`. Like doca_sync_event_wait_gt() otherwise. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_wait_neq(struct doca_sync_event *event,
							uint64_t value, uint64_t mask);

/* Like doca_sync_event_wait_neq(), but yields the processor after each poll. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_wait_neq_yield(struct doca_sync_event *event,
							      uint64_t value, uint64_t mask);

#ifdef __cplusplus
}
#endif

#endif
