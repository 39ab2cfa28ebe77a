/* SPDX-License-Identifier: BSD-3-Clause */
/* print.c - describe an option table, as plain text or for a manual page. */
#include <ctype.h>
#include <string.h>

#include "base/units.h"
#include "config/config_priv.h"

#define NAME_BYTES 256
#define LINE_BYTES 512

static const char *type_text(const struct gantry_option *row)
{
	static const char *const words[] = {
		[GANTRY_OPT_STRING] = "string", [GANTRY_OPT_BOOL] = "true | false",
		[GANTRY_OPT_INT] = "number",    [GANTRY_OPT_SIZE] = "size",
		[GANTRY_OPT_TIME] = "time",     [GANTRY_OPT_CHOICE] = "choice",
		[GANTRY_OPT_GROUP] = "group",
	};

	return gantry_option_type(row) < sizeof(words) / sizeof(words[0]) &&
			       words[gantry_option_type(row)]
		       ? words[gantry_option_type(row)]
		       : "unknown";
}

/* Format the valid values: "1 to 4096", `"a", "b"`, or nothing. */
static void range_text(const struct gantry_option *row, char *dst, size_t size)
{
	char min[GN_UNITS_BYTES], max[GN_UNITS_BYTES];
	size_t n = 0;

	dst[0] = '\0';
	for (uint32_t i = 0; gantry_option_type(row) == GANTRY_OPT_CHOICE && row->choices &&
			     row->choices[i] && n < size;
	     i++)
		n += (size_t)snprintf(dst + n, size - n, "%s\"%s\"", i ? ", " : "",
				      row->choices[i]);
	if (gantry_option_type(row) < GANTRY_OPT_INT || gantry_option_type(row) > GANTRY_OPT_TIME ||
	    (row->min == 0 && row->max == 0))
		return;
	gn_config_limit_text(row, row->min, min);
	gn_config_limit_text(row, row->max, max);
	if (row->max >= row->min && row->max != INT64_MAX)
		snprintf(dst, size, "%s to %s", min, max);
	else if (row->min != INT64_MIN)
		snprintf(dst, size, "%s or more", min);
}

static bool is_quoted(const struct gantry_option *row)
{
	return gantry_option_type(row) == GANTRY_OPT_STRING ||
	       gantry_option_type(row) == GANTRY_OPT_SIZE ||
	       gantry_option_type(row) == GANTRY_OPT_TIME ||
	       gantry_option_type(row) == GANTRY_OPT_CHOICE;
}

/* Format the default of an option. */
static void default_text(const struct gantry_option *row, char *dst, size_t size)
{
	const char *quote = is_quoted(row) ? "\"" : "";

	if (!row->dflt)
		snprintf(dst, size, "must be given");
	else if (gantry_option_type(row) == GANTRY_OPT_GROUP)
		snprintf(dst, size, "optional");
	else
		snprintf(dst, size, "default %s%s%s", quote, row->dflt, quote);
}

/*
 * Write text to a manual page: escape backslashes and leading control characters, and start each
 * sentence on a new line.
 */
static void put_mdoc(FILE *out, const char *text)
{
	char before = '\0';

	if (*text == '.' || *text == '\'')
		fputs("\\&", out);
	for (; *text; before = *text++) {
		if (*text == '\\')
			fputs("\\e", out);
		else if (*text == ' ' && before == '.' && isupper((unsigned char)text[1]))
			fputc('\n', out);
		else
			fputc(*text, out);
	}
	fputc('\n', out);
}

static void print_mdoc(FILE *out, const struct gantry_option *row, const char *name)
{
	char range[LINE_BYTES], dflt[LINE_BYTES], line[2 * LINE_BYTES + 64];

	range_text(row, range, sizeof(range));
	default_text(row, dflt, sizeof(dflt));
	fprintf(out, ".It Cm %s Pq %s\n", name, type_text(row));
	if (row->help)
		put_mdoc(out, row->help);
	if (!range[0])
		dflt[0] = (char)toupper((unsigned char)dflt[0]);
	snprintf(line, sizeof(line), "%s%s%s.%s", range, range[0] ? "; " : "", dflt,
		 row->type & GANTRY_OPT_CHANGEABLE ? " Can change while the process runs." : "");
	put_mdoc(out, line);
}

static void print_text(FILE *out, const struct gantry_option *row, const char *name)
{
	char range[LINE_BYTES], dflt[LINE_BYTES];

	range_text(row, range, sizeof(range));
	default_text(row, dflt, sizeof(dflt));
	fprintf(out, "  %-20s %s%s%s; %s%s\n", name, type_text(row), range[0] ? ", " : "", range,
		dflt, row->type & GANTRY_OPT_CHANGEABLE ? "; changeable" : "");
	if (row->help)
		fprintf(out, "  %-20s %s\n", "", row->help);
}

static void print_rows(FILE *out, const struct gantry_option *table, enum gn_option_style style,
		       const char *prefix)
{
	char name[NAME_BYTES];

	for (; table && table->name; table++) {
		snprintf(name, sizeof(name), "%s%s%s", prefix, prefix[0] ? "." : "", table->name);
		if (style == GN_OPTION_MDOC)
			print_mdoc(out, table, name);
		else
			print_text(out, table, name);
		if (gantry_option_type(table) == GANTRY_OPT_GROUP)
			print_rows(out, table->group, style, name);
	}
}

void gn_option_print(FILE *out, const struct gantry_option *table, enum gn_option_style style,
		     const char *prefix)
{
	print_rows(out, table, style, prefix);
}
