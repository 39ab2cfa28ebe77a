/* SPDX-License-Identifier: BSD-3-Clause */
/* A responder that answers reads by notes: which reads, and when it frees their slots. */
#include "responder_rig.h"

/*
 * Complete a read, and let the lane make a turn in which the responder moves its data or sends its
 * reply.
 */
static void finish_and_poll(void)
{
	finish(GANTRY_S_OK);
	fake_settle(&fw);
}

/* The first reply to a read is whole, and each 16th after it; the others are notes. */
static void a_read_is_answered_by_a_note(void)
{
	max_noted = 1024;
	make_port(1);
	for (uint32_t i = 0; i < 2 * 16 + 1; i++) {
		unsigned whole = i % 16 == 0;

		ask(request(100 + i, GANTRY_OP_READ));
		memset(held[0]->data, (int)i, 1024);
		finish_and_poll();
		TEST_ASSERT_EQUAL_UINT(i, ft.memory[512 + 1023]);
		TEST_ASSERT_EQUAL_UINT(i - i / 16, rma->n_notes);
		if (whole)
			TEST_ASSERT_EQUAL_UINT(100 + i, replied().tag);
		else
			TEST_ASSERT_EQUAL_UINT(100 + i, rma->notes[rma->n_notes - 1]);
		no_reply();
		TEST_ASSERT_EQUAL_UINT64(i + 1, done());
	}
	TEST_ASSERT_EQUAL_UINT(0, n_broken);
}

/* Make a responder that has sent its first reply, so that the next replies can be notes. */
static void make_port_with_notes(void)
{
	max_noted = 1024;
	make_port(1);
	ask(request(0, GANTRY_OP_READ));
	finish_and_poll();
	TEST_ASSERT_EQUAL_UINT(0, replied().tag);
	memset(conn->order, 0, sizeof(conn->order));
	conn->n_order = 0;
}

static void answer_that_a_note_cannot_express_is_sent_as_a_message(void)
{
	struct gantry_io late = request(7, GANTRY_OP_READ);

	make_port_with_notes();
	ask(request(1, GANTRY_OP_WRITE));
	finish_and_poll();
	TEST_ASSERT_EQUAL_UINT(1, replied().tag);
	ask(request(2, GANTRY_OP_READ));
	finish(GANTRY_S_IO);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, replied().status);
	ask(request(3, GANTRY_OP_FLUSH));
	finish_and_poll();
	TEST_ASSERT_EQUAL_UINT(3, replied().tag);
	ask(request(4, GANTRY_OP_READ));
	held[0]->flags |= GANTRY_IO_CRC; /* a stage can set this flag */
	finish_and_poll();
	TEST_ASSERT_EQUAL_UINT(4, replied().tag);
	memory.unordered = 1;
	ask(request(5, GANTRY_OP_READ));
	finish_and_poll();
	TEST_ASSERT_EQUAL_UINT(5, replied().tag);
	memory.unordered = 0;
	late.length = 1536;
	late.tag = 6;
	ask(late); /* longer than max_noted */
	finish_and_poll();
	TEST_ASSERT_EQUAL_UINT(6, replied().tag);
	TEST_ASSERT_EQUAL_UINT(0, rma->n_notes);
	ask(request(8, GANTRY_OP_READ));
	finish_and_poll();
	TEST_ASSERT_EQUAL_UINT(8, rma->notes[0]);
	no_reply();
}

/* The responder flushes the write with the note, and sends no message. */
static void a_note_goes_out_with_its_data(void)
{
	make_port_with_notes();
	fake_rma_set(rma, 0, 0, 1);
	ask(request(1, GANTRY_OP_READ));
	finish_and_poll();
	TEST_ASSERT_EQUAL_STRING("NF", conn->order);
	fake_rma_set(rma, 0, 0, 0);
	fake_settle(&fw);
	no_reply();
}

static void note_that_cannot_be_sent_is_replaced_by_a_message(void)
{
	make_port_with_notes();
	rma->note_rc = -EAGAIN;
	ask(request(1, GANTRY_OP_READ));
	memset(held[0]->data, 0x44, 1024);
	finish_and_poll();
	TEST_ASSERT_EQUAL_UINT(1, replied().tag);
	TEST_ASSERT_EQUAL_UINT(0x44, ft.memory[512]);
	TEST_ASSERT_EQUAL_UINT(0, rma->n_notes);
}

/*
 * The peer can send the next request before the responder knows that the move has ended. Such a
 * request waits until the slot and its buffer are free.
 */
static void after_a_note_a_buffer_is_kept_until_its_move_has_ended(void)
{
	make_port_with_notes();
	fake_rma_set(rma, 0, 0, 1);
	for (uint32_t i = 0; i < DEPTH + ROOM; i++) {
		ask(request(i, GANTRY_OP_READ));
		if (i < ROOM)
			finish_and_poll();
		TEST_ASSERT_EQUAL_UINT(0, n_held);
	}
	TEST_ASSERT_EQUAL_UINT(0, n_broken);
	TEST_ASSERT_EQUAL_UINT(ROOM, rma->n_notes);
	fake_rma_set(rma, 0, 0, 0);
	fake_settle(&fw);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(ROOM, n_held);
}

static void a_noted_move_that_fails_breaks(void)
{
	make_port_with_notes();
	fake_rma_set(rma, 0, -ENOTCONN, 0);
	ask(request(1, GANTRY_OP_READ));
	finish_and_poll();
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, n_broken);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, broken_reason);
	no_reply();
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(a_read_is_answered_by_a_note);
	RUN_TEST(answer_that_a_note_cannot_express_is_sent_as_a_message);
	RUN_TEST(a_note_goes_out_with_its_data);
	RUN_TEST(note_that_cannot_be_sent_is_replaced_by_a_message);
	RUN_TEST(after_a_note_a_buffer_is_kept_until_its_move_has_ended);
	RUN_TEST(a_noted_move_that_fails_breaks);
	return UNITY_END();
}
