/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_states.c - the states of Comch servers and clients, as the tables in the vendor's guide to
 * Comch define them: tests take every transition, and try every operation in every state. Journals
 * have one digit for each state, in order: 0 idle, 1 starting, 2 running, 3 stopping.
 */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comch_rig.h"

#define LATE DOCA_ERROR_BAD_STATE

static struct side s, c; /* a server and a client, in one process unless a test forks them */

static void drain(struct side *side)
{
	while (doca_pe_progress(side->pe))
		;
}

/* -- operations -- */

static void on_task(struct doca_comch_task_send *task, union doca_data task_data,
		    union doca_data ctx_data)
{
	struct side *side = ctx_data.ptr;

	(void)task_data;
	if (doca_task_get_status(doca_comch_task_send_as_task(task)) == DOCA_SUCCESS)
		side->n_sent++;
	else
		side->n_failed++;
	doca_task_free(doca_comch_task_send_as_task(task));
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
	struct doca_comch_server *server = doca_comch_server_get_server_ctx(conn);

	NEED(event && ok == 1 && server == s.server);
	s.conn = conn;
	s.n_connected++;
}

static void on_end(struct doca_comch_event_connection_status_changed *event,
		   struct doca_comch_connection *conn, uint8_t ok)
{
	NEED(event && ok == 1 && doca_comch_server_get_server_ctx(conn) == s.server);
	s.n_lost++;
}

static void on_consumer(struct doca_comch_event_consumer *event, struct doca_comch_connection *conn,
			uint32_t id)
{
	(void)event;
	(void)conn;
	(void)id;
}

/* Submit a task; free it if submit returns an error. */
static doca_error_t submit(doca_error_t result, struct doca_comch_task_send *task,
			   doca_error_t (*how)(struct doca_task *))
{
	if (result != DOCA_SUCCESS)
		return result;
	result = how(doca_comch_task_send_as_task(task));
	if (result != DOCA_SUCCESS)
		doca_task_free(doca_comch_task_send_as_task(task));
	return result;
}

/* Returns a started map, for calls that create a consumer. */
static struct doca_mmap *mmap_of(struct side *side)
{
	static char memory[64];
	struct doca_mmap *mmap;

	NEED_OK(doca_mmap_create(&mmap));
	NEED_OK(doca_mmap_add_dev(mmap, side->dev));
	NEED_OK(doca_mmap_set_permissions(mmap, DOCA_ACCESS_FLAG_PCI_READ_WRITE));
	NEED_OK(doca_mmap_set_memrange(mmap, memory, sizeof(memory)));
	NEED_OK(doca_mmap_start(mmap));
	return mmap;
}

static doca_error_t make_consumer(struct side *side)
{
	struct doca_mmap *mmap = mmap_of(side);
	struct doca_comch_consumer *consumer;
	doca_error_t result = doca_comch_consumer_create(side->conn, mmap, &consumer);

	if (result == DOCA_SUCCESS)
		NEED_OK(doca_comch_consumer_destroy(consumer));
	NEED_OK(doca_mmap_destroy(mmap));
	return result;
}

static doca_error_t make_producer(struct side *side)
{
	struct doca_comch_producer *producer;
	doca_error_t result = doca_comch_producer_create(side->conn, &producer);

	if (result == DOCA_SUCCESS)
		NEED_OK(doca_comch_producer_destroy(producer));
	return result;
}

/* -- a client -- */

