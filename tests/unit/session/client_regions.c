/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client end of sessions: regions that are exported and unexported, and a volume whose size
 * changes, while the session runs. The test is the server.
 */
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/session/client_rig.h"

static int export(uint32_t handle)
{
	return fc.rh->client_export(client, &region, GANTRY_REMOTE_READ, handle);
}

static int unexport(uint32_t handle)
{
	return fc.rh->client_unexport(client, handle);
}

/* Expect the request UNEXPORT of this handle, and answer it. */
static void answer_unexport(uint32_t handle)
{
	static const struct gn_verdict ok = {.status = 0};
	struct gn_unexport u;

	asked(GN_FRAME_UNEXPORT);
	memcpy(&u, p.payload, sizeof(u));
	TEST_ASSERT_EQUAL_UINT(handle, u.handle);
	TEST_ASSERT_EQUAL_UINT(0, u.reserved);
	say(GN_FRAME_UNEXPORT, p.head.id, FAKE_SESSION, &ok, NULL, 0);
}

static void finish_close(void)
{
	fc.rh->client_close(client);
	answer(GN_FRAME_STOP);
	answer(GN_FRAME_BYE);
	closed(0);
	TEST_ASSERT_EQUAL_INT(1, fc.rh->client_regions_released(client));
}

static void region_is_exported_and_unexported_while_the_session_runs(void)
{
	reach(STARTED);
	TEST_ASSERT_EQUAL_INT(0, submit()); /* the session carries IO meanwhile */
	for (unsigned i = 1; i <= 3; i++) {
		TEST_ASSERT_EQUAL_INT(0, export(2));
		TEST_ASSERT_EQUAL_INT(-EBUSY, export(2));
		TEST_ASSERT_EQUAL_INT(-EBUSY, unexport(1));
		TEST_ASSERT_EQUAL_UINT(i, n_exported);
		answer(GN_FRAME_EXPORT);
		TEST_ASSERT_EQUAL_UINT(1 + i, n_exported);
		TEST_ASSERT_EQUAL_UINT(2, conn->n_exports);
		TEST_ASSERT_EQUAL_INT(-ENOSPC, export(3));
		TEST_ASSERT_EQUAL_INT(0, unexport(2));
		TEST_ASSERT_EQUAL_INT(-EBUSY, unexport(1));
		TEST_ASSERT_EQUAL_UINT(i - 1, conn->n_revokes); /* not before the answer */
		answer_unexport(2);
		TEST_ASSERT_EQUAL_UINT(i, conn->n_revokes);
		TEST_ASSERT_EQUAL_UINT(i, n_unexported);
		TEST_ASSERT_EQUAL_UINT(2, unexported);
	}
	TEST_ASSERT_EQUAL_UINT(1, n_started);
	TEST_ASSERT_EQUAL_UINT(0, n_io_done);
	finish_close();
	TEST_ASSERT_EQUAL_UINT(4, conn->n_revokes);
}

static void region_is_unexported_before_the_session_runs(void)
{
	reach(EXPORTED);
	TEST_ASSERT_EQUAL_INT(0, unexport(1));
	answer_unexport(1);
	TEST_ASSERT_EQUAL_UINT(1, n_unexported);
	TEST_ASSERT_EQUAL_INT(0, export(1));
	answer(GN_FRAME_EXPORT);
	fc.rh->client_close(client);
	answer(GN_FRAME_BYE);
	closed(0);
}

