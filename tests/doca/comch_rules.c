/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_rules.c - further rules of Comch on which programs rely: order, permitted calls in
 * callbacks, tasks that are used again. Server and client are in one process, so that the test
 * chooses each step of both.
 */
#include <string.h>

#include <doca_dma.h>

#include "comch_fast_rig.h"

static struct side s, c;
static struct fast f;

/* -- order of messages and of consumer events -- */

#define ROUNDS 300

static void open_orders(uint32_t queue_size)
{
	side_server(&s, RIG_NAME);
	NEED_OK(doca_comch_server_set_recv_queue_size(s.server, queue_size));
	side_start(&s);
	side_client(&c, RIG_NAME);
	side_start(&c);
	UNTIL(&s, s.n_connected);
	fast_open(&f, &c, 4096);
	fast_add_consumer(&f, 4);
}

static void close_orders(void)
{
	fast_close(&f);
	side_stop(&c);
	side_stop(&s);
}

static void many_orders(void)
{
	/* no message waits at the client, even if credit returns late */
	open_orders(3 * ROUNDS);
	for (unsigned int i = 1; i <= ROUNDS; i++) {
		memset(s.journal, 0, sizeof(s.journal));
		side_send(&c, "before");
		fast_start_consumer(&f);
		side_send(&c, "between");
		NEED_OK(doca_ctx_stop(doca_comch_consumer_as_ctx(f.consumer)));
		side_send(&c, "after");
		UNTIL(&s, s.n_messages == 3 * i);
		NEED(strcmp(s.journal, "m+m-m") == 0);
		UNTIL(&c, c.n_sent == 3 * i);
	}
	close_orders();
}

static void MUST_consumers_come_and_go_in_order_with_messages(void)
{
	rig_alone(many_orders);
}

static void orders_of_a_crowd(void)
{
	open_orders(10);
	for (int i = 0; i < 60; i++)
		side_send(&c, "many");
	fast_start_consumer(&f);
	side_send(&c, "announces the consumer");
	NEED_OK(doca_ctx_stop(doca_comch_consumer_as_ctx(f.consumer)));
	side_send(&c, "last");
	UNTIL(&s, strcmp(s.text, "last") == 0);
	NEED(s.n_messages == 62 && s.journal[strlen(s.journal) - 1] == 'm');
	NEED(strchr(s.journal, '+') && strchr(s.journal, '-') > strchr(s.journal, '+'));
	close_orders();
}

static void consumer_events_arrive_before_later_messages_behind_a_full_queue(void)
{
	rig_alone(orders_of_a_crowd);
}

/*
 * The queue of the server holds ten messages. The other ones wait at the client, which makes no
 * progress. The client reuses one buffer for all.
 */
static void waiting_messages(void)
{
	uint32_t text = 0;

	side_server(&s, RIG_NAME);
	NEED_OK(doca_comch_server_set_recv_queue_size(s.server, 10));
	side_start(&s);
	side_client(&c, RIG_NAME);
	NEED_OK(doca_comch_client_set_recv_queue_size(c.client, 10));
	side_start(&c);
	UNTIL(&s, s.n_connected);
	for (; text < 64; text++)
		NEED_OK(side_try_send(&c, &text, sizeof(text)));
	for (uint32_t i = 0; i < 64; i++) {
		UNTIL_ALONE(&s, s.n_messages == i + 1);
		NEED(memcmp(s.text, &i, sizeof(i)) == 0);
	}
	NEED(c.n_sent == 0);
	UNTIL(&c, c.n_sent == 64);
	side_stop(&c);
	side_stop(&s);
}

static void MUST_sends_that_waited_leave_without_progress_and_were_copied_at_submit(void)
{
	rig_alone(waiting_messages);
}

static void thousand_tasks(void)
{
	side_server(&s, RIG_NAME);
	side_start(&s);
	side_open_dev(&c, "b1:00.0");
	NEED_OK(doca_comch_client_create(c.dev, RIG_NAME, &c.client));
	side_configure(&c, 1024);
	NEED_OK(doca_comch_client_set_recv_queue_size(c.client, 10));
	side_start(&c);
	for (int i = 0; i < 1024; i++)
		side_send(&c, "one of many");
	NEED_RESULT(DOCA_ERROR_NO_MEMORY, side_try_send(&c, "x", 1));
	UNTIL(&s, s.n_messages == 1024);
	UNTIL(&c, c.n_sent == 1024);
	side_stop(&c);
	side_stop(&s);
}

static void a_client_has_1024_sends_under_way(void)
{
	rig_alone(thousand_tasks);
}

/* One event per progress, at the server as well. */
static void steps_of_server(void)
{
	side_server(&s, RIG_NAME);
	side_start(&s);
	side_client(&c, RIG_NAME);
	side_start(&c);
	side_send(&c, "a");
	side_send(&c, "b");
	NEED(strcmp(s.journal, "2C") == 0);
	/* 0 until the program sets it */
	NEED(doca_comch_connection_get_user_data(s.conn).u64 == 0);
	UNTIL_ALONE(&s, s.n_messages == 1);
	NEED(strcmp(s.journal, "2Cm") == 0 && s.text[0] == 'a');
	UNTIL(&s, s.n_messages == 2);
	UNTIL(&c, c.n_sent == 2);
	side_stop(&c);
	side_stop(&s);
}

