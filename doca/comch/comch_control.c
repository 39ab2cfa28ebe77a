/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_control.c - control messages of a connection
 *
 * If the transport has no space, control messages wait here in order. Messages of the program wait
 * behind them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "comch/comch.h"

struct gd_ctrl_msg {
	struct gd_ctrl_msg *next;
	uint32_t len;
	struct gd_comch_head head; /* the data of the message follows */
};

static int send_bytes(struct doca_comch_connection *conn, const void *bytes, uint32_t len)
{
	return conn->link ? gd_transport_ops(conn->transport)->send_ctrl(conn->link, bytes, len)
			  : -ENOTCONN;
}

static struct gd_comch_head head_of(enum gd_comch_op op, uint32_t a, uint32_t b, uint32_t c)
{
	return (struct gd_comch_head){
		.op = (uint16_t)op,
		.version = op == GD_HELLO ? GD_COMCH_VERSION : 0,
		.a = a,
		.b = b,
		.c = c,
	};
}

int gd_conn_send_ctrl(struct doca_comch_connection *conn, enum gd_comch_op op, uint32_t a,
		      uint32_t b, uint32_t c)
{
	const struct gd_comch_head head = head_of(op, a, b, c);

	return conn->ctrl_queue ? -EAGAIN : send_bytes(conn, &head, sizeof(head));
}

static int append(struct gd_ctrl_msg **last, const void *bytes, uint32_t len)
{
	struct gd_ctrl_msg *msg = malloc(sizeof(*msg) + len);

	if (!msg)
		return -ENOMEM;
	msg->next = NULL;
	msg->len = len;
	memcpy(&msg->head, bytes, len);
	while (*last)
		last = &(*last)->next;
	*last = msg;
	return 0;
}

static int enqueue(struct doca_comch_connection *conn, const void *bytes, uint32_t len)
{
	const int rc = append(&conn->ctrl_queue, bytes, len);

	if (rc == 0)
		gd_end_wake(conn->end, GD_COMCH_RETRY_NS);
	return rc;
}

int gd_conn_queue_bytes(struct doca_comch_connection *conn, const void *bytes, uint32_t len)
{
	int rc = conn->ctrl_queue ? -EAGAIN : send_bytes(conn, bytes, len);

	return rc == -EAGAIN ? enqueue(conn, bytes, len) : rc;
}

int gd_conn_queue_ctrl(struct doca_comch_connection *conn, enum gd_comch_op op, uint32_t a,
		       uint32_t b, uint32_t c)
{
	const struct gd_comch_head head = head_of(op, a, b, c);

	return gd_conn_queue_bytes(conn, &head, sizeof(head));
}

bool gd_conn_flush_ctrl(struct doca_comch_connection *conn)
{
	struct gd_ctrl_msg *msg;

	while ((msg = conn->ctrl_queue)) {
		if (send_bytes(conn, &msg->head, msg->len) == -EAGAIN) {
			gd_end_wake(conn->end, GD_COMCH_RETRY_NS);
			return false;
		}
		conn->ctrl_queue = msg->next;
		free(msg);
	}
	return true;
}

int gd_conn_hold_consumer(struct doca_comch_connection *conn, uint32_t a, uint32_t b, uint32_t c)
{
	const struct gd_comch_head head = head_of(GD_CONSUMER, a, b, c);
	const int rc = append(&conn->held, &head, sizeof(head));

	if (rc == 0)
		gd_note_announce(conn);
	return rc;
}

/* If the transport has no space, the messages wait in their order. */
void gd_conn_announce(struct doca_comch_connection *conn)
{
	struct gd_ctrl_msg **last = &conn->ctrl_queue;

	if (!conn->held)
		return;
	while (*last)
		last = &(*last)->next;
	*last = conn->held;
	conn->held = NULL;
	gd_conn_flush_ctrl(conn);
}

static void discard_consumer(struct gd_ctrl_msg **p, uint32_t id)
{
	for (struct gd_ctrl_msg *msg; (msg = *p);) {
		if (msg->head.op != GD_CONSUMER || msg->head.b != id) {
			p = &msg->next;
			continue;
		}
		*p = msg->next;
		free(msg);
	}
}

void gd_conn_discard_consumer(struct doca_comch_connection *conn, uint32_t id)
{
	discard_consumer(&conn->held, id);
	discard_consumer(&conn->ctrl_queue, id);
}

static void discard_all(struct gd_ctrl_msg **queue)
{
	struct gd_ctrl_msg *msg;

	while ((msg = *queue)) {
		*queue = msg->next;
		free(msg);
	}
}

void gd_conn_discard_ctrl(struct doca_comch_connection *conn)
{
	discard_all(&conn->held);
	discard_all(&conn->ctrl_queue);
}
