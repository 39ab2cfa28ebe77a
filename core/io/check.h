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

/*
 * Check a private copy against the rules of its session; fills io->data when the region is mapped, and a missing
 * deadline. Returns GANTRY_S_OK or the status to answer with. Pure; any thread.
 */
enum gantry_status gn_check_io(const struct gn_io_rules *rules, struct gantry_io *io);

/* Whether a volume is one that descriptors can be checked against: sizes and block size as backend.h says. */
int gn_volume_ok(const struct gantry_volume_info *volume);

#endif
