/* SPDX-License-Identifier: BSD-3-Clause */
/* join.h - one status from the statuses of the parts of an IO */
#ifndef GN_PIPELINE_JOIN_H
#define GN_PIPELINE_JOIN_H

#include <gantry/io.h>

struct gn_join {
	uint32_t n_left; /* parts that have not completed */
	/* of the first part that failed; a status that leaves the buffer in use replaces others */
	uint16_t status;
	uint16_t begun; /* a part completed with another status than CANCELED */
};

/* Add the status of a part that completed. Returns how many are left. */
static inline uint32_t gn_join_add(struct gn_join *join, uint16_t status)
{
	if (join->status == GANTRY_S_OK ||
	    (!gantry_status_buffer_released(status) && gantry_status_buffer_released(join->status)))
		join->status = status;
	join->begun |= status != GANTRY_S_CANCELED;
	return --join->n_left;
}

/*
 * CANCELED means that no part was started. If a part was started, the status is TIMEOUT: the IO may
 * be done in part.
 */
static inline uint16_t gn_join_status(const struct gn_join *join)
{
	return join->status == GANTRY_S_CANCELED && join->begun ? GANTRY_S_TIMEOUT : join->status;
}

#endif
