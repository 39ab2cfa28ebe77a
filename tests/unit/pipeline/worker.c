/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker thread: which pollers it polls, when it sleeps, and what wakes it. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "fake/host.h"
#include "fake/worker.h"
#include "pipeline/worker_priv.h"
#include "unity.h"

/*
 * A poller with all operations. The worker writes some fields on its thread. The test reads these
 * fields either after fake_settle() or with atomic loads.
 */
struct probe {
	struct fake_worker *fw;
	unsigned polls, arms, disarms;
	int fd, work, arm_rc;
	int keeps; /* poll does not drain the fd */
	uint64_t wake_ns;
	void (*in_poll)(struct probe *probe);
	struct probe *other;
};

static struct fake_worker fw;
static struct probe a, b;

static int probe_poll(void *self)
{
	struct probe *p = self;
	uint64_t n;

	__atomic_fetch_add(&p->polls, 1, __ATOMIC_RELAXED);
	if (p->fd >= 0 && !p->keeps && read(p->fd, &n, sizeof(n)) == sizeof(n))
		__atomic_fetch_add(&p->work, (int)n, __ATOMIC_RELAXED);
	if (p->in_poll)
		p->in_poll(p);
	return 0;
}

static int probe_arm(void *self)
{
	struct probe *p = self;

	__atomic_fetch_add(&p->arms, 1, __ATOMIC_RELAXED);
	return __atomic_load_n(&p->arm_rc, __ATOMIC_RELAXED);
}

static void probe_disarm(void *self)
{
	__atomic_fetch_add(&((struct probe *)self)->disarms, 1, __ATOMIC_RELAXED);
}

static uint64_t probe_wake(void *self)
{
	return __atomic_load_n(&((struct probe *)self)->wake_ns, __ATOMIC_RELAXED);
}

static int probe_fd(void *self)
{
	return ((struct probe *)self)->fd;
}

static int add(struct probe *p)
{
	struct gantry_poller poller = {.poll = probe_poll,
				       .arm = probe_arm,
				       .disarm = probe_disarm,
				       .wake_ns = probe_wake,
				       .fd = probe_fd,
				       .self = p};

	return gn_worker_add(fw.worker, &poller);
}

static unsigned get(const unsigned *n)
{
	return __atomic_load_n(n, __ATOMIC_RELAXED);
}

void setUp(void)
{
	a = (struct probe){.fd = -1};
	b = (struct probe){.fd = -1};
	fake_worker_start(&fw);
}

void tearDown(void)
{
	gn_worker_remove(fw.worker, &a);
	gn_worker_remove(fw.worker, &b);
	fake_worker_stop(&fw);
	if (a.fd >= 0)
		close(a.fd);
	if (b.fd >= 0 && b.fd != a.fd)
		close(b.fd);
}

static void ring(int fd)
{
	uint64_t one = 1;

	TEST_ASSERT_EQUAL_INT(8, write(fd, &one, sizeof(one)));
}

static void pollers_come_and_go_from_outside(void)
{
	unsigned polls;

	TEST_ASSERT_EQUAL_INT(0, add(&a));
	TEST_ASSERT_EQUAL_INT(0, add(&b));
	fake_settle(&fw);
	TEST_ASSERT_GREATER_THAN(0, get(&a.polls));
	TEST_ASSERT_GREATER_THAN(0, get(&b.polls));
	gn_worker_remove(fw.worker, &a);
	polls = a.polls;
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(polls, a.polls);
	gn_worker_remove(fw.worker, &a);
	gn_worker_remove(fw.worker, &fw);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_INT(0, add(&a));
	fake_settle(&fw);
	TEST_ASSERT_GREATER_THAN(polls, get(&a.polls));
}

static void remove_self(struct probe *p)
{
	p->in_poll = NULL;
	gn_worker_remove(p->fw->worker, p);
}

static void remove_other(struct probe *p)
{
	p->in_poll = NULL;
	gn_worker_remove(p->fw->worker, p->other);
	p->other->in_poll = (void (*)(struct probe *))abort; /* the worker must not poll it again */
}

static void add_many(struct probe *p)
{
	static struct probe many[20];
	struct gantry_poller poller = {.poll = probe_poll};

	p->in_poll = NULL;
	for (int i = 0; i < 20; i++) {
		many[i] = (struct probe){.fd = -1};
		poller.self = &many[i];
		if (gn_worker_add(p->fw->worker, &poller) != 0)
			abort();
	}
	p->other = many;
}

static void a_poller_removes_itself(void)
{
	a.fw = &fw;
	a.in_poll = remove_self;
	add(&a);
	add(&b);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, get(&a.polls));
	TEST_ASSERT_GREATER_THAN(1, get(&b.polls));
}

