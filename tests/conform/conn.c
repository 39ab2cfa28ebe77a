/* SPDX-License-Identifier: BSD-3-Clause */
/* conn.c - conformance: listen, connect, control messages, the end of a connection. */
#include <unistd.h>

#include "conform/rig.h"

static void device_reports_its_limits(void)
{
	TEST_ASSERT_TRUE(rig.info.max_depth >= 64);
	TEST_ASSERT_TRUE(rig.info.max_inline >= GANTRY_IMM_MAX);
	TEST_ASSERT_TRUE(rig.info.max_regions >= 1);
	TEST_ASSERT_TRUE(strlen(rig.info.detail) > 0);
	TEST_ASSERT_TRUE(rig.ops->fd(rig.a.dev) >= 0);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->progress(rig.a.dev));
}

static void connect_reports_the_peer_to_both_ends(void)
{
	rig_connect();
	TEST_ASSERT_EQUAL_INT(1, rig.a.n_connected);
	TEST_ASSERT_EQUAL_INT(1, rig.b.n_accept);
	TEST_ASSERT_EQUAL_INT(0, rig.a.n_closed + rig.b.n_closed);
	if (rig_driver.remote)
		return;
	TEST_ASSERT_EQUAL_UINT(getuid(), rig.a.peer.uid);
	TEST_ASSERT_EQUAL_UINT(getuid(), rig.b.peer.uid);
	TEST_ASSERT_EQUAL_INT(getpid(), rig.b.peer.pid);
}

/* Process and user of a peer on another machine are reported as unknown; its address is known. */
static void peer_on_another_machine_is_reported_by_its_address(void)
{
	const char *service = rig_service(0), *port = strrchr(service, ':');

	if (!rig_driver.remote)
		TEST_IGNORE_MESSAGE("peers are on this machine");
	rig_connect();
	for (int i = 0; i < 2; i++) {
		const struct gantry_peer *peer = i ? &rig.b.peer : &rig.a.peer;

		TEST_ASSERT_EQUAL_INT(-1, peer->pid);
		TEST_ASSERT_EQUAL_UINT(UINT32_MAX, peer->uid);
		TEST_ASSERT_TRUE(memchr(peer->address, 0, sizeof(peer->address)) != NULL);
		TEST_ASSERT_TRUE(strlen(peer->address) > 0);
	}
	TEST_ASSERT_NOT_NULL(port);
	TEST_ASSERT_EQUAL_MEMORY(service, rig.a.peer.address, (size_t)(port - service));
}

static void connect_without_a_listener_is_refused(void)
{
	rig_start_connect(rig_driver.unserved ? rig_driver.unserved : "nobody");
	TEST_ASSERT_EQUAL_INT(0, rig.a.n_closed); /* only progress delivers events */
	rig_until(rig.a.n_closed, 1);
	TEST_ASSERT_EQUAL_INT(-ECONNREFUSED, rig.a.reason);
	rig_settle();
	TEST_ASSERT_EQUAL_INT(1, rig.a.n_closed);
	TEST_ASSERT_EQUAL_INT(0, rig.a.n_connected);
}

static void listener_may_refuse(void)
{
	rig.b.refuse = -EACCES;
	rig_listen(rig_service(0));
	rig_start_connect(rig_service(0));
	rig_until(rig.a.n_closed, 1);
	TEST_ASSERT_EQUAL_INT(-EACCES, rig.a.reason);
	TEST_ASSERT_EQUAL_INT(1, rig.b.n_accept);
	rig_settle();
	TEST_ASSERT_EQUAL_INT(0, rig.a.n_connected);
	TEST_ASSERT_EQUAL_INT(0, rig.b.n_closed);
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
		TEST_ASSERT_EQUAL_INT(-ECONNREFUSED, rig.a.reason);
		rig_disconnect(&rig.a);
	}
}

static void name_is_served_once(void)
{
	void *second = NULL;
	struct gantry_conn_events none = {0};

	rig_listen(rig_service(0));
	TEST_ASSERT_EQUAL_INT(-EADDRINUSE,
			      rig.ops->listen(rig.b.dev, rig_service(0), &none, NULL, &second));
	if (!rig_driver.remote) /* over a network, each end listens at its own address */
		TEST_ASSERT_EQUAL_INT(-EADDRINUSE, rig.ops->listen(rig.a.dev, rig_service(0), &none,
								   NULL, &second));
	TEST_ASSERT_NULL(second);
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
	TEST_ASSERT_TRUE(rig.ops->listen(rig.b.dev, "", &none, NULL, &p) < 0);
	TEST_ASSERT_TRUE(rig.ops->listen(rig.b.dev, too_long, &none, NULL, &p) < 0);
	TEST_ASSERT_TRUE(rig.ops->connect(rig.a.dev, too_long, &none, NULL, &p) < 0);
	for (const char *const *name = rig_driver.no_services; name && *name; name++) {
		TEST_ASSERT_TRUE_MESSAGE(rig.ops->listen(rig.b.dev, *name, &none, NULL, &p) < 0,
					 *name);
		TEST_ASSERT_TRUE_MESSAGE(rig.ops->connect(rig.a.dev, *name, &none, NULL, &p) < 0,
					 *name);
	}
}

