/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * responder_path.c - the data path of a responder
 *
 *      take -> check -> buffer -> move in -> submit -> ... -> complete -> move out -> reply
 *                       (bounce buffers only)                        (bounce buffers only)
 *
 * A descriptor that cannot take its next step waits in one of four queues of struct gn_responder:
 * `buffer_waiters`, `moves`, `waiting` (for the submit), `replies`. Each poll retries the queues in
 * this order: replies, moves, waiting, buffer_waiters. Without bounce buffers and without waiting
 * descriptors the responder uses the fast path, see gn_responder_update_fast_path().
 */
#include "transport/responder_priv.h"

#include "base/clock.h"
#include "io/pool.h"
#include "io/status.h"
#include "io/wire.h"
#include "pipeline/split.h"
#include "transport/bounce.h"

#include <errno.h>

/* one of this many reads is answered by a full descriptor instead of a note */
#define FULL_REPLY_EVERY 16

static __attribute__((noinline)) void fifo_put(struct gn_responder *resp,
					       struct gn_responder_fifo *fifo, struct gantry_io *io)
{
	fifo->slots[(fifo->head + fifo->n++) % resp->attr.depth] = io;
	gn_responder_update_fast_path(resp);
}

static struct gantry_io *fifo_first(const struct gn_responder_fifo *fifo)
{
	return fifo->n != 0 ? fifo->slots[fifo->head] : NULL;
}

static void fifo_drop(struct gn_responder *resp, struct gn_responder_fifo *fifo)
{
	fifo->head = (fifo->head + 1) % resp->attr.depth;
	fifo->n--;
	gn_responder_update_fast_path(resp);
}

static void break_responder(struct gn_responder *resp, int reason)
{
	if (resp->broken)
		return;
	resp->broken = 1;
	gn_responder_update_fast_path(resp);
	resp->attr.broken(resp->attr.arg, reason);
}

static void flush(struct gn_responder *resp)
{
	int send = resp->sender.dirty && !resp->broken;

	/*
	 * Flush moves even after the responder broke, because a slot stays in use until its move
	 * has ended. On an ordered device the flush of the producer starts the moves as well.
	 */
	if (resp->unmoved && !(send && resp->attr.ordered))
		gn_bounce_flush(resp->bounce);
	if (send)
		gn_sender_flush(&resp->sender);
	resp->unmoved = 0;
}

__attribute__((noinline)) void gn_responder_notify_idle(struct gn_responder *resp)
{
	if (resp->n_free != resp->attr.depth || resp->idle_notified)
		return;
	resp->idle_notified = 1;
	flush(resp); /* before `idle`, because the worker might not poll this responder again */
	resp->attr.idle(resp->attr.arg);
}

static inline void release_slot(struct gn_responder *resp, struct gantry_io *io)
{
	resp->free[resp->n_free++] = io;
}

/*
 * A request has taken its last step; owner_flags: those of its descriptor, which can belong to
 * another request by now.
 */
static void request_ended(struct gn_responder *resp, uint8_t owner_flags)
{
	if (gantry_unlikely((owner_flags & OWNER_DRAINS) != 0) && --resp->n_draining == 0) {
		gn_responder_update_fast_path(resp);
		resp->attr.drained(resp->attr.arg);
	}
	if (resp->quiescing)
		gn_responder_notify_idle(resp);
}

/*
 * The caller releases the slot before it sends the reply. A peer on this thread can send its next
 * request inside the send; by then it has read the reply.
 */
static inline int send_descriptor(struct gn_responder *resp, struct gantry_io *io)
{
	struct gantry_local_peer *peer = *resp->sender.peer;

	io->tag = io->peer_tag;
	if (!peer)
		return gn_sender_send(&resp->sender, io);
	peer->take_reply(peer, io);
	return 0;
}

/*
 * True if the responder sends no reply: the IO was canceled because its session ends. An initiator
 * that resumes the session submits an unanswered IO again, but would report a CANCELED reply to its
 * program.
 */
static inline int is_withheld(const struct gn_responder *resp, const struct gantry_io *io)
{
	return resp->abandoned && io->status == GANTRY_S_CANCELED;
}

