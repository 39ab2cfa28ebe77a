/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The gateway between an initiator and a target; the test plays both. However a session ends, the
 * target releases the region before the gateway releases it to the initiator.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "loader/loader_priv.h"
#include "unit/session/rig.h"

#include "../plugins/role/gateway/gateway.h"

static struct fake_conn *front, *leg; /* connections to the initiator, to the target */
static void *gateway_ops;
static const struct gateway_conf conf = {.mode = GATEWAY_CONCAT, .chunk = 65536, .uuid = ""};
static uint32_t epoch;                          /* epoch in the last HELLO to the target */
static uint8_t secret[GANTRY_SECRET_BYTES];     /* secret in the last HELLO to the target */
static uint64_t features = GN_FEATURE_UNEXPORT; /* those of the target */

static void start_gateway(void)
{
	char why[GN_WHY];

	if (!gateway_ops)
		TEST_ASSERT_EQUAL_INT(0, gn_plugin_ops(fake_plugin("gateway"), &gateway_ops, why));
	fc.ops = gateway_ops;
	fc.conf = &conf;
	fake_core_start(&fc, 1);
}

static void stop_gateway(void)
{
	gn_role_stop(fc.role);
	fake_core_turn(&fc);
}

static size_t answer_payload(unsigned type, void *buf)
{
	struct gn_hello_answer hello = {
		.version = GN_FRAME_VERSION, .epoch = epoch, .features = features};
	const struct gn_queues queues = {.n = 2, .depth = 4, .consumer = {21, 22}};

	memcpy(hello.secret, secret, sizeof(secret));
	return fake_answer_payload(type, &hello, &queues, buf);
}

/* Expect this request of the gateway to the target, and answer it with status 0. */
static void target_does(unsigned type)
{
	static const struct gn_verdict ok = {.status = 0};
	uint8_t buf[GANTRY_CTRL_MAX];

	TEST_ASSERT_EQUAL_INT(1, fake_next_frame(leg, &p));
	TEST_ASSERT_EQUAL_STRING(gn_frame_name(type), gn_frame_name(p.type));
	TEST_ASSERT_EQUAL_INT(0, p.answer);
	if (type == GN_FRAME_HELLO) {
		memcpy(&epoch, (const uint8_t *)p.payload + offsetof(struct gn_hello, epoch),
		       sizeof(epoch));
		memcpy(secret, (const uint8_t *)p.payload + offsetof(struct gn_hello, secret),
		       sizeof(secret));
	}
	fake_ctrl_send(leg, buf,
		       gn_frame_build(buf, type, p.head.id, p.head.session, &ok, payload,
				      answer_payload(type, payload)));
	fake_core_turn(&fc);
}

/* Bring a session to the state after QUERY: the initiator knows the volume. */
static void query(void)
{
	front = fake_reach(&fc, GN_NEW);
	ask(front, GN_FRAME_HELLO);
	leg = fake_pending(&fc.ft);
	TEST_ASSERT_NOT_NULL(leg);
	fake_accept(leg);
	fake_core_turn(&fc);
	target_does(GN_FRAME_HELLO);
	target_does(GN_FRAME_QUERY);
	expect_answer(front, GN_FRAME_HELLO, 0);
	TEST_ASSERT_EQUAL_MEMORY(
		secret, (const uint8_t *)p.payload + offsetof(struct gn_hello_answer, secret),
		sizeof(secret));
	ask(front, GN_FRAME_QUERY);
	expect_answer(front, GN_FRAME_QUERY, 0);
}

/* Bring a session to the state after EXPORT: the target has imported the region. */
static void export(void)
{
	query();
	ask(front, GN_FRAME_EXPORT);
	target_does(GN_FRAME_EXPORT);
	expect_answer(front, GN_FRAME_EXPORT, 0);
	TEST_ASSERT_EQUAL_UINT(1, front->n_imports);
	TEST_ASSERT_EQUAL_UINT(GANTRY_IMPORT_KEEPS_PAGES, fc.ft.import_flags);
}

static void run(void)
{
	export();
	ask(front, GN_FRAME_QUEUES);
	expect_answer(front, GN_FRAME_QUEUES, 0);
	ask(front, GN_FRAME_START);
	target_does(GN_FRAME_QUEUES);
	target_does(GN_FRAME_START);
	expect_answer(front, GN_FRAME_START, 0);
}

