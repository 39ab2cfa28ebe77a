/* SPDX-License-Identifier: BSD-3-Clause */
/* rundir.h - the default directory for sockets and state that a reboot may remove */
#ifndef GANTRY_RUNDIR_H
#define GANTRY_RUNDIR_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Get $XDG_RUNTIME_DIR/gantry if that is an absolute path, else /run/gantry for root, else
 * /tmp/gantry-UID. The directory need not exist. A path that does not fit is truncated.
 */
static inline void gantry_rundir(char *path, size_t bytes)
{
	const char *xdg = getenv("XDG_RUNTIME_DIR");

	if (xdg && *xdg == '/')
		snprintf(path, bytes, "%s/gantry", xdg);
	else if (geteuid() == 0)
		snprintf(path, bytes, "/run/gantry");
	else
		snprintf(path, bytes, "/tmp/gantry-%u", (unsigned int)geteuid());
}

#ifdef __cplusplus
}
#endif

#endif
