/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace_stream.h - the records of several traces of one machine in the order of their times, each
 * completion with its submission. The memory does not grow with the traces: see GN_TRACE_WINDOW and
 * GN_TRACE_MAX_PAIRS.
 */
#ifndef GN_TRACE_TRACE_STREAM_H
#define GN_TRACE_TRACE_STREAM_H

#include <stdint.h>
#include <stdio.h>

#include "trace/trace_event.h"
#include "trace/trace_filter.h"
#include "trace/trace_source.h"

struct gn_trace_stream;

/* Returns a stream without traces; NULL: out of memory. The filter is copied. */
struct gn_trace_stream *gn_trace_stream_new(const struct gn_trace_filter *filter);

/*
 * Add a trace. Its index is the number of traces that were added before it.
 *
 * file     at the start of the trace; it stays with the caller, and outlives the stream
 * returns  0: success
 *          -E2BIG: there are GN_TRACE_MAX_ROLES traces
 *          -ENOMEM: out of memory
 *          another -errno: as gantry_trace_begin()
 */
int gn_trace_stream_add(struct gn_trace_stream *stream, FILE *file);

/*
 * Get the next event, also one that the filter does not accept.
 *
 * event    on failure, its `role` is the trace that caused it
 * returns  1: `*event` has it
 *          0: there are no more
 *          -EIO: a file cannot be read
 *          -EBADMSG: a record is damaged
 *          -ENOMEM: out of memory
 */
int gn_trace_stream_next(struct gn_trace_stream *stream, struct gn_trace_event *event);

/* Returns the source of a trace. */
const struct gn_trace_source *gn_trace_stream_source(const struct gn_trace_stream *stream,
						     uint32_t role);

/* Free a stream. NULL is permitted. */
void gn_trace_stream_free(struct gn_trace_stream *stream);

#endif
