/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_ctrl.c - the control path of Comch between processes: one test for each rule that programs
 * depend on. The name of a test is the rule. If a "MUST" rule is violated, programs fail, hang or
 * crash.
 */
#include <string.h>

#include "comch_rig.h"

static struct side s; /* the side of this process */

/* -- one message to the server and its answer, after which the server stops immediately -- */

static void answer_and_stop(struct side *side)
{
	side_send(side, "and good bye");
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(side->ctx));
}

static void answering_server(void)
{
	side_server(&s, RIG_NAME);
	s.on_message = answer_and_stop;
	side_start(&s);
	rig_tell(RIG_CLIENT, 'r');
	UNTIL(&s, state_of(s.ctx) == DOCA_CTX_STATE_IDLE);
	NEED(strcmp(s.text, "hello") == 0 && s.n_connected == 1 && s.n_sent == 1);
	NEED(strcmp(s.journal, "2Cm3s0") == 0);
	side_close(&s);
}

static void asking_client(void)
{
	rig_hear(RIG_CLIENT, 'r');
	side_client(&s, RIG_NAME);
	side_start(&s);
	side_send(&s, "hello");
	UNTIL(&s, state_of(s.ctx) == DOCA_CTX_STATE_IDLE);
	NEED(strcmp(s.text, "and good bye") == 0);
	NEED(strcmp(s.journal, "12sm30") == 0);
	side_close(&s);
}

static void MUST_a_reply_is_delivered_before_the_disconnect_and_the_client_stops_by_itself(void)
{
	rig_run(answering_server, asking_client);
}

/* -- no server -- */

static void lonely_client(void)
{
	side_client(&s, "nobody");
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_start(s.ctx));
	NEED(strcmp(s.journal, "1") == 0);
	UNTIL(&s, state_of(s.ctx) == DOCA_CTX_STATE_IDLE);
	NEED(strcmp(s.journal, "130") == 0 || strcmp(s.journal, "10") == 0);
	side_close(&s);
}

static void nothing(void)
{
}

static void a_client_without_a_server_goes_back_to_idle(void)
{
	rig_run(nothing, lonely_client);
}

/* -- both start as documented -- */

static void quiet_server(void)
{
	side_server(&s, RIG_NAME);
	side_start(&s);
	rig_tell(RIG_CLIENT, 'r');
	UNTIL(&s, s.n_lost);
	NEED(strcmp(s.journal, "2CD") == 0);
	side_stop(&s);
	NEED(strcmp(s.journal, "2CD0") == 0);
}

static void stopping_client(void)
{
	rig_hear(RIG_CLIENT, 'r');
	side_client(&s, RIG_NAME);
	side_start(&s);
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(s.ctx));
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(s.ctx));
	NEED_RESULT(DOCA_ERROR_IN_USE, doca_comch_client_destroy(s.client));
	UNTIL(&s, state_of(s.ctx) == DOCA_CTX_STATE_IDLE);
	NEED(strcmp(s.journal, "1230") == 0);
	NEED_OK(doca_ctx_stop(s.ctx)); /* MUST: stop of an idle context is SUCCESS */
	side_close(&s);
}

static void MUST_client_start_is_IN_PROGRESS_and_server_start_is_SUCCESS(void)
{
	rig_run(quiet_server, stopping_client);
}

/* -- a submitted send leaves without progress -- */

static void waiting_server(void)
{
	side_server(&s, RIG_NAME);
	side_start(&s);
	rig_tell(RIG_CLIENT, 'r');
	UNTIL(&s, s.n_messages == 1);
	NEED(strcmp(s.text, "sent once") == 0);
	rig_tell(RIG_CLIENT, 'g'); /* the client makes progress again only from now on */
	UNTIL(&s, s.n_lost);
	side_stop(&s);
}

static void blocking_client(void)
{
	char text[] = "sent once";

	rig_hear(RIG_CLIENT, 'r');
	side_client(&s, RIG_NAME);
	side_start(&s);
	NEED_OK(side_try_send(&s, text, sizeof(text) - 1));
	memset(text, 'x', sizeof(text)); /* submit has copied the text */
	NEED(s.n_sent == 0);             /* submit calls no callback */
	rig_hear(RIG_CLIENT, 'g');
	UNTIL(&s, s.n_sent == 1);
	side_stop(&s);
}

static void MUST_a_submitted_send_leaves_the_process_without_progress(void)
{
	rig_run(waiting_server, blocking_client);
}

