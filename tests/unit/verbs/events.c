/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels of connection events: events of every type are copied and acknowledged. */
#include "rig.h"

#define LAST RDMA_CM_EVENT_TIMEWAIT_EXIT

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;
static int context;

void setUp(void)
{
	rig_init();
	TEST_ASSERT_EQUAL_INT(0, vb_events_open(&channel));
	TEST_ASSERT_EQUAL_INT(0, vb_id_create(channel, &context, &id));
}

void tearDown(void)
{
	vb_id_destroy(&id);
	vb_events_close(&channel);
	rig_clean();
}

static void test_open_and_close(void)
{
	struct rdma_event_channel *other = (void *)&context;

	rig_check_fd(channel->fd);
	fake_verbs_fail("rdma_create_event_channel", 1, EMFILE);
	TEST_ASSERT_EQUAL_INT(-EMFILE, vb_events_open(&other));
	TEST_ASSERT_NULL(other);
	vb_events_close(&other);
	TEST_ASSERT_EQUAL_UINT(0, fake_verbs_calls("rdma_destroy_event_channel"));
}

static void test_none(void)
{
	struct vb_event event;

	TEST_ASSERT_EQUAL_INT(0, rig_ready(channel->fd));
	TEST_ASSERT_EQUAL_INT(0, vb_events_next(channel, &event));
	fake_verbs_fail("rdma_get_cm_event", 1, EINTR);
	TEST_ASSERT_EQUAL_INT(0, vb_events_next(channel, &event));
}

static void test_error(void)
{
	struct vb_event event;

	fake_cm_push(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL, 0);
	fake_verbs_fail("rdma_get_cm_event", 1, ENODEV);
	TEST_ASSERT_EQUAL_INT(-ENODEV, vb_events_next(channel, &event));
	TEST_ASSERT_EQUAL_INT(1, vb_events_next(channel, &event));
}

static unsigned size_of_data(enum rdma_cm_event_type type)
{
	return type == RDMA_CM_EVENT_REJECTED ? 148 : type == RDMA_CM_EVENT_ESTABLISHED ? 196 : 0;
}

static void check_data(const struct vb_event *event, unsigned n)
{
	TEST_ASSERT_EQUAL_UINT(n, event->private_len);
	if (n)
		TEST_ASSERT_EQUAL_STRING("why not", (const char *)event->private_data);
	for (unsigned i = 8; i < sizeof(event->private_data); i++)
		TEST_ASSERT_EQUAL_UINT8(0, event->private_data[i]);
}

/*
 * All types except CONNECT_REQUEST, which needs a listener, and CONNECT_RESPONSE, which only ids
 * without a queue pair get.
 */
static void test_every_type(void)
{
	struct vb_event event;

	for (enum rdma_cm_event_type type = 0; type <= LAST; type++) {
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST || type == RDMA_CM_EVENT_CONNECT_RESPONSE)
			continue;
		memset(&event, 0x5a, sizeof(event));
		fake_cm_push(id, type, -(int)type, "why not", 8);
		TEST_ASSERT_EQUAL_INT(1, rig_ready(channel->fd));
		TEST_ASSERT_EQUAL_INT_MESSAGE(1, vb_events_next(channel, &event),
					      rdma_event_str(type));
		TEST_ASSERT_EQUAL_STRING(rdma_event_str(type), rdma_event_str(event.type));
		TEST_ASSERT_EQUAL_INT(-(int)type, event.status);
		TEST_ASSERT_EQUAL_PTR(id, event.id);
		TEST_ASSERT_EQUAL_PTR(&context, event.id->context);
		TEST_ASSERT_NULL(event.listen_id);
		check_data(&event, size_of_data(type));
		TEST_ASSERT_EQUAL_UINT64(rig_counters().cm_events, rig_counters().cm_acks);
		TEST_ASSERT_EQUAL_INT(0, vb_events_next(channel, &event));
		TEST_ASSERT_EQUAL_INT(0, rig_ready(channel->fd));
	}
	TEST_ASSERT_EQUAL_UINT64(LAST - 1, rig_counters().cm_acks);
}

static void test_request(void)
{
	struct vb_event event;

	TEST_ASSERT_EQUAL_INT(0, vb_id_listen(id, rig_address("127.0.0.1:7000"), 1));
	fake_cm_push(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0, "why not", 8);
	TEST_ASSERT_EQUAL_INT(1, vb_events_next(channel, &event));
	TEST_ASSERT_EQUAL_INT(RDMA_CM_EVENT_CONNECT_REQUEST, event.type);
	TEST_ASSERT_EQUAL_PTR(id, event.listen_id);
	TEST_ASSERT_NOT_NULL(event.id);
	TEST_ASSERT_TRUE(event.id != id);
	TEST_ASSERT_EQUAL_INT(1, event.responder_resources);
	TEST_ASSERT_EQUAL_INT(1, event.initiator_depth);
	TEST_ASSERT_EQUAL_INT(6, event.retry_count);
	TEST_ASSERT_EQUAL_INT(6, event.rnr_retry_count);
	check_data(&event, 56);
	vb_id_destroy(&event.id); /* would block if the event was not acknowledged */
}

