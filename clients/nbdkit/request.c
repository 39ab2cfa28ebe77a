/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request.c - a request of NBD becomes one IO or several.
 *
 * NBD allows requests far longer than an IO of the volume. They are cut, and as many pieces as the queue is deep are in
 * flight at a time. After the first that fails no more are sent; what the others did stays done, as NBD allows.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "server.h"

#define YIELDS 4

struct request {
	struct gantry_queue *queue;
	enum gantry_opcode opcode;
	unsigned flags;
	uint8_t *data;
	uint64_t offset; /* of what is left */
	uint32_t left;   /* bytes */
	int result;      /* of the first IO that failed: -errno */
	const char *text; /* why it was refused; NULL: it was not, or nobody knows more than the errno */
};

static void done(void *arg, int result)
{
	struct request *r = arg;

	if (result && !r->result)
		r->result = result;
}

static int submit(struct request *r, uint32_t length)
{
	switch (r->opcode) {
	case GANTRY_OP_READ:
		return gantry_queue_read(r->queue, r->data, length, r->offset, done, r);
	case GANTRY_OP_WRITE:
		return gantry_queue_write(r->queue, r->data, length, r->offset, r->flags, done, r);
	case GANTRY_OP_WRITE_ZEROES:
		return gantry_queue_write_zeroes(r->queue, length, r->offset, r->flags, done, r);
	case GANTRY_OP_DISCARD:
		return gantry_queue_discard(r->queue, length, r->offset, done, r);
	default:
		return gantry_queue_flush(r->queue, done, r);
	}
}

static uint32_t next_length(const struct request *r)
{
	const struct gantry_volume_info *info = server_info();
	uint32_t most = r->data ? server_piece() : info->max_io - info->max_io % info->block_size;

	return r->left < most ? r->left : most;
}

/*
 * Until something of it has completed. Whoever does the IO may need this very processor, and so may threads with requests
 * that could go out together with this one: they go first.
 */
static void wait_some(struct request *r)
{
	int i;

	for (i = 0; i < YIELDS; i++) {
		if (gantry_queue_poll(r->queue)) /* a target inside this process does it right here */
			return;
		sched_yield();
	}
	gantry_queue_wait(r->queue, -1);
}

/* Send the next piece when the queue has room for it. It may be of no bytes: a flush is. */
static void send_piece(struct request *r)
{
	uint32_t length = next_length(r);
	int rc = submit(r, length);

	while (rc == -EAGAIN) {
		wait_some(r);
		if (r->result)
			return;
		rc = submit(r, length);
	}
	if (rc) {
		r->text = gantry_error();
		done(r, rc);
		return;
	}
	r->left -= length;
	r->offset += length;
	if (r->data)
		r->data += length;
}

/* Send all of it, wait for all of it. */
static void run(struct request *r)
{
	do
		send_piece(r);
	while (r->left && !r->result);
	while (gantry_queue_inflight(r->queue))
		wait_some(r);
}

/* What the client is to see: nbdkit turns an errno that NBD does not know into EINVAL. */
static int nbd_errno(int err)
{
	static const int known[] = { EPERM, EROFS, EINVAL, ENOMEM, ENOSPC, EOPNOTSUPP };
	unsigned i;

	for (i = 0; i < sizeof known / sizeof known[0]; i++)
		if (err == known[i])
			return err;
	return EIO;
}

static const char *name(enum gantry_opcode opcode)
{
	static const char *const names[GANTRY_OP_COUNT] = {
		[GANTRY_OP_READ] = "read",
		[GANTRY_OP_WRITE] = "write",
		[GANTRY_OP_FLUSH] = "flush",
		[GANTRY_OP_WRITE_ZEROES] = "write zeroes",
		[GANTRY_OP_DISCARD] = "trim",
	};

	return names[opcode];
}

/* A session that is lost is told once, not for each request. */
static int failed(const struct request *r, uint32_t count, uint64_t offset)
{
	int err = -r->result;
	const char *text = r->text ? r->text : strerror(err);

	if (err != ENOTCONN)
		nbdkit_error("%s of %u bytes at %llu: %s", name(r->opcode), count, (unsigned long long)offset, text);
	else if (server_lost())
		nbdkit_error("the volume is lost: %s. Every request fails with EIO, until all clients have left and one comes "
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
	nbdkit_error("%u bytes at %llu: not in whole blocks of %u bytes; for clients that do not ask for the block size there "
		     "is nbdkit's --filter=blocksize",
		     count, (unsigned long long)offset, block);
	nbdkit_set_error(EINVAL);
	return 0;
}

int server_request(enum gantry_opcode opcode, void *data, uint32_t count, uint64_t offset, unsigned flags)
{
	struct request r = { .opcode = opcode, .flags = flags, .data = data, .offset = offset, .left = count };
	struct server_queue *own;

	if (!aligned(count, offset))
		return -1;
	own = server_take();
	if (!own) {
		nbdkit_set_error(EIO);
		return -1;
	}
	r.queue = own->queue;
	run(&r);
	server_give(own);
	return r.result ? failed(&r, count, offset) : 0;
}
