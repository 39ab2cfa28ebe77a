/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * initiator.h - internal interface of the initiator.
 *
 *      initiator.c           options, open and close            control thread
 *      initiator_session.c   events of the session              control thread
 *      initiator_lane.c      keeps the queue of a lane full     lane's thread
 *      initiator_workload.c, initiator_copy.c, initiator_replay.c
 *                            sources: choose the next IO        see struct source
 *      initiator_stamp.c     self-describing block content      any thread
 *      initiator_verify.c    expected content of each block     lane's thread
 *      initiator_report.c    report of the measured values      control thread; lanes can run
 *
 * The volume is divided into one slice for each lane, so lanes share no blocks.
 */
#ifndef INITIATOR_H
#define INITIATOR_H

#include <stdatomic.h>
#include <stdbool.h>

#include <gantry/histogram.h>
#include <gantry/random.h>
#include <gantry/role.h>

#include <gantry/engine.h>

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
	const char *copy_from, *copy_to, *copy_state;
	uint64_t copy_block, copy_size, copy_segment;
	int64_t copy_depth;
	uint8_t copy_sparse, copy_verify;
	/* replay */
	const char *replay_path;
	uint32_t replay_speed;
	int64_t replay_depth;

	uint8_t huge_pages, continue_on_error;
};

/* Kinds of IO that the report distinguishes. */
enum kind { KIND_READ, KIND_WRITE, KIND_FLUSH, KIND_OTHER, KIND_COUNT };

/* Results of a verified read. */
enum verdict {
	VERDICT_OK,
	VERDICT_UNVERIFIED,  /* no write to that block has been acknowledged */
	VERDICT_WRONG_BLOCK, /* the block has the content of another offset */
	VERDICT_STALE,       /* the content is older than the last acknowledged write */
	VERDICT_TORN,        /* the content has parts of different writes */
	VERDICT_CORRUPT,     /* the content was changed in transit or at rest */
	VERDICT_MISSING,     /* no stamp: the write did not take effect */
	VERDICT_FOREIGN,     /* another session has written the content */
	VERDICT_COUNT
};

struct kind_stats {
	uint64_t bytes;
	struct gantry_histogram latency;
};

/* Written by the lane's thread, read by any thread. */
struct lane_stats {
	struct kind_stats kind[KIND_COUNT];
	struct gantry_histogram hop[GANTRY_HOP_COUNT];
	/* latency of an IO minus the time that it spent in the next role */
	struct gantry_histogram link;
	uint64_t status[GANTRY_S_COUNT];
	uint64_t verdict[VERDICT_COUNT];
	/*
	 * numbers of descriptors that the chain has accepted and completed; each descriptor counts
	 * once
	 */
	uint64_t n_submitted, n_completed;
	uint64_t n_checked;
	uint64_t n_refused; /* IOs that the chain has rejected and that are not submitted again */
	uint64_t n_quarantined;
	uint64_t n_doubled;
	uint64_t done; /* progress, in the unit of initiator.target */
	uint64_t end_ns;
};

enum lane_state { LANE_RUNNING, LANE_DRAINING, LANE_DONE };

struct initiator;

struct lane {
	struct initiator *in;
	struct gantry_lane *pub;
	struct gantry_engine_queue *queue;
	enum lane_state state;
	uint64_t clock; /* time of the current turn */
	void *work;     /* state of the source */
	/*
	 * All IOs carry data and are only counted, so the lane does not call `done` of the source.
	 */
	int counted;
	struct lane_stats *stats;

	/*
	 * number of completed IOs of each kind whose latency is not recorded yet, because the
	 * cached clock did not advance; n_untimed: their sum
	 */
	uint32_t untimed[KIND_COUNT], n_untimed;
	/*
	 * Bit mask of 1 << enum gantry_hop_time: hops whose time equalled the latency of the IO
	 * that was timed last.
	 */
	uint32_t whole_hops;

	int event_fd; /* wakes the lane */
	uint32_t index;
	int polled; /* the poller is registered; control thread */
} __attribute__((aligned(GANTRY_CACHE_LINE)));

/* A source of IO. The control thread calls all functions except next and done. */
struct source {
	const char *mode;
	/* options that determine the size of its region, for messages; NULL: none */
	const char *depth_option, *block_option;
	/*
	 * Open and check the file that the options name, before the session exists. Sets in->block
	 * to the largest length of an IO. Returns 0 or -errno; logs the cause.
	 */
	int (*prepare)(struct initiator *in);
	/*
	 * Check that the options fit the volume. A field of `volume` that is 0 is unknown. Reports
	 * a misfit as a fault. Returns 0 or -errno. No side effects.
	 */
	int (*fits)(const struct initiator *in, const struct gantry_volume_info *volume,
		    const struct gantry_check *check);
	/*
	 * Called after fits(), with the volume in in->volume: set in->target, and limit in->block.
	 * Returns 0 or -errno; logs the cause.
	 */
	int (*setup)(struct initiator *in);
	/* Create lane->work, immediately before the lane runs. Returns 0 or -errno. */
	int (*lane_setup)(struct lane *lane);
	void (*lane_teardown)(struct lane *lane);
	void (*teardown)(struct initiator *in); /* may be NULL */
	/*
	 * Fill the first cache line of io, with lane_fill(). Returns 0, or
	 *
	 *     -EAGAIN   no IO now: try again after a completion or at wake_ns
	 *     -ENODATA  the source has no more IO
	 *     -errno    the source has called lane_fail()
	 */
	int (*next)(struct lane *lane, struct gantry_io *io);
	/*
	 * Called when an IO has completed, or when it is dropped with GANTRY_S_CANCELED. Returns 0
	 * if the IO must not be measured.
	 */
	int (*done)(struct lane *lane, struct gantry_io *io);
	uint64_t (*wake_ns)(struct lane *lane);
};

