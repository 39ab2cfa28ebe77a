/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vb_connect.c - establishes and ends pipes: handles every connection event in every state of a
 * pipe.
 *
 *   active    RESOLVING --> ROUTING --> CONNECTING --> UP     ADDR_RESOLVED, ROUTE_RESOLVED,
 *                                                             ESTABLISHED
 *   passive   ASKED -----------------> ACCEPTED ----> UP      (request of the peer), ESTABLISHED
 *
 * The end of a pipe ends its connection, except the passive end of a direct pipe, which belongs to
 * a third party.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "vb_hello.h"

#define MS 1000000u
#define RESOLVE_STEP_MS 100
/* reasons of a rejection, as numbered by the InfiniBand specification */
#define REJ_NO_SERVICE 8
#define REJ_CONSUMER 28 /* rejected by the peer itself, not by its connection manager */

static uint64_t deadline(const struct vb_transport *t)
{
	return t->host->now_ns(t->host) + t->conf->connect_timeout_ns;
}

static int timeout_ms(const struct vb_transport *t)
{
	return (int)(t->conf->connect_timeout_ns / MS);
}

static const char *kind_text(const struct vb_pipe *pipe)
{
	static const char *const texts[] = {[VB_CONTROL] = "connection",
					    [VB_MESSAGES] = "message queue pair",
					    [VB_DATA] = "data queue pair",
					    [VB_DIRECT] = "direct queue pair"};

	return texts[pipe->kind];
}

static void print_peer(const struct vb_pipe *pipe, char *text, size_t size)
{
	if (pipe->end == VB_CONNECTS)
		tc_address_print((const struct sockaddr *)&pipe->to, text, size);
	else
		snprintf(text, size, "%s", pipe->conn->peer.address);
}

/* -- end of a pipe -- */

void vb_pipe_end(struct vb_pipe *pipe)
{
	int is_known = pipe->state == VB_P_UP || pipe->state == VB_P_ACCEPTED;

	if (pipe->state == VB_P_DEAD)
		return;
	pipe->state = VB_P_DEAD;
	pipe->deadline_ns = 0;
	vb_pipe_fail(pipe);
	if (is_known && pipe->id)
		vb_id_disconnect(pipe->id);
}

static bool is_passive_direct(const struct vb_pipe *pipe)
{
	return pipe->kind == VB_DIRECT && pipe->end == VB_LISTENS;
}

/* The pipe has ended. reason: -errno. May free the pipe. */
static void lose_pipe(struct vb_pipe *pipe, int reason)
{
	if (is_passive_direct(pipe)) {
		vb_pipe_end(pipe);
		vb_pipe_free(pipe);
		return;
	}
	vb_conn_fail(pipe->conn, reason);
}

void vb_pipe_completion_failed(struct vb_pipe *pipe, const struct ibv_wc *wc)
{
	const struct vb_conn *conn = pipe->conn;
	int reason = vb_wc_reason(wc->status);

	/*
	 * Posted requests are flushed because the queue pair has ended. Another event reports the
	 * cause.
	 */
	if (reason == -ECANCELED)
		reason = -ENOTCONN;
	else if (!__atomic_load_n(&conn->lost, __ATOMIC_RELAXED))
		gantry_log_warn(conn->t->host, "%s with %s: %s (%s)", kind_text(pipe),
				conn->peer.address, vb_wc_text(wc),
				wc->wr_id & VB_RECV ? "receive" : "request");
	vb_conn_fail(pipe->conn, reason);
}

/*
 * The pipe could not be established: log the cause. A client can retry until a server listens, so
 * -ECONNREFUSED is logged at a lower level.
 */
static void fail(struct vb_pipe *pipe, int reason, const char *why)
{
	const struct gantry_host *host = pipe->conn->t->host;
	int level = reason == -ECONNREFUSED && pipe->kind == VB_CONTROL ? GANTRY_LOG_INFO
									: GANTRY_LOG_WARN;
	char peer[64];

	print_peer(pipe, peer, sizeof(peer));
	host->log(host, level, "no %s with %s: %s", kind_text(pipe), peer, why);
	lose_pipe(pipe, reason);
}

