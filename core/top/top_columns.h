/* SPDX-License-Identifier: BSD-3-Clause */
/* top_columns.h - the columns of gantry top */
#ifndef GN_TOP_TOP_COLUMNS_H
#define GN_TOP_TOP_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#include "top/top_model.h"

#define GN_TOP_CELL 64 /* bytes of the text of a cell */
#define GN_TOP_BAR 12  /* width of the bar of shares */

struct gn_top_column {
	const char *title;
	char letter; /* key that sorts by this column */
	int width;   /* negative: left-justified */
	int rank;    /* a narrow screen leaves out the columns of the highest rank first */
	void (*print)(const struct gn_top_row *row, enum gn_top_value value,
		      char text[GN_TOP_CELL]);
	enum gn_top_value value; /* number that is printed; GN_TOP_VALUES: none */
	int sort;                /* order of the rows: 1: rising, -1: falling */
	const char *help;
};

extern const struct gn_top_column gn_top_columns[];
extern const size_t gn_top_n_columns;

/* Print the text of a cell; "-": the row does not have the value. */
void gn_top_print_cell(const struct gn_top_column *column, const struct gn_top_row *row,
		       char text[GN_TOP_CELL]);

/* Compare two rows by a column, in the order in which they are shown. */
int gn_top_compare(const struct gn_top_column *column, const struct gn_top_row *a,
		   const struct gn_top_row *b);

/*
 * Choose the columns that fit.
 *
 * width    of the screen; 0: no limit
 * chosen   out: true for each column that fits
 * returns  the width of these columns together
 */
unsigned gn_top_choose_columns(unsigned width, bool chosen[]);

/* Returns the number of the column with this letter; gn_top_n_columns: none. */
size_t gn_top_find_column(int letter);

#endif