/* -- more messages than the queue of the peer holds; their order and number -- */

#define MANY 500u

static uint32_t expected;
static bool check_is_on = true;

static void check_number(struct side *side)
{
	uint32_t number;

	NEED(side->len == 4000);
	memcpy(&number, side->text, sizeof(number));
	if (check_is_on)
		NEED(number == expected);
	expected++;
}

static void slow_server(void)
{
	side_server(&s, RIG_NAME);
	NEED_OK(doca_comch_server_set_recv_queue_size(s.server, 10));
	s.on_message = check_number;
	side_start(&s);
	rig_tell(RIG_CLIENT, 'r');
	UNTIL(&s, s.n_connected);
	rig_hear(RIG_SERVER, 'f'); /* the client has submitted as many messages as it could */
	UNTIL(&s, s.n_messages == MANY);
	UNTIL(&s, s.n_lost);
	NEED(expected == MANY);
	side_stop(&s);
}

static void eager_client(void)
{
	static uint32_t text[1000];
	uint32_t n = 0;

	rig_hear(RIG_CLIENT, 'r');
	side_client(&s, RIG_NAME);
	side_start(&s);
	while (n < 64) { /* the number of tasks of the pool */
		text[0] = n++;
		NEED_OK(side_try_send(&s, text, sizeof(text)));
	}
	NEED_RESULT(DOCA_ERROR_NO_MEMORY, side_try_send(&s, text, sizeof(text)));
	rig_tell(RIG_SERVER, 'f');
	while (n < MANY) {
		doca_error_t result;

		text[0] = n;
		result = side_try_send(&s, text, sizeof(text));
		n += result == DOCA_SUCCESS;
		NEED(result == DOCA_SUCCESS || result == DOCA_ERROR_NO_MEMORY);
		doca_pe_progress(s.pe);
	}
	UNTIL(&s, s.n_sent == MANY);
	side_stop(&s);
}

static void messages_arrive_all_once_and_in_order_also_when_the_queue_of_the_peer_is_full(void)
{
	rig_run(slow_server, eager_client);
}

/* -- sizes -- */

static void small_server(void)
{
	uint32_t size = 0;

	side_server(&s, RIG_NAME);
	NEED_RESULT(DOCA_ERROR_INVALID_VALUE, doca_comch_server_set_max_msg_size(s.server, 0));
	NEED_RESULT(DOCA_ERROR_INVALID_VALUE, doca_comch_server_set_max_msg_size(s.server, 4081));
	NEED_OK(doca_comch_server_set_max_msg_size(s.server, 100));
	NEED_OK(doca_comch_server_get_max_msg_size(s.server, &size));
	NEED(size == 100);
	side_start(&s);
	rig_tell(RIG_CLIENT, 'r');
	UNTIL(&s, rig_heard(RIG_SERVER, 'f'));
	NEED(s.n_connected == 0 && s.n_lost == 0);
	UNTIL(&s, s.n_connected == 1);
	NEED_RESULT(DOCA_ERROR_INVALID_VALUE, side_try_send(&s, s.text, 101));
	NEED_RESULT(DOCA_ERROR_INVALID_VALUE, side_try_send(&s, s.text, 0));
	NEED_OK(side_try_send(&s, s.text, 100));
	UNTIL(&s, s.n_lost == 1);
	side_stop(&s);
}

static void big_client(void)
{
	rig_hear(RIG_CLIENT, 'r');
	side_client(&s, RIG_NAME);
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_start(s.ctx));
	UNTIL(&s, state_of(s.ctx) == DOCA_CTX_STATE_IDLE);
	NEED(strcmp(s.journal, "130") == 0 || strcmp(s.journal, "10") == 0);
	rig_tell(RIG_SERVER, 'f');
	/* the same client with the size of the server */
	NEED_OK(doca_comch_client_set_max_msg_size(s.client, 100));
	side_start(&s);
	NEED_RESULT(DOCA_ERROR_BAD_STATE, doca_comch_client_set_max_msg_size(s.client, 4080));
	UNTIL(&s, s.n_messages == 1);
	NEED(s.len == 100);
	side_stop(&s);
}

static void sizes_of_messages_that_differ_fail_the_connection(void)
{
	rig_run(small_server, big_client);
}

/* -- the largest message, both ways -- */

static void echo(struct side *side)
{
	NEED_OK(side_try_send(side, side->text, side->len));
}