bool vb_pipe_overdue(struct vb_pipe *pipe, uint64_t now_ns)
{
	static const char *const steps[VB_P_STATES] = {
		[VB_P_ASKED] = "the peer did not connect it in time (connect_timeout)",
		[VB_P_RESOLVING] = "its address was not resolved in time (connect_timeout)",
		[VB_P_ROUTING] = "no route was found in time (connect_timeout)",
		[VB_P_CONNECTING] = "it did not answer in time (connect_timeout)",
		[VB_P_ACCEPTED] = "it did not finish connecting in time (connect_timeout)",
	};

	if (!pipe->deadline_ns || now_ns < pipe->deadline_ns)
		return false;
	pipe->deadline_ns = 0;
	fail(pipe, -ETIMEDOUT, steps[pipe->state] ? steps[pipe->state] : "timeout");
	return true;
}

void vb_pipe_async_event(struct vb_pipe *pipe, enum ibv_event_type event)
{
	static const enum ibv_event_type fatal[] = {IBV_EVENT_CQ_ERR, IBV_EVENT_QP_FATAL,
						    IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR,
						    IBV_EVENT_PATH_MIG_ERR};

	for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
		if (event == fatal[i]) {
			gantry_log_warn(pipe->conn->t->host, "%s with %s: %s", kind_text(pipe),
					pipe->conn->peer.address, ibv_event_type_str(event));
			lose_pipe(pipe, event == IBV_EVENT_CQ_ERR ? -EIO : -EPROTO);
			return;
		}
}

/* -- active side -- */

/*
 * Resolve the address in short steps. A kernel that must first query the neighbour's address can
 * notice the reply as late as the end of a step. The deadline is not extended.
 */
static int resolve(struct vb_pipe *pipe, const struct sockaddr *from)
{
	struct vb_transport *t = pipe->conn->t;
	int rc;

	vb_id_destroy(&pipe->id);
	rc = vb_id_create(t->channel, &pipe->tag, &pipe->id);
	if (rc)
		return rc;
	pipe->state = VB_P_RESOLVING;
	return vb_id_resolve_addr(pipe->id, from, (const struct sockaddr *)&pipe->to,
				  RESOLVE_STEP_MS);
}

int vb_pipe_connect(struct vb_pipe *pipe, const struct sockaddr *to)
{
	size_t size = to->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						: sizeof(struct sockaddr_in);

	memcpy(&pipe->to, to, size);
	pipe->deadline_ns = deadline(pipe->conn->t);
	return resolve(pipe, NULL);
}

/* Find an address of this device, of the given family. Returns 0 or -ENODEV. */
static int device_address(struct vb_transport *t, int family, struct sockaddr_storage *from)
{
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
	union ibv_gid gid;

	memset(from, 0, sizeof(*from));
	for (int i = 0; i < 64 && ibv_query_gid(t->device.context, 1, i, &gid) == 0; i++) {
		struct sockaddr_in *sin = (struct sockaddr_in *)from;
		struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)from;

		from->ss_family = (sa_family_t)family;
		if (family == AF_INET && memcmp(gid.raw, v4, sizeof(v4)) == 0) {
			memcpy(&sin->sin_addr, gid.raw + sizeof(v4), sizeof(sin->sin_addr));
			return 0;
		}
		if (family == AF_INET6 && memcmp(gid.raw, v4, sizeof(v4)) != 0 &&
		    gid.raw[0] != 0xfe && gid.raw[0] != 0) {
			memcpy(&sin6->sin6_addr, gid.raw, sizeof(sin6->sin6_addr));
			return 0;
		}
	}
	return -ENODEV;
}

