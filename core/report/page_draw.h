/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page_draw.h - the drawings of the page of a run, as inline SVG without scripts. The colors are
 * classes of the style sheet in page.html. A detail that has no room in a drawing is the <title> of
 * its element, which browsers show at the pointer.
 */
#ifndef GN_REPORT_PAGE_DRAW_H
#define GN_REPORT_PAGE_DRAW_H

#include <jansson.h>
#include <stdio.h>

/* Print a text with the characters escaped that HTML gives a meaning. NULL: print nothing. */
void gn_draw_text(FILE *out, const char *text);

/* Draw roles, devices, transports, stages and backends. topology: as gn_page_topology() */
void gn_draw_topology(FILE *out, const json_t *topology);

/* Draw the time series of each role. samples: as gn_samples_tree() */
void gn_draw_series(FILE *out, const json_t *samples);

/* Draw a latency histogram for each operation that a role has measured. */
void gn_draw_histograms(FILE *out, const json_t *report);

/* Draw the share of each hop in the mean latency, for each role that measures hops. */
void gn_draw_hops(FILE *out, const json_t *report);

/*
 * Draw the share of each stage and backend in the time of its role, and a histogram of each, for
 * each role that measured them, below a heading. Draws nothing if there is none.
 */
void gn_draw_places(FILE *out, const json_t *report);

#endif
