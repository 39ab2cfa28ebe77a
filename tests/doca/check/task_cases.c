/* SPDX-License-Identifier: BSD-3-Clause */
/* task_cases.c - contexts, engines and tasks */
#include "cases.h"

#include <doca_graph.h>
#include <doca_sync_event.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

CASE(destroy_in_use)
{
	struct doca_pe *pe;
	struct doca_graph *graph;
	struct doca_graph_instance *instance;
	struct dma d;
	struct doca_graph_node *node;

	dma_start(&d);
	pe = d.pe;
	MUST(doca_graph_create(pe, &graph));
	MUST(doca_graph_node_create_from_ctx(graph, d.ctx, &node));
	MUST(doca_graph_set_conf(graph, (doca_graph_completion_cb_t)abort,
				 (doca_graph_completion_cb_t)abort, 2));
	MUST(doca_graph_start(graph));
	MUST(doca_graph_instance_create(graph, &instance));
	if (bad)
		(void)doca_graph_destroy(graph);
	MUST(doca_graph_instance_destroy(instance));
	MUST(doca_graph_stop(graph));
	MUST(doca_graph_destroy(graph));
	dma_close(&d);
}

CASE(destroy_running)
{
	struct dma d;

	dma_start(&d);
	if (bad)
		(void)doca_dma_destroy(d.dma);
	dma_close(&d);
}

CASE(engine_destroyed_early)
{
	struct dma d;

	dma_open(&d);
	if (bad)
		(void)doca_pe_destroy(d.pe);
	dma_close(&d);
}

CASE(configure_started)
{
	struct dma d;

	dma_open(&d);
	if (bad)
		MUST(doca_ctx_start(d.ctx));
	(void)doca_dma_task_memcpy_set_conf(d.dma, (doca_dma_task_memcpy_completion_cb_t)abort,
					    (doca_dma_task_memcpy_completion_cb_t)abort, 8);
	dma_close(&d);
}

CASE(start_started)
{
	struct dma d;

	dma_start(&d);
	if (bad)
		(void)doca_ctx_start(d.ctx);
	dma_close(&d);
}

static void bare_dma(bool engine, bool tasks)
{
	struct doca_dev *dev = open_device("03:00.0");
	struct doca_pe *pe;
	struct doca_dma *dma;

	MUST(doca_pe_create(&pe));
	MUST(doca_dma_create(dev, &dma));
	if (engine)
		MUST(doca_pe_connect_ctx(pe, doca_dma_as_ctx(dma)));
	if (tasks)
		MUST(doca_dma_task_memcpy_set_conf(dma, (doca_dma_task_memcpy_completion_cb_t)abort,
						   (doca_dma_task_memcpy_completion_cb_t)abort, 1));
	(void)doca_ctx_start(doca_dma_as_ctx(dma));
	(void)doca_ctx_stop(doca_dma_as_ctx(dma));
	MUST(doca_dma_destroy(dma));
	MUST(doca_pe_destroy(pe));
	MUST(doca_dev_close(dev));
}

CASE(start_without_engine)
{
	bare_dma(!bad, true);
}

CASE(start_without_tasks)
{
	bare_dma(true, !bad);
}

CASE(connect_started)
{
	struct dma d;

	dma_open(&d);
	if (bad) {
		MUST(doca_ctx_start(d.ctx));
		(void)doca_pe_connect_ctx(d.pe, d.ctx);
	}
	dma_close(&d);
}

CASE(connect_connected)
{
	struct dma d;

	dma_open(&d);
	if (bad)
		(void)doca_pe_connect_ctx(d.pe, d.ctx);
	dma_close(&d);
}

CASE(allocate_idle)
{
	struct doca_dma_task_memcpy *task = NULL;
	struct dma d;

	dma_open(&d);
	if (!bad)
		MUST(doca_ctx_start(d.ctx));
	(void)doca_dma_task_memcpy_alloc_init(d.dma, NULL, NULL, (union doca_data){.u64 = 0},
					      &task);
	if (task)
		doca_task_free(doca_dma_task_memcpy_as_task(task));
	dma_close(&d);
}

