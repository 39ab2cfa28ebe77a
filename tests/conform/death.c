/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * death.c - shm-comch across forks: which process is the peer, and when the transport reports its
 * death. killed.c has the cases for every transport.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conform/forked.h"

static void part_nothing(void)
{
	forked_begin(NULL);
}

static void peer_is_reported_with_its_process_id(void)
{
	rig_listen("vol");
	fork_peer(part_nothing);
	accept_peer();
	TEST_ASSERT_EQUAL_INT(forked.pid, rig.b.peer.pid);
	wait_ready();
	reap(SIGKILL);
	rig_until(rig.b.n_closed, 1);
}

/* A child of the peer keeps the socket of the peer open, so the server gets no hang-up. */
static void part_with_a_child(void)
{
	forked_begin(NULL);
	if (fork() == 0) {
		char c;

		close(forked.to_child[1]);
		close(forked.to_parent[0]);
		while (read(forked.to_child[0], &c, 1) > 0) /* until the parent closes the pipe */
			;
		_exit(0);
	}
}

static void connection_ends_although_a_child_of_the_peer_lives(void)
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

/*
 * A child of this process has copies of all descriptors. These copies must not raise events for a
 * connection that has ended.
 */
static void connection_ends_although_a_child_of_this_process_lives(void)
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
	rig_listen("vol"); /* works although the child has a copy of the old lock */
	close(hold[0]);
	close(hold[1]);
	waitpid(child, NULL, 0);
}

/* A process that inherited a device by fork cannot use it. */
static void forked_child_cannot_use_the_device(void)
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
		    rig.ops->consumer_create(rig.a.conn, &attr, &id, &p) != -EPERM ||
		    rig.ops->progress(rig.b.dev) != 0)
			_exit(1);
		rig.ops->disconnect(rig.a.conn); /* frees the connection, sends nothing */
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
	RUN_TEST(peer_is_reported_with_its_process_id);
	RUN_TEST(connection_ends_although_a_child_of_the_peer_lives);
	RUN_TEST(connection_ends_although_a_child_of_this_process_lives);
	RUN_TEST(forked_child_cannot_use_the_device);
	step_cases();
	name_cases();
	return UNITY_END();
}
