/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port_path.c - the way of a descriptor through a port: in, checked, down, back, answered; and what
 * may have to wait on it
 */
#include "transport/responder_priv.h"

#include "base/clock.h"
#include "io/pool.h"
#include "io/status.h"
#include "io/wire.h"
#include "pipeline/split.h"
#include "transport/requester.h"
#include "transport/bounce.h"

#include <errno.h>

#define WHOLE_EACH 16 /* answers */

/* gantry_io.owner_flags: what must still be done before the slot is free. */
#define OWNER_REPLY_PENDING 1u
#define OWNER_MOVE_PENDING 2u /* the end of a move that its reply did not wait for */

static __attribute__((noinline)) void fifo_put(struct gn_responder *port,
					       struct gn_responder_fifo *fifo, struct gantry_io *io)
{
	fifo->slots[(fifo->head + fifo->n++) % port->attr.depth] = io;
	gn_responder_update_fast_path(port);
}

static struct gantry_io *fifo_first(const struct gn_responder_fifo *fifo)
{
	return fifo->n != 0 ? fifo->slots[fifo->head] : NULL;
}

static void fifo_drop(struct gn_responder *port, struct gn_responder_fifo *fifo)
{
	fifo->head = (fifo->head + 1) % port->attr.depth;
	fifo->n--;
	gn_responder_update_fast_path(port);
}

static void break_port(struct gn_responder *port, int reason)
{
	if (port->broken)
		return;
	port->broken = 1;
	gn_responder_update_fast_path(port);
	port->attr.broken(port->attr.arg, reason);
}

static void ring(struct gn_responder *port)
{
	int send = port->sender.dirty && !port->broken;

	/*
	 * moves must end, whatever happened; where they are in order with the replies these bring
	 * them along
	 */
	if (port->unmoved && !(send && port->attr.ordered))
		gn_bounce_flush(port->bounce);
	if (send)
		gn_sender_flush(&port->sender);
	port->unmoved = 0;
}

__attribute__((noinline)) void gn_responder_say_idle(struct gn_responder *port)
{
	if (port->n_free != port->attr.depth || port->said_idle)
		return;
	port->said_idle = 1;
	ring(port); /* nobody may poll this port again */
	port->attr.idle(port->attr.arg);
}

static inline void give_back(struct gn_responder *port, struct gantry_io *io)
{
	port->free[port->n_free++] = io;
}

/*
 * The slot is free before its reply is sent: where the peer is on this thread, its next request may
 * come inside the send, and what the reply says has been read by then.
 */
static inline int send_it(struct gn_responder *port, struct gantry_io *io)
{
	io->tag = io->peer_tag;
	return gn_sender_send(&port->sender, io);
}

/*
 * True if the port sends no answer: the IO was canceled because its session ends. An initiator that
 * resumes the session submits an unanswered IO again, but would report an answer CANCELED to its
 * program.
 */
static inline int is_withheld(const struct gn_responder *port, const struct gantry_io *io)
{
	return port->abandoned && io->status == GANTRY_S_CANCELED;
}

/* Its reply goes now, whoever hears of it; 0 or -EAGAIN: not yet. */
static int send_reply(struct gn_responder *port, struct gantry_io *io)
{
	int move_pending = (io->owner_flags & OWNER_MOVE_PENDING) != 0, rc = -ENOTCONN;

	if (move_pending)
		port->n_replies_before_move++;
	else
		give_back(port, io);
	io->owner_flags &= (uint8_t)~OWNER_REPLY_PENDING;
	if (!port->broken && !is_withheld(port, io))
		rc = send_it(port, io);
	if (rc == -EAGAIN && !port->abandoned) { /* nobody has been called */
		io->owner_flags |= OWNER_REPLY_PENDING;
		port->n_replies_before_move -= (uint32_t)move_pending;
		port->n_free -= (uint32_t)!move_pending;
		return rc;
	}
	if (port->quiescing)
		gn_responder_say_idle(port);
	return 0;
}

