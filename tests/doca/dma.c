/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies by DMA tasks: local and imported memory, lists, errors that stop the context, and usual
 * call sequences of programs.
 */
#include <doca_dma.h>

#include <poll.h>
#include <string.h>

#include "engine/ctx.h"
#include "device/gd_device.h"
#include "fake_map.h"
#include "unity.h"

enum { SIZE = 1 << 16, N_TASKS = 4, FAR = 0x7000000 };

static struct doca_devinfo info;
static struct doca_dev dev = {.info = &info, .references = 1};
static uint8_t from[SIZE], to[SIZE];
static struct doca_mmap from_map, to_map;
static struct doca_buf_inventory *inventory;
static struct doca_buf *src, *dst;
static struct doca_pe *pe;
static struct doca_dma *dma;
static struct doca_ctx *ctx;
static int n_done, n_error, n_idle, n_stopping, n_resubmits;
static doca_error_t first_error;
static bool stops, destroys;

static void on_state(const union doca_data user_data, struct doca_ctx *changed,
		     enum doca_ctx_states prev, enum doca_ctx_states next)
{
	(void)user_data;
	(void)changed;
	if (prev == DOCA_CTX_STATE_RUNNING && next == DOCA_CTX_STATE_STOPPING)
		n_stopping++;
	if (next != DOCA_CTX_STATE_IDLE)
		return;
	n_idle++;
	if (destroys) {
		TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dma_destroy(dma));
		dma = NULL;
	}
}

static void on_done(struct doca_dma_task_memcpy *task, union doca_data task_user_data,
		    union doca_data ctx_user_data)
{
	(void)ctx_user_data;
	/* tasks complete in the order of submission */
	TEST_ASSERT_EQUAL_UINT64(n_done + n_error + 1, task_user_data.u64);
	n_done++;
	if (n_resubmits > 0) {
		n_resubmits--;
		doca_buf_reset_data_len(doca_dma_task_memcpy_get_dst(task));
		doca_task_set_user_data(doca_dma_task_memcpy_as_task(task),
					(union doca_data){.u64 = task_user_data.u64 + 1});
		TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
				      doca_task_submit(doca_dma_task_memcpy_as_task(task)));
		return;
	}
	doca_task_free(doca_dma_task_memcpy_as_task(task));
	if (stops)
		TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_stop(ctx));
}

static void on_error(struct doca_dma_task_memcpy *task, union doca_data task_user_data,
		     union doca_data ctx_user_data)
{
	(void)task_user_data;
	(void)ctx_user_data;
	if (n_error++ == 0)
		first_error = doca_task_get_status(doca_dma_task_memcpy_as_task(task));
	doca_task_free(doca_dma_task_memcpy_as_task(task));
}

static struct doca_task *task_of(const struct doca_buf *source, struct doca_buf *destination,
				 uint64_t user_data)
{
	struct doca_dma_task_memcpy *task;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dma_task_memcpy_alloc_init(
						    dma, source, destination,
						    (union doca_data){.u64 = user_data}, &task));
	return doca_dma_task_memcpy_as_task(task);
}

static void drain(void)
{
	while (doca_pe_progress(pe))
		;
}

static struct doca_buf *get(struct doca_mmap *mmap, size_t offset, size_t len, size_t data_len)
{
	struct doca_buf *buf;
	char *addr = (char *)mmap->addr + offset;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_buf_inventory_buf_get_by_args(inventory, mmap, addr, len, addr,
								 data_len, &buf));
	return buf;
}

