/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_misuse.c - calls with an invalid object, or too early or too late, return the documented
 * error; and limits have the documented values.
 */
#include <string.h>

#include "comch_rig.h"

#define BAD(x) NEED_RESULT(DOCA_ERROR_INVALID_VALUE, x)
#define LATE(x) NEED_RESULT(DOCA_ERROR_BAD_STATE, x)

static struct side s, c;
static char name[128];

static void on_task(struct doca_comch_task_send *task, union doca_data task_data,
		    union doca_data ctx_data)
{
	(void)task;
	(void)task_data;
	(void)ctx_data;
}

static void on_message(struct doca_comch_event_msg_recv *event, uint8_t *buf, uint32_t len,
		       struct doca_comch_connection *conn)
{
	(void)event;
	(void)buf;
	(void)len;
	(void)conn;
}

static void on_change(struct doca_comch_event_connection_status_changed *event,
		      struct doca_comch_connection *conn, uint8_t ok)
{
	(void)event;
	(void)conn;
	(void)ok;
}

static void on_consumer(struct doca_comch_event_consumer *event, struct doca_comch_connection *conn,
			uint32_t id)
{
	(void)event;
	(void)conn;
	(void)id;
}

static void on_recv(struct doca_comch_consumer_task_post_recv *task, union doca_data task_data,
		    union doca_data ctx_data)
{
	(void)task;
	(void)task_data;
	(void)ctx_data;
}

static void on_send(struct doca_comch_producer_task_send *task, union doca_data task_data,
		    union doca_data ctx_data)
{
	(void)task;
	(void)task_data;
	(void)ctx_data;
}

/* -- limits -- */

typedef doca_error_t limit_fn(const struct doca_devinfo *devinfo, uint32_t *value);

static void limits(void)
{
	static const struct {
		limit_fn *fn;
		uint32_t least, most;
	} rows[] = {
		{doca_comch_cap_get_max_name_len, 120, 120},
		{doca_comch_cap_get_max_msg_size, 4080, 4080},
		{doca_comch_cap_get_max_recv_queue_size, 8192, UINT32_MAX},
		{doca_comch_cap_get_max_clients, 512, UINT32_MAX},
		{doca_comch_cap_get_max_send_tasks, 8192, UINT32_MAX},
		{doca_comch_consumer_cap_get_max_num_tasks, 8192, UINT32_MAX},
		{doca_comch_consumer_cap_get_max_buf_size, 1 << 20, UINT32_MAX},
		{doca_comch_consumer_cap_get_max_buf_list_len, 1, 1},
		{doca_comch_consumer_cap_get_max_consumers, 127, UINT32_MAX},
		{doca_comch_consumer_cap_get_max_imm_data_len, 32, 32},
		{doca_comch_producer_cap_get_max_num_tasks, 8192, UINT32_MAX},
		{doca_comch_producer_cap_get_max_buf_size, 1 << 20, UINT32_MAX},
		{doca_comch_producer_cap_get_max_buf_list_len, 1, 1},
		{doca_comch_producer_cap_get_max_producers, 127, UINT32_MAX},
	};
	const char *const pci[] = {"03:00.0", "b1:00.0"};

	for (int side = 0; side < 2; side++) {
		struct side here = {.dev = NULL};
		const struct doca_devinfo *info;

		side_open_dev(&here, pci[side]);
		info = doca_dev_as_devinfo(here.dev);
		for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
			uint32_t value = 0;

			NEED_OK(rows[i].fn(info, &value));
			NEED(value >= rows[i].least && value <= rows[i].most);
			BAD(rows[i].fn(info, NULL));
			BAD(rows[i].fn(NULL, &value));
		}
		NEED_OK(doca_comch_consumer_cap_is_supported(info));
		NEED_OK(doca_comch_producer_cap_is_supported(info));
		NEED_RESULT(side ? DOCA_ERROR_NOT_SUPPORTED : DOCA_SUCCESS,
			    doca_comch_cap_server_is_supported(info));
		NEED_RESULT(side ? DOCA_SUCCESS : DOCA_ERROR_NOT_SUPPORTED,
			    doca_comch_cap_client_is_supported(info));
		NEED_OK(doca_dev_close(here.dev));
	}
	BAD(doca_comch_cap_server_is_supported(NULL));
	BAD(doca_comch_cap_client_is_supported(NULL));
	BAD(doca_comch_consumer_cap_is_supported(NULL));
	BAD(doca_comch_producer_cap_is_supported(NULL));
}

