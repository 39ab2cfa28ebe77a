/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_queue.c - slots, from rest to rest.
 *
 *      rest --get--> caller's --submit--> in flight --done--> caller's --put--> rest, or quarantine
 *                                waiting ---^
 *
 * A queue's chain ends in its gate, which hands descriptors to the link of the session as it is now, without a step
 * of their own: the link completes them into the chain.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine_priv.h"

/* -- the gate -- */

static int gate_submit(void *self, struct gantry_io *io)
{
	struct gc_queue *queue = self;

	return queue->up ? queue->link.submit(queue->link.self, io) : -ENOTCONN;
}

static void gate_complete(void *self, struct gantry_io *io)
{
	(void)self;
	gantry_complete(io); /* a terminal hop is never completed; pass it on all the same */
}

/* -- slots -- */

void gc_io_fill(const struct gc_queue *queue, struct gantry_io *io, unsigned opcode, unsigned flags, uint64_t offset,
		uint32_t length, uint64_t region_offset)
{
	int has_data = gantry_op_has_data(opcode);

	io->opcode = (uint8_t)opcode;
	io->flags = (uint8_t)flags;
	io->offset = offset;
	io->length = length;
	io->region = has_data ? GC_REGION_HANDLE : 0;
	io->region_offset = has_data ? region_offset : 0;
	io->data = has_data ? (uint8_t *)queue->session->region->addr + region_offset : NULL;
	io->deadline_us = 0;
	io->crc32c = 0;
	io->reserved = 0;
}

struct gantry_io *gc_queue_get(struct gc_queue *queue)
{
	return queue->n_free ? &queue->ios[queue->free[--queue->n_free]] : NULL;
}

void gc_queue_put(struct gc_queue *queue, struct gantry_io *io)
{
	int doubtful = !gantry_status_is_quiet(io->status) && gantry_op_has_data(io->opcode);

	queue->n_doubtful += (uint64_t)doubtful;
	if (__builtin_expect(doubtful, 0) && io->data == gc_slot_buffer(queue, io))
		queue->n_quarantined++;
	else
		queue->free[queue->n_free++] = io->slot;
}

static void complete(void *self, struct gantry_io *io)
{
	struct gc_queue *queue = self;
	const struct gc_session *session = queue->session;

	if (gantry_io_end(io)) {
		queue->n_doubled++;
		return;
	}
	queue->n_inflight--;
	session->attr.done(session->arg, queue, io);
}

static void wait_behind(struct gc_queue *queue, struct gantry_io *io)
{
	uint32_t at = queue->waiting_at + queue->n_waiting++;

	if (at >= queue->session->attr.depth)
		at -= queue->session->attr.depth;
	queue->waiting[at] = io->slot;
}

static struct gantry_io *take_waiting(struct gc_queue *queue)
{
	struct gantry_io *io = &queue->ios[queue->waiting[queue->waiting_at]];

	if (++queue->waiting_at == queue->session->attr.depth)
		queue->waiting_at = 0;
	queue->n_waiting--;
	return io;
}

int gc_queue_submit(struct gc_queue *queue, struct gantry_io *io)
{
	int rc = -EAGAIN;

	if (!queue->up)
		return -ENOTCONN; /* a stage might keep it, and nobody would take it back */
	gantry_io_begin(io, queue->lane->now_ns);
	queue->n_inflight++;
	if (!queue->n_waiting)
		rc = gantry_submit(io);
	if (__builtin_expect(rc == 0, 1))
		return 0;
	if (rc == -EAGAIN) {
		wait_behind(queue, io);
		return 0;
	}
	queue->n_inflight--;
	gantry_io_end(io);
	return rc;
}

static unsigned status_of(int error)
{
	switch (error) {
#define ROW(num, name, err, text)                                                                                       \
	case -err:                                                                                                      \
		return num;
	GANTRY_STATUS_LIST(ROW)
#undef ROW
	default:
		return GANTRY_S_IO;
	}
}

/* It was accepted, and then not: nobody has seen it, but that is told as any other end. */
static void fail(struct gc_queue *queue, struct gantry_io *io, unsigned status)
{
	io->status = (uint16_t)status;
	complete(queue, io);
}

int gc_queue_poll(struct gc_queue *queue)
{
	int n = 0;

	while (queue->n_waiting) {
		struct gantry_io *io = &queue->ios[queue->waiting[queue->waiting_at]];
		int rc = gantry_submit(io);

		if (rc == -EAGAIN)
			break;
		take_waiting(queue);
		if (rc)
			fail(queue, io, status_of(rc));
		n++;
	}
	return n;
}

/* -- the session's side -- */

int gc_queue_make_chain(struct gc_queue *queue)
{
	struct gc_session *session = queue->session;
	struct gantry_hop owner = {.complete = complete, .self = queue};
	struct gantry_hop gate = {.submit = gate_submit, .complete = gate_complete, .self = queue};

	queue->slot_bytes = session->slot_bytes;
	queue->buffers_offset = session->slot_bytes * session->attr.depth * queue->index;
	queue->buffers = (uint8_t *)session->region->addr + queue->buffers_offset;
	return session->rh->chain_create(queue->lane, &owner, &gate, session->attr.depth, &queue->chain, &queue->ios);
}

struct change {
	struct gc_queue *queue;
	const struct gantry_hop *link;
};

static void up_on_lane(void *arg)
{
	const struct change *change = arg;

	change->queue->link = *change->link;
	change->queue->up = 1;
}

static void down_on_lane(void *arg)
{
	struct gc_queue *queue = arg;

	queue->up = 0;
	while (queue->n_waiting)
		fail(queue, take_waiting(queue), GANTRY_S_SESSION_LOST);
}

void gc_queue_up(struct gc_queue *queue, const struct gantry_hop *link)
{
	struct change change = {.queue = queue, .link = link};

	queue->session->rh->lane_call(queue->lane, up_on_lane, &change);
}

void gc_queue_down(struct gc_queue *queue)
{
	queue->session->rh->lane_call(queue->lane, down_on_lane, queue);
}

int gc_queue_init(struct gc_session *session, uint32_t index)
{
	struct gc_queue *queue = &session->queues[index];
	uint32_t depth = session->attr.depth;

	queue->session = session;
	queue->index = index;
	queue->lane = session->rh->lane(session->rh, index);
	queue->free = calloc(depth, sizeof(*queue->free));
	queue->waiting = calloc(depth, sizeof(*queue->waiting));
	if (!queue->free || !queue->waiting)
		return -ENOMEM;
	for (uint32_t i = 0; i < depth; i++)
		queue->free[i] = (uint16_t)(depth - 1 - i);
	queue->n_free = depth;
	return 0;
}

void gc_queue_fini(struct gc_queue *queue)
{
	if (queue->chain)
		queue->session->rh->chain_destroy(queue->chain);
	free(queue->waiting);
	free(queue->free);
}
