/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * checked.h - overflow-checked arithmetic on untrusted numbers.
 */
#ifndef GN_BASE_CHECKED_H
#define GN_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

/* *sum_p = a + b. Returns false, and leaves *sum_p unchanged, on overflow. Any thread. */
static inline bool gn_add_u64(uint64_t a, uint64_t b, uint64_t *sum_p)
{
	uint64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return false;
	*sum_p = sum;
	return true;
}

/* *product_p = a * b. Returns false, and leaves *product_p unchanged, on overflow. Any thread. */
static inline bool gn_mul_u64(uint64_t a, uint64_t b, uint64_t *product_p)
{
	uint64_t product;

	if (__builtin_mul_overflow(a, b, &product))
		return false;
	*product_p = product;
	return true;
}

#endif
