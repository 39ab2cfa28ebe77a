/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page_charts.c - draw the charts of a run: time series, latency histograms, and the shares of
 * hops and stages
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "report/page_draw.h"
#include "report/report.h"
#include "report/role_work.h"

/* Sizes in units of a drawing. */
enum {
	WIDTH = 860,
	HEIGHT = 190,
	LEFT = 84,
	RIGHT = WIDTH - 36,
	TOP = 10,
	BOTTOM = HEIGHT - 28,
	TICKS = 4,
	COLORS = 5, /* of parts, in page.html */
};

enum kind { COUNT, BYTES, TIME };

/* An axis from `from` to `to`, on the positions `start` to `end` of the drawing. */
struct axis {
	enum kind kind;
	bool log;
	double from, to;
	int start, end;
};

/* -- axes -- */

/*
 * The logarithm to base 2, linear between two powers of two: the buckets of a report, which are as
 * wide as each other between two powers, have the same width in a drawing.
 */
static double log2_of(double value)
{
	int exponent;
	double fraction = frexp(value, &exponent);

	return exponent + 2 * fraction - 2;
}

static double position(const struct axis *axis, double value)
{
	double from = axis->from, to = axis->to;

	if (axis->log) {
		from = log2_of(from);
		to = log2_of(to);
		value = log2_of(value > axis->from ? value : axis->from);
	}
	if (!(to > from))
		return axis->start;
	if (value > to)
		value = to;
	return axis->start + (axis->end - axis->start) * (value - from) / (to - from);
}

static void format(char *dst, enum kind kind, double value)
{
	if (kind == COUNT)
		gn_count_format(dst, GN_UNITS_BYTES, value);
	else if (kind == BYTES)
		gn_size_format(dst, GN_UNITS_BYTES, (uint64_t)value);
	else
		gn_time_format(dst, GN_UNITS_BYTES, (uint64_t)value);
}

/* The end of a linear axis: a value that a quarter of it can be written with few digits. */
static double round_up(enum kind kind, double value)
{
	static const double steps[] = {1, 2, 4, 8};
	double unit = 4;

	if (kind == BYTES) {
		while (unit < value)
			unit *= 2;
		return unit;
	}
	for (;; unit *= 10)
		for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
			if (unit * steps[i] >= value)
				return unit * steps[i];
}

/* Make a logarithmic axis of whole decades. */
static void fit_decades(struct axis *axis, double least, double most)
{
	axis->log = true;
	axis->from = axis->to = 1;
	while (axis->from * 10 <= least)
		axis->from *= 10;
	while (axis->to < most || axis->to <= axis->from)
		axis->to *= 10;
}

static void open_chart(FILE *out, const char *id, const char *label)
{
	fprintf(out, "<svg class=\"chart\" data-chart=\"%s\" viewBox=\"0 0 %d %d\" role=\"img\">\n",
		id, WIDTH, HEIGHT);
	fputs("<title>", out);
	gn_draw_text(out, label);
	fputs("</title>\n", out);
}

static void draw_level(FILE *out, const struct axis *y, double value, const char *unit)
{
	double at = position(y, value);
	char text[GN_UNITS_BYTES];

	format(text, y->kind, value);
	fprintf(out,
		"<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>"
		"<text class=\"tick\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s%s</text>\n",
		LEFT, at, RIGHT, at, LEFT - 6, at + 4, text, unit);
}

static void draw_levels(FILE *out, const struct axis *y, const char *unit)
{
	if (y->log)
		for (double value = y->from; value <= y->to; value *= 10)
			draw_level(out, y, value, unit);
	else
		for (int i = 0; i <= TICKS; i++)
			draw_level(out, y, y->from + (y->to - y->from) * i / TICKS, unit);
}

static void draw_mark(FILE *out, const struct axis *x, double value)
{
	double at = position(x, value);
	char text[GN_UNITS_BYTES];

	format(text, x->kind, value);
	fprintf(out,
		"<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>"
		"<text class=\"tick\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
		at, BOTTOM, at, BOTTOM + 4, at, BOTTOM + 18, text);
}

/* -- time series -- */

struct line {
	const char *key, *label;
};

struct chart {
	const char *id, *title;
	enum kind kind;
	bool log;
	const char *unit; /* after the values of the axis */
	struct line lines[4];
};

static const struct chart charts[] = {
	{"iops", "IOs per second", COUNT, false, "", {{"iops", "IOPS"}}},
	{"bandwidth", "Bytes per second", BYTES, false, "/s", {{"bytes_per_second", "bytes/s"}}},
	{"errors", "Failed IOs in each step", COUNT, false, "", {{"errors", "errors"}}},
	{"latency",
	 "Latency",
	 TIME,
	 true,
	 "",
	 {{"p50_ns", "p50"}, {"p99_ns", "p99"}, {"p99_9_ns", "p99.9"}}},
};

