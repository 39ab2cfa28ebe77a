/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unix-socket.c - a transport of one machine: messages over UNIX sockets, regions that are mapped
 *
 * The example is short. Messages, credits and polls are system calls, which the contract of a
 * transport excludes while the peer polls. There is no remote access, and no message has data of a
 * region: roles of gantry need neither. The exporter trusts the importer to unmap a region before
 * it reports the release. The importer does not detect pages that the exporter frees later, or
 * report mappings (gantry/hold.h). A client trusts only listeners of its own user or root.
 *
 *     cc -O2 -fPIC -shared -Wl,-z,defs $(pkg-config --cflags gantry-plugin) \
 *         -o unix-socket.so unix-socket.c
 *     gantry run unix-socket.conf --plugin-dir . \
 *         --plugin-dir $(pkg-config --variable=plugindir gantry-plugin)
 */
#define _GNU_SOURCE 1
#define GANTRY_API_VERSION 1

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <gantry/memfd.h>
#include <gantry/transport.h>

#define DEPTH 4096u      /* maximum number of receives of a consumer */
#define REGIONS 64u      /* maximum number of exports of a connection */
#define CONSUMERS 256u   /* maximum number of consumers of one end of a connection */
#define BUDGET 256       /* maximum events of a progress(), so that other devices get their turn */
#define KIND 0x756e6978u /* value of `domain` in regions of this transport */
#define TYPE (SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC)

/* Frames on the socket of a connection. SOCK_SEQPACKET delivers whole frames, in order. */
enum type {
	ACCEPTED = 1, /* first frame of a listener, unless it has sent a message before */
	REJECTED,     /* the listener rejects the connection */
	MESSAGE,      /* a control message, which follows the frame */
	CONSUMER,     /* consumer `id` exists. Carries the socket of its producers */
	NO_CONSUMER,  /* consumer `id` is destroyed */
	EXPORT,       /* a region can be imported. Carries its memfd */
	REVOKE,       /* the receiver must release the region */
	RELEASED      /* the sender has released the region */
};

struct frame {
	uint32_t type;
	uint32_t id; /* of a region: number of the export on this connection, from 1 */
	uint32_t handle, rights;
	uint64_t length, offset; /* of a region: bytes, and offset in its memfd */
};

/* A message on the socket of a consumer. */
struct message {
	uint32_t imm_len;
	uint8_t imm[GANTRY_IMM_MAX];
};

struct options {
	int64_t backlog;
};

struct device {
	int epoll; /* first member */
	const struct gantry_host *host;
	const struct options *options;
	uint64_t *n_accepted;
	struct conn *dead; /* to be freed by the next progress() */
	struct frame in;   /* the received frame; `data` has what follows it */
	uint8_t data[GANTRY_CTRL_MAX];
};

/* An export or an import. */
struct share {
	struct frame frame; /* EXPORT; id 0: this entry is free */
	int fd, revoked;
	uint32_t refs; /* of an import: regions that are not released */
};

enum state { LISTENING, CONNECTING, OPEN, ENDED };

/* A connection or a listener. The control thread uses it; lanes read its state. */
struct conn {
	struct device *dev;
	struct conn *next; /* next connection of the list `dead` */
	int fd, state;
	const struct gantry_conn_events *events; /* NULL: us_disconnect() was called */
	void *arg;
	struct gantry_peer peer;
	struct share exports[REGIONS], imports[REGIONS];
	uint32_t last_export, last_outlet;
	uint8_t consumers[CONSUMERS]; /* 1: this id is in use */
	struct outlet {
		int fd; /* 0: there is no such consumer */
		uint32_t serial, credit;
	} outlets[CONSUMERS]; /* consumers of the peer, by id */
};

/* One lane uses a consumer or producer. The control thread creates and destroys it. */
struct consumer {
	int fd; /* first member */
	struct conn *conn;
	uint32_t id, depth;
	int end; /* 0; 1: no producer is left; or -EPROTO */
	uint64_t n_posted, n_announced, n_received;
};

