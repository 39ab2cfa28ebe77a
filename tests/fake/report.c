/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

static struct fake_report *of(struct gantry_writer *w)
{
	return w->core;
}

/* Append the key, or in an array the index, to the path. */
static void enter(struct fake_report *r, const char *key)
{
	size_t len = r->level[r->depth].path_len;
	char index[16];

	if (r->level[r->depth].next >= 0) {
		if (key)
			fake_fail("report: key \"%s\" inside an array", key);
		snprintf(index, sizeof index, "%d", r->level[r->depth].next++);
		key = index;
	}
	if (!key)
		key = "";
	snprintf(r->path + len, sizeof r->path - len, "%s%s", len && *key ? "." : "", key);
}

static void open_level(struct gantry_writer *w, const char *key, int next)
{
	struct fake_report *r = of(w);

	enter(r, key);
	if (++r->depth == sizeof r->level / sizeof *r->level)
		fake_fail("report: too deep");
	r->level[r->depth].path_len = strlen(r->path);
	r->level[r->depth].next = next;
}

static void object(struct gantry_writer *w, const char *key)
{
	open_level(w, key, -1);
}

static void array(struct gantry_writer *w, const char *key)
{
	open_level(w, key, 0);
}

static void end(struct gantry_writer *w)
{
	if (of(w)->depth == 0)
		fake_fail("report: one end too many");
	of(w)->depth--;
}

__attribute__((format(printf, 3, 4))) static void line(struct fake_report *r, const char *key,
						       const char *fmt, ...)
{
	va_list ap;

	enter(r, key);
	r->used += (size_t)snprintf(r->text + r->used, sizeof r->text - r->used, "%s=", r->path);
	va_start(ap, fmt);
	r->used += (size_t)vsnprintf(r->text + r->used, sizeof r->text - r->used, fmt, ap);
	va_end(ap);
	r->used += (size_t)snprintf(r->text + r->used, sizeof r->text - r->used, "\n");
	if (r->used >= sizeof r->text - 512)
		fake_fail("report: too long");
}

static void u64(struct gantry_writer *w, const char *key, uint64_t value)
{
	line(of(w), key, "%llu", (unsigned long long)value);
}

static void real(struct gantry_writer *w, const char *key, double value)
{
	line(of(w), key, "%g", value);
}

static void string(struct gantry_writer *w, const char *key, const char *value)
{
	line(of(w), key, "%s", value);
}

static void boolean(struct gantry_writer *w, const char *key, int value)
{
	line(of(w), key, "%s", value ? "true" : "false");
}

void fake_report_init(struct fake_report *report)
{
	memset(report, 0, sizeof *report);
	report->level[0].next = -1;
	report->pub = (struct gantry_writer){
		.core = report,
		.object = object,
		.array = array,
		.end = end,
		.u64 = u64,
		.real = real,
		.string = string,
		.boolean = boolean,
	};
}

const char *fake_reported(const struct fake_report *report, const char *path)
{
	size_t n = strlen(path);

	for (const char *at = report->text; *at; at = strchr(at, '\n') + 1)
		if (!strncmp(at, path, n) && at[n] == '=')
			return at + n + 1;
	return NULL;
}

uint64_t fake_reported_u64(const struct fake_report *report, const char *path)
{
	const char *value = fake_reported(report, path);

	return value ? strtoull(value, NULL, 10) : UINT64_MAX;
}