static void expect_legs_ended_first(void)
{
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_INT(1, leg->disconnected);
	TEST_ASSERT_EQUAL_INT(1, front->disconnected);
	TEST_ASSERT_EQUAL_UINT(0, front->n_imports);
	TEST_ASSERT_TRUE(leg->disconnected_at < front->released_at);
	TEST_ASSERT_TRUE(front->released_at < front->disconnected_at);
}

static void expect_no_re_export(int rc, const char *why)
{
	start_gateway();
	query();
	fake_fail_op(&fc.ft, FAKE_EXPORT, 1, rc);
	ask(front, GN_FRAME_EXPORT);
	TEST_ASSERT_EQUAL_INT(1, fake_next_frame(front, &p));
	TEST_ASSERT_NOT_EQUAL(0, p.verdict.status);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(p.verdict.text, why), p.verdict.text);
	expect_legs_ended_first();
	stop_gateway();
}

static void region_that_is_too_large_is_rejected(void)
{
	expect_no_re_export(-E2BIG,
			    "cannot be re-exported: the limit of the next device is smaller");
}

static void region_out_of_reach_is_rejected_with_a_remedy(void)
{
	expect_no_re_export(-EXDEV,
			    "cannot be re-exported: memory not reachable by the next device: use "
			    "one transport on both sides (gantry-gateway(7))");
}

static void region_that_cannot_be_re_exported_is_rejected(void)
{
	expect_no_re_export(-ENOTSUP, "cannot be re-exported: Operation not supported");
}

static void an_orderly_end(void)
{
	start_gateway();
	run();
	ask(front, GN_FRAME_STOP);
	target_does(GN_FRAME_STOP);
	TEST_ASSERT_EQUAL_UINT(1, front->n_imports);
	target_does(GN_FRAME_BYE);
	TEST_ASSERT_EQUAL_UINT(1, leg->n_revokes);
	expect_answer(front, GN_FRAME_STOP, 0);
	TEST_ASSERT_EQUAL_UINT(0, front->n_imports);
	ask(front, GN_FRAME_BYE);
	expect_legs_ended_first();
	stop_gateway();
}

/* The gateway answers STOP only after the target has released the region. */
static void a_target_that_keeps_the_region_for_a_while(void)
{
	start_gateway();
	fc.ft.keeps = 1;
	run();
	ask(front, GN_FRAME_STOP);
	target_does(GN_FRAME_STOP);
	target_does(GN_FRAME_BYE);
	TEST_ASSERT_EQUAL_INT(0, fake_next_frame(front, &p));
	TEST_ASSERT_EQUAL_UINT(1, front->n_imports);
	fake_revoked(leg, 1, 0);
	fake_core_turn(&fc);
	expect_answer(front, GN_FRAME_STOP, 0);
	TEST_ASSERT_EQUAL_UINT(0, front->n_imports);
	ask(front, GN_FRAME_BYE);
	expect_legs_ended_first();
	stop_gateway();
}

/* The gateway answers each request only after the target has answered its own. */
static void regions_change_while_the_session_runs(void)
{
	start_gateway();
	query();
	ask(front, GN_FRAME_QUEUES);
	expect_answer(front, GN_FRAME_QUEUES, 0);
	ask(front, GN_FRAME_START);
	target_does(GN_FRAME_QUEUES);
	target_does(GN_FRAME_START);
	expect_answer(front, GN_FRAME_START, 0);
	for (unsigned i = 1; i <= 2; i++) {
		ask(front, GN_FRAME_EXPORT);
		TEST_ASSERT_EQUAL_INT(0, fake_next_frame(front, &p));
		target_does(GN_FRAME_EXPORT);
		expect_answer(front, GN_FRAME_EXPORT, 0);
		TEST_ASSERT_EQUAL_UINT(1, front->n_imports);
		fc.ft.keeps = 1;
		ask(front, GN_FRAME_UNEXPORT);
		target_does(GN_FRAME_UNEXPORT);
		TEST_ASSERT_EQUAL_UINT(i, leg->n_revokes);
		TEST_ASSERT_EQUAL_INT(0, fake_next_frame(front, &p));
		TEST_ASSERT_EQUAL_UINT(1, front->n_imports);
		fc.ft.keeps = 0;
		fake_revoked(leg, 1, 0);
		fake_core_turn(&fc);
		expect_answer(front, GN_FRAME_UNEXPORT, 0);
		TEST_ASSERT_EQUAL_UINT(0, front->n_imports);
	}
	ask(front, GN_FRAME_EXPORT);
	target_does(GN_FRAME_EXPORT);
	expect_answer(front, GN_FRAME_EXPORT, 0);
	ask(front, GN_FRAME_STOP);
	target_does(GN_FRAME_STOP);
	target_does(GN_FRAME_BYE);
	expect_answer(front, GN_FRAME_STOP, 0);
	ask(front, GN_FRAME_BYE);
	expect_legs_ended_first();
	stop_gateway();
}

