/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The states of a context, transition by transition, as the tables of the vendor's guide and the
 * rules of doca_ctx_start() and doca_ctx_stop() define them.
 */
#include <stdio.h>
#include <string.h>

#include "fake_ctx.h"
#include "unity.h"

static struct doca_pe *pe;
static struct fake *fake;
static char seen[512]; /* "01 12 ": previous and next state of every callback */
static bool stop_when_running, destroy_when_idle, free_when_stopping;
static struct doca_task *kept;
static int n_done, n_error;
static doca_error_t last_status;

static void on_state(const union doca_data user_data, struct doca_ctx *ctx,
		     enum doca_ctx_states prev, enum doca_ctx_states next)
{
	const size_t used = strlen(seen);

	TEST_ASSERT_EQUAL_UINT64(77, user_data.u64);
	snprintf(seen + used, sizeof(seen) - used, "%d%d ", prev, next);
	if (next == DOCA_CTX_STATE_RUNNING && stop_when_running)
		TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_stop(ctx));
	else if (next == DOCA_CTX_STATE_STOPPING && free_when_stopping)
		doca_task_free(kept);
	else if (next == DOCA_CTX_STATE_IDLE && destroy_when_idle) {
		TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, fake_destroy(fake));
		fake = NULL;
	}
}

static void on_done(struct doca_task *task, union doca_data task_user_data,
		    union doca_data ctx_user_data)
{
	(void)task_user_data;
	TEST_ASSERT_EQUAL_UINT64(77, ctx_user_data.u64);
	n_done++;
	last_status = doca_task_get_status(task);
	doca_task_free(task);
}

static void on_error(struct doca_task *task, union doca_data task_user_data,
		     union doca_data ctx_user_data)
{
	on_done(task, task_user_data, ctx_user_data);
	n_done--;
	n_error++;
}

static enum doca_ctx_states state(void)
{
	enum doca_ctx_states now;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_get_state(&fake->ctx, &now));
	return now;
}

void setUp(void)
{
	seen[0] = '\0';
	stop_when_running = destroy_when_idle = free_when_stopping = false;
	kept = NULL;
	n_done = n_error = 0;
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_create(&pe));
	fake = fake_create(pe, 4, on_done, on_error);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_ctx_set_user_data(&fake->ctx, (union doca_data){.u64 = 77}));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_set_state_changed_cb(&fake->ctx, on_state));
}

void tearDown(void)
{
	if (fake)
		TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, fake_destroy(fake));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_destroy(pe));
}

static void test_created_is_idle(void)
{
	TEST_ASSERT_EQUAL_INT(DOCA_CTX_STATE_IDLE, state());
	TEST_ASSERT_EQUAL_STRING("", seen);
}

static void test_idle_to_running_inside_start(void)
{
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_start(&fake->ctx));
	TEST_ASSERT_EQUAL_INT(DOCA_CTX_STATE_RUNNING, state());
	TEST_ASSERT_EQUAL_STRING("02 ", seen);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_stop(&fake->ctx));
}

/* MUST: start of a client returns exactly IN_PROGRESS, and RUNNING is not reached inside it. */
static void test_idle_to_starting_to_running_by_progress(void)
{
	fake->start_result = DOCA_ERROR_IN_PROGRESS;
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_PROGRESS, doca_ctx_start(&fake->ctx));
	TEST_ASSERT_EQUAL_STRING("01 ", seen);
	TEST_ASSERT_EQUAL_UINT8(0, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_INT(DOCA_CTX_STATE_STARTING, state());
	fake->starts_in_poll = true;
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe)); /* makes one state transition */
	TEST_ASSERT_EQUAL_STRING("01 12 ", seen);
	TEST_ASSERT_EQUAL_UINT8(0, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_stop(&fake->ctx));
	TEST_ASSERT_EQUAL_STRING("01 12 20 ", seen);
}

static void run_started(struct gd_event *event)
{
	(void)event;
	gd_ctx_started(&fake->ctx);
}

static void run_stopped(struct gd_event *event)
{
	(void)event;
	gd_ctx_stopped(&fake->ctx);
}

static void run_fail(struct gd_event *event)
{
	(void)event;
	gd_ctx_fail(&fake->ctx);
}

static void test_starting_to_running_by_an_event(void)
{
	struct gd_event event = {.run = run_started};

	fake->start_result = DOCA_ERROR_IN_PROGRESS;
	doca_ctx_start(&fake->ctx);
	gd_pe_post(pe, &event);
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_STRING("01 12 ", seen);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_stop(&fake->ctx));
}

