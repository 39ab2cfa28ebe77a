/* SPDX-License-Identifier: BSD-3-Clause */
/* The transports of functions (devices), and the service thread that runs them. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/device_list.h"
#include "device/gd_device.h"
#include "run_dir.h"
#include "device/service_thread.h"
#include "unity.h"

#define DEADLINE_S 10

static struct doca_devinfo *const *infos;
static uint32_t n_infos;

/* Events that any thread has reported, one bit each. */
enum { ACCEPTED = 1, CONNECTED = 2, MESSAGE = 4, CLOSED = 8, TIMED = 16, READABLE = 32 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned seen;
static int reason;
static char text[32];

static void note(unsigned what)
{
	pthread_mutex_lock(&lock);
	seen |= what;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static bool wait_for(unsigned what)
{
	struct timespec until;
	bool there;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += DEADLINE_S;
	pthread_mutex_lock(&lock);
	while ((seen & what) != what && pthread_cond_timedwait(&changed, &lock, &until) == 0)
		;
	there = (seen & what) == what;
	seen &= ~what;
	pthread_mutex_unlock(&lock);
	return there;
}

void setUp(void)
{
	seen = 0;
	reason = 0;
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, gd_devices(&infos, &n_infos));
}

static int on_accept(void *arg, void *conn, const struct gantry_peer *peer, void **conn_arg_p)
{
	(void)conn;
	(void)peer;
	*conn_arg_p = arg;
	*(void **)arg = conn;
	note(ACCEPTED);
	return 0;
}

static void on_connected(void *arg, void *conn, const struct gantry_peer *peer)
{
	(void)arg;
	(void)conn;
	(void)peer;
	note(CONNECTED);
}

static void on_message(void *arg, void *conn, const void *msg, size_t len)
{
	(void)arg;
	(void)conn;
	snprintf(text, sizeof(text), "%.*s", (int)len, (const char *)msg);
	note(MESSAGE);
}

static void on_consumer(void *arg, void *conn, uint32_t id, int up)
{
	(void)arg;
	(void)conn;
	(void)id;
	(void)up;
}

static void on_revoke(void *arg, void *conn, uint32_t handle)
{
	on_consumer(arg, conn, handle, 0);
}

static void on_revoked(void *arg, void *conn, uint32_t handle, int rc)
{
	on_consumer(arg, conn, handle, rc);
}

static void on_closed(void *arg, void *conn, int why)
{
	(void)arg;
	(void)conn;
	reason = why;
	note(CLOSED);
}

static const struct gantry_conn_events events = {
	.accept = on_accept,
	.connected = on_connected,
	.message = on_message,
	.consumer = on_consumer,
	.revoke = on_revoke,
	.revoked = on_revoked,
	.closed = on_closed,
};

static struct gd_transport *transport_of(struct doca_devinfo *info)
{
	struct gd_transport *t = NULL;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, gd_transport_get(info, &t));
	return t;
}

static void *server_conn, *client_conn, *listener;

static int try_listen(struct gd_transport *t, const char *pci, const char *name)
{
	const struct gantry_transport_ops *ops;
	char service[64];
	void *device;
	int rc;

	gd_service_name(service, pci, name);
	ops = gd_transport_lock(t, &device);
	rc = ops->listen(device, service, &events, &server_conn, &listener);
	gd_transport_unlock(t);
	return rc;
}

static int try_connect(struct gd_transport *t, const char *pci, const char *name)
{
	const struct gantry_transport_ops *ops;
	char service[64];
	void *device;
	int rc;

	gd_service_name(service, pci, name);
	ops = gd_transport_lock(t, &device);
	rc = ops->connect(device, service, &events, NULL, &client_conn);
	gd_transport_unlock(t);
	return rc;
}

static void disconnect(struct gd_transport *t, void *conn)
{
	gd_transport_lock(t, NULL)->disconnect(conn);
	gd_transport_unlock(t);
}

static void unlisten(struct gd_transport *t)
{
	gd_transport_lock(t, NULL)->unlisten(listener);
	gd_transport_unlock(t);
}

