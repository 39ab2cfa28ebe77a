/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * done.h - ring of completed remote reads and writes that the lane has not polled. The ring is
 * never full if the number of accesses that are submitted and not polled does not exceed the depth
 * of tc_done_init().
 */
#ifndef TRANSPORT_COMMON_DONE_H
#define TRANSPORT_COMMON_DONE_H

#include <errno.h>
#include <stdlib.h>

#include <gantry/transport.h>

#include "power.h"

struct tc_done {
	struct gantry_rma_done *slots;
	uint32_t mask, head, tail; /* mask: size of the ring - 1. head, tail: free-running counts */
};

/* depth: 1 .. 2^31. Returns 0 or -ENOMEM. */
static inline int tc_done_init(struct tc_done *ring, uint32_t depth)
{
	uint32_t size = tc_power_of_two(depth);

	*ring = (struct tc_done){.slots = calloc(size, sizeof(*ring->slots)), .mask = size - 1};
	return ring->slots ? 0 : -ENOMEM;
}

static inline void tc_done_fini(struct tc_done *ring)
{
	free(ring->slots);
	ring->slots = NULL;
}

static inline int tc_done_full(const struct tc_done *ring)
{
	return ring->head - ring->tail > ring->mask;
}

static inline int tc_done_empty(const struct tc_done *ring)
{
	return ring->head == ring->tail;
}

static inline void tc_done_put(struct tc_done *ring, uint64_t cookie, int32_t status)
{
	ring->slots[ring->head++ & ring->mask] = (struct gantry_rma_done){.cookie = cookie,
									  .status = status};
}

/* Set the status of the last entry, which has not been taken. */
static inline void tc_done_set_last(struct tc_done *ring, int32_t status)
{
	ring->slots[(ring->head - 1) & ring->mask].status = status;
}

/* Take completions, as rma_poll of struct gantry_transport_ops. */
static inline int tc_done_take(struct tc_done *ring, struct gantry_rma_done *done, uint32_t max)
{
	uint32_t n = 0;

	for (; n < max && !tc_done_empty(ring); n++)
		done[n] = ring->slots[ring->tail++ & ring->mask];
	return (int)n;
}

#endif