static __attribute__((noinline)) void reply_in_turn(struct gn_responder *port, struct gantry_io *io)
{
	if (port->bounce && (io->owner_flags & OWNER_MOVE_PENDING) == 0)
		gn_bounce_detach(port->bounce, io);
	if (port->replies.n != 0 || send_reply(port, io) != 0)
		fifo_put(port, &port->replies, io);
}

/*
 * How long its own part took a target looks for each; of a peer on this thread, which waits
 * meanwhile, not that closely.
 */
static inline void look_at_clock(const struct gn_responder *port)
{
	if (gn_sender_is_inline(&port->sender))
		gn_worker_clock_update_coarse(port->attr.lane->worker);
	else
		gn_worker_tick(port->attr.lane->worker);
}

/* What an answer says of this port, and counts. */
static inline void sign(struct gn_responder *port, struct gantry_io *io)
{
	uint64_t took = port->attr.lane->pub.now_ns - io->start_ns;

	io->hop_ns[port->hop] = took > UINT32_MAX ? UINT32_MAX : (uint32_t)took;
	if (gantry_likely(io->status == GANTRY_S_OK))
		gantry_count(port->attr.ops_done, 1);
	else
		gantry_count(port->attr.ops_failed, 1);
}

static __attribute__((noinline)) void reply(struct gn_responder *port, struct gantry_io *io)
{
	if (port->answers)
		look_at_clock(port);
	sign(port, io);
	reply_in_turn(port, io);
}

static __attribute__((noinline)) void refuse(struct gn_responder *port, struct gantry_io *io,
					     enum gantry_status status)
{
	gantry_io_end(io);
	io->status = (uint16_t)status;
	reply(port, io);
}

/* The stages have not taken it. 0: it has been refused; -EAGAIN: they may take it later. */
static __attribute__((noinline)) int not_taken(struct gn_responder *port, struct gantry_io *io,
					       int rc)
{
	if (rc == -EAGAIN && !port->abandoned)
		return rc;
	refuse(port, io, rc == -EAGAIN ? GANTRY_S_CANCELED : gantry_status_of_errno(rc));
	return 0;
}

/* Every descriptor in a port has a deadline: gn_check_io() fills in a missing one. */
static inline int expired(const struct gantry_io *io, uint64_t now_ns)
{
	return now_ns >= io->start_ns + io->deadline_us * GN_NS_PER_US;
}

/* The terminal of a port with stages, which may hold a descriptor past its deadline. */
static int submit_below_stages(void *self, struct gantry_io *io)
{
	struct gn_responder *port = self;

	if (gantry_unlikely(expired(io, port->attr.lane->pub.now_ns))) {
		gantry_fail(io, GANTRY_S_CANCELED);
		return 0;
	}
	if (gn_split_takes(io)) {
		gn_split_submit(port->split, io);
		return 0;
	}
	return port->attr.terminal.submit(port->attr.terminal.self, io);
}

struct gantry_hop gn_responder_terminal(struct gn_responder *port)
{
	/*
	 * a link checks the deadline itself; without stages no time passes on the way, and push()
	 * looks at the length
	 */
	if (!port->has_stages)
		return port->attr.terminal;
	return (struct gantry_hop){.submit = submit_below_stages, .self = port};
}

/*
 * Large IOs share the lane by bytes. Without stages the splitter divides them. A stage may work on
 * all of the data at once, so an IO is not divided before stages: they get large IOs until these
 * have used up the credit of the turn.
 */
static __attribute__((noinline)) int push_large(struct gn_responder *port, struct gantry_io *io)
{
	int64_t cost = gn_split_cost(io, io->length);
	int rc = -EAGAIN;

	if (!port->has_stages) {
		io->hop++;
		gn_split_submit(port->split, io);
		return 0;
	}
	if (port->credit > 0)
		rc = gantry_submit(io);
	if (rc == 0)
		port->credit -= cost;
	return rc != 0 ? not_taken(port, io, rc) : 0;
}

