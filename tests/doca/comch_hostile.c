/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_hostile.c - careless and hostile programs: they stop, free, destroy and restart objects at
 * unexpected points, and are killed at any moment. No peer crashes, each task completes exactly
 * once, and no resource leaks.
 */
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comch_fast_rig.h"

static struct side s, c;
static struct fast f, peer; /* f: on the connection of the client; peer: of the server */

static unsigned int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	NEED(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* -- a callback that makes many invalid calls -- */

static unsigned int n_wrong;

static void do_wrong(struct side *side)
{
	struct doca_comch_consumer *consumer;

	if (side->server)
		NEED_RESULT(DOCA_ERROR_IN_USE, doca_comch_server_destroy(side->server));
	if (side->client)
		NEED_RESULT(DOCA_ERROR_IN_USE, doca_comch_client_destroy(side->client));
	NEED_RESULT(DOCA_ERROR_IN_USE, doca_pe_destroy(side->pe));
	NEED_RESULT(DOCA_ERROR_BAD_STATE, doca_ctx_start(side->ctx));
	NEED_RESULT(DOCA_ERROR_INVALID_VALUE,
		    doca_comch_consumer_create(side->conn, NULL, &consumer));
	n_wrong++;
	doca_pe_progress(side->pe); /* not allowed, but must not crash */
}

static void do_wrong_connected(struct side *side, struct doca_comch_connection *conn)
{
	NEED(conn);
	do_wrong(side);
}

static void wrong_everywhere(void)
{
	struct doca_comch_task_send *task;

	side_server(&s, RIG_NAME);
	s.on_connect = do_wrong_connected;
	s.on_message = do_wrong;
	side_start(&s);
	side_client(&c, RIG_NAME);
	c.on_message = do_wrong;
	side_start(&c);
	for (int i = 0; i < 20; i++)
		side_send(&c, "wrong?");
	UNTIL(&s, s.n_messages == 20);
	for (int i = 0; i < 20; i++)
		side_send(&s, "wrong!");
	UNTIL(&c, c.n_messages == 20 && c.n_sent == 20);
	NEED(n_wrong == 41);
	/* calls with a connection of another object, and with a task that was freed */
	NEED_RESULT(DOCA_ERROR_INVALID_VALUE,
		    doca_comch_server_task_send_alloc_init(s.server, c.conn, "x", 1, &task));
	NEED_RESULT(DOCA_ERROR_INVALID_VALUE,
		    doca_comch_client_task_send_alloc_init(c.client, s.conn, "x", 1, &task));
	NEED_RESULT(DOCA_ERROR_INVALID_VALUE, doca_comch_server_disconnect(s.server, c.conn));
	NEED_OK(doca_comch_client_task_send_alloc_init(c.client, c.conn, "x", 1, &task));
	doca_task_free(doca_comch_task_send_as_task(task));
	doca_task_free(doca_comch_task_send_as_task(task));
	NEED_RESULT(DOCA_ERROR_BAD_STATE, doca_task_submit(doca_comch_task_send_as_task(task)));
	side_stop(&c);
	UNTIL(&s, s.n_lost == 1);
	side_stop(&s);
}

static void invalid_calls_in_a_callback_are_rejected(void)
{
	rig_alone(wrong_everywhere);
}

/* -- stop in each kind of callback -- */

/* `stopper` stops itself in the callback that writes the letter `stop_at` into its journal. */
static struct side *stopper;
static char stop_at;
static bool has_stopped;

static void stop_now(struct side *side)
{
	doca_error_t result;

	if (side != stopper || has_stopped || !strchr(side->journal, stop_at))
		return;
	has_stopped = true;
	result = doca_ctx_stop(side->ctx);
	NEED(result == DOCA_ERROR_IN_PROGRESS || result == DOCA_ERROR_IN_USE ||
	     result == DOCA_SUCCESS);
	has_stopped = result != DOCA_ERROR_IN_USE;
}

static void stop_connected(struct side *side, struct doca_comch_connection *conn)
{
	(void)conn;
	stop_now(side);
}

static void stop_in_state(struct side *side, enum doca_ctx_states next)
{
	if (next == DOCA_CTX_STATE_RUNNING)
		stop_now(side);
}

static void stop_in_callback(void)
{
	size_t length;

	memset(&s, 0, sizeof(s));
	memset(&c, 0, sizeof(c));
	side_server(&s, RIG_NAME);
	side_client(&c, RIG_NAME);
	s.on_connect = stop_connected;
	s.on_message = c.on_message = stop_now;
	s.on_state = c.on_state = stop_in_state;
	NEED_OK(doca_ctx_start(s.ctx));
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_start(c.ctx));
	while (!has_stopped || state_of(stopper->ctx) != DOCA_CTX_STATE_IDLE) {
		doca_pe_progress(s.pe);
		doca_pe_progress(c.pe);
		if (c.n_sent + c.n_failed < 40 && state_of(c.ctx) == DOCA_CTX_STATE_RUNNING) {
			NEED_OK(doca_comch_client_get_connection(c.client, &c.conn));
			side_try_send(&c, "ping", 4);
		}
		if (s.n_connected && s.n_sent + s.n_failed < 40 &&
		    state_of(s.ctx) == DOCA_CTX_STATE_RUNNING)
			side_try_send(&s, "pong", 4);
		stop_now(stopper); /* at 's': struct side has no hook for completed sends */
	}
	length = strlen(stopper->journal);
	NEED(stopper->journal[length - 1] == '0');
	while (doca_pe_progress(stopper->pe))
		;
	NEED(strlen(stopper->journal) == length); /* no callback after IDLE */
	side_stop(&c);
	side_stop(&s);
}

