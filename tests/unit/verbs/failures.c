/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each library call that can fail is made to fail once. The error is returned unchanged, and
 * nothing leaks.
 */
#include <stdio.h>

#include "rig.h"

#define ERROR EREMOTEIO /* an error that none of the objects handles specially */

static struct vb_device dev;

void setUp(void)
{
	rig_init();
}

void tearDown(void)
{
	rig_clean();
}

static int transfer(void)
{
	static const struct vb_send send = {.wanted = 1};
	uint32_t slot = 0;
	int rc = vb_qp_recv(&rig.b.qp, rig.b.buf, 64, rig.b.mr->lkey, &slot, 1);
	struct ibv_send_wr *wr;
	struct ibv_wc wc;

	if (rc)
		return rc;
	wr = vb_qp_build(&rig.a.qp, &send);
	wr->opcode = IBV_WR_SEND;
	rc = vb_qp_post(&rig.a.qp);
	if (!rc)
		rc = vb_cq_poll(&rig.b.cq, &wc, 1);
	if (rc == 1)
		rc = vb_channel_drain(rig.b.channel);
	return rc == 1 ? vb_cq_arm(&rig.b.cq) : rc < 0 ? rc : -EBADMSG;
}

static int end(void)
{
	enum ibv_event_type type;
	int rc;

	fake_async_push(1, IBV_EVENT_QP_FATAL, rig.b.qp.qp);
	rc = vb_device_next_event(&dev, &type);
	if (rc < 0)
		return rc;
	rc = vb_qp_fail(&rig.b.qp);
	vb_id_disconnect(rig.a.id);
	return rc ? rc : rig_expect(&rig.b, RDMA_CM_EVENT_DISCONNECTED);
}

/* Use all functions of the objects, up to the first error, which is returned. */
static int everything(void)
{
	int rc = vb_device_open(&dev, "fake1");

	if (!rc)
		rc = rig_up();
	if (!rc)
		rc = transfer();
	if (!rc)
		rc = end();
	rig_down();
	vb_device_close(&dev);
	return rc;
}

static void test_nothing_fails(void)
{
	TEST_ASSERT_EQUAL_INT(0, everything());
}

/*
 * Run everything() once for each call of the function, and let that call fail. The result must be
 * -ERROR or `allowed`. Returns the number of calls.
 */
static unsigned fail_everywhere(const char *function, int allowed)
{
	unsigned calls;
	char where[80];

	rig_init();
	TEST_ASSERT_EQUAL_INT(0, everything());
	calls = fake_verbs_calls(function);
	for (unsigned nth = 1; nth <= calls; nth++) {
		int rc;

		rig_init();
		fake_verbs_fail(function, (int)nth, ERROR);
		rc = everything();
		snprintf(where, sizeof(where), "%s, call %u: %d", function, nth, rc);
		TEST_ASSERT_TRUE_MESSAGE(rc == -ERROR || rc == allowed, where);
		TEST_ASSERT_EQUAL_STRING_MESSAGE("", fake_verbs_check_clean(), where);
	}
	return calls;
}

static void test_each(void)
{
	static const struct {
		const char *function;
		int allowed;
	} rows[] = {
		{"ibv_query_device", -ERROR},
		{"ibv_query_port", -ERROR},
		{"ibv_query_device_ex", 0}, /* means: the device has no extended attributes */
		{"ibv_get_async_event", -ERROR},
		{"ibv_alloc_pd", -ERROR},
		{"ibv_reg_mr", -ERROR},
		{"ibv_create_comp_channel", -ERROR},
		{"ibv_create_cq", -ERROR},
		{"ibv_poll_cq", -ERROR},
		{"ibv_req_notify_cq", -ERROR},
		{"ibv_modify_qp", -ERROR},
		{"ibv_post_send", -ERROR},
		{"ibv_post_recv", -ERROR},
		{"rdma_create_event_channel", -ERROR},
		{"rdma_create_id", -ERROR},
		{"rdma_bind_addr", -ERROR},
		{"rdma_listen", -ERROR},
		{"rdma_resolve_addr", -ERROR},
		{"rdma_resolve_route", -ERROR},
		{"rdma_create_qp", -ERROR},
		{"rdma_connect", -ERROR},
		{"rdma_accept", -ERROR},
		{"rdma_disconnect", -EBADMSG}, /* the peer is not notified */
		{"rdma_get_cm_event", -ERROR},
		{"rdma_set_option", -ERROR},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		TEST_ASSERT_TRUE_MESSAGE(fail_everywhere(rows[i].function, rows[i].allowed) > 0,
					 rows[i].function);
}

/*
 * If the first call of ibv_get_cq_event() fails, the expected notification is missing. Any failure
 * of a later call means that no notification is left: libraries return different errors for that.
 */
static void test_notifications(void)
{
	fake_verbs_fail("ibv_get_cq_event", 1, ERROR);
	TEST_ASSERT_EQUAL_INT(-EBADMSG, everything());
	rig_clean();
	rig_init();
	fake_verbs_fail("ibv_get_cq_event", 2, ERROR);
	TEST_ASSERT_EQUAL_INT(0, everything());
}

/* If the list of devices cannot be read, the error is that of a machine without devices. */
static void test_list(void)
{
	int why = vb_device_why_none("");

	TEST_ASSERT_EQUAL_UINT(1, fail_everywhere("rdma_get_devices", why));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_nothing_fails);
	RUN_TEST(test_each);
	RUN_TEST(test_notifications);
	RUN_TEST(test_list);
	return UNITY_END();
}
