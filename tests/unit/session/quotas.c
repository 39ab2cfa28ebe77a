/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Quotas of a server: what one peer can use, what is reserved for other peers, and the reason that
 * a rejected peer receives.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "loader/loader.h"
#include "pipeline/split.h"
#include "session/peers.h"
#include "session/session_priv.h"
#include "transport/responder_priv.h"
#include "unit/session/rig.h"

#define HALF_OPEN 3u
#define REMEDY ": raise it or close connections"

static uint32_t uids[] = {0, 1, 2, 3, 4, 5, 6, 7};

static void serve(void)
{
	fc.listen.uids = uids;
	fc.listen.n_uids = sizeof(uids) / sizeof(uids[0]);
	fc.listen.max_half_open = HALF_OPEN;
	fake_core_start(&fc, 1);
}

/* Open a connection of this user, and bring its session to a state. */
static struct fake_conn *reach_as(uint32_t uid, enum gn_state state)
{
	fc.ft.peer.pid = 100 + (int)uid;
	fc.ft.peer.uid = uid;
	return fake_reach(&fc, state);
}

static struct fake_conn *reach_from(const char *address, enum gn_state state)
{
	fc.ft.peer.pid = -1;
	fc.ft.peer.uid = UINT32_MAX;
	snprintf(fc.ft.peer.address, sizeof(fc.ft.peer.address), "%s", address);
	return fake_reach(&fc, state);
}

/* Expect that the server accepted the connection, sent END with this text, and ended it. */
static void expect_rejected_connection(struct fake_conn *conn, const char *text)
{
	TEST_ASSERT_EQUAL_INT(0, conn->refused);
	TEST_ASSERT_EQUAL_INT(1, fake_next_frame(conn, &p));
	TEST_ASSERT_EQUAL_STRING("end", gn_frame_name(p.type));
	TEST_ASSERT_EQUAL_INT(GANTRY_S_BUSY, p.verdict.status);
	TEST_ASSERT_EQUAL_STRING(text, p.verdict.text);
	TEST_ASSERT_EQUAL_UINT64(0, p.head.session);
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_INT(1, conn->disconnected);
}

/* Send HELLO or a later request, and expect that the server rejects it with this text. */
static void refused(struct fake_conn *conn, unsigned type, unsigned status, const char *text)
{
	ask(conn, type);
	expect_answer(conn, type, status);
	TEST_ASSERT_EQUAL_STRING(text, p.verdict.text);
	expect_answer(conn, GN_FRAME_END, status);
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_INT(1, conn->disconnected);
}

static uint64_t reported(const char *key)
{
	struct fake_report *report = malloc(sizeof(*report));
	uint64_t value;

	fake_report_init(report);
	gn_role_report(fc.role, &report->pub);
	value = fake_reported_u64(report, key);
	free(report);
	return value;
}

static void half_open_connections_of_one_peer_are_bounded(void)
{
	struct fake_conn *first;

	serve();
	first = reach_as(1, GN_NEW);
	for (unsigned i = 1; i < HALF_OPEN; i++)
		reach_as(1, GN_NEW);
	for (unsigned i = 0; i < 5; i++)
		expect_rejected_connection(reach_as(1, GN_NEW),
					   "busy: listen.max_half_open=3 reached by uid 1" REMEDY);
	TEST_ASSERT_EQUAL_INT(0, reach_as(2, GN_KNOWN)->disconnected);
	TEST_ASSERT_EQUAL_UINT64(5, counter("sessions_refused"));
	TEST_ASSERT_EQUAL_UINT64(0, counter("sessions_lost"));
	TEST_ASSERT_EQUAL_UINT64(HALF_OPEN + 1, counter("sessions_opened"));
	fake_close(first, -ENOTCONN); /* below the limit: the next connection is accepted */
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_INT(0, reach_as(1, GN_KNOWN)->disconnected);
	/* HELLO made the last connection a session, so one more can be half-open */
	TEST_ASSERT_EQUAL_INT(0, reach_as(1, GN_NEW)->disconnected);
	expect_rejected_connection(reach_as(1, GN_NEW),
				   "busy: listen.max_half_open=3 reached by uid 1" REMEDY);
}

/* Half-open connections do not count as sessions. */
static void half_open_connections_do_not_count_as_sessions(void)
{
	fc.listen.max_sessions = 1;
	serve();
	for (unsigned i = 0; i < HALF_OPEN; i++)
		reach_as(1, GN_NEW);
	TEST_ASSERT_EQUAL_INT(0, reach_as(2, GN_RUNNING)->disconnected);
}

