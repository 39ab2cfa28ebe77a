/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control socket: a client gets the whole response, even if it reads slowly. The control loop
 * never blocks on a client, and no client keeps others from their turn.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/control_socket.h"
#include "fake/worker.h"
#include "unity.h"

#define ENTRIES 1536 /* of a report, with LONG bytes each: more than a socket buffer holds */
#define LONG 8192

static struct gn_loop *loop;
static struct gn_control *control;
static char dir[] = "/tmp/gantry-control-XXXXXX";
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static unsigned n_reports, n_pings;

static json_t *call_report(void *arg, const json_t *params, struct gn_rpc_error *error)
{
	static char word[LONG + 1];
	json_t *list = json_array();

	(void)arg;
	(void)params;
	(void)error;
	n_reports++;
	memset(word, 'x', LONG);
	for (unsigned i = 0; i < ENTRIES; i++)
		json_array_append_new(list, json_string(word));
	return list;
}

static json_t *call_ping(void *arg, const json_t *params, struct gn_rpc_error *error)
{
	(void)arg;
	(void)params;
	(void)error;
	n_pings++;
	return json_integer(n_pings);
}

static const struct gn_rpc_method methods[] = {
	{"report", "", NULL, "{}", call_report},
	{"ping", "", NULL, "{}", call_ping},
	{NULL, NULL, NULL, NULL, NULL},
};

#define REQUEST(method) "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\"}\n"

void setUp(void)
{
	fake_clock_start();
	n_reports = n_pings = 0;
	strcpy(dir + sizeof(dir) - 7, "XXXXXX");
	TEST_ASSERT_NOT_NULL(mkdtemp(dir));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/%d" GN_CONTROL_SUFFIX, dir,
		 (int)getpid());
	loop = gn_loop_create();
	TEST_ASSERT_NOT_NULL(loop);
	TEST_ASSERT_EQUAL_INT(0, gn_control_open(loop, dir, methods, NULL, &control));
}

void tearDown(void)
{
	gn_control_close(&control);
	gn_loop_destroy(&loop);
	rmdir(dir);
	fake_clock_stop();
}

static int dial(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	TEST_ASSERT_EQUAL_INT(0, connect(fd, (const struct sockaddr *)&address, sizeof(address)));
	return fd;
}

static void say(int fd, const char *text)
{
	TEST_ASSERT_EQUAL_INT64((int64_t)strlen(text), send(fd, text, strlen(text), MSG_NOSIGNAL));
}

/* Request the report, as gantry stat does. */
static int ask(void)
{
	int fd = dial();

	say(fd, REQUEST("report"));
	shutdown(fd, SHUT_WR);
	gn_loop_turn(loop, -1);
	return fd;
}

/* Read until no data is left. Returns EAGAIN, or 0 at the end; adds the number of bytes to *n. */
static int take(int fd, size_t *n)
{
	static char text[65536];
	ssize_t got;

	while ((got = read(fd, text, sizeof(text))) > 0)
		*n += (size_t)got;
	return got < 0 ? errno : 0;
}

static size_t take_all(int fd)
{
	size_t n = 0;

	while (take(fd, &n) == EAGAIN)
		gn_loop_turn(loop, -1);
	close(fd);
	return n;
}

static void report_larger_than_a_socket_buffer_arrives_complete(void)
{
	int one = ask(), two = ask();
	size_t n = take_all(one);

	TEST_ASSERT_GREATER_THAN_UINT64((size_t)ENTRIES * LONG, n);
	TEST_ASSERT_EQUAL_size_t(n, take_all(two)); /* this client has not read meanwhile */
	TEST_ASSERT_EQUAL_UINT(2, n_reports);
	gn_loop_turn(loop, 0);
	TEST_ASSERT_EQUAL_INT(0, gn_loop_turn(loop, 0)); /* no event is left */
}

