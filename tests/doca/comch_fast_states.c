/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_fast_states.c - the states of Comch consumers and producers, as the tables in the vendor's
 * guide to Comch define them: tests take every transition, and try every operation in every state.
 * Journals have one digit for each state: 0 idle, 1 starting, 2 running, 3 stopping.
 */
#include <signal.h>
#include <string.h>

#include "comch_fast_rig.h"

#define LATE DOCA_ERROR_BAD_STATE
#define INVALID DOCA_ERROR_INVALID_VALUE
#define EMPTY DOCA_ERROR_NO_MEMORY
#define BUSY DOCA_ERROR_IN_USE
#define GOES_ON DOCA_ERROR_IN_PROGRESS

static struct side s, c;    /* both ends in one process unless a test forks them */
static struct fast f, peer; /* f: on the connection of the client; peer: of the server */

static void drain(struct doca_pe *pe)
{
	while (doca_pe_progress(pe))
		;
}

static void open_both(void)
{
	fast_open_both(&f, &c, &peer, &s, 1 << 16);
}

static void close_both(void)
{
	fast_close_both(&f, &peer);
}

/* Submit the task that a row has allocated, or free it. */
static doca_error_t end(doca_error_t result, struct doca_task *task, bool and_submit)
{
	if (result != DOCA_SUCCESS)
		return result;
	if (and_submit)
		result = doca_task_submit(task);
	if (!and_submit || result != DOCA_SUCCESS)
		doca_task_free(task);
	return result;
}

/* -- a consumer -- */

static struct doca_ctx *consumer_ctx(void)
{
	return doca_comch_consumer_as_ctx(f.consumer);
}

static void on_recv(struct doca_comch_consumer_task_post_recv *task, union doca_data task_data,
		    union doca_data ctx_data)
{
	struct fast *fast = ctx_data.ptr;

	(void)task_data;
	if (doca_task_get_status(doca_comch_consumer_task_post_recv_as_task(task)) == DOCA_SUCCESS)
		fast->n_received++;
	else
		fast->n_flushed++;
	doca_task_free(doca_comch_consumer_task_post_recv_as_task(task));
}

static doca_error_t take_recv(bool and_submit)
{
	struct doca_comch_consumer_task_post_recv *task = NULL;
	doca_error_t result = doca_comch_consumer_task_post_recv_alloc_init(f.consumer, NULL,
									    &task);

	return end(result, doca_comch_consumer_task_post_recv_as_task(task), and_submit);
}

static doca_error_t c_imm(void)
{
	return doca_comch_consumer_set_imm_data_len(f.consumer, 32);
}
static doca_error_t c_posts(void)
{
	return doca_comch_consumer_task_post_recv_set_conf(f.consumer, on_recv, on_recv, 4);
}
static doca_error_t c_engine(void)
{
	return doca_pe_connect_ctx(f.pe, consumer_ctx());
}
static doca_error_t c_start(void)
{
	return doca_ctx_start(consumer_ctx());
}
static doca_error_t c_stop(void)
{
	return doca_ctx_stop(consumer_ctx());
}
static doca_error_t c_destroy(void)
{
	return doca_comch_consumer_destroy(f.consumer);
}
static doca_error_t c_alloc(void)
{
	return take_recv(false);
}
static doca_error_t c_post(void)
{
	return take_recv(true);
}

static doca_error_t c_id(void)
{
	uint32_t id = 0;
	doca_error_t result = doca_comch_consumer_get_id(f.consumer, &id);

	NEED(id != 0 && id != 0xffff);
	return result;
}

static doca_error_t c_handle(void)
{
	doca_dpa_dev_comch_consumer_t handle;

	/* the consumer is not on a DPA */
	return doca_comch_consumer_get_dpa_handle(f.consumer, &handle);
}

static const struct rig_row consumer_rows[] = {
	/*                                      idle  starting  running  stopping */
	{"set_imm_data_len", c_imm, {DOCA_SUCCESS, LATE, LATE, LATE}},
	{"task_post_recv_set_conf", c_posts, {DOCA_SUCCESS, LATE, LATE, LATE}},
	{"pe_connect_ctx", c_engine, {DOCA_ERROR_NOT_PERMITTED, LATE, LATE, LATE}},
	{"get_id", c_id, {DOCA_SUCCESS, DOCA_SUCCESS, DOCA_SUCCESS, DOCA_SUCCESS}},
	{"get_dpa_handle", c_handle, {LATE, LATE, LATE, LATE}},
	{"alloc", c_alloc, {EMPTY, NOT_HERE, DOCA_SUCCESS, DOCA_SUCCESS}},
	{"submit", c_post, {EMPTY, LATE, DOCA_SUCCESS, DOCA_SUCCESS}},
	{"start", c_start, {NOT_HERE, LATE, LATE, LATE}},
	{"stop", c_stop, {DOCA_SUCCESS, NOT_HERE, NOT_HERE, GOES_ON}},
	{"destroy", c_destroy, {NOT_HERE, BUSY, BUSY, BUSY}},
};

