/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client_rig.h - a session that the core opens. The test is its server, and sends each reply.
 */
#ifndef TEST_SESSION_CLIENT_RIG_H
#define TEST_SESSION_CLIENT_RIG_H

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "fake/core.h"
#include "fake/host.h"
#include "unity.h"

#define DEPTH 4

/* Progress of a client, named after the last reply that the test sent. */
enum point { OPENED, CONNECTED, GREETED, READY, EXPORTED, QUEUED, STARTED, POINTS };

static struct fake_core fc;
static struct gn_parsed p;
static struct fake_conn *conn;
static struct gantry_client *client;
static struct gantry_chain *chain;
static struct gantry_io *ios;
static struct gantry_region region = {.addr = fc.ft.memory, .length = 4096, .fd = -1};
static unsigned n_ready, n_exported, n_started, n_closed;
static unsigned n_unexported;
static uint32_t unexported; /* handle of the last event */
static uint64_t resized;    /* size of the last event `resized` */
static uint64_t features;   /* in the answer to HELLO */
static int close_reason;
static char close_text[256];
static int close_in_ready, io_done_before_closed;
static _Atomic unsigned n_io_done;
static uint16_t io_status;

static void on_ready(void *arg, struct gantry_client *c, const struct gantry_volume_info *volume)
{
	(void)arg;
	TEST_ASSERT_EQUAL_UINT64(1 << 20, volume->size);
	n_ready++;
	if (close_in_ready)
		fc.rh->client_close(c);
}

static void on_exported(void *arg, struct gantry_client *c, const struct gantry_region *r)
{
	(void)arg;
	(void)c;
	TEST_ASSERT_EQUAL_PTR(&region, r);
	n_exported++;
}

static void on_started(void *arg, struct gantry_client *c)
{
	(void)arg;
	(void)c;
	n_started++;
}

static void on_closed(void *arg, struct gantry_client *c, int reason, const char *text)
{
	(void)arg;
	TEST_ASSERT_EQUAL_PTR(client, c);
	n_closed++;
	close_reason = reason;
	io_done_before_closed = n_io_done;
	strcpy(close_text, text);
}

static void on_unexported(void *arg, struct gantry_client *c, uint32_t handle)
{
	(void)arg;
	TEST_ASSERT_EQUAL_PTR(client, c);
	unexported = handle;
	n_unexported++;
}

static void on_resized(void *arg, struct gantry_client *c, uint64_t size)
{
	(void)arg;
	TEST_ASSERT_EQUAL_PTR(client, c);
	resized = size;
}

static const struct gantry_client_events events = {
	.ready = on_ready,
	.exported = on_exported,
	.started = on_started,
	.closed = on_closed,
	.unexported = on_unexported,
	.resized = on_resized,
};

static void owner_complete(void *self, struct gantry_io *io)
{
	(void)self;
	if (gantry_io_end(io) != 0)
		fake_fail("completed twice");
	io_status = io->status;
	n_io_done++;
}

static int no_submit(void *self, struct gantry_io *io)
{
	(void)self;
	(void)io;
	return -EINVAL;
}

void setUp(void)
{
	gn_log_set_level(GN_LOG_ERROR);
	gn_log_set_hook(NULL);
	n_ready = n_exported = n_started = n_closed = n_unexported = 0;
	features = GN_FEATURE_UNEXPORT | GN_FEATURE_VOLUME;
	resized = 0;
	close_in_ready = 0;
	n_io_done = 0;
	conn = NULL;
	client = NULL;
	chain = NULL;
	fake_core_init(&fc);
	fake_core_start(&fc, 0);
}

void tearDown(void)
{
	if (client && n_closed == 1) {
		gn_chain_destroy(chain);
		chain = NULL;
		fc.rh->client_free(client);
	}
	gn_role_stop(fc.role);
	fake_core_turn(&fc);
	fake_core_fini(&fc);
	gn_chain_destroy(chain);
}

static inline void open_client(void)
{
	const struct gantry_session_attr attr = {
		.id = FAKE_SESSION, .epoch = 1, .lanes = 2, .depth = DEPTH, .regions = 2};

	TEST_ASSERT_EQUAL_INT(0, fc.rh->client_open(fc.rh, 0, &attr, &events, NULL, &client));
	fake_core_turn(&fc);
	conn = fake_pending(&fc.ft);
	TEST_ASSERT_NOT_NULL(conn);
}

