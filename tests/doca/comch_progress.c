/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_progress.c - what needs progress of the program on a card needs it here, too: connections,
 * completions of control messages, and consumers. Both sides are in one process, so that the test
 * chooses each step of both.
 */
#include <string.h>

#include "comch_fast_rig.h"

#define ASKED 50u
#define STEPS 50 /* steps of one side, without the other, in which nothing must happen */

static struct side s, c;
static struct fast f, peer; /* f: on the connection of the client; peer: of the server */

static void steps(struct doca_pe *pe)
{
	for (int i = 0; i < STEPS; i++) {
		doca_pe_progress(pe);
		rig_yield();
	}
}

/* -- connections -- */

static void open_server_and_start_client(void)
{
	side_server(&s, RIG_NAME);
	side_start(&s);
	side_client(&c, RIG_NAME);
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_start(c.ctx));
}

static void connect_in_steps(void)
{
	struct doca_comch_connection *conn;

	open_server_and_start_client();
	steps(c.pe);
	NEED(state_of(c.ctx) == DOCA_CTX_STATE_STARTING && strcmp(s.journal, "2") == 0);
	NEED_OK(doca_comch_client_get_connection(c.client, &conn));
	NEED_RESULT(DOCA_ERROR_CONNECTION_INPROGRESS, doca_comch_connection_update_info(conn));
	UNTIL_ALONE(&s, s.n_connected == 1);
	NEED(state_of(c.ctx) == DOCA_CTX_STATE_STARTING);
	UNTIL_ALONE(&c, state_of(c.ctx) == DOCA_CTX_STATE_RUNNING);
	side_stop(&c);
	UNTIL(&s, s.n_lost == 1);
	NEED(s.n_broken == 0 && strcmp(s.journal, "2CD") == 0);
	side_stop(&s);
}

static void a_client_runs_only_after_the_server_has_progressed(void)
{
	rig_alone(connect_in_steps);
}

/* The request must have arrived when the client leaves, so try again with more time. */
static void leave_before_acceptance(void)
{
	side_server(&s, RIG_NAME);
	side_start(&s);
	side_client(&c, RIG_NAME);
	for (int n = 0; s.n_refused == 0; n++) {
		NEED(n < 1000);
		NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_start(c.ctx));
		for (int i = 0; i < n; i++)
			rig_yield();
		doca_ctx_stop(c.ctx);
		UNTIL_ALONE(&c, state_of(c.ctx) == DOCA_CTX_STATE_IDLE);
		rig_yield();
		while (doca_pe_progress(s.pe))
			;
	}
	NEED(s.n_connected == 0 && s.n_lost == 0);
	side_close(&c);
	side_stop(&s);
}

static void a_client_that_leaves_before_it_is_accepted_is_a_failed_connection(void)
{
	rig_alone(leave_before_acceptance);
}

/* -- control messages -- */

static void send_in_steps(void)
{
	side_join(&s, &c);
	side_send(&c, "to the server");
	steps(c.pe);
	NEED(c.n_sent == 0 && s.n_messages == 0);
	UNTIL_ALONE(&s, s.n_messages == 1);
	UNTIL_ALONE(&c, c.n_sent == 1);
	side_send(&s, "to the client");
	steps(s.pe);
	NEED(s.n_sent == 0 && c.n_messages == 0);
	UNTIL_ALONE(&c, c.n_messages == 1);
	UNTIL_ALONE(&s, s.n_sent == 1);
	side_stop(&c);
	side_stop(&s);
}

static void a_send_completes_only_after_the_peer_has_progressed(void)
{
	rig_alone(send_in_steps);
}

static void answer(struct side *side)
{
	side_send(side, "answer");
}

/* Programs expect the completion of a request before its answer. */
static void ask(void)
{
	side_join(&s, &c);
	s.on_message = answer;
	memset(c.journal, 0, sizeof(c.journal));
	for (unsigned int i = 0; i < ASKED; i++)
		side_send(&c, "question");
	UNTIL(&c, c.n_messages == ASKED);
	for (unsigned int i = 0, sent = 0, got = 0; c.journal[i]; i++) {
		sent += c.journal[i] == 's';
		got += c.journal[i] == 'm';
		NEED(sent >= got);
	}
	UNTIL(&c, c.n_sent == ASKED);
	UNTIL(&s, s.n_sent == ASKED);
	side_stop(&c);
	side_stop(&s);
}

