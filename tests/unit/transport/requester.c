/* SPDX-License-Identifier: BSD-3-Clause */
/* A requester: each IO completes exactly once, with any answer of the peer, and without one. */
#include "requester_rig.h"

#include "gantry/random.h"

static void an_answer_completes_its_io(void)
{
	struct gantry_io wire;
	uint32_t tag;

	start();
	TEST_ASSERT_EQUAL_INT(0, submit(3, 0));
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(0, fake_peek(producer, &producer->n_unflushed));
	wire = taken();
	TEST_ASSERT_EQUAL_UINT(GANTRY_OP_READ, wire.opcode);
	TEST_ASSERT_EQUAL_UINT64(4096 * 4, wire.offset);
	TEST_ASSERT_TRUE((wire.tag & 0xffff) < DEPTH);
	TEST_ASSERT_EQUAL_UINT(0, n_done[3]);
	tag = wire.tag;
	wire.flags = GANTRY_IO_CRC | 0xf0;
	wire.crc32c = 77;
	wire.hop_ns[2] = 55;
	answer(wire, GANTRY_S_RANGE);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, n_done[3]);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_RANGE, status[3]);
	TEST_ASSERT_EQUAL_UINT(GANTRY_IO_CRC, ios[3].flags);
	TEST_ASSERT_EQUAL_UINT(77, ios[3].crc32c);
	TEST_ASSERT_EQUAL_UINT(55, ios[3].hop_ns[2]);
	TEST_ASSERT_EQUAL_INT(0, submit(3, 0));
	TEST_ASSERT_NOT_EQUAL(tag, taken().tag);
}

static void status_out_of_range_is_unknown(void)
{
	start();
	TEST_ASSERT_EQUAL_INT(0, submit(0, 0));
	answer(taken(), GANTRY_S_COUNT);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_UNKNOWN, status[0]);
	TEST_ASSERT_EQUAL_UINT(0, n_broken);
}

static void io_that_cannot_be_sent_stays_with_its_owner(void)
{
	const struct gantry_hop *rest = ios[0].hop;

	TEST_ASSERT_EQUAL_INT(-ENOTCONN, submit(0, 0));
	start();
	fake_queue_refuse(producer, -EAGAIN);
	TEST_ASSERT_EQUAL_INT(-EAGAIN, submit(0, 0));
	TEST_ASSERT_EQUAL_PTR(rest, ios[0].hop);
	fake_queue_refuse(producer, 0);
	for (unsigned i = 0; i < DEPTH; i++)
		TEST_ASSERT_EQUAL_INT(0, submit(i, 0));
	TEST_ASSERT_EQUAL_INT(-EAGAIN, submit(DEPTH, 0));
	TEST_ASSERT_EQUAL_PTR(rest, ios[DEPTH].hop);
	answer(taken(), 0);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_INT(0, submit(DEPTH, 0));
	fake_queue_refuse(producer, -ENOTCONN);
	TEST_ASSERT_EQUAL_INT(-EAGAIN, submit(DEPTH + 1, 0));
}

/* A poller that submits a descriptor in each turn, until it is accepted. */
static int offer(void *self)
{
	int *accepted = self;

	if (*accepted || gantry_submit(&ios[0]) != 0)
		return 0;
	__atomic_store_n(accepted, 1, __ATOMIC_RELEASE);
	return 1;
}

static void begin_on_lane(void *arg)
{
	(void)arg;
	gantry_io_begin(&ios[0], gn_now_ns());
	ios[0].opcode = GANTRY_OP_NOP;
}

static void lane_stays_awake_after_eagain(void)
{
	int accepted = 0;
	const struct gantry_poller poller = {.poll = offer, .self = &accepted};

	start();
	fake_queue_refuse(producer, -EAGAIN);
	gn_worker_call(fw.worker, begin_on_lane, NULL);
	TEST_ASSERT_EQUAL_INT(0, gn_worker_add(fw.worker, &poller));
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_INT(0, accepted);
	fake_queue_refuse(producer, 0); /* no doorbell: the lane must be awake to try again */
	for (unsigned i = 0; i < 1000000 && !__atomic_load_n(&accepted, __ATOMIC_ACQUIRE); i++)
		sched_yield();
	TEST_ASSERT_EQUAL_INT(1, __atomic_load_n(&accepted, __ATOMIC_ACQUIRE));
	gn_worker_remove(fw.worker, &accepted);
}

