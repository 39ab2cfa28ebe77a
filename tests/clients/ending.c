/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ends of sessions: with IO in flight, by a peer that is killed or does not answer. Each IO
 * completes exactly once, and nothing hangs.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "clients/served.h"
#include "unity.h"

#define BLOCK SERVED_BLOCK
#define DEPTH 32

static struct gantry_volume *volume;
static struct gantry_queue *queue;
static struct gantry_volume_attr attr;
static struct served_io ios[DEPTH];
static uint8_t bufs[DEPTH][BLOCK];

/* A stage holds each IO for 100 ms, or for longer than a test takes. */
#define FOR_A_WHILE "{ type = \"fault\"; delay = \"100ms\"; delay_rate = \"100%\"; }"
#define FOR_EVER "{ type = \"fault\"; delay = \"1h\"; delay_rate = \"100%\"; }"

void setUp(void)
{
	attr = (struct gantry_volume_attr)GANTRY_VOLUME_ATTR_INIT;
	memset(ios, 0, sizeof(ios));
	volume = NULL;
	queue = NULL;
}

void tearDown(void)
{
	served_finish(&queue, &volume);
}

static void serve(const struct served_options *options, const char *role)
{
	served_begin(options);
	served_start("store");
	served_start("bridge");
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, gantry_volume_open_role(served_file, role, &attr, &volume),
				      gantry_error());
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_open(volume, &queue));
}

static void fill_queue(void)
{
	for (int i = 0; i < DEPTH; i++) {
		int rc = i % 2 ? gantry_queue_read(queue, bufs[i], BLOCK, (uint64_t)i * BLOCK,
						   served_done, &ios[i])
			       : gantry_queue_write(queue, bufs[i], BLOCK, (uint64_t)i * BLOCK, 0,
						    served_done, &ios[i]);

		TEST_ASSERT_EQUAL_INT_MESSAGE(0, rc, gantry_error());
	}
	gantry_queue_poll(queue);
}

static void expect_each_once(int result)
{
	for (int i = 0; i < DEPTH; i++) {
		TEST_ASSERT_EQUAL_INT(1, ios[i].n);
		TEST_ASSERT_EQUAL_INT(result, ios[i].result);
	}
	TEST_ASSERT_EQUAL_UINT32(0, gantry_queue_inflight(queue));
}

static void expect_lost(void)
{
	struct served_io io = {0, 1};

	TEST_ASSERT_EQUAL_INT(-ENOTCONN,
			      gantry_queue_read(queue, bufs[0], BLOCK, 0, served_done, &io));
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(gantry_error(), "the session is lost: "),
				     gantry_error());
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, gantry_queue_flush(queue, served_done, &io));
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_wait(queue, -1));
	TEST_ASSERT_EQUAL_INT(0, io.n);
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&queue));
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_open(volume, &queue));
	TEST_ASSERT_EQUAL_INT(-ENOTCONN,
			      gantry_queue_read(queue, bufs[0], BLOCK, 0, served_done, &io));
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&queue));
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_close(&volume));
}

static void test_close_waits_for_delayed_ios(void)
{
	const struct served_options options = {.store_stages = FOR_A_WHILE};

	serve(&options, "load");
	fill_queue();
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&queue));
	for (int i = 0; i < DEPTH; i++) {
		TEST_ASSERT_EQUAL_INT(1, ios[i].n);
		TEST_ASSERT_EQUAL_INT(0, ios[i].result);
	}
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_close(&volume));
}

static void test_a_close_waits_no_longer_than_io_timeout(void)
{
	const struct served_options options = {.store_stages = FOR_EVER,
					       .connect = "io_timeout = \"200ms\";"};

	serve(&options, "load");
	fill_queue();
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&queue));
	for (int i = 0; i < DEPTH; i++) {
		TEST_ASSERT_EQUAL_INT(1, ios[i].n);
		TEST_ASSERT_TRUE(ios[i].result == -ETIMEDOUT || ios[i].result == -ENOTCONN);
	}
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_close(&volume));
}

/*
 * Kill the process of a role while all IOs are in flight. Its peer sees the end of the connection
 * immediately: this is the client, or a gateway that then ends the session of the client.
 */
static void killed(const char *who, const char *role)
{
	const struct served_options options = {.store_stages = FOR_EVER};

	serve(&options, role);
	fill_queue();
	served_kill(who, SIGKILL);
	served_wait(queue, ios, DEPTH, DEPTH);
	expect_each_once(-ENOTCONN);
	expect_lost();
}

static void test_the_gateway_is_killed(void)
{
	killed("bridge", "load");
}

static void test_the_target_is_killed(void)
{
	killed("store", "load");
}

static void test_the_target_is_killed_without_a_gateway_in_between(void)
{
	killed("store", "direct");
}

static void test_session_ends_when_the_peer_stops_answering(void)
{
	const struct served_options options = {.connect = "heartbeat = \"200ms\";",
					       .store_stages = FOR_EVER};

	serve(&options, "load");
	fill_queue();
	served_signal("bridge", SIGSTOP);
	served_wait(queue, ios, DEPTH, DEPTH);
	expect_each_once(-ENOTCONN);
	expect_lost();
}

static void test_ios_end_when_the_gateway_stops_on_sigterm(void)
{
	const struct served_options options = {.store_stages = FOR_A_WHILE};

	serve(&options, "load");
	fill_queue();
	served_signal("bridge", SIGTERM);
	served_wait(queue, ios, DEPTH, DEPTH);
	for (int i = 0; i < DEPTH; i++)
		TEST_ASSERT_TRUE(ios[i].result == 0 || ios[i].result == -ENOTCONN);
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&queue));
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_close(&volume));
}

