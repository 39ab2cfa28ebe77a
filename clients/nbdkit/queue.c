/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue.c - a queue that several threads use.
 *
 * Whoever polls it completes what is done, for all. Who waits lets others go first for some turns:
 * whoever does the IO may need this very processor, and so may threads with requests that could go
 * out together with this one. Meanwhile most IOs complete, and nobody has to be woken. If not, one
 * of those that wait watches the queue's fd; the others sleep until theirs has completed, or until
 * they are to watch.
 */
#include <poll.h>
#include <sched.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "server.h"

#define TURNS 4        /* of those that wait */
#define WATCH_TURNS 30 /* of who watches: about 10 us where nobody else wants the processor */

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
 * Those who are woken want the lock, and may get this processor at once: so first the one and then
 * the other.
 */
static void unlock(struct server_queue *q)
{
	struct server_waiters woken = TAILQ_HEAD_INITIALIZER(woken);
	struct server_waiter *w;

	TAILQ_CONCAT(&woken, &q->woken, link);
	pthread_mutex_unlock(&q->lock);
	while ((w = TAILQ_FIRST(&woken))) {
		TAILQ_REMOVE(&woken, w, link);
		sem_post(&w->wake); /* from here on it may be gone */
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
 * One who was told of room may not have taken it, because the session is lost: so each that leaves
 * tells the next.
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
		; /* a signal */
	server_enter(q);
}

void server_completed(struct server_waiter *w)
{
	w->inflight--;
	if (w->asleep)
		wake(w->queue, &w->queue->sleeping, w);
	wake_first(w->queue, &w->queue->outside);
}

/* Not while somebody sleeps at its fd: a poll would take away what is to wake him. */
static void poll_queue(struct server_queue *q)
{
	if (!q->at_fd)
		gantry_queue_poll(q->queue);
}

static void let_others(struct server_queue *q)
{
	unlock(q);
	sched_yield();
	server_enter(q);
}

/* Poll, and let others go first, so many times; or until less than `before` is in flight. */
static void take_turns(struct server_waiter *w, uint32_t before, int turns)
{
	while (w->inflight == before && turns--) {
		poll_queue(w->queue);
		if (w->inflight == before)
			let_others(w->queue);
	}
}

static void wait_for_fd(struct server_queue *q)
{
	struct pollfd fd = {.fd = gantry_queue_fd(q->queue), .events = POLLIN};

	q->at_fd = 1;
	unlock(q);
	poll(&fd, 1, -1); /* an IO that is submitted meanwhile ends it too */
	server_enter(q);
	q->at_fd = 0;
}

static void watch(struct server_waiter *w, uint32_t before)
{
	struct server_queue *q = w->queue;

	q->watched = 1;
	take_turns(w, before, WATCH_TURNS);
	while (w->inflight == before) {
		if (gantry_queue_arm(q->queue))
			let_others(q);
		else
			wait_for_fd(q);
		gantry_queue_poll(q->queue);
	}
	q->watched = 0;
	wake_first(q, &q->sleeping);
}

void server_wait(struct server_waiter *w)
{
	uint32_t before = w->inflight;

	if (!before) {
		/*
		 * with nothing in flight nobody would wake us: there is room now, by answers that
		 * came after their time
		 */
		if (gantry_queue_inflight(w->queue->queue))
			sleep_in(&w->queue->outside, w);
		return;
	}
	take_turns(w, before, TURNS);
	while (w->inflight == before)
		if (w->queue->watched)
			sleep_in(&w->queue->sleeping, w);
		else
			watch(w, before);
}
