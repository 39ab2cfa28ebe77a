/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * split.h - divide large IOs into pieces, and start only so many bytes of them in each turn of the
 * lane
 *
 * A lane serves the ports of several sessions, and a backend may copy the data of an IO inside its
 * submit. Without a limit, one session with large IOs holds the lane for tens of milliseconds. So
 * each port has a splitter before its terminal. An IO of more than GN_SPLIT_FROM bytes waits in the
 * splitter. The lane polls all its ports in turn, and each poll grants the splitter its quantum.
 * This is deficit round robin, where the turns of the lane are the rounds. A piece may exceed what
 * is left of the grant; the next grants pay for it.
 *
 * The quanta of all ports that a session has on the lane add up to GN_SPLIT_QUANTUM at most, so a
 * session gets no more by opening more lanes.
 *
 * A port takes at most a quantum of short IOs in each turn, too: no more requests than fit if each
 * has GN_SPLIT_FROM bytes.
 *
 * The client of a flood sleeps while a turn lasts, so each turn costs a wake-up. With 256 x 1 MiB
 * of reads from memory a flood reaches 0.87 of its rate without turns with pieces and quanta of 256
 * KiB, 0.94 with 1 MiB, and 0.96 with pieces of 1 MiB and quanta of 4 MiB. A turn then takes 0.5 ms
 * for each session that floods.
 *
 * The parts of an IO that is divided go to the terminal in the order of their offsets, several at a
 * time. The IO completes when its last part has completed.
 *
 * Everything but create and destroy runs on the lane's thread.
 */
#ifndef GN_PIPELINE_SPLIT_H
#define GN_PIPELINE_SPLIT_H

#include "pipeline/pipeline.h"

/* bytes; a shorter IO bypasses the splitter: copying it takes less time than its messages */
#define GN_SPLIT_FROM (16u << 10)
#define GN_SPLIT_PIECE (1u << 20)   /* bytes; about 0.1 ms of copying */
#define GN_SPLIT_QUANTUM (4u << 20) /* bytes for each session and turn */

struct gn_split;

struct gn_split_attr {
	struct gn_lane *lane;
	struct gantry_hop terminal;
	uint32_t depth;   /* IOs; their slots are 0 .. depth - 1 */
	uint32_t max_io;  /* bytes of data in one IO */
	uint32_t quantum; /* bytes for each turn; 1 .. */
};

/* True if an IO has to go through the splitter. */
static inline int gn_split_takes(const struct gantry_io *io)
{
	return io->length > GN_SPLIT_FROM;
}

/*
 * The credit of the next turn: a port that has not used its quantum does not save it, and one that
 * exceeded it pays it back.
 */
static inline int64_t gn_split_grant(int64_t credit, uint32_t quantum)
{
	return credit < 0 ? credit + quantum : quantum;
}

/* What `bytes` of an IO cost, in bytes of copied data. */
int64_t gn_split_cost(const struct gantry_io *io, uint32_t bytes);

/* Control thread. 0, -ENOMEM, -EINVAL: depth or quantum is 0. */
int gn_split_create(const struct gn_split_attr *attr, struct gn_split **split_p);
/* Control thread; after all its IOs have completed. */
void gn_split_destroy(struct gn_split **split_p);

/*
 * Accept an IO in place of the submit function of the terminal. Never fails. The IO may complete
 * before this returns.
 */
void gn_split_submit(struct gn_split *split, struct gantry_io *io);
/* Once in each turn: grant the quantum, and start pieces for it. Returns how many were started. */
int gn_split_poll(struct gn_split *split);
/*
 * True if a poll could start a piece: the lane must not sleep. While all parts are in flight, the
 * end of one wakes it.
 */
int gn_split_is_ready(const struct gn_split *split);
/*
 * Start nothing more. IOs without a started part complete with CANCELED, others when their parts
 * have completed.
 */
void gn_split_abandon(struct gn_split *split);

#endif
