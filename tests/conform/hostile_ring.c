/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostile_ring.c - garbage in shared memory: invalid slots of a ring, messages without credit, and
 * invalid credit.
 */
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <gantry/memfd.h>

#include "conform/hostile.h"

#define SLOTS 256u
#define FIXED (F_SEAL_SHRINK | F_SEAL_GROW)

static void *rx, *tx;
static uint8_t buf[16][4096];

/* Give the attacker a ring to a consumer of the server. */
static struct comch_slot *open_ring(uint32_t max_data)
{
	struct gantry_queue_attr attr = {.depth = 16, .max_data = max_data};
	struct comch_producer_up up = {.id = 1, .slots = SLOTS};
	struct comch_frame f;

	TEST_ASSERT_EQUAL_INT(0, rig.ops->consumer_create(rig.b.conn, &attr, &up.consumer, &rx));
	for (int i = 0; i < 16; i++) {
		struct gantry_recv recv = {.buf = buf[i], .length = sizeof(buf[i])};

		TEST_ASSERT_EQUAL_INT(0, rig.ops->data->post_recv(rx, &recv, 1));
	}
	evil_memory(&evil.ring, SLOTS * sizeof(struct comch_slot), FIXED | F_SEAL_FUTURE_WRITE);
	evil_frame(COMCH_PRODUCER, &up, sizeof(up), &evil.ring.fd, 1);
	evil_expect(COMCH_PRODUCER_OK, &f, NULL);
	TEST_ASSERT_TRUE(f.ok.line < COMCH_RINGS);
	return evil.ring.p;
}

static void put(struct comch_slot *s, uint32_t seq, uint8_t kind, uint8_t imm_len, uint16_t length)
{
	gantry_shm_st64_release(&s->trailer, comch_trailer_pack((struct comch_trailer){
						     seq, kind, imm_len, length}));
}

/* The consumer delivers `whole` valid messages, and then reports the violation. */
static void expect_breach(int whole)
{
	struct gantry_msg msgs[16];

	if (whole)
		TEST_ASSERT_EQUAL_INT(whole, rig.ops->poll_recv(rx, msgs, 16));
	TEST_ASSERT_EQUAL_INT(-EPROTO, rig.ops->poll_recv(rx, msgs, 16));
	TEST_ASSERT_EQUAL_INT(-EPROTO, rig.ops->poll_recv(rx, msgs, 16));
	TEST_ASSERT_TRUE(rig.ops->consumer_arm(rx) != 0);
}

#define RING_ATTACK(name, max_data, whole) \
	static void name##_ring(struct comch_slot *s); \
	ATTACK(name, 1, "corrupt queue (queue=receive): the peer wrote an invalid entry") \
	{ \
		name##_ring(open_ring(max_data)); \
		expect_breach(whole); \
	} \
	static void name##_ring(struct comch_slot *s)

RING_ATTACK(seq_of_the_future, 4096, 0)
{
	put(s, 2, COMCH_K_IMM, 8, 0);
}

RING_ATTACK(seq_all_ones, 4096, 0)
{
	put(s, UINT32_MAX, COMCH_K_IMM, 8, 0);
}

RING_ATTACK(seq_of_an_earlier_lap, 4096, 0)
{
	put(s, 1 - SLOTS, COMCH_K_IMM, 8, 0);
}

RING_ATTACK(seq_jumps_after_good_ones, 4096, 2)
{
	put(&s[0], 1, COMCH_K_IMM, 8, 0);
	put(&s[1], 2, COMCH_K_IMM, 8, 0);
	put(&s[2], 4, COMCH_K_IMM, 8, 0);
}

RING_ATTACK(kind_zero, 4096, 0)
{
	put(s, 1, 0, 8, 0);
}

RING_ATTACK(kind_unknown, 4096, 0)
{
	put(s, 1, 200, 8, 0);
}

RING_ATTACK(message_begins_with_a_later_slot, 4096, 0)
{
	put(s, 1, COMCH_K_MORE, 8, 8);
}

RING_ATTACK(immediate_data_too_long, 4096, 0)
{
	put(s, 1, COMCH_K_IMM, 57, 0);
}

RING_ATTACK(immediate_data_much_too_long, 4096, 0)
{
	put(s, 1, COMCH_K_INLINE, 255, 1);
}

