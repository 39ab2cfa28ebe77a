/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker without work pauses, yields and sleeps as the idle policy (idle.h) chooses, and a worker
 * with many short operations reads the clock rarely. The test controls the time.
 */
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "fake/worker.h"
#include "pipeline/worker.h"
#include "unity.h"

#define STEP_NS 500u
#define BUDGET_US 100u

static struct gn_worker *worker;
static uint64_t now_ns;  /* time of the worker */
static uint64_t left_ns; /* remaining time of the wait when the worker goes to sleep */
static int bell, asleep, work;
/*
 * n_yields: calls of sched_yield(); neighbour_ns: how long another thread of the processor runs in
 * each call, 0: there is no other thread
 */
static unsigned n_yields, neighbour_ns;
static unsigned call_ns; /* duration of a system call */

/* Replaces sched_yield() of the C library. */
int sched_yield(void)
{
	n_yields++;
	fake_clock_advance(neighbour_ns);
	return 0;
}

/* Replaces getppid(), by which a worker measures the cost of a system call. */
pid_t getppid(void)
{
	fake_clock_advance(call_ns);
	return 1;
}

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

/* The worker has slept until the end of the wait: advance the clock to it. */
static void probe_disarm(void *self)
{
	(void)self;
	asleep = 1;
	fake_clock_advance(left_ns);
}

static int probe_fd(void *self)
{
	(void)self;
	return bell; /* always readable, so epoll_wait() returns immediately */
}

static void make_worker(uint64_t budget_us)
{
	struct gn_worker_attr attr = {.spin_ns = budget_us * GN_NS_PER_US, .driven = true};
	struct gantry_poller poller = {.poll = probe_poll,
				       .arm = probe_arm,
				       .disarm = probe_disarm,
				       .fd = probe_fd,
				       .self = &worker};

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
	n_yields = neighbour_ns = call_ns = 0;
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

/* Let work arrive after `us`. Returns how long the worker spun before it slept, in microseconds. */
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

static void settle(unsigned us)
{
	for (int i = 0; i < 20; i++)
		wait_us(us);
}

static void worker_spins_through_short_waits_and_sleeps_through_long_ones(void)
{
	TEST_ASSERT_EQUAL_UINT(90, wait_us(90));
	settle(1000);
	TEST_ASSERT_EQUAL_UINT(0, wait_us(1000));
	settle(70);
	TEST_ASSERT_EQUAL_UINT(70, wait_us(70));
}

static void worker_without_a_budget_sleeps_at_once(void)
{
	drop_worker();
	make_worker(0);
	TEST_ASSERT_EQUAL_UINT(0, wait_us(5));
}

/*
 * far_ns 0: the worker waits for another thread of its processor, which works when the worker
 * yields. Otherwise it waits for a peer on another processor, which answers after far_ns. Returns
 * how often the worker paused instead of yielding.
 */
static unsigned wait_for(unsigned far_ns)
{
	uint64_t spun_ns = 0;
	unsigned pauses = 0, before = n_yields;

	while (far_ns != 0 ? spun_ns < far_ns : n_yields == before) {
		unsigned yields = n_yields;

		gn_worker_tick(worker);
		gn_worker_idle(worker, 0);
		if (n_yields == yields) {
			fake_clock_advance(100);
			pauses++;
		}
		spun_ns += n_yields == yields ? 100 : neighbour_ns;
	}
	work = 1;
	TEST_ASSERT_EQUAL_INT(1, gn_worker_turn(worker));
	work = 0;
	gn_worker_tick(worker);
	return pauses;
}

/* An emulated processor: a yield takes long although no other thread runs. */
static void slow_yield_on_a_slow_processor_indicates_no_other_thread(void)
{
	call_ns = 1200;
	drop_worker();
	make_worker(BUDGET_US);
	neighbour_ns = 3000;
	for (int i = 0; i < 20; i++)
		wait_for(40000);
	n_yields = 0;
	/* the worker has learnt that no other thread runs on its processor */
	TEST_ASSERT_GREATER_THAN(150, wait_for(16000));
	TEST_ASSERT_EQUAL_UINT(0, n_yields);
	neighbour_ns = 7000;
	wait_for(0);
	wait_for(0);
	TEST_ASSERT_LESS_THAN(20, wait_for(0)); /* it has learnt that another thread runs there */
}

/* Do `things` operations of each_ns. Returns how often the time of the worker changed. */
static unsigned looks_for(unsigned things, unsigned each_ns)
{
	unsigned looks = 0;

	for (unsigned i = 0; i < things; i++) {
		uint64_t before = now_ns;

		fake_clock_advance(each_ns);
		gn_worker_clock_update_coarse(worker);
		looks += now_ns != before;
	}
	return looks;
}

static void short_operations_share_a_clock_reading(void)
{
	uint64_t begin_ns;

	gn_worker_tick(worker);
	looks_for(10, 250);
	begin_ns = now_ns;
	TEST_ASSERT_EQUAL_UINT(100, looks_for(100, 250));
	TEST_ASSERT_EQUAL_UINT64(begin_ns + 100 * 250, now_ns);
	TEST_ASSERT_EQUAL_UINT(1 + 10, looks_for(1 + 60, 150));
	TEST_ASSERT_EQUAL_UINT64(begin_ns + 100 * 250 + 61 * 150, now_ns);
	TEST_ASSERT_EQUAL_UINT(0, looks_for(5, 150));
	/* a long operation causes a reading; after it each operation has a reading */
	TEST_ASSERT_EQUAL_UINT(1, looks_for(1, 10000));
	TEST_ASSERT_EQUAL_UINT(10, looks_for(10, 250));
	/* the shorter the operations, the more of them share a reading, but at most 32 */
	TEST_ASSERT_EQUAL_UINT(1 + 10, looks_for(1 + 200, 50));
	TEST_ASSERT_EQUAL_UINT(1, looks_for(20, 5));
	TEST_ASSERT_EQUAL_UINT(10, looks_for(10 * 32, 5));
	TEST_ASSERT_EQUAL_UINT(10, looks_for(10 * 32, 5));
	/* when operations get slower, the clock is read more often again */
	TEST_ASSERT_EQUAL_UINT(9, looks_for(32 + 8, 250));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(worker_spins_through_short_waits_and_sleeps_through_long_ones);
	RUN_TEST(worker_without_a_budget_sleeps_at_once);
	RUN_TEST(slow_yield_on_a_slow_processor_indicates_no_other_thread);
	RUN_TEST(short_operations_share_a_clock_reading);
	return UNITY_END();
}
