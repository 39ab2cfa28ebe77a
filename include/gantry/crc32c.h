/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crc32c.h - CRC32C (Castagnoli), as in iSCSI and NVMe. Uses the CRC instruction of the processor
 * if there is one, else tables. Any thread.
 */
#ifndef GANTRY_CRC32C_H
#define GANTRY_CRC32C_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

static uint32_t gantry_crc32c_table[8][256];
static pthread_once_t gantry_crc32c_once = PTHREAD_ONCE_INIT;

static inline void gantry_crc32c_fill(void)
{
	for (uint32_t n = 0; n < 256; n++) {
		uint32_t crc = n;

		for (int bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0);
		gantry_crc32c_table[0][n] = crc;
	}
	for (uint32_t n = 0; n < 256; n++)
		for (int k = 1; k < 8; k++) {
			uint32_t crc = gantry_crc32c_table[k - 1][n];

			gantry_crc32c_table[k][n] = (crc >> 8) ^ gantry_crc32c_table[0][crc & 0xff];
		}
}

/*
 * Compute a CRC by tables, 8 bytes in each step. `crc` is the inverted CRC, also in
 * gantry_crc32c_hard().
 */
static inline uint32_t gantry_crc32c_soft(uint32_t crc, const uint8_t *p, size_t n)
{
	const uint32_t(*t)[256] = (const uint32_t(*)[256])gantry_crc32c_table;

	pthread_once(&gantry_crc32c_once, gantry_crc32c_fill);
	for (; n >= 8; n -= 8, p += 8) {
		uint32_t low = crc ^ (p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
				      (uint32_t)p[3] << 24);

		crc = t[7][low & 0xff] ^ t[6][low >> 8 & 0xff] ^ t[5][low >> 16 & 0xff] ^
		      t[4][low >> 24] ^ t[3][p[4]] ^ t[2][p[5]] ^ t[1][p[6]] ^ t[0][p[7]];
	}
	for (; n; n--, p++)
		crc = (crc >> 8) ^ t[0][(crc ^ *p) & 0xff];
	return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static inline uint32_t gantry_crc32c_hard(uint32_t crc,
									    const uint8_t *p,
									    size_t n)
{
	uint64_t wide = crc, word;

	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&word, p, 8);
		wide = _mm_crc32_u64(wide, word);
	}
	for (crc = (uint32_t)wide; n; n--, p++)
		crc = _mm_crc32_u8(crc, *p);
	return crc;
}
#elif defined(__aarch64__)
/*
 * Compilers accept the CRC intrinsics only if the target processor of the whole translation unit
 * has the instruction. Assemblers accept it after .arch_extension.
 */
static inline uint32_t gantry_crc32c_hard(uint32_t crc, const uint8_t *p, size_t n)
{
	uint64_t word;

	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&word, p, 8);
		__asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(word));
	}
	for (; n; n--, p++)
		__asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1"
			: "+r"(crc)
			: "r"((uint32_t)*p));
	return crc;
}
#endif

/* Returns whether this processor has a CRC32C instruction. */
static inline int gantry_crc32c_is_hard(void)
{
#if defined(__x86_64__)
	return __builtin_cpu_supports("sse4.2");
#elif defined(__aarch64__)
	return (getauxval(AT_HWCAP) & (1u << 7)) != 0; /* HWCAP_CRC32 */
#else
	return 0;
#endif
}

/*
 * Compute the CRC of n bytes. crc: 0, or the result for the preceding bytes, to process a buffer in
 * pieces.
 */
static inline uint32_t gantry_crc32c(uint32_t crc, const void *data, size_t n)
{
	const uint8_t *p = (const uint8_t *)data;

#if defined(__x86_64__) || defined(__aarch64__)
	if (gantry_crc32c_is_hard())
		return ~gantry_crc32c_hard(~crc, p, n);
#endif
	return ~gantry_crc32c_soft(~crc, p, n);
}

#ifdef __cplusplus
}
#endif

#endif
