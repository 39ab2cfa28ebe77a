/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring.c - requests that an earlier process took from a ring and did not return are taken again,
 * and the event index: when the device asks for kicks, and when it sends interrupts
 */
#include <stdio.h>

#include "../../../plugins/role/vhost-user-blk/vhost_memory.c"
#include "../../../plugins/role/vhost-user-blk/vhost_packed.c"
#include "../../../plugins/role/vhost-user-blk/vhost_ring.c"
#include "../../../plugins/role/vhost-user-blk/vhost_split.c"
#include "unity.h"

#define NUM 8u
#define EVENTS (1ull << VIRTIO_RING_F_EVENT_IDX)
#define BASE 0xfffeu /* the indices wrap around */
/* the descriptor of request i: the requests are not in the order of their descriptors */
#define HEAD(i) (NUM - 1 - (i))

static uint8_t guest[4096] __attribute__((aligned(4096)));
static uint64_t
	kept[(sizeof(struct vhost_inflight) + NUM * sizeof(struct vhost_inflight_desc)) / 8];
static struct vhost_inflight *const inflight = (struct vhost_inflight *)(void *)kept;
static const struct vhost_memory memory = {
	1, {{.gpa = 0x1000, .bytes = sizeof(guest), .uva = 0x9000, .addr = guest, .handle = 2}}};
static struct vhost_ring ring;
static uint64_t features;

/* Take a request. The descriptors of most tests are empty. */
static int take(uint16_t *head_p)
{
	static struct vhost_chain chain;

	return vhost_ring_take(&ring, &memory, &chain, head_p);
}

/* A process starts. `base` is what the front end believes to be the next available entry. */
static void start_at(uint16_t base)
{
	const struct vhost_vring vring = {
		.num = NUM, .base = base, .desc = 0x9000, .avail = 0x9100, .used = 0x9200};

	TEST_ASSERT_EQUAL_INT(0, vhost_ring_init(&ring, &vring, &memory, inflight, features));
}

/* A process starts. The front end knows the index of the used ring. */
static void start(void)
{
	start_at(((const struct vring_used *)(void *)(guest + 0x200))->idx);
}

/* The guest makes n requests available; the device takes them. */
static void begin(uint16_t n)
{
	uint16_t head;

	memset(guest, 0, sizeof(guest));
	memset(kept, 0, sizeof(kept));
	((struct vring_used *)(void *)(guest + 0x200))->idx = BASE;
	start();
	for (uint16_t i = 0; i < n; i++)
		ring.split.avail->ring[(BASE + i) % NUM] = (uint16_t)HEAD(i);
	ring.split.avail->idx = (uint16_t)(BASE + n);
	for (uint16_t i = 0; i < n; i++) {
		TEST_ASSERT_EQUAL_INT(1, take(&head));
		TEST_ASSERT_EQUAL_UINT(HEAD(i), head);
	}
	TEST_ASSERT_EQUAL_INT(0, take(&head));
}

static void expect(const uint16_t *requests, unsigned n)
{
	uint16_t head = NUM;

	for (unsigned i = 0; i < n; i++) {
		TEST_ASSERT_TRUE(vhost_ring_notify(&ring, true));
		TEST_ASSERT_EQUAL_INT(1, take(&head));
		TEST_ASSERT_EQUAL_UINT(HEAD(requests[i]), head);
	}
	TEST_ASSERT_EQUAL_INT(0, take(&head));
	TEST_ASSERT_FALSE(vhost_ring_notify(&ring, true));
}

static void requests_in_flight_are_taken_again_in_their_order(void)
{
	static const uint16_t left[] = {0, 3, 4};

	begin(5);
	vhost_ring_put(&ring, HEAD(2), 1); /* not in the order in which they were taken */
	vhost_ring_put(&ring, HEAD(1), 1);
	start();
	expect(left, 3);
	start(); /* the process ends again before it returns one */
	expect(left, 3);
	for (unsigned i = 0; i < 3; i++)
		vhost_ring_put(&ring, (uint16_t)HEAD(left[i]), 1);
	TEST_ASSERT_EQUAL_UINT((uint16_t)(BASE + 5), ring.split.used->idx);
	start();
	expect(left, 0);
}

