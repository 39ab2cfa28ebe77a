/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine between a fake role host and a test: every IO comes back once, in whatever way things end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "fake/role_host.h"
#include "unity.h"

#define SIZE (1u << 20)
#define BLOCK 4096u
#define DEPTH 4u
#define SHARED 8192u

static struct fake_host host;
static struct fake_role_host rh;
static struct gc_session *session;
static int ready_rc, ready_again;
static unsigned n_ready, n_started, n_closed, n_done;
static int reason;
static char text[256];
static struct gantry_io *done[64]; /* in this order, with the status of that moment */
static unsigned done_status[64];
static int keep; /* do not put what is done */

static int on_ready(void *arg, const struct gantry_volume_info *info)
{
	(void)arg;
	TEST_ASSERT_EQUAL_UINT64(SIZE, info->size);
	n_ready++;
	if (ready_rc)
		return ready_rc;
	if (ready_again)
		gc_session_close(session);
	return gc_session_memory(session, 3000, SHARED, 0);
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

static void on_complete(void *self, struct gantry_io *io)
{
	struct gc_queue *queue = self;

	if (gc_queue_completed(queue, io))
		return;
	TEST_ASSERT_LESS_THAN_UINT(64, n_done);
	done_status[n_done] = io->status;
	done[n_done++] = io;
	if (!keep)
		gc_queue_put(queue, io);
}

#define FAULT(...) fake_role_fault(&rh, (struct fake_fault){__VA_ARGS__})

static const struct gc_session_events events = {on_ready, on_started, on_closed};

static int open_session(uint32_t n_queues)
{
	const struct gc_session_attr attr = {.n_queues = n_queues, .depth = DEPTH, .complete = on_complete};

	return gc_session_open(&rh.pub, &attr, &events, NULL, &session);
}

void setUp(void)
{
	fake_host_init(&host, "roles.load");
	fake_role_init(&rh, &host, 2, SIZE, BLOCK);
	n_ready = n_started = n_closed = n_done = 0;
	ready_rc = ready_again = keep = 0;
	reason = 1;
	session = NULL;
	text[0] = '\0';
}

static void expect_clean(unsigned quarantined)
{
	gc_session_free(session);
	TEST_ASSERT_EQUAL_UINT(0, rh.n_chains);
	TEST_ASSERT_EQUAL_UINT(0, rh.n_regions);
	TEST_ASSERT_EQUAL_UINT(0, rh.n_bad);
	TEST_ASSERT_EQUAL_UINT(quarantined, rh.n_quarantined);
}

void tearDown(void)
{
	fake_role_fini(&rh);
}

static void turn(unsigned n)
{
	while (n--) {
		fake_role_turn(&rh);
		for (uint32_t i = 0; session && i < 2; i++)
			if (n_started && !n_closed)
				gc_queue_poll(gc_session_queue(session, i));
	}
}

static struct gc_queue *start(void)
{
	TEST_ASSERT_EQUAL_INT(0, open_session(2));
	turn(5);
	TEST_ASSERT_EQUAL_UINT(1, n_started);
	TEST_ASSERT_EQUAL_UINT(0, n_closed);
	return gc_session_queue(session, 0);
}

static void close_session(unsigned quarantined)
{
	gc_session_close(session);
	gc_session_close(session);
	turn(3);
	TEST_ASSERT_EQUAL_UINT(1, n_closed);
	TEST_ASSERT_EQUAL_INT(0, reason);
	expect_clean(quarantined);
}

static struct gantry_io *filled(struct gc_queue *queue, unsigned opcode, uint64_t offset)
{
	struct gantry_io *io = gc_queue_get(queue);

	TEST_ASSERT_NOT_NULL(io);
	gc_io_fill(queue, io, opcode, 0, offset, BLOCK, gc_slot_offset(queue, io));
	return io;
}

static struct gantry_io *submit(struct gc_queue *queue, unsigned opcode, uint64_t offset)
{
	struct gantry_io *io = filled(queue, opcode, offset);

	TEST_ASSERT_EQUAL_INT(0, gc_queue_submit(queue, io));
	return io;
}

static void test_data_goes_there_and_back(void)
{
	struct gc_queue *queue = start(), *other = gc_session_queue(session, 1);
	struct gantry_io *io = filled(queue, GANTRY_OP_WRITE, BLOCK);

	TEST_ASSERT_EQUAL_UINT64(BLOCK, queue->slot_bytes);
	TEST_ASSERT_EQUAL_UINT64(BLOCK * DEPTH, other->buffers_offset);
	TEST_ASSERT_EQUAL_UINT64(BLOCK * DEPTH * 2, gc_session_shared_offset(session));
	TEST_ASSERT_EQUAL_UINT64(BLOCK * DEPTH * 2 + SHARED, gc_session_region(session)->length);
	memset(gc_slot_buffer(queue, io), 0x5a, BLOCK);
	TEST_ASSERT_EQUAL_INT(0, gc_queue_submit(queue, io));
	TEST_ASSERT_EQUAL_UINT32(1, queue->n_inflight);
	turn(1);
	TEST_ASSERT_EQUAL_UINT(1, n_done);
	TEST_ASSERT_EQUAL_UINT32(0, queue->n_inflight);
	keep = 1;
	io = submit(other, GANTRY_OP_READ, BLOCK);
	memset(gc_slot_buffer(other, io), 0, BLOCK);
	turn(1);
	TEST_ASSERT_EQUAL_PTR(io, done[1]);
	for (unsigned i = 0; i < BLOCK; i++)
		TEST_ASSERT_EQUAL_HEX8(0x5a, ((uint8_t *)gc_slot_buffer(other, io))[i]);
	gc_queue_put(other, io);
	keep = 0;
	submit(queue, GANTRY_OP_FLUSH, 0);
	submit(queue, GANTRY_OP_DISCARD, 0);
	turn(1);
	TEST_ASSERT_EQUAL_UINT(4, n_done);
	close_session(0);
}

static void test_as_many_slots_as_asked_for(void)
{
	struct gc_queue *queue = start();

	for (unsigned i = 0; i < DEPTH; i++)
		submit(queue, GANTRY_OP_READ, 0);
	TEST_ASSERT_NULL(gc_queue_get(queue));
	turn(1);
	TEST_ASSERT_EQUAL_UINT(DEPTH, n_done);
	gc_queue_put(queue, gc_queue_get(queue));
	for (unsigned i = 0; i < DEPTH; i++)
		submit(queue, GANTRY_OP_READ, 0);
	turn(1);
	TEST_ASSERT_EQUAL_UINT(2 * DEPTH, n_done);
	close_session(0);
}

static void test_what_is_told_to_come_again_waits_in_its_order(void)
{
	struct gc_queue *queue;
	struct gantry_io *first, *second, *third;

	FAULT(.kind = FAKE_REFUSED, .opcode = GANTRY_OP_READ, .nth = 2, .more = 2, .rc = -EAGAIN);
	queue = start();
	first = submit(queue, GANTRY_OP_READ, 0);
	second = submit(queue, GANTRY_OP_READ, BLOCK);
	third = submit(queue, GANTRY_OP_FLUSH, 0);
	TEST_ASSERT_EQUAL_UINT32(2, queue->n_waiting);
	TEST_ASSERT_EQUAL_UINT32(3, queue->n_inflight);
	turn(1);
	TEST_ASSERT_EQUAL_UINT(1, n_done);
	turn(6);
	TEST_ASSERT_EQUAL_UINT(3, n_done);
	TEST_ASSERT_EQUAL_PTR(first, done[0]);
	TEST_ASSERT_EQUAL_PTR(second, done[1]);
	TEST_ASSERT_EQUAL_PTR(third, done[2]);
	TEST_ASSERT_EQUAL_UINT32(0, queue->n_waiting);
	close_session(0);
}

static void test_a_refusal_is_the_callers_or_a_status(void)
{
	struct gc_queue *queue;
	struct gantry_io *io;

	FAULT(.kind = FAKE_REFUSED, .opcode = GANTRY_OP_READ, .nth = 1, .rc = -EROFS);
	FAULT(.kind = FAKE_REFUSED, .opcode = GANTRY_OP_READ, .nth = 2, .rc = -EAGAIN);
	FAULT(.kind = FAKE_REFUSED, .opcode = GANTRY_OP_READ, .nth = 3, .rc = -EROFS);
	queue = start();
	io = filled(queue, GANTRY_OP_READ, 0);
	TEST_ASSERT_EQUAL_INT(-EROFS, gc_queue_submit(queue, io));
	TEST_ASSERT_EQUAL_UINT32(0, queue->n_inflight);
	gc_queue_put(queue, io);
	submit(queue, GANTRY_OP_READ, 0);
	turn(2);
	TEST_ASSERT_EQUAL_UINT(1, n_done);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_READ_ONLY, done_status[0]);
	close_session(0);
}

