/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The page bitmap of the bounce buffers returns the first free range that is large enough, and
 * never a page in use. In the end all pages are free again.
 */
#include "memory/pages.h"

#include <errno.h>
#include <gantry/random.h>
#include <string.h>

#include "unity.h"

#define N 203u /* pages; not a multiple of 64, the number of bits of a word of the bitmap */

static struct gn_pages *pages;

void setUp(void)
{
	TEST_ASSERT_EQUAL_INT(0, gn_pages_create(N, &pages));
}

void tearDown(void)
{
	gn_pages_destroy(&pages);
	TEST_ASSERT_NULL(pages);
}

static uint32_t take(uint32_t n)
{
	uint32_t first = UINT32_MAX;

	TEST_ASSERT_EQUAL_INT(1, gn_pages_fit(pages, n));
	TEST_ASSERT_EQUAL_INT(0, gn_pages_take(pages, n, &first));
	return first;
}

static void refused(uint32_t n)
{
	uint32_t first = 77;

	TEST_ASSERT_EQUAL_INT(0, gn_pages_fit(pages, n));
	TEST_ASSERT_EQUAL_INT(-ENOSPC, gn_pages_take(pages, n, &first));
	TEST_ASSERT_EQUAL_UINT(77, first);
}

static void bytes_become_whole_pages(void)
{
	TEST_ASSERT_EQUAL_UINT(1, gn_page_count(1));
	TEST_ASSERT_EQUAL_UINT(1, gn_page_count(4096));
	TEST_ASSERT_EQUAL_UINT(2, gn_page_count(4097));
	TEST_ASSERT_EQUAL_UINT(256, gn_page_count(1 << 20));
}

static void first_range_that_is_large_enough_is_used(void)
{
	TEST_ASSERT_EQUAL_UINT(0, take(3));
	TEST_ASSERT_EQUAL_UINT(3, take(60));
	TEST_ASSERT_EQUAL_UINT(63, take(2)); /* a range across two words */
	TEST_ASSERT_EQUAL_UINT(65, take(70));
	gn_pages_give(pages, 0, 3);
	gn_pages_give(pages, 63, 2);
	TEST_ASSERT_EQUAL_UINT(135, take(4));
	TEST_ASSERT_EQUAL_UINT(0, take(2));
	TEST_ASSERT_EQUAL_UINT(63, take(2));
	TEST_ASSERT_EQUAL_UINT(2, take(1));
	TEST_ASSERT_EQUAL_UINT(139, take(1));
}

static void all_pages_can_be_allocated_and_no_more(void)
{
	refused(N + 1);
	refused(UINT32_MAX);
	TEST_ASSERT_EQUAL_UINT(0, take(N));
	refused(1);
	gn_pages_give(pages, 0, N);
	for (uint32_t i = 0; i < N; i++)
		TEST_ASSERT_EQUAL_UINT(i, take(1));
	refused(1);
	gn_pages_give(pages, N - 1, 1);
	TEST_ASSERT_EQUAL_UINT(N - 1, take(1));
	for (uint32_t i = 0; i < N; i += 2)
		gn_pages_give(pages, i, 1);
	refused(2);
	gn_pages_give(pages, 101, 1);
	refused(4);
	TEST_ASSERT_EQUAL_UINT(100, take(3));
}

/*
 * Compare the bitmap with a table of bytes: no page is allocated twice, and an allocation fails
 * only if no range is large enough.
 */
static void no_page_is_allocated_twice(void)
{
	struct {
		uint32_t first, n;
	} out[64];
	uint8_t taken[N] = {0};
	struct gantry_random random;
	unsigned n_out = 0;

	gantry_random_seed(&random, 5);
	for (unsigned turn = 0; turn < 20000; turn++) {
		uint32_t n = 1 + (uint32_t)gantry_random_next(&random) % 16, first, run = 0,
			 place = N;

		for (uint32_t i = 0; i < N && place == N; i++) {
			run = taken[i] ? 0 : run + 1;
			if (run == n)
				place = i + 1 - n;
		}
		if (n_out < 64 && gn_pages_take(pages, n, &first) == 0) {
			TEST_ASSERT_EQUAL_UINT(place, first);
			memset(&taken[first], 1, n);
			out[n_out].first = first;
			out[n_out++].n = n;
		} else if (n_out > 0) {
			unsigned i = (unsigned)gantry_random_next(&random) % n_out;

			TEST_ASSERT_TRUE(n_out == 64 || place == N);
			gn_pages_give(pages, out[i].first, out[i].n);
			memset(&taken[out[i].first], 0, out[i].n);
			out[i] = out[--n_out];
		}
	}
	while (n_out > 0) {
		n_out--;
		gn_pages_give(pages, out[n_out].first, out[n_out].n);
	}
	TEST_ASSERT_EQUAL_UINT(0, take(N));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(bytes_become_whole_pages);
	RUN_TEST(first_range_that_is_large_enough_is_used);
	RUN_TEST(all_pages_can_be_allocated_and_no_more);
	RUN_TEST(no_page_is_allocated_twice);
	return UNITY_END();
}
