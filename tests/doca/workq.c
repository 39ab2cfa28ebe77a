/* SPDX-License-Identifier: BSD-3-Clause */
/* Work queues: contexts, jobs, events, and each of their errors. */
#include <doca_dma.h>
#include <doca_mmap.h>

#include <poll.h>
#include <string.h>
#include <sys/resource.h>

#include "device/gd_device.h"
#include "fake_map.h"
#include "scarce.h"
#include "unity.h"

enum { SIZE = 4096, DEPTH = 3 };

static struct doca_devinfo info;
static struct doca_dev dev = {.info = &info, .references = 1},
		       other_dev = {.info = &info, .references = 1};
static struct doca_dev closed = {.info = &info};
static uint8_t from[SIZE], to[SIZE];
static struct doca_mmap from_map, to_map;
static struct doca_buf_inventory *inventory;
static struct doca_buf *src, *dst;
static struct doca_dma *dma;
static struct doca_ctx *ctx;
static struct doca_workq *workq;
static struct doca_event event;

static struct doca_dma_job_memcpy job_of(const struct doca_buf *source,
					 struct doca_buf *destination, uint64_t number)
{
	struct doca_dma_job_memcpy job = {
		.base = {.type = DOCA_DMA_JOB_MEMCPY,
			 .flags = DOCA_JOB_FLAGS_NONE,
			 .ctx = ctx,
			 .user_data.u64 = number},
		.dst_buff = destination,
		.src_buff = source,
	};

	return job;
}

static doca_error_t submit(uint64_t number)
{
	const struct doca_dma_job_memcpy job = job_of(src, dst, number); /* submit copies the job */

	return doca_workq_submit(workq, &job.base);
}

static doca_error_t retrieve(void)
{
	return doca_workq_progress_retrieve(workq, &event, DOCA_WORKQ_RETRIEVE_FLAGS_NONE);
}

void setUp(void)
{
	size_t i;

	for (i = 0; i < SIZE; i++)
		from[i] = (uint8_t)(i * 11 + i / 256);
	memset(to, 0, SIZE);
	fake_dev = &dev;
	from_map = (struct doca_mmap)FAKE_MAP(from, SIZE);
	to_map = (struct doca_mmap)FAKE_MAP(to, SIZE);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_inventory_create(
						    NULL, 4, DOCA_BUF_EXTENSION_NONE, &inventory));
	doca_buf_inventory_start(inventory);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_inventory_buf_by_data(inventory, &from_map,
									   from, 100, &src));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_buf_inventory_buf_by_addr(inventory, &to_map, to, SIZE, &dst));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_workq_create(DEPTH, &workq));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dma_create(&dma));
	ctx = doca_dma_as_ctx(dma);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_dev_add(ctx, &dev));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_start(ctx));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_workq_add(ctx, workq));
}

void tearDown(void)
{
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_refcount_rm(src, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_refcount_rm(dst, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_workq_rm(ctx, workq));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_stop(ctx));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_dev_rm(ctx, &dev));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_workq_destroy(workq));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dma_destroy(dma));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_inventory_destroy(inventory));
}

static void test_numbers_that_programs_have_compiled_in(void)
{
	TEST_ASSERT_EQUAL_INT(65537, DOCA_DMA_JOB_MEMCPY);
	TEST_ASSERT_EQUAL_INT(0, DOCA_WORKQ_RETRIEVE_FLAGS_NONE);
	TEST_ASSERT_EQUAL_INT(1, DOCA_ACCESS_LOCAL_READ_WRITE);
	TEST_ASSERT_EQUAL_INT(0, DOCA_JOB_FLAGS_NONE);
	TEST_ASSERT_EQUAL_INT(0, DOCA_BUF_EXTENSION_NONE);
	TEST_ASSERT_EQUAL_size_t(24, sizeof(struct doca_job));
	TEST_ASSERT_EQUAL_size_t(8, offsetof(struct doca_job, ctx));
	TEST_ASSERT_EQUAL_size_t(24, offsetof(struct doca_dma_job_memcpy, dst_buff));
	TEST_ASSERT_EQUAL_size_t(32, offsetof(struct doca_dma_job_memcpy, src_buff));
	TEST_ASSERT_EQUAL_size_t(8, offsetof(struct doca_event, user_data));
	TEST_ASSERT_EQUAL_size_t(16, offsetof(struct doca_event, result));
	TEST_ASSERT_EQUAL_size_t(sizeof(doca_error_t), sizeof(struct doca_dma_memcpy_result));
}

