/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_link.c - connections of the transport (links), from the greeting to their end
 *
 *     1. The connecting side sends HELLO with its own id and the wanted id.
 *     2. On the listening side the new link is a guest: it has no connection yet. The wanted id
 *        selects the connection. A link by address gets a new connection, and the program accepts
 *        it.
 *     3. The listening side sends WELCOME. Each side creates a consumer.
 *     4. When the transport reports the consumer of the peer, each side creates a producer, and the
 *        link is up.
 *
 * The lock of the transport is held in all functions; most of them run on the service thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/gd_log.h"
#include "rdma/rdma.h"

static uint32_t depth(const struct doca_rdma *rdma)
{
	return rdma->limits.max_depth < GD_RDMA_DEPTH ? rdma->limits.max_depth : GD_RDMA_DEPTH;
}

static struct gd_rdma_link *link_new(struct doca_rdma *rdma)
{
	struct gd_rdma_link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	link->rdma = rdma;
	link->max_inline = link->bounce_bytes = rdma->limits.max_inline;
	return link;
}

void gd_rdma_link_destroy(struct gd_rdma_link *link)
{
	const struct gantry_transport_ops *ops = link->rdma->ops;

	if (link->producer)
		ops->producer_destroy(link->producer);
	if (link->consumer)
		ops->consumer_destroy(link->consumer);
	if (link->rma)
		ops->rma_destroy(link->rma);
	gd_rdma_memory_release(link);
	if (link->gantry)
		ops->disconnect(link->gantry);
	gd_rdma_memory_free(link);
	free(link->bounce);
	free(link);
}

/* -- guests -- */

static void guest_add(struct gd_rdma_link *link)
{
	link->next = link->rdma->guests;
	link->rdma->guests = link;
	link->rdma->n_guests++;
}

static void guest_remove(struct gd_rdma_link *link)
{
	struct gd_rdma_link **at = &link->rdma->guests;

	for (struct doca_rdma_connection *conn = link->rdma->conns; conn; conn = conn->next)
		if (conn->parked == link)
			conn->parked = NULL;
	while (*at && *at != link)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = link->next;
	link->rdma->n_guests--;
}

void gd_rdma_guest_drop(struct gd_rdma_link *link)
{
	guest_remove(link);
	gd_rdma_link_destroy(link);
}

void gd_rdma_guests_drop(struct doca_rdma *rdma)
{
	while (rdma->guests)
		gd_rdma_guest_drop(rdma->guests);
}

static void reject_peer(struct gd_rdma_link *link, const char *why)
{
	gd_log(DOCA_LOG_LEVEL_WARNING, "RDMA connection of a peer rejected: %s", why);
	gd_rdma_guest_drop(link);
}

/* -- ends that are reported to the engine -- */

static void report_closed(struct gd_rdma_link *link)
{
	if (link->lost)
		return;
	link->lost = true;
	gd_pe_post(link->rdma->ctx.pe, &link->conn->closed);
}

/*
 * -ENOTCONN is no error: a peer that has only read or written memory may disconnect before this
 * side has made its queues.
 */
static void close_link(struct gd_rdma_link *link, const char *why, int rc)
{
	if (rc != -ENOTCONN)
		gd_log(DOCA_LOG_LEVEL_ERROR, "RDMA connection closed: %s%s%s", why, rc ? ": " : "",
		       rc ? strerror(-rc) : "");
	report_closed(link);
}

/* -- greeting -- */

static int send_hello(struct gd_rdma_link *link, enum gd_rdma_op op, const struct gd_rdma_id *from,
		      const struct gd_rdma_id *to, bool by_address)
{
	struct gd_rdma_hello hello = {
		.op = op,
		.magic = GD_RDMA_MAGIC,
		.version = GD_RDMA_VERSION,
		.by_address = by_address,
		.max_inline = link->bounce_bytes,
		.permissions = link->rdma->permissions,
		.from = *from,
		.to = *to,
	};

	return link->rdma->ops->send_ctrl(link->gantry, &hello, sizeof(hello));
}

static int make_queues(struct gd_rdma_link *link)
{
	struct gantry_queue_attr attr = {.depth = depth(link->rdma),
					 .max_data = link->bounce_bytes};
	uint32_t id;
	int rc;

	link->bounce = calloc(attr.depth, link->bounce_bytes ? link->bounce_bytes : 1);
	if (!link->bounce)
		return -ENOMEM;
	rc = link->rdma->ops->consumer_create(link->gantry, &attr, &id, &link->consumer);
	if (!rc && link->rdma->by_device)
		rc = link->rdma->ops->rma_create(link->gantry, &attr, &link->rma);
	return rc;
}

