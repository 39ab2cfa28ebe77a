/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd_command.c - submits one IO as a command of libnbd, and evaluates the reply.
 *
 *     read            NBD_CMD_READ; the chunks of the reply must fill the whole buffer
 *     write           NBD_CMD_WRITE; with FUA, and without a server that has it, then a flush
 *     write_zeroes    NBD_CMD_WRITE_ZEROES; FUA as for a write
 *     discard         NBD_CMD_TRIM; FUA as for a write
 *     flush           NBD_CMD_FLUSH
 *     extents         NBD_CMD_BLOCK_STATUS, of the context base:allocation
 *
 * libnbd calls reply() while it processes a reply or the end of the connection. This function only
 * moves the request to the list of the lane. So nothing completes while libnbd holds its lock.
 */
#include <errno.h>

#include "../common/outcome.h"
#include "nbd.h"

static int wants_fua(const struct nb_request *r)
{
	return (r->io->flags & GANTRY_IO_FUA) && gantry_op_writes(r->io->opcode);
}

/* Map the errno of a reply to a status. */
static enum gantry_status status_of(const struct gantry_io *io, int err)
{
	if (err == EPERM)
		return gantry_op_writes(io->opcode) ? GANTRY_S_READ_ONLY : GANTRY_S_ACCESS;
	return outcome_status(err);
}

void nb_command_complete(struct nb_lane *lane, struct nb_request *r, enum gantry_status status)
{
	const struct gantry_host *host = lane->store->host;
	struct gantry_io *io = r->io;
	uint64_t ns = host->now_ns(host) - r->start_ns;

	if (gantry_unlikely(status != GANTRY_S_OK))
		nb_count(&lane->store->n_errors);
	io->hop_ns[GANTRY_HOP_BACKEND] = ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
	io->status = (uint16_t)status;
	r->io = NULL;
	r->use = NB_FREE;
	TAILQ_INSERT_HEAD(&lane->free, r, link);
	gantry_complete(io);
}

/* -- callbacks of libnbd -- */

static int reply(void *arg, int *error)
{
	struct nb_request *r = arg;
	struct nb_lane *lane = r->lane;

	if (lane->closing)
		return 1;
	r->error = *error;
	r->use = NB_DONE;
	TAILQ_REMOVE(&r->conn->sent, r, link);
	r->conn->n_sent--;
	lane->n_sent--;
	TAILQ_INSERT_TAIL(&lane->done, r, link);
	/*
	 * 1: libnbd frees the command. A call that submits a command, and then finds that the
	 * connection is lost, still reads the command after reply(). So nbd_close() frees this one.
	 */
	return !lane->sending;
}

static int chunk(void *arg, const void *data, size_t n, uint64_t offset, unsigned status,
		 int *error)
{
	struct nb_request *r = arg;

	(void)data;
	(void)offset;
	(void)error;
	if (status != LIBNBD_READ_ERROR)
		r->got += n;
	return 0;
}

/* Extents of the server, whose lengths need not be multiples of the block size. */
struct rounded {
	struct gantry_extents extents;
	uint32_t block;
	uint32_t part;  /* bytes of an incomplete block at the end */
	uint32_t flags; /* of this block: those that all its parts have */
};

/* Returns 0; -1: there is no space. */
static int add_rounded(struct rounded *out, uint32_t length, uint32_t flags)
{
	uint32_t whole, n;

	if (out->part) {
		n = out->block - out->part < length ? out->block - out->part : length;
		out->part += n;
		out->flags &= flags;
		length -= n;
		if (out->part < out->block)
			return 0;
		out->part = 0;
		if (gantry_extents_add(&out->extents, out->block, out->flags))
			return -1;
	}
	whole = length - length % out->block;
	if (whole && gantry_extents_add(&out->extents, whole, flags))
		return -1;
	out->part = length - whole;
	out->flags = flags;
	return 0;
}

static int extents(void *arg, const char *context, uint64_t offset, uint32_t *entries, size_t n,
		   int *error)
{
	struct nb_request *r = arg;
	uint32_t left = r->io->length;
	struct rounded out = {.block = r->lane->store->block_size};

	(void)context;
	(void)offset;
	(void)error;
	for (size_t i = 0; i + 1 < n && left; i += 2) {
		uint32_t length = entries[i] < left ? entries[i] : left;

		if (add_rounded(&out, length, entries[i + 1] & GANTRY_EXTENT_FLAGS))
			break;
		left -= length;
	}
	if (out.extents.count == 0 && out.part)
		gantry_extents_add(&out.extents, out.block, 0);
	r->got = out.extents.bytes;
	if (r->got && !r->lane->closing)
		gantry_extents_finish(r->io, &out.extents);
	return 0;
}

