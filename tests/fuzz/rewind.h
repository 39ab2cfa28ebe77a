/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rewind.h - restore the state of a fuzz target for each input, instead of building it; for
 * targets with one thread
 *
 *	if (!rewind_begin()) {
 *		create the objects with which each input begins;
 *		rewind_mark();
 *	}
 *	run the input, tear down the objects, check that none is left;
 *	rewind_end(n);
 *
 * A target links rewind.c with $(REWIND_LDFLAGS): the linker redirects malloc, free and the like
 * of all objects of the target. Between rewind_begin() and rewind_end() memory comes from an
 * arena, which uses no address twice in an input, so ASan reports each use of freed memory.
 * rewind_begin() restores the arena, and each global variable that ASan instruments, to their
 * values at rewind_mark(). File descriptors of the system and memory of the heap are not restored:
 * the tear-down must not close or free any that existed at rewind_mark(). See quick_fd.h and
 * quick_map.c for substitutes.
 *
 * Without ASan, or if the environment has GANTRY_FUZZ_HEAP, all memory comes from the heap and
 * rewind_begin() returns false for each input. With GANTRY_FUZZ_HEAP, a report of ASan names the
 * calls that allocated and freed the memory.
 */
#ifndef FUZZ_REWIND_H
#define FUZZ_REWIND_H

#include <stdbool.h>

/* Returns true if it has restored the state at rewind_mark(); false: the caller must create it. */
bool rewind_begin(void);
/* Save the state for all later inputs. Called once, by the first input. */
void rewind_mark(void);
/* Before rewind_mark(), reuse the addresses after the last allocated block. */
void rewind_trim(void);
/* Use the heap again. Aborts unless exactly n blocks of the arena are allocated. */
void rewind_end(unsigned n);
/* Returns the number of allocated blocks of the arena; 0 without an arena. */
unsigned rewind_count(void);

#endif
