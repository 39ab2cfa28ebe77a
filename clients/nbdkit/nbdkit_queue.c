/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbdkit_queue.c - a gantry queue that several threads share. server_enter() takes the lock of the
 * queue. The caller holds it in all other functions except open and close.
 *
 * The thread that polls the queue completes the IOs of all threads. A thread that waits first polls
 * and yields for some turns: the thread that executes the IO might need this processor, as might
 * threads whose requests can be sent together with the request of this thread. Most IOs complete in
 * that time, so no thread has to be woken.
 *
 * After that one of the waiting threads, the watcher, waits for the fd of the queue. The others
 * sleep until their IOs have completed, or until one of them becomes the watcher.
 */
#include <poll.h>
#include <sched.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "nbdkit_server.h"

#define TURNS 4 /* turns of a waiting thread before it sleeps */
/*
 * turns of the watcher before it waits for the fd: about 10 us if no other thread uses the
 * processor
 */
#define WATCH_TURNS 30

int server_queue_open(struct server_queue *q, struct gantry_volume *volume)
{
	int rc = gantry_queue_open(volume, &q->queue);

	if (rc)
		return rc;
	pthread_mutex_init(&q->lock, NULL);
	TAILQ_INIT(&q->sleeping);
	TAILQ_INIT(&q->outside);
	TAILQ_INIT(&q->woken);
	return 0;
}

void server_queue_close(struct server_queue *q)
{
	gantry_queue_close(&q->queue);
	pthread_mutex_destroy(&q->lock);
}

void server_enter(struct server_queue *q)
{
	pthread_mutex_lock(&q->lock);
}

/*
 * Release the lock, then wake the threads in `woken`: a woken thread takes the lock, and can run on
 * this processor immediately.
 */
static void unlock(struct server_queue *q)
{
	struct server_waiters woken = TAILQ_HEAD_INITIALIZER(woken);
	struct server_waiter *w;

	TAILQ_CONCAT(&woken, &q->woken, link);
	pthread_mutex_unlock(&q->lock);
	while ((w = TAILQ_FIRST(&woken))) {
		TAILQ_REMOVE(&woken, w, link);
		sem_post(&w->wake); /* the waiter can be freed from here on */
	}
}

static void wake(struct server_queue *q, struct server_waiters *from, struct server_waiter *w)
{
	TAILQ_REMOVE(from, w, link);
	TAILQ_INSERT_TAIL(&q->woken, w, link);
	w->asleep = 0;
}

static void wake_first(struct server_queue *q, struct server_waiters *of)
{
	if (!TAILQ_EMPTY(of))
		wake(q, of, TAILQ_FIRST(of));
}

/*
 * Leave the queue and wake a thread that waits for a slot. A thread that was woken earlier might
 * not have used its slot, because the session is lost. So each thread that leaves wakes the next.
 */
void server_leave(struct server_queue *q)
{
	wake_first(q, &q->outside);
	unlock(q);
}

static void sleep_in(struct server_waiters *list, struct server_waiter *w)
{
	struct server_queue *q = w->queue;

	TAILQ_INSERT_TAIL(list, w, link);
	w->asleep = 1;
	unlock(q);
	while (sem_wait(&w->wake))
		; /* a signal interrupted the wait: wait again */
	server_enter(q);
}

void server_completed(struct server_waiter *w)
{
	w->inflight--;
	if (w->asleep)
		wake(w->queue, &w->queue->sleeping, w);
	wake_first(w->queue, &w->queue->outside);
}

/*
 * Poll, unless the watcher sleeps at the fd: a poll would clear the event that wakes the watcher.
 */
static void poll_queue(struct server_queue *q)
{
	if (!q->at_fd)
		gantry_queue_poll(q->queue);
}

static void yield_queue(struct server_queue *q)
{
	unlock(q);
	sched_yield();
	server_enter(q);
}

/*
 * Poll and yield, up to `turns` times, or until an IO of the waiter has completed. before: value of
 * w->inflight at the start of the wait.
 */
static void poll_and_yield(struct server_waiter *w, uint32_t before, int turns)
{
	while (w->inflight == before && turns--) {
		poll_queue(w->queue);
		if (w->inflight == before)
			yield_queue(w->queue);
	}
}

static void wait_for_fd(struct server_queue *q)
{
	struct pollfd fd = {.fd = gantry_queue_fd(q->queue), .events = POLLIN};

	q->at_fd = 1;
	unlock(q);
	poll(&fd, 1, -1); /* a submit of another thread ends the poll too */
	server_enter(q);
	q->at_fd = 0;
}

static void watch(struct server_waiter *w, uint32_t before)
{
	struct server_queue *q = w->queue;

	q->watched = 1;
	poll_and_yield(w, before, WATCH_TURNS);
	while (w->inflight == before) {
		if (gantry_queue_arm(q->queue))
			yield_queue(q);
		else
			wait_for_fd(q);
		gantry_queue_poll(q->queue);
	}
	q->watched = 0;
}

void server_wait(struct server_waiter *w)
{
	uint32_t before = w->inflight;

	if (!before) {
		/*
		 * If no IO is in flight, no completion would wake this thread. In that case slots
		 * are free already, because late replies have arrived.
		 */
		if (gantry_queue_inflight(w->queue->queue))
			sleep_in(&w->queue->outside, w);
		return;
	}
	poll_and_yield(w, before, TURNS);
	while (w->inflight == before)
		if (w->queue->watched)
			sleep_in(&w->queue->sleeping, w);
		else
			watch(w, before);
	/*
	 * The thread that is woken becomes the watcher, unless its IO completes before it runs.
	 * Then it gets here, too, and wakes the next one.
	 */
	if (!w->queue->watched)
		wake_first(w->queue, &w->queue->sleeping);
}
