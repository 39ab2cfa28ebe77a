/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.h - run a topology until its work is done, a role fails or a signal comes.
 *
 * Roles that work (GANTRY_ROLE_WORKS) end by themselves; when the last one has, or at the first
 * signal, the others are stopped, relays before those they connect to. Without such roles the
 * process ends when all have finished. A second signal ends the process at once.
 */
#ifndef GN_CLI_RUN_H
#define GN_CLI_RUN_H

#include <jansson.h>
#include <stdbool.h>

#include "cli/cli.h"

/*
 * Run the roles of `file` that cli->topology selects and hand the final report to `print` (cli,
 * report). Both return enum gn_exit; mistakes in the configuration and failures have been written
 * to stderr. alone: one role is selected, and it is a mistake when it leads to others of this
 * process.
 */
int gn_run(const struct gn_cli *cli, const char *file, bool alone,
	   int (*print)(const struct gn_cli *cli, const json_t *report));

#endif
