/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * No late write overtakes a newer one that was acknowledged: neither one that timed out, nor one of a session that ended
 * because its gateway or its client was killed. GANTRY_ROUNDS repeats each case.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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
static char gate[128], reached[160], backend[256];
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
	if (gate[0])
		remove(gate);
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

static void shut_gate(void)
{
	int fd = open(gate, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	TEST_ASSERT_GREATER_OR_EQUAL(0, fd);
	close(fd);
}

/* Servers with a backend that holds writes of `held` back until the gate is open. It is shut. */
static void serve_gated(struct served_options options)
{
	served_begin(NULL);
	snprintf(gate, sizeof(gate), "%s/gate", served_dir);
	snprintf(reached, sizeof(reached), "%s.reached", gate);
	snprintf(backend, sizeof(backend), "type = \"gated\"; gate = \"%s\";", gate);
	options.backend = backend;
	served_conf(&options);
	shut_gate();
	served_start("store");
	served_start("bridge");
}

static void open_gate(void)
{
	remove(gate);
}

static void wait_reached(struct gantry_queue *q)
{
	uint64_t until = served_ms() + 60000;

	while (access(reached, F_OK) != 0) {
		if (q != NULL)
			gantry_queue_wait(q, 1);
		TEST_ASSERT_TRUE_MESSAGE(served_ms() < until, "the write does not reach the backend");
	}
	remove(reached);
}

/*
 * Again while its deadline passes before it could begin, because the one before is not answered yet, or just after it has
 * begun.
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
		gantry_queue_poll(queue); /* where the late answer comes */
	} while (rc == 0 && (io.result == -ECANCELED || io.result == -ETIMEDOUT));
	return rc != 0 ? rc : io.result;
}

/* In a session of its own: when the one before has ended, all of it has come to rest. */
static void expect_newest(void)
{
	close_volume();
	open_volume_with(1);
	TEST_ASSERT_EQUAL_INT(0, served_read(queue, seen, BLOCK, 0));
	TEST_ASSERT_EQUAL_INT_MESSAGE(NEW, seen[BLOCK - 1], "an older write has overtaken a newer one");
	close_volume();
}

/* -- the same client -- */

/* Every other write is delayed for longer than its deadline. */
static void write_behind_one_that_timed_out(const struct served_options *options)
{
	serve(options);
	open_volume_with(1);
	TEST_ASSERT_EQUAL_INT(0, served_write(queue, held, BLOCK, BLOCK)); /* the first */
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, served_write(queue, held, BLOCK, 0));
	TEST_ASSERT_EQUAL_INT(0, write_fua(queue));
	TEST_ASSERT_EQUAL_INT(0, served_flush(queue));
	expect_newest();
}

static void test_a_stage_of_the_target_delays_it(void)
{
	const struct served_options options = {
		.connect = "io_timeout = \"100ms\";",
		.store_stages = "{ type = \"fault\"; only = \"write\"; delay = \"300ms\"; delay_nth = 2; }",
	};

	write_behind_one_that_timed_out(&options);
}

static void test_a_stage_of_the_gateway_delays_it(void)
{
	const struct served_options options = {
		.connect = "io_timeout = \"100ms\";",
		.bridge_stages = "{ type = \"fault\"; only = \"write\"; delay = \"300ms\"; delay_nth = 2; }",
	};

	write_behind_one_that_timed_out(&options);
}

/* The write waits, others do not, and it is done as soon as the one before it is answered. */
static void test_overlapping_writes_of_all_queues_wait(void)
{
	struct gantry_queue *other;
	struct served_io io = {0, 1};

	serve_gated((struct served_options){.connect = "io_timeout = \"200ms\";"});
	open_volume_with(2);
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_open(volume, &other));
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, served_write(queue, held, BLOCK, 0));
	wait_reached(NULL);
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_write(other, fresh, BLOCK, 0, 0, served_done, &io));
	for (int i = 1; i < 10; i++)
		TEST_ASSERT_EQUAL_INT(0, served_write(other, fresh, BLOCK, (uint64_t)i * BLOCK));
	TEST_ASSERT_EQUAL_INT(0, served_read(other, seen, BLOCK, 0));
	TEST_ASSERT_EQUAL_INT(0, seen[BLOCK - 1]);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, io.n, "it did not wait");
	served_wait(other, &io, 1, 1);
	TEST_ASSERT_EQUAL_INT(-ECANCELED, io.result); /* at its deadline, and it has not begun */
	open_gate();
	TEST_ASSERT_EQUAL_INT(0, write_fua(other));
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&other));
	expect_newest();
}

