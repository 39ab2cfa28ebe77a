/* SPDX-License-Identifier: BSD-3-Clause */
/* latency.h - write a latency histogram to a report */
#ifndef GANTRY_LATENCY_H
#define GANTRY_LATENCY_H

#include <gantry/histogram.h>
#include <gantry/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GANTRY_LATENCY_GROUP 8u /* buckets of a histogram that a report adds up */

/*
 * gantry_write_latency - write an object with the percentiles of a histogram, and its buckets
 *
 * The object has `count`, `min_ns`, `mean_ns`, `p50_ns` to `p99_99_ns`, `max_ns` and `buckets`. The
 * array `buckets` has two numbers for each bucket that is not empty, in rising order: the largest
 * latency that it holds, in ns, and the number of samples. There are 8 buckets for each power of
 * two. Reports of different times can be subtracted.
 *
 * w        the writer of the report
 * key      name of the object
 * h        the histogram; its writer can run
 * thread   the thread of the report
 * since    GANTRY_1
 */
static inline void gantry_write_latency(struct gantry_writer *w, const char *key,
					const struct gantry_histogram *h)
{
	w->object(w, key);
	w->u64(w, "count", gantry_histogram_count(h));
	w->u64(w, "min_ns", gantry_histogram_min(h));
	w->real(w, "mean_ns", gantry_histogram_mean(h));
	w->u64(w, "p50_ns", gantry_histogram_percentile(h, 50));
	w->u64(w, "p90_ns", gantry_histogram_percentile(h, 90));
	w->u64(w, "p99_ns", gantry_histogram_percentile(h, 99));
	w->u64(w, "p99_9_ns", gantry_histogram_percentile(h, 99.9));
	w->u64(w, "p99_99_ns", gantry_histogram_percentile(h, 99.99));
	w->u64(w, "max_ns", gantry_histogram_max(h));
	w->array(w, "buckets");
	for (unsigned int i = 0; i < GANTRY_HISTOGRAM_BUCKETS; i += GANTRY_LATENCY_GROUP) {
		uint64_t n = 0;

		for (unsigned int j = i; j < i + GANTRY_LATENCY_GROUP; j++)
			n += gantry_histogram_load(&h->bucket[j]);
		if (!n)
			continue;
		w->u64(w, NULL, gantry_histogram_upper(i + GANTRY_LATENCY_GROUP - 1));
		w->u64(w, NULL, n);
	}
	w->end(w);
	w->end(w);
}

#ifdef __cplusplus
}
#endif

#endif
