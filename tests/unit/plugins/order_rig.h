/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * order_rig.h - a ring of a transport between two threads: tests the order of its lock-free
 * accesses on this processor.
 *
 * In each round two messages arrive while the consumer polls, so the producer stops ringing. The
 * consumer arms just when the third message is sent. It must then find the message, or get the
 * doorbell. The message is lost if the producer sent it without a doorbell and the armed consumer
 * did not find it. The rig reads no clock. Messages have different lengths, and the rig checks each
 * word of them.
 */
#ifndef ORDER_RIG_H
#define ORDER_RIG_H

#include <gantry/transport.h>

#define ORDER_DATA 1024u
#define ORDER_POSTS 8u /* posted receives; the minimum depth of the consumer */

struct order_ends {
	const struct gantry_transport_ops *ops;   /* poll_recv, consumer_arm, consumer_disarm */
	const struct gantry_data_queue_ops *data; /* post_recv, send */
	void *consumer, *producer;
	int bell; /* fd, readable when the doorbell was rung */
};

/* Pass all messages of all rounds. A failure ends the test inside this function. */
void order_pass_all(const struct order_ends *ends);

#endif
