/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fake of librdmacm: events that a test injects, misuse that must be recorded, and threads that
 * wait.
 */
#include <pthread.h>

#include "pair.h"

static struct pair pair;

void setUp(void)
{
	fake_verbs_reset();
	pair_init(&pair);
}

void tearDown(void)
{
	TEST_ASSERT_EQUAL_STRING("", fake_verbs_check_clean());
}

/* Set up a, which can connect now, and b, which listens and has no queue pair. */
static void start(void)
{
	pair_listen(&pair);
	pair_furnish(&pair, &pair.a);
}

static void finish(void)
{
	pair_unfurnish(&pair.a);
	rdma_destroy_event_channel(pair.a.channel);
	TEST_ASSERT_EQUAL_INT(0, rdma_destroy_id(pair.listener));
	rdma_destroy_event_channel(pair.b.channel);
}

/* -- events -- */

static void test_any_event(void)
{
	start();
	for (int type = RDMA_CM_EVENT_ADDR_RESOLVED; type <= RDMA_CM_EVENT_TIMEWAIT_EXIT; type++)
		if (type != RDMA_CM_EVENT_CONNECT_REQUEST &&
		    type != RDMA_CM_EVENT_CONNECT_RESPONSE) {
			fake_cm_push(pair.a.id, (enum rdma_cm_event_type)type, -type, NULL, 0);
			TEST_ASSERT_EQUAL_PTR(
				pair.a.id,
				pair_expect(pair.a.channel, (enum rdma_cm_event_type)type, -type));
		}
	finish();
}

static void test_a_forged_request(void)
{
	struct rdma_cm_event *event;

	start();
	fake_cm_push(pair.listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0, "forged", 6);
	TEST_ASSERT_EQUAL_INT(0, rdma_get_cm_event(pair.b.channel, &event));
	TEST_ASSERT_EQUAL_UINT8(56, event->param.conn.private_data_len);
	TEST_ASSERT_EQUAL_MEMORY("forged", event->param.conn.private_data, 7);
	pair.b.id = event->id;
	TEST_ASSERT_EQUAL_INT(0, rdma_ack_cm_event(event));
	pair_furnish(&pair, &pair.b);
	TEST_ASSERT_EQUAL_INT(0, rdma_accept(pair.b.id, &pair.param));
	pair_expect_none(pair.b.channel);
	pair_unfurnish(&pair.b);
	/* finish() destroys the listener before the program gets this event: no leak */
	fake_cm_push(pair.listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0, NULL, 0);
	finish();
}

static void test_device_removal(void)
{
	struct ibv_async_event event;

	pair_up(&pair);
	fake_device_remove(1);
	pair_expect_none(pair.a.channel);
	TEST_ASSERT_EQUAL_PTR(pair.b.id,
			      pair_expect(pair.b.channel, RDMA_CM_EVENT_DEVICE_REMOVAL, 0));
	TEST_ASSERT_EQUAL_PTR(pair.listener,
			      pair_expect(pair.b.channel, RDMA_CM_EVENT_DEVICE_REMOVAL, 0));
	TEST_ASSERT_EQUAL_INT(0, ibv_get_async_event(pair.b.id->verbs, &event));
	TEST_ASSERT_EQUAL_INT(IBV_EVENT_DEVICE_FATAL, event.event_type);
	ibv_ack_async_event(&event);
	pair_down(&pair);
}

static void test_migrate(void)
{
	struct rdma_event_channel *other;

	pair_up(&pair);
	other = pair_channel();
	fake_cm_push(pair.b.id, RDMA_CM_EVENT_ADDR_CHANGE, 0, NULL, 0);
	fake_cm_push(pair.listener, RDMA_CM_EVENT_ADDR_CHANGE, 0, NULL, 0);
	TEST_ASSERT_EQUAL_INT(0, rdma_migrate_id(pair.b.id, other));
	TEST_ASSERT_EQUAL_PTR(other, pair.b.id->channel);
	TEST_ASSERT_EQUAL_PTR(pair.b.id, pair_expect(other, RDMA_CM_EVENT_ADDR_CHANGE, 0));
	TEST_ASSERT_EQUAL_PTR(pair.listener,
			      pair_expect(pair.b.channel, RDMA_CM_EVENT_ADDR_CHANGE, 0));
	TEST_ASSERT_EQUAL_INT(0, rdma_disconnect(pair.a.id));
	pair_expect(other, RDMA_CM_EVENT_DISCONNECTED, 0);
	pair_down(&pair);
	rdma_destroy_event_channel(other);
}

