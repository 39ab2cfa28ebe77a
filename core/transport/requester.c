/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * requester.c - the sending end of one lane of a session
 *
 * Each IO in flight has a slot, `struct flight`. A submit takes the slot that was released last.
 * The tag of the descriptor is the slot number (low 16 bits) and a generation (high 16 bits).
 *
 *      free ---launch()---> in flight ---take_reply()---> free
 *                               |
 *                            expire(): completes the IO with TIMEOUT
 *                               |
 *                           late reply expected ---take_late()---> free
 *
 * A write with a late reply has an entry in the fence of the session. A write that overlaps the
 * entry is held back: hold() gives it a slot, and submit_held() sends it later.
 *
 * The requester breaks, and so ends its session, if a reply is invalid, or if a late reply does not
 * arrive within attr.late_timeout_ns.
 */
#include "transport/requester.h"

#include "base/clock.h"
#include "base/usdt.h"
#include "io/wire.h"
#include "transport/sender.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 32
#define SLOT(tag) ((tag)&0xffffu)
#define NEVER UINT64_MAX
/*
 * A sleeping lane checks the fence at this interval, because lanes on other threads remove entries.
 */
#define HELD_POLL_NS GN_NS_PER_MS

/* One slot: an IO in flight, or one that timed out and has no reply yet. */
struct flight {
	struct gantry_io *io;    /* IO that uses the slot; NULL: no IO is in flight */
	uint32_t tag;            /* tag of the descriptor on the wire */
	int late_reply_expected; /* the IO timed out, and the peer has not replied yet */
	uint64_t deadline_ns;
	struct flight *next;    /* next slot of the list of free slots */
} __attribute__((aligned(32))); /* a slot never spans two cache lines */

/* Second part of a slot, for a write that timed out or that the fence holds back. */
struct parked {
	struct gn_fence_entry entry; /* range of the write that timed out */
	uint64_t until_ns;           /* deadline of the late reply */
	struct gantry_io *held;      /* the write that the fence holds back; NULL: none */
};

/* The fields that every IO uses come first. */
struct gn_requester {
	struct gantry_local_peer as_peer;
	uint32_t io_timeout_us;
	/*
	 * With attr.relays all bits are set: the requester does not time out an IO that has a
	 * deadline of its own. Otherwise 0.
	 */
	uint64_t relayed;
	void *consumer;           /* NULL: the worker does not poll this requester */
	struct gn_sender sender;  /* producer NULL: every submit fails with -ENOTCONN */
	struct flight *free_list; /* free slots, last in, first out */
	/* The slot of the last submit. A peer on this thread usually answers that IO next. */
	struct flight *last;
	struct flight no_flight; /* placeholder for `last`: it has no IO */
	/* number of slots that a reply can name: attr.depth, or 0 after the requester broke */
	uint32_t n_tags;
	/*
	 * Turns during which the lane must not sleep, because the transport rejected a send, and no
	 * event signals that the transport accepts sends again.
	 */
	int queue_full_turns;
	int broken;
	uint64_t next_deadline_ns; /* lower bound of all deadlines */
	/* The earliest deadline among the IOs with a late reply; NEVER: none. */
	uint64_t late_reply_ns;
	/* Time of the first reply with a status that leaves the buffer in use; NEVER: none. */
	uint64_t unclear_ns;
	uint64_t unclear_until_ns; /* time at which the requester breaks because of unclear_ns */
	uint32_t n_late_writes;
	struct flight *flights;
	struct parked *parked; /* indexed by slot */
	/*
	 * list of the writes that the fence holds back, oldest first; end_of_held: address of the
	 * last link
	 */
	struct flight *first_held, **end_of_held;
	struct gn_requester_attr attr;
	struct gn_usdt_lane probed;
};

static inline void push_free(struct gn_requester *req, struct flight *f)
{
	f->next = req->free_list;
	req->free_list = f;
}

static void update_next_deadline(struct gn_requester *req, uint64_t at_ns)
{
	if (at_ns < req->next_deadline_ns)
		req->next_deadline_ns = at_ns;
}

/*
 * Send an IO to the local peer or by the producer. Returns 0, or the -errno with which the peer or
 * the transport rejected the IO: then its slot is free, and its deadline and flags are restored.
 */
