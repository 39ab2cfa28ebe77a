/* SPDX-License-Identifier: BSD-3-Clause */
/* volume.h - what a volume looks like: for backends, which say it, and for clients, which ask. */
#ifndef GANTRY_VOLUME_H
#define GANTRY_VOLUME_H

#include <stdint.h>

#define GANTRY_VOLUME_READ_ONLY 0x1u
#define GANTRY_VOLUME_VOLATILE 0x2u /* the content does not outlive the process */

/*
 * Also what a target answers to the storage query. All but flags must be given; what does not fit is told when the
 * backend is opened.
 */
struct gantry_volume_info {
	uint64_t size;       /* bytes, a multiple of block_size, not 0 */
	uint32_t block_size; /* bytes; the unit of offset and length of an IO; a power of two, 512 .. 65536 */
	uint32_t ops;        /* bit 1 << enum gantry_opcode for each operation it does; at least one */
	uint32_t flags;      /* GANTRY_VOLUME_* */
	uint32_t max_io;     /* bytes in one IO, at least block_size */
};

#endif
