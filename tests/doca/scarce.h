/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scarce.h - allocation failures that a test injects into its own thread. scarce.c replaces
 * malloc(). With a sanitizer, or without glibc, it does not, and no allocation fails.
 */
#ifndef TESTS_DOCA_SCARCE_H
#define TESTS_DOCA_SCARCE_H

#include <doca_error.h>

#include <stdbool.h>

/* Whether allocations can fail in this build; otherwise a test must ignore itself. */
bool scarce_can(void);

/* Let the next n allocations of this thread succeed and all later ones fail. */
void scarce_after(unsigned n);

/* Let all allocations succeed again. Returns whether an allocation failed. */
bool scarce_end(void);

/* Returns the number of blocks that this thread has allocated and not freed. */
long scarce_held(void);

/*
 * Call make(arg) while no allocation succeeds, then while one succeeds, and so on, until no
 * allocation fails: then make() must succeed. In each earlier call, make() must return `expected`
 * and leak no block, or succeed without the allocation; after a success, undo(arg) is called.
 * Asserts all this with Unity. Returns the number of calls that failed.
 */
unsigned scarce_walk(doca_error_t expected, doca_error_t (*make)(void *arg),
		     void (*undo)(void *arg), void *arg);

#endif
