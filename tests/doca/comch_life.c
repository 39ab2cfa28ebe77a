/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_life.c - Comch servers and clients that start, stop and are killed, each in a separate
 * process.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "comch_rig.h"

static struct side s; /* the side of this process */

/* -- many clients -- */

#define CLIENTS 12u

static void greet(struct side *side, struct doca_comch_connection *conn)
{
	NEED_OK(doca_comch_connection_set_user_data(conn,
						    (union doca_data){.u64 = side->n_connected}));
	NEED(doca_comch_server_get_server_ctx(conn) == side->server);
	NEED(!doca_comch_client_get_client_ctx(conn));
}

static unsigned int seen[CLIENTS + 1];

static void count_by_connection(struct side *side)
{
	seen[doca_comch_connection_get_user_data(side->conn).u64]++;
	side_send(side, side->text);
}

static void popular_server(void)
{
	side_server(&s, RIG_NAME);
	s.on_connect = greet;
	s.on_message = count_by_connection;
	side_start(&s);
	rig_tell(RIG_TEST, 'r');
	UNTIL(&s, s.n_lost == CLIENTS);
	NEED(s.n_broken == 0);
	NEED(s.n_connected == CLIENTS && s.n_messages == CLIENTS * 5);
	for (unsigned int i = 1; i <= CLIENTS; i++)
		NEED(seen[i] == 5);
	side_stop(&s);
}

static void one_of_many(void)
{
	char text[32];

	side_client(&s, RIG_NAME);
	side_start(&s);
	NEED(doca_comch_client_get_client_ctx(s.conn) == s.client &&
	     !doca_comch_server_get_server_ctx(s.conn));
	for (unsigned int i = 1; i <= 5; i++) {
		snprintf(text, sizeof(text), "%d of %d", i, getpid());
		side_send(&s, text);
		UNTIL(&s, s.n_messages == i);
		NEED(strcmp(s.text, text) == 0);
	}
	side_stop(&s);
}

static void a_server_has_many_clients_at_a_time(void)
{
	pid_t server, clients[CLIENTS];

	rig_begin();
	server = rig_fork(popular_server);
	rig_hear(RIG_TEST, 'r');
	for (unsigned int i = 0; i < CLIENTS; i++)
		clients[i] = rig_fork(one_of_many);
	for (unsigned int i = 0; i < CLIENTS; i++)
		rig_wait(clients[i], 0);
	rig_wait(server, 0);
}

/* -- disconnect -- */

static void refuse_second(struct side *side, struct doca_comch_connection *conn)
{
	if (side->n_connected == 2)
		NEED_OK(doca_comch_server_disconnect(side->server, conn));
}

static void choosy_server(void)
{
	side_server(&s, RIG_NAME);
	s.on_connect = refuse_second;
	side_start(&s);
	rig_tell(RIG_TEST, 'r');
	UNTIL(&s, s.n_connected == 2);
	UNTIL(&s, s.n_lost == 1);
	NEED(s.n_connected == 2 && strcmp(s.text, "still here") == 0);
	side_stop(&s);
}

static void first_client(void)
{
	side_client(&s, RIG_NAME);
	side_start(&s);
	rig_tell(RIG_TEST, '1');
	UNTIL(&s, rig_heard(RIG_CLIENT, 'g'));
	NEED(state_of(s.ctx) == DOCA_CTX_STATE_RUNNING);
	side_send(&s, "still here");
	side_stop(&s);
}

static void second_client(void)
{
	side_client(&s, RIG_NAME);
	side_start(&s);
	UNTIL(&s, state_of(s.ctx) == DOCA_CTX_STATE_IDLE);
	NEED(strcmp(s.journal, "1230") == 0);
	rig_tell(RIG_CLIENT, 'g');
	side_close(&s);
}

static void a_server_disconnects_one_client_in_the_connect_callback(void)
{
	pid_t server, first, second;

	rig_begin();
	server = rig_fork(choosy_server);
	rig_hear(RIG_TEST, 'r');
	first = rig_fork(first_client);
	rig_hear(RIG_TEST, '1');
	second = rig_fork(second_client);
	rig_wait(second, 0);
	rig_wait(first, 0);
	rig_wait(server, 0);
}

/* -- names -- */

