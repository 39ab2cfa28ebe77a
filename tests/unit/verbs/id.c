/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection ids: addresses, listening, resolving, and the parameters that two ends negotiate.
 */
#include <arpa/inet.h>

#include "rig.h"

void setUp(void)
{
	rig_init();
}

void tearDown(void)
{
	rig_down();
	rig_clean();
}

/* -- addresses -- */

static void test_addresses(void)
{
	static const struct {
		const char *text, *printed; /* printed NULL: the same as text */
	} rows[] = {
		{"192.0.2.7:4791", NULL},
		{"0.0.0.0:0", NULL},
		{"255.255.255.255:65535", NULL},
		{"[2001:db8::7]:4791", NULL},
		{"[::]:1", NULL},
		{"[2001:DB8:0:0::7]:1", "[2001:db8::7]:1"},
		{"[fe80::1%lo]:18515", NULL},
		{"127.0.0.1:00080", "127.0.0.1:80"},
	};
	struct sockaddr_storage addr;
	char text[80];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memset(&addr, 0x5a, sizeof(addr));
		TEST_ASSERT_EQUAL_INT_MESSAGE(0, tc_address_parse(rows[i].text, &addr),
					      rows[i].text);
		tc_address_print((struct sockaddr *)&addr, text, sizeof(text));
		TEST_ASSERT_EQUAL_STRING(rows[i].printed ? rows[i].printed : rows[i].text, text);
	}
}

static void test_bad_addresses(void)
{
	static const char *const texts[] = {
		"",
		":",
		":1",
		"1",
		"127.0.0.1",
		"127.0.0.1:",
		"127.0.0.1: 1",
		"127.0.0.1:+1",
		"127.0.0.1:-1",
		"127.0.0.1:1 ",
		"127.0.0.1:0x1",
		"127.0.0.1:65536",
		"127.0.0.1:99999",
		"127.0.0.1:4294967297",
		"127.0.0.1:000001",
		"127.0.0.1:http",
		"127.1:1",
		"1:1",
		"127.0.0.256:1",
		"0x7f.0.0.1:1",
		"localhost:1",
		"::1:1",
		"::1",
		"[::1]",
		"[::1]:",
		"[::1:1",
		"::1]:1",
		"[]:1",
		"[::1]x:1",
		"[:1]:1",
		"[127.0.0.1]:1",
		"[localhost]:1",
		"[::1]:65536",
		"[[::1]]:1",
		"127.0.0.1:1:1",
		"[0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890]:1"};
	struct sockaddr_storage addr;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		TEST_ASSERT_EQUAL_INT_MESSAGE(-EINVAL, tc_address_parse(texts[i], &addr), texts[i]);
}

static void test_printing(void)
{
	struct sockaddr_storage unknown = {.ss_family = AF_UNIX};
	char text[8] = "";

	tc_address_print(rig_address("127.0.0.1:80"), text, sizeof(text));
	TEST_ASSERT_EQUAL_STRING("127.0.0", text); /* truncated to the buffer */
	tc_address_print((struct sockaddr *)&unknown, text, sizeof(text));
	TEST_ASSERT_EQUAL_STRING("unknown", text);
}

/* -- ids -- */

static void test_create(void)
{
	struct rdma_cm_id *id = (void *)&rig;

	TEST_ASSERT_EQUAL_INT(0, vb_events_open(&rig.a.events));
	fake_verbs_fail("rdma_create_id", 1, ENFILE);
	TEST_ASSERT_EQUAL_INT(-ENFILE, vb_id_create(rig.a.events, &rig, &id));
	TEST_ASSERT_NULL(id);
	vb_id_destroy(&id);
	TEST_ASSERT_EQUAL_UINT(0, fake_verbs_calls("rdma_destroy_id"));
	TEST_ASSERT_EQUAL_INT(0, vb_id_create(rig.a.events, &rig, &id));
	TEST_ASSERT_EQUAL_PTR(&rig, id->context);
	vb_id_destroy(&id);
	TEST_ASSERT_NULL(id);
}

static int listen_at(const char *text)
{
	TEST_ASSERT_EQUAL_INT(0, vb_id_create(rig.b.events, &rig, &rig.b.id));
	return vb_id_listen(rig.b.id, rig_address(text), 4);
}

