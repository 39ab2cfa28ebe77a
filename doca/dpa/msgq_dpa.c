/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * msgq_dpa.c - consumers and producers of a MsgQ on the emulated DPA: configuration, and the
 * functions for code on the DPA
 *
 * The contexts of consumers and producers on the DPA need no engine: code on the DPA polls
 * completion queues, which activate its thread.
 */
#include <stdlib.h>
#include <string.h>

#include "base/container_of.h"
#include "dpa/dpa.h"

#define MAX_RECV (1u << 20)

/* -- completion queues of consumers -- */

doca_error_t doca_comch_consumer_completion_create(
	struct doca_comch_consumer_completion **consumer_comp)
{
	struct doca_comch_consumer_completion *comp;

	if (!consumer_comp)
		return DOCA_ERROR_INVALID_VALUE;
	comp = calloc(1, sizeof(*comp));
	if (!comp)
		return DOCA_ERROR_NO_MEMORY;
	comp->max_consumers = 1;
	comp->max_recv = 64;
	comp->imm_len = GD_COMCH_IMM;
	*consumer_comp = comp;
	return DOCA_SUCCESS;
}

static struct gd_done *done_of(struct doca_comch_consumer_completion *comp)
{
	return comp ? &comp->done : NULL;
}

doca_error_t doca_comch_consumer_completion_destroy(
	struct doca_comch_consumer_completion *consumer_comp)
{
	const doca_error_t result = gd_done_fini(done_of(consumer_comp));

	if (result != DOCA_SUCCESS)
		return result;
	free(consumer_comp->msgs);
	free(consumer_comp);
	return DOCA_SUCCESS;
}

doca_error_t doca_comch_consumer_completion_set_dpa_thread(
	struct doca_comch_consumer_completion *consumer_comp, struct doca_dpa_thread *dpa_thread)
{
	return gd_done_set_thread(done_of(consumer_comp), dpa_thread);
}

static doca_error_t set(struct doca_comch_consumer_completion *comp, uint32_t *number,
			uint32_t value, uint32_t most)
{
	const doca_error_t result = gd_done_may_set(done_of(comp), value != 0 && value <= most);

	if (result == DOCA_SUCCESS)
		*number = value;
	return result;
}

static doca_error_t get(const uint32_t *number, uint32_t *value)
{
	if (!number || !value)
		return DOCA_ERROR_INVALID_VALUE;
	*value = *number;
	return DOCA_SUCCESS;
}

doca_error_t doca_comch_consumer_completion_set_max_num_consumers(
	struct doca_comch_consumer_completion *consumer_comp, uint32_t max_num_consumers)
{
	return set(consumer_comp, consumer_comp ? &consumer_comp->max_consumers : NULL,
		   max_num_consumers, GD_FAST_QUEUES);
}

doca_error_t doca_comch_consumer_completion_get_max_num_consumers(
	const struct doca_comch_consumer_completion *consumer_comp, uint32_t *max_num_consumers)
{
	return get(consumer_comp ? &consumer_comp->max_consumers : NULL, max_num_consumers);
}

doca_error_t doca_comch_consumer_completion_set_max_num_recv(
	struct doca_comch_consumer_completion *consumer_comp, uint32_t max_num_recv)
{
	return set(consumer_comp, consumer_comp ? &consumer_comp->max_recv : NULL, max_num_recv,
		   MAX_RECV);
}

doca_error_t doca_comch_consumer_completion_get_max_num_recv(
	const struct doca_comch_consumer_completion *consumer_comp, uint32_t *max_num_recv)
{
	return get(consumer_comp ? &consumer_comp->max_recv : NULL, max_num_recv);
}

doca_error_t doca_comch_consumer_completion_set_imm_data_len(
	struct doca_comch_consumer_completion *consumer_comp, uint32_t imm_data_len)
{
	return set(consumer_comp, consumer_comp ? &consumer_comp->imm_len : NULL, imm_data_len,
		   GD_COMCH_IMM);
}

doca_error_t doca_comch_consumer_completion_get_imm_data_len(
	const struct doca_comch_consumer_completion *consumer_comp, uint32_t *imm_data_len)
{
	return get(consumer_comp ? &consumer_comp->imm_len : NULL, imm_data_len);
}

