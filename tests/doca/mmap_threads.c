/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several threads use one map, each with separate buffers, engine and context, while another thread
 * exports the map.
 */
#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_dma.h>
#include <doca_mmap.h>
#include <doca_pe.h>

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "run_dir.h"
#include "unity.h"

#define WORKERS 2
#define PIECE 4096u
#define COPIES 300u /* copies before the export, and after it */
#define OK(call) TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, (call))

struct worker {
	pthread_t thread;
	struct doca_mmap *from, *to;
	char *src, *dst;           /* addresses in the maps */
	unsigned n_done, n_failed; /* __atomic */
};

static _Alignas(4096) char memory[2 * WORKERS * PIECE];
static struct doca_dev *dev;
static bool is_over; /* __atomic */

void setUp(void)
{
	struct doca_devinfo **list;
	uint32_t n;

	OK(doca_devinfo_create_list(&list, &n));
	OK(doca_dev_open(list[0], &dev));
	OK(doca_devinfo_destroy_list(list));
	memset(memory, 7, sizeof(memory));
	is_over = false;
}

void tearDown(void)
{
	OK(doca_dev_close(dev));
}

static void on_done(struct doca_dma_task_memcpy *task, union doca_data task_data,
		    union doca_data ctx_data)
{
	struct worker *w = ctx_data.ptr;

	(void)task_data;
	doca_buf_reset_data_len(doca_dma_task_memcpy_get_dst(task));
	__atomic_add_fetch(&w->n_done, 1, __ATOMIC_RELEASE);
	if (__atomic_load_n(&is_over, __ATOMIC_ACQUIRE) ||
	    doca_task_submit(doca_dma_task_memcpy_as_task(task)) != DOCA_SUCCESS)
		doca_task_free(doca_dma_task_memcpy_as_task(task));
}

static void on_failed(struct doca_dma_task_memcpy *task, union doca_data task_data,
		      union doca_data ctx_data)
{
	struct worker *w = ctx_data.ptr;

	(void)task_data;
	__atomic_add_fetch(&w->n_failed, 1, __ATOMIC_RELEASE);
	doca_task_free(doca_dma_task_memcpy_as_task(task));
}

static doca_error_t begin(struct worker *w, struct doca_pe *pe, struct doca_dma *dma)
{
	struct doca_ctx *ctx = doca_dma_as_ctx(dma);
	doca_error_t result = doca_dma_task_memcpy_set_conf(dma, on_done, on_failed, 1);

	if (result == DOCA_SUCCESS)
		result = doca_ctx_set_user_data(ctx, (union doca_data){.ptr = w});
	if (result == DOCA_SUCCESS)
		result = doca_pe_connect_ctx(pe, ctx);
	return result == DOCA_SUCCESS ? doca_ctx_start(ctx) : result;
}

/* A worker: copies the same range repeatedly until is_over is set. */
static void *copy(void *arg)
{
	struct worker *w = arg;
	struct doca_buf_inventory *inventory = NULL;
	struct doca_dma_task_memcpy *task;
	struct doca_buf *src, *dst;
	struct doca_dma *dma = NULL;
	struct doca_pe *pe = NULL;
	size_t left = 1;

	if (doca_buf_inventory_create(2, &inventory) || doca_buf_inventory_start(inventory) ||
	    doca_pe_create(&pe) || doca_dma_create(dev, &dma) || begin(w, pe, dma) ||
	    doca_buf_inventory_buf_get_by_data(inventory, w->from, w->src, PIECE, &src) ||
	    doca_buf_inventory_buf_get_by_addr(inventory, w->to, w->dst, PIECE, &dst) ||
	    doca_dma_task_memcpy_alloc_init(dma, src, dst, (union doca_data){.u64 = 0}, &task) ||
	    doca_task_submit(doca_dma_task_memcpy_as_task(task))) {
		__atomic_add_fetch(&w->n_failed, 1, __ATOMIC_RELEASE);
		return NULL;
	}
	while (left > 0) {
		doca_pe_progress(pe);
		doca_pe_get_num_inflight_tasks(pe, &left);
	}
	doca_buf_dec_refcount(src, NULL);
	doca_buf_dec_refcount(dst, NULL);
	while (doca_ctx_stop(doca_dma_as_ctx(dma)) == DOCA_ERROR_IN_PROGRESS)
		doca_pe_progress(pe);
	doca_dma_destroy(dma);
	doca_pe_destroy(pe);
	doca_buf_inventory_destroy(inventory);
	return NULL;
}

static void wait_for_copies(struct worker *workers, unsigned n)
{
	for (int i = 0; i < WORKERS; i++)
		while (__atomic_load_n(&workers[i].n_done, __ATOMIC_ACQUIRE) < n &&
		       __atomic_load_n(&workers[i].n_failed, __ATOMIC_ACQUIRE) == 0)
			sched_yield();
}

static struct doca_mmap *make_map(void)
{
	struct doca_mmap *map;

	OK(doca_mmap_create(&map));
	OK(doca_mmap_add_dev(map, dev));
	OK(doca_mmap_set_permissions(map,
				     DOCA_ACCESS_FLAG_PCI_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_READ));
	OK(doca_mmap_set_memrange(map, memory, sizeof(memory)));
	OK(doca_mmap_enable_thread_safety(map));
	OK(doca_mmap_start(map));
	return map;
}

/* Export `exported` while each worker copies, and check that no copy failed. */
static void copy_while_exporting(struct doca_mmap *from, struct doca_mmap *to,
				 struct doca_mmap *exported)
{
	struct worker workers[WORKERS];
	const void *desc;
	size_t length;

	for (unsigned i = 0; i < WORKERS; i++) {
		workers[i] = (struct worker){.from = from,
					     .to = to,
					     .src = memory + i * PIECE,
					     .dst = memory + (WORKERS + i) * PIECE};
		TEST_ASSERT_EQUAL_INT(0,
				      pthread_create(&workers[i].thread, NULL, copy, &workers[i]));
	}
	wait_for_copies(workers, COPIES);
	OK(doca_mmap_export_rdma(exported, dev, &desc, &length));
	wait_for_copies(workers, 2 * COPIES);
	__atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
	for (int i = 0; i < WORKERS; i++) {
		TEST_ASSERT_EQUAL_INT(0, pthread_join(workers[i].thread, NULL));
		TEST_ASSERT_EQUAL_UINT(0, workers[i].n_failed);
	}
	TEST_ASSERT_EACH_EQUAL_CHAR(7, memory, sizeof(memory));
}

static void a_map_is_exported_while_threads_copy_within_it(void)
{
	struct doca_mmap *map = make_map();

	copy_while_exporting(map, map, map);
	OK(doca_mmap_destroy(map));
}

static void imported_map_is_exported_while_threads_copy_from_it(void)
{
	struct doca_mmap *map = make_map(), *imported;
	const void *desc;
	size_t length;

	OK(doca_mmap_export_pci(map, dev, &desc, &length));
	OK(doca_mmap_create_from_export(NULL, desc, length, dev, &imported));
	OK(doca_mmap_enable_thread_safety(imported));
	copy_while_exporting(imported, map, imported);
	OK(doca_mmap_destroy(imported));
	OK(doca_mmap_destroy(map));
}

int main(void)
{
	int rc;

	make_run_dir();
	UNITY_BEGIN();
	RUN_TEST(a_map_is_exported_while_threads_copy_within_it);
	RUN_TEST(imported_map_is_exported_while_threads_copy_from_it);
	rc = UNITY_END();
	remove_run_dir();
	return rc;
}
