/* SPDX-License-Identifier: BSD-3-Clause */
#include "top/top_model.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "top/top_columns.h"

#define NOTICE_S 10 /* time that a message stays */

void gn_top_init(struct gn_top_model *m, const char *dir, const char *only_role)
{
	*m = (struct gn_top_model){
		.dir = dir,
		.only_role = only_role,
		.interval_s = 1,
		.page = 1,
	};
}

void gn_top_fini(struct gn_top_model *m)
{
	json_decref(m->before);
	json_decref(m->now);
	json_decref(m->shown);
	json_decref(m->silent);
	free(m->rows);
	free(m->order);
}

void gn_top_notice(struct gn_top_model *m, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(m->notice, sizeof(m->notice), fmt, args);
	va_end(args);
	m->notice_end = m->time + NOTICE_S;
}

/* -- texts of reports -- */

/*
 * Copy a text of a report, which can come from a file or a peer: each byte that is not printable
 * ASCII becomes '?', and a text that is too long ends with '~'.
 */
static void copy_plain(char *dst, size_t size, const char *text)
{
	size_t n = 0;

	for (; text && text[n] && n + 1 < size; n++)
		dst[n] = text[n] < 0x20 || text[n] > 0x7e ? '?' : text[n];
	if (text && text[n] && n)
		dst[n - 1] = '~';
	dst[n] = '\0';
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "?";
}

static void format_age(char *dst, size_t size, double ns)
{
	const double s = ns > 0 && ns < 1e18 ? ns / 1e9 : 0;
	const unsigned long n = (unsigned long)s;

	if (n < 60)
		snprintf(dst, size, "%lus", n);
	else if (n < 3600)
		snprintf(dst, size, "%lum%02lus", n / 60, n % 60);
	else if (n < 86400)
		snprintf(dst, size, "%luh%02lum", n / 3600, n / 60 % 60);
	else
		snprintf(dst, size, "%lud%02luh", n / 86400, n / 3600 % 24);
}

/* -- rows -- */

/* What the rows of one role are made from. */
struct source {
	const json_t *process, *role;        /* in the new reports */
	const json_t *earlier, *role_before; /* the same in the earlier ones; NULL: none */
	const char *name;                    /* of the role */
	double seconds;                      /* length of the interval */
	double cpu_ns;                       /* processor time of the process in the interval */
	bool silent;
};

static struct gn_top_row *add_row(struct gn_top_model *m, enum gn_top_level level)
{
	struct gn_top_row *row;

	if (m->n_rows == m->capacity) {
		const size_t capacity = m->capacity ? 2 * m->capacity : 64;
		struct gn_top_row *rows = realloc(m->rows, capacity * sizeof(*rows));
		struct gn_top_row **order;

		if (!rows)
			return NULL;
		m->rows = rows;
		order = realloc(m->order, capacity * sizeof(struct gn_top_row *));
		if (!order)
			return NULL;
		m->order = order;
		m->capacity = capacity;
	}
	row = &m->rows[m->n_rows];
	*row = (struct gn_top_row){.level = level, .built = m->n_rows};
	row->role = row->session = row->built;
	for (int i = 0; i < GN_TOP_VALUES; i++)
		row->value[i] = NAN;
	m->n_rows++;
	return row;
}

/* Returns what a counter has gained; a counter that fell has started again. NAN: there is none. */
static double gained(const json_t *now, const json_t *before)
{
	const double n = json_is_number(now) ? json_number_value(now) : NAN;
	const double old = json_number_value(before);

	return isnan(n) || old > n ? n : n - old;
}

static double per_second(double n, const struct source *src)
{
	return isnan(n) ? n : src->seconds > 0 ? n / src->seconds : 0;
}

/* Set rates, latency and errors. seconds: length of the interval. */
static void set_work(struct gn_top_row *row, const struct gn_work *w, double seconds)
{
	row->value[GN_TOP_IOPS] = seconds > 0 ? w->ops / seconds : 0;
	if (w->has_bytes)
		row->value[GN_TOP_BYTES] = seconds > 0 ? w->bytes / seconds : 0;
	if (gn_work_percentile(&w->latency, 100)) {
		row->value[GN_TOP_P50] = (double)gn_work_percentile(&w->latency, 50);
		row->value[GN_TOP_P99] = (double)gn_work_percentile(&w->latency, 99);
		row->value[GN_TOP_P999] = (double)gn_work_percentile(&w->latency, 99.9);
	}
	row->value[GN_TOP_ERRORS] = w->errors;
}

