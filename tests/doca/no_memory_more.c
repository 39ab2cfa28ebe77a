/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tests of no_memory.c for RDMA, sync events, graphs, and contexts that compute: functions
 * return NO_MEMORY if an allocation fails, leak nothing, and work once memory is available again.
 */
#include <doca_aes_gcm.h>
#include <doca_buf_array.h>
#include <doca_buf_pool.h>
#include <doca_clock.h>
#include <doca_compress.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_erasure_coding.h>
#include <doca_graph.h>
#include <doca_log.h>
#include <doca_mmap.h>
#include <doca_mmap_advise.h>
#include <doca_pe.h>
#include <doca_rdma.h>
#include <doca_sha.h>
#include <doca_sync_event.h>

#include <stdlib.h>

#include "scarce.h"
#include "unity.h"

#define OK(call) TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, (call))
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static struct doca_dev *dev;
static struct doca_mmap *map;
static struct doca_pe *pe;
static struct doca_aes_gcm *aes_gcm;
static struct doca_aes_gcm_key *key;
static struct doca_buf_arr *array;
static struct doca_buf_pool *pool;
static struct doca_clock *clock_;
static struct doca_compress *compress_;
static struct doca_ec *ec;
static struct doca_ec_matrix *matrix, *derived;
static struct doca_graph *graph, *below;
static struct doca_graph_node *first, *second, *node;
static struct doca_graph_instance *instance;
static struct doca_mmap_advise *advise;
static struct doca_rdma *rdma;
static struct doca_rdma_addr *addr;
static struct doca_sha *sha;
static struct doca_sync_event *event, *import;
static struct doca_sync_event_remote_net *remote;
static const uint8_t *blob;
static size_t length;
static uint32_t one = 1;
static uint8_t raw[4] = {1, 1, 1, 2};
static char memory[4096];

void setUp(void)
{
	struct doca_devinfo **list;
	uint32_t n;

	if (!scarce_can())
		TEST_IGNORE_MESSAGE("allocations cannot fail in this build");
	OK(doca_devinfo_create_list(&list, &n));
	OK(doca_dev_open(list[0], &dev));
	OK(doca_devinfo_destroy_list(list));
	OK(doca_pe_create(&pe));
}

void tearDown(void)
{
	if (!scarce_can())
		return;
	OK(doca_pe_destroy(pe));
	OK(doca_dev_close(dev));
}

/* -- pairs: a call, and the call that undoes it -- */

#define MAKE(name, call) \
	static doca_error_t name(void *arg) \
	{ \
		(void)arg; \
		return call; \
	}
#define UNDO(name, call) \
	static void name(void *arg) \
	{ \
		(void)arg; \
		OK(call); \
	}

static doca_error_t nothing(void *cookie)
{
	(void)cookie;
	return DOCA_SUCCESS;
}

static void on_graph(struct doca_graph_instance *of, union doca_data instance_data,
		     union doca_data graph_data)
{
	(void)of;
	(void)instance_data;
	(void)graph_data;
}

static void on_send(struct doca_rdma_task_send *task, union doca_data task_data,
		    union doca_data ctx_data)
{
	(void)task;
	(void)task_data;
	(void)ctx_data;
}

static void on_advise(struct doca_mmap_advise_task_invalidate_cache *task,
		      union doca_data task_data, union doca_data ctx_data)
{
	(void)task;
	(void)task_data;
	(void)ctx_data;
}

static void on_encrypt(struct doca_aes_gcm_task_encrypt *task, union doca_data task_data,
		       union doca_data ctx_data)
{
	(void)task;
	(void)task_data;
	(void)ctx_data;
}

static void is_there(void *arg)
{
	(void)arg;
}

MAKE(create_aes_gcm, doca_aes_gcm_create(dev, &aes_gcm))
UNDO(destroy_aes_gcm, doca_aes_gcm_destroy(aes_gcm))
MAKE(create_key, doca_aes_gcm_key_create(aes_gcm, memory, DOCA_AES_GCM_KEY_256, &key))
UNDO(destroy_key, doca_aes_gcm_key_destroy(key))
MAKE(set_gcm_tasks, doca_aes_gcm_task_encrypt_set_conf(aes_gcm, on_encrypt, on_encrypt, 10))
MAKE(create_array, doca_buf_arr_create(3, &array))
UNDO(destroy_array, doca_buf_arr_destroy(array))
MAKE(create_pool, doca_buf_pool_create(3, 100, map, &pool))
UNDO(destroy_pool, doca_buf_pool_destroy(pool))
MAKE(create_clock, doca_clock_create(dev, &clock_))
UNDO(destroy_clock, doca_clock_destroy(clock_))
MAKE(create_compress, doca_compress_create(dev, &compress_))
UNDO(destroy_compress, doca_compress_destroy(compress_))
MAKE(create_ec, doca_ec_create(dev, &ec))
UNDO(destroy_ec, doca_ec_destroy(ec))
MAKE(create_matrix, doca_ec_matrix_create(ec, DOCA_EC_MATRIX_TYPE_CAUCHY, 5, 3, &matrix))
UNDO(destroy_matrix, doca_ec_matrix_destroy(matrix))
MAKE(create_raw, doca_ec_matrix_create_from_raw(ec, raw, 2, 2, &derived))
MAKE(create_recover, doca_ec_matrix_create_recover(ec, matrix, &one, 1, &derived))
MAKE(create_update, doca_ec_matrix_create_update(ec, matrix, &one, 1, &derived))
UNDO(destroy_derived, doca_ec_matrix_destroy(derived))
MAKE(create_graph, doca_graph_create(pe, &graph))
UNDO(destroy_graph, doca_graph_destroy(graph))
MAKE(add_ctx, doca_graph_node_create_from_ctx(graph, doca_mmap_advise_as_ctx(advise), &node))
MAKE(add_user, doca_graph_node_create_from_user(graph, nothing, &node))
MAKE(add_graph, doca_graph_node_create_from_graph(graph, below, &node))
MAKE(add_dependency, doca_graph_add_dependency(graph, first, second))
MAKE(create_instance, doca_graph_instance_create(graph, &instance))
UNDO(destroy_instance, doca_graph_instance_destroy(instance))
MAKE(create_advise, doca_mmap_advise_create(dev, &advise))
UNDO(destroy_advise, doca_mmap_advise_destroy(advise))
MAKE(set_advise_tasks,
     doca_mmap_advise_task_invalidate_cache_set_conf(advise, on_advise, on_advise, 10))
