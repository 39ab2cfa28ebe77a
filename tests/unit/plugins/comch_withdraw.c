/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A producer of shm-comch withdraws its messages: before the consumer has taken any of them, after
 * the consumer has taken some, and while the consumer copies the data of one.
 */
#include <string.h>

#include <gantry/shm.h>

static void *copy_with_event(void *to, const void *from, size_t bytes);
#define memcpy copy_with_event
#include "../plugins/transport/shm-comch/shm_consumer.c"
#undef memcpy
#include "../plugins/transport/shm-comch/shm_producer.c"
#include "comch_pair.h"
#include "unity.h"

#define DEPTH 16u
#define DATA 1024u
#define CHANGED 0xee

static struct gantry_region region = {.fd = -1};
static uint8_t memory[DATA], bufs[DEPTH][DATA];
static bool ends_in_copy;

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
}

/* Destroy the producer. Then change its data: the sender is allowed to reuse that memory. */
static void end_producer(void)
{
	comch_withdraw(&producer);
	memset(memory, CHANGED, sizeof(memory));
}

/*
 * Replaces memcpy() in shm_consumer.c. If ends_in_copy is set, the producer is destroyed in the
 * middle of a copy from the region.
 */
static void *copy_with_event(void *to, const void *from, size_t bytes)
{
	const uintptr_t at = (uintptr_t)from - (uintptr_t)memory;
	size_t before = at < sizeof(memory) && ends_in_copy ? bytes / 2 : bytes;

	memcpy(to, from, before);
	if (before == bytes)
		return to;
	ends_in_copy = false;
	end_producer();
	return memcpy((char *)to + before, (const char *)from + before, bytes - before), to;
}

void setUp(void)
{
	pair_begin(DEPTH, DATA);
	memset(memory, 1, sizeof(memory));
	memset(bufs, 0, sizeof(bufs));
	ends_in_copy = false;
	conn.imported[3] = (struct comch_import){.state = COMCH_I_LIVE,
						 .ref = COMCH_REF(3, 1),
						 .length = DATA,
						 .rights = GANTRY_REMOTE_READ,
						 .addr = memory};
	conn.exported[3] = (struct comch_export){.state = COMCH_E_LIVE,
						 .ref = COMCH_REF(3, 1),
						 .length = DATA,
						 .rights = GANTRY_REMOTE_READ,
						 .region = &region};
	for (uint32_t i = 0; i < DEPTH; i++)
		TEST_ASSERT_EQUAL_INT(0, comch_post_recv_data(&consumer,
							      &(struct gantry_recv){.buf = bufs[i],
										    .length = DATA,
										    .cookie = i},
							      1));
}

static void send(uint64_t number, uint32_t imm_len, bool is_region)
{
	uint64_t imm[GANTRY_IMM_MAX / 8] = {number};
	const struct gantry_send s = {.imm = imm,
				      .imm_len = imm_len,
				      .length = is_region ? DATA : 0,
				      .region = is_region ? &region : NULL,
				      .cookie = number};

	TEST_ASSERT_EQUAL_INT(0, comch_send_data(&producer, &s, 0));
}

/* Send four messages of a region, which take one slot or two, and three without a region. */
static void send_all(void)
{
	for (uint64_t i = 0; i < 4; i++)
		send(i, i % 2 ? GANTRY_IMM_MAX : 8, true);
	for (uint64_t i = 4; i < 7; i++)
		send(i, i % 2 ? GANTRY_IMM_MAX : 8, false);
}

/* Take one message, which must be message `number` and use receive `cookie`. */
static void take_one(uint64_t number, uint64_t cookie)
{
	struct gantry_msg msg;

	TEST_ASSERT_EQUAL_INT(1, comch_poll_recv(&consumer, &msg, 1));
	TEST_ASSERT_EQUAL_UINT64(number, *(uint64_t *)(void *)msg.imm);
	TEST_ASSERT_EQUAL_INT(0, msg.status);
	TEST_ASSERT_EQUAL_UINT64(cookie, msg.cookie);
	TEST_ASSERT_EQUAL_UINT(number < 4 ? DATA : 0, msg.length);
	for (uint32_t at = 0; at < msg.length; at++)
		TEST_ASSERT_EQUAL_UINT(1, bufs[cookie][at]);
}

