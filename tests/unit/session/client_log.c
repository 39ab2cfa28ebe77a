/* SPDX-License-Identifier: BSD-3-Clause */
/* The client end of a session logs each event once, with the reason, at the right level. */
#include <stdio.h>

#include "unit/session/client_rig.h"

static char said[8192]; /* lines "LEVEL: MESSAGE" */

static void record_line(enum gn_log_level level, const char *source, const char *message)
{
	size_t n = strlen(said);

	(void)source;
	snprintf(said + n, sizeof(said) - n, "%s: %s\n", gn_log_word(level), message);
}

static void record_from(enum gn_log_level level)
{
	said[0] = '\0';
	gn_log_set_level(level);
	gn_log_set_hook(record_line);
}

static unsigned count(const char *text)
{
	unsigned n = 0;

	for (const char *at = strstr(said, text); at; at = strstr(at + 1, text))
		n++;
	return n;
}

static void one_line(const char *text)
{
	TEST_ASSERT_EQUAL_UINT_MESSAGE(1, count(text), said);
	TEST_ASSERT_EQUAL_UINT_MESSAGE(1, count("\n"), said);
}

static void only_a_started_session_is_logged_as_lost(void)
{
	for (unsigned i = OPENED; i < POINTS; i++) {
		reach((enum point)i);
		record_from(GN_LOG_WARN);
		fake_close(conn, -ENOTCONN);
		closed(-ENOTCONN);
		one_line(i == STARTED ? "warn: session lost id=000000005e551077 device="
				      : "warn: session not started id=000000005e551077 device=");
		again();
	}
}

/* The transport logs what the peer did wrong before the connection was established. */
static void a_failed_handshake_is_logged_by_the_transport(void)
{
	open_client();
	record_from(GN_LOG_WARN);
	fake_close(conn, -EPROTO);
	closed(-EPROTO);
	TEST_ASSERT_EQUAL_STRING("", said);
}

/* A gateway logs a rejection by its target once: at its server end, which rejects the client. */
static void client_end_of_a_gateway_does_not_log_a_rejection(void)
{
	static const struct gn_verdict no = {.status = GANTRY_S_NOSPC, .text = "the quay is full"};

	fake_core_fini(&fc);
	fake_core_init(&fc);
	fake_core_start(&fc, 1);
	reach(CONNECTED);
	record_from(GN_LOG_WARN);
	asked(GN_FRAME_HELLO);
	say(p.type, p.head.id, FAKE_SESSION, &no, NULL, 0);
	closed(-ENOSPC);
	TEST_ASSERT_EQUAL_STRING("", said);
}

/* Wait for the next attempt to connect, after a failed one. */
static void connects_again(void)
{
	fake_core_turn(&fc);
	fake_core_pass(&fc, 50 * GN_NS_PER_MS, 50 * GN_NS_PER_MS);
	conn = fake_pending(&fc.ft);
	TEST_ASSERT_NOT_NULL(conn);
}

/* Let all attempts to connect fail for 1.5 s. */
static void fails_on(int reason, const char *refusal)
{
	open_client();
	record_from(GN_LOG_WARN);
	for (unsigned ms = 0; ms < 1500; ms += 50) {
		TEST_ASSERT_EQUAL_UINT_MESSAGE(ms >= 1000, count("\n"), said);
		conn->refusal = refusal;
		fake_close(conn, reason);
		connects_again();
	}
}

static void a_wait_for_a_listener_is_logged_once(void)
{
	fails_on(-ECONNREFUSED, NULL);
	one_line(
		"warn: waiting for a listener at \"volume0\" on device dev0 (connect.timeout=2s)\n");
	fake_accept(conn);
	fake_core_turn(&fc);
	answer(GN_FRAME_HELLO);
	fake_core_pass(&fc, GN_NS_PER_S, GN_NS_PER_S);
	one_line("waiting for a listener");
}

static void a_wait_for_a_busy_peer_has_its_reason(void)
{
	fails_on(-EBUSY, "busy: listen.max_sessions=1 reached by all peers together");
	one_line(
		"warn: waiting for \"volume0\" on device dev0: busy: listen.max_sessions=1 reached by "
		"all peers together (connect.timeout=2s)\n");
}

static void a_wait_for_an_answer_is_logged_once(void)
{
	for (unsigned i = OPENED; i <= GREETED; i++) {
		reach((enum point)i);
		record_from(GN_LOG_WARN);
		fake_core_pass(&fc, GN_NS_PER_S - 1, GN_NS_PER_S);
		TEST_ASSERT_EQUAL_STRING("", said);
		fake_core_pass(&fc, GN_NS_PER_S / 2, GN_NS_PER_S);
		if (i == OPENED)
			one_line("warn: waiting for a connection to \"volume0\" on device dev0 "
				 "(connect.timeout=2s)\n");
		else if (i == CONNECTED)
			one_line(
				"warn: waiting for the answer to hello from \"volume0\" on device dev0 "
				"(control_timeout=5s)\n");
		else
			TEST_ASSERT_EQUAL_STRING("", said);
		fc.rh->client_abort(client);
		closed(-ECANCELED);
		again();
	}
}

static void control_messages_are_logged_at_level_debug(void)
{
	static const struct gn_verdict gone = {.status = GANTRY_S_CANCELED, .text = "gone"};

	record_from(GN_LOG_DEBUG);
	open_client();
	one_line("debug: connecting id=000000005e551077 device=dev0 service=volume0\n");
	fake_accept(conn);
	fake_core_turn(&fc);
	answer(GN_FRAME_HELLO);
	fake_core_pass(&fc, GN_NS_PER_S, GN_NS_PER_S);
	say(GN_FRAME_END, 0, FAKE_SESSION, &gone, NULL, 0);
	closed(-ECANCELED);
	TEST_ASSERT_NOT_NULL_MESSAGE(
		strstr(said,
		       "debug: sent hello session=000000005e551077 id=1 device=dev0 status=0\n"
		       "debug: received answer to hello session=000000005e551077 id=1 device=dev0 status=0\n"
		       "debug: sent query session=000000005e551077 id=2 device=dev0 status=0\n"
		       "debug: received end session=000000005e551077 id=0 device=dev0 status="),
		said);
	again();
	record_from(GN_LOG_INFO);
	reach(STARTED);
	one_line("info: session started");
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(control_messages_are_logged_at_level_debug);
	RUN_TEST(a_wait_for_a_listener_is_logged_once);
	RUN_TEST(a_wait_for_a_busy_peer_has_its_reason);
	RUN_TEST(a_wait_for_an_answer_is_logged_once);
	RUN_TEST(only_a_started_session_is_logged_as_lost);
	RUN_TEST(a_failed_handshake_is_logged_by_the_transport);
	RUN_TEST(client_end_of_a_gateway_does_not_log_a_rejection);
	return UNITY_END();
}
