/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_conn.c - a connection from its creation to `closed`, and its end after tcp_disconnect(). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tcp.h"

#include "../common/ending.h"

#define LEAVE_NS 1000000000ull    /* time limit of sending the last bytes */
#define LINK_END_NS 1000000000ull /* the control socket must end this soon after a link */
#define STUCK_LOOKS 4             /* looks for accesses without an answer, per dead_time */
#define CHECK_NS 5000000ull       /* interval of looks for lanes that are not polled */

int tcp_lost(const struct tcp_conn *conn)
{
	return __atomic_load_n(&conn->lost, __ATOMIC_RELAXED);
}

int tcp_conn_new(struct tcp_device *dev, enum tcp_end end, const struct gantry_conn_events *events,
		 void *arg, struct tcp_conn **conn_p)
{
	struct tcp_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return -ENOMEM;
	conn->watch.what = TCP_CONN;
	conn->dev = dev;
	conn->end = end;
	conn->events = events;
	conn->arg = arg;
	conn->fd = -1;
	conn->peer = (struct gantry_peer){.pid = -1, .uid = UINT32_MAX, .gid = UINT32_MAX};
	if (getrandom(&conn->session, sizeof(conn->session), 0) != sizeof(conn->session) ||
	    getrandom(conn->secret, sizeof(conn->secret), 0) != sizeof(conn->secret) ||
	    getrandom(&conn->direct_session, sizeof(conn->direct_session), 0) !=
		    sizeof(conn->direct_session) ||
	    getrandom(conn->direct_secret, sizeof(conn->direct_secret), 0) !=
		    sizeof(conn->direct_secret)) {
		free(conn);
		return -EIO;
	}
	conn->session |= 1; /* 0 is no session */
	conn->direct_session |= 1;
	LIST_INSERT_HEAD(&dev->conns, conn, link);
	*conn_p = conn;
	return 0;
}

void tcp_conn_destroy(struct tcp_conn *conn)
{
	if (conn->accepted)
		conn->dev->n_accepted--;
	LIST_REMOVE(conn, link);
	tcp_lookup_drop(conn->lookup);
	tcp_imports_end(conn);
	while (!LIST_EMPTY(&conn->lanes))
		tcp_lane_free(LIST_FIRST(&conn->lanes));
	tcp_exports_lost(conn, true);
	tcp_owners_free(conn);
	tcp_close_fd(conn->dev, conn->fd);
	if (conn->records)
		conn->dev->host->records->close(conn->records);
	free(conn->held.bytes);
	free(conn->out.bytes);
	free(conn);
}

/* -- connecting -- */

/* Connect to the next address. Returns 0 or -errno: no address is left. */
static int connect_next(struct tcp_conn *conn)
{
	int rc = -ECONNREFUSED;

	for (; conn->at < conn->n_to; conn->at++) {
		const struct sockaddr *to = (const struct sockaddr *)&conn->to[conn->at];

		rc = tcp_socket_connect(conn->dev, to);
		if (rc < 0)
			continue;
		conn->fd = rc;
		conn->state = TCP_C_CONNECTING;
		tc_address_print(to, conn->peer.address, sizeof(conn->peer.address));
		return tcp_watch(conn->dev, conn->fd, EPOLLOUT, &conn->watch);
	}
	return rc;
}

static int start(struct tcp_conn *conn, const char *service)
{
	int n = tcp_parse(service, conn->to);

	if (n < 0)
		return n;
	conn->deadline_ns = tcp_now(conn->dev) + conn->dev->conf->connect_timeout_ns;
	if (n == 0) {
		strncpy(conn->peer.address, service, sizeof(conn->peer.address) - 1);
		return tcp_lookup_start(conn->dev, service, false, &conn->lookup);
	}
	conn->n_to = (uint32_t)n;
	n = connect_next(conn);
	if (n) /* `closed` reports it */
		tcp_conn_fail(conn, n);
	return 0;
}

