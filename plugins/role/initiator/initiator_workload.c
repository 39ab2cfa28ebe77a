/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * initiator_workload.c - generates IO: sequential or random, reads, writes or both, as fast as
 * possible or at a rate. With verify = "stamp" it stamps each write, judges each read, and at the
 * end reads all written blocks again.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "initiator.h"

#define TRIES 16u            /* number of picks before the lane waits for a completion */
#define BURST_NS 10000000ull /* a lane that is behind the rate catches up by at most this time */
#define NO_LIMIT UINT64_MAX
#define NO_BLOCK UINT64_MAX

struct work {
	uint64_t first, count; /* first block and number of blocks of this lane */
	uint64_t base;         /* offset of the first block in the volume, bytes */
	/* indices of the blocks of the next sequential read and write */
	uint64_t read_at, write_at;
	uint64_t sweep_at;
	uint64_t ops_left;
	/* interval_ns: time between two IOs; 0: no rate. next_ns: time of the next IO */
	uint64_t interval_ns, next_ns;
	uint64_t end_ns; /* NO_LIMIT: none */
	uint64_t n_frozen;
	/*
	 * since_flush: writes since the last flush. flush_every: writes between two flushes;
	 * NO_LIMIT: never flush
	 */
	uint64_t since_flush, flush_every;
	uint32_t read_percent; /* share of reads */
	int random;
	int fast_path; /* no rate, no flushes, no verification */
	int sweeping;  /* the lane is in the final pass, which reads the written blocks again */
	struct gantry_random numbers;
	struct block_state *blocks; /* `count` entries; NULL without verification */
};

static int pattern_reads(uint32_t pattern)
{
	return pattern != PATTERN_WRITE && pattern != PATTERN_RANDWRITE;
}

static int pattern_writes(uint32_t pattern)
{
	return pattern != PATTERN_READ && pattern != PATTERN_RANDREAD;
}

void workload_check(const struct initiator_conf *conf, const struct gantry_check *check)
{
	unsigned long long block = conf->block;
	bool stamps_units = conf->verify == VERIFY_STAMP && block > STAMP_UNIT;
	unsigned unit = stamps_units ? STAMP_UNIT : 512;

	if (conf->verify == VERIFY_STAMP && !pattern_writes(conf->pattern))
		gantry_option_fault(check, "workload.verify",
				    "\"stamp\" needs a pattern that writes");
	if (block % 512)
		gantry_option_fault(check, "workload.block",
				    "%llu is not a multiple of 512; write such as %llu or \"4KiB\"",
				    block, block > unit ? block - block % unit : unit);
	else if (block % unit)
		gantry_option_fault(
			check, "workload.block",
			"%llu is not a multiple of %u, which verify needs; write such as %llu",
			block, unit, block - block % unit);
}

static int workload_prepare(struct initiator *in)
{
	in->block = in->conf->block;
	return 0;
}

/*
 * Find an operation that the workload needs and the volume does not support. Returns NULL, or the
 * reason; *option_p: the option that needs the operation.
 */
static const char *missing(const struct initiator_conf *conf,
			   const struct gantry_volume_info *volume, const char **option_p)
{
	uint32_t ops = volume->ops ? volume->ops : UINT32_MAX;

	*option_p = "workload.pattern";
	if (pattern_writes(conf->pattern) && (volume->flags & GANTRY_VOLUME_READ_ONLY))
		return "it is read-only; write workload.pattern = \"randread\" or \"read\"";
	if (pattern_writes(conf->pattern) && !gantry_op_in(GANTRY_OP_WRITE, ops))
		return "it does not support writes";
	if ((pattern_reads(conf->pattern) || conf->verify == VERIFY_STAMP) &&
	    !gantry_op_in(GANTRY_OP_READ, ops))
		return "it does not support reads";
	*option_p = "workload.flush_every";
	if (conf->flush_every && !gantry_op_in(GANTRY_OP_FLUSH, ops))
		return "it does not support flushes; remove workload.flush_every";
	return NULL;
}

