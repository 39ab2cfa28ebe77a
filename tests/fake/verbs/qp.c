/* SPDX-License-Identifier: BSD-3-Clause */
/* qp.c - reliable queue pairs: states, slots, posting, completions */
#include "priv.h"

#define FIRST_QPN 17
#define POISON 0xdeadbeefu

static struct fv_qp **qps; /* by number; NULL: destroyed. A number is not reused. */
static uint32_t n_qps, room;
static uint64_t next_seq;

static const int transitions[][3] = {
	/* old state, new state, required attributes */
	{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_INIT, IBV_QPS_INIT, 0},
	{IBV_QPS_INIT, IBV_QPS_RTR,
	 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		 IBV_QP_MIN_RNR_TIMER},
	{IBV_QPS_RTR, IBV_QPS_RTS,
	 IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		 IBV_QP_MAX_QP_RD_ATOMIC},
	{IBV_QPS_RTS, IBV_QPS_RTS, 0},
};

struct fv_qp *fv_qp_find(uint32_t qp_num)
{
	return qp_num - FIRST_QPN < n_qps ? qps[qp_num - FIRST_QPN] : NULL;
}

/* -- create and destroy -- */

static int check_caps(const struct fake_device *conf, const struct ibv_qp_cap *cap)
{
	const uint32_t max_wr = (uint32_t)conf->attr.max_qp_wr,
		       max_sge = (uint32_t)conf->attr.max_sge;

	return cap->max_send_wr > max_wr || cap->max_recv_wr > max_wr ||
			       cap->max_send_sge > max_sge || cap->max_recv_sge > max_sge ||
			       cap->max_inline_data > conf->max_inline
		       ? EINVAL
		       : 0;
}

static int check_create(struct ibv_pd *pd, const struct ibv_qp_init_attr *init)
{
	const struct fv_device *device = fv_device_of(pd->context);

	if (init->qp_type != IBV_QPT_RC || init->srq)
		return EOPNOTSUPP;
	if (fv_check(FV_CQ, init->send_cq, "ibv_create_qp") ||
	    fv_check(FV_CQ, init->recv_cq, "ibv_create_qp"))
		return EINVAL;
	if (init->send_cq->context != pd->context || init->recv_cq->context != pd->context)
		return EINVAL;
	if (check_caps(&device->conf, &init->cap))
		return EINVAL;
	return device->live[FV_QP] >= (unsigned)device->conf.attr.max_qp ? ENOMEM : 0;
}

static void make_queues(struct fv_qp *qp)
{
	const struct ibv_qp_cap *cap = &qp->init.cap;
	struct ibv_sge *sge;

	qp->sq = fv_alloc((cap->max_send_wr + 1) * sizeof(*qp->sq));
	qp->rq = fv_alloc((cap->max_recv_wr + 1) * sizeof(*qp->rq));
	qp->bytes = fv_alloc((size_t)cap->max_send_wr * cap->max_inline_data + 1);
	sge = qp->sges = fv_alloc(((size_t)cap->max_send_wr * (cap->max_send_sge + 1) +
				   (size_t)cap->max_recv_wr * (cap->max_recv_sge + 1) + 1) *
				  sizeof(*sge));
	for (uint32_t i = 0; i < cap->max_send_wr; i++, sge += cap->max_send_sge + 1) {
		qp->sq[i].sge = sge;
		qp->sq[i].bytes = qp->bytes + (size_t)i * cap->max_inline_data;
	}
	for (uint32_t i = 0; i < cap->max_recv_wr; i++, sge += cap->max_recv_sge + 1)
		qp->rq[i].sge = sge;
}

static uint32_t add_number(struct fv_qp *qp)
{
	if (n_qps == room) {
		struct fv_qp **more = fv_alloc((room * 2 + 64) * sizeof(*more));

		if (qps)
			memcpy(more, qps, n_qps * sizeof(*more));
		free(qps);
		qps = more;
		room = room * 2 + 64;
	}
	qps[n_qps] = qp;
	return FIRST_QPN + n_qps++;
}