/*
 * The server ignores further frames of a rejected peer, and disconnects it immediately, even if END
 * cannot be sent.
 */
static void rejected_peer_is_disconnected_immediately(void)
{
	struct fake_conn *conn;

	serve();
	for (unsigned i = 0; i < HALF_OPEN; i++)
		reach_as(1, GN_NEW);
	fake_fail_op(&fc.ft, FAKE_SEND_CTRL, 1, -EAGAIN);
	conn = fake_dial(&fc.ft, fc.listen.service);
	fake_ctrl_send(conn, "?", 1);
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_INT(1, conn->disconnected);
	TEST_ASSERT_EQUAL_UINT(0, fc.n[FAKE_HELLO]);
}

/*
 * At the limit of half-open connections of all peers, the server accepts a connection of a peer
 * only if another peer has more half-open connections. It then evicts a connection of the peer that
 * has the most.
 */
static void flood_of_connections_evicts_no_peer_with_fewer(void)
{
	struct fake_conn *own[HALF_OPEN], *quiet;

	serve();
	for (unsigned uid = 1; uid < GN_HALF_OPEN_PEERS; uid++)
		for (unsigned i = 0; i < HALF_OPEN; i++)
			reach_as(uid, GN_NEW);
	quiet = reach_as(5, GN_NEW);
	for (unsigned i = 0; i + 1 < HALF_OPEN; i++)
		own[i] = reach_as(6, GN_NEW); /* the last one reaches the limit of all peers */
	own[HALF_OPEN - 1] = reach_as(6, GN_NEW);
	expect_rejected_connection(
		own[HALF_OPEN - 1],
		"busy: 4 x listen.max_half_open=3 reached by all peers together" REMEDY);
	/* a peer with three connections loses one */
	TEST_ASSERT_EQUAL_INT(0, reach_as(7, GN_NEW)->disconnected);
	TEST_ASSERT_EQUAL_INT(0, quiet->disconnected + own[0]->disconnected + own[1]->disconnected);
	TEST_ASSERT_EQUAL_UINT64(1, counter("sessions_lost"));
	TEST_ASSERT_EQUAL_INT(0, reach_as(0, GN_RUNNING)->disconnected);
	TEST_ASSERT_EQUAL_INT(0, quiet->disconnected);
	ask(quiet, GN_FRAME_HELLO);
	expect_answer(quiet, GN_FRAME_HELLO, 0);
}

static void oldest_connection_of_the_largest_peer_is_evicted(void)
{
	struct fake_conn *older, *oldest;

	serve();
	older = reach_as(5, GN_NEW);
	oldest = reach_as(1, GN_NEW);
	for (unsigned i = 1; i < HALF_OPEN; i++)
		reach_as(1, GN_NEW);
	for (unsigned uid = 2; uid < 5; uid++)
		for (unsigned i = 0; i < 2; i++)
			reach_as(uid, GN_NEW);
	reach_as(5, GN_NEW);
	reach_as(6, GN_NEW); /* the twelfth half-open connection: the limit */
	TEST_ASSERT_EQUAL_INT(0, oldest->disconnected);
	reach_as(7, GN_NEW);
	TEST_ASSERT_EQUAL_INT(1, oldest->disconnected);
	TEST_ASSERT_EQUAL_INT(0, older->disconnected);
	TEST_ASSERT_EQUAL_INT(1, fake_next_frame(oldest, &p));
	TEST_ASSERT_EQUAL_INT(GANTRY_S_BUSY, p.verdict.status);
	TEST_ASSERT_EQUAL_STRING(
		"busy: 4 x listen.max_half_open=3 reached by all peers together, most by uid 1" REMEDY,
		p.verdict.text);
	TEST_ASSERT_EQUAL_UINT64(1, counter("sessions_lost"));
}

static void sessions_are_reserved_for_other_peers(void)
{
	fc.listen.max_sessions = 4;
	serve();
	for (unsigned i = 0; i < 3; i++)
		reach_as(1, i == 0 ? GN_GREETED : GN_RUNNING);
	refused(reach_as(1, GN_NEW), GN_FRAME_HELLO, GANTRY_S_BUSY,
		"busy: listen.max_peer_sessions=3 reached by uid 1" REMEDY);
	TEST_ASSERT_EQUAL_INT(0, reach_as(2, GN_RUNNING)->disconnected);
	refused(reach_as(3, GN_NEW), GN_FRAME_HELLO, GANTRY_S_BUSY,
		"busy: listen.max_sessions=4 reached by all peers together" REMEDY);
	TEST_ASSERT_EQUAL_UINT64(2, counter("sessions_refused"));
}

