/* SPDX-License-Identifier: BSD-3-Clause */
/* report_text.c - print a report as text. The suffix of a key selects the format of its value. */
#include "report/report.h"

#include <inttypes.h>
#include <string.h>

#include "base/units.h"

#define VALUE_COLUMN 26
#define TEXT_BYTES GN_REPORT_VALUE

static bool ends_with(const char *key, const char *end, size_t *stem_p)
{
	size_t n = strlen(key), m = strlen(end);

	if (n <= m || strcmp(key + n - m, end))
		return false;
	*stem_p = n - m;
	return true;
}

/* Format a number with few significant digits: 412345 becomes "412.3 k". */
static void format_rate(char *dst, size_t size, double value)
{
	static const char *const units[] = {"", " k", " M", " G"};
	size_t unit = 0;

	while (value >= 10000 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		value /= 1000;
		unit++;
	}
	snprintf(dst, size, "%.*f%s",
		 value < 100 && value != (double)(long)value ? 2
		 : unit                                      ? 1
							     : 0,
		 value, units[unit]);
}

static double number(const json_t *value)
{
	double n = json_number_value(value);

	return n > 0 ? n < 1e18 ? n : 1e18 : 0; /* it becomes an integer */
}

void gn_report_format_value(char *dst, const char *key, const json_t *value, size_t *stem_p)
{
	*stem_p = strlen(key);
	if (json_is_string(value))
		snprintf(dst, TEXT_BYTES, "%s", json_string_value(value));
	else if (json_is_boolean(value))
		snprintf(dst, TEXT_BYTES, "%s", json_is_true(value) ? "yes" : "no");
	else if (!json_is_number(value))
		snprintf(dst, TEXT_BYTES, "-");
	else if (ends_with(key, "_ns", stem_p))
		gn_time_format(dst, TEXT_BYTES, (uint64_t)number(value));
	else if (!strcmp(key, "bytes_per_second") || ends_with(key, "_bytes_per_second", stem_p))
		strncat(gn_size_format(dst, TEXT_BYTES - 3, (uint64_t)number(value)), "/s", 3);
	else if (!strcmp(key, "bytes") || ends_with(key, "_bytes", stem_p))
		gn_size_format(dst, TEXT_BYTES, (uint64_t)number(value));
	else if (!strcmp(key, "iops") || ends_with(key, "_per_second", stem_p))
		format_rate(dst, TEXT_BYTES, number(value));
	else if (json_is_integer(value))
		snprintf(dst, TEXT_BYTES, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else
		snprintf(dst, TEXT_BYTES, "%.3f", json_real_value(value));
}

static void print_indent(FILE *out, int indent)
{
	fprintf(out, "%*s", 2 * indent, "");
}

/* Names and texts can come from a file or a peer, so control characters are replaced. */
void gn_report_print_plain(FILE *out, const char *text)
{
	for (; *text; text++)
		fputc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, out);
}

/* Print the name of a value, and spaces up to the column of values. */
static void start_line(FILE *out, const char *key, size_t length, int indent)
{
	int width = 2 * indent + (int)length;

	print_indent(out, indent);
	for (size_t i = 0; i < length; i++)
		fputc(key[i] == '_'                                    ? ' '
		      : (unsigned char)key[i] < 0x20 || key[i] == 0x7f ? '?'
								       : key[i],
		      out);
	fprintf(out, "%*s", width < VALUE_COLUMN ? VALUE_COLUMN - width : 2, "");
}

static void print_scalar(FILE *out, const char *key, const json_t *value, int indent)
{
	char text[TEXT_BYTES];
	size_t stem;

	gn_report_format_value(text, key, value, &stem);
	start_line(out, key, stem, indent);
	gn_report_print_plain(out, text);
	fputc('\n', out);
}

static bool is_percentiles(const json_t *value)
{
	return json_is_object(value) && json_object_get(value, "p50_ns") &&
	       json_object_get(value, "p99_ns");
}

static void print_percentiles(FILE *out, const char *key, const json_t *value, int indent)
{
	bool first = true;
	char text[TEXT_BYTES];
	const char *name;
	json_t *item;
	size_t stem;

	if (json_object_get(value, "count") && gn_report_number(value, "count", 0) == 0)
		return;
	start_line(out, key, strlen(key), indent);
	json_object_foreach ((json_t *)value, name, item) {
		if (!json_is_number(item) || !ends_with(name, "_ns", &stem))
			continue;
		gn_report_format_value(text, name, item, &stem);
		fputs(first ? "" : "  ", out);
		first = false;
		/* p99_9 is printed as p99.9 */
		for (size_t i = 0; i < stem; i++)
			fputc(name[i] == '_' ? name[0] == 'p' ? '.' : ' ' : name[i], out);
		fprintf(out, " %s", text);
	}
	fputc('\n', out);
}

