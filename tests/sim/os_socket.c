/* SPDX-License-Identifier: BSD-3-Clause */
/* os_socket.c - the system calls of sockets; os_unix.c and os_tcp.c have the families */
#include <fcntl.h>
#include <string.h>

#include "os.h"

#define BACKLOG 512 /* the kernel's limit (net.core.somaxconn) */

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);

/* At the start of a system call. Returns NULL with errno set if fd is no socket. */
static struct sim_file *call_socket(int fd)
{
	struct sim_file *file = sim_call_file(fd);

	if (file && !file->ops->socket) {
		errno = ENOTSOCK;
		return NULL;
	}
	return file;
}

int __wrap_socket(int domain, int type, int protocol)
{
	struct sim_file *file;

	sim_call();
	if (domain == AF_UNIX && protocol == 0)
		file = sim_unix_socket(type);
	else if (domain == AF_INET && (type & 0xf) == SOCK_STREAM)
		file = sim_memory_fails() ? NULL : sim_tcp_socket(type);
	else
		return (int)sim_result(-EAFNOSUPPORT);
	return file ? sim_fd_new(file, type & SOCK_CLOEXEC) : (int)sim_result(-ENOBUFS);
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t n)
{
	struct sim_file *file = call_socket(fd);

	(void)n;
	return file ? (int)sim_result(file->ops->socket->bind(file, address)) : -1;
}

int __wrap_listen(int fd, int backlog)
{
	struct sim_file *file = call_socket(fd);
	int rc;

	if (!file)
		return -1;
	rc = file->ops->socket->listen(file, backlog < 0 || backlog > BACKLOG ? BACKLOG
									      : (uint32_t)backlog);
	sim_file_changed(file);
	return (int)sim_result(rc);
}

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t n)
{
	struct sim_file *file = call_socket(fd);

	(void)n;
	return file ? (int)sim_result(file->ops->socket->connect(file, address)) : -1;
}

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *n, int flags)
{
	struct sim_file *file = call_socket(fd), *served;
	struct sockaddr_in peer = {.sin_family = AF_UNSPEC};

	if (!file)
		return -1;
	served = file->ops->socket->accept(file, &peer);
	if (!served)
		return (int)sim_result(-EAGAIN);
	if (flags & SOCK_NONBLOCK)
		served->flags |= O_NONBLOCK;
	if (address && peer.sin_family != AF_UNSPEC) {
		memcpy(address, &peer, sizeof(peer));
		*n = sizeof(peer);
	}
	return sim_fd_new(served, flags & SOCK_CLOEXEC);
}

int __wrap_getsockname(int fd, struct sockaddr *address, socklen_t *n)
{
	struct sim_file *file = call_socket(fd);
	struct sockaddr_in name;
	int rc;

	if (!file)
		return -1;
	rc = file->ops->socket->name ? file->ops->socket->name(file, &name) : -EOPNOTSUPP;
	if (rc == 0) {
		memcpy(address, &name, sizeof(name));
		*n = sizeof(name);
	}
	return (int)sim_result(rc);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct sim_file *file = call_socket(fd);
	ssize_t rc;

	if (!file)
		return -1;
	rc = file->ops->socket->send(file, msg);
	if (rc == -EAGAIN && !(flags & MSG_DONTWAIT) && !(file->flags & O_NONBLOCK))
		sim_fail("a sendmsg that blocks");
	sim_note((uint64_t)rc << 8 | 6);
	return sim_result(rc);
}

ssize_t __wrap_send(int fd, const void *from, size_t bytes, int flags)
{
	struct iovec iov = {(void *)(uintptr_t)from, bytes};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	return __wrap_sendmsg(fd, &msg, flags);
}

ssize_t __wrap_sendto(int fd, const void *from, size_t bytes, int flags,
		      const struct sockaddr *address, socklen_t n)
{
	(void)address;
	(void)n;
	return __wrap_send(fd, from, bytes, flags);
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct sim_file *file = call_socket(fd);
	ssize_t rc;

	if (!file)
		return -1;
	rc = file->ops->socket->receive(file, msg, flags);
	sim_note((uint64_t)rc << 8 | 7);
	return sim_result(rc);
}

/* If flags has MSG_TRUNC and the message was longer than `bytes`, returns more than `bytes`. */
ssize_t __wrap_recv(int fd, void *to, size_t bytes, int flags)
{
	struct iovec iov = {to, bytes};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n = __wrap_recvmsg(fd, &msg, flags);

	/* instead of the whole length: gantry only compares the result with `bytes` */
	return n > 0 && (flags & MSG_TRUNC) && (msg.msg_flags & MSG_TRUNC) ? n + 1 : n;
}

int __wrap_shutdown(int fd, int how)
{
	struct sim_file *file = call_socket(fd);

	return file ? (int)sim_result(file->ops->socket->shutdown(file, how)) : -1;
}

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *n)
{
	struct sim_file *file = call_socket(fd);
	int rc;

	if (!file)
		return -1;
	rc = file->ops->socket->get(file, level, option, value);
	if (rc < 0)
		return (int)sim_result(rc);
	*n = (socklen_t)rc;
	return 0;
}

int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t n)
{
	struct sim_file *file = call_socket(fd);

	return file ? (int)sim_result(file->ops->socket->set(file, level, option, value, n)) : -1;
}