/* The route leads over another device. Retry once from an address of this device. */
static void on_other_device(struct vb_pipe *pipe)
{
	struct vb_transport *t = pipe->conn->t;
	struct sockaddr_storage from;
	char why[240];

	if (!pipe->bound && device_address(t, pipe->to.ss_family, &from) == 0) {
		int rc = resolve(pipe, (struct sockaddr *)&from);

		pipe->bound = 1;
		if (rc == -ENOMEM)
			fail(pipe, rc, strerror(-rc));
		if (rc == 0 || rc == -ENOMEM)
			return;
	}
	snprintf(why, sizeof(why), "it is reached by RDMA device %s, and this transport uses %s",
		 pipe->id && pipe->id->verbs ? pipe->id->verbs->device->name : "?",
		 t->device.context->device->name);
	fail(pipe, -ENODEV, why);
}

static void on_addr(struct vb_pipe *pipe, const struct vb_event *event)
{
	struct vb_transport *t = pipe->conn->t;
	int rc;

	(void)event;
	if (pipe->id->verbs != t->device.context) {
		on_other_device(pipe);
		return;
	}
	rc = vb_id_set_patience(pipe->id, &t->patience);
	if (!rc)
		rc = vb_id_resolve_route(pipe->id, timeout_ms(t));
	if (rc) {
		fail(pipe, rc, strerror(-rc));
		return;
	}
	pipe->state = VB_P_ROUTING;
	pipe->deadline_ns = deadline(t);
}

static struct ibv_comp_channel *channel_of(const struct vb_pipe *pipe)
{
	return pipe->kind == VB_CONTROL ? pipe->conn->control_channel
	       : pipe->lane             ? pipe->lane->channel
					: NULL;
}

/* Log why a device cannot provide the resources, in terms of options. */
static void equip_failed(struct vb_pipe *pipe, int rc)
{
	const struct vb_transport *t = pipe->conn->t;

	if (rc == -ENOMEM && pipe->region_sends && !pipe->credit_mr)
		vb_explain_memory(t, kind_text(pipe), vb_pipe_bytes(t->conf, pipe->kind), rc);
	else if (rc == -ENOMEM)
		gantry_log_error(
			t->host,
			"no memory for a %s of RDMA device %s: lower max_depth, or raise the limits of memory "
			"and of locked memory of this process: `ulimit -l`, or LimitMEMLOCK= of its service",
			kind_text(pipe), t->device.context->device->name);
	else if (rc == -E2BIG)
		gantry_log_error(
			t->host,
			"a %s needs more requests or completions in a queue than RDMA device %s has (limit "
			"requests=%u, completions=%u): lower max_depth",
			kind_text(pipe), t->device.context->device->name,
			t->device.limits.max_qp_wr, t->device.limits.max_cqe);
}

int vb_pipe_equip_or_log(struct vb_pipe *pipe)
{
	int rc = vb_pipe_equip(pipe, channel_of(pipe));

	if (rc)
		equip_failed(pipe, rc);
	return rc;
}

static void on_route(struct vb_pipe *pipe, const struct vb_event *event)
{
	struct vb_transport *t = pipe->conn->t;
	uint8_t hello[VB_PRIVATE_MAX];
	int rc = vb_pipe_equip_or_log(pipe);
	size_t len;

	(void)event;
	if (!rc)
		rc = vb_hello_write(pipe, hello, &len);
	if (!rc)
		rc = vb_id_connect(pipe->id, &t->device.limits, &t->patience, hello, len);
	if (rc) {
		fail(pipe, rc, strerror(-rc));
		return;
	}
	pipe->state = VB_P_CONNECTING;
	pipe->deadline_ns = deadline(t);
}

/* -- both sides -- */

static void up(struct vb_pipe *pipe)
{
	pipe->state = VB_P_UP;
	pipe->deadline_ns = 0;
	if (pipe->lane)
		vb_lane_add(pipe->lane, pipe);
	else
		__atomic_store_n(&pipe->up, 1, __ATOMIC_RELEASE);
	if (pipe->peer)
		/* pairs with pipe_of() in vb_rma.c */
		__atomic_store_n(&pipe->peer->pipes[pipe->lane->number], pipe, __ATOMIC_RELEASE);
	if (pipe->kind == VB_CONTROL)
		vb_conn_up(pipe->conn);
}

