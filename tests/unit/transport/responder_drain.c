/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions come and go while a responder runs: new requests that name a region that goes are
 * rejected, and the responder reports when the requests in flight that use it have ended.
 */
#include "responder_rig.h"

static struct gantry_io to_region(uint32_t tag, uint8_t opcode, uint32_t handle)
{
	struct gantry_io io = request(tag, opcode);

	io.region = handle;
	return io;
}

static void drain(unsigned drained)
{
	gn_responder_drain_region(port, 1);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(drained, n_drained);
}

static void rejected(uint32_t tag)
{
	const unsigned seen = n_seen;
	struct gantry_io io;

	ask(request(tag, GANTRY_OP_READ));
	io = replied();
	TEST_ASSERT_EQUAL_UINT(tag, io.tag);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_ACCESS, io.status);
	TEST_ASSERT_EQUAL_UINT(seen, n_seen);
}

static void region_without_io_is_drained_at_once(void)
{
	make_port(0);
	terminal_now = 1;
	for (uint32_t i = 0; i < 2 * DEPTH; i++) { /* free slots have the flags of these requests */
		ask(request(i, GANTRY_OP_READ));
		TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, replied().status);
	}
	drain(1);
	rejected(1);
	ask(to_region(2, GANTRY_OP_WRITE, 2));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, replied().status);
	ask(request(3, GANTRY_OP_FLUSH));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, replied().status);
	TEST_ASSERT_EQUAL_UINT(1, port->as_peer.is_ready);
	gn_responder_add_region(port, 1);
	ask(request(4, GANTRY_OP_READ));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, replied().status);
	TEST_ASSERT_EQUAL_UINT(1, n_drained);
}

static void only_io_with_data_of_the_region_is_waited_for(void)
{
	make_port(0);
	ask(to_region(1, GANTRY_OP_WRITE, 2));
	ask(request(2, GANTRY_OP_FLUSH));
	ask(request(3, GANTRY_OP_READ));
	TEST_ASSERT_EQUAL_UINT(3, n_held);
	drain(0);
	rejected(4);
	finish(GANTRY_S_OK);
	finish(GANTRY_S_OK);
	ask(to_region(5, GANTRY_OP_WRITE, 2));
	TEST_ASSERT_EQUAL_UINT(0, n_drained);
	finish(GANTRY_S_IO);
	TEST_ASSERT_EQUAL_UINT(1, n_drained);
	finish(GANTRY_S_OK);
	for (uint32_t tag = 1; tag <= 3; tag++)
		TEST_ASSERT_EQUAL_UINT(tag == 3 ? GANTRY_S_IO : GANTRY_S_OK, replied().status);
	TEST_ASSERT_EQUAL_UINT(5, replied().tag);
	TEST_ASSERT_EQUAL_UINT(1, port->as_peer.is_ready);
}

static void io_that_waits_in_the_responder_is_waited_for(void)
{
	make_port(0);
	terminal_rc = -EAGAIN;
	ask(request(1, GANTRY_OP_READ));
	drain(0);
	terminal_rc = 0;
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, n_held);
	fake_queue_refuse(producer, -EAGAIN);
	finish(GANTRY_S_OK);
	no_reply();
	TEST_ASSERT_EQUAL_UINT(0, n_drained);
	fake_queue_refuse(producer, 0);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, replied().status);
	TEST_ASSERT_EQUAL_UINT(1, n_drained);
}

/* The move uses the region after the reply was sent, or before; the responder waits for both. */
static void moves_of_the_region_are_waited_for(void)
{
	for (int early = 0; early < 2; early++) {
		ordered = early;
		make_port(1);
		fake_rma_set(rma, 0, 0, 1);
		ask(request(1, GANTRY_OP_WRITE));
		ask(request(2, GANTRY_OP_READ));
		TEST_ASSERT_EQUAL_UINT(1, n_held);
		finish(GANTRY_S_OK);
		drain(0);
		TEST_ASSERT_EQUAL_UINT(2, rma->n_submits);
		if (early)
			TEST_ASSERT_EQUAL_UINT(2, replied().tag);
		fake_rma_set(rma, 0, 0, 0);
		fake_settle(&fw);
		if (!early)
			TEST_ASSERT_EQUAL_UINT(2, replied().tag);
		TEST_ASSERT_EQUAL_UINT(0, n_drained);
		TEST_ASSERT_EQUAL_UINT(1, n_held);
		finish(GANTRY_S_OK);
		TEST_ASSERT_EQUAL_UINT(1, replied().tag);
		TEST_ASSERT_EQUAL_UINT(1, n_drained);
		tearDown();
		setUp();
	}
	make_port(0);
}

/* The buffer of the drained IO is released as that of any other IO. */
static void io_that_begins_its_move_while_it_is_drained(void)
{
	max_noted = 4096;
	ordered = 1;
	make_port(1);
	for (uint32_t i = 0; i < ROOM; i++)
		ask(request(i, GANTRY_OP_READ));
	drain(0);
	fake_rma_set(rma, 0, 0, 1);
	for (uint32_t i = 0; i < ROOM; i++)
		finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(0, n_drained);
	TEST_ASSERT_TRUE(rma->n_notes > 0);
	fake_rma_set(rma, 0, 0, 0);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, n_drained);
	gn_responder_add_region(port, 1);
	for (uint32_t i = 0; i < ROOM; i++)
		ask(request(i, GANTRY_OP_READ));
	TEST_ASSERT_EQUAL_UINT(ROOM, n_held);
	while (n_held > 0)
		finish(GANTRY_S_OK);
}

static void abandoned_responder_reports_both(void)
{
	make_port(0);
	ask(request(1, GANTRY_OP_READ));
	terminal_rc = -EAGAIN;
	ask(request(2, GANTRY_OP_READ));
	drain(0);
	gn_responder_abandon(port);
	TEST_ASSERT_EQUAL_UINT(0, n_drained);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(1, n_drained);
	TEST_ASSERT_EQUAL_UINT(1, n_idle);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(region_without_io_is_drained_at_once);
	RUN_TEST(only_io_with_data_of_the_region_is_waited_for);
	RUN_TEST(io_that_waits_in_the_responder_is_waited_for);
	RUN_TEST(moves_of_the_region_are_waited_for);
	RUN_TEST(io_that_begins_its_move_while_it_is_drained);
	RUN_TEST(abandoned_responder_reports_both);
	return UNITY_END();
}
