/* SPDX-License-Identifier: BSD-3-Clause */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conform/forked.h"

struct forked forked;

void forked_open(const char *setting)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rig_open_end(&rig.a, setting);
	memset(&rig.b, 0, sizeof(rig.b)); /* forget the objects of the parent, do not close them */
	memset(rig.queues, 0, sizeof(rig.queues));
	rig.b.dev = rig.a.dev;
}

void forked_begin(const char *setting)
{
	forked_open(setting);
	rig_start_connect("vol");
	rig_until(rig.a.n_connected, 1);
}

void forked_ready(void)
{
	char c;

	if (write(forked.to_parent[1], "r", 1) != 1 || read(forked.to_child[0], &c, 1) != 1)
		_exit(1);
}

void fork_peer(void (*part)(void))
{
	TEST_ASSERT_EQUAL_INT(0, pipe(forked.to_parent));
	TEST_ASSERT_EQUAL_INT(0, pipe(forked.to_child));
	fflush(stdout);
	forked.pid = fork();
	TEST_ASSERT_TRUE(forked.pid >= 0);
	if (forked.pid == 0) {
		part();
		forked_ready();
		_exit(0);
	}
}

void wait_ready(void)
{
	struct pollfd fds[2] = {{.fd = forked.to_parent[0], .events = POLLIN},
				{.fd = rig.ops->fd(rig.b.dev), .events = POLLIN}};
	char c;

	while (poll(fds, 2, 10000) > 0 && !fds[0].revents)
		rig_settle();
	TEST_ASSERT_EQUAL_INT(1, read(forked.to_parent[0], &c, 1));
	rig_settle();
}

void accept_peer(void)
{
	int n = rig.b.n_accept;

	rig_until(rig.b.n_accept, n + 1);
}

void forked_close(void)
{
	for (int i = 0; i < 2; i++) {
		close(forked.to_parent[i]);
		close(forked.to_child[i]);
	}
}

void reap(int sig)
{
	int status;

	if (sig)
		kill(forked.pid, sig);
	waitpid(forked.pid, &status, 0);
	forked_close();
}

void forked_consumer(struct rig_queue *q, uint8_t bufs[][4096], int n)
{
	struct gantry_queue_attr attr = {.depth = 16, .max_data = 4096};

	memset(q, 0, sizeof(*q));
	TEST_ASSERT_EQUAL_INT(0, rig.ops->consumer_create(rig.b.conn, &attr, &q->id, &q->rx));
	for (int i = 0; i < n; i++)
		TEST_ASSERT_EQUAL_INT(0, rig_post_data(q, bufs[i], 4096, (uint64_t)i));
}
