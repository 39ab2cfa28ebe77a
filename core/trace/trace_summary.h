/* SPDX-License-Identifier: BSD-3-Clause */
/* trace_summary.h - sums over the records of traces, by role and operation */
#ifndef GN_TRACE_TRACE_SUMMARY_H
#define GN_TRACE_TRACE_SUMMARY_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "trace/trace_event.h"

struct gn_trace_summary;

/* Returns a summary for this number of traces; NULL: out of memory. */
struct gn_trace_summary *gn_trace_summary_new(uint32_t n_roles);

/* Count an event. Returns 0; -ENOMEM: out of memory. */
int gn_trace_summary_add(struct gn_trace_summary *summary, const struct gn_trace_event *event);

/* Print a table for each trace. roles: names of the traces. */
void gn_trace_summary_print(const struct gn_trace_summary *summary, FILE *out,
			    const char *const *roles);

/* Returns the sums as a tree, which the caller releases; NULL: out of memory. */
json_t *gn_trace_summary_json(const struct gn_trace_summary *summary, const char *const *roles);

/* Free a summary. NULL is permitted. */
void gn_trace_summary_free(struct gn_trace_summary *summary);

#endif
