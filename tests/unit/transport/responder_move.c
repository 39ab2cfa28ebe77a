/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A responder whose device cannot map regions moves the data through bounce buffers, of which there
 * are fewer than IOs.
 */
#include "responder_rig.h"

static void data_that_is_not_mapped_is_moved(void)
{
	make_port(1);
	memset(ft.memory, 0x11, FAKE_REGION_BYTES);
	ask(request(1, GANTRY_OP_WRITE));
	TEST_ASSERT_EQUAL_UINT(1, n_held);
	TEST_ASSERT_EQUAL_UINT(0x11, ((uint8_t *)held[0]->data)[1023]);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, replied().status);
	ask(request(2, GANTRY_OP_READ));
	memset(held[0]->data, 0x22, 1024);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, replied().status);
	TEST_ASSERT_EQUAL_UINT(0x11, ft.memory[511]);
	TEST_ASSERT_EQUAL_UINT(0x22, ft.memory[512]);
	TEST_ASSERT_EQUAL_UINT(0x22, ft.memory[1535]);
	TEST_ASSERT_EQUAL_UINT(0x11, ft.memory[1536]);
	ask(request(3, GANTRY_OP_READ));
	finish(GANTRY_S_IO); /* a failed read moves no data */
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, replied().status);
	TEST_ASSERT_EQUAL_UINT(2, rma->n_submits);
}

static void extents_are_moved_as_the_data_of_a_read(void)
{
	struct gantry_extents extents = {.count = 0}, result;

	rules.volume.ops |= 1u << GANTRY_OP_EXTENTS;
	max_noted = 1 << 20; /* only a read can be answered by a note */
	ordered = 1;
	make_port(1);
	ask((struct gantry_io){
		.opcode = GANTRY_OP_EXTENTS, .tag = 3, .length = 1 << 20, .region = 1});
	TEST_ASSERT_EQUAL_UINT(1, n_held);
	gantry_extents_add(&extents, 4096, GANTRY_EXTENT_HOLE);
	gantry_extents_finish(held[0], &extents);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, replied().status);
	memcpy(&result, ft.memory, sizeof(result));
	TEST_ASSERT_EQUAL_UINT(1, rma->n_submits);
	TEST_ASSERT_EQUAL_UINT(1, result.count);
	TEST_ASSERT_EQUAL_UINT(4096, result.extent[0].length);
}

static void a_move_that_fails_fails_the_io(void)
{
	make_port(1);
	fake_rma_set(rma, 0, -EACCES, 0);
	ask(request(1, GANTRY_OP_WRITE));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_ACCESS, replied().status);
	ask(request(2, GANTRY_OP_READ));
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_ACCESS, replied().status);
	fake_rma_set(rma, -ERANGE, 0, 0);
	ask(request(3, GANTRY_OP_WRITE));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_RANGE, replied().status);
	TEST_ASSERT_EQUAL_UINT(1, n_seen);
}

static void move_rejected_with_eagain_is_submitted_again(void)
{
	make_port(1);
	fake_rma_set(rma, -EAGAIN, 0, 0);
	ask(request(1, GANTRY_OP_WRITE));
	ask(request(2, GANTRY_OP_READ));
	finish(GANTRY_S_OK);
	no_reply();
	fake_rma_set(rma, 0, 0, 0);
	fake_settle(&fw);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(2, replied().tag);
	TEST_ASSERT_EQUAL_UINT(1, n_held);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(1, replied().tag);
}

/*
 * The memory of the store is registered with the device. So the device moves the data of each IO
 * directly to or from its place in the store, without bounce buffers.
 */
static void data_goes_straight_to_a_store_in_memory(void)
{
	static uint8_t volume[64 * 1024];
	static const struct gantry_region region = {
		.addr = volume, .length = sizeof(volume), .fd = -1};

	store = &region;
	make_port(1);
	memset(ft.memory, 0x11, FAKE_REGION_BYTES);
	for (uint32_t i = 0; i < DEPTH; i++) /* more IOs than bounce buffers */
		ask(request(i, GANTRY_OP_WRITE));
	TEST_ASSERT_EQUAL_UINT(DEPTH, n_held);
	TEST_ASSERT_EQUAL_PTR(volume + held[0]->offset, held[0]->data);
	TEST_ASSERT_EQUAL_UINT(0x11, volume[held[0]->offset + 1023]);
	while (n_held > 0)
		finish(GANTRY_S_OK);
	for (uint32_t i = 0; i < DEPTH; i++)
		TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, replied().status);
	ask(request(9, GANTRY_OP_READ));
	memset(held[0]->data, 0x22, 1024);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, replied().status);
	TEST_ASSERT_EQUAL_UINT(0x22, ft.memory[512]);
}