/*
 * The queue copies the job, so the program can change its own job after submit.
 */
static void test_a_job_is_copied(void)
{
	struct doca_dma_job_memcpy job = job_of(src, dst, 3);

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_workq_submit(workq, &job.base));
	memset(&job, 0xff, sizeof(job));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, retrieve());
	TEST_ASSERT_EQUAL_UINT64(3, event.user_data.u64);
	TEST_ASSERT_EQUAL_MEMORY(from, to, 100);
}

/* The old names of functions of maps, inventories and lists of buffers. */
static void test_old_names_of_memory(void)
{
	static const size_t wrong[] = {0, 1, 2048, 4097, 12288};
	union doca_data data = {.u64 = 9}, got;
	struct doca_buf *more, *at;
	struct doca_mmap *map;
	uint16_t references;
	uint8_t yes;
	uint32_t n;
	size_t i;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_mmap_create(&data, &map));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_mmap_get_user_data(map, &got));
	TEST_ASSERT_EQUAL_UINT64(9, got.u64);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_mmap_start(map));
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
				      doca_mmap_populate(map, from, SIZE, wrong[i], NULL, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_mmap_populate(map, from, SIZE, 8192, NULL, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_buf_inventory_buf_by_addr(inventory, map, from, 10, &more));
	doca_buf_get_data_len(more, &i);
	TEST_ASSERT_EQUAL_size_t(0, i);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_list_chain(src, more));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_list_num_elements(src, &n));
	TEST_ASSERT_EQUAL_UINT32(2, n);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_list_next(src, &at));
	TEST_ASSERT_EQUAL_PTR(more, at);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_list_last(src, &at));
	TEST_ASSERT_EQUAL_PTR(more, at);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_list_is_first(src, &yes));
	TEST_ASSERT_EQUAL_UINT8(1, yes);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_list_is_last(src, &yes));
	TEST_ASSERT_EQUAL_UINT8(0, yes);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_is_in_list(src, &yes));
	TEST_ASSERT_EQUAL_UINT8(1, yes);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_list_unchain(src, more));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_refcount_add(more, &references));
	TEST_ASSERT_EQUAL_UINT16(1, references);
	/* returns the count before the call */
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_refcount_rm(more, &references));
	TEST_ASSERT_EQUAL_UINT16(2, references);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_refcount_rm(more, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_mmap_destroy(map));
}

/* One event for each job, in order, with its type, its user data and its result. */
static void test_each_job_has_one_event(void)
{
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_AGAIN, retrieve());
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, submit(7));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, submit(8));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, retrieve());
	TEST_ASSERT_EQUAL_INT(DOCA_DMA_JOB_MEMCPY, event.type);
	TEST_ASSERT_EQUAL_UINT64(7, event.user_data.u64);
	TEST_ASSERT_EQUAL_UINT64(DOCA_SUCCESS, event.result.u64);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, retrieve());
	TEST_ASSERT_EQUAL_UINT64(8, event.user_data.u64);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_AGAIN, retrieve());
	TEST_ASSERT_EQUAL_MEMORY(from, to, 100);
	TEST_ASSERT_EQUAL_MEMORY(from, to + 100, 100);
	TEST_ASSERT_EQUAL_UINT8(0, to[200]);
}

