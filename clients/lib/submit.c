/* SPDX-License-Identifier: BSD-3-Clause */
/* submit.c - an IO of the caller's: is it possible, and into a slot with it. */
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
};

static const char *const op_names[GANTRY_OP_COUNT] = {"nop",   "read",         "write",
						      "flush", "write_zeroes", "discard"};

static int check_range(const struct gantry_volume_info *info, const struct wish *wish)
{
	if (wish->length == 0 || wish->length % info->block_size || wish->offset % info->block_size)
		return gc_error(
			-EINVAL,
			"%llu bytes at %llu: offset and length must be multiples of %u bytes, and some",
			(unsigned long long)wish->length, (unsigned long long)wish->offset,
			info->block_size);
	if (!gantry_range_ok(wish->offset, wish->length, info->size))
		return gc_error(-ERANGE, "%llu bytes at %llu: the volume has %llu bytes",
				(unsigned long long)wish->length, (unsigned long long)wish->offset,
				(unsigned long long)info->size);
	if (wish->length > info->max_io)
		return gc_error(-EMSGSIZE, "%llu bytes in one IO; the volume takes up to %u",
				(unsigned long long)wish->length, info->max_io);
	return 0;
}

static int check(const struct gantry_volume *volume, const struct wish *wish)
{
	const struct gantry_volume_info *info = &volume->info;

	if (!wish->done)
		return gc_error_static(-EINVAL, "no function `done` is given");
	if (wish->flags & ~GANTRY_IO_FUA)
		return gc_error(-EINVAL, "unknown flags 0x%x; GANTRY_IO_FUA is the one there is",
				wish->flags);
	if (gantry_op_writes(wish->opcode) && (info->flags & GANTRY_VOLUME_READ_ONLY))
		return gc_error_static(-EROFS, "the volume is read-only");
	if (!(info->ops & 1u << wish->opcode))
		return gc_error(-EOPNOTSUPP, "the volume does not do %s", op_names[wish->opcode]);
	return gantry_op_has_range(wish->opcode) ? check_range(info, wish) : 0;
}

/* Where the data is in the region; *copy_p: in the slot's own buffer. */
static int place(const struct gantry_volume *volume, const struct wish *wish, uint64_t *offset_p,
		 int *copy_p)
{
	uint64_t at = (uint64_t)((uintptr_t)wish->buf - (uintptr_t)volume->buffers);

	if (!wish->buf)
		return gc_error_static(-EINVAL, "no buffer is given");
	*copy_p = at >= volume->attr.buffer_bytes;
	if (!*copy_p) {
		*offset_p = volume->buffers_offset + at;
		if (wish->length > volume->attr.buffer_bytes - at)
			return gc_error_static(
				-EINVAL,
				"the buffer begins in gantry_volume_buffers() and ends behind it");
	} else if (wish->length > volume->copy_bytes) {
		return gc_error(
			-EMSGSIZE,
			"%llu bytes; the volume was opened to copy up to %u (copy_bytes); more is possible with "
			"buffers in gantry_volume_buffers()",
			(unsigned long long)wish->length, volume->copy_bytes);
	}
	return 0;
}

int gc_refused(struct gantry_queue *queue, int rc)
{
	struct gantry_volume *volume = queue->volume;

	if (rc != -ENOTCONN && rc != -ESTALE)
		return gc_error(rc, "refused by a stage: %s", strerror(-rc));
	pthread_mutex_lock(&volume->lock);
	/*
	 * the control thread takes the queues down before it reports the end of the session, and
	 * then its reason
	 */
	while (!queue->engine->up && volume->state == GC_OPEN)
		pthread_cond_wait(&volume->changed, &volume->lock);
	gc_error(rc, "the session is lost: %s", volume->text[0] ? volume->text : "just now");
	pthread_mutex_unlock(&volume->lock);
	return rc;
}

/* IOs come back before the end of the session is known. */
static int is_lost(const struct gc_queue *engine, uint32_t depth)
{
	uint32_t i = 0;

	while (i < depth && engine->ios[i].status != GANTRY_S_SESSION_LOST)
		i++;
	return i < depth || !engine->up;
}