static void walk_consumer(void)
{
	open_both();
	fast_add_consumer(&f, 4);
	TRY(consumer_ctx(), consumer_rows);
	NEED_RESULT(GOES_ON, doca_ctx_start(consumer_ctx()));
	NEED(strcmp(f.consumer_journal, "1") == 0);
	TRY(consumer_ctx(), consumer_rows);
	/* one progress of the consumer's engine makes one state transition */
	NEED(doca_pe_progress(f.pe) == 1);
	NEED(strcmp(f.consumer_journal, "12") == 0);
	TRY(consumer_ctx(), consumer_rows);
	UNTIL(&s, s.n_new == 1);
	drain(f.pe);
	/* a receive completes when a message arrives, not when it is posted */
	NEED(f.n_received + f.n_flushed == 0);
	NEED_RESULT(GOES_ON, doca_ctx_stop(consumer_ctx()));
	NEED(strcmp(f.consumer_journal, "123") == 0 && f.n_flushed == 0);
	TRY(consumer_ctx(), consumer_rows);
	UNTIL(&f, state_of(consumer_ctx()) == DOCA_CTX_STATE_IDLE);
	NEED(strcmp(f.consumer_journal, "1230") == 0 && f.n_flushed == 2);
	TRY(consumer_ctx(), consumer_rows);
	UNTIL(&s, s.n_expired == 1);
	/* start again; stop without a task reaches IDLE before it returns */
	fast_start_consumer(&f);
	UNTIL(&s, s.n_new == 2);
	NEED_OK(doca_ctx_stop(consumer_ctx()));
	NEED(strcmp(f.consumer_journal, "1230120") == 0);
	UNTIL(&s, s.n_expired == 2);
	close_both();
}

static void a_consumer_goes_through_all_states_and_each_call_gives_what_is_documented(void)
{
	rig_alone(walk_consumer);
}

static void stopped_while_starting(void)
{
	struct doca_comch_consumer_task_post_recv *task;

	open_both();
	fast_add_consumer(&f, 4);
	NEED_RESULT(GOES_ON, doca_ctx_start(consumer_ctx()));
	NEED_OK(doca_ctx_stop(consumer_ctx()));
	NEED(strcmp(f.consumer_journal, "10") == 0 && doca_pe_progress(f.pe) == 0);
	NEED_RESULT(GOES_ON, doca_ctx_start(consumer_ctx()));
	NEED_OK(doca_comch_consumer_task_post_recv_alloc_init(f.consumer, NULL, &task));
	NEED_RESULT(GOES_ON, doca_ctx_stop(consumer_ctx()));
	NEED(strcmp(f.consumer_journal, "1013") == 0 && doca_pe_progress(f.pe) == 0);
	doca_task_free(doca_comch_consumer_task_post_recv_as_task(task));
	NEED(doca_pe_progress(f.pe) == 1);
	NEED(strcmp(f.consumer_journal, "10130") == 0);
	/* the engine of the client made no progress, so the consumer was not announced */
	side_send(&c, "next");
	UNTIL(&s, s.n_messages == 1);
	NEED(s.n_new == 0 && s.n_expired == 0);
	close_both();
}

static void a_consumer_is_stopped_while_starting(void)
{
	rig_alone(stopped_while_starting);
}

/* -- a producer -- */

static struct doca_ctx *producer_ctx(void)
{
	return doca_comch_producer_as_ctx(f.producer);
}

static void on_send(struct doca_comch_producer_task_send *task, union doca_data task_data,
		    union doca_data ctx_data)
{
	struct fast *fast = ctx_data.ptr;

	(void)task_data;
	if (doca_task_get_status(doca_comch_producer_task_send_as_task(task)) == DOCA_SUCCESS)
		fast->n_sent++;
	else
		fast->n_failed++;
	doca_task_free(doca_comch_producer_task_send_as_task(task));
}

static doca_error_t take_send(bool and_submit)
{
	struct doca_comch_producer_task_send *task = NULL;
	uint8_t imm = 1;
	doca_error_t result = doca_comch_producer_task_send_alloc_init(f.producer, NULL, &imm, 1,
								       c.consumer, &task);

	return end(result, doca_comch_producer_task_send_as_task(task), and_submit);
}

