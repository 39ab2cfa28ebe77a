/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_comch_producer.h - the fast path of Comch: the side that sends */
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

typedef void (*doca_comch_producer_task_send_completion_cb_t)(
	struct doca_comch_producer_task_send *task, union doca_data task_user_data,
	union doca_data ctx_user_data);
typedef uint64_t doca_dpa_dev_comch_producer_t;

/* On an established connection, else BAD_STATE. Errors: NO_MEMORY, NOT_PERMITTED. */
DOCA_STABLE doca_error_t doca_comch_producer_create(struct doca_comch_connection *comch_connection,
						    struct doca_comch_producer **producer);

/* It must be idle, else IN_USE. */
DOCA_STABLE doca_error_t doca_comch_producer_destroy(struct doca_comch_producer *producer);

/* SUCCESS when the device can do it, NOT_SUPPORTED when not. */
DOCA_STABLE doca_error_t doca_comch_producer_cap_is_supported(const struct doca_devinfo *devinfo);

/* By this the peer knows it; no other producer of the connection has it. */
DOCA_STABLE doca_error_t doca_comch_producer_get_id(const struct doca_comch_producer *producer,
						    uint32_t *id);

/* The most that the device takes. */
DOCA_STABLE doca_error_t doca_comch_producer_cap_get_max_num_tasks(
	const struct doca_devinfo *devinfo, uint32_t *max_num_tasks);

/* Longest message, in bytes. Errors: NOT_SUPPORTED. */
DOCA_STABLE doca_error_t doca_comch_producer_cap_get_max_buf_size(
	const struct doca_devinfo *devinfo, uint32_t *max_buf_size);

/* How many buffers in a list. Errors: NOT_SUPPORTED. */
DOCA_STABLE doca_error_t doca_comch_producer_cap_get_max_buf_list_len(
	const struct doca_devinfo *devinfo, uint32_t *max_buf_list_len);

/* The most that the device takes. */
DOCA_STABLE doca_error_t doca_comch_producer_cap_get_max_producers(
	const struct doca_devinfo *devinfo, uint32_t *max_producers);

/* The object as a context, until it is destroyed. NULL for NULL. */
DOCA_STABLE struct doca_ctx *doca_comch_producer_as_ctx(struct doca_comch_producer *producer);

/* Before start, else BAD_STATE: how many sends of the side on an emulated DPA may be under way. */
DOCA_EXPERIMENTAL doca_error_t doca_comch_producer_set_dev_max_num_send(
	struct doca_comch_producer *producer, uint32_t dev_num_send);

/*
 * Before start, else BAD_STATE, and once, else NOT_PERMITTED: completions for the side on an
 * emulated DPA.
 */
DOCA_EXPERIMENTAL doca_error_t doca_comch_producer_dpa_completion_attach(
	struct doca_comch_producer *producer, struct doca_dpa_completion *dpa_comp);

/* After start: the producer as code on an emulated DPA names it. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_comch_producer_get_dpa_handle(
	struct doca_comch_producer *producer, doca_dpa_dev_comch_producer_t *dpa_producer);

/*
 * Before start: callbacks of success and of failure, and how many tasks there will be. Errors:
 * BAD_STATE.
 * Status of a task that failed:
 *     SHUTDOWN          the program stopped the producer
 *     CONNECTION_RESET  the peer left or died before it had read the data
 *     NOT_CONNECTED     the peer stopped the consumer before it had read the data
 *     NOT_FOUND         the peer has no such consumer
 *     INVALID_VALUE     the data or the immediate data exceeds the consumer's limit, or the buffer
 *                       cannot be sent
 */
DOCA_STABLE doca_error_t doca_comch_producer_task_send_set_conf(
	struct doca_comch_producer *producer,
	doca_comch_producer_task_send_completion_cb_t task_completion_cb,
	doca_comch_producer_task_send_completion_cb_t task_error_cb, uint32_t num_send_tasks);

/*
 * Take a task: a buffer, or NULL, and immediate data, which is copied, to a consumer of the peer.
 * doca_task_submit returns AGAIN while the consumer has posted nothing, and NOT_CONNECTED after the
 * consumer or the peer has ended.
 * Errors: NO_MEMORY.
 */
DOCA_STABLE doca_error_t doca_comch_producer_task_send_alloc_init(
	struct doca_comch_producer *producer, const struct doca_buf *buf, uint8_t *imm_data,
	uint32_t imm_data_len, uint32_t consumer_id, struct doca_comch_producer_task_send **task);

/* The fields of a task; set while it is not submitted. */
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

/* The task as a task of any kind; the same object. */
DOCA_STABLE struct doca_task *doca_comch_producer_task_send_as_task(
	struct doca_comch_producer_task_send *task);

#ifdef __cplusplus
}
#endif

#endif
