/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stat_server.h - answer `gantry stat`: the process listens on DIR/PID.stat.sock, and sends one
 * JSON report to each client of the same user or root.
 */
#ifndef GN_CLI_STAT_SERVER_H
#define GN_CLI_STAT_SERVER_H

#include <jansson.h>

#include "base/event_loop.h"
#include "cli/report.h"

#define GN_STAT_SUFFIX ".stat.sock"
#define GN_STAT_BACKLOG 4

struct gn_stat_server;

/*
 * Start to listen. The process can run without the server.
 *
 * dir       "": the default directory
 * write     writes a report to `report`, which the server frees; returns its tree or NULL
 * server_p  out: the server; NULL after an error
 * returns   0
 *           -errno: failed; the cause was logged
 */
int gn_stat_server_open(struct gn_loop *loop, const char *dir,
			json_t *(*write)(void *arg, struct gn_report *report), void *arg,
			struct gn_stat_server **server_p);
void gn_stat_server_close(struct gn_stat_server **server_p); /* NULL is allowed here and below */
/* Remove the name of the socket, for an exit without gn_stat_server_close(). */
void gn_stat_server_unlink(const struct gn_stat_server *server);

#endif
