/* SPDX-License-Identifier: BSD-3-Clause */
/* comch_cases.c - servers, clients, consumers and producers */
#include "cases.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

CASE(connection_ended)
{
	union doca_data data = {.u64 = 1};
	struct pair p;

	pair_open(&p);
	if (!bad)
		(void)doca_comch_connection_set_user_data(p.at_server, data);
	MUST(doca_comch_server_disconnect(p.server, p.at_server));
	if (bad)
		(void)doca_comch_connection_get_user_data(p.at_server);
	pair_close(&p);
}

static void start_server(struct pair_skips skips)
{
	struct pair p;

	pair_create(&p, skips);
	(void)doca_ctx_start(doca_comch_server_as_ctx(p.server));
	pair_close(&p);
}

CASE(start_without_messages)
{
	start_server((struct pair_skips){.messages = bad});
}

CASE(start_without_connections)
{
	start_server((struct pair_skips){.connections = bad});
}

CASE(fast_path_without_events)
{
	struct doca_comch_producer *producer = NULL;
	struct pair p;

	pair_create(&p, (struct pair_skips){.consumers = bad});
	MUST(doca_ctx_start(doca_comch_server_as_ctx(p.server)));
	MUST(doca_ctx_start(doca_comch_client_as_ctx(p.client)));
	wait_state(p.pe, doca_comch_client_as_ctx(p.client), DOCA_CTX_STATE_RUNNING);
	MUST(doca_comch_client_get_connection(p.client, &p.at_client));
	if (doca_comch_producer_create(p.at_client, &producer) == DOCA_SUCCESS)
		MUST(doca_comch_producer_destroy(producer));
	pair_close(&p);
}

CASE(fast_path_without_connection)
{
	struct doca_comch_producer *producer = NULL;
	struct pair p;

	pair_create(&p, (struct pair_skips){0});
	MUST(doca_ctx_start(doca_comch_server_as_ctx(p.server)));
	MUST(doca_ctx_start(doca_comch_client_as_ctx(p.client)));
	if (!bad)
		wait_state(p.pe, doca_comch_client_as_ctx(p.client), DOCA_CTX_STATE_RUNNING);
	MUST(doca_comch_client_get_connection(p.client, &p.at_client));
	if (doca_comch_producer_create(p.at_client, &producer) == DOCA_SUCCESS)
		MUST(doca_comch_producer_destroy(producer));
	pair_close(&p);
}

CASE(stop_with_fast_path)
{
	struct pair p;

	pair_open_path(&p);
	if (bad)
		(void)doca_ctx_stop(doca_comch_client_as_ctx(p.client));
	pair_close_path(&p);
}

CASE(message_too_long)
{
	struct doca_comch_task_send *task = NULL;
	static char text[1 << 16];
	uint32_t max;
	struct pair p;

	pair_open(&p);
	MUST(doca_comch_client_get_max_msg_size(p.client, &max));
	if (doca_comch_client_task_send_alloc_init(p.client, p.at_client, text, bad ? max + 1 : 4,
						   &task) == DOCA_SUCCESS) {
		MUST(doca_task_submit(doca_comch_task_send_as_task(task)));
		progress(p.pe, &n_sent, 1);
	}
	pair_close(&p);
}

CASE(name_too_long)
{
	struct doca_dev *dev = open_device("b1:00.0");
	struct doca_comch_client *client = NULL;
	char name[8192];
	uint32_t max;

	MUST(doca_comch_cap_get_max_name_len(doca_dev_as_devinfo(dev), &max));
	memset(name, 'n', sizeof(name));
	name[bad ? max : max - 1] = '\0';
	if (doca_comch_client_create(dev, name, &client) == DOCA_SUCCESS)
		MUST(doca_comch_client_destroy(client));
	MUST(doca_dev_close(dev));
}

CASE(setting_too_large)
{
	struct pair p;
	uint32_t max;

	pair_create(&p, (struct pair_skips){0});
	MUST(doca_comch_cap_get_max_recv_queue_size(doca_dev_as_devinfo(p.host), &max));
	(void)doca_comch_client_set_recv_queue_size(p.client, bad ? max + 1 : max);
	pair_close(&p);
}

CASE(device_without_capability)
{
	struct doca_dev *dev = open_device(bad ? "03:00.0" : "b1:00.0");
	struct doca_comch_client *client = NULL;

	if (doca_comch_client_create(dev, "x", &client) == DOCA_SUCCESS)
		MUST(doca_comch_client_destroy(client));
	MUST(doca_dev_close(dev));
}

CASE(consumer_map_permission)
{
	struct doca_comch_consumer *consumer = NULL;
	struct doca_mmap *map;
	struct pair p;

	pair_open(&p);
	map = new_map(p.dpu,
		      bad ? DOCA_ACCESS_FLAG_LOCAL_READ_WRITE : DOCA_ACCESS_FLAG_PCI_READ_WRITE,
		      true);
	if (doca_comch_consumer_create(p.at_server, map, &consumer) == DOCA_SUCCESS)
		MUST(doca_comch_consumer_destroy(consumer));
	MUST(doca_mmap_destroy(map));
	pair_close(&p);
}

static void post(struct pair *p, size_t offset, size_t length)
{
	struct doca_comch_consumer_task_post_recv *task;

	MUST(doca_comch_consumer_task_post_recv_alloc_init(p->consumer,
							   pair_buf(p, offset, length, 0), &task));
	MUST(doca_task_submit(doca_comch_consumer_task_post_recv_as_task(task)));
}

