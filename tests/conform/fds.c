/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fds.c - shm-comch counts for each user exactly the descriptors that it has open for this user.
 * Both ends are in this process, so all connections belong to one user. shm-comch ends a connection
 * that exceeds the limit of its user, and sends the reason to the peer.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../../plugins/transport/shm-comch/shm_comch.h"
#include "conform/rig.h"

#define QUEUES 4

static int before;          /* number of open descriptors before the first connection */
static struct rlimit limit; /* RLIMIT_NOFILE of this process */

static struct comch_device *device(struct rig_end *end)
{
	return end->dev;
}

static unsigned held(void)
{
	return __atomic_load_n(&device(&rig.b)->shares[0].user->n_fds, __ATOMIC_RELAXED);
}

static void is_exact(const char *when)
{
	rig_settle();
	TEST_ASSERT_EQUAL_INT_MESSAGE(rig_fds() - before, (int)held(), when);
}

static void begin(void)
{
	rig_listen("vol");
	before = rig_fds();
	TEST_ASSERT_EQUAL_INT(0, getrlimit(RLIMIT_NOFILE, &limit));
	TEST_ASSERT_EQUAL_UINT(0, held());
}

static void meet(void)
{
	int n = rig.a.n_connected;

	rig_start_connect("vol");
	rig_until(rig.a.n_connected, n + 1);
}

static void nothing_is_held(void)
{
	rig_disconnect(&rig.a);
	rig_settle();
	rig_disconnect(&rig.b);
	is_exact("at the end");
	TEST_ASSERT_EQUAL_UINT(0, held());
}

static void descriptors_of_all_objects_of_a_connection_count(void)
{
	struct rig_queue *queues[QUEUES];
	struct gantry_token token;
	struct gantry_region *region;
	struct rig_memory m;

	begin();
	meet();
	is_exact("connected");
	TEST_ASSERT_GREATER_THAN(3, (int)held());
	for (int i = 0; i < QUEUES; i++)
		queues[i] = rig_queue_open(i % 2 ? &rig.a : &rig.b, i % 2 ? &rig.b : &rig.a, 8, 0);
	is_exact("with queues");
	rig_memory_open(&m, 65536, GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE);
	before++; /* until the end of the case */
	TEST_ASSERT_EQUAL_INT(
		0, rig.ops->export_region(rig.a.conn, &m.region, GANTRY_REMOTE_READ, 7, &token));
	is_exact("with a region");
	TEST_ASSERT_EQUAL_INT(
		0, rig.ops->import_region(rig.b.conn, &token, GANTRY_IMPORT_MAP, &region));
	TEST_ASSERT_EQUAL_INT(0, rig.ops->revoke_region(rig.a.conn, 7));
	rig_settle();
	rig.ops->release_region(rig.b.conn, region);
	rig_until(rig.a.n_revoked, 1);
	is_exact("without the region");
	for (int i = 0; i < QUEUES; i++)
		rig_queue_close(queues[i]);
	is_exact("without queues");
	nothing_is_held();
}

/* A descriptor in a frame counts for the user, also while the peer has not read the frame. */
static void descriptors_in_unread_frames_count(void)
{
	struct gantry_queue_attr attr = {.depth = 1};
	static const char message[GANTRY_CTRL_MAX];
	void *consumers[QUEUES];
	unsigned unread;
	uint32_t id;
	int rc;

	begin();
	meet();
	do
		rc = rig.ops->send_ctrl(rig.b.conn, message, sizeof(message));
	while (rc == 0);
	TEST_ASSERT_EQUAL_INT(-EAGAIN, rc);
	for (int i = 0; i < QUEUES; i++)
		TEST_ASSERT_EQUAL_INT(
			0, rig.ops->consumer_create(rig.b.conn, &attr, &id, &consumers[i]));
	unread = held();
	TEST_ASSERT_EQUAL_INT(rig_fds() - before, (int)unread);
	is_exact("received");
	/* the peer has received two descriptors for each consumer, and closed one of them */
	TEST_ASSERT_EQUAL_UINT(unread - QUEUES, held());
	for (int i = 0; i < QUEUES; i++)
		rig.ops->consumer_destroy(consumers[i]);
	is_exact("destroyed");
	nothing_is_held();
}

static void text_is(const char *text)
{
	char expected[COMCH_REFUSED_TEXT];

	snprintf(
		expected, sizeof(expected),
		"busy: limit of file descriptors=%u reached by uid %u: end sessions, or raise ulimit -n of the "
		"listener",
		device(&rig.b)->max_fds, (unsigned)geteuid());
	TEST_ASSERT_EQUAL_STRING(expected, text);
	TEST_ASSERT_TRUE_MESSAGE(fake_logged(&rig.b.host, expected), rig.b.host.log);
}

/* The client creates a consumer, which would add its doorbell to the descriptors of the server. */
static void connection_that_sends_too_many_descriptors_ends(void)
{
	struct gantry_queue_attr attr = {.depth = 1};
	void *consumer;
	uint32_t id;

	begin();
	meet();
	rig_settle();
	rig.b.disconnect_on_close = 1;
	TEST_ASSERT_EQUAL_INT(0, rig.ops->consumer_create(rig.a.conn, &attr, &id, &consumer));
	device(&rig.b)->max_fds = held() + 1; /* the frame has two descriptors */
	rig_until(rig.b.n_closed, 1);
	TEST_ASSERT_EQUAL_INT(0, rig.b.n_up);
	TEST_ASSERT_EQUAL_INT(-EMFILE, rig.b.reason);
	rig_until(rig.a.n_closed, 1);
	text_is(rig.ops->refusal(rig.a.conn));
	rig.ops->consumer_destroy(consumer);
	rig_disconnect(&rig.a);
	is_exact("at the end");
	TEST_ASSERT_EQUAL_UINT(0, held());
	TEST_ASSERT_EQUAL_UINT(0, fake_counter(&rig.b.host, "protocol_errors"));
}

