/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * histogram.h - latency histogram from 0 ns to 18 minutes, with a relative error of at most 1.6 %.
 *
 * Log-linear: 64 buckets for each power of two. A zeroed struct is an empty histogram. One thread
 * writes. Other threads can read at the same time; they see each sample after a short delay.
 */
#ifndef GANTRY_HISTOGRAM_H
#define GANTRY_HISTOGRAM_H

#include <gantry/branch.h>
#include <gantry/count.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GANTRY_HISTOGRAM_SUB_BITS 6u
#define GANTRY_HISTOGRAM_MAX_BITS 40u /* longer samples count in the last bucket */
#define GANTRY_HISTOGRAM_BUCKETS \
	((GANTRY_HISTOGRAM_MAX_BITS - GANTRY_HISTOGRAM_SUB_BITS + 1) << GANTRY_HISTOGRAM_SUB_BITS)

struct gantry_histogram {
	uint64_t sum;
	uint64_t max;
	uint64_t inverted_min; /* UINT64_MAX - min, so that 0 means none */
	uint64_t bucket[GANTRY_HISTOGRAM_BUCKETS];
};

static inline uint64_t gantry_histogram_load(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static inline void gantry_histogram_raise(uint64_t *p, uint64_t v)
{
	if (v > *p)
		__atomic_store_n(p, v, __ATOMIC_RELAXED);
}

/* Returns the bucket index of a value. */
static inline uint64_t gantry_histogram_index(uint64_t ns)
{
	unsigned int shift;

	if (gantry_unlikely(ns >> GANTRY_HISTOGRAM_MAX_BITS != 0))
		return GANTRY_HISTOGRAM_BUCKETS - 1;
	/* The bit that is set here yields shift 0 for all values below 2^SUB_BITS. */
	shift = 63u - (unsigned int)__builtin_clzll(ns | 1u << GANTRY_HISTOGRAM_SUB_BITS) -
		GANTRY_HISTOGRAM_SUB_BITS;
	return ((uint64_t)shift << GANTRY_HISTOGRAM_SUB_BITS) + (ns >> shift);
}

/* Returns the largest value that a bucket holds. */
static inline uint64_t gantry_histogram_upper(unsigned int index)
{
	unsigned int shift;

	if (index < 2u << GANTRY_HISTOGRAM_SUB_BITS)
		return index;
	shift = (index >> GANTRY_HISTOGRAM_SUB_BITS) - 1;
	return ((uint64_t)(index - (shift << GANTRY_HISTOGRAM_SUB_BITS) + 1) << shift) - 1;
}

/*
 * Counts n equal samples. index: gantry_histogram_index(ns). Thread: the writer. O(1), no
 * allocation, no lock.
 */
static inline void gantry_histogram_record_at(struct gantry_histogram *h, uint64_t index,
					      uint64_t ns, uint64_t n)
{
	gantry_count(&h->bucket[index], n);
	gantry_count(&h->sum, n * ns);
	gantry_histogram_raise(&h->max, ns);
	gantry_histogram_raise(&h->inverted_min, UINT64_MAX - ns);
}

/* Counts one sample. */
static inline void gantry_histogram_record(struct gantry_histogram *h, uint64_t ns)
{
	gantry_histogram_record_at(h, gantry_histogram_index(ns), ns, 1);
}

/*
 * Adds all samples of `from` to `h`. Thread: the writer of h. The writer of `from` can run at the
 * same time.
 */
static inline void gantry_histogram_merge(struct gantry_histogram *h,
					  const struct gantry_histogram *from)
{
	for (unsigned int i = 0; i < GANTRY_HISTOGRAM_BUCKETS; i++)
		gantry_count(&h->bucket[i], gantry_histogram_load(&from->bucket[i]));
	gantry_count(&h->sum, gantry_histogram_load(&from->sum));
	gantry_histogram_raise(&h->max, gantry_histogram_load(&from->max));
	gantry_histogram_raise(&h->inverted_min, gantry_histogram_load(&from->inverted_min));
}

/*
 * Returns the number of samples. Any thread can call this and all functions below. Each of them
 * except maximum walks all buckets.
 */
static inline uint64_t gantry_histogram_count(const struct gantry_histogram *h)
{
	uint64_t count = 0;

	for (unsigned int i = 0; i < GANTRY_HISTOGRAM_BUCKETS; i++)
		count += gantry_histogram_load(&h->bucket[i]);
	return count;
}

/* Returns the exact maximum. This and all functions below return 0 for an empty histogram. */
static inline uint64_t gantry_histogram_max(const struct gantry_histogram *h)
{
	return gantry_histogram_load(&h->max);
}

static inline uint64_t gantry_histogram_min(const struct gantry_histogram *h)
{
	return gantry_histogram_count(h) ? UINT64_MAX - gantry_histogram_load(&h->inverted_min) : 0;
}

static inline double gantry_histogram_mean(const struct gantry_histogram *h)
{
	uint64_t count = gantry_histogram_count(h);

	return count ? (double)gantry_histogram_load(&h->sum) / (double)count : 0;
}

/*
 * Returns the value that `percent` (0 to 100) of the samples do not exceed. The result is at most
 * 1.6 % too high, never too low, and never above the maximum.
 */
static inline uint64_t gantry_histogram_percentile(const struct gantry_histogram *h, double percent)
{
	uint64_t total = gantry_histogram_count(h), seen = 0, want, max = gantry_histogram_max(h);
	double exact;

	exact = (double)total * (percent < 0 ? 0 : percent > 100 ? 100 : percent) / 100;
	want = (uint64_t)exact;
	if ((double)want < exact || want == 0)
		want++;
	for (unsigned int i = 0; i < GANTRY_HISTOGRAM_BUCKETS - 1; i++) {
		uint64_t upper = gantry_histogram_upper(i);

		seen += gantry_histogram_load(&h->bucket[i]);
		if (seen >= want)
			return upper < max ? upper : max;
	}
	return max;
}

#ifdef __cplusplus
}
#endif

#endif