CASE(submit_not_running)
{
	struct dma d;

	dma_task(&d);
	if (bad)
		(void)doca_ctx_stop(d.ctx);
	(void)doca_task_submit(d.base);
	if (!bad)
		dma_wait(&d);
	dma_free(&d);
	dma_close(&d);
}

CASE(submit_submitted)
{
	struct dma d;

	dma_submit(&d);
	if (bad)
		(void)doca_task_submit(d.base);
	dma_wait(&d);
	dma_free(&d);
	dma_close(&d);
}

CASE(change_in_flight)
{
	struct dma d;

	dma_submit(&d);
	if (bad)
		doca_dma_task_memcpy_set_dst(d.task, d.dst);
	dma_wait(&d);
	if (!bad)
		doca_dma_task_memcpy_set_dst(d.task, d.dst);
	dma_free(&d);
	dma_close(&d);
}

CASE(result_in_flight)
{
	struct dma d;

	dma_submit(&d);
	if (bad)
		(void)doca_task_get_status(d.base);
	dma_wait(&d);
	(void)doca_task_get_status(d.base);
	dma_free(&d);
	dma_close(&d);
}

CASE(task_freed_in_flight)
{
	struct dma d;

	dma_submit(&d);
	if (!bad)
		dma_wait(&d);
	doca_task_free(d.base);
	(void)doca_pe_progress(d.pe);
	MUST(doca_buf_dec_refcount(d.src, NULL));
	MUST(doca_buf_dec_refcount(d.dst, NULL));
	dma_close(&d);
}

CASE(buffer_released_in_flight)
{
	struct dma d;

	dma_submit(&d);
	if (bad)
		(void)doca_buf_dec_refcount(d.src, NULL);
	dma_wait(&d);
	doca_task_free(d.base);
	if (!bad)
		MUST(doca_buf_dec_refcount(d.src, NULL));
	MUST(doca_buf_dec_refcount(d.dst, NULL));
	dma_close(&d);
}

CASE(event_not_started)
{
	struct doca_dev *dev = open_device("03:00.0");
	struct doca_sync_event *event;
	uint64_t value;

	MUST(doca_sync_event_create(&event));
	MUST(doca_sync_event_add_publisher_location_cpu(event, dev));
	MUST(doca_sync_event_add_subscriber_location_cpu(event, dev));
	if (!bad)
		MUST(doca_sync_event_start(event));
	(void)doca_sync_event_get(event, &value);
	if (!bad)
		MUST(doca_sync_event_stop(event));
	MUST(doca_sync_event_destroy(event));
	MUST(doca_dev_close(dev));
}

static struct doca_pe *own_engine;
static bool is_bad, destroys;

static void in_callback(struct doca_dma_task_memcpy *task, union doca_data a, union doca_data b)
{
	(void)task, (void)a, (void)b;
	if (is_bad && destroys)
		(void)doca_pe_destroy(own_engine);
	else if (is_bad)
		(void)doca_pe_progress(own_engine);
	n_done++;
}

static void run_callback(bool bad, bool destroy)
{
	struct dma d;

	is_bad = bad;
	destroys = destroy;
	dma_open(&d);
	own_engine = d.pe;
	MUST(doca_dma_task_memcpy_set_conf(d.dma, in_callback, in_callback, 4));
	MUST(doca_ctx_start(d.ctx));
	MUST(doca_buf_inventory_buf_get_by_data(d.inventory, d.map, memory, 64, &d.src));
	MUST(doca_buf_inventory_buf_get_by_addr(d.inventory, d.map, memory + 4096, 64, &d.dst));
	MUST(doca_dma_task_memcpy_alloc_init(d.dma, d.src, d.dst, (union doca_data){.u64 = 0},
					     &d.task));
	d.base = doca_dma_task_memcpy_as_task(d.task);
	n_done = 0;
	MUST(doca_task_submit(d.base));
	dma_wait(&d);
	dma_free(&d);
	dma_close(&d);
}

