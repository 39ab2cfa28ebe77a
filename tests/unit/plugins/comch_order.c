/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of shm-comch between two threads: messages, credit, and the doorbell. One test runs with a
 * fence at each end, the other with membarrier(2).
 */
#include "../plugins/transport/shm-comch/shm_consumer.c"
#include "../plugins/transport/shm-comch/shm_producer.c"
#include "comch_pair.h"
#include "order_rig.h"
#include "unity.h"

#include <sys/eventfd.h>

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
	pair_begin(ORDER_POSTS, ORDER_DATA);
	consumer.clears = true;
	consumer.bell = producer.bell = eventfd(0, EFD_NONBLOCK);
}

void tearDown(void)
{
	close(consumer.bell);
}

static void pass_all(bool membarrier)
{
	static const struct gantry_transport_ops ops = {.poll_recv = comch_poll_recv,
							.consumer_arm = comch_consumer_arm,
							.consumer_disarm = comch_consumer_disarm};
	static const struct gantry_data_queue_ops data = {.post_recv = comch_post_recv_data,
							  .send = comch_send_data};
	const struct order_ends ends = {&ops, &data, &consumer, &producer, consumer.bell};

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
