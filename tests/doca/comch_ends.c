/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_ends.c - which events and messages a program gets after it disconnected a client, and after
 * its peer has ended
 *
 * Each test runs GANTRY_ROUNDS times, each time in new processes. If the variable is not set, it
 * runs a few times.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "comch_fast_rig.h"

#define SENT 3u   /* messages that the peer sends before it ends */
#define POSTED 8u /* receives that are posted for them */
#define SPOKEN 5u /* control messages of a rejected client */

static struct side s, c;    /* a server and a client, in one process unless a test forks them */
static struct fast f, peer; /* f: on the connection of the client; peer: of the server */

/* Shared by all processes of a test. */
static struct {
	/* when the peer was killed; longest time from then to the end of the last receive */
	uint64_t killed_ns, longest_ns;
	unsigned int round;
} * shared;

static unsigned int rounds(unsigned int usual)
{
	const char *text = getenv("GANTRY_ROUNDS");

	return text ? (unsigned int)strtoul(text, NULL, 10) : usual;
}

/* Each round runs in a new process, so that the library starts anew. */
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

/* -- a client that the server rejects -- */

static void speak(struct side *side)
{
	for (unsigned int i = 0; i < SPOKEN; i++)
		side_send(side, "hello");
}

/* Start and stop a consumer, start another one, then send messages. */
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

static bool leaves_first; /* the client ends before the server disconnects it */

/*
 * Return when all events and messages of the client have arrived. The engine has not delivered them
 * yet.
 */
static void let_it_speak(struct doca_comch_connection *conn)
{
	const uint64_t until = rig_now() + RIG_DEADLINE_NS;
	uint64_t n = 0;

	while (n < SPOKEN) {
		NEED(rig_now() < until);
		NEED_OK(doca_comch_connection_update_info(conn));
		NEED_OK(doca_comch_connection_get_counter(conn, DOCA_COMCH_COUNTER_RECV_MESSAGES,
							  &n));
		rig_yield();
	}
}

static void reject_late(struct side *side, struct doca_comch_connection *conn)
{
	let_it_speak(conn);
	if (leaves_first) {
		fast_close(&f);
		NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(c.ctx));
	}
	NEED_OK(doca_comch_server_disconnect(side->server, conn));
}

static void reject_in_one_process(void)
{
	side_server(&s, RIG_NAME);
	side_start(&s);
	come_with_consumers();
	NEED(s.n_connected == 1);
	reject_late(&s, s.conn);
	/* disconnect returns INVALID_VALUE when the connection has ended: wait for that */
	UNTIL(&s, doca_comch_server_disconnect(s.server, s.conn) == DOCA_ERROR_INVALID_VALUE);
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

/* -- a program that stops while events wait -- */

/*
 * Events and messages of the peer wait for the engine. In every second round the server stops, in
 * the other rounds the client.
 */
static void stop_with_events_waiting(void)
{
	struct side *const stopped = shared->round % 2 ? &s : &c, *const other = shared->round % 2
											 ? &c
											 : &s;

	side_join(&s, &c);
	fast_open(&f, other, 1 << 16);
	fast_add_consumer(&f, 1);
	fast_start_consumer(&f);
	speak(other);
	let_it_speak(stopped->conn);
	fast_close(&f);
	memset(stopped->journal, 0, sizeof(stopped->journal));
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(stopped->ctx));
	UNTIL(stopped, state_of(stopped->ctx) == DOCA_CTX_STATE_IDLE);
	drain(stopped->pe);
	NEED(strcmp(stopped->journal, "30") == 0);
	if (stopped == &s)
		UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_IDLE);
	side_close(stopped);
	if (stopped == &s)
		side_close(&c);
	else
		side_stop(&s);
}

static void stop_once(void)
{
	rig_alone(stop_with_events_waiting);
}

static void nothing_is_delivered_after_a_server_or_client_was_stopped(void)
{
	repeat(2, stop_once);
}

/* -- a server accepts one client and rejects the others, as programs do -- */

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
	UNTIL(&s, s.n_lost == 1); /* the loss of the accepted client, which leaves last */
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

/*
 * The client sends when it is connected. In every second round the server rejects the client
 * immediately, perhaps before the client has sent.
 */
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
	UNTIL(&c,
	      state_of(c.ctx) == DOCA_CTX_STATE_STOPPING || state_of(c.ctx) == DOCA_CTX_STATE_IDLE);
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

static void messages_of_a_rejected_client_do_not_reach_the_server(void)
{
	repeat(10, serve_once);
}

/* -- the fast path of a connection that the server disconnects -- */

