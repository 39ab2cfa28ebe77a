/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_dpa.c - the emulated DPA: its threads and completion queues */
#include <doca_dpa.h>

#include <stdlib.h>

#include "device/gd_device.h"
#include "dpa/dpa.h"

#define MAX_COMPLETIONS (1u << 20)

static _Thread_local struct doca_dpa_thread *current;

/* -- the DPA -- */

doca_error_t doca_dpa_cap_is_supported(const struct doca_devinfo *devinfo)
{
	return gd_cap(devinfo, devinfo && devinfo->comch);
}

doca_error_t doca_dpa_create(struct doca_dev *dev, struct doca_dpa **dpa_p)
{
	struct doca_dpa *dpa;

	if (!gd_dev_is_open(dev) || !dpa_p)
		return DOCA_ERROR_INVALID_VALUE;
	dpa = calloc(1, sizeof(*dpa));
	if (!dpa)
		return DOCA_ERROR_NO_MEMORY;
	dpa->dev = dev;
	gd_dev_hold(dev);
	pthread_mutex_init(&dpa->lock, NULL);
	pthread_cond_init(&dpa->changed, NULL);
	*dpa_p = dpa;
	return DOCA_SUCCESS;
}

doca_error_t doca_dpa_destroy(struct doca_dpa *dpa)
{
	if (!dpa)
		return DOCA_ERROR_INVALID_VALUE;
	if (dpa->refs)
		return DOCA_ERROR_IN_USE;
	pthread_cond_destroy(&dpa->changed);
	pthread_mutex_destroy(&dpa->lock);
	gd_dev_release(dpa->dev);
	free(dpa);
	return DOCA_SUCCESS;
}

doca_error_t doca_dpa_set_app(struct doca_dpa *dpa, struct doca_dpa_app *app)
{
	if (!dpa || !app)
		return DOCA_ERROR_INVALID_VALUE;
	return dpa->started ? DOCA_ERROR_BAD_STATE : DOCA_SUCCESS;
}

static doca_error_t set_started(struct doca_dpa *dpa, bool started)
{
	if (!dpa)
		return DOCA_ERROR_INVALID_VALUE;
	if (dpa->started == started)
		return DOCA_ERROR_BAD_STATE;
	dpa->started = started;
	return DOCA_SUCCESS;
}

doca_error_t doca_dpa_start(struct doca_dpa *dpa)
{
	return set_started(dpa, true);
}

doca_error_t doca_dpa_stop(struct doca_dpa *dpa)
{
	return set_started(dpa, false);
}

/* -- threads -- */

doca_error_t doca_dpa_thread_create(struct doca_dpa *dpa, struct doca_dpa_thread **dpa_thread)
{
	struct doca_dpa_thread *t;

	if (!dpa || !dpa_thread)
		return DOCA_ERROR_INVALID_VALUE;
	t = calloc(1, sizeof(*t));
	if (!t)
		return DOCA_ERROR_NO_MEMORY;
	t->dpa = dpa;
	dpa->refs++;
	pthread_cond_init(&t->wake, NULL);
	*dpa_thread = t;
	return DOCA_SUCCESS;
}

doca_error_t doca_dpa_thread_destroy(struct doca_dpa_thread *dpa_thread)
{
	doca_error_t result = DOCA_SUCCESS;

	if (!dpa_thread)
		return DOCA_ERROR_INVALID_VALUE;
	if (dpa_thread->refs)
		return DOCA_ERROR_IN_USE;
	if (dpa_thread->started)
		result = doca_dpa_thread_stop(dpa_thread);
	if (result != DOCA_SUCCESS)
		return result;
	pthread_cond_destroy(&dpa_thread->wake);
	dpa_thread->dpa->refs--;
	free(dpa_thread);
	return DOCA_SUCCESS;
}

doca_error_t doca_dpa_thread_set_func_arg(struct doca_dpa_thread *dpa_thread, doca_dpa_func_t *func,
					  uint64_t arg)
{
	if (!dpa_thread || !func)
		return DOCA_ERROR_INVALID_VALUE;
	if (dpa_thread->started)
		return DOCA_ERROR_BAD_STATE;
	dpa_thread->func = func;
	dpa_thread->arg = arg;
	return DOCA_SUCCESS;
}

/*
 * Run one activation. The caller holds the lock, which is released while the code of the DPA runs.
 */
static void activate(struct doca_dpa_thread *t)
{
	t->is_due = false;
	t->finished = false;
	pthread_mutex_unlock(&t->dpa->lock);
	if (setjmp(t->end) == 0)
		t->func(t->arg);
	pthread_mutex_lock(&current->dpa->lock);
}

static void *run_thread(void *arg)
{
	struct doca_dpa_thread *t = arg;

	current = t;
	pthread_mutex_lock(&t->dpa->lock);
	while (!t->quit) {
		if (t->is_due)
			activate(t);
		else
			pthread_cond_wait(&t->wake, &t->dpa->lock);
	}
	pthread_mutex_unlock(&t->dpa->lock);
	return NULL;
}

doca_error_t doca_dpa_thread_start(struct doca_dpa_thread *dpa_thread)
{
	if (!dpa_thread)
		return DOCA_ERROR_INVALID_VALUE;
	if (dpa_thread->started || !dpa_thread->func || !dpa_thread->dpa->started)
		return DOCA_ERROR_BAD_STATE;
	dpa_thread->quit = dpa_thread->is_due = dpa_thread->finished = false;
	if (pthread_create(&dpa_thread->thread, NULL, run_thread, dpa_thread))
		return DOCA_ERROR_OPERATING_SYSTEM;
	dpa_thread->started = true;
	return DOCA_SUCCESS;
}

