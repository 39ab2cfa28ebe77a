/* SPDX-License-Identifier: BSD-3-Clause */
/* dc_comch.c - rules for Comch, and for values and devices that capabilities limit */
#include "check/dc.h"

#include <doca_comch.h>
#include <doca_comch_consumer.h>
#include <doca_comch_producer.h>
#include <doca_ctx.h>
#include <string.h>

#include "check/dc_card.h"
#include "check/dc_trace.h"

/* -- connections -- */

void dc_connection_begins(struct dc_object *ctx, const void *connection)
{
	struct dc_object *o = dc_find(connection, DC_T_doca_comch_connection);

	if (o && o->is_live)
		return;
	o = dc_add(connection, DC_T_doca_comch_connection, NULL);
	if (!o)
		return;
	o->parent = ctx;
	o->dev = ctx->dev;
	if (o->dev)
		o->dev->n_users++;
	ctx->n_users++;
	dc_trace_connection(ctx, true);
}

void dc_connection_ends(const void *connection)
{
	struct dc_object *o = dc_find(connection, DC_T_doca_comch_connection);

	if (o && o->is_live) {
		dc_trace_connection(o->parent, false);
		dc_end_object(o, NULL);
	}
}

static void after_get_connection(struct dc_call *call)
{
	if (call->objects[0] && dc_succeeded(call))
		dc_connection_begins(call->objects[0], *(void **)(uintptr_t)call->args[1]);
}

static void after_disconnect(struct dc_call *call)
{
	if (call->result == DOCA_ERROR_IN_USE)
		DC_BREAKS(call, STOP_WITH_FAST_PATH, DC_NO_DETAILS);
	if (call->objects[1] && dc_succeeded(call))
		dc_end_object(call->objects[1], call->site);
}

/* -- capabilities -- */

/* A setting or number of tasks, and the function that returns its maximum as uint32_t. */
static const struct {
	uint16_t function;
	uint8_t argument;
	bool of_object; /* the capability is one of the object, not of its device */
	bool is_tasks;
	uint16_t capability;
} limits[] = {
	{DC_doca_comch_server_set_max_msg_size, 1, false, false,
	 DC_doca_comch_cap_get_max_msg_size},
	{DC_doca_comch_client_set_max_msg_size, 1, false, false,
	 DC_doca_comch_cap_get_max_msg_size},
	{DC_doca_comch_server_set_recv_queue_size, 1, false, false,
	 DC_doca_comch_cap_get_max_recv_queue_size},
	{DC_doca_comch_client_set_recv_queue_size, 1, false, false,
	 DC_doca_comch_cap_get_max_recv_queue_size},
	{DC_doca_comch_consumer_set_imm_data_len, 1, false, false,
	 DC_doca_comch_consumer_cap_get_max_imm_data_len},
	{DC_doca_comch_server_task_send_set_conf, 3, false, true,
	 DC_doca_comch_cap_get_max_send_tasks},
	{DC_doca_comch_client_task_send_set_conf, 3, false, true,
	 DC_doca_comch_cap_get_max_send_tasks},
	{DC_doca_comch_consumer_task_post_recv_set_conf, 3, false, true,
	 DC_doca_comch_consumer_cap_get_max_num_tasks},
	{DC_doca_comch_producer_task_send_set_conf, 3, false, true,
	 DC_doca_comch_producer_cap_get_max_num_tasks},
	{DC_doca_dma_task_memcpy_set_conf, 3, true, true, DC_doca_dma_cap_get_max_num_tasks},
	{DC_doca_compress_task_compress_deflate_set_conf, 3, true, true,
	 DC_doca_compress_cap_get_max_num_tasks},
	{DC_doca_compress_task_decompress_deflate_set_conf, 3, true, true,
	 DC_doca_compress_cap_get_max_num_tasks},
	{DC_doca_compress_task_decompress_lz4_stream_set_conf, 3, true, true,
	 DC_doca_compress_cap_get_max_num_tasks},
	{DC_doca_rdma_set_send_queue_size, 1, false, false,
	 DC_doca_rdma_cap_get_max_send_queue_size},
	{DC_doca_rdma_set_recv_queue_size, 1, false, false,
	 DC_doca_rdma_cap_get_max_recv_queue_size},
	{DC_doca_rdma_set_max_send_buf_list_len, 1, false, false,
	 DC_doca_rdma_cap_get_max_send_buf_list_len},
};

/* Query a capability that returns uint32_t. Returns false if it is unknown. */
static bool query(uint16_t capability, const void *subject, uint32_t *value)
{
	typedef doca_error_t (*query_fn)(const void *subject, uint32_t *value);

	if (!subject || !dc_has(capability) ||
	    ((query_fn)dc_next(capability))(subject, value) != DOCA_SUCCESS)
		return false;
	*value = (uint32_t)dc_card_limit(capability, *value);
	return true;
}

