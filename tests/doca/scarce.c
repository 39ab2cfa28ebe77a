/* SPDX-License-Identifier: BSD-3-Clause */
/* scarce.c - see scarce.h */
#include "scarce.h"

#include <limits.h>

#include "fake/allocator.h"

#include <unity.h>

static _Thread_local unsigned left = UINT_MAX; /* allocations that will succeed; UINT_MAX: all */
static _Thread_local bool has_failed;
static _Thread_local long held;

#ifdef ALLOCATOR_OURS
bool scarce_can(void)
{
	return true;
}

static bool is_granted(void *caller)
{
	(void)caller;
	if (!left) {
		has_failed = true;
		errno = ENOMEM;
		return false;
	}
	if (left != UINT_MAX)
		left--;
	return true;
}

static void hold(long blocks)
{
	held += blocks;
}
#else
bool scarce_can(void)
{
	return false;
}
#endif

void scarce_after(unsigned n)
{
	has_failed = false;
	left = n;
}

bool scarce_end(void)
{
	left = UINT_MAX;
	return has_failed;
}

long scarce_held(void)
{
	return held;
}

unsigned scarce_walk(doca_error_t expected, doca_error_t (*make)(void *arg),
		     void (*undo)(void *arg), void *arg)
{
	unsigned n, failures = 0;
	doca_error_t result;
	bool was_scarce;
	long before;

	for (n = 0; n < 10000; n++) {
		before = held;
		scarce_after(n);
		result = make(arg);
		was_scarce = scarce_end();
		if (result == DOCA_SUCCESS) {
			undo(arg);
			if (!was_scarce)
				return failures;
			continue;
		}
		TEST_ASSERT_EQUAL_STRING(doca_error_get_name(expected),
					 doca_error_get_name(result));
		TEST_ASSERT_TRUE_MESSAGE(was_scarce, "it fails though nothing was missing");
		TEST_ASSERT_TRUE_MESSAGE(held <= before, "it failed and left blocks behind");
		failures++;
	}
	TEST_FAIL_MESSAGE("it never succeeds");
	return failures;
}
