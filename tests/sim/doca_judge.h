/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_judge.h - judges whether a run of DOCA programs keeps the contracts of gantry-doca(7), of
 * the headers and of the guide of Comch
 *
 * - Each accepted task completes once, with success or with an error that its situation allows.
 * - Messages arrive once, in the order of their submission, unchanged, and not after the
 *   disconnection. A message whose task has succeeded arrives, unless the program of the receiver
 *   ended the connection or one of the processes was killed.
 * - The same holds for data that a producer sends to a consumer, until the program stops the
 *   consumer.
 * - A connection is lost only when its peer has left or was killed. Events of consumers name those
 *   that exist.
 * - Contexts change their state only as the guide of DOCA Core allows.
 *
 * The programs themselves check their memory: see doca_lane.c and doca_export.c.
 */
#ifndef SIM_DOCA_JUDGE_H
#define SIM_DOCA_JUDGE_H

#include "doca_scene.h"

void sim_doca_judge_begin(const struct sim_doca_job *job);
/* The process of this side was killed. */
void sim_doca_killed(uint32_t side, int pid);
/*
 * The verdict at the end of a run. calm: the run had no fault, so each task must have succeeded in
 * time. Returns NULL, or the violation.
 */
const char *sim_doca_verdict(bool calm);
uint32_t sim_doca_count(enum sim_doca_kind kind);
void sim_doca_print(void);

#endif
