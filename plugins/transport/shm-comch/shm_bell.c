/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_bell.c - doorbell of a consumer. The peer rings it if the consumer has set `asleep`.
 *
 * Between processes of one user it is an eventfd. Between users it is a socket: a peer could make a
 * shared eventfd blocking, so that a write to it blocks. On a socket each send can set
 * MSG_DONTWAIT, so the peer cannot make it block.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shm_comch.h"

/*
 * limit of the rings that one call clears: a peer can ring without end, and the lane has other
 * pollers
 */
#define RINGS_AT_A_TIME 64

static bool by_socket(const struct comch_conn *conn)
{
	return conn->peer.uid != conn->dev->uids[0];
}

bool comch_bell_fills(const struct comch_conn *conn)
{
	/* a full socket loses further rings; an eventfd counts up to 2^64 */
	return by_socket(conn);
}

int comch_bell_create(const struct comch_conn *conn, int *wait_p, int *ring_p)
{
	int fds[2];

	if (by_socket(conn)) {
		if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds))
			return -errno;
	} else {
		fds[0] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (fds[0] < 0)
			return -errno;
		fds[1] = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
		if (fds[1] < 0) {
			int rc = -errno;

			close(fds[0]);
			return rc;
		}
	}
	*wait_p = fds[0];
	*ring_p = fds[1];
	return 0;
}

bool comch_bell_ok(const struct comch_conn *conn, int fd)
{
	char path[40], is[40] = "";
	struct stat st;
	int flags;

	if (by_socket(conn))
		return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	flags = fcntl(fd, F_GETFL);
	return readlink(path, is, sizeof(is) - 1) > 0 && strcmp(is, "anon_inode:[eventfd]") == 0 &&
	       flags >= 0 && (flags & O_NONBLOCK);
}

void comch_bell_ring(const struct comch_conn *conn, int fd)
{
	uint64_t one = 1;
	ssize_t n;

	if (by_socket(conn))
		n = send(fd, &one, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		n = write(fd, &one, sizeof(one));
	(void)n; /* a full doorbell is already rung */
}

/*
 * Take one ring from the socket. A ring with descriptors stays in the socket, because closing them
 * can block: shm_closer.c closes them together with the socket.
 */
static bool take_ring(struct comch_conn *conn, int fd)
{
	char byte;
	struct iovec iov = {&byte, sizeof(byte)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (recvmsg(fd, &msg, MSG_DONTWAIT | MSG_PEEK) < 0)
		return false;
	if (msg.msg_flags & MSG_CTRUNC) {
		comch_conn_poison(conn, COMCH_CORRUPT_BELL);
		return false;
	}
	return recv(fd, &byte, sizeof(byte), MSG_DONTWAIT) >= 0;
}

void comch_bell_clear(struct comch_conn *conn, int fd)
{
	uint64_t n;

	if (by_socket(conn))
		for (int i = 0; i < RINGS_AT_A_TIME && take_ring(conn, fd); i++)
			;
	else if (read(fd, &n, sizeof(n)) < 0)
		return; /* the bell was not rung */
}
