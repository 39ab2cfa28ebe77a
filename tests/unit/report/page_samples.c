/* SPDX-License-Identifier: BSD-3-Clause */
/* The time series of a run: points between two reports, and the bounded memory of a long run. */
#include "report/page_samples.h"

#include <stdlib.h>

#include "report/report.h"
#include "unity.h"

#define MS 1000000ull
#define OPS_PER_MS 3

static struct gn_samples *samples;

void setUp(void)
{
	samples = gn_samples_create();
}

void tearDown(void)
{
	gn_samples_destroy(&samples);
}

/* Add the report of a process that has run for some time at a constant rate. slow: slow IOs. */
static void add(uint64_t ms, unsigned slow)
{
	json_int_t ops = (json_int_t)(ms * OPS_PER_MS);
	json_t *report = json_pack("{sI s{s{s{sI} s{sI s{s[iIii]}}} s{s{sI}}}}", "elapsed_ns",
				   (json_int_t)(ms * MS), "roles", "load", "total", "ops", ops,
				   "reads", "bytes", ops * 512, "latency", "buckets", 1023,
				   ops - slow, 8191, slow, "store", "counters", "ops_done", ops);

	TEST_ASSERT_NOT_NULL(report);
	TEST_ASSERT_EQUAL_INT(0, gn_samples_add(samples, report));
	json_decref(report);
}

static double number(const json_t *point, const char *key)
{
	return gn_report_number(point, key, -1);
}

static void is_near(double expect, double value)
{
	TEST_ASSERT_TRUE(value > 0.999999 * expect && value < 1.000001 * expect);
}

static const json_t *points_of(const json_t *tree, const char *role)
{
	return json_object_get(json_object_get(tree, "roles"), role);
}

static void a_point_is_the_work_since_the_report_before(void)
{
	const json_t *points, *point;
	json_t *tree;

	add(1000, 0);
	add(2000, 1500);
	tree = gn_samples_tree(samples);
	points = points_of(tree, "load");
	TEST_ASSERT_EQUAL_size_t(2, json_array_size(points));
	TEST_ASSERT_EQUAL_size_t(2, json_array_size(points_of(tree, "store")));
	point = json_array_get(points, 1);
	TEST_ASSERT_TRUE(number(point, "start_ns") == 1e9 && number(point, "end_ns") == 2e9);
	TEST_ASSERT_TRUE(number(point, "iops") == 3000);
	TEST_ASSERT_TRUE(number(point, "bytes_per_second") == 3000 * 512);
	/* a half of the IOs of this second are slow, and none of those before */
	TEST_ASSERT_TRUE(number(point, "p50_ns") == 1023 && number(point, "p99_ns") == 8191);
	TEST_ASSERT_TRUE(number(json_array_get(points, 0), "p99_9_ns") == 1023);
	TEST_ASSERT_TRUE(number(json_array_get(points_of(tree, "store"), 1), "iops") == 3000);
	json_decref(tree);
}

static void a_short_time_extends_the_last_point(void)
{
	const json_t *points;
	json_t *tree;

	add(1000, 0);
	add(1100, 0);
	tree = gn_samples_tree(samples);
	points = points_of(tree, "load");
	TEST_ASSERT_EQUAL_size_t(1, json_array_size(points));
	TEST_ASSERT_TRUE(number(json_array_get(points, 0), "end_ns") == 1.1e9);
	is_near(3000, number(json_array_get(points, 0), "iops"));
	json_decref(tree);
}

static void a_short_run_has_one_point(void)
{
	json_t *tree;

	add(20, 0);
	add(20, 0); /* no time has passed */
	tree = gn_samples_tree(samples);
	TEST_ASSERT_EQUAL_size_t(1, json_array_size(points_of(tree, "load")));
	json_decref(tree);
}

static void a_long_run_is_thinned_out_without_a_gap(void)
{
	const json_t *points, *point;
	double ops = 0, end = 0;
	uint64_t ms = 0;
	json_t *tree;
	size_t i;

	for (unsigned n = 0; n < 3 * GN_SAMPLES_MAX; n++) {
		ms += gn_samples_interval_ns(samples) / MS;
		add(ms, ms >= 5000 ? 90 : 0);
	}
	tree = gn_samples_tree(samples);
	points = points_of(tree, "load");
	TEST_ASSERT_TRUE(json_array_size(points) <= GN_SAMPLES_MAX &&
			 json_array_size(points) > GN_SAMPLES_MAX / 2);
	TEST_ASSERT_TRUE(number(tree, "interval_ns") > 1e9);
	json_array_foreach ((json_t *)points, i, point) {
		TEST_ASSERT_TRUE(number(point, "start_ns") == end);
		end = number(point, "end_ns");
		ops += number(point, "iops") * (end - number(point, "start_ns")) / 1e9;
	}
	TEST_ASSERT_TRUE(end == (double)(ms * MS));
	is_near((double)(ms * OPS_PER_MS), ops);
	/* the second with the slow IOs became a part of a longer point, which has its percentile */
	for (i = 0; number(json_array_get(points, i), "end_ns") < 5e9; i++)
		;
	TEST_ASSERT_TRUE(number(json_array_get(points, i), "p99_ns") == 8191);
	json_decref(tree);
}

static void a_counter_that_was_reset_is_no_work(void)
{
	const json_t *points;
	json_t *tree, *report;

	add(1000, 0);
	report = json_pack("{sI s{s{s{sI}}}}", "elapsed_ns", (json_int_t)(2000 * MS), "roles",
			   "load", "total", "ops", (json_int_t)5);
	TEST_ASSERT_EQUAL_INT(0, gn_samples_add(samples, report));
	json_decref(report);
	tree = gn_samples_tree(samples);
	points = points_of(tree, "load");
	TEST_ASSERT_TRUE(number(json_array_get(points, 1), "iops") == 0);
	json_decref(tree);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(a_point_is_the_work_since_the_report_before);
	RUN_TEST(a_short_time_extends_the_last_point);
	RUN_TEST(a_short_run_has_one_point);
	RUN_TEST(a_long_run_is_thinned_out_without_a_gap);
	RUN_TEST(a_counter_that_was_reset_is_no_work);
	return UNITY_END();
}
