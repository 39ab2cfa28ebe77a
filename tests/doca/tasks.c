/* SPDX-License-Identifier: BSD-3-Clause */
/* Life of tasks: pools, submit, callbacks, resubmit, free at any time. */
#include <string.h>

#include "fake_ctx.h"
#include "unity.h"

static struct doca_pe *pe;
static struct fake *fake;
static int n_done, n_error, n_resubmits;
static bool frees, is_inside;
static struct doca_task *last, *to_free;
static uint64_t last_data, order[8];

static void note(struct doca_task *task, union doca_data task_user_data,
		 union doca_data ctx_user_data)
{
	TEST_ASSERT_EQUAL_UINT64(5, ctx_user_data.u64);
	last = task;
	last_data = task_user_data.u64;
	if (n_done + n_error < 8)
		order[n_done + n_error] = last_data;
	if (to_free)
		doca_task_free(to_free);
	to_free = NULL;
}

static void on_done(struct doca_task *task, union doca_data task_user_data,
		    union doca_data ctx_user_data)
{
	note(task, task_user_data, ctx_user_data);
	n_done++;
	if (n_resubmits > 0) {
		n_resubmits--;
		doca_task_set_user_data(task, (union doca_data){.u64 = task_user_data.u64 + 1});
		is_inside = true;
		TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_task_submit(task));
		is_inside = false;
	} else if (frees) {
		doca_task_free(task);
	}
}

static void on_error(struct doca_task *task, union doca_data task_user_data,
		     union doca_data ctx_user_data)
{
	note(task, task_user_data, ctx_user_data);
	n_error++;
	if (frees)
		doca_task_free(task);
}

static size_t inflight(void)
{
	size_t of_ctx, of_pe;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_get_num_inflight_tasks(&fake->ctx, &of_ctx));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_get_num_inflight_tasks(pe, &of_pe));
	TEST_ASSERT_EQUAL_size_t(of_ctx, of_pe);
	return of_ctx;
}

static void drain(void)
{
	while (doca_pe_progress(pe))
		;
}

void setUp(void)
{
	n_done = n_error = n_resubmits = 0;
	frees = true;
	last = to_free = NULL;
	memset(order, 0, sizeof(order));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_create(&pe));
	fake = fake_create(pe, 3, on_done, on_error);
	doca_ctx_set_user_data(&fake->ctx, (union doca_data){.u64 = 5});
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_start(&fake->ctx));
}

void tearDown(void)
{
	doca_ctx_stop(&fake->ctx);
	drain();
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, fake_destroy(fake));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_destroy(pe));
}

static void test_pool_has_as_many_tasks_as_configured(void)
{
	struct doca_task *tasks[3];
	int i;

	for (i = 0; i < 3; i++)
		TEST_ASSERT_NOT_NULL(tasks[i] = fake_task(fake, 0));
	TEST_ASSERT_NULL(fake_task(fake, 0));
	doca_task_free(tasks[1]);
	TEST_ASSERT_EQUAL_PTR(tasks[1], fake_task(fake, 0));
	for (i = 0; i < 3; i++)
		doca_task_free(tasks[i]);
}

static void test_bad_configurations_of_a_pool(void)
{
	struct fake *other = fake_create(pe, 0, NULL, NULL);

	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      gd_pool_conf(&other->pool, NULL, on_error, 1, DOCA_ERROR_BAD_STATE));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      gd_pool_conf(&other->pool, on_done, NULL, 1, DOCA_ERROR_BAD_STATE));
	TEST_ASSERT_EQUAL_INT(
		DOCA_ERROR_INVALID_VALUE,
		gd_pool_conf(&other->pool, on_done, on_error, 0, DOCA_ERROR_BAD_STATE));
	TEST_ASSERT_FALSE(other->pool.is_set);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, gd_pool_conf(&other->pool, on_done, on_error, 7,
							 DOCA_ERROR_BAD_STATE));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, gd_pool_conf(&other->pool, on_done, on_error, 1,
							 DOCA_ERROR_BAD_STATE));
	TEST_ASSERT_EQUAL_UINT32(1, other->pool.n);
	TEST_ASSERT_NULL(fake_task(other, 0)); /* an IDLE context gives out no task */
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, fake_destroy(other));
}

/* After submit returned SUCCESS, doca_pe_progress() runs exactly one callback; submit runs none. */
static void test_one_callback_from_progress(void)
{
	struct doca_task *task = fake_task(fake, 9);

	fake->ends_in_submit = true;
	TEST_ASSERT_EQUAL_size_t(0, inflight());
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_task_submit(task));
	TEST_ASSERT_EQUAL_INT(0, n_done);
	TEST_ASSERT_EQUAL_size_t(1, inflight());
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_INT(1, n_done);
	TEST_ASSERT_EQUAL_INT(0, n_error);
	TEST_ASSERT_EQUAL_UINT64(9, last_data);
	TEST_ASSERT_EQUAL_PTR(task, last);
	TEST_ASSERT_EQUAL_size_t(0, inflight());
	TEST_ASSERT_EQUAL_UINT8(0, doca_pe_progress(pe));
}

