/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stat_metrics.c - metrics: a table of families, each with the place of its values in a report
 *
 * OpenMetrics requires that all samples of a family are together. So the outer loop is over the
 * families, and the inner ones are over processes and their roles or devices.
 */
#include "report/stat_metrics.h"

#include <stdbool.h>
#include <string.h>

#include "report/report.h"
#include "report/role_work.h"

/* Bounds of latencies: 2^k - 1 ns, which are bounds of the buckets of a report. */
enum { FIRST_BOUND = 10, LAST_BOUND = 34 }; /* 1 us, 17 s */

/* The object that a sample describes. */
enum subject {
	UP, /* a process, also one that has not answered */
	PROCESS,
	ROLE,
	SESSION,
	DEVICE,
	OPERATION, /* an object of a role or of a stage with `latency` */
	HOP,
	PLACE, /* a stage, backend or connect whose own time is measured */
	ERROR, /* a value of the object `errors` of a role */
};

enum type { COUNTER, GAUGE, HISTOGRAM };

static const struct family {
	const char *name; /* with the unit, without the suffix of a counter */
	enum type type;
	const char *unit, *help;
	enum subject subject;
	const char *path, *other; /* path of the value; `other` is used if `path` is absent */
	double scale;
} families[] = {
	{"gantry_process_up", GAUGE, NULL, "1: the process has answered; 0: it has not.", UP, NULL,
	 NULL, 1},
	{"gantry_process_cpu_seconds", COUNTER, "seconds", "Processor time of the process.",
	 PROCESS, "cpu_ns", NULL, 1e-9},
	{"gantry_process_elapsed_seconds", GAUGE, "seconds", "Time since the start of the process.",
	 PROCESS, "elapsed_ns", NULL, 1e-9},
	{"gantry_quarantined_bytes", GAUGE, "bytes",
	 "Memory that is kept because a peer can still access it.", PROCESS, "quarantined_bytes",
	 NULL, 1},
	{"gantry_volume_size_bytes", GAUGE, "bytes", "Size of the volume that the role serves.",
	 ROLE, "volume.size_bytes", NULL, 1},
	{"gantry_held_ops", GAUGE, NULL,
	 "IOs that the role has passed on and that have not completed.", ROLE, "connect.held_ops",
	 "backend.held_ops", 1},
	{"gantry_done_ops", COUNTER, NULL, "IOs that the role has completed.", ROLE,
	 "counters.ops_done", "total.ops", 1},
	{"gantry_failed_ops", COUNTER, NULL, "IOs of a server that have failed.", ROLE,
	 "counters.ops_failed", NULL, 1},
	{"gantry_double_completions", COUNTER, NULL, "IOs that were completed twice.", ROLE,
	 "counters.double_completions", NULL, 1},
	{"gantry_sessions_opened", COUNTER, NULL, "Sessions that clients have opened.", ROLE,
	 "counters.sessions_opened", NULL, 1},
	{"gantry_sessions_ended", COUNTER, NULL, "Sessions that have ended normally.", ROLE,
	 "counters.sessions_ended", NULL, 1},
	{"gantry_sessions_lost", COUNTER, NULL, "Sessions that have ended by a failure.", ROLE,
	 "counters.sessions_lost", NULL, 1},
	{"gantry_sessions_refused", COUNTER, NULL, "Sessions that the role has refused.", ROLE,
	 "counters.sessions_refused", NULL, 1},
	{"gantry_sessions_resumed", COUNTER, NULL,
	 "Sessions of a client that were lost and resumed.", ROLE, "counters.sessions_resumed",
	 NULL, 1},
	{"gantry_session_lanes", GAUGE, NULL, "Lanes of a session that exists.", SESSION, "lanes",
	 NULL, 1},
	{"gantry_session_depth", GAUGE, NULL, "IOs that a lane of the session can have in flight.",
	 SESSION, "depth", NULL, 1},
	{"gantry_session_done_ops", COUNTER, NULL, "IOs of a session that have succeeded.", SESSION,
	 "ops_done", NULL, 1},
	{"gantry_session_failed_ops", COUNTER, NULL, "IOs of a session that have failed.", SESSION,
	 "ops_failed", NULL, 1},
	{"gantry_session_bytes", COUNTER, "bytes", "Bytes of IOs of a session that have succeeded.",
	 SESSION, "bytes", NULL, 1},
	{"gantry_session_latency_seconds", HISTOGRAM, "seconds",
	 "Time of IOs of a session in the server.", SESSION, "latency", NULL, 1e-9},
	{"gantry_device_connections", COUNTER, NULL, "Connections that the device has had.", DEVICE,
	 "counters.connections", NULL, 1},
	{"gantry_device_protocol_errors", COUNTER, NULL,
	 "Connections that ended because the peer broke the protocol.", DEVICE,
	 "counters.protocol_errors", NULL, 1},
	{"gantry_io_bytes", COUNTER, "bytes", "Bytes of IOs that have succeeded, by operation.",
	 OPERATION, "bytes", "done_bytes", 1},
	{"gantry_io_latency_seconds", HISTOGRAM, "seconds",
	 "Time of IOs, by operation: of an initiator, or of a stage that measures.", OPERATION,
	 "latency", NULL, 1e-9},
	{"gantry_hop_latency_seconds", HISTOGRAM, "seconds",
	 "Part of the time of IOs that a hop and those after it take.", HOP, NULL, NULL, 1e-9},
	{"gantry_stage_time_seconds", HISTOGRAM, "seconds",
	 "Time that a stage, backend or connect has an IO, without what follows it.", PLACE, NULL,
	 NULL, 1e-9},
	{"gantry_error_ops", COUNTER, NULL, "IOs of an initiator that have failed, by status.",
	 ERROR, NULL, NULL, 1},
};

