/* SPDX-License-Identifier: BSD-3-Clause */
/* submit.c - checks an IO of the program and submits it. Thread of the caller. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib_priv.h"

struct wish {
	uint8_t opcode, flags;
	void *buf; /* NULL: the operation has no data */
	uint64_t length, offset;
	gantry_done_fn *done;
	void *arg;
	const struct iovec *iov; /* pieces of an IO with a list; else NULL */
	uint32_t n_iov;
};

/* Where a buffer is in memory that the session exports. */
struct spot {
	uint32_t region;   /* handle */
	uint64_t offset;   /* in the region */
	uint64_t left;     /* bytes from there to the end of the memory */
	uint8_t *data;     /* address for stages */
	uint64_t memories; /* as in struct gc_request */
};

static const char *const op_names[GANTRY_OP_COUNT] = {"nop",          "read",    "write",  "flush",
						      "write_zeroes", "discard", "extents"};

static int check_range(const struct gantry_volume_info *info, const struct wish *wish)
{
	uint64_t size = __atomic_load_n(&info->size, __ATOMIC_RELAXED);

	if (wish->length == 0 || wish->length % info->block_size || wish->offset % info->block_size)
		return gc_error(
			-EINVAL,
			"invalid range (length=%llu, offset=%llu, block_size=%u): use multiples of the block size, "
			"and a length above 0",
			(unsigned long long)wish->length, (unsigned long long)wish->offset,
			info->block_size);
	if (!gantry_range_ok(wish->offset, wish->length, size))
		return gc_error(
			-ERANGE,
			"range exceeds the volume (length=%llu, offset=%llu, limit size=%llu)",
			(unsigned long long)wish->length, (unsigned long long)wish->offset,
			(unsigned long long)size);
	if (wish->length > info->max_io && wish->opcode != GANTRY_OP_EXTENTS)
		return gc_error(-EMSGSIZE, "IO too long (length=%llu, limit max_io=%u): divide it",
				(unsigned long long)wish->length, info->max_io);
	return 0;
}

/* Returns 1 and the place of a buffer in exported memory; 0: it is in other memory. */
static int find_spot(const struct gantry_volume *volume, const void *buf, struct spot *spot)
{
	const uint64_t bytes = volume->attr.buffer_bytes;
	uint64_t at = (uint64_t)((uintptr_t)buf - (uintptr_t)volume->buffers);
	const struct gantry_memory *memory;

	if (at < bytes) {
		*spot = (struct spot){.region = GANTRY_ENGINE_HANDLE,
				      .offset = volume->buffers_offset + at,
				      .left = bytes - at,
				      .data = volume->buffers + at};
		return 1;
	}
	memory = gc_memory_find(volume, buf, &at, &spot->left);
	if (!memory)
		return 0;
	spot->region = GANTRY_ENGINE_HANDLE + 1 + memory->index;
	spot->offset = at;
	spot->data = (uint8_t *)memory->region->addr + at;
	spot->memories = 1ull << memory->index;
	return 1;
}

/*
 * Check the pieces of an IO with a list. spots: one for each piece. Returns 0, -EOPNOTSUPP, -EINVAL
 * or -EMSGSIZE.
 */
static int check_pieces(const struct gantry_volume *volume, const struct wish *wish,
			struct spot *spots)
{
	if (!(volume->info.flags & GANTRY_VOLUME_LISTS))
		return gc_error_static(-EOPNOTSUPP, "the volume does not support several pieces");
	if (wish->n_iov == 0 || wish->n_iov > GANTRY_LIST_MAX || wish->length > GANTRY_LIST_BYTES)
		return gc_error(
			-EMSGSIZE,
			"invalid pieces (n=%u, length=%llu, limits %u and %u): divide the IO",
			wish->n_iov, (unsigned long long)wish->length, GANTRY_LIST_MAX,
			GANTRY_LIST_BYTES);
	for (uint32_t i = 0; i < wish->n_iov; i++) {
		if (wish->iov[i].iov_len == 0 ||
		    !find_spot(volume, wish->iov[i].iov_base, &spots[i]) ||
		    wish->iov[i].iov_len > spots[i].left)
			return gc_error(-EINVAL,
					"piece %u is empty, or outside gantry_volume_buffers() and "
					"registered memory",
					i);
	}
	return 0;
}

