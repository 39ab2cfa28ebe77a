/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * power.h - the record that writer.c keeps of what a power cut may do, for replay.c.
 *
 * A file of struct power_mark. The writer appends number N and then puts the mark N into the log of
 * dm-log-writes. So for a power cut between the marks N and N+1, a block may hold any write from
 * `stable` of N to `issued` of N+1, and nothing else. The content of blocks is that of the soak
 * test, see soak/soak.h; the memory of the record survives what is simulated.
 */
#ifndef POWER_H
#define POWER_H

#include "soak/soak.h"

#define POWER_BLOCKS 256u
#define POWER_RUN 0x706f776572u /* part of each word */

struct power_block {
	/* the last write that a flush or FUA made stable; writes submitted up to it */
	uint32_t stable, n_stable;
	uint32_t issued, n_issued; /* the last write that was submitted; writes submitted */
	uint32_t zeroed;           /* the last write of zeroes among them */
};

struct power_mark {
	uint32_t number, reserved;
	struct power_block blocks[POWER_BLOCKS];
};

#endif
