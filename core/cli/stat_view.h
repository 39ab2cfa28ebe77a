/* SPDX-License-Identifier: BSD-3-Clause */
/* stat_view.h - the running processes that --dir, -c and a role select */
#ifndef GN_CLI_STAT_VIEW_H
#define GN_CLI_STAT_VIEW_H

#include <limits.h>
#include <signal.h>

#include "cli/cli.h"

struct gn_stat_view {
	const struct gn_cli *cli;
	char dir[PATH_MAX]; /* of the sockets */
	char *file;         /* only processes of this configuration; NULL: all */
	const char *role;   /* only processes with this role; NULL: all */
};

/* Find the directory and the configuration. Returns an exit code, after a message if not 0. */
int gn_stat_view_open(const struct gn_cli *cli, const char *role, struct gn_stat_view *view);
void gn_stat_view_close(struct gn_stat_view *view);
/* Request the reports of the selected processes, otherwise as gn_stat_ask(). */
json_t *gn_stat_view_ask(const struct gn_stat_view *view, json_t *silent, int *error_p);
/* Print a message if the list is empty. error: of gn_stat_view_ask(). Returns an exit code. */
int gn_stat_view_found(const struct gn_stat_view *view, const json_t *list, int error);
/* Block SIGINT and SIGTERM for gn_stat_wait(). ends: out, these signals. */
void gn_stat_block_ends(sigset_t *ends);
/* Wait for some seconds. Returns false after one of the signals. */
bool gn_stat_wait(const sigset_t *ends, unsigned seconds);

#endif