static void connection_that_needs_too_many_descriptors_ends(void)
{
	struct gantry_queue_attr attr = {.depth = 1};
	void *consumer;
	uint32_t id;

	begin();
	meet();
	rig_settle();
	device(&rig.b)->max_fds = held() + COMCH_CONSUMER_FDS;
	TEST_ASSERT_EQUAL_INT(0, rig.ops->consumer_create(rig.b.conn, &attr, &id, &consumer));
	rig.ops->consumer_destroy(consumer);
	rig_settle();
	device(&rig.b)->max_fds = held() + COMCH_CONSUMER_FDS - 1;
	TEST_ASSERT_EQUAL_INT(-EMFILE, rig.ops->consumer_create(rig.b.conn, &attr, &id, &consumer));
	rig_until(rig.b.n_closed, 1);
	TEST_ASSERT_EQUAL_INT(-EMFILE, rig.b.reason);
	rig_disconnect(&rig.b);
	rig_until(rig.a.n_closed, 1);
	text_is(rig.ops->refusal(rig.a.conn));
	rig_disconnect(&rig.a);
	is_exact("at the end");
}

static void user_with_too_many_descriptors_gets_no_connection(void)
{
	begin();
	device(&rig.b)->max_fds = 1;
	rig_start_connect("vol"); /* the socket of end a counts for the same user */
	rig_until(rig.a.n_closed, 1);
	TEST_ASSERT_EQUAL_INT(-EBUSY, rig.a.reason);
	text_is(rig.ops->refusal(rig.a.conn));
	rig_disconnect(&rig.a);
	is_exact("refused");
	device(&rig.b)->max_fds = 100;
	meet();
	nothing_is_held();
}

/*
 * A listener without free descriptors closes its reserve descriptor to accept a client and send it
 * the reason. This test takes the reserve away: the listener cannot accept the client at all.
 */
static void a_listener_without_descriptors_sleeps_and_accepts_again(void)
{
	struct comch_device *dev = device(&rig.b);
	struct rlimit none = {.rlim_max = 0};
	struct pollfd p = {.fd = rig.ops->fd(dev), .events = POLLIN};

	begin();
	none.rlim_max = limit.rlim_max;
	rig.b.host.real_clock = 0;
	rig_start_connect("vol");
	TEST_ASSERT_EQUAL_INT(1, poll(&p, 1, 0));
	close(dev->reserve);
	dev->reserve = -1;
	TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_NOFILE, &none));
	for (int i = 0; i < 3; i++)
		rig.ops->progress(dev);
	TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_NOFILE, &limit));
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, poll(&p, 1, 0), "the control thread would not sleep");
	TEST_ASSERT_NOT_EQUAL(0, rig.ops->wake_ns(dev));
	rig.b.host.now_ns = rig.ops->wake_ns(dev);
	rig_until(rig.a.n_connected, 1);
	nothing_is_held();
}

/*
 * Descriptors in the queue of the thread that closes descriptors count for their user. Above the
 * limit the listener accepts no connection until some of them are closed. The test only raises the
 * counter of the user, as if 116 descriptors waited in that queue.
 */
static void a_listener_pauses_while_refused_sockets_wait(void)
{
	struct comch_device *dev = device(&rig.b);
	struct comch_user *user = dev->shares[0].user;
	struct pollfd p = {.fd = rig.ops->fd(dev), .events = POLLIN};
	const unsigned waiting = 100 + 16;

	begin();
	rig.b.host.real_clock = 0;
	dev->max_fds = 100;
	__atomic_fetch_add(&user->n_fds, waiting, __ATOMIC_RELAXED);
	rig_start_connect("vol");
	rig_start_connect("vol");
	TEST_ASSERT_EQUAL_INT(1, poll(&p, 1, 0));
	rig_settle();
	TEST_ASSERT_EQUAL_INT(1, rig.a.n_closed);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, poll(&p, 1, 0), "the control thread would not sleep");
	__atomic_fetch_sub(&user->n_fds, waiting, __ATOMIC_RELAXED);
	rig.b.host.now_ns = rig.ops->wake_ns(dev);
	rig_until(rig.a.n_connected, 1);
	TEST_ASSERT_EQUAL_INT(1, rig.a.n_closed);
}

int main(void)
{
	UNITY_BEGIN();
	RIG_CASE(descriptors_of_all_objects_of_a_connection_count);
	RIG_CASE(descriptors_in_unread_frames_count);
	RIG_CASE(connection_that_sends_too_many_descriptors_ends);
	RIG_CASE(connection_that_needs_too_many_descriptors_ends);
	RIG_CASE(user_with_too_many_descriptors_gets_no_connection);
	RIG_CASE(a_listener_without_descriptors_sleeps_and_accepts_again);
	RIG_CASE(a_listener_pauses_while_refused_sockets_wait);
	return UNITY_END();
}
