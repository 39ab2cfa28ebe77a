/* SPDX-License-Identifier: BSD-3-Clause */
/* stat_metrics.h - reports of processes in the text format of OpenMetrics 1.0 */
#ifndef GN_CLI_STAT_METRICS_H
#define GN_CLI_STAT_METRICS_H

#include <jansson.h>
#include <stdio.h>

/*
 * Print the metrics of the reports that gn_stat_ask() returns. Counters start at 0 with the
 * process.
 *
 * role    only metrics of this role; NULL: all metrics
 */
void gn_stat_print_metrics(FILE *out, const json_t *list, const char *role);

#endif
