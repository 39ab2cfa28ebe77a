/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Graphs: the order of their nodes, rejected calls, failures, and graphs in graphs. The nodes use
 * contexts of DMA and sync events.
 */
#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_dma.h>
#include <doca_graph.h>
#include <doca_mmap.h>
#include <doca_pe.h>
#include <doca_sync_event.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unity.h"

#define SIZE 1024
#define N_INSTANCES 10
#define MUST(call) TEST_ASSERT_EQUAL_MESSAGE(DOCA_SUCCESS, (call), #call)
#define REFUSED(error, call) TEST_ASSERT_EQUAL_MESSAGE(DOCA_ERROR_##error, (call), #call)

static struct doca_dev *dev;
static struct doca_pe *pe;
static struct doca_sync_event *event; /* most graphs consist of tasks of this event */
static struct doca_ctx *ctx;
static struct doca_graph *graph;
static unsigned n_task_callbacks;

/* The user nodes that have run, one letter each; + or -: an instance has completed or failed. */
static char story[64];

static void record_letter(char what)
{
	size_t n = strlen(story);

	TEST_ASSERT_LESS_THAN(sizeof(story) - 1, n);
	story[n] = what;
	story[n + 1] = 0;
}

static void on_task(struct doca_task *task, union doca_data task_data, union doca_data ctx_data)
{
	(void)task, (void)task_data, (void)ctx_data;
	n_task_callbacks++;
}

/* Returns a cookie that holds this letter. */
static void *letter(char c)
{
	static char letters[128];

	letters[(unsigned char)c] = c;
	return &letters[(unsigned char)c];
}

/* A user node records its letter; for an upper-case letter it fails. */
static doca_error_t user_node(void *cookie)
{
	char c = *(const char *)cookie;

	record_letter(c);
	return c >= 'A' && c <= 'Z' ? DOCA_ERROR_IO_FAILED : DOCA_SUCCESS;
}

static void on_done(struct doca_graph_instance *instance, union doca_data instance_data,
		    union doca_data graph_data)
{
	(void)instance;
	record_letter('+');
	if (instance_data.ptr)
		++*(unsigned *)instance_data.ptr;
	if (graph_data.ptr)
		++*(unsigned *)graph_data.ptr;
}

static void on_failed(struct doca_graph_instance *instance, union doca_data instance_data,
		      union doca_data graph_data)
{
	(void)instance, (void)instance_data, (void)graph_data;
	record_letter('-');
}

void setUp(void)
{
	struct doca_devinfo **list;
	uint32_t n;

	story[0] = 0;
	n_task_callbacks = 0;
	MUST(doca_devinfo_create_list(&list, &n));
	MUST(doca_dev_open(list[0], &dev));
	MUST(doca_devinfo_destroy_list(list));
	MUST(doca_pe_create(&pe));
	MUST(doca_sync_event_create(&event));
	MUST(doca_sync_event_add_publisher_location_cpu(event, dev));
	MUST(doca_sync_event_add_subscriber_location_cpu(event, dev));
	ctx = doca_sync_event_as_ctx(event);
	MUST(doca_pe_connect_ctx(pe, ctx));
	MUST(doca_sync_event_task_notify_add_set_conf(
		event, (doca_sync_event_task_notify_add_completion_cb_t)on_task,
		(doca_sync_event_task_notify_add_completion_cb_t)on_task, 16));
	MUST(doca_sync_event_task_wait_eq_set_conf(
		event, (doca_sync_event_task_wait_eq_completion_cb_t)on_task,
		(doca_sync_event_task_wait_eq_completion_cb_t)on_task, 16));
	MUST(doca_ctx_start(ctx));
	MUST(doca_graph_create(pe, &graph));
}

void tearDown(void)
{
	MUST(doca_graph_stop(graph));
	MUST(doca_graph_destroy(graph));
	MUST(doca_ctx_stop(ctx));
	MUST(doca_sync_event_destroy(event));
	MUST(doca_pe_destroy(pe));
	MUST(doca_dev_close(dev));
}

static struct doca_graph_node *add_user(struct doca_graph *to)
{
	struct doca_graph_node *node;

	MUST(doca_graph_node_create_from_user(to, user_node, &node));
	return node;
}

