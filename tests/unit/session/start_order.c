/* SPDX-License-Identifier: BSD-3-Clause */
/* START at a server: it waits until no write of a session that has ended can reach the volume. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "session/role_priv.h"
#include "unit/session/rig.h"

/* Let a request that changes the volume arrive; the terminal holds it. */
static void hold_write(struct fake_conn *conn)
{
	struct gantry_io io = {.opcode = GANTRY_OP_WRITE_ZEROES, .tag = 1, .length = 512};

	fc.hold = 1;
	fake_arrive(&conn->consumers[0], &io, GANTRY_IO_WIRE_BYTES);
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_UINT(1, fc.n_held);
}

static void stay_alive(struct fake_conn *conn, unsigned seconds)
{
	while (seconds--) {
		fake_core_pass(&fc, GN_NS_PER_S, GN_NS_PER_S);
		fake_ask(&fc, conn, GN_FRAME_PING, GN_PING, NULL, 0);
	}
}

static void start_waits_for_the_writes_of_a_lost_session(void)
{
	struct fake_conn *first, *next;

	fake_core_start(&fc, 1);
	first = fake_reach(&fc, GN_RUNNING);
	hold_write(first);
	fake_close(first, -ENOTCONN);
	fake_core_turn(&fc);
	next = fake_reach(&fc, GN_QUEUED);
	ask(next, GN_FRAME_START);
	TEST_ASSERT_EQUAL_INT(0, fake_next_frame(next, &p));
	stay_alive(next, 4);
	TEST_ASSERT_EQUAL_INT(0, fake_next_frame(next, &p));
	TEST_ASSERT_EQUAL_UINT(1, fc.n[FAKE_START]);
	fake_core_finish(&fc, GANTRY_S_OK);
	fake_core_turn(&fc);
	expect_answer(next, GN_FRAME_START, GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(2, fc.n[FAKE_START]);
}

static void start_is_rejected_when_the_writes_take_too_long(void)
{
	struct fake_conn *first, *next;

	fake_core_start(&fc, 1);
	first = fake_reach(&fc, GN_RUNNING);
	hold_write(first);
	fake_close(first, -ENOTCONN);
	fake_core_turn(&fc);
	next = fake_reach(&fc, GN_QUEUED);
	fake_core_pass(&fc, GN_NS_PER_S, GN_NS_PER_S);
	ask(next, GN_FRAME_START);
	stay_alive(next, 5);
	expect_answer(next, GN_FRAME_START, GANTRY_S_BUSY);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(p.verdict.text, "busy (writes=1, since=6000 ms)"),
				     p.verdict.text);
	TEST_ASSERT_EQUAL_UINT(1, fc.n[FAKE_START]);
	fake_core_finish(&fc, GANTRY_S_OK);
	fake_core_turn(&fc);
}

/* The peer of the first session has ended it, but the server did not get the notification. */
static void start_waits_until_a_silent_peer_is_disconnected(void)
{
	struct fake_conn *first, *next;

	fc.listen.control_timeout_ns = 10 * GN_NS_PER_S;
	fake_core_start(&fc, 1);
	first = fake_reach(&fc, GN_RUNNING);
	fc.ft.answers = NULL;
	next = fake_reach(&fc, GN_QUEUED);
	ask(next, GN_FRAME_START);
	fc.rh->session_continue(fc.session, 0); /* no effect: the role has no step in progress */
	stay_alive(next, 4);
	TEST_ASSERT_EQUAL_INT(0, fake_next_frame(next, &p));
	TEST_ASSERT_EQUAL_INT(0, first->disconnected);
	stay_alive(next, 1);
	TEST_ASSERT_EQUAL_INT(1, first->disconnected);
	expect_answer(next, GN_FRAME_START, GANTRY_S_OK);
}

/*
 * The answer to a PING from before START proves nothing: the peer might have sent it before it
 * ended the session.
 */