doca_error_t doca_comch_consumer_completion_start(
	struct doca_comch_consumer_completion *consumer_comp)
{
	const doca_error_t result = gd_done_may_set(done_of(consumer_comp), true);

	if (result != DOCA_SUCCESS)
		return result;
	free(consumer_comp->msgs);
	consumer_comp->msgs = calloc(consumer_comp->max_recv, sizeof(*consumer_comp->msgs));
	if (!consumer_comp->msgs)
		return DOCA_ERROR_NO_MEMORY;
	gd_done_start(&consumer_comp->done, consumer_comp->max_recv);
	return DOCA_SUCCESS;
}

doca_error_t doca_comch_consumer_completion_stop(
	struct doca_comch_consumer_completion *consumer_comp)
{
	return gd_done_stop(done_of(consumer_comp));
}

doca_error_t doca_comch_consumer_completion_get_dpa_handle(
	struct doca_comch_consumer_completion *consumer_comp,
	doca_dpa_dev_comch_consumer_completion_t *consumer_comp_handle)
{
	return gd_done_handle(done_of(consumer_comp), consumer_comp_handle);
}

/* -- consumers -- */

static bool on_dpa(const struct doca_comch_consumer *c)
{
	return c->msgq && c->msgq->dpa_consumer;
}

doca_error_t doca_comch_consumer_set_dev_max_num_recv(struct doca_comch_consumer *consumer,
						      uint32_t dev_num_recv)
{
	const doca_error_t result = gd_ctx_configurable(consumer ? &consumer->ctx : NULL,
							DOCA_ERROR_BAD_STATE);

	if (result != DOCA_SUCCESS)
		return result;
	if (!on_dpa(consumer) || dev_num_recv == 0 || dev_num_recv > MAX_RECV)
		return DOCA_ERROR_INVALID_VALUE;
	consumer->max_recv = dev_num_recv;
	return DOCA_SUCCESS;
}

doca_error_t doca_comch_consumer_set_completion(
	struct doca_comch_consumer *consumer, struct doca_comch_consumer_completion *consumer_comp,
	uint32_t user_data)
{
	const doca_error_t result = gd_ctx_configurable(consumer ? &consumer->ctx : NULL,
							DOCA_ERROR_BAD_STATE);

	if (result != DOCA_SUCCESS)
		return result;
	if (!consumer_comp || !on_dpa(consumer) ||
	    (consumer_comp->done.dpa && consumer_comp->done.dpa != consumer->msgq->dpa))
		return DOCA_ERROR_INVALID_VALUE;
	if (consumer->completion)
		return DOCA_ERROR_NOT_PERMITTED;
	if (consumer_comp->done.refs == consumer_comp->max_consumers)
		return DOCA_ERROR_FULL;
	consumer_comp->done.dpa = consumer->msgq->dpa;
	consumer_comp->done.refs++;
	consumer->completion = consumer_comp;
	consumer->completion_data = user_data;
	return DOCA_SUCCESS;
}

doca_error_t doca_comch_consumer_get_dpa_handle(struct doca_comch_consumer *consumer,
						doca_dpa_dev_comch_consumer_t *dpa_consumer)
{
	if (!consumer || !dpa_consumer)
		return DOCA_ERROR_INVALID_VALUE;
	if (!on_dpa(consumer) || consumer->ctx.state != DOCA_CTX_STATE_RUNNING)
		return DOCA_ERROR_BAD_STATE;
	*dpa_consumer = (uintptr_t)consumer;
	return DOCA_SUCCESS;
}

static doca_error_t start_consumer(struct doca_ctx *ctx)
{
	struct doca_comch_consumer *c = gd_consumer_of(ctx);

	if (!c->completion || !c->completion->done.started || c->max_recv == 0) {
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "DPA consumer cannot start: no started completion queue or no number of receives: call doca_comch_consumer_set_completion() and doca_comch_consumer_set_dev_max_num_recv() first");
		return DOCA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&c->msgq->dpa->lock);
	c->credit = 0;
	c->next = c->msgq->consumers;
	c->msgq->consumers = c;
	pthread_mutex_unlock(&c->msgq->dpa->lock);
	return DOCA_SUCCESS;
}

