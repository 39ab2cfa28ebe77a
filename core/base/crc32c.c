/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/crc32c.h"

#include <pthread.h>
#include <string.h>

/* The sanitizers do not see the accesses of the assembly code in libisal. */
#if defined(HAVE_LIBISAL) && !defined(GANTRY_SANITIZED)
#define USE_LIBISAL 1
#include <isa-l.h>
#elif defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

static uint32_t table[8][256];

static void fill_table(void)
{
	for (uint32_t n = 0; n < 256; n++) {
		uint32_t crc = n;

		for (int bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0);
		table[0][n] = crc;
	}
	for (uint32_t n = 0; n < 256; n++)
		for (int k = 1; k < 8; k++) {
			uint32_t crc = table[k - 1][n];

			table[k][n] = (crc >> 8) ^ table[0][crc & 0xff];
		}
}

/* 8 bytes in each step */
uint32_t gn_crc32c_tables(uint32_t crc, const void *data, size_t n)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const uint8_t *p = data;

	pthread_once(&once, fill_table);
	crc = ~crc;
	for (; n >= 8; n -= 8, p += 8) {
		uint32_t low = crc ^ (p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
				      (uint32_t)p[3] << 24);

		crc = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^
		      table[5][low >> 16 & 0xff] ^ table[4][low >> 24] ^ table[3][p[4]] ^
		      table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
	}
	for (; n; n--, p++)
		crc = (crc >> 8) ^ table[0][(crc ^ *p) & 0xff];
	return ~crc;
}

#if defined(USE_LIBISAL)

#define PIECE (1u << 30) /* crc32_iscsi() has an int for the length */

uint32_t gn_crc32c(uint32_t crc, const void *data, size_t n)
{
	unsigned char *p = (unsigned char *)data; /* crc32_iscsi() only reads it */

	crc = ~crc;
	for (; n > PIECE; n -= PIECE, p += PIECE)
		crc = crc32_iscsi(p, PIECE, crc);
	return ~crc32_iscsi(p, (int)n, crc);
}

#elif defined(__x86_64__)

__attribute__((target("sse4.2"))) static uint32_t with_instruction(uint32_t crc, const uint8_t *p,
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

uint32_t gn_crc32c(uint32_t crc, const void *data, size_t n)
{
	return __builtin_cpu_supports("sse4.2") ? ~with_instruction(~crc, data, n)
						: gn_crc32c_tables(crc, data, n);
}

#elif defined(__aarch64__)

/*
 * Compilers accept the CRC intrinsics only if the target processor of the whole translation unit
 * has the instruction. Assemblers accept it after .arch_extension.
 */
static uint32_t with_instruction(uint32_t crc, const uint8_t *p, size_t n)
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

uint32_t gn_crc32c(uint32_t crc, const void *data, size_t n)
{
	return getauxval(AT_HWCAP) & (1u << 7) /* HWCAP_CRC32 */
		       ? ~with_instruction(~crc, data, n)
		       : gn_crc32c_tables(crc, data, n);
}

#else

uint32_t gn_crc32c(uint32_t crc, const void *data, size_t n)
{
	return gn_crc32c_tables(crc, data, n);
}

#endif
