/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs: chains of requests with one doorbell each. Few signalled requests complete all of
 * them, in order, and the queue never stalls.
 */
#include "rig.h"

/* Counts of requests. The cookies of requests count from 0. */
static struct ledger {
	uint64_t built, ended, bad; /* bad: cookie of the request that failed */
	int status;                 /* status of that request */
	int builds;                 /* number of requests that each() builds when it is called */
} ledger;

void setUp(void)
{
	rig_init();
	ledger = (struct ledger){.bad = UINT64_MAX};
}

void tearDown(void)
{
	fake_wire_hold(0);
	rig_down();
	rig_clean();
}

/* Build an empty write, which vb_qp_post() posts. Returns 0, or -EAGAIN if the queue is full. */
static int build(int wanted)
{
	struct vb_send send = {
		.kind = 7, .wanted = (uint32_t)wanted, .object = &ledger, .cookie = ledger.built};
	struct ibv_send_wr *wr = vb_qp_build(&rig.a.qp, &send);

	if (!wr)
		return -EAGAIN;
	TEST_ASSERT_EQUAL_INT(1, wr->num_sge);
	TEST_ASSERT_EQUAL_UINT32(0, wr->sg_list->length);
	TEST_ASSERT_NULL(wr->next);
	TEST_ASSERT_EQUAL_UINT(0, wr->send_flags);
	wr->opcode = IBV_WR_RDMA_WRITE;
	memset(&send, 0x5a, sizeof(send)); /* vb_qp_build() has copied it */
	ledger.built++;
	return 0;
}

static void each(void *arg, const struct vb_send *send, int status)
{
	TEST_ASSERT_EQUAL_PTR(&rig, arg);
	while (ledger.builds > 0 && build(0) == 0)
		ledger.builds--;
	TEST_ASSERT_EQUAL_UINT64(ledger.ended, send->cookie);
	TEST_ASSERT_EQUAL_PTR(&ledger, send->object);
	TEST_ASSERT_EQUAL_UINT32(7, send->kind);
	TEST_ASSERT_EQUAL_INT(ledger.ended == ledger.bad ? ledger.status : 0, status);
	ledger.ended++;
}

static int poll_some(int max)
{
	struct ibv_wc wcs[16];
	int n = vb_cq_poll(&rig.a.cq, wcs, max < 16 ? max : 16);

	for (int i = 0; i < n; i++) {
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wcs[i].status);
		vb_qp_done(&rig.a.qp, wcs[i].wr_id, 0, each, &rig);
	}
	return n;
}

static void up(uint32_t depth)
{
	rig.attr.sends = depth;
	TEST_ASSERT_EQUAL_INT(0, rig_up());
}

static void expect_counts(uint64_t requests, uint64_t doorbells, uint64_t signals)
{
	struct fake_counters c = rig_counters();

	TEST_ASSERT_EQUAL_UINT64(requests, c.send_wrs);
	TEST_ASSERT_EQUAL_UINT64(doorbells, c.doorbells);
	TEST_ASSERT_EQUAL_UINT64(signals, c.signalled);
}

/* -- create -- */

static int create(uint32_t sends, uint32_t recvs, uint32_t inline_bytes)
{
	rig.attr = (struct vb_qp_attr){.sends = sends,
				       .recvs = recvs,
				       .inline_bytes = inline_bytes,
				       .cq = rig.a.cq.cq,
				       .async = &rig.a.async};
	return vb_qp_create(rig.a.id, rig.a.pd, &rig.a.limits, &rig.attr, &rig.a.qp);
}

/* Create all objects except the queue pair. */
static void prepare(void)
{
	TEST_ASSERT_EQUAL_INT(0, rig_listen());
	TEST_ASSERT_EQUAL_INT(0, rig_equip(&rig.a));
	vb_qp_destroy(rig.a.id, &rig.a.qp);
}