void setUp(void)
{
	size_t i;

	for (i = 0; i < SIZE; i++)
		from[i] = (uint8_t)(i * 31 + i / 256);
	memset(to, 0, SIZE);
	n_done = n_error = n_idle = n_stopping = n_resubmits = 0;
	stops = destroys = false;
	fake_dev = &dev;
	from_map = (struct doca_mmap)FAKE_MAP(from, SIZE);
	to_map = (struct doca_mmap)FAKE_MAP(to, SIZE);
	doca_buf_inventory_create(256, &inventory);
	doca_buf_inventory_start(inventory);
	src = get(&from_map, 0, SIZE, SIZE);
	dst = get(&to_map, 0, SIZE, 0);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_create(&pe));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dma_create(&dev, &dma));
	ctx = doca_dma_as_ctx(dma);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_dma_task_memcpy_set_conf(dma, on_done, on_error, N_TASKS));
	doca_ctx_set_state_changed_cb(ctx, on_state);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_connect_ctx(pe, ctx));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_start(ctx));
}

void tearDown(void)
{
	if (dma) {
		doca_ctx_stop(ctx);
		drain();
		/* stop of an IDLE context */
		TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_stop(ctx));
		TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dma_destroy(dma));
	}
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_destroy(pe));
	doca_buf_dec_refcount(src, NULL);
	doca_buf_dec_refcount(dst, NULL);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_inventory_destroy(inventory));
}

static void test_copy(void)
{
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_task_submit(task_of(src, dst, 1)));
	TEST_ASSERT_EQUAL_size_t(0, dst->data_len);
	/* progress returns 1 only when it has called the task's callback */
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_INT(1, n_done);
	TEST_ASSERT_EQUAL_MEMORY(from, to, SIZE);
	TEST_ASSERT_EQUAL_size_t(SIZE, dst->data_len);
	TEST_ASSERT_EQUAL_UINT8(0, doca_pe_progress(pe));
}

static void test_one_task_per_progress(void)
{
	int i;

	doca_buf_set_data_len(src, 100);
	for (i = 1; i <= N_TASKS; i++)
		doca_task_submit(task_of(src, dst, (uint64_t)i));
	for (i = 1; i <= N_TASKS; i++) {
		TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
		TEST_ASSERT_EQUAL_INT(i, n_done);
		TEST_ASSERT_EQUAL_size_t(100 * i, dst->data_len); /* the copy was appended */
	}
}

/* MUST: source and destination can be memory of another process, named by its addresses there. */
static void test_copy_into_and_out_of_imported_memory(void)
{
	static uint8_t other[SIZE];
	struct doca_mmap import = FAKE_IMPORT(FAR, other, SIZE, DOCA_ACCESS_FLAG_PCI_READ_WRITE);
	struct doca_buf *far_buf;

	memset(other, 0, SIZE);
	far_buf = get(&import, 0, SIZE, 0);
	doca_task_submit(task_of(src, far_buf, 1));
	doca_task_submit(task_of(far_buf, dst, 2));
	drain();
	TEST_ASSERT_EQUAL_INT(2, n_done);
	TEST_ASSERT_EQUAL_MEMORY(from, other, SIZE);
	TEST_ASSERT_EQUAL_MEMORY(from, to, SIZE);
	doca_buf_dec_refcount(far_buf, NULL);
}

static void test_lists_on_both_sides(void)
{
	struct doca_buf *a = get(&from_map, 0, 1000, 1000), *b = get(&to_map, 0, 700, 0);

	doca_buf_chain_list(a, get(&from_map, 5000, 400, 400));
	doca_buf_chain_list(b, get(&to_map, 900, 700, 0));
	doca_task_submit(task_of(a, b, 1));
	drain();
	TEST_ASSERT_EQUAL_INT(1, n_done);
	TEST_ASSERT_EQUAL_MEMORY(from, to, 700);
	TEST_ASSERT_EQUAL_MEMORY(from + 700, to + 900, 300);
	TEST_ASSERT_EQUAL_MEMORY(from + 5000, to + 1200, 400);
	doca_buf_dec_refcount(a, NULL);
	doca_buf_dec_refcount(b, NULL);
}

/*
 * MUST: submit accepts an invalid task, which fails later and stops the context. The other tasks
 * are flushed, and the destination does not change.
 */
