/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/container_of.h"

static struct gn_report *of(struct gantry_writer *w)
{
	return gn_container_of(w, struct gn_report, w);
}

/* Add a value to the current object or array. Takes ownership of the reference. */
static void put(struct gn_report *report, const char *key, json_t *value)
{
	json_t *into = report->open[report->depth];
	int rc;

	if (report->beyond) {
		json_decref(value);
		return;
	}
	if (json_is_array(into))
		rc = json_array_append_new(into, value);
	else
		rc = json_object_set_new(into, key ? key : "", value);
	if (rc)
		report->failed = true;
}

static void enter(struct gn_report *report, const char *key, json_t *value)
{
	if (report->beyond || report->depth + 1 == GN_REPORT_DEPTH || !value) {
		json_decref(value);
		report->beyond++;
		report->failed = true;
		return;
	}
	put(report, key, value);
	report->open[++report->depth] = value;
}

static void write_object(struct gantry_writer *w, const char *key)
{
	enter(of(w), key, json_object());
}

static void write_array(struct gantry_writer *w, const char *key)
{
	enter(of(w), key, json_array());
}

static void write_end(struct gantry_writer *w)
{
	struct gn_report *report = of(w);

	if (report->beyond)
		report->beyond--;
	else if (report->depth)
		report->depth--;
	else
		report->failed = true;
}

static void write_u64(struct gantry_writer *w, const char *key, uint64_t value)
{
	put(of(w), key, json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value));
}

/*
 * JSON has no infinity and no NaN, which jansson rejects. They occur if no time has passed; write
 * 0.
 */
static void write_real(struct gantry_writer *w, const char *key, double value)
{
	json_t *number = json_real(value);

	put(of(w), key, number ? number : json_real(0));
}

json_t *gn_report_string(const char *text)
{
	json_t *string = text ? json_string(text) : json_null();
	char *copy = string ? NULL : strdup(text);

	if (!copy)
		return string;
	for (char *c = copy; *c; c++)
		if (*c & 0x80)
			*c = '?';
	string = json_string(copy);
	free(copy);
	return string;
}

static void write_string(struct gantry_writer *w, const char *key, const char *value)
{
	put(of(w), key, gn_report_string(value));
}

static void write_boolean(struct gantry_writer *w, const char *key, int value)
{
	put(of(w), key, json_boolean(value));
}

void gn_report_init(struct gn_report *report)
{
	memset(report, 0, sizeof(*report));
	report->w.core = report;
	report->w.object = write_object;
	report->w.array = write_array;
	report->w.end = write_end;
	report->w.u64 = write_u64;
	report->w.real = write_real;
	report->w.string = write_string;
	report->w.boolean = write_boolean;
	report->root = json_object();
	report->open[0] = report->root;
	report->failed = !report->root;
}

void gn_report_fini(struct gn_report *report)
{
	json_decref(report->root);
	report->root = NULL;
}

json_t *gn_report_tree(const struct gn_report *report)
{
	return report->failed || report->depth || report->beyond ? NULL : report->root;
}

int gn_report_print_json(FILE *out, const json_t *tree)
{
	errno = 0;
	if (!json_dumpf(tree, out, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) &&
	    fputc('\n', out) != EOF && !fflush(out))
		return 0;
	if (!ferror(out))
		return -ENOMEM;
	return errno ? -errno : -EIO;
}

double gn_report_number(const json_t *tree, const char *path, double dflt)
{
	char key[64];

	while (tree && *path) {
		size_t n = strcspn(path, ".");

		if (n >= sizeof(key))
			return dflt;
		memcpy(key, path, n);
		key[n] = '\0';
		tree = json_object_get(tree, key);
		path += n + (path[n] == '.');
	}
	return json_is_number(tree) ? json_number_value(tree) : dflt;
}
