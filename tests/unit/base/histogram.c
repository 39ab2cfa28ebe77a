/* SPDX-License-Identifier: BSD-3-Clause */
#include <gantry/histogram.h>
#include <gantry/random.h>
#include <stdlib.h>
#include <string.h>

#include "unity.h"

static struct gantry_histogram a, b;

void setUp(void)
{
	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
}

static void empty_is_all_zero(void)
{
	TEST_ASSERT_EQUAL_UINT64(0, gantry_histogram_count(&a));
	TEST_ASSERT_EQUAL_UINT64(0, gantry_histogram_min(&a));
	TEST_ASSERT_EQUAL_UINT64(0, gantry_histogram_max(&a));
	TEST_ASSERT_EQUAL_UINT64(0, gantry_histogram_percentile(&a, 99));
	TEST_ASSERT_TRUE(gantry_histogram_mean(&a) <= 0);
}

/*
 * Each bucket begins directly behind the previous bucket. The difference of its limits is at most
 * 1/64 of its lower limit.
 */
static void buckets_cover_the_range_without_gap(void)
{
	for (unsigned int i = 0; i < GANTRY_HISTOGRAM_BUCKETS; i++) {
		uint64_t upper = gantry_histogram_upper(i),
			 lower = i ? gantry_histogram_upper(i - 1) + 1 : 0;

		TEST_ASSERT_EQUAL_UINT(i, gantry_histogram_index(upper));
		TEST_ASSERT_EQUAL_UINT(i, gantry_histogram_index(lower));
		TEST_ASSERT_TRUE((upper - lower) * 64 <= lower);
	}
	TEST_ASSERT_EQUAL_UINT64((1ull << 40) - 1,
				 gantry_histogram_upper(GANTRY_HISTOGRAM_BUCKETS - 1));
	TEST_ASSERT_EQUAL_UINT(GANTRY_HISTOGRAM_BUCKETS - 1, gantry_histogram_index(UINT64_MAX));
}

static int by_value(const void *x, const void *y)
{
	uint64_t p = *(const uint64_t *)x, q = *(const uint64_t *)y;

	return p < q ? -1 : p > q;
}

static void percentiles_are_close_to_the_sorted_samples(void)
{
	static uint64_t samples[5000];
	const double percents[] = {0, 1, 25, 50, 90, 99, 99.9, 100};
	size_t n = sizeof(samples) / sizeof(samples[0]);
	struct gantry_random r;

	gantry_random_seed(&r, 2);
	for (size_t i = 0; i < n; i++) {
		samples[i] = gantry_random_next(&r) >> (24 + gantry_random_below(&r, 40));
		gantry_histogram_record(&a, samples[i]);
	}
	qsort(samples, n, sizeof(samples[0]), by_value);
	for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++) {
		size_t rank = (size_t)(percents[i] * (double)n / 100 + 0.999999);
		uint64_t exact = samples[rank ? rank - 1 : 0],
			 got = gantry_histogram_percentile(&a, percents[i]);

		TEST_ASSERT_TRUE(got >= exact && got - exact <= exact / 64 + 1);
	}
	TEST_ASSERT_EQUAL_UINT64(samples[0], gantry_histogram_min(&a));
	TEST_ASSERT_EQUAL_UINT64(samples[n - 1], gantry_histogram_max(&a));
	TEST_ASSERT_EQUAL_UINT64(samples[n - 1], gantry_histogram_percentile(&a, 100));
}

static void one_sample_is_every_percentile(void)
{
	gantry_histogram_record(&a, 123457);
	TEST_ASSERT_EQUAL_UINT64(123457, gantry_histogram_percentile(&a, 0));
	TEST_ASSERT_EQUAL_UINT64(123457, gantry_histogram_percentile(&a, 50));
	TEST_ASSERT_EQUAL_UINT64(123457, gantry_histogram_percentile(&a, 1000));
	TEST_ASSERT_EQUAL_UINT64(123457, gantry_histogram_min(&a));
}

static void samples_beyond_the_range_keep_their_maximum(void)
{
	gantry_histogram_record(&a, 10);
	gantry_histogram_record(&a, 1ull << 50);
	TEST_ASSERT_EQUAL_UINT64(1ull << 50, gantry_histogram_max(&a));
	TEST_ASSERT_EQUAL_UINT64(1ull << 50, gantry_histogram_percentile(&a, 100));
	TEST_ASSERT_EQUAL_UINT64(10, gantry_histogram_percentile(&a, 50));
}

static void equal_samples_count_as_so_many(void)
{
	gantry_histogram_record_at(&a, gantry_histogram_index(10), 10, 3);
	gantry_histogram_record(&a, 50);
	TEST_ASSERT_EQUAL_UINT64(4, gantry_histogram_count(&a));
	TEST_ASSERT_TRUE(gantry_histogram_mean(&a) > 19.9 && gantry_histogram_mean(&a) < 20.1);
}

static void merge_adds(void)
{
	for (uint64_t i = 1; i <= 100; i++)
		gantry_histogram_record(i > 25 && i <= 75 ? &a : &b, i);
	gantry_histogram_merge(&a, &b);
	TEST_ASSERT_EQUAL_UINT64(100, gantry_histogram_count(&a));
	TEST_ASSERT_EQUAL_UINT64(1, gantry_histogram_min(&a));
	TEST_ASSERT_EQUAL_UINT64(100, gantry_histogram_max(&a));
	TEST_ASSERT_EQUAL_UINT64(50, gantry_histogram_percentile(&a, 50));
	TEST_ASSERT_TRUE(gantry_histogram_mean(&a) > 50.4 && gantry_histogram_mean(&a) < 50.6);
	memset(&b, 0, sizeof(b));
	gantry_histogram_merge(&a, &b);
	TEST_ASSERT_EQUAL_UINT64(1, gantry_histogram_min(&a));
}

static void random_numbers_repeat_and_stay_in_range(void)
{
	struct gantry_random r, s, t;
	unsigned int hits[7] = {0};

	gantry_random_seed(&r, 42);
	gantry_random_seed(&s, 42);
	gantry_random_seed(&t, 43);
	TEST_ASSERT_TRUE(gantry_random_next(&r) != gantry_random_next(&t));
	gantry_random_next(&s);
	for (int i = 0; i < 7000; i++) {
		uint64_t v = gantry_random_below(&r, 7);

		TEST_ASSERT_EQUAL_UINT64(v, gantry_random_below(&s, 7));
		TEST_ASSERT_TRUE(v < 7);
		hits[v]++;
	}
	for (int i = 0; i < 7; i++)
		TEST_ASSERT_TRUE(hits[i] > 800 && hits[i] < 1200);
	TEST_ASSERT_EQUAL_UINT64(0, gantry_random_below(&r, 1));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(empty_is_all_zero);
	RUN_TEST(buckets_cover_the_range_without_gap);
	RUN_TEST(percentiles_are_close_to_the_sorted_samples);
	RUN_TEST(one_sample_is_every_percentile);
	RUN_TEST(samples_beyond_the_range_keep_their_maximum);
	RUN_TEST(equal_samples_count_as_so_many);
	RUN_TEST(merge_adds);
	RUN_TEST(random_numbers_repeat_and_stay_in_range);
	return UNITY_END();
}
