/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/requester.h"

#include "base/clock.h"
#include "io/wire.h"
#include "transport/responder_priv.h"
#include "transport/sender.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 32
#define SLOT(tag) ((tag)&0xffffu)
#define NEVER UINT64_MAX
/* a sleeping lane polls the fence this often: other lanes remove entries */
#define HELD_POLL_NS GN_NS_PER_MS

/* One IO in flight. */
struct flight {
	struct gantry_io *io;    /* NULL: none */
	uint32_t tag;            /* as on the wire */
	int late_reply_expected; /* it timed out, but the peer still owes the answer */
	uint64_t deadline_ns;
	struct flight *next;    /* at rest */
} __attribute__((aligned(32))); /* never in two cache lines */

/* State of a slot whose write has timed out, or is held back by one that has. */
struct parked {
	struct gn_fence_entry entry; /* of the write that timed out */
	uint64_t until_ns;           /* deadline of its late answer */
	struct gantry_io *held;      /* the write that is held back; NULL: none */
};

/* What each IO uses stands first. */
struct gn_requester {
	uint32_t io_timeout_us;
	/* all bits set: the link does not time out an IO that has a deadline of its own */
	uint64_t relayed;
	void *consumer;
	struct gn_sender sender;  /* producer NULL: nothing can be sent */
	struct flight *free_list; /* those at rest, the last one used first */
	/* the one that was sent last, whose answer comes next where the peer is on this thread */
	struct flight *last;
	struct flight none; /* stands in for it */
	uint32_t n_tags; /* slots that an answer may name: all, and none where the link is broken */
	/*
	 * turns for which a lane must stay awake: the queue took nothing, and nothing tells when it
	 * will
	 */
	int refused;
	int broken;
	int polled;                /* its poller is on the worker */
	uint64_t next_deadline_ns; /* no deadline is earlier */
	/* the earliest deadline of IOs that the peer still owes an answer for; NEVER: none */
	uint64_t late_reply_ns;
	/* the first answer that leaves open whether somebody touches the buffer; NEVER: none */
	uint64_t unclear_ns;
	uint64_t unclear_until_ns; /* when the link breaks because of unclear_ns */
	uint32_t n_late_writes;
	struct flight *flights;
	struct parked *parked;                    /* by slot */
	struct flight *first_held, **end_of_held; /* writes that are held back, the oldest first */
	struct gn_requester_attr attr;
};

static inline void put_to_rest(struct gn_requester *link, struct flight *f)
{
	f->next = link->free_list;
	link->free_list = f;
}

static void note_deadline(struct gn_requester *link, uint64_t at_ns)
{
	if (at_ns < link->next_deadline_ns)
		link->next_deadline_ns = at_ns;
}

/* The transport has not taken it: nothing is in flight. */
static __attribute__((noinline)) int take_back(struct gn_requester *link, struct flight *f, int rc)
{
	f->io = NULL;
	put_to_rest(link, f);
	if (rc == -EAGAIN)
		link->refused = 2; /* this turn and the next, wherever in a turn we are */
	return rc;
}

/* Over the producer, or to whoever may refuse it. */
static __attribute__((noinline)) int send(struct gn_requester *link, struct flight *f,
					  struct gantry_io *io)
{
	int rc = gn_sender_send(&link->sender, io);

	return gantry_unlikely(rc != 0) ? take_back(link, f, rc) : 0;
}

/*
 * The same for a descriptor without a deadline of its own: restore that when the transport rejects
 * it.
 */
static __attribute__((noinline)) int send_undated(struct gn_requester *link, struct flight *f,
						  struct gantry_io *io)
{
	int rc = gn_sender_send(&link->sender, io);

	if (gantry_likely(rc == 0))
		return 0;
	io->deadline_us = 0;
	return take_back(link, f, rc);
}

/*
 * Set the deadline to the time that is left, because the wire carries that. Returns false if no
 * time is left.
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

/* Reject an IO because no slot is free. */
static int refuse(const struct gn_requester *link)
{
	return !link->sender.producer ? -ENOTCONN : -EAGAIN;
}

/*
 * Hold back a write that overlaps one that timed out, until the answer to that one or its own
 * deadline.
 */
static __attribute__((noinline)) int hold(struct gn_requester *link, struct gantry_io *io)
{
	struct flight *f = link->free_list;

	link->free_list = f->next;
	if (io->deadline_us == 0)
		io->deadline_us = link->io_timeout_us;
	f->deadline_ns = io->start_ns + io->deadline_us * GN_NS_PER_US;
	note_deadline(link, f->deadline_ns);
	link->parked[f - link->flights].held = io;
	f->next = NULL;
	*link->end_of_held = f;
	link->end_of_held = &f->next;
	return 0;
}

