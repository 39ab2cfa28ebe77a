/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bounce.h - bounce buffers for regions that the device cannot map: buffers in registered memory,
 * filled and emptied by remote reads and writes.
 *
 * If the backend stores the volume in registered memory, and the role has no stages, the buffer of
 * an IO is its range of the volume itself (is_store). Otherwise the memory is smaller than what all
 * descriptors could need together, because a transport might have to lock the memory. A buffer is
 * as long as its IO, and an IO that finds no space waits.
 */
#ifndef GN_TRANSPORT_BOUNCE_H
#define GN_TRANSPORT_BOUNCE_H

#include <stdbool.h>

#include <gantry/io.h>
#include <gantry/transport.h>

/* largest IO with a bounce buffer, of a device or of a stage, in bytes */
#define GN_BOUNCE_MAX_IO (1u << 20)

struct gn_bounce;

/*
 * gn_bounce_limit - limit max_io of a volume to the size of bounce buffers
 *
 * move_memory  bytes of bounce buffers of each lane, if the device cannot map regions; else 0
 * stages       a stage has bounce buffers
 */
static inline uint32_t gn_bounce_limit(uint32_t max_io, uint64_t move_memory, bool stages)
{
	uint64_t most = move_memory != 0 && move_memory < GN_BOUNCE_MAX_IO ? move_memory
									   : GN_BOUNCE_MAX_IO;

	return (move_memory != 0 || stages) && most < max_io ? (uint32_t)most : max_io;
}

struct gn_bounce_attr {
	const struct gantry_transport_ops *ops;
	/* RMA queue of the transport, of depth n or more; NULL: the caller copies the data */
	void *rma;
	/*
	 * Memory that is registered on the connection of rma: at least as long as the largest IO,
	 * or the whole volume. The caller owns it. Not registered if `rma` is NULL.
	 */
	const struct gantry_region *memory;
	int is_store;          /* `memory` is the volume itself */
	struct gantry_io *ios; /* descriptors, indexed by slot */
	uint32_t n;
};

/*
 * gn_bounce_create - create the buffers of attr->n descriptors with slots 0 .. n - 1. Returns 0 or
 * -ENOMEM.
 */
int gn_bounce_create(const struct gn_bounce_attr *attr, struct gn_bounce **bounce_p);
/* gn_bounce_destroy - free the buffers and set *bounce_p to NULL. No move may be in flight. */
void gn_bounce_destroy(struct gn_bounce **bounce_p);

/*
 * gn_bounce_attach - attach a buffer of gantry_io_buffer_bytes() bytes, and set io->data. Returns
 * 0, or -EAGAIN: not enough space is free now.
 */
int gn_bounce_attach(struct gn_bounce *bounce, struct gantry_io *io);
/*
 * gn_bounce_detach - release the buffer of a descriptor. No move may be in flight. No effect
 * without a buffer.
 */
void gn_bounce_detach(struct gn_bounce *bounce, struct gantry_io *io);
/* Returns true if gn_bounce_attach would succeed. */
int gn_bounce_fits(const struct gn_bounce *bounce, const struct gantry_io *io);

/*
 * gn_bounce_move - start a move of gantry_io_buffer_bytes() bytes between the buffer and the
 * region; gn_bounce_poll reports its end.
 *
 * started_ns  start of the time that is measured; 0: do not measure. If this CPU executes the move,
 *             reading the clock in this function would keep the CPU from prefetching the data
 * Returns 0 or a -errno of rma_submit
 */
int gn_bounce_move(struct gn_bounce *bounce, struct gantry_io *io,
		   const struct gantry_region *region, enum gantry_rma_op op, uint64_t started_ns);

/* A part of a buffer and its place in a region, in bytes. */
struct gn_bounce_part {
	uint32_t at, length; /* in the buffer */
	uint64_t offset;     /* in the region */
};

/* gn_bounce_move_part - as gn_bounce_move, for a part of the buffer, without a measured time. */
int gn_bounce_move_part(struct gn_bounce *bounce, struct gantry_io *io,
			const struct gantry_region *region, enum gantry_rma_op op,
			const struct gn_bounce_part *part);

/*
 * gn_bounce_write_imm - start a write from the buffer to the region, with a note and without a
 * measured time. Returns what rma_write_imm of the transport returns.
 */
int gn_bounce_write_imm(struct gn_bounce *bounce, struct gantry_io *io,
			const struct gantry_region *region, uint32_t note);

/*
 * gn_bounce_poll - call moved(arg, io, status) for each move that ended, and set its
 * GANTRY_HOP_DATA time if that is measured. Returns the number of moves.
 */
int gn_bounce_poll(struct gn_bounce *bounce,
		   void (*moved)(void *arg, struct gantry_io *io, int status), void *arg);

/* gn_bounce_flush - start the moves that were submitted since the last flush. */
void gn_bounce_flush(struct gn_bounce *bounce);

#endif
