/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vb_control.c - messages of the control pipe: those of the user, and those of the protocol.
 * Thread: control.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs.h"

#define USER_WAITS 32u /* limit of queued messages of the user */
#define ALL_WAIT 1024u /* limit of queued messages of all kinds; beyond it the connection ends */
#define ROUNDS 8       /* limit of rounds of VB_POLL completions per vb_progress() */

/* -- sending -- */

static int post(struct vb_conn *conn, enum vb_ctrl_kind kind, const void *body, size_t len)
{
	const struct vb_send send = {.kind = VB_R_MESSAGE,
				     .wanted = kind == VB_CTRL_BYE || kind == VB_CTRL_RECORD};
	struct vb_pipe *pipe = conn->control;
	struct ibv_send_wr *wr;
	char *slot = vb_pipe_slot(pipe, &send, &wr);
	struct vb_ctrl head = {.kind = (uint8_t)kind, .length = (uint16_t)len};

	if (!slot)
		return -EAGAIN;
	head.allowed = vb_pipe_allow(pipe, VB_CTRL_SLOTS);
	memcpy(slot, &head, sizeof(head));
	if (len)
		memcpy(slot + sizeof(head), body, len);
	vb_pipe_push(pipe, wr, (uint32_t)(sizeof(head) + len));
	return 0;
}

static bool may_post(const struct vb_conn *conn)
{
	return conn->state == VB_C_UP && !conn->control->quiet;
}

static void flush(struct vb_conn *conn)
{
	struct vb_outgoing *out;

	if (!may_post(conn))
		return;
	while ((out = conn->out_head) && post(conn, out->kind, out->body, out->len) == 0) {
		conn->out_head = out->next;
		if (!conn->out_head)
			conn->out_tail = &conn->out_head;
		conn->n_out--;
		free(out);
	}
	vb_pipe_post(conn->control);
}

/* Append a message to one of the two lists, whose end is *tail. */
static int queue(struct vb_conn *conn, struct vb_outgoing ***tail, enum vb_ctrl_kind kind,
		 const void *body, size_t len)
{
	struct vb_outgoing *out;

	if (conn->n_out >= ALL_WAIT) {
		vb_conn_broken(conn, "does not read its control messages");
		return -ENOTCONN;
	}
	out = malloc(sizeof(*out) + len);
	if (!out)
		return -ENOMEM;
	out->next = NULL;
	out->kind = kind;
	out->len = len;
	if (len)
		memcpy(out->body, body, len);
	**tail = out;
	*tail = &out->next;
	conn->n_out++;
	return 0;
}

static void drop(struct vb_outgoing **head, struct vb_outgoing ***tail)
{
	while (*head) {
		struct vb_outgoing *out = *head;

		*head = out->next;
		free(out);
	}
	*tail = head;
}

void vb_control_drop(struct vb_conn *conn)
{
	drop(&conn->out_head, &conn->out_tail);
	drop(&conn->held_head, &conn->held_tail);
	conn->n_out = 0;
}

int vb_control_put(struct vb_conn *conn, enum vb_ctrl_kind kind, const void *body, size_t len)
{
	if (conn->out_head || !may_post(conn) || post(conn, kind, body, len) != 0)
		return queue(conn, &conn->out_tail, kind, body, len);
	vb_pipe_post(conn->control);
	return 0;
}

int vb_control_send(struct vb_conn *conn, enum vb_ctrl_kind kind, const void *body, size_t len)
{
	if (conn->state == VB_C_OVER || __atomic_load_n(&conn->lost, __ATOMIC_RELAXED))
		return -ENOTCONN;
	if (!conn->t->host->records)
		return vb_control_put(conn, kind, body, len);
	return conn->records_open && !conn->held_head
		       ? vb_records_send(conn, kind, body, len)
		       : queue(conn, &conn->held_tail, kind, body, len);
}

void vb_control_send_held(struct vb_conn *conn)
{
	struct vb_outgoing *out;
	int rc = 0;

	while ((out = conn->held_head) && rc == 0) {
		rc = vb_records_send(conn, out->kind, out->body, out->len);
		conn->held_head = out->next;
		conn->n_out--;
		free(out);
	}
	if (!conn->held_head)
		conn->held_tail = &conn->held_head;
	if (rc)
		vb_conn_fail(conn, rc);
}

int vb_send_ctrl(void *arg, const void *msg, size_t len)
{
	struct vb_conn *conn = arg;

	if (!vb_usable(conn->t))
		return -EPERM;
	if (!vb_conn_usable(conn))
		return -ENOTCONN;
	if (len == 0 || len > GANTRY_CTRL_MAX)
		return -EMSGSIZE;
	if (conn->n_out >= USER_WAITS)
		return -EAGAIN;
	return vb_control_send(conn, VB_CTRL_USER, msg, len);
}