static void everywhere(void)
{
	static const struct {
		struct side *side;
		char at;
	} places[] = {
		{&s, 'C'}, {&s, 'm'}, {&s, 's'}, {&c, '2'}, {&c, 'm'}, {&c, 's'},
	};
	unsigned int before = 0;

	for (int round = 0; round < 5; round++) {
		for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
			stopper = places[i].side;
			stop_at = places[i].at;
			has_stopped = false;
			stop_in_callback();
		}
		if (round == 1)
			before = open_files();
	}
	NEED(open_files() <= before); /* repeated starts leave no more files open */
}

static void context_stopped_in_any_callback_gets_no_callback_after_IDLE(void)
{
	rig_alone(everywhere);
}

/* -- disconnected while it sends: each task ends once -- */

static void cut_off(void)
{
	for (int round = 0; round < 30; round++) {
		unsigned int submitted = 0;
		bool is_cut = false;

		memset(&s, 0, sizeof(s));
		memset(&c, 0, sizeof(c));
		side_join(&s, &c);
		while (state_of(c.ctx) == DOCA_CTX_STATE_RUNNING) {
			doca_error_t result = side_try_send(&c, "again and again", 15);

			NEED(result == DOCA_SUCCESS || result == DOCA_ERROR_NO_MEMORY ||
			     result == DOCA_ERROR_NOT_CONNECTED);
			submitted += result == DOCA_SUCCESS;
			doca_pe_progress(s.pe);
			if (!is_cut && s.n_messages >= (unsigned int)round * 3)
				is_cut = doca_comch_server_disconnect(s.server, s.conn) ==
					 DOCA_SUCCESS;
			if (round % 2)
				doca_pe_progress(c.pe);
			else
				while (doca_pe_progress(c.pe))
					;
		}
		UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_IDLE);
		NEED(c.n_sent + c.n_failed == submitted);
		side_close(&c);
		side_stop(&s);
	}
}

static void every_send_ends_once_when_the_server_disconnects_meanwhile(void)
{
	rig_alone(cut_off);
}

/* -- tasks that are freed while the library has them -- */

