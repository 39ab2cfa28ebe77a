/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim_config.h - the configuration of a build; the engine on io_uring is image_engine.c. Without
 * libisal: the accesses of its assembly code are no scheduling points. Without ncurses, which calls
 * functions of libc with descriptors.
 */
#include "config.h"
#undef HAVE_LIBISAL
#undef HAVE_NCURSES
#undef HAVE_LIBURING
#define HAVE_LIBURING 1

/* replaces core/base/pause.h: other threads may run in a pause */
#define GN_BASE_PAUSE_H
void sim_relax(void);
static inline void gn_pause(void)
{
	sim_relax();
}
