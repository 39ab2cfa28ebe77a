/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_output.c - what a link sends: frames in order, and the data of answered reads. A frame does
 * not wait for that data, which goes in chunks of TCP_CHUNK_BYTES when no frame is left. The data
 * of a write or of a message follows its frame, because messages after it must arrive later. The
 * caller holds the lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "tcp.h"

#define IOVECS 64 /* iovecs of one sendmsg() */

uint32_t tcp_link_room(const struct tcp_link *link)
{
	uint32_t room = link->mask + 1 - (link->head - link->tail);

	return room > link->reserved ? room - link->reserved : 0;
}

bool tcp_link_has_spare(const struct tcp_link *link)
{
	return link->mask + 1 - (link->head - link->tail) > link->n_ops + 3 * TCP_PRODUCERS;
}

struct tcp_frame *tcp_link_append(struct tcp_link *link, uint8_t kind, struct tcp_item **item_p)
{
	uint32_t i = link->head++ & link->mask;

	link->items[i] = (struct tcp_item){.data = NULL};
	*item_p = &link->items[i];
	link->frames[i].kind = kind;
	link->frames[i].imm_len = 0;
	link->frames[i].queue = 0;
	link->frames[i].length = 0;
	return &link->frames[i];
}

void tcp_link_answer(struct tcp_link *link, const struct tcp_answer *answer)
{
	link->answers[link->answer_head++ & link->answer_mask] = *answer;
	link->urgent = true;
}

bool tcp_link_pending(const struct tcp_link *link)
{
	return link->tail != link->head || link->answer_tail != link->answer_head;
}

/* -- gathering -- */

struct batch {
	struct iovec iov[IOVECS];
	size_t n, bytes;
};

/* Add an iovec, or lengthen the last one. */
static void add(struct batch *b, const void *at, size_t bytes)
{
	struct iovec *last = b->n ? &b->iov[b->n - 1] : NULL;

	b->bytes += bytes;
	if (last && (const char *)last->iov_base + last->iov_len == at)
		last->iov_len += bytes;
	else if (bytes)
		b->iov[b->n++] = (struct iovec){.iov_base = (void *)at, .iov_len = bytes};
}

/* Add a frame and its data, without the first `skip` bytes, which are sent. */
static void add_frame(struct batch *b, const struct tcp_frame *frame, const uint8_t *data,
		      uint32_t length, uint32_t skip)
{
	uint32_t of_data = skip > sizeof(*frame) ? skip - (uint32_t)sizeof(*frame) : 0;

	if (skip < sizeof(*frame))
		add(b, (const uint8_t *)frame + skip, sizeof(*frame) - skip);
	if (length > of_data)
		add(b, data + of_data, length - of_data);
}

/* Make the next chunk of the first answer the current one. */
static void cut(struct tcp_link *link)
{
	const struct tcp_answer *a = &link->answers[link->answer_tail & link->answer_mask];

	link->chunk = (struct tcp_chunk){
		.frame = {.kind = TCP_DATA,
			  .queue = a->op,
			  .length = a->left < TCP_CHUNK_BYTES ? a->left : TCP_CHUNK_BYTES},
		.data = a->data};
	link->chunk.open = true;
}

static void add_chunk(struct batch *b, const struct tcp_link *link)
{
	add_frame(b, &link->chunk.frame, link->chunk.data, link->chunk.frame.length,
		  link->chunk.sent);
}

/* A chunk that was begun goes first, a new one last. */
static void gather(struct tcp_link *link, struct batch *b)
{
	uint32_t skip = link->tail_sent, i = link->tail;
	bool begun = link->chunk.open;

	b->n = b->bytes = 0;
	if (begun)
		add_chunk(b, link);
	for (; i != link->head && b->n + 4 <= IOVECS; i++, skip = 0)
		add_frame(b, &link->frames[i & link->mask], link->items[i & link->mask].data,
			  link->items[i & link->mask].length, skip);
	if (!begun && i == link->head && link->answer_tail != link->answer_head) {
		cut(link);
		add_chunk(b, link);
	}
}

/* -- what the socket has taken -- */

