/* SPDX-License-Identifier: BSD-3-Clause */
/* transport.c - the control plane of the fake transport: device, connections, events, regions */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "host.h"
#include "transport.h"
#include "transport_priv.h"

enum { EV_ACCEPT, EV_CONNECTED, EV_MESSAGE, EV_REVOKE, EV_REVOKED, EV_CLOSED };

/*
 * Connections are large, and mostly unused. The process keeps up to FAKE_SPARES freed connections
 * for its next transport, and clears only the parts that were used.
 */
#ifdef FAKE_SPARES
static struct fake_conn *spares[FAKE_SPARES];
static unsigned n_spares;

static struct fake_conn *alloc_conn(void)
{
	return n_spares != 0 ? spares[--n_spares] : calloc(1, sizeof(struct fake_conn));
}

static void free_conn(struct fake_conn *conn)
{
	unsigned n_queues = conn->touched_queues, n_rmas = conn->touched_rmas;

	if (n_spares == FAKE_SPARES) {
		free(conn);
		return;
	}
	memset(conn, 0, offsetof(struct fake_conn, ctrl));
	memset(conn->consumers, 0, n_queues * sizeof(conn->consumers[0]));
	memset(conn->producers, 0, n_queues * sizeof(conn->producers[0]));
	memset(conn->rmas, 0, n_rmas * sizeof(conn->rmas[0]));
	memset(conn->registered, 0, sizeof(*conn) - offsetof(struct fake_conn, registered));
	conn->n_ctrl = 0; /* the entries of ctrl beyond it are not read */
	spares[n_spares++] = conn;
}

void fake_transport_spare(void)
{
	while (n_spares < FAKE_SPARES &&
	       (spares[n_spares] = calloc(1, sizeof(struct fake_conn))) != NULL)
		n_spares++;
}
#else
static struct fake_conn *alloc_conn(void)
{
	return calloc(1, sizeof(struct fake_conn));
}

static void free_conn(struct fake_conn *conn)
{
	free(conn);
}

void fake_transport_spare(void)
{
}
#endif

void fake_transport_init(struct fake_transport *ft)
{
	memset(ft, 0, sizeof(*ft));
	pthread_mutex_init(&ft->lock, NULL);
	ft->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ft->caps = GANTRY_CAP_MAPPED | GANTRY_CAP_RMA;
	ft->max_depth = FAKE_MSGS;
	ft->hold_socket = -1;
	ft->peer = (struct gantry_peer){
		.pid = getpid(), .uid = getuid(), .gid = getgid(), .address = "fake"};
	ft->next_consumer = 100;
}

void fake_transport_fini(struct fake_transport *ft)
{
	if (ft->opened)
		fake_fail("transport: the device was not closed");
	for (unsigned i = 0; i < 8; i++)
		if (ft->listeners[i].used)
			fake_fail("transport: \"%s\" is still listened to",
				  ft->listeners[i].service);
	for (unsigned i = 0; i < ft->n_conns; i++) {
		struct fake_conn *conn = ft->conns[i];

		if (conn->n_consumers || conn->n_producers || conn->n_rmas || conn->n_imports)
			fake_fail(
				"transport: connection %u left %u consumers, %u producers, %u rmas, %u regions",
				i, conn->n_consumers, conn->n_producers, conn->n_rmas,
				conn->n_imports);
		if (!conn->disconnected && !conn->refused)
			fake_fail("transport: connection %u was not disconnected", i);
		free_conn(conn);
	}
	for (unsigned i = 0; i < ft->n_events; i++)
		free(ft->events[i]);
	close(ft->event_fd);
	pthread_mutex_destroy(&ft->lock);
}

void fake_fail_op(struct fake_transport *ft, enum fake_op op, unsigned in, int rc)
{
	pthread_mutex_lock(&ft->lock);
	ft->fail[op].in = in;
	ft->fail[op].rc = rc;
	pthread_mutex_unlock(&ft->lock);
}

int fake_script(struct fake_transport *ft, enum fake_op op)
{
	int rc = 0;

	pthread_mutex_lock(&ft->lock);
	if (ft->fail[op].in != 0 && --ft->fail[op].in == 0)
		rc = ft->fail[op].rc;
	pthread_mutex_unlock(&ft->lock);
	return rc;
}

static struct fake_conn *new_conn(struct fake_transport *ft, const char *service)
{
	struct fake_conn *conn = alloc_conn();

