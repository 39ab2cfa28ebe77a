/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A run that is rejected, stopped, fails, or loses its session calls finished() once and leaks
 * nothing.
 */
#include <errno.h>

#include <gantry/random.h>

#include "rig.h"

#define SIZE (1u << 20)

static void start(void *conf)
{
	TEST_ASSERT_EQUAL_INT(0, rig_open(conf));
	TEST_ASSERT_EQUAL_INT(0, rig_ops()->start(rig.role));
}

static void expect_end(int status)
{
	TEST_ASSERT_EQUAL_INT(status, fake_role_run(&rig.rh));
	TEST_ASSERT_EQUAL_INT(1, rig.rh.finished);
	TEST_ASSERT_EQUAL_UINT(0, rig.rh.n_chains);
	TEST_ASSERT_EQUAL_UINT(0, rig.rh.n_regions);
	TEST_ASSERT_EQUAL_UINT(1, rig.rh.n_freed);
	for (unsigned i = 0; i < FAKE_LANES; i++)
		TEST_ASSERT_NULL(rig.rh.pollers[i].self);
	fake_report_init(&rig.report);
	rig_ops()->report(rig.role, &rig.report.pub);
}

static void test_invalid_settings_are_rejected(void)
{
	rig_init(1, SIZE, 4096);
	TEST_ASSERT_EQUAL_INT(-EINVAL,
			      rig_open(RIG_CONF("workload.pattern=read", "workload.verify=stamp")));
	TEST_ASSERT_TRUE(fake_logged(&rig.host, "needs a pattern that writes"));
	TEST_ASSERT_EQUAL_INT(-EINVAL, rig_open(RIG_CONF("workload.block=1000")));
	TEST_ASSERT_EQUAL_INT(-EINVAL, rig_open(RIG_CONF("copy.from=a", "copy.to=b")));
	TEST_ASSERT_TRUE(fake_logged(&rig.host, "only one of"));
	TEST_ASSERT_TRUE(fake_logged(&rig.host, "copy.to: "));
}

static void does_not_fit(void *conf, const char *text)
{
	start(conf);
	expect_end(1);
	TEST_ASSERT_TRUE_MESSAGE(fake_logged(&rig.host, text), rig.host.log);
	rig_close();
	rig_init(1, SIZE, 4096);
}

static void test_a_volume_that_does_not_fit(void)
{
	rig_init(1, SIZE, 4096);
	does_not_fit(RIG_CONF("workload.block=512"),
		     "workload.block: 512 bytes; write multiples of");
	does_not_fit(RIG_CONF("workload.block=2MiB"), "up to 1048576");
	does_not_fit(RIG_CONF("workload.offset=6KiB"),
		     "workload.offset: 6144 bytes; write multiples of the volume's block");
	does_not_fit(RIG_CONF("workload.offset=1MiB"), "not inside the volume of 1048576 bytes");
	does_not_fit(RIG_CONF("workload.offset=512KiB", "workload.size=1MiB"),
		     "of 1048576 bytes; write up to 524288");
	does_not_fit(RIG_CONF("workload.offset=1020KiB", "workload.block=8KiB"),
		     "less than one block of 8192 for each of 1 lanes");
	rig.rh.volume.flags = GANTRY_VOLUME_READ_ONLY;
	does_not_fit(RIG_CONF("workload.pattern=randrw"),
		     "does not support the workload: it is read-only; write");
	rig.rh.volume.ops &= ~(1u << GANTRY_OP_FLUSH);
	does_not_fit(RIG_CONF("workload.pattern=write", "workload.flush_every=1"),
		     "workload: it does not support flushes");
}

static void test_a_connect_that_cannot_start(void)
{
	rig_init(1, SIZE, 4096);
	rig.rh.open_rc = -ENOMEM;
	TEST_ASSERT_EQUAL_INT(0, rig_open(RIG_CONF("workload.ops=1")));
	TEST_ASSERT_EQUAL_INT(-ENOMEM, rig_ops()->start(rig.role));
}

static void test_stop_before_the_start(void)
{
	rig_init(1, SIZE, 4096);
	TEST_ASSERT_EQUAL_INT(0, rig_open(RIG_CONF("workload.ops=1")));
	rig_ops()->stop(rig.role);
	rig_ops()->stop(rig.role);
	TEST_ASSERT_EQUAL_INT(1, rig.rh.finished);
	TEST_ASSERT_EQUAL_INT(0, rig.rh.status);
}

static int turn_until_it_runs(int most)
{
	for (int i = 0; i < most && !rig.rh.pollers[0].self; i++)
		fake_role_turn(&rig.rh);
	return rig.rh.pollers[0].self != NULL;
}

