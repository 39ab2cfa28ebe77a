/* SPDX-License-Identifier: BSD-3-Clause */
/* stat_metrics.h - reports of processes in the text formats that Prometheus reads */
#ifndef GN_REPORT_STAT_METRICS_H
#define GN_REPORT_STAT_METRICS_H

#include <jansson.h>
#include <stdio.h>

enum gn_metrics_format {
	GN_METRICS_OPEN,    /* OpenMetrics 1.0 */
	GN_METRICS_CLASSIC, /* text format 0.0.4: without units and the line at the end */
	GN_METRICS_FORMATS,
};

/*
 * Print the metrics of the reports that gn_stat_ask() returns. Counters start at 0 with the
 * process.
 *
 * silent  the PIDs of processes that have not answered
 * role    only metrics of this role; NULL: all metrics
 */
void gn_stat_print_metrics(FILE *out, enum gn_metrics_format format, const json_t *list,
			   const json_t *silent, const char *role);

#endif