struct producer {
	struct outlet *outlet;
	struct conn *conn;
	uint32_t serial, credit;
	int fd;
};

static int us_fd(void *arg)
{
	return *(int *)arg; /* the first member of a device or a consumer */
}

/* Returns -ENOTCONN or -EAGAIN for the errno of a failed send or receive. */
static int socket_error(void)
{
	return errno == EPIPE || errno == ECONNRESET ? -ENOTCONN : -EAGAIN;
}

/* Returns 0; -EAGAIN: the socket is full; -ENOTCONN: the connection has ended. */
static int send_frame(struct conn *conn, const struct frame *frame, const void *data, size_t len,
		      int fd)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(fd))] = {0};
	struct cmsghdr *head = (struct cmsghdr *)control;
	struct iovec iov[2] = {{(void *)frame, sizeof(*frame)}, {(void *)data, len}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

	if (conn->state != OPEN)
		return -ENOTCONN;
	if (fd >= 0) {
		*head = (struct cmsghdr){CMSG_LEN(sizeof(fd)), SOL_SOCKET, SCM_RIGHTS};
		memcpy(CMSG_DATA(head), &fd, sizeof(fd));
		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
	}
	return sendmsg(conn->fd, &msg, MSG_NOSIGNAL) < 0 ? socket_error() : 0;
}

/* Send a frame that the peer waits for. If the socket is full, end the connection. */
static void send_surely(struct conn *conn, uint32_t type, uint32_t id)
{
	struct frame frame = {.type = type, .id = id};

	if (send_frame(conn, &frame, NULL, 0, -1) == -EAGAIN)
		shutdown(conn->fd, SHUT_RDWR); /* progress() will find the end */
}

static int us_send_ctrl(void *arg, const void *msg, size_t len)
{
	struct frame frame = {.type = MESSAGE};

	if (len == 0 || len > GANTRY_CTRL_MAX)
		return -EINVAL;
	return send_frame(arg, &frame, msg, len, -1);
}

enum key { ID, HANDLE };

/* Find an export or import. The entry with the id 0 is free. */
static struct share *find(struct share *table, enum key key, uint32_t value)
{
	for (struct share *s = table; s < table + REGIONS; s++)
		if (key == ID ? s->frame.id == value : s->frame.id && s->frame.handle == value)
			return s;
	return NULL;
}

/* Check that the file cannot shrink, which could cause SIGBUS, and that it has all its pages. */
static int check_memory(int fd, uint64_t offset, uint64_t length, int whole_file)
{
	uint64_t bytes, present;
	int rc;

	if (length > INT64_MAX || offset > INT64_MAX - length)
		return -ERANGE;
	rc = gantry_memfd_check(fd, offset + length, INT64_MAX, &bytes, NULL);
	return rc ? rc : gantry_memfd_check_pages(fd, whole_file ? bytes : length, &present);
}

static int us_export(void *arg, const struct gantry_region *region, uint32_t rights,
		     uint32_t handle, struct gantry_token *token_p)
{
	struct conn *conn = arg;
	struct share *e = find(conn->exports, ID, 0);
	struct frame frame = {EXPORT, conn->last_export + 1, handle,
			      rights, region->length,        region->fd_offset};
	int fd = region->fd, rc;
	char path[32];

	if (!region->length || !rights || find(conn->exports, HANDLE, handle))
		return -EINVAL;
	if (rights & ~region->rights)
		return -EACCES;
	if (fd < 0 || !e)
		return fd < 0 ? -EXDEV : -ENOSPC;
	rc = check_memory(fd, region->fd_offset, region->length, 0);
	if (rc)
		return rc;
	/* a peer without the right to write gets a descriptor that cannot write */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!(rights & GANTRY_REMOTE_WRITE))
		fd = open(path, O_RDONLY | O_CLOEXEC);
	rc = fd < 0 ? -errno : send_frame(conn, &frame, NULL, 0, fd);
	if (fd >= 0 && fd != region->fd)
		close(fd);
	if (rc)
		return rc;
	*e = (struct share){.frame = frame};
	conn->last_export = frame.id;
	*token_p = (struct gantry_token){handle, frame.id};
	return 0;
}

