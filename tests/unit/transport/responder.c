/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A responder checks each request, executes it once and answers it once. It can end in any state,
 * independently of the peer.
 */
#include "responder_rig.h"

static void a_request_goes_down_and_its_answer_back(void)
{
	struct gantry_io wire;

	make_port(0);
	ask(request(0xabcd0007, GANTRY_OP_WRITE));
	TEST_ASSERT_EQUAL_UINT(1, n_held);
	TEST_ASSERT_EQUAL_PTR(ft.memory + 512, held[0]->data);
	TEST_ASSERT_EQUAL_UINT(3000000, held[0]->deadline_us);
	no_reply();
	fake_clock_advance(7000);
	finish(GANTRY_S_OK);
	wire = replied();
	TEST_ASSERT_EQUAL_HEX32(0xabcd0007, wire.tag);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, wire.status);
	TEST_ASSERT_EQUAL_UINT(7000, wire.hop_ns[GANTRY_HOP_TARGET]);
	TEST_ASSERT_EQUAL_UINT(0, fake_peek(producer, &producer->n_unflushed));
	TEST_ASSERT_EQUAL_UINT64(1, done());
	TEST_ASSERT_EQUAL_UINT64(1024, counted().bytes);
	TEST_ASSERT_EQUAL_UINT64(1, counted().by_latency[gn_latency_class(7000)]);
	TEST_ASSERT_EQUAL_UINT(2 * DEPTH, fake_peek(consumer, &consumer->posted));
}

/* A peer can send any length with a flush. */
static void a_failed_io_and_a_flush_count_no_bytes(void)
{
	make_port(0);
	ask(request(1, GANTRY_OP_FLUSH));
	finish(GANTRY_S_OK);
	ask(request(2, GANTRY_OP_READ));
	finish(GANTRY_S_IO);
	TEST_ASSERT_EQUAL_UINT64(1, done());
	TEST_ASSERT_EQUAL_UINT64(1, counted().failed);
	TEST_ASSERT_EQUAL_UINT64(0, counted().bytes);
}

static void invalid_io_fails_and_does_not_break_the_queue(void)
{
	static const struct {
		struct gantry_io io;
		unsigned status;
	} table[] = {
		{{.opcode = GANTRY_OP_COUNT}, GANTRY_S_INVALID},
		{{.opcode = 255}, GANTRY_S_INVALID},
		{{.opcode = GANTRY_OP_DISCARD, .length = 512}, GANTRY_S_UNSUPPORTED},
		{{.opcode = GANTRY_OP_READ, .flags = 8, .length = 512, .region = 1},
		 GANTRY_S_INVALID},
		{{.opcode = GANTRY_OP_READ, .length = 0, .region = 1}, GANTRY_S_INVALID},
		{{.opcode = GANTRY_OP_READ, .length = 513, .region = 1}, GANTRY_S_INVALID},
		{{.opcode = GANTRY_OP_READ, .length = 512, .offset = 1, .region = 1},
		 GANTRY_S_INVALID},
		{{.opcode = GANTRY_OP_READ, .length = 2560, .region = 1}, GANTRY_S_INVALID},
		{{.opcode = GANTRY_OP_READ, .length = 512, .offset = 1 << 20, .region = 1},
		 GANTRY_S_RANGE},
		{{.opcode = GANTRY_OP_READ,
		  .length = 1024,
		  .offset = UINT64_MAX - 511,
		  .region = 1},
		 GANTRY_S_RANGE},
		{{.opcode = GANTRY_OP_WRITE_ZEROES, .length = 1u << 31}, GANTRY_S_RANGE},
		{{.opcode = GANTRY_OP_EXTENTS, .length = 1u << 31, .region = 1}, GANTRY_S_RANGE},
		{{.opcode = GANTRY_OP_EXTENTS, .length = 0, .region = 1}, GANTRY_S_INVALID},
		{{.opcode = GANTRY_OP_EXTENTS, .length = 512, .region = 2}, GANTRY_S_ACCESS},
		{{.opcode = GANTRY_OP_EXTENTS, .length = 512, .region = 1, .region_offset = 1},
		 GANTRY_S_RANGE},
		{{.opcode = GANTRY_OP_READ, .length = 512, .region = 0}, GANTRY_S_ACCESS},
		{{.opcode = GANTRY_OP_READ, .length = 512, .region = 4}, GANTRY_S_ACCESS},
		{{.opcode = GANTRY_OP_READ, .length = 512, .region = UINT32_MAX}, GANTRY_S_ACCESS},
		{{.opcode = GANTRY_OP_READ, .length = 512, .region = 2}, GANTRY_S_ACCESS},
		{{.opcode = GANTRY_OP_WRITE, .length = 512, .region = 3}, GANTRY_S_ACCESS},
		{{.opcode = GANTRY_OP_READ,
		  .length = 512,
		  .region = 1,
		  .region_offset = REGION - 511},
		 GANTRY_S_RANGE},
		{{.opcode = GANTRY_OP_READ,
		  .length = 512,
		  .region = 1,
		  .region_offset = UINT64_MAX},
		 GANTRY_S_RANGE},
	};

	rules.volume.ops |= 1u << GANTRY_OP_EXTENTS;
	make_port(0);
	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct gantry_io io = table[i].io, wire;

		io.tag = i << 16;
		ask(io);
		wire = replied();
		TEST_ASSERT_EQUAL_UINT(table[i].status, wire.status);
		TEST_ASSERT_EQUAL_UINT(i << 16, wire.tag);
	}
	TEST_ASSERT_EQUAL_UINT(0, n_seen);
	TEST_ASSERT_EQUAL_UINT(0, n_broken);
	TEST_ASSERT_EQUAL_UINT64(sizeof(table) / sizeof(table[0]), counted().failed);
	port->rules.volume.flags = GANTRY_VOLUME_READ_ONLY;
	gn_io_rules_ready(&port->rules);
	ask(request(1, GANTRY_OP_WRITE));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_READ_ONLY, replied().status);
	ask(request(1, GANTRY_OP_READ));
	ask((struct gantry_io){.opcode = GANTRY_OP_FLUSH, .offset = 3, .length = 5});
	ask((struct gantry_io){.opcode = GANTRY_OP_NOP, .region = 99});
	TEST_ASSERT_EQUAL_UINT(3, n_seen);
	while (n_held > 0)
		finish(GANTRY_S_OK);
}