static void test_create(void)
{
	prepare();
	TEST_ASSERT_EQUAL_INT(0, create(5, 3, 100));
	TEST_ASSERT_EQUAL_PTR(rig.a.id->qp, rig.a.qp.qp);
	TEST_ASSERT_EQUAL_PTR(&rig.a.async, rig.a.qp.qp->qp_context);
	TEST_ASSERT_EQUAL_PTR(rig.a.cq.cq, rig.a.qp.qp->send_cq);
	TEST_ASSERT_EQUAL_PTR(rig.a.cq.cq, rig.a.qp.qp->recv_cq);
	TEST_ASSERT_EQUAL_PTR(rig.a.pd, rig.a.qp.qp->pd);
	TEST_ASSERT_EQUAL_UINT32(100, rig.a.qp.max_inline);
	TEST_ASSERT_EQUAL_UINT32(5, vb_qp_room(&rig.a.qp));
	TEST_ASSERT_EQUAL_UINT32(5, rig_attr(&rig.a).cap.max_send_wr);
	TEST_ASSERT_EQUAL_UINT32(3, rig_attr(&rig.a).cap.max_recv_wr);
	vb_qp_destroy(rig.a.id, &rig.a.qp);
	TEST_ASSERT_NULL(rig.a.qp.qp);
	TEST_ASSERT_NULL(rig.a.id->qp);
	vb_qp_destroy(rig.a.id, &rig.a.qp);
}

static void expect_no_qp(void)
{
	TEST_ASSERT_NULL(rig.a.qp.qp);
	TEST_ASSERT_NULL(rig.a.qp.wrs);
	TEST_ASSERT_NULL(rig.a.id->qp);
}

static void test_limits(void)
{
	static const uint32_t sizes[][2] = {
		{0, 1}, {4097, 1}, {1, 4097}, {UINT32_MAX, 1}, {1, UINT32_MAX}};
	unsigned calls;

	prepare();
	calls = fake_verbs_calls("rdma_create_qp");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		TEST_ASSERT_EQUAL_INT(-E2BIG, create(sizes[i][0], sizes[i][1], 0));
		expect_no_qp();
	}
	TEST_ASSERT_EQUAL_UINT(calls, fake_verbs_calls("rdma_create_qp"));
	TEST_ASSERT_EQUAL_INT(0, create(4096, 4096, 0));
	vb_qp_destroy(rig.a.id, &rig.a.qp);
	TEST_ASSERT_EQUAL_INT(0, create(1, 0, 0)); /* a queue pair without receives */
}

static void test_create_fails(void)
{
	prepare();
	fake_verbs_fail("rdma_create_qp", 1, ENOMEM);
	TEST_ASSERT_EQUAL_INT(-ENOMEM, create(4, 4, 64));
	expect_no_qp();
	fake_verbs_fail("rdma_create_qp", FAKE_ALWAYS, EINVAL);
	TEST_ASSERT_EQUAL_INT(-EINVAL, create(4, 4, 64));
	expect_no_qp();
	fake_verbs_fail("rdma_create_qp", 1, EINVAL);
	TEST_ASSERT_EQUAL_INT(-EINVAL, create(4, 4, 0));
	expect_no_qp();
}

static void test_less_inline(void)
{
	static const uint32_t rows[][3] = {/* inline bytes: wanted, limit of the device, result */
					   {256, 256, 256}, {257, 256, 128}, {4160, 256, 130},
					   {64, 60, 32},    {64, 0, 0},      {3, 1, 1},
					   {1, 0, 0}};

	prepare();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fake_device(0)->max_inline = rows[i][1];
		TEST_ASSERT_EQUAL_INT(0, create(4, 4, rows[i][0]));
		TEST_ASSERT_EQUAL_UINT32(rows[i][2], rig.a.qp.max_inline);
		vb_qp_destroy(rig.a.id, &rig.a.qp);
	}
}

/* -- sends -- */

