/* SPDX-License-Identifier: BSD-3-Clause */
#include "rig.h"

#define SIZE (1u << 20)

static uint8_t touched[SIZE / 4096];

static void note(struct fake_role_host *rh, const struct gantry_io *io)
{
	(void)rh;
	if (gantry_op_has_range(io->opcode))
		touched[io->offset / 4096]++;
}

static unsigned count_touched(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < SIZE / 4096; i++)
		n += touched[i] != 0;
	return n;
}

static void begin(uint32_t n_lanes)
{
	rig_init(n_lanes, SIZE, 4096);
	rig.rh.seen = note;
	memset(touched, 0, sizeof(touched));
}

static void test_sequential_covers_each_block_once(void)
{
	begin(3);
	TEST_ASSERT_EQUAL_INT(0, rig_run(RIG_CONF("workload.pattern=read", "workload.ops=256",
						  "workload.time=0s")));
	/* three lanes have 86, 85 and 85 of 256 blocks, and as many operations */
	TEST_ASSERT_EQUAL_UINT(256, count_touched());
	TEST_ASSERT_EQUAL_UINT64(256, reported("reads.ops"));
	TEST_ASSERT_EQUAL_UINT64(SIZE, reported("total.bytes"));
	TEST_ASSERT_EQUAL_UINT64(256, reported("progress.done"));
	TEST_ASSERT_EQUAL_UINT64(256, reported("hops.target.count"));
	TEST_ASSERT_EQUAL_UINT64(100, reported("hops.target.p50_ns"));
}

static void test_part_of_the_volume(void)
{
	begin(2);
	TEST_ASSERT_EQUAL_INT(0, rig_run(RIG_CONF("workload.pattern=randwrite", "workload.ops=1000",
						  "workload.time=0s", "workload.offset=64KiB",
						  "workload.size=32KiB", "workload.fua=true",
						  "workload.deadline=2ms")));
	TEST_ASSERT_EQUAL_UINT(8, count_touched());
	for (unsigned i = 16; i < 24; i++)
		TEST_ASSERT_TRUE(touched[i] > 0);
	TEST_ASSERT_EQUAL_UINT(GANTRY_IO_FUA, rig.rh.last_flags);
	TEST_ASSERT_EQUAL_UINT(2000, rig.rh.last_deadline_us);
}

static void test_mix_and_depth(void)
{
	begin(1);
	TEST_ASSERT_EQUAL_INT(0, rig_run(RIG_CONF("workload.pattern=randrw", "workload.ops=10000",
						  "workload.time=0s", "workload.depth=17",
						  "workload.read_percent=90")));
	TEST_ASSERT_EQUAL_UINT(17, rig.rh.max_held);
	TEST_ASSERT_TRUE(reported("reads.ops") > 8800 && reported("reads.ops") < 9200);
	TEST_ASSERT_EQUAL_UINT64(10000, reported("total.ops"));
	TEST_ASSERT_EQUAL_UINT(17, rig.rh.attr.depth);
}

static uint64_t sum;

static void add_offsets(struct fake_role_host *rh, const struct gantry_io *io)
{
	(void)rh;
	sum = sum * 31 + io->offset + io->opcode;
}

static uint64_t trail_of(const char *seed)
{
	begin(1);
	rig.rh.seen = add_offsets;
	sum = 0;
	rig_run(RIG_CONF("workload.pattern=randrw", "workload.ops=100", "workload.time=0s", seed));
	return sum;
}

static void test_a_seed_gives_the_same_again(void)
{
	uint64_t first = trail_of("workload.seed=7");

	TEST_ASSERT_EQUAL_UINT64(first, trail_of("workload.seed=7"));
	TEST_ASSERT_TRUE(first != trail_of("workload.seed=8"));
}

static void test_time_limit_and_ramp(void)
{
	begin(1);
	rig.rh.turn_ns = 10000;
	TEST_ASSERT_EQUAL_INT(0, rig_run(RIG_CONF("workload.time=10ms", "workload.ramp=5ms",
						  "workload.depth=1")));
	/* one IO per turn of 10 us: 500 IOs in the ramp, then 1000 measured IOs */
	TEST_ASSERT_TRUE(rig.rh.n_ops[GANTRY_OP_READ] > 1490 &&
			 rig.rh.n_ops[GANTRY_OP_READ] < 1510);
	TEST_ASSERT_TRUE(reported("reads.ops") > 990 && reported("reads.ops") < 1010);
	TEST_ASSERT_TRUE(reported("elapsed_ns") >= 10000000 && reported("elapsed_ns") < 10100000);
}

static void test_rate(void)
{
	begin(2);
	rig.rh.turn_ns = 10000;
	TEST_ASSERT_EQUAL_INT(0, rig_run(RIG_CONF("workload.time=100ms", "workload.rate=20000")));
	TEST_ASSERT_TRUE(reported("reads.ops") > 1980 && reported("reads.ops") < 2020);
}

static void test_rate_limited_lane_reports_its_wake_time(void)
{
	uint64_t start;

	begin(1);
	TEST_ASSERT_EQUAL_INT(0, rig_open(RIG_CONF("workload.time=1s", "workload.rate=1000")));
	TEST_ASSERT_EQUAL_INT(0, rig_ops()->start(rig.role));
	for (int i = 0; i < 5; i++)
		fake_role_turn(&rig.rh);
	start = rig.host.now_ns;
	TEST_ASSERT_TRUE(fake_role_wake_ns(&rig.rh) > start &&
			 fake_role_wake_ns(&rig.rh) <= start + 1000000);
	rig_ops()->stop(rig.role);
	TEST_ASSERT_EQUAL_INT(1, rig.rh.pollers[0].arm(rig.rh.pollers[0].self));
	TEST_ASSERT_EQUAL_INT(0, fake_role_run(&rig.rh));
}

static void test_io_rejected_with_eagain_is_submitted_again(void)
{
	begin(1);
	fake_role_fault(&rig.rh, (struct fake_fault){.kind = FAKE_REFUSED,
						     .opcode = GANTRY_OP_READ,
						     .nth = 3,
						     .more = 20,
						     .rc = -11});
	TEST_ASSERT_EQUAL_INT(0, rig_run(RIG_CONF("workload.pattern=read", "workload.ops=256",
						  "workload.time=0s")));
	TEST_ASSERT_EQUAL_UINT(256, count_touched());
	TEST_ASSERT_EQUAL_UINT64(256 + 21, rig.rh.n_ops[GANTRY_OP_READ]);
	TEST_ASSERT_EQUAL_UINT64(256, reported("reads.ops"));
}

static void test_flush_after_n_writes(void)
{
	begin(1);
	TEST_ASSERT_EQUAL_INT(0, rig_run(RIG_CONF("workload.pattern=write", "workload.ops=100",
						  "workload.time=0s", "workload.flush_every=8",
						  "workload.depth=4")));
	TEST_ASSERT_EQUAL_UINT64(12, rig.rh.n_ops[GANTRY_OP_FLUSH]);
	TEST_ASSERT_EQUAL_UINT64(12, reported("flushes.ops"));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_sequential_covers_each_block_once);
	RUN_TEST(test_part_of_the_volume);
	RUN_TEST(test_mix_and_depth);
	RUN_TEST(test_a_seed_gives_the_same_again);
	RUN_TEST(test_time_limit_and_ramp);
	RUN_TEST(test_rate);
	RUN_TEST(test_rate_limited_lane_reports_its_wake_time);
	RUN_TEST(test_io_rejected_with_eagain_is_submitted_again);
	RUN_TEST(test_flush_after_n_writes);
	return UNITY_END();
}