static void target_that_is_lost_during_an_unexport(void)
{
	start_gateway();
	run();
	ask(front, GN_FRAME_UNEXPORT);
	fake_close(leg, -ENOTCONN);
	expect_legs_ended_first();
	stop_gateway();
}

static void gateway_offers_unexport_only_if_its_target_does(void)
{
	uint64_t offered;

	for (unsigned i = 0; i < 2; i++) {
		features = i == 0 ? 0 : GN_FEATURE_UNEXPORT;
		start_gateway();
		front = fake_reach(&fc, GN_NEW);
		ask(front, GN_FRAME_HELLO);
		leg = fake_pending(&fc.ft);
		fake_accept(leg);
		fake_core_turn(&fc);
		target_does(GN_FRAME_HELLO);
		target_does(GN_FRAME_QUERY);
		expect_answer(front, GN_FRAME_HELLO, 0);
		memcpy(&offered,
		       (const uint8_t *)p.payload + offsetof(struct gn_hello_answer, features),
		       sizeof(offered));
		TEST_ASSERT_EQUAL_HEX64(features, offered & GN_FEATURE_UNEXPORT);
		stop_gateway();
		tearDown();
		setUp();
	}
	start_gateway();
	stop_gateway();
}

static void an_initiator_that_is_lost(void)
{
	start_gateway();
	run();
	fake_close(front, -ENOTCONN);
	expect_legs_ended_first();
	stop_gateway();
}

static void a_target_that_is_lost(void)
{
	start_gateway();
	run();
	fake_close(leg, -ENOTCONN);
	expect_legs_ended_first();
	expect_answer(front, GN_FRAME_END, GANTRY_S_SESSION_LOST);
	stop_gateway();
}

static void a_gateway_that_stops(void)
{
	start_gateway();
	run();
	gn_role_stop(fc.role);
	expect_legs_ended_first();
}

/*
 * Without START there is no STOP that drains the target. The gateway sends BYE to the target, and
 * waits for the answer before it releases the region.
 */
static void bye_before_start_is_forwarded(void)
{
	start_gateway();
	export();
	ask(front, GN_FRAME_BYE);
	expect_answer(front, GN_FRAME_BYE, 0);
	TEST_ASSERT_EQUAL_UINT(1, front->n_imports);
	TEST_ASSERT_EQUAL_INT(0, front->disconnected);
	target_does(GN_FRAME_BYE);
	expect_legs_ended_first();
	stop_gateway();
}

static void target_that_does_not_answer_bye(void)
{
	start_gateway();
	export();
	ask(front, GN_FRAME_BYE);
	TEST_ASSERT_EQUAL_UINT(1, front->n_imports);
	fake_close(front, -ENOTCONN);
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_UINT(1, front->n_imports);
	fake_core_pass(&fc, 6 * GN_NS_PER_S, GN_NS_PER_S);
	expect_legs_ended_first();
	stop_gateway();
}

static void initiator_that_disconnects_during_the_connect_to_the_target(void)
{
	start_gateway();
	front = fake_reach(&fc, GN_NEW);
	ask(front, GN_FRAME_HELLO);
	leg = fake_pending(&fc.ft);
	fake_close(front, -ENOTCONN);
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_INT(1, leg->disconnected);
	TEST_ASSERT_EQUAL_INT(1, front->disconnected);
	stop_gateway();
}

/*
 * The gateway opens the session at the target with the id and the epoch of the initiator, after it
 * has torn down the older connections of the session.
 */
