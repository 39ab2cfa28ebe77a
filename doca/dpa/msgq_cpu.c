/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * msgq_cpu.c - consumers and producers of a MsgQ on the CPU: contexts and tasks, for immediate data
 * only
 */
#include "base/container_of.h"
#include "dpa/dpa.h"

static void lock(struct doca_comch_msgq *msgq)
{
	pthread_mutex_lock(&msgq->dpa->lock);
}

static void unlock(struct doca_comch_msgq *msgq)
{
	pthread_mutex_unlock(&msgq->dpa->lock);
}

/* -- receive -- */

static doca_error_t check_recv(const struct doca_task *task)
{
	return gd_recv_of(task)->buf ? DOCA_ERROR_INVALID_VALUE : DOCA_SUCCESS;
}

static doca_error_t submit_recv(struct doca_task *task)
{
	struct doca_comch_consumer *c = gd_consumer_of(task->ctx);

	gd_recv_of(task)->producer = gd_recv_of(task)->imm_len = 0;
	if (gd_recv_of(task)->buf) {
		gd_task_done(task, DOCA_ERROR_INVALID_VALUE);
		return DOCA_SUCCESS;
	}
	lock(c->msgq);
	task->next = NULL;
	*c->last = task;
	c->last = &task->next;
	pthread_cond_broadcast(&c->msgq->dpa->changed);
	unlock(c->msgq);
	return DOCA_SUCCESS;
}

const struct gd_task_ops gd_msgq_recv = {.check = check_recv, .submit = submit_recv};

static struct doca_task *take_arrived(struct doca_comch_consumer *c)
{
	struct doca_task *list = c->arrived;

	c->arrived = NULL;
	c->arrived_last = &c->arrived;
	c->is_notified = false;
	return list;
}

static void end_all(struct doca_task *list, doca_error_t status)
{
	for (struct doca_task *next; list; list = next) {
		next = list->next;
		gd_task_done(list, status);
	}
}

/*
 * Complete the arrived tasks. The first one completes in this event, the others by their own
 * events, since each doca_pe_progress() runs one callback. Those events are posted with the lock
 * held, so that they precede later arrivals.
 */
static void run_arrival(struct gd_event *event)
{
	struct doca_comch_consumer *c = gn_container_of(event, struct doca_comch_consumer, arrival);
	struct doca_task *list;

	lock(c->msgq);
	list = take_arrived(c);
	end_all(list->next, DOCA_SUCCESS);
	unlock(c->msgq);
	gd_task_end(list, DOCA_SUCCESS);
}

void gd_msgq_deliver(struct doca_comch_consumer *c, uint32_t producer, const uint8_t *imm,
		     uint32_t imm_len)
{
	struct doca_task *task = c->first;
	struct doca_comch_consumer_task_post_recv *t = gd_recv_of(task);

	c->first = task->next;
	if (!c->first)
		c->last = &c->first;
	t->producer = producer;
	t->imm_len = imm_len;
	for (uint32_t i = 0; i < imm_len; i++)
		t->imm[i] = imm[i];
	task->next = NULL;
	*c->arrived_last = task;
	c->arrived_last = &task->next;
	if (c->is_notified)
		return;
	c->is_notified = true;
	gd_pe_post(c->ctx.pe, &c->arrival);
}

/* -- consumer -- */

static void run_started(struct gd_event *event)
{
	gd_ctx_started(&gn_container_of(event, struct doca_comch_consumer, started)->ctx);
}

static doca_error_t start_consumer(struct doca_ctx *ctx)
{
	struct doca_comch_consumer *c = gd_consumer_of(ctx);

	if (!c->posts.is_set)
		return DOCA_ERROR_INVALID_VALUE;
	c->first = NULL;
	c->last = &c->first;
	c->arrival = (struct gd_event){.run = run_arrival, .is_silent = true};
	c->started = (struct gd_event){.run = run_started, .is_silent = true};
	lock(c->msgq);
	take_arrived(c);
	c->next = c->msgq->consumers;
	c->msgq->consumers = c;
	unlock(c->msgq);
	gd_pe_post(ctx->pe, &c->started);
	return DOCA_ERROR_IN_PROGRESS;
}

static void leave(struct doca_comch_consumer *c)
{
	struct doca_comch_consumer **p = &c->msgq->consumers;

	while (*p != c)
		p = &(*p)->next;
	*p = c->next;
	pthread_cond_broadcast(&c->msgq->dpa->changed);
}

static doca_error_t stop_consumer(struct doca_ctx *ctx)
{
	struct doca_comch_consumer *c = gd_consumer_of(ctx);
	struct doca_task *arrived;

	gd_pe_withdraw(ctx->pe, &c->started);
	lock(c->msgq);
	leave(c);
	arrived = take_arrived(c);
	unlock(c->msgq);
	gd_pe_withdraw(ctx->pe, &c->arrival);
	end_all(arrived, DOCA_SUCCESS);
	end_all(c->first, GD_FLUSHED);
	return DOCA_SUCCESS;
}

const struct gd_ctx_ops gd_msgq_cpu_consumer = {
	.name = "MsgQ consumer",
	.start = start_consumer,
	.stop = stop_consumer,
	.is_silent = true,
};

/* -- send -- */

static doca_error_t check_send(const struct doca_task *task)
{
	return gd_send_of(task)->buf || gd_send_of(task)->imm_len > GD_COMCH_IMM
		       ? DOCA_ERROR_INVALID_VALUE
		       : DOCA_SUCCESS;
}

/* Lock held. */
static doca_error_t put(struct doca_comch_msgq *msgq, uint32_t producer,
			const struct doca_comch_producer_task_send *t)
{
	struct doca_comch_consumer *c = gd_msgq_find(msgq, t->consumer);
	struct doca_comch_consumer_completion *comp = c ? c->completion : NULL;
	struct gd_dpa_msg *msg;

	if (!c)
		return DOCA_ERROR_NOT_FOUND;
	if (t->imm_len > c->imm_max || t->imm_len > comp->imm_len)
		return DOCA_ERROR_INVALID_VALUE;
	if (c->credit == 0 || gd_done_is_full(&comp->done))
		return DOCA_ERROR_AGAIN;
	c->credit--;
	msg = &comp->msgs[gd_done_place(&comp->done)];
	*msg = (struct gd_dpa_msg){
		.imm_len = t->imm_len, .producer = producer, .user_data = c->completion_data};
	for (uint32_t i = 0; i < t->imm_len; i++)
		msg->imm[i] = t->imm[i];
	gd_done_put(&comp->done);
	return DOCA_SUCCESS;
}

static doca_error_t submit_send(struct doca_task *task)
{
	const struct doca_comch_producer *p = gn_container_of(task->ctx, struct doca_comch_producer,
							      ctx);
	doca_error_t result = check_send(task);

	if (result == DOCA_SUCCESS) {
		lock(p->msgq);
		result = put(p->msgq, p->id, gd_send_of(task));
		unlock(p->msgq);
	}
	if (result == DOCA_ERROR_AGAIN)
		return result;
	gd_task_done(task, result);
	return DOCA_SUCCESS;
}

const struct gd_task_ops gd_msgq_send = {.check = check_send, .submit = submit_send};

/* -- producer -- */

static doca_error_t start_producer(struct doca_ctx *ctx)
{
	return gn_container_of(ctx, struct doca_comch_producer, ctx)->sends.is_set
		       ? DOCA_SUCCESS
		       : DOCA_ERROR_INVALID_VALUE;
}

const struct gd_ctx_ops gd_msgq_cpu_producer = {
	.name = "MsgQ producer", .start = start_producer, .is_silent = true};
