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
	uint8_t refused_flags;    /* GANTRY_IO_*: what the session has not agreed on */
	enum gantry_hop_time hop; /* which hop time this role writes */
	/* of a plain descriptor; gn_io_rules_ready() works it out of those above */
	struct {
		/* by opcode: what it needs of its region; 0: it is not plain */
		uint8_t rights[UINT8_MAX + 1];
		uint8_t no_flags; /* that it has none of */
		uint32_t no_bits; /* of its offset and length */
		uint64_t max;     /* bytes; not more than the volume has */
	} plain;
};

/*
 * To be called when the rules are complete, and whenever those of the volume or the flags have
 * changed.
 */
void gn_io_rules_ready(struct gn_io_rules *rules);

/*
 * gn_check_io, one question after the other: what is wrong with a descriptor is the first that it
 * fails.
 */
enum gantry_status gn_check_io_closely(const struct gn_io_rules *rules, struct gantry_io *io);

/*
 * Whether it is what nearly all are: a read or write inside its volume and its region, and nothing
 * about it is special.
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
 * Check a private copy against the rules of its session; fills io->data when the region is mapped,
 * and a missing deadline. Returns GANTRY_S_OK or the status to answer with. Pure; any thread.
 */
static inline enum gantry_status gn_check_io(const struct gn_io_rules *rules, struct gantry_io *io)
{
	const struct gantry_region *region;

	if (gantry_unlikely(io->region >= rules->n_regions))
		return gn_check_io_closely(rules, io);
	region = rules->regions[io->region];
	if (gantry_unlikely(!region || !gn_io_is_plain(rules, region, io)))
		return gn_check_io_closely(rules, io);
	io->data = region->addr ? (char *)region->addr + io->region_offset : NULL;
	return GANTRY_S_OK;
}

/*
 * What keeps descriptors from being checked against a volume, sizes and block size being as
 * volume.h says; NULL: nothing.
 */
const char *gn_volume_fault(const struct gantry_volume_info *volume);

#endif