static void disconnect_after_receives(void)
{
	fast_open_both(&f, &c, &peer, &s, 1 << 16);
	fast_add_consumer(&peer, POSTED);
	fast_start_consumer(&peer);
	for (unsigned int i = 0; i < POSTED; i++)
		fast_post(&peer, i * 64, 64);
	UNTIL(&c, c.n_new == 1);
	fast_add_producer(&f, SENT);
	NEED_OK(doca_ctx_start(doca_comch_producer_as_ctx(f.producer)));
	for (unsigned int i = 0; i < SENT; i++)
		fast_send(&f, 0, 0, "x", 1);
	NEED_RESULT(DOCA_ERROR_IN_USE, doca_comch_server_disconnect(s.server, s.conn));
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS,
		    doca_ctx_stop(doca_comch_consumer_as_ctx(peer.consumer)));
	/* tasks of the consumer end until it is idle; some deliver messages */
	do
		NEED_RESULT(DOCA_ERROR_IN_USE, doca_comch_server_disconnect(s.server, s.conn));
	while (doca_pe_progress(peer.pe) &&
	       state_of(doca_comch_consumer_as_ctx(peer.consumer)) != DOCA_CTX_STATE_IDLE);
	NEED(peer.n_received == SENT && peer.n_flushed == POSTED - SENT);
	NEED_OK(doca_comch_server_disconnect(s.server, s.conn));
	drain(s.pe);
	drain(peer.pe);
	NEED(peer.n_received == SENT && s.n_lost == 0);
	fast_close(&f);
	fast_close(&peer);
	UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_IDLE);
	side_close(&c);
	side_stop(&s);
}

static void disconnect_once(void)
{
	rig_alone(disconnect_after_receives);
}

static void a_connection_is_in_use_until_its_consumers_are_idle(void)
{
	repeat(2, disconnect_once);
}

/* -- receives that are posted when the peer leaves -- */

static void post_all(struct fast *fast)
{
	for (unsigned int i = 0; i < POSTED; i++)
		fast_post(fast, i * 64, 64);
}

/*
 * The consumer first receives the messages that the peer had sent. Only this engine makes progress.
 */
static void flushed(struct fast *fast)
{
	UNTIL(fast, fast->n_received == SENT && fast->n_flushed == POSTED - SENT);
	NEED(fast->recv_status == DOCA_ERROR_CONNECTION_RESET);
	NEED(state_of(doca_comch_consumer_as_ctx(fast->consumer)) == DOCA_CTX_STATE_RUNNING);
	fast_post(fast, 0, 64); /* submit accepts the receive, which then fails */
	NEED(fast->n_flushed == POSTED - SENT);
	UNTIL(fast, fast->n_flushed == POSTED - SENT + 1);
	NEED(fast->recv_status == DOCA_ERROR_CONNECTION_RESET && fast->n_received == SENT);
}

static void peer_leaves(void)
{
	fast_open_both(&f, &c, &peer, &s, 1 << 16);
	fast_add_consumer(&peer, POSTED);
	fast_start_consumer(&peer);
	post_all(&peer);
	UNTIL(&c, c.n_new == 1);
	fast_add_producer(&f, SENT);
	NEED_OK(doca_ctx_start(doca_comch_producer_as_ctx(f.producer)));
	for (unsigned int i = 0; i < SENT; i++)
		fast_send(&f, i * 64, i ? 20 : 0, "x", 1);
	fast_close(&f);
	side_stop(&c);
	flushed(&peer);
	UNTIL(&s, s.n_lost == 1);
	fast_close(&peer);
	side_stop(&s);
}

static void leave_once(void)
{
	rig_alone(peer_leaves);
}

static void receives_end_when_the_peer_leaves_after_what_it_sent_was_received(void)
{
	repeat(3, leave_once);
}

/*
 * Two producers use the credit of the same receive: one of their messages finds no receive, and
 * waits until the next receive is posted.
 */
static void more_sent_than_posted(void)
{
	struct doca_comch_producer *other;

	fast_open_both(&f, &c, &peer, &s, 1 << 16);
	fast_add_consumer(&peer, POSTED);
	fast_start_consumer(&peer);
	UNTIL(&c, c.n_new == 1);
	fast_add_producer(&f, 1);
	NEED_OK(doca_ctx_start(doca_comch_producer_as_ctx(f.producer)));
	other = f.producer;
	fast_add_producer(&f, 1);
	NEED_OK(doca_ctx_start(doca_comch_producer_as_ctx(f.producer)));
	fast_post(&peer, 0, 64);
	for (int i = 0; i < 2; i++) {
		struct doca_comch_producer *next = f.producer;

		fast_send(&f, 0, 0, "x", 1);
		f.producer = other;
		other = next;
	}
	fast_stop(&f);
	f.producer = other;
	fast_close(&f);
	side_stop(&c);
	UNTIL(&s, s.n_lost == 1);
	UNTIL(&peer, peer.n_received == 1);
	drain(peer.pe);
	NEED(peer.n_flushed == 0);
	fast_post(&peer, 0, 64);
	fast_post(&peer, 64, 64);
	UNTIL(&peer, peer.n_received == 2 && peer.n_flushed == 1);
	NEED(peer.recv_status == DOCA_ERROR_CONNECTION_RESET);
	fast_close(&peer);
	side_stop(&s);
}

