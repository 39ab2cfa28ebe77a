/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vb_records.c - the record filter of the host, below all control messages of a connection. A
 * message in the filter is a byte, enum vb_ctrl_kind, and the body. Thread: control.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "vb_hello.h"

#define ALERT_NS 1000000000ull /* time limit of sending an alert */

static const struct gantry_records_ops *ops_of(const struct vb_conn *conn)
{
	return conn->t->host->records;
}

/*
 * Send what the filter has for the peer. An error ends the connection, since the filter does not
 * repeat its output.
 */
static int drain(struct vb_conn *conn)
{
	uint8_t bytes[GANTRY_CTRL_MAX];
	size_t n;
	int rc = 0;

	while (rc == 0 && (n = ops_of(conn)->output(conn->records, bytes, sizeof(bytes))) > 0)
		rc = vb_control_put(conn, VB_CTRL_RECORD, bytes, n);
	if (rc)
		vb_conn_fail(conn, rc);
	return rc;
}

/* The filter has failed. A failed handshake has an alert, which tells the peer the reason. */
static void broken(struct vb_conn *conn)
{
	const char *text = NULL;
	char why[400];

	drain(conn);
	if (!conn->records_open)
		conn->alert_ns = conn->t->host->now_ns(conn->t->host) + ALERT_NS;
	ops_of(conn)->state(conn->records, &text);
	snprintf(why, sizeof(why), "fails the record filter: %s", text ? text : "no reason");
	vb_conn_broken(conn, why);
}

static int send_start(struct vb_conn *conn)
{
	const struct vb_pipe *pipe = conn->control;
	const struct vb_ctrl_start start = {
		.session = conn->session,
		.credit_addr = (uintptr_t)pipe->credit,
		.credit_key = pipe->credit_mr->rkey,
		.qpn = vb_hello_qpn(conn->t, pipe->qp.qp->qp_num),
	};

	return vb_records_send(conn, VB_CTRL_START, &start, sizeof(start));
}

/* Returns true if the filter is open; handles the end of the handshake. */
static bool is_open(struct vb_conn *conn)
{
	int rc;

	if (conn->records_open ||
	    ops_of(conn)->state(conn->records, &(const char *){NULL}) != GANTRY_RECORDS_OPEN)
		return conn->records_open;
	conn->records_open = 1;
	rc = send_start(conn);
	if (rc)
		vb_conn_fail(conn, rc);
	else
		vb_control_send_held(conn);
	return !rc;
}

void vb_records_start(struct vb_conn *conn)
{
	int rc = ops_of(conn)->open(conn->t->host, conn, conn->end == VB_LISTENS, &conn->peer,
				    &conn->records);

	conn->records_deadline_ns = conn->t->host->now_ns(conn->t->host) +
				    (uint64_t)conn->t->conf->connect_timeout_ns;
	if (rc)
		vb_conn_fail(conn, rc);
	else
		drain(conn);
}

void vb_records_overdue(struct vb_conn *conn, uint64_t now_ns)
{
	if (!conn->records_deadline_ns || now_ns < conn->records_deadline_ns)
		return;
	conn->records_deadline_ns = 0;
	vb_conn_fail(conn, -ETIMEDOUT);
}

int vb_records_send(struct vb_conn *conn, enum vb_ctrl_kind kind, const void *body, size_t len)
{
	uint8_t msg[1 + GANTRY_CTRL_MAX] = {(uint8_t)kind};
	int rc;

	if (len)
		memcpy(msg + 1, body, len);
	rc = ops_of(conn)->seal(conn->records, msg, 1 + len);
	return rc ? rc : drain(conn);
}

const char *vb_records_receive(struct vb_conn *conn, const void *bytes, size_t len)
{
	uint8_t msg[GANTRY_RECORDS_MAX];
	const char *why = NULL;
	size_t n;

	if (!conn->records)
		return "sends a control message before the record filter";
	if (ops_of(conn)->receive(conn->records, bytes, len)) {
		broken(conn);
		return NULL;
	}
	if (drain(conn) || !is_open(conn))
		return NULL;
	while (!why && (n = ops_of(conn)->message(conn->records, msg, sizeof(msg))) > 0)
		why = conn->started || msg[0] == VB_CTRL_START
			      ? vb_control_take(conn, msg[0], msg + 1, n - 1)
			      : "sends a control message before START";
	return why;
}

const char *vb_records_on_start(struct vb_conn *conn, const struct vb_ctrl_start *start)
{
	if (!conn->records || conn->started)
		return "sends a second START, or one without a record filter";
	if (start->session != conn->session || start->qpn != vb_hello_qpn(conn->t, conn->peer_qpn))
		return "belongs to another connection than its control queue pair";
	conn->started = 1;
	conn->records_deadline_ns = 0;
	conn->control->peer_credit_addr = start->credit_addr;
	conn->control->peer_credit_key = start->credit_key;
	vb_conn_ready(conn);
	return NULL;
}
