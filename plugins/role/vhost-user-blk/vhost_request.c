/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost_request.c - turns requests of a guest into IOs. Lane's thread.
 *
 * A discard or a write of zeroes is one IO. The data of a read or write is in pieces. Each IO takes
 * the next part, by the first rule that applies:
 *
 *      the guest memory is copied     the next pieces, through the buffer of the slot
 *      the rest is in one piece       that piece
 *      the volume takes lists         the next pieces, as a list
 *      the piece has whole blocks     these blocks
 *      else                           the next pieces, through the buffer of the slot
 */
#include <linux/virtio_blk.h>
#include <string.h>

#include <endian.h>

#include "vhost.h"

#define SECTOR 512u

/* -- requests -- */

static int broken(struct vhost_queue *queue, const char *fault, const char *key, uint64_t value)
{
	queue->ring.fault = fault;
	queue->ring.fault_key = key;
	queue->ring.fault_value = value;
	return -1;
}

/* Complete a request without an IO. */
static int done(struct vhost_request *request, enum gantry_status status)
{
	request->status = (uint16_t)status;
	request->is_submitted = 1;
	return 1;
}

static void scatter(const struct vhost_request *request, uint32_t at, uint32_t skip,
		    const uint8_t *from, uint32_t bytes);

/* GET_ID: the serial number, without a final NUL if it has 20 characters. */
static int get_id(const struct vhost_queue *queue, struct vhost_request *request, uint32_t out)
{
	uint8_t id[VIRTIO_BLK_ID_BYTES] = {0};

	if (out != 0 || request->bytes < sizeof(id))
		return done(request, GANTRY_S_INVALID);
	memcpy(id, queue->role->serial, strnlen(queue->role->serial, sizeof(id)));
	scatter(request, 0, 0, id, sizeof(id));
	request->done = sizeof(id);
	return done(request, GANTRY_S_OK);
}

/* Check the range of request->bytes bytes at a sector, and set request->offset. */
static int set_range(const struct vhost_queue *queue, struct vhost_request *request,
		     uint64_t sector)
{
	const struct gantry_volume_info *volume = &queue->role->volume;
	/* the control thread stores a new size */
	const uint64_t size = __atomic_load_n(&volume->size, __ATOMIC_RELAXED),
		       mask = volume->block_size - 1;

	if (gantry_op_writes(request->opcode) && vhost_is_read_only(queue->role))
		return done(request, GANTRY_S_READ_ONLY);
	if (sector > size / SECTOR || !gantry_range_ok(sector * SECTOR, request->bytes, size))
		return done(request, GANTRY_S_RANGE);
	request->offset = sector * SECTOR;
	if (((request->offset | request->bytes) & mask) != 0)
		return done(request, GANTRY_S_INVALID);
	return request->bytes == 0 ? done(request, GANTRY_S_OK) : 0;
}

/*
 * DISCARD and WRITE_ZEROES: the data is one segment, which names the range. A request with more
 * segments fails, because the device offers one.
 */
static int discard_or_zero(struct vhost_queue *queue, struct vhost_request *request,
			   enum gantry_opcode opcode)
{
	const struct gantry_volume_info *volume = &queue->role->volume;
	const uint32_t accepted = opcode == GANTRY_OP_WRITE_ZEROES
					  ? VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP
					  : 0;
	struct virtio_blk_discard_write_zeroes segment;

	request->opcode = (uint8_t)opcode;
	request->n = 0;
	request->bytes = 0;
	if ((volume->ops & 1u << opcode) == 0)
		return done(request, GANTRY_S_UNSUPPORTED);
	if (request->in_bytes != 0 || queue->chain.out_bytes != sizeof(segment))
		return done(request, GANTRY_S_INVALID);
	vhost_chain_read(&queue->chain, &segment, sizeof(segment));
	if ((le32toh(segment.flags) & ~accepted) != 0)
		return done(request, GANTRY_S_UNSUPPORTED);
	request->bytes = (uint64_t)le32toh(segment.num_sectors) * SECTOR;
	if (request->bytes > vhost_segment_max(volume))
		return done(request, GANTRY_S_INVALID);
	return set_range(queue, request, le64toh(segment.sector));
}

/*
 * Returns true if writes that the guest did not flush may be lost, and the queue has not reported
 * that. The engine only reports it within one session.
 */
static bool may_have_lost(const struct vhost_queue *queue)
{
	const uint64_t is = __atomic_load_n(&queue->role->volume.verifier, __ATOMIC_RELAXED),
		       was = queue->verifier ? __atomic_load_n(queue->verifier, __ATOMIC_RELAXED)
					     : 0;

	return is != 0 && was != 0 && is != was;
}