/* -- sending -- */

static int64_t issue(struct nbd_handle *h, struct nb_request *r)
{
	const struct nb_store *store = r->lane->store;
	const nbd_completion_callback done = {.callback = reply, .user_data = r};
	struct gantry_io *io = r->io;
	uint32_t flags = wants_fua(r) && store->export.fua ? LIBNBD_CMD_FLAG_FUA : 0;

	r->got = 0;
	r->n_written = __atomic_load_n(&store->n_written, __ATOMIC_ACQUIRE);
	if (r->flushing)
		return nbd_aio_flush(h, done, 0);
	switch (io->opcode) {
	case GANTRY_OP_READ:
		return nbd_aio_pread_structured(
			h, io->data, io->length, io->offset,
			(nbd_chunk_callback){.callback = chunk, .user_data = r}, done, 0);
	case GANTRY_OP_WRITE:
		return nbd_aio_pwrite(h, io->data, io->length, io->offset, done, flags);
	case GANTRY_OP_WRITE_ZEROES:
		return nbd_aio_zero(h, io->length, io->offset, done, flags);
	case GANTRY_OP_DISCARD:
		return nbd_aio_trim(h, io->length, io->offset, done, flags);
	case GANTRY_OP_EXTENTS:
		return nbd_aio_block_status(
			h, io->length, io->offset,
			(nbd_extent_callback){.callback = extents, .user_data = r}, done, 0);
	default:
		return nbd_aio_flush(h, done, 0);
	}
}

/* A connection of an older incarnation is closed at the next poll, which discards its replies. */
static struct nb_conn *pick(struct nb_lane *lane)
{
	const uint64_t incarnation = nb_get(&lane->store->incarnation);

	for (uint32_t i = 0; i < lane->n_conns; i++) {
		struct nb_conn *conn = &lane->conns[lane->next_conn];

		if (++lane->next_conn == lane->n_conns)
			lane->next_conn = 0;
		if (conn->handle && !conn->broken && conn->incarnation == incarnation)
			return conn;
	}
	return NULL;
}

/* Returns -1: the request can be sent; else the status with which the IO completes at once. */
static int answer_at_once(struct nb_lane *lane, const struct nb_request *r)
{
	struct nb_store *store = lane->store;
	const struct gantry_io *io = r->io;

	if (gantry_unlikely(__atomic_load_n(&store->changed, __ATOMIC_RELAXED)))
		return GANTRY_S_IO;
	switch (io->opcode) {
	case GANTRY_OP_NOP:
		return GANTRY_S_OK;
	case GANTRY_OP_FLUSH:
		if (nb_queue_takes_loss(lane, io))
			return GANTRY_S_IO;
		return store->export.read_only ? GANTRY_S_OK : -1;
	case GANTRY_OP_READ:
	case GANTRY_OP_EXTENTS:
		return -1;
	case GANTRY_OP_WRITE:
	case GANTRY_OP_WRITE_ZEROES:
	case GANTRY_OP_DISCARD:
		if (store->export.read_only || store->conf->read_only)
			return GANTRY_S_READ_ONLY;
		if (wants_fua(r) && !store->export.fua && !store->export.flush)
			return GANTRY_S_UNSUPPORTED;
		return -1;
	default:
		return GANTRY_S_UNSUPPORTED;
	}
}

/* Returns 1 if the request is a write that must wait for a late write. */
static int must_hold(struct nb_lane *lane, struct nb_request *r)
{
	uint64_t until = gantry_op_writes(r->io->opcode) ? nb_late_blocks(lane->store, r) : 0;

	if (gantry_likely(until == 0))
		return 0;
	if (!r->held)
		nb_count(&lane->store->n_held);
	r->held = 1;
	if (until < lane->held_until_ns)
		lane->held_until_ns = until;
	return 1;
}

