/* SPDX-License-Identifier: BSD-3-Clause */
#include "top/top_columns.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

/* Convert to an integer; a report can have any number. */
static uint64_t whole(double n)
{
	return n > 0 ? n < 1e18 ? (uint64_t)n : (uint64_t)1e18 : 0;
}

static void print_count(const struct gn_top_row *row, enum gn_top_value value,
			char text[GN_TOP_CELL])
{
	gn_count_format(text, GN_TOP_CELL, row->value[value]);
}

static void print_time(const struct gn_top_row *row, enum gn_top_value value,
		       char text[GN_TOP_CELL])
{
	gn_time_format(text, GN_TOP_CELL, whole(row->value[value]));
}

static void print_bytes(const struct gn_top_row *row, enum gn_top_value value,
			char text[GN_TOP_CELL])
{
	gn_size_format(text, GN_TOP_CELL, whole(row->value[value]));
}

/* The rows below a role do not repeat its process. */
static void print_pid(const struct gn_top_row *row, enum gn_top_value value, char text[GN_TOP_CELL])
{
	if (row->level == GN_TOP_ROLE)
		snprintf(text, GN_TOP_CELL, "%.0f", row->value[value]);
}

static void print_name(const struct gn_top_row *row, enum gn_top_value value,
		       char text[GN_TOP_CELL])
{
	(void)value;
	snprintf(text, GN_TOP_CELL, "%*s%.55s", 2 * (int)row->level, "", row->name);
}

static void print_kind(const struct gn_top_row *row, enum gn_top_value value,
		       char text[GN_TOP_CELL])
{
	(void)value;
	snprintf(text, GN_TOP_CELL, "%s", row->kind);
}

static void print_state(const struct gn_top_row *row, enum gn_top_value value,
			char text[GN_TOP_CELL])
{
	(void)value;
	snprintf(text, GN_TOP_CELL, "%s", row->state);
}

/* A bar: the first letter of each part, as often as its share. */
static void print_shares(const struct gn_top_row *row, enum gn_top_value value,
			 char text[GN_TOP_CELL])
{
	double sum = 0;
	int at = 0;

	(void)value;
	for (int i = 0; i < GN_STAT_PARTS && row->has_share; i++) {
		sum += row->share[i];
		while (at < GN_TOP_BAR && at + 0.5 < sum * GN_TOP_BAR)
			text[at++] = (char)(gn_stat_part_names[i][0] & ~0x20);
	}
	text[at] = '\0';
}

#define TEXT GN_TOP_VALUES, 1 /* sorted by the printed text */

const struct gn_top_column gn_top_columns[] = {
	{"PID", 'P', 7, 4, print_pid, GN_TOP_PID, 1, "the process"},
	{"ROLE", 'N', -17, 0, print_name, TEXT,
	 "the role, its sessions, the lanes of an initiator"},
	{"KIND", 'K', -9, 9, print_kind, TEXT, "the plugin of the role"},
	{"IOPS", 'I', 8, 0, print_count, GN_TOP_IOPS, -1, "IOs for each second"},
	{"BYTES/S", 'B', 10, 1, print_bytes, GN_TOP_BYTES, -1, "bytes for each second"},
	{"P50", 'M', 8, 7, print_time, GN_TOP_P50, -1,
	 "latency that 50 % of the IOs do not exceed"},
	{"P99", 'L', 8, 2, print_time, GN_TOP_P99, -1,
	 "latency that 99 % of the IOs do not exceed"},
	{"P99.9", 'T', 8, 8, print_time, GN_TOP_P999, -1,
	 "latency that 99.9 % of the IOs do not exceed"},
	{"FLIGHT", 'F', 6, 6, print_count, GN_TOP_IN_FLIGHT, -1, "IOs that have not completed"},
	{"CREDIT", 'C', 6, 11, print_count, GN_TOP_CREDITS, -1, "IOs that can still be sent"},
	{"SHARES", 'H', -GN_TOP_BAR, 12, print_shares, TEXT,
	 "shares of Link, Gateway, Target, Backend, Data"},
	{"ERR", 'E', 5, 3, print_count, GN_TOP_ERRORS, -1, "IOs that failed"},
	{"CPU/IO", 'U', 8, 10, print_time, GN_TOP_CPU, -1,
	 "processor time of the process for each IO"},
	{"STATE", 'S', -16, 5, print_state, TEXT, "waiting, running, resumed, silent; since when"},
};
const size_t gn_top_n_columns = sizeof(gn_top_columns) / sizeof(gn_top_columns[0]);

void gn_top_print_cell(const struct gn_top_column *column, const struct gn_top_row *row,
		       char text[GN_TOP_CELL])
{
	text[0] = '\0';
	if (column->value < GN_TOP_VALUES && isnan(row->value[column->value]))
		strcpy(text, "-");
	else
		column->print(row, column->value, text);
}

int gn_top_compare(const struct gn_top_column *column, const struct gn_top_row *a,
		   const struct gn_top_row *b)
{
	char text[2][GN_TOP_CELL];
	double x, y;

	if (column->value == GN_TOP_VALUES) {
		gn_top_print_cell(column, a, text[0]);
		gn_top_print_cell(column, b, text[1]);
		return strcmp(text[0], text[1]);
	}
	x = a->value[column->value];
	y = b->value[column->value];
	if (isnan(x) || isnan(y))
		return (isnan(x) != 0) - (isnan(y) != 0);
	return column->sort * ((x > y) - (x < y));
}

unsigned gn_top_choose_columns(unsigned width, bool chosen[])
{
	unsigned total;
	int limit = 0;

	/* the columns of the lowest ranks, as long as they fit */
	for (size_t i = 0; i < gn_top_n_columns; i++)
		limit = gn_top_columns[i].rank > limit ? gn_top_columns[i].rank : limit;
	do {
		total = 0;
		for (size_t i = 0; i < gn_top_n_columns; i++) {
			chosen[i] = gn_top_columns[i].rank <= limit;
			total += chosen[i] ? (unsigned)abs(gn_top_columns[i].width) + 1 : 0;
		}
		total -= 1;
	} while (width && total > width && limit-- > 0);
	return total;
}

size_t gn_top_find_column(int letter)
{
	size_t i = 0;

	while (i < gn_top_n_columns && gn_top_columns[i].letter != letter)
		i++;
	return i;
}