static struct doca_graph_node *add_ctx(struct doca_graph *to)
{
	struct doca_graph_node *node;

	MUST(doca_graph_node_create_from_ctx(to, ctx, &node));
	return node;
}

static void start(struct doca_graph *what)
{
	MUST(doca_graph_set_conf(what, on_done, on_failed, N_INSTANCES));
	MUST(doca_graph_start(what));
}

static struct doca_graph_instance *new_instance(struct doca_graph *of)
{
	struct doca_graph_instance *instance;

	MUST(doca_graph_instance_create(of, &instance));
	return instance;
}

/* Returns a task that adds to the event. */
static struct doca_task *adder(void)
{
	struct doca_sync_event_task_notify_add *task;

	MUST(doca_sync_event_task_notify_add_alloc_init(event, 1, NULL, (union doca_data){.u64 = 0},
							&task));
	return doca_sync_event_task_notify_add_as_doca_task(task);
}

/* Returns a task that waits for a value; with the mask 0x0f the task fails. */
static struct doca_task *waiter(uint64_t value, uint64_t mask)
{
	struct doca_sync_event_task_wait_eq *task;

	MUST(doca_sync_event_task_wait_eq_alloc_init(event, value, mask,
						     (union doca_data){.u64 = 0}, &task));
	return doca_sync_event_task_wait_eq_as_doca_task(task);
}

static void progress_until_recorded(char what)
{
	while (!strchr(story, what))
		doca_pe_progress(pe);
	while (doca_pe_progress(pe) != 0)
		;
}

static void test_nodes_run_in_the_order_of_their_dependencies(void)
{
	struct doca_graph_node *a = add_user(graph), *c = add_user(graph), *b = add_ctx(graph),
			       *d = add_user(graph);
	struct doca_graph_instance *instance;
	struct doca_task *task = adder();
	unsigned n_instance = 0, n_graph = 0;
	uint64_t value;

	MUST(doca_graph_add_dependency(graph, a, b));
	MUST(doca_graph_add_dependency(graph, b, c));
	MUST(doca_graph_add_dependency(graph, a, c));
	MUST(doca_graph_add_dependency(graph, c, d));
	MUST(doca_graph_set_user_data(graph, (union doca_data){.ptr = &n_graph}));
	start(graph);
	instance = new_instance(graph);
	MUST(doca_graph_instance_set_user_node_data(instance, a, letter('a')));
	MUST(doca_graph_instance_set_user_node_data(instance, c, letter('c')));
	MUST(doca_graph_instance_set_user_node_data(instance, d, letter('d')));
	MUST(doca_graph_instance_set_user_data(instance, (union doca_data){.ptr = &n_instance}));
	TEST_ASSERT_EQUAL_MESSAGE(DOCA_ERROR_INVALID_VALUE, doca_graph_instance_submit(instance),
				  "a context node without a task");
	MUST(doca_graph_instance_set_ctx_node_data(instance, b, task));
	for (uint64_t run = 1; run <= 3; run++) {
		story[0] = 0;
		MUST(doca_graph_instance_submit(instance));
		TEST_ASSERT_EQUAL_STRING_MESSAGE("", story,
						 "nothing of the program runs inside submit");
		TEST_ASSERT_EQUAL(DOCA_ERROR_IN_USE, doca_graph_instance_submit(instance));
		TEST_ASSERT_EQUAL(DOCA_ERROR_IN_USE, doca_graph_instance_destroy(instance));
		TEST_ASSERT_EQUAL(DOCA_ERROR_BAD_STATE,
				  doca_graph_instance_set_ctx_node_data(instance, b, task));
		progress_until_recorded('+');
		TEST_ASSERT_EQUAL_STRING("acd+", story);
		MUST(doca_sync_event_get(event, &value));
		TEST_ASSERT_EQUAL_UINT64(run, value);
		TEST_ASSERT_EQUAL_UINT(run, n_instance);
		TEST_ASSERT_EQUAL_UINT(run, n_graph);
	}
	TEST_ASSERT_EQUAL_UINT_MESSAGE(0, n_task_callbacks,
				       "callbacks of a task that a graph runs are not called");
	TEST_ASSERT_EQUAL(DOCA_ERROR_IN_USE, doca_graph_stop(graph));
	MUST(doca_graph_instance_destroy(instance));
	MUST(doca_task_submit(task));
	while (n_task_callbacks == 0)
		doca_pe_progress(pe);
	doca_task_free(task);
}

