/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * No late write overwrites a newer, acknowledged write. A late write is one that timed out, or one
 * of a session whose gateway or client was killed. GANTRY_ROUNDS repeats each case.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clients/served.h"
#include "unity.h"

#define BLOCK SERVED_BLOCK
#define OLD 'o'
#define NEW 'n'

static struct gantry_volume *volume;
static struct gantry_queue *queue;
static uint8_t held[BLOCK], fresh[BLOCK], seen[BLOCK];

void setUp(void)
{
	volume = NULL;
	queue = NULL;
	memset(held, OLD, sizeof(held));
	memcpy(held, "HOLD", 4);
	memset(fresh, NEW, sizeof(fresh));
}

void tearDown(void)
{
	served_finish(&queue, &volume);
}

static void open_volume_with(uint32_t queues)
{
	struct gantry_volume_attr attr = GANTRY_VOLUME_ATTR_INIT;
	int rc;

	attr.queues = queues;
	rc = gantry_volume_open_role(served_file, "load", &attr, &volume);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, rc, gantry_error());
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_open(volume, &queue));
}

static void close_volume(void)
{
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&queue));
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_close(&volume));
}

static void serve(const struct served_options *options)
{
	served_begin(options);
	served_start("store");
	served_start("bridge");
}

/*
 * Repeat the write while it completes with CANCELED or TIMEOUT: its deadline can pass before the
 * late write is answered, or just after the write was sent.
 */
static int write_fua(struct gantry_queue *q)
{
	struct served_io io;
	int rc;

	do {
		io = (struct served_io){0, 1};
		rc = gantry_queue_write(q, fresh, BLOCK, 0, GANTRY_IO_FUA, served_done, &io);
		if (rc == 0)
			served_wait(q, &io, 1, 1);
		gantry_queue_poll(queue); /* this queue gets the late reply */
	} while (rc == 0 && (io.result == -ECANCELED || io.result == -ETIMEDOUT));
	return rc != 0 ? rc : io.result;
}

/* Read in a new session, which starts only after all writes of the ended session are finished. */
static void expect_newest(void)
{
	close_volume();
	open_volume_with(1);
	TEST_ASSERT_EQUAL_INT(0, served_read(queue, seen, BLOCK, 0));
	TEST_ASSERT_EQUAL_INT_MESSAGE(NEW, seen[BLOCK - 1],
				      "an older write has overwritten a newer one");
	close_volume();
}

/* -- the same client -- */

/* The stage of `options` delays every second write past its deadline. */
static void write_behind_one_that_timed_out(const struct served_options *options)
{
	serve(options);
	open_volume_with(1);
	TEST_ASSERT_EQUAL_INT(0, served_write(queue, held, BLOCK, BLOCK)); /* not delayed */
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, served_write(queue, held, BLOCK, 0));
	TEST_ASSERT_EQUAL_INT(0, write_fua(queue));
	TEST_ASSERT_EQUAL_INT(0, served_flush(queue));
	expect_newest();
}

static void test_write_waits_behind_one_that_a_stage_of_the_target_delays(void)
{
	const struct served_options options = {
		.connect = "io_timeout = \"100ms\";",
		.store_stages =
			"{ type = \"fault\"; only = \"write\"; delay = \"300ms\"; delay_nth = 2; }",
	};

	write_behind_one_that_timed_out(&options);
}

static void test_write_waits_behind_one_that_a_stage_of_the_gateway_delays(void)
{
	const struct served_options options = {
		.connect = "io_timeout = \"100ms\";",
		.bridge_stages =
			"{ type = \"fault\"; only = \"write\"; delay = \"300ms\"; delay_nth = 2; }",
	};

	write_behind_one_that_timed_out(&options);
}

/* A write that overlaps the late one waits; other writes and reads do not. */
static void test_overlapping_writes_of_all_queues_wait(void)
{
	struct gantry_queue *other;
	struct served_io io = {0, 1};

	served_gated((struct served_options){.connect = "io_timeout = \"200ms\";"});
	open_volume_with(2);
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_open(volume, &other));
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, served_write(queue, held, BLOCK, 0));
	served_wait_gate(NULL);
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_write(other, fresh, BLOCK, 0, 0, served_done, &io));
	for (int i = 1; i < 10; i++)
		TEST_ASSERT_EQUAL_INT(0, served_write(other, fresh, BLOCK, (uint64_t)i * BLOCK));
	TEST_ASSERT_EQUAL_INT(0, served_read(other, seen, BLOCK, 0));
	TEST_ASSERT_EQUAL_INT(0, seen[BLOCK - 1]);
	served_wait(other, &io, 1, 1);
	/*
	 * the deadline of the overlapping write passed while it waited; on a busy machine it can
	 * pass before the other writes have completed
	 */
	TEST_ASSERT_EQUAL_INT_MESSAGE(-ECANCELED, io.result, "the overlapping write did not wait");
	served_open_gate();
	TEST_ASSERT_EQUAL_INT(0, write_fua(other));
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&other));
	expect_newest();
}

