/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_comch_msgq.h - consumers and producers between the CPU and an emulated DPA */
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

/* A queue between this process and a DPA, which is a thread of it here. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_create(struct doca_dev *dev,
						      struct doca_comch_msgq **msgq);

/* BAD_STATE when it is not stopped. */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_destroy(struct doca_comch_msgq *msgq);

/*
 * Before start, else BAD_STATE: consumers are on that DPA, producers here. NOT_PERMITTED: it has
 * its direction already.
 */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_set_dpa_consumer(struct doca_comch_msgq *msgq,
								struct doca_dpa *dpa);

/* Before start, else BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_set_max_num_consumers(struct doca_comch_msgq *msgq,
								     uint32_t max_num_consumers);

/*
 * Before start, else BAD_STATE: producers are on that DPA, consumers here. NOT_PERMITTED: it has
 * its direction already.
 */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_set_dpa_producer(struct doca_comch_msgq *msgq,
								struct doca_dpa *dpa);

/* Before start, else BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_set_max_num_producers(struct doca_comch_msgq *msgq,
								     uint32_t max_num_producers);

/*
 * From now on consumers and producers can be made. BAD_STATE without a direction, and before the
 * DPA is started.
 */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_start(struct doca_comch_msgq *msgq);

/* IN_USE until they are destroyed; BAD_STATE when it is not started. */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_stop(struct doca_comch_msgq *msgq);

/*
 * A consumer of a started queue, else BAD_STATE; destroyed as those of a connection are. NO_MEMORY:
 * it has all it may have.
 */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_consumer_create(
	struct doca_comch_msgq *msgq, struct doca_comch_consumer **consumer);

/*
 * A producer of a started queue, else BAD_STATE; destroyed as those of a connection are. NO_MEMORY:
 * it has all it may have.
 */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_producer_create(
	struct doca_comch_msgq *msgq, struct doca_comch_producer **producer);

#ifdef __cplusplus
}
#endif

#endif
