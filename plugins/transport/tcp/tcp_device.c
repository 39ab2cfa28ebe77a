/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_device.c - the device, its event loop, and the table of the plugin. */
#define GANTRY_API_VERSION 1

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tcp.h"

#define EVENTS_PER_TURN 64
#define LEAVE_ROUNDS 2000 /* rounds of 0.1 ms in which the last bytes of all connections leave */

static const struct gantry_option options[] = {
	{"max_depth", GANTRY_OPT_INT, offsetof(struct tcp_conf, max_depth), "256", 2, 4096, NULL,
	 NULL, "Largest depth of a queue, in messages, and of accesses in flight on a lane."},
	{"max_region_bytes", GANTRY_OPT_SIZE, offsetof(struct tcp_conf, max_region_bytes), "1TiB",
	 4096, INT64_MAX, NULL, NULL, "Largest region that can be exported."},
	{"connect_timeout", GANTRY_OPT_TIME, offsetof(struct tcp_conf, connect_timeout_ns), "5s",
	 100000000, 600000000000, NULL, NULL,
	 "Time limit of connecting, with the lookup of the name, and of the hello of a peer."},
	{"dead_time", GANTRY_OPT_TIME, offsetof(struct tcp_conf, dead_time_ns), "2s", 1000000000,
	 600000000000, NULL, NULL,
	 "A peer that acknowledges no data for this long is dead (TCP_USER_TIMEOUT, keepalive)."},
	{"revoke_timeout", GANTRY_OPT_TIME, offsetof(struct tcp_conf, revoke_timeout_ns), "1s",
	 1000000, 600000000000, NULL, NULL,
	 "Time that a peer has to release a revoked region; after that its accesses are rejected."},
	{"max_connections", GANTRY_OPT_INT, offsetof(struct tcp_conf, max_connections), "256", 1,
	 65536, NULL, NULL,
	 "Connections that all listeners of this device accept together. One host may have three "
	 "quarters of them, and at least one."},
	{"socket_buffer", GANTRY_OPT_SIZE, offsetof(struct tcp_conf, buffer_bytes), "0", 0,
	 INT32_MAX, NULL, NULL,
	 "Bytes of the send buffer and of the receive buffer of each socket; 0: the kernel adapts "
	 "them."},
	{"kernel_tls", GANTRY_OPT_BOOL, offsetof(struct tcp_conf, kernel_tls), "false", 0, 0, NULL,
	 NULL,
	 "Let the kernel encrypt what the sockets of lanes send (module tls), if auth is not "
	 "\"none\"."},
	{"direct", GANTRY_OPT_BOOL, offsetof(struct tcp_conf, direct), "false", 0, 0, NULL, NULL,
	 "Initiator: let targets behind a gateway connect to this process, at a port that the "
	 "system chooses. Gateway: tell them where, besides relaying the data."},
	{"direct_networks", GANTRY_OPT_STRING, offsetof(struct tcp_conf, direct_networks), "", 0, 0,
	 NULL, NULL,
	 "Target: networks of initiators to which it connects directly if the gateway names them, "
	 "\"192.0.2.0/24, 2001:db8::/32\". Empty: the gateway relays the data of all."},
	GANTRY_OPTION_END,
};

bool tcp_usable(const struct tcp_device *dev)
{
	return dev->pid == getpid();
}

uint64_t tcp_now(const struct tcp_device *dev)
{
	return dev->host->now_ns(dev->host);
}

uint16_t tcp_version(const struct tcp_device *dev)
{
	return TCP_VERSION | (dev->host->records ? TCP_RECORDS : 0);
}

void tcp_earlier(uint64_t *first, uint64_t at)
{
	if (at && (!*first || at < *first))
		*first = at;
}

void tcp_wake(struct tcp_device *dev)
{
	uint64_t one = 1;
	ssize_t n = write(dev->wake, &one, sizeof(one));

	(void)n; /* a full eventfd is readable, so the wake-up is not lost */
}

/* -- epoll -- */

