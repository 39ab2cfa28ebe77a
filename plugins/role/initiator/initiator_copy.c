/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * initiator_copy.c - copies a file or block device into the volume, or the volume into a file or
 * block device. Each lane copies its own part. It reads and writes the file on its own thread, with
 * the buffer of the IO that moves the same bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "initiator.h"

struct copy {
	/* offsets in the volume: next byte to copy, and end of the part of this lane */
	uint64_t at, end;
	int ended; /* the last step, a flush or an fdatasync, has been issued */
};

static const char *file_name(const struct initiator *in)
{
	return in->source == &copy_in_source ? in->conf->copy_from : in->conf->copy_to;
}

static int file_error(struct initiator *in, const char *what, int rc)
{
	gantry_log_error(in->host, "%s %s: %s", what, file_name(in), strerror(-rc));
	return rc;
}

static int file_failed(struct lane *lane, const char *what, int rc)
{
	if (!atomic_exchange(&lane->in->failed, true)) /* log only the first failure */
		file_error(lane->in, what, rc);
	lane_fail(lane->in);
	return rc;
}

/*
 * Open with O_NONBLOCK: otherwise opening a FIFO would block until it has a writer, and the process
 * would not handle signals. file_size() then rejects the FIFO.
 */
static int open_source(struct initiator *in)
{
	in->fd = open(file_name(in), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return in->fd < 0 ? file_error(in, "cannot open", -errno) : 0;
}

/*
 * The host creates a new file with mode 0600, because other users might not be permitted to read
 * the volume. An existing file keeps its mode, which the user has chosen.
 */
static int open_destination(struct initiator *in)
{
	int fd = in->host->open_file(in->host, file_name(in),
				     O_RDWR | O_CREAT | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return file_error(in, "cannot open", fd);
	in->fd = fd;
	return 0;
}

static void warn_of_readers(const struct initiator *in)
{
	struct stat st;

	if (!fstat(in->fd, &st) && S_ISREG(st.st_mode) && (st.st_mode & 077))
		gantry_log_warn(in->host,
				"%s: other users may read the copy (mode=%04o): chmod go-rwx %s",
				file_name(in), (unsigned)st.st_mode & 07777, file_name(in));
}

/* Determine the size of the open file. Returns 0 or -errno. */
static int file_size(struct initiator *in, uint64_t *size_p)
{
	struct stat st;
	off_t end;

	if (fstat(in->fd, &st))
		return file_error(in, "cannot examine", -errno);
	if (S_ISDIR(st.st_mode))
		return file_error(in, "cannot copy", -EISDIR);
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode)) {
		gantry_log_error(in->host,
				 "%s: only a regular file or a block device can be copied",
				 file_name(in));
		return -EINVAL;
	}
	in->copy_regular = S_ISREG(st.st_mode);
	end = lseek(in->fd, 0, SEEK_END);
	if (end < 0)
		return file_error(in, "cannot find the size of", -errno);
	*size_p = (uint64_t)end;
	return 0;
}

static int copy_in_prepare(struct initiator *in)
{
	const struct initiator_conf *conf = in->conf;
	uint64_t size;
	int rc = open_source(in) ?: file_size(in, &size);

	if (rc)
		return rc;
	if (conf->copy_size > size) {
		gantry_log_error(in->host, "%s has %llu bytes, less than the %llu to be copied",
				 conf->copy_from, (unsigned long long)size,
				 (unsigned long long)conf->copy_size);
		return -ERANGE;
	}
	in->copy_bytes = conf->copy_size ? conf->copy_size : size;
	in->block = conf->copy_block;
	return 0;
}

static int copy_out_prepare(struct initiator *in)
{
	in->block = in->conf->copy_block;
	return 0;
}

/* Set the length of one IO and the number of IOs. */
static int set_blocks(struct initiator *in)
{
	const struct gantry_volume_info *volume = &in->volume;
	uint64_t block = in->conf->copy_block;

	if (block > volume->max_io)
		block = volume->max_io;
	block -= block % volume->block_size;
	if (!block)
		block = volume->block_size;
	in->block = block;
	in->n_blocks = in->copy_bytes / block + (in->copy_bytes % block != 0);
	in->target = in->copy_bytes;
	in->unit = "bytes";
	return 0;
}

