/* SPDX-License-Identifier: BSD-3-Clause */
/* initiator_copy_file.c - the file or block device of a copy */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "initiator_copy.h"

static int file_error(const struct copy_job *job, const char *what, int rc)
{
	gantry_log_error(job->in->host, "%s %s: %s", what, job->path, strerror(-rc));
	return rc;
}

/* Determine type and size of the open file. Returns 0 or -errno. */
static int examine(struct copy_job *job, uint64_t *size_p)
{
	struct stat st;
	off_t end;

	if (fstat(job->fd, &st))
		return file_error(job, "cannot examine", -errno);
	if (S_ISDIR(st.st_mode))
		return file_error(job, "cannot copy", -EISDIR);
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode)) {
		gantry_log_error(job->in->host,
				 "%s: only a regular file or a block device can be copied",
				 job->path);
		return -EINVAL;
	}
	job->regular = S_ISREG(st.st_mode);
	end = lseek(job->fd, 0, SEEK_END);
	if (end < 0)
		return file_error(job, "cannot find the size of", -errno);
	*size_p = (uint64_t)end;
	return 0;
}

/*
 * Open with O_NONBLOCK: otherwise opening a FIFO would block until it has a writer, and the process
 * would not handle signals. examine() then rejects the FIFO.
 */
int copy_file_open_source(struct copy_job *job, uint64_t *size_p)
{
	job->fd = open(job->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return job->fd < 0 ? file_error(job, "cannot open", -errno) : examine(job, size_p);
}

/* Open the destination once more. Returns a descriptor or -errno. */
static int reopen(const struct copy_job *job, int flags)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", job->fd);
	fd = open(name, O_RDWR | O_CLOEXEC | O_NONBLOCK | flags);
	return fd < 0 ? -errno : fd;
}

/* An existing file keeps its mode, which the user has chosen. */
static void warn_of_readers(const struct copy_job *job)
{
	struct stat st;

	if (!fstat(job->fd, &st) && S_ISREG(st.st_mode) && (st.st_mode & 077))
		gantry_log_warn(job->in->host,
				"%s: other users may read the copy (mode=%04o): chmod go-rwx %s",
				job->path, (unsigned)st.st_mode & 07777, job->path);
}

/* Lock the destination. A block device is opened again: O_EXCL fails if the kernel uses it. */
static bool is_in_use(struct copy_job *job)
{
	if (!job->regular) {
		int fd = reopen(job, O_EXCL);

		if (fd < 0)
			return true;
		close(job->fd);
		job->fd = fd;
	}
	return flock(job->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
}

/*
 * The host creates a new file with mode 0600, because other users might not be permitted to read
 * the volume. Errors of flock() other than EWOULDBLOCK are ignored: a file system need not support
 * locks.
 */
int copy_file_open_destination(struct copy_job *job)
{
	const struct gantry_host *host = job->in->host;
	uint64_t size;
	int rc, fd = host->open_file(host, job->path, O_RDWR | O_CREAT | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return file_error(job, "cannot open", fd);
	job->fd = fd;
	rc = examine(job, &size);
	if (rc)
		return rc;
	if (is_in_use(job)) {
		gantry_log_error(
			host,
			"%s is in use: by a mount, or by another process, such as a target "
			"that serves it",
			job->path);
		return -EBUSY;
	}
	return 0;
}

int copy_file_set_size(struct copy_job *job, bool keep)
{
	const off_t size = lseek(job->fd, 0, SEEK_END);

	if (!job->regular && (uint64_t)size < job->bytes) {
		gantry_log_error(job->in->host, "%s has only %llu bytes, the copy %llu", job->path,
				 (unsigned long long)size, (unsigned long long)job->bytes);
		return -ENOSPC;
	}
	job->fresh = job->regular && !keep;
	if (job->fresh)
		copy_state_detach(job->fd);
	if (job->fresh && (ftruncate(job->fd, 0) || ftruncate(job->fd, (off_t)job->bytes)))
		return file_error(job, "cannot set the size of", -errno);
	warn_of_readers(job);
	return 0;
}

int copy_file_reopen(const struct copy_job *job)
{
	int fd = reopen(job, 0);

	return fd < 0 ? file_error(job, "cannot open", fd) : fd;
}

int copy_file_read(const struct copy_job *job, uint8_t *buf, uint32_t length, uint64_t offset)
{
	uint32_t n = (uint32_t)copy_file_bytes(job, offset, length);

	for (uint32_t at = 0; at < n;) {
		ssize_t got = pread(job->fd, buf + at, n - at, (off_t)(offset + at));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? -errno : -EIO;
		at += (uint32_t)got;
	}
	memset(buf + n, 0, length - n);
	return 0;
}

int copy_file_write(const struct copy_job *job, const uint8_t *buf, uint32_t length,
		    uint64_t offset)
{
	uint32_t n = (uint32_t)copy_file_bytes(job, offset, length);

	for (uint32_t at = 0; at < n;) {
		ssize_t put = pwrite(job->fd, buf + at, n - at, (off_t)(offset + at));

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put ? -errno : -ENOSPC;
		at += (uint32_t)put;
	}
	return 0;
}

int copy_file_zero(struct copy_job *job, uint64_t offset, uint64_t length)
{
	if (job->fresh)
		return 0;
	if (atomic_load_explicit(&job->no_zeroing, memory_order_relaxed))
		return -EOPNOTSUPP;
	if (!fallocate(job->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
		       (off_t)copy_file_bytes(job, offset, length)))
		return 0;
	/* such as a file system without holes: the caller reports an error that remains */
	atomic_store_explicit(&job->no_zeroing, true, memory_order_relaxed);
	return -EOPNOTSUPP;
}

/*
 * The functions of lseek(2) that find holes do not depend on the offset of the descriptor, so lanes
 * can call them at the same time. A hole is shortened to whole blocks.
 */
struct copy_piece copy_file_piece(const struct copy_job *job, uint64_t offset, uint64_t end)
{
	const uint64_t block = job->in->volume.block_size;
	off_t data, hole;

	if (!job->regular)
		return (struct copy_piece){.end = end};
	data = lseek(job->fd, (off_t)offset, SEEK_DATA);
	/* no more data; but a file that has become shorter must fail when it is read */
	if (data < 0 && errno == ENXIO && lseek(job->fd, 0, SEEK_END) >= (off_t)job->bytes)
		return (struct copy_piece){.end = end, .zero = true};
	if (data < 0)
		return (struct copy_piece){.end = end};
	if ((uint64_t)data >= offset + block) {
		uint64_t zero_end = (uint64_t)data / block * block;

		return (struct copy_piece){.end = zero_end < end ? zero_end : end, .zero = true};
	}
	hole = lseek(job->fd, data, SEEK_HOLE);
	if (hole < 0 || (uint64_t)hole >= end)
		return (struct copy_piece){.end = end};
	return (struct copy_piece){.end = ((uint64_t)hole + block - 1) / block * block};
}