static void test_failed_job_is_io_failed_and_the_queue_goes_on(void)
{
	struct doca_dma_job_memcpy bad;
	struct doca_buf *empty;

	doca_buf_inventory_buf_by_addr(inventory, &from_map, from, 100, &empty);
	bad = job_of(empty, dst, 1);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_workq_submit(workq, &bad.base));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, submit(2));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IO_FAILED, retrieve());
	TEST_ASSERT_EQUAL_UINT64(1, event.user_data.u64);
	TEST_ASSERT_EQUAL_INT(DOCA_DMA_JOB_MEMCPY, event.type);
	TEST_ASSERT_EQUAL_UINT64(DOCA_ERROR_INVALID_VALUE, event.result.u64);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, retrieve());
	doca_buf_refcount_rm(empty, NULL);
}

static void test_queue_is_as_deep_as_created(void)
{
	uint32_t depth;
	int i, j;

	doca_workq_get_depth(workq, &depth);
	TEST_ASSERT_EQUAL_UINT32(DEPTH, depth);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_workq_set_depth(workq, 9));
	doca_buf_set_data(src, from, 1);
	for (i = 0; i < 5; i++) {
		for (j = 0; j < DEPTH; j++)
			TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, submit((uint64_t)j));
		TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NO_MEMORY, submit(9));
		for (j = 0; j < DEPTH; j++) {
			TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, retrieve());
			TEST_ASSERT_EQUAL_UINT64(j, event.user_data.u64);
		}
	}
}

static void test_errors_of_submit(void)
{
	struct doca_dma_job_memcpy job = job_of(src, dst, 1);
	struct doca_workq *other;

	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_workq_submit(NULL, &job.base));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_workq_submit(workq, NULL));
	job.base.type = 3;
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_workq_submit(workq, &job.base));
	job = job_of(NULL, dst, 1);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_workq_submit(workq, &job.base));
	job = job_of(src, dst, 1);
	doca_workq_create(1, &other);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_FOUND, doca_workq_submit(other, &job.base));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_FOUND, doca_ctx_workq_rm(ctx, other));
	doca_workq_destroy(other);
	doca_ctx_workq_rm(ctx, workq);
	doca_ctx_stop(ctx);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_workq_submit(workq, &job.base));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_ctx_workq_add(ctx, workq));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_ctx_workq_rm(ctx, workq));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_ctx_stop(ctx));
	doca_ctx_start(ctx);
	doca_ctx_workq_add(ctx, workq);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_workq_progress_retrieve(workq, NULL, 0));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_workq_progress_retrieve(NULL, &event, 0));
}

/*
 * Stop fails (it does not wait) while the context has a queue; removal of a queue fails while the
 * queue has jobs.
 */
static void test_teardown_in_a_wrong_order(void)
{
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_USE, doca_ctx_workq_add(ctx, workq));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_USE, doca_workq_destroy(workq));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_USE, doca_dma_destroy(dma));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_PERMITTED, doca_ctx_stop(ctx));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, submit(1));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_PERMITTED, doca_ctx_workq_rm(ctx, workq));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, retrieve());
}

static void test_one_queue_for_two_contexts(void)
{
	struct doca_dma *second;
	struct doca_dma_job_memcpy job = job_of(src, dst, 5);

	doca_dma_create(&second);
	doca_ctx_dev_add(doca_dma_as_ctx(second), &dev);
	doca_ctx_start(doca_dma_as_ctx(second));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_workq_add(doca_dma_as_ctx(second), workq));
	job.base.ctx = doca_dma_as_ctx(second);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_workq_submit(workq, &job.base));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_PERMITTED,
			      doca_ctx_workq_rm(doca_dma_as_ctx(second), workq));
	/* the queue has no job of this context */
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_workq_rm(ctx, workq));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, retrieve());
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_workq_rm(doca_dma_as_ctx(second), workq));
	doca_ctx_stop(doca_dma_as_ctx(second));
	doca_dma_destroy(second);
	doca_ctx_workq_add(ctx, workq);
}

