/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_comch_consumer.h - consumers: receive queues of a Comch connection
 *
 * A consumer posts receive tasks. Producers of the peer fill their buffers. The engine of the
 * server or client announces a consumer to the peer after its start.
 */
#ifndef DOCA_COMCH_CONSUMER_H
#define DOCA_COMCH_CONSUMER_H

#include <stddef.h>
#include <stdint.h>

#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doca_buf;
struct doca_comch_connection;
struct doca_comch_consumer;
struct doca_comch_consumer_completion;
struct doca_comch_consumer_task_post_recv;
struct doca_dev;
struct doca_devinfo;
struct doca_dpa_thread;
struct doca_mmap;

/*
 * Completion callbacks: the program owns the task again, and submits or frees it. The library
 * passes the user data of the task and of the context. Thread: in doca_pe_progress().
 */
typedef void (*doca_comch_consumer_task_post_recv_completion_cb_t)(
	struct doca_comch_consumer_task_post_recv *task, union doca_data task_user_data,
	union doca_data ctx_user_data);
typedef uint64_t doca_dpa_dev_comch_consumer_completion_t;
typedef uint64_t doca_dpa_dev_comch_consumer_t;

/*
 * Create a consumer on an established connection. All its buffers must refer to buf_mmap, which
 * must permit writes by the peer (PCI_READ_WRITE).
 * Errors:
 *     BAD_STATE      the connection is not established, or has ended
 *     NOT_PERMITTED  the map does not permit writes by the peer
 *     INVALID_VALUE  also if the map is not for the device of the connection
 *     NO_MEMORY      memory allocation failed
 */
DOCA_STABLE doca_error_t doca_comch_consumer_create(struct doca_comch_connection *comch_connection,
						    struct doca_mmap *buf_mmap,
						    struct doca_comch_consumer **consumer);

/*
 * Destroy the consumer.
 * Errors:
 *     IN_USE  the context is not idle
 */
DOCA_STABLE doca_error_t doca_comch_consumer_destroy(struct doca_comch_consumer *consumer);

/* Returns SUCCESS if the device supports consumers, NOT_SUPPORTED if not. */
DOCA_STABLE doca_error_t doca_comch_consumer_cap_is_supported(const struct doca_devinfo *devinfo);

/*
 * Get the id of the consumer, which is unique on the connection. Producers of the peer send to this
 * id.
 */
DOCA_STABLE doca_error_t doca_comch_consumer_get_id(const struct doca_comch_consumer *consumer,
						    uint32_t *id);

/* Get the maximum number of receive tasks of a consumer. */
DOCA_STABLE doca_error_t doca_comch_consumer_cap_get_max_num_tasks(
	const struct doca_devinfo *devinfo, uint32_t *max_num_tasks);

/*
 * Get the maximum length of a message, in bytes.
 * Errors:
 *     NOT_SUPPORTED  the device does not support Comch
 */
DOCA_STABLE doca_error_t doca_comch_consumer_cap_get_max_buf_size(
	const struct doca_devinfo *devinfo, uint32_t *max_buf_size);

/*
 * Get the maximum number of buffers in a list.
 * Errors:
 *     NOT_SUPPORTED  the device does not support Comch
 */
DOCA_STABLE doca_error_t doca_comch_consumer_cap_get_max_buf_list_len(
	const struct doca_devinfo *devinfo, uint32_t *max_buf_list_len);

/* Get the maximum number of consumers. */
DOCA_STABLE doca_error_t doca_comch_consumer_cap_get_max_consumers(
	const struct doca_devinfo *devinfo, uint32_t *max_consumers);

/* Get the maximum length of immediate data, in bytes. */
DOCA_STABLE doca_error_t doca_comch_consumer_cap_get_max_imm_data_len(
	const struct doca_devinfo *devinfo, uint32_t *max_imm_data_len);

/* Get the maximum length of immediate data that was set, or the default, in bytes. */
DOCA_STABLE doca_error_t doca_comch_consumer_get_imm_data_len(
	const struct doca_comch_consumer *consumer, uint32_t *imm_data_len);

/*
 * Set the maximum length of immediate data that the consumer accepts, in bytes. Call before start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_STABLE doca_error_t doca_comch_consumer_set_imm_data_len(struct doca_comch_consumer *consumer,
							      uint32_t imm_data_len);

/* Returns the object as a context, valid until the object is destroyed. Returns NULL for NULL. */
DOCA_STABLE struct doca_ctx *doca_comch_consumer_as_ctx(struct doca_comch_consumer *consumer);