static void let_a_remove(void *arg)
{
	(void)arg;
	a.in_poll = remove_other;
}

static void a_poller_removes_the_next(void)
{
	a.fw = &fw;
	a.other = &b;
	add(&a);
	add(&b);
	gn_worker_call(fw.worker, let_a_remove, NULL);
	fake_settle(&fw);
	TEST_ASSERT_GREATER_THAN(1, get(&a.polls));
}

static void a_poller_adds_so_many_that_the_table_moves(void)
{
	a.fw = &fw;
	a.in_poll = add_many;
	add(&a);
	add(&b);
	fake_settle(&fw);
	for (int i = 0; i < 20; i++) {
		TEST_ASSERT_GREATER_THAN(0, get(&a.other[i].polls));
		gn_worker_remove(fw.worker, &a.other[i]);
	}
	TEST_ASSERT_GREATER_THAN(1, get(&b.polls));
}

static void note_thread(void *arg)
{
	*(pthread_t *)arg = pthread_self();
}

static void call_inside(void *arg)
{
	pthread_t inner;

	note_thread(arg);
	gn_worker_call(fw.worker, note_thread, &inner);
	if (!pthread_equal(inner, *(pthread_t *)arg))
		fake_fail("a call from the worker's thread runs elsewhere");
}

static void *call_often(void *arg)
{
	for (int i = 0; i < 500; i++) {
		pthread_t on;

		gn_worker_call(fw.worker, note_thread, &on);
		if (!pthread_equal(on, *(pthread_t *)arg))
			fake_fail("a call runs elsewhere");
	}
	return NULL;
}

static void calls_of_many_threads_run_on_the_worker(void)
{
	pthread_t on, threads[3];

	gn_worker_call(fw.worker, call_inside, &on);
	TEST_ASSERT_FALSE(pthread_equal(on, pthread_self()));
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, call_often, &on);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

/* Wait until the worker has armed this poller again. The worker does that when it goes to sleep. */
static void until_asleep(const struct probe *p)
{
	unsigned arms = get(&p->arms);

	gn_worker_call(fw.worker, note_thread, &(pthread_t){0});
	while (get(&p->arms) == arms)
		;
}

static void an_fd_wakes_the_sleeper(void)
{
	a.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	add(&a);
	for (int i = 1; i <= 20; i++) {
		until_asleep(&a);
		ring(a.fd);
		while (__atomic_load_n(&a.work, __ATOMIC_RELAXED) != i)
			;
	}
	gn_worker_remove(fw.worker, &a);
	TEST_ASSERT_EQUAL_UINT(a.arms, a.disarms);
}

static void remove_when_rung(struct probe *p)
{
	if (__atomic_load_n(&p->work, __ATOMIC_RELAXED) != 0)
		remove_self(p);
}

/* After a wake-up the worker polls before it disarms: a poller can remove itself in that poll. */
static void poller_removed_in_its_wake_up_poll_is_disarmed(void)
{
	a.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	a.fw = &fw;
	a.in_poll = remove_when_rung;
	add(&a);
	until_asleep(&a);
	ring(a.fd);
	while (__atomic_load_n(&a.work, __ATOMIC_RELAXED) == 0)
		;
	gn_worker_remove(fw.worker, &fw); /* unknown poller: only waits for the end of the turn */
	TEST_ASSERT_GREATER_THAN(0, a.arms);
	TEST_ASSERT_EQUAL_UINT(a.arms, a.disarms);
}

/* An fd that is not drained wakes the worker once for each signal. */
static void undrained_fd_wakes_the_worker_once_for_each_signal(void)
{
	uint64_t until;
	unsigned arms;

	a.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	a.keeps = 1;
	TEST_ASSERT_TRUE(gn_worker_is_edge_triggered(fw.worker));
	add(&a);
	for (int i = 1; i <= 20; i++) {
		unsigned polls;

		until_asleep(&a);
		polls = get(&a.polls);
		ring(a.fd);
		while (get(&a.polls) == polls)
			;
	}
	until_asleep(&a);
	arms = get(&a.arms);
	until = gn_now_ns() + 20 * GN_NS_PER_MS;
	while (gn_now_ns() < until)
		;
	TEST_ASSERT_LESS_THAN_UINT(arms + 20, get(&a.arms));
}

static void fd_of_two_pollers_works_after_the_first_is_removed(void)
{
	a.fd = b.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	TEST_ASSERT_EQUAL_INT(0, add(&a));
	TEST_ASSERT_EQUAL_INT(0, add(&b));
	gn_worker_remove(fw.worker, &a);
	until_asleep(&b);
	ring(b.fd);
	while (__atomic_load_n(&b.work, __ATOMIC_RELAXED) != 1)
		;
	gn_worker_remove(fw.worker, &b);
	ring(b.fd); /* its poller was removed: the worker stays asleep */
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_INT(1, b.work);
}