static int check(const struct gantry_volume *volume, const struct wish *wish)
{
	const struct gantry_volume_info *info = &volume->info;

	if (!wish->done)
		return gc_error_static(-EINVAL, "no function `done` is given");
	if (wish->flags & ~(GANTRY_IO_FUA | (wish->iov ? GANTRY_IO_LIST : 0)))
		return gc_error(-EINVAL, "unknown flags 0x%x: only GANTRY_IO_FUA is supported",
				wish->flags);
	if (gantry_op_writes(wish->opcode) && (info->flags & GANTRY_VOLUME_READ_ONLY))
		return gc_error_static(-EROFS, "the volume is read-only");
	if (!(info->ops & 1u << wish->opcode))
		return gc_error(-EOPNOTSUPP, "the volume does not support %s",
				op_names[wish->opcode]);
	return gantry_op_has_range(wish->opcode) ? check_range(info, wish) : 0;
}

/*
 * Locate the data of an IO. *spot: if the buffer is in exported memory. *copy_p: 1 if the data must
 * be copied through the buffer of the slot. Returns 0, -EINVAL or -EMSGSIZE.
 */
static int place(const struct gantry_volume *volume, const struct wish *wish, struct spot *spot,
		 int *copy_p)
{
	if (!wish->buf)
		return gc_error_static(-EINVAL, "no buffer is given");
	if (wish->opcode == GANTRY_OP_EXTENTS) {
		*copy_p = 1; /* the slot has GANTRY_ENGINE_ALIGN bytes or more */
		return 0;
	}
	*copy_p = !find_spot(volume, wish->buf, spot);
	if (!*copy_p) {
		if (wish->length > spot->left)
			return gc_error_static(
				-EINVAL,
				"the buffer begins in gantry_volume_buffers() or registered memory, "
				"and ends behind it");
	} else if (wish->length > volume->copy_bytes) {
		return gc_error(
			-EMSGSIZE,
			"IO too long to be copied (length=%llu, limit copy_bytes=%u): use a buffer in "
			"gantry_volume_buffers() or registered memory, or raise copy_bytes",
			(unsigned long long)wish->length, volume->copy_bytes);
	}
	return 0;
}

int gc_refused(struct gantry_queue *queue, int rc)
{
	struct gantry_volume *volume = queue->volume;
	int is_down;

	if (rc != -ENOTCONN && rc != -ESTALE)
		return gc_error(rc, "a stage rejected the IO: %s", strerror(-rc));
	gn_worker_enter(queue->worker);
	is_down = !queue->engine->up;
	gn_worker_leave(queue->worker);
	pthread_mutex_lock(&volume->lock);
	/*
	 * The control thread ends the queues before it stores the reason of the end. Wait for the
	 * reason.
	 */
	while (is_down && volume->state == GC_OPEN)
		pthread_cond_wait(&volume->changed, &volume->lock);
	gc_error(rc, "the session is lost: %s", volume->text[0] ? volume->text : "just now");
	pthread_mutex_unlock(&volume->lock);
	return rc;
}

/* Returns true if the session is lost. IOs complete with SESSION_LOST before the queue is down. */
static int is_lost(const struct gantry_engine_queue *engine, uint32_t depth)
{
	uint32_t i = 0;

	while (i < depth && engine->ios[i].status != GANTRY_S_SESSION_LOST)
		i++;
	return i < depth || !engine->up;
}

/*
 * Set the error text of an IO that finds no free slot. Returns -EAGAIN, or -ENOTCONN if the session
 * must be opened again.
 */