static void the_only_user_may_have_all_sessions(void)
{
	fc.listen.max_sessions = 4;
	fake_core_start(&fc, 1);
	for (unsigned i = 0; i < 4; i++)
		fake_reach(&fc, GN_GREETED);
	refused(fake_reach(&fc, GN_NEW), GN_FRAME_HELLO, GANTRY_S_BUSY,
		"busy: listen.max_sessions=4 reached by all peers together" REMEDY);
}

static void a_host_is_a_peer_whatever_its_ports(void)
{
	fc.listen.max_sessions = 4;
	fake_core_start(&fc, 1);
	reach_from("192.0.2.7:1001", GN_GREETED);
	reach_from("192.0.2.7:1002", GN_GREETED);
	reach_from("192.0.2.7:1003", GN_GREETED);
	refused(reach_from("192.0.2.7:1004", GN_NEW), GN_FRAME_HELLO, GANTRY_S_BUSY,
		"busy: listen.max_peer_sessions=3 reached by host 192.0.2.7" REMEDY);
	TEST_ASSERT_EQUAL_INT(0, reach_from("192.0.2.8:1001", GN_RUNNING)->disconnected);
}

/* A client that lost its connection replaces its old session, even at the limit of sessions. */
static void a_resumed_session_keeps_its_place(void)
{
	struct fake_conn *old, *next;
	struct gn_hello hello;
	uint8_t buf[GANTRY_CTRL_MAX];

	fc.listen.max_sessions = 1;
	fake_core_start(&fc, 1);
	old = fake_reach(&fc, GN_NEW);
	ask(old, GN_FRAME_HELLO);
	expect_answer(old, GN_FRAME_HELLO, 0);
	fake_payload(GN_FRAME_HELLO, &hello);
	memcpy(hello.secret, (const uint8_t *)p.payload + offsetof(struct gn_hello_answer, secret),
	       sizeof(hello.secret));
	hello.epoch++;
	next = fake_reach(&fc, GN_NEW);
	fake_ctrl_send(next, buf,
		       gn_frame_build(buf, GN_FRAME_HELLO, 1, fake_session(&fc, old), NULL, &hello,
				      sizeof(hello)));
	fake_core_turn(&fc);
	expect_answer(next, GN_FRAME_HELLO, 0);
	TEST_ASSERT_EQUAL_INT(1, old->disconnected);
	TEST_ASSERT_EQUAL_UINT64(1, reported("test.peers.0.sessions"));
	refused(fake_reach(&fc, GN_NEW), GN_FRAME_HELLO, GANTRY_S_BUSY,
		"busy: listen.max_sessions=1 reached by all peers together" REMEDY);
}

/* Returns the limit of bytes that a responder of the newest session starts in each turn. */
static uint32_t newest_quantum(void)
{
	return LIST_FIRST(&fc.role->server.sessions)->lanes[0].resp->attr.quantum;
}

static void weights_divide_the_bytes_of_a_turn(void)
{
	static const struct gn_weight weights[] = {{"uid 1", 4}, {"uid 3", 2}};
	static const uint32_t shares[] = {4, 1, 2};

	serve();
	reach_as(1, GN_RUNNING);
	TEST_ASSERT_EQUAL_UINT32(GN_SPLIT_QUANTUM, newest_quantum());
	fc.listen.weights = weights;
	fc.listen.n_weights = 2;
	fc.listen.max_weight = 4;
	for (uint32_t uid = 1; uid <= 3; uid++) {
		reach_as(uid, GN_RUNNING);
		TEST_ASSERT_EQUAL_UINT32(GN_SPLIT_QUANTUM / 4 * shares[uid - 1], newest_quantum());
	}
}

static void region_bytes_of_one_peer_are_bounded(void)
{
	struct gantry_token token = {.handle = 2, .generation = 12288};
	struct fake_conn *conn;

	fc.listen.max_peer_region_bytes = 8192;
	serve();
	ask(conn = reach_as(1, GN_KNOWN), GN_FRAME_EXPORT);
	expect_answer(conn, GN_FRAME_EXPORT, 0);
	ask(conn = reach_as(1, GN_KNOWN), GN_FRAME_EXPORT);
	expect_answer(conn, GN_FRAME_EXPORT, 0);
	refused(reach_as(1, GN_KNOWN), GN_FRAME_EXPORT, GANTRY_S_BUSY,
		"busy: listen.max_peer_region_bytes=8192 reached by uid 1 (used=8192, asked=4096)" REMEDY);
	TEST_ASSERT_EQUAL_UINT64(8192, reported("test.peers.0.region_bytes"));
	ask(conn, GN_FRAME_BYE); /* releases the quota of this session */
	expect_answer(conn, GN_FRAME_BYE, 0);
	fake_core_turn(&fc);
	ask(conn = reach_as(1, GN_KNOWN), GN_FRAME_EXPORT);
	expect_answer(conn, GN_FRAME_EXPORT, 0);
	ask(conn = reach_as(2, GN_KNOWN), GN_FRAME_EXPORT);
	expect_answer(conn, GN_FRAME_EXPORT, 0);
	fake_ask(&fc, conn, GN_FRAME_EXPORT, 9, &token, sizeof(token));
	expect_answer(conn, GN_FRAME_EXPORT, GANTRY_S_ACCESS);
	/* the reason is the limit of one session, not that of the peer */
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(p.verdict.text, "max_region_bytes"), p.verdict.text);
}

