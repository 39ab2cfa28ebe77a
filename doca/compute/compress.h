/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compress.h - compression by zlib, lz4 and xxHash, for doca_compress.c. If one of these libraries
 * is missing, the functions that need it return NOT_SUPPORTED.
 */
#ifndef GD_COMPRESS_H
#define GD_COMPRESS_H

#include <doca_error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef HAVE_ZLIB
#define GD_HAVE_DEFLATE true
#else
#define GD_HAVE_DEFLATE false
#endif

#ifdef HAVE_LZ4
#define GD_HAVE_LZ4 true
#else
#define GD_HAVE_LZ4 false
#endif

struct gd_zip; /* reusable streams of zlib */

/* Returns NULL if memory allocation fails. Freeing NULL has no effect. */
struct gd_zip *gd_zip_new(void);
void gd_zip_free(struct gd_zip *zip);

/*
 * Compress or decompress n bytes of source into room. *length_p: size of room, then length of the
 * result. Lengths fit into 32 bits.
 * Errors:
 *     TOO_BIG    the result does not fit
 *     IO_FAILED  the source is invalid
 */
doca_error_t gd_deflate(struct gd_zip *zip, const uint8_t *source, size_t n, uint8_t *room,
			size_t *length_p);
doca_error_t gd_inflate(struct gd_zip *zip, const uint8_t *source, size_t n, uint8_t *room,
			size_t *length_p);
doca_error_t gd_lz4_block(const uint8_t *source, size_t n, uint8_t *room, size_t *length_p);
/* Like gd_lz4_block(), for the blocks of a frame without its header, with or without end mark. */
doca_error_t gd_lz4_stream(const uint8_t *source, size_t n, bool checksums, bool independent,
			   uint8_t *room, size_t *length_p);

uint32_t gd_crc32(const uint8_t *data, size_t n);
uint32_t gd_adler32(const uint8_t *data, size_t n);
/* 32-bit xxHash with seed 0. */
uint32_t gd_xxh32(const uint8_t *data, size_t n);

#endif