static void answer_to_an_earlier_ping_does_not_permit_the_start(void)
{
	struct fake_conn *first, *next;
	uint8_t buf[GANTRY_CTRL_MAX];
	struct gn_parsed question;
	size_t len;

	fake_core_start(&fc, 1);
	first = fake_reach(&fc, GN_RUNNING);
	fc.ft.answers = NULL;
	next = fake_reach(&fc, GN_QUEUED);
	ask(next, GN_FRAME_START);
	fake_ask(&fc, first, GN_FRAME_PING, GN_PING_ECHO, NULL, 0); /* the answer to a heartbeat */
	TEST_ASSERT_EQUAL_INT(0, fake_next_frame(next, &p));
	len = fake_ctrl_recv(first, buf);
	TEST_ASSERT_EQUAL_INT(0, gn_frame_parse(buf, len, &question));
	TEST_ASSERT_EQUAL_UINT(GN_FRAME_PING, question.type);
	fake_ask(&fc, first, GN_FRAME_PING, (question.head.id + GN_PING_NEXT) | GN_PING_ECHO, NULL,
		 0);
	TEST_ASSERT_EQUAL_INT(0, fake_next_frame(next, &p));
	fake_ask(&fc, first, GN_FRAME_PING, question.head.id | GN_PING_ECHO, NULL, 0);
	expect_answer(next, GN_FRAME_START, GANTRY_S_OK);
}

static int quiesce_rc;
static unsigned n_quiesced;

static int quiesce(void *backend, uint64_t *mark)
{
	(void)backend;
	TEST_ASSERT_EQUAL_UINT64(n_quiesced == 0 ? 0 : 77, *mark);
	*mark = 77;
	n_quiesced++;
	return quiesce_rc;
}

static const struct gantry_backend_ops backend = {.quiesce = quiesce};

static struct fake_conn *start_over_a_backend(int rc)
{
	struct fake_conn *conn;

	quiesce_rc = rc;
	n_quiesced = 0;
	conn = fake_reach(&fc, GN_QUEUED);
	fc.role->backend_ops = &backend;
	ask(conn, GN_FRAME_START);
	return conn;
}

static void start_waits_for_the_backend(void)
{
	struct fake_conn *conn;

	fake_core_start(&fc, 1);
	conn = start_over_a_backend(-EAGAIN);
	fake_core_pass(&fc, GN_NS_PER_S / 10, GN_NS_PER_S / 100);
	TEST_ASSERT_EQUAL_INT(0, fake_next_frame(conn, &p));
	TEST_ASSERT_GREATER_OR_EQUAL_UINT(10, n_quiesced);
	quiesce_rc = 0;
	fake_core_pass(&fc, GN_NS_PER_S / 100, GN_NS_PER_S / 100);
	expect_answer(conn, GN_FRAME_START, GANTRY_S_OK);
	fc.role->backend_ops = NULL;
	conn = start_over_a_backend(-EIO);
	expect_answer(conn, GN_FRAME_START, GANTRY_S_IO);
	TEST_ASSERT_NOT_NULL(strstr(p.verdict.text, "are complete"));
	fc.role->backend_ops = NULL;
}

static void client_that_waits_for_start_can_disconnect(void)
{
	struct fake_conn *first, *next;

	fake_core_start(&fc, 1);
	first = fake_reach(&fc, GN_RUNNING);
	hold_write(first);
	fake_close(first, -ENOTCONN);
	fake_core_turn(&fc);
	next = fake_reach(&fc, GN_QUEUED);
	ask(next, GN_FRAME_START);
	fake_close(next, -ENOTCONN);
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_UINT(1, fc.n_closed);
	fake_core_finish(&fc, GANTRY_S_OK);
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_UINT(2, fc.n_closed);
	TEST_ASSERT_EQUAL_UINT(1, fc.n[FAKE_START]);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(start_waits_for_the_writes_of_a_lost_session);
	RUN_TEST(start_is_rejected_when_the_writes_take_too_long);
	RUN_TEST(start_waits_until_a_silent_peer_is_disconnected);
	RUN_TEST(answer_to_an_earlier_ping_does_not_permit_the_start);
	RUN_TEST(start_waits_for_the_backend);
	RUN_TEST(client_that_waits_for_start_can_disconnect);
	return UNITY_END();
}