static doca_error_t send(struct pair *p, struct doca_buf *buf, uint8_t *imm, uint32_t imm_len)
{
	struct doca_comch_producer_task_send *task;
	doca_error_t error;

	error = doca_comch_producer_task_send_alloc_init(p->producer, buf, imm, imm_len,
							 consumer_id, &task);
	if (error == DOCA_SUCCESS) {
		error = doca_task_submit(doca_comch_producer_task_send_as_task(task));
		if (error != DOCA_SUCCESS)
			doca_task_free(doca_comch_producer_task_send_as_task(task));
	}
	if (error != DOCA_SUCCESS && buf)
		(void)doca_buf_dec_refcount(buf, NULL);
	return error;
}

/* Send, and progress while the credit of the receive has not come. */
static bool sends(struct pair *p, size_t offset, uint8_t *imm, uint32_t imm_len)
{
	unsigned i;
	doca_error_t error = DOCA_ERROR_AGAIN;

	for (i = 0; i < 10000000 && error == DOCA_ERROR_AGAIN; i++) {
		error = send(p, imm ? NULL : pair_buf(p, offset, 64, 64), imm, imm_len);
		(void)doca_pe_progress(p->pe);
	}
	return error == DOCA_SUCCESS;
}

CASE(immediate_too_long)
{
	uint8_t imm[1024] = {0};
	uint32_t max;
	struct pair p;

	pair_open_path(&p);
	post(&p, N_BYTES / 2, 64);
	MUST(doca_comch_consumer_cap_get_max_imm_data_len(doca_dev_as_devinfo(p.host), &max));
	if (sends(&p, 0, imm, bad ? max + 1 : 4)) {
		progress(p.pe, &n_sent, 1);
		progress(p.pe, &n_received, 1);
	}
	pair_close_path(&p);
}

CASE(chain_in_comch)
{
	struct doca_buf *first, *second;
	struct pair p;

	pair_open_path(&p);
	post(&p, N_BYTES / 2, 4096);
	if (!bad && sends(&p, 0, NULL, 0)) {
		progress(p.pe, &n_sent, 1);
		progress(p.pe, &n_received, 1);
	}
	if (bad) {
		first = pair_buf(&p, 0, 64, 64);
		second = pair_buf(&p, 64, 64, 64);
		MUST(doca_buf_chain_list(first, second));
		(void)send(&p, first, NULL, 0);
	}
	pair_close_path(&p);
}

/* The test sets the limit to 1. */
CASE(too_many_queues)
{
	struct doca_comch_producer *producer = NULL;
	struct pair p;

	pair_open_path(&p);
	if (bad && doca_comch_producer_create(p.at_client, &producer) == DOCA_SUCCESS)
		MUST(doca_comch_producer_destroy(producer));
	pair_close_path(&p);
}

static void sleep_ms(unsigned ms)
{
	struct timespec t = {0, (long)ms * 1000000};

	nanosleep(&t, NULL); /* lint: allowed, the program stalls */
}

/* The test sets the limit to 300 ms. */
CASE(send_without_receive)
{
	unsigned i;
	struct pair p;

	pair_open_path(&p);
	if (!bad)
		post(&p, N_BYTES / 2, 64);
	for (i = 0; i < 8 && send(&p, pair_buf(&p, 0, 64, 64), NULL, 0) == DOCA_ERROR_AGAIN; i++) {
		(void)doca_pe_progress(p.pe);
		sleep_ms(100);
	}
	if (!bad) {
		progress(p.pe, &n_sent, 1);
		progress(p.pe, &n_received, 1);
	}
	pair_close_path(&p);
}

CASE(nothing_posted)
{
	unsigned i;
	struct pair p;

	pair_open_path(&p);
	if (!bad)
		post(&p, N_BYTES / 2, 64);
	for (i = 0; i < 8; i++) {
		(void)doca_pe_progress(p.pe);
		sleep_ms(100);
	}
	pair_close_path(&p);
}

CASE(wait_for_comch)
{
	struct pair p;
	struct dma d;

	pair_open(&p);
	if (bad)
		(void)doca_pe_request_notification(p.pe);
	pair_close(&p);
	dma_open(&d);
	(void)doca_pe_request_notification(d.pe);
	dma_close(&d);
}

const struct test_case comch_cases[] = {
	RULE("connection-ended", connection_ended),
	RULE("start-without-messages", start_without_messages),
	RULE("start-without-connections", start_without_connections),
	RULE("fast-path-without-events", fast_path_without_events),
	RULE("fast-path-without-connection", fast_path_without_connection),
	RULE("stop-with-fast-path", stop_with_fast_path),
	RULE("message-too-long", message_too_long),
	RULE("name-too-long", name_too_long),
	RULE("setting-too-large", setting_too_large),
	RULE("device-without-capability", device_without_capability),
	RULE("consumer-map-permission", consumer_map_permission),
	RULE("too-many-queues", too_many_queues),
	RULE("immediate-too-long", immediate_too_long),
	RULE("chain-in-comch", chain_in_comch),
	RULE("send-without-receive", send_without_receive),
	RULE("nothing-posted", nothing_posted),
	RULE("wait-for-comch", wait_for_comch),
	{NULL, NULL},
};
