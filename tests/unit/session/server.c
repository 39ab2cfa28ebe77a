/* SPDX-License-Identifier: BSD-3-Clause */
/* The server end of sessions: each step in each state, and each rejection. The test is the peer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "io/status.h"
#include "secure/auth_priv.h"
#include "unit/session/rig.h"

static void a_whole_session(void)
{
	struct fake_conn *conn;
	struct gn_hello_answer hello;
	struct gantry_volume_info volume;
	struct gn_queues queues;
	uint8_t imm[GANTRY_IMM_MAX];

	fake_core_start(&fc, 1);
	conn = fake_reach(&fc, GN_NEW);
	ask(conn, GN_FRAME_HELLO);
	expect_answer(conn, GN_FRAME_HELLO, 0);
	memcpy(&hello, p.payload, sizeof(hello));
	TEST_ASSERT_EQUAL_UINT(GN_FRAME_VERSION, hello.version);
	TEST_ASSERT_EQUAL_UINT(1, hello.epoch);
	ask(conn, GN_FRAME_QUERY);
	expect_answer(conn, GN_FRAME_QUERY, 0);
	memcpy(&volume, p.payload, sizeof(volume));
	TEST_ASSERT_EQUAL_UINT64(1 << 20, volume.size);
	ask(conn, GN_FRAME_EXPORT);
	expect_answer(conn, GN_FRAME_EXPORT, 0);
	TEST_ASSERT_EQUAL_UINT(GANTRY_IMPORT_MAP | GANTRY_IMPORT_KEEPS_PAGES, fc.ft.import_flags);
	ask(conn, GN_FRAME_QUEUES);
	expect_answer(conn, GN_FRAME_QUEUES, 0);
	memcpy(&queues, p.payload, sizeof(queues));
	TEST_ASSERT_EQUAL_UINT(2, queues.n);
	TEST_ASSERT_EQUAL_UINT(conn->consumers[1].id, queues.consumer[1]);
	TEST_ASSERT_EQUAL_UINT(12, conn->producers[1].id);
	TEST_ASSERT_NOT_NULL(conn->producers[1].thread);
	TEST_ASSERT_EQUAL_PTR(conn->producers[1].thread, conn->consumers[1].thread);
	TEST_ASSERT_EQUAL_UINT(gn_device_queue_depth(fc.device, 4), conn->consumers[0].posted);
	ask(conn, GN_FRAME_START);
	expect_answer(conn, GN_FRAME_START, 0);
	for (unsigned lane = 0; lane < 2; lane++) {
		arrive(conn, lane, 0x70003 + lane);
		TEST_ASSERT_EQUAL_INT(1, fake_taken(&conn->producers[lane], imm));
		TEST_ASSERT_EQUAL_UINT(0, imm[2]);
		TEST_ASSERT_EQUAL_UINT(3 + lane, imm[4]);
	}
	TEST_ASSERT_EQUAL_UINT64(2, counter("ops_done"));
	TEST_ASSERT_EQUAL_UINT64(2, role_value("sessions.0.ops_done"));
	ask(conn, GN_FRAME_STOP);
	expect_answer(conn, GN_FRAME_STOP, 0);
	TEST_ASSERT_EQUAL_UINT(0, conn->n_consumers);
	TEST_ASSERT_EQUAL_UINT(0, conn->n_imports);
	TEST_ASSERT_EQUAL_UINT64(2, role_value("sessions.0.ops_done"));
	TEST_ASSERT_EQUAL_UINT64(0, role_value("sessions.0.ops_failed"));
	TEST_ASSERT_EQUAL_UINT64(2 * 512, role_value("sessions.0.bytes"));
	TEST_ASSERT_EQUAL_UINT64(2, role_value("sessions.0.latency.count"));
	ask(conn, GN_FRAME_BYE);
	expect_answer(conn, GN_FRAME_BYE, 0);
	gone(conn, 1);
	TEST_ASSERT_EQUAL_INT(0, fc.closed_reason);
	TEST_ASSERT_EQUAL_INT(0, fake_next_frame(conn, &p));
	TEST_ASSERT_EQUAL_UINT64(1, counter("sessions_opened"));
	TEST_ASSERT_EQUAL_UINT64(1, counter("sessions_ended"));
	TEST_ASSERT_EQUAL_UINT64(0, counter("sessions_lost"));
	TEST_ASSERT_EQUAL_UINT64(2, counter("ops_done"));
	TEST_ASSERT_EQUAL_UINT(2, fc.n[FAKE_LANE]);
}

/* The reply to HELLO has exactly the offered features that the server and its transport support. */
static void features_are_those_of_both(void)
{
	static const struct {
		uint64_t offered, agreed;
		uint32_t caps; /* capabilities of the transport */
	} table[] = {{0, 0, 0},
		     {GN_FEATURE_CRC, GN_FEATURE_CRC, 0},
		     {UINT64_MAX, GN_FEATURES & ~GN_FEATURE_NOTES, 0},
		     {~GN_FEATURES, 0, GANTRY_CAP_WRITE_IMM},
		     {UINT64_MAX, GN_FEATURES, GANTRY_CAP_WRITE_IMM},
		     {GN_FEATURE_CRC, GN_FEATURE_CRC, GANTRY_CAP_WRITE_IMM}};
	struct gn_hello_answer answer;
	uint8_t hello[GANTRY_CTRL_MAX];

	fake_core_start(&fc, 1);
	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct fake_conn *conn = fake_reach(&fc, GN_NEW);
		size_t len = fake_payload(GN_FRAME_HELLO, hello);
		uint8_t buf[GANTRY_CTRL_MAX];

		fc.ft.caps = (fc.ft.caps & ~GANTRY_CAP_WRITE_IMM) | table[i].caps;
		memcpy(hello + offsetof(struct gn_hello, features), &table[i].offered,
		       sizeof(uint64_t));
		len = gn_frame_build(buf, GN_FRAME_HELLO, 1, fake_session(&fc, conn), NULL, hello,
				     len);
		fake_ctrl_send(conn, buf, len);
		fake_core_turn(&fc);
		expect_answer(conn, GN_FRAME_HELLO, 0);
		memcpy(&answer, p.payload, sizeof(answer));
		TEST_ASSERT_EQUAL_HEX64(table[i].agreed, answer.features);
	}
}