static bool must_wait(const struct gn_requester *link, const struct gantry_io *io)
{
	return gantry_op_writes(io->opcode) &&
	       gn_fence_blocks(link->attr.fence, io->offset, io->length);
}

/*
 * Put an IO into a slot and send it. Inside, the answer may arrive and the owner may submit the
 * next IO.
 */
static inline __attribute__((always_inline)) int launch(struct gn_requester *link, struct flight *f,
							struct gantry_io *io)
{
	const struct gantry_inline_handler *direct = link->sender.direct;
	uint64_t now_ns = link->attr.lane->pub.now_ns;
	uint32_t deadline_us = io->deadline_us;

	link->free_list = f->next;
	link->last = f;
	f->io = io;
	io->tag = f->tag += 0x10000u;
	if (gantry_unlikely((io->flags & link->attr.left_out) != 0))
		io->flags &= (uint8_t)~link->attr.left_out;
	if (deadline_us != 0) {
		f->deadline_ns = (now_ns + deadline_us * GN_NS_PER_US) | link->relayed;
	} else {
		io->deadline_us = link->io_timeout_us;
		f->deadline_ns = now_ns + link->attr.io_timeout_ns;
	}
	note_deadline(link, f->deadline_ns);
	/*
	 * a port on this thread takes the IO as the last step, because it may call back into this
	 * link
	 */
	if (direct->take == gn_responder_take_inline && gn_responder_is_ready(direct->arg))
		return gn_responder_take(direct->arg, io);
	return deadline_us != 0 ? send(link, f, io) : send_undated(link, f, io);
}

/* Submit when the fence has entries, or when time has passed since the IO was submitted. */
static __attribute__((noinline)) int submit_slow(struct gn_requester *link, struct gantry_io *io)
{
	uint64_t now_ns = link->attr.lane->pub.now_ns;
	uint32_t deadline_us = io->deadline_us;
	int rc;

	if (!link->sender.producer)
		return -ENOTCONN;
	if (gn_fence_is_up(link->attr.fence) && must_wait(link, io))
		return hold(link, io);
	if (deadline_us != 0 && now_ns > io->start_ns && !subtract_time_used(io, now_ns)) {
		gantry_fail(io, GANTRY_S_CANCELED);
		return 0;
	}
	rc = launch(link, link->free_list, io);
	if (rc != 0)
		io->deadline_us = deadline_us;
	return rc;
}

static int link_submit(void *self, struct gantry_io *io)
{
	struct gn_requester *link = self;
	struct flight *f = link->free_list;

	if (gantry_unlikely(!f))
		return refuse(link);
	if (gantry_unlikely(gn_fence_is_up(link->attr.fence) ||
			    link->attr.lane->pub.now_ns - io->start_ns >= GN_NS_PER_US))
		return submit_slow(link, io);
	return launch(link, f, io);
}

static void link_complete(void *self, struct gantry_io *io)
{
	(void)self;
	gantry_complete(io); /* a terminal hop is never completed; pass it on all the same */
}

/* From now on no answer is believed. */
static void set_broken(struct gn_requester *link)
{
	link->broken = 1;
	link->n_tags = 0;
	link->last = &link->none;
}

static void break_link(struct gn_requester *link, int reason)
{
	if (link->broken)
		return;
	set_broken(link);
	gn_sender_stop(&link->sender);
	link->attr.broken(link->attr.arg, reason);
}

/* Returns the status; one that nobody knows is UNKNOWN. */
static uint16_t note_failure(struct gn_requester *link, uint16_t status, uint64_t at_ns)
{
	if (status >= GANTRY_S_COUNT)
		status = GANTRY_S_UNKNOWN;
	/*
	 * TIMEOUT as an answer means that the peer has finished the IO: a peer that gives up early
	 * sends no answer
	 */
	if (!gantry_status_buffer_released(status) && status != GANTRY_S_TIMEOUT &&
	    at_ns < link->unclear_ns) {
		link->unclear_ns = at_ns;
		link->unclear_until_ns = link->attr.lane->pub.now_ns + link->attr.late_timeout_ns;
		note_deadline(link, link->unclear_until_ns);
	}
	return status;
}

static void look_what_is_owed(struct gn_requester *link)
{
	link->late_reply_ns = NEVER;
	for (uint32_t i = 0; i < link->attr.depth; i++)
		if (link->flights[i].late_reply_expected &&
		    link->flights[i].deadline_ns < link->late_reply_ns)
			link->late_reply_ns = link->flights[i].deadline_ns;
}

