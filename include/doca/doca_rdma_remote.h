/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_rdma_remote.h - RDMA: atomic operations and remote sync events; included by doca_rdma.h
 *
 * The processor of one side executes atomic operations and notify_add, also over a network: there
 * the library of the peer does, without a call of its program. So they are atomic together with
 * operations of the CPU and of other peers.
 *
 * A connection has one atomic operation in flight over a network: it starts when earlier tasks of
 * the connection have completed, and later tasks wait for it.
 */
#ifndef DOCA_RDMA_REMOTE_H
#define DOCA_RDMA_REMOTE_H

#include <stddef.h>
#include <stdint.h>

#include <doca_rdma.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doca_buf;
struct doca_devinfo;
struct doca_rdma;
struct doca_rdma_connection;
struct doca_rdma_task_atomic_cmp_swp;
struct doca_rdma_task_atomic_fetch_add;
struct doca_rdma_task_remote_net_sync_event_get;
struct doca_rdma_task_remote_net_sync_event_notify_add;
struct doca_rdma_task_remote_net_sync_event_notify_set;
struct doca_sync_event_remote_net;
struct doca_task;

/*
 * Completion callbacks: the program owns the task again, and submits or frees it. The library
 * passes the user data of the task and of the context. Thread: in doca_pe_progress().
 */
typedef void (*doca_rdma_task_atomic_cmp_swp_completion_cb_t)(
	struct doca_rdma_task_atomic_cmp_swp *task, union doca_data task_user_data,
	union doca_data ctx_user_data);
typedef void (*doca_rdma_task_atomic_fetch_add_completion_cb_t)(
	struct doca_rdma_task_atomic_fetch_add *task, union doca_data task_user_data,
	union doca_data ctx_user_data);
typedef void (*doca_rdma_task_remote_net_sync_event_get_completion_cb_t)(
	struct doca_rdma_task_remote_net_sync_event_get *task, union doca_data task_user_data,
	union doca_data ctx_user_data);
typedef void (*doca_rdma_task_remote_net_sync_event_notify_set_completion_cb_t)(
	struct doca_rdma_task_remote_net_sync_event_notify_set *task,
	union doca_data task_user_data, union doca_data ctx_user_data);
typedef void (*doca_rdma_task_remote_net_sync_event_notify_add_completion_cb_t)(
	struct doca_rdma_task_remote_net_sync_event_notify_add *task,
	union doca_data task_user_data, union doca_data ctx_user_data);

/* Returns SUCCESS if the device supports compare-and-swap tasks, NOT_SUPPORTED if not. */
DOCA_EXPERIMENTAL doca_error_t
doca_rdma_cap_task_atomic_cmp_swp_is_supported(const struct doca_devinfo *devinfo);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_task_atomic_cmp_swp_set_conf(
	struct doca_rdma *rdma,
	doca_rdma_task_atomic_cmp_swp_completion_cb_t successful_task_completion_cb,
	doca_rdma_task_atomic_cmp_swp_completion_cb_t error_task_completion_cb, uint32_t num_tasks);