int tcp_watch(struct tcp_device *dev, int fd, uint32_t events, struct tcp_watch *watch)
{
	struct epoll_event event = {.events = events, .data.ptr = watch};

	return epoll_ctl(dev->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

void tcp_rewatch(struct tcp_device *dev, int fd, uint32_t events, struct tcp_watch *watch)
{
	struct epoll_event event = {.events = events, .data.ptr = watch};

	epoll_ctl(dev->epoll, EPOLL_CTL_MOD, fd, &event);
}

void tcp_unwatch(struct tcp_device *dev, int fd)
{
	epoll_ctl(dev->epoll, EPOLL_CTL_DEL, fd, NULL);
}

void tcp_close_fd(struct tcp_device *dev, int fd)
{
	if (fd < 0)
		return;
	tcp_unwatch(dev, fd);
	close(fd);
}

/* -- open and close -- */

static void free_device(struct tcp_device *dev)
{
	if (dev->epoll >= 0)
		close(dev->epoll);
	if (dev->wake >= 0)
		close(dev->wake);
	tc_cells_fini(&dev->sends);
	tc_cells_fini(&dev->payload);
	free(dev);
}

static int open_fds(struct tcp_device *dev)
{
	dev->epoll = epoll_create1(EPOLL_CLOEXEC);
	dev->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (dev->epoll < 0 || dev->wake < 0)
		return -errno;
	return tcp_watch(dev, dev->wake, EPOLLIN, &dev->watch);
}

static int open_counters(struct tcp_device *dev)
{
	const struct gantry_host *host = dev->host;
	int rc;

	dev->connections = host->counter(host, "connections");
	dev->protocol_errors = host->counter(host, "protocol_errors");
	dev->kernel_tls_sockets = host->counter(host, "kernel_tls_sockets");
	if (!dev->connections || !dev->protocol_errors || !dev->kernel_tls_sockets)
		return -ENOMEM;
	rc = tc_cells_init(&dev->sends, host, "sends");
	return rc ? rc : tc_cells_init(&dev->payload, host, "payload_bytes");
}

static int tcp_open(const struct gantry_host *host, const void *conf, void **device_p)
{
	struct tcp_device *dev = calloc(1, sizeof(*dev));
	char why[160];
	int rc = -ENOMEM;

	if (!dev)
		goto out_log;
	dev->host = host;
	dev->conf = conf;
	dev->pid = getpid();
	dev->epoll = dev->wake = -1;
	rc = tc_networks_parse(dev->conf->direct_networks, &dev->direct_networks, why, sizeof(why));
	if (rc) {
		gantry_log_error(host, "direct_networks: %s", why);
		free_device(dev);
		return rc;
	}
	rc = open_counters(dev);
	if (!rc)
		rc = open_fds(dev);
	if (rc == 0) {
		*device_p = dev;
		return 0;
	}
	free_device(dev);
out_log:
	gantry_log_error(host, "cannot open the device: %s", strerror(-rc));
	return rc;
}

static void reap(struct tcp_device *dev, uint64_t now_ns)
{
	struct tcp_conn *conn, *next;

	for (conn = LIST_FIRST(&dev->conns); conn; conn = next) {
		next = LIST_NEXT(conn, link);
		if (conn->freed && tcp_conn_drained(conn, now_ns))
			tcp_conn_destroy(conn);
	}
	tcp_listeners_reap(dev);
}

/* Let the last bytes leave, for a limited time, and free all connections. */
static void close_conns(struct tcp_device *dev)
{
	struct tcp_conn *conn;

	dev->in_progress = true;
	LIST_FOREACH (conn, &dev->conns, link)
		tcp_disconnect(conn);
	dev->in_progress = false;
	for (int i = 0; i < LEAVE_ROUNDS && !LIST_EMPTY(&dev->conns); i++) {
		struct epoll_event event;

		reap(dev, tcp_now(dev));
		if (!LIST_EMPTY(&dev->conns))
			epoll_wait(dev->epoll, &event, 1, 0);
		if (!LIST_EMPTY(&dev->conns))
			usleep(100);
	}
	while (!LIST_EMPTY(&dev->conns))
		tcp_conn_destroy(LIST_FIRST(&dev->conns));
}

static void tcp_close(void *device)
{
	struct tcp_device *dev = device;

	if (!dev)
		return;
	if (tcp_usable(dev)) {
		close_conns(dev);
		while (!LIST_EMPTY(&dev->pending))
			tcp_pending_end(LIST_FIRST(&dev->pending));
		while (!LIST_EMPTY(&dev->listeners))
			tcp_unlisten(LIST_FIRST(&dev->listeners));
		tcp_listeners_reap(dev);
	}
	free_device(dev);
}

/* -- properties -- */

static uint64_t link_bytes(const struct tcp_device *dev)
{
	const struct gantry_records_ops *records = dev->host->records;

	return (uint64_t)dev->conf->max_depth * 8 *
		       (sizeof(struct tcp_frame) + sizeof(struct tcp_item)) +
	       TCP_READ_BYTES + (records ? records->streams->stream_bytes : 0);
}

static void tcp_info(void *device, struct gantry_device_info *info)
{
	const struct tcp_device *dev = device;

	*info = (struct gantry_device_info){
		.caps = GANTRY_CAP_RMA | GANTRY_CAP_ORDERED | GANTRY_CAP_DISCONNECT_REVOKES,
		.max_depth = (uint32_t)dev->conf->max_depth,
		.max_inline = TCP_INLINE,
		.max_regions = TCP_REGIONS,
		.max_region_bytes = dev->conf->max_region_bytes,
		.conn_bytes = sizeof(struct tcp_conn),
		.lane_bytes = link_bytes(dev),
		.detail = "TCP",
	};
}

static int tcp_fd(void *device)
{
	return ((struct tcp_device *)device)->epoll;
}

static void tcp_check(const void *arg, struct gantry_check *check)
{
	const struct tcp_conf *conf = arg;
	struct sockaddr_storage addr;
	struct tc_networks networks;
	char why[160];

	if (tc_networks_parse(conf->direct_networks, &networks, why, sizeof(why)))
		gantry_option_fault(check, "direct_networks", "%s", why);
	if (check->service && tcp_parse(check->service, &addr) < 0)
		gantry_option_fault(check, "services",
				    "is no address; write such as 192.0.2.7:4791, "
				    "[2001:db8::7]:4791 or host.example:4791");
	check->max_connections = (uint32_t)conf->max_connections;
}

/* -- events -- */

static void dispatch(struct tcp_device *dev, struct tcp_watch *watch, uint32_t events)
{
	uint64_t n;

	switch (watch->what) {
	case TCP_WAKE:
		while (read(dev->wake, &n, sizeof(n)) > 0)
			;
		break;
	case TCP_LISTENING:
		tcp_on_listen_socket((struct tcp_listen_socket *)watch);
		break;
	case TCP_PENDING:
		tcp_on_pending((struct tcp_pending *)watch);
		break;
	case TCP_CONN:
		tcp_on_conn((struct tcp_conn *)watch, events);
		break;
	case TCP_LANE:
		tcp_on_bell((struct tcp_lane *)watch);
		break;
	case TCP_LINK_OF_LANE:
		tcp_on_link((struct tcp_link *)watch);
		break;
	}
}

static int tcp_progress(void *device)
{
	struct tcp_device *dev = device;
	struct epoll_event events[EVENTS_PER_TURN];
	struct tcp_pending *pending, *next;
	struct tcp_conn *conn;
	uint64_t now;
	int n;

	if (!tcp_usable(dev) || dev->in_progress)
		return 0;
	dev->in_progress = true;
	dev->n_events = 0;
	n = epoll_wait(dev->epoll, events, EVENTS_PER_TURN, 0);
	for (int i = 0; i < n; i++)
		dispatch(dev, events[i].data.ptr, events[i].events);
	now = tcp_now(dev);
	tcp_accept_progress(dev, now);
	for (pending = LIST_FIRST(&dev->pending); pending; pending = next) {
		next = LIST_NEXT(pending, link);
		if (now >= pending->deadline_ns)
			tcp_pending_end(pending);
	}
	/*
	 * A callback can end or create connections. No connection leaves the list before the end of
	 * this function.
	 */
	LIST_FOREACH (conn, &dev->conns, link)
		tcp_conn_progress(conn, now);
	dev->in_progress = false;
	reap(dev, now);
	return dev->n_events;
}

static uint64_t tcp_wake_ns(void *device)
{
	const struct tcp_device *dev = device;
	const struct tcp_pending *pending;
	const struct tcp_conn *conn;
	uint64_t first = dev->accept_paused_ns;

	LIST_FOREACH (pending, &dev->pending, link)
		tcp_earlier(&first, pending->deadline_ns);
	LIST_FOREACH (conn, &dev->conns, link)
		tcp_earlier(&first, tcp_conn_wake_ns(conn));
	return first;
}

static const struct gantry_transport_ops ops = {
	.open = tcp_open,
	.close = tcp_close,
	.info = tcp_info,
	.fd = tcp_fd,
	.progress = tcp_progress,
	.wake_ns = tcp_wake_ns,
	.listen = tcp_listen,
	.unlisten = tcp_unlisten,
	.listener_address = tcp_listener_address,
	.connect = tcp_connect,
	.send_ctrl = tcp_send_ctrl,
	.disconnect = tcp_disconnect,
	.refusal = tcp_refusal,
	.export_region = tcp_export,
	.import_region = tcp_import,
	.release_region = tcp_release,
	.revoke_region = tcp_revoke,
	.consumer_create = tcp_consumer_create,
	.consumer_destroy = tcp_consumer_destroy,
	.producer_create = tcp_producer_create,
	.producer_destroy = tcp_producer_destroy,
	.rma_create = tcp_rma_create,
	.rma_destroy = tcp_rma_destroy,
	.post_recv = tcp_post_recv,
	.poll_recv = tcp_poll_recv,
	.consumer_arm = tcp_consumer_arm,
	.consumer_disarm = tcp_consumer_disarm,
	.consumer_fd = tcp_consumer_fd,
	.send = tcp_send,
	.flush = tcp_flush,
	.rma_submit = tcp_rma_submit,
	.rma_flush = tcp_rma_flush,
	.rma_poll = tcp_rma_poll,
	.data = &tcp_data_ops,
};

GANTRY_PLUGIN(tcp) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_TRANSPORT,
	.name = "tcp",
	.version = "1",
	.summary = "message queues and remote memory over TCP, between any two machines",
	.options = options,
	.conf_size = sizeof(struct tcp_conf),
	.ops_size = sizeof(ops),
	.ops = &ops,
	.check = tcp_check,
};