RING_ATTACK(immediate_with_a_length, 4096, 0)
{
	put(s, 1, COMCH_K_IMM, 8, 8);
}

RING_ATTACK(end_of_inline_data_is_missing, 4096, 0)
{
	put(s, 1, COMCH_K_INLINE, 50, 7);
}

RING_ATTACK(inline_data_of_length_zero, 4096, 0)
{
	put(s, 1, COMCH_K_INLINE, 8, 0);
}

RING_ATTACK(inline_data_too_long, 65535, 0)
{
	put(s, 1, COMCH_K_INLINE, 0, 4097);
}

RING_ATTACK(inline_data_beyond_max_data, 100, 0)
{
	for (uint32_t i = 1; i < 10; i++)
		put(&s[i], i + 1, COMCH_K_MORE, 0, 0);
	put(s, 1, COMCH_K_INLINE, 0, 101);
}

RING_ATTACK(inline_data_is_missing, 4096, 0)
{
	put(s, 1, COMCH_K_INLINE, 0, 4096);
}

RING_ATTACK(inline_data_of_an_earlier_lap, 4096, 0)
{
	for (uint32_t i = 1; i < 4; i++)
		put(&s[i], i + 1 - (i == 2 ? SLOTS : 0), COMCH_K_MORE, 0, 0);
	put(s, 1, COMCH_K_INLINE, 0, 150);
}

RING_ATTACK(inline_data_of_another_kind, 4096, 0)
{
	for (uint32_t i = 1; i < 4; i++)
		put(&s[i], i + 1, i == 2 ? COMCH_K_IMM : COMCH_K_MORE, 0, 0);
	put(s, 1, COMCH_K_INLINE, 0, 150);
}

static void region_send(struct comch_slot *s, uint32_t ref, uint32_t length, uint64_t offset,
			uint8_t kind, uint8_t imm)
{
	struct comch_region_send r = {.ref = ref, .length = length, .offset = offset};
	uint8_t payload[COMCH_SLOT_PAYLOAD] = {0};

	memcpy(payload, &r, sizeof(r));
	gantry_shm_write(s->payload, payload, sizeof(payload));
	put(s, 1, kind, imm, 0);
}

RING_ATTACK(region_never_exported, 4096, 0)
{
	region_send(s, COMCH_REF(0, 1), 512, 0, COMCH_K_REGION, 0);
}

RING_ATTACK(region_ref_all_ones, 4096, 0)
{
	region_send(s, UINT32_MAX, 512, 0, COMCH_K_REGION, 0);
}

RING_ATTACK(region_ref_zero, 4096, 0)
{
	region_send(s, 0, 512, 0, COMCH_K_REGION, 0);
}

static void with_region(uint32_t rights)
{
	struct comch_region_up up = {
		.ref = COMCH_REF(3, 1), .handle = 1, .length = 4096, .rights = rights};
	struct comch_frame f;
	struct evil_memory m;

	evil_memory(&m, 4096, FIXED);
	evil_frame(COMCH_REGION, &up, sizeof(up), &m.fd, 1);
	evil_memory_close(&m);
	evil_expect(COMCH_REGION_OK, &f, NULL);
}

RING_ATTACK(region_behind_its_end, 4096, 0)
{
	with_region(GANTRY_REMOTE_READ);
	region_send(s, COMCH_REF(3, 1), 512, 4096 - 511, COMCH_K_REGION, 0);
}

RING_ATTACK(region_offset_that_wraps, 4096, 0)
{
	with_region(GANTRY_REMOTE_READ);
	region_send(s, COMCH_REF(3, 1), 512, UINT64_MAX - 511, COMCH_K_REGION, 0);
}

RING_ATTACK(region_without_the_right_to_read, 4096, 0)
{
	with_region(GANTRY_REMOTE_WRITE);
	region_send(s, COMCH_REF(3, 1), 512, 0, COMCH_K_REGION, 0);
}

RING_ATTACK(region_of_a_later_generation, 4096, 0)
{
	with_region(GANTRY_REMOTE_READ);
	region_send(s, COMCH_REF(3, 2), 512, 0, COMCH_K_REGION, 0);
}

RING_ATTACK(region_data_of_length_zero, 4096, 0)
{
	with_region(GANTRY_REMOTE_READ);
	region_send(s, COMCH_REF(3, 1), 0, 0, COMCH_K_REGION, 0);
}

