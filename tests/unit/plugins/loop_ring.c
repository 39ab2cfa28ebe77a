/* SPDX-License-Identifier: BSD-3-Clause */
/* A ring of the loop whose counts of 32 bits wrap: messages, receives, and messages whose data is still read. */
#include <stdlib.h>

#include "../plugins/transport/loop/lane.c"
#include "unity.h"

#define SLOTS 64u
#define DEPTH 100u /* more than there are slots */
#define POSTS 128u
#define MESSAGES 20000u
#define FIRST (UINT32_MAX - 1500)

static struct loop_conn conn;
static struct loop_consumer consumer;
static struct loop_producer producer;
static struct loop_ring ring;
static struct loop_msg msgs_of_ring[SLOTS];
static const uint8_t *regions[SLOTS];
static struct gantry_recv posts[POSTS];
static struct loop_cookie cookies[SLOTS];
static struct gantry_region region = {.fd = -1};
static uint8_t memory[4096], bufs[POSTS][4096], inline_data[SLOTS * LOOP_INLINE];
static uint64_t payload;
static uint32_t n_posted, n_sent, n_taken, n_regions, n_told;

/* As both ends are after as many messages as brought them here. */
void setUp(void)
{
	for (uint32_t i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)(i * 7);
	conn.exports[3] = (struct loop_export){.rights = GANTRY_REMOTE_READ, .length = sizeof(memory), .addr = memory,
					       .region = &region};
	ring = (struct loop_ring){.mask = SLOTS - 1, .max_data = LOOP_INLINE, .inline_data = inline_data, .msgs = msgs_of_ring,
				  .regions = regions, .bell = -1, .head = FIRST, .tail = FIRST, .limit = FIRST};
	consumer = (struct loop_consumer){.conn = &conn, .depth = DEPTH, .max_data = sizeof(memory), .mask = POSTS - 1,
					  .n_posted = FIRST + 70, .n_used = FIRST + 70, .posts = posts, .bell = -1,
					  .payload = &payload, .active = 1, .rings = {&ring}};
	producer = (struct loop_producer){.conn = &conn, .ring = &ring, .head = FIRST, .end = FIRST, .max_data = sizeof(memory),
					  .cookie_head = UINT32_MAX - 100, .cookie_tail = UINT32_MAX - 100, .cookies = cookies};
	n_posted = n_sent = n_taken = n_regions = n_told = 0;
}

void tearDown(void)
{
}

/* Of message n: what it is, and how long. */
static uint32_t kind_of(uint32_t n)
{
	return n * 2654435761u >> 30;
}

static uint32_t length_of(uint32_t n)
{
	return kind_of(n) < 2 ? 0 : 1 + n * 40503u % 700;
}

static uint32_t imm_len_of(uint32_t n)
{
	return kind_of(n) == 0 ? GANTRY_IMM_MAX : 4 + n % 50;
}

static void post(void)
{
	struct gantry_recv recv = {.buf = bufs[n_posted % POSTS], .length = sizeof(bufs[0]), .cookie = n_posted};

	if (loop_post_recv(&consumer, &recv, 1) == 0)
		n_posted++;
}

static void send_next(void)
{
	uint32_t n = n_sent, imm[GANTRY_IMM_MAX / 4] = {n};
	struct gantry_send s = {.imm = imm, .imm_len = imm_len_of(n), .length = length_of(n), .cookie = n_regions};
	int rc;

	if (kind_of(n) == 2)
		s.data = memory + n % 100;
	if (kind_of(n) == 3) {
		s.region = &region;
		s.region_offset = n % 100;
	}
	rc = loop_send(&producer, &s, n % 3 ? GANTRY_SEND_MORE : 0);
	if (rc == -EAGAIN)
		return;
	TEST_ASSERT_EQUAL_INT(0, rc);
	TEST_ASSERT_TRUE_MESSAGE(n_sent < n_posted, "sent without credit");
	n_sent++;
	n_regions += kind_of(n) == 3;
}

static void take_some(void)
{
	struct gantry_msg msgs[5];
	int n = loop_poll_recv(&consumer, msgs, 5);

	for (int i = 0; i < n; i++, n_taken++) {
		uint32_t number;

		memcpy(&number, msgs[i].imm, sizeof(number));
		TEST_ASSERT_EQUAL_UINT(n_taken, number);
		TEST_ASSERT_EQUAL_UINT(imm_len_of(n_taken), msgs[i].imm_len);
		TEST_ASSERT_EQUAL_UINT64(n_taken, msgs[i].cookie);
		TEST_ASSERT_EQUAL_UINT(length_of(n_taken), msgs[i].length);
		if (length_of(n_taken))
			TEST_ASSERT_EQUAL_MEMORY(memory + n_taken % 100, bufs[n_taken % POSTS], length_of(n_taken));
	}
	TEST_ASSERT_TRUE(n_taken <= n_sent);
}

static void be_told(void)
{
	uint64_t told[3];
	int n = loop_poll_send(&producer, told, 3);

	for (int i = 0; i < n; i++)
		TEST_ASSERT_EQUAL_UINT64(n_told++, told[i]);
	TEST_ASSERT_TRUE(n_told <= n_regions);
}

/* Each of them now and then, and none for so long that the others cannot go on. */
static void all_messages_pass(void)
{
	uint32_t step = 1;

	for (uint32_t turn = 0; n_taken < MESSAGES || n_told < n_regions; turn++) {
		TEST_ASSERT_TRUE_MESSAGE(turn < 40 * MESSAGES, "nothing moves any more");
		step = step * 1103515245 + 12345;
		switch (step >> 29) {
		case 0:
		case 1:
		case 2:
			if (n_posted < MESSAGES)
				post();
			break;
		case 3:
		case 4:
		case 5:
			if (n_sent < MESSAGES)
				send_next();
			break;
		case 6:
			take_some();
			break;
		default:
			be_told();
			break;
		}
	}
	TEST_ASSERT_EQUAL_UINT(FIRST + MESSAGES, ring.tail);
	TEST_ASSERT_TRUE(ring.tail < FIRST && consumer.n_used < FIRST && producer.cookie_head < UINT32_MAX / 2);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(all_messages_pass);
	return UNITY_END();
}
