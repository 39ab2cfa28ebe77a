/* SPDX-License-Identifier: BSD-3-Clause */
/* stat_table.h - the short form of gantry stat: a line for each role and each session */
#ifndef GN_REPORT_STAT_TABLE_H
#define GN_REPORT_STAT_TABLE_H

#include <jansson.h>
#include <stdio.h>

/*
 * Print the table.
 *
 * list    reports of processes, as gn_stat_ask() returns them
 * before  reports of an earlier time, for rates and percentiles of the time since then; NULL: since
 *         the start of each role
 * role    only this role; NULL: all
 */
void gn_stat_print_table(FILE *out, const json_t *list, const json_t *before, const char *role);

#endif
