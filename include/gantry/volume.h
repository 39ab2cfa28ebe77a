/* SPDX-License-Identifier: BSD-3-Clause */
/* volume.h - the properties of a volume: backends report them, clients receive them. */
#ifndef GANTRY_VOLUME_H
#define GANTRY_VOLUME_H

#include <stdint.h>

#define GANTRY_VOLUME_READ_ONLY 0x1u
#define GANTRY_VOLUME_VOLATILE 0x2u /* the content does not outlive the process */
/*
 * Descriptors can have GANTRY_IO_LIST. In a backend: the backend accepts such descriptors itself.
 * For other backends the target copies the data through a buffer; also if the device cannot map
 * regions, or a stage has needs_bounce.
 */
#define GANTRY_VOLUME_LISTS 0x4u

/*
 * Properties of a volume; also the reply to QUERY of a session. size, block_size, ops and max_io
 * are mandatory: the host rejects invalid values when it opens the backend.
 *
 * uuid identifies the volume. It stays the same across restarts, and differs from that of every
 * other volume.
 *
 * `verifier` changes exactly when acknowledged but unflushed writes might have been lost. On a
 * GANTRY_VOLUME_VOLATILE volume, flushed writes can then be lost, too. A session resumes only on a
 * volume with the same uuid, block_size, ops, flags and max_io, and with the same size unless uuid
 * and verifier are known and the same. The first flush after a change of the verifier fails with
 * EIO.
 */
struct gantry_volume_info {
	uint64_t size; /* bytes, a multiple of block_size, not 0 */
	/* bytes; the unit of offset and length of an IO; a power of two, 512 .. 65536 */
	uint32_t block_size;
	/* bit 1 << enum gantry_opcode for each supported operation; at least one */
	uint32_t ops;
	uint32_t flags;    /* GANTRY_VOLUME_* */
	uint32_t max_io;   /* bytes in one IO, at least block_size */
	uint8_t uuid[16];  /* all 0: unknown */
	uint64_t verifier; /* 0: unknown */
};

#endif