static void a_send_completes_before_its_answer_arrives(void)
{
	rig_alone(ask);
}

/* MUST: a server can send its last message and stop at once, and the send succeeds. */
static void say_goodbye(void)
{
	side_join(&s, &c);
	memset(c.journal, 0, sizeof(c.journal));
	side_send(&s, "goodbye");
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(s.ctx));
	steps(s.pe);
	NEED(s.n_sent == 0 && state_of(s.ctx) == DOCA_CTX_STATE_STOPPING);
	UNTIL_ALONE(&c, state_of(c.ctx) == DOCA_CTX_STATE_IDLE);
	NEED(strcmp(c.journal, "m30") == 0);
	UNTIL_ALONE(&s, state_of(s.ctx) == DOCA_CTX_STATE_IDLE);
	NEED(s.n_sent == 1 && s.n_failed == 0);
	side_close(&c);
	side_close(&s);
}

static void MUST_a_message_before_a_stop_arrives_and_its_send_succeeds(void)
{
	rig_alone(say_goodbye);
}

/* A send that fails is not delivered, also if the peer progresses later. */
static void say_goodbye_to_nobody(void)
{
	side_join(&s, &c);
	side_send(&c, "goodbye");
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(c.ctx));
	UNTIL_ALONE(&c, state_of(c.ctx) == DOCA_CTX_STATE_IDLE);
	NEED(c.n_sent == 0 && c.n_failed == 1 && c.failed == DOCA_ERROR_NOT_CONNECTED);
	UNTIL_ALONE(&s, s.n_lost == 1);
	NEED(s.n_messages == 0 && s.n_broken == 0);
	side_close(&c);
	side_stop(&s);
}

static void a_message_that_the_peer_does_not_take_fails_and_is_not_delivered(void)
{
	rig_alone(say_goodbye_to_nobody);
}

/* -- consumers -- */

/* The consumer runs by progress of its own engine; the engine of its client announces it. */
static void announce_in_steps(void)
{
	uint32_t id;

	fast_open_both(&f, &c, &peer, &s, 1 << 16);
	fast_add_consumer(&f, 4);
	fast_start_consumer(&f); /* progresses no other engine */
	NEED_OK(doca_comch_consumer_get_id(f.consumer, &id));
	steps(s.pe);
	NEED(s.n_new == 0);
	NEED(doca_pe_progress(c.pe) == 0); /* an announcement is no event of the program */
	NEED(s.n_new == 0);
	/* a producer cannot use an id that its program does not know */
	fast_add_producer(&peer, 4);
	NEED_OK(doca_ctx_start(doca_comch_producer_as_ctx(peer.producer)));
	peer.to = id;
	fast_post(&f, 0, 64);
	fast_send(&peer, 0, 8, NULL, 0);
	UNTIL_ALONE(&peer, peer.n_failed == 1);
	NEED(peer.send_status == DOCA_ERROR_NOT_FOUND);
	UNTIL_ALONE(&s, s.n_new == 1);
	NEED(s.consumer == id);
	/* from now on, the data path needs no progress of the client and of the server */
	fast_send(&peer, 0, 8, NULL, 0);
	UNTIL_ALONE(&f, f.n_received == 1);
	fast_close_both(&f, &peer);
}

static void a_consumer_is_announced_by_progress_of_its_client_or_server(void)
{
	rig_alone(announce_in_steps);
}

int main(void)
{
	rig_init();
	UNITY_BEGIN();
	RUN_TEST(a_client_runs_only_after_the_server_has_progressed);
	RUN_TEST(a_client_that_leaves_before_it_is_accepted_is_a_failed_connection);
	RUN_TEST(a_send_completes_only_after_the_peer_has_progressed);
	RUN_TEST(a_send_completes_before_its_answer_arrives);
	RUN_TEST(MUST_a_message_before_a_stop_arrives_and_its_send_succeeds);
	RUN_TEST(a_message_that_the_peer_does_not_take_fails_and_is_not_delivered);
	RUN_TEST(a_consumer_is_announced_by_progress_of_its_client_or_server);
	rig_fini();
	return UNITY_END();
}
