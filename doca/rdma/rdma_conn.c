/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_conn.c - connections, as programs see them: creation, connection by blobs, and their end
 *
 *   FREE -> EXPORTED -> WAITING -> UP -> OVER -> FREE     by blobs
 *   FREE -> WAITING -> UP -> ...                          by address, connecting side
 *   FREE -> REQUESTED -> WAITING -> UP -> ...             by address, listening side
 *
 * With blobs, the side with the smaller id connects. The other side waits; if the link of the peer
 * has arrived already, it is parked in the connection.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/container_of.h"
#include "common/gd_log.h"
#include "rdma/rdma.h"

#define PORT_FIRST 20000u /* range of ports on which connections of network devices listen */
#define PORT_LAST 59999u
#define PORT_TRIES 64

/* -- events of the service thread, run by the engine -- */

static void run_requested(struct gd_event *event)
{
	struct doca_rdma_connection *conn = gn_container_of(event, struct doca_rdma_connection,
							    requested);
	struct doca_rdma *rdma = conn->rdma;

	if (rdma->request_cb)
		rdma->request_cb(conn, rdma->ctx.user_data);
	else
		doca_rdma_connection_reject(conn);
}

static void run_up(struct gd_event *event)
{
	struct doca_rdma_connection *conn = gn_container_of(event, struct doca_rdma_connection, up);
	struct doca_rdma *rdma = conn->rdma;

	conn->state = GD_RDMA_UP;
	conn->was_up = true;
	gd_rdma_flow_up(conn);
	if (rdma->established_cb)
		rdma->established_cb(conn, conn->user_data, rdma->ctx.user_data);
}

static void run_closed(struct gd_event *event)
{
	struct doca_rdma_connection *conn = gn_container_of(event, struct doca_rdma_connection,
							    closed);

	conn->lost = true;
	if (conn->state != GD_RDMA_UP) /* in state UP, earlier messages are read first */
		gd_rdma_conn_over(conn, DOCA_ERROR_CONNECTION_ABORTED, true);
}

static void free_conn(struct doca_rdma_connection *conn)
{
	void *device;

	gd_transport_lock(conn->rdma->transport, &device);
	gd_rdma_conn_free(conn);
	gd_transport_unlock(conn->rdma->transport);
}

/* Report the end of a connection. Do not touch the context after the callback. */
static void run_over(struct gd_event *event)
{
	struct doca_rdma_connection *conn = gn_container_of(event, struct doca_rdma_connection,
							    over);
	struct doca_rdma *rdma = conn->rdma;

	gd_transport_lock(rdma->transport, NULL);
	rdma->last_reported = conn;
	gd_rdma_conn_free(conn); /* before the callback, which can create another connection */
	gd_transport_unlock(rdma->transport);
	if (conn->was_up && rdma->disconnection_cb)
		rdma->disconnection_cb(conn, conn->user_data, rdma->ctx.user_data);
	else if (!conn->was_up && rdma->failure_cb)
		rdma->failure_cb(conn, conn->user_data, rdma->ctx.user_data);
}

/* The consumer signalled its fd: the next poll finds the cause. */
static void run_bell(struct gd_event *event)
{
	gd_rdma_unarm(gn_container_of(event, struct doca_rdma_connection, bell));
}

static void run_revoked(struct gd_event *event)
{
	gd_rdma_release_revoked(gn_container_of(event, struct doca_rdma_connection, revoked));
}

/* -- allocation -- */

static struct doca_rdma_connection *conn_new(struct doca_rdma *rdma)
{
	struct doca_rdma_connection *conn = calloc(1, sizeof(*conn)), **at = &rdma->conns;

	if (!conn)
		return NULL;
	conn->rdma = rdma;
	conn->number = rdma->n_numbers++;
	conn->requested.run = run_requested;
	conn->up.run = run_up;
	conn->closed.run = run_closed;
	conn->over.run = run_over;
	conn->bell.run = run_bell;
	conn->revoked.run = run_revoked;
	while (*at)
		at = &(*at)->next;
	*at = conn;
	return conn;
}

doca_error_t gd_rdma_conn_alloc(struct doca_rdma *rdma, enum gd_rdma_state state,
				struct doca_rdma_connection **conn_p)
{
	struct doca_rdma_connection *conn;

	if (rdma->n_conns >= rdma->max_connections)
		return DOCA_ERROR_FULL;
	for (conn = rdma->conns; conn && (conn->taken || conn == rdma->last_reported);
	     conn = conn->next)
		;
	if (!conn)
		conn = conn_new(rdma);
	if (!conn)
		return DOCA_ERROR_NO_MEMORY;
	rdma->n_conns++;
	conn->taken = true;
	conn->state = state;
	conn->by_address = conn->knows_peer = conn->lost = conn->was_up = conn->armed = false;
	conn->user_data.u64 = 0;
	conn->addr.text[0] = 0;
	memset(&conn->id, 0, sizeof(conn->id));
	memset(&conn->peer, 0, sizeof(conn->peer));
	STAILQ_INIT(&conn->sends);
	STAILQ_INIT(&conn->flying);
	conn->n_writes = conn->left = conn->posted = 0;
	conn->receiving = NULL;
	*conn_p = conn;
	return DOCA_SUCCESS;
}

