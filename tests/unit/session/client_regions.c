/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client end of sessions: regions that are exported and unexported, and a volume whose size
 * changes, while the session runs. The test is the server.
 */
#include <sys/resource.h>

#include <gantry/hold.h>

#include "session/holders.h"
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

/* Start a session whose memory another process maps; returns the descriptor of its report. */
static int start_held(void)
{
	int hold;

	fc.ft.hold_socket = 0;
	reach(STARTED);
	TEST_ASSERT_GREATER_THAN_INT(0, fc.ft.hold_socket);
	TEST_ASSERT_EQUAL_INT(0, gantry_hold(fc.ft.hold_socket, &hold));
	fake_core_turn(&fc);
	return hold;
}

static void lose_and_free(void)
{
	fake_revoked(conn, 1, 0);
	fake_close(conn, -ENOTCONN);
	closed(-ENOTCONN);
	gn_chain_destroy(chain);
	chain = NULL;
	fc.rh->client_free(client);
	client = NULL;
	n_ready = n_closed = 0;
}

/* Close the process's end of a report, and let the client look again. */
static void unmap(int hold)
{
	close(hold);
	fake_core_pass(&fc, 20 * GN_NS_PER_MS, 10 * GN_NS_PER_MS);
}

/*
 * A process that maps the memory of a lost session can still write to it. The next client of that
 * session waits; the client of another session does not.
 */
static void client_waits_until_the_memory_of_its_session_is_unmapped(void)
{
	const struct gantry_session_attr other = {
		.id = FAKE_SESSION + 1, .epoch = 1, .lanes = 2, .depth = DEPTH, .regions = 2};
	struct gantry_client *second;
	int hold = start_held();

	close(fc.ft.hold_socket);
	lose_and_free();
	fc.ft.hold_socket = -1;
	reach(READY);
	TEST_ASSERT_EQUAL_UINT(0, n_ready);
	unmap(hold);
	TEST_ASSERT_EQUAL_UINT(1, n_ready);
	TEST_ASSERT_EQUAL_INT(0, fc.rh->client_open(fc.rh, 0, &other, &events, NULL, &second));
	fc.rh->client_free(second);
}

/* After the end of a client no process can report, so none maps the memory. */
static void late_report_fails(void)
{
	int first = start_held(), late;

	lose_and_free();
	TEST_ASSERT_EQUAL_INT(-EPIPE, gantry_hold(fc.ft.hold_socket, &late));
	TEST_ASSERT_EQUAL_INT(-1, late);
	close(fc.ft.hold_socket);
	close(first);
	fc.ft.hold_socket = -1;
	reach(READY);
	TEST_ASSERT_EQUAL_UINT(1, n_ready);
}