static void on_answer(struct vb_pipe *pipe, const struct vb_event *event)
{
	struct vb_greeting reply;

	if (event->private_len < sizeof(reply.hello)) {
		fail(pipe, -EPROTO, "its reply does not belong to this protocol");
		return;
	}
	if (vb_hello_read(pipe->conn->t, event, &reply) || !vb_hello_answers(pipe, &reply) ||
	    vb_pipe_take_hello(pipe, &reply.hello) != 0) {
		fail(pipe, -EPROTO, "its reply is invalid");
		return;
	}
	if (pipe->kind == VB_CONTROL) {
		pipe->conn->secret = reply.hello.secret;
		pipe->conn->peer_qpn = event->qpn;
	}
	up(pipe);
}

static void on_accepted(struct vb_pipe *pipe, const struct vb_event *event)
{
	(void)event;
	up(pipe);
}

/* Map a reason of the peer to -errno. Returns -ECONNREFUSED for an unknown reason. */
static int known_reason(uint32_t reason)
{
	static const int reasons[] = {EACCES, EPROTO, EBUSY,     ENOSPC,
				      ENOMEM, ENODEV, ETIMEDOUT, EALREADY};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reason == (uint32_t)reasons[i])
			return -reasons[i];
	return -ECONNREFUSED;
}

/* Copy a text of the peer. '?' replaces each character that is not printable. */
static void print_text(char *out, size_t size, const char *text, size_t max)
{
	size_t n = 0;

	for (; n + 1 < size && n < max && text[n]; n++)
		out[n] = text[n] >= ' ' && text[n] <= '~' ? text[n] : '?';
	out[n] = 0;
}

static void on_reject(struct vb_pipe *pipe, const struct vb_event *event)
{
	struct vb_refusal refusal = {.magic = 0};
	char text[sizeof(refusal.text) + 24] = "it refuses: ";
	int reason = vb_event_reason(event->type, event->status);

	if (event->private_len >= sizeof(refusal))
		memcpy(&refusal, event->private_data, sizeof(refusal));
	if (event->status == REJ_CONSUMER && refusal.magic == VB_MAGIC) {
		print_text(text + strlen(text), sizeof(refusal.text), refusal.text,
			   sizeof(refusal.text));
		if (pipe->kind == VB_CONTROL)
			print_text(pipe->conn->refusal, sizeof(pipe->conn->refusal), refusal.text,
				   sizeof(refusal.text));
		fail(pipe, known_reason(refusal.reason), text);
	} else {
		fail(pipe, reason,
		     event->status == REJ_NO_SERVICE ? "no listener there"
						     : "it refuses without a reason");
	}
}

static void on_error(struct vb_pipe *pipe, const struct vb_event *event)
{
	int reason = vb_event_reason(event->type, event->status);
	const char *why = strerror(-reason);

	if (reason == -ENOMEM) /* -ENOMEM is an error of this side, in any step */
		why = "out of memory on this side";
	else if (event->type == RDMA_CM_EVENT_ADDR_ERROR)
		why = "no RDMA device has a route to it: see `rdma link` and `ip route get`";
	else if (event->type == RDMA_CM_EVENT_ROUTE_ERROR)
		why = "the path to it cannot be found: is it up?";
	else if (event->type == RDMA_CM_EVENT_UNREACHABLE)
		why = "it does not answer: is the machine up, and UDP port 4791 open?";
	fail(pipe, reason ? reason : -EIO, why);
}

