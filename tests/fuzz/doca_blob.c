/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_blob.c - export descriptors from any bytes: an accepted descriptor is complete, and sealing
 * its content again gives the same bytes.
 */
#include "fuzz/require.h"
#include "mmap/mmap_blob.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct gd_blob *blob, size_t size)
{
	struct gd_blob again = *blob;

	require(size == sizeof(*blob) && blob->bytes == size);
	require(blob->length > 0 && blob->addr <= UINT64_MAX - blob->length);
	require(blob->path[0] == '/' && strnlen(blob->path, GD_BLOB_PATH) < GD_BLOB_PATH);
	require((blob->access & (blob->kind == GD_BLOB_PCI ? GD_PCI_FLAGS : GD_RDMA_FLAGS)) ==
			blob->access &&
		blob->access != 0);
	gd_blob_seal(&again);
	require(memcmp(&again, blob, sizeof(again)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gd_blob blob, sealed;

	if (!gd_blob_open(data, size, &blob))
		check(&blob, size);
	if (size < sizeof(blob))
		return 0;
	/* make marks and checksum valid, so that the later checks are reached */
	memcpy(&sealed, data, sizeof(sealed));
	gd_blob_seal(&sealed);
	if (!gd_blob_open(&sealed, sizeof(sealed), &blob))
		check(&blob, sizeof(sealed));
	return 0;
}
