/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that wait at a queue of nbdkit's plugin: a thread does not sleep if no other thread is
 * left to wake it. The test implements the queue.
 */
#include <unistd.h>

#include "../clients/nbdkit/nbdkit_queue.c"
#include "unity.h"

static struct server_queue queue;
static struct server_waiter first, second;
static uint32_t n_inflight;
static pthread_t thread;
static struct server_waiter *completes; /* the next poll completes an IO of this thread */

int gantry_queue_open(struct gantry_volume *volume, struct gantry_queue **queue_p)
{
	(void)volume;
	*queue_p = (struct gantry_queue *)&n_inflight;
	return 0;
}

int gantry_queue_close(struct gantry_queue **queue_p)
{
	*queue_p = NULL;
	return 0;
}

int gantry_queue_poll(struct gantry_queue *q)
{
	struct server_waiter *w = completes;

	(void)q;
	completes = NULL;
	if (w)
		server_completed(w);
	return w != NULL;
}

int gantry_queue_fd(const struct gantry_queue *q)
{
	(void)q;
	return -1;
}

int gantry_queue_arm(struct gantry_queue *q)
{
	(void)q;
	return 1;
}

uint32_t gantry_queue_inflight(const struct gantry_queue *q)
{
	(void)q;
	return n_inflight;
}

void setUp(void)
{
	alarm(60); /* ends the test if a thread is not woken */
	TEST_ASSERT_EQUAL_INT(0, server_queue_open(&queue, NULL));
	first = second = (struct server_waiter){.queue = &queue};
	sem_init(&first.wake, 0, 0);
	sem_init(&second.wake, 0, 0);
	n_inflight = 0;
	completes = NULL;
}

void tearDown(void)
{
	server_queue_close(&queue);
	alarm(0);
}

/*
 * A thread got -EAGAIN from the queue. No IO is in flight, so no completion would wake the thread.
 * But late replies have released slots: the thread retries its IO and does not sleep.
 */
static void thread_does_not_sleep_for_queue_space_when_nothing_is_in_flight(void)
{
	server_enter(&queue);
	server_wait(&first);
	server_leave(&queue);
	TEST_ASSERT_EQUAL_INT(0, first.asleep);
}

static void *wait_in_queue(void *arg)
{
	server_enter(&queue);
	server_wait(arg);
	server_leave(&queue);
	return NULL;
}

static int is_asleep(void)
{
	int asleep;

	server_enter(&queue);
	asleep = second.asleep;
	unlock(&queue);
	return asleep;
}

static void completion_wakes_the_thread_that_waits_for_queue_space(void)
{
	first.inflight = n_inflight = 1;
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, wait_in_queue, &second));
	while (!is_asleep())
		sched_yield();
	server_enter(&queue);
	n_inflight = 0;
	server_completed(&first);
	unlock(&queue);
	TEST_ASSERT_EQUAL_INT(0, pthread_join(thread, NULL));
	TEST_ASSERT_EQUAL_UINT(0, first.inflight);
}

/*
 * The watcher has left, and the thread that it has woken leaves without watching, because its own
 * IO has completed meanwhile. It wakes the next thread, which polls from then on.
 */
static void thread_that_leaves_wakes_the_next_watcher(void)
{
	first.inflight = second.inflight = n_inflight = 1;
	queue.watched = 1;
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, wait_in_queue, &second));
	while (!is_asleep())
		sched_yield();
	server_enter(&queue);
	queue.watched = 0;
	completes = &first;
	server_wait(&first);
	completes = &second;
	server_leave(&queue);
	TEST_ASSERT_EQUAL_INT(0, pthread_join(thread, NULL));
	TEST_ASSERT_EQUAL_UINT(0, second.inflight);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(thread_does_not_sleep_for_queue_space_when_nothing_is_in_flight);
	RUN_TEST(completion_wakes_the_thread_that_waits_for_queue_space);
	RUN_TEST(thread_that_leaves_wakes_the_next_watcher);
	return UNITY_END();
}