CASE(progress_in_callback)
{
	run_callback(bad, false);
}

CASE(engine_destroyed_in_callback)
{
	run_callback(bad, true);
}

/* -- a graph of one copy and one function -- */

static doca_error_t in_node(void *cookie)
{
	const struct dma *d = cookie;

	if (is_bad)
		(void)doca_pe_progress(d->pe);
	return DOCA_SUCCESS;
}

static void graph_ended(struct doca_graph_instance *instance, union doca_data a, union doca_data b)
{
	(void)instance, (void)a, (void)b;
	n_done++;
}

CASE(user_node)
{
	struct doca_graph_instance *instance;
	struct doca_graph_node *copy, *function;
	struct doca_graph *graph;
	struct dma d;

	is_bad = bad;
	dma_task(&d);
	MUST(doca_graph_create(d.pe, &graph));
	MUST(doca_graph_set_conf(graph, graph_ended, graph_ended, 1));
	MUST(doca_graph_node_create_from_ctx(graph, d.ctx, &copy));
	MUST(doca_graph_node_create_from_user(graph, in_node, &function));
	MUST(doca_graph_add_dependency(graph, copy, function));
	MUST(doca_graph_start(graph));
	MUST(doca_graph_instance_create(graph, &instance));
	MUST(doca_graph_instance_set_ctx_node_data(instance, copy, d.base));
	MUST(doca_graph_instance_set_user_node_data(instance, function, &d));
	MUST(doca_graph_instance_submit(instance));
	dma_wait(&d);
	MUST(doca_graph_instance_destroy(instance));
	MUST(doca_graph_stop(graph));
	MUST(doca_graph_destroy(graph));
	dma_free(&d);
	dma_close(&d);
}

CASE(error_ignored)
{
	struct dma d;

	dma_open(&d);
	if (bad)
		(void)doca_dma_task_memcpy_set_conf(d.dma, NULL, NULL, 8);
	(void)doca_ctx_start(d.ctx);
	dma_close(&d);
}

/* -- buffers of tasks -- */

static void copy(struct doca_mmap *map, struct dma *d, size_t src, size_t src_len, size_t dst,
		 size_t dst_len)
{
	MUST(doca_buf_inventory_buf_get_by_data(d->inventory, map, memory + src, src_len, &d->src));
	MUST(doca_buf_inventory_buf_get_by_addr(d->inventory, map, memory + dst, dst_len, &d->dst));
	MUST(doca_dma_task_memcpy_alloc_init(d->dma, d->src, d->dst, (union doca_data){.u64 = 0},
					     &d->task));
	d->base = doca_dma_task_memcpy_as_task(d->task);
	n_done = 0;
	if (doca_task_submit(d->base) == DOCA_SUCCESS)
		dma_wait(d);
	dma_free(d);
}

CASE(empty_source)
{
	struct dma d;

	dma_start(&d);
	copy(d.map, &d, 0, bad ? 0 : 64, 4096, 64);
	dma_close(&d);
}

CASE(destination_too_small)
{
	struct dma d;

	dma_start(&d);
	copy(d.map, &d, 0, 64, 4096, bad ? 63 : 64);
	dma_close(&d);
}

/* The test limits a task to 4096 bytes. */
CASE(task_too_long)
{
	struct dma d;

	dma_start(&d);
	copy(d.map, &d, 0, bad ? 4097 : 4096, N_BYTES / 2, 8192);
	dma_close(&d);
}

CASE(map_without_device)
{
	struct doca_mmap *map;
	struct dma d;

	dma_start(&d);
	map = new_map(bad ? NULL : d.dev, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, true);
	copy(map, &d, 0, 64, 4096, 64);
	MUST(doca_mmap_destroy(map));
	dma_close(&d);
}

