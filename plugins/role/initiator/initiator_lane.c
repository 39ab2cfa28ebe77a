/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * initiator_lane.c - keeps the queue of a lane full while the source has IO, and accounts for each
 * completion.
 *
 *     running --(source exhausted, stop, failure, session lost)--> draining
 *     draining --(no IO in flight)--> done
 */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "initiator.h"

/* below this time, in ns, IOs that completed together share it equally */
#define SHARED_NS 2000
/* flag in lane.whole_hops: an IO has been timed, so the other bits are valid */
#define HOPS_KNOWN (1u << GANTRY_HOP_COUNT)
/* bits of lane.whole_hops whose times include the next role */
#define NEXT_ROLE (1u << GANTRY_HOP_GATEWAY | 1u << GANTRY_HOP_TARGET)
#define TURN 128 /* IOs issued per turn, so that other pollers on this thread get their turn */

static const uint8_t kind_of[GANTRY_OP_COUNT] = {
	[GANTRY_OP_NOP] = KIND_OTHER,          [GANTRY_OP_READ] = KIND_READ,
	[GANTRY_OP_WRITE] = KIND_WRITE,        [GANTRY_OP_FLUSH] = KIND_FLUSH,
	[GANTRY_OP_WRITE_ZEROES] = KIND_OTHER, [GANTRY_OP_DISCARD] = KIND_OTHER,
	[GANTRY_OP_EXTENTS] = KIND_OTHER,
};

void lanes_stop(struct initiator *in)
{
	if (atomic_exchange(&in->stop, true))
		return;
	for (uint32_t i = 0; i < in->n_lanes; i++)
		eventfd_write(in->lanes[i].event_fd, 1);
}

void lane_fail(struct initiator *in)
{
	atomic_store(&in->failed, true);
	lanes_stop(in);
}

/* A latency and its histogram bucket. */
struct sample {
	uint64_t ns, index;
};

static inline struct sample sample(uint64_t ns)
{
	return (struct sample){.ns = ns, .index = gantry_histogram_index(ns)};
}

/*
 * Record the latency of the IOs that completed while the cached clock did not advance. These IOs
 * and `timed` more IOs took `ns` together. If `ns` is below SHARED_NS, each IO gets an equal share.
 * Otherwise any of them might have taken the whole time, so each gets `ns`. Returns the latency of
 * one IO.
 */
static __attribute__((noinline)) uint64_t record_untimed(struct lane *lane, uint64_t ns,
							 uint32_t timed)
{
	struct sample each = sample(ns < SHARED_NS ? ns / (lane->n_untimed + timed) : ns);
	struct lane_stats *stats = lane->stats;

	for (int i = 0; i < KIND_COUNT; i++) {
		if (lane->untimed[i])
			gantry_histogram_record_at(&stats->kind[i].latency, each.index, each.ns,
						   lane->untimed[i]);
		lane->untimed[i] = 0;
	}
	for (uint32_t left = lane->whole_hops & ~HOPS_KNOWN; left; left &= left - 1)
		gantry_histogram_record_at(&stats->hop[__builtin_ctz(left)], each.index, each.ns,
					   lane->n_untimed);
	if (lane->whole_hops & NEXT_ROLE)
		gantry_histogram_record_at(&stats->link, 0, 0, lane->n_untimed);
	lane->n_untimed = 0;
	return each.ns;
}

/*
 * Find the hops whose time equals the whole latency. That is so if the next role is on this thread,
 * and both roles used the same readings of the clock.
 */
static __attribute__((noinline)) void find_whole_hops(struct lane *lane, const struct gantry_io *io,
						      uint64_t whole_ns)
{
	lane->whole_hops = HOPS_KNOWN;
	for (int i = 0; i < GANTRY_HOP_COUNT; i++)
		lane->whole_hops |= (uint32_t)(whole_ns && io->hop_ns[i] == whole_ns) << i;
}

/*
 * Record the time of one hop. The caller calls it for each hop without a loop, because most IOs
 * pass one or two hops.
 */
static inline void record_hop(struct lane_stats *stats, const struct gantry_io *io,
			      enum gantry_hop_time hop, uint64_t whole_ns, struct sample all)
{
	uint64_t ns = io->hop_ns[hop];

	if (ns && ns == whole_ns)
		gantry_histogram_record_at(&stats->hop[hop], all.index, all.ns, 1);
	else if (ns)
		gantry_histogram_record(&stats->hop[hop], ns);
}

static __attribute__((noinline)) void record_timed(struct lane *lane, const struct gantry_io *io,
						   struct kind_stats *kind, uint64_t ns)
{
	struct lane_stats *stats = lane->stats;
	uint32_t remote = io->hop_ns[GANTRY_HOP_GATEWAY];
	struct sample all;

