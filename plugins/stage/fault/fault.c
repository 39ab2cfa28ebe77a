/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fault.c - a stage that injects faults, to test that the other parts of the path handle them. The
 * same seed gives the same faults.
 *
 * In a configuration:
 *
 *     stages = ( { type = "fault"; seed = 7; delay = "2ms"; delay_rate = "5%"; } );
 *
 * Each IO completes exactly once, whatever the fault. The only exception is `duplicate`. It
 * completes a descriptor again only while the descriptor is with its owner, so that the guard of
 * the chain detects the second completion.
 */
#define GANTRY_API_VERSION 1

#include <errno.h>
#include <stdlib.h>

#include "fault.h"

#define POLL_BOUND 64
#define SHORT_UNIT 4096u
/* The default of io_timeout, which a requester applies below the stages of the role. */
#define NO_DEADLINE_US 30000000u

static int fault_open(const struct gantry_host *host, const void *conf, void **stage_p)
{
	struct fault *fault = calloc(1, sizeof *fault);

	if (!fault)
		return -ENOMEM;
	fault->host = host;
	fault->conf = conf;
	fault_rates(fault);
	*stage_p = fault;
	return 0;
}

static struct fault_lane *lane_create(struct fault *fault)
{
	struct fault_lane *self = gantry_zalloc_lines(sizeof *self);
	size_t n = (size_t)fault->conf->limit;

	if (!self)
		return NULL;
	self->fault = fault;
	self->records = calloc(n, sizeof *self->records);
	if (!self->records) {
		free(self);
		return NULL;
	}
	for (size_t i = n; i-- > 0;) {
		self->records[i].next = self->free;
		self->free = &self->records[i];
	}
	return self;
}

static int fault_start(void *stage, struct gantry_lane *lane, void **self_p)
{
	struct fault *fault = stage;
	uint64_t seed = (uint64_t)fault->conf->seed;
	struct fault_lane *self;

	if (!fault->lanes) {
		fault->lanes = calloc(lane->n_lanes, sizeof *fault->lanes);
		if (!fault->lanes)
			return -ENOMEM;
		fault->n_lanes = lane->n_lanes;
	}
	self = fault->lanes[lane->index];
	if (!self) {
		self = lane_create(fault);
		if (!self)
			return -ENOMEM;
		for (uint32_t i = 0; i <= lane->index; i++)
			gantry_random_split(&seed);
		gantry_random_seed(&self->random, seed);
		__atomic_store_n(&fault->lanes[lane->index], self, __ATOMIC_RELEASE);
	}
	self->lane = lane;
	*self_p = self;
	return 0;
}

static int matches(const struct fault_conf *conf, const struct gantry_io *io)
{
	switch (conf->only) {
	case FAULT_READS:
		return io->opcode == GANTRY_OP_READ;
	case FAULT_WRITES:
		return gantry_op_writes(io->opcode);
	case FAULT_FLUSHES:
		return io->opcode == GANTRY_OP_FLUSH;
	default:
		return 1;
	}
}

/*
 * Choose the faults of IO number n of the lane. Draws a random number for every kind that has a
 * rate, so that the rates are independent.
 */
static uint32_t choose(struct fault_lane *lane, const struct gantry_io *io, uint64_t n)
{
	const struct fault *fault = lane->fault;
	uint32_t kinds = 0;

	for (unsigned kind = 0; kind < FAULT_COUNT; kind++) {
		uint64_t nth = (uint64_t)fault->conf->nth[kind];

		if ((fault->threshold[kind] &&
		     gantry_random_next(&lane->random) >> 32 < fault->threshold[kind]) ||
		    (nth && n % nth == 0))
			kinds |= 1u << kind;
	}
	/* with a list, `length` must match the list, and io->data is no buffer */
	if (!gantry_op_has_data(io->opcode) || io->length == 0 || (io->flags & GANTRY_IO_LIST))
		kinds &= ~(1u << FAULT_SHORT | 1u << FAULT_CORRUPT);
	if (!io->data)
		kinds &= ~(1u << FAULT_CORRUPT);
	return kinds;
}

static void record_free(struct fault_lane *lane, struct fault_record *record)
{
	record->io = NULL;
	record->next = lane->free;
	lane->free = record;
}

static void flip(const struct fault_record *record)
{
	((uint8_t *)record->io->data)[record->bit / 8] ^= (uint8_t)(1u << record->bit % 8);
}

/* Undo the changes that pass() has made to the descriptor. */
static void restore(struct fault_record *record)
{
	record->io->length = record->length;
	if (record->flipped)
		flip(record);
	record->flipped = 0;
}

/*
 * Submit the descriptor with the changes of its faults. Returns as gantry_submit(). If the chain
 * rejects the descriptor, all changes are undone.
 */
