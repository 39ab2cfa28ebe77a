/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool.h - pools of descriptors.
 *
 * A pool is allocated when a session or role starts, so an IO allocates nothing. Three mechanisms
 * ensure that each IO completes exactly once:
 * - The hop of an idle descriptor is its owner. A second completion therefore reaches the guard
 *   (gn_lane_guard()) before the owner.
 * - The owner records each completion with gantry_io_end().
 * - Each send of a requester has a new tag.
 */
#ifndef GN_IO_POOL_H
#define GN_IO_POOL_H

#include <gantry/io.h>

/*
 * gn_io_pool - allocate n zeroed descriptors with slots 0 .. n - 1, idle at the hop `owner`. n: 1
 * .. 65535. Returns NULL if out of memory; free() releases the pool.
 */
struct gantry_io *gn_io_pool(uint32_t n, const struct gantry_hop *owner);

/*
 * gn_io_no_submit - `submit` of a hop that accepts no descriptors, such as an owner or a guard.
 * Returns -EINVAL.
 */
int gn_io_no_submit(void *self, struct gantry_io *io);

#endif