static doca_error_t stop_consumer(struct doca_ctx *ctx)
{
	struct doca_comch_consumer *c = gd_consumer_of(ctx), **p = &c->msgq->consumers;

	pthread_mutex_lock(&c->msgq->dpa->lock);
	while (*p != c)
		p = &(*p)->next;
	*p = c->next;
	pthread_mutex_unlock(&c->msgq->dpa->lock);
	return DOCA_SUCCESS;
}

const struct gd_ctx_ops gd_msgq_dpa_consumer = {
	.name = "DPA consumer",
	.start = start_consumer,
	.stop = stop_consumer,
	.on_dpa = true,
	.is_silent = true,
};

void doca_dpa_dev_comch_consumer_ack(doca_dpa_dev_comch_consumer_t consumer_handle,
				     uint32_t num_msg)
{
	struct doca_comch_consumer *c = (void *)(uintptr_t)consumer_handle;

	if (!c)
		return;
	pthread_mutex_lock(&c->msgq->dpa->lock);
	c->credit = num_msg > c->max_recv - c->credit ? c->max_recv : c->credit + num_msg;
	pthread_mutex_unlock(&c->msgq->dpa->lock);
}

int doca_dpa_dev_comch_consumer_get_completion(
	doca_dpa_dev_comch_consumer_completion_t consumer_comp_handle,
	doca_dpa_dev_comch_consumer_completion_element_t *comp_element)
{
	const struct doca_comch_consumer_completion *comp = (void *)(uintptr_t)consumer_comp_handle;
	uint32_t place;

	if (!comp_element || !gd_done_next(consumer_comp_handle, &place))
		return 0;
	*comp_element = (uintptr_t)&comp->msgs[place];
	return 1;
}

const uint8_t *doca_dpa_dev_comch_consumer_get_completion_imm(
	doca_dpa_dev_comch_consumer_completion_element_t comp_element, uint32_t *imm_len)
{
	const struct gd_dpa_msg *msg = (void *)(uintptr_t)comp_element;

	if (imm_len)
		*imm_len = msg ? msg->imm_len : 0;
	return msg ? msg->imm : NULL;
}

uint32_t doca_dpa_dev_comch_consumer_get_completion_producer_id(
	doca_dpa_dev_comch_consumer_completion_element_t comp_element)
{
	const struct gd_dpa_msg *msg = (void *)(uintptr_t)comp_element;

	return msg ? msg->producer : 0;
}

uint32_t doca_dpa_dev_comch_consumer_get_completion_consumer_user_data(
	doca_dpa_dev_comch_consumer_completion_element_t comp_element)
{
	const struct gd_dpa_msg *msg = (void *)(uintptr_t)comp_element;

	return msg ? msg->user_data : 0;
}

void doca_dpa_dev_comch_consumer_completion_ack(
	doca_dpa_dev_comch_consumer_completion_t consumer_comp_handle, uint32_t num_comp)
{
	gd_done_ack(consumer_comp_handle, num_comp);
}

void doca_dpa_dev_comch_consumer_completion_request_notification(
	doca_dpa_dev_comch_consumer_completion_t consumer_comp_handle)
{
	gd_done_arm(consumer_comp_handle);
}

/* -- producers -- */

static bool producer_on_dpa(const struct doca_comch_producer *p)
{
	return p->msgq && !p->msgq->dpa_consumer;
}

doca_error_t doca_comch_producer_set_dev_max_num_send(struct doca_comch_producer *producer,
						      uint32_t dev_num_send)
{
	const doca_error_t result = gd_ctx_configurable(producer ? &producer->ctx : NULL,
							DOCA_ERROR_BAD_STATE);

	if (result != DOCA_SUCCESS)
		return result;
	if (!producer_on_dpa(producer) || dev_num_send == 0)
		return DOCA_ERROR_INVALID_VALUE;
	producer->max_send = dev_num_send;
	return DOCA_SUCCESS;
}

doca_error_t doca_comch_producer_dpa_completion_attach(struct doca_comch_producer *producer,
						       struct doca_dpa_completion *dpa_comp)
{
	const doca_error_t result = gd_ctx_configurable(producer ? &producer->ctx : NULL,
							DOCA_ERROR_BAD_STATE);

	if (result != DOCA_SUCCESS)
		return result;
	if (!dpa_comp || !producer_on_dpa(producer) || dpa_comp->done.dpa != producer->msgq->dpa)
		return DOCA_ERROR_INVALID_VALUE;
	if (producer->completion)
		return DOCA_ERROR_NOT_PERMITTED;
	dpa_comp->done.refs++;
	producer->completion = dpa_comp;
	return DOCA_SUCCESS;
}

