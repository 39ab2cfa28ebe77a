/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_listener.c - an address that accepts connections. An accepted socket is pending until its
 * hello has arrived: it is the control socket of a new connection, or a link of one.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tcp.h"

#define BACKLOG 1024
#define ACCEPTS_PER_TURN 64
#define ACCEPT_PAUSE_NS 1000000000ull /* pause of accepting without free descriptors */
/* handshakes of a session that need no `admit`: each of its lanes can open a link */
#define FREE_HANDSHAKES 64u
#define FREE_AGAIN_NS 1000000000ull /* time after which one more is free */
#define MAX_PENDING 1024u /* limit of pending sockets of a device; the oldest is evicted */

/* -- listeners -- */

static void explain(const struct tcp_device *dev, const char *service, int rc)
{
	if (rc == -EINVAL)
		gantry_log_error(dev->host,
				 "'%s' is not an address: write 192.0.2.7:7471, [2001:db8::7]:7471 "
				 "or host.example:7471",
				 service);
	else if (rc == -EADDRNOTAVAIL)
		gantry_log_error(dev->host,
				 "cannot listen at %s: this machine does not have that address",
				 service);
	else
		gantry_log_error(dev->host, "cannot listen at %s: %s", service, strerror(-rc));
}

/* Listen at an address. It gets the port of the first socket if it has port 0. */
static int open_socket(struct tcp_listener *l, struct sockaddr_storage *addr)
{
	struct tcp_listen_socket *sock = &l->sockets[l->n_sockets];
	struct sockaddr *sa = (struct sockaddr *)addr;
	socklen_t bytes = tc_address_bytes(sa);
	int fd = tcp_socket(l->dev, sa->sa_family), one = 1, zero = 0, rc;

	if (fd < 0)
		return fd;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	/* the address [::] accepts IPv4 as well */
	if (sa->sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	*sock = (struct tcp_listen_socket){.watch = {TCP_LISTENING}, .listener = l, .fd = fd};
	rc = bind(fd, sa, bytes) || listen(fd, BACKLOG) || getsockname(fd, sa, &bytes) ? -errno : 0;
	if (!rc)
		rc = tcp_watch(l->dev, fd, EPOLLIN, &sock->watch);
	if (rc) {
		close(fd);
		return rc;
	}
	if (l->n_sockets++ == 0) {
		l->addr = *addr;
		tc_address_print(sa, l->address, sizeof(l->address));
	}
	return 0;
}

static int find(const struct tcp_device *dev, const char *service, struct sockaddr_storage *list)
{
	int n = tcp_parse(service, list);
	struct tcp_lookup *lookup;
	int rc;

	if (n)
		return n;
	rc = tcp_lookup_start(dev, service, true, &lookup);
	if (rc)
		return rc;
	n = tcp_lookup_wait(lookup, dev->conf->connect_timeout_ns, list);
	if (n < 0)
		gantry_log_error(dev->host, "cannot find the address of '%s': %s", service,
				 tcp_lookup_error(lookup));
	tcp_lookup_drop(lookup);
	return n ? n : -ETIMEDOUT;
}

static void close_sockets(struct tcp_listener *l)
{
	while (l->n_sockets)
		tcp_close_fd(l->dev, l->sockets[--l->n_sockets].fd);
}

static int open_sockets(struct tcp_listener *l, struct sockaddr_storage *list, int n)
{
	int rc = 0;

	for (int i = 0; i < n && !rc; i++) {
		/* sockaddr_in and sockaddr_in6 have the port at the same offset */
		struct sockaddr_in *first = (struct sockaddr_in *)&list[0],
				   *this = (struct sockaddr_in *)&list[i];

		this->sin_port = first->sin_port;
		rc = open_socket(l, &list[i]);
	}
	if (rc)
		close_sockets(l);
	return rc;
}

int tcp_listen(void *device, const char *service, const struct gantry_conn_events *events,
	       void *arg, void **listener_p)
{
	struct tcp_device *dev = device;
	struct sockaddr_storage list[TCP_ADDRESSES];
	struct tcp_listener *l;
	int n, rc;

	if (!tcp_usable(dev))
		return -EPERM;
	n = find(dev, service, list);
	l = n > 0 ? calloc(1, sizeof(*l)) : NULL;
	rc = n < 0 ? n : -ENOMEM;
	if (l) {
		*l = (struct tcp_listener){.dev = dev, .events = events, .arg = arg};
		rc = open_sockets(l, list, n);
	}
	if (rc) {
		explain(dev, service, rc);
		free(l);
		return rc;
	}
	LIST_INSERT_HEAD(&dev->listeners, l, link);
	*listener_p = l;
	return 0;
}

int tcp_listen_direct(struct tcp_device *dev, struct sockaddr_storage *addr)
{
	struct tcp_listener *l;
	int rc = 0;

	LIST_FOREACH (l, &dev->listeners, link)
		if (!l->events && tc_address_same_host((struct sockaddr *)&l->addr,
						       (const struct sockaddr *)addr))
			break;
	if (!l) {
		l = calloc(1, sizeof(*l));
		if (!l)
			return -ENOMEM;
		l->dev = dev;
		((struct sockaddr_in *)addr)->sin_port = 0;
		rc = open_socket(l, addr);
		if (rc) {
			free(l);
			return rc;
		}
		LIST_INSERT_HEAD(&dev->listeners, l, link);
	}
	*addr = l->addr;
	return 0;
}

const char *tcp_listener_address(void *listener)
{
	return ((const struct tcp_listener *)listener)->address;
}

void tcp_unlisten(void *listener)
{
	struct tcp_listener *l = listener;
	struct tcp_pending *pending;
	struct tcp_device *dev;

	if (!l || !tcp_usable(l->dev))
		return;
	dev = l->dev;
	/* a pending socket can still be a link of a connection, which continues */
	LIST_FOREACH (pending, &dev->pending, link)
		if (pending->listener == l)
			pending->listener = NULL;
	close_sockets(l);
	LIST_REMOVE(l, link);
	/* an event of this turn can still name it */
	l->next_dead = dev->dead;
	dev->dead = l;
	if (!dev->in_progress)
		tcp_listeners_reap(dev);
}

void tcp_listeners_reap(struct tcp_device *dev)
{
	while (dev->dead) {
		struct tcp_listener *l = dev->dead;

		dev->dead = l->next_dead;
		free(l);
	}
	while (!LIST_EMPTY(&dev->dead_pending)) {
		struct tcp_pending *pending = LIST_FIRST(&dev->dead_pending);

		LIST_REMOVE(pending, link);
		free(pending);
	}
}

/* -- pending sockets -- */

void tcp_pending_end(struct tcp_pending *pending)
{
	LIST_REMOVE(pending, link);
	tcp_close_fd(pending->dev, pending->fd);
	pending->fd = -1;
	tcp_stream_close(pending->dev, pending->stream);
	pending->stream = NULL;
	/* an event of this turn can still name it */
	LIST_INSERT_HEAD(&pending->dev->dead_pending, pending, link);
}

static struct tcp_pending *oldest(struct tcp_device *dev, uint32_t *n_p)
{
	struct tcp_pending *pending, *first = NULL;

	*n_p = 0;
	LIST_FOREACH (pending, &dev->pending, link) {
		first = pending; /* the list starts with the youngest */
		++*n_p;
	}
	return first;
}

static void admit(struct tcp_listener *l, int fd, const struct sockaddr_storage *from)
{
	struct tcp_device *dev = l->dev;
	uint32_t n;
	struct tcp_pending *pending = oldest(dev, &n);

	if (n >= MAX_PENDING)
		tcp_pending_end(pending);
	pending = calloc(1, sizeof(*pending));
	if (!pending) {
		gantry_log_warn(dev->host, "cannot accept a connection: %s", strerror(ENOMEM));
		close(fd);
		return;
	}
	pending->watch.what = TCP_PENDING;
	pending->dev = dev;
	pending->listener = l;
	pending->from = *from;
	pending->fd = fd;
	pending->deadline_ns = tcp_now(dev) + dev->conf->connect_timeout_ns;
	LIST_INSERT_HEAD(&dev->pending, pending, link);
	tcp_socket_options(dev, fd);
	if (tcp_watch(dev, fd, EPOLLIN, &pending->watch))
		tcp_pending_end(pending);
}

/*
 * No descriptor is left: evict the oldest pending socket. If none is pending, watch no listen
 * socket for a while, because epoll would report a connection that waits again and again.
 */
static void make_room(struct tcp_device *dev)
{
	struct tcp_listener *l;
	uint32_t n;
	struct tcp_pending *pending = oldest(dev, &n);

	if (pending) {
		tcp_pending_end(pending);
		return;
	}
	if (!dev->accept_paused_ns)
		gantry_log_warn(dev->host,
				"cannot accept connections: this process has no free descriptor: "
				"raise ulimit -n, or LimitNOFILE= of the service");
	dev->accept_paused_ns = tcp_now(dev) + ACCEPT_PAUSE_NS;
	LIST_FOREACH (l, &dev->listeners, link)
		for (uint32_t i = 0; i < l->n_sockets; i++)
			tcp_rewatch(dev, l->sockets[i].fd, 0, &l->sockets[i].watch);
}

void tcp_on_listen_socket(struct tcp_listen_socket *sock)
{
	struct sockaddr_storage from = {0}; /* accept4() sets a part of it */

	/* a callback of an earlier event of this turn can have closed the listener */
	for (int i = 0; i < ACCEPTS_PER_TURN && sock->listener->n_sockets &&
			!sock->listener->dev->accept_paused_ns;
	     i++) {
		socklen_t bytes = sizeof(from);
		int fd = accept4(sock->fd, (struct sockaddr *)&from, &bytes,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0)
			admit(sock->listener, fd, &from);
		else if (errno == EMFILE || errno == ENFILE)
			make_room(sock->listener->dev);
		else
			return;
	}
}

void tcp_accept_progress(struct tcp_device *dev, uint64_t now_ns)
{
	struct tcp_listener *l;

	if (!dev->accept_paused_ns || now_ns < dev->accept_paused_ns)
		return;
	dev->accept_paused_ns = 0;
	LIST_FOREACH (l, &dev->listeners, link)
		for (uint32_t i = 0; i < l->n_sockets; i++)
			tcp_rewatch(dev, l->sockets[i].fd, EPOLLIN, &l->sockets[i].watch);
}

/* -- the hello -- */

/* Returns the number of connections that the host has at this device. */
static uint32_t count_accepted(const struct tcp_device *dev, const struct sockaddr *host)
{
	const struct tcp_conn *conn;
	uint32_t n = 0;

	LIST_FOREACH (conn, &dev->conns, link)
		if (conn->accepted && tc_address_same_host((const struct sockaddr *)conn->to, host))
			n++;
	return n;
}

/* Send the reason to the pending socket. It is lost if the socket does not take it at once. */
static void refuse(struct tcp_device *dev, struct tcp_pending *pending, int reason, const char *why)
{
	struct {
		struct tcp_ctrl head;
		struct tcp_refused body;
	} msg = {.head = {.kind = TCP_CTRL_REFUSED, .length = sizeof(msg.body)},
		 .body = {.reason = (uint32_t)-reason}};
	char peer[TC_ADDRESS_TEXT];

	snprintf(msg.body.text, sizeof(msg.body.text), "%s", why);
	tc_address_print((struct sockaddr *)&pending->from, peer, sizeof(peer));
	if (pending->stream) /* the peer knows a hello of the session */
		gantry_log_warn(dev->host, "refusing %s: %s", peer, why);
	else
		gantry_log_info(dev->host, "refusing %s: %s", peer, why);
	if (pending->hello.kind == TCP_CONTROL)
		send(pending->fd, &msg, sizeof(msg), MSG_NOSIGNAL);
	shutdown(pending->fd, SHUT_WR);
	tcp_pending_end(pending);
}

static int call_accept(struct tcp_listener *l, struct tcp_conn *conn)
{
	int rc;

	conn->accepting = true;
	conn->dev->n_events++;
	/* the callback can also end the listener */
	rc = l->events->accept(l->arg, conn, &conn->peer, &conn->arg);
	conn->accepting = false;
	return rc ? -EACCES : 0;
}

/* The pending socket opens a new connection. */
static void on_control(struct tcp_device *dev, struct tcp_pending *pending)
{
	struct tcp_listener *l = pending->listener;
	const struct sockaddr *host = (struct sockaddr *)&pending->from;
	char text[TCP_REFUSED_TEXT];
	struct tcp_conn *conn;
	const char *why = tc_quota((uint32_t)dev->conf->max_connections, dev->n_accepted,
				   count_accepted(dev, host), host, text, sizeof(text));
	struct tcp_welcome welcome = {.secret = {0}};
	int rc = why ? -EBUSY : tcp_conn_new(dev, TCP_LISTENS, l->events, l->arg, &conn);

	if (rc) {
		refuse(dev, pending, rc, why ? why : strerror(-rc));
		return;
	}
	conn->session = pending->hello.session;
	conn->to[0] = pending->from;
	tc_address_print((struct sockaddr *)&pending->from, conn->peer.address,
			 sizeof(conn->peer.address));
	conn->fd = pending->fd;
	if (!dev->host->records) /* else the filter has the secrets */
		memcpy(welcome.secret, conn->secret, sizeof(welcome.secret));
	rc = tcp_control_put(conn, TCP_CTRL_WELCOME, &welcome, sizeof(welcome));
	if (!rc)
		rc = call_accept(l, conn);
	if (rc) {
		conn->fd = -1;
		tcp_conn_destroy(conn);
		refuse(dev, pending, rc,
		       rc == -EACCES ? "the listener rejects the session" : strerror(-rc));
		return;
	}
	pending->fd = -1;
	tcp_pending_end(pending);
	conn->accepted = true;
	dev->n_accepted++;
	tcp_rewatch(dev, conn->fd, EPOLLIN, &conn->watch);
	tcp_conn_up(conn);
}

/* Takes the same time wherever the secrets differ. */
static bool has_secret(const struct tcp_conn *conn, const struct tcp_hello *hello)
{
	uint8_t secret[TCP_SECRET], differs = 0;

	if (tcp_link_secret(conn, hello->connects_lane, hello->listens_lane, secret))
		return false;
	for (int i = 0; i < TCP_SECRET; i++)
		differs |= (uint8_t)(secret[i] ^ hello->secret[i]);
	return !differs;
}

/* Clients choose the numbers of their sessions, so several can have the same number. */
static struct tcp_conn *find_conn(struct tcp_device *dev, const struct tcp_hello *hello)
{
	struct tcp_conn *conn;

	LIST_FOREACH (conn, &dev->conns, link)
		if (conn->end == TCP_LISTENS && conn->session == hello->session &&
		    conn->state == TCP_C_UP && !conn->freed && !tcp_lost(conn) &&
		    conn->records_open == (dev->host->records != NULL) && has_secret(conn, hello))
			break;
	return conn;
}

/*
 * An observer can replay the first bytes of a link that is not up, and the listener computes a key
 * before the handshake fails. So the free handshakes of a session are limited by a token bucket: a
 * handshake that succeeds returns its token, and each FREE_AGAIN_NS adds one.
 */
static bool take_free(struct tcp_conn *conn)
{
	uint64_t n = (tcp_now(conn->dev) - conn->unproved_ns) / FREE_AGAIN_NS;

	conn->unproved_ns += n * FREE_AGAIN_NS;
	conn->n_unproved -= n < conn->n_unproved ? (uint32_t)n : conn->n_unproved;
	if (conn->n_unproved == FREE_HANDSHAKES)
		return false;
	conn->n_unproved++;
	return true;
}

/* A handshake that is not free takes a token of auth_rate. Returns 0 or -errno. */
static int begin_handshake(struct tcp_conn *conn, struct tcp_pending *pending, const void *secret,
			   size_t bytes)
{
	struct tcp_device *dev = conn->dev;
	int rc;

	pending->is_free = take_free(conn);
	rc = pending->is_free ? 0 : dev->host->records->admit(dev->host);
	return rc ? rc
		  : tcp_stream_open(dev, pending->fd, true, secret, bytes, &pending->hello,
				    &pending->stream);
}

static void return_free(struct tcp_conn *conn, const struct tcp_pending *pending)
{
	if (pending->is_free && conn->n_unproved)
		conn->n_unproved--;
}

/*
 * With a record filter, do the handshake of the stream. Returns true when the pending socket has
 * proved the secret; false: later, or it is refused.
 */
static bool prove(struct tcp_conn *conn, struct tcp_pending *pending, const void *secret,
		  size_t bytes)
{
	struct tcp_device *dev = conn->dev;
	uint32_t events;
	int rc = 0;

	if (!dev->host->records)
		return true;
	if (!pending->stream)
		rc = begin_handshake(conn, pending, secret, bytes);
	if (!rc)
		rc = tcp_stream_handshake(dev, pending->stream, &events);
	if (rc == 0)
		return_free(conn, pending);
	else if (rc == -EAGAIN)
		tcp_rewatch(dev, pending->fd, events, &pending->watch);
	else
		refuse(dev, pending, rc,
		       rc == -EBUSY ? "too many handshakes (auth_rate)"
				    : "the handshake of a link fails");
	return rc == 0;
}

static bool prove_link(struct tcp_device *dev, struct tcp_pending *pending, struct tcp_conn *conn)
{
	uint8_t secret[TCP_STREAM_SECRET] = {0};
	bool proved;

	if (dev->host->records && tcp_link_stream_secret(conn, &pending->hello, secret)) {
		refuse(dev, pending, -EACCES, "the session has no secret");
		return false;
	}
	proved = prove(conn, pending, secret, sizeof(secret));
	explicit_bzero(secret, sizeof(secret));
	return proved;
}

/*
 * Returns whether the connection can accept this link. Without a handshake: the hello of a link
 * that is up can be a replay.
 */
static bool is_link_missing(struct tcp_conn *conn, const struct tcp_hello *hello)
{
	const struct tcp_link *link;
	struct tcp_lane *lane;
	bool is_missing = true;

	LIST_FOREACH (lane, &conn->lanes, entry) {
		if (lane->number != hello->listens_lane)
			continue;
		pthread_mutex_lock(&lane->lock);
		link = tcp_link_find(lane, hello->connects_lane);
		is_missing = !link || link->state == TCP_L_ASKED;
		pthread_mutex_unlock(&lane->lock);
	}
	return is_missing;
}

/* The pending socket is a link of a connection. */
static void on_link(struct tcp_device *dev, struct tcp_pending *pending)
{
	const struct tcp_hello *hello = &pending->hello;
	struct tcp_conn *conn = find_conn(dev, hello);
	struct tcp_link *link = NULL;
	struct tcp_lane *lane;
	int rc;

	if (!conn) {
		refuse(dev, pending, -EACCES, "no such session, or it has ended");
		return;
	}
	if (!is_link_missing(conn, hello)) {
		refuse(dev, pending, -EBUSY, "the session has this link already");
		return;
	}
	if (!prove_link(dev, pending, conn))
		return;
	rc = tcp_lane_get(conn, hello->listens_lane, &lane);
	if (!rc) {
		pthread_mutex_lock(&lane->lock);
		link = tcp_link_find(lane, hello->connects_lane);
		if (!link)
			rc = tcp_link_new(lane, hello->connects_lane, &link);
		pthread_mutex_unlock(&lane->lock);
	}
	if (!rc)
		rc = tcp_relay_link(link);
	if (rc) {
		refuse(dev, pending, rc,
		       rc == -ENOMEM ? strerror(ENOMEM) : "no such link can be opened");
		return;
	}
	tcp_link_take(link, pending);
	tcp_pending_end(pending);
}

/* The pending socket is the link of a third party. */
static void on_direct(struct tcp_device *dev, struct tcp_pending *pending)
{
	struct tcp_conn *conn = tcp_direct_find_conn(dev, &pending->hello);
	struct tcp_link *link;

	if (!conn) {
		refuse(dev, pending, -EACCES, "no such session accepts direct links");
		return;
	}
	if (!prove(conn, pending, conn->direct_secret, sizeof(conn->direct_secret)))
		return;
	link = tcp_direct_accept(conn);
	if (!link) {
		refuse(dev, pending, -ENOMEM, "no such link can be opened");
		return;
	}
	tcp_link_take(link, pending);
	tcp_pending_end(pending);
}

static const char *check(const struct tcp_pending *pending)
{
	const struct tcp_hello *hello = &pending->hello;

	if (hello->magic != TCP_MAGIC)
		return "the request does not belong to the protocol of gantry";
	if (hello->version == (tcp_version(pending->dev) ^ TCP_RECORDS))
		return "only one end protects control messages: use the same security at both ends";
	if (hello->version != tcp_version(pending->dev))
		return "other protocol version: use the same release of gantry at both ends";
	if (hello->kind < TCP_CONTROL || hello->kind > TCP_DIRECT || hello->session == 0)
		return "malformed request";
	if (hello->kind != TCP_CONTROL && (hello->connects_lane >= TCP_LANES ||
					   hello->listens_lane >= TCP_LANES || hello->ops == 0))
		return "malformed request";
	return NULL;
}

/* A link whose hello is complete: its handshake can take several turns. */
static void on_link_of(struct tcp_device *dev, struct tcp_pending *pending)
{
	if (pending->hello.kind == TCP_LINK)
		on_link(dev, pending);
	else
		on_direct(dev, pending);
}

void tcp_on_pending(struct tcp_pending *pending)
{
	struct tcp_device *dev = pending->dev;
	const char *why;
	ssize_t n;

	if (pending->fd < 0) /* it has ended in this turn */
		return;
	if (pending->stream) {
		on_link_of(dev, pending);
		return;
	}
	n = recv(pending->fd, (char *)&pending->hello + pending->n,
		 sizeof(pending->hello) - pending->n, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		pending->n += (uint32_t)n;
	if (n > 0 && pending->n < sizeof(pending->hello))
		return;
	why = n > 0 ? check(pending) : NULL;
	if (why)
		refuse(dev, pending, -EPROTO, why);
	else if (n > 0 && pending->hello.kind != TCP_CONTROL)
		on_link_of(dev, pending);
	else if (n > 0 && pending->listener && pending->listener->events)
		on_control(dev, pending);
	else /* without a listener, the client gets ECONNREFUSED */
		tcp_pending_end(pending);
}