static int pass(struct fault_record *record)
{
	struct gantry_io *io = record->io;
	uint32_t half = io->length / 2;
	int rc;

	if ((record->kinds & 1u << FAULT_CORRUPT) && io->opcode == GANTRY_OP_WRITE) {
		flip(record);
		record->flipped = 1;
	}
	if ((record->kinds & 1u << FAULT_SHORT) && half >= SHORT_UNIT)
		io->length = half - half % SHORT_UNIT;
	rc = gantry_submit(io);
	if (rc)
		restore(record);
	return rc;
}

static int drop(struct fault_lane *lane, struct fault_record *record)
{
	const struct gantry_io *io = record->io;

	record->dropped = 1;
	fault_hold_add(&lane->hold, record,
		       io->start_ns +
			       (uint64_t)(io->deadline_us ? io->deadline_us : NO_DEADLINE_US) *
				       1000);
	gantry_count(&lane->n_done[FAULT_DROP], 1);
	return 0;
}

static int submit_with(struct fault_lane *lane, struct gantry_io *io, uint32_t kinds)
{
	struct fault_record *record = lane->free;
	int rc;

	lane->free = record->next;
	*record = (struct fault_record){.io = io, .kinds = kinds, .length = io->length};
	if (kinds & 1u << FAULT_CORRUPT)
		record->bit = (uint32_t)gantry_random_below(&lane->random,
							    (uint64_t)io->length * 8 <= UINT32_MAX
								    ? (uint64_t)io->length * 8
								    : UINT32_MAX);
	*gantry_stage_ctx(io) = (uint64_t)(uintptr_t)record;
	if (kinds & 1u << FAULT_DROP)
		return drop(lane, record);
	if (kinds & 1u << FAULT_DELAY) {
		/* lane->now_ns can be older than the IO: the delay would be too short */
		fault_hold_add(&lane->hold, record,
			       lane->fault->host->now_ns(lane->fault->host) +
				       lane->fault->conf->delay_ns);
		gantry_count(&lane->n_done[FAULT_DELAY], 1);
		return 0;
	}
	rc = pass(record);
	if (rc)
		record_free(lane, record);
	return rc;
}

static int is_lost(struct fault_lane *lane, uint64_t n)
{
	struct fault *fault = lane->fault;
	int64_t after = fault->conf->disconnect_after;

	if (!after)
		return 0;
	if (n > (uint64_t)after && !__atomic_exchange_n(&fault->disconnected, 1, __ATOMIC_RELAXED))
		gantry_log_warn(fault->host, "disconnected after %lld IOs of lane %u",
				(long long)after, lane->lane->index);
	return __atomic_load_n(&fault->disconnected, __ATOMIC_RELAXED);
}

static int fault_submit(void *self, struct gantry_io *io)
{
	struct fault_lane *lane = self;
	const struct fault_conf *conf = lane->fault->conf;
	struct gantry_random before;
	uint32_t kinds;
	uint64_t n;
	int rc;

	*gantry_stage_ctx(io) = 0;
	n = matches(conf, io) ? lane->n_seen + 1 : lane->n_seen;
	if (is_lost(lane, n)) {
		gantry_count(&lane->n_lost, 1);
		gantry_fail(io, GANTRY_S_SESSION_LOST);
		return 0;
	}
	if (n == lane->n_seen)
		return gantry_submit(io);
	before = lane->random;
	gantry_count(&lane->n_seen, 1);
	kinds = choose(lane, io, n);
	if ((kinds & (1u << FAULT_DROP | 1u << FAULT_ERROR)) == 1u << FAULT_ERROR) {
		gantry_count(&lane->n_done[FAULT_ERROR], 1);
		gantry_fail(io, (enum gantry_status)(conf->error + 1));
		return 0;
	}
	if (kinds && !lane->free) {
		gantry_count(&lane->n_spared, 1);
		kinds = 0;
	}
	rc = kinds ? submit_with(lane, io, kinds) : gantry_submit(io);
	if (rc && lane->n_seen == n) {
		/* The caller submits the IO again, and the IO must then get the same faults. */
		lane->random = before;
		__atomic_store_n(&lane->n_seen, n - 1, __ATOMIC_RELAXED);
	}
	return rc;
}

/*
 * Complete a descriptor twice. The second completion requires an idle descriptor, whose next hop is
 * the guard: the guard detects it.
 */
static void complete_twice(struct fault_lane *lane, struct gantry_io *io)
{
	gantry_complete(io);
	if (io->busy) {
		gantry_count(&lane->n_spared, 1);
		return;
	}
	gantry_count(&lane->n_done[FAULT_DUPLICATE], 1);
	gantry_complete(io);
}

