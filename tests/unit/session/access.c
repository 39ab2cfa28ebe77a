/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of listen.allow: which peers they permit, with which rights, and what a change withdraws. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "session/session_priv.h"
#include "unit/session/rig.h"

/* The rows of this test, and those before them, which a core may still use. */
static struct gn_access *access_rows, *before;

/* A row for one user. */
static struct gn_allow *user_row(uint32_t i, uint32_t uid)
{
	struct gn_allow *row = &access_rows->rows[i];

	row->uids = malloc(sizeof(*row->uids));
	row->uids[0] = uid;
	row->n_uids = 1;
	return row;
}

static struct gn_allow *identity_row(uint32_t i, const char *identity)
{
	access_rows->rows[i].identity = strdup(identity);
	return &access_rows->rows[i];
}

static void volume_of(struct gn_allow *row, const char *name)
{
	row->volumes = malloc(sizeof(*row->volumes));
	row->volumes[0] = strdup(name);
	row->n_volumes = 1;
}

/* Begin with n rows; serve() uses them. */
static void rows(uint32_t n)
{
	gn_access_free(&before);
	before = access_rows;
	access_rows = gn_access_new(n);
}

static void serve(void)
{
	fc.listen.access = access_rows;
	fake_core_start(&fc, 1);
}

static struct fake_conn *dial_as(uint32_t uid)
{
	fc.ft.peer.pid = 100 + (int)uid;
	fc.ft.peer.uid = uid;
	fc.ft.peer.gid = uid + 1000;
	return fake_reach(&fc, GN_NEW);
}

/* Send HELLO with these lanes, in the name of this client of a gateway. */
static void hello(struct fake_conn *conn, uint32_t lanes, const char *client)
{
	size_t len = fake_payload(GN_FRAME_HELLO, payload);

	memcpy(payload + offsetof(struct gn_hello, lanes), &lanes, sizeof(lanes));
	snprintf((char *)payload + offsetof(struct gn_hello, client), GN_IDENTITY_MAX + 1, "%s",
		 client);
	fake_ask(&fc, conn, GN_FRAME_HELLO, 9, payload, len);
}

static void refused(struct fake_conn *conn, unsigned status, const char *text)
{
	expect_answer(conn, GN_FRAME_HELLO, status);
	TEST_ASSERT_EQUAL_STRING(text, p.verdict.text);
	expect_answer(conn, GN_FRAME_END, status);
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_INT(1, conn->disconnected);
}

/* Returns the flags of the volume that the answer to QUERY describes. */
static uint32_t volume_flags(struct fake_conn *conn)
{
	struct gantry_volume_info volume;

	ask(conn, GN_FRAME_QUERY);
	expect_answer(conn, GN_FRAME_QUERY, 0);
	memcpy(&volume, p.payload, sizeof(volume));
	return volume.flags;
}

static void first_row_that_fits_is_found(void)
{
	struct gantry_peer peer = {.uid = 7, .gid = 70};

	rows(4);
	volume_of(user_row(0, 7), "disk");
	access_rows->rows[1].gid = 70;
	identity_row(2, "host-a");
	volume_of(identity_row(3, "host-b"), "disk");
	TEST_ASSERT_EQUAL_PTR(&access_rows->rows[0],
			      gn_access_find(access_rows, "disk", NULL, &peer));
	TEST_ASSERT_EQUAL_PTR(&access_rows->rows[1],
			      gn_access_find(access_rows, "tape", NULL, &peer));
	peer.gid = 71;
	TEST_ASSERT_NULL(gn_access_find(access_rows, "tape", NULL, &peer));
	peer.uid = 8;
	TEST_ASSERT_NULL(gn_access_find(access_rows, "disk", NULL, &peer));
	peer.uid = UINT32_MAX; /* unknown, as on a network */
	peer.gid = 70;
	TEST_ASSERT_NULL(gn_access_find(access_rows, "disk", NULL, &peer));
	TEST_ASSERT_EQUAL_PTR(&access_rows->rows[2],
			      gn_access_find(access_rows, "disk", "host-a", &peer));
	TEST_ASSERT_EQUAL_PTR(&access_rows->rows[3],
			      gn_access_find(access_rows, "disk", "host-b", &peer));
	TEST_ASSERT_NULL(gn_access_find(access_rows, "tape", "host-b", &peer));
	TEST_ASSERT_NULL(gn_access_find(access_rows, "disk", "host-", &peer));
	serve();
}

