/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_socket.c - a socket and its options. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "tcp.h"

static void set(int fd, int level, int name, int value)
{
	setsockopt(fd, level, name, &value, sizeof(value));
}

void tcp_socket_options(const struct tcp_device *dev, int fd)
{
	int dead_ms = (int)(dev->conf->dead_time_ns / 1000000);

	set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	/* a peer without a network is dead when it has acknowledged nothing for dead_time */
	set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, dead_ms);
	set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
	set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
	set(fd, IPPROTO_TCP, TCP_KEEPCNT, dead_ms / 1000 + 1);
	set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	if (dev->conf->buffer_bytes) {
		set(fd, SOL_SOCKET, SO_SNDBUF, (int)dev->conf->buffer_bytes);
		set(fd, SOL_SOCKET, SO_RCVBUF, (int)dev->conf->buffer_bytes);
	}
}

int tcp_socket(const struct tcp_device *dev, int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);

	if (fd < 0)
		return -errno;
	tcp_socket_options(dev, fd);
	return fd;
}

int tcp_socket_connect(const struct tcp_device *dev, const struct sockaddr *to)
{
	int fd = tcp_socket(dev, to->sa_family), rc;

	if (fd < 0)
		return fd;
	if (connect(fd, to, tc_address_bytes(to)) == 0 || errno == EINPROGRESS)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

int tcp_socket_error(int fd)
{
	int error = 0;
	socklen_t bytes = sizeof(error);

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) ? -errno : -error;
}
