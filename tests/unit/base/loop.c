/* SPDX-License-Identifier: BSD-3-Clause */
/* The control loop: one thread runs fds, timers and posts; other threads post to it. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/event_loop.h"
#include "fake/worker.h"
#include "unity.h"

static struct gn_loop *loop;
static int fds[2];
static unsigned n_called[2], n_timers, n_posts;
static int order[8];

void setUp(void)
{
	fake_clock_start();
	loop = gn_loop_create();
	TEST_ASSERT_NOT_NULL(loop);
	for (int i = 0; i < 2; i++) {
		fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		n_called[i] = 0;
	}
	n_timers = n_posts = 0;
}

void tearDown(void)
{
	gn_loop_destroy(&loop);
	TEST_ASSERT_NULL(loop);
	gn_loop_destroy(&loop);
	close(fds[0]);
	close(fds[1]);
	fake_clock_stop();
}

static void ring(int fd)
{
	uint64_t one = 1;

	TEST_ASSERT_EQUAL_INT(8, write(fd, &one, sizeof(one)));
}

static void count(void *arg)
{
	unsigned *n = arg;

	(*n)++;
}

static void an_fd_is_served_while_it_is_readable(void)
{
	TEST_ASSERT_EQUAL_INT(0, gn_loop_add_fd(loop, fds[0], count, &n_called[0]));
	gn_loop_turn(loop, 0);
	TEST_ASSERT_EQUAL_UINT(0, n_called[0]);
	ring(fds[0]);
	gn_loop_turn(loop, -1);
	gn_loop_turn(loop, -1);
	TEST_ASSERT_EQUAL_UINT(2, n_called[0]);
	gn_loop_remove_fd(loop, fds[0]);
	gn_loop_turn(loop, 0);
	TEST_ASSERT_EQUAL_UINT(2, n_called[0]);
	gn_loop_remove_fd(loop, fds[0]);
	TEST_ASSERT_EQUAL_INT(0, gn_loop_add_fd(loop, fds[0], count, &n_called[1]));
	gn_loop_turn(loop, -1);
	TEST_ASSERT_EQUAL_UINT(1, n_called[1]);
}

static void bad_fds_are_refused(void)
{
	TEST_ASSERT_EQUAL_INT(-EBADF, gn_loop_add_fd(loop, -1, count, NULL));
	TEST_ASSERT_EQUAL_INT(0, gn_loop_add_fd(loop, fds[0], count, NULL));
	TEST_ASSERT_EQUAL_INT(-EEXIST, gn_loop_add_fd(loop, fds[0], count, NULL));
}

/*
 * Each handler removes the fd of the other, closes it, and puts a new fd with the same number in
 * its place.
 */
static void replace_other(void *arg)
{
	unsigned *n = arg;
	int mine = n == &n_called[1], fd = fds[!mine];

	(*n)++;
	gn_loop_remove_fd(loop, fd);
	close(fd);
	fds[!mine] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	TEST_ASSERT_EQUAL_INT(fd, fds[!mine]);
	TEST_ASSERT_EQUAL_INT(0, gn_loop_add_fd(loop, fd, count, &n_posts));
}

static void removal_holds_for_an_fd_that_is_readable_in_the_same_turn(void)
{
	for (int i = 0; i < 2; i++) {
		TEST_ASSERT_EQUAL_INT(0, gn_loop_add_fd(loop, fds[i], replace_other, &n_called[i]));
		ring(fds[i]);
	}
	TEST_ASSERT_EQUAL_INT(2, gn_loop_turn(loop, -1));
	TEST_ASSERT_EQUAL_UINT(1, n_called[0] + n_called[1]);
	TEST_ASSERT_EQUAL_UINT(0, n_posts);
	n_called[0] = n_called[1] = 0;
}

static void remove_self(void *arg)
{
	count(arg);
	gn_loop_remove_fd(loop, fds[0]);
}

static void a_callback_may_remove_itself(void)
{
	gn_loop_add_fd(loop, fds[0], remove_self, &n_called[0]);
	ring(fds[0]);
	gn_loop_turn(loop, -1);
	gn_loop_turn(loop, 0);
	TEST_ASSERT_EQUAL_UINT(1, n_called[0]);
}

struct numbered {
	struct gn_timer timer;
	int number;
	uint64_t again_ns;
};

