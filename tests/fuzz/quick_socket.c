/* SPDX-License-Identifier: BSD-3-Clause */
/* quick_socket.c - see quick_socket.h */
#include "fuzz/quick_socket.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fuzz/quick_fd.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* Limits of the kernel: unread bytes of a socket; bytes that it adds to each message. */
#define UNREAD_BYTES 212992u
#define MESSAGE_BYTES 768u

struct message {
	struct message *next;
	size_t len;
	unsigned n_fds;
	int fds[QUICK_SOCKET_FDS];
	uint8_t bytes[];
};

/* The end of the connection that the product has. */
static struct {
	enum { CLOSED, PENDING /* for accept4() */, ACCEPTED } state;
	bool hung_up;
	bool reset;    /* the client closed with unread messages, which is not reported yet */
	size_t unread; /* bytes that the client has not read */
	struct message *first, **last;
} conn;

int __real_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_socket(int domain, int type, int protocol);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t n);
int __wrap_listen(int fd, int backlog);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *n, int flags);
int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *n);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_recv(int fd, void *to, size_t len, int flags);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);

static int fail(int err)
{
	errno = err;
	return -1;
}

static uint32_t no_events(void)
{
	return 0;
}

static void no_close(void)
{
}

static uint32_t listener_events(void)
{
	return conn.state == PENDING ? EPOLLIN : 0;
}

static uint32_t conn_events(void)
{
	uint32_t events = conn.unread < UNREAD_BYTES ? EPOLLOUT : 0;

	if (conn.first)
		events |= EPOLLIN;
	if (conn.hung_up)
		events |= EPOLLIN | EPOLLHUP | EPOLLRDHUP;
	return conn.reset ? events | EPOLLERR : events;
}

static void drop_first(void)
{
	struct message *m = conn.first;

	conn.first = m->next;
	if (!m->next)
		conn.last = &conn.first;
	free(m);
}

static void conn_close(void)
{
	while (conn.first)
		drop_first();
	conn.state = CLOSED;
}

static const struct quick_ops process_ops = {no_events, no_close};
static const struct quick_ops listener_ops = {listener_events, no_close};
static const struct quick_ops conn_ops = {conn_events, conn_close};

/* -- the client -- */

void quick_socket_connect(void)
{
	if (conn.state != CLOSED)
		abort();
	conn.state = PENDING;
	conn.hung_up = conn.reset = false;
	conn.unread = 0;
	conn.first = NULL;
	conn.last = &conn.first;
}

bool quick_socket_send(const void *bytes, size_t len, const int *fds, unsigned n_fds)
{
	struct message *m;

	if (conn.state == CLOSED)
		return false;
	m = malloc(sizeof(*m) + len);
	if (!m)
		abort();
	*m = (struct message){.len = len, .n_fds = n_fds};
	for (unsigned i = 0; i < n_fds; i++)
		m->fds[i] = fds[i];
	memcpy(m->bytes, bytes, len);
	*conn.last = m;
	conn.last = &m->next;
	return true;
}

void quick_socket_hang_up(void)
{
	if (conn.state == CLOSED)
		return;
	conn.hung_up = true;
	conn.reset = conn.unread != 0;
}

/* -- the product -- */

/* The product creates only the socket of its listener. */
int __wrap_socket(int domain, int type, int protocol)
{
	(void)domain;
	(void)type;
	(void)protocol;
	return quick_fd_make(&listener_ops);
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t n)
{
	const struct sockaddr_un *sun = (const struct sockaddr_un *)(const void *)address;

	(void)fd;
	(void)n;
	return mknod(sun->sun_path, S_IFSOCK | 0777, 0);
}

int __wrap_listen(int fd, int backlog)
{
	(void)fd;
	(void)backlog;
	return 0;
}

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *n, int flags)
{
	(void)fd;
	(void)address;
	(void)n;
	(void)flags;
	if (conn.state != PENDING)
		return fail(EAGAIN);
	conn.state = ACCEPTED;
	return quick_fd_make(&conn_ops);
}

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *n)
{
	const struct ucred cred = {.pid = getpid(), .uid = geteuid(), .gid = getegid()};
	int pidfd;

	(void)fd;
	if (level != SOL_SOCKET || (option != SO_PEERCRED && option != SO_PEERPIDFD))
		return fail(ENOPROTOOPT);
	if (option == SO_PEERCRED) {
		memcpy(value, &cred, sizeof(cred));
		*n = sizeof(cred);
		return 0;
	}
	pidfd = quick_fd_make(&process_ops);
	memcpy(value, &pidfd, sizeof(pidfd));
	return pidfd < 0 ? -1 : 0;
}

/* Returns the error that the socket reports once; 0: none. */
static int take_error(void)
{
	bool reset = conn.reset;

	conn.reset = false;
	return reset ? ECONNRESET : 0;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	size_t len = msg->msg_iov->iov_len;
	int err = take_error();

	(void)fd;
	(void)flags;
	if (err || conn.hung_up)
		return fail(err ? err : EPIPE);
	if (conn.unread >= UNREAD_BYTES)
		return fail(EAGAIN);
	conn.unread += len + MESSAGE_BYTES;
	return (ssize_t)len;
}

/* Give the product the descriptors for which its control buffer has room. */
static void receive_fds(const struct message *m, struct msghdr *msg)
{
	struct cmsghdr *c = msg->msg_control;
	size_t room = (msg->msg_controllen - CMSG_LEN(0)) / sizeof(int);
	unsigned n = 0;

	for (; n < m->n_fds && n < room; n++) {
		int fd = quick_fd_dup(m->fds[n]);

		if (fd < 0)
			break;
		memcpy(CMSG_DATA(c) + n * sizeof(fd), &fd, sizeof(fd));
	}
	if (n < m->n_fds)
		msg->msg_flags |= MSG_CTRUNC;
	msg->msg_controllen = n ? CMSG_SPACE(n * sizeof(int)) : 0;
	if (n == 0)
		return;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
}

/* The product receives with MSG_PEEK. */
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	const struct message *m = conn.first;
	int err = take_error();
	size_t len;

	(void)fd;
	(void)flags;
	if (err)
		return fail(err);
	msg->msg_flags = 0;
	if (!m) {
		msg->msg_controllen = 0;
		return conn.hung_up ? 0 : fail(EAGAIN);
	}
	len = m->len < msg->msg_iov->iov_len ? m->len : msg->msg_iov->iov_len;
	memcpy(msg->msg_iov->iov_base, m->bytes, len);
	if (len < m->len)
		msg->msg_flags |= MSG_TRUNC;
	receive_fds(m, msg);
	return (ssize_t)len;
}

/* Drops a message that was received with MSG_PEEK. */
ssize_t __wrap_recv(int fd, void *to, size_t len, int flags)
{
	int err = take_error();

	(void)fd;
	(void)to;
	(void)len;
	(void)flags;
	if (err)
		return fail(err);
	if (!conn.first)
		return conn.hung_up ? 0 : fail(EAGAIN);
	drop_first();
	return 0;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	const struct quick_ops *ops = n == 1 ? quick_fd_ops(fds->fd) : NULL;

	if (!ops)
		return __real_poll(fds, n, timeout_ms);
	fds->revents = (short)(ops->events() & ((uint32_t)fds->events | POLLHUP | POLLERR));
	return fds->revents != 0;
}