static void send_more_once(void)
{
	rig_alone(more_sent_than_posted);
}

static void a_message_without_a_receive_is_received_after_its_sender_left(void)
{
	repeat(2, send_more_once);
}

/* -- receives that are posted when the peer is killed -- */

enum { KILL_SERVER = 1, IN_FLIGHT = 2 }; /* flags of a round */

/*
 * The process that will be killed: it sends its messages, and then makes no progress any more.
 */
static void die(void)
{
	fast_start(&f);
	if (shared->round & IN_FLIGHT)
		fast_post(&f, 0, 20000);
	UNTIL(&s, s.n_new == 1);
	for (unsigned int i = 0; i < SENT; i++)
		fast_send(&f, 0, i ? 20 : 0, "x", 1);
	side_send(&s, "sent");
	rig_tell(RIG_TEST, 'k');
	for (;;)
		pause();
}

static bool all_have_ended(void)
{
	return f.n_received == SENT && f.n_flushed == POSTED - SENT &&
	       f.n_failed == (shared->round & IN_FLIGHT ? 1 : 0);
}

static void survive(void)
{
	fast_start(&f);
	post_all(&f);
	UNTIL(&s, s.n_new == 1 && s.n_messages == 1);
	if (shared->round & IN_FLIGHT)
		fast_send(&f, 0, 20000, NULL, 0); /* the peer does not read it */
	rig_tell(RIG_TEST, 'k');
	UNTIL(&f, all_have_ended());
	if (rig_now() - shared->killed_ns > shared->longest_ns)
		shared->longest_ns = rig_now() - shared->killed_ns;
	NEED(f.recv_status == DOCA_ERROR_CONNECTION_RESET);
	NEED(!(shared->round & IN_FLIGHT) || f.send_status == DOCA_ERROR_CONNECTION_RESET);
	NEED_RESULT(DOCA_ERROR_NOT_CONNECTED, fast_try_send(&f, 0, 0, "x", 1));
	fast_close(&f);
}

static void server_that_dies(void)
{
	fast_open_server(&f, &s);
	die();
}

static void client_that_dies(void)
{
	fast_open_client(&f, &s);
	die();
}

static void server_that_survives(void)
{
	fast_open_server(&f, &s);
	survive();
	UNTIL(&s, s.n_lost == 1);
	side_stop(&s);
}

static void client_that_survives(void)
{
	fast_open_client(&f, &s);
	survive();
	UNTIL(&s, state_of(s.ctx) == DOCA_CTX_STATE_IDLE);
	side_close(&s);
}

static void kill_once(void)
{
	const bool kills_server = shared->round & KILL_SERVER;
	pid_t server, client;

	rig_begin();
	server = rig_fork(kills_server ? server_that_dies : server_that_survives);
	client = rig_fork(kills_server ? client_that_survives : client_that_dies);
	rig_hear(RIG_TEST, 'k');
	rig_hear(RIG_TEST, 'k');
	shared->killed_ns = rig_now();
	kill(kills_server ? server : client, SIGKILL);
	rig_wait(kills_server ? server : client, SIGKILL);
	rig_wait(kills_server ? client : server, 0);
}

static void receives_end_when_the_peer_is_killed(void)
{
	repeat(4, kill_once);
	if (getenv("GANTRY_ROUNDS"))
		printf("longest time from the kill to the end of the last receive: %.1f ms\n",
		       (double)shared->longest_ns / 1e6);
}

int main(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	rig_init();
	UNITY_BEGIN();
	RUN_TEST(nothing_of_a_connection_is_delivered_after_the_server_disconnected_it);
	RUN_TEST(nothing_is_delivered_after_a_server_or_client_was_stopped);
	RUN_TEST(messages_of_a_rejected_client_do_not_reach_the_server);
	RUN_TEST(a_connection_is_in_use_until_its_consumers_are_idle);
	RUN_TEST(receives_end_when_the_peer_leaves_after_what_it_sent_was_received);
	RUN_TEST(a_message_without_a_receive_is_received_after_its_sender_left);
	RUN_TEST(receives_end_when_the_peer_is_killed);
	rig_fini();
	return UNITY_END();
}