static int us_revoke(void *arg, uint32_t handle)
{
	struct conn *conn = arg;
	struct share *e = find(conn->exports, HANDLE, handle);

	if (!e || e->revoked)
		return -ENOENT;
	e->revoked = 1;
	send_surely(conn, REVOKE, e->frame.id);
	return 0;
}

/* End an export. The callback may use the handle of the export for another export. */
static void end_export(struct conn *conn, struct share *e, int rc)
{
	e->frame.id = 0;
	conn->events->revoked(conn->arg, conn, e->frame.handle, rc);
}

/* The functions on_X() handle a frame. They return 0, or the -errno that ends the connection. */
static int on_export(struct conn *conn, const struct frame *frame, int *fd)
{
	struct share *i = find(conn->imports, ID, 0);

	if (!i || *fd < 0 || !frame->id || !frame->length || find(conn->imports, ID, frame->id))
		return -EPROTO;
	*i = (struct share){.frame = *frame, .fd = *fd};
	*fd = -1;
	return 0;
}

/* If the import is revoked and all its regions are released, send RELEASED. */
static void end_import(struct conn *conn, struct share *i)
{
	if (!i->revoked || i->refs)
		return;
	close(i->fd);
	send_surely(conn, RELEASED, i->frame.id);
	i->frame.id = 0;
}

static int on_revoke_or_released(struct conn *conn, uint32_t type, uint32_t id)
{
	struct share *s = find(type == REVOKE ? conn->imports : conn->exports, ID, id);

	if (!id || !s || s->revoked != (type == RELEASED))
		return -EPROTO;
	s->revoked = 1;
	if (type == RELEASED)
		end_export(conn, s, 0);
	else if (s->refs)
		conn->events->revoke(conn->arg, conn, s->frame.handle);
	else
		end_import(conn, s);
	return 0;
}

static int us_import(void *arg, const struct gantry_token *token, uint32_t flags,
		     struct gantry_region **region_p)
{
	struct conn *conn = arg;
	struct share *i = find(conn->imports, ID, token->generation);
	struct gantry_region *r;
	char *file = NULL;
	int prot, rc;

	if (!token->generation || !i || i->revoked || i->frame.handle != token->handle)
		return -ENOENT;
	rc = check_memory(i->fd, i->frame.offset, i->frame.length,
			  flags & GANTRY_IMPORT_KEEPS_PAGES);
	if (rc)
		return rc;
	prot = PROT_READ | (i->frame.rights & GANTRY_REMOTE_WRITE ? PROT_WRITE : 0);
	r = calloc(1, sizeof(*r));
	if (r && (flags & GANTRY_IMPORT_MAP)) /* from byte 0: a region can begin inside a page */
		file = mmap(NULL, i->frame.offset + i->frame.length, prot, MAP_SHARED, i->fd, 0);
	if (!r || file == MAP_FAILED) {
		free(r);
		return -ENOMEM;
	}
	*r = (struct gantry_region){.addr = file ? file + i->frame.offset : NULL,
				    .length = i->frame.length,
				    .fd = i->fd,
				    .rights = i->frame.rights,
				    .fd_offset = i->frame.offset,
				    .handle = token->handle,
				    .domain = KIND,
				    .transport = i};
	i->refs++;
	*region_p = r;
	return 0;
}

static void us_release(void *conn, struct gantry_region *r)
{
	struct share *i = r->transport;

	if (r->addr)
		munmap((char *)r->addr - r->fd_offset, r->fd_offset + r->length);
	free(r);
	i->refs--;
	end_import(conn, i);
}