static __attribute__((noinline)) int send(struct gn_requester *req, struct flight *f,
					  struct gantry_io *io, uint32_t own_deadline_us,
					  uint8_t own_flags)
{
	struct gantry_local_peer *peer = *req->sender.peer;
	int rc = peer ? peer->take_request(peer, io) : gn_sender_send(&req->sender, io);

	if (gantry_likely(rc == 0))
		return 0;
	io->deadline_us = own_deadline_us;
	io->flags = own_flags;
	f->io = NULL;
	push_free(req, f);
	if (rc == -EAGAIN)
		/*
		 * each poll decrements the counter: the lane stays awake for this turn and the next
		 */
		req->queue_full_turns = 2;
	return rc;
}

/*
 * Subtract the time since the submit from the deadline: the wire carries the time that is left.
 * Returns false if no time is left.
 *
 * An IO uses time in stages, in queues and while the fence holds it back.
 */
static __attribute__((noinline)) bool subtract_time_used(struct gantry_io *io, uint64_t now_ns)
{
	uint64_t used_us = (now_ns - io->start_ns) / GN_NS_PER_US;

	if (used_us >= io->deadline_us)
		return false;
	io->deadline_us -= (uint32_t)used_us;
	return true;
}

/* Returns the -errno for an IO that finds no free slot. */
static int reject(const struct gn_requester *req)
{
	return !req->sender.producer ? -ENOTCONN : -EAGAIN;
}

/*
 * Hold back a write that overlaps an entry of the fence, until the entry is removed or the write
 * passes its own deadline.
 */
static __attribute__((noinline)) int hold(struct gn_requester *req, struct gantry_io *io)
{
	struct flight *f = req->free_list;

	req->free_list = f->next;
	if (io->deadline_us == 0)
		io->deadline_us = req->io_timeout_us;
	f->deadline_ns = io->start_ns + io->deadline_us * GN_NS_PER_US;
	update_next_deadline(req, f->deadline_ns);
	req->parked[f - req->flights].held = io;
	f->next = NULL;
	*req->end_of_held = f;
	req->end_of_held = &f->next;
	return 0;
}

static inline __attribute__((always_inline)) void complete(struct gn_requester *req,
							   struct gantry_io *io)
{
	GN_USDT_IO(complete, &req->probed, io, io->status);
	gantry_complete(io);
}

/* End an IO without a reply. */
static void fail(struct gn_requester *req, struct gantry_io *io, enum gantry_status status)
{
	GN_USDT_IO(fault, &req->probed, io, status);
	gantry_fail(io, status);
}

static bool is_fenced(const struct gn_requester *req, const struct gantry_io *io)
{
	return gantry_op_writes(io->opcode) &&
	       gn_fence_blocks(req->attr.fence, io->offset, io->length);
}

/*
 * Assign a slot and a new tag to an IO, and send it. A peer on this thread can reply inside the
 * call, and the owner can then submit its next IO.
 */
static inline __attribute__((always_inline)) int launch(struct gn_requester *req, struct flight *f,
							struct gantry_io *io)
{
	struct gantry_local_peer *peer = *req->sender.peer;
	uint64_t now_ns = req->attr.lane->pub.now_ns;
	uint32_t deadline_us = io->deadline_us;
	uint8_t flags = io->flags;

	req->free_list = f->next;
	req->last = f;
	f->io = io;
	io->tag = f->tag += 0x10000u;
	if (gantry_unlikely((flags & req->attr.left_out) != 0))
		io->flags = (uint8_t)(flags & ~req->attr.left_out);
	if (deadline_us != 0) {
		f->deadline_ns = (now_ns + deadline_us * GN_NS_PER_US) | req->relayed;
	} else {
		io->deadline_us = req->io_timeout_us;
		f->deadline_ns = now_ns + req->attr.io_timeout_ns;
	}
	update_next_deadline(req, f->deadline_ns);
	GN_USDT_IO(submit, &req->probed, io, io->status);
	/*
	 * This call must be the last action, because a responder on this thread can call back into
	 * this requester.
	 */
	if (peer && peer->is_ready)
		return peer->take_request(peer, io);
	return send(req, f, io, deadline_us, flags);
}

/*
 * Implements the submit of an IO while the fence has entries, or of an IO that has used time since
 * its start.
 */
