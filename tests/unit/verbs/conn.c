/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn.c - connections over RDMA: keepalive, device events, revoked regions, and messages that are
 * sent before a disconnect.
 */
#include <stdio.h>

#include "unit/verbs/ends.h"

#define MS 1000000u

void setUp(void)
{
	fake_verbs_reset();
}

void tearDown(void)
{
	TEST_ASSERT_EQUAL_STRING("", fake_verbs_check_clean());
}

static void pass(uint64_t ns)
{
	a.host.now_ns += ns;
	b.host.now_ns += ns;
	ends_settle();
}

static int closed(struct end *end)
{
	ends_settle();
	TEST_ASSERT_EQUAL_INT(1, end->n_closed);
	return end->reason;
}

/* -- keepalive -- */

static void idle_connection_sends_keepalives(void)
{
	struct fake_counters before, after;

	ends_open("keepalive=500ms", NULL, NULL);
	ends_settle();
	fake_verbs_counters(&before);
	pass(499 * MS);
	fake_verbs_counters(&after);
	TEST_ASSERT_EQUAL_UINT64(before.writes, after.writes);
	pass(2 * MS);
	fake_verbs_counters(&after);
	TEST_ASSERT_EQUAL_UINT64(before.writes + 2, after.writes); /* one from each end */
	for (int i = 0; i < 20; i++)
		pass(501 * MS);
	TEST_ASSERT_EQUAL_INT(0, a.n_closed + b.n_closed);
	TEST_ASSERT_EQUAL_UINT64(a.host.now_ns + 500 * MS, vb_wake_ns(a.device));
	ends_close();
}

static void network_is_cut(void)
{
	ends_open(NULL, NULL, NULL);
	ends_settle();
	fake_wire_cut(1);
	pass(501 * MS);
	TEST_ASSERT_EQUAL_INT(0, a.n_closed + b.n_closed);
	TEST_ASSERT_TRUE(fake_wire_timeout(10) > 0);
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, closed(&a));
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, closed(&b));
	TEST_ASSERT_TRUE(fake_logged(
		&a.host, "connection with 127.0.0.2:7471: transport retry counter exceeded"));
	ends_close();
}

/* The transport detects a lost peer even if the device never reports that its request failed. */
static void peer_loss_without_a_device_event_is_detected(void)
{
	ends_open(NULL, NULL, NULL);
	ends_settle();
	fake_wire_cut(1);
	pass(500 * MS);
	pass(1410 * MS); /* 3 x ack_timeout (67 ms) x 7 attempts */
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, closed(&a));
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, closed(&b));
	ends_close();
}

/* -- events of a device -- */

static void event_of_a_queue(enum ibv_event_type type, int of_cq, int reason)
{
	fake_verbs_reset();
	ends_open(NULL, NULL, NULL);
	ends_settle();
	fake_async_push(0, type,
			of_cq ? (void *)a.conn->control->cq.cq : (void *)a.conn->control->qp.qp);
	ends_settle();
	TEST_ASSERT_EQUAL_INT(reason != 0, a.n_closed);
	TEST_ASSERT_EQUAL_INT(reason, a.reason);
	ends_close();
	TEST_ASSERT_EQUAL_STRING("", fake_verbs_check_clean());
}

static void events_of_queues(void)
{
	event_of_a_queue(IBV_EVENT_QP_FATAL, 0, -EPROTO);
	event_of_a_queue(IBV_EVENT_QP_REQ_ERR, 0, -EPROTO);
	event_of_a_queue(IBV_EVENT_QP_ACCESS_ERR, 0, -EPROTO);
	event_of_a_queue(IBV_EVENT_CQ_ERR, 1, -EIO);
	event_of_a_queue(IBV_EVENT_COMM_EST, 0, 0);
	event_of_a_queue(IBV_EVENT_SQ_DRAINED, 0, 0);
	event_of_a_queue(IBV_EVENT_PATH_MIG, 0, 0);
}

static void events_of_the_device(void)
{
	ends_open(NULL, NULL, NULL);
	ends_settle();
	fake_async_push(0, IBV_EVENT_PORT_ERR, NULL);
	ends_settle();
	TEST_ASSERT_EQUAL_INT(0, a.n_closed);
	TEST_ASSERT_TRUE(fake_logged(&a.host, "the port of RDMA device fake0 went down"));
	fake_async_push(0, IBV_EVENT_DEVICE_FATAL, NULL);
	TEST_ASSERT_EQUAL_INT(-ENODEV, closed(&a));
	ends_close();
}

/* -- regions -- */

static void region_not_released_in_time_is_revoked(void)
{
	struct shared s;
	struct vb_rma *rma;
	struct gantry_rma_done done;

	ends_open("revoke_timeout=100ms", NULL, NULL);
	share_begin(&s, &a, &b, 4096, VB_RIGHTS);
	rma = rma_open(&b, 0, 4);
	TEST_ASSERT_EQUAL_INT(0, vb_revoke(a.conn, s.token.handle));
	TEST_ASSERT_EQUAL_INT(-EALREADY, vb_revoke(a.conn, s.token.handle));
	pass(99 * MS);
	TEST_ASSERT_EQUAL_INT(1, b.n_revoke);
	TEST_ASSERT_EQUAL_INT(0, a.n_revoked);
	pass(1 * MS);
	TEST_ASSERT_EQUAL_INT(1, a.n_revoked);
	TEST_ASSERT_EQUAL_INT(0, a.revoked_rc);
	TEST_ASSERT_TRUE(fake_logged(&a.host, "has not released a region in time"));
	/* the device rejects later access by the peer */
	s.bytes[0] = 7;
	TEST_ASSERT_EQUAL_INT(0, rma_do(rma, &b, GANTRY_RMA_WRITE, 0, &s, 0, 64, 1));
	vb_rma_flush(rma);
	ends_settle();
	TEST_ASSERT_EQUAL_INT(0, vb_rma_poll(rma, &done, 1) == 1 && done.status == 0);
	TEST_ASSERT_EQUAL_UINT8(7, s.bytes[0]);
	/* -EPROTO, or -ENOTCONN if the other end ends the connection first */
	TEST_ASSERT_TRUE(closed(&b) != 0);
	vb_rma_destroy(rma);
	share_end(&s);
	ends_close();
	fake_verbs_forgive();
}

