/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fake of libibverbs: devices, limits, leaked objects, and failures on demand of every
 * function.
 */
#include <stdlib.h>

#include "pair.h"

static struct pair pair;
static struct ibv_device **list;
static struct ibv_context *ctx;

void setUp(void)
{
	fake_verbs_reset();
	pair_init(&pair);
	TEST_ASSERT_NOT_NULL(list = ibv_get_device_list(NULL));
	TEST_ASSERT_NOT_NULL(ctx = ibv_open_device(list[0]));
}

void tearDown(void)
{
	ibv_free_device_list(list);
	TEST_ASSERT_EQUAL_INT(0, ibv_close_device(ctx));
	TEST_ASSERT_EQUAL_STRING("", fake_verbs_check_clean());
}

/* -- devices -- */

static void test_the_list(void)
{
	struct ibv_context **contexts;
	struct ibv_device **other;
	int n;

	fake_devices(3);
	strcpy(fake_device(2)->name, "rxe0");
	TEST_ASSERT_NOT_NULL(other = ibv_get_device_list(&n));
	TEST_ASSERT_EQUAL_INT(3, n);
	TEST_ASSERT_EQUAL_STRING("fake0", ibv_get_device_name(other[0]));
	TEST_ASSERT_EQUAL_STRING("fake1", other[1]->name);
	TEST_ASSERT_EQUAL_STRING("rxe0", ibv_get_device_name(other[2]));
	TEST_ASSERT_NULL(other[3]);
	TEST_ASSERT_EQUAL_INT(1, ibv_get_device_guid(other[1]) == fake_device(1)->attr.node_guid);
	ibv_free_device_list(other);
	fake_devices(0);
	TEST_ASSERT_NOT_NULL(other = ibv_get_device_list(&n));
	TEST_ASSERT_EQUAL_INT(0, n);
	TEST_ASSERT_NULL(other[0]);
	ibv_free_device_list(other);
	fake_devices(2);
	TEST_ASSERT_NOT_NULL(contexts = rdma_get_devices(&n));
	TEST_ASSERT_EQUAL_INT(2, n);
	TEST_ASSERT_NULL(contexts[2]);
	TEST_ASSERT_EQUAL_STRING("fake1", ibv_get_device_name(contexts[1]->device));
	TEST_ASSERT_EQUAL_INT(0, contexts[0] == ctx); /* the library has opened its own context */
	rdma_free_devices(contexts);
}

static void test_attributes_of_a_device(void)
{
	struct ibv_device_attr_ex ex;
	struct ibv_gid_entry gids[FAKE_GIDS];
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	union ibv_gid gid;
	__be16 pkey;

	fake_device(0)->attr.max_qp_wr = 77;
	fake_device(0)->port.state = IBV_PORT_DOWN;
	fake_device(0)->odp_caps.general_caps = IBV_ODP_SUPPORT;
	TEST_ASSERT_EQUAL_INT(0, ibv_query_device(ctx, &attr));
	TEST_ASSERT_EQUAL_INT(77, attr.max_qp_wr);
	TEST_ASSERT_EQUAL_INT(0, ibv_query_device_ex(ctx, NULL, &ex));
	TEST_ASSERT_EQUAL_INT(77, ex.orig_attr.max_qp_wr);
	TEST_ASSERT_EQUAL_UINT64(IBV_ODP_SUPPORT, ex.odp_caps.general_caps);
	TEST_ASSERT_EQUAL_INT(0, ibv_query_port(ctx, 1, &port));
	TEST_ASSERT_EQUAL_INT(IBV_PORT_DOWN, port.state);
	TEST_ASSERT_EQUAL_INT(IBV_LINK_LAYER_ETHERNET, port.link_layer);
	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_query_port(ctx, 2, &port));
	TEST_ASSERT_EQUAL_INT(0, ibv_query_gid(ctx, 1, 0, &gid));
	TEST_ASSERT_EQUAL_MEMORY("\xff\xff\x0a\x63\x00\x01", gid.raw + 10, 6);
	TEST_ASSERT_EQUAL_INT(0, ibv_query_gid_ex(ctx, 1, 0, gids, 0));
	TEST_ASSERT_EQUAL_UINT32(IBV_GID_TYPE_ROCE_V2, gids[0].gid_type);
	TEST_ASSERT_EQUAL_INT(ENODATA, ibv_query_gid_ex(ctx, 1, 1, gids, 0));
	TEST_ASSERT_EQUAL_INT(1, (int)ibv_query_gid_table(ctx, gids, FAKE_GIDS, 0));
	TEST_ASSERT_EQUAL_INT(0, ibv_query_pkey(ctx, 1, 0, &pkey));
	TEST_ASSERT_EQUAL_UINT16(0xffff, pkey);
	/* features that the fake lacks fail with EOPNOTSUPP */
	TEST_ASSERT_NULL(ibv_create_cq_ex(ctx, &(struct ibv_cq_init_attr_ex){.cqe = 1}));
	TEST_ASSERT_EQUAL_INT(EOPNOTSUPP, errno);
	TEST_ASSERT_NULL(
		ibv_alloc_parent_domain(ctx, &(struct ibv_parent_domain_init_attr){.pd = NULL}));
	TEST_ASSERT_EQUAL_INT(EOPNOTSUPP, errno);
}

