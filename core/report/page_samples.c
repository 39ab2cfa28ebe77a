/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/page_samples.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "report/report.h"
#include "report/role_work.h"

struct point {
	uint64_t start_ns, end_ns; /* since the start of the process */
	double ops, bytes, errors;
	uint64_t p50_ns, p99_ns, p99_9_ns; /* 0: no IO */
};

struct series {
	struct series *next;
	char *role;
	struct point *points; /* GN_SAMPLES_MAX */
	size_t n;
};

struct gn_samples {
	struct series *list, **tail;
	json_t *before; /* the report before; NULL: none */
	uint64_t interval_ns;
};

struct gn_samples *gn_samples_create(void)
{
	struct gn_samples *samples = calloc(1, sizeof(*samples));

	if (!samples)
		return NULL;
	samples->interval_ns = GN_NS_PER_S;
	samples->tail = &samples->list;
	return samples;
}

void gn_samples_destroy(struct gn_samples **samples_p)
{
	struct gn_samples *samples = *samples_p;
	struct series *series;

	*samples_p = NULL;
	if (!samples)
		return;
	while ((series = samples->list)) {
		samples->list = series->next;
		free(series->role);
		free(series->points);
		free(series);
	}
	json_decref(samples->before);
	free(samples);
}

uint64_t gn_samples_interval_ns(const struct gn_samples *samples)
{
	return samples->interval_ns;
}

static struct series *add_series(struct gn_samples *samples, const char *role)
{
	struct series *series = calloc(1, sizeof(*series));

	if (!series)
		return NULL;
	series->role = strdup(role);
	series->points = calloc(GN_SAMPLES_MAX, sizeof(*series->points));
	if (!series->role || !series->points) {
		free(series->role);
		free(series->points);
		free(series);
		return NULL;
	}
	*samples->tail = series;
	samples->tail = &series->next;
	return series;
}

static struct series *series_of(struct gn_samples *samples, const char *role)
{
	struct series *series = samples->list;

	while (series && strcmp(series->role, role) != 0)
		series = series->next;
	return series ? series : add_series(samples, role);
}

static double positive(double value)
{
	return value > 0 ? value : 0;
}

/* A counter that was reset, as at the end of a ramp, counts as no work. */
static struct point measure(const json_t *role, const json_t *old, uint64_t start_ns,
			    uint64_t end_ns)
{
	struct gn_work work = {0};

	gn_work_add(&work, role, 1);
	if (old)
		gn_work_add(&work, old, -1);
	return (struct point){
		.start_ns = start_ns,
		.end_ns = end_ns,
		.ops = positive(work.ops),
		.bytes = positive(work.bytes),
		.errors = positive(work.errors),
		.p50_ns = gn_work_percentile(&work.latency, 50),
		.p99_ns = gn_work_percentile(&work.latency, 99),
		.p99_9_ns = gn_work_percentile(&work.latency, 99.9),
	};
}

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Extend a point by the next one. */
static void merge(struct point *point, const struct point *next)
{
	point->end_ns = next->end_ns;
	point->ops += next->ops;
	point->bytes += next->bytes;
	point->errors += next->errors;
	point->p50_ns = max(point->p50_ns, next->p50_ns);
	point->p99_ns = max(point->p99_ns, next->p99_ns);
	point->p99_9_ns = max(point->p99_9_ns, next->p99_9_ns);
}

/* Make one point of each two of all roles, and double the interval. */
static void thin_out(struct gn_samples *samples)
{
	for (struct series *series = samples->list; series; series = series->next) {
		size_t n = 0;

		for (size_t i = 0; i < series->n; i += 2) {
			series->points[n] = series->points[i];
			if (i + 1 < series->n)
				merge(&series->points[n], &series->points[i + 1]);
			n++;
		}
		series->n = n;
	}
	samples->interval_ns *= 2;
}

static uint64_t elapsed_ns(const json_t *report)
{
	return (uint64_t)positive(gn_report_number(report, "elapsed_ns", 0));
}

int gn_samples_add(struct gn_samples *samples, json_t *report)
{
	const json_t *before = json_object_get(samples->before, "roles"), *role;
	const uint64_t start_ns = elapsed_ns(samples->before), end_ns = elapsed_ns(report);
	bool full = false;
	const char *name;

	if (end_ns <= start_ns)
		return 0;
	/* all allocations come first, so that the series of all roles have the same points */
	json_object_foreach (json_object_get(report, "roles"), name, role) {
		const struct series *series = series_of(samples, name);

		if (!series)
			return -ENOMEM;
		full |= series->n == GN_SAMPLES_MAX;
	}
	if (full)
		thin_out(samples);
	json_object_foreach (json_object_get(report, "roles"), name, role) {
		struct series *series = series_of(samples, name);
		struct point point = measure(role, json_object_get(before, name), start_ns, end_ns);

		if (series->n && end_ns - start_ns < samples->interval_ns / 2)
			merge(&series->points[series->n - 1], &point);
		else
			series->points[series->n++] = point;
	}
	json_decref(samples->before);
	samples->before = json_incref(report);
	return 0;
}

static json_t *point_tree(const struct point *p)
{
	double seconds = (double)(p->end_ns - p->start_ns) / GN_NS_PER_S;

	return json_pack("{sI sI sf sf sI sI sI sf}", "start_ns", (json_int_t)p->start_ns, "end_ns",
			 (json_int_t)p->end_ns, "iops", p->ops / seconds, "bytes_per_second",
			 p->bytes / seconds, "p50_ns", (json_int_t)p->p50_ns, "p99_ns",
			 (json_int_t)p->p99_ns, "p99_9_ns", (json_int_t)p->p99_9_ns, "errors",
			 p->errors);
}

json_t *gn_samples_tree(const struct gn_samples *samples)
{
	json_t *roles = json_object(), *points;
	bool failed = !roles;

	for (const struct series *series = samples->list; series && !failed;
	     series = series->next) {
		points = json_array();
		failed = !points || json_object_set_new(roles, series->role, points);
		for (size_t i = 0; i < series->n && !failed; i++)
			failed = json_array_append_new(points, point_tree(&series->points[i]));
	}
	if (failed) {
		json_decref(roles);
		return NULL;
	}
	return json_pack("{sI so}", "interval_ns", (json_int_t)samples->interval_ns, "roles",
			 roles);
}
