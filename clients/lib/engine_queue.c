/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_queue.c - slots, from rest to rest.
 *
 *      rest --get--> caller's --submit--> in flight --complete--> caller's --put--> rest, or quarantine
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

	return queue->link.submit(queue->link.self, io);
}

/* Where it leads without a session. */
static int nowhere(void *self, struct gantry_io *io)
{
	(void)self;
	(void)io;
	return -ENOTCONN;
}

static const struct gantry_hop no_link = {.submit = nowhere};

static void gate_complete(void *self, struct gantry_io *io)
{
	(void)self;
	gantry_complete(io); /* a terminal hop is never completed; pass it on all the same */
}

/* -- slots -- */

void gc_queue_put_doubtful(struct gc_queue *queue, struct gantry_io *io)
{
	int has_data = gantry_op_has_data(io->opcode);

	queue->n_doubtful += (uint64_t)has_data;
	if (has_data && io->data == gc_slot_buffer(queue, io))
		queue->n_quarantined++;
	else
		queue->free[queue->n_free++] = io->slot;
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

int gc_queue_refused(struct gc_queue *queue, struct gantry_io *io, int rc)
{
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
	queue->session->attr.complete(queue, io);
}

int gc_queue_submit_waiting(struct gc_queue *queue)
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

struct gantry_io *gc_queue_take_back(struct gc_queue *queue)
{
	struct gantry_io *io;

	if (!queue->n_waiting)
		return NULL;
	io = take_waiting(queue);
	queue->n_inflight--;
	gantry_io_end(io);
	return io;
}

/* -- the session's side -- */

int gc_queue_make_chain(struct gc_queue *queue)
{
	struct gc_session *session = queue->session;
	struct gantry_hop owner = {.complete = session->attr.complete, .self = queue};
	struct gantry_hop gate = {.submit = gate_submit, .complete = gate_complete, .self = queue};

	queue->slot_bytes = session->slot_bytes;
	queue->buffers_offset = session->slot_bytes * session->attr.depth * queue->index;
	queue->memory = session->region->addr;
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
	queue->link = no_link;
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
	queue->link = no_link;
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