static void test_devices_of_a_context(void)
{
	struct doca_dma *bare;
	struct doca_ctx *bare_ctx;

	doca_dma_create(&bare);
	bare_ctx = doca_dma_as_ctx(bare);
	/* the context has no device */
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_ctx_start(bare_ctx));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_dev_add(bare_ctx, &dev));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_USE, doca_ctx_dev_add(bare_ctx, &dev));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_ctx_dev_add(bare_ctx, &closed));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_FOUND, doca_ctx_dev_rm(bare_ctx, &other_dev));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_start(bare_ctx));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_ctx_start(bare_ctx));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_ctx_dev_add(bare_ctx, &other_dev));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_ctx_dev_rm(bare_ctx, &dev));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_stop(bare_ctx));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dma_destroy(bare));
}

/* A context can have 16 devices. */
static void test_too_many_devices(void)
{
	struct doca_dev devs[17];
	struct doca_dma *bare;
	int i;

	doca_dma_create(&bare);
	for (i = 0; i < 17; i++)
		devs[i] = dev;
	for (i = 0; i < 16; i++)
		TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
				      doca_ctx_dev_add(doca_dma_as_ctx(bare), &devs[i]));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NO_MEMORY,
			      doca_ctx_dev_add(doca_dma_as_ctx(bare), &devs[i]));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dma_destroy(bare));
}

static struct doca_dma *scarce_dma;
static struct doca_workq *scarce_workq;

static doca_error_t create_dma(void *arg)
{
	(void)arg;
	return doca_dma_create(&scarce_dma);
}

static void destroy_dma(void *arg)
{
	(void)arg;
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dma_destroy(scarce_dma));
}

static doca_error_t create_workq(void *arg)
{
	(void)arg;
	return doca_workq_create(DEPTH, &scarce_workq);
}

static void destroy_workq(void *arg)
{
	(void)arg;
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_workq_destroy(scarce_workq));
}

static doca_error_t make_deeper(void *arg)
{
	(void)arg;
	return doca_workq_set_depth(scarce_workq, 2 * DEPTH);
}

static void is_deeper(void *arg)
{
	uint32_t depth;

	(void)arg;
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_workq_get_depth(scarce_workq, &depth));
	TEST_ASSERT_EQUAL_UINT32(2 * DEPTH, depth);
}

static doca_error_t add_workq(void *arg)
{
	(void)arg;
	return doca_ctx_workq_add(ctx, scarce_workq);
}

static void rm_workq(void *arg)
{
	(void)arg;
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_workq_rm(ctx, scarce_workq));
}

static void test_without_memory(void)
{
	if (!scarce_can())
		TEST_IGNORE_MESSAGE("allocations cannot fail in this build");
	TEST_ASSERT_EQUAL_UINT(1, scarce_walk(DOCA_ERROR_NO_MEMORY, create_dma, destroy_dma, NULL));
	TEST_ASSERT_EQUAL_UINT(
		2, scarce_walk(DOCA_ERROR_NO_MEMORY, create_workq, destroy_workq, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, create_workq(NULL));
	TEST_ASSERT_EQUAL_UINT(1, scarce_walk(DOCA_ERROR_NO_MEMORY, make_deeper, is_deeper, NULL));
	TEST_ASSERT_EQUAL_UINT(1, scarce_walk(DOCA_ERROR_NO_MEMORY, add_workq, rm_workq, NULL));
	destroy_workq(NULL);
}

/* A queue with an event handle needs a file descriptor. */
static void test_without_file_descriptors(void)
{
	struct rlimit before, none;
	struct doca_workq *other;

	doca_workq_create(1, &other);
	TEST_ASSERT_EQUAL_INT(0, getrlimit(RLIMIT_NOFILE, &before));
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
	TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_NOFILE, &none));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_DRIVER, doca_workq_set_event_driven_enable(other, 1));
	TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_NOFILE, &before));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_workq_set_event_driven_enable(other, 1));
	doca_workq_destroy(other);
}

