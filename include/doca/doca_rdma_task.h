/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_rdma_task.h - RDMA: receive, send, read and write; included by doca_rdma.h */
#ifndef DOCA_RDMA_TASK_H
#define DOCA_RDMA_TASK_H

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
struct doca_rdma_task_read;
struct doca_rdma_task_receive;
struct doca_rdma_task_send;
struct doca_rdma_task_send_imm;
struct doca_rdma_task_write;
struct doca_rdma_task_write_imm;
struct doca_task;

/* Types of received messages: a send, a send with immediate data, a write with immediate data. */
enum doca_rdma_opcode {
	DOCA_RDMA_OPCODE_RECV_SEND = 0,
	DOCA_RDMA_OPCODE_RECV_SEND_WITH_IMM = 1,
	DOCA_RDMA_OPCODE_RECV_WRITE_WITH_IMM = 2,
};

/*
 * Completion callbacks: the program owns the task again, and submits or frees it. The library
 * passes the user data of the task and of the context. Thread: in doca_pe_progress().
 */
typedef void (*doca_rdma_task_receive_completion_cb_t)(struct doca_rdma_task_receive *task,
						       union doca_data task_user_data,
						       union doca_data ctx_user_data);
typedef void (*doca_rdma_task_send_completion_cb_t)(struct doca_rdma_task_send *task,
						    union doca_data task_user_data,
						    union doca_data ctx_user_data);
typedef void (*doca_rdma_task_send_imm_completion_cb_t)(struct doca_rdma_task_send_imm *task,
							union doca_data task_user_data,
							union doca_data ctx_user_data);
typedef void (*doca_rdma_task_read_completion_cb_t)(struct doca_rdma_task_read *task,
						    union doca_data task_user_data,
						    union doca_data ctx_user_data);
typedef void (*doca_rdma_task_write_completion_cb_t)(struct doca_rdma_task_write *task,
						     union doca_data task_user_data,
						     union doca_data ctx_user_data);
typedef void (*doca_rdma_task_write_imm_completion_cb_t)(struct doca_rdma_task_write_imm *task,
							 union doca_data task_user_data,
							 union doca_data ctx_user_data);

/* Returns SUCCESS if the device supports receive tasks, NOT_SUPPORTED if not. */
DOCA_EXPERIMENTAL doca_error_t
doca_rdma_cap_task_receive_is_supported(const struct doca_devinfo *devinfo);

/* Get the maximum number of buffers in a list of a receive task. Never returns DRIVER. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_cap_task_receive_get_max_dst_buf_list_len(
	const struct doca_devinfo *devinfo, enum doca_rdma_transport_type transport_type,
	uint32_t *max_buf_list_len);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_task_receive_set_conf(
	struct doca_rdma *rdma,
	doca_rdma_task_receive_completion_cb_t successful_task_completion_cb,
	doca_rdma_task_receive_completion_cb_t error_task_completion_cb, uint32_t num_tasks);

/*
 * Set the maximum number of buffers of a list. Call before start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_task_receive_set_dst_buf_list_len(struct doca_rdma *rdma,
									   uint32_t buf_list_len);

/* Get the maximum number of buffers that was set, or the default. Never returns BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t
doca_rdma_task_receive_get_dst_buf_list_len(const struct doca_rdma *rdma, uint32_t *buf_list_len);

/*
 * Allocate a task that receives one message. The library appends the message to the data of
 * dst_buf, which may be a list. If dst_buf is NULL, the task can receive only empty messages.
 * Errors:
 *     NO_MEMORY  all tasks are allocated
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_task_receive_allocate_init(
	struct doca_rdma *rdma, struct doca_buf *dst_buf, union doca_data user_data,
	struct doca_rdma_task_receive **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_rdma_task_receive_as_task(
	struct doca_rdma_task_receive *task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_EXPERIMENTAL void doca_rdma_task_receive_set_dst_buf(struct doca_rdma_task_receive *task,
							  struct doca_buf *dst_buf);

/* Returns the destination buffer. Its data includes the received message. */
DOCA_EXPERIMENTAL struct doca_buf *doca_rdma_task_receive_get_dst_buf(
	const struct doca_rdma_task_receive *task);