/* A client that does not read in time is disconnected. */
static void client_that_does_not_read_is_disconnected(void)
{
	int fd = ask();
	size_t n = 0;

	gn_loop_turn(loop, 0);
	TEST_ASSERT_EQUAL_INT(0, gn_loop_turn(loop, 0)); /* no event is pending: the loop sleeps */
	fake_clock_advance(60 * GN_NS_PER_S);
	gn_loop_turn(loop, 0);
	TEST_ASSERT_EQUAL_INT(0, take(fd, &n));
	TEST_ASSERT_LESS_THAN_UINT64((size_t)ENTRIES * LONG, n);
	TEST_ASSERT_GREATER_THAN_UINT64(0, n);
	close(fd);
}

static void too_many_clients_replace_the_oldest(void)
{
	int fds[GN_CONTROL_CLIENTS + 4];
	unsigned n_fds = sizeof(fds) / sizeof(fds[0]), n_held = 0;

	for (unsigned i = 0; i < n_fds; i++) {
		fds[i] = dial();
		gn_loop_turn(loop, -1);
	}
	for (unsigned i = 0; i < n_fds; i++) {
		size_t n = 0;
		bool held = take(fds[i], &n) == EAGAIN;

		n_held += held;
		TEST_ASSERT_EQUAL_INT(i >= 4, held);
	}
	TEST_ASSERT_EQUAL_UINT(GN_CONTROL_CLIENTS, n_held);
	gn_control_close(&control); /* while clients are connected */
	for (unsigned i = 0; i < n_fds; i++) {
		size_t n = 0;

		TEST_ASSERT_EQUAL_INT(0, take(fds[i], &n));
		close(fds[i]);
	}
}

/* After a burst, a flood gets one request per 10 ms, and another client its turn. */
static void requests_are_answered_at_a_limited_rate_and_in_turn(void)
{
	int flood = dial(), other;
	unsigned before;
	size_t n = 0;

	for (unsigned i = 0; i < 200; i++)
		say(flood, REQUEST("ping"));
	for (unsigned i = 0; i < 20; i++)
		gn_loop_turn(loop, 0);
	before = n_pings;
	TEST_ASSERT_LESS_OR_EQUAL_UINT(11, before);
	TEST_ASSERT_GREATER_THAN_UINT(0, before);
	other = dial();
	say(other, REQUEST("report"));
	shutdown(other, SHUT_WR);
	gn_loop_turn(loop, 0);
	TEST_ASSERT_EQUAL_UINT(0, n_reports);
	for (unsigned i = 0; i < 4; i++) {
		fake_clock_advance(GN_NS_PER_S / GN_CONTROL_RATE);
		gn_loop_turn(loop, 0);
	}
	TEST_ASSERT_EQUAL_UINT(1, n_reports);
	TEST_ASSERT_TRUE(n_pings >= before + 2 && n_pings <= before + 4);
	take(other, &n);
	close(other);
	close(flood);
}

/* A request can arrive in pieces, and several requests at once. */
static void requests_are_separated_by_newlines(void)
{
	int fd = dial();
	char text[512] = "";

	say(fd, "\n{\"jsonrpc\":\"2.0\",");
	gn_loop_turn(loop, 0);
	gn_loop_turn(loop, 0);
	TEST_ASSERT_EQUAL_UINT(0, n_pings);
	say(fd, "\"id\":1,\"method\":\"ping\"}\n" REQUEST("ping") "\n\n" REQUEST("none"));
	for (unsigned i = 0; i < 4; i++)
		gn_loop_turn(loop, 0);
	TEST_ASSERT_EQUAL_UINT(2, n_pings);
	TEST_ASSERT_TRUE(read(fd, text, sizeof(text) - 1) > 0);
	TEST_ASSERT_NOT_NULL(strstr(text, "\"result\":1}\n"));
	TEST_ASSERT_NOT_NULL(strstr(text, "\"result\":2}\n"));
	TEST_ASSERT_NOT_NULL(strstr(text, "-32601"));
	close(fd);
}

