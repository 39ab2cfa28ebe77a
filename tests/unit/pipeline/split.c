/* SPDX-License-Identifier: BSD-3-Clause */
/* The splitter divides large IOs. It starts each byte once, and at most a quantum in each turn. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "gantry/random.h"
#include "pipeline/split.h"
#include "unity.h"

#define DEPTH 5
#define HELD 64
#define QUANTUM GN_SPLIT_PIECE /* one piece in each turn */
#define MAX_IO (64u << 20)
#define MS GN_NS_PER_MS

static struct gn_lane lane;
static uint64_t double_completions;
static struct gn_split *split;
static struct gantry_io ios[DEPTH];
static struct gantry_hop chain[3]; /* guard, owner, terminal */
static unsigned n_done[DEPTH], status[DEPTH];
static char data[1]; /* only for address arithmetic, never dereferenced */

/* State of the terminal. */
static struct gantry_io *held[HELD];
static unsigned n_held, n_taken, most_held;
static int terminal_rc, terminal_now;
static uint64_t taken_bytes, turn_bytes;
static uint64_t next_byte[DEPTH]; /* offset at which the next part of each IO must begin */
static unsigned again;            /* IOs that the owner submits again when they complete */

static void submit(unsigned slot, uint8_t opcode, uint8_t flags, uint32_t length);

static void check_part(const struct gantry_io *io)
{
	unsigned slot = (unsigned)(io->region - 1);

	TEST_ASSERT_LESS_THAN_UINT(DEPTH, slot);
	TEST_ASSERT_EQUAL_UINT64(next_byte[slot], io->offset - ((uint64_t)slot << 32));
	TEST_ASSERT_EQUAL_UINT64(next_byte[slot] + 4096, io->region_offset);
	TEST_ASSERT_EQUAL_UINT64((uintptr_t)data + next_byte[slot], (uintptr_t)io->data);
	TEST_ASSERT_EQUAL_UINT(ios[slot].opcode, io->opcode);
	TEST_ASSERT_EQUAL_UINT(ios[slot].deadline_us, io->deadline_us);
	next_byte[slot] += io->length;
}

static int terminal_submit(void *self, struct gantry_io *io)
{
	(void)self;
	if (terminal_rc != 0)
		return terminal_rc;
	check_part(io);
	n_taken++;
	taken_bytes += io->length;
	turn_bytes += (uint64_t)gn_split_cost(io, io->length);
	if (terminal_now) {
		gantry_fail(io, GANTRY_S_OK);
		return 0;
	}
	TEST_ASSERT_LESS_THAN_UINT(HELD, n_held);
	held[n_held++] = io;
	most_held = n_held > most_held ? n_held : most_held;
	return 0;
}

static void parent_done(void *self, struct gantry_io *io)
{
	(void)self;
	TEST_ASSERT_EQUAL_INT(0, gantry_io_end(io));
	n_done[io->slot]++;
	status[io->slot] = io->status;
	if (again > 0) {
		again--;
		submit(io->slot, io->opcode, io->flags, io->length);
	}
}

static int reject_submit(void *self, struct gantry_io *io)
{
	(void)self;
	(void)io;
	return -EINVAL;
}

static void guard(void *self, struct gantry_io *io)
{
	(void)self;
	(void)io;
	TEST_FAIL_MESSAGE("an IO completed twice");
}

static void make(uint32_t quantum)
{
	struct gn_split_attr attr = {
		.lane = &lane, .depth = DEPTH, .max_io = MAX_IO, .quantum = quantum};

	gn_split_destroy(&split);
	attr.terminal = chain[2];
	TEST_ASSERT_EQUAL_INT(0, gn_split_create(&attr, &split));
}

void setUp(void)
{
	lane.double_completions = &double_completions;
	lane.pub.now_ns = MS;
	chain[0] = (struct gantry_hop){.submit = reject_submit, .complete = guard};
	chain[1] = (struct gantry_hop){.submit = reject_submit, .complete = parent_done};
	chain[2] = (struct gantry_hop){.submit = terminal_submit};
	memset(ios, 0, sizeof(ios));
	memset(n_done, 0, sizeof(n_done));
	memset(next_byte, 0, sizeof(next_byte));
	n_held = n_taken = most_held = again = 0;
	terminal_rc = terminal_now = 0;
	taken_bytes = turn_bytes = double_completions = 0;
	make(QUANTUM);
}

void tearDown(void)
{
	gn_split_destroy(&split);
	TEST_ASSERT_EQUAL_UINT64(0, double_completions);
}