static void test_starting_to_idle_when_the_start_fails(void)
{
	struct gd_event event = {.run = run_stopped};

	fake->start_result = DOCA_ERROR_IN_PROGRESS;
	doca_ctx_start(&fake->ctx);
	gd_pe_post(pe, &event);
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_STRING("01 10 ", seen);
	TEST_ASSERT_EQUAL_INT(0, fake->n_stops);
}

static void test_starting_to_idle_by_stop(void)
{
	fake->start_result = DOCA_ERROR_IN_PROGRESS;
	doca_ctx_start(&fake->ctx);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_stop(&fake->ctx));
	TEST_ASSERT_EQUAL_STRING("01 10 ", seen);
	TEST_ASSERT_EQUAL_INT(1, fake->n_stops);
}

static void test_starting_to_stopping_to_idle_by_stop(void)
{
	fake->start_result = DOCA_ERROR_IN_PROGRESS;
	fake->stop_result = DOCA_ERROR_IN_PROGRESS;
	doca_ctx_start(&fake->ctx);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(&fake->ctx));
	TEST_ASSERT_EQUAL_STRING("01 13 ", seen);
	fake->stops_in_poll = true;
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_STRING("01 13 30 ", seen);
}

static void test_start_that_fails_at_once_stays_idle(void)
{
	fake->start_result = DOCA_ERROR_INITIALIZATION;
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INITIALIZATION, doca_ctx_start(&fake->ctx));
	TEST_ASSERT_EQUAL_STRING("", seen);
	TEST_ASSERT_EQUAL_INT(DOCA_CTX_STATE_IDLE, state());
}

static void test_start_without_engine_is_not_connected(void)
{
	struct fake *alone = fake_create(NULL, 0, NULL, NULL);

	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_CONNECTED, doca_ctx_start(&alone->ctx));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, fake_destroy(alone));
}

static void test_start_twice_is_bad_state(void)
{
	doca_ctx_start(&fake->ctx);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_ctx_start(&fake->ctx));
	TEST_ASSERT_EQUAL_INT(1, fake->n_starts);
	doca_ctx_stop(&fake->ctx);
}

static void test_running_to_idle_inside_stop_when_nothing_is_outstanding(void)
{
	doca_ctx_start(&fake->ctx);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_stop(&fake->ctx));
	TEST_ASSERT_EQUAL_STRING("02 20 ", seen);
	TEST_ASSERT_EQUAL_UINT8(0, doca_pe_progress(pe));
}

/* MUST: doca_ctx_stop on an IDLE context returns SUCCESS. */
static void test_stop_of_an_idle_context_is_success(void)
{
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_stop(&fake->ctx));
	doca_ctx_start(&fake->ctx);
	doca_ctx_stop(&fake->ctx);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_stop(&fake->ctx));
	TEST_ASSERT_EQUAL_STRING("02 20 ", seen);
}

/* Progress flushes tasks in flight, then reports prev = STOPPING, next = IDLE exactly once. */
static void test_running_to_stopping_to_idle_with_tasks_in_flight(void)
{
	doca_ctx_start(&fake->ctx);
	doca_task_submit(fake_task(fake, 1));
	doca_task_submit(fake_task(fake, 2));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(&fake->ctx));
	TEST_ASSERT_EQUAL_STRING("02 23 ", seen);
	TEST_ASSERT_EQUAL_INT(0, n_error);
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_INT(1, n_error);
	TEST_ASSERT_NOT_EQUAL(DOCA_SUCCESS, last_status);
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_STRING("02 23 30 ", seen);
	TEST_ASSERT_EQUAL_INT(2, n_error);
	TEST_ASSERT_EQUAL_INT(0, n_done);
	TEST_ASSERT_EQUAL_UINT8(0, doca_pe_progress(pe));
}

static void test_stopping_waits_for_tasks_that_are_not_freed(void)
{
	doca_ctx_start(&fake->ctx);
	kept = fake_task(fake, 1);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(&fake->ctx));
	TEST_ASSERT_EQUAL_UINT8(0, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_INT(DOCA_CTX_STATE_STOPPING, state());
	doca_task_free(kept);
	TEST_ASSERT_EQUAL_STRING("02 23 ", seen); /* free calls no callback */
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_STRING("02 23 30 ", seen);
}

