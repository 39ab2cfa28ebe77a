/* SPDX-License-Identifier: BSD-3-Clause */
/* trace_filter.h - the options of gantry trace that select records */
#ifndef GN_TRACE_TRACE_FILTER_H
#define GN_TRACE_TRACE_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/trace_event.h"

/* The values of the options as they were given; NULL: not given. */
struct gn_trace_filter_args {
	const char *operation, *time, *offset, *lane, *status, *min_latency;
};

struct gn_trace_filter {
	uint32_t ops;               /* bits 1 << enum gantry_opcode; 0: all */
	uint32_t statuses;          /* bits 1 << enum gantry_status; 0: all */
	uint64_t from_ns, until_ns; /* from_ns <= time < until_ns */
	bool has_offset;
	uint64_t from, until;    /* the range overlaps from <= offset < until */
	int lane;                /* -1: all */
	uint64_t min_latency_ns; /* 0: all */
};

/*
 * Parse the options.
 *
 * error    what is wrong, on failure
 * returns  0; -EINVAL: the value of an option is invalid
 */
int gn_trace_filter_parse(struct gn_trace_filter *filter, const struct gn_trace_filter_args *args,
			  char *error, size_t error_bytes);

/* Returns whether the filter selects by status or latency, which only a completion has. */
bool gn_trace_filter_needs_completion(const struct gn_trace_filter *filter);

/* Returns whether an event is selected. */
bool gn_trace_filter_accepts(const struct gn_trace_filter *filter,
			     const struct gn_trace_event *event);

#endif