static double number(const json_t *object, const char *key)
{
	return gn_report_number(object, key, 0);
}

/* Set the axis to the values of all lines. Returns false if all values are 0. */
static bool fit(struct axis *axis, const struct chart *chart, const json_t *points)
{
	double least = 0, most = 0;
	const json_t *point;
	size_t i;

	json_array_foreach ((json_t *)points, i, point)
		for (const struct line *line = chart->lines; line->key; line++) {
			double value = number(point, line->key);

			if (value > most)
				most = value;
			if (value > 0 && (least == 0 || value < least))
				least = value;
		}
	*axis = (struct axis){.kind = chart->kind, .start = BOTTOM, .end = TOP};
	if (chart->log)
		fit_decades(axis, least, most);
	else
		axis->to = round_up(chart->kind, most);
	return most > 0;
}

/* Draw a line of steps. A point of a logarithmic axis without a value leaves a gap. */
static void draw_line(FILE *out, const struct axis *x, const struct axis *y, const char *key,
		      unsigned color, const json_t *points)
{
	const json_t *point;
	bool drawn = false;
	size_t i;

	fprintf(out, "<path class=\"line c%u\" data-key=\"%s\" d=\"", color, key);
	json_array_foreach ((json_t *)points, i, point) {
		double value = number(point, key);

		if (y->log && value <= 0) {
			drawn = false;
			continue;
		}
		if (drawn)
			fprintf(out, "V%.1f", position(y, value));
		else
			fprintf(out, "M%.1f %.1f", position(x, number(point, "start_ns")),
				position(y, value));
		fprintf(out, "H%.1f", position(x, number(point, "end_ns")));
		drawn = true;
	}
	fputs("\"/>\n", out);
}

/* Draw an invisible rectangle for each point, whose title has the values. */
static void draw_titles(FILE *out, const struct axis *x, const struct chart *chart,
			const json_t *points)
{
	const json_t *point;
	char text[GN_UNITS_BYTES];
	size_t i;

	json_array_foreach ((json_t *)points, i, point) {
		double start = position(x, number(point, "start_ns"));

		format(text, TIME, number(point, "end_ns"));
		fprintf(out,
			"<rect class=\"hit\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"><title>to %s:",
			start, TOP, position(x, number(point, "end_ns")) - start, BOTTOM - TOP,
			text);
		for (const struct line *line = chart->lines; line->key; line++) {
			format(text, chart->kind, number(point, line->key));
			fprintf(out, " %s %s%s", line->label, text, chart->unit);
		}
		fputs("</title></rect>\n", out);
	}
}

static void draw_chart(FILE *out, const struct chart *chart, const char *role, const json_t *points)
{
	const json_t *last = json_array_get(points, json_array_size(points) - 1);
	struct axis x = {.kind = TIME, .start = LEFT, .end = RIGHT}, y;
	unsigned color = 0;
	char label[128];

	if (!fit(&y, chart, points))
		return;
	x.to = number(last, "end_ns");
	fprintf(out, "<h4>%s", chart->title);
	for (const struct line *line = chart->lines; line->key && chart->lines[1].key; line++)
		fprintf(out, " <span class=\"key c%u\">%s</span>", color++, line->label);
	fputs("</h4>\n", out);
	snprintf(label, sizeof(label), "%s of %.60s", chart->title, role);
	open_chart(out, chart->id, label);
	draw_levels(out, &y, chart->unit);
	for (int i = 0; i <= TICKS; i++)
		draw_mark(out, &x, x.to * i / TICKS);
	color = 0;
	for (const struct line *line = chart->lines; line->key; line++)
		draw_line(out, &x, &y, line->key, color++, points);
	draw_titles(out, &x, chart, points);
	fputs("</svg>\n", out);
}

/* Print the heading of a role, and begin its section. */
static void open_role(FILE *out, const char *role)
{
	fputs("<section class=\"of-role\" data-role=\"", out);
	gn_draw_text(out, role);
	fputs("\"><h3>", out);
	gn_draw_text(out, role);
	fputs("</h3>\n", out);
}

/* True if a chart of these points has a value. */
static bool has_work(const json_t *points)
{
	struct axis axis;

	for (size_t i = 0; i < sizeof(charts) / sizeof(charts[0]); i++)
		if (fit(&axis, &charts[i], points))
			return true;
	return false;
}