/*
 * Send the reply, or drop it if the responder is broken, the reply is withheld, or the send fails.
 * Returns 0, or -EAGAIN if the reply must be sent later.
 */
static int send_reply(struct gn_responder *resp, struct gantry_io *io)
{
	int move_pending = (io->owner_flags & OWNER_MOVE_PENDING) != 0, rc = -ENOTCONN;
	uint8_t owner_flags;

	if (move_pending)
		resp->n_replies_before_move++;
	else
		release_slot(resp, io);
	io->owner_flags &= (uint8_t)~OWNER_REPLY_PENDING;
	owner_flags = io->owner_flags;
	if (!resp->broken && !is_withheld(resp, io))
		rc = send_descriptor(resp, io);
	if (rc == -EAGAIN &&
	    !resp->abandoned) { /* the send did not call the peer, so the slot is still free */
		io->owner_flags |= OWNER_REPLY_PENDING;
		resp->n_replies_before_move -= (uint32_t)move_pending;
		resp->n_free -= (uint32_t)!move_pending;
		return rc;
	}
	if (!move_pending)
		request_ended(resp, owner_flags);
	return 0;
}

static __attribute__((noinline)) void queue_reply(struct gn_responder *resp, struct gantry_io *io)
{
	if (resp->bounce && (io->owner_flags & OWNER_MOVE_PENDING) == 0)
		gn_bounce_detach(resp->bounce, io);
	if ((io->owner_flags & OWNER_LIST) != 0)
		gn_responder_list_detach(resp, io);
	if (resp->replies.n != 0 || send_reply(resp, io) != 0)
		fifo_put(resp, &resp->replies, io);
}

/*
 * Update the clock of the lane before the time of an IO is computed. Over a transport each reply
 * has an exact time. For a peer on this thread a coarse clock is enough, because that peer waits
 * while the clock is read.
 */
static inline void read_clock(const struct gn_responder *resp)
{
	if (*resp->sender.peer)
		gn_worker_clock_update_coarse(resp->attr.lane->worker);
	else
		gn_worker_tick(resp->attr.lane->worker);
}

/*
 * Write the time since the request arrived into the descriptor, and count the IO. answers: 0
 * if the responder relays.
 */
static inline void set_time_and_count(struct gn_responder *resp, struct gantry_io *io, int answers)
{
	const uint64_t took = resp->attr.lane->pub.now_ns - io->start_ns;
	const uint32_t ns = took > UINT32_MAX ? UINT32_MAX : (uint32_t)took;

	gn_wire_set_time(io, answers, ns);
	gantry_count(&resp->counts.by_latency[gn_latency_class(ns)], 1);
	if (gantry_likely(io->status == GANTRY_S_OK))
		gantry_count(&resp->counts.bytes, io->length);
	else
		gantry_count(&resp->counts.failed, 1);
}

static __attribute__((noinline)) void reply(struct gn_responder *resp, struct gantry_io *io)
{
	if (!resp->attr.relays)
		read_clock(resp);
	set_time_and_count(resp, io, !resp->attr.relays);
	queue_reply(resp, io);
}

__attribute__((noinline)) void gn_responder_reject(struct gn_responder *resp, struct gantry_io *io,
						   enum gantry_status status)
{
	gantry_io_end(io);
	io->status = (uint16_t)status;
	reply(resp, io);
}

/*
 * Handle the error rc of a submit. Returns 0 if the IO was rejected, or -EAGAIN if it must be
 * submitted later.
 */
static __attribute__((noinline)) int handle_rejection(struct gn_responder *resp,
						      struct gantry_io *io, int rc)
{
	if (rc == -EAGAIN && !resp->abandoned)
		return rc;
	gn_responder_reject(resp, io,
			    rc == -EAGAIN ? GANTRY_S_CANCELED : gantry_status_of_errno(rc));
	return 0;
}

/* Every descriptor in a responder has a deadline: gn_check_io() fills in a missing one. */
static inline int expired(const struct gantry_io *io, uint64_t now_ns)
{
	return now_ns >= io->start_ns + io->deadline_us * GN_NS_PER_US;
}

