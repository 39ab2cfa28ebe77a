/* SPDX-License-Identifier: BSD-3-Clause */
/* vb_cq.c - completion queues, their notification channel, and the meaning of completion errors. */
#include <errno.h>
#include <string.h>

#include "vb_rdma.h"

int vb_channel_create(struct ibv_context *context, struct ibv_comp_channel **channel_p)
{
	int rc;

	errno = 0;
	*channel_p = ibv_create_comp_channel(context);
	if (!*channel_p)
		return errno ? -errno : -ENOMEM;
	rc = vb_fd_unblock((*channel_p)->fd);
	if (rc)
		vb_channel_destroy(channel_p);
	return rc;
}

void vb_channel_destroy(struct ibv_comp_channel **channel_p)
{
	if (*channel_p)
		ibv_destroy_comp_channel(*channel_p);
	*channel_p = NULL;
}

int vb_channel_drain(struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq;
	void *context;
	int n = 0;

	while (ibv_get_cq_event(channel, &cq, &context) == 0) {
		((struct vb_cq *)context)->n_unacked++;
		n++;
	}
	return n;
}

int vb_cq_create(struct ibv_context *context, const struct vb_limits *limits, uint32_t n,
		 struct ibv_comp_channel *channel, struct vb_cq *cq)
{
	*cq = (struct vb_cq){.n_unacked = 0};
	if (n == 0 || n > limits->max_cqe)
		return -E2BIG;
	errno = 0;
	cq->cq = ibv_create_cq(context, (int)n, cq, channel, 0);
	return cq->cq ? 0 : errno ? -errno : -ENOMEM;
}

void vb_cq_destroy(struct vb_cq *cq)
{
	if (!cq->cq)
		return;
	if (cq->n_unacked)
		/* ibv_destroy_cq() blocks until all notifications are acknowledged */
		ibv_ack_cq_events(cq->cq, cq->n_unacked);
	ibv_destroy_cq(cq->cq);
	cq->cq = NULL;
	cq->n_unacked = 0;
}

int vb_cq_arm(struct vb_cq *cq)
{
	int rc = ibv_req_notify_cq(cq->cq, 0);

	/* Acknowledging takes a lock: do it in batches, and before the count overflows. */
	if (cq->n_unacked >= 1024) {
		ibv_ack_cq_events(cq->cq, cq->n_unacked);
		cq->n_unacked = 0;
	}
	return rc ? -(rc > 0 ? rc : errno) : 0;
}

const char *vb_wc_text(const struct ibv_wc *wc)
{
	return ibv_wc_status_str(wc->status);
}

int vb_wc_reason(enum ibv_wc_status status)
{
	static const int reasons[] = {
		/*
		 * a message longer than its receive, although both ends have agreed on the length
		 */
		[IBV_WC_LOC_LEN_ERR] = -EPROTO,
		[IBV_WC_WR_FLUSH_ERR] = -ECANCELED,
		[IBV_WC_BAD_RESP_ERR] = -EPROTO,
		[IBV_WC_REM_INV_REQ_ERR] = -EPROTO,
		[IBV_WC_REM_ACCESS_ERR] = -EPROTO,
		[IBV_WC_REM_OP_ERR] = -EPROTO,
		[IBV_WC_RETRY_EXC_ERR] = -ETIMEDOUT,
		/*
		 * credit prevents a send without a receive, so the peer has violated the protocol
		 */
		[IBV_WC_RNR_RETRY_EXC_ERR] = -EPROTO,
		[IBV_WC_REM_ABORT_ERR] = -EPROTO,
		[IBV_WC_RESP_TIMEOUT_ERR] = -ETIMEDOUT,
	};

	if (status == IBV_WC_SUCCESS)
		return 0;
	return (size_t)status < sizeof(reasons) / sizeof(reasons[0]) && reasons[status]
		       ? reasons[status]
		       : -EIO;
}