static void limits_are_those_that_programs_count_on_and_equal_on_both_sides(void)
{
	rig_begin();
	rig_wait(rig_fork(limits), 0);
}

/* -- NULL -- */

static void no_server(void)
{
	struct doca_comch_task_send *task;
	struct doca_dev_rep *rep;
	struct doca_dev *dev;
	uint32_t n;

	BAD(doca_comch_server_destroy(NULL));
	BAD(doca_comch_server_set_max_msg_size(NULL, 1));
	BAD(doca_comch_server_get_max_msg_size(NULL, &n));
	BAD(doca_comch_server_get_max_msg_size(s.server, NULL));
	BAD(doca_comch_server_set_recv_queue_size(NULL, 1));
	BAD(doca_comch_server_set_recv_queue_size(s.server, 0));
	BAD(doca_comch_server_set_recv_queue_size(s.server, UINT32_MAX));
	BAD(doca_comch_server_get_recv_queue_size(NULL, &n));
	BAD(doca_comch_server_get_recv_queue_size(s.server, NULL));
	BAD(doca_comch_server_get_device(NULL, &dev));
	BAD(doca_comch_server_get_device(s.server, NULL));
	BAD(doca_comch_server_get_device_rep(NULL, &rep));
	BAD(doca_comch_server_get_device_rep(s.server, NULL));
	NEED(!doca_comch_server_as_ctx(NULL));
	BAD(doca_comch_server_disconnect(NULL, NULL));
	BAD(doca_comch_server_disconnect(s.server, NULL));
	BAD(doca_comch_server_task_send_set_conf(NULL, on_task, on_task, 1));
	BAD(doca_comch_server_task_send_set_conf(s.server, NULL, on_task, 1));
	BAD(doca_comch_server_task_send_set_conf(s.server, on_task, NULL, 1));
	BAD(doca_comch_server_task_send_set_conf(s.server, on_task, on_task, 0));
	BAD(doca_comch_server_task_send_set_conf(s.server, on_task, on_task, UINT32_MAX));
	BAD(doca_comch_server_event_msg_recv_register(NULL, on_message));
	BAD(doca_comch_server_event_msg_recv_register(s.server, NULL));
	BAD(doca_comch_server_event_connection_status_changed_register(NULL, on_change, on_change));
	BAD(doca_comch_server_event_connection_status_changed_register(s.server, NULL, on_change));
	BAD(doca_comch_server_event_connection_status_changed_register(s.server, on_change, NULL));
	BAD(doca_comch_server_event_consumer_register(NULL, on_consumer, on_consumer));
	BAD(doca_comch_server_event_consumer_register(s.server, NULL, on_consumer));
	BAD(doca_comch_server_event_consumer_register(s.server, on_consumer, NULL));
	BAD(doca_comch_server_task_send_alloc_init(NULL, NULL, "x", 1, &task));
	BAD(doca_comch_server_task_send_alloc_init(s.server, NULL, "x", 1, &task));
}

static void no_client(void)
{
	struct doca_comch_connection *conn;
	struct doca_comch_task_send *task;
	struct doca_dev *dev;
	uint32_t n;

	BAD(doca_comch_client_destroy(NULL));
	BAD(doca_comch_client_set_max_msg_size(NULL, 1));
	BAD(doca_comch_client_get_max_msg_size(NULL, &n));
	BAD(doca_comch_client_get_max_msg_size(c.client, NULL));
	BAD(doca_comch_client_set_recv_queue_size(NULL, 1));
	BAD(doca_comch_client_set_recv_queue_size(c.client, 0));
	BAD(doca_comch_client_get_recv_queue_size(NULL, &n));
	BAD(doca_comch_client_get_recv_queue_size(c.client, NULL));
	BAD(doca_comch_client_get_device(NULL, &dev));
	BAD(doca_comch_client_get_device(c.client, NULL));
	NEED(!doca_comch_client_as_ctx(NULL));
	BAD(doca_comch_client_get_connection(NULL, &conn));
	BAD(doca_comch_client_get_connection(c.client, NULL));
	LATE(doca_comch_client_get_connection(c.client, &conn));
	BAD(doca_comch_client_task_send_set_conf(NULL, on_task, on_task, 1));
	BAD(doca_comch_client_task_send_set_conf(c.client, NULL, on_task, 1));
	BAD(doca_comch_client_task_send_set_conf(c.client, on_task, on_task, 0));
	BAD(doca_comch_client_event_msg_recv_register(NULL, on_message));
	BAD(doca_comch_client_event_msg_recv_register(c.client, NULL));
	BAD(doca_comch_client_event_consumer_register(NULL, on_consumer, on_consumer));
	BAD(doca_comch_client_event_consumer_register(c.client, on_consumer, NULL));
	BAD(doca_comch_client_task_send_alloc_init(NULL, NULL, "x", 1, &task));
	BAD(doca_comch_client_task_send_alloc_init(c.client, NULL, "x", 1, &task));
	NEED(!doca_comch_task_send_as_task(NULL));
}

