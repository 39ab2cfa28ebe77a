/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * held.h - the resources of a simulated process (descriptors, mappings, heap), to compare two
 * moments or two processes
 */
#ifndef SIM_HELD_H
#define SIM_HELD_H

#include "proc.h"

#define SIM_HELD_KINDS 12u /* kinds of descriptors */

struct sim_held {
	struct {
		const char *kind;
		uint32_t n;
	} fds[SIM_HELD_KINDS]; /* ends with kind NULL; one entry for each kind */
	uint32_t n_maps;
	size_t map_bytes, heap_bytes;
};

void sim_held_note(struct sim_held *held, const struct sim_proc *proc);
/*
 * Returns whether `held` has more descriptors of any kind or more mappings than `before`, or fewer
 * of them (unless may_lack is set), or more than heap_bytes of additional heap. If it returns true,
 * `text` has the differences, such as " memfd 3 instead of 2, mappings 9 instead of 8".
 */
bool sim_held_differs(const struct sim_held *held, const struct sim_held *before, size_t heap_bytes,
		      bool may_lack, char *text, size_t bytes);

#endif
