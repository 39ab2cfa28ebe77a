/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rbd_extents.c - finds the holes of the image by rbd_diff_iterate2(), which blocks: a thread of
 * the store executes the requests of all lanes in turn.
 *
 * A diff first waits for the writes in flight, so it includes each write that has completed.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "rbd.h"

#define MAX_RANGE (1u << 30) /* bytes: limit of the range of a diff, which bounds its duration */

/* The range of a diff, and its blocks that hold data. */
struct range {
	uint64_t offset, bytes;
	uint32_t block;
	uint8_t *has_data; /* of each block */
};

/* librbd reports the parts in any order if the image is striped, and their bounds are any bytes. */
static int add_part(uint64_t offset, size_t length, int exists, void *arg)
{
	const struct range *range = arg;
	uint64_t start, end = offset + length;

	if (!exists || end <= range->offset || offset >= range->offset + range->bytes)
		return 0;
	start = offset < range->offset ? 0 : (offset - range->offset) / range->block;
	end -= range->offset;
	end = ((end < range->bytes ? end : range->bytes) + range->block - 1) / range->block;
	memset(range->has_data + start, 1, end - start);
	return 0;
}

static void report(const struct range *range, const struct gantry_io *io)
{
	const uint64_t n = range->bytes / range->block;
	struct gantry_extents extents = {.count = 0};

	for (uint64_t i = 0; i < n; i++)
		if (gantry_extents_add(
			    &extents, range->block,
			    range->has_data[i] ? 0 : GANTRY_EXTENT_HOLE | GANTRY_EXTENT_ZERO))
			break;
	gantry_extents_finish(io, &extents);
}

/*
 * If the image has shrunk, librbd cuts the diff at the new end. Reads beyond it fail, so that part
 * is data. Returns 0; -ERANGE: the whole range is beyond the end; or another -errno.
 */
static int check_end(rbd_image_t image, const struct range *range)
{
	uint64_t size, first;
	int rc = rbd_get_size(image, &size);

	if (rc < 0 || size >= range->offset + range->bytes)
		return rc;
	if (size <= range->offset)
		return -ERANGE;
	first = (size - range->offset) / range->block;
	memset(range->has_data + first, 1, range->bytes / range->block - first);
	return 0;
}

/*
 * whole_object = 0: with 1, versions of librbd before 16.2.8 report wrong offsets
 * (https://tracker.ceph.com/issues/53784).
 */
static int64_t find(struct rbd_store *store, const struct gantry_io *io)
{
	const uint64_t limit = store->conf->block * RBD_DIFF_BLOCKS;
	struct range range = {.offset = io->offset,
			      .bytes = io->length < MAX_RANGE ? io->length : MAX_RANGE,
			      .block = (uint32_t)store->conf->block,
			      .has_data = store->finder.has_data};
	int rc = 0, end_rc;

	if (range.bytes > limit)
		range.bytes = limit;
	/*
	 * With a writeback cache, report everything as data. A diff flushes the cache and consumes
	 * the error of that flush, so the client's next flush would succeed although writes were
	 * lost.
	 */
	memset(range.has_data, store->client.is_cached, range.bytes / range.block);
	if (!store->client.is_cached)
		rc = rbd_diff_iterate2(store->client.image, NULL, range.offset, range.bytes, 1, 0,
				       add_part, &range);
	end_rc = check_end(store->client.image, &range);
	if (end_rc < 0)
		return end_rc;
	if (rc < 0)
		return rc;
	report(&range, io);
	return 0;
}

/* Fail a request that is past its deadline: executing it would delay the requests behind it. */
static int64_t execute(struct rbd_store *store, const struct rbd_request *r)
{
	int64_t result;

	if (rbd_state_get(store) != RBD_OPEN)
		return RBD_NOT_EXECUTED;
	if (store->host->now_ns(store->host) >= r->end_ns)
		return -EIO;
	result = find(store, r->io);
	if (result == -ETIMEDOUT)
		rbd_count(&store->n_timeouts);
	return result;
}

/* Returns the requests, oldest first. */
static struct rbd_request *take_all(struct rbd_finder *finder)
{
	struct rbd_request *r = __atomic_exchange_n(&finder->todo, NULL, __ATOMIC_ACQUIRE), *next;
	struct rbd_request *list = NULL;

	for (; r; r = next) {
		next = r->next;
		r->next = list;
		list = r;
	}
	return list;
}

static void *finder_main(void *arg)
{
	struct rbd_store *store = arg;
	struct rbd_finder *finder = &store->finder;

	for (;;) {
		struct rbd_request *next, *r;

		while (sem_wait(&finder->wake) != 0)
			;
		r = take_all(finder);
		if (!r && __atomic_load_n(&finder->ends, __ATOMIC_ACQUIRE))
			return NULL;
		for (; r; r = next) {
			next = r->next;
			r->result = execute(store, r);
			rbd_lane_push(r);
		}
	}
}

int rbd_finder_start(struct rbd_store *store)
{
	struct rbd_finder *finder = &store->finder;
	sigset_t all, before;
	int rc;

	sem_init(&finder->wake, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&finder->thread, NULL, finder_main, store);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0)
		sem_destroy(&finder->wake);
	return -rc;
}

void rbd_finder_stop(struct rbd_store *store)
{
	struct rbd_finder *finder = &store->finder;

	__atomic_store_n(&finder->ends, 1, __ATOMIC_RELEASE);
	sem_post(&finder->wake);
	pthread_join(finder->thread, NULL);
	sem_destroy(&finder->wake);
}

void rbd_finder_issue(struct rbd_store *store, struct rbd_request *r)
{
	struct rbd_finder *finder = &store->finder;

	r->next = __atomic_load_n(&finder->todo, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&finder->todo, &r->next, r, 1, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
	sem_post(&finder->wake);
}