static void too_long_request_disconnects(void)
{
	static char text[8192];
	size_t sent = 0, n = 0;
	int fd = dial();

	memset(text, 'x', sizeof(text));
	while (sent <= GN_CONTROL_LINE_MAX && send(fd, text, sizeof(text), MSG_NOSIGNAL) > 0) {
		sent += sizeof(text);
		for (unsigned i = 0; i < 4; i++) {
			fake_clock_advance(GN_NS_PER_S / GN_CONTROL_RATE);
			gn_loop_turn(loop, 0);
		}
	}
	TEST_ASSERT_TRUE(take(fd, &n) != EAGAIN);
	TEST_ASSERT_EQUAL_size_t(0, n);
	close(fd);
}

/* A client that never completes its request is disconnected. */
static void silent_client_is_disconnected(void)
{
	int fd = dial();
	size_t n = 0;

	say(fd, "{");
	gn_loop_turn(loop, 0);
	gn_loop_turn(loop, 0);
	TEST_ASSERT_EQUAL_INT(EAGAIN, take(fd, &n));
	fake_clock_advance(GN_CONTROL_TIMEOUT_NS + 1);
	gn_loop_turn(loop, 0);
	TEST_ASSERT_EQUAL_INT(0, take(fd, &n));
	close(fd);
}

static void client_that_has_closed_is_removed(void)
{
	int fd = ask();

	close(fd);
	gn_loop_turn(loop, -1);
	gn_loop_turn(loop, 0);
	TEST_ASSERT_EQUAL_INT(0, gn_loop_turn(loop, 0));
}

/*
 * The process has no free file descriptor. The server closes its reserve descriptor to accept a
 * client. The next client waits until that one has ended, and the loop sleeps meanwhile.
 */
static void without_descriptors_clients_are_served_one_by_one(void)
{
	struct rlimit before, none;
	int slow, next = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	size_t n = 0;

	getrlimit(RLIMIT_NOFILE, &before);
	slow = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	none = (struct rlimit){.rlim_cur = (rlim_t)slow + 1, .rlim_max = before.rlim_max};
	setrlimit(RLIMIT_NOFILE, &none);
	TEST_ASSERT_EQUAL_INT(0, connect(slow, (const struct sockaddr *)&address, sizeof(address)));
	say(slow, REQUEST("report"));
	gn_loop_turn(loop, 0);
	TEST_ASSERT_EQUAL_INT(0, connect(next, (const struct sockaddr *)&address, sizeof(address)));
	say(next, REQUEST("report"));
	TEST_ASSERT_EQUAL_INT(0, gn_loop_turn(loop, 0));
	TEST_ASSERT_EQUAL_UINT(1, n_reports);
	fake_clock_advance(GN_CONTROL_TIMEOUT_NS + 1);
	gn_loop_turn(loop, 0);
	gn_loop_turn(loop, 0);
	TEST_ASSERT_EQUAL_UINT(2, n_reports);
	setrlimit(RLIMIT_NOFILE, &before);
	TEST_ASSERT_EQUAL_INT(0, take(slow, &n));
	TEST_ASSERT_EQUAL_INT(EAGAIN, take(next, &n));
	close(slow);
	close(next);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(report_larger_than_a_socket_buffer_arrives_complete);
	RUN_TEST(client_that_does_not_read_is_disconnected);
	RUN_TEST(too_many_clients_replace_the_oldest);
	RUN_TEST(requests_are_answered_at_a_limited_rate_and_in_turn);
	RUN_TEST(requests_are_separated_by_newlines);
	RUN_TEST(too_long_request_disconnects);
	RUN_TEST(silent_client_is_disconnected);
	RUN_TEST(client_that_has_closed_is_removed);
	RUN_TEST(without_descriptors_clients_are_served_one_by_one);
	return UNITY_END();
}