/* The event comes when the transport of the peer has confirmed, and the handle is free then. */
static void peer_that_keeps_the_region_for_a_while(void)
{
	reach(STARTED);
	fc.ft.keeps = 1;
	TEST_ASSERT_EQUAL_INT(0, unexport(1));
	answer_unexport(1);
	TEST_ASSERT_EQUAL_UINT(1, conn->n_revokes);
	TEST_ASSERT_EQUAL_UINT(0, n_unexported);
	TEST_ASSERT_EQUAL_INT(-ENOENT, unexport(1));
	TEST_ASSERT_EQUAL_INT(0, export(2)); /* other requests do not wait */
	answer(GN_FRAME_EXPORT);
	TEST_ASSERT_EQUAL_INT(0, unexport(2));
	answer_unexport(2);
	fake_revoked(conn, 1, 0);
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_UINT(1, n_unexported);
	TEST_ASSERT_EQUAL_UINT(1, unexported);
	fake_revoked(conn, 2, 0);
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_UINT(2, n_unexported);
	fc.ft.keeps = 0;
	TEST_ASSERT_EQUAL_INT(0, export(1));
	answer(GN_FRAME_EXPORT);
	finish_close();
}

static void peer_that_does_not_release_the_region_loses_the_session(void)
{
	reach(STARTED);
	fc.ft.keeps = 1;
	TEST_ASSERT_EQUAL_INT(0, unexport(1));
	answer_unexport(1);
	fake_revoked(conn, 1, -ETIMEDOUT);
	closed(-ETIMEDOUT);
	TEST_ASSERT_NOT_NULL(strstr(close_text, "region 1"));
	TEST_ASSERT_EQUAL_UINT(0, n_unexported);
	TEST_ASSERT_EQUAL_INT(0, fc.rh->client_regions_released(client));
}

/* A region whose revocation is in progress is not revoked again by BYE. */
static void close_during_a_revocation(void)
{
	reach(STARTED);
	fc.ft.keeps = 1;
	TEST_ASSERT_EQUAL_INT(0, export(2));
	answer(GN_FRAME_EXPORT);
	TEST_ASSERT_EQUAL_INT(0, unexport(1));
	answer_unexport(1);
	fc.rh->client_close(client);
	TEST_ASSERT_EQUAL_INT(-EBUSY, export(1));
	answer(GN_FRAME_STOP);
	answer(GN_FRAME_BYE);
	TEST_ASSERT_EQUAL_UINT(2, conn->n_revokes);
	fake_revoked(conn, 1, 0);
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_UINT(0, n_closed);
	fake_revoked(conn, 2, 0);
	closed(0);
	TEST_ASSERT_EQUAL_INT(1, fc.rh->client_regions_released(client));
}

/* The session closes in order after the answer; then `closed` stands for `unexported`. */
static void close_before_the_answer(void)
{
	reach(STARTED);
	TEST_ASSERT_EQUAL_INT(0, unexport(1));
	fc.rh->client_close(client);
	answer_unexport(1);
	TEST_ASSERT_EQUAL_UINT(0, conn->n_revokes);
	answer(GN_FRAME_STOP);
	answer(GN_FRAME_BYE);
	closed(0);
	TEST_ASSERT_EQUAL_UINT(1, conn->n_revokes);
	TEST_ASSERT_EQUAL_UINT(0, n_unexported);
	TEST_ASSERT_EQUAL_INT(1, fc.rh->client_regions_released(client));
}

static void server_that_does_not_know_unexport(void)
{
	features = 0;
	reach(EXPORTED);
	TEST_ASSERT_EQUAL_INT(-ENOTSUP, unexport(1));
	TEST_ASSERT_EQUAL_INT(0, export(2)); /* before the start every server permits it */
	again();
	features = 0;
	reach(STARTED);
	TEST_ASSERT_EQUAL_INT(-ENOTSUP, export(2));
	TEST_ASSERT_EQUAL_INT(-ENOTSUP, unexport(1));
}

static void requests_that_are_not_possible(void)
{
	for (enum point point = OPENED; point < POINTS; point++) {
		int possible = point == READY || point == EXPORTED || point == STARTED;

		reach(point);
		TEST_ASSERT_EQUAL_INT(possible ? -ENOENT : -EBUSY, unexport(2));
		fc.rh->client_abort(client);
		TEST_ASSERT_EQUAL_INT(-ENOTCONN, unexport(1));
		TEST_ASSERT_EQUAL_INT(-ENOTCONN, export(1));
		again();
	}
}

