/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_run.h - scenarios of `./dev sim doca`: a Comch server and its clients */
#ifndef SIM_DOCA_RUN_H
#define SIM_DOCA_RUN_H

#include "scenario.h"

/*
 * What a seed decides, without what the limits leave out; prints it if sim_verbose is set. The same
 * outcome each time.
 */
void sim_doca_run(uint64_t seed, const struct sim_limits *limits, struct sim_outcome *outcome);

/* Names of what sim_outcome counts in `done` and `faults`; NULL: nothing. */
const char *sim_doca_done_name(unsigned i);
const char *sim_doca_fault_name(unsigned i);

#endif
