/* SPDX-License-Identifier: BSD-3-Clause */
/* conn.c - conformance: listen, connect, control messages, the end of a connection. */
#include <unistd.h>

#include "conform/rig.h"

static void device_reports_its_limits(void)
{
	int fd = rig.ops->fd(rig.a.dev);

	RIG_HOLDS(rig.info.max_depth >= 1, "info.max_depth");
	RIG_HOLDS(rig.info.max_regions >= 1, "info.max_regions");
	RIG_HOLDS(rig_has(RIG_MAPPED) || rig_has(RIG_RMA),
		  "info.caps: a session needs GANTRY_CAP_MAPPED or GANTRY_CAP_RMA");
	RIG_HOLDS(memchr(rig.info.detail, 0, sizeof(rig.info.detail)),
		  "info.detail ends with a NUL byte");
	RIG_RC(0, rig.ops->progress(rig.a.dev),
	       "events of progress() of a device without connections");
	RIG_HOLDS(fd >= 0 || rig.ops->wake_ns(rig.a.dev) != 0,
		  "wake_ns() of a device whose fd() is -1: with 0 the host never calls progress()");
	rig_connect();
	RIG_HOLDS(fd == rig.ops->fd(rig.a.dev), "fd() is constant");
}

static void connect_reports_the_peer_to_both_ends(void)
{
	rig_connect();
	RIG_RC(1, rig.a.n_connected, "number of events `connected` of one connect");
	RIG_RC(1, rig.b.n_accept, "number of events `accept` of one connect");
	RIG_RC(0, rig.a.n_closed + rig.b.n_closed,
	       "number of events `closed` of an open connection");
	if (rig_has(RIG_NETWORK))
		return;
	RIG_NUM(getuid(), rig.a.peer.uid, "uid of the listener");
	RIG_NUM(getuid(), rig.b.peer.uid, "uid of the client");
	RIG_RC(getpid(), rig.b.peer.pid, "pid of a peer in this process");
}

/* Process and user of a peer on another machine are reported as unknown; its address is known. */
static void peer_on_another_machine_is_reported_by_its_address(void)
{
	const char *service = rig_service(0), *port = strrchr(service, ':');

	rig_need(RIG_NETWORK);
	rig_connect();
	for (int i = 0; i < 2; i++) {
		const struct gantry_peer *peer = i ? &rig.b.peer : &rig.a.peer;

		RIG_RC(-1, peer->pid, "pid of a peer on another machine");
		RIG_NUM(UINT32_MAX, peer->uid, "uid of a peer on another machine");
		RIG_HOLDS(memchr(peer->address, 0, sizeof(peer->address)) != NULL,
			  "peer.address ends with a NUL byte");
		RIG_HOLDS(strlen(peer->address) > 0, "peer.address of a peer on another machine");
	}
	if (port)
		RIG_SAME(service, rig.a.peer.address, (size_t)(port - service),
			 "address of the listener");
}

static void connect_without_a_listener_is_refused(void)
{
	rig_start_connect(rig_service(0));
	RIG_RC(0, rig.a.n_closed,
	       "number of events `closed` before progress(), or after the own disconnect"); /* only progress delivers events */
	rig_until(rig.a.n_closed, 1);
	RIG_RC(-ECONNREFUSED, rig.a.reason, "reason of `closed` of a connect without a listener");
	rig_settle();
	RIG_RC(1, rig.a.n_closed, "number of events `closed` of one connection");
	RIG_RC(0, rig.a.n_connected, "number of events `connected` of a connect that failed");
}

static void listener_may_refuse(void)
{
	rig.b.refuse = -EACCES;
	rig_listen(rig_service(0));
	rig_start_connect(rig_service(0));
	rig_until(rig.a.n_closed, 1);
	RIG_RC(-EACCES, rig.a.reason, "reason of `closed` after `accept` rejected the connection");
	RIG_RC(1, rig.b.n_accept, "number of events `accept` of one connect");
	rig_settle();
	RIG_RC(0, rig.a.n_connected, "number of events `connected` of a connect that failed");
	RIG_RC(0, rig.b.n_closed, "number of events `closed` at the listening end");
}

