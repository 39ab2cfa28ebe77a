/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.h - format of the file that stage `trace` writes: a header, then records of equal size.
 * Little-endian.
 *
 * Each lane writes blocks of whole records when its buffer is full, so the records are not in order
 * of time. Sort them by time_ns; the order of equal times does not matter. The file of a process
 * that was killed can end inside a record: ignore an incomplete record at the end.
 *
 * To replay a trace, use the records with direction GANTRY_TRACE_SUBMIT.
 */
#ifndef GANTRY_TRACE_H
#define GANTRY_TRACE_H

#include <stdint.h>

#include <gantry/io.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GANTRY_TRACE_MAGIC "GTRYTRC1" /* 8 bytes, without a terminating 0 */
#define GANTRY_TRACE_VERSION 1

enum gantry_trace_direction {
	GANTRY_TRACE_SUBMIT = 0,  /* the descriptor on its way down */
	GANTRY_TRACE_COMPLETE = 1 /* the descriptor on its way back: status and hop times are set */
};

struct gantry_trace_head {
	char magic[8];
	uint32_t version;
	uint32_t head_bytes; /* offset of the first record: 64 */
	/* distance between records: 72; a reader skips bytes that it does not know */
	uint32_t record_bytes;
	uint32_t n_lanes;       /* 0: not known */
	uint64_t start_unix_ns; /* time of day at time_ns 0 */
	char instance[32];      /* name of the role or instance, truncated and terminated by 0 */
};

struct gantry_trace_record {
	uint64_t time_ns;                   /* nanoseconds since the trace was opened */
	uint8_t wire[GANTRY_IO_WIRE_BYTES]; /* the first 56 bytes of struct gantry_io */
	uint8_t direction;                  /* enum gantry_trace_direction */
	uint8_t spare[3];                   /* 0 */
	uint16_t lane;
	uint16_t spare2; /* 0 */
};

#ifdef __cplusplus
}
#else
_Static_assert(sizeof(struct gantry_trace_head) == 64, "head of a trace");
_Static_assert(sizeof(struct gantry_trace_record) == 72, "record of a trace");
#endif

#endif