MAKE(create_rdma, doca_rdma_create(dev, &rdma))
UNDO(destroy_rdma, doca_rdma_destroy(rdma))
MAKE(set_tasks, doca_rdma_task_send_set_conf(rdma, on_send, on_send, 10))
MAKE(create_addr, doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, "127.0.0.1", 1, &addr))
UNDO(destroy_addr, doca_rdma_addr_destroy(addr))
MAKE(create_sha, doca_sha_create(dev, &sha))
UNDO(destroy_sha, doca_sha_destroy(sha))
MAKE(create_event, doca_sync_event_create(&event))
UNDO(destroy_event, doca_sync_event_destroy(event))
MAKE(import_event, doca_sync_event_create_from_export(dev, blob, length, &import))
UNDO(destroy_import, doca_sync_event_destroy(import))
MAKE(import_remote, doca_sync_event_remote_net_create_from_export(dev, blob, length, &remote))
UNDO(destroy_remote, doca_sync_event_remote_net_destroy(remote))

MAKE(start_event, doca_sync_event_start(event))
UNDO(stop_event, doca_sync_event_stop(event))

MAKE(export_pci, doca_sync_event_export_to_remote_pci(event, dev, &blob, &length))
MAKE(export_net, doca_sync_event_export_to_remote_net(event, &blob, &length))

struct pair {
	doca_error_t (*make)(void *arg);
	void (*undo)(void *arg);
};

static void walk_all(const struct pair *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		TEST_ASSERT_GREATER_THAN(
			0, scarce_walk(DOCA_ERROR_NO_MEMORY, all[i].make, all[i].undo, NULL));
}

static void test_objects(void)
{
	static const struct pair all[] = {
		{create_array, destroy_array},   {create_pool, destroy_pool},
		{create_clock, destroy_clock},   {create_graph, destroy_graph},
		{create_advise, destroy_advise}, {create_rdma, destroy_rdma},
		{create_addr, destroy_addr},     {create_event, destroy_event},
	};

	OK(doca_mmap_create(&map));
	OK(doca_mmap_set_memrange(map, memory, sizeof(memory)));
	OK(doca_mmap_start(map));
	walk_all(all, LENGTH(all));
	OK(doca_mmap_destroy(map));
}

/* The first object lets libcrypto allocate memory that it keeps, so create one before the walk. */
static void test_compression_hash_and_erasure_code_objects(void)
{
	static const struct pair matrices[] = {
		{create_raw, destroy_derived},
		{create_recover, destroy_derived},
		{create_update, destroy_derived},
	};

#ifdef HAVE_LIBCRYPTO
	OK(create_sha(NULL));
	destroy_sha(NULL);
	walk_all(&(struct pair){create_sha, destroy_sha}, 1);
	walk_all(&(struct pair){create_aes_gcm, destroy_aes_gcm}, 1);
	OK(create_aes_gcm(NULL));
	OK(create_key(NULL));
	destroy_key(NULL);
	walk_all(&(struct pair){create_key, destroy_key}, 1);
	walk_all(&(struct pair){set_gcm_tasks, is_there}, 1);
	destroy_aes_gcm(NULL);
#endif
#ifdef HAVE_ZLIB
	walk_all(&(struct pair){create_compress, destroy_compress}, 1);
#endif
#ifdef HAVE_LIBISAL
	walk_all(&(struct pair){create_ec, destroy_ec}, 1);
	OK(create_ec(NULL));
	walk_all(&(struct pair){create_matrix, destroy_matrix}, 1);
	OK(create_matrix(NULL));
	walk_all(matrices, LENGTH(matrices));
	destroy_matrix(NULL);
	destroy_ec(NULL);
#endif
	(void)matrices;
}

