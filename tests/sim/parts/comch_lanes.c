/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <sys/eventfd.h>

#include "comch_lanes.h"

struct lanes lanes;
static struct gantry_recv posts[LANES_DEPTH];
static struct comch_cookie cookies[1];
static uint8_t bufs[LANES_DEPTH][MESSAGE_DATA];
static uint64_t payload;

void lanes_begin(const struct lanes_attr *attr)
{
	memset(&lanes, 0, sizeof(lanes));
	message_begin();
	sim_late(lanes.slots, sizeof(lanes.slots));
	memset(posts, 0, sizeof(posts));
	memset(bufs, 0, sizeof(bufs));
	for (int i = 0; i < 2; i++) {
		lanes.conn[i].dev = &lanes.dev;
		lanes.conn[i].membarrier = attr->membarrier;
	}
	lanes.consumer = (struct comch_consumer){
		.posts = posts,
		.posts_last = LANES_DEPTH - 1,
		.depth = attr->depth,
		.max_data = MESSAGE_DATA,
		.credit_batch = attr->credit_batch,
		.clears = !attr->edges,
		.page = &lanes.page,
		.conn = &lanes.conn[1],
		.payload = &payload,
		.active = (1u << attr->n_rings) - 1,
	};
	for (uint32_t i = 0; i < attr->n_rings; i++) {
		lanes.in[i] = (struct comch_in){.slots = lanes.slots[i],
						.line = &lanes.page.ring[i],
						.mask = attr->n_slots - 1};
		lanes.consumer.in[i] = &lanes.in[i];
		lanes.producers[i] = (struct comch_producer){
			.slots = lanes.slots[i],
			.asleep = &lanes.page.asleep.asleep,
			.conn = &lanes.conn[0],
			.mask = attr->n_slots - 1,
			.cookies = cookies,
			.max_data = MESSAGE_DATA,
			.line = &lanes.page.ring[i],
			.fence = !attr->membarrier,
		};
	}
}

void lanes_open_bell(void)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	lanes.consumer.bell = fd;
	for (uint32_t i = 0; i < LANES_RINGS; i++)
		lanes.producers[i].bell = fd;
}

#define RING_WORDS 1000u /* more than the messages of a ring */

/* Each word of a message identifies the message. */
static uint32_t word_of(uint32_t ring, uint32_t i)
{
	return 1 + ring * RING_WORDS + i;
}

int lanes_send(uint32_t ring, uint32_t i, uint32_t flags)
{
	return message_send(&lanes.producers[ring], i, word_of(ring, i), flags);
}

void lanes_take(const struct gantry_msg *m)
{
	uint32_t word, ring, i;

	PART_CHECK(m->imm_len >= sizeof(word), "a message is wrong");
	memcpy(&word, m->imm, sizeof(word));
	ring = (word - 1) / RING_WORDS;
	PART_CHECK(ring < LANES_RINGS, "a message is wrong");
	i = lanes.n_got[ring]++;
	PART_CHECK(m->cookie == lanes.n_taken, "a receive is used out of order");
	message_check(m, bufs[lanes.n_taken % LANES_DEPTH], i, word_of(ring, i));
	lanes.n_taken++;
}

void lanes_post(void)
{
	const struct gantry_recv recv = {.buf = bufs[lanes.n_posted % LANES_DEPTH],
					 .length = MESSAGE_DATA,
					 .cookie = lanes.n_posted};

	PART_CHECK(comch_post_recv_data(&lanes.consumer, &recv, 1) == 0, "a receive is rejected");
	lanes.n_posted++;
}
