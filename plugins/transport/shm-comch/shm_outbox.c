/* SPDX-License-Identifier: BSD-3-Clause */
/* shm_outbox.c - sends frames to a peer, or queues them in order until its socket is writable. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "shm_comch.h"

static void watch_output(struct comch_conn *conn, bool out)
{
	struct epoll_event ev = {.events = EPOLLIN | (out ? (uint32_t)EPOLLOUT : 0),
				 .data.ptr = &conn->watch};

	if (conn->want_out == out || conn->fd < 0)
		return;
	conn->want_out = out;
	epoll_ctl(conn->dev->epoll, EPOLL_CTL_MOD, conn->fd, &ev);
}

static void free_out(struct comch_conn *conn, struct comch_out *out)
{
	TAILQ_REMOVE(&conn->out, out, link);
	conn->n_out--;
	conn->n_out_ctrl -= out->ctrl;
	comch_close_fds(out->fds, out->n_fds);
	comch_fds_sub(conn->user, out->n_fds);
	free(out);
}

static int queue(struct comch_conn *conn, const struct comch_frame *frame, size_t len,
		 const int *fds, unsigned int n_fds)
{
	struct comch_out *out = malloc(sizeof(*out) + len);

	if (!out)
		return -ENOMEM;
	if (!comch_conn_take_fds(conn, n_fds)) {
		free(out);
		return -EMFILE;
	}
	out->len = len;
	out->ctrl = frame->head.type == COMCH_DATA;
	memcpy(out->frame, frame, len);
	for (out->n_fds = 0; out->n_fds < n_fds; out->n_fds++) {
		out->fds[out->n_fds] = fcntl(fds[out->n_fds], F_DUPFD_CLOEXEC, 0);
		if (out->fds[out->n_fds] < 0) {
			int rc = -errno;

			comch_close_fds(out->fds, out->n_fds);
			comch_fds_sub(conn->user, n_fds);
			free(out);
			return rc;
		}
	}
	/* HELLO precedes the frames that accept() has sent */
	if (frame->head.type == COMCH_HELLO)
		TAILQ_INSERT_HEAD(&conn->out, out, link);
	else
		TAILQ_INSERT_TAIL(&conn->out, out, link);
	conn->n_out++;
	conn->n_out_ctrl += out->ctrl;
	return 0;
}

int comch_out_send(struct comch_conn *conn, const struct comch_frame *frame, const int *fds,
		   unsigned int n_fds)
{
	size_t len = COMCH_FRAME_MIN + frame->head.length;
	int rc;

	if (conn->fd < 0)
		return -ENOTCONN;
	if (conn->state != COMCH_S_ACCEPT && TAILQ_EMPTY(&conn->out)) {
		ssize_t n = comch_socket_send(conn->fd, frame, len, fds, n_fds);

		if (n >= 0)
			return 0;
		if (n != -EAGAIN)
			return n == -EPIPE || n == -ECONNRESET ? -ENOTCONN : (int)n;
	}
	if (frame->head.type == COMCH_DATA && conn->n_out_ctrl >= COMCH_CTRL_QUEUE)
		return -EAGAIN;
	if (conn->n_out >= COMCH_FRAME_QUEUE) {
		comch_conn_broken(conn, "does not read its control socket");
		return -ENOTCONN;
	}
	rc = queue(conn, frame, len, fds, n_fds);
	if (!rc && conn->state != COMCH_S_ACCEPT)
		watch_output(conn, true);
	return rc;
}

void comch_out_must(struct comch_conn *conn, const struct comch_frame *frame)
{
	int rc = comch_out_send(conn, frame, NULL, 0);

	if (rc == 0 || rc == -ENOTCONN)
		return;
	conn->lack = rc;
	comch_conn_broken(conn, "out of memory: a required frame cannot be queued");
}

void comch_out_id(struct comch_conn *conn, enum comch_type type, uint32_t id)
{
	struct comch_frame frame;

	comch_frame_init(&frame, type, sizeof(frame.id));
	frame.id.id = id;
	comch_out_must(conn, &frame);
}

void comch_out_flush(struct comch_conn *conn)
{
	while (!TAILQ_EMPTY(&conn->out)) {
		struct comch_out *out = TAILQ_FIRST(&conn->out);
		ssize_t n = comch_socket_send(conn->fd, out->frame, out->len, out->fds, out->n_fds);

		if (n == -EAGAIN) {
			watch_output(conn, true);
			return;
		}
		/*
		 * drop the frame after any other error, too: epoll reports the end of the socket
		 * next
		 */
		free_out(conn, out);
	}
	watch_output(conn, false);
}

void comch_out_drop(struct comch_conn *conn)
{
	while (!TAILQ_EMPTY(&conn->out))
		free_out(conn, TAILQ_FIRST(&conn->out));
}
