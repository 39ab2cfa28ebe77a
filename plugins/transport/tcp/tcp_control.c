/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_control.c - messages of the control socket: those of the user, and those of the protocol.
 * Thread: control.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "tcp.h"

#define USER_WAITS (32 * TCP_CTRL_BYTES) /* limit of queued bytes for messages of the user */
#define ALL_WAIT (4u << 20) /* limit of all queued bytes; beyond it the connection ends */
#define READS_PER_TURN 64

/* -- sending -- */

/* Make room for len bytes. Returns 0 or -ENOMEM. */
static int reserve(struct tcp_buffer *b, size_t len)
{
	size_t room = b->room ? b->room : 8192;
	uint8_t *bytes;

	if (b->from) {
		memmove(b->bytes, b->bytes + b->from, b->to - b->from);
		b->to -= b->from;
		b->from = 0;
	}
	while (room < b->to + len)
		room *= 2;
	if (room == b->room)
		return 0;
	bytes = realloc(b->bytes, room);
	if (!bytes)
		return -ENOMEM;
	b->bytes = bytes;
	b->room = room;
	return 0;
}

static int append(struct tcp_buffer *b, const void *bytes, size_t len)
{
	if (b->room - b->to < len && reserve(b, len))
		return -ENOMEM;
	if (len)
		memcpy(b->bytes + b->to, bytes, len);
	b->to += len;
	return 0;
}

int tcp_control_bytes(struct tcp_conn *conn, const void *bytes, size_t len)
{
	return append(&conn->out, bytes, len);
}

int tcp_buffer_put(struct tcp_buffer *b, enum tcp_ctrl_kind kind, const void *body, size_t len)
{
	const struct tcp_ctrl head = {.kind = (uint8_t)kind, .length = (uint16_t)len};

	if (b->room - b->to < sizeof(head) + len && reserve(b, sizeof(head) + len))
		return -ENOMEM;
	append(b, &head, sizeof(head));
	return append(b, body, len);
}

