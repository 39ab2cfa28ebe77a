/* SPDX-License-Identifier: BSD-3-Clause */
/* uuid.h - test, format and derive the UUID of a volume (struct gantry_volume_info). */
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
 * gantry_uuid_is_other - test whether two UUIDs are those of different volumes
 *
 * returns  1: both are known, and they differ. 0: they are the same, or one is unknown
 * thread   any
 * since    ABI 0.1
 */
static inline int gantry_uuid_is_other(const uint8_t a[GANTRY_UUID_BYTES],
				       const uint8_t b[GANTRY_UUID_BYTES])
{
	return gantry_uuid_is_known(a) && gantry_uuid_is_known(b) &&
	       memcmp(a, b, GANTRY_UUID_BYTES) != 0;
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

/*
 * gantry_mix64 - combine two numbers to one, with the finalizer of splitmix64
 *
 * returns  a number. For each `a` the map of `b` is a bijection
 * thread   any
 * since    ABI 0.1
 */
static inline uint64_t gantry_mix64(uint64_t a, uint64_t b)
{
	b += a + 0x9e3779b97f4a7c15ull;
	b = (b ^ b >> 30) * 0xbf58476d1ce4e5b9ull;
	b = (b ^ b >> 27) * 0x94d049bb133111ebull;
	return b ^ b >> 31;
}

/*
 * gantry_uuid_derive - replace the UUID of a volume by that of a volume that is made of it
 *
 * uuid     in and out: 16 bytes; an unknown UUID stays unknown
 * with     16 bytes that tell derived volumes apart: another UUID, or parameters
 * thread   any
 * since    ABI 0.1
 */
static inline void gantry_uuid_derive(uint8_t uuid[GANTRY_UUID_BYTES],
				      const uint8_t with[GANTRY_UUID_BYTES])
{
	uint64_t in[4], out[2] = {1, 2};

	if (!gantry_uuid_is_known(uuid))
		return;
	memcpy(&in[0], uuid, GANTRY_UUID_BYTES);
	memcpy(&in[2], with, GANTRY_UUID_BYTES);
	for (unsigned i = 0; i < 4; i++) {
		out[0] = gantry_mix64(out[0], in[i]);
		out[1] = gantry_mix64(out[1], in[i]);
	}
	memcpy(uuid, out, GANTRY_UUID_BYTES);
	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x80); /* version 8: vendor-specific */
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80); /* the variant of RFC 9562 */
}

#ifdef __cplusplus
}
#endif

#endif