static void sent_chunk(struct tcp_link *link)
{
	struct tcp_answer *a = &link->answers[link->answer_tail & link->answer_mask];

	a->data += link->chunk.frame.length;
	a->left -= link->chunk.frame.length;
	link->chunk.open = false;
	if (a->left)
		return;
	if (a->last)
		link->n_unanswered--;
	if (a->piece)
		tcp_relay_piece_free(a->piece);
	link->answer_tail++;
}

/* Count bytes for the current chunk. Returns those that are left. */
static size_t take_chunk(struct tcp_link *link, size_t bytes)
{
	size_t rest = sizeof(struct tcp_frame) + link->chunk.frame.length - link->chunk.sent;

	if (bytes < rest) {
		link->chunk.sent += (uint32_t)bytes;
		return 0;
	}
	sent_chunk(link);
	return bytes - rest;
}

static void sent_frame(struct tcp_link *link)
{
	const struct tcp_frame *frame = &link->frames[link->tail & link->mask];
	struct tcp_item *item = &link->items[link->tail & link->mask];

	if (frame->kind == TCP_ACK)
		link->n_unanswered -= frame->acks.n;
	else if (frame->kind == TCP_READ || frame->kind == TCP_WRITE)
		link->ops[frame->queue].sent = true;
	else if (item->source || frame->kind == TCP_RETURN)
		tcp_data_sent(link, frame, item);
	if (item->owned)
		free((void *)item->data);
	*item = (struct tcp_item){.data = NULL};
	link->tail++;
	link->tail_sent = 0;
}

static void sent(struct tcp_link *link, size_t bytes, bool begun)
{
	if (begun)
		bytes = take_chunk(link, bytes);
	for (bytes += link->tail_sent; link->tail != link->head;) {
		size_t whole = sizeof(struct tcp_frame) +
			       link->items[link->tail & link->mask].length;

		if (bytes < whole) {
			link->tail_sent = (uint32_t)bytes;
			bytes = 0;
			break;
		}
		bytes -= whole;
		sent_frame(link);
	}
	if (!begun && link->chunk.open)
		take_chunk(link, bytes);
	/* a chunk of which nothing is sent does not go first */
	link->chunk.open = link->chunk.open && link->chunk.sent;
}

/*
 * Nothing more can be sent. What has arrived is still read: the end of the input ends the link. If
 * the socket has not ended, only the stream failed, and this end shuts the socket down.
 */
static void cannot_send(struct tcp_link *link, int error)
{
	const struct tcp_conn *conn = link->lane->conn;

	tcp_link_drop(link);
	if (error == -EPIPE || error == -ECONNRESET || error == -ETIMEDOUT)
		return;
	gantry_log_warn(conn->dev->host, "link with %s ends: cannot send: %s", conn->peer.address,
			strerror(-error));
	shutdown(link->fd, SHUT_RDWR);
}

/* Returns true if the socket has taken what was inside the stream. */
static bool flush_stream(struct tcp_link *link)
{
	ssize_t n = tcp_link_unsent(link) ? tcp_link_write(link, NULL, 0) : 0;

	if (n < 0 && n != -EAGAIN)
		cannot_send(link, (int)n);
	return n == 0;
}

void tcp_link_send(struct tcp_link *link)
{
	link->urgent = false;
	link->blocked = link->stream && !flush_stream(link);
	while (tcp_link_pending(link) && !link->blocked) {
		bool begun = link->chunk.open;
		struct batch b;
		ssize_t n;

		gather(link, &b);
		n = tcp_link_write(link, b.iov, b.n);
		gantry_count(link->lane->sends, 1);
		if (n < 0 && n != -EAGAIN && n != -EINTR) {
			cannot_send(link, (int)n);
			return;
		}
		sent(link, n > 0 ? (size_t)n : 0, begun);
		link->blocked = n < 0 || (size_t)n < b.bytes || tcp_link_unsent(link);
	}
}

void tcp_link_drop(struct tcp_link *link)
{
	for (; link->tail != link->head; link->tail++)
		if (link->items[link->tail & link->mask].owned)
			free((void *)link->items[link->tail & link->mask].data);
	for (; link->answer_tail != link->answer_head; link->answer_tail++)
		if (link->answers[link->answer_tail & link->answer_mask].piece)
			tcp_relay_piece_free(
				link->answers[link->answer_tail & link->answer_mask].piece);
	link->tail_sent = 0;
	link->chunk.open = false;
}
