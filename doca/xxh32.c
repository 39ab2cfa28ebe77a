/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xxh32.c - the 32-bit xxHash with seed 0: the checksum of LZ4 frames. Four sums take turns over 16 bytes at a time; what is
 * left is mixed in by words, then by bytes.
 */
#include <string.h>

#include "compress.h"

#define P1 2654435761u
#define P2 2246822519u
#define P3 3266489917u
#define P4 668265263u
#define P5 374761393u

static uint32_t rotate(uint32_t x, int by)
{
	return x << by | x >> (32 - by);
}

static uint32_t word(const uint8_t *p)
{
	uint32_t w;

	memcpy(&w, p, sizeof(w)); /* little-endian, as configure made sure */
	return w;
}

static uint32_t lane(uint32_t sum, const uint8_t *p)
{
	return rotate(sum + word(p) * P2, 13) * P1;
}

static uint32_t scatter(uint32_t h)
{
	h = (h ^ h >> 15) * P2;
	h = (h ^ h >> 13) * P3;
	return h ^ h >> 16;
}

uint32_t gd_xxh32(const uint8_t *data, size_t n)
{
	uint32_t sums[4] = {P1 + P2, P2, 0, 0u - P1}, h = P5;
	const uint8_t *end = data + n;

	for (; end - data >= 16; data += 16)
		for (int i = 0; i < 4; i++)
			sums[i] = lane(sums[i], data + 4 * i);
	if (n >= 16)
		h = rotate(sums[0], 1) + rotate(sums[1], 7) + rotate(sums[2], 12) + rotate(sums[3], 18);
	h += (uint32_t)n;
	for (; end - data >= 4; data += 4)
		h = rotate(h + word(data) * P3, 17) * P4;
	for (; data < end; data++)
		h = rotate(h + *data * P5, 11) * P1;
	return scatter(h);
}
