/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recorder LISTEN TO PORT FILE - forward TCP connections from the IPv4 address LISTEN to the
 * address TO, both at PORT, and write all bytes of both directions to FILE
 *
 * It prints "listening" when it accepts connections, and runs until a signal ends it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAIRS 64
#define CHUNK 65536

static struct pollfd fds[1 + 2 * PAIRS]; /* the listener, then both ends of each connection */
static unsigned n_fds = 1;
static int file;

static void must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "recorder: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct sockaddr_in address(const char *host, const char *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};

	must(inet_pton(AF_INET, host, &at.sin_addr) == 1, host);
	return at;
}

static int make_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	must(fd >= 0, "socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static void begin_pair(const struct sockaddr_in *to)
{
	int from = accept4(fds[0].fd, NULL, NULL, SOCK_CLOEXEC), fd = make_socket();

	if (from < 0 || n_fds + 2 > 1 + 2 * PAIRS ||
	    connect(fd, (const struct sockaddr *)to, sizeof(*to))) {
		close(from);
		close(fd);
		return;
	}
	fds[n_fds++] = (struct pollfd){.fd = from, .events = POLLIN};
	fds[n_fds++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

/* Close both ends; the last pair takes their place. */
static void end_pair(unsigned i)
{
	unsigned first = i - (i - 1) % 2;

	close(fds[first].fd);
	close(fds[first + 1].fd);
	n_fds -= 2;
	fds[first] = fds[n_fds];
	fds[first + 1] = fds[n_fds + 1];
}

/* Returns 0, or -1 at the end of a direction. */
static int forward(unsigned i)
{
	static char bytes[CHUNK];
	int to = fds[i % 2 ? i + 1 : i - 1].fd;
	ssize_t n = read(fds[i].fd, bytes, sizeof(bytes)), done = 0, k;

	if (n <= 0)
		return -1;
	must(write(file, bytes, (size_t)n) == n, "write");
	for (; done < n; done += k) {
		k = send(to, bytes + done, (size_t)(n - done), MSG_NOSIGNAL);
		if (k <= 0)
			return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at, to;

	if (argc != 5) {
		fprintf(stderr, "usage: recorder LISTEN TO PORT FILE\n");
		return 2;
	}
	at = address(argv[1], argv[3]);
	to = address(argv[2], argv[3]);
	file = open(argv[4], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	must(file >= 0, argv[4]);
	fds[0] = (struct pollfd){.fd = make_socket(), .events = POLLIN};
	must(!bind(fds[0].fd, (struct sockaddr *)&at, sizeof(at)) && !listen(fds[0].fd, 64),
	     argv[1]);
	puts("listening");
	fflush(stdout);
	for (;;) {
		must(poll(fds, n_fds, -1) > 0, "poll");
		if (fds[0].revents)
			begin_pair(&to);
		for (unsigned i = n_fds; i-- > 1;)
			if (i < n_fds && fds[i].revents && forward(i))
				end_pair(i);
	}
}
