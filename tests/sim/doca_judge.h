/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_judge.h - whether a run of DOCA programs keeps what gantry-doca(7), the headers and the
 * guide of Comch promise
 *
 * - Each accepted task completes once, with success or with an error that its situation allows.
 * - Messages arrive once, in the order of their submission, unchanged, and not after the
 *   disconnection. A message whose task has succeeded arrives, unless the program of the receiver
 *   ended the connection or one of the processes was killed.
 * - Data of a producer does so for each consumer that it is sent to, until the program stops the
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
 * At the end. calm: nothing was wrong in the run, so each task has succeeded in time. NULL, or what
 * is wrong.
 */
const char *sim_doca_verdict(bool calm);
uint32_t sim_doca_count(enum sim_doca_kind kind);
void sim_doca_print(void);

#endif
