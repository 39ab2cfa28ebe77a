/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_listener.c - accepts clients of a service. A client must send HELLO before the user gets the
 * accept event.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shm_comch.h"

#define ACCEPTS_PER_TURN 16
#define REFUSALS_NS 1000000000ull /* minimum interval between logged refusals */

int comch_listen(void *device, const char *service, const struct gantry_conn_events *events,
		 void *arg, void **listener_p)
{
	struct comch_device *dev = device;
	struct comch_listener *l;
	int rc;

	if (dev->pid != getpid())
		return -EPERM;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->dev = dev;
	l->events = events;
	l->arg = arg;
	l->watch = (struct comch_watch){COMCH_W_LISTENER, l};
	rc = comch_rundir_bind(dev, service, l);
	if (rc)
		goto out_undo_alloc;
	rc = comch_watch_add(dev, l->fd, EPOLLIN, &l->watch);
	if (rc)
		goto out_undo_bind;
	LIST_INSERT_HEAD(&dev->listeners, l, link);
	*listener_p = l;
	return 0;

out_undo_bind:
	comch_rundir_unbind(dev, l);
out_undo_alloc:
	free(l);
	return rc;
}

void comch_listener_free(struct comch_listener *l)
{
	LIST_REMOVE(l, link);
	free(l);
}

void comch_unlisten(void *listener)
{
	struct comch_listener *l = listener;
	struct comch_conn *conn, *next_conn;
	struct comch_device *dev;

	if (!l || l->dead)
		return;
	dev = l->dev;
	l->dead = true;
	comch_rundir_unbind(dev, l);
	/* connections that were not accepted end with ECONNREFUSED; accepted ones stay */
	comch_each (conn, next_conn, &dev->conns) {
		if (conn->listener == l && conn->state == COMCH_S_HELLO)
			comch_conn_drop(conn);
	}
	LIST_REMOVE(l, link);
	if (dev->in_progress)
		LIST_INSERT_HEAD(&dev->reap_list_listeners, l, link);
	else
		comch_listener_free(l);
}

/* Open the reserve descriptor if it is not open: an earlier open can have failed in a shortage. */
static void open_reserve(struct comch_device *dev)
{
	if (dev->reserve < 0)
		dev->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Send REFUSED to a client. Does not wait for a client that does not read. */
void comch_send_refused(int fd, uint32_t reason, const char *text)
{
	struct comch_frame frame;

	comch_frame_init(&frame, COMCH_REFUSED, sizeof(frame.refused));
	memset(&frame.refused, 0, sizeof(frame.refused));
	frame.refused.reason = reason;
	snprintf(frame.refused.text, sizeof(frame.refused.text), "%s", text);
	comch_socket_send(fd, &frame, COMCH_FRAME_MIN + sizeof(frame.refused), NULL, 0);
}

void comch_log_refusal(struct comch_device *dev, const char *text)
{
	uint64_t now = comch_now(dev);

	if (dev->refused_ns && now < dev->refused_ns + REFUSALS_NS)
		return;
	dev->refused_ns = now;
	gantry_log_warn(dev->host, "connection refused reason=\"%s\"", text);
}

/*
 * Stop accepting until the closer has closed some descriptors, or for COMCH_PAUSE_NS. Otherwise
 * epoll would report the waiting clients in each turn, and the control thread would not sleep.
 */
static void pause_accepts(struct comch_listener *l)
{
	struct comch_device *dev = l->dev;
	struct epoll_event none = {.events = 0, .data.ptr = &l->watch};

	epoll_ctl(dev->epoll, EPOLL_CTL_MOD, l->fd, &none);
	l->paused = true;
	dev->resume_ns = comch_now(dev) + COMCH_PAUSE_NS;
	if (!dev->deadline_ns || dev->resume_ns < dev->deadline_ns)
		dev->deadline_ns = dev->resume_ns;
	/*
	 * if the closer has just finished, it does not see `paused`: then resume_ns ends the pause
	 */
	__atomic_store_n(&dev->paused, 1, __ATOMIC_RELAXED);
}

void comch_listeners_resume(struct comch_device *dev)
{
	struct comch_listener *l;

	dev->resume_ns = 0;
	LIST_FOREACH (l, &dev->listeners, link) {
		struct epoll_event in = {.events = EPOLLIN, .data.ptr = &l->watch};

		if (l->paused)
			epoll_ctl(dev->epoll, EPOLL_CTL_MOD, l->fd, &in);
		l->paused = false;
	}
}

/*
 * The process has no descriptor left: close the reserve to accept the next client, and refuse it.
 */
static void refuse_next(struct comch_listener *l)
{
	static const char text[] =
		"busy: no file descriptor left in the listener: raise ulimit -n or close connections";
	struct comch_device *dev = l->dev;
	int fd;

	/*
	 * no reserve: the closer has not closed the last refused client yet, or another thread has
	 * taken the free descriptor
	 */
	if (dev->reserve < 0) {
		pause_accepts(l);
		return;
	}
	close(dev->reserve);
	fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0) {
		comch_fds_add(dev, dev->other_users, 1);
		comch_send_refused(fd, COMCH_REASON_BUSY, text);
		comch_close_foreign(dev, dev->other_users, &fd, 1);
		comch_log_refusal(dev, text);
	}
	dev->reserve = -1;
	open_reserve(dev);
}

