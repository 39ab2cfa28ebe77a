/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * knock SOCKET N silent|greet hold|again - a hostile client of shm-comch: open N connections to a
 * service, and no session on any of them
 *
 * silent  send no frame at all
 * greet   send the HELLO of the transport, but none of a session
 * hold    keep the connections that the server accepts
 * again   open each connection again as soon as the server ends it
 *
 * Writes the line "ready" after it has tried to open all N connections once, and exits at the end of
 * its standard input.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../plugins/transport/shm-comch/shm_wire.h"

#define MAX 1024

static struct sockaddr_un to = {.sun_family = AF_UNIX};
static int greets, again;

/* Open a connection. Returns -1 if the kernel or the server does not accept it now. */
static int knock(void)
{
	struct comch_frame hello = {.head = {.magic = COMCH_MAGIC,
					     .version = COMCH_VERSION,
					     .type = COMCH_HELLO,
					     .length = sizeof(hello.hello)}};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to))) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	if (greets)
		send(fd, &hello, COMCH_FRAME_MIN + sizeof(hello.hello), MSG_NOSIGNAL);
	return fd;
}

/* Read what the server sent. Returns whether the connection has ended. */
static int has_ended(int fd)
{
	char frame[sizeof(struct comch_frame)];
	ssize_t n;

	while ((n = recv(fd, frame, sizeof(frame), MSG_DONTWAIT)) > 0)
		;
	return n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

static void run(struct pollfd *fds, nfds_t n)
{
	char byte;

	for (nfds_t i = 1; i <= n; i++)
		fds[i] = (struct pollfd){.fd = knock(), .events = POLLIN};
	puts("ready");
	fflush(stdout);
	while (poll(fds, n + 1, -1) > 0) {
		if (fds[0].revents && read(fds[0].fd, &byte, 1) <= 0)
			return;
		for (nfds_t i = 1; i <= n; i++) {
			if (fds[i].fd >= 0 && (!fds[i].revents || !has_ended(fds[i].fd)))
				continue;
			if (fds[i].fd >= 0)
				close(fds[i].fd);
			fds[i].fd = again ? knock() : -1;
		}
	}
}

int main(int argc, char **argv)
{
	static struct pollfd fds[MAX + 1] = {{.fd = STDIN_FILENO, .events = POLLIN}};
	struct rlimit files;
	unsigned long n = argc == 5 ? strtoul(argv[2], NULL, 10) : 0;
	const char *slash = argc == 5 ? strrchr(argv[1], '/') : NULL;

	if (!slash || n == 0 || n > MAX) {
		fputs("usage: knock SOCKET N silent|greet hold|again\n", stderr);
		return 2;
	}
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	greets = strcmp(argv[3], "greet") == 0;
	again = strcmp(argv[4], "again") == 0;
	snprintf(to.sun_path, sizeof(to.sun_path), "%s", slash + 1);
	/* use the directory and a relative name: the path can be too long for an address */
	if (chdir((*(char *)(uintptr_t)slash = '\0', argv[1]))) {
		perror(argv[1]);
		return 1;
	}
	run(fds, n);
	return 0;
}