static void fault_complete(void *self, struct gantry_io *io)
{
	struct fault_lane *lane = self;
	struct fault_record *record = (struct fault_record *)(uintptr_t)*gantry_stage_ctx(io);
	uint32_t kinds;

	if (!record) {
		gantry_complete(io);
		return;
	}
	kinds = record->kinds;
	if ((kinds & 1u << FAULT_CORRUPT) && (record->flipped || io->status == GANTRY_S_OK)) {
		if (io->opcode == GANTRY_OP_READ)
			flip(record);
		gantry_count(&lane->n_done[FAULT_CORRUPT], 1);
	}
	restore(record);
	record_free(lane, record);
	if (kinds & 1u << FAULT_SHORT) {
		if (io->status == GANTRY_S_OK)
			io->status = GANTRY_S_IO;
		gantry_count(&lane->n_done[FAULT_SHORT], 1);
	}
	if (kinds & 1u << FAULT_DUPLICATE)
		complete_twice(lane, io);
	else
		gantry_complete(io);
}

/*
 * Release a held record that is due. Returns 0; -EAGAIN: the chain is full, so the record stays
 * held.
 */
static int release(struct fault_lane *lane, struct fault_record *record)
{
	struct gantry_io *io = record->io;
	int rc;

	fault_hold_remove(&lane->hold, record);
	if (record->dropped) {
		record_free(lane, record);
		gantry_fail(io, GANTRY_S_TIMEOUT);
		return 0;
	}
	rc = pass(record);
	if (rc == -EAGAIN) {
		fault_hold_add(&lane->hold, record, record->due_ns);
	} else if (rc) {
		record_free(lane, record);
		gantry_fail(io, gantry_status_of_errno(rc));
	}
	return rc == -EAGAIN ? rc : 0;
}

static int fault_poll(void *self)
{
	struct fault_lane *lane = self;
	int n = 0;

	while (n < POLL_BOUND && lane->hold.first &&
	       lane->hold.first->due_ns <= lane->lane->now_ns) {
		if (release(lane, lane->hold.first))
			break;
		n++;
	}
	return n;
}

static uint64_t fault_wake_ns(void *self)
{
	struct fault_lane *lane = self;

	return lane->hold.first ? lane->hold.first->due_ns : 0;
}

static struct fault_record *first_of(const struct fault_lane *lane, const void *owner)
{
	struct fault_record *record = lane->hold.first;

	while (record && owner && record->io->owner != owner)
		record = record->next;
	return record;
}

/*
 * Cancels only the records that are held at the call. A completion can submit a new descriptor,
 * which can also be held.
 */
static void fault_drain(void *self, const void *owner)
{
	struct fault_lane *lane = self;
	struct fault_record *record;

	for (uint32_t n = lane->hold.n; n && (record = first_of(lane, owner)); n--) {
		struct gantry_io *io = record->io;

		fault_hold_remove(&lane->hold, record);
		record_free(lane, record);
		gantry_fail(io, GANTRY_S_CANCELED);
	}
}

static uint64_t sum(const struct fault *fault, size_t offset)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < fault->n_lanes; i++) {
		const struct fault_lane *lane = __atomic_load_n(&fault->lanes[i], __ATOMIC_ACQUIRE);

		if (lane)
			n += __atomic_load_n((const uint64_t *)((const char *)lane + offset),
					     __ATOMIC_RELAXED);
	}
	return n;
}

static void fault_report(void *stage, struct gantry_writer *w)
{
	static const char *const keys[FAULT_COUNT] = {"dropped_ops",   "failed_ops",
						      "delayed_ops",   "shortened_ops",
						      "corrupted_ops", "duplicated_ops"};
	const struct fault *fault = stage;

	w->u64(w, "seen_ops", sum(fault, offsetof(struct fault_lane, n_seen)));
	for (unsigned kind = 0; kind < FAULT_COUNT; kind++)
		w->u64(w, keys[kind],
		       sum(fault, offsetof(struct fault_lane, n_done) + kind * sizeof(uint64_t)));
	w->u64(w, "lost_ops", sum(fault, offsetof(struct fault_lane, n_lost)));
	w->u64(w, "spared_ops", sum(fault, offsetof(struct fault_lane, n_spared)));
}

static void fault_close(void *stage)
{
	struct fault *fault = stage;

	for (uint32_t i = 0; i < fault->n_lanes; i++)
		if (fault->lanes[i]) {
			free(fault->lanes[i]->records);
			free(fault->lanes[i]);
		}
	free(fault->lanes);
	free(fault);
}

static const struct gantry_stage_ops ops = {
	.open = fault_open,
	.start = fault_start,
	.submit = fault_submit,
	.complete = fault_complete,
	.poll = fault_poll,
	.wake_ns = fault_wake_ns,
	.drain = fault_drain,
	.report = fault_report,
	.close = fault_close,
	.n_ctx_words = 1,
};

GANTRY_PLUGIN(fault) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_STAGE,
	.name = "fault",
	.version = "1",
	.summary = "injects faults: delays, drops, errors, flipped bits, double completions",
	.options = fault_options,
	.conf_size = sizeof(struct fault_conf),
	.ops_size = sizeof ops,
	.ops = &ops,
	.check = fault_check,
};