int vhost_request_init(struct vhost_queue *queue, struct vhost_request *request)
{
	struct vhost_chain *chain = &queue->chain;
	struct virtio_blk_outhdr header;
	uint32_t type, n_out;

	request->status_addr = NULL;
	if (vhost_chain_read(chain, &header, sizeof(header)) != 0)
		return broken(queue, "request has no header", "readable", chain->out_bytes);
	request->status_addr = vhost_chain_status(chain);
	if (!request->status_addr)
		return broken(queue, "request has no status byte", "writable", 0);
	request->in_bytes = chain->in_bytes;
	type = le32toh(header.type);
	n_out = chain->n_out;
	request->opcode = type == VIRTIO_BLK_T_OUT     ? GANTRY_OP_WRITE
			  : type == VIRTIO_BLK_T_FLUSH ? GANTRY_OP_FLUSH
						       : GANTRY_OP_READ;
	request->n = type == VIRTIO_BLK_T_OUT ? n_out : chain->n_in;
	request->bytes = type == VIRTIO_BLK_T_OUT ? chain->out_bytes : chain->in_bytes;
	memcpy(request->piece, chain->piece + (type == VIRTIO_BLK_T_OUT ? 0 : n_out),
	       request->n * sizeof(request->piece[0]));
	switch (type) {
	case VIRTIO_BLK_T_IN:
	case VIRTIO_BLK_T_OUT:
		if ((type == VIRTIO_BLK_T_OUT ? chain->in_bytes : chain->out_bytes) != 0)
			return done(request, GANTRY_S_INVALID);
		return set_range(queue, request, le64toh(header.sector));
	case VIRTIO_BLK_T_FLUSH:
		request->bytes = 0;
		request->reports_loss = may_have_lost(queue);
		return 0;
	case VIRTIO_BLK_T_DISCARD:
		return discard_or_zero(queue, request, GANTRY_OP_DISCARD);
	case VIRTIO_BLK_T_WRITE_ZEROES:
		return discard_or_zero(queue, request, GANTRY_OP_WRITE_ZEROES);
	case VIRTIO_BLK_T_GET_ID:
		return get_id(queue, request, n_out);
	default:
		request->bytes = 0;
		return done(request, GANTRY_S_UNSUPPORTED);
	}
}

/* -- data -- */

/* Copy between the pieces of a request, from a position on, and a buffer. */
static void copy(const struct vhost_request *request, uint32_t at, uint32_t skip, uint8_t *buffer,
		 uint32_t bytes, bool to_pieces)
{
	for (; bytes != 0; at++, skip = 0) {
		const struct vhost_piece *piece = &request->piece[at];
		const uint32_t rest = piece->bytes - skip, part = rest < bytes ? rest : bytes;

		if (to_pieces)
			memcpy(piece->addr + skip, buffer, part);
		else
			memcpy(buffer, piece->addr + skip, part);
		buffer += part;
		bytes -= part;
	}
}

static void scatter(const struct vhost_request *request, uint32_t at, uint32_t skip,
		    const uint8_t *from, uint32_t bytes)
{
	copy(request, at, skip, (uint8_t *)(uintptr_t)from, bytes, true);
}

static void advance(struct vhost_request *request, uint32_t bytes)
{
	request->done += bytes;
	while (bytes != 0) {
		const uint32_t rest = request->piece[request->at].bytes - request->skip;

		if (bytes < rest) {
			request->skip += bytes;
			return;
		}
		bytes -= rest;
		request->at++;
		request->skip = 0;
	}
}

static uint32_t least(uint64_t a, uint64_t b)
{
	return (uint32_t)(a < b ? a : b);
}

/*
 * Write the next pieces as a list into the buffer of a slot, and their addresses to `pieces` for
 * stages. Returns the bytes; 0: no list.
 */
static uint32_t make_list(const struct vhost_queue *queue, const struct vhost_request *request,
			  struct gantry_list_entry *entry, struct gantry_pieces *pieces)
{
	const struct gantry_volume_info *volume = &queue->role->volume;
	const uint32_t most = least(least(volume->max_io, GANTRY_LIST_BYTES),
				    request->bytes - request->done);
	uint32_t at = request->at, skip = request->skip, bytes = 0, n = 0, cut;

	if ((volume->flags & GANTRY_VOLUME_LISTS) == 0)
		return 0;
	for (; n < GANTRY_LIST_MAX && bytes < most; n++, at++, skip = 0) {
		const struct vhost_piece *piece = &request->piece[at];

		entry[n] = (struct gantry_list_entry){
			.region = piece->handle,
			.length = least(piece->bytes - skip, most - bytes),
			.offset = piece->offset + skip};
		pieces->piece[n] = (struct iovec){piece->addr + skip, entry[n].length};
		bytes += entry[n].length;
	}
	/* an IO is whole blocks; the list ends where the sum of its lengths is that of the IO */
	for (cut = bytes & (volume->block_size - 1); n > 0 && cut >= entry[n - 1].length; n--) {
		cut -= entry[n - 1].length;
		bytes -= entry[n - 1].length;
	}
	if (n == 0)
		return 0;
	entry[n - 1].length -= cut;
	pieces->piece[n - 1].iov_len -= cut;
	pieces->count = n;
	return bytes - cut;
}

