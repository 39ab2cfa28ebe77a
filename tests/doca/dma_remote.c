/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DMA to and from memory of another process, which exports it and then blocks in read(), so that it
 * makes no progress. The tests use only the public interface.
 */
#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_dma.h>
#include <doca_mmap.h>
#include <doca_pe.h>

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unity.h"

#define OK(call) TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, (call))

enum { SIZE = 100000, SHIFT = 77, DESC_MAX = 512, DEADLINE_S = 10 };

/* Message from the exporter to the importer. */
struct told {
	char desc[DESC_MAX];
	size_t desc_len;
	void *addr;
};

/* Each test has one exporter; all are forked before the test program opens a device. */
static struct exporter {
	uint32_t access;
	pid_t pid;
	int to, from;
} exporters[] = {
	{.access = DOCA_ACCESS_FLAG_PCI_READ_ONLY},
	{.access = DOCA_ACCESS_FLAG_PCI_READ_WRITE},
	{.access = DOCA_ACCESS_FLAG_PCI_READ_ONLY},
	{.access = DOCA_ACCESS_FLAG_PCI_READ_WRITE},
};

enum { N_EXPORTERS = sizeof(exporters) / sizeof(exporters[0]) };

static struct exporter *exporter;
static struct doca_dev *dev;
static struct doca_mmap *far_map, *map;
static struct doca_buf_inventory *inventory;
static struct doca_buf *far_buf, *buf;
static struct doca_pe *pe;
static struct doca_dma *dma;
static uint8_t *memory;
static int n_done, n_error;
static doca_error_t status;

static uint8_t pattern(size_t i)
{
	return (uint8_t)(i * 13 + i / 256 + 1);
}

static void open_device(void)
{
	struct doca_devinfo **list;
	uint32_t n;

	if (doca_devinfo_create_list(&list, &n) != DOCA_SUCCESS || n == 0 ||
	    doca_dev_open(list[0], &dev) != DOCA_SUCCESS)
		abort();
	doca_devinfo_destroy_list(list);
}

/*
 * -- the exporter: 'w' fills its memory anew, 'c' checks it against what the test wrote, end of
 * file ends it --
 */

static void fill(uint8_t *where, uint8_t add)
{
	size_t i;

	for (i = 0; i < SIZE; i++)
		where[i] = (uint8_t)(pattern(i) + add);
}

static bool is_filled(const uint8_t *where, uint8_t add)
{
	size_t i;

	for (i = 0; i < SIZE; i++)
		if (where[i] != (uint8_t)(pattern(i) + add))
			return false;
	return true;
}

static void export_memory(int in, int out, uint32_t access)
{
	uint8_t *mine = (uint8_t *)malloc(SIZE + SHIFT) + SHIFT;
	struct told told = {.addr = mine};
	const void *desc;
	char letter;

	open_device();
	fill(mine, 0);
	if (doca_mmap_create(&map) != DOCA_SUCCESS || doca_mmap_add_dev(map, dev) != DOCA_SUCCESS ||
	    doca_mmap_set_permissions(map, access) != DOCA_SUCCESS ||
	    doca_mmap_set_memrange(map, mine, SIZE) != DOCA_SUCCESS ||
	    doca_mmap_start(map) != DOCA_SUCCESS ||
	    doca_mmap_export_pci(map, dev, &desc, &told.desc_len) != DOCA_SUCCESS ||
	    told.desc_len > DESC_MAX)
		_exit(1);
	memcpy(told.desc, desc, told.desc_len);
	if (write(out, &told, sizeof(told)) != sizeof(told))
		_exit(1);
	while (read(in, &letter, 1) == 1) {
		if (letter == 'w')
			fill(mine, 100);
		else
			letter = is_filled(mine, 50) ? 'y' : 'n';
		if (write(out, &letter, 1) != 1)
			_exit(1);
	}
	_exit(0);
}

static char ask(char letter)
{
	TEST_ASSERT_EQUAL_INT(1, write(exporter->to, &letter, 1));
	TEST_ASSERT_EQUAL_INT(1, read(exporter->from, &letter, 1));
	return letter;
}

static void fork_exporters(void)
{
	int i, j;

	for (i = 0; i < N_EXPORTERS; i++) {
		int in[2], out[2];

		if (pipe(in) != 0 || pipe(out) != 0)
			abort();
		exporters[i].to = in[1];
		exporters[i].from = out[0];
		exporters[i].pid = fork();
		if (exporters[i].pid == 0) {
			for (j = 0; j <= i; j++)
				close(exporters[j].to);
			export_memory(in[0], out[1], exporters[i].access);
		}
		close(in[0]);
		close(out[1]);
	}
}

/* -- the importer -- */

static void on_end(struct doca_dma_task_memcpy *task, union doca_data task_user_data,
		   union doca_data ctx_user_data)
{
	(void)task_user_data;
	(void)ctx_user_data;
	status = doca_task_get_status(doca_dma_task_memcpy_as_task(task));
	if (status == DOCA_SUCCESS)
		n_done++;
	else
		n_error++;
	doca_task_free(doca_dma_task_memcpy_as_task(task));
}

