/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_lanes.h - a consumer of shm-comch and rings towards it, as their lanes see them, created
 * without control threads
 */
#ifndef COMCH_LANES_H
#define COMCH_LANES_H

#include "comch_messages.h"

#define LANES_RINGS 2u
#define LANES_SLOTS 16u
#define LANES_DEPTH 8u /* most receives */

struct lanes_attr {
	uint32_t n_rings, n_slots, depth, credit_batch;
	bool membarrier, edges;
};

struct lanes {
	struct comch_device dev;
	struct comch_conn conn[2]; /* conn[0] belongs to the producers, conn[1] to the consumer */
	struct comch_page page;
	struct comch_slot slots[LANES_RINGS][LANES_SLOTS];
	struct comch_in in[LANES_RINGS];
	struct comch_consumer consumer;
	struct comch_producer producers[LANES_RINGS];
	uint32_t n_posted, n_taken; /* posted receives; received messages */
	uint32_t n_sent[LANES_RINGS], n_got[LANES_RINGS];
};
extern struct lanes lanes;

void lanes_begin(const struct lanes_attr *attr);
void lanes_open_bell(void); /* called in a thread */
/* Send message i of a ring. Returns the result of comch_send. */
int lanes_send(uint32_t ring, uint32_t i, uint32_t flags);
/* Check a message that a poll returned: it is the next one of its ring, and complete. */
void lanes_take(const struct gantry_msg *m);
/* Post one more receive. */
void lanes_post(void);

#endif