/* Post `up` when both queues exist: the engine owns the link then. */
static int complete(struct gd_rdma_link *link)
{
	struct gantry_queue_attr attr = {.depth = depth(link->rdma), .max_data = link->max_inline};
	int rc;

	if (!link->consumer || !link->peer_id || link->producer || link->lost)
		return 0;
	rc = link->rdma->ops->producer_create(link->gantry, link->peer_id, &attr, &link->producer);
	if (!rc)
		gd_pe_post(link->rdma->ctx.pe, &link->conn->up);
	return rc;
}

static int settle(struct gd_rdma_link *link)
{
	int rc = make_queues(link);

	link->welcome = true;
	return rc ? rc : complete(link);
}

static void attach(struct gd_rdma_link *link, struct doca_rdma_connection *conn)
{
	guest_remove(link);
	link->conn = conn;
	conn->link = link;
}

doca_error_t gd_rdma_link_welcome(struct gd_rdma_link *link, struct doca_rdma_connection *conn)
{
	int rc;

	if (link->lost)
		return DOCA_ERROR_CONNECTION_ABORTED;
	if (link->conn != conn)
		attach(link, conn);
	rc = send_hello(link, GD_RDMA_WELCOME, &conn->id, &link->from, conn->by_address);
	if (!rc)
		rc = settle(link);
	if (!rc)
		return DOCA_SUCCESS;
	close_link(link, "the queues cannot be created", rc);
	return rc == -ENOMEM ? DOCA_ERROR_NO_MEMORY : DOCA_ERROR_CONNECTION_ABORTED;
}