/* STOP releases the quotas of regions and queues; the session still exists. */
static void a_stopped_session_has_no_memory(void)
{
	struct fake_conn *conn;

	serve();
	ask(conn = reach_as(1, GN_KNOWN), GN_FRAME_EXPORT);
	expect_answer(conn, GN_FRAME_EXPORT, 0);
	ask(conn, GN_FRAME_QUEUES);
	expect_answer(conn, GN_FRAME_QUEUES, 0);
	ask(conn, GN_FRAME_START);
	expect_answer(conn, GN_FRAME_START, 0);
	TEST_ASSERT_EQUAL_UINT64(4096, reported("test.peers.0.region_bytes"));
	TEST_ASSERT_TRUE(reported("test.peers.0.queue_memory") > 0);
	ask(conn, GN_FRAME_STOP);
	expect_answer(conn, GN_FRAME_STOP, 0);
	TEST_ASSERT_EQUAL_UINT64(0, reported("test.peers.0.region_bytes"));
	TEST_ASSERT_EQUAL_UINT64(0, reported("test.peers.0.queue_memory"));
	TEST_ASSERT_EQUAL_UINT64(1, reported("test.peers.0.sessions"));
}

static void region_beyond_the_quota_is_rejected_with_ACCESS(void)
{
	fc.listen.max_peer_region_bytes = 4095;
	serve();
	refused(reach_as(1, GN_KNOWN), GN_FRAME_EXPORT, GANTRY_S_ACCESS,
		"listen.max_peer_region_bytes=4095 exceeded by uid 1 (used=0, asked=4096): raise it or ask for less");
}

/* A failed export releases its quota, and so does a session that ends without BYE. */
static void failed_export_and_lost_session_release_their_quota(void)
{
	struct fake_conn *conn;

	fc.listen.max_peer_region_bytes = 4096;
	serve();
	for (unsigned i = 0; i < 3; i++) {
		conn = reach_as(1, GN_KNOWN);
		fake_fail_op(&fc.ft, FAKE_IMPORT, 1, i == 0 ? -ENOMEM : 0);
		ask(conn, GN_FRAME_EXPORT);
		expect_answer(conn, GN_FRAME_EXPORT, i == 0 ? GANTRY_S_NOMEM : 0);
		if (i != 0)
			fake_close(conn, -ENOTCONN);
		fake_core_turn(&fc);
		TEST_ASSERT_EQUAL_INT(1, conn->disconnected);
	}
	TEST_ASSERT_NULL(fc.n_open ? "open" : NULL);
}

static uint64_t queue_memory_of_one(void)
{
	reach_as(1, GN_QUEUED);
	return reported("test.peers.0.queue_memory");
}

static void queue_memory_of_one_peer_is_bounded(void)
{
	const uint64_t least = 2 * (2 * 4 * 64 + 4 * 64); /* two lanes of depth 4 */
	uint64_t one;
	char text[160];

	serve();
	one = queue_memory_of_one();
	TEST_ASSERT_GREATER_OR_EQUAL_UINT64(least, one);
	fake_core_fini(&fc);
	fake_core_init(&fc);
	fc.listen.max_peer_queue_memory = 2 * one - 1;
	serve();
	TEST_ASSERT_EQUAL_UINT64(one, queue_memory_of_one());
	snprintf(
		text, sizeof(text),
		"busy: listen.max_peer_queue_memory=%llu reached by uid 1 (used=%llu, asked=%llu)" REMEDY,
		2 * (unsigned long long)one - 1, (unsigned long long)one, (unsigned long long)one);
	refused(reach_as(1, GN_KNOWN), GN_FRAME_QUEUES, GANTRY_S_BUSY, text);
	TEST_ASSERT_EQUAL_INT(0, reach_as(2, GN_RUNNING)->disconnected);
}

