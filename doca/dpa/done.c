/* SPDX-License-Identifier: BSD-3-Clause */
/* done.c - completion queues: the common part of queues for producers and for consumers */
#include "dpa/dpa.h"

/* -- configuration, start and stop -- */

doca_error_t gd_done_may_set(const struct gd_done *done, bool valid)
{
	if (!done || !valid)
		return DOCA_ERROR_INVALID_VALUE;
	return done->started ? DOCA_ERROR_BAD_STATE : DOCA_SUCCESS;
}

static void let_go(struct gd_done *done)
{
	if (done->thread)
		done->thread->refs--;
}

doca_error_t gd_done_set_thread(struct gd_done *done, struct doca_dpa_thread *thread)
{
	const doca_error_t result =
		gd_done_may_set(done, thread && (!done || !done->dpa || done->dpa == thread->dpa));

	if (result != DOCA_SUCCESS)
		return result;
	let_go(done);
	done->thread = thread;
	done->dpa = thread->dpa;
	thread->refs++;
	return DOCA_SUCCESS;
}

void gd_done_start(struct gd_done *done, uint32_t size)
{
	done->size = size;
	done->put = done->seen = done->acked = 0;
	done->started = true;
}

doca_error_t gd_done_stop(struct gd_done *done)
{
	if (!done)
		return DOCA_ERROR_INVALID_VALUE;
	if (!done->started)
		return DOCA_ERROR_BAD_STATE;
	if (done->refs)
		return DOCA_ERROR_IN_USE;
	done->started = false;
	return DOCA_SUCCESS;
}

doca_error_t gd_done_fini(struct gd_done *done)
{
	if (!done)
		return DOCA_ERROR_INVALID_VALUE;
	if (done->refs)
		return DOCA_ERROR_IN_USE;
	let_go(done);
	return DOCA_SUCCESS;
}

doca_error_t gd_done_handle(const struct gd_done *done, uint64_t *handle)
{
	if (!done || !handle)
		return DOCA_ERROR_INVALID_VALUE;
	if (!done->started)
		return DOCA_ERROR_BAD_STATE;
	*handle = (uintptr_t)done;
	return DOCA_SUCCESS;
}

/* -- lock held -- */

bool gd_done_is_full(const struct gd_done *done)
{
	return done->put - done->acked >= done->size;
}

uint32_t gd_done_place(const struct gd_done *done)
{
	return done->put % done->size;
}

static void ring(struct gd_done *done)
{
	if (!done->armed || !done->thread || done->thread->finished)
		return;
	done->armed = false;
	done->thread->is_due = true;
	pthread_cond_signal(&done->thread->wake);
}

void gd_done_put(struct gd_done *done)
{
	done->put++;
	ring(done);
}

/* -- code on the DPA -- */

/* Returns the queue of a handle; NULL: none, or its DPA is not yet set. */
static struct gd_done *of_handle(uint64_t handle)
{
	struct gd_done *done = (void *)(uintptr_t)handle;

	return done && done->dpa ? done : NULL;
}

bool gd_done_next(uint64_t handle, uint32_t *place)
{
	struct gd_done *done = of_handle(handle);
	bool found;

	if (!done)
		return false;
	pthread_mutex_lock(&done->dpa->lock);
	found = done->seen != done->put;
	if (found)
		*place = done->seen++ % done->size;
	pthread_mutex_unlock(&done->dpa->lock);
	return found;
}

void gd_done_ack(uint64_t handle, uint64_t n)
{
	struct gd_done *done = of_handle(handle);
	uint32_t most;

	if (!done)
		return;
	pthread_mutex_lock(&done->dpa->lock);
	most = done->seen - done->acked;
	done->acked += n < most ? (uint32_t)n : most;
	pthread_mutex_unlock(&done->dpa->lock);
}

void gd_done_arm(uint64_t handle)
{
	struct gd_done *done = of_handle(handle);

	if (!done)
		return;
	pthread_mutex_lock(&done->dpa->lock);
	done->armed = true;
	if (done->seen != done->put)
		ring(done);
	pthread_mutex_unlock(&done->dpa->lock);
}
