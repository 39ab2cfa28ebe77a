/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The emulated DPA: creation and end, threads, completions, and each documented error. msgq.c tests
 * code that runs on it.
 */
#include <doca_dpa.h>
#include <doca_dpa_dev.h>

#include <sched.h>
#include <time.h>

#include "device/gd_device.h"
#include "scarce.h"
#include "unity.h"

#define OK(call) TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, (call))
#define IS(error, call) TEST_ASSERT_EQUAL_INT(DOCA_ERROR_##error, (call))

static struct doca_devinfo info = {.comch = true}, bare;
static struct doca_dev dev = {.info = &info, .references = 1};
static struct doca_dpa *dpa, *other;
static struct doca_dpa_thread *thread;
static struct doca_dpa_completion *completion;
static unsigned n_runs, n_refused;

void setUp(void)
{
	n_runs = n_refused = 0;
	OK(doca_dpa_create(&dev, &dpa));
}

void tearDown(void)
{
	OK(doca_dpa_destroy(dpa));
	TEST_ASSERT_EQUAL_UINT32(0, dev.users);
}

static void code(uint64_t arg)
{
	if (doca_dpa_thread_stop(thread) == DOCA_ERROR_NOT_PERMITTED)
		__atomic_fetch_add(&n_refused, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&n_runs, (unsigned)arg, __ATOMIC_RELEASE);
	doca_dpa_dev_thread_reschedule();
}

static void test_a_function_without_a_card_has_none(void)
{
	OK(doca_dpa_cap_is_supported(&info));
	IS(NOT_SUPPORTED, doca_dpa_cap_is_supported(&bare));
}

static void test_started_and_stopped_in_turn(void)
{
	struct doca_dpa_app *app = (struct doca_dpa_app *)&info;

	IS(BAD_STATE, doca_dpa_stop(dpa));
	OK(doca_dpa_set_app(dpa, app));
	OK(doca_dpa_start(dpa));
	IS(BAD_STATE, doca_dpa_start(dpa));
	IS(BAD_STATE, doca_dpa_set_app(dpa, app));
	OK(doca_dpa_stop(dpa));
}

/* Closing a device fails while it has a DPA. */
static void test_a_dpa_keeps_its_device(void)
{
	IS(IN_USE, doca_dev_close(&dev));
}

static void test_a_thread_runs_once_for_each_activation(void)
{
	OK(doca_dpa_thread_create(dpa, &thread));
	IS(IN_USE, doca_dpa_destroy(dpa));
	OK(doca_dpa_start(dpa));
	IS(BAD_STATE, doca_dpa_thread_start(thread)); /* the thread has no function */
	IS(BAD_STATE, doca_dpa_thread_run(thread));
	IS(BAD_STATE, doca_dpa_thread_stop(thread));
	OK(doca_dpa_thread_set_func_arg(thread, code, 3));
	OK(doca_dpa_stop(dpa));
	IS(BAD_STATE, doca_dpa_thread_start(thread)); /* the DPA does not run */
	OK(doca_dpa_start(dpa));
	OK(doca_dpa_thread_start(thread));
	IS(BAD_STATE, doca_dpa_thread_start(thread));
	IS(BAD_STATE, doca_dpa_thread_set_func_arg(thread, code, 3));
	OK(doca_dpa_thread_run(thread));
	for (time_t end = time(NULL) + 20;
	     __atomic_load_n(&n_runs, __ATOMIC_ACQUIRE) != 3 && time(NULL) < end;)
		sched_yield();
	OK(doca_dpa_thread_stop(thread));
	TEST_ASSERT_EQUAL_UINT(3, n_runs);
	TEST_ASSERT_EQUAL_UINT(1, n_refused); /* a thread cannot wait for its own end */
	OK(doca_dpa_thread_start(thread));
	OK(doca_dpa_thread_destroy(thread)); /* destroy stops the thread */
}

