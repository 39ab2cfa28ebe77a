/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_dpa_dev_comch_msgq.h - functions for code on the emulated DPA: consumers and producers of a
 * MsgQ
 */
#ifndef DOCA_DPA_DEV_COMCH_MSGQ_H
#define DOCA_DPA_DEV_COMCH_MSGQ_H

#include <stddef.h>
#include <stdint.h>

#include <doca_compat.h>
#include <doca_comch_consumer.h>
#include <doca_comch_producer.h>
#include <doca_mmap.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t doca_dpa_dev_comch_consumer_completion_element_t;

/* -- messages from the CPU -- */

/* Get the next message. Returns 1, or 0 if there is none. */
DOCA_EXPERIMENTAL int doca_dpa_dev_comch_consumer_get_completion(
	doca_dpa_dev_comch_consumer_completion_t consumer_comp_handle,
	doca_dpa_dev_comch_consumer_completion_element_t *comp_element);

/*
 * Returns the message and its length in bytes, at most 32. Valid until the message is acknowledged.
 */
DOCA_EXPERIMENTAL const uint8_t *doca_dpa_dev_comch_consumer_get_completion_imm(
	doca_dpa_dev_comch_consumer_completion_element_t comp_element, uint32_t *imm_len);

/* Returns the id of the producer that sent the message, see doca_comch_producer_get_id(). */
DOCA_EXPERIMENTAL uint32_t doca_dpa_dev_comch_consumer_get_completion_producer_id(
	doca_dpa_dev_comch_consumer_completion_element_t comp_element);

/* Returns the user_data of the consumer, as set by doca_comch_consumer_set_completion(). */
DOCA_EXPERIMENTAL uint32_t doca_dpa_dev_comch_consumer_get_completion_consumer_user_data(
	doca_dpa_dev_comch_consumer_completion_element_t comp_element);

/* Acknowledge the oldest completions: the library may reuse their entries. */
DOCA_EXPERIMENTAL void doca_dpa_dev_comch_consumer_completion_ack(
	doca_dpa_dev_comch_consumer_completion_t consumer_comp_handle, uint32_t num_comp);

/* Request one activation of the thread of the queue as soon as the queue has a completion. */
DOCA_EXPERIMENTAL void doca_dpa_dev_comch_consumer_completion_request_notification(
	doca_dpa_dev_comch_consumer_completion_t consumer_comp_handle);

/*
 * Add num_msg credits: the consumer accepts that many more messages. The sum is limited to the size
 * of its queue.
 */
DOCA_EXPERIMENTAL void doca_dpa_dev_comch_consumer_ack(
	doca_dpa_dev_comch_consumer_t consumer_handle, uint32_t num_msg);

/* -- messages to the CPU -- */

/*
 * Send at most 32 bytes. If the consumer has no receive posted, the caller waits for one.
 * completion_requested: the completion queue of the producer reports the arrival, if the queue has
 * a free entry.
 */
DOCA_EXPERIMENTAL void doca_dpa_dev_comch_producer_post_send_imm_only(
	doca_dpa_dev_comch_producer_t producer_handle, uint32_t consumer_id, const uint8_t *imm,
	uint32_t imm_len, uint8_t completion_requested);

/*
 * Copy length bytes between two maps, then send like
 * doca_dpa_dev_comch_producer_post_send_imm_only(). The addresses must be in the range of their
 * map, and the ranges must not overlap. Otherwise the library logs an error and sends nothing.
 */
DOCA_EXPERIMENTAL void doca_dpa_dev_comch_producer_dma_copy(
	doca_dpa_dev_comch_producer_t producer_handle, uint32_t consumer_id,
	doca_dpa_dev_mmap_t dst_mmap, uint64_t dst_addr, doca_dpa_dev_mmap_t src_mmap,
	uint64_t src_addr, size_t length, const uint8_t *imm, uint32_t imm_len,
	uint8_t completion_requested);

/* Returns 1 if the consumer has no receive posted, else 0. */
DOCA_EXPERIMENTAL int doca_dpa_dev_comch_producer_is_consumer_empty(
	doca_dpa_dev_comch_producer_t producer_handle, uint32_t consumer_id);

#ifdef __cplusplus
}
#endif

#endif