/*
 * Attempt number n closes the listener after n calls of progress: the client gets ECONNREFUSED, not
 * EACCES. The test ends with the first attempt in which the listener accepts before it is closed.
 */
static void listener_ends_before_it_accepts(void)
{
	for (unsigned steps = 0; steps < 50; steps++) {
		const int n_closed = rig.a.n_closed;

		rig_listen(rig_service(0));
		rig_start_connect(rig_service(0));
		for (unsigned i = 0; i < steps; i++)
			rig.ops->progress(i % 2 ? rig.a.dev : rig.b.dev);
		if (rig.b.n_accept)
			return;
		rig_unlisten();
		rig_until(rig.a.n_closed, n_closed + 1);
		RIG_RC(-ECONNREFUSED, rig.a.reason,
		       "reason of `closed` of a connect without a listener");
		rig_disconnect(&rig.a);
	}
}

static void name_is_served_once(void)
{
	void *second = NULL;
	struct gantry_conn_events none = {0};

	rig_listen(rig_service(0));
	RIG_RC(-EADDRINUSE, rig.ops->listen(rig.b.dev, rig_service(0), &none, NULL, &second),
	       "listen on a service that has a listener");
	if (!rig_has(RIG_NETWORK)) /* over a network, each end listens at its own address */
		RIG_RC(-EADDRINUSE,
		       rig.ops->listen(rig.a.dev, rig_service(0), &none, NULL, &second),
		       "listen on a service that has a listener");
	RIG_HOLDS(!second, "listener of a listen that failed");
	rig_unlisten();
	rig_listen(rig_service(0)); /* the service is free again */
	rig_start_connect(rig_service(0));
	rig_until(rig.a.n_connected, 1);
}

static void services_of_all_kinds(void)
{
	for (unsigned i = 0; rig_service(i); i++) {
		rig_listen(rig_service(i));
		rig_start_connect(rig_service(i));
		rig_until(rig.a.n_connected, (int)i + 1);
		rig_disconnect(&rig.a);
		rig_disconnect(&rig.b);
		rig_unlisten();
	}
}

static void bad_names_are_refused(void)
{
	struct gantry_conn_events none = {0};
	char too_long[300];
	void *p;

	memset(too_long, 'x', sizeof(too_long) - 1);
	too_long[sizeof(too_long) - 1] = 0;
	RIG_HOLDS(rig.ops->listen(rig.b.dev, "", &none, NULL, &p) < 0,
		  "listen on an empty service");
	RIG_HOLDS(rig.ops->listen(rig.b.dev, too_long, &none, NULL, &p) < 0,
		  "listen on a service of 299 bytes");
	RIG_HOLDS(rig.ops->connect(rig.a.dev, too_long, &none, NULL, &p) < 0,
		  "connect to a service of 299 bytes");
	for (const char *const *name = rig_driver.no_services; name && *name; name++) {
		RIG_HOLDS(rig.ops->listen(rig.b.dev, *name, &none, NULL, &p) < 0,
			  "listen on an invalid service");
		RIG_HOLDS(rig.ops->connect(rig.a.dev, *name, &none, NULL, &p) < 0,
			  "connect to an invalid service");
	}
}

static void connections_outlive_their_listener(void)
{
	rig_connect();
	rig_unlisten();
	RIG_OK(rig_ctrl(&rig.a, "\0\0\0\0", 4));
	rig_until(rig.b.n_msgs, 1);
	RIG_RC(0, rig.b.n_closed, "number of events `closed` at the listening end");
}

