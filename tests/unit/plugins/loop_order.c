/* SPDX-License-Identifier: BSD-3-Clause */
/* A ring of the loop between two threads: messages, credit, and the doorbell. */
#include "../plugins/transport/loop/loop_lane.c"
#include "order_rig.h"
#include "unity.h"

#include <sys/eventfd.h>

#define SLOTS 8u

static struct loop_conn conn;
static struct loop_consumer consumer;
static struct loop_producer producer;
static struct loop_ring ring;
static struct loop_msg msgs_of_ring[SLOTS];
static const uint8_t *regions[SLOTS];
static struct gantry_recv posts[ORDER_POSTS];
static struct loop_cookie cookies[SLOTS];
static uint8_t inline_data[SLOTS * ORDER_DATA];
static uint64_t payload;

void setUp(void)
{
	int bell = eventfd(0, EFD_NONBLOCK);

	ring = (struct loop_ring){.mask = SLOTS - 1,
				  .max_data = ORDER_DATA,
				  .inline_data = inline_data,
				  .msgs = msgs_of_ring,
				  .regions = regions,
				  .bell = bell};
	consumer = (struct loop_consumer){.conn = &conn,
					  .depth = ORDER_POSTS,
					  .max_data = ORDER_DATA,
					  .mask = ORDER_POSTS - 1,
					  .posts = posts,
					  .bell = bell,
					  .payload = &payload,
					  .active = 1,
					  .rings = {&ring}};
	producer = (struct loop_producer){
		.conn = &conn, .ring = &ring, .max_data = ORDER_DATA, .cookies = cookies};
}

void tearDown(void)
{
	close(consumer.bell);
}

static void with_a_fence_at_each_end(void)
{
	static const struct gantry_transport_ops ops = {.poll_recv = loop_poll_recv,
							.consumer_arm = loop_consumer_arm,
							.consumer_disarm = loop_consumer_disarm};
	static const struct gantry_data_queue_ops data = {.post_recv = loop_post_recv_data,
							  .send = loop_send_data};
	const struct order_ends ends = {&ops, &data, &consumer, &producer, consumer.bell};

	order_pass_all(&ends);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(with_a_fence_at_each_end);
	return UNITY_END();
}
