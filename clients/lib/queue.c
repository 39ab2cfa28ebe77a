/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue.c - queues of a volume. Thread of the caller; one thread at a time for each queue.
 *
 * Descriptors complete while a thread is inside the worker: the owner of the queue, or the control
 * thread when it ends a session. gc_queue_done() adds them to `done`. The owner takes this list and
 * calls the functions of the program outside of the worker.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "io/status.h"
#include "lib_priv.h"

void gc_queue_done(void *self, struct gantry_io *io)
{
	struct gantry_engine_queue *engine = self;
	struct gantry_queue *queue = engine->user;

	if (gantry_engine_completed(engine, io))
		return;
	queue->done[queue->n_done++] = io->slot;
}

/* Run one turn of the engine queue and the worker. Inside the worker. */
static int turn(struct gantry_queue *queue)
{
	return gantry_engine_poll(queue->engine) + gn_worker_turn(queue->worker);
}

/* -- open and close -- */

static void free_queue(struct gantry_queue *queue)
{
	free(queue->reporting);
	free(queue->done);
	free(queue->requests);
	free(queue->pieces);
	free(queue);
}

static struct gantry_queue *alloc_queue(struct gantry_volume *volume)
{
	struct gantry_queue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return NULL;
	queue->volume = volume;
	queue->requests = calloc(volume->attr.depth, sizeof(*queue->requests));
	queue->done = calloc(volume->attr.depth, sizeof(*queue->done));
	queue->reporting = calloc(volume->attr.depth, sizeof(*queue->reporting));
	queue->pieces = calloc(volume->attr.depth, sizeof(*queue->pieces));
	if (queue->requests && queue->done && queue->reporting && queue->pieces)
		return queue;
	free_queue(queue);
	return NULL;
}

/* Reserve a free lane. Returns attr.queues if there is none. */
static uint32_t take_lane(struct gantry_volume *volume, struct gantry_queue *queue)
{
	uint32_t i = 0;

	pthread_mutex_lock(&volume->lock);
	while (i < volume->attr.queues && volume->queues[i])
		i++;
	if (i < volume->attr.queues)
		volume->queues[i] = queue;
	pthread_mutex_unlock(&volume->lock);
	return i;
}

int gantry_queue_open(struct gantry_volume *volume, struct gantry_queue **queue_p)
{
	struct gantry_queue *queue;
	int rc = gc_check_fork(volume);

	*queue_p = NULL;
	if (rc)
		return rc;
	queue = alloc_queue(volume);
	if (!queue)
		return gc_error_static(-ENOMEM, "out of memory");
	queue->index = take_lane(volume, queue);
	if (queue->index == volume->attr.queues) {
		free_queue(queue);
		return gc_error(
			-EBUSY,
			"too many open queues (limit queues=%u): close one, or open the volume with more",
			volume->attr.queues);
	}
	queue->worker = volume->workers[queue->index];
	queue->engine = volume->rh->engine->queue(volume->session, queue->index);
	queue->engine->user = queue;
	*queue_p = queue;
	return 0;
}

/*
 * Wait until no peer can access the buffer of an IO that completed before its reply. Either the
 * late replies of all such IOs arrive within fence_timeout, or the session ends and the control
 * thread withdraws the region.
 */
static void wait_until_untouched(struct gantry_queue *queue)
{
	struct gantry_engine_queue *engine = queue->engine;
	struct gantry_volume *volume = queue->volume;
	int up;

	gn_worker_enter(queue->worker);
	for (;;) {
		int found = turn(queue);

		up = engine->up;
		if (!up || !engine->n_doubtful)
			break;
		if (!found)
			gn_worker_idle(queue->worker, 0);
	}
	gn_worker_leave(queue->worker);
	if (up)
		return;
	pthread_mutex_lock(&volume->lock);
	while (!volume->buffers_released && volume->state != GC_ENDED)
		pthread_cond_wait(&volume->changed, &volume->lock);
	pthread_mutex_unlock(&volume->lock);
}

int gantry_queue_close(struct gantry_queue **queue_p)
{
	struct gantry_queue *queue = *queue_p;
	struct gantry_volume *volume;
	int rc;

	if (!queue)
		return 0;
	volume = queue->volume;
	rc = gc_check_fork(volume);
	if (rc)
		return rc;
	if (queue->in_callbacks)
		return gc_error_static(-EBUSY, "a queue cannot be closed from inside `done`");
	queue->closing = 1;
	while (queue->n_open)
		gantry_queue_wait(queue, -1);
	wait_until_untouched(queue);
	queue->engine->user = NULL;
	pthread_mutex_lock(&volume->lock);
	volume->queues[queue->index] = NULL;
	pthread_mutex_unlock(&volume->lock);
	free_queue(queue);
	*queue_p = NULL;
	return 0;
}