static bool same_id(const struct gd_rdma_id *a, const struct gd_rdma_id *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static void on_request(struct gd_rdma_link *link)
{
	struct doca_rdma *rdma = link->rdma;
	struct doca_rdma_connection *conn;

	if (!rdma->listener) {
		reject_peer(link,
			    "the context does not listen: call doca_rdma_start_listen_to_port()");
		return;
	}
	if (gd_rdma_conn_alloc(rdma, GD_RDMA_REQUESTED, &conn) != DOCA_SUCCESS) {
		reject_peer(link,
			    "too many connections: raise doca_rdma_set_max_num_connections()");
		return;
	}
	conn->by_address = true;
	attach(link, conn);
	gd_pe_post(rdma->ctx.pe, &conn->requested);
}

/* Store the common limits of both sides, and the rights granted by the peer. */
static void agree(struct gd_rdma_link *link, const struct gd_rdma_hello *hello)
{
	if (hello->max_inline < link->max_inline)
		link->max_inline = hello->max_inline;
	link->permissions = hello->permissions;
}

static void on_hello(struct gd_rdma_link *link, const struct gd_rdma_hello *hello)
{
	struct doca_rdma_connection *conn;

	link->from = hello->from;
	agree(link, hello);
	if (hello->by_address) {
		on_request(link);
		return;
	}
	for (conn = link->rdma->conns; conn; conn = conn->next)
		if (conn->listener && same_id(&conn->id, &hello->to))
			break;
	if (!conn || conn->link || conn->parked)
		reject_peer(link,
			    "the peer requests a connection that does not exist or is in use");
	else if (!conn->knows_peer)
		conn->parked = link;
	else if (same_id(&conn->peer, &link->from))
		gd_rdma_link_welcome(link, conn);
	else
		reject_peer(link, "the connection is for another peer");
}

static void on_welcome(struct gd_rdma_link *link, const struct gd_rdma_hello *hello)
{
	int rc;

	agree(link, hello);
	rc = settle(link);
	if (rc)
		close_link(link, "the queues cannot be created", rc);
}

doca_error_t gd_rdma_link_connect(struct doca_rdma_connection *conn, void *device,
				  const char *service)
{
	struct doca_rdma *rdma = conn->rdma;
	struct gd_rdma_link *link = link_new(rdma);
	int rc;

	if (!link)
		return DOCA_ERROR_NO_MEMORY;
	link->conn = conn;
	link->is_connector = true;
	rc = rdma->ops->connect(device, service, &gd_rdma_events, link, &link->gantry);
	if (rc) {
		gd_log(DOCA_LOG_LEVEL_ERROR, "RDMA connection to %s: cannot connect: %s", service,
		       strerror(-rc));
		free(link);
		return DOCA_ERROR_CONNECTION_ABORTED;
	}
	conn->link = link;
	return DOCA_SUCCESS;
}

/* -- events of the transport -- */

static int on_accept(void *arg, void *gantry, const struct gantry_peer *peer, void **conn_arg_p)
{
	struct doca_rdma *rdma = arg;
	struct gd_rdma_link *link;

	(void)peer;
	if (!rdma->open || rdma->n_guests >= GD_RDMA_GUESTS)
		return 1;
	link = link_new(rdma);
	if (!link)
		return 1;
	link->gantry = gantry;
	guest_add(link);
	*conn_arg_p = link;
	return 0;
}

static void on_connected(void *arg, void *gantry, const struct gantry_peer *peer)
{
	struct gd_rdma_link *link = arg;
	const struct doca_rdma_connection *conn = link->conn;
	int rc;

	(void)peer;
	link->gantry = gantry;
	rc = send_hello(link, GD_RDMA_HELLO, &conn->id, &conn->peer, conn->by_address);
	if (rc)
		close_link(link, "cannot send HELLO", rc);
}

static bool is_greeting(const void *msg, size_t len, struct gd_rdma_hello *hello)
{
	if (len != sizeof(*hello))
		return false;
	memcpy(hello, msg, sizeof(*hello));
	return hello->magic == GD_RDMA_MAGIC && hello->version == GD_RDMA_VERSION &&
	       hello->by_address <= 1;
}

/* Handle a control message; false: the message is invalid. The link can be destroyed after that. */
static bool handle(struct gd_rdma_link *link, const void *msg, size_t len)
{
	struct gd_rdma_resolve resolve;
	struct gd_rdma_atomic atomic;
	struct gd_rdma_hello hello;
	uint32_t op;

	if (len < sizeof(op))
		return false;
	memcpy(&op, msg, sizeof(op));
	if (op == GD_RDMA_HELLO || op == GD_RDMA_WELCOME) {
		if (!is_greeting(msg, len, &hello) || link->welcome ||
		    (op == GD_RDMA_WELCOME) != link->is_connector ||
		    (link->conn && !link->is_connector))
			return false;
		if (op == GD_RDMA_HELLO)
			on_hello(link, &hello);
		else
			on_welcome(link, &hello);
		return true;
	}
	if (!link->welcome)
		return false;
	if (len == sizeof(atomic) && (op == GD_RDMA_ATOMIC || op == GD_RDMA_ATOMIC_DONE)) {
		memcpy(&atomic, msg, sizeof(atomic));
		return op == GD_RDMA_ATOMIC ? gd_rdma_on_atomic(link, &atomic)
					    : gd_rdma_on_atomic_done(link, &atomic);
	}
	if (len != sizeof(resolve))
		return false;
	memcpy(&resolve, msg, sizeof(resolve));
	if (op == GD_RDMA_RESOLVE)
		return gd_rdma_on_resolve(link, &resolve);
	return op == GD_RDMA_RESOLVED && gd_rdma_on_resolved(link, &resolve);
}

static void on_message(void *arg, void *gantry, const void *msg, size_t len)
{
	struct gd_rdma_link *link = arg;
	const bool is_guest = !link->conn;

	(void)gantry;
	if (link->lost || handle(link, msg, len))
		return;
	if (is_guest)
		reject_peer(link, "protocol error, or another version of the protocol");
	else
		close_link(link, "protocol error: invalid control message", 0);
}

static void on_consumer(void *arg, void *gantry, uint32_t id, int up)
{
	struct gd_rdma_link *link = arg;
	int rc;

	(void)gantry;
	if (!up || link->peer_id)
		return;
	link->peer_id = id;
	rc = complete(link);
	if (rc)
		close_link(link, "the queues cannot be created", rc);
}

static void on_revoke(void *arg, void *gantry, uint32_t handle)
{
	(void)gantry;
	gd_rdma_on_revoke(arg, handle);
}

static void on_revoked(void *arg, void *gantry, uint32_t handle, int rc)
{
	(void)gantry;
	(void)rc;
	gd_rdma_on_revoked(arg, handle);
}

static void on_closed(void *arg, void *gantry, int reason)
{
	struct gd_rdma_link *link = arg;

	(void)gantry;
	if (!link->conn) {
		gd_rdma_guest_drop(link);
		return;
	}
	if (!link->welcome && !link->lost)
		gd_log(DOCA_LOG_LEVEL_WARNING, "RDMA connection: cannot be established: %s",
		       strerror(-reason));
	report_closed(link);
}

const struct gantry_conn_events gd_rdma_events = {
	.accept = on_accept,
	.connected = on_connected,
	.message = on_message,
	.consumer = on_consumer,
	.revoke = on_revoke,
	.revoked = on_revoked,
	.closed = on_closed,
};