static __attribute__((noinline)) int submit_slow(struct gn_requester *req, struct gantry_io *io)
{
	uint64_t now_ns = req->attr.lane->pub.now_ns;
	uint32_t deadline_us = io->deadline_us;
	int rc;

	if (!req->sender.producer)
		return -ENOTCONN;
	if (gn_fence_is_up(req->attr.fence) && is_fenced(req, io))
		return hold(req, io);
	if (deadline_us != 0 && now_ns > io->start_ns && !subtract_time_used(io, now_ns)) {
		fail(req, io, GANTRY_S_CANCELED);
		return 0;
	}
	rc = launch(req, req->free_list, io);
	if (rc != 0)
		io->deadline_us = deadline_us;
	return rc;
}

static int requester_submit(void *self, struct gantry_io *io)
{
	struct gn_requester *req = self;
	struct flight *f = req->free_list;

	if (gantry_unlikely(!f))
		return reject(req);
	if (gantry_unlikely(gn_fence_is_up(req->attr.fence) ||
			    req->attr.lane->pub.now_ns - io->start_ns >= GN_NS_PER_US))
		return submit_slow(req, io);
	return launch(req, f, io);
}

/* Ignore all further replies. */
static void set_broken(struct gn_requester *req)
{
	req->broken = 1;
	req->n_tags = 0;
	req->last = &req->no_flight;
}

static int reject_request(struct gantry_local_peer *self, const struct gantry_io *io)
{
	(void)self;
	(void)io;
	return -ENOTCONN;
}

/* Let every submit fail with -ENOTCONN. */
static void stop_sender(struct gn_requester *req)
{
	static struct gantry_local_peer rejecting = {.take_request = reject_request};
	static struct gantry_local_peer *const peer = &rejecting;

	req->sender = (struct gn_sender){.peer = &peer};
}

static void break_requester(struct gn_requester *req, int reason)
{
	if (req->broken)
		return;
	set_broken(req);
	stop_sender(req);
	req->attr.broken(req->attr.arg, reason);
}

/*
 * Record a status that leaves the buffer in use. Returns the status, or UNKNOWN if the status is
 * not defined.
 */
static uint16_t note_failure(struct gn_requester *req, uint16_t status, uint64_t at_ns)
{
	if (status >= GANTRY_S_COUNT)
		status = GANTRY_S_UNKNOWN;
	/*
	 * A reply with TIMEOUT means that the peer has finished the IO: a peer that stops waiting
	 * for its own target sends no reply.
	 */
	if (!gantry_status_buffer_released(status) && status != GANTRY_S_TIMEOUT &&
	    at_ns < req->unclear_ns) {
		req->unclear_ns = at_ns;
		req->unclear_until_ns = req->attr.lane->pub.now_ns + req->attr.late_timeout_ns;
		update_next_deadline(req, req->unclear_until_ns);
	}
	return status;
}

static void update_late_reply_ns(struct gn_requester *req)
{
	req->late_reply_ns = NEVER;
	for (uint32_t i = 0; i < req->attr.depth; i++)
		if (req->flights[i].late_reply_expected &&
		    req->flights[i].deadline_ns < req->late_reply_ns)
			req->late_reply_ns = req->flights[i].deadline_ns;
}

/* An IO timed out. Set the deadline of its late reply. For a write, add the range to the fence. */
static void mark_late(struct gn_requester *req, const struct flight *f, const struct gantry_io *io)
{
	struct parked *p = &req->parked[f - req->flights];

	p->until_ns = f->deadline_ns + req->attr.late_timeout_ns;
	update_next_deadline(req, p->until_ns);
	if (!gantry_op_writes(io->opcode))
		return;
	req->n_late_writes++;
	gn_fence_enter(req->attr.fence, &p->entry, io->offset, io->length);
}

static void remove_fence_entry(struct gn_requester *req, const struct flight *f)
{
	struct parked *p = &req->parked[f - req->flights];

	if (!p->entry.at)
		return;
	req->n_late_writes--;
	gn_fence_remove(req->attr.fence, &p->entry);
}

/*
 * Handle a reply to an IO that is not in flight. If it is the late reply to an IO that timed out,
 * free the slot: the peer has finished the IO, unless the status shows that the buffer is in use.
 * Any other reply breaks the protocol.
 * f     NULL: the reply names no slot
 * wire  NULL: the reply is a note
 */
