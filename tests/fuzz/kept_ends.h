/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kept_ends.h - the two ends of unit/verbs/ends.h for a fuzz target: the devices stay open from one
 * input to the next, and each input has a connection of its own.
 */
#ifndef FUZZ_KEPT_ENDS_H
#define FUZZ_KEPT_ENDS_H

#include "unit/verbs/ends.h"

/*
 * Connect `a` with `b`. The first call opens the devices with these options of both ends, which
 * every call must give.
 */
void kept_ends_connect(const char *both);
/* Leave, and abort unless each device is as it was before kept_ends_connect(). */
void kept_ends_leave(void);

#endif
