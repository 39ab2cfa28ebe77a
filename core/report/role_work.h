/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * role_work.h - what a role has done, from its report: IOs, bytes, errors and latencies. The values
 * of an earlier report can be subtracted.
 */
#ifndef GN_REPORT_ROLE_WORK_H
#define GN_REPORT_ROLE_WORK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GN_WORK_BUCKETS 320 /* of a report: 8 for each of 40 powers of two */

/* Latencies in ns, in rising order. */
struct gn_work_latency {
	uint64_t upper[GN_WORK_BUCKETS], n[GN_WORK_BUCKETS];
	size_t used;
};

struct gn_work {
	double ops, bytes, errors;
	bool has_bytes;
	struct gn_work_latency latency;
};

/*
 * Get the object that has the latency of each operation: that of the role, or of its first stage
 * that measures, so that no IO counts twice. NULL: none.
 */
const json_t *gn_work_measured(const json_t *role);

/* A stage of a role, or its backend or connect, whose own time was measured. */
struct gn_work_place {
	char stage[24];   /* the number of the stage, "backend" or "connect" */
	const char *name; /* of its plugin, or "connect" */
	const json_t *own_time;
	double share; /* in the time of all places */
};
#define GN_WORK_PLACES 16

/*
 * Get the places of a role whose own time was measured, in their order.
 *
 * places   out
 * returns  their number
 */
size_t gn_work_places(const json_t *role, struct gn_work_place places[GN_WORK_PLACES]);

/* Add `sign` times the work of a role. A zeroed struct has no work. */
void gn_work_add(struct gn_work *work, const json_t *role, int sign);
/* The same for a session of a server. */
void gn_work_add_session(struct gn_work *work, const json_t *session, int sign);

/* Returns the latency in ns that `percent` of the samples do not exceed; 0: no samples. */
uint64_t gn_work_percentile(const struct gn_work_latency *latency, double percent);

/*
 * Get the time in seconds that the work of a role is about: since the start of its measurement, or
 * of the process.
 */
double gn_work_seconds(const json_t *process, const json_t *role);

/* Format a count in at most 7 characters: 12345678 becomes "12.3M". Returns dst. */
char *gn_count_format(char *dst, size_t size, double n);

#endif