/* Their range can be longer than max_io and than the region; their buffer has a fixed size. */
static void extents_use_a_buffer_of_fixed_size(void)
{
	struct gantry_io io = {
		.opcode = GANTRY_OP_EXTENTS, .tag = 3, .length = 1 << 20, .region = 3};

	rules.volume.ops |= 1u << GANTRY_OP_EXTENTS;
	rules.volume.flags = GANTRY_VOLUME_READ_ONLY;
	make_port(0);
	ask(io);
	TEST_ASSERT_EQUAL_UINT(1, n_held);
	TEST_ASSERT_EQUAL_PTR(ft.memory, held[0]->data);
	TEST_ASSERT_EQUAL_UINT(1 << 20, held[0]->length);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, replied().status);
}

static void extents_of_a_volume_without_them_fail(void)
{
	make_port(0);
	ask((struct gantry_io){.opcode = GANTRY_OP_EXTENTS, .length = 512, .region = 1});
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_UNSUPPORTED, replied().status);
}

static void a_terminal_that_refuses_for_good_fails_the_io(void)
{
	make_port(0);
	terminal_rc = -EROFS;
	ask(request(5, GANTRY_OP_READ));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_READ_ONLY, replied().status);
	terminal_rc = -ENODEV;
	ask(request(6, GANTRY_OP_READ));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, replied().status);
}

static void a_terminal_that_is_full_is_asked_again(void)
{
	make_port(0);
	terminal_rc = -EAGAIN;
	ask(request(5, GANTRY_OP_READ));
	ask(request(6, GANTRY_OP_READ));
	no_reply();
	TEST_ASSERT_TRUE(n_refused >= 2);
	terminal_rc = 0;
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(2, n_held);
	finish(GANTRY_S_OK);
	finish(GANTRY_S_IO);
	TEST_ASSERT_EQUAL_UINT(5, replied().tag);
	TEST_ASSERT_EQUAL_UINT(6, replied().tag);
}

static void io_not_accepted_by_its_deadline_is_canceled(void)
{
	struct gantry_io io = request(5, GANTRY_OP_READ);

	make_port(0);
	terminal_rc = -EAGAIN;
	io.deadline_us = 1000;
	ask(io);
	io.tag = 6;
	io.deadline_us = 0;
	ask(io);
	fake_clock_advance(GN_NS_PER_MS - 1);
	fake_settle(&fw);
	no_reply();
	fake_clock_advance(1);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_CANCELED, replied().status);
	no_reply();
	fake_clock_advance(3 * GN_NS_PER_S);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(6, replied().tag);
	TEST_ASSERT_EQUAL_UINT(0, n_seen);
}