/*
 * Allocate a task that compares 8 bytes of the peer with cmp_data and, if they are equal, replaces
 * them by swap_data. dst_buf refers to an imported map; its data address is the address of the
 * bytes. The task appends the previous bytes to result_buf, which may be NULL.
 * Errors:
 *     NO_MEMORY  all tasks are allocated
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_task_atomic_cmp_swp_allocate_init(
	struct doca_rdma *rdma, struct doca_rdma_connection *rdma_connection,
	struct doca_buf *dst_buf, struct doca_buf *result_buf, uint64_t cmp_data,
	uint64_t swap_data, union doca_data user_data, struct doca_rdma_task_atomic_cmp_swp **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_rdma_task_atomic_cmp_swp_as_task(
	struct doca_rdma_task_atomic_cmp_swp *task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_EXPERIMENTAL void doca_rdma_task_atomic_cmp_swp_set_dst_buf(
	struct doca_rdma_task_atomic_cmp_swp *task, struct doca_buf *dst_buf);
DOCA_EXPERIMENTAL struct doca_buf *doca_rdma_task_atomic_cmp_swp_get_dst_buf(
	const struct doca_rdma_task_atomic_cmp_swp *task);
DOCA_EXPERIMENTAL void doca_rdma_task_atomic_cmp_swp_set_result_buf(
	struct doca_rdma_task_atomic_cmp_swp *task, struct doca_buf *result_buf);
DOCA_EXPERIMENTAL struct doca_buf *doca_rdma_task_atomic_cmp_swp_get_result_buf(
	const struct doca_rdma_task_atomic_cmp_swp *task);
DOCA_EXPERIMENTAL void doca_rdma_task_atomic_cmp_swp_set_cmp_data(
	struct doca_rdma_task_atomic_cmp_swp *task, uint64_t cmp_data);
DOCA_EXPERIMENTAL uint64_t
doca_rdma_task_atomic_cmp_swp_get_cmp_data(const struct doca_rdma_task_atomic_cmp_swp *task);
DOCA_EXPERIMENTAL void doca_rdma_task_atomic_cmp_swp_set_swap_data(
	struct doca_rdma_task_atomic_cmp_swp *task, uint64_t swap_data);
DOCA_EXPERIMENTAL uint64_t
doca_rdma_task_atomic_cmp_swp_get_swap_data(const struct doca_rdma_task_atomic_cmp_swp *task);
DOCA_EXPERIMENTAL void doca_rdma_task_atomic_cmp_swp_set_rdma_connection(
	struct doca_rdma_task_atomic_cmp_swp *task, struct doca_rdma_connection *rdma_connection);
DOCA_EXPERIMENTAL const struct doca_rdma_connection *
doca_rdma_task_atomic_cmp_swp_get_rdma_connection(const struct doca_rdma_task_atomic_cmp_swp *task);

/* Returns SUCCESS if the device supports fetch-and-add tasks, NOT_SUPPORTED if not. */
DOCA_EXPERIMENTAL doca_error_t
doca_rdma_cap_task_atomic_fetch_add_is_supported(const struct doca_devinfo *devinfo);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_task_atomic_fetch_add_set_conf(
	struct doca_rdma *rdma,
	doca_rdma_task_atomic_fetch_add_completion_cb_t successful_task_completion_cb,
	doca_rdma_task_atomic_fetch_add_completion_cb_t error_task_completion_cb,
	uint32_t num_tasks);

/*
 * Allocate a task that adds add_data to 8 bytes of the peer. dst_buf refers to an imported map; its
 * data address is the address of the bytes. The task appends the previous bytes to result_buf,
 * which may be NULL.
 * Errors:
 *     NO_MEMORY  all tasks are allocated
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_task_atomic_fetch_add_allocate_init(
	struct doca_rdma *rdma, struct doca_rdma_connection *rdma_connection,
	struct doca_buf *dst_buf, struct doca_buf *result_buf, uint64_t add_data,
	union doca_data user_data, struct doca_rdma_task_atomic_fetch_add **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_rdma_task_atomic_fetch_add_as_task(
	struct doca_rdma_task_atomic_fetch_add *task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_EXPERIMENTAL void doca_rdma_task_atomic_fetch_add_set_dst_buf(
	struct doca_rdma_task_atomic_fetch_add *task, struct doca_buf *dst_buf);
DOCA_EXPERIMENTAL struct doca_buf *doca_rdma_task_atomic_fetch_add_get_dst_buf(
	const struct doca_rdma_task_atomic_fetch_add *task);
DOCA_EXPERIMENTAL void doca_rdma_task_atomic_fetch_add_set_result_buf(
	struct doca_rdma_task_atomic_fetch_add *task, struct doca_buf *result_buf);
DOCA_EXPERIMENTAL struct doca_buf *doca_rdma_task_atomic_fetch_add_get_result_buf(
	const struct doca_rdma_task_atomic_fetch_add *task);
DOCA_EXPERIMENTAL void doca_rdma_task_atomic_fetch_add_set_add_data(
	struct doca_rdma_task_atomic_fetch_add *task, uint64_t add_data);
DOCA_EXPERIMENTAL uint64_t
doca_rdma_task_atomic_fetch_add_get_add_data(const struct doca_rdma_task_atomic_fetch_add *task);
DOCA_EXPERIMENTAL void doca_rdma_task_atomic_fetch_add_set_rdma_connection(
	struct doca_rdma_task_atomic_fetch_add *task, struct doca_rdma_connection *rdma_connection);
DOCA_EXPERIMENTAL const struct doca_rdma_connection *
doca_rdma_task_atomic_fetch_add_get_rdma_connection(
	const struct doca_rdma_task_atomic_fetch_add *task);

/*
 * Returns SUCCESS if the device supports tasks that read a sync event of the peer, NOT_SUPPORTED if
 * not.
 */
