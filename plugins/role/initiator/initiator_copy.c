/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * initiator_copy.c - copies a file or block device into the volume, or the volume into a file or
 * block device. A lane reads and writes the file on its own thread, with the buffer of the IO that
 * moves the same bytes. Where both sides support it, holes are not transferred.
 *
 * Phases of a segment:
 *
 *     COPY --(all IO has completed: issue flush or fdatasync)--> SYNC --(completed)--> VERIFY
 *     VERIFY --(all IO has completed)--> COPIED --(recorded)--> COPY of the next segment
 *
 * Without copy.state and copy.verify, a lane takes its next segment without waiting for its IOs,
 * and only its last segment has the later phases. Without copy.verify, VERIFY is skipped. A lane
 * that gets no segment begins in DRAIN: it only flushes. A failed IO stops the lanes, so a segment
 * whose IO failed is never COPIED.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "initiator_copy.h"

#define ZEROES_MAX (16u << 20) /* bytes: limit of one write of zeroes, which has a deadline */
#define QUERY_MAX (1u << 30)   /* bytes: limit of the range of one query for extents */
#define STEP_CONTINUE 1        /* returned by a step: no IO to issue, make another step */

enum copy_phase { COPY, DRAIN, SYNC, VERIFY, COPIED };

struct copy_lane {
	struct copy_job *job;
	enum copy_phase phase;
	bool failed;            /* an IO of this lane has failed */
	bool extents_in_flight; /* a query for extents */
	uint32_t segment;
	uint64_t first, at, end; /* of the segment, in bytes: start, next byte, end */
	/*
	 * Extents of the volume: `piece` is the current one, `next_extent` the index of the next.
	 * In private memory, because the peer can change the buffer of the IO.
	 */
	struct gantry_extents extents;
	uint32_t next_extent;
	struct copy_piece piece;
	uint8_t *compare; /* with copy.verify: content of the file, job->block bytes */
	int sync_fd;      /* the destination, see copy_file_reopen(); -1: none */
};

/* Stop all lanes. Returns whether this is the first failure of the run, the one to log. */
static bool fail_first(struct lane *lane)
{
	struct copy_lane *copy = lane->work;
	bool is_first = !atomic_exchange(&lane->in->failed, true);

	copy->failed = true;
	lane_fail(lane->in);
	return is_first;
}

static int file_failed(struct lane *lane, const char *what, int rc)
{
	struct copy_lane *copy = lane->work;

	if (fail_first(lane))
		gantry_log_error(lane->in->host, "%s %s: %s", what, copy->job->path, strerror(-rc));
	return rc;
}

/* -- before the lanes run -- */

static int prepare(struct initiator *in, bool into_volume)
{
	struct copy_job *job = calloc(1, sizeof(*job));

	if (!job)
		return -ENOMEM;
	in->copy = job;
	job->in = in;
	job->into_volume = into_volume;
	job->path = into_volume ? in->conf->copy_from : in->conf->copy_to;
	job->fd = -1;
	job->state_fd = -1;
	/* a buffer also holds extents */
	in->block = in->conf->copy_block > GANTRY_EXTENTS_BYTES ? in->conf->copy_block
								: GANTRY_EXTENTS_BYTES;
	return 0;
}

static int copy_in_prepare(struct initiator *in)
{
	const struct initiator_conf *conf = in->conf;
	uint64_t size;
	int rc = prepare(in, true) ?: copy_file_open_source(in->copy, &size);

	if (rc)
		return rc;
	if (conf->copy_size > size) {
		gantry_log_error(in->host, "%s has %llu bytes, less than the %llu to be copied",
				 conf->copy_from, (unsigned long long)size,
				 (unsigned long long)conf->copy_size);
		return -ERANGE;
	}
	in->copy->bytes = conf->copy_size ? conf->copy_size : size;
	return 0;
}

static int copy_out_prepare(struct initiator *in)
{
	return prepare(in, false);
}

