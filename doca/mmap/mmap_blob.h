/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mmap_blob.h - export descriptors: plain bytes that a program sends to another one. Knowledge of a
 * descriptor is the right to use the memory.
 */
#ifndef GD_BLOB_H
#define GD_BLOB_H

#include "mmap/mmap.h"

enum gd_blob_kind { GD_BLOB_PCI = 1, GD_BLOB_RDMA = 2 };

/* The rights that each kind can grant. */
#define GD_PCI_FLAGS \
	(DOCA_ACCESS_FLAG_PCI_READ_ONLY | DOCA_ACCESS_FLAG_PCI_READ_WRITE | \
	 DOCA_ACCESS_FLAG_PCI_RELAXED_ORDERING)
#define GD_RDMA_FLAGS \
	(DOCA_ACCESS_FLAG_RDMA_READ | DOCA_ACCESS_FLAG_RDMA_WRITE | DOCA_ACCESS_FLAG_RDMA_ATOMIC)

/* Returns the rights of an RDMA export of a map that was imported over PCI with these rights. */
uint32_t gd_rdma_of_pci(uint32_t access);

#define GD_BLOB_PATH 108 /* bytes of the path of a Unix socket, with the NUL */

/* The descriptor, in host byte order. */
struct gd_blob {
	char magic[8];
	uint32_t version;
	uint32_t bytes; /* length of the descriptor */
	struct gd_mmap_id id;
	uint64_t addr, length; /* address in the owner; bytes */
	uint32_t access;       /* rights: flags of the kind */
	uint32_t kind;
	uint64_t host;           /* id of the machine and its boot, see gd_host_id() */
	char path[GD_BLOB_PATH]; /* path of the socket of the owner */
	uint32_t zero;
	uint32_t zero2;
	uint32_t crc; /* CRC32C of all fields before it */
};

_Static_assert(sizeof(struct gd_blob) <= GD_BLOB_MAX, "programs have room for no more");

/* Set magic, version, length and checksum. The other fields are set already. */
void gd_blob_seal(struct gd_blob *blob);

/*
 * Copy and check a descriptor from an untrusted source. Returns NULL, or an error message for the
 * log.
 */
const char *gd_blob_open(const void *bytes, size_t n, struct gd_blob *blob);

#endif
