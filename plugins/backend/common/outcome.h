/* SPDX-License-Identifier: BSD-3-Clause */
/* outcome.h - how and when IO of a backend ends */
#ifndef OUTCOME_H
#define OUTCOME_H

#include <stdint.h>

#include <gantry/io.h>

/*
 * Map an errno of a store to a status, after which the store does not access the buffer any more.
 * ECANCELED and EBUSY become GANTRY_S_IO: the IO might have taken effect, but a client interprets
 * GANTRY_S_CANCELED and GANTRY_S_BUSY as "not started".
 */
enum gantry_status outcome_status(int err);

/*
 * Get when a backend must fail an IO for which the store has no result yet, so that the client
 * learns it before the deadline: an eighth of the time before it, at most 500 ms.
 *
 * limit_ns  time of an IO without a deadline
 * returns   nanoseconds, by the clock of gantry_lane.now_ns
 */
uint64_t outcome_due_ns(const struct gantry_io *io, uint64_t limit_ns);

#endif
