/* SPDX-License-Identifier: BSD-3-Clause */
/* quick_stream.c - see quick_stream.h */
#include "fuzz/quick_stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "fuzz/quick_fd.h"

#define UNREAD 8192 /* bytes of a stream that the product has not read */

enum state { FREE, NEW, LISTENING, PENDING /* for accept4() */, OPEN };

static struct stream {
	enum state state;
	bool fin, rst;
	size_t allowed, cut, from, to;
	uint8_t in[UNREAD];
} streams[QUICK_STREAMS];
static int dialed = -1;

int __wrap_socket(int domain, int type, int protocol);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t n);
int __wrap_listen(int fd, int backlog);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *n, int flags);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t n);
int __wrap_shutdown(int fd, int how);
int __wrap_getsockname(int fd, struct sockaddr *address, socklen_t *n);
int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *n);
int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t n);
ssize_t __wrap_send(int fd, const void *bytes, size_t len, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_recv(int fd, void *to, size_t len, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);

static int fail(int err)
{
	errno = err;
	return -1;
}

/* -- readiness: a function for each stream, since it has no argument -- */

static uint32_t events_of(const struct stream *s)
{
	uint32_t events = 0;

	if (s->state == LISTENING) {
		for (int i = 0; i < QUICK_STREAMS; i++)
			if (streams[i].state == PENDING)
				events = EPOLLIN;
		return events;
	}
	if (s->from != s->to || s->fin || s->rst)
		events |= EPOLLIN;
	if (s->allowed || s->rst)
		events |= EPOLLOUT;
	return s->rst ? events | EPOLLERR | EPOLLHUP : events;
}

#define STREAM(i) \
	static uint32_t events_##i(void) \
	{ \
		return events_of(&streams[i]); \
	} \
	static void close_##i(void) \
	{ \
		streams[i].state = FREE; \
	}
#define EACH(f) \
	f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11) f(12) f(13) f(14) f(15)
#define OPS(i) {events_##i, close_##i},

EACH(STREAM)

static const struct quick_ops ops[QUICK_STREAMS] = {EACH(OPS)};

static struct stream *stream_of(int fd)
{
	const struct quick_ops *of = quick_fd_ops(fd);

	if (!of)
		abort(); /* the product uses a socket that it does not have */
	return &streams[of - ops];
}

static int new_stream(enum state state)
{
	for (int i = 0; i < QUICK_STREAMS; i++)
		if (streams[i].state == FREE) {
			streams[i].state = state;
			streams[i].fin = streams[i].rst = false;
			streams[i].from = streams[i].to = 0;
			streams[i].allowed = streams[i].cut = SIZE_MAX;
			return i;
		}
	return -1;
}

/* -- the peer -- */

int quick_stream_dial(void)
{
	return new_stream(PENDING);
}

int quick_stream_dialed(void)
{
	int stream = dialed;

	dialed = -1;
	return stream;
}

bool quick_stream_send(int stream, const void *bytes, size_t len)
{
	struct stream *s = &streams[stream];

	if (s->state < PENDING || s->fin || s->rst)
		return false;
	memmove(s->in, s->in + s->from, s->to - s->from);
	s->to -= s->from;
	s->from = 0;
	if (len > UNREAD - s->to)
		return false;
	memcpy(s->in + s->to, bytes, len);
	s->to += len;
	return true;
}

void quick_stream_end(int stream, bool reset)
{
	streams[stream].fin = true;
	streams[stream].rst = streams[stream].rst || reset;
}

void quick_stream_allow(int stream, size_t n)
{
	streams[stream].allowed = n;
}

void quick_stream_cut(int stream, size_t n)
{
	streams[stream].cut = n;
}

void quick_stream_hang_up(void)
{
	for (int i = 0; i < QUICK_STREAMS; i++)
		if (streams[i].state >= PENDING) {
			quick_stream_end(i, false);
			streams[i].allowed = SIZE_MAX;
		}
}

/* -- the product -- */

int __wrap_socket(int domain, int type, int protocol)
{
	int i = new_stream(NEW);

	(void)domain;
	(void)type;
	(void)protocol;
	return i < 0 ? fail(EMFILE) : quick_fd_make(&ops[i]);
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t n)
{
	(void)fd;
	(void)address;
	(void)n;
	return 0;
}

int __wrap_listen(int fd, int backlog)
{
	(void)backlog;
	stream_of(fd)->state = LISTENING;
	return 0;
}

static void put_address(struct sockaddr *address, socklen_t *n)
{
	const struct sockaddr_in in = {.sin_family = AF_INET,
				       .sin_port = htons(4791),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	memcpy(address, &in, sizeof(in));
	*n = sizeof(in);
}

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *n, int flags)
{
	(void)fd;
	(void)flags;
	for (int i = 0; i < QUICK_STREAMS; i++)
		if (streams[i].state == PENDING) {
			streams[i].state = OPEN;
			put_address(address, n);
			return quick_fd_make(&ops[i]);
		}
	return fail(EAGAIN);
}

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t n)
{
	struct stream *s = stream_of(fd);

	(void)address;
	(void)n;
	s->state = OPEN;
	dialed = (int)(s - streams);
	return 0;
}

int __wrap_shutdown(int fd, int how)
{
	(void)fd;
	(void)how;
	return 0;
}

int __wrap_getsockname(int fd, struct sockaddr *address, socklen_t *n)
{
	(void)fd;
	put_address(address, n);
	return 0;
}

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *n)
{
	const int none = 0;

	(void)fd;
	(void)level;
	(void)option;
	memcpy(value, &none, sizeof(none));
	*n = sizeof(none);
	return 0;
}

int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t n)
{
	(void)fd;
	(void)level;
	(void)option;
	(void)value;
	(void)n;
	return 0;
}

/* Read the bytes that are sent, so that ASan checks them. */
static void look_at(const uint8_t *bytes, size_t len)
{
	static volatile uint8_t sum;

	if (len)
		sum = (uint8_t)(sum + bytes[0] + bytes[len - 1]);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct stream *s = stream_of(fd);
	size_t n = 0;

	(void)flags;
	if (s->rst)
		return fail(ECONNRESET);
	for (size_t i = 0; i < msg->msg_iovlen && n < s->allowed; i++) {
		size_t take = msg->msg_iov[i].iov_len;

		take = take < s->allowed - n ? take : s->allowed - n;
		look_at(msg->msg_iov[i].iov_base, take);
		n += take;
	}
	if (n == 0)
		return fail(EAGAIN);
	if (s->allowed != SIZE_MAX)
		s->allowed -= n;
	return (ssize_t)n;
}

ssize_t __wrap_send(int fd, const void *bytes, size_t len, int flags)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = len};
	const struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	return __wrap_sendmsg(fd, &msg, flags);
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct stream *s = stream_of(fd);
	size_t n = 0;

	(void)flags;
	if (s->rst)
		return fail(ECONNRESET);
	if (s->from == s->to)
		return s->fin ? 0 : fail(EAGAIN);
	for (size_t i = 0; i < msg->msg_iovlen && n < s->cut; i++) {
		size_t take = msg->msg_iov[i].iov_len, left = s->to - s->from;

		take = take < left ? take : left;
		take = take < s->cut - n ? take : s->cut - n;
		if (take)
			memcpy(msg->msg_iov[i].iov_base, s->in + s->from, take);
		s->from += take;
		n += take;
	}
	return (ssize_t)n;
}

ssize_t __wrap_recv(int fd, void *to, size_t len, int flags)
{
	struct iovec iov = {.iov_base = to, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	return __wrap_recvmsg(fd, &msg, flags);
}
