/* SPDX-License-Identifier: BSD-3-Clause */
/* The fake of librdmacm: its connections have the same states as in the kernel. */
#include "pair.h"

#define CONSUMER_DEFINED 28
#define INVALID_SERVICE_ID 8

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

static void finish_client(void)
{
	pair_unfurnish(&pair.a);
	rdma_destroy_event_channel(pair.a.channel);
}

static void finish_server(void)
{
	TEST_ASSERT_EQUAL_INT(0, rdma_destroy_id(pair.listener));
	rdma_destroy_event_channel(pair.b.channel);
}

static void finish(void)
{
	finish_client();
	finish_server();
}

static void ask(void)
{
	TEST_ASSERT_EQUAL_INT(0, rdma_connect(pair.a.id, &pair.param));
	pair.b.id = pair_expect(pair.b.channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
}

/* -- addresses -- */

static void test_addresses(void)
{
	struct sockaddr_in at = pair_address("127.0.0.2", 7000),
			   nowhere = pair_address("127.0.0.9", 7000), any = {.sin_family = AF_INET};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6};
	struct rdma_event_channel *channel = pair_channel();
	struct rdma_cm_id *id, *other;

	TEST_ASSERT_EQUAL_INT(0, rdma_create_id(channel, &id, &pair, RDMA_PS_TCP));
	TEST_ASSERT_EQUAL_PTR(&pair, id->context);
	TEST_ASSERT_EQUAL_INT(0, rdma_create_id(channel, &other, NULL, RDMA_PS_TCP));
	TEST_ASSERT_EQUAL_INT(-1, rdma_bind_addr(id, (struct sockaddr *)&nowhere));
	TEST_ASSERT_EQUAL_INT(ENODEV, errno);
	TEST_ASSERT_EQUAL_INT(-1, rdma_bind_addr(id, (struct sockaddr *)&six));
	TEST_ASSERT_EQUAL_INT(EAFNOSUPPORT, errno);
	TEST_ASSERT_EQUAL_INT(-1, rdma_listen(id, 1));
	TEST_ASSERT_NULL(id->verbs);
	TEST_ASSERT_EQUAL_INT(0, rdma_bind_addr(id, (struct sockaddr *)&at));
	TEST_ASSERT_EQUAL_STRING("fake1", ibv_get_device_name(id->verbs->device));
	TEST_ASSERT_EQUAL_UINT16(7000, ntohs(rdma_get_src_port(id)));
	TEST_ASSERT_EQUAL_INT(-1, rdma_bind_addr(other, (struct sockaddr *)&at));
	TEST_ASSERT_EQUAL_INT(EADDRINUSE, errno);
	fake_address("127.0.0.9", 0);
	TEST_ASSERT_EQUAL_INT(0, rdma_bind_addr(other, (struct sockaddr *)&nowhere));
	TEST_ASSERT_EQUAL_STRING("fake0", ibv_get_device_name(other->verbs->device));
	TEST_ASSERT_EQUAL_INT(0, rdma_destroy_id(other));
	TEST_ASSERT_EQUAL_INT(0, rdma_create_id(channel, &other, NULL, RDMA_PS_TCP));
	TEST_ASSERT_EQUAL_INT(0, rdma_bind_addr(other, (struct sockaddr *)&any));
	TEST_ASSERT_NULL(other->verbs);
	TEST_ASSERT_NOT_EQUAL(0, rdma_get_src_port(other));
	TEST_ASSERT_EQUAL_INT(0, rdma_destroy_id(other));
	TEST_ASSERT_EQUAL_INT(0, rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

static void test_unreachable_address(void)
{
	struct sockaddr_in at = pair_address("10.99.0.77", 7000);

	pair.a.channel = pair_channel();
	TEST_ASSERT_EQUAL_INT(0, rdma_create_id(pair.a.channel, &pair.a.id, NULL, RDMA_PS_TCP));
	TEST_ASSERT_EQUAL_INT(-1, rdma_resolve_route(pair.a.id, 100));
	TEST_ASSERT_EQUAL_INT(0, rdma_resolve_addr(pair.a.id, NULL, (struct sockaddr *)&at, 100));
	pair_expect(pair.a.channel, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH);
	TEST_ASSERT_EQUAL_INT(-1, rdma_connect(pair.a.id, &pair.param));
	TEST_ASSERT_EQUAL_INT(0, rdma_destroy_id(pair.a.id));
	rdma_destroy_event_channel(pair.a.channel);
}

/* -- connecting -- */

static void test_negotiated_parameters(void)
{
	struct rdma_conn_param param = {.responder_resources = 3,
					.initiator_depth = 5,
					.retry_count = 1,
					.rnr_retry_count = 1};
	struct ibv_qp_init_attr init;
	struct rdma_cm_event *event;
	struct ibv_qp_attr attr;
	uint8_t ack_timeout = 14;

	start();
	TEST_ASSERT_EQUAL_INT(0, rdma_set_option(pair.a.id, RDMA_OPTION_ID,
						 RDMA_OPTION_ID_ACK_TIMEOUT, &ack_timeout, 1));
	pair.param = (struct rdma_conn_param){.responder_resources = 7,
					      .initiator_depth = 9,
					      .retry_count = 4,
					      .rnr_retry_count = 5};
	TEST_ASSERT_EQUAL_INT(0, rdma_connect(pair.a.id, &pair.param));
	TEST_ASSERT_EQUAL_INT(0, rdma_get_cm_event(pair.b.channel, &event));
	TEST_ASSERT_EQUAL_PTR(pair.listener, event->listen_id);
	pair.b.id = event->id;
	TEST_ASSERT_EQUAL_PTR(pair.listener->context, pair.b.id->context);
	TEST_ASSERT_EQUAL_STRING("fake1", ibv_get_device_name(pair.b.id->verbs->device));
	TEST_ASSERT_EQUAL_UINT16(rdma_get_src_port(pair.a.id), rdma_get_dst_port(pair.b.id));
	TEST_ASSERT_EQUAL_UINT8(9, event->param.conn.responder_resources);
	TEST_ASSERT_EQUAL_UINT8(7, event->param.conn.initiator_depth);
	TEST_ASSERT_EQUAL_INT(0, rdma_ack_cm_event(event));
	pair_furnish(&pair, &pair.b);
	TEST_ASSERT_EQUAL_INT(0, rdma_accept(pair.b.id, &param));
	pair_expect(pair.a.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	pair_expect(pair.b.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	TEST_ASSERT_EQUAL_INT(0, ibv_query_qp(pair.a.id->qp, &attr, 0, &init));
	TEST_ASSERT_EQUAL_UINT8(3, attr.max_rd_atomic);
	TEST_ASSERT_EQUAL_UINT8(5, attr.max_dest_rd_atomic);
	TEST_ASSERT_EQUAL_UINT8(4, attr.retry_cnt);
	TEST_ASSERT_EQUAL_UINT8(1, attr.rnr_retry); /* the value that the other side requests */
	TEST_ASSERT_EQUAL_UINT8(14, attr.timeout);
	TEST_ASSERT_EQUAL_UINT32(pair.b.id->qp->qp_num, attr.dest_qp_num);
	TEST_ASSERT_EQUAL_INT(0, ibv_query_qp(pair.b.id->qp, &attr, 0, &init));
	TEST_ASSERT_EQUAL_UINT8(5, attr.max_rd_atomic);
	TEST_ASSERT_EQUAL_UINT8(3, attr.max_dest_rd_atomic);
	TEST_ASSERT_EQUAL_UINT8(4, attr.retry_cnt);
	TEST_ASSERT_EQUAL_UINT8(5, attr.rnr_retry);
	TEST_ASSERT_EQUAL_UINT8(14, attr.timeout);
	pair_down(&pair);
}

static void test_private_data(void)
{
	static const uint8_t zeros[256];
	struct rdma_cm_event *event;
	uint8_t data[256];

	start();
	memset(data, 0xd7, sizeof(data));
	pair.param.private_data = data;
	pair.param.private_data_len = 57;
	TEST_ASSERT_EQUAL_INT(-1, rdma_connect(pair.a.id, &pair.param));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	pair.param.private_data_len = 50;
	TEST_ASSERT_EQUAL_INT(0, rdma_connect(pair.a.id, &pair.param));
	TEST_ASSERT_EQUAL_INT(0, rdma_get_cm_event(pair.b.channel, &event));
	TEST_ASSERT_EQUAL_UINT8(56, event->param.conn.private_data_len);
	TEST_ASSERT_EQUAL_MEMORY(data, event->param.conn.private_data, 50);
	TEST_ASSERT_EQUAL_MEMORY(zeros, (const uint8_t *)event->param.conn.private_data + 50, 6);
	pair.b.id = event->id;
	TEST_ASSERT_EQUAL_INT(0, rdma_ack_cm_event(event));
	pair_furnish(&pair, &pair.b);
	pair.param.private_data_len = 197;
	TEST_ASSERT_EQUAL_INT(-1, rdma_accept(pair.b.id, &pair.param));
	pair.param.private_data_len = 196;
	TEST_ASSERT_EQUAL_INT(0, rdma_accept(pair.b.id, &pair.param));
	TEST_ASSERT_EQUAL_INT(0, rdma_get_cm_event(pair.a.channel, &event));
	TEST_ASSERT_EQUAL_UINT8(196, event->param.conn.private_data_len);
	TEST_ASSERT_EQUAL_MEMORY(data, event->param.conn.private_data, 196);
	TEST_ASSERT_EQUAL_INT(0, rdma_ack_cm_event(event));
	pair_down(&pair);
}

static void test_parameters_beyond_the_limits_of_the_device(void)
{
	start();
	fake_device(0)->attr.max_qp_rd_atom = 16;
	pair.param.responder_resources = 17;
	TEST_ASSERT_EQUAL_INT(-1, rdma_connect(pair.a.id, &pair.param));
	pair.param.responder_resources = 16;
	pair.param.rnr_retry_count = 8;
	TEST_ASSERT_EQUAL_INT(-1, rdma_connect(pair.a.id, &pair.param));
	TEST_ASSERT_EQUAL_INT(0, rdma_connect(pair.a.id, NULL));
	TEST_ASSERT_EQUAL_INT(-1, rdma_connect(pair.a.id, NULL));
	finish();
}

static void test_data_before_established(void)
{
	start();
	ask();
	pair_furnish(&pair, &pair.b);
	pair_recv(&pair.b, 1, 0, 8);
	TEST_ASSERT_EQUAL_INT(0, rdma_accept(pair.b.id, &pair.param));
	pair_expect(pair.a.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	TEST_ASSERT_EQUAL_INT(0, pair_send(&pair.a, 2, 0, 4, IBV_SEND_SIGNALED));
	pair_done(&pair.b, 1, IBV_WC_SUCCESS);
	pair_expect(pair.b.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	pair_down(&pair);
}

static void test_queue_pair_made_by_the_program(void)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	struct ibv_qp *qp;
	int mask;

	start();
	rdma_destroy_qp(pair.a.id);
	init.cap = pair.cap;
	init.send_cq = init.recv_cq = pair.a.cq;
	TEST_ASSERT_NOT_NULL(qp = ibv_create_qp(pair.a.pd, &init));
	pair.param.qp_num = qp->qp_num;
	ask();
	pair_furnish(&pair, &pair.b);
	TEST_ASSERT_EQUAL_INT(0, rdma_accept(pair.b.id, &pair.param));
	pair_expect(pair.a.channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	for (int state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++) {
		attr.qp_state = (enum ibv_qp_state)state;
		TEST_ASSERT_EQUAL_INT(0, rdma_init_qp_attr(pair.a.id, &attr, &mask));
		TEST_ASSERT_EQUAL_INT(0, ibv_modify_qp(qp, &attr, mask));
	}
	TEST_ASSERT_EQUAL_INT(0, rdma_establish(pair.a.id));
	pair_expect(pair.b.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	TEST_ASSERT_EQUAL_INT(0, pair_recv(&pair.b, 1, 0, 4));
	pair.a.id->qp = qp;
	TEST_ASSERT_EQUAL_INT(0, pair_send(&pair.a, 2, 0, 4, IBV_SEND_SIGNALED));
	pair.a.id->qp = NULL;
	pair_done(&pair.b, 1, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(0, ibv_destroy_qp(qp));
	pair_make_qp(&pair, &pair.a);
	pair_down(&pair);
}

/* -- rejected -- */

static void test_rejected(void)
{
	struct rdma_cm_event *event;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	start();
	ask();
	TEST_ASSERT_EQUAL_INT(0, rdma_reject(pair.b.id, "no", 2));
	TEST_ASSERT_EQUAL_INT(-1, rdma_accept(pair.b.id, &pair.param));
	TEST_ASSERT_EQUAL_INT(0, rdma_destroy_id(pair.b.id));
	TEST_ASSERT_EQUAL_INT(0, rdma_get_cm_event(pair.a.channel, &event));
	TEST_ASSERT_EQUAL_INT(RDMA_CM_EVENT_REJECTED, event->event);
	TEST_ASSERT_EQUAL_INT(CONSUMER_DEFINED, event->status);
	TEST_ASSERT_EQUAL_UINT8(148, event->param.conn.private_data_len);
	TEST_ASSERT_EQUAL_MEMORY("no\0\0", event->param.conn.private_data, 4);
	TEST_ASSERT_EQUAL_INT(0, rdma_ack_cm_event(event));
	TEST_ASSERT_EQUAL_INT(0, ibv_query_qp(pair.a.id->qp, &attr, IBV_QP_STATE, &init));
	TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, attr.qp_state);
	pair_expect_none(pair.a.channel);
	finish();
}

static void test_no_listener(void)
{
	start();
	TEST_ASSERT_EQUAL_INT(0, rdma_destroy_id(pair.listener));
	TEST_ASSERT_EQUAL_INT(0, rdma_connect(pair.a.id, &pair.param));
	pair_expect(pair.a.channel, RDMA_CM_EVENT_REJECTED, INVALID_SERVICE_ID);
	TEST_ASSERT_EQUAL_INT(0, rdma_create_id(pair.b.channel, &pair.listener, NULL, RDMA_PS_TCP));
	finish();
}

static void test_a_listener_that_goes_with_requests(void)
{
	start();
	TEST_ASSERT_EQUAL_INT(0, rdma_connect(pair.a.id, &pair.param));
	TEST_ASSERT_EQUAL_INT(0, rdma_destroy_id(pair.listener));
	pair_expect(pair.a.channel, RDMA_CM_EVENT_REJECTED, CONSUMER_DEFINED);
	TEST_ASSERT_EQUAL_INT(0, rdma_create_id(pair.b.channel, &pair.listener, NULL, RDMA_PS_TCP));
	finish();
}

static void test_a_request_that_is_destroyed(void)
{
	start();
	ask();
	TEST_ASSERT_EQUAL_INT(0, rdma_destroy_id(pair.b.id));
	pair_expect(pair.a.channel, RDMA_CM_EVENT_REJECTED, CONSUMER_DEFINED);
	finish();
}

static void test_a_client_that_goes_before_the_answer(void)
{
	start();
	ask();
	finish_client();
	pair_expect(pair.b.channel, RDMA_CM_EVENT_REJECTED, 4);
	TEST_ASSERT_EQUAL_INT(-1, rdma_accept(pair.b.id, &pair.param));
	TEST_ASSERT_EQUAL_INT(0, rdma_destroy_id(pair.b.id));
	finish_server();
}

static void test_a_server_that_goes_after_the_answer(void)
{
	start();
	ask();
	pair_furnish(&pair, &pair.b);
	TEST_ASSERT_EQUAL_INT(0, rdma_accept(pair.b.id, &pair.param));
	pair_unfurnish(&pair.b);
	pair_expect(pair.a.channel, RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL);
	pair_expect_none(pair.a.channel);
	finish();
}

static void test_backlog(void)
{
	struct sockaddr_in at;
	struct rdma_cm_id *late;

	start();
	TEST_ASSERT_EQUAL_INT(0, rdma_destroy_id(pair.listener));
	at = pair_address("127.0.0.2", ntohs(rdma_get_dst_port(pair.a.id)));
	TEST_ASSERT_EQUAL_INT(0, rdma_create_id(pair.b.channel, &pair.listener, NULL, RDMA_PS_TCP));
	TEST_ASSERT_EQUAL_INT(0, rdma_bind_addr(pair.listener, (struct sockaddr *)&at));
	TEST_ASSERT_EQUAL_INT(0, rdma_listen(pair.listener, 1));
	fake_cm_push(pair.listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0, NULL, 0);
	TEST_ASSERT_EQUAL_INT(0, rdma_connect(pair.a.id, &pair.param));
	pair_expect(pair.a.channel, RDMA_CM_EVENT_REJECTED, CONSUMER_DEFINED);
	late = pair_expect(pair.b.channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	TEST_ASSERT_EQUAL_INT(0, rdma_reject(late, NULL, 0));
	TEST_ASSERT_EQUAL_INT(0, rdma_destroy_id(late));
	finish();
}

/* -- the end -- */

static void test_disconnect(void)
{
	pair_up(&pair);
	TEST_ASSERT_EQUAL_INT(0, pair_recv(&pair.a, 5, 0, 8));
	TEST_ASSERT_EQUAL_INT(0, pair_recv(&pair.a, 6, 0, 8));
	TEST_ASSERT_EQUAL_INT(0, rdma_disconnect(pair.a.id));
	pair_done(&pair.a, 5, IBV_WC_WR_FLUSH_ERR);
	pair_done(&pair.a, 6, IBV_WC_WR_FLUSH_ERR);
	pair_expect_none(pair.a.channel);
	pair_expect(pair.b.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	TEST_ASSERT_EQUAL_INT(0, rdma_disconnect(pair.b.id));
	TEST_ASSERT_EQUAL_INT(0, rdma_disconnect(pair.b.id));
	pair_expect(pair.a.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	pair_expect(pair.a.channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	pair_expect(pair.b.channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	pair_expect_none(pair.b.channel);
	pair_down(&pair);
}

static void test_disconnect_both(void)
{
	pair_up(&pair);
	TEST_ASSERT_EQUAL_INT(0, rdma_disconnect(pair.a.id));
	TEST_ASSERT_EQUAL_INT(0, rdma_disconnect(pair.b.id));
	pair_expect(pair.b.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	pair_expect(pair.b.channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	pair_expect(pair.a.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	pair_expect(pair.a.channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	pair_down(&pair);
}

static void test_an_end_that_is_destroyed(void)
{
	pair_up(&pair);
	TEST_ASSERT_EQUAL_INT(0, pair_rdma(&pair.b, &pair.a, IBV_WR_RDMA_WRITE, 0, 0));
	finish_client();
	pair_expect(pair.b.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	/* the queue pair of a is destroyed: b gets no more answers */
	TEST_ASSERT_EQUAL_UINT(0, fake_wire_waiting(pair.b.id->qp));
	pair_done(&pair.b, 0, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(0, pair_send(&pair.b, 7, 0, 4, 0));
	TEST_ASSERT_EQUAL_UINT(1, fake_wire_timeout(4));
	pair_done(&pair.b, 7, IBV_WC_RETRY_EXC_ERR);
	TEST_ASSERT_EQUAL_INT(0, rdma_disconnect(pair.b.id));
	pair_expect(pair.b.channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	pair_unfurnish(&pair.b);
	finish_server();
}

/* -- a network that is interrupted -- */

static void test_cut_before_connecting(void)
{
	start();
	fake_wire_cut(1);
	TEST_ASSERT_EQUAL_INT(0, rdma_connect(pair.a.id, &pair.param));
	pair_expect_none(pair.b.channel);
	fake_cm_timeout();
	pair_expect(pair.a.channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	finish();
}

static void test_cut_and_healed(void)
{
	start();
	fake_wire_cut(1);
	TEST_ASSERT_EQUAL_INT(0, rdma_connect(pair.a.id, &pair.param));
	fake_wire_cut(0);
	pair.b.id = pair_expect(pair.b.channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	pair_furnish(&pair, &pair.b);
	fake_wire_cut(1);
	TEST_ASSERT_EQUAL_INT(0, rdma_accept(pair.b.id, &pair.param));
	pair_expect_none(pair.a.channel);
	fake_wire_cut(0);
	pair_expect(pair.a.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	pair_expect(pair.b.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	pair_down(&pair);
}

static void test_cut_while_connected(void)
{
	pair_up(&pair);
	fake_wire_cut(1);
	TEST_ASSERT_EQUAL_INT(0, rdma_disconnect(pair.a.id));
	pair_expect_none(pair.b.channel);
	fake_cm_timeout();
	pair_expect(pair.a.channel, RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT);
	pair_expect(pair.a.channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	pair_expect_none(pair.b.channel);
	pair_down(&pair);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_addresses);
	RUN_TEST(test_unreachable_address);
	RUN_TEST(test_negotiated_parameters);
	RUN_TEST(test_private_data);
	RUN_TEST(test_parameters_beyond_the_limits_of_the_device);
	RUN_TEST(test_data_before_established);
	RUN_TEST(test_queue_pair_made_by_the_program);
	RUN_TEST(test_rejected);
	RUN_TEST(test_no_listener);
	RUN_TEST(test_a_listener_that_goes_with_requests);
	RUN_TEST(test_a_request_that_is_destroyed);
	RUN_TEST(test_a_client_that_goes_before_the_answer);
	RUN_TEST(test_a_server_that_goes_after_the_answer);
	RUN_TEST(test_backlog);
	RUN_TEST(test_disconnect);
	RUN_TEST(test_disconnect_both);
	RUN_TEST(test_an_end_that_is_destroyed);
	RUN_TEST(test_cut_before_connecting);
	RUN_TEST(test_cut_and_healed);
	RUN_TEST(test_cut_while_connected);
	return UNITY_END();
}
