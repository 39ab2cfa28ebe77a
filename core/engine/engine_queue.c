/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_queue.c - the slots of a queue.
 *
 *      free --get--> owner --submit--> in flight --complete--> owner --put--> free
 *                      `--> waiting ---^                         `--> quarantine --settled--> free
 *
 * If the session can be resumed, the chain of a queue ends in its gate. The gate passes descriptors
 * to the requester of the current session, which completes them into the chain: no hop of the chain
 * follows the gate. Otherwise the chain ends in the requester.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine_priv.h"

/* limit of resubmissions of one IO: a faulty stage could report SESSION_LOST after every resume */
#define MAX_RESUBMITS 100

/* -- the gate -- */

static int gate_submit(void *self, struct gantry_io *io)
{
	struct gantry_engine_queue *queue = self;

	return queue->next_hop.submit(queue->next_hop.self, io);
}

/* `submit` of the hop that the gate calls while there is no session. */
static int reject_submit(void *self, struct gantry_io *io)
{
	(void)self;
	(void)io;
	return -ENOTCONN;
}

static const struct gantry_hop closed_hop = {.submit = reject_submit};

/* `submit` of the hop that the gate calls while a resume is in progress. */
static int defer_submit(void *self, struct gantry_io *io)
{
	(void)self;
	(void)io;
	return -EAGAIN;
}

static const struct gantry_hop paused_hop = {.submit = defer_submit};

/* -- slots -- */

void gn_engine_put_doubtful(struct gantry_engine_queue *queue, struct gantry_io *io)
{
	const struct gantry_host *host = queue->session->rh->host;
	int has_buffer = gantry_op_has_buffer(io->opcode) &&
			 !(queue->kept && queue->kept[io->slot].unsent);

	queue->n_doubtful += (uint64_t)has_buffer;
	/* a list is in the buffer of the slot */
	if (has_buffer && ((io->flags & GANTRY_IO_LIST) != 0 ||
			   io->data == gantry_engine_slot_buffer(queue, io))) {
		io->start_ns = host->now_ns(host);
		queue->quarantine[queue->n_quarantined++] = io->slot;
		queue->n_quarantines++;
	} else {
		queue->free[queue->n_free++] = io->slot;
	}
}

/*
 * Release the slots that were quarantined before before_ns: no peer accesses their buffers any
 * more.
 */
static void release_quarantine(struct gantry_engine_queue *queue, uint64_t before_ns)
{
	uint32_t n = 0;

	while (n < queue->n_quarantined && queue->ios[queue->quarantine[n]].start_ns < before_ns)
		queue->free[queue->n_free++] = queue->quarantine[n++];
	queue->n_quarantined -= n;
	memmove(queue->quarantine, queue->quarantine + n,
		queue->n_quarantined * sizeof(*queue->quarantine));
	if (before_ns == UINT64_MAX)
		queue->n_doubtful = 0;
}

/* The peer or a stage has reported SESSION_LOST: end the session. */
static void expect_loss(void *arg)
{
	struct gantry_engine *session = arg;

	if (session->phase == GN_ENGINE_RUNNING)
		session->rh->client_abort(session->client);
}

static int keep_lost(struct gantry_engine_queue *queue, const struct gantry_io *io)
{
	if (!queue->kept || !queue->up || queue->kept[io->slot].again == MAX_RESUBMITS)
		return 0;
	if (queue->n_lost == 0 && !queue->paused)
		queue->session->rh->post(queue->session->rh, expect_loss, queue->session);
	queue->lost[queue->n_lost++] = io->slot;
	return 1;
}

int gn_engine_failed(struct gantry_engine_queue *queue, struct gantry_io *io)
{
	if (io->status == GANTRY_S_SESSION_LOST)
		return keep_lost(queue, io);
	/*
	 * The target reports CANCELED for an IO that it has never started. But this IO was in
	 * flight when an earlier session was lost, and a target might have executed it in that
	 * session.
	 */
	if (io->status == GANTRY_S_CANCELED && queue->kept && queue->kept[io->slot].again) {
		io->status = GANTRY_S_TIMEOUT;
		queue->kept[io->slot].unsent = 1;
	}
	return 0;
}

