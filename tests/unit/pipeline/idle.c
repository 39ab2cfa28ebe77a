/* SPDX-License-Identifier: BSD-3-Clause */
/* The model of idle.h, on a simulated clock: when a worker pauses, yields and sleeps. */
#include "pipeline/idle.h"
#include "unity.h"

#define STEP_NS 100u /* time of a turn */
#define BUDGET_US 100u
#define SWITCH_NS 3000u /* a yield that lets another thread run */
#define CALL_NS 100u

static struct gn_idle idle;
static uint64_t now_ns;
static unsigned neighbour_ns; /* duration of a yield; 0: no other thread ran */
static unsigned n_yields, n_pauses;

void setUp(void)
{
	now_ns = 1000000000;
	neighbour_ns = n_yields = n_pauses = 0;
	gn_idle_init(&idle, BUDGET_US * 1000, CALL_NS);
}

void tearDown(void)
{
}

/* Let the worker pause or yield. Returns false if it sleeps instead. */
static bool turn(void)
{
	switch (gn_idle_next(&idle, now_ns)) {
	case GN_IDLE_PAUSE:
		n_pauses++;
		now_ns += STEP_NS;
		return true;
	case GN_IDLE_YIELD:
		n_yields++;
		now_ns += STEP_NS + neighbour_ns;
		gn_idle_yielded(&idle, neighbour_ns);
		return true;
	case GN_IDLE_SLEEP:
		break;
	}
	return false;
}

/* Let work arrive after `us`. Returns how long the worker spun before it slept, in microseconds. */
static unsigned wait_us(unsigned us)
{
	uint64_t begin_ns = now_ns, end_ns = now_ns + us * 1000, spun_ns;

	while (now_ns < end_ns && turn())
		;
	spun_ns = now_ns - begin_ns;
	if (now_ns < end_ns) {
		now_ns = end_ns;
		gn_idle_slept(&idle, now_ns);
	}
	gn_idle_worked(&idle);
	return (unsigned)(spun_ns / 1000);
}

static void settle(unsigned us)
{
	for (int i = 0; i < 20; i++)
		wait_us(us);
}

static void short_waits_are_spun_through(void)
{
	for (int i = 0; i < 50; i++)
		TEST_ASSERT_EQUAL_UINT(90, wait_us(90));
	TEST_ASSERT_EQUAL_UINT(BUDGET_US, wait_us(500));
	/* one long wait does not change the policy */
	for (int i = 0; i < 50; i++)
		TEST_ASSERT_EQUAL_UINT(90, wait_us(90));
}

static void long_waits_sleep_at_once(void)
{
	TEST_ASSERT_EQUAL_UINT(BUDGET_US, wait_us(1000));
	TEST_ASSERT_EQUAL_UINT(BUDGET_US, wait_us(1000));
	for (int i = 0; i < 50; i++)
		TEST_ASSERT_EQUAL_UINT(0, wait_us(1000));
}

/* As on a lane of a gateway: the reply arrives soon, the next request late. */
static void near_and_far_waits_that_alternate_sleep_at_once(void)
{
	for (int i = 0; i < 20; i++)
		wait_us(i % 2 ? 60 : 900);
	for (int i = 0; i < 50; i++)
		TEST_ASSERT_EQUAL_UINT(0, wait_us(i % 2 ? 60 : 900));
}

/*
 * Two workers that sleep while they wait for each other measure the wake-up time as part of their
 * waits. When the waits are shorter than the budget again, they must spin again.
 */
static void waits_that_become_short_are_spun_through_again(void)
{
	unsigned n = 0;

	settle(1000);
	while (wait_us(150) == 0)
		n++;
	TEST_ASSERT_EQUAL_UINT(GN_IDLE_LONG, n);
	for (int i = 0; i < 12; i++)
		wait_us(70);
	TEST_ASSERT_EQUAL_UINT(70, wait_us(70));
}

static void waits_just_beyond_the_budget_waste_little(void)
{
	unsigned spun = 0;

	settle(150);
	for (int i = 0; i < 200; i++)
		spun += wait_us(150);
	TEST_ASSERT_LESS_THAN(200 * BUDGET_US / GN_IDLE_LONG + 1, spun);
}

static void wait_after_a_very_long_one_spins(void)
{
	settle(10000);
	TEST_ASSERT_EQUAL_UINT(60, wait_us(60));
	wait_us(1000);
	TEST_ASSERT_EQUAL_UINT(0, wait_us(60));
	wait_us(10000);
	TEST_ASSERT_EQUAL_UINT(60, wait_us(60));
}

static void worker_without_a_budget_sleeps_at_once(void)
{
	gn_idle_init(&idle, 0, CALL_NS);
	for (int i = 0; i < 50; i++)
		TEST_ASSERT_EQUAL_UINT(0, wait_us(i % 2 ? 5 : 900));
}

/* A wait that new work does not end continues after a sleep, without another spin. */
static void wake_up_without_work_continues_the_wait(void)
{
	wait_us(90);
	while (turn())
		;
	now_ns += 5000;
	gn_idle_slept(&idle, now_ns);
	TEST_ASSERT_EQUAL_INT(GN_IDLE_SLEEP, gn_idle_next(&idle, now_ns));
}

