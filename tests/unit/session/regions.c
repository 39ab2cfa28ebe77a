/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server end of sessions: regions that the client exports and unexports, and a volume whose
 * size changes, while the session runs. The test is the peer.
 */
#include <errno.h>
#include <string.h>

#include "unit/session/rig.h"

static struct fake_conn *conn;

static void ask_export(uint32_t handle)
{
	size_t len = fake_payload(GN_FRAME_EXPORT, payload);

	memcpy(payload + offsetof(struct gantry_token, handle), &handle, sizeof(handle));
	fake_ask(&fc, conn, GN_FRAME_EXPORT, 20, payload, len);
}

static void ask_unexport(uint32_t handle)
{
	const struct gn_unexport u = {.handle = handle};

	fake_ask(&fc, conn, GN_FRAME_UNEXPORT, 21, &u, sizeof(u));
}

static void export(uint32_t handle)
{
	ask_export(handle);
	expect_answer(conn, GN_FRAME_EXPORT, 0);
}

static void unexport(uint32_t handle)
{
	ask_unexport(handle);
	expect_answer(conn, GN_FRAME_UNEXPORT, 0);
}

static void send(unsigned lane, uint32_t tag, uint32_t handle)
{
	struct gantry_io io = request(tag);

	io.region = handle;
	fake_arrive(&conn->consumers[lane], &io, GANTRY_IO_WIRE_BYTES);
	fake_core_turn(&fc);
}

static void expect_reply(unsigned lane, uint32_t tag, unsigned status)
{
	struct gantry_io io = {.opcode = 0};

	TEST_ASSERT_EQUAL_INT(1, fake_taken(&conn->producers[lane], &io));
	TEST_ASSERT_EQUAL_UINT(tag, io.tag);
	TEST_ASSERT_EQUAL_UINT(status, io.status);
}

static void expect_no_frame(void)
{
	TEST_ASSERT_EQUAL_INT(0, fake_next_frame(conn, &p));
}

static void run(void)
{
	fake_core_start(&fc, 1);
	conn = fake_reach(&fc, GN_RUNNING);
}

static void close_session(void)
{
	ask(conn, GN_FRAME_STOP);
	expect_answer(conn, GN_FRAME_STOP, 0);
	TEST_ASSERT_EQUAL_UINT(0, conn->n_imports);
	ask(conn, GN_FRAME_BYE);
	expect_answer(conn, GN_FRAME_BYE, 0);
	gone(conn, 1);
}

static void region_is_used_from_its_export_to_its_unexport(void)
{
	run();
	send(0, 1, 1);
	expect_reply(0, 1, GANTRY_S_ACCESS);
	for (uint32_t round = 1; round <= 3; round++) {
		export(1);
		export(2);
		TEST_ASSERT_EQUAL_UINT(2, conn->n_imports);
		for (unsigned lane = 0; lane < 2; lane++) {
			send(lane, round, 1 + lane);
			expect_reply(lane, round, GANTRY_S_OK);
		}
		unexport(1);
		TEST_ASSERT_EQUAL_UINT(1, conn->n_imports);
		for (unsigned lane = 0; lane < 2; lane++) {
			send(lane, 10 + round, 1);
			expect_reply(lane, 10 + round, GANTRY_S_ACCESS);
			send(lane, 20 + round, 2);
			expect_reply(lane, 20 + round, GANTRY_S_OK);
		}
		unexport(2);
		TEST_ASSERT_EQUAL_UINT(2 * round, fc.n[FAKE_UNEXPORT]);
	}
	TEST_ASSERT_EQUAL_UINT(0, conn->n_imports);
	export(2);
	close_session();
}

/* The region stays imported until the last IO of both lanes has ended. */
static void unexport_waits_for_the_io_of_each_lane(void)
{
	run();
	export(1);
	export(2);
	fc.hold = 1;
	send(0, 1, 1);
	send(0, 2, 2);
	send(1, 3, 1);
	ask_unexport(1);
	fc.hold = 0;
	expect_no_frame();
	TEST_ASSERT_EQUAL_UINT(0, fc.n[FAKE_UNEXPORT]);
	TEST_ASSERT_EQUAL_UINT(2, conn->n_imports);
	fc.rh->session_continue(fc.session, 0); /* no effect: the role is not asked yet */
	fake_core_turn(&fc);
	expect_no_frame();
	send(1, 4, 1);
	expect_reply(1, 4, GANTRY_S_ACCESS);
	send(1, 5, 2);
	expect_reply(1, 5, GANTRY_S_OK);
	fake_core_finish(&fc, GANTRY_S_OK);
	expect_reply(0, 2, GANTRY_S_OK);
	expect_reply(0, 1, GANTRY_S_OK);
	expect_reply(1, 3, GANTRY_S_OK);
	expect_answer(conn, GN_FRAME_UNEXPORT, 0);
	TEST_ASSERT_EQUAL_UINT(1, fc.n[FAKE_UNEXPORT]);
	TEST_ASSERT_EQUAL_UINT(1, conn->n_imports);
	close_session();
}