int fv_qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr *init, struct ibv_qp **qp_p)
{
	int err = check_create(pd, init);
	struct fv_qp *qp;

	if (err)
		return err;
	qp = fv_alloc(sizeof(*qp));
	qp->init = *init;
	qp->qp = (struct ibv_qp){.context = pd->context,
				 .qp_context = init->qp_context,
				 .pd = pd,
				 .send_cq = init->send_cq,
				 .recv_cq = init->recv_cq,
				 .qp_type = init->qp_type,
				 .qp_num = add_number(qp)};
	qp->qp.handle = qp->qp.qp_num;
	qp->attr.cap = init->cap;
	make_queues(qp);
	((struct fv_pd *)pd)->obj.users++;
	((struct fv_cq *)init->send_cq)->obj.users++;
	((struct fv_cq *)init->recv_cq)->obj.users++;
	fv_device_of(pd->context)->live[FV_QP]++;
	fv_add(FV_QP, &qp->obj, qp);
	*qp_p = &qp->qp;
	return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	int err = FV_ENTER(ibv_create_qp);
	struct ibv_qp *qp = NULL;

	if (!err)
		err = fv_check(FV_PD, pd, "ibv_create_qp");
	if (!err)
		err = fv_qp_create(pd, init, &qp);
	return fv_leave_ptr(qp, err);
}

static void free_qp(struct fv_qp *qp)
{
	qps[qp->qp.qp_num - FIRST_QPN] = NULL;
	((struct fv_pd *)qp->qp.pd)->obj.users--;
	((struct fv_cq *)qp->qp.send_cq)->obj.users--;
	((struct fv_cq *)qp->qp.recv_cq)->obj.users--;
	fv_device_of(qp->qp.context)->live[FV_QP]--;
	fv_async_forget(qp->qp.context, &qp->obj);
	fv_remove(&qp->obj);
	free(qp->sq);
	free(qp->rq);
	free(qp->sges);
	free(qp->bytes);
	free(qp);
}

int fv_qp_destroy(struct ibv_qp *base, const char *function)
{
	struct fv_qp *qp = (struct fv_qp *)base;

	if (fv_check(FV_QP, base, function))
		return EINVAL;
	fv_check_acked(&qp->obj, function);
	if (fv_device_of(base->context)->conf.cleans_cq) {
		fv_cq_clean((struct fv_cq *)base->send_cq, base->qp_num);
		fv_cq_clean((struct fv_cq *)base->recv_cq, base->qp_num);
	}
	free_qp(qp);
	return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	int err = FV_ENTER(ibv_destroy_qp);

	return fv_leave(err ? err : fv_qp_destroy(qp, "ibv_destroy_qp"));
}

/* -- shared receive queues: none -- */

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	int err = FV_ENTER(ibv_create_srq);

	(void)pd, (void)attr;
	return fv_leave_ptr(NULL, err ? err : EOPNOTSUPP);
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	(void)srq;
	return EOPNOTSUPP;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	(void)qp;
	return NULL;
}

/* -- states -- */