void gn_draw_series(FILE *out, const json_t *samples)
{
	const json_t *points;
	const char *role;

	json_object_foreach (json_object_get(samples, "roles"), role, points) {
		if (!has_work(points))
			continue;
		open_role(out, role);
		for (size_t i = 0; i < sizeof(charts) / sizeof(charts[0]); i++)
			draw_chart(out, &charts[i], role, points);
		fputs("</section>\n", out);
	}
}

/* -- histograms -- */

/* Returns the lower end of a bucket: 8 buckets for each power of two, and 8 ns at least. */
static double lower_of(double upper)
{
	double width = 8;

	while (width * 16 <= upper)
		width *= 2;
	return upper + 1 - width;
}

static void draw_bars(FILE *out, const struct axis *x, const struct axis *y, const json_t *buckets,
		      double total)
{
	char from[GN_UNITS_BYTES], to[GN_UNITS_BYTES];

	for (size_t i = 0; i + 1 < json_array_size(buckets); i += 2) {
		double upper = json_number_value(json_array_get(buckets, i));
		double n = json_number_value(json_array_get(buckets, i + 1));
		double left = position(x, lower_of(upper)), top = position(y, 100 * n / total);

		format(from, TIME, lower_of(upper));
		format(to, TIME, upper);
		fprintf(out,
			"<rect class=\"bar c0\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\">"
			"<title>%s to %s: %.3f %% (%.0f)</title></rect>\n",
			left, top, position(x, upper) - left, BOTTOM - top, from, to,
			100 * n / total, n);
	}
}

/* chart: for data-chart */
static void draw_histogram(FILE *out, const char *chart, const char *operation,
			   const json_t *latency)
{
	const json_t *buckets = json_object_get(latency, "buckets");
	const size_t n = json_array_size(buckets);
	struct axis x = {.kind = TIME, .start = LEFT, .end = RIGHT},
		    y = {.start = BOTTOM, .end = TOP};
	double total = 0, most = 0, decade = 1;

	for (size_t i = 1; i < n; i += 2) {
		double samples = json_number_value(json_array_get(buckets, i));

		total += samples;
		most = samples > most ? samples : most;
	}
	if (total <= 0)
		return;
	y.to = round_up(COUNT, 100 * most / total);
	x.from = lower_of(json_number_value(json_array_get(buckets, 0)));
	x.to = json_number_value(json_array_get(buckets, (n & ~(size_t)1) - 2));
	x.log = true;
	x.from = x.from >= 1 ? x.from : 1;
	fputs("<h4>", out);
	gn_draw_text(out, operation);
	fputs("</h4>\n", out);
	open_chart(out, chart, operation);
	draw_levels(out, &y, "%");
	for (; decade <= x.to; decade *= 10)
		if (decade >= x.from)
			draw_mark(out, &x, decade);
	draw_bars(out, &x, &y, buckets, total);
	fputs("</svg>\n", out);
}

void gn_draw_histograms(FILE *out, const json_t *report)
{
	const json_t *role, *operation;
	const char *name, *key;

	json_object_foreach (json_object_get(report, "roles"), name, role) {
		const json_t *measured = gn_work_measured(role);
		struct gn_work work = {0};

		gn_work_add(&work, role, 1);
		if (!work.latency.used)
			continue;
		open_role(out, name);
		json_object_foreach ((json_t *)measured, key, operation)
			if (json_object_get(operation, "latency"))
				draw_histogram(out, "histogram", key,
					       json_object_get(operation, "latency"));
		fputs("</section>\n", out);
	}
}

/* -- hops -- */

/* A part of a time. */
struct share {
	const char *key, *label;
	double ns;
	size_t color;
};

/*
 * The time in the gateway contains that in the target, which contains those in the backend and of
 * the data. Returns the number of hops that were measured. ns: without those behind it.
 */
static size_t split(const json_t *hops, struct share shares[5])
{
	const double gateway = number(hops, "gateway.mean_ns"),
		     target = number(hops, "target.mean_ns"),
		     backend = number(hops, "backend.mean_ns"), data = number(hops, "data.mean_ns");
	const struct share split_up[5] = {
		{"link", "transport and stages", number(hops, "link.mean_ns"), 0},
		{"gateway", "in the gateway", gateway - target, 1},      /* lint: a word */
		{"target", "in the target", target - backend - data, 2}, /* lint: a word */
		{"backend", "in the backend", backend, 3},
		{"data", "transfer of the data", data, 4},
	};
	size_t n = 0;

	for (size_t i = 0; i < 5; i++) {
		if (!json_object_get(hops, split_up[i].key))
			continue;
		shares[n] = split_up[i];
		shares[n].ns = shares[n].ns > 0 ? shares[n].ns : 0;
		n++;
	}
	return n;
}

