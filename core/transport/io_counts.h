/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * io_counts.h - what a responder counts of its IOs. A session adds up its responders, and a role
 * its sessions, so that the lane counts each IO in one place.
 *
 * The latencies are in classes: 8 for each power of two, as many as a report has.
 */
#ifndef GN_TRANSPORT_IO_COUNTS_H
#define GN_TRANSPORT_IO_COUNTS_H

#include <string.h>

#include <gantry/count.h>
#include <gantry/plugin.h>

#define GN_LATENCY_CLASSES (32u * 8u) /* of latencies below 2^32 ns; longer ones are in the last */

/* Written by one thread with gantry_count(). A zeroed struct has no IO. */
struct gn_io_counts {
	uint64_t failed;                         /* replies with another status than GANTRY_S_OK */
	uint64_t bytes;                          /* length of the IOs that succeeded */
	uint64_t list_bounces;                   /* lists whose data was copied through a buffer */
	uint64_t by_latency[GN_LATENCY_CLASSES]; /* all replies */
};

/*
 * gn_latency_class - get the class of a latency: the upper bits of a floating point number are its
 * logarithm
 */
static inline size_t gn_latency_class(uint32_t ns)
{
	const double value = (double)(int64_t)(ns | 1u);
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return (bits >> 49) - (1023u << 3); /* 3 bits of the fraction; the exponent of 1 is 1023 */
}

/*
 * gn_io_counts_add - add the counts of `from` to `sum`. The writer of `from` can run at the same
 * time.
 */
void gn_io_counts_add(struct gn_io_counts *sum, const struct gn_io_counts *from);
/* gn_io_counts_done - returns the number of IOs that succeeded. counts: a sum. */
uint64_t gn_io_counts_done(const struct gn_io_counts *counts);
/* gn_io_counts_report - write ops, bytes and latency into the open object. counts: a sum. */
void gn_io_counts_report(const struct gn_io_counts *counts, struct gantry_writer *w);

#endif