static void submit(unsigned slot, uint8_t opcode, uint8_t flags, uint32_t length)
{
	struct gantry_io *io = &ios[slot];

	next_byte[slot] = 0;
	io->slot = (uint16_t)slot;
	gantry_io_begin(io, lane.pub.now_ns);
	io->hop = &chain[2]; /* the state in which the chain calls its terminal */
	io->opcode = opcode;
	io->flags = flags;
	io->offset = (uint64_t)slot << 32;
	io->length = length;
	io->region = slot + 1;
	io->region_offset = 4096;
	io->data = data;
	io->deadline_us = 1000000;
	gn_split_submit(split, io);
}

static int poll(void)
{
	turn_bytes = 0;
	return gn_split_poll(split);
}

static void finish(unsigned st)
{
	gantry_fail(held[--n_held], (enum gantry_status)st);
}

static void finish_all(void)
{
	while (n_held > 0)
		finish(GANTRY_S_OK);
}

static void an_io_of_one_piece_goes_to_the_terminal_itself(void)
{
	submit(1, GANTRY_OP_READ, GANTRY_IO_CRC, QUANTUM);
	TEST_ASSERT_EQUAL_UINT(1, n_held);
	TEST_ASSERT_EQUAL_PTR(&ios[1], held[0]);
	TEST_ASSERT_EQUAL_UINT(GANTRY_IO_CRC, ios[1].flags);
	finish(GANTRY_S_NOSPC);
	TEST_ASSERT_EQUAL_UINT(1, n_done[1]);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_NOSPC, status[1]);
}

static void a_turn_starts_no_more_than_its_quantum(void)
{
	terminal_now = 1;
	for (unsigned i = 0; i < DEPTH; i++)
		submit(i, GANTRY_OP_WRITE, 0, 4 * QUANTUM);
	TEST_ASSERT_EQUAL_UINT64(QUANTUM, taken_bytes);
	for (unsigned turn = 1; turn < 4 * DEPTH; turn++) {
		TEST_ASSERT_TRUE(gn_split_is_ready(split));
		TEST_ASSERT_EQUAL_INT(1, poll());
		TEST_ASSERT_EQUAL_UINT64(QUANTUM, turn_bytes);
		/* IOs complete in the order of arrival */
		TEST_ASSERT_EQUAL_UINT((turn + 1) % 4 == 0, n_done[turn / 4]);
	}
	TEST_ASSERT_FALSE(gn_split_is_ready(split));
	TEST_ASSERT_EQUAL_INT(0, poll());
}

static void a_large_quantum_starts_several_pieces(void)
{
	make(3 * QUANTUM);
	terminal_now = 1;
	submit(0, GANTRY_OP_READ, 0, 64 * QUANTUM);
	TEST_ASSERT_EQUAL_UINT64(3 * QUANTUM, taken_bytes);
	TEST_ASSERT_EQUAL_INT(3, poll());
	TEST_ASSERT_EQUAL_UINT64(3 * QUANTUM, turn_bytes);
}

static void a_small_quantum_starts_a_piece_in_several_turns(void)
{
	make(QUANTUM / 4);
	terminal_now = 1;
	submit(0, GANTRY_OP_READ, 0, 3 * QUANTUM);
	for (unsigned turn = 1; turn < 9; turn++) {
		poll();
		TEST_ASSERT_EQUAL_UINT(1 + turn / 4, n_taken);
	}
}

static void short_ios_share_a_quantum(void)
{
	terminal_now = 1;
	for (unsigned i = 0; i < DEPTH; i++)
		submit(i, GANTRY_OP_READ, 0, QUANTUM / 2);
	TEST_ASSERT_EQUAL_UINT(2, n_taken);
	TEST_ASSERT_EQUAL_INT(2, poll());
	TEST_ASSERT_EQUAL_INT(1, poll());
	TEST_ASSERT_EQUAL_UINT(1, n_done[DEPTH - 1]);
}

static void a_stable_piece_is_paid_for_by_later_turns(void)
{
	terminal_now = 1;
	submit(0, GANTRY_OP_WRITE, GANTRY_IO_FUA, 8 * QUANTUM);
	TEST_ASSERT_EQUAL_UINT64(4 * QUANTUM, taken_bytes);
	for (unsigned turn = 0; turn < 3; turn++)
		TEST_ASSERT_EQUAL_INT(0, poll());
	TEST_ASSERT_TRUE(gn_split_is_ready(split));
	TEST_ASSERT_EQUAL_INT(1, poll());
	TEST_ASSERT_EQUAL_UINT(1, n_done[0]);
	TEST_ASSERT_EQUAL_UINT(2, n_taken);
}

