/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * units.h - sizes and times as people write them.
 */
#ifndef GN_BASE_UNITS_H
#define GN_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#define GN_UNITS_BYTES 24 /* room for any text that the two format functions make */

/* What the parsers accept, to be put into error messages. */
#define GN_SIZE_ACCEPTED \
	"a whole number with no unit (bytes), KiB, MiB, GiB, TiB (or K, M, G, T), KB, MB, GB or TB"
#define GN_TIME_ACCEPTED "a whole number with ns, us, ms, s, m or h"

/*
 * "4KiB" or "4K" to 4096, "4KB" to 4000, "512" or "512B" to 512; case and one space before the unit
 * do not matter.
 * Returns 0; -EINVAL for text that is not as GN_SIZE_ACCEPTED; -ERANGE if it does not fit. Any
 * thread.
 */
int gn_size_parse(const char *text, uint64_t *bytes_p);

/*
 * "250ms", "10 s", "2m", "0" to nanoseconds. Returns as gn_size_parse; a number other than 0 needs
 * its unit. Any thread.
 */
int gn_time_parse(const char *text, uint64_t *ns_p);

/*
 * 4096 to "4KiB", 1610612737 to "1.50GiB". dst: size bytes, GN_UNITS_BYTES is enough. Returns dst.
 * Any thread.
 */
char *gn_size_format(char *dst, size_t size, uint64_t bytes);

/* 250000000 to "250ms", 1234567 to "1.23ms". dst as for gn_size_format. Returns dst. Any thread. */
char *gn_time_format(char *dst, size_t size, uint64_t ns);

#endif
