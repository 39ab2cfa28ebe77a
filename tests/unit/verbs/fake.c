/* SPDX-License-Identifier: BSD-3-Clause */
/* The fake of libibverbs and librdmacm: it moves what it should, and notes each misuse that it promises to note. */
#include "pair.h"

static struct pair pair;

static void expect_bytes(uint8_t value, const uint8_t *at, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		TEST_ASSERT_EQUAL_UINT8(value, at[i]);
}

void setUp(void)
{
	fake_verbs_reset();
	pair_init(&pair);
}

void tearDown(void)
{
	TEST_ASSERT_EQUAL_STRING("", fake_verbs_check_clean());
}

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
	TEST_ASSERT_EQUAL_STRING("over the wire", pair.b.buf + 100);
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
	pair_expect(pair.a.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	pair_expect(pair.a.channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	pair_expect(pair.b.channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	pair_down(&pair);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_send_and_receive);
	RUN_TEST(test_read_and_write);
	RUN_TEST(test_disconnect);
	return UNITY_END();
}