static void test_waiting_for_events(void)
{
	struct doca_workq *other;
	struct pollfd pfd = {.events = POLLIN};
	struct doca_dma_job_memcpy job = job_of(src, dst, 1);
	uint8_t enabled;

	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_workq_set_event_driven_enable(workq, 1));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_workq_get_event_handle(workq, &pfd.fd));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_workq_event_handle_arm(workq));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_workq_event_handle_clear(workq, 0));
	doca_ctx_get_event_driven_supported(ctx, &enabled);
	TEST_ASSERT_EQUAL_UINT8(1, enabled);
	doca_workq_create(1, &other);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_workq_set_event_driven_enable(other, 1));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_workq_get_event_driven_enable(other, &enabled));
	TEST_ASSERT_EQUAL_UINT8(1, enabled);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_workq_get_event_handle(other, &pfd.fd));
	doca_ctx_workq_add(ctx, other);
	doca_workq_event_handle_arm(other);
	TEST_ASSERT_EQUAL_INT(0, poll(&pfd, 1, 0));
	doca_workq_submit(other, &job.base);
	TEST_ASSERT_EQUAL_INT(1, poll(&pfd, 1, 0));
	doca_workq_event_handle_clear(other, pfd.fd);
	TEST_ASSERT_EQUAL_INT(0, poll(&pfd, 1, 0));
	doca_workq_event_handle_arm(other); /* the other queue still has an event */
	TEST_ASSERT_EQUAL_INT(1, poll(&pfd, 1, 0));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_workq_progress_retrieve(other, &event, 0));
	doca_ctx_workq_rm(ctx, other);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_workq_destroy(other));
}

static void test_capabilities_of_a_device(void)
{
	uint32_t n;
	uint64_t bytes;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dma_job_get_supported(&info, DOCA_DMA_JOB_MEMCPY));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_SUPPORTED,
			      doca_dma_job_get_supported(&info, (enum doca_dma_job_types)1));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_dma_job_get_supported(NULL, DOCA_DMA_JOB_MEMCPY));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dma_get_max_list_buf_num_elem(&info, &n));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dma_get_max_buf_size(&info, &bytes));
	TEST_ASSERT_GREATER_OR_EQUAL_UINT64(2 << 20, bytes);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_get_max_num_ctx(&n));
}

static void test_missing_arguments(void)
{
	struct doca_workq *other;

	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_workq_create(0, &other));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_workq_create(1, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_workq_destroy(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_workq_get_depth(workq, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_workq_set_depth(workq, 0));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_workq_set_event_driven_enable(NULL, 1));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_workq_get_event_driven_enable(workq, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_workq_event_handle_arm(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_workq_event_handle_clear(NULL, 0));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_dma_create(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_dma_destroy(NULL));
	TEST_ASSERT_NULL(doca_dma_as_ctx(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_ctx_dev_add(ctx, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_ctx_dev_rm(NULL, &dev));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_ctx_start(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_ctx_stop(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_ctx_workq_add(ctx, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_ctx_workq_rm(NULL, workq));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_ctx_get_max_num_ctx(NULL));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_numbers_that_programs_have_compiled_in);
	RUN_TEST(test_a_job_is_copied);
	RUN_TEST(test_old_names_of_memory);
	RUN_TEST(test_each_job_has_one_event);
	RUN_TEST(test_failed_job_is_io_failed_and_the_queue_goes_on);
	RUN_TEST(test_queue_is_as_deep_as_created);
	RUN_TEST(test_errors_of_submit);
	RUN_TEST(test_teardown_in_a_wrong_order);
	RUN_TEST(test_one_queue_for_two_contexts);
	RUN_TEST(test_devices_of_a_context);
	RUN_TEST(test_too_many_devices);
	RUN_TEST(test_without_memory);
	RUN_TEST(test_without_file_descriptors);
	RUN_TEST(test_waiting_for_events);
	RUN_TEST(test_capabilities_of_a_device);
	RUN_TEST(test_missing_arguments);
	return UNITY_END();
}