static inline int push(struct gn_responder *port, struct gantry_io *io)
{
	int rc;

	if (gantry_unlikely(io->length > port->max_uncounted))
		return push_large(port, io);
	rc = gantry_submit(io);
	return gantry_unlikely(rc != 0) ? not_taken(port, io, rc) : 0;
}

static void go(struct gn_responder *port, struct gantry_io *io)
{
	if (port->abandoned)
		/* a stage might keep it, and was drained already */
		refuse(port, io, GANTRY_S_CANCELED);
	else if (port->waiting.n != 0 || push(port, io) != 0)
		fifo_put(port, &port->waiting, io);
}

/*
 * The data of a descriptor has been moved: of a write before it goes down, of a read after it came
 * back.
 */
static void moved(struct gn_responder *port, struct gantry_io *io, int status)
{
	if (io->busy && status == 0 && expired(io, port->attr.lane->pub.now_ns)) {
		refuse(port, io, GANTRY_S_CANCELED);
	} else if (io->busy && status == 0) {
		go(port, io);
	} else if (io->busy) {
		refuse(port, io, gantry_status_of_errno(status));
	} else {
		io->status = status == 0 ? GANTRY_S_OK : (uint16_t)gantry_status_of_errno(status);
		reply(port, io);
	}
}

static void on_moved(void *arg, struct gantry_io *io, int status)
{
	struct gn_responder *port = arg;

	port->n_moving--;
	if ((io->owner_flags & OWNER_MOVE_PENDING) == 0) {
		moved(port, io, status);
		return;
	}
	/*
	 * Its reply says that the data is there. It cannot have been delivered: it stands behind a
	 * write that failed.
	 */
	if (status != 0)
		break_port(port, status);
	gn_bounce_detach(port->bounce, io);
	io->owner_flags &= (uint8_t)~OWNER_MOVE_PENDING;
	if (io->owner_flags != 0)
		return;
	port->n_replies_before_move--;
	give_back(port, io);
	if (port->quiescing)
		gn_responder_say_idle(port);
}

/*
 * The move is in the hands of the transport, and what is sent from now on arrives after its data.
 */
static void reply_behind(struct gn_responder *port, struct gantry_io *io)
{
	io->owner_flags |= OWNER_MOVE_PENDING;
	io->status = GANTRY_S_OK;
	reply(port, io);
}

/*
 * Every so often an answer is whole, for the times of its hops; and a transport lets credit go
 * along with it.
 */
static int may_be_note(struct gn_responder *port, const struct gantry_io *io)
{
	return io->opcode == GANTRY_OP_READ && io->length <= port->max_noted &&
	       !(io->flags & GANTRY_IO_CRC) && !port->attr.rules->regions[io->region]->unordered &&
	       port->n_notes++ % WHOLE_EACH != 0;
}

/* The answer of a read goes along with its data. 0, or it must be a whole one. */
static int answer_by_note(struct gn_responder *port, struct gantry_io *io)
{
	int rc = gn_bounce_write_imm(port->bounce, io, port->attr.rules->regions[io->region],
				     io->peer_tag);

	if (rc == -EMSGSIZE)
		port->max_noted = io->length - 1;
	if (rc != 0)
		return rc;
	port->n_replies_before_move++;
	port->n_moving++;
	port->unmoved = 1;
	io->owner_flags = OWNER_MOVE_PENDING;
	gantry_count(port->attr.ops_done, 1);
	return 0;
}

/*
 * What is to be written is fetched as soon as it was taken, when the clock was looked at; a backend
 * may have taken its time.
 */
static uint64_t begins_ns(const struct gn_responder *port, enum gantry_rma_op op)
{
	return op == GANTRY_RMA_READ ? port->attr.lane->pub.now_ns : gn_fast_ns();
}