static doca_error_t c_size(void)
{
	return doca_comch_client_set_max_msg_size(c.client, 4080);
}
static doca_error_t c_queue(void)
{
	return doca_comch_client_set_recv_queue_size(c.client, 10);
}
static doca_error_t c_sends(void)
{
	return doca_comch_client_task_send_set_conf(c.client, on_task, on_task, 8);
}
static doca_error_t c_messages(void)
{
	return doca_comch_client_event_msg_recv_register(c.client, on_message);
}
static doca_error_t c_consumers(void)
{
	return doca_comch_client_event_consumer_register(c.client, on_consumer, on_consumer);
}
static doca_error_t c_engine(void)
{
	return doca_pe_connect_ctx(c.pe, c.ctx);
}
static doca_error_t c_start(void)
{
	return doca_ctx_start(c.ctx);
}
static doca_error_t c_stop(void)
{
	return doca_ctx_stop(c.ctx);
}
static doca_error_t c_destroy(void)
{
	return doca_comch_client_destroy(c.client);
}
static doca_error_t c_connection(void)
{
	return doca_comch_client_get_connection(c.client, &c.conn);
}
static doca_error_t c_info(void)
{
	return doca_comch_connection_update_info(c.conn);
}
static doca_error_t c_consumer(void)
{
	return make_consumer(&c);
}
static doca_error_t c_producer(void)
{
	return make_producer(&c);
}

static doca_error_t c_alloc(void)
{
	struct doca_comch_task_send *task;
	doca_error_t result = doca_comch_client_task_send_alloc_init(c.client, c.conn, "x", 1,
								     &task);

	if (result == DOCA_SUCCESS)
		doca_task_free(doca_comch_task_send_as_task(task));
	return result;
}

static doca_error_t c_submit(void)
{
	struct doca_comch_task_send *task;
	doca_error_t result = doca_comch_client_task_send_alloc_init(c.client, c.conn, "x", 1,
								     &task);

	return submit(result, task, doca_task_submit);
}

static doca_error_t c_try_submit(void)
{
	struct doca_comch_task_send *task;
	doca_error_t result = doca_comch_client_task_send_alloc_init(c.client, c.conn, "x", 1,
								     &task);

	return submit(result, task, doca_task_try_submit);
}

#define INVALID DOCA_ERROR_INVALID_VALUE
#define AWAY DOCA_ERROR_CONNECTION_ABORTED
#define BUSY DOCA_ERROR_IN_USE
#define GOES_ON DOCA_ERROR_IN_PROGRESS

/* In IDLE there is no connection yet. */
static const struct rig_row client_rows[] = {
	/*                                   idle          starting  running       stopping */
	{"set_max_msg_size", c_size, {DOCA_SUCCESS, LATE, LATE, LATE}},
	{"set_recv_queue_size", c_queue, {DOCA_SUCCESS, LATE, LATE, LATE}},
	{"task_send_set_conf", c_sends, {DOCA_SUCCESS, LATE, LATE, LATE}},
	{"msg_recv_register", c_messages, {DOCA_SUCCESS, LATE, LATE, LATE}},
	{"consumer_register", c_consumers, {DOCA_SUCCESS, LATE, LATE, LATE}},
	{"pe_connect_ctx", c_engine, {DOCA_ERROR_NOT_PERMITTED, LATE, LATE, LATE}},
	{"get_connection", c_connection, {LATE, DOCA_SUCCESS, DOCA_SUCCESS, DOCA_SUCCESS}},
	{"update_info", c_info, {INVALID, DOCA_ERROR_CONNECTION_INPROGRESS, DOCA_SUCCESS, AWAY}},
	{"consumer_create", c_consumer, {INVALID, LATE, DOCA_SUCCESS, LATE}},
	{"producer_create", c_producer, {INVALID, LATE, DOCA_SUCCESS, LATE}},
	{"alloc", c_alloc, {INVALID, NOT_HERE, DOCA_SUCCESS, DOCA_SUCCESS}},
	{"submit", c_submit, {INVALID, LATE, DOCA_SUCCESS, DOCA_SUCCESS}},
	{"try_submit", c_try_submit, {INVALID, LATE, DOCA_SUCCESS, DOCA_SUCCESS}},
	{"start", c_start, {NOT_HERE, LATE, LATE, LATE}},
	{"stop", c_stop, {DOCA_SUCCESS, NOT_HERE, NOT_HERE, GOES_ON}},
	{"destroy", c_destroy, {NOT_HERE, BUSY, BUSY, BUSY}},
};

static void open_both(void)
{
	side_server(&s, RIG_NAME);
	side_client(&c, RIG_NAME);
	side_start(&s);
}

static void close_both(void)
{
	side_close(&c);
	side_stop(&s);
}