static void test_a_lost_session_gives_each_back_once(void)
{
	struct gc_queue *queue;
	struct gantry_io *io;

	FAULT(.kind = FAKE_REFUSED, .opcode = GANTRY_OP_WRITE, .nth = 2, .more = 99, .rc = -EAGAIN);
	queue = start();
	submit(queue, GANTRY_OP_WRITE, 0);
	submit(queue, GANTRY_OP_WRITE, 0);
	submit(queue, GANTRY_OP_FLUSH, 0);
	rh.lose_rc = -ECONNRESET;
	turn(3);
	TEST_ASSERT_EQUAL_UINT(1, n_closed);
	TEST_ASSERT_EQUAL_INT(-ECONNRESET, reason);
	TEST_ASSERT_EQUAL_STRING("lost on purpose", text);
	TEST_ASSERT_EQUAL_UINT(3, n_done);
	for (unsigned i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_UINT(GANTRY_S_SESSION_LOST, done_status[i]);
	TEST_ASSERT_EQUAL_UINT32(0, queue->n_inflight + queue->n_waiting);
	TEST_ASSERT_EQUAL_UINT32(2, queue->n_quarantined);
	io = filled(queue, GANTRY_OP_READ, 0);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, gc_queue_submit(queue, io));
	gc_queue_put(queue, io);
	expect_clean(1);
}

