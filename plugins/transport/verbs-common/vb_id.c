/* SPDX-License-Identifier: BSD-3-Clause */
/* vb_id.c - one end of a connection: listening, resolving, connecting. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vb_rdma.h"

#define RETRIES 6 /* largest count: some devices take 7 as unlimited */

int vb_id_create(struct rdma_event_channel *channel, void *context, struct rdma_cm_id **id_p)
{
	*id_p = NULL;
	return rdma_create_id(channel, id_p, context, RDMA_PS_TCP) ? -errno : 0;
}

void vb_id_destroy(struct rdma_cm_id **id_p)
{
	if (*id_p)
		rdma_destroy_id(*id_p);
	*id_p = NULL;
}

int vb_id_listen(struct rdma_cm_id *id, const struct sockaddr *addr, int backlog)
{
	/* librdmacm takes a pointer to non-const, but does not modify the address */
	if (rdma_bind_addr(id, (struct sockaddr *)(uintptr_t)addr) || rdma_listen(id, backlog))
		return -errno;
	/*
	 * -ENODEV: no device has the address, or it is a wildcard such as 0.0.0.0, which belongs to
	 * no single device
	 */
	return id->verbs ? 0 : -ENODEV;
}

int vb_id_resolve_addr(struct rdma_cm_id *id, const struct sockaddr *from,
		       const struct sockaddr *to, int timeout_ms)
{
	return rdma_resolve_addr(id, (struct sockaddr *)(uintptr_t)from,
				 (struct sockaddr *)(uintptr_t)to, timeout_ms)
		       ? -errno
		       : 0;
}

int vb_id_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	return rdma_resolve_route(id, timeout_ms) ? -errno : 0;
}

int vb_id_set_patience(struct rdma_cm_id *id, const struct vb_patience *patience)
{
	uint8_t timeout = patience->ack_timeout;

	if (timeout == 0)
		return 0;
	if (rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
			    sizeof(timeout)) == 0)
		return 0;
	return errno == ENOSYS || errno == EINVAL || errno == EOPNOTSUPP ? 0 : -errno;
}

/* Returns at least 1: some devices report a limit of 0 although they support 1. */
static uint8_t at_most(uint32_t limit, uint8_t wanted)
{
	uint8_t n = wanted < limit ? wanted : (uint8_t)limit;

	return n ? n : 1;
}

static struct rdma_conn_param parameters(const struct vb_patience *patience,
					 const void *private_data, size_t len)
{
	return (struct rdma_conn_param){
		.private_data = private_data,
		.private_data_len = (uint8_t)len,
		.retry_count = patience->retry_count,
		.rnr_retry_count = patience->rnr_retry_count,
	};
}

int vb_id_connect(struct rdma_cm_id *id, const struct vb_limits *limits,
		  const struct vb_patience *patience, const void *private_data, size_t len)
{
	struct rdma_conn_param param = parameters(patience, private_data, len);

	if (len > VB_PRIVATE_MAX)
		return -EMSGSIZE;
	param.responder_resources = at_most(limits->max_rd_atomic, UINT8_MAX);
	param.initiator_depth = at_most(limits->max_init_rd_atomic, UINT8_MAX);
	return rdma_connect(id, &param) ? -errno : 0;
}

int vb_id_accept(struct rdma_cm_id *id, const struct vb_limits *limits,
		 const struct vb_patience *patience, const struct vb_event *request,
		 const void *private_data, size_t len)
{
	struct rdma_conn_param param = parameters(patience, private_data, len);

	if (len > VB_PRIVATE_MAX)
		return -EMSGSIZE;
	if (request->retry_count > RETRIES || request->rnr_retry_count > RETRIES)
		return -EPROTO;
	param.responder_resources = at_most(limits->max_rd_atomic, request->responder_resources);
	param.initiator_depth = at_most(limits->max_init_rd_atomic, request->initiator_depth);
	return rdma_accept(id, &param) ? -errno : 0;
}

int vb_id_reject(struct rdma_cm_id *id, const void *private_data, size_t len)
{
	if (len > VB_REJECT_MAX)
		return -EMSGSIZE;
	return rdma_reject(id, private_data, (uint8_t)len) ? -errno : 0;
}

void vb_id_disconnect(struct rdma_cm_id *id)
{
	rdma_disconnect(id); /* fails if the connection has already ended */
}