static int begin_move(struct gn_responder *port, struct gantry_io *io)
{
	/* what is read from the volume is written to the region */
	enum gantry_rma_op op = io->opcode == GANTRY_OP_READ ? GANTRY_RMA_WRITE : GANTRY_RMA_READ;
	int move_pending = op == GANTRY_RMA_WRITE && port->attr.ordered &&
			   !port->attr.rules->regions[io->region]->unordered,
	    rc;

	if (expired(io, port->attr.lane->pub.now_ns)) {
		moved(port, io, -ECANCELED);
		return 0;
	}
	if (may_be_note(port, io) && answer_by_note(port, io) == 0)
		return 0;
	rc = gn_bounce_move(port->bounce, io, port->attr.rules->regions[io->region], op,
			    move_pending ? 0 : begins_ns(port, op));
	if (rc == -EAGAIN && !port->abandoned)
		return rc;
	if (rc != 0) {
		moved(port, io, rc == -EAGAIN ? -ECANCELED : rc);
		return 0;
	}
	port->n_moving++;
	port->unmoved = 1;
	if (move_pending)
		reply_behind(port, io);
	return 0;
}

static __attribute__((noinline)) void move(struct gn_responder *port, struct gantry_io *io)
{
	if (port->moves.n != 0 || begin_move(port, io) != 0)
		fifo_put(port, &port->moves, io);
}

static __attribute__((noinline)) void complete_slow(struct gn_responder *port, struct gantry_io *io)
{
	if (port->bounce && io->opcode == GANTRY_OP_READ && io->status == GANTRY_S_OK)
		move(port, io);
	else
		reply(port, io);
}

/* Nothing waits in the port. */
static __attribute__((noinline)) void reply_plain(struct gn_responder *port, struct gantry_io *io)
{
	if (port->answers)
		look_at_clock(port);
	sign(port, io);
	give_back(port, io);
	if (gantry_likely(send_it(port, io) != -EAGAIN))
		return;
	port->n_free--; /* nobody has been called */
	fifo_put(port, &port->replies, io);
}

/*
 * The owner's hop: a descriptor came back. Where nothing waits and the peer is a link on this
 * thread, that takes the answer as the last thing that is done here.
 */
static inline __attribute__((always_inline)) void complete(struct gn_responder *port,
							   struct gantry_io *io, int answers)
{
	const struct gantry_inline_handler *direct = port->sender.direct;

	if (gantry_unlikely(gantry_io_end(io) != 0))
		return;
	if (gantry_unlikely(!port->fast_path)) {
		complete_slow(port, io);
		return;
	}
	if (direct->take != gn_requester_take_inline ||
	    (answers && !gn_worker_clock_is_fresh(port->attr.lane->worker))) {
		reply_plain(port, io);
		return;
	}
	sign(port, io);
	give_back(port, io);
	io->tag = io->peer_tag;
	gn_requester_take_answer(direct->arg, io);
}

static void relay_complete(void *self, struct gantry_io *io)
{
	complete(self, io, 0);
}

static void answer_complete(void *self, struct gantry_io *io)
{
	complete(self, io, 1);
}

/* Give it a buffer, and fetch what is to be written. */
static int enter(struct gn_responder *port, struct gantry_io *io)
{
	if (port->abandoned)
		refuse(port, io, GANTRY_S_CANCELED);
	else if (gn_bounce_attach(port->bounce, io) != 0)
		return -EAGAIN;
	else if (io->opcode == GANTRY_OP_WRITE)
		move(port, io);
	else
		go(port, io);
	return 0;
}

/* A descriptor that passed the check: it needs a buffer first when its data is not in reach. */
static __attribute__((noinline)) void admit(struct gn_responder *port, struct gantry_io *io)
{
	if (!port->bounce || !gantry_op_has_data(io->opcode))
		go(port, io);
	else if (port->buffer_waiters.n != 0 || enter(port, io) != 0)
		fifo_put(port, &port->buffer_waiters, io);
}