static void test_chain(void)
{
	uint64_t cell = 0;

	up(16);
	rig.a.qp.doorbells = &cell;
	TEST_ASSERT_EQUAL_INT(0, vb_qp_post(&rig.a.qp)); /* posts nothing */
	for (int i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_INT(0, build(0));
	expect_counts(0, 0, 0);
	TEST_ASSERT_EQUAL_INT(0, vb_qp_post(&rig.a.qp));
	expect_counts(3, 1, 0); /* less than a quarter of the depth 16: no signal */
	TEST_ASSERT_EQUAL_INT(0, build(0));
	TEST_ASSERT_EQUAL_INT(0, vb_qp_post(&rig.a.qp));
	expect_counts(4, 2, 1);
	TEST_ASSERT_EQUAL_UINT32(12, vb_qp_room(&rig.a.qp));
	TEST_ASSERT_EQUAL_INT(1, poll_some(16));
	TEST_ASSERT_EQUAL_UINT64(4, ledger.ended);
	TEST_ASSERT_EQUAL_UINT32(16, vb_qp_room(&rig.a.qp));
	TEST_ASSERT_EQUAL_UINT64(2, cell);
}

/* If a request of a chain needs a completion, the last request of the chain is signalled. */
static void test_wanted(void)
{
	up(64);
	TEST_ASSERT_EQUAL_INT(0, build(1));
	TEST_ASSERT_EQUAL_INT(0, build(0));
	TEST_ASSERT_EQUAL_INT(0, build(0));
	TEST_ASSERT_EQUAL_INT(0, vb_qp_post(&rig.a.qp));
	expect_counts(3, 1, 1);
	TEST_ASSERT_EQUAL_INT(1, poll_some(16));
	TEST_ASSERT_EQUAL_UINT64(3, ledger.ended);
	TEST_ASSERT_EQUAL_INT(0, build(0)); /* the next chain is not signalled */
	TEST_ASSERT_EQUAL_INT(0, vb_qp_post(&rig.a.qp));
	expect_counts(4, 2, 1);
}

static void test_full(void)
{
	up(5);
	for (int i = 0; i < 5; i++)
		TEST_ASSERT_EQUAL_INT(0, build(0));
	TEST_ASSERT_EQUAL_INT(-EAGAIN, build(1));
	TEST_ASSERT_EQUAL_UINT32(0, vb_qp_room(&rig.a.qp));
	TEST_ASSERT_EQUAL_INT(0, vb_qp_post(&rig.a.qp));
	TEST_ASSERT_EQUAL_INT(-EAGAIN, build(1));
	TEST_ASSERT_EQUAL_INT(1, poll_some(16));
	TEST_ASSERT_EQUAL_UINT32(5, vb_qp_room(&rig.a.qp));
	TEST_ASSERT_EQUAL_UINT64(5, ledger.ended);
}

static void test_few_signals(void)
{
	up(64);
	for (unsigned i = 0; i < 160; i++) {
		TEST_ASSERT_EQUAL_INT(0, build(0));
		TEST_ASSERT_EQUAL_INT(0, vb_qp_post(&rig.a.qp));
		poll_some(16);
	}
	expect_counts(160, 160, 10);
}

static uint32_t chance(uint32_t n)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % n;
}

/*
 * Chains of every length, with and without wanted completions, on a wire with random delay: no
 * completion is lost, and requests can always be posted again.
 */