static void test_session_ends_when_a_late_write_is_never_answered(void)
{
	served_gated((struct served_options){
		.connect = "io_timeout = \"100ms\"; fence_timeout = \"100ms\";"});
	open_volume_with(1);
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, served_write(queue, held, BLOCK, 0));
	while (served_read(queue, seen, BLOCK, 0) == 0)
		;
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, served_read(queue, seen, BLOCK, 0));
	served_open_gate();
}

/*
 * Writes of other programs are ordered behind the late write after the fence of its client has
 * returned 0.
 */
static void test_a_fence_returns_when_the_late_write_is_at_rest(void)
{
	struct gantry_volume *other;
	struct gantry_queue *others;

	served_gated((struct served_options){.connect = "io_timeout = \"100ms\";"});
	open_volume_with(1);
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_open_role(served_file, "load", NULL, &other));
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_open(other, &others));
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_fence(queue, -1));
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, served_write(queue, held, BLOCK, 0));
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, gantry_queue_fence(queue, 50));
	served_open_gate();
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_fence(queue, -1));
	TEST_ASSERT_EQUAL_INT(0, served_write(others, fresh, BLOCK, 0));
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&others));
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_close(&other));
	expect_newest();
}

static void test_fence_reports_that_the_session_is_lost(void)
{
	served_gated((struct served_options){
		.connect = "io_timeout = \"100ms\"; fence_timeout = \"100ms\";"});
	open_volume_with(1);
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, served_write(queue, held, BLOCK, 0));
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, gantry_queue_fence(queue, -1));
	served_open_gate();
}

/* -- the next session -- */

/* The volume opens only after the writes of ended sessions are finished. */
static void expect_busy_then_newest(void)
{
	TEST_ASSERT_EQUAL_INT(-EBUSY, gantry_volume_open_role(served_file, "load", NULL, &volume));
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(gantry_error(), "busy (writes=1, since="),
				     gantry_error());
	served_open_gate();
	open_volume_with(1);
	TEST_ASSERT_EQUAL_INT(0, write_fua(queue));
	expect_newest();
}

static const struct served_options impatient = {.listen = "control_timeout = \"500ms\";"};

static void test_the_gateway_is_killed_over_a_late_write(void)
{
	struct served_io io = {0, 1};

	served_gated(impatient);
	open_volume_with(1);
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_write(queue, held, BLOCK, 0, 0, served_done, &io));
	served_wait_gate(queue);
	served_kill("bridge", SIGKILL);
	served_start("bridge");
	served_wait(queue, &io, 1, 1);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, io.result);
	close_volume();
	expect_busy_then_newest();
}

/* Fork a client that submits a write and then waits to be killed. */
static pid_t start_writer(void)
{
	struct served_io io = {0, 1};
	pid_t pid = fork();

	TEST_ASSERT_GREATER_OR_EQUAL(0, pid);
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_volume_with(1);
	gantry_queue_write(queue, held, BLOCK, 0, 0, served_done, &io);
	for (;;)
		gantry_queue_wait(queue, -1);
}

static void test_the_client_is_killed_over_a_late_write(void)
{
	pid_t pid;

	served_gated(impatient);
	pid = start_writer();
	served_wait_gate(NULL);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	expect_busy_then_newest();
}

int main(void)
{
	UNITY_BEGIN();
	RUN_ROUNDS(test_write_waits_behind_one_that_a_stage_of_the_target_delays);
	RUN_ROUNDS(test_write_waits_behind_one_that_a_stage_of_the_gateway_delays);
	RUN_ROUNDS(test_overlapping_writes_of_all_queues_wait);
	RUN_ROUNDS(test_session_ends_when_a_late_write_is_never_answered);
	RUN_ROUNDS(test_a_fence_returns_when_the_late_write_is_at_rest);
	RUN_ROUNDS(test_fence_reports_that_the_session_is_lost);
	RUN_ROUNDS(test_the_gateway_is_killed_over_a_late_write);
	RUN_ROUNDS(test_the_client_is_killed_over_a_late_write);
	return UNITY_END();
}
