/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_extents.c - finds the holes of a regular file by lseek(2), and the thread that does it for a
 * lane on io_uring.
 */
#include <errno.h>
#include <signal.h>
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

static void push(struct file_request **list, struct file_request *r)
{
	r->next = __atomic_load_n(list, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(list, &r->next, r, 1, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
}

static struct file_request *take_all(struct file_request **list)
{
	return __atomic_exchange_n(list, NULL, __ATOMIC_ACQUIRE);
}

static void *finder_main(void *arg)
{
	struct file_finder *finder = arg;

	for (;;) {
		struct file_request *next, *r;

		while (sem_wait(&finder->wake) != 0)
			;
		r = take_all(&finder->todo);
		if (!r && __atomic_load_n(&finder->ends, __ATOMIC_ACQUIRE))
			return NULL;
		for (; r; r = next) {
			next = r->next;
			r->result = file_extents_find(finder->store, r);
			push(&finder->done, r);
			eventfd_write(finder->event_fd, 1);
		}
	}
}

int file_finder_start(struct file_finder *finder)
{
	sigset_t all, before;
	int rc;

	sem_init(&finder->wake, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&finder->thread, NULL, finder_main, finder);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0)
		sem_destroy(&finder->wake);
	return -rc;
}

void file_finder_stop(struct file_finder *finder)
{
	__atomic_store_n(&finder->ends, 1, __ATOMIC_RELEASE);
	sem_post(&finder->wake);
	pthread_join(finder->thread, NULL);
	sem_destroy(&finder->wake);
}

void file_finder_issue(struct file_finder *finder, struct file_request *request)
{
	push(&finder->todo, request);
	sem_post(&finder->wake);
}

struct file_request *file_finder_take(struct file_finder *finder)
{
	return take_all(&finder->done);
}
