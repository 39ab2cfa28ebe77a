/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fake of libibverbs moves data, fails as a device does, and records each kind of misuse that
 * its header lists.
 */
#include <poll.h>

#include "pair.h"

static struct pair pair;
static struct fake_counters counters;

void setUp(void)
{
	fake_verbs_reset();
	pair_init(&pair);
}

void tearDown(void)
{
	TEST_ASSERT_EQUAL_STRING("", fake_verbs_check_clean());
}

static void expect_bytes(uint8_t value, const uint8_t *at, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		TEST_ASSERT_EQUAL_UINT8(value, at[i]);
}

static void expect_text(const char *text, const uint8_t *at)
{
	TEST_ASSERT_EQUAL_MEMORY(text, at, strlen(text));
}

static void expect_state(struct pair_end *end, enum ibv_qp_state state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	TEST_ASSERT_EQUAL_INT(0, ibv_query_qp(end->id->qp, &attr, IBV_QP_STATE, &init));
	TEST_ASSERT_EQUAL_INT(state, attr.qp_state);
}

/* Post a write of no bytes from a to b. */
static int write_nothing(int signalled)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = signalled ? IBV_SEND_SIGNALED : 0,
				 .wr.rdma.rkey = pair.b.mr->rkey},
			   *bad;

	return ibv_post_send(pair.a.id->qp, &wr, &bad);
}

/* Expect an event for the queue pair of this end, which an access error has raised. */
static void expect_async(struct pair_end *end, enum ibv_event_type type)
{
	struct ibv_async_event event;

	TEST_ASSERT_EQUAL_INT(0, fcntl(end->id->verbs->async_fd, F_SETFL, O_NONBLOCK));
	TEST_ASSERT_EQUAL_INT(0, ibv_get_async_event(end->id->verbs, &event));
	TEST_ASSERT_EQUAL_INT(type, event.event_type);
	ibv_ack_async_event(&event);
	TEST_ASSERT_EQUAL_INT(-1, ibv_get_async_event(end->id->verbs, &event));
	TEST_ASSERT_EQUAL_INT(EAGAIN, errno);
}

/* -- without errors -- */