RING_ATTACK(region_data_beyond_max_data, 100, 0)
{
	with_region(GANTRY_REMOTE_READ);
	region_send(s, COMCH_REF(3, 1), 101, 0, COMCH_K_REGION, 0);
}

RING_ATTACK(region_with_too_much_immediate_data, 4096, 0)
{
	with_region(GANTRY_REMOTE_READ);
	region_send(s, COMCH_REF(3, 1), 100, 0, COMCH_K_REGION, COMCH_REGION_IMM + 1);
}

RING_ATTACK(region_whose_second_slot_is_missing, 4096, 0)
{
	with_region(GANTRY_REMOTE_READ);
	region_send(s, COMCH_REF(3, 1), 100, 0, COMCH_K_REGION2, 50);
}

/*
 * The attacker sends more messages than it has credit for. Messages without a receive wait, and
 * none is lost or duplicated.
 */
ATTACK(sends_without_credit, 1, NULL)
{
	struct comch_slot *s = open_ring(0);
	struct gantry_msg msgs[64];

	for (uint32_t i = 0; i < SLOTS; i++)
		put(&s[i], i + 1, COMCH_K_IMM, 8, 0);
	TEST_ASSERT_EQUAL_INT(16, rig.ops->poll_recv(rx, msgs, 64));
	TEST_ASSERT_EQUAL_INT(0, rig.ops->poll_recv(rx, msgs, 64));
	TEST_ASSERT_EQUAL_INT(0, rig.ops->post_recv(rx, 5));
	TEST_ASSERT_EQUAL_INT(5, rig.ops->poll_recv(rx, msgs, 64));
}

/* A message of a revoked region is no violation: it arrives without its data. */
ATTACK(region_revoked_before_it_is_read, 1, NULL)
{
	struct comch_slot *s = open_ring(4096);
	struct comch_id id = {.id = COMCH_REF(3, 1)};
	struct comch_frame f;
	struct gantry_msg msg;

	with_region(GANTRY_REMOTE_READ);
	region_send(s, COMCH_REF(3, 1), 100, 0, COMCH_K_REGION, 0);
	evil_frame(COMCH_REVOKE, &id, sizeof(id), NULL, 0);
	evil_expect(COMCH_RELEASED, &f, NULL);
	TEST_ASSERT_EQUAL_INT(1, rig.ops->poll_recv(rx, &msg, 1));
	TEST_ASSERT_EQUAL_INT(-EFAULT, msg.status);
	TEST_ASSERT_EQUAL_UINT(0, msg.length);
}

/* Make the attacker a consumer, to which the server sends. */
static struct comch_page *open_page(void)
{
	struct comch_consumer_up up = {.id = 1, .depth = 16, .max_data = 4096};
	struct gantry_queue_attr attr = {.depth = 16, .max_data = 4096};
	struct comch_producer_ok ok = {.line = 0};
	struct comch_frame f;
	int n = rig.b.n_up, fds[2];

	evil_memory(&evil.page, COMCH_PAGE_BYTES, FIXED | F_SEAL_FUTURE_WRITE);
	fds[0] = evil.page.fd;
	fds[1] = eventfd(0, EFD_NONBLOCK);
	evil_frame(COMCH_CONSUMER, &up, sizeof(up), fds, 2);
	close(fds[1]);
	rig_until(rig.b.n_up, n + 1);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->producer_create(rig.b.conn, 1, &attr, &tx));
	evil_expect(COMCH_PRODUCER, &f, fds);
	close(fds[0]);
	ok.id = f.producer.id;
	evil_frame(COMCH_PRODUCER_OK, &ok, sizeof(ok), NULL, 0);
	rig_settle();
	return evil.page.p;
}

static int send_one(void)
{

	return rig.ops->send(tx, "x", 1, 0);
}

ATTACK(consumed_count_exceeds_the_sent_count, 1,
       "corrupt queue (queue=send): the peer consumed entries that were not sent")
{
	struct comch_page *page = open_page();

	gantry_shm_st64_release(&page->ring[0].credit, comch_credit_pack(5, 100));
	TEST_ASSERT_TRUE(send_one() < 0);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, send_one());
}

