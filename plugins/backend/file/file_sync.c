/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_sync.c - engine without a queue: each step is a system call on the lane's thread, which
 * blocks until the step is done.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "file.h"

static ssize_t call_read(int fd, void *data, size_t n, off_t offset)
{
	ssize_t rc = pread(fd, data, n, offset);

	return rc < 0 ? -errno : rc;
}

static ssize_t call_write(int fd, const void *data, size_t n, off_t offset, int stable)
{
	struct iovec iov = {(void *)data, n};
	ssize_t rc = stable ? pwritev2(fd, &iov, 1, offset, RWF_DSYNC)
			    : pwrite(fd, data, n, offset);

	return rc < 0 ? -errno : rc;
}

static ssize_t call_sync(int fd)
{
	return fdatasync(fd) ? -errno : 0;
}

static ssize_t call_allocate(int fd, int mode, off_t offset, off_t n)
{
	return fallocate(fd, mode, offset, n) ? -errno : 0;
}

static int call_set_attribute(int fd, const char *name, const char *value)
{
	return fsetxattr(fd, name, value, strlen(value), 0) ? -errno : 0;
}

static int call_sync_all(int fd)
{
	return fsync(fd) ? -errno : 0;
}

/*
 * Returns -errno if a write-back has failed since the last call; else 0. The range lies beyond the
 * pages of any file, so sync_file_range(2) waits for no page and only checks for errors.
 */
static int call_lost(int fd)
{
	if (sync_file_range(fd, (off_t)1 << 62, 1, SYNC_FILE_RANGE_WAIT_BEFORE) == 0)
		return 0;
	return errno == ENOSYS || errno == EPERM || errno == EINVAL || errno == ESPIPE ? 0 : -errno;
}

static off_t call_seek(int fd, off_t offset, int whence)
{
	off_t at = lseek(fd, offset, whence);

	return at < 0 ? -errno : at;
}

const struct file_calls file_calls = {
	.read = call_read,
	.write = call_write,
	.sync = call_sync,
	.allocate = call_allocate,
	.set_attribute = call_set_attribute,
	.sync_all = call_sync_all,
	.lost = call_lost,
	.seek = call_seek,
};

ssize_t file_step_execute(const struct file_store *store, const struct file_request *r)
{
	const struct file_calls *calls = store->calls;

	switch (r->step) {
	case FILE_STEP_READ:
		return calls->read(store->fd, r->data, r->length, (off_t)r->offset);
	case FILE_STEP_WRITE:
		return calls->write(store->fd, r->data, r->length, (off_t)r->offset, r->stable);
	case FILE_STEP_ALLOCATE:
		return calls->allocate(store->fd, r->mode, (off_t)r->offset, (off_t)r->length);
	case FILE_STEP_EXTENTS:
		return file_extents_find(store, r);
	default:
		return calls->sync(store->fd);
	}
}

static void sync_issue(struct file_lane *lane, struct file_request *request)
{
	while (file_step_done(lane, request, file_step_execute(lane->store, request)))
		;
}

static int sync_start(struct file_lane *lane)
{
	(void)lane;
	return 0;
}

static int sync_poll(struct file_lane *lane)
{
	(void)lane;
	return 0;
}

static void sync_nothing(struct file_lane *lane)
{
	(void)lane;
}

static int sync_fd(struct file_lane *lane)
{
	(void)lane;
	return -1;
}

const struct file_engine file_engine_sync = {
	.name = "sync",
	.start = sync_start,
	.issue = sync_issue,
	.poll = sync_poll,
	.arm = sync_poll,
	.disarm = sync_nothing,
	.fd = sync_fd,
	.stop = sync_nothing,
};