static void stop(void)
{
	rig_ops()->stop(rig.role);
	expect_end(0);
	rig_close();
}

/* The pages of a large region take long to allocate. Heartbeats must continue meanwhile. */
static void test_a_large_region_leaves_time_for_heartbeats(void)
{
	struct gantry_random random;

	gantry_random_seed(&random, 1);
	rig_init(1, 1ull << 30, 4096);
	start(RIG_CONF("workload.time=0s", "workload.block=1MiB", "workload.depth=128"));
	TEST_ASSERT_FALSE(turn_until_it_runs(6));
	TEST_ASSERT_TRUE(rig.rh.region_flags & GANTRY_REGION_LAZY);
	stop(); /* while pages are allocated */
	rig_init(1, 1ull << 30, 4096);
	start(RIG_CONF("workload.time=0s", "workload.pattern=write", "workload.block=1MiB",
		       "workload.depth=64"));
	TEST_ASSERT_TRUE(turn_until_it_runs(100));
	TEST_ASSERT_EQUAL_UINT64(64ull << 20, rig.rh.region->length);
	for (uint64_t i = 0; i < rig.rh.region->length / 8; i++) {
		uint64_t expected = gantry_random_next(&random);

		if (((const uint64_t *)rig.rh.region->addr)[i] != expected)
			TEST_FAIL_MESSAGE("not what the seed gives");
	}
	stop();
}

static void test_stop_at_each_step(void)
{
	for (int turns = 0; turns < 6; turns++) {
		rig_init(3, SIZE, 4096);
		start(RIG_CONF("workload.time=0s", "workload.pattern=randrw"));
		for (int i = 0; i < turns; i++)
			fake_role_turn(&rig.rh);
		rig_ops()->stop(rig.role);
		rig_ops()->stop(rig.role);
		expect_end(0);
		rig_close();
	}
}

static void test_session_lost_at_each_step(void)
{
	for (int turns = 0; turns < 6; turns++) {
		rig_init(3, SIZE, 4096);
		start(RIG_CONF("workload.time=0s", "workload.pattern=randrw",
			       "continue_on_error=true"));
		for (int i = 0; i < turns; i++)
			fake_role_turn(&rig.rh);
		rig.rh.lose_rc = -ENOTCONN;
		expect_end(1);
		rig_close();
	}
}

static void test_the_first_error_ends_the_run(void)
{
	rig_init(2, SIZE, 4096);
	fake_role_fault(&rig.rh, (struct fake_fault){.kind = FAKE_STATUS,
						     .opcode = GANTRY_OP_READ,
						     .nth = 100,
						     .status = GANTRY_S_IO});
	start(RIG_CONF("workload.ops=10000", "workload.depth=4"));
	expect_end(1);
	TEST_ASSERT_EQUAL_UINT64(1, reported("errors.IO"));
	TEST_ASSERT_TRUE(reported("reads.ops") < 120);
}

/* After the resume, an IO of lane 0 times out before lane 1 has submitted its lost IOs again. */
static void test_a_lane_that_drains_submits_lost_ios_again(void)
{
	rig_init(2, SIZE, 4096);
	rig.rh.resume_ns = 1000000000;
	rig.rh.quiet = 1;
	start(RIG_CONF("workload.time=0s", "workload.depth=4"));
	TEST_ASSERT_TRUE(turn_until_it_runs(10));
	for (int i = 0; i < 2; i++)
		rig.rh.pollers[i].poll(rig.rh.pollers[i].self);
	TEST_ASSERT_EQUAL_UINT(8, rig.rh.n_held);
	rig.rh.lose_rc = -ECONNRESET;
	fake_role_turn(&rig.rh);
	fake_role_fault(&rig.rh, (struct fake_fault){.kind = FAKE_STATUS,
						     .opcode = GANTRY_OP_READ,
						     .nth = rig.rh.n_ops[GANTRY_OP_READ] + 1,
						     .status = GANTRY_S_TIMEOUT});
	rig.rh.inline_completion = 1;
	TEST_ASSERT_EQUAL_INT(1, fake_role_run(&rig.rh));
	fake_report_init(&rig.report);
	rig_ops()->report(rig.role, &rig.report.pub);
	TEST_ASSERT_TRUE(fake_logged(&rig.host, "8 IOs submitted again"));
	TEST_ASSERT_EQUAL_UINT64(1, reported("errors.TIMEOUT"));
	TEST_ASSERT_EQUAL_UINT64(reported("submitted"), reported("completed"));
}