static void test_stopping_waits_for_the_library(void)
{
	fake->stop_result = DOCA_ERROR_IN_PROGRESS;
	doca_ctx_start(&fake->ctx);
	doca_task_submit(fake_task(fake, 1));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(&fake->ctx));
	while (doca_pe_progress(pe))
		;
	TEST_ASSERT_EQUAL_INT(1, n_error);
	TEST_ASSERT_EQUAL_STRING("02 23 ", seen);
	fake->stops_in_poll = true;
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_STRING("02 23 30 ", seen);
}

static void test_library_is_over_before_the_tasks_are(void)
{
	fake->stop_result = DOCA_ERROR_IN_PROGRESS;
	doca_ctx_start(&fake->ctx);
	kept = fake_task(fake, 1);
	doca_ctx_stop(&fake->ctx);
	fake->stops_in_poll = true;
	doca_pe_progress(pe);
	TEST_ASSERT_EQUAL_STRING("02 23 ", seen);
	doca_task_free(kept);
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_STRING("02 23 30 ", seen);
}

static void test_stop_again_in_stopping_is_in_progress(void)
{
	doca_ctx_start(&fake->ctx);
	kept = fake_task(fake, 1);
	doca_ctx_stop(&fake->ctx);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(&fake->ctx));
	TEST_ASSERT_EQUAL_INT(1, fake->n_stops);
	TEST_ASSERT_EQUAL_STRING("02 23 ", seen);
	doca_task_free(kept);
	doca_pe_progress(pe);
}

/* The vendor's guide permits to allocate and submit tasks in STOPPING. They are flushed. */
static void test_stopping_takes_and_flushes_new_tasks(void)
{
	doca_ctx_start(&fake->ctx);
	kept = fake_task(fake, 1);
	doca_ctx_stop(&fake->ctx);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_task_submit(fake_task(fake, 2)));
	TEST_ASSERT_EQUAL_INT(0, n_error);
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_INT(1, n_error);
	doca_task_free(kept);
	kept = fake_task(fake, 3); /* allocated while the transition to IDLE was pending */
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_INT(DOCA_CTX_STATE_STOPPING, state());
	doca_task_free(kept);
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_STRING("02 23 30 ", seen);
}

static void test_refused_stop_changes_nothing(void)
{
	fake->stop_result = DOCA_ERROR_IN_USE;
	doca_ctx_start(&fake->ctx);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_USE, doca_ctx_stop(&fake->ctx));
	TEST_ASSERT_EQUAL_INT(DOCA_CTX_STATE_RUNNING, state());
	TEST_ASSERT_EQUAL_STRING("02 ", seen);
	fake->stop_result = DOCA_SUCCESS;
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_stop(&fake->ctx));
}

/*
 * MUST: a failed task moves the context to STOPPING without a call of stop. Other tasks are
 * flushed, then the context is IDLE.
 */
static void test_failed_task_stops_the_context(void)
{
	fake->fails = true;
	fake->task_result = DOCA_ERROR_IO_FAILED;
	doca_ctx_start(&fake->ctx);
	doca_task_submit(fake_task(fake, 1));
	doca_task_submit(fake_task(fake, 2));
	doca_task_submit(fake_task(fake, 3));
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_STRING("02 23 ", seen);
	TEST_ASSERT_EQUAL_INT(0, n_error);
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_INT(1, n_error);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IO_FAILED, last_status);
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_INT(3, n_error);
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_STRING("02 23 30 ", seen);
	TEST_ASSERT_EQUAL_UINT8(0, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_INT(1, fake->n_stops);
}

/* Callbacks never run inside submit, not even for a failure that submit detects. */
static void test_task_that_fails_in_submit_stops_later(void)
{
	fake->fails = true;
	fake->ends_in_submit = true;
	fake->task_result = DOCA_ERROR_IO_FAILED;
	doca_ctx_start(&fake->ctx);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_task_submit(fake_task(fake, 1)));
	TEST_ASSERT_EQUAL_STRING("02 ", seen);
	TEST_ASSERT_EQUAL_INT(0, n_error);
	while (doca_pe_progress(pe))
		;
	TEST_ASSERT_EQUAL_STRING("02 23 30 ", seen);
	TEST_ASSERT_EQUAL_INT(1, n_error);
}

static void test_program_stops_before_the_failure_is_delivered(void)
{
	fake->fails = true;
	fake->ends_in_submit = true;
	fake->task_result = DOCA_ERROR_IO_FAILED;
	doca_ctx_start(&fake->ctx);
	doca_task_submit(fake_task(fake, 1));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(&fake->ctx));
	/* calls back for the task; stop has cancelled the transition that the failure had posted */
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_INT(1, n_error);
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_STRING("02 23 30 ", seen);
	TEST_ASSERT_EQUAL_UINT8(0, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_INT(1, fake->n_stops);
}