/* The neighbour's address was not resolved: retry until the deadline. */
static void on_unresolved(struct vb_pipe *pipe, const struct vb_event *event)
{
	struct sockaddr_storage from;
	int bound = pipe->bound && device_address(pipe->conn->t, pipe->to.ss_family, &from) == 0;
	struct vb_event last = *event;

	if (event->status == -ETIMEDOUT) {
		last.status = resolve(pipe, bound ? (struct sockaddr *)&from : NULL);
		if (last.status == 0)
			return;
	}
	on_error(pipe, &last);
}

static void on_gone(struct vb_pipe *pipe, const struct vb_event *event)
{
	struct vb_conn *conn = pipe->conn;

	(void)event;
	/* the last messages can state why the peer disconnects */
	if (pipe->kind == VB_CONTROL && conn->state == VB_C_UP && !conn->freed)
		vb_control_poll(conn);
	lose_pipe(pipe, -ENOTCONN);
}

static void on_removal(struct vb_pipe *pipe, const struct vb_event *event)
{
	(void)event;
	vb_transport_dead(pipe->conn->t);
}

static void on_address_change(struct vb_pipe *pipe, const struct vb_event *event)
{
	(void)event;
	gantry_log_warn(pipe->conn->t->host,
			"the network interface under the %s with %s has changed its address",
			kind_text(pipe), pipe->conn->peer.address);
}

static void ignore(struct vb_pipe *pipe, const struct vb_event *event)
{
	gantry_log_debug(pipe->conn->t->host, "ignoring %s in state %d of a %s with %s",
			 rdma_event_str(event->type), pipe->state, kind_text(pipe),
			 pipe->conn->peer.address);
}

typedef void reaction(struct vb_pipe *pipe, const struct vb_event *event);

/* An event whose entry is NULL is ignored. */
static reaction *const table[][VB_P_STATES] = {
	[RDMA_CM_EVENT_ADDR_RESOLVED] = {[VB_P_RESOLVING] = on_addr},
	[RDMA_CM_EVENT_ADDR_ERROR] = {[VB_P_RESOLVING] = on_unresolved},
	[RDMA_CM_EVENT_ROUTE_RESOLVED] = {[VB_P_ROUTING] = on_route},
	[RDMA_CM_EVENT_ROUTE_ERROR] = {[VB_P_ROUTING] = on_error},
	[RDMA_CM_EVENT_CONNECT_ERROR] =
		{[VB_P_CONNECTING] = on_error, [VB_P_ACCEPTED] = on_error, [VB_P_UP] = on_gone},
	[RDMA_CM_EVENT_UNREACHABLE] =
		{[VB_P_CONNECTING] = on_error, [VB_P_ACCEPTED] = on_error, [VB_P_UP] = on_gone},
	[RDMA_CM_EVENT_REJECTED] =
		{[VB_P_CONNECTING] = on_reject, [VB_P_ACCEPTED] = on_gone, [VB_P_UP] = on_gone},
	[RDMA_CM_EVENT_ESTABLISHED] =
		{[VB_P_CONNECTING] = on_answer, [VB_P_ACCEPTED] = on_accepted},
	[RDMA_CM_EVENT_DISCONNECTED] =
		{[VB_P_CONNECTING] = on_gone, [VB_P_ACCEPTED] = on_gone, [VB_P_UP] = on_gone},
	[RDMA_CM_EVENT_DEVICE_REMOVAL] = {on_removal, on_removal, on_removal, on_removal,
					  on_removal, on_removal, on_removal},
	[RDMA_CM_EVENT_ADDR_CHANGE] = {[VB_P_UP] = on_address_change},
	[RDMA_CM_EVENT_TIMEWAIT_EXIT] = {NULL},
};

void vb_on_pipe_event(struct vb_pipe *pipe, const struct vb_event *event)
{
	reaction *react = NULL;

	if ((unsigned)event->type < sizeof(table) / sizeof(table[0]))
		react = table[event->type][pipe->state];
	(react ? react : ignore)(pipe, event);
}

/* -- requests for a pipe -- */