/* A relay first ends its own exports of the region. */
static void role_that_takes_its_time(void)
{
	run();
	fc.rc[FAKE_REGION] = fc.rc[FAKE_UNEXPORT] = -EINPROGRESS;
	ask_export(1);
	expect_no_frame();
	send(0, 1, 1);
	expect_reply(0, 1, GANTRY_S_ACCESS);
	fc.rh->session_continue(fc.session, 0);
	fake_core_turn(&fc);
	expect_answer(conn, GN_FRAME_EXPORT, 0);
	send(0, 2, 1);
	expect_reply(0, 2, GANTRY_S_OK);
	ask_unexport(1);
	expect_no_frame();
	TEST_ASSERT_EQUAL_UINT(1, conn->n_imports);
	fc.rh->session_continue(fc.session, 0);
	fake_core_turn(&fc);
	expect_answer(conn, GN_FRAME_UNEXPORT, 0);
	TEST_ASSERT_EQUAL_UINT(0, conn->n_imports);
	close_session();
}

static void unexport_before_the_session_runs(void)
{
	fake_core_start(&fc, 1);
	conn = fake_reach(&fc, GN_KNOWN);
	export(1);
	unexport(1);
	TEST_ASSERT_EQUAL_UINT(0, conn->n_imports);
	export(1);
	ask(conn, GN_FRAME_QUEUES);
	expect_answer(conn, GN_FRAME_QUEUES, 0);
	ask(conn, GN_FRAME_START);
	expect_answer(conn, GN_FRAME_START, 0);
	send(0, 1, 1);
	expect_reply(0, 1, GANTRY_S_OK);
	close_session();
}

/* The quotas of listen count the regions that are exported now. */
static void unexport_returns_the_quota(void)
{
	fc.listen.max_region_bytes = 4096;
	fc.listen.max_peer_region_bytes = 4096;
	run();
	for (unsigned i = 0; i < 3; i++) {
		export(1);
		unexport(1);
	}
	export(1);
	ask_export(2);
	expect_answer(conn, GN_FRAME_EXPORT, GANTRY_S_ACCESS);
	expect_answer(conn, GN_FRAME_END, GANTRY_S_ACCESS);
	gone(conn, 1);
}

static void refused(unsigned type, unsigned status, const char *text)
{
	expect_answer(conn, type, status);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(p.verdict.text, text), p.verdict.text);
	gone(conn, fc.n_closed);
}

static void handles_that_are_not_in_use_are_rejected(void)
{
	static const uint32_t handles[] = {0, 2, 3, UINT32_MAX};

	fake_core_start(&fc, 1);
	for (unsigned i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
		conn = fake_reach(&fc, GN_RUNNING);
		export(1);
		ask_unexport(handles[i]);
		refused(GN_FRAME_UNEXPORT, GANTRY_S_INVALID, "is not in use");
	}
	conn = fake_reach(&fc, GN_RUNNING);
	export(1);
	unexport(1);
	ask_unexport(1);
	refused(GN_FRAME_UNEXPORT, GANTRY_S_INVALID, "region handle 1 is not in use");
	conn = fake_reach(&fc, GN_RUNNING);
	export(1);
	ask_export(1);
	refused(GN_FRAME_EXPORT, GANTRY_S_INVALID, "region handle 1 is in use");
}

/* A client, or a role, of an older version does not know UNEXPORT. */
static void without_the_feature_regions_do_not_change(void)
{
	fc.server_ops.unexport = NULL;
	fake_core_start(&fc, 1);
	conn = fake_reach(&fc, GN_RUNNING);
	ask_export(1);
	refused(GN_FRAME_EXPORT, GANTRY_S_UNSUPPORTED, "was not negotiated");
	conn = fake_reach(&fc, GN_KNOWN);
	export(1);
	ask_unexport(1);
	refused(GN_FRAME_UNEXPORT, GANTRY_S_UNSUPPORTED, "was not negotiated");
}

static void session_that_is_lost_while_a_region_is_drained(void)
{
	run();
	export(1);
	fc.hold = 1;
	send(0, 1, 1);
	ask_unexport(1);
	fake_close(conn, -ENOTCONN);
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_UINT(1, conn->n_imports);
	fake_core_finish(&fc, GANTRY_S_OK);
	gone(conn, 1);
	TEST_ASSERT_EQUAL_UINT(0, fc.n[FAKE_UNEXPORT]);
}

static void session_that_is_lost_while_the_role_unexports(void)
{
	run();
	export(1);
	fc.rc[FAKE_UNEXPORT] = -EINPROGRESS;
	ask_unexport(1);
	fake_close(conn, -ENOTCONN);
	gone(conn, 1);
}

static void request_during_an_unexport_ends_the_session(void)
{
	run();
	export(1);
	fc.hold = 1;
	send(0, 1, 1);
	ask_unexport(1);
	ask_export(2);
	expect_answer(conn, GN_FRAME_END, GANTRY_S_IO);
	fake_core_finish(&fc, GANTRY_S_OK);
	gone(conn, 1);
}

