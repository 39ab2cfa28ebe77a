/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/units.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "unity.h"

struct row {
	const char *text;
	int ret;
	uint64_t value;
};

static void check(int (*parse)(const char *, uint64_t *), const struct row *row)
{
	uint64_t value = 77;

	TEST_ASSERT_EQUAL_INT_MESSAGE(row->ret, parse(row->text, &value), row->text);
	TEST_ASSERT_EQUAL_UINT_MESSAGE(row->ret ? 77 : row->value, value, row->text);
}

static void sizes(void)
{
	static const struct row rows[] = {
		{"0", 0, 0},
		{"512", 0, 512},
		{"512B", 0, 512},
		{"4KiB", 0, 4096},
		{"4K", 0, 4096},
		{"4k", 0, 4096},
		{"4 KiB", 0, 4096},
		{"4kib", 0, 4096},
		{"4KB", 0, 4000},
		{"1MB", 0, 1000000},
		{"1MiB", 0, 1 << 20},
		{"1GiB", 0, 1 << 30},
		{"1G", 0, 1 << 30},
		{"1GB", 0, 1000000000},
		{"2TiB", 0, 2ull << 40},
		{"2T", 0, 2ull << 40},
		{"2TB", 0, 2000000000000},
		{"18446744073709551615", 0, UINT64_MAX},
		{"16777215TiB", 0, 16777215ull << 40},
		{"007", 0, 7},
		{"18446744073709551616", -ERANGE, 0},
		{"99999999999999999999999", -ERANGE, 0},
		{"16777216TiB", -ERANGE, 0},
		{"99999999999999999999999KiB", -ERANGE, 0},
		{"99999999999999999999999s", -EINVAL, 0},
		{"99999999999999999999999 ", -EINVAL, 0},
		{"", -EINVAL, 0},
		{" ", -EINVAL, 0},
		{"KiB", -EINVAL, 0},
		{"-1", -EINVAL, 0},
		{"+1", -EINVAL, 0},
		{" 1", -EINVAL, 0},
		{"1 ", -EINVAL, 0},
		{"0 ", -EINVAL, 0},
		{"1  K", -EINVAL, 0},
		{"1.5G", -EINVAL, 0},
		{"0x10", -EINVAL, 0},
		{"1KiBx", -EINVAL, 0},
		{"1PiB", -EINVAL, 0},
		{"1s", -EINVAL, 0},
		{"1,000", -EINVAL, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check(gn_size_parse, &rows[i]);
}

static void times(void)
{
	static const struct row rows[] = {
		{"0", 0, 0},
		{"100ns", 0, 100},
		{"5us", 0, 5000},
		{"250ms", 0, 250000000},
		{"10s", 0, 10000000000},
		{"10 s", 0, 10000000000},
		{"2m", 0, 120000000000},
		{"1h", 0, 3600000000000},
		{"0s", 0, 0},
		{"5124095h", 0, 5124095ull * 3600000000000},
		{"5124096h", -ERANGE, 0},
		{"18446744073709551616ns", -ERANGE, 0},
		{"10", -EINVAL, 0},
		{"", -EINVAL, 0},
		{"s", -EINVAL, 0},
		{"-5s", -EINVAL, 0},
		{"1.5s", -EINVAL, 0},
		{"1d", -EINVAL, 0},
		{"1min", -EINVAL, 0},
		{"1K", -EINVAL, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check(gn_time_parse, &rows[i]);
}

static void sizes_for_people(void)
{
	char dst[GN_UNITS_BYTES];

	TEST_ASSERT_EQUAL_STRING("0", gn_size_format(dst, sizeof(dst), 0));
	TEST_ASSERT_EQUAL_STRING("1023", gn_size_format(dst, sizeof(dst), 1023));
	TEST_ASSERT_EQUAL_STRING("4KiB", gn_size_format(dst, sizeof(dst), 4096));
	TEST_ASSERT_EQUAL_STRING("4.50KiB", gn_size_format(dst, sizeof(dst), 4608));
	TEST_ASSERT_EQUAL_STRING("1.00KiB", gn_size_format(dst, sizeof(dst), 1025));
	TEST_ASSERT_EQUAL_STRING("1GiB", gn_size_format(dst, sizeof(dst), 1 << 30));
	TEST_ASSERT_EQUAL_STRING("16777215.99TiB", gn_size_format(dst, sizeof(dst), UINT64_MAX));
}

static void times_for_people(void)
{
	char dst[GN_UNITS_BYTES];

	TEST_ASSERT_EQUAL_STRING("0ns", gn_time_format(dst, sizeof(dst), 0));
	TEST_ASSERT_EQUAL_STRING("999ns", gn_time_format(dst, sizeof(dst), 999));
	TEST_ASSERT_EQUAL_STRING("1.23ms", gn_time_format(dst, sizeof(dst), 1234567));
	TEST_ASSERT_EQUAL_STRING("250ms", gn_time_format(dst, sizeof(dst), 250000000));
	TEST_ASSERT_EQUAL_STRING("1.50s", gn_time_format(dst, sizeof(dst), 1500000000));
	TEST_ASSERT_EQUAL_STRING("90s", gn_time_format(dst, sizeof(dst), 90 * GN_NS_PER_S));
	TEST_ASSERT_EQUAL_STRING("2m", gn_time_format(dst, sizeof(dst), 120 * GN_NS_PER_S));
	TEST_ASSERT_EQUAL_STRING("1h", gn_time_format(dst, sizeof(dst), 3600 * GN_NS_PER_S));
	TEST_ASSERT_EQUAL_STRING("18446744073.70s", gn_time_format(dst, sizeof(dst), UINT64_MAX));
}

static void short_destination_is_cut(void)
{
	char dst[4] = "xyz";

	TEST_ASSERT_EQUAL_STRING("102", gn_size_format(dst, sizeof(dst), 1023));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(sizes);
	RUN_TEST(times);
	RUN_TEST(sizes_for_people);
	RUN_TEST(times_for_people);
	RUN_TEST(short_destination_is_cut);
	return UNITY_END();
}
