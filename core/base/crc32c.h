/* SPDX-License-Identifier: BSD-3-Clause */
/* crc32c.h - CRC32C (Castagnoli), as in iSCSI and NVMe. Any thread. */
#ifndef GN_BASE_CRC32C_H
#define GN_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/*
 * Compute the CRC of n bytes with libisal, with the CRC instruction of the processor, or with
 * tables: the first of these that build and processor have.
 *
 * crc      0, or the result for the preceding bytes, to process a buffer in pieces
 */
uint32_t gn_crc32c(uint32_t crc, const void *data, size_t n);

/* As gn_crc32c(), with tables on each processor. */
uint32_t gn_crc32c_tables(uint32_t crc, const void *data, size_t n);

#endif
