/* SPDX-License-Identifier: BSD-3-Clause */
/* io_check.h - checks that a descriptor from a peer must pass before a role gets it. Any thread. */
#ifndef GN_IO_CHECK_H
#define GN_IO_CHECK_H

#include <stdbool.h>

#include <gantry/backend.h>
#include <gantry/transport.h>

/* result of gn_check_io(): a valid descriptor whose list must be read, see list.h */
#define GN_CHECK_LIST GANTRY_S_COUNT

/*
 * Limits for the descriptors of one session. Only `regions` and the size of the volume change while
 * responders of the session run. Each responder has a copy, which its lane changes.
 */
struct gn_io_rules {
	struct gantry_volume_info volume;
	/* regions of the session, indexed by handle; NULL: no such region */
	struct gantry_region **regions;
	uint32_t n_regions;
	uint64_t io_timeout_ns;
	uint8_t relays;        /* 1: the role does not read lists, but passes them on */
	uint8_t refused_flags; /* GANTRY_IO_* flags of features that the session does not use */
	/* limits of a plain descriptor; gn_io_rules_ready() computes them from the fields above */
	struct {
		/* indexed by opcode: right that the region needs; 0: the operation is not plain */
		uint8_t rights[UINT8_MAX + 1];
		uint8_t no_flags; /* flags that must be 0 */
		uint32_t no_bits; /* bits of offset and length that must be 0 */
		uint64_t max;     /* longest IO in bytes; at most the size of the volume */
	} plain;
};

/*
 * gn_io_rules_ready - compute the limits of a plain descriptor. Call it when the rules are
 * complete, and after each change of volume or refused_flags.
 */
void gn_io_rules_ready(struct gn_io_rules *rules);

/*
 * gn_check_io_slow - do the tests of gn_check_io() one after the other, which yields the exact
 * status. The first failed test decides.
 */
enum gantry_status gn_check_io_slow(const struct gn_io_rules *rules, struct gantry_io *io);

/* Returns a region of the session; NULL: no such region. */
static inline struct gantry_region *gn_io_region(const struct gn_io_rules *rules, uint32_t handle)
{
	return handle < rules->n_regions ? rules->regions[handle] : NULL;
}

/*
 * gn_io_is_plain - returns true for the common case: a read or write inside volume and region,
 * without special flags, and with a deadline.
 */
static inline int gn_io_is_plain(const struct gn_io_rules *rules,
				 const struct gantry_region *region, const struct gantry_io *io)
{
	return (region->rights & rules->plain.rights[io->opcode]) != 0 &&
	       (io->flags & rules->plain.no_flags) == 0 &&
	       ((io->offset | io->length) & rules->plain.no_bits) == 0 && io->deadline_us != 0 &&
	       io->length - 1ull < rules->plain.max &&
	       io->offset <= rules->volume.size - io->length &&
	       gantry_range_ok(io->region_offset, io->length, region->length);
}

/*
 * gn_check_io - check a private copy of a descriptor against the rules of its session. Sets
 * io->data if the region is mapped, and a deadline if there is none.
 *
 * Returns GANTRY_S_OK, GN_CHECK_LIST, or the status to answer with. Any thread.
 */
static inline enum gantry_status gn_check_io(const struct gn_io_rules *rules, struct gantry_io *io)
{
	const struct gantry_region *region = gn_io_region(rules, io->region);

	if (gantry_unlikely(!region || !gn_io_is_plain(rules, region, io)))
		return gn_check_io_slow(rules, io);
	io->data = region->addr ? (char *)region->addr + io->region_offset : NULL;
	return GANTRY_S_OK;
}

/*
 * gn_volume_fault - check sizes and operations of a volume, see volume.h. Returns a text that
 * describes the first fault; NULL: the volume is valid.
 */
const char *gn_volume_fault(const struct gantry_volume_info *volume);

#endif