static uint64_t reported(const char *name)
{
	static struct fake_report report;

	fake_report_init(&report);
	gn_worker_report(fw.worker, &report.pub);
	return fake_reported_u64(&report, name);
}

/* The consumer fd signals the end of a move, as it signals a message. */
static void a_lane_sleeps_while_data_moves(void)
{
	uint64_t before;

	make_port(1);
	fake_rma_set(rma, 0, 0, 1);
	terminal_now = 1;
	before = reported("sleeps");
	ask(request(1, GANTRY_OP_WRITE));
	while (!fake_peek(consumer, &consumer->armed))
		sched_yield();
	no_reply();
	fake_rma_set(rma, 0, 0, 0);
	while (fake_peek(producer, &producer->n_sends) == 0)
		sched_yield();
	TEST_ASSERT_EQUAL_UINT(1, replied().tag);
	TEST_ASSERT_TRUE(reported("sleeps") > before);
}

static void abandoned_responder_drops_moves_that_have_not_started(void)
{
	make_port(1);
	fake_rma_set(rma, -EAGAIN, 0, 0);
	ask(request(1, GANTRY_OP_WRITE));
	gn_responder_abandon(port);
	TEST_ASSERT_EQUAL_UINT(1, n_idle);
	no_reply();
}

/*
 * A move of a write ends after the responder was abandoned. The responder must not submit the write
 * then, because a stage could hold it.
 */
static void abandoned_responder_submits_no_io(void)
{
	make_port(1);
	fake_rma_set(rma, 0, 0, 1);
	ask(request(1, GANTRY_OP_WRITE));
	gn_responder_abandon(port);
	TEST_ASSERT_EQUAL_UINT(0, n_idle);
	fake_rma_set(rma, 0, 0, 0);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(0, n_seen);
	TEST_ASSERT_EQUAL_UINT(1, n_idle);
	no_reply();
}

/*
 * If all pages are in use, further IOs, also reads, wait in order, before they are submitted to the
 * terminal.
 */
static void io_without_a_free_buffer_waits(void)
{
	make_port(1);
	for (uint32_t i = 0; i < DEPTH; i++)
		ask(request(i, i % 2 ? GANTRY_OP_READ : GANTRY_OP_WRITE));
	TEST_ASSERT_EQUAL_UINT(2, n_held);
	TEST_ASSERT_EQUAL_PTR(buffers, held[0]->data);
	TEST_ASSERT_EQUAL_PTR(buffers + 4096, held[1]->data);
	no_reply();
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(0, replied().tag);
	TEST_ASSERT_EQUAL_UINT(2, n_held);
	TEST_ASSERT_EQUAL_PTR(buffers, held[1]->data);
	finish(GANTRY_S_OK);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, replied().tag);
	finish(GANTRY_S_IO);
	finish(GANTRY_S_IO);
	TEST_ASSERT_EQUAL_UINT(2, replied().tag);
	TEST_ASSERT_EQUAL_UINT(3, replied().tag);
	TEST_ASSERT_EQUAL_UINT(0, n_broken);
}

/*
 * A large IO needs adjacent pages, and so waits until the other IOs release theirs. Later small IOs
 * must not overtake it.
 */
static void a_long_io_is_not_overtaken(void)
{
	struct gantry_io large = request(2, GANTRY_OP_READ);

	rules.volume.max_io = REGION * 2;
	memory.length = REGION * 2;
	large.length = ROOM * 4096;
	large.region_offset = 0;
	make_port(1);
	ask(request(1, GANTRY_OP_READ));
	ask(large);
	ask(request(3, GANTRY_OP_READ));
	TEST_ASSERT_EQUAL_UINT(1, n_held);
	finish(GANTRY_S_IO);
	TEST_ASSERT_EQUAL_UINT(1, replied().tag);
	TEST_ASSERT_EQUAL_UINT(1, n_held);
	TEST_ASSERT_EQUAL_UINT(ROOM * 4096, held[0]->length);
	finish(GANTRY_S_IO);
	TEST_ASSERT_EQUAL_UINT(2, replied().tag);
	finish(GANTRY_S_IO);
	TEST_ASSERT_EQUAL_UINT(3, replied().tag);
	memory.length = REGION;
}