/*
 * Send one frame in one state. If the table of frame.h allows the frame, expect a reply; otherwise
 * expect END and the end of the session.
 */
static void one_frame(enum gn_state state, unsigned type, int as_answer)
{
	static const struct gn_verdict fine = {.status = 0};
	uint8_t buf[GANTRY_CTRL_MAX];
	struct fake_conn *conn = fake_reach(&fc, state);
	unsigned closed = fc.n_closed, known = state != GN_NEW;
	size_t len = fake_payload(type, payload);
	int legal = !as_answer && type != GN_FRAME_END && gn_state_next(state, type) >= 0;

	len = gn_frame_build(buf, type, 9, fake_session(&fc, conn), as_answer ? &fine : NULL,
			     payload, as_answer ? 0 : len);
	fake_ctrl_send(conn, buf, len);
	fake_core_turn(&fc);
	if (legal && type == GN_FRAME_PING) {
		TEST_ASSERT_EQUAL_INT(0, fake_next_frame(conn, &p));
	} else {
		TEST_ASSERT_EQUAL_INT(1, fake_next_frame(conn, &p));
		TEST_ASSERT_EQUAL_STRING(legal ? gn_frame_name(type) : "end",
					 gn_frame_name(p.type));
		TEST_ASSERT_EQUAL_UINT(legal ? 9 : 0, p.head.id);
	}
	if (!legal) {
		gone(conn, closed + known);
		return;
	}
	if (type != GN_FRAME_BYE)
		fake_close(conn, -ENOTCONN);
	gone(conn, closed + 1);
}