doca_error_t doca_comch_producer_get_dpa_handle(struct doca_comch_producer *producer,
						doca_dpa_dev_comch_producer_t *dpa_producer)
{
	if (!producer || !dpa_producer)
		return DOCA_ERROR_INVALID_VALUE;
	if (!producer_on_dpa(producer) || producer->ctx.state != DOCA_CTX_STATE_RUNNING)
		return DOCA_ERROR_BAD_STATE;
	*dpa_producer = (uintptr_t)producer;
	return DOCA_SUCCESS;
}

static doca_error_t start_producer(struct doca_ctx *ctx)
{
	struct doca_comch_producer *p = gd_producer_of(ctx);

	if (p->completion && p->completion->done.started && p->max_send)
		return DOCA_SUCCESS;
	gd_log(DOCA_LOG_LEVEL_ERROR,
	       "DPA producer cannot start: no started completion queue or no number of sends: call doca_comch_producer_dpa_completion_attach() and doca_comch_producer_set_dev_max_num_send() first");
	return DOCA_ERROR_INVALID_VALUE;
}

/* The completions that the code has not taken stay in their queue, but are no longer counted. */
static doca_error_t stop_producer(struct doca_ctx *ctx)
{
	struct doca_comch_producer *p = gd_producer_of(ctx);
	struct doca_dpa_completion *comp = p->completion;

	pthread_mutex_lock(&p->msgq->dpa->lock);
	for (uint32_t i = 0; i < comp->done.size; i++)
		if (comp->sent[i].producer == p)
			comp->sent[i].producer = NULL;
	p->n_open = 0;
	pthread_mutex_unlock(&p->msgq->dpa->lock);
	return DOCA_SUCCESS;
}

const struct gd_ctx_ops gd_msgq_dpa_producer = {
	.name = "DPA producer",
	.start = start_producer,
	.stop = stop_producer,
	.on_dpa = true,
	.is_silent = true,
};

/*
 * Lock held. Wait until the consumer has a receive posted, and return it. NULL: the consumer does
 * not exist, or the thread must end.
 */
static struct doca_comch_consumer *wait_for_room(struct doca_comch_msgq *msgq, uint32_t id)
{
	struct doca_comch_consumer *c;

	while ((c = gd_msgq_find(msgq, id)) && !c->first) {
		if (gd_dpa_must_quit())
			return NULL;
		pthread_cond_wait(&msgq->dpa->changed, &msgq->dpa->lock);
	}
	return c;
}

/*
 * Lock held. Returns whether the queue of sends and the completion queue have an entry. A send
 * needs them until its message has arrived and, if it requests a completion, until the code has
 * taken and acknowledged that completion.
 */
static bool has_entry(const struct doca_comch_producer *p, bool completion_requested)
{
	if (completion_requested && p->n_open >= p->max_send)
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "DPA producer: send rejected: all sends wait for their completions to be taken (limit dev_max_num_send=%u): call doca_dpa_dev_get_completion() before further sends",
		       p->max_send);
	else if (completion_requested && gd_done_is_full(&p->completion->done))
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "DPA producer: send rejected: the completion queue is full (entries=%u): call doca_dpa_dev_completion_ack() before further sends, or create a larger queue",
		       p->completion->done.size);
	else
		return true;
	return false;
}

static bool can_be_sent(struct doca_comch_producer *p, const uint8_t *imm, uint32_t imm_len,
			bool completion_requested)
{
	bool has;

	if (!p || imm_len > GD_COMCH_IMM || (imm_len && !imm)) {
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "DPA producer: invalid immediate data (bytes=%u, limit=%u)", imm_len,
		       GD_COMCH_IMM);
		return false;
	}
	pthread_mutex_lock(&p->msgq->dpa->lock);
	has = has_entry(p, completion_requested);
	pthread_mutex_unlock(&p->msgq->dpa->lock);
	return has;
}

/* Lock held. Publish the completion of a send. */
static void complete(struct doca_comch_producer *p)
{
	struct gd_done *done = &p->completion->done;

	p->completion->sent[gd_done_place(done)] =
		(struct gd_dpa_sent){.user_data = (uint32_t)p->ctx.user_data.u64, .producer = p};
	p->n_open++;
	gd_done_put(done);
}

