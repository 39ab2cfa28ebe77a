/* SPDX-License-Identifier: BSD-3-Clause */
/* How long an idle worker spins before it sleeps: by what its waits were like. The clock is the test's. */
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "fake/worker.h"
#include "pipeline/worker.h"
#include "unity.h"

#define STEP_NS 500u
#define BUDGET_US 100u

static struct gn_worker *worker;
static uint64_t now_ns;  /* the worker's */
static uint64_t left_ns; /* of the wait, when it goes to sleep: it sleeps for so long */
static int bell, asleep, work;

static int probe_poll(void *self)
{
	(void)self;
	return work;
}

static int probe_arm(void *self)
{
	(void)self;
	return 0;
}

/* It was asleep: the rest of the wait has passed. */
static void probe_disarm(void *self)
{
	(void)self;
	asleep = 1;
	fake_clock_advance(left_ns);
}

static int probe_fd(void *self)
{
	(void)self;
	return bell; /* is always readable: a sleep ends at once */
}

static void make_worker(uint64_t budget_us)
{
	struct gn_worker_attr attr = {.spin_ns = budget_us * GN_NS_PER_US, .driven = true};
	struct gantry_poller poller = {
		.poll = probe_poll, .arm = probe_arm, .disarm = probe_disarm, .fd = probe_fd, .self = &worker};

	TEST_ASSERT_EQUAL_INT(0, gn_worker_create(&attr, &worker));
	TEST_ASSERT_EQUAL_INT(0, gn_worker_add_clock(worker, &now_ns));
	TEST_ASSERT_EQUAL_INT(0, gn_worker_add(worker, &poller));
	gn_worker_enter(worker);
}

static void drop_worker(void)
{
	gn_worker_leave(worker);
	gn_worker_remove(worker, &worker);
	gn_worker_remove_clock(worker, &now_ns);
	gn_worker_destroy(&worker);
}

void setUp(void)
{
	bell = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	fake_clock_start();
	make_worker(BUDGET_US);
}

void tearDown(void)
{
	drop_worker();
	fake_clock_stop();
	close(bell);
}

/* Work comes after so long. Returns for how long of it the worker was awake, in microseconds. */
static unsigned wait_us(unsigned us)
{
	uint64_t spun_ns = 0, all_ns = us * GN_NS_PER_US;

	asleep = 0;
	while (spun_ns < all_ns) {
		gn_worker_tick(worker);
		left_ns = all_ns - spun_ns;
		gn_worker_idle(worker, 0);
		if (asleep)
			break;
		fake_clock_advance(STEP_NS);
		spun_ns += STEP_NS;
	}
	work = 1;
	TEST_ASSERT_EQUAL_INT(1, gn_worker_turn(worker));
	work = 0;
	return (unsigned)(spun_ns / GN_NS_PER_US);
}

static void short_waits_are_spun_through(void)
{
	for (int i = 0; i < 50; i++)
		TEST_ASSERT_EQUAL_UINT(90, wait_us(90));
	TEST_ASSERT_EQUAL_UINT(BUDGET_US, wait_us(500)); /* one that is long is no reason */
	for (int i = 0; i < 50; i++)
		TEST_ASSERT_EQUAL_UINT(90, wait_us(90));
}

static void settle(unsigned us)
{
	for (int i = 0; i < 20; i++)
		wait_us(us);
}

static void long_waits_are_slept_through(void)
{
	settle(1000);
	for (int i = 0; i < 50; i++)
		TEST_ASSERT_EQUAL_UINT(0, wait_us(1000));
}

/* A lane that relays: the answer is near, the next request is not. Who counted one for the other would spin before each. */
static void where_short_and_long_take_turns_it_sleeps_at_once(void)
{
	for (int i = 0; i < 20; i++)
		wait_us(i % 2 ? 60 : 900);
	for (int i = 0; i < 50; i++)
		TEST_ASSERT_EQUAL_UINT(0, wait_us(i % 2 ? 60 : 900));
}

/* Two who both sleep see each other's waking as their own waits: they find out of it. */
static void waits_that_became_short_are_spun_through_again(void)
{
	settle(1000);
	for (int i = 0; i < 12; i++)
		TEST_ASSERT_EQUAL_UINT(0, wait_us(150));
	for (int i = 0; i < 12; i++)
		TEST_ASSERT_EQUAL_UINT(70, wait_us(70));
}

/* Waits that are a little longer than the budget: spinning is tried again and again, but seldom. */
static void what_just_does_not_fit_costs_little(void)
{
	unsigned spun = 0;

	settle(150);
	for (int i = 0; i < 200; i++)
		spun += wait_us(150);
	TEST_ASSERT_LESS_THAN(200 * BUDGET_US / 2, spun);
}

static void after_a_very_long_wait_it_spins_once(void)
{
	settle(10000);
	TEST_ASSERT_EQUAL_UINT(60, wait_us(60));
	TEST_ASSERT_EQUAL_UINT(0, wait_us(60));
	wait_us(10000);
	TEST_ASSERT_EQUAL_UINT(60, wait_us(60));
}

static void without_a_budget_it_sleeps_at_once(void)
{
	drop_worker();
	make_worker(0);
	for (int i = 0; i < 50; i++)
		TEST_ASSERT_EQUAL_UINT(0, wait_us(i % 2 ? 5 : 900));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(short_waits_are_spun_through);
	RUN_TEST(long_waits_are_slept_through);
	RUN_TEST(where_short_and_long_take_turns_it_sleeps_at_once);
	RUN_TEST(waits_that_became_short_are_spun_through_again);
	RUN_TEST(what_just_does_not_fit_costs_little);
	RUN_TEST(after_a_very_long_wait_it_spins_once);
	RUN_TEST(without_a_budget_it_sleeps_at_once);
	return UNITY_END();
}
