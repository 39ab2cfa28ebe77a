/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compress_lz4.c - decompression of LZ4: one block, or the blocks of a frame with their checksums
 */
#include "compute/compress.h"

#ifdef HAVE_LZ4

#include <lz4.h>
#include <string.h>
#include <xxhash.h>

#define RAW_BLOCK 0x80000000u /* flag in the size of a block: it is not compressed */
#define HISTORY 65536         /* bytes before a block that the block can refer to */

static uint32_t load32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

doca_error_t gd_lz4_block(const uint8_t *source, size_t n, uint8_t *room, size_t *length_p)
{
	int length = LZ4_decompress_safe((const char *)source, (char *)room, (int)n,
					 (int)*length_p);

	if (length < 0)
		return DOCA_ERROR_IO_FAILED;
	*length_p = (size_t)length;
	return DOCA_SUCCESS;
}

/*
 * Decompress one block to room + done; `size` is the size of room. Returns the length of the
 * result, or -1.
 */
static int take_block(const uint8_t *block, size_t n, bool raw, bool independent, uint8_t *room,
		      size_t done, size_t size)
{
	size_t history = independent ? 0 : done < HISTORY ? done : HISTORY;

	if (!raw)
		return LZ4_decompress_safe_usingDict(
			(const char *)block, (char *)room + done, (int)n, (int)(size - done),
			(const char *)room + done - history, (int)history);
	if (n > size - done)
		return -1;
	memcpy(room + done, block, n);
	return (int)n;
}

doca_error_t gd_lz4_stream(const uint8_t *source, size_t n, bool checksums, bool independent,
			   uint8_t *room, size_t *length_p)
{
	const size_t tail = checksums ? 4 : 0;
	size_t done = 0;

	while (n > 0) {
		uint32_t head, size;
		int length;

		if (n < 4)
			return DOCA_ERROR_IO_FAILED;
		head = load32(source);
		size = head & ~RAW_BLOCK;
		if (head == 0) /* end mark of a frame: ignore what follows */
			break;
		source += 4;
		n -= 4;
		if (n < tail || size > n - tail)
			return DOCA_ERROR_IO_FAILED;
		if (checksums && gd_xxh32(source, size) != load32(source + size))
			return DOCA_ERROR_IO_FAILED;
		length = take_block(source, size, head & RAW_BLOCK, independent, room, done,
				    *length_p);
		if (length < 0)
			return DOCA_ERROR_IO_FAILED;
		done += (size_t)length;
		source += size + tail;
		n -= size + tail;
	}
	*length_p = done;
	return DOCA_SUCCESS;
}

uint32_t gd_xxh32(const uint8_t *data, size_t n)
{
	return XXH32(data, n, 0);
}

#else

doca_error_t gd_lz4_block(const uint8_t *source, size_t n, uint8_t *room, size_t *length_p)
{
	(void)source, (void)n, (void)room, (void)length_p;
	return DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t gd_lz4_stream(const uint8_t *source, size_t n, bool checksums, bool independent,
			   uint8_t *room, size_t *length_p)
{
	(void)source, (void)n, (void)checksums, (void)independent, (void)room, (void)length_p;
	return DOCA_ERROR_NOT_SUPPORTED;
}

uint32_t gd_xxh32(const uint8_t *data, size_t n)
{
	(void)data, (void)n;
	return 0;
}

#endif