/*
 * Completion queues of consumers on an emulated DPA: code on the DPA polls them for received
 * messages. Call the set functions before start, and get_dpa_handle after start.
 * Errors:
 *     BAD_STATE  a set function or start: the queue is started; stop or get_dpa_handle: the queue
 *                is not started
 *     IN_USE     stop or destroy: consumers use the queue
 *     NO_MEMORY  create or start: memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t
doca_comch_consumer_completion_create(struct doca_comch_consumer_completion **consumer_comp);
DOCA_EXPERIMENTAL doca_error_t doca_comch_consumer_completion_set_dpa_thread(
	struct doca_comch_consumer_completion *consumer_comp, struct doca_dpa_thread *dpa_thread);
DOCA_EXPERIMENTAL doca_error_t
doca_comch_consumer_completion_destroy(struct doca_comch_consumer_completion *consumer_comp);
DOCA_EXPERIMENTAL doca_error_t
doca_comch_consumer_completion_start(struct doca_comch_consumer_completion *consumer_comp);
DOCA_EXPERIMENTAL doca_error_t
doca_comch_consumer_completion_stop(struct doca_comch_consumer_completion *consumer_comp);
DOCA_EXPERIMENTAL doca_error_t doca_comch_consumer_completion_get_dpa_handle(
	struct doca_comch_consumer_completion *consumer_comp,
	doca_dpa_dev_comch_consumer_completion_t *consumer_comp_handle);
DOCA_EXPERIMENTAL doca_error_t doca_comch_consumer_completion_set_max_num_consumers(
	struct doca_comch_consumer_completion *consumer_comp, uint32_t max_num_consumers);
DOCA_EXPERIMENTAL doca_error_t doca_comch_consumer_completion_get_max_num_consumers(
	const struct doca_comch_consumer_completion *consumer_comp, uint32_t *max_num_consumers);
DOCA_EXPERIMENTAL doca_error_t doca_comch_consumer_completion_set_max_num_recv(
	struct doca_comch_consumer_completion *consumer_comp, uint32_t max_num_recv);
DOCA_EXPERIMENTAL doca_error_t doca_comch_consumer_completion_get_max_num_recv(
	const struct doca_comch_consumer_completion *consumer_comp, uint32_t *max_num_recv);

/*
 * Set the maximum length of immediate data, in bytes, for consumers on an emulated DPA. Call before
 * start.
 * Errors:
 *     BAD_STATE  the queue is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_comch_consumer_completion_set_imm_data_len(
	struct doca_comch_consumer_completion *consumer_comp, uint32_t imm_data_len);

/* Get the maximum length of immediate data, in bytes. */
DOCA_EXPERIMENTAL doca_error_t doca_comch_consumer_completion_get_imm_data_len(
	const struct doca_comch_consumer_completion *consumer_comp, uint32_t *imm_data_len);

/*
 * Set how many messages can wait for code on the DPA. Call before start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_comch_consumer_set_dev_max_num_recv(
	struct doca_comch_consumer *consumer, uint32_t dev_num_recv);

/*
 * Set the completion queue of a consumer on an emulated DPA. user_data is stored with each message.
 * Call once, before start.
 * Errors:
 *     BAD_STATE      the context is started
 *     NOT_PERMITTED  the consumer has a completion queue already
 *     FULL           the maximum number of consumers uses the queue
 */
DOCA_EXPERIMENTAL doca_error_t doca_comch_consumer_set_completion(
	struct doca_comch_consumer *consumer, struct doca_comch_consumer_completion *consumer_comp,
	uint32_t user_data);

/*
 * Get the handle of a running consumer for code on an emulated DPA.
 * Errors:
 *     BAD_STATE  the consumer is not on a DPA, or does not run
 */
DOCA_EXPERIMENTAL doca_error_t doca_comch_consumer_get_dpa_handle(
	struct doca_comch_consumer *consumer, doca_dpa_dev_comch_consumer_t *dpa_consumer);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     BAD_STATE  the context is started
 * Status of a task that failed:
 *     SHUTDOWN          the program stopped the consumer
 *     CONNECTION_RESET  the peer disconnected or died, and all messages that it had sent are
 *                       received. Later tasks fail with the same status
 *     INVALID_VALUE     the message is longer than the buffer, or the buffer cannot receive a
 *                       message
 *     IO_FAILED         the library could not read the data
 */
DOCA_STABLE doca_error_t doca_comch_consumer_task_post_recv_set_conf(
	struct doca_comch_consumer *consumer,
	doca_comch_consumer_task_post_recv_completion_cb_t task_completion_cb,
	doca_comch_consumer_task_post_recv_completion_cb_t task_error_cb,
	uint32_t num_post_recv_tasks);

/*
 * Allocate a task that receives one message. buf may be NULL if only immediate data is expected.
 * Errors:
 *     NO_MEMORY  all tasks are allocated
 */
DOCA_STABLE doca_error_t doca_comch_consumer_task_post_recv_alloc_init(
	struct doca_comch_consumer *consumer, struct doca_buf *buf,
	struct doca_comch_consumer_task_post_recv **task);

/* Returns the buffer of the task. The library appends a message to the data of the buffer. */
DOCA_STABLE struct doca_buf *doca_comch_consumer_task_post_recv_get_buf(
	const struct doca_comch_consumer_task_post_recv *task);

/* Set the buffer of the task. Call while the task is not submitted. */
DOCA_STABLE void doca_comch_consumer_task_post_recv_set_buf(
	struct doca_comch_consumer_task_post_recv *task, struct doca_buf *buf);

/* Returns the id of the producer that sent the message, or 0 before completion. */
DOCA_STABLE uint32_t doca_comch_consumer_task_post_recv_get_producer_id(
	const struct doca_comch_consumer_task_post_recv *task);

/*
 * Returns the immediate data of the message, or NULL if there is none. It is valid until the task
 * is submitted again or freed.
 */
DOCA_STABLE const uint8_t *doca_comch_consumer_task_post_recv_get_imm_data(
	const struct doca_comch_consumer_task_post_recv *task);

/* Returns the length of the immediate data, in bytes. */
DOCA_STABLE uint32_t doca_comch_consumer_task_post_recv_get_imm_data_len(
	const struct doca_comch_consumer_task_post_recv *task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_STABLE struct doca_task *doca_comch_consumer_task_post_recv_as_task(
	struct doca_comch_consumer_task_post_recv *task);

#ifdef __cplusplus
}
#endif

#endif