static void every_frame_in_every_state(void)
{
	fake_core_start(&fc, 1);
	for (unsigned state = GN_NEW; state <= GN_STOPPED; state++)
		for (unsigned type = 0; type <= GN_FRAME_TYPES; type++) {
			if (fc.ft.n_conns > FAKE_CONNS - 3) {
				fake_core_fini(&fc);
				fake_core_init(&fc);
				fake_core_start(&fc, 1);
			}
			one_frame((enum gn_state)state, type, 0);
			one_frame((enum gn_state)state, type, 1);
		}
}

/* A session counts for max_sessions from HELLO on, also while the role processes HELLO. */
static void session_counts_for_the_limit_from_hello_on(void)
{
	struct fake_conn *conn, *late;

	fc.listen.max_sessions = 1;
	fc.rc[FAKE_HELLO] = -EINPROGRESS;
	fake_core_start(&fc, 1);
	conn = fake_reach(&fc, GN_NEW);
	ask(conn, GN_FRAME_HELLO);
	TEST_ASSERT_EQUAL_INT(0, fake_next_frame(conn, &p));
	late = fake_reach(&fc, GN_NEW);
	ask(late, GN_FRAME_HELLO);
	expect_answer(late, GN_FRAME_HELLO, GANTRY_S_BUSY);
	TEST_ASSERT_EQUAL_STRING(
		"busy: listen.max_sessions=1 reached by all peers together: raise it or close connections",
		p.verdict.text);
	TEST_ASSERT_EQUAL_INT(0, conn->disconnected);
}

struct refusal {
	enum gn_state state;
	unsigned type;
	size_t at;      /* offset of a 32-bit word in the payload */
	uint32_t value; /* new value of that word */
	unsigned status;
	const char *text;
};