static void echo_server(void)
{
	side_server(&s, RIG_NAME);
	s.on_message = echo;
	side_start(&s);
	rig_tell(RIG_CLIENT, 'r');
	UNTIL(&s, s.n_lost);
	side_stop(&s);
}

static void largest_client(void)
{
	char text[4080];
	uint32_t most = 0;

	rig_hear(RIG_CLIENT, 'r');
	side_client(&s, RIG_NAME);
	NEED_OK(doca_comch_cap_get_max_msg_size(doca_dev_as_devinfo(s.dev), &most));
	NEED(most == sizeof(text));
	side_start(&s);
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)('a' + i % 26);
	NEED_OK(side_try_send(&s, text, sizeof(text)));
	UNTIL(&s, s.n_messages == 1);
	NEED(s.len == sizeof(text) && memcmp(s.text, text, sizeof(text)) == 0);
	side_stop(&s);
}

static void a_message_of_4080_bytes_goes_both_ways(void)
{
	rig_run(echo_server, largest_client);
}

/* -- one event per progress -- */

static void talking_server(void)
{
	side_server(&s, RIG_NAME);
	side_start(&s);
	rig_tell(RIG_CLIENT, 'r');
	UNTIL(&s, s.n_connected);
	side_send(&s, "a");
	side_send(&s, "b");
	rig_tell(RIG_CLIENT, 's');
	UNTIL(&s, s.n_lost);
	side_stop(&s);
}

static void stepping_client(void)
{
	rig_hear(RIG_CLIENT, 'r');
	side_client(&s, RIG_NAME);
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_start(s.ctx));
	/* the peer has connected and sent both messages, while this side made no progress */
	rig_hear(RIG_CLIENT, 's');
	while (!doca_pe_progress(s.pe))
		rig_yield();
	NEED(strcmp(s.journal, "12") == 0);
	NEED_OK(doca_comch_client_get_connection(s.client, &s.conn));
	for (unsigned int n = 1; n <= 2; n++) {
		UNTIL(&s, s.n_messages == n);
		NEED(s.len == 1 && s.text[0] == (n == 1 ? 'a' : 'b'));
	}
	NEED(strcmp(s.journal, "12mm") == 0);
	NEED(doca_pe_progress(s.pe) == 0);
	side_stop(&s);
}

static void MUST_progress_handles_one_event_so_RUNNING_and_a_message_are_two(void)
{
	rig_run(talking_server, stepping_client);
}

/*
 * Each progress that returns 1 delivers one completion of a send. This is also true for a send that
 * had to wait until the queue of the server had space.
 */
static void count_progress(void)
{
	static struct side c;

	side_server(&s, RIG_NAME);
	NEED_OK(doca_comch_server_set_recv_queue_size(s.server, 10));
	side_start(&s);
	side_client(&c, RIG_NAME);
	side_start(&c);
	for (int i = 0; i < 40; i++)
		side_send(&c, "x");
	for (unsigned int n = 0; n < 40;) {
		if (!doca_pe_progress(c.pe))
			doca_pe_progress(s.pe);
		else
			NEED(c.n_sent == ++n);
	}
	NEED(doca_pe_progress(c.pe) == 0);
	side_stop(&c);
	side_stop(&s);
}

static void MUST_progress_that_returns_1_has_called_back_also_for_a_send_that_waited(void)
{
	rig_alone(count_progress);
}

int main(void)
{
	rig_init();
	UNITY_BEGIN();
	RUN_TEST(MUST_a_reply_is_delivered_before_the_disconnect_and_the_client_stops_by_itself);
	RUN_TEST(a_client_without_a_server_goes_back_to_idle);
	RUN_TEST(MUST_client_start_is_IN_PROGRESS_and_server_start_is_SUCCESS);
	RUN_TEST(MUST_a_submitted_send_leaves_the_process_without_progress);
	RUN_TEST(messages_arrive_all_once_and_in_order_also_when_the_queue_of_the_peer_is_full);
	RUN_TEST(sizes_of_messages_that_differ_fail_the_connection);
	RUN_TEST(a_message_of_4080_bytes_goes_both_ways);
	RUN_TEST(MUST_progress_handles_one_event_so_RUNNING_and_a_message_are_two);
	RUN_TEST(MUST_progress_that_returns_1_has_called_back_also_for_a_send_that_waited);
	rig_fini();
	return UNITY_END();
}