/* Send n descriptors with `bytes` bytes to the socket for reports. */
static void send_fds(const int *fds, unsigned n, size_t bytes)
{
	char byte = 0, control[CMSG_SPACE(8 * sizeof(int))] __attribute__((aligned(8))) = {0};
	struct iovec iov = {&byte, bytes};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = n ? control : NULL,
			     .msg_controllen = n ? CMSG_SPACE(n * sizeof(int)) : 0};
	struct cmsghdr *c = n ? CMSG_FIRSTHDR(&msg) : NULL;

	if (c) {
		*c = (struct cmsghdr){CMSG_LEN(n * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	TEST_ASSERT_EQUAL_INT64((ssize_t)bytes,
				sendmsg(fc.ft.hold_socket, &msg, MSG_DONTWAIT | MSG_NOSIGNAL));
}

static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Messages that gantry_hold() does not send are dropped, and leave no descriptor open. */
static void malformed_reports_are_dropped(void)
{
	int hold = start_held(), behind, ends[2], fds[8], before, n_fds;

	TEST_ASSERT_EQUAL_INT(0, pipe2(ends, O_CLOEXEC));
	for (unsigned i = 0; i < 8; i++)
		fds[i] = ends[0];
	n_fds = count_fds();
	before = fcntl(0, F_DUPFD_CLOEXEC, 3);
	for (unsigned n = 0; n <= 8; n++)
		if (n != 1)
			send_fds(fds, n, 1);
	send_fds(fds, 1, 0);
	send_fds(fds, 0, 0);
	send_fds(&ends[1], 1, 1); /* the write end */
	send_fds(&before, 1, 1);  /* no pipe */
	TEST_ASSERT_EQUAL_INT(0, gantry_hold(fc.ft.hold_socket, &behind));
	close(hold);
	for (unsigned i = 0; i < 20; i++)
		fake_core_turn(&fc);
	close(before);
	TEST_ASSERT_EQUAL_INT(n_fds, count_fds());
	TEST_ASSERT_EQUAL_INT(1, (int)write(ends[1], "x", 1)); /* only the hang-up counts */
	close(ends[0]);
	close(ends[1]);
	lose_and_free();
	close(fc.ft.hold_socket);
	fc.ft.hold_socket = -1;
	reach(READY);
	TEST_ASSERT_EQUAL_UINT(0, n_ready);
	unmap(behind);
	TEST_ASSERT_EQUAL_UINT(1, n_ready);
}

/* A report that cannot be received counts, until it can. */
static void report_waits_for_a_free_descriptor(void)
{
	int hold = start_held(), more, fill[1024];
	unsigned n = 0;
	struct rlimit old, few = {.rlim_cur = 128};

	getrlimit(RLIMIT_NOFILE, &old);
	few.rlim_max = old.rlim_max;
	TEST_ASSERT_EQUAL_INT(0, gantry_hold(fc.ft.hold_socket, &more));
	setrlimit(RLIMIT_NOFILE, &few);
	while (n < 1024 && (fill[n] = dup(0)) >= 0)
		n++;
	fake_core_turn(&fc);
	lose_and_free();
	while (n > 0)
		close(fill[--n]);
	setrlimit(RLIMIT_NOFILE, &old);
	close(fc.ft.hold_socket);
	fc.ft.hold_socket = -1;
	close(hold);
	reach(READY);
	TEST_ASSERT_EQUAL_UINT(0, n_ready);
	unmap(more);
	TEST_ASSERT_EQUAL_UINT(1, n_ready);
}

/* Hundreds of processes count, and beyond that no further process maps the memory. */
static void number_of_holders_is_limited(void)
{
	static int holds[GN_HOLDERS_MOST + 99];
	int first = start_held();
	unsigned n = 0;
	struct rlimit old, many;

	getrlimit(RLIMIT_NOFILE, &old);
	many = old;
	many.rlim_cur = 3ul * GN_HOLDERS_MOST;
	if (old.rlim_max < many.rlim_cur)
		TEST_IGNORE_MESSAGE("the limit of open files is too low");
	setrlimit(RLIMIT_NOFILE, &many);
	for (; n < GN_HOLDERS_MOST + 99; n++) {
		if (gantry_hold(fc.ft.hold_socket, &holds[n]))
			break;
		fake_core_turn(&fc);
	}
	TEST_ASSERT_EQUAL_UINT(GN_HOLDERS_MOST - 1, n);
	close(first);
	lose_and_free();
	close(fc.ft.hold_socket);
	fc.ft.hold_socket = -1;
	while (n > 1)
		close(holds[--n]);
	reach(READY);
	TEST_ASSERT_EQUAL_UINT(0, n_ready);
	unmap(holds[0]);
	TEST_ASSERT_EQUAL_UINT(1, n_ready);
	setrlimit(RLIMIT_NOFILE, &old);
}

/* Without a holder, the end of the connection has revoked the regions; with one it has not. */
static void region_is_released_when_no_process_maps_it(void)
{
	int hold;

	fc.ft.caps |= GANTRY_CAP_DISCONNECT_REVOKES;
	hold = start_held();
	close(hold);
	close(fc.ft.hold_socket);
	fake_close(conn, -ENOTCONN);
	closed(-ENOTCONN);
	TEST_ASSERT_EQUAL_INT(1, fc.rh->client_regions_released(client));
	again();
	fc.ft.caps |= GANTRY_CAP_DISCONNECT_REVOKES;
	hold = start_held();
	close(fc.ft.hold_socket);
	fake_close(conn, -ENOTCONN);
	closed(-ENOTCONN);
	TEST_ASSERT_EQUAL_INT(0, fc.rh->client_regions_released(client));
	close(hold);
}

/* A session can outlive many processes that map its memory: what they leave is freed. */
static void reports_of_processes_that_have_ended_are_forgotten(void)
{
	int hold = start_held();

	for (unsigned i = 0; i < 1000; i++) {
		int next;

		TEST_ASSERT_EQUAL_INT(0, gantry_hold(fc.ft.hold_socket, &next));
		close(hold);
		hold = next;
		fake_core_turn(&fc);
	}
	close(hold);
	close(fc.ft.hold_socket);
	lose_and_free();
	fc.ft.hold_socket = -1;
	reach(READY);
	TEST_ASSERT_EQUAL_UINT(1, n_ready);
}

/* A client that waits can be closed, and ends by itself before the server gives up. */
static void client_that_waits_can_end(void)
{
	int hold = start_held();

	close(fc.ft.hold_socket);
	lose_and_free();
	fc.ft.hold_socket = -1;
	reach(READY);
	fc.rh->client_close(client);
	answer(GN_FRAME_BYE);
	closed(0);
	fc.rh->client_free(client);
	n_closed = 0;
	reach(READY);
	fake_core_pass(&fc, 2 * GN_NS_PER_S, GN_NS_PER_MS * 100);
	TEST_ASSERT_EQUAL_UINT(0, n_ready + n_closed);
	fake_core_pass(&fc, GN_NS_PER_S, GN_NS_PER_MS * 100);
	asked(GN_FRAME_END);
	closed(-EBUSY);
	close(hold);
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
	RUN_TEST(client_waits_until_the_memory_of_its_session_is_unmapped);
	RUN_TEST(late_report_fails);
	RUN_TEST(malformed_reports_are_dropped);
	RUN_TEST(report_waits_for_a_free_descriptor);
	RUN_TEST(number_of_holders_is_limited);
	RUN_TEST(region_is_released_when_no_process_maps_it);
	RUN_TEST(reports_of_processes_that_have_ended_are_forgotten);
	RUN_TEST(client_that_waits_can_end);
	return UNITY_END();
}
