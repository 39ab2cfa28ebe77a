/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Known programs use the interface in ways that the documentation of DOCA forbids or does not
 * mention. Each test repeats one of these uses, with DMA in one process. Each use must succeed. If
 * a "MUST" rule is violated, programs fail, hang or crash.
 */
#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_dma.h>
#include <doca_mmap.h>
#include <doca_pe.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "unity.h"

#define OK(call) TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, (call))
#define IS(error, call) TEST_ASSERT_EQUAL_INT(DOCA_ERROR_##error, (call))

enum { SIZE = 5000, SHIFT = 3 }; /* neither sizes nor addresses are aligned */

/* A DMA context and the objects that it needs. */
struct side {
	struct doca_pe *pe;
	struct doca_dma *dma;
	struct doca_ctx *ctx;
	unsigned n_done, n_error, n_idle;
};

static struct doca_dev *dev;
static struct doca_mmap *map;
static struct doca_buf_inventory *inventory;
static struct doca_buf *src, *dst;
static uint8_t *memory; /* the first half is the source */
static struct side a, b;

/* what the callbacks do */
static bool submits_when_running, stops_when_done, destroys_when_idle, progresses_other;

static struct doca_dma_task_memcpy *task_of(struct side *s, struct doca_buf *to)
{
	struct doca_dma_task_memcpy *task;

	OK(doca_dma_task_memcpy_alloc_init(s->dma, src, to, (union doca_data){.ptr = s}, &task));
	return task;
}

static void submit(struct side *s)
{
	OK(doca_task_submit(doca_dma_task_memcpy_as_task(task_of(s, dst))));
}

static void run(struct side *s)
{
	while (doca_pe_progress(s->pe))
		;
}

static void on_done(struct doca_dma_task_memcpy *task, union doca_data task_data,
		    union doca_data ctx_data)
{
	struct side *s = ctx_data.ptr;

	TEST_ASSERT_EQUAL_PTR(s, task_data.ptr);
	s->n_done++;
	doca_task_free(doca_dma_task_memcpy_as_task(task));
	/* MUST: fields of a task are readable after the task was freed */
	TEST_ASSERT_EQUAL_PTR(src, doca_dma_task_memcpy_get_src(task));
	TEST_ASSERT_EQUAL_PTR(s->ctx, doca_task_get_ctx(doca_dma_task_memcpy_as_task(task)));
	if (progresses_other && s == &a) {
		submit(&b);
		while (b.n_done == 0)
			TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(b.pe));
	}
	if (stops_when_done)
		OK(doca_ctx_stop(s->ctx));
}

static void on_error(struct doca_dma_task_memcpy *task, union doca_data task_data,
		     union doca_data ctx_data)
{
	struct side *s = ctx_data.ptr;

	(void)task_data;
	s->n_error++;
	doca_task_free(doca_dma_task_memcpy_as_task(task));
}

static void on_state(const union doca_data data, struct doca_ctx *ctx, enum doca_ctx_states prev,
		     enum doca_ctx_states next)
{
	struct side *s = data.ptr;

	(void)ctx;
	(void)prev;
	if (submits_when_running && next == DOCA_CTX_STATE_RUNNING) {
		submit(s);
		submit(s);
	}
	if (next != DOCA_CTX_STATE_IDLE)
		return;
	s->n_idle++;
	if (destroys_when_idle) {
		OK(doca_dma_destroy(s->dma));
		s->dma = NULL;
	}
}

static void make(struct side *s, struct doca_pe *pe)
{
	memset(s, 0, sizeof(*s));
	s->pe = pe;
	OK(doca_dma_create(dev, &s->dma));
	s->ctx = doca_dma_as_ctx(s->dma);
	OK(doca_dma_task_memcpy_set_conf(s->dma, on_done, on_error, 4));
	OK(doca_ctx_set_user_data(s->ctx, (union doca_data){.ptr = s}));
	OK(doca_ctx_set_state_changed_cb(s->ctx, on_state));
	OK(doca_pe_connect_ctx(pe, s->ctx));
}

