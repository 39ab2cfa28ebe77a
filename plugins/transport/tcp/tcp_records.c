/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_records.c - the record filter of the host, below all control messages of a connection. After
 * the hello and the welcome, the control socket carries only bytes of the filter. A message in the
 * filter is a byte, enum tcp_ctrl_kind, and the body. Links are
 * streams with secrets of the filter (tcp_stream.c). Thread: control.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tcp.h"

static const struct gantry_records_ops *ops_of(const struct tcp_conn *conn)
{
	return conn->dev->host->records;
}

/*
 * Send what the filter has for the peer. An error ends the connection, since the filter does not
 * repeat its output.
 */
static int drain(struct tcp_conn *conn)
{
	uint8_t bytes[GANTRY_CTRL_MAX];
	size_t n;
	int rc = 0;

	while (rc == 0 && (n = ops_of(conn)->output(conn->records, bytes, sizeof(bytes))) > 0)
		rc = tcp_control_bytes(conn, bytes, n);
	if (rc)
		tcp_conn_fail(conn, rc);
	else
		tcp_control_send(conn);
	return rc;
}

static void broken(struct tcp_conn *conn)
{
	const char *text = NULL;
	char why[400];

	drain(conn); /* an alert */
	ops_of(conn)->state(conn->records, &text);
	snprintf(why, sizeof(why), "fails the record filter: %s", text ? text : "no reason");
	tcp_conn_broken(conn, why);
}

static int seal(struct tcp_conn *conn, uint8_t kind, const void *body, size_t len)
{
	uint8_t msg[1 + GANTRY_CTRL_MAX] = {kind};
	int rc;

	if (len)
		memcpy(msg + 1, body, len);
	rc = ops_of(conn)->seal(conn->records, msg, 1 + len);
	return rc ? rc : drain(conn);
}

/* Send the messages that have waited for the end of the handshake. */
static void send_held(struct tcp_conn *conn)
{
	struct tcp_buffer *b = &conn->held;
	int rc = 0;

	while (b->from != b->to && rc == 0) {
		struct tcp_ctrl head;

		memcpy(&head, b->bytes + b->from, sizeof(head));
		rc = seal(conn, head.kind, b->bytes + b->from + sizeof(head), head.length);
		b->from += sizeof(head) + head.length;
	}
	if (rc)
		tcp_conn_fail(conn, rc);
}

/* Returns true if the filter is open; handles the end of the handshake. */
static bool is_open(struct tcp_conn *conn)
{
	const char *text;

	if (conn->records_open || ops_of(conn)->state(conn->records, &text) != GANTRY_RECORDS_OPEN)
		return conn->records_open;
	conn->records_open = true;
	if (!conn->freed) /* else it is the limit of leaving */
		conn->deadline_ns = 0;
	tcp_conn_ready(conn);
	send_held(conn);
	return true;
}

void tcp_records_start(struct tcp_conn *conn)
{
	int rc = ops_of(conn)->open(conn->dev->host, conn, conn->end == TCP_LISTENS, &conn->peer,
				    &conn->records);

	if (!conn->freed)
		conn->deadline_ns = tcp_now(conn->dev) + conn->dev->conf->connect_timeout_ns;
	if (rc)
		tcp_conn_fail(conn, rc);
	else
		drain(conn);
}

int tcp_records_send(struct tcp_conn *conn, enum tcp_ctrl_kind kind, const void *body, size_t len)
{
	if (conn->records_open)
		return seal(conn, (uint8_t)kind, body, len);
	return tcp_buffer_put(&conn->held, kind, body, len);
}

const char *tcp_records_receive(struct tcp_conn *conn, const void *bytes, size_t len)
{
	uint8_t msg[GANTRY_RECORDS_MAX];
	const char *why = NULL;
	size_t n;

	if (ops_of(conn)->receive(conn->records, bytes, len)) {
		broken(conn);
		return NULL;
	}
	if (drain(conn) || !is_open(conn))
		return NULL;
	while (!why && !tcp_lost(conn) && !conn->freed &&
	       (n = ops_of(conn)->message(conn->records, msg, sizeof(msg))) > 0)
		why = tcp_control_take(conn, msg[0], msg + 1, n - 1);
	return why;
}

int tcp_link_secret(const struct tcp_conn *conn, uint32_t connects_lane, uint32_t listens_lane,
		    uint8_t secret[TCP_SECRET])
{
	char label[64];

	if (!conn->records_open) {
		memcpy(secret, conn->secret, TCP_SECRET);
		return 0;
	}
	snprintf(label, sizeof(label), "gantry tcp link %u %u", connects_lane, listens_lane);
	return ops_of(conn)->export_secret(conn->records, label, NULL, 0, secret, TCP_SECRET);
}

int tcp_link_stream_secret(const struct tcp_conn *conn, const struct tcp_hello *hello,
			   uint8_t secret[TCP_STREAM_SECRET])
{
	return ops_of(conn)->export_secret(conn->records, "gantry tcp stream", hello,
					   sizeof(*hello), secret, TCP_STREAM_SECRET);
}