	if (lane->n_untimed || !lane->whole_hops)
		find_whole_hops(lane, io, ns);
	all = sample(lane->n_untimed ? record_untimed(lane, ns, 1) : ns);
	gantry_histogram_record_at(&kind->latency, all.index, all.ns, 1);
	record_hop(stats, io, GANTRY_HOP_GATEWAY, ns, all);
	record_hop(stats, io, GANTRY_HOP_TARGET, ns, all);
	record_hop(stats, io, GANTRY_HOP_BACKEND, ns, all);
	record_hop(stats, io, GANTRY_HOP_DATA, ns, all);
	_Static_assert(GANTRY_HOP_COUNT == 4, "every hop is recorded");
	if (!remote)
		remote = io->hop_ns[GANTRY_HOP_TARGET];
	if (remote == ns)
		gantry_histogram_record_at(&stats->link, 0, 0, 1);
	else if (remote && remote < all.ns)
		gantry_histogram_record(&stats->link, all.ns - remote);
}

static inline void record(struct lane *lane, const struct gantry_io *io)
{
	enum kind which = kind_of[io->opcode];
	struct kind_stats *kind = &lane->stats->kind[which];
	uint64_t ns = lane->clock > io->start_ns ? lane->clock - io->start_ns : 0;

	gantry_count(&kind->bytes, io->length);
	if (ns || io->hop_ns[GANTRY_HOP_TARGET]) {
		record_timed(lane, io, kind, ns);
		return;
	}
	lane->untimed[which]++;
	lane->n_untimed++;
}

static __attribute__((noinline)) void note_failure(struct lane *lane, const struct gantry_io *io)
{
	unsigned status = io->status < GANTRY_S_COUNT ? io->status : GANTRY_S_UNKNOWN;

	gantry_count(&lane->stats->status[status], 1);
	if (status == GANTRY_S_SESSION_LOST || status == GANTRY_S_STALE) {
		lane->state = LANE_DRAINING;
		lane_fail(lane->in);
	} else if (!lane->in->conf->continue_on_error) {
		if (!atomic_exchange(&lane->in->failed, true))
			gantry_log_error(
				lane->in->host,
				"an IO of %u bytes at %llu failed with status %s: stopping; with "
				"continue_on_error = true it is counted",
				io->length, (unsigned long long)io->offset, status_name(status));
		lane_fail(lane->in);
	}
}

/* Complete an IO that failed, or whose source needs a `done` call. */
static __attribute__((noinline)) void complete_slow(struct gantry_engine_queue *queue,
						    struct gantry_io *io)
{
	struct lane *lane = queue->user;
	struct initiator *in = lane->in;
	int measured;

	if (gantry_engine_completed(queue, io))
		return;
	lane->clock = lane->pub->now_ns;
	gantry_count(&lane->stats->n_completed, 1);
	measured = in->source->done(lane, io);
	if (gantry_unlikely(io->status != GANTRY_S_OK))
		note_failure(lane, io);
	else if (measured && io->start_ns >= in->measure_ns)
		record(lane, io);
	gantry_engine_put(queue, io);
}

void lane_complete(void *self, struct gantry_io *io)
{
	struct gantry_engine_queue *queue = self;
	struct lane *lane = queue->user;

	if (gantry_unlikely(!lane->counted || io->status != GANTRY_S_OK)) {
		complete_slow(queue, io);
		return;
	}
	if (gantry_engine_completed(queue, io))
		return;
	lane->clock = lane->pub->now_ns;
	gantry_count(&lane->stats->n_completed, 1);
	gantry_count(&lane->stats->done, 1);
	gantry_engine_put(queue, io);
	/* `io` is free, but no other IO has used it yet */
	if (io->start_ns >= lane->in->measure_ns)
		record(lane, io);
}

/* Return the slot of a descriptor that the chain did not accept. */
static void drop(struct lane *lane, struct gantry_io *io)
{
	io->status = GANTRY_S_CANCELED;
	lane->in->source->done(lane, io);
	gantry_engine_put(lane->queue, io);
}

/*
 * The chain rejected a descriptor permanently: the session is ending, or the chain does not support
 * the operation.
 */
static __attribute__((noinline)) void on_rejected(struct lane *lane, struct gantry_io *io, int rc)
{
	gantry_count(&lane->stats->n_refused, 1);
	drop(lane, io);
	lane->state = LANE_DRAINING;
	if (rc != -ENOTCONN && rc != -ESTALE)
		gantry_log_error(lane->in->host, "lane %u: IO of %u bytes at %llu refused: %s",
				 lane->index, io->length, (unsigned long long)io->offset,
				 strerror(-rc));
	lane_fail(lane->in);
}

