/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "gantry/io.h"
#include "unity.h"

struct place {
	char name;
	int refuse; /* if not 0, what submit returns */
	int hold;   /* keep the descriptor instead of passing it on */
};

static char trail[32];
static size_t n_trail;

static void note(char c)
{
	TEST_ASSERT_TRUE(n_trail + 1 < sizeof(trail));
	trail[n_trail++] = c;
	trail[n_trail] = '\0';
}

static int pass_down(void *self, struct gantry_io *io)
{
	struct place *place = self;

	note(place->name);
	if (place->refuse)
		return place->refuse;
	if (place->hold)
		return 0;
	return gantry_submit(io);
}

static void pass_up(void *self, struct gantry_io *io)
{
	struct place *place = self;

	note(place->name);
	gantry_complete(io);
}

static void owned(void *self, struct gantry_io *io)
{
	struct place *place = self;

	(void)io;
	note(place->name);
}

static int answer(void *self, struct gantry_io *io)
{
	struct place *place = self;

	note(place->name);
	if (place->refuse)
		return place->refuse;
	io->status = GANTRY_S_OK;
	gantry_complete(io);
	return 0;
}

static struct place owner, first, second, terminal;
static struct gantry_hop chain[4];
static struct gantry_io io;

void setUp(void)
{
	owner = (struct place){.name = 'o'};
	first = (struct place){.name = '1'};
	second = (struct place){.name = '2'};
	terminal = (struct place){.name = 't'};
	chain[0] = (struct gantry_hop){.complete = owned, .self = &owner};
	chain[1] = (struct gantry_hop){
		.submit = pass_down, .complete = pass_up, .self = &first, .frame = 1};
	chain[2] = (struct gantry_hop){
		.submit = pass_down, .complete = pass_up, .self = &second, .frame = 2};
	chain[3] = (struct gantry_hop){.submit = answer, .self = &terminal};
	io = (struct gantry_io){.opcode = GANTRY_OP_READ, .hop = chain, .status = GANTRY_S_COUNT};
	n_trail = 0;
	trail[0] = '\0';
}

static void walk_goes_down_and_back_in_reverse(void)
{
	TEST_ASSERT_EQUAL_INT(0, gantry_submit(&io));
	TEST_ASSERT_EQUAL_STRING("12t21o", trail);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, io.status);
	TEST_ASSERT_EQUAL_PTR(chain, io.hop);
}

static void refusal_at_the_end_restores_every_hop(void)
{
	terminal.refuse = -EAGAIN;
	TEST_ASSERT_EQUAL_INT(-EAGAIN, gantry_submit(&io));
	TEST_ASSERT_EQUAL_STRING("12t", trail);
	TEST_ASSERT_EQUAL_PTR(chain, io.hop);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_COUNT, io.status);

	terminal.refuse = 0;
	TEST_ASSERT_EQUAL_INT(0, gantry_submit(&io));
	TEST_ASSERT_EQUAL_STRING("12t12t21o", trail);
}

static void refusal_in_the_middle_keeps_the_reason(void)
{
	second.refuse = -ENOMEM;
	TEST_ASSERT_EQUAL_INT(-ENOMEM, gantry_submit(&io));
	TEST_ASSERT_EQUAL_STRING("12", trail);
	TEST_ASSERT_EQUAL_PTR(chain, io.hop);
}

static void held_descriptor_continues_at_its_hop(void)
{
	first.hold = 1;
	TEST_ASSERT_EQUAL_INT(0, gantry_submit(&io));
	TEST_ASSERT_EQUAL_STRING("1", trail);
	TEST_ASSERT_EQUAL_PTR(&chain[1], io.hop);
	TEST_ASSERT_EQUAL_INT(0, gantry_submit(&io));
	TEST_ASSERT_EQUAL_STRING("12t21o", trail);
}

static void failed_descriptor_turns_back(void)
{
	second.hold = 1;
	TEST_ASSERT_EQUAL_INT(0, gantry_submit(&io));
	gantry_fail(&io, GANTRY_S_RANGE);
	TEST_ASSERT_EQUAL_STRING("121o", trail);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_RANGE, io.status);
}

static void each_hop_has_the_frame_it_asked_for(void)
{
	second.hold = 1;
	TEST_ASSERT_EQUAL_INT(0, gantry_submit(&io));
	TEST_ASSERT_EQUAL_PTR(&io.frame[2], gantry_stage_ctx(&io));
}