static void second_of_that_name(void)
{
	rig_hear(RIG_CLIENT, 'r');
	side_server(&s, RIG_NAME);
	NEED_RESULT(DOCA_ERROR_INITIALIZATION, doca_ctx_start(s.ctx));
	NEED(state_of(s.ctx) == DOCA_CTX_STATE_IDLE);
	rig_tell(RIG_SERVER, 'q');
	rig_hear(RIG_CLIENT, 'q');
	side_start(&s); /* the name is free again */
	side_stop(&s);
}

static void first_of_that_name(void)
{
	side_server(&s, RIG_NAME);
	side_start(&s);
	rig_tell(RIG_CLIENT, 'r');
	UNTIL(&s, rig_heard(RIG_SERVER, 'q'));
	side_stop(&s);
	rig_tell(RIG_CLIENT, 'q');
}

static void a_name_is_unique_on_a_device_and_representor(void)
{
	rig_run(first_of_that_name, second_of_that_name);
}

/* -- server stop with clients that do not progress -- */

static void leaving_server(void)
{
	side_server(&s, RIG_NAME);
	side_start(&s);
	rig_tell(RIG_CLIENT, 'r');
	UNTIL(&s, s.n_connected);
	rig_hear(RIG_SERVER, 'c');
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(s.ctx));
	NEED_RESULT(DOCA_ERROR_IN_USE, doca_comch_server_destroy(s.server));
	/* alloc and submit are allowed, and fail later */
	NEED(side_try_send(&s, "late", 4) == DOCA_SUCCESS || s.n_failed == 0);
	UNTIL(&s, state_of(s.ctx) == DOCA_CTX_STATE_IDLE);
	NEED(strcmp(s.journal, "2C3f0") == 0 && s.n_lost == 0);
	side_close(&s);
	rig_tell(RIG_CLIENT, 'g');
}

static void idle_client(void)
{
	rig_hear(RIG_CLIENT, 'r');
	side_client(&s, RIG_NAME);
	side_start(&s);
	rig_tell(RIG_SERVER, 'c');
	rig_hear(RIG_CLIENT, 'g');
	NEED(state_of(s.ctx) == DOCA_CTX_STATE_RUNNING); /* the client has made no progress */
	NEED_RESULT(DOCA_ERROR_NOT_CONNECTED, side_try_send(&s, "late", 4));
	UNTIL(&s, state_of(s.ctx) == DOCA_CTX_STATE_IDLE);
	NEED(strcmp(s.journal, "1230") == 0);
	side_close(&s);
}

static void server_that_stops_disconnects_its_clients(void)
{
	rig_run(leaving_server, idle_client);
}

/* -- death -- */

static void dying_side(struct side *side)
{
	side_start(side);
	if (side->server)
		rig_tell(RIG_CLIENT, 'r');
	UNTIL(side, side->n_messages == 1);
	rig_tell(RIG_TEST, 'k');
	UNTIL(side, false);
}

static void dying_server(void)
{
	side_server(&s, RIG_NAME);
	dying_side(&s);
}

static void dying_client(void)
{
	rig_hear(RIG_CLIENT, 'r');
	side_client(&s, RIG_NAME);
	dying_side(&s);
}

/*
 * The library reports the loss within 100 ms. On a busy machine the process may be scheduled much
 * later, hence this limit.
 */
#define DETECTION_NS 2000000000ull

static void expect_loss_detected_in_time(bool (*is_detected)(void))
{
	uint64_t from;

	rig_hear(s.server ? RIG_SERVER : RIG_CLIENT, 'd'); /* the peer was killed */
	from = rig_now();
	UNTIL(&s, is_detected());
	NEED(rig_now() - from < DETECTION_NS);
}

static bool is_idle(void)
{
	return state_of(s.ctx) == DOCA_CTX_STATE_IDLE;
}

static bool is_lost(void)
{
	return s.n_lost == 1;
}

static void surviving_server(void)
{
	side_server(&s, RIG_NAME);
	side_start(&s);
	rig_tell(RIG_CLIENT, 'r');
	UNTIL(&s, s.n_connected);
	side_send(&s, "x");
	expect_loss_detected_in_time(is_lost);
	NEED(doca_comch_server_get_server_ctx(s.conn) == s.server);
	NEED_RESULT(DOCA_ERROR_NOT_CONNECTED, side_try_send(&s, "late", 4));
	NEED(strcmp(s.journal, "2CsD") == 0 && s.n_broken == 1);
	side_stop(&s);
}