static void test_listen(void)
{
	TEST_ASSERT_EQUAL_INT(0, vb_events_open(&rig.b.events));
	TEST_ASSERT_EQUAL_INT(0, listen_at("127.0.0.2:0"));
	TEST_ASSERT_NOT_EQUAL(0, rdma_get_src_port(rig.b.id));
	TEST_ASSERT_EQUAL_STRING("fake1", ibv_get_device_name(rig.b.id->verbs->device));
	vb_id_destroy(&rig.b.id);
	TEST_ASSERT_EQUAL_INT(0, listen_at("127.0.0.2:7000"));
	rig.a.id = rig.b.id;
	TEST_ASSERT_EQUAL_INT(-EADDRINUSE, listen_at("127.0.0.2:7000"));
	vb_id_destroy(&rig.b.id);
	vb_id_destroy(&rig.a.id);
	TEST_ASSERT_EQUAL_INT(-ENODEV, listen_at("192.0.2.1:7000"));
	vb_id_destroy(&rig.b.id);
	TEST_ASSERT_EQUAL_INT(-ENODEV, listen_at("0.0.0.0:7000")); /* belongs to all devices */
	vb_id_destroy(&rig.b.id);
	fake_verbs_fail("rdma_bind_addr", 1, EADDRNOTAVAIL);
	TEST_ASSERT_EQUAL_INT(-EADDRNOTAVAIL, listen_at("127.0.0.2:7000"));
	vb_id_destroy(&rig.b.id);
	fake_verbs_fail("rdma_listen", 1, EACCES);
	TEST_ASSERT_EQUAL_INT(-EACCES, listen_at("127.0.0.2:7000"));
}

static void test_resolve(void)
{
	TEST_ASSERT_EQUAL_INT(0, vb_events_open(&rig.a.events));
	TEST_ASSERT_EQUAL_INT(0, vb_id_create(rig.a.events, &rig, &rig.a.id));
	fake_verbs_fail("rdma_resolve_addr", 1, ENETUNREACH);
	TEST_ASSERT_EQUAL_INT(
		-ENETUNREACH,
		vb_id_resolve_addr(rig.a.id, NULL, rig_address("127.0.0.2:7000"), RIG_MS));
	TEST_ASSERT_EQUAL_INT(
		0, vb_id_resolve_addr(rig.a.id, NULL, rig_address("127.0.0.2:7000"), RIG_MS));
	TEST_ASSERT_EQUAL_INT(0, rig_expect(&rig.a, RDMA_CM_EVENT_ADDR_RESOLVED));
	TEST_ASSERT_NOT_NULL(rig.a.id->verbs);
	fake_verbs_fail("rdma_resolve_route", 1, EIO);
	TEST_ASSERT_EQUAL_INT(-EIO, vb_id_resolve_route(rig.a.id, RIG_MS));
	TEST_ASSERT_EQUAL_INT(0, vb_id_resolve_route(rig.a.id, RIG_MS));
	TEST_ASSERT_EQUAL_INT(0, rig_expect(&rig.a, RDMA_CM_EVENT_ROUTE_RESOLVED));
}

static void test_from_an_address(void)
{
	struct sockaddr_storage from;

	TEST_ASSERT_EQUAL_INT(0, tc_address_parse("10.99.0.2:0", &from));
	TEST_ASSERT_EQUAL_INT(0, vb_events_open(&rig.a.events));
	TEST_ASSERT_EQUAL_INT(0, vb_id_create(rig.a.events, &rig, &rig.a.id));
	TEST_ASSERT_EQUAL_INT(0, vb_id_resolve_addr(rig.a.id, (struct sockaddr *)&from,
						    rig_address("127.0.0.1:7000"), RIG_MS));
	TEST_ASSERT_EQUAL_INT(0, rig_expect(&rig.a, RDMA_CM_EVENT_ADDR_RESOLVED));
	TEST_ASSERT_EQUAL_STRING("fake1", ibv_get_device_name(rig.a.id->verbs->device));
}

static void test_unreachable_address(void)
{
	TEST_ASSERT_EQUAL_INT(0, vb_events_open(&rig.a.events));
	TEST_ASSERT_EQUAL_INT(0, vb_id_create(rig.a.events, &rig, &rig.a.id));
	TEST_ASSERT_EQUAL_INT(
		0, vb_id_resolve_addr(rig.a.id, NULL, rig_address("192.0.2.1:7000"), RIG_MS));
	TEST_ASSERT_EQUAL_INT(0, rig_expect(&rig.a, RDMA_CM_EVENT_ADDR_ERROR));
	TEST_ASSERT_EQUAL_INT(-EHOSTUNREACH, vb_event_reason(rig.a.event.type, rig.a.event.status));
}