static void hello_export_and_queues_reject_invalid_values(void)
{
	static const struct refusal table[] = {
		{GN_NEW, GN_FRAME_HELLO, offsetof(struct gn_hello, version_min), 0x00040004,
		 GANTRY_S_UNSUPPORTED, "protocol"},
		{GN_NEW, GN_FRAME_HELLO, offsetof(struct gn_hello, version_min), 0,
		 GANTRY_S_UNSUPPORTED, "0 to 0"},
		{GN_NEW, GN_FRAME_HELLO, offsetof(struct gn_hello, lanes), 0, GANTRY_S_INVALID,
		 "max_lanes"},
		{GN_NEW, GN_FRAME_HELLO, offsetof(struct gn_hello, lanes), 5, GANTRY_S_INVALID,
		 "max_lanes"},
		{GN_NEW, GN_FRAME_HELLO, offsetof(struct gn_hello, lanes), UINT32_MAX,
		 GANTRY_S_INVALID, "max_lanes"},
		{GN_NEW, GN_FRAME_HELLO, offsetof(struct gn_hello, depth), 0, GANTRY_S_INVALID,
		 "max_depth"},
		{GN_NEW, GN_FRAME_HELLO, offsetof(struct gn_hello, depth), 17, GANTRY_S_INVALID,
		 "max_depth"},
		{GN_NEW, GN_FRAME_HELLO, offsetof(struct gn_hello, regions), 5, GANTRY_S_INVALID,
		 "max_regions"},
		{GN_NEW, GN_FRAME_HELLO, offsetof(struct gn_hello, regions), UINT32_MAX,
		 GANTRY_S_INVALID, "max_regions"},
		{GN_KNOWN, GN_FRAME_EXPORT, offsetof(struct gantry_token, handle), 0,
		 GANTRY_S_INVALID, "region handle 0"},
		{GN_KNOWN, GN_FRAME_EXPORT, offsetof(struct gantry_token, handle), 3,
		 GANTRY_S_INVALID, "1 .. 2"},
		{GN_KNOWN, GN_FRAME_EXPORT, offsetof(struct gantry_token, handle), UINT32_MAX,
		 GANTRY_S_INVALID, "handle"},
		/* the fake transport announces a region of as many bytes as its generation */
		{GN_KNOWN, GN_FRAME_EXPORT, offsetof(struct gantry_token, generation), 12289,
		 GANTRY_S_ACCESS, "max_region_bytes"},
		{GN_KNOWN, GN_FRAME_EXPORT, offsetof(struct gantry_token, generation), UINT32_MAX,
		 GANTRY_S_ACCESS, "max_region_bytes"},
		{GN_KNOWN, GN_FRAME_EXPORT, offsetof(struct gantry_token, generation), 0,
		 GANTRY_S_IO, "imported"},
		{GN_KNOWN, GN_FRAME_QUEUES, offsetof(struct gn_queues, n), 1, GANTRY_S_INVALID,
		 "queues differ from HELLO"},
		{GN_KNOWN, GN_FRAME_QUEUES, offsetof(struct gn_queues, n), UINT32_MAX,
		 GANTRY_S_INVALID, "queues differ from HELLO"},
		{GN_KNOWN, GN_FRAME_QUEUES, offsetof(struct gn_queues, depth), 5, GANTRY_S_INVALID,
		 "queues differ from HELLO"},
	};

	fake_core_start(&fc, 1);
	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct refusal *r = &table[i];
		struct fake_conn *conn = fake_reach(&fc, r->state);
		unsigned closed = fc.n_closed + (r->state != GN_NEW);
		size_t len = fake_payload(r->type, payload);

		memcpy(payload + r->at, &r->value, sizeof(r->value));
		fake_ask(&fc, conn, r->type, 9, payload, len);
		expect_answer(conn, r->type, r->status);
		TEST_ASSERT_NOT_NULL_MESSAGE(strstr(p.verdict.text, r->text), p.verdict.text);
		expect_answer(conn, GN_FRAME_END, r->status);
		gone(conn, closed);
	}
	TEST_ASSERT_EQUAL_UINT64(sizeof(table) / sizeof(table[0]), counter("sessions_refused"));
}

static void a_session_without_an_id_is_refused(void)
{
	uint8_t buf[GANTRY_CTRL_MAX];
	struct fake_conn *conn;
	size_t len = fake_payload(GN_FRAME_HELLO, payload);

	fake_core_start(&fc, 1);
	conn = fake_reach(&fc, GN_NEW);
	fake_ctrl_send(conn, buf, gn_frame_build(buf, GN_FRAME_HELLO, 1, 0, NULL, payload, len));
	fake_core_turn(&fc);
	expect_answer(conn, GN_FRAME_HELLO, GANTRY_S_INVALID);
	gone(conn, 0);
}

static void a_handle_is_used_once_and_the_quota_is_for_all_regions(void)
{
	struct fake_conn *conn;
	struct gantry_token token = {.handle = 1, .generation = 8192};

	fake_core_start(&fc, 1);
	conn = fake_reach(&fc, GN_KNOWN);
	ask(conn, GN_FRAME_EXPORT);
	expect_answer(conn, GN_FRAME_EXPORT, 0);
	ask(conn, GN_FRAME_EXPORT);
	expect_answer(conn, GN_FRAME_EXPORT, GANTRY_S_INVALID);
	gone(conn, 1);
	conn = fake_reach(&fc, GN_KNOWN);
	fake_ask(&fc, conn, GN_FRAME_EXPORT, 1, &token, sizeof(token));
	expect_answer(conn, GN_FRAME_EXPORT, 0);
	token.handle = 2;
	fake_ask(&fc, conn, GN_FRAME_EXPORT, 2, &token, sizeof(token));
	expect_answer(conn, GN_FRAME_EXPORT, GANTRY_S_ACCESS);
	TEST_ASSERT_NOT_NULL(strstr(p.verdict.text, "max_region_bytes"));
	gone(conn, 2);
	conn = fake_reach(&fc, GN_KNOWN);
	fc.ft.skew_handle = 1; /* the transport imports the region with a wrong handle */
	ask(conn, GN_FRAME_EXPORT);
	expect_answer(conn, GN_FRAME_EXPORT, GANTRY_S_IO);
	gone(conn, 3);
	conn = fake_reach(&fc, GN_KNOWN);
	fc.ft.skew_handle = 0;
	fc.ft.unmapped = 1; /* the transport does not map the region as requested */
	ask(conn, GN_FRAME_EXPORT);
	expect_answer(conn, GN_FRAME_EXPORT, GANTRY_S_UNSUPPORTED);
	TEST_ASSERT_NOT_NULL(strstr(p.verdict.text, "not mapped"));
	gone(conn, 4);
}