/* The terminal of a responder with stages. A stage can hold a descriptor past its deadline. */
static int submit_below_stages(void *self, struct gantry_io *io)
{
	struct gn_responder *resp = self;

	if (gantry_unlikely(expired(io, resp->attr.lane->pub.now_ns))) {
		gantry_fail(io, GANTRY_S_CANCELED);
		return 0;
	}
	if (gn_split_takes(io)) {
		gn_split_submit(resp->split, io);
		return 0;
	}
	return resp->attr.terminal.submit(resp->attr.terminal.self, io);
}

struct gantry_hop gn_responder_terminal(struct gn_responder *resp)
{
	/*
	 * A requester checks the deadline itself. Without stages no time passes between accept()
	 * and the terminal, and push() checks the length.
	 */
	if (!resp->has_stages)
		return resp->attr.terminal;
	return (struct gantry_hop){.submit = submit_below_stages, .self = resp};
}

/*
 * Submit an IO that counts against the quantum of the turn.
 *
 * Without stages the splitter divides the IO. With stages the IO is not divided, because a stage
 * might need all data of an IO in one descriptor. The stages get large IOs until the credit of the
 * turn is used up.
 */
static __attribute__((noinline)) int push_large(struct gn_responder *resp, struct gantry_io *io)
{
	int64_t cost = gn_split_cost(io, io->length);
	int rc = -EAGAIN;

	if (!resp->has_stages) {
		io->hop++;
		gn_chain_enter_terminal(resp->chain, io);
		gn_split_submit(resp->split, io);
		return 0;
	}
	if (resp->credit > 0)
		rc = gantry_submit(io);
	if (rc == 0)
		resp->credit -= cost;
	return rc != 0 ? handle_rejection(resp, io, rc) : 0;
}

static inline int push(struct gn_responder *resp, struct gantry_io *io)
{
	int rc;

	if (gantry_unlikely(io->length > resp->max_uncounted))
		return push_large(resp, io);
	rc = gantry_submit(io);
	return gantry_unlikely(rc != 0) ? handle_rejection(resp, io, rc) : 0;
}

void gn_responder_submit(struct gn_responder *resp, struct gantry_io *io)
{
	if (resp->abandoned)
		/* a stage might hold it, and the stages were drained already */
		gn_responder_reject(resp, io, GANTRY_S_CANCELED);
	else if (resp->waiting.n != 0 || push(resp, io) != 0)
		fifo_put(resp, &resp->waiting, io);
}

/*
 * The move of a descriptor ended. io->busy: it is submitted now, because the data of a write or the
 * list of a read has arrived. Otherwise a read that has completed, and whose reply is sent now.
 */
void gn_responder_move_ended(struct gn_responder *resp, struct gantry_io *io, int status)
{
	if (io->busy && status == 0 && expired(io, resp->attr.lane->pub.now_ns)) {
		gn_responder_reject(resp, io, GANTRY_S_CANCELED);
	} else if (io->busy && status == 0) {
		gn_responder_submit(resp, io);
	} else if (io->busy) {
		gn_responder_reject(resp, io, gantry_status_of_errno(status));
	} else {
		io->status = status == 0 ? GANTRY_S_OK : (uint16_t)gantry_status_of_errno(status);
		reply(resp, io);
	}
}

static void on_move_ended(void *arg, struct gantry_io *io, int status)
{
	struct gn_responder *resp = arg;

	resp->n_moving--;
	if ((io->owner_flags & OWNER_LIST) != 0) {
		gn_responder_list_moved(resp, io, status);
		return;
	}
	if ((io->owner_flags & OWNER_MOVE_PENDING) == 0) {
		gn_responder_move_ended(resp, io, status);
		return;
	}
	/*
	 * The reply was sent, and promises data that the peer does not have. The device delivers a
	 * reply only after the writes before it, so the peer cannot have received this reply. End
	 * the session.
	 */
	if (status != 0)
		break_responder(resp, status);
	gn_bounce_detach(resp->bounce, io);
	io->owner_flags &= (uint8_t)~OWNER_MOVE_PENDING;
	if ((io->owner_flags & OWNER_REPLY_PENDING) != 0)
		return;
	resp->n_replies_before_move--;
	release_slot(resp, io);
	request_ended(resp, io->owner_flags);
}

