/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy.h - copies by the CPU, for transports without a device that moves data.
 *
 * The hardware prefetcher stops at a page boundary. So a copy from a region that is probably not in
 * a cache prefetches the next page while it copies the current one. For data that is in a cache,
 * the prefetches would only slow the copy down.
 */
#ifndef TRANSPORT_COMMON_COPY_H
#define TRANSPORT_COMMON_COPY_H

#include <string.h>

#include <gantry/transport.h>

/* bytes that are copied while the next TC_COPY_STRIDE bytes are prefetched */
#define TC_COPY_STRIDE 4096u
#define TC_COPY_COLD_FROM (64u << 20) /* a smaller region might be in the last-level cache */

/*
 * Prefetch the first lines of a copy that follows soon. More prefetches would delay a copy that
 * runs before it.
 */
static inline void tc_copy_soon(void *to, const void *from)
{
	__builtin_prefetch(from, 0);
	__builtin_prefetch(to, 1);
}

static __attribute__((noinline, unused)) void tc_copy_cold(uint8_t *to, const uint8_t *from,
							   size_t bytes)
{
	for (; bytes > TC_COPY_STRIDE;
	     bytes -= TC_COPY_STRIDE, to += TC_COPY_STRIDE, from += TC_COPY_STRIDE) {
		const uint8_t *next = from + TC_COPY_STRIDE;
		const uint8_t *end = next + (bytes < 2 * TC_COPY_STRIDE ? bytes - TC_COPY_STRIDE
									: TC_COPY_STRIDE);

		for (; next < end; next += GANTRY_CACHE_LINE)
			__builtin_prefetch(next, 0, 2);
		memcpy(to, from, TC_COPY_STRIDE);
	}
	memcpy(to, from, bytes);
}

/* As memcpy(). region: the region that contains `from`; NULL: none. */
static inline void tc_copy_out(void *to, const void *from, size_t bytes,
			       const struct gantry_region *region)
{
	if (bytes > TC_COPY_STRIDE && region && region->length >= TC_COPY_COLD_FROM)
		tc_copy_cold(to, from, bytes);
	else
		memcpy(to, from, bytes);
}

#endif
