/* SPDX-License-Identifier: BSD-3-Clause */
/* build_tree.c - finds files of gantry that are elsewhere before they are installed */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

bool gn_cli_path(char out[PATH_MAX], const char *a, const char *b, const char *c, const char *d)
{
	return snprintf(out, PATH_MAX, "%s%s%s%s", a, b, c, d) < PATH_MAX;
}

bool gn_cli_build_tree(char top[PATH_MAX])
{
	static const char self[] = "/core/gantry";
	char archive[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", top, PATH_MAX - 1);
	size_t len = n < 0 ? 0 : (size_t)n;

	if (len <= strlen(self) || memcmp(top + len - strlen(self), self, strlen(self)) != 0)
		return false;
	top[len - strlen(self)] = '\0';
	return gn_cli_path(archive, top, "/core/libgantry-core.la", "", "") &&
	       !access(archive, F_OK);
}
