/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop_device.c - listeners, connections and events of loop, a transport inside one process. Loop
 * is the reference for the other transports, and runs a whole topology in one process for tests.
 */
#define GANTRY_API_VERSION 1

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "loop.h"

static const struct gantry_option options[] = {
	{"max_depth", GANTRY_OPT_INT, offsetof(struct loop_conf, max_depth), "4096", 1, 65536, NULL,
	 NULL, "Largest depth of a queue, in messages."},
	{"mapped", GANTRY_OPT_BOOL, offsetof(struct loop_conf, mapped), "true", 0, 0, NULL, NULL,
	 "Map imported regions. If false, data moves by remote reads and writes only."},
	GANTRY_OPTION_END,
};

int loop_event(struct loop_conn *conn, enum loop_event_type type, uint32_t id, int rc,
	       const void *data, size_t len)
{
	struct loop_device *dev = conn->dev;
	struct loop_event *ev = malloc(sizeof(*ev) + len);
	uint64_t one = 1;

	if (!ev)
		return -ENOMEM;
	*ev = (struct loop_event){
		.conn = conn, .type = type, .id = id, .rc = rc, .length = (uint32_t)len};
	if (len)
		memcpy(ev->data, data, len);
	*dev->events_end = ev;
	dev->events_end = &ev->next;
	return write(dev->wake, &one, sizeof(one)) < 0 ? -errno : 0;
}

int loop_usable(const struct loop_conn *conn)
{
	return conn->open && !__atomic_load_n(&conn->lost, __ATOMIC_RELAXED) ? 0 : -ENOTCONN;
}

/* Drop the queued events of a connection. Its owner gets no event after loop_disconnect(). */
static void drop_events(struct loop_conn *conn)
{
	struct loop_event **p = &conn->dev->events;

	while (*p) {
		struct loop_event *ev = *p;

		if (ev->conn == conn) {
			*p = ev->next;
			free(ev);
		} else {
			p = &ev->next;
		}
	}
	conn->dev->events_end = p;
}

static struct loop_conn *conn_create(struct loop_device *dev)
{
	struct loop_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return NULL;
	conn->dev = dev;
	conn->self = (struct gantry_peer){.pid = getpid(), .uid = getuid(), .gid = getgid()};
	snprintf(conn->self.address, sizeof(conn->self.address), "same process");
	conn->next = dev->conns;
	dev->conns = conn;
	return conn;
}

static void sweep(struct loop_device *dev)
{
	for (struct loop_conn **p = &dev->conns; *p;) {
		struct loop_conn *conn = *p;

		if (conn->dead) {
			*p = conn->next;
			loop_close_socket(&conn->hold_socket);
			free(conn);
		} else {
			p = &conn->next;
		}
	}
}

/*
 * Keep the lanes of this end from accessing the other end: mark this end lost, then wait for the
 * copies of its lanes. Pairs with copy() in loop_region.c.
 */
static void cut_off(struct loop_conn *conn)
{
	struct loop_rma *rma;

	__atomic_store_n(&conn->lost, 1, __ATOMIC_SEQ_CST);
	LIST_FOREACH (rma, &conn->rmas, link)
		while (__atomic_load_n(&rma->copying, __ATOMIC_SEQ_CST))
			sched_yield();
}

/* Detach the peer, and queue `closed` for the peer with this reason. */
static void detach_peer(struct loop_conn *conn, int reason)
{
	struct loop_conn *peer = conn->peer;

	conn->peer = NULL;
	if (!peer)
		return;
	peer->peer = NULL;
	cut_off(peer);
	/* the owner of the listener does not know this server end yet: drop it without an event */
	if (peer->listener && !peer->open) {
		drop_events(peer);
		peer->dead = true;
		return;
	}
	if (conn->listener)
		drop_events(peer); /* accept() has rejected the peer: drop its CONNECTED event */
	for (unsigned int i = 0; i < LOOP_REGIONS; i++)
		if (peer->exports[i].region)
			loop_event(peer, LOOP_REVOKED, peer->exports[i].handle, 0, NULL, 0);
	loop_event(peer, LOOP_CLOSED, 0, reason, NULL, 0);
}

static void end_conn(struct loop_conn *conn, int reason)
{
	drop_events(conn);
	detach_peer(conn, reason);
	loop_regions_free(conn);
	conn->dead = true;
	if (!conn->dev->in_progress)
		sweep(conn->dev);
}

static void loop_disconnect(void *arg)
{
	struct loop_conn *conn = arg;

	if (conn && !conn->dead)
		end_conn(conn, conn->listener ? -EACCES : -ENOTCONN);
}

