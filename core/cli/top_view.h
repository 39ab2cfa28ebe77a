/* SPDX-License-Identifier: BSD-3-Clause */
/* top_view.h - the terminal of gantry top: draws the screen with ncurses, and reads keys */
#ifndef GN_CLI_TOP_VIEW_H
#define GN_CLI_TOP_VIEW_H

#include "cli/stat_view.h"
#include "top/top_model.h"

/*
 * Show the model in the terminal until the user quits, or SIGINT, SIGTERM or SIGHUP arrives, or the
 * terminal closes. Restores the terminal. Returns an exit code; an error was printed.
 */
int gn_top_view_run(struct gn_top_model *m, const struct gn_stat_view *processes);

#endif