/*
 * The stage of the target cancels the IOs that it holds, and the session ends. The client must
 * complete the IOs with the error of the lost session, not as canceled.
 */
static void ends_with_ios_in_a_stage(const char *role)
{
	const struct served_options options = {.store_stages = FOR_EVER};

	serve(&options, role);
	fill_queue();
	served_kill("store", SIGTERM);
	served_wait(queue, ios, DEPTH, DEPTH);
	expect_each_once(-ENOTCONN);
	expect_lost();
}

static void test_a_target_that_ends_in_order(void)
{
	ends_with_ios_in_a_stage("direct");
}

static void test_a_target_that_ends_in_order_behind_a_gateway(void)
{
	ends_with_ios_in_a_stage("load");
}

/* A stage in this process, of the role `load`, holds the IOs: no peer has them to complete. */
static void test_ios_that_stages_of_the_client_hold_fail_when_the_session_is_lost(void)
{
	const struct served_options options = {.load_stages = FOR_EVER};

	serve(&options, "load");
	fill_queue();
	served_kill("bridge", SIGKILL);
	served_wait(queue, ios, DEPTH, DEPTH);
	for (int i = 0; i < DEPTH; i++)
		TEST_ASSERT_NOT_EQUAL(0, ios[i].result);
	expect_lost();
}

/*
 * Of the IOs of one batch, three reach the target. The stage fails the remaining IOs before the
 * target answers. Each result must belong to its IO, in any order of completion.
 */
static void test_stage_that_fails_ios_with_session_lost(void)
{
	const struct served_options options = {
		.load_stages = "{ type = \"fault\"; disconnect_after = 3; }"};

	serve(&options, "load");
	fill_queue();
	served_wait(queue, ios, DEPTH, DEPTH);
	for (int i = 0; i < DEPTH; i++) {
		TEST_ASSERT_EQUAL_INT(1, ios[i].n);
		TEST_ASSERT_EQUAL_INT(i < 3 ? 0 : -ENOTCONN, ios[i].result);
	}
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, served_flush(queue));
}

/* The owner of the queue sleeps in poll(2): the control thread detects the loss and wakes it. */
static void test_sleeping_event_loop_is_woken_when_the_session_is_lost(void)
{
	const struct served_options options = {.store_stages = FOR_EVER};
	struct pollfd pfd = {.events = POLLIN};
	int n = 0;

	serve(&options, "load");
	fill_queue();
	pfd.fd = gantry_queue_fd(queue);
	served_kill("bridge", SIGKILL);
	while (n < DEPTH) {
		if (gantry_queue_arm(queue) == 0)
			TEST_ASSERT_EQUAL_INT_MESSAGE(1, poll(&pfd, 1, 60000),
						      "nobody woke the loop");
		n += gantry_queue_poll(queue);
	}
	expect_each_once(-ENOTCONN);
	expect_lost();
}

/* The session is lost while no thread polls the queue: later calls deliver every completion. */
static void test_session_lost_while_no_thread_polls_the_queue(void)
{
	const struct served_options options = {.store_stages = FOR_EVER};

	serve(&options, "load");
	fill_queue();
	served_kill("bridge", SIGKILL);
	while (gantry_queue_flush(queue, served_done, &ios[0]) == -EAGAIN) {
		struct pollfd pfd = {.fd = gantry_queue_fd(queue), .events = POLLIN};

		if (gantry_queue_arm(queue) || poll(&pfd, 1, 60000) == 1)
			break;
	}
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&queue)); /* close completes all IOs */
	for (int i = 0; i < DEPTH; i++) {
		TEST_ASSERT_EQUAL_INT(1, ios[i].n);
		TEST_ASSERT_EQUAL_INT(-ENOTCONN, ios[i].result);
	}
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_close(&volume));
}

/*
 * Late answers have no effect on data. More IOs can time out than the queue has entries, because
 * buffers of answered IOs are used again.
 */
static void test_ios_that_time_out(void)
{
	const struct served_options options = {
		.store_stages = "{ type = \"fault\"; delay = \"400ms\"; delay_nth = 10; }",
		.connect = "io_timeout = \"150ms\";",
	};
	int n = 0;

	attr.depth = 6;
	serve(&options, "direct");
	for (int i = 0; i < 100; i++) {
		int rc = served_read(queue, bufs[0], BLOCK, 0);

		/*
		 * the target cancels an IO past its deadline; a slow client can receive that answer
		 * before it detects the timeout
		 */
		TEST_ASSERT_TRUE_MESSAGE(rc == 0 || rc == -ETIMEDOUT || rc == -ECANCELED,
					 gantry_error());
		n += rc != 0;
	}
	TEST_ASSERT_EQUAL_INT(10, n);
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&queue));
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_close(&volume));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_close_waits_for_delayed_ios);
	RUN_TEST(test_a_close_waits_no_longer_than_io_timeout);
	RUN_TEST(test_the_gateway_is_killed);
	RUN_TEST(test_the_target_is_killed);
	RUN_TEST(test_the_target_is_killed_without_a_gateway_in_between);
	RUN_TEST(test_session_ends_when_the_peer_stops_answering);
	RUN_TEST(test_ios_end_when_the_gateway_stops_on_sigterm);
	RUN_TEST(test_a_target_that_ends_in_order);
	RUN_TEST(test_a_target_that_ends_in_order_behind_a_gateway);
	RUN_TEST(test_ios_that_stages_of_the_client_hold_fail_when_the_session_is_lost);
	RUN_TEST(test_stage_that_fails_ios_with_session_lost);
	RUN_TEST(test_sleeping_event_loop_is_woken_when_the_session_is_lost);
	RUN_TEST(test_session_lost_while_no_thread_polls_the_queue);
	RUN_TEST(test_ios_that_time_out);
	return UNITY_END();
}