static void surviving_client(void)
{
	rig_hear(RIG_CLIENT, 'r');
	side_client(&s, RIG_NAME);
	side_start(&s);
	side_send(&s, "x");
	expect_loss_detected_in_time(is_idle);
	NEED(strcmp(s.journal, "12s30") == 0);
	side_close(&s);
}

static void kill_one(void (*server)(void), void (*client)(void), bool kill_server)
{
	pid_t a, b;

	rig_begin();
	a = rig_fork(server);
	b = rig_fork(client);
	rig_hear(RIG_TEST, 'k');
	kill(kill_server ? a : b, SIGKILL);
	rig_wait(kill_server ? a : b, SIGKILL);
	rig_tell(kill_server ? RIG_CLIENT : RIG_SERVER, 'd');
	rig_wait(kill_server ? b : a, 0);
}

static void server_detects_a_killed_client_in_time(void)
{
	kill_one(surviving_server, dying_client, false);
}

static void client_is_idle_in_time_after_its_server_was_killed(void)
{
	kill_one(dying_server, surviving_client, true);
}

static void echo(struct side *side)
{
	NEED_OK(side_try_send(side, side->text, side->len));
}

/* -- restarts, counters, tasks that are kept -- */

/* Check the counters and answer; the client leaves as soon as it has the answer. */
static void count_and_echo(struct side *side)
{
	uint64_t value = 0;

	NEED_OK(doca_comch_connection_update_info(side->conn));
	NEED_OK(doca_comch_connection_get_counter(side->conn, DOCA_COMCH_COUNTER_RECV_MESSAGES,
						  &value));
	NEED(value == 1);
	NEED_OK(doca_comch_connection_get_counter(side->conn, DOCA_COMCH_COUNTER_RECV_BYTES,
						  &value));
	NEED(value == 4);
	NEED_RESULT(DOCA_ERROR_INVALID_VALUE,
		    doca_comch_connection_get_counter(side->conn, 0, &value));
	echo(side);
}

static void patient_server(void)
{
	side_server(&s, RIG_NAME);
	s.on_message = count_and_echo;
	side_start(&s);
	rig_tell(RIG_CLIENT, 'r');
	UNTIL(&s, s.n_lost == 3);
	NEED_RESULT(DOCA_ERROR_CONNECTION_ABORTED, doca_comch_connection_update_info(s.conn));
	NEED(s.n_connected == 3);
	side_stop(&s);
}

static void returning_client(void)
{
	uint64_t value = 0;

	rig_hear(RIG_CLIENT, 'r');
	side_client(&s, RIG_NAME);
	NEED_RESULT(DOCA_ERROR_BAD_STATE, doca_comch_client_get_connection(s.client, &s.conn));
	s.keep_tasks = true;
	for (unsigned int i = 1; i <= 3; i++) {
		side_start(&s);
		side_send(&s, "here");
		UNTIL(&s, s.n_messages == i && s.n_sent == i);
		NEED_OK(doca_comch_connection_update_info(s.conn));
		NEED_OK(doca_comch_connection_get_counter(s.conn, DOCA_COMCH_COUNTER_SENT_BYTES,
							  &value));
		NEED(value == 4);
		NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(s.ctx));
		/* the client does not reach IDLE while a task is not freed */
		for (int n = 0; n < 50; n++) {
			doca_pe_progress(s.pe);
			rig_yield();
		}
		NEED(state_of(s.ctx) == DOCA_CTX_STATE_STOPPING);
		doca_task_free(s.kept);
		UNTIL(&s, state_of(s.ctx) == DOCA_CTX_STATE_IDLE);
	}
	side_close(&s);
}

static void a_client_starts_again_and_again_and_its_tasks_must_be_free_before_IDLE(void)
{
	rig_run(patient_server, returning_client);
}

/* -- tasks of connections that ended long ago -- */

static struct side visitor;

static void come_and_go(unsigned int times)
{
	for (unsigned int i = s.n_connected + 1; times > 0; i++, times--) {
		side_start(&visitor);
		UNTIL(&s, s.n_connected == i);
		NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(visitor.ctx));
		UNTIL(&visitor, state_of(visitor.ctx) == DOCA_CTX_STATE_IDLE);
		UNTIL(&s, s.n_lost == i);
	}
}

