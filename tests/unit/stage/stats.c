/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "fake/chain.h"
#include "unity.h"

static struct fake_host host;
static struct fake_chain chain;
static struct fake_report report;

void setUp(void)
{
	fake_host_init(&host, "test");
	fake_chain_init(&chain, &host);
	TEST_ASSERT_EQUAL_INT(0, fake_chain_stage(&chain, fake_plugin("stats"), NULL));
	fake_chain_terminal(&chain);
	chain.terminal.hold = 1;
}

void tearDown(void)
{
	fake_chain_fini(&chain);
}

static void pass(unsigned opcode, uint32_t length, uint64_t ns, unsigned status)
{
	TEST_ASSERT_EQUAL_INT(0, fake_submit(fake_io(&chain, opcode, 0, length, NULL)));
	fake_advance(&chain.lane, ns);
	fake_finish(&chain, status);
}

static uint64_t value(const char *key)
{
	return fake_reported_u64(&report, key);
}

static void near(uint64_t expected, const char *key)
{
	uint64_t got = value(key);

	if (got < expected || got > expected + expected / 50)
		TEST_ASSERT_EQUAL_UINT64_MESSAGE(expected, got, key);
}

static void latency_is_that_of_the_path_below(void)
{
	for (unsigned i = 1; i <= 1000; i++)
		pass(GANTRY_OP_READ, 4096, i * 1000, GANTRY_S_OK);
	fake_chain_report(&chain, 0, &report);
	TEST_ASSERT_EQUAL_UINT64(1000, value("read.done_ops"));
	TEST_ASSERT_EQUAL_UINT64(1000 * 4096, value("read.done_bytes"));
	TEST_ASSERT_EQUAL_UINT64(0, value("read.error_ops"));
	TEST_ASSERT_EQUAL_UINT64(1000, value("read.latency.min_ns"));
	TEST_ASSERT_EQUAL_UINT64(500500, value("read.latency.mean_ns"));
	near(500000, "read.latency.p50_ns");
	near(900000, "read.latency.p90_ns");
	near(990000, "read.latency.p99_ns");
	near(999000, "read.latency.p99_9_ns");
	near(1000000, "read.latency.p99_99_ns");
	TEST_ASSERT_EQUAL_UINT64(1000000, value("read.latency.max_ns"));
}

static void operations_and_errors_are_counted_separately(void)
{
	pass(GANTRY_OP_WRITE, 8192, 10, GANTRY_S_OK);
	pass(GANTRY_OP_WRITE, 8192, 10, GANTRY_S_NOSPC);
	pass(GANTRY_OP_FLUSH, 0, 10, GANTRY_S_IO);
	pass(GANTRY_OP_DISCARD, 65536, 10, GANTRY_S_OK);
	fake_chain_report(&chain, 0, &report);
	TEST_ASSERT_EQUAL_UINT64(2, value("write.done_ops"));
	TEST_ASSERT_EQUAL_UINT64(1, value("write.error_ops"));
	TEST_ASSERT_EQUAL_UINT64(8192, value("write.done_bytes"));
	TEST_ASSERT_EQUAL_UINT64(1, value("flush.error_ops"));
	TEST_ASSERT_EQUAL_UINT64(0, value("flush.done_bytes"));
	TEST_ASSERT_EQUAL_UINT64(65536, value("discard.done_bytes"));
	TEST_ASSERT_EQUAL_UINT64(1, value("errors.nospc_ops"));
	TEST_ASSERT_EQUAL_UINT64(1, value("errors.io_ops"));
	TEST_ASSERT_EQUAL_UINT64(0, value("read.done_ops"));
	TEST_ASSERT_NULL(fake_reported(&report, "errors.timeout_ops"));
}

static void rejected_ios_are_not_counted_as_done(void)
{
	chain.terminal.refuse = -EAGAIN;
	chain.terminal.n_refuse = 3;
	for (unsigned i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_INT(-EAGAIN,
				      fake_submit(fake_io(&chain, GANTRY_OP_READ, 0, 4096, NULL)));
	fake_chain_report(&chain, 0, &report);
	TEST_ASSERT_EQUAL_UINT64(3, value("refused_ops"));
	TEST_ASSERT_EQUAL_UINT64(0, value("read.done_ops"));
}

static void lanes_are_added_up(void)
{
	const struct gantry_stage_ops *ops = fake_plugin("stats")->ops;
	struct fake_chain lanes[3];
	void *stage, *self;

	TEST_ASSERT_EQUAL_INT(0, ops->open(&host.pub, NULL, &stage));
	for (uint32_t i = 0; i < 3; i++) {
		fake_chain_init(&lanes[i], &host);
		fake_lane_init(&lanes[i].lane, &host, i, 3);
		TEST_ASSERT_EQUAL_INT(0, ops->start(stage, &lanes[i].lane, &self));
		lanes[i].hops[lanes[i].n_hops++] = (struct gantry_hop){
			.submit = ops->submit, .complete = ops->complete, .self = self};
		fake_chain_terminal(&lanes[i]);
		for (uint32_t n = 0; n <= i; n++)
			fake_do(&lanes[i], GANTRY_OP_WRITE, 0, 512, NULL);
	}
	fake_report_init(&report);
	ops->report(stage, &report.pub);
	TEST_ASSERT_EQUAL_UINT64(6, value("write.done_ops"));
	TEST_ASSERT_EQUAL_UINT64(6 * 512, value("write.done_bytes"));
	ops->close(stage);
}

static void report_without_lanes_is_empty(void)
{
	const struct gantry_stage_ops *ops = fake_plugin("stats")->ops;
	void *stage;

	TEST_ASSERT_EQUAL_INT(0, ops->open(&host.pub, NULL, &stage));
	fake_report_init(&report);
	ops->report(stage, &report.pub);
	TEST_ASSERT_EQUAL_UINT64(0, value("refused_ops"));
	ops->close(stage);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(latency_is_that_of_the_path_below);
	RUN_TEST(operations_and_errors_are_counted_separately);
	RUN_TEST(rejected_ios_are_not_counted_as_done);
	RUN_TEST(lanes_are_added_up);
	RUN_TEST(report_without_lanes_is_empty);
	return UNITY_END();
}
