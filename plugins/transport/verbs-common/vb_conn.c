/* SPDX-License-Identifier: BSD-3-Clause */
/* vb_conn.c - a connection from its creation to `closed`, and its end after vb_disconnect(). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "verbs.h"

#include "../common/ending.h"

#define LEAVE_NS 1000000000ull /* time limit of sending the last messages */
#define LOOK_NS 1000000ull     /* interval of checks whether the last messages have been sent */

static uint64_t now(const struct vb_conn *conn)
{
	return conn->t->host->now_ns(conn->t->host);
}

static int lost(const struct vb_conn *conn)
{
	return __atomic_load_n(&conn->lost, __ATOMIC_RELAXED);
}

static int random_number(uint64_t *p)
{
	do {
		if (getrandom(p, sizeof(*p), 0) != sizeof(*p))
			return -errno;
	} while (*p == 0);
	return 0;
}

int vb_conn_new(struct vb_transport *t, enum vb_end end, const struct gantry_conn_events *events,
		void *arg, struct vb_conn **conn_p)
{
	struct vb_conn *conn = calloc(1, sizeof(*conn));
	int rc;

	if (!conn)
		return -ENOMEM;
	conn->t = t;
	conn->end = end;
	conn->events = events;
	conn->arg = arg;
	conn->state = VB_C_CONNECTING;
	conn->out_tail = &conn->out_head;
	conn->held_tail = &conn->held_head;
	conn->peer = (struct gantry_peer){.pid = -1, .uid = UINT32_MAX, .gid = UINT32_MAX};
	rc = random_number(end == VB_CONNECTS ? &conn->session : &conn->secret);
	if (rc)
		goto out_free;
	rc = vb_pd_create(t->device.context, &conn->pd);
	if (rc)
		goto out_free;
	rc = vb_channel_create(t->device.context, &conn->control_channel);
	if (rc)
		goto out_pd;
	rc = vb_transport_watch(t, conn->control_channel->fd, conn);
	if (rc)
		goto out_channel;
	conn->next = t->conns;
	t->conns = conn;
	*conn_p = conn;
	return 0;

out_channel:
	vb_channel_destroy(&conn->control_channel);
out_pd:
	vb_pd_destroy(&conn->pd);
out_free:
	free(conn);
	return rc;
}

void vb_conn_destroy(struct vb_conn *conn)
{
	struct vb_transport *t = conn->t;
	struct vb_conn **at = &t->conns;

	while (*at != conn)
		at = &(*at)->next;
	*at = conn->next;
	if (conn->accepted)
		t->n_accepted--;
	for (struct vb_pipe *p = conn->pipes; p; p = p->all)
		vb_pipe_end(p);
	while (conn->pipes)
		vb_pipe_free(conn->pipes);
	while (conn->lanes)
		vb_lane_free(conn->lanes);
	vb_exports_quiet(conn);
	vb_imports_free(conn);
	vb_control_drop(conn);
	free(conn->seen);
	if (conn->records)
		t->host->records->close(conn->records);
	vb_channel_destroy(&conn->control_channel);
	vb_pd_destroy(&conn->pd);
	free(conn);
}

int vb_connect(void *device, const char *service, const struct gantry_conn_events *events,
	       void *arg, void **conn_p)
{
	struct vb_transport *t = device;
	struct sockaddr_storage to;
	struct vb_conn *conn;
	int rc;

	if (!vb_usable(t))
		return -EPERM;
	rc = tc_address_parse(service, &to);
	if (rc) {
		gantry_log_error(
			t->host,
			"'%s' is not an address: write 192.0.2.7:7471 or [2001:db8::7]:7471",
			service);
		return rc;
	}
	rc = vb_conn_new(t, VB_CONNECTS, events, arg, &conn);
	if (rc)
		return rc;
	conn->to = to;
	tc_address_print((struct sockaddr *)&to, conn->peer.address, sizeof(conn->peer.address));
	rc = vb_pipe_new(conn, VB_CONTROL, VB_CONNECTS, &conn->control);
	if (rc) {
		vb_conn_destroy(conn);
		return rc;
	}
	rc = vb_pipe_connect(conn->control, (struct sockaddr *)&to);
	if (rc) /* `closed` reports the error in the next progress */
		vb_conn_fail(conn, rc);
	*conn_p = conn;
	return 0;
}

