/* SPDX-License-Identifier: BSD-3-Clause */
/* vb_transport.c - the device, its event loop, and functions shared by both plugins. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "verbs.h"

#define EVENTS_PER_TURN 64
/* time limit of sending the last messages of all connections, at close */
#define LEAVE_NS 200000000ull

const char *const vb_data_qp_words[] = {"separate", "shared", NULL};

bool vb_usable(const struct vb_transport *t)
{
	return t->pid == getpid();
}

void vb_transport_wake(struct vb_transport *t)
{
	uint64_t one = 1;
	ssize_t n = write(t->wake, &one, sizeof(one));

	(void)n; /* a full eventfd is readable, so the wake-up is not lost */
}

int vb_transport_watch(struct vb_transport *t, int fd, void *what)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = what};

	return epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/* -- open and close -- */

/* Returns the smallest n for which 4.096 us * 2^n is at least `ns`; 0: `ns` is 0. */
static uint8_t ack_exponent(uint64_t ns)
{
	uint8_t n = 1;

	if (ns == 0)
		return 0;
	while (n < 31 && (4096ull << n) < ns)
		n++;
	return n;
}

static int open_fds(struct vb_transport *t)
{
	int rc;

	t->epoll = epoll_create1(EPOLL_CLOEXEC);
	t->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (t->epoll < 0 || t->wake < 0)
		return -errno;
	rc = vb_transport_watch(t, t->wake, &t->wake);
	if (!rc)
		rc = vb_transport_watch(t, t->channel->fd, &t->channel);
	if (!rc)
		rc = vb_transport_watch(t, t->device.context->async_fd, &t->device);
	return rc;
}

static int open_counters(struct vb_transport *t)
{
	int rc = tc_cells_init(&t->lane_doorbells, t->host, "doorbells");

	if (!rc)
		rc = tc_cells_init(&t->lane_payload, t->host, "payload_bytes");
	t->doorbells = t->host->counter(t->host, "doorbells");
	t->connections = t->host->counter(t->host, "connections");
	t->protocol_errors = t->host->counter(t->host, "protocol_errors");
	if (!t->doorbells || !t->connections || !t->protocol_errors)
		return -ENOMEM;
	return rc;
}

/* List the names of the available devices, such as "rxe0, mlx5_0". */
static void list_devices(char *text, size_t size)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	size_t used = 0;

	text[0] = 0;
	for (int i = 0; list && i < n && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "",
					 ibv_get_device_name(list[i]));
	if (list)
		ibv_free_device_list(list);
}

static void explain_open(const struct gantry_host *host, const char *name, int rc)
{
	char there[256];

	list_devices(there, sizeof(there));
	if (rc == -ENOTUNIQ)
		gantry_log_error(
			host, "this machine has several RDMA devices: %s: set ibdev to one of them",
			there);
	else if (*there && rc == -ENODEV)
		gantry_log_error(host, "no RDMA device '%s' on this machine; available: %s", name,
				 there);
	else
		gantry_log_error(host, "cannot open RDMA device%s%s: %s: %s", *name ? " " : "",
				 name, strerror(-rc), vb_device_advice(rc));
}

/*
 * Check, before the first peer connects, that the device supports a message queue pair: it needs
 * more resources than a queue pair of another kind.
 */
static int check_depth(const struct vb_transport *t)
{
	const struct vb_limits *limits = &t->device.limits;
	uint32_t most = vb_depth_limit(t->conf, limits);

	if (t->conf->max_depth <= most)
		return 0;
	gantry_log_error(
		t->host,
		"max_depth = %lld needs more requests or completions in a queue than RDMA device %s has (limit "
		"requests=%u, completions=%u): lower it to %u",
		(long long)t->conf->max_depth, t->device.context->device->name, limits->max_qp_wr,
		limits->max_cqe, most);
	return -E2BIG;
}

static void free_transport(struct vb_transport *t)
{
	if (t->epoll >= 0)
		close(t->epoll);
	if (t->wake >= 0)
		close(t->wake);
	if (vb_usable(t)) {
		vb_events_close(&t->channel);
		vb_device_close(&t->device);
	}
	tc_cells_fini(&t->lane_doorbells);
	tc_cells_fini(&t->lane_payload);
	free(t);
}

