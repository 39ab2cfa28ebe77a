/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conform/peer.h"

#define TIMES 512

struct peer peer;
static uint32_t took_ms[TIMES], n_took;

extern char **environ;

static void program(char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - 1);

	TEST_ASSERT_TRUE(n > 0);
	path[n] = 0;
	snprintf(strrchr(path, '/') + 1, 8, "peer");
}

/* Put the settings that the peer needs for this end into its environment. */
static void describe(char end)
{
	char text[1024] = "", name[] = "RIG_A_SETTINGS";
	const char *const *own = end == 'a' ? rig_driver.a : rig_driver.b;

	name[4] = end == 'a' ? 'A' : 'B';
	for (int i = 0; i < 2 * RIG_SETTINGS; i++) {
		const char *s = i < RIG_SETTINGS ? rig_driver.setting[i] : own[i - RIG_SETTINGS];
		size_t used = strlen(text);

		if (s)
			snprintf(text + used, sizeof(text) - used, "%s ", s);
	}
	if (getenv(name))
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s", getenv(name));
	setenv("RIG_PEER_SETTINGS", text, 1);
	setenv("RIG_PEER_PLUGIN", rig_driver.plugin, 1);
	setenv("RIG_PEER_SERVICE", rig_service(0), 1);
}

void peer_start(char end, const char *part, const char *step)
{
	char path[4096], which[2] = {end, 0};
	char *argv[] = {path, which, (char *)(uintptr_t)part, (char *)(uintptr_t)step, NULL};
	posix_spawn_file_actions_t files;
	int to[2], from[2];

	if (peer.pid) /* left by a case that failed */
		peer_kill();
	program(path, sizeof(path));
	describe(end);
	TEST_ASSERT_EQUAL_INT(0, pipe2(to, O_CLOEXEC));
	TEST_ASSERT_EQUAL_INT(0, pipe2(from, O_CLOEXEC));
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, to[0], 0);
	posix_spawn_file_actions_adddup2(&files, from[1], 3);
	fflush(stdout);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, posix_spawn(&peer.pid, path, &files, NULL, argv, environ),
				      path);
	posix_spawn_file_actions_destroy(&files);
	close(to[0]);
	close(from[1]);
	peer.died_ns = 0;
	peer.to = to[1];
	peer.from = from[0];
}

int peer_is_there(void)
{
	struct pollfd p = {.fd = peer.from, .events = POLLIN};
	char c;

	if (poll(&p, 1, 0) == 0)
		return 0;
	TEST_ASSERT_EQUAL_INT_MESSAGE(1, read(peer.from, &c, 1), "the peer has failed");
	return 1;
}

void peer_wait(void)
{
	uint64_t late = 0;

	while (!peer_is_there()) {
		struct pollfd fds[2] = {{.fd = peer.from, .events = POLLIN},
					{.fd = rig.ops->fd(rig.b.dev), .events = POLLIN}};

		poll(fds, 2, 1);
		rig_wait(&late, 0, "the peer process to reach its step");
	}
	rig_settle();
}

static int reap(void)
{
	int status;

	TEST_ASSERT_EQUAL_INT(peer.pid, waitpid(peer.pid, &status, 0));
	peer.died_ns = rig_now_ns();
	peer.pid = 0;
	close(peer.to);
	close(peer.from);
	return status;
}

void peer_stop(void)
{
	siginfo_t info;

	kill(peer.pid, SIGSTOP);
	TEST_ASSERT_EQUAL_INT(0, waitid(P_PID, (id_t)peer.pid, &info, WSTOPPED));
}

void peer_kill(void)
{
	kill(peer.pid, SIGKILL);
	TEST_ASSERT_EQUAL_INT(SIGKILL, WTERMSIG(reap()));
}

void peer_exit(void)
{
	TEST_ASSERT_EQUAL_INT(1, write(peer.to, "x", 1));
	TEST_ASSERT_EQUAL_INT(0, reap());
}

void peer_await_report(const int *what, int n)
{
	rig_until_at(what, n, __FILE__, __LINE__);
	if (n_took < TIMES)
		took_ms[n_took++] = (uint32_t)((rig_now_ns() - peer.died_ns) / 1000000);
}

/* Limit of the time from the death of a peer to `closed`. */
static unsigned closed_ms(void)
{
	return rig_has(RIG_NETWORK) ? 2000 : 100;
}

void peer_await_limit(void)
{
	while (rig_now_ns() - peer.died_ns < closed_ms() * 1000000ull) {
		struct pollfd p = {.fd = rig.ops->fd(rig.b.dev), .events = POLLIN};

		poll(&p, 1, 10);
		rig_settle();
	}
	rig_settle(); /* the loop makes no turn if this process did not run in that time */
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

void peer_times(void)
{
	uint32_t most;

	TEST_ASSERT_TRUE(n_took > 0);
	qsort(took_ms, n_took, sizeof(took_ms[0]), by_size);
	most = took_ms[n_took * 3 / 4];
	printf("%u deaths, told after %u ms (half of them), %u ms (three quarters), %u ms (all); limit %u ms\n",
	       n_took, took_ms[n_took / 2], most, took_ms[n_took - 1], closed_ms());
	RIG_HOLDS(most <= closed_ms(),
		  "time from the death of a peer to `closed`, for three quarters of the deaths");
}
