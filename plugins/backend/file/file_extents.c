/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_extents.c - finds the holes of a regular file by lseek(2), and the thread that does it for a
 * lane on io_uring.
 */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "file.h"

/* Returns x if it is in [at, end); else, or if x is -errno, `end`. */
static uint64_t inside(off_t x, uint64_t at, uint64_t end)
{
	return x >= 0 && (uint64_t)x >= at && (uint64_t)x < end ? (uint64_t)x : end;
}

/*
 * Returns the end of the extent at `at`: a multiple of the block size, at most `end`. A block with
 * data and a hole is data. *flags_p: 0 or the flags of a hole.
 */
static uint64_t extent_end(const struct file_store *store, uint64_t at, uint64_t end,
			   uint32_t *flags_p)
{
	const uint64_t mask = store->conf->block - 1;
	off_t rc = store->calls->seek(store->fd, (off_t)at, SEEK_DATA);
	uint64_t data;

	/* -ENXIO: no data follows. After another error nothing is known, so all is data */
	data = rc < 0 && rc != -ENXIO ? at : inside(rc, at, end);
	if (data < end)
		data &= ~mask;
	if (data > at) {
		*flags_p = GANTRY_EXTENT_HOLE | GANTRY_EXTENT_ZERO;
		return data;
	}
	*flags_p = 0;
	data = inside(store->calls->seek(store->fd, (off_t)at, SEEK_HOLE), at + 1, end);
	return (data + mask) & ~mask;
}

/* Returns the length of the file, in whole blocks; 0: it is not known. */
static uint64_t file_bytes(const struct file_store *store)
{
	uint64_t bytes;

	return file_find_size(store, &bytes) == 0 ? bytes & ~(uint64_t)(store->conf->block - 1) : 0;
}

/*
 * A file can have become smaller without the knowledge of the host. Reads beyond its end then fail,
 * so that part is reported as data.
 */
ssize_t file_extents_find(const struct file_store *store, const struct file_request *request)
{
	const struct gantry_io *io = request->io;
	const uint64_t end = io->offset + io->length, have = file_bytes(store);
	struct gantry_extents extents = {.count = 0};
	uint64_t at = io->offset, next = end;
	int full = 0;

	for (; at < end && !full; at = next) {
		uint32_t flags = 0;

		next = at < have ? extent_end(store, at, end < have ? end : have, &flags) : end;
		full = gantry_extents_add(&extents, (uint32_t)(next - at), flags);
	}
	gantry_extents_finish(io, &extents);
	return 0;
}

static void execute(void *arg, struct task *task)
{
	struct file_finder *finder = arg;
	struct file_request *request = file_request_of(task);

	request->result = file_extents_find(finder->store, request);
	task_push(&finder->done, task);
	eventfd_write(finder->event_fd, 1);
}

int file_finder_start(struct file_finder *finder)
{
	return task_thread_start(&finder->thread, execute, finder);
}
