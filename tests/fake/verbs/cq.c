/* SPDX-License-Identifier: BSD-3-Clause */
/* cq.c - completion channels and completion queues */
#include "priv.h"

/* -- channels -- */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	int err = FV_ENTER(ibv_create_comp_channel);
	struct fv_comp_channel *channel;

	if (err)
		return fv_leave_ptr(NULL, err);
	channel = fv_alloc(sizeof(*channel));
	err = fv_bell_open(&channel->bell);
	if (err) {
		free(channel);
		return fv_leave_ptr(NULL, err);
	}
	channel->channel = (struct ibv_comp_channel){.context = context, .fd = channel->bell.fd};
	channel->last = &channel->first;
	fv_context(context)->obj.users++;
	fv_add(FV_COMP_CHANNEL, &channel->obj, channel);
	return fv_leave_ptr(channel, 0);
}

static void free_channel(struct fv_comp_channel *channel)
{
	fv_bell_close(&channel->bell);
	fv_context(channel->channel.context)->obj.users--;
	fv_remove(&channel->obj);
	free(channel);
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *base)
{
	int err = FV_ENTER(ibv_destroy_comp_channel);
	struct fv_comp_channel *channel = (struct fv_comp_channel *)base;

	if (!err)
		err = fv_check(FV_COMP_CHANNEL, base, "ibv_destroy_comp_channel");
	if (!err && channel->obj.users)
		err = EBUSY;
	if (!err)
		free_channel(channel);
	return fv_leave(err);
}

static void queue_event(struct fv_cq *cq)
{
	struct fv_comp_channel *channel = cq->channel;

	if (cq->queued++ == 0) {
		cq->next_event = NULL;
		*channel->last = cq;
		channel->last = &cq->next_event;
	}
	fv_bell_ring(&channel->bell);
}

static void unlink_event(struct fv_comp_channel *channel, struct fv_cq **link)
{
	struct fv_cq *cq = *link;

	*link = cq->next_event;
	if (channel->last == &cq->next_event)
		channel->last = link;
	if (!channel->first)
		fv_bell_quiet(&channel->bell);
}

static void forget_events(struct fv_cq *cq)
{
	for (struct fv_cq **link = &cq->channel->first; *link; link = &(*link)->next_event)
		if (*link == cq) {
			unlink_event(cq->channel, link);
			break;
		}
	cq->queued = 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *base, struct ibv_cq **cq_p, void **cq_context_p)
{
	int err = FV_ENTER(ibv_get_cq_event);
	struct fv_comp_channel *channel = (struct fv_comp_channel *)base;
	struct fv_cq *cq;

	while (!err && !channel->first) {
		fv_leave(0);
		err = fv_bell_wait(base->fd);
		fv_lock();
	}
	if (err)
		return fv_leave_errno(err);
	cq = channel->first;
	if (--cq->queued == 0)
		unlink_event(channel, &channel->first);
	cq->obj.unacked++;
	fv_counters.cq_events++;
	*cq_p = &cq->cq;
	*cq_context_p = cq->cq.cq_context;
	return fv_leave_errno(0);
}

void ibv_ack_cq_events(struct ibv_cq *base, unsigned nevents)
{
	struct fv_cq *cq = (struct fv_cq *)base;

	FV_ENTER(ibv_ack_cq_events);
	if (fv_check(FV_CQ, base, "ibv_ack_cq_events") == 0) {
		if (nevents > cq->obj.unacked) {
			fv_misuse("ibv_ack_cq_events(): %u acknowledged, %u got", nevents,
				  cq->obj.unacked);
			nevents = cq->obj.unacked;
		}
		cq->obj.unacked -= nevents;
		fv_counters.cq_acks += nevents;
	}
	fv_leave(0);
}

/* -- queues -- */

static int check_create(struct ibv_context *context, int cqe, struct ibv_comp_channel *channel,
			int comp_vector)
{
	const struct fv_device *device = fv_device_of(context);

	if (cqe < 1 || cqe > device->conf.attr.max_cqe || comp_vector < 0 ||
	    comp_vector >= context->num_comp_vectors)
		return EINVAL;
	if (channel &&
	    (fv_check(FV_COMP_CHANNEL, channel, "ibv_create_cq") || channel->context != context))
		return EINVAL;
	return device->live[FV_CQ] >= (unsigned)device->conf.attr.max_cq ? ENOMEM : 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	int err = FV_ENTER(ibv_create_cq);
	struct fv_cq *cq;

	if (!err)
		err = check_create(context, cqe, channel, comp_vector);
	if (err)
		return fv_leave_ptr(NULL, err);
	cq = fv_alloc(sizeof(*cq));
	cq->cq = (struct ibv_cq){
		.context = context, .channel = channel, .cq_context = cq_context, .cqe = cqe};
	cq->size = (uint32_t)cqe;
	cq->ring = fv_alloc(cq->size * sizeof(*cq->ring));
	cq->channel = (struct fv_comp_channel *)channel;
	if (channel) {
		cq->channel->obj.users++;
		channel->refcnt++;
	}
	fv_context(context)->obj.users++;
	fv_device_of(context)->live[FV_CQ]++;
	fv_add(FV_CQ, &cq->obj, cq);
	return fv_leave_ptr(cq, 0);
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	int err = FV_ENTER(ibv_resize_cq);

	(void)cq, (void)cqe;
	return fv_leave(err ? err : EOPNOTSUPP);
}