/* -- progress -- */

/* Take the list of completed slots. Inside the worker. */
static uint32_t take_done(struct gantry_queue *queue)
{
	uint16_t *slots = queue->done;
	uint32_t n = queue->n_done;

	queue->done = queue->reporting;
	queue->reporting = slots;
	queue->n_done = 0;
	return n;
}

static void report_one(struct gantry_queue *queue, struct gantry_io *io)
{
	struct gc_request request = queue->requests[io->slot];
	int result = gn_errno_of_status(io->status);

	if (request.copy_to && result == 0) {
		memcpy(request.copy_to, gantry_engine_slot_buffer(queue->engine, io),
		       gantry_io_buffer_bytes(io));
		queue->copied += gantry_io_buffer_bytes(io);
	}
	if (io->opcode == GANTRY_OP_EXTENTS && result == 0 &&
	    !gantry_extents_are_valid(request.copy_to, io->length, queue->volume->info.block_size))
		result = -EIO;
	gantry_engine_put(queue->engine, io);
	gc_memories_drop(queue->volume, request.memories);
	queue->n_open--;
	request.done(request.arg, result);
}

static int report_done(struct gantry_queue *queue, uint32_t n)
{
	queue->in_callbacks = 1;
	for (uint32_t i = 0; i < n; i++)
		report_one(queue, &queue->engine->ios[queue->reporting[i]]);
	queue->in_callbacks = 0;
	return (int)n;
}

int gantry_queue_poll(struct gantry_queue *queue)
{
	uint32_t n;

	if (queue->in_callbacks || gc_check_fork(queue->volume))
		return 0;
	gn_worker_enter(queue->worker);
	turn(queue);
	n = take_done(queue);
	gn_worker_leave(queue->worker);
	return report_done(queue, n);
}

int gantry_queue_wait(struct gantry_queue *queue, int timeout_ms)
{
	uint64_t until = timeout_ms < 0 ? 0 : gn_now_ns() + (uint64_t)timeout_ms * GN_NS_PER_MS;
	uint32_t n;

	if (queue->in_callbacks || gc_check_fork(queue->volume))
		return 0;
	gn_worker_enter(queue->worker);
	for (;;) {
		int found = turn(queue);

		if (queue->n_done || !queue->n_open || (until && gn_now_ns() >= until))
			break;
		if (!found)
			gn_worker_idle(queue->worker, until);
	}
	n = take_done(queue);
	gn_worker_leave(queue->worker);
	return report_done(queue, n);
}

int gantry_queue_fence(struct gantry_queue *queue, int timeout_ms)
{
	uint64_t until = timeout_ms < 0 ? 0 : gn_now_ns() + (uint64_t)timeout_ms * GN_NS_PER_MS;
	uint32_t n;
	int rc = gc_check_fork(queue->volume), found;

	if (rc)
		return rc;
	if (queue->in_callbacks)
		return gc_error_static(-EBUSY, "a queue cannot be fenced from inside `done`");
	gn_worker_enter(queue->worker);
	for (;;) {
		found = turn(queue);
		rc = !queue->engine->up                               ? queue->engine->down_rc
		     : queue->engine->ops->late_writes(queue->engine) ? -ETIMEDOUT
								      : 0;
		if (rc != -ETIMEDOUT || (until && gn_now_ns() >= until))
			break;
		if (!found)
			gn_worker_idle(queue->worker, until);
	}
	n = take_done(queue);
	gn_worker_leave(queue->worker);
	report_done(queue, n);
	if (rc == -ETIMEDOUT)
		return gc_error(
			rc,
			"the fence ended after %d ms: writes that timed out earlier are still not answered: call the fence again",
			timeout_ms);
	return rc ? gc_refused(queue, rc) : 0;
}

/* -- event loops -- */

int gantry_queue_fd(const struct gantry_queue *queue)
{
	return gn_worker_fd(queue->worker);
}

int gantry_queue_arm(struct gantry_queue *queue)
{
	int rc;

	if (gc_check_fork(queue->volume))
		return 0;
	gn_worker_enter(queue->worker);
	rc = queue->n_done || gantry_engine_poll(queue->engine) || gn_worker_arm(queue->worker);
	gn_worker_leave(queue->worker);
	return rc;
}

uint32_t gantry_queue_inflight(const struct gantry_queue *queue)
{
	return queue->n_open;
}

uint64_t gantry_queue_copied_bytes(const struct gantry_queue *queue)
{
	return queue->copied;
}
