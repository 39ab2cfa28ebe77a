/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics_main.c - gantry-metrics, which gantry metrics starts: serves the metrics of all gantry
 * processes of a directory by HTTP
 *
 *     gantry-metrics LISTEN DIRECTORY [CONFIGURATION]
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/metrics_http.h"
#include "cli/metrics_listen.h"
#include "cli/notify.h"

/* Block the signals that end the process. Ignored signals, as under nohup(1), remain so. */
static void block_ends(sigset_t *ends)
{
	sigemptyset(ends);
	sigaddset(ends, SIGHUP);
	sigaddset(ends, SIGINT);
	sigaddset(ends, SIGTERM);
	sigprocmask(SIG_BLOCK, ends, NULL);
}

/* Serve until one of the signals arrives. */
static int serve(struct gn_metrics_listener *listener, const struct gn_stat_view *view,
		 const sigset_t *ends)
{
	struct gn_metrics_http *http;
	int signal, rc = gn_metrics_http_start(&http, listener->fd, view);

	if (rc)
		return gn_cli_fail(GN_EXIT_FAILED, "%s: cannot start the HTTP server: %s",
				   listener->name, strerror(-rc));
	printf("metrics at %s%s\n", listener->name, listener->address.sun_path[0] ? "" : "metrics");
	fflush(stdout);
	gn_notify(GN_NOTIFY_READY);
	while (sigwait(ends, &signal))
		continue;
	gn_notify(GN_NOTIFY_STOPPING);
	gn_metrics_http_stop(&http);
	return GN_EXIT_OK;
}

int main(int argc, char **argv)
{
	struct gn_metrics_listener listener;
	struct gn_stat_view view = {.file = argc > 3 ? argv[3] : NULL};
	sigset_t ends;
	int code;

	if (argc < 3 || argc > 4)
		return gn_cli_fail(GN_EXIT_USAGE, "gantry-metrics: use gantry metrics to start it");
	signal(SIGPIPE, SIG_IGN);
	gn_clock_init();
	snprintf(view.dir, sizeof(view.dir), "%s", argv[2]);
	block_ends(&ends);
	code = gn_metrics_listen(&listener, argv[1]);
	if (code != GN_EXIT_OK)
		return code;
	code = serve(&listener, &view, &ends);
	gn_metrics_unlink(&listener);
	return code;
}
