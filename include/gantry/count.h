/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * count.h - a counter that one thread writes and others may read.
 */
#ifndef GANTRY_COUNT_H
#define GANTRY_COUNT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* gantry_count - add to a cell that this thread alone writes; another thread may read it */
static inline void gantry_count(uint64_t *cell, uint64_t n)
{
#if defined(__x86_64__)
	/*
	 * one instruction, and no lock; of an atomic load and an atomic store compilers make three
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
