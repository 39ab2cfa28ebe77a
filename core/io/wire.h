/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire.h - a descriptor out of a message: the first line of struct gantry_io, as struct gantry_msg
 * and struct gantry_inline_handler bring it.
 *
 * Each field is read once, with the width that it was written with. Where the peer is on the same
 * thread it wrote them a moment ago: one wide load of several of them would have to wait until all
 * those writes have reached the cache, which takes longer than the rest of the way through a port.
 * Times of hops, which are all 0 there but for some, are two in each.
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
	uint32_t deadline_us, crc32c;
	uint64_t hop_ns[GANTRY_HOP_COUNT / 2]; /* two in each */
} __attribute__((may_alias));

/*
 * A read that was right, with nothing else to say, may be answered by its tag alone: so many bytes.
 * Times of hops and checksums do not go along.
 */
#define GN_IMM_REPLY_BYTES 4u

_Static_assert(sizeof(struct gn_wire) == GANTRY_IO_WIRE_BYTES, "all of it");
_Static_assert(offsetof(struct gn_wire, region_offset) == offsetof(struct gantry_io, region_offset),
	       "in the same places");

/* volatile: that the compiler makes no wide accesses out of the narrow ones */
static inline const volatile struct gn_wire *gn_wire(const void *imm)
{
	return imm;
}

/* What a request says; all but its tag, status and times, which are of no use here. */
static inline void gn_wire_take_request(const volatile struct gn_wire *wire, struct gantry_io *io)
{
	volatile struct gn_wire *to = (struct gn_wire *)io;

	to->opcode = wire->opcode;
	to->flags = wire->flags;
	to->offset = wire->offset;
	to->length = wire->length;
	to->region = wire->region;
	to->region_offset = wire->region_offset;
	to->deadline_us = wire->deadline_us;
	to->crc32c = wire->crc32c;
}

/* What an answer says; all but its tag and its status. */
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

/* The same of a note. */
static inline void gn_wire_take_note(struct gantry_io *io)
{
	io->status = GANTRY_S_OK;
	io->crc32c = 0;
	io->flags &= (uint8_t)~GANTRY_IO_CRC;
	for (int i = 0; i < GANTRY_HOP_COUNT; i++)
		io->hop_ns[i] = 0;
}

#endif
