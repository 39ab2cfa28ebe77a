/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_polls.c - which polls of a lane over TCP call recvmsg(). A function of this file replaces
 * that of libc, and counts the calls.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "conform/rig.h"

#define EXPORT __attribute__((visibility("default")))
#define READ_BYTES 131072u /* limit of what one poll reads */
#define FRAME_BYTES 64u

static ssize_t (*real_recvmsg)(int, struct msghdr *, int);
static unsigned n_calls;
static int last_fd; /* of the last call */

EXPORT ssize_t recvmsg(int fd, struct msghdr *msg, int flags);

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	n_calls++;
	last_fd = fd;
	return real_recvmsg(fd, msg, flags);
}

/* Connect, and open a queue that only the case polls. */
static struct rig_queue *open_queue(uint32_t depth)
{
	struct rig_queue *q;

	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, depth, 0);
	rig_warm(q);
	q->resting = 1;
	RIG_OK(rig.ops->post_recv(q->rx, depth));
	rig_settle();
	return q;
}

/* Poll once. Returns the number of messages; *n_calls_p: of calls of recvmsg(). */
static int poll_once(struct rig_queue *q, unsigned *n_calls_p)
{
	static struct gantry_msg msgs[4096];
	int n;

	n_calls = 0;
	n = rig.ops->poll_recv(q->rx, msgs, 4096);
	*n_calls_p = n_calls;
	RIG_HOLDS(n >= 0, "poll_recv");
	return n;
}

static void poll_until_message(struct rig_queue *q)
{
	uint64_t end = 0;
	unsigned n;

	while (poll_once(q, &n) == 0)
		rig_wait(&end, 0, "a message");
}

/* Afterwards the control thread does not poll the lane: its next check does not become due. */
static void stop_clock(void)
{
	rig.b.host.now_ns = rig_now_ns();
	rig.b.host.real_clock = 0;
	rig.ops->progress(rig.b.dev);
}

static void poll_after_a_message_makes_no_call(void)
{
	struct rig_queue *q = open_queue(8);
	unsigned n;

	for (int i = 0; i < 3; i++) {
		RIG_OK(rig_send_imm(q, 4711));
		poll_until_message(q);
		RIG_RC(0, poll_once(q, &n), "messages of the next poll");
		RIG_NUM(0, n, "calls of the next poll");
		RIG_RC(0, poll_once(q, &n), "messages of the poll after that");
		RIG_NUM(1, n, "calls of the poll after that");
		RIG_RC(0, poll_once(q, &n), "messages of a later poll");
		RIG_NUM(1, n, "calls of a later poll");
	}
	rig_queue_close(q);
}

/* A poll reads a limited number of bytes: the next one continues. */
static void polls_continue_while_the_socket_has_more(void)
{
	const uint32_t n_sent = 4000, most = READ_BYTES / FRAME_BYTES;
	struct rig_queue *q = open_queue(4096);
	unsigned total = 0, n;
	uint64_t end = 0;
	int got, fd, waiting = 0;

	RIG_OK(rig_send_imm(q, 1)); /* the producer has all credit */
	poll_until_message(q);
	RIG_RC(0, poll_once(q, &n), "messages of the next poll");
	fd = last_fd; /* of end b */
	stop_clock();
	for (uint32_t i = 0; i < n_sent; i++)
		RIG_OK(rig_send_imm(q, i));
	while (ioctl(fd, FIONREAD, &waiting) == 0 && (uint32_t)waiting < READ_BYTES + FRAME_BYTES) {
		rig.ops->flush(q->tx);
		rig_wait(&end, 0, "bytes in the socket");
	}
	while ((got = poll_once(q, &n)) > 0)
		total += (unsigned)got;
	RIG_HOLDS(total > most, "messages before the first poll without one");
	rig_queue_close(q);
}

/* The user stops at the first poll without a message. */
static void each_poll_of_a_lost_connection_receives(void)
{
	struct rig_queue *q = open_queue(8);
	unsigned n;

	RIG_OK(rig_send_imm(q, 1));
	poll_until_message(q);
	stop_clock();
	RIG_OK(rig_send_imm(q, 2));
	rig.ops->flush(q->tx);
	rig_queue_close_tx(q);
	rig_disconnect(&rig.a);
	rig_until(rig.b.n_closed, 1);
	RIG_RC(1, poll_once(q, &n), "messages of the first poll after `closed`");
	rig_queue_close(q);
}

int main(void)
{
	*(void **)&real_recvmsg = dlsym(RTLD_NEXT, "recvmsg");
	setenv("RIG_A_SETTINGS", "max_depth=4096 socket_buffer=1MiB", 1);
	setenv("RIG_B_SETTINGS", "max_depth=4096 socket_buffer=1MiB", 1);
	UNITY_BEGIN();
	RIG_CASE(poll_after_a_message_makes_no_call);
	RIG_CASE(polls_continue_while_the_socket_has_more);
	RIG_CASE(each_poll_of_a_lost_connection_receives);
	return UNITY_END();
}
