/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * judge.h - the history of a run, and the check of it against gantry-guarantees(7)
 *
 * Each block holds one value, and each write has a value of its own, so a block is a register: its
 * history must be linearizable. A write whose end is unknown (it timed out, its session ended) may
 * take effect until its session has acknowledged a later write of the block, or until a session
 * that was opened later has started, and not after that. A power cut keeps the writes that a flush
 * has covered, and any part of the other writes.
 */
#ifndef SIM_JUDGE_H
#define SIM_JUDGE_H

#include <stdbool.h>

#include "image.h"

/*
 * Begin with an empty history; all blocks are 0.
 *
 * may_repeat: sessions resume, or the backend is `nbd`. The client or the backend submits a write
 * again that was in flight when its session or its connection was lost, so the write can take
 * effect more than once until it completes, also after a write that it overlaps. So does a role
 * that serves a guest and is started again.
 * joined: all sessions have both volumes 0 and 1, one after the other. guest: the client that is a
 * guest; 0: none.
 */
void sim_judge_begin(bool may_repeat, bool joined, uint32_t guest);
/* A client has ended or was killed: the outcome of its unfinished operations is unknown. */
void sim_judge_ended(uint32_t client);
/* The disk of these volumes (a bit mask) has lost its power. */
void sim_judge_power_cut(uint32_t volumes);
/*
 * Record the value of a block after the last client has ended; see word_of() in image_client.c.
 *
 * block  as of sim_topology_block()
 */
void sim_judge_store(uint32_t block, uint64_t word);
/* Called at the end of a run. Returns NULL, or the violation that the history shows. */
const char *sim_judge_verdict(void);
/* Called during a run. Returns NULL, or the first message of sim_wrong(). */
const char *sim_judge_verdict_now(void);
/*
 * Called at the end of a run, for volumes (a bit mask) without faults, stalls and slow disks.
 * most_ns: time of the longest operation. Returns NULL, or a description of an operation that
 * failed or took longer.
 */
const char *sim_judge_calm(uint32_t volumes, uint64_t most_ns);
/*
 * Outcomes of operations: RESULT(name of the constant, errno). The statistics of a range of seeds
 * print the name of the errno.
 */
/* clang-format off */
#define SIM_RESULT_LIST(RESULT) \
	RESULT(OK, 0) RESULT(TIMEDOUT, ETIMEDOUT) RESULT(CANCELED, ECANCELED) RESULT(NOTCONN, \
	ENOTCONN) RESULT(IO, EIO) RESULT(ROFS, EROFS) RESULT(STALE, ESTALE)
/* clang-format on */
enum sim_result {
#define SIM_RESULT(name, err) SIM_R_##name,
	SIM_RESULT_LIST(SIM_RESULT)
#undef SIM_RESULT
		SIM_R_OTHER,
	SIM_R_NONE, /* its client was killed */
	SIM_RESULTS
};
/* Returns the number of operations of this kind with this outcome. */
uint32_t sim_judge_count(enum sim_op op, enum sim_result result);
/* Print all operations. */
void sim_judge_print(void);

#endif
