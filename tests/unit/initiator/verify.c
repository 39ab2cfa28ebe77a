/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The check of the data that an initiator reads (workload.verify): it reports each kind of
 * misbehaviour of a volume by the verdict of that kind, and by no other verdict.
 */
#include "rig.h"

#define BLOCKS 64
#define SIZE (BLOCKS * 4096)
#define STAMPED "workload.verify=stamp", "workload.time=0s", "workload.depth=4"

/* The report must have exactly these verdicts; `status` must be 1 if there are any, else 0. */
static void expect(int status, uint64_t wrong, uint64_t stale, uint64_t torn, uint64_t corrupt,
		   uint64_t missing)
{
	TEST_ASSERT_EQUAL_UINT64_MESSAGE(wrong, reported("verify.wrong_block"), rig.host.log);
	TEST_ASSERT_EQUAL_UINT64_MESSAGE(stale, reported("verify.stale"), rig.host.log);
	TEST_ASSERT_EQUAL_UINT64_MESSAGE(torn, reported("verify.torn"), rig.host.log);
	TEST_ASSERT_EQUAL_UINT64_MESSAGE(corrupt, reported("verify.corrupt"), rig.host.log);
	TEST_ASSERT_EQUAL_UINT64_MESSAGE(missing, reported("verify.missing"), rig.host.log);
	TEST_ASSERT_EQUAL_UINT64(0, reported("verify.foreign"));
	TEST_ASSERT_EQUAL_INT_MESSAGE(wrong + stale + torn + corrupt + missing > 0, status,
				      rig.host.log);
}

/* Run two passes of sequential writes, and a read of all blocks. Returns the exit status. */
static int two_passes(struct fake_fault fault)
{
	rig_init(1, SIZE, 4096);
	fake_role_fault(&rig.rh, fault);
	return rig_run(RIG_CONF("workload.pattern=write", "workload.ops=128", STAMPED));
}

static int one_pass(struct fake_fault fault)
{
	rig_init(1, SIZE, 4096);
	fake_role_fault(&rig.rh, fault);
	return rig_run(RIG_CONF("workload.pattern=write", "workload.ops=64", STAMPED));
}

static int large_blocks(struct fake_fault fault)
{
	rig_init(1, SIZE, 512);
	fake_role_fault(&rig.rh, fault);
	return rig_run(RIG_CONF("workload.pattern=write", "workload.block=8KiB", "workload.ops=64",
				STAMPED));
}

static int small_blocks(struct fake_fault fault)
{
	rig_init(1, SIZE, 512);
	fake_role_fault(&rig.rh, fault);
	return rig_run(RIG_CONF("workload.pattern=write", "workload.block=512", "workload.ops=512",
				STAMPED));
}

static void test_a_good_volume_passes(void)
{
	int status = two_passes((struct fake_fault){0});

	expect(status, 0, 0, 0, 0, 0);
	TEST_ASSERT_EQUAL_UINT64(BLOCKS, reported("verify.checked"));
	TEST_ASSERT_EQUAL_UINT64(128, reported("writes.ops"));
	TEST_ASSERT_EQUAL_UINT64(0, reported("reads.ops"));
	expect(large_blocks((struct fake_fault){0}), 0, 0, 0, 0, 0);
	expect(small_blocks((struct fake_fault){0}), 0, 0, 0, 0, 0);
}

static void mixed(const char *pattern, int inline_completion, int newest_first)
{
	char setting[64];
	int status;

	snprintf(setting, sizeof(setting), "workload.pattern=%s", pattern);
	rig_init(3, SIZE, 4096);
	rig.rh.inline_completion = inline_completion;
	rig.rh.newest_first = newest_first;
	status = rig_run(RIG_CONF(setting, "workload.ops=5000", "workload.verify=stamp",
				  "workload.time=0s", "workload.depth=32",
				  "workload.flush_every=10"));
	expect(status, 0, 0, 0, 0, 0);
	TEST_ASSERT_EQUAL_UINT64(0, reported("verify.unverified"));
	TEST_ASSERT_EQUAL_UINT64(5000, reported("reads.ops") + reported("writes.ops"));
	TEST_ASSERT_TRUE(reported("verify.checked") >= reported("reads.ops") + BLOCKS);
	TEST_ASSERT_TRUE(reported("flushes.ops") >= reported("writes.ops") / 10 - 3);
}

static void test_no_false_verdict_when_reads_and_writes_mix(void)
{
	mixed("randrw", 0, 0);
	mixed("randrw", 0, 1);
	mixed("randrw", 1, 0);
	mixed("readwrite", 0, 1);
}

static void test_lost_write(void)
{
	struct fake_fault lost = {.kind = FAKE_LOST, .opcode = GANTRY_OP_WRITE, .nth = 70};
	int status = two_passes(lost);

	expect(status, 0, 1, 0, 0, 0);
	TEST_ASSERT_TRUE(fake_logged(&rig.host,
				     "stale data at offset 20480: expected a write from number 2"));
	lost.nth = 10;
	status = one_pass(lost);
	expect(status, 0, 0, 0, 0, 1);
	TEST_ASSERT_TRUE(fake_logged(
		&rig.host, "missing data at offset 36864: expected a write from number 1"));
}

static void test_misdirected_write(void)
{
	/* the last write of the second pass goes to the first block */
	int status = two_passes((struct fake_fault){
		.kind = FAKE_MISDIRECTED, .opcode = GANTRY_OP_WRITE, .nth = 128});

	expect(status, 1, 1, 0, 0, 0);
	TEST_ASSERT_TRUE(fake_logged(&rig.host, "wrong_block data at offset 0:"));
	TEST_ASSERT_TRUE(fake_logged(&rig.host, "found offset 258048, write 2"));
}