static void transport_error_ends_the_session(void)
{
	static const struct {
		enum fake_op op;
		unsigned in;
		unsigned type;
	} table[] = {{FAKE_IMPORT, 1, GN_FRAME_EXPORT},    {FAKE_CONSUMER, 1, GN_FRAME_QUEUES},
		     {FAKE_CONSUMER, 2, GN_FRAME_QUEUES},  {FAKE_PRODUCER, 1, GN_FRAME_QUEUES},
		     {FAKE_PRODUCER, 2, GN_FRAME_QUEUES},  {FAKE_POST_RECV, 1, GN_FRAME_QUEUES},
		     {FAKE_POST_RECV, 2, GN_FRAME_QUEUES}, {FAKE_SEND_CTRL, 1, GN_FRAME_QUERY}};

	fake_core_start(&fc, 1);
	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct fake_conn *conn = fake_reach(&fc, table[i].op == FAKE_SEND_CTRL ? GN_GREETED
										       : GN_KNOWN);

		fake_fail_op(&fc.ft, table[i].op, table[i].in, -ENOMEM);
		ask(conn, table[i].type);
		/* the reply was lost: the peer ends the session at its time limit */
		if (table[i].op == FAKE_SEND_CTRL) {
			fake_close(conn, -ENOTCONN);
			gone(conn, i + 1);
			continue;
		}
		expect_answer(conn, table[i].type, GANTRY_S_NOMEM);
		gone(conn, i + 1);
	}
}

/* The reply to EXPORT has the reason: the text of the transport, or of the error number. */
static void answer_to_export_has_the_reason_of_a_failed_import(void)
{
	struct fake_conn *conn;

	fake_core_start(&fc, 1);
	conn = fake_reach(&fc, GN_KNOWN);
	fake_fail_op(&fc.ft, FAKE_IMPORT, 1, -EACCES);
	fc.ft.import_error = "192.0.2.9:7 is not in dev0.direct_networks";
	ask(conn, GN_FRAME_EXPORT);
	expect_answer(conn, GN_FRAME_EXPORT, GANTRY_S_ACCESS);
	TEST_ASSERT_EQUAL_STRING(
		"region 1 cannot be imported: 192.0.2.9:7 is not in dev0.direct_networks",
		p.verdict.text);
	gone(conn, 1);
	fc.ft.import_error = NULL;
	conn = fake_reach(&fc, GN_KNOWN);
	fake_fail_op(&fc.ft, FAKE_IMPORT, 1, -EACCES);
	ask(conn, GN_FRAME_EXPORT);
	expect_answer(conn, GN_FRAME_EXPORT, GANTRY_S_ACCESS);
	TEST_ASSERT_EQUAL_STRING("region 1 cannot be imported: Permission denied", p.verdict.text);
	gone(conn, 2);
}