static void deadline_completes_the_io_and_the_late_answer_frees_its_slot(void)
{
	struct gantry_io wire;

	start();
	TEST_ASSERT_EQUAL_INT(0, submit(0, 2000000));
	TEST_ASSERT_EQUAL_INT(0, submit(1, 0));
	wire = taken();
	fake_clock_advance(2 * GN_NS_PER_S - 1);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(0, n_done[0]);
	fake_clock_advance(1);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, n_done[0]);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_TIMEOUT, status[0]);
	TEST_ASSERT_EQUAL_UINT(0, n_done[1]);
	fake_clock_advance(IO_TIMEOUT_NS);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_TIMEOUT, status[1]);
	for (unsigned i = 2; i < DEPTH; i++)
		TEST_ASSERT_EQUAL_INT(0, submit(i, 0));
	TEST_ASSERT_EQUAL_INT(-EAGAIN, submit(0, 0));
	answer(wire, GANTRY_S_OK);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, n_done[0]);
	TEST_ASSERT_EQUAL_UINT64(1, gn_host_counter(&fw.host, "late_replies"));
	TEST_ASSERT_EQUAL_INT(0, submit(0, 0));
	TEST_ASSERT_EQUAL_UINT(0, n_broken);
	answer(wire, GANTRY_S_OK); /* an old tag: the slot has a new generation */
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, n_done[0]);
	TEST_ASSERT_EQUAL_UINT(1, n_broken);
}

static void buffers_are_settled_after_the_late_answers(void)
{
	struct gantry_io first, second;
	uint64_t at;

	start();
	TEST_ASSERT_EQUAL_INT(0, submit(0, 1000000));
	TEST_ASSERT_EQUAL_INT(0, submit(1, 2000000));
	first = taken();
	second = taken();
	at = gn_now_ns() + GN_NS_PER_S;
	TEST_ASSERT_EQUAL_UINT64(UINT64_MAX, settled_ns());
	fake_clock_advance(3 * GN_NS_PER_S);
	TEST_ASSERT_EQUAL_UINT64(at, settled_ns());
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_TIMEOUT, status[1]);
	answer(first, GANTRY_S_IO);
	TEST_ASSERT_EQUAL_UINT64(at + GN_NS_PER_S, settled_ns());
	answer(second, GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT64(UINT64_MAX, settled_ns());
	TEST_ASSERT_EQUAL_UINT64(2, gn_host_counter(&fw.host, "late_replies"));
}

/*
 * Replies with TIMEOUT or UNKNOWN do not release the buffer, whether they arrive before or after
 * the deadline. After the stop no reply can arrive.
 */
static void answers_timeout_and_unknown_do_not_settle_a_buffer(void)
{
	struct gantry_io late;
	uint64_t at;

	start();
	TEST_ASSERT_EQUAL_INT(0, submit(0, 0));
	TEST_ASSERT_EQUAL_INT(0, submit(1, 1000000));
	answer(taken(), GANTRY_S_NOSPC);
	late = taken();
	TEST_ASSERT_EQUAL_UINT64(UINT64_MAX, settled_ns());
	at = gn_now_ns() + GN_NS_PER_S;
	fake_clock_advance(GN_NS_PER_S);
	fake_settle(&fw);
	fake_clock_advance(GN_NS_PER_S);
	TEST_ASSERT_EQUAL_INT(0, submit(2, 0));
	answer(taken(), GANTRY_S_TIMEOUT);
	TEST_ASSERT_EQUAL_UINT64(at, settled_ns());
	answer(late, GANTRY_S_UNKNOWN);
	TEST_ASSERT_EQUAL_UINT64(at, settled_ns());
	gn_requester_stop(link);
	TEST_ASSERT_EQUAL_UINT64(0, settled_ns());
}

static void session_ends_if_the_peer_owes_an_answer_for_each_slot(void)
{
	start();
	for (unsigned i = 0; i < DEPTH; i++)
		TEST_ASSERT_EQUAL_INT(0, submit(i, 0));
	fake_clock_advance(IO_TIMEOUT_NS);
	fake_settle(&fw);
	fake_settle(&fw);
	for (unsigned i = 0; i < DEPTH; i++)
		TEST_ASSERT_EQUAL_UINT(1, n_done[i]);
	TEST_ASSERT_EQUAL_UINT(1, n_broken);
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, broken_reason);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, submit(0, 0));
}