/*
 * -- messages of the peer. Each handler returns NULL, or the reason why the message is invalid --
 */

static const char *on_user(struct vb_conn *conn, const void *body, size_t len)
{
	conn->t->n_events++;
	conn->events->message(conn->arg, conn, body, len);
	return NULL;
}

static void consumer_gone(struct vb_conn *conn, uint32_t id)
{
	struct vb_producer *p;

	for (struct vb_lane *lane = conn->lanes; lane; lane = lane->next)
		LIST_FOREACH (p, &lane->producers, link)
			if (p->consumer_id == id)
				__atomic_store_n(&p->gone, 1, __ATOMIC_RELAXED);
}

static int find_remote(const struct vb_conn *conn, uint32_t id)
{
	for (int i = 0; i < VB_CONSUMERS; i++)
		if (id ? conn->remote[i].used && conn->remote[i].id == id : !conn->remote[i].used)
			return i;
	return -1;
}

static const char *on_consumer(struct vb_conn *conn, const void *body, size_t len)
{
	struct vb_ctrl_consumer c;
	int at;

	(void)len;
	memcpy(&c, body, sizeof(c));
	if (c.id == 0)
		return "sends a consumer message with an invalid id";
	at = find_remote(conn, c.up ? 0 : c.id);
	if (at < 0)
		return c.up ? "has too many consumers"
			    : "destroys a consumer that it does not have";
	if (c.up) {
		if (c.id <= conn->seen_consumer || c.lane >= VB_MAX_LANES)
			return "creates a consumer with an invalid id or lane";
		conn->seen_consumer = c.id;
		conn->remote[at].id = c.id;
		conn->remote[at].lane = c.lane;
		conn->remote[at].max_data = c.max_data;
	}
	conn->remote[at].used = c.up != 0;
	if (!c.up)
		consumer_gone(conn, c.id);
	conn->t->n_events++;
	conn->events->consumer(conn->arg, conn, c.id, c.up != 0);
	return NULL;
}

static const char *on_region(struct vb_conn *conn, const void *body, size_t len)
{
	struct vb_ctrl_keyed_region r = {.direct_key = {0}};
	int rc;

	if (len != (conn->t->host->records ? sizeof(r) : sizeof(r.region)))
		return "sends a control message of an invalid length";
	memcpy(&r, body, len);
	rc = vb_on_region(conn, &r);
	if (rc == -ENOMEM) /* not an error of the peer */
		vb_conn_fail(conn, rc);
	return rc == -EPROTO ? "exports an invalid region" : NULL;
}

static const char *on_revoke(struct vb_conn *conn, const void *body, size_t len)
{
	struct vb_ctrl_handle h;

	(void)len;
	memcpy(&h, body, sizeof(h));
	return vb_on_revoke(conn, &h) ? "revokes a region that it did not export" : NULL;
}

static const char *on_released(struct vb_conn *conn, const void *body, size_t len)
{
	struct vb_ctrl_handle h;

	(void)len;
	memcpy(&h, body, sizeof(h));
	return vb_on_released(conn, &h) ? "releases a region that was not revoked" : NULL;
}

static const char *on_open(struct vb_conn *conn, const void *body, size_t len)
{
	struct vb_ctrl_open o;
	int rc;

	(void)len;
	memcpy(&o, body, sizeof(o));
	if (conn->end != VB_CONNECTS || o.listens_lane >= VB_MAX_LANES ||
	    !(o.kind == VB_MESSAGES ? o.connects_lane < VB_MAX_LANES
				    : o.kind == VB_DATA && o.connects_lane == VB_NO_LANE))
		return "requests an invalid queue pair";
	rc = vb_pipe_want(conn, o.kind, o.connects_lane, o.listens_lane);
	if (rc)
		vb_conn_fail(conn, rc);
	return NULL;
}

static const char *on_bye(struct vb_conn *conn, const void *body, size_t len)
{
	(void)body;
	(void)len;
	vb_conn_fail(conn, -ENOTCONN);
	return NULL;
}

static const char *on_start(struct vb_conn *conn, const void *body, size_t len)
{
	struct vb_ctrl_start start;

	(void)len;
	memcpy(&start, body, sizeof(start));
	return vb_records_on_start(conn, &start);
}