static void rejection_by_the_role_ends_the_session(void)
{
	static const struct {
		enum gn_state state;
		unsigned type;
	} table[FAKE_STEPS] = {{GN_NEW, GN_FRAME_HELLO},       {GN_GREETED, GN_FRAME_QUERY},
			       {GN_KNOWN, GN_FRAME_EXPORT},    {GN_KNOWN, GN_FRAME_QUEUES},
			       {GN_QUEUED, GN_FRAME_START},    {GN_RUNNING, GN_FRAME_STOP},
			       {GN_RUNNING, GN_FRAME_UNEXPORT}};

	fake_core_start(&fc, 1);
	fc.text = "the crane is broken";
	for (unsigned i = 0; i < FAKE_STEPS; i++) {
		struct fake_conn *conn = fake_reach(&fc, table[i].state);

		if (table[i].type == GN_FRAME_UNEXPORT) {
			ask(conn, GN_FRAME_EXPORT);
			expect_answer(conn, GN_FRAME_EXPORT, 0);
		}
		fc.rc[i] = -EROFS;
		ask(conn, table[i].type);
		expect_answer(conn, table[i].type, GANTRY_S_READ_ONLY);
		TEST_ASSERT_EQUAL_STRING("the crane is broken", p.verdict.text);
		gone(conn, i + 1);
		TEST_ASSERT_EQUAL_INT(-EROFS, fc.closed_reason);
		fc.rc[i] = 0;
	}
}

static void an_impossible_volume_is_not_served(void)
{
	struct fake_conn *conn;

	fake_core_start(&fc, 1);
	fc.volume.block_size = 0;
	conn = fake_reach(&fc, GN_GREETED);
	ask(conn, GN_FRAME_QUERY);
	expect_answer(conn, GN_FRAME_QUERY, GANTRY_S_INVALID);
	gone(conn, 1);
}

static void request_is_answered_when_the_role_continues(void)
{
	static const unsigned types[FAKE_STEPS] = {
		GN_FRAME_HELLO, GN_FRAME_QUERY, GN_FRAME_EXPORT, 0, GN_FRAME_START, GN_FRAME_STOP};
	static const enum gn_state from[FAKE_STEPS] = {GN_NEW, GN_GREETED, GN_KNOWN,
						       0,      GN_QUEUED,  GN_RUNNING};

	fake_core_start(&fc, 1);
	for (unsigned i = 0; i < FAKE_STEPS; i++) {
		struct fake_conn *conn;

		if (types[i] == 0)
			continue;
		conn = fake_reach(&fc, from[i]);
		fc.rc[i] = -EINPROGRESS;
		ask(conn, types[i]);
		for (int s = 0; s < 20; s++) { /* longer than every time limit, with heartbeats */
			fake_core_pass(&fc, GN_NS_PER_S, GN_NS_PER_S);
			fake_ask(&fc, conn, GN_FRAME_PING, 0, NULL, 0);
		}
		TEST_ASSERT_EQUAL_INT(0, fake_next_frame(conn, &p));
		TEST_ASSERT_EQUAL_INT(0, conn->disconnected);
		fc.rh->session_continue(fc.session, 0);
		fc.rh->session_continue(fc.session, 0); /* no step is in progress: no effect */
		expect_answer(conn, types[i], 0);
		fc.rc[i] = 0;
		fake_close(conn, -ENOTCONN);
		gone(conn, fc.n_closed + fc.n_open);
	}
	TEST_ASSERT_EQUAL_UINT(5, fc.n_closed);
}

static void role_can_reject_a_request_later(void)
{
	struct fake_conn *conn;
	struct gantry_session *session;

	fake_core_start(&fc, 1);
	fc.rc[FAKE_HELLO] = -EINPROGRESS;
	conn = fake_reach(&fc, GN_NEW);
	ask(conn, GN_FRAME_HELLO);
	session = fc.session;
	fc.rh->session_refuse(session, "no target %d", 3);
	fc.rh->session_continue(session, -ECONNREFUSED);
	fc.rh->session_continue(session, 0);
	fc.rh->session_end(session, -EIO);
	expect_answer(conn, GN_FRAME_HELLO, GANTRY_S_IO);
	TEST_ASSERT_EQUAL_STRING("no target 3", p.verdict.text);
	gone(conn, 1);
	TEST_ASSERT_EQUAL_INT(-ECONNREFUSED, fc.closed_reason);
}