static void control_messages_of_all_sizes(void)
{
	uint8_t msg[GANTRY_CTRL_MAX];

	rig_connect();
	rig_fill(msg, sizeof(msg), 1);
	for (size_t len = 1, n = 1; len <= sizeof(msg);
	     len = len < 2048 ? len * 3 : len + 1024, n++) {
		size_t use = len > sizeof(msg) ? sizeof(msg) : len;

		RIG_OK(rig_ctrl(&rig.a, msg, use));
		rig_until(rig.b.n_msgs, (int)n);
		RIG_NUM(use, rig.b.msg_len, "length of a control message");
		RIG_SAME(msg, rig.b.msg, use, "control message");
	}
	RIG_OK(rig_ctrl(&rig.b, msg, sizeof(msg)));
	rig_until(rig.a.n_msgs, 1);
	RIG_NUM(sizeof(msg), rig.a.msg_len, "length of a control message");
}

static void control_messages_of_wrong_size(void)
{
	uint8_t msg[GANTRY_CTRL_MAX + 1] = {0};

	rig_connect();
	RIG_HOLDS(rig.ops->send_ctrl(rig.a.conn, msg, sizeof(msg)) < 0,
		  "send_ctrl of GANTRY_CTRL_MAX + 1 bytes");
	RIG_HOLDS(rig.ops->send_ctrl(rig.a.conn, msg, 0) < 0, "send_ctrl of 0 bytes");
	rig_settle();
	RIG_RC(0, rig.b.n_msgs + rig.b.n_closed,
	       "number of events at the peer after messages of invalid size");
}

/*
 * While the peer does not read, send_ctrl() returns -EAGAIN when the queue is full. The peer later
 * gets all messages that send_ctrl() accepted, in order.
 */
static void control_queue_is_bounded_and_in_order(void)
{
	uint8_t msg[GANTRY_CTRL_MAX] = {0};
	uint32_t sent = 0;
	int rc, full = 0;

	rig_connect();
	while (sent < 20000 && full < 8) {
		memcpy(msg, &sent, sizeof(sent));
		rc = rig.ops->send_ctrl(rig.a.conn, msg, sizeof(msg));
		if (rc == -EAGAIN) {
			full++;
			rig_until(rig.b.n_msgs, (int)sent - 4);
			rc = rig_ctrl(&rig.a, msg, sizeof(msg)); /* the queue has space again */
		}
		RIG_RC(0, rc, "send_ctrl of a message of GANTRY_CTRL_MAX bytes");
		sent++;
	}
	RIG_RC(8, full,
	       "number of times that send_ctrl returned -EAGAIN: the queue of messages must have a limit");
	rig_until(rig.b.n_msgs, (int)sent);
	RIG_RC(0, rig.b.out_of_order, "number of control messages that arrived out of order");
}

static void disconnect_is_reported_to_the_peer(void)
{
	rig_connect();
	rig_disconnect(&rig.a);
	rig_until(rig.b.n_closed, 1);
	RIG_RC(-ENOTCONN, rig.b.reason, "reason of `closed` after the peer disconnected");
	rig_settle();
	RIG_RC(1, rig.b.n_closed, "number of events `closed` of one connection");
	RIG_RC(0, rig.a.n_closed,
	       "number of events `closed` before progress(), or after the own disconnect"); /* the end that disconnects gets no `closed` */
	RIG_RC(-ENOTCONN, rig.ops->send_ctrl(rig.b.conn, "x", 1),
	       "send_ctrl on a connection that has ended");
}

/* A message sent just before disconnect arrives, also if its sender has unread messages. */
static void message_sent_before_disconnect_arrives(void)
{
	rig_connect();
	RIG_OK(rig_ctrl(&rig.b, "unread", 6));
	RIG_OK(rig_ctrl(&rig.a, "\0\0\0\0bye", 7));
	rig_disconnect(&rig.a);
	rig_until(rig.b.n_closed, 1);
	RIG_RC(1, rig.b.n_msgs, "number of messages that were sent before disconnect");
	RIG_NUM(7, rig.b.msg_len, "length of the message that was sent before disconnect");
}

