/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress engines: one event per call, fairness, waiting, and the cost of an idle engine. */
#include <poll.h>

#include <unistd.h>

#include "fake_ctx.h"
#include "engine/pe.h"
#include "unity.h"

static struct doca_pe *pe;
static int n_done;
static struct fake *turns[64];
static int fd;

static void on_done(struct doca_task *task, union doca_data task_user_data,
		    union doca_data ctx_user_data)
{
	(void)task_user_data;
	if (n_done < 64)
		turns[n_done] = ctx_user_data.ptr;
	n_done++;
	doca_task_free(task);
}

/* Create a running context whose user data points to itself. */
static struct fake *running(uint32_t n_tasks)
{
	struct fake *fake = fake_create(pe, n_tasks, on_done, on_done);

	doca_ctx_set_user_data(&fake->ctx, (union doca_data){.ptr = fake});
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_start(&fake->ctx));
	return fake;
}

static void gone(struct fake *fake)
{
	doca_ctx_stop(&fake->ctx);
	while (doca_pe_progress(pe))
		;
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, fake_destroy(fake));
}

static bool is_readable(void)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	return poll(&pfd, 1, 0) == 1;
}

void setUp(void)
{
	n_done = 0;
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_create(&pe));
	/* before the engine has any context */
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_get_notification_handle(pe, &fd));
}

void tearDown(void)
{
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_destroy(pe));
}

static int n_run, run_order[8];
struct numbered {
	struct gd_event event;
	int number;
	bool again;
};

static void run_numbered(struct gd_event *event)
{
	struct numbered *numbered = (struct numbered *)event;

	if (n_run < 8)
		run_order[n_run] = numbered->number;
	n_run++;
	if (numbered->again) {
		numbered->again = false;
		gd_pe_post(pe, event);
	}
}

/* MUST: at most one event per call, 1 for real progress, 0 otherwise. */
static void test_one_event_per_progress(void)
{
	struct fake *fake = running(2);
	struct numbered event = {.event.run = run_numbered};

	n_run = 0;
	TEST_ASSERT_EQUAL_UINT8(0, doca_pe_progress(pe));
	doca_task_submit(fake_task(fake, 0));
	doca_task_submit(fake_task(fake, 0));
	gd_pe_post(pe, &event.event);
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_INT(1, n_run + n_done);
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_INT(2, n_run + n_done);
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_INT(3, n_run + n_done);
	TEST_ASSERT_EQUAL_UINT8(0, doca_pe_progress(pe));
	gone(fake);
}

static void test_events_run_in_the_order_of_posting(void)
{
	struct numbered events[5] = {0};
	int i;

	n_run = 0;
	for (i = 0; i < 5; i++) {
		events[i] =
			(struct numbered){.event.run = run_numbered, .number = i, .again = i == 0};
		if (i == 3)
			gd_pe_post_own(pe, &events[i].event);
		else
			gd_pe_post(pe, &events[i].event);
	}
	for (i = 0; i < 6; i++)
		TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	for (i = 0; i < 6; i++)
		TEST_ASSERT_EQUAL_INT(i % 5, run_order[i]);
}

static void test_withdrawn_event_does_not_run(void)
{
	struct numbered events[3] = {0};
	int i;

	n_run = 0;
	for (i = 0; i < 3; i++) {
		events[i] = (struct numbered){.event.run = run_numbered, .number = i};
		gd_pe_post(pe, &events[i].event);
	}
	TEST_ASSERT_TRUE(gd_pe_withdraw(pe, &events[2].event));
	TEST_ASSERT_FALSE(gd_pe_withdraw(pe, &events[2].event));
	gd_pe_post(pe, &events[2].event);
	TEST_ASSERT_TRUE(gd_pe_withdraw(pe, &events[0].event));
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_INT(1, run_order[0]);
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_INT(2, run_order[1]);
	TEST_ASSERT_FALSE(gd_pe_withdraw(pe, &events[1].event));
	TEST_ASSERT_EQUAL_UINT8(0, doca_pe_progress(pe));
}

static void test_contexts_take_turns(void)
{
	struct fake *fakes[3];
	int i, j;

	for (i = 0; i < 3; i++) {
		fakes[i] = running(8);
		for (j = 0; j < 8; j++)
			doca_task_submit(fake_task(fakes[i], 0));
	}
	for (i = 0; i < 24; i++)
		TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_INT(24, n_done);
	for (i = 3; i < 24; i++)
		TEST_ASSERT_EQUAL_PTR(turns[i - 3], turns[i]);
	for (i = 0; i < 3; i++)
		gone(fakes[i]);
}

static void post_again(struct gd_event *event)
{
	gd_pe_post_own(pe, event);
}

/* Neither endless events nor a busy context starve other contexts. */
static void test_events_do_not_starve_contexts(void)
{
	struct gd_event endless = {.run = post_again};
	struct fake *fake = running(1);
	int i;

	gd_pe_post(pe, &endless);
	doca_task_submit(fake_task(fake, 0));
	for (i = 0; i < 100; i++)
		TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_INT(1, n_done);
	gd_pe_withdraw(pe, &endless);
	gone(fake);
}