static void run_at(uint32_t depth, uint32_t first)
{
	struct vb_qp *qp = &rig.a.qp;

	up(depth);
	qp->done = qp->posted = qp->built = qp->signalled = first;
	ledger.built = ledger.ended = 0;
	for (int round = 0; round < 300; round++) {
		uint32_t n = 1 + chance(depth + 1);

		fake_wire_hold(chance(2) != 0);
		while (n-- && build(chance(8) == 0) == 0)
			;
		if (chance(4))
			TEST_ASSERT_EQUAL_INT(0, vb_qp_post(qp));
		for (n = chance(4); n && fake_wire_step(NULL); n--)
			;
		poll_some(1 + (int)chance(8));
		if (vb_qp_room(qp))
			continue;
		TEST_ASSERT_EQUAL_INT(0, vb_qp_post(qp));
		fake_wire_hold(0);
		TEST_ASSERT_GREATER_THAN(0, poll_some(16));
		TEST_ASSERT_TRUE(vb_qp_room(qp) > 0);
	}
	fake_wire_hold(0);
	TEST_ASSERT_EQUAL_INT(0, vb_qp_post(qp));
	while (poll_some(16) > 0)
		;
	if (vb_qp_room(qp) < depth) {
		TEST_ASSERT_EQUAL_INT(0, build(1));
		TEST_ASSERT_EQUAL_INT(0, vb_qp_post(qp));
		TEST_ASSERT_EQUAL_INT(1, poll_some(16));
	}
	TEST_ASSERT_EQUAL_UINT64(ledger.built, ledger.ended);
	TEST_ASSERT_EQUAL_UINT32(depth, vb_qp_room(qp));
	rig_down();
}

static void test_progress(void)
{
	for (uint32_t depth = 1; depth <= 40; depth++)
		run_at(depth, 0);
	run_at(257, 0);
}

/* Sequence numbers start again at 0 after 2^32. */
static void test_numbers_wrap(void)
{
	for (uint32_t depth = 1; depth <= 9; depth++)
		run_at(depth, UINT32_MAX - 20);
	run_at(256, UINT32_MAX - 1000);
}

/* The completion of a request builds new requests, while later requests of the queue complete. */
static void test_build_while_others_end(void)
{
	up(8);
	for (int i = 0; i < 8; i++)
		TEST_ASSERT_EQUAL_INT(0, build(0));
	TEST_ASSERT_EQUAL_INT(0, vb_qp_post(&rig.a.qp));
	ledger.builds = 6;
	TEST_ASSERT_EQUAL_INT(1, poll_some(1));
	TEST_ASSERT_EQUAL_UINT64(8, ledger.ended);
	TEST_ASSERT_EQUAL_UINT64(14, ledger.built);
	TEST_ASSERT_EQUAL_INT(0, vb_qp_post(&rig.a.qp));
	TEST_ASSERT_EQUAL_INT(1, poll_some(1));
	TEST_ASSERT_EQUAL_UINT64(14, ledger.ended);
}

static void test_status_of_one(void)
{
	up(8);
	fake_wire_hold(1);
	for (int i = 0; i < 6; i++)
		TEST_ASSERT_EQUAL_INT(0, build(0));
	TEST_ASSERT_EQUAL_INT(0, vb_qp_post(&rig.a.qp));
	ledger.bad = 3;
	ledger.status = -EPROTO;
	vb_qp_done(&rig.a.qp, 3, -EPROTO, each, &rig);
	TEST_ASSERT_EQUAL_UINT64(4, ledger.ended);
	TEST_ASSERT_EQUAL_UINT32(6, vb_qp_room(&rig.a.qp));
}

/* A completion with the number of a request that is not outstanding is ignored. */
static void test_not_out(void)
{
	static const uint64_t ids[] = {0, 3, 6, 7, 8, 1000, UINT32_MAX};

	up(8);
	for (int i = 0; i < 4; i++)
		TEST_ASSERT_EQUAL_INT(0, build(0));
	TEST_ASSERT_EQUAL_INT(0, vb_qp_post(&rig.a.qp));
	TEST_ASSERT_EQUAL_INT(1, poll_some(16));
	for (int i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_INT(0, build(0));
	fake_wire_hold(1);
	TEST_ASSERT_EQUAL_INT(0, vb_qp_post(&rig.a.qp));
	TEST_ASSERT_EQUAL_INT(0, build(0)); /* request 6 is built, but not posted */
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		vb_qp_done(&rig.a.qp, ids[i], 0, each, &rig);
		TEST_ASSERT_EQUAL_UINT64(4, ledger.ended);
	}
}

