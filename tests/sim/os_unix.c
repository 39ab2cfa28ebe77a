/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * os_unix.c - Unix sockets: messages with descriptors between processes, and credentials of peers
 */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "os.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define QUEUE_BYTES (208u << 10) /* most queued bytes of a direction */
#define QUEUE_DGRAMS 64u         /* most queued messages of a datagram socket */
#define RIGHTS 253u

uint32_t sim_messages;

struct message {
	struct message *next;
	size_t bytes, done; /* done: bytes of a stream that were read */
	uint32_t n_files;
	struct sim_file *files[RIGHTS];
	uint8_t data[];
};

struct socket {
	struct sim_file file;
	int type;
	struct socket *peer; /* NULL: the socket has no peer, or the peer was closed */
	bool was_connected, reset, listening, is_deaf; /* is_deaf: after SHUT_RD */
	mode_t mode;                                   /* for bind() */
	uint64_t patience_ns;                          /* timeout of a blocking receive; 0: none */
	struct ucred creator, peer_cred;
	struct message *first, **last; /* messages to receive */
	size_t queued;
	uint32_t n_queued;
	/* of a listener: connections to accept, the oldest first, linked by next_pending */
	struct socket *pending, *next_pending;
	uint32_t n_pending, backlog;
};

static uint32_t socket_poll(struct sim_file *file)
{
	const struct socket *s = (const struct socket *)file;
	uint32_t events = 0;

	if (s->listening)
		return s->n_pending != 0 ? POLLIN : 0;
	if (s->first)
		events |= POLLIN;
	if (s->was_connected && !s->peer)
		events |= POLLIN | POLLOUT | POLLHUP | POLLRDHUP;
	else if (s->peer && s->peer->queued < QUEUE_BYTES &&
		 (s->type != SOCK_DGRAM || s->peer->n_queued < QUEUE_DGRAMS))
		events |= POLLOUT;
	return events;
}

static int socket_stat(struct sim_file *file, struct stat *st)
{
	(void)file;
	st->st_mode = S_IFSOCK | 0777;
	return 0;
}

static void drop_message(struct message *m)
{
	for (uint32_t i = 0; i < m->n_files; i++)
		sim_file_put(m->files[i]);
	sim_host_free(m);
	sim_messages--;
}

static struct message *take_message(struct socket *s)
{
	struct message *m = s->first;

	s->first = m->next;
	if (!s->first)
		s->last = &s->first;
	s->queued -= m->bytes;
	s->n_queued--;
	return m;
}

static void socket_close(struct sim_file *file)
{
	struct socket *s = (struct socket *)file;

	sim_path_socket_gone(s);
	while (s->pending) {
		struct socket *waiting = s->pending;

		s->pending = waiting->next_pending;
		waiting->next_pending = NULL;
		sim_file_put(&waiting->file);
	}
	if (s->peer) {
		s->peer->reset = s->first && s->type != SOCK_DGRAM;
		s->peer->peer = NULL;
		sim_file_changed(&s->peer->file);
	}
	while (s->first)
		drop_message(take_message(s));
}

static ssize_t socket_read(struct sim_file *file, void *to, size_t bytes, off_t offset);
static ssize_t socket_write(struct sim_file *file, const void *from, size_t bytes, off_t offset);

static const struct sim_socket_ops unix_ops;

static const struct sim_file_ops socket_ops = {.kind = "socket",
					       .socket = &unix_ops,
					       .poll = socket_poll,
					       .read = socket_read,
					       .write = socket_write,
					       .stat = socket_stat,
					       .close = socket_close};

static struct socket *new_socket(int type)
{
	const struct sim_proc *proc = sim_proc_self();
	struct socket *s = sim_file_new(&socket_ops, sizeof(*s),
					O_RDWR | (type & SOCK_NONBLOCK ? O_NONBLOCK : 0));

	s->type = type & 0xf;
	s->mode = 0777;
	s->last = &s->first;
	s->creator = (struct ucred){.pid = proc->pid, .uid = proc->uid, .gid = proc->uid};
	return s;
}

static void join(struct socket *a, struct socket *b)
{
	a->peer = b;
	b->peer = a;
	a->was_connected = b->was_connected = true;
	a->peer_cred = b->creator;
	b->peer_cred = a->creator;
}

/* -- creation -- */

struct sim_file *sim_unix_socket(int type)
{
	return &new_socket(type)->file;
}

int __wrap_socketpair(int domain, int type, int protocol, int fds[2])
{
	struct socket *a, *b;

	sim_call();
	if (domain != AF_UNIX || protocol != 0)
		return (int)sim_result(-EAFNOSUPPORT);
	a = new_socket(type);
	b = new_socket(type);
	join(a, b);
	fds[0] = sim_fd_new(&a->file, type & SOCK_CLOEXEC);
	fds[1] = sim_fd_new(&b->file, type & SOCK_CLOEXEC);
	if (fds[0] >= 0 && fds[1] >= 0)
		return 0;
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			__wrap_close(fds[i]);
	errno = EMFILE;
	return -1;
}