/* A node lives until its graph is destroyed. */
static void test_graphs(void)
{
	static const struct pair nodes[] = {
		{add_ctx, is_there}, {add_user, is_there}, {add_graph, is_there}};

	OK(create_advise(NULL));
	OK(create_graph(NULL));
	below = graph;
	OK(create_graph(NULL));
	walk_all(nodes, LENGTH(nodes));
	first = node;
	OK(add_user(NULL));
	second = node;
	walk_all(&(struct pair){add_dependency, is_there}, 1);
	destroy_graph(NULL);
	graph = below;
	destroy_graph(NULL);
	destroy_advise(NULL);
}

static void test_instances(void)
{
	OK(create_advise(NULL));
	walk_all(&(struct pair){set_advise_tasks, is_there}, 1);
	OK(doca_pe_connect_ctx(pe, doca_mmap_advise_as_ctx(advise)));
	OK(doca_ctx_start(doca_mmap_advise_as_ctx(advise)));
	OK(create_graph(NULL));
	OK(add_ctx(NULL));
	OK(doca_graph_set_conf(graph, on_graph, on_graph, 2));
	OK(doca_graph_start(graph));
	walk_all(&(struct pair){create_instance, destroy_instance}, 1);
	OK(doca_graph_stop(graph));
	destroy_graph(NULL);
	OK(doca_ctx_stop(doca_mmap_advise_as_ctx(advise)));
	destroy_advise(NULL);
}

/* The first export and import start a thread of the library, which stays: do them first. */
static void test_events(void)
{
	OK(create_event(NULL));
	OK(doca_sync_event_add_publisher_location_remote_pci(event));
	OK(doca_sync_event_add_publisher_location_remote_net(event));
	OK(doca_sync_event_add_subscriber_location_cpu(event, dev));
	OK(start_event(NULL));
	OK(export_pci(NULL));
	OK(import_event(NULL)); /* the library keeps destroyed maps for later ones */
	destroy_import(NULL);
	walk_all(&(struct pair){import_event, destroy_import}, 1);
	OK(export_net(NULL));
	walk_all(&(struct pair){import_remote, destroy_remote}, 1);
	stop_event(NULL);
	/* start allocates the memory that an export needs, so only start is walked */
	walk_all(&(struct pair){start_event, stop_event}, 1);
	destroy_event(NULL);
}

/* -- RDMA -- */

static doca_error_t accepted = DOCA_ERROR_UNKNOWN;
static unsigned n_failed;

static void accept_without_memory(struct doca_rdma_connection *of, union doca_data ctx_data)
{
	(void)ctx_data;
	scarce_after(0);
	accepted = doca_rdma_connection_accept(of, NULL, 0);
	scarce_end();
}

static void on_established(struct doca_rdma_connection *of, union doca_data user_data,
			   union doca_data ctx_data)
{
	(void)of;
	(void)user_data;
	(void)ctx_data;
	TEST_FAIL_MESSAGE("there was no memory for it");
}

static void on_failure(struct doca_rdma_connection *of, union doca_data user_data,
		       union doca_data ctx_data)
{
	(void)of;
	(void)user_data;
	(void)ctx_data;
	n_failed++;
}

static struct doca_rdma *start_rdma(doca_rdma_connection_request_cb_t request)
{
	struct doca_ctx *ctx;

	OK(create_rdma(NULL));
	OK(doca_rdma_set_connection_state_callbacks(rdma, request, on_established, on_failure,
						    on_failure));
	ctx = doca_rdma_as_ctx(rdma);
	OK(doca_pe_connect_ctx(pe, ctx));
	if (request)
		walk_all(&(struct pair){set_tasks, is_there}, 1);
	OK(doca_ctx_start(ctx));
	return rdma;
}

static void end_rdma(struct doca_rdma *which)
{
	OK(doca_ctx_stop(doca_rdma_as_ctx(which)));
	OK(doca_rdma_destroy(which));
}

/* Both sides are notified that the connection failed. */
static void test_connection_request_without_memory(void)
{
	struct doca_rdma *server = start_rdma(accept_without_memory), *client;

	OK(doca_rdma_start_listen_to_port(server, 1));
	client = start_rdma(NULL);
	OK(create_addr(NULL));
	OK(doca_rdma_connect_to_addr(client, addr, (union doca_data){.u64 = 0}));
	destroy_addr(NULL);
	while (n_failed < 2)
		doca_pe_progress(pe);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NO_MEMORY, accepted);
	end_rdma(client);
	end_rdma(server);
}

int main(void)
{
	if (getenv("GANTRY_PLUGINS"))
		setenv("GANTRY_PLUGIN_PATH", getenv("GANTRY_PLUGINS"), 1);
	/* no output: the library logs each failure */
	(void)doca_log_level_set_global_sdk_limit(DOCA_LOG_LEVEL_DISABLE);
	UNITY_BEGIN();
	RUN_TEST(test_objects);
	RUN_TEST(test_compression_hash_and_erasure_code_objects);
	RUN_TEST(test_graphs);
	RUN_TEST(test_instances);
	RUN_TEST(test_events);
	RUN_TEST(test_connection_request_without_memory);
	return UNITY_END();
}