/*
 * An IO timed out: wait for its late answer, and let the fence hold back writes of the session that
 * overlap it.
 */
static void note_late(struct gn_requester *link, const struct flight *f, const struct gantry_io *io)
{
	struct parked *p = &link->parked[f - link->flights];

	p->until_ns = f->deadline_ns + link->attr.late_timeout_ns;
	note_deadline(link, p->until_ns);
	if (!gantry_op_writes(io->opcode))
		return;
	link->n_late_writes++;
	gn_fence_enter(link->attr.fence, &p->entry, io->offset, io->length);
}

static void lower_fence(struct gn_requester *link, const struct flight *f)
{
	struct parked *p = &link->parked[f - link->flights];

	if (!p->entry.at)
		return;
	link->n_late_writes--;
	gn_fence_remove(link->attr.fence, &p->entry);
}

/*
 * An answer to nothing that is in flight: late, or made up. After a late one nobody has the buffer,
 * unless it says so. wire NULL: a note.
 */
static __attribute__((noinline)) void take_late(struct gn_requester *link, struct flight *f,
						const volatile struct gn_wire *wire)
{
	if (link->broken)
		return;
	if (!f || !f->late_reply_expected) {
		break_link(link, -EPROTO);
		return;
	}
	f->late_reply_expected = 0;
	lower_fence(link, f);
	put_to_rest(link, f);
	gantry_count(link->attr.stale, 1);
	note_failure(link, wire ? wire->status : GANTRY_S_OK, f->deadline_ns);
	look_what_is_owed(link);
}

/* Which IO has this tag, in flight or late; NULL: none. */
static inline struct flight *find(struct gn_requester *link, uint32_t tag)
{
	struct flight *f = link->last;

	if (f->tag == tag) /* foreseen, it is at hand before the tag is */
		return f;
	if (gantry_unlikely(SLOT(tag) >= link->n_tags))
		return NULL;
	f = &link->flights[SLOT(tag)];
	return f->tag == tag ? f : NULL;
}

static inline struct gantry_io *release_slot(struct gn_requester *link, struct flight *f)
{
	struct gantry_io *io = f->io;

	f->io = NULL;
	put_to_rest(link, f);
	return io;
}

/* Not a descriptor: it may be a note, which answers a read in flight. */
static __attribute__((noinline)) void take_note(struct gn_requester *link, const void *imm,
						uint32_t imm_len)
{
	struct flight *f = NULL;
	uint32_t tag;

	if (link->attr.notes && imm_len == GN_IMM_REPLY_BYTES) {
		memcpy(&tag, imm, sizeof(tag));
		f = find(link, tag);
	}
	if (!f || !f->io) {
		take_late(link, f, NULL);
	} else if (f->io->opcode != GANTRY_OP_READ) {
		break_link(link, -EPROTO);
	} else {
		struct gantry_io *io = release_slot(link, f);

		gn_wire_take_note(io);
		gantry_complete(io);
	}
}

/* imm: nobody else can change it. */
static inline void take_reply(struct gn_requester *link, const void *imm)
{
	const volatile struct gn_wire *wire = gn_wire(imm);
	struct flight *f = find(link, wire->tag);
	struct gantry_io *io;
	uint16_t status;

	if (gantry_unlikely(!f || !f->io)) {
		take_late(link, f, wire);
		return;
	}
	io = release_slot(link, f);
	gn_wire_take_answer(wire, io);
	status = wire->status;
	if (gantry_unlikely(status != GANTRY_S_OK))
		status = note_failure(link, status, link->attr.lane->pub.now_ns);
	io->status = status;
	gantry_complete(io);
}

void gn_requester_take_answer(struct gn_requester *link, const struct gantry_io *from)
{
	take_reply(link, from);
}

static void take_message(struct gn_requester *link, const void *imm, uint32_t imm_len)
{
	if (gantry_unlikely(imm_len != GANTRY_IO_WIRE_BYTES))
		take_note(link, imm, imm_len);
	else
		take_reply(link, imm);
}

static int take_replies(struct gn_requester *link)
{
	struct gantry_msg msgs[BATCH];
	int n = link->attr.ops->poll_recv(link->consumer, msgs, BATCH);

	if (n < 0) {
		break_link(link, n);
		return 0;
	}
	if (n == 0)
		return 0;
	/* whose answers these are takes their time from it */
	gn_worker_tick(link->attr.lane->worker);
	for (int i = 0; i < n; i++)
		take_message(link, msgs[i].imm, msgs[i].imm_len);
	/* there are twice as many as can be in flight */
	link->attr.ops->post_recv(link->consumer, NULL, (uint32_t)n);
	return n;
}

