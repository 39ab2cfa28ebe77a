/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scarce.h - memory that runs out when a test says so, for the thread that says it. A program with
 * scarce.c has its own malloc(); with a sanitizer, or without glibc, it has not, and nothing runs
 * out.
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

/* Blocks that this thread took and did not give back. */
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
