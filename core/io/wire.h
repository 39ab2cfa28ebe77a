/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire.h - reads descriptors from messages. The wire form is the first GANTRY_IO_WIRE_BYTES bytes
 * of struct gantry_io; struct gantry_msg and struct gantry_local_peer pass it.
 *
 * Each field is read once, with the width of its write. A peer on the same thread wrote the fields
 * a moment ago. A wide load over several recent narrow writes defeats store forwarding: it waits
 * until all writes have reached the cache. After a copy of 4 KiB that takes longer than the rest of
 * the path through a responder. Hop times are read in pairs: gn_wire_set_time() writes the first
 * pair; backends and bounce buffers write the times of the second pair one by one.
 */
#ifndef GN_IO_WIRE_H
#define GN_IO_WIRE_H

#include <gantry/io.h>

struct gn_wire {
	uint8_t opcode, flags;
	uint16_t status;
	uint32_t tag;
	uint64_t offset;
	uint32_t length, region;
	uint64_t region_offset;
	union {
		struct {
			uint32_t deadline_us, crc32c;
		};
		uint64_t deadline_and_crc;
	};
	uint64_t hop_ns[GANTRY_HOP_COUNT / 2]; /* each word has two hop times */
} __attribute__((may_alias));

/*
 * Length of a note, the short reply to a successful read: it contains only the tag. A note carries
 * no hop times and no checksum.
 */
#define GN_IMM_REPLY_BYTES 4u

_Static_assert(sizeof(struct gn_wire) == GANTRY_IO_WIRE_BYTES,
	       "struct gn_wire covers the wire form");
_Static_assert(offsetof(struct gn_wire, region_offset) == offsetof(struct gantry_io, region_offset),
	       "same layout as struct gantry_io");

/* volatile: the compiler must not merge narrow accesses into wide ones */
static inline const volatile struct gn_wire *gn_wire(const void *imm)
{
	return imm;
}

/* Copy a request, without tag, status and hop times. */
static inline void gn_wire_take_request(const volatile struct gn_wire *wire, struct gantry_io *io)
{
	volatile struct gn_wire *to = (struct gn_wire *)io;

	to->opcode = wire->opcode;
	to->flags = wire->flags;
	to->offset = wire->offset;
	to->length = wire->length;
	to->region = wire->region;
	to->region_offset = wire->region_offset;
	to->deadline_and_crc = wire->deadline_and_crc;
}

/* Copy checksum and hop times of a reply. */
static inline void gn_wire_take_answer(const volatile struct gn_wire *wire, struct gantry_io *io)
{
	volatile struct gn_wire *to = (struct gn_wire *)io;

	if (gantry_unlikely((wire->flags & GANTRY_IO_CRC) != 0)) {
		io->flags |= GANTRY_IO_CRC;
		to->crc32c = wire->crc32c;
	} else if (gantry_unlikely((io->flags & GANTRY_IO_CRC) != 0)) {
		io->flags &= (uint8_t)~GANTRY_IO_CRC;
	}
	for (int i = 0; i < GANTRY_HOP_COUNT / 2; i++)
		to->hop_ns[i] = wire->hop_ns[i];
}

/*
 * Write the time of this responder, in nanoseconds. answers: 1: it is a target, before which no hop
 * has written this pair. 0: it is a gateway, and the time of the target is kept.
 */
static inline void gn_wire_set_time(struct gantry_io *io, int answers, uint32_t ns)
{
	const union {
		uint32_t ns[2];
		uint64_t word;
	} pair = {.ns = {[GANTRY_HOP_GATEWAY] = answers ? 0 : ns,
			 [GANTRY_HOP_TARGET] = answers ? ns : io->hop_ns[GANTRY_HOP_TARGET]}};

	((volatile struct gn_wire *)io)->hop_ns[0] = pair.word;
}

/* Set the fields of a read that a note answers. */
static inline void gn_wire_take_note(struct gantry_io *io)
{
	io->status = GANTRY_S_OK;
	io->crc32c = 0;
	io->flags &= (uint8_t)~GANTRY_IO_CRC;
	for (int i = 0; i < GANTRY_HOP_COUNT; i++)
		io->hop_ns[i] = 0;
}

#endif