/*
 * Send the reply while the move is in flight: the device delivers a message that is sent now after
 * the data.
 */
static void reply_after_data(struct gn_responder *resp, struct gantry_io *io)
{
	io->owner_flags |= OWNER_MOVE_PENDING;
	io->status = GANTRY_S_OK;
	reply(resp, io);
}

/*
 * True if the read can be answered by a note. One of FULL_REPLY_EVERY replies is a full descriptor:
 * it reports the times of the hops, and the transport can return credit with it.
 */
static int can_reply_by_note(struct gn_responder *resp, const struct gantry_io *io)
{
	return io->opcode == GANTRY_OP_READ && io->length <= resp->max_noted &&
	       !(io->flags & GANTRY_IO_CRC) && !(io->owner_flags & OWNER_LIST) &&
	       !resp->attr.rules->regions[io->region]->unordered &&
	       resp->n_notes++ % FULL_REPLY_EVERY != 0;
}

/*
 * Answer a read by a note, which travels with the data. Returns 0, or a -errno: the reply must be a
 * full descriptor.
 */
static int reply_by_note(struct gn_responder *resp, struct gantry_io *io)
{
	int rc = gn_bounce_write_imm(resp->bounce, io, resp->attr.rules->regions[io->region],
				     io->peer_tag);

	if (rc == -EMSGSIZE)
		resp->max_noted = io->length - 1;
	if (rc != 0)
		return rc;
	resp->n_replies_before_move++;
	resp->n_moving++;
	resp->unmoved = 1;
	io->owner_flags = (uint8_t)((io->owner_flags & OWNER_DRAINS) | OWNER_MOVE_PENDING);
	set_time_and_count(resp, io, 1);
	return 0;
}

/*
 * Start time of a move. The data of a write is fetched right after poll_recv(), which updated the
 * clock of the lane. The data of a read is moved after the backend has completed the IO, which can
 * take long.
 */
static uint64_t move_start_ns(const struct gn_responder *resp, enum gantry_rma_op op)
{
	return op == GANTRY_RMA_READ ? resp->attr.lane->pub.now_ns : gn_fast_ns();
}

static int begin_move(struct gn_responder *resp, struct gantry_io *io)
{
	/* only a write of the volume reads the region of the peer */
	enum gantry_rma_op op = io->opcode == GANTRY_OP_WRITE ? GANTRY_RMA_READ : GANTRY_RMA_WRITE;
	int has_list = (io->owner_flags & OWNER_LIST) != 0;
	int move_pending = op == GANTRY_RMA_WRITE && resp->attr.ordered && !has_list &&
			   !resp->attr.rules->regions[io->region]->unordered,
	    rc;

	if (expired(io, resp->attr.lane->pub.now_ns)) {
		gn_responder_move_ended(resp, io, -ECANCELED);
		return 0;
	}
	if (can_reply_by_note(resp, io) && reply_by_note(resp, io) == 0)
		return 0;
	if (has_list)
		rc = gn_responder_list_move(resp, io);
	else
		rc = gn_bounce_move(resp->bounce, io, resp->attr.rules->regions[io->region], op,
				    move_pending ? 0 : move_start_ns(resp, op));
	if (rc == -EAGAIN && !resp->abandoned)
		return rc;
	if (rc != 0) {
		gn_responder_move_ended(resp, io, rc == -EAGAIN ? -ECANCELED : rc);
		return 0;
	}
	resp->n_moving++;
	resp->unmoved = 1;
	if (move_pending)
		reply_after_data(resp, io);
	return 0;
}

__attribute__((noinline)) void gn_responder_move(struct gn_responder *resp, struct gantry_io *io)
{
	if (resp->moves.n != 0 || begin_move(resp, io) != 0)
		fifo_put(resp, &resp->moves, io);
}

static __attribute__((noinline)) void complete_slow(struct gn_responder *resp, struct gantry_io *io)
{
	int has_result = io->status == GANTRY_S_OK && io->opcode != GANTRY_OP_WRITE &&
			 gantry_op_has_buffer(io->opcode);

	if (resp->bounce && has_result) {
		gn_responder_move(resp, io);
		return;
	}
	if (has_result && (io->owner_flags & OWNER_LIST) != 0)
		gn_list_scatter(&resp->lists[io->slot], io->data);
	reply(resp, io);
}

