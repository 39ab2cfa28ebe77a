/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * states.h - macros with which states.sed replaces assignments to a state, in copies of some files
 * of the product
 *
 * The Makefile defines SIM_MACHINE_state and SIM_MACHINE_phase for each of these files.
 */
#ifndef SIM_STATES_H
#define SIM_STATES_H

#include "coverage.h"

#define SIM_STATE(object, field, value) \
	do { \
		int sim_was = (int)(object)->field; \
\
		(object)->field = (value); \
		sim_state_changed(SIM_MACHINE_##field, sim_was, (int)(object)->field); \
	} while (0)
#define SIM_ENDING(s) \
	do { \
		(s)->phase = GN_SESSION_ENDING; \
		sim_state_changed(SIM_SERVER, (int)(s)->state, SIM_SERVER_ENDING); \
	} while (0)

#endif
