/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/io_counts.h"

#include <stdlib.h>

#include <gantry/latency.h>

static uint64_t load(const uint64_t *cell)
{
	return __atomic_load_n(cell, __ATOMIC_RELAXED);
}

void gn_io_counts_add(struct gn_io_counts *sum, const struct gn_io_counts *from)
{
	sum->failed += load(&from->failed);
	sum->bytes += load(&from->bytes);
	sum->list_bounces += load(&from->list_bounces);
	for (size_t i = 0; i < GN_LATENCY_CLASSES; i++)
		sum->by_latency[i] += load(&from->by_latency[i]);
}

uint64_t gn_io_counts_done(const struct gn_io_counts *counts)
{
	uint64_t n = 0;

	for (size_t i = 0; i < GN_LATENCY_CLASSES; i++)
		n += counts->by_latency[i];
	return n > counts->failed ? n - counts->failed : 0;
}

/* Returns the largest latency of a class, in ns. */
static uint64_t upper(size_t class)
{
	return (((9 + (class & 7)) << (class >> 3)) + 7) / 8 - 1;
}

/* The mean is that of the middles of the classes. */
static void fill(struct gantry_histogram *h, const struct gn_io_counts *counts)
{
	uint64_t below = 0, sum = 0;

	for (size_t i = 0; i < GN_LATENCY_CLASSES; i++) {
		const uint64_t ns = upper(i), n = counts->by_latency[i];

		if (n != 0)
			gantry_histogram_record_at(h, gantry_histogram_index(ns), ns, n);
		sum += n * ((below + ns) / 2);
		below = ns;
	}
	h->sum = sum;
}

void gn_io_counts_report(const struct gn_io_counts *counts, struct gantry_writer *w)
{
	struct gantry_histogram *h = calloc(1, sizeof(*h));

	w->u64(w, "ops_done", gn_io_counts_done(counts));
	w->u64(w, "ops_failed", counts->failed);
	w->u64(w, "bytes", counts->bytes);
	if (!h)
		return;
	fill(h, counts);
	gantry_write_latency(w, "latency", h);
	free(h);
}