static void test_a_node_waits_for_a_task_that_takes_its_time(void)
{
	struct doca_graph_node *wait = add_ctx(graph), *after = add_user(graph),
			       *beside = add_user(graph);
	struct doca_graph_instance *instance;
	struct doca_task *task = waiter(5, UINT64_MAX);

	MUST(doca_graph_add_dependency(graph, wait, after));
	start(graph);
	instance = new_instance(graph);
	MUST(doca_graph_instance_set_ctx_node_data(instance, wait, task));
	MUST(doca_graph_instance_set_user_node_data(instance, after, letter('y')));
	MUST(doca_graph_instance_set_user_node_data(instance, beside, letter('x')));
	MUST(doca_graph_instance_submit(instance));
	while (doca_pe_progress(pe) != 0)
		;
	TEST_ASSERT_EQUAL_STRING("x", story);
	MUST(doca_sync_event_update_set(event, 5));
	progress_until_recorded('+');
	TEST_ASSERT_EQUAL_STRING("xy+", story);
	MUST(doca_graph_instance_destroy(instance));
	doca_task_free(task);
}

static void test_cycles_and_nodes_of_another_graph_are_rejected(void)
{
	struct doca_graph_node *a = add_user(graph), *b = add_ctx(graph), *c = add_user(graph),
			       *foreign;
	struct doca_graph *other;
	struct doca_graph_node *node;

	MUST(doca_graph_create(pe, &other));
	foreign = add_user(other);
	MUST(doca_graph_add_dependency(graph, a, b));
	MUST(doca_graph_add_dependency(graph, b, c));
	TEST_ASSERT_EQUAL(DOCA_ERROR_NOT_PERMITTED, doca_graph_add_dependency(graph, c, a));
	TEST_ASSERT_EQUAL(DOCA_ERROR_NOT_PERMITTED, doca_graph_add_dependency(graph, a, a));
	TEST_ASSERT_EQUAL(DOCA_ERROR_NOT_PERMITTED, doca_graph_add_dependency(graph, a, b));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE, doca_graph_add_dependency(graph, a, foreign));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE, doca_graph_add_dependency(graph, NULL, a));
	MUST(doca_graph_node_create_from_graph(other, graph, &node));
	TEST_ASSERT_EQUAL(DOCA_ERROR_NOT_PERMITTED,
			  doca_graph_node_create_from_graph(graph, other, &node));
	TEST_ASSERT_EQUAL(DOCA_ERROR_NOT_PERMITTED,
			  doca_graph_node_create_from_graph(graph, graph, &node));
	MUST(doca_graph_destroy(other));
}

static void test_start_needs_work_that_is_running(void)
{
	struct doca_graph_instance *instance;
	struct doca_graph_node *node, *late;

	add_user(graph);
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE, doca_graph_set_conf(graph, on_done, NULL, 1));
	MUST(doca_graph_set_conf(graph, on_done, on_failed, 1));
	TEST_ASSERT_EQUAL_MESSAGE(DOCA_ERROR_BAD_STATE, doca_graph_start(graph),
				  "no node of a context");
	node = add_ctx(graph);
	MUST(doca_ctx_stop(ctx));
	TEST_ASSERT_EQUAL(DOCA_ERROR_BAD_STATE, doca_graph_start(graph));
	MUST(doca_ctx_start(ctx));
	TEST_ASSERT_EQUAL(DOCA_ERROR_BAD_STATE, doca_graph_instance_create(graph, &instance));
	MUST(doca_graph_start(graph));
	TEST_ASSERT_EQUAL(DOCA_ERROR_BAD_STATE, doca_graph_start(graph));
	TEST_ASSERT_EQUAL(DOCA_ERROR_BAD_STATE, doca_graph_destroy(graph));
	TEST_ASSERT_EQUAL(DOCA_ERROR_BAD_STATE, doca_graph_node_create_from_ctx(graph, ctx, &late));
	instance = new_instance(graph);
	TEST_ASSERT_EQUAL(DOCA_ERROR_NO_MEMORY,
			  doca_graph_instance_create(graph, &(struct doca_graph_instance *){NULL}));
	TEST_ASSERT_EQUAL(DOCA_ERROR_NOT_PERMITTED,
			  doca_graph_instance_set_user_node_data(instance, node, letter('x')));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE,
			  doca_graph_instance_set_ctx_node_data(instance, node, NULL));
	MUST(doca_graph_instance_destroy(instance));
}