static void test_buffers_in_doubt_are_not_used_again(void)
{
	struct gc_queue *queue;
	struct gantry_io *io;

	FAULT(.kind = FAKE_STATUS, .opcode = GANTRY_OP_READ, .nth = 1, .more = DEPTH,
	      .status = GANTRY_S_TIMEOUT);
	queue = start();
	io = gc_queue_get(queue);
	gc_io_fill(queue, io, GANTRY_OP_READ, 0, 0, BLOCK, gc_session_shared_offset(session));
	TEST_ASSERT_EQUAL_INT(0, gc_queue_submit(queue, io));
	turn(1);
	TEST_ASSERT_EQUAL_UINT32(0, queue->n_quarantined); /* only the caller's is in doubt */
	TEST_ASSERT_EQUAL_UINT64(1, queue->n_doubtful);
	for (unsigned i = 0; i < DEPTH; i++)
		submit(queue, GANTRY_OP_READ, 0);
	turn(1);
	TEST_ASSERT_EQUAL_UINT32(DEPTH, queue->n_quarantined);
	TEST_ASSERT_NULL(gc_queue_get(queue));
	rh.quiet = 1; /* nobody can touch them in the end */
	close_session(0);
}

static void test_a_second_completion_is_counted_and_ignored(void)
{
	struct gc_queue *queue;

	FAULT(.kind = FAKE_DOUBLED, .opcode = GANTRY_OP_READ, .nth = 1);
	queue = start();
	submit(queue, GANTRY_OP_READ, 0);
	turn(1);
	TEST_ASSERT_EQUAL_UINT(1, n_done);
	TEST_ASSERT_EQUAL_UINT64(1, queue->n_doubled);
	TEST_ASSERT_EQUAL_UINT32(0, queue->n_inflight);
	close_session(0);
}

static void test_the_owner_may_refuse_the_volume(void)
{
	ready_rc = -EMEDIUMTYPE;
	TEST_ASSERT_EQUAL_INT(0, open_session(1));
	turn(4);
	TEST_ASSERT_EQUAL_UINT(0, n_started);
	TEST_ASSERT_EQUAL_UINT(1, n_closed);
	TEST_ASSERT_EQUAL_INT(-EMEDIUMTYPE, reason);
	expect_clean(0);
}

static void test_a_close_at_each_step(void)
{
	for (unsigned step = 0; step < 5; step++) {
		fake_role_fini(&rh);
		setUp();
		TEST_ASSERT_EQUAL_INT(0, open_session(2));
		turn(step);
		close_session(0);
	}
	fake_role_fini(&rh);
	setUp();
	ready_again = 1;
	TEST_ASSERT_EQUAL_INT(0, open_session(2));
	turn(5);
	TEST_ASSERT_EQUAL_UINT(0, n_started);
	close_session(0);
}

static void test_it_cannot_even_begin(void)
{
	rh.open_rc = -ENOMEM;
	TEST_ASSERT_EQUAL_INT(-ENOMEM, open_session(1));
	TEST_ASSERT_NULL(session);
	gc_session_free(NULL);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_data_goes_there_and_back);
	RUN_TEST(test_as_many_slots_as_asked_for);
	RUN_TEST(test_what_is_told_to_come_again_waits_in_its_order);
	RUN_TEST(test_a_refusal_is_the_callers_or_a_status);
	RUN_TEST(test_a_lost_session_gives_each_back_once);
	RUN_TEST(test_buffers_in_doubt_are_not_used_again);
	RUN_TEST(test_a_second_completion_is_counted_and_ignored);
	RUN_TEST(test_the_owner_may_refuse_the_volume);
	RUN_TEST(test_a_close_at_each_step);
	RUN_TEST(test_it_cannot_even_begin);
	return UNITY_END();
}