CASE(destination_read_only)
{
	struct doca_mmap *map;
	struct dma d;

	dma_start(&d);
	map = new_map(d.dev,
		      bad ? DOCA_ACCESS_FLAG_LOCAL_READ_ONLY : DOCA_ACCESS_FLAG_LOCAL_READ_WRITE,
		      true);
	copy(map, &d, 0, 64, 4096, 64);
	MUST(doca_mmap_destroy(map));
	dma_close(&d);
}

CASE(source_changed)
{
	struct dma d;

	dma_submit(&d);
	if (bad)
		memory[77]++;
	dma_wait(&d);
	memory[77]++;
	dma_free(&d);
	dma_close(&d);
}

static void two_copies(size_t src, size_t dst)
{
	struct doca_dma_task_memcpy *task;
	struct doca_buf *from, *to;
	struct dma d;

	dma_submit(&d);
	MUST(doca_buf_inventory_buf_get_by_data(d.inventory, d.map, memory + src, 4096, &from));
	MUST(doca_buf_inventory_buf_get_by_addr(d.inventory, d.map, memory + dst, 4096, &to));
	MUST(doca_dma_task_memcpy_alloc_init(d.dma, from, to, (union doca_data){.u64 = 0}, &task));
	MUST(doca_task_submit(doca_dma_task_memcpy_as_task(task)));
	progress(d.pe, &n_done, 2);
	doca_task_free(doca_dma_task_memcpy_as_task(task));
	MUST(doca_buf_dec_refcount(from, NULL));
	MUST(doca_buf_dec_refcount(to, NULL));
	dma_free(&d);
	dma_close(&d);
}

CASE(destinations_overlap)
{
	two_copies(0, bad ? N_BYTES / 2 + 4095 : N_BYTES / 2 + 4096);
}

CASE(source_overlaps_destination)
{
	two_copies(bad ? N_BYTES / 2 : 4096, 8192);
}

CASE(list_too_long)
{
	struct doca_buf *part;
	uint32_t max, i;
	struct dma d;

	dma_start(&d);
	MUST(doca_dma_cap_task_memcpy_get_max_buf_list_len(doca_dev_as_devinfo(d.dev), &max));
	MUST(doca_buf_inventory_destroy(d.inventory));
	MUST(doca_buf_inventory_create(max + 8, &d.inventory));
	MUST(doca_buf_inventory_start(d.inventory));
	MUST(doca_buf_inventory_buf_get_by_data(d.inventory, d.map, memory, 1, &d.src));
	for (i = 1; i < max + bad; i++) {
		MUST(doca_buf_inventory_buf_get_by_data(d.inventory, d.map, memory + i, 1, &part));
		MUST(doca_buf_chain_list(d.src, part));
	}
	MUST(doca_buf_inventory_buf_get_by_addr(d.inventory, d.map, memory + N_BYTES / 2,
						N_BYTES / 2, &d.dst));
	MUST(doca_dma_task_memcpy_alloc_init(d.dma, d.src, d.dst, (union doca_data){.u64 = 0},
					     &d.task));
	d.base = doca_dma_task_memcpy_as_task(d.task);
	n_done = 0;
	if (doca_task_submit(d.base) == DOCA_SUCCESS)
		dma_wait(&d);
	dma_free(&d);
	dma_close(&d);
}

CASE(too_many_tasks)
{
	uint32_t max;
	struct dma d;

	dma_open(&d);
	MUST(doca_dma_cap_get_max_num_tasks(d.dma, &max));
	(void)doca_dma_task_memcpy_set_conf(d.dma, (doca_dma_task_memcpy_completion_cb_t)abort,
					    (doca_dma_task_memcpy_completion_cb_t)abort,
					    bad ? max + 1 : 8);
	dma_close(&d);
}

/* -- threads and time -- */

static pthread_barrier_t barrier;