/* Create a connection or a listener. If there is no memory, close its socket and return NULL. */
static struct conn *create_conn(struct device *dev, int fd, int state,
				const struct gantry_conn_events *events, void *arg)
{
	struct ucred cred = {.uid = UINT32_MAX, .gid = UINT32_MAX};
	struct conn *conn = calloc(1, sizeof(*conn));
	/* edge-triggered: epoll reports a connection that accept4(2) rejects only once */
	struct epoll_event ev = {.events = state == LISTENING ? EPOLLIN | EPOLLET : EPOLLIN,
				 .data.ptr = conn};

	if (!conn || epoll_ctl(dev->epoll, EPOLL_CTL_ADD, fd, &ev)) {
		free(conn);
		close(fd);
		return NULL;
	}
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &(socklen_t){sizeof(cred)});
	conn->dev = dev;
	conn->fd = fd;
	conn->state = state;
	conn->events = events;
	conn->arg = arg;
	conn->peer = (struct gantry_peer){cred.pid ? cred.pid : -1, cred.uid, cred.gid, "local"};
	return conn;
}

static void close_socket(struct conn *conn)
{
	if (conn->state == ENDED)
		return;
	epoll_ctl(conn->dev->epoll, EPOLL_CTL_DEL, conn->fd, NULL);
	close(conn->fd);
	__atomic_store_n(&conn->state, ENDED, __ATOMIC_RELAXED);
}

/* Disconnect or unlisten. The caller can be a callback of conn, so progress() frees conn later. */
static void us_disconnect(void *arg)
{
	struct conn *conn = arg;

	for (uint32_t i = 0; i < REGIONS; i++)
		if (conn->imports[i].frame.id)
			close(conn->imports[i].fd);
	for (uint32_t i = 0; i < CONSUMERS; i++)
		if (conn->outlets[i].fd)
			close(conn->outlets[i].fd);
	close_socket(conn);
	conn->events = NULL;
	conn->next = conn->dev->dead;
	conn->dev->dead = conn;
}

static int on_consumer(struct conn *conn, const struct frame *frame, int *fd)
{
	struct outlet *o = &conn->outlets[frame->id % CONSUMERS];
	int up = frame->type == CONSUMER;

	if (frame->id >= CONSUMERS || up == (o->fd > 0) || up != (*fd > 0))
		return -EPROTO;
	if (!up)
		close(o->fd);
	*o = (struct outlet){.fd = up ? *fd : 0, .serial = ++conn->last_outlet};
	*fd = -1;
	conn->events->consumer(conn->arg, conn, frame->id, up);
	return 0;
}

static int on_frame(struct conn *conn, size_t len, int *fd)
{
	const struct frame *frame = &conn->dev->in;

	if (frame->type == REJECTED)
		return -EACCES;
	if (conn->state == CONNECTING) {
		if (conn->peer.uid != geteuid() && conn->peer.uid != 0)
			return -EACCES;
		conn->state = OPEN;
		conn->events->connected(conn->arg, conn, &conn->peer);
	}
	if (frame->type == ACCEPTED || !conn->events) /* NULL: the callback has disconnected */
		return 0;
	switch (frame->type) {
	case MESSAGE:
		if (!len)
			return -EPROTO;
		conn->events->message(conn->arg, conn, conn->dev->data, len);
		return 0;
	case CONSUMER:
	case NO_CONSUMER:
		return on_consumer(conn, frame, fd);
	case EXPORT:
		return on_export(conn, frame, fd);
	case REVOKE:
	case RELEASED:
		return on_revoke_or_released(conn, frame->type, frame->id);
	}
	return -EPROTO;
}