static void test_send_and_receive(void)
{
	struct ibv_wc wc;

	pair_up(&pair);
	strcpy((char *)pair.a.buf, "over the wire");
	TEST_ASSERT_EQUAL_INT(0, pair_recv(&pair.b, 1, 100, 64));
	TEST_ASSERT_EQUAL_INT(0, pair_send(&pair.a, 2, 0, 14, IBV_SEND_SIGNALED));
	wc = pair_done(&pair.b, 1, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(IBV_WC_RECV, wc.opcode);
	TEST_ASSERT_EQUAL_UINT32(14, wc.byte_len);
	TEST_ASSERT_EQUAL_UINT32(pair.b.id->qp->qp_num, wc.qp_num);
	wc = pair_done(&pair.a, 2, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SEND, wc.opcode);
	expect_text("over the wire", pair.b.buf + 100);
	pair_down(&pair);
}

static void test_read_and_write(void)
{
	struct ibv_wc wc;

	pair_up(&pair);
	memset(pair.a.buf, 0x5a, 512);
	TEST_ASSERT_EQUAL_INT(0, pair_rdma(&pair.a, &pair.b, IBV_WR_RDMA_WRITE, 1024, 512));
	pair_done(&pair.a, 1024, IBV_WC_SUCCESS);
	expect_bytes(0x5a, pair.b.buf + 1024, 512);
	TEST_ASSERT_EQUAL_UINT8(0, pair.b.buf[1023]);
	TEST_ASSERT_EQUAL_UINT8(0, pair.b.buf[1024 + 512]);
	memset(pair.b.buf, 0x3c, PAIR_BYTES);
	TEST_ASSERT_EQUAL_INT(0, pair_rdma(&pair.a, &pair.b, IBV_WR_RDMA_READ, 7, 99));
	wc = pair_done(&pair.a, 7, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(IBV_WC_RDMA_READ, wc.opcode);
	expect_bytes(0x3c, pair.a.buf, 99);
	TEST_ASSERT_EQUAL_UINT8(0x5a, pair.a.buf[99]);
	TEST_ASSERT_EQUAL_INT(0, pair_recv(&pair.b, 9, 0, 0));
	TEST_ASSERT_EQUAL_INT(0, pair_rdma(&pair.a, &pair.b, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 8));
	wc = pair_done(&pair.b, 9, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(IBV_WC_RECV_RDMA_WITH_IMM, wc.opcode);
	TEST_ASSERT_EQUAL_UINT32(IBV_WC_WITH_IMM, wc.wc_flags);
	TEST_ASSERT_EQUAL_UINT32(42, ntohl(wc.imm_data));
	TEST_ASSERT_EQUAL_UINT32(8, wc.byte_len);
	pair_done(&pair.a, 0, IBV_WC_SUCCESS);
	pair_down(&pair);
}

static void test_pieces_and_chains(void)
{
	struct ibv_sge from[2], to[2];
	struct ibv_recv_wr recv = {.wr_id = 1, .sg_list = to, .num_sge = 2}, *bad_recv;
	struct ibv_send_wr wr[2] = {{.wr_id = 2, .opcode = IBV_WR_RDMA_WRITE},
				    {.wr_id = 3,
				     .opcode = IBV_WR_SEND_WITH_IMM,
				     .send_flags = IBV_SEND_SIGNALED,
				     .imm_data = htonl(7)}},
			   *bad;

	pair_up(&pair);
	memcpy(pair.a.buf, "ABCDEFGH", 8);
	from[0] = pair_sge(&pair.a, 0, 3);
	from[1] = pair_sge(&pair.a, 3, 5);
	to[0] = pair_sge(&pair.b, 0, 6);
	to[1] = pair_sge(&pair.b, 100, 6);
	wr[0].next = &wr[1];
	wr[0].sg_list = wr[1].sg_list = from;
	wr[0].num_sge = wr[1].num_sge = 2;
	wr[0].wr.rdma.rkey = pair.b.mr->rkey;
	wr[0].wr.rdma.remote_addr = (uintptr_t)pair.b.buf + 501;
	TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(pair.b.id->qp, &recv, &bad_recv));
	TEST_ASSERT_EQUAL_INT(0, ibv_post_send(pair.a.id->qp, wr, &bad));
	pair_done(&pair.a, 3, IBV_WC_SUCCESS);
	pair_idle(&pair.a);
	TEST_ASSERT_EQUAL_UINT32(7, ntohl(pair_done(&pair.b, 1, IBV_WC_SUCCESS).imm_data));
	expect_text("ABCDEFGH", pair.b.buf + 501);
	expect_text("ABCDEF", pair.b.buf);
	expect_text("GH", pair.b.buf + 100);
	fake_verbs_counters(&counters);
	TEST_ASSERT_EQUAL_UINT64(1, counters.doorbells);
	TEST_ASSERT_EQUAL_UINT64(2, counters.send_wrs);
	TEST_ASSERT_EQUAL_UINT64(1, counters.signalled);
	TEST_ASSERT_EQUAL_UINT64(16, counters.bytes);
	pair_down(&pair);
}

/*
 * Inline data is copied when the request is posted, other data when it is sent. So tests detect a
 * buffer that is reused too early.
 */
static void test_when_data_is_read(void)
{
	pair_up(&pair);
	pair.a.buf[0] = pair.a.buf[1] = 1;
	fake_wire_hold(1);
	pair_recv(&pair.b, 1, 0, 1);
	pair_recv(&pair.b, 2, 1, 1);
	TEST_ASSERT_EQUAL_INT(0, pair_send(&pair.a, 1, 0, 1, IBV_SEND_SIGNALED));
	TEST_ASSERT_EQUAL_INT(0, pair_send(&pair.a, 2, 1, 1, IBV_SEND_SIGNALED | IBV_SEND_INLINE));
	pair.a.buf[0] = pair.a.buf[1] = 2;
	TEST_ASSERT_EQUAL_UINT(2, fake_wire_waiting(NULL));
	pair_idle(&pair.a);
	fake_wire_hold(0);
	pair_done(&pair.a, 1, IBV_WC_SUCCESS);
	pair_done(&pair.a, 2, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_UINT8(2, pair.b.buf[0]);
	TEST_ASSERT_EQUAL_UINT8(1, pair.b.buf[1]);
	TEST_ASSERT_EQUAL_INT(EINVAL, pair_send(&pair.a, 3, 0, 65, IBV_SEND_INLINE));
	pair_down(&pair);
}

static void test_step_keeps_the_order(void)
{
	pair_up(&pair);
	for (unsigned i = 0; i < 3; i++) {
		pair_recv(&pair.b, i, 8 * i, 8);
		pair_recv(&pair.a, i, 64 + 8 * i, 8);
	}
	fake_wire_hold(1);
	pair_send(&pair.a, 10, 0, 1, 0);
	pair_send(&pair.b, 20, 0, 1, 0);
	pair_send(&pair.a, 11, 0, 1, 0);
	TEST_ASSERT_EQUAL_INT(1, fake_wire_step(NULL));
	pair_done(&pair.b, 0, IBV_WC_SUCCESS);
	pair_idle(&pair.a);
	TEST_ASSERT_EQUAL_INT(1, fake_wire_step(pair.a.id->qp));
	pair_done(&pair.b, 1, IBV_WC_SUCCESS);
	pair_idle(&pair.a);
	TEST_ASSERT_EQUAL_INT(0, fake_wire_step(pair.a.id->qp));
	TEST_ASSERT_EQUAL_INT(1, fake_wire_step(NULL));
	pair_done(&pair.a, 0, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(0, fake_wire_step(NULL));
	pair_down(&pair);
}

/* -- slots -- */

static void test_slots_of_the_send_queue(void)
{
	pair_up(&pair);
	for (unsigned i = 0; i < 8; i++)
		TEST_ASSERT_EQUAL_INT(0, write_nothing(i == 5));
	/*
	 * all requests are done; a slot is free only after the completion of the signalled request
	 * was polled, and then only the slots up to this request
	 */
	TEST_ASSERT_EQUAL_UINT(0, fake_wire_waiting(NULL));
	TEST_ASSERT_EQUAL_INT(ENOMEM, write_nothing(0));
	pair_done(&pair.a, 0, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 6; i++)
		TEST_ASSERT_EQUAL_INT(0, write_nothing(0));
	TEST_ASSERT_EQUAL_UINT(0, fake_verbs_forgive());
	TEST_ASSERT_EQUAL_INT(ENOMEM, write_nothing(0));
	expect_misuse("so it never drains");
	pair_down(&pair);
}

static void test_bad_wr(void)
{
	struct ibv_send_wr wr[10] = {{.opcode = IBV_WR_RDMA_WRITE}}, *bad = NULL;
	struct ibv_recv_wr recv[10] = {{.num_sge = 0}}, *bad_recv = NULL;

	pair_up(&pair);
	for (unsigned i = 0; i < 10; i++) {
		wr[i] = (struct ibv_send_wr){.next = i < 9 ? &wr[i + 1] : NULL,
					     .opcode = IBV_WR_RDMA_WRITE,
					     .send_flags = IBV_SEND_SIGNALED};
		recv[i].next = i < 9 ? &recv[i + 1] : NULL;
	}
	TEST_ASSERT_EQUAL_INT(ENOMEM, ibv_post_send(pair.a.id->qp, wr, &bad));
	TEST_ASSERT_EQUAL_PTR(&wr[8], bad);
	TEST_ASSERT_EQUAL_INT(ENOMEM, ibv_post_recv(pair.a.id->qp, recv, &bad_recv));
	TEST_ASSERT_EQUAL_PTR(&recv[8], bad_recv);
	for (unsigned i = 0; i < 8; i++)
		pair_done(&pair.a, 0, IBV_WC_SUCCESS);
	wr[0].next = NULL;
	wr[0].num_sge = 3;
	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_post_send(pair.a.id->qp, wr, &bad));
	TEST_ASSERT_EQUAL_PTR(&wr[0], bad);
	fake_verbs_fail("ibv_post_send", 2, EIO);
	TEST_ASSERT_EQUAL_INT(0, write_nothing(1));
	TEST_ASSERT_EQUAL_INT(EIO, write_nothing(1));
	TEST_ASSERT_EQUAL_INT(0, write_nothing(1));
	pair_down(&pair);
}

/* -- errors -- */

static void test_no_receive(void)
{
	pair_up(&pair);
	TEST_ASSERT_EQUAL_INT(0, pair_send(&pair.a, 1, 0, 4, 0));
	TEST_ASSERT_EQUAL_INT(0, pair_rdma(&pair.a, &pair.b, IBV_WR_RDMA_WRITE, 0, 4));
	TEST_ASSERT_EQUAL_UINT(0, fake_wire_timeout(2)); /* rnr_retry_count is 2 */
	pair_recv(&pair.b, 9, 0, 8);
	pair_done(&pair.b, 9, IBV_WC_SUCCESS);
	pair_done(&pair.a, 0, IBV_WC_SUCCESS); /* the write had to wait for the earlier send */
	TEST_ASSERT_EQUAL_INT(0, pair_send(&pair.a, 2, 0, 4, 0));
	TEST_ASSERT_EQUAL_INT(0, pair_send(&pair.a, 3, 0, 4, 0));
	TEST_ASSERT_EQUAL_UINT(0, fake_wire_timeout(2));
	TEST_ASSERT_EQUAL_UINT(1, fake_wire_timeout(1));
	TEST_ASSERT_NOT_EQUAL(IBV_WC_SEND, pair_done(&pair.a, 2, IBV_WC_RNR_RETRY_EXC_ERR).opcode);
	pair_done(&pair.a, 3, IBV_WC_WR_FLUSH_ERR);
	expect_state(&pair.a, IBV_QPS_ERR);
	expect_state(&pair.b, IBV_QPS_RTS); /* the peer stays connected */
	fake_verbs_counters(&counters);
	TEST_ASSERT_EQUAL_UINT64(2, counters.rnr_naks);
	pair_down(&pair);
}

static void test_no_receive_fails_at_once(void)
{
	pair_up(&pair);
	fake_wire_rnr_at_once(1);
	TEST_ASSERT_EQUAL_INT(0, pair_send(&pair.a, 1, 0, 4, 0));
	pair_done(&pair.a, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	pair_down(&pair);
	fake_verbs_reset();
	pair.param.rnr_retry_count = 7;
	pair_up(&pair);
	fake_wire_rnr_at_once(1);
	TEST_ASSERT_EQUAL_INT(0, pair_send(&pair.a, 1, 0, 4, 0));
	TEST_ASSERT_EQUAL_UINT(0, fake_wire_timeout(100)); /* the send has no limit of retries */
	pair_down(&pair);
}

static void test_remote_access(void)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		unsigned access;
		int64_t offset;
		unsigned length;
		uint32_t key_xor;
		enum ibv_wc_status status;
	} rows[] = {
		{IBV_WR_RDMA_WRITE, 3, 0, PAIR_BYTES, 0, IBV_WC_SUCCESS},
		{IBV_WR_RDMA_WRITE, 3, PAIR_BYTES - 4, 4, 0, IBV_WC_SUCCESS},
		{IBV_WR_RDMA_WRITE, 3, PAIR_BYTES - 4, 5, 0, IBV_WC_REM_ACCESS_ERR},
		{IBV_WR_RDMA_WRITE, 3, -1, 4, 0, IBV_WC_REM_ACCESS_ERR},
		{IBV_WR_RDMA_WRITE, 3, PAIR_BYTES, 1, 0, IBV_WC_REM_ACCESS_ERR},
		{IBV_WR_RDMA_WRITE, 3, 0, 4, 1, IBV_WC_REM_ACCESS_ERR},
		{IBV_WR_RDMA_WRITE, 3, 0, 4, 0x100, IBV_WC_REM_ACCESS_ERR},
		{IBV_WR_RDMA_WRITE, 5, 0, 4, 0, IBV_WC_REM_ACCESS_ERR},
		{IBV_WR_RDMA_WRITE, 1, 0, 4, 0, IBV_WC_REM_ACCESS_ERR},
		{IBV_WR_RDMA_READ, 3, 0, 4, 0, IBV_WC_REM_ACCESS_ERR},
		{IBV_WR_RDMA_READ, 5, 0, 4, 0, IBV_WC_SUCCESS},
		{IBV_WR_RDMA_WRITE, 1, 0, 0, 7, IBV_WC_SUCCESS}, /* no bytes: no check */
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fake_verbs_reset();
		pair.access = rows[i].access;
		pair_up(&pair);
		pair_recv(&pair.b, 99, 0, 4);
		pair.b.mr->rkey ^= rows[i].key_xor;
		pair_rdma(&pair.a, &pair.b, rows[i].opcode, rows[i].offset, rows[i].length);
		pair_rdma(&pair.a, &pair.b, rows[i].opcode, 0, 0);
		pair_done(&pair.a, (uint64_t)rows[i].offset, rows[i].status);
		pair_done(&pair.a, 0, rows[i].status ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS);
		expect_state(&pair.a, rows[i].status ? IBV_QPS_ERR : IBV_QPS_RTS);
		expect_state(&pair.b, rows[i].status ? IBV_QPS_ERR : IBV_QPS_RTS);
		if (rows[i].status) {
			pair_done(&pair.b, 99, IBV_WC_WR_FLUSH_ERR);
			expect_async(&pair.b, IBV_EVENT_QP_ACCESS_ERR);
		}
		pair_down(&pair);
	}
}

static void test_keys_die(void)
{
	struct ibv_pd *other;
	struct ibv_mr *old;
	uint32_t key;

	pair_up(&pair);
	old = pair.b.mr;
	key = old->rkey;
	TEST_ASSERT_EQUAL_INT(0, ibv_dereg_mr(old));
	TEST_ASSERT_NOT_NULL(pair.b.mr = ibv_reg_mr(pair.b.pd, pair.b.buf, PAIR_BYTES, 7));
	TEST_ASSERT_NOT_EQUAL(key, pair.b.mr->rkey);
	TEST_ASSERT_NOT_EQUAL(key >> 8, pair.b.mr->rkey >> 8);
	TEST_ASSERT_EQUAL_INT(0, pair_rdma(&pair.a, &pair.b, IBV_WR_RDMA_WRITE, 0, 4));
	pair_done(&pair.a, 0, IBV_WC_SUCCESS);
	/* a key of another protection domain */
	TEST_ASSERT_NOT_NULL(other = ibv_alloc_pd(pair.b.id->verbs));
	old = pair.b.mr;
	TEST_ASSERT_NOT_NULL(pair.b.mr = ibv_reg_mr(other, pair.b.buf, PAIR_BYTES, 7));
	TEST_ASSERT_EQUAL_INT(EBUSY, ibv_dealloc_pd(other));
	TEST_ASSERT_EQUAL_INT(0, pair_rdma(&pair.a, &pair.b, IBV_WR_RDMA_WRITE, 0, 4));
	pair_done(&pair.a, 0, IBV_WC_REM_ACCESS_ERR);
	ibv_dereg_mr(old);
	pair.b.id->pd = pair.b.pd;
	pair_down(&pair);
	TEST_ASSERT_EQUAL_INT(0, ibv_dealloc_pd(other));
}

static void test_local_errors(void)
{
	pair_up(&pair);
	pair.a.mr->lkey++;
	TEST_ASSERT_EQUAL_INT(0, pair_send(&pair.a, 1, 0, 4, 0));
	pair_done(&pair.a, 1, IBV_WC_LOC_PROT_ERR);
	expect_state(&pair.a, IBV_QPS_ERR);
	expect_state(&pair.b, IBV_QPS_RTS);
	pair_down(&pair);
	fake_verbs_reset();
	pair_up(&pair);
	pair_recv(&pair.b, 1, 0, 3);
	TEST_ASSERT_EQUAL_INT(0, pair_send(&pair.a, 2, 0, 4, 0));
	pair_done(&pair.b, 1, IBV_WC_LOC_LEN_ERR);
	pair_done(&pair.a, 2, IBV_WC_REM_INV_REQ_ERR);
	pair_down(&pair);
	fake_verbs_reset();
	pair_up(&pair);
	pair_recv(&pair.b, 1, PAIR_BYTES - 1, 4);
	TEST_ASSERT_EQUAL_INT(0, pair_send(&pair.a, 2, 0, 4, 0));
	pair_done(&pair.b, 1, IBV_WC_LOC_PROT_ERR);
	pair_done(&pair.a, 2, IBV_WC_REM_OP_ERR);
	pair_down(&pair);
}

static void test_cut(void)
{
	pair_up(&pair);
	fake_wire_cut(1);
	TEST_ASSERT_EQUAL_INT(0, pair_rdma(&pair.a, &pair.b, IBV_WR_RDMA_WRITE, 1, 4));
	TEST_ASSERT_EQUAL_UINT(0, fake_wire_timeout(3)); /* retry_count is 3 */
	fake_wire_cut(0);
	pair_done(&pair.a, 1, IBV_WC_SUCCESS);
	fake_wire_cut(1);
	TEST_ASSERT_EQUAL_INT(0, pair_rdma(&pair.a, &pair.b, IBV_WR_RDMA_WRITE, 2, 4));
	TEST_ASSERT_EQUAL_INT(0, pair_rdma(&pair.a, &pair.b, IBV_WR_RDMA_WRITE, 3, 4));
	TEST_ASSERT_EQUAL_UINT(1, fake_wire_timeout(4));
	pair_done(&pair.a, 2, IBV_WC_RETRY_EXC_ERR);
	pair_done(&pair.a, 3, IBV_WC_WR_FLUSH_ERR);
	pair_expect_none(pair.a.channel);
	pair_expect_none(pair.b.channel);
	/* requests posted in this state are flushed immediately */
	TEST_ASSERT_EQUAL_INT(0, pair_rdma(&pair.a, &pair.b, IBV_WR_RDMA_WRITE, 4, 4));
	pair_done(&pair.a, 4, IBV_WC_WR_FLUSH_ERR);
	TEST_ASSERT_EQUAL_INT(0, pair_recv(&pair.a, 5, 0, 4));
	pair_done(&pair.a, 5, IBV_WC_WR_FLUSH_ERR);
	pair_down(&pair);
}

static void test_states(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};

	pair_listen(&pair);
	pair_furnish(&pair, &pair.a);
	expect_state(&pair.a, IBV_QPS_INIT);
	TEST_ASSERT_EQUAL_INT(EINVAL, pair_send(&pair.a, 1, 0, 4, 0));
	TEST_ASSERT_EQUAL_INT(0, pair_recv(&pair.a, 1, 0, 4));
	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_modify_qp(pair.a.id->qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RESET;
	TEST_ASSERT_EQUAL_INT(0, ibv_modify_qp(pair.a.id->qp, &attr, IBV_QP_STATE));
	TEST_ASSERT_EQUAL_INT(EINVAL, pair_recv(&pair.a, 1, 0, 4));
	attr.qp_state = IBV_QPS_ERR;
	TEST_ASSERT_EQUAL_INT(0, ibv_modify_qp(pair.a.id->qp, &attr, IBV_QP_STATE));
	pair_unfurnish(&pair.a);
	TEST_ASSERT_EQUAL_INT(0, rdma_destroy_id(pair.listener));
	rdma_destroy_event_channel(pair.a.channel);
	rdma_destroy_event_channel(pair.b.channel);
}

/* -- completion queues -- */

static int is_readable(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	return poll(&pfd, 1, 0) == 1;
}

static void test_completion_events(void)
{
	struct ibv_cq *cq;
	void *context;

	pair_up(&pair);
	pair_rdma(&pair.a, &pair.b, IBV_WR_RDMA_WRITE, 0, 4);
	TEST_ASSERT_EQUAL_INT(0, ibv_req_notify_cq(pair.a.cq, 0));
	TEST_ASSERT_FALSE(is_readable(pair.a.comp->fd)); /* no event for earlier completions */
	pair_rdma(&pair.a, &pair.b, IBV_WR_RDMA_WRITE, 0, 4);
	pair_rdma(&pair.a, &pair.b, IBV_WR_RDMA_WRITE, 0, 4);
	TEST_ASSERT_TRUE(is_readable(pair.a.comp->fd));
	TEST_ASSERT_EQUAL_INT(0, ibv_get_cq_event(pair.a.comp, &cq, &context));
	TEST_ASSERT_EQUAL_PTR(pair.a.cq, cq);
	TEST_ASSERT_EQUAL_PTR(&pair.a, context);
	TEST_ASSERT_FALSE(is_readable(pair.a.comp->fd)); /* each arming raises one event */
	TEST_ASSERT_EQUAL_INT(-1, ibv_get_cq_event(pair.a.comp, &cq, &context));
	TEST_ASSERT_EQUAL_INT(EAGAIN, errno);
	ibv_ack_cq_events(cq, 1);
	TEST_ASSERT_EQUAL_INT(EBUSY, ibv_destroy_cq(cq));
	TEST_ASSERT_EQUAL_INT(EBUSY, ibv_destroy_comp_channel(pair.a.comp));
	/* arm for solicited completions only */
	TEST_ASSERT_EQUAL_INT(0, ibv_req_notify_cq(pair.b.cq, 1));
	pair_recv(&pair.b, 1, 0, 4);
	pair_recv(&pair.b, 2, 0, 4);
	pair_send(&pair.a, 1, 0, 4, 0);
	TEST_ASSERT_FALSE(is_readable(pair.b.comp->fd));
	pair_send(&pair.a, 1, 0, 4, IBV_SEND_SOLICITED);
	TEST_ASSERT_TRUE(is_readable(pair.b.comp->fd));
	pair_down(&pair); /* an event that the program never got is no leak */
}

static void test_events_must_be_acknowledged(void)
{
	struct ibv_cq *cq;
	void *context;

	pair_up(&pair);
	ibv_req_notify_cq(pair.a.cq, 0);
	pair_rdma(&pair.a, &pair.b, IBV_WR_RDMA_WRITE, 0, 4);
	TEST_ASSERT_EQUAL_INT(0, ibv_get_cq_event(pair.a.comp, &cq, &context));
	ibv_ack_cq_events(cq, 2);
	expect_misuse("2 acknowledged, 1 got");
	ibv_req_notify_cq(pair.a.cq, 0);
	pair_rdma(&pair.a, &pair.b, IBV_WR_RDMA_WRITE, 0, 4);
	TEST_ASSERT_EQUAL_INT(0, ibv_get_cq_event(pair.a.comp, &cq, &context));
	pair_down(&pair);
	expect_misuse("ibv_destroy_cq(): 1 events are not acknowledged");
}

static void test_overrun(void)
{
	struct ibv_wc wc[16];

	pair.cqe = 4;
	pair_up(&pair);
	for (unsigned i = 0; i < 8; i++)
		pair_rdma(&pair.a, &pair.b, IBV_WR_RDMA_WRITE, i, 4);
	expect_misuse("a completion queue of 4 entries overran");
	TEST_ASSERT_EQUAL_INT(4, ibv_poll_cq(pair.a.cq, 16, wc));
	TEST_ASSERT_EQUAL_UINT64(3, wc[3].wr_id);
	fake_verbs_counters(&counters);
	TEST_ASSERT_EQUAL_UINT64(4, counters.overruns);
	pair_down(&pair);
}

static void test_completions_of_a_queue_pair_that_is_gone(void)
{
	struct ibv_wc wc;

	for (int cleans = 0; cleans < 2; cleans++) {
		fake_verbs_reset();
		fake_device(0)->cleans_cq = cleans;
		pair_up(&pair);
		pair_rdma(&pair.a, &pair.b, IBV_WR_RDMA_WRITE, 0, 4);
		rdma_destroy_qp(pair.a.id);
		TEST_ASSERT_EQUAL_INT(!cleans, ibv_poll_cq(pair.a.cq, 1, &wc));
		pair_make_qp(&pair, &pair.a);
		pair_down(&pair);
	}
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_send_and_receive);
	RUN_TEST(test_read_and_write);
	RUN_TEST(test_pieces_and_chains);
	RUN_TEST(test_when_data_is_read);
	RUN_TEST(test_step_keeps_the_order);
	RUN_TEST(test_slots_of_the_send_queue);
	RUN_TEST(test_bad_wr);
	RUN_TEST(test_no_receive);
	RUN_TEST(test_no_receive_fails_at_once);
	RUN_TEST(test_remote_access);
	RUN_TEST(test_keys_die);
	RUN_TEST(test_local_errors);
	RUN_TEST(test_cut);
	RUN_TEST(test_states);
	RUN_TEST(test_completion_events);
	RUN_TEST(test_events_must_be_acknowledged);
	RUN_TEST(test_overrun);
	RUN_TEST(test_completions_of_a_queue_pair_that_is_gone);
	return UNITY_END();
}
