/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_conn.c - a connection from HELLO to the `closed` event.
 *
 *   connect --> HELLO --(peer's HELLO)--> OPEN
 *   accept ---> HELLO --> ACCEPT -------> OPEN
 *                                         OPEN --(end of the socket)--> DYING
 *                                         DYING --(end of the process)--> CLOSED
 *
 * In DYING this end waits until the process of the peer has ended. A connection skips DYING if the
 * peer has sent BYE, or if this end is the server end and exports no region.
 *
 * A listener that cannot accept a connection sends REFUSED with the reason instead of HELLO
 * (shm_listener.c).
 *
 * An invalid frame, or a corrupt queue found by a lane, ends the connection with -EPROTO.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "shm_comch.h"

#define FRAMES_PER_TURN 64

static struct comch_conn *conn_create(struct comch_device *dev, int fd)
{
	struct comch_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return NULL;
	conn->dev = dev;
	conn->fd = fd;
	conn->pidfd = -1;
	conn->peer_room = UINT64_MAX;
	conn->watch = (struct comch_watch){COMCH_W_SOCKET, conn};
	conn->death = (struct comch_watch){COMCH_W_PROCESS, conn};
	TAILQ_INIT(&conn->out);
	LIST_INIT(&conn->consumers);
	LIST_INIT(&conn->producers);
	LIST_INIT(&conn->remotes);
	LIST_INIT(&conn->rmas);
	for (unsigned int i = 0; i < COMCH_REGIONS; i++)
		conn->imported[i] = (struct comch_import){.fd = -1, .hold = -1, .conn = conn};
	LIST_INSERT_HEAD(&dev->conns, conn, link);
	dev->n_conns++;
	return conn;
}

static void close_counted(const struct comch_conn *conn, const int *fds, unsigned int n)
{
	comch_close_fds(fds, n);
	comch_fds_sub(conn->user, comch_count_open(fds, n));
}

void comch_conn_close_fds(const struct comch_conn *conn, const int *fds, unsigned int n)
{
	if (conn->peer.uid != conn->dev->uids[0])
		comch_close_foreign(conn->dev, conn->user, fds, n);
	else
		close_counted(conn, fds, n);
}

bool comch_conn_take_fds(struct comch_conn *conn, unsigned int n)
{
	if (comch_fds_add(conn->dev, conn->user, n) || n == 0)
		return true;
	comch_fds_sub(conn->user, n);
	comch_conn_full(conn);
	return false;
}

static void set_deadline(struct comch_conn *conn, uint64_t at_ns)
{
	struct comch_device *dev = conn->dev;

	conn->deadline_ns = at_ns;
	if (!dev->deadline_ns || at_ns < dev->deadline_ns)
		dev->deadline_ns = at_ns;
}

static void close_pidfd(struct comch_conn *conn)
{
	if (conn->pidfd >= 0) {
		comch_watch_close(conn->dev, conn->pidfd);
		comch_fds_sub(conn->user, 1);
	}
	conn->pidfd = -1;
}

static void close_socket(struct comch_conn *conn)
{
	comch_out_drop(conn);
	if (conn->fd >= 0) {
		comch_watch_end(conn->dev, conn->fd);
		comch_conn_close_fds(conn, &conn->fd, 1);
	}
	conn->fd = -1;
	conn->want_out = false;
}

void comch_conn_free(struct comch_conn *conn)
{
	close_socket(conn);
	close_pidfd(conn);
	if (conn->hold_socket)
		close(conn->hold_socket);
	LIST_REMOVE(conn, link);
	free(conn);
}

static void end_half_open(struct comch_conn *conn)
{
	if (conn->half_open)
		conn->share->n_half_open--;
	conn->half_open = false;
}

/*
 * Release the resources of the connection. It is freed at the end of the current progress, because
 * events of this turn can still point to it.
 */
static void destroy(struct comch_conn *conn)
{
	struct comch_device *dev = conn->dev;

	end_half_open(conn);
	if (conn->share)
		conn->share->n_conns--;
	dev->n_conns--;
	conn->state = COMCH_S_DEAD;
	close_socket(conn);
	close_pidfd(conn);
	LIST_REMOVE(conn, link);
	LIST_INSERT_HEAD(&dev->reap_list, conn, link);
	if (!dev->in_progress)
		comch_conn_free(conn);
}

static void send_bye(struct comch_conn *conn)
{
	struct comch_frame frame;

	if (conn->fd < 0)
		return;
	comch_frame_init(&frame, COMCH_BYE, 0);
	comch_out_flush(conn);
	comch_socket_send(conn->fd, &frame, COMCH_FRAME_MIN, NULL, 0);
}

/*
 * The peer violated the protocol: read no more frames. The socket stays open for BYE, which
 * notifies the peer that its memory has been unmapped.
 */
static void stop_reading(struct comch_conn *conn)
{
	comch_out_drop(conn);
	if (conn->fd >= 0)
		epoll_ctl(conn->dev->epoll, EPOLL_CTL_DEL, conn->fd, NULL);
}

/* End the connection. The user gets no event after `closed`. */
static void finish(struct comch_conn *conn, int reason)
{
	bool quiet = conn->said_bye || conn->is_dead;

	__atomic_store_n(&conn->lost, 1, __ATOMIC_RELAXED);
	if (conn->state == COMCH_S_CLOSED || conn->state == COMCH_S_DEAD)
		return;
	conn->deadline_ns = 0;
	close_pidfd(conn);
	if (reason == -EPROTO)
		stop_reading(conn);
	else
		close_socket(conn);
	if (conn->listener) { /* the connection was not accepted yet, so its user gets no event */
		destroy(conn);
		return;
	}
	if (conn->state >= COMCH_S_OPEN)
		comch_regions_closed(conn, quiet ? 0 : -ETIMEDOUT);
	if (conn->state == COMCH_S_DEAD) /* the user has disconnected in a callback */
		return;
	if (conn->is_dead && *conn->service)
		comch_rundir_sweep(conn->dev, conn->service);
	conn->state = COMCH_S_CLOSED;
	conn->dev->events++;
	conn->events->closed(conn->arg, conn, conn->lack ? conn->lack : reason);
}

static bool process_ended(struct comch_conn *conn)
{
	struct pollfd p = {.fd = conn->pidfd, .events = POLLIN};

	if (conn->pidfd >= 0 && poll(&p, 1, 0) > 0)
		conn->is_dead = true;
	return conn->is_dead;
}

static bool has_exports(const struct comch_conn *conn)
{
	for (unsigned int i = 0; i < COMCH_REGIONS; i++)
		if (conn->exported[i].state != COMCH_E_FREE)
			return true;
	return false;
}

/*
 * The socket has ended. The peer has released exported memory only after BYE or after the end of
 * its process. So without BYE this end waits for the end of the process. That end also frees the
 * lock of the peer's service, so that a client can remove the stale socket.
 */
static void on_socket_end(struct comch_conn *conn)
{
	int reason = conn->state != COMCH_S_HELLO ? -ENOTCONN
		     : conn->said_bye             ? -EACCES
						  : -ECONNREFUSED;

	__atomic_store_n(&conn->lost, 1, __ATOMIC_RELAXED);
	conn->reason = reason;
	if (conn->state != COMCH_S_OPEN || conn->said_bye || process_ended(conn) ||
	    conn->pidfd < 0 || conn->peer.pid == conn->dev->pid ||
	    (!has_exports(conn) && !*conn->service)) {
		finish(conn, reason);
		return;
	}
	close_socket(conn);
	conn->state = COMCH_S_DYING;
	set_deadline(conn, comch_now(conn->dev) + COMCH_DEATH_NS);
}

/* Returns true if the connection has ended, or is about to end because of the peer. */
static bool is_over(const struct comch_conn *conn)
{
	return conn->state == COMCH_S_CLOSED || conn->state == COMCH_S_DEAD ||
	       conn->reason == -EPROTO;
}

void comch_conn_broken(struct comch_conn *conn, const char *why)
{
	struct comch_device *dev = conn->dev;

	if (is_over(conn))
		return;
	gantry_log_warn(dev->host, "dropping the connection of %s: %s", conn->peer.address, why);
	gantry_count(dev->protocol_errors, 1);
	__atomic_store_n(&conn->lost, 1, __ATOMIC_RELAXED);
	conn->reason = -EPROTO;
	comch_device_kick(dev);
}

/* Send REFUSED before BYE. Frames that wait for the socket are dropped. */
static void send_refusal(struct comch_conn *conn, uint32_t reason, const char *text)
{
	comch_out_drop(conn);
	if (conn->share && conn->fd >= 0)
		comch_send_refused(conn->fd, reason, text);
}

void comch_conn_expel(struct comch_conn *conn, const char *why)
{
	if (is_over(conn))
		return;
	send_refusal(conn, COMCH_REASON_PROTOCOL, why);
	comch_conn_broken(conn, why);
}

void comch_conn_full(struct comch_conn *conn)
{
	struct comch_device *dev = conn->dev;
	char text[COMCH_REFUSED_TEXT];

	if (is_over(conn))
		return;
	comch_fds_text(dev, conn->user, text);
	comch_log_refusal(dev, text);
	send_refusal(conn, COMCH_REASON_BUSY, text);
	__atomic_store_n(&conn->lost, 1, __ATOMIC_RELAXED);
	conn->reason = -EPROTO;
	conn->lack = -EMFILE;
	comch_device_kick(dev);
}

void comch_conn_poison(struct comch_conn *conn, enum comch_corruption what)
{
	__atomic_store_n(&conn->lost, 1, __ATOMIC_RELAXED);
	if (__atomic_exchange_n(&conn->poison, what, __ATOMIC_RELAXED) == 0)
		comch_device_kick(conn->dev);
}

int comch_conn_usable(const struct comch_conn *conn)
{
	if (conn->dev->pid != getpid())
		return -EPERM;
	if ((conn->state != COMCH_S_OPEN && conn->state != COMCH_S_ACCEPT) ||
	    __atomic_load_n(&conn->lost, __ATOMIC_RELAXED))
		return -ENOTCONN;
	return 0;
}

static void hello_init(const struct comch_conn *conn, struct comch_frame *frame)
{
	uint64_t room = (conn->dev->conf->max_bytes + COMCH_ROOM - 1) / COMCH_ROOM;

	comch_frame_init(frame, COMCH_HELLO, sizeof(frame->hello));
	frame->hello.features = conn->dev->membarrier ? COMCH_F_MEMBARRIER : 0;
	frame->hello.room = room < COMCH_ROOM_ANY ? (uint32_t)room : COMCH_ROOM_ANY;
}

static const char *on_hello(struct comch_conn *conn, const struct comch_hello *hello)
{
	struct comch_listener *l = conn->listener;
	struct comch_frame answer;
	bool refused;

	conn->membarrier = conn->dev->membarrier && (hello->features & COMCH_F_MEMBARRIER);
	if (hello->room && hello->room != COMCH_ROOM_ANY)
		conn->peer_room = hello->room * COMCH_ROOM;
	conn->deadline_ns = 0;
	if (!l) {
		conn->state = COMCH_S_OPEN;
		conn->dev->events++;
		conn->events->connected(conn->arg, conn, &conn->peer);
		return NULL;
	}
	conn->state = COMCH_S_ACCEPT;
	end_half_open(conn);
	conn->dev->events++;
	conn->events = l->events;
	refused = l->events->accept(l->arg, conn, &conn->peer, &conn->arg) != 0;
	if (conn->state != COMCH_S_ACCEPT)
		return NULL;
	if (refused) {
		comch_out_drop(conn);
		send_bye(conn);
		comch_regions_free(conn);
		comch_queues_free(conn);
		destroy(conn);
		return NULL;
	}
	conn->listener = NULL;
	gantry_count(conn->dev->connections, 1);
	hello_init(conn, &answer);
	comch_out_must(conn, &answer); /* queued before frames that accept() has sent */
	conn->state = COMCH_S_OPEN;
	if (!__atomic_load_n(&conn->lost, __ATOMIC_RELAXED))
		comch_out_flush(conn);
	return NULL;
}

/* Store a text of the peer. '?' replaces each character that is not printable. */
static void set_refusal(struct comch_conn *conn, const char *text)
{
	size_t n = 0;

	for (; n + 1 < sizeof(conn->refusal) && text[n]; n++)
		conn->refusal[n] = text[n] >= ' ' && text[n] <= '~' ? text[n] : '?';
	conn->refusal[n] = '\0';
}

static const char *on_refused(struct comch_conn *conn, const struct comch_refused *refused)
{
	if (conn->share)
		return "sends REFUSED as a client";
	set_refusal(conn, refused->text);
	/* BYE follows, after the peer has unmapped the memory of this side */
	if (conn->state == COMCH_S_OPEN)
		return NULL;
	finish(conn, refused->reason == COMCH_REASON_BUSY ? -EBUSY : -EACCES);
	return NULL;
}

const char *comch_refusal(void *arg)
{
	const struct comch_conn *conn = arg;

	return conn->refusal[0] ? conn->refusal : NULL;
}

static const char *on_frame(struct comch_conn *conn, const struct comch_frame *f, int *fds)
{
	switch (f->head.type) {
	case COMCH_HELLO:
		return on_hello(conn, &f->hello);
	case COMCH_BYE:
		conn->said_bye = true;
		on_socket_end(conn);
		return NULL;
	case COMCH_DATA:
		conn->dev->events++;
		conn->events->message(conn->arg, conn, f->data, f->head.length);
		return NULL;
	case COMCH_CONSUMER:
		return comch_on_consumer(conn, &f->consumer, fds);
	case COMCH_CONSUMER_GONE:
		return comch_on_consumer_gone(conn, f->id.id);
	case COMCH_PRODUCER:
		return comch_on_producer(conn, &f->producer, fds);
	case COMCH_PRODUCER_OK:
		return comch_on_producer_ok(conn, &f->ok);
	case COMCH_PRODUCER_GONE:
		return comch_on_producer_gone(conn, f->id.id);
	case COMCH_REGION:
		return comch_on_region(conn, &f->region, fds);
	case COMCH_REGION_OK:
		return comch_on_region_ok(conn, f->id.id);
	case COMCH_REVOKE:
		return comch_on_revoke(conn, f->id.id);
	case COMCH_REFUSED:
		return on_refused(conn, &f->refused);
	default:
		return comch_on_released(conn, f->id.id);
	}
}

/* Read and process one frame. Returns 1; 0: no frame is waiting, or the connection has ended. */
static int read_frame(struct comch_conn *conn)
{
	unsigned int n_fds = 0, phase = conn->state == COMCH_S_OPEN ? COMCH_P_OPEN : COMCH_P_HELLO;
	int fds[COMCH_FDS_MAX] = {-1, -1};
	const char *why = NULL;
	struct comch_frame frame;
	bool within;
	ssize_t len;

	len = comch_socket_recv(conn->fd, &frame, fds, &n_fds, &why);
	if (len == -EAGAIN)
		return 0;
	if (len == 0) {
		on_socket_end(conn);
		return 0;
	}
	within = comch_fds_add(conn->dev, conn->user, n_fds) || n_fds == 0;
	if (len > 0)
		why = comch_frame_check(&frame, (size_t)len, n_fds, phase);
	if (why || !within) {
		comch_conn_close_fds(conn, fds, n_fds);
	} else {
		why = on_frame(conn, &frame, fds); /* sets the descriptors that it keeps to -1 */
		if (why)
			comch_conn_close_fds(conn, fds, n_fds);
		else
			/* the descriptors were checked, so closing them does not block */
			close_counted(conn, fds, n_fds);
	}
	if (why) {
		if (len == -EMFILE)
			conn->lack = -EMFILE;
		comch_conn_broken(conn, why);
		return 0;
	}
	if (!within)
		comch_conn_full(conn);
	return within && conn->reason != -EPROTO && conn->state != COMCH_S_DEAD;
}

void comch_conn_ready(struct comch_conn *conn, uint32_t events)
{
	int n = FRAMES_PER_TURN;

	if (conn->fd < 0 || conn->reason == -EPROTO)
		return;
	if (events & EPOLLOUT)
		comch_out_flush(conn);
	/* also reads the frames that the peer sent before the end of the socket */
	while (n-- > 0 && conn->fd >= 0 && read_frame(conn))
		;
}

static void on_death(struct comch_conn *conn)
{
	while (conn->fd >= 0 && conn->reason != -EPROTO && read_frame(conn))
		;
	if (conn->state == COMCH_S_DEAD || conn->state == COMCH_S_CLOSED)
		return;
	/* The socket outlives the process if a child of the peer holds the other end open. */
	if (conn->fd >= 0)
		on_socket_end(conn);
	else
		finish(conn, conn->reason ? conn->reason : -ENOTCONN);
}

void comch_conn_check(struct comch_conn *conn, uint64_t now_ns)
{
	static const char *const texts[] = {
		[COMCH_CORRUPT_RECEIVE] =
			"corrupt queue (queue=receive): the peer wrote an invalid entry: restart the peer",
		[COMCH_CORRUPT_SEND] =
			"corrupt queue (queue=send): the peer consumed entries that were not sent: restart the peer",
		[COMCH_CORRUPT_BELL] =
			"corrupt doorbell (queue=receive): the peer sent descriptors: restart the peer",
	};
	uint32_t poison = __atomic_load_n(&conn->poison, __ATOMIC_RELAXED);

	if (poison)
		comch_conn_broken(conn, texts[poison]);
	if (conn->state == COMCH_S_FAILED) {
		finish(conn, conn->reason);
	} else if (conn->reason == -EPROTO) {
		finish(conn, -EPROTO);
	} else if (conn->is_dead && conn->state != COMCH_S_CLOSED) {
		on_death(conn);
	} else if (conn->deadline_ns && now_ns >= conn->deadline_ns) {
		finish(conn, conn->state == COMCH_S_HELLO ? -ETIMEDOUT : conn->reason);
	}
	if (conn->state == COMCH_S_OPEN && conn->dev->retry)
		comch_regions_retry(conn);
}

/* Log and store the refusal: the process at the other end runs as a user that is not in `uids`. */
static void reject_uid(struct comch_conn *conn)
{
	char text[sizeof(conn->refusal)];

	snprintf(text, sizeof(text), "uid %u of the peer is not in %s.uids of this process: add it",
		 conn->peer.uid, conn->dev->host->name);
	set_refusal(conn, text);
	gantry_log_warn(conn->dev->host, "connection rejected: %s", text);
}

/* Start the handshake on conn->fd. Returns 0 or -errno. */
static int start(struct comch_conn *conn)
{
	struct comch_device *dev = conn->dev;
	const struct comch_share *share;
	int rc = comch_socket_peer(conn->fd, &conn->peer);

	if (rc)
		return rc;
	share = comch_share(dev, conn->peer.uid);
	if (!share) {
		reject_uid(conn);
		return -EACCES;
	}
	conn->user = share->user;
	/* client end: count the socket; for a server end the listener has counted it */
	if (!conn->share)
		comch_fds_add(dev, conn->user, 1);
	conn->state = COMCH_S_HELLO;
	set_deadline(conn, comch_now(dev) + COMCH_HELLO_NS);
	rc = comch_watch_add(dev, conn->fd, EPOLLIN, &conn->watch);
	if (rc)
		return rc;
	conn->pidfd = comch_socket_pidfd(conn->fd, conn->peer.pid);
	if (conn->pidfd >= 0)
		comch_fds_add(dev, conn->user, 1);
	if (conn->pidfd >= 0 && conn->peer.pid != dev->pid)
		rc = comch_watch_add(dev, conn->pidfd, EPOLLIN, &conn->death);
	return rc;
}

int comch_connect(void *device, const char *service, const struct gantry_conn_events *events,
		  void *arg, void **conn_p)
{
	struct comch_device *dev = device;
	struct comch_frame hello;
	struct comch_conn *conn;
	int fd, rc;

	if (dev->pid != getpid())
		return -EPERM;
	if (dev->n_conns >= COMCH_CONNS)
		return -EMFILE;
	fd = comch_rundir_connect(dev, service);
	if (fd == -EINVAL || fd == -ENAMETOOLONG)
		return fd;
	conn = conn_create(dev, fd < 0 ? -1 : fd);
	if (!conn) {
		if (fd >= 0)
			close(fd);
		return -ENOMEM;
	}
	conn->events = events;
	conn->arg = arg;
	snprintf(conn->service, sizeof(conn->service), "%s", service);
	rc = fd < 0 ? fd : start(conn);
	if (!rc) {
		hello_init(conn, &hello);
		rc = comch_out_send(conn, &hello, NULL, 0);
		if (rc == -ENOTCONN) /* the server has closed the socket: read its reason */
			rc = 0;
		gantry_count(dev->connections, 1);
	}
	if (rc) { /* `closed` reports the error in the next progress */
		close_socket(conn);
		conn->state = COMCH_S_FAILED;
		conn->reason = rc;
		if (rc == -EBUSY)
			set_refusal(conn, "busy: the backlog of the listener is full: try again");
		comch_device_kick(dev);
	}
	*conn_p = conn;
	return 0;
}

int comch_send_ctrl(void *arg, const void *msg, size_t len)
{
	struct comch_conn *conn = arg;
	struct comch_frame frame;
	int rc = comch_conn_usable(conn);

	if (rc)
		return rc;
	if (len == 0 || len > GANTRY_CTRL_MAX)
		return -EMSGSIZE;
	comch_frame_init(&frame, COMCH_DATA, (uint32_t)len);
	memcpy(frame.data, msg, len);
	return comch_out_send(conn, &frame, NULL, 0);
}

void comch_disconnect(void *arg)
{
	struct comch_conn *conn = arg;

	if (!conn || conn->state == COMCH_S_DEAD)
		return;
	if (*conn->service && conn->dev->pid == getpid() && process_ended(conn))
		comch_rundir_sweep(conn->dev, conn->service);
	__atomic_store_n(&conn->lost, 1, __ATOMIC_RELAXED);
	comch_queues_free(conn);
	comch_regions_free(conn);
	/* All memory of the peer is unmapped: send BYE. */
	if (conn->dev->pid == getpid() && (conn->state == COMCH_S_OPEN ||
					   conn->state == COMCH_S_HELLO || conn->reason == -EPROTO))
		send_bye(conn);
	destroy(conn);
}

void comch_conn_drop(struct comch_conn *conn)
{
	finish(conn, -ECONNREFUSED);
}

int comch_conn_accept(struct comch_listener *l, int fd, struct comch_share *share)
{
	struct comch_conn *conn = conn_create(l->dev, fd);
	int rc;

	if (!conn)
		return -ENOMEM;
	conn->listener = l;
	conn->share = share;
	conn->half_open = true;
	share->n_conns++;
	share->n_half_open++;
	rc = start(conn);
	if (rc) {
		/* the caller closes the socket, which also removes it from the epoll set */
		conn->fd = -1;
		destroy(conn);
	}
	return rc;
}