/* -- initiator_workload.c -- */
void workload_check(const struct initiator_conf *conf, const struct gantry_check *check);

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
	struct gantry_engine *engine;
	struct gantry_volume_info volume;
	enum phase phase;
	uint32_t n_done;              /* lanes that have ended */
	uint64_t block;               /* bytes of a slot */
	struct gantry_random content; /* generator of the initial content of the region */

	atomic_bool stop;   /* the lanes must issue no more IO */
	atomic_bool failed; /* the run has failed: exit status 1 */
	atomic_uint n_findings;

	/* measurement */
	uint64_t start_ns, measure_ns;
	double cpu_start_s;
	/*
	 * value of the sum of lane_stats.done at which the run ends; 0: the run ends only when it
	 * is stopped
	 */
	uint64_t target;
	const char *unit;

	/* -- state of the sources -- */
	uint64_t session; /* number that is stamped into blocks */
	uint64_t n_blocks;
	struct copy_job *copy;
	void *replay;
};

/* -- initiator_lane.c -- */
/* a template: its `self` is NULL, and the user sets it in a copy */
extern const struct gantry_poller lane_poller;
void lane_complete(void *queue, struct gantry_io *io);
/* Fill the first cache line of a descriptor. Data operations use the buffer of its slot. */
static inline void lane_fill(struct lane *lane, struct gantry_io *io, unsigned opcode,
			     uint64_t offset, uint32_t length)
{
	gantry_engine_fill(lane->queue, io, opcode, 0, offset, length,
			   gantry_engine_slot_offset(lane->queue, io));
	io->deadline_us = lane->in->deadline_us;
}

/* Mark the run as failed, and stop all lanes. Thread: any. */
void lane_fail(struct initiator *in);
/* Make all lanes stop issuing IO and drain. Any thread. */
void lanes_stop(struct initiator *in);

/* Returns the bytes of the region that an IO of this length occupies. */
static inline uint64_t slot_room(uint64_t block)
{
	return (block + GANTRY_ENGINE_ALIGN - 1) & ~(uint64_t)(GANTRY_ENGINE_ALIGN - 1);
}

/* -- initiator_session.c -- */
int session_open(struct initiator *in);
/* End the session, in any phase. Idempotent. */
void session_stop(struct initiator *in);
/* Handle the end of a lane. The lane posts this call to the control thread; arg is the lane. */
void session_lane_done(void *arg);

/* -- initiator_stamp.c -- */
#define STAMP_UNIT 4096u /* bytes; a shorter block is one unit */

struct stamp {
	uint32_t magic;
	uint32_t crc32c; /* CRC32C of the unit, computed with this field 0 */
	uint64_t offset; /* offset of the unit in the volume, bytes */
	uint64_t generation;
	uint64_t session;
};

/* Expected content of a unit: any generation in acked..issued of this session at this offset. */
struct stamp_want {
	uint64_t offset, session, acked, issued;
};

enum stamp_state {
	STAMP_GOOD,
	STAMP_OLD,     /* the unit has a generation below `acked` */
	STAMP_WRONG,   /* the unit has the stamp of another offset */
	STAMP_FOREIGN, /* the unit has the stamp of another session */
	STAMP_TORN,
	STAMP_CORRUPT,
	STAMP_NONE
};

/*
 * Stamp one unit: a header, and content derived from offset, generation and session. bytes: a
 * multiple of 512.
 */
void stamp_write(const struct gantry_host *host, void *unit, uint32_t bytes, uint64_t offset,
		 uint64_t generation, uint64_t session);
/* Compare a unit with the expected content. found: the header of the unit, for messages. */
enum stamp_state stamp_read(const struct gantry_host *host, const void *unit, uint32_t bytes,
			    const struct stamp_want *want, struct stamp *found);

/* -- initiator_verify.c -- */
/*
 * State of one block. Writes to a block are never concurrent, so the outcome of each is known when
 * the next starts.
 */
struct block_state {
	uint32_t acked; /* generation of the last write that succeeded; 0: none */
	/*
	 * generation of the last write that was submitted; writes after `acked` failed, and
	 * might have taken effect
	 */
	uint32_t issued;
	uint8_t busy; /* an IO is in flight */
	/* a write of unknown outcome might still take effect: the block is not written again */
	uint8_t frozen;
};

/* Stamp buf with the next generation. */
void verify_write(struct lane *lane, struct block_state *state, void *buf, uint64_t offset);
void verify_write_done(struct block_state *state, unsigned status);
/* Overwrite buf, so that a read that does not fill it is detected. */
void verify_poison(struct lane *lane, void *buf);
/*
 * Compare what was read with the expected content. Counts the verdict, and logs the first few
 * findings.
 */
enum verdict verify_read_done(struct lane *lane, const struct block_state *state, const void *buf,
			      uint64_t offset);
const char *verify_name(enum verdict verdict);

/* -- initiator_report.c -- */
/* Returns the name of a status as in the report, such as "IO". */
const char *status_name(unsigned status);
void initiator_report(void *role, struct gantry_writer *w);
double report_cpu_s(void);

#endif
