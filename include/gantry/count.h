/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * count.h - a counter with one writer and any number of readers.
 */
#ifndef GANTRY_COUNT_H
#define GANTRY_COUNT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * gantry_count - add n to a counter
 *
 * cell    the counter
 * n       the summand
 * thread  the only thread that writes the cell; other threads can read it
 */
static inline void gantry_count(uint64_t *cell, uint64_t n)
{
#if defined(__x86_64__)
	/*
	 * One instruction without a lock prefix. Compilers generate three instructions for a
	 * relaxed atomic load and store.
	 */
	__asm__("addq %1, %0" : "+m"(*cell) : "er"(n));
#else
	__atomic_store_n(cell, __atomic_load_n(cell, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
#endif
}

#ifdef __cplusplus
}
#endif

#endif