static void the_debt_stays_when_the_queue_is_empty(void)
{
	terminal_now = 1;
	submit(0, GANTRY_OP_WRITE, GANTRY_IO_FUA, 4 * QUANTUM);
	TEST_ASSERT_EQUAL_UINT(1, n_done[0]);
	poll();
	submit(0, GANTRY_OP_READ, 0, QUANTUM);
	TEST_ASSERT_EQUAL_UINT(1, n_done[0]);
	for (unsigned turn = 0; turn < 3; turn++)
		poll();
	TEST_ASSERT_EQUAL_UINT(2, n_done[0]);
}

static void zeroes_are_divided_by_larger_pieces(void)
{
	terminal_now = 1;
	submit(0, GANTRY_OP_WRITE_ZEROES, 0, 1u << 30);
	TEST_ASSERT_EQUAL_UINT64(16u << 20, taken_bytes);
	for (unsigned turn = 1; turn < 64; turn++)
		TEST_ASSERT_EQUAL_INT(1, poll());
	TEST_ASSERT_EQUAL_UINT(1, n_done[0]);
	TEST_ASSERT_EQUAL_UINT64(1u << 30, taken_bytes);
}

/* The splitter ignores the length of a flush. */
static void a_flush_is_not_divided(void)
{
	submit(0, GANTRY_OP_FLUSH, 0, UINT32_MAX);
	TEST_ASSERT_EQUAL_UINT(1, n_held);
	TEST_ASSERT_EQUAL_PTR(&ios[0], held[0]);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(1, n_done[0]);
}

static void parts_in_flight_are_limited(void)
{
	submit(0, GANTRY_OP_READ, GANTRY_IO_CRC, MAX_IO);
	for (unsigned turn = 0; turn < HELD; turn++)
		poll();
	TEST_ASSERT_EQUAL_UINT(32, n_held);
	TEST_ASSERT_FALSE(gn_split_is_ready(split)); /* the completion of a part wakes the lane */
	TEST_ASSERT_EQUAL_UINT(0, ios[0].flags);
	finish(GANTRY_S_OK);
	TEST_ASSERT_TRUE(gn_split_is_ready(split));
	while (n_done[0] == 0) {
		finish_all();
		poll();
	}
	TEST_ASSERT_EQUAL_UINT64(MAX_IO, taken_bytes);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, status[0]);
}

static void a_terminal_that_is_full_is_asked_again(void)
{
	terminal_rc = -EAGAIN;
	submit(0, GANTRY_OP_READ, 0, 2 * QUANTUM);
	submit(1, GANTRY_OP_READ, 0, QUANTUM);
	TEST_ASSERT_EQUAL_INT(0, poll());
	TEST_ASSERT_TRUE(gn_split_is_ready(split));
	terminal_rc = 0;
	poll();
	TEST_ASSERT_EQUAL_UINT(1, n_held);
	terminal_rc = -EAGAIN; /* for the last part */
	poll();
	TEST_ASSERT_EQUAL_UINT(1, n_held);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(0, n_done[0]);
	terminal_rc = 0;
	terminal_now = 1;
	poll();
	TEST_ASSERT_EQUAL_UINT(1, n_done[0]);
	poll();
	TEST_ASSERT_EQUAL_UINT(1, n_done[1]);
}

static void a_part_that_fails_ends_the_io(void)
{
	submit(0, GANTRY_OP_WRITE, 0, 8 * QUANTUM);
	poll();
	finish(GANTRY_S_NOSPC);
	poll();
	TEST_ASSERT_EQUAL_UINT(0, n_done[0]);
	TEST_ASSERT_EQUAL_UINT(2, n_taken);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(1, n_done[0]);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_NOSPC, status[0]);
}

static void a_terminal_that_refuses_for_good_fails_the_io(void)
{
	terminal_rc = -EROFS;
	submit(0, GANTRY_OP_WRITE, 0, QUANTUM);
	submit(1, GANTRY_OP_WRITE, 0, 2 * QUANTUM);
	poll();
	poll();
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_READ_ONLY, status[0]);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_READ_ONLY, status[1]);
	TEST_ASSERT_EQUAL_UINT(1, n_done[1]);
}

/* An IO with a started part ends with TIMEOUT: CANCELED means that nothing was started. */
static void io_not_started_by_its_deadline_is_canceled(void)
{
	submit(0, GANTRY_OP_WRITE, 0, 4 * QUANTUM);
	submit(1, GANTRY_OP_WRITE, 0, 4 * QUANTUM);
	lane.pub.now_ns += 1000 * MS;
	poll();
	TEST_ASSERT_EQUAL_UINT(1, n_done[1]);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_CANCELED, status[1]);
	TEST_ASSERT_EQUAL_UINT(0, n_done[0]);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(1, n_done[0]);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_TIMEOUT, status[0]);
	TEST_ASSERT_EQUAL_UINT(1, n_taken);
}

