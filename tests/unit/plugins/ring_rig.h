/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring_rig.h - many messages of all kinds through one ring of a transport, driven by its own
 * operations.
 *
 * Posts, sends and polls come in an order of their own, none for so long that the others cannot go
 * on. Each message is checked where it is taken: number, length, cookie and data; each cookie of a
 * region comes back once, in order.
 */
#ifndef RING_RIG_H
#define RING_RIG_H

#include <gantry/transport.h>

#define RIG_MESSAGES 4000u
#define RIG_DATA 4096u
#define RIG_POSTS 128u /* at most posted at a time */
/* to begin anew, from another place: the counts wrap when the ring is full, empty, or neither */
#define RIG_ROUNDS 40u

extern uint8_t rig_memory[RIG_DATA];    /* what is sent */
extern struct gantry_region rig_region; /* its name, for messages that name it */

/* Before any message. */
void rig_begin(void);

/*
 * Send all, take all; a test that fails ends in here. imm_max: the most immediate data that the
 * ring is to be tried with.
 */
void rig_pass_all(const struct gantry_transport_ops *ops, void *consumer, void *producer,
		  uint32_t imm_max);

#endif