/*
 * Reply on the fast path over a transport, or to a peer on this thread that needs an exact clock.
 */
static inline __attribute__((always_inline)) void reply_fast(struct gn_responder *resp,
							     struct gantry_io *io, int answers)
{
	if (answers)
		read_clock(resp);
	set_time_and_count(resp, io, answers);
	release_slot(resp, io);
	if (gantry_likely(send_descriptor(resp, io) != -EAGAIN))
		return;
	resp->n_free--; /* the send did not call the peer, so the slot is still free */
	fifo_put(resp, &resp->replies, io);
}

static __attribute__((noinline)) void relay_fast(struct gn_responder *resp, struct gantry_io *io)
{
	reply_fast(resp, io, 0);
}

static __attribute__((noinline)) void answer_fast(struct gn_responder *resp, struct gantry_io *io)
{
	reply_fast(resp, io, 1);
}

/*
 * `complete` of the owner's hop. On the fast path, with a requester on this thread, the call of the
 * requester is the last step, because the requester can submit the next request inside the call.
 */
static inline __attribute__((always_inline)) void complete(struct gn_responder *resp,
							   struct gantry_io *io, int answers)
{
	struct gantry_local_peer *peer = *resp->sender.peer;

	if (gantry_unlikely(gantry_io_end(io) != 0))
		return;
	if (gantry_unlikely(!resp->as_peer.is_ready)) {
		complete_slow(resp, io);
		return;
	}
	if (!peer || (answers && !gn_worker_clock_is_fresh(resp->attr.lane->worker))) {
		(answers ? answer_fast : relay_fast)(resp, io);
		return;
	}
	set_time_and_count(resp, io, answers);
	release_slot(resp, io);
	io->tag = io->peer_tag;
	peer->take_reply(peer, io);
}

static void relay_complete(void *self, struct gantry_io *io)
{
	complete(self, io, 0);
}

static void answer_complete(void *self, struct gantry_io *io)
{
	complete(self, io, 1);
}

/* Returns the buffers that `buffer_waiters` wait for. */
static inline struct gn_bounce *buffers(const struct gn_responder *resp)
{
	return resp->bounce ? resp->bounce : resp->list_bounce;
}

/* Attach a bounce buffer, and start the next step. Returns 0, or -EAGAIN: no buffer is free. */
static int attach_buffer(struct gn_responder *resp, struct gantry_io *io)
{
	if (resp->abandoned)
		gn_responder_reject(resp, io, GANTRY_S_CANCELED);
	else if (gn_bounce_attach(buffers(resp), io) != 0)
		return -EAGAIN;
	else if ((io->owner_flags & OWNER_LIST) != 0)
		gn_responder_list_attached(resp, io);
	else if (io->opcode == GANTRY_OP_WRITE)
		gn_responder_move(resp, io);
	else
		gn_responder_submit(resp, io);
	return 0;
}

/*
 * A request needs a buffer if its region is not mapped, or if it has a list that the backend does
 * not accept.
 */
__attribute__((noinline)) void gn_responder_admit(struct gn_responder *resp, struct gantry_io *io)
{
	if ((!resp->bounce && (io->owner_flags & OWNER_LIST) == 0) ||
	    !gantry_op_has_buffer(io->opcode))
		gn_responder_submit(resp, io);
	else if (resp->buffer_waiters.n != 0 || attach_buffer(resp, io) != 0)
		fifo_put(resp, &resp->buffer_waiters, io);
}

/* Handle a request whose check did not return GANTRY_S_OK. */
static __attribute__((noinline)) void take_other(struct gn_responder *resp, struct gantry_io *io,
						 enum gantry_status status)
{
	GN_USDT_IO(hop, &resp->probed, io, status);
	if (status == GN_CHECK_LIST)
		gn_responder_take_list(resp, io);
	else
		gn_responder_reject(resp, io, status);
}

