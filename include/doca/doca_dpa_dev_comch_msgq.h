/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_dpa_dev_comch_msgq.h - consumers and producers of a MsgQ, as code on an emulated DPA uses
 * them
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

/* The next message that was not looked at; 1, or 0 when there is none. */
DOCA_EXPERIMENTAL int doca_dpa_dev_comch_consumer_get_completion(
	doca_dpa_dev_comch_consumer_completion_t consumer_comp_handle,
	doca_dpa_dev_comch_consumer_completion_element_t *comp_element);

/* Its bytes, at most 32, and how many: they live until it is acknowledged. */
DOCA_EXPERIMENTAL const uint8_t *doca_dpa_dev_comch_consumer_get_completion_imm(
	doca_dpa_dev_comch_consumer_completion_element_t comp_element, uint32_t *imm_len);

/* Who sent it, as doca_comch_producer_get_id says. */
DOCA_EXPERIMENTAL uint32_t doca_dpa_dev_comch_consumer_get_completion_producer_id(
	doca_dpa_dev_comch_consumer_completion_element_t comp_element);

/* Which consumer it came to: the user_data of doca_comch_consumer_set_completion. */
DOCA_EXPERIMENTAL uint32_t doca_dpa_dev_comch_consumer_get_completion_consumer_user_data(
	doca_dpa_dev_comch_consumer_completion_element_t comp_element);

/* The oldest of them are done with: their places are free. */
DOCA_EXPERIMENTAL void doca_dpa_dev_comch_consumer_completion_ack(
	doca_dpa_dev_comch_consumer_completion_t consumer_comp_handle, uint32_t num_comp);

/* Activate the thread of it when there is one to look at: once. */
DOCA_EXPERIMENTAL void doca_dpa_dev_comch_consumer_completion_request_notification(
	doca_dpa_dev_comch_consumer_completion_t consumer_comp_handle);

/* The consumer takes so many messages more, but never more at a time than its queue holds. */
DOCA_EXPERIMENTAL void doca_dpa_dev_comch_consumer_ack(
	doca_dpa_dev_comch_consumer_t consumer_handle, uint32_t num_msg);

/* -- messages to the CPU -- */

/*
 * Send at most 32 bytes. The consumer must have a receive posted; when it has none the caller waits
 * for one. completion_requested: a completion of the producer tells that it arrived, if there is
 * room for one.
 */
DOCA_EXPERIMENTAL void doca_dpa_dev_comch_producer_post_send_imm_only(
	doca_dpa_dev_comch_producer_t producer_handle, uint32_t consumer_id, const uint8_t *imm,
	uint32_t imm_len, uint8_t completion_requested);

/*
 * Copy length bytes between two maps, then send as above. Addresses are in the range of their map,
 * and the ranges do not overlap; else a line in the log says so, and nothing is sent.
 */
DOCA_EXPERIMENTAL void doca_dpa_dev_comch_producer_dma_copy(
	doca_dpa_dev_comch_producer_t producer_handle, uint32_t consumer_id,
	doca_dpa_dev_mmap_t dst_mmap, uint64_t dst_addr, doca_dpa_dev_mmap_t src_mmap,
	uint64_t src_addr, size_t length, const uint8_t *imm, uint32_t imm_len,
	uint8_t completion_requested);

/* Has that consumer no receive posted? 1 or 0. */
DOCA_EXPERIMENTAL int doca_dpa_dev_comch_producer_is_consumer_empty(
	doca_dpa_dev_comch_producer_t producer_handle, uint32_t consumer_id);

#ifdef __cplusplus
}
#endif

#endif
