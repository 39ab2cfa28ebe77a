/* SPDX-License-Identifier: BSD-3-Clause */
/* death_names.c - shm-comch: names of servers that died, and peers of other users. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "conform/forked.h"

static void part_listens(void)
{
	forked_open(NULL);
	rig_listen("vol");
}

static void name_of_a_killed_server_can_be_reused(void)
{
	struct gantry_conn_events none = {0};
	void *l;

	fork_peer(part_listens);
	wait_ready();
	TEST_ASSERT_EQUAL_INT(-EADDRINUSE, rig.ops->listen(rig.b.dev, "vol", &none, NULL, &l));
	reap(SIGKILL);
	rig_start_connect("vol"); /* the socket of the dead server still exists */
	rig_until(rig.a.n_closed, 1);
	TEST_ASSERT_EQUAL_INT(-ECONNREFUSED, rig.a.reason);
	rig_disconnect(&rig.a);
	rig_connect();
}

/* Returns the number of files: a socket and a lock for each name. */
static int files(void)
{
	DIR *dir = opendir(rig.info.detail);
	struct dirent *entry;
	int n = 0;

	while ((entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n;
}

static void kill_a_server(void)
{
	fork_peer(part_listens);
	wait_ready();
	reap(SIGKILL);
	TEST_ASSERT_EQUAL_INT(2, files());
}

static void connecting_client_removes_files_of_a_killed_server(void)
{
	kill_a_server();
	rig_start_connect("vol");
	rig_until(rig.a.n_closed, 1);
	TEST_ASSERT_EQUAL_INT(-ECONNREFUSED, rig.a.reason);
	TEST_ASSERT_EQUAL_INT(0, files());
}

static void opening_a_device_removes_files_of_a_killed_server(void)
{
	kill_a_server();
	rig_listen("other");
	rig.ops->close(rig.a.dev);
	free(rig.a.conf);
	rig_open_end(&rig.a, NULL);
	TEST_ASSERT_EQUAL_INT(2, files()); /* the files of the live server remain */
	rig_start_connect("other");
	rig_until(rig.a.n_connected, 1);
}

static void reopen_a(void)
{
	rig.ops->close(rig.a.dev);
	free(rig.a.conf);
	rig_open_end(&rig.a, NULL);
}

/* Returns the path of a file of the runtime directory. */
static const char *path_of(const char *name)
{
	static char path[sizeof(rig.info.detail) + 32];

	snprintf(path, sizeof(path), "%s/%s", rig.info.detail, name);
	return path;
}

/* Open a file of the runtime directory, and create it if it does not exist. */
static int open_name(const char *name)
{
	int fd = open(path_of(name), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	TEST_ASSERT_TRUE(fd >= 0);
	return fd;
}

/*
 * A server that is killed while it has a lock file and no socket yet, or no socket any more, leaves
 * the lock file.
 */
static void lock_without_a_socket_is_removed(void)
{
	close(open_name("vol.lock"));
	reopen_a();
	TEST_ASSERT_EQUAL_INT(0, files());
}

/* A starting server holds its lock before it has its socket. */
static void lock_that_is_held_stays(void)
{
	int fd = open_name("vol.lock");

	TEST_ASSERT_EQUAL_INT(0, flock(fd, LOCK_EX | LOCK_NB));
	reopen_a();
	TEST_ASSERT_EQUAL_INT(1, files());
	close(fd);
	reopen_a();
	TEST_ASSERT_EQUAL_INT(0, files());
}

/* A starting server has its lock and its socket before it listens. */
static void server_that_does_not_listen_yet_refuses(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int lock = open_name("vol.lock"), fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	TEST_ASSERT_EQUAL_INT(0, flock(lock, LOCK_EX | LOCK_NB));
	snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", path_of("vol.sock"));
	TEST_ASSERT_EQUAL_INT(0, bind(fd, (struct sockaddr *)&address, sizeof(address)));
	rig_start_connect("vol");
	rig_until(rig.a.n_closed, 1);
	TEST_ASSERT_EQUAL_INT(-ECONNREFUSED, rig.a.reason);
	rig_disconnect(&rig.a);
	TEST_ASSERT_EQUAL_INT(2, files());
	close(fd);
	close(lock);
	reopen_a();
	TEST_ASSERT_EQUAL_INT(0, files());
}

/* Only files whose names a server can have made are removed. */
static void file_that_is_no_lock_stays(void)
{
	close(open_name("vol.locks"));
	close(open_name(".lock"));
	reopen_a();
	TEST_ASSERT_EQUAL_INT(1, files()); /* files() does not count .lock */
	TEST_ASSERT_EQUAL_INT(0, unlinkat(AT_FDCWD, path_of("vol.locks"), 0));
	TEST_ASSERT_EQUAL_INT(0, unlinkat(AT_FDCWD, path_of(".lock"), 0));
}

static void part_serves(void)
{
	forked_open(NULL);
	rig_listen("vol");
	if (write(forked.to_parent[1], "l", 1) != 1)
		_exit(1);
	rig_until(rig.b.n_accept, 1);
}

static void connect_to_a_server(int nth)
{
	char c;

	fork_peer(part_serves);
	TEST_ASSERT_EQUAL_INT(1, read(forked.to_parent[0], &c, 1));
	rig_start_connect("vol");
	rig_until(rig.a.n_connected, nth);
	wait_ready();
	TEST_ASSERT_EQUAL_INT(2, files());
}

static void connected_client_removes_files_of_a_killed_server(void)
{
	for (int i = 0; i < 2; i++) {
		rig.a.disconnect_on_close = i;
		connect_to_a_server(i + 1);
		reap(SIGKILL);
		rig_until(rig.a.n_closed, i + 1);
		TEST_ASSERT_EQUAL_INT(-ENOTCONN, rig.a.reason);
		TEST_ASSERT_EQUAL_INT(0, files());
		rig_disconnect(&rig.a);
	}
}

static void disconnecting_client_removes_files_of_a_killed_server(void)
{
	connect_to_a_server(1);
	reap(SIGKILL);
	rig_disconnect(&rig.a); /* before end a has detected the death of the server */
	TEST_ASSERT_EQUAL_INT(0, files());
}

static void part_clears(void)
{
	struct gantry_conn_events none = {0};

	forked_open(NULL);
	if (write(forked.to_parent[1], "r", 1) != 1)
		_exit(1);
	for (;;) { /* until the parent kills this process */
		void *conn;

		if (rig.ops->connect(rig.a.dev, "vol", &none, NULL, &conn) == 0)
			rig.ops->disconnect(conn);
	}
}

static void part_sweeps(void)
{
	forked_open(NULL);
	if (write(forked.to_parent[1], "r", 1) != 1)
		_exit(1);
	for (;;) /* until the parent kills this process */
		reopen_a();
}

/*
 * A peer removes stale files again and again while a server starts and stops: the server gets its
 * name each time.
 */
static void serve_beside(void (*part)(void))
{
	fork_peer(part);
	wait_ready();
	for (int i = 0; i < 200; i++) {
		rig_listen("vol");
		rig.ops->unlisten(rig.b.listener);
		rig.b.listener = NULL;
	}
	reap(SIGKILL);
	rig_settle();
}

static void repeated_connects_do_not_disturb_a_starting_server(void)
{
	serve_beside(part_clears);
}

static void repeated_device_opens_do_not_disturb_a_starting_server(void)
{
	serve_beside(part_sweeps);
}

static void part_as_other_user(void)
{
	if (setgid(65534) || setuid(65534))
		_exit(1);
	forked_begin("uids=0");
}

static void part_as_other_user_refused(void)
{
	if (setgid(65534) || setuid(65534))
		_exit(1);
	rig_open_end(&rig.a, "uids=0");
	rig.b.dev = rig.a.dev;
	rig_start_connect("vol");
	rig_until(rig.a.n_closed, 1);
	if (rig.a.n_connected || (rig.a.reason != -EACCES && rig.a.reason != -ECONNREFUSED))
		_exit(1);
}

static void as_other_user(void (*part)(void), const char *uids)
{
	if (getuid() != 0)
		TEST_IGNORE_MESSAGE("needs root");
	rig.ops->close(rig.b.dev);
	free(rig.b.conf);
	rig_open_end(&rig.b, uids);
	chmod(rig_driver.setting[0] + 4, 0711);
	chmod(rig.info.detail, 0711);
	rig_listen("vol");
	fork_peer(part);
}

static void listed_user_is_accepted(void)
{
	as_other_user(part_as_other_user, "uids=65534");
	accept_peer();
	TEST_ASSERT_EQUAL_UINT(65534, rig.b.peer.uid);
	wait_ready();
	reap(SIGKILL);
	rig_until(rig.b.n_closed, 1);
}

static void unlisted_user_is_rejected(void)
{
	as_other_user(part_as_other_user_refused, "uids=65533");
	wait_ready();
	reap(SIGKILL);
	rig_settle();
	TEST_ASSERT_EQUAL_INT(0, rig.b.n_accept);
	TEST_ASSERT_TRUE(fake_logged(&rig.b.host, "65534"));
}

void name_cases(void)
{
	RUN_TEST(name_of_a_killed_server_can_be_reused);
	RUN_TEST(connecting_client_removes_files_of_a_killed_server);
	RUN_TEST(opening_a_device_removes_files_of_a_killed_server);
	RUN_TEST(lock_without_a_socket_is_removed);
	RUN_TEST(lock_that_is_held_stays);
	RUN_TEST(server_that_does_not_listen_yet_refuses);
	RUN_TEST(file_that_is_no_lock_stays);
	RUN_TEST(connected_client_removes_files_of_a_killed_server);
	RUN_TEST(disconnecting_client_removes_files_of_a_killed_server);
	RUN_TEST(repeated_connects_do_not_disturb_a_starting_server);
	RUN_TEST(repeated_device_opens_do_not_disturb_a_starting_server);
	RUN_TEST(listed_user_is_accepted);
	RUN_TEST(unlisted_user_is_rejected);
}