/* Returns the next descriptor to submit; NULL: there is none now. */
static struct gantry_io *take(struct lane *lane)
{
	struct gantry_io *io = lane->queue->n_waiting == 0 ? gantry_engine_get(lane->queue) : NULL;
	int rc;

	if (!io)
		return NULL;
	rc = lane->in->source->next(lane, io);
	if (!rc)
		return io;
	io->status = GANTRY_S_CANCELED;
	gantry_engine_put(lane->queue, io);
	if (rc != -EAGAIN)
		lane->state = LANE_DRAINING;
	return NULL;
}

static int submit_all(struct lane *lane)
{
	const struct gantry_engine_queue *queue = lane->queue;
	struct gantry_io *io;
	int n = 0, rc;

	while (lane->state == LANE_RUNNING && (io = take(lane))) {
		rc = gantry_engine_submit(lane->queue, io);
		if (rc) {
			on_rejected(lane, io, rc);
			break;
		}
		n++;
		if (n >= TURN)
			break;
	}
	gantry_count(&lane->stats->n_submitted, (uint64_t)n);
	if (lane->state == LANE_RUNNING && !queue->n_free && !queue->n_inflight) {
		gantry_log_error(lane->in->host, "lane %u: all %u buffers are in quarantine",
				 lane->index, lane->in->depth);
		lane_fail(lane->in);
	}
	return n;
}

/* Copy the counters that only the queue maintains. */
static void update_queue_stats(struct lane *lane)
{
	const struct gantry_engine_queue *queue = lane->queue;
	struct lane_stats *stats = lane->stats;

	if (gantry_unlikely(queue->n_quarantines != stats->n_quarantined))
		gantry_count(&stats->n_quarantined, queue->n_quarantines - stats->n_quarantined);
	if (gantry_unlikely(queue->n_doubled != stats->n_doubled)) {
		gantry_count(&stats->n_doubled, queue->n_doubled - stats->n_doubled);
		lane_fail(lane->in);
	}
}

/* Cancel the descriptors that wait in the queue and were not submitted to the chain. */
static void cancel_waiting(struct lane *lane)
{
	struct gantry_io *io;

	while ((io = lane->queue->ops->take_back(lane->queue))) {
		gantry_count(&lane->stats->n_submitted, (uint64_t)-1);
		drop(lane, io);
	}
}

static void end(struct lane *lane)
{
	const struct gantry_role_host *rh = lane->in->rh;

	lane->state = LANE_DONE;
	if (!gantry_histogram_load(&lane->stats->end_ns))
		gantry_count(&lane->stats->end_ns, lane->clock);
	rh->post(rh, session_lane_done, lane);
}

static int lane_poll(void *self)
{
	struct lane *lane = self;
	struct initiator *in = lane->in;
	int n = 0;

	if (lane->state == LANE_DONE)
		return 0;
	lane->clock = lane->pub->now_ns;
	if (lane->state == LANE_RUNNING && !atomic_load_explicit(&in->stop, memory_order_relaxed)) {
		n = gantry_engine_poll(lane->queue);
		n += submit_all(lane);
	}
	update_queue_stats(lane);
	if (lane->n_untimed)
		record_untimed(lane, in->host->now_ns(in->host) - lane->clock, 0);
	if (atomic_load_explicit(&in->stop, memory_order_relaxed) && lane->state == LANE_RUNNING)
		lane->state = LANE_DRAINING;
	if (lane->state != LANE_DRAINING)
		return n;
	cancel_waiting(lane);
	/* IOs that were in flight when the session was lost must be submitted again */
	n += gantry_engine_poll(lane->queue);
	if (!lane->queue->n_inflight) {
		end(lane);
		n++;
	}
	return n;
}

static int lane_arm(void *self)
{
	struct lane *lane = self;

	return lane->state == LANE_RUNNING && atomic_load(&lane->in->stop);
}

static void lane_disarm(void *self)
{
	struct lane *lane = self;
	eventfd_t value;

	if (atomic_load_explicit(&lane->in->stop, memory_order_relaxed))
		(void)!read(lane->event_fd, &value, sizeof(value));
}

static uint64_t lane_wake_ns(void *self)
{
	struct lane *lane = self;

	if (lane->state != LANE_RUNNING || lane->queue->n_waiting || !lane->queue->n_free)
		return 0;
	return lane->in->source->wake_ns(lane);
}

static int lane_fd(void *self)
{
	struct lane *lane = self;

	return lane->event_fd;
}

const struct gantry_poller lane_poller = {
	.poll = lane_poll,
	.arm = lane_arm,
	.disarm = lane_disarm,
	.wake_ns = lane_wake_ns,
	.fd = lane_fd,
};