static doca_error_t p_sends(void)
{
	return doca_comch_producer_task_send_set_conf(f.producer, on_send, on_send, 4);
}
static doca_error_t p_engine(void)
{
	return doca_pe_connect_ctx(f.pe, producer_ctx());
}
static doca_error_t p_start(void)
{
	return doca_ctx_start(producer_ctx());
}
static doca_error_t p_stop(void)
{
	return doca_ctx_stop(producer_ctx());
}
static doca_error_t p_destroy(void)
{
	return doca_comch_producer_destroy(f.producer);
}
static doca_error_t p_alloc(void)
{
	return take_send(false);
}

/* The first send to a consumer returns AGAIN until both ends have set up the queue. */
static doca_error_t p_send(void)
{
	const uint64_t until = rig_now() + RIG_DEADLINE_NS;
	doca_error_t result;

	while ((result = take_send(true)) == DOCA_ERROR_AGAIN)
		NEED(rig_now() < until);
	return result;
}

static doca_error_t p_id(void)
{
	uint32_t id = 0;
	doca_error_t result = doca_comch_producer_get_id(f.producer, &id);

	NEED(id != 0);
	return result;
}

static doca_error_t p_handle(void)
{
	doca_dpa_dev_comch_producer_t handle;

	return doca_comch_producer_get_dpa_handle(f.producer, &handle);
}

static const struct rig_row producer_rows[] = {
	/*                              idle  starting  running  stopping */
	{"task_send_set_conf", p_sends, {DOCA_SUCCESS, NOT_HERE, LATE, LATE}},
	{"pe_connect_ctx", p_engine, {DOCA_ERROR_NOT_PERMITTED, NOT_HERE, LATE, LATE}},
	{"get_id", p_id, {DOCA_SUCCESS, NOT_HERE, DOCA_SUCCESS, DOCA_SUCCESS}},
	{"get_dpa_handle", p_handle, {LATE, NOT_HERE, LATE, LATE}},
	{"alloc", p_alloc, {EMPTY, NOT_HERE, DOCA_SUCCESS, DOCA_SUCCESS}},
	{"submit", p_send, {EMPTY, NOT_HERE, DOCA_SUCCESS, DOCA_SUCCESS}},
	{"start", p_start, {NOT_HERE, NOT_HERE, LATE, LATE}},
	{"stop", p_stop, {DOCA_SUCCESS, NOT_HERE, NOT_HERE, GOES_ON}},
	{"destroy", p_destroy, {NOT_HERE, NOT_HERE, BUSY, BUSY}},
};

static void walk_producer(void)
{
	open_both();
	fast_add_consumer(&peer, 4);
	fast_start_consumer(&peer);
	fast_post(&peer, 0, 0);
	fast_post(&peer, 0, 0);
	UNTIL(&c, c.n_new == 1);
	fast_add_producer(&f, 4);
	TRY(producer_ctx(), producer_rows);
	NEED_OK(doca_ctx_start(producer_ctx())); /* the state is RUNNING when start returns */
	NEED(strcmp(f.producer_journal, "2") == 0);
	TRY(producer_ctx(), producer_rows);
	/* the completion of the sent task was not delivered yet */
	NEED_RESULT(GOES_ON, doca_ctx_stop(producer_ctx()));
	NEED(strcmp(f.producer_journal, "23") == 0);
	TRY(producer_ctx(), producer_rows);
	UNTIL(&f, state_of(producer_ctx()) == DOCA_CTX_STATE_IDLE);
	NEED(strcmp(f.producer_journal, "230") == 0 && f.n_sent == 1 && f.n_failed == 1);
	/* the message before the stop has arrived, the message after it has not */
	UNTIL(&peer, peer.n_received == 1);
	TRY(producer_ctx(), producer_rows);
	NEED_OK(doca_ctx_start(producer_ctx()));
	NEED_OK(doca_ctx_stop(producer_ctx())); /* no task is in flight */
	NEED(strcmp(f.producer_journal, "23020") == 0);
	close_both();
}

static void a_producer_goes_through_all_states_and_each_call_gives_what_is_documented(void)
{
	rig_alone(walk_producer);
}

/*
 * The peer has not read the data yet, so stop flushes the task. The producer becomes idle when the
 * program has freed the task.
 */