static void submit_late(void)
{
	struct doca_comch_task_send *early, *late;

	side_server(&s, RIG_NAME);
	side_start(&s);
	side_client(&visitor, RIG_NAME);
	side_start(&visitor);
	UNTIL(&s, s.n_connected == 1);
	NEED_OK(doca_comch_server_task_send_alloc_init(s.server, s.conn, "x", 1, &early));
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(visitor.ctx));
	UNTIL(&visitor, state_of(visitor.ctx) == DOCA_CTX_STATE_IDLE);
	UNTIL(&s, s.n_lost == 1);
	come_and_go(1);
	NEED_OK(doca_comch_server_task_send_alloc_init(s.server, s.conn, "x", 1, &late));
	come_and_go(260); /* more connections than the library remembers */
	NEED_RESULT(DOCA_ERROR_NOT_CONNECTED,
		    doca_task_submit(doca_comch_task_send_as_task(early)));
	NEED_RESULT(DOCA_ERROR_NOT_CONNECTED, doca_task_submit(doca_comch_task_send_as_task(late)));
	doca_task_free(doca_comch_task_send_as_task(early));
	come_and_go(1); /* the library can forget the first connection now */
	NEED_RESULT(DOCA_ERROR_NOT_CONNECTED, doca_task_submit(doca_comch_task_send_as_task(late)));
	doca_task_free(doca_comch_task_send_as_task(late));
	side_close(&visitor);
	side_stop(&s);
}

static void a_task_of_a_connection_that_ended_long_ago_is_NOT_CONNECTED(void)
{
	rig_alone(submit_late);
}

/* -- calls with a connection that ended long ago: the library has released its memory -- */

static bool is_resident(const void *at)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char there = 0;

	NEED(mincore((void *)((uintptr_t)at & ~(page - 1)), 1, &there) == 0);
	return there & 1;
}

static void name_in_every_call(struct doca_comch_connection *conn)
{
	struct doca_comch_producer *producer;
	struct doca_comch_task_send *task;
	uint64_t value = 7;

	NEED_RESULT(DOCA_ERROR_NOT_CONNECTED,
		    doca_comch_server_task_send_alloc_init(s.server, conn, "x", 1, &task));
	NEED_RESULT(DOCA_ERROR_INVALID_VALUE, doca_comch_server_disconnect(s.server, conn));
	NEED_RESULT(DOCA_ERROR_CONNECTION_ABORTED, doca_comch_connection_update_info(conn));
	NEED_RESULT(DOCA_ERROR_BAD_STATE, doca_comch_producer_create(conn, &producer));
	NEED_OK(doca_comch_connection_get_counter(conn, DOCA_COMCH_COUNTER_SENT_BYTES, &value));
	NEED(value == 0);
	NEED_RESULT(DOCA_ERROR_NOT_CONNECTED,
		    doca_comch_connection_set_user_data(conn, (union doca_data){.u64 = 1}));
	NEED(doca_comch_connection_get_user_data(conn).u64 == 0);
	NEED(doca_comch_server_get_server_ctx(conn) == s.server);
	NEED(!doca_comch_client_get_client_ctx(conn));
}

static void name_late(void)
{
	struct doca_comch_connection *first, *page;

	side_server(&s, RIG_NAME);
	side_start(&s);
	side_client(&visitor, RIG_NAME);
	come_and_go(1);
	first = s.conn;
	come_and_go(30);
	page = s.conn;
	come_and_go(256);
	NEED(is_resident(page)); /* the library still remembers other connections on this page */
	NEED(!is_resident(first));
	name_in_every_call(first);
	come_and_go(20);
	name_in_every_call(page);
	NEED(s.conn != first && s.conn != page);
	side_close(&visitor);
	side_stop(&s);
}

static void connection_that_ended_long_ago_can_be_passed_to_calls(void)
{
	rig_alone(name_late);
}

int main(void)
{
	rig_init();
	UNITY_BEGIN();
	RUN_TEST(a_server_has_many_clients_at_a_time);
	RUN_TEST(a_server_disconnects_one_client_in_the_connect_callback);
	RUN_TEST(a_name_is_unique_on_a_device_and_representor);
	RUN_TEST(server_that_stops_disconnects_its_clients);
	RUN_TEST(server_detects_a_killed_client_in_time);
	RUN_TEST(client_is_idle_in_time_after_its_server_was_killed);
	RUN_TEST(a_client_starts_again_and_again_and_its_tasks_must_be_free_before_IDLE);
	RUN_TEST(a_task_of_a_connection_that_ended_long_ago_is_NOT_CONNECTED);
	RUN_TEST(connection_that_ended_long_ago_can_be_passed_to_calls);
	rig_fini();
	return UNITY_END();
}