static void a_request_that_follows_those_in_flight_is_taken_after_them(void)
{
	static const uint16_t left[] = {0, 2, 6};

	begin(3);
	vhost_ring_put(&ring, HEAD(1), 1);
	ring.split.avail->ring[(BASE + 3) % NUM] = HEAD(6);
	ring.split.avail->idx = (uint16_t)(BASE + 4);
	start();
	expect(left, 3);
	TEST_ASSERT_TRUE(inflight->desc[HEAD(6)].counter > inflight->desc[HEAD(2)].counter);
}

/* The guest has its answer, but the process ended before it noted this. */
static void a_request_that_was_just_returned_is_not_taken_again(void)
{
	static const uint16_t left[] = {0, 2};

	begin(3);
	vhost_ring_put(&ring, HEAD(1), 1);
	inflight->desc[HEAD(1)].inflight = 1;
	inflight->used_idx--;
	start();
	expect(left, 2);
}

/* The process ended after it had noted which request it returns, before the guest could see it. */
static void a_request_that_was_not_quite_returned_is_taken_again(void)
{
	static const uint16_t left[] = {0, 1, 2};

	begin(3);
	inflight->last_batch_head = HEAD(1);
	start();
	expect(left, 3);
}

static void a_front_end_that_changes_the_memory_harms_only_itself(void)
{
	begin(3);
	memset(kept, 0xff, sizeof(kept));
	for (unsigned i = 0; i < NUM; i++)
		inflight->desc[i].inflight = 1;
	start();
	TEST_ASSERT_EQUAL_UINT(NUM - 1, ring.n_resubmit); /* the last one counts as returned */
}

/* The front end read the index of the used ring before the earlier process returned the last. */
static void requests_returned_after_the_loss_are_not_taken_again(void)
{
	static const uint16_t left[] = {2, 6};

	begin(3);
	for (uint16_t i = 0; i < 3; i++)
		vhost_ring_put(&ring, (uint16_t)HEAD(i), 1);
	start_at((uint16_t)(BASE + 2));
	expect(left, 0);
	start_at(BASE);
	expect(left, 0);

	begin(3);
	vhost_ring_put(&ring, HEAD(0), 1);
	vhost_ring_put(&ring, HEAD(1), 1);
	ring.split.avail->ring[(BASE + 3) % NUM] = HEAD(6);
	ring.split.avail->idx = (uint16_t)(BASE + 4);
	start_at(BASE);
	expect(left, 2);
}

/* A front end that has just made the memory can start the ring anywhere. */
static void with_new_memory_the_ring_continues_at_its_base(void)
{
	begin(3);
	memset(kept, 0, sizeof(kept));
	start_at(5);
	TEST_ASSERT_EQUAL_UINT(5, ring.split.next_avail);
}

static void without_that_memory_the_ring_continues_at_its_base(void)
{
	const struct vhost_vring vring = {
		.num = NUM, .base = 5, .desc = 0x9000, .avail = 0x9100, .used = 0x9200};

	begin(3);
	TEST_ASSERT_EQUAL_INT(0, vhost_ring_init(&ring, &vring, &memory, NULL, 0));
	TEST_ASSERT_EQUAL_UINT(5, ring.split.next_avail);
	TEST_ASSERT_EQUAL_UINT(0, ring.n_resubmit);
}

static void a_ring_outside_the_memory_is_refused(void)
{
	struct vhost_vring vring = {
		.num = NUM, .base = 0, .desc = 0x9000, .avail = 0x9100, .used = 0x9fc0};

	TEST_ASSERT_EQUAL_INT(-EFAULT, vhost_ring_init(&ring, &vring, &memory, NULL, 0));
	vring.used = 0x9200;
	vring.desc = 0x8ff0;
	TEST_ASSERT_EQUAL_INT(-EFAULT, vhost_ring_init(&ring, &vring, &memory, NULL, 0));
	vring.num = 0;
	TEST_ASSERT_EQUAL_INT(-EINVAL, vhost_ring_init(&ring, &vring, &memory, NULL, 0));
}