static void stopped_with_data_in_flight(void)
{
	open_both();
	fast_add_consumer(&peer, 4);
	fast_start_consumer(&peer);
	fast_post(&peer, 0, 20000);
	UNTIL(&c, c.n_new == 1);
	fast_add_producer(&f, 4);
	NEED_OK(doca_ctx_start(producer_ctx()));
	fast_send(&f, 0, 20000, NULL, 0);
	f.hold = true;
	NEED_RESULT(GOES_ON, doca_ctx_stop(producer_ctx()));
	UNTIL(&f, f.n_failed == 1);
	NEED(f.send_status != DOCA_SUCCESS);
	drain(f.pe);
	NEED(strcmp(f.producer_journal, "23") == 0);
	doca_task_free(f.kept);
	NEED(doca_pe_progress(f.pe) == 1);
	NEED(strcmp(f.producer_journal, "230") == 0);
	close_both();
}

static void stopping_producer_flushes_unread_sends_and_waits_for_its_tasks(void)
{
	rig_alone(stopped_with_data_in_flight);
}

/* -- messages and their answers -- */

static void answer(struct fast *fast)
{
	fast_post(fast, 0, 0);
	if (fast->producer)
		fast_send(fast, 0, 0, fast->imm, fast->imm_len);
}

/* Send a message to the peer, which answers if it has a producer. */
static void ask(void)
{
	const unsigned int before = peer.n_received;

	fast_post(&f, 0, 0);
	fast_send(&f, 0, 0, "x", 1);
	UNTIL(&peer, peer.n_received > before);
}

static void end_producer(struct fast *fast)
{
	struct doca_ctx *ctx = doca_comch_producer_as_ctx(fast->producer);

	UNTIL(fast, (doca_ctx_stop(ctx), state_of(ctx) == DOCA_CTX_STATE_IDLE));
	NEED_OK(doca_comch_producer_destroy(fast->producer));
	fast->producer = NULL;
}

/*
 * When a message arrives, the library prefetches the queue of the producer that answered the
 * previous message. It also remembers the consumer that received the last message, until the next
 * send. The test destroys first such a producer, then such a consumer, while the library remembers
 * it.
 */
static void gone_before_the_answer(void)
{
	struct doca_comch_producer *second;

	open_both();
	fast_start(&f);
	fast_start(&peer);
	UNTIL(&c, c.n_new == 1);
	UNTIL(&s, s.n_new == 1);
	peer.on_received = answer;
	fast_post(&peer, 0, 0);
	ask();
	ask();
	UNTIL(&f, f.n_received == 2);
	end_producer(&peer);
	ask(); /* no producer answers */
	fast_add_producer(&peer, 4);
	NEED_OK(doca_ctx_start(doca_comch_producer_as_ctx(peer.producer)));
	fast_send(&peer, 0, 0, "y", 1);
	UNTIL(&f, f.n_received == 3);
	second = peer.producer;
	peer.producer = NULL;
	ask();
	/* destroy the consumer that received the last message, before `peer` sends again */
	fast_stop(&peer);
	peer.producer = second;
	fast_post(&f, 0, 0);
	fast_send(&peer, 0, 0, "z", 1);
	UNTIL(&f, f.n_received == 4);
	close_both();
}

static void producer_that_owes_an_answer_can_be_destroyed(void)
{
	rig_alone(gone_before_the_answer);
}

/* -- the connection of consumers and producers -- */

/*
 * While a consumer or producer runs or starts, the server cannot stop or disconnect, and the client
 * cannot stop.
 */
static void in_use(struct doca_ctx *ctx)
{
	NEED(state_of(ctx) == DOCA_CTX_STATE_STARTING || state_of(ctx) == DOCA_CTX_STATE_RUNNING);
	NEED_RESULT(BUSY, doca_ctx_stop(c.ctx));
	NEED(state_of(c.ctx) == DOCA_CTX_STATE_RUNNING);
}

static void keep_the_connection(void)
{
	open_both();
	fast_add_consumer(&f, 4);
	NEED_RESULT(GOES_ON, doca_ctx_start(consumer_ctx()));
	in_use(consumer_ctx());
	UNTIL(&f, state_of(consumer_ctx()) == DOCA_CTX_STATE_RUNNING);
	in_use(consumer_ctx());
	NEED_OK(doca_ctx_stop(consumer_ctx()));
	fast_add_producer(&f, 4);
	NEED_OK(doca_ctx_start(producer_ctx()));
	in_use(producer_ctx());
	NEED_OK(doca_ctx_stop(producer_ctx()));
	/* the same calls at the server */
	fast_add_producer(&peer, 4);
	NEED_OK(doca_ctx_start(doca_comch_producer_as_ctx(peer.producer)));
	NEED_RESULT(BUSY, doca_comch_server_disconnect(s.server, s.conn));
	NEED_RESULT(BUSY, doca_ctx_stop(s.ctx));
	NEED(state_of(s.ctx) == DOCA_CTX_STATE_RUNNING);
	NEED_OK(doca_ctx_stop(doca_comch_producer_as_ctx(peer.producer)));
	/* stopped consumers and producers permit a disconnect, also those of the client */
	NEED_OK(doca_comch_server_disconnect(s.server, s.conn));
	UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_IDLE);
	NEED_RESULT(LATE, doca_ctx_start(consumer_ctx()));
	NEED_RESULT(LATE, doca_ctx_start(producer_ctx()));
	NEED(strcmp(f.consumer_journal, "120") == 0 && strcmp(f.producer_journal, "20") == 0);
	close_both();
}

