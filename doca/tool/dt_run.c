/* SPDX-License-Identifier: BSD-3-Clause */
/* dt_run.c - gantry doca run: becomes a program, with a library loaded before it */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/dt.h"

/* Add the library to LD_PRELOAD. Returns DT_CLEAN or DT_USAGE. */
static int preload(const char *library)
{
	const char *before = getenv("LD_PRELOAD");
	char *value;
	int rc;

	if (access(library, R_OK))
		return dt_fail(DT_USAGE, "%s: cannot load the library: %s: install it", library,
			       strerror(errno));
	if (strpbrk(library, " :"))
		return dt_fail(DT_USAGE,
			       "%s: LD_PRELOAD cannot name a path with a space or a colon: install "
			       "gantry elsewhere",
			       library);
	if (asprintf(&value, "%s%s%s", library, before && *before ? ":" : "",
		     before ? before : "") < 0)
		return dt_fail(DT_USAGE, "out of memory");
	rc = setenv("LD_PRELOAD", value, 1);
	free(value);
	return rc ? dt_fail(DT_USAGE, "out of memory") : DT_CLEAN;
}

int dt_run(char **argv, bool thread_start_shim)
{
	int code = thread_start_shim ? preload(dt_library("libgantry-doca-thread-start.so"))
				     : DT_CLEAN;

	if (code)
		return code;
	/* the program gantry, which started this one, ignores them */
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	execvp(argv[0], argv);
	return dt_fail(DT_USAGE, "%s: cannot run the program: %s", argv[0], strerror(errno));
}
