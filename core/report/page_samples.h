/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page_samples.h - the time series of a run: the work of each role between two reports
 *
 * The memory is bounded. When the series is full, each two neighbouring points become one, and the
 * interval between two reports doubles. The percentiles of such a point are the higher ones of the
 * two, because percentiles cannot be added.
 */
#ifndef GN_REPORT_PAGE_SAMPLES_H
#define GN_REPORT_PAGE_SAMPLES_H

#include <jansson.h>
#include <stdint.h>

#define GN_SAMPLES_MAX 512 /* points of a role */

struct gn_samples;

/* Returns an empty series; NULL: out of memory. */
struct gn_samples *gn_samples_create(void);
void gn_samples_destroy(struct gn_samples **samples_p); /* NULL is allowed */

/*
 * Add a report of the process: a point for the time since the report before, or since its start. If
 * that is less than half of the interval, the report extends the last point.
 *
 * report   as of gn_report_tree(); a reference is kept until the next call
 * returns  0
 *          -ENOMEM: the report is not added
 */
int gn_samples_add(struct gn_samples *samples, json_t *report);

/* Get the time between two reports, in ns. */
uint64_t gn_samples_interval_ns(const struct gn_samples *samples);

/*
 * Create the tree of the page: "interval_ns", and "roles" with an array of points for each role. The
 * caller owns it. NULL: out of memory.
 */
json_t *gn_samples_tree(const struct gn_samples *samples);

#endif