doca_error_t doca_dpa_thread_stop(struct doca_dpa_thread *dpa_thread)
{
	if (!dpa_thread)
		return DOCA_ERROR_INVALID_VALUE;
	if (!dpa_thread->started)
		return DOCA_ERROR_BAD_STATE;
	if (current == dpa_thread)
		return DOCA_ERROR_NOT_PERMITTED;
	pthread_mutex_lock(&dpa_thread->dpa->lock);
	dpa_thread->quit = true;
	pthread_cond_signal(&dpa_thread->wake);
	pthread_cond_broadcast(&dpa_thread->dpa->changed);
	pthread_mutex_unlock(&dpa_thread->dpa->lock);
	pthread_join(dpa_thread->thread, NULL);
	dpa_thread->started = false;
	return DOCA_SUCCESS;
}

doca_error_t doca_dpa_thread_run(struct doca_dpa_thread *dpa_thread)
{
	if (!dpa_thread)
		return DOCA_ERROR_INVALID_VALUE;
	if (!dpa_thread->started)
		return DOCA_ERROR_BAD_STATE;
	pthread_mutex_lock(&dpa_thread->dpa->lock);
	dpa_thread->is_due = true;
	pthread_cond_signal(&dpa_thread->wake);
	pthread_mutex_unlock(&dpa_thread->dpa->lock);
	return DOCA_SUCCESS;
}

bool gd_dpa_must_quit(void)
{
	return !current || current->quit;
}

void doca_dpa_dev_thread_reschedule(void)
{
	if (current)
		longjmp(current->end, 1);
}

void doca_dpa_dev_thread_finish(void)
{
	if (!current)
		return;
	pthread_mutex_lock(&current->dpa->lock);
	current->finished = true;
	pthread_mutex_unlock(&current->dpa->lock);
	longjmp(current->end, 1);
}

/* -- completions -- */

doca_error_t doca_dpa_completion_create(struct doca_dpa *dpa, unsigned int queue_size,
					struct doca_dpa_completion **dpa_comp)
{
	struct doca_dpa_completion *comp;

	if (!dpa || !dpa_comp || queue_size == 0 || queue_size > MAX_COMPLETIONS)
		return DOCA_ERROR_INVALID_VALUE;
	comp = calloc(1, sizeof(*comp));
	if (!comp)
		return DOCA_ERROR_NO_MEMORY;
	comp->sent = calloc(queue_size, sizeof(*comp->sent));
	if (!comp->sent) {
		free(comp);
		return DOCA_ERROR_NO_MEMORY;
	}
	comp->done.size = queue_size;
	comp->done.dpa = dpa;
	dpa->refs++;
	*dpa_comp = comp;
	return DOCA_SUCCESS;
}

static struct gd_done *done_of(struct doca_dpa_completion *comp)
{
	return comp ? &comp->done : NULL;
}

doca_error_t doca_dpa_completion_destroy(struct doca_dpa_completion *dpa_comp)
{
	const doca_error_t result = gd_done_fini(done_of(dpa_comp));

	if (result != DOCA_SUCCESS)
		return result;
	dpa_comp->done.dpa->refs--;
	free(dpa_comp->sent);
	free(dpa_comp);
	return DOCA_SUCCESS;
}

doca_error_t doca_dpa_completion_set_thread(struct doca_dpa_completion *dpa_comp,
					    struct doca_dpa_thread *thread)
{
	return gd_done_set_thread(done_of(dpa_comp), thread);
}

doca_error_t doca_dpa_completion_start(struct doca_dpa_completion *dpa_comp)
{
	const doca_error_t result = gd_done_may_set(done_of(dpa_comp), true);

	if (result == DOCA_SUCCESS)
		gd_done_start(&dpa_comp->done, dpa_comp->done.size);
	return result;
}

doca_error_t doca_dpa_completion_stop(struct doca_dpa_completion *dpa_comp)
{
	return gd_done_stop(done_of(dpa_comp));
}

doca_error_t doca_dpa_completion_get_dpa_handle(struct doca_dpa_completion *dpa_comp,
						doca_dpa_dev_completion_t *handle)
{
	return gd_done_handle(done_of(dpa_comp), handle);
}

int doca_dpa_dev_get_completion(doca_dpa_dev_completion_t dpa_comp_handle,
				doca_dpa_dev_completion_element_t *comp_element)
{
	const struct doca_dpa_completion *comp = (void *)(uintptr_t)dpa_comp_handle;
	struct gd_dpa_sent *sent;
	uint32_t place;

	if (!comp_element || !gd_done_next(dpa_comp_handle, &place))
		return 0;
	sent = &comp->sent[place];
	pthread_mutex_lock(&comp->done.dpa->lock);
	if (sent->producer)
		sent->producer->n_open--;
	sent->producer = NULL;
	pthread_mutex_unlock(&comp->done.dpa->lock);
	*comp_element = (uintptr_t)sent;
	return 1;
}

uint32_t doca_dpa_dev_get_completion_user_data(doca_dpa_dev_completion_element_t comp_element)
{
	const struct gd_dpa_sent *sent = (void *)(uintptr_t)comp_element;

	return sent ? sent->user_data : 0;
}

void doca_dpa_dev_completion_ack(doca_dpa_dev_completion_t dpa_comp_handle, uint64_t num_comp)
{
	gd_done_ack(dpa_comp_handle, num_comp);
}

void doca_dpa_dev_completion_request_notification(doca_dpa_dev_completion_t dpa_comp_handle)
{
	gd_done_arm(dpa_comp_handle);
}