static void deliver_accept(struct loop_conn *conn)
{
	struct loop_listener *l = conn->listener;

	conn->open = true;
	conn->events = l->events;
	if (l->events->accept(l->arg, conn, &conn->self, &conn->arg))
		loop_disconnect(conn);
	conn->listener = NULL;
	if (conn->peer)
		conn->peer->open = true;
}

static void deliver(struct loop_event *ev)
{
	struct loop_conn *conn = ev->conn;

	switch (ev->type) {
	case LOOP_ACCEPT:
		deliver_accept(conn);
		break;
	case LOOP_CONNECTED:
		gantry_count(conn->dev->connections, 1);
		conn->events->connected(conn->arg, conn, &conn->self);
		break;
	case LOOP_MESSAGE:
		conn->n_ctrl--;
		conn->events->message(conn->arg, conn, ev->data, ev->length);
		break;
	case LOOP_CONSUMER:
		conn->events->consumer(conn->arg, conn, ev->id, ev->rc);
		break;
	case LOOP_REVOKE:
		conn->events->revoke(conn->arg, conn, ev->id);
		break;
	case LOOP_REVOKED:
		if (loop_revoked(conn, ev->id))
			conn->events->revoked(conn->arg, conn, ev->id, ev->rc);
		break;
	case LOOP_CLOSED:
		conn->open = false;
		conn->events->closed(conn->arg, conn, ev->rc);
		break;
	}
}

static int loop_progress(void *arg)
{
	struct loop_device *dev = arg;
	uint64_t n;
	int n_delivered = 0;

	if (dev->in_progress)
		return 0;
	if (read(dev->wake, &n, sizeof(n)) < 0 && !dev->events)
		return 0;
	dev->in_progress = true;
	for (int budget = 256; dev->events && budget > 0; budget--, n_delivered++) {
		struct loop_event *ev = dev->events;

		dev->events = ev->next;
		if (!dev->events)
			dev->events_end = &dev->events;
		deliver(ev);
		free(ev);
	}
	dev->in_progress = false;
	sweep(dev);
	n = 1;
	if (dev->events && write(dev->wake, &n, sizeof(n)) < 0)
		return -errno;
	return n_delivered;
}

static int loop_listen(void *arg, const char *service, const struct gantry_conn_events *events,
		       void *cb, void **listener_p)
{
	struct loop_device *dev = arg;
	struct loop_listener *l;

	if (!*service || strlen(service) >= sizeof(l->name))
		return -EINVAL;
	LIST_FOREACH (l, &dev->listeners, link)
		if (strcmp(l->name, service) == 0)
			return -EADDRINUSE;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	*l = (struct loop_listener){.dev = dev, .events = events, .arg = cb};
	strcpy(l->name, service);
	LIST_INSERT_HEAD(&dev->listeners, l, link);
	*listener_p = l;
	return 0;
}

static void loop_unlisten(void *arg)
{
	struct loop_listener *l = arg;
	struct loop_conn *conn, *next;

	if (!l)
		return;
	for (conn = l->dev->conns; conn; conn = next) {
		next = conn->next;
		if (conn->listener == l && !conn->open && !conn->dead)
			end_conn(conn, -ECONNREFUSED);
	}
	LIST_REMOVE(l, link);
	free(l);
}

/* Create the server end of a connection, and queue ACCEPT for the listener. */
static int create_server_end(struct loop_conn *conn, struct loop_listener *l)
{
	struct loop_conn *server = conn_create(conn->dev);
	int rc;

	if (!server)
		return -ENOMEM;
	server->listener = l;
	server->peer = conn;
	conn->peer = server;
	/*
	 * ACCEPT first, so that messages sent by accept() follow CONNECTED. If accept() rejects the
	 * connection, detach_peer() drops CONNECTED.
	 */
	rc = loop_event(server, LOOP_ACCEPT, 0, 0, NULL, 0);
	return rc ? rc : loop_event(conn, LOOP_CONNECTED, 0, 0, NULL, 0);
}

static int loop_connect(void *arg, const char *service, const struct gantry_conn_events *events,
			void *cb, void **conn_p)
{
	struct loop_device *dev = arg;
	struct loop_listener *l;
	struct loop_conn *conn;
	int rc;

	if (!*service || strlen(service) >= sizeof(l->name))
		return -EINVAL;
	LIST_FOREACH (l, &dev->listeners, link)
		if (strcmp(l->name, service) == 0)
			break;
	conn = conn_create(dev);
	if (!conn)
		return -ENOMEM;
	conn->events = events;
	conn->arg = cb;
	rc = l ? create_server_end(conn, l)
	       : loop_event(conn, LOOP_CLOSED, 0, -ECONNREFUSED, NULL, 0);
	if (rc) {
		loop_disconnect(conn);
		return rc;
	}
	*conn_p = conn;
	return 0;
}

