/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reference.h - a second implementation of the rules for a descriptor, written from the comments of
 * io.h and backend.h. Its 128-bit arithmetic cannot overflow. The unit test and the fuzz target use
 * it.
 */
#ifndef TEST_TRANSPORT_REFERENCE_H
#define TEST_TRANSPORT_REFERENCE_H

#include "io/io_check.h"

typedef unsigned __int128 wide;

static inline enum gantry_status reference_volume(const struct gantry_volume_info *v,
						  const struct gantry_io *io)
{
	int ranged = io->opcode == GANTRY_OP_READ || io->opcode == GANTRY_OP_WRITE ||
		     io->opcode == GANTRY_OP_WRITE_ZEROES || io->opcode == GANTRY_OP_DISCARD ||
		     io->opcode == GANTRY_OP_EXTENTS;
	int changes = ranged && io->opcode != GANTRY_OP_READ && io->opcode != GANTRY_OP_EXTENTS;

	if (io->opcode > GANTRY_OP_EXTENTS ||
	    io->flags > (GANTRY_IO_FUA | GANTRY_IO_CRC | GANTRY_IO_LIST))
		return GANTRY_S_INVALID;
	if (io->opcode != GANTRY_OP_NOP && !(v->ops >> io->opcode & 1))
		return GANTRY_S_UNSUPPORTED;
	if (changes && (v->flags & GANTRY_VOLUME_READ_ONLY))
		return GANTRY_S_READ_ONLY;
	if (!ranged)
		return GANTRY_S_OK;
	if (io->length == 0 || ((wide)io->offset | io->length) & (v->block_size - 1))
		return GANTRY_S_INVALID;
	if ((wide)io->offset + io->length > v->size)
		return GANTRY_S_RANGE;
	return GANTRY_S_OK;
}

static inline enum gantry_status reference_check(const struct gn_io_rules *rules,
						 struct gantry_io *io)
{
	enum gantry_status status = reference_volume(&rules->volume, io);
	const struct gantry_region *region;
	wide us = (wide)rules->io_timeout_ns / 1000;

	if (io->deadline_us == 0)
		io->deadline_us = us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
	io->data = NULL;
	if (status != GANTRY_S_OK)
		return status;
	if (io->flags & rules->refused_flags)
		return GANTRY_S_UNSUPPORTED;
	if ((io->flags & GANTRY_IO_LIST) && io->opcode != GANTRY_OP_READ &&
	    io->opcode != GANTRY_OP_WRITE)
		return GANTRY_S_INVALID;
	if ((io->flags & GANTRY_IO_LIST) && !(rules->volume.flags & GANTRY_VOLUME_LISTS))
		return GANTRY_S_UNSUPPORTED;
	if (io->opcode != GANTRY_OP_READ && io->opcode != GANTRY_OP_WRITE &&
	    io->opcode != GANTRY_OP_EXTENTS)
		return GANTRY_S_OK;
	if (io->opcode != GANTRY_OP_EXTENTS && io->length > rules->volume.max_io)
		return GANTRY_S_INVALID;
	if ((io->flags & GANTRY_IO_LIST) && io->length > 1 << 20)
		return GANTRY_S_INVALID;
	if (io->region >= rules->n_regions || !rules->regions[io->region])
		return GANTRY_S_ACCESS;
	region = rules->regions[io->region];
	if (io->flags & GANTRY_IO_LIST) {
		if (!(region->rights & GANTRY_REMOTE_READ))
			return GANTRY_S_ACCESS;
		if ((wide)io->region_offset + 16 > region->length)
			return GANTRY_S_RANGE;
		return rules->relays ? GANTRY_S_OK : GN_CHECK_LIST;
	}
	if (!(region->rights &
	      (io->opcode == GANTRY_OP_WRITE ? GANTRY_REMOTE_READ : GANTRY_REMOTE_WRITE)))
		return GANTRY_S_ACCESS;
	if ((wide)io->region_offset + (io->opcode == GANTRY_OP_EXTENTS ? 4096 : io->length) >
	    region->length)
		return GANTRY_S_RANGE;
	if (region->addr)
		io->data = (void *)((uintptr_t)region->addr + io->region_offset);
	return GANTRY_S_OK;
}

#endif
