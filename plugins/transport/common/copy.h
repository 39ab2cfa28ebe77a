/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy.h - copies by this processor where a card would move the data, as the memory backend makes
 * them.
 *
 * Out of a region that no cache is expected to hold the next page is asked for while one is copied:
 * the processor fetches ahead on its own, but not beyond a page. Of what a cache holds that would
 * be slower.
 */
#ifndef TRANSPORT_COMMON_COPY_H
#define TRANSPORT_COMMON_COPY_H

#include <string.h>

#include <gantry/transport.h>

#define TC_COPY_STRIDE 4096u          /* what is copied while as much is on its way */
#define TC_COPY_COLD_FROM (64u << 20) /* smaller regions may well lie in a cache */

/*
 * The first lines of an access that is to be copied soon. More would keep the copy before it from
 * its own.
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

/* As memcpy, out of a region, which may be NULL. */
static inline void tc_copy_out(void *to, const void *from, size_t bytes,
			       const struct gantry_region *region)
{
	if (bytes > TC_COPY_STRIDE && region && region->length >= TC_COPY_COLD_FROM)
		tc_copy_cold(to, from, bytes);
	else
		memcpy(to, from, bytes);
}

#endif