static int unix_bind(struct sim_file *file, const struct sockaddr *address)
{
	const struct sockaddr_un *sun = (const struct sockaddr_un *)address;

	return sim_path_bind(sun->sun_path, ((struct socket *)file)->mode, (struct socket *)file);
}

bool sim_unix_chmod(struct sim_file *file, mode_t mode)
{
	if (file->ops != &socket_ops)
		return false;
	((struct socket *)file)->mode = mode;
	return true;
}

static int unix_listen(struct sim_file *file, uint32_t backlog)
{
	struct socket *s = (struct socket *)file;

	s->listening = true;
	s->backlog = backlog;
	return 0;
}

static int unix_connect(struct sim_file *file, const struct sockaddr *address)
{
	const struct sockaddr_un *sun = (const struct sockaddr_un *)address;
	struct socket *s = (struct socket *)file, *listener, *served, **at;

	listener = sim_path_socket(sun->sun_path);
	if (!listener)
		return -errno;
	if (!listener->listening)
		return -ECONNREFUSED;
	if (listener->type != s->type)
		return -EPROTOTYPE;
	if (listener->n_pending > listener->backlog)
		return -EAGAIN; /* gantry uses non-blocking connect() */
	served = new_socket(s->type);
	served->creator = listener->creator;
	join(s, served);
	for (at = &listener->pending; *at; at = &(*at)->next_pending)
		;
	*at = served;
	listener->n_pending++;
	sim_file_changed(&listener->file);
	sim_file_changed(&s->file);
	return 0;
}

static struct sim_file *unix_accept(struct sim_file *file, struct sockaddr_in *peer)
{
	struct socket *s = (struct socket *)file, *served = s->pending;

	(void)peer;
	if (!served)
		return NULL;
	s->pending = served->next_pending;
	s->n_pending--;
	served->next_pending = NULL;
	sim_file_changed(&s->file);
	return &served->file;
}

/* -- messages -- */

static bool is_full(const struct socket *s)
{
	return s->queued >= QUEUE_BYTES || (s->type == SOCK_DGRAM && s->n_queued >= QUEUE_DGRAMS);
}

static ssize_t put_message(struct socket *s, const struct iovec *iov, size_t n,
			   struct sim_file **files, uint32_t n_files)
{
	struct message *m;
	size_t bytes = 0;

	if (!s->peer)
		return s->was_connected ? -EPIPE : -ENOTCONN;
	if (s->peer->is_deaf)
		return -EPIPE;
	if (is_full(s->peer))
		return -EAGAIN;
	for (size_t i = 0; i < n; i++)
		bytes += iov[i].iov_len;
	m = sim_host_alloc(sizeof(*m) + bytes);
	for (size_t i = 0; i < n; m->bytes += iov[i++].iov_len)
		memcpy(m->data + m->bytes, iov[i].iov_base, iov[i].iov_len);
	for (uint32_t i = 0; i < n_files; i++) {
		sim_file_get(files[i]);
		m->files[i] = files[i];
	}
	m->n_files = n_files;
	sim_messages++;
	*s->peer->last = m;
	s->peer->last = &m->next;
	s->peer->queued += bytes;
	s->peer->n_queued++;
	sim_file_changed(&s->peer->file);
	sim_file_changed(&s->file);
	return (ssize_t)bytes;
}

/* Get the files of a message to send. Returns their number, or -EBADF. */
static int files_of(const struct msghdr *msg, struct sim_file **files)
{
	uint32_t n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c;
	     c = CMSG_NXTHDR((struct msghdr *)(uintptr_t)msg, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		for (size_t i = 0; i < count && n < RIGHTS; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			files[n] = sim_fd_file(fd);
			if (!files[n++])
				return -EBADF;
		}
	}
	return (int)n;
}

static ssize_t unix_send(struct sim_file *file, const struct msghdr *msg)
{
	struct sim_file *files[RIGHTS];
	int n = files_of(msg, files);

	return n < 0 ? n
		     : put_message((struct socket *)file, msg->msg_iov, msg->msg_iovlen, files,
				   (uint32_t)n);
}

static ssize_t socket_write(struct sim_file *file, const void *from, size_t bytes, off_t offset)
{
	struct iovec iov = {(void *)(uintptr_t)from, bytes};

	(void)offset;
	return put_message((struct socket *)file, &iov, 1, NULL, 0);
}

/* Copy as much of the message as fits. Returns the number of copied bytes. */
static size_t scatter(const struct message *m, const struct iovec *iov, size_t n)
{
	size_t done = 0;

	for (size_t i = 0; i < n && m->done + done < m->bytes; i++) {
		size_t part = m->bytes - m->done - done;

		part = part < iov[i].iov_len ? part : iov[i].iov_len;
		memcpy(iov[i].iov_base, m->data + m->done + done, part);
		done += part;
	}
	return done;
}