static void test_destroyed_while_a_change_was_on_its_way(void)
{
	struct gd_event event = {.run = run_stopped};

	doca_ctx_start(&fake->ctx);
	kept = fake_task(fake, 1);
	doca_ctx_stop(&fake->ctx);
	gd_pe_post(pe, &event);
	doca_task_free(kept); /* idle at the next progress */
	destroy_when_idle = true;
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_NULL(fake);
	TEST_ASSERT_EQUAL_UINT8(0, doca_pe_progress(pe));
}

static void test_failure_with_nothing_outstanding_reaches_idle(void)
{
	struct gd_event event = {.run = run_fail};

	doca_ctx_start(&fake->ctx);
	gd_pe_post(pe, &event);
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_STRING("02 23 ", seen);
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_STRING("02 23 30 ", seen);
	TEST_ASSERT_EQUAL_UINT8(0, doca_pe_progress(pe));
}

static void test_failure_cannot_be_refused(void)
{
	struct gd_event failed = {.run = run_fail}, stopped = {.run = run_stopped};

	fake->stop_result = DOCA_ERROR_IN_USE;
	doca_ctx_start(&fake->ctx);
	gd_pe_post(pe, &failed);
	while (doca_pe_progress(pe))
		;
	TEST_ASSERT_EQUAL_STRING("02 23 ", seen);
	gd_pe_post(pe, &stopped);
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_STRING("02 23 30 ", seen);
}

/* The state callback can call stop; doca_ctx_start() returns SUCCESS nevertheless. */
static void test_stop_inside_the_running_callback(void)
{
	stop_when_running = true;
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_start(&fake->ctx));
	TEST_ASSERT_EQUAL_STRING("02 20 ", seen);
}

static void test_stop_and_destroy_inside_start(void)
{
	stop_when_running = true;
	destroy_when_idle = true;
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_start(&fake->ctx));
	TEST_ASSERT_NULL(fake);
}

static void test_destroy_inside_the_idle_callback_of_stop(void)
{
	doca_ctx_start(&fake->ctx);
	destroy_when_idle = true;
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_stop(&fake->ctx));
	TEST_ASSERT_NULL(fake);
	TEST_ASSERT_EQUAL_UINT8(0, doca_pe_progress(pe));
}

static void test_destroy_inside_the_idle_callback_of_progress(void)
{
	doca_ctx_start(&fake->ctx);
	doca_task_submit(fake_task(fake, 1));
	doca_ctx_stop(&fake->ctx);
	destroy_when_idle = true;
	while (doca_pe_progress(pe))
		;
	TEST_ASSERT_NULL(fake);
}

static void stop_in_callback(struct doca_task *task, union doca_data task_user_data,
			     union doca_data ctx_user_data)
{
	struct doca_ctx *ctx = doca_task_get_ctx(task);

	(void)task_user_data;
	(void)ctx_user_data;
	n_done++;
	doca_task_free(task);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_stop(ctx));
}

/*
 * MUST: progress calls a completion callback, which calls stop, which calls the IDLE callback,
 * which destroys the context. The library does not use the context afterwards.
 */
static void test_destroy_nested_in_stop_in_completion_in_progress(void)
{
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, gd_pool_conf(&fake->pool, stop_in_callback, on_error, 1,
							 DOCA_ERROR_BAD_STATE));
	doca_ctx_start(&fake->ctx);
	doca_task_submit(fake_task(fake, 1));
	destroy_when_idle = true;
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_INT(1, n_done);
	TEST_ASSERT_NULL(fake);
	TEST_ASSERT_EQUAL_STRING("02 20 ", seen);
	TEST_ASSERT_EQUAL_UINT8(0, doca_pe_progress(pe));
}

static void test_last_task_freed_inside_the_stopping_callback(void)
{
	doca_ctx_start(&fake->ctx);
	kept = fake_task(fake, 1);
	free_when_stopping = true;
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(&fake->ctx));
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_STRING("02 23 30 ", seen);
}

static void test_idle_may_be_started_again(void)
{
	doca_ctx_start(&fake->ctx);
	doca_task_submit(fake_task(fake, 1));
	doca_ctx_stop(&fake->ctx);
	while (doca_pe_progress(pe))
		;
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_start(&fake->ctx));
	doca_task_submit(fake_task(fake, 2));
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_INT(1, n_done);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_stop(&fake->ctx));
	TEST_ASSERT_EQUAL_STRING("02 23 30 02 20 ", seen);
}