static void no_connection(void)
{
	uint64_t value;

	BAD(doca_comch_connection_set_user_data(NULL, (union doca_data){.u64 = 1}));
	NEED(doca_comch_connection_get_user_data(NULL).u64 == 0);
	NEED(!doca_comch_server_get_server_ctx(NULL));
	NEED(!doca_comch_client_get_client_ctx(NULL));
	BAD(doca_comch_connection_update_info(NULL));
	BAD(doca_comch_connection_get_counter(NULL, DOCA_COMCH_COUNTER_SENT_BYTES, &value));
}

static void no_fast_path(void)
{
	struct doca_comch_consumer_task_post_recv *recv;
	struct doca_comch_producer_task_send *send;
	struct doca_comch_consumer *consumer;
	struct doca_comch_producer *producer;
	uint32_t n;

	BAD(doca_comch_consumer_create(NULL, NULL, &consumer));
	BAD(doca_comch_consumer_destroy(NULL));
	BAD(doca_comch_consumer_get_id(NULL, &n));
	BAD(doca_comch_consumer_get_imm_data_len(NULL, &n));
	BAD(doca_comch_consumer_set_imm_data_len(NULL, 1));
	NEED(!doca_comch_consumer_as_ctx(NULL));
	BAD(doca_comch_consumer_task_post_recv_set_conf(NULL, on_recv, on_recv, 1));
	BAD(doca_comch_consumer_task_post_recv_alloc_init(NULL, NULL, &recv));
	NEED(!doca_comch_consumer_task_post_recv_get_buf(NULL) &&
	     !doca_comch_consumer_task_post_recv_get_imm_data(NULL));
	NEED(!doca_comch_consumer_task_post_recv_get_imm_data_len(NULL));
	NEED(!doca_comch_consumer_task_post_recv_get_producer_id(NULL));
	NEED(!doca_comch_consumer_task_post_recv_as_task(NULL));
	doca_comch_consumer_task_post_recv_set_buf(NULL, NULL);
	BAD(doca_comch_producer_create(NULL, &producer));
	BAD(doca_comch_producer_destroy(NULL));
	BAD(doca_comch_producer_get_id(NULL, &n));
	NEED(!doca_comch_producer_as_ctx(NULL));
	BAD(doca_comch_producer_task_send_set_conf(NULL, on_send, on_send, 1));
	BAD(doca_comch_producer_task_send_alloc_init(NULL, NULL, NULL, 0, 1, &send));
	NEED(!doca_comch_producer_task_send_get_buf(NULL) &&
	     !doca_comch_producer_task_send_get_imm_data(NULL));
	NEED(!doca_comch_producer_task_send_get_imm_data_len(NULL) &&
	     !doca_comch_producer_task_send_as_task(NULL));
	NEED(!doca_comch_producer_task_send_get_consumer_id(NULL));
	doca_comch_producer_task_send_set_buf(NULL, NULL);
	doca_comch_producer_task_send_set_consumer_id(NULL, 1);
	doca_comch_producer_task_send_set_imm_data(NULL, NULL, 1);
}

static void creation(void)
{
	struct doca_comch_server *server;
	struct doca_comch_client *client;

	BAD(doca_comch_server_create(NULL, s.rep, RIG_NAME, &server));
	BAD(doca_comch_server_create(s.dev, NULL, RIG_NAME, &server));
	BAD(doca_comch_server_create(s.dev, s.rep, NULL, &server));
	BAD(doca_comch_server_create(s.dev, s.rep, RIG_NAME, NULL));
	BAD(doca_comch_server_create(s.dev, s.rep, "", &server));
	BAD(doca_comch_server_create(c.dev, s.rep, RIG_NAME, &server));
	BAD(doca_comch_client_create(NULL, RIG_NAME, &client));
	BAD(doca_comch_client_create(c.dev, NULL, &client));
	BAD(doca_comch_client_create(c.dev, RIG_NAME, NULL));
	NEED_RESULT(DOCA_ERROR_INITIALIZATION, doca_comch_client_create(s.dev, RIG_NAME, &client));
	memset(name, 'n', 120);
	BAD(doca_comch_client_create(c.dev, name, &client));
	BAD(doca_comch_server_create(s.dev, s.rep, name, &server));
	name[119] = '\0';
	NEED_OK(doca_comch_server_create(s.dev, s.rep, name, &server));
	NEED_OK(doca_comch_server_destroy(server));
}

