/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_link.c - a socket between two lanes: its connection, what it receives, its accesses. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../common/power.h"
#include "tcp.h"

#define READS_PER_POLL 4 /* limit of reads of a socket in one poll */
#define LAST_READS 64    /* limit of reads of a link whose connection has ended */
#define NO_OP UINT16_MAX

/* -- creation. Thread: control -- */

static int allocate(struct tcp_link *link, uint32_t depth)
{
	uint32_t n;

	/*
	 * answers to accesses of the peer; OPEN, SHUT, RETURN, and one of CREDIT, ASK and RECALL of
	 * each producer
	 */
	link->reserved = depth + 4 * TCP_PRODUCERS;
	n = tc_power_of_two(link->reserved + 2 * depth);
	link->mask = n - 1;
	link->frames = aligned_alloc(64, n * sizeof(*link->frames));
	link->items = calloc(n, sizeof(*link->items));
	link->in = aligned_alloc(64, TCP_READ_BYTES);
	link->answer_mask = tc_power_of_two(depth + TCP_RELAY_PIECES) - 1;
	link->answers = calloc(link->answer_mask + 1, sizeof(*link->answers));
	link->n_ops = (uint16_t)depth;
	link->ops = calloc(depth, sizeof(*link->ops));
	if (!link->frames || !link->items || !link->in || !link->answers || !link->ops)
		return -ENOMEM;
	/* unused bytes of a frame are sent as well: nothing of older memory leaves */
	memset(link->frames, 0, n * sizeof(*link->frames));
	for (uint16_t i = 0; i < link->n_ops; i++)
		link->ops[i].next = (uint16_t)(i + 1 < link->n_ops ? i + 1 : NO_OP);
	return 0;
}

static void release(struct tcp_link *link)
{
	free(link->frames);
	free(link->items);
	free(link->in);
	free(link->answers);
	free(link->ops);
	free(link);
}

int tcp_link_new(struct tcp_lane *lane, uint32_t peer_lane, struct tcp_link **link_p)
{
	struct tcp_conn *conn = lane->conn;
	struct tcp_link *link;

	if (conn->n_links == TCP_LINKS)
		return -ENOSPC;
	link = calloc(1, sizeof(*link));
	if (!link)
		return -ENOMEM;
	link->watch.what = TCP_LINK_OF_LANE;
	link->lane = lane;
	link->peer_lane = peer_lane;
	link->fd = -1;
	link->state = TCP_L_ASKED;
	if (allocate(link, (uint32_t)conn->dev->conf->max_depth)) {
		release(link);
		return -ENOMEM;
	}
	conn->n_links++;
	LIST_INSERT_HEAD(&lane->links, link, entry);
	*link_p = link;
	return 0;
}

struct tcp_link *tcp_link_reuse(struct tcp_lane *lane)
{
	struct tcp_link *link;

	LIST_FOREACH (link, &lane->links, entry)
		if (link->state == TCP_L_CLOSED && link->peer_lane >= TCP_LANES && !link->owner)
			break;
	if (!link)
		return NULL;
	/* a third party has no producers, and accesses of this end do not use its links */
	tcp_link_drop(link);
	link->state = TCP_L_ASKED;
	link->blocked = link->urgent = link->unread = false;
	link->in_from = link->in_to = 0;
	link->n_unanswered = 0;
	return link;
}

struct tcp_link *tcp_link_find(const struct tcp_lane *lane, uint32_t peer_lane)
{
	struct tcp_link *link;

	LIST_FOREACH (link, &lane->links, entry)
		if (link->peer_lane == peer_lane)
			break;
	return link;
}

int tcp_link_start(struct tcp_link *link)
{
	struct tcp_conn *conn = link->lane->conn;
	struct tcp_device *dev = conn->dev;
	int rc;

	link->deadline_ns = tcp_now(dev) + dev->conf->connect_timeout_ns;
	tcp_wake(dev);
	if (conn->end == TCP_LISTENS && !link->owner) {
		const struct tcp_ctrl_link body = {.connects_lane = (uint16_t)link->peer_lane,
						   .listens_lane = (uint16_t)link->lane->number};

		return tcp_control_put(conn, TCP_CTRL_LINK, &body, sizeof(body));
	}
	rc = tcp_socket_connect(dev, link->owner ? (const struct sockaddr *)&link->owner->addr
						 : (const struct sockaddr *)&conn->to[conn->at]);
	if (rc < 0)
		return rc;
	link->fd = rc;
	link->state = TCP_L_CONNECTING;
	return tcp_watch(dev, link->fd, EPOLLOUT, &link->watch);
}