static void two_requests_at_a_time_end_the_session(void)
{
	static const unsigned second[] = {GN_FRAME_HELLO, GN_FRAME_QUERY};

	fake_core_start(&fc, 1);
	fc.rc[FAKE_HELLO] = -EINPROGRESS;
	for (unsigned i = 0; i < 2; i++) {
		struct fake_conn *conn = fake_reach(&fc, GN_NEW);

		ask(conn, GN_FRAME_HELLO);
		ask(conn, second[i]);
		expect_answer(conn, GN_FRAME_END, GANTRY_S_IO);
		gone(conn, i + 1);
		TEST_ASSERT_EQUAL_INT(-EPROTO, fc.closed_reason);
	}
}

static void frames_of_another_session_end_this_one(void)
{
	static const unsigned types[] = {GN_FRAME_QUERY, GN_FRAME_PING};

	fake_core_start(&fc, 1);
	for (unsigned i = 0; i < 2; i++) {
		struct fake_conn *conn = fake_reach(&fc, GN_GREETED);
		uint8_t buf[GANTRY_CTRL_MAX];

		fake_ctrl_send(conn, buf,
			       gn_frame_build(buf, types[i], 1, fake_session(&fc, conn) + 1, NULL,
					      NULL, 0));
		fake_core_turn(&fc);
		expect_answer(conn, GN_FRAME_END, GANTRY_S_IO);
		gone(conn, i + 1);
	}
}

static void malformed_frame_ends_the_session(void)
{
	static const uint8_t nonsense[GANTRY_CTRL_MAX] = {'G', 'R', 'Y', '1', 1, 0, 7};

	fake_core_start(&fc, 1);
	for (unsigned i = 0; i < 4; i++) {
		struct fake_conn *conn = fake_reach(&fc, i < 2 ? GN_NEW : GN_RUNNING);

		fake_ctrl_send(conn, nonsense, i % 2 ? 1 : sizeof(nonsense));
		fake_core_turn(&fc);
		expect_answer(conn, GN_FRAME_END, GANTRY_S_IO);
		TEST_ASSERT_NOT_NULL(strstr(p.verdict.text, "malformed"));
		gone(conn, i < 2 ? 0 : i - 1);
	}
}

static unsigned n_warnings;
static char warning[256]; /* text of the last warning */

static void count_warnings(enum gn_log_level level, const char *who, const char *message)
{
	(void)who;
	if (level != GN_LOG_WARN)
		return;
	n_warnings++;
	snprintf(warning, sizeof(warning), "%s", message);
}

static void one_warning(const char *text)
{
	TEST_ASSERT_EQUAL_UINT(1, n_warnings);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(warning, text), warning);
	n_warnings = 0;
}

/* The server logs one warning for each client that it rejects or whose running session is lost. */
static void each_end_is_logged_once(void)
{
	struct fake_conn *conn;

	n_warnings = 0;
	gn_log_set_level(GN_LOG_WARN);
	gn_log_set_hook(count_warnings);
	fake_core_start(&fc, 1);
	fc.rc[FAKE_HELLO] = -ENOSPC;
	conn = fake_reach(&fc, GN_NEW);
	ask(conn, GN_FRAME_HELLO);
	gone(conn, 1);
	one_warning("session refused id=");
	fc.rc[FAKE_HELLO] = 0;
	conn = fake_reach(&fc, GN_KNOWN);
	fake_close(conn, -ENOTCONN);
	gone(conn, 2);
	one_warning("session not started id=");
	/* the transport logs what the peer did wrong, and the session had not begun */
	conn = fake_reach(&fc, GN_NEW);
	fake_close(conn, -EPROTO);
	gone(conn, 2);
	TEST_ASSERT_EQUAL_UINT(0, n_warnings);
	conn = fake_reach(&fc, GN_KNOWN);
	fake_close(conn, -EPROTO);
	gone(conn, 3);
	one_warning("session not started id=");
	conn = fake_reach(&fc, GN_RUNNING);
	fc.rc[FAKE_STOP] = -EIO;
	ask(conn, GN_FRAME_STOP);
	gone(conn, 4);
	one_warning("session lost id=");
	gn_log_set_hook(NULL);
}

