/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbdkit_request.c - divides a request of NBD into IOs.
 *
 * A request of NBD can be far longer than an IO of the volume. It is divided into pieces, of which
 * a few are in flight at a time. After the first error no more pieces are submitted. Completed
 * pieces remain in effect, which NBD permits.
 */
#include <errno.h>
#include <string.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "nbdkit_server.h"

#define PIECES 4 /* pieces of one request in flight */

struct request {
	struct server_waiter waiter;
	enum gantry_opcode opcode;
	unsigned flags;
	void *data;
	uint64_t offset; /* offset in the volume of the bytes that were not submitted */
	uint32_t left;   /* bytes that were not submitted */
	int result;      /* -errno of the first IO that failed */
	/* Error text of a rejected IO; NULL: none was rejected, or only the errno is known. */
	const char *text;
};

static void done(void *arg, int result)
{
	struct request *r = arg;

	if (result && !r->result)
		r->result = result;
	server_completed(&r->waiter);
}

static int submit(struct request *r, uint32_t length)
{
	struct gantry_queue *queue = r->waiter.queue->queue;

	switch (r->opcode) {
	case GANTRY_OP_READ:
		return gantry_queue_read(queue, r->data, length, r->offset, done, r);
	case GANTRY_OP_WRITE:
		return gantry_queue_write(queue, r->data, length, r->offset, r->flags, done, r);
	case GANTRY_OP_WRITE_ZEROES:
		return gantry_queue_write_zeroes(queue, length, r->offset, r->flags, done, r);
	case GANTRY_OP_DISCARD:
		return gantry_queue_discard(queue, length, r->offset, done, r);
	case GANTRY_OP_EXTENTS:
		return gantry_queue_extents(queue, r->data, length, r->offset, done, r);
	default:
		return gantry_queue_flush(queue, done, r);
	}
}

static uint32_t next_length(const struct request *r)
{
	const struct gantry_volume_info *info = server_info();
	uint32_t max = r->data ? server_piece() : info->max_io - info->max_io % info->block_size;

	/* extents that cover less than the request are sufficient */
	return r->left < max || r->opcode == GANTRY_OP_EXTENTS ? r->left : max;
}

static int try_submit(struct request *r, uint32_t length)
{
	return r->waiter.inflight < PIECES ? submit(r, length) : -EAGAIN;
}

/* Submit the next piece when a slot is free. A flush is a piece of 0 bytes. */
static void send_piece(struct request *r)
{
	uint32_t length = next_length(r);
	int rc = try_submit(r, length);

	while (rc == -EAGAIN) {
		server_wait(&r->waiter);
		if (r->result)
			return;
		rc = try_submit(r, length);
	}
	if (rc) {
		r->text = gantry_error();
		r->result = rc;
		return;
	}
	r->waiter.inflight++;
	r->left -= length;
	r->offset += length;
	if (r->data)
		r->data = (uint8_t *)r->data + length;
}

/* Submit all pieces and wait for them. The caller holds the lock of the queue. */
static void run(struct request *r)
{
	do
		send_piece(r);
	while (r->left && !r->result);
	while (r->waiter.inflight)
		server_wait(&r->waiter);
}

/* Map an errno for the client: nbdkit would turn an errno that NBD does not define into EINVAL. */
static int nbd_errno(int err)
{
	static const int known[] = {EPERM, EROFS, EINVAL, ENOMEM, ENOSPC, EOPNOTSUPP};
	unsigned i;

	for (i = 0; i < sizeof known / sizeof known[0]; i++)
		if (err == known[i])
			return err;
	return EIO;
}

static const char *name(enum gantry_opcode opcode)
{
	static const char *const names[GANTRY_OP_COUNT] = {
		[GANTRY_OP_READ] = "read",    [GANTRY_OP_WRITE] = "write",
		[GANTRY_OP_FLUSH] = "flush",  [GANTRY_OP_WRITE_ZEROES] = "write zeroes",
		[GANTRY_OP_DISCARD] = "trim", [GANTRY_OP_EXTENTS] = "block status",
	};

	return names[opcode];
}

/* Report a failed request. The loss of the session is logged once, not for each request. */
static int failed(const struct request *r, uint32_t count, uint64_t offset)
{
	int err = -r->result;
	const char *text = r->text ? r->text : strerror(err);

	if (err != ENOTCONN && err != ESTALE)
		nbdkit_error("%s of %u bytes at %llu: %s", name(r->opcode), count,
			     (unsigned long long)offset, text);
	else if (server_lost())
		nbdkit_error(
			"the volume is lost: %s: every request fails with EIO until all clients have disconnected and one connects "
			"again; to make requests wait instead, see connect.resume in gantry.conf(5)",
			text);
	nbdkit_set_error(nbd_errno(err));
	return -1;
}

static int is_aligned(uint32_t count, uint64_t offset)
{
	uint32_t block = server_info()->block_size;

	if ((count | offset) % block == 0)
		return 1;
	nbdkit_error(
		"%u bytes at %llu: not in whole blocks of %u bytes: for clients that ignore the block size use "
		"nbdkit --filter=blocksize",
		count, (unsigned long long)offset, block);
	nbdkit_set_error(EINVAL);
	return 0;
}

int server_request(enum gantry_opcode opcode, void *data, uint32_t count, uint64_t offset,
		   unsigned flags)
{
	struct request r = {
		.opcode = opcode, .flags = flags, .data = data, .offset = offset, .left = count};

	if (!is_aligned(count, offset))
		return -1;
	r.waiter.queue = server_queue();
	sem_init(&r.waiter.wake, 0, 0);
	server_enter(r.waiter.queue);
	run(&r);
	server_leave(r.waiter.queue);
	return r.result ? failed(&r, count, offset) : 0;
}
