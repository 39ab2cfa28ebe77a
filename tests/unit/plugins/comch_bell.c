/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The doorbell between processes of different users: a peer that rings without end cannot keep a
 * lane busy.
 */
#include <sys/socket.h>

static unsigned n_left, n_received;
static int next_flags; /* msg_flags of the next message */

static ssize_t peek_one(struct msghdr *msg)
{
	msg->msg_flags = next_flags;
	return n_left ? 1 : -1;
}

static ssize_t receive_one(void)
{
	n_received++;
	return n_left && n_left-- ? 1 : -1;
}

#define recvmsg(fd, msg, flags) ((void)(fd), peek_one(msg))
#define recv(fd, buf, len, flags) ((void)(fd), receive_one())
#include "../plugins/transport/shm-comch/shm_bell.c"
#undef recvmsg
#undef recv
#include "unity.h"

static struct comch_device dev = {.uids = {1000}};
static struct comch_conn conn = {.dev = &dev, .peer.uid = 1001};

void comch_conn_poison(struct comch_conn *c, enum comch_corruption what)
{
	c->poison = what;
}

void setUp(void)
{
	n_received = 0;
	next_flags = 0;
	conn.poison = 0;
}

static void clear_reads_all_pending_rings(void)
{
	n_left = 10; /* as many datagrams as Linux queues on a socket */
	comch_bell_clear(&conn, -1);
	TEST_ASSERT_EQUAL_UINT(0, n_left);
	TEST_ASSERT_EQUAL_UINT(10, n_received);
	TEST_ASSERT_EQUAL_UINT(0, conn.poison);
}

static void clear_reads_a_limited_number_of_endless_rings(void)
{
	n_left = 1000000;
	comch_bell_clear(&conn, -1);
	TEST_ASSERT_TRUE(n_received <= 100);
}

/*
 * A peer can attach file descriptors to a message. The last close of a file descriptor can take
 * long, so a lane must not receive any.
 */
static void a_ring_with_descriptors_breaks_the_connection(void)
{
	n_left = 10;
	next_flags = MSG_CTRUNC;
	comch_bell_clear(&conn, -1);
	TEST_ASSERT_EQUAL_UINT(COMCH_CORRUPT_BELL, conn.poison);
	TEST_ASSERT_EQUAL_UINT(0, n_received);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(clear_reads_all_pending_rings);
	RUN_TEST(a_ring_with_descriptors_breaks_the_connection);
	RUN_TEST(clear_reads_a_limited_number_of_endless_rings);
	return UNITY_END();
}
