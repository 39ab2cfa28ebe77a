/* SPDX-License-Identifier: BSD-3-Clause */
/* listener.c - a service name: peers come in, and introduce themselves before the user hears of them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comch.h"

#define ACCEPTS_PER_TURN 16

int comch_listen(void *device, const char *service, const struct gantry_conn_events *events, void *arg,
		 void **listener_p)
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
	comch_list_append(&dev->listeners, &l->link);
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
	comch_list_remove(&l->link);
	free(l);
}

void comch_unlisten(void *listener)
{
	struct comch_listener *l = listener;
	struct comch_link *pos, *next;
	struct comch_device *dev;

	if (!l || l->dead)
		return;
	dev = l->dev;
	l->dead = true;
	comch_rundir_unbind(dev, l);
	/* whoever has not been accepted yet never will be; the others live on */
	comch_list_each(pos, next, &dev->conns) {
		struct comch_conn *conn = comch_entry(pos, struct comch_conn, link);

		if (conn->listener == l && conn->state == COMCH_S_HELLO)
			comch_disconnect(conn);
	}
	comch_list_remove(&l->link);
	if (dev->in_progress)
		comch_list_append(&dev->graveyard_listeners, &l->link);
	else
		comch_listener_free(l);
}

/* Also what a former shortage has taken. */
static void open_reserve(struct comch_device *dev)
{
	if (dev->reserve < 0)
		dev->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* No descriptor left: give up the reserve for a moment to get the peer off the queue, and hang up on it. */
static void shed(struct comch_listener *l)
{
	struct comch_device *dev = l->dev;
	int fd;

	if (dev->reserve < 0)
		return;
	close(dev->reserve);
	fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	dev->reserve = -1;
	open_reserve(dev);
}

void comch_listener_ready(struct comch_listener *l)
{
	struct comch_device *dev = l->dev;

	open_reserve(dev);
	for (int i = 0; i < ACCEPTS_PER_TURN && !l->dead; i++) {
		int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), rc;

		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE)
				shed(l);
			return;
		}
		if (dev->n_half_open >= COMCH_HALF_OPEN || dev->n_conns >= COMCH_CONNS)
			close(fd);
		else if ((rc = comch_conn_accept(l, fd)) == -ENOMEM) /* all that the peer sees is that nobody speaks to it */
			gantry_log_warn(dev->host, "cannot take a connection: %s", strerror(-rc));
	}
}
