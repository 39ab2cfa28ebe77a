/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vb_qp.c - reliable queue pairs: requests are built into a chain, posted with one doorbell, and
 * completed by sequence number.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../common/power.h"
#include "vb_rdma.h"

static void free_tables(struct vb_qp *qp)
{
	free(qp->wrs);
	free(qp->sges);
	free(qp->sends);
	free(qp->recv_wrs);
	free(qp->recv_sges);
	*qp = (struct vb_qp){.qp = NULL};
}

static int make_tables(struct vb_qp *qp, const struct vb_qp_attr *attr)
{
	uint32_t size = tc_power_of_two(attr->sends), recvs = attr->recvs ? attr->recvs : 1;

	*qp = (struct vb_qp){
		.mask = size - 1, .depth = attr->sends, .max_recvs = recvs < 64 ? recvs : 64};
	qp->wrs = calloc(size, sizeof(*qp->wrs));
	qp->sges = calloc(size, sizeof(*qp->sges));
	qp->sends = calloc(size, sizeof(*qp->sends));
	qp->recv_wrs = calloc(qp->max_recvs, sizeof(*qp->recv_wrs));
	qp->recv_sges = calloc(qp->max_recvs, sizeof(*qp->recv_sges));
	if (qp->wrs && qp->sges && qp->sends && qp->recv_wrs && qp->recv_sges)
		return 0;
	free_tables(qp);
	return -ENOMEM;
}

/*
 * Create the queue pair. A device that does not support the requested inline length rejects the
 * request without stating its limit, so try half the length.
 */
static int create(struct rdma_cm_id *id, struct ibv_pd *pd, const struct ibv_qp_init_attr *wanted,
		  uint32_t *max_inline_p)
{
	struct ibv_qp_init_attr init = *wanted; /* a failed attempt can change `init` */
	uint32_t bytes = wanted->cap.max_inline_data;

	while (rdma_create_qp(id, pd, &init) != 0) {
		if (bytes == 0 || errno != EINVAL)
			return -errno;
		bytes /= 2;
		init = *wanted;
		init.cap.max_inline_data = bytes;
	}
	*max_inline_p = init.cap.max_inline_data;
	return 0;
}

int vb_qp_create(struct rdma_cm_id *id, struct ibv_pd *pd, const struct vb_limits *limits,
		 const struct vb_qp_attr *attr, struct vb_qp *qp)
{
	const struct ibv_qp_init_attr init = {
		.qp_context = attr->async,
		.send_cq = attr->cq,
		.recv_cq = attr->cq,
		.cap = {.max_send_wr = attr->sends + attr->wakes,
			.max_recv_wr = attr->recvs ? attr->recvs : 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = attr->inline_bytes},
		.qp_type = IBV_QPT_RC,
	};
	int rc;

	*qp = (struct vb_qp){.qp = NULL};
	if (attr->sends == 0 || attr->sends + attr->wakes > limits->max_qp_wr ||
	    attr->recvs > limits->max_qp_wr)
		return -E2BIG;
	rc = make_tables(qp, attr);
	if (rc)
		return rc;
	rc = create(id, pd, &init, &qp->max_inline);
	if (rc) {
		free_tables(qp);
		return rc;
	}
	qp->qp = id->qp;
	return 0;
}

void vb_qp_destroy(struct rdma_cm_id *id, struct vb_qp *qp)
{
	if (qp->qp)
		rdma_destroy_qp(id);
	free_tables(qp);
}

int vb_qp_fail(struct vb_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	int rc = ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE);

	return rc > 0 ? -rc : rc;
}

struct ibv_send_wr *vb_qp_build(struct vb_qp *qp, const struct vb_send *send)
{
	uint32_t at = qp->built & qp->mask;
	struct ibv_send_wr *wr = &qp->wrs[at];

	if (vb_qp_room(qp) == 0)
		return NULL;
	qp->sges[at] = (struct ibv_sge){.length = 0};
	*wr = (struct ibv_send_wr){.wr_id = qp->built, .sg_list = &qp->sges[at], .num_sge = 1};
	if (qp->built != qp->posted)
		qp->wrs[(qp->built - 1) & qp->mask].next = wr;
	qp->sends[at] = *send;
	qp->wanted |= (int)send->wanted;
	qp->built++;
	return wr;
}