static void test_errors_are_counted_when_asked(void)
{
	rig_init(2, SIZE, 4096);
	fake_role_fault(&rig.rh, (struct fake_fault){.kind = FAKE_STATUS,
						     .opcode = GANTRY_OP_READ,
						     .nth = 100,
						     .more = 9,
						     .status = GANTRY_S_IO});
	start(RIG_CONF("workload.ops=10000", "continue_on_error=true", "workload.time=0s"));
	expect_end(0);
	TEST_ASSERT_EQUAL_UINT64(10, reported("errors.IO"));
	TEST_ASSERT_EQUAL_UINT64(9990, reported("reads.ops"));
}

static void test_out_of_buffers(void)
{
	rig_init(1, SIZE, 4096);
	fake_role_fault(&rig.rh, (struct fake_fault){.kind = FAKE_STATUS,
						     .opcode = GANTRY_OP_READ,
						     .nth = 1,
						     .more = 1000,
						     .status = GANTRY_S_TIMEOUT});
	start(RIG_CONF("workload.ops=10000", "continue_on_error=true", "workload.depth=8"));
	expect_end(1);
	TEST_ASSERT_EQUAL_UINT64(8, reported("errors.TIMEOUT"));
	TEST_ASSERT_EQUAL_UINT64(8, reported("quarantined"));
	TEST_ASSERT_EQUAL_UINT(1, rig.rh.n_withdrawn);
	TEST_ASSERT_EQUAL_UINT(0, rig.rh.n_quarantined);
	TEST_ASSERT_TRUE(fake_logged(&rig.host, "all 8 buffers are in quarantine"));
}

/* An IO that timed out puts its buffer in quarantine; the end of the session releases it. */
static void test_end_of_the_session_releases_quarantined_buffers(void)
{
	rig_init(1, SIZE, 4096);
	rig.rh.quiet = 1;
	fake_role_fault(&rig.rh, (struct fake_fault){.kind = FAKE_STATUS,
						     .opcode = GANTRY_OP_READ,
						     .nth = 1,
						     .status = GANTRY_S_TIMEOUT});
	start(RIG_CONF("workload.ops=100", "continue_on_error=true", "workload.depth=8"));
	expect_end(0);
	TEST_ASSERT_EQUAL_UINT64(1, reported("quarantined"));
	TEST_ASSERT_EQUAL_UINT(0, rig.rh.n_quarantined);
}

static void test_io_that_is_rejected_for_good_ends_the_run(void)
{
	rig_init(2, SIZE, 4096);
	fake_role_fault(&rig.rh, (struct fake_fault){.kind = FAKE_REFUSED,
						     .opcode = GANTRY_OP_READ,
						     .nth = 50,
						     .rc = -EINVAL});
	start(RIG_CONF("workload.ops=10000"));
	expect_end(1);
	TEST_ASSERT_EQUAL_UINT64(1, reported("errors.refused"));
	TEST_ASSERT_TRUE(fake_logged(&rig.host, "refused"));
}

static void test_report_while_it_runs(void)
{
	rig_init(2, SIZE, 4096);
	start(RIG_CONF("workload.ops=10000", "workload.time=0s"));
	fake_report_init(&rig.report);
	rig_ops()->report(rig.role, &rig.report.pub);
	TEST_ASSERT_EQUAL_UINT64(0, reported("elapsed_ns"));
	for (int i = 0; i < 20; i++)
		fake_role_turn(&rig.rh);
	fake_report_init(&rig.report);
	rig_ops()->report(rig.role, &rig.report.pub);
	TEST_ASSERT_TRUE(reported("progress.done") > 0 && reported("progress.done") < 10000);
	TEST_ASSERT_EQUAL_UINT64(10000, reported("progress.target"));
	TEST_ASSERT_TRUE(reported("elapsed_ns") > 0);
	expect_end(0);
	TEST_ASSERT_EQUAL_UINT64(10000, reported("progress.done"));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_invalid_settings_are_rejected);
	RUN_TEST(test_a_volume_that_does_not_fit);
	RUN_TEST(test_a_connect_that_cannot_start);
	RUN_TEST(test_stop_before_the_start);
	RUN_TEST(test_a_large_region_leaves_time_for_heartbeats);
	RUN_TEST(test_stop_at_each_step);
	RUN_TEST(test_session_lost_at_each_step);
	RUN_TEST(test_the_first_error_ends_the_run);
	RUN_TEST(test_a_lane_that_drains_submits_lost_ios_again);
	RUN_TEST(test_errors_are_counted_when_asked);
	RUN_TEST(test_out_of_buffers);
	RUN_TEST(test_end_of_the_session_releases_quarantined_buffers);
	RUN_TEST(test_io_that_is_rejected_for_good_ends_the_run);
	RUN_TEST(test_report_while_it_runs);
	return UNITY_END();
}
