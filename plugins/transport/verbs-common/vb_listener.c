/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vb_listener.c - an address that accepts RDMA connections: new connections, further queue pairs of
 * a connection, and direct queue pairs of third parties.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vb_hello.h"

#define BACKLOG 256

/* -- listeners -- */

static void explain_listen(struct vb_transport *t, const char *service, int rc)
{
	if (rc == -EADDRINUSE)
		gantry_log_error(t->host, "cannot listen at %s: the address is in use", service);
	else if (rc == -EADDRNOTAVAIL || rc == -ENODEV)
		gantry_log_error(
			t->host,
			"cannot listen at %s: no RDMA device has that address (see `rdma link` and `ip addr`)",
			service);
	else
		gantry_log_error(t->host, "cannot listen at %s: %s", service, strerror(-rc));
}

static int open_listener(struct vb_transport *t, const struct sockaddr_storage *addr,
			 struct vb_listener **listener_p)
{
	struct vb_listener *l = calloc(1, sizeof(*l));
	int rc;

	if (!l)
		return -ENOMEM;
	l->t = t;
	l->addr = *addr;
	l->tag = (struct vb_id){.what = VB_ID_LISTENER, .object = l};
	rc = vb_id_create(t->channel, &l->tag, &l->id);
	if (!rc)
		rc = vb_id_listen(l->id, (const struct sockaddr *)addr, BACKLOG);
	if (rc) {
		vb_id_destroy(&l->id);
		free(l);
		return rc;
	}
	/* sockaddr_in and sockaddr_in6 have the port at the same offset */
	((struct sockaddr_in *)&l->addr)->sin_port = rdma_get_src_port(l->id);
	tc_address_print((const struct sockaddr *)&l->addr, l->address, sizeof(l->address));
	LIST_INSERT_HEAD(&t->listeners, l, link);
	*listener_p = l;
	return 0;
}

int vb_listen(void *device, const char *service, const struct gantry_conn_events *events, void *arg,
	      void **listener_p)
{
	struct vb_transport *t = device;
	struct sockaddr_storage addr;
	struct vb_listener *l;
	int rc;

	if (!vb_usable(t))
		return -EPERM;
	rc = tc_address_parse(service, &addr);
	if (rc) {
		gantry_log_error(
			t->host,
			"'%s' is not an address: write 192.0.2.7:7471 or [2001:db8::7]:7471",
			service);
		return rc;
	}
	rc = open_listener(t, &addr, &l);
	if (rc) {
		explain_listen(t, service, rc);
		return rc;
	}
	l->events = events;
	l->arg = arg;
	*listener_p = l;
	return 0;
}

const char *vb_listener_address(void *listener)
{
	return ((const struct vb_listener *)listener)->address;
}

void vb_unlisten(void *listener)
{
	struct vb_listener *l = listener;

	if (!l || !vb_usable(l->t))
		return;
	LIST_REMOVE(l, link);
	vb_id_destroy(&l->id);
	free(l);
}

static void copy_address(struct sockaddr_storage *to, const struct sockaddr *from)
{
	memcpy(to, from, tc_address_bytes(from));
}

int vb_listen_direct(struct vb_conn *conn, struct sockaddr_storage *addr)
{
	const struct sockaddr *own = rdma_get_local_addr(conn->control->id);
	struct sockaddr_storage any_port;
	struct vb_listener *l;
	int rc = 0;

	LIST_FOREACH (l, &conn->t->listeners, link)
		if (!l->events && tc_address_same_host((const struct sockaddr *)&l->addr, own))
			break;
	if (!l) {
		memset(&any_port, 0, sizeof(any_port));
		copy_address(&any_port, own);
		((struct sockaddr_in *)&any_port)->sin_port = 0;
		rc = open_listener(conn->t, &any_port, &l);
	}
	if (!rc)
		*addr = l->addr;
	return rc;
}

/* -- connection requests -- */

/* Reject a request, with a reason for the log of the peer. */
static void refuse(struct vb_transport *t, struct rdma_cm_id *id, int reason, const char *why)
{
	struct vb_refusal refusal = {
		.magic = VB_MAGIC, .version = vb_version(t), .reason = (uint16_t)-reason};
	char peer[64];

	snprintf(refusal.text, sizeof(refusal.text), "%s", why);
	tc_address_print(rdma_get_peer_addr(id), peer, sizeof(peer));
	gantry_log_info(t->host, "refusing %s: %s", peer, refusal.text);
	vb_id_reject(id, &refusal, sizeof(refusal));
}