static void initiator_that_resumes_its_session(void)
{
	struct fake_conn *old, *old_leg;
	uint8_t buf[GANTRY_CTRL_MAX], hello[GANTRY_CTRL_MAX];
	size_t len = fake_payload(GN_FRAME_HELLO, hello);
	uint64_t id;

	start_gateway();
	run();
	TEST_ASSERT_EQUAL_UINT(1, epoch);
	id = fake_session(&fc, front);
	TEST_ASSERT_EQUAL_HEX64(id, p.head.session);
	old = front;
	old_leg = leg;
	front = fake_reach(&fc, GN_NEW);
	memcpy(hello + offsetof(struct gn_hello, epoch), &(uint32_t){2}, sizeof(uint32_t));
	memcpy(hello + offsetof(struct gn_hello, secret), secret, sizeof(secret));
	fake_ctrl_send(front, buf, gn_frame_build(buf, GN_FRAME_HELLO, 1, id, NULL, hello, len));
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_INT(1, old_leg->disconnected);
	TEST_ASSERT_EQUAL_INT(1, old->disconnected);
	TEST_ASSERT_TRUE(old_leg->disconnected_at < old->released_at);
	leg = fake_pending(&fc.ft);
	TEST_ASSERT_NOT_NULL(leg);
	fake_accept(leg);
	fake_core_turn(&fc);
	target_does(GN_FRAME_HELLO);
	TEST_ASSERT_EQUAL_UINT(2, epoch);
	TEST_ASSERT_EQUAL_MEMORY(hello + offsetof(struct gn_hello, secret), secret, sizeof(secret));
	TEST_ASSERT_EQUAL_HEX64(id, p.head.session);
	target_does(GN_FRAME_QUERY);
	expect_answer(front, GN_FRAME_HELLO, 0);
	fake_close(front, -ENOTCONN);
	fake_core_turn(&fc);
	stop_gateway();
}

/* The gateway rejects a HELLO with a known id and a wrong secret, and does not forward it. */
static void hello_with_a_wrong_secret_is_not_forwarded(void)
{
	uint8_t buf[GANTRY_CTRL_MAX], hello[GANTRY_CTRL_MAX];
	size_t len = fake_payload(GN_FRAME_HELLO, hello);
	struct fake_conn *stranger;

	start_gateway();
	run();
	stranger = fake_reach(&fc, GN_NEW);
	memcpy(hello + offsetof(struct gn_hello, epoch), &(uint32_t){1000}, sizeof(uint32_t));
	memset(hello + offsetof(struct gn_hello, secret), 0x5e, sizeof(secret));
	fake_ctrl_send(
		stranger, buf,
		gn_frame_build(buf, GN_FRAME_HELLO, 1, fake_session(&fc, front), NULL, hello, len));
	fake_core_turn(&fc);
	expect_answer(stranger, GN_FRAME_HELLO, GANTRY_S_ACCESS);
	TEST_ASSERT_NULL(fake_pending(&fc.ft));
	TEST_ASSERT_EQUAL_INT(0, fake_next_frame(leg, &p));
	TEST_ASSERT_EQUAL_INT(0, fake_next_frame(front, &p));
	TEST_ASSERT_EQUAL_INT(0, front->disconnected);
	stop_gateway();
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(region_that_is_too_large_is_rejected);
	RUN_TEST(region_out_of_reach_is_rejected_with_a_remedy);
	RUN_TEST(region_that_cannot_be_re_exported_is_rejected);
	RUN_TEST(an_orderly_end);
	RUN_TEST(a_target_that_keeps_the_region_for_a_while);
	RUN_TEST(regions_change_while_the_session_runs);
	RUN_TEST(target_that_is_lost_during_an_unexport);
	RUN_TEST(gateway_offers_unexport_only_if_its_target_does);
	RUN_TEST(an_initiator_that_is_lost);
	RUN_TEST(a_target_that_is_lost);
	RUN_TEST(a_gateway_that_stops);
	RUN_TEST(bye_before_start_is_forwarded);
	RUN_TEST(target_that_does_not_answer_bye);
	RUN_TEST(initiator_that_disconnects_during_the_connect_to_the_target);
	RUN_TEST(initiator_that_resumes_its_session);
	RUN_TEST(hello_with_a_wrong_secret_is_not_forwarded);
	return UNITY_END();
}
