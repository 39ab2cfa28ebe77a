/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_relay.c - accesses to memory that this end has imported over TCP from a third party, the
 * owner, and has exported to the peer. TCP cannot hand on the right to access memory, so this end
 * executes the accesses of the peer with accesses of its own:
 *
 *     peer                     this end                                 owner
 *     WRITE and data  ------>  link (back): a piece of the data
 *                              link (front) of the same lane  ------->  WRITE and data
 *     ACK             <------                                 <-------  ACK
 *
 * The pieces go to the owner in the order in which they arrive, before a message that follows them
 * is delivered here. So a message that the user sends on because of that message arrives after the
 * data.
 *
 * A thread that holds the lock of the back lane only tries to lock the front lane. Both are the
 * same lane if the peer is the owner, which gets its own memory back. Answers of the owner are
 * appended to a list with a lock of its own, below the locks of all lanes.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tcp.h"

/* -- creation. Thread: control -- */

/* Open the link to the owner that relays of this lane use. */
static int want_front(struct tcp_conn *owner, uint32_t number)
{
	struct tcp_lane *lane;
	struct tcp_link *link;
	int rc;

	if (owner->fronts[number])
		return 0;
	rc = tcp_lane_get(owner, number, &lane);
	if (!rc)
		rc = tcp_link_want(lane, number, &link);
	if (!rc) /* pairs with submit() */
		__atomic_store_n(&owner->fronts[number], link, __ATOMIC_RELEASE);
	return rc;
}

static int make_bell(struct tcp_lane *lane)
{
	if (lane->bell >= 0)
		return 0;
	lane->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (lane->bell < 0)
		return -errno;
	tcp_lane_watch_bell(lane);
	return 0;
}

static int make_relay(struct tcp_link *link)
{
	struct tcp_relay *relay = calloc(1, sizeof(*relay));

	if (!relay)
		return -ENOMEM;
	relay->memory = malloc((size_t)TCP_RELAY_PIECES * TCP_RELAY_BYTES);
	if (!relay->memory) {
		free(relay);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < TCP_RELAY_PIECES; i++) {
		relay->pieces[i].back = link;
		relay->pieces[i].bytes = relay->memory + (size_t)i * TCP_RELAY_BYTES;
		relay->pieces[i].next = i + 1 < TCP_RELAY_PIECES ? &relay->pieces[i + 1] : NULL;
	}
	relay->free = relay->pieces;
	relay->done_end = &relay->done;
	pthread_mutex_init(&relay->lock, NULL);
	link->relay = relay;
	return 0;
}

static int prepare(struct tcp_link *link, struct tcp_conn *owner)
{
	int rc = want_front(owner, link->lane->number);

	if (rc)
		return rc;
	pthread_mutex_lock(&link->lane->lock);
	rc = link->relay ? 0 : make_relay(link);
	if (!rc)
		rc = make_bell(link->lane);
	pthread_mutex_unlock(&link->lane->lock);
	return rc;
}

int tcp_relay_prepare(struct tcp_conn *conn, struct tcp_conn *owner)
{
	struct tcp_lane *lane;
	struct tcp_link *link;
	int rc = 0;

	LIST_FOREACH (lane, &conn->lanes, entry)
		LIST_FOREACH (link, &lane->links, entry)
			if (!rc && link->peer_lane < TCP_LANES)
				rc = prepare(link, owner);
	return rc;
}

int tcp_relay_link(struct tcp_link *link)
{
	struct tcp_conn *conn = link->lane->conn;
	int rc = 0;

	for (uint32_t i = 0; i < TCP_REGIONS && conn->n_relays && !rc; i++)
		if (conn->exports[i].region && conn->exports[i].relay)
			rc = prepare(link, conn->exports[i].relay->conn);
	return rc;
}

static void release_import(struct tcp_import *im)
{
	if (__atomic_sub_fetch(&im->n_relayed, 1, __ATOMIC_RELEASE) == 0)
		tcp_wake(im->conn->dev);
}

/* The owner has answered an access of a relay that has ended. */
static void answered_late(void *heir, uint64_t cookie, int status)
{
	(void)cookie;
	(void)status;
	release_import(heir);
}

/*
 * Do not use the memory of a piece any more. Its import counts it until the owner has answered, so
 * that RELEASED does not overtake the access. Returns false if the owner has answered before.
 */
static bool forget(struct tcp_relay_piece *piece)
{
	struct tcp_link *front = __atomic_load_n(&piece->front, __ATOMIC_ACQUIRE);
	bool in_flight;

	if (!front)
		return false;
	pthread_mutex_lock(&front->lane->lock);
	in_flight = piece->front != NULL;
	if (in_flight)
		tcp_link_forget(front, piece, piece->im, answered_late);
	piece->front = NULL;
	pthread_mutex_unlock(&front->lane->lock);
	return in_flight;
}