static void test_misdirected_read(void)
{
	int status = one_pass(
		(struct fake_fault){.kind = FAKE_MISDIRECTED, .opcode = GANTRY_OP_READ, .nth = 7});

	expect(status, 1, 0, 0, 0, 0);
}

static void test_stale_read(void)
{
	int status = two_passes(
		(struct fake_fault){.kind = FAKE_STALE, .opcode = GANTRY_OP_READ, .nth = 3});

	expect(status, 0, 1, 0, 0, 0);
}

static void test_torn_write(void)
{
	struct fake_fault torn = {.kind = FAKE_TORN, .opcode = GANTRY_OP_WRITE, .nth = 70};

	expect(two_passes(torn), 0, 0, 1, 0, 0);
	torn.nth = 40;
	expect(one_pass(torn), 0, 0, 1, 0, 0);
	expect(large_blocks(torn), 0, 0, 1, 0, 0);
	torn.kind = FAKE_TORN_SECTOR;
	torn.nth = 128;
	expect(two_passes(torn), 0, 0, 1, 0, 0);
}

static void test_bit_flip(void)
{
	struct fake_fault flip = {.kind = FAKE_FLIPPED, .opcode = GANTRY_OP_WRITE, .nth = 64};

	expect(one_pass(flip), 0, 0, 0, 1, 0);
	expect(large_blocks(flip), 0, 0, 0, 1, 0);
	expect(small_blocks(flip), 0, 0, 0, 1, 0);
	/* a read flips a bit of the magic number in the header */
	flip.opcode = GANTRY_OP_READ;
	flip.nth = 11;
	expect(one_pass(flip), 0, 0, 0, 1, 0);
}

static void test_read_that_moves_nothing(void)
{
	/* the only buffer still has the data of the write */
	rig_init(1, 4096, 4096);
	fake_role_fault(&rig.rh, (struct fake_fault){
					 .kind = FAKE_UNMOVED, .opcode = GANTRY_OP_READ, .nth = 1});
	expect(rig_run(RIG_CONF("workload.pattern=write", "workload.ops=1", "workload.depth=1",
				"workload.time=0s", "workload.verify=stamp")),
	       0, 0, 0, 0, 1);
}

static void test_content_of_another_run(void)
{
	int status = one_pass((struct fake_fault){0});

	TEST_ASSERT_EQUAL_INT(0, status);
	rig.rh.n_ops[GANTRY_OP_WRITE] = 0;
	fake_role_fault(&rig.rh, (struct fake_fault){
					 .kind = FAKE_LOST, .opcode = GANTRY_OP_WRITE, .nth = 5});
	status = rig_run(RIG_CONF("workload.pattern=write", "workload.ops=64", STAMPED));
	TEST_ASSERT_EQUAL_INT(1, status);
	TEST_ASSERT_EQUAL_UINT64(1, reported("verify.foreign"));
	TEST_ASSERT_EQUAL_UINT64(0, reported("verify.missing"));
}

static void test_doubled_completion(void)
{
	int status = two_passes(
		(struct fake_fault){.kind = FAKE_DOUBLED, .opcode = GANTRY_OP_WRITE, .nth = 9});

	TEST_ASSERT_EQUAL_INT(1, status);
	TEST_ASSERT_EQUAL_UINT64(1, reported("errors.double_completions"));
}

static int failing_writes(enum fake_fault_kind kind, unsigned status)
{
	rig_init(1, SIZE, 4096);
	fake_role_fault(&rig.rh, (struct fake_fault){.kind = kind,
						     .opcode = GANTRY_OP_WRITE,
						     .nth = 70,
						     .more = 2,
						     .status = status});
	return rig_run(RIG_CONF("workload.pattern=randrw", "workload.ops=2000",
				"workload.verify=stamp", "workload.time=0s", "workload.depth=8",
				"continue_on_error=true"));
}

static void test_a_failed_write_may_or_may_not_be_there(void)
{
	expect(failing_writes(FAKE_STATUS, GANTRY_S_IO), 0, 0, 0, 0, 0);
	TEST_ASSERT_EQUAL_UINT64(3, reported("errors.IO"));
	TEST_ASSERT_EQUAL_UINT64(0, reported("quarantined"));
	expect(failing_writes(FAKE_HALF_STATUS, GANTRY_S_NOSPC), 0, 0, 0, 0, 0);
	expect(failing_writes(FAKE_HALF_STATUS, GANTRY_S_TIMEOUT), 0, 0, 0, 0, 0);
	TEST_ASSERT_EQUAL_UINT64(3, reported("quarantined"));
	TEST_ASSERT_EQUAL_UINT(1, rig.rh.n_withdrawn);
	TEST_ASSERT_EQUAL_UINT(0, rig.rh.n_quarantined);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_a_good_volume_passes);
	RUN_TEST(test_no_false_verdict_when_reads_and_writes_mix);
	RUN_TEST(test_lost_write);
	RUN_TEST(test_misdirected_write);
	RUN_TEST(test_misdirected_read);
	RUN_TEST(test_stale_read);
	RUN_TEST(test_torn_write);
	RUN_TEST(test_bit_flip);
	RUN_TEST(test_read_that_moves_nothing);
	RUN_TEST(test_content_of_another_run);
	RUN_TEST(test_doubled_completion);
	RUN_TEST(test_a_failed_write_may_or_may_not_be_there);
	return UNITY_END();
}