void gd_rdma_conn_free(struct doca_rdma_connection *conn)
{
	if (!conn->taken)
		return;
	conn->taken = false;
	conn->state = GD_RDMA_FREE;
	conn->rdma->n_conns--;
}

void gd_rdma_conns_free(struct doca_rdma *rdma)
{
	while (rdma->conns) {
		struct doca_rdma_connection *conn = rdma->conns;

		rdma->conns = conn->next;
		free(conn);
	}
}

/* -- release -- */

/* Lock held. */
static void stop_listening(struct doca_rdma_connection *conn)
{
	if (conn->listener)
		conn->rdma->ops->unlisten(conn->listener);
	conn->listener = NULL;
}

static void close_conn(struct doca_rdma_connection *conn)
{
	struct doca_rdma *rdma = conn->rdma;
	struct gd_event *const events[] = {&conn->requested, &conn->up,   &conn->closed,
					   &conn->over,      &conn->bell, &conn->revoked};
	struct gd_rdma_link *link;
	void *device;

	gd_rdma_flow_down(conn);
	gd_transport_lock(rdma->transport, &device);
	stop_listening(conn);
	link = conn->link;
	conn->link = NULL;
	if (link)
		gd_rdma_link_destroy(link);
	if (conn->parked)
		gd_rdma_guest_drop(conn->parked);
	gd_transport_unlock(rdma->transport);
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		gd_pe_withdraw(rdma->ctx.pe, events[i]);
}

void gd_rdma_conn_drop(struct doca_rdma_connection *conn, doca_error_t status)
{
	close_conn(conn);
	gd_rdma_flush(conn, status, false);
	free_conn(conn);
}

void gd_rdma_conn_over(struct doca_rdma_connection *conn, doca_error_t status, bool fails)
{
	close_conn(conn);
	conn->state = GD_RDMA_OVER;
	/* post first: a failing task stops the context */
	gd_pe_post(conn->rdma->ctx.pe, &conn->over);
	gd_rdma_flush(conn, status, fails);
}

doca_error_t doca_rdma_connection_disconnect(struct doca_rdma_connection *rdma_connection)
{
	if (!rdma_connection)
		return DOCA_ERROR_INVALID_VALUE;
	if (rdma_connection->state == GD_RDMA_FREE || rdma_connection->state == GD_RDMA_OVER)
		return DOCA_SUCCESS;
	gd_rdma_conn_over(rdma_connection, DOCA_ERROR_CONNECTION_ABORTED, false);
	return DOCA_SUCCESS;
}

/* -- by blobs -- */

static void print_service(const struct gd_rdma_id *id, char *text, size_t size)
{
	size_t n = (size_t)snprintf(text, size, "rdma-");

	for (size_t i = 0; i < sizeof(id->bytes); i++)
		n += (size_t)snprintf(text + n, size - n, "%02x", id->bytes[i]);
}

static doca_error_t listen_on_network(struct doca_rdma_connection *conn, void *device)
{
	struct doca_rdma *rdma = conn->rdma;
	char address[56];
	uint32_t random;
	int rc = -EADDRINUSE;

	if (gd_rdma_own_address(rdma, address, sizeof(address)) != DOCA_SUCCESS) {
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "RDMA device %s: cannot export a connection: no IP address: see `ip addr` and `rdma link`, or set iface",
		       rdma->ctx.dev->info->ibdev);
		return DOCA_ERROR_CONNECTION_ABORTED;
	}
	for (int i = 0; i < PORT_TRIES && rc == -EADDRINUSE; i++) {
		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return DOCA_ERROR_OPERATING_SYSTEM;
		snprintf(conn->blob.service, sizeof(conn->blob.service), "%s:%u", address,
			 PORT_FIRST + random % (PORT_LAST - PORT_FIRST + 1));
		rc = rdma->ops->listen(device, conn->blob.service, &gd_rdma_events, rdma,
				       &conn->listener);
	}
	return rc ? DOCA_ERROR_CONNECTION_ABORTED : DOCA_SUCCESS;
}

/* Lock held. Choose an id, listen on a service, and fill the blob. */
static doca_error_t offer(struct doca_rdma_connection *conn, void *device)
{
	struct doca_rdma *rdma = conn->rdma;
	int rc;

	if (getrandom(&conn->id, sizeof(conn->id), 0) != sizeof(conn->id))
		return DOCA_ERROR_OPERATING_SYSTEM;
	conn->blob = (struct gd_rdma_blob){
		.magic = GD_RDMA_MAGIC, .version = GD_RDMA_VERSION, .id = conn->id};
	if (rdma->network)
		return listen_on_network(conn, device);
	print_service(&conn->id, conn->blob.service, sizeof(conn->blob.service));
	rc = rdma->ops->listen(device, conn->blob.service, &gd_rdma_events, rdma, &conn->listener);
	if (rc)
		gd_log(DOCA_LOG_LEVEL_ERROR, "RDMA connection: cannot be exported: %s",
		       strerror(-rc));
	return rc ? DOCA_ERROR_CONNECTION_ABORTED : DOCA_SUCCESS;
}

