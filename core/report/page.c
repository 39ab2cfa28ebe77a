/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "report/page_draw.h"
#include "report/report.h"
#include "report/report_table.h"

/* The lines of page.html. */
static const char *const template_lines[] = {
#include "report/page_template.inc"
};

static const char *text(const json_t *object, const char *key)
{
	const char *string = json_string_value(json_object_get(object, key));

	return string ? string : "";
}

/* -- texts -- */

void gn_draw_text(FILE *out, const char *text)
{
	for (; text && *text; text++) {
		const unsigned char c = (unsigned char)*text;

		if (c == '&')
			fputs("&amp;", out);
		else if (c == '<')
			fputs("&lt;", out);
		else if (c == '>')
			fputs("&gt;", out);
		else if (c == '"')
			fputs("&quot;", out);
		else if (c == '\'')
			fputs("&#39;", out);
		else
			fputc((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f ? '?' : c, out);
	}
}

static int print_title(FILE *out, const json_t *page)
{
	fputs("<title>gantry run ", out);
	gn_draw_text(out, text(json_object_get(page, "report"), "config"));
	fputs("</title>\n", out);
	return 0;
}

static int print_heading(FILE *out, const json_t *page)
{
	fputs("<h1>gantry run ", out);
	gn_draw_text(out, text(json_object_get(page, "report"), "config"));
	fputs("</h1>\n", out);
	return 0;
}

/* Print what print() writes, as preformatted text. */
static int print_text(FILE *out, const json_t *tree, void (*print)(FILE *out, const json_t *tree))
{
	char *shown = NULL;
	size_t n;
	FILE *f = open_memstream(&shown, &n);

	if (!f)
		return -ENOMEM;
	print(f, tree);
	if (fclose(f)) {
		free(shown);
		return -ENOMEM;
	}
	fputs("<pre>", out);
	gn_draw_text(out, shown);
	fputs("</pre>\n", out);
	free(shown);
	return 0;
}

static int print_summary(FILE *out, const json_t *page)
{
	return print_text(out, json_object_get(page, "report"), gn_report_print_table);
}

static void print_all(FILE *out, const json_t *report)
{
	gn_report_print_text(out, report, 0);
}

static int print_values(FILE *out, const json_t *page)
{
	return print_text(out, json_object_get(page, "report"), print_all);
}

static int print_config(FILE *out, const json_t *page)
{
	fputs("<pre id=\"config\">", out);
	gn_draw_text(out, text(page, "config"));
	fputs("</pre>\n", out);
	return 0;
}

/* -- drawings -- */

static int print_topology(FILE *out, const json_t *page)
{
	gn_draw_topology(out, json_object_get(page, "topology"));
	return 0;
}

static int print_interval(FILE *out, const json_t *page)
{
	const double ns = gn_report_number(page, "samples.interval_ns", 0);
	char interval[GN_UNITS_BYTES];

	fprintf(out, "<p>Each step is about %s long.",
		gn_time_format(interval, sizeof(interval), (uint64_t)ns));
	if (ns > GN_NS_PER_S)
		fputs(" The run was long, so steps were joined; a joined step has the higher percentiles.",
		      out);
	fputs("</p>\n", out);
	return 0;
}

static int print_series(FILE *out, const json_t *page)
{
	gn_draw_series(out, json_object_get(page, "samples"));
	return 0;
}

static int print_hops(FILE *out, const json_t *page)
{
	gn_draw_hops(out, json_object_get(page, "report"));
	return 0;
}

static int print_places(FILE *out, const json_t *page)
{
	gn_draw_places(out, json_object_get(page, "report"));
	return 0;
}

static int print_histograms(FILE *out, const json_t *page)
{
	gn_draw_histograms(out, json_object_get(page, "report"));
	return 0;
}

/* -- tables -- */

/*
 * Print a row for each number of the objects `counters` and `errors`, and for each that ends in
 * "_ops". path: of the object, such as "roles.store"
 */
static void print_counts(FILE *out, const char *path, const char *object, const json_t *tree)
{
	const int in_counters = !strcmp(object, "counters") || !strcmp(object, "errors");
	const json_t *value;
	const char *key;
	char inner[256];
	size_t i;

	json_array_foreach ((json_t *)tree, i, value) {
		snprintf(inner, sizeof(inner), "%s.%zu", path, i);
		print_counts(out, inner, "", value);
	}
	json_object_foreach ((json_t *)tree, key, value) {
		const size_t n = strlen(key);

		if (json_is_object(value) || json_is_array(value)) {
			snprintf(inner, sizeof(inner), "%s%s%s", path, *path ? "." : "", key);
			print_counts(out, inner, key, value);
		} else if (json_integer_value(value) &&
			   (in_counters || (n > 4 && !strcmp(key + n - 4, "_ops")))) {
			fputs("<tr><td>", out);
			gn_draw_text(out, path);
			fputs("</td><td>", out);
			gn_draw_text(out, key);
			fprintf(out, "</td><td>%" JSON_INTEGER_FORMAT "</td></tr>\n",
				json_integer_value(value));
		}
	}
}

static int print_counters(FILE *out, const json_t *page)
{
	fputs("<table id=\"counters\"><tr><th>object</th><th>counter</th><th>value</th></tr>\n",
	      out);
	print_counts(out, "", "", json_object_get(page, "report"));
	fputs("</table>\n", out);
	return 0;
}

static int print_machine(FILE *out, const json_t *page)
{
	const json_t *value;
	const char *key;

	fputs("<table id=\"machine\">\n", out);
	json_object_foreach (json_object_get(page, "machine"), key, value) {
		char shown[GN_REPORT_VALUE];
		size_t stem;

		gn_report_format_value(shown, key, value, &stem);
		fprintf(out, "<tr><th>%.*s</th><td>", (int)stem, key);
		gn_draw_text(out, shown);
		fputs("</td></tr>\n", out);
	}
	fputs("</table>\n", out);
	return 0;
}

/* -- data -- */

/*
 * Print the page as JSON. In HTML, the text "</script" or "<!--" in a string would end or change
 * the element, so the characters that HTML gives a meaning are written as \uXXXX. JSON has them
 * only inside of strings.
 */
static int print_data(FILE *out, const json_t *page)
{
	char *json = json_dumps(page, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(12));

	if (!json)
		return -ENOMEM;
	fputs("<script type=\"application/json\" id=\"data\">", out);
	for (const char *c = json; *c; c++)
		if (strchr("<>&", *c))
			fprintf(out, "\\u%04x", (unsigned)*c);
		else
			fputc(*c, out);
	fputs("</script>\n", out);
	free(json);
	return 0;
}

static const struct {
	const char *line;
	int (*print)(FILE *out, const json_t *page);
} parts[] = {
	{"<!-- title -->", print_title},
	{"<!-- heading -->", print_heading},
	{"<!-- summary -->", print_summary},
	{"<!-- topology -->", print_topology},
	{"<!-- interval -->", print_interval},
	{"<!-- series -->", print_series},
	{"<!-- hops -->", print_hops},
	{"<!-- places -->", print_places},
	{"<!-- histograms -->", print_histograms},
	{"<!-- counters -->", print_counters},
	{"<!-- values -->", print_values},
	{"<!-- config -->", print_config},
	{"<!-- machine -->", print_machine},
	{"<!-- data -->", print_data},
};

/* Print a line of the template, or the part that it names. */
static int print_line(FILE *out, const char *line, const json_t *page)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strcmp(line, parts[i].line))
			return parts[i].print(out, page);
	fprintf(out, "%s\n", line);
	return 0;
}

int gn_page_print(FILE *out, const json_t *page)
{
	int rc = 0;

	for (size_t i = 0; i < sizeof(template_lines) / sizeof(template_lines[0]) && !rc; i++)
		rc = print_line(out, template_lines[i], page);
	return rc;
}
