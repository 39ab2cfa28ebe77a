/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kept_ends.h - the two ends of unit/verbs/ends.h for a fuzz target: the devices stay open from
 * one input to the next, and each input begins with the same connection
 *
 *	if (!kept_ends_begin(both)) {
 *		create further objects with which each input begins;
 *		rewind_mark();
 *	}
 *	run the input;
 *	kept_ends_leave();
 *	unmap memory;
 *	kept_ends_end();
 */
#ifndef FUZZ_KEPT_ENDS_H
#define FUZZ_KEPT_ENDS_H

#include "fuzz/rewind.h"
#include "unit/verbs/ends.h"

/*
 * Returns true if it has restored the state at rewind_mark(). Otherwise connects `a` with `b`; the
 * first call opens the devices. both: options of both devices.
 */
bool kept_ends_begin(const char *both);
/* End the connection, and abort unless each device is in the same state as before it. */
void kept_ends_leave(void);
/* Abort unless as many blocks are allocated as the open devices keep without a connection. */
void kept_ends_end(void);

#endif
