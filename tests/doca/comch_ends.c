/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_ends.c - what a program is told after it disconnected a client.
 *
 * Each test runs GANTRY_ROUNDS times, each time in new processes; a few times when that variable is not set.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "comch_fast_rig.h"

#define SPOKEN 5u /* control messages of a client that is rejected */

static struct side s, c;    /* a server and a client, in one process unless a test forks them */
static struct fast f;       /* on the connection of the client */

/* Of all processes of a test. */
static struct {
	unsigned int round;
} *shared;

void setUp(void)
{
}

void tearDown(void)
{
}

static unsigned int rounds(unsigned int usual)
{
	const char *text = getenv("GANTRY_ROUNDS");

	return text ? (unsigned int)strtoul(text, NULL, 10) : usual;
}

/* Each round has fresh processes, and so a fresh library. */
static void repeat(unsigned int usual, void (*round)(void))
{
	for (shared->round = 0; shared->round < rounds(usual); shared->round++)
		round();
}

static void drain(struct doca_pe *pe)
{
	while (doca_pe_progress(pe))
		;
}

/* -- a client that the server rejects in its connect callback -- */

static void speak(struct side *side)
{
	for (unsigned int i = 0; i < SPOKEN; i++)
		side_send(side, "hello");
}

/* A consumer that came and went, one that stays, and then messages. */
static void come_with_consumers(void)
{
	side_client(&c, RIG_NAME);
	side_start(&c);
	fast_open(&f, &c, 1 << 16);
	for (int i = 0; i < 2; i++) {
		fast_add_consumer(&f, 1);
		fast_start_consumer(&f);
		if (i == 0)
			fast_stop(&f);
	}
	speak(&c);
}

static bool leaves_first; /* the client is gone before the server disconnects it */

/* All that the client says arrives here, and waits for the engine. */
static void let_it_speak(struct doca_comch_connection *conn)
{
	const uint64_t until = rig_now() + RIG_DEADLINE_NS;
	uint64_t n = 0;

	while (n < SPOKEN) {
		NEED(rig_now() < until);
		NEED_OK(doca_comch_connection_update_info(conn));
		NEED_OK(doca_comch_connection_get_counter(conn, DOCA_COMCH_COUNTER_RECV_MESSAGES, &n));
		rig_yield();
	}
}

static void reject_late(struct side *side, struct doca_comch_connection *conn)
{
	const uint64_t until = rig_now() + RIG_DEADLINE_NS;
	doca_error_t result;

	let_it_speak(conn);
	if (leaves_first) {
		fast_close(&f);
		NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(c.ctx));
		while ((result = doca_comch_connection_update_info(conn)) == DOCA_SUCCESS) {
			NEED(rig_now() < until);
			rig_yield();
		}
		NEED(result == DOCA_ERROR_CONNECTION_ABORTED);
	}
	NEED_OK(doca_comch_server_disconnect(side->server, conn));
}

static void reject_in_one_process(void)
{
	side_server(&s, RIG_NAME);
	s.on_connect = reject_late;
	side_start(&s);
	come_with_consumers();
	UNTIL(&s, s.n_connected == 1);
	UNTIL(&s, doca_comch_server_disconnect(s.server, s.conn) == DOCA_ERROR_INVALID_VALUE); /* it is over */
	drain(s.pe);
	NEED(strcmp(s.journal, "2C") == 0);
	if (!leaves_first) {
		fast_close(&f);
		NEED(doca_ctx_stop(c.ctx) != DOCA_ERROR_IN_USE);
	}
	UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_IDLE);
	side_close(&c);
	side_stop(&s);
}

static void reject_once(void)
{
	leaves_first = shared->round % 2;
	rig_alone(reject_in_one_process);
}

static void nothing_of_a_connection_is_delivered_after_the_server_disconnected_it(void)
{
	repeat(4, reject_once);
}

/* -- the same as programs do it: one client is served, others are rejected -- */

static struct doca_comch_connection *served;

static void serve_one(struct side *side, struct doca_comch_connection *conn)
{
	if (!served) {
		served = conn;
		return;
	}
	if (shared->round % 2 == 0)
		let_it_speak(conn);
	NEED_OK(doca_comch_server_disconnect(side->server, conn));
}

static void answer_the_served(struct side *side)
{
	NEED(side->conn == served);
	side_send(side, "answer");
}

static void server_of_one(void)
{
	side_server(&s, RIG_NAME);
	s.on_connect = serve_one;
	s.on_message = answer_the_served;
	side_start(&s);
	rig_tell(RIG_TEST, 'r');
	UNTIL(&s, s.n_lost == 1); /* of the served one, which leaves last */
	NEED(s.n_connected == 2 && s.n_messages == 1 && s.n_new == 0 && s.n_expired == 0);
	side_stop(&s);
}

static void served_client(void)
{
	side_client(&c, RIG_NAME);
	side_start(&c);
	rig_tell(RIG_TEST, '1');
	UNTIL(&c, rig_heard(RIG_CLIENT, '2'));
	side_send(&c, "still served?");
	UNTIL(&c, c.n_messages == 1);
	side_stop(&c);
}

/* It speaks as soon as it is connected. In every other round the server rejects it at once, perhaps before that. */
static void rejected_client(void)
{
	side_client(&c, RIG_NAME);
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_start(c.ctx));
	UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_RUNNING);
	NEED_OK(doca_comch_client_get_connection(c.client, &c.conn));
	fast_open(&f, &c, 1 << 16);
	if (shared->round % 2 == 0) {
		fast_add_consumer(&f, 1);
		fast_start_consumer(&f);
	}
	for (unsigned int i = 0; i < SPOKEN; i++)
		side_try_send(&c, "hello", 5);
	UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_STOPPING || state_of(c.ctx) == DOCA_CTX_STATE_IDLE);
	fast_close(&f);
	UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_IDLE);
	side_close(&c);
}

static void serve_once(void)
{
	pid_t server, first, second;

	rig_begin();
	server = rig_fork(server_of_one);
	rig_hear(RIG_TEST, 'r');
	first = rig_fork(served_client);
	rig_hear(RIG_TEST, '1');
	second = rig_fork(rejected_client);
	rig_wait(second, 0);
	rig_tell(RIG_CLIENT, '2');
	rig_wait(first, 0);
	rig_wait(server, 0);
}

static void a_client_that_is_rejected_says_nothing_to_the_server_that_serves_another(void)
{
	repeat(10, serve_once);
}

int main(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	rig_init();
	UNITY_BEGIN();
	RUN_TEST(nothing_of_a_connection_is_delivered_after_the_server_disconnected_it);
	RUN_TEST(a_client_that_is_rejected_says_nothing_to_the_server_that_serves_another);
	rig_fini();
	return UNITY_END();
}