/*
 * Copy a request to a free descriptor and check the copy. NULL: the request was rejected and
 * answered, or it has a list and was started.
 */
static inline __attribute__((always_inline)) struct gantry_io *accept(struct gn_responder *resp,
								      const void *imm)
{
	const volatile struct gn_wire *wire = gn_wire(imm);
	struct gantry_io *io = resp->free[--resp->n_free];
	enum gantry_status status;

	io->peer_tag = wire->tag;
	gn_wire_take_request(wire, io);
	gantry_io_begin(io, resp->attr.lane->pub.now_ns);
	io->owner_flags = OWNER_REPLY_PENDING;
	status = gn_check_io(&resp->rules, io);
	if (gantry_likely(status == GANTRY_S_OK)) {
		GN_USDT_IO(hop, &resp->probed, io, io->status);
		return io;
	}
	take_other(resp, io, status);
	return NULL;
}

static inline void take(struct gn_responder *resp, const void *imm)
{
	struct gantry_io *io = accept(resp, imm);

	if (gantry_unlikely(!io))
		return;
	if (gantry_unlikely(!resp->as_peer.is_ready))
		gn_responder_admit(resp, io);
	else if (gantry_unlikely(push(resp, io) != 0))
		fifo_put(resp, &resp->waiting, io);
}

/*
 * Returns how many messages to poll for. The peer may have `depth` requests without a reply. So if
 * no slot is free, poll for one message: it would break the protocol. But a slot whose reply was
 * sent stays in use until its move has ended. Meanwhile the next request waits in the queue of the
 * transport.
 */
static uint32_t max_messages(const struct gn_responder *resp)
{
	if (resp->n_free == 0)
		return resp->n_replies_before_move == 0;
	return resp->n_free < resp->batch ? resp->n_free : resp->batch;
}

static int take_requests(struct gn_responder *resp)
{
	struct gantry_msg msgs[GN_RESPONDER_BATCH];
	uint32_t max = max_messages(resp);
	int n = max != 0 ? resp->attr.ops->poll_recv(resp->attr.consumer, msgs, max) : 0;

	if (n < 0) {
		break_responder(resp, n);
		return 0;
	}
	if (n == 0)
		return 0;
	gn_worker_tick(resp->attr.lane->worker);
	for (int i = 0; i < n; i++) {
		/* more requests in flight than the session permits, or not a descriptor */
		if (resp->n_free == 0 || msgs[i].imm_len != GANTRY_IO_WIRE_BYTES) {
			break_responder(resp, -EPROTO);
			break;
		}
		take(resp, msgs[i].imm);
	}
	/* cannot overflow: the queue has two receives for each IO in flight */
	resp->attr.ops->post_recv(resp->attr.consumer, (uint32_t)n);
	return n;
}

/* Take a request of a local peer while the fast path is off, or no slot is free. */
static __attribute__((noinline)) int take_slow(struct gn_responder *resp,
					       const struct gantry_io *io)
{
	if (resp->broken || resp->quiescing ||
	    (resp->n_free == 0 && resp->n_replies_before_move != 0))
		return -EAGAIN;
	if (resp->n_free == 0)
		break_responder(resp, -EPROTO);
	else
		take(resp, io);
	return 0;
}

int gn_responder_take(struct gantry_local_peer *self, const struct gantry_io *from)
{
	struct gn_responder *resp = (struct gn_responder *)self;
	struct gantry_io *io;

	if (gantry_unlikely(!resp->as_peer.is_ready || resp->n_free == 0))
		return take_slow(resp, from);
	io = accept(resp, from);
	if (gantry_likely(io != NULL) && gantry_unlikely(push(resp, io) != 0))
		fifo_put(resp, &resp->waiting, io);
	return 0;
}

/*
 * Retry the first entries of a queue until one must wait again. If now_ns is not 0, entries that
 * passed their deadline are canceled: they have not begun. The first entry of `buffer_waiters` gets
 * a buffer eventually, because an IO that has a buffer completes, and releases it, without any
 * waiting IO.
 */