static int no_slot(struct gantry_queue *queue)
{
	uint32_t depth = queue->volume->attr.depth;
	int lost;

	if (queue->engine->n_quarantined < depth)
		return gc_error_static(
			-EAGAIN,
			"all slots of the queue are in flight: call gantry_queue_poll() first");
	gn_worker_enter(queue->worker);
	gn_worker_turn(queue->worker); /* late replies release slots */
	gantry_engine_poll(queue->engine);
	lost = is_lost(queue->engine, depth);
	gn_worker_leave(queue->worker);
	if (queue->engine->n_free)
		return gc_error_static(
			-EAGAIN,
			"all slots of the queue were taken; late replies have released some just now: try again");
	if (lost)
		return gc_refused(queue, -ENOTCONN);
	return gc_error_static(
		-ENOTCONN,
		"all buffers of the queue are quarantined after timeouts: open the volume again");
}

/* Write the list to the buffer of the slot, where the target reads it. */
static void fill_list(struct gantry_queue *queue, struct gantry_io *io, const struct wish *wish,
		      const struct spot *spots)
{
	struct gantry_list_entry *entry = gantry_engine_slot_buffer(queue->engine, io);
	struct gantry_pieces *pieces = &queue->pieces[io->slot];

	for (uint32_t i = 0; i < wish->n_iov; i++) {
		entry[i] = (struct gantry_list_entry){.region = spots[i].region,
						      .length = (uint32_t)wish->iov[i].iov_len,
						      .offset = spots[i].offset};
		pieces->piece[i] = (struct iovec){spots[i].data, wish->iov[i].iov_len};
	}
	pieces->count = wish->n_iov;
	io->data = pieces;
}

/*
 * Fill the descriptor. spots: of the pieces, or of the buffer. copy: the data goes through the
 * buffer of the slot.
 */
static void fill(struct gantry_queue *queue, struct gantry_io *io, const struct wish *wish,
		 const struct spot *spots, int copy)
{
	struct gantry_engine_queue *engine = queue->engine;

	gantry_engine_fill(engine, io, wish->opcode, wish->flags, wish->offset,
			   (uint32_t)wish->length, gantry_engine_slot_offset(engine, io));
	if (wish->iov) {
		fill_list(queue, io, wish, spots);
	} else if (copy) {
		if (wish->opcode != GANTRY_OP_WRITE)
			return;
		memcpy(gantry_engine_slot_buffer(engine, io), wish->buf, wish->length);
		queue->copied += wish->length;
	} else if (gantry_op_has_buffer(wish->opcode)) {
		io->region = spots->region;
		io->region_offset = spots->offset;
		io->data = spots->data;
	}
}

/* Returns the set of memories that the pieces or the buffer of an IO are in. */
static uint64_t memories_of(const struct wish *wish, const struct spot *spots)
{
	uint64_t set = spots[0].memories;

	for (uint32_t i = 1; i < wish->n_iov; i++)
		set |= spots[i].memories;
	return set;
}

static int submit(struct gantry_queue *queue, const struct wish *wish)
{
	struct gantry_volume *volume = queue->volume;
	struct gantry_engine_queue *engine = queue->engine;
	struct spot spots[GANTRY_LIST_MAX];
	struct gc_request *request;
	struct gantry_io *io;
	int copy = 0, rc;

	rc = gc_check_fork(volume);
	if (!rc)
		rc = check(volume, wish);
	spots[0] = (struct spot){.memories = 0};
	if (!rc && wish->iov)
		rc = check_pieces(volume, wish, spots);
	else if (!rc && gantry_op_has_buffer(wish->opcode))
		rc = place(volume, wish, spots, &copy);
	if (rc)
		return rc;
	if (queue->closing)
		return gc_error_static(-ENOTCONN, "the queue is being closed");
	io = gantry_engine_get(engine);
	if (!io)
		return no_slot(queue);
	request = &queue->requests[io->slot];
	*request = (struct gc_request){wish->done, wish->arg,
				       copy && wish->opcode != GANTRY_OP_WRITE ? wish->buf : NULL,
				       memories_of(wish, spots)};
	fill(queue, io, wish, spots, copy);
	gc_memories_hold(volume, request->memories);
	gn_worker_enter(queue->worker);
	rc = gantry_engine_submit(engine, io);
	gn_worker_leave(queue->worker);
	if (rc) {
		gc_memories_drop(volume, request->memories);
		gantry_engine_put(engine, io);
		return gc_refused(queue, rc);
	}
	queue->n_open++;
	return 0;
}

