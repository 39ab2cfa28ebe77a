/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stats.c - a stage that counts IOs and measures their latency. For each operation it counts IOs,
 * bytes and errors, and measures the time that the path below this stage takes.
 *
 * In a configuration: stages = ( { type = "stats"; } );
 *
 * Each lane counts without locks; the report adds up the lanes.
 */
#define GANTRY_API_VERSION 1

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <gantry/latency.h>
#include <gantry/stage.h>

struct op_stats {
	uint64_t n_bytes; /* bytes of successful IOs */
	uint64_t n_errors;
	/* latency of all IOs; its number of samples is the number of IOs */
	struct gantry_histogram latency;
};

struct stats_lane {
	const struct gantry_host *host;
	uint64_t n_refused;
	uint64_t by_status[GANTRY_S_COUNT];
	struct op_stats ops[GANTRY_OP_COUNT];
} __attribute__((aligned(GANTRY_CACHE_LINE)));

struct stats {
	const struct gantry_host *host;
	uint32_t n_lanes;
	/* freed at close, because the final report comes after the lanes have stopped */
	struct stats_lane **lanes;
};

static int stats_open(const struct gantry_host *host, const void *conf, void **stage_p)
{
	struct stats *stats = calloc(1, sizeof *stats);

	(void)conf;
	if (!stats)
		return -ENOMEM;
	stats->host = host;
	*stage_p = stats;
	return 0;
}

static int stats_start(void *stage, struct gantry_lane *lane, void **self_p)
{
	struct stats *stats = stage;
	struct stats_lane *self;

	if (!stats->lanes) {
		stats->lanes = calloc(lane->n_lanes, sizeof *stats->lanes);
		if (!stats->lanes)
			return -ENOMEM;
		stats->n_lanes = lane->n_lanes;
	}
	self = stats->lanes[lane->index];
	if (!self) {
		self = gantry_zalloc_lines(sizeof *self);
		if (!self)
			return -ENOMEM;
		self->host = stats->host;
		__atomic_store_n(&stats->lanes[lane->index], self, __ATOMIC_RELEASE);
	}
	*self_p = self;
	return 0;
}

static int stats_submit(void *self, struct gantry_io *io)
{
	struct stats_lane *lane = self;
	int rc;

	*gantry_stage_ctx(io) = lane->host->now_ns(lane->host);
	rc = gantry_submit(io);
	if (gantry_unlikely(rc != 0))
		gantry_count(&lane->n_refused, 1);
	return rc;
}

static void stats_complete(void *self, struct gantry_io *io)
{
	struct stats_lane *lane = self;
	uint64_t ns = lane->host->now_ns(lane->host) - *gantry_stage_ctx(io);

	if (gantry_likely(io->opcode < GANTRY_OP_COUNT)) {
		struct op_stats *op = &lane->ops[io->opcode];

		gantry_histogram_record(&op->latency, ns);
		if (gantry_likely(io->status == GANTRY_S_OK))
			gantry_count(&op->n_bytes,
				     gantry_op_has_range(io->opcode) ? io->length : 0);
		else
			gantry_count(&op->n_errors, 1);
	}
	if (gantry_likely(io->status < GANTRY_S_COUNT))
		gantry_count(&lane->by_status[io->status], 1);
	gantry_complete(io);
}

static uint64_t get(const uint64_t *cell)
{
	return __atomic_load_n(cell, __ATOMIC_RELAXED);
}

/* sum: a buffer of the caller, because the struct is too large for the stack. */
static void report_op(const struct stats *stats, unsigned opcode, struct op_stats *sum,
		      struct gantry_writer *w)
{
	static const char *const names[GANTRY_OP_COUNT] = {
		[GANTRY_OP_NOP] = "nop",
		[GANTRY_OP_READ] = "read",
		[GANTRY_OP_WRITE] = "write",
		[GANTRY_OP_FLUSH] = "flush",
		[GANTRY_OP_WRITE_ZEROES] = "write_zeroes",
		[GANTRY_OP_DISCARD] = "discard",
		[GANTRY_OP_EXTENTS] = "extents",
	};

	memset(sum, 0, sizeof *sum);
	for (uint32_t i = 0; i < stats->n_lanes; i++) {
		const struct stats_lane *lane = __atomic_load_n(&stats->lanes[i], __ATOMIC_ACQUIRE);

		if (!lane)
			continue;
		sum->n_bytes += get(&lane->ops[opcode].n_bytes);
		sum->n_errors += get(&lane->ops[opcode].n_errors);
		gantry_histogram_merge(&sum->latency, &lane->ops[opcode].latency);
	}
	w->object(w, names[opcode]);
	w->u64(w, "done_ops", gantry_histogram_count(&sum->latency));
	w->u64(w, "error_ops", sum->n_errors);
	w->u64(w, "done_bytes", sum->n_bytes);
	gantry_write_latency(w, "latency", &sum->latency);
	w->end(w);
}

static uint64_t sum_status(const struct stats *stats, unsigned status)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < stats->n_lanes; i++) {
		const struct stats_lane *lane = __atomic_load_n(&stats->lanes[i], __ATOMIC_ACQUIRE);

		if (lane)
			sum += get(&lane->by_status[status]);
	}
	return sum;
}

static void report_errors(const struct stats *stats, struct gantry_writer *w)
{
	static const char *const keys[] = {
		"ok_ops",           "io_ops",       "nospc_ops",       "range_ops",
		"access_ops",       "invalid_ops",  "unsupported_ops", "timeout_ops",
		"session_lost_ops", "unknown_ops",  "corrupt_ops",     "read_only_ops",
		"nomem_ops",        "canceled_ops", "stale_ops",       "busy_ops"};

	_Static_assert(sizeof keys / sizeof *keys == GANTRY_S_COUNT, "a key for each status");
	w->object(w, "errors");
	for (unsigned s = GANTRY_S_OK + 1; s < GANTRY_S_COUNT; s++) {
		uint64_t n = sum_status(stats, s);

		if (n)
			w->u64(w, keys[s], n);
	}
	w->end(w);
}

static void stats_report(void *stage, struct gantry_writer *w)
{
	struct stats *stats = stage;
	struct op_stats *scratch = malloc(sizeof *scratch);
	uint64_t n_refused = 0;

	if (!scratch)
		return;
	for (unsigned op = 0; op < GANTRY_OP_COUNT; op++)
		report_op(stats, op, scratch, w);
	report_errors(stats, w);
	for (uint32_t i = 0; i < stats->n_lanes; i++) {
		const struct stats_lane *lane = __atomic_load_n(&stats->lanes[i], __ATOMIC_ACQUIRE);

		if (lane)
			n_refused += get(&lane->n_refused);
	}
	w->u64(w, "refused_ops", n_refused);
	free(scratch);
}

static void stats_close(void *stage)
{
	struct stats *stats = stage;

	for (uint32_t i = 0; i < stats->n_lanes; i++)
		free(stats->lanes[i]);
	free(stats->lanes);
	free(stats);
}

static const struct gantry_stage_ops ops = {
	.open = stats_open,
	.start = stats_start,
	.submit = stats_submit,
	.complete = stats_complete,
	.report = stats_report,
	.close = stats_close,
	.n_ctx_words = 1,
};

GANTRY_PLUGIN(stats) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_STAGE,
	.name = "stats",
	.version = "1",
	.summary = "counts IOs and measures their latency, for each operation",
	.ops_size = sizeof ops,
	.ops = &ops,
};