/* -- event index -- */

/* where VIRTIO 1.2, sections 2.7.6 and 2.7.8, places them */
static uint16_t *const call_at = (uint16_t *)(void *)(guest + 0x100 + 4 + 2 * NUM);
static const uint16_t *const kick_at = (const uint16_t *)(void *)(guest + 0x200 + 4 + 8 * NUM);

/* As begin(), with event index, and after the first interrupt. */
static void begin_events(uint16_t n)
{
	features = EVENTS;
	begin(n);
	TEST_ASSERT_TRUE(vhost_ring_wants_call(&ring));
	*call_at = BASE - 1; /* the guest asks for none */
}

void tearDown(void)
{
	features = 0;
}

static void the_device_asks_for_a_kick_at_the_next_entry(void)
{
	begin_events(0);
	for (uint16_t i = 0; i < 5; i++) { /* the index wraps around */
		uint16_t head;

		TEST_ASSERT_FALSE(vhost_ring_notify(&ring, true));
		TEST_ASSERT_EQUAL_UINT((uint16_t)(BASE + i), *kick_at);
		vhost_ring_notify(&ring, false); /* at an entry that the device has taken */
		TEST_ASSERT_EQUAL_UINT((uint16_t)(BASE + i - 1), *kick_at);
		ring.split.avail->ring[(BASE + i) % NUM] = i;
		ring.split.avail->idx = (uint16_t)(BASE + i + 1);
		TEST_ASSERT_TRUE(vhost_ring_notify(&ring, true));
		TEST_ASSERT_EQUAL_INT(1, take(&head));
	}
	TEST_ASSERT_EQUAL_UINT((uint16_t)(BASE + 4), *kick_at); /* of the last notify */
}

static void the_flag_against_kicks_is_not_used(void)
{
	features = EVENTS;
	begin(1);
	ring.split.used->flags = VRING_USED_F_NO_NOTIFY; /* of an earlier process */
	start();
	TEST_ASSERT_EQUAL_UINT(0, ring.split.used->flags);
	vhost_ring_notify(&ring, false);
	TEST_ASSERT_EQUAL_UINT(0, ring.split.used->flags);
}

static void without_event_index_its_words_are_not_used(void)
{
	begin(1);
	*call_at = (uint16_t)(BASE + 100);
	TEST_ASSERT_TRUE(vhost_ring_wants_call(&ring));
	vhost_ring_put(&ring, HEAD(0), 1);
	TEST_ASSERT_TRUE(vhost_ring_wants_call(&ring));
	ring.split.avail->flags = VRING_AVAIL_F_NO_INTERRUPT;
	*call_at = BASE;
	TEST_ASSERT_FALSE(vhost_ring_wants_call(&ring));
	vhost_ring_notify(&ring, true);
	TEST_ASSERT_EQUAL_UINT(0, *kick_at);
	vhost_ring_notify(&ring, false);
	TEST_ASSERT_EQUAL_UINT(VRING_USED_F_NO_NOTIFY, ring.split.used->flags);
}

/* The device returns n requests, then decides: it calls if one of them is the event. */
static void an_interrupt_is_sent_when_the_event_is_crossed(void)
{
	for (uint16_t n = 0; n <= 5; n++)
		for (int at = -3; at < 8; at++) {
			begin_events(5);
			*call_at = (uint16_t)(BASE + at);
			for (uint16_t i = 0; i < n; i++)
				vhost_ring_put(&ring, HEAD(i), 1);
			TEST_ASSERT_EQUAL_INT(at >= 0 && at < n, vhost_ring_wants_call(&ring));
			TEST_ASSERT_FALSE(vhost_ring_wants_call(&ring)); /* once */
		}
}