static struct vb_pipe *find(const struct vb_conn *conn, enum vb_kind kind, uint32_t connects_lane,
			    uint32_t listens_lane, uint32_t *n_p)
{
	struct vb_pipe *found = NULL;

	*n_p = 0;
	for (struct vb_pipe *p = conn->pipes; p; p = p->all) {
		if (p->kind == kind && p->connects_lane == connects_lane &&
		    p->listens_lane == listens_lane && !p->peer)
			found = p;
		++*n_p;
	}
	return found;
}

static int make(struct vb_conn *conn, enum vb_kind kind, uint32_t local_lane,
		struct vb_pipe **pipe_p)
{
	struct vb_lane *lane = NULL;
	int rc = 0;

	if (local_lane != VB_NO_LANE)
		rc = vb_lane_get(conn, local_lane, &lane);
	if (rc)
		return rc;
	if (lane)
		/* the pipe is no user of the lane, which stays until the connection ends */
		vb_lane_put(lane);
	rc = vb_pipe_new(conn, kind, conn->end, pipe_p);
	if (!rc)
		(*pipe_p)->lane = lane;
	return rc;
}

static int request_pipe(struct vb_pipe *pipe)
{
	struct vb_ctrl_open body = {.kind = (uint8_t)pipe->kind,
				    .connects_lane = pipe->connects_lane,
				    .listens_lane = pipe->listens_lane};

	pipe->state = VB_P_ASKED;
	pipe->deadline_ns = deadline(pipe->conn->t);
	return vb_control_send(pipe->conn, VB_CTRL_OPEN, &body, sizeof(body));
}

int vb_pipe_want(struct vb_conn *conn, enum vb_kind kind, uint32_t local_lane, uint32_t peer_lane)
{
	int connects = conn->end == VB_CONNECTS;
	uint32_t connects_lane = connects ? local_lane : peer_lane,
		 listens_lane = connects ? peer_lane : local_lane, n;
	struct vb_pipe *pipe;
	int rc;

	if (find(conn, kind, connects_lane, listens_lane, &n))
		return 0;
	if (n >= VB_MAX_PIPES)
		return -ENOSPC;
	rc = make(conn, kind, local_lane, &pipe);
	if (rc)
		return rc;
	pipe->connects_lane = (uint16_t)connects_lane;
	pipe->listens_lane = (uint16_t)listens_lane;
	rc = connects ? vb_pipe_connect(pipe, (const struct sockaddr *)&conn->to)
		      : request_pipe(pipe);
	if (rc)
		vb_pipe_free(pipe);
	return rc;
}

int vb_pipe_want_direct(struct vb_conn *conn, struct vb_import_peer *peer, uint32_t local_lane)
{
	struct vb_pipe *pipe;
	int rc;

	for (struct vb_pipe *p = conn->pipes; p; p = p->all)
		if (p->peer == peer && p->lane->number == local_lane)
			return 0;
	rc = make(conn, VB_DIRECT, local_lane, &pipe);
	if (rc)
		return rc;
	/* this end is the active side, even if it is the server end of the connection */
	pipe->end = VB_CONNECTS;
	pipe->peer = peer;
	pipe->connects_lane = (uint16_t)local_lane;
	pipe->listens_lane = VB_NO_LANE;
	rc = vb_pipe_connect(pipe, (const struct sockaddr *)&peer->addr);
	if (rc)
		vb_pipe_free(pipe);
	return rc;
}

/* -- passive side -- */

int vb_pipe_accept(struct vb_pipe *pipe, const struct vb_event *request)
{
	struct vb_transport *t = pipe->conn->t;
	uint8_t hello[VB_PRIVATE_MAX];
	int rc = vb_id_set_patience(pipe->id, &t->patience);
	size_t len;

	if (!rc)
		rc = vb_hello_write(pipe, hello, &len);
	if (!rc)
		rc = vb_id_accept(pipe->id, &t->device.limits, &t->patience, request, hello, len);
	if (rc)
		return rc;
	pipe->state = VB_P_ACCEPTED;
	pipe->deadline_ns = deadline(t);
	return 0;
}
