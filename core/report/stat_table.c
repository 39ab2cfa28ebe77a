/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/stat_table.h"

#include <string.h>

#include "base/units.h"
#include "report/report.h"
#include "report/role_work.h"
#include "report/stat_rates.h"

/* The number of columns of each field; a role is left-justified. */
#define LINE "%7s %-17s %-9s %8s %9s %7s %7s %4s %4s\n"

static void format_rate(char *dst, size_t size, double n, double seconds)
{
	gn_count_format(dst, size, seconds > 0 ? n / seconds : 0);
}

static void format_bytes(char *dst, size_t size, double n, double seconds)
{
	double rate = seconds > 0 && n > 0 ? n / seconds : 0;

	gn_size_format(dst, size, rate < 1e18 ? (uint64_t)rate : (uint64_t)1e18);
}

static void print_role(FILE *out, const json_t *process, const char *name, const json_t *role,
		       const json_t *earlier)
{
	char pid[16], shown[18], iops[16], bytes[GN_UNITS_BYTES] = "-", p50[GN_UNITS_BYTES] = "-",
					   p99[GN_UNITS_BYTES] = "-", flight[16], errors[16];
	const char *kind = json_string_value(json_object_get(role, "role"));
	struct gn_work w;
	const double seconds = gn_stat_work(&w, process, name, earlier);

	snprintf(pid, sizeof(pid), "%.0f", gn_report_number(process, "pid", 0));
	snprintf(shown, sizeof(shown), "%s", name);
	format_rate(iops, sizeof(iops), w.ops, seconds);
	if (w.has_bytes)
		format_bytes(bytes, sizeof(bytes), w.bytes, seconds);
	if (gn_work_percentile(&w.latency, 100)) {
		gn_time_format(p50, sizeof(p50), gn_work_percentile(&w.latency, 50));
		gn_time_format(p99, sizeof(p99), gn_work_percentile(&w.latency, 99));
	}
	gn_count_format(flight, sizeof(flight), gn_stat_in_flight(role));
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
			print_role(out, process, name, each, gn_stat_find_process(before, process));
			json_array_foreach (json_object_get(each, "sessions"), j, session)
				print_session(out, session);
		}
}