static void test_an_error_calls_the_other_callback_with_its_status(void)
{
	fake->task_result = DOCA_ERROR_IO_FAILED;
	doca_task_submit(fake_task(fake, 9));
	drain();
	TEST_ASSERT_EQUAL_INT(0, n_done);
	TEST_ASSERT_EQUAL_INT(1, n_error);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IO_FAILED, doca_task_get_status(last));
}

static void test_refused_submit_leaves_the_task_to_the_program(void)
{
	static const doca_error_t refusals[] = {DOCA_ERROR_AGAIN, DOCA_ERROR_NO_MEMORY};
	struct doca_task *task = fake_task(fake, 9);

	for (int i = 0; i < 2; i++) {
		fake->submit_result = refusals[i];
		TEST_ASSERT_EQUAL_INT(refusals[i], doca_task_submit(task));
		TEST_ASSERT_EQUAL_size_t(0, inflight());
	}
	drain();
	TEST_ASSERT_EQUAL_INT(0, n_done + n_error);
	fake->submit_result = DOCA_SUCCESS;
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_task_submit(task));
	drain();
	TEST_ASSERT_EQUAL_INT(1, n_done);
}

/* submit does not validate the task. try_submit does; after an error the program keeps the task. */
static void test_only_try_submit_asks_for_validity(void)
{
	struct doca_task *task = fake_task(fake, 9);

	fake->check_result = DOCA_ERROR_INVALID_VALUE;
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_task_try_submit(task));
	TEST_ASSERT_EQUAL_size_t(0, inflight());
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_task_submit(task));
	drain();
	TEST_ASSERT_EQUAL_INT(1, n_done);
	fake->check_result = DOCA_SUCCESS;
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_task_try_submit(fake_task(fake, 9)));
	drain();
	TEST_ASSERT_EQUAL_INT(2, n_done);
}

static void test_flags_of_submit(void)
{
	struct doca_task *task = fake_task(fake, 9);

	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_task_submit_ex(task, 8));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_task_submit_ex(task, DOCA_TASK_SUBMIT_FLAG_OPTIMIZE_REPORTS));
	doca_ctx_flush_tasks(&fake->ctx);
	drain();
	TEST_ASSERT_EQUAL_INT(1, n_done);
}

/*
 * A callback can submit its task again, with other user data; the next callback runs only after the
 * first has returned.
 */
static void test_resubmit_inside_the_callback(void)
{
	n_resubmits = 5;
	fake->ends_in_submit = true;
	doca_task_submit(fake_task(fake, 1));
	while (doca_pe_progress(pe))
		TEST_ASSERT_FALSE(is_inside);
	TEST_ASSERT_EQUAL_INT(6, n_done);
	TEST_ASSERT_EQUAL_UINT64(6, last_data);
}

static void test_task_may_be_kept_and_freed_later(void)
{
	frees = false;
	doca_task_submit(fake_task(fake, 1));
	drain();
	TEST_ASSERT_EQUAL_UINT64(1, doca_task_get_user_data(last).u64);
	TEST_ASSERT_EQUAL_PTR(&fake->ctx, doca_task_get_ctx(last));
	doca_task_free(last);
}

/* MUST: memory and fields of a task stay readable after it was freed. */
static void test_fields_are_readable_after_free(void)
{
	struct doca_task *task = fake_task(fake, 42);

	((struct fake_task *)task)->number = 17;
	doca_task_submit(task);
	drain();
	TEST_ASSERT_EQUAL_UINT64(42, doca_task_get_user_data(task).u64);
	TEST_ASSERT_EQUAL_INT(17, ((struct fake_task *)task)->number);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_task_get_status(task));
}

/* MUST: a task that is freed in flight is withdrawn, and its callback does not run. */
static void test_free_in_flight_means_no_callback(void)
{
	struct doca_task *a = fake_task(fake, 1), *b = fake_task(fake, 2), *c = fake_task(fake, 3);

	fake->holds = true;
	doca_task_submit(a);
	doca_task_submit(b);
	doca_task_submit(c);
	doca_task_free(b);
	doca_task_free(c);
	TEST_ASSERT_EQUAL_size_t(1, inflight());
	TEST_ASSERT_NOT_NULL(fake_task(fake, 9));
	doca_task_free(c); /* a second free has no effect */
	fake->holds = false;
	drain();
	TEST_ASSERT_EQUAL_INT(1, n_done);
	TEST_ASSERT_EQUAL_UINT64(1, last_data);
	doca_task_free(b);
	doca_task_free(c);
}

