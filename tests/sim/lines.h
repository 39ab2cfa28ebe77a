/* SPDX-License-Identifier: BSD-3-Clause */
/* lines.h - which lines of memory several threads have used, see `only_shared` in sim.h */
#ifndef SIM_LINES_H
#define SIM_LINES_H

#include <stdbool.h>
#include <stdint.h>

void sim_lines_clear(void);
/*
 * Record that a thread uses the line at this address. Returns whether several threads have used it.
 */
bool sim_line_use(const void *at, uint32_t thread);

#endif