int tcp_link_want(struct tcp_lane *lane, uint32_t peer_lane, struct tcp_link **link_p)
{
	int rc = 0;

	pthread_mutex_lock(&lane->lock);
	*link_p = tcp_link_find(lane, peer_lane);
	if (!*link_p) {
		rc = tcp_link_new(lane, peer_lane, link_p);
		if (!rc)
			rc = tcp_link_start(*link_p);
		if (rc && *link_p) {
			tcp_link_free(*link_p);
			*link_p = NULL;
		}
	}
	pthread_mutex_unlock(&lane->lock);
	return rc ? rc : tcp_relay_link(*link_p);
}

static void close_socket(struct tcp_link *link)
{
	tcp_stream_close(link->lane->conn->dev, link->stream);
	link->stream = NULL;
	if (link->fd >= 0 && link->lane->epoll >= 0)
		epoll_ctl(link->lane->epoll, EPOLL_CTL_DEL, link->fd, NULL);
	tcp_close_fd(link->lane->conn->dev, link->fd);
	link->fd = -1;
}

void tcp_link_close(struct tcp_link *link)
{
	close_socket(link);
	/* 0 if the link is up: the thread of the lane must not write it */
	if (link->deadline_ns)
		link->deadline_ns = 0;
	link->state = TCP_L_CLOSED;
	if (link->body.rest && link->body.kind == TCP_MESSAGE)
		tcp_data_body_end(link, TCP_A_LOST);
	link->body.rest = 0;
}

/* Find the access that was started first. Returns n_ops: none is in flight. */
static uint16_t first_op(const struct tcp_link *link)
{
	uint16_t first = link->n_ops;

	for (uint16_t i = 0; i < link->n_ops; i++)
		if (link->ops[i].kind &&
		    (first == link->n_ops ||
		     (int32_t)(link->ops[i].number - link->ops[first].number) < 0))
			first = i;
	return first;
}

static void end_ops(struct tcp_link *link)
{
	while (link->n_out)
		tcp_link_op_done(link, first_op(link), -ENOTCONN);
}

void tcp_link_free(struct tcp_link *link)
{
	tcp_link_drop(link);
	end_ops(link);
	tcp_relay_free(link);
	for (uint32_t i = 0; i < link->n_sources; i++)
		if (link->sources[i])
			link->sources[i]->link = NULL;
	close_socket(link);
	link->lane->conn->n_links--;
	LIST_REMOVE(link, entry);
	release(link);
}

/* -- the start of a link. Thread: control -- */

void tcp_link_up(struct tcp_link *link, uint32_t ops)
{
	link->state = TCP_L_UP;
	link->deadline_ns = 0;
	link->limit = ops < link->n_ops ? ops : link->n_ops;
	for (uint32_t i = 0; i < TCP_PRODUCERS; i++)
		if (link->producers[i])
			tcp_producer_open(link->producers[i]);
	tcp_link_send(link);
	tcp_lane_watch(link);
}

void tcp_link_take(struct tcp_link *link, struct tcp_pending *pending)
{
	struct tcp_item *item;
	struct tcp_frame *frame;

	tcp_unwatch(pending->dev, pending->fd);
	pthread_mutex_lock(&link->lane->lock);
	link->fd = pending->fd;
	link->stream = pending->stream;
	pending->fd = -1;
	pending->stream = NULL;
	frame = tcp_link_append(link, TCP_READY, &item);
	frame->ops = link->n_ops;
	tcp_link_up(link, pending->hello.ops);
	pthread_mutex_unlock(&link->lane->lock);
}

static void greet_owner(const struct tcp_link *link, struct tcp_hello *hello)
{
	const struct tcp_owner *owner = link->owner;

	hello->kind = TCP_DIRECT;
	hello->session = owner->session;
	hello->listens_lane = 0; /* the owner has no lane for it */
	if (!link->lane->conn->dev->host->records)
		memcpy(hello->secret, owner->secret, sizeof(hello->secret));
}

static int open_stream(struct tcp_link *link, const struct tcp_hello *hello)
{
	const struct tcp_conn *conn = link->lane->conn;
	uint8_t secret[TCP_STREAM_SECRET];
	int rc;

	if (link->owner)
		return tcp_stream_open(conn->dev, link->fd, false, link->owner->secret, TCP_SECRET,
				       hello, &link->stream);
	rc = tcp_link_stream_secret(conn, hello, secret);
	if (!rc)
		rc = tcp_stream_open(conn->dev, link->fd, false, secret, sizeof(secret), hello,
				     &link->stream);
	explicit_bzero(secret, sizeof(secret));
	return rc;
}

