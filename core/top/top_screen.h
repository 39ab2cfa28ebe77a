/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * top_screen.h - the lines that gantry top shows, as text: for a terminal of a given size, or
 * without limits for standard output
 */
#ifndef GN_TOP_TOP_SCREEN_H
#define GN_TOP_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include "top/top_model.h"

#define GN_TOP_LINE 256 /* bytes of the text of a line; the rest of a wider terminal is empty */

enum gn_top_style {
	GN_TOP_PLAIN,
	GN_TOP_HEADING, /* heads of the columns, title of a screen */
	GN_TOP_SELECTED,
	GN_TOP_ALERT, /* a message */
	GN_TOP_HINT,  /* last line */
};

struct gn_top_line {
	char text[GN_TOP_LINE];
	enum gn_top_style style;
	unsigned bar; /* column of the bar of shares; 0: there is none */
};

struct gn_top_screen {
	struct gn_top_line *lines;
	size_t n, capacity;
};

/*
 * Make the lines of the screen. The model keeps what a key needs to know: the first line shown, and
 * the number of lines of a page.
 *
 * width, height  of the terminal; 0: no limit
 * screen         zeroed, or from an earlier call; gn_top_screen_fini() frees it
 */
void gn_top_draw(struct gn_top_model *m, unsigned width, unsigned height,
		 struct gn_top_screen *screen);
void gn_top_screen_fini(struct gn_top_screen *screen);

#endif
