/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cmd_run.h - run a topology until its work is done, a role fails or a signal arrives.
 *
 * Roles that work (GANTRY_ROLE_WORKS) end by themselves. After the last of them has ended, or at
 * the first signal, the other roles are stopped, relays before the roles that they connect to.
 * Without such roles, the process ends when all roles have finished. A second signal ends the
 * process immediately.
 */
#ifndef GN_CLI_RUN_H
#define GN_CLI_RUN_H

#include <jansson.h>
#include <stdbool.h>

#include "cli/cli.h"

/*
 * Run the roles of `file` that cli->topology selects, and pass the final report to print().
 *
 * alone     one role is selected; reject the configuration if that role connects to another role of
 *           this process
 * print     prints the report; returns enum gn_exit
 * returns   enum gn_exit; faults and failures were printed to stderr
 */
int gn_run(const struct gn_cli *cli, const char *file, bool alone,
	   int (*print)(const struct gn_cli *cli, const json_t *report));

/* Print all values of a final report as text. Returns enum gn_exit. */
int gn_run_print_all(const json_t *report);

#endif