static void range_within_the_limit_is_accepted(void)
{
	TEST_ASSERT_TRUE(gantry_range_ok(0, 0, 0));
	TEST_ASSERT_TRUE(gantry_range_ok(0, 4096, 4096));
	TEST_ASSERT_TRUE(gantry_range_ok(4096, 0, 4096));
	TEST_ASSERT_TRUE(gantry_range_ok(UINT64_MAX - 1, 1, UINT64_MAX));
	TEST_ASSERT_TRUE(gantry_range_ok(0, UINT64_MAX, UINT64_MAX));
}

static void range_beyond_the_limit_or_with_overflow_is_rejected(void)
{
	TEST_ASSERT_FALSE(gantry_range_ok(1, 4096, 4096));
	TEST_ASSERT_FALSE(gantry_range_ok(4097, 0, 4096));
	TEST_ASSERT_FALSE(gantry_range_ok(0, 1, 0));
	TEST_ASSERT_FALSE(gantry_range_ok(UINT64_MAX, 1, 4096));
	TEST_ASSERT_FALSE(gantry_range_ok(UINT64_MAX - 4095, 4096, 8192));
	TEST_ASSERT_FALSE(gantry_range_ok(8, UINT64_MAX - 7, 4096));
	TEST_ASSERT_FALSE(gantry_range_ok(UINT64_MAX, UINT64_MAX, UINT64_MAX));
}

static void operations_report_data_range_and_writing(void)
{
	TEST_ASSERT_TRUE(gantry_op_has_data(GANTRY_OP_READ));
	TEST_ASSERT_TRUE(gantry_op_has_data(GANTRY_OP_WRITE));
	TEST_ASSERT_FALSE(gantry_op_has_data(GANTRY_OP_DISCARD));
	TEST_ASSERT_TRUE(gantry_op_has_range(GANTRY_OP_WRITE_ZEROES));
	TEST_ASSERT_FALSE(gantry_op_has_range(GANTRY_OP_FLUSH));
	TEST_ASSERT_FALSE(gantry_op_writes(GANTRY_OP_READ));
	TEST_ASSERT_TRUE(gantry_op_writes(GANTRY_OP_DISCARD));
	TEST_ASSERT_FALSE(gantry_op_has_data(GANTRY_OP_EXTENTS));
	TEST_ASSERT_TRUE(gantry_op_has_range(GANTRY_OP_EXTENTS));
	TEST_ASSERT_FALSE(gantry_op_writes(GANTRY_OP_EXTENTS));
}

static void buffer_of_extents_does_not_depend_on_the_length(void)
{
	io = (struct gantry_io){.opcode = GANTRY_OP_READ, .length = 8192};
	TEST_ASSERT_EQUAL_UINT(8192, gantry_io_buffer_bytes(&io));
	io.opcode = GANTRY_OP_EXTENTS;
	TEST_ASSERT_EQUAL_UINT(GANTRY_EXTENTS_BYTES, gantry_io_buffer_bytes(&io));
	io.opcode = GANTRY_OP_DISCARD;
	TEST_ASSERT_EQUAL_UINT(0, gantry_io_buffer_bytes(&io));
}

static void extents_with_the_same_flags_are_joined_until_the_buffer_is_full(void)
{
	struct gantry_extents extents = {.count = 0}, buffer;

	io = (struct gantry_io){.opcode = GANTRY_OP_EXTENTS, .data = &buffer};
	for (unsigned i = 0; i < GANTRY_EXTENTS_MAX; i++) {
		TEST_ASSERT_EQUAL_INT(0, gantry_extents_add(&extents, 512, i & 1));
		TEST_ASSERT_EQUAL_INT(0, gantry_extents_add(&extents, 1024, i & 1));
	}
	TEST_ASSERT_EQUAL_INT(-1, gantry_extents_add(&extents, 512, GANTRY_EXTENT_ZERO));
	TEST_ASSERT_EQUAL_INT(0, gantry_extents_add(&extents, 512, 1));
	gantry_extents_finish(&io, &extents);
	TEST_ASSERT_EQUAL_UINT(GANTRY_EXTENTS_MAX, buffer.count);
	TEST_ASSERT_EQUAL_UINT64(GANTRY_EXTENTS_MAX * 1536u + 512, buffer.bytes);
	TEST_ASSERT_EQUAL_UINT(1536, buffer.extent[0].length);
	TEST_ASSERT_EQUAL_UINT(2048, buffer.extent[GANTRY_EXTENTS_MAX - 1].length);
	TEST_ASSERT_TRUE(gantry_extents_are_valid(&buffer, UINT32_MAX, 512));
}