static void close_side(struct side *s)
{
	doca_error_t result;

	if (!s->dma)
		return;
	result = doca_ctx_stop(s->ctx);
	run(s);
	TEST_ASSERT_TRUE(result == DOCA_SUCCESS || result == DOCA_ERROR_IN_PROGRESS);
	OK(doca_dma_destroy(s->dma));
}

static struct doca_pe *new_pe(void)
{
	struct doca_pe *pe;

	OK(doca_pe_create(&pe));
	return pe;
}

/*
 * Sets no permissions: a program can read and write its own memory. Buffers are created before
 * contexts, and destroyed after them.
 */
void setUp(void)
{
	struct doca_devinfo **list;
	uint32_t n;

	submits_when_running = stops_when_done = destroys_when_idle = progresses_other = false;
	OK(doca_devinfo_create_list(&list, &n));
	OK(doca_dev_open(list[0], &dev));
	OK(doca_devinfo_destroy_list(list));
	memory = malloc(2 * SIZE);
	for (int i = 0; i < SIZE; i++)
		memory[i] = (uint8_t)(i * 7 + 1);
	memset(memory + SIZE, 0, SIZE);
	OK(doca_mmap_create(&map));
	OK(doca_mmap_add_dev(map, dev));
	OK(doca_mmap_set_memrange(map, memory + SHIFT, 2 * SIZE - SHIFT));
	OK(doca_mmap_start(map));
	OK(doca_buf_inventory_create(4, &inventory));
	OK(doca_buf_inventory_start(inventory));
	OK(doca_buf_inventory_buf_get_by_data(inventory, map, memory + SHIFT, 1001, &src));
	OK(doca_buf_inventory_buf_get_by_addr(inventory, map, memory + SIZE + SHIFT, SIZE - SHIFT,
					      &dst));
	make(&a, new_pe());
}

static void drop_buffers(void)
{
	OK(doca_buf_dec_refcount(src, NULL));
	OK(doca_buf_dec_refcount(dst, NULL));
	OK(doca_buf_inventory_stop(inventory));
	OK(doca_buf_inventory_destroy(inventory));
	inventory = NULL;
}

/*
 * MUST: doca_mmap_destroy() succeeds after the program has freed the memory and closed the device.
 */
void tearDown(void)
{
	close_side(&a);
	OK(doca_pe_destroy(a.pe));
	if (inventory)
		drop_buffers();
	free(memory);
	OK(doca_dev_close(dev));
	OK(doca_dev_close(NULL));
	OK(doca_mmap_destroy(map));
}

/*
 * MUST: a task reads and writes local memory without permissions being set, at any alignment.
 */
static void MUST_a_copy_needs_no_permissions_and_no_alignment(void)
{
	size_t length;

	OK(doca_ctx_start(a.ctx));
	submit(&a);
	run(&a);
	TEST_ASSERT_EQUAL_UINT(1, a.n_done);
	TEST_ASSERT_EQUAL_MEMORY(memory + SHIFT, memory + SIZE + SHIFT, 1001);
	OK(doca_buf_get_data_len(dst, &length));
	TEST_ASSERT_EQUAL_size_t(1001, length);
	TEST_ASSERT_EQUAL_UINT8(0, memory[SIZE + SHIFT + 1001]);
}

/*
 * MUST: a program can allocate and submit tasks in the callback that reports RUNNING. Start returns
 * SUCCESS, and progress completes the tasks.
 */
static void MUST_tasks_are_submitted_in_the_callback_of_RUNNING(void)
{
	submits_when_running = true;
	OK(doca_ctx_start(a.ctx));
	TEST_ASSERT_EQUAL_UINT(0, a.n_done);
	run(&a);
	TEST_ASSERT_EQUAL_UINT(2, a.n_done);
}

