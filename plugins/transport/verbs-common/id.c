/* SPDX-License-Identifier: BSD-3-Clause */
/* id.c - an end of a connection: addresses, listening, resolving, connecting. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdma.h"

#define ROOM_FOR_ADDRESS 64

/* Splits HOST:PORT or [HOST]:PORT in place. */
static int split(char *text, char **host_p, char **port_p)
{
	char *colon = strrchr(text, ':');

	if (!colon || colon == text)
		return -EINVAL;
	*colon = '\0';
	*port_p = colon + 1;
	*host_p = text;
	if (*text != '[')
		return strchr(text, ':') ? -EINVAL : 0;
	if (colon[-1] != ']')
		return -EINVAL;
	colon[-1] = '\0';
	*host_p = text + 1;
	return 0;
}

int vb_address_parse(const char *text, struct sockaddr_storage *addr)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
	struct addrinfo *info;
	char copy[ROOM_FOR_ADDRESS], *host, *port;

	if (strlen(text) >= sizeof(copy))
		return -EINVAL;
	strcpy(copy, text);
	if (split(copy, &host, &port) || getaddrinfo(host, port, &hints, &info))
		return -EINVAL;
	memset(addr, 0, sizeof(*addr));
	memcpy(addr, info->ai_addr, info->ai_addrlen);
	freeaddrinfo(info);
	return 0;
}

void vb_address_print(const struct sockaddr *addr, char *text, size_t size)
{
	char host[INET6_ADDRSTRLEN] = "?";

	if (addr->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)addr;

		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		snprintf(text, size, "%s:%u", host, ntohs(in->sin_port));
	} else if (addr->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const void *)addr;

		inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
		snprintf(text, size, "[%s]:%u", host, ntohs(in6->sin6_port));
	} else {
		snprintf(text, size, "unknown address");
	}
}

int vb_id_create(struct rdma_event_channel *channel, void *context, struct rdma_cm_id **id_p)
{
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
	/* librdmacm takes no const address, and does not change it */
	if (rdma_bind_addr(id, (struct sockaddr *)(uintptr_t)addr) || rdma_listen(id, backlog))
		return -errno;
	return id->verbs ? 0 : -ENODEV; /* bound to no device: nothing would ever arrive */
}

int vb_id_resolve_addr(struct rdma_cm_id *id, const struct sockaddr *from, const struct sockaddr *to, int timeout_ms)
{
	return rdma_resolve_addr(id, (struct sockaddr *)(uintptr_t)from, (struct sockaddr *)(uintptr_t)to, timeout_ms) ? -errno : 0;
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
	if (rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout)) == 0)
		return 0;
	return errno == ENOSYS || errno == EINVAL || errno == EOPNOTSUPP ? 0 : -errno;
}

static uint8_t at_most(uint32_t limit, uint32_t wanted)
{
	uint32_t n = wanted < limit ? wanted : limit;

	return n == 0 ? 1 : n > UINT8_MAX ? UINT8_MAX : (uint8_t)n;
}

static struct rdma_conn_param parameters(const struct vb_patience *patience, const void *private_data, size_t len)
{
	return (struct rdma_conn_param){
		.private_data = private_data,
		.private_data_len = (uint8_t)len,
		.retry_count = patience->retry_count,
		.rnr_retry_count = patience->rnr_retry_count,
	};
}

int vb_id_connect(struct rdma_cm_id *id, const struct vb_limits *limits, const struct vb_patience *patience,
		  const void *private_data, size_t len)
{
	struct rdma_conn_param param = parameters(patience, private_data, len);

	if (len > VB_PRIVATE_MAX)
		return -EMSGSIZE;
	param.responder_resources = at_most(limits->max_rd_atomic, UINT8_MAX);
	param.initiator_depth = at_most(limits->max_init_rd_atomic, UINT8_MAX);
	return rdma_connect(id, &param) ? -errno : 0;
}

int vb_id_accept(struct rdma_cm_id *id, const struct vb_limits *limits, const struct vb_patience *patience,
		 const struct vb_event *request, const void *private_data, size_t len)
{
	struct rdma_conn_param param = parameters(patience, private_data, len);

	if (len > VB_PRIVATE_MAX)
		return -EMSGSIZE;
	/* what the peer starts we answer, what it answers we may start */
	param.responder_resources = at_most(limits->max_rd_atomic, request->initiator_depth);
	param.initiator_depth = at_most(limits->max_init_rd_atomic, request->responder_resources);
	return rdma_accept(id, &param) ? -errno : 0;
}

int vb_id_reject(struct rdma_cm_id *id, const void *private_data, size_t len)
{
	return rdma_reject(id, private_data, (uint8_t)len) ? -errno : 0;
}

void vb_id_disconnect(struct rdma_cm_id *id)
{
	rdma_disconnect(id); /* fails when it is over already */
}