/*
 * Completed reads hold the buffers for which other IOs wait. The moves of these reads must not wait
 * behind those IOs.
 */
static void moves_do_not_wait_behind_ios_that_wait_for_a_buffer(void)
{
	make_port(1);
	for (uint32_t i = 0; i < DEPTH; i++)
		ask(request(i, GANTRY_OP_READ));
	fake_rma_set(rma, -EAGAIN, 0, 0);
	finish(GANTRY_S_OK);
	finish(GANTRY_S_OK);
	no_reply();
	TEST_ASSERT_EQUAL_UINT(0, n_held);
	fake_rma_set(rma, 0, 0, 0);
	fake_settle(&fw);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(0, replied().tag);
	TEST_ASSERT_EQUAL_UINT(1, replied().tag);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(2, n_held);
	finish(GANTRY_S_IO);
	finish(GANTRY_S_IO);
}

static void io_without_a_buffer_by_its_deadline_is_canceled(void)
{
	struct gantry_io late = request(3, GANTRY_OP_READ);

	make_port(1);
	ask(request(1, GANTRY_OP_READ));
	ask(request(2, GANTRY_OP_READ));
	late.deadline_us = 1000;
	ask(late);
	fake_clock_advance(GN_NS_PER_MS - 1);
	fake_settle(&fw);
	no_reply();
	fake_clock_advance(1);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_CANCELED, replied().status);
	TEST_ASSERT_EQUAL_UINT(2, n_seen);
	finish(GANTRY_S_IO);
	finish(GANTRY_S_IO);
}

static void abandoned_responder_cancels_ios_that_wait_for_a_buffer(void)
{
	make_port(1);
	for (uint32_t i = 0; i < DEPTH; i++)
		ask(request(i, GANTRY_OP_WRITE));
	gn_responder_abandon(port);
	TEST_ASSERT_EQUAL_UINT64(2, counted().failed);
	no_reply();
	TEST_ASSERT_EQUAL_UINT(0, n_idle);
	finish(GANTRY_S_IO);
	finish(GANTRY_S_IO);
	TEST_ASSERT_EQUAL_UINT(1, n_idle);
}

/* A lane can sleep while IOs wait for buffers that other IOs hold at the terminal. */
static void a_lane_sleeps_while_buffers_are_missing(void)
{
	uint64_t before;

	make_port(1);
	for (uint32_t i = 0; i < DEPTH; i++)
		ask(request(i, GANTRY_OP_READ));
	before = reported("sleeps");
	for (unsigned i = 0; i < 10000 && reported("sleeps") < before + 3; i++)
		fake_settle(&fw); /* each call wakes the lane once */
	TEST_ASSERT_TRUE(reported("sleeps") >= before + 3);
	TEST_ASSERT_EQUAL_UINT(2, n_held);
	finish(GANTRY_S_IO);
	TEST_ASSERT_EQUAL_UINT(2, n_held);
	finish(GANTRY_S_IO);
	finish(GANTRY_S_IO);
	finish(GANTRY_S_IO);
}

/* Without GANTRY_CAP_ORDERED, the reply waits for the end of the move. */
static void a_reply_waits_for_its_data(void)
{
	make_port(1);
	fake_rma_set(rma, 0, 0, 1);
	ask(request(1, GANTRY_OP_READ));
	finish(GANTRY_S_OK);
	no_reply();
	fake_rma_set(rma, 0, 0, 0);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, replied().tag);
	TEST_ASSERT_EQUAL_STRING("WFSf", conn->order);
}

/*
 * Complete an IO, and let the lane make a turn in which the responder moves its data or sends its
 * reply.
 */
static void finish_and_poll(void)
{
	finish(GANTRY_S_OK);
	fake_settle(&fw);
}

