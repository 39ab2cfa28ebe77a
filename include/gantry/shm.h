/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm.h - access to memory that another process can write. All such accesses use these functions.
 *
 * Each load happens exactly once, so the value that was checked is the value that is used. Load
 * into private memory, check the copy, and use only the copy. A writer publishes data with a
 * release store last. The reader loads that word first, with acquire.
 * Pointers are aligned to their width. Words are in the byte order of the machine. Any thread,
 * O(1), no system call.
 *
 * A test can define GANTRY_SHM_TEST and supply gantry_shm_test_load(), which then provides the
 * result of every load. So a fuzzer can simulate a peer that changes the memory between any two
 * loads.
 */
#ifndef GANTRY_SHM_H
#define GANTRY_SHM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef GANTRY_SHM_TEST
uint64_t gantry_shm_test_load(const volatile void *p, unsigned int width);
#define GANTRY_SHM_LOAD(p, width, order) ((uint##width##_t)gantry_shm_test_load((p), (width)))
#else
#define GANTRY_SHM_LOAD(p, width, order) __atomic_load_n((p), (order))
#endif

static inline uint32_t gantry_shm_ld32(const uint32_t *p)
{
	return GANTRY_SHM_LOAD(p, 32, __ATOMIC_RELAXED);
}

static inline uint64_t gantry_shm_ld64(const uint64_t *p)
{
	return GANTRY_SHM_LOAD(p, 64, __ATOMIC_RELAXED);
}

/* Load with acquire: what the peer stored before its release store is visible afterwards. */
static inline uint32_t gantry_shm_ld32_acquire(const uint32_t *p)
{
	return GANTRY_SHM_LOAD(p, 32, __ATOMIC_ACQUIRE);
}

static inline uint64_t gantry_shm_ld64_acquire(const uint64_t *p)
{
	return GANTRY_SHM_LOAD(p, 64, __ATOMIC_ACQUIRE);
}

static inline void gantry_shm_st32(uint32_t *p, uint32_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELAXED);
}

static inline void gantry_shm_st64(uint64_t *p, uint64_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELAXED);
}

/* Store with release: earlier stores are visible to a peer that loads this word with acquire. */
static inline void gantry_shm_st64_release(uint64_t *p, uint64_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

/*
 * Full barrier, which orders a store before a later load of another word. A consumer sets `asleep`,
 * calls this, and then checks the ring for the last time.
 */
static inline void gantry_shm_fence(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/*
 * Access to two words by one vector instruction, if the machine has such instructions. The access
 * need not be atomic: one word of the pair can be older than the other.
 */
#if (defined(__SSE2__) || defined(__ARM_NEON)) && !defined(GANTRY_SHM_TEST)
#define GANTRY_SHM_PAIRS 1
typedef uint64_t gantry_shm_pair __attribute__((vector_size(16), aligned(8), may_alias));
#endif
#if defined(__GNUC__) && !defined(__clang__)
#define GANTRY_SHM_UNROLL _Pragma("GCC unroll 8")
#else
#define GANTRY_SHM_UNROLL
#endif

/*
 * Copy a record out of shared memory. Each word is loaded once, so the copy is stable, but it can
 * be torn if the peer violates the protocol.
 *
 * dst      private memory, any alignment
 * src      aligned to 8
 * bytes    a multiple of 8; a constant for speed
 */
static inline void gantry_shm_read(void *dst, const void *src, size_t bytes)
{
	size_t i = 0;

#ifdef GANTRY_SHM_PAIRS
	GANTRY_SHM_UNROLL
	for (; i + 16 <= bytes; i += 16) {
		gantry_shm_pair pair =
			*(const volatile gantry_shm_pair *)(const void *)((const char *)src + i);

		memcpy((char *)dst + i, &pair, 16);
	}
#endif
	for (; i < bytes; i += 8) {
		uint64_t word =
			gantry_shm_ld64((const uint64_t *)(const void *)((const char *)src + i));

		memcpy((char *)dst + i, &word, 8);
	}
}

/*
 * Copy a record into shared memory. It loads src in words of 8 bytes. Smaller stores to src just
 * before the call delay these loads, because the store buffer cannot forward them.
 *
 * dst      aligned to 8
 * src      private memory, any alignment
 * bytes    a multiple of 8; a constant for speed
 */
static inline void gantry_shm_write(void *dst, const void *src, size_t bytes)
{
	GANTRY_SHM_UNROLL
	for (size_t i = 0; i < bytes; i += 8) {
		uint64_t word;

		memcpy(&word, (const char *)src + i, 8);
		gantry_shm_st64((uint64_t *)(void *)((char *)dst + i), word);
	}
}

/*
 * Copy a few bytes between private memories that do not overlap, in words of 8 bytes, then 4, then
 * 1.
 *
 * Use it for data that was stored just before. The store buffer forwards a store only to a load
 * that is not wider. Any wider load, such as a vector load of memcpy(3), waits until all earlier
 * stores are in the cache. Some of those stores can go to cache lines of the peer, which makes that
 * wait long.
 *
 * to, from  any alignment
 * bytes     a constant for speed
 * returns   to
 */
static inline void *gantry_copy_fresh(void *to, const void *from, size_t bytes)
{
	struct word {
		uint64_t v;
	} __attribute__((packed, may_alias));
	struct half {
		uint32_t v;
	} __attribute__((packed, may_alias));
	volatile struct word *dst = (volatile struct word *)to;
	const volatile struct word *src = (const volatile struct word *)from;
	size_t i;

	GANTRY_SHM_UNROLL
	for (i = 0; i < bytes / 8; i++)
		dst[i].v = src[i].v;
	i *= 8;
	if (bytes & 4) {
		((struct half *)((char *)to + i))->v =
			((const struct half *)((const char *)from + i))->v;
		i += 4;
	}
	for (; i < bytes; i++)
		((char *)to)[i] = ((const volatile char *)from)[i];
	return to;
}

#ifdef __cplusplus
}
#endif

#endif
