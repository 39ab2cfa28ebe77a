/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.h - reports: build a JSON tree from the calls of struct gantry_writer, and print it as
 * JSON or text.
 */
#ifndef GN_REPORT_REPORT_H
#define GN_REPORT_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include <gantry/plugin.h>

#define GN_REPORT_DEPTH 16

struct gn_report {
	/* the writer for the reporting instances; its outermost object is open */
	struct gantry_writer w;
	json_t *root; /* the tree; NULL: out of memory */
	json_t *open[GN_REPORT_DEPTH];
	int depth;  /* nesting level of the current object */
	int beyond; /* open objects beyond GN_REPORT_DEPTH, which are omitted */
	bool failed;
};

void gn_report_init(struct gn_report *report);
void gn_report_fini(struct gn_report *report);

/* Get the tree. NULL: an object was not ended, or a call failed. The report owns the tree. */
json_t *gn_report_tree(const struct gn_report *report);

/*
 * Create a JSON string, or null for NULL; the caller owns it. JSON is UTF-8: if text is not valid
 * UTF-8, each byte that is not ASCII becomes '?'. Returns NULL when out of memory.
 */
json_t *gn_report_string(const char *text);

/* Create a list of the rows of an option table; the caller owns it. NULL: out of memory. */
json_t *gn_options_json(const struct gantry_option *options);

/* Write a tree as JSON and a newline. Returns 0; -ENOMEM; or -errno of the write. */
int gn_report_print_json(FILE *out, const json_t *tree);

/*
 * Write a tree as text: one line for each value or set of percentiles. The suffix of a key selects
 * the unit. Empty objects, operations without IO, and counters that are 0, are omitted. indent:
 * nesting level.
 */
void gn_report_print_text(FILE *out, const json_t *tree, int indent);

/*
 * Format a scalar of a report. The suffix of its key selects the unit.
 *
 * dst     out, GN_REPORT_VALUE bytes
 * stem_p  out: the length of the key without its unit
 */
#define GN_REPORT_VALUE 256
void gn_report_format_value(char *dst, const char *key, const json_t *value, size_t *stem_p);

/*
 * Write a string as text. Control characters become '?', because the string can come from a file or
 * a peer.
 */
void gn_report_print_plain(FILE *out, const char *text);

/*
 * Get the number at a path of keys such as "latency.p50_ns" below `tree`; `dflt` if there is none.
 */
double gn_report_number(const json_t *tree, const char *path, double dflt);

#endif
