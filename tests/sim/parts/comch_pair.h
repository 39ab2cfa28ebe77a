/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_pair.h - two connected devices of shm-comch in one process, with the product's shm_queues.c
 * and shm_region.c
 *
 * Frames go through queues of the pair, not sockets. Shared memory is of the pair too, and mapped
 * twice, once for each side: what a side has unmapped faults. Each side has a control thread of the
 * part, which calls pair_turn().
 */
#ifndef COMCH_PAIR_H
#define COMCH_PAIR_H

#include "comch_messages.h"

struct pair_side {
	struct comch_device dev;
	struct comch_conn conn;
	bool kicked;
	/* what happened to the connection's user, for the part: handles and ids; 0: nothing */
	uint32_t consumer_up, consumer_down, revoke, revoked;
};
extern struct pair_side pair[2];

void pair_begin(void);
/* In a thread: what needs descriptors. */
void pair_open(void);
/* Process all frames that have come, and what lanes left to the control thread. */
void pair_turn(unsigned side);
/*
 * Wait for something to do for pair_turn(), or a flag that part_set() sets; the flag may be NULL.
 */
void pair_wait(unsigned side, const bool *flag);
bool pair_has_frames(unsigned side);
/* The end of both connections, as their owners see it: sends fail. */
void pair_lose(void);
/* Memory that can be exported: of the owner's side. fd, addr and length are set. */
void pair_region(struct gantry_region *region, uint64_t bytes);
/* At the end, in the environment: NULL, or what is left over. */
const char *pair_check(void);

#endif