static void before_limited(struct dc_call *call)
{
	const struct dc_object *o = call->objects[0];
	unsigned i;
	uint32_t max;

	for (i = 0; o && i < sizeof(limits) / sizeof(limits[0]); i++) {
		if (limits[i].function != call->function ||
		    !query(limits[i].capability,
			   limits[i].of_object ? o->address : (const void *)dc_devinfo(o), &max) ||
		    call->args[limits[i].argument] <= max)
			continue;
		dc_report(limits[i].is_tasks ? DC_RULE_TOO_MANY_TASKS : DC_RULE_SETTING_TOO_LARGE,
			  o, call->function, call->site, "value=%llu, limit=%u",
			  (unsigned long long)call->args[limits[i].argument], max);
		dc_card_refuse(call);
	}
}

/* A function that creates an object, and the one that says whether the device supports it. */
static const struct {
	uint16_t function, capability;
} needed[] = {
	{DC_doca_comch_server_create, DC_doca_comch_cap_server_is_supported},
	{DC_doca_comch_client_create, DC_doca_comch_cap_client_is_supported},
	{DC_doca_comch_consumer_create, DC_doca_comch_consumer_cap_is_supported},
	{DC_doca_comch_producer_create, DC_doca_comch_producer_cap_is_supported},
	{DC_doca_dma_create, DC_doca_dma_cap_task_memcpy_is_supported},
	{DC_doca_ec_create, DC_doca_ec_cap_task_create_is_supported},
	{DC_doca_mmap_advise_create, DC_doca_mmap_advise_cap_task_cache_invalidate_is_supported},
};

static void before_needed(struct dc_call *call)
{
	typedef doca_error_t (*supported_fn)(const struct doca_devinfo *info);
	const struct doca_devinfo *info = dc_devinfo(call->objects[0]);
	unsigned i;

	for (i = 0; info && i < sizeof(needed) / sizeof(needed[0]); i++)
		if (needed[i].function == call->function && dc_has(needed[i].capability) &&
		    ((supported_fn)dc_next(needed[i].capability))(info) == DOCA_ERROR_NOT_SUPPORTED)
			DC_BREAKS(call, DEVICE_WITHOUT_CAPABILITY, "capability=%s",
				  dc_functions[needed[i].capability].name);
}

/* -- control path -- */

static void judge_name(struct dc_call *call, uint64_t name)
{
	uint32_t max;
	size_t len;

	before_needed(call);
	if (!name || !query(DC_doca_comch_cap_get_max_name_len, dc_devinfo(call->objects[0]), &max))
		return;
	len = strlen((const char *)(uintptr_t)name) + 1;
	if (len > max)
		DC_EXCEEDS(call, NAME_TOO_LONG, "length=%zu, limit=%u", len, max);
}

static void before_server_create(struct dc_call *call)
{
	judge_name(call, call->args[2]);
}

static void before_client_create(struct dc_call *call)
{
	judge_name(call, call->args[1]);
}

static void before_message(struct dc_call *call)
{
	const struct dc_object *o = call->objects[0];
	uint32_t max = 0;

	if (o &&
	    query(call->function == DC_doca_comch_server_task_send_alloc_init
			  ? DC_doca_comch_server_get_max_msg_size
			  : DC_doca_comch_client_get_max_msg_size,
		  o->address, &max) &&
	    call->args[3] > max)
		DC_EXCEEDS(call, MESSAGE_TOO_LONG, "length=%llu, limit=%u",
			   (unsigned long long)call->args[3], max);
}

/* -- fast path -- */

struct queues {
	const struct dc_object *connection;
	uint16_t type;
	uint32_t n;
};

static void count_queue(struct dc_object *o, void *arg)
{
	struct queues *q = arg;

	q->n += o->type == q->type && o->parent == q->connection;
}

/* Judge the number of consumers or producers that the connection has already. */
static void judge_queues(struct dc_call *call, uint16_t type, uint16_t capability)
{
	struct queues q = {.connection = call->objects[0], .type = type};
	uint32_t max;

	if (!q.connection || !query(capability, dc_devinfo(q.connection), &max))
		return;
	dc_each(count_queue, &q);
	if (q.n >= max)
		DC_EXCEEDS(call, TOO_MANY_QUEUES, "existing=%u, limit=%u", q.n, max);
}

static void judge_connection(struct dc_call *call)
{
	const struct dc_object *connection = call->objects[0], *ctx;

	before_needed(call);
	if (!connection || !connection->parent)
		return;
	ctx = connection->parent;
	if (!dc_is_set(ctx, DC_doca_comch_server_event_consumer_register) &&
	    !dc_is_set(ctx, DC_doca_comch_client_event_consumer_register))
		DC_BREAKS(call, FAST_PATH_WITHOUT_EVENTS, DC_NO_DETAILS);
	if (dc_state(ctx) != DOCA_CTX_STATE_RUNNING)
		DC_BREAKS(call, FAST_PATH_WITHOUT_CONNECTION, DC_NO_DETAILS);
}