int gn_requester_take_inline(void *arg, const void *imm, uint32_t imm_len)
{
	take_message(arg, imm, imm_len);
	return 0;
}

/* Take a held write out of the list and free its slot. */
static struct gantry_io *take_held(struct gn_requester *link, struct flight **at)
{
	struct flight *f = *at;
	struct parked *p = &link->parked[f - link->flights];
	struct gantry_io *io = p->held;

	*at = f->next;
	if (link->end_of_held == &f->next)
		link->end_of_held = at;
	p->held = NULL;
	put_to_rest(link, f);
	return io;
}

/*
 * Submit held writes that the fence blocks no more, and cancel those over their deadline: they were
 * never sent.
 */
static int offer_held(struct gn_requester *link)
{
	uint64_t now_ns = link->attr.lane->pub.now_ns;
	struct flight **at = &link->first_held;
	struct gantry_io *io;
	int n = 0, rc;

	while (*at && !link->broken) {
		struct flight *f = *at;

		if (f->deadline_ns > now_ns &&
		    must_wait(link, link->parked[f - link->flights].held)) {
			note_deadline(link, f->deadline_ns);
			at = &f->next;
			continue;
		}
		io = take_held(link, at);
		rc = f->deadline_ns > now_ns ? link_submit(link, io) : -ECANCELED;
		if (rc == -EAGAIN) {
			hold(link, io); /* take_held() freed a slot */
			break;
		}
		if (rc != 0)
			gantry_fail(io, gantry_status_of_errno(rc));
		at = &link->first_held; /* the callback may have changed the list */
		n++;
	}
	return n;
}

/*
 * Break the link if an answer is still missing at until_ns: the peer may access the buffer or the
 * block at any time.
 */
static void end_in_time(struct gn_requester *link, uint64_t until_ns, uint64_t now_ns)
{
	if (now_ns >= until_ns)
		break_link(link, -ETIME);
	note_deadline(link, until_ns);
}

/* Complete what is over its deadline; the slot stays taken until the late answer comes. */
static void expire(struct gn_requester *link, uint64_t now_ns)
{
	uint32_t n_late_replies = 0;

	link->next_deadline_ns = NEVER;
	for (uint32_t i = 0; i < link->attr.depth; i++) {
		struct flight *f = &link->flights[i];
		struct gantry_io *io = f->io;

		if (io && f->deadline_ns > now_ns) {
			note_deadline(link, f->deadline_ns);
		} else if (io) {
			f->io = NULL;
			f->late_reply_expected = 1;
			if (f->deadline_ns < link->late_reply_ns)
				link->late_reply_ns = f->deadline_ns;
			note_late(link, f, io);
			gantry_fail(io, GANTRY_S_TIMEOUT);
		} else if (f->late_reply_expected) {
			end_in_time(link, link->parked[i].until_ns, now_ns);
		}
		n_late_replies += (uint32_t)f->late_reply_expected;
	}
	if (n_late_replies == link->attr.depth)
		break_link(link, -ETIMEDOUT);
	if (link->unclear_ns != NEVER)
		end_in_time(link, link->unclear_until_ns, now_ns);
}

static int link_poll(void *self)
{
	struct gn_requester *link = self;
	int n = 0;

	if (link->broken)
		return 0;
	if (link->refused != 0)
		link->refused--;
	n = take_replies(link);
	if (link->attr.lane->pub.now_ns >= link->next_deadline_ns)
		expire(link, link->attr.lane->pub.now_ns);
	if (gantry_unlikely(link->first_held != NULL))
		n += offer_held(link);
	gn_sender_flush(&link->sender);
	return n;
}

static int link_arm(void *self)
{
	struct gn_requester *link = self;

	if (link->broken)
		return 0;
	return link->sender.dirty || link->refused || link->attr.ops->consumer_arm(link->consumer);
}

static void link_disarm(void *self)
{
	struct gn_requester *link = self;

	link->attr.ops->consumer_disarm(link->consumer);
}

static uint64_t link_wake(void *self)
{
	const struct gn_requester *link = self;
	uint64_t at_ns = link->next_deadline_ns;

	if (link->first_held && link->attr.lane->pub.now_ns + HELD_POLL_NS < at_ns)
		at_ns = link->attr.lane->pub.now_ns + HELD_POLL_NS;
	return link->broken || at_ns == NEVER ? 0 : at_ns;
}

static int link_fd(void *self)
{
	const struct gn_requester *link = self;

	return link->attr.ops->consumer_fd(link->consumer);
}