/* only the service thread makes progress */
static void two_functions_of_the_card_meet(void)
{
	struct gd_transport *dpu = transport_of(infos[0]), *host = transport_of(infos[1]);
	struct gantry_device_info about;

	TEST_ASSERT_EQUAL_INT(0, try_listen(dpu, infos[0]->reps[0].pci, "some server"));
	TEST_ASSERT_EQUAL_INT(0, try_connect(host, infos[1]->pci, "some server"));
	TEST_ASSERT_TRUE(wait_for(ACCEPTED | CONNECTED));
	gd_transport_lock(host, NULL)->send_ctrl(client_conn, "hello", 5);
	gd_transport_unlock(host);
	TEST_ASSERT_TRUE(wait_for(MESSAGE));
	TEST_ASSERT_EQUAL_STRING("hello", text);
	disconnect(host, client_conn);
	TEST_ASSERT_TRUE(wait_for(CLOSED));
	disconnect(dpu, server_conn);
	unlisten(dpu);
	TEST_ASSERT_EQUAL_PTR(dpu, transport_of(infos[0]));
	gd_transport_info(dpu, &about);
	TEST_ASSERT_TRUE((about.caps & GANTRY_CAP_RMA) != 0 &&
			 gd_transport_ops(dpu) == gd_transport_ops(host));
}

static int no_fd(void *device)
{
	(void)device;
	return -1;
}

static uint64_t in_a_millisecond(void *device)
{
	(void)device;
	return gn_now_ns() + GN_NS_PER_MS;
}

/* The service thread progresses a transport without fd at the times of its wake_ns. */
static void a_transport_without_fd_is_progressed_by_its_timer(void)
{
	static struct gantry_transport_ops ops;
	static struct gn_plugin plugin;
	static struct gd_wire wire;
	static struct doca_devinfo info;
	struct gd_transport *dpu;

	transport_of(infos[0]); /* loads the plugin */
	wire = *infos[0]->local;
	wire.open = NULL;
	plugin = *wire.loaded;
	ops = *(const struct gantry_transport_ops *)plugin.ops;
	ops.fd = no_fd;
	ops.wake_ns = in_a_millisecond;
	plugin.ops = &ops;
	wire.loaded = &plugin;
	info = *infos[0];
	info.local = &wire;
	dpu = transport_of(&info);
	TEST_ASSERT_EQUAL_INT(0, try_listen(dpu, info.reps[0].pci, "timed server"));
	TEST_ASSERT_EQUAL_INT(0,
			      try_connect(transport_of(infos[1]), infos[1]->pci, "timed server"));
	TEST_ASSERT_TRUE(wait_for(ACCEPTED | CONNECTED));
	disconnect(transport_of(infos[1]), client_conn);
	TEST_ASSERT_TRUE(wait_for(CLOSED));
	disconnect(dpu, server_conn);
	unlisten(dpu);
}

/* a client reaches a server only from the function that its representor represents */
static void client_of_another_function_finds_no_server(void)
{
	struct gd_transport *dpu = transport_of(infos[0]);

	TEST_ASSERT_EQUAL_INT(0, try_listen(dpu, infos[0]->reps[0].pci, "some server"));
	TEST_ASSERT_EQUAL_INT(0, try_connect(dpu, infos[0]->pci, "some server"));
	TEST_ASSERT_TRUE(wait_for(CLOSED));
	TEST_ASSERT_EQUAL_INT(-ECONNREFUSED, reason);
	disconnect(dpu, client_conn);
	TEST_ASSERT_EQUAL_INT(0, try_connect(dpu, infos[1]->pci, "some serveR"));
	TEST_ASSERT_TRUE(wait_for(CLOSED));
	disconnect(dpu, client_conn);
	unlisten(dpu);
}

static void names_of_services_differ_and_fit(void)
{
	char a[64], b[64], name[400];

	gd_service_name(a, "0000:b1:00.0", "x");
	gd_service_name(b, "0000:b1:00.1", "x");
	TEST_ASSERT_TRUE(strcmp(a, b) != 0);
	gd_service_name(b, "0000:b1:00.0", "x ");
	TEST_ASSERT_TRUE(strcmp(a, b) != 0);
	memset(name, '/', sizeof(name));
	name[399] = '\0';
	gd_service_name(b, "0000:b1:00.0", name);
	TEST_ASSERT_TRUE(strlen(b) < 63 && !strchr(b, '/'));
}

static void on_time(void *arg)
{
	sigset_t blocked;

	/* the service thread must not receive signals of the program */
	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	*(bool *)arg = sigismember(&blocked, SIGINT) && sigismember(&blocked, SIGUSR1) &&
		       sigismember(&blocked, SIGCHLD);
	note(TIMED);
}

static bool blocked;
static struct gn_timer timer = {.fn = on_time, .arg = &blocked};

