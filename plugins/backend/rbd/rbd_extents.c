/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rbd_extents.c - finds the holes of the image by rbd_diff_iterate2(), which blocks: a thread of
 * the store executes the requests of all lanes in turn.
 *
 * A diff first waits for the writes in flight, so it includes each write that has completed.
 */
#include <errno.h>
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
static int64_t find_in_time(struct rbd_store *store, const struct rbd_request *r)
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

static void execute(void *arg, struct task *task)
{
	struct rbd_request *r = rbd_request_of(task);

	r->result = find_in_time(arg, r);
	rbd_lane_push(r);
}

int rbd_finder_start(struct rbd_store *store)
{
	return task_thread_start(&store->finder.thread, execute, store);
}