static int copy_in_fits(const struct initiator *in, const struct gantry_volume_info *volume,
			const struct gantry_check *check)
{
	if ((volume->ops && !gantry_op_in(GANTRY_OP_WRITE, volume->ops)) ||
	    volume->flags & GANTRY_VOLUME_READ_ONLY) {
		gantry_option_fault(check, "copy.from", "the volume is read-only");
		return -EROFS;
	}
	if (volume->size && in->copy->bytes > volume->size) {
		gantry_option_fault(check, "copy.from", "%s has %llu bytes, the volume only %llu",
				    in->conf->copy_from, (unsigned long long)in->copy->bytes,
				    (unsigned long long)volume->size);
		return -ENOSPC;
	}
	if (in->conf->copy_verify && volume->ops && !gantry_op_in(GANTRY_OP_READ, volume->ops)) {
		gantry_option_fault(check, "copy.verify", "the volume cannot be read");
		return -EOPNOTSUPP;
	}
	return 0;
}

static int copy_out_fits(const struct initiator *in, const struct gantry_volume_info *volume,
			 const struct gantry_check *check)
{
	if (volume->ops && !gantry_op_in(GANTRY_OP_READ, volume->ops)) {
		gantry_option_fault(check, "copy.to", "the volume cannot be read");
		return -EOPNOTSUPP;
	}
	if (volume->size && in->conf->copy_size > volume->size) {
		gantry_option_fault(check, "copy.size",
				    "the volume has %llu bytes, less than the %llu to be copied",
				    (unsigned long long)volume->size,
				    (unsigned long long)in->conf->copy_size);
		return -ERANGE;
	}
	return 0;
}

/* Set the length of one IO. The buffers of the lanes have at least GANTRY_EXTENTS_BYTES. */
static void set_block(struct initiator *in)
{
	const struct gantry_volume_info *volume = &in->volume;
	uint64_t block = in->conf->copy_block;

	if (block > volume->max_io)
		block = volume->max_io;
	block -= block % volume->block_size;
	if (!block)
		block = volume->block_size;
	in->copy->block = (uint32_t)block;
	in->block = block > GANTRY_EXTENTS_BYTES ? block : GANTRY_EXTENTS_BYTES;
}

static int begin(struct initiator *in)
{
	struct copy_job *job = in->copy;
	int rc = copy_state_begin(job);

	if (rc)
		return rc;
	in->target = copy_state_left(job);
	in->unit = "bytes";
	if (in->target < job->bytes)
		gantry_log_info(in->host, "%s: continuing (copied=%llu bytes of %llu)",
				in->conf->copy_state, (unsigned long long)(job->bytes - in->target),
				(unsigned long long)job->bytes);
	return 0;
}

static int copy_in_setup(struct initiator *in)
{
	set_block(in);
	return copy_state_open(in->copy) ?: begin(in);
}

static int copy_out_setup(struct initiator *in)
{
	struct copy_job *job = in->copy;

	job->bytes = in->conf->copy_size ? in->conf->copy_size : in->volume.size;
	set_block(in);
	return copy_file_open_destination(job)
		       ?: copy_state_open(job)
		       ?: copy_file_set_size(job, copy_state_continues(job))
		       ?: begin(in);
}

static void copy_teardown(struct initiator *in)
{
	struct copy_job *job = in->copy;

	if (!job)
		return;
	copy_state_close(job);
	if (job->fd >= 0)
		close(job->fd);
	free(job);
	in->copy = NULL;
}

/* -- segments -- */

static void begin_phase(struct copy_lane *copy, enum copy_phase phase)
{
	copy->phase = phase;
	copy->at = copy->first;
	copy->piece = (struct copy_piece){0};
	copy->extents.count = copy->next_extent = 0;
}

/* Take the next segment. Returns false: there is none. */
static bool take_segment(struct copy_lane *copy)
{
	const struct copy_job *job = copy->job;
	const uint64_t block = job->in->volume.block_size;
	const uint64_t last = (job->bytes + block - 1) / block * block;

	copy->segment = copy_state_take(copy->job);
	if (copy->segment == job->n_segments)
		return false;
	copy->first = copy->segment * job->segment;
	copy->end = copy->first + job->segment < last ? copy->first + job->segment : last;
	begin_phase(copy, COPY);
	return true;
}