static int loop_send_ctrl(void *arg, const void *msg, size_t len)
{
	struct loop_conn *conn = arg;
	int rc = loop_usable(conn);

	if (rc)
		return rc;
	if (len == 0 || len > GANTRY_CTRL_MAX)
		return -EMSGSIZE;
	if (conn->peer->n_ctrl >= LOOP_CTRL_QUEUE)
		return -EAGAIN;
	rc = loop_event(conn->peer, LOOP_MESSAGE, 0, 0, msg, len);
	if (!rc)
		conn->peer->n_ctrl++;
	return rc;
}

static void loop_close(void *arg)
{
	struct loop_device *dev = arg;

	dev->in_progress = true; /* keep the list unchanged until sweep() */
	for (struct loop_conn *conn = dev->conns; conn; conn = conn->next)
		loop_disconnect(conn);
	dev->in_progress = false;
	sweep(dev);
	while (!LIST_EMPTY(&dev->listeners))
		loop_unlisten(LIST_FIRST(&dev->listeners));
	while (dev->events) {
		struct loop_event *ev = dev->events;

		dev->events = ev->next;
		free(ev);
	}
	if (dev->wake >= 0)
		close(dev->wake);
	tc_cells_fini(&dev->payload);
	free(dev);
}

static int loop_open(const struct gantry_host *host, const void *conf, void **device_p)
{
	struct loop_device *dev = calloc(1, sizeof(*dev));
	int rc;

	if (!dev)
		return -ENOMEM;
	dev->host = host;
	dev->conf = conf;
	dev->events_end = &dev->events;
	dev->connections = host->counter(host, "connections");
	dev->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = dev->wake < 0 ? -errno : dev->connections ? 0 : -ENOMEM;
	if (!rc)
		rc = tc_cells_init(&dev->payload, host, "payload_bytes");
	if (rc) {
		gantry_log_error(host, "cannot open: %s", strerror(-rc));
		loop_close(dev);
		return rc;
	}
	*device_p = dev;
	return 0;
}

static void loop_info(void *arg, struct gantry_device_info *info)
{
	const struct loop_device *dev = arg;

	*info = (struct gantry_device_info){
		.caps = GANTRY_CAP_RMA | GANTRY_CAP_ORDERED |
			(dev->conf->mapped ? GANTRY_CAP_MAPPED : GANTRY_CAP_DISCONNECT_REVOKES),
		.max_depth = (uint32_t)dev->conf->max_depth,
		.max_inline = LOOP_INLINE,
		.max_regions = LOOP_REGIONS,
		.max_region_bytes = INT64_MAX,
		.detail = "in this process",
	};
}

static int loop_fd(void *arg)
{
	return ((struct loop_device *)arg)->wake;
}

static uint64_t loop_wake_ns(void *arg)
{
	(void)arg;
	return 0;
}

static const struct gantry_data_queue_ops data_ops = {
	.struct_size = sizeof(data_ops),
	.post_recv = loop_post_recv_data,
	.send = loop_send_data,
	.poll_send = loop_poll_send,
};

static const struct gantry_transport_ops ops = {
	.open = loop_open,
	.close = loop_close,
	.info = loop_info,
	.fd = loop_fd,
	.progress = loop_progress,
	.wake_ns = loop_wake_ns,
	.listen = loop_listen,
	.unlisten = loop_unlisten,
	.connect = loop_connect,
	.send_ctrl = loop_send_ctrl,
	.disconnect = loop_disconnect,
	.export_region = loop_export,
	.import_region = loop_import,
	.release_region = loop_release,
	.revoke_region = loop_revoke,
	.hold_exports = loop_hold_exports,
	.consumer_create = loop_consumer_create,
	.consumer_destroy = loop_consumer_destroy,
	.producer_create = loop_producer_create,
	.producer_destroy = loop_producer_destroy,
	.rma_create = loop_rma_create,
	.rma_destroy = loop_rma_destroy,
	.post_recv = loop_post_recv,
	.poll_recv = loop_poll_recv,
	.consumer_arm = loop_consumer_arm,
	.consumer_disarm = loop_consumer_disarm,
	.consumer_fd = loop_consumer_fd,
	.send = loop_send,
	.flush = loop_flush,
	.consumer_set_local_peer = loop_consumer_set_local_peer,
	.producer_local_peer = loop_producer_local_peer,
	.flags = GANTRY_TRANSPORT_INSIDE,
	.rma_submit = loop_rma_submit,
	.rma_flush = loop_rma_flush,
	.rma_poll = loop_rma_poll,
	.data = &data_ops,
};

GANTRY_PLUGIN(loop) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_TRANSPORT,
	.name = "loop",
	.version = "1",
	.summary = "message queues and remote memory inside one process",
	.options = options,
	.conf_size = sizeof(struct loop_conf),
	.ops_size = sizeof(ops),
	.ops = &ops,
};
