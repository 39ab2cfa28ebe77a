/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client opens its session again, with a higher epoch, before its server has ended the older
 * connection. The server drains and ends the older connection first, so that no late IO of the
 * older connection follows an IO of the new one.
 */
#include <errno.h>
#include <string.h>

#include "unit/session/rig.h"

#define ID 0xabcdefull

/* the secret of the next HELLO; welcomed() copies it from the reply */
static uint8_t secret[GANTRY_SECRET_BYTES];

static struct fake_conn *dial(void)
{
	struct fake_conn *conn = fake_dial(&fc.ft, fc.listen.service);

	TEST_ASSERT_NOT_NULL(conn);
	fake_core_turn(&fc);
	return conn;
}

static void say(struct fake_conn *conn, unsigned type, uint32_t epoch)
{
	uint8_t buf[GANTRY_CTRL_MAX];
	size_t len = fake_payload(type, payload);

	if (type == GN_FRAME_HELLO) {
		memcpy(payload + offsetof(struct gn_hello, epoch), &epoch, sizeof(epoch));
		memcpy(payload + offsetof(struct gn_hello, secret), secret, sizeof(secret));
	}
	fake_ctrl_send(conn, buf, gn_frame_build(buf, type, 9, ID, NULL, payload, len));
	fake_core_turn(&fc);
}

static struct fake_conn *hello(uint32_t epoch)
{
	struct fake_conn *conn = dial();

	say(conn, GN_FRAME_HELLO, epoch);
	return conn;
}

/* Bring a session that is past HELLO to the state RUNNING. */
static void run(struct fake_conn *conn)
{
	static const unsigned path[] = {GN_FRAME_QUERY, GN_FRAME_EXPORT, GN_FRAME_QUEUES,
					GN_FRAME_START};

	for (unsigned i = 0; i < 4; i++) {
		say(conn, path[i], 0);
		expect_answer(conn, path[i], 0);
	}
}

static void welcomed(struct fake_conn *conn, uint32_t epoch)
{
	struct gn_hello_answer answer;

	expect_answer(conn, GN_FRAME_HELLO, 0);
	memcpy(&answer, p.payload, sizeof(answer));
	TEST_ASSERT_EQUAL_UINT(epoch, answer.epoch);
	memcpy(secret, answer.secret, sizeof(secret));
}

static void superseded(struct fake_conn *conn, const char *why)
{
	TEST_ASSERT_EQUAL_INT(1, fake_next_frame(conn, &p));
	TEST_ASSERT_EQUAL_UINT(GN_FRAME_END, p.type);
	TEST_ASSERT_EQUAL_STRING(why, p.verdict.text);
}

static void old_session_ends_at_once_when_nothing_is_in_flight(void)
{
	struct fake_conn *old, *conn;

	fake_core_start(&fc, 1);
	old = hello(1);
	welcomed(old, 1);
	run(old);
	conn = hello(2);
	superseded(old, "its client has connected again, with epoch 2");
	TEST_ASSERT_EQUAL_INT(1, old->disconnected);
	TEST_ASSERT_EQUAL_UINT(0, old->n_imports);
	welcomed(conn, 2);
	run(conn);
	arrive(conn, 0, 1);
	TEST_ASSERT_EQUAL_UINT64(1, counter("sessions_lost"));
}