static void a_guest_that_did_not_ask_gets_no_interrupt(void)
{
	begin_events(5);
	for (uint16_t i = 0; i < 5; i++) {
		vhost_ring_put(&ring, HEAD(i), 1);
		TEST_ASSERT_FALSE(vhost_ring_wants_call(&ring));
	}
	TEST_ASSERT_EQUAL_UINT(3, ring.split.used->idx); /* it has wrapped around */
	*call_at = 3;
	TEST_ASSERT_FALSE(vhost_ring_wants_call(&ring));
}

static void with_event_index_the_flag_against_interrupts_is_ignored(void)
{
	begin_events(1);
	ring.split.avail->flags = VRING_AVAIL_F_NO_INTERRUPT;
	*call_at = BASE;
	vhost_ring_put(&ring, HEAD(0), 1);
	TEST_ASSERT_TRUE(vhost_ring_wants_call(&ring));
}

/* An earlier process may have returned the entry of the event, and ended before it called. */
static void after_a_start_an_interrupt_is_sent_once(void)
{
	begin_events(3);
	*call_at = BASE;
	vhost_ring_put(&ring, HEAD(0), 1);
	start();
	TEST_ASSERT_TRUE(vhost_ring_wants_call(&ring));
	vhost_ring_put(&ring, HEAD(1), 1);
	TEST_ASSERT_FALSE(vhost_ring_wants_call(&ring));
	ring.must_call = true; /* the descriptor for interrupts has changed */
	TEST_ASSERT_TRUE(vhost_ring_wants_call(&ring));
	TEST_ASSERT_FALSE(vhost_ring_wants_call(&ring));
}

static void a_ring_whose_event_word_is_outside_the_memory_is_refused(void)
{
	struct vhost_vring vring = {.num = NUM, .desc = 0x9000, .avail = 0x9100, .used = 0x9200};

	vring.used = 0xa000 - (4 + 8 * NUM);
	TEST_ASSERT_EQUAL_INT(-EFAULT, vhost_ring_init(&ring, &vring, &memory, NULL, EVENTS));
	vring.used -= 4;
	TEST_ASSERT_EQUAL_INT(0, vhost_ring_init(&ring, &vring, &memory, NULL, EVENTS));
	vring.used = 0x9200;
	vring.avail = 0xa000 - (4 + 2 * NUM);
	TEST_ASSERT_EQUAL_INT(-EFAULT, vhost_ring_init(&ring, &vring, &memory, NULL, EVENTS));
	vring.avail -= 2;
	TEST_ASSERT_EQUAL_INT(0, vhost_ring_init(&ring, &vring, &memory, NULL, EVENTS));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(requests_in_flight_are_taken_again_in_their_order);
	RUN_TEST(a_request_that_follows_those_in_flight_is_taken_after_them);
	RUN_TEST(a_request_that_was_just_returned_is_not_taken_again);
	RUN_TEST(a_request_that_was_not_quite_returned_is_taken_again);
	RUN_TEST(a_front_end_that_changes_the_memory_harms_only_itself);
	RUN_TEST(requests_returned_after_the_loss_are_not_taken_again);
	RUN_TEST(with_new_memory_the_ring_continues_at_its_base);
	RUN_TEST(without_that_memory_the_ring_continues_at_its_base);
	RUN_TEST(a_ring_outside_the_memory_is_refused);
	RUN_TEST(the_device_asks_for_a_kick_at_the_next_entry);
	RUN_TEST(the_flag_against_kicks_is_not_used);
	RUN_TEST(without_event_index_its_words_are_not_used);
	RUN_TEST(an_interrupt_is_sent_when_the_event_is_crossed);
	RUN_TEST(a_guest_that_did_not_ask_gets_no_interrupt);
	RUN_TEST(with_event_index_the_flag_against_interrupts_is_ignored);
	RUN_TEST(after_a_start_an_interrupt_is_sent_once);
	RUN_TEST(a_ring_whose_event_word_is_outside_the_memory_is_refused);
	return UNITY_END();
}