static int submit_flags(struct gantry_queue *queue, struct wish *wish, unsigned flags)
{
	if (flags > UINT8_MAX)
		return gc_error(-EINVAL, "unknown flags 0x%x: only GANTRY_IO_FUA is supported",
				flags);
	wish->flags = (uint8_t)flags;
	return submit(queue, wish);
}

int gantry_queue_read(struct gantry_queue *queue, void *buf, uint64_t length, uint64_t offset,
		      gantry_done_fn *done, void *arg)
{
	const struct wish wish = {GANTRY_OP_READ, 0, buf, length, offset, done, arg, NULL, 0};

	return submit(queue, &wish);
}

int gantry_queue_write(struct gantry_queue *queue, const void *buf, uint64_t length,
		       uint64_t offset, unsigned flags, gantry_done_fn *done, void *arg)
{
	struct wish wish = {GANTRY_OP_WRITE, 0, (void *)buf, length, offset, done, arg, NULL, 0};

	return submit_flags(queue, &wish, flags);
}

int gantry_queue_flush(struct gantry_queue *queue, gantry_done_fn *done, void *arg)
{
	const struct wish wish = {GANTRY_OP_FLUSH, 0, NULL, 0, 0, done, arg, NULL, 0};

	return submit(queue, &wish);
}

int gantry_queue_discard(struct gantry_queue *queue, uint64_t length, uint64_t offset,
			 gantry_done_fn *done, void *arg)
{
	const struct wish wish = {GANTRY_OP_DISCARD, 0, NULL, length, offset, done, arg, NULL, 0};

	return submit(queue, &wish);
}

int gantry_queue_write_zeroes(struct gantry_queue *queue, uint64_t length, uint64_t offset,
			      unsigned flags, gantry_done_fn *done, void *arg)
{
	struct wish wish = {GANTRY_OP_WRITE_ZEROES, 0, NULL, length, offset, done, arg, NULL, 0};

	return submit_flags(queue, &wish, flags);
}

int gantry_queue_extents(struct gantry_queue *queue, struct gantry_extents *extents,
			 uint64_t length, uint64_t offset, gantry_done_fn *done, void *arg)
{
	const struct gantry_volume_info *info = &queue->volume->info;
	const uint64_t most = UINT32_MAX - UINT16_MAX; /* a multiple of each block size */
	struct wish wish = {GANTRY_OP_EXTENTS, 0, extents, length, offset, done, arg, NULL, 0};

	if (length > most && length % info->block_size == 0 &&
	    gantry_range_ok(offset, length, __atomic_load_n(&info->size, __ATOMIC_RELAXED)))
		wish.length = most;
	return submit(queue, &wish);
}

static int submit_pieces(struct gantry_queue *queue, struct wish *wish, unsigned flags)
{
	for (uint32_t i = 0; wish->iov && i < wish->n_iov && i < GANTRY_LIST_MAX; i++)
		if (__builtin_add_overflow(wish->length, wish->iov[i].iov_len, &wish->length))
			return gc_error_static(-EINVAL, "the lengths of the pieces overflow");
	if (!wish->iov)
		return gc_error_static(-EINVAL, "no pieces are given");
	return submit_flags(queue, wish, flags | (flags <= UINT8_MAX ? GANTRY_IO_LIST : 0));
}

int gantry_queue_readv(struct gantry_queue *queue, const struct iovec *iov, uint32_t n,
		       uint64_t offset, gantry_done_fn *done, void *arg)
{
	struct wish wish = {GANTRY_OP_READ, 0, NULL, 0, offset, done, arg, .iov = iov, .n_iov = n};

	return submit_pieces(queue, &wish, 0);
}

int gantry_queue_writev(struct gantry_queue *queue, const struct iovec *iov, uint32_t n,
			uint64_t offset, unsigned flags, gantry_done_fn *done, void *arg)
{
	struct wish wish = {GANTRY_OP_WRITE, 0, NULL, 0, offset, done, arg, .iov = iov, .n_iov = n};

	return submit_pieces(queue, &wish, flags);
}
