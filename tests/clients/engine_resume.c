/* SPDX-License-Identifier: BSD-3-Clause */
/* A session that is lost and opened again, between a fake role host and a test: nothing is lost, doubled or out of order. */
#include <errno.h>
#include <string.h>

#include "engine.h"
#include "fake/role_host.h"
#include "unity.h"

#define SIZE (1u << 20)
#define BLOCK 4096u
#define DEPTH 8u
#define MS 1000000ull

static struct fake_host host;
static struct fake_role_host rh;
static struct gc_session *session;
static struct gc_queue *queue;
static unsigned n_started, n_closed, n_done;
static int reason;
static char text[256];
static unsigned done_status[64];
static uint64_t done_offset[64], seen_offset[64];
static unsigned n_seen;

static int on_ready(void *arg, const struct gantry_volume_info *info)
{
	(void)arg;
	(void)info;
	return gc_session_memory(session, BLOCK, 0, 0);
}

static void on_started(void *arg)
{
	(void)arg;
	n_started++;
}

static void on_closed(void *arg, int rc, const char *why)
{
	(void)arg;
	n_closed++;
	reason = rc;
	strncpy(text, why, sizeof(text) - 1);
}

static void on_done(void *arg, struct gantry_io *io)
{
	struct gc_queue *q = arg;

	if (gc_queue_completed(q, io))
		return;
	done_offset[n_done] = io->offset;
	done_status[n_done++] = io->status;
	gc_queue_put(q, io);
}

static void seen(struct fake_role_host *fake, const struct gantry_io *io)
{
	(void)fake;
	seen_offset[n_seen++] = io->offset;
	TEST_ASSERT_EQUAL_HEX8(GANTRY_IO_FUA, io->flags);
	TEST_ASSERT_EQUAL_UINT32(77, io->deadline_us);
}

static const struct gc_session_events events = {on_ready, on_started, on_closed};

static void turn(unsigned n)
{
	while (n--) {
		fake_role_turn(&rh);
		if (queue)
			gc_queue_poll(queue);
	}
}

void setUp(void)
{
	const struct gc_session_attr attr = {.n_queues = 1, .depth = DEPTH, .complete = on_done};

	fake_host_init(&host, "roles.load");
	fake_role_init(&rh, &host, 1, SIZE, BLOCK);
	rh.resume_ns = 1000 * MS;
	rh.turn_ns = 10 * MS;
	n_started = n_closed = n_done = n_seen = 0;
	queue = NULL;
	text[0] = '\0';
	TEST_ASSERT_EQUAL_INT(0, gc_session_open(&rh.pub, &attr, &events, NULL, &session));
	turn(5);
	TEST_ASSERT_EQUAL_UINT(1, n_started);
	queue = gc_session_queue(session, 0);
	rh.seen = seen;
}

void tearDown(void)
{
	gc_session_free(session);
	TEST_ASSERT_EQUAL_UINT(0, rh.n_chains);
	TEST_ASSERT_EQUAL_UINT(0, rh.n_regions);
	TEST_ASSERT_EQUAL_UINT(0, rh.n_bad);
	fake_role_fini(&rh);
}

static void write_block(uint32_t block, uint8_t value)
{
	struct gantry_io *io = gc_queue_get(queue);

	TEST_ASSERT_NOT_NULL(io);
	memset(gc_slot_buffer(queue, io), value, BLOCK);
	gc_io_fill(queue, io, GANTRY_OP_WRITE, GANTRY_IO_FUA, (uint64_t)block * BLOCK, BLOCK, gc_slot_offset(queue, io));
	io->deadline_us = 77;
	TEST_ASSERT_EQUAL_INT(0, gc_queue_submit(queue, io));
}

static void lose(void)
{
	rh.lose_rc = -ECONNRESET;
	turn(1);
	TEST_ASSERT_EQUAL_INT(1, queue->paused);
	TEST_ASSERT_EQUAL_UINT(0, n_closed);
}

static void expect_done(unsigned n, unsigned status)
{
	TEST_ASSERT_EQUAL_UINT(n, n_done);
	for (unsigned i = 0; i < n; i++)
		TEST_ASSERT_EQUAL_UINT(status, done_status[i]);
	TEST_ASSERT_EQUAL_UINT32(0, queue->n_inflight + queue->n_waiting + queue->n_lost);
}

