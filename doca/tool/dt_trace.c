/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dt_trace.c - converts records to a trace for Chrome and Perfetto, and to a drawing
 *
 * A context is a track of its process. A task is an asynchronous slice of its context, from its
 * submission to its completion. An arrow leads from the send of a producer to the receive that it
 * completed, in any process.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tool/dt.h"

enum what { TASK_BEGIN, TASK_END, STATE, CONNECT_BEGIN, CONNECT_END };

struct event {
	enum what what;
	int pid;
	uint64_t ns, ctx, engine, number;
	char name[64], type[48], flow[48];
	bool failed;
};

struct events {
	struct event *list;
	size_t n, room;
	uint64_t start; /* ns of the first */
};

static int add(struct events *e, const struct event *event)
{
	struct event *list;

	if (e->n == e->room) {
		list = realloc(e->list, (e->room * 2 + 1024) * sizeof(*list));
		if (!list)
			return -ENOMEM;
		e->list = list;
		e->room = e->room * 2 + 1024;
	}
	e->list[e->n++] = *event;
	if (e->n == 1 || event->ns < e->start)
		e->start = event->ns;
	return 0;
}

/* Parse a record. Returns false if it is of another kind. */
static bool parse(const char *line, struct event *e)
{
	unsigned long long ns, ctx, engine, number;
	char what[16];

	*e = (struct event){.flow = "-"};
	if (sscanf(line, "task\t%d\t%llu\t%15s\t%llu\t%47s\t%llu\t%63s\t%llu\t%47s", &e->pid, &ns,
		   what, &ctx, e->type, &engine, e->name, &number, e->flow) == 9) {
		e->what = what[0] == 'b' ? TASK_BEGIN : TASK_END;
		e->failed = what[0] == 'f';
		e->number = number;
	} else if (sscanf(line, "state\t%d\t%llu\t%63s\t%llu\t%47s\t%llu", &e->pid, &ns, e->name,
			  &ctx, e->type, &engine) == 6) {
		e->what = STATE;
	} else if (sscanf(line, "connect\t%d\t%llu\t%15s\t%llu\t%47s\t%llu", &e->pid, &ns, what,
			  &ctx, e->type, &engine) == 6) {
		e->what = what[0] == 'b' ? CONNECT_BEGIN : CONNECT_END;
		snprintf(e->name, sizeof(e->name), "connection");
	} else {
		return false;
	}
	e->ns = ns;
	e->ctx = ctx;
	e->engine = engine;
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	return x->ns < y->ns ? -1 : x->ns > y->ns;
}

static int read_events(const char *records, struct events *e)
{
	FILE *in = fopen(records, "re");
	char line[8192];
	struct event event;
	int rc = 0;

	if (!in)
		return errno == ENOENT ? 0 : -errno;
	while (!rc && fgets(line, sizeof(line), in))
		if (parse(line, &event))
			rc = add(e, &event);
	fclose(in);
	if (e->n)
		qsort(e->list, e->n, sizeof(*e->list), compare);
	return rc;
}

static const char *program_of(const struct dt_options *o, int pid)
{
	size_t i;

	for (i = 0; i < o->n_programs; i++)
		if (o->programs[i].pid == pid)
			return o->programs[i].argv[0];
	return "child process";
}

/* -- Chrome and Perfetto -- */

static double microseconds(const struct events *all, const struct event *e)
{
	return (double)(e->ns - all->start) / 1000.0;
}

static json_t *common(const struct events *all, const struct event *e, const char *phase)
{
	return json_pack("{s:s, s:s, s:s, s:i, s:I, s:f}", "name", e->name, "cat", e->type, "ph",
			 phase, "pid", e->pid, "tid", (json_int_t)e->ctx, "ts",
			 microseconds(all, e));
}

static void set_id(json_t *event, int pid, const char *kind, uint64_t number)
{
	char id[96];

	snprintf(id, sizeof(id), "%d.%s.%llu", pid, kind, (unsigned long long)number);
	json_object_set_new(event, "id", json_string(id));
}

