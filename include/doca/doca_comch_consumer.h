/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_comch_consumer.h - the fast path of Comch: the side that receives */
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

typedef void (*doca_comch_consumer_task_post_recv_completion_cb_t)(
	struct doca_comch_consumer_task_post_recv *task, union doca_data task_user_data,
	union doca_data ctx_user_data);
typedef uint64_t doca_dpa_dev_comch_consumer_completion_t;
typedef uint64_t doca_dpa_dev_comch_consumer_t;

/*
 * On an established connection, else BAD_STATE. All its buffers come from that map, which the peer
 * may write (PCI_READ_WRITE). Errors: NO_MEMORY, NOT_PERMITTED.
 */
DOCA_STABLE doca_error_t doca_comch_consumer_create(struct doca_comch_connection *comch_connection,
						    struct doca_mmap *buf_mmap,
						    struct doca_comch_consumer **consumer);

/* It must be idle, else IN_USE. */
DOCA_STABLE doca_error_t doca_comch_consumer_destroy(struct doca_comch_consumer *consumer);

/* SUCCESS when the device can do it, NOT_SUPPORTED when not. */
DOCA_STABLE doca_error_t doca_comch_consumer_cap_is_supported(const struct doca_devinfo *devinfo);

/* By this the peer sends to it; no other consumer of the connection has it. */
DOCA_STABLE doca_error_t doca_comch_consumer_get_id(const struct doca_comch_consumer *consumer,
						    uint32_t *id);

/* The most that the device takes. */
DOCA_STABLE doca_error_t doca_comch_consumer_cap_get_max_num_tasks(
	const struct doca_devinfo *devinfo, uint32_t *max_num_tasks);

/* Longest message, in bytes. Errors: NOT_SUPPORTED. */
DOCA_STABLE doca_error_t doca_comch_consumer_cap_get_max_buf_size(
	const struct doca_devinfo *devinfo, uint32_t *max_buf_size);

/* How many buffers in a list. Errors: NOT_SUPPORTED. */
DOCA_STABLE doca_error_t doca_comch_consumer_cap_get_max_buf_list_len(
	const struct doca_devinfo *devinfo, uint32_t *max_buf_list_len);

/* The most that the device takes. */
DOCA_STABLE doca_error_t doca_comch_consumer_cap_get_max_consumers(
	const struct doca_devinfo *devinfo, uint32_t *max_consumers);

/* Most bytes of immediate data. */
DOCA_STABLE doca_error_t doca_comch_consumer_cap_get_max_imm_data_len(
	const struct doca_devinfo *devinfo, uint32_t *max_imm_data_len);

/* What was set, or the default. */
DOCA_STABLE doca_error_t doca_comch_consumer_get_imm_data_len(
	const struct doca_comch_consumer *consumer, uint32_t *imm_data_len);

/* Before start: most bytes of immediate data that it takes. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t doca_comch_consumer_set_imm_data_len(struct doca_comch_consumer *consumer,
							      uint32_t imm_data_len);

/* The object as a context, until it is destroyed. NULL for NULL. */
DOCA_STABLE struct doca_ctx *doca_comch_consumer_as_ctx(struct doca_comch_consumer *consumer);

/*
 * For the side on an emulated DPA: where code there finds the messages of some consumers. What is
 * set is set before start, else BAD_STATE; it has a handle after start, else BAD_STATE. IN_USE:
 * stop and destroy while there are consumers with it. create and start: NO_MEMORY.
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

/* For the side on an emulated DPA. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_comch_consumer_completion_set_imm_data_len(
	struct doca_comch_consumer_completion *consumer_comp, uint32_t imm_data_len);

/* For the side on an emulated DPA. */
DOCA_EXPERIMENTAL doca_error_t doca_comch_consumer_completion_get_imm_data_len(
	const struct doca_comch_consumer_completion *consumer_comp, uint32_t *imm_data_len);

/* Before start, else BAD_STATE: how many messages may wait for the DPA. */
DOCA_EXPERIMENTAL doca_error_t doca_comch_consumer_set_dev_max_num_recv(
	struct doca_comch_consumer *consumer, uint32_t dev_num_recv);

/*
 * Before start, else BAD_STATE, and once, else NOT_PERMITTED. FULL: it is that of as many consumers
 * as it takes.
 */
DOCA_EXPERIMENTAL doca_error_t doca_comch_consumer_set_completion(
	struct doca_comch_consumer *consumer, struct doca_comch_consumer_completion *consumer_comp,
	uint32_t user_data);

/* After start: the consumer as code on an emulated DPA names it. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_comch_consumer_get_dpa_handle(
	struct doca_comch_consumer *consumer, doca_dpa_dev_comch_consumer_t *dpa_consumer);

/*
 * Before start: callbacks of success and of failure, and how many tasks there will be. Errors:
 * BAD_STATE.
 * Status of a task that failed:
 *     SHUTDOWN          the program stopped the consumer
 *     CONNECTION_RESET  the peer left or died, and all that it had sent before is received. Later
 *                       tasks fail likewise
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
 * Take a task for one message. buf may be NULL when only immediate data comes. Errors: NO_MEMORY.
 */
DOCA_STABLE doca_error_t doca_comch_consumer_task_post_recv_alloc_init(
	struct doca_comch_consumer *consumer, struct doca_buf *buf,
	struct doca_comch_consumer_task_post_recv **task);

/* Its buffer. A message is put behind the data that is in it. */
DOCA_STABLE struct doca_buf *doca_comch_consumer_task_post_recv_get_buf(
	const struct doca_comch_consumer_task_post_recv *task);

/* While it is not submitted. */
DOCA_STABLE void doca_comch_consumer_task_post_recv_set_buf(
	struct doca_comch_consumer_task_post_recv *task, struct doca_buf *buf);

/* Who sent the message; 0 before one came. */
DOCA_STABLE uint32_t doca_comch_consumer_task_post_recv_get_producer_id(
	const struct doca_comch_consumer_task_post_recv *task);

/* Immediate data of the message, while the task is the caller's; NULL: none. */
DOCA_STABLE const uint8_t *doca_comch_consumer_task_post_recv_get_imm_data(
	const struct doca_comch_consumer_task_post_recv *task);

/* Bytes of it. */
DOCA_STABLE uint32_t doca_comch_consumer_task_post_recv_get_imm_data_len(
	const struct doca_comch_consumer_task_post_recv *task);

/* The task as a task of any kind; the same object. */
DOCA_STABLE struct doca_task *doca_comch_consumer_task_post_recv_as_task(
	struct doca_comch_consumer_task_post_recv *task);

#ifdef __cplusplus
}
#endif

#endif