static int fits_range(const struct initiator *in, uint64_t volume_bytes,
		      const struct gantry_check *check)
{
	const struct initiator_conf *conf = in->conf;
	unsigned long long size = volume_bytes, offset = conf->offset, block = conf->block,
			   part = conf->size;

	if (!size)
		return 0;
	if (offset >= size) {
		gantry_option_fault(check, "workload.offset",
				    "%llu is not inside the volume of %llu bytes", offset, size);
		return -ERANGE;
	}
	if (part > size - offset) {
		gantry_option_fault(
			check, "workload.size",
			"%llu from %llu on is not inside the volume of %llu bytes; write up to %llu",
			part, offset, size, size - offset);
		return -ERANGE;
	}
	part = part ? part : size - offset;
	if (part / block < in->n_lanes) {
		gantry_option_fault(
			check, conf->size ? "workload.size" : "workload.block",
			"the %llu bytes from %llu on, of the volume of %llu, are less than one block of %llu for each "
			"of %u lanes",
			part, offset, size, block, in->n_lanes);
		return -ERANGE;
	}
	return 0;
}

static int workload_fits(const struct initiator *in, const struct gantry_volume_info *volume,
			 const struct gantry_check *check)
{
	const struct initiator_conf *conf = in->conf;
	const char *option, *reason = missing(conf, volume, &option);
	unsigned long long block = conf->block, offset = conf->offset;
	uint32_t unit = volume->block_size ? volume->block_size : 1,
		 max = volume->max_io ? volume->max_io : UINT32_MAX;

	if (reason) {
		gantry_option_fault(check, option, "the volume does not support the workload: %s",
				    reason);
		return -EOPNOTSUPP;
	}
	if (block % unit || block > max) {
		gantry_option_fault(
			check, "workload.block",
			"%llu bytes; write multiples of the volume's block of %u bytes, up to %u",
			block, unit, max);
		return -EINVAL;
	}
	if (offset % unit) {
		gantry_option_fault(check, "workload.offset",
				    "%llu bytes; write multiples of the volume's block of %u bytes",
				    offset, unit);
		return -EINVAL;
	}
	return fits_range(in, volume->size, check);
}

static void set_target(struct initiator *in)
{
	const struct initiator_conf *conf = in->conf;

	in->unit = conf->ops ? "ops" : conf->time_ns ? "ns" : NULL;
	in->target = conf->ops ? (uint64_t)conf->ops : conf->time_ns;
}

static int workload_setup(struct initiator *in)
{
	const struct initiator_conf *conf = in->conf;

	in->n_blocks = (conf->size ? conf->size : in->volume.size - conf->offset) / conf->block;
	if (getrandom(&in->session, sizeof(in->session), 0) != (ssize_t)sizeof(in->session)) {
		gantry_log_error(in->host,
				 "cannot get random numbers to identify the writes of this run");
		return -EIO;
	}
	set_target(in);
	return 0;
}

/*
 * Returns the share of lane `index` of n lanes in a total. The shares of all lanes add up to the
 * total.
 */
static uint64_t share(uint64_t total, uint32_t index, uint32_t n)
{
	return total / n + (index < total % n);
}

static int workload_lane_setup(struct lane *lane)
{
	struct initiator *in = lane->in;
	const struct initiator_conf *conf = in->conf;
	struct work *work = gantry_zalloc_lines(sizeof(*work));
	uint64_t seed = (uint64_t)conf->seed + lane->index * 0x9e3779b97f4a7c15u;

	if (!work)
		return -ENOMEM;
	lane->work = work;
	for (uint32_t i = 0; i < lane->index; i++)
		work->first += share(in->n_blocks, i, in->n_lanes);
	work->count = share(in->n_blocks, lane->index, in->n_lanes);
	work->base = conf->offset + work->first * in->block;
	work->random = conf->pattern >= PATTERN_RANDREAD;
	work->read_percent = (uint32_t)conf->read_percent;
	if (!pattern_writes(conf->pattern))
		work->read_percent = 100;
	else if (!pattern_reads(conf->pattern))
		work->read_percent = 0;
	work->ops_left = conf->ops ? share((uint64_t)conf->ops, lane->index, in->n_lanes)
				   : NO_LIMIT;
	gantry_random_seed(&work->numbers, gantry_random_split(&seed));
	work->next_ns = in->start_ns;
	if (conf->rate)
		work->interval_ns = NS_PER_S * in->n_lanes / (uint64_t)conf->rate;
	work->end_ns = conf->time_ns ? in->measure_ns + conf->time_ns : NO_LIMIT;
	work->flush_every = conf->flush_every ? (uint64_t)conf->flush_every : NO_LIMIT;
	work->fast_path = !conf->rate && !conf->flush_every && conf->verify != VERIFY_STAMP;
	lane->counted = work->fast_path;
	if (conf->verify == VERIFY_STAMP) {
		work->blocks = calloc(work->count, sizeof(*work->blocks));
		if (!work->blocks) {
			gantry_log_error(
				in->host,
				"no memory to verify %llu blocks: set a smaller workload.size",
				(unsigned long long)in->n_blocks);
			return -ENOMEM;
		}
	}
	return 0;
}