static void test_idle_contexts_are_not_polled(void)
{
	struct fake *fake = fake_create(pe, 0, NULL, NULL);

	doca_pe_progress(pe);
	TEST_ASSERT_EQUAL_INT(0, fake->n_polls);
	gone(fake);
}

static void test_connect_once_and_only_when_idle(void)
{
	struct fake *fake = fake_create(NULL, 0, NULL, NULL);
	struct doca_pe *other;

	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_pe_connect_ctx(NULL, &fake->ctx));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_pe_connect_ctx(pe, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_create(&other));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_connect_ctx(pe, &fake->ctx));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_PERMITTED, doca_pe_connect_ctx(pe, &fake->ctx));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_PERMITTED, doca_pe_connect_ctx(other, &fake->ctx));
	doca_ctx_start(&fake->ctx);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_pe_connect_ctx(other, &fake->ctx));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_destroy(other));
	gone(fake);
}

/*
 * MUST: an engine with a context cannot be destroyed; destroying the context disconnects it from
 * the engine.
 */
static void test_destroy_is_in_use_until_all_contexts_are_destroyed(void)
{
	struct fake *a = running(0), *b = running(0), *c = running(0);

	gone(b);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_USE, doca_pe_destroy(pe));
	doca_ctx_stop(&a->ctx);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_USE, doca_pe_destroy(pe));
	gone(a);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_USE, doca_pe_destroy(pe));
	gone(c);
	b = running(0);
	gone(b);
}

/* -- waiting -- */

/* MUST: if work is pending, arming makes the handle readable before it returns. */
static void test_request_with_work_to_poll_is_readable_at_once(void)
{
	struct fake *fake = running(2);

	doca_task_submit(fake_task(fake, 0));
	TEST_ASSERT_FALSE(is_readable());
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_request_notification(pe));
	TEST_ASSERT_TRUE(is_readable());
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_clear_notification(pe, 0));
	TEST_ASSERT_FALSE(is_readable());
	while (doca_pe_progress(pe))
		;
	TEST_ASSERT_EQUAL_INT(1, n_done);
	doca_pe_request_notification(pe);
	TEST_ASSERT_FALSE(is_readable());
	gone(fake);
}

static void test_request_with_an_event_pending_is_readable_at_once(void)
{
	struct numbered a = {.event.run = run_numbered}, b = a;

	gd_pe_post(pe, &a.event);
	gd_pe_post_own(pe, &b.event);
	doca_pe_request_notification(pe);
	TEST_ASSERT_TRUE(is_readable());
	doca_pe_clear_notification(pe, fd);
	doca_pe_progress(pe);
	doca_pe_request_notification(pe); /* one event is left */
	TEST_ASSERT_TRUE(is_readable());
	doca_pe_clear_notification(pe, fd);
	doca_pe_progress(pe);
}

static void test_event_after_the_request_signals_the_handle(void)
{
	struct numbered event = {.event.run = run_numbered};
	struct fake *fake = running(1);

	doca_pe_request_notification(pe);
	TEST_ASSERT_FALSE(is_readable());
	gd_pe_post(pe, &event.event);
	TEST_ASSERT_TRUE(is_readable());
	doca_pe_clear_notification(pe, 0);
	while (doca_pe_progress(pe))
		;
	doca_pe_request_notification(pe);
	doca_task_submit(fake_task(fake, 0));
	TEST_ASSERT_TRUE(is_readable());
	doca_pe_clear_notification(pe, 0);
	gone(fake);
}

/* Comch has no notifications: an engine that has only such contexts cannot be armed. */
static void test_silent_contexts_alone_cannot_be_armed(void)
{
	struct fake *fake = running(1), *other;
	struct gd_ctx_ops silent = *fake->ctx.ops;

	silent.is_silent = true;
	fake->ctx.ops = &silent;
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_SUPPORTED, doca_pe_request_notification(pe));
	TEST_ASSERT_FALSE(is_readable());
	other = running(1);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_request_notification(pe));
	gone(fake);
	gone(other);
}

/* Beside another context, the work of a silent one does not wake the program. */
static void test_silent_work_does_not_signal_the_handle(void)
{
	struct numbered event = {.event = {.run = run_numbered, .is_silent = true}}, own = event,
			loud = {.event.run = run_numbered};
	struct fake *fake = running(1), *other = running(1);
	struct gd_ctx_ops silent = *fake->ctx.ops;

	silent.is_silent = true;
	fake->ctx.ops = &silent;
	n_run = 0;
	doca_task_submit(fake_task(fake, 0));
	gd_pe_post(pe, &event.event);
	doca_pe_request_notification(pe);
	TEST_ASSERT_FALSE(is_readable());
	gd_pe_post_own(pe, &own.event);
	TEST_ASSERT_FALSE(is_readable());
	gd_pe_post(pe, &loud.event);
	TEST_ASSERT_TRUE(is_readable());
	doca_pe_clear_notification(pe, 0);
	while (doca_pe_progress(pe))
		;
	TEST_ASSERT_EQUAL_INT(3, n_run);
	doca_pe_request_notification(pe);
	doca_task_submit(fake_task(other, 0));
	TEST_ASSERT_TRUE(is_readable());
	doca_pe_clear_notification(pe, 0);
	gone(fake);
	gone(other);
}

