/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A requester whose peer can answer reads by notes: a note is checked as strictly as a whole reply.
 */
#include "requester_rig.h"

static void begin_with_notes(void)
{
	end();
	begin(true);
	start();
}

static void note(uint32_t tag)
{
	fake_arrive(consumer, &tag, sizeof(tag));
	fake_settle(&fw);
}

static void a_note_completes_its_read(void)
{
	struct gantry_io wire;

	begin_with_notes();
	TEST_ASSERT_EQUAL_INT(0, submit(2, 0));
	TEST_ASSERT_EQUAL_INT(0, submit(3, 0));
	taken();
	wire = taken();
	ios[3].flags |= GANTRY_IO_CRC;
	ios[3].crc32c = 5;
	ios[3].status = GANTRY_S_IO;
	note(wire.tag);
	TEST_ASSERT_EQUAL_UINT(0, n_done[2]);
	TEST_ASSERT_EQUAL_UINT(1, n_done[3]);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, status[3]);
	TEST_ASSERT_EQUAL_UINT(0, ios[3].flags);
	TEST_ASSERT_EQUAL_UINT(0, ios[3].crc32c);
	TEST_ASSERT_EQUAL_INT(0, submit(3, 0));
	answer(taken(), GANTRY_S_OK); /* the peer can also send a whole reply */
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(2, n_done[3]);
	TEST_ASSERT_EQUAL_UINT(0, n_broken);
}

/*
 * Inject a note of `bytes` bytes with the tag of a read in flight XORed with `xor`, and expect that
 * the requester breaks.
 */
static void expect_note_breaks(uint32_t xor, uint32_t bytes)
{
	uint32_t tag;

	TEST_ASSERT_EQUAL_INT(0, submit(0, 0));
	tag = taken().tag ^ xor;
	fake_arrive(consumer,
		    (uint8_t[8]){(uint8_t)tag, (uint8_t)(tag >> 8), (uint8_t)(tag >> 16),
				 (uint8_t)(tag >> 24)},
		    bytes);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, n_broken);
	TEST_ASSERT_EQUAL_INT(-EPROTO, broken_reason);
	TEST_ASSERT_EQUAL_UINT(0, n_done[0]);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, submit(1, 0));
}

static void a_note_that_was_not_agreed_on_breaks(void)
{
	start();
	expect_note_breaks(0, GN_IMM_REPLY_BYTES);
}

static void a_note_of_another_read_breaks(void)
{
	static const uint32_t xors[] = {1, 0xfff8, 0x30000, 0x80000000u};

	for (size_t i = 0; i < sizeof(xors) / sizeof(xors[0]); i++) {
		begin_with_notes();
		expect_note_breaks(xors[i], GN_IMM_REPLY_BYTES);
		n_broken = 0;
	}
}

static void a_note_of_another_length_breaks(void)
{
	static const uint32_t bytes[] = {0, 3, 5, 8};

	for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		begin_with_notes();
		expect_note_breaks(0, bytes[i]);
		n_broken = 0;
	}
}

/* A note can only answer a read. */
static void a_note_about_a_write_breaks(void)
{
	begin_with_notes();
	opcode = GANTRY_OP_WRITE;
	expect_note_breaks(0, GN_IMM_REPLY_BYTES);
}

static void the_second_note_of_one_read_breaks(void)
{
	uint32_t tag;

	begin_with_notes();
	TEST_ASSERT_EQUAL_INT(0, submit(0, 0));
	tag = taken().tag;
	note(tag);
	TEST_ASSERT_EQUAL_UINT(0, n_broken);
	note(tag);
	TEST_ASSERT_EQUAL_UINT(1, n_broken);
	TEST_ASSERT_EQUAL_UINT(1, n_done[0]);
}

static void late_note_releases_its_slot(void)
{
	uint32_t tag;

	begin_with_notes();
	TEST_ASSERT_EQUAL_INT(0, submit(0, 1000000));
	tag = taken().tag;
	fake_clock_advance(2 * GN_NS_PER_S);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_TIMEOUT, status[0]);
	TEST_ASSERT_NOT_EQUAL(UINT64_MAX, settled_ns());
	note(tag);
	TEST_ASSERT_EQUAL_UINT64(UINT64_MAX, settled_ns());
	TEST_ASSERT_EQUAL_UINT(1, n_done[0]);
	TEST_ASSERT_EQUAL_UINT64(1, gn_host_counter(&fw.host, "late_replies"));
	TEST_ASSERT_EQUAL_UINT(0, n_broken);
	note(tag);
	TEST_ASSERT_EQUAL_UINT(1, n_broken);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(a_note_completes_its_read);
	RUN_TEST(a_note_that_was_not_agreed_on_breaks);
	RUN_TEST(a_note_of_another_read_breaks);
	RUN_TEST(a_note_of_another_length_breaks);
	RUN_TEST(a_note_about_a_write_breaks);
	RUN_TEST(the_second_note_of_one_read_breaks);
	RUN_TEST(late_note_releases_its_slot);
	return UNITY_END();
}
