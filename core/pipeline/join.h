/* SPDX-License-Identifier: BSD-3-Clause */
/* join.h - computes the status of an IO from the statuses of its parts */
#ifndef GN_PIPELINE_JOIN_H
#define GN_PIPELINE_JOIN_H

#include <gantry/io.h>

struct gn_join {
	uint32_t n_left; /* parts that have not completed */
	/*
	 * Status of the first part that failed. A status that leaves the buffer in use replaces one
	 * that does not.
	 */
	uint16_t status;
	uint16_t begun; /* a part completed with a status other than CANCELED */
};

/* Add the status of a completed part. Returns how many parts are outstanding. */
static inline uint32_t gn_join_add(struct gn_join *join, uint16_t status)
{
	if (join->status == GANTRY_S_OK ||
	    (!gantry_status_buffer_released(status) && gantry_status_buffer_released(join->status)))
		join->status = status;
	join->begun |= status != GANTRY_S_CANCELED;
	return --join->n_left;
}

/*
 * CANCELED means that no part was started. If a part was started, the status is TIMEOUT: the IO
 * might have taken effect in part.
 */
static inline uint16_t gn_join_status(const struct gn_join *join)
{
	return join->status == GANTRY_S_CANCELED && join->begun ? GANTRY_S_TIMEOUT : join->status;
}

#endif