static void take_attr(struct fv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp_attr *own = &qp->attr;

#define TAKE(bit, field) \
	if (mask & (bit)) \
	own->field = attr->field
	TAKE(IBV_QP_ACCESS_FLAGS, qp_access_flags);
	TAKE(IBV_QP_PKEY_INDEX, pkey_index);
	TAKE(IBV_QP_PORT, port_num);
	TAKE(IBV_QP_AV, ah_attr);
	TAKE(IBV_QP_PATH_MTU, path_mtu);
	TAKE(IBV_QP_TIMEOUT, timeout);
	TAKE(IBV_QP_RETRY_CNT, retry_cnt);
	TAKE(IBV_QP_RNR_RETRY, rnr_retry);
	TAKE(IBV_QP_RQ_PSN, rq_psn);
	TAKE(IBV_QP_SQ_PSN, sq_psn);
	TAKE(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	TAKE(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	TAKE(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
	TAKE(IBV_QP_DEST_QPN, dest_qp_num);
#undef TAKE
}

static int check_transition(const struct fv_qp *qp, const struct ibv_qp_attr *attr, int mask,
			    int to)
{
	if (mask & IBV_QP_CUR_STATE && attr->cur_qp_state != qp->state)
		return EINVAL;
	if ((mask & IBV_QP_RETRY_CNT && attr->retry_cnt > 7) ||
	    (mask & IBV_QP_RNR_RETRY && attr->rnr_retry > 7) ||
	    (mask & IBV_QP_TIMEOUT && attr->timeout > 31) ||
	    (mask & IBV_QP_PORT && attr->port_num != 1))
		return EINVAL;
	if (to == IBV_QPS_ERR || to == IBV_QPS_RESET)
		return 0;
	for (size_t i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++)
		if (transitions[i][0] == (int)qp->state && transitions[i][1] == to)
			return (mask & transitions[i][2]) == transitions[i][2] ? 0 : EINVAL;
	return EINVAL;
}

int fv_qp_modify(struct fv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	int to = mask & IBV_QP_STATE ? (int)attr->qp_state : (int)qp->state;
	int err = check_transition(qp, attr, mask, to);

	if (err)
		return err;
	take_attr(qp, attr, mask);
	if (to == IBV_QPS_ERR) {
		fv_qp_error(qp);
	} else if (to == IBV_QPS_RESET) {
		qp->sq_n = qp->rq_n = qp->sq_used = qp->rq_used = qp->sq_quiet = qp->sq_signalled =
			0;
		fv_cq_clean((struct fv_cq *)qp->qp.send_cq, qp->qp.qp_num);
		fv_cq_clean((struct fv_cq *)qp->qp.recv_cq, qp->qp.qp_num);
	}
	qp->state = qp->qp.state = (enum ibv_qp_state)to;
	fv_wire_run(qp);
	return 0;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int err = FV_ENTER(ibv_modify_qp);

	if (!err)
		err = fv_check(FV_QP, qp, "ibv_modify_qp");
	return fv_leave(err ? err : fv_qp_modify((struct fv_qp *)qp, attr, mask));
}

int ibv_query_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	int err = FV_ENTER(ibv_query_qp);
	struct fv_qp *qp = (struct fv_qp *)base;

	if (!err)
		err = fv_check(FV_QP, base, "ibv_query_qp");
	if (!err) {
		*attr = qp->attr;
		attr->qp_state = attr->cur_qp_state = qp->state;
		*init = qp->init;
		if (mask & IBV_QP_STATE)
			base->state = qp->state;
	}
	return fv_leave(err);
}

/* -- completions -- */

/* In a completion with an error, only the id, the status and the queue pair are valid. */
static void push(struct ibv_cq *cq, struct fv_cqe *cqe, enum ibv_wc_status status, int solicited)
{
	cqe->wc.status = status;
	if (status != IBV_WC_SUCCESS) {
		cqe->wc.opcode = IBV_WC_DRIVER3;
		cqe->wc.byte_len = cqe->wc.imm_data = cqe->wc.wc_flags = POISON;
	}
	fv_cq_push((struct fv_cq *)cq, cqe, solicited);
}

/* The oldest work request of the send queue has completed. */
void fv_qp_sent(struct fv_qp *qp, enum ibv_wc_status status, uint32_t byte_len)
{
	static const enum ibv_wc_opcode opcodes[] = {
		[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
		[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
		[IBV_WR_SEND] = IBV_WC_SEND,
		[IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
		[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
	};
	const struct fv_send *send = &qp->sq[qp->sq_head];
	struct fv_cqe cqe = {.wc = {.wr_id = send->wr.wr_id,
				    .qp_num = qp->qp.qp_num,
				    .opcode = opcodes[send->wr.opcode],
				    .byte_len = byte_len}};

	qp->sq_head = (qp->sq_head + 1) % qp->init.cap.max_send_wr;
	qp->sq_n--;
	qp->sq_quiet++;
	cqe.signalled = (send->wr.send_flags & IBV_SEND_SIGNALED) != 0;
	if (!cqe.signalled && status == IBV_WC_SUCCESS)
		return;
	cqe.slots = qp->sq_quiet;
	qp->sq_quiet = 0;
	push(qp->qp.send_cq, &cqe, status, 0);
}

/* A send of the peer consumes the oldest receive; send NULL: the receive is flushed. */
void fv_qp_received(struct fv_qp *qp, enum ibv_wc_status status, const struct fv_send *send)
{
	struct fv_cqe cqe = {.wc = {.wr_id = qp->rq[qp->rq_head].wr_id,
				    .qp_num = qp->qp.qp_num,
				    .opcode = IBV_WC_RECV},
			     .slots = 1,
			     .is_recv = 1};

	qp->rq_head = (qp->rq_head + 1) % qp->init.cap.max_recv_wr;
	qp->rq_n--;
	if (send) {
		cqe.wc.byte_len = send->length;
		cqe.wc.src_qp = qp->attr.dest_qp_num;
		if (send->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
			cqe.wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
		if (send->wr.opcode != IBV_WR_SEND) {
			cqe.wc.wc_flags = IBV_WC_WITH_IMM;
			cqe.wc.imm_data = send->wr.imm_data;
		}
	}
	push(qp->qp.recv_cq, &cqe, status, send && send->wr.send_flags & IBV_SEND_SOLICITED);
}

void fv_qp_error(struct fv_qp *qp)
{
	qp->state = IBV_QPS_ERR;
	while (qp->sq_n)
		fv_qp_sent(qp, IBV_WC_WR_FLUSH_ERR, 0);
	while (qp->rq_n)
		fv_qp_received(qp, IBV_WC_WR_FLUSH_ERR, NULL);
}

/* -- posting -- */

static int check_send(const struct fv_qp *qp, const struct ibv_send_wr *wr, uint64_t *length_p)
{
	if (wr->num_sge < 0 || wr->num_sge > (int)qp->init.cap.max_send_sge ||
	    wr->opcode > IBV_WR_RDMA_READ)
		return EINVAL;
	*length_p = 0;
	for (int i = 0; i < wr->num_sge; i++)
		*length_p += wr->sg_list[i].length;
	if (wr->send_flags & IBV_SEND_INLINE &&
	    (*length_p > qp->init.cap.max_inline_data || wr->opcode == IBV_WR_RDMA_READ))
		return EINVAL;
	if (wr->opcode == IBV_WR_RDMA_READ && qp->state == IBV_QPS_RTS &&
	    qp->attr.max_rd_atomic == 0) {
		fv_misuse("ibv_post_send(): a read, and the connection has initiator_depth 0");
		return EINVAL;
	}
	if (*length_p > fv_device_of(qp->qp.context)->conf.port.max_msg_sz)
		return EINVAL;
	if (qp->sq_used < qp->init.cap.max_send_wr)
		return 0;
	if (qp->sq_signalled == 0)
		fv_misuse(
			"ibv_post_send(): the queue is full of work requests without a signal, so it never drains");
	return ENOMEM;
}

static void take_send(struct fv_qp *qp, const struct ibv_send_wr *wr, uint32_t length)
{
	struct fv_send *send = &qp->sq[(qp->sq_head + qp->sq_n++) % qp->init.cap.max_send_wr];

	send->wr = *wr;
	send->length = length;
	send->seq = next_seq++;
	send->tries = 0;
	send->wait = FV_GOES;
	if (wr->num_sge)
		memcpy(send->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(*send->sge));
	if (qp->init.sq_sig_all)
		send->wr.send_flags |= IBV_SEND_SIGNALED;
	if (wr->send_flags & IBV_SEND_INLINE) {
		uint8_t *to = send->bytes;

		for (int i = 0; i < wr->num_sge; i++) {
			memcpy(to, (const void *)(uintptr_t)wr->sg_list[i].addr,
			       wr->sg_list[i].length);
			to += wr->sg_list[i].length;
		}
		fv_counters.inlined++;
	}
	if (send->wr.send_flags & IBV_SEND_SIGNALED) {
		fv_counters.signalled++;
		qp->sq_signalled++;
	}
	fv_counters.send_wrs++;
	qp->sq_used++;
}

int fv_post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	int err = FV_ENTER(ibv_post_send);
	struct fv_qp *qp = (struct fv_qp *)base;
	struct ibv_send_wr *first = wr;
	uint64_t length;

	if (!err && qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_ERR)
		err = EINVAL;
	for (; !err && wr; wr = wr->next) {
		err = check_send(qp, wr, &length);
		if (err)
			break;
		take_send(qp, wr, (uint32_t)length);
	}
	if (err)
		*bad_wr = wr;
	fv_counters.doorbells += wr != first;
	if (qp->state == IBV_QPS_ERR)
		fv_qp_error(qp);
	else if (wr != first)
		fv_wire_run(qp);
	return fv_leave(err);
}

static int take_recv(struct fv_qp *qp, const struct ibv_recv_wr *wr)
{
	struct fv_recv *recv;

	if (wr->num_sge < 0 || wr->num_sge > (int)qp->init.cap.max_recv_sge)
		return EINVAL;
	if (qp->rq_used == qp->init.cap.max_recv_wr)
		return ENOMEM;
	recv = &qp->rq[(qp->rq_head + qp->rq_n++) % qp->init.cap.max_recv_wr];
	recv->wr_id = wr->wr_id;
	recv->num_sge = wr->num_sge;
	if (wr->num_sge)
		memcpy(recv->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(*recv->sge));
	qp->rq_used++;
	fv_counters.recv_wrs++;
	return 0;
}

int fv_post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	int err = FV_ENTER(ibv_post_recv);
	struct fv_qp *qp = (struct fv_qp *)base;
	struct ibv_recv_wr *first = wr;

	if (!err && qp->state == IBV_QPS_RESET)
		err = EINVAL;
	for (; !err && wr; wr = wr->next) {
		err = take_recv(qp, wr);
		if (err)
			break;
	}
	if (err)
		*bad_wr = wr;
	fv_counters.recv_bells += wr != first;
	if (qp->state == IBV_QPS_ERR)
		fv_qp_error(qp);
	else if (wr != first)
		fv_wire_run(qp);
	return fv_leave(err);
}

void fv_qp_renumber(void)
{
	n_qps = 0;
}

void fv_qp_reset(void)
{
	struct fv_obj *obj;

	while ((obj = fv_first(FV_QP)))
		free_qp(obj->self);
	free(qps);
	qps = NULL;
	n_qps = room = 0;
}