/*
 * True if this flush must fail: after a change of the verifier the first flush of each queue fails,
 * because writes that it covers might be lost. One flush of the session would not be sufficient:
 * before its completion reaches the program, a flush of another thread could succeed.
 */
static int must_fail_flush(struct gantry_engine_queue *queue, const struct gantry_io *io)
{
	if (io->opcode != GANTRY_OP_FLUSH || !queue->in_doubt)
		return 0;
	queue->in_doubt = 0;
	return 1;
}

/* Complete with an error an IO that gantry_engine_submit() has accepted. */
static void fail(struct gantry_engine_queue *queue, struct gantry_io *io, unsigned status)
{
	io->status = (uint16_t)status;
	queue->session->attr.complete(queue, io);
}

int gn_engine_submit_kept(struct gantry_engine_queue *queue, struct gantry_io *io)
{
	int rc;

	if (!queue->up) { /* do not submit it: a stage might hold it, and is not drained any more */
		io->status = GANTRY_S_OK;
		return queue->down_rc;
	}
	if (!queue->paused && must_fail_flush(queue, io)) {
		gantry_io_begin(io, queue->lane->now_ns);
		queue->n_inflight++;
		fail(queue, io, GANTRY_S_IO);
		return 0;
	}
	queue->kept[io->slot] = (struct gantry_engine_kept){.order = queue->n_kept++,
							    .deadline_us = io->deadline_us,
							    .crc32c = io->crc32c,
							    .flags = io->flags};
	gantry_io_begin(io, queue->lane->now_ns);
	queue->n_inflight++;
	rc = queue->n_waiting || queue->paused ? -EAGAIN : gantry_submit(io);
	if (rc == -ENOTCONN)
		rc = -EAGAIN; /* the requester stops before the session is notified */
	return rc ? gn_engine_refused(queue, io, rc) : 0;
}

static void wait_behind(struct gantry_engine_queue *queue, struct gantry_io *io)
{
	uint32_t at = queue->waiting_at + queue->n_waiting++;

	if (at >= queue->session->attr.depth)
		at -= queue->session->attr.depth;
	queue->waiting[at] = io->slot;
}

static struct gantry_io *take_waiting(struct gantry_engine_queue *queue)
{
	struct gantry_io *io = &queue->ios[queue->waiting[queue->waiting_at]];

	if (++queue->waiting_at == queue->session->attr.depth)
		queue->waiting_at = 0;
	queue->n_waiting--;
	return io;
}

int gn_engine_refused(struct gantry_engine_queue *queue, struct gantry_io *io, int rc)
{
	if (rc == -EAGAIN) {
		wait_behind(queue, io);
		return 0;
	}
	queue->n_inflight--;
	gantry_io_end(io);
	return rc;
}

static int submit_waiting(struct gantry_engine_queue *queue)
{
	int n = 0;

	while (queue->n_waiting && !queue->paused) {
		struct gantry_io *io = &queue->ios[queue->waiting[queue->waiting_at]];
		int rc = gantry_submit(io);

		if (rc == -EAGAIN || (rc == -ENOTCONN && queue->up == GANTRY_ENGINE_UP_KEPT))
			break;
		take_waiting(queue);
		if (rc)
			fail(queue, io, gantry_status_of_errno(rc));
		n++;
	}
	return n;
}

int gn_engine_poll_more(struct gantry_engine_queue *queue)
{
	const struct gantry_engine *session = queue->session;

	/*
	 * The client exists while the queue is up. Before a resumed client started, the server
	 * drained the previous session, so the time that the client reports covers the IOs of that
	 * session too.
	 */
	if (queue->n_doubtful && queue->up && !queue->paused)
		release_quarantine(queue,
				   session->rh->client_settled_ns(session->client, queue->index));
	return submit_waiting(queue);
}

uint32_t gn_engine_late_writes(const struct gantry_engine_queue *queue)
{
	const struct gantry_engine *session = queue->session;

	return queue->paused ? 1 : session->rh->client_late_writes(session->client, queue->index);
}

