/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_pair.h - two connected devices of shm-comch in one process, with the product's shm_queues.c
 * and shm_region.c
 *
 * Frames go through queues of the pair, not through sockets. The pair provides shared memory, too,
 * and maps it once for each side: an access after a side has unmapped it faults. The part runs a
 * control thread for each side, which calls pair_turn().
 */
#ifndef COMCH_PAIR_H
#define COMCH_PAIR_H

#include "comch_messages.h"

struct pair_side {
	struct comch_device dev;
	struct comch_conn conn;
	bool kicked;
	/* handles and ids of the last events that the user of the connection got; 0: none */
	uint32_t consumer_up, consumer_down, revoke, revoked;
};
extern struct pair_side pair[2];

void pair_begin(void);
/* Set the pid of both devices; called in a simulated thread, since getpid() needs it. */
void pair_open(void);
/* Process all received frames, and the work that lanes left to the control thread. */
void pair_turn(unsigned side);
/* Wait for work of pair_turn(), or for a flag that part_set() sets; the flag may be NULL. */
void pair_wait(unsigned side, const bool *flag);
bool pair_has_frames(unsigned side);
/* End both connections: later sends fail. */
void pair_lose(void);
/* Create memory that the owner's side can export. Sets fd, addr and length. */
void pair_region(struct gantry_region *region, uint64_t bytes);
/* Called at the end, in the environment. Returns NULL, or the resource that was not released. */
const char *pair_check(void);

#endif