/*
 * MUST: a program stops in its completion callback and again when it cleans up; both are SUCCESS.
 */
static void MUST_stop_in_a_callback_and_again_is_SUCCESS(void)
{
	stops_when_done = true;
	OK(doca_ctx_start(a.ctx));
	submit(&a);
	run(&a);
	TEST_ASSERT_EQUAL_UINT(1, a.n_done);
	TEST_ASSERT_EQUAL_UINT(1, a.n_idle);
	OK(doca_ctx_stop(a.ctx));
	TEST_ASSERT_EQUAL_UINT(1, a.n_idle);
}

/*
 * MUST: a completion callback, called by progress, stops the context, and the callback of IDLE
 * destroys it. The library does not use the context afterwards.
 */
static void MUST_the_context_is_destroyed_in_its_last_callback(void)
{
	submits_when_running = true;
	OK(doca_ctx_start(a.ctx));
	IS(IN_PROGRESS, doca_ctx_stop(a.ctx)); /* both tasks are in flight */
	destroys_when_idle = true;
	run(&a);
	TEST_ASSERT_EQUAL_UINT(2, a.n_error);
	TEST_ASSERT_NULL(a.dma);
	make(&a, a.pe);
	submits_when_running = false;
	stops_when_done = true;
	OK(doca_ctx_start(a.ctx));
	submit(&a);
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(a.pe));
	TEST_ASSERT_NULL(a.dma);
	TEST_ASSERT_EQUAL_UINT8(0, doca_pe_progress(a.pe));
}

/* MUST: a callback can progress another engine. */
static void MUST_another_engine_is_progressed_in_a_callback(void)
{
	make(&b, new_pe());
	OK(doca_ctx_start(a.ctx));
	OK(doca_ctx_start(b.ctx));
	progresses_other = true;
	submit(&a);
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(a.pe));
	TEST_ASSERT_EQUAL_UINT(1, a.n_done);
	TEST_ASSERT_EQUAL_UINT(1, b.n_done);
	TEST_ASSERT_EQUAL_UINT8(0, doca_pe_progress(a.pe));
	TEST_ASSERT_EQUAL_UINT8(0, doca_pe_progress(b.pe));
	close_side(&b);
	OK(doca_pe_destroy(b.pe));
}

/* MUST: tasks of several contexts can use one buffer at the same time. */
static void MUST_one_buffer_is_in_tasks_of_two_contexts(void)
{
	struct doca_buf *other;
	uint16_t references;

	make(&b, a.pe);
	OK(doca_ctx_start(a.ctx));
	OK(doca_ctx_start(b.ctx));
	OK(doca_buf_inventory_buf_get_by_addr(inventory, map, memory + SIZE + 3000, 1001, &other));
	submit(&a);
	OK(doca_task_submit(doca_dma_task_memcpy_as_task(task_of(&b, other))));
	submit(&a);
	run(&a);
	TEST_ASSERT_EQUAL_UINT(2, a.n_done);
	TEST_ASSERT_EQUAL_UINT(1, b.n_done);
	TEST_ASSERT_EQUAL_MEMORY(memory + SHIFT, memory + SIZE + SHIFT, 1001);
	TEST_ASSERT_EQUAL_MEMORY(memory + SHIFT, memory + SIZE + SHIFT + 1001, 1001);
	TEST_ASSERT_EQUAL_MEMORY(memory + SHIFT, memory + SIZE + 3000, 1001);
	OK(doca_buf_get_refcount(src, &references));
	TEST_ASSERT_EQUAL_UINT16(1, references);
	OK(doca_buf_dec_refcount(other, NULL));
	close_side(&b);
}

/*
 * Some programs clean up in this order after an error: they release buffers and destroy the
 * inventory while tasks still refer to the buffers.
 */