static void greeted(struct tcp_link *link);

/* Continue the handshake of the stream. */
static void shake(struct tcp_link *link)
{
	struct tcp_conn *conn = link->lane->conn;
	uint32_t events;
	int rc = tcp_stream_handshake(conn->dev, link->stream, &events);

	if (rc && rc != -EAGAIN) {
		tcp_link_close(link);
		if (rc == -EACCES || rc == -EPROTO)
			tcp_conn_broken(conn, "fails the handshake of a link");
		else
			tcp_conn_fail(conn, -ENOTCONN);
		return;
	}
	tcp_rewatch(conn->dev, link->fd, events, &link->watch);
	if (rc)
		return;
	link->state = TCP_L_GREETING;
	greeted(link);
}

/* The socket of the client has connected, or has failed to. */
static void greet(struct tcp_link *link)
{
	struct tcp_conn *conn = link->lane->conn;
	struct tcp_hello hello = {.magic = TCP_MAGIC,
				  .version = tcp_version(conn->dev),
				  .kind = TCP_LINK,
				  .session = conn->session,
				  .connects_lane = (uint16_t)link->lane->number,
				  .listens_lane = (uint16_t)link->peer_lane,
				  .ops = link->n_ops};
	int rc = tcp_socket_error(link->fd);

	if (!rc && link->owner)
		greet_owner(link, &hello);
	else if (!rc)
		rc = tcp_link_secret(conn, hello.connects_lane, hello.listens_lane, hello.secret);
	/* the buffer of a new socket has room for the hello */
	if (!rc && send(link->fd, &hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello))
		rc = -EPIPE;
	if (!rc && conn->dev->host->records)
		rc = open_stream(link, &hello);
	if (rc) {
		tcp_link_close(link);
		tcp_conn_fail(conn, rc);
		return;
	}
	if (link->stream) {
		link->state = TCP_L_HANDSHAKE;
		shake(link);
		return;
	}
	link->state = TCP_L_GREETING;
	tcp_rewatch(conn->dev, link->fd, EPOLLIN, &link->watch);
}

/* The server answers with READY, or ends the socket. */
static void greeted(struct tcp_link *link)
{
	struct tcp_conn *conn = link->lane->conn;
	struct tcp_frame frame;
	struct iovec iov = {.iov_base = link->in + link->in_to,
			    .iov_len = sizeof(frame) - link->in_to};
	ssize_t n = tcp_link_read(link, &iov, 1);

	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n <= 0) {
		tcp_link_close(link);
		tcp_conn_fail(conn, -ENOTCONN);
		return;
	}
	link->in_to += (uint32_t)n;
	if (link->in_to < sizeof(frame))
		return;
	memcpy(&frame, link->in, sizeof(frame));
	link->in_to = 0;
	if (frame.kind != TCP_READY || frame.ops == 0) {
		tcp_link_close(link);
		tcp_conn_broken(conn, "answers a link with an unexpected frame");
		return;
	}
	tcp_unwatch(conn->dev, link->fd);
	tcp_link_up(link, frame.ops);
}

void tcp_on_link(struct tcp_link *link)
{
	struct tcp_lane *lane = link->lane;

	pthread_mutex_lock(&lane->lock);
	if (link->state == TCP_L_CONNECTING) {
		greet(link);
	} else if (link->state == TCP_L_HANDSHAKE) {
		shake(link);
	} else if (link->state == TCP_L_GREETING) {
		greeted(link);
	} else if (link->state == TCP_L_UP && lane->n_users == 0) {
		tcp_lane_poll(lane);
		tcp_lane_idle(lane, true);
	}
	pthread_mutex_unlock(&lane->lock);
}

/* The peer has ended the socket, or the socket has failed. */
static void ended(struct tcp_link *link)
{
	struct tcp_conn *conn = link->lane->conn;

	tcp_link_close(link);
	if (link->peer_lane >= TCP_LANES)
		return; /* a third party has ended, not the peer */
	__atomic_store_n(&conn->link_end_ns, tcp_now(conn->dev), __ATOMIC_RELAXED);
	tcp_wake(conn->dev);
}

/* -- receiving -- */

/* Give received bytes to the data of the current frame. Returns the number it takes. */
static uint32_t feed(struct tcp_link *link, const uint8_t *bytes, uint32_t n)
{
	uint32_t take = n < link->body.rest ? n : link->body.rest;

	if (link->body.into) {
		if (bytes)
			memcpy(link->body.into, bytes, take);
		link->body.into += take;
	}
	link->body.rest -= take;
	if (link->body.rest == 0)
		tcp_body_done(link);
	return take;
}

