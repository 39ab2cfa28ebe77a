/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * judge.h - the history of a run, and whether gantry-guarantees(7) allows it
 *
 * Each block holds one value, and each write has a value of its own, so a block is a register: its
 * history must be linearizable. A write whose end is not known (it timed out, its session ended)
 * may take effect until its session has acknowledged a later write of the block, or until a session
 * that was opened later has started; then it may not any more. A power cut keeps what a flush had
 * covered, and any part of the rest.
 */
#ifndef SIM_JUDGE_H
#define SIM_JUDGE_H

#include <stdbool.h>

#include "image.h"

/*
 * An empty history of blocks that are all 0. may_repeat: sessions resume. A write that was in
 * flight when its session was lost is submitted again, so it may take effect more than once until
 * it completes, also after a write that it overlaps.
 */
void sim_judge_begin(bool may_repeat);
/* A client has ended or was killed: its operations without an end are not known. */
void sim_judge_ended(uint32_t client);
/* The disk of these volumes, as bits, has lost its power. */
void sim_judge_power_cut(uint32_t volumes);
/*
 * After the last client has ended, the volume has this in a block; see word_of() of image_client.c.
 */
void sim_judge_store(uint32_t volume, uint32_t block, uint64_t word);
/* At the end: NULL, or what the history breaks. */
const char *sim_judge_verdict(void);
/* While it runs: NULL, or what sim_wrong() was called with. */
const char *sim_judge_verdict_now(void);
/*
 * At the end, of volumes (bits) without faults, stalls and slow disks: NULL, or an operation that
 * failed or took long.
 */
const char *sim_judge_calm(uint32_t volumes);
/* How operations end: the name of each is printed with the results of a range. */
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
/* Operations of this kind that ended so. */
uint32_t sim_judge_count(enum sim_op op, enum sim_result result);
/* Print all operations. */
void sim_judge_print(void);

#endif
