/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * image_engine.c - replaces plugins/backend/file/file_uring.c: threads of this engine execute its
 * steps
 *
 * As with io_uring, the lane continues while a step is in progress, and steps end in any order.
 * Each lane has up to THREADS_MOST threads, as drawn.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backend/file/file.h"
#include "sim.h"

#define THREADS_MOST 3u

struct ring {
	struct file_lane *lane;
	pthread_t threads[THREADS_MOST];
	uint32_t n_threads;
	pthread_mutex_t lock; /* protects all fields below */
	pthread_cond_t changed;
	struct file_request *todo, **todo_end, *done;
	ssize_t *results; /* results of steps, indexed by request */
	int stop;
	int event_fd;
};

static void *work(void *arg)
{
	struct ring *ring = arg;
	const uint64_t one = 1;

	pthread_mutex_lock(&ring->lock);
	for (;;) {
		struct file_request *r = ring->todo;
		ssize_t result;

		if (!r && ring->stop)
			break;
		if (!r) {
			pthread_cond_wait(&ring->changed, &ring->lock);
			continue;
		}
		ring->todo = r->next;
		if (!ring->todo)
			ring->todo_end = &ring->todo;
		pthread_mutex_unlock(&ring->lock);
		result = file_step_execute(ring->lane->store, r);
		pthread_mutex_lock(&ring->lock);
		ring->results[r - ring->lane->requests] = result;
		r->next = ring->done;
		ring->done = r;
		if (write(ring->event_fd, &one, sizeof(one)) != sizeof(one))
			sim_fail("an eventfd does not take a number");
	}
	pthread_mutex_unlock(&ring->lock);
	return NULL;
}

static void stop(struct file_lane *lane)
{
	struct ring *ring = lane->engine;

	pthread_mutex_lock(&ring->lock);
	ring->stop = 1;
	pthread_cond_broadcast(&ring->changed);
	pthread_mutex_unlock(&ring->lock);
	for (uint32_t i = 0; i < ring->n_threads; i++)
		pthread_join(ring->threads[i], NULL);
	close(ring->event_fd);
	free(ring->results);
	free(ring);
	lane->engine = NULL;
}

static int start(struct file_lane *lane)
{
	struct ring *ring = calloc(1, sizeof(*ring));
	uint32_t n = 1 + sim_draw(THREADS_MOST);

	if (!ring)
		return -ENOMEM;
	ring->lane = lane;
	ring->todo_end = &ring->todo;
	ring->results = calloc(lane->n_requests, sizeof(*ring->results));
	ring->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!ring->results || ring->event_fd < 0) {
		if (ring->event_fd >= 0)
			close(ring->event_fd);
		free(ring->results);
		free(ring);
		return -ENOMEM;
	}
	pthread_mutex_init(&ring->lock, NULL);
	pthread_cond_init(&ring->changed, NULL);
	lane->engine = ring;
	while (ring->n_threads < n) {
		if (pthread_create(&ring->threads[ring->n_threads], NULL, work, ring) != 0) {
			stop(lane);
			return -ENOMEM;
		}
		ring->n_threads++;
	}
	return 0;
}

static void issue(struct file_lane *lane, struct file_request *request)
{
	struct ring *ring = lane->engine;

	pthread_mutex_lock(&ring->lock);
	request->next = NULL;
	*ring->todo_end = request;
	ring->todo_end = &request->next;
	pthread_cond_signal(&ring->changed);
	pthread_mutex_unlock(&ring->lock);
}

static int poll_done(struct file_lane *lane)
{
	struct ring *ring = lane->engine;
	struct file_request *r, *next;
	int n = 0;

	pthread_mutex_lock(&ring->lock);
	r = ring->done;
	ring->done = NULL;
	pthread_mutex_unlock(&ring->lock);
	for (; r; r = next, n++) {
		next = r->next;
		if (file_step_done(lane, r, ring->results[r - lane->requests]))
			issue(lane, r);
	}
	return n;
}

static int arm(struct file_lane *lane)
{
	struct ring *ring = lane->engine;
	int ready;

	pthread_mutex_lock(&ring->lock);
	ready = ring->done != NULL;
	pthread_mutex_unlock(&ring->lock);
	return ready;
}

static void disarm(struct file_lane *lane)
{
	struct ring *ring = lane->engine;
	eventfd_t ignored;

	if (eventfd_read(ring->event_fd, &ignored) != 0)
		return; /* no step has ended */
}

static int event_fd(struct file_lane *lane)
{
	return ((struct ring *)lane->engine)->event_fd;
}

const struct file_engine file_engine_uring = {.name = "uring",
					      .start = start,
					      .issue = issue,
					      .poll = poll_done,
					      .arm = arm,
					      .disarm = disarm,
					      .fd = event_fd,
					      .stop = stop};