/* The members that `errors` of a role can have, by enum gantry_status; then those without. */
static const char *const errors_of_role[] = {
#define STATUS_NAME(num, name, err, text) #name,
	GANTRY_STATUS_LIST(STATUS_NAME)
#undef STATUS_NAME
		"refused",
	"double_completions",
};

/* -- samples -- */

/* What the labels of a sample say; NULL: no such label. */
struct labels {
	double pid;
	const char *config, *role, *kind, *stage;
	const char *name, *value; /* one more label */
};

/* Print a text as the value of a label. */
static void print_quoted(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		if (*text == '\n')
			fputs("\\n", out);
		else
			fputc(*text, out);
	}
	fputc('"', out);
}

static void print_label(FILE *out, const char *name, const char *value)
{
	if (!name || !value)
		return;
	fprintf(out, ",%s=", name);
	print_quoted(out, value);
}

/* Print the labels and the value. bound: of a bucket, or NULL. */
static void print_sample(FILE *out, const struct labels *l, const char *bound, double value)
{
	fprintf(out, "{pid=\"%.0f\"", l->pid);
	print_label(out, "config", l->config);
	print_label(out, "role", l->role);
	print_label(out, "kind", l->kind);
	print_label(out, "stage", l->stage);
	print_label(out, l->name, l->value);
	print_label(out, "le", bound);
	fprintf(out, "} %.15g\n", value);
}

static void print_histogram(FILE *out, const struct family *f, const struct labels *l,
			    const json_t *latency)
{
	const json_t *buckets = json_object_get(latency, "buckets");
	const double count = gn_report_number(latency, "count", 0);
	json_int_t n = 0;
	char bound[32];
	size_t i = 0;
	int k;

	for (k = FIRST_BOUND; k <= LAST_BOUND; k++) {
		const json_int_t upper = ((json_int_t)1 << k) - 1;

		for (; i + 1 < json_array_size(buckets) &&
		       json_integer_value(json_array_get(buckets, i)) <= upper;
		     i += 2)
			n += json_integer_value(json_array_get(buckets, i + 1));
		snprintf(bound, sizeof(bound), "%.10g", (double)upper * f->scale);
		fprintf(out, "%s_bucket", f->name);
		print_sample(out, l, bound, (double)n);
	}
	fprintf(out, "%s_bucket", f->name);
	print_sample(out, l, "+Inf", count);
	fprintf(out, "%s_count", f->name);
	print_sample(out, l, NULL, count);
	fprintf(out, "%s_sum", f->name);
	print_sample(out, l, NULL, gn_report_number(latency, "mean_ns", 0) * count * f->scale);
}

/* Print the value of a family that `object` has, if it has one. */
static void print_value(FILE *out, const struct family *f, const struct labels *l,
			const json_t *object)
{
	double value;

	if (f->type == HISTOGRAM) {
		if (f->path)
			object = json_object_get(object, f->path);
		if (object)
			print_histogram(out, f, l, object);
		return;
	}
	value = f->path ? gn_report_number(object, f->path, -1) : json_number_value(object);
	if (value < 0 && f->other)
		value = gn_report_number(object, f->other, -1);
	if (value < 0)
		return;
	fprintf(out, "%s%s", f->name, f->type == COUNTER ? "_total" : "");
	print_sample(out, l, NULL, value * f->scale);
}

/* -- subjects -- */

/* Print a sample for each member of an object. with_latency: skip members without `latency`. */
static void print_members(FILE *out, const struct family *f, struct labels l, const char *label,
			  const json_t *object, bool with_latency)
{
	const json_t *each;

	l.name = label;
	json_object_foreach ((json_t *)object, l.value, each)
		if (!with_latency || json_object_get(each, "latency"))
			print_value(out, f, &l, each);
}

/* The operations of a role, and of its stages that measure them. */
static void print_operations(FILE *out, const struct family *f, struct labels l, const json_t *role)
{
	const json_t *stage;
	char number[24];
	size_t i;

	print_members(out, f, l, "op", role, true);
	l.stage = number;
	json_array_foreach (json_object_get(role, "stages"), i, stage) {
		snprintf(number, sizeof(number), "%zu", i);
		print_members(out, f, l, "op", stage, true);
	}
}

