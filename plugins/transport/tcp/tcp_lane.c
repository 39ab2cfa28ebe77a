/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_lane.c - the links of one thread: which thread polls them, and what wakes it. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "tcp.h"

/* -- creation. Thread: control -- */

static int make_lane(struct tcp_conn *conn, uint32_t number, struct tcp_lane **lane_p)
{
	struct tcp_device *dev = conn->dev;
	struct tcp_lane *lane = calloc(1, sizeof(*lane));

	if (!lane)
		return -ENOMEM;
	lane->conn = conn;
	lane->number = number;
	lane->epoll = lane->bell = -1;
	lane->armed = 1;
	lane->watch.what = TCP_LANE;
	lane->sends = tc_cell_get(&dev->sends, dev->host);
	lane->payload = tc_cell_get(&dev->payload, dev->host);
	if (!lane->sends || !lane->payload) {
		tc_cell_put(&dev->sends, lane->sends);
		tc_cell_put(&dev->payload, lane->payload);
		free(lane);
		return -ENOMEM;
	}
	pthread_mutex_init(&lane->lock, NULL);
	LIST_INSERT_HEAD(&conn->lanes, lane, entry);
	*lane_p = lane;
	return 0;
}

int tcp_lane_get(struct tcp_conn *conn, uint32_t number, struct tcp_lane **lane_p)
{
	struct tcp_lane *lane;

	if (number > TCP_DIRECT_LANE)
		return -EINVAL;
	LIST_FOREACH (lane, &conn->lanes, entry)
		if (lane->number == number)
			break;
	if (!lane)
		return make_lane(conn, number, lane_p);
	*lane_p = lane;
	return 0;
}

void tcp_lane_free(struct tcp_lane *lane)
{
	struct tcp_device *dev = lane->conn->dev;

	while (!LIST_EMPTY(&lane->links))
		tcp_link_free(LIST_FIRST(&lane->links));
	LIST_REMOVE(lane, entry);
	if (lane->epoll >= 0)
		close(lane->epoll);
	tcp_close_fd(dev, lane->bell);
	tc_cell_put(&dev->sends, lane->sends);
	tc_cell_put(&dev->payload, lane->payload);
	pthread_mutex_destroy(&lane->lock);
	free(lane);
}

/* -- which thread polls: the thread of the lane while it has users, else the control thread -- */

/*
 * Returns true if the epoll must report that the socket takes more. A thread must not sleep while a
 * stream has bytes inside: then this report, which nearly always comes at once, wakes it.
 */
static bool wants_writable(const struct tcp_link *link)
{
	return link->blocked || tcp_link_inside(link);
}

void tcp_lane_watch(struct tcp_link *link)
{
	struct tcp_lane *lane = link->lane;
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = &link->watch};
	int epoll = lane->epoll >= 0 ? lane->epoll : lane->conn->dev->epoll;

	link->watched = wants_writable(link);
	if (link->watched)
		event.events |= EPOLLOUT;
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, link->fd, &event))
		tcp_conn_fail(lane->conn, -errno);
}

void tcp_lane_rewatch(struct tcp_link *link)
{
	struct tcp_lane *lane = link->lane;
	bool writable = wants_writable(link);
	struct epoll_event event = {.events = EPOLLIN | (writable ? (uint32_t)EPOLLOUT : 0),
				    .data.ptr = &link->watch};

	if (link->fd < 0 || link->watched == writable)
		return;
	link->watched = writable;
	epoll_ctl(lane->epoll >= 0 ? lane->epoll : lane->conn->dev->epoll, EPOLL_CTL_MOD, link->fd,
		  &event);
}

void tcp_lane_watch_bell(struct tcp_lane *lane)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = &lane->watch};

	if (lane->bell >= 0 && epoll_ctl(lane->epoll >= 0 ? lane->epoll : lane->conn->dev->epoll,
					 EPOLL_CTL_ADD, lane->bell, &event))
		tcp_conn_fail(lane->conn, -errno);
}