struct ibv_send_wr *vb_qp_build_before(struct vb_qp *qp, const struct vb_send *send)
{
	uint32_t at = (qp->built - 1) & qp->mask;
	struct ibv_send_wr *wr = &qp->wrs[at], *behind = vb_qp_build(qp, &qp->sends[at]);

	if (!behind)
		return NULL;
	behind->opcode = wr->opcode;
	behind->send_flags = wr->send_flags;
	behind->num_sge = wr->num_sge;
	behind->wr = wr->wr;
	*behind->sg_list = *wr->sg_list;
	wr->send_flags = 0;
	wr->num_sge = 1;
	*wr->sg_list = (struct ibv_sge){.length = 0};
	qp->sends[at] = *send;
	qp->wanted |= (int)send->wanted;
	return wr;
}

int vb_qp_post(struct vb_qp *qp)
{
	uint32_t last = qp->built - 1;
	struct ibv_send_wr *bad;
	int rc;

	if (qp->built == qp->posted)
		return 0;
	if (qp->wanted || qp->built - qp->signalled >= (qp->depth + 3) / 4) {
		qp->wrs[last & qp->mask].send_flags |= IBV_SEND_SIGNALED;
		qp->signalled = qp->built;
	}
	rc = ibv_post_send(qp->qp, &qp->wrs[qp->posted & qp->mask], &bad);
	qp->posted = qp->built;
	qp->wanted = 0;
	qp->chain_bytes = 0;
	if (qp->doorbells)
		gantry_count(qp->doorbells, 1);
	return rc > 0 ? -rc : rc;
}

int vb_qp_wake(struct vb_qp *qp)
{
	struct ibv_send_wr wr = {.wr_id = VB_WAKE,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	int rc = ibv_post_send(qp->qp, &wr, &bad);

	return rc > 0 ? -rc : rc;
}

static void end(struct vb_qp *qp, uint32_t until, int status,
		void (*each)(void *arg, const struct vb_send *send, int status), void *arg)
{
	while (qp->done != until) {
		/* copy the entry: each() can reuse it for a new request */
		const struct vb_send send = qp->sends[qp->done & qp->mask];

		qp->done++;
		each(arg, &send, status);
	}
}

void vb_qp_done(struct vb_qp *qp, uint64_t wr_id, int status,
		void (*each)(void *arg, const struct vb_send *send, int status), void *arg)
{
	uint32_t last = (uint32_t)wr_id;

	if (last - qp->done >= qp->posted - qp->done)
		return; /* not outstanding: an error of the device */
	end(qp, last, 0, each, arg);
	end(qp, last + 1, status, each, arg);
}

void vb_qp_cancel(struct vb_qp *qp, int status,
		  void (*each)(void *arg, const struct vb_send *send, int status), void *arg)
{
	qp->posted = qp->built;
	end(qp, qp->built, status, each, arg);
}

static int post_recvs(struct vb_qp *qp, uint32_t n)
{
	struct ibv_recv_wr *bad;
	int rc;

	qp->recv_wrs[n - 1].next = NULL;
	rc = ibv_post_recv(qp->qp, qp->recv_wrs, &bad);
	return rc > 0 ? -rc : rc;
}

int vb_qp_recv(struct vb_qp *qp, char *base, uint32_t size, uint32_t lkey, const uint32_t *slots,
	       uint32_t n)
{
	int rc = 0;

	while (n && !rc) {
		uint32_t batch = n < qp->max_recvs ? n : qp->max_recvs;

		for (uint32_t i = 0; i < batch; i++) {
			qp->recv_sges[i] = (struct ibv_sge){
				.addr = (uintptr_t)(base + (size_t)slots[i] * size),
				.length = size,
				.lkey = lkey};
			qp->recv_wrs[i] = (struct ibv_recv_wr){.wr_id = slots[i] | VB_RECV,
							       .sg_list = &qp->recv_sges[i],
							       .num_sge = 1,
							       .next = qp->recv_wrs + i + 1};
		}
		rc = post_recvs(qp, batch);
		slots += batch;
		n -= batch;
	}
	return rc;
}