/* After the first failure no node starts; the run ends after the nodes that were started. */
static void test_a_failure_ends_the_run(void)
{
	struct doca_graph_node *wait = add_ctx(graph), *bad = add_user(graph),
			       *never = add_user(graph);
	struct doca_graph_instance *instance;
	struct doca_task *task = waiter(1, UINT64_MAX), *failing;

	MUST(doca_graph_add_dependency(graph, bad, never));
	MUST(doca_graph_add_dependency(graph, wait, never));
	start(graph);
	instance = new_instance(graph);
	MUST(doca_graph_instance_set_ctx_node_data(instance, wait, task));
	MUST(doca_graph_instance_set_user_node_data(instance, bad, letter('B')));
	MUST(doca_graph_instance_set_user_node_data(instance, never, letter('n')));
	MUST(doca_graph_instance_submit(instance));
	for (int i = 0; i < 20; i++)
		doca_pe_progress(pe);
	TEST_ASSERT_EQUAL_STRING("B", story);
	MUST(doca_sync_event_update_set(event, 1));
	progress_until_recorded('-');
	TEST_ASSERT_EQUAL_STRING("B-", story);

	story[0] = 0;
	failing = waiter(1, 0x0f);
	MUST(doca_graph_instance_set_user_node_data(instance, bad, letter('b')));
	MUST(doca_graph_instance_set_ctx_node_data(instance, wait, failing));
	MUST(doca_graph_instance_submit(instance));
	progress_until_recorded('-');
	TEST_ASSERT_NULL(strchr(story, 'n'));
	MUST(doca_graph_instance_destroy(instance));
	doca_task_free(task);
	doca_task_free(failing);
}

static void test_a_graph_is_a_node_of_another(void)
{
	struct doca_graph_node *first = add_user(graph), *below, *last = add_user(graph),
			       *inner_task, *inner_user;
	struct doca_graph_instance *instance, *inner;
	struct doca_graph *sub;
	struct doca_task *task = adder();
	uint64_t value;

	MUST(doca_graph_create(pe, &sub));
	inner_task = add_ctx(sub);
	inner_user = add_user(sub);
	MUST(doca_graph_add_dependency(sub, inner_task, inner_user));
	MUST(doca_graph_node_create_from_graph(graph, sub, &below));
	MUST(doca_graph_add_dependency(graph, first, below));
	MUST(doca_graph_add_dependency(graph, below, last));
	MUST(doca_graph_set_conf(graph, on_done, on_failed, 1));
	TEST_ASSERT_EQUAL_MESSAGE(DOCA_ERROR_BAD_STATE, doca_graph_start(graph),
				  "the graph below has not started");
	start(sub);
	start(graph);
	instance = new_instance(graph);
	inner = new_instance(sub);
	MUST(doca_graph_instance_set_ctx_node_data(inner, inner_task, task));
	MUST(doca_graph_instance_set_user_node_data(inner, inner_user, letter('i')));
	MUST(doca_graph_instance_set_user_node_data(instance, first, letter('f')));
	MUST(doca_graph_instance_set_user_node_data(instance, last, letter('l')));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE, doca_graph_instance_submit(instance));
	MUST(doca_graph_instance_set_sub_graph_node_data(instance, below, inner));
	TEST_ASSERT_EQUAL(DOCA_ERROR_IN_USE, doca_graph_instance_submit(inner));
	MUST(doca_graph_instance_submit(instance));
	progress_until_recorded('+');
	TEST_ASSERT_EQUAL_STRING("fil+", story);
	MUST(doca_sync_event_get(event, &value));
	TEST_ASSERT_EQUAL_UINT64(1, value);

	story[0] = 0;
	MUST(doca_graph_instance_set_user_node_data(inner, inner_user, letter('I')));
	MUST(doca_graph_instance_submit(instance));
	progress_until_recorded('-');
	TEST_ASSERT_EQUAL_STRING("fI-", story);
	MUST(doca_graph_instance_destroy(inner));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE, doca_graph_instance_submit(instance));
	MUST(doca_graph_instance_destroy(instance));
	MUST(doca_graph_stop(sub));
	MUST(doca_graph_destroy(sub));
	doca_task_free(task);
}

