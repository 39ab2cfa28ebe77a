/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * role_host.h - a host for a role that opens sessions: lanes in one thread, and a client whose
 * server is a volume in memory. The volume makes the errors that the test requests.
 *
 * Order of calls: fake_role_init; open the role with &rh.pub; start; fake_role_run or
 * fake_role_turn; report; close; fake_role_fini.
 */
#ifndef FAKE_ROLE_HOST_H
#define FAKE_ROLE_HOST_H

#include <gantry/role.h>

#include "host.h"

#define FAKE_LANES 4
#define FAKE_HELD 32768
#define FAKE_FAULTS 8
#define FAKE_REGIONS 16
#define FAKE_EXTENT 65536 /* bytes: unit of the extents that the volume reports */

enum fake_fault_kind {
	FAKE_LOST = 1,    /* the write is acknowledged, but not done */
	FAKE_MISDIRECTED, /* the next block is written or read instead */
	FAKE_STALE,       /* a read returns the data from before the last write */
	FAKE_TORN,        /* half is written, success is reported */
	FAKE_TORN_SECTOR, /* only the first 512 bytes are written */
	FAKE_FLIPPED,     /* a bit of the data changes */
	FAKE_UNMOVED,     /* a read succeeds, but leaves the buffer as it is */
	FAKE_DOUBLED,     /* the IO completes twice */
	FAKE_STATUS,      /* the IO fails with `status`; no data is moved */
	FAKE_HALF_STATUS, /* half is written, then the IO fails with `status` */
	FAKE_REFUSED      /* submit returns `rc`; the IO counts in n_ops */
};

/* A fault of operation `nth` (from 1) with this opcode, and of the next `more` operations. */
struct fake_fault {
	enum fake_fault_kind kind;
	unsigned opcode;
	uint64_t nth, more;
	unsigned status;
	int rc;
};

struct fake_role_host {
	struct gantry_role_host pub;
	struct fake_host *host;
	struct gantry_lane lanes[FAKE_LANES];
	struct gantry_poller pollers[FAKE_LANES];
	uint32_t n_lanes;

	/* the volume */
	struct gantry_volume_info volume;
	uint8_t *data, *before; /* before: what the last writes replaced */
	int inline_completion;  /* complete in submit instead of at the next turn */
	int newest_first;       /* complete the newest IO first */
	int bad_extents;        /* extents that break the rules */
	struct fake_fault faults[FAKE_FAULTS];
	uint64_t n_ops[GANTRY_OP_COUNT];
	struct gantry_io *held[FAKE_HELD];
	unsigned n_held;
	unsigned max_held;    /* largest number of IOs in flight */
	unsigned n_bad;       /* descriptors that a real host would reject */
	uint64_t last_offset; /* offset of the last IO with a range */
	unsigned n_withdrawn; /* calls of region_withdraw so far */
	int withdraw_rc;      /* what region_withdraw returns */
	uint32_t last_deadline_us;
	uint8_t last_flags;
	/* called for each accepted IO; can be NULL */
	void (*seen)(struct fake_role_host *rh, const struct gantry_io *io);

	/* the session */
	const struct gantry_client_events *events;
	void *arg;
	struct gantry_session_attr attr;
	uint8_t secret[GANTRY_SECRET_BYTES];    /* what client_secret copies */
	uint8_t presented[GANTRY_SECRET_BYTES]; /* what client_use_secret got */
	struct gantry_region *region;
	/* further regions: those that are exported, and handles in the order of export */
	const struct gantry_region *regions[FAKE_REGIONS];
	uint32_t exported[FAKE_REGIONS];
	unsigned n_exported;             /* since client_open */
	uint32_t exporting, unexporting; /* handle of the request in flight; 0: none */
	int region_flags;                /* flags of the client_region call */
	int step;                        /* next step of the session: see role_host.c */
	int lose_rc;   /* set by the test: end the session with this reason in the next turn */
	int open_rc;   /* what client_open returns */
	int export_rc; /* what client_export returns; 0: it exports */
	uint64_t export_limit; /* maximum length of a region in bytes; 0: no limit */
	int quiet;             /* what client_regions_released returns */
	uint64_t settled_ns;   /* what client_settled_ns returns */
	uint64_t resume_ns;    /* what connect_resume returns */
	unsigned n_regions, n_quarantined, n_chains, n_freed;
	/* existing chains whose terminal is the hop that client_hop returned */
	unsigned n_ends;
	uint64_t chain_size; /* of the last chain_resize */
	uint64_t turn_ns;    /* the clock advances by this in each turn */

	struct {
		void (*fn)(void *arg);
		void *arg;
	} posts[FAKE_LANES];
	unsigned n_posts;
	struct {
		uint64_t at_ns; /* 0: not set */
		void (*fn)(void *arg);
		void *arg;
	} timers[FAKE_LANES];
	int finished; /* number of calls of finished() */
	int status;
};

/* The volume: `size` bytes of zeroes, every operation allowed. */
void fake_role_init(struct fake_role_host *rh, struct fake_host *host, uint32_t n_lanes,
		    uint64_t size, uint32_t block_size);
void fake_role_fini(struct fake_role_host *rh);
void fake_role_fault(struct fake_role_host *rh, struct fake_fault fault);
/* Make one turn: deliver events, poll, complete IOs, run posted calls. */
void fake_role_turn(struct fake_role_host *rh);
/* Make turns until the role has finished. Returns its status. Too many turns end the program. */
int fake_role_run(struct fake_role_host *rh);
/* Returns the earliest wake_ns of the pollers, 0: no poller has a timer. */
uint64_t fake_role_wake_ns(struct fake_role_host *rh);

#endif