/*
 * Returns the limit of the connections of one user. If several users may connect, a quarter of
 * COMCH_CONNS is reserved for the other users.
 */
static unsigned int conns_of_one(const struct comch_device *dev)
{
	return dev->n_uids > 1 ? COMCH_CONNS / 4 * 3 : COMCH_CONNS;
}

/*
 * Check that one more connection does not exceed a limit of the user. Its socket is already
 * counted. Returns 0; or COMCH_REASON_*, with the reason in `text`.
 */
static uint32_t refuse_reason(const struct comch_device *dev, const struct comch_share *share,
			      uint32_t uid, char text[COMCH_REFUSED_TEXT])
{
	const size_t bytes = COMCH_REFUSED_TEXT;

	if (!share) {
		snprintf(text, bytes, "uid %u is not in %s.uids", uid, dev->host->name);
		return COMCH_REASON_ACCESS;
	}
	if (comch_fds_held(share->user) >= dev->max_fds)
		comch_fds_text(dev, share->user, text);
	else if (share->n_half_open >= COMCH_HALF_OPEN)
		snprintf(
			text, bytes,
			"busy: limit of half-open connections=%u reached by uid %u: close connections",
			COMCH_HALF_OPEN, uid);
	else if (share->n_conns >= conns_of_one(dev))
		snprintf(text, bytes,
			 "busy: limit of connections=%u reached by uid %u: close connections",
			 conns_of_one(dev), uid);
	else if (dev->n_conns >= COMCH_CONNS)
		snprintf(
			text, bytes,
			"busy: limit of connections=%u reached by all users together: close connections",
			COMCH_CONNS);
	else
		return 0;
	return COMCH_REASON_BUSY;
}

/*
 * Admit or refuse a client. Returns false if the listener must pause because too many sockets of
 * refused clients wait to be closed. A refused client can connect again immediately, so this pause,
 * not max_fds, limits the number of those sockets.
 */
static bool admit(struct comch_listener *l, int fd)
{
	struct comch_device *dev = l->dev;
	struct comch_share *share = NULL;
	struct comch_user *user = dev->other_users;
	struct gantry_peer peer = {.uid = 0};
	char text[COMCH_REFUSED_TEXT];
	uint32_t reason = COMCH_REASON_BUSY;
	int rc = comch_socket_peer(fd, &peer);

	if (!rc)
		share = comch_share(dev, peer.uid);
	if (share)
		user = share->user;
	comch_fds_add(dev, user, 1);
	if (!rc) {
		reason = refuse_reason(dev, share, peer.uid, text);
		if (!reason) {
			rc = comch_conn_accept(l, fd, share);
			if (!rc)
				return true;
			reason = COMCH_REASON_BUSY;
		}
	}
	if (rc)
		snprintf(text, sizeof(text),
			 "busy: the listener cannot accept a connection: %s: try again",
			 strerror(-rc));
	comch_log_refusal(dev, text);
	comch_send_refused(fd, reason, text);
	comch_close_foreign(dev, user, &fd, 1);
	return comch_fds_held(user) < (share ? dev->max_fds : 0) + ACCEPTS_PER_TURN;
}

void comch_listener_ready(struct comch_listener *l)
{
	open_reserve(l->dev);
	for (int i = 0; i < ACCEPTS_PER_TURN && !l->dead; i++) {
		int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE)
				refuse_next(l);
			else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
				pause_accepts(l);
			return;
		}
		if (!admit(l, fd) && !l->dead) {
			pause_accepts(l);
			return;
		}
	}
}