	if (!conn || ft->n_conns == FAKE_CONNS)
		fake_fail("transport: too many connections");
	conn->ft = ft;
	snprintf(conn->service, sizeof(conn->service), "%s", service);
	ft->conns[ft->n_conns++] = conn;
	return conn;
}

struct fake_conn *fake_conn_bare(struct fake_transport *ft)
{
	struct fake_conn *conn = new_conn(ft, "bare");

	conn->established = 1;
	return conn;
}

static void post(struct fake_conn *conn, int type, int value, const void *bytes, size_t len)
{
	struct fake_transport *ft = conn->ft;
	struct fake_event *ev = malloc(sizeof(*ev) + len);
	uint64_t one = 1;

	if (!ev || ft->n_events == FAKE_EVENTS || len > GANTRY_CTRL_MAX + 64)
		fake_fail("transport: too many events, or too long a message");
	ev->conn = conn;
	ev->type = type;
	ev->value = value;
	ev->len = len;
	if (len != 0)
		memcpy(ev->bytes, bytes, len);
	ft->events[ft->n_events++] = ev;
	if (write(ft->event_fd, &one, sizeof(one)) < 0)
		fake_fail("transport: eventfd");
}

struct fake_conn *fake_dial(struct fake_transport *ft, const char *service)
{
	for (unsigned i = 0; i < 8; i++)
		if (ft->listeners[i].used && strcmp(ft->listeners[i].service, service) == 0) {
			struct fake_conn *conn = new_conn(ft, service);

			conn->events = ft->listeners[i].events;
			conn->arg = ft->listeners[i].arg;
			post(conn, EV_ACCEPT, 0, NULL, 0);
			return conn;
		}
	return NULL;
}

struct fake_conn *fake_pending(struct fake_transport *ft)
{
	for (unsigned i = 0; i < ft->n_conns; i++)
		if (ft->conns[i]->by_core && !ft->conns[i]->established && !ft->conns[i]->closed &&
		    !ft->conns[i]->disconnected)
			return ft->conns[i];
	return NULL;
}

void fake_accept(struct fake_conn *conn)
{
	conn->established = 1;
	post(conn, EV_CONNECTED, 0, NULL, 0);
}

void fake_close(struct fake_conn *conn, int reason)
{
	conn->closed = 1;
	post(conn, EV_CLOSED, reason, NULL, 0);
}

void fake_ctrl_send(struct fake_conn *conn, const void *msg, size_t len)
{
	if (!conn->disconnected && !conn->refused)
		post(conn, EV_MESSAGE, 0, msg, len);
}

size_t fake_ctrl_recv(struct fake_conn *conn, void *buf)
{
	size_t len;

	if (conn->n_ctrl == 0)
		return 0;
	len = conn->ctrl[0].len;
	memcpy(buf, conn->ctrl[0].bytes, len);
	memmove(&conn->ctrl[0], &conn->ctrl[1], --conn->n_ctrl * sizeof(conn->ctrl[0]));
	return len;
}

void fake_revoke(struct fake_conn *conn, uint32_t handle)
{
	post(conn, EV_REVOKE, (int)handle, NULL, 0);
}

void fake_revoked(struct fake_conn *conn, uint32_t handle, int rc)
{
	post(conn, EV_REVOKED, rc, &handle, sizeof(handle));
}

static int ft_open(const struct gantry_host *host, const void *conf, void **device_p)
{
	struct fake_transport *ft = (void *)(uintptr_t)conf;

	(void)host;
	ft->opened++;
	*device_p = ft;
	return 0;
}

static void ft_close(void *device)
{
	((struct fake_transport *)device)->opened--;
}

static void ft_info(void *device, struct gantry_device_info *info)
{
	const struct fake_transport *ft = device;

	*info = (struct gantry_device_info){.caps = ft->caps,
					    .max_depth = ft->max_depth,
					    .max_regions = 64,
					    .max_region_bytes = UINT64_MAX,
					    .detail = "in the test"};
}

static int ft_fd(void *device)
{
	return ((struct fake_transport *)device)->event_fd;
}

static uint64_t ft_wake_ns(void *device)
{
	return ((struct fake_transport *)device)->wake_ns;
}

