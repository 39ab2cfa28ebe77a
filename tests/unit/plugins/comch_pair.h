/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_pair.h - a consumer and a producer of shm-comch on one ring, in private memory. A test
 * includes it after shm_consumer.c and shm_producer.c.
 */
#ifndef TESTS_UNIT_PLUGINS_COMCH_PAIR_H
#define TESTS_UNIT_PLUGINS_COMCH_PAIR_H

#define SLOTS 128u
#define PAIR_DEPTH 64u /* largest depth */

static struct comch_conn conn;
static struct comch_consumer consumer;
static struct comch_producer producer;
static struct comch_in in;
static struct comch_page page;
static struct comch_slot slots[SLOTS];
static struct gantry_recv posts[PAIR_DEPTH];
static struct comch_cookie cookies[PAIR_DEPTH];
static uint64_t payload;

/* depth: a power of two; max_data: bytes of the largest message */
static void pair_begin(uint32_t depth, uint32_t max_data)
{
	memset(slots, 0, sizeof(slots));
	memset(&page, 0, sizeof(page));
	memset(&conn, 0, sizeof(conn));
	in = (struct comch_in){.slots = slots, .line = &page.ring[0], .mask = SLOTS - 1};
	consumer = (struct comch_consumer){.posts = posts,
					   .posts_last = depth - 1,
					   .depth = depth,
					   .max_data = max_data,
					   .credit_batch = 1,
					   .page = &page,
					   .conn = &conn,
					   .payload = &payload,
					   .active = 1,
					   .in = {&in}};
	producer = (struct comch_producer){.slots = slots,
					   .asleep = &page.asleep.asleep,
					   .conn = &conn,
					   .mask = SLOTS - 1,
					   .cookies = cookies,
					   .cookie_mask = depth - 1,
					   .max_data = max_data,
					   .line = &page.ring[0]};
}

#endif