static void abandoned_ios_end_when_their_parts_have(void)
{
	submit(0, GANTRY_OP_WRITE, 0, 4 * QUANTUM);
	submit(1, GANTRY_OP_WRITE, 0, QUANTUM);
	gn_split_abandon(split);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_CANCELED, status[1]);
	TEST_ASSERT_EQUAL_UINT(0, n_done[0]);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(1, n_done[0]);
	TEST_ASSERT_EQUAL_UINT(0, poll());
}

/*
 * The owner submits the next IO inside the completion of the previous one. The splitter starts it
 * in a later turn, so that neither the stack nor the turn grows.
 */
static void an_io_inside_a_completion_waits_for_its_turn(void)
{
	terminal_now = 1;
	again = 100;
	submit(0, GANTRY_OP_READ, 0, QUANTUM);
	TEST_ASSERT_EQUAL_UINT(1, n_taken);
	TEST_ASSERT_EQUAL_INT(1, poll());
	TEST_ASSERT_EQUAL_UINT(2, n_taken);
}

static void random_step(struct gantry_random *random, unsigned *n_submitted)
{
	static const uint8_t ops[] = {GANTRY_OP_READ, GANTRY_OP_WRITE, GANTRY_OP_WRITE_ZEROES,
				      GANTRY_OP_DISCARD};
	unsigned slot = (unsigned)gantry_random_below(random, DEPTH);

	terminal_rc = gantry_random_below(random, 4) == 0 ? -EAGAIN : 0;
	terminal_now = gantry_random_below(random, 2) == 0;
	switch (gantry_random_below(random, 3)) {
	case 0:
		if (!ios[slot].busy) {
			(*n_submitted)++;
			submit(slot, ops[gantry_random_below(random, 4)], 0,
			       GN_SPLIT_FROM + 1 +
				       (uint32_t)gantry_random_below(random, 9 * QUANTUM));
		}
		break;
	case 1:
		poll();
		TEST_ASSERT_LESS_OR_EQUAL_UINT64(2 * QUANTUM, turn_bytes);
		break;
	default:
		if (n_held > 0)
			finish(gantry_random_below(random, 8) == 0 ? GANTRY_S_IO : GANTRY_S_OK);
	}
}

static void each_io_completes_once_whatever_happens(void)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct gantry_random random;
		unsigned n_submitted = 0, n = 0;

		gantry_random_seed(&random, seed);
		memset(n_done, 0, sizeof(n_done));
		for (unsigned step = 0; step < 500; step++)
			random_step(&random, &n_submitted);
		terminal_rc = 0;
		terminal_now = 1;
		for (unsigned turn = 0; turn < 500; turn++) {
			finish_all();
			poll();
		}
		for (unsigned i = 0; i < DEPTH; i++)
			n += n_done[i];
		TEST_ASSERT_EQUAL_UINT(n_submitted, n);
		TEST_ASSERT_FALSE(gn_split_is_ready(split));
	}
}

static void impossible_attributes_are_refused(void)
{
	struct gn_split_attr attr = {.lane = &lane, .depth = DEPTH, .max_io = MAX_IO};
	struct gn_split *none = NULL;

	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_split_create(&attr, &none));
	attr.quantum = QUANTUM;
	attr.depth = 0;
	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_split_create(&attr, &none));
	TEST_ASSERT_NULL(none);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(an_io_of_one_piece_goes_to_the_terminal_itself);
	RUN_TEST(a_turn_starts_no_more_than_its_quantum);
	RUN_TEST(a_large_quantum_starts_several_pieces);
	RUN_TEST(a_small_quantum_starts_a_piece_in_several_turns);
	RUN_TEST(short_ios_share_a_quantum);
	RUN_TEST(a_stable_piece_is_paid_for_by_later_turns);
	RUN_TEST(the_debt_stays_when_the_queue_is_empty);
	RUN_TEST(zeroes_are_divided_by_larger_pieces);
	RUN_TEST(a_flush_is_not_divided);
	RUN_TEST(parts_in_flight_are_limited);
	RUN_TEST(a_terminal_that_is_full_is_asked_again);
	RUN_TEST(a_part_that_fails_ends_the_io);
	RUN_TEST(a_terminal_that_refuses_for_good_fails_the_io);
	RUN_TEST(io_not_started_by_its_deadline_is_canceled);
	RUN_TEST(abandoned_ios_end_when_their_parts_have);
	RUN_TEST(an_io_inside_a_completion_waits_for_its_turn);
	RUN_TEST(each_io_completes_once_whatever_happens);
	RUN_TEST(impossible_attributes_are_refused);
	return UNITY_END();
}