static void fire(void *arg)
{
	struct numbered *t = arg;

	order[n_timers++ % 8] = t->number;
	if (t->again_ns != 0)
		gn_loop_set_timer(loop, &t->timer, t->again_ns);
}

static struct numbered numbered(struct numbered *t, int number)
{
	*t = (struct numbered){.number = number};
	t->timer = (struct gn_timer){.fn = fire, .arg = t};
	return *t;
}

static void timers_fire_in_order_of_time_and_once(void)
{
	struct numbered t[3];
	uint64_t now = gn_now_ns();

	for (int i = 0; i < 3; i++)
		numbered(&t[i], i);
	gn_loop_set_timer(loop, &t[0].timer, now + 30);
	gn_loop_set_timer(loop, &t[1].timer, now + 10);
	gn_loop_set_timer(loop, &t[2].timer, now + 90);
	gn_loop_set_timer(loop, &t[2].timer, now + 20);
	gn_loop_turn(loop, 0);
	TEST_ASSERT_EQUAL_UINT(0, n_timers);
	fake_clock_advance(29);
	gn_loop_turn(loop, -1);
	TEST_ASSERT_EQUAL_UINT(2, n_timers);
	TEST_ASSERT_EQUAL_INT(1, order[0]);
	TEST_ASSERT_EQUAL_INT(2, order[1]);
	TEST_ASSERT_EQUAL_UINT64(0, t[1].timer.at_ns);
	gn_loop_clear_timer(loop, &t[0].timer);
	gn_loop_clear_timer(loop, &t[0].timer);
	fake_clock_advance(1000);
	gn_loop_turn(loop, 0);
	TEST_ASSERT_EQUAL_UINT(2, n_timers);
	gn_loop_set_timer(loop, &t[0].timer, 0);
	gn_loop_turn(loop, 0);
	TEST_ASSERT_EQUAL_UINT(2, n_timers);
}

#define MANY 40
#define TIMES 5

static int fired[MANY];

/*
 * Compute the order in which the due timers must run: by their times. Of timers with equal times,
 * the timer that was set first runs first; it has the smaller number in ages[].
 */
static int expected(const struct numbered *t, const unsigned *ages, uint64_t now, int *out)
{
	int n = 0;

	for (int i = 0; i < MANY; i++) {
		int at = n;

		if (t[i].timer.at_ns == 0 || t[i].timer.at_ns > now)
			continue;
		while (at > 0 && (t[out[at - 1]].timer.at_ns > t[i].timer.at_ns ||
				  (t[out[at - 1]].timer.at_ns == t[i].timer.at_ns &&
				   ages[out[at - 1]] > ages[i]))) {
			out[at] = out[at - 1];
			at--;
		}
		out[at] = i;
		n++;
	}
	return n;
}

static void note_number(void *arg)
{
	const struct numbered *t = arg;

	TEST_ASSERT_TRUE(n_timers < MANY);
	fired[n_timers++] = t->number;
}

static void timers_of_few_times_fire_in_the_order_in_which_they_were_set(void)
{
	static struct numbered t[MANY];
	unsigned ages[MANY] = {0}, age = 0;
	int wanted[MANY], n;

	srand(7);
	for (int i = 0; i < MANY; i++)
		t[i] = (struct numbered){.timer = {.fn = note_number, .arg = &t[i]}, .number = i};
	for (int round = 0; round < 300; round++) {
		for (int i = 0; i < MANY; i++) {
			struct numbered *one = &t[rand() % MANY];

			ages[one->number] = ++age;
			gn_loop_set_timer(loop, &one->timer,
					  rand() % 4 ? gn_now_ns() + 10 +
							       10 * (uint64_t)(rand() % TIMES)
						     : 0);
		}
		fake_clock_advance(10 * (uint64_t)(rand() % (TIMES + 2)));
		n_timers = 0;
		n = expected(t, ages, gn_now_ns(), wanted);
		gn_loop_turn(loop, 0);
		TEST_ASSERT_EQUAL_INT(n, n_timers);
		for (int i = 0; i < n; i++)
			TEST_ASSERT_EQUAL_INT(wanted[i], fired[i]);
	}
	for (int i = 0; i < MANY; i++)
		gn_loop_clear_timer(loop, &t[i].timer);
}