static __attribute__((noinline)) void take_late(struct gn_requester *req, struct flight *f,
						const volatile struct gn_wire *wire)
{
	if (req->broken)
		return;
	if (!f || !f->late_reply_expected) {
		break_requester(req, -EPROTO);
		return;
	}
	f->late_reply_expected = 0;
	remove_fence_entry(req, f);
	push_free(req, f);
	gantry_count(req->attr.stale, 1);
	note_failure(req, wire ? wire->status : GANTRY_S_OK, f->deadline_ns);
	update_late_reply_ns(req);
}

/* Returns the slot with this tag, in flight or with a late reply. NULL: no slot has it. */
static inline struct flight *find(struct gn_requester *req, uint32_t tag)
{
	struct flight *f = req->last;

	/*
	 * fast if the CPU predicts this branch: it can then load f->tag before it has loaded `tag`
	 */
	if (f->tag == tag)
		return f;
	if (gantry_unlikely(SLOT(tag) >= req->n_tags))
		return NULL;
	f = &req->flights[SLOT(tag)];
	return f->tag == tag ? f : NULL;
}

static inline struct gantry_io *release_slot(struct gn_requester *req, struct flight *f)
{
	struct gantry_io *io = f->io;

	f->io = NULL;
	push_free(req, f);
	return io;
}

/* A message that is not a descriptor. It is valid only as a note, which answers a read. */
static __attribute__((noinline)) void take_note(struct gn_requester *req, const void *imm,
						uint32_t imm_len)
{
	struct flight *f = NULL;
	uint32_t tag;

	if (req->attr.notes && imm_len == GN_IMM_REPLY_BYTES) {
		memcpy(&tag, imm, sizeof(tag));
		f = find(req, tag);
	}
	if (!f || !f->io) {
		take_late(req, f, NULL);
	} else if (f->io->opcode != GANTRY_OP_READ) {
		break_requester(req, -EPROTO);
	} else {
		struct gantry_io *io = release_slot(req, f);

		gn_wire_take_note(io);
		complete(req, io);
	}
}

/* Complete the IO that a reply names. imm: private copy that the peer cannot change. */
static inline __attribute__((always_inline)) void take_reply(struct gn_requester *req,
							     const void *imm)
{
	const volatile struct gn_wire *wire = gn_wire(imm);
	struct flight *f = find(req, wire->tag);
	struct gantry_io *io;
	uint16_t status;

	if (gantry_unlikely(!f || !f->io)) {
		take_late(req, f, wire);
		return;
	}
	io = release_slot(req, f);
	gn_wire_take_answer(wire, io);
	status = wire->status;
	if (gantry_unlikely(status != GANTRY_S_OK))
		status = note_failure(req, status, req->attr.lane->pub.now_ns);
	io->status = status;
	complete(req, io);
}

static void take_local_reply(struct gantry_local_peer *self, const struct gantry_io *io)
{
	take_reply((struct gn_requester *)self, io);
}

static int take_replies(struct gn_requester *req)
{
	struct gantry_msg msgs[BATCH];
	int n = req->attr.ops->poll_recv(req->consumer, msgs, BATCH);

	if (n < 0) {
		break_requester(req, n);
		return 0;
	}
	if (n == 0)
		return 0;
	/* the owners of these IOs compute latencies from the clock of the lane */
	gn_worker_tick(req->attr.lane->worker);
	for (int i = 0; i < n; i++)
		if (gantry_unlikely(msgs[i].imm_len != GANTRY_IO_WIRE_BYTES))
			take_note(req, msgs[i].imm, msgs[i].imm_len);
		else
			take_reply(req, msgs[i].imm);
	/* cannot overflow: the queue has two receives for each IO in flight */
	req->attr.ops->post_recv(req->consumer, (uint32_t)n);
	return n;
}

/* Remove a held write from the list and free its slot. */
static struct gantry_io *take_held(struct gn_requester *req, struct flight **at)
{
	struct flight *f = *at;
	struct parked *p = &req->parked[f - req->flights];
	struct gantry_io *io = p->held;

	*at = f->next;
	if (req->end_of_held == &f->next)
		req->end_of_held = at;
	p->held = NULL;
	push_free(req, f);
	return io;
}

/*
 * Submit the held writes that no entry of the fence overlaps now. Cancel held writes that passed
 * their deadline: they were never sent. Returns how many it submitted and cancelled.
 */