/* -- changes of the volume -- */

static void send_at(uint32_t tag, uint64_t offset)
{
	struct gantry_io io = request(tag);

	io.offset = offset;
	fake_arrive(&conn->consumers[0], &io, GANTRY_IO_WIRE_BYTES);
	fake_core_turn(&fc);
}

/* Resize the volume, and expect a frame that reports it. */
static void resize(uint64_t size)
{
	struct gn_volume_change change;

	TEST_ASSERT_EQUAL_INT(0, fc.rh->session_resize(fc.session, size));
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_INT(1, fake_next_frame(conn, &p));
	TEST_ASSERT_EQUAL_STRING("volume", gn_frame_name(p.type));
	memcpy(&change, p.payload, sizeof(change));
	TEST_ASSERT_EQUAL_UINT64(size, change.size);
}

static void size_of_the_volume_changes(void)
{
	run();
	export(1);
	send_at(1, 1 << 20);
	expect_reply(0, 1, GANTRY_S_RANGE);
	resize(2 << 20);
	send_at(2, 1 << 20);
	expect_reply(0, 2, GANTRY_S_OK);
	TEST_ASSERT_EQUAL_INT(-EINVAL, fc.rh->session_resize(fc.session, 0));
	TEST_ASSERT_EQUAL_INT(-EINVAL, fc.rh->session_resize(fc.session, 513));
	TEST_ASSERT_EQUAL_INT(0, fc.rh->session_resize(fc.session, 2 << 20));
	expect_no_frame();
	resize(512);
	send_at(3, 512);
	expect_reply(0, 3, GANTRY_S_RANGE);
	send_at(4, 0);
	expect_reply(0, 4, GANTRY_S_OK);
	close_session();
}

/* The change is reported as soon as the session runs. */
static void size_changes_before_the_session_runs(void)
{

	fake_core_start(&fc, 1);
	conn = fake_reach(&fc, GN_QUEUED);
	TEST_ASSERT_EQUAL_INT(0, fc.rh->session_resize(fc.session, 512));
	expect_no_frame();
	ask(conn, GN_FRAME_START);
	expect_answer(conn, GN_FRAME_START, 0);
	TEST_ASSERT_EQUAL_INT(1, fake_next_frame(conn, &p));
	TEST_ASSERT_EQUAL_STRING("volume", gn_frame_name(p.type));
	export(1);
	send_at(3, 512);
	expect_reply(0, 3, GANTRY_S_RANGE);
}

/* The new size is valid for a client without GN_FEATURE_VOLUME, too, but it gets no frame. */
static void client_without_the_feature_gets_no_frame(void)
{
	static const unsigned path[] = {GN_FRAME_QUERY, GN_FRAME_EXPORT, GN_FRAME_QUEUES,
					GN_FRAME_START};
	uint8_t hello[GANTRY_CTRL_MAX];
	size_t bytes = fake_payload(GN_FRAME_HELLO, hello);

	memset(hello + offsetof(struct gn_hello, features), 0, sizeof(uint64_t));
	fake_core_start(&fc, 1);
	conn = fake_dial(&fc.ft, fc.listen.service);
	fake_ask(&fc, conn, GN_FRAME_HELLO, 1, hello, bytes);
	expect_answer(conn, GN_FRAME_HELLO, 0);
	for (unsigned i = 0; i < 4; i++) {
		ask(conn, path[i]);
		expect_answer(conn, path[i], 0);
	}
	TEST_ASSERT_EQUAL_INT(0, fc.rh->session_resize(fc.session, 512));
	fake_core_turn(&fc);
	expect_no_frame();
	send_at(1, 512);
	expect_reply(0, 1, GANTRY_S_RANGE);
}

static void client_cannot_change_the_volume(void)
{
	const struct gn_volume_change change = {.size = 512};

	run();
	fake_ask(&fc, conn, GN_FRAME_VOLUME, 30, &change, sizeof(change));
	gone(conn, 1);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(region_is_used_from_its_export_to_its_unexport);
	RUN_TEST(unexport_waits_for_the_io_of_each_lane);
	RUN_TEST(role_that_takes_its_time);
	RUN_TEST(unexport_before_the_session_runs);
	RUN_TEST(unexport_returns_the_quota);
	RUN_TEST(handles_that_are_not_in_use_are_rejected);
	RUN_TEST(without_the_feature_regions_do_not_change);
	RUN_TEST(session_that_is_lost_while_a_region_is_drained);
	RUN_TEST(session_that_is_lost_while_the_role_unexports);
	RUN_TEST(size_of_the_volume_changes);
	RUN_TEST(size_changes_before_the_session_runs);
	RUN_TEST(client_without_the_feature_gets_no_frame);
	RUN_TEST(client_cannot_change_the_volume);
	RUN_TEST(request_during_an_unexport_ends_the_session);
	return UNITY_END();
}
