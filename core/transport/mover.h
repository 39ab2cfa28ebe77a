/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mover.h - data of regions that are not mapped here: a buffer for each descriptor, filled and emptied by remote read
 * and write of the transport.
 */
#ifndef GN_TRANSPORT_MOVER_H
#define GN_TRANSPORT_MOVER_H

#include <gantry/io.h>
#include <gantry/transport.h>

#define GN_MOVER_MAX_IO (1u << 20) /* bytes of one IO that has to be moved */

struct gn_mover;

/*
 * Buffers for n descriptors with slots 0 .. n - 1. rma: of the same transport, of depth n at least; stays the
 * caller's. ios: the descriptors, by slot. 0, -ENOMEM.
 */
int gn_mover_create(const struct gantry_transport_ops *ops, void *rma, struct gantry_io *ios, uint32_t n,
		    struct gn_mover **mover_p);
void gn_mover_destroy(struct gn_mover **mover_p);

/* Give a descriptor its buffer: io->data. */
void gn_mover_attach(struct gn_mover *mover, struct gantry_io *io);

/* Move io->length bytes between its buffer and its region; `moved` follows from gn_mover_poll. 0 or -errno. */
int gn_mover_move(struct gn_mover *mover, struct gantry_io *io, const struct gantry_region *region,
		  enum gantry_rma_op op);

/* Call moved(arg, io, status) for each move that ended; adds its time to io->hop_ns. Returns how many. */
int gn_mover_poll(struct gn_mover *mover, void (*moved)(void *arg, struct gantry_io *io, int status), void *arg);

/* Start what was given to gn_mover_move. */
void gn_mover_flush(struct gn_mover *m);

#endif
