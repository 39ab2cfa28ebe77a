/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A requester sends the remaining time of an IO, and holds back writes that overlap a write that
 * timed out.
 */
#include "requester_rig.h"

static uint64_t age_ns; /* how long ago the next IO was submitted */

static void submit_aged_on_lane(void *arg)
{
	struct submission *s = arg;
	struct gantry_io *io = &ios[s->slot];

	gantry_io_begin(io, fw.lane.pub.now_ns - age_ns);
	io->opcode = GANTRY_OP_READ;
	io->length = 4096;
	io->deadline_us = s->deadline_us;
	s->rc = gantry_submit(io);
	if (s->rc != 0)
		gantry_io_end(io);
}

static int submit_aged(unsigned slot, uint32_t deadline_us, uint64_t age)
{
	struct submission s = {.slot = slot, .deadline_us = deadline_us};

	age_ns = age;
	gn_worker_call(fw.worker, submit_aged_on_lane, &s);
	fake_settle(&fw);
	return s.rc;
}

static int was_sent(void)
{
	uint8_t imm[GANTRY_IMM_MAX];

	fake_settle(&fw);
	return fake_taken(producer, imm);
}

static void the_wire_carries_the_time_left(void)
{
	fake_clock_advance(10 * GN_NS_PER_S);
	start();
	TEST_ASSERT_EQUAL_INT(0, submit_aged(0, 2000000, 0));
	TEST_ASSERT_EQUAL_UINT32(2000000, taken().deadline_us);
	TEST_ASSERT_EQUAL_INT(0, submit_aged(1, 2000000, GN_NS_PER_S / 2));
	TEST_ASSERT_EQUAL_UINT32(1500000, taken().deadline_us);
	/* the requester sets a deadline if the IO has none */
	TEST_ASSERT_EQUAL_INT(0, submit_aged(2, 0, GN_NS_PER_S / 2));
	TEST_ASSERT_EQUAL_UINT32(IO_TIMEOUT_NS / GN_NS_PER_US, taken().deadline_us);
}

static void an_expired_io_is_not_sent(void)
{
	fake_clock_advance(10 * GN_NS_PER_S);
	start();
	TEST_ASSERT_EQUAL_INT(0, submit_aged(0, 2000000, 2 * GN_NS_PER_S));
	TEST_ASSERT_EQUAL_UINT(1, n_done[0]);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_CANCELED, status[0]);
	TEST_ASSERT_EQUAL_INT(0, was_sent());
}

static void rejected_io_keeps_its_original_deadline_and_flags(void)
{
	fake_clock_advance(10 * GN_NS_PER_S);
	start();
	fake_queue_refuse(producer, -EAGAIN);
	ios[0].flags = GANTRY_IO_CRC; /* not sent to this peer */
	TEST_ASSERT_EQUAL_INT(-EAGAIN, submit_aged(0, 2000000, GN_NS_PER_S));
	TEST_ASSERT_EQUAL_UINT32(2000000, ios[0].deadline_us);
	TEST_ASSERT_EQUAL_UINT(GANTRY_IO_CRC, ios[0].flags);
	TEST_ASSERT_EQUAL_INT(-EAGAIN, submit_aged(0, 0, GN_NS_PER_S));
	TEST_ASSERT_EQUAL_UINT32(0, ios[0].deadline_us);
}

/* Let the write of slot 0 time out. Returns its descriptor as it was sent. */
static struct gantry_io write_that_timed_out(void)
{
	struct gantry_io wire;

	start();
	opcode = GANTRY_OP_WRITE;
	TEST_ASSERT_EQUAL_INT(0, submit(0, 2000000));
	wire = taken();
	fake_clock_advance(2 * GN_NS_PER_S);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_TIMEOUT, status[0]);
	TEST_ASSERT_EQUAL_UINT32(1, gn_requester_late_writes(link));
	return wire;
}