/* -- timeouts and retries -- */

static void expect_patience(const struct rig_end *end, int timeout)
{
	struct ibv_qp_attr attr = rig_attr(end);

	TEST_ASSERT_EQUAL_INT(timeout, attr.timeout);
	TEST_ASSERT_EQUAL_INT(rig.patience.retry_count, attr.retry_cnt);
	TEST_ASSERT_EQUAL_INT(rig.patience.rnr_retry_count, attr.rnr_retry);
}

static void test_timeouts(void)
{
	TEST_ASSERT_EQUAL_INT(0, rig_up());
	expect_patience(&rig.a, 14);
	expect_patience(&rig.b, 14);
}

static void test_default_timeout_of_the_device(void)
{
	rig.patience.ack_timeout = 0;
	TEST_ASSERT_EQUAL_INT(0, rig_up());
	TEST_ASSERT_EQUAL_UINT(0, fake_verbs_calls("rdma_set_option"));
	TEST_ASSERT_TRUE(rig_attr(&rig.a).timeout != 14);
}

static void test_no_such_option(void)
{
	static const int errors[] = {ENOSYS, EINVAL, EOPNOTSUPP};

	TEST_ASSERT_EQUAL_INT(0, rig_listen());
	for (int i = 0; i < 3; i++) {
		fake_verbs_fail("rdma_set_option", 1, errors[i]);
		TEST_ASSERT_EQUAL_INT(0, vb_id_set_patience(rig.a.id, &rig.patience));
	}
	fake_verbs_fail("rdma_set_option", 1, ENODEV);
	TEST_ASSERT_EQUAL_INT(-ENODEV, vb_id_set_patience(rig.a.id, &rig.patience));
}

/* -- connecting -- */

static void test_data(void)
{
	char big[VB_PRIVATE_MAX + 1] = "";

	TEST_ASSERT_EQUAL_INT(0, rig_listen());
	TEST_ASSERT_EQUAL_INT(0, rig_equip(&rig.a));
	TEST_ASSERT_EQUAL_INT(
		-EMSGSIZE, vb_id_connect(rig.a.id, &rig.a.limits, &rig.patience, big, sizeof(big)));
	TEST_ASSERT_EQUAL_UINT(0, fake_verbs_calls("rdma_connect"));
	memset(big, 'x', sizeof(big));
	TEST_ASSERT_EQUAL_INT(
		0, vb_id_connect(rig.a.id, &rig.a.limits, &rig.patience, big, VB_PRIVATE_MAX));
	TEST_ASSERT_EQUAL_INT(0, rig_expect(&rig.b, RDMA_CM_EVENT_CONNECT_REQUEST));
	rig.b.id = rig.b.event.id;
	TEST_ASSERT_EQUAL_MEMORY(big, rig.b.event.private_data, VB_PRIVATE_MAX);
	TEST_ASSERT_EQUAL_UINT(VB_PRIVATE_MAX, rig.b.event.private_len);
	TEST_ASSERT_EQUAL_INT(0, rig_equip(&rig.b));
	TEST_ASSERT_EQUAL_INT(-EMSGSIZE, vb_id_accept(rig.b.id, &rig.b.limits, &rig.patience,
						      &rig.b.event, big, VB_PRIVATE_MAX + 1));
	TEST_ASSERT_EQUAL_INT(0, rig_accept());
	TEST_ASSERT_EQUAL_INT(0, rig_expect(&rig.a, RDMA_CM_EVENT_ESTABLISHED));
	TEST_ASSERT_EQUAL_STRING(answer, (const char *)rig.a.event.private_data);
}

/*
 * The limit of reads in flight in one direction is the smaller of what the device of the reading
 * side can start and the device of the other side can answer, but at least 1.
 */
