/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gantry run and gantry metrics send READY=1 to a service manager when their servers listen, and
 * STOPPING=1 when they end. If a server of gantry run cannot listen, it sends only STOPPING=1. If
 * the configuration is invalid, it sends neither.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unity.h"

#define PATIENCE 60 /* seconds: limit for the arrival of a message and for the end of a process */

static char dir[] = "/tmp/gantry-cli-notify.XXXXXX";
static char conf[64], path[64], log_file[64];
static int manager = -1;
static pid_t child;

static void manage(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const struct timeval patience = {.tv_sec = PATIENCE};
	size_t length = strlen(name);

	memcpy(address.sun_path, name, length);
	if (name[0] == '@')
		address.sun_path[0] = '\0';
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	TEST_ASSERT_EQUAL_INT(0,
			      bind(manager, (const struct sockaddr *)&address,
				   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)));
	setsockopt(manager, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setenv("NOTIFY_SOCKET", name, 1);
}

void setUp(void)
{
	FILE *f;

	strcpy(dir + sizeof(dir) - 7, "XXXXXX");
	TEST_ASSERT_NOT_NULL(mkdtemp(dir));
	snprintf(conf, sizeof(conf), "%s/conf", dir);
	snprintf(path, sizeof(path), "%s/manager", dir);
	snprintf(log_file, sizeof(log_file), "%s/log", dir);
	f = fopen(conf, "w");
	TEST_ASSERT_NOT_NULL(f);
	fprintf(f,
		"runtime = { stat = false; };\n"
		"devices = { d = { transport = \"loop\"; }; };\n"
		"roles = { store = { role = \"target\"; listen = { device = \"d\"; name = \"v\"; };\n"
		"          backend = { type = \"null\"; size = \"1MiB\"; }; };\n"
		"          load = { role = \"initiator\"; connect = { device = \"d\"; name = \"v\"; };\n"
		"          workload = { pattern = \"randread\"; ops = 10; depth = 4; }; }; };\n");
	TEST_ASSERT_EQUAL_INT(0, fclose(f));
}

static int remove_one(const char *name, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(name);
}