/* Fill the descriptor with the next part of a read or write. */
static void fill_data(struct vhost_queue *queue, struct vhost_request *request,
		      struct gantry_io *io)
{
	const struct gantry_volume_info *volume = &queue->role->volume;
	const struct vhost_piece *piece = &request->piece[request->at];
	const uint64_t left = request->bytes - request->done,
		       slot = gantry_engine_slot_offset(queue->engine, io);
	struct vhost_io *child = &queue->ios[io->slot];
	uint8_t *buffer = gantry_engine_slot_buffer(queue->engine, io);
	const bool copies = vhost_copies(queue->role);
	uint32_t rest = piece->bytes - request->skip, flags = 0, bytes = 0;

	if (request->opcode == GANTRY_OP_WRITE && queue->fua)
		flags = GANTRY_IO_FUA;
	if (rest < left && !copies)
		bytes = make_list(queue, request, (struct gantry_list_entry *)(void *)buffer,
				  &queue->pieces[io->slot]);
	if (bytes != 0) {
		gantry_count(queue->counters.lists, 1);
		gantry_engine_fill(queue->engine, io, request->opcode, flags | GANTRY_IO_LIST,
				   request->offset + request->done, bytes, slot);
		io->data = &queue->pieces[io->slot];
	} else if (rest >= volume->block_size && !copies) {
		bytes = least(rest, volume->max_io) & ~(volume->block_size - 1);
		gantry_engine_fill(queue->engine, io, request->opcode, flags,
				   request->offset + request->done, bytes, 0);
		io->region = piece->handle;
		io->region_offset = piece->offset + request->skip;
		io->data = piece->addr + request->skip;
	} else {
		bytes = least(least(left, volume->max_io), VHOST_SLOT_BYTES) &
			~(volume->block_size - 1);
		gantry_engine_fill(queue->engine, io, request->opcode, flags,
				   request->offset + request->done, bytes, slot);
		child->is_bounced = 1;
		gantry_count(queue->counters.bounced, 1);
		gantry_count(queue->counters.bounced_bytes, bytes);
		if (request->opcode == GANTRY_OP_WRITE)
			copy(request, request->at, request->skip, buffer, bytes, false);
	}
	child->at = request->at;
	child->skip = request->skip;
	advance(request, bytes);
}

/* Fill the descriptor of a flush, a discard or a write of zeroes. */
static void fill_range(struct vhost_queue *queue, struct vhost_request *request,
		       struct gantry_io *io)
{
	const bool zeroes = request->opcode == GANTRY_OP_WRITE_ZEROES;

	gantry_engine_fill(queue->engine, io, request->opcode,
			   zeroes && queue->fua ? GANTRY_IO_FUA : 0, request->offset,
			   (uint32_t)request->bytes, 0);
	request->done = request->bytes;
	if (zeroes)
		gantry_count(queue->counters.zeroes, 1);
	else if (request->opcode == GANTRY_OP_DISCARD)
		gantry_count(queue->counters.discards, 1);
}

static void fill(struct vhost_queue *queue, struct vhost_request *request, struct gantry_io *io)
{
	queue->ios[io->slot] = (struct vhost_io){.request = request};
	if (gantry_op_has_data(request->opcode))
		fill_data(queue, request, io);
	else
		fill_range(queue, request, io);
	request->is_submitted = request->done == request->bytes;
}

static void note_status(const struct vhost_queue *queue, struct vhost_request *request,
			unsigned status)
{
	if (request->status == GANTRY_S_OK)
		request->status = (uint16_t)status;
	if (!gantry_status_buffer_released(status) && !vhost_copies(queue->role))
		request->is_doubtful = 1;
	if (status == GANTRY_S_SESSION_LOST || status == GANTRY_S_STALE)
		request->is_lost = 1;
}

bool vhost_request_submit(struct vhost_queue *queue, struct vhost_request *request)
{
	request->n_ios++; /* so that an IO that completes inside submit does not end the request */
	while (!request->is_submitted) {
		struct gantry_io *io = gantry_engine_get(queue->engine);
		int rc;

		if (!io)
			break;
		fill(queue, request, io);
		request->n_ios++;
		rc = gantry_engine_submit(queue->engine, io);
		if (rc == 0)
			continue;
		request->n_ios--;
		request->is_submitted = 1;
		note_status(queue, request, gantry_status_of_errno(rc));
		io->status = GANTRY_S_CANCELED;
		gantry_engine_put(queue->engine, io);
	}
	request->n_ios--;
	return request->is_submitted;
}

void vhost_request_io_done(struct vhost_queue *queue, const struct gantry_io *io)
{
	const struct vhost_io *child = &queue->ios[io->slot];
	struct vhost_request *request = child->request;

	if (io->status != GANTRY_S_OK)
		note_status(queue, request, io->status);
	else if (child->is_bounced && io->opcode == GANTRY_OP_READ)
		scatter(request, child->at, child->skip,
			gantry_engine_slot_buffer(queue->engine, (struct gantry_io *)(uintptr_t)io),
			io->length);
	request->n_ios--;
}