/* Copy a request, and check the copy; NULL: it has been refused. */
static inline __attribute__((always_inline)) struct gantry_io *accept(struct gn_responder *port,
								      const void *imm)
{
	const volatile struct gn_wire *wire = gn_wire(imm);
	struct gantry_io *io = port->free[--port->n_free];
	enum gantry_status status;

	io->owner_flags = OWNER_REPLY_PENDING;
	io->peer_tag = wire->tag;
	gn_wire_take_request(wire, io);
	gantry_io_begin(io, port->attr.lane->pub.now_ns);
	status = gn_check_io(port->attr.rules, io);
	if (gantry_likely(status == GANTRY_S_OK))
		return io;
	refuse(port, io, status);
	return NULL;
}

static inline void take(struct gn_responder *port, const void *imm)
{
	struct gantry_io *io = accept(port, imm);

	if (gantry_unlikely(!io))
		return;
	if (gantry_unlikely(!port->fast_path))
		admit(port, io);
	else if (gantry_unlikely(push(port, io) != 0))
		fifo_put(port, &port->waiting, io);
}

/*
 * How many messages to take. The peer may have `depth` requests without a reply, and one more
 * breaks the protocol. A slot whose reply has gone out may still wait for the end of its move: the
 * next request then waits in the queue.
 */
static uint32_t wanted(const struct gn_responder *port)
{
	if (port->n_free == 0)
		return port->n_replies_before_move == 0;
	return port->n_free < port->batch ? port->n_free : port->batch;
}

static int take_requests(struct gn_responder *port)
{
	struct gantry_msg msgs[GN_RESPONDER_BATCH];
	uint32_t max = wanted(port);
	int n = max != 0 ? port->attr.ops->poll_recv(port->attr.consumer, msgs, max) : 0;

	if (n < 0) {
		break_port(port, n);
		return 0;
	}
	if (n == 0)
		return 0;
	gn_worker_tick(port->attr.lane->worker);
	for (int i = 0; i < n; i++) {
		/* more in flight than agreed, or not a descriptor */
		if (port->n_free == 0 || msgs[i].imm_len != GANTRY_IO_WIRE_BYTES) {
			break_port(port, -EPROTO);
			break;
		}
		take(port, msgs[i].imm);
	}
	/* there are twice as many as can be in flight */
	port->attr.ops->post_recv(port->attr.consumer, NULL, (uint32_t)n);
	return n;
}

/* What does not go straight down, or cannot. */
static __attribute__((noinline)) int take_slow(struct gn_responder *port, const void *imm,
					       uint32_t imm_len)
{
	if (port->broken || port->quiescing ||
	    (port->n_free == 0 && port->n_replies_before_move != 0))
		return -EAGAIN;
	if (port->n_free == 0 || imm_len != GANTRY_IO_WIRE_BYTES)
		break_port(port, -EPROTO);
	else
		take(port, imm);
	return 0;
}

int gn_responder_take(struct gn_responder *port, const struct gantry_io *from)
{
	struct gantry_io *io = accept(port, from);

	if (gantry_likely(io != NULL) && gantry_unlikely(push(port, io) != 0))
		fifo_put(port, &port->waiting, io);
	return 0;
}

int gn_responder_take_inline(void *arg, const void *imm, uint32_t imm_len)
{
	struct gn_responder *port = arg;

	if (gantry_likely(gn_responder_is_ready(port) && imm_len == GANTRY_IO_WIRE_BYTES))
		return gn_responder_take(port, imm);
	return take_slow(port, imm, imm_len);
}

/*
 * Offer again what waits. With a time, what nobody has taken by its deadline has not begun, and
 * never will. The first of the waiting IO gets a bounce buffer in the end: the IOs that have one
 * release it without any of the waiting IOs.
 */
