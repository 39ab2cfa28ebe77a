/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of shm-comch between two threads: messages, credit, and the doorbell. One test runs with a
 * fence at each end, the other with membarrier(2).
 */
#include "../plugins/transport/shm-comch/shm_consumer.c"
#include "../plugins/transport/shm-comch/shm_producer.c"
#include "order_rig.h"
#include "unity.h"

#include <sys/eventfd.h>

#define SLOTS 128u

static struct comch_conn conn;
static struct comch_consumer consumer;
static struct comch_producer producer;
static struct comch_in in;
static struct comch_page page;
static struct comch_slot slots[SLOTS];
static struct gantry_recv posts[ORDER_POSTS];
static struct comch_cookie cookies[1];
static uint64_t payload;

void comch_bell_ring(const struct comch_conn *conn_p, int fd)
{
	(void)conn_p;
	TEST_ASSERT_EQUAL_INT(0, eventfd_write(fd, 1));
}

void comch_bell_clear(struct comch_conn *conn_p, int fd)
{
	eventfd_t n;

	(void)conn_p;
	(void)eventfd_read(fd, &n);
}

void comch_conn_poison(struct comch_conn *conn_p, enum comch_corruption what)
{
	(void)conn_p;
	(void)what;
	TEST_FAIL_MESSAGE("a good peer is taken for a bad one");
}

void setUp(void)
{
	memset(slots, 0, sizeof(slots));
	memset(&page, 0, sizeof(page));
	memset(&conn, 0, sizeof(conn));
	in = (struct comch_in){.slots = slots, .line = &page.ring[0], .mask = SLOTS - 1};
	consumer = (struct comch_consumer){.posts = posts,
					   .posts_last = ORDER_POSTS - 1,
					   .depth = ORDER_POSTS,
					   .max_data = ORDER_DATA,
					   .credit_batch = 1,
					   .clears = true,
					   .page = &page,
					   .conn = &conn,
					   .payload = &payload,
					   .active = 1,
					   .bell = eventfd(0, EFD_NONBLOCK),
					   .in = {&in}};
	producer = (struct comch_producer){.slots = slots,
					   .asleep = &page.asleep.asleep,
					   .conn = &conn,
					   .mask = SLOTS - 1,
					   .cookies = cookies,
					   .max_data = ORDER_DATA,
					   .bell = consumer.bell,
					   .line = &page.ring[0]};
}

void tearDown(void)
{
	close(consumer.bell);
}

static void pass_all(bool membarrier)
{
	static const struct gantry_transport_ops ops = {.post_recv = comch_post_recv,
							.poll_recv = comch_poll_recv,
							.consumer_arm = comch_consumer_arm,
							.consumer_disarm = comch_consumer_disarm,
							.send = comch_send};
	const struct order_ends ends = {&ops, &consumer, &producer, consumer.bell};

	conn.membarrier = membarrier;
	producer.fence = !membarrier;
	order_pass_all(&ends);
	TEST_ASSERT_EQUAL_UINT64(producer.position, in.position);
}

static void with_a_fence_at_each_end(void)
{
	pass_all(false);
}

static void with_membarrier(void)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0))
		TEST_IGNORE_MESSAGE("no membarrier(2) here");
	pass_all(true);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(with_a_fence_at_each_end);
	RUN_TEST(with_membarrier);
	return UNITY_END();
}
