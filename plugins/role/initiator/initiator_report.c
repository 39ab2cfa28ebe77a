/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * initiator_report.c - reports what the initiator has measured, at the end and while the lanes run.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <gantry/latency.h>

#include "initiator.h"

static const char *const status_names[GANTRY_S_COUNT] = {
#define STATUS_NAME(num, name, err, text) [num] = #name,
	GANTRY_STATUS_LIST(STATUS_NAME)
#undef STATUS_NAME
};

const char *status_name(unsigned status)
{
	return status < GANTRY_S_COUNT && status_names[status] ? status_names[status] : "?";
}

static const char *const kind_keys[KIND_COUNT] = {"reads", "writes", "flushes", "others"};
static const char *const hop_keys[GANTRY_HOP_COUNT] = {"gateway", "target", "backend", "data"};

double report_cpu_s(void)
{
	struct rusage use;

	if (getrusage(RUSAGE_SELF, &use))
		return 0;
	return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
	       (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

/* Add the values of all lanes to `total`. */
static void sum(const struct initiator *in, struct lane_stats *total)
{
	for (uint32_t i = 0; i < in->n_lanes; i++) {
		const struct lane_stats *stats = in->lanes[i].stats;
		uint64_t end = gantry_histogram_load(&stats->end_ns);

		for (int k = 0; k < KIND_COUNT; k++) {
			total->kind[k].bytes += gantry_histogram_load(&stats->kind[k].bytes);
			gantry_histogram_merge(&total->kind[k].latency, &stats->kind[k].latency);
		}
		for (int h = 0; h < GANTRY_HOP_COUNT; h++)
			gantry_histogram_merge(&total->hop[h], &stats->hop[h]);
		gantry_histogram_merge(&total->link, &stats->link);
		for (int s = 0; s < GANTRY_S_COUNT; s++)
			total->status[s] += gantry_histogram_load(&stats->status[s]);
		for (int v = 0; v < VERDICT_COUNT; v++)
			total->verdict[v] += gantry_histogram_load(&stats->verdict[v]);
		total->n_submitted += gantry_histogram_load(&stats->n_submitted);
		total->n_completed += gantry_histogram_load(&stats->n_completed);
		total->n_checked += gantry_histogram_load(&stats->n_checked);
		total->n_refused += gantry_histogram_load(&stats->n_refused);
		total->n_quarantined += gantry_histogram_load(&stats->n_quarantined);
		total->n_doubled += gantry_histogram_load(&stats->n_doubled);
		total->done += gantry_histogram_load(&stats->done);
		if (end > total->end_ns)
			total->end_ns = end;
	}
}

/* Returns the measured time: without the ramp, up to now or to the end of the last lane. */
static uint64_t elapsed_ns(const struct initiator *in, const struct lane_stats *total)
{
	uint64_t now = in->host->now_ns(in->host);

	if (!in->start_ns)
		return 0;
	for (uint32_t i = 0; i < in->n_lanes; i++)
		if (!gantry_histogram_load(&in->lanes[i].stats->end_ns) && in->lanes[i].polled &&
		    in->phase < PHASE_CLOSED)
			return now > in->measure_ns ? now - in->measure_ns : 0;
	return total->end_ns > in->measure_ns ? total->end_ns - in->measure_ns : 0;
}

static double per_second(uint64_t n, uint64_t ns)
{
	return ns ? (double)n * 1e9 / (double)ns : 0;
}

static uint64_t write_kinds(struct gantry_writer *w, const struct lane_stats *total, uint64_t ns,
			    uint64_t *bytes_p)
{
	uint64_t ops = 0;

	for (int k = 0; k < KIND_COUNT; k++) {
		uint64_t n = gantry_histogram_count(&total->kind[k].latency);

		ops += n;
		*bytes_p += total->kind[k].bytes;
		w->object(w, kind_keys[k]);
		w->u64(w, "ops", n);
		w->u64(w, "bytes", total->kind[k].bytes);
		w->real(w, "iops", per_second(n, ns));
		w->real(w, "bytes_per_second", per_second(total->kind[k].bytes, ns));
		gantry_write_latency(w, "latency", &total->kind[k].latency);
		w->end(w);
	}
	return ops;
}

static void write_hops(struct gantry_writer *w, const struct lane_stats *total)
{
	w->object(w, "hops");
	for (int h = 0; h < GANTRY_HOP_COUNT; h++)
		if (gantry_histogram_count(&total->hop[h]))
			gantry_write_latency(w, hop_keys[h], &total->hop[h]);
	if (gantry_histogram_count(&total->link))
		gantry_write_latency(w, "link", &total->link);
	w->end(w);
}

static void write_errors(struct gantry_writer *w, const struct lane_stats *total)
{
	w->object(w, "errors");
	for (int s = 1; s < GANTRY_S_COUNT; s++)
		if (total->status[s])
			w->u64(w, status_names[s], total->status[s]);
	if (total->n_refused)
		w->u64(w, "refused", total->n_refused);
	if (total->n_doubled)
		w->u64(w, "double_completions", total->n_doubled);
	w->end(w);
}

static void write_verify(struct gantry_writer *w, const struct lane_stats *total)
{
	w->object(w, "verify");
	w->u64(w, "checked", total->n_checked);
	for (int v = VERDICT_UNVERIFIED; v < VERDICT_COUNT; v++)
		w->u64(w, verify_name((enum verdict)v), total->verdict[v]);
	w->end(w);
}

/* The IOs of each lane: those that have completed, and those in flight. */
static void write_lanes(struct gantry_writer *w, const struct initiator *in)
{
	w->array(w, "lane_ops");
	for (uint32_t i = 0; i < in->n_lanes; i++)
		w->u64(w, NULL, gantry_histogram_load(&in->lanes[i].stats->n_completed));
	w->end(w);
	w->array(w, "lane_held_ops");
	for (uint32_t i = 0; i < in->n_lanes; i++) {
		const struct lane_stats *stats = in->lanes[i].stats;
		uint64_t completed = gantry_histogram_load(&stats->n_completed),
			 submitted = gantry_histogram_load(&stats->n_submitted);

		w->u64(w, NULL, submitted > completed ? submitted - completed : 0);
	}
	w->end(w);
}

static void write_progress(struct gantry_writer *w, const struct initiator *in,
			   const struct lane_stats *total)
{
	uint64_t now = in->host->now_ns(in->host), done = total->done;

	if (!in->target)
		return;
	if (!strcmp(in->unit, "ns"))
		done = in->start_ns && now > in->measure_ns ? now - in->measure_ns : 0;
	w->object(w, "progress");
	w->u64(w, "done", done < in->target ? done : in->target);
	w->u64(w, "target", in->target);
	w->string(w, "unit", in->unit);
	w->end(w);
}

static void write_total(struct gantry_writer *w, const struct initiator *in, uint64_t ops,
			uint64_t bytes, uint64_t ns)
{
	double cpu = in->start_ns ? report_cpu_s() - in->cpu_start_s : 0;

	w->object(w, "total");
	w->u64(w, "ops", ops);
	w->u64(w, "bytes", bytes);
	w->real(w, "iops", per_second(ops, ns));
	w->real(w, "bytes_per_second", per_second(bytes, ns));
	w->end(w);
	w->object(w, "cpu");
	w->real(w, "seconds", cpu);
	w->real(w, "seconds_per_million_ios", ops ? cpu * 1e6 / (double)ops : 0);
	w->end(w);
}

void initiator_report(void *role, struct gantry_writer *w)
{
	const struct initiator *in = role;
	struct lane_stats *total = calloc(1, sizeof(*total));
	uint64_t ns, ops, bytes = 0;

	if (!total)
		return;
	sum(in, total);
	ns = elapsed_ns(in, total);
	w->string(w, "mode", in->source->mode);
	w->u64(w, "elapsed_ns", ns);
	w->u64(w, "lanes", in->n_lanes);
	w->u64(w, "depth", in->depth);
	w->u64(w, "block_bytes", in->block);
	w->u64(w, "submitted", total->n_submitted);
	w->u64(w, "completed", total->n_completed);
	write_lanes(w, in);
	write_progress(w, in, total);
	ops = write_kinds(w, total, ns, &bytes);
	write_total(w, in, ops, bytes, ns);
	write_hops(w, total);
	write_errors(w, total);
	if (in->source == &workload_source && in->conf->verify == VERIFY_STAMP)
		write_verify(w, total);
	w->u64(w, "quarantined", total->n_quarantined);
	free(total);
}
