/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of shm-comch whose 32-bit counters wrap: slots, messages, receives, and messages whose
 * data is still being read.
 */
#include "../plugins/transport/shm-comch/shm_consumer.c"
#include "../plugins/transport/shm-comch/shm_producer.c"
#include "comch_pair.h"
#include "ring_rig.h"
#include "unity.h"

#define DEPTH 32u

void comch_bell_ring(const struct comch_conn *conn_p, int fd)
{
	(void)conn_p;
	(void)fd;
}

void comch_bell_clear(struct comch_conn *conn_p, int fd)
{
	(void)conn_p;
	(void)fd;
}

void comch_conn_poison(struct comch_conn *conn_p, enum comch_corruption what)
{
	(void)conn_p;
	(void)what;
	TEST_FAIL_MESSAGE("a good peer is taken for a bad one");
}

static uint64_t first_slot;
static uint32_t first_message;

/* Set both ends to the state after first_message messages, more than a lap before the wrap. */
static void begin(uint32_t round)
{
	first_slot = (1ull << 32) - 3000 - 29 * round;
	first_message = UINT32_MAX - 1500 - 13 * round;
	rig_begin();
	pair_begin(DEPTH, RIG_DATA);
	conn.imported[3] = (struct comch_import){.state = COMCH_I_LIVE,
						 .ref = COMCH_REF(3, 1),
						 .length = RIG_DATA,
						 .rights = GANTRY_REMOTE_READ,
						 .addr = rig_memory};
	conn.exported[3] = (struct comch_export){.state = COMCH_E_LIVE,
						 .ref = COMCH_REF(3, 1),
						 .length = RIG_DATA,
						 .rights = GANTRY_REMOTE_READ,
						 .region = &rig_region};
	for (uint64_t at = first_slot - SLOTS; at < first_slot; at++)
		slots[at % SLOTS].trailer = comch_full_word(at);
	page.ring[0].credit = comch_credit_pack((uint32_t)first_slot, first_message);
	in.position = first_slot;
	in.taken = in.given_limit = first_message;
	in.given_tail = (uint32_t)first_slot;
	consumer.n_posted = consumer.n_used = first_message + 70;
	consumer.credit_batch = DEPTH / 4;
	producer.position = producer.tail = first_slot;
	producer.more = (uint32_t)first_slot - first_message;
	producer.limit = first_message;
	producer.cookie_head = producer.cookie_tail = UINT32_MAX - 100;
}

static const struct gantry_data_queue_ops data = {
	.post_recv = comch_post_recv_data, .send = comch_send_data, .poll_send = comch_poll_send};
static const struct gantry_transport_ops ops = {.poll_recv = comch_poll_recv, .data = &data};

static void all_messages_pass(void)
{
	for (uint32_t round = 0; round < RIG_ROUNDS; round++) {
		begin(round);
		rig_pass_all(&ops, &consumer, &producer, COMCH_SLOT_PAYLOAD);
		TEST_ASSERT_TRUE(producer.position >> 32 == 1 && in.position == producer.position);
		TEST_ASSERT_TRUE(in.taken < first_message && consumer.n_used < first_message);
		TEST_ASSERT_TRUE(producer.cookie_head < UINT32_MAX / 2);
	}
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(all_messages_pass);
	return UNITY_END();
}