static void test_texts_of_values(void)
{
	TEST_ASSERT_EQUAL_STRING("remote access error", ibv_wc_status_str(IBV_WC_REM_ACCESS_ERR));
	TEST_ASSERT_EQUAL_STRING("unknown", ibv_wc_status_str((enum ibv_wc_status)99));
	TEST_ASSERT_EQUAL_STRING("local catastrophic error",
				 ibv_event_type_str(IBV_EVENT_DEVICE_FATAL));
	TEST_ASSERT_EQUAL_STRING("active", ibv_port_state_str(IBV_PORT_ACTIVE));
	TEST_ASSERT_EQUAL_STRING("InfiniBand channel adapter", ibv_node_type_str(IBV_NODE_CA));
	TEST_ASSERT_EQUAL_STRING("RDMA_CM_EVENT_TIMEWAIT_EXIT",
				 rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT));
}

static void test_limits(void)
{
	struct fake_device *device = fake_device(0);
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	uint8_t byte;

	device->attr.max_pd = device->attr.max_cq = device->attr.max_mr = device->attr.max_qp = 1;
	device->attr.max_qp_wr = device->attr.max_cqe = 16;
	device->attr.max_sge = 2;
	device->attr.max_mr_size = 1;
	device->max_inline = 8;
	TEST_ASSERT_NULL(ibv_alloc_pd(ctx));
	TEST_ASSERT_EQUAL_INT(ENOMEM, errno);
	TEST_ASSERT_NULL(ibv_create_cq(ctx, 4, NULL, NULL, 0));
	TEST_ASSERT_EQUAL_INT(ENOMEM, errno);
	TEST_ASSERT_NULL(ibv_create_cq(ctx, 17, NULL, NULL, 0));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	TEST_ASSERT_NULL(ibv_create_cq(ctx, 1, NULL, NULL, 1));
	TEST_ASSERT_NULL(ibv_reg_mr(pd, list, 2, 0));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	TEST_ASSERT_NULL(ibv_reg_mr(pd, &byte, 1, IBV_ACCESS_REMOTE_WRITE));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	TEST_ASSERT_NULL(ibv_reg_mr(pd, NULL, 1, 0));
	TEST_ASSERT_EQUAL_INT(EFAULT, errno);
	TEST_ASSERT_NULL(ibv_reg_mr(pd, &byte, 1, IBV_ACCESS_ON_DEMAND));
	TEST_ASSERT_EQUAL_INT(EOPNOTSUPP, errno);
	TEST_ASSERT_NOT_NULL(mr = ibv_reg_mr(pd, &byte, 1, 0));
	TEST_ASSERT_EQUAL_UINT32(0, mr->rkey);
	TEST_ASSERT_NULL(ibv_reg_mr(pd, &byte, 1, 0));
	TEST_ASSERT_EQUAL_INT(ENOMEM, errno);
	init.send_cq = init.recv_cq = cq;
	for (int i = 0; i < 5; i++) {
		init.cap = (struct ibv_qp_cap){.max_send_wr = 16 + (i == 0),
					       .max_recv_wr = 16 + (i == 1),
					       .max_send_sge = 2 + (i == 2),
					       .max_recv_sge = 2 + (i == 3),
					       .max_inline_data = 8 + (i == 4)};
		TEST_ASSERT_NULL(ibv_create_qp(pd, &init));
		TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	}
	init.cap.max_inline_data = 8;
	TEST_ASSERT_NOT_NULL(qp = ibv_create_qp(pd, &init));
	TEST_ASSERT_NULL(ibv_create_qp(pd, &init));
	TEST_ASSERT_EQUAL_INT(ENOMEM, errno);
	TEST_ASSERT_EQUAL_INT(EBUSY, ibv_destroy_cq(cq));
	TEST_ASSERT_EQUAL_INT(EBUSY, ibv_dealloc_pd(pd));
	TEST_ASSERT_EQUAL_STRING(
		"1 device list left; 1 device context left; 1 protection domain left; 1 memory region left; "
		"1 completion queue left; 1 queue pair left",
		fake_verbs_check_clean());
	TEST_ASSERT_EQUAL_INT(0, ibv_destroy_qp(qp));
	TEST_ASSERT_EQUAL_INT(0, ibv_destroy_cq(cq));
	TEST_ASSERT_EQUAL_INT(0, ibv_dereg_mr(mr));
	TEST_ASSERT_EQUAL_INT(0, ibv_dealloc_pd(pd));
	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_dealloc_pd(pd));
	expect_misuse("ibv_dealloc_pd(): that protection domain does not exist");
}

