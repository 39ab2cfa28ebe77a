/* SPDX-License-Identifier: BSD-3-Clause */
/* trace_format.h - the output formats of gantry trace */
#ifndef GN_TRACE_TRACE_FORMAT_H
#define GN_TRACE_TRACE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "trace/trace_event.h"

#define GN_TRACE_FORMATS "text|json|fio|blkparse|chrome"

struct gn_trace_output {
	FILE *out;
	const char *const *roles; /* names of the traces: graphic ASCII without " and \ */
	uint32_t n_roles;
	uint64_t n_events; /* counted by the formats that number or separate events */
	uint64_t last_ns;  /* time of the last event */
	/* events that the format cannot express, by operation; the last counts unknown ones */
	uint64_t left_out[GANTRY_OP_COUNT + 1];
};

struct gn_trace_format {
	const char *name;
	bool only_submissions;
	/* also completions that the filter has not selected, if it has selected their submission */
	bool wants_ends;
	void (*begin)(struct gn_trace_output *output);
	void (*print)(struct gn_trace_output *output, const struct gn_trace_event *event);
	void (*end)(struct gn_trace_output *output);
};

/* Returns the format with this name; NULL: there is none. */
const struct gn_trace_format *gn_trace_format_find(const char *name);

#endif