/* A listener sends a message inside `accept` and disconnects: the message still arrives. */
static void message_of_a_listener_that_disconnects_arrives(void)
{
	rig.b.greeting = "busy: as many as there can be";
	rig_listen(rig_service(0));
	rig_start_connect(rig_service(0));
	rig_until(rig.b.n_accept, 1);
	rig_disconnect(&rig.b);
	rig_until(rig.a.n_closed, 1);
	RIG_RC(-ENOTCONN, rig.a.reason, "reason of `closed` after the peer disconnected");
	RIG_RC(1, rig.a.n_connected, "number of events `connected` of one connect");
	RIG_RC(1, rig.a.n_msgs, "number of messages that `accept` sent before disconnect");
	RIG_SAME(rig.b.greeting, rig.a.msg, strlen(rig.b.greeting) + 1,
		 "message that `accept` sent");
}

static void disconnect_inside_the_callback(void)
{
	rig_connect();
	rig.b.disconnect_on_close = 1;
	rig_disconnect(&rig.a);
	rig_until(rig.b.n_closed, 1);
	rig_settle();
	RIG_HOLDS(!rig.b.conn, "disconnect inside `closed`");
	RIG_RC(1, rig.b.n_closed, "number of events `closed` of one connection");
}

static void disconnect_before_it_is_connected(void)
{
	rig_listen(rig_service(0));
	rig_start_connect(rig_service(0));
	rig_disconnect(&rig.a);
	rig_settle();
	RIG_RC(0, rig.a.n_connected + rig.a.n_closed, "number of events after disconnect");
	rig_disconnect(&rig.b);
	rig_start_connect(rig_service(0));
	rig_until(rig.a.n_connected, 1);
}

static void many_connections(void)
{
	for (int i = 0; i < 8; i++)
		rig_connect();
	for (int i = 0; i < 8; i++) {
		rig.a.conn = rig.a.conns[i].conn;
		RIG_OK(rig_ctrl(&rig.a, "hello", 5));
	}
	rig_until(rig.b.n_msgs, 8);
}

static void connect_and_leave_many_times(void)
{
	rig_listen(rig_service(0));
	for (int i = 0; i < (int)rig_rounds(300); i++) {
		rig_start_connect(rig_service(0));
		rig_until(rig.a.n_connected, i + 1);
		rig_disconnect(i & 1 ? &rig.a : &rig.b);
		rig_until(*(i & 1 ? &rig.b.n_closed : &rig.a.n_closed), i / 2 + 1);
		rig_disconnect(i & 1 ? &rig.b : &rig.a);
	}
}

void conn_cases(void)
{
	RIG_CASE(device_reports_its_limits);
	RIG_CASE(connect_reports_the_peer_to_both_ends);
	RIG_CASE(peer_on_another_machine_is_reported_by_its_address);
	RIG_CASE(connect_without_a_listener_is_refused);
	RIG_CASE(listener_may_refuse);
	RIG_CASE(listener_ends_before_it_accepts);
	RIG_CASE(name_is_served_once);
	RIG_CASE(services_of_all_kinds);
	RIG_CASE(bad_names_are_refused);
	RIG_CASE(connections_outlive_their_listener);
	RIG_CASE(control_messages_of_all_sizes);
	RIG_CASE(control_messages_of_wrong_size);
	RIG_CASE(control_queue_is_bounded_and_in_order);
	RIG_CASE(disconnect_is_reported_to_the_peer);
	RIG_CASE(message_sent_before_disconnect_arrives);
	RIG_CASE(message_of_a_listener_that_disconnects_arrives);
	RIG_CASE(disconnect_inside_the_callback);
	RIG_CASE(disconnect_before_it_is_connected);
	RIG_CASE(many_connections);
	RIG_CASE(connect_and_leave_many_times);
}