static void a_bad_fd_is_refused(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	close(fd);
	a.fd = fd;
	TEST_ASSERT_EQUAL_INT(-EBADF, add(&a));
	a.fd = -1;
}

static uint64_t n_sleeps(void)
{
	return __atomic_load_n(&fw.worker->n_sleeps, __ATOMIC_RELAXED);
}

static void poller_that_refuses_to_arm_keeps_the_worker_awake(void)
{
	unsigned turns;
	uint64_t sleeps;

	fake_worker_stop(&fw);
	fake_clock_start(); /* the time of a wait must not depend on the load of the machine */
	fake_worker_start(&fw);
	add(&a);
	b.arm_rc = 1;
	add(&b);
	fake_settle(&fw);
	sleeps = n_sleeps();
	turns = get(&a.polls);
	while (get(&a.polls) < turns + 100)
		; /* the worker makes turns, although no fd is signalled */
	TEST_ASSERT_EQUAL_UINT64(sleeps, n_sleeps());
	/* if a poller has refused to arm for long, the worker sleeps between turns */
	while (n_sleeps() < sleeps + 3)
		fake_clock_advance(2 * GN_NS_PER_MS);
	turns = get(&a.polls);
	while (get(&a.polls) < turns + 3)
		;
	gn_worker_remove(fw.worker, &b);
	gn_worker_remove(fw.worker, &a);
	TEST_ASSERT_EQUAL_UINT(a.arms, a.disarms);
	TEST_ASSERT_EQUAL_UINT(b.arms, b.disarms);
	fake_worker_stop(&fw);
	fake_clock_stop();
	fake_worker_start(&fw);
}

static void a_timer_wakes_the_sleeper(void)
{
	unsigned polls;

	add(&a);
	until_asleep(&a);
	polls = get(&a.polls);
	__atomic_store_n(&a.wake_ns, gn_now_ns() + 20 * GN_NS_PER_MS, __ATOMIC_RELAXED);
	fake_settle(&fw);
	while (gn_now_ns() < a.wake_ns)
		;
	while (get(&a.polls) <= polls + 3)
		; /* a timer that is due keeps the worker awake */
	__atomic_store_n(&a.wake_ns, 0, __ATOMIC_RELAXED);
}

static void the_report_counts(void)
{
	struct fake_report report;

	add(&a);
	fake_settle(&fw);
	fake_report_init(&report);
	gn_worker_report(fw.worker, &report.pub);
	TEST_ASSERT_TRUE(fake_reported_u64(&report, "turns") != UINT64_MAX);
	TEST_ASSERT_GREATER_THAN(0, fake_reported_u64(&report, "turns"));
}

static void a_worker_can_be_pinned_or_not_at_all(void)
{
	struct gn_worker_attr attr = {.name = "pinned", .cpu = 0, .spin_ns = 1000000};
	struct gn_worker *worker = NULL;
	pthread_t on;

	TEST_ASSERT_EQUAL_INT(0, gn_worker_create(&attr, &worker));
	gn_worker_call(worker, note_thread, &on);
	gn_worker_destroy(&worker);
	TEST_ASSERT_NULL(worker);
	gn_worker_destroy(&worker);
	attr.cpu = 1000;
	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_worker_create(&attr, &worker));
	/* the thread can already sleep when pinning it fails */
	attr.spin_ns = 0;
	for (int i = 0; i < 200; i++)
		TEST_ASSERT_EQUAL_INT(-EINVAL, gn_worker_create(&attr, &worker));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(pollers_come_and_go_from_outside);
	RUN_TEST(a_poller_removes_itself);
	RUN_TEST(a_poller_removes_the_next);
	RUN_TEST(a_poller_adds_so_many_that_the_table_moves);
	RUN_TEST(calls_of_many_threads_run_on_the_worker);
	RUN_TEST(an_fd_wakes_the_sleeper);
	RUN_TEST(poller_removed_in_its_wake_up_poll_is_disarmed);
	RUN_TEST(undrained_fd_wakes_the_worker_once_for_each_signal);
	RUN_TEST(fd_of_two_pollers_works_after_the_first_is_removed);
	RUN_TEST(a_bad_fd_is_refused);
	RUN_TEST(poller_that_refuses_to_arm_keeps_the_worker_awake);
	RUN_TEST(a_timer_wakes_the_sleeper);
	RUN_TEST(the_report_counts);
	RUN_TEST(a_worker_can_be_pinned_or_not_at_all);
	return UNITY_END();
}
