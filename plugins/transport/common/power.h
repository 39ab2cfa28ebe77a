/* SPDX-License-Identifier: BSD-3-Clause */
/* power.h - power-of-two sizes for rings, which are indexed by a mask. */
#ifndef TRANSPORT_COMMON_POWER_H
#define TRANSPORT_COMMON_POWER_H

#include <stdint.h>

/* Returns the smallest power of two that is not less than n. n: 0 .. 2^31; 0 gives 1. */
static inline uint32_t tc_power_of_two(uint32_t n)
{
	uint32_t size = 1;

	while (size < n)
		size *= 2;
	return size;
}

#endif