/* Expect that the client has sent this request. */
static inline void asked(unsigned type)
{
	TEST_ASSERT_EQUAL_INT(1, fake_next_frame(conn, &p));
	TEST_ASSERT_EQUAL_STRING(gn_frame_name(type), gn_frame_name(p.type));
	TEST_ASSERT_EQUAL_INT(0, p.answer);
}

static inline void say(unsigned type, uint32_t id, uint64_t session,
		       const struct gn_verdict *verdict, const void *payload, size_t len)
{
	uint8_t buf[GANTRY_CTRL_MAX];

	fake_ctrl_send(conn, buf, gn_frame_build(buf, type, id, session, verdict, payload, len));
	fake_core_turn(&fc);
}

static inline size_t answer_payload(unsigned type, void *buf)
{
	const struct gn_hello_answer hello = {
		.version = GN_FRAME_VERSION, .epoch = 1, .features = features, .secret = {1, 2, 3}};
	const struct gn_queues queues = {.n = 2, .depth = DEPTH, .consumer = {21, 22}};

	return fake_answer_payload(type, &hello, &queues, buf);
}

static inline void answer(unsigned type)
{
	static const struct gn_verdict ok = {.status = 0};
	uint8_t payload[GANTRY_CTRL_MAX];

	asked(type);
	say(type, p.head.id, FAKE_SESSION, &ok, payload, answer_payload(type, payload));
}

static inline void make_chain(void)
{
	struct gantry_hop owner = {.submit = no_submit, .complete = owner_complete}, terminal;

	for (uint32_t i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_INT(
			0, fc.rh->client_hop(client, i, fc.rh->lane(fc.rh, i), &terminal));
	TEST_ASSERT_EQUAL_INT(-EINVAL,
			      fc.rh->client_hop(client, 2, fc.rh->lane(fc.rh, 0), &terminal));
	TEST_ASSERT_EQUAL_INT(0, fc.rh->chain_create(fc.rh->lane(fc.rh, 1), &owner, &terminal, NULL,
						     4, &chain, &ios));
}

/*
 * Bring the client to a point. It has sent the request that pending_at() returns for this point.
 */
static inline void reach(enum point point)
{
	open_client();
	if (point >= CONNECTED) {
		fake_accept(conn);
		fake_core_turn(&fc);
	}
	if (point >= GREETED)
		answer(GN_FRAME_HELLO);
	if (point >= READY)
		answer(GN_FRAME_QUERY);
	if (point >= EXPORTED) {
		TEST_ASSERT_EQUAL_INT(0,
				      fc.rh->client_export(client, &region, GANTRY_REMOTE_READ, 1));
		answer(GN_FRAME_EXPORT);
	}
	if (point >= QUEUED) {
		make_chain();
		TEST_ASSERT_EQUAL_INT(0, fc.rh->client_start(client));
		answer(GN_FRAME_QUEUES);
	}
	if (point >= STARTED)
		answer(GN_FRAME_START);
}

/* Returns the request that is pending at a point, or 0. */
static inline unsigned pending_at(enum point point)
{
	static const unsigned types[POINTS] = {
		0, GN_FRAME_HELLO, GN_FRAME_QUERY, 0, 0, GN_FRAME_START, 0};

	return types[point];
}

static inline void closed(int reason)
{
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_UINT(1, n_closed);
	TEST_ASSERT_EQUAL_INT(reason, close_reason);
	TEST_ASSERT_EQUAL_INT(1, conn->disconnected);
	fc.rh->client_close(client); /* no effect after `closed` */
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_UINT(1, n_closed);
}

static inline void again(void)
{
	tearDown();
	setUp();
}

static inline void submit_on_lane(void *arg)
{
	gantry_io_begin(&ios[0], gn_now_ns());
	ios[0].opcode = GANTRY_OP_READ;
	ios[0].length = 512;
	*(int *)arg = gantry_submit(&ios[0]);
	if (*(int *)arg != 0)
		gantry_io_end(&ios[0]);
}

static inline int submit(void)
{
	int rc;

	gn_worker_call(fc.worker, submit_on_lane, &rc);
	fake_core_turn(&fc);
	return rc;
}

#endif