int tcp_connect(void *device, const char *service, const struct gantry_conn_events *events,
		void *arg, void **conn_p)
{
	struct tcp_device *dev = device;
	struct tcp_conn *conn;
	int rc;

	if (!tcp_usable(dev))
		return -EPERM;
	rc = tcp_conn_new(dev, TCP_CONNECTS, events, arg, &conn);
	if (rc)
		return rc;
	rc = start(conn, service);
	if (rc) {
		if (rc == -EINVAL)
			gantry_log_error(dev->host,
					 "'%s' is not an address: write 192.0.2.7:7471, "
					 "[2001:db8::7]:7471 or host.example:7471",
					 service);
		tcp_conn_destroy(conn);
		return rc;
	}
	*conn_p = conn;
	return 0;
}

static void resolved(struct tcp_conn *conn)
{
	int n = tcp_lookup_take(conn->lookup, conn->to), rc;

	if (n == 0)
		return;
	if (n < 0)
		gantry_log_warn(conn->dev->host, "cannot find the address of '%s': %s",
				conn->peer.address, tcp_lookup_error(conn->lookup));
	tcp_lookup_drop(conn->lookup);
	conn->lookup = NULL;
	conn->n_to = n < 0 ? 0 : (uint32_t)n;
	rc = n < 0 ? -EHOSTUNREACH : connect_next(conn);
	if (rc)
		tcp_conn_fail(conn, rc);
}

/* The socket has connected, or has failed to. */
static void connected(struct tcp_conn *conn)
{
	const struct tcp_hello hello = {.magic = TCP_MAGIC,
					.version = tcp_version(conn->dev),
					.kind = TCP_CONTROL,
					.session = conn->session};
	int rc = tcp_socket_error(conn->fd);

	if (rc) {
		tcp_close_fd(conn->dev, conn->fd);
		conn->fd = -1;
		conn->at++;
		if (conn->at < conn->n_to)
			rc = connect_next(conn);
		if (rc) /* the listener ended before it accepted */
			tcp_conn_fail(conn, rc == -ECONNRESET ? -ECONNREFUSED : rc);
		return;
	}
	conn->state = TCP_C_GREETING;
	rc = tcp_control_bytes(conn, &hello, sizeof(hello));
	if (rc)
		tcp_conn_fail(conn, rc);
	tcp_rewatch(conn->dev, conn->fd, EPOLLIN, &conn->watch);
	tcp_control_send(conn);
}

void tcp_conn_up(struct tcp_conn *conn)
{
	conn->state = TCP_C_UP;
	conn->deadline_ns = 0;
	tcp_control_send(conn);
	if (conn->dev->host->records)
		tcp_records_start(conn);
	else
		tcp_conn_ready(conn);
}

void tcp_conn_ready(struct tcp_conn *conn)
{
	gantry_count(conn->dev->connections, 1);
	if (conn->end == TCP_CONNECTS && !conn->freed) {
		conn->dev->n_events++;
		conn->events->connected(conn->arg, conn, &conn->peer);
	}
}

void tcp_on_conn(struct tcp_conn *conn, uint32_t events)
{
	if (conn->fd < 0)
		return;
	if (conn->state == TCP_C_CONNECTING) {
		connected(conn);
		return;
	}
	if (events & EPOLLOUT)
		tcp_control_send(conn);
	if (events & ~(uint32_t)EPOLLOUT)
		tcp_control_receive(conn);
}

bool tcp_conn_usable(const struct tcp_conn *conn)
{
	return tcp_usable(conn->dev) && (conn->state == TCP_C_UP || conn->accepting) &&
	       !conn->freed && !tcp_lost(conn);
}

const char *tcp_refusal(void *arg)
{
	const struct tcp_conn *conn = arg;

	return conn->refusal[0] ? conn->refusal : NULL;
}

/* -- the end of a connection -- */

