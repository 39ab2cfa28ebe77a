/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * split.h - divides large IOs into pieces, and limits the bytes that start in each turn of the lane
 *
 * A lane serves the responders of several sessions, and a backend can copy the data of an IO inside
 * its submit. Without a limit, one session with large IOs holds the lane for tens of milliseconds.
 * So each responder has a splitter before its terminal. An IO of more than GN_SPLIT_FROM bytes
 * waits in the splitter. The lane polls all its responders in each turn, and each poll grants the
 * splitter its quantum. This is deficit round robin; a turn of the lane is a round. A piece can
 * exceed the remaining grant; the excess is subtracted from the next grants.
 *
 * The quanta of all responders of a session on one lane add up to at most GN_SPLIT_QUANTUM, so more
 * lanes do not give a session a larger share.
 *
 * A responder also takes at most a quantum of short IOs in each turn: no more requests than the
 * quantum permits if each has GN_SPLIT_FROM bytes.
 *
 * The client of a large flow sleeps during a turn, so each turn costs a wake-up. Measured with 256
 * x 1 MiB of reads from memory, relative to the rate without turns: 0.87 with pieces and quanta of
 * 256 KiB, 0.94 with 1 MiB, 0.96 with pieces of 1 MiB and quanta of 4 MiB. With the last of these
 * settings, which is in use, a turn takes 0.5 ms for each session with such a flow.
 *
 * The parts of a divided IO are submitted to the terminal in the order of their offsets, several at
 * a time. The IO completes when its last part has completed.
 *
 * All functions except create and destroy run on the lane's thread.
 */
#ifndef GN_PIPELINE_SPLIT_H
#define GN_PIPELINE_SPLIT_H

#include "pipeline/pipeline.h"

/*
 * bytes; an IO up to this length bypasses the splitter: copying it takes less time than its
 * messages
 */
#define GN_SPLIT_FROM (16u << 10)
#define GN_SPLIT_PIECE (1u << 20)   /* bytes; about 0.1 ms of copying */
#define GN_SPLIT_QUANTUM (4u << 20) /* bytes for each session and turn */

struct gn_split;

struct gn_split_attr {
	struct gn_lane *lane;
	struct gantry_hop terminal;
	uint32_t depth;   /* IOs; their slots are 0 .. depth - 1 */
	uint32_t max_io;  /* bytes of data in one IO */
	uint32_t quantum; /* bytes for each turn; at least 1 */
};

/* Returns true if an IO must pass through the splitter. */
static inline int gn_split_takes(const struct gantry_io *io)
{
	return io->length > GN_SPLIT_FROM;
}

/*
 * Returns the credit of the next turn. Unused credit is not saved; exceeded credit is subtracted.
 */
static inline int64_t gn_split_grant(int64_t credit, uint32_t quantum)
{
	return credit < 0 ? credit + quantum : quantum;
}

/* Returns the cost of `bytes` of an IO, in bytes of copied data. */
int64_t gn_split_cost(const struct gantry_io *io, uint32_t bytes);

/*
 * gn_split_create - create a splitter. Returns 0; -ENOMEM; -EINVAL: depth, quantum or max_io is 0.
 * Control thread.
 */
int gn_split_create(const struct gn_split_attr *attr, struct gn_split **split_p);
/* gn_split_destroy - free a splitter, after all its IOs have completed. Control thread. */
void gn_split_destroy(struct gn_split **split_p);

/*
 * gn_split_submit - accept an IO instead of the terminal. Never fails. The IO can complete before
 * the function returns.
 */
void gn_split_submit(struct gn_split *split, struct gantry_io *io);
/*
 * gn_split_poll - grant the quantum and start pieces. Call it once in each turn. Returns the number
 * of started pieces.
 */
int gn_split_poll(struct gn_split *split);
/*
 * gn_split_is_ready - returns true if a poll can start a piece, so the lane must not sleep. While
 * all parts are in flight, the completion of a part wakes the lane.
 */
int gn_split_is_ready(const struct gn_split *split);
/*
 * gn_split_abandon - start no more pieces. IOs without a started part complete with CANCELED,
 * others when their parts have completed.
 */
void gn_split_abandon(struct gn_split *split);

#endif
