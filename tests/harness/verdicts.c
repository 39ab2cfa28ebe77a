/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verdicts.c - one passing and one failing test for each assertion in use; harness.sh runs this
 * program and checks the verdicts. It is not a test on its own.
 */
#include <stdlib.h>

#include "unity.h"

static const char abc[] = "abc", abd[] = "abd";

#define BOTH(name, good, bad) \
	static void passes_##name(void) \
	{ \
		good; \
	} \
	static void fails_##name(void) \
	{ \
		bad; \
	}

#define VERDICTS(X) \
	X(assert, TEST_ASSERT(1 == 1), TEST_ASSERT(1 == 2)) \
	X(assert_message, TEST_ASSERT_MESSAGE(1, "no"), TEST_ASSERT_MESSAGE(0, "yes")) \
	X(true, TEST_ASSERT_TRUE(2), TEST_ASSERT_TRUE(0)) \
	X(false, TEST_ASSERT_FALSE(0), TEST_ASSERT_FALSE(2)) \
	X(null, TEST_ASSERT_NULL(NULL), TEST_ASSERT_NULL(abc)) \
	X(not_null, TEST_ASSERT_NOT_NULL(abc), TEST_ASSERT_NOT_NULL(NULL)) \
	X(int, TEST_ASSERT_EQUAL_INT(-5, -5), TEST_ASSERT_EQUAL_INT(-5, 5)) \
	X(int_message, TEST_ASSERT_EQUAL_INT_MESSAGE(7, 7, "m"), \
	  TEST_ASSERT_EQUAL_INT_MESSAGE(7, 8, "m")) \
	X(int64, TEST_ASSERT_EQUAL_INT64(1ll << 40, 1ll << 40), \
	  TEST_ASSERT_EQUAL_INT64(1ll << 40, 1ll << 41)) \
	X(uint, TEST_ASSERT_EQUAL_UINT(3u, 3u), TEST_ASSERT_EQUAL_UINT(3u, 4u)) \
	X(uint8, TEST_ASSERT_EQUAL_UINT8(255, 255), TEST_ASSERT_EQUAL_UINT8(255, 254)) \
	X(uint16, TEST_ASSERT_EQUAL_UINT16(500, 500), TEST_ASSERT_EQUAL_UINT16(500, 501)) \
	X(uint32, TEST_ASSERT_EQUAL_UINT32(1u << 31, 1u << 31), \
	  TEST_ASSERT_EQUAL_UINT32(1u << 31, 1u << 30)) \
	X(uint64, TEST_ASSERT_EQUAL_UINT64(1ull << 63, 1ull << 63), \
	  TEST_ASSERT_EQUAL_UINT64(1ull << 63, 1ull << 32)) \
	X(hex32, TEST_ASSERT_EQUAL_HEX32(0xe3069283u, 0xe3069283u), \
	  TEST_ASSERT_EQUAL_HEX32(0xe3069283u, 0xe3069282u)) \
	X(hex64, TEST_ASSERT_EQUAL_HEX64(1ull << 63, 1ull << 63), \
	  TEST_ASSERT_EQUAL_HEX64(1ull << 63, 0)) \
	X(ptr, TEST_ASSERT_EQUAL_PTR(abc, abc), TEST_ASSERT_EQUAL_PTR(abc, abd)) \
	X(string, TEST_ASSERT_EQUAL_STRING("abc", abc), TEST_ASSERT_EQUAL_STRING("abc", abd)) \
	X(string_null, TEST_ASSERT_EQUAL_STRING(NULL, NULL), \
	  TEST_ASSERT_EQUAL_STRING("abc", NULL)) \
	X(memory, TEST_ASSERT_EQUAL_MEMORY(abc, abd, 2), TEST_ASSERT_EQUAL_MEMORY(abc, abd, 3)) \
	X(greater, TEST_ASSERT_GREATER_THAN(5, 6), TEST_ASSERT_GREATER_THAN(5, 5)) \
	X(greater_equal, TEST_ASSERT_GREATER_OR_EQUAL(5, 5), TEST_ASSERT_GREATER_OR_EQUAL(5, 4)) \
	X(less, TEST_ASSERT_LESS_THAN(5, 4), TEST_ASSERT_LESS_THAN(5, 5)) \
	X(less_equal, TEST_ASSERT_LESS_OR_EQUAL(5, 5), TEST_ASSERT_LESS_OR_EQUAL(5, 6)) \
	X(fail, (void)0, TEST_FAIL_MESSAGE("with: a colon"))

VERDICTS(BOTH)

static void skips_with_a_reason(void)
{
	TEST_IGNORE_MESSAGE("no such device");
}

#define RUN_BOTH(name, good, bad) \
	RUN_TEST(passes_##name); \
	RUN_TEST(fails_##name);

int main(int argc, char **argv)
{
	(void)argv;
	UNITY_BEGIN();
	VERDICTS(RUN_BOTH)
	RUN_TEST(skips_with_a_reason);
	if (argc > 1)
		abort();
	return UNITY_END();
}
