/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cmd_env.c - gantry env: prints the environment variables to build and run a program with
 * libgantry-doca, and in a build tree also programs with libgantry, and plugins.
 */
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "report/report.h"

/* Values of the variables: directories, separated by ':'. "": not to be set. */
struct places {
	char doca[PATH_MAX]; /* directory of the pkg-config files of libgantry-doca */
	char pkgconfig[3 * PATH_MAX + 16], lib[2 * PATH_MAX + 32], plugins[PATH_MAX];
};

static bool find_places(const char *profile, struct places *at)
{
	char top[PATH_MAX];

	*at->plugins = '\0';
	if (!gn_cli_build_tree(top)) {
		snprintf(at->lib, sizeof(at->lib), "%s", GANTRY_LIBDIR);
		if (!gn_cli_path(at->doca, GANTRY_LIBDIR, "/gantry/doca/", profile, "/pkgconfig"))
			return false;
		snprintf(at->pkgconfig, sizeof(at->pkgconfig), "%s", at->doca);
		return true;
	}
	/* also the directories of libgantry, and of the pkg-config files of both and of plugins */
	snprintf(at->lib, sizeof(at->lib), "%s/doca/.libs:%s/clients/.libs", top, top);
	if (!gn_cli_path(at->doca, top, "/doca/", profile, "/pkgconfig") ||
	    !gn_cli_path(at->plugins, top, "/plugins/.libs", "", ""))
		return false;
	snprintf(at->pkgconfig, sizeof(at->pkgconfig), "%s:%s:%s/clients", at->doca, top, top);
	return true;
}

/* Print a shell command that prepends a list of directories to a variable. */
static void print_list(const char *name, const char *dirs)
{
	printf("export %s=", name);
	gn_cli_print_quoted(dirs);
	printf("${%s:+\":$%s\"}\n", name, name);
}

static int print_shell(const char *profile, const struct places *at)
{
	print_list("PKG_CONFIG_PATH", at->pkgconfig);
	print_list("LD_LIBRARY_PATH", at->lib);
	printf("export GANTRY_DOCA_PROFILE=%s\n", profile);
	if (*at->plugins)
		print_list("GANTRY_PLUGIN_PATH", at->plugins);
	return GN_EXIT_OK;
}

static int print_json(const char *profile, const struct places *at)
{
	json_t *tree = json_pack("{si ss so so so*}", "schema", 1, "profile", profile,
				 "pkg_config_path", gn_report_string(at->pkgconfig), "library_path",
				 gn_report_string(at->lib), "plugin_path",
				 *at->plugins ? gn_report_string(at->plugins) : NULL);
	int code = gn_cli_print_json(tree);

	json_decref(tree);
	return code;
}

int gn_cli_env(const struct gn_cli *cli)
{
	const char *profile = cli->args.word[0];
	struct places at;

	if (strcmp(profile, "host") != 0 && strcmp(profile, "dpu") != 0)
		return gn_cli_fail(GN_EXIT_USAGE, "no profile \"%s\"; there are host and dpu",
				   profile);
	if (!find_places(profile, &at))
		return gn_cli_fail(GN_EXIT_FAILED,
				   "the path of the directory of gantry is too long");
	if (access(at.doca, F_OK))
		return gn_cli_fail(
			GN_EXIT_FAILED,
			"there is no %s: build and install gantry without --disable-doca", at.doca);
	return (cli->json ? print_json : print_shell)(profile, &at);
}
