/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * order_rig.h - a ring of a transport between two threads: is what they do without locks in order,
 * on the processor at hand?
 *
 * In each round two messages come while the consumer polls, so that it is no longer rung for. It
 * arms just when the third is sent. It may find the message, or be rung for; a sender that has sent
 * it, and rung for nobody, though the consumer waits, has lost it. No clock is asked. Messages are
 * of all lengths, and each word of them is looked at.
 */
#ifndef ORDER_RIG_H
#define ORDER_RIG_H

#include <gantry/transport.h>

#define ORDER_DATA 1024u
#define ORDER_POSTS 8u /* that are posted at a time, and not less than that must be */

struct order_ends {
	/* post_recv, poll_recv, consumer_arm, consumer_disarm, send */
	const struct gantry_transport_ops *ops;
	void *consumer, *producer;
	int bell; /* readable when it has been rung */
};

/* All messages of all rounds; a test that fails ends in here. */
void order_pass_all(const struct order_ends *ends);

#endif