static void walk_client(void)
{
	open_both();
	TRY(c.ctx, client_rows);
	NEED_RESULT(GOES_ON, doca_ctx_start(c.ctx));
	NEED(strcmp(c.journal, "1") == 0);
	UNTIL(&s, s.n_connected); /* only the server has processed the connection */
	TRY(c.ctx, client_rows);
	while (!doca_pe_progress(c.pe)) /* makes one state transition */
		rig_yield();
	NEED(strcmp(c.journal, "12") == 0);
	TRY(c.ctx, client_rows);
	UNTIL(&c, c.n_sent == 2);
	NEED_RESULT(GOES_ON, doca_ctx_stop(c.ctx));
	NEED(strcmp(c.journal, "123") == 0);
	TRY(c.ctx, client_rows);
	UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_IDLE);
	/* tasks that were submitted in STOPPING are flushed */
	NEED(strcmp(c.journal, "1230") == 0 && c.n_sent == 2 && c.n_failed == 2);
	c.conn = NULL;
	TRY(c.ctx, client_rows);
	close_both();
}

static void a_client_goes_through_all_states_and_each_call_gives_what_is_documented(void)
{
	rig_alone(walk_client);
}

/* The client is not IDLE before its tasks are freed and the server has answered the stop. */
static void outstanding_client(void)
{
	struct doca_comch_task_send *task;

	open_both();
	side_start(&c);
	NEED_OK(doca_comch_client_task_send_alloc_init(c.client, c.conn, "x", 1, &task));
	NEED_RESULT(GOES_ON, doca_ctx_stop(c.ctx));
	UNTIL(&s, s.n_lost == 1);
	drain(&c);
	NEED(strcmp(c.journal, "123") == 0);
	NEED_OK(doca_task_submit(doca_comch_task_send_as_task(task)));
	NEED(c.n_failed == 0); /* submit calls no callback */
	UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_IDLE);
	NEED(strcmp(c.journal, "123f0") == 0 && c.failed != DOCA_SUCCESS);
	close_both();
}

static void a_client_stops_when_its_tasks_are_free(void)
{
	rig_alone(outstanding_client);
}

/* -- from starting to idle -- */

/* Waits for the end of a start that fails. */
static void fails_to_start(const char *journal)
{
	NEED_RESULT(GOES_ON, doca_ctx_start(c.ctx));
	UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_IDLE);
	NEED(strcmp(c.journal, journal) == 0);
	memset(c.journal, 0, sizeof(c.journal));
}

static void never_running(void)
{
	side_client(&c, RIG_NAME);
	fails_to_start("10"); /* no server */
	side_server(&s, RIG_NAME);
	NEED_OK(doca_comch_server_set_max_msg_size(s.server, 100));
	side_start(&s);
	fails_to_start("10"); /* the server rejects another message size */
	NEED(s.n_connected == 0);
	side_stop(&s);
	memset(&s, 0, sizeof(s));
	side_server(&s, RIG_NAME);
	side_start(&s);
	side_start(&c); /* the same client, after a server with its message size has started */
	side_stop(&c);
	side_stop(&s);
}

static void a_client_whose_start_fails_is_idle_and_can_start_again(void)
{
	rig_alone(never_running);
}

/* A task that was allocated before the failure must be freed. */
static void start_fails_with_a_task(void)
{
	struct doca_comch_task_send *task;

	side_client(&c, RIG_NAME);
	NEED_RESULT(GOES_ON, doca_ctx_start(c.ctx));
	NEED_OK(doca_comch_client_get_connection(c.client, &c.conn));
	NEED_OK(doca_comch_client_task_send_alloc_init(c.client, c.conn, "x", 1, &task));
	UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_STOPPING);
	doca_task_free(doca_comch_task_send_as_task(task));
	UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_IDLE);
	NEED(strcmp(c.journal, "130") == 0);
	side_close(&c);
}

static void a_client_whose_start_fails_waits_for_tasks_that_were_taken_meanwhile(void)
{
	rig_alone(start_fails_with_a_task);
}