static void answer_that_refuses_ends_the_session(void)
{
	const struct gn_verdict no = {.status = GANTRY_S_INVALID, .text = "which one?"};

	reach(STARTED);
	TEST_ASSERT_EQUAL_INT(0, unexport(1));
	asked(GN_FRAME_UNEXPORT);
	say(GN_FRAME_UNEXPORT, p.head.id, FAKE_SESSION, &no, NULL, 0);
	closed(-EINVAL);
	TEST_ASSERT_NOT_NULL(strstr(close_text, "refused at unexport: which one?"));
}

static void server_that_does_not_answer(void)
{
	reach(STARTED);
	TEST_ASSERT_EQUAL_INT(0, unexport(1));
	asked(GN_FRAME_UNEXPORT);
	for (unsigned i = 0; i < 7; i++) {
		say(GN_FRAME_PING, GN_PING, FAKE_SESSION, NULL, NULL, 0);
		fake_core_pass(&fc, GN_NS_PER_S, GN_NS_PER_S);
	}
	closed(-ETIMEDOUT);
	TEST_ASSERT_NOT_NULL(strstr(close_text, "no answer to unexport"));
}

/* -- changes of the volume -- */

static void say_size(uint64_t size)
{
	const struct gn_volume_change change = {.size = size};

	say(GN_FRAME_VOLUME, 0, FAKE_SESSION, NULL, &change, sizeof(change));
}

static void size_of_the_volume_changes(void)
{
	reach(STARTED);
	say_size(2 << 20);
	TEST_ASSERT_EQUAL_UINT64(2 << 20, resized);
	say_size(512);
	TEST_ASSERT_EQUAL_UINT64(512, resized);
	TEST_ASSERT_EQUAL_INT(0, submit());
	finish_close();
}

static void impossible_size_ends_the_session(void)
{
	static const uint64_t sizes[] = {0, 1, 513, UINT64_MAX};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		reach(STARTED);
		say_size(sizes[i]);
		closed(-EPROTO);
		TEST_ASSERT_EQUAL_UINT64(0, resized);
		TEST_ASSERT_NOT_NULL(
			strstr(close_text, "impossible change of the volume: its size"));
		tearDown();
		setUp();
	}
}

static void size_without_the_feature_or_before_the_start_ends_the_session(void)
{
	reach(EXPORTED);
	say_size(2 << 20);
	closed(-EPROTO);
	TEST_ASSERT_NOT_NULL(strstr(close_text, "unexpected volume"));
	tearDown();
	setUp();
	features = 0;
	reach(STARTED);
	say_size(2 << 20);
	closed(-EPROTO);
	TEST_ASSERT_NOT_NULL(strstr(close_text, "unexpected volume"));
}

/* Start a session with that server; returns what client_writer returns after the loss. */
static int lose_server(pid_t pid, uint64_t answered, int rc, int32_t *pid_p)
{
	int writer;

	again();
	fc.ft.peer.pid = pid;
	features = answered;
	reach(STARTED);
	TEST_ASSERT_EQUAL_INT(-ENOENT,
			      pid == getpid() ? fc.rh->client_writer(client, pid_p) : -ENOENT);
	fake_revoked(conn, 1, rc);
	fake_close(conn, -ENOTCONN);
	closed(-ENOTCONN);
	writer = fc.rh->client_writer(client, pid_p);
	TEST_ASSERT_EQUAL_INT32(pid == getpid() ? 0 : pid > 0 ? pid : -1, *pid_p);
	return writer;
}

