/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * top_model.h - the state of gantry top: rows from the reports of processes, their order, the
 * selected row and what the keys have set. It knows no terminal.
 *
 * The rows form a tree: a role, below it its sessions, and below those their lanes. Sorting orders
 * the roles, and the sessions within a role.
 */
#ifndef GN_TOP_TOP_MODEL_H
#define GN_TOP_TOP_MODEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "report/stat_rates.h"

#define GN_TOP_MIN_WIDTH 40
#define GN_TOP_MIN_HEIGHT 10
#define GN_TOP_MAX_INTERVAL_S 3600

/* The message if there is no process; its argument is the directory of the sockets. */
#define GN_TOP_NONE "no gantry process runs in %s: start one with gantry run"

enum gn_top_level {
	GN_TOP_ROLE,
	GN_TOP_SESSION, /* of a server, or that the role has opened */
	GN_TOP_LANE,
};

/* Numbers of a row; NAN: unknown. */
enum gn_top_value {
	GN_TOP_PID,
	GN_TOP_IOPS,
	GN_TOP_BYTES, /* for each second */
	GN_TOP_P50,   /* nanoseconds, as the other latencies */
	GN_TOP_P99,
	GN_TOP_P999,
	GN_TOP_IN_FLIGHT,
	GN_TOP_CREDITS, /* IOs that can still be sent */
	GN_TOP_ERRORS,  /* IOs that failed in the interval */
	GN_TOP_CPU,     /* nanoseconds of processor time for each IO */
	GN_TOP_VALUES,
};

struct gn_top_row {
	enum gn_top_level level;
	size_t built;         /* index in the order of the reports */
	size_t role, session; /* `built` of the rows above this one; its own if there is none */
	char key[192];        /* identifies the row in later reports */
	char name[64], kind[16], state[40];
	double value[GN_TOP_VALUES];
	bool has_share;
	double share[GN_STAT_PARTS]; /* of the latency */
	const json_t *object;        /* of the report; lanes: that of their role */
};

enum gn_top_mode {
	GN_TOP_LIST,
	GN_TOP_DETAIL, /* one row with all values of its report */
	GN_TOP_HELP,
};

struct gn_top_model {
	const char *dir;       /* directory of the sockets, for a message */
	const char *only_role; /* NULL: all */
	time_t time;           /* of the last reports */
	double seconds;        /* longest interval of the rates */
	unsigned interval_s;   /* wanted interval of the reports */
	bool paused, quit, lanes_shown, has_reports;

	json_t *before, *now; /* the last two lists of reports */
	json_t *shown;  /* the list that the rows refer to: `now`, or an older one while paused */
	json_t *silent; /* PIDs of processes without an answer */

	struct gn_top_row *rows;   /* in the order of the reports */
	struct gn_top_row **order; /* rows as shown */
	size_t n_rows, n_shown, capacity;
	size_t n_processes, n_roles;
	size_t n_served, n_opened; /* sessions, at the end of the server and of the client */
	double total_iops, total_bytes;

	size_t column; /* sort by this row of gn_top_columns */
	bool reverse;
	char selected[192]; /* key of the selected row */
	char opened[192];   /* key of the row of GN_TOP_DETAIL */
	enum gn_top_mode mode, mode_before_help;
	size_t first;      /* first line of the body that the screen shows */
	size_t page;       /* lines of the body of the last screen */
	char notice[160];  /* message below the header; "": none */
	time_t notice_end; /* when it disappears */
};

void gn_top_init(struct gn_top_model *m, const char *dir, const char *only_role);
void gn_top_fini(struct gn_top_model *m);

/*
 * Take new reports.
 *
 * list    reports as gn_stat_view_ask() returns them; the model takes the ownership
 * silent  PIDs of processes without an answer: their last report stays
 * now     the time to be shown
 */
void gn_top_update(struct gn_top_model *m, json_t *list, const json_t *silent, time_t now);

/* Apply the order, and whether lanes are shown, after a change. */
void gn_top_sort(struct gn_top_model *m);

/* Returns the index in `order` of the row with this key; n_shown: none. */
size_t gn_top_find(const struct gn_top_model *m, const char *key);

/* Select another row; the argument is a distance, and is limited to the rows that exist. */
void gn_top_move(struct gn_top_model *m, long distance);

/* Show the selected row in detail. No effect if there is none. */
void gn_top_open(struct gn_top_model *m);

/* Go back to the list. */
void gn_top_back(struct gn_top_model *m);

/* Stop or continue to show new reports. */
void gn_top_pause(struct gn_top_model *m);

/* Show a message for some seconds. */
void gn_top_notice(struct gn_top_model *m, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