/*
 * True for a value that states how much of its work a role has done: { "done", "target", "unit" }.
 */
static bool is_progress(const char *key, const json_t *value)
{
	return !strcmp(key, "progress") && json_is_string(json_object_get(value, "unit")) &&
	       gn_report_number(value, "target", 0) > 0; /* lint: a word */
}

/* Format an amount: with a unit for "ns" and "bytes", else the number alone. */
static void format_amount(char *dst, double amount, const char *unit)
{
	if (!strcmp(unit, "ns"))
		gn_time_format(dst, TEXT_BYTES, (uint64_t)amount);
	else if (!strcmp(unit, "bytes"))
		gn_size_format(dst, TEXT_BYTES, (uint64_t)amount);
	else
		snprintf(dst, TEXT_BYTES, "%.0f", amount);
}

static void print_progress(FILE *out, const char *key, const json_t *value, int indent)
{
	const char *unit = json_string_value(json_object_get(value, "unit"));
	double done = number(json_object_get(value, "done"));
	double target = number(json_object_get(value, "target")); /* lint: a word */
	char done_text[TEXT_BYTES], target_text[TEXT_BYTES];

	format_amount(done_text, done, unit);
	format_amount(target_text, target, unit);
	start_line(out, key, strlen(key), indent);
	fprintf(out, "%s of %s", done_text, target_text);
	if (strcmp(unit, "ns") != 0 && strcmp(unit, "bytes") != 0) {
		fputc(' ', out);
		gn_report_print_plain(out, unit);
	}
	fprintf(out, " (%.0f%%)\n", 100 * done / target);
}

static bool is_empty(const json_t *value)
{
	return json_is_object(value) ? json_object_size(value) == 0
				     : json_is_array(value) && json_array_size(value) == 0;
}

static void print_value(FILE *out, const char *key, const json_t *value, int indent);

static void print_array(FILE *out, const char *key, const json_t *array, int indent)
{
	bool scalars = !json_is_object(json_array_get(array, 0)) &&
		       !json_is_array(json_array_get(array, 0));
	char text[TEXT_BYTES], name[96];
	size_t index, stem = strlen(key);
	json_t *item;

	if (scalars)
		start_line(out, key, stem, indent);
	json_array_foreach ((json_t *)array, index, item) {
		if (scalars) {
			gn_report_format_value(text, key, item, &stem);
			fputs(index ? ", " : "", out);
			gn_report_print_plain(out, text);
		} else {
			snprintf(name, sizeof(name), "%s %zu", key, index);
			print_value(out, name, item, indent);
		}
	}
	fputs(scalars ? "\n" : "", out);
}

/* True if the value describes an operation of which there was no IO. */
static bool is_unused(const json_t *value)
{
	return gn_report_number(value, "latency.count", 1) == 0;
}

/* True if all values are counters that are 0. */
static bool is_all_zero(const json_t *value)
{
	const char *key;
	json_t *item;

	json_object_foreach ((json_t *)value, key, item)
		if (!json_is_integer(item) || json_integer_value(item))
			return false;
	return true;
}

static void print_value(FILE *out, const char *key, const json_t *value, int indent)
{
	bool counters = !strcmp(key, "counters");
	const char *name;
	json_t *item;

	if (is_empty(value) || is_unused(value) || (counters && is_all_zero(value)))
		return;
	if (is_percentiles(value)) {
		print_percentiles(out, key, value, indent);
	} else if (is_progress(key, value)) {
		print_progress(out, key, value, indent);
	} else if (json_is_array(value)) {
		print_array(out, key, value, indent);
	} else if (!json_is_object(value)) {
		print_scalar(out, key, value, indent);
	} else {
		print_indent(out, indent);
		gn_report_print_plain(out, key);
		fputc('\n', out);
		json_object_foreach ((json_t *)value, name, item)
			if (!counters || !json_is_integer(item) || json_integer_value(item))
				print_value(out, name, item, indent + 1);
	}
}

void gn_report_print_text(FILE *out, const json_t *tree, int indent)
{
	const char *key;
	json_t *item;

	json_object_foreach ((json_t *)tree, key, item)
		print_value(out, key, item, indent);
}
