/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/clock.h"

#include <stdlib.h>
#include <time.h>

#include "unity.h"

static uint64_t hand;

static uint64_t fake(void)
{
	return hand;
}

void tearDown(void)
{
	gn_clock_set_fake(NULL);
}

static void now_is_clock_monotonic(void)
{
	struct timespec ts;
	uint64_t before, after, now;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	before = (uint64_t)ts.tv_sec * GN_NS_PER_S + (uint64_t)ts.tv_nsec;
	now = gn_now_ns();
	clock_gettime(CLOCK_MONOTONIC, &ts);
	after = (uint64_t)ts.tv_sec * GN_NS_PER_S + (uint64_t)ts.tv_nsec;
	TEST_ASSERT_TRUE(before <= now && now <= after);
}

static uint64_t monotonic(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * GN_NS_PER_S + (uint64_t)ts.tv_nsec;
}

#define BETWEEN_NS (50 * GN_NS_PER_US)

/*
 * Read both clocks within BETWEEN_NS. Repeat that if the kernel descheduled the thread in between.
 */
static void read_both(uint64_t *slow_p, uint64_t *fast_p)
{
	do {
		*slow_p = monotonic();
		*fast_p = gn_fast_ns();
	} while (monotonic() - *slow_p > BETWEEN_NS);
}

static void the_counter_runs_like_the_clock(void)
{
	uint64_t slow, fast, slow_end, fast_end, error, last = 0;

	gn_clock_init();
	read_both(&slow, &fast);
	while (monotonic() - slow < 20 * GN_NS_PER_MS) {
		uint64_t t = gn_fast_ns();

		TEST_ASSERT_TRUE(t >= last);
		last = t;
	}
	read_both(&slow_end, &fast_end);
	slow = slow_end - slow;
	fast = fast_end - fast;
	error = slow > fast ? slow - fast : fast - slow;
	/* the error of two readings, and 0.1 % of the measured time */
	TEST_ASSERT_TRUE(error < 2 * BETWEEN_NS + slow / 1000);
}

/*
 * A plugin gets the time from its host, which calls gn_now_ns(). The time of a lane comes from
 * gn_fast_ns(). A plugin compares both, so both must be the same time.
 */
static void fast_and_precise_time_are_consistent(void)
{
	gn_clock_init();
	for (int i = 0; i < 1000; i++) {
		uint64_t before = gn_fast_ns(), now = gn_now_ns(), after = gn_fast_ns();

		TEST_ASSERT_TRUE(before <= now && now <= after);
	}
}

static void test_can_replace_the_clock(void)
{
	gn_clock_init();
	gn_clock_set_fake(fake);
	hand = 42;
	TEST_ASSERT_EQUAL_UINT64(42, gn_now_ns());
	TEST_ASSERT_EQUAL_UINT64(42, gn_fast_ns());
	gn_clock_init();
	TEST_ASSERT_EQUAL_UINT64(42, gn_fast_ns());
	gn_clock_set_fake(NULL);
	TEST_ASSERT_TRUE(gn_now_ns() != 42 && gn_fast_ns() != 42);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(now_is_clock_monotonic);
	RUN_TEST(the_counter_runs_like_the_clock);
	RUN_TEST(fast_and_precise_time_are_consistent);
	RUN_TEST(test_can_replace_the_clock);
	return UNITY_END();
}