struct gantry_io *gn_engine_take_back(struct gantry_engine_queue *queue)
{
	struct gantry_io *io;

	if (!queue->n_waiting ||
	    (queue->kept && queue->kept[queue->waiting[queue->waiting_at]].again))
		return NULL; /* an IO that was in flight once might have been executed */
	io = take_waiting(queue);
	queue->n_inflight--;
	gantry_io_end(io);
	return io;
}

int gn_engine_reclaim(struct gantry_engine_queue *queue)
{
	int n = 0;

	if (!queue->paused || !queue->revoked)
		return -EAGAIN;
	release_quarantine(queue, UINT64_MAX);
	for (; queue->n_lost; n++) {
		struct gantry_io *io = &queue->ios[queue->lost[--queue->n_lost]];

		io->busy = 1; /* as in down_on_lane() */
		queue->kept[io->slot].unsent = 1;
		fail(queue, io, GANTRY_S_CANCELED);
	}
	for (; queue->n_waiting; n++) {
		struct gantry_io *io = take_waiting(queue);

		queue->kept[io->slot].unsent = 1;
		fail(queue, io, GANTRY_S_CANCELED);
	}
	return n;
}

/* -- called by the session -- */

int gn_engine_queue_make_chain(struct gantry_engine_queue *queue)
{
	struct gantry_engine *session = queue->session;
	struct gantry_hop owner = {.complete = session->attr.complete, .self = queue};
	const struct gantry_hop gate = {.submit = gate_submit, .self = queue};

	queue->slot_bytes = session->slot_bytes;
	queue->buffers_offset = session->slot_bytes * session->attr.depth * queue->index;
	queue->memory = session->region->addr;
	return session->rh->chain_create(queue->lane, &owner, queue->kept ? &gate : &queue->next,
					 &session->info, session->attr.depth, &queue->chain,
					 &queue->ios);
}

struct change {
	struct gantry_engine_queue *queue;
	uint32_t n;
};

/* Compare two slots by the order of their first submission. */
static int by_order(const void *a, const void *b, void *arg)
{
	const uint16_t *x = a, *y = b;
	const struct gantry_engine_kept *kept = arg;

	return kept[*x].order < kept[*y].order ? -1 : kept[*x].order > kept[*y].order;
}

/* Restore a descriptor as it was when it was submitted: stages and the peer have changed it. */
static void restore(struct gantry_engine_queue *queue, struct gantry_io *io)
{
	struct gantry_engine_kept *kept = &queue->kept[io->slot];

	gantry_io_begin(io, io->start_ns);
	io->flags = kept->flags;
	io->deadline_us = kept->deadline_us;
	io->crc32c = kept->crc32c;
	kept->again++;
}

/*
 * Fail each waiting flush: the program submitted it before it could know that the verifier has
 * changed.
 */
static void fail_flushes(struct gantry_engine_queue *queue)
{
	for (uint32_t n = queue->n_waiting; n; n--) {
		struct gantry_io *io = take_waiting(queue);

		if (io->opcode != GANTRY_OP_FLUSH) {
			wait_behind(queue, io);
			continue;
		}
		queue->in_doubt = 0;
		fail(queue, io, GANTRY_S_IO);
	}
}

static void up_on_lane(void *arg)
{
	struct change *change = arg;
	struct gantry_engine_queue *queue = change->queue;
	uint32_t n_waiting = queue->n_waiting;

	change->n = queue->n_lost;
	queue->next_hop = queue->next;
	queue->paused = 0;
	queue->up = queue->kept ? GANTRY_ENGINE_UP_KEPT : GANTRY_ENGINE_UP;
	if (!queue->kept)
		return; /* first start: nothing waits */
	/*
	 * Rebuild the ring from index 0: first the lost slots, then the waiting slots. Collect both
	 * in `lost`, which has an entry for each slot.
	 */
	for (uint32_t i = 0; i < n_waiting; i++)
		queue->lost[queue->n_lost + i] = take_waiting(queue)->slot;
	queue->waiting_at = 0;
	queue->n_waiting = queue->n_lost + n_waiting;
	for (uint32_t i = 0; i < queue->n_waiting; i++)
		queue->waiting[i] = queue->lost[i];
	for (uint32_t i = 0; i < queue->n_lost; i++)
		restore(queue, &queue->ios[queue->lost[i]]);
	queue->n_lost = 0;
	qsort_r(queue->waiting, queue->n_waiting, sizeof(*queue->waiting), by_order, queue->kept);
	if (queue->session->changed)
		queue->in_doubt = 1;
	/* also if the session was lost again before a flush reported the change */
	if (queue->in_doubt)
		fail_flushes(queue);
}

