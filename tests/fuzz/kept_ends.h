/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kept_ends.h - the two ends of unit/verbs/ends.h for a fuzz target: the devices stay open from
 * one input to the next, and each input begins with the same connection
 *
 *	if (!kept_ends_begin(both)) {
 *		add to the connection what each input begins with;
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
 * Returns true if the state at rewind_mark() is restored. Else connects `a` with `b`; the first
 * call opens the devices with these options of both ends.
 */
bool kept_ends_begin(const char *both);
/* Leave, and abort unless each device is as it was before it was connected. */
void kept_ends_leave(void);
/* Abort if memory has been allocated since the devices were opened. */
void kept_ends_end(void);

#endif
