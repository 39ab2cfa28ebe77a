/* SPDX-License-Identifier: BSD-3-Clause */
/* death.c - shm-comch across processes: a peer that dies, at any moment, harms nobody. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conform/forked.h"

#define BYTES 65536u

static void part_nothing(void)
{
	forked_begin(NULL);
}

static void killed_peer_is_noticed_once(void)
{
	rig_listen("vol");
	fork_peer(part_nothing);
	accept_peer();
	TEST_ASSERT_EQUAL_INT(forked.pid, rig.b.peer.pid);
	wait_ready();
	reap(SIGKILL);
	rig_until(rig.b.n_closed, 1);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, rig.b.reason);
	rig_settle();
	TEST_ASSERT_EQUAL_INT(1, rig.b.n_closed);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, rig.ops->send_ctrl(rig.b.conn, "x", 1));
}

/* Its consumer is ours to fill: 5 messages, then it waits. */
static void part_sends_five(void)
{
	struct gantry_queue_attr attr = {.depth = 16, .max_data = 4096};
	struct rig_queue q;
	uint8_t data[1000];

	forked_begin(NULL);
	rig_until(rig.a.n_up, 1);
	if (rig.ops->producer_create(rig.a.conn, rig.a.up[0], &attr, &q.tx))
		_exit(1);
	for (uint64_t i = 0; i < 5; i++) {
		struct gantry_send send = {.imm = &i, .imm_len = 8, .data = data, .length = sizeof(data)};

		rig_fill(data, sizeof(data), (uint32_t)i);
		if (rig_send(&q, &send))
			_exit(1);
	}
}

static void what_it_sent_can_still_be_taken(void)
{
	static uint8_t bufs[16][4096];
	struct gantry_msg msg;
	struct rig_queue q;
	char c;

	rig_listen("vol");
	fork_peer(part_sends_five);
	accept_peer();
	forked_consumer(&q, bufs, 16);
	/* the lane has to turn so that the new ring gets credit; it takes nothing yet */
	rig_settle();
	while (rig.ops->poll_recv(q.rx, &msg, 0) == 0) {
		struct pollfd p = {.fd = forked.to_parent[0], .events = POLLIN};

		rig_settle();
		if (poll(&p, 1, 0) > 0)
			break;
	}
	TEST_ASSERT_EQUAL_INT(1, read(forked.to_parent[0], &c, 1));
	reap(SIGKILL);
	rig_until(rig.b.n_closed, 1);
	for (uint64_t i = 0; i < 5; i++) {
		rig_take(&q, &msg);
		TEST_ASSERT_EQUAL_MEMORY(&i, msg.imm, 8);
		TEST_ASSERT_EQUAL_UINT(1000, msg.length);
		TEST_ASSERT_TRUE(rig_filled(bufs[msg.cookie], 1000, (uint32_t)i));
	}
	TEST_ASSERT_EQUAL_INT(0, rig.ops->poll_recv(q.rx, &msg, 1));
	rig.ops->consumer_destroy(q.rx);
}

static void part_exports(void)
{
	static struct rig_memory m;
	struct gantry_token token;

	forked_begin(NULL);
	rig_memory_open(&m, BYTES, 3);
	rig_fill(m.bytes, BYTES, 77);
	if (rig.ops->export_region(rig.a.conn, &m.region, 3, 1, &token) ||
	    rig.ops->send_ctrl(rig.a.conn, &token, sizeof(token)))
		_exit(1);
}

static void what_it_exported_can_still_be_read(void)
{
	struct gantry_region *r = NULL;
	struct gantry_token token;

	rig_listen("vol");
	fork_peer(part_exports);
	accept_peer();
	rig_until(rig.b.n_msgs, 1);
	memcpy(&token, rig.b.msg, sizeof(token));
	TEST_ASSERT_EQUAL_INT(0, rig.ops->import_region(rig.b.conn, &token, 1, &r));
	wait_ready();
	reap(SIGKILL);
	rig_until(rig.b.n_closed, 1);
	TEST_ASSERT_TRUE(rig_filled(r->addr, BYTES, 77)); /* sealed: no SIGBUS */
	rig.ops->release_region(rig.b.conn, r);
}

static void part_imports(void)
{
	struct gantry_region *r = NULL;
	struct gantry_token token;

	forked_begin(NULL);
	rig_until(rig.a.n_msgs, 1);
	memcpy(&token, rig.a.msg, sizeof(token));
	if (rig.ops->import_region(rig.a.conn, &token, 1, &r))
		_exit(1);
}

/* Our memory is ours again when the process is gone, and we are told before `closed`. */
static void what_it_imported_is_quiet(void)
{
	struct gantry_token token;
	struct rig_memory m;

	rig_listen("vol");
	fork_peer(part_imports);
	accept_peer();
	rig_memory_open(&m, BYTES, 3);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->export_region(rig.b.conn, &m.region, 3, 4, &token));
	TEST_ASSERT_EQUAL_INT(0, rig.ops->send_ctrl(rig.b.conn, &token, sizeof(token)));
	wait_ready();
	kill(forked.pid, SIGKILL);
	rig_until(rig.b.n_closed, 1);
	TEST_ASSERT_EQUAL_INT(1, rig.b.n_revoked);
	TEST_ASSERT_EQUAL_UINT(4, rig.b.revoked);
	TEST_ASSERT_EQUAL_INT(0, rig.b.revoked_rc);
	reap(0);
	rig_memory_close(&m);
}

