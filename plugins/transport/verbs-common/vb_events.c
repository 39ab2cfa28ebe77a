/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vb_events.c - a channel of connection events. Each event is copied and acknowledged before it is
 * processed.
 */
#include <errno.h>
#include <string.h>

#include "vb_rdma.h"

int vb_events_open(struct rdma_event_channel **channel_p)
{
	int rc;

	errno = 0;
	*channel_p = rdma_create_event_channel();
	if (!*channel_p)
		return errno ? -errno : -ENODEV;
	rc = vb_fd_unblock((*channel_p)->fd);
	if (rc)
		vb_events_close(channel_p);
	return rc;
}

void vb_events_close(struct rdma_event_channel **channel_p)
{
	if (*channel_p)
		rdma_destroy_event_channel(*channel_p);
	*channel_p = NULL;
}

static void copy(const struct rdma_cm_event *from, struct vb_event *event)
{
	const struct rdma_conn_param *param = &from->param.conn;

	*event = (struct vb_event){
		.type = from->event,
		.status = from->status,
		.id = from->id,
		.listen_id = from->listen_id,
		.responder_resources = param->responder_resources,
		.initiator_depth = param->initiator_depth,
		.retry_count = param->retry_count,
		.rnr_retry_count = param->rnr_retry_count,
		.qpn = param->qp_num,
		.private_len = param->private_data ? param->private_data_len : 0,
	};
	if (event->private_len)
		memcpy(event->private_data, param->private_data, event->private_len);
}

int vb_events_next(struct rdma_event_channel *channel, struct vb_event *event)
{
	struct rdma_cm_event *from;

	if (rdma_get_cm_event(channel, &from))
		return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -errno;
	copy(from, event);
	/*
	 * The function fails only for a NULL event. Its error is ignored, because the id of the
	 * event must not be lost.
	 */
	rdma_ack_cm_event(from);
	return 1;
}

int vb_event_reason(enum rdma_cm_event_type type, int status)
{
	static const struct {
		int reason;
		int says_why; /* the status can be more specific than `reason` */
	} rows[] = {
		[RDMA_CM_EVENT_ADDR_ERROR] = {-EHOSTUNREACH, 1},
		[RDMA_CM_EVENT_ROUTE_ERROR] = {-EHOSTUNREACH, 1},
		/* the queue pair of this side could not be set up */
		[RDMA_CM_EVENT_CONNECT_ERROR] = {-EIO, 1},
		[RDMA_CM_EVENT_UNREACHABLE] = {-EHOSTUNREACH, 1},
		[RDMA_CM_EVENT_REJECTED] = {-ECONNREFUSED, 0}, /* its status is not an errno */
		[RDMA_CM_EVENT_DISCONNECTED] = {-ENOTCONN, 0},
		[RDMA_CM_EVENT_DEVICE_REMOVAL] = {-ENODEV, 0},
		/* the resolved address is no longer valid */
		[RDMA_CM_EVENT_ADDR_CHANGE] = {-EADDRNOTAVAIL, 0},
	};

	if ((size_t)type >= sizeof(rows) / sizeof(rows[0]))
		return 0;
	return rows[type].says_why &&
			       (status == -ETIMEDOUT || status == -ENODEV || status == -ENOMEM)
		       ? status
		       : rows[type].reason;
}
