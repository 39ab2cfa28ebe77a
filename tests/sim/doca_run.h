/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_run.h - scenarios of `./dev sim doca`: a Comch server and its clients */
#ifndef SIM_DOCA_RUN_H
#define SIM_DOCA_RUN_H

#include "scenario.h"

/*
 * Run the scenario of a seed, without the parts that the limits leave out. Prints it if sim_verbose
 * is set. The same seed and limits give the same outcome.
 */
void sim_doca_run(uint64_t seed, const struct sim_limits *limits, struct sim_outcome *outcome);

/*
 * sim_doca_done_name(): what sim_doca_run() counts in ops[i][SIM_R_OK] of the outcome, such as
 * messages. sim_doca_fault_name(): the kind of fault that it counts in faults[i]. NULL: unused.
 */
const char *sim_doca_done_name(unsigned i);
const char *sim_doca_fault_name(unsigned i);

#endif