static void replies_wait_for_the_peer_in_order(void)
{
	make_port(0);
	terminal_now = 1;
	fake_queue_refuse(producer, -EAGAIN);
	for (uint32_t i = 0; i < DEPTH; i++)
		ask(request(i, GANTRY_OP_READ));
	no_reply();
	TEST_ASSERT_EQUAL_UINT(DEPTH, n_seen);
	fake_queue_refuse(producer, 0);
	fake_settle(&fw);
	for (uint32_t i = 0; i < DEPTH; i++)
		TEST_ASSERT_EQUAL_UINT(i, replied().tag);
	ask(request(9, GANTRY_OP_READ));
	TEST_ASSERT_EQUAL_UINT(9, replied().tag);
	TEST_ASSERT_EQUAL_UINT(0, n_broken);
}

static void let_one_pass(void *arg)
{
	(void)arg;
	producer->send_rc = 0;
	gantry_fail(held[0], GANTRY_S_OK);
	n_held = 0;
}

static void a_reply_does_not_overtake_one_that_waits(void)
{
	make_port(0);
	ask(request(1, GANTRY_OP_READ));
	ask(request(2, GANTRY_OP_READ));
	fake_queue_refuse(producer, -EAGAIN);
	finish(GANTRY_S_OK);
	/* the first reply waits; the queue accepts again, and then the second IO completes */
	gn_worker_call(fw.worker, let_one_pass, NULL);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, replied().tag);
	TEST_ASSERT_EQUAL_UINT(2, replied().tag);
}

static void more_in_flight_than_agreed_breaks(void)
{
	make_port(0);
	for (uint32_t i = 0; i < DEPTH; i++)
		ask(request(i, GANTRY_OP_READ));
	TEST_ASSERT_EQUAL_UINT(0, n_broken);
	ask(request(9, GANTRY_OP_READ));
	ask(request(9, GANTRY_OP_READ));
	TEST_ASSERT_EQUAL_UINT(1, n_broken);
	TEST_ASSERT_EQUAL_INT(-EPROTO, broken_reason);
	TEST_ASSERT_EQUAL_UINT(DEPTH, n_seen);
	while (n_held > 0)
		finish(GANTRY_S_OK);
	no_reply();
}

static void a_short_message_breaks(void)
{
	struct gantry_io io = request(1, GANTRY_OP_READ);

	make_port(0);
	fake_arrive(consumer, &io, GANTRY_IO_WIRE_BYTES - 8);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, n_broken);
	TEST_ASSERT_EQUAL_UINT(0, n_seen);
}

static void a_broken_queue_breaks(void)
{
	make_port(0);
	fake_queue_break(consumer, -EPROTO);
	fake_settle(&fw);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, n_broken);
}

static void a_second_completion_is_ignored(void)
{
	struct gantry_io *io;
	enum gantry_status ok = GANTRY_S_OK;

	make_port(0);
	ask(request(1, GANTRY_OP_READ));
	io = held[0];
	finish(GANTRY_S_OK);
	held[n_held++] = io;
	gn_worker_call(fw.worker, finish_on_lane, &ok);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, replied().tag);
	no_reply();
	TEST_ASSERT_EQUAL_UINT64(1, gn_host_counter(&fw.host, "double_completions"));
}

static void idle_comes_once_and_after_the_last_reply(void)
{
	make_port(0);
	ask(request(1, GANTRY_OP_READ));
	gn_responder_quiesce(port);
	ask(request(2, GANTRY_OP_READ));
	TEST_ASSERT_EQUAL_UINT(0, n_idle);
	TEST_ASSERT_EQUAL_UINT(1, n_seen);
	fake_queue_refuse(producer, -EAGAIN);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(0, n_idle);
	fake_queue_refuse(producer, 0);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, n_idle);
	TEST_ASSERT_EQUAL_UINT(1, replied().tag);
	no_reply();
	gn_responder_quiesce(port);
	gn_responder_abandon(port);
	TEST_ASSERT_EQUAL_UINT(1, n_idle);
}