static void workload_lane_teardown(struct lane *lane)
{
	struct work *work = lane->work;

	if (work)
		free(work->blocks);
	free(work);
	lane->work = NULL;
}

static uint64_t block_offset(const struct lane *lane, uint64_t index)
{
	const struct work *work = lane->work;

	return work->base + index * lane->in->block;
}

static struct block_state *block_of(const struct lane *lane, const struct gantry_io *io)
{
	const struct work *work = lane->work;

	return &work->blocks[(io->offset - work->base) / lane->in->block];
}

static void advance(const struct work *work, uint64_t *cursor)
{
	*cursor = *cursor + 1 < work->count ? *cursor + 1 : 0;
}

static int can_write(const struct block_state *block)
{
	return !block->busy && !block->frozen;
}

static int can_read(const struct block_state *block)
{
	return block->issued && !block->busy;
}

/*
 * Pick a block that has no IO in flight and satisfies `fits`. Returns NO_BLOCK if none was found.
 */
static uint64_t pick_idle(struct work *work, int (*fits)(const struct block_state *block),
			  uint64_t *cursor)
{
	for (unsigned int i = 0; i < TRIES; i++) {
		uint64_t index = work->random ? gantry_random_below(&work->numbers, work->count)
					      : *cursor;

		if (fits(&work->blocks[index])) {
			if (!work->random)
				advance(work, cursor);
			return index;
		}
		/*
		 * The cursor waits for a busy block, but skips a frozen one, which is never written
		 * again.
		 */
		if (!work->random && work->blocks[index].busy)
			break;
		if (!work->random && work->blocks[index].frozen)
			advance(work, cursor);
	}
	return NO_BLOCK;
}

/* Pick any block: without verification, IOs on one block are permitted to overlap. */
static inline uint64_t pick(struct work *work, uint64_t *cursor)
{
	uint64_t index = *cursor;

	if (work->random)
		return gantry_random_below(&work->numbers, work->count);
	advance(work, cursor);
	return index;
}

static __attribute__((noinline)) int next_flush(struct lane *lane, struct gantry_io *io)
{
	struct work *work = lane->work;

	work->since_flush = 0;
	lane_fill(lane, io, GANTRY_OP_FLUSH, 0, 0);
	return 0;
}

static inline void fill_read(struct lane *lane, struct gantry_io *io, uint64_t index)
{
	lane_fill(lane, io, GANTRY_OP_READ, block_offset(lane, index), (uint32_t)lane->in->block);
}

static inline void fill_write(struct lane *lane, struct gantry_io *io, uint64_t index)
{
	struct work *work = lane->work;

	lane_fill(lane, io, GANTRY_OP_WRITE, block_offset(lane, index), (uint32_t)lane->in->block);
	if (lane->in->conf->fua)
		io->flags |= GANTRY_IO_FUA;
	work->since_flush++;
}

static void read_back(struct lane *lane, struct gantry_io *io, uint64_t index)
{
	struct work *work = lane->work;

	fill_read(lane, io, index);
	work->blocks[index].busy = 1;
	verify_poison(lane, io->data);
}

static void write_stamped(struct lane *lane, struct gantry_io *io, uint64_t index)
{
	struct work *work = lane->work;

	fill_write(lane, io, index);
	work->blocks[index].busy = 1;
	verify_write(lane, &work->blocks[index], io->data, io->offset);
}

/* The final pass of a verified run: read each block that was written. */
static __attribute__((noinline)) int next_sweep(struct lane *lane, struct gantry_io *io)
{
	struct work *work = lane->work;

	while (work->sweep_at < work->count && !work->blocks[work->sweep_at].issued)
		work->sweep_at++;
	if (work->sweep_at == work->count)
		return -ENODATA;
	if (work->blocks[work->sweep_at].busy)
		return -EAGAIN;
	read_back(lane, io, work->sweep_at++);
	return 0;
}

static __attribute__((noinline)) int begin_sweep(struct lane *lane, struct gantry_io *io)
{
	struct work *work = lane->work;

	if (!work->blocks)
		return -ENODATA;
	if (lane->queue->n_inflight)
		return -EAGAIN;
	work->sweeping = 1;
	gantry_count(&lane->stats->end_ns, lane->clock);
	return next_sweep(lane, io);
}

