/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace_source.h - the records of one trace in the order of their times.
 *
 * A trace has blocks of records, each of one lane, so its records are not in the order of their
 * times. A source holds the next GN_TRACE_WINDOW records of the file in memory, and returns the
 * earliest. This is the order of times if no record is further behind in the file. A lane with few
 * IOs beside lanes with many can be: its records wait in memory for the time `flush` of the stage.
 * The source counts them.
 */
#ifndef GN_TRACE_TRACE_SOURCE_H
#define GN_TRACE_TRACE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <gantry/trace_reader.h>

#define GN_TRACE_WINDOW \
	(1u << 20) /* records: at most 88 MiB, and 500 ms of 1 million IOs a second */

struct gn_trace_waiting;

struct gn_trace_source {
	struct gantry_trace_reader reader;
	uint64_t n_late; /* records that were returned after a record with a later time */
	/* below: private */
	uint64_t last_ns;
	size_t n, capacity; /* records in memory */
	struct gn_trace_waiting *heap;
	struct gantry_trace_record *records; /* `capacity` of them */
	uint32_t *unused;                    /* indices of records, a stack of capacity - n */
	int rc; /* of the last read: 1, 0 at the end of the file, or -errno */
};

/*
 * Open a source: read the header.
 *
 * file     at the start of a trace; it stays with the caller, and outlives the source
 * returns  as gantry_trace_begin()
 */
int gn_trace_source_open(struct gn_trace_source *source, FILE *file);

/*
 * Get the earliest record without taking it.
 *
 * returns  1: `*record_p` has it, until the next call for this source
 *          0: there are no more records
 *          -EIO: the file cannot be read
 *          -ENOMEM: out of memory
 */
int gn_trace_source_peek(struct gn_trace_source *source,
			 const struct gantry_trace_record **record_p);

/* Take the record that gn_trace_source_peek() has returned. */
void gn_trace_source_take(struct gn_trace_source *source);

/* Free the memory of a source. */
void gn_trace_source_close(struct gn_trace_source *source);

#endif
