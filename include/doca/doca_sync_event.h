/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_sync_event.h - a 64-bit value that processes set and wait for */
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

typedef void (*doca_sync_event_task_get_completion_cb_t)(struct doca_sync_event_task_get *task,
		union doca_data task_user_data, union doca_data ctx_user_data);
typedef void (*doca_sync_event_task_notify_set_completion_cb_t)(struct doca_sync_event_task_notify_set *task,
		union doca_data task_user_data, union doca_data ctx_user_data);
typedef void (*doca_sync_event_task_notify_add_completion_cb_t)(struct doca_sync_event_task_notify_add *task,
		union doca_data task_user_data, union doca_data ctx_user_data);
typedef void (*doca_sync_event_task_wait_eq_completion_cb_t)(struct doca_sync_event_task_wait_eq *task,
		union doca_data task_user_data, union doca_data ctx_user_data);
typedef void (*doca_sync_event_task_wait_neq_completion_cb_t)(struct doca_sync_event_task_wait_neq *task,
		union doca_data task_user_data, union doca_data ctx_user_data);

/* Unconfigured event. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_create(struct doca_sync_event **event);

/*
 * Remote-PCI handle from a blob; already usable, not configurable; (dev, data, size, out). Errors: NOT_SUPPORTED,
 * NO_MEMORY.
 */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_create_from_export(struct doca_dev *dev, const uint8_t *data,
		size_t sz, struct doca_sync_event **event);

/* SUCCESS when the device can do it, NOT_SUPPORTED when not. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_cap_is_create_from_export_supported(
		const struct doca_devinfo *devinfo);

/* Remote-net handle for the rdma_task_remote_net_sync_event_* tasks. Errors: NOT_SUPPORTED, NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_remote_net_create_from_export(struct doca_dev *dev,
		const uint8_t *data, size_t sz, struct doca_sync_event_remote_net **event);

/* SUCCESS when the device can do it, NOT_SUPPORTED when not. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_cap_remote_net_is_create_from_export_supported(
		const struct doca_devinfo *devinfo);

/* NULL -> INVALID_VALUE. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_destroy(struct doca_sync_event *event);

/* The object must be idle. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_remote_net_destroy(struct doca_sync_event_remote_net *event);

/* Declares this CPU as publisher. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_add_publisher_location_cpu(struct doca_sync_event *event,
		struct doca_dev *dev);

/* Declares that the other side of PCIe will set the event; before start. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_add_publisher_location_remote_pci(struct doca_sync_event *event);

/* Declares an RDMA peer as publisher; before start. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_add_publisher_location_remote_net(struct doca_sync_event *event);

/* Declares this CPU (with its dev) as subscriber; before start. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_add_subscriber_location_cpu(struct doca_sync_event *event,
		struct doca_dev *dev);

/* Declares the other PCI side as subscriber. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_add_subscriber_location_remote_pci(struct doca_sync_event *event);

/* Before start. Errors: BAD_STATE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_set_addr(struct doca_sync_event *event, uint64_t *addr);

/* Before start. Errors: BAD_STATE, NOT_PERMITTED. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_set_doca_buf(struct doca_sync_event *event, struct doca_buf *buf);

/* Stand-alone mode (no ctx). */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_start(struct doca_sync_event *event);

/* Counterpart of start. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_stop(struct doca_sync_event *event);

/* Puts the event into ctx mode (tasks); samples choose by the --async flag. */
DOCA_EXPERIMENTAL struct doca_ctx *doca_sync_event_as_ctx(struct doca_sync_event *event);

/* SUCCESS when the device can do it, NOT_SUPPORTED when not. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_cap_task_get_is_supported(const struct doca_devinfo *devinfo);

/* Before start: callbacks of success and of failure, and how many tasks there will be. Errors: NOT_PERMITTED. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_task_get_set_conf(struct doca_sync_event *event,
		doca_sync_event_task_get_completion_cb_t completion_cb,
		doca_sync_event_task_get_completion_cb_t error_cb, uint32_t num_tasks);

/* Take a task; NO_MEMORY when all are taken. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_task_get_alloc_init(struct doca_sync_event *event,
		uint64_t *ret_val_ptr, union doca_data user_data, struct doca_sync_event_task_get **task);

/* The task as a task of any kind; the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_sync_event_task_get_as_doca_task(struct doca_sync_event_task_get *task);

/* The fields of a task, while it is not submitted. */
DOCA_EXPERIMENTAL void doca_sync_event_task_get_set_ret_val_ptr(struct doca_sync_event_task_get *task,
		uint64_t *ret_val_ptr);