static void with_order_a_reply_follows_its_data(void)
{
	ordered = 1;
	make_port(1);
	fake_rma_set(rma, 0, 0, 1);
	ask(request(1, GANTRY_OP_READ));
	finish_and_poll();
	TEST_ASSERT_EQUAL_UINT(1, replied().tag);
	TEST_ASSERT_EQUAL_STRING("WSf", conn->order);
	ask(request(2, GANTRY_OP_WRITE)); /* needs its data before the terminal gets it */
	TEST_ASSERT_EQUAL_UINT(0, n_held);
	no_reply();
	fake_rma_set(rma, 0, 0, 0);
	fake_settle(&fw);
	finish_and_poll();
	TEST_ASSERT_EQUAL_UINT(2, replied().tag);
	TEST_ASSERT_EQUAL_STRING("WSfRFSf", conn->order);
	TEST_ASSERT_EQUAL_UINT64(2, done());
}

/* The data of an unordered region uses another path, so the reply could arrive first. */
static void ordered_reply_waits_for_data_of_an_unordered_region(void)
{
	ordered = 1;
	make_port(1);
	memory.unordered = 1;
	fake_rma_set(rma, 0, 0, 1);
	ask(request(1, GANTRY_OP_READ));
	finish_and_poll();
	no_reply();
	fake_rma_set(rma, 0, 0, 0);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, replied().tag);
	TEST_ASSERT_EQUAL_STRING("WFSf", conn->order);
}

/* The buffer and the slot stay in use until the responder has polled the end of the move. */
static void a_buffer_is_kept_until_its_move_has_ended(void)
{
	ordered = 1;
	make_port(1);
	fake_rma_set(rma, 0, 0, 1);
	for (uint32_t i = 0; i < ROOM + 1; i++)
		ask(request(i, GANTRY_OP_READ));
	finish_and_poll();
	finish_and_poll();
	TEST_ASSERT_EQUAL_UINT(0, replied().tag);
	TEST_ASSERT_EQUAL_UINT(1, replied().tag);
	TEST_ASSERT_EQUAL_UINT(0, n_held);
	fake_rma_set(rma, 0, 0, 0);
	fake_settle(&fw);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, n_held);
	finish_and_poll();
	TEST_ASSERT_EQUAL_UINT(2, replied().tag);
}

/*
 * A peer that has got a reply can send a request before the responder has polled the end of the
 * move, and so before the responder has freed a slot.
 */
static void slots_freed_late_are_no_violation_by_the_peer(void)
{
	ordered = 1;
	rules.volume.max_io = 512;
	make_port(1);
	fake_rma_set(rma, 0, 0, 1);
	for (uint32_t i = 0; i < DEPTH; i++) {
		struct gantry_io io = request(i, i < ROOM ? GANTRY_OP_READ : GANTRY_OP_FLUSH);

		io.length = 512;
		ask(io);
	}
	for (uint32_t i = 0; i < DEPTH; i++)
		finish_and_poll();
	for (uint32_t i = 0; i < DEPTH; i++)
		TEST_ASSERT_EQUAL_UINT(i, replied().tag);
	for (uint32_t i = 0; i < DEPTH; i++)
		ask(request(10 + i, GANTRY_OP_FLUSH));
	TEST_ASSERT_EQUAL_UINT(0, n_broken);
	TEST_ASSERT_EQUAL_UINT(DEPTH - ROOM, n_held);
	fake_rma_set(rma, 0, 0, 0);
	fake_settle(&fw);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(DEPTH, n_held);
	ask(request(20, GANTRY_OP_FLUSH)); /* DEPTH requests are in flight: a violation */
	TEST_ASSERT_EQUAL_UINT(1, n_broken);
	TEST_ASSERT_EQUAL_INT(-EPROTO, broken_reason);
	while (n_held > 0)
		finish(GANTRY_S_OK);
}

static void a_write_that_fails_behind_its_reply_breaks(void)
{
	ordered = 1;
	make_port(1);
	fake_rma_set(rma, 0, -EACCES, 0);
	ask(request(1, GANTRY_OP_READ));
	finish_and_poll();
	TEST_ASSERT_EQUAL_UINT(1, n_broken);
	TEST_ASSERT_EQUAL_INT(-EACCES, broken_reason);
	gn_responder_abandon(port);
	TEST_ASSERT_EQUAL_UINT(1, n_idle);
}