/* Returns how many more IOs can be sent; NAN: unknown. */
static double credits(double limit, double in_flight)
{
	return in_flight > limit ? 0 : limit - in_flight;
}

/* The lanes of a role that sends. */
static void add_lanes(struct gn_top_model *m, const struct source *src, size_t role)
{
	const json_t *ops = json_object_get(src->role, "lane_ops"),
		     *held = json_object_get(src->role, "lane_held_ops"),
		     *ops_before = json_object_get(src->role_before, "lane_ops");
	const double depth = gn_report_number(src->role, "depth", NAN);
	size_t i;

	for (i = 0; i < json_array_size(ops); i++) {
		struct gn_top_row *row = add_row(m, GN_TOP_LANE);

		if (!row)
			return;
		row->role = row->session = role;
		row->object = src->role;
		snprintf(row->name, sizeof(row->name), "lane %zu", i);
		snprintf(row->key, sizeof(row->key), "%.160s/%zu", m->rows[role].key, i);
		row->value[GN_TOP_PID] = m->rows[role].value[GN_TOP_PID];
		row->value[GN_TOP_IOPS] = per_second(
			gained(json_array_get(ops, i), json_array_get(ops_before, i)), src);
		row->value[GN_TOP_IN_FLIGHT] = json_is_number(json_array_get(held, i))
						       ? json_number_value(json_array_get(held, i))
						       : NAN;
		row->value[GN_TOP_CREDITS] = credits(depth, row->value[GN_TOP_IN_FLIGHT]);
	}
}

/* Describe the state of a session, and since when it has it. */
static void describe_state(struct gn_top_row *row, const json_t *session)
{
	const char *state = text_of(session, "state");
	const double ns = gn_report_number(session, "in_state_ns", NAN);
	char age[24] = "";

	if (json_is_true(json_object_get(session, "waits")))
		state = "waiting";
	else if (strcmp(state, "running") == 0 && gn_report_number(session, "epoch", 0) > 1)
		state = "resumed";
	if (!isnan(ns))
		format_age(age, sizeof(age), ns);
	copy_plain(row->state, 20, state);
	strcat(row->state, *age ? " " : "");
	strcat(row->state, age);
}

/* Only a server counts the IOs of its sessions. */
static void set_session_work(struct gn_top_row *row, const struct source *src,
			     const json_t *session)
{
	struct gn_work w;

	if (!json_object_get(session, "ops_done"))
		return;
	gn_stat_session_work(&w, session, src->role_before);
	set_work(row, &w, src->seconds);
}

/*
 * list: the key of the sessions in a role: those that it serves, or those that it has opened.
 * Returns their number.
 */
static size_t add_sessions(struct gn_top_model *m, const struct source *src, size_t role,
			   const char *list)
{
	const json_t *session;
	struct gn_top_row *row;
	size_t i;

	json_array_foreach (json_object_get(src->role, list), i, session) {
		const char *id = text_of(session, "id"), *to = text_of(session, "service");
		char short_id[9]; /* gantry stat prints as much of it */

		row = add_row(m, GN_TOP_SESSION);
		if (!row)
			return i;
		row->role = role;
		row->object = session;
		snprintf(row->key, sizeof(row->key), "%.120s/%.2s-%.40s", m->rows[role].key, list,
			 id);
		snprintf(short_id, sizeof(short_id), "%s", id);
		copy_plain(row->name, sizeof(row->name), short_id);
		if (json_object_get(session, "service")) {
			row->name[0] = '>';
			copy_plain(row->name + 1, sizeof(row->name) - 1, to);
		}
		row->value[GN_TOP_PID] = m->rows[role].value[GN_TOP_PID];
		set_session_work(row, src, session);
		if (src->silent)
			strcpy(row->state, "silent");
		else
			describe_state(row, session);
	}
	return json_array_size(json_object_get(src->role, list));
}

/* Returns the limit of IOs in flight: of all sessions of a server, or of all lanes. */
static double limit_of(const json_t *role)
{
	const json_t *sessions = json_object_get(role, "sessions"), *each;
	double total = 0;
	size_t i;

	if (!sessions)
		return gn_report_number(role, "lanes", NAN) * gn_report_number(role, "depth", NAN);
	json_array_foreach ((json_t *)sessions, i, each)
		total += gn_report_number(each, "lanes", 0) * gn_report_number(each, "depth", 0);
	return total;
}

