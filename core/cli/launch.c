/* SPDX-License-Identifier: BSD-3-Clause */
/* launch.c - commands that are programs of their own: gantry conform, doca and metrics */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/metrics_listen.h"
#include "cli/stat_view.h"

/*
 * Replace this process with the program NAME of LIBDIR/gantry, or of the directory `dir` of a build
 * tree. Returns only after an error. remedy: what provides the program.
 */
static int launch(const struct gn_cli *cli, const char *dir, const char *name, const char *remedy)
{
	char top[PATH_MAX], program[PATH_MAX];
	const bool is_built = gn_cli_build_tree(top);
	const char **argv = calloc(cli->args.n + 2, sizeof(*argv));

	if (!argv)
		return gn_cli_fail(GN_EXIT_FAILED, "out of memory");
	if (!gn_cli_path(program, is_built ? top : GANTRY_LIBDIR, is_built ? dir : "/gantry", "/",
			 name)) {
		free(argv);
		return gn_cli_fail(GN_EXIT_FAILED, "the path of %s is too long", name);
	}
	argv[0] = program;
	memcpy(argv + 1, cli->args.word, cli->args.n * sizeof(*argv));
	execv(program, (char *const *)argv);
	free(argv);
	return gn_cli_fail(GN_EXIT_USAGE, "%s: cannot run the program: %s: %s", program,
			   strerror(errno), remedy);
}

int gn_cli_conform(const struct gn_cli *cli)
{
	return launch(cli, "/tests", "gantry-conform",
		      "install the conformance kit of gantry (Debian: gantry-tests)");
}

int gn_cli_doca(const struct gn_cli *cli)
{
	return launch(cli, "/doca", "gantry-doca", "build gantry with DOCA");
}

/* It is another program, so that processes with roles do not load the HTTP library. */
int gn_cli_metrics(const struct gn_cli *cli)
{
	struct gn_cli words = {0};
	struct gn_stat_view view;
	int code = gn_stat_view_open(cli, NULL, &view);

	if (code != GN_EXIT_OK)
		return code;
	gn_cli_add_word(&words.args, cli->listen ? cli->listen : GN_METRICS_LISTEN);
	gn_cli_add_word(&words.args, view.dir);
	if (view.file)
		gn_cli_add_word(&words.args, view.file);
	code = launch(&words, "/core", "gantry-metrics",
		      "install gantry-metrics, or build gantry with libmicrohttpd");
	gn_strlist_fini(&words.args);
	gn_stat_view_close(&view);
	return code;
}