void tcp_relay_free(struct tcp_link *link)
{
	struct tcp_relay *relay = link->relay;

	if (!relay)
		return;
	for (uint32_t i = 0; i < TCP_RELAY_PIECES; i++)
		forget(&relay->pieces[i]);
	pthread_mutex_destroy(&relay->lock);
	free(relay->memory);
	free(relay);
	link->relay = NULL;
}

/* -- pieces. The caller holds the lock of the back lane -- */

static struct tcp_relay_piece *take_piece(struct tcp_relay *relay)
{
	struct tcp_relay_piece *piece = relay->free;

	if (piece)
		relay->free = piece->next;
	return piece;
}

void tcp_relay_piece_free(struct tcp_relay_piece *piece)
{
	struct tcp_relay *relay = piece->back->relay;

	piece->next = relay->free;
	relay->free = piece;
}

/* The access of a piece has ended: the back lane answers the peer. */
static void finish(struct tcp_relay_piece *piece, int status)
{
	struct tcp_relay *relay = piece->back->relay;
	struct tcp_lane *lane = piece->back->lane;
	uint64_t one = 1;

	piece->status = status;
	piece->next = NULL;
	pthread_mutex_lock(&relay->lock);
	*relay->done_end = piece;
	relay->done_end = &piece->next;
	pthread_mutex_unlock(&relay->lock);
	/* either this end sees `armed`, or tcp_relay_has_work() sees the piece */
	if (__atomic_load_n(&lane->armed, __ATOMIC_RELAXED)) {
		ssize_t n = write(lane->bell, &one, sizeof(one));

		(void)n; /* a full bell is rung already */
		/* last, so that a poll that sees it can take the ring */
		__atomic_store_n(&lane->rung, 1, __ATOMIC_RELEASE);
	}
}

/* The owner has answered. The caller holds the lock of the front lane. */
static void answered(void *owner, uint64_t cookie, int status)
{
	struct tcp_relay_piece *piece = owner;
	struct tcp_import *im = piece->im;

	(void)cookie;
	__atomic_store_n(&piece->front, NULL, __ATOMIC_RELEASE);
	release_import(im);
	finish(piece, status);
}

/* If no thread polls the front lane, its epoll reports when the socket takes more. */
static void send_front(struct tcp_link *front)
{
	if (front->state != TCP_L_UP)
		return;
	tcp_link_send(front);
	tcp_lane_rewatch(front);
}

/* Returns false if another thread holds the lock. */
static bool lock_front(const struct tcp_link *back, struct tcp_link *front)
{
	return front->lane == back->lane || pthread_mutex_trylock(&front->lane->lock) == 0;
}

static void unlock_front(const struct tcp_link *back, struct tcp_link *front)
{
	if (front->lane != back->lane)
		pthread_mutex_unlock(&front->lane->lock);
}

/* Submit the current piece to the owner. Returns 0; -EAGAIN: later; -ENOTCONN. */
static int submit(struct tcp_link *link, struct tcp_relay_piece *piece)
{
	struct tcp_relay *relay = link->relay;
	struct tcp_import *im = relay->now.im;
	struct tcp_link *front = __atomic_load_n(&im->conn->fronts[link->lane->number],
						 __ATOMIC_ACQUIRE);
	const struct tcp_op op = {.owner = piece,
				  .ended = answered,
				  .local = piece->bytes,
				  .length = piece->length,
				  .kind = piece->kind};
	const struct tcp_access access = {.name = im->wire.name, .offset = relay->now.offset};
	int rc;

	if (!front || tcp_lost(im->conn))
		return -ENOTCONN;
	if (!lock_front(link, front))
		return -EAGAIN;
	rc = tcp_link_submit(front, &access, &op);
	if (rc == 0) {
		piece->im = im;
		piece->front = front;
		__atomic_fetch_add(&im->n_relayed, 1, __ATOMIC_RELAXED);
		gantry_count(link->lane->payload, piece->length);
	} else {
		send_front(front);
	}
	unlock_front(link, front);
	if (rc == 0 && relay->unsent != front) {
		tcp_relay_send(link);
		relay->unsent = front;
	}
	return rc;
}

/* Take a buffer for the next piece. Returns false if there is none. */
static bool next_piece(struct tcp_link *link)
{
	struct tcp_relay *relay = link->relay;
	struct tcp_relay_piece *piece = take_piece(relay);

	if (!piece)
		return false;
	piece->length = relay->now.left < TCP_RELAY_BYTES ? relay->now.left : TCP_RELAY_BYTES;
	piece->op = relay->now.op;
	piece->kind = relay->now.kind;
	piece->last = piece->length == relay->now.left;
	relay->now.piece = piece;
	relay->now.filled = piece->kind == TCP_READ;
	if (piece->kind == TCP_WRITE)
		tcp_body_expect(link, TCP_WRITE, piece->op, piece->length, piece->bytes,
				relay->now.e);
	return true;
}

