/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unpack.c - compressed data of any content: no access outside of source and destination, and no
 * result longer than the destination. The first two bytes are flags and the size of the
 * destination.
 */
#include <stdlib.h>
#include <string.h>

#include "compute/compress.h"
#include "fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(doca_error_t result, const uint8_t *room, size_t length, size_t size)
{
	require(result == DOCA_SUCCESS || result == DOCA_ERROR_IO_FAILED ||
		result == DOCA_ERROR_TOO_BIG);
	if (result == DOCA_SUCCESS) {
		require(length <= size);
		(void)gd_crc32(room, length);
		(void)gd_xxh32(room, length);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gd_zip *zip;
	size_t room_size, length, n = size > 2 ? size - 2 : 0;
	uint8_t *source = malloc(n + 1), *room, flags = size ? data[0] : 0;

	room_size = size > 1 ? 1 + 64 * (size_t)data[1] : 1;
	room = malloc(room_size);
	if (!zip)
		zip = gd_zip_new();
	require(zip && source && room);
	/* put the data at the end of its memory, so that an access beyond it is detected */
	if (n)
		memcpy(source + 1, data + 2, n);
	length = room_size;
	if (flags & 8)
		check(gd_inflate(zip, source + 1, n, room, &length), room, length, room_size);
	else if (flags & 4)
		check(gd_lz4_block(source + 1, n, room, &length), room, length, room_size);
	else
		check(gd_lz4_stream(source + 1, n, flags & 1, flags & 2, room, &length), room,
		      length, room_size);
	free(room);
	free(source);
	return 0;
}