static void test_bad_task_stops_the_context_and_flushes(void)
{
	struct doca_buf *empty = get(&from_map, 0, 100, 0);

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_task_submit(task_of(empty, dst, 1)));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_task_submit(task_of(src, dst, 2)));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_task_submit(task_of(src, dst, 3)));
	drain();
	TEST_ASSERT_EQUAL_INT(0, n_done);
	TEST_ASSERT_EQUAL_INT(3, n_error);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, first_error);
	TEST_ASSERT_EQUAL_INT(1, n_stopping);
	TEST_ASSERT_EQUAL_INT(1, n_idle);
	TEST_ASSERT_EQUAL_size_t(0, dst->data_len);
	doca_buf_dec_refcount(empty, NULL);
}

static void nothing(struct gd_event *event)
{
	(void)event;
}

/* As before, while earlier events on the engine delay the failure. */
static void test_tasks_after_a_bad_task_are_flushed(void)
{
	struct doca_buf *empty = get(&from_map, 0, 100, 0);
	struct gd_event events[80];
	size_t i;

	for (i = 0; i < 80; i++) {
		events[i] = (struct gd_event){.run = nothing};
		gd_pe_post(pe, &events[i]);
	}
	doca_task_submit(task_of(empty, dst, 1));
	doca_task_submit(task_of(src, dst, 2));
	drain();
	TEST_ASSERT_EQUAL_INT(0, n_done);
	TEST_ASSERT_EQUAL_INT(2, n_error);
	doca_buf_dec_refcount(empty, NULL);
}

static void test_tasks_before_the_bad_one_succeed(void)
{
	struct doca_buf *empty = get(&from_map, 0, 100, 0);

	doca_task_submit(task_of(src, dst, 1));
	doca_task_submit(task_of(empty, dst, 2));
	drain();
	TEST_ASSERT_EQUAL_INT(1, n_done);
	TEST_ASSERT_EQUAL_INT(1, n_error);
	TEST_ASSERT_EQUAL_INT(1, n_idle);
	doca_buf_dec_refcount(empty, NULL);
}

/* MUST: try_submit returns the error of an invalid task, and the program keeps the task. */
static void test_try_submit_rejects_invalid_tasks(void)
{
	struct doca_buf *empty = get(&from_map, 0, 100, 0), *small = get(&to_map, 0, 10, 0),
			*list = get(&from_map, 0, 1, 1);
	struct doca_task *task = task_of(empty, dst, 1);
	struct doca_dma_task_memcpy *copy = (struct doca_dma_task_memcpy *)task;
	int i;

	/* the source has no data */
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_task_try_submit(task));
	doca_dma_task_memcpy_set_src(copy, src);
	doca_dma_task_memcpy_set_dst(copy, small);
	/* the destination is too short */
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_task_try_submit(task));
	doca_dma_task_memcpy_set_dst(copy, NULL);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_task_try_submit(task));
	doca_dma_task_memcpy_set_dst(copy, dst);
	for (i = 1; i < 64; i++)
		doca_buf_chain_list(list, get(&from_map, 0, 1, 1));
	doca_dma_task_memcpy_set_src(copy, list);
	/* a list can have 64 elements */
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_task_try_submit(task));
	drain();
	TEST_ASSERT_EQUAL_INT(1, n_done);
	doca_buf_chain_list(list, get(&from_map, 0, 1, 1));
	doca_buf_reset_data_len(dst);
	task = task_of(list, dst, 2);
	/* 65 elements are too many */
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_task_try_submit(task));
	TEST_ASSERT_EQUAL_INT(0, n_stopping);
	doca_task_free(task);
	doca_buf_dec_refcount(empty, NULL);
	doca_buf_dec_refcount(small, NULL);
	doca_buf_dec_refcount(list, NULL);
}

static void test_rights_are_checked(void)
{
	to_map.access = DOCA_ACCESS_FLAG_LOCAL_READ_ONLY;
	doca_task_submit(task_of(src, dst, 1));
	drain();
	TEST_ASSERT_EQUAL_INT(1, n_error);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_PERMITTED, first_error);
}

