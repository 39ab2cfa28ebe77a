/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker without a thread: when it polls each poller, which threads can call it, and when its fd
 * is readable for an owner that waits in its own event loop.
 */
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "fake/host.h"
#include "pipeline/worker.h"
#include "unity.h"

/*
 * The functions of the probe run only on a thread that holds the lock of the worker. The fields are
 * not atomic, so the thread sanitizer reports a call by a thread without the lock.
 */
struct probe {
	unsigned polls, arms, disarms, calls;
	int fd, work, arm_rc;
	uint64_t wake_ns;
	void (*in_poll)(void);
};

static struct gn_worker *worker;
static struct probe probe;
static uint64_t now_ns;

static int probe_poll(void *self)
{
	struct probe *p = self;
	uint64_t n;

	p->polls++;
	if (p->in_poll)
		p->in_poll();
	if (read(p->fd, &n, sizeof(n)) != sizeof(n))
		return 0;
	p->work += (int)n;
	return (int)n;
}

static int probe_arm(void *self)
{
	((struct probe *)self)->arms++;
	return ((struct probe *)self)->arm_rc;
}

static void probe_disarm(void *self)
{
	((struct probe *)self)->disarms++;
}

static uint64_t probe_wake(void *self)
{
	return ((struct probe *)self)->wake_ns;
}

static int probe_fd(void *self)
{
	return ((struct probe *)self)->fd;
}

static void make_worker(uint64_t spin_ns)
{
	struct gn_worker_attr attr = {.spin_ns = spin_ns, .driven = true};
	struct gantry_poller poller = {.poll = probe_poll,
				       .arm = probe_arm,
				       .disarm = probe_disarm,
				       .wake_ns = probe_wake,
				       .fd = probe_fd,
				       .self = &probe};

	TEST_ASSERT_EQUAL_INT(0, gn_worker_create(&attr, &worker));
	TEST_ASSERT_EQUAL_INT(0, gn_worker_add_clock(worker, &now_ns));
	TEST_ASSERT_EQUAL_INT(0, gn_worker_add(worker, &poller));
}

static void drop_worker(void)
{
	gn_worker_remove(worker, &probe);
	gn_worker_remove_clock(worker, &now_ns);
	gn_worker_destroy(&worker);
}

