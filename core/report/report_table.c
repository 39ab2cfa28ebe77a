/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/report_table.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "report/report.h"
#include "report/role_work.h"

#define LABEL 16           /* columns of the name of a row */
#define INDENT (LABEL + 3) /* column of the first item of a list */
#define ITEM (GN_TABLE_COLUMNS - INDENT - 1)

/* -- cells -- */

/* Copy a name, cut to `width` columns. dst: width + 1 bytes. */
static const char *cut(char *dst, const char *name, size_t width)
{
	if ((size_t)snprintf(dst, width + 1, "%s", name) > width)
		dst[width - 1] = '~';
	return dst;
}

/* Format a time in at most 8 columns: without decimals if it is long. */
static char *format_time(char *dst, double ns)
{
	const uint64_t n = ns > 0 ? ns < 0x1p63 ? (uint64_t)ns : INT64_MAX : 0;

	if (n < 10000 * GN_NS_PER_S)
		return gn_time_format(dst, GN_UNITS_BYTES, n);
	if (n < 10000000 * GN_NS_PER_S)
		snprintf(dst, GN_UNITS_BYTES, "%llus", n / GN_NS_PER_S);
	else
		snprintf(dst, GN_UNITS_BYTES, "%lluh", n / (3600 * GN_NS_PER_S));
	return dst;
}

/* Format a number of bytes in at most 9 columns. */
static char *format_bytes(char *dst, double bytes)
{
	char *point, *unit;

	if (bytes >= 10000 * 0x1p40)
		return strcpy(dst, ">9999TiB");
	gn_size_format(dst, GN_UNITS_BYTES,
		       bytes > 0 ? bytes < 0x1p63 ? (uint64_t)bytes : INT64_MAX : 0);
	point = strchr(dst, '.');
	unit = point ? point + strcspn(point, "KMGT") : NULL;
	if (strlen(dst) > 9 && unit)
		memmove(point, unit, strlen(unit) + 1);
	return dst;
}

/* -- lists of words -- */

/* A line with a label and items, separated by commas, which continues on further lines. */
struct list {
	FILE *out;
	const char *label;
	size_t column; /* 0: nothing is printed */
};

__attribute__((format(printf, 2, 3))) static void add_item(struct list *list, const char *fmt, ...)
{
	char item[GN_REPORT_VALUE + 96], shown[ITEM + 1], label[LABEL + 1];
	va_list args;
	size_t n;

	va_start(args, fmt);
	vsnprintf(item, sizeof(item), fmt, args);
	va_end(args);
	n = strlen(cut(shown, item, ITEM));
	if (!list->column) {
		fprintf(list->out, "  %-*s ", LABEL, cut(label, list->label, LABEL));
		list->column = INDENT;
	} else if (list->column + 2 + n < GN_TABLE_COLUMNS) {
		fputs(", ", list->out);
		list->column += 2;
	} else {
		fprintf(list->out, ",\n%*s", INDENT, "");
		list->column = INDENT;
	}
	gn_report_print_plain(list->out, shown);
	list->column += n;
}

static void end_list(struct list *list)
{
	if (list->column)
		fputc('\n', list->out);
}

/* Add a value: "ops done 5", or only the name of a value that is true. */
static void add_value(struct list *list, const char *key, const json_t *value)
{
	char text[GN_REPORT_VALUE], name[64];
	size_t stem;

	gn_report_format_value(text, key, value, &stem);
	snprintf(name, sizeof(name), "%.*s", (int)stem, key);
	for (char *c = name; *c; c++)
		*c = *c == '_' ? ' ' : *c;
	if (json_is_true(value))
		add_item(list, "%s", name);
	else
		add_item(list, "%s %s", name, text);
}

/* Add the counters of an object that are not 0. */
static void add_counters(struct list *list, const json_t *object)
{
	const json_t *value;
	const char *key;

	json_object_foreach ((json_t *)object, key, value)
		if (json_integer_value(value))
			add_value(list, key, value);
}

/* -- rows -- */

static void print_head(FILE *out)
{
	fprintf(out, "  %-*s %7s %7s %9s %8s %8s %8s %8s\n", LABEL, "", "ops", "IOPS", "bytes/s",
		"p50", "p99", "p99.9", "max");
}