/* -- two copies and a comparison in ten concurrent instances, as in the vendor's sample -- */

struct copy {
	struct doca_graph_instance *instance;
	struct doca_dma_task_memcpy *task[2];
	struct doca_buf *from, *to[2];
	uint8_t *memory;
};

static doca_error_t compare(void *cookie)
{
	const struct copy *copy = cookie;
	size_t length;

	for (int i = 0; i < 2; i++) {
		doca_buf_get_data_len(copy->to[i], &length);
		if (length != SIZE ||
		    memcmp(copy->memory, copy->memory + (i + 1) * SIZE, SIZE) != 0)
			return DOCA_ERROR_BAD_STATE;
	}
	return DOCA_SUCCESS;
}

static void test_copies_are_compared_when_both_are_made(void)
{
	struct doca_dma *dma[2];
	struct doca_graph_node *node[2], *check;
	struct doca_mmap *map;
	struct doca_buf_inventory *inventory;
	struct copy copies[N_INSTANCES];
	uint8_t *memory = malloc(3 * SIZE * N_INSTANCES);
	union doca_data none = {.u64 = 0};

	MUST(doca_mmap_create(&map));
	MUST(doca_mmap_add_dev(map, dev));
	MUST(doca_mmap_set_memrange(map, memory, 3 * SIZE * N_INSTANCES));
	MUST(doca_mmap_start(map));
	MUST(doca_buf_inventory_create(3 * N_INSTANCES, &inventory));
	MUST(doca_buf_inventory_start(inventory));
	MUST(doca_graph_node_create_from_user(graph, compare, &check));
	for (int i = 0; i < 2; i++) {
		MUST(doca_dma_create(dev, &dma[i]));
		MUST(doca_pe_connect_ctx(pe, doca_dma_as_ctx(dma[i])));
		MUST(doca_dma_task_memcpy_set_conf(
			dma[i], (doca_dma_task_memcpy_completion_cb_t)on_task,
			(doca_dma_task_memcpy_completion_cb_t)on_task, N_INSTANCES));
		MUST(doca_ctx_start(doca_dma_as_ctx(dma[i])));
		MUST(doca_graph_node_create_from_ctx(graph, doca_dma_as_ctx(dma[i]), &node[i]));
		MUST(doca_graph_add_dependency(graph, node[i], check));
	}
	start(graph);
	for (int n = 0; n < N_INSTANCES; n++) {
		struct copy *copy = &copies[n];

		copy->instance = new_instance(graph);
		copy->memory = memory + n * 3 * SIZE;
		memset(copy->memory, n + 1, SIZE);
		MUST(doca_buf_inventory_buf_get_by_data(inventory, map, copy->memory, SIZE,
							&copy->from));
		for (int i = 0; i < 2; i++) {
			MUST(doca_buf_inventory_buf_get_by_addr(
				inventory, map, copy->memory + (i + 1) * SIZE, SIZE, &copy->to[i]));
			MUST(doca_dma_task_memcpy_alloc_init(dma[i], copy->from, copy->to[i], none,
							     &copy->task[i]));
			MUST(doca_graph_instance_set_ctx_node_data(
				copy->instance, node[i],
				doca_dma_task_memcpy_as_task(copy->task[i])));
		}
		MUST(doca_graph_instance_set_user_node_data(copy->instance, check, copy));
	}
	for (int n = 0; n < N_INSTANCES; n++)
		MUST(doca_graph_instance_submit(copies[n].instance));
	while (strlen(story) < N_INSTANCES)
		doca_pe_progress(pe);
	TEST_ASSERT_EQUAL_STRING("++++++++++", story);
	for (int n = 0; n < N_INSTANCES; n++) {
		MUST(doca_graph_instance_destroy(copies[n].instance));
		for (int i = 0; i < 2; i++) {
			doca_task_free(doca_dma_task_memcpy_as_task(copies[n].task[i]));
			MUST(doca_buf_dec_refcount(copies[n].to[i], NULL));
		}
		MUST(doca_buf_dec_refcount(copies[n].from, NULL));
	}
	for (int i = 0; i < 2; i++) {
		MUST(doca_ctx_stop(doca_dma_as_ctx(dma[i])));
		MUST(doca_dma_destroy(dma[i]));
	}
	MUST(doca_buf_inventory_destroy(inventory));
	MUST(doca_mmap_destroy(map));
	free(memory);
}

