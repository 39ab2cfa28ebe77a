/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues and their event channels: each notification is taken, counted and acknowledged
 * once.
 */
#include "rig.h"

#define LOT 1024 /* number of notifications that are acknowledged together */

static struct vb_device dev;
static struct ibv_comp_channel *channel;

void setUp(void)
{
	rig_init();
	TEST_ASSERT_EQUAL_INT(0, vb_device_open(&dev, "fake0"));
}

void tearDown(void)
{
	rig_down();
	vb_channel_destroy(&channel);
	vb_device_close(&dev);
	rig_clean();
}

static void test_channel(void)
{
	TEST_ASSERT_EQUAL_INT(0, vb_channel_create(dev.context, &channel));
	rig_check_fd(channel->fd);
	TEST_ASSERT_EQUAL_INT(0, vb_channel_drain(channel));
	vb_channel_destroy(&channel);
	TEST_ASSERT_NULL(channel);
	fake_verbs_fail("ibv_create_comp_channel", 1, EMFILE);
	TEST_ASSERT_EQUAL_INT(-EMFILE, vb_channel_create(dev.context, &channel));
	TEST_ASSERT_NULL(channel);
	vb_channel_destroy(&channel);
	TEST_ASSERT_EQUAL_UINT(1, fake_verbs_calls("ibv_destroy_comp_channel"));
}

static void test_create(void)
{
	static const uint32_t sizes[] = {1, 2, 100, 32767};
	struct vb_cq cq;

	for (int i = 0; i < 4; i++) {
		memset(&cq, 0x5a, sizeof(cq));
		TEST_ASSERT_EQUAL_INT(0,
				      vb_cq_create(dev.context, &dev.limits, sizes[i], NULL, &cq));
		TEST_ASSERT_EQUAL_INT(sizes[i], cq.cq->cqe);
		TEST_ASSERT_EQUAL_INT(0, cq.async.event);
		vb_cq_destroy(&cq);
		TEST_ASSERT_NULL(cq.cq);
		vb_cq_destroy(&cq);
	}
	TEST_ASSERT_EQUAL_UINT(4, fake_verbs_calls("ibv_destroy_cq"));
}

static void test_limits(void)
{
	static const uint32_t sizes[] = {0, 32768, UINT32_MAX};
	struct vb_cq cq;

	for (int i = 0; i < 3; i++) {
		TEST_ASSERT_EQUAL_INT(-E2BIG,
				      vb_cq_create(dev.context, &dev.limits, sizes[i], NULL, &cq));
		TEST_ASSERT_NULL(cq.cq);
	}
	TEST_ASSERT_EQUAL_UINT(0, fake_verbs_calls("ibv_create_cq"));
	fake_verbs_fail("ibv_create_cq", 1, ENOSPC);
	TEST_ASSERT_EQUAL_INT(-ENOSPC, vb_cq_create(dev.context, &dev.limits, 1, NULL, &cq));
	TEST_ASSERT_NULL(cq.cq);
}

static void receive(uint32_t slot)
{
	TEST_ASSERT_EQUAL_INT(0, vb_qp_recv(&rig.b.qp, rig.b.buf, 64, rig.b.mr->lkey, &slot, 1));
}

static void test_poll(void)
{
	struct ibv_wc wcs[4];

	TEST_ASSERT_EQUAL_INT(0, rig_up());
	TEST_ASSERT_EQUAL_INT(0, vb_cq_poll(&rig.b.cq, wcs, 4));
	for (uint32_t slot = 1; slot <= 3; slot++)
		receive(slot);
	for (uint32_t i = 1; i <= 3; i++)
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, rig_do(IBV_WR_SEND, 0, i * 10));
	TEST_ASSERT_EQUAL_INT(2, vb_cq_poll(&rig.b.cq, wcs, 2));
	TEST_ASSERT_EQUAL_INT(1, vb_cq_poll(&rig.b.cq, wcs + 2, 2));
	for (uint32_t i = 0; i < 3; i++) {
		TEST_ASSERT_EQUAL_HEX64(VB_RECV | (i + 1), wcs[i].wr_id);
		TEST_ASSERT_EQUAL_UINT32((i + 1) * 10, wcs[i].byte_len);
		TEST_ASSERT_EQUAL_STRING("success", vb_wc_text(&wcs[i]));
	}
	fake_verbs_fail("ibv_poll_cq", 1, EIO);
	TEST_ASSERT_LESS_THAN(0, vb_cq_poll(&rig.b.cq, wcs, 4));
}

/*
 * Each arming causes one notification, on the channel that all queues of a thread share. The
 * notification counts for its own queue.
 */
