/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_request.c - divides one IO into steps, for any engine.
 *
 *     read, write     data steps until all bytes are done; then sync if the IO has FUA and its
 *                     writes were not stable
 *     flush           sync
 *     write_zeroes    allocate, or data steps from a buffer of zeroes if the file system does not
 *                     support it; then sync if the IO has FUA
 *     extents         extents; one data extent on a block device
 *     discard         allocate; success without effect if the file system does not support it,
 *                     because a discard is a hint
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../common/outcome.h"
#include "file.h"

static int get(const int *flag)
{
	return __atomic_load_n(flag, __ATOMIC_RELAXED);
}

static void count(uint64_t *cell)
{
	__atomic_fetch_add(cell, 1, __ATOMIC_RELAXED);
}

int file_requests_create(struct file_lane *lane, uint32_t n)
{
	lane->n_requests = n < 1 ? 1 : n < FILE_MAX_REQUESTS ? n : FILE_MAX_REQUESTS;
	lane->requests = gantry_zalloc_lines(lane->n_requests * sizeof *lane->requests);
	if (!lane->requests)
		return -ENOMEM;
	if (lane->store->direct) {
		/*
		 * Reserve only address space: the kernel allocates pages at the first unaligned IO.
		 */
		lane->bounce_bytes = (size_t)lane->n_requests * FILE_BOUNCE_BYTES;
		lane->bounce = mmap(NULL, lane->bounce_bytes, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (lane->bounce == MAP_FAILED) {
			lane->bounce = NULL;
			free(lane->requests);
			lane->requests = NULL;
			return -ENOMEM;
		}
	}
	lane->free = NULL;
	for (uint32_t i = lane->n_requests; i-- > 0;) {
		if (lane->bounce)
			lane->requests[i].bounce = (uint8_t *)lane->bounce +
						   (size_t)i * FILE_BOUNCE_BYTES;
		lane->requests[i].next = lane->free;
		lane->free = &lane->requests[i];
	}
	return 0;
}

void file_requests_destroy(struct file_lane *lane)
{
	if (lane->bounce)
		munmap(lane->bounce, lane->bounce_bytes);
	free(lane->requests);
	lane->requests = NULL;
	lane->bounce = NULL;
}

static int finish(struct file_lane *lane, struct file_request *r, enum gantry_status status)
{
	const struct gantry_host *host = lane->store->host;
	struct gantry_io *io = r->io;
	uint64_t ns = host->now_ns(host) - r->start_ns;

	if (status != GANTRY_S_OK)
		count(&lane->store->n_errors);
	io->hop_ns[GANTRY_HOP_BACKEND] = ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
	io->status = (uint16_t)status;
	r->io = NULL;
	r->next = lane->free;
	lane->free = r;
	gantry_complete(io);
	return 0;
}

/* Set buffer, offset and length of the next data step. */
static void plan_data(struct file_lane *lane, struct file_request *r)
{
	const struct gantry_io *io = r->io;
	uint32_t left = io->length - r->done;

	r->offset = io->offset + r->done;
	r->length = left;
	if (io->opcode == GANTRY_OP_WRITE_ZEROES) {
		r->data = lane->store->zeroes;
		if (r->length > FILE_ZERO_BYTES)
			r->length = FILE_ZERO_BYTES;
		return;
	}
	r->data = (uint8_t *)io->data + r->done;
	if (!lane->store->direct || (uintptr_t)io->data % lane->store->alignment == 0)
		return;
	if (r->length > FILE_BOUNCE_BYTES)
		r->length = FILE_BOUNCE_BYTES;
	if (r->step == FILE_STEP_WRITE)
		memcpy(r->bounce, r->data, r->length);
	r->data = r->bounce;
	count(&lane->store->n_bounced);
}

static int plan_zero_data(struct file_lane *lane, struct file_request *r)
{
	r->step = FILE_STEP_WRITE;
	plan_data(lane, r);
	return 1;
}

static void plan_allocate(struct file_request *r, int mode)
{
	r->step = FILE_STEP_ALLOCATE;
	r->mode = mode | FALLOC_FL_KEEP_SIZE;
	r->offset = r->io->offset;
	r->length = r->io->length;
}

/*
 * Returns true if a sync has failed. Waits while another lane stores the generation: an IO that
 * reports the failure must not complete before the stored generation makes the failure visible
 * after a restart.
 */
static int has_failed(struct file_store *store)
{
	int failed = __atomic_load_n(&store->failed, __ATOMIC_ACQUIRE);

	if (failed == FILE_FAILING) {
		pthread_mutex_lock(&store->failing);
		pthread_mutex_unlock(&store->failing);
	}
	return failed != FILE_SOUND;
}

/* A block device has no holes that it could report. */
static int plan_extents(struct file_lane *lane, struct file_request *r)
{
	struct gantry_extents extents = {.count = 0};

	r->step = FILE_STEP_EXTENTS;
	if (!lane->store->is_device)
		return 1;
	gantry_extents_add(&extents, r->io->length, 0);
	gantry_extents_finish(r->io, &extents);
	return finish(lane, r, GANTRY_S_OK);
}

/* Set the first step, or complete the IO if it needs none. */
static int plan(struct file_lane *lane, struct file_request *r)
{
	struct file_store *store = lane->store;
	struct gantry_io *io = r->io;

	if (gantry_op_writes(io->opcode) && has_failed(store))
		return finish(lane, r, GANTRY_S_READ_ONLY);
	if (gantry_op_writes(io->opcode) && store->conf->read_only)
		return finish(lane, r, GANTRY_S_READ_ONLY);
	r->stable = (io->flags & GANTRY_IO_FUA) && store->conf->fsync && !get(&store->no_stable);
	switch (io->opcode) {
	case GANTRY_OP_READ:
		r->step = FILE_STEP_READ;
		r->stable = 0;
		plan_data(lane, r);
		return 1;
	case GANTRY_OP_WRITE:
		r->step = FILE_STEP_WRITE;
		plan_data(lane, r);
		return 1;
	case GANTRY_OP_WRITE_ZEROES:
		if (get(&store->no_zero_range))
			return plan_zero_data(lane, r);
		plan_allocate(r, FALLOC_FL_ZERO_RANGE);
		return 1;
	case GANTRY_OP_DISCARD:
		plan_allocate(r, FALLOC_FL_PUNCH_HOLE);
		return 1;
	case GANTRY_OP_FLUSH:
		if (has_failed(store))
			return finish(lane, r, GANTRY_S_IO);
		if (!store->conf->fsync || store->conf->read_only)
			return finish(lane, r, GANTRY_S_OK);
		r->step = FILE_STEP_SYNC;
		return 1;
	case GANTRY_OP_EXTENTS:
		return plan_extents(lane, r);
	case GANTRY_OP_NOP:
		return finish(lane, r, GANTRY_S_OK);
	default:
		return finish(lane, r, GANTRY_S_UNSUPPORTED);
	}
}

int file_request_begin(struct file_lane *lane, struct gantry_io *io,
		       struct file_request **request_p)
{
	const struct gantry_host *host = lane->store->host;
	struct file_request *r = lane->free;

	if (!r)
		return -EAGAIN;
	lane->free = r->next;
	r->io = io;
	r->start_ns = host->now_ns(host);
	r->done = 0;
	r->retries = 0;
	r->stalls = 0;
	r->stable_err = 0;
	*request_p = r;
	return plan(lane, r);
}

/*
 * After a failed sync the kernel might have dropped data that it could not write, so the content is
 * unknown until a restart. The first lane that detects the failure increments the generation. The
 * other lanes wait until it is stored before they complete their IO.
 */
static void fail_store(struct file_store *store, int err)
{
	pthread_mutex_lock(&store->failing);
	if (get(&store->failed) == FILE_SOUND) {
		/*
		 * Set the flag first: the kernel reports a failure only once, so from here on every
		 * flush must fail.
		 */
		__atomic_store_n(&store->failed, FILE_FAILING, __ATOMIC_RELEASE);
		file_generation_raise(store);
		__atomic_store_n(&store->failed, FILE_FAILED, __ATOMIC_RELEASE);
		gantry_log_error(store->host, "%s: sync failed: %s; read-only until restart",
				 store->conf->path, strerror(err));
	}
	pthread_mutex_unlock(&store->failing);
}

/*
 * Check a sync or stable write that returned success. The kernel reports lost data only once for
 * each open file description: of two concurrent syncs one fails, and the other succeeds for the
 * same data. So each lane also checks its witness, an open file description that no IO uses. The
 * witness reports the loss even before the other lane has processed its own failed sync.
 */
static int synced(struct file_lane *lane, struct file_request *r)
{
	struct file_store *store = lane->store;
	int rc = lane->witness < 0 ? 0 : store->calls->lost(lane->witness);

	if (rc)
		fail_store(store, -rc);
	return finish(lane, r, has_failed(store) ? GANTRY_S_IO : GANTRY_S_OK);
}

/* All bytes are transferred: sync them if the IO has FUA. */
static int data_done(struct file_lane *lane, struct file_request *r)
{
	int want = (r->io->flags & GANTRY_IO_FUA) && gantry_op_writes(r->io->opcode) &&
		   lane->store->conf->fsync;

	if (!want)
		return finish(lane, r, GANTRY_S_OK);
	if (r->stable && r->step == FILE_STEP_WRITE)
		return synced(lane, r);
	r->step = FILE_STEP_SYNC;
	return 1;
}

static int step_failed(struct file_lane *lane, struct file_request *r, int err)
{
	struct file_store *store = lane->store;

	if ((err == EAGAIN || err == EINTR) && r->retries < FILE_RETRIES) {
		r->retries++;
		count(&store->n_retries);
		return 1;
	}
	if (r->step == FILE_STEP_ALLOCATE && (err == EOPNOTSUPP || err == ENOSYS)) {
		if (r->io->opcode == GANTRY_OP_DISCARD)
			return finish(lane, r, GANTRY_S_OK);
		__atomic_store_n(&store->no_zero_range, 1, __ATOMIC_RELAXED);
		return plan_zero_data(lane, r);
	}
	if (r->step == FILE_STEP_WRITE && r->stable && err == EOPNOTSUPP) {
		__atomic_store_n(&store->no_stable, 1, __ATOMIC_RELAXED);
		r->stable = 0;
		return 1;
	}
	if (r->step == FILE_STEP_WRITE && r->stable && (err == ENOSPC || err == EDQUOT)) {
		/*
		 * Either the write itself failed, or the sync failed to write back older data. A
		 * retry without the sync shows which.
		 */
		r->stable_err = err;
		r->stable = 0;
		return 1;
	}
	if (r->step == FILE_STEP_SYNC || (r->step == FILE_STEP_WRITE && r->stable && err == EIO))
		fail_store(store, err);
	return finish(lane, r, outcome_status(err));
}

static int data_step_done(struct file_lane *lane, struct file_request *r, uint32_t bytes)
{
	struct file_store *store = lane->store;

	if (bytes > r->length)
		return finish(lane, r, GANTRY_S_IO);
	if (bytes < r->length) {
		count(&store->n_short);
		if (store->direct)
			bytes -= bytes % (uint32_t)store->conf->block;
		if (bytes == 0 && ++r->stalls == 2)
			return finish(lane, r, GANTRY_S_IO);
	}
	if (bytes && r->stable_err) {
		fail_store(store, r->stable_err);
		return finish(lane, r, outcome_status(r->stable_err));
	}
	if (bytes)
		r->stalls = 0;
	if (r->step == FILE_STEP_READ && r->data == r->bounce)
		memcpy((uint8_t *)r->io->data + r->done, r->bounce, bytes);
	r->done += bytes;
	if (r->done == r->io->length)
		return data_done(lane, r);
	plan_data(lane, r);
	return 1;
}

int file_step_done(struct file_lane *lane, struct file_request *r, ssize_t result)
{
	if (result < 0)
		return step_failed(lane, r, (int)-result);
	switch (r->step) {
	case FILE_STEP_READ:
	case FILE_STEP_WRITE:
		return data_step_done(lane, r, result > UINT32_MAX ? UINT32_MAX : (uint32_t)result);
	case FILE_STEP_ALLOCATE:
		return data_done(lane, r);
	case FILE_STEP_EXTENTS:
		return finish(lane, r, GANTRY_S_OK);
	default:
		return synced(lane, r);
	}
}