static void stopped_before_it_was_connected(void)
{
	doca_error_t result;

	/*
	 * There is no server, but the client has not detected that yet. Stop returns SUCCESS if
	 * the client has nothing to wait for, else IN_PROGRESS.
	 */
	side_client(&c, RIG_NAME);
	NEED_RESULT(GOES_ON, doca_ctx_start(c.ctx));
	result = doca_ctx_stop(c.ctx);
	NEED(result == DOCA_SUCCESS || result == GOES_ON);
	UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_IDLE);
	drain(&c);
	NEED(strcmp(c.journal, result == DOCA_SUCCESS ? "10" : "130") == 0);
	memset(c.journal, 0, sizeof(c.journal));
	/* the server has accepted, but the client has not processed that */
	side_server(&s, RIG_NAME);
	side_start(&s);
	NEED_RESULT(GOES_ON, doca_ctx_start(c.ctx));
	UNTIL(&s, s.n_connected == 1);
	result = doca_ctx_stop(c.ctx);
	NEED(result == DOCA_SUCCESS || result == GOES_ON);
	UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_IDLE);
	NEED(strcmp(c.journal, result == DOCA_SUCCESS ? "10" : "130") == 0);
	UNTIL(&s, s.n_lost == 1);
	close_both();
}

static void a_client_is_stopped_while_starting(void)
{
	rig_alone(stopped_before_it_was_connected);
}

/* -- a server that does not answer -- */

static void frozen_server(void)
{
	side_server(&s, RIG_NAME);
	side_start(&s);
	rig_tell(RIG_TEST, 'r');
	UNTIL(&s, rig_heard(RIG_SERVER, 'q'));
	side_stop(&s);
}

static void impatient_client(void)
{
	rig_configure("doca = { connect_timeout = \"100ms\"; };");
	side_client(&c, RIG_NAME);
	NEED_RESULT(GOES_ON, doca_ctx_start(c.ctx));
	NEED_OK(doca_comch_client_get_connection(c.client, &c.conn));
	NEED_RESULT(DOCA_ERROR_CONNECTION_INPROGRESS, doca_comch_connection_update_info(c.conn));
	UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_IDLE);
	NEED(strcmp(c.journal, "10") == 0);
	side_close(&c);
}

static void a_client_waits_no_longer_than_connect_timeout_for_a_server_that_is_frozen(void)
{
	pid_t server, client;
	uint64_t from;

	rig_begin();
	server = rig_fork(frozen_server);
	rig_hear(RIG_TEST, 'r');
	TEST_ASSERT_EQUAL_INT(0, kill(server, SIGSTOP));
	TEST_ASSERT_EQUAL_INT(server, waitpid(server, NULL, WUNTRACED)); /* the server is frozen */
	from = rig_now();
	client = rig_fork(impatient_client);
	rig_wait(client, 0);
	TEST_ASSERT_TRUE(rig_now() - from >= 100000000ull);
	kill(server, SIGCONT);
	rig_tell(RIG_SERVER, 'q');
	rig_wait(server, 0);
}

/* -- from running to stopping without a call of stop -- */

static void server_disconnects(void)
{
	open_both();
	side_start(&c);
	UNTIL(&s, s.n_connected);
	NEED_OK(doca_comch_server_disconnect(s.server, s.conn));
	while (!doca_pe_progress(c.pe))
		rig_yield();
	NEED(strcmp(c.journal, "123") == 0);
	TRY(c.ctx, client_rows);
	UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_IDLE);
	NEED(strncmp(c.journal, "123", 3) == 0 && c.journal[strlen(c.journal) - 1] == '0');
	/* disconnect returns INVALID_VALUE when the connection has ended: wait for that */
	UNTIL(&s, doca_comch_server_disconnect(s.server, s.conn) == INVALID);
	NEED(strcmp(s.journal, "2C") == 0 && s.n_lost == 0);
	close_both();
}

static void a_client_goes_to_stopping_and_idle_when_the_server_disconnects_it(void)
{
	rig_alone(server_disconnects);
}