static void identities_have_a_form(void)
{
	static const char *const good[] = {"a", "host-a.example_1@site", "0"},
				 *const bad[] = {"", "a b", "a\n", "a/b", "a:b", "\xc3\xa4"};
	char longest[GN_IDENTITY_MAX + 2];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		TEST_ASSERT_TRUE_MESSAGE(gn_identity_ok(good[i]), good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		TEST_ASSERT_FALSE_MESSAGE(gn_identity_ok(bad[i]), bad[i]);
	memset(longest, 'a', sizeof(longest));
	longest[GN_IDENTITY_MAX + 1] = '\0';
	TEST_ASSERT_FALSE(gn_identity_ok(longest));
	longest[GN_IDENTITY_MAX] = '\0';
	TEST_ASSERT_TRUE(gn_identity_ok(longest));
	fake_core_start(&fc, 1);
}

static void user_without_a_row_cannot_connect(void)
{
	struct fake_conn *conn;

	rows(1);
	user_row(0, 1);
	serve();
	conn = dial_as(2);
	TEST_ASSERT_EQUAL_INT(1, conn->refused);
	conn = dial_as(1);
	TEST_ASSERT_EQUAL_INT(0, conn->refused);
	hello(conn, 2, "");
	expect_answer(conn, GN_FRAME_HELLO, 0);
	TEST_ASSERT_EQUAL_UINT32(0, volume_flags(conn) & GANTRY_VOLUME_READ_ONLY);
}

static void rows_limit_a_session(void)
{
	struct fake_conn *conn;

	rows(3);
	user_row(0, 1)->read_only = 1;
	user_row(1, 2)->lanes = 1;
	user_row(2, 3)->region_bytes = 1;
	serve();
	conn = dial_as(1);
	hello(conn, 2, "");
	expect_answer(conn, GN_FRAME_HELLO, 0);
	TEST_ASSERT_EQUAL_UINT32(GANTRY_VOLUME_READ_ONLY,
				 volume_flags(conn) & GANTRY_VOLUME_READ_ONLY);
	conn = dial_as(2);
	hello(conn, 2, "");
	refused(conn, GANTRY_S_INVALID,
		"lanes out of range (lanes=2, limit lanes=1 of listen.allow)");
	conn = dial_as(2);
	hello(conn, 1, "");
	expect_answer(conn, GN_FRAME_HELLO, 0);
	conn = dial_as(3);
	hello(conn, 2, "");
	expect_answer(conn, GN_FRAME_HELLO, 0);
	volume_flags(conn);
	ask(conn, GN_FRAME_EXPORT);
	TEST_ASSERT_EQUAL_INT(1, fake_next_frame(conn, &p));
	TEST_ASSERT_TRUE(p.verdict.status != 0);
	TEST_ASSERT_NOT_NULL_MESSAGE(
		strstr(p.verdict.text, "limit region_bytes of listen.allow=1)"), p.verdict.text);
}

static void sessions_of_a_peer_are_bounded(void)
{
	struct fake_conn *conn;

	rows(2);
	user_row(0, 1)->sessions = 1;
	user_row(1, 2);
	serve();
	conn = dial_as(1);
	hello(conn, 2, "");
	expect_answer(conn, GN_FRAME_HELLO, 0);
	conn = dial_as(1);
	hello(conn, 2, "");
	refused(conn, GANTRY_S_BUSY, "busy: sessions=1 of listen.allow reached by uid 1");
	conn = dial_as(2);
	hello(conn, 2, "");
	expect_answer(conn, GN_FRAME_HELLO, 0);
}

/* Only a row with `relay` gives weight to the client that a peer states. */
static void gateway_states_its_client(void)
{
	struct fake_conn *conn;

	rows(4);
	user_row(0, 1)->relay = 1;
	user_row(1, 2);
	identity_row(2, "host-a")->read_only = 1;
	identity_row(3, "host-b");
	serve();
	conn = dial_as(1);
	hello(conn, 2, "host-a");
	expect_answer(conn, GN_FRAME_HELLO, 0);
	TEST_ASSERT_EQUAL_UINT32(GANTRY_VOLUME_READ_ONLY,
				 volume_flags(conn) & GANTRY_VOLUME_READ_ONLY);
	conn = dial_as(1);
	hello(conn, 2, "host-b");
	expect_answer(conn, GN_FRAME_HELLO, 0);
	TEST_ASSERT_EQUAL_UINT32(0, volume_flags(conn) & GANTRY_VOLUME_READ_ONLY);
	conn = dial_as(1);
	hello(conn, 2, "host-c");
	refused(conn, GANTRY_S_ACCESS,
		"no access (identity=host-c, service=volume0): add the identity to listen.allow");
	conn = dial_as(2); /* no relay: its own rights */
	hello(conn, 2, "host-a");
	expect_answer(conn, GN_FRAME_HELLO, 0);
	TEST_ASSERT_EQUAL_UINT32(0, volume_flags(conn) & GANTRY_VOLUME_READ_ONLY);
	conn = dial_as(1);
	hello(conn, 2, "host a");
	refused(conn, GANTRY_S_INVALID, "the identity of the client is malformed");
}

/* Replace the rows, as a reload does. */
static void replace(void)
{
	fc.listen.access = access_rows;
	gn_rights_check(fc.role);
	fake_core_turn(&fc);
}

static void withdrawn_access_ends_sessions(void)
{
	struct fake_conn *one, *two, *three;

	rows(3);
	for (uint32_t i = 0; i < 3; i++)
		user_row(i, i + 1);
	serve();
	one = dial_as(1);
	hello(one, 2, "");
	two = dial_as(2);
	hello(two, 2, "");
	three = dial_as(3);
	fake_core_turn(&fc);
	rows(3);
	user_row(0, 1);
	user_row(1, 2)->read_only = 1;
	user_row(2, 4);
	replace();
	TEST_ASSERT_EQUAL_INT(0, one->disconnected);
	TEST_ASSERT_EQUAL_INT(1, two->disconnected);
	TEST_ASSERT_EQUAL_INT(1, three->disconnected);
	TEST_ASSERT_EQUAL_INT(1, dial_as(3)->refused);
}

int main(void)
{
	int failed;

	UNITY_BEGIN();
	RUN_TEST(first_row_that_fits_is_found);
	RUN_TEST(identities_have_a_form);
	RUN_TEST(user_without_a_row_cannot_connect);
	RUN_TEST(rows_limit_a_session);
	RUN_TEST(sessions_of_a_peer_are_bounded);
	RUN_TEST(gateway_states_its_client);
	RUN_TEST(withdrawn_access_ends_sessions);
	failed = UNITY_END();
	gn_access_free(&before);
	gn_access_free(&access_rows);
	return failed;
}
