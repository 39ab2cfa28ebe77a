/* SPDX-License-Identifier: BSD-3-Clause */
/* cm_conn.c - connecting ids, and what the connection manager does to their queue pairs */
#include <endian.h>

#include "cm.h"

#define MAX_RETRY 7

/* -- queue pairs -- */

static const int attr_masks[] = {
	[IBV_QPS_INIT] = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT,
	[IBV_QPS_RTR] = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	[IBV_QPS_RTS] = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
};

static void fill_attr(const struct fv_id *id, struct ibv_qp_attr *attr)
{
	const struct fv_device *device = fv_device(id->device);

	attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				(id->resp_res ? IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC
					      : 0);
	attr->pkey_index = 0;
	attr->port_num = 1;
	attr->ah_attr =
		(struct ibv_ah_attr){.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}};
	attr->path_mtu = device->conf.port.active_mtu;
	attr->dest_qp_num = id->remote_qpn;
	attr->rq_psn = attr->sq_psn = 0;
	attr->max_dest_rd_atomic = id->resp_res;
	attr->max_rd_atomic = id->init_depth;
	attr->min_rnr_timer = 0;
	attr->timeout = id->ack_timeout;
	attr->retry_cnt = id->retry;
	attr->rnr_retry = id->rnr_retry;
}

int rdma_init_qp_attr(struct rdma_cm_id *base, struct ibv_qp_attr *attr, int *mask)
{
	int err = FV_ENTER(rdma_init_qp_attr);
	struct fv_id *id = (struct fv_id *)base;

	if (!err)
		err = fv_check(FV_ID, base, "rdma_init_qp_attr");
	if (!err && (attr->qp_state < IBV_QPS_INIT || attr->qp_state > IBV_QPS_RTS || !base->verbs))
		err = EINVAL;
	if (!err && attr->qp_state != IBV_QPS_INIT && id->state != FV_REQUESTED &&
	    id->state != FV_ACCEPTED && id->state != FV_ANSWERED && id->state != FV_ESTABLISHED)
		err = EINVAL;
	if (!err) {
		fill_attr(id, attr);
		*mask = attr_masks[attr->qp_state];
	}
	return fv_leave_errno(err);
}

struct fv_qp *fv_cm_qp(const struct fv_id *id)
{
	return id->id.qp ? fv_qp_find(id->qp_num) : NULL;
}

static int move_qp(struct fv_id *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	fill_attr(id, &attr);
	return fv_cm_qp(id) ? fv_qp_modify(fv_cm_qp(id), &attr, attr_masks[state]) : EINVAL;
}

/* Move the queue pair of the id to RTS, with the negotiated parameters. */
int fv_cm_connect_qp(struct fv_id *id)
{
	int err = move_qp(id, IBV_QPS_INIT);

	if (!err)
		err = move_qp(id, IBV_QPS_RTR);
	return err ? err : move_qp(id, IBV_QPS_RTS);
}

void fv_cm_qp_error(struct fv_id *id)
{
	static struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (fv_cm_qp(id))
		fv_qp_modify(fv_cm_qp(id), &attr, IBV_QP_STATE);
}

static struct ibv_pd *default_pd(struct fv_id *id)
{
	struct fv_device *device = fv_device(id->device);

	if (!device->cm_pd)
		device->cm_pd = fv_pd_alloc(fv_cm_context(id->device), 1);
	return device->cm_pd;
}

static int make_qp(struct fv_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	int err;

	if (!id->id.verbs || id->id.qp)
		return EINVAL;
	if (!pd)
		pd = default_pd(id);
	if (fv_check(FV_PD, pd, "rdma_create_qp") || pd->context != id->id.verbs)
		return EINVAL;
	err = fv_qp_create(pd, init, &id->id.qp);
	if (err)
		return err;
	id->qp_num = id->id.qp->qp_num;
	id->id.pd = pd;
	id->id.send_cq = init->send_cq;
	id->id.recv_cq = init->recv_cq;
	return move_qp(id, IBV_QPS_INIT);
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	int err = FV_ENTER(rdma_create_qp);

	if (!err)
		err = fv_check(FV_ID, id, "rdma_create_qp");
	return fv_leave_errno(err ? err : make_qp((struct fv_id *)id, pd, init));
}

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *init)
{
	if (init->comp_mask != IBV_QP_INIT_ATTR_PD) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return rdma_create_qp(id, init->pd, (struct ibv_qp_init_attr *)init);
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	FV_ENTER(rdma_destroy_qp);
	if (fv_check(FV_ID, id, "rdma_destroy_qp") == 0) {
		if (!fv_cm_qp((struct fv_id *)id))
			fv_misuse("rdma_destroy_qp(): the id has none");
		else
			fv_qp_destroy(id->qp, "rdma_destroy_qp");
		id->qp = NULL;
	}
	fv_leave(0);
}

/* -- connecting -- */

static int over_depth(uint8_t depth, int max)
{
	return depth != RDMA_MAX_RESP_RES && depth > max;
}

static uint8_t depth_of(uint8_t depth, int max)
{
	return depth != RDMA_MAX_RESP_RES || max > RDMA_MAX_RESP_RES ? depth : (uint8_t)max;
}

static void (*spy)(uint8_t *data, unsigned len);