static double sum_of(const struct share *shares, size_t n)
{
	double total = 0;

	for (size_t i = 0; i < n; i++)
		total += shares[i].ns;
	return total;
}

/* Draw a bar of parts. chart: for data-chart. title: plain text. */
static void draw_bar(FILE *out, const char *chart, const char *title, const struct share *shares,
		     size_t n)
{
	const double total = sum_of(shares, n);
	double left = 0, width;
	char text[GN_UNITS_BYTES];

	fprintf(out,
		"<svg class=\"chart\" data-chart=\"%s\" viewBox=\"0 0 %d 34\" role=\"img\">\n"
		"<title>%s</title>\n",
		chart, WIDTH, title);
	for (size_t i = 0; i < n; i++) {
		width = WIDTH * shares[i].ns / total;
		format(text, TIME, shares[i].ns);
		fprintf(out,
			"<rect class=\"share c%zu\" data-key=\"%s\" x=\"%.2f\" y=\"2\" width=\"%.2f\" height=\"30\">"
			"<title>",
			shares[i].color, shares[i].key, left, width);
		gn_draw_text(out, shares[i].label);
		fprintf(out, ": %s, %.1f %%</title></rect>\n", text, 100 * shares[i].ns / total);
		left += width;
	}
	fputs("</svg>\n", out);
}

/* Begin the row of a part in a table. row: for the attribute data-ROW. */
static void begin_row(FILE *out, const char *row, const struct share *share)
{
	fprintf(out, "<tr data-%s=\"%s\"><td><span class=\"key c%zu\">", row, share->key,
		share->color);
	gn_draw_text(out, share->label);
	fputs("</span></td>", out);
}

static void print_time_cell(FILE *out, double ns)
{
	char text[GN_UNITS_BYTES];

	format(text, TIME, ns);
	fprintf(out, "<td>%s</td>", text);
}

void gn_draw_hops(FILE *out, const json_t *report)
{
	const json_t *role;
	struct share shares[5];
	const char *name;

	json_object_foreach (json_object_get(report, "roles"), name, role) {
		const size_t n = split(json_object_get(role, "hops"), shares);
		const double total = sum_of(shares, n);

		if (total <= 0)
			continue;
		open_role(out, name);
		draw_bar(out, "hops", "share of each hop in the mean latency", shares, n);
		fputs("<table class=\"numbers\"><tr><th>hop</th><th>mean</th><th>share</th></tr>\n",
		      out);
		for (size_t i = 0; i < n; i++) {
			begin_row(out, "hop", &shares[i]);
			print_time_cell(out, shares[i].ns);
			fprintf(out, "<td>%.1f %%</td></tr>\n", 100 * shares[i].ns / total);
		}
		fputs("</table>\n</section>\n", out);
	}
}

/* -- own times of stages -- */

static void draw_places(FILE *out, const struct gn_work_place *places, size_t n)
{
	struct share shares[GN_WORK_PLACES];

	for (size_t i = 0; i < n; i++)
		shares[i] = (struct share){places[i].stage, places[i].name, places[i].share,
					   i % COLORS};
	draw_bar(out, "own-time", "share of each stage in the time of the chain", shares, n);
	fputs("<table class=\"numbers\"><tr><th>stage</th><th>p50</th><th>p99</th><th>mean</th>"
	      "<th>share</th></tr>\n",
	      out);
	for (size_t i = 0; i < n; i++) {
		begin_row(out, "stage", &shares[i]);
		print_time_cell(out, number(places[i].own_time, "p50_ns"));
		print_time_cell(out, number(places[i].own_time, "p99_ns"));
		print_time_cell(out, number(places[i].own_time, "mean_ns"));
		fprintf(out, "<td>%.1f %%</td></tr>\n", 100 * places[i].share);
	}
	fputs("</table>\n", out);
	for (size_t i = 0; i < n; i++)
		draw_histogram(out, "own-time-histogram", places[i].name, places[i].own_time);
}

void gn_draw_places(FILE *out, const json_t *report)
{
	struct gn_work_place places[GN_WORK_PLACES];
	const json_t *role;
	const char *name;
	bool first = true;

	json_object_foreach (json_object_get(report, "roles"), name, role) {
		const size_t n = gn_work_places(role, places);
		double total = 0;

		for (size_t i = 0; i < n; i++)
			total += places[i].share;
		if (total <= 0)
			continue;
		if (first)
			fputs("<h2>Time of each stage</h2>\n"
			      "<p>The time of IOs in each stage, backend or connect, without what follows it.</p>\n",
			      out);
		first = false;
		open_role(out, name);
		draw_places(out, places, n);
		fputs("</section>\n", out);
	}
}