static const struct {
	size_t min, max;
	const char *(*on)(struct vb_conn *conn, const void *body, size_t len);
} kinds[] = {
	[VB_CTRL_USER] = {1, GANTRY_CTRL_MAX, on_user},
	[VB_CTRL_CONSUMER] = {sizeof(struct vb_ctrl_consumer), sizeof(struct vb_ctrl_consumer),
			      on_consumer},
	[VB_CTRL_REGION] = {sizeof(struct vb_ctrl_region), sizeof(struct vb_ctrl_keyed_region),
			    on_region},
	[VB_CTRL_REVOKE] = {sizeof(struct vb_ctrl_handle), sizeof(struct vb_ctrl_handle),
			    on_revoke},
	[VB_CTRL_RELEASED] = {sizeof(struct vb_ctrl_handle), sizeof(struct vb_ctrl_handle),
			      on_released},
	[VB_CTRL_OPEN] = {sizeof(struct vb_ctrl_open), sizeof(struct vb_ctrl_open), on_open},
	[VB_CTRL_BYE] = {0, 0, on_bye},
	[VB_CTRL_START] = {sizeof(struct vb_ctrl_start), sizeof(struct vb_ctrl_start), on_start},
};

const char *vb_control_take(struct vb_conn *conn, uint8_t kind, const void *body, size_t len)
{
	if (kind >= sizeof(kinds) / sizeof(kinds[0]) || !kinds[kind].on)
		return "sends a control message of an unknown kind";
	if (len < kinds[kind].min || len > kinds[kind].max)
		return "sends a control message of an invalid length";
	if (conn->freed && kind != VB_CTRL_START)
		return NULL;
	return kinds[kind].on(conn, body, len);
}

static const char *process_message(struct vb_conn *conn, const char *slot, uint32_t bytes)
{
	struct vb_ctrl head;

	if (bytes < sizeof(head))
		return "sends a control message without a header";
	memcpy(&head, slot, sizeof(head));
	if (bytes != sizeof(head) + head.length)
		return "sends a control message whose length does not match its header";
	vb_pipe_take_credit(conn->control, head.allowed, UINT32_MAX);
	if (!conn->t->host->records)
		return vb_control_take(conn, head.kind, slot + sizeof(head), head.length);
	if (head.kind != VB_CTRL_RECORD)
		return "sends a control message outside the record filter";
	return vb_records_receive(conn, slot + sizeof(head), head.length);
}

static void arrived(struct vb_conn *conn, uint32_t slot, uint32_t bytes)
{
	struct vb_pipe *pipe = conn->control;
	const char *why = NULL;

	pipe->received++;
	pipe->waiting++;
	if (slot >= pipe->slots || bytes > pipe->slot_bytes)
		why = "uses an invalid slot";
	else if (__atomic_load_n(&conn->lost, __ATOMIC_RELAXED) != -EPROTO)
		why = process_message(conn, pipe->recv_slots + (size_t)slot * pipe->slot_bytes,
				      bytes);
	if (why)
		vb_conn_broken(conn, why);
	vb_pipe_repost(pipe, &slot, 1, 1);
}

static void ended(void *arg, const struct vb_send *send, int status)
{
	struct vb_conn *conn = arg;

	(void)status;
	if (send->kind == VB_R_PROBE)
		conn->control->probing = 0;
}

static void complete(struct vb_conn *conn, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS) {
		vb_pipe_completion_failed(conn->control, wc);
		return;
	}
	conn->control->busy_ns = conn->t->host->now_ns(conn->t->host);
	if (wc->wr_id & VB_RECV)
		/* a control pipe carries no notes */
		arrived(conn, (uint32_t)wc->wr_id, wc->opcode == IBV_WC_RECV ? wc->byte_len : 0);
	else
		vb_qp_done(&conn->control->qp, wc->wr_id, 0, ended, conn);
}

void vb_control_poll(struct vb_conn *conn)
{
	struct vb_pipe *pipe = conn->control;
	struct ibv_wc wcs[VB_POLL];
	int n = VB_POLL, rounds = 0;

	while (n == VB_POLL && rounds++ < ROUNDS) {
		n = vb_cq_poll(&pipe->cq, wcs, VB_POLL);
		for (int i = 0; i < n; i++)
			complete(conn, &wcs[i]);
	}
	if (n < 0)
		vb_conn_fail(conn, -EIO);
	else if (n == VB_POLL)
		vb_transport_wake(conn->t); /* more completions are waiting */
	if (__atomic_load_n(&conn->lost, __ATOMIC_RELAXED) || !may_post(conn))
		return;
	flush(conn);
	/* with a record filter, START tells where the credit is written */
	if (conn->started || !conn->t->host->records)
		vb_pipe_send_credit(pipe, VB_CTRL_SLOTS, VB_CTRL_SLOTS, VB_CREDIT_IDLE);
}

void vb_control_rearm(struct vb_conn *conn)
{
	int rc = 0;

	vb_channel_drain(conn->control_channel);
	if (conn->control && conn->control->cq.cq)
		rc = vb_cq_arm(&conn->control->cq);
	if (rc)
		vb_conn_fail(conn, rc);
}