static void MUST_a_connection_and_its_first_message_are_two_events(void)
{
	rig_alone(steps_of_server);
}

/* -- callbacks of connections -- */

static struct doca_comch_connection *told[2];

static void on_end(struct doca_comch_event_connection_status_changed *event,
		   struct doca_comch_connection *conn, uint8_t ok)
{
	const uint64_t number = doca_comch_connection_get_user_data(conn).u64;

	NEED(event && ok == 1 && number - 1 < 2 && told[number - 1] == conn);
	NEED(doca_comch_server_get_server_ctx(conn) == s.server &&
	     !doca_comch_client_get_client_ctx(conn));
	told[number - 1] = NULL;
}

static void on_start(struct doca_comch_event_connection_status_changed *event,
		     struct doca_comch_connection *conn, uint8_t ok)
{
	NEED(event && ok == 1 && s.n_connected < 2);
	told[s.n_connected++] = conn;
	NEED_OK(doca_comch_connection_set_user_data(conn, (union doca_data){.u64 = s.n_connected}));
}

static uint32_t ids[2];

static void on_new(struct doca_comch_event_consumer *event, struct doca_comch_connection *conn,
		   uint32_t id)
{
	const uint64_t number = doca_comch_connection_get_user_data(conn).u64;

	NEED(event && number - 1 < 2 && told[number - 1] == conn && ids[number - 1] == 0);
	ids[number - 1] = id;
}

static void on_expired(struct doca_comch_event_consumer *event, struct doca_comch_connection *conn,
		       uint32_t id)
{
	const uint64_t number = doca_comch_connection_get_user_data(conn).u64;

	NEED(event && ids[number - 1] == id);
	ids[number - 1] = 0;
}

static void two_clients(void)
{
	struct side other = {.dev = NULL};
	struct fast of_other = {.side = NULL};
	uint32_t id;

	side_server(&s, RIG_NAME);
	NEED_OK(doca_comch_server_event_connection_status_changed_register(s.server, on_start,
									   on_end));
	NEED_OK(doca_comch_server_event_consumer_register(s.server, on_new, on_expired));
	side_start(&s);
	side_client(&c, RIG_NAME);
	side_start(&c);
	UNTIL(&s, s.n_connected == 1);
	side_client(&other, RIG_NAME);
	side_start(&other);
	UNTIL(&s, s.n_connected == 2);
	fast_open(&f, &c, 4096);
	fast_add_consumer(&f, 1);
	fast_open(&of_other, &other, 4096);
	fast_add_consumer(&of_other, 1);
	fast_start_consumer(&of_other);
	UNTIL(&s, ids[1] != 0);
	fast_start_consumer(&f);
	UNTIL(&s, ids[0] != 0);
	NEED_OK(doca_comch_consumer_get_id(f.consumer, &id));
	NEED(id == ids[0]);
	NEED_OK(doca_comch_consumer_get_id(of_other.consumer, &id));
	NEED(id == ids[1]);
	fast_close(&f);
	UNTIL(&s, ids[0] == 0);
	NEED(ids[1] != 0);
	side_stop(&c);
	UNTIL(&s, !told[0]);
	NEED(told[1] != NULL);
	fast_close(&of_other);
	side_stop(&other);
	UNTIL(&s, !told[1]);
	side_stop(&s);
}

static void events_have_their_connection_and_its_user_data_until_the_end(void)
{
	rig_alone(two_clients);
}

/* -- calls that state callbacks can make -- */

static struct doca_comch_connection *conn_in_callback;

static void send_when_running(struct side *side, enum doca_ctx_states next)
{
	if (next != DOCA_CTX_STATE_RUNNING)
		return;
	NEED_OK(doca_comch_client_get_connection(side->client, &side->conn));
	conn_in_callback = side->conn;
	side_send(side, "first thing");
}

static void destroy_when_idle(struct side *side, enum doca_ctx_states next)
{
	if (next != DOCA_CTX_STATE_IDLE)
		return;
	if (side->server)
		NEED_OK(doca_comch_server_destroy(side->server));
	if (side->client)
		NEED_OK(doca_comch_client_destroy(side->client));
	side->server = NULL;
	side->client = NULL;
}

static void busy_state_callbacks(void)
{
	side_server(&s, RIG_NAME);
	side_start(&s);
	side_client(&c, RIG_NAME);
	c.on_state = send_when_running;
	side_start(&c);
	NEED(c.conn == conn_in_callback);
	UNTIL(&s, s.n_messages == 1);
	NEED(strcmp(s.text, "first thing") == 0);
	UNTIL(&c, c.n_sent == 1);
	c.on_state = s.on_state = destroy_when_idle;
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(c.ctx));
	UNTIL(&c, !c.client);
	UNTIL(&s, s.n_lost == 1);
	NEED_OK(doca_ctx_stop(s.ctx)); /* the callback of IDLE destroys the context inside stop */
	NEED(!s.server);
	side_close(&c);
	side_close(&s);
}