/* Handle the received bytes. Returns the number of frames. */
static int parse(struct tcp_link *link)
{
	int n = 0;

	while (link->state == TCP_L_UP && !link->stalled) {
		uint32_t bytes = link->in_to - link->in_from;
		struct tcp_frame frame;

		if (link->body.rest) {
			if (bytes == 0)
				break;
			link->in_from += feed(link, link->in + link->in_from, bytes);
			n++;
			continue;
		}
		if (bytes < sizeof(frame))
			break;
		memcpy(&frame, link->in + link->in_from, sizeof(frame));
		link->in_from += sizeof(frame);
		tcp_frame_take(link, &frame);
		n++;
	}
	memmove(link->in, link->in + link->in_from, link->in_to - link->in_from);
	link->in_to -= link->in_from;
	link->in_from = 0;
	return n;
}

/* Read: data of a region goes straight to its place. Returns as tcp_link_read(). */
static ssize_t read_some(struct tcp_link *link, size_t *want_p)
{
	bool direct = link->body.rest && link->body.into;
	struct iovec iov[2] = {
		{.iov_base = link->body.into, .iov_len = direct ? link->body.rest : 0},
		{.iov_base = link->in + link->in_to, .iov_len = TCP_READ_BYTES - link->in_to}};
	ssize_t n = tcp_link_read(link, direct ? iov : iov + 1, direct ? 2 : 1);
	uint32_t rest = direct ? link->body.rest : 0;

	*want_p = iov[0].iov_len + iov[1].iov_len;
	if (n <= 0)
		return n;
	if (direct)
		feed(link, NULL, n < (ssize_t)rest ? (uint32_t)n : rest);
	if (n > (ssize_t)rest)
		link->in_to += (uint32_t)n - rest;
	return n;
}

int tcp_link_receive(struct tcp_link *link)
{
	int frames = 0;

	if (link->stalled) {
		link->stalled = false;
		tcp_relay_step(link);
		frames += parse(link);
	}
	for (int i = 0; i < READS_PER_POLL && link->state == TCP_L_UP && !link->stalled; i++) {
		size_t want;
		ssize_t n = read_some(link, &want);

		link->unread = false;
		if (n == -EAGAIN || n == -EINTR)
			break;
		if (n <= 0) {
			if (n == -EPROTO)
				tcp_link_invalid(link, "sends an invalid record");
			else
				ended(link);
			break;
		}
		link->n_reads++;
		frames += parse(link) + 1;
		link->unread = (size_t)n == want;
		if (!link->unread)
			break;
	}
	if (link->relay && link->state == TCP_L_UP)
		tcp_relay_send(link);
	return frames;
}

/* -- accesses of this end -- */

int tcp_link_submit(struct tcp_link *link, const struct tcp_access *access, const struct tcp_op *op)
{
	struct tcp_frame *frame;
	struct tcp_item *item;
	uint16_t i = link->free_op;

	if (link->state == TCP_L_CLOSED)
		return -ENOTCONN;
	if (link->state != TCP_L_UP || i == NO_OP || link->n_out == link->limit ||
	    !tcp_link_room(link))
		return -EAGAIN;
	link->free_op = link->ops[i].next;
	link->ops[i] = *op;
	link->ops[i].number = link->n_started++;
	link->n_out++;
	frame = tcp_link_append(link, op->kind, &item);
	frame->queue = i;
	frame->length = op->length;
	frame->access = *access;
	if (op->kind == TCP_WRITE) {
		item->data = op->local;
		item->length = op->length;
	}
	return 0;
}

void tcp_link_op_done(struct tcp_link *link, uint16_t i, int status)
{
	struct tcp_op op = link->ops[i];

	link->ops[i] = (struct tcp_op){.next = link->free_op};
	link->free_op = i;
	link->n_out--;
	if (op.owner)
		op.ended(op.owner, op.cookie, status);
}

/* Returns why accesses have no answer. info: of the socket of the link. */
static const char *cause_of_silence(const struct tcp_link *link, const struct tcp_info *info)
{
	if (link->fd < 0)
		return "the socket is closed";
	if (link->stalled || link->unread)
		return "this process does not read the socket";
	if (info->tcpi_retransmits)
		return "the network loses data: check the path to the peer";
	return "the peer is stopped or overloaded: check its process";
}

