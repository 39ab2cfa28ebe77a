/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stat_server.h - a running process answers `gantry stat`: DIR/PID.stat.sock gives each one who
 * connects (the same user or root) one JSON report and hangs up.
 */
#ifndef GN_CLI_STAT_SERVER_H
#define GN_CLI_STAT_SERVER_H

#include <jansson.h>

#include "base/loop.h"
#include "cli/report.h"

#define GN_STAT_SUFFIX ".stat.sock"
#define GN_STAT_BACKLOG 4

struct gn_stat_server;

/*
 * dir: "": the usual one. write: makes a report into `report`, which the server frees, and returns
 * its tree or NULL.
 * 0 or -errno; it has been logged then, and *server_p is NULL: a process can do without.
 */
int gn_stat_server_open(struct gn_loop *loop, const char *dir,
			json_t *(*write)(void *arg, struct gn_report *report), void *arg,
			struct gn_stat_server **server_p);
void gn_stat_server_close(struct gn_stat_server **server_p); /* NULL is fine, also below */
/* Remove the socket's name, for those who leave in a hurry. */
void gn_stat_server_unlink(const struct gn_stat_server *server);

/*
 * The usual directory: $XDG_RUNTIME_DIR/gantry, else /run/gantry for root, else /tmp/gantry-UID.
 * dst: PATH_MAX bytes.
 */
void gn_stat_dir(char *dst);

#endif