static void test_in_order(void)
{
	static const enum rdma_cm_event_type types[] = {
		RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_TIMEWAIT_EXIT, RDMA_CM_EVENT_ADDR_CHANGE};
	struct vb_event event;

	for (int i = 0; i < 3; i++)
		fake_cm_push(id, types[i], 0, NULL, 0);
	for (int i = 0; i < 3; i++) {
		TEST_ASSERT_EQUAL_INT(1, vb_events_next(channel, &event));
		TEST_ASSERT_EQUAL_INT(types[i], event.type);
	}
	TEST_ASSERT_EQUAL_INT(0, vb_events_next(channel, &event));
}

/*
 * rdma_ack_cm_event() fails only without an event. Even if it fails, vb_events_next() must return
 * the event, because the caller owns its new id.
 */
static void test_acknowledging_fails(void)
{
	struct vb_event event;

	TEST_ASSERT_EQUAL_INT(0, vb_id_listen(id, rig_address("127.0.0.1:7000"), 1));
	fake_cm_push(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0, NULL, 0);
	fake_verbs_fail("rdma_ack_cm_event", 1, EINVAL);
	TEST_ASSERT_EQUAL_INT(1, vb_events_next(channel, &event));
	TEST_ASSERT_NOT_NULL(event.id);
	fake_verbs_reset(); /* the event stays unacknowledged, so its id cannot be destroyed */
	id = NULL;
	channel = NULL;
}

static void test_reasons(void)
{
	static const struct {
		enum rdma_cm_event_type type;
		int status, reason;
	} rows[] = {
		{RDMA_CM_EVENT_ADDR_RESOLVED, 0, 0},
		{RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH, -EHOSTUNREACH},
		{RDMA_CM_EVENT_ADDR_ERROR, -1, -EHOSTUNREACH},
		{RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT, -ETIMEDOUT},
		{RDMA_CM_EVENT_ADDR_ERROR, -ENODEV, -ENODEV},
		{RDMA_CM_EVENT_ADDR_ERROR, -ENOMEM, -ENOMEM},
		{RDMA_CM_EVENT_ROUTE_RESOLVED, 0, 0},
		{RDMA_CM_EVENT_ROUTE_ERROR, -EINVAL, -EHOSTUNREACH},
		{RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT, -ETIMEDOUT},
		{RDMA_CM_EVENT_CONNECT_REQUEST, 0, 0},
		{RDMA_CM_EVENT_CONNECT_RESPONSE, 0, 0},
		{RDMA_CM_EVENT_CONNECT_ERROR, -1, -EIO},
		{RDMA_CM_EVENT_CONNECT_ERROR, -ETIMEDOUT, -ETIMEDOUT},
		{RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, -ETIMEDOUT},
		{RDMA_CM_EVENT_UNREACHABLE, -ENETUNREACH, -EHOSTUNREACH},
		{RDMA_CM_EVENT_REJECTED, 8, -ECONNREFUSED},
		{RDMA_CM_EVENT_REJECTED, 28, -ECONNREFUSED},
		{RDMA_CM_EVENT_REJECTED, -ETIMEDOUT, -ECONNREFUSED},
		{RDMA_CM_EVENT_REJECTED, -ENOMEM, -ECONNREFUSED},
		{RDMA_CM_EVENT_ESTABLISHED, 0, 0},
		{RDMA_CM_EVENT_DISCONNECTED, 0, -ENOTCONN},
		{RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT, -ENOTCONN},
		{RDMA_CM_EVENT_DEVICE_REMOVAL, 0, -ENODEV},
		{RDMA_CM_EVENT_MULTICAST_JOIN, 0, 0},
		{RDMA_CM_EVENT_MULTICAST_ERROR, -EINVAL, 0},
		{RDMA_CM_EVENT_ADDR_CHANGE, 0, -EADDRNOTAVAIL},
		{RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, 0},
		{LAST + 1, -ENODEV, 0}, /* an unknown type of a later library */
		{(enum rdma_cm_event_type) - 1, -ENODEV, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		TEST_ASSERT_EQUAL_INT_MESSAGE(rows[i].reason,
					      vb_event_reason(rows[i].type, rows[i].status),
					      rdma_event_str(rows[i].type));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_open_and_close);
	RUN_TEST(test_none);
	RUN_TEST(test_error);
	RUN_TEST(test_every_type);
	RUN_TEST(test_request);
	RUN_TEST(test_in_order);
	RUN_TEST(test_acknowledging_fails);
	RUN_TEST(test_reasons);
	return UNITY_END();
}