/* State of a role: what it waits for, or the state of its only session, or how many it has. */
static void describe_role(struct gn_top_row *row, const struct source *src)
{
	const json_t *opened = json_object_get(src->role, "client_sessions"),
		     *served = json_object_get(src->role, "sessions"), *each;
	const size_t n = json_array_size(served);
	size_t i;

	if (src->silent) {
		strcpy(row->state, "silent");
		return;
	}
	json_array_foreach ((json_t *)opened, i, each) {
		describe_state(row, each);
		if (strcmp(text_of(each, "state"), "waiting") == 0)
			return;
	}
	if (json_is_array(served))
		snprintf(row->state, sizeof(row->state), "%zu session%s", n, n == 1 ? "" : "s");
}

static void add_role(struct gn_top_model *m, const struct source *src)
{
	struct gn_top_row *row = add_row(m, GN_TOP_ROLE);
	const double pid = gn_report_number(src->process, "pid", 0);
	struct gn_work w;
	double seconds;
	size_t role;

	if (!row)
		return;
	role = row->built;
	seconds = gn_stat_work(&w, src->process, src->name, src->earlier);
	row->object = src->role;
	snprintf(row->key, sizeof(row->key), "%.0f/%.100s", pid, src->name);
	copy_plain(row->name, sizeof(row->name), src->name);
	copy_plain(row->kind, sizeof(row->kind), text_of(src->role, "role"));
	row->value[GN_TOP_PID] = pid;
	set_work(row, &w, seconds);
	row->value[GN_TOP_IN_FLIGHT] = gn_stat_in_flight(src->role);
	row->value[GN_TOP_CREDITS] = credits(limit_of(src->role), row->value[GN_TOP_IN_FLIGHT]);
	if (w.ops > 0)
		row->value[GN_TOP_CPU] = src->cpu_ns / w.ops;
	row->has_share = gn_stat_shares(src->role, src->role_before, row->share);
	describe_role(row, src);
	m->n_roles++;
	m->seconds = seconds > m->seconds ? seconds : m->seconds;
	add_lanes(m, src, role);
	m->n_served += add_sessions(m, src, role, "sessions");
	m->n_opened += add_sessions(m, src, role, "client_sessions");
}

static bool is_silent(const struct gn_top_model *m, const json_t *process)
{
	const json_t *pid;
	size_t i;

	json_array_foreach (m->silent, i, pid)
		if (json_equal(pid, json_object_get(process, "pid")))
			return true;
	return false;
}

static void add_process(struct gn_top_model *m, const json_t *process)
{
	struct source src = {
		.process = process,
		.earlier = gn_stat_find_process(m->before, process),
		.silent = is_silent(m, process),
	};
	const json_t *roles = json_object_get(process, "roles");
	const double now = gn_report_number(process, "elapsed_ns", 0);

	src.seconds = (now - gn_report_number(src.earlier, "elapsed_ns", 0)) / 1e9;
	src.cpu_ns = gn_report_number(process, "cpu_ns", 0) -
		     gn_report_number(src.earlier, "cpu_ns", 0);
	m->n_processes++;
	json_object_foreach ((json_t *)roles, src.name, src.role) {
		src.role_before = json_object_get(json_object_get(src.earlier, "roles"), src.name);
		if (!m->only_role || strcmp(m->only_role, src.name) == 0)
			add_role(m, &src);
	}
}

/*
 * Calculate the totals. A session that is seen from both ends counts once. An IO that passes roles
 * of several kinds counts once: the totals are those of the kind with the most.
 */
static void add_totals(struct gn_top_model *m)
{
	m->total_iops = m->total_bytes = 0;
	for (size_t i = 0; i < m->n_rows; i++) {
		double iops = 0, bytes = 0;

		if (m->rows[i].level != GN_TOP_ROLE)
			continue;
		for (size_t j = 0; j < m->n_rows; j++) {
			const struct gn_top_row *row = &m->rows[j];

			if (row->level != GN_TOP_ROLE || strcmp(row->kind, m->rows[i].kind) != 0)
				continue;
			iops += row->value[GN_TOP_IOPS];
			bytes += isnan(row->value[GN_TOP_BYTES]) ? 0 : row->value[GN_TOP_BYTES];
		}
		m->total_iops = iops > m->total_iops ? iops : m->total_iops;
		m->total_bytes = bytes > m->total_bytes ? bytes : m->total_bytes;
	}
}