static int offer_again(struct gn_responder *port, struct gn_responder_fifo *fifo,
		       int (*offer)(struct gn_responder *port, struct gantry_io *io),
		       uint64_t now_ns)
{
	struct gantry_io *io;
	int n = 0;

	while ((io = fifo_first(fifo))) {
		if (now_ns != 0 && expired(io, now_ns))
			refuse(port, io, GANTRY_S_CANCELED);
		else if (offer(port, io) != 0)
			break;
		fifo_drop(port, fifo);
		n++;
	}
	return n;
}

int gn_responder_retry(struct gn_responder *port)
{
	uint64_t now_ns = gn_fast_ns();
	int n = offer_again(port, &port->replies, send_reply, 0);

	n += offer_again(port, &port->moves, begin_move, 0);
	n += offer_again(port, &port->waiting, push, now_ns);
	return n + offer_again(port, &port->buffer_waiters, enter, now_ns);
}

static int someone_waits(const struct gn_responder *port)
{
	return port->waiting.n != 0 || port->replies.n != 0 || port->moves.n != 0;
}

/* Without the fast path. */
static __attribute__((noinline)) int poll_waiting(struct gn_responder *port)
{
	int n = 0;

	if (someone_waits(port) || port->buffer_waiters.n != 0)
		n = gn_responder_retry(port);
	if (port->n_moving != 0)
		n += gn_bounce_poll(port->bounce, on_moved, port);
	return n;
}

static int port_poll(void *self)
{
	struct gn_responder *port = self;
	int n = 0;

	if (port->has_stages)
		port->credit = gn_split_grant(port->credit, port->attr.quantum);
	if (port->split)
		/* first: what is taken below gets what is left of the quantum */
		n = gn_split_poll(port->split);
	if (gantry_unlikely(!port->fast_path))
		n += poll_waiting(port);
	if (gantry_likely(port->fast_path) || (!port->broken && !port->quiescing))
		n += take_requests(port);
	ring(port);
	return n;
}

static int port_arm(void *self)
{
	struct gn_responder *port = self;
	const struct gantry_io *next = fifo_first(&port->buffer_waiters);

	if (someone_waits(port) || (next && gn_bounce_fits(port->bounce, next)))
		return 1;
	if (port->split && gn_split_is_ready(port->split))
		return 1;
	if ((port->broken || port->quiescing) && port->n_moving == 0)
		return 0;
	if (port->sender.dirty || port->attr.ops->consumer_arm(port->attr.consumer) != 0)
		return 1;
	/*
	 * the end of a move wakes the lane as a message does; but not one that came before the
	 * queue was armed
	 */
	return port->n_moving != 0 && gn_bounce_poll(port->bounce, on_moved, port) != 0;
}

static void port_disarm(void *self)
{
	struct gn_responder *port = self;

	port->attr.ops->consumer_disarm(port->attr.consumer);
}

/*
 * While the lane sleeps, an IO that waits for a bounce buffer only needs its deadline: a released
 * buffer wakes the lane.
 */
static uint64_t port_wake(void *self)
{
	const struct gn_responder *port = self;
	const struct gantry_io *next = fifo_first(&port->buffer_waiters);

	return next && next->deadline_us != 0 ? next->start_ns + next->deadline_us * GN_NS_PER_US
					      : 0;
}

static int port_fd(void *self)
{
	const struct gn_responder *port = self;

	return port->attr.ops->consumer_fd(port->attr.consumer);
}

struct gantry_hop gn_responder_owner(struct gn_responder *port)
{
	return (struct gantry_hop){.submit = gn_io_no_submit,
				   .complete = port->answers ? answer_complete : relay_complete,
				   .self = port};
}

const struct gantry_poller gn_responder_poller = {.poll = port_poll,
						  .arm = port_arm,
						  .disarm = port_disarm,
						  .wake_ns = port_wake,
						  .fd = port_fd};