static void hello_is_answered_when_the_old_session_is_drained(void)
{
	struct fake_conn *old, *conn;
	uint8_t imm[GANTRY_IMM_MAX];

	fake_core_start(&fc, 1);
	fc.hold = 1;
	old = hello(1);
	welcomed(old, 1);
	run(old);
	arrive(old, 0, 1);
	arrive(old, 1, 2);
	TEST_ASSERT_EQUAL_UINT(2, fc.n_held);
	conn = hello(5);
	superseded(old, "its client has connected again, with epoch 5");
	TEST_ASSERT_EQUAL_INT(
		0,
		fake_next_frame(conn, &p)); /* the backend still has the IO of the older session */
	TEST_ASSERT_EQUAL_UINT(1, fc.n[FAKE_HELLO]);
	TEST_ASSERT_EQUAL_UINT(0, fc.n_closed);
	say(conn, GN_FRAME_PING, 0); /* a PING is allowed while HELLO waits */
	TEST_ASSERT_EQUAL_INT(0, fake_next_frame(conn, &p));
	fc.hold = 0;
	fake_core_finish(&fc, GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(1, fc.n_closed);
	welcomed(conn, 5);
	TEST_ASSERT_EQUAL_INT(1, old->disconnected);
	TEST_ASSERT_EQUAL_UINT(0, old->n_imports);
	run(conn);
	arrive(conn, 0, 1);
	TEST_ASSERT_EQUAL_INT(1, fake_taken(&conn->producers[0], imm));
}

/* HELLO also waits for a session that is lost and still has IO in flight. */
static void hello_waits_for_a_session_that_is_ending(void)
{
	struct fake_conn *old, *conn;

	fake_core_start(&fc, 1);
	fc.hold = 1;
	fc.closed_rc = -EINPROGRESS; /* the role ends the older session later */
	old = hello(1);
	welcomed(old, 1);
	run(old);
	arrive(old, 0, 1);
	fake_close(old, -ENOTCONN);
	fake_core_turn(&fc);
	conn = hello(2);
	TEST_ASSERT_EQUAL_INT(0, fake_next_frame(conn, &p));
	fake_core_finish(&fc, GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(1, fc.n_closed);
	TEST_ASSERT_EQUAL_INT(0, fake_next_frame(conn, &p));
	fc.closed_rc = 0;
	fc.rh->session_continue(fc.session, 0);
	fake_core_turn(&fc);
	welcomed(conn, 2);
}

static void epochs_that_are_not_above_are_refused(void)
{
	static const struct {
		uint32_t epoch;
		const char *text;
	} cases[] = {
		{1,
		 "session: already running with a later epoch (id=0000000000abcdef, epoch=7, asked=1, peer=uid 1): close it there first"},
		{6,
		 "session: already running with a later epoch (id=0000000000abcdef, epoch=7, asked=6, peer=uid 1): close it there first"},
		{7,
		 "session: already running with this epoch (id=0000000000abcdef, epoch=7, peer=uid 1): lead each gateway to this listener "
		 "by one path only"},
	};
	static const uint32_t uid = 1;
	struct fake_conn *old;

	fc.listen.uids = &uid;
	fc.listen.n_uids = 1;
	fc.ft.peer.uid = uid;
	fake_core_start(&fc, 1);
	old = hello(7);
	welcomed(old, 7);
	run(old);
	for (unsigned i = 0; i < 3; i++) {
		struct fake_conn *conn = hello(cases[i].epoch);

		expect_answer(conn, GN_FRAME_HELLO, GANTRY_S_ACCESS);
		TEST_ASSERT_EQUAL_STRING(cases[i].text, p.verdict.text);
		fake_core_turn(&fc);
		TEST_ASSERT_EQUAL_INT(1, conn->disconnected);
	}
	TEST_ASSERT_EQUAL_UINT(1, fc.n[FAKE_HELLO]);
	TEST_ASSERT_EQUAL_INT(0, fake_next_frame(old, &p));
	arrive(old, 0, 1); /* the running session continues */
	TEST_ASSERT_EQUAL_UINT64(1, counter("ops_done"));
}

static void user_cannot_resume_the_session_of_another_user(void)
{
	static const uint32_t uids[] = {1, 2};
	struct fake_conn *old;

	fc.listen.uids = uids;
	fc.listen.n_uids = 2;
	fc.ft.peer.uid = 1;
	fake_core_start(&fc, 1);
	old = hello(1);
	welcomed(old, 1);
	fc.ft.peer.uid = 2;
	fc.ft.peer.pid = -1; /* a process of another PID namespace */
	expect_answer(hello(2), GN_FRAME_HELLO, GANTRY_S_ACCESS);
	TEST_ASSERT_EQUAL_STRING(
		"session: already open by another user (id=0000000000abcdef): close it there first",
		p.verdict.text);
	fc.ft.peer.pid = 1;
	expect_answer(hello(2), GN_FRAME_HELLO, GANTRY_S_ACCESS);
	TEST_ASSERT_EQUAL_STRING(
		"session: already open by another user (id=0000000000abcdef): close it there first",
		p.verdict.text);
	TEST_ASSERT_EQUAL_INT(0, fake_next_frame(old, &p));
	fc.ft.peer.uid = 1;
	welcomed(hello(2), 2);
}

static void waiting_client_is_superseded_by_a_higher_epoch(void)
{
	struct fake_conn *old, *second, *third;

	fake_core_start(&fc, 1);
	fc.hold = 1;
	old = hello(1);
	welcomed(old, 1);
	run(old);
	arrive(old, 0, 1);
	second = hello(2);
	third = hello(3);
	superseded(second, "its client has connected again, with epoch 3");
	TEST_ASSERT_EQUAL_INT(1, second->disconnected);
	TEST_ASSERT_EQUAL_INT(0, fake_next_frame(third, &p));
	fake_core_finish(&fc, GANTRY_S_OK);
	welcomed(third, 3);
	TEST_ASSERT_EQUAL_UINT(2, fc.n[FAKE_HELLO]); /* the role did not get the second HELLO */
	TEST_ASSERT_EQUAL_UINT(1, fc.n_closed);
}

static void waiting_client_can_disconnect(void)
{
	struct fake_conn *old, *conn;

	fake_core_start(&fc, 1);
	fc.hold = 1;
	old = hello(1);
	welcomed(old, 1);
	run(old);
	arrive(old, 0, 1);
	conn = hello(2);
	fake_close(conn, -ENOTCONN);
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_INT(1, conn->disconnected);
	fake_core_finish(&fc, GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(1, fc.n[FAKE_HELLO]);
	TEST_ASSERT_EQUAL_UINT(1, fc.n_closed);
	conn = hello(1); /* the session has ended: any epoch is accepted */
	welcomed(conn, 1);
}

static void role_can_reject_a_resume_or_answer_it_later(void)
{
	struct fake_conn *old, *conn;

	fake_core_start(&fc, 1);
	old = hello(1);
	welcomed(old, 1);
	fc.rc[FAKE_HELLO] = -EINPROGRESS;
	conn = hello(2);
	TEST_ASSERT_EQUAL_INT(0, fake_next_frame(conn, &p));
	TEST_ASSERT_EQUAL_UINT(2, fc.n[FAKE_HELLO]);
	fc.rh->session_continue(fc.session, 0);
	fake_core_turn(&fc);
	welcomed(conn, 2);
	fc.rc[FAKE_HELLO] = -ENOMEM;
	conn = hello(3);
	expect_answer(conn, GN_FRAME_HELLO, GANTRY_S_NOMEM);
	gone(conn, 3);
}

static void sessions_of_other_ids_do_not_matter(void)
{
	struct fake_conn *other, *conn;

	fake_core_start(&fc, 1);
	other = fake_reach(&fc, GN_RUNNING);
	conn = hello(1);
	welcomed(conn, 1);
	TEST_ASSERT_EQUAL_INT(0, fake_next_frame(other, &p));
}

/* -- the secret -- */

static struct fake_conn *start_session(void)
{
	struct fake_conn *conn;

	fake_core_start(&fc, 1);
	memset(secret, 0, sizeof(secret));
	conn = hello(1);
	welcomed(conn, 1);
	run(conn);
	return conn;
}

/* Expect that the server rejects a HELLO with `secret`, and that `running` continues. */
static void refused_beside(struct fake_conn *running)
{
	struct fake_conn *conn = hello(1000);

	expect_answer(conn, GN_FRAME_HELLO, GANTRY_S_ACCESS);
	TEST_ASSERT_EQUAL_STRING(
		"session: already open, with another secret (id=0000000000abcdef): close it there first",
		p.verdict.text);
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_INT(1, conn->disconnected);
	TEST_ASSERT_EQUAL_INT(0, fake_next_frame(running, &p));
	TEST_ASSERT_EQUAL_INT(0, running->disconnected);
}

static void a_peer_without_the_secret_ends_no_session(void)
{
	struct fake_conn *running = start_session();
	uint8_t right[GANTRY_SECRET_BYTES];

	memcpy(right, secret, sizeof(secret));
	memset(secret, 0, sizeof(secret));
	refused_beside(running);
	memset(secret, 0x5e, sizeof(secret));
	refused_beside(running);
	TEST_ASSERT_EQUAL_UINT(1, fc.n[FAKE_HELLO]); /* the role got no rejected HELLO */
	arrive(running, 0, 1);
	TEST_ASSERT_EQUAL_UINT64(1, counter("ops_done"));
	memcpy(secret, right, sizeof(secret));
	welcomed(hello(2), 2);
	TEST_ASSERT_EQUAL_MEMORY(right, secret, sizeof(secret));
}

static void each_bit_of_the_secret_counts(void)
{
	struct fake_conn *running = start_session();

	for (unsigned bit = 0; bit < 8 * GANTRY_SECRET_BYTES; bit++) {
		if (fc.ft.n_conns == FAKE_CONNS - 1) {
			fake_core_fini(&fc);
			fake_core_init(&fc);
			running = start_session();
		}
		secret[bit / 8] ^= (uint8_t)(1u << bit % 8);
		refused_beside(running);
		secret[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

static void secrets_differ(void)
{
	uint8_t first[GANTRY_SECRET_BYTES];

	start_session();
	memcpy(first, secret, sizeof(first));
	fake_core_fini(&fc);
	fake_core_init(&fc);
	start_session();
	TEST_ASSERT_TRUE(memcmp(first, secret, sizeof(first)) != 0);
}

/* After a restart, the server does not know the session and adopts the secret of its client. */
static void server_without_the_session_adopts_the_secret_of_the_client(void)
{
	struct fake_conn *conn;
	uint8_t shown[GANTRY_SECRET_BYTES];

	fake_core_start(&fc, 1);
	memset(shown, 0x5e, sizeof(shown));
	memcpy(secret, shown, sizeof(secret));
	conn = hello(7);
	welcomed(conn, 7);
	TEST_ASSERT_EQUAL_MEMORY(shown, secret, sizeof(secret));
	run(conn);
	secret[15] ^= 1;
	refused_beside(conn);
	secret[15] ^= 1;
	welcomed(hello(8), 8);
}

/*
 * A peer without the secret is rejected, and its session exists until the end of the turn. The
 * right client does not wait for that session, and can use a lower epoch.
 */
static void a_refused_peer_delays_no_client(void)
{
	struct fake_conn *stranger, *conn;
	uint8_t buf[GANTRY_CTRL_MAX], right[GANTRY_SECRET_BYTES];
	size_t len;

	start_session();
	memcpy(right, secret, sizeof(right));
	stranger = dial();
	conn = dial();
	for (unsigned i = 0; i < 2; i++) { /* both HELLOs arrive in one turn */
		len = fake_payload(GN_FRAME_HELLO, payload);
		memcpy(payload + offsetof(struct gn_hello, epoch), &(uint32_t){i == 0 ? 1000 : 2},
		       sizeof(uint32_t));
		if (i == 1)
			memcpy(payload + offsetof(struct gn_hello, secret), right, sizeof(right));
		fake_ctrl_send(i == 0 ? stranger : conn, buf,
			       gn_frame_build(buf, GN_FRAME_HELLO, 9, ID, NULL, payload, len));
	}
	fake_core_turn(&fc);
	expect_answer(stranger, GN_FRAME_HELLO, GANTRY_S_ACCESS);
	welcomed(conn, 2);
}

/* A peer without the secret is also rejected while the session is drained. */
static void a_session_that_ends_keeps_its_secret(void)
{
	struct fake_conn *old, *conn;
	uint8_t right[GANTRY_SECRET_BYTES];

	fc.hold = 1;
	old = start_session();
	memcpy(right, secret, sizeof(right));
	arrive(old, 0, 1);
	fake_close(old, -ENOTCONN);
	fake_core_turn(&fc);
	memset(secret, 0, sizeof(secret));
	expect_answer(hello(3), GN_FRAME_HELLO, GANTRY_S_ACCESS);
	memcpy(secret, right, sizeof(secret));
	conn = hello(2);
	memset(secret, 0, sizeof(secret));
	expect_answer(hello(3), GN_FRAME_HELLO, GANTRY_S_ACCESS);
	TEST_ASSERT_EQUAL_INT(0, fake_next_frame(conn, &p));
	fake_core_finish(&fc, GANTRY_S_OK);
	welcomed(conn, 2);
}

static void epochs_out_of_range_are_refused(void)
{
	static const uint32_t epochs[] = {0, GANTRY_EPOCH_MAX + 1, UINT32_MAX};
	struct fake_conn *running = start_session();

	for (unsigned i = 0; i < 3; i++) {
		char text[GN_FRAME_TEXT];

		expect_answer(hello(epochs[i]), GN_FRAME_HELLO, GANTRY_S_INVALID);
		snprintf(
			text, sizeof(text),
			"epoch out of range (epoch=%u, limits 1 and 4294901759): open a new session",
			epochs[i]);
		TEST_ASSERT_EQUAL_STRING(text, p.verdict.text);
	}
	TEST_ASSERT_EQUAL_INT(0, fake_next_frame(running, &p));
	welcomed(hello(GANTRY_EPOCH_MAX), GANTRY_EPOCH_MAX);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(old_session_ends_at_once_when_nothing_is_in_flight);
	RUN_TEST(hello_is_answered_when_the_old_session_is_drained);
	RUN_TEST(hello_waits_for_a_session_that_is_ending);
	RUN_TEST(epochs_that_are_not_above_are_refused);
	RUN_TEST(user_cannot_resume_the_session_of_another_user);
	RUN_TEST(waiting_client_is_superseded_by_a_higher_epoch);
	RUN_TEST(waiting_client_can_disconnect);
	RUN_TEST(role_can_reject_a_resume_or_answer_it_later);
	RUN_TEST(sessions_of_other_ids_do_not_matter);
	RUN_TEST(a_peer_without_the_secret_ends_no_session);
	RUN_TEST(each_bit_of_the_secret_counts);
	RUN_TEST(secrets_differ);
	RUN_TEST(server_without_the_session_adopts_the_secret_of_the_client);
	RUN_TEST(a_refused_peer_delays_no_client);
	RUN_TEST(a_session_that_ends_keeps_its_secret);
	RUN_TEST(epochs_out_of_range_are_refused);
	return UNITY_END();
}
