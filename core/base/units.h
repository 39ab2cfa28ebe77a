/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * units.h - parse and format sizes and times with units.
 */
#ifndef GN_BASE_UNITS_H
#define GN_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#define GN_UNITS_BYTES 24 /* enough for any text of the two format functions */

/* What the parsers accept, for error messages. */
#define GN_SIZE_ACCEPTED \
	"a whole number with no unit (bytes), KiB, MiB, GiB, TiB (or K, M, G, T), KB, MB, GB or TB"
#define GN_TIME_ACCEPTED "a whole number with ns, us, ms, s, m or h"

/*
 * Parse a size: "4KiB" or "4K" is 4096, "4KB" is 4000, "512" or "512B" is 512. Case, and one space
 * before the unit, are ignored.
 * Returns 0; -EINVAL: not as GN_SIZE_ACCEPTED; -ERANGE: overflow. Any thread.
 */
int gn_size_parse(const char *text, uint64_t *bytes_p);

/*
 * Parse a time to nanoseconds: "250ms", "10 s", "2m", "0". A number other than 0 needs a unit.
 * Returns as gn_size_parse(). Any thread.
 */
int gn_time_parse(const char *text, uint64_t *ns_p);

/*
 * Format a size: 4096 becomes "4KiB", 1610612737 becomes "1.50GiB". dst: size bytes; GN_UNITS_BYTES
 * is enough. Returns dst. Any thread.
 */
char *gn_size_format(char *dst, size_t size, uint64_t bytes);

/*
 * Format a time: 250000000 becomes "250ms", 1234567 becomes "1.23ms". dst as for gn_size_format().
 * Returns dst. Any thread.
 */
char *gn_time_format(char *dst, size_t size, uint64_t ns);

#endif
