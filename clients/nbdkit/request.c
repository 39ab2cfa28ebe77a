/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request.c - a request of NBD becomes one IO or several.
 *
 * NBD allows requests far longer than an IO of the volume. They are cut, and a few pieces are in
 * flight at a time.
 * After the first that fails no more are sent; what the others did stays done, as NBD allows.
 */
#include <errno.h>
#include <string.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "server.h"

#define PIECES 4 /* of one request, in flight */

struct request {
	struct server_waiter waiter;
	enum gantry_opcode opcode;
	unsigned flags;
	uint8_t *data;
	uint64_t offset; /* of what is left */
	uint32_t left;   /* bytes */
	int result;      /* of the first IO that failed: -errno */
	/* why it was refused; NULL: it was not, or nobody knows more than the errno */
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
	default:
		return gantry_queue_flush(queue, done, r);
	}
}

static uint32_t next_length(const struct request *r)
{
	const struct gantry_volume_info *info = server_info();
	uint32_t most = r->data ? server_piece() : info->max_io - info->max_io % info->block_size;

	return r->left < most ? r->left : most;
}

static int try_submit(struct request *r, uint32_t length)
{
	return r->waiter.inflight < PIECES ? submit(r, length) : -EAGAIN;
}

/* Send the next piece when there is room for it. It may be of no bytes: a flush is. */
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
		r->data += length;
}

/* Send all of it, wait for all of it; under the queue's lock. */
static void run(struct request *r)
{
	do
		send_piece(r);
	while (r->left && !r->result);
	while (r->waiter.inflight)
		server_wait(&r->waiter);
}

/* What the client is to see: nbdkit turns an errno that NBD does not know into EINVAL. */
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
		[GANTRY_OP_DISCARD] = "trim",
	};

	return names[opcode];
}

/* A session that is lost is told once, not for each request. */
static int failed(const struct request *r, uint32_t count, uint64_t offset)
{
	int err = -r->result;
	const char *text = r->text ? r->text : strerror(err);

	if (err != ENOTCONN && err != ESTALE)
		nbdkit_error("%s of %u bytes at %llu: %s", name(r->opcode), count,
			     (unsigned long long)offset, text);
	else if (server_lost())
		nbdkit_error(
			"the volume is lost: %s. Every request fails with EIO, until all clients have left and one comes "
			"again; to make requests wait instead, see connect.resume in gantry.conf(5)",
			text);
	nbdkit_set_error(nbd_errno(err));
	return -1;
}

static int aligned(uint32_t count, uint64_t offset)
{
	uint32_t block = server_info()->block_size;

	if ((count | offset) % block == 0)
		return 1;
	nbdkit_error(
		"%u bytes at %llu: not in whole blocks of %u bytes; for clients that do not ask for the block size there "
		"is nbdkit's --filter=blocksize",
		count, (unsigned long long)offset, block);
	nbdkit_set_error(EINVAL);
	return 0;
}

int server_request(enum gantry_opcode opcode, void *data, uint32_t count, uint64_t offset,
		   unsigned flags)
{
	struct request r = {
		.opcode = opcode, .flags = flags, .data = data, .offset = offset, .left = count};

	if (!aligned(count, offset))
		return -1;
	r.waiter.queue = server_queue();
	sem_init(&r.waiter.wake, 0, 0);
	server_enter(r.waiter.queue);
	run(&r);
	server_leave(r.waiter.queue);
	return r.result ? failed(&r, count, offset) : 0;
}