static void test_completions_name_their_thread(void)
{
	struct doca_dpa_thread *foreign;
	doca_dpa_dev_completion_t handle;

	OK(doca_dpa_create(&dev, &other));
	OK(doca_dpa_thread_create(other, &foreign));
	OK(doca_dpa_thread_create(dpa, &thread));
	IS(INVALID_VALUE, doca_dpa_completion_create(dpa, 0, &completion));
	OK(doca_dpa_completion_create(dpa, 4, &completion));
	IS(IN_USE, doca_dpa_destroy(dpa));
	IS(INVALID_VALUE, doca_dpa_completion_set_thread(completion, foreign));
	OK(doca_dpa_completion_set_thread(completion, thread));
	IS(IN_USE, doca_dpa_thread_destroy(thread));
	IS(BAD_STATE, doca_dpa_completion_stop(completion));
	IS(BAD_STATE, doca_dpa_completion_get_dpa_handle(completion, &handle));
	OK(doca_dpa_completion_start(completion));
	IS(BAD_STATE, doca_dpa_completion_start(completion));
	IS(BAD_STATE, doca_dpa_completion_set_thread(completion, thread));
	OK(doca_dpa_completion_get_dpa_handle(completion, &handle));
	OK(doca_dpa_completion_stop(completion));
	OK(doca_dpa_completion_destroy(completion));
	OK(doca_dpa_thread_destroy(thread));
	OK(doca_dpa_thread_destroy(foreign));
	OK(doca_dpa_destroy(other));
}

/* -- when there is no memory -- */

static doca_error_t create_dpa(void *arg)
{
	(void)arg;
	return doca_dpa_create(&dev, &other);
}

static void destroy_dpa(void *arg)
{
	(void)arg;
	OK(doca_dpa_destroy(other));
}

static doca_error_t create_thread(void *arg)
{
	(void)arg;
	return doca_dpa_thread_create(dpa, &thread);
}

static void destroy_thread(void *arg)
{
	(void)arg;
	OK(doca_dpa_thread_destroy(thread));
}

static doca_error_t create_completion(void *arg)
{
	(void)arg;
	return doca_dpa_completion_create(dpa, 4, &completion);
}

static void destroy_completion(void *arg)
{
	(void)arg;
	OK(doca_dpa_completion_destroy(completion));
}

static doca_error_t start_thread(void *arg)
{
	(void)arg;
	return doca_dpa_thread_start(thread);
}

static void stop_thread(void *arg)
{
	(void)arg;
	OK(doca_dpa_thread_stop(thread));
}

static void test_without_memory(void)
{
	if (!scarce_can())
		TEST_IGNORE_MESSAGE("allocations cannot fail in this build");
	TEST_ASSERT_GREATER_THAN(0,
				 scarce_walk(DOCA_ERROR_NO_MEMORY, create_dpa, destroy_dpa, NULL));
	TEST_ASSERT_GREATER_THAN(
		0, scarce_walk(DOCA_ERROR_NO_MEMORY, create_thread, destroy_thread, NULL));
	TEST_ASSERT_GREATER_THAN(
		0, scarce_walk(DOCA_ERROR_NO_MEMORY, create_completion, destroy_completion, NULL));
	OK(create_thread(NULL));
	OK(doca_dpa_thread_set_func_arg(thread, code, 1));
	OK(doca_dpa_start(dpa));
	/* the C library allocates memory for a thread, unless it reuses that of an ended thread */
	TEST_ASSERT_GREATER_THAN(
		0, scarce_walk(DOCA_ERROR_OPERATING_SYSTEM, start_thread, stop_thread, NULL));
	destroy_thread(NULL);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_without_memory);
	RUN_TEST(test_a_function_without_a_card_has_none);
	RUN_TEST(test_started_and_stopped_in_turn);
	RUN_TEST(test_a_dpa_keeps_its_device);
	RUN_TEST(test_a_thread_runs_once_for_each_activation);
	RUN_TEST(test_completions_name_their_thread);
	return UNITY_END();
}
