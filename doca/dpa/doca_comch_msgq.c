/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_comch_msgq.c - message queues between the CPU and an emulated DPA, each in one direction
 *
 * This file creates the consumers and producers of a MsgQ. On the CPU they are contexts, like the
 * consumers and producers of a connection (msgq_cpu.c). On the DPA, code uses them through handles
 * (msgq_dpa.c).
 */
#include <doca_comch_msgq.h>

#include <stdlib.h>

#include "dpa/dpa.h"

doca_error_t doca_comch_msgq_create(struct doca_dev *dev, struct doca_comch_msgq **msgq)
{
	struct doca_comch_msgq *q;

	if (!gd_dev_is_open(dev) || !msgq)
		return DOCA_ERROR_INVALID_VALUE;
	q = calloc(1, sizeof(*q));
	if (!q)
		return DOCA_ERROR_NO_MEMORY;
	q->dev = dev;
	gd_dev_hold(dev);
	q->max_consumers = q->max_producers = GD_FAST_QUEUES;
	q->next_consumer = q->next_producer = 1;
	*msgq = q;
	return DOCA_SUCCESS;
}

doca_error_t doca_comch_msgq_destroy(struct doca_comch_msgq *msgq)
{
	if (!msgq)
		return DOCA_ERROR_INVALID_VALUE;
	if (msgq->started)
		return DOCA_ERROR_BAD_STATE;
	if (msgq->n_consumers || msgq->n_producers)
		return DOCA_ERROR_IN_USE;
	if (msgq->dpa)
		msgq->dpa->refs--;
	gd_dev_release(msgq->dev);
	free(msgq);
	return DOCA_SUCCESS;
}

static doca_error_t set_direction(struct doca_comch_msgq *msgq, struct doca_dpa *dpa,
				  bool dpa_consumer)
{
	if (!msgq || !dpa)
		return DOCA_ERROR_INVALID_VALUE;
	if (msgq->started)
		return DOCA_ERROR_BAD_STATE;
	if (msgq->has_direction) /* a queue has one direction */
		return DOCA_ERROR_NOT_PERMITTED;
	msgq->dpa = dpa;
	dpa->refs++;
	msgq->dpa_consumer = dpa_consumer;
	msgq->has_direction = true;
	return DOCA_SUCCESS;
}

doca_error_t doca_comch_msgq_set_dpa_consumer(struct doca_comch_msgq *msgq, struct doca_dpa *dpa)
{
	return set_direction(msgq, dpa, true);
}

doca_error_t doca_comch_msgq_set_dpa_producer(struct doca_comch_msgq *msgq, struct doca_dpa *dpa)
{
	return set_direction(msgq, dpa, false);
}

static doca_error_t set_most(struct doca_comch_msgq *msgq, uint32_t *number, uint32_t value)
{
	if (!msgq || value == 0)
		return DOCA_ERROR_INVALID_VALUE;
	if (msgq->started)
		return DOCA_ERROR_BAD_STATE;
	*number = value;
	return DOCA_SUCCESS;
}

doca_error_t doca_comch_msgq_set_max_num_consumers(struct doca_comch_msgq *msgq,
						   uint32_t max_num_consumers)
{
	return set_most(msgq, msgq ? &msgq->max_consumers : NULL, max_num_consumers);
}

doca_error_t doca_comch_msgq_set_max_num_producers(struct doca_comch_msgq *msgq,
						   uint32_t max_num_producers)
{
	return set_most(msgq, msgq ? &msgq->max_producers : NULL, max_num_producers);
}

doca_error_t doca_comch_msgq_start(struct doca_comch_msgq *msgq)
{
	if (!msgq)
		return DOCA_ERROR_INVALID_VALUE;
	if (msgq->started || !msgq->has_direction || !msgq->dpa->started)
		return DOCA_ERROR_BAD_STATE;
	msgq->started = true;
	return DOCA_SUCCESS;
}

doca_error_t doca_comch_msgq_stop(struct doca_comch_msgq *msgq)
{
	if (!msgq)
		return DOCA_ERROR_INVALID_VALUE;
	if (!msgq->started)
		return DOCA_ERROR_BAD_STATE;
	if (msgq->n_consumers || msgq->n_producers)
		return DOCA_ERROR_IN_USE;
	msgq->started = false;
	return DOCA_SUCCESS;
}

doca_error_t doca_comch_msgq_consumer_create(struct doca_comch_msgq *msgq,
					     struct doca_comch_consumer **consumer)
{
	struct doca_comch_consumer *c;

	if (!msgq || !consumer)
		return DOCA_ERROR_INVALID_VALUE;
	if (!msgq->started)
		return DOCA_ERROR_BAD_STATE;
	if (msgq->n_consumers == msgq->max_consumers)
		return DOCA_ERROR_NO_MEMORY;
	c = calloc(1, sizeof(*c));
	if (!c)
		return DOCA_ERROR_NO_MEMORY;
	gd_ctx_init(&c->ctx, msgq->dpa_consumer ? &gd_msgq_dpa_consumer : &gd_msgq_cpu_consumer,
		    msgq->dev);
	gd_pool_init(&c->posts, &c->ctx, &gd_msgq_recv,
		     sizeof(struct doca_comch_consumer_task_post_recv));
	c->msgq = msgq;
	c->id = msgq->next_consumer++;
	c->imm_max = GD_COMCH_IMM;
	msgq->n_consumers++;
	*consumer = c;
	return DOCA_SUCCESS;
}

void gd_msgq_release_consumer(struct doca_comch_consumer *consumer)
{
	if (consumer->completion)
		consumer->completion->done.refs--;
	consumer->msgq->n_consumers--;
}

doca_error_t doca_comch_msgq_producer_create(struct doca_comch_msgq *msgq,
					     struct doca_comch_producer **producer)
{
	struct doca_comch_producer *p;

	if (!msgq || !producer)
		return DOCA_ERROR_INVALID_VALUE;
	if (!msgq->started)
		return DOCA_ERROR_BAD_STATE;
	if (msgq->n_producers == msgq->max_producers)
		return DOCA_ERROR_NO_MEMORY;
	p = calloc(1, sizeof(*p));
	if (!p)
		return DOCA_ERROR_NO_MEMORY;
	gd_ctx_init(&p->ctx, msgq->dpa_consumer ? &gd_msgq_cpu_producer : &gd_msgq_dpa_producer,
		    msgq->dev);
	gd_pool_init(&p->sends, &p->ctx, &gd_msgq_send,
		     sizeof(struct doca_comch_producer_task_send));
	p->msgq = msgq;
	p->id = msgq->next_producer++;
	msgq->n_producers++;
	*producer = p;
	return DOCA_SUCCESS;
}

void gd_msgq_release_producer(struct doca_comch_producer *producer)
{
	if (producer->completion)
		producer->completion->done.refs--;
	producer->msgq->n_producers--;
}

struct doca_comch_consumer *gd_msgq_find(struct doca_comch_msgq *msgq, uint32_t id)
{
	struct doca_comch_consumer *c = msgq->consumers;

	while (c && c->id != id)
		c = c->next;
	return c;
}