static void free_cq(struct fv_cq *cq)
{
	if (cq->channel) {
		forget_events(cq);
		cq->channel->obj.users--;
		cq->channel->channel.refcnt--;
	}
	fv_async_forget(cq->cq.context, &cq->obj);
	fv_context(cq->cq.context)->obj.users--;
	fv_device_of(cq->cq.context)->live[FV_CQ]--;
	fv_remove(&cq->obj);
	free(cq->ring);
	free(cq);
}

int ibv_destroy_cq(struct ibv_cq *base)
{
	int err = FV_ENTER(ibv_destroy_cq);
	struct fv_cq *cq = (struct fv_cq *)base;

	if (!err)
		err = fv_check(FV_CQ, base, "ibv_destroy_cq");
	if (!err && cq->obj.users)
		err = EBUSY;
	if (!err) {
		fv_check_acked(&cq->obj, "ibv_destroy_cq");
		free_cq(cq);
	}
	return fv_leave(err);
}

/*
 * As with rxe, a completion that finds the CQ full is lost, and its slots of the send or receive
 * queue are never freed.
 */
void fv_cq_push(struct fv_cq *cq, const struct fv_cqe *cqe, int solicited)
{
	if (cq->n == cq->size) {
		if (fv_counters.overruns++ == 0)
			fv_misuse("a completion queue of %u entries overran", cq->size);
		fv_async(cq->cq.context, IBV_EVENT_CQ_ERR, &cq->cq, &cq->obj);
		return;
	}
	cq->ring[(cq->head + cq->n++) % cq->size] = *cqe;
	if (cq->channel && (cq->armed == 1 ||
			    (cq->armed == 2 && (solicited || cqe->wc.status != IBV_WC_SUCCESS)))) {
		cq->armed = 0;
		queue_event(cq);
	}
}

void fv_cq_clean(struct fv_cq *cq, uint32_t qp_num)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < cq->n; i++) {
		struct fv_cqe *cqe = &cq->ring[(cq->head + i) % cq->size];

		if (cqe->wc.qp_num != qp_num)
			cq->ring[(cq->head + kept++) % cq->size] = *cqe;
	}
	cq->n = kept;
}

static void free_slots(const struct fv_cqe *cqe)
{
	struct fv_qp *qp = fv_qp_find(cqe->wc.qp_num);

	if (!qp)
		return;
	if (cqe->is_recv) {
		qp->rq_used -= cqe->slots;
	} else {
		qp->sq_used -= cqe->slots;
		qp->sq_signalled -= cqe->signalled;
	}
}

int fv_poll_cq(struct ibv_cq *base, int n, struct ibv_wc *wc)
{
	int err = FV_ENTER(ibv_poll_cq);
	struct fv_cq *cq = (struct fv_cq *)base;
	int i;

	if (err)
		return -fv_leave(err);
	for (i = 0; i < n && cq->n; i++) {
		struct fv_cqe *cqe = &cq->ring[cq->head];

		free_slots(cqe);
		wc[i] = cqe->wc;
		cq->head = (cq->head + 1) % cq->size;
		cq->n--;
	}
	fv_counters.polls++;
	fv_counters.empty_polls += i == 0;
	fv_counters.completions += (unsigned)i;
	return fv_leave(i);
}

/* Only completions that arrive later raise an event. */
int fv_req_notify_cq(struct ibv_cq *base, int solicited_only)
{
	int err = FV_ENTER(ibv_req_notify_cq);
	struct fv_cq *cq = (struct fv_cq *)base;

	if (!err) {
		if (cq->armed != 1)
			cq->armed = solicited_only ? 2 : 1;
		fv_counters.arms++;
	}
	return fv_leave(err);
}

void fv_cq_reset(void)
{
	struct fv_obj *obj;

	while ((obj = fv_first(FV_CQ)))
		free_cq(obj->self);
	while ((obj = fv_first(FV_COMP_CHANNEL)))
		free_channel(obj->self);
}