ATTACK(consumed_count_decreases, 1,
       "corrupt queue (queue=send): the peer consumed entries that were not sent")
{
	struct comch_page *page = open_page();

	gantry_shm_st64_release(&page->ring[0].credit, comch_credit_pack(0, 2));
	TEST_ASSERT_EQUAL_INT(0, send_one());
	TEST_ASSERT_EQUAL_INT(0, send_one());
	gantry_shm_st64_release(&page->ring[0].credit, comch_credit_pack(2, 3));
	TEST_ASSERT_EQUAL_INT(0, send_one());
	gantry_shm_st64_release(&page->ring[0].credit, comch_credit_pack(1, 4));
	TEST_ASSERT_TRUE(send_one() < 0);
}

/*
 * The attacker gives unlimited credit. The size of the ring still limits the server, which never
 * overwrites a slot that was not consumed.
 */
ATTACK(unlimited_credit, 1, NULL)
{
	struct comch_page *page = open_page();
	int n = 0;

	gantry_shm_st64_release(&page->ring[0].credit, comch_credit_pack(0, INT32_MAX));
	while (n < 10000 && send_one() == 0)
		n++;
	TEST_ASSERT_EQUAL_INT(256, n);
	TEST_ASSERT_EQUAL_INT(-EAGAIN, send_one());
}

/* The attacker always claims to sleep: that costs the server only a system call for each send. */
ATTACK(peer_always_claims_to_sleep, 1, NULL)
{
	struct comch_page *page = open_page();

	gantry_shm_st32(&page->asleep.asleep, 0xdeadbeef);
	gantry_shm_st64_release(&page->ring[0].credit, comch_credit_pack(0, 100));
	for (int i = 0; i < 100; i++)
		TEST_ASSERT_EQUAL_INT(0, send_one());
}

ATTACK(confirms_a_producer_twice, 1, "twice")
{
	struct comch_producer_ok ok = {.id = 1, .line = 1};

	open_page();
	evil_frame(COMCH_PRODUCER_OK, &ok, sizeof(ok), NULL, 0);
}

ATTACK(confirms_a_line_that_does_not_exist, 1, "never existed")
{
	struct comch_producer_ok ok = {.id = 1, .line = COMCH_RINGS};

	open_page();
	evil_frame(COMCH_PRODUCER_OK, &ok, sizeof(ok), NULL, 0);
}

void ring_attacks(void)
{
	RUN_TEST(seq_of_the_future);
	RUN_TEST(seq_all_ones);
	RUN_TEST(seq_of_an_earlier_lap);
	RUN_TEST(seq_jumps_after_good_ones);
	RUN_TEST(kind_zero);
	RUN_TEST(kind_unknown);
	RUN_TEST(message_begins_with_a_later_slot);
	RUN_TEST(immediate_data_too_long);
	RUN_TEST(immediate_data_much_too_long);
	RUN_TEST(immediate_with_a_length);
	RUN_TEST(end_of_inline_data_is_missing);
	RUN_TEST(inline_data_of_length_zero);
	RUN_TEST(inline_data_too_long);
	RUN_TEST(inline_data_beyond_max_data);
	RUN_TEST(inline_data_is_missing);
	RUN_TEST(inline_data_of_an_earlier_lap);
	RUN_TEST(inline_data_of_another_kind);
	RUN_TEST(region_never_exported);
	RUN_TEST(region_ref_all_ones);
	RUN_TEST(region_ref_zero);
	RUN_TEST(region_behind_its_end);
	RUN_TEST(region_offset_that_wraps);
	RUN_TEST(region_without_the_right_to_read);
	RUN_TEST(region_of_a_later_generation);
	RUN_TEST(region_data_of_length_zero);
	RUN_TEST(region_data_beyond_max_data);
	RUN_TEST(region_with_too_much_immediate_data);
	RUN_TEST(region_whose_second_slot_is_missing);
	RUN_TEST(sends_without_credit);
	RUN_TEST(region_revoked_before_it_is_read);
	RUN_TEST(consumed_count_exceeds_the_sent_count);
	RUN_TEST(consumed_count_decreases);
	RUN_TEST(unlimited_credit);
	RUN_TEST(peer_always_claims_to_sleep);
	RUN_TEST(confirms_a_producer_twice);
	RUN_TEST(confirms_a_line_that_does_not_exist);
}