static void copy_lane_teardown(struct lane *lane)
{
	struct copy_lane *copy = lane->work;

	if (!copy)
		return;
	if (copy->sync_fd >= 0)
		close(copy->sync_fd);
	free(copy->compare);
	free(copy);
	lane->work = NULL;
}

static int copy_lane_setup(struct lane *lane)
{
	struct copy_lane *copy = calloc(1, sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	lane->work = copy;
	copy->job = lane->in->copy;
	copy->sync_fd = copy->job->into_volume ? -1 : copy_file_reopen(copy->job);
	if (!copy->job->into_volume && copy->sync_fd < 0)
		return copy->sync_fd;
	copy->compare = lane->in->conf->copy_verify ? malloc(copy->job->block) : NULL;
	if (lane->in->conf->copy_verify && !copy->compare)
		return -ENOMEM;
	/* a lane without a segment only flushes */
	if (!take_segment(copy))
		begin_phase(copy, DRAIN);
	return 0;
}

static uint64_t no_wake(struct lane *lane)
{
	(void)lane;
	return 0;
}

/* -- steps of a lane: 0, with an IO to issue; STEP_CONTINUE; or -errno as for source.next -- */

static bool volume_can(const struct copy_lane *copy, enum gantry_opcode opcode)
{
	return gantry_op_in(opcode, copy->job->in->volume.ops);
}

static int ask_for_extents(struct lane *lane, struct gantry_io *io)
{
	struct copy_lane *copy = lane->work;
	uint64_t left = copy->end - copy->at;

	if (copy->extents_in_flight)
		return -EAGAIN;
	copy->extents_in_flight = true;
	lane_fill(lane, io, GANTRY_OP_EXTENTS, copy->at,
		  left < QUERY_MAX ? (uint32_t)left : QUERY_MAX);
	return 0;
}

/* Store the answer. If the query failed, or its answer is invalid, the range is data. */
static void store_extents(struct copy_lane *copy, const struct gantry_io *io)
{
	const uint32_t block = copy->job->in->volume.block_size;

	memcpy(&copy->extents, io->data, sizeof(copy->extents));
	copy->next_extent = 0;
	if (io->status == GANTRY_S_OK &&
	    gantry_extents_are_valid(&copy->extents, io->length, block))
		return;
	copy->extents = (struct gantry_extents){.count = 1, .extent = {{.length = io->length}}};
}

/* Get the extent at copy->at into copy->piece. Returns STEP_CONTINUE, or as a step. */
static int find_extent(struct lane *lane, struct gantry_io *io)
{
	struct copy_lane *copy = lane->work;
	const struct gantry_extent *extent;

	if (!volume_can(copy, GANTRY_OP_EXTENTS))
		copy->piece = (struct copy_piece){.end = copy->end};
	if (copy->piece.end > copy->at)
		return STEP_CONTINUE;
	if (copy->next_extent == copy->extents.count)
		return ask_for_extents(lane, io);
	extent = &copy->extents.extent[copy->next_extent++];
	copy->piece.end = copy->at + extent->length;
	copy->piece.zero = extent->flags & GANTRY_EXTENT_ZERO;
	return STEP_CONTINUE;
}

static bool is_zero(const uint8_t *buf, uint32_t length)
{
	return !buf[0] && !memcmp(buf, buf + 1, length - 1);
}

static uint32_t io_length(const struct copy_lane *copy, struct copy_piece piece, uint32_t limit)
{
	uint64_t left = piece.end - copy->at;

	return left < limit ? (uint32_t)left : limit;
}

static int issue(struct lane *lane, struct gantry_io *io, enum gantry_opcode opcode,
		 uint32_t length)
{
	struct copy_lane *copy = lane->work;

	lane_fill(lane, io, opcode, copy->at, length);
	copy->at += length;
	return 0;
}

static int write_step(struct lane *lane, struct gantry_io *io)
{
	struct copy_lane *copy = lane->work;
	struct copy_piece piece = copy_file_piece(copy->job, copy->at, copy->end);
	bool can_zero = volume_can(copy, GANTRY_OP_WRITE_ZEROES);
	uint32_t length = io_length(copy, piece, copy->job->block);
	uint8_t *buf = gantry_engine_slot_buffer(lane->queue, io);
	int rc;

	if (piece.zero && can_zero)
		return issue(lane, io, GANTRY_OP_WRITE_ZEROES, io_length(copy, piece, ZEROES_MAX));
	rc = copy_file_read(copy->job, buf, length, copy->at);
	if (rc)
		return file_failed(lane, "cannot read", rc);
	if (lane->in->conf->copy_sparse && can_zero && is_zero(buf, length))
		return issue(lane, io, GANTRY_OP_WRITE_ZEROES, length);
	return issue(lane, io, GANTRY_OP_WRITE, length);
}

static int read_step(struct lane *lane, struct gantry_io *io)
{
	struct copy_lane *copy = lane->work;
	uint64_t length;
	int rc = find_extent(lane, io);

	if (rc != STEP_CONTINUE)
		return rc;
	length = copy->piece.end - copy->at;
	if (!copy->piece.zero || copy_file_zero(copy->job, copy->at, length))
		return issue(lane, io, GANTRY_OP_READ,
			     io_length(copy, copy->piece, copy->job->block));
	gantry_count(&lane->stats->done, copy_file_bytes(copy->job, copy->at, length));
	copy->at += length;
	return STEP_CONTINUE;
}

/* Skip what is a hole on both sides, and read everything else. */
static int verify_step(struct lane *lane, struct gantry_io *io)
{
	struct copy_lane *copy = lane->work;
	struct copy_piece piece;
	int rc = find_extent(lane, io);

	if (rc != STEP_CONTINUE)
		return rc;
	piece = copy->piece;
	if (piece.zero)
		piece = copy_file_piece(copy->job, copy->at, piece.end);
	if (!piece.zero)
		return issue(lane, io, GANTRY_OP_READ, io_length(copy, piece, copy->job->block));
	copy->at = piece.end;
	return STEP_CONTINUE;
}

/* Make the segment stable. */
static int sync_step(struct lane *lane, struct gantry_io *io)
{
	struct copy_lane *copy = lane->work;

	copy->phase = SYNC;
	if (!copy->job->into_volume)
		return fdatasync(copy->sync_fd) ? file_failed(lane, "cannot sync", -errno)
						: STEP_CONTINUE;
	if (!volume_can(copy, GANTRY_OP_FLUSH))
		return STEP_CONTINUE;
	lane_fill(lane, io, GANTRY_OP_FLUSH, 0, 0);
	return 0;
}

/* The segment is copied: record it, and take the next one. */
static int next_segment_step(struct copy_lane *copy)
{
	if (copy->segment < copy->job->n_segments && copy_state_mark(copy->job, copy->segment)) {
		lane_fail(copy->job->in);
		return -EIO;
	}
	return take_segment(copy) ? STEP_CONTINUE : -ENODATA;
}

/* All IO of a phase is issued: go to the next phase as soon as all IO has completed. */
static int end_phase(struct lane *lane, struct gantry_io *io)
{
	const struct initiator_conf *conf = lane->in->conf;
	struct copy_lane *copy = lane->work;

	if (copy->phase == COPY && !*conf->copy_state && !conf->copy_verify && take_segment(copy))
		return STEP_CONTINUE;
	if (lane->queue->n_inflight || copy->failed)
		return -EAGAIN;
	switch (copy->phase) {
	case COPY:
	case DRAIN:
		return sync_step(lane, io);
	case SYNC:
		begin_phase(copy, conf->copy_verify ? VERIFY : COPIED);
		return STEP_CONTINUE;
	default:
		return next_segment_step(copy);
	}
}

static int copy_next(struct lane *lane, struct gantry_io *io)
{
	struct copy_lane *copy = lane->work;
	int rc;

	do {
		if (copy->at < copy->end && copy->phase == COPY)
			rc = copy->job->into_volume ? write_step(lane, io) : read_step(lane, io);
		else if (copy->at < copy->end && copy->phase == VERIFY)
			rc = verify_step(lane, io);
		else
			rc = end_phase(lane, io);
	} while (rc == STEP_CONTINUE);
	return rc;
}

/* -- completions -- */

static void compare(struct lane *lane, const struct gantry_io *io)
{
	const struct copy_lane *copy = lane->work;
	const uint8_t *data = io->data; /* the peer can change it */
	uint64_t n = copy_file_bytes(copy->job, io->offset, io->length), at = 0;
	int rc = copy_file_read(copy->job, copy->compare, io->length, io->offset);

	if (rc) {
		file_failed(lane, "cannot read", rc);
		return;
	}
	if (!memcmp(copy->compare, data, n))
		return;
	while (copy->compare[at] == data[at])
		at++;
	if (fail_first(lane))
		gantry_log_error(
			lane->in->host,
			"%s and the volume differ after the copy (offset=%llu, file=%#04x, "
			"volume=%#04x)",
			copy->job->path, (unsigned long long)(io->offset + at), copy->compare[at],
			data[at]);
}

static void write_file(struct lane *lane, const struct gantry_io *io)
{
	struct copy_lane *copy = lane->work;
	int rc = 0;

	if (!lane->in->conf->copy_sparse || !copy->job->regular || !is_zero(io->data, io->length) ||
	    copy_file_zero(copy->job, io->offset, io->length))
		rc = copy_file_write(copy->job, io->data, io->length, io->offset);
	if (rc)
		file_failed(lane, "cannot write", rc);
}

/* A failed query is no failure of the copy, unless the peer can still write to the buffer. */
static bool is_query_done(const struct gantry_io *io)
{
	return io->opcode == GANTRY_OP_EXTENTS && io->status != GANTRY_S_CANCELED &&
	       gantry_status_buffer_released(io->status);
}

static int copy_done(struct lane *lane, struct gantry_io *io)
{
	struct copy_lane *copy = lane->work;

	if (io->opcode == GANTRY_OP_EXTENTS)
		copy->extents_in_flight = false;
	if (is_query_done(io)) {
		store_extents(copy, io);
		io->status = GANTRY_S_OK; /* the lane does not count a failure */
		return 0;
	}
	if (io->status != GANTRY_S_OK) {
		copy->failed = true;
		if (io->status != GANTRY_S_CANCELED)
			lane_fail(lane->in); /* even with continue_on_error */
		return 1;
	}
	if (copy->phase == VERIFY) {
		compare(lane, io);
		return 1;
	}
	if (io->opcode == GANTRY_OP_READ)
		write_file(lane, io);
	if (!copy->failed)
		gantry_count(&lane->stats->done,
			     copy_file_bytes(copy->job, io->offset, io->length));
	return 1;
}

const struct source copy_in_source = {
	.mode = "copy_in",
	.depth_option = "copy.depth",
	.block_option = "copy.block",
	.prepare = copy_in_prepare,
	.fits = copy_in_fits,
	.setup = copy_in_setup,
	.lane_setup = copy_lane_setup,
	.lane_teardown = copy_lane_teardown,
	.teardown = copy_teardown,
	.next = copy_next,
	.done = copy_done,
	.wake_ns = no_wake,
};

const struct source copy_out_source = {
	.mode = "copy_out",
	.depth_option = "copy.depth",
	.block_option = "copy.block",
	.prepare = copy_out_prepare,
	.fits = copy_out_fits,
	.setup = copy_out_setup,
	.lane_setup = copy_lane_setup,
	.lane_teardown = copy_lane_teardown,
	.teardown = copy_teardown,
	.next = copy_next,
	.done = copy_done,
	.wake_ns = no_wake,
};