static void add_flow(json_t *list, const struct events *all, const struct event *e)
{
	json_t *flow;

	if (!strcmp(e->flow, "-"))
		return;
	flow = common(all, e, e->what == TASK_BEGIN ? "s" : "f");
	json_object_set_new(flow, "name", json_string("message"));
	json_object_set_new(flow, "cat", json_string("message"));
	json_object_set_new(flow, "id", json_string(e->flow));
	if (e->what == TASK_END)
		json_object_set_new(flow, "bp", json_string("e"));
	json_array_append_new(list, flow);
}

static void add_event(json_t *list, const struct events *all, const struct event *e)
{
	static const char *const phases[] = {[TASK_BEGIN] = "b",
					     [TASK_END] = "e",
					     [STATE] = "i",
					     [CONNECT_BEGIN] = "b",
					     [CONNECT_END] = "e"};
	json_t *event = common(all, e, phases[e->what]);

	if (e->what == STATE)
		json_object_set_new(event, "s", json_string("t"));
	else
		set_id(event, e->pid, e->what <= TASK_END ? "task" : "connection",
		       e->what <= TASK_END ? e->number : e->ctx);
	if (e->failed)
		json_object_set_new(event, "args", json_pack("{s:s}", "status", "failed"));
	json_array_append_new(list, event);
	add_flow(list, all, e);
}

static void add_name(json_t *list, const char *what, int pid, uint64_t tid, const char *name)
{
	json_array_append_new(list,
			      json_pack("{s:s, s:s, s:i, s:I, s:{s:s}}", "name", what, "ph", "M",
					"pid", pid, "tid", (json_int_t)tid, "args", "name", name));
}

/* True if no earlier event has this context; with `process`, this process. */
static bool is_first(const struct events *all, size_t i, bool process)
{
	size_t j;

	for (j = 0; j < i; j++)
		if (all->list[j].pid == all->list[i].pid &&
		    (process || all->list[j].ctx == all->list[i].ctx))
			return false;
	return true;
}

static void add_names(json_t *list, const struct events *all, size_t i, const struct dt_options *o)
{
	const struct event *e = &all->list[i];
	char name[128];

	if (is_first(all, i, true))
		add_name(list, "process_name", e->pid, 0, program_of(o, e->pid));
	if (!is_first(all, i, false))
		return;
	snprintf(name, sizeof(name), "%s %llu (engine %llu)", e->type, (unsigned long long)e->ctx,
		 (unsigned long long)e->engine);
	add_name(list, "thread_name", e->pid, e->ctx, name);
}

static int write_chrome(const char *path, const struct events *all, const struct dt_options *o)
{
	json_t *list = json_array(),
	       *root = json_pack("{s:o, s:s}", "traceEvents", list, "displayTimeUnit", "ns");
	FILE *out = fopen(path, "we");
	size_t i;
	int rc;

	if (!out) {
		json_decref(root);
		return dt_fail(DT_USAGE, "%s: cannot write the file: %s", path, strerror(errno));
	}
	for (i = 0; i < all->n; i++) {
		add_names(list, all, i, o);
		add_event(list, all, &all->list[i]);
	}
	rc = json_dumpf(root, out, JSON_COMPACT);
	fputc('\n', out);
	json_decref(root);
	if (fclose(out) || rc)
		return dt_fail(DT_USAGE, "%s: cannot write the file: %s", path, strerror(errno));
	return 0;
}

/* -- drawing: a row for each context, a bar for each task, a line for each message -- */

enum { WIDTH = 1200, LEFT = 420, ROW = 26, MAX_ROWS = 64, MAX_BARS = 4000, MAX_NAME = 32 };

struct row {
	int pid;
	uint64_t ctx;
};

static size_t row_of(struct row rows[MAX_ROWS], size_t *n, const struct event *e)
{
	size_t i;

	for (i = 0; i < *n; i++)
		if (rows[i].pid == e->pid && rows[i].ctx == e->ctx)
			return i;
	if (*n < MAX_ROWS)
		rows[(*n)++] = (struct row){e->pid, e->ctx};
	return i;
}

static double x_of(const struct events *all, uint64_t ns)
{
	const uint64_t span = all->list[all->n - 1].ns - all->start;

	return LEFT + (double)(ns - all->start) * (WIDTH - LEFT - 10) / (double)(span ? span : 1);
}

static const struct event *end_of(const struct events *all, size_t begin)
{
	size_t i;

	for (i = begin + 1; i < all->n; i++)
		if (all->list[i].what == TASK_END && all->list[i].pid == all->list[begin].pid &&
		    all->list[i].number == all->list[begin].number)
			return &all->list[i];
	return NULL;
}