/* Only the messages without a region arrive, with the receives from `cookie` on. */
static void take_remaining(uint64_t cookie)
{
	struct gantry_msg msg;

	for (uint64_t i = 4; i < 7; i++)
		take_one(i, cookie++);
	TEST_ASSERT_EQUAL_INT(0, comch_poll_recv(&consumer, &msg, 1));
	TEST_ASSERT_TRUE(in.position == producer.position && in.taken == 7);
}

static void messages_that_are_not_read_do_not_arrive(void)
{
	send_all();
	end_producer();
	take_remaining(0);
	for (uint32_t at = 0; at < DATA; at++)
		/* nothing was copied to the buffer of the first receive */
		TEST_ASSERT_EQUAL_UINT(0, bufs[0][at]);
}

static void messages_that_are_read_stay(void)
{
	uint64_t cookie;

	send_all();
	take_one(0, 0);
	TEST_ASSERT_EQUAL_INT(1, comch_poll_send(&producer, &cookie, 1));
	take_one(1, 1); /* the producer does not poll this completion */
	end_producer();
	take_remaining(2);
	for (uint32_t at = 0; at < DATA; at++)
		TEST_ASSERT_TRUE(bufs[0][at] == 1 && bufs[1][at] == 1);
}

/* The next message uses the receive of the withdrawn message. */
static void a_message_that_is_withdrawn_in_its_copy_does_not_arrive(void)
{
	for (uint64_t n_before = 0; n_before < 4; n_before++) {
		setUp();
		send_all();
		for (uint64_t i = 0; i < n_before; i++)
			take_one(i, i);
		ends_in_copy = true;
		take_remaining(n_before);
		/* the second half was copied after the withdrawal */
		TEST_ASSERT_EQUAL_UINT(CHANGED, bufs[n_before][DATA - 1]);
	}
}

/* A ring full of withdrawn messages is an error: a lane must not skip messages without end. */
static void ring_of_only_withdrawn_messages_is_an_error_after_one_lap(void)
{
	const struct comch_region_send from = {.ref = COMCH_REF(3, 1), .length = 8};
	struct gantry_msg msg;

	/* the first poll returns credit */
	TEST_ASSERT_EQUAL_INT(0, comch_poll_recv(&consumer, &msg, 1));
	for (uint32_t lap = 0; lap < 2; lap++) {
		for (uint32_t i = 0; i < SLOTS; i++) {
			memcpy(slots[i].payload, &from, sizeof(from));
			slots[i].trailer = comch_trailer_pack(
				(struct comch_trailer){.seq = lap * SLOTS + i + 1,
						       .kind = COMCH_K_REGION,
						       .length = COMCH_WITHDRAWN});
		}
		TEST_ASSERT_EQUAL_INT(lap == 0 ? 0 : -EPROTO, comch_poll_recv(&consumer, &msg, 1));
		TEST_ASSERT_EQUAL_UINT64(SLOTS, in.position);
	}
}

static void unknown_withdrawal_mark_is_an_error(void)
{
	struct gantry_msg msg;

	send(0, 8, true);
	slots[0].trailer = comch_trailer_pack((struct comch_trailer){
		.seq = 1, .kind = COMCH_K_REGION, .imm_len = 8, .length = COMCH_WITHDRAWN + 1});
	TEST_ASSERT_EQUAL_INT(-EPROTO, comch_poll_recv(&consumer, &msg, 1));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(messages_that_are_not_read_do_not_arrive);
	RUN_TEST(messages_that_are_read_stay);
	RUN_TEST(a_message_that_is_withdrawn_in_its_copy_does_not_arrive);
	RUN_TEST(ring_of_only_withdrawn_messages_is_an_error_after_one_lap);
	RUN_TEST(unknown_withdrawal_mark_is_an_error);
	return UNITY_END();
}