/* Calls that configure a graph or an instance reject a wrong time and a wrong kind of node. */
static void test_calls_reject_a_wrong_state_or_kind_of_node(void)
{
	struct doca_graph_node *work = add_ctx(graph), *user = add_user(graph), *below, *node;
	struct doca_graph_instance *instance, *inner, *second;
	struct doca_task *task = adder();
	const union doca_data seven = {.u64 = 7};
	struct doca_graph *sub;
	union doca_data data;

	MUST(doca_graph_create(pe, &sub));
	TEST_ASSERT_NOT_NULL(add_ctx(sub));
	MUST(doca_graph_node_create_from_graph(graph, sub, &below));
	MUST(doca_graph_set_user_data(graph, (union doca_data){.ptr = NULL}));
	start(sub);
	start(graph);
	REFUSED(BAD_STATE, doca_graph_set_conf(graph, on_done, on_failed, 1));
	REFUSED(BAD_STATE, doca_graph_set_user_data(graph, seven));
	MUST(doca_graph_get_user_data(graph, &data));
	TEST_ASSERT_NULL(data.ptr);
	REFUSED(BAD_STATE, doca_graph_node_create_from_ctx(graph, ctx, &node));
	REFUSED(BAD_STATE, doca_graph_node_create_from_user(graph, user_node, &node));
	REFUSED(BAD_STATE, doca_graph_node_create_from_graph(graph, sub, &node));
	REFUSED(BAD_STATE, doca_graph_add_dependency(graph, work, user));

	instance = new_instance(graph);
	second = new_instance(graph);
	inner = new_instance(sub);
	REFUSED(NOT_PERMITTED, doca_graph_instance_set_ctx_node_data(instance, user, task));
	REFUSED(NOT_PERMITTED, doca_graph_instance_set_user_node_data(instance, work, letter('x')));
	REFUSED(NOT_PERMITTED, doca_graph_instance_set_sub_graph_node_data(instance, user, inner));
	/* `second` is no instance of the inner graph */
	REFUSED(INVALID_VALUE,
		doca_graph_instance_set_sub_graph_node_data(instance, below, second));
	MUST(doca_graph_instance_set_ctx_node_data(instance, work, task));
	MUST(doca_graph_instance_set_user_node_data(instance, user, letter('u')));
	MUST(doca_graph_instance_set_sub_graph_node_data(instance, below, inner));
	/* `inner` already belongs to `instance` */
	REFUSED(NOT_PERMITTED, doca_graph_instance_set_sub_graph_node_data(second, below, inner));
	MUST(doca_graph_instance_destroy(second));

	/* the inner instance has no task yet, so submit of the outer one fails */
	REFUSED(INVALID_VALUE, doca_graph_instance_submit(instance));
	MUST(doca_graph_instance_destroy(inner));
	MUST(doca_graph_instance_set_user_data(instance, (union doca_data){.ptr = NULL}));
	MUST(doca_graph_instance_get_user_data(instance, &data));
	TEST_ASSERT_NULL(data.ptr);
	MUST(doca_graph_instance_destroy(instance));
	MUST(doca_graph_stop(sub));
	MUST(doca_graph_stop(graph)); /* after stop the graph can be configured again */
	MUST(doca_graph_set_user_data(graph, seven));
	MUST(doca_graph_get_user_data(graph, &data));
	TEST_ASSERT_EQUAL_UINT64(7, data.u64);
	MUST(doca_graph_destroy(sub));
	doca_task_free(task);
}