static void finish(void)
{
	gc_session_close(session);
	turn(5);
	TEST_ASSERT_EQUAL_UINT(1, n_closed);
	TEST_ASSERT_EQUAL_INT(0, reason);
}

static void test_what_was_in_flight_is_submitted_again(void)
{
	for (uint8_t i = 0; i < 4; i++)
		write_block(i, (uint8_t)(i + 1));
	rh.newest_first = 1; /* it comes back in another order */
	lose();
	write_block(4, 5);
	write_block(5, 6);
	TEST_ASSERT_EQUAL_UINT(0, n_done);
	TEST_ASSERT_EQUAL_UINT32(6, queue->n_inflight);
	rh.newest_first = 0;
	turn(10);
	TEST_ASSERT_EQUAL_UINT(1, n_started);
	TEST_ASSERT_EQUAL_UINT32(2, rh.attr.epoch);
	TEST_ASSERT_NOT_EQUAL(0, rh.attr.id);
	expect_done(6, GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(4 + 6, n_seen);
	for (unsigned i = 0; i < 6; i++) {
		TEST_ASSERT_EQUAL_UINT64(i * BLOCK, seen_offset[4 + i]);
		TEST_ASSERT_EQUAL_UINT64(i * BLOCK, done_offset[i]);
		TEST_ASSERT_EQUAL_HEX8(i + 1, rh.data[i * BLOCK]);
	}
	TEST_ASSERT_TRUE(fake_logged(&host, "4 IOs submitted again"));
	TEST_ASSERT_EQUAL_UINT32(0, queue->n_quarantined);
	finish();
}

static void test_it_is_lost_again_and_again(void)
{
	for (unsigned round = 0; round < 3; round++) {
		write_block(round, 9);
		lose();
		turn(4); /* lost in the middle of being opened, too */
		rh.lose_rc = -ECONNRESET;
		turn(30);
		TEST_ASSERT_EQUAL_INT(0, queue->paused);
		TEST_ASSERT_EQUAL_UINT(round + 1, n_done);
	}
	expect_done(3, GANTRY_S_OK);
	finish();
}

static void test_attempts_that_fail(void)
{
	write_block(0, 1);
	rh.open_rc = -ENOMEM;
	lose();
	turn(20);
	TEST_ASSERT_EQUAL_UINT(0, n_done);
	rh.open_rc = 0;
	turn(20);
	TEST_ASSERT_GREATER_THAN_UINT(2, rh.attr.epoch);
	expect_done(1, GANTRY_S_OK);
	finish();
}

static void test_the_time_is_over(void)
{
	write_block(0, 1);
	write_block(1, 2);
	rh.open_rc = -ENOMEM;
	lose();
	write_block(2, 3);
	turn(120);
	expect_done(3, GANTRY_S_SESSION_LOST);
	TEST_ASSERT_EQUAL_UINT(1, n_closed);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, reason);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(text, "lost on purpose; not resumed within 1000 ms"), text);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, gc_queue_submit(queue, &queue->ios[7]));
	TEST_ASSERT_EQUAL_UINT32(3, queue->n_quarantined);
}

static void test_the_volume_is_another_one(void)
{
	write_block(0, 1);
	rh.volume.size /= 2;
	lose();
	turn(20);
	expect_done(1, GANTRY_S_SESSION_LOST);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, reason);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(text, "not the same"), text);
}

static void test_a_close_while_it_is_paused(void)
{
	write_block(0, 1);
	rh.open_rc = -ENOMEM;
	lose();
	turn(3);
	finish();
	expect_done(1, GANTRY_S_SESSION_LOST);
}

static void test_a_stage_that_says_lost_is_believed(void)
{
	fake_role_fault(&rh, (struct fake_fault){.kind = FAKE_STATUS, .opcode = GANTRY_OP_WRITE, .nth = 1,
						 .status = GANTRY_S_SESSION_LOST});
	write_block(0, 1);
	turn(30);
	expect_done(1, GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT32(2, rh.attr.epoch);
	finish();
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_what_was_in_flight_is_submitted_again);
	RUN_TEST(test_it_is_lost_again_and_again);
	RUN_TEST(test_attempts_that_fail);
	RUN_TEST(test_the_time_is_over);
	RUN_TEST(test_the_volume_is_another_one);
	RUN_TEST(test_a_close_while_it_is_paused);
	RUN_TEST(test_a_stage_that_says_lost_is_believed);
	return UNITY_END();
}
