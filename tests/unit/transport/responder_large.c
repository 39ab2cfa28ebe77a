/* SPDX-License-Identifier: BSD-3-Clause */
/* Responders of two sessions on one lane: large IOs of one session do not delay the other. */
#include "responder_rig.h"

#define LARGE (64u << 20) /* more parts than the splitter starts at a time */
#define PARTS (LARGE / GN_SPLIT_PIECE)

static uint32_t flood_bytes; /* length of each request of the flooding session */

static struct gantry_io large(uint32_t tag)
{
	return (struct gantry_io){
		.opcode = GANTRY_OP_READ, .tag = tag, .length = LARGE, .region = 1};
}

/* Make volume and region large enough for large IOs. The terminal accesses no data. */
static void make_large(void)
{
	rules.volume.size = 1 << 30;
	rules.volume.max_io = 2 * LARGE;
	gn_io_rules_ready(&rules);
	make_port(0);
	memory.length = 1 << 30;
}

struct end {
	struct gn_responder *port;
	struct fake_conn *conn;
	struct fake_queue *consumer, *producer;
};

static struct end take_end(void)
{
	struct end end = {port, conn, consumer, producer};

	return end;
}

static void destroy(struct end *end)
{
	gn_responder_destroy(&end->port);
	fake_transport_ops.producer_destroy(end->producer);
	fake_transport_ops.consumer_destroy(end->consumer);
	fake_transport_ops.disconnect(end->conn);
}

static void all_parts_are_done_before_the_answer(void)
{
	make_large();
	ask(large(7));
	TEST_ASSERT_TRUE(n_held > 0);
	for (unsigned left = PARTS; left > 0; left--) {
		no_reply();
		finish(GANTRY_S_OK);
	}
	TEST_ASSERT_EQUAL_UINT(7, replied().tag);
	TEST_ASSERT_EQUAL_UINT(PARTS, n_seen);
	TEST_ASSERT_EQUAL_UINT(PARTS, n_named);
	TEST_ASSERT_EQUAL_UINT64(1, done());
}

static void an_undivided_io_names_its_session(void)
{
	make_large();
	ask(request(7, GANTRY_OP_READ));
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(7, replied().tag);
	TEST_ASSERT_EQUAL_UINT(1, n_named);
}

/* The splitter gets a large IO without the `submit` of the hop of the terminal. */
static void the_time_in_the_terminal_is_that_of_all_parts(void)
{
	make_large();
	TEST_ASSERT_EQUAL_INT(0, gn_lane_measure(&fw.lane, true));
	ask(large(7));
	fake_clock_advance(5000);
	for (unsigned left = PARTS; left > 0; left--)
		finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(7, replied().tag);
	TEST_ASSERT_EQUAL_UINT64(5000, gantry_histogram_max(&fw.lane.own_times[0]));
}

/* All requests have arrived before the lane polls either responder. */
static void arrive_on_lane(void *arg)
{
	struct end *flood = arg;
	struct gantry_io small = request(5, GANTRY_OP_READ);

	for (uint32_t i = 0; i < DEPTH; i++) {
		struct gantry_io wire = {
			.opcode = GANTRY_OP_READ, .tag = i, .length = flood_bytes, .region = 1};

		fake_arrive(flood->consumer, &wire, GANTRY_IO_WIRE_BYTES);
	}
	fake_arrive(consumer, &small, GANTRY_IO_WIRE_BYTES);
}

/*
 * Returns how many bytes the flooding responder submitted to the terminal before the small request
 * of the other responder.
 */
static uint64_t bytes_before_small(uint32_t bytes)
{
	struct end flood;
	uint64_t before = 0;

	flood_bytes = bytes;
	make_large();
	flood = take_end();
	make_large();
	terminal_now = 1;
	gn_worker_call(fw.worker, arrive_on_lane, &flood);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(5, replied().tag);
	for (unsigned i = 0; seen_bytes[i] != 1024; i++)
		before += seen_bytes[i];
	while (n_seen < DEPTH * ((bytes + GN_SPLIT_PIECE - 1) / GN_SPLIT_PIECE) + 1)
		fake_settle(&fw);
	destroy(&flood);
	return before;
}

static void a_small_request_waits_for_one_quantum_at_most(void)
{
	TEST_ASSERT_LESS_OR_EQUAL_UINT64(GN_SPLIT_QUANTUM, bytes_before_small(LARGE));
}

static void short_requests_are_counted_in_bytes(void)
{
	uint64_t before;

	quantum = 2 * GN_SPLIT_FROM;
	before = bytes_before_small(GN_SPLIT_FROM);
	quantum = GN_SPLIT_QUANTUM;
	TEST_ASSERT_EQUAL_UINT64(2 * GN_SPLIT_FROM, before);
}

static void a_port_with_a_small_quantum_takes_one_request(void)
{
	uint64_t before;

	quantum = 1;
	before = bytes_before_small(GN_SPLIT_FROM);
	quantum = GN_SPLIT_QUANTUM;
	TEST_ASSERT_EQUAL_UINT64(GN_SPLIT_FROM, before);
}

static void an_abandoned_port_starts_no_more_parts(void)
{
	make_large();
	ask(large(1));
	ask(large(2));
	gn_responder_abandon(port);
	TEST_ASSERT_EQUAL_UINT(0, n_idle);
	while (n_held > 0)
		finish(GANTRY_S_OK);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, n_idle);
	TEST_ASSERT_LESS_THAN_UINT(PARTS, n_seen);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(all_parts_are_done_before_the_answer);
	RUN_TEST(an_undivided_io_names_its_session);
	RUN_TEST(the_time_in_the_terminal_is_that_of_all_parts);
	RUN_TEST(a_small_request_waits_for_one_quantum_at_most);
	RUN_TEST(short_requests_are_counted_in_bytes);
	RUN_TEST(a_port_with_a_small_quantum_takes_one_request);
	RUN_TEST(an_abandoned_port_starts_no_more_parts);
	return UNITY_END();
}