/* A running instance must not be changed. */
static void test_a_running_instance_is_not_changed(void)
{
	struct doca_graph_node *work = add_ctx(graph), *user = add_user(graph), *below, *inner_node;
	struct doca_graph_instance *instance, *inner;
	struct doca_task *task = waiter(1, UINT64_MAX), *inner_task = adder();
	struct doca_graph *sub;

	MUST(doca_graph_create(pe, &sub));
	inner_node = add_ctx(sub);
	MUST(doca_graph_node_create_from_graph(graph, sub, &below));
	MUST(doca_graph_add_dependency(graph, work, below));
	start(sub);
	start(graph);
	instance = new_instance(graph);
	inner = new_instance(sub);
	MUST(doca_graph_instance_set_ctx_node_data(inner, inner_node, inner_task));
	MUST(doca_graph_instance_set_ctx_node_data(instance, work, task));
	MUST(doca_graph_instance_set_user_node_data(instance, user, letter('u')));
	MUST(doca_graph_instance_set_sub_graph_node_data(instance, below, inner));
	MUST(doca_graph_instance_submit(instance));
	while (!strchr(story, 'u'))
		doca_pe_progress(pe);
	REFUSED(BAD_STATE, doca_graph_instance_set_ctx_node_data(instance, work, task));
	REFUSED(BAD_STATE, doca_graph_instance_set_user_node_data(instance, user, letter('x')));
	REFUSED(BAD_STATE, doca_graph_instance_set_sub_graph_node_data(instance, below, inner));
	REFUSED(IN_USE,
		doca_graph_instance_set_user_data(instance, (union doca_data){.ptr = NULL}));
	REFUSED(IN_USE, doca_graph_instance_submit(instance));
	REFUSED(IN_USE, doca_graph_instance_destroy(instance));
	REFUSED(IN_USE, doca_graph_instance_destroy(inner));
	REFUSED(IN_USE, doca_graph_stop(graph));
	MUST(doca_sync_event_update_set(event, 1));
	progress_until_recorded('+');
	TEST_ASSERT_EQUAL_STRING("u+", story);
	MUST(doca_graph_instance_destroy(inner));
	MUST(doca_graph_instance_destroy(instance));
	MUST(doca_graph_stop(sub));
	MUST(doca_graph_destroy(sub));
	doca_task_free(task);
	doca_task_free(inner_task);
}

/* If two runs use one task, the second run fails and the first continues. */
static void test_a_task_is_of_one_run_at_a_time(void)
{
	struct doca_graph_node *node = add_ctx(graph);
	struct doca_graph_instance *runs[2];
	struct doca_task *task = adder();

	start(graph);
	for (int i = 0; i < 2; i++) {
		runs[i] = new_instance(graph);
		MUST(doca_graph_instance_set_ctx_node_data(runs[i], node, task));
		MUST(doca_graph_instance_submit(runs[i]));
	}
	progress_until_recorded('-');
	TEST_ASSERT_EQUAL_STRING("-+", story);
	for (int i = 0; i < 2; i++)
		MUST(doca_graph_instance_destroy(runs[i]));
	doca_task_free(task);
}

static void test_null_is_refused(void)
{
	struct doca_graph_node *node;
	union doca_data data;

	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE, doca_graph_create(NULL, &graph));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE, doca_graph_destroy(NULL));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE,
			  doca_graph_node_create_from_ctx(graph, NULL, &node));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE,
			  doca_graph_node_create_from_user(graph, NULL, &node));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE,
			  doca_graph_node_create_from_graph(NULL, graph, &node));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE, doca_graph_instance_create(NULL, NULL));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE, doca_graph_instance_destroy(NULL));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE, doca_graph_instance_get_user_data(NULL, &data));
}

int main(void)
{
	alarm(120); /* limit for a test that hangs */
	UNITY_BEGIN();
	RUN_TEST(test_nodes_run_in_the_order_of_their_dependencies);
	RUN_TEST(test_a_node_waits_for_a_task_that_takes_its_time);
	RUN_TEST(test_cycles_and_nodes_of_another_graph_are_rejected);
	RUN_TEST(test_start_needs_work_that_is_running);
	RUN_TEST(test_a_failure_ends_the_run);
	RUN_TEST(test_a_graph_is_a_node_of_another);
	RUN_TEST(test_copies_are_compared_when_both_are_made);
	RUN_TEST(test_calls_reject_a_wrong_state_or_kind_of_node);
	RUN_TEST(test_a_running_instance_is_not_changed);
	RUN_TEST(test_a_task_is_of_one_run_at_a_time);
	RUN_TEST(test_null_is_refused);
	return UNITY_END();
}