/* Bounce buffers count as queue memory. The limit is checked before their allocation. */
static void bounce_buffers_count_as_queue_memory(void)
{
	struct fake_conn *conn;
	uint64_t mapped;

	serve();
	mapped = queue_memory_of_one();
	fake_core_fini(&fc);
	fake_core_init(&fc);
	fc.ft.caps &= ~GANTRY_CAP_MAPPED;
	fc.listen.move_memory = 65536;
	fc.listen.max_peer_queue_memory = mapped + 2 * 65536 - 1;
	serve();
	conn = reach_as(1, GN_KNOWN);
	fake_fail_op(&fc.ft, FAKE_CONSUMER, 1, -EIO); /* must not be called */
	ask(conn, GN_FRAME_QUEUES);
	expect_answer(conn, GN_FRAME_QUEUES, GANTRY_S_ACCESS);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(p.verdict.text, "listen.max_peer_queue_memory="),
				     p.verdict.text);
}

/* A target whose backend accepts no lists has a buffer for their data. */
static void lists_count_as_queue_memory(void)
{
	static const struct gantry_backend_ops backend = {.open = NULL};
	uint64_t without;

	serve();
	without = queue_memory_of_one();
	fake_core_fini(&fc);
	fake_core_init(&fc);
	serve();
	fc.role->backend_ops = &backend;
	reach_as(1, GN_QUEUED);
	fc.role->backend_ops = NULL; /* the report would call it */
	TEST_ASSERT_GREATER_THAN_UINT64(without + 2 * GANTRY_LIST_BYTES,
					reported("test.peers.0.queue_memory"));
}

/* A stage that transforms data has a buffer for each descriptor, and limits max_io to 1 MiB. */
static void buffers_of_stages_count_as_queue_memory(void)
{
	static struct gantry_stage_ops transforms;
	static const struct gn_plugin_instance stage = {.name = "transforms", .ops = &transforms};
	uint64_t without;

	serve();
	without = queue_memory_of_one();
	fake_core_fini(&fc);
	fake_core_init(&fc);
	gn_ops_complete(GANTRY_KIND_STAGE, &transforms);
	transforms.needs_bounce = 1;
	fc.stages = &stage;
	fc.volume.max_io = 16 << 20;
	fc.n_stages = 1;
	serve();
	TEST_ASSERT_EQUAL_UINT64(without + 2 * 4 * (1 << 20), /* lanes of depth 4 */
				 queue_memory_of_one());
}

static void a_peer_that_reconnects_in_a_loop_leaves_nothing(void)
{
	serve();
	for (unsigned i = 0; i < 40; i++) {
		struct fake_conn *conn = reach_as(1, i % 2 ? GN_NEW : GN_GREETED);

		TEST_ASSERT_EQUAL_INT(0, fake_next_frame(conn, &p));
		fake_close(conn, -ENOTCONN);
		fake_core_turn(&fc);
	}
	TEST_ASSERT_EQUAL_UINT64(40, counter("sessions_ended"));
	reach_as(2, GN_NEW);
	/* the only entry is that of uid 2: the entry of uid 1 was removed */
	TEST_ASSERT_EQUAL_UINT64(1, reported("test.peers.0.half_open"));
	TEST_ASSERT_EQUAL_UINT64(0, reported("test.peers.0.sessions"));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(half_open_connections_of_one_peer_are_bounded);
	RUN_TEST(half_open_connections_do_not_count_as_sessions);
	RUN_TEST(rejected_peer_is_disconnected_immediately);
	RUN_TEST(flood_of_connections_evicts_no_peer_with_fewer);
	RUN_TEST(oldest_connection_of_the_largest_peer_is_evicted);
	RUN_TEST(sessions_are_reserved_for_other_peers);
	RUN_TEST(the_only_user_may_have_all_sessions);
	RUN_TEST(a_host_is_a_peer_whatever_its_ports);
	RUN_TEST(a_resumed_session_keeps_its_place);
	RUN_TEST(weights_divide_the_bytes_of_a_turn);
	RUN_TEST(region_bytes_of_one_peer_are_bounded);
	RUN_TEST(a_stopped_session_has_no_memory);
	RUN_TEST(region_beyond_the_quota_is_rejected_with_ACCESS);
	RUN_TEST(failed_export_and_lost_session_release_their_quota);
	RUN_TEST(queue_memory_of_one_peer_is_bounded);
	RUN_TEST(bounce_buffers_count_as_queue_memory);
	RUN_TEST(lists_count_as_queue_memory);
	RUN_TEST(buffers_of_stages_count_as_queue_memory);
	RUN_TEST(a_peer_that_reconnects_in_a_loop_leaves_nothing);
	return UNITY_END();
}
