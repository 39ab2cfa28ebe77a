/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/stat_table.h"

#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/report.h"
#include "cli/role_work.h"

/* IOs that the role has passed on, or its backend has, and that have not completed. */
static double in_flight(const json_t *role)
{
	return gn_report_number(role, "connect.held_ops", 0) +
	       gn_report_number(role, "backend.held_ops", 0);
}

/* -- lines -- */

/* The number of columns of each field; a role is left-justified. */
#define LINE "%7s %-17s %-9s %8s %9s %7s %7s %4s %4s\n"

static void format_rate(char *dst, size_t size, double n, double seconds)
{
	gn_count_format(dst, size, seconds > 0 ? n / seconds : 0);
}

static void format_bytes(char *dst, size_t size, double n, double seconds)
{
	gn_size_format(dst, size, seconds > 0 && n > 0 ? (uint64_t)(n / seconds) : 0);
}

/* The time that the rates are about: since the start of the measurement, or since `before`. */
static double seconds_of(const json_t *process, const json_t *role, const json_t *earlier)
{
	if (earlier)
		return gn_work_seconds(process, process) - gn_work_seconds(earlier, earlier);
	return gn_work_seconds(process, role);
}

static void print_role(FILE *out, const json_t *process, const char *name, const json_t *role,
		       const json_t *earlier)
{
	const json_t *old = json_object_get(json_object_get(earlier, "roles"), name);
	char pid[16], shown[18], iops[16], bytes[GN_UNITS_BYTES] = "-", p50[GN_UNITS_BYTES] = "-",
					   p99[GN_UNITS_BYTES] = "-", flight[16], errors[16];
	const double seconds = seconds_of(process, role, old ? earlier : NULL);
	const char *kind = json_string_value(json_object_get(role, "role"));
	struct gn_work w = {0};

	gn_work_add(&w, role, 1);
	if (old)
		gn_work_add(&w, old, -1);
	snprintf(pid, sizeof(pid), "%.0f", gn_report_number(process, "pid", 0));
	snprintf(shown, sizeof(shown), "%s", name);
	format_rate(iops, sizeof(iops), w.ops, seconds);
	if (w.has_bytes)
		format_bytes(bytes, sizeof(bytes), w.bytes, seconds);
	if (gn_work_percentile(&w.latency, 100)) {
		gn_time_format(p50, sizeof(p50), gn_work_percentile(&w.latency, 50));
		gn_time_format(p99, sizeof(p99), gn_work_percentile(&w.latency, 99));
	}
	gn_count_format(flight, sizeof(flight), in_flight(role));
	gn_count_format(errors, sizeof(errors), w.errors);
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