/* Who has them all? */
static int no_slot(struct gantry_queue *queue)
{
	uint32_t depth = queue->volume->attr.depth;
	int lost;

	if (queue->engine->n_quarantined < depth)
		return gc_error_static(
			-EAGAIN,
			"as many IOs as the queue's depth are in flight; call gantry_queue_poll() first");
	gn_worker_enter(queue->worker);
	gn_worker_turn(queue->worker); /* late answers free some */
	gc_queue_poll(queue->engine);
	lost = is_lost(queue->engine, depth);
	gn_worker_leave(queue->worker);
	if (queue->engine->n_free)
		return gc_error_static(-EAGAIN,
				       "IOs that had timed out were answered just now; try again");
	if (lost)
		return gc_refused(queue, -ENOTCONN);
	return gc_error_static(
		-ENOTCONN,
		"after timeouts, none of the queue's buffers is safe to use; open the volume again");
}

static int submit(struct gantry_queue *queue, const struct wish *wish)
{
	struct gantry_volume *volume = queue->volume;
	struct gc_queue *engine = queue->engine;
	uint64_t data = 0;
	struct gc_request *request;
	struct gantry_io *io;
	int copy = 0, rc;

	rc = gc_check_fork(volume);
	if (!rc)
		rc = check(volume, wish);
	if (!rc && gantry_op_has_data(wish->opcode))
		rc = place(volume, wish, &data, &copy);
	if (rc)
		return rc;
	if (queue->closing)
		return gc_error_static(-ENOTCONN, "the queue is being closed");
	io = gc_queue_get(engine);
	if (!io)
		return no_slot(queue);
	if (copy)
		data = gc_slot_offset(engine, io);
	if (copy && wish->opcode == GANTRY_OP_WRITE)
		memcpy(gc_slot_buffer(engine, io), wish->buf, wish->length);
	request = &queue->requests[io->slot];
	*request = (struct gc_request){wish->done, wish->arg,
				       copy && wish->opcode == GANTRY_OP_READ ? wish->buf : NULL};
	gc_io_fill(engine, io, wish->opcode, wish->flags, wish->offset, (uint32_t)wish->length,
		   data);
	gn_worker_enter(queue->worker);
	rc = gc_queue_submit(engine, io);
	gn_worker_leave(queue->worker);
	if (rc) {
		gc_queue_put(engine, io);
		return gc_refused(queue, rc);
	}
	queue->n_open++;
	return 0;
}

static int submit_flags(struct gantry_queue *queue, struct wish *wish, unsigned flags)
{
	if (flags > UINT8_MAX)
		return gc_error(-EINVAL, "unknown flags 0x%x; GANTRY_IO_FUA is the one there is",
				flags);
	wish->flags = (uint8_t)flags;
	return submit(queue, wish);
}

int gantry_queue_read(struct gantry_queue *queue, void *buf, uint64_t length, uint64_t offset,
		      gantry_done_fn *done, void *arg)
{
	const struct wish wish = {GANTRY_OP_READ, 0, buf, length, offset, done, arg};

	return submit(queue, &wish);
}

int gantry_queue_write(struct gantry_queue *queue, const void *buf, uint64_t length,
		       uint64_t offset, unsigned flags, gantry_done_fn *done, void *arg)
{
	struct wish wish = {GANTRY_OP_WRITE, 0, (void *)buf, length, offset, done, arg};

	return submit_flags(queue, &wish, flags);
}

int gantry_queue_flush(struct gantry_queue *queue, gantry_done_fn *done, void *arg)
{
	const struct wish wish = {GANTRY_OP_FLUSH, 0, NULL, 0, 0, done, arg};

	return submit(queue, &wish);
}

int gantry_queue_discard(struct gantry_queue *queue, uint64_t length, uint64_t offset,
			 gantry_done_fn *done, void *arg)
{
	const struct wish wish = {GANTRY_OP_DISCARD, 0, NULL, length, offset, done, arg};

	return submit(queue, &wish);
}

int gantry_queue_write_zeroes(struct gantry_queue *queue, uint64_t length, uint64_t offset,
			      unsigned flags, gantry_done_fn *done, void *arg)
{
	struct wish wish = {GANTRY_OP_WRITE_ZEROES, 0, NULL, length, offset, done, arg};

	return submit_flags(queue, &wish, flags);
}