static int submit_held(struct gn_requester *req)
{
	uint64_t now_ns = req->attr.lane->pub.now_ns;
	struct flight **at = &req->first_held;
	struct gantry_io *io;
	int n = 0, rc;

	while (*at && !req->broken) {
		struct flight *f = *at;

		if (f->deadline_ns > now_ns && is_fenced(req, req->parked[f - req->flights].held)) {
			update_next_deadline(req, f->deadline_ns);
			at = &f->next;
			continue;
		}
		io = take_held(req, at);
		rc = f->deadline_ns > now_ns ? requester_submit(req, io) : -ECANCELED;
		if (rc == -EAGAIN) {
			hold(req, io); /* a slot is free: take_held() released one */
			break;
		}
		if (rc != 0)
			fail(req, io, gantry_status_of_errno(rc));
		at = &req->first_held; /* the callback can have changed the list, so start again */
		n++;
	}
	return n;
}

/*
 * Break the requester if a reply is still missing at until_ns: the peer might access the buffer or
 * the volume at any time.
 */
static void break_if_overdue(struct gn_requester *req, uint64_t until_ns, uint64_t now_ns)
{
	if (now_ns >= until_ns)
		break_requester(req, -ETIME);
	update_next_deadline(req, until_ns);
}

/*
 * Complete each IO that passed its deadline with TIMEOUT. The slot stays in use until the late
 * reply.
 */
static void expire(struct gn_requester *req, uint64_t now_ns)
{
	uint32_t n_late_replies = 0;

	req->next_deadline_ns = NEVER;
	for (uint32_t i = 0; i < req->attr.depth; i++) {
		struct flight *f = &req->flights[i];
		struct gantry_io *io = f->io;

		if (io && f->deadline_ns > now_ns) {
			update_next_deadline(req, f->deadline_ns);
		} else if (io) {
			f->io = NULL;
			f->late_reply_expected = 1;
			if (f->deadline_ns < req->late_reply_ns)
				req->late_reply_ns = f->deadline_ns;
			mark_late(req, f, io);
			fail(req, io, GANTRY_S_TIMEOUT);
		} else if (f->late_reply_expected) {
			break_if_overdue(req, req->parked[i].until_ns, now_ns);
		}
		n_late_replies += (uint32_t)f->late_reply_expected;
	}
	if (n_late_replies == req->attr.depth)
		break_requester(req, -ETIMEDOUT);
	if (req->unclear_ns != NEVER)
		break_if_overdue(req, req->unclear_until_ns, now_ns);
}

static int requester_poll(void *self)
{
	struct gn_requester *req = self;
	int n = 0;

	if (req->broken)
		return 0;
	if (req->queue_full_turns != 0)
		req->queue_full_turns--;
	n = take_replies(req);
	if (req->attr.lane->pub.now_ns >= req->next_deadline_ns)
		expire(req, req->attr.lane->pub.now_ns);
	if (gantry_unlikely(req->first_held != NULL))
		n += submit_held(req);
	gn_sender_flush(&req->sender);
	return n;
}

static int requester_arm(void *self)
{
	struct gn_requester *req = self;

	if (req->broken)
		return 0;
	return req->sender.dirty || req->queue_full_turns ||
	       req->attr.ops->consumer_arm(req->consumer);
}

static void requester_disarm(void *self)
{
	struct gn_requester *req = self;

	req->attr.ops->consumer_disarm(req->consumer);
}

static uint64_t requester_wake(void *self)
{
	const struct gn_requester *req = self;
	uint64_t at_ns = req->next_deadline_ns;

	if (req->first_held && req->attr.lane->pub.now_ns + HELD_POLL_NS < at_ns)
		at_ns = req->attr.lane->pub.now_ns + HELD_POLL_NS;
	return req->broken || at_ns == NEVER ? 0 : at_ns;
}

static int requester_fd(void *self)
{
	const struct gn_requester *req = self;

	return req->attr.ops->consumer_fd(req->consumer);
}

