/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scarce.c - see scarce.h. What the program defines goes before what the C library has, for all libraries of the process.
 */
#include "scarce.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <unity.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

static _Thread_local unsigned left = UINT_MAX; /* allocations that will succeed; UINT_MAX: all */
static _Thread_local bool has_failed;
static _Thread_local long held;

#if defined(__GLIBC__) && !defined(SANITIZED)
#define OURS __attribute__((visibility("default")))

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

bool scarce_can(void)
{
	return true;
}

static bool is_granted(void)
{
	if (!left) {
		has_failed = true;
		errno = ENOMEM;
		return false;
	}
	if (left != UINT_MAX)
		left--;
	return true;
}

static void *counted(void *block)
{
	held += block != NULL;
	return block;
}

OURS void *malloc(size_t size)
{
	return is_granted() ? counted(__libc_malloc(size)) : NULL;
}

OURS void *calloc(size_t n, size_t size)
{
	return is_granted() ? counted(__libc_calloc(n, size)) : NULL;
}

OURS void *realloc(void *block, size_t size)
{
	void *moved;

	if (!is_granted())
		return NULL;
	moved = __libc_realloc(block, size);
	held += (moved && !block) - (!moved && block && !size);
	return moved;
}

OURS void *memalign(size_t alignment, size_t size)
{
	return is_granted() ? counted(__libc_memalign(alignment, size)) : NULL;
}

OURS void *aligned_alloc(size_t alignment, size_t size)
{
	return memalign(alignment, size);
}

OURS int posix_memalign(void **block, size_t alignment, size_t size)
{
	void *got = memalign(alignment, size);

	if (!got)
		return ENOMEM;
	*block = got;
	return 0;
}

OURS void free(void *block)
{
	held -= block != NULL;
	__libc_free(block);
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

unsigned scarce_walk(doca_error_t expected, doca_error_t (*make)(void *arg), void (*undo)(void *arg), void *arg)
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
		TEST_ASSERT_EQUAL_STRING(doca_error_get_name(expected), doca_error_get_name(result));
		TEST_ASSERT_TRUE_MESSAGE(was_scarce, "it fails though nothing was missing");
		TEST_ASSERT_TRUE_MESSAGE(held <= before, "it failed and left blocks behind");
		failures++;
	}
	TEST_FAIL_MESSAGE("it never succeeds");
	return failures;
}