static void late_release_is_no_mistake(void)
{
	struct shared s;

	ends_open("revoke_timeout=100ms", NULL, NULL);
	share_begin(&s, &a, &b, 4096, VB_RIGHTS);
	TEST_ASSERT_EQUAL_INT(0, vb_revoke(a.conn, s.token.handle));
	pass(100 * MS);
	TEST_ASSERT_EQUAL_INT(1, a.n_revoked);
	vb_release(b.conn, s.imported);
	s.imported = NULL;
	ends_settle();
	TEST_ASSERT_EQUAL_INT(0, a.n_closed + b.n_closed);
	TEST_ASSERT_EQUAL_INT(1, a.n_revoked);
	share_end(&s);
	ends_close();
}

static void export_is_refused(void)
{
	uint8_t bytes[64];
	struct gantry_region r = {
		.addr = bytes, .length = sizeof(bytes), .fd = -1, .rights = GANTRY_REMOTE_READ};
	struct gantry_token token;

	ends_open("max_region_bytes=4KiB", NULL, NULL);
	TEST_ASSERT_EQUAL_INT(-EACCES, vb_export(a.conn, &r, VB_RIGHTS, 1, &token));
	TEST_ASSERT_EQUAL_INT(-EINVAL, vb_export(a.conn, &r, 0, 1, &token));
	r.addr = NULL;
	TEST_ASSERT_EQUAL_INT(-EXDEV, vb_export(a.conn, &r, GANTRY_REMOTE_READ, 1, &token));
	r.addr = bytes;
	r.length = 4097;
	TEST_ASSERT_EQUAL_INT(-E2BIG, vb_export(a.conn, &r, GANTRY_REMOTE_READ, 1, &token));
	TEST_ASSERT_TRUE(fake_logged(&a.host, "exceeds max_region_bytes"));
	ends_close();
}

/*
 * After disconnect the peer cannot access exported memory, even if messages sent before it are
 * still in flight.
 */
static void disconnect_revokes_exported_memory_at_once(void)
{
	struct shared s;
	struct fake_counters before, after;

	ends_open(NULL, NULL, NULL);
	share_begin(&s, &a, &b, 4096, VB_RIGHTS);
	fake_wire_hold(1); /* the wire holds messages sent from now on */
	fake_verbs_counters(&before);
	vb_disconnect(a.conn);
	TEST_ASSERT_NOT_NULL(((struct vb_transport *)a.device)->conns);
	TEST_ASSERT_NULL(a.conn->exports[0].mr);
	TEST_ASSERT_NULL(a.conn->exports[0].region);
	fake_wire_hold(0);
	ends_settle();
	fake_verbs_counters(&after);
	TEST_ASSERT_TRUE(after.sends > before.sends);
	TEST_ASSERT_NULL(((struct vb_transport *)a.device)->conns);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, closed(&b));
	a.conn = NULL;
	vb_release(b.conn, s.imported);
	ends_close();
}

static void disconnect_ends_after_a_timeout(void)
{
	ends_open(NULL, NULL, NULL);
	ends_settle();
	fake_wire_hold(1);
	vb_disconnect(a.conn);
	a.conn = NULL;
	TEST_ASSERT_NOT_NULL(((struct vb_transport *)a.device)->conns);
	TEST_ASSERT_EQUAL_UINT64(a.host.now_ns + 1000 * MS, vb_wake_ns(a.device));
	a.host.now_ns += 1000 * MS;
	vb_progress(a.device);
	TEST_ASSERT_NULL(((struct vb_transport *)a.device)->conns);
	fake_wire_hold(0);
	ends_close();
}

/* Port 0: any port, which listener_address reports. */
static void listener_reports_its_port(void)
{
	static const struct gantry_conn_events none;
	void *listener;
	unsigned port = 0;

	ends_open(NULL, NULL, NULL);
	TEST_ASSERT_EQUAL_INT(0, vb_listen(b.device, "127.0.0.2:0", &none, NULL, &listener));
	TEST_ASSERT_EQUAL_INT(1, sscanf(vb_listener_address(listener), "127.0.0.2:%u", &port));
	TEST_ASSERT_TRUE(port != 0);
	vb_unlisten(listener);
	ends_close();
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(listener_reports_its_port);
	RUN_TEST(idle_connection_sends_keepalives);
	RUN_TEST(network_is_cut);
	RUN_TEST(peer_loss_without_a_device_event_is_detected);
	RUN_TEST(events_of_queues);
	RUN_TEST(events_of_the_device);
	RUN_TEST(region_not_released_in_time_is_revoked);
	RUN_TEST(late_release_is_no_mistake);
	RUN_TEST(export_is_refused);
	RUN_TEST(disconnect_revokes_exported_memory_at_once);
	RUN_TEST(disconnect_ends_after_a_timeout);
	return UNITY_END();
}