DOCA_EXPERIMENTAL doca_error_t
doca_rdma_cap_task_remote_net_sync_event_get_is_supported(const struct doca_devinfo *devinfo);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_task_remote_net_sync_event_get_set_conf(
	struct doca_rdma *rdma,
	doca_rdma_task_remote_net_sync_event_get_completion_cb_t successful_task_completion_cb,
	doca_rdma_task_remote_net_sync_event_get_completion_cb_t error_task_completion_cb,
	uint32_t num_tasks);

/*
 * Allocate a task that reads the value of a sync event of the peer. It appends 8 bytes to dst_buf.
 * Errors:
 *     NO_MEMORY  all tasks are allocated
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_task_remote_net_sync_event_get_allocate_init(
	struct doca_rdma *rdma, struct doca_rdma_connection *rdma_connection,
	const struct doca_sync_event_remote_net *event, struct doca_buf *dst_buf,
	union doca_data user_data, struct doca_rdma_task_remote_net_sync_event_get **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_rdma_task_remote_net_sync_event_get_as_task(
	struct doca_rdma_task_remote_net_sync_event_get *task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_EXPERIMENTAL void doca_rdma_task_remote_net_sync_event_get_set_sync_event(
	struct doca_rdma_task_remote_net_sync_event_get *task,
	const struct doca_sync_event_remote_net *event);
DOCA_EXPERIMENTAL const struct doca_sync_event_remote_net *
doca_rdma_task_remote_net_sync_event_get_get_sync_event(
	const struct doca_rdma_task_remote_net_sync_event_get *task);
DOCA_EXPERIMENTAL void doca_rdma_task_remote_net_sync_event_get_set_dst_buf(
	struct doca_rdma_task_remote_net_sync_event_get *task, struct doca_buf *dst_buf);
DOCA_EXPERIMENTAL struct doca_buf *doca_rdma_task_remote_net_sync_event_get_get_dst_buf(
	const struct doca_rdma_task_remote_net_sync_event_get *task);
DOCA_EXPERIMENTAL uint32_t doca_rdma_task_remote_net_sync_event_get_get_result_len(
	const struct doca_rdma_task_remote_net_sync_event_get *task);
DOCA_EXPERIMENTAL void doca_rdma_task_remote_net_sync_event_get_set_rdma_connection(
	struct doca_rdma_task_remote_net_sync_event_get *task,
	struct doca_rdma_connection *rdma_connection);
DOCA_EXPERIMENTAL const struct doca_rdma_connection *
doca_rdma_task_remote_net_sync_event_get_get_rdma_connection(
	const struct doca_rdma_task_remote_net_sync_event_get *task);

/*
 * Returns SUCCESS if the device supports tasks that set a sync event of the peer, NOT_SUPPORTED if
 * not.
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_cap_task_remote_net_sync_event_notify_set_is_supported(
	const struct doca_devinfo *devinfo);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_task_remote_net_sync_event_notify_set_set_conf(
	struct doca_rdma *rdma,
	doca_rdma_task_remote_net_sync_event_notify_set_completion_cb_t
		successful_task_completion_cb,
	doca_rdma_task_remote_net_sync_event_notify_set_completion_cb_t error_task_completion_cb,
	uint32_t num_tasks);

/*
 * Allocate a task that sets the value of a sync event of the peer to the 8 bytes of src_buf.
 * Errors:
 *     NO_MEMORY  all tasks are allocated
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_task_remote_net_sync_event_notify_set_allocate_init(
	struct doca_rdma *rdma, struct doca_rdma_connection *rdma_connection,
	struct doca_sync_event_remote_net *event, const struct doca_buf *src_buf,
	union doca_data user_data, struct doca_rdma_task_remote_net_sync_event_notify_set **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_rdma_task_remote_net_sync_event_notify_set_as_task(
	struct doca_rdma_task_remote_net_sync_event_notify_set *task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_EXPERIMENTAL void doca_rdma_task_remote_net_sync_event_notify_set_set_sync_event(
	struct doca_rdma_task_remote_net_sync_event_notify_set *task,
	struct doca_sync_event_remote_net *event);
DOCA_EXPERIMENTAL struct doca_sync_event_remote_net *
doca_rdma_task_remote_net_sync_event_notify_set_get_sync_event(
	const struct doca_rdma_task_remote_net_sync_event_notify_set *task);
DOCA_EXPERIMENTAL void doca_rdma_task_remote_net_sync_event_notify_set_set_rdma_connection(
	struct doca_rdma_task_remote_net_sync_event_notify_set *task,
	struct doca_rdma_connection *rdma_connection);
DOCA_EXPERIMENTAL const struct doca_rdma_connection *
doca_rdma_task_remote_net_sync_event_notify_set_get_rdma_connection(
	const struct doca_rdma_task_remote_net_sync_event_notify_set *task);
DOCA_EXPERIMENTAL void doca_rdma_task_remote_net_sync_event_notify_set_set_src_buf(
	struct doca_rdma_task_remote_net_sync_event_notify_set *task,
	const struct doca_buf *src_buf);
DOCA_EXPERIMENTAL const struct doca_buf *
doca_rdma_task_remote_net_sync_event_notify_set_get_src_buf(
	const struct doca_rdma_task_remote_net_sync_event_notify_set *task);

/*
 * Returns SUCCESS if the device supports tasks that add to a sync event of the peer, NOT_SUPPORTED
 * if not.
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_cap_task_remote_net_sync_event_notify_add_is_supported(
	const struct doca_devinfo *devinfo);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_task_remote_net_sync_event_notify_add_set_conf(
	struct doca_rdma *rdma,
	doca_rdma_task_remote_net_sync_event_notify_add_completion_cb_t
		successful_task_completion_cb,
	doca_rdma_task_remote_net_sync_event_notify_add_completion_cb_t error_task_completion_cb,
	uint32_t num_tasks);

/*
 * Allocate a task that adds add_data to the value of a sync event of the peer. The task appends the
 * previous value, 8 bytes, to result_buf, which may be NULL.
 * Errors:
 *     NO_MEMORY  all tasks are allocated
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_task_remote_net_sync_event_notify_add_allocate_init(
	struct doca_rdma *rdma, struct doca_rdma_connection *rdma_connection,
	struct doca_sync_event_remote_net *event, struct doca_buf *result_buf, uint64_t add_data,
	union doca_data user_data, struct doca_rdma_task_remote_net_sync_event_notify_add **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_rdma_task_remote_net_sync_event_notify_add_as_task(
	struct doca_rdma_task_remote_net_sync_event_notify_add *task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_EXPERIMENTAL void doca_rdma_task_remote_net_sync_event_notify_add_set_sync_event(
	struct doca_rdma_task_remote_net_sync_event_notify_add *task,
	struct doca_sync_event_remote_net *event);
DOCA_EXPERIMENTAL struct doca_sync_event_remote_net *
doca_rdma_task_remote_net_sync_event_notify_add_get_sync_event(
	const struct doca_rdma_task_remote_net_sync_event_notify_add *task);
DOCA_EXPERIMENTAL void doca_rdma_task_remote_net_sync_event_notify_add_set_result_buf(
	struct doca_rdma_task_remote_net_sync_event_notify_add *task, struct doca_buf *result_buf);
DOCA_EXPERIMENTAL struct doca_buf *doca_rdma_task_remote_net_sync_event_notify_add_get_result_buf(
	const struct doca_rdma_task_remote_net_sync_event_notify_add *task);
DOCA_EXPERIMENTAL void doca_rdma_task_remote_net_sync_event_notify_add_set_add_data(
	struct doca_rdma_task_remote_net_sync_event_notify_add *task, uint64_t add_data);
DOCA_EXPERIMENTAL uint64_t doca_rdma_task_remote_net_sync_event_notify_add_get_add_data(
	const struct doca_rdma_task_remote_net_sync_event_notify_add *task);
DOCA_EXPERIMENTAL void doca_rdma_task_remote_net_sync_event_notify_add_set_rdma_connection(
	struct doca_rdma_task_remote_net_sync_event_notify_add *task,
	struct doca_rdma_connection *rdma_connection);
DOCA_EXPERIMENTAL const struct doca_rdma_connection *
doca_rdma_task_remote_net_sync_event_notify_add_get_rdma_connection(
	const struct doca_rdma_task_remote_net_sync_event_notify_add *task);

#ifdef __cplusplus
}
#endif

#endif
