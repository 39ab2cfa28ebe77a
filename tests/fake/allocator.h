/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * allocator.h - replaces malloc() and its relatives: for one file of a program, or of a library
 * that is preloaded. All libraries of the process use the replacement.
 *
 * The file that includes it decides which allocations succeed, and is notified of blocks. Without
 * ALLOCATOR_OURS nothing is replaced: the allocator of a sanitizer must not be, and other C
 * libraries do not export the underlying functions.
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

/* Whether this allocation may succeed. If not, it has set errno. */
static bool is_granted(void *caller);
/* The number of blocks has changed by this much. */
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
