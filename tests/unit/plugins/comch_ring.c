/* SPDX-License-Identifier: BSD-3-Clause */
/* A ring of shm-comch whose counts of 32 bits wrap: slots, messages, receives, and messages whose data is still read. */
#include <stdlib.h>

#include "../plugins/transport/shm-comch/consumer.c"
#include "../plugins/transport/shm-comch/producer.c"
#include "unity.h"

#define SLOTS 128u
#define DEPTH 32u
#define MESSAGES 20000u
#define FIRST_SLOT ((1ull << 32) - 3000) /* more than a lap before the wrap: what is left of the last lap counts as well */
#define FIRST_MESSAGE (UINT32_MAX - 1500)

static struct comch_conn conn;
static struct comch_consumer consumer;
static struct comch_producer producer;
static struct comch_in in;
static struct comch_page page;
static struct comch_slot slots[SLOTS];
static struct gantry_recv posts[DEPTH];
static struct comch_cookie cookies[DEPTH];
static struct gantry_region region = {.fd = -1};
static uint8_t memory[4096], bufs[DEPTH][4096];
static uint64_t payload;
static uint32_t n_posted, n_sent, n_taken, n_regions, n_told;

void comch_bell_ring(const struct comch_conn *conn_p, int fd)
{
	(void)conn_p;
	(void)fd;
}

void comch_bell_clear(const struct comch_conn *conn_p, int fd)
{
	(void)conn_p;
	(void)fd;
}

void comch_conn_poison(struct comch_conn *conn_p)
{
	(void)conn_p;
	TEST_FAIL_MESSAGE("a good peer is taken for a bad one");
}

/* As both ends are after as many messages as brought them here. */
void setUp(void)
{
	for (uint32_t i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)(i * 7);
	conn.imported[3] = (struct comch_import){.state = COMCH_I_LIVE, .ref = COMCH_REF(3, 1), .length = sizeof(memory),
						 .rights = GANTRY_REMOTE_READ, .addr = memory};
	conn.exported[3] = (struct comch_export){.state = COMCH_E_LIVE, .ref = COMCH_REF(3, 1), .length = sizeof(memory),
						 .rights = GANTRY_REMOTE_READ, .region = &region};
	for (uint64_t at = FIRST_SLOT - SLOTS; at < FIRST_SLOT; at++)
		slots[at % SLOTS].trailer = comch_full_word(at);
	page.ring[0].credit = comch_credit_pack((uint32_t)FIRST_SLOT, FIRST_MESSAGE);
	in = (struct comch_in){.slots = slots, .line = &page.ring[0], .mask = SLOTS - 1, .position = FIRST_SLOT,
			       .taken = FIRST_MESSAGE, .given_tail = (uint32_t)FIRST_SLOT, .given_limit = FIRST_MESSAGE};
	consumer = (struct comch_consumer){.posts = posts, .posts_last = DEPTH - 1, .depth = DEPTH, .max_data = sizeof(memory),
					   .n_posted = FIRST_MESSAGE + 70, .n_used = FIRST_MESSAGE + 70, .quarter = DEPTH / 4,
					   .page = &page, .conn = &conn, .payload = &payload, .active = 1, .in = {&in}};
	producer = (struct comch_producer){.slots = slots, .asleep = &page.asleep.asleep, .conn = &conn, .position = FIRST_SLOT,
					   .tail = FIRST_SLOT, .mask = SLOTS - 1, .more = (uint32_t)FIRST_SLOT - FIRST_MESSAGE,
					   .limit = FIRST_MESSAGE, .cookies = cookies, .cookie_mask = DEPTH - 1,
					   .cookie_head = UINT32_MAX - 100, .cookie_tail = UINT32_MAX - 100,
					   .max_data = sizeof(memory), .line = &page.ring[0]};
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
	return kind_of(n) == 0 ? COMCH_SLOT_PAYLOAD : 4 + n % 50;
}

static void post(void)
{
	struct gantry_recv recv = {.buf = bufs[n_posted % DEPTH], .length = sizeof(bufs[0]), .cookie = n_posted};

	if (comch_post_recv(&consumer, &recv, 1) == 0)
		n_posted++;
}

static void send(void)
{
	uint32_t n = n_sent, imm[COMCH_SLOT_PAYLOAD / 4] = {n};
	struct gantry_send s = {.imm = imm, .imm_len = imm_len_of(n), .length = length_of(n), .cookie = n_regions};
	int rc;

	if (kind_of(n) == 2)
		s.data = memory + n % 100;
	if (kind_of(n) == 3) {
		s.region = &region;
		s.region_offset = n % 100;
	}
	rc = comch_send(&producer, &s, n % 3 ? GANTRY_SEND_MORE : 0);
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
	int n = comch_poll_recv(&consumer, msgs, 5);

	TEST_ASSERT_TRUE(n >= 0);
	for (int i = 0; i < n; i++, n_taken++) {
		uint32_t number;

		memcpy(&number, msgs[i].imm, sizeof(number));
		TEST_ASSERT_EQUAL_UINT(n_taken, number);
		TEST_ASSERT_EQUAL_UINT(imm_len_of(n_taken), msgs[i].imm_len);
		TEST_ASSERT_EQUAL_UINT64(n_taken, msgs[i].cookie);
		TEST_ASSERT_EQUAL_UINT(length_of(n_taken), msgs[i].length);
		if (length_of(n_taken))
			TEST_ASSERT_EQUAL_MEMORY(memory + n_taken % 100, bufs[n_taken % DEPTH], length_of(n_taken));
	}
	TEST_ASSERT_TRUE(n_taken <= n_sent);
}

static void be_told(void)
{
	uint64_t told[3];
	int n = comch_poll_send(&producer, told, 3);

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
				send();
			break;
		case 6:
			take_some();
			break;
		default:
			be_told();
			break;
		}
	}
	TEST_ASSERT_TRUE(producer.position >> 32 == 1 && in.position == producer.position);
	TEST_ASSERT_TRUE(in.taken < FIRST_MESSAGE && consumer.n_used < FIRST_MESSAGE && producer.cookie_head < UINT32_MAX / 2);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(all_messages_pass);
	return UNITY_END();
}