static void a_timer_that_is_always_due_lets_fds_through(void)
{
	struct numbered t;

	numbered(&t, 0);
	t.again_ns = 1;
	gn_loop_set_timer(loop, &t.timer, 1);
	gn_loop_add_fd(loop, fds[0], count, &n_called[0]);
	ring(fds[0]);
	for (int i = 0; i < 5; i++)
		gn_loop_turn(loop, -1);
	TEST_ASSERT_EQUAL_UINT(5, n_timers);
	TEST_ASSERT_EQUAL_UINT(5, n_called[0]);
	gn_loop_clear_timer(loop, &t.timer);
}

static void *post_many(void *arg)
{
	for (int i = 0; i < 1000; i++)
		if (gn_loop_post(loop, count, arg) != 0)
			abort();
	return NULL;
}

static void quit(void *arg)
{
	gn_loop_quit(arg, 3);
}

static void posts_of_other_threads_all_run_here(void)
{
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, post_many, &n_posts);
	while (n_posts < 3000)
		gn_loop_turn(loop, -1);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	TEST_ASSERT_EQUAL_UINT(3000, n_posts);
	gn_loop_post(loop, quit, loop);
	TEST_ASSERT_EQUAL_INT(3, gn_loop_run(loop));
	gn_loop_post(loop, quit, loop);
	TEST_ASSERT_EQUAL_INT(3, gn_loop_run(loop));
}

static void post_again(void *arg)
{
	if (++n_posts < 5)
		gn_loop_post(loop, post_again, arg);
}

static void a_post_from_a_post_runs_at_the_next_turn(void)
{
	gn_loop_post(loop, post_again, NULL);
	for (unsigned i = 1; i <= 5; i++) {
		gn_loop_turn(loop, -1);
		TEST_ASSERT_EQUAL_UINT(i, n_posts);
	}
}

/* -- the loop runs on its own thread, the test on another -- */

static void *run(void *arg)
{
	*(int *)arg = gn_loop_run(loop);
	return NULL;
}

static sem_t inside, may_return;
static int has_returned;

static bool arrives(sem_t *sem)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 10;
	return sem_timedwait(sem, &until) == 0;
}

static void wait_inside(void *arg)
{
	if (arg)
		gn_loop_remove_fd(loop, *(int *)arg);
	sem_post(&inside);
	sem_wait(&may_return);
	for (int i = 0; i < 1000; i++)
		sched_yield();
	__atomic_store_n(&has_returned, 1, __ATOMIC_RELEASE);
}

static void removal_from_another_thread_waits_for_the_function(void)
{
	pthread_t thread;
	int status;

	sem_init(&inside, 0, 0);
	sem_init(&may_return, 0, 0);
	pthread_create(&thread, NULL, run, &status);
	for (int i = 0; i < 20; i++) {
		has_returned = 0; /* no handler runs now */
		TEST_ASSERT_EQUAL_INT(
			0, gn_loop_add_fd(loop, fds[0], wait_inside, i % 2 ? &fds[0] : NULL));
		ring(fds[0]);
		TEST_ASSERT_TRUE(arrives(&inside));
		sem_post(&may_return);
		gn_loop_remove_fd(loop, fds[0]);
		TEST_ASSERT_EQUAL_INT(1, __atomic_load_n(&has_returned, __ATOMIC_ACQUIRE));
	}
	gn_loop_quit(loop, 4);
	pthread_join(thread, NULL);
	TEST_ASSERT_EQUAL_INT(4, status);
}

static void post_semaphore(void *arg)
{
	sem_post(arg);
}

static void a_timer_of_another_thread_wakes_the_loop(void)
{
	struct gn_timer timer = {.fn = post_semaphore, .arg = &inside};
	pthread_t thread;
	int status;

	sem_init(&inside, 0, 0);
	pthread_create(&thread, NULL, run, &status);
	for (int i = 0; i < 1000; i++) {
		gn_loop_set_timer(loop, &timer, 1);
		TEST_ASSERT_TRUE(arrives(&inside));
	}
	gn_loop_quit(loop, 0);
	pthread_join(thread, NULL);
}

static void child_abandons_a_loop_that_its_parent_continues(void)
{
	int status = -1;
	pid_t pid;

	gn_loop_add_fd(loop, fds[0], count, &n_called[0]);
	pid = fork();
	if (pid == 0) {
		gn_loop_abandon(loop);
		_exit(0);
	}
	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
	TEST_ASSERT_EQUAL_INT(0, status);
	ring(fds[0]);
	gn_loop_turn(loop, -1);
	TEST_ASSERT_EQUAL_UINT(1, n_called[0]);
}