bool vb_conn_usable(const struct vb_conn *conn)
{
	return vb_usable(conn->t) &&
	       (conn->state == VB_C_UP || conn->accepting ||
		(conn->accepted && conn->state != VB_C_OVER)) &&
	       !conn->freed && !lost(conn);
}

/* Set the reason of the end, once. Returns true if no reason was set before. */
static bool set_lost(struct vb_conn *conn, int reason)
{
	int none = 0;

	if (!__atomic_compare_exchange_n(&conn->lost, &none, reason, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return false;
	vb_transport_wake(conn->t);
	return true;
}

void vb_conn_fail(struct vb_conn *conn, int reason)
{
	set_lost(conn, reason);
}

void vb_conn_broken(struct vb_conn *conn, const char *why)
{
	if (set_lost(conn, -EPROTO))
		gantry_log_warn(conn->t->host, "dropping the connection of %s: it %s",
				conn->peer.address, why);
}

void vb_conn_up(struct vb_conn *conn)
{
	conn->state = VB_C_UP;
	conn->control->busy_ns = now(conn);
	if (conn->t->host->records)
		vb_records_start(conn);
	else
		vb_conn_ready(conn);
}

void vb_conn_ready(struct vb_conn *conn)
{
	gantry_count(conn->t->connections, 1);
	if (conn->end == VB_CONNECTS && !conn->freed) {
		conn->t->n_events++;
		conn->events->connected(conn->arg, conn, &conn->peer);
	}
}

/* -- the end of a connection -- */

/*
 * The connection is lost. Afterwards the peer cannot access memory of this side, and the user gets
 * no event after `closed`.
 */
static void end_connection(struct vb_conn *conn)
{
	int reason = lost(conn), was_up = conn->state == VB_C_UP;

	conn->state = VB_C_OVER;
	if (reason == -EPROTO)
		gantry_count(conn->t->protocol_errors, 1);
	if (was_up)
		tc_log_end(conn->t->host, conn->peer.address, conn->started, reason);
	for (struct vb_pipe *p = conn->pipes; p; p = p->all)
		vb_pipe_end(p);
	vb_control_drop(conn);
	vb_exports_lost(conn);
	conn->said = 1;
	if (conn->freed)
		return;
	conn->t->n_events++;
	conn->events->closed(conn->arg, conn, reason);
}

/* Returns true if all requests of the pipe have ended, or none can go on. */
static bool pipe_left(const struct vb_pipe *pipe)
{
	return pipe->state != VB_P_UP || pipe->quiet || pipe->qp.done == pipe->qp.built;
}

/* The end of a queue pair drops what it has not sent, so the alert must leave before. */
static bool alert_left(const struct vb_conn *conn, uint64_t now_ns)
{
	return !conn->alert_ns || now_ns >= conn->alert_ns || pipe_left(conn->control);
}

/* Handle asynchronous events of queue pairs and completion queues. */
static void check_async_events(struct vb_conn *conn)
{
	struct vb_pipe *next;

	for (struct vb_pipe *p = conn->pipes; p; p = next) {
		int event = __atomic_load_n(&p->async.event, __ATOMIC_RELAXED);

		next = p->all;
		if (!event)
			event = __atomic_load_n(&p->cq.async.event, __ATOMIC_RELAXED);
		if (event && p->state != VB_P_DEAD)
			vb_pipe_async_event(p, (enum ibv_event_type)(event - 1));
	}
}

/*
 * Returns the time after which a probe has failed: longer than the device retries a packet, in case
 * the device does not report the failure.
 */
static uint64_t probe_limit(const struct vb_conf *conf)
{
	uint64_t one = conf->ack_timeout_ns ? conf->ack_timeout_ns : 2000000000ull;

	return 3 * one * (uint64_t)(conf->retry_count + 1);
}

static void keep_alive(struct vb_conn *conn, uint64_t now_ns)
{
	struct vb_pipe *pipe = conn->control;

	if (pipe->probing) {
		if (now_ns > conn->probe_ns + probe_limit(conn->t->conf))
			vb_conn_fail(conn, -ETIMEDOUT);
		return;
	}
	if (now_ns < pipe->busy_ns + conn->t->conf->keepalive_ns)
		return;
	conn->probe_ns = now_ns;
	vb_pipe_probe(pipe);
}

static void check_deadlines(struct vb_conn *conn, uint64_t now_ns)
{
	struct vb_pipe *next;

	for (struct vb_pipe *p = conn->pipes; p; p = next) {
		next = p->all;
		vb_pipe_overdue(p, now_ns);
	}
}

/*
 * Poll for the end of fetches of destroyed consumers. Until a fetch ends, the peer cannot reuse its
 * region.
 */
static void end_fetches(struct vb_conn *conn)
{
	for (struct vb_lane *lane = conn->lanes; lane; lane = lane->next)
		if (vb_lane_lingers(lane))
			vb_lane_poll(lane);
}

void vb_conn_progress(struct vb_conn *conn, uint64_t now_ns)
{
	if (conn->freed || conn->said)
		return;
	check_async_events(conn);
	check_deadlines(conn, now_ns);
	vb_records_overdue(conn, now_ns);
	if (conn->state == VB_C_UP) {
		vb_control_poll(conn); /* process what the peer sent before the connection ended */
		if (!conn->freed && !lost(conn))
			keep_alive(conn, now_ns);
		if (!conn->freed)
			vb_exports_progress(conn, now_ns);
		end_fetches(conn);
		vb_imports_progress(conn);
	}
	if (!conn->freed && lost(conn) && alert_left(conn, now_ns))
		end_connection(conn);
}

static void earlier(uint64_t *first, uint64_t at)
{
	if (at && (!*first || at < *first))
		*first = at;
}

uint64_t vb_conn_wake_ns(const struct vb_conn *conn)
{
	const struct vb_conf *conf = conn->t->conf;
	uint64_t first = 0;

	if (conn->freed) /* no file descriptor reports when the last messages have been sent */
		return conn->said_bye || !conn->leave_ns ? conn->leave_ns : now(conn) + LOOK_NS;
	if (conn->said)
		return 0;
	for (const struct vb_pipe *p = conn->pipes; p; p = p->all)
		earlier(&first, p->deadline_ns);
	if (conn->state == VB_C_UP)
		earlier(&first, conn->control->probing
					? conn->probe_ns + probe_limit(conf) + 1
					: conn->control->busy_ns + conf->keepalive_ns);
	earlier(&first, conn->records_deadline_ns);
	earlier(&first, conn->alert_ns);
	earlier(&first, vb_exports_wake_ns(conn));
	for (const struct vb_lane *lane = conn->lanes; lane; lane = lane->next)
		if (vb_lane_lingers(lane)) /* no thread watches its channel */
			earlier(&first, now(conn) + LOOK_NS);
	return first;
}

const char *vb_refusal(void *arg)
{
	const struct vb_conn *conn = arg;

	return conn->refusal[0] ? conn->refusal : NULL;
}

/* -- after vb_disconnect() -- */

/*
 * Post a request after the messages of a pipe. Its completion shows that all messages have been
 * sent.
 */
static void post_end_marker(struct vb_pipe *pipe)
{
	if (pipe->state == VB_P_UP && pipe->kind == VB_MESSAGES &&
	    pipe->qp.done != pipe->qp.built && !pipe->quiet)
		vb_pipe_probe(pipe);
}

void vb_disconnect(void *arg)
{
	struct vb_conn *conn = arg;

	if (!conn || conn->freed || !vb_usable(conn->t))
		return;
	conn->freed = 1;
	vb_exports_quiet(conn);
	if ((conn->state == VB_C_UP || (conn->accepted && conn->state != VB_C_OVER)) &&
	    !lost(conn)) {
		conn->leave_ns = now(conn) + LEAVE_NS;
		for (struct vb_lane *lane = conn->lanes; lane; lane = lane->next)
			vb_lane_flush(lane);
		for (struct vb_pipe *p = conn->pipes; p; p = p->all)
			post_end_marker(p);
	}
	vb_transport_reap(conn->t);
}

static bool messages_left(const struct vb_conn *conn)
{
	for (const struct vb_pipe *p = conn->pipes; p; p = p->all)
		if (p != conn->control && !pipe_left(p))
			return false;
	return true;
}

bool vb_conn_left(struct vb_conn *conn, uint64_t now_ns)
{
	if (!conn->leave_ns || now_ns >= conn->leave_ns)
		return true;
	vb_control_poll(conn);
	for (struct vb_lane *lane = conn->lanes; lane; lane = lane->next)
		vb_lane_poll(lane);
	if (lost(conn))
		return true;
	if (!conn->said_bye && !messages_left(conn))
		return false;
	if (!conn->said_bye) /* send BYE last, because the peer drops messages that follow it */
		vb_control_send(conn, VB_CTRL_BYE, NULL, 0);
	conn->said_bye = 1;
	return !conn->out_head && !conn->held_head && pipe_left(conn->control);
}