void fake_cm_spy(void (*see)(uint8_t *data, unsigned len))
{
	spy = see;
}

/* Copy the parameters into the id; NULL: the maximum of each, as in the library. */
static int take_param(struct fv_id *id, const struct rdma_conn_param *param, unsigned max_data)
{
	const struct ibv_device_attr *attr = &fv_device(id->device)->conf.attr;
	struct rdma_conn_param most = {.responder_resources = RDMA_MAX_RESP_RES,
				       .initiator_depth = RDMA_MAX_INIT_DEPTH,
				       .retry_count = MAX_RETRY,
				       .rnr_retry_count = MAX_RETRY};

	if (!param)
		param = &most;
	if (over_depth(param->responder_resources, attr->max_qp_rd_atom) ||
	    over_depth(param->initiator_depth, attr->max_qp_init_rd_atom) ||
	    param->private_data_len > max_data || param->retry_count > MAX_RETRY ||
	    param->rnr_retry_count > MAX_RETRY)
		return EINVAL;
	id->param = *param;
	id->param.responder_resources = depth_of(param->responder_resources, attr->max_qp_rd_atom);
	id->param.initiator_depth = depth_of(param->initiator_depth, attr->max_qp_init_rd_atom);
	id->param.private_data = NULL;
	memset(id->data, 0, sizeof(id->data));
	if (param->private_data_len)
		memcpy(id->data, param->private_data, param->private_data_len);
	if (spy)
		spy(id->data, param->private_data_len);
	if (id->id.qp)
		id->param.qp_num = id->qp_num;
	else if (!fv_qp_find(id->param.qp_num))
		return EINVAL;
	return 0;
}

int rdma_connect(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
	int err = FV_ENTER(rdma_connect);
	struct fv_id *id = (struct fv_id *)base;

	if (!err)
		err = fv_check(FV_ID, base, "rdma_connect");
	if (!err && (id->state != FV_ROUTE || !base->verbs))
		err = EINVAL;
	if (!err)
		err = take_param(id, param, FV_REQ_DATA);
	if (!err) {
		id->state = FV_CONNECTS;
		fv_cm_send(id, FV_REQ);
	}
	return fv_leave_errno(err);
}

int rdma_accept(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
	int err = FV_ENTER(rdma_accept);
	struct fv_id *id = (struct fv_id *)base;
	struct rdma_conn_param same;

	if (!err)
		err = fv_check(FV_ID, base, "rdma_accept");
	if (!err && id->state != FV_REQUESTED)
		err = EINVAL;
	if (!err && !param) {
		same = id->param;
		same.private_data_len = 0;
		param = &same;
	}
	if (!err)
		err = take_param(id, param, FV_REP_DATA);
	if (!err) {
		id->resp_res = id->param.responder_resources;
		id->init_depth = id->param.initiator_depth;
		if (base->qp)
			err = fv_cm_connect_qp(id);
	}
	if (!err) {
		id->state = FV_ACCEPTED;
		fv_cm_send(id, FV_REP);
	}
	return fv_leave_errno(err);
}

int rdma_reject(struct rdma_cm_id *base, const void *data, uint8_t len)
{
	int err = FV_ENTER(rdma_reject);
	struct fv_id *id = (struct fv_id *)base;

	if (!err)
		err = fv_check(FV_ID, base, "rdma_reject");
	if (!err && (id->state != FV_REQUESTED || len > FV_REJ_DATA))
		err = EINVAL;
	if (!err) {
		memset(id->data, 0, sizeof(id->data));
		if (len)
			memcpy(id->data, data, len);
		id->reason = FV_REJ_CONSUMER;
		id->state = FV_OVER;
		fv_cm_send(id, FV_REJ);
	}
	return fv_leave_errno(err);
}

/* The program calls this for an id whose queue pair it manages itself. */
int rdma_establish(struct rdma_cm_id *base)
{
	int err = FV_ENTER(rdma_establish);
	struct fv_id *id = (struct fv_id *)base;

	if (!err)
		err = fv_check(FV_ID, base, "rdma_establish");
	if (!err && (base->qp || id->state != FV_ANSWERED))
		err = EINVAL;
	if (!err) {
		id->state = FV_ESTABLISHED;
		fv_cm_send(id, FV_RTU);
	}
	return fv_leave_errno(err);
}

int rdma_disconnect(struct rdma_cm_id *base)
{
	int err = FV_ENTER(rdma_disconnect);
	struct fv_id *id = (struct fv_id *)base;

	if (!err)
		err = fv_check(FV_ID, base, "rdma_disconnect");
	if (!err && id->state < FV_CONNECTS)
		err = EINVAL;
	if (!err) {
		fv_cm_qp_error(id);
		if (id->state == FV_ESTABLISHED) {
			id->state = FV_CLOSES;
			fv_cm_send(id, FV_DREQ);
		} else if (id->state == FV_LEFT) {
			fv_cm_send(id, FV_DREP);
		}
	}
	return fv_leave_errno(err);
}

int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	int err = FV_ENTER(rdma_notify);

	if (!err)
		err = fv_check(FV_ID, id, "rdma_notify");
	return fv_leave_errno(err ? err : event == IBV_EVENT_COMM_EST ? 0 : EINVAL);
}