/* One line of the table. bytes < 0, latency NULL: not known. */
static void print_row(FILE *out, const char *name, double ops, double iops, double bytes,
		      const json_t *latency)
{
	static const char *const keys[] = {"p50_ns", "p99_ns", "p99_9_ns", "max_ns"};
	char label[LABEL + 1], ops_text[16], iops_text[16], cell[GN_UNITS_BYTES] = "-";

	if (ops < 1e7)
		snprintf(ops_text, sizeof(ops_text), "%.0f", ops);
	else
		gn_count_format(ops_text, sizeof(ops_text), ops);
	gn_count_format(iops_text, sizeof(iops_text), iops);
	if (bytes >= 0)
		format_bytes(cell, bytes);
	fputs("  ", out);
	gn_report_print_plain(out, cut(label, name, LABEL));
	fprintf(out, "%*s %7s %7s %9s", LABEL - (int)strlen(label), "", ops_text, iops_text, cell);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		fprintf(out, " %8s",
			latency ? format_time(cell, gn_report_number(latency, keys[i], 0)) : "-");
	fputc('\n', out);
}

static double rate(double n, double seconds)
{
	return seconds > 0 ? n / seconds : 0;
}

/*
 * Print a row for each operation of a role or of a stage. prefix: before the name of the operation.
 * Returns the number of rows.
 */
static unsigned print_operations(FILE *out, const char *prefix, const json_t *object,
				 double seconds)
{
	const json_t *op, *latency;
	unsigned rows = 0;
	const char *key;
	char name[64];

	json_object_foreach ((json_t *)object, key, op) {
		double ops, bytes;

		latency = json_object_get(op, "latency");
		ops = gn_report_number(latency, "count", 0);
		if (ops <= 0)
			continue;
		bytes = gn_report_number(op, "bytes", gn_report_number(op, "done_bytes", 0));
		snprintf(name, sizeof(name), "%s%s%s", prefix, *prefix ? " " : "", key);
		print_row(out, name, ops, gn_report_number(op, "iops", rate(ops, seconds)),
			  gn_report_number(op, "bytes_per_second", rate(bytes, seconds)), latency);
		rows++;
	}
	return rows;
}

static void print_total(FILE *out, const json_t *role)
{
	const json_t *total = json_object_get(role, "total");

	print_row(out, "total", gn_report_number(total, "ops", 0),
		  gn_report_number(total, "iops", 0),
		  gn_report_number(total, "bytes_per_second", 0), NULL);
}

static void print_hops(FILE *out, const json_t *role, double seconds)
{
	const json_t *hop;
	const char *key;
	char name[64];

	json_object_foreach (json_object_get(role, "hops"), key, hop) {
		double ops = gn_report_number(hop, "count", 0);

		snprintf(name, sizeof(name), "hop %s", key);
		print_row(out, name, ops, rate(ops, seconds), -1, hop);
	}
}

/* The own times of stages and backend, with their shares. */
static void print_places(FILE *out, const json_t *role, double seconds)
{
	struct gn_work_place places[GN_WORK_PLACES];
	const size_t n = gn_work_places(role, places);

	for (size_t i = 0; i < n; i++) {
		const double ops = gn_report_number(places[i].own_time, "count", 0);
		char name[64];

		snprintf(name, sizeof(name), "in %.32s %.0f%%", places[i].name,
			 100 * places[i].share);
		if (ops > 0)
			print_row(out, name, ops, rate(ops, seconds), -1, places[i].own_time);
	}
}

/* -- roles -- */

/* True for the values of a role that its first line shows, or that say nothing after the end. */
static bool is_shown(const char *key)
{
	static const char *const keys[] = {"lanes",     "depth",     "block_bytes", "elapsed_ns",
					   "submitted", "completed", "size_bytes",  "mapped_bytes"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strcmp(key, keys[i]))
			return true;
	return false;
}

/*
 * Print the line of a role, stage or backend: values that are true or not 0, and the object
 * `counters`.
 */
static void print_counters(FILE *out, const char *label, const json_t *object)
{
	struct list list = {.out = out, .label = label};
	const json_t *value;
	const char *key;

	json_object_foreach ((json_t *)object, key, value)
		if (!is_shown(key) && (json_is_true(value) || json_integer_value(value)))
			add_value(&list, key, value);
	add_counters(&list, json_object_get(object, "counters"));
	end_list(&list);
}