doca_error_t doca_rdma_export(struct doca_rdma *rdma, const void **local_rdma_conn_details,
			      size_t *local_rdma_conn_details_size,
			      struct doca_rdma_connection **rdma_connection)
{
	doca_error_t result = gd_rdma_running(rdma);
	struct doca_rdma_connection *conn;
	void *device;

	if (result != DOCA_SUCCESS)
		return result;
	if (!local_rdma_conn_details || !local_rdma_conn_details_size || !rdma_connection)
		return DOCA_ERROR_INVALID_VALUE;
	gd_transport_lock(rdma->transport, &device);
	result = gd_rdma_conn_alloc(rdma, GD_RDMA_EXPORTED, &conn);
	if (result == DOCA_SUCCESS) {
		result = offer(conn, device);
		if (result != DOCA_SUCCESS)
			gd_rdma_conn_free(conn);
	}
	gd_transport_unlock(rdma->transport);
	if (result != DOCA_SUCCESS)
		return result;
	*local_rdma_conn_details = &conn->blob;
	*local_rdma_conn_details_size = sizeof(conn->blob);
	*rdma_connection = conn;
	return DOCA_SUCCESS;
}

/* Check an untrusted blob of a peer. */
static bool is_blob(const void *bytes, size_t size, struct gd_rdma_blob *blob)
{
	if (size != sizeof(*blob))
		return false;
	memcpy(blob, bytes, sizeof(*blob));
	return blob->magic == GD_RDMA_MAGIC && blob->version == GD_RDMA_VERSION &&
	       blob->zero == 0 && blob->service[0] &&
	       memchr(blob->service, 0, sizeof(blob->service));
}

/* Lock held. */
static doca_error_t pair(struct doca_rdma_connection *conn, void *device,
			 const struct gd_rdma_blob *blob)
{
	struct gd_rdma_link *parked = conn->parked;

	conn->peer = blob->id;
	conn->knows_peer = true;
	if (memcmp(&conn->id, &blob->id, sizeof(conn->id)) < 0)
		return gd_rdma_link_connect(conn, device, blob->service);
	if (parked && memcmp(&parked->from, &blob->id, sizeof(parked->from)) == 0)
		return gd_rdma_link_welcome(parked, conn);
	if (parked)
		gd_rdma_guest_drop(parked);
	return DOCA_SUCCESS;
}

doca_error_t doca_rdma_connect(struct doca_rdma *rdma, const void *remote_rdma_conn_details,
			       size_t remote_rdma_conn_details_size,
			       struct doca_rdma_connection *rdma_connection)
{
	doca_error_t result = gd_rdma_running(rdma);
	struct gd_rdma_blob blob;
	void *device;

	if (result != DOCA_SUCCESS)
		return result;
	if (!remote_rdma_conn_details || !rdma_connection || rdma_connection->rdma != rdma)
		return DOCA_ERROR_INVALID_VALUE;
	if (rdma_connection->state != GD_RDMA_EXPORTED)
		return DOCA_ERROR_BAD_STATE;
	if (!is_blob(remote_rdma_conn_details, remote_rdma_conn_details_size, &blob)) {
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "RDMA connection: cannot connect: invalid connection details (bytes=%zu): pass those of doca_rdma_export() of the peer",
		       remote_rdma_conn_details_size);
		return DOCA_ERROR_INVALID_VALUE;
	}
	if (memcmp(&blob.id, &rdma_connection->id, sizeof(blob.id)) == 0) {
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "RDMA connection: cannot connect to itself: pass the connection details of the peer");
		return DOCA_ERROR_INVALID_VALUE;
	}
	gd_transport_lock(rdma->transport, &device);
	result = pair(rdma_connection, device, &blob);
	gd_transport_unlock(rdma->transport);
	if (result == DOCA_SUCCESS)
		rdma_connection->state = GD_RDMA_WAITING;
	return result;
}

/* -- properties -- */

doca_error_t doca_rdma_connection_set_user_data(struct doca_rdma_connection *rdma_connection,
						union doca_data connection_user_data)
{
	if (!rdma_connection)
		return DOCA_ERROR_INVALID_VALUE;
	rdma_connection->user_data = connection_user_data;
	return DOCA_SUCCESS;
}

doca_error_t doca_rdma_connection_get_user_data(const struct doca_rdma_connection *rdma_connection,
						union doca_data *connection_user_data)
{
	if (!rdma_connection || !connection_user_data)
		return DOCA_ERROR_INVALID_VALUE;
	*connection_user_data = rdma_connection->user_data;
	return DOCA_SUCCESS;
}

doca_error_t doca_rdma_connection_get_id(const struct doca_rdma_connection *rdma_connection,
					 uint32_t *connection_id)
{
	if (!rdma_connection || !connection_id)
		return DOCA_ERROR_INVALID_VALUE;
	*connection_id = rdma_connection->number;
	return DOCA_SUCCESS;
}