static uint32_t timeout_us(uint64_t ns)
{
	uint64_t us = (ns + GN_NS_PER_US - 1) / GN_NS_PER_US;

	return us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

int gn_requester_create(const struct gn_requester_attr *attr, struct gn_requester **req_p)
{
	struct gn_requester *req;

	if (attr->depth == 0 || attr->depth > UINT16_MAX)
		return -EINVAL;
	req = gantry_zalloc_lines(sizeof(*req));
	if (!req)
		return -ENOMEM;
	req->attr = *attr;
	req->probed = (struct gn_usdt_lane){attr->lane->name, attr->lane->pub.index};
	req->io_timeout_us = timeout_us(attr->io_timeout_ns);
	req->relayed = attr->relays ? NEVER : 0;
	req->late_reply_ns = req->unclear_ns = NEVER;
	req->end_of_held = &req->first_held;
	req->flights = gantry_zalloc_lines(attr->depth * sizeof(*req->flights));
	req->parked = calloc(attr->depth, sizeof(*req->parked));
	if (!req->flights || !req->parked) {
		gn_requester_free(&req);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < attr->depth; i++) {
		req->flights[i].tag = i;
		push_free(req, &req->flights[i]);
	}
	req->last = &req->no_flight;
	req->n_tags = attr->depth;
	req->as_peer.take_reply = take_local_reply;
	stop_sender(req);
	req->next_deadline_ns = NEVER;
	*req_p = req;
	return 0;
}

void gn_requester_free(struct gn_requester **req_p)
{
	struct gn_requester *req = *req_p;

	*req_p = NULL;
	if (!req)
		return;
	free(req->parked);
	free(req->flights);
	free(req);
}

void gn_requester_hop(struct gn_requester *req, struct gantry_hop *hop)
{
	*hop = (struct gantry_hop){.submit = requester_submit, .self = req};
}

uint64_t gn_requester_settled_ns(const struct gn_requester *req)
{
	return req->late_reply_ns < req->unclear_ns ? req->late_reply_ns : req->unclear_ns;
}

uint32_t gn_requester_late_writes(const struct gn_requester *req)
{
	return req->broken ? UINT32_MAX : req->n_late_writes;
}

const void *gn_requester_thread(const struct gn_requester *req)
{
	return req->attr.lane->worker;
}

bool gn_requester_is_edge_triggered(const struct gn_requester *req)
{
	return gn_worker_is_edge_triggered(req->attr.lane->worker);
}

struct queues {
	struct gn_requester *req;
	void *consumer, *producer;
	int rc;
};

static void start_on_lane(void *arg)
{
	struct queues *q = arg;
	struct gantry_poller poller = {.poll = requester_poll,
				       .arm = requester_arm,
				       .disarm = requester_disarm,
				       .wake_ns = requester_wake,
				       .fd = requester_fd,
				       .self = q->req};

	q->req->consumer = q->consumer;
	q->rc = gn_worker_add(q->req->attr.lane->worker, &poller);
	if (q->rc != 0) {
		q->req->consumer = NULL;
		return;
	}
	gn_sender_init(&q->req->sender, q->req->attr.ops, q->producer);
	q->req->attr.ops->consumer_set_local_peer(q->consumer, &q->req->as_peer);
}

int gn_requester_start(struct gn_requester *req, void *consumer, void *producer)
{
	struct queues q = {.req = req, .consumer = consumer, .producer = producer};

	gn_worker_call(req->attr.lane->worker, start_on_lane, &q);
	return q.rc;
}

static void stop_sending_on_lane(void *arg)
{
	struct gn_requester *req = arg;

	if (req->consumer)
		req->attr.ops->consumer_set_local_peer(req->consumer, NULL);
	/*
	 * A completion inside the loop must not submit again: with a busy peer the loop would not
	 * end.
	 */
	stop_sender(req);
	while (!req->broken && req->consumer && take_replies(req) > 0)
		;
	set_broken(req);
}

void gn_requester_stop_sending(struct gn_requester *req)
{
	if (!req)
		return;
	gn_worker_call(req->attr.lane->worker, stop_sending_on_lane, req);
}

static void stop_on_lane(void *arg)
{
	struct gn_requester *req = arg;

	stop_sending_on_lane(req);
	req->unclear_ns = 0; /* no peer will report when it releases the buffers */
	for (uint32_t i = 0; i < req->attr.depth; i++) {
		struct flight *f = &req->flights[i];
		struct gantry_io *io = f->io;

		f->io = NULL;
		remove_fence_entry(req, f);
		if (io)
			fail(req, io, GANTRY_S_SESSION_LOST);
	}
	while (req->first_held)
		fail(req, take_held(req, &req->first_held), GANTRY_S_SESSION_LOST);
	if (req->consumer)
		gn_worker_remove(req->attr.lane->worker, req);
	req->consumer = NULL;
}

void gn_requester_stop(struct gn_requester *req)
{
	if (!req)
		return;
	gn_worker_call(req->attr.lane->worker, stop_on_lane, req);
}
