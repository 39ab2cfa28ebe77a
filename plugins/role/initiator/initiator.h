/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * initiator.h - inside the initiator role: what its files share.
 *
 *      initiator.c   options, life                      control thread
 *      session.c     events of the session              control thread
 *      lane.c        keeps the queue of a lane full     lane's thread
 *      workload.c copy.c replay.c
 *                    sources: what to issue next        see struct source
 *      stamp.c       content of a block that says what it is
 *      verify.c      what a block may hold now          lane's thread
 *      report.c      values for people and machines     control thread, while the lanes run
 *
 * The volume is cut into one slice for each lane, so that no two lanes know of each other.
 */
#ifndef INITIATOR_H
#define INITIATOR_H

#include <stdatomic.h>
#include <stdbool.h>

#include <gantry/histogram.h>
#include <gantry/random.h>
#include <gantry/role.h>

#include "engine.h"

#define NS_PER_S 1000000000ull

enum pattern {
	PATTERN_READ,
	PATTERN_WRITE,
	PATTERN_RW,
	PATTERN_RANDREAD,
	PATTERN_RANDWRITE,
	PATTERN_RANDRW
};
enum verify_mode { VERIFY_NONE, VERIFY_STAMP };
enum replay_speed { REPLAY_ORIGINAL, REPLAY_FAST };

struct initiator_conf {
	/* workload */
	uint32_t pattern, verify;
	int64_t read_percent, depth, ops, rate, seed, flush_every;
	uint64_t block, time_ns, ramp_ns, deadline_ns, offset, size;
	uint8_t fua;
	/* copy */
	const char *copy_from, *copy_to;
	uint64_t copy_block, copy_size;
	int64_t copy_depth;
	uint8_t copy_sparse;
	/* replay */
	const char *replay_path;
	uint32_t replay_speed;
	int64_t replay_depth;

	uint8_t huge_pages, continue_on_error;
};

/* What the report tells apart. */
enum kind { KIND_READ, KIND_WRITE, KIND_FLUSH, KIND_OTHER, KIND_COUNT };

/* What a verified read can show. */
enum verdict {
	VERDICT_OK,
	VERDICT_UNVERIFIED,  /* no write to that block was acknowledged */
	VERDICT_WRONG_BLOCK, /* content of another place */
	VERDICT_STALE,       /* older than what was acknowledged */
	VERDICT_TORN,        /* part of one write, part of another */
	VERDICT_CORRUPT,     /* changed on the way or at rest */
	VERDICT_MISSING,     /* no trace of the write */
	VERDICT_FOREIGN,     /* another session's write */
	VERDICT_COUNT
};

struct kind_stats {
	uint64_t bytes;
	struct gantry_histogram latency;
};

/* Written by the lane's thread, read by any. */
struct lane_stats {
	struct kind_stats kind[KIND_COUNT];
	struct gantry_histogram hop[GANTRY_HOP_COUNT];
	struct gantry_histogram link; /* the latency without what the next role took */
	uint64_t status[GANTRY_S_COUNT];
	uint64_t verdict[VERDICT_COUNT];
	/* taken by the chain, given back by it: each exactly once */
	uint64_t n_submitted, n_completed;
	uint64_t n_checked;
	uint64_t n_refused; /* by the chain, for good */
	uint64_t n_quarantined;
	uint64_t n_doubled;
	uint64_t done; /* in the unit of initiator.target */
	uint64_t end_ns;
};

enum lane_state { LANE_RUNNING, LANE_DRAINING, LANE_DONE };

struct initiator;

struct lane {
	struct initiator *in;
	struct gantry_lane *pub;
	struct gc_queue *queue;
	enum lane_state state;
	uint64_t clock; /* the last time that was read */
	void *work;     /* of the source */
	/* all its IOs carry data and are only counted: `done` of the source need not be called */
	int counted;
	struct lane_stats *stats;

	uint32_t untimed[KIND_COUNT], n_untimed; /* IOs for which the time stood still */
	/*
	 * 1 << enum gantry_hop_time: hops that took as long as the IO itself, where that was looked
	 * at
	 */
	uint32_t near;

	int event_fd; /* wakes the lane */
	uint32_t index;
	int polled; /* control thread */
} __attribute__((aligned(GANTRY_CACHE_LINE)));

/* Where work comes from. All but next and done: control thread. */
struct source {
	const char *mode;
	/* that say how large its region is; NULL: none does */
	const char *depth_option, *block_option;
	/*
	 * Before the session: look at what the options name, and set in->block to what it may be at
	 * the most. Logs.
	 */
	int (*prepare)(struct initiator *in);
	/*
	 * What the options ask of a volume that it is not, as a fault, and -errno; 0: nothing. What
	 * is not known of it is 0. Looks at nothing else.
	 */
	int (*fits)(const struct initiator *in, const struct gantry_volume_info *volume,
		    const struct gantry_option_faults *faults);
	/* The volume is known, and fits: set in->target, and make in->block fit. Logs. */
	int (*setup)(struct initiator *in);
	/* Make lane->work, right before the lane runs. */
	int (*lane_setup)(struct lane *lane);
	void (*lane_teardown)(struct lane *lane);
	void (*teardown)(struct initiator *in); /* may be NULL */
	/*
	 * Fill the first line of io (see lane_fill). 0; -EAGAIN: not now, a completion or wake_ns
	 * will change that; -ENODATA: nothing more will come; else it has called lane_fail.
	 */
	int (*next)(struct lane *lane, struct gantry_io *io);
	/*
	 * It completed, or was dropped with GANTRY_S_CANCELED. Returns 0 when it is not to be
	 * measured.
	 */
	int (*done)(struct lane *lane, struct gantry_io *io);
	uint64_t (*wake_ns)(struct lane *lane);
};