/* If the transport rejects a move, only its IO fails. */
static void a_write_that_is_refused_fails_the_io(void)
{
	ordered = 1;
	make_port(1);
	fake_rma_set(rma, -ERANGE, 0, 0);
	ask(request(1, GANTRY_OP_READ));
	finish_and_poll();
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_RANGE, replied().status);
	TEST_ASSERT_EQUAL_UINT(0, n_broken);
}

static void a_reply_may_be_later_than_the_end_of_its_move(void)
{
	ordered = 1;
	make_port(1);
	fake_queue_refuse(producer, -EAGAIN);
	ask(request(1, GANTRY_OP_READ));
	finish_and_poll();
	no_reply();
	TEST_ASSERT_EQUAL_UINT(0, rma->n_pending);
	gn_responder_quiesce(port);
	TEST_ASSERT_EQUAL_UINT(0, n_idle);
	fake_queue_refuse(producer, 0);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, replied().tag);
	TEST_ASSERT_EQUAL_UINT(1, n_idle);
}

static void idle_waits_for_moves_behind_replies(void)
{
	ordered = 1;
	make_port(1);
	fake_rma_set(rma, 0, 0, 1);
	ask(request(1, GANTRY_OP_READ));
	finish_and_poll();
	TEST_ASSERT_EQUAL_UINT(1, replied().tag);
	gn_responder_quiesce(port);
	gn_responder_abandon(port);
	TEST_ASSERT_EQUAL_UINT(0, n_idle);
	fake_rma_set(rma, 0, 0, 0);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, n_idle);
}

static void arrive_with_nonsense(void *arg)
{
	fake_arrive(consumer, arg, GANTRY_IO_WIRE_BYTES);
	fake_arrive(consumer, arg, 3);
}

/* A move starts, and in the same turn the peer violates the protocol: the move must still end. */
static void moves_of_a_broken_port_end(void)
{
	struct gantry_io io = request(1, GANTRY_OP_WRITE);

	make_port(1);
	gn_worker_call(fw.worker, arrive_with_nonsense, &io);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, n_broken);
	TEST_ASSERT_EQUAL_UINT(1, rma->n_submits);
	TEST_ASSERT_EQUAL_UINT(1, n_held);
	gn_responder_abandon(port);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(1, n_idle);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(data_that_is_not_mapped_is_moved);
	RUN_TEST(extents_are_moved_as_the_data_of_a_read);
	RUN_TEST(a_move_that_fails_fails_the_io);
	RUN_TEST(move_rejected_with_eagain_is_submitted_again);
	RUN_TEST(data_goes_straight_to_a_store_in_memory);
	RUN_TEST(a_lane_sleeps_while_data_moves);
	RUN_TEST(abandoned_responder_drops_moves_that_have_not_started);
	RUN_TEST(abandoned_responder_submits_no_io);
	RUN_TEST(io_without_a_free_buffer_waits);
	RUN_TEST(a_long_io_is_not_overtaken);
	RUN_TEST(moves_do_not_wait_behind_ios_that_wait_for_a_buffer);
	RUN_TEST(io_without_a_buffer_by_its_deadline_is_canceled);
	RUN_TEST(abandoned_responder_cancels_ios_that_wait_for_a_buffer);
	RUN_TEST(a_lane_sleeps_while_buffers_are_missing);
	RUN_TEST(a_reply_waits_for_its_data);
	RUN_TEST(with_order_a_reply_follows_its_data);
	RUN_TEST(ordered_reply_waits_for_data_of_an_unordered_region);
	RUN_TEST(a_buffer_is_kept_until_its_move_has_ended);
	RUN_TEST(slots_freed_late_are_no_violation_by_the_peer);
	RUN_TEST(a_write_that_fails_behind_its_reply_breaks);
	RUN_TEST(a_write_that_is_refused_fails_the_io);
	RUN_TEST(a_reply_may_be_later_than_the_end_of_its_move);
	RUN_TEST(idle_waits_for_moves_behind_replies);
	RUN_TEST(moves_of_a_broken_port_end);
	return UNITY_END();
}