static void print_places(FILE *out, const struct family *f, struct labels l, const json_t *role)
{
	struct gn_work_place places[GN_WORK_PLACES];
	const size_t n = gn_work_places(role, places);

	for (size_t i = 0; i < n; i++) {
		l.stage = places[i].stage;
		print_value(out, f, &l, places[i].own_time);
	}
}

/*
 * The errors of a role by status, also those that have not occurred: an increase from "no sample"
 * to 1 would not show in the rate of a counter.
 */
static void print_errors(FILE *out, const struct family *f, struct labels l, const json_t *errors)
{
	json_t *all = errors ? json_object() : NULL;

	for (size_t i = GANTRY_S_OK + 1;
	     all && i < sizeof(errors_of_role) / sizeof(errors_of_role[0]); i++)
		json_object_set_new(all, errors_of_role[i], json_integer(0));
	json_object_update(all, (json_t *)errors);
	print_members(out, f, l, "status", all, false);
	json_decref(all);
}

/*
 * False for a session that ends, because the client can have resumed it, and for a connection
 * without HELLO: another session can have the same id, and labels must be unique.
 */
static bool has_own_id(const json_t *session)
{
	const char *state = json_string_value(json_object_get(session, "state"));

	return gn_report_number(session, "lanes", 0) > 0 &&
	       (!state || strcmp(state, "ending") != 0);
}

static void print_sessions(FILE *out, const struct family *f, struct labels l, const json_t *role)
{
	const json_t *session;
	size_t i;

	l.name = "session";
	json_array_foreach (json_object_get(role, "sessions"), i, session) {
		l.value = json_string_value(json_object_get(session, "id"));
		if (!has_own_id(session))
			continue;
		print_value(out, f, &l, session);
	}
}

static void print_role(FILE *out, const struct family *f, const struct labels *l,
		       const json_t *role)
{
	switch (f->subject) {
	case ROLE:
		print_value(out, f, l, role);
		break;
	case SESSION:
		print_sessions(out, f, *l, role);
		break;
	case OPERATION:
		print_operations(out, f, *l, role);
		break;
	case HOP:
		print_members(out, f, *l, "hop", json_object_get(role, "hops"), false);
		break;
	case PLACE:
		print_places(out, f, *l, role);
		break;
	case ERROR:
		print_errors(out, f, *l, json_object_get(role, "errors"));
		break;
	case UP:
	case PROCESS:
	case DEVICE:
		break;
	}
}

/* only: the role that is wanted; NULL: all. */
static void print_process(FILE *out, const struct family *f, const json_t *process,
			  const char *only)
{
	struct labels l = {.pid = gn_report_number(process, "pid", 0),
			   .config = json_string_value(json_object_get(process, "config"))};
	const json_t *role;

	if (only && (f->subject == UP || f->subject == PROCESS || f->subject == DEVICE))
		return;
	if (f->subject == UP) {
		fputs(f->name, out);
		print_sample(out, &l, NULL, 1);
		return;
	}
	if (f->subject == PROCESS) {
		print_value(out, f, &l, process);
		return;
	}
	if (f->subject == DEVICE) {
		print_members(out, f, l, "device", json_object_get(process, "devices"), false);
		return;
	}
	json_object_foreach (json_object_get(process, "roles"), l.role, role) {
		if (only && strcmp(only, l.role) != 0)
			continue;
		l.kind = json_string_value(json_object_get(role, "role"));
		print_role(out, f, &l, role);
	}
}

static void print_silent(FILE *out, const struct family *f, const json_t *silent)
{
	const json_t *pid;
	size_t i;

	json_array_foreach ((json_t *)silent, i, pid) {
		fputs(f->name, out);
		print_sample(out, &(struct labels){.pid = json_number_value(pid)}, NULL, 0);
	}
}

/* The classic format has the suffix of a counter in the name of the family. */
static void print_head(FILE *out, enum gn_metrics_format format, const struct family *f)
{
	static const char *const types[] = {"counter", "gauge", "histogram"};
	const char *suffix = format == GN_METRICS_CLASSIC && f->type == COUNTER ? "_total" : "";

	fprintf(out, "# TYPE %s%s %s\n", f->name, suffix, types[f->type]);
	if (f->unit && format == GN_METRICS_OPEN)
		fprintf(out, "# UNIT %s %s\n", f->name, f->unit);
	fprintf(out, "# HELP %s%s %s\n", f->name, suffix, f->help);
}

void gn_stat_print_metrics(FILE *out, enum gn_metrics_format format, const json_t *list,
			   const json_t *silent, const char *role)
{
	const struct family *f;
	const json_t *process;
	size_t i;

	for (f = families; f < families + sizeof(families) / sizeof(families[0]); f++) {
		print_head(out, format, f);
		json_array_foreach ((json_t *)list, i, process)
			print_process(out, f, process, role);
		if (f->subject == UP && !role)
			print_silent(out, f, silent);
	}
	if (format == GN_METRICS_OPEN)
		fputs("# EOF\n", out);
}