static void extents_that_break_a_rule_are_not_valid(void)
{
	static const struct gantry_extents good = {
		.count = 2, .bytes = 1536, .extent = {{512, 3}, {1024, 0}}};
	struct gantry_extents bad[] = {good, good, good, good, good, good, good};

	TEST_ASSERT_TRUE(gantry_extents_are_valid(&good, 1536, 512));
	TEST_ASSERT_FALSE(gantry_extents_are_valid(&good, 1024, 512));
	TEST_ASSERT_FALSE(gantry_extents_are_valid(&good, 1536, 1024));
	bad[0].count = 0;
	bad[1].count = GANTRY_EXTENTS_MAX + 1;
	bad[2].bytes = 1024;
	bad[3].extent[1].length = 0;
	bad[3].bytes = 512;
	bad[4].extent[0].flags = 4;
	bad[5].count = 3;
	bad[6].extent[1].length = UINT32_MAX - 511;
	bad[6].bytes = 512 + (uint64_t)bad[6].extent[1].length;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		TEST_ASSERT_FALSE(gantry_extents_are_valid(&bad[i], 1536, 512));
}

static void uncertain_statuses_do_not_release_the_buffer(void)
{
	TEST_ASSERT_TRUE(gantry_status_buffer_released(GANTRY_S_OK));
	TEST_ASSERT_TRUE(gantry_status_buffer_released(GANTRY_S_IO));
	TEST_ASSERT_FALSE(gantry_status_buffer_released(GANTRY_S_TIMEOUT));
	TEST_ASSERT_FALSE(gantry_status_buffer_released(GANTRY_S_SESSION_LOST));
	TEST_ASSERT_FALSE(gantry_status_buffer_released(GANTRY_S_UNKNOWN));
}

/*
 * An allocation of any size gets whole cache lines of its own, which are zeroed, also in memory
 * that was used before.
 */
static void allocation_has_whole_zeroed_cache_lines(void)
{
	for (size_t bytes = 1; bytes <= 3 * GANTRY_CACHE_LINE + 1; bytes += 31) {
		size_t all = (bytes + GANTRY_CACHE_LINE - 1) / GANTRY_CACHE_LINE *
			     GANTRY_CACHE_LINE;

		for (int round = 0; round < 3; round++) {
			uint8_t *memory = gantry_zalloc_lines(bytes);

			TEST_ASSERT_NOT_NULL(memory);
			TEST_ASSERT_EQUAL_UINT(0, (uintptr_t)memory % GANTRY_CACHE_LINE);
			for (size_t i = 0; i < all; i++)
				TEST_ASSERT_EQUAL_UINT8(0, memory[i]);
			memset(memory, 0xa5, all);
			free(memory);
		}
	}
	TEST_ASSERT_NULL(gantry_zalloc_lines(SIZE_MAX));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(walk_goes_down_and_back_in_reverse);
	RUN_TEST(refusal_at_the_end_restores_every_hop);
	RUN_TEST(refusal_in_the_middle_keeps_the_reason);
	RUN_TEST(held_descriptor_continues_at_its_hop);
	RUN_TEST(failed_descriptor_turns_back);
	RUN_TEST(each_hop_has_the_frame_it_asked_for);
	RUN_TEST(range_within_the_limit_is_accepted);
	RUN_TEST(range_beyond_the_limit_or_with_overflow_is_rejected);
	RUN_TEST(operations_report_data_range_and_writing);
	RUN_TEST(buffer_of_extents_does_not_depend_on_the_length);
	RUN_TEST(extents_with_the_same_flags_are_joined_until_the_buffer_is_full);
	RUN_TEST(extents_that_break_a_rule_are_not_valid);
	RUN_TEST(uncertain_statuses_do_not_release_the_buffer);
	RUN_TEST(allocation_has_whole_zeroed_cache_lines);
	return UNITY_END();
}