static void log_silence(const struct tcp_link *link)
{
	const struct tcp_conn *conn = link->lane->conn;
	struct tcp_info info = {0};
	socklen_t bytes = sizeof(info);
	char owner[TC_ADDRESS_TEXT];

	if (link->owner)
		tc_address_print((struct sockaddr *)&link->owner->addr, owner, sizeof(owner));
	if (link->fd >= 0)
		getsockopt(link->fd, IPPROTO_TCP, TCP_INFO, &info, &bytes);
	gantry_log_warn(conn->dev->host,
			"link to %s: no answer (lane=%u, accesses=%u, unsent_frames=%u, "
			"blocked=%d, stalled=%d, unread=%d, unacked_segments=%u, retransmits=%u, "
			"window_probes=%u, dead_time=%llu ms): %s",
			link->owner ? owner : conn->peer.address, link->lane->number, link->n_out,
			link->head - link->tail, link->blocked, link->stalled, link->unread,
			info.tcpi_unacked, info.tcpi_retransmits, info.tcpi_probes,
			(unsigned long long)conn->dev->conf->dead_time_ns / 1000000,
			cause_of_silence(link, &info));
}

bool tcp_link_is_stuck(struct tcp_link *link, uint32_t limit)
{
	bool quiet = link->n_out && link->n_reads == link->n_reads_seen;

	link->n_reads_seen = link->n_reads;
	link->n_quiet = quiet ? link->n_quiet + 1 : 0;
	/* the first call can follow the access at once */
	if (link->n_quiet <= limit)
		return false;
	log_silence(link);
	return true;
}

/*
 * What has arrived is read first, because nothing is read afterwards: data must not reach memory of
 * an access that has completed.
 */
void tcp_link_end_accesses(struct tcp_link *link)
{
	for (int i = 0; i < LAST_READS && tcp_link_receive(link) > 0; i++)
		;
	tcp_link_close(link);
	end_ops(link);
}

bool tcp_link_uses(const struct tcp_link *link, const struct tcp_export *e)
{
	if (link->body.rest && link->body.kind == TCP_WRITE && link->body.target == e)
		return true;
	/* tcp_relay_forget() does not end an access without a piece in flight */
	if (link->relay && link->relay->now.left && link->relay->now.e == e)
		return true;
	for (uint32_t i = link->answer_tail; i != link->answer_head; i++)
		if (link->answers[i & link->answer_mask].source == e)
			return true;
	return false;
}

/* Copy data that is not sent yet, since its memory can change from now on. */
static void keep(struct tcp_link *link, struct tcp_item *item)
{
	uint8_t *copy = malloc(item->length);

	if (!copy) {
		tcp_conn_fail(link->lane->conn, -ENOMEM);
		tcp_link_close(link);
		return;
	}
	memcpy(copy, item->data, item->length);
	item->data = copy;
	item->owned = true;
}

void tcp_link_forget(struct tcp_link *link, const void *owner, void *heir,
		     void (*done)(void *heir, uint64_t cookie, int status))
{
	if (link->body.rest && link->body.kind == TCP_DATA &&
	    link->ops[link->body.op].owner == owner)
		link->body.into = NULL;
	for (uint32_t i = link->tail; i != link->head; i++) {
		struct tcp_item *item = &link->items[i & link->mask];
		const struct tcp_frame *frame = &link->frames[i & link->mask];

		if (frame->kind == TCP_WRITE && item->length && !item->owned &&
		    link->ops[frame->queue].owner == owner)
			keep(link, item);
	}
	for (uint16_t i = 0; i < link->n_ops; i++)
		if (link->ops[i].owner == owner) {
			link->ops[i].owner = heir;
			link->ops[i].ended = done;
			link->ops[i].local = NULL;
		}
}

void tcp_link_forget_producer(struct tcp_link *link, const struct tcp_producer *p)
{
	for (uint32_t i = link->tail; i != link->head; i++) {
		struct tcp_item *item = &link->items[i & link->mask];

		if (item->source == TCP_FROM_NONE || link->frames[i & link->mask].queue != p->queue)
			continue;
		if (!item->owned)
			keep(link, item);
		item->source = TCP_FROM_NONE;
	}
}

void tcp_link_forget_source(struct tcp_link *link, const struct tcp_export *e)
{
	for (uint32_t i = link->tail; i != link->head; i++) {
		struct tcp_item *item = &link->items[i & link->mask];

		if (item->source == TCP_FROM_REGION && !item->owned && item->data >= e->at &&
		    item->data < e->at + e->length)
			keep(link, item);
	}
}