static int retry_fifo(struct gn_responder *resp, struct gn_responder_fifo *fifo,
		      int (*offer)(struct gn_responder *resp, struct gantry_io *io),
		      uint64_t now_ns)
{
	struct gantry_io *io;
	int n = 0;

	while ((io = fifo_first(fifo))) {
		if (now_ns != 0 && expired(io, now_ns))
			gn_responder_reject(resp, io, GANTRY_S_CANCELED);
		else if (offer(resp, io) != 0)
			break;
		fifo_drop(resp, fifo);
		n++;
	}
	return n;
}

int gn_responder_retry(struct gn_responder *resp)
{
	uint64_t now_ns = gn_fast_ns();
	int n = retry_fifo(resp, &resp->replies, send_reply, 0);

	n += retry_fifo(resp, &resp->moves, begin_move, 0);
	n += retry_fifo(resp, &resp->waiting, push, now_ns);
	return n + retry_fifo(resp, &resp->buffer_waiters, attach_buffer, now_ns);
}

static int has_waiting(const struct gn_responder *resp)
{
	return resp->waiting.n != 0 || resp->replies.n != 0 || resp->moves.n != 0;
}

/* Retry waiting descriptors and poll the moves. Only while the fast path is off. */
static __attribute__((noinline)) int poll_waiting(struct gn_responder *resp)
{
	int n = 0;

	if (has_waiting(resp) || resp->buffer_waiters.n != 0)
		n = gn_responder_retry(resp);
	if (resp->n_moving != 0)
		n += gn_bounce_poll(resp->bounce, on_move_ended, resp);
	return n;
}

static int responder_poll(void *self)
{
	struct gn_responder *resp = self;
	int n = 0;

	if (resp->has_stages)
		resp->credit = gn_split_grant(resp->credit, resp->attr.quantum);
	if (resp->split)
		/* before take_requests(): new requests get what is left of the quantum */
		n = gn_split_poll(resp->split);
	if (gantry_unlikely(!resp->as_peer.is_ready))
		n += poll_waiting(resp);
	if (gantry_likely(resp->as_peer.is_ready) || (!resp->broken && !resp->quiescing))
		n += take_requests(resp);
	flush(resp);
	return n;
}

static int responder_arm(void *self)
{
	struct gn_responder *resp = self;
	const struct gantry_io *next = fifo_first(&resp->buffer_waiters);

	if (has_waiting(resp) || (next && gn_bounce_fits(buffers(resp), next)))
		return 1;
	if (resp->split && gn_split_is_ready(resp->split))
		return 1;
	if ((resp->broken || resp->quiescing) && resp->n_moving == 0)
		return 0;
	if (resp->sender.dirty || resp->attr.ops->consumer_arm(resp->attr.consumer) != 0)
		return 1;
	/*
	 * The end of a move wakes the lane, as a message does. But a move that ended before the
	 * queue was armed does not wake the lane, so poll once more.
	 */
	return resp->n_moving != 0 && gn_bounce_poll(resp->bounce, on_move_ended, resp) != 0;
}

static void responder_disarm(void *self)
{
	struct gn_responder *resp = self;

	resp->attr.ops->consumer_disarm(resp->attr.consumer);
}

/*
 * While the lane sleeps, the deadline of the first IO in `buffer_waiters` needs a timer. A released
 * buffer wakes the lane anyway.
 */
static uint64_t responder_wake(void *self)
{
	const struct gn_responder *resp = self;
	const struct gantry_io *next = fifo_first(&resp->buffer_waiters);

	return next && next->deadline_us != 0 ? next->start_ns + next->deadline_us * GN_NS_PER_US
					      : 0;
}

static int responder_fd(void *self)
{
	const struct gn_responder *resp = self;

	return resp->attr.ops->consumer_fd(resp->attr.consumer);
}

struct gantry_hop gn_responder_owner(struct gn_responder *resp)
{
	return (struct gantry_hop){.submit = gn_io_no_submit,
				   .complete = resp->attr.relays ? relay_complete : answer_complete,
				   .self = resp,
				   .session = resp->attr.session};
}

const struct gantry_poller gn_responder_poller = {.poll = responder_poll,
						  .arm = responder_arm,
						  .disarm = responder_disarm,
						  .wake_ns = responder_wake,
						  .fd = responder_fd};