/* -- posts in memory of the caller -- */

#define OWN 1000 /* more posts than the reserve of the loop holds for times without memory */

struct own {
	struct gn_post post;
	unsigned number;
	struct own *victim;
};

static void in_order(void *arg)
{
	struct own *own = arg;

	TEST_ASSERT_EQUAL_UINT(n_posts++, own->number);
	if (own->victim)
		gn_loop_withdraw(loop, &own->victim->post);
	free(own);
}

static struct own *post_own(unsigned number)
{
	struct own *own = calloc(1, sizeof(*own));

	TEST_ASSERT_NOT_NULL(own);
	own->number = number;
	gn_loop_post_own(loop, &own->post, in_order, own);
	return own;
}

static void posts_with_memory_of_their_own_run_in_order_and_may_free_it(void)
{
	for (unsigned i = 0; i < OWN; i++) {
		struct own *own = post_own(i);

		gn_loop_post_own(loop, &own->post, in_order, own); /* already posted: no effect */
		if (i % 3 == 0)
			gn_loop_post(loop, count, &n_called[0]);
	}
	gn_loop_turn(loop, -1);
	TEST_ASSERT_EQUAL_UINT(OWN, n_posts);
	TEST_ASSERT_EQUAL_UINT(OWN / 3 + 1, n_called[0]);
}

static void a_post_that_is_withdrawn_does_not_run(void)
{
	struct own *first = post_own(0), *second = post_own(7), *last;

	first->victim = second; /* `first` withdraws `second` in the turn in which both would run */
	gn_loop_turn(loop, -1);
	TEST_ASSERT_EQUAL_UINT(1, n_posts);
	gn_loop_withdraw(loop, &second->post); /* not posted: no effect */
	second->number = 1;
	last = post_own(9);
	gn_loop_withdraw(loop, &last->post);
	/* a new post, after the last post of the queue was withdrawn */
	gn_loop_post_own(loop, &second->post, in_order, second);
	gn_loop_turn(loop, -1);
	TEST_ASSERT_EQUAL_UINT(2, n_posts);
	free(last);
}

static struct gn_post own_post;

static void post_own_again(void *arg)
{
	if (++n_posts < 5)
		gn_loop_post_own(loop, &own_post, post_own_again, arg);
}

static void own_post_that_posts_itself_runs_at_the_next_turn(void)
{
	gn_loop_post_own(loop, &own_post, post_own_again, NULL);
	for (unsigned i = 1; i <= 5; i++) {
		gn_loop_turn(loop, -1);
		TEST_ASSERT_EQUAL_UINT(i, n_posts);
	}
	/* never runs: tearDown() destroys the loop before its next turn */
	gn_loop_post_own(loop, &own_post, count, &n_called[0]);
}

static void closed_loop_discards_its_posts_and_fds(void)
{
	gn_loop_post(loop, count, &n_posts);
	gn_loop_add_fd(loop, fds[1], count, &n_called[1]);
	TEST_ASSERT_EQUAL_UINT(0, n_posts);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(an_fd_is_served_while_it_is_readable);
	RUN_TEST(bad_fds_are_refused);
	RUN_TEST(removal_holds_for_an_fd_that_is_readable_in_the_same_turn);
	RUN_TEST(a_callback_may_remove_itself);
	RUN_TEST(timers_fire_in_order_of_time_and_once);
	RUN_TEST(timers_of_few_times_fire_in_the_order_in_which_they_were_set);
	RUN_TEST(a_timer_that_is_always_due_lets_fds_through);
	RUN_TEST(posts_of_other_threads_all_run_here);
	RUN_TEST(a_post_from_a_post_runs_at_the_next_turn);
	RUN_TEST(removal_from_another_thread_waits_for_the_function);
	RUN_TEST(a_timer_of_another_thread_wakes_the_loop);
	RUN_TEST(child_abandons_a_loop_that_its_parent_continues);
	RUN_TEST(posts_with_memory_of_their_own_run_in_order_and_may_free_it);
	RUN_TEST(a_post_that_is_withdrawn_does_not_run);
	RUN_TEST(own_post_that_posts_itself_runs_at_the_next_turn);
	RUN_TEST(closed_loop_discards_its_posts_and_fds);
	return UNITY_END();
}