static void slow_callback(struct doca_dma_task_memcpy *task, union doca_data a, union doca_data b)
{
	(void)task, (void)a, (void)b;
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	n_done++;
}

static void *run_engine(void *pe)
{
	progress(pe, &n_done, 1);
	return NULL;
}

/* While a thread is in a callback of the engine, another thread uses the engine. */
CASE(engine_in_two_threads)
{
	pthread_t thread;
	struct dma d;

	pthread_barrier_init(&barrier, NULL, 2);
	dma_open(&d);
	MUST(doca_dma_task_memcpy_set_conf(d.dma, slow_callback, slow_callback, 4));
	MUST(doca_ctx_start(d.ctx));
	MUST(doca_buf_inventory_buf_get_by_data(d.inventory, d.map, memory, 64, &d.src));
	MUST(doca_buf_inventory_buf_get_by_addr(d.inventory, d.map, memory + 4096, 64, &d.dst));
	MUST(doca_dma_task_memcpy_alloc_init(d.dma, d.src, d.dst, (union doca_data){.u64 = 0},
					     &d.task));
	d.base = doca_dma_task_memcpy_as_task(d.task);
	n_done = 0;
	MUST(doca_task_submit(d.base));
	pthread_create(&thread, NULL, run_engine, d.pe);
	pthread_barrier_wait(&barrier);
	if (bad)
		(void)doca_pe_request_notification(d.pe);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	dma_free(&d);
	dma_close(&d);
	pthread_barrier_destroy(&barrier);
}

static void sleep_ms(unsigned ms)
{
	struct timespec t = {0, (long)ms * 1000000};

	nanosleep(&t, NULL); /* lint: allowed, the program stalls */
}

/* The test sets the limit to 300 ms. A server has work for its engine while it runs. */
CASE(engine_not_progressed)
{
	struct pair p;
	unsigned i;

	pair_open(&p);
	(void)doca_pe_progress(p.pe);
	for (i = 0; i < 6; i++) {
		sleep_ms(100);
		if (!bad)
			(void)doca_pe_progress(p.pe);
	}
	(void)doca_pe_progress(p.pe);
	pair_close(&p);
}

const struct test_case task_cases[] = {
	RULE("destroy-in-use", destroy_in_use),
	RULE("destroy-running", destroy_running),
	RULE("engine-destroyed-early", engine_destroyed_early),
	RULE("configure-started", configure_started),
	RULE("start-started", start_started),
	RULE("start-without-engine", start_without_engine),
	RULE("start-without-tasks", start_without_tasks),
	RULE("connect-started", connect_started),
	RULE("connect-connected", connect_connected),
	RULE("allocate-idle", allocate_idle),
	RULE("submit-not-running", submit_not_running),
	RULE("submit-submitted", submit_submitted),
	RULE("change-in-flight", change_in_flight),
	RULE("result-in-flight", result_in_flight),
	RULE("task-freed-in-flight", task_freed_in_flight),
	RULE("buffer-released-in-flight", buffer_released_in_flight),
	RULE("event-not-started", event_not_started),
	RULE("progress-in-callback", progress_in_callback),
	RULE("user-node", user_node), /* progress-in-callback, in a user node */
	RULE("engine-destroyed-in-callback", engine_destroyed_in_callback),
	RULE("error-ignored", error_ignored),
	RULE("empty-source", empty_source),
	RULE("destination-too-small", destination_too_small),
	RULE("task-too-long", task_too_long),
	RULE("map-without-device", map_without_device),
	RULE("destination-read-only", destination_read_only),
	RULE("source-changed", source_changed),
	RULE("source-written", source_changed),
	RULE("destinations-overlap", destinations_overlap),
	RULE("source-overlaps-destination", source_overlaps_destination),
	RULE("list-too-long", list_too_long),
	RULE("too-many-tasks", too_many_tasks),
	RULE("engine-in-two-threads", engine_in_two_threads),
	RULE("engine-not-progressed", engine_not_progressed),
	{NULL, NULL},
};
