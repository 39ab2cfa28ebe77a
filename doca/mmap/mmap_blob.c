/* SPDX-License-Identifier: BSD-3-Clause */
/* mmap_blob.c - create and check export descriptors. A descriptor to check is untrusted. */
#include "mmap/mmap_blob.h"

#include "base/crc32c.h"

#include <string.h>

#define BLOB_VERSION 1u

static const char magic[8] = {'G', 'A', 'N', 'T', 'R', 'Y', 'M', 'M'};

uint32_t gd_rdma_of_pci(uint32_t access)
{
	if ((access & DOCA_ACCESS_FLAG_PCI_READ_WRITE) != 0)
		return GD_RDMA_FLAGS;
	return (access & DOCA_ACCESS_FLAG_PCI_READ_ONLY) != 0 ? DOCA_ACCESS_FLAG_RDMA_READ : 0;
}

static uint32_t sum(const struct gd_blob *blob)
{
	return gn_crc32c(0, blob, offsetof(struct gd_blob, crc));
}

void gd_blob_seal(struct gd_blob *blob)
{
	memcpy(blob->magic, magic, sizeof(magic));
	blob->version = BLOB_VERSION;
	blob->bytes = sizeof(*blob);
	blob->zero = blob->zero2 = 0;
	blob->crc = sum(blob);
}

static const char *check_content(const struct gd_blob *blob)
{
	uint32_t flags = blob->kind == GD_BLOB_PCI    ? GD_PCI_FLAGS
			 : blob->kind == GD_BLOB_RDMA ? GD_RDMA_FLAGS
						      : 0;

	if (flags == 0 || (blob->access & flags) == 0 || (blob->access & ~flags) != 0 ||
	    blob->zero != 0 || blob->zero2 != 0)
		return "invalid kind or rights";
	if (blob->addr == 0 || blob->length == 0 || blob->length > INT64_MAX ||
	    blob->addr > UINT64_MAX - blob->length)
		return "invalid address range";
	if (blob->path[0] != '/' || !memchr(blob->path, '\0', sizeof(blob->path)))
		return "no path of the owner";
	return NULL;
}

const char *gd_blob_open(const void *bytes, size_t n, struct gd_blob *blob)
{
	if (n < sizeof(*blob))
		return "too short";
	memcpy(blob, bytes, sizeof(*blob));
	if (memcmp(blob->magic, magic, sizeof(magic)) != 0)
		return "not a descriptor of this library";
	if (blob->version != BLOB_VERSION)
		return "created by another version of this library: install the same version on both sides";
	if (blob->bytes != n)
		return "incomplete or too long";
	if (blob->crc != sum(blob))
		return "checksum error";
	return check_content(blob);
}