/* The map of each buffer must be for the device of the context. */
static void test_maps_of_other_devices_are_rejected(void)
{
	struct doca_task *task;

	to_map.n_devs = 0;
	task = task_of(src, dst, 1);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_task_try_submit(task));
	doca_task_submit(task);
	drain();
	TEST_ASSERT_EQUAL_INT(1, n_error);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, first_error);
}

static void test_resubmit_in_the_callback(void)
{
	n_resubmits = 9;
	doca_task_submit(task_of(src, dst, 1));
	drain();
	TEST_ASSERT_EQUAL_INT(10, n_done);
	TEST_ASSERT_EQUAL_size_t(SIZE, dst->data_len);
}

/* MUST: the completion callback can stop the context, and the callback of IDLE destroy it. */
static void test_stop_and_destroy_in_callbacks(void)
{
	stops = true;
	destroys = true;
	doca_task_submit(task_of(src, dst, 1));
	drain();
	TEST_ASSERT_EQUAL_INT(1, n_done);
	TEST_ASSERT_NULL(dma);
}

static void test_stop_flushes(void)
{
	doca_task_submit(task_of(src, dst, 1));
	doca_task_submit(task_of(src, dst, 2));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(ctx));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_USE, doca_dma_destroy(dma));
	drain();
	TEST_ASSERT_EQUAL_INT(2, n_error);
	TEST_ASSERT_NOT_EQUAL(DOCA_SUCCESS, first_error);
	TEST_ASSERT_EQUAL_INT(1, n_idle);
	TEST_ASSERT_EQUAL_UINT8(0, to[1]);
}

static void test_free_in_flight(void)
{
	struct doca_task *tasks[3];
	int i;

	for (i = 0; i < 3; i++)
		doca_task_submit(tasks[i] = task_of(src, dst, 1));
	doca_task_free(tasks[2]);
	doca_task_free(tasks[0]);
	doca_task_submit(task_of(src, dst, 1));
	doca_task_free(tasks[1]);
	drain();
	TEST_ASSERT_EQUAL_INT(0, n_stopping);
	TEST_ASSERT_EQUAL_INT(1, n_done);
}

/* MUST: a program can release buffers while tasks use them. */
static void test_buffers_are_dropped_while_in_use(void)
{
	struct doca_buf *a = get(&from_map, 0, 100, 100), *b = get(&to_map, 0, 100, 0);

	doca_buf_chain_list(a, get(&from_map, 200, 100, 100));
	doca_task_submit(task_of(a, b, 1));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_dec_refcount(a, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_dec_refcount(b, NULL));
	drain();
	TEST_ASSERT_EQUAL_INT(1, n_done); /* copies the first buffer: the release ended the list */
	TEST_ASSERT_EQUAL_MEMORY(from, to, 100);
	TEST_ASSERT_EQUAL_UINT8(0, to[100]);
}

/* Many tasks can use one buffer at the same time. */
static void test_pool_of_tasks_ends(void)
{
	struct doca_dma_task_memcpy *task;
	int i;

	doca_buf_set_data_len(src, 1);
	for (i = 1; i <= N_TASKS; i++)
		doca_task_submit(task_of(src, dst, (uint64_t)i));
	TEST_ASSERT_EQUAL_INT(
		DOCA_ERROR_NO_MEMORY,
		doca_dma_task_memcpy_alloc_init(dma, src, dst, (union doca_data){.u64 = 0}, &task));
	drain();
	TEST_ASSERT_EQUAL_INT(N_TASKS, n_done);
}

static void test_waiting_for_a_task(void)
{
	struct pollfd pfd = {.events = POLLIN};

	doca_pe_get_notification_handle(pe, &pfd.fd);
	doca_task_submit(task_of(src, dst, 1));
	doca_pe_request_notification(pe);
	TEST_ASSERT_EQUAL_INT(1, poll(&pfd, 1, 0));
	doca_pe_clear_notification(pe, 0);
	drain();
	TEST_ASSERT_EQUAL_INT(1, n_done);
}

