/* SPDX-License-Identifier: BSD-3-Clause */
/* The counts of a responder: classes of latency, sums, and what a report shows. */
#include "transport/io_counts.h"

#include "fake/host.h"
#include "unity.h"

static struct gn_io_counts counts;
static struct fake_report report;

void setUp(void)
{
	counts = (struct gn_io_counts){.failed = 0};
}

void tearDown(void)
{
}

static void record(uint32_t ns, uint64_t n)
{
	gantry_count(&counts.by_latency[gn_latency_class(ns)], n);
}

static uint64_t reported(const char *path)
{
	return fake_reported_u64(&report, path);
}

static void a_latency_has_the_class_that_contains_it(void)
{
	size_t last = 0;

	TEST_ASSERT_EQUAL_UINT64(0, gn_latency_class(0));
	for (uint64_t ns = 1; ns <= UINT32_MAX; ns += 1 + ns / 100) {
		const size_t class = gn_latency_class((uint32_t)ns);

		TEST_ASSERT_TRUE(class >= last && class < GN_LATENCY_CLASSES);
		last = class;
	}
	TEST_ASSERT_EQUAL_UINT64(GN_LATENCY_CLASSES - 1, gn_latency_class(UINT32_MAX));
	/* 8 classes for each power of two */
	TEST_ASSERT_EQUAL_UINT64(gn_latency_class(4096) + 8, gn_latency_class(8192));
	TEST_ASSERT_EQUAL_UINT64(gn_latency_class(4607), gn_latency_class(4096));
	TEST_ASSERT_EQUAL_UINT64(gn_latency_class(4608), gn_latency_class(4607) + 1);
}

static void percentiles_are_the_upper_ends_of_classes(void)
{
	record(4096, 98);
	record(70000, 1);
	record(UINT32_MAX, 1);
	counts.bytes = 4096;
	counts.failed = 3;
	fake_report_init(&report);
	gn_io_counts_report(&counts, &report.pub);
	TEST_ASSERT_EQUAL_UINT64(97, reported("ops_done"));
	TEST_ASSERT_EQUAL_UINT64(3, reported("ops_failed"));
	TEST_ASSERT_EQUAL_UINT64(4096, reported("bytes"));
	TEST_ASSERT_EQUAL_UINT64(100, reported("latency.count"));
	TEST_ASSERT_EQUAL_UINT64(4607, reported("latency.p50_ns"));
	TEST_ASSERT_EQUAL_UINT64(73727, reported("latency.p99_ns"));
	TEST_ASSERT_EQUAL_UINT64(UINT32_MAX, reported("latency.max_ns"));
	TEST_ASSERT_EQUAL_UINT64(4607, reported("latency.buckets.0"));
	TEST_ASSERT_EQUAL_UINT64(98, reported("latency.buckets.1"));
}

static void counts_are_added_up(void)
{
	struct gn_io_counts sum = {.failed = 1, .bytes = 2, .list_bounces = 3};

	record(5, 4);
	counts.failed = 1;
	counts.bytes = 10;
	counts.list_bounces = 20;
	gn_io_counts_add(&sum, &counts);
	gn_io_counts_add(&sum, &counts);
	TEST_ASSERT_EQUAL_UINT64(5, gn_io_counts_done(&sum));
	TEST_ASSERT_EQUAL_UINT64(3, sum.failed);
	TEST_ASSERT_EQUAL_UINT64(22, sum.bytes);
	TEST_ASSERT_EQUAL_UINT64(43, sum.list_bounces);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(a_latency_has_the_class_that_contains_it);
	RUN_TEST(percentiles_are_the_upper_ends_of_classes);
	RUN_TEST(counts_are_added_up);
	return UNITY_END();
}
