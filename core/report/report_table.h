/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report_table.h - the short form of the report of gantry run: a table of operations and hops for
 * each role, in at most 80 columns
 */
#ifndef GN_REPORT_REPORT_TABLE_H
#define GN_REPORT_REPORT_TABLE_H

#include <jansson.h>
#include <stdio.h>

#define GN_TABLE_COLUMNS 80

/*
 * Print the table: result and times; for each role its operations, hops and errors, and the
 * counters that are not 0. Longer names are cut, with a '~' at their end.
 */
void gn_report_print_table(FILE *out, const json_t *report);

#endif
