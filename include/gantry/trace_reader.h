/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace_reader.h - reads a trace record by record, from any stream. The records come in the order
 * of the file, see <gantry/trace.h>.
 */
#ifndef GANTRY_TRACE_READER_H
#define GANTRY_TRACE_READER_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <gantry/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GANTRY_TRACE_MAX_HEAD (1u << 20) /* limit of head_bytes */
#define GANTRY_TRACE_MAX_RECORD 4096u    /* limit of record_bytes */

struct gantry_trace_reader {
	FILE *file;
	struct gantry_trace_head head;
	uint64_t n_records; /* whole records that were read */
	/* bytes of an incomplete record at the end of the file; 0: the file ends with a record */
	uint32_t n_partial;
};

/*
 * gantry_trace_skip - read bytes of a trace without a use for them
 *
 * returns  the number of bytes; less than n at the end of the file or after an error
 */
static inline size_t gantry_trace_skip(FILE *file, size_t n)
{
	uint8_t bytes[GANTRY_TRACE_MAX_RECORD];
	size_t done = 0;

	while (done < n) {
		const size_t want = n - done < sizeof(bytes) ? n - done : sizeof(bytes);
		const size_t got = fread(bytes, 1, want, file);

		done += got;
		if (got < want)
			break;
	}
	return done;
}

/*
 * gantry_trace_begin - read the header of a trace
 *
 * reader   filled by this function
 * file     at the start of the trace; it stays with the caller, and outlives the reader
 * returns  0: success
 *          -EINVAL: the file is not a trace
 *          -EPROTO: the file is a trace of another version, or its header is damaged
 *          -EIO: the file cannot be read
 */
static inline int gantry_trace_begin(struct gantry_trace_reader *reader, FILE *file)
{
	struct gantry_trace_head *head = &reader->head;
	size_t more;

	memset(reader, 0, sizeof(*reader));
	reader->file = file;
	if (fread(head, sizeof(*head), 1, file) != 1)
		return ferror(file) ? -EIO : -EINVAL;
	if (memcmp(head->magic, GANTRY_TRACE_MAGIC, sizeof(head->magic)) != 0)
		return -EINVAL;
	if (head->version != GANTRY_TRACE_VERSION || head->head_bytes < sizeof(*head) ||
	    head->head_bytes > GANTRY_TRACE_MAX_HEAD ||
	    head->record_bytes < sizeof(struct gantry_trace_record) ||
	    head->record_bytes > GANTRY_TRACE_MAX_RECORD)
		return -EPROTO;
	head->instance[sizeof(head->instance) - 1] = '\0';
	more = head->head_bytes - sizeof(*head);
	if (gantry_trace_skip(file, more) != more)
		return ferror(file) ? -EIO : -EPROTO;
	return 0;
}

/*
 * gantry_trace_next - read the next record
 *
 * returns  1: `record` has it
 *          0: the file has no further whole record; n_partial tells whether it ends inside a record
 *          -EIO: the file cannot be read
 */
static inline int gantry_trace_next(struct gantry_trace_reader *reader,
				    struct gantry_trace_record *record)
{
	const size_t more = reader->head.record_bytes - sizeof(*record);
	size_t got = fread(record, 1, sizeof(*record), reader->file);

	if (got == sizeof(*record))
		got += gantry_trace_skip(reader->file, more);
	if (ferror(reader->file))
		return -EIO;
	if (got < reader->head.record_bytes) {
		reader->n_partial = (uint32_t)got;
		return 0;
	}
	reader->n_records++;
	return 1;
}

#ifdef __cplusplus
}
#endif

#endif