static void test_configuration(void)
{
	struct doca_dma_task_memcpy *task;
	struct doca_dma *other;
	uint32_t n;

	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE,
			      doca_dma_task_memcpy_set_conf(dma, on_done, on_error, 1));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dma_create(&dev, &other));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_connect_ctx(pe, doca_dma_as_ctx(other)));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_ctx_start(doca_dma_as_ctx(other)));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dma_cap_get_max_num_tasks(other, &n));
	TEST_ASSERT_GREATER_OR_EQUAL_UINT32(65536, n);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_dma_task_memcpy_set_conf(other, on_done, on_error, n + 1));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_dma_task_memcpy_set_conf(other, NULL, on_error, 1));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_dma_task_memcpy_set_conf(other, on_done, NULL, 1));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_dma_task_memcpy_set_conf(other, on_done, on_error, 0));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE,
			      doca_dma_task_memcpy_alloc_init(other, src, dst,
							      (union doca_data){.u64 = 0}, &task));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dma_destroy(other));
}

static void test_capabilities(void)
{
	uint32_t n;
	uint64_t bytes;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dma_cap_task_memcpy_is_supported(&info));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_dma_cap_task_memcpy_get_max_buf_list_len(&info, &n));
	TEST_ASSERT_GREATER_OR_EQUAL_UINT32(64, n);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_dma_cap_task_memcpy_get_max_buf_size(&info, &bytes));
	TEST_ASSERT_GREATER_OR_EQUAL_UINT64(2 << 20, bytes);
}

static void test_missing_arguments(void)
{
	struct doca_dma_task_memcpy *task;
	uint32_t n;

	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_dma_create(NULL, &dma));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_dma_create(&dev, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_dma_destroy(NULL));
	TEST_ASSERT_NULL(doca_dma_as_ctx(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_dma_cap_task_memcpy_is_supported(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_dma_cap_get_max_num_tasks(NULL, &n));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_dma_cap_task_memcpy_get_max_buf_list_len(&info, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_dma_cap_task_memcpy_get_max_buf_size(&info, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_dma_task_memcpy_set_conf(NULL, on_done, on_error, 1));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_dma_task_memcpy_alloc_init(NULL, src, dst,
							      (union doca_data){.u64 = 0}, &task));
	TEST_ASSERT_NULL(doca_dma_task_memcpy_as_task(NULL));
	TEST_ASSERT_NULL(doca_dma_task_memcpy_get_src(NULL));
	TEST_ASSERT_NULL(doca_dma_task_memcpy_get_dst(NULL));
	doca_dma_task_memcpy_set_src(NULL, src);
	doca_dma_task_memcpy_set_dst(NULL, dst);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_copy);
	RUN_TEST(test_one_task_per_progress);
	RUN_TEST(test_copy_into_and_out_of_imported_memory);
	RUN_TEST(test_lists_on_both_sides);
	RUN_TEST(test_bad_task_stops_the_context_and_flushes);
	RUN_TEST(test_tasks_after_a_bad_task_are_flushed);
	RUN_TEST(test_tasks_before_the_bad_one_succeed);
	RUN_TEST(test_try_submit_rejects_invalid_tasks);
	RUN_TEST(test_rights_are_checked);
	RUN_TEST(test_maps_of_other_devices_are_rejected);
	RUN_TEST(test_resubmit_in_the_callback);
	RUN_TEST(test_stop_and_destroy_in_callbacks);
	RUN_TEST(test_stop_flushes);
	RUN_TEST(test_free_in_flight);
	RUN_TEST(test_buffers_are_dropped_while_in_use);
	RUN_TEST(test_pool_of_tasks_ends);
	RUN_TEST(test_waiting_for_a_task);
	RUN_TEST(test_configuration);
	RUN_TEST(test_capabilities);
	RUN_TEST(test_missing_arguments);
	return UNITY_END();
}
