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

/* A queue between this process and a DPA, which is a thread of it here. */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_create(struct doca_dev *dev, struct doca_comch_msgq **msgq);

/* It must be stopped. */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_destroy(struct doca_comch_msgq *msgq);

/* Before start: consumers are on that DPA, producers here. */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_set_dpa_consumer(struct doca_comch_msgq *msgq, struct doca_dpa *dpa);

/* Before start. */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_set_max_num_consumers(struct doca_comch_msgq *msgq,
		uint32_t max_num_consumers);

/* Before start: producers are on that DPA, consumers here. */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_set_dpa_producer(struct doca_comch_msgq *msgq, struct doca_dpa *dpa);

/* Before start. */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_set_max_num_producers(struct doca_comch_msgq *msgq,
		uint32_t max_num_producers);

/* From now on consumers and producers can be made. */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_start(struct doca_comch_msgq *msgq);

/* They must be gone. */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_stop(struct doca_comch_msgq *msgq);

/* A consumer of the queue; destroyed as those of a connection are. */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_consumer_create(struct doca_comch_msgq *msgq,
		struct doca_comch_consumer **consumer);

/* A producer of the queue; destroyed as those of a connection are. */
DOCA_EXPERIMENTAL doca_error_t doca_comch_msgq_producer_create(struct doca_comch_msgq *msgq,
		struct doca_comch_producer **producer);

#ifdef __cplusplus
}
#endif

#endif