static void test_nothing_is_signalled_without_request(void)
{
	struct numbered event = {.event.run = run_numbered};

	gd_pe_post(pe, &event.event);
	TEST_ASSERT_FALSE(is_readable());
	doca_pe_progress(pe);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_clear_notification(pe, 0));
}

static void test_mode_all_needs_no_clear(void)
{
	struct numbered event = {.event.run = run_numbered};

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_pe_set_event_mode(pe, DOCA_PE_EVENT_MODE_PROGRESS_ALL));
	doca_pe_request_notification(pe);
	gd_pe_post(pe, &event.event);
	TEST_ASSERT_TRUE(is_readable());
	doca_pe_progress(pe);
	doca_pe_request_notification(pe);
	TEST_ASSERT_FALSE(is_readable());
}

static void test_handle_is_stable(void)
{
	doca_notification_handle_t again;

	doca_pe_get_notification_handle(pe, &again);
	TEST_ASSERT_EQUAL_INT(fd, again);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_SUPPORTED,
			      doca_pe_set_notification_handle(pe, fd, (union doca_data){.u64 = 0}));
}

/*
 * Only a context that DPA code can use accepts a datapath on the DPA, and only before start. It
 * then needs no engine.
 */
static void test_path_of_data_on_a_dpa(void)
{
	struct fake *fake = fake_create(pe, 1, on_done, on_done);
	struct gd_ctx_ops on_dpa = *fake->ctx.ops;
	struct doca_dpa *dpa = (struct doca_dpa *)&on_dpa;

	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_SUPPORTED,
			      doca_ctx_set_datapath_on_dpa(&fake->ctx, dpa));
	on_dpa.on_dpa = true;
	fake->ctx.ops = &on_dpa;
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_ctx_set_datapath_on_dpa(&fake->ctx, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_set_datapath_on_dpa(&fake->ctx, dpa));
	doca_ctx_start(&fake->ctx);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_ctx_set_datapath_on_dpa(&fake->ctx, dpa));
	gone(fake);
}

/* No function creates a batch; calls with any pointer return an error. */
static void test_there_are_no_batches(void)
{
	struct doca_task_batch *batch = (struct doca_task_batch *)turns;

	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_SUPPORTED, doca_task_batch_submit(batch));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_SUPPORTED, doca_task_batch_try_submit(batch));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_SUPPORTED, doca_task_batch_get_status(batch));
	TEST_ASSERT_EQUAL_UINT16(0, doca_task_batch_get_tasks_num(batch));
	TEST_ASSERT_NULL(doca_task_batch_get_ctx(batch));
	doca_task_batch_free(batch);
}

/* The library owns the handle. If a program closes it, the next use of it returns an error. */
static void test_a_handle_that_was_closed(void)
{
	struct doca_pe *other;
	int handle;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_create(&other));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_get_notification_handle(other, &handle));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_clear_notification(other, handle));
	close(handle);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_OPERATING_SYSTEM,
			      doca_pe_clear_notification(other, handle));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_destroy(other));
}

static void test_missing_arguments(void)
{
	size_t n;

	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_pe_create(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_pe_destroy(NULL));
	TEST_ASSERT_EQUAL_UINT8(0, doca_pe_progress(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_pe_get_notification_handle(pe, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_pe_get_notification_handle(NULL, &fd));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_pe_clear_notification(NULL, 0));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_pe_request_notification(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_pe_set_event_mode(NULL, DOCA_PE_EVENT_MODE_PROGRESS_ALL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_pe_set_event_mode(pe, (enum doca_pe_event_mode)7));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_pe_get_num_inflight_tasks(pe, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_pe_get_num_inflight_tasks(NULL, &n));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_one_event_per_progress);
	RUN_TEST(test_events_run_in_the_order_of_posting);
	RUN_TEST(test_withdrawn_event_does_not_run);
	RUN_TEST(test_contexts_take_turns);
	RUN_TEST(test_events_do_not_starve_contexts);
	RUN_TEST(test_idle_contexts_are_not_polled);
	RUN_TEST(test_connect_once_and_only_when_idle);
	RUN_TEST(test_destroy_is_in_use_until_all_contexts_are_destroyed);
	RUN_TEST(test_request_with_work_to_poll_is_readable_at_once);
	RUN_TEST(test_request_with_an_event_pending_is_readable_at_once);
	RUN_TEST(test_event_after_the_request_signals_the_handle);
	RUN_TEST(test_silent_contexts_alone_cannot_be_armed);
	RUN_TEST(test_silent_work_does_not_signal_the_handle);
	RUN_TEST(test_nothing_is_signalled_without_request);
	RUN_TEST(test_mode_all_needs_no_clear);
	RUN_TEST(test_handle_is_stable);
	RUN_TEST(test_path_of_data_on_a_dpa);
	RUN_TEST(test_there_are_no_batches);
	RUN_TEST(test_a_handle_that_was_closed);
	RUN_TEST(test_missing_arguments);
	return UNITY_END();
}