/* Set the reason of the end, once. Returns true if no reason was set before. */
static bool set_lost(struct tcp_conn *conn, int reason)
{
	int none = 0;

	if (!__atomic_compare_exchange_n(&conn->lost, &none, reason, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return false;
	tcp_wake(conn->dev);
	return true;
}

void tcp_conn_fail(struct tcp_conn *conn, int reason)
{
	set_lost(conn, reason);
}

void tcp_conn_broken(struct tcp_conn *conn, const char *why)
{
	if (set_lost(conn, -EPROTO))
		gantry_log_warn(conn->dev->host, "dropping the connection of %s: it %s",
				conn->peer.address, why);
}

/*
 * Wake the threads of lanes, which complete the accesses in flight. A peer that has ended the
 * connection has ended its links as well, or its kernel does that, which wakes the lane. Then the
 * last messages can still be on their way: a socket that is shut for reading would refuse them.
 */
static void shut_links(struct tcp_conn *conn)
{
	int how = tcp_lost(conn) == -ENOTCONN ? SHUT_WR : SHUT_RDWR;
	struct tcp_lane *lane;
	struct tcp_link *link;

	LIST_FOREACH (lane, &conn->lanes, entry) {
		pthread_mutex_lock(&lane->lock);
		LIST_FOREACH (link, &lane->links, entry)
			if (link->state == TCP_L_UP)
				shutdown(link->fd, how);
		pthread_mutex_unlock(&lane->lock);
	}
}

/*
 * The connection is lost. Afterwards no access of the peer is executed, and the user gets no event
 * after `closed`. Messages that have arrived can still be polled.
 */
static void end_connection(struct tcp_conn *conn)
{
	int reason = tcp_lost(conn);
	bool was_up = conn->state == TCP_C_UP;

	conn->state = TCP_C_OVER;
	conn->deadline_ns = 0;
	if (reason == -EPROTO)
		gantry_count(conn->dev->protocol_errors, 1);
	if (was_up)
		tc_log_end(conn->dev->host, conn->peer.address, conn->records_open, reason);
	tcp_unwatch(conn->dev, conn->fd);
	tcp_exports_lost(conn, false);
	shut_links(conn);
	if (conn->freed)
		return;
	conn->dev->n_events++;
	conn->events->closed(conn->arg, conn, reason);
}

static void check_deadline(struct tcp_conn *conn, uint64_t now_ns)
{
	uint64_t link_end_ns = __atomic_load_n(&conn->link_end_ns, __ATOMIC_RELAXED);
	struct tcp_lane *lane;
	struct tcp_link *link;

	if (conn->deadline_ns && now_ns >= conn->deadline_ns)
		tcp_conn_fail(conn, -ETIMEDOUT);
	/* the links die with their process, so the control socket must end as well */
	if (link_end_ns && now_ns >= link_end_ns + LINK_END_NS)
		tcp_conn_fail(conn, -ENOTCONN);
	LIST_FOREACH (lane, &conn->lanes, entry)
		LIST_FOREACH (link, &lane->links, entry)
			if (link->deadline_ns && now_ns >= link->deadline_ns)
				tcp_conn_fail(conn, -ETIMEDOUT);
}

/*
 * The kernel of a stopped process acknowledges data, so only the missing answers show that the
 * owner of memory does not execute accesses.
 */
static void check_answers(struct tcp_conn *conn, uint64_t now_ns)
{
	struct tcp_lane *lane;
	struct tcp_link *link;
	bool stuck = false;

	if (now_ns < conn->stuck_ns)
		return;
	conn->stuck_ns = now_ns + conn->dev->conf->dead_time_ns / STUCK_LOOKS;
	LIST_FOREACH (lane, &conn->lanes, entry) {
		pthread_mutex_lock(&lane->lock);
		LIST_FOREACH (link, &lane->links, entry)
			stuck = tcp_link_is_stuck(link, STUCK_LOOKS) || stuck;
		pthread_mutex_unlock(&lane->lock);
	}
	if (stuck)
		tcp_conn_fail(conn, -ETIMEDOUT);
}

void tcp_conn_progress(struct tcp_conn *conn, uint64_t now_ns)
{
	if (conn->freed || conn->state == TCP_C_OVER)
		return;
	if (conn->lookup)
		resolved(conn);
	check_deadline(conn, now_ns);
	if (conn->state == TCP_C_UP) {
		tcp_exports_progress(conn, now_ns);
		tcp_imports_progress(conn);
		check_answers(conn, now_ns);
		if (now_ns >= conn->next_check_ns) {
			tcp_lanes_poll_stalled(conn);
			conn->next_check_ns = now_ns + CHECK_NS;
		}
	}
	if (!conn->freed && tcp_lost(conn))
		end_connection(conn);
}

uint64_t tcp_conn_wake_ns(const struct tcp_conn *conn)
{
	const struct tcp_lane *lane;
	const struct tcp_link *link;
	uint64_t first = conn->deadline_ns,
		 link_end_ns = __atomic_load_n(&conn->link_end_ns, __ATOMIC_RELAXED);

	if (conn->freed || conn->state == TCP_C_OVER)
		return first;
	tcp_earlier(&first, tcp_exports_wake_ns(conn));
	if (link_end_ns)
		tcp_earlier(&first, link_end_ns + LINK_END_NS);
	if (conn->state == TCP_C_UP)
		tcp_earlier(&first, conn->stuck_ns);
	LIST_FOREACH (lane, &conn->lanes, entry) {
		if (lane->n_users && !__atomic_load_n(&lane->armed, __ATOMIC_RELAXED))
			tcp_earlier(&first, conn->next_check_ns);
		LIST_FOREACH (link, &lane->links, entry)
			tcp_earlier(&first, link->deadline_ns);
	}
	return first;
}

/* -- after tcp_disconnect() -- */

void tcp_disconnect(void *arg)
{
	struct tcp_conn *conn = arg;

	if (!conn || conn->freed || !tcp_usable(conn->dev))
		return;
	conn->freed = true;
	tcp_exports_lost(conn, true);
	if ((conn->state == TCP_C_UP || conn->accepted) && conn->state != TCP_C_OVER &&
	    !tcp_lost(conn))
		conn->deadline_ns = tcp_now(conn->dev) + LEAVE_NS;
	else
		conn->deadline_ns = 0;
	tcp_wake(conn->dev);
	if (conn->fd >= 0)
		tcp_rewatch(conn->dev, conn->fd, EPOLLIN, &conn->watch);
	if (!conn->dev->in_progress && (!conn->deadline_ns || tcp_conn_drained(conn, 0)))
		tcp_conn_destroy(conn);
}

/* Returns true if all frames of all links are sent. */
static bool links_drained(struct tcp_conn *conn)
{
	struct tcp_lane *lane;
	struct tcp_link *link;
	bool left = true;

	LIST_FOREACH (lane, &conn->lanes, entry) {
		pthread_mutex_lock(&lane->lock);
		tcp_lane_flush(lane);
		LIST_FOREACH (link, &lane->links, entry) {
			if (link->fd < 0 || link->state < TCP_L_UP)
				continue;
			if (tcp_link_pending(link) || !tcp_link_finish(link))
				left = false;
		}
		pthread_mutex_unlock(&lane->lock);
	}
	return left;
}

/*
 * A socket that is closed with unread bytes resets its connection, and the peer might lose what it
 * has not read. So this end sends everything, and then reads until the peer has ended as well.
 */
bool tcp_conn_drained(struct tcp_conn *conn, uint64_t now_ns)
{
	if (!conn->deadline_ns || now_ns >= conn->deadline_ns || tcp_lost(conn))
		return true;
	if (!conn->shut && links_drained(conn)) {
		if (tcp_control_put(conn, TCP_CTRL_BYE, NULL, 0))
			return true;
		conn->shut = true;
	}
	tcp_control_send(conn);
	if (conn->shut && conn->out.from == conn->out.to && conn->held.from == conn->held.to)
		shutdown(conn->fd, SHUT_WR);
	tcp_control_receive(conn);
	return conn->ended;
}