static void free_in_flight(void)
{
	struct doca_comch_consumer_task_post_recv *recvs[16];
	struct doca_comch_task_send *sends[64];
	struct doca_buf *buf;

	side_server(&s, RIG_NAME);
	NEED_OK(doca_comch_server_set_recv_queue_size(s.server, 10));
	side_start(&s);
	side_client(&c, RIG_NAME);
	side_start(&c);
	UNTIL(&s, s.n_connected);
	fast_open(&f, &c, 1 << 16);
	fast_open(&peer, &s, 1 << 16);
	fast_add_consumer(&peer, 16);
	fast_start_consumer(&peer);
	for (int i = 0; i < 16; i++) {
		buf = fast_buf(&peer, (size_t)i * 1000, 1000, 0);
		NEED_OK(doca_comch_consumer_task_post_recv_alloc_init(peer.consumer, buf,
								      &recvs[i]));
		NEED_OK(doca_task_submit(doca_comch_consumer_task_post_recv_as_task(recvs[i])));
		NEED_OK(doca_buf_dec_refcount(buf, NULL));
		doca_task_free(doca_comch_consumer_task_post_recv_as_task(recvs[i]));
		doca_task_free(doca_comch_consumer_task_post_recv_as_task(recvs[i]));
	}
	UNTIL(&c, c.n_new == 1);
	fast_add_producer(&f, 4);
	NEED_OK(doca_ctx_start(doca_comch_producer_as_ctx(f.producer)));
	fast_send(&f, 0, 900, "x", 1); /* the message uses a receive that was freed */
	UNTIL(&peer, doca_pe_progress(f.pe) && f.n_sent == 1);
	/* queued sends that are freed: messages are sent, completions are not delivered */
	for (int i = 0; i < 64; i++) {
		NEED_OK(doca_comch_client_task_send_alloc_init(c.client, c.conn, "free", 4,
							       &sends[i]));
		NEED_OK(doca_task_submit(doca_comch_task_send_as_task(sends[i])));
		doca_task_free(doca_comch_task_send_as_task(sends[i]));
	}
	UNTIL(&s, s.n_messages == 64);
	while (doca_pe_progress(c.pe))
		;
	NEED(c.n_sent == 0 && c.n_failed == 0);
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS,
		    doca_ctx_stop(doca_comch_consumer_as_ctx(peer.consumer)));
	UNTIL(&peer, state_of(doca_comch_consumer_as_ctx(peer.consumer)) == DOCA_CTX_STATE_IDLE);
	NEED(peer.n_received == 0 && peer.n_flushed == 0);
	fast_close(&f);
	fast_close(&peer);
	side_stop(&c);
	side_stop(&s);
}

static void tasks_that_are_freed_in_flight_are_forgotten(void)
{
	rig_alone(free_in_flight);
}

/* -- started again in the callback of IDLE -- */

static unsigned int n_starts;

static void start_again(struct side *side, enum doca_ctx_states next)
{
	if (next != DOCA_CTX_STATE_IDLE || n_starts == 300)
		return;
	n_starts++;
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_start(side->ctx));
}

static void stubborn_client(void)
{
	side_client(&c, RIG_NAME);
	c.on_state = start_again;
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_start(c.ctx));
	UNTIL(&c, n_starts == 280); /* more connections than the library remembers */
	side_server(&s, RIG_NAME);
	side_start(&s);
	UNTIL(&c, n_starts == 300 || state_of(c.ctx) == DOCA_CTX_STATE_RUNNING);
	n_starts = 290;
	UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_RUNNING);
	UNTIL(&s, s.n_connected == 1);
	for (unsigned int i = 2; n_starts < 300; i++) {
		NEED_OK(doca_comch_server_disconnect(s.server, s.conn));
		UNTIL(&c, state_of(c.ctx) != DOCA_CTX_STATE_RUNNING);
		UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_RUNNING);
		UNTIL(&s, s.n_connected == i);
	}
	NEED_OK(doca_comch_client_get_connection(c.client, &c.conn));
	side_send(&c, "at last");
	UNTIL(&s, s.n_messages == 1);
	side_stop(&c);
	side_stop(&s);
}

static void a_client_starts_again_in_the_callback_of_IDLE_hundreds_of_times(void)
{
	rig_alone(stubborn_client);
}

/* -- killed at any moment -- */

static unsigned int seed;

