/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_comch_msgq.h - message queues between the CPU and an emulated DPA, each in one direction */
#ifndef DOCA_COMCH_MSGQ_H
#define DOCA_COMCH_MSGQ_H

#include <stddef.h>
#include <stdint.h>

#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doca_comch_consumer;
struct doca_comch_msgq;
struct doca_comch_producer;
struct doca_dev;
struct doca_dpa;

/*
 * Create a queue between the CPU and a DPA.
 * Errors:
 *     NO_MEMORY  memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_create(struct doca_dev *dev,
						      struct doca_comch_msgq **msgq);

/*
 * Destroy the queue.
 * Errors:
 *     BAD_STATE  the queue is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_destroy(struct doca_comch_msgq *msgq);

/*
 * Set the direction: consumers are on the DPA, producers on the CPU. Call before start.
 * Errors:
 *     BAD_STATE      the queue is started
 *     NOT_PERMITTED  the queue has a direction already
 */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_set_dpa_consumer(struct doca_comch_msgq *msgq,
								struct doca_dpa *dpa);

/*
 * Set the maximum number of consumers of the queue. Call before start.
 * Errors:
 *     BAD_STATE  the queue is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_set_max_num_consumers(struct doca_comch_msgq *msgq,
								     uint32_t max_num_consumers);

/*
 * Set the direction: producers are on the DPA, consumers on the CPU. Call before start.
 * Errors:
 *     BAD_STATE      the queue is started
 *     NOT_PERMITTED  the queue has a direction already
 */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_set_dpa_producer(struct doca_comch_msgq *msgq,
								struct doca_dpa *dpa);

/*
 * Set the maximum number of producers of the queue. Call before start.
 * Errors:
 *     BAD_STATE  the queue is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_set_max_num_producers(struct doca_comch_msgq *msgq,
								     uint32_t max_num_producers);

/*
 * Start the queue. Required before consumers and producers are created.
 * Errors:
 *     BAD_STATE  the queue is started or has no direction, or its DPA is not started
 */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_start(struct doca_comch_msgq *msgq);

/*
 * Stop the queue.
 * Errors:
 *     IN_USE     consumers or producers of the queue exist
 *     BAD_STATE  the queue is not started
 */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_stop(struct doca_comch_msgq *msgq);

/*
 * Create a consumer. Destroy it by doca_comch_consumer_destroy().
 * Errors:
 *     BAD_STATE  the queue is not started
 *     NO_MEMORY  the maximum number of consumers exists, or memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_consumer_create(
	struct doca_comch_msgq *msgq, struct doca_comch_consumer **consumer);

/*
 * Create a producer. Destroy it by doca_comch_producer_destroy().
 * Errors:
 *     BAD_STATE  the queue is not started
 *     NO_MEMORY  the maximum number of producers exists, or memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_producer_create(
	struct doca_comch_msgq *msgq, struct doca_comch_producer **producer);

#ifdef __cplusplus
}
#endif

#endif