static void each_cancelled(void *arg, const struct vb_send *send, int status)
{
	TEST_ASSERT_EQUAL_PTR(&rig, arg);
	TEST_ASSERT_EQUAL_UINT64(ledger.ended++, send->cookie);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, status);
}

static void test_cancel(void)
{
	up(8);
	fake_wire_hold(1);
	for (int i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_INT(0, build(0));
	TEST_ASSERT_EQUAL_INT(0, vb_qp_post(&rig.a.qp));
	for (int i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_INT(0, build(1));
	TEST_ASSERT_EQUAL_INT(0, vb_qp_fail(&rig.a.qp));
	vb_qp_cancel(&rig.a.qp, -ENOTCONN, each_cancelled, &rig);
	TEST_ASSERT_EQUAL_UINT64(5, ledger.ended);
	TEST_ASSERT_EQUAL_UINT32(8, vb_qp_room(&rig.a.qp));
	vb_qp_cancel(&rig.a.qp, -ENOTCONN, each_cancelled, &rig);
	TEST_ASSERT_EQUAL_UINT64(5, ledger.ended);
	/* requests not posted yet are dropped */
	TEST_ASSERT_EQUAL_UINT64(3, rig_counters().send_wrs);
	TEST_ASSERT_EQUAL_INT(0, vb_qp_post(&rig.a.qp));
	TEST_ASSERT_EQUAL_UINT64(3, rig_counters().send_wrs);
}

static void test_post_fails(void)
{
	up(8);
	for (int i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_INT(0, build(0));
	fake_verbs_fail("ibv_post_send", 1, ENOMEM);
	TEST_ASSERT_EQUAL_INT(-ENOMEM, vb_qp_post(&rig.a.qp));
	vb_qp_cancel(&rig.a.qp, -ENOTCONN, each_cancelled, &rig);
	TEST_ASSERT_EQUAL_UINT64(3, ledger.ended);
}

/* -- the end -- */

static void test_fail(void)
{
	uint32_t slots[2] = {0, 1};
	struct ibv_wc wcs[4];

	up(8);
	TEST_ASSERT_EQUAL_INT(0, vb_qp_recv(&rig.b.qp, rig.b.buf, 64, rig.b.mr->lkey, slots, 2));
	fake_verbs_fail("ibv_modify_qp", 1, EINVAL);
	TEST_ASSERT_EQUAL_INT(-EINVAL, vb_qp_fail(&rig.b.qp));
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, rig_do(IBV_WR_RDMA_WRITE, 0, 8));
	TEST_ASSERT_EQUAL_INT(0, vb_qp_fail(&rig.b.qp));
	TEST_ASSERT_EQUAL_INT(0, vb_qp_fail(&rig.b.qp)); /* the queue pair has failed already */
	TEST_ASSERT_EQUAL_INT(2, vb_cq_poll(&rig.b.cq, wcs, 4));
	TEST_ASSERT_EQUAL_INT(-ECANCELED, vb_wc_reason(wcs[1].status));
	/* no data of the peer arrives */
	memset(rig.a.buf, 'a', 8);
	TEST_ASSERT_EQUAL_INT(0, build(1));
	rig.a.qp.wrs[rig.a.qp.posted & rig.a.qp.mask].wr.rdma.remote_addr = (uintptr_t)rig.b.buf;
	TEST_ASSERT_EQUAL_INT(0, vb_qp_post(&rig.a.qp));
	TEST_ASSERT_EQUAL_UINT(1, fake_wire_timeout(7));
	TEST_ASSERT_EQUAL_INT(1, vb_cq_poll(&rig.a.cq, wcs, 4));
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, vb_wc_reason(wcs[0].status));
	TEST_ASSERT_EQUAL_INT(0, rig.b.buf[0]);
}

/* -- receives -- */

static void test_receive(void)
{
	static const uint32_t slots[] = {5, 0, 7};
	struct ibv_wc wc;

	up(8);
	TEST_ASSERT_EQUAL_INT(0, vb_qp_recv(&rig.b.qp, rig.b.buf, 64, rig.b.mr->lkey, slots, 3));
	TEST_ASSERT_EQUAL_UINT64(1, rig_counters().recv_bells);
	for (int i = 0; i < 3; i++) {
		memset(rig.a.buf, 'a' + i, 64);
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, rig_do(IBV_WR_SEND, 0, 64));
		TEST_ASSERT_EQUAL_INT(1, vb_cq_poll(&rig.b.cq, &wc, 1));
		TEST_ASSERT_EQUAL_HEX64(VB_RECV | slots[i], wc.wr_id);
		TEST_ASSERT_EQUAL_MEMORY(rig.a.buf, rig.b.buf + 64 * slots[i], 64);
	}
	TEST_ASSERT_EQUAL_INT('b', rig.b.buf[63]);
	TEST_ASSERT_EQUAL_INT(0, rig.b.buf[64]);
}