static const struct event *receive_of(const struct events *all, size_t send)
{
	size_t i;

	for (i = send + 1; i < all->n; i++)
		if (all->list[i].what == TASK_END &&
		    !strcmp(all->list[i].flow, all->list[send].flow))
			return &all->list[i];
	return NULL;
}

static void draw_task(FILE *out, const struct events *all, size_t i, struct row *rows, size_t *n)
{
	const struct event *e = &all->list[i], *end = end_of(all, i), *receive;
	const double y = 30 + ROW * (double)row_of(rows, n, e), x = x_of(all, e->ns);
	double width = (end ? x_of(all, end->ns) : WIDTH - 10) - x;

	fprintf(out,
		"<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"><title>%s %llu</title></rect>\n",
		!end          ? "open"
		: end->failed ? "failed"
			      : "done",
		x, y + 4, width < 1 ? 1 : width, ROW - 8, e->name, (unsigned long long)e->number);
	receive = strcmp(e->flow, "-") ? receive_of(all, i) : NULL;
	if (receive)
		fprintf(out,
			"<line class=\"flow\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
			x, y + ROW / 2.0, x_of(all, receive->ns),
			30 + ROW * (double)row_of(rows, n, receive) + ROW / 2.0);
}

static void draw_labels(FILE *out, const struct events *all, const struct dt_options *o,
			struct row *rows, size_t n)
{
	char name[MAX_NAME + 1];
	const char *program;
	size_t i, j;

	for (i = 0; i < n; i++) {
		for (j = 0; all->list[j].pid != rows[i].pid || all->list[j].ctx != rows[i].ctx; j++)
			;
		program = strrchr(program_of(o, rows[i].pid), '/');
		program = program ? program + 1 : program_of(o, rows[i].pid);
		fprintf(out, "<text x=\"6\" y=\"%zu\">", 30 + ROW * i + ROW - 9);
		snprintf(name, sizeof(name), "%s", program);
		dt_print_xml(out, name);
		fprintf(out, ": %s %llu</text>\n", all->list[j].type,
			(unsigned long long)rows[i].ctx);
	}
}

static int write_svg(const char *path, const struct events *all, const struct dt_options *o)
{
	FILE *out = fopen(path, "we");
	struct row rows[MAX_ROWS];
	size_t n = 0, i, bars = 0;

	if (!out)
		return dt_fail(DT_USAGE, "%s: cannot write the file: %s", path, strerror(errno));
	for (i = 0; i < all->n; i++)
		(void)row_of(rows, &n, &all->list[i]);
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%zu\" font-family=\"sans-serif\" "
		"font-size=\"12\">\n<style>.done{fill:#4a7}.failed{fill:#c33}.open{fill:#999}.flow{stroke:#36c}.edge{stroke:#ccc}</style>\n"
		"<line class=\"edge\" x1=\"%d\" y1=\"30\" x2=\"%d\" y2=\"%zu\"/>\n"
		"<text x=\"6\" y=\"18\">tasks of each context, from submission to completion; %.3f ms</text>\n",
		WIDTH, 40 + ROW * n, LEFT, LEFT, 30 + ROW * n,
		all->n ? (double)(all->list[all->n - 1].ns - all->start) / 1e6 : 0.0);
	for (i = 0; i < all->n && bars < MAX_BARS; i++) {
		if (all->list[i].what != TASK_BEGIN)
			continue;
		draw_task(out, all, i, rows, &n);
		bars++;
	}
	draw_labels(out, all, o, rows, n);
	fputs("</svg>\n", out);
	if (fclose(out))
		return dt_fail(DT_USAGE, "%s: cannot write the file: %s", path, strerror(errno));
	return 0;
}

int dt_write_trace(const char *records, const struct dt_options *o)
{
	struct events all = {0};
	int rc = read_events(records, &all);

	if (rc)
		rc = dt_fail(DT_USAGE, "%s: cannot read the records: %s", records, strerror(-rc));
	if (!rc && o->trace)
		rc = write_chrome(o->trace, &all, o);
	if (!rc && o->svg)
		rc = write_svg(o->svg, &all, o);
	free(all.list);
	return rc;
}
