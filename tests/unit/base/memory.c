/* SPDX-License-Identifier: BSD-3-Clause */
/* arena, list, errs and checked arithmetic: what the other rooms build their tables from. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/errs.h"
#include "unity.h"

void setUp(void)
{
}

void tearDown(void)
{
}

static void arena_gives_aligned_zeroed_memory(void)
{
	struct gn_arena arena = {0};
	char *last = NULL;

	for (size_t bytes = 1; bytes < 9000; bytes += 97) {
		char *p = gn_arena_alloc(&arena, bytes);

		TEST_ASSERT_NOT_NULL(p);
		TEST_ASSERT_EQUAL_UINT(0, (uintptr_t)p % 16);
		for (size_t i = 0; i < bytes; i++)
			TEST_ASSERT_EQUAL_INT(0, p[i]);
		memset(p, 0xa5, bytes);
		TEST_ASSERT_TRUE(p != last);
		last = p;
	}
	gn_arena_fini(&arena);
	TEST_ASSERT_NULL(arena.blocks);
	gn_arena_fini(&arena);
}

static void arena_refuses_absurd_sizes(void)
{
	struct gn_arena arena = {0};

	TEST_ASSERT_NULL(gn_arena_alloc(&arena, SIZE_MAX));
	TEST_ASSERT_NULL(gn_arena_alloc(&arena, SIZE_MAX - 8));
	TEST_ASSERT_NULL(gn_arena_strndup(&arena, "", SIZE_MAX));
}

static void arena_copies_strings(void)
{
	struct gn_arena arena = {0};
	char *a = gn_arena_strdup(&arena, "harbour"), *b = gn_arena_strndup(&arena, "crane lift", 5);

	TEST_ASSERT_EQUAL_STRING("harbour", a);
	TEST_ASSERT_EQUAL_STRING("crane", b);
	gn_arena_fini(&arena);
}

static void errs_keep_order_and_count_the_rest(void)
{
	struct gn_errs errs = {0};

	for (int i = 0; i < GN_ERRS_MAX + 3; i++)
		gn_errs_add(&errs, "fault %d %0700d", i, 0);
	TEST_ASSERT_EQUAL_UINT(GN_ERRS_MAX + 3, errs.n);
	TEST_ASSERT_EQUAL_UINT(GN_ERRS_MAX, gn_errs_kept(&errs));
	TEST_ASSERT_EQUAL_INT(0, strncmp(errs.text[63], "fault 63 0000", 13));
	TEST_ASSERT_EQUAL_UINT(strlen("fault 63 ") + 700, strlen(errs.text[63]));
	gn_errs_fini(&errs);
	TEST_ASSERT_EQUAL_UINT(0, gn_errs_kept(&errs));
}

static void arithmetic_that_does_not_fit_is_seen(void)
{
	uint64_t v = 9;

	TEST_ASSERT_TRUE(gn_add_u64(UINT64_MAX - 1, 1, &v));
	TEST_ASSERT_EQUAL_UINT64(UINT64_MAX, v);
	TEST_ASSERT_FALSE(gn_add_u64(UINT64_MAX, 1, &v));
	TEST_ASSERT_FALSE(gn_mul_u64(1ull << 32, 1ull << 32, &v));
	TEST_ASSERT_EQUAL_UINT64(UINT64_MAX, v);
	TEST_ASSERT_TRUE(gn_mul_u64(1ull << 32, 1ull << 31, &v));
	TEST_ASSERT_EQUAL_UINT64(1ull << 63, v);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(arena_gives_aligned_zeroed_memory);
	RUN_TEST(arena_refuses_absurd_sizes);
	RUN_TEST(arena_copies_strings);
	RUN_TEST(errs_keep_order_and_count_the_rest);
	RUN_TEST(arithmetic_that_does_not_fit_is_seen);
	return UNITY_END();
}