static void deliver_accept(struct fake_conn *conn, const struct gantry_peer *peer)
{
	const struct gantry_conn_events *events = conn->events;
	void *arg = NULL;

	conn->established = 1; /* accept can send control messages */
	if (events->accept(conn->arg, conn, peer, &arg) != 0) {
		conn->established = 0;
		conn->refused = 1;
		return;
	}
	conn->arg = arg;
}

static void deliver_revoked(struct fake_conn *conn, const struct fake_event *ev)
{
	uint32_t handle;

	memcpy(&handle, ev->bytes, sizeof(handle));
	conn->events->revoked(conn->arg, conn, handle, ev->value);
}

static void deliver(struct fake_event *ev)
{
	struct fake_conn *conn = ev->conn;
	const struct gantry_conn_events *events = conn->events;

	switch (ev->type) {
	case EV_ACCEPT:
		deliver_accept(conn, &conn->ft->peer);
		break;
	case EV_CONNECTED:
		events->connected(conn->arg, conn, &conn->ft->peer);
		break;
	case EV_MESSAGE:
		events->message(conn->arg, conn, ev->bytes, ev->len);
		break;
	case EV_REVOKE:
		events->revoke(conn->arg, conn, (uint32_t)ev->value);
		break;
	case EV_REVOKED:
		deliver_revoked(conn, ev);
		break;
	case EV_CLOSED:
		events->closed(conn->arg, conn, ev->value);
		break;
	}
}

static int ft_progress(void *device)
{
	struct fake_transport *ft = device;
	uint64_t count;
	int n = 0;

	ft->n_progress++;
	if (read(ft->event_fd, &count, sizeof(count)) < 0)
		return 0; /* progress has nothing to deliver */
	while (ft->n_events != 0) {
		struct fake_event *ev = ft->events[0];

		memmove(&ft->events[0], &ft->events[1], --ft->n_events * sizeof(ft->events[0]));
		if (!ev->conn->disconnected && !ev->conn->refused)
			deliver(ev);
		free(ev);
		n++;
	}
	return n;
}

static int ft_listen(void *device, const char *service, const struct gantry_conn_events *events,
		     void *arg, void **listener_p)
{
	struct fake_transport *ft = device;
	int rc = fake_script(ft, FAKE_LISTEN);

	for (unsigned i = 0; i < 8 && rc == 0; i++)
		if (!ft->listeners[i].used) {
			ft->listeners[i].events = events;
			ft->listeners[i].arg = arg;
			snprintf(ft->listeners[i].service, sizeof(ft->listeners[i].service), "%s",
				 service);
			ft->listeners[i].used = 1;
			*listener_p = &ft->listeners[i].used;
			return 0;
		}
	return rc != 0 ? rc : -ENOMEM;
}

static void ft_unlisten(void *listener)
{
	*(int *)listener = 0;
}

static int ft_connect(void *device, const char *service, const struct gantry_conn_events *events,
		      void *arg, void **conn_p)
{
	struct fake_transport *ft = device;
	int rc = fake_script(ft, FAKE_CONNECT);
	struct fake_conn *conn;

	if (rc != 0)
		return rc;
	conn = new_conn(ft, service);
	conn->by_core = 1;
	conn->events = events;
	conn->arg = arg;
	*conn_p = conn;
	return 0;
}

static int ft_send_ctrl(void *arg, const void *msg, size_t len)
{
	struct fake_conn *conn = arg;
	int rc = fake_script(conn->ft, FAKE_SEND_CTRL);

	if (conn->disconnected)
		fake_fail("transport: control message on a connection that was disconnected");
	if (rc != 0)
		return rc;
	if (conn->closed || !conn->established)
		return -ENOTCONN;
	if (len == 0 || len > FAKE_CTRL_BYTES)
		fake_fail("transport: control message of %zu bytes", len);
	if (conn->ft->answers && conn->ft->answers(conn, msg, len))
		return 0;
	if (conn->n_ctrl == FAKE_CTRLS)
		return -EAGAIN;
	memcpy(conn->ctrl[conn->n_ctrl].bytes, msg, len);
	conn->ctrl[conn->n_ctrl++].len = len;
	return 0;
}

static void ft_disconnect(void *arg)
{
	struct fake_conn *conn = arg;

	if (conn->disconnected)
		fake_fail("transport: disconnected twice");
	if (conn->n_consumers || conn->n_producers || conn->n_rmas || conn->n_registered)
		fake_fail(
			"transport: disconnected while %u consumers, %u producers, %u rmas, %u registered regions exist",
			conn->n_consumers, conn->n_producers, conn->n_rmas, conn->n_registered);
	conn->disconnected = 1;
	conn->disconnected_at = ++conn->ft->n_steps;
}