int vb_transport_open(const struct gantry_host *host, const struct vb_conf *conf, const char *name,
		      void **device_p)
{
	struct vb_transport *t = calloc(1, sizeof(*t));
	char why[160];
	int rc;

	if (!t) {
		explain_open(host, name, -ENOMEM);
		return -ENOMEM;
	}
	t->host = host;
	t->conf = conf;
	t->pid = getpid();
	t->epoll = t->wake = -1;
	t->patience = (struct vb_patience){
		.retry_count = (uint8_t)conf->retry_count,
		.rnr_retry_count = (uint8_t)conf->rnr_retry_count,
		.ack_timeout = ack_exponent(conf->ack_timeout_ns),
	};
	if (getrandom(&t->sequence, sizeof(t->sequence), 0) < 0) {
		rc = -errno;
		explain_open(host, name, rc);
		goto out_free;
	}
	rc = tc_networks_parse(conf->direct_networks, &t->direct_networks, why, sizeof(why));
	if (rc) {
		gantry_log_error(host, "direct_networks: %s", why);
		goto out_free;
	}
	rc = vb_device_open(&t->device, name);
	if (rc) {
		explain_open(host, name, rc);
		goto out_free;
	}
	rc = check_depth(t);
	if (rc)
		goto out_free;
	rc = vb_events_open(&t->channel);
	if (rc) {
		gantry_log_error(host, "no channel for connection events: %s: %s", strerror(-rc),
				 vb_device_advice(rc));
		goto out_free;
	}
	rc = open_fds(t);
	if (!rc)
		rc = open_counters(t);
	if (rc) {
		gantry_log_error(host, "cannot watch RDMA device %s: %s",
				 t->device.context->device->name, strerror(-rc));
		goto out_free;
	}
	if (!t->device.limits.port_up)
		gantry_log_warn(host,
				"the port of RDMA device %s is down: is its network interface up?",
				t->device.context->device->name);
	*device_p = t;
	return 0;

out_free:
	free_transport(t);
	return rc;
}

static void reap(struct vb_transport *t, uint64_t now_ns)
{
	struct vb_conn *conn, *next;

	for (conn = t->conns; conn; conn = next) {
		next = conn->next;
		if (conn->freed && vb_conn_left(conn, now_ns))
			vb_conn_destroy(conn);
	}
}

void vb_transport_reap(struct vb_transport *t)
{
	if (!t->in_progress)
		reap(t, t->host->now_ns(t->host));
}

void vb_close(void *device)
{
	struct vb_transport *t = device;
	uint64_t until;

	if (!t)
		return;
	if (!vb_usable(t)) { /* a forked child: the parent owns all resources */
		free_transport(t);
		return;
	}
	t->in_progress = 1; /* keep the list of connections unchanged */
	for (struct vb_conn *conn = t->conns; conn; conn = conn->next)
		vb_disconnect(conn);
	t->in_progress = 0;
	/*
	 * Wait for the last messages. The number of rounds is limited too, because the clock of a
	 * test might not advance.
	 */
	until = t->host->now_ns(t->host) + LEAVE_NS;
	for (int i = 0; t->conns && i < 20000 && t->host->now_ns(t->host) < until; i++)
		reap(t, t->host->now_ns(t->host));
	while (t->conns)
		vb_conn_destroy(t->conns);
	while (!LIST_EMPTY(&t->listeners))
		vb_unlisten(LIST_FIRST(&t->listeners));
	free_transport(t);
}

/* -- properties -- */

void vb_check(const void *arg, struct gantry_check *check)
{
	const struct vb_conf *conf = arg;
	struct tc_networks networks;
	struct sockaddr_storage to;
	char why[160];

	if (tc_networks_parse(conf->direct_networks, &networks, why, sizeof(why)))
		gantry_option_fault(check, "direct_networks", "%s", why);
	if (check->service && tc_address_parse(check->service, &to))
		gantry_option_fault(
			check, "services",
			"is no address; write such as 192.0.2.7:4791 or [2001:db8::7]:4791");
	check->max_connections = (uint32_t)conf->max_connections;
}

const struct gantry_data_queue_ops vb_data_ops = {
	.struct_size = sizeof(vb_data_ops),
	.post_recv = vb_post_recv_data,
	.send = vb_send_data,
	.poll_send = vb_poll_send,
};

void vb_info(void *device, struct gantry_device_info *info)
{
	const struct vb_transport *t = device;
	const struct vb_conf *conf = t->conf;
	const struct vb_limits *limits = &t->device.limits;
	int shared = conf->data_qp == VB_SHARED;

	*info = (struct gantry_device_info){
		.caps = GANTRY_CAP_RMA | GANTRY_CAP_PINS | GANTRY_CAP_DISCONNECT_REVOKES |
			GANTRY_CAP_WRITE_IMM | (shared ? GANTRY_CAP_ORDERED : 0),
		.max_depth = (uint32_t)conf->max_depth,
		.max_inline = (uint32_t)conf->inline_bytes,
		.max_regions = VB_REGIONS,
		.max_region_bytes = conf->max_region_bytes < limits->max_mr_bytes
					    ? conf->max_region_bytes
					    : limits->max_mr_bytes,
		.max_queues = limits->max_qp,
		.conn_queues = 1,
		.lane_queues = shared ? 1 : 2,
		.conn_bytes = vb_pipe_bytes(conf, VB_CONTROL),
		.lane_bytes = vb_pipe_bytes(conf, VB_MESSAGES),
	};
	snprintf(info->detail, sizeof(info->detail), "%.60s, port %s",
		 t->device.context->device->name, limits->port_up ? "up" : "down");
}