static void test_reads_under_way(void)
{
	static const struct {
		uint32_t a_answers, a_starts, b_answers, b_starts;
		int a_to_b, b_to_a; /* negotiated limit, the same at both ends */
	} rows[] = {
		{128, 128, 128, 128, 128, 128}, {16, 16, 4, 2, 4, 2},
		{4, 2, 16, 16, 2, 4},           {3, 5, 7, 9, 5, 3},
		{128, 128, 1, 1, 1, 1},         {0, 0, 16, 16, 1, 1},
		{16, 16, 0, 0, 1, 1},           {70000, 70000, 128, 128, 128, 128},
	};

	struct vb_device dev;

	fake_device(0)->attr.max_qp_rd_atom = fake_device(0)->attr.max_qp_init_rd_atom = 70000;
	TEST_ASSERT_EQUAL_INT(0, vb_device_open(&dev, "fake0"));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		rig.a.limits = rig.b.limits = dev.limits;
		rig.a.limits.max_rd_atomic = rows[i].a_answers;
		rig.a.limits.max_init_rd_atomic = rows[i].a_starts;
		rig.b.limits.max_rd_atomic = rows[i].b_answers;
		rig.b.limits.max_init_rd_atomic = rows[i].b_starts;
		TEST_ASSERT_EQUAL_INT(0, rig_up());
		TEST_ASSERT_EQUAL_INT(rows[i].a_to_b, rig_attr(&rig.a).max_rd_atomic);
		TEST_ASSERT_EQUAL_INT(rows[i].a_to_b, rig_attr(&rig.b).max_dest_rd_atomic);
		TEST_ASSERT_EQUAL_INT(rows[i].b_to_a, rig_attr(&rig.b).max_rd_atomic);
		TEST_ASSERT_EQUAL_INT(rows[i].b_to_a, rig_attr(&rig.a).max_dest_rd_atomic);
		rig_down();
	}
	vb_device_close(&dev);
}

/*
 * The queue pair of the listener gets the retry counts of the connection request of the peer. Some
 * devices take a count of 7 as unlimited, so the listener rejects such a request.
 */
static void test_retries_without_end(void)
{
	struct rdma_conn_param params[] = {
		{.responder_resources = 1,
		 .initiator_depth = 1,
		 .retry_count = 7,
		 .rnr_retry_count = 6},
		{.responder_resources = 1,
		 .initiator_depth = 1,
		 .retry_count = 6,
		 .rnr_retry_count = 7},
	};

	for (int i = 0; i < 2; i++) {
		TEST_ASSERT_EQUAL_INT(0, rig_listen());
		TEST_ASSERT_EQUAL_INT(0, rig_equip(&rig.a));
		TEST_ASSERT_EQUAL_INT(0, rdma_connect(rig.a.id, &params[i]));
		TEST_ASSERT_EQUAL_INT(0, rig_expect(&rig.b, RDMA_CM_EVENT_CONNECT_REQUEST));
		rig.b.id = rig.b.event.id;
		TEST_ASSERT_EQUAL_INT(0, rig_equip(&rig.b));
		TEST_ASSERT_EQUAL_INT(-EPROTO, rig_accept());
		TEST_ASSERT_EQUAL_UINT(0, fake_verbs_calls("rdma_accept"));
		rig_down();
	}
}

static void test_errors(void)
{
	TEST_ASSERT_EQUAL_INT(0, rig_listen());
	TEST_ASSERT_EQUAL_INT(0, rig_equip(&rig.a));
	fake_verbs_fail("rdma_connect", 1, ENOMEM);
	TEST_ASSERT_EQUAL_INT(-ENOMEM, vb_id_connect(rig.a.id, &rig.a.limits, &rig.patience, hello,
						     sizeof(hello)));
	TEST_ASSERT_EQUAL_INT(
		0, vb_id_connect(rig.a.id, &rig.a.limits, &rig.patience, hello, sizeof(hello)));
	TEST_ASSERT_EQUAL_INT(0, rig_expect(&rig.b, RDMA_CM_EVENT_CONNECT_REQUEST));
	rig.b.id = rig.b.event.id;
	TEST_ASSERT_EQUAL_INT(0, rig_equip(&rig.b));
	fake_verbs_fail("rdma_accept", 1, ECONNRESET);
	TEST_ASSERT_EQUAL_INT(-ECONNRESET, rig_accept());
	TEST_ASSERT_EQUAL_INT(0, rig_accept());
}

/* -- ending -- */

