/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/role_work.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "report/report.h"

/* Add n samples, which can be negative: the bucket then has fewer. */
static void add_bucket(struct gn_work_latency *b, uint64_t upper, int64_t n)
{
	size_t i = 0;

	while (i < b->used && b->upper[i] < upper)
		i++;
	if (i == b->used || b->upper[i] != upper) {
		if (b->used == GN_WORK_BUCKETS)
			return;
		memmove(&b->upper[i + 1], &b->upper[i], (b->used - i) * sizeof(b->upper[0]));
		memmove(&b->n[i + 1], &b->n[i], (b->used - i) * sizeof(b->n[0]));
		b->upper[i] = upper;
		b->n[i] = 0;
		b->used++;
	}
	b->n[i] = n < 0 && (uint64_t)-n > b->n[i] ? 0 : b->n[i] + (uint64_t)n;
}

static void add_latency(struct gn_work_latency *b, const json_t *latency, int sign)
{
	const json_t *list = json_object_get(latency, "buckets");
	size_t i;

	for (i = 0; i + 1 < json_array_size(list); i += 2) {
		const json_int_t n = json_integer_value(json_array_get(list, i + 1));

		if (n > 0)
			add_bucket(b, (uint64_t)json_integer_value(json_array_get(list, i)),
				   sign * n);
	}
}

uint64_t gn_work_percentile(const struct gn_work_latency *b, double percent)
{
	uint64_t total = 0, seen = 0;
	size_t i;

	for (i = 0; i < b->used; i++)
		total += b->n[i];
	for (i = 0; i < b->used; i++) {
		seen += b->n[i];
		if (total && (double)seen * 100 >= (double)total * percent)
			return b->upper[i];
	}
	return 0;
}

static bool measures(const json_t *object)
{
	const json_t *each;
	const char *key;

	json_object_foreach ((json_t *)object, key, each)
		if (json_object_get(each, "latency"))
			return true;
	return false;
}

const json_t *gn_work_measured(const json_t *role)
{
	const json_t *stages = json_object_get(role, "stages"), *stage;
	size_t i;

	if (measures(role))
		return role;
	json_array_foreach ((json_t *)stages, i, stage)
		if (measures(stage))
			return stage;
	return NULL;
}

/* Append a place, if it was measured. Returns the number of places. */
static size_t add_place(struct gn_work_place places[GN_WORK_PLACES], size_t n, const char *stage,
			const json_t *object)
{
	const char *type = json_string_value(json_object_get(object, "type"));
	const json_t *own_time = json_object_get(object, "own_time");

	if (!own_time || n == GN_WORK_PLACES)
		return n;
	places[n] = (struct gn_work_place){
		.name = type ? type : "connect",
		.own_time = own_time,
		.share = gn_report_number(object, "own_time_share", 0),
	};
	snprintf(places[n].stage, sizeof(places[n].stage), "%s", stage);
	return n + 1;
}

size_t gn_work_places(const json_t *role, struct gn_work_place places[GN_WORK_PLACES])
{
	const json_t *stage;
	size_t i, n = 0;
	char number[24];

	json_array_foreach (json_object_get(role, "stages"), i, stage) {
		snprintf(number, sizeof(number), "%zu", i);
		n = add_place(places, n, number, stage);
	}
	n = add_place(places, n, "backend", json_object_get(role, "backend"));
	return add_place(places, n, "connect", json_object_get(role, "connect"));
}

void gn_work_add(struct gn_work *w, const json_t *role, int sign)
{
	const json_t *from = gn_work_measured(role), *op;
	const char *key;

	json_object_foreach ((json_t *)from, key, op) {
		if (!json_object_get(op, "latency"))
			continue;
		w->has_bytes = true;
		w->bytes += sign * (gn_report_number(op, "bytes", 0) +
				    gn_report_number(op, "done_bytes", 0));
		add_latency(&w->latency, json_object_get(op, "latency"), sign);
	}
	w->ops += sign * (gn_report_number(role, "total.ops", 0) +
			  gn_report_number(role, "counters.ops_done", 0));
	json_object_foreach (json_object_get(role, "errors"), key, op)
		w->errors += sign * json_number_value(op);
	w->errors += sign * gn_report_number(role, "counters.ops_failed", 0);
}

void gn_work_add_session(struct gn_work *w, const json_t *session, int sign)
{
	w->has_bytes |= json_is_number(json_object_get(session, "bytes"));
	w->bytes += sign * gn_report_number(session, "bytes", 0);
	w->ops += sign * gn_report_number(session, "ops_done", 0);
	w->errors += sign * gn_report_number(session, "ops_failed", 0);
	add_latency(&w->latency, json_object_get(session, "latency"), sign);
}

double gn_work_seconds(const json_t *process, const json_t *role)
{
	double process_ns = gn_report_number(process, "elapsed_ns", 0);

	return gn_report_number(role, "elapsed_ns", process_ns) / GN_NS_PER_S;
}

char *gn_count_format(char *dst, size_t size, double n)
{
	static const char *const units[] = {"", "k", "M", "G", "T", "P", "E"};
	const size_t last = sizeof(units) / sizeof(units[0]) - 1;
	size_t unit = 0;

	/* the limits are those above which the digits would be rounded to 10000 */
	while (n >= (unit ? 9999.95 : 9999.5) && unit < last) {
		n /= 1000;
		unit++;
	}
	if (unit == last && n > 9999)
		n = 9999;
	snprintf(dst, size, "%.*f%s", unit ? 1 : 0, n, units[unit]);
	return dst;
}
