/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring_rig.h - passes many messages of all kinds through one ring of a transport, by the operations
 * of the transport.
 *
 * The rig posts, sends and polls in a varying order, but does each often enough for the others to
 * continue. It checks each message that it takes: number, length, cookie and data. Each cookie of a
 * region must complete once, in order.
 */
#ifndef RING_RIG_H
#define RING_RIG_H

#include <gantry/transport.h>

#define RIG_MESSAGES 4000u
#define RIG_DATA 4096u
#define RIG_POSTS 128u /* maximum number of posted receives */
/* runs with different initial counts, which wrap while the ring is full, empty, or neither */
#define RIG_ROUNDS 40u

extern uint8_t rig_memory[RIG_DATA];    /* data to send */
extern struct gantry_region rig_region; /* the region of this data */

/* Call before each run. */
void rig_begin(void);

/*
 * Send all messages and take them. A failure ends the test inside this function. imm_max: maximum
 * length of immediate data.
 */
void rig_pass_all(const struct gantry_transport_ops *ops, void *consumer, void *producer,
		  uint32_t imm_max);

#endif