/* Before the peer has proved its identity, the device logs how the handshake ended. */
static void failed_handshakes_are_logged_by_the_device(void)
{
	static const int reasons[] = {-EPROTO, -ETIMEDOUT, -EBUSY};
	static struct gn_auth auth; /* no peer has proved its identity */

	n_warnings = 0;
	gn_log_set_level(GN_LOG_WARN);
	gn_log_set_hook(count_warnings);
	fake_core_start(&fc, 1);
	for (unsigned i = 0; i < 6; i++) {
		struct fake_conn *conn = fake_reach(&fc, GN_NEW);

		fc.device->host.auth = i < 3 ? &auth : NULL;
		fake_close(conn, reasons[i % 3]);
		gone(conn, 0);
		fc.device->host.auth = NULL;
		if (i <= 3)
			TEST_ASSERT_EQUAL_UINT(0, n_warnings);
		else
			one_warning("session not started id=");
	}
	gn_log_set_hook(NULL);
}

/*
 * The server limits the warnings about peers without a running session. It always logs the loss of
 * a running session.
 */
static void warnings_about_peers_without_a_session_are_limited(void)
{
	struct fake_conn *conn;

	n_warnings = 0;
	memset(payload, 0, sizeof(payload));
	gn_log_set_level(GN_LOG_WARN);
	gn_log_set_hook(count_warnings);
	fake_core_start(&fc, 1);
	for (unsigned i = 0; i < 40; i++) {
		conn = fake_reach(&fc, GN_NEW);
		if (i % 2)
			fake_ctrl_send(conn, "?", 1);
		else
			fake_ask(&fc, conn, GN_FRAME_HELLO, 9, payload, sizeof(struct gn_hello));
		gone(conn, fc.n_closed);
	}
	TEST_ASSERT_EQUAL_UINT(10, n_warnings);
	conn = fake_reach(&fc, GN_RUNNING);
	fake_close(conn, -ENOTCONN);
	gone(conn, fc.n_closed + 1);
	TEST_ASSERT_EQUAL_UINT(11, n_warnings);
	gn_log_set_hook(NULL);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(a_whole_session);
	RUN_TEST(features_are_those_of_both);
	RUN_TEST(every_frame_in_every_state);
	RUN_TEST(session_counts_for_the_limit_from_hello_on);
	RUN_TEST(hello_export_and_queues_reject_invalid_values);
	RUN_TEST(a_session_without_an_id_is_refused);
	RUN_TEST(a_handle_is_used_once_and_the_quota_is_for_all_regions);
	RUN_TEST(transport_error_ends_the_session);
	RUN_TEST(answer_to_export_has_the_reason_of_a_failed_import);
	RUN_TEST(rejection_by_the_role_ends_the_session);
	RUN_TEST(an_impossible_volume_is_not_served);
	RUN_TEST(request_is_answered_when_the_role_continues);
	RUN_TEST(role_can_reject_a_request_later);
	RUN_TEST(two_requests_at_a_time_end_the_session);
	RUN_TEST(frames_of_another_session_end_this_one);
	RUN_TEST(malformed_frame_ends_the_session);
	RUN_TEST(warnings_about_peers_without_a_session_are_limited);
	RUN_TEST(each_end_is_logged_once);
	RUN_TEST(failed_handshakes_are_logged_by_the_device);
	return UNITY_END();
}