/*
 * Submit an IO, and inject a number of equal forged replies (times), each of len bytes and with the
 * tag of the IO XORed with tag_xor. Expect that the requester breaks once, and ignores later
 * replies.
 */
static void expect_broken(uint32_t tag_xor, uint32_t len, unsigned times)
{
	struct gantry_io wire;

	start();
	TEST_ASSERT_EQUAL_INT(0, submit(0, 0));
	wire = taken();
	wire.tag ^= tag_xor;
	for (unsigned i = 0; i < times; i++)
		fake_arrive(consumer, &wire, len);
	wire.tag ^= tag_xor;
	fake_arrive(consumer, &wire, GANTRY_IO_WIRE_BYTES);
	fake_settle(&fw);
	fake_arrive(consumer, &wire, GANTRY_IO_WIRE_BYTES);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, n_broken);
	TEST_ASSERT_EQUAL_INT(-EPROTO, broken_reason);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, submit(1, 0));
}

static void a_slot_that_is_not_in_flight_breaks(void)
{
	expect_broken(1, GANTRY_IO_WIRE_BYTES, 1);
	TEST_ASSERT_EQUAL_UINT(0, n_done[0]);
}

static void a_slot_behind_the_depth_breaks(void)
{
	expect_broken(0xfff8, GANTRY_IO_WIRE_BYTES, 1);
	TEST_ASSERT_EQUAL_UINT(0, n_done[0]);
}

static void another_generation_breaks(void)
{
	expect_broken(0x30000, GANTRY_IO_WIRE_BYTES, 1);
	TEST_ASSERT_EQUAL_UINT(0, n_done[0]);
}

static void a_short_answer_breaks(void)
{
	expect_broken(0, GANTRY_IO_WIRE_BYTES - 1, 1);
	TEST_ASSERT_EQUAL_UINT(0, n_done[0]);
}

static void the_second_answer_to_one_io_breaks(void)
{
	expect_broken(0, GANTRY_IO_WIRE_BYTES, 2);
	TEST_ASSERT_EQUAL_UINT(1, n_done[0]);
}

static void a_broken_queue_breaks(void)
{
	start();
	fake_queue_break(consumer, -EPROTO);
	fake_settle(&fw);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, n_broken);
	TEST_ASSERT_EQUAL_INT(-EPROTO, broken_reason);
}

struct stop_with {
	struct gantry_io wire;
};

/* Runs on the lane: stops the requester when a reply has arrived that was not polled yet. */
static void stop_on_lane(void *arg)
{
	struct stop_with *with = arg;

	answer(with->wire, GANTRY_S_OK);
	resubmit = 1;
	gn_requester_stop(link);
	gn_requester_stop(link);
}

static void stop_takes_published_answers_and_fails_the_other_ios(void)
{
	struct stop_with with;

	start();
	TEST_ASSERT_EQUAL_INT(0, submit(0, 0));
	TEST_ASSERT_EQUAL_INT(0, submit(1, 0));
	with.wire = taken();
	gn_worker_call(fw.worker, stop_on_lane, &with);
	TEST_ASSERT_EQUAL_UINT(1, n_done[0]);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, status[0]);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, resubmit_rc);
	TEST_ASSERT_EQUAL_UINT(1, n_done[1]);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_SESSION_LOST, status[1]);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, submit(2, 0));
	TEST_ASSERT_EQUAL_UINT(0, n_broken);
	gn_requester_stop(NULL);
}

/* If the peer runs on the same thread, the reply arrives inside submit. */
static void an_answer_inside_the_send_completes_its_io(void)
{
	start();
	producer->echo = consumer;
	for (unsigned i = 0; i < 3 * DEPTH; i++) {
		TEST_ASSERT_EQUAL_INT(0, submit(1, 0));
		TEST_ASSERT_EQUAL_UINT(i + 1, n_done[1]);
		TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, status[1]);
		taken();
	}
	fake_queue_refuse(producer, -EAGAIN);
	TEST_ASSERT_EQUAL_INT(-EAGAIN, submit(1, 0));
	TEST_ASSERT_EQUAL_UINT(3 * DEPTH, n_done[1]);
	fake_queue_refuse(producer, 0);
	producer->echo = NULL;
	for (unsigned i = 0; i < DEPTH; i++) /* no slot was lost */
		TEST_ASSERT_EQUAL_INT(0, submit(i, 0));
	TEST_ASSERT_EQUAL_INT(-EAGAIN, submit(DEPTH, 0));
	TEST_ASSERT_EQUAL_UINT(0, n_broken);
}

