/* SPDX-License-Identifier: BSD-3-Clause */
/* events.c - a channel of connection events. Each event is copied and acknowledged before anybody acts on it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "rdma.h"

static int unblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) || fcntl(fd, F_SETFD, FD_CLOEXEC))
		return -errno;
	return 0;
}

int vb_events_open(struct rdma_event_channel **channel_p)
{
	int rc;

	errno = 0;
	*channel_p = rdma_create_event_channel();
	if (!*channel_p)
		return errno ? -errno : -ENODEV;
	rc = unblock((*channel_p)->fd);
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
	return rdma_ack_cm_event(from) ? -errno : 1;
}

int vb_event_reason(enum rdma_cm_event_type type, int status)
{
	switch (type) {
	case RDMA_CM_EVENT_ADDR_ERROR:
		return -EADDRNOTAVAIL;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return -EHOSTUNREACH;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		return status == -ETIMEDOUT ? -ETIMEDOUT : -EHOSTUNREACH;
	case RDMA_CM_EVENT_REJECTED:
		return -ECONNREFUSED;
	case RDMA_CM_EVENT_DISCONNECTED:
		return -ENOTCONN;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return -ENODEV;
	case RDMA_CM_EVENT_ADDR_CHANGE: /* what was resolved is no longer so */
		return -EADDRNOTAVAIL;
	default:
		return 0;
	}
}