void doca_dpa_dev_comch_producer_post_send_imm_only(doca_dpa_dev_comch_producer_t producer_handle,
						    uint32_t consumer_id, const uint8_t *imm,
						    uint32_t imm_len, uint8_t completion_requested)
{
	struct doca_comch_producer *p = (void *)(uintptr_t)producer_handle;
	struct doca_comch_consumer *c;

	if (!can_be_sent(p, imm, imm_len, completion_requested))
		return;
	pthread_mutex_lock(&p->msgq->dpa->lock);
	c = wait_for_room(p->msgq, consumer_id);
	/* meanwhile other producers may have filled the completion queue */
	if (c && has_entry(p, completion_requested)) {
		gd_msgq_deliver(c, p->id, imm, imm_len);
		if (completion_requested)
			complete(p);
	}
	pthread_mutex_unlock(&p->msgq->dpa->lock);
	if (!c)
		gd_log(DOCA_LOG_LEVEL_ERROR, "DPA producer: consumer %u does not exist",
		       consumer_id);
}

/*
 * Returns the address in this process of `length` bytes of a map. NULL: outside the map, the rights
 * do not permit reads (is_filled: writes), or the map is not for the device.
 */
static char *in_map(const struct doca_mmap *map, const struct doca_dev *dev, uint64_t addr,
		    size_t length, bool is_filled)
{
	const uint64_t from = map ? (uintptr_t)map->addr : 0;

	if (!map || !map->local || !gd_mmap_has_dev(map, dev) || !gd_mmap_allows(map, is_filled) ||
	    addr < from || !gantry_range_ok(addr - from, length, map->length))
		return NULL;
	return (char *)map->local + (addr - from);
}

/* Copy between two maps, which stay mapped during the copy. false: rejected and logged. */
static bool copy(const struct doca_dev *dev, doca_dpa_dev_mmap_t dst_mmap, uint64_t dst_addr,
		 doca_dpa_dev_mmap_t src_mmap, uint64_t src_addr, size_t length)
{
	struct doca_mmap *from = gd_mmap_use(src_mmap), *to = gd_mmap_use(dst_mmap);
	const char *src = in_map(from, dev, src_addr, length, false);
	char *dst = in_map(to, dev, dst_addr, length, true);
	const bool can = src && dst && (dst >= src + length || src >= dst + length);

	if (can)
		memcpy(dst, src, length);
	else
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "DPA producer: copy rejected: a range is outside its map, the rights of a map do not permit the copy, a map is not for the device, or the ranges overlap (bytes=%zu)",
		       length);
	if (from)
		gd_mmap_unuse(from);
	if (to)
		gd_mmap_unuse(to);
	return can;
}

void doca_dpa_dev_comch_producer_dma_copy(doca_dpa_dev_comch_producer_t producer_handle,
					  uint32_t consumer_id, doca_dpa_dev_mmap_t dst_mmap,
					  uint64_t dst_addr, doca_dpa_dev_mmap_t src_mmap,
					  uint64_t src_addr, size_t length, const uint8_t *imm,
					  uint32_t imm_len, uint8_t completion_requested)
{
	struct doca_comch_producer *p = (void *)(uintptr_t)producer_handle;

	if (!can_be_sent(p, imm, imm_len, completion_requested) ||
	    !copy(p->msgq->dev, dst_mmap, dst_addr, src_mmap, src_addr, length))
		return;
	doca_dpa_dev_comch_producer_post_send_imm_only(producer_handle, consumer_id, imm, imm_len,
						       completion_requested);
}

int doca_dpa_dev_comch_producer_is_consumer_empty(doca_dpa_dev_comch_producer_t producer_handle,
						  uint32_t consumer_id)
{
	struct doca_comch_producer *p = (void *)(uintptr_t)producer_handle;
	const struct doca_comch_consumer *c;
	bool empty;

	if (!p)
		return 1;
	pthread_mutex_lock(&p->msgq->dpa->lock);
	c = gd_msgq_find(p->msgq, consumer_id);
	empty = !c || !c->first;
	pthread_mutex_unlock(&p->msgq->dpa->lock);
	return empty;
}