static void a_timer_runs_at_its_time_with_all_signals_blocked(void)
{
	uint64_t until_ns = gn_now_ns() + 20 * GN_NS_PER_MS;

	gd_service_set_timer(&timer, until_ns);
	TEST_ASSERT_TRUE(wait_for(TIMED));
	TEST_ASSERT_TRUE(gn_now_ns() >= until_ns);
	TEST_ASSERT_TRUE(blocked);
}

static int pipe_fds[2];
static unsigned n_runs;

static void on_readable(void *arg)
{
	char byte;

	if (!arg && read(pipe_fds[0], &byte, 1) == 1)
		__atomic_fetch_add(&n_runs, 1, __ATOMIC_RELAXED);
	note(READABLE);
}

static void fd_is_served_until_it_is_removed(void)
{
	for (int i = 0; i < 200; i++) {
		TEST_ASSERT_EQUAL_INT(0, pipe(pipe_fds));
		n_runs = seen = 0; /* no callback runs any more */
		TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
				      gd_service_add_fd(pipe_fds[0], on_readable, NULL));
		TEST_ASSERT_EQUAL_INT(2, write(pipe_fds[1], "ab", 2));
		TEST_ASSERT_TRUE(wait_for(READABLE));
		gd_service_remove_fd(pipe_fds[0]);
		/* the callback runs no more, so its descriptors can be closed */
		close(pipe_fds[0]);
		close(pipe_fds[1]);
		TEST_ASSERT_TRUE(n_runs >= 1 && n_runs <= 2);
	}
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_OPERATING_SYSTEM,
			      gd_service_add_fd(-1, on_readable, NULL));
	gd_service_remove_fd(12345);
}

static int in_child(void)
{
	struct gd_transport *dpu = transport_of(infos[0]), *host = transport_of(infos[1]);

	gd_service_set_timer(&timer, 1);
	if (!wait_for(TIMED))
		return 1;
	if (try_listen(dpu, infos[1]->pci, "in the child") != 0 ||
	    try_connect(host, infos[1]->pci, "in the child") != 0)
		return 2;
	return wait_for(ACCEPTED | CONNECTED) ? 0 : 3;
}

static void fork_and_use_it(void)
{
	struct gd_transport *before = transport_of(infos[0]);
	const struct gantry_transport_ops *ops;
	int status = -1;
	void *device;
	pid_t pid;

	/* hold the lock in a thread that the forked child does not have */
	ops = gd_transport_lock(before, &device);
	pid = fork();
	if (pid == 0) {
		gd_transport_lock(before, &device);
		if (ops->listen(device, "x", &events, NULL, &listener) == 0)
			_exit(4);
		gd_transport_unlock(before);
		exit(in_child());
	}
	gd_transport_unlock(before);
	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
	TEST_ASSERT_TRUE(WIFEXITED(status));
	TEST_ASSERT_EQUAL_INT(0, WEXITSTATUS(status));
	two_functions_of_the_card_meet();
}

#if defined(__has_feature)
#define UNDER_TSAN __has_feature(thread_sanitizer)
#else
#define UNDER_TSAN 0
#endif

/* the parent uses the library too, and continues to use it */
static void a_forked_child_can_use_the_library(void)
{
	if (UNDER_TSAN)
		TEST_IGNORE_MESSAGE(
			"the thread sanitizer lets no child of a process with threads start one");
	else
		fork_and_use_it();
}

static void run_directory_is_the_one_of_the_environment(void)
{
	char path[80];

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, gd_run_dir(path));
	TEST_ASSERT_EQUAL_STRING(run_dir, path);
	setenv("GANTRY_RUNDIR", "/proc/nowhere", 1);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_OPERATING_SYSTEM, gd_run_dir(path));
	setenv("GANTRY_RUNDIR", run_dir, 1);
}

int main(void)
{
	int rc;

	setenv("GANTRY_PLUGIN_PATH", TEST_PLUGINDIR, 1);
	make_run_dir();
	UNITY_BEGIN();
	RUN_TEST(run_directory_is_the_one_of_the_environment);
	RUN_TEST(names_of_services_differ_and_fit);
	RUN_TEST(two_functions_of_the_card_meet);
	RUN_TEST(a_transport_without_fd_is_progressed_by_its_timer);
	RUN_TEST(client_of_another_function_finds_no_server);
	RUN_TEST(a_timer_runs_at_its_time_with_all_signals_blocked);
	RUN_TEST(fd_is_served_until_it_is_removed);
	RUN_TEST(a_forked_child_can_use_the_library);
	rc = UNITY_END();
	remove_run_dir();
	return rc;
}
