/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of the loop whose 32-bit counters wrap: messages, receives, and messages whose data is
 * still being read.
 */
#include "../plugins/transport/loop/loop_lane.c"
#include "ring_rig.h"
#include "unity.h"

#define SLOTS 64u
#define DEPTH 100u /* more than SLOTS */

static struct loop_conn conn;
static struct loop_consumer consumer;
static struct loop_producer producer;
static struct loop_ring ring;
static struct loop_msg msgs_of_ring[SLOTS];
static const uint8_t *regions[SLOTS];
static struct gantry_recv posts[RIG_POSTS];
static struct loop_cookie cookies[SLOTS];
static uint8_t inline_data[SLOTS * LOOP_INLINE];
static uint64_t payload;

static uint32_t first;

/* Set both ends to the state after `first` messages, more than a lap before the wrap. */
static void begin(uint32_t round)
{
	first = UINT32_MAX - 1500 - 13 * round;
	rig_begin();
	conn.exports[3] = (struct loop_export){.rights = GANTRY_REMOTE_READ,
					       .length = RIG_DATA,
					       .addr = rig_memory,
					       .region = &rig_region};
	ring = (struct loop_ring){.mask = SLOTS - 1,
				  .max_data = LOOP_INLINE,
				  .inline_data = inline_data,
				  .msgs = msgs_of_ring,
				  .regions = regions,
				  .bell = -1,
				  .head = first,
				  .tail = first,
				  .limit = first};
	consumer = (struct loop_consumer){.conn = &conn,
					  .depth = DEPTH,
					  .max_data = RIG_DATA,
					  .mask = RIG_POSTS - 1,
					  .n_posted = first + 70,
					  .n_used = first + 70,
					  .posts = posts,
					  .bell = -1,
					  .payload = &payload,
					  .active = 1,
					  .rings = {&ring}};
	producer = (struct loop_producer){.conn = &conn,
					  .ring = &ring,
					  .head = first,
					  .end = first,
					  .max_data = RIG_DATA,
					  .cookie_head = UINT32_MAX - 100,
					  .cookie_tail = UINT32_MAX - 100,
					  .cookies = cookies};
}

static const struct gantry_data_queue_ops data = {
	.post_recv = loop_post_recv_data, .send = loop_send_data, .poll_send = loop_poll_send};
static const struct gantry_transport_ops ops = {.poll_recv = loop_poll_recv, .data = &data};

static void all_messages_pass(void)
{
	for (uint32_t round = 0; round < RIG_ROUNDS; round++) {
		begin(round);
		rig_pass_all(&ops, &consumer, &producer, GANTRY_IMM_MAX);
		TEST_ASSERT_EQUAL_UINT(first + RIG_MESSAGES, ring.tail);
		TEST_ASSERT_TRUE(ring.tail < first && consumer.n_used < first &&
				 producer.cookie_head < UINT32_MAX / 2);
	}
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(all_messages_pass);
	return UNITY_END();
}