void tcp_relay_step(struct tcp_link *link)
{
	struct tcp_relay *relay = link->relay;
	int rc;

	while (relay->now.left) {
		if (!relay->now.piece && !next_piece(link)) {
			link->stalled = true;
			return;
		}
		if (!relay->now.filled)
			return;
		rc = submit(link, relay->now.piece);
		if (rc == -EAGAIN)
			link->stalled = true;
		else if (rc)
			tcp_conn_fail(link->lane->conn, rc);
		if (rc)
			return;
		relay->now.offset += relay->now.piece->length;
		relay->now.left -= relay->now.piece->length;
		relay->now.piece = NULL;
	}
}

void tcp_relay_filled(struct tcp_link *link)
{
	link->relay->now.filled = true;
	tcp_relay_step(link);
}

void tcp_relay_start(struct tcp_link *link, const struct tcp_frame *frame,
		     const struct tcp_export *e)
{
	if (frame->length == 0 && frame->kind == TCP_WRITE) {
		tcp_acknowledge(link, frame->queue);
	} else if (frame->length == 0) {
		tcp_link_answer(link, &(struct tcp_answer){.op = frame->queue, .last = true});
	} else {
		link->relay->now.im = e->relay;
		link->relay->now.e = e;
		link->relay->now.offset = frame->access.offset;
		link->relay->now.left = frame->length;
		link->relay->now.op = frame->queue;
		link->relay->now.kind = frame->kind;
		tcp_relay_step(link);
	}
}

void tcp_relay_send(struct tcp_link *link)
{
	struct tcp_link *front = link->relay->unsent;

	if (!front || !lock_front(link, front))
		return;
	link->relay->unsent = NULL;
	send_front(front);
	unlock_front(link, front);
}

/* Answer the peer. */
static void answer(struct tcp_link *link, struct tcp_relay_piece *piece)
{
	if (piece->status || link->state != TCP_L_UP) {
		if (piece->status)
			tcp_conn_fail(link->lane->conn, piece->status);
		tcp_relay_piece_free(piece);
		return;
	}
	link->urgent = true;
	if (piece->kind == TCP_READ) {
		tcp_link_answer(link, &(struct tcp_answer){.data = piece->bytes,
							   .left = piece->length,
							   .op = piece->op,
							   .last = piece->last,
							   .piece = piece});
		return;
	}
	if (piece->last)
		tcp_acknowledge(link, piece->op);
	tcp_relay_piece_free(piece);
}

/* Complete the pieces of owners whose connection has ended: no other poll does that. */
static void end_lost(struct tcp_relay *relay)
{
	for (uint32_t i = 0; i < TCP_RELAY_PIECES; i++) {
		struct tcp_link *front = __atomic_load_n(&relay->pieces[i].front, __ATOMIC_ACQUIRE);

		if (!front || (!tcp_lost(front->lane->conn) && front->state != TCP_L_CLOSED) ||
		    pthread_mutex_trylock(&front->lane->lock))
			continue;
		tcp_link_end_accesses(front);
		pthread_mutex_unlock(&front->lane->lock);
	}
}

void tcp_relay_forget(struct tcp_link *link, const struct tcp_import *im)
{
	struct tcp_relay *relay = link->relay;
	struct tcp_link *unsent = relay->unsent;

	for (uint32_t i = 0; i < TCP_RELAY_PIECES; i++)
		if (relay->pieces[i].im == im && forget(&relay->pieces[i]))
			finish(&relay->pieces[i], -ENOTCONN);
	if (!unsent || unsent->lane->conn != im->conn)
		return;
	pthread_mutex_lock(&unsent->lane->lock);
	send_front(unsent);
	pthread_mutex_unlock(&unsent->lane->lock);
	relay->unsent = NULL;
}

void tcp_relay_collect(struct tcp_link *link)
{
	struct tcp_relay *relay = link->relay;
	struct tcp_relay_piece *piece, *next;

	end_lost(relay);
	pthread_mutex_lock(&relay->lock);
	piece = relay->done;
	relay->done = NULL;
	relay->done_end = &relay->done;
	pthread_mutex_unlock(&relay->lock);
	for (; piece; piece = next) {
		next = piece->next;
		answer(link, piece);
	}
	tcp_relay_send(link);
}

/*
 * unsent: perhaps another thread held the lock of the front lane. Its release wakes no lane, so
 * this lane must poll again. done: both sides use relay->lock, so either this check sees the piece,
 * or finish() sees `armed`.
 */
bool tcp_relay_has_work(struct tcp_link *link)
{
	bool work;

	pthread_mutex_lock(&link->relay->lock);
	work = link->relay->done || link->relay->unsent || link->stalled;
	pthread_mutex_unlock(&link->relay->lock);
	return work;
}

void tcp_on_bell(struct tcp_lane *lane)
{
	pthread_mutex_lock(&lane->lock);
	if (lane->n_users == 0) {
		tcp_lane_poll(lane);
		tcp_lane_idle(lane, true);
	}
	pthread_mutex_unlock(&lane->lock);
}
