/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When gantry_queue_close() has returned, nobody writes to the buffers of that queue: neither a target that answers too late,
 * nor one whose gateway was killed. GANTRY_ROUNDS repeats each case.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clients/served.h"
#include "unity.h"

#define BLOCK SERVED_BLOCK
#define LAST (SERVED_BYTES - BLOCK) /* a read of it is held while the gate is shut */
#define MINE 0x3c

static struct gantry_volume *volume;
static struct gantry_queue *queue;
static char gate[128], reached[160], backend[256];
static uint8_t *buffer;

void setUp(void)
{
	volume = NULL;
	queue = NULL;
}

void tearDown(void)
{
	remove(gate);
	served_finish(&queue, &volume);
}

static void serve(struct served_options options)
{
	struct gantry_volume_attr attr = GANTRY_VOLUME_ATTR_INIT;
	uint64_t bytes;
	int fd, rc;

	served_begin(NULL);
	snprintf(gate, sizeof(gate), "%s/gate", served_dir);
	snprintf(reached, sizeof(reached), "%s.reached", gate);
	snprintf(backend, sizeof(backend), "type = \"gated\"; gate = \"%s\";", gate);
	options.backend = backend;
	served_conf(&options);
	fd = open(gate, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	TEST_ASSERT_GREATER_OR_EQUAL(0, fd);
	close(fd);
	served_start("store");
	served_start("bridge");
	attr.buffer_bytes = 4 * BLOCK;
	rc = gantry_volume_open_role(served_file, "load", &attr, &volume);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, rc, gantry_error());
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_open(volume, &queue));
	buffer = gantry_volume_buffers(volume, &bytes);
}

/* A read that the target has begun. */
static void read_late(struct served_io *io)
{
	uint64_t until = served_ms() + 60000;

	*io = (struct served_io){0, 1};
	memset(buffer, 0x11, 4 * BLOCK);
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_read(queue, buffer, BLOCK, LAST, served_done, io));
	while (access(reached, F_OK) != 0) {
		gantry_queue_wait(queue, 1);
		TEST_ASSERT_TRUE_MESSAGE(served_ms() < until, "the read does not reach the backend");
	}
}

/* The program uses the memory for something else, and the target does the read after all. */
static void close_and_expect_mine(void)
{
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&queue));
	for (size_t i = BLOCK; i < 4 * BLOCK; i++)
		TEST_ASSERT_EQUAL_INT_MESSAGE(0x11, buffer[i], "the program's own data has gone");
	memset(buffer, MINE, 4 * BLOCK);
	remove(gate);
	served_kill("store", SIGTERM); /* which does what it has begun */
	for (size_t i = 0; i < 4 * BLOCK; i++)
		TEST_ASSERT_EQUAL_INT_MESSAGE(MINE, buffer[i], "written to after gantry_queue_close()");
}

static void test_a_read_that_is_never_answered(void)
{
	struct served_io io;

	serve((struct served_options){.connect = "io_timeout = \"100ms\"; fence_timeout = \"100ms\";"});
	read_late(&io);
	served_wait(queue, &io, 1, 1);
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, io.result);
	close_and_expect_mine();
}

static void test_the_gateway_is_killed(void)
{
	struct served_io io;

	serve((struct served_options){.connect = NULL});
	read_late(&io);
	served_kill("bridge", SIGKILL);
	served_wait(queue, &io, 1, 1);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, io.result);
	close_and_expect_mine();
}

/* The gateway stands still: nobody confirms anything. */
static void test_the_gateway_is_stopped(void)
{
	struct served_io io;

	serve((struct served_options){.connect = "heartbeat = \"50ms\"; io_timeout = \"100ms\";"});
	read_late(&io);
	served_signal("bridge", SIGSTOP);
	served_wait(queue, &io, 1, 1);
	close_and_expect_mine();
}

/* An answer that is late, and comes: the session goes on, and the buffer is free when it has come. */
static void test_a_late_answer_frees_the_buffer(void)
{
	struct served_io io;

	serve((struct served_options){.connect = "io_timeout = \"100ms\";"});
	read_late(&io);
	served_wait(queue, &io, 1, 1);
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, io.result);
	remove(gate);
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&queue));
	TEST_ASSERT_EQUAL_HEX8(0, buffer[0]); /* what the block holds */
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_open(volume, &queue));
	TEST_ASSERT_EQUAL_INT(0, served_read(queue, buffer, BLOCK, 0));
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
	RUN_ROUNDS(test_a_read_that_is_never_answered);
	RUN_ROUNDS(test_the_gateway_is_killed);
	RUN_ROUNDS(test_the_gateway_is_stopped);
	RUN_ROUNDS(test_a_late_answer_frees_the_buffer);
	return UNITY_END();
}