/* A program can keep a task when the server ends: until it is freed, the client is STOPPING. */
static void server_stops(void)
{
	struct doca_comch_task_send *task;

	open_both();
	side_start(&c);
	UNTIL(&s, s.n_connected);
	NEED_OK(doca_comch_client_task_send_alloc_init(c.client, c.conn, "x", 1, &task));
	NEED_RESULT(GOES_ON, doca_ctx_stop(s.ctx));
	UNTIL(&s, state_of(s.ctx) == DOCA_CTX_STATE_IDLE);
	UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_STOPPING);
	drain(&c);
	NEED(strcmp(c.journal, "123") == 0);
	NEED_RESULT(GOES_ON, doca_ctx_stop(c.ctx));
	doca_task_free(doca_comch_task_send_as_task(task));
	UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_IDLE);
	NEED(strcmp(c.journal, "1230") == 0);
	side_close(&c);
	side_close(&s);
}

static void a_client_goes_to_stopping_when_the_server_stops_and_to_idle_when_its_tasks_are_free(
	void)
{
	rig_alone(server_stops);
}

/* -- a server -- */

static doca_error_t s_size(void)
{
	return doca_comch_server_set_max_msg_size(s.server, 4080);
}
static doca_error_t s_queue(void)
{
	return doca_comch_server_set_recv_queue_size(s.server, 10);
}
static doca_error_t s_sends(void)
{
	return doca_comch_server_task_send_set_conf(s.server, on_task, on_task, 8);
}
static doca_error_t s_messages(void)
{
	return doca_comch_server_event_msg_recv_register(s.server, on_message);
}
static doca_error_t s_consumers(void)
{
	return doca_comch_server_event_consumer_register(s.server, on_consumer, on_consumer);
}
static doca_error_t s_engine(void)
{
	return doca_pe_connect_ctx(s.pe, s.ctx);
}
static doca_error_t s_start(void)
{
	return doca_ctx_start(s.ctx);
}
static doca_error_t s_stop(void)
{
	return doca_ctx_stop(s.ctx);
}
static doca_error_t s_destroy(void)
{
	return doca_comch_server_destroy(s.server);
}
static doca_error_t s_info(void)
{
	return doca_comch_connection_update_info(s.conn);
}
static doca_error_t s_consumer(void)
{
	return make_consumer(&s);
}
static doca_error_t s_producer(void)
{
	return make_producer(&s);
}

static doca_error_t s_changes(void)
{
	return doca_comch_server_event_connection_status_changed_register(s.server, on_change,
									  on_end);
}

static doca_error_t s_submit(void)
{
	struct doca_comch_task_send *task;
	doca_error_t result = doca_comch_server_task_send_alloc_init(s.server, s.conn, "x", 1,
								     &task);

	return submit(result, task, doca_task_submit);
}

static const struct rig_row server_rows[] = {
	/*
	 *                                   idle                   starting  running       stopping
	 */
	{"set_max_msg_size", s_size, {DOCA_SUCCESS, NOT_HERE, LATE, LATE}},
	{"set_recv_queue_size", s_queue, {DOCA_SUCCESS, NOT_HERE, LATE, LATE}},
	{"task_send_set_conf", s_sends, {DOCA_SUCCESS, NOT_HERE, LATE, LATE}},
	{"msg_recv_register", s_messages, {DOCA_SUCCESS, NOT_HERE, LATE, LATE}},
	{"consumer_register", s_consumers, {DOCA_SUCCESS, NOT_HERE, LATE, LATE}},
	{"status_register", s_changes, {DOCA_SUCCESS, NOT_HERE, LATE, LATE}},
	{"pe_connect_ctx", s_engine, {DOCA_ERROR_NOT_PERMITTED, NOT_HERE, LATE, LATE}},
	{"update_info", s_info, {INVALID, NOT_HERE, DOCA_SUCCESS, AWAY}},
	{"consumer_create", s_consumer, {INVALID, NOT_HERE, DOCA_SUCCESS, LATE}},
	{"producer_create", s_producer, {INVALID, NOT_HERE, DOCA_SUCCESS, LATE}},
	{"submit", s_submit, {INVALID, NOT_HERE, DOCA_SUCCESS, DOCA_SUCCESS}},
	{"start", s_start, {NOT_HERE, NOT_HERE, LATE, LATE}},
	{"stop", s_stop, {DOCA_SUCCESS, NOT_HERE, NOT_HERE, GOES_ON}},
	{"destroy", s_destroy, {NOT_HERE, NOT_HERE, BUSY, BUSY}},
};

