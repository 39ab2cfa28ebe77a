/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_address.c - connections by address: listen on a port, requests, accept and reject
 *
 * On devices of shared memory all addresses mean this machine, and a port is part of a service
 * name.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/gd_log.h"
#include "rdma/rdma.h"

/* -- addresses -- */

/* Convert an address to the notation of transports; false: not an address of the type `type`. */
static bool parse(enum doca_rdma_addr_type type, const char *address, char *text, size_t size)
{
	struct in6_addr addr;
	char plain[INET6_ADDRSTRLEN];

	if (type == DOCA_RDMA_ADDR_TYPE_IPv4) {
		if (inet_pton(AF_INET, address, &addr) != 1)
			return false;
		inet_ntop(AF_INET, &addr, text, (socklen_t)size);
		return true;
	}
	if ((type != DOCA_RDMA_ADDR_TYPE_IPv6 && type != DOCA_RDMA_ADDR_TYPE_GID) ||
	    inet_pton(AF_INET6, address, &addr) != 1)
		return false;
	if (IN6_IS_ADDR_V4MAPPED(&addr)) {
		inet_ntop(AF_INET, &addr.s6_addr[12], text, (socklen_t)size);
	} else {
		inet_ntop(AF_INET6, &addr, plain, sizeof(plain));
		snprintf(text, size, "[%s]", plain);
	}
	return true;
}

doca_error_t doca_rdma_addr_create(enum doca_rdma_addr_type addr_type, const char *address,
				   uint16_t port, struct doca_rdma_addr **addr)
{
	struct doca_rdma_addr *new;
	char text[56];

	if (!address || !addr)
		return DOCA_ERROR_INVALID_VALUE;
	if (strlen(address) >= sizeof(new->text) ||
	    !parse(addr_type, address, text, sizeof(text))) {
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "RDMA address '%.64s': invalid for its type (addr_type=%d): write an address of that type",
		       address, (int)addr_type);
		return DOCA_ERROR_INVALID_VALUE;
	}
	new = calloc(1, sizeof(*new));
	if (!new)
		return DOCA_ERROR_NO_MEMORY;
	new->type = addr_type;
	new->port = port;
	snprintf(new->text, sizeof(new->text), "%s", address);
	*addr = new;
	return DOCA_SUCCESS;
}

doca_error_t doca_rdma_addr_destroy(struct doca_rdma_addr *addr)
{
	if (!addr)
		return DOCA_ERROR_INVALID_VALUE;
	if (addr->is_lent)
		return DOCA_ERROR_BAD_STATE;
	free(addr);
	return DOCA_SUCCESS;
}

doca_error_t doca_rdma_addr_get_params(struct doca_rdma_addr *addr,
				       enum doca_rdma_addr_type *addr_type, const char **address,
				       uint16_t *port)
{
	if (!addr || !addr_type || !address || !port)
		return DOCA_ERROR_INVALID_VALUE;
	*addr_type = addr->type;
	*address = addr->text;
	*port = addr->port;
	return DOCA_SUCCESS;
}

doca_error_t doca_rdma_connection_get_addr(const struct doca_rdma_connection *rdma_connection,
					   struct doca_rdma_addr **addr)
{
	if (!rdma_connection || !addr || !rdma_connection->addr.text[0])
		return DOCA_ERROR_INVALID_VALUE;
	*addr = (struct doca_rdma_addr *)&rdma_connection->addr;
	return DOCA_SUCCESS;
}

/* -- listening side -- */

/* Get the service of an address and port. address NULL: the address of the device. */
static doca_error_t service(const struct doca_rdma *rdma, const char *address, uint16_t port,
			    char text[64])
{
	char own[56];

	if (!rdma->network) {
		snprintf(text, 64, "rdma-cm-%u", port);
		return DOCA_SUCCESS;
	}
	if (!address) {
		if (gd_rdma_own_address(rdma, own, sizeof(own)) != DOCA_SUCCESS)
			return DOCA_ERROR_NOT_FOUND;
		address = own;
	}
	snprintf(text, 64, "%s:%u", address, port);
	return DOCA_SUCCESS;
}

doca_error_t doca_rdma_start_listen_to_port(struct doca_rdma *rdma, uint16_t port)
{
	const doca_error_t result = gd_rdma_running(rdma);
	char text[64];
	void *device;
	int rc = 0;

	if (result != DOCA_SUCCESS)
		return result;
	if (port == 0)
		return DOCA_ERROR_INVALID_VALUE;
	if (service(rdma, NULL, port, text) != DOCA_SUCCESS) {
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "RDMA device %s: cannot listen: no IP address: see `ip addr` and `rdma link`",
		       rdma->ctx.dev->info->ibdev);
		return DOCA_ERROR_CONNECTION_ABORTED;
	}
	gd_transport_lock(rdma->transport, &device);
	if (rdma->listener)
		rc = -EBUSY;
	else
		rc = rdma->ops->listen(device, text, &gd_rdma_events, rdma, &rdma->listener);
	if (!rc)
		rdma->port = port;
	gd_transport_unlock(rdma->transport);
	if (rc == -EBUSY)
		return DOCA_ERROR_BAD_STATE;
	if (rc)
		gd_log(DOCA_LOG_LEVEL_ERROR, "RDMA port %u: cannot listen: %s", port,
		       rc == -EADDRINUSE ? "the port is in use: use another port" : strerror(-rc));
	return rc ? DOCA_ERROR_CONNECTION_ABORTED : DOCA_SUCCESS;
}