static void consumers_and_producers_keep_their_connection_until_they_stop(void)
{
	rig_alone(keep_the_connection);
}

static void killed_server(void)
{
	side_server(&s, RIG_NAME);
	side_start(&s);
	rig_tell(RIG_CLIENT, 'r');
	UNTIL(&s, s.n_connected);
	fast_open(&peer, &s, 1 << 16);
	fast_add_consumer(&peer, 4);
	fast_start_consumer(&peer);
	fast_post(&peer, 0, 0);
	rig_tell(RIG_TEST, 'k');
	UNTIL(&s, false);
}

/* The server is killed while one consumer starts, another runs, and a producer has sent. */
static void bereaved_client(void)
{
	struct doca_comch_consumer *starting;
	struct doca_ctx *ctx;

	rig_hear(RIG_CLIENT, 'r');
	side_client(&c, RIG_NAME);
	side_start(&c);
	fast_open(&f, &c, 1 << 16);
	fast_add_consumer(&f, 4);
	NEED_RESULT(GOES_ON, doca_ctx_start(consumer_ctx()));
	starting = f.consumer;
	fast_open(&peer, &c, 1 << 16); /* a second consumer and producer of this program */
	fast_start(&peer);
	fast_post(&peer, 0, 64);
	UNTIL(&c, c.n_new == 1);
	fast_send(&peer, 0, 0, "x", 1);
	rig_tell(RIG_TEST, 'k');
	rig_hear(RIG_CLIENT, 'd');
	UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_STOPPING);
	/* the engine delivers earlier events; consumers and producer run until they are stopped */
	ctx = doca_comch_consumer_as_ctx(starting);
	UNTIL(&f, state_of(ctx) == DOCA_CTX_STATE_RUNNING);
	UNTIL(&peer, peer.n_sent == 1);
	NEED(state_of(doca_comch_consumer_as_ctx(peer.consumer)) == DOCA_CTX_STATE_RUNNING);
	NEED(state_of(doca_comch_producer_as_ctx(peer.producer)) == DOCA_CTX_STATE_RUNNING);
	NEED_RESULT(DOCA_ERROR_NOT_CONNECTED, fast_try_send(&peer, 0, 0, "x", 1));
	drain(c.pe);
	NEED(state_of(c.ctx) == DOCA_CTX_STATE_STOPPING);
	NEED_RESULT(GOES_ON, doca_ctx_stop(c.ctx));
	fast_close(&f);
	fast_stop(&peer);
	NEED(peer.n_flushed == 1);
	UNTIL(&c, state_of(c.ctx) == DOCA_CTX_STATE_IDLE);
	NEED(strcmp(c.journal, "12+30") == 0);
	fast_close(&peer);
	side_close(&c);
}

static void when_the_server_dies_the_client_is_idle_after_its_consumers_and_producers_were_stopped(
	void)
{
	pid_t server, client;

	rig_begin();
	server = rig_fork(killed_server);
	client = rig_fork(bereaved_client);
	rig_hear(RIG_TEST, 'k');
	rig_hear(RIG_TEST, 'k');
	kill(server, SIGKILL);
	rig_wait(server, SIGKILL);
	rig_tell(RIG_CLIENT, 'd');
	rig_wait(client, 0);
}

int main(void)
{
	rig_init();
	UNITY_BEGIN();
	RUN_TEST(a_consumer_goes_through_all_states_and_each_call_gives_what_is_documented);
	RUN_TEST(a_consumer_is_stopped_while_starting);
	RUN_TEST(a_producer_goes_through_all_states_and_each_call_gives_what_is_documented);
	RUN_TEST(stopping_producer_flushes_unread_sends_and_waits_for_its_tasks);
	RUN_TEST(producer_that_owes_an_answer_can_be_destroyed);
	RUN_TEST(consumers_and_producers_keep_their_connection_until_they_stop);
	RUN_TEST(
		when_the_server_dies_the_client_is_idle_after_its_consumers_and_producers_were_stopped);
	rig_fini();
	return UNITY_END();
}
