/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_doca.c - gantry doca: starts gantry-doca, the tools for programs written for DOCA */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

int gn_cli_doca(const struct gn_cli *cli)
{
	char top[PATH_MAX], program[PATH_MAX];
	const bool is_built = gn_cli_build_tree(top);
	const char **argv = calloc(cli->args.n + 2, sizeof(*argv));

	if (!argv)
		return gn_cli_fail(GN_EXIT_FAILED, "out of memory");
	if (!gn_cli_path(program, is_built ? top : GANTRY_LIBDIR, is_built ? "/doca" : "/gantry",
			 "/gantry-doca", "")) {
		free(argv);
		return gn_cli_fail(GN_EXIT_FAILED, "the path of gantry-doca is too long");
	}
	argv[0] = program;
	memcpy(argv + 1, cli->args.word, cli->args.n * sizeof(*argv));
	execv(program, (char *const *)argv);
	free(argv);
	return gn_cli_fail(GN_EXIT_USAGE, "%s: cannot run the program: %s: build gantry with DOCA",
			   program, strerror(errno));
}
