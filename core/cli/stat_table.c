/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/stat_table.h"

#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/report.h"

#define MAX_BUCKETS 320 /* of a report: 8 for each of 40 powers of two */

/* -- numbers of a role -- */

/* Latencies, in rising order. */
struct buckets {
	uint64_t upper[MAX_BUCKETS], n[MAX_BUCKETS];
	size_t used;
};

/* What a role has done since its start. */
struct work {
	double ops, bytes, errors;
	bool has_bytes;
	struct buckets latency;
};

/* Add n samples, which can be negative: the bucket then has fewer. */
static void add_bucket(struct buckets *b, uint64_t upper, int64_t n)
{
	size_t i = 0;

	while (i < b->used && b->upper[i] < upper)
		i++;
	if (i == b->used || b->upper[i] != upper) {
		if (b->used == MAX_BUCKETS)
			return;
		memmove(&b->upper[i + 1], &b->upper[i], (b->used - i) * sizeof(b->upper[0]));
		memmove(&b->n[i + 1], &b->n[i], (b->used - i) * sizeof(b->n[0]));
		b->upper[i] = upper;
		b->n[i] = 0;
		b->used++;
	}
	b->n[i] = n < 0 && (uint64_t)-n > b->n[i] ? 0 : b->n[i] + (uint64_t)n;
}

static void add_latency(struct buckets *b, const json_t *latency, int sign)
{
	const json_t *list = json_object_get(latency, "buckets");
	size_t i;

	for (i = 0; i + 1 < json_array_size(list); i += 2)
		add_bucket(b, (uint64_t)json_integer_value(json_array_get(list, i)),
			   sign * json_integer_value(json_array_get(list, i + 1)));
}

/* Returns the latency that `percent` of the samples do not exceed; 0: no samples. */
static uint64_t percentile(const struct buckets *b, unsigned percent)
{
	uint64_t total = 0, seen = 0;
	size_t i;

	for (i = 0; i < b->used; i++)
		total += b->n[i];
	for (i = 0; i < b->used; i++) {
		seen += b->n[i];
		if (total && seen * 100 >= total * percent)
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

/*
 * Returns the object that has the latency of each operation: that of the role, or of its first
 * stage that measures, so that no IO counts twice. NULL: none.
 */
static const json_t *measured(const json_t *role)
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

/* Add sign times the work of a role. */
static void add_work(struct work *w, const json_t *role, int sign)
{
	const json_t *from = measured(role), *op;
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

/* IOs that the role has passed on, or its backend has, and that have not completed. */
static double in_flight(const json_t *role)
{
	return gn_report_number(role, "connect.held_ops", 0) +
	       gn_report_number(role, "backend.held_ops", 0);
}

/* -- lines -- */

/* The number of columns of each field; a role is left-justified. */
#define LINE "%7s %-17s %-9s %8s %9s %7s %7s %4s %4s\n"

static void format_count(char *dst, size_t size, double n)
{
	static const char *const units[] = {"", "k", "M", "G", "T"};
	size_t unit = 0;

	while (n >= 10000 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		n /= 1000;
		unit++;
	}
	snprintf(dst, size, "%.*f%s", unit ? 1 : 0, n, units[unit]);
}

static void format_rate(char *dst, size_t size, double n, double seconds)
{
	format_count(dst, size, seconds > 0 ? n / seconds : 0);
}

static void format_bytes(char *dst, size_t size, double n, double seconds)
{
	gn_size_format(dst, size, seconds > 0 && n > 0 ? (uint64_t)(n / seconds) : 0);
}

/* The time that the rates are about: since the start of the measurement, or since `before`. */
static double seconds_of(const json_t *process, const json_t *role, const json_t *earlier)
{
	double now = gn_report_number(process, "elapsed_ns", 0);

	if (earlier)
		return (now - gn_report_number(earlier, "elapsed_ns", 0)) / GN_NS_PER_S;
	return gn_report_number(role, "elapsed_ns", now) / GN_NS_PER_S;
}

static void print_role(FILE *out, const json_t *process, const char *name, const json_t *role,
		       const json_t *earlier)
{
	const json_t *old = json_object_get(json_object_get(earlier, "roles"), name);
	char pid[16], shown[18], iops[16], bytes[GN_UNITS_BYTES] = "-", p50[GN_UNITS_BYTES] = "-",
					   p99[GN_UNITS_BYTES] = "-", flight[16], errors[16];
	const double seconds = seconds_of(process, role, old ? earlier : NULL);
	const char *kind = json_string_value(json_object_get(role, "role"));
	struct work w = {0};

	add_work(&w, role, 1);
	if (old)
		add_work(&w, old, -1);
	snprintf(pid, sizeof(pid), "%.0f", gn_report_number(process, "pid", 0));
	snprintf(shown, sizeof(shown), "%s", name);
	format_rate(iops, sizeof(iops), w.ops, seconds);
	if (w.has_bytes)
		format_bytes(bytes, sizeof(bytes), w.bytes, seconds);
	if (percentile(&w.latency, 100)) {
		gn_time_format(p50, sizeof(p50), percentile(&w.latency, 50));
		gn_time_format(p99, sizeof(p99), percentile(&w.latency, 99));
	}
	format_count(flight, sizeof(flight), in_flight(role));
	format_count(errors, sizeof(errors), w.errors);
	fprintf(out, LINE, pid, shown, kind ? kind : "-", iops, bytes, p50, p99, flight, errors);
}

static void print_session(FILE *out, const json_t *session)
{
	const char *id = json_string_value(json_object_get(session, "id"));
	const char *state = json_string_value(json_object_get(session, "state"));

	fprintf(out, "%7s   session %.8s %s, peer %.0f, lanes %.0f, depth %.0f\n", "",
		id ? id : "?", state ? state : "?", gn_report_number(session, "peer_pid", 0),
		gn_report_number(session, "lanes", 0), gn_report_number(session, "depth", 0));
}

static const json_t *find_process(const json_t *list, const json_t *process)
{
	const json_t *other;
	size_t i;

	json_array_foreach ((json_t *)list, i, other)
		if (json_equal(json_object_get(other, "pid"), json_object_get(process, "pid")))
			return other;
	return NULL;
}

void gn_stat_print_table(FILE *out, const json_t *list, const json_t *before, const char *role)
{
	const json_t *process, *each, *session;
	const char *name;
	size_t i, j;

	fprintf(out, LINE, "PID", "ROLE", "KIND", "IOPS", "BYTES/S", "P50", "P99", "HELD", "ERR");
	json_array_foreach ((json_t *)list, i, process)
		json_object_foreach (json_object_get(process, "roles"), name, each) {
			if (role && strcmp(role, name) != 0)
				continue;
			print_role(out, process, name, each, find_process(before, process));
			json_array_foreach (json_object_get(each, "sessions"), j, session)
				print_session(out, session);
		}
}