static void stop_removes_the_local_peer(void)
{
	TEST_ASSERT_NULL(consumer->peer);
	start();
	TEST_ASSERT_NOT_NULL(consumer->peer);
	TEST_ASSERT_EQUAL_PTR(fw.worker, gn_requester_thread(link));
	gn_requester_stop(link);
	TEST_ASSERT_NULL(consumer->peer);
}

static void a_link_that_is_idle_lets_the_lane_sleep(void)
{
	uint32_t polls;

	start();
	TEST_ASSERT_EQUAL_INT(0, submit(0, 0));
	fake_settle(&fw);
	while (!fake_peek(consumer, (uint32_t *)&consumer->armed))
		; /* the lane is about to sleep */
	polls = fake_peek(producer, &producer->n_flushes);
	answer(taken(), GANTRY_S_OK); /* the doorbell wakes the lane */
	while (fake_peek(consumer, &consumer->n_in) != 0)
		;
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, n_done[0]);
	TEST_ASSERT_EQUAL_UINT(polls, fake_peek(producer, &producer->n_flushes));
}

/*
 * Thousands of IOs, answered in any order: none is lost, none completes twice, and no two IOs in
 * flight have the same slot in their tags.
 */
static void any_order_of_answers_completes_each_once(void)
{
	struct gantry_io pending[DEPTH];
	unsigned n_pending = 0, n_submitted[IOS] = {0}, total = 0;
	struct gantry_random r;

	gantry_random_seed(&r, 42);
	start();
	while (total < 3000) {
		unsigned slot = (unsigned)gantry_random_below(&r, DEPTH);

		if (gantry_random_below(&r, 2) && n_done[slot] == n_submitted[slot] &&
		    submit(slot, 0) == 0) {
			n_submitted[slot]++;
			total++;
			pending[n_pending] = taken();
			for (unsigned i = 0; i < n_pending; i++)
				TEST_ASSERT_NOT_EQUAL(pending[i].tag & 0xffff,
						      pending[n_pending].tag & 0xffff);
			n_pending++;
		} else if (n_pending > 0) {
			unsigned i = (unsigned)gantry_random_below(&r, n_pending);

			answer(pending[i], GANTRY_S_OK);
			pending[i] = pending[--n_pending];
			fake_settle(&fw);
		}
	}
	while (n_pending > 0)
		answer(pending[--n_pending], GANTRY_S_OK);
	fake_settle(&fw);
	for (unsigned i = 0; i < DEPTH; i++)
		TEST_ASSERT_EQUAL_UINT(n_submitted[i], n_done[i]);
	TEST_ASSERT_EQUAL_UINT(0, n_broken);
	TEST_ASSERT_EQUAL_UINT64(0, gn_host_counter(&fw.host, "double_completions"));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(an_answer_completes_its_io);
	RUN_TEST(status_out_of_range_is_unknown);
	RUN_TEST(io_that_cannot_be_sent_stays_with_its_owner);
	RUN_TEST(lane_stays_awake_after_eagain);
	RUN_TEST(deadline_completes_the_io_and_the_late_answer_frees_its_slot);
	RUN_TEST(buffers_are_settled_after_the_late_answers);
	RUN_TEST(answers_timeout_and_unknown_do_not_settle_a_buffer);
	RUN_TEST(session_ends_if_the_peer_owes_an_answer_for_each_slot);
	RUN_TEST(a_slot_that_is_not_in_flight_breaks);
	RUN_TEST(a_slot_behind_the_depth_breaks);
	RUN_TEST(another_generation_breaks);
	RUN_TEST(a_short_answer_breaks);
	RUN_TEST(the_second_answer_to_one_io_breaks);
	RUN_TEST(a_broken_queue_breaks);
	RUN_TEST(stop_takes_published_answers_and_fails_the_other_ios);
	RUN_TEST(an_answer_inside_the_send_completes_its_io);
	RUN_TEST(stop_removes_the_local_peer);
	RUN_TEST(a_link_that_is_idle_lets_the_lane_sleep);
	RUN_TEST(any_order_of_answers_completes_each_once);
	return UNITY_END();
}