/* Returns the type of the received message. */
DOCA_EXPERIMENTAL enum doca_rdma_opcode doca_rdma_task_receive_get_result_opcode(
	const struct doca_rdma_task_receive *task);

/* Returns the length of the received message, in bytes. */
DOCA_EXPERIMENTAL uint32_t
doca_rdma_task_receive_get_result_len(const struct doca_rdma_task_receive *task);

/* Returns the immediate data of the message. Valid only for the two _WITH_IMM types. */
DOCA_EXPERIMENTAL doca_be32_t
doca_rdma_task_receive_get_result_immediate_data(const struct doca_rdma_task_receive *task);

/* Returns the connection of the message. Call in the completion callback. */
DOCA_EXPERIMENTAL const struct doca_rdma_connection *
doca_rdma_task_receive_get_result_rdma_connection(const struct doca_rdma_task_receive *task);

/* Returns SUCCESS if the device supports send tasks, NOT_SUPPORTED if not. */
DOCA_EXPERIMENTAL doca_error_t
doca_rdma_cap_task_send_is_supported(const struct doca_devinfo *devinfo);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_task_send_set_conf(
	struct doca_rdma *rdma, doca_rdma_task_send_completion_cb_t successful_task_completion_cb,
	doca_rdma_task_send_completion_cb_t error_task_completion_cb, uint32_t num_tasks);

/*
 * Allocate a task that sends the data of src_buf as one message. src_buf may be a list, or NULL for
 * an empty message. The task waits until the peer has a receive task.
 * Errors:
 *     NO_MEMORY  all tasks are allocated
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_task_send_allocate_init(
	struct doca_rdma *rdma, struct doca_rdma_connection *rdma_connection,
	const struct doca_buf *src_buf, union doca_data user_data,
	struct doca_rdma_task_send **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_rdma_task_send_as_task(struct doca_rdma_task_send *task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_EXPERIMENTAL void doca_rdma_task_send_set_src_buf(struct doca_rdma_task_send *task,
						       const struct doca_buf *src_buf);
DOCA_EXPERIMENTAL const struct doca_buf *doca_rdma_task_send_get_src_buf(
	const struct doca_rdma_task_send *task);
DOCA_EXPERIMENTAL void doca_rdma_task_send_set_rdma_connection(
	struct doca_rdma_task_send *task, struct doca_rdma_connection *rdma_connection);
DOCA_EXPERIMENTAL const struct doca_rdma_connection *doca_rdma_task_send_get_rdma_connection(
	const struct doca_rdma_task_send *task);

/* Returns SUCCESS if the device supports send tasks with immediate data, NOT_SUPPORTED if not. */
DOCA_EXPERIMENTAL doca_error_t
doca_rdma_cap_task_send_imm_is_supported(const struct doca_devinfo *devinfo);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_task_send_imm_set_conf(
	struct doca_rdma *rdma,
	doca_rdma_task_send_imm_completion_cb_t successful_task_completion_cb,
	doca_rdma_task_send_imm_completion_cb_t error_task_completion_cb, uint32_t num_tasks);