static void before_consumer_create(struct dc_call *call)
{
	const struct dc_object *map = call->objects[1];

	judge_connection(call);
	judge_queues(call, DC_T_doca_comch_consumer, DC_doca_comch_consumer_cap_get_max_consumers);
	if (map && !map->mmap.is_import &&
	    !(map->mmap.permissions & DOCA_ACCESS_FLAG_PCI_READ_WRITE))
		dc_report(DC_RULE_CONSUMER_MAP_PERMISSION, map, call->function, call->site,
			  "permissions=%#x", map->mmap.permissions);
}

static void before_producer_create(struct dc_call *call)
{
	judge_connection(call);
	judge_queues(call, DC_T_doca_comch_producer, DC_doca_comch_producer_cap_get_max_producers);
}

/* The consumer of a peer decides the length that is configured; the device decides the maximum. */
static void judge_immediate(struct dc_call *call, uint64_t len)
{
	const struct dc_object *ctx = dc_ctx_of(call->objects[0]);
	uint32_t max;

	if (len && query(DC_doca_comch_consumer_cap_get_max_imm_data_len, dc_devinfo(ctx), &max) &&
	    len > max)
		DC_EXCEEDS(call, IMMEDIATE_TOO_LONG, "length=%llu, limit=%u",
			   (unsigned long long)len, max);
}

static void before_send_alloc(struct dc_call *call)
{
	judge_immediate(call, call->args[3]);
}

static void before_set_imm(struct dc_call *call)
{
	judge_immediate(call, call->args[2]);
}

/* -- events -- */

static void before_event_use(struct dc_call *call)
{
	const struct dc_object *event = call->objects[0];

	if (event && event->made_by == DC_doca_sync_event_create && !event->is_started)
		DC_BREAKS(call, EVENT_NOT_STARTED, DC_NO_DETAILS);
}

#define LIMITED \
	{ \
		before_limited, NULL \
	}
const struct dc_hook dc_comch_hooks[DC_N_FUNCTIONS] = {
	[DC_doca_comch_client_get_connection] = {NULL, after_get_connection},
	[DC_doca_comch_server_disconnect] = {NULL, after_disconnect},
	[DC_doca_comch_server_create] = {before_server_create, NULL},
	[DC_doca_comch_client_create] = {before_client_create, NULL},
	[DC_doca_dma_create] = {before_needed, NULL},
	[DC_doca_ec_create] = {before_needed, NULL},
	[DC_doca_mmap_advise_create] = {before_needed, NULL},
	[DC_doca_comch_server_task_send_alloc_init] = {before_message, NULL},
	[DC_doca_comch_client_task_send_alloc_init] = {before_message, NULL},
	[DC_doca_comch_consumer_create] = {before_consumer_create, NULL},
	[DC_doca_comch_producer_create] = {before_producer_create, NULL},
	[DC_doca_comch_producer_task_send_alloc_init] = {before_send_alloc, NULL},
	[DC_doca_comch_producer_task_send_set_imm_data] = {before_set_imm, NULL},
	[DC_doca_comch_server_set_max_msg_size] = LIMITED,
	[DC_doca_comch_client_set_max_msg_size] = LIMITED,
	[DC_doca_comch_server_set_recv_queue_size] = LIMITED,
	[DC_doca_comch_client_set_recv_queue_size] = LIMITED,
	[DC_doca_comch_consumer_set_imm_data_len] = LIMITED,
	[DC_doca_comch_server_task_send_set_conf] = LIMITED,
	[DC_doca_comch_client_task_send_set_conf] = LIMITED,
	[DC_doca_comch_consumer_task_post_recv_set_conf] = LIMITED,
	[DC_doca_comch_producer_task_send_set_conf] = LIMITED,
	[DC_doca_dma_task_memcpy_set_conf] = LIMITED,
	[DC_doca_compress_task_compress_deflate_set_conf] = LIMITED,
	[DC_doca_compress_task_decompress_deflate_set_conf] = LIMITED,
	[DC_doca_compress_task_decompress_lz4_stream_set_conf] = LIMITED,
	[DC_doca_rdma_set_send_queue_size] = LIMITED,
	[DC_doca_rdma_set_recv_queue_size] = LIMITED,
	[DC_doca_rdma_set_max_send_buf_list_len] = LIMITED,
	[DC_doca_sync_event_get] = {before_event_use, NULL},
	[DC_doca_sync_event_update_add] = {before_event_use, NULL},
	[DC_doca_sync_event_update_set] = {before_event_use, NULL},
	[DC_doca_sync_event_wait_gt] = {before_event_use, NULL},
	[DC_doca_sync_event_wait_gt_yield] = {before_event_use, NULL},
	[DC_doca_sync_event_wait_eq] = {before_event_use, NULL},
	[DC_doca_sync_event_wait_eq_yield] = {before_event_use, NULL},
	[DC_doca_sync_event_wait_neq] = {before_event_use, NULL},
	[DC_doca_sync_event_wait_neq_yield] = {before_event_use, NULL},
};
