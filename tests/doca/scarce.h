/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scarce.h - allocation failures that a test injects into its own thread. scarce.c replaces
 * malloc(). With a sanitizer, or without glibc, it does not, and no allocation fails.
 */
#ifndef TESTS_DOCA_SCARCE_H
#define TESTS_DOCA_SCARCE_H

#include <doca_error.h>

#include <stdbool.h>

/* Can memory run out here? If not, a test ignores itself. */
bool scarce_can(void);

/* From now on: the next n allocations succeed, those after them do not. */
void scarce_after(unsigned n);

/* Enough for all again. Did one fail? */
bool scarce_end(void);

/* Blocks that this thread has allocated and not freed. */
long scarce_held(void);

/*
 * Call make(arg), with memory for no allocation at all, then for one, and so on, until none is
 * missing: then it must have succeeded. Before that it returns `expected` each time, and leaves no
 * block behind; or it succeeds without what it did not get, and undo(arg) follows. Asserts all this
 * with Unity. The result is how many times it failed.
 */
unsigned scarce_walk(doca_error_t expected, doca_error_t (*make)(void *arg),
		     void (*undo)(void *arg), void *arg);

#endif
