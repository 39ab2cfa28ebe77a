/* SPDX-License-Identifier: BSD-3-Clause */
/* trace_event.h - one record of a trace, as gantry trace filters, counts and prints it */
#ifndef GN_TRACE_TRACE_EVENT_H
#define GN_TRACE_TRACE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include <gantry/io.h>

#include "trace/trace_pairs.h"

struct gn_trace_event {
	uint64_t ns;   /* since the earliest start of the traces */
	uint32_t role; /* index of the trace */
	uint16_t lane;
	bool is_complete; /* a completion; else a submission */
	bool is_paired;   /* `pair` is the submission: always true for a submission */
	bool is_accepted; /* by the filter */
	struct gn_trace_pair pair;
	struct gantry_io io; /* its first 56 bytes are those of the record, the others are 0 */
};

/* Returns the latency of a completion that is paired, in nanoseconds. */
static inline uint64_t gn_trace_latency(const struct gn_trace_event *event)
{
	return event->ns > event->pair.ns ? event->ns - event->pair.ns : 0;
}

/* Returns the name of an operation, such as "write_zeroes"; NULL: it is unknown. */
const char *gn_trace_op_name(unsigned opcode);

/* Returns the name of a status, such as "NOSPC"; NULL: it is unknown. */
const char *gn_trace_status_name(unsigned status);

#endif