/* Connects, sends, creates and destroys consumers, until it is killed. */
static void restless_client(void)
{
	uint64_t next = 0;

	side_client(&c, RIG_NAME);
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_start(c.ctx));
	UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_RUNNING);
	NEED_OK(doca_comch_client_get_connection(c.client, &c.conn));
	fast_open(&f, &c, 1 << 18);
	fast_start(&f);
	for (uint64_t until = rig_now() + RIG_DEADLINE_NS; rig_now() < until;) {
		side_try_send(&c, "restless", 8);
		if (c.n_new)
			fast_try_send(&f, 0, (size_t)rand_r(&seed) % 20000, "r", 1);
		/*
		 * restart the consumer, but not too often: each restart sends messages, and the
		 * transport ends the connection of a peer that reads too slowly
		 */
		if (rig_now() > next) {
			next = rig_now() + (uint64_t)rand_r(&seed) % 4000000;
			NEED_OK(doca_ctx_stop(doca_comch_consumer_as_ctx(f.consumer)));
			memset(f.consumer_journal, 0, sizeof(f.consumer_journal));
			fast_start_consumer(&f);
		}
		doca_pe_progress(f.pe);
		doca_pe_progress(c.pe);
	}
}

static void receive_again(struct fast *fast)
{
	NEED(fast->length <= 20000 && fast->imm_len == 1);
}

/*
 * Forks a restless side at each 'f' of the patient one, and kills it at the next 'k'. This process
 * has no threads: a child of a process with threads could inherit a held lock, which no thread of
 * the child would release.
 */
static void fork_and_kill(void (*role)(void), unsigned int rounds, unsigned int spread)
{
	for (unsigned int round = 1; round <= rounds; round++) {
		int status;
		pid_t pid;

		rig_hear(RIG_TEST, 'f');
		seed = round * spread;
		pid = rig_fork(role);
		rig_hear(RIG_TEST, 'k');
		kill(pid, SIGKILL);
		NEED(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
		     WTERMSIG(status) == SIGKILL);
		rig_tell(RIG_CLIENT, 'd');
	}
}

static void restless_clients(void)
{
	fork_and_kill(restless_client, 40, 7919);
}

/* The client is killed some milliseconds after it has connected. */
static void patient_server(void)
{
	unsigned int before = 0;

	side_server(&s, RIG_NAME);
	side_start(&s);
	for (unsigned int round = 1; round <= 40; round++) {
		uint64_t until;

		seed = round * 7919;
		rig_tell(RIG_TEST, 'f');
		UNTIL(&s, s.n_connected == round);
		fast_open(&peer, &s, 1 << 18);
		peer.keep = true;
		peer.on_received = receive_again;
		fast_add_consumer(&peer, 8);
		fast_start_consumer(&peer);
		for (size_t i = 0; i < 8; i++)
			fast_post(&peer, i * 20000, 20000);
		until = rig_now() + (uint64_t)rand_r(&seed) % 30 * 1000000;
		while (rig_now() < until) {
			doca_pe_progress(peer.pe);
			doca_pe_progress(s.pe);
			side_try_send(&s, "patient", 7);
		}
		rig_tell(RIG_TEST, 'k');
		UNTIL(&s, s.n_lost == round);
		rig_hear(RIG_CLIENT, 'd');
		peer.keep = false;
		fast_close(&peer);
		UNTIL(&s, doca_pe_progress(s.pe) == 0);
		if (round == 10)
			before = open_files();
	}
	NEED(open_files() <= before);
	NEED_OK(doca_ctx_stop(s.ctx)); /* the server has no object of the killed clients any more */
	side_close(&s);
}

static void a_server_survives_clients_that_are_killed_at_any_moment(void)
{
	rig_run(patient_server, restless_clients);
}

static void restless_server(void)
{
	side_server(&s, RIG_NAME);
	side_start(&s);
	UNTIL(&s, s.n_connected);
	fast_open(&f, &s, 1 << 18);
	fast_start(&f);
	for (uint64_t until = rig_now() + RIG_DEADLINE_NS; rig_now() < until;) {
		side_try_send(&s, "restless", 8);
		if (s.n_new)
			fast_try_send(&f, 0, (size_t)rand_r(&seed) % 20000, "r", 1);
		doca_pe_progress(f.pe);
		doca_pe_progress(s.pe);
	}
}

static void restless_servers(void)
{
	fork_and_kill(restless_server, 30, 104729);
}