static void walk_server(void)
{
	side_server(&s, RIG_NAME);
	side_client(&c, RIG_NAME);
	TRY(s.ctx, server_rows);
	NEED_OK(doca_ctx_start(s.ctx)); /* the state is RUNNING when start returns */
	NEED(strcmp(s.journal, "2") == 0);
	NEED_OK(doca_ctx_stop(s.ctx)); /* without a connection, IDLE when stop returns */
	NEED(strcmp(s.journal, "20") == 0);
	side_start(&s);
	side_start(&c);
	UNTIL(&s, s.n_connected == 1);
	TRY(s.ctx, server_rows);
	UNTIL(&s, s.n_sent == 1);
	NEED_RESULT(GOES_ON, doca_ctx_stop(s.ctx)); /* stop with a connection */
	NEED(strcmp(s.journal, "2023") == 0);
	TRY(s.ctx, server_rows);
	UNTIL(&s, state_of(s.ctx) == DOCA_CTX_STATE_IDLE);
	NEED(strcmp(s.journal, "20230") == 0 && s.n_sent == 1 && s.n_failed == 1 && s.n_lost == 0);
	s.conn = NULL;
	TRY(s.ctx, server_rows);
	UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_IDLE); /* the peer was notified */
	NEED(strcmp(c.journal, "12m30") == 0);
	side_close(&c);
	side_close(&s);
}

static void a_server_goes_through_all_states_and_each_call_gives_what_is_documented(void)
{
	rig_alone(walk_server);
}

/* A task that is not freed keeps the server from IDLE, also without any connection. */
static void outstanding_server(void)
{
	struct doca_comch_task_send *task;

	open_both();
	side_start(&c);
	UNTIL(&s, s.n_connected);
	NEED_OK(doca_comch_server_task_send_alloc_init(s.server, s.conn, "x", 1, &task));
	NEED_RESULT(GOES_ON, doca_ctx_stop(c.ctx));
	UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_IDLE);
	UNTIL(&s, s.n_lost == 1);
	NEED_RESULT(GOES_ON, doca_ctx_stop(s.ctx));
	drain(&s);
	NEED(state_of(s.ctx) == DOCA_CTX_STATE_STOPPING);
	doca_task_free(doca_comch_task_send_as_task(task));
	NEED(state_of(s.ctx) == DOCA_CTX_STATE_STOPPING); /* free calls no callback */
	NEED(doca_pe_progress(s.pe) == 1);
	NEED(strcmp(s.journal, "2CD30") == 0);
	side_close(&c);
	side_close(&s);
}

static void a_server_stops_when_its_tasks_are_free(void)
{
	rig_alone(outstanding_server);
}

int main(void)
{
	rig_init();
	UNITY_BEGIN();
	RUN_TEST(a_client_goes_through_all_states_and_each_call_gives_what_is_documented);
	RUN_TEST(a_client_stops_when_its_tasks_are_free);
	RUN_TEST(a_client_whose_start_fails_is_idle_and_can_start_again);
	RUN_TEST(a_client_whose_start_fails_waits_for_tasks_that_were_taken_meanwhile);
	RUN_TEST(a_client_is_stopped_while_starting);
	RUN_TEST(a_client_waits_no_longer_than_connect_timeout_for_a_server_that_is_frozen);
	RUN_TEST(a_client_goes_to_stopping_and_idle_when_the_server_disconnects_it);
	RUN_TEST(
		a_client_goes_to_stopping_when_the_server_stops_and_to_idle_when_its_tasks_are_free);
	RUN_TEST(a_server_goes_through_all_states_and_each_call_gives_what_is_documented);
	RUN_TEST(a_server_stops_when_its_tasks_are_free);
	rig_fini();
	return UNITY_END();
}