static void test_wake(void)
{
	struct vb_cq *a = &rig.a.cq, *b = &rig.b.cq;
	struct ibv_wc wc;

	TEST_ASSERT_EQUAL_INT(0, rig_up());
	receive(0);
	receive(1);
	TEST_ASSERT_EQUAL_INT(0, rig_ready(rig.b.channel->fd));
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, rig_do(IBV_WR_SEND, 0, 1));
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, rig_do(IBV_WR_SEND, 0, 1));
	TEST_ASSERT_EQUAL_INT(1, rig_ready(rig.b.channel->fd));
	TEST_ASSERT_EQUAL_INT(1, vb_channel_drain(rig.b.channel));
	TEST_ASSERT_EQUAL_INT(0, rig_ready(rig.b.channel->fd));
	TEST_ASSERT_EQUAL_UINT(1, b->n_unacked);
	TEST_ASSERT_EQUAL_UINT(0, a->n_unacked);
	TEST_ASSERT_EQUAL_INT(1, vb_channel_drain(rig.a.channel));
	TEST_ASSERT_EQUAL_UINT(1, a->n_unacked);
	TEST_ASSERT_EQUAL_INT(1, vb_cq_poll(b, &wc, 1));
	TEST_ASSERT_EQUAL_INT(1, vb_cq_poll(b, &wc, 1));
	TEST_ASSERT_EQUAL_INT(0, vb_cq_arm(b));
	TEST_ASSERT_EQUAL_INT(0, rig_ready(rig.b.channel->fd));
	receive(2);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, rig_do(IBV_WR_SEND, 0, 1));
	TEST_ASSERT_EQUAL_INT(1, vb_channel_drain(rig.b.channel));
	TEST_ASSERT_EQUAL_UINT(2, b->n_unacked);
	fake_verbs_fail("ibv_get_cq_event", 1, EIO);
	TEST_ASSERT_EQUAL_INT(0, vb_channel_drain(rig.b.channel));
}

static void test_acknowledge(void)
{
	struct ibv_wc wc;

	TEST_ASSERT_EQUAL_INT(0, rig_up());
	for (int i = 0; i < LOT + 5; i++) {
		receive(0);
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, rig_do(IBV_WR_SEND, 0, 1));
		TEST_ASSERT_EQUAL_INT(1, vb_cq_poll(&rig.b.cq, &wc, 1));
		TEST_ASSERT_EQUAL_INT(1, vb_channel_drain(rig.b.channel));
		TEST_ASSERT_EQUAL_INT(0, vb_cq_arm(&rig.b.cq));
	}
	TEST_ASSERT_EQUAL_UINT(1, fake_verbs_calls("ibv_ack_cq_events"));
	TEST_ASSERT_EQUAL_UINT(5, rig.b.cq.n_unacked);
	rig_down(); /* acknowledges the remaining events; otherwise destruction would block */
	TEST_ASSERT_EQUAL_UINT64(LOT + 5, rig_counters().cq_acks);
}

static void test_arm_fails(void)
{
	TEST_ASSERT_EQUAL_INT(0, rig_up());
	fake_verbs_fail("ibv_req_notify_cq", 1, EIO);
	TEST_ASSERT_EQUAL_INT(-EIO, vb_cq_arm(&rig.b.cq));
}

static void test_reasons(void)
{
	static const struct {
		enum ibv_wc_status status;
		int reason;
	} rows[] = {
		{IBV_WC_SUCCESS, 0},
		{IBV_WC_LOC_LEN_ERR, -EPROTO},
		{IBV_WC_LOC_QP_OP_ERR, -EIO},
		{IBV_WC_LOC_EEC_OP_ERR, -EIO},
		{IBV_WC_LOC_PROT_ERR, -EIO},
		{IBV_WC_WR_FLUSH_ERR, -ECANCELED},
		{IBV_WC_MW_BIND_ERR, -EIO},
		{IBV_WC_BAD_RESP_ERR, -EPROTO},
		{IBV_WC_LOC_ACCESS_ERR, -EIO},
		{IBV_WC_REM_INV_REQ_ERR, -EPROTO},
		{IBV_WC_REM_ACCESS_ERR, -EPROTO},
		{IBV_WC_REM_OP_ERR, -EPROTO},
		{IBV_WC_RETRY_EXC_ERR, -ETIMEDOUT},
		{IBV_WC_RNR_RETRY_EXC_ERR, -EPROTO},
		{IBV_WC_LOC_RDD_VIOL_ERR, -EIO},
		{IBV_WC_REM_INV_RD_REQ_ERR, -EIO},
		{IBV_WC_REM_ABORT_ERR, -EPROTO},
		{IBV_WC_INV_EECN_ERR, -EIO},
		{IBV_WC_INV_EEC_STATE_ERR, -EIO},
		{IBV_WC_FATAL_ERR, -EIO},
		{IBV_WC_RESP_TIMEOUT_ERR, -ETIMEDOUT},
		{IBV_WC_GENERAL_ERR, -EIO},
		{IBV_WC_TM_ERR, -EIO},
		{IBV_WC_TM_RNDV_INCOMPLETE, -EIO},
		{1000, -EIO},
	};
	struct ibv_wc wc = {.status = IBV_WC_WR_FLUSH_ERR};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		TEST_ASSERT_EQUAL_INT_MESSAGE(rows[i].reason, vb_wc_reason(rows[i].status),
					      ibv_wc_status_str(rows[i].status));
	TEST_ASSERT_EQUAL_STRING(ibv_wc_status_str(IBV_WC_WR_FLUSH_ERR), vb_wc_text(&wc));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_channel);
	RUN_TEST(test_create);
	RUN_TEST(test_limits);
	RUN_TEST(test_poll);
	RUN_TEST(test_wake);
	RUN_TEST(test_acknowledge);
	RUN_TEST(test_arm_fails);
	RUN_TEST(test_reasons);
	return UNITY_END();
}
