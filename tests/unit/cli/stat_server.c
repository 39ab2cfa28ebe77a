/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client that requests the report of a process gets the whole report, even if it reads slowly.
 * The control loop never blocks on a client.
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
#include "cli/stat_server.h"
#include "fake/worker.h"
#include "unity.h"

#define ENTRIES 1536 /* of a report, with LONG bytes each: more than a socket buffer holds */
#define LONG 8192

static struct gn_loop *loop;
static struct gn_stat_server *server;
static char dir[] = "/tmp/gantry-stat-XXXXXX";
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static unsigned n_reports;

static json_t *report(void *arg, struct gn_report *r)
{
	static char word[LONG + 1];

	(void)arg;
	n_reports++;
	memset(word, 'x', LONG);
	gn_report_init(r);
	r->w.array(&r->w, "list");
	for (unsigned i = 0; i < ENTRIES; i++)
		r->w.string(&r->w, NULL, word);
	r->w.end(&r->w);
	return gn_report_tree(r);
}

void setUp(void)
{
	fake_clock_start();
	n_reports = 0;
	strcpy(dir + sizeof(dir) - 7, "XXXXXX");
	TEST_ASSERT_NOT_NULL(mkdtemp(dir));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/%d" GN_STAT_SUFFIX, dir,
		 (int)getpid());
	loop = gn_loop_create();
	TEST_ASSERT_NOT_NULL(loop);
	TEST_ASSERT_EQUAL_INT(0, gn_stat_server_open(loop, dir, report, NULL, &server));
}

void tearDown(void)
{
	gn_stat_server_close(&server);
	gn_loop_destroy(&loop);
	rmdir(dir);
	fake_clock_stop();
}

static int ask(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	TEST_ASSERT_EQUAL_INT(0, connect(fd, (const struct sockaddr *)&address, sizeof(address)));
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

static void reports_in_progress_are_limited_to_eight(void)
{
	int fds[12];
	unsigned n_held = 0;

	for (unsigned i = 0; i < 12; i++)
		fds[i] = ask();
	for (unsigned i = 0; i < 12; i++) {
		size_t n = 0;

		n_held += take(fds[i], &n) == EAGAIN;
	}
	TEST_ASSERT_EQUAL_UINT(8, n_held);
	gn_stat_server_close(&server); /* while reports are in progress */
	for (unsigned i = 0; i < 12; i++) {
		size_t n = 0;

		TEST_ASSERT_EQUAL_INT(0, take(fds[i], &n));
		close(fds[i]);
	}
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
 * client. A slow client must not keep that descriptor, because the server needs it for the next
 * one.
 */
static void slow_client_does_not_keep_the_reserve_descriptor(void)
{
	struct rlimit before, none;
	int slow, next = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	size_t n = 0;

	getrlimit(RLIMIT_NOFILE, &before);
	slow = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	none = (struct rlimit){.rlim_cur = (rlim_t)slow + 1, .rlim_max = before.rlim_max};
	setrlimit(RLIMIT_NOFILE, &none);
	TEST_ASSERT_EQUAL_INT(0, connect(slow, (const struct sockaddr *)&address, sizeof(address)));
	gn_loop_turn(loop, 0);
	TEST_ASSERT_EQUAL_INT(0, connect(next, (const struct sockaddr *)&address, sizeof(address)));
	gn_loop_turn(loop, 0);
	setrlimit(RLIMIT_NOFILE, &before);
	TEST_ASSERT_EQUAL_UINT(2, n_reports);
	TEST_ASSERT_EQUAL_INT(0, take(slow, &n));
	TEST_ASSERT_EQUAL_INT(0, take(next, &n));
	close(slow);
	close(next);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(report_larger_than_a_socket_buffer_arrives_complete);
	RUN_TEST(client_that_does_not_read_is_disconnected);
	RUN_TEST(reports_in_progress_are_limited_to_eight);
	RUN_TEST(client_that_has_closed_is_removed);
	RUN_TEST(slow_client_does_not_keep_the_reserve_descriptor);
	return UNITY_END();
}
