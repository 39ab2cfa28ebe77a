/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * initiator_replay.c - submits the IOs of a trace again, at the times of the trace or as fast as
 * possible: same operations, offsets and lengths, other content. The IOs of a lane of the trace go
 * to one lane, which keeps their order.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gantry/trace_reader.h>

#include "initiator.h"

struct entry {
	uint64_t time_ns; /* time since the first record of the trace */
	uint64_t offset;
	uint32_t length;
	uint16_t lane; /* index of the lane of this role */
	uint8_t opcode, flags;
};

struct replay {
	uint64_t n, capacity;
	uint64_t max_length;   /* greatest length of an operation with data */
	struct entry *entries; /* sorted by lane, then by time */
};

struct replay_lane {
	const struct entry *next, *end;
};

static int trace_error(struct initiator *in, const char *what, int rc)
{
	gantry_log_error(in->host, "%s %s", in->conf->replay_path, what);
	return rc;
}

static int add(struct initiator *in, const struct gantry_trace_record *record)
{
	struct replay *replay = in->replay;
	struct gantry_io io;

	if (record->direction != GANTRY_TRACE_SUBMIT)
		return 0;
	memcpy(&io, record->wire, sizeof(record->wire));
	if (io.opcode >= GANTRY_OP_COUNT)
		return trace_error(in, "contains an unknown operation", -EINVAL);
	if (replay->n == replay->capacity) {
		uint64_t capacity = replay->capacity ? replay->capacity * 2 : 1024;
		struct entry *entries = reallocarray(replay->entries, capacity, sizeof(*entries));

		if (!entries)
			return trace_error(in, "is too large: out of memory", -ENOMEM);
		replay->entries = entries;
		replay->capacity = capacity;
	}
	replay->entries[replay->n++] = (struct entry){
		.time_ns = record->time_ns,
		.offset = io.offset,
		.length = io.length,
		.lane = (uint16_t)(record->lane % in->n_lanes),
		.opcode = io.opcode,
		/* the content differs from the trace, so drop the checksum flag */
		.flags = io.flags & GANTRY_IO_FUA,
	};
	if (gantry_op_has_data(io.opcode) && io.length > replay->max_length)
		replay->max_length = io.length;
	return 0;
}

static int read_trace(struct initiator *in, FILE *file)
{
	struct gantry_trace_reader reader;
	struct gantry_trace_record record;
	int rc = gantry_trace_begin(&reader, file);

	if (rc)
		return trace_error(in,
				   rc == -EINVAL   ? "is not a trace"
				   : rc == -EPROTO ? "is a trace of another version"
						   : "cannot be read",
				   rc == -EIO ? -EIO : -EINVAL);
	while ((rc = gantry_trace_next(&reader, &record)) > 0) {
		rc = add(in, &record);
		if (rc)
			return rc;
	}
	return rc ? trace_error(in, "cannot be read", rc) : 0;
}

/*
 * Open with O_NONBLOCK: otherwise opening a FIFO would block until it has a writer, and the process
 * would not handle signals. A FIFO without a writer is then empty, which is not a trace.
 */