DOCA_EXPERIMENTAL uint64_t *doca_sync_event_task_get_get_ret_val_ptr(const struct doca_sync_event_task_get *task);

/* SUCCESS when the device can do it, NOT_SUPPORTED when not. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_cap_task_notify_set_is_supported(const struct doca_devinfo *devinfo);

/* Before start: callbacks of success and of failure, and how many tasks there will be. Errors: NOT_PERMITTED. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_task_notify_set_set_conf(struct doca_sync_event *event,
		doca_sync_event_task_notify_set_completion_cb_t completion_cb,
		doca_sync_event_task_notify_set_completion_cb_t error_cb, uint32_t num_tasks);

/* Sets value. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_task_notify_set_alloc_init(struct doca_sync_event *event,
		uint64_t set_val, union doca_data user_data, struct doca_sync_event_task_notify_set **task);

/* The task as a task of any kind; the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_sync_event_task_notify_set_as_doca_task(
		struct doca_sync_event_task_notify_set *task);

/* The fields of a task, while it is not submitted. */
DOCA_EXPERIMENTAL void doca_sync_event_task_notify_set_set_set_val(struct doca_sync_event_task_notify_set *task,
		uint64_t set_val);
DOCA_EXPERIMENTAL uint64_t doca_sync_event_task_notify_set_get_set_val(
		const struct doca_sync_event_task_notify_set *task);

/* SUCCESS when the device can do it, NOT_SUPPORTED when not. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_cap_task_notify_add_is_supported(const struct doca_devinfo *devinfo);

/* Before start: callbacks of success and of failure, and how many tasks there will be. Errors: NOT_PERMITTED. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_task_notify_add_set_conf(struct doca_sync_event *event,
		doca_sync_event_task_notify_add_completion_cb_t completion_cb,
		doca_sync_event_task_notify_add_completion_cb_t error_cb, uint32_t num_tasks);

/* Adds; previous value stored through fetched pointer. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_task_notify_add_alloc_init(struct doca_sync_event *event,
		uint64_t inc_val, uint64_t *fetched_val_ptr, union doca_data user_data,
		struct doca_sync_event_task_notify_add **task);

/* The task as a task of any kind; the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_sync_event_task_notify_add_as_doca_task(
		struct doca_sync_event_task_notify_add *task);

/* The fields of a task, while it is not submitted. */
DOCA_EXPERIMENTAL void doca_sync_event_task_notify_add_set_inc_val(struct doca_sync_event_task_notify_add *task,
		uint64_t inc_val);
DOCA_EXPERIMENTAL uint64_t doca_sync_event_task_notify_add_get_inc_val(
		const struct doca_sync_event_task_notify_add *task);
DOCA_EXPERIMENTAL void doca_sync_event_task_notify_add_set_fetched_val_ptr(
		struct doca_sync_event_task_notify_add *task, uint64_t *fetched_val_ptr);
DOCA_EXPERIMENTAL uint64_t *doca_sync_event_task_notify_add_get_fetched_val_ptr(
		const struct doca_sync_event_task_notify_add *task);

/* SUCCESS when the device can do it, NOT_SUPPORTED when not. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_cap_task_wait_eq_is_supported(const struct doca_devinfo *devinfo);

/* Before start: callbacks of success and of failure, and how many tasks there will be. Errors: NOT_PERMITTED. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_task_wait_eq_set_conf(struct doca_sync_event *event,
		doca_sync_event_task_wait_eq_completion_cb_t completion_cb,
		doca_sync_event_task_wait_eq_completion_cb_t error_cb, uint32_t num_tasks);

/* Completes when (value & mask) == wait value; mask only of whole FF byte groups. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_task_wait_eq_alloc_init(struct doca_sync_event *event,
		uint64_t wait_val, uint64_t mask, union doca_data user_data,
		struct doca_sync_event_task_wait_eq **task);

/* The task as a task of any kind; the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_sync_event_task_wait_eq_as_doca_task(
		struct doca_sync_event_task_wait_eq *task);

/* The fields of a task, while it is not submitted. */
DOCA_EXPERIMENTAL void doca_sync_event_task_wait_eq_set_wait_val(struct doca_sync_event_task_wait_eq *task,
		uint64_t wait_val);
