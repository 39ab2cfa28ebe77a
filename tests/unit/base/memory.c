/* SPDX-License-Identifier: BSD-3-Clause */
/* arena, list, errs and checked arithmetic, with which other modules build their tables. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/errs.h"
#include "unity.h"

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
	char *a = gn_arena_strdup(&arena, "harbour"),
	     *b = gn_arena_strndup(&arena, "crane lift", 5);

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

static void errs_know_the_place_of_a_message(void)
{
	const struct gn_err_place whole = {"a.conf", 7, "roles.load"}, file = {.file = "b.conf"},
				  included = {"c.conf", 3, NULL};
	struct gn_errs errs = {0};

	gn_errs_add_at(&errs, &whole, "is %d; write 1", 2);
	gn_errs_add_at(&errs, &file, "is empty");
	gn_errs_add(&errs, "no place");
	gn_errs_add(&errs, "c.conf:3: cannot be read");
	gn_errs_locate(&errs, 3, &included, strlen("c.conf:3: "));
	TEST_ASSERT_EQUAL_STRING("a.conf:7: roles.load: is 2; write 1", errs.text[0]);
	TEST_ASSERT_EQUAL_STRING("a.conf", errs.parts[0].place.file);
	TEST_ASSERT_EQUAL_UINT(7, errs.parts[0].place.line);
	TEST_ASSERT_EQUAL_STRING("roles.load", errs.parts[0].place.key);
	TEST_ASSERT_EQUAL_STRING("is 2; write 1", errs.parts[0].message);
	TEST_ASSERT_EQUAL_STRING("b.conf: is empty", errs.text[1]);
	TEST_ASSERT_NULL(errs.parts[1].place.key);
	TEST_ASSERT_NULL(errs.parts[2].place.file);
	TEST_ASSERT_EQUAL_STRING("no place", errs.parts[2].message);
	TEST_ASSERT_EQUAL_STRING("c.conf", errs.parts[3].place.file);
	TEST_ASSERT_EQUAL_STRING("cannot be read", errs.parts[3].message);
	gn_errs_fini(&errs);
}

static void arithmetic_overflow_is_detected(void)
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
	RUN_TEST(errs_know_the_place_of_a_message);
	RUN_TEST(arithmetic_overflow_is_detected);
	return UNITY_END();
}