/* Check a request of any kind. Returns NULL, or the reason as text and in *reason_p. */
static const char *check(const struct vb_transport *t, const struct vb_event *event,
			 struct vb_greeting *request, int *reason_p)
{
	const struct vb_hello *hello = &request->hello;
	const char *why = vb_hello_read(t, event, request);

	*reason_p = -EPROTO;
	if (why)
		return why;
	if (hello->end != VB_CONNECTS || hello->kind < VB_CONTROL || hello->kind > VB_DIRECT ||
	    hello->session == 0)
		return "malformed request";
	if (event->id->verbs != t->device.context) {
		*reason_p = -ENODEV;
		return "the request arrived on an RDMA device that this transport does not use";
	}
	return NULL;
}

static int equip(struct vb_pipe *pipe, struct rdma_cm_id *id, const struct vb_hello *hello,
		 const char **why_p)
{
	int rc;

	id->context = &pipe->tag; /* from here on the pipe owns the id */
	pipe->id = id;
	*why_p = hello->slot_bytes != pipe->slot_bytes ? "the option inline differs at the two ends"
						       : "malformed request";
	rc = vb_pipe_take_hello(pipe, hello);
	if (rc)
		return rc;
	*why_p = "out of resources: see the log of the listener";
	return vb_pipe_equip_or_log(pipe);
}

static void reject(struct vb_transport *t, struct rdma_cm_id *id, int reason, const char *why)
{
	refuse(t, id, reason, why);
	vb_id_destroy(&id);
}

/* Call accept of the user before the request is accepted. */
static int call_accept(struct vb_listener *l, struct vb_conn *conn)
{
	int rc;

	conn->accepting = 1;
	l->t->n_events++;
	/* the callback can also end the listener */
	rc = l->events->accept(l->arg, conn, &conn->peer, &conn->arg);
	conn->accepting = 0;
	return rc || conn->freed ? -EACCES : 0;
}

/* Handle the request of a new connection. */
static void on_control(struct vb_listener *l, const struct vb_event *event,
		       const struct vb_hello *hello)
{
	struct vb_transport *t = l->t;
	const char *why = "out of memory";
	struct vb_conn *conn;
	int rc;

	rc = vb_conn_new(t, VB_LISTENS, l->events, l->arg, &conn);
	if (rc) {
		reject(t, event->id, rc, why);
		return;
	}
	conn->session = hello->session;
	conn->peer_qpn = event->qpn;
	copy_address(&conn->to, rdma_get_peer_addr(event->id));
	tc_address_print(rdma_get_peer_addr(event->id), conn->peer.address,
			 sizeof(conn->peer.address));
	rc = vb_pipe_new(conn, VB_CONTROL, VB_LISTENS, &conn->control);
	if (rc) {
		vb_conn_destroy(conn);
		reject(t, event->id, rc, why);
		return;
	}
	rc = equip(conn->control, event->id, hello, &why);
	if (!rc) {
		why = "the listener rejects the session";
		rc = call_accept(l, conn);
	}
	if (rc) {
		refuse(t, event->id, rc, why);
		vb_conn_destroy(conn);
		return;
	}
	conn->accepted = 1;
	t->n_accepted++;
	rc = vb_pipe_accept(conn->control, event);
	if (rc)
		vb_conn_fail(conn, rc);
}

static struct vb_conn *find_conn(struct vb_transport *t, struct vb_greeting *request)
{
	for (struct vb_conn *conn = t->conns; conn; conn = conn->next)
		/* the peer can already be up while this end waits for ESTABLISHED */
		if (conn->state != VB_C_OVER && (conn->state == VB_C_UP || conn->accepted) &&
		    !conn->freed && !__atomic_load_n(&conn->lost, __ATOMIC_RELAXED) &&
		    vb_hello_belongs(conn, request))
			return conn;
	return NULL;
}

/* Returns true if the lanes are valid for the kind of the queue pair. */
static bool lanes_ok(const struct vb_hello *hello)
{
	bool connects = hello->connects_lane < VB_MAX_LANES,
	     listens = hello->listens_lane < VB_MAX_LANES;

	if (hello->kind == VB_MESSAGES)
		return connects && listens;
	if (hello->kind == VB_DATA && listens)
		return hello->connects_lane == VB_NO_LANE;
	return connects && hello->listens_lane == VB_NO_LANE;
}

