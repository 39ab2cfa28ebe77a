/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics_listen.h - the socket at which gantry-metrics listens */
#ifndef GN_CLI_METRICS_LISTEN_H
#define GN_CLI_METRICS_LISTEN_H

#include <sys/un.h>

#define GN_METRICS_LISTEN "127.0.0.1:9464" /* the default */

struct gn_metrics_listener {
	int fd;
	struct sockaddr_un address; /* sun_path is empty if the socket is not a Unix socket */
	char name[128];             /* for people: a URL, or unix:PATH */
};

/*
 * Listen at ADDRESS:PORT, or at unix:PATH. ADDRESS is a loopback address; port 0 lets the system
 * choose a port. A Unix socket replaces one that a killed process has left. The umask decides who
 * can connect to it.
 *
 * returns  enum gn_exit; after a failure the reason was printed
 */
int gn_metrics_listen(struct gn_metrics_listener *listener, const char *where);

/* Remove the Unix socket. The HTTP server has closed the descriptor. */
void gn_metrics_unlink(const struct gn_metrics_listener *listener);

#endif