/* Print the object `key` of a role or stage, if it has values that are not 0. */
static void print_group(FILE *out, const char *prefix, const char *key, const json_t *object)
{
	char label[64];
	struct list list = {.out = out, .label = label};

	snprintf(label, sizeof(label), "%s%s%s", prefix, *prefix ? " " : "", key);
	add_counters(&list, json_object_get(object, key));
	end_list(&list);
}

static const char *text(const json_t *object, const char *key)
{
	const char *string = json_string_value(json_object_get(object, key));

	return string ? string : "";
}

/* The first line of a role: "load: initiator, lanes 1, depth 32, block 4KiB". */
static void print_title(FILE *out, const char *name, const json_t *role)
{
	static const char *const keys[] = {"lanes", "depth", "block_bytes", "elapsed_ns"};
	char title[GN_REPORT_VALUE], value[GN_REPORT_VALUE], shown[GN_TABLE_COLUMNS + 1];
	size_t stem, n;

	n = (size_t)snprintf(title, sizeof(title), "%.40s%s: %.32s", name,
			     strlen(name) > 40 ? "~" : "", text(role, "role"));
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && n < sizeof(title); i++) {
		const json_t *item = json_object_get(role, keys[i]);

		if (!item)
			continue;
		gn_report_format_value(value, keys[i], item, &stem);
		n += (size_t)snprintf(title + n, sizeof(title) - n, ", %.*s %s", (int)stem, keys[i],
				      value);
	}
	fputc('\n', out);
	gn_report_print_plain(out, cut(shown, title, GN_TABLE_COLUMNS));
	fputc('\n', out);
}

static void print_stages(FILE *out, const json_t *stages)
{
	const json_t *stage;
	size_t i;

	json_array_foreach ((json_t *)stages, i, stage) {
		print_group(out, text(stage, "type"), "errors", stage);
		print_counters(out, text(stage, "type"), stage);
	}
}

/* True if the role or one of its stages has measured an operation or its own time. */
static bool has_rows(const json_t *role)
{
	struct gn_work_place places[GN_WORK_PLACES];
	struct gn_work work = {0};

	gn_work_add(&work, role, 1);
	return work.latency.used > 0 || gn_work_places(role, places) != 0;
}

static void print_role(FILE *out, const json_t *report, const char *name, const json_t *role)
{
	const json_t *stages = json_object_get(role, "stages"),
		     *backend = json_object_get(role, "backend"), *stage;
	const double seconds = gn_work_seconds(report, role);
	const double open = gn_report_number(role, "submitted", 0) -
			    gn_report_number(role, "completed", 0);
	struct list list = {.out = out, .label = "not completed"};
	size_t i;

	print_title(out, name, role);
	if (has_rows(role))
		print_head(out);
	if (print_operations(out, "", role, seconds) > 1)
		print_total(out, role);
	json_array_foreach ((json_t *)stages, i, stage)
		print_operations(out, text(stage, "type"), stage, seconds);
	print_hops(out, role, seconds);
	print_places(out, role, seconds);
	print_group(out, "", "errors", role);
	if (open > 0)
		add_item(&list, "%.0f of %.0f", open, gn_report_number(role, "submitted", 0));
	end_list(&list);
	print_group(out, "", "verify", role);
	print_counters(out, "counters", role);
	print_stages(out, stages);
	print_counters(out, "connect", json_object_get(role, "connect"));
	print_counters(out, text(backend, "type"), backend);
}

void gn_report_print_table(FILE *out, const json_t *report)
{
	const double quarantined = gn_report_number(report, "quarantined_bytes", 0);
	char elapsed[GN_UNITS_BYTES], cpu[GN_UNITS_BYTES], bytes[GN_UNITS_BYTES];
	const json_t *each;
	const char *name;

	fprintf(out, "result %.16s, elapsed %s, CPU %s", text(report, "result"),
		format_time(elapsed, gn_report_number(report, "elapsed_ns", 0)),
		format_time(cpu, gn_report_number(report, "cpu_ns", 0)));
	if (quarantined > 0)
		fprintf(out, ", quarantined %s", format_bytes(bytes, quarantined));
	fputc('\n', out);
	json_object_foreach (json_object_get(report, "roles"), name, each)
		print_role(out, report, name, each);
	fputs("\ndevices\n", out);
	json_object_foreach (json_object_get(report, "devices"), name, each) {
		struct list list = {.out = out, .label = name};

		add_item(&list, "%s", text(each, "transport"));
		add_counters(&list, json_object_get(each, "counters"));
		end_list(&list);
	}
}
