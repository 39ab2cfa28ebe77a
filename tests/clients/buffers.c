/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * After gantry_queue_close() no server writes to the buffers of that queue: neither a target that
 * answers too late, nor a target whose gateway was killed. GANTRY_ROUNDS repeats each case.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clients/served.h"
#include "unity.h"

#define BLOCK SERVED_BLOCK
/* the backend holds reads of this block while the gate is shut */
#define LAST (SERVED_BYTES - BLOCK)
#define MINE 0x3c

static struct gantry_volume *volume;
static struct gantry_queue *queue;
static uint8_t *buffer;

void setUp(void)
{
	volume = NULL;
	queue = NULL;
}

void tearDown(void)
{
	served_finish(&queue, &volume);
}

/*
 * The number of next calls of madvise(MADV_POPULATE_WRITE) that fail. gn_region_withdraw() copies a
 * region to private pages by this call. The control thread makes the call, and so writes this too.
 */
static _Atomic int copies_to_fail;

/* Takes the place of the function of the C library, in libgantry.so as well. */
__attribute__((visibility("default"))) int madvise(void *addr, size_t length, int advice)
{
	if (advice != MADV_POPULATE_WRITE || copies_to_fail == 0)
		return (int)syscall(SYS_madvise, addr, length, advice);
	copies_to_fail--;
	errno = ENOMEM;
	return -1;
}

static void serve(struct served_options options)
{
	struct gantry_volume_attr attr = GANTRY_VOLUME_ATTR_INIT;
	uint64_t bytes;
	int rc;

	served_gated(options);
	attr.buffer_bytes = 4 * BLOCK;
	rc = gantry_volume_open_role(served_file, "load", &attr, &volume);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, rc, gantry_error());
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_open(volume, &queue));
	buffer = gantry_volume_buffers(volume, &bytes);
	TEST_ASSERT_EQUAL_PTR(buffer, gantry_volume_buffers(volume, NULL));
}

/* Submit a read and wait until the backend holds it. */
static void read_late(struct served_io *io)
{
	*io = (struct served_io){0, 1};
	memset(buffer, 0x11, 4 * BLOCK);
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_read(queue, buffer, BLOCK, LAST, served_done, io));
	served_wait_gate(queue);
}

/*
 * Close the queue, reuse the memory, then let the target complete the read. The read must not
 * change the memory.
 */
static void close_and_expect_mine(void)
{
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&queue));
	for (size_t i = BLOCK; i < 4 * BLOCK; i++)
		TEST_ASSERT_EQUAL_INT_MESSAGE(0x11, buffer[i],
					      "gantry_queue_close() changed data of the program");
	memset(buffer, MINE, 4 * BLOCK);
	served_open_gate();
	served_kill("store", SIGTERM); /* completes the held read first */
	for (size_t i = 0; i < 4 * BLOCK; i++)
		TEST_ASSERT_EQUAL_INT_MESSAGE(MINE, buffer[i],
					      "written to after gantry_queue_close()");
}

static void test_a_read_that_is_never_answered(void)
{
	struct served_io io;

	serve((struct served_options){
		.connect = "io_timeout = \"100ms\"; fence_timeout = \"100ms\";"});
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

/*
 * gantry_queue_close() waits until there is memory to copy the region to private pages, which no
 * server can access.
 */
static void test_there_is_no_memory_when_the_gateway_is_killed(void)
{
	struct served_io io;

	serve((struct served_options){.connect = NULL});
	read_late(&io);
	copies_to_fail = 3;
	served_kill("bridge", SIGKILL);
	served_wait(queue, &io, 1, 1);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, io.result);
	close_and_expect_mine();
	TEST_ASSERT_EQUAL_INT(0, copies_to_fail);
}

/*
 * gantry_volume_close() succeeds although there is no memory to copy the region to private pages.
 */
static void test_a_volume_can_be_closed_without_memory(void)
{
	serve((struct served_options){.connect = NULL});
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&queue));
	copies_to_fail = INT_MAX;
	served_kill("bridge", SIGKILL);
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_close(&volume));
	copies_to_fail = 0;
}

/* A stopped gateway cannot confirm that it released the memory. */
static void test_the_gateway_is_stopped(void)
{
	struct served_io io;

	serve((struct served_options){.connect = "heartbeat = \"50ms\"; io_timeout = \"100ms\";"});
	read_late(&io);
	served_signal("bridge", SIGSTOP);
	served_wait(queue, &io, 1, 1);
	close_and_expect_mine();
}

/* The late reply arrives: the session continues, and the answer frees the buffer. */
static void test_a_late_answer_frees_the_buffer(void)
{
	struct served_io io;
	int rc;

	serve((struct served_options){.connect = "io_timeout = \"100ms\";"});
	read_late(&io);
	served_wait(queue, &io, 1, 1);
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, io.result);
	served_open_gate();
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&queue));
	TEST_ASSERT_EQUAL_HEX8(0, buffer[0]); /* the content of the block */
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_open(volume, &queue));
	do /* on a busy machine an answer can take longer than io_timeout */
		rc = served_read(queue, buffer, BLOCK, 0);
	while (rc == -ETIMEDOUT);
	TEST_ASSERT_EQUAL_INT(0, rc);
}

/*
 * The session is lost, and resumes while gantry_queue_close() waits for the late reply: then the
 * buffer is free, too.
 */
static void test_a_session_resumes_while_its_queue_is_closed(void)
{
	struct served_io io;

	serve((struct served_options){
		.connect = "io_timeout = \"100ms\"; resume = \"60s\"; fence_timeout = \"60s\";"});
	read_late(&io);
	served_wait(queue, &io, 1, 1);
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, io.result);
	served_kill("bridge", SIGKILL);
	served_open_gate();
	served_start("bridge");
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&queue));
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_open(volume, &queue));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_ROUNDS(test_a_read_that_is_never_answered);
	RUN_ROUNDS(test_the_gateway_is_killed);
	RUN_ROUNDS(test_there_is_no_memory_when_the_gateway_is_killed);
	RUN_ROUNDS(test_a_volume_can_be_closed_without_memory);
	RUN_ROUNDS(test_the_gateway_is_stopped);
	RUN_ROUNDS(test_a_late_answer_frees_the_buffer);
	RUN_ROUNDS(test_a_session_resumes_while_its_queue_is_closed);
	return UNITY_END();
}
