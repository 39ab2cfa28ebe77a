/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The steps of the vendor's former guide to DMA with work queues: copies in one process, and copies
 * from and to another process.
 */
#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_dma.h>
#include <doca_mmap.h>

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unity.h"

#define OK(call) TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, (call))
#define STEP(call) \
	do { \
		if ((call) != DOCA_SUCCESS) \
			_exit(__LINE__ & 0x7f); \
	} while (0)

static const char text[] = "a text that goes a long way";

static struct doca_dev *dev;
static struct doca_mmap *src_mmap, *dst_mmap;
static struct doca_buf_inventory *inventory;
static struct doca_workq *workq;
static struct doca_dma *dma;
static struct doca_ctx *ctx;

/* Open the first device that can copy. */
static doca_error_t open_device(void)
{
	struct doca_devinfo **list;
	uint32_t n, i;
	doca_error_t result = doca_devinfo_list_create(&list, &n);

	if (result != DOCA_SUCCESS)
		return result;
	result = DOCA_ERROR_NOT_FOUND;
	for (i = 0; i < n && result != DOCA_SUCCESS; i++)
		if (doca_dma_job_get_supported(list[i], DOCA_DMA_JOB_MEMCPY) == DOCA_SUCCESS)
			result = doca_dev_open(list[i], &dev);
	doca_devinfo_list_destroy(list);
	return result;
}

static void make_map(struct doca_mmap **mmap, void *addr, size_t len, uint32_t permissions)
{
	OK(doca_mmap_create(NULL, mmap));
	OK(doca_mmap_set_memrange(*mmap, addr, len));
	OK(doca_mmap_dev_add(*mmap, dev));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_USE, doca_mmap_dev_add(*mmap, dev));
	OK(doca_mmap_set_permissions(*mmap, permissions));
	OK(doca_mmap_start(*mmap));
}

static void make_context(void)
{
	OK(doca_buf_inventory_create(NULL, 4, DOCA_BUF_EXTENSION_NONE, &inventory));
	OK(doca_workq_create(4, &workq));
	OK(doca_dma_create(&dma));
	ctx = doca_dma_as_ctx(dma);
	OK(doca_buf_inventory_start(inventory));
	OK(doca_ctx_dev_add(ctx, dev));
	OK(doca_ctx_start(ctx));
	OK(doca_ctx_workq_add(ctx, workq));
}

static void destroy_context(void)
{
	OK(doca_ctx_workq_rm(ctx, workq));
	OK(doca_ctx_stop(ctx));
	OK(doca_ctx_dev_rm(ctx, dev));
	OK(doca_workq_destroy(workq));
	OK(doca_dma_destroy(dma));
	OK(doca_buf_inventory_destroy(inventory));
	OK(doca_mmap_destroy(src_mmap));
	OK(doca_mmap_destroy(dst_mmap));
	OK(doca_dev_close(dev));
}

static void copy(const struct doca_buf *src, struct doca_buf *dst)
{
	const struct doca_dma_job_memcpy job = {
		.base = {.type = DOCA_DMA_JOB_MEMCPY, .flags = DOCA_JOB_FLAGS_NONE, .ctx = ctx},
		.dst_buff = dst,
		.src_buff = src,
	};
	struct doca_event event;
	doca_error_t result;

	OK(doca_workq_submit(workq, &job.base));
	do
		result = doca_workq_progress_retrieve(workq, &event,
						      DOCA_WORKQ_RETRIEVE_FLAGS_NONE);
	while (result == DOCA_ERROR_AGAIN);
	OK(result);
	TEST_ASSERT_EQUAL_INT(DOCA_DMA_JOB_MEMCPY, event.type);
	OK((doca_error_t)event.result.u64);
}

static void test_local_copy(void)
{
	static char src_memory[64], dst_memory[64];
	struct doca_buf *src, *more, *dst;
	uint16_t references;

	strcpy(src_memory, text);
	OK(open_device());
	make_map(&src_mmap, src_memory, sizeof(src_memory), DOCA_ACCESS_LOCAL_READ_ONLY);
	make_map(&dst_mmap, dst_memory, sizeof(dst_memory), DOCA_ACCESS_LOCAL_READ_WRITE);
	make_context();
	OK(doca_buf_inventory_buf_by_data(inventory, src_mmap, src_memory, 10, &src));
	OK(doca_buf_inventory_buf_by_addr(inventory, src_mmap, src_memory, sizeof(src_memory),
					  &more));
	OK(doca_buf_set_data(more, src_memory + 10, sizeof(text) - 10)); /* a part of a buffer */
	OK(doca_buf_list_chain(src, more));
	OK(doca_buf_inventory_buf_by_addr(inventory, dst_mmap, dst_memory, sizeof(dst_memory),
					  &dst));
	copy(src, dst);
	TEST_ASSERT_EQUAL_STRING(text, dst_memory);
	OK(doca_buf_refcount_rm(src, NULL)); /* releases the whole list */
	OK(doca_buf_refcount_rm(dst, &references));
	TEST_ASSERT_EQUAL_UINT16(1, references);
	destroy_context();
}