int nb_command_send(struct nb_lane *lane, struct nb_request *r)
{
	int status = answer_at_once(lane, r);
	struct nb_conn *conn;
	int64_t cookie;

	if (status >= 0) {
		nb_command_complete(lane, r, (enum gantry_status)status);
		return 0;
	}
	if (must_hold(lane, r))
		return -EAGAIN;
	conn = pick(lane);
	if (!conn)
		return -EAGAIN;
	r->conn = conn;
	r->use = NB_SENT;
	TAILQ_INSERT_TAIL(&conn->sent, r, link);
	conn->n_sent++;
	lane->n_sent++;
	lane->sending = 1;
	cookie = issue(conn->handle, r);
	lane->sending = 0;
	if (gantry_likely(cookie >= 0) || r->use == NB_DONE)
		return 0;
	TAILQ_REMOVE(&conn->sent, r, link);
	conn->n_sent--;
	lane->n_sent--;
	if (nbd_aio_is_dead(conn->handle) || nbd_aio_is_closed(conn->handle)) {
		conn->broken = 1;
		return -EAGAIN;
	}
	nb_command_complete(lane, r, status_of(r->io, nbd_get_errno()));
	return 0;
}

/* -- replies -- */

/* A flush covers all writes that were acknowledged when it was sent. */
static void note_flushed(struct nb_store *store, uint64_t n)
{
	uint64_t was = nb_get(&store->n_flushed);

	while (was < n && !__atomic_compare_exchange_n(&store->n_flushed, &was, n, 1,
						       __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

/*
 * Returns 1 if a write or flush that the server has executed must be sent again, because the store
 * has lost a connection since this one was made: the reply might come from a former process.
 *
 * The lane first counts the write, then reads the incarnation; nb_loss_note() does the opposite. So
 * at least one of the two sees the store of the other, and no write is acknowledged that the loss
 * does not take into account.
 */
static int is_outdated(const struct nb_store *store, const struct nb_request *r)
{
	return __atomic_load_n(&store->incarnation, __ATOMIC_SEQ_CST) != r->conn->incarnation;
}

static void written(struct nb_lane *lane, struct nb_request *r)
{
	struct nb_store *store = lane->store;

	if (!wants_fua(r))
		__atomic_fetch_add(&store->n_written, 1, __ATOMIC_SEQ_CST);
	if (gantry_unlikely(is_outdated(store, r))) {
		nb_lane_again(lane, r);
		return;
	}
	if (!wants_fua(r) || store->export.fua || r->flushing) {
		nb_command_complete(lane, r, GANTRY_S_OK);
		return;
	}
	r->flushing = 1;
	if (nb_command_send(lane, r)) {
		r->flushing = 0;
		nb_lane_wait(lane, r);
	}
}

static void flushed(struct nb_lane *lane, struct nb_request *r)
{
	struct nb_store *store = lane->store;

	if (gantry_unlikely(is_outdated(store, r))) {
		nb_lane_again(lane, r);
		return;
	}
	if (nb_queue_takes_loss(lane, r->io)) {
		nb_command_complete(lane, r, GANTRY_S_IO);
		return;
	}
	note_flushed(store, r->n_written);
	nb_command_complete(lane, r, GANTRY_S_OK);
}

static void evaluate(struct nb_lane *lane, struct nb_request *r)
{
	struct gantry_io *io = r->io;

	/* libnbd reports ENOTCONN for a lost connection; a server that ends reports ESHUTDOWN */
	if (r->error == ENOTCONN || r->error == ESHUTDOWN) {
		r->conn->broken = 1;
		nb_lane_again(lane, r);
	} else if (r->error) {
		nb_command_complete(lane, r, status_of(io, r->error));
	} else if (gantry_op_writes(io->opcode)) {
		written(lane, r);
	} else if (io->opcode == GANTRY_OP_FLUSH) {
		flushed(lane, r);
	} else if (io->opcode == GANTRY_OP_EXTENTS) {
		nb_command_complete(lane, r, r->got ? GANTRY_S_OK : GANTRY_S_IO);
	} else {
		nb_command_complete(lane, r, r->got == io->length ? GANTRY_S_OK : GANTRY_S_IO);
	}
}

unsigned nb_command_finish(struct nb_lane *lane)
{
	struct nb_request *r;
	unsigned n = 0;

	while ((r = TAILQ_FIRST(&lane->done))) {
		TAILQ_REMOVE(&lane->done, r, link);
		evaluate(lane, r);
		n++;
	}
	return n;
}
