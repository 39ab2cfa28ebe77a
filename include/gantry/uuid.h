/* SPDX-License-Identifier: BSD-3-Clause */
/* uuid.h - test and format the UUID of a volume (struct gantry_volume_info). */
#ifndef GANTRY_UUID_H
#define GANTRY_UUID_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GANTRY_UUID_BYTES 16
#define GANTRY_UUID_TEXT 37 /* bytes of the text, with the terminating 0 */

/*
 * gantry_uuid_is_known - test whether a UUID is known
 *
 * uuid     16 bytes; all 0: unknown
 * returns  1: known. 0: unknown
 * thread   any
 */
static inline int gantry_uuid_is_known(const uint8_t uuid[GANTRY_UUID_BYTES])
{
	static const uint8_t unknown[GANTRY_UUID_BYTES] = {0};

	return memcmp(uuid, unknown, sizeof(unknown)) != 0;
}

/*
 * gantry_uuid_text - format a UUID as 8-4-4-4-12 hexadecimal digits in lower case
 *
 * uuid     16 bytes
 * text     out: the digits and the terminating 0
 * returns  text
 * thread   any
 * owner    the caller owns text
 */
static inline const char *gantry_uuid_text(const uint8_t uuid[GANTRY_UUID_BYTES],
					   char text[GANTRY_UUID_TEXT])
{
	int n = 0;

	for (int i = 0; i < GANTRY_UUID_BYTES; i++)
		n += snprintf(text + n, (size_t)(GANTRY_UUID_TEXT - n),
			      i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid[i]);
	return text;
}

#ifdef __cplusplus
}
#endif

#endif
