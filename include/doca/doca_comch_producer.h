/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_comch_producer.h - producers: send queues of a Comch connection
 *
 * A producer sends data to the receives that a consumer of the peer has posted.
 */
#ifndef DOCA_COMCH_PRODUCER_H
#define DOCA_COMCH_PRODUCER_H

#include <stddef.h>
#include <stdint.h>

#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doca_buf;
struct doca_comch_connection;
struct doca_comch_producer;
struct doca_comch_producer_task_send;
struct doca_dev;
struct doca_devinfo;
struct doca_dpa_completion;
struct doca_dpa_thread;

/*
 * Completion callbacks: the program owns the task again, and submits or frees it. The library
 * passes the user data of the task and of the context. Thread: in doca_pe_progress().
 */
typedef void (*doca_comch_producer_task_send_completion_cb_t)(
	struct doca_comch_producer_task_send *task, union doca_data task_user_data,
	union doca_data ctx_user_data);
typedef uint64_t doca_dpa_dev_comch_producer_t;

/*
 * Create a producer on an established connection.
 * Errors:
 *     BAD_STATE      the connection is not established, or has ended
 *     NO_MEMORY      memory allocation failed
 *     NOT_PERMITTED  never returned
 */
DOCA_STABLE doca_error_t doca_comch_producer_create(struct doca_comch_connection *comch_connection,
						    struct doca_comch_producer **producer);

/*
 * Destroy the producer.
 * Errors:
 *     IN_USE  the context is not idle
 */
DOCA_STABLE doca_error_t doca_comch_producer_destroy(struct doca_comch_producer *producer);

/* Returns SUCCESS if the device supports producers, NOT_SUPPORTED if not. */
DOCA_STABLE doca_error_t doca_comch_producer_cap_is_supported(const struct doca_devinfo *devinfo);

/*
 * Get the id of the producer, which is unique among the producers of this side of the connection.
 * The consumer gets it with each message.
 */
DOCA_STABLE doca_error_t doca_comch_producer_get_id(const struct doca_comch_producer *producer,
						    uint32_t *id);

/* Get the maximum number of send tasks of a producer. */
DOCA_STABLE doca_error_t doca_comch_producer_cap_get_max_num_tasks(
	const struct doca_devinfo *devinfo, uint32_t *max_num_tasks);

/*
 * Get the maximum length of a message, in bytes.
 * Errors:
 *     NOT_SUPPORTED  the device does not support Comch
 */
DOCA_STABLE doca_error_t doca_comch_producer_cap_get_max_buf_size(
	const struct doca_devinfo *devinfo, uint32_t *max_buf_size);

/*
 * Get the maximum number of buffers in a list.
 * Errors:
 *     NOT_SUPPORTED  the device does not support Comch
 */
DOCA_STABLE doca_error_t doca_comch_producer_cap_get_max_buf_list_len(
	const struct doca_devinfo *devinfo, uint32_t *max_buf_list_len);

/* Get the maximum number of producers. */
DOCA_STABLE doca_error_t doca_comch_producer_cap_get_max_producers(
	const struct doca_devinfo *devinfo, uint32_t *max_producers);

/* Returns the object as a context, valid until the object is destroyed. Returns NULL for NULL. */
DOCA_STABLE struct doca_ctx *doca_comch_producer_as_ctx(struct doca_comch_producer *producer);

/*
 * Set the maximum number of sends in flight, for a producer on an emulated DPA. Call before start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_comch_producer_set_dev_max_num_send(
	struct doca_comch_producer *producer, uint32_t dev_num_send);

/*
 * Set the completion queue of a producer on an emulated DPA. Call once, before start.
 * Errors:
 *     BAD_STATE      the context is started
 *     NOT_PERMITTED  the producer has a completion queue already
 */
DOCA_EXPERIMENTAL doca_error_t doca_comch_producer_dpa_completion_attach(
	struct doca_comch_producer *producer, struct doca_dpa_completion *dpa_comp);

/*
 * Get the handle of a running producer for code on an emulated DPA.
 * Errors:
 *     BAD_STATE  the producer is not on a DPA, or does not run
 */
DOCA_EXPERIMENTAL doca_error_t doca_comch_producer_get_dpa_handle(
	struct doca_comch_producer *producer, doca_dpa_dev_comch_producer_t *dpa_producer);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     BAD_STATE  the context is started
 * Status of a task that failed:
 *     SHUTDOWN          the program stopped the producer
 *     CONNECTION_RESET  the peer disconnected or died before it had read the data
 *     NOT_CONNECTED     the peer stopped the consumer before it had read the data
 *     NOT_FOUND         the peer has no such consumer
 *     INVALID_VALUE     the data or the immediate data exceeds the limit of the consumer, or the
 *                       buffer cannot be sent
 */
DOCA_STABLE doca_error_t doca_comch_producer_task_send_set_conf(
	struct doca_comch_producer *producer,
	doca_comch_producer_task_send_completion_cb_t task_completion_cb,
	doca_comch_producer_task_send_completion_cb_t task_error_cb, uint32_t num_send_tasks);

/*
 * Allocate a task that sends a buffer and immediate data to a consumer of the peer. buf may be
 * NULL. imm_data_len: bytes, at most 32. The library copies the immediate data in this call.
 * doca_task_submit() returns AGAIN while the consumer has no receive posted, and NOT_CONNECTED
 * after the consumer or the peer has ended.
 * Errors:
 *     NO_MEMORY  all tasks are allocated
 */
DOCA_STABLE doca_error_t doca_comch_producer_task_send_alloc_init(
	struct doca_comch_producer *producer, const struct doca_buf *buf, uint8_t *imm_data,
	uint32_t imm_data_len, uint32_t consumer_id, struct doca_comch_producer_task_send **task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_STABLE const struct doca_buf *doca_comch_producer_task_send_get_buf(
	const struct doca_comch_producer_task_send *task);
DOCA_STABLE void doca_comch_producer_task_send_set_buf(struct doca_comch_producer_task_send *task,
						       const struct doca_buf *buf);
DOCA_STABLE uint32_t
doca_comch_producer_task_send_get_consumer_id(const struct doca_comch_producer_task_send *task);
DOCA_STABLE void doca_comch_producer_task_send_set_consumer_id(
	struct doca_comch_producer_task_send *task, const uint32_t consumer_id);
DOCA_STABLE uint8_t *doca_comch_producer_task_send_get_imm_data(
	const struct doca_comch_producer_task_send *task);
DOCA_STABLE uint32_t
doca_comch_producer_task_send_get_imm_data_len(const struct doca_comch_producer_task_send *task);
DOCA_STABLE void doca_comch_producer_task_send_set_imm_data(
	struct doca_comch_producer_task_send *task, uint8_t *imm_data, uint32_t imm_data_len);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_STABLE struct doca_task *doca_comch_producer_task_send_as_task(
	struct doca_comch_producer_task_send *task);

#ifdef __cplusplus
}
#endif

#endif
