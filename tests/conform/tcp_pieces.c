/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_pieces.c - the conformance suite over TCP sockets that move only a part of the bytes at a
 * time, of a random length, and sometimes none. These functions replace those of libc for the
 * plugin.
 *
 * A new socket takes its first bytes at once, and the transport relies on that: a hello and a
 * refusal are not cut. RIG_SEED in the environment repeats a sequence.
 */
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "../../plugins/transport/tcp/tcp_wire.h"
#include "conform/rig.h"

#define EXPORT __attribute__((visibility("default")))
#define IOVECS 128

EXPORT ssize_t send(int fd, const void *bytes, size_t len, int flags);
EXPORT ssize_t sendmsg(int fd, const struct msghdr *msg, int flags);
EXPORT ssize_t recv(int fd, void *to, size_t len, int flags);
EXPORT ssize_t recvmsg(int fd, struct msghdr *msg, int flags);

/* The functions of libc. */
static struct {
	ssize_t (*send)(int, const void *, size_t, int);
	ssize_t (*sendmsg)(int, const struct msghdr *, int);
	ssize_t (*recv)(int, void *, size_t, int);
	ssize_t (*recvmsg)(int, struct msghdr *, int);
} real;
static uint64_t seed;

/* Each thread has a sequence of its own. */
static uint32_t random_number(void)
{
	static __thread uint64_t state;

	if (!state)
		state = seed;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 16);
}

/* Returns how many of `len` bytes go in one call; 0: none now. Short pieces hit each byte. */
static size_t piece(size_t len)
{
	static const size_t most[] = {0, 1, 8, 70, 200};
	uint32_t kind = random_number() % 16;
	size_t limit = kind < sizeof(most) / sizeof(most[0]) ? most[kind] : len;

	limit = limit < len ? limit : len;
	return limit ? 1 + random_number() % limit : 0;
}

static int is_tcp(int fd)
{
	int domain = 0;
	socklen_t n = sizeof(domain);

	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n);
	return domain == AF_INET || domain == AF_INET6;
}

static ssize_t none(void)
{
	errno = EAGAIN;
	return -1;
}

/* Returns the vector cut to one piece, in `iov`; its length 0: nothing goes now. */
static size_t cut(const struct msghdr *msg, struct iovec *iov, struct msghdr *shorter)
{
	size_t total = 0, left;

	for (size_t i = 0; i < msg->msg_iovlen; i++)
		total += msg->msg_iov[i].iov_len;
	left = total = piece(total);
	*shorter = *msg;
	shorter->msg_iov = iov;
	for (size_t i = 0; i < msg->msg_iovlen && i < IOVECS; i++) {
		iov[i] = msg->msg_iov[i];
		if (iov[i].iov_len > left)
			iov[i].iov_len = left;
		left -= iov[i].iov_len;
	}
	return total;
}

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
	size_t refusal = sizeof(struct tcp_ctrl) + sizeof(struct tcp_refused);
	size_t n = len == sizeof(struct tcp_hello) || len == refusal ? len : piece(len);

	if (!is_tcp(fd))
		return real.send(fd, bytes, len, flags);
	return n ? real.send(fd, bytes, n, flags) : none();
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct iovec iov[IOVECS];
	struct msghdr shorter;

	if (!is_tcp(fd))
		return real.sendmsg(fd, msg, flags);
	return cut(msg, iov, &shorter) ? real.sendmsg(fd, &shorter, flags) : none();
}

ssize_t recv(int fd, void *to, size_t len, int flags)
{
	size_t n = piece(len);

	if (!is_tcp(fd))
		return real.recv(fd, to, len, flags);
	return n ? real.recv(fd, to, n, flags) : none();
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct iovec iov[IOVECS];
	struct msghdr shorter;

	if (!is_tcp(fd))
		return real.recvmsg(fd, msg, flags);
	return cut(msg, iov, &shorter) ? real.recvmsg(fd, &shorter, flags) : none();
}

/*
 * In two cases a thread sleeps, or ends, after a send or a receive that moved less than the socket
 * could. Sockets of the kernel do not do that: then their epoll reports an event later.
 */
static int wanted(const char *name)
{
	const char *only = getenv("RIG_CASE");

	return strncmp(name, "ping_pong_of_sleepers", 21) != 0 && (!only || !strcmp(only, name));
}

__attribute__((constructor)) static void begin(void)
{
	const char *text = getenv("RIG_SEED");

	seed = text ? strtoull(text, NULL, 0) | 1 : 0x9e3779b97f4a7c15u;
	*(void **)&real.send = dlsym(RTLD_NEXT, "send");
	*(void **)&real.sendmsg = dlsym(RTLD_NEXT, "sendmsg");
	*(void **)&real.recv = dlsym(RTLD_NEXT, "recv");
	*(void **)&real.recvmsg = dlsym(RTLD_NEXT, "recvmsg");
	rig_driver.wanted = wanted;
	rig_driver.slower = 100;
}