/* The generation of an export is its length: the importer needs no further announcement. */
static int ft_export(void *arg, const struct gantry_region *region, uint32_t rights,
		     uint32_t handle, struct gantry_token *token)
{
	struct fake_conn *conn = arg;
	int rc = fake_script(conn->ft, FAKE_EXPORT);

	(void)rights;
	if (rc != 0)
		return rc;
	if (conn->n_exports == FAKE_QUEUES)
		fake_fail("transport: too many exports");
	conn->exports[conn->n_exports++] = handle;
	*token = (struct gantry_token){.handle = handle, .generation = (uint32_t)region->length};
	return 0;
}

static uint64_t ft_export_limit(void *arg)
{
	const struct fake_conn *conn = arg;

	return conn->ft->room ? conn->ft->room : UINT64_MAX;
}

static int ft_hold_exports(void *arg, int socket)
{
	struct fake_transport *ft = ((struct fake_conn *)arg)->ft;

	if (ft->hold_socket < 0)
		return -ENOTSUP;
	ft->hold_socket = fcntl(socket, F_DUPFD_CLOEXEC, 3);
	return ft->hold_socket < 0 ? -errno : 0;
}

static const char *ft_import_error(void *arg)
{
	const struct fake_conn *conn = arg;

	return conn->ft->import_error ? conn->ft->import_error : "";
}

static int ft_import(void *arg, const struct gantry_token *token, uint32_t flags,
		     struct gantry_region **region_p)
{
	struct fake_conn *conn = arg;
	int rc = fake_script(conn->ft, FAKE_IMPORT);
	struct gantry_region *region;

	if (rc != 0)
		return rc;
	if (token->generation == 0)
		return -ENOENT;
	region = calloc(1, sizeof(*region));
	if (!region)
		return -ENOMEM;
	*region = (struct gantry_region){
		.addr = flags & GANTRY_IMPORT_MAP && !conn->ft->unmapped ? conn->ft->memory : NULL,
		.length = token->generation,
		.fd = -1,
		.rights = GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE,
		.handle = token->handle + conn->ft->skew_handle,
		.transport = conn,
	};
	conn->ft->import_flags = flags;
	conn->n_imports++;
	*region_p = region;
	return 0;
}

static void ft_release(void *arg, struct gantry_region *region)
{
	struct fake_conn *conn = arg;

	if (region->transport != conn || conn->disconnected)
		fake_fail("transport: region released on the wrong connection, or too late");
	conn->n_imports--;
	conn->released_at = ++conn->ft->n_steps;
	free(region);
}

static int ft_revoke(void *arg, uint32_t handle)
{
	struct fake_conn *conn = arg;
	int rc = fake_script(conn->ft, FAKE_REVOKE);

	for (unsigned i = 0; i < conn->n_exports && rc == 0; i++)
		if (conn->exports[i] == handle) {
			conn->exports[i] = conn->exports[--conn->n_exports];
			conn->n_revokes++;
			if (!conn->ft->keeps)
				fake_revoked(conn, handle, 0);
			return 0;
		}
	if (rc == 0)
		fake_fail(
			"transport: a region is asked back that was not exported, or was asked back before");
	return rc;
}

static const char *ft_refusal(void *arg)
{
	return ((struct fake_conn *)arg)->refusal;
}

/* The text that `listen` got. */
static const char *ft_listener_address(void *listener)
{
	(void)listener;
	return NULL;
}

const struct gantry_transport_ops fake_transport_ops = {
	.open = ft_open,
	.close = ft_close,
	.info = ft_info,
	.fd = ft_fd,
	.progress = ft_progress,
	.wake_ns = ft_wake_ns,
	.listen = ft_listen,
	.unlisten = ft_unlisten,
	.connect = ft_connect,
	.send_ctrl = ft_send_ctrl,
	.disconnect = ft_disconnect,
	.export_region = ft_export,
	.export_limit = ft_export_limit,
	.refusal = ft_refusal,
	.listener_address = ft_listener_address,
	.import_region = ft_import,
	.import_error = ft_import_error,
	.hold_exports = ft_hold_exports,
	.release_region = ft_release,
	.revoke_region = ft_revoke,
	FAKE_QUEUE_OPS,
};
