/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy.h - copies by the CPU, for plugins without a device that moves data.
 *
 * The hardware prefetcher stops at a page boundary. So a copy from memory that is probably not in a
 * cache prefetches the next page while it copies the current one. It prefetches into the
 * second-level cache, because the copy needs the line fill buffers of the first-level cache. For
 * data that is in a cache, the prefetches would only slow the copy down.
 */
#ifndef GANTRY_COPY_H
#define GANTRY_COPY_H

#include <string.h>

#include <gantry/io.h>

#ifdef __cplusplus
extern "C" {
#endif

/* bytes that are copied while the next GANTRY_COPY_STRIDE bytes are prefetched */
#define GANTRY_COPY_STRIDE 4096u
#define GANTRY_COPY_COLD_FROM (64u << 20) /* less memory might be in the last-level cache */

/*
 * Prefetch the first lines of a copy that follows soon. More prefetches would delay a copy that
 * runs before it.
 */
static inline void gantry_copy_soon(void *to, const void *from)
{
	__builtin_prefetch(from, 0);
	__builtin_prefetch(to, 1);
}

static __attribute__((noinline, unused)) void gantry_copy_cold(uint8_t *to, const uint8_t *from,
							       size_t bytes)
{
	for (; bytes > GANTRY_COPY_STRIDE;
	     bytes -= GANTRY_COPY_STRIDE, to += GANTRY_COPY_STRIDE, from += GANTRY_COPY_STRIDE) {
		const uint8_t *next = from + GANTRY_COPY_STRIDE;
		const uint8_t *end = next + (bytes < 2 * GANTRY_COPY_STRIDE
						     ? bytes - GANTRY_COPY_STRIDE
						     : GANTRY_COPY_STRIDE);

		for (; next < end; next += GANTRY_CACHE_LINE)
			__builtin_prefetch(next, 0, 2);
		memcpy(to, from, GANTRY_COPY_STRIDE);
	}
	memcpy(to, from, bytes);
}

/* As memcpy(3). size: bytes of the region or volume that contains `from`; 0: unknown. */
static inline void gantry_copy_out(void *to, const void *from, size_t bytes, uint64_t size)
{
	if (bytes > GANTRY_COPY_STRIDE && size >= GANTRY_COPY_COLD_FROM)
		gantry_copy_cold((uint8_t *)to, (const uint8_t *)from, bytes);
	else
		memcpy(to, from, bytes);
}

#ifdef __cplusplus
}
#endif

#endif