static void build(struct gn_top_model *m)
{
	const json_t *process;
	size_t i;

	json_decref(m->shown);
	m->shown = json_incref(m->now);
	m->n_rows = m->n_processes = m->n_roles = m->n_served = m->n_opened = 0;
	m->seconds = 0;
	json_array_foreach (m->now, i, process)
		add_process(m, process);
	add_totals(m);
	gn_top_sort(m);
}

/* -- order -- */

static int compare(const struct gn_top_model *m, const struct gn_top_row *a,
		   const struct gn_top_row *b)
{
	const int order = gn_top_compare(&gn_top_columns[m->column], a, b);

	if (order)
		return m->reverse ? -order : order;
	return (a->built > b->built) - (a->built < b->built);
}

/* Rows of different roles in the order of the roles, and those of a role as a tree. */
static int compare_rows(const void *x, const void *y, void *arg)
{
	const struct gn_top_row *a = *(const struct gn_top_row *const *)x,
				*b = *(const struct gn_top_row *const *)y;
	const struct gn_top_model *m = arg;

	if (a->role != b->role)
		return compare(m, &m->rows[a->role], &m->rows[b->role]);
	if (a->level != GN_TOP_ROLE && b->level != GN_TOP_ROLE && a->session != b->session &&
	    m->rows[a->session].level == GN_TOP_SESSION &&
	    m->rows[b->session].level == GN_TOP_SESSION)
		return compare(m, &m->rows[a->session], &m->rows[b->session]);
	return (a->built > b->built) - (a->built < b->built);
}

size_t gn_top_find(const struct gn_top_model *m, const char *key)
{
	size_t i = 0;

	while (i < m->n_shown && strcmp(m->order[i]->key, key) != 0)
		i++;
	return i;
}

void gn_top_sort(struct gn_top_model *m)
{
	m->n_shown = 0;
	for (size_t i = 0; i < m->n_rows; i++)
		if (m->rows[i].level != GN_TOP_LANE || m->lanes_shown)
			m->order[m->n_shown++] = &m->rows[i];
	if (m->n_shown)
		qsort_r(m->order, m->n_shown, sizeof(struct gn_top_row *), compare_rows, m);
	if (m->n_shown && gn_top_find(m, m->selected) == m->n_shown)
		strcpy(m->selected, m->order[0]->key);
}

/* -- new reports -- */

static bool has_process(const json_t *list, const json_t *process)
{
	const json_t *each;
	size_t i;

	json_array_foreach ((json_t *)list, i, each)
		if (json_equal(json_object_get(each, "pid"), json_object_get(process, "pid")))
			return true;
	return false;
}

static void report_ended(struct gn_top_model *m, const json_t *list)
{
	const json_t *process;
	size_t i;

	json_array_foreach (m->now, i, process)
		if (!has_process(list, process))
			gn_top_notice(m, "process %.0f has ended",
				      gn_report_number(process, "pid", 0));
}

void gn_top_update(struct gn_top_model *m, json_t *list, const json_t *silent, time_t now)
{
	m->time = now;
	if (now >= m->notice_end)
		m->notice[0] = '\0';
	gn_stat_keep_silent(list, m->now, silent);
	report_ended(m, list);
	json_decref(m->before);
	m->before = m->now;
	m->now = list;
	json_decref(m->silent);
	m->silent = json_deep_copy(silent);
	m->has_reports = true;
	if (!m->paused)
		build(m);
}

/* -- what keys do -- */

void gn_top_move(struct gn_top_model *m, long distance)
{
	const size_t at = gn_top_find(m, m->selected);
	long to = (long)at + distance;

	if (m->mode != GN_TOP_LIST) {
		to = (long)m->first + distance; /* the screen limits it to its lines */
		m->first = to > 0 ? (size_t)to : 0;
		return;
	}
	if (!m->n_shown)
		return;
	to = to < 0 ? 0 : to >= (long)m->n_shown ? (long)m->n_shown - 1 : to;
	strcpy(m->selected, m->order[to]->key);
}

void gn_top_open(struct gn_top_model *m)
{
	if (m->mode != GN_TOP_LIST || !m->n_shown)
		return;
	strcpy(m->opened, m->selected);
	m->mode = GN_TOP_DETAIL;
	m->first = 0;
}

void gn_top_back(struct gn_top_model *m)
{
	m->mode = m->mode == GN_TOP_HELP ? m->mode_before_help : GN_TOP_LIST;
	m->first = 0;
}

void gn_top_pause(struct gn_top_model *m)
{
	m->paused = !m->paused;
	if (!m->paused && m->has_reports)
		build(m);
}