static void buffers_can_be_released_before_their_tasks(void)
{
	struct doca_dma_task_memcpy *kept;

	OK(doca_ctx_start(a.ctx));
	submit(&a);
	kept = task_of(&a, dst);
	drop_buffers();
	IS(IN_PROGRESS, doca_ctx_stop(a.ctx));
	run(&a);
	TEST_ASSERT_EQUAL_UINT(1, a.n_error);
	TEST_ASSERT_EQUAL_UINT(0, a.n_idle);
	doca_task_free(doca_dma_task_memcpy_as_task(kept));
	run(&a);
	TEST_ASSERT_EQUAL_UINT(1, a.n_idle);
}

static void *work(void *arg)
{
	(void)arg;
	submit(&a);
	run(&a);
	return NULL;
}

/*
 * MUST: a worker thread progresses the engine; after the worker has ended, the main thread stops
 * and destroys the contexts of the engine.
 */
static void MUST_the_main_thread_takes_over_the_engine_of_a_worker(void)
{
	pthread_t worker;

	OK(doca_ctx_start(a.ctx));
	for (unsigned i = 1; i <= 2; i++) {
		TEST_ASSERT_EQUAL_INT(0, pthread_create(&worker, NULL, work, NULL));
		TEST_ASSERT_EQUAL_INT(0, pthread_join(worker, NULL));
		TEST_ASSERT_EQUAL_UINT(i, a.n_done);
	}
	submit(&a);
	IS(IN_PROGRESS, doca_ctx_stop(a.ctx));
	run(&a);
	TEST_ASSERT_EQUAL_UINT(1, a.n_idle);
}

/*
 * MUST: a program can get the notification handle while the engine has no context. The handle later
 * wakes the thread that armed the engine, for tasks submitted before or after the arming. A loop
 * that then calls progress until progress returns 0 ends.
 */
static void MUST_a_program_that_waits_for_events_is_woken_for_each(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	int epoll = epoll_create1(EPOLL_CLOEXEC), handle;

	make(&b, new_pe());
	close_side(&b);
	OK(doca_pe_get_notification_handle(b.pe, &handle));
	TEST_ASSERT_EQUAL_INT(0, epoll_ctl(epoll, EPOLL_CTL_ADD, handle, &event));
	make(&b, b.pe);
	OK(doca_ctx_start(b.ctx));
	for (unsigned i = 1; i <= 5; i++) {
		if (i % 2)
			submit(&b);
		OK(doca_pe_request_notification(b.pe));
		if (!(i % 2))
			submit(&b);
		TEST_ASSERT_EQUAL_INT_MESSAGE(1, epoll_wait(epoll, &event, 1, 10000),
					      "a wake-up was lost");
		OK(doca_pe_clear_notification(b.pe, i % 2 ? handle : 0));
		run(&b);
		TEST_ASSERT_EQUAL_UINT(i, b.n_done);
		OK(doca_buf_reset_data_len(dst));
	}
	OK(doca_pe_request_notification(b.pe));
	TEST_ASSERT_EQUAL_INT(0, epoll_wait(epoll, &event, 1, 0));
	close_side(&b);
	OK(doca_pe_destroy(b.pe));
	close(epoll);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(MUST_a_copy_needs_no_permissions_and_no_alignment);
	RUN_TEST(MUST_tasks_are_submitted_in_the_callback_of_RUNNING);
	RUN_TEST(MUST_stop_in_a_callback_and_again_is_SUCCESS);
	RUN_TEST(MUST_the_context_is_destroyed_in_its_last_callback);
	RUN_TEST(MUST_another_engine_is_progressed_in_a_callback);
	RUN_TEST(MUST_one_buffer_is_in_tasks_of_two_contexts);
	RUN_TEST(buffers_can_be_released_before_their_tasks);
	RUN_TEST(MUST_the_main_thread_takes_over_the_engine_of_a_worker);
	RUN_TEST(MUST_a_program_that_waits_for_events_is_woken_for_each);
	return UNITY_END();
}
