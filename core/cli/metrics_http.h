/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics_http.h - the HTTP server of gantry-metrics
 *
 * One thread of the server serves all clients. It has limits, so that clients that stall or send
 * garbage neither keep others out nor use up memory.
 */
#ifndef GN_CLI_METRICS_HTTP_H
#define GN_CLI_METRICS_HTTP_H

#include "cli/stat_view.h"

struct gn_metrics_http;

/*
 * Serve the metrics of the processes that the view selects.
 *
 * fd    listening socket; the server owns it from now on
 * view  remains unchanged until gn_metrics_http_stop()
 *
 * returns  0
 *          -ENOMEM: out of memory
 *          another -errno: the thread could not start
 */
int gn_metrics_http_start(struct gn_metrics_http **http_p, int fd, const struct gn_stat_view *view);

/* Drop all clients, end the thread, and close the socket. Waits for a collection of reports. */
void gn_metrics_http_stop(struct gn_metrics_http **http_p);

#endif
