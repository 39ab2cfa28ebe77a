/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A responder whose peer runs on the same thread: requests arrive by a function call, and the rules
 * of queues apply.
 */
#include "responder_rig.h"
#include "transport/local_peer.h"

struct handed {
	struct gantry_io wire;
	int rc;
};

static void hand_on_lane(void *arg)
{
	struct handed *h = arg;

	h->rc = consumer->peer->take_request(consumer->peer, &h->wire);
}

static int hand(struct gantry_io wire)
{
	struct handed h = {.wire = wire};

	gn_worker_call(fw.worker, hand_on_lane, &h);
	return h.rc;
}

static void a_request_goes_down_and_its_answer_back(void)
{
	make_port(0);
	TEST_ASSERT_NOT_EQUAL(0, consumer->peer->is_ready);
	for (uint32_t i = 1; i < 3 * DEPTH; i++) {
		TEST_ASSERT_EQUAL_INT(0, hand(request(i, GANTRY_OP_WRITE)));
		TEST_ASSERT_EQUAL_UINT(i, n_seen);
		TEST_ASSERT_EQUAL_PTR(ft.memory + 512, held[0]->data);
		finish(GANTRY_S_OK);
		TEST_ASSERT_EQUAL_UINT(i, replied().tag);
	}
	no_reply();
}

static void invalid_io_fails_and_does_not_break_the_queue(void)
{
	struct gantry_io wire = request(5, GANTRY_OP_READ);

	make_port(0);
	wire.region_offset = REGION;
	TEST_ASSERT_EQUAL_INT(0, hand(wire));
	wire = replied();
	TEST_ASSERT_EQUAL_UINT(5, wire.tag);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_RANGE, wire.status);
	TEST_ASSERT_EQUAL_UINT(0, n_seen);
	TEST_ASSERT_EQUAL_UINT(0, n_broken);
}

/* The peer can change its copy of the descriptor after the call. */
static void the_descriptor_is_copied(void)
{
	struct handed h = {.wire = request(7, GANTRY_OP_READ)};

	make_port(0);
	gn_worker_call(fw.worker, hand_on_lane, &h);
	h.wire.offset = UINT64_MAX;
	TEST_ASSERT_EQUAL_UINT64(1024, held[0]->offset);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(7, replied().tag);
}

static void more_in_flight_than_agreed_breaks(void)
{
	make_port(0);
	for (uint32_t i = 0; i < DEPTH; i++)
		TEST_ASSERT_EQUAL_INT(0, hand(request(i, GANTRY_OP_READ)));
	TEST_ASSERT_EQUAL_UINT(0, n_broken);
	hand(request(9, GANTRY_OP_READ));
	TEST_ASSERT_EQUAL_INT(-EAGAIN, hand(request(9, GANTRY_OP_READ)));
	TEST_ASSERT_EQUAL_UINT(1, n_broken);
	TEST_ASSERT_EQUAL_INT(-EPROTO, broken_reason);
	TEST_ASSERT_EQUAL_UINT(DEPTH, n_seen);
	while (n_held > 0)
		finish(GANTRY_S_OK);
}

/*
 * The peer gets its reply inside the send of the responder. Inside that send, the peer can send the
 * next request, up to the negotiated depth.
 */
static void the_next_request_may_come_inside_a_reply(void)
{
	make_port(0);
	for (uint32_t i = 0; i < DEPTH; i++)
		TEST_ASSERT_EQUAL_INT(0, hand(request(i, GANTRY_OP_READ)));
	producer->echo = consumer;
	for (uint32_t i = 0; i < 2 * DEPTH; i++) {
		finish(GANTRY_S_OK);
		TEST_ASSERT_EQUAL_UINT(i % DEPTH, replied().tag);
		TEST_ASSERT_EQUAL_UINT(DEPTH + 1 + i, n_seen);
	}
	producer->echo = NULL;
	TEST_ASSERT_EQUAL_UINT(0, n_broken);
	while (n_held > 0)
		finish(GANTRY_S_OK);
}

static void quiesced_responder_accepts_no_request(void)
{
	make_port(0);
	TEST_ASSERT_EQUAL_INT(0, hand(request(1, GANTRY_OP_READ)));
	gn_responder_quiesce(port);
	TEST_ASSERT_EQUAL_INT(-EAGAIN, hand(request(2, GANTRY_OP_READ)));
	TEST_ASSERT_EQUAL_UINT(1, n_seen);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(1, n_idle);
	gn_responder_destroy(&port);
	TEST_ASSERT_NULL(consumer->peer);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(a_request_goes_down_and_its_answer_back);
	RUN_TEST(invalid_io_fails_and_does_not_break_the_queue);
	RUN_TEST(the_descriptor_is_copied);
	RUN_TEST(more_in_flight_than_agreed_breaks);
	RUN_TEST(the_next_request_may_come_inside_a_reply);
	RUN_TEST(quiesced_responder_accepts_no_request);
	return UNITY_END();
}