static int read_file(struct initiator *in)
{
	int fd = open(in->conf->replay_path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	int rc;

	if (!file) {
		rc = -errno;
		gantry_log_error(in->host, "cannot open %s: %s", in->conf->replay_path,
				 strerror(-rc));
		if (fd >= 0)
			close(fd);
		return rc;
	}
	rc = read_trace(in, file);
	fclose(file);
	return rc;
}

static int compare(const void *a, const void *b)
{
	const struct entry *l = a, *r = b;

	if (l->lane != r->lane)
		return l->lane < r->lane ? -1 : 1;
	return l->time_ns < r->time_ns ? -1 : l->time_ns > r->time_ns;
}

static int replay_prepare(struct initiator *in)
{
	struct replay *replay = calloc(1, sizeof(*replay));
	uint64_t first = UINT64_MAX;
	int rc;

	if (!replay)
		return -ENOMEM;
	in->replay = replay;
	rc = read_file(in);
	if (rc)
		return rc;
	if (!replay->n)
		return trace_error(in, "has no IO", -EINVAL);
	for (uint64_t i = 0; i < replay->n; i++)
		if (replay->entries[i].time_ns < first)
			first = replay->entries[i].time_ns;
	for (uint64_t i = 0; i < replay->n; i++)
		replay->entries[i].time_ns -= first;
	qsort(replay->entries, replay->n, sizeof(struct entry), compare);
	in->block = replay->max_length ? replay->max_length : GANTRY_ENGINE_ALIGN;
	return 0;
}

static const char *misfit(const struct gantry_volume_info *volume, const struct entry *e)
{
	if (volume->ops && !(volume->ops & 1u << e->opcode))
		return "is an operation that the volume does not support";
	if (gantry_op_writes(e->opcode) && volume->flags & GANTRY_VOLUME_READ_ONLY)
		return "is a write, and the volume is read-only";
	if (!gantry_op_has_range(e->opcode))
		return NULL;
	if (volume->size && !gantry_range_ok(e->offset, e->length, volume->size))
		return "is outside the volume";
	if (!e->length || (volume->block_size &&
			   (e->offset % volume->block_size || e->length % volume->block_size)))
		return "is not a multiple of the volume's block size";
	return gantry_op_has_data(e->opcode) && volume->max_io && e->length > volume->max_io
		       ? "exceeds the largest IO of the volume"
		       : NULL;
}

static int replay_fits(const struct initiator *in, const struct gantry_volume_info *volume,
		       const struct gantry_check *check)
{
	const struct replay *replay = in->replay;

	for (uint64_t i = 0; i < replay->n; i++) {
		const struct entry *e = &replay->entries[i];
		const char *why = misfit(volume, e);

		if (!why)
			continue;
		gantry_option_fault(
			check, "replay.path", "%s: the IO at offset %llu with %u bytes %s",
			in->conf->replay_path, (unsigned long long)e->offset, e->length, why);
		return -ERANGE;
	}
	return 0;
}

static int replay_setup(struct initiator *in)
{
	const struct replay *replay = in->replay;

	in->target = replay->n;
	in->unit = "ops";
	return 0;
}

static void replay_teardown(struct initiator *in)
{
	struct replay *replay = in->replay;

	if (replay)
		free(replay->entries);
	free(replay);
	in->replay = NULL;
}

static int replay_lane_setup(struct lane *lane)
{
	const struct replay *replay = lane->in->replay;
	struct replay_lane *work = calloc(1, sizeof(*work));
	uint64_t i = 0;

	if (!work)
		return -ENOMEM;
	while (i < replay->n && replay->entries[i].lane < lane->index)
		i++;
	work->next = &replay->entries[i];
	while (i < replay->n && replay->entries[i].lane == lane->index)
		i++;
	work->end = &replay->entries[i];
	lane->work = work;
	return 0;
}

static void replay_lane_teardown(struct lane *lane)
{
	free(lane->work);
	lane->work = NULL;
}

/* Returns the time at which the next IO is due; 0: it is due immediately, or there is none. */
static uint64_t due_ns(const struct lane *lane)
{
	const struct replay_lane *work = lane->work;

	if (lane->in->conf->replay_speed == REPLAY_FAST || work->next == work->end)
		return 0;
	return lane->in->start_ns + work->next->time_ns;
}

static int replay_next(struct lane *lane, struct gantry_io *io)
{
	struct replay_lane *work = lane->work;

	if (work->next == work->end)
		return -ENODATA;
	if (lane->clock < due_ns(lane))
		return -EAGAIN;
	lane_fill(lane, io, work->next->opcode, work->next->offset, work->next->length);
	io->flags = work->next->flags;
	work->next++;
	return 0;
}

static int replay_done(struct lane *lane, struct gantry_io *io)
{
	if (io->status == GANTRY_S_OK)
		gantry_count(&lane->stats->done, 1);
	return 1;
}

static uint64_t replay_wake_ns(struct lane *lane)
{
	return due_ns(lane);
}

const struct source replay_source = {
	.mode = "replay",
	.depth_option = "replay.depth",
	.prepare = replay_prepare,
	.fits = replay_fits,
	.setup = replay_setup,
	.teardown = replay_teardown,
	.lane_setup = replay_lane_setup,
	.lane_teardown = replay_lane_teardown,
	.next = replay_next,
	.done = replay_done,
	.wake_ns = replay_wake_ns,
};
