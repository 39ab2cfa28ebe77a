/* SPDX-License-Identifier: BSD-3-Clause */
#include "top/top_screen.h"

#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "report/report.h"
#include "top/top_columns.h"
#include "top/top_keys.h"

#define HEADER_LINES 3
#define HINT "q quit  h help  < > sort  Enter open  Space pause"

static unsigned limit_of(unsigned width)
{
	return width && width < GN_TOP_LINE ? width : GN_TOP_LINE - 1;
}

/* Append a line, without the columns that the terminal does not have. Returns NULL: no memory. */
static struct gn_top_line *add(struct gn_top_screen *screen, unsigned width,
			       enum gn_top_style style, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static struct gn_top_line *add(struct gn_top_screen *screen, unsigned width,
			       enum gn_top_style style, const char *fmt, ...)
{
	struct gn_top_line *line;
	va_list args;

	if (screen->n == screen->capacity) {
		const size_t capacity = screen->capacity ? 2 * screen->capacity : 64;
		struct gn_top_line *lines = realloc(screen->lines, capacity * sizeof(*lines));

		if (!lines)
			return NULL;
		screen->lines = lines;
		screen->capacity = capacity;
	}
	line = &screen->lines[screen->n++];
	*line = (struct gn_top_line){.style = style};
	va_start(args, fmt);
	vsnprintf(line->text, limit_of(width) + 1, fmt, args);
	va_end(args);
	for (char *c = line->text; *c; c++)
		if (*c < 0x20 || *c > 0x7e)
			*c = '?';
	return line;
}

void gn_top_screen_fini(struct gn_top_screen *screen)
{
	free(screen->lines);
	*screen = (struct gn_top_screen){0};
}

/* -- header -- */

static void add_header(const struct gn_top_model *m, unsigned width, struct gn_top_screen *screen)
{
	char iops[16], bytes[GN_UNITS_BYTES], clock[16] = "";
	const size_t n_sessions = m->n_served > m->n_opened ? m->n_served : m->n_opened;
	const char *order = m->reverse ? " reversed" : "";
	struct tm tm;

	gn_count_format(iops, sizeof(iops), m->total_iops);
	gn_size_format(bytes, sizeof(bytes),
		       m->total_bytes < 1e18 ? (uint64_t)m->total_bytes : (uint64_t)1e18);
	if (localtime_r(&m->time, &tm))
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	add(screen, width, GN_TOP_PLAIN,
	    "%s  %s IOPS  %s/s  %zu process%s, %zu role%s, %zu session%s", clock, iops, bytes,
	    m->n_processes, m->n_processes == 1 ? "" : "es", m->n_roles, m->n_roles == 1 ? "" : "s",
	    n_sessions, n_sessions == 1 ? "" : "s");
	if (m->notice[0] || m->paused)
		add(screen, width, GN_TOP_ALERT, "%s%s%s", m->paused ? "paused" : "",
		    m->paused && m->notice[0] ? "; " : "", m->notice);
	else
		add(screen, width, GN_TOP_PLAIN, "over %.1f s, every %u s, sorted by %s%s",
		    m->seconds, m->interval_s, gn_top_columns[m->column].title, order);
}

/* -- rows -- */

/* Print a cell of the given width; left: left-justified. Returns the end. */
static char *put_cell(char *at, const char *text, int width)
{
	const int n = abs(width);

	return at + sprintf(at, width < 0 ? "%-*.*s" : "%*.*s", n, n, text);
}

static void trim(char *text)
{
	size_t n = strlen(text);

	while (n && text[n - 1] == ' ')
		text[--n] = '\0';
}

static void add_heads(const struct gn_top_model *m, unsigned width, struct gn_top_screen *screen)
{
	bool chosen[32];
	char text[GN_TOP_LINE], *at = text;

	gn_top_choose_columns(width ? limit_of(width) : 0, chosen);
	(void)m;
	for (size_t i = 0; i < gn_top_n_columns; i++) {
		if (!chosen[i])
			continue;
		if (at != text)
			*at++ = ' ';
		at = put_cell(at, gn_top_columns[i].title, gn_top_columns[i].width);
	}
	trim(text);
	add(screen, width, GN_TOP_HEADING, "%s", text);
}

static void add_row(const struct gn_top_row *row, bool selected, unsigned width,
		    struct gn_top_screen *screen)
{
	char text[GN_TOP_LINE], cell[GN_TOP_CELL], *at = text;
	struct gn_top_line *line;
	unsigned bar = 0;
	bool chosen[32];

	gn_top_choose_columns(width ? limit_of(width) : 0, chosen);
	for (size_t i = 0; i < gn_top_n_columns; i++) {
		if (!chosen[i])
			continue;
		if (at != text)
			*at++ = ' ';
		if (gn_top_columns[i].width == -GN_TOP_BAR && row->has_share)
			bar = (unsigned)(at - text);
		gn_top_print_cell(&gn_top_columns[i], row, cell);
		at = put_cell(at, cell, gn_top_columns[i].width);
	}
	trim(text);
	line = add(screen, width, selected ? GN_TOP_SELECTED : GN_TOP_PLAIN, "%s", text);
	if (line)
		line->bar = bar;
}

/* -- bodies -- */

/* Returns the first line to be shown, so that the line `wanted` is among the `page` lines. */
static size_t scroll(size_t first, size_t wanted, size_t n, size_t page)
{
	if (wanted < first)
		first = wanted;
	if (wanted >= first + page)
		first = wanted - page + 1;
	return n <= page ? 0 : first > n - page ? n - page : first;
}

/* Explain why there are no rows; the text can take several lines. */
static void add_none(const struct gn_top_model *m, unsigned width, struct gn_top_screen *screen)
{
	char text[PATH_MAX + 512];
	const size_t step = limit_of(width);

	if (m->only_role)
		snprintf(text, sizeof(text), "no gantry process in %s has a role %.250s", m->dir,
			 m->only_role);
	else
		snprintf(text, sizeof(text), GN_TOP_NONE, m->dir);
	for (size_t at = 0; at < strlen(text); at += step)
		add(screen, width, GN_TOP_ALERT, "%s", text + at);
}

static void draw_list(struct gn_top_model *m, unsigned width, size_t page,
		      struct gn_top_screen *screen)
{
	const size_t at = gn_top_find(m, m->selected);

	add_heads(m, width, screen);
	if (!m->n_shown && m->has_reports)
		add_none(m, width, screen);
	m->first = scroll(m->first, at, m->n_shown, page);
	for (size_t i = m->first; i < m->n_shown && i < m->first + page; i++)
		add_row(m->order[i], page != SIZE_MAX && i == at, width, screen);
}

/* Append the lines of a text that are on the page. Returns how many lines the text has. */
static size_t add_text(char *text, size_t first, size_t page, unsigned width,
		       struct gn_top_screen *screen)
{
	char *line, *rest = text;
	size_t n = 0;

	while ((line = strsep(&rest, "\n")) && (*line || rest)) {
		if (n >= first && n - first < page)
			add(screen, width, GN_TOP_PLAIN, "%s", line);
		n++;
	}
	return n;
}

static size_t count_lines(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

/* Append the part of a text to which the model has scrolled. */
static void draw_text(struct gn_top_model *m, char *text, unsigned width, size_t page,
		      struct gn_top_screen *screen)
{
	const size_t n = count_lines(text);

	m->first = n <= page ? 0 : m->first > n - page ? n - page : m->first;
	add_text(text, m->first, page, width, screen);
}

static void draw_detail(struct gn_top_model *m, unsigned width, size_t page,
			struct gn_top_screen *screen)
{
	const struct gn_top_row *row = NULL;
	char *text = NULL;
	size_t n = 0;
	FILE *f;

	for (size_t i = 0; i < m->n_rows && !row; i++)
		row = strcmp(m->rows[i].key, m->opened) ? NULL : &m->rows[i];
	add_heads(m, width, screen);
	if (!row) {
		add(screen, width, GN_TOP_ALERT, "it has ended; Esc goes back to the list");
		return;
	}
	add_row(row, false, width, screen);
	f = open_memstream(&text, &n);
	if (!f)
		return;
	gn_report_print_text(f, row->object, 0);
	if (fclose(f) == 0)
		draw_text(m, text, width, page > 1 ? page - 1 : 1, screen);
	free(text);
}

static void draw_help(struct gn_top_model *m, unsigned width, size_t page,
		      struct gn_top_screen *screen)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return;
	for (size_t i = 0; i < gn_top_n_keys; i++)
		fprintf(f, "%-19s %s\n", gn_top_keys[i].label, gn_top_keys[i].help);
	fputs("\nA capital letter sorts by its column:\n", f);
	for (size_t i = 0; i < gn_top_n_columns; i++)
		fprintf(f, "%c  %-8s %s\n", gn_top_columns[i].letter, gn_top_columns[i].title,
			gn_top_columns[i].help);
	if (fclose(f) == 0) {
		add(screen, width, GN_TOP_HEADING, "%-19s %s", "KEY", "MEANING");
		draw_text(m, text, width, page, screen);
	}
	free(text);
}

static void (*const bodies[])(struct gn_top_model *m, unsigned width, size_t page,
			      struct gn_top_screen *screen) = {
	[GN_TOP_LIST] = draw_list,
	[GN_TOP_DETAIL] = draw_detail,
	[GN_TOP_HELP] = draw_help,
};

void gn_top_draw(struct gn_top_model *m, unsigned width, unsigned height,
		 struct gn_top_screen *screen)
{
	screen->n = 0;
	if (width && height && (width < GN_TOP_MIN_WIDTH || height < GN_TOP_MIN_HEIGHT)) {
		/* the numbers come first, because a terminal of ten columns cuts the rest */
		add(screen, width, GN_TOP_ALERT, "%dx%d needed", GN_TOP_MIN_WIDTH,
		    GN_TOP_MIN_HEIGHT);
		return;
	}
	m->page = height ? height - HEADER_LINES - 1 : SIZE_MAX;
	add_header(m, width, screen);
	bodies[m->mode](m, width, m->page, screen);
	if (height && screen->n > height - 1)
		screen->n = height - 1;
	while (height && screen->n < height - 1)
		if (!add(screen, width, GN_TOP_PLAIN, "%s", ""))
			return;
	if (height)
		add(screen, width, GN_TOP_HINT, "%s", HINT);
}