/* -- two processes: the exporter sends its descriptor and addresses -- */

struct told {
	char desc[512];
	size_t desc_len;
	char *addr;
	size_t len;
};

/* The exporter; exits with 0 if the other side has read and then written its memory. */
static void export_memory(int in, int out)
{
	struct told told = {.len = 4096};
	void *desc;
	char letter;

	told.addr = malloc(told.len);
	strcpy(told.addr, text);
	STEP(open_device());
	STEP(doca_mmap_create(NULL, &src_mmap));
	STEP(doca_mmap_start(src_mmap)); /* the older order: memory is added after start */
	STEP(doca_mmap_dev_add(src_mmap, dev));
	STEP(doca_mmap_populate(src_mmap, told.addr, told.len, 4096, NULL, NULL));
	STEP(doca_mmap_export(src_mmap, dev, &desc, &told.desc_len));
	if (told.desc_len > sizeof(told.desc))
		_exit(126);
	memcpy(told.desc, desc, told.desc_len);
	free(desc);
	if (write(out, &told, sizeof(told)) != sizeof(told) || read(in, &letter, 1) != 1)
		_exit(125);
	if (strcmp(told.addr + 100, text) != 0)
		_exit(124);
	STEP(doca_mmap_stop(src_mmap));
	STEP(doca_mmap_destroy(src_mmap));
	STEP(doca_dev_close(dev));
	free(told.addr);
	_exit(0);
}

static void test_remote_copy(void)
{
	static char memory[64];
	struct doca_buf *near_buf, *far_buf;
	struct told told;
	int in[2], out[2], status;
	pid_t exporter;

	TEST_ASSERT_EQUAL_INT(0, pipe(in));
	TEST_ASSERT_EQUAL_INT(0, pipe(out));
	exporter = fork();
	if (exporter == 0)
		export_memory(in[0], out[1]);
	close(out[1]);
	TEST_ASSERT_EQUAL_INT(sizeof(told), read(out[0], &told, sizeof(told)));
	OK(open_device());
	make_map(&dst_mmap, memory, sizeof(memory), DOCA_ACCESS_LOCAL_READ_WRITE);
	OK(doca_mmap_create_from_export(NULL, told.desc, told.desc_len, dev, &src_mmap));
	make_context();
	OK(doca_buf_inventory_buf_by_data(inventory, src_mmap, told.addr, sizeof(text), &far_buf));
	OK(doca_buf_inventory_buf_by_addr(inventory, dst_mmap, memory, sizeof(memory), &near_buf));
	copy(far_buf, near_buf);
	TEST_ASSERT_EQUAL_STRING(text, memory);
	OK(doca_buf_refcount_rm(far_buf, NULL));
	OK(doca_buf_inventory_buf_by_addr(inventory, src_mmap, told.addr + 100, sizeof(text),
					  &far_buf));
	copy(near_buf, far_buf);
	OK(doca_buf_refcount_rm(far_buf, NULL));
	OK(doca_buf_refcount_rm(near_buf, NULL));
	destroy_context();
	TEST_ASSERT_EQUAL_INT(1, write(in[1], "x", 1));
	TEST_ASSERT_EQUAL_INT(exporter, waitpid(exporter, &status, 0));
	TEST_ASSERT_EQUAL_INT(0, status);
	close(in[0]);
	close(in[1]);
	close(out[0]);
}

static void test_names_of_errors(void)
{
	TEST_ASSERT_EQUAL_STRING(doca_error_get_descr(DOCA_ERROR_AGAIN),
				 doca_get_error_string(DOCA_ERROR_AGAIN));
	TEST_ASSERT_EQUAL_STRING("DOCA_ERROR_AGAIN", doca_get_error_name(DOCA_ERROR_AGAIN));
}

int main(void)
{
	const char *plugins = getenv("GANTRY_PLUGINS");

	if (plugins)
		setenv("GANTRY_PLUGIN_PATH", plugins, 1);
	UNITY_BEGIN();
	RUN_TEST(test_remote_copy); /* first: it forks, before anything is open */
	RUN_TEST(test_local_copy);
	RUN_TEST(test_names_of_errors);
	return UNITY_END();
}