static void an_overlapping_write_waits_for_the_late_answer(void)
{
	struct gantry_io wire = write_that_timed_out();

	for (unsigned op = GANTRY_OP_WRITE; op <= GANTRY_OP_DISCARD; op++) {
		opcode = (uint8_t)op;
		if (op == GANTRY_OP_FLUSH)
			continue;
		TEST_ASSERT_EQUAL_INT(0, submit(op, 0)); /* a range that does not overlap */
		TEST_ASSERT_EQUAL_INT(1, was_sent());
	}
	opcode = GANTRY_OP_WRITE_ZEROES;
	TEST_ASSERT_EQUAL_INT(0, submit(0, 0));
	TEST_ASSERT_EQUAL_INT(0, was_sent());
	answer(wire, GANTRY_S_OK);
	TEST_ASSERT_EQUAL_INT(1, was_sent());
	TEST_ASSERT_EQUAL_UINT(1, n_done[0]);
	TEST_ASSERT_EQUAL_UINT32(0, gn_requester_late_writes(link));
	TEST_ASSERT_EQUAL_INT(0, gn_fence_is_up(&fence));
}

static void a_read_and_a_flush_do_not_wait(void)
{
	write_that_timed_out();
	opcode = GANTRY_OP_READ;
	TEST_ASSERT_EQUAL_INT(0, submit(0, 0));
	TEST_ASSERT_EQUAL_INT(1, was_sent());
	opcode = GANTRY_OP_FLUSH;
	TEST_ASSERT_EQUAL_INT(0, submit(2, 0));
	TEST_ASSERT_EQUAL_INT(1, was_sent());
}

static void a_write_that_waits_past_its_deadline_was_never_sent(void)
{
	struct gantry_io wire = write_that_timed_out();

	TEST_ASSERT_EQUAL_INT(0, submit(0, 1000000));
	fake_clock_advance(GN_NS_PER_S);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(2, n_done[0]);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_CANCELED, status[0]);
	answer(wire, GANTRY_S_OK);
	TEST_ASSERT_EQUAL_INT(0, was_sent());
}

static void an_answer_to_a_write_that_waits_breaks(void)
{
	struct gantry_io wire = write_that_timed_out();

	TEST_ASSERT_EQUAL_INT(0, submit(0, 0));
	wire.tag += 1; /* the next tag of the slot, which was not sent yet */
	answer(wire, GANTRY_S_OK);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, n_broken);
	TEST_ASSERT_EQUAL_INT(-EPROTO, broken_reason);
}

static void session_ends_after_the_fence_timeout(void)
{
	write_that_timed_out();
	fake_clock_advance(FENCE_TIMEOUT_NS - 1);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(0, n_broken);
	fake_clock_advance(1);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, n_broken);
	TEST_ASSERT_EQUAL_INT(-ETIME, broken_reason);
}

static void waiting_write_ends_with_the_session(void)
{
	write_that_timed_out();
	TEST_ASSERT_EQUAL_INT(0, submit(0, 0));
	gn_requester_stop(link);
	TEST_ASSERT_EQUAL_UINT(2, n_done[0]);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_SESSION_LOST, status[0]);
	TEST_ASSERT_EQUAL_INT(0, gn_fence_is_up(&fence));
	/* after the stop no answer can arrive */
	TEST_ASSERT_EQUAL_UINT32(UINT32_MAX, gn_requester_late_writes(link));
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, submit(0, 0));
}

static void a_requester_that_sends_no_more_keeps_its_fence(void)
{
	write_that_timed_out();
	TEST_ASSERT_EQUAL_INT(0, submit(0, 0));
	gn_requester_stop_sending(link);
	TEST_ASSERT_EQUAL_UINT(1, n_done[0]);
	TEST_ASSERT_EQUAL_INT(1, gn_fence_is_up(&fence));
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, submit(2, 0));
	TEST_ASSERT_EQUAL_INT(0, was_sent());
	gn_requester_stop(link);
	TEST_ASSERT_EQUAL_UINT(2, n_done[0]);
	TEST_ASSERT_EQUAL_INT(0, gn_fence_is_up(&fence));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(the_wire_carries_the_time_left);
	RUN_TEST(an_expired_io_is_not_sent);
	RUN_TEST(rejected_io_keeps_its_original_deadline_and_flags);
	RUN_TEST(an_overlapping_write_waits_for_the_late_answer);
	RUN_TEST(a_read_and_a_flush_do_not_wait);
	RUN_TEST(a_write_that_waits_past_its_deadline_was_never_sent);
	RUN_TEST(an_answer_to_a_write_that_waits_breaks);
	RUN_TEST(session_ends_after_the_fence_timeout);
	RUN_TEST(waiting_write_ends_with_the_session);
	RUN_TEST(a_requester_that_sends_no_more_keeps_its_fence);
	return UNITY_END();
}