/*
 * far_ns 0: the worker waits for another thread of its processor, which works when the worker
 * yields. Otherwise it waits for a peer on another processor, which answers after far_ns. Returns
 * the number of pauses.
 */
static unsigned wait_for(unsigned far_ns)
{
	uint64_t end_ns = now_ns + far_ns;
	unsigned pauses = n_pauses, yields = n_yields;

	while (far_ns != 0 ? now_ns < end_ns : n_yields == yields)
		TEST_ASSERT_TRUE(turn());
	gn_idle_worked(&idle);
	return n_pauses - pauses;
}

static void contended_processor_is_yielded_at_once(void)
{
	neighbour_ns = SWITCH_NS;
	for (int i = 0; i < 1000; i++)
		wait_for(0);
	TEST_ASSERT_LESS_THAN(1000, n_pauses); /* trials are rare */
}

static void worker_alone_on_its_processor_rarely_yields(void)
{
	settle(20);
	n_yields = 0;
	for (int i = 0; i < 1000; i++)
		wait_us(12);
	TEST_ASSERT_EQUAL_UINT(0, n_yields);
}

static void processor_that_becomes_contended_is_yielded_at_once(void)
{
	settle(20);
	neighbour_ns = SWITCH_NS;
	wait_us(20);
	TEST_ASSERT_EQUAL_UINT(0, wait_for(0));
}

static void relay_pauses_in_far_waits_and_yields_in_near_ones(void)
{
	neighbour_ns = SWITCH_NS;
	for (int i = 0; i < 2000; i++)
		wait_for(i % 2 ? 1600 : 0);
	n_yields = 0;
	for (int i = 0; i < 100; i++)
		TEST_ASSERT_EQUAL_UINT(i % 2 ? 16 : 0, wait_for(i % 2 ? 1600 : 0));
	TEST_ASSERT_EQUAL_UINT(50, n_yields);
	/* when the far waits take longer than a pause, yielding is better again */
	for (int i = 0; i < 10; i++)
		wait_for(i % 2 ? 9000 : 0);
	TEST_ASSERT_EQUAL_UINT(0, wait_for(9000));
}

/* Other threads of the processor can take milliseconds, which is no time of this worker. */
static void time_of_other_threads_is_no_part_of_the_budget(void)
{
	neighbour_ns = 3000000;
	for (int i = 0; i < 50; i++)
		TEST_ASSERT_TRUE(turn());
	/* two idle workers that only yield to each other must sleep nevertheless */
	neighbour_ns = SWITCH_NS;
	for (int i = 0; i < 100 && turn(); i++)
		;
	TEST_ASSERT_FALSE(turn());
}

/* An emulated processor: a yield takes long although no other thread runs. */
static void slow_yield_on_a_slow_processor_indicates_no_other_thread(void)
{
	gn_idle_init(&idle, BUDGET_US * 1000, 1200);
	neighbour_ns = SWITCH_NS;
	settle(40);
	n_yields = 0;
	TEST_ASSERT_GREATER_THAN(150, wait_for(16000));
	TEST_ASSERT_EQUAL_UINT(0, n_yields);
}

static void timer_within_the_budget_is_worth_spinning(void)
{
	TEST_ASSERT_TRUE(gn_idle_is_near(&idle, now_ns, now_ns - 1));
	TEST_ASSERT_TRUE(gn_idle_is_near(&idle, now_ns, now_ns + BUDGET_US * 1000));
	TEST_ASSERT_FALSE(gn_idle_is_near(&idle, now_ns, now_ns + BUDGET_US * 1000 + 1));
}

static void blocked_work_is_polled_at_intervals_after_a_long_time(void)
{
	while (turn())
		;
	TEST_ASSERT_EQUAL_UINT64(0, gn_idle_blocked(&idle, now_ns));
	now_ns += 2000000;
	TEST_ASSERT_EQUAL_UINT64(0, gn_idle_blocked(&idle, now_ns));
	now_ns += 2000000;
	TEST_ASSERT_EQUAL_UINT64(GN_IDLE_NAP_NS, gn_idle_blocked(&idle, now_ns));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(short_waits_are_spun_through);
	RUN_TEST(long_waits_sleep_at_once);
	RUN_TEST(near_and_far_waits_that_alternate_sleep_at_once);
	RUN_TEST(waits_that_become_short_are_spun_through_again);
	RUN_TEST(waits_just_beyond_the_budget_waste_little);
	RUN_TEST(wait_after_a_very_long_one_spins);
	RUN_TEST(worker_without_a_budget_sleeps_at_once);
	RUN_TEST(wake_up_without_work_continues_the_wait);
	RUN_TEST(contended_processor_is_yielded_at_once);
	RUN_TEST(worker_alone_on_its_processor_rarely_yields);
	RUN_TEST(processor_that_becomes_contended_is_yielded_at_once);
	RUN_TEST(relay_pauses_in_far_waits_and_yields_in_near_ones);
	RUN_TEST(time_of_other_threads_is_no_part_of_the_budget);
	RUN_TEST(slow_yield_on_a_slow_processor_indicates_no_other_thread);
	RUN_TEST(timer_within_the_budget_is_worth_spinning);
	RUN_TEST(blocked_work_is_polled_at_intervals_after_a_long_time);
	return UNITY_END();
}