void tcp_control_send(struct tcp_conn *conn)
{
	struct tcp_buffer *b = &conn->out;
	ssize_t n = 1;

	if (conn->fd < 0 || conn->state < TCP_C_GREETING || conn->state == TCP_C_OVER)
		return;
	while (b->from != b->to && n > 0) {
		n = send(conn->fd, b->bytes + b->from, b->to - b->from, MSG_NOSIGNAL);
		if (n > 0)
			b->from += (size_t)n;
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		/* read first what the peer has sent: a disconnect is no error */
		b->from = b->to = 0;
	if (b->from == b->to)
		b->from = b->to = 0;
	tcp_rewatch(conn->dev, conn->fd, EPOLLIN | (b->to ? (uint32_t)EPOLLOUT : 0), &conn->watch);
}

int tcp_control_put(struct tcp_conn *conn, enum tcp_ctrl_kind kind, const void *body, size_t len)
{
	struct tcp_buffer *b = &conn->out;
	bool empty = b->from == b->to;
	int rc;

	if (conn->state == TCP_C_OVER || tcp_lost(conn))
		return -ENOTCONN;
	if (b->to - b->from > ALL_WAIT) {
		tcp_conn_broken(conn, "does not read its control messages");
		return -ENOTCONN;
	}
	/* what `accept` sends comes before the start of the filter */
	if (conn->dev->host->records && kind != TCP_CTRL_WELCOME)
		return tcp_records_send(conn, kind, body, len);
	rc = tcp_buffer_put(b, kind, body, len);
	if (!rc && empty)
		tcp_control_send(conn);
	return rc;
}

int tcp_send_ctrl(void *arg, const void *msg, size_t len)
{
	struct tcp_conn *conn = arg;

	if (len == 0 || len > GANTRY_CTRL_MAX)
		return -EINVAL;
	if (!tcp_usable(conn->dev))
		return -EPERM;
	if (!tcp_conn_usable(conn))
		return -ENOTCONN;
	if (conn->out.to - conn->out.from > USER_WAITS)
		return -EAGAIN;
	return tcp_control_put(conn, TCP_CTRL_USER, msg, len);
}

/* -- receiving: each function returns NULL, or what the peer did wrong -- */

static const char *on_welcome(struct tcp_conn *conn, const void *body, size_t len)
{
	if (len != sizeof(struct tcp_welcome) || conn->end != TCP_CONNECTS ||
	    conn->state != TCP_C_GREETING)
		return "sends an unexpected welcome";
	memcpy(conn->secret, body, sizeof(conn->secret));
	tcp_conn_up(conn);
	return NULL;
}

static const char *on_refused(struct tcp_conn *conn, const void *body, size_t len)
{
	struct tcp_refused refused;
	int reason;
	char *c;

	if (len != sizeof(refused) || conn->state != TCP_C_GREETING)
		return "sends an unexpected refusal";
	memcpy(&refused, body, sizeof(refused));
	memcpy(conn->refusal, refused.text, sizeof(conn->refusal));
	conn->refusal[sizeof(conn->refusal) - 1] = '\0';
	for (c = conn->refusal; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	/* a peer without memory may have some later */
	reason = refused.reason == EBUSY || refused.reason == ENOMEM ? -EBUSY
		 : refused.reason == EACCES                          ? -EACCES
								     : -EPROTO;
	if (reason == -EPROTO) /* the user logs the other reasons */
		gantry_log_warn(conn->dev->host, "no connection with %s: %s", conn->peer.address,
				conn->refusal);
	tcp_conn_fail(conn, reason);
	return NULL;
}

static const char *on_user(struct tcp_conn *conn, const void *body, size_t len)
{
	if (len == 0)
		return "sends an empty message";
	conn->dev->n_events++;
	conn->events->message(conn->arg, conn, body, len);
	return NULL;
}

static const char *on_consumer(struct tcp_conn *conn, const void *body, size_t len)
{
	struct tcp_ctrl_consumer c;

	if (len != sizeof(c))
		return "sends a malformed message";
	memcpy(&c, body, sizeof(c));
	if (c.id == 0 || c.lane >= TCP_LANES || c.up > 1)
		return "announces an invalid consumer";
	tcp_on_consumer(conn, &c);
	return NULL;
}

static const char *on_region(struct tcp_conn *conn, const void *body, size_t len)
{
	struct tcp_ctrl_region region;

	if (len != sizeof(region))
		return "sends a malformed message";
	memcpy(&region, body, sizeof(region));
	return tcp_on_region(conn, &region) ? "announces an invalid region" : NULL;
}

static const char *on_name(struct tcp_conn *conn, const void *body, size_t len,
			   int (*take)(struct tcp_conn *conn, const struct tcp_name *name))
{
	struct tcp_name name;

	if (len != sizeof(name))
		return "sends a malformed message";
	memcpy(&name, body, sizeof(name));
	return take(conn, &name) ? "revokes or releases a region that does not exist" : NULL;
}

static const char *on_revoke(struct tcp_conn *conn, const void *body, size_t len)
{
	return on_name(conn, body, len, tcp_on_revoke);
}

static const char *on_released(struct tcp_conn *conn, const void *body, size_t len)
{
	return on_name(conn, body, len, tcp_on_released);
}

static const char *on_link(struct tcp_conn *conn, const void *body, size_t len)
{
	struct tcp_ctrl_link wanted;
	struct tcp_link *link;
	struct tcp_lane *lane;
	int rc;

	if (len != sizeof(wanted) || conn->end != TCP_CONNECTS)
		return "sends a malformed message";
	memcpy(&wanted, body, sizeof(wanted));
	if (wanted.connects_lane >= TCP_LANES || wanted.listens_lane >= TCP_LANES)
		return "asks for an invalid link";
	rc = tcp_lane_get(conn, wanted.connects_lane, &lane);
	if (!rc)
		rc = tcp_link_want(lane, wanted.listens_lane, &link);
	if (rc)
		tcp_conn_fail(conn, rc);
	return NULL;
}

static const char *on_bye(struct tcp_conn *conn, const void *body, size_t len)
{
	(void)body;
	(void)len;
	tcp_conn_fail(conn, -ENOTCONN);
	return NULL;
}

static const struct {
	const char *(*take)(struct tcp_conn *conn, const void *body, size_t len);
	bool greets; /* valid before the connection is up */
} messages[] = {
	[TCP_CTRL_WELCOME] = {on_welcome, true},    [TCP_CTRL_REFUSED] = {on_refused, true},
	[TCP_CTRL_USER] = {on_user, false},         [TCP_CTRL_CONSUMER] = {on_consumer, false},
	[TCP_CTRL_REGION] = {on_region, false},     [TCP_CTRL_REVOKE] = {on_revoke, false},
	[TCP_CTRL_RELEASED] = {on_released, false}, [TCP_CTRL_LINK] = {on_link, false},
	[TCP_CTRL_BYE] = {on_bye, false},
};

const char *tcp_control_take(struct tcp_conn *conn, uint8_t kind, const void *body, size_t len)
{
	if (kind >= sizeof(messages) / sizeof(messages[0]) || !messages[kind].take ||
	    (!messages[kind].greets && conn->state != TCP_C_UP) || len > GANTRY_CTRL_MAX)
		return "sends an unknown message";
	return messages[kind].take(conn, body, len);
}

/*
 * Returns true if a disconnected connection waits only for the end of its peer. Before, it does the
 * handshake of its filter, for messages that were sent inside `accept`.
 */
static bool only_waits(const struct tcp_conn *conn)
{
	return conn->freed && (!conn->records || conn->records_open);
}

/* Handle the complete messages of the buffer. */
static void take_all(struct tcp_conn *conn)
{
	uint32_t from = 0;

	while (!tcp_lost(conn) && !conn->freed && !conn->records &&
	       conn->n_in - from >= sizeof(struct tcp_ctrl)) {
		struct tcp_ctrl head;
		const char *why;

		memcpy(&head, conn->in + from, sizeof(head));
		if (head.length > GANTRY_CTRL_MAX) {
			tcp_conn_broken(conn, "sends a message that is too long");
			return;
		}
		if (conn->n_in - from < sizeof(head) + head.length)
			break;
		from += sizeof(head);
		why = tcp_control_take(conn, head.kind, conn->in + from, head.length);
		from += head.length;
		if (why)
			tcp_conn_broken(conn, why);
	}
	if (conn->records && !tcp_lost(conn) && !only_waits(conn)) {
		const char *why = tcp_records_receive(conn, conn->in + from, conn->n_in - from);

		from = conn->n_in;
		if (why)
			tcp_conn_broken(conn, why);
	}
	memmove(conn->in, conn->in + from, conn->n_in - from);
	conn->n_in -= from;
}

/* The peer has sent its last byte, or its socket has failed. */
static void ended(struct tcp_conn *conn, int error)
{
	conn->ended = true;
	if (conn->state == TCP_C_GREETING)
		tcp_conn_fail(conn, error == ETIMEDOUT ? -ETIMEDOUT : -ECONNREFUSED);
	else
		tcp_conn_fail(conn, error == ETIMEDOUT ? -ETIMEDOUT : -ENOTCONN);
}

void tcp_control_receive(struct tcp_conn *conn)
{
	for (int i = 0; i < READS_PER_TURN && conn->state != TCP_C_OVER && !conn->ended; i++) {
		ssize_t n = recv(conn->fd, conn->in + conn->n_in, sizeof(conn->in) - conn->n_in, 0);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			ended(conn, n < 0 ? errno : 0);
			return;
		}
		conn->n_in += (uint32_t)n;
		if (only_waits(conn))
			conn->n_in = 0;
		else
			take_all(conn);
		if (tcp_lost(conn) && !conn->freed)
			return;
	}
}