static void pause_on_lane(void *arg)
{
	struct gantry_engine_queue *queue = arg;

	queue->next_hop = paused_hop;
	queue->paused = 1;
	queue->revoked = queue->session->released;
}

static void down_on_lane(void *arg)
{
	struct gantry_engine_queue *queue = arg;

	queue->up = GANTRY_ENGINE_DOWN;
	queue->down_rc = queue->session->end_rc == -ESTALE ? -ESTALE : -ENOTCONN;
	queue->paused = 0;
	queue->next_hop = closed_hop;
	for (uint32_t i = 0; i < queue->n_lost; i++) {
		struct gantry_io *io = &queue->ios[queue->lost[i]];

		io->busy = 1; /* gantry_io_end() was called, but the owner was not notified */
		fail(queue, io, gantry_status_of_errno(queue->down_rc));
	}
	queue->n_lost = 0;
	while (queue->n_waiting)
		fail(queue, take_waiting(queue), gantry_status_of_errno(queue->down_rc));
}

uint32_t gn_engine_queue_up(struct gantry_engine_queue *queue)
{
	struct change change = {.queue = queue};

	queue->session->rh->lane_call(queue->lane, up_on_lane, &change);
	return change.n;
}

void gn_engine_queue_pause(struct gantry_engine_queue *queue)
{
	queue->session->rh->lane_call(queue->lane, pause_on_lane, queue);
}

void gn_engine_queue_down(struct gantry_engine_queue *queue)
{
	queue->session->rh->lane_call(queue->lane, down_on_lane, queue);
}

int gn_engine_queue_init(struct gantry_engine *session, uint32_t index)
{
	struct gantry_engine_queue *queue = &session->queues[index];
	uint32_t depth = session->attr.depth;

	queue->ops = &gn_engine_ops;
	queue->session = session;
	queue->next_hop = closed_hop;
	queue->down_rc = -ENOTCONN;
	queue->index = index;
	queue->lane = session->rh->lane(session->rh, index);
	queue->free = gantry_zalloc_lines(depth * sizeof(*queue->free));
	queue->quarantine = calloc(depth, sizeof(*queue->quarantine));
	queue->waiting = calloc(depth, sizeof(*queue->waiting));
	if (session->resume_ns) {
		queue->kept = calloc(depth, sizeof(*queue->kept));
		queue->lost = calloc(depth, sizeof(*queue->lost));
	}
	if (!queue->free || !queue->quarantine || !queue->waiting ||
	    (session->resume_ns && (!queue->kept || !queue->lost)))
		return -ENOMEM;
	for (uint32_t i = 0; i < depth; i++)
		queue->free[i] = (uint16_t)(depth - 1 - i);
	queue->n_free = depth;
	return 0;
}

static void resize_on_lane(void *arg)
{
	struct gantry_engine_queue *queue = arg;

	queue->session->rh->chain_resize(queue->chain, queue->session->info.size);
}

void gn_engine_queue_resize(struct gantry_engine_queue *queue)
{
	if (queue->chain)
		queue->session->rh->lane_call(queue->lane, resize_on_lane, queue);
}

void gn_engine_queue_fini(struct gantry_engine_queue *queue)
{
	if (queue->chain)
		queue->session->rh->chain_destroy(queue->chain);
	free(queue->lost);
	free(queue->kept);
	free(queue->waiting);
	free(queue->quarantine);
	free(queue->free);
}