static int copy_in_fits(const struct initiator *in, const struct gantry_volume_info *volume,
			const struct gantry_check *check)
{
	if ((volume->ops && !gantry_op_in(GANTRY_OP_WRITE, volume->ops)) ||
	    volume->flags & GANTRY_VOLUME_READ_ONLY) {
		gantry_option_fault(check, "copy.from", "the volume is read-only");
		return -EROFS;
	}
	if (volume->size && in->copy_bytes > volume->size) {
		gantry_option_fault(check, "copy.from", "%s has %llu bytes, the volume only %llu",
				    in->conf->copy_from, (unsigned long long)in->copy_bytes,
				    (unsigned long long)volume->size);
		return -ENOSPC;
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

/*
 * Lock the file, because a target locks the file that it serves. Errors other than EWOULDBLOCK are
 * ignored: a file system need not support locks.
 */
static int set_size(struct initiator *in)
{
	if (flock(in->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		gantry_log_error(in->host,
				 "%s is in use by another process, perhaps a target that serves it",
				 in->conf->copy_to);
		return -EBUSY;
	}
	if (ftruncate(in->fd, 0) || ftruncate(in->fd, (off_t)in->copy_bytes))
		return file_error(in, "cannot set the size of", -errno);
	return 0;
}

/* Give a regular file the size of the copy, and check the size of a device. */
static int prepare_destination(struct initiator *in)
{
	uint64_t size;
	int rc = file_size(in, &size);

	if (rc)
		return rc;
	if (in->copy_regular)
		return set_size(in);
	if (size < in->copy_bytes) {
		gantry_log_error(in->host, "%s has only %llu bytes, the copy %llu",
				 in->conf->copy_to, (unsigned long long)size,
				 (unsigned long long)in->copy_bytes);
		return -ENOSPC;
	}
	return 0;
}

static int copy_out_setup(struct initiator *in)
{
	const struct initiator_conf *conf = in->conf;
	int rc;

	in->copy_bytes = conf->copy_size ? conf->copy_size : in->volume.size;
	rc = open_destination(in) ?: prepare_destination(in) ?: set_blocks(in);
	if (!rc)
		warn_of_readers(in);
	return rc;
}

static void copy_teardown(struct initiator *in)
{
	if (in->fd >= 0)
		close(in->fd);
	in->fd = -1;
}

static int copy_lane_setup(struct lane *lane)
{
	struct initiator *in = lane->in;
	const struct gantry_volume_info *volume = &in->volume;
	struct copy *copy = calloc(1, sizeof(*copy));
	uint64_t last = (in->copy_bytes + volume->block_size - 1) / volume->block_size *
			volume->block_size;
	uint64_t each = in->n_blocks / in->n_lanes, more = in->n_blocks % in->n_lanes;
	uint64_t first = each * lane->index + (lane->index < more ? lane->index : more);

	if (!copy)
		return -ENOMEM;
	lane->work = copy;
	copy->at = first * in->block;
	copy->end = (first + each + (lane->index < more)) * in->block;
	if (copy->end > last)
		copy->end = last;
	if (copy->at > copy->end)
		copy->at = copy->end;
	return 0;
}

static void copy_lane_teardown(struct lane *lane)
{
	free(lane->work);
	lane->work = NULL;
}

static uint64_t no_wake(struct lane *lane)
{
	(void)lane;
	return 0;
}

static uint32_t next_length(const struct lane *lane)
{
	const struct copy *copy = lane->work;
	uint64_t left = copy->end - copy->at;

	return (uint32_t)(left < lane->in->block ? left : lane->in->block);
}

/* Returns how many bytes of an IO belong to the file. The remaining bytes are padding. */
static uint32_t file_bytes(const struct initiator *in, uint64_t offset, uint32_t length)
{
	uint64_t left = in->copy_bytes > offset ? in->copy_bytes - offset : 0;

	return left < length ? (uint32_t)left : length;
}

static int read_file(const struct initiator *in, uint8_t *buf, uint32_t length, uint64_t offset)
{
	uint32_t n = file_bytes(in, offset, length);

	for (uint32_t at = 0; at < n;) {
		ssize_t got = pread(in->fd, buf + at, n - at, (off_t)(offset + at));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? -errno : -ENODATA;
		at += (uint32_t)got;
	}
	memset(buf + n, 0, length - n);
	return 0;
}

static int write_file(const struct initiator *in, const uint8_t *buf, uint32_t length,
		      uint64_t offset)
{
	uint32_t n = file_bytes(in, offset, length);

	for (uint32_t at = 0; at < n;) {
		ssize_t put = pwrite(in->fd, buf + at, n - at, (off_t)(offset + at));

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put ? -errno : -ENOSPC;
		at += (uint32_t)put;
	}
	return 0;
}

static int is_zero(const uint8_t *buf, uint32_t length)
{
	return !buf[0] && !memcmp(buf, buf + 1, length - 1);
}

static int copy_in_next(struct lane *lane, struct gantry_io *io)
{
	struct initiator *in = lane->in;
	struct copy *copy = lane->work;
	uint32_t length = next_length(lane);
	unsigned opcode = GANTRY_OP_WRITE;
	int rc;

	if (!length) {
		if (lane->queue->n_inflight)
			return -EAGAIN;
		if (copy->ended || !(in->volume.ops & 1u << GANTRY_OP_FLUSH))
			return -ENODATA;
		copy->ended = 1;
		lane_fill(lane, io, GANTRY_OP_FLUSH, 0, 0);
		return 0;
	}
	rc = read_file(in, gantry_engine_slot_buffer(lane->queue, io), length, copy->at);
	if (rc)
		return file_failed(lane, "cannot read", rc == -ENODATA ? -EIO : rc);
	if (in->conf->copy_sparse && in->volume.ops & 1u << GANTRY_OP_WRITE_ZEROES &&
	    is_zero(gantry_engine_slot_buffer(lane->queue, io), length))
		opcode = GANTRY_OP_WRITE_ZEROES;
	lane_fill(lane, io, opcode, copy->at, length);
	copy->at += length;
	return 0;
}

static int copy_done(struct lane *lane, struct gantry_io *io)
{
	if (io->status == GANTRY_S_OK)
		gantry_count(&lane->stats->done, file_bytes(lane->in, io->offset, io->length));
	else if (io->status != GANTRY_S_CANCELED)
		lane_fail(lane->in); /* a partial copy fails, even with continue_on_error */
	return 1;
}

static int copy_out_next(struct lane *lane, struct gantry_io *io)
{
	struct copy *copy = lane->work;
	uint32_t length = next_length(lane);

	if (!length) {
		if (lane->queue->n_inflight)
			return -EAGAIN;
		if (!copy->ended && fdatasync(lane->in->fd))
			return file_failed(lane, "cannot sync", -errno);
		copy->ended = 1;
		return -ENODATA;
	}
	lane_fill(lane, io, GANTRY_OP_READ, copy->at, length);
	copy->at += length;
	return 0;
}

static int copy_out_done(struct lane *lane, struct gantry_io *io)
{
	struct initiator *in = lane->in;
	int hole = in->conf->copy_sparse && in->copy_regular && io->status == GANTRY_S_OK &&
		   is_zero(io->data, io->length);
	int rc;

	if (io->status == GANTRY_S_OK && !hole) {
		rc = write_file(in, io->data, io->length, io->offset);
		if (rc) {
			file_failed(lane, "cannot write", rc);
			return 1;
		}
	}
	return copy_done(lane, io);
}

const struct source copy_in_source = {
	.mode = "copy_in",
	.depth_option = "copy.depth",
	.block_option = "copy.block",
	.prepare = copy_in_prepare,
	.fits = copy_in_fits,
	.setup = set_blocks,
	.lane_setup = copy_lane_setup,
	.lane_teardown = copy_lane_teardown,
	.teardown = copy_teardown,
	.next = copy_in_next,
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
	.next = copy_out_next,
	.done = copy_out_done,
	.wake_ns = no_wake,
};
