/* SPDX-License-Identifier: BSD-3-Clause */
/* stat_client.h - request reports from the running gantry processes of a directory */
#ifndef GN_CLI_STAT_CLIENT_H
#define GN_CLI_STAT_CLIENT_H

#include <jansson.h>

#define GN_STAT_TIMEOUT_MS 2000 /* of all answers together */

/*
 * Request a report from each process that listens in the directory. A process that ends meanwhile
 * has no report; an invalid report is printed as an error.
 *
 * silent   the PIDs of processes without an answer are appended
 * error_p  out: errno if the directory cannot be read, else 0
 * returns  an array of reports in the order of the names; the caller owns it
 */
json_t *gn_stat_ask(const char *dir, json_t *silent, int *error_p);

#endif