DOCA_EXPERIMENTAL uint64_t doca_sync_event_task_wait_eq_get_wait_val(
		const struct doca_sync_event_task_wait_eq *task);
DOCA_EXPERIMENTAL void doca_sync_event_task_wait_eq_set_mask(struct doca_sync_event_task_wait_eq *task,
		uint64_t mask);
DOCA_EXPERIMENTAL uint64_t doca_sync_event_task_wait_eq_get_mask(const struct doca_sync_event_task_wait_eq *task);

/* SUCCESS when the device can do it, NOT_SUPPORTED when not. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_cap_task_wait_neq_is_supported(const struct doca_devinfo *devinfo);

/* Before start: callbacks of success and of failure, and how many tasks there will be. Errors: NOT_PERMITTED. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_task_wait_neq_set_conf(struct doca_sync_event *event,
		doca_sync_event_task_wait_neq_completion_cb_t completion_cb,
		doca_sync_event_task_wait_neq_completion_cb_t error_cb, uint32_t num_tasks);

/* Take a task; NO_MEMORY when all are taken. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_task_wait_neq_alloc_init(struct doca_sync_event *event,
		uint64_t wait_val, uint64_t mask, union doca_data user_data,
		struct doca_sync_event_task_wait_neq **task);

/* The task as a task of any kind; the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_sync_event_task_wait_neq_as_doca_task(
		struct doca_sync_event_task_wait_neq *task);

/* The fields of a task, while it is not submitted. */
DOCA_EXPERIMENTAL void doca_sync_event_task_wait_neq_set_wait_val(struct doca_sync_event_task_wait_neq *task,
		uint64_t wait_val);
DOCA_EXPERIMENTAL uint64_t doca_sync_event_task_wait_neq_get_wait_val(
		const struct doca_sync_event_task_wait_neq *task);
DOCA_EXPERIMENTAL void doca_sync_event_task_wait_neq_set_mask(struct doca_sync_event_task_wait_neq *task,
		uint64_t mask);
DOCA_EXPERIMENTAL uint64_t doca_sync_event_task_wait_neq_get_mask(const struct doca_sync_event_task_wait_neq *task);

/* After start; blob owned by the event; size < 1024 in the sample's buffer. Errors: NOT_SUPPORTED, NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_export_to_remote_pci(struct doca_sync_event *event,
		struct doca_dev *dev, const uint8_t **data, size_t *sz);

/* SUCCESS when the device can do it, NOT_SUPPORTED when not. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_cap_is_export_to_remote_pci_supported(
		const struct doca_devinfo *devinfo);

/* After start; publisher must be remote net. Errors: NOT_SUPPORTED, NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_export_to_remote_net(struct doca_sync_event *event,
		const uint8_t **data, size_t *sz);

/* SUCCESS when the device can do it, NOT_SUPPORTED when not. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_cap_is_export_to_remote_net_supported(
		const struct doca_devinfo *devinfo);

/* Reads the value. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_get(struct doca_sync_event *event, uint64_t *value);

/* Atomic add; previous value out (fetched may not be NULL). */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_update_add(struct doca_sync_event *event, uint64_t value,
		uint64_t *fetched);

/* Atomic store. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_update_set(struct doca_sync_event *event, uint64_t value);

/* Blocks (spin) until (value & mask) > threshold. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_wait_gt(struct doca_sync_event *event, uint64_t value,
		uint64_t mask);

/* wait_gt with sched_yield. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_wait_gt_yield(struct doca_sync_event *event, uint64_t value,
		uint64_t mask);

/* Blocks (spin) until (value & mask) == threshold. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_wait_eq(struct doca_sync_event *event, uint64_t value,
		uint64_t mask);

/* Same with sched_yield between polls. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_wait_eq_yield(struct doca_sync_event *event, uint64_t value,
		uint64_t mask);

/* Blocks until (value & mask) differs. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_wait_neq(struct doca_sync_event *event, uint64_t value,
		uint64_t mask);

/* Same with sched_yield. */
DOCA_EXPERIMENTAL doca_error_t doca_sync_event_wait_neq_yield(struct doca_sync_event *event, uint64_t value,
		uint64_t mask);

#ifdef __cplusplus
}
#endif

#endif
