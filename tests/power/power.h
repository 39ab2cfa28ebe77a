/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * power.h - the record in which writer.c keeps the allowed effects of a power cut, for replay.c
 *
 * The record is a file of struct power_mark. The writer appends record N, and then the mark N to
 * the log of dm-log-writes. So after a power cut between the marks N and N+1, a block can hold any
 * write from `stable` of N to `issued` of N+1, and no other. Blocks have the content of the soak
 * test, see soak/soak.h. The simulated power cuts do not affect the file of the record.
 */
#ifndef POWER_H
#define POWER_H

#include "soak/soak.h"

#define POWER_BLOCKS 256u
#define POWER_RUN 0x706f776572u /* run number in each word of a block */

struct power_block {
	/* the last write that a flush or FUA made stable; number of writes up to it */
	uint32_t stable, n_stable;
	uint32_t issued, n_issued; /* the last submitted write; number of writes */
	uint32_t zeroed;           /* the last write of zeroes among them */
};

struct power_mark {
	uint32_t number, reserved;
	struct power_block blocks[POWER_BLOCKS];
};

#endif