/*
 * Like doca_rdma_task_send_allocate_init(), with 32 bits of immediate data in network byte order.
 * Errors:
 *     NO_MEMORY  all tasks are allocated
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_task_send_imm_allocate_init(
	struct doca_rdma *rdma, struct doca_rdma_connection *rdma_connection,
	const struct doca_buf *src_buf, doca_be32_t immediate_data, union doca_data user_data,
	struct doca_rdma_task_send_imm **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_rdma_task_send_imm_as_task(
	struct doca_rdma_task_send_imm *task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_EXPERIMENTAL void doca_rdma_task_send_imm_set_src_buf(struct doca_rdma_task_send_imm *task,
							   const struct doca_buf *src_buf);
DOCA_EXPERIMENTAL const struct doca_buf *doca_rdma_task_send_imm_get_src_buf(
	const struct doca_rdma_task_send_imm *task);
DOCA_EXPERIMENTAL void doca_rdma_task_send_imm_set_immediate_data(
	struct doca_rdma_task_send_imm *task, doca_be32_t immediate_data);
DOCA_EXPERIMENTAL doca_be32_t
doca_rdma_task_send_imm_get_immediate_data(const struct doca_rdma_task_send_imm *task);
DOCA_EXPERIMENTAL void doca_rdma_task_send_imm_set_rdma_connection(
	struct doca_rdma_task_send_imm *task, struct doca_rdma_connection *rdma_connection);
DOCA_EXPERIMENTAL const struct doca_rdma_connection *doca_rdma_task_send_imm_get_rdma_connection(
	const struct doca_rdma_task_send_imm *task);

/* Returns SUCCESS if the device supports read tasks, NOT_SUPPORTED if not. */
DOCA_EXPERIMENTAL doca_error_t
doca_rdma_cap_task_read_is_supported(const struct doca_devinfo *devinfo);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_task_read_set_conf(
	struct doca_rdma *rdma, doca_rdma_task_read_completion_cb_t successful_task_completion_cb,
	doca_rdma_task_read_completion_cb_t error_task_completion_cb, uint32_t num_tasks);

/*
 * Allocate a task that reads memory of the peer. src_buf refers to an imported map. The task
 * appends the data part of src_buf to the data of dst_buf.
 * Errors:
 *     NO_MEMORY  all tasks are allocated
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_task_read_allocate_init(
	struct doca_rdma *rdma, struct doca_rdma_connection *rdma_connection,
	const struct doca_buf *src_buf, struct doca_buf *dst_buf, union doca_data user_data,
	struct doca_rdma_task_read **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_rdma_task_read_as_task(struct doca_rdma_task_read *task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_EXPERIMENTAL void doca_rdma_task_read_set_src_buf(struct doca_rdma_task_read *task,
						       const struct doca_buf *src_buf);
DOCA_EXPERIMENTAL const struct doca_buf *doca_rdma_task_read_get_src_buf(
	const struct doca_rdma_task_read *task);
DOCA_EXPERIMENTAL void doca_rdma_task_read_set_dst_buf(struct doca_rdma_task_read *task,
						       struct doca_buf *dst_buf);
DOCA_EXPERIMENTAL struct doca_buf *doca_rdma_task_read_get_dst_buf(
	const struct doca_rdma_task_read *task);
DOCA_EXPERIMENTAL uint32_t
doca_rdma_task_read_get_result_len(const struct doca_rdma_task_read *task);
DOCA_EXPERIMENTAL void doca_rdma_task_read_set_rdma_connection(
	struct doca_rdma_task_read *task, struct doca_rdma_connection *rdma_connection);
DOCA_EXPERIMENTAL const struct doca_rdma_connection *doca_rdma_task_read_get_rdma_connection(
	const struct doca_rdma_task_read *task);

/* Returns SUCCESS if the device supports write tasks, NOT_SUPPORTED if not. */
DOCA_EXPERIMENTAL doca_error_t
doca_rdma_cap_task_write_is_supported(const struct doca_devinfo *devinfo);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_task_write_set_conf(
	struct doca_rdma *rdma, doca_rdma_task_write_completion_cb_t successful_task_completion_cb,
	doca_rdma_task_write_completion_cb_t error_task_completion_cb, uint32_t num_tasks);