static void connections_outlive_their_listener(void)
{
	rig_connect();
	rig_unlisten();
	TEST_ASSERT_EQUAL_INT(0, rig_ctrl(&rig.a, "\0\0\0\0", 4));
	rig_until(rig.b.n_msgs, 1);
	TEST_ASSERT_EQUAL_INT(0, rig.b.n_closed);
}

static void control_messages_of_all_sizes(void)
{
	uint8_t msg[GANTRY_CTRL_MAX];

	rig_connect();
	rig_fill(msg, sizeof(msg), 1);
	for (size_t len = 1, n = 1; len <= sizeof(msg);
	     len = len < 2048 ? len * 3 : len + 1024, n++) {
		size_t use = len > sizeof(msg) ? sizeof(msg) : len;

		TEST_ASSERT_EQUAL_INT(0, rig_ctrl(&rig.a, msg, use));
		rig_until(rig.b.n_msgs, (int)n);
		TEST_ASSERT_EQUAL_UINT(use, rig.b.msg_len);
		TEST_ASSERT_EQUAL_MEMORY(msg, rig.b.msg, use);
	}
	TEST_ASSERT_EQUAL_INT(0, rig_ctrl(&rig.b, msg, sizeof(msg)));
	rig_until(rig.a.n_msgs, 1);
	TEST_ASSERT_EQUAL_UINT(sizeof(msg), rig.a.msg_len);
}

static void control_messages_of_wrong_size(void)
{
	uint8_t msg[GANTRY_CTRL_MAX + 1] = {0};

	rig_connect();
	TEST_ASSERT_TRUE(rig.ops->send_ctrl(rig.a.conn, msg, sizeof(msg)) < 0);
	TEST_ASSERT_TRUE(rig.ops->send_ctrl(rig.a.conn, msg, 0) < 0);
	rig_settle();
	TEST_ASSERT_EQUAL_INT(0, rig.b.n_msgs + rig.b.n_closed);
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
		TEST_ASSERT_EQUAL_INT(0, rc);
		sent++;
	}
	TEST_ASSERT_EQUAL_INT(8, full);
	rig_until(rig.b.n_msgs, (int)sent);
	TEST_ASSERT_EQUAL_INT(0, rig.b.out_of_order);
}

static void disconnect_is_reported_to_the_peer(void)
{
	rig_connect();
	rig_disconnect(&rig.a);
	rig_until(rig.b.n_closed, 1);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, rig.b.reason);
	rig_settle();
	TEST_ASSERT_EQUAL_INT(1, rig.b.n_closed);
	TEST_ASSERT_EQUAL_INT(0, rig.a.n_closed); /* the end that disconnects gets no `closed` */
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, rig.ops->send_ctrl(rig.b.conn, "x", 1));
}

/* A message sent just before disconnect arrives, also if its sender has unread messages. */
static void message_sent_before_disconnect_arrives(void)
{
	rig_connect();
	TEST_ASSERT_EQUAL_INT(0, rig_ctrl(&rig.b, "unread", 6));
	TEST_ASSERT_EQUAL_INT(0, rig_ctrl(&rig.a, "\0\0\0\0bye", 7));
	rig_disconnect(&rig.a);
	rig_until(rig.b.n_closed, 1);
	TEST_ASSERT_EQUAL_INT(1, rig.b.n_msgs);
	TEST_ASSERT_EQUAL_UINT(7, rig.b.msg_len);
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
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, rig.a.reason);
	TEST_ASSERT_EQUAL_INT(1, rig.a.n_connected);
	TEST_ASSERT_EQUAL_INT(1, rig.a.n_msgs);
	TEST_ASSERT_EQUAL_STRING(rig.b.greeting, (const char *)rig.a.msg);
}

static void disconnect_inside_the_callback(void)
{
	rig_connect();
	rig.b.disconnect_on_close = 1;
	rig_disconnect(&rig.a);
	rig_until(rig.b.n_closed, 1);
	rig_settle();
	TEST_ASSERT_NULL(rig.b.conn);
	TEST_ASSERT_EQUAL_INT(1, rig.b.n_closed);
}

static void disconnect_before_it_is_connected(void)
{
	rig_listen(rig_service(0));
	rig_start_connect(rig_service(0));
	rig_disconnect(&rig.a);
	rig_settle();
	TEST_ASSERT_EQUAL_INT(0, rig.a.n_connected + rig.a.n_closed);
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
		TEST_ASSERT_EQUAL_INT(0, rig_ctrl(&rig.a, "hello", 5));
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