static void test_acknowledged_exactly_once(void)
{
	struct rdma_cm_event *event, *left;

	pair_up(&pair);
	fake_cm_push(pair.a.id, RDMA_CM_EVENT_ADDR_CHANGE, 0, NULL, 0);
	TEST_ASSERT_EQUAL_INT(0, rdma_get_cm_event(pair.a.channel, &event));
	TEST_ASSERT_EQUAL_INT(0, rdma_ack_cm_event(event));
	TEST_ASSERT_EQUAL_INT(-1, rdma_ack_cm_event(event));
	expect_misuse("rdma_ack_cm_event(): that rdma_cm event not acknowledged does not exist");
	fake_cm_push(pair.a.id, RDMA_CM_EVENT_ADDR_CHANGE, 0, NULL, 0);
	TEST_ASSERT_EQUAL_INT(0, rdma_get_cm_event(pair.a.channel, &left));
	TEST_ASSERT_NOT_NULL(
		strstr(fake_verbs_check_clean(), "1 rdma_cm event not acknowledged left"));
	pair_down(&pair);
	expect_misuse("rdma_destroy_id(): 1 events are not acknowledged");
	TEST_ASSERT_EQUAL_INT(0, rdma_ack_cm_event(left));
}

static void test_objects_that_are_left_are_reported(void)
{
	struct rdma_event_channel *channel = pair_channel();
	struct rdma_cm_id *id;

	TEST_ASSERT_EQUAL_INT(0, rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	TEST_ASSERT_EQUAL_STRING("1 event channel left; 1 rdma_cm id left",
				 fake_verbs_check_clean());
	rdma_destroy_event_channel(channel);
	expect_misuse("rdma_destroy_event_channel(): 1 ids use it");
	TEST_ASSERT_EQUAL_INT(0, rdma_destroy_id(id));
	TEST_ASSERT_EQUAL_INT(-1, rdma_destroy_id(id));
	expect_misuse("rdma_destroy_id(): that rdma_cm id does not exist");
	rdma_destroy_event_channel(channel);
	pair_up(&pair);
	TEST_ASSERT_EQUAL_INT(0, rdma_destroy_id(pair.listener));
	TEST_ASSERT_EQUAL_INT(0, rdma_create_id(pair.b.channel, &pair.listener, NULL, RDMA_PS_TCP));
	TEST_ASSERT_NOT_NULL(strstr(fake_verbs_check_clean(), "2 queue pair left"));
	pair_down(&pair);
}

/* -- threads -- */

static void *serve(void *arg)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	(void)arg;
	fcntl(pair.b.channel->fd, F_SETFL, 0);
	pair.b.id = pair_expect(pair.b.channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	pair_furnish(&pair, &pair.b);
	fcntl(pair.b.comp->fd, F_SETFL, 0);
	pair_recv(&pair.b, 0, 0, 8);
	ibv_req_notify_cq(pair.b.cq, 0);
	TEST_ASSERT_EQUAL_INT(0, rdma_accept(pair.b.id, &pair.param));
	pair_expect(pair.b.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	for (unsigned n = 0; n < 200;) {
		TEST_ASSERT_EQUAL_INT(0, ibv_get_cq_event(pair.b.comp, &cq, &context));
		ibv_ack_cq_events(cq, 1);
		ibv_req_notify_cq(cq, 0);
		while (ibv_poll_cq(cq, 1, &wc) == 1)
			if (wc.opcode == IBV_WC_RECV) {
				TEST_ASSERT_EQUAL_UINT8((uint8_t)n++, pair.b.buf[0]);
				pair_recv(&pair.b, n, 0, 8);
				pair_send(&pair.b, n, 0, 1, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
			}
	}
	pair_expect(pair.b.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	return NULL;
}

static void test_two_threads(void)
{
	pthread_t thread;
	struct ibv_wc wc;

	start();
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, serve, NULL));
	fcntl(pair.a.channel->fd, F_SETFL, 0);
	pair_recv(&pair.a, 0, 0, 8);
	TEST_ASSERT_EQUAL_INT(0, rdma_connect(pair.a.id, &pair.param));
	pair_expect(pair.a.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	for (unsigned n = 0; n < 200;) {
		pair.a.buf[0] = (uint8_t)n;
		TEST_ASSERT_EQUAL_INT(
			0, pair_send(&pair.a, n, 0, 1, IBV_SEND_SIGNALED | IBV_SEND_INLINE));
		for (unsigned before = n; n == before;)
			if (ibv_poll_cq(pair.a.cq, 1, &wc) == 1 && wc.opcode == IBV_WC_RECV) {
				pair_recv(&pair.a, n, 0, 8);
				n++;
			}
	}
	TEST_ASSERT_EQUAL_INT(0, rdma_disconnect(pair.a.id));
	pthread_join(thread, NULL);
	pair_down(&pair);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_any_event);
	RUN_TEST(test_a_forged_request);
	RUN_TEST(test_device_removal);
	RUN_TEST(test_migrate);
	RUN_TEST(test_acknowledged_exactly_once);
	RUN_TEST(test_objects_that_are_left_are_reported);
	RUN_TEST(test_two_threads);
	return UNITY_END();
}