static inline int wants_read(struct work *work)
{
	uint32_t percent = work->read_percent;

	return percent == 100 || (percent && gantry_random_below(&work->numbers, 100) < percent);
}

/*
 * Advance the time of the next IO. A lane that is behind the rate catches up by at most BURST_NS.
 */
static void advance_rate(struct work *work, uint64_t now_ns)
{
	if (work->next_ns + BURST_NS < now_ns)
		work->next_ns = now_ns - BURST_NS;
	work->next_ns += work->interval_ns;
}

static inline void issued(struct lane *lane)
{
	struct work *work = lane->work;

	work->ops_left--;
	if (work->interval_ns)
		advance_rate(work, lane->clock);
}

static inline int next_block(struct lane *lane, struct gantry_io *io)
{
	struct work *work = lane->work;

	if (wants_read(work))
		fill_read(lane, io, pick(work, &work->read_at));
	else
		fill_write(lane, io, pick(work, &work->write_at));
	issued(lane);
	return 0;
}

/*
 * As next_block(), with verification. If the pattern requires a read but no block can be read,
 * write a block.
 */
static __attribute__((noinline)) int next_verified(struct lane *lane, struct gantry_io *io)
{
	struct work *work = lane->work;
	uint64_t index;

	if (work->n_frozen == work->count)
		return begin_sweep(lane, io);
	index = wants_read(work) ? pick_idle(work, can_read, &work->read_at) : NO_BLOCK;
	if (index != NO_BLOCK) {
		read_back(lane, io, index);
	} else {
		index = pick_idle(work, can_write, &work->write_at);
		if (index == NO_BLOCK)
			return -EAGAIN;
		write_stamped(lane, io, index);
	}
	issued(lane);
	return 0;
}

static int workload_next(struct lane *lane, struct gantry_io *io)
{
	struct work *work = lane->work;

	if (work->fast_path && work->ops_left && lane->clock < work->end_ns)
		return next_block(lane, io);
	if (work->sweeping)
		return next_sweep(lane, io);
	if (!work->ops_left || lane->clock >= work->end_ns)
		return begin_sweep(lane, io);
	if (work->interval_ns && lane->clock < work->next_ns)
		return -EAGAIN;
	if (work->since_flush >= work->flush_every)
		return next_flush(lane, io);
	return work->blocks ? next_verified(lane, io) : next_block(lane, io);
}

static void check(struct lane *lane, struct gantry_io *io)
{
	struct work *work = lane->work;
	struct block_state *state = block_of(lane, io);

	if (io->opcode == GANTRY_OP_WRITE) {
		verify_write_done(state, io->status);
		work->n_frozen += state->frozen;
	} else if (io->status == GANTRY_S_OK) {
		verify_read_done(lane, state, io->data, io->offset);
	}
	state->busy = 0;
}

static __attribute__((noinline)) int verified_done(struct lane *lane, struct gantry_io *io)
{
	struct work *work = lane->work;

	if (gantry_op_has_data(io->opcode))
		check(lane, io);
	if (!work->sweeping && io->status == GANTRY_S_OK && gantry_op_has_data(io->opcode))
		gantry_count(&lane->stats->done, 1);
	return !work->sweeping;
}

static int workload_done(struct lane *lane, struct gantry_io *io)
{
	struct work *work = lane->work;

	if (work->blocks)
		return verified_done(lane, io);
	if (io->status == GANTRY_S_OK && gantry_op_has_data(io->opcode))
		gantry_count(&lane->stats->done, 1);
	return 1;
}

/* Returns the time limit or the time of the next IO of the rate; 0 in the final pass. */
static uint64_t workload_wake_ns(struct lane *lane)
{
	const struct work *work = lane->work;
	uint64_t wake = work->end_ns;

	if (work->sweeping || !work->ops_left || lane->clock >= work->end_ns)
		return 0;
	if (work->interval_ns && work->next_ns < wake && work->next_ns > lane->clock)
		wake = work->next_ns;
	return wake == NO_LIMIT ? 0 : wake;
}

const struct source workload_source = {
	.mode = "workload",
	.depth_option = "workload.depth",
	.block_option = "workload.block",
	.prepare = workload_prepare,
	.fits = workload_fits,
	.setup = workload_setup,
	.lane_setup = workload_lane_setup,
	.lane_teardown = workload_lane_teardown,
	.next = workload_next,
	.done = workload_done,
	.wake_ns = workload_wake_ns,
};
