/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_stream.c - how a link sends and receives: through a stream of the host if that has a record
 * filter, else in clear. The caller holds the lock of the lane of a link.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "tcp.h"

static const struct gantry_stream_ops *ops_of(const struct tcp_device *dev)
{
	return dev->host->records->streams;
}

static const struct gantry_stream_ops *ops_of_link(const struct tcp_link *link)
{
	return ops_of(link->lane->conn->dev);
}

int tcp_stream_open(const struct tcp_device *dev, int fd, bool listens, const void *secret,
		    size_t bytes, const struct tcp_hello *hello, void **stream_p)
{
	unsigned flags = (listens ? GANTRY_STREAM_LISTENS : 0) |
			 (dev->conf->kernel_tls ? GANTRY_STREAM_KERNEL : 0);

	/* the handshake fails if the hello has been changed on its way */
	return ops_of(dev)->open(dev->host, fd, flags, secret, bytes, hello, sizeof(*hello),
				 stream_p);
}

void tcp_stream_close(const struct tcp_device *dev, void *stream)
{
	if (stream)
		ops_of(dev)->close(stream);
}

/* A handshake is complete: count whether the kernel encrypts now. */
static void count_kernel_tls(struct tcp_device *dev, void *stream)
{
	if (ops_of(dev)->pending(stream) & GANTRY_STREAM_KERNEL) {
		gantry_count(dev->kernel_tls_sockets, 1);
	} else if (dev->conf->kernel_tls && !dev->warned_kernel_tls) {
		dev->warned_kernel_tls = true;
		gantry_log_warn(dev->host, "kernel_tls: this kernel has no TLS, so the process "
					   "encrypts: load the module tls");
	}
}

int tcp_stream_handshake(struct tcp_device *dev, void *stream, uint32_t *events_p)
{
	int rc = ops_of(dev)->handshake(stream);
	bool unsent = rc == -EAGAIN && ops_of(dev)->pending(stream) & GANTRY_STREAM_OUTPUT;

	if (rc == 0)
		count_kernel_tls(dev, stream);
	*events_p = EPOLLIN | (unsent ? (uint32_t)EPOLLOUT : 0);
	return rc;
}

ssize_t tcp_link_write(struct tcp_link *link, struct iovec *iov, size_t n)
{
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = n};
	ssize_t sent;

	if (link->stream)
		return ops_of_link(link)->send(link->stream, iov, n);
	sent = sendmsg(link->fd, &msg, MSG_NOSIGNAL);
	return sent < 0 ? -errno : sent;
}

ssize_t tcp_link_read(struct tcp_link *link, struct iovec *iov, size_t n)
{
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = n};
	ssize_t got;

	if (link->stream)
		return ops_of_link(link)->receive(link->stream, iov, n);
	got = recvmsg(link->fd, &msg, 0);
	return got < 0 ? -errno : got;
}

bool tcp_link_unsent(const struct tcp_link *link)
{
	return link->stream && ops_of_link(link)->pending(link->stream) & GANTRY_STREAM_OUTPUT;
}

bool tcp_link_inside(const struct tcp_link *link)
{
	return link->stream && ops_of_link(link)->pending(link->stream) & GANTRY_STREAM_INPUT;
}

bool tcp_link_finish(struct tcp_link *link)
{
	if (link->stream && ops_of_link(link)->finish(link->stream) == -EAGAIN)
		return false;
	/* the kernel may have records that the socket has not taken: close() sends them */
	if (!link->stream || !(ops_of_link(link)->pending(link->stream) & GANTRY_STREAM_KERNEL))
		shutdown(link->fd, SHUT_WR);
	return true;
}