static void test_asynchronous_events(void)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	struct ibv_async_event event;

	fcntl(ctx->async_fd, F_SETFL, O_NONBLOCK);
	TEST_ASSERT_EQUAL_INT(-1, ibv_get_async_event(ctx, &event));
	TEST_ASSERT_EQUAL_INT(EAGAIN, errno);
	fake_async_push(1, IBV_EVENT_PORT_ERR, (void *)1);
	TEST_ASSERT_EQUAL_INT(-1, ibv_get_async_event(ctx, &event));
	fake_async_push(0, IBV_EVENT_PORT_ERR, (void *)1);
	fake_async_push(0, IBV_EVENT_CQ_ERR, cq);
	TEST_ASSERT_EQUAL_INT(0, ibv_get_async_event(ctx, &event));
	TEST_ASSERT_EQUAL_INT(IBV_EVENT_PORT_ERR, event.event_type);
	TEST_ASSERT_EQUAL_INT(1, event.element.port_num);
	ibv_ack_async_event(&event);
	TEST_ASSERT_EQUAL_INT(0, ibv_get_async_event(ctx, &event));
	TEST_ASSERT_EQUAL_INT(IBV_EVENT_CQ_ERR, event.event_type);
	TEST_ASSERT_EQUAL_PTR(cq, event.element.cq);
	TEST_ASSERT_NOT_NULL(strstr(fake_verbs_check_clean(), "1 events not acknowledged"));
	ibv_ack_async_event(&event);
	ibv_ack_async_event(&event);
	expect_misuse("ibv_ack_async_event(): more acknowledged than got");
	fake_async_push(0, IBV_EVENT_CQ_ERR, cq);
	TEST_ASSERT_EQUAL_INT(0, ibv_get_async_event(ctx, &event));
	fake_async_push(0, IBV_EVENT_CQ_ERR, cq); /* not delivered: dropped with its CQ */
	TEST_ASSERT_EQUAL_INT(0, ibv_destroy_cq(cq));
	expect_misuse("ibv_destroy_cq(): 1 events are not acknowledged");
	TEST_ASSERT_EQUAL_INT(-1, ibv_get_async_event(ctx, &event));
}

static void test_a_context_that_is_closed_too_early(void)
{
	struct ibv_context *other = ibv_open_device(list[1]);
	struct ibv_pd *pd = ibv_alloc_pd(other);

	ibv_close_device(other);
	expect_misuse("ibv_close_device(): 1 objects of the context exist");
	TEST_ASSERT_EQUAL_INT(0, ibv_dealloc_pd(pd));
	TEST_ASSERT_EQUAL_INT(0, ibv_close_device(other));
}

/* -- failures on demand -- */

/*
 * Let the next call of a function fail with EIO, and expect the value that this function returns.
 */