static void nulls(void)
{
	side_server(&s, RIG_NAME);
	side_client(&c, RIG_NAME);
	no_server();
	no_client();
	no_connection();
	no_fast_path();
	creation();
	side_close(&s);
	side_close(&c);
}

static void null_objects_are_INVALID_VALUE(void)
{
	rig_begin();
	rig_wait(rig_fork(nulls), 0);
}

/* -- configuration -- */

static void incomplete(void)
{
	struct doca_ctx *ctx;
	struct doca_dev_rep *rep;
	struct doca_dev *dev;
	uint32_t n;

	side_open_dev(&s, "03:00.0");
	side_open_rep(&s);
	NEED_OK(doca_comch_server_create(s.dev, s.rep, RIG_NAME, &s.server));
	NEED_OK(doca_comch_server_get_device(s.server, &dev));
	NEED_OK(doca_comch_server_get_device_rep(s.server, &rep));
	NEED(dev == s.dev && rep == s.rep);
	NEED_OK(doca_comch_server_get_max_msg_size(s.server, &n));
	NEED(n == 4080); /* the default fits what programs send */
	ctx = doca_comch_server_as_ctx(s.server);
	NEED_RESULT(DOCA_ERROR_NOT_CONNECTED, doca_ctx_start(ctx));
	NEED_OK(doca_pe_create(&s.pe));
	NEED_OK(doca_pe_connect_ctx(s.pe, ctx));
	BAD(doca_ctx_start(ctx));
	NEED_OK(doca_comch_server_task_send_set_conf(s.server, on_task, on_task, 1));
	BAD(doca_ctx_start(ctx));
	NEED_OK(doca_comch_server_event_msg_recv_register(s.server, on_message));
	BAD(doca_ctx_start(ctx));
	NEED_OK(doca_comch_server_event_connection_status_changed_register(s.server, on_change,
									   on_change));
	NEED_OK(doca_ctx_start(ctx));
	LATE(doca_comch_server_task_send_set_conf(s.server, on_task, on_task, 1));
	LATE(doca_comch_server_event_msg_recv_register(s.server, on_message));
	LATE(doca_comch_server_event_connection_status_changed_register(s.server, on_change,
									on_change));
	LATE(doca_comch_server_event_consumer_register(s.server, on_consumer, on_consumer));
	LATE(doca_comch_server_set_max_msg_size(s.server, 10));
	LATE(doca_comch_server_set_recv_queue_size(s.server, 10));
	NEED_RESULT(DOCA_ERROR_IN_USE, doca_comch_server_destroy(s.server));
	NEED_RESULT(DOCA_ERROR_IN_USE, doca_pe_destroy(s.pe));
	NEED_OK(doca_ctx_stop(ctx)); /* no task is in flight */
	side_close(&s);
}

static void configuration_is_complete_before_start_and_fixed_after_it(void)
{
	rig_begin();
	rig_wait(rig_fork(incomplete), 0);
}

/* -- both sides in one process, stopped while connecting -- */

static void hesitating(void)
{
	side_server(&s, RIG_NAME);
	side_client(&c, RIG_NAME);
	side_start(&s);
	for (int i = 0; i < 20; i++) {
		NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_start(c.ctx));
		if (i % 3)
			rig_yield();
		doca_ctx_stop(c.ctx); /* the state is IDLE now or after some progress */
		UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_IDLE);
		while (doca_pe_progress(s.pe))
			;
	}
	side_start(&c);
	UNTIL(&s, s.n_connected == s.n_lost + 1);
	side_send(&c, "in one process");
	UNTIL(&s, s.n_messages == 1);
	side_stop(&c);
	side_stop(&s);
}

static void a_client_is_stopped_while_it_connects(void)
{
	rig_begin();
	rig_wait(rig_fork(hesitating), 0);
}

int main(void)
{
	rig_init();
	UNITY_BEGIN();
	RUN_TEST(limits_are_those_that_programs_count_on_and_equal_on_both_sides);
	RUN_TEST(null_objects_are_INVALID_VALUE);
	RUN_TEST(configuration_is_complete_before_start_and_fixed_after_it);
	RUN_TEST(a_client_is_stopped_while_it_connects);
	rig_fini();
	return UNITY_END();
}