/* -- workload.c -- */
void workload_check(const struct initiator_conf *conf, const struct gantry_option_faults *faults);

extern const struct source workload_source, copy_in_source, copy_out_source, replay_source;

enum phase { PHASE_IDLE, PHASE_OPENING, PHASE_RUNNING, PHASE_CLOSING, PHASE_CLOSED };

struct initiator {
	const struct gantry_role_host *rh;
	const struct gantry_host *host;
	const struct initiator_conf *conf;
	const struct source *source;
	struct lane *lanes;
	uint32_t n_lanes, depth;
	uint32_t deadline_us;

	/* session */
	struct gc_session *engine;
	struct gantry_volume_info volume;
	enum phase phase;
	uint32_t n_done;              /* lanes whose end was heard of */
	uint64_t block;               /* bytes of a slot */
	struct gantry_random content; /* that the region is filled with */

	atomic_bool stop;   /* issue nothing more */
	atomic_bool failed; /* exit status 1 */
	atomic_uint n_findings;

	/* measurement */
	uint64_t start_ns, measure_ns;
	double cpu_start_s;
	uint64_t target; /* of lane_stats.done over all lanes; 0: runs until it is stopped */
	const char *unit;

	/* source's own */
	uint64_t session; /* stamped into blocks */
	uint64_t n_blocks;
	int fd;
	uint64_t copy_bytes; /* to be copied, before padding */
	int copy_regular;    /* the file is a regular one */
	void *replay;
};

/* -- lane.c -- */
extern const struct gantry_poller lane_poller; /* without self */
void lane_complete(void *queue, struct gantry_io *io);
/* The first line of a descriptor; data operations use the buffer of its slot. */
static inline void lane_fill(struct lane *lane, struct gantry_io *io, unsigned opcode,
			     uint64_t offset, uint32_t length)
{
	gc_io_fill(lane->queue, io, opcode, 0, offset, length, gc_slot_offset(lane->queue, io));
	io->deadline_us = lane->in->deadline_us;
}

/* The run is a failure: all lanes stop. Any thread. */
void lane_fail(struct initiator *in);
/* All lanes stop issuing and drain. Any thread. */
void lanes_stop(struct initiator *in);

/* Bytes of the region for an IO of that length. */
static inline uint64_t slot_room(uint64_t block)
{
	return (block + GC_SLOT_ALIGN - 1) & ~(uint64_t)(GC_SLOT_ALIGN - 1);
}

/* -- session.c -- */
int session_open(struct initiator *in);
/* Wind down from where it stands; idempotent. */
void session_stop(struct initiator *in);
/* A lane has ended: posted to the control thread with the lane. */
void session_lane_done(void *arg);

/* -- stamp.c -- */
#define STAMP_UNIT 4096u /* bytes; a shorter block is one unit */

struct stamp {
	uint32_t magic;
	uint32_t crc32c; /* of the unit with this field 0 */
	uint64_t offset; /* in the volume */
	uint64_t generation;
	uint64_t session;
};

/* What a unit may hold: generations acked..issued of this session at this offset. */
struct stamp_want {
	uint64_t offset, session, acked, issued;
};

enum stamp_state {
	STAMP_GOOD,
	STAMP_OLD,     /* a generation below acked */
	STAMP_WRONG,   /* another offset */
	STAMP_FOREIGN, /* another session */
	STAMP_TORN,
	STAMP_CORRUPT,
	STAMP_NONE
};

/*
 * Stamp one unit: header and a content that follows from (offset, generation, session). bytes: a
 * multiple of 512.
 */
void stamp_write(void *unit, uint32_t bytes, uint64_t offset, uint64_t generation,
		 uint64_t session);
/* What does the unit hold? found: its header, for messages. */
enum stamp_state stamp_read(const void *unit, uint32_t bytes, const struct stamp_want *want,
			    struct stamp *found);

/* -- verify.c -- */
/*
 * What is known of one block. Writes to it are never concurrent, so that each outcome is known when
 * the next starts.
 */
struct block_state {
	uint32_t acked; /* generation of the last write that succeeded; 0: none */
	/* of the last that was submitted; those after acked failed and may be there or not */
	uint32_t issued;
	uint8_t busy;   /* an IO is in flight */
	uint8_t frozen; /* a write to it may still happen: not written any more */
};

/* Stamps the next generation into buf. */
void verify_write(struct lane *lane, struct block_state *state, void *buf, uint64_t offset);
void verify_write_done(struct block_state *state, unsigned status);
/* Makes sure that what is found in buf later was read. */
void verify_poison(struct lane *lane, void *buf);
/* Judge, count and, for the first few, log. */
enum verdict verify_read_done(struct lane *lane, const struct block_state *state, const void *buf,
			      uint64_t offset);
const char *verify_name(enum verdict verdict);

/* -- report.c -- */
/* "IO" and so on, as in the report. */
const char *status_name(unsigned status);
void initiator_report(void *role, struct gantry_writer *w);
double report_cpu_s(void);

#endif