static void test_many_receives(void)
{
	uint32_t slots[200];
	struct ibv_wc wc;

	for (uint32_t i = 0; i < 200; i++)
		slots[i] = i * 7 % 61;
	rig.attr.recvs = 200;
	up(8);
	TEST_ASSERT_EQUAL_INT(0, vb_qp_recv(&rig.b.qp, rig.b.buf, 64, rig.b.mr->lkey, slots, 0));
	TEST_ASSERT_EQUAL_UINT64(0, rig_counters().recv_bells);
	TEST_ASSERT_EQUAL_INT(0, vb_qp_recv(&rig.b.qp, rig.b.buf, 64, rig.b.mr->lkey, slots, 200));
	TEST_ASSERT_EQUAL_UINT64((200 + rig.b.qp.max_recvs - 1) / rig.b.qp.max_recvs,
				 rig_counters().recv_bells);
	TEST_ASSERT_EQUAL_UINT64(200, rig_counters().recv_wrs);
	TEST_ASSERT_EQUAL_INT(-ENOMEM,
			      vb_qp_recv(&rig.b.qp, rig.b.buf, 64, rig.b.mr->lkey, slots, 1));
	TEST_ASSERT_EQUAL_INT(0, vb_qp_fail(&rig.b.qp));
	for (uint32_t i = 0; i < 200; i++) { /* in the order of posting */
		TEST_ASSERT_EQUAL_INT(1, vb_cq_poll(&rig.b.cq, &wc, 1));
		TEST_ASSERT_EQUAL_HEX64(VB_RECV | slots[i], wc.wr_id);
	}
}

static void test_receive_fails(void)
{
	uint32_t slots[100] = {0};

	rig.attr.recvs = 100;
	up(8);
	fake_verbs_fail("ibv_post_recv", 2, EIO);
	TEST_ASSERT_EQUAL_INT(-EIO,
			      vb_qp_recv(&rig.b.qp, rig.b.buf, 64, rig.b.mr->lkey, slots, 100));
	TEST_ASSERT_EQUAL_UINT(2, fake_verbs_calls("ibv_post_recv"));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_create);
	RUN_TEST(test_limits);
	RUN_TEST(test_create_fails);
	RUN_TEST(test_less_inline);
	RUN_TEST(test_chain);
	RUN_TEST(test_wanted);
	RUN_TEST(test_full);
	RUN_TEST(test_few_signals);
	RUN_TEST(test_progress);
	RUN_TEST(test_numbers_wrap);
	RUN_TEST(test_build_while_others_end);
	RUN_TEST(test_status_of_one);
	RUN_TEST(test_not_out);
	RUN_TEST(test_cancel);
	RUN_TEST(test_post_fails);
	RUN_TEST(test_fail);
	RUN_TEST(test_receive);
	RUN_TEST(test_many_receives);
	RUN_TEST(test_receive_fails);
	return UNITY_END();
}