static void import_memory(const struct told *told)
{
	open_device();
	memory = calloc(1, SIZE);
	OK(doca_mmap_create(&map));
	OK(doca_mmap_add_dev(map, dev));
	OK(doca_mmap_set_memrange(map, memory, SIZE));
	OK(doca_mmap_start(map));
	OK(doca_mmap_create_from_export(NULL, told->desc, told->desc_len, dev, &far_map));
	OK(doca_buf_inventory_create(4, &inventory));
	OK(doca_buf_inventory_start(inventory));
	OK(doca_buf_inventory_buf_get_by_addr(inventory, far_map, told->addr, SIZE, &far_buf));
	OK(doca_buf_inventory_buf_get_by_addr(inventory, map, memory, SIZE, &buf));
	OK(doca_pe_create(&pe));
	OK(doca_dma_create(dev, &dma));
	OK(doca_dma_task_memcpy_set_conf(dma, on_end, on_end, 2));
	OK(doca_pe_connect_ctx(pe, doca_dma_as_ctx(dma)));
	OK(doca_ctx_start(doca_dma_as_ctx(dma)));
}

static void begin(int i)
{
	struct told told;

	n_done = n_error = 0;
	exporter = &exporters[i];
	TEST_ASSERT_EQUAL_INT(sizeof(told), read(exporter->from, &told, sizeof(told)));
	import_memory(&told);
}

static void end(void)
{
	doca_ctx_stop(doca_dma_as_ctx(dma));
	while (doca_pe_progress(pe))
		;
	OK(doca_dma_destroy(dma));
	OK(doca_pe_destroy(pe));
	OK(doca_buf_dec_refcount(buf, NULL));
	OK(doca_buf_dec_refcount(far_buf, NULL));
	OK(doca_buf_inventory_destroy(inventory));
	OK(doca_mmap_destroy(far_map));
	OK(doca_mmap_destroy(map));
	OK(doca_dev_close(dev));
	free(memory);
	close(exporter->to);
	close(exporter->from);
	if (exporter->pid)
		waitpid(exporter->pid, NULL, 0);
}

/* Copy all data of src to dst. Returns the status of the task. */
static doca_error_t copy(struct doca_buf *src, struct doca_buf *dst)
{
	const union doca_data none = {.u64 = 0};
	struct doca_dma_task_memcpy *task;
	void *data;

	OK(doca_buf_get_data(src, &data));
	OK(doca_buf_set_data(src, data, SIZE));
	OK(doca_buf_reset_data_len(dst));
	OK(doca_dma_task_memcpy_alloc_init(dma, src, dst, none, &task));
	OK(doca_task_submit(doca_dma_task_memcpy_as_task(task)));
	while (doca_pe_progress(pe))
		;
	return status;
}

/*
 * MUST: DMA can read the memory of a blocked process, also data that the process writes after the
 * export.
 */
static void test_read_from_a_process_that_sleeps(void)
{
	begin(0);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, copy(far_buf, buf));
	TEST_ASSERT_TRUE(is_filled(memory, 0));
	ask('w');
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, copy(far_buf, buf));
	TEST_ASSERT_TRUE(is_filled(memory, 100));
	TEST_ASSERT_EQUAL_INT(2, n_done);
	end();
}

static void test_write_into_a_process_that_sleeps(void)
{
	begin(1);
	fill(memory, 50);
	TEST_ASSERT_EQUAL_INT('n', ask('c'));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, copy(buf, far_buf));
	TEST_ASSERT_EQUAL_INT('y', ask('c'));
	end();
}

static void test_write_to_read_only_memory_fails(void)
{
	enum doca_ctx_states state;

	begin(2);
	fill(memory, 50);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_PERMITTED, copy(buf, far_buf));
	TEST_ASSERT_EQUAL_INT(1, n_error);
	TEST_ASSERT_EQUAL_INT('n', ask('c'));
	doca_ctx_get_state(doca_dma_as_ctx(dma), &state);
	TEST_ASSERT_EQUAL_INT(DOCA_CTX_STATE_IDLE, state);
	end();
}

static time_t seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* Tasks fail once the library has detected that the owner ended; until then the memory is valid. */
static void test_copy_fails_after_the_owner_is_killed(void)
{
	const time_t deadline = seconds() + DEADLINE_S;

	begin(3);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, copy(far_buf, buf));
	kill(exporter->pid, SIGKILL);
	waitpid(exporter->pid, NULL, 0);
	exporter->pid = 0;
	while (copy(far_buf, buf) == DOCA_SUCCESS)
		TEST_ASSERT_LESS_THAN_INT64(deadline, seconds());
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IO_FAILED, status);
	TEST_ASSERT_EQUAL_INT(1, n_error);
	end();
}

int main(void)
{
	const char *plugins = getenv("GANTRY_PLUGINS");

	if (plugins)
		setenv("GANTRY_PLUGIN_PATH", plugins, 1);
	fork_exporters();
	UNITY_BEGIN();
	RUN_TEST(test_read_from_a_process_that_sleeps);
	RUN_TEST(test_write_into_a_process_that_sleeps);
	RUN_TEST(test_write_to_read_only_memory_fails);
	RUN_TEST(test_copy_fails_after_the_owner_is_killed);
	return UNITY_END();
}
