/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gd_pe_post() from several threads, while the engine polls or sleeps on its handle: no event is
 * lost, and events of one thread keep their order.
 */
#include <poll.h>
#include <pthread.h>

#include "fake_ctx.h"
#include "unity.h"

enum { N_THREADS = 3, N_EVENTS = 20000 };

struct posted {
	struct gd_event event;
	int thread, number;
};

static struct doca_pe *pe;
static struct posted events[N_THREADS][N_EVENTS];
static int next_number[N_THREADS], n_run, n_wrong;

static void run(struct gd_event *event)
{
	struct posted *posted = (struct posted *)event;

	if (posted->number != next_number[posted->thread]++)
		n_wrong++;
	n_run++;
}

static void *post(void *arg)
{
	struct posted *mine = arg;
	int i;

	for (i = 0; i < N_EVENTS; i++)
		gd_pe_post(pe, &mine[i].event);
	return NULL;
}

void setUp(void)
{
	int i, j;

	n_run = n_wrong = 0;
	for (i = 0; i < N_THREADS; i++) {
		next_number[i] = 0;
		for (j = 0; j < N_EVENTS; j++)
			events[i][j] = (struct posted){.event.run = run, .thread = i, .number = j};
	}
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_create(&pe));
}

void tearDown(void)
{
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_destroy(pe));
}

static void start(pthread_t *threads)
{
	int i;

	for (i = 0; i < N_THREADS; i++)
		TEST_ASSERT_EQUAL_INT(0, pthread_create(&threads[i], NULL, post, events[i]));
}

static void join(pthread_t *threads)
{
	int i;

	for (i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	TEST_ASSERT_EQUAL_INT(N_THREADS * N_EVENTS, n_run);
	TEST_ASSERT_EQUAL_INT(0, n_wrong);
}

static void test_posted_events_run_in_order(void)
{
	pthread_t threads[N_THREADS];

	start(threads);
	while (n_run < N_THREADS * N_EVENTS)
		doca_pe_progress(pe);
	join(threads);
}

/* MUST: no wake-up is lost between request and wait. */
static void test_no_wake_up_is_lost_for_a_thread_that_polls_the_handle(void)
{
	pthread_t threads[N_THREADS];
	struct pollfd pfd = {.events = POLLIN};

	doca_pe_get_notification_handle(pe, &pfd.fd);
	start(threads);
	while (n_run < N_THREADS * N_EVENTS) {
		doca_pe_request_notification(pe);
		TEST_ASSERT_EQUAL_INT_MESSAGE(1, poll(&pfd, 1, 10000), "a wake-up was lost");
		doca_pe_clear_notification(pe, pfd.fd);
		while (doca_pe_progress(pe))
			;
	}
	join(threads);
}

static void *progress(void *arg)
{
	const int end = *(int *)arg;

	while (n_run < end)
		doca_pe_progress(pe);
	return NULL;
}

/* MUST: threads can progress an engine in turn. */
static void test_engine_moves_between_threads(void)
{
	int half = N_THREADS * N_EVENTS / 2;
	pthread_t threads[N_THREADS], other;

	start(threads);
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&other, NULL, progress, &half));
	pthread_join(other, NULL);
	while (n_run < N_THREADS * N_EVENTS)
		doca_pe_progress(pe);
	join(threads);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_posted_events_run_in_order);
	RUN_TEST(test_no_wake_up_is_lost_for_a_thread_that_polls_the_handle);
	RUN_TEST(test_engine_moves_between_threads);
	return UNITY_END();
}