static uint32_t timeout_us(uint64_t ns)
{
	uint64_t us = (ns + GN_NS_PER_US - 1) / GN_NS_PER_US;

	return us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

int gn_requester_create(const struct gn_requester_attr *attr, struct gn_requester **link_p)
{
	struct gn_requester *link;

	if (attr->depth == 0 || attr->depth > UINT16_MAX)
		return -EINVAL;
	link = gantry_zalloc_lines(sizeof(*link));
	if (!link)
		return -ENOMEM;
	link->attr = *attr;
	link->io_timeout_us = timeout_us(attr->io_timeout_ns);
	link->relayed = attr->relays ? NEVER : 0;
	link->late_reply_ns = link->unclear_ns = NEVER;
	link->end_of_held = &link->first_held;
	link->flights = gantry_zalloc_lines(attr->depth * sizeof(*link->flights));
	link->parked = calloc(attr->depth, sizeof(*link->parked));
	if (!link->flights || !link->parked) {
		gn_requester_free(&link);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < attr->depth; i++) {
		link->flights[i].tag = i;
		put_to_rest(link, &link->flights[i]);
	}
	link->last = &link->none;
	link->n_tags = attr->depth;
	gn_sender_stop(&link->sender);
	link->next_deadline_ns = NEVER;
	*link_p = link;
	return 0;
}

void gn_requester_free(struct gn_requester **link_p)
{
	struct gn_requester *link = *link_p;

	*link_p = NULL;
	if (!link)
		return;
	free(link->parked);
	free(link->flights);
	free(link);
}

void gn_requester_hop(struct gn_requester *link, struct gantry_hop *hop)
{
	*hop = (struct gantry_hop){.submit = link_submit, .complete = link_complete, .self = link};
}

uint64_t gn_requester_settled_ns(const struct gn_requester *link)
{
	return link->late_reply_ns < link->unclear_ns ? link->late_reply_ns : link->unclear_ns;
}

uint32_t gn_requester_late_writes(const struct gn_requester *link)
{
	return link->broken ? UINT32_MAX : link->n_late_writes;
}

const void *gn_requester_thread(const struct gn_requester *link)
{
	return link->attr.lane->worker;
}

bool gn_requester_hears_edges(const struct gn_requester *link)
{
	return gn_worker_hears_edges(link->attr.lane->worker);
}

struct queues {
	struct gn_requester *link;
	void *consumer, *producer;
	int rc;
};

static void start_on_lane(void *arg)
{
	struct queues *q = arg;
	struct gantry_poller poller = {.poll = link_poll,
				       .arm = link_arm,
				       .disarm = link_disarm,
				       .wake_ns = link_wake,
				       .fd = link_fd,
				       .self = q->link};
	struct gantry_inline_handler handler = {.thread = q->link->attr.lane->worker,
						.take = gn_requester_take_inline,
						.arg = q->link};

	q->link->consumer = q->consumer;
	gn_sender_init(&q->link->sender, q->link->attr.ops, q->producer);
	q->rc = gn_worker_add(q->link->attr.lane->worker, &poller);
	q->link->polled = q->rc == 0;
	if (q->rc != 0) {
		q->link->consumer = NULL;
		gn_sender_stop(&q->link->sender);
		return;
	}
	q->link->attr.ops->consumer_set_inline_handler(q->consumer, &handler);
}

int gn_requester_start(struct gn_requester *link, void *consumer, void *producer)
{
	struct queues q = {.link = link, .consumer = consumer, .producer = producer};

	gn_worker_call(link->attr.lane->worker, start_on_lane, &q);
	return q.rc;
}

static void stop_on_lane(void *arg)
{
	struct gn_requester *link = arg;

	if (link->consumer)
		link->attr.ops->consumer_set_inline_handler(link->consumer, NULL);
	/* who completes now must not submit again: with a busy peer that would never end */
	gn_sender_stop(&link->sender);
	while (!link->broken && link->consumer && take_replies(link) > 0)
		;
	set_broken(link);
	link->unclear_ns = 0; /* nobody will tell */
	for (uint32_t i = 0; i < link->attr.depth; i++) {
		struct flight *f = &link->flights[i];
		struct gantry_io *io = f->io;

		f->io = NULL;
		lower_fence(link, f);
		if (io)
			gantry_fail(io, GANTRY_S_SESSION_LOST);
	}
	while (link->first_held)
		gantry_fail(take_held(link, &link->first_held), GANTRY_S_SESSION_LOST);
	if (link->polled)
		gn_worker_remove(link->attr.lane->worker, link);
	link->polled = 0;
	link->consumer = NULL;
}

void gn_requester_stop(struct gn_requester *link)
{
	if (!link)
		return;
	gn_worker_call(link->attr.lane->worker, stop_on_lane, link);
}
