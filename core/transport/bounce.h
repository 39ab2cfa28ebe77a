/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bounce.h - data of regions that are not mapped here: buffers in a piece of memory that the
 * transport knows, filled and emptied by remote read and write.
 *
 * Where the store itself is such memory, and nothing stands between it and the port, a buffer is
 * the place of the data in the store. Else the memory is smaller than what all descriptors could
 * ask for, because a transport may have to lock it: a buffer is as long as its IO, and who finds no
 * room waits.
 */
#ifndef GN_TRANSPORT_BOUNCE_H
#define GN_TRANSPORT_BOUNCE_H

#include <gantry/io.h>
#include <gantry/transport.h>

#define GN_MOVER_MAX_IO (1u << 20) /* bytes of one IO that has to be moved */

struct gn_bounce;

struct gn_bounce_attr {
	const struct gantry_transport_ops *ops;
	void *rma; /* of depth n at least */
	/*
	 * Registered on the connection of rma, at least one IO long; or the whole volume. Both stay
	 * the caller's.
	 */
	const struct gantry_region *memory;
	int is_store;          /* memory is the volume */
	struct gantry_io *ios; /* by slot */
	uint32_t n;
};

/* For n descriptors with slots 0 .. n - 1. 0, -ENOMEM. */
int gn_bounce_create(const struct gn_bounce_attr *attr, struct gn_bounce **bounce_p);
void gn_bounce_destroy(struct gn_bounce **bounce_p);

/*
 * Give a descriptor a buffer of io->length bytes, at io->data. 0; -EAGAIN: there is no room for it
 * now.
 */
int gn_bounce_attach(struct gn_bounce *bounce, struct gantry_io *io);
/* Take the buffer back; nothing may be moved to or from it. A descriptor without one is legal. */
void gn_bounce_detach(struct gn_bounce *bounce, struct gantry_io *io);
/* Whether gn_bounce_attach would succeed. */
int gn_bounce_fits(const struct gn_bounce *bounce, const struct gantry_io *io);

/*
 * Move io->length bytes between its buffer and its region; `moved` follows from gn_bounce_poll. 0
 * or -errno. started_ns: what its time is counted from; 0: it is not wanted. Where the device is
 * this processor, a look at the clock here keeps it from fetching what comes next.
 */
int gn_bounce_move(struct gn_bounce *bounce, struct gantry_io *io,
		   const struct gantry_region *region, enum gantry_rma_op op, uint64_t started_ns);

/*
 * The same for a write to the region, with a note, and not timed: rma_write_imm of the transport.
 */
int gn_bounce_write_imm(struct gn_bounce *bounce, struct gantry_io *io,
			const struct gantry_region *region, uint32_t note);

/*
 * Call moved(arg, io, status) for each move that ended; adds its time to io->hop_ns, if it is
 * wanted. Returns how many.
 */
int gn_bounce_poll(struct gn_bounce *bounce,
		   void (*moved)(void *arg, struct gantry_io *io, int status), void *arg);

/* Start what was given to gn_bounce_move. */
void gn_bounce_flush(struct gn_bounce *bounce);

#endif