static void patient_client(void)
{
	unsigned int before = 0;

	side_client(&c, RIG_NAME);
	for (unsigned int round = 1; round <= 30; round++) {
		uint64_t until;

		seed = round * 104729;
		rig_tell(RIG_TEST, 'f');
		/* until the server has started */
		while (state_of(c.ctx) != DOCA_CTX_STATE_RUNNING) {
			NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_start(c.ctx));
			UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_RUNNING ||
					  state_of(c.ctx) == DOCA_CTX_STATE_IDLE);
		}
		NEED_OK(doca_comch_client_get_connection(c.client, &c.conn));
		fast_open(&peer, &c, 1 << 18);
		fast_start(&peer);
		fast_post(&peer, 0, 20000);
		fast_post(&peer, 20000, 20000);
		until = rig_now() + (uint64_t)rand_r(&seed) % 30 * 1000000;
		while (rig_now() < until) {
			doca_pe_progress(peer.pe);
			doca_pe_progress(c.pe);
			side_try_send(&c, "patient", 7);
		}
		rig_tell(RIG_TEST, 'k');
		rig_hear(RIG_CLIENT, 'd');
		UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_STOPPING);
		fast_close(&peer);
		UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_IDLE);
		memset(c.journal, 0, sizeof(c.journal));
		if (round == 10)
			before = open_files();
	}
	NEED(open_files() <= before);
	side_close(&c);
}

static void a_client_survives_servers_that_are_killed_at_any_moment(void)
{
	rig_run(restless_servers, patient_client);
}

/* -- a client that creates and destroys consumers while the server makes no progress -- */

#define COMINGS 6000u

static void never_received(struct doca_comch_consumer_task_post_recv *task,
			   union doca_data task_data, union doca_data ctx_data)
{
	(void)task;
	(void)task_data;
	(void)ctx_data;
	NEED(!"nothing is posted");
}

static void deaf_server(void)
{
	side_server(&s, RIG_NAME);
	side_start(&s);
	rig_tell(RIG_CLIENT, 'r');
	UNTIL(&s, s.n_connected);
	rig_hear(RIG_SERVER, 'd'); /* without any progress */
	UNTIL(&s, s.n_lost == 1);
	NEED(s.n_new > 1000 && s.n_new < COMINGS);
	side_stop(&s);
}

static void noisy_client(void)
{
	rig_hear(RIG_CLIENT, 'r');
	side_client(&c, RIG_NAME);
	side_start(&c);
	fast_open(&f, &c, 4096);
	for (unsigned int i = 0; i < COMINGS; i++) {
		if (doca_comch_consumer_create(c.conn, f.mmap, &f.consumer) != DOCA_SUCCESS)
			break; /* the server has ended the connection of this client */
		NEED_OK(doca_pe_connect_ctx(f.pe, doca_comch_consumer_as_ctx(f.consumer)));
		NEED_OK(doca_comch_consumer_task_post_recv_set_conf(f.consumer, never_received,
								    never_received, 1));
		if (doca_ctx_start(doca_comch_consumer_as_ctx(f.consumer)) ==
		    DOCA_ERROR_IN_PROGRESS) {
			doca_pe_progress(c.pe); /* announces the consumer */
			NEED_OK(doca_ctx_stop(doca_comch_consumer_as_ctx(f.consumer)));
		}
		NEED_OK(doca_comch_consumer_destroy(f.consumer));
		if (i % 32 == 0)
			/* else the transport ends the connection: the server reads too slowly */
			rig_yield();
	}
	f.consumer = NULL;
	rig_tell(RIG_SERVER, 'd');
	fast_close(&f);
	doca_ctx_stop(c.ctx);
	UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_IDLE);
	side_close(&c);
}

static void client_whose_events_are_not_consumed_is_disconnected(void)
{
	rig_run(deaf_server, noisy_client);
}

int main(void)
{
	rig_init();
	UNITY_BEGIN();
	RUN_TEST(invalid_calls_in_a_callback_are_rejected);
	RUN_TEST(context_stopped_in_any_callback_gets_no_callback_after_IDLE);
	RUN_TEST(every_send_ends_once_when_the_server_disconnects_meanwhile);
	RUN_TEST(tasks_that_are_freed_in_flight_are_forgotten);
	RUN_TEST(a_client_starts_again_in_the_callback_of_IDLE_hundreds_of_times);
	RUN_TEST(client_whose_events_are_not_consumed_is_disconnected);
	RUN_TEST(a_server_survives_clients_that_are_killed_at_any_moment);
	RUN_TEST(a_client_survives_servers_that_are_killed_at_any_moment);
	rig_fini();
	return UNITY_END();
}
