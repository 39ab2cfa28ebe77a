/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check.h - what a descriptor that came from a peer must satisfy before a role sees it.
 */
#ifndef GN_IO_CHECK_H
#define GN_IO_CHECK_H

#include <gantry/backend.h>
#include <gantry/transport.h>

/* What may be used by the descriptors of one session. Changes only while no port of it runs. */
struct gn_io_rules {
	struct gantry_volume_info volume;
	struct gantry_region **regions; /* by handle; NULL entries: none */
	uint32_t n_regions;
	uint64_t io_timeout_ns;
	uint8_t refused_flags; /* GANTRY_IO_*: what the session has not agreed on */
	enum gantry_hop_time hop; /* which hop time this role writes */
};

/* gn_check_io, one question after the other: what is wrong with a descriptor is the first that it fails. */
enum gantry_status gn_check_io_closely(const struct gn_io_rules *rules, struct gantry_io *io);

/* Whether it is what nearly all are: a read or write inside its volume and its region, and nothing about it is special. */
static inline int gn_io_is_plain(const struct gn_io_rules *rules, const struct gantry_region *region,
				 const struct gantry_io *io)
{
	const struct gantry_volume_info *volume = &rules->volume;
	uint32_t op = io->opcode, special = io->flags & (~GANTRY_IO_FLAGS | rules->refused_flags);
	/* a read of the volume writes to the region */
	uint32_t right = op ^ (GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE);

	_Static_assert(GANTRY_OP_READ == GANTRY_REMOTE_READ && GANTRY_OP_WRITE == GANTRY_REMOTE_WRITE, "for right");
	return op - 1 < 2 && (volume->ops >> op & 1) && !(volume->flags & GANTRY_VOLUME_READ_ONLY) && !special &&
	       io->deadline_us != 0 && ((io->offset | io->length) & (volume->block_size - 1)) == 0 &&
	       io->length - 1 < volume->max_io && gantry_range_ok(io->offset, io->length, volume->size) &&
	       (region->rights & right) && gantry_range_ok(io->region_offset, io->length, region->length);
}

/*
 * Check a private copy against the rules of its session; fills io->data when the region is mapped, and a missing
 * deadline. Returns GANTRY_S_OK or the status to answer with. Pure; any thread.
 */
static inline enum gantry_status gn_check_io(const struct gn_io_rules *rules, struct gantry_io *io)
{
	const struct gantry_region *region = io->region < rules->n_regions ? rules->regions[io->region] : NULL;

	if (__builtin_expect(region == NULL || !gn_io_is_plain(rules, region, io), 0))
		return gn_check_io_closely(rules, io);
	io->data = region->addr != NULL ? (char *)region->addr + io->region_offset : NULL;
	return GANTRY_S_OK;
}

/* Whether a volume is one that descriptors can be checked against: sizes and block size as backend.h says. */
int gn_volume_ok(const struct gantry_volume_info *volume);

#endif
