/* SPDX-License-Identifier: BSD-3-Clause */
/* compress_zlib.c - raw deflate compression and decompression, and the checksums of zlib */
#include "compute/compress.h"

#ifdef HAVE_ZLIB

#include <stdlib.h>
#include <zlib.h>

struct gd_zip {
	z_stream in, out;
};

struct gd_zip *gd_zip_new(void)
{
	struct gd_zip *zip = calloc(1, sizeof(*zip));

	if (!zip)
		return NULL;
	if (deflateInit2(&zip->out, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		goto out_free;
	if (inflateInit2(&zip->in, -MAX_WBITS) != Z_OK)
		goto out_deflate;
	return zip;
out_deflate:
	deflateEnd(&zip->out);
out_free:
	free(zip);
	return NULL;
}

void gd_zip_free(struct gd_zip *zip)
{
	if (!zip)
		return;
	deflateEnd(&zip->out);
	inflateEnd(&zip->in);
	free(zip);
}

static void set_ends(z_stream *stream, const uint8_t *source, size_t n, uint8_t *room, size_t size)
{
	stream->next_in = (z_const Bytef *)source;
	stream->avail_in = (uInt)n;
	stream->next_out = room;
	stream->avail_out = (uInt)size;
}

doca_error_t gd_deflate(struct gd_zip *zip, const uint8_t *source, size_t n, uint8_t *room,
			size_t *length_p)
{
	set_ends(&zip->out, source, n, room, *length_p);
	if (deflateReset(&zip->out) != Z_OK)
		return DOCA_ERROR_UNEXPECTED;
	if (deflate(&zip->out, Z_FINISH) != Z_STREAM_END)
		return DOCA_ERROR_TOO_BIG;
	*length_p -= zip->out.avail_out;
	return DOCA_SUCCESS;
}

doca_error_t gd_inflate(struct gd_zip *zip, const uint8_t *source, size_t n, uint8_t *room,
			size_t *length_p)
{
	int ret;

	set_ends(&zip->in, source, n, room, *length_p);
	if (inflateReset(&zip->in) != Z_OK)
		return DOCA_ERROR_UNEXPECTED;
	ret = inflate(&zip->in, Z_FINISH);
	if (ret != Z_STREAM_END)
		return (ret == Z_BUF_ERROR || ret == Z_OK) && zip->in.avail_out == 0
			       ? DOCA_ERROR_TOO_BIG
			       : DOCA_ERROR_IO_FAILED;
	*length_p -= zip->in.avail_out;
	return DOCA_SUCCESS;
}

uint32_t gd_crc32(const uint8_t *data, size_t n)
{
	return (uint32_t)crc32_z(crc32_z(0, NULL, 0), data, n);
}

uint32_t gd_adler32(const uint8_t *data, size_t n)
{
	return (uint32_t)adler32_z(adler32_z(0, NULL, 0), data, n);
}

#else

struct gd_zip *gd_zip_new(void)
{
	return NULL;
}

void gd_zip_free(struct gd_zip *zip)
{
	(void)zip;
}

doca_error_t gd_deflate(struct gd_zip *zip, const uint8_t *source, size_t n, uint8_t *room,
			size_t *length_p)
{
	(void)zip, (void)source, (void)n, (void)room, (void)length_p;
	return DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t gd_inflate(struct gd_zip *zip, const uint8_t *source, size_t n, uint8_t *room,
			size_t *length_p)
{
	(void)zip, (void)source, (void)n, (void)room, (void)length_p;
	return DOCA_ERROR_NOT_SUPPORTED;
}

uint32_t gd_crc32(const uint8_t *data, size_t n)
{
	(void)data, (void)n;
	return 0;
}

uint32_t gd_adler32(const uint8_t *data, size_t n)
{
	(void)data, (void)n;
	return 0;
}

#endif