doca_error_t doca_rdma_stop_listen_to_port(struct doca_rdma *rdma, uint16_t port)
{
	doca_error_t result = DOCA_ERROR_INVALID_VALUE;
	void *device;

	if (!rdma || !rdma->transport)
		return DOCA_ERROR_INVALID_VALUE;
	gd_transport_lock(rdma->transport, &device);
	if (rdma->listener && rdma->port == port) {
		rdma->ops->unlisten(rdma->listener);
		rdma->listener = NULL;
		result = DOCA_SUCCESS;
	}
	gd_transport_unlock(rdma->transport);
	return result;
}

doca_error_t doca_rdma_connection_accept(struct doca_rdma_connection *rdma_connection,
					 void *private_data, uint8_t private_data_len)
{
	doca_error_t result;
	void *device;

	if (!rdma_connection || (private_data_len && !private_data))
		return DOCA_ERROR_INVALID_VALUE;
	if (rdma_connection->state != GD_RDMA_REQUESTED)
		return DOCA_ERROR_CONNECTION_ABORTED;
	gd_transport_lock(rdma_connection->rdma->transport, &device);
	result = gd_rdma_link_welcome(rdma_connection->link, rdma_connection);
	gd_transport_unlock(rdma_connection->rdma->transport);
	if (result == DOCA_SUCCESS)
		rdma_connection->state = GD_RDMA_WAITING;
	return result;
}

doca_error_t doca_rdma_connection_reject(struct doca_rdma_connection *rdma_connection)
{
	if (!rdma_connection)
		return DOCA_ERROR_INVALID_VALUE;
	if (rdma_connection->state != GD_RDMA_REQUESTED)
		return DOCA_ERROR_CONNECTION_ABORTED;
	gd_rdma_conn_drop(rdma_connection, DOCA_ERROR_CONNECTION_ABORTED);
	return DOCA_SUCCESS;
}

/* -- connecting side -- */

doca_error_t doca_rdma_connect_to_addr(struct doca_rdma *rdma, struct doca_rdma_addr *addr,
				       union doca_data connection_user_data)
{
	doca_error_t result = gd_rdma_running(rdma);
	struct doca_rdma_connection *conn;
	char address[56], text[64];
	void *device;

	if (result != DOCA_SUCCESS)
		return result;
	if (!addr || addr->port == 0 || !parse(addr->type, addr->text, address, sizeof(address)))
		return DOCA_ERROR_INVALID_VALUE;
	service(rdma, address, addr->port, text);
	gd_transport_lock(rdma->transport, &device);
	result = gd_rdma_conn_alloc(rdma, GD_RDMA_WAITING, &conn);
	if (result == DOCA_SUCCESS) {
		conn->by_address = true;
		conn->addr = *addr;
		conn->addr.is_lent = true;
		conn->user_data = connection_user_data;
		result = gd_rdma_link_connect(conn, device, text);
		if (result != DOCA_SUCCESS)
			gd_rdma_conn_free(conn);
	}
	gd_transport_unlock(rdma->transport);
	return result == DOCA_ERROR_FULL || result == DOCA_ERROR_NO_MEMORY
		       ? DOCA_ERROR_CONNECTION_ABORTED
		       : result;
}

/*
 * -- connections that the program makes by librdmacm: not supported, the transports make them --
 */

doca_error_t doca_rdma_bridge_prepare_connection(struct doca_rdma *rdma, struct rdma_cm_id *cm_id,
						 struct doca_rdma_connection **rdma_connection)
{
	return rdma && cm_id && rdma_connection ? DOCA_ERROR_NOT_SUPPORTED
						: DOCA_ERROR_INVALID_VALUE;
}

doca_error_t doca_rdma_bridge_accept(struct doca_rdma *rdma, void *private_data,
				     uint8_t private_data_len,
				     struct doca_rdma_connection *rdma_connection)
{
	(void)private_data;
	(void)private_data_len;
	return rdma && rdma_connection ? DOCA_ERROR_NOT_SUPPORTED : DOCA_ERROR_INVALID_VALUE;
}

doca_error_t doca_rdma_bridge_established(struct doca_rdma *rdma,
					  struct doca_rdma_connection *rdma_connection)
{
	return rdma && rdma_connection ? DOCA_ERROR_NOT_SUPPORTED : DOCA_ERROR_INVALID_VALUE;
}
