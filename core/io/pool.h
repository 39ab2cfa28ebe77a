/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool.h - descriptors at rest, and the guard that stands before the owner of a chain.
 *
 * The pool is made when a session or a role starts; nothing is allocated for an IO. Exactly-once
 * completion is kept by three things: a descriptor that is at rest stands at its owner, so that one
 * completion too many reaches the guard; the owner notes each completion with gantry_io_end(); and
 * each send over a link has a tag of its own.
 */
#ifndef GN_IO_POOL_H
#define GN_IO_POOL_H

#include <gantry/io.h>

/* n descriptors, zeroed, with their slots, at rest at `rest`. 1 .. 65535. NULL: out of memory. */
struct gantry_io *gn_io_pool(uint32_t n, const struct gantry_hop *rest);

/*
 * The hop before an owner: counts completions of descriptors at rest in *double_completions, and
 * puts them back.
 */
struct gantry_hop gn_io_guard(uint64_t *double_completions);

/* For hops that nobody may submit to: an owner, a guard. -EINVAL. */
int gn_io_no_submit(void *self, struct gantry_io *io);

#endif
