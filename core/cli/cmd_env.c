/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cmd_env.c - gantry env: prints the environment variables to build and run a program with
 * libgantry-doca, installed or in the build tree.
 */
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/report.h"

/* Directories of libgantry-doca. */
struct places {
	char lib[PATH_MAX]; /* directory of libgantry-doca.so */
	char pkgconfig[PATH_MAX];
	char plugins[PATH_MAX]; /* "": the built-in directory */
};

/* Concatenate the parts of a path. Returns false if it is too long. */
static bool path(char out[PATH_MAX], const char *a, const char *b, const char *c, const char *d)
{
	return snprintf(out, PATH_MAX, "%s%s%s%s", a, b, c, d) < PATH_MAX;
}

/* True if this program is in a build tree; then `top` is set to that tree. */
static bool in_build_tree(char top[PATH_MAX])
{
	static const char self[] = "/core/gantry";
	char archive[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", top, PATH_MAX - 1);
	size_t len = n < 0 ? 0 : (size_t)n;

	if (len <= strlen(self) || memcmp(top + len - strlen(self), self, strlen(self)) != 0)
		return false;
	top[len - strlen(self)] = '\0';
	return path(archive, top, "/core/libgantry-core.la", "", "") && !access(archive, F_OK);
}

static bool find_places(const char *profile, struct places *at)
{
	char top[PATH_MAX];

	*at->plugins = '\0';
	if (!in_build_tree(top))
		return path(at->lib, GANTRY_LIBDIR, "", "", "") &&
		       path(at->pkgconfig, GANTRY_LIBDIR, "/gantry/doca/", profile, "/pkgconfig");
	return path(at->lib, top, "/doca/.libs", "", "") &&
	       path(at->plugins, top, "/plugins/.libs", "", "") &&
	       path(at->pkgconfig, top, "/doca/", profile, "/pkgconfig");
}

/* Print text quoted for a shell. */
static void print_quoted(const char *text)
{
	putchar('\'');
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\'", stdout);
		putchar(*text);
	}
	putchar('\'');
}

/* Print a shell command that prepends a directory to a variable. */
static void print_list(const char *name, const char *dir)
{
	printf("export %s=", name);
	print_quoted(dir);
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
	if (access(at.pkgconfig, F_OK))
		return gn_cli_fail(
			GN_EXIT_FAILED,
			"there is no %s: build and install gantry without --disable-doca",
			at.pkgconfig);
	return (cli->json ? print_json : print_shell)(profile, &at);
}