static void killed_while_it_gives_memory_back(void)
{
	struct gantry_token token;
	struct rig_memory m;

	rig_listen("vol");
	fork_peer(part_imports);
	accept_peer();
	rig_memory_open(&m, BYTES, 3);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->export_region(rig.b.conn, &m.region, 3, 4, &token));
	TEST_ASSERT_EQUAL_INT(0, rig.ops->send_ctrl(rig.b.conn, &token, sizeof(token)));
	wait_ready();
	TEST_ASSERT_EQUAL_INT(0, rig.ops->revoke_region(rig.b.conn, 4)); /* it never answers */
	rig_settle();
	TEST_ASSERT_EQUAL_INT(0, rig.b.n_revoked);
	reap(SIGKILL);
	rig_until(rig.b.n_closed, 1);
	TEST_ASSERT_EQUAL_INT(1, rig.b.n_revoked);
	TEST_ASSERT_EQUAL_INT(0, rig.b.revoked_rc);
	rig_memory_close(&m);
}

/* A child of the peer keeps the other end of the socket: no hang-up is ever seen. */
static void part_with_a_child(void)
{
	forked_begin(NULL);
	if (fork() == 0) {
		char c;

		close(forked.to_child[1]);
		close(forked.to_parent[0]);
		while (read(forked.to_child[0], &c, 1) > 0) /* until the parent closes it */
			;
		_exit(0);
	}
}

static void its_child_does_not_count(void)
{
	rig_listen("vol");
	fork_peer(part_with_a_child);
	accept_peer();
	wait_ready();
	kill(forked.pid, SIGKILL);
	rig_until(rig.b.n_closed, 1);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, rig.b.reason);
	reap(0);
}

/* A child of ours has copies of all descriptors: a connection that is over must not be heard of through them. */
static void our_child_does_not_count(void)
{
	int hold[2];
	pid_t child;
	char c;

	rig_listen("vol");
	fork_peer(part_nothing);
	accept_peer();
	wait_ready();
	TEST_ASSERT_EQUAL_INT(0, pipe(hold));
	child = fork();
	if (child == 0) {
		close(hold[1]);
		_exit(read(hold[0], &c, 1) < 0);
	}
	reap(SIGKILL);
	rig_until(rig.b.n_closed, 1);
	rig_disconnect(&rig.b);
	rig.ops->unlisten(rig.b.listener);
	rig.b.listener = NULL;
	rig_settle();
	rig_listen("vol"); /* the child has the old lock */
	close(hold[0]);
	close(hold[1]);
	waitpid(child, NULL, 0);
}

static void exit_without_goodbye(void)
{
	rig_listen("vol");
	fork_peer(part_nothing);
	accept_peer();
	wait_ready();
	TEST_ASSERT_EQUAL_INT(1, write(forked.to_child[1], "x", 1));
	rig_until(rig.b.n_closed, 1);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, rig.b.reason);
	reap(0);
}

static void kills_leave_nothing(void)
{
	rig_listen("vol");
	rig.b.disconnect_on_close = 1;
	for (int i = 0; i < 50; i++) {
		fork_peer(part_nothing);
		accept_peer();
		if (i % 2)
			wait_ready();
		reap(SIGKILL);
		rig_until(rig.b.n_closed, i + 1);
	}
	rig_settle();
	TEST_ASSERT_EQUAL_INT(0, fake_counter(&rig.b.host, "protocol_errors"));
}

/* A process that inherited a device by fork can do nothing with it. */
static void forked_child_is_refused(void)
{
	int status;
	pid_t pid;

	rig_connect();
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		struct gantry_conn_events none = {0};
		struct gantry_queue_attr attr = {.depth = 4};
		void *p;
		uint32_t id;

		if (rig.ops->connect(rig.a.dev, "vol", &none, NULL, &p) != -EPERM ||
		    rig.ops->send_ctrl(rig.a.conn, "x", 1) != -EPERM ||
		    rig.ops->consumer_create(rig.a.conn, &attr, &id, &p) != -EPERM || rig.ops->progress(rig.b.dev) != 0)
			_exit(1);
		rig.ops->disconnect(rig.a.conn); /* frees, and says nothing to the peer */
		rig.ops->unlisten(rig.b.listener);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	TEST_ASSERT_EQUAL_INT(0, status);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->send_ctrl(rig.a.conn, "\0\0\0\0", 4));
	rig_until(rig.b.n_msgs, 1);
	TEST_ASSERT_EQUAL_INT(0, rig.b.n_closed);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(killed_peer_is_noticed_once);
	RUN_TEST(what_it_sent_can_still_be_taken);
	RUN_TEST(what_it_exported_can_still_be_read);
	RUN_TEST(what_it_imported_is_quiet);
	RUN_TEST(killed_while_it_gives_memory_back);
	RUN_TEST(its_child_does_not_count);
	RUN_TEST(our_child_does_not_count);
	RUN_TEST(exit_without_goodbye);
	RUN_TEST(kills_leave_nothing);
	RUN_TEST(forked_child_is_refused);
	step_cases();
	name_cases();
	return UNITY_END();
}