/* The process that served a lost session can write to its memory, unless it is aloof. */
static void process_that_can_write_after_the_loss_is_known(void)
{
	struct pollfd writer = {.events = POLLIN};
	int32_t pid = 0;
	pid_t child = fork();

	if (child == 0)
		for (;;)
			pause();
	fc.ft.caps |= GANTRY_CAP_MAPPED;
	reach(OPENED);
	writer.fd = lose_server(child, 0, -ETIMEDOUT, &pid);
	TEST_ASSERT_GREATER_OR_EQUAL_INT(0, writer.fd);
	TEST_ASSERT_EQUAL_INT32(child, pid);
	TEST_ASSERT_EQUAL_INT(0, poll(&writer, 1, 0));
	TEST_ASSERT_EQUAL_INT(-ENOENT, lose_server(child, GN_FEATURE_NO_CPU, -ETIMEDOUT, &pid));
	TEST_ASSERT_EQUAL_INT(-ENOENT, lose_server(child, 0, 0, &pid)); /* its end was seen */
	TEST_ASSERT_EQUAL_INT(-ENOENT, lose_server(getpid(), 0, -ETIMEDOUT, &pid));
	/* not visible: the end of its connection is taken for its end */
	TEST_ASSERT_EQUAL_INT(-ENOENT, lose_server(0, 0, -ETIMEDOUT, &pid));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	TEST_ASSERT_EQUAL_INT(1, poll(&writer, 1, 0));
	close(writer.fd);
}

/* Let the server, another process, end the session, and then its connection. */
static int end_by_server(int rc)
{
	static const struct gn_verdict none = {.status = 0};
	int32_t pid;

	again();
	fc.ft.caps |= GANTRY_CAP_MAPPED;
	fc.ft.peer.pid = getppid();
	features = 0;
	reach(STARTED);
	say(GN_FRAME_END, 0, FAKE_SESSION, &none, NULL, 0);
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_UINT(0, n_closed);
	fake_revoked(conn, 1, rc);
	fake_close(conn, -ENOTCONN);
	closed(-ECONNRESET);
	return fc.rh->client_writer(client, &pid);
}

/* A server that ends the session drains it, and closes the connection when it has unmapped. */
static void closed_follows_when_the_server_that_ended_the_session_has_unmapped(void)
{
	int writer;

	reach(OPENED);
	TEST_ASSERT_EQUAL_INT(-ENOENT, end_by_server(0));
	writer = end_by_server(-ETIMEDOUT);
	TEST_ASSERT_GREATER_OR_EQUAL_INT(0, writer);
	close(writer);
}

/* A session that has not started has submitted no IO: its server has nothing to write. */
static void server_of_a_session_that_did_not_start_does_not_write(void)
{
	static const struct gn_verdict none = {.status = 0};
	int32_t pid;

	fc.ft.caps |= GANTRY_CAP_MAPPED;
	fc.ft.peer.pid = getppid();
	features = 0;
	reach(QUEUED);
	say(GN_FRAME_END, 0, FAKE_SESSION, &none, NULL, 0);
	closed(-ECONNRESET);
	TEST_ASSERT_EQUAL_INT(-ENOENT, fc.rh->client_writer(client, &pid));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(region_is_exported_and_unexported_while_the_session_runs);
	RUN_TEST(region_is_unexported_before_the_session_runs);
	RUN_TEST(peer_that_keeps_the_region_for_a_while);
	RUN_TEST(peer_that_does_not_release_the_region_loses_the_session);
	RUN_TEST(close_during_a_revocation);
	RUN_TEST(close_before_the_answer);
	RUN_TEST(server_that_does_not_know_unexport);
	RUN_TEST(requests_that_are_not_possible);
	RUN_TEST(answer_that_refuses_ends_the_session);
	RUN_TEST(server_that_does_not_answer);
	RUN_TEST(size_of_the_volume_changes);
	RUN_TEST(impossible_size_ends_the_session);
	RUN_TEST(size_without_the_feature_or_before_the_start_ends_the_session);
	RUN_TEST(process_that_can_write_after_the_loss_is_known);
	RUN_TEST(closed_follows_when_the_server_that_ended_the_session_has_unmapped);
	RUN_TEST(server_of_a_session_that_did_not_start_does_not_write);
	return UNITY_END();
}