/*
 * Allocate a task that writes the data of src_buf to memory of the peer. dst_buf refers to an
 * imported map. The task writes behind the data part of dst_buf, and does not extend that part.
 * Errors:
 *     NO_MEMORY  all tasks are allocated
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_task_write_allocate_init(
	struct doca_rdma *rdma, struct doca_rdma_connection *rdma_connection,
	const struct doca_buf *src_buf, struct doca_buf *dst_buf, union doca_data user_data,
	struct doca_rdma_task_write **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_rdma_task_write_as_task(struct doca_rdma_task_write *task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_EXPERIMENTAL void doca_rdma_task_write_set_src_buf(struct doca_rdma_task_write *task,
							const struct doca_buf *src_buf);
DOCA_EXPERIMENTAL const struct doca_buf *doca_rdma_task_write_get_src_buf(
	const struct doca_rdma_task_write *task);
DOCA_EXPERIMENTAL void doca_rdma_task_write_set_dst_buf(struct doca_rdma_task_write *task,
							struct doca_buf *dst_buf);
DOCA_EXPERIMENTAL struct doca_buf *doca_rdma_task_write_get_dst_buf(
	const struct doca_rdma_task_write *task);
DOCA_EXPERIMENTAL void doca_rdma_task_write_set_rdma_connection(
	struct doca_rdma_task_write *task, struct doca_rdma_connection *rdma_connection);
DOCA_EXPERIMENTAL const struct doca_rdma_connection *doca_rdma_task_write_get_rdma_connection(
	const struct doca_rdma_task_write *task);

/* Returns SUCCESS if the device supports write tasks with immediate data, NOT_SUPPORTED if not. */
DOCA_EXPERIMENTAL doca_error_t
doca_rdma_cap_task_write_imm_is_supported(const struct doca_devinfo *devinfo);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_task_write_imm_set_conf(
	struct doca_rdma *rdma,
	doca_rdma_task_write_imm_completion_cb_t successful_task_completion_cb,
	doca_rdma_task_write_imm_completion_cb_t error_task_completion_cb, uint32_t num_tasks);

/*
 * Like doca_rdma_task_write_allocate_init(). In addition, a receive task of the peer completes with
 * the immediate data.
 * Errors:
 *     NO_MEMORY  all tasks are allocated
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_task_write_imm_allocate_init(
	struct doca_rdma *rdma, struct doca_rdma_connection *rdma_connection,
	const struct doca_buf *src_buf, struct doca_buf *dst_buf, doca_be32_t immediate_data,
	union doca_data user_data, struct doca_rdma_task_write_imm **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_rdma_task_write_imm_as_task(
	struct doca_rdma_task_write_imm *task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_EXPERIMENTAL void doca_rdma_task_write_imm_set_src_buf(struct doca_rdma_task_write_imm *task,
							    const struct doca_buf *src_buf);
DOCA_EXPERIMENTAL const struct doca_buf *doca_rdma_task_write_imm_get_src_buf(
	const struct doca_rdma_task_write_imm *task);
DOCA_EXPERIMENTAL void doca_rdma_task_write_imm_set_dst_buf(struct doca_rdma_task_write_imm *task,
							    struct doca_buf *dst_buf);
DOCA_EXPERIMENTAL struct doca_buf *doca_rdma_task_write_imm_get_dst_buf(
	const struct doca_rdma_task_write_imm *task);
DOCA_EXPERIMENTAL void doca_rdma_task_write_imm_set_immediate_data(
	struct doca_rdma_task_write_imm *task, doca_be32_t immediate_data);
DOCA_EXPERIMENTAL doca_be32_t
doca_rdma_task_write_imm_get_immediate_data(const struct doca_rdma_task_write_imm *task);
DOCA_EXPERIMENTAL void doca_rdma_task_write_imm_set_rdma_connection(
	struct doca_rdma_task_write_imm *task, struct doca_rdma_connection *rdma_connection);
DOCA_EXPERIMENTAL const struct doca_rdma_connection *doca_rdma_task_write_imm_get_rdma_connection(
	const struct doca_rdma_task_write_imm *task);

#ifdef __cplusplus
}
#endif

#endif