static void test_the_session_ends_when_it_is_never_answered(void)
{
	serve_gated((struct served_options){.connect = "io_timeout = \"100ms\"; fence_timeout = \"100ms\";"});
	open_volume_with(1);
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, served_write(queue, held, BLOCK, 0));
	while (served_read(queue, seen, BLOCK, 0) == 0)
		;
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, served_read(queue, seen, BLOCK, 0));
	open_gate();
}

/* What orders other programs behind a write that timed out: its client has waited for the answer. */
static void test_a_fence_returns_when_the_late_write_is_at_rest(void)
{
	struct gantry_volume *other;
	struct gantry_queue *others;

	serve_gated((struct served_options){.connect = "io_timeout = \"100ms\";"});
	open_volume_with(1);
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_open_role(served_file, "load", NULL, &other));
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_open(other, &others));
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_fence(queue, -1));
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, served_write(queue, held, BLOCK, 0));
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, gantry_queue_fence(queue, 50));
	open_gate();
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_fence(queue, -1));
	TEST_ASSERT_EQUAL_INT(0, served_write(others, fresh, BLOCK, 0));
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&others));
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_close(&other));
	expect_newest();
}

static void test_a_fence_says_that_the_session_is_lost(void)
{
	serve_gated((struct served_options){.connect = "io_timeout = \"100ms\"; fence_timeout = \"100ms\";"});
	open_volume_with(1);
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, served_write(queue, held, BLOCK, 0));
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, gantry_queue_fence(queue, -1));
	open_gate();
}

/* -- the next session -- */

/* The volume opens when what ended sessions have written is at rest, and not before. */
static void expect_busy_then_newest(void)
{
	TEST_ASSERT_EQUAL_INT(-EBUSY, gantry_volume_open_role(served_file, "load", NULL, &volume));
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(gantry_error(), "busy (writes=1, since="), gantry_error());
	open_gate();
	open_volume_with(1);
	TEST_ASSERT_EQUAL_INT(0, write_fua(queue));
	expect_newest();
}

static const struct served_options impatient = {.listen = "control_timeout = \"500ms\";"};

static void test_the_gateway_is_killed_over_a_late_write(void)
{
	struct served_io io = {0, 1};

	serve_gated(impatient);
	open_volume_with(1);
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_write(queue, held, BLOCK, 0, 0, served_done, &io));
	wait_reached(queue);
	served_kill("bridge", SIGKILL);
	served_start("bridge");
	served_wait(queue, &io, 1, 1);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, io.result);
	close_volume();
	expect_busy_then_newest();
}

/* A process that writes, and is killed. */
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

	serve_gated(impatient);
	pid = start_writer();
	wait_reached(NULL);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	expect_busy_then_newest();
}

static void repeat(UnityTestFunction test, const char *name, int line)
{
	const char *rounds = getenv("GANTRY_ROUNDS");

	for (long n = rounds ? strtol(rounds, NULL, 10) : 1; n > 0; n--)
		UnityDefaultTestRun(test, name, line);
}

#define RUN_ROUNDS(test) repeat(test, #test, __LINE__)

int main(void)
{
	UNITY_BEGIN();
	RUN_ROUNDS(test_a_stage_of_the_target_delays_it);
	RUN_ROUNDS(test_a_stage_of_the_gateway_delays_it);
	RUN_ROUNDS(test_overlapping_writes_of_all_queues_wait);
	RUN_ROUNDS(test_the_session_ends_when_it_is_never_answered);
	RUN_ROUNDS(test_a_fence_returns_when_the_late_write_is_at_rest);
	RUN_ROUNDS(test_a_fence_says_that_the_session_is_lost);
	RUN_ROUNDS(test_the_gateway_is_killed_over_a_late_write);
	RUN_ROUNDS(test_the_client_is_killed_over_a_late_write);
	return UNITY_END();
}