static void a_client_sends_in_the_callback_of_RUNNING_and_both_are_destroyed_in_that_of_IDLE(void)
{
	rig_alone(busy_state_callbacks);
}

/* -- tasks that are used again, and their user data -- */

static unsigned int n_again;

static void send_again(struct doca_comch_task_send *task, union doca_data task_data,
		       union doca_data ctx_data)
{
	struct doca_task *t = doca_comch_task_send_as_task(task);

	NEED(ctx_data.ptr == &c && task_data.u64 == n_again &&
	     doca_task_get_user_data(t).u64 == n_again);
	NEED(doca_task_get_status(t) == DOCA_SUCCESS && doca_task_get_ctx(t) == c.ctx);
	if (++n_again == 100) {
		doca_task_free(t);
		return;
	}
	doca_task_set_user_data(t, (union doca_data){.u64 = n_again});
	NEED_OK(doca_task_submit(t));
}

static void never(struct doca_comch_task_send *task, union doca_data task_data,
		  union doca_data ctx_data)
{
	(void)task;
	(void)task_data;
	(void)ctx_data;
	NEED(!"a send failed");
}

static void same_task(void)
{
	struct doca_comch_task_send *task;

	side_server(&s, RIG_NAME);
	side_start(&s);
	side_client(&c, RIG_NAME);
	NEED_OK(doca_comch_client_task_send_set_conf(c.client, send_again, never, 1));
	side_start(&c);
	NEED_OK(doca_comch_client_task_send_alloc_init(c.client, c.conn, "again", 5, &task));
	NEED(doca_task_get_user_data(doca_comch_task_send_as_task(task)).u64 == 0);
	NEED_OK(doca_task_submit(doca_comch_task_send_as_task(task)));
	/* the task belongs to the library until its callback */
	NEED_RESULT(DOCA_ERROR_BAD_STATE, doca_task_submit(doca_comch_task_send_as_task(task)));
	UNTIL(&c, n_again == 100);
	UNTIL(&s, s.n_messages == 100);
	side_stop(&c);
	side_stop(&s);
}

static void a_send_is_submitted_again_in_its_callback_and_user_data_comes_along(void)
{
	rig_alone(same_task);
}

/* -- notifications -- */

static void on_copied(struct doca_dma_task_memcpy *task, union doca_data task_data,
		      union doca_data ctx_data)
{
	(void)task;
	(void)task_data;
	(void)ctx_data;
}

static void arm_in_one_process(void)
{
	struct doca_dma *dma;

	side_join(&s, &c);
	fast_open(&f, &c, 4096);
	NEED_OK(doca_pe_request_notification(f.pe)); /* no context yet */
	fast_add_consumer(&f, 4);
	fast_add_producer(&f, 4);
	NEED_RESULT(DOCA_ERROR_NOT_SUPPORTED, doca_pe_request_notification(f.pe));
	NEED_RESULT(DOCA_ERROR_NOT_SUPPORTED, doca_pe_request_notification(c.pe));
	NEED_RESULT(DOCA_ERROR_NOT_SUPPORTED, doca_pe_request_notification(s.pe));
	NEED_OK(doca_dma_create(c.dev, &dma));
	NEED_OK(doca_dma_task_memcpy_set_conf(dma, on_copied, on_copied, 1));
	NEED_OK(doca_pe_connect_ctx(f.pe, doca_dma_as_ctx(dma)));
	NEED_OK(doca_pe_request_notification(f.pe));
	NEED_OK(doca_dma_destroy(dma));
	fast_close(&f);
	side_stop(&c);
	side_stop(&s);
}

static void an_engine_with_only_comch_contexts_has_no_notifications(void)
{
	rig_alone(arm_in_one_process);
}

int main(void)
{
	rig_init();
	UNITY_BEGIN();
	RUN_TEST(MUST_consumers_come_and_go_in_order_with_messages);
	RUN_TEST(consumer_events_arrive_before_later_messages_behind_a_full_queue);
	RUN_TEST(MUST_sends_that_waited_leave_without_progress_and_were_copied_at_submit);
	RUN_TEST(a_client_has_1024_sends_under_way);
	RUN_TEST(MUST_a_connection_and_its_first_message_are_two_events);
	RUN_TEST(events_have_their_connection_and_its_user_data_until_the_end);
	RUN_TEST(a_client_sends_in_the_callback_of_RUNNING_and_both_are_destroyed_in_that_of_IDLE);
	RUN_TEST(a_send_is_submitted_again_in_its_callback_and_user_data_comes_along);
	RUN_TEST(an_engine_with_only_comch_contexts_has_no_notifications);
	rig_fini();
	return UNITY_END();
}