static void test_destroy_needs_idle(void)
{
	doca_ctx_start(&fake->ctx);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_USE, fake_destroy(fake));
	kept = fake_task(fake, 1);
	doca_ctx_stop(&fake->ctx);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_USE, fake_destroy(fake));
	doca_task_free(kept);
	doca_pe_progress(pe);
}

/* Configuration setters after start: the error that the library documents. */
static void test_configuration_ends_with_start(void)
{
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      gd_ctx_configurable(NULL, DOCA_ERROR_BAD_STATE));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, gd_ctx_configurable(&fake->ctx, DOCA_ERROR_BAD_STATE));
	doca_ctx_start(&fake->ctx);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE,
			      gd_ctx_configurable(&fake->ctx, DOCA_ERROR_BAD_STATE));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_PERMITTED, gd_pool_conf(&fake->pool, on_done, on_error,
								     1, DOCA_ERROR_NOT_PERMITTED));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_ctx_set_completion_vector(&fake->ctx, 0));
	doca_ctx_stop(&fake->ctx);
}

static void test_missing_arguments_are_invalid(void)
{
	union doca_data data;
	enum doca_ctx_states now;
	size_t n;

	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_ctx_start(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_ctx_stop(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_ctx_get_state(NULL, &now));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_ctx_get_state(&fake->ctx, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_ctx_get_num_inflight_tasks(NULL, &n));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_ctx_get_num_inflight_tasks(&fake->ctx, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_ctx_set_user_data(NULL, (union doca_data){.u64 = 0}));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_ctx_get_user_data(NULL, &data));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_ctx_get_user_data(&fake->ctx, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_ctx_set_state_changed_cb(NULL, on_state));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_ctx_set_state_changed_cb(&fake->ctx, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_ctx_set_completion_vector(NULL, 0));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_ctx_cap_get_num_completion_vectors(NULL, NULL));
	doca_ctx_flush_tasks(NULL);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_created_is_idle);
	RUN_TEST(test_idle_to_running_inside_start);
	RUN_TEST(test_idle_to_starting_to_running_by_progress);
	RUN_TEST(test_starting_to_running_by_an_event);
	RUN_TEST(test_starting_to_idle_when_the_start_fails);
	RUN_TEST(test_starting_to_idle_by_stop);
	RUN_TEST(test_starting_to_stopping_to_idle_by_stop);
	RUN_TEST(test_start_that_fails_at_once_stays_idle);
	RUN_TEST(test_start_without_engine_is_not_connected);
	RUN_TEST(test_start_twice_is_bad_state);
	RUN_TEST(test_running_to_idle_inside_stop_when_nothing_is_outstanding);
	RUN_TEST(test_stop_of_an_idle_context_is_success);
	RUN_TEST(test_running_to_stopping_to_idle_with_tasks_in_flight);
	RUN_TEST(test_stopping_waits_for_tasks_that_are_not_freed);
	RUN_TEST(test_stopping_waits_for_the_library);
	RUN_TEST(test_library_is_over_before_the_tasks_are);
	RUN_TEST(test_stop_again_in_stopping_is_in_progress);
	RUN_TEST(test_stopping_takes_and_flushes_new_tasks);
	RUN_TEST(test_refused_stop_changes_nothing);
	RUN_TEST(test_failed_task_stops_the_context);
	RUN_TEST(test_task_that_fails_in_submit_stops_later);
	RUN_TEST(test_program_stops_before_the_failure_is_delivered);
	RUN_TEST(test_destroyed_while_a_change_was_on_its_way);
	RUN_TEST(test_failure_with_nothing_outstanding_reaches_idle);
	RUN_TEST(test_failure_cannot_be_refused);
	RUN_TEST(test_stop_inside_the_running_callback);
	RUN_TEST(test_stop_and_destroy_inside_start);
	RUN_TEST(test_destroy_inside_the_idle_callback_of_stop);
	RUN_TEST(test_destroy_inside_the_idle_callback_of_progress);
	RUN_TEST(test_destroy_nested_in_stop_in_completion_in_progress);
	RUN_TEST(test_last_task_freed_inside_the_stopping_callback);
	RUN_TEST(test_idle_may_be_started_again);
	RUN_TEST(test_destroy_needs_idle);
	RUN_TEST(test_configuration_ends_with_start);
	RUN_TEST(test_missing_arguments_are_invalid);
	return UNITY_END();
}
