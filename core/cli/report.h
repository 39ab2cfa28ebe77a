/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.h - reports: what instances write through struct gantry_writer becomes a JSON tree; text
 * is made from that.
 */
#ifndef GN_CLI_REPORT_H
#define GN_CLI_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include <gantry/plugin.h>

#define GN_REPORT_DEPTH 16

struct gn_report {
	/* give this one to those who report; it starts inside the outermost object */
	struct gantry_writer w;
	json_t *root; /* of this report; NULL when there was no memory */
	json_t *open[GN_REPORT_DEPTH];
	int depth;  /* of the innermost open object */
	int beyond; /* objects opened below the limit: they are left out */
	bool failed;
};

void gn_report_init(struct gn_report *report);
void gn_report_fini(struct gn_report *report);

/*
 * The tree when all that was opened has been ended and nothing went wrong, else NULL. Belongs to
 * the report.
 */
json_t *gn_report_tree(const struct gn_report *report);

/*
 * A string, the caller's, or null for NULL. JSON holds UTF-8 only: of what is none, such as the
 * name of a file, each byte that is not ASCII becomes '?'. NULL: out of memory.
 */
json_t *gn_report_string(const char *text);

/* A list of what a table accepts; the caller has it. NULL: out of memory. */
json_t *gn_options_json(const struct gantry_option *options);

/* Write a tree as JSON and a newline. 0, or -errno: -ENOMEM, or why it cannot be written. */
int gn_report_print_json(FILE *out, const json_t *tree);

/*
 * Write a tree for people: one line for each value, units from the endings of the keys, one line
 * for a set of percentiles; empty objects, and counters that are 0, are left out. `indent`: levels.
 */
void gn_report_print_text(FILE *out, const json_t *tree, int indent);

/*
 * Write a string for people: control characters, which may come from a file or a peer, become '?'.
 */
void gn_report_print_plain(FILE *out, const char *text);

/* The number at a path of keys such as "latency.p50_ns" below `tree`; `dflt` when there is none. */
double gn_report_number(const json_t *tree, const char *path, double dflt);

#endif