void tearDown(void)
{
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	child = 0;
	if (manager >= 0)
		close(manager);
	manager = -1;
	nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void start(const char *const *argv)
{
	TEST_ASSERT_NOT_NULL(argv[0]);
	child = fork();
	TEST_ASSERT_TRUE(child >= 0);
	if (child == 0) {
		int fd = open(log_file, O_WRONLY | O_CREAT | O_TRUNC, 0600);

		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
		alarm(PATIENCE);
		execv(argv[0], (char *const *)argv);
		_exit(127);
	}
}

/* Run `gantry run`, with --role if role is not NULL. */
static void run(const char *role, const char *set)
{
	const char *argv[10] = {getenv("GANTRY"), "run", "-p", getenv("GANTRY_PLUGINS"), conf};
	int n = 5;

	if (role) {
		argv[n++] = "--role";
		argv[n++] = role;
	}
	if (set) {
		argv[n++] = "--set";
		argv[n++] = set;
	}
	start(argv);
}

static void expect(const char *state)
{
	char text[64];
	ssize_t n = recv(manager, text, sizeof(text) - 1, 0);

	TEST_ASSERT_TRUE_MESSAGE(n >= 0, state);
	text[n] = '\0';
	TEST_ASSERT_EQUAL_STRING(state, text);
}

static void ends_with(int code)
{
	int status;
	pid_t pid = child;

	child = 0;
	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
	TEST_ASSERT_TRUE(WIFEXITED(status));
	TEST_ASSERT_EQUAL_INT(code, WEXITSTATUS(status));
}

static void nothing_more(void)
{
	char c;

	TEST_ASSERT_EQUAL_INT(-1, recv(manager, &c, 1, MSG_DONTWAIT));
	TEST_ASSERT_EQUAL_INT(EAGAIN, errno);
}

static int log_says(const char *what)
{
	static char text[4096];
	FILE *f = fopen(log_file, "r");
	size_t n = fread(text, 1, sizeof(text) - 1, f);

	fclose(f);
	text[n] = '\0';
	return strstr(text, what) != NULL;
}

static void server_is_ready_and_stops(const char *name)
{
	manage(name);
	run("store", NULL);
	expect("READY=1");
	nothing_more();
	kill(child, SIGTERM);
	expect("STOPPING=1");
	ends_with(0);
	nothing_more();
}

static void test_server(void)
{
	server_is_ready_and_stops(path);
}

static void test_abstract_socket(void)
{
	char name[sizeof(dir) + 1];

	snprintf(name, sizeof(name), "@%s", dir + 1);
	server_is_ready_and_stops(name);
}

static void test_status_has_the_addresses_of_listeners(void)
{
	manage(path);
	run("store", "devices.d.services.v=elsewhere");
	expect("READY=1\nSTATUS=listening: store at elsewhere");
	kill(child, SIGTERM);
	expect("STOPPING=1");
	ends_with(0);
}

static void test_workload_that_completes_notifies_ready_and_stopping(void)
{
	manage(path);
	run(NULL, NULL);
	expect("READY=1");
	expect("STOPPING=1");
	ends_with(0);
	nothing_more();
}

static void test_service_that_cannot_start_never_notifies_ready(void)
{
	manage(path);
	run("store", "roles.store.backend.size=0");
	ends_with(2);
	nothing_more();
	run("store", "devices.d.queue_depth=7"); /* the option does not exist */
	ends_with(2);
	nothing_more();
}

static void test_service_whose_name_is_taken_never_notifies_ready(void)
{
	pid_t first;

	setenv("XDG_RUNTIME_DIR", dir, 1);
	manage(path);
	run("store", "devices.d.transport=shm-comch");
	expect("READY=1");
	first = child;
	run("store", "devices.d.transport=shm-comch");
	expect("STOPPING=1");
	ends_with(1);
	child = first;
	kill(child, SIGTERM);
	expect("STOPPING=1");
	ends_with(0);
	nothing_more();
}

#ifdef HAVE_LIBMICROHTTPD
static void test_exporter_of_metrics_is_ready_and_stops(void)
{
	const char *argv[] = {getenv("GANTRY"), "metrics",     "--dir", dir,
			      "--listen",       "127.0.0.1:0", NULL};

	manage(path);
	start(argv);
	expect("READY=1");
	nothing_more();
	kill(child, SIGTERM);
	expect("STOPPING=1");
	ends_with(0);
	nothing_more();
}
#endif

static void test_watchdog_hears_that_the_service_is_alive(void)
{
	manage(path);
	setenv("WATCHDOG_USEC", "20000", 1);
	run("store", NULL);
	expect("READY=1");
	for (int i = 0; i < 3; i++)
		expect("WATCHDOG=1");
	kill(child, SIGTERM);
	ends_with(0);
	unsetenv("WATCHDOG_USEC");
}

/* pid: of WATCHDOG_PID; NULL: it is not set. */
static void watchdog_is_not_for(const char *usec, const char *pid)
{
	setenv("WATCHDOG_USEC", usec, 1);
	if (pid)
		setenv("WATCHDOG_PID", pid, 1);
	run(NULL, NULL);
	expect("READY=1");
	expect("STOPPING=1");
	ends_with(0);
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

static void test_watchdog_of_another_process_hears_nothing(void)
{
	manage(path);
	watchdog_is_not_for("20000", "1");
	watchdog_is_not_for("-1", NULL);
	watchdog_is_not_for("1s", NULL);
	nothing_more();
}

static void works_without(const char *name, const char *why)
{
	setenv("NOTIFY_SOCKET", name, 1);
	run(NULL, NULL);
	ends_with(0);
	TEST_ASSERT_TRUE_MESSAGE(log_says("NOTIFY_SOCKET="), name);
	TEST_ASSERT_TRUE_MESSAGE(log_says(why), name);
}

static void test_service_runs_without_a_service_manager(void)
{
	char longer[512];

	works_without(path, strerror(ENOENT));
	works_without("relative", strerror(EAFNOSUPPORT));
	works_without("", strerror(EAFNOSUPPORT));
	memset(longer, 'x', sizeof(longer) - 1);
	longer[0] = '/';
	longer[sizeof(longer) - 1] = '\0';
	works_without(longer, strerror(ENAMETOOLONG));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_server);
	RUN_TEST(test_abstract_socket);
	RUN_TEST(test_status_has_the_addresses_of_listeners);
	RUN_TEST(test_workload_that_completes_notifies_ready_and_stopping);
	RUN_TEST(test_service_that_cannot_start_never_notifies_ready);
	RUN_TEST(test_service_whose_name_is_taken_never_notifies_ready);
#ifdef HAVE_LIBMICROHTTPD
	RUN_TEST(test_exporter_of_metrics_is_ready_and_stops);
#endif
	RUN_TEST(test_watchdog_hears_that_the_service_is_alive);
	RUN_TEST(test_watchdog_of_another_process_hears_nothing);
	RUN_TEST(test_service_runs_without_a_service_manager);
	return UNITY_END();
}