/* Receive one frame. Returns the number of events. */
static int serve_conn(struct conn *conn)
{
	struct device *dev = conn->dev;
	struct iovec iov[2] = {{&dev->in, sizeof(dev->in)}, {dev->data, sizeof(dev->data)}};
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
	struct msghdr msg = {.msg_iov = iov,
			     .msg_iovlen = 2,
			     .msg_control = control,
			     .msg_controllen = CMSG_LEN(sizeof(int))}; /* one descriptor */
	ssize_t n = recvmsg(conn->fd, &msg, MSG_CMSG_CLOEXEC);
	int fd = -1, rc;

	/* ECONNRESET: the peer closed its end with unread frames; the next call gets its frames */
	if (n < 0 && (errno == EAGAIN || errno == ECONNRESET))
		return 0;
	if (n > 0 && CMSG_FIRSTHDR(&msg) && CMSG_FIRSTHDR(&msg)->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	if (n <= 0)
		rc = conn->state == CONNECTING ? -ECONNREFUSED : -ENOTCONN;
	else if (n < (ssize_t)sizeof(dev->in) || (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		rc = -EPROTO;
	else
		rc = on_frame(conn, (size_t)n - sizeof(dev->in), &fd);
	if (fd >= 0)
		close(fd);
	if (!rc || !conn->events)
		return 1;
	if (rc == -EPROTO)
		gantry_log_warn(dev->host, "process %d sends an invalid frame", conn->peer.pid);
	close_socket(conn);
	/* -ENOTCONN: the peer has ended the connection, so it no longer uses the memory */
	for (struct share *e = conn->exports; e < conn->exports + REGIONS && conn->events; e++)
		if (e->frame.id)
			end_export(conn, e, rc == -ENOTCONN ? 0 : -ETIMEDOUT);
	if (conn->events)
		conn->events->closed(conn->arg, conn, rc);
	return 1;
}

/* Accept all connections that wait. Returns the number of events. */
static int serve_listener(struct conn *l)
{
	struct conn *conn;
	int fd, n = 0, rejected;

	while (l->events && (fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		conn = create_conn(l->dev, fd, OPEN, l->events, l->arg);
		if (!conn)
			continue;
		gantry_count(l->dev->n_accepted, 1);
		rejected = l->events->accept(l->arg, conn, &conn->peer, &conn->arg);
		send_surely(conn, rejected ? REJECTED : ACCEPTED, 0);
		if (rejected)
			us_disconnect(conn);
		n++;
	}
	return n;
}

static int new_socket(const char *service, struct sockaddr_un *sun)
{
	int fd;

	*sun = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (!*service || strlen(service) > 63)
		return -EINVAL;
	/* the abstract namespace: the name begins with a byte 0 */
	snprintf(sun->sun_path + 1, sizeof(sun->sun_path) - 1, "gantry/%s", service);
	fd = socket(AF_UNIX, TYPE, 0);
	return fd < 0 ? -errno : fd;
}

static int us_listen(void *dev, const char *service, const struct gantry_conn_events *events,
		     void *arg, void **listener_p)
{
	const struct device *device = dev;
	struct sockaddr_un sun;
	int fd = new_socket(service, &sun), rc;

	if (fd < 0)
		return fd;
	if (bind(fd, (struct sockaddr *)&sun, sizeof(sun)) ||
	    listen(fd, (int)device->options->backlog)) {
		rc = -errno;
		close(fd);
		return rc;
	}
	*listener_p = create_conn(dev, fd, LISTENING, events, arg);
	return *listener_p ? 0 : -ENOMEM;
}

static int us_connect(void *dev, const char *service, const struct gantry_conn_events *events,
		      void *arg, void **conn_p)
{
	struct sockaddr_un sun;
	int fd = new_socket(service, &sun);

	if (fd < 0)
		return fd;
	/* If it fails, progress() ends the connection: epoll(7) reports a socket without a peer. */
	connect(fd, (struct sockaddr *)&sun, sizeof(sun));
	*conn_p = create_conn(dev, fd, CONNECTING, events, arg);
	return *conn_p ? 0 : -ENOMEM;
}

static const struct gantry_option options[] = {
	{"backlog", GANTRY_OPT_INT, offsetof(struct options, backlog), "128", 1, SOMAXCONN, NULL,
	 NULL, "Connections of a listener that can wait until it accepts them."},
	GANTRY_OPTION_END,
};

static int us_open(const struct gantry_host *host, const void *conf, void **device_p)
{
	struct device *dev = calloc(1, sizeof(*dev));
	int rc;

	errno = ENOMEM; /* for a counter, which need not set it */
	if (!dev || !(dev->n_accepted = host->counter(host, "accepted")) ||
	    (dev->epoll = epoll_create1(EPOLL_CLOEXEC)) < 0) {
		rc = -errno;
		gantry_log_error(host, "cannot open: %s", strerror(-rc));
		free(dev);
		return rc;
	}
	dev->host = host;
	dev->options = conf;
	*device_p = dev;
	return 0;
}

static void us_close(void *arg)
{
	struct device *dev = arg;

	for (struct conn *conn; (conn = dev->dead); free(conn))
		dev->dead = conn->next;
	close(dev->epoll);
	free(dev);
}

static void us_info(void *dev, struct gantry_device_info *info)
{
	(void)dev;
	*info = (struct gantry_device_info){
		.caps = GANTRY_CAP_MAPPED,
		.max_depth = DEPTH,
		.max_regions = REGIONS,
		.max_region_bytes = INT64_MAX,
		.detail = "abstract UNIX sockets of this network namespace",
	};
}

static int us_progress(void *arg)
{
	struct device *dev = arg;
	struct epoll_event ev;
	int n = 0;

	for (struct conn *conn; (conn = dev->dead); free(conn))
		dev->dead = conn->next;
	/* one at a time, because a callback may close the socket of the next event */
	for (int i = 0; i < BUDGET && epoll_wait(dev->epoll, &ev, 1, 0) == 1; i++) {
		struct conn *conn = ev.data.ptr;

		n += conn->state == LISTENING ? serve_listener(conn) : serve_conn(conn);
	}
	return n;
}

/*
 * A consumer has one end of a pair of sockets, and its producers the other. A credit is a datagram
 * of one byte to the producers. One of them receives it before it sends a message.
 */
static int us_consumer_create(void *arg, const struct gantry_queue_attr *attr, uint32_t *id_p,
			      void **consumer_p)
{
	struct conn *conn = arg;
	uint8_t *used = memchr(conn->consumers, 0, CONSUMERS);
	struct frame frame = {.type = CONSUMER};
	struct consumer *c;
	int fds[2], rc;

	if (!used || attr->depth == 0 || attr->depth > DEPTH)
		return used ? -EINVAL : -ENOSPC;
	c = calloc(1, sizeof(*c));
	if (!c || socketpair(AF_UNIX, TYPE, 0, fds)) {
		rc = -errno;
		free(c);
		return rc;
	}
	frame.id = (uint32_t)(used - conn->consumers);
	*c = (struct consumer){fds[0], conn, frame.id, attr->depth, 0, 0, 0, 0};
	rc = send_frame(conn, &frame, NULL, 0, fds[1]);
	close(fds[1]);
	if (rc) {
		close(c->fd);
		free(c);
		return rc;
	}
	*used = 1;
	*id_p = c->id;
	*consumer_p = c;
	return 0;
}

static void us_consumer_destroy(void *arg)
{
	struct consumer *c = arg;

	send_surely(c->conn, NO_CONSUMER, c->id);
	c->conn->consumers[c->id] = 0;
	close(c->fd);
	free(c);
}

/* Send credits for new receives. If the socket is full, later calls send the rest. */
static void announce(struct consumer *c)
{
	while (c->n_announced != c->n_posted && send(c->fd, "", 1, MSG_NOSIGNAL) == 1)
		c->n_announced++;
}

static int us_post_recv(void *arg, uint32_t n)
{
	struct consumer *c = arg;

	if (n > c->depth - (c->n_posted - c->n_received))
		return -ENOSPC;
	c->n_posted += n;
	announce(c);
	return 0;
}

static int us_poll_recv(void *arg, struct gantry_msg *msgs, uint32_t max)
{
	struct consumer *c = arg;
	uint32_t n = 0;

	announce(c);
	for (; n < max && !c->end && c->n_received != c->n_posted; n++, c->n_received++) {
		struct message in;
		ssize_t len;

		do
			len = recv(c->fd, &in, sizeof(in), 0);
		while (len < 0 && errno == ECONNRESET); /* as in serve_conn() */
		if (len >= 0 && ((size_t)len < sizeof(in) || in.imm_len > GANTRY_IMM_MAX))
			c->end = len ? -EPROTO : 1;
		if (len < 0 || c->end)
			break;
		msgs[n].imm_len = in.imm_len;
		memcpy(msgs[n].imm, in.imm, sizeof(in.imm));
	}
	return n == 0 && c->end < 0 ? c->end : (int)n;
}

/* While the lane sleeps, the socket is readable when a message arrives. */
static int us_consumer_arm(void *arg)
{
	const struct consumer *c = arg;
	struct pollfd p = {.fd = c->fd, .events = POLLIN};

	return !c->end && c->n_received != c->n_posted && poll(&p, 1, 0) > 0;
}

/* All producers of a consumer share a socket, but each has its own descriptor of the socket. */
static int us_producer_create(void *arg, uint32_t id, const struct gantry_queue_attr *attr,
			      void **producer_p)
{
	struct conn *conn = arg;
	struct outlet *o = &conn->outlets[id % CONSUMERS];
	struct producer *p;
	int fd, rc;

	if (attr->depth == 0 || attr->depth > DEPTH)
		return -EINVAL;
	if (id >= CONSUMERS || !o->fd)
		return -ENOENT;
	fd = fcntl(o->fd, F_DUPFD_CLOEXEC, 0);
	p = fd < 0 ? NULL : malloc(sizeof(*p));
	if (!p) {
		rc = -errno;
		close(fd);
		return rc;
	}
	*p = (struct producer){o, conn, o->serial, o->credit, fd};
	o->credit = 0;
	*producer_p = p;
	return 0;
}

static void us_producer_destroy(void *arg)
{
	struct producer *p = arg;

	if (p->serial == p->outlet->serial) /* the next producer can use the remaining credit */
		p->outlet->credit += p->credit;
	close(p->fd);
	free(p);
}

static int us_send(void *arg, const void *imm, uint32_t imm_len, uint32_t flags)
{
	struct producer *p = arg;
	struct message out = {.imm_len = imm_len};
	char credit;
	ssize_t n;

	(void)flags; /* each message is sent immediately */
	if (imm_len > GANTRY_IMM_MAX)
		return -EINVAL;
	if (__atomic_load_n(&p->conn->state, __ATOMIC_RELAXED) != OPEN)
		return -ENOTCONN;
	n = p->credit ? 1 : recv(p->fd, &credit, 1, 0);
	if (n != 1)
		return n ? socket_error() : -ENOTCONN;
	p->credit += !p->credit;
	if (imm_len)
		memcpy(out.imm, imm, imm_len);
	if (send(p->fd, &out, sizeof(out), MSG_NOSIGNAL) < 0)
		return socket_error();
	p->credit--;
	return 0;
}

static const struct gantry_transport_ops ops = {
	.open = us_open,
	.close = us_close,
	.info = us_info,
	.fd = us_fd,
	.progress = us_progress,
	.listen = us_listen,
	.unlisten = us_disconnect,
	.connect = us_connect,
	.send_ctrl = us_send_ctrl,
	.disconnect = us_disconnect,
	.export_region = us_export,
	.import_region = us_import,
	.release_region = us_release,
	.revoke_region = us_revoke,
	.consumer_create = us_consumer_create,
	.consumer_destroy = us_consumer_destroy,
	.producer_create = us_producer_create,
	.producer_destroy = us_producer_destroy,
	.post_recv = us_post_recv,
	.poll_recv = us_poll_recv,
	.consumer_arm = us_consumer_arm,
	.consumer_fd = us_fd,
	.send = us_send,
	.flags = GANTRY_TRANSPORT_UIDS,
};

GANTRY_PLUGIN(unix_socket) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_TRANSPORT,
	.name = "unix-socket",
	.version = "1",
	.summary = "example of a transport: messages over UNIX sockets, mapped regions",
	.options = options,
	.conf_size = sizeof(struct options),
	.ops_size = sizeof(ops),
	.ops = &ops,
};
