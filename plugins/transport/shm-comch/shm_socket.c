/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_socket.c - sends and receives frames with descriptors on a Unix socket, and identifies the
 * peer.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shm_comch.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

void comch_close_fds(const int *fds, unsigned int n)
{
	while (n)
		if (fds[--n] >= 0)
			close(fds[n]);
}

unsigned int comch_count_open(const int *fds, unsigned int n)
{
	unsigned int n_open = 0;

	while (n)
		n_open += fds[--n] >= 0;
	return n_open;
}

uint64_t comch_now(const struct comch_device *dev)
{
	return dev->host->now_ns(dev->host);
}

ssize_t comch_socket_send(int fd, const void *frame, size_t len, const int *fds, unsigned int n_fds)
{
	char control[CMSG_SPACE(sizeof(int) * COMCH_FDS_MAX)] __attribute__((aligned(8))) = {0};
	struct iovec iov = {(void *)(uintptr_t)frame, len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t rc;

	if (n_fds) {
		struct cmsghdr *cmsg;

		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * n_fds);
	}
	do
		rc = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (rc < 0 && errno == EINTR);
	if (rc >= 0)
		return rc;
	/* ETOOMANYREFS: too many descriptors in flight, because the peer does not read */
	return errno == EWOULDBLOCK || errno == ETOOMANYREFS || errno == ENOBUFS ? -EAGAIN : -errno;
}

static unsigned int take_fds(struct msghdr *msg, int *fds, const char **why_p)
{
	unsigned int n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t bytes = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
			*why_p = "unexpected control data";
			continue;
		}
		for (size_t i = 0; i < bytes / sizeof(int) && n < COMCH_FDS_MAX; i++)
			memcpy(&fds[n++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
	}
	return n;
}

/*
 * Called after 0 bytes were received. Returns true if the peer has closed the socket. Otherwise the
 * peer has sent an empty message, which is not a frame.
 */
static int has_ended(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLRDHUP};

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLRDHUP | POLLERR));
}

/*
 * Returns true if this process has no free descriptor. The kernel drops descriptors if they do not
 * fit into the buffer or exceed the limit of the process.
 */
static int out_of_fds(int fd)
{
	int probe = fcntl(fd, F_DUPFD_CLOEXEC, 0), exhausted = probe < 0;

	if (!exhausted)
		close(probe);
	return exhausted;
}

/*
 * The message is read with MSG_PEEK and then removed with a second call. With a single call the
 * kernel would drop descriptors that do not fit into the buffer or exceed the limit of this
 * process. Their last close would run in this thread and could block.
 */
ssize_t comch_socket_recv(int fd, struct comch_frame *frame, int *fds, unsigned int *n_fds_p,
			  const char **why_p)
{
	char control[CMSG_SPACE(sizeof(int) * COMCH_FDS_MAX)] __attribute__((aligned(8)));
	struct iovec iov = {frame, sizeof(*frame)};
	struct msghdr msg;
	const char *why = NULL;
	unsigned int n;
	ssize_t len;
	int resets = 0;

	do {
		msg = (struct msghdr){.msg_iov = &iov,
				      .msg_iovlen = 1,
				      .msg_control = control,
				      .msg_controllen = sizeof(control)};
		len = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_PEEK);
		/*
		 * ECONNRESET: the peer closed with unread frames in its socket. The kernel reports
		 * it once, before the frames that the peer had sent
		 */
	} while (len < 0 && (errno == EINTR || (errno == ECONNRESET && resets++ == 0)));
	*n_fds_p = 0;
	if (len < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? -EAGAIN : 0;
	n = *n_fds_p = take_fds(&msg, fds, &why);
	/* ECONNRESET: the peer has closed since MSG_PEEK, and the message is still queued */
	while (!(msg.msg_flags & MSG_CTRUNC) && recv(fd, NULL, 0, MSG_DONTWAIT) < 0 &&
	       (errno == EINTR || (errno == ECONNRESET && resets++ == 0)))
		;
	if (msg.msg_flags & MSG_TRUNC)
		why = "frame longer than the maximum";
	else if (msg.msg_flags & MSG_CTRUNC)
		why = "too many descriptors";
	else if (len == 0 && n == 0 && !why && has_ended(fd))
		return 0;
	else if (len == 0)
		why = "empty frame";
	if (why) {
		int exhausted = (msg.msg_flags & MSG_CTRUNC) && out_of_fds(fd);

		*why_p = exhausted ? "this process has no free file descriptor: raise ulimit -n"
				   : why;
		return exhausted ? -EMFILE : -EPROTO;
	}
	return len;
}

int comch_socket_peer(int fd, struct gantry_peer *peer)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	*peer = (struct gantry_peer){
		.pid = cred.pid > 0 ? cred.pid : -1, .uid = cred.uid, .gid = cred.gid};
	snprintf(peer->address, sizeof(peer->address), "pid %d uid %u", (int)peer->pid,
		 (unsigned int)cred.uid);
	return 0;
}

/* Returns the start time of a process in ticks since boot; 0: unknown. */
static unsigned long long start_time(int32_t pid)
{
	unsigned long long start = 0;
	char path[40], text[1024], *p;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	/* the process name can contain any character; the fields after it are numbers */
	p = strrchr(text, ')');
	if (!p ||
	    sscanf(p + 1,
		   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		   &start) != 1)
		return 0;
	return start;
}

int comch_socket_pidfd(int fd, int32_t pid)
{
	socklen_t len = sizeof(int);
	unsigned long long before;
	int pidfd = -1;

	if (pid <= 0)
		return -1;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) == 0) {
		fcntl(pidfd, F_SETFD, FD_CLOEXEC);
		return pidfd;
	}
	before = start_time(pid);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd >= 0 && (before == 0 || start_time(pid) != before)) {
		close(pidfd); /* the pid has been reused */
		pidfd = -1;
	}
	return pidfd;
}