/* Open the files of the message in the process, as far as the control buffer reaches. */
static void give_files(struct message *m, struct msghdr *msg, bool cloexec)
{
	struct cmsghdr *c = msg->msg_control;
	size_t room = msg->msg_controllen >= CMSG_LEN(0)
			      ? (msg->msg_controllen - CMSG_LEN(0)) / sizeof(int)
			      : 0;
	uint32_t n = 0;

	while (n < m->n_files && n < room) {
		int fd;

		sim_file_get(m->files[n]);
		fd = sim_fd_new(m->files[n], cloexec);
		if (fd < 0)
			break;
		memcpy(CMSG_DATA(c) + n++ * sizeof(int), &fd, sizeof(fd));
	}
	if (n < m->n_files)
		msg->msg_flags |= MSG_CTRUNC;
	msg->msg_controllen = 0;
	if (n != 0) {
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		msg->msg_controllen = CMSG_SPACE(n * sizeof(int));
	}
}

/* flags: MSG_PEEK, MSG_CMSG_CLOEXEC */
static ssize_t get_message(struct socket *s, struct msghdr *msg, int flags)
{
	struct message *m = s->first;
	size_t n;

	msg->msg_flags = 0;
	if (s->reset) {
		s->reset = false;
		return -ECONNRESET;
	}
	if (!m) {
		msg->msg_controllen = 0;
		return s->peer && !s->is_deaf ? -EAGAIN : s->was_connected ? 0 : -ENOTCONN;
	}
	n = scatter(m, msg->msg_iov, msg->msg_iovlen);
	give_files(m, msg, flags & MSG_CMSG_CLOEXEC);
	if (flags & MSG_PEEK)
		return (ssize_t)n;
	if (s->type == SOCK_STREAM && m->done + n < m->bytes) {
		m->done += n;
		/* the first byte brings the files; the rest of the message has none */
		while (m->n_files > 0)
			sim_file_put(m->files[--m->n_files]);
		return (ssize_t)n;
	}
	if (m->done + n < m->bytes)
		msg->msg_flags |= MSG_TRUNC;
	drop_message(take_message(s));
	sim_file_changed(&s->file);
	if (s->peer)
		sim_file_changed(&s->peer->file);
	return (ssize_t)n;
}

static bool has_arrived(void *arg)
{
	const struct socket *s = arg;

	return s->first || s->reset || !s->peer;
}

static ssize_t unix_receive(struct sim_file *file, struct msghdr *msg, int flags)
{
	struct socket *s = (struct socket *)file;

	if (!(flags & MSG_DONTWAIT) && !(s->file.flags & O_NONBLOCK) && !has_arrived(s))
		sim_block(has_arrived, s,
			  s->patience_ns != 0 ? sim_now() + s->patience_ns : SIM_NEVER);
	return get_message(s, msg, flags);
}

static int unix_shutdown(struct sim_file *file, int how)
{
	struct socket *s = (struct socket *)file, *peer = s->peer;

	if (how == SHUT_RD) {
		s->is_deaf = true;
		return 0;
	}
	if (how != SHUT_RDWR)
		sim_fail("shutdown of writing");
	if (!peer)
		return s->was_connected ? 0 : -ENOTCONN;
	s->peer = peer->peer = NULL;
	sim_file_changed(&s->file);
	sim_file_changed(&peer->file);
	return 0;
}

static ssize_t socket_read(struct sim_file *file, void *to, size_t bytes, off_t offset)
{
	struct iovec iov = {to, bytes};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	(void)offset;
	return get_message((struct socket *)file, &msg, MSG_CMSG_CLOEXEC);
}

/* -- options -- */

static int unix_get(struct sim_file *file, int level, int option, void *value)
{
	struct socket *s = (struct socket *)file;
	int pidfd;

	if (level != SOL_SOCKET)
		return -ENOPROTOOPT;
	if (option == SO_DOMAIN || option == SO_TYPE) {
		const int is = option == SO_DOMAIN ? AF_UNIX : s->type;

		memcpy(value, &is, sizeof(is));
		return sizeof(is);
	}
	if (option == SO_PEERCRED) {
		memcpy(value, &s->peer_cred, sizeof(s->peer_cred));
		return sizeof(s->peer_cred);
	}
	if (option != SO_PEERPIDFD)
		return -ENOPROTOOPT;
	pidfd = sim_pidfd_open(s->peer_cred.pid);
	if (pidfd < 0)
		return -errno;
	memcpy(value, &pidfd, sizeof(pidfd));
	return sizeof(pidfd);
}

static int unix_set(struct sim_file *file, int level, int option, const void *value, socklen_t n)
{
	struct socket *s = (struct socket *)file;
	const struct timeval *tv = value;

	if (level == SOL_SOCKET && option == SO_RCVTIMEO && n == sizeof(*tv))
		s->patience_ns = (uint64_t)tv->tv_sec * 1000000000u + (uint64_t)tv->tv_usec * 1000u;
	return 0;
}

static const struct sim_socket_ops unix_ops = {
	.bind = unix_bind,
	.listen = unix_listen,
	.connect = unix_connect,
	.accept = unix_accept,
	.send = unix_send,
	.receive = unix_receive,
	.shutdown = unix_shutdown,
	.get = unix_get,
	.set = unix_set,
};