#define FAILS_AS(name, call, expected) \
	do { \
		fake_verbs_fail(#name, 1, EIO); \
		TEST_ASSERT_EQUAL_INT_MESSAGE(expected, (int)(call), #name); \
	} while (0)
#define FAILS_VALUE(name, call) FAILS_AS(name, call, EIO)
#define FAILS_ERRNO(name, call) \
	do { \
		errno = 0; \
		FAILS_AS(name, call, -1); \
		TEST_ASSERT_EQUAL_INT_MESSAGE(EIO, errno, #name); \
	} while (0)
#define FAILS_NULL(name, call) \
	do { \
		errno = 0; \
		fake_verbs_fail(#name, 1, EIO); \
		TEST_ASSERT_NULL_MESSAGE(call, #name); \
		TEST_ASSERT_EQUAL_INT_MESSAGE(EIO, errno, #name); \
	} while (0)

static void test_every_function_of_libibverbs_fails(void)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, channel, 0), *event_cq;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_async_event event;
	struct ibv_gid_entry gid;
	struct ibv_port_attr port;
	struct ibv_device_attr_ex ex;
	struct ibv_recv_wr recv = {.wr_id = 0}, *bad_recv;
	struct ibv_send_wr send = {.wr_id = 0}, *bad_send;
	volatile int access = IBV_ACCESS_LOCAL_WRITE;
	struct ibv_mr *mr = ibv_reg_mr(pd, &gid, sizeof(gid), 0);
	struct ibv_qp *qp;
	struct ibv_wc wc;
	uint8_t byte;
	__be16 pkey;
	void *context;

	init.send_cq = init.recv_cq = cq;
	TEST_ASSERT_NOT_NULL(qp = ibv_create_qp(pd, &init));
	FAILS_NULL(ibv_get_device_list, ibv_get_device_list(NULL));
	FAILS_NULL(ibv_open_device, ibv_open_device(list[0]));
	FAILS_ERRNO(ibv_close_device, ibv_close_device(ctx));
	FAILS_VALUE(ibv_query_device, ibv_query_device(ctx, &ex.orig_attr));
	FAILS_VALUE(ibv_query_device_ex, ibv_query_device_ex(ctx, NULL, &ex));
	FAILS_VALUE(ibv_query_port, ibv_query_port(ctx, 1, &port));
	FAILS_ERRNO(ibv_query_gid, ibv_query_gid(ctx, 1, 0, &gid.gid));
	FAILS_VALUE(ibv_query_gid_ex, ibv_query_gid_ex(ctx, 1, 0, &gid, 0));
	FAILS_AS(ibv_query_gid_table, ibv_query_gid_table(ctx, &gid, 1, 0), -EIO);
	FAILS_ERRNO(ibv_query_pkey, ibv_query_pkey(ctx, 1, 0, &pkey));
	FAILS_ERRNO(ibv_get_async_event, ibv_get_async_event(ctx, &event));
	FAILS_VALUE(ibv_fork_init, ibv_fork_init());
	FAILS_NULL(ibv_alloc_pd, ibv_alloc_pd(ctx));
	FAILS_VALUE(ibv_dealloc_pd, ibv_dealloc_pd(pd));
	FAILS_NULL(ibv_reg_mr, ibv_reg_mr(pd, &byte, 1, 0));
	FAILS_NULL(ibv_reg_mr, ibv_reg_mr(pd, &byte, 1, access));
	FAILS_NULL(ibv_reg_mr_iova, ibv_reg_mr_iova(pd, &byte, 1, 0, 0));
	FAILS_NULL(ibv_reg_mr_iova2, ibv_reg_mr_iova2(pd, &byte, 1, 0, 0));
	FAILS_NULL(ibv_reg_dmabuf_mr, ibv_reg_dmabuf_mr(pd, 0, 1, 0, -1, 0));
	FAILS_VALUE(ibv_dereg_mr, ibv_dereg_mr(mr));
	FAILS_NULL(ibv_create_comp_channel, ibv_create_comp_channel(ctx));
	FAILS_VALUE(ibv_destroy_comp_channel, ibv_destroy_comp_channel(channel));
	FAILS_ERRNO(ibv_get_cq_event, ibv_get_cq_event(channel, &event_cq, &context));
	FAILS_NULL(ibv_create_cq, ibv_create_cq(ctx, 1, NULL, NULL, 0));
	FAILS_VALUE(ibv_resize_cq, ibv_resize_cq(cq, 8));
	FAILS_VALUE(ibv_destroy_cq, ibv_destroy_cq(cq));
	FAILS_AS(ibv_poll_cq, ibv_poll_cq(cq, 1, &wc), -EIO);
	FAILS_VALUE(ibv_req_notify_cq, ibv_req_notify_cq(cq, 0));
	FAILS_NULL(ibv_create_qp, ibv_create_qp(pd, &init));
	FAILS_VALUE(ibv_modify_qp, ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	FAILS_VALUE(ibv_query_qp, ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	FAILS_VALUE(ibv_destroy_qp, ibv_destroy_qp(qp));
	FAILS_VALUE(ibv_post_send, ibv_post_send(qp, &send, &bad_send));
	TEST_ASSERT_EQUAL_PTR(&send, bad_send);
	FAILS_VALUE(ibv_post_recv, ibv_post_recv(qp, &recv, &bad_recv));
	TEST_ASSERT_EQUAL_PTR(&recv, bad_recv);
	FAILS_NULL(ibv_create_srq,
		   ibv_create_srq(pd, &(struct ibv_srq_init_attr){.attr.max_wr = 1}));
	TEST_ASSERT_EQUAL_INT(0, ibv_destroy_qp(qp));
	TEST_ASSERT_EQUAL_INT(0, ibv_destroy_cq(cq));
	TEST_ASSERT_EQUAL_INT(0, ibv_destroy_comp_channel(channel));
	TEST_ASSERT_EQUAL_INT(0, ibv_dereg_mr(mr));
	TEST_ASSERT_EQUAL_INT(0, ibv_dealloc_pd(pd));
}

static void test_every_function_of_librdmacm_fails(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};
	struct rdma_event_channel *channel;
	struct rdma_cm_event *event;
	struct sockaddr_in at = {.sin_family = AF_INET};
	struct rdma_cm_id *id;
	uint8_t value = 1;
	int mask;

	pair_up(&pair);
	channel = pair.a.channel;
	id = pair.a.id;
	FAILS_NULL(rdma_create_event_channel, rdma_create_event_channel());
	FAILS_ERRNO(rdma_create_id, rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	FAILS_ERRNO(rdma_destroy_id, rdma_destroy_id(id));
	FAILS_ERRNO(rdma_bind_addr, rdma_bind_addr(id, (struct sockaddr *)&at));
	FAILS_ERRNO(rdma_listen, rdma_listen(id, 1));
	FAILS_ERRNO(rdma_resolve_addr, rdma_resolve_addr(id, NULL, (struct sockaddr *)&at, 1));
	FAILS_ERRNO(rdma_resolve_route, rdma_resolve_route(id, 1));
	FAILS_ERRNO(rdma_create_qp, rdma_create_qp(id, pair.a.pd, &init));
	FAILS_ERRNO(rdma_connect, rdma_connect(id, NULL));
	FAILS_ERRNO(rdma_accept, rdma_accept(id, NULL));
	FAILS_ERRNO(rdma_reject, rdma_reject(id, NULL, 0));
	FAILS_ERRNO(rdma_establish, rdma_establish(id));
	FAILS_ERRNO(rdma_disconnect, rdma_disconnect(id));
	FAILS_ERRNO(rdma_notify, rdma_notify(id, IBV_EVENT_COMM_EST));
	FAILS_ERRNO(rdma_get_cm_event, rdma_get_cm_event(channel, &event));
	FAILS_ERRNO(rdma_set_option,
		    rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &value, 1));
	FAILS_ERRNO(rdma_migrate_id, rdma_migrate_id(id, pair.b.channel));
	FAILS_ERRNO(rdma_init_qp_attr, rdma_init_qp_attr(id, &attr, &mask));
	FAILS_NULL(rdma_get_devices, rdma_get_devices(NULL));
	fake_cm_push(id, RDMA_CM_EVENT_ADDR_CHANGE, 0, NULL, 0);
	TEST_ASSERT_EQUAL_INT(0, rdma_get_cm_event(channel, &event));
	FAILS_ERRNO(rdma_ack_cm_event, rdma_ack_cm_event(event));
	TEST_ASSERT_EQUAL_INT(0, rdma_ack_cm_event(event));
	pair_down(&pair);
}

static void test_the_nth_call(void)
{
	fake_verbs_fail("ibv_fork_init", 3, ENOSYS);
	TEST_ASSERT_EQUAL_INT(0, ibv_fork_init());
	TEST_ASSERT_EQUAL_INT(0, ibv_fork_init());
	TEST_ASSERT_EQUAL_INT(ENOSYS, ibv_fork_init());
	TEST_ASSERT_EQUAL_INT(0, ibv_fork_init());
	fake_verbs_fail("ibv_fork_init", FAKE_ALWAYS, ENOSYS);
	for (int i = 0; i < 5; i++)
		TEST_ASSERT_EQUAL_INT(ENOSYS, ibv_fork_init());
	fake_verbs_fail("ibv_fork_init", 0, 0);
	TEST_ASSERT_EQUAL_INT(0, ibv_fork_init());
	TEST_ASSERT_EQUAL_UINT(10, fake_verbs_calls("ibv_fork_init"));
	fake_verbs_fail("ibv_fork_initt", 1, EIO);
	expect_misuse("no function is called ibv_fork_initt");
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_the_list);
	RUN_TEST(test_attributes_of_a_device);
	RUN_TEST(test_texts_of_values);
	RUN_TEST(test_limits);
	RUN_TEST(test_asynchronous_events);
	RUN_TEST(test_a_context_that_is_closed_too_early);
	RUN_TEST(test_every_function_of_libibverbs_fails);
	RUN_TEST(test_every_function_of_librdmacm_fails);
	RUN_TEST(test_the_nth_call);
	return UNITY_END();
}