void setUp(void)
{
	probe = (struct probe){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	now_ns = 0;
	make_worker(0);
}

void tearDown(void)
{
	drop_worker();
	close(probe.fd);
}

static void ring(void)
{
	uint64_t one = 1;

	TEST_ASSERT_EQUAL_INT(8, write(probe.fd, &one, sizeof(one)));
}

static int turn(void)
{
	int n;

	gn_worker_enter(worker);
	n = gn_worker_turn(worker);
	gn_worker_leave(worker);
	return n;
}

static int arm(void)
{
	int rc;

	gn_worker_enter(worker);
	rc = gn_worker_arm(worker);
	gn_worker_leave(worker);
	return rc;
}

/* Returns whether the fd is readable. wanted 1: waits up to 10 s for that. */
static int readable(int wanted)
{
	struct pollfd p = {.fd = gn_worker_fd(worker), .events = POLLIN};

	return poll(&p, 1, wanted ? 10000 : 0);
}

static void driven_worker_polls_in_each_turn(void)
{
	uint64_t before = gn_now_ns(), came_in;

	TEST_ASSERT_EQUAL_UINT(0, probe.polls);
	TEST_ASSERT_EQUAL_INT(0, turn());
	TEST_ASSERT_EQUAL_UINT(1, probe.polls);
	ring();
	ring();
	gn_worker_enter(worker);
	came_in = now_ns;
	TEST_ASSERT_TRUE(came_in >= before);
	TEST_ASSERT_EQUAL_INT(2, gn_worker_turn(worker));
	gn_worker_leave(worker);
	TEST_ASSERT_TRUE(now_ns == came_in);
	gn_worker_remove_clock(worker, &now_ns);
	now_ns = 1;
	turn();
	TEST_ASSERT_TRUE(now_ns == 1);
}

static void note_thread(void *arg)
{
	*(pthread_t *)arg = pthread_self();
}

static void call_inside(void *arg)
{
	pthread_t inner = 0;

	gn_worker_call(worker, note_thread, &inner);
	TEST_ASSERT_TRUE(pthread_equal(inner, pthread_self()));
	note_thread(arg);
}

static void call_from_poll(void)
{
	call_inside(&(pthread_t){0});
	probe.calls++;
}

static void a_call_runs_on_the_thread_of_the_caller(void)
{
	pthread_t on = 0;

	gn_worker_call(worker, call_inside, &on);
	TEST_ASSERT_TRUE(pthread_equal(on, pthread_self()));
	TEST_ASSERT_TRUE(now_ns != 0);
	probe.in_poll = call_from_poll;
	turn();
	TEST_ASSERT_EQUAL_UINT(1, probe.calls);
}

static void count_call(void *arg)
{
	(void)arg;
	probe.calls++;
}

static void *call_once(void *arg)
{
	__atomic_store_n((int *)arg, 1, __ATOMIC_SEQ_CST);
	gn_worker_call(worker, count_call, NULL);
	return NULL;
}

static void calls_wait_while_the_owner_is_inside(void)
{
	int started = 0;
	pthread_t thread;

	gn_worker_enter(worker);
	pthread_create(&thread, NULL, call_once, &started);
	while (!__atomic_load_n(&started, __ATOMIC_SEQ_CST))
		;
	for (int i = 0; i < 1000; i++)
		gn_worker_turn(worker);
	TEST_ASSERT_EQUAL_UINT(0, probe.calls);
	gn_worker_leave(worker);
	pthread_join(thread, NULL);
	TEST_ASSERT_EQUAL_UINT(1, probe.calls);
}

static void *call_often(void *arg)
{
	(void)arg;
	for (int i = 0; i < 500; i++)
		gn_worker_call(worker, count_call, NULL);
	return NULL;
}

static unsigned calls_so_far(void)
{
	unsigned n;

	gn_worker_enter(worker);
	gn_worker_turn(worker);
	n = probe.calls;
	gn_worker_leave(worker);
	return n;
}

static void calls_run_although_the_owner_is_busy(void)
{
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, call_often, NULL);
	while (calls_so_far() < 1500)
		;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

static void pollers_are_added_and_removed_between_turns(void)
{
	struct probe other = {.fd = -1};
	struct gantry_poller poller = {.poll = probe_poll, .self = &other};

	for (int i = 0; i < 100; i++) {
		TEST_ASSERT_EQUAL_INT(0, gn_worker_add(worker, &poller));
		if (i < 99)
			gn_worker_remove(worker, &other);
	}
	turn();
	TEST_ASSERT_EQUAL_UINT(1, other.polls);
	gn_worker_remove(worker, &other);
	turn();
	TEST_ASSERT_EQUAL_UINT(1, other.polls);
}

static void fd_is_readable_when_a_poller_has_work(void)
{
	for (int i = 0; i < 3; i++) {
		TEST_ASSERT_EQUAL_INT(0, arm());
		TEST_ASSERT_EQUAL_INT(0, readable(0));
		TEST_ASSERT_EQUAL_UINT(probe.disarms + 1, probe.arms);
		ring();
		TEST_ASSERT_EQUAL_INT(1, readable(1));
		TEST_ASSERT_EQUAL_INT(1, turn());
		TEST_ASSERT_EQUAL_UINT(probe.disarms, probe.arms);
	}
}

static void fd_is_readable_when_a_timer_is_due(void)
{
	probe.wake_ns = gn_now_ns() + 20 * GN_NS_PER_MS;
	TEST_ASSERT_EQUAL_INT(0, arm());
	TEST_ASSERT_EQUAL_INT(1, readable(1));
	while (gn_now_ns() < probe.wake_ns)
		;
	TEST_ASSERT_EQUAL_INT(1, arm()); /* the timer is due: the poller must be polled first */
	TEST_ASSERT_EQUAL_INT(1, readable(0));
	probe.wake_ns = 0;
	turn();
	TEST_ASSERT_EQUAL_INT(0, readable(0));
	probe.wake_ns = gn_now_ns() + 1000 * GN_NS_PER_S;
	TEST_ASSERT_EQUAL_INT(0, arm());
	probe.wake_ns -= 999 * GN_NS_PER_S + 980 * GN_NS_PER_MS; /* the timer is due in 20 ms */
	TEST_ASSERT_EQUAL_INT(0, arm());
	TEST_ASSERT_EQUAL_INT(1, readable(1));
}

static void fd_is_readable_when_a_call_is_pending(void)
{
	for (int i = 0; i < 3; i++) {
		TEST_ASSERT_EQUAL_INT(0, arm());
		gn_worker_call(worker, count_call, NULL);
		gn_worker_call(worker, count_call, NULL);
		TEST_ASSERT_EQUAL_UINT(probe.disarms, probe.arms);
		TEST_ASSERT_EQUAL_INT(1, readable(0));
		turn();
		TEST_ASSERT_EQUAL_INT(0, readable(0));
	}
	gn_worker_call(worker, count_call, NULL);
	TEST_ASSERT_EQUAL_INT(0, readable(0)); /* the worker is not armed */
}

/*
 * An owner arms the worker, enters it to submit an IO, and makes no turn. gn_worker_enter() disarms
 * the pollers, whose events would then not wake the owner. So the fd stays readable until a turn.
 */
static void fd_stays_readable_until_the_owner_makes_a_turn(void)
{
	TEST_ASSERT_EQUAL_INT(0, arm());
	gn_worker_enter(worker);
	TEST_ASSERT_EQUAL_UINT(probe.disarms, probe.arms);
	gn_worker_leave(worker);
	TEST_ASSERT_EQUAL_INT(1, readable(0));
	TEST_ASSERT_EQUAL_INT(0, arm());
	TEST_ASSERT_EQUAL_INT(1, readable(0));
	turn();
	TEST_ASSERT_EQUAL_INT(0, readable(0));
}

static void pollers_are_not_armed_while_there_is_work(void)
{
	probe.arm_rc = 1;
	TEST_ASSERT_EQUAL_INT(1, arm());
	TEST_ASSERT_EQUAL_UINT(1, probe.arms);
	TEST_ASSERT_EQUAL_UINT(1, probe.disarms);
	probe.arm_rc = 0;
	probe.wake_ns = 1;
	TEST_ASSERT_EQUAL_INT(1, arm());
	TEST_ASSERT_EQUAL_UINT(1, probe.arms);
}

/*
 * Make turns and idle until a turn finds work, or until_ns has passed (0: no limit). Returns the
 * result of the last turn.
 */
static int wait_for_work(uint64_t until_ns)
{
	int n;

	gn_worker_enter(worker);
	while ((n = gn_worker_turn(worker)) == 0 && (until_ns == 0 || now_ns < until_ns))
		gn_worker_idle(worker, until_ns);
	gn_worker_leave(worker);
	return n;
}

static void *ring_later(void *arg)
{
	(void)arg;
	for (int i = 0; i < 20; i++)
		gn_worker_call(worker, count_call, NULL);
	ring();
	return NULL;
}

static void an_idle_owner_is_woken(void)
{
	uint64_t spins[] = {0, 100 * GN_NS_PER_US, 10 * GN_NS_PER_MS};

	for (unsigned i = 0; i < 3; i++) {
		drop_worker();
		make_worker(spins[i]);
		for (int k = 0; k < 10; k++) {
			pthread_t thread;

			pthread_create(&thread, NULL, ring_later, NULL);
			TEST_ASSERT_EQUAL_INT(1, wait_for_work(0));
			pthread_join(thread, NULL);
		}
		TEST_ASSERT_EQUAL_UINT(probe.disarms, probe.arms);
	}
	TEST_ASSERT_EQUAL_UINT(600, probe.calls);
}

static void an_idle_owner_wakes_by_itself(void)
{
	uint64_t until_ns = gn_now_ns() + 10 * GN_NS_PER_MS;

	TEST_ASSERT_EQUAL_INT(0, wait_for_work(until_ns));
	TEST_ASSERT_TRUE(gn_now_ns() >= until_ns);
	TEST_ASSERT_GREATER_THAN(0, probe.arms);
	TEST_ASSERT_EQUAL_UINT(probe.disarms, probe.arms);
	probe.arm_rc = 1; /* pollers that are never idle: the worker turns until the time is over */
	TEST_ASSERT_EQUAL_INT(0, wait_for_work(gn_now_ns() + GN_NS_PER_MS));
}

static void closed_worker_leaves_no_descriptor_open(void)
{
	int fd = dup(0), again;

	close(fd);
	drop_worker();
	make_worker(0);
	drop_worker();
	again = dup(0);
	close(again);
	TEST_ASSERT_TRUE(again < fd);
	make_worker(0);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(driven_worker_polls_in_each_turn);
	RUN_TEST(a_call_runs_on_the_thread_of_the_caller);
	RUN_TEST(calls_wait_while_the_owner_is_inside);
	RUN_TEST(calls_run_although_the_owner_is_busy);
	RUN_TEST(pollers_are_added_and_removed_between_turns);
	RUN_TEST(fd_is_readable_when_a_poller_has_work);
	RUN_TEST(fd_is_readable_when_a_timer_is_due);
	RUN_TEST(fd_is_readable_when_a_call_is_pending);
	RUN_TEST(fd_stays_readable_until_the_owner_makes_a_turn);
	RUN_TEST(pollers_are_not_armed_while_there_is_work);
	RUN_TEST(an_idle_owner_is_woken);
	RUN_TEST(an_idle_owner_wakes_by_itself);
	RUN_TEST(closed_worker_leaves_no_descriptor_open);
	return UNITY_END();
}
