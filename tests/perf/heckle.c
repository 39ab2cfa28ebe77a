/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heckle SOCKET stat|garbage|stall - attack the control socket of a gantry process until SIGTERM:
 * requests without a pause, bytes that are no request, or connections that never read
 * heckle SOCKET half|unread - attack gantry metrics: requests that never end, or connections that
 * never read
 * heckle - repeat COMMAND... - run a command again and again
 * heckle - burn PERCENT - use that much of a processor instead, without gantry
 *
 * It prints how much of a processor it used with its child processes, in percent.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS 16
#define SLICE_NS 1000000 /* burn works and sleeps in slices of this length */

static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

static double now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double used_ns(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e9 +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e3;
}

static void pause_ns(long ns)
{
	nanosleep(&(const struct timespec){.tv_nsec = ns}, NULL); /* lint: allowed, a load */
}

/* Connect, and wait at most 10 ms for data or space afterwards. Returns -1 if it fails. */
static int dial(const char *path)
{
	const struct timeval limit = {.tv_usec = 10000};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	close(fd);
	pause_ns(1000000);
	return -1;
}

static const char request[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"stat\"}\n";

static void attack_stat(int fd)
{
	static char text[65536];

	while (!ended &&
	       (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) > 0 || errno == EAGAIN))
		if (recv(fd, text, sizeof(text), 0) == 0)
			return;
}

static void attack_garbage(int fd)
{
	static char text[65536];

	memset(text, '{', sizeof(text));
	while (!ended && (send(fd, text, sizeof(text), MSG_NOSIGNAL) > 0 || errno == EAGAIN))
		;
}

/* Send bytes now and then, so that the connection is not idle, until the peer ends it. */
static void drip(int fd, const char *byte)
{
	while (!ended && (send(fd, byte, 1, MSG_NOSIGNAL) >= 0 || errno == EAGAIN))
		pause_ns(100000000);
}

/* Send the text until the peer takes no more. */
static void fill(int fd, const char *text)
{
	while (!ended && send(fd, text, strlen(text), MSG_NOSIGNAL) > 0)
		;
}

static void attack_stall(int fd)
{
	fill(fd, request);
	drip(fd, "{");
}

static void attack_half(int fd)
{
	static const char half[] = "GET /metrics HTTP/1.1\r\nX: ";

	if (send(fd, half, sizeof(half) - 1, MSG_NOSIGNAL) > 0)
		drip(fd, "x");
}

static void attack_unread(int fd)
{
	fill(fd, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
	drip(fd, "G");
}

static void repeat(char **command)
{
	while (!ended) {
		pid_t pid = fork();

		if (pid == 0) {
			int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

			dup2(null, STDOUT_FILENO);
			dup2(null, STDERR_FILENO);
			execvp(command[0], command);
			_exit(127);
		}
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
}

static void burn(double percent)
{
	while (!ended) {
		double until = now_ns(CLOCK_MONOTONIC) + SLICE_NS * percent / 100;

		while (now_ns(CLOCK_MONOTONIC) < until)
			;
		pause_ns((long)(SLICE_NS * (100 - percent) / 100));
	}
}

static void attack(const char *path, void (*fn)(int fd))
{
	while (!ended) {
		int fd = dial(path);

		if (fd < 0)
			continue;
		fn(fd);
		close(fd);
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*fn)(int fd);
		unsigned processes;
	} attacks[] = {
		{"stat", attack_stat, 1},
		{"garbage", attack_garbage, 1},
		{"stall", attack_stall, CONNECTIONS},
		{"half", attack_half, CONNECTIONS},
		{"unread", attack_unread, CONNECTIONS},
	};
	double start_ns = now_ns(CLOCK_MONOTONIC);
	pid_t parent = getpid();

	sigaction(SIGTERM, &(const struct sigaction){.sa_handler = end}, NULL);
	setpgid(0, 0);
	if (argc == 4 && !strcmp(argv[2], "burn")) {
		burn(atof(argv[3]));
		return 0;
	}
	if (argc > 3 && !strcmp(argv[2], "repeat"))
		repeat(argv + 3);
	for (size_t i = 0; argc == 3 && i < sizeof(attacks) / sizeof(attacks[0]); i++) {
		if (strcmp(attacks[i].name, argv[2]) != 0)
			continue;
		for (unsigned k = 1; k < attacks[i].processes && getpid() == parent; k++)
			(void)!fork();
		attack(argv[1], attacks[i].fn);
	}
	if (getpid() != parent)
		_exit(0);
	signal(SIGTERM, SIG_IGN);
	kill(0, SIGTERM); /* the other processes of this group */
	while (wait(NULL) > 0)
		;
	printf("%.1f\n", 100 * (used_ns(RUSAGE_SELF) + used_ns(RUSAGE_CHILDREN)) /
				 (now_ns(CLOCK_MONOTONIC) - start_ns));
	return 0;
}