/* Move the sockets of the lane to another epoll: -1 is that of the device. */
static void move(struct tcp_lane *lane, int epoll)
{
	int from = lane->epoll >= 0 ? lane->epoll : lane->conn->dev->epoll;
	struct tcp_link *link;

	pthread_mutex_lock(&lane->lock);
	LIST_FOREACH (link, &lane->links, entry)
		if (link->state == TCP_L_UP)
			epoll_ctl(from, EPOLL_CTL_DEL, link->fd, NULL);
	if (lane->bell >= 0)
		epoll_ctl(from, EPOLL_CTL_DEL, lane->bell, NULL);
	if (lane->epoll >= 0)
		close(lane->epoll);
	lane->epoll = epoll;
	tcp_lane_watch_bell(lane);
	LIST_FOREACH (link, &lane->links, entry)
		if (link->state == TCP_L_UP)
			tcp_lane_watch(link);
	pthread_mutex_unlock(&lane->lock);
}

int tcp_lane_use(struct tcp_lane *lane)
{
	int epoll;

	if (lane->n_users == 0) {
		epoll = epoll_create1(EPOLL_CLOEXEC);
		if (epoll < 0)
			return -errno;
		move(lane, epoll);
		__atomic_store_n(&lane->armed, 0, __ATOMIC_RELAXED);
		tcp_wake(lane->conn->dev); /* starts to look whether the lane is polled */
	}
	lane->n_users++;
	return 0;
}

void tcp_lane_put(struct tcp_lane *lane)
{
	if (--lane->n_users)
		return;
	__atomic_store_n(&lane->armed, 1, __ATOMIC_RELAXED);
	move(lane, -1);
	tcp_wake(lane->conn->dev); /* frames can wait for the control thread now */
}

void tcp_lanes_poll_stalled(struct tcp_conn *conn)
{
	struct tcp_lane *lane;

	LIST_FOREACH (lane, &conn->lanes, entry) {
		uint32_t n = __atomic_load_n(&lane->n_polls, __ATOMIC_RELAXED);

		if (n == lane->n_polls_seen && lane->n_users &&
		    !__atomic_load_n(&lane->armed, __ATOMIC_RELAXED) &&
		    pthread_mutex_trylock(&lane->lock) == 0) {
			tcp_lane_poll(lane);
			tcp_lane_idle(lane, true);
			n = lane->n_polls;
			pthread_mutex_unlock(&lane->lock);
		}
		lane->n_polls_seen = n;
	}
}

/* -- the data path: the caller holds the lock -- */

int tcp_lane_poll(struct tcp_lane *lane)
{
	bool received_any = false, has_more = false;
	struct tcp_link *link;
	uint64_t rings;
	int n = 0;

	if (__atomic_load_n(&lane->rung, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&lane->rung, 0, __ATOMIC_RELAXED);
		n += read(lane->bell, &rings, sizeof(rings)) > 0;
	}
	__atomic_store_n(&lane->n_polls, lane->n_polls + 1, __ATOMIC_RELAXED);
	LIST_FOREACH (link, &lane->links, entry) {
		int received;

		if (link->state != TCP_L_UP)
			continue;
		received = tcp_link_receive(link);
		n += received;
		received_any |= received > 0;
		has_more |= link->unread || link->stalled || link->stream;
		if (link->relay)
			tcp_relay_collect(link);
		if (link->state == TCP_L_UP && (link->blocked || link->urgent))
			tcp_link_send(link);
	}
	lane->drained = received_any && !has_more;
	return n;
}

/*
 * Skip one poll after a poll that emptied the sockets: a recvmsg() without data would delay the
 * replies. After the connection is lost, every call polls, because the user stops at the first call
 * that returns nothing.
 */
int tcp_lane_poll_unless_drained(struct tcp_lane *lane)
{
	if (!lane->drained || tcp_lost(lane->conn))
		return tcp_lane_poll(lane);
	lane->drained = false;
	return 0;
}

void tcp_lane_flush(struct tcp_lane *lane)
{
	struct tcp_link *link;

	LIST_FOREACH (link, &lane->links, entry)
		if (link->state == TCP_L_UP) {
			tcp_credits(link, true);
			tcp_link_send(link);
		}
}

void tcp_lane_idle(struct tcp_lane *lane, bool last)
{
	struct tcp_link *link;

	LIST_FOREACH (link, &lane->links, entry) {
		if (link->state != TCP_L_UP)
			continue;
		/* credit costs no call of its own if something else is sent */
		tcp_credits(link, last || tcp_link_pending(link));
		if (tcp_link_pending(link))
			tcp_link_send(link);
		if (last)
			tcp_lane_rewatch(link);
	}
}