/*
 * Find the pipe that this side has requested, or create one. Returns 0; -EBUSY: the pipe exists;
 * -ENOSPC: too many pipes, or an unrequested data pipe; or another -errno.
 */
static int pipe_for(struct vb_conn *conn, const struct vb_hello *hello, struct vb_pipe **pipe_p)
{
	struct vb_lane *lane = NULL;
	uint32_t n = 0;
	int rc = 0;

	for (struct vb_pipe *p = conn->pipes; p; p = p->all) {
		n++;
		if (hello->kind == VB_DIRECT || p->kind != hello->kind ||
		    p->connects_lane != hello->connects_lane ||
		    p->listens_lane != hello->listens_lane)
			continue;
		*pipe_p = p;
		return p->state == VB_P_ASKED ? 0 : -EBUSY;
	}
	/* a data queue pair on which this side posts must have been requested by this side */
	if (n >= VB_MAX_PIPES || (hello->kind == VB_DATA && hello->listens_lane != VB_NO_LANE))
		return -ENOSPC;
	if (hello->kind == VB_MESSAGES)
		rc = vb_lane_get(conn, hello->listens_lane, &lane);
	if (rc)
		return rc;
	if (lane)
		/* the pipe is no user of the lane, which stays until the connection ends */
		vb_lane_put(lane);
	rc = vb_pipe_new(conn, hello->kind, VB_LISTENS, pipe_p);
	if (rc)
		return rc;
	(*pipe_p)->lane = lane;
	(*pipe_p)->connects_lane = hello->connects_lane;
	(*pipe_p)->listens_lane = hello->listens_lane;
	return 0;
}

/* Handle the request of a further queue pair of a connection. */
static void on_further(struct vb_transport *t, const struct vb_event *event,
		       struct vb_greeting *request)
{
	const struct vb_hello *hello = &request->hello;
	struct vb_conn *conn = find_conn(t, request);
	const char *why = "no such session, or it has ended";
	struct vb_pipe *pipe = NULL;
	int rc = -EACCES, asked;

	if (conn) {
		rc = vb_hello_remember(conn, request);
		why = rc == -EALREADY ? "the request was accepted before"
				      : "no such queue pair can be established";
		if (!rc)
			rc = lanes_ok(hello) &&
					     (hello->kind == VB_DIRECT || conn->end == VB_LISTENS)
				     ? pipe_for(conn, hello, &pipe)
				     : -EPROTO;
	}
	if (rc) {
		reject(t, event->id, rc, why);
		return;
	}
	pipe->sequence = request->sealed.sequence;
	memcpy(pipe->proof, request->sealed.proof, sizeof(pipe->proof));
	asked = pipe->deadline_ns != 0;
	rc = equip(pipe, event->id, hello, &why);
	if (!rc)
		rc = vb_pipe_accept(pipe, event);
	if (!rc)
		return;
	refuse(t, event->id, rc, why);
	if (asked)
		vb_conn_fail(conn, rc);
	else
		vb_pipe_free(pipe);
}

/*
 * Returns the number of connections that the listeners of this device have accepted from the host.
 */
static uint32_t count_accepted(const struct vb_transport *t, const struct sockaddr *host)
{
	uint32_t n = 0;

	for (const struct vb_conn *conn = t->conns; conn; conn = conn->next)
		if (conn->accepted &&
		    tc_address_same_host((const struct sockaddr *)&conn->to, host))
			n++;
	return n;
}

void vb_on_request(struct vb_listener *l, const struct vb_event *event)
{
	struct vb_transport *t = l->t;
	const struct sockaddr *host;
	char text[VB_REFUSAL_TEXT];
	struct vb_greeting request;
	int reason;
	const char *why = check(t, event, &request, &reason);
	bool control = !why && request.hello.kind == VB_CONTROL;

	if (control && !l->events) {
		reason = -EACCES;
		why = "this port accepts no new sessions";
	}
	if (control && !why) {
		reason = -EBUSY;
		host = rdma_get_peer_addr(event->id);
		why = tc_quota((uint32_t)t->conf->max_connections, t->n_accepted,
			       count_accepted(t, host), host, text, sizeof(text));
	}
	if (why)
		reject(t, event->id, reason, why);
	else if (control)
		on_control(l, event, &request.hello);
	else
		on_further(t, event, &request);
}