static void test_reject(void)
{
	char why[VB_REJECT_MAX + 200];

	memset(why, 'y', sizeof(why));
	TEST_ASSERT_EQUAL_INT(0, rig_request());
	TEST_ASSERT_EQUAL_INT(-EMSGSIZE, vb_id_reject(rig.b.id, why, VB_REJECT_MAX + 1));
	/* a length of 256 does not fit into one byte */
	TEST_ASSERT_EQUAL_INT(-EMSGSIZE, vb_id_reject(rig.b.id, why, 256));
	TEST_ASSERT_EQUAL_UINT(0, fake_verbs_calls("rdma_reject"));
	fake_verbs_fail("rdma_reject", 1, EINVAL);
	TEST_ASSERT_EQUAL_INT(-EINVAL, vb_id_reject(rig.b.id, why, VB_REJECT_MAX));
	TEST_ASSERT_EQUAL_INT(0, vb_id_reject(rig.b.id, why, VB_REJECT_MAX));
	TEST_ASSERT_EQUAL_INT(0, rig_expect(&rig.a, RDMA_CM_EVENT_REJECTED));
	TEST_ASSERT_EQUAL_UINT(VB_REJECT_MAX, rig.a.event.private_len);
	TEST_ASSERT_EQUAL_MEMORY(why, rig.a.event.private_data, VB_REJECT_MAX);
	TEST_ASSERT_EQUAL_INT(-ECONNREFUSED, vb_event_reason(rig.a.event.type, rig.a.event.status));
}

static void test_no_listener(void)
{
	TEST_ASSERT_EQUAL_INT(0, rig_listen());
	TEST_ASSERT_EQUAL_INT(0, rig_equip(&rig.a));
	vb_id_destroy(&rig.listener);
	TEST_ASSERT_EQUAL_INT(
		0, vb_id_connect(rig.a.id, &rig.a.limits, &rig.patience, hello, sizeof(hello)));
	TEST_ASSERT_EQUAL_INT(0, rig_expect(&rig.a, RDMA_CM_EVENT_REJECTED));
	TEST_ASSERT_EQUAL_INT(-ECONNREFUSED, vb_event_reason(rig.a.event.type, rig.a.event.status));
}

static void test_no_answer(void)
{
	TEST_ASSERT_EQUAL_INT(0, rig_listen());
	TEST_ASSERT_EQUAL_INT(0, rig_equip(&rig.a));
	fake_wire_cut(1);
	TEST_ASSERT_EQUAL_INT(
		0, vb_id_connect(rig.a.id, &rig.a.limits, &rig.patience, hello, sizeof(hello)));
	fake_cm_timeout();
	TEST_ASSERT_EQUAL_INT(0, rig_expect(&rig.a, RDMA_CM_EVENT_UNREACHABLE));
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, vb_event_reason(rig.a.event.type, rig.a.event.status));
}

static void test_disconnect(void)
{
	TEST_ASSERT_EQUAL_INT(0, rig_up());
	vb_id_disconnect(rig.a.id);
	TEST_ASSERT_EQUAL_INT(0, rig_expect(&rig.b, RDMA_CM_EVENT_DISCONNECTED));
	vb_id_disconnect(rig.b.id);
	TEST_ASSERT_EQUAL_INT(0, rig_expect(&rig.a, RDMA_CM_EVENT_DISCONNECTED));
	TEST_ASSERT_EQUAL_INT(0, rig_expect(&rig.a, RDMA_CM_EVENT_TIMEWAIT_EXIT));
	fake_verbs_fail("rdma_disconnect", 1, EINVAL);
	vb_id_disconnect(rig.a.id);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_addresses);
	RUN_TEST(test_bad_addresses);
	RUN_TEST(test_printing);
	RUN_TEST(test_create);
	RUN_TEST(test_listen);
	RUN_TEST(test_resolve);
	RUN_TEST(test_from_an_address);
	RUN_TEST(test_unreachable_address);
	RUN_TEST(test_timeouts);
	RUN_TEST(test_default_timeout_of_the_device);
	RUN_TEST(test_no_such_option);
	RUN_TEST(test_data);
	RUN_TEST(test_reads_under_way);
	RUN_TEST(test_retries_without_end);
	RUN_TEST(test_errors);
	RUN_TEST(test_reject);
	RUN_TEST(test_no_listener);
	RUN_TEST(test_no_answer);
	RUN_TEST(test_disconnect);
	return UNITY_END();
}