/* As before, when the task has ended and its callback is pending. */
static void test_free_of_an_ended_task_means_no_callback(void)
{
	struct doca_task *a = fake_task(fake, 1), *b = fake_task(fake, 2);

	fake->ends_in_submit = true;
	doca_task_submit(a);
	doca_task_submit(b);
	to_free = b; /* in the callback of a */
	drain();
	TEST_ASSERT_EQUAL_INT(1, n_done);
	TEST_ASSERT_EQUAL_size_t(0, inflight());
	TEST_ASSERT_NOT_NULL(a = fake_task(fake, 0));
	TEST_ASSERT_NOT_NULL(b = fake_task(fake, 0));
	TEST_ASSERT_NOT_NULL(last = fake_task(fake, 0));
	doca_task_free(a);
	doca_task_free(b);
	doca_task_free(last);
}

static void test_stop_after_free_in_flight(void)
{
	struct doca_task *task = fake_task(fake, 1);

	fake->ends_in_submit = true;
	doca_task_submit(task);
	doca_task_free(task);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(&fake->ctx));
	drain();
	TEST_ASSERT_EQUAL_INT(0, n_done + n_error);
	TEST_ASSERT_EQUAL_INT(DOCA_CTX_STATE_IDLE, fake->ctx.state);
}

static void test_tasks_end_in_order(void)
{
	static const uint64_t expected[3] = {1, 2, 3};

	doca_task_submit(fake_task(fake, 1));
	doca_task_submit(fake_task(fake, 2));
	doca_task_submit(fake_task(fake, 3));
	drain();
	TEST_ASSERT_EQUAL_UINT64_ARRAY(expected, order, 3);
}

static void test_submit_in_a_wrong_state(void)
{
	struct doca_task *task = fake_task(fake, 1);

	fake->holds = true;
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_task_submit(task));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_task_submit(task)); /* it is in flight */
	doca_task_free(task);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_task_submit(task)); /* it is freed */
	TEST_ASSERT_EQUAL_size_t(0, inflight());
}

static int n_ended;

static void ended(struct doca_task *task, void *arg)
{
	TEST_ASSERT_EQUAL_PTR(&n_ended, arg);
	n_ended++;
	task->ended = NULL;
	doca_task_free(task);
}

/* When a graph runs the task, the graph is notified instead of the callback. */
static void test_graph_is_notified_of_the_end_instead_of_the_program(void)
{
	struct doca_task *task = fake_task(fake, 1);

	task->ended = ended;
	task->ended_arg = &n_ended;
	doca_task_submit(task);
	drain();
	TEST_ASSERT_EQUAL_INT(1, n_ended);
	TEST_ASSERT_EQUAL_INT(0, n_done);
}

/* The program gets no callback, but a graph run that waits for the task must end. */
static void test_graph_is_notified_of_a_task_that_is_freed_in_flight(void)
{
	n_ended = 0;
	fake->holds = true;
	for (int i = 0; i < 2; i++) {
		struct doca_task *task = fake_task(fake, 1);

		fake->ends_in_submit = i == 1;
		task->ended = ended;
		task->ended_arg = &n_ended;
		doca_task_submit(task);
		doca_task_free(task);
		TEST_ASSERT_EQUAL_INT(i, n_ended);
		drain();
		TEST_ASSERT_EQUAL_INT(i + 1, n_ended);
	}
	TEST_ASSERT_EQUAL_INT(0, n_done + n_error);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_stop(&fake->ctx)); /* no task is in flight */
}

static void test_missing_arguments(void)
{
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_task_submit(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_task_try_submit(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_task_submit_ex(NULL, 0));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_task_get_status(NULL));
	doca_task_free(NULL);
	doca_task_set_user_data(NULL, (union doca_data){.u64 = 1});
	TEST_ASSERT_EQUAL_UINT64(0, doca_task_get_user_data(NULL).u64);
	TEST_ASSERT_NULL(doca_task_get_ctx(NULL));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_pool_has_as_many_tasks_as_configured);
	RUN_TEST(test_bad_configurations_of_a_pool);
	RUN_TEST(test_one_callback_from_progress);
	RUN_TEST(test_an_error_calls_the_other_callback_with_its_status);
	RUN_TEST(test_refused_submit_leaves_the_task_to_the_program);
	RUN_TEST(test_only_try_submit_asks_for_validity);
	RUN_TEST(test_flags_of_submit);
	RUN_TEST(test_resubmit_inside_the_callback);
	RUN_TEST(test_task_may_be_kept_and_freed_later);
	RUN_TEST(test_fields_are_readable_after_free);
	RUN_TEST(test_free_in_flight_means_no_callback);
	RUN_TEST(test_free_of_an_ended_task_means_no_callback);
	RUN_TEST(test_stop_after_free_in_flight);
	RUN_TEST(test_tasks_end_in_order);
	RUN_TEST(test_submit_in_a_wrong_state);
	RUN_TEST(test_graph_is_notified_of_the_end_instead_of_the_program);
	RUN_TEST(test_graph_is_notified_of_a_task_that_is_freed_in_flight);
	RUN_TEST(test_missing_arguments);
	return UNITY_END();
}
