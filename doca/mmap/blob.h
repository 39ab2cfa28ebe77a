/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blob.h - an export descriptor: plain bytes that a program carries to another one. Knowing one is
 * the right to use it.
 */
#ifndef GD_BLOB_H
#define GD_BLOB_H

#include "mmap/mmap.h"

enum gd_blob_kind { GD_BLOB_PCI = 1, GD_BLOB_RDMA = 2 };

/* What a kind can allow. */
#define GD_PCI_FLAGS \
	(DOCA_ACCESS_FLAG_PCI_READ_ONLY | DOCA_ACCESS_FLAG_PCI_READ_WRITE | \
	 DOCA_ACCESS_FLAG_PCI_RELAXED_ORDERING)
#define GD_RDMA_FLAGS \
	(DOCA_ACCESS_FLAG_RDMA_READ | DOCA_ACCESS_FLAG_RDMA_WRITE | DOCA_ACCESS_FLAG_RDMA_ATOMIC)

/* What passing memory on by RDMA allows, when it was given by PCI with these flags. */
uint32_t gd_rdma_of_pci(uint32_t access);

#define GD_BLOB_PATH 108 /* bytes of a Unix socket's name, with its end */

/* As it travels, in the byte order of the machine. */
struct gd_blob {
	char magic[8];
	uint32_t version;
	uint32_t bytes; /* of the whole */
	struct gd_mmap_id id;
	uint64_t addr, length; /* in the owner */
	uint32_t access;       /* what it allows: flags of the kind */
	uint32_t kind;
	uint64_t host;           /* the machine, as it has booted */
	char path[GD_BLOB_PATH]; /* the owner's socket */
	uint32_t zero;
	uint32_t zero2;
	uint32_t crc; /* CRC32C of all before it */
};

_Static_assert(sizeof(struct gd_blob) <= GD_BLOB_MAX, "programs have room for no more");

/* Put the marks and the sum on one whose other fields are set. */
void gd_blob_seal(struct gd_blob *blob);

/*
 * Bytes that came from anywhere: 0 and a copy that is whole and makes sense; else what is wrong,
 * for the log.
 */
const char *gd_blob_open(const void *bytes, size_t n, struct gd_blob *blob);

#endif