static void quiesce_at_rest_is_idle_at_once(void)
{
	make_port(0);
	gn_responder_quiesce(port);
	TEST_ASSERT_EQUAL_UINT(1, n_idle);
}

/*
 * The responder sends the last reply and rings the doorbell of the peer before it reports that it
 * is idle. It does all that inside the completion of the IO, because the responder may be destroyed
 * before the lane polls it again.
 */
static void quiesce_then_finish_on_lane(void *arg)
{
	(void)arg;
	gn_responder_quiesce(port);
	gantry_fail(held[0], GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(1, n_idle);
	TEST_ASSERT_EQUAL_UINT(0, producer->n_unflushed);
}

static void the_doorbell_rings_before_idle(void)
{
	make_port(0);
	ask(request(1, GANTRY_OP_READ));
	gn_worker_call(fw.worker, quiesce_then_finish_on_lane, NULL);
	n_held = 0;
}

static void abandoned_responder_waits_only_for_its_terminal(void)
{
	make_port(0);
	ask(request(1, GANTRY_OP_READ)); /* held by the terminal */
	terminal_rc = -EAGAIN;
	ask(request(2, GANTRY_OP_READ)); /* rejected by the terminal: waits */
	fake_queue_refuse(producer, -EAGAIN);
	port->rules.n_regions = 0;
	ask(request(3, GANTRY_OP_READ)); /* the peer does not read the reply */
	gn_responder_quiesce(port);
	TEST_ASSERT_EQUAL_UINT(0, n_idle);
	gn_responder_abandon(port);
	TEST_ASSERT_EQUAL_UINT(0, n_idle);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(1, n_idle);
	no_reply();
}

/*
 * The responder sends no reply for IOs that it cancels at the end of a session. The peer completes
 * these IOs with SESSION_LOST, and can submit them again. A reply CANCELED would arrive before the
 * end of the session, and the peer would not submit the IO again.
 */
static void abandoned_responder_does_not_answer_canceled_ios(void)
{
	make_port(0);
	ask(request(1, GANTRY_OP_READ)); /* stands for an IO in a stage that drain cancels */
	ask(request(2, GANTRY_OP_READ)); /* stands for an IO in the backend */
	terminal_rc = -EAGAIN;
	ask(request(3, GANTRY_OP_READ)); /* waits in the responder */
	gn_responder_abandon(port);
	no_reply();
	finish(GANTRY_S_CANCELED);
	no_reply();
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(2, replied().tag);
	TEST_ASSERT_EQUAL_UINT(1, n_idle);
	TEST_ASSERT_EQUAL_UINT64(2, counted().failed);
	TEST_ASSERT_EQUAL_UINT64(1, done());
}

static void replies_on_a_lost_connection_are_dropped(void)
{
	make_port(0);
	ask(request(1, GANTRY_OP_READ));
	conn->closed = 1;
	finish(GANTRY_S_OK);
	gn_responder_quiesce(port);
	TEST_ASSERT_EQUAL_UINT(1, n_idle);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(a_request_goes_down_and_its_answer_back);
	RUN_TEST(a_failed_io_and_a_flush_count_no_bytes);
	RUN_TEST(invalid_io_fails_and_does_not_break_the_queue);
	RUN_TEST(extents_use_a_buffer_of_fixed_size);
	RUN_TEST(extents_of_a_volume_without_them_fail);
	RUN_TEST(a_terminal_that_refuses_for_good_fails_the_io);
	RUN_TEST(a_terminal_that_is_full_is_asked_again);
	RUN_TEST(io_not_accepted_by_its_deadline_is_canceled);
	RUN_TEST(replies_wait_for_the_peer_in_order);
	RUN_TEST(a_reply_does_not_overtake_one_that_waits);
	RUN_TEST(more_in_flight_than_agreed_breaks);
	RUN_TEST(a_short_message_breaks);
	RUN_TEST(a_broken_queue_breaks);
	RUN_TEST(a_second_completion_is_ignored);
	RUN_TEST(idle_comes_once_and_after_the_last_reply);
	RUN_TEST(quiesce_at_rest_is_idle_at_once);
	RUN_TEST(the_doorbell_rings_before_idle);
	RUN_TEST(abandoned_responder_waits_only_for_its_terminal);
	RUN_TEST(abandoned_responder_does_not_answer_canceled_ios);
	RUN_TEST(replies_on_a_lost_connection_are_dropped);
	return UNITY_END();
}