int vb_transport_scan(const struct gantry_host *host, struct gantry_writer *w,
		      int (*wanted)(const char *name))
{
	int rc = vb_device_scan(w, wanted);

	if (rc <= 0)
		gantry_log_info(host, "%s", vb_device_advice(rc));
	return rc;
}

int vb_fd(void *device)
{
	return ((struct vb_transport *)device)->epoll;
}

/* -- events -- */

static void on_cm_event(struct vb_transport *t, const struct vb_event *event)
{
	const struct vb_id *tag = event->listen_id ? event->listen_id->context : event->id->context;

	if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST)
		vb_on_request(tag->object, event);
	else if (tag->what == VB_ID_PIPE)
		vb_on_pipe_event(tag->object, event);
	else if (event->type == RDMA_CM_EVENT_DEVICE_REMOVAL)
		vb_transport_dead(t);
	else
		gantry_log_debug(t->host, "ignoring %s of a listener", rdma_event_str(event->type));
}

static void read_cm_events(struct vb_transport *t)
{
	struct vb_event event;
	int n = EVENTS_PER_TURN, rc;

	while (n-- > 0) {
		rc = vb_events_next(t->channel, &event);
		/*
		 * A channel with an error stays readable, so this function runs in each turn. Log
		 * the error once, until an event is read again.
		 */
		if (rc < 0 && rc != t->events_rc)
			gantry_log_error(t->host, "cannot read connection events: %s",
					 strerror(-rc));
		t->events_rc = rc < 0 ? rc : 0;
		if (rc <= 0)
			return;
		on_cm_event(t, &event);
	}
}

void vb_transport_dead(struct vb_transport *t)
{
	gantry_log_error(t->host,
			 "RDMA device %s has been removed or has failed: all its connections end",
			 t->device.context->device->name);
	for (struct vb_conn *conn = t->conns; conn; conn = conn->next)
		vb_conn_fail(conn, -ENODEV);
}

/*
 * Read the events of the device. An event of a queue is only stored: vb_conn_progress() handles it
 * later in this turn.
 */
static void read_async_events(struct vb_transport *t)
{
	enum ibv_event_type type;

	for (int i = 0; i < EVENTS_PER_TURN && vb_device_next_event(&t->device, &type) > 0; i++) {
		if (type == IBV_EVENT_DEVICE_FATAL)
			vb_transport_dead(t);
		else if (type == IBV_EVENT_PORT_ERR)
			gantry_log_warn(t->host, "the port of RDMA device %s went down",
					t->device.context->device->name);
		else if (type == IBV_EVENT_PORT_ACTIVE)
			gantry_log_info(t->host, "the port of RDMA device %s is up",
					t->device.context->device->name);
		else
			gantry_log_debug(t->host, "RDMA device %s: %s",
					 t->device.context->device->name, ibv_event_type_str(type));
	}
}

static void dispatch(struct vb_transport *t, void *what)
{
	uint64_t n;

	if (what == &t->wake) {
		while (read(t->wake, &n, sizeof(n)) > 0)
			;
	} else if (what == &t->channel) {
		read_cm_events(t);
	} else if (what == &t->device) {
		read_async_events(t);
	} else {
		vb_control_rearm(what);
	}
}

int vb_progress(void *device)
{
	struct vb_transport *t = device;
	struct epoll_event events[EVENTS_PER_TURN];
	uint64_t now;
	int n;

	if (!vb_usable(t) || t->in_progress)
		return 0;
	t->in_progress = 1;
	t->n_events = 0;
	n = epoll_wait(t->epoll, events, EVENTS_PER_TURN, 0);
	for (int i = 0; i < n; i++)
		dispatch(t, events[i].data.ptr);
	now = t->host->now_ns(t->host);
	/*
	 * A callback can end or create connections. No connection leaves the list before the end of
	 * this function.
	 */
	for (struct vb_conn *conn = t->conns; conn; conn = conn->next)
		vb_conn_progress(conn, now);
	t->in_progress = 0;
	reap(t, now);
	return t->n_events;
}

uint64_t vb_wake_ns(void *device)
{
	struct vb_transport *t = device;
	uint64_t first = 0;

	for (struct vb_conn *conn = t->conns; conn; conn = conn->next) {
		uint64_t at = vb_conn_wake_ns(conn);

		if (at && (!first || at < first))
			first = at;
	}
	return first;
}
