/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring_rig.h - many messages of all kinds through one ring of a transport, by the operations of the
 * transport.
 *
 * Posts, sends and polls are made in a varying order; none is left out so long that the others
 * cannot continue. Each message is checked when it is taken: number, length, cookie and data. Each
 * cookie of a region completes once, in order.
 */
#ifndef RING_RIG_H
#define RING_RIG_H

#include <gantry/transport.h>

#define RIG_MESSAGES 4000u
#define RIG_DATA 4096u
#define RIG_POSTS 128u /* at most posted at a time */
/* restarts with other counts, so that they wrap when the ring is full, empty, or neither */
#define RIG_ROUNDS 40u

extern uint8_t rig_memory[RIG_DATA];    /* what is sent */
extern struct gantry_region rig_region; /* name of the region, for messages that refer to it */

/* Before any message. */
void rig_begin(void);

/*
 * Send all, take all. A failed test ends in here. imm_max: the most immediate data to test the ring
 * with.
 */
void rig_pass_all(const struct gantry_transport_ops *ops, void *consumer, void *producer,
		  uint32_t imm_max);

#endif
