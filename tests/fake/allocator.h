/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * allocator.h - replaces malloc() and its relatives for the whole process, including libraries. One
 * file of the program, or of a preloaded library, includes this header.
 *
 * That file decides in is_granted() which allocations succeed, and hold() counts the blocks.
 * Without ALLOCATOR_OURS nothing is replaced: a sanitizer needs its own allocator, and C libraries
 * other than glibc do not export the underlying functions.
 */
#ifndef TESTS_FAKE_ALLOCATOR_H
#define TESTS_FAKE_ALLOCATOR_H

#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
	__has_feature(memory_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

#if defined(__GLIBC__) && !defined(SANITIZED)
#define ALLOCATOR_OURS
#define OURS __attribute__((visibility("default")))

/* Returns whether this allocation succeeds. If not, sets errno. */
static bool is_granted(void *caller);
/* The number of allocated blocks has changed by `blocks`. */
static void hold(long blocks);

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

static void *counted(void *block)
{
	hold(block != NULL);
	return block;
}

OURS void *malloc(size_t size)
{
	return is_granted(__builtin_return_address(0)) ? counted(__libc_malloc(size)) : NULL;
}

OURS void *calloc(size_t n, size_t size)
{
	return is_granted(__builtin_return_address(0)) ? counted(__libc_calloc(n, size)) : NULL;
}

OURS void *realloc(void *block, size_t size)
{
	void *moved;

	if (!is_granted(__builtin_return_address(0)))
		return NULL;
	moved = __libc_realloc(block, size);
	hold((moved && !block) - (!moved && block && !size));
	return moved;
}

OURS void *memalign(size_t alignment, size_t size)
{
	return is_granted(__builtin_return_address(0)) ? counted(__libc_memalign(alignment, size))
						       : NULL;
}

OURS void *aligned_alloc(size_t alignment, size_t size)
{
	return is_granted(__builtin_return_address(0)) ? counted(__libc_memalign(alignment, size))
						       : NULL;
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
	hold(-(block != NULL));
	__libc_free(block);
}
#endif

#endif
