/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by transport.c (control plane) and queues.c (data path) of the fake transport. */
#ifndef FAKE_TRANSPORT_PRIV_H
#define FAKE_TRANSPORT_PRIV_H

#include "transport.h"

/* Returns the result that the test set for this call: 0, or the -errno to return. */
int fake_script(struct fake_transport *ft, enum fake_op op);

int fq_register(void *conn, const struct gantry_region *region);
void fq_unregister(void *conn, const struct gantry_region *region);
int fq_consumer_create(void *conn, const struct gantry_queue_attr *attr, uint32_t *id_p,
		       void **consumer_p);
void fq_consumer_destroy(void *consumer);
int fq_producer_create(void *conn, uint32_t consumer_id, const struct gantry_queue_attr *attr,
		       void **producer_p);
void fq_producer_destroy(void *producer);
int fq_rma_create(void *conn, const struct gantry_queue_attr *attr, void **rma_p);
void fq_rma_destroy(void *rma);
int fq_post_recv(void *consumer, uint32_t n);
int fq_poll_recv(void *consumer, struct gantry_msg *msgs, uint32_t max);
int fq_consumer_arm(void *consumer);
void fq_consumer_disarm(void *consumer);
int fq_consumer_fd(void *consumer);
void fq_consumer_set_local_peer(void *consumer, struct gantry_local_peer *peer);
struct gantry_local_peer *const *fq_producer_local_peer(void *producer);
int fq_send(void *producer, const void *imm, uint32_t imm_len, uint32_t flags);
void fq_flush(void *producer);
int fq_rma_submit(void *rma, const struct gantry_rma *op);
int fq_rma_write_imm(void *rma, const struct gantry_rma *op, uint32_t note);
void fq_rma_flush(void *rma);
int fq_rma_poll(void *rma, struct gantry_rma_done *done, uint32_t max);

#define FAKE_QUEUE_OPS \
	.register_region = fq_register, .unregister_region = fq_unregister, \
	.consumer_create = fq_consumer_create, .consumer_destroy = fq_consumer_destroy, \
	.producer_create = fq_producer_create, .producer_destroy = fq_producer_destroy, \
	.rma_create = fq_rma_create, .rma_destroy = fq_rma_destroy, .post_recv = fq_post_recv, \
	.poll_recv = fq_poll_recv, .consumer_arm = fq_consumer_arm, \
	.consumer_disarm = fq_consumer_disarm, .consumer_fd = fq_consumer_fd, .send = fq_send, \
	.flush = fq_flush, .rma_submit = fq_rma_submit, .rma_flush = fq_rma_flush, \
	.rma_poll = fq_rma_poll, .consumer_set_local_peer = fq_consumer_set_local_peer, \
	.producer_local_peer = fq_producer_local_peer, .rma_write_imm = fq_rma_write_imm

#endif
