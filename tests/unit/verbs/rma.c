/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma.c - remote reads and writes: which queue pair they use, when they start and complete, and how
 * they complete when the connection is lost.
 */
#include "unit/verbs/ends.h"

#define BYTES 4096u
#define BOTH (GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE)

static struct shared s;    /* exported by a */
static struct vb_rma *rma; /* queue of remote accesses of b */

void setUp(void)
{
	fake_verbs_reset();
}

void tearDown(void)
{
	TEST_ASSERT_EQUAL_STRING("", fake_verbs_check_clean());
}

static void open_all(const char *settings, uint32_t depth)
{
	ends_open(settings, NULL, NULL);
	share_begin(&s, &a, &b, BYTES, BOTH);
	rma = rma_open(&b, 0, depth);
	ends_settle();
	vb_lane_poll(rma->lane);
}

static void close_all(void)
{
	vb_rma_destroy(rma);
	if (a.conn->lost || b.conn->lost)
		munmap(s.bytes, BYTES);
	else
		share_end(&s);
	ends_close();
}

static struct fake_counters counters(void)
{
	struct fake_counters n;

	fake_verbs_counters(&n);
	return n;
}

static int submit(enum gantry_rma_op op, uint32_t slot, uint64_t cookie)
{
	return rma_do(rma, &b, op, slot * 64, &s, slot * 64, 64, cookie);
}

/* Expect a completion with this cookie and status. */
static void expect_end(uint64_t cookie, int status)
{
	struct gantry_rma_done done;
	int n = 0;

	for (int i = 0; n == 0 && i < 4; i++) /* the first polls can find other completions */
		n = vb_rma_poll(rma, &done, 1);
	TEST_ASSERT_EQUAL_INT(1, n);
	TEST_ASSERT_EQUAL_UINT64(cookie, done.cookie);
	TEST_ASSERT_EQUAL_INT(status, done.status);
}

static void expect_none(void)
{
	struct gantry_rma_done done;

	for (int i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_INT(0, vb_rma_poll(rma, &done, 1));
}

/* -- without errors -- */

static void one_doorbell_one_signal(const char *settings, enum vb_kind kind)
{
	struct fake_counters before, after;
	struct vb_pipe *pipe;

	open_all(settings, 16);
	pipe = vb_lane_pipe(rma->lane, kind, kind == VB_DATA ? VB_NO_LANE : 0);
	TEST_ASSERT_NOT_NULL(pipe);
	fill(s.bytes, BYTES, 1);
	fill(b.bytes, BYTES, 2);
	before = counters();
	for (uint32_t i = 0; i < 16; i++)
		TEST_ASSERT_EQUAL_INT(0, submit(i % 2 ? GANTRY_RMA_READ : GANTRY_RMA_WRITE, i, i));
	/* a full queue starts the submitted operations */
	TEST_ASSERT_EQUAL_INT(-EAGAIN, submit(GANTRY_RMA_READ, 0, 0));
	vb_rma_flush(rma);
	after = counters();
	TEST_ASSERT_EQUAL_UINT64(1, after.doorbells - before.doorbells);
	TEST_ASSERT_EQUAL_UINT64(1, after.signalled - before.signalled);
	TEST_ASSERT_EQUAL_UINT64(8, after.reads - before.reads);
	TEST_ASSERT_EQUAL_UINT32(16, pipe->qp.built - pipe->qp.done);
	for (uint32_t i = 0; i < 16; i++)
		expect_end(i, 0);
	expect_none();
	TEST_ASSERT_EQUAL_MEMORY(s.bytes, b.bytes, 16 * 64);
	TEST_ASSERT_EQUAL_UINT64(16 * 64, fake_counter(&b.host, "payload_bytes"));
	close_all();
}

/* A batch of VB_POST_BYTES is posted without a flush: it executes while the next one is built. */
static void much_data_is_posted_in_batches(void)
{
	const uint32_t lot = VB_POST_BYTES / BYTES;
	struct fake_counters before;

	open_all("max_depth=64", 64);
	before = counters();
	for (uint32_t i = 1; i <= 2 * lot + 1; i++) {
		TEST_ASSERT_EQUAL_INT(0, rma_do(rma, &b, GANTRY_RMA_READ, 0, &s, 0, BYTES, i));
		TEST_ASSERT_EQUAL_UINT64(i / lot, counters().doorbells - before.doorbells);
	}
	vb_rma_flush(rma);
	TEST_ASSERT_EQUAL_UINT64(3, counters().doorbells - before.doorbells);
	TEST_ASSERT_EQUAL_UINT64(3, counters().signalled - before.signalled);
	for (uint32_t i = 1; i <= 2 * lot + 1; i++)
		expect_end(i, 0);
	expect_none();
	close_all();
}

static void data_pipe_is_separate(void)
{
	one_doorbell_one_signal("max_depth=16", VB_DATA);
}

static void data_pipe_can_be_shared_with_messages(void)
{
	one_doorbell_one_signal("max_depth=16 data_qp=shared", VB_MESSAGES);
}

/* The end whose memory is accessed has a queue pair of depth 1 and no lane. */
static void passive_end_has_no_lane(void)
{
	struct vb_pipe *far;

	open_all("max_depth=16", 16);
	far = pipe_peer(vb_lane_pipe(rma->lane, VB_DATA, VB_NO_LANE));
	TEST_ASSERT_NULL(far->lane);
	TEST_ASSERT_NULL(far->block);
	TEST_ASSERT_EQUAL_UINT32(1, far->qp.depth);
	TEST_ASSERT_NULL(a.conn->lanes);
	close_all();
}

/* A write and a later message are posted together, in that order. */
static void message_behind_a_write(void)
{
	struct fake_counters before;
	struct queue there;

	open_all("max_depth=16 data_qp=shared", 16);
	queue_open(&there, &a, 0, &b, 0, 4, 0);
	TEST_ASSERT_EQUAL_INT(0, vb_post_recv(there.rx, 4));
	queue_transfer_credit(&there);
	fill(b.bytes, 64, 3);
	fake_wire_hold(1);
	before = counters();
	TEST_ASSERT_EQUAL_INT(0, submit(GANTRY_RMA_WRITE, 0, 1));
	TEST_ASSERT_EQUAL_INT(0, queue_send(&there, 5, GANTRY_SEND_MORE));
	vb_flush(there.tx);
	TEST_ASSERT_EQUAL_UINT64(1, counters().doorbells - before.doorbells);
	TEST_ASSERT_EQUAL_INT(1, fake_wire_step(NULL));
	TEST_ASSERT_EQUAL_INT(0, vb_poll_recv(there.rx, &(struct gantry_msg){.cookie = 0}, 1));
	TEST_ASSERT_TRUE(filled(s.bytes, 64, 3));
	TEST_ASSERT_EQUAL_INT(1, fake_wire_step(NULL));
	TEST_ASSERT_EQUAL_UINT64(5, queue_take(&there, NULL));
	fake_wire_hold(0);
	expect_end(1, 0);
	queue_close(&there);
	close_all();
}

/*
 * Short writes are posted before messages that were built earlier. So several messages can share
 * one request, which follows all of their data.
 */
static void messages_behind_their_writes(void)
{
	struct fake_counters before;
	struct gantry_msg msg;
	struct queue there;

	open_all("max_depth=16 data_qp=shared", 16);
	queue_open(&there, &a, 0, &b, 0, 4, 0);
	TEST_ASSERT_EQUAL_INT(0, vb_post_recv(there.rx, 4));
	queue_transfer_credit(&there);
	fill(b.bytes, 4 * 64, 3);
	fake_wire_hold(1);
	before = counters();
	for (uint64_t i = 0; i < 4; i++) {
		TEST_ASSERT_EQUAL_INT(0, submit(GANTRY_RMA_WRITE, (uint32_t)i, i));
		TEST_ASSERT_EQUAL_INT(0, queue_send(&there, i, GANTRY_SEND_MORE));
	}
	vb_flush(there.tx);
	TEST_ASSERT_EQUAL_UINT64(1, counters().doorbells - before.doorbells);
	TEST_ASSERT_EQUAL_UINT64(1, counters().signalled - before.signalled);
	for (int i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_INT(1, fake_wire_step(NULL));
	TEST_ASSERT_EQUAL_INT(0, vb_poll_recv(there.rx, &msg, 1));
	TEST_ASSERT_TRUE(filled(s.bytes, 3 * 64, 3));
	TEST_ASSERT_EQUAL_INT(1, fake_wire_step(NULL));
	for (uint64_t i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_UINT64(i, queue_take(&there, NULL));
	TEST_ASSERT_EQUAL_INT(0, vb_poll_recv(there.rx, &msg, 1));
	fake_wire_hold(0);
	TEST_ASSERT_EQUAL_UINT64(3, queue_take(&there, NULL));
	TEST_ASSERT_TRUE(filled(s.bytes, 4 * 64, 3));
	for (uint64_t i = 0; i < 4; i++)
		expect_end(i, 0);
	expect_none();
	TEST_ASSERT_EQUAL_UINT64(4, counters().writes - before.writes);
	TEST_ASSERT_EQUAL_UINT64(2, counters().sends - before.sends);
	queue_close(&there);
	close_all();
}

static void submit_fails_until_there_is_a_pipe(void)
{
	const struct gantry_queue_attr attr = {.depth = 2};
	void *p = NULL;

	ends_open(NULL, NULL, NULL);
	share_begin(&s, &a, &b, BYTES, BOTH);
	TEST_ASSERT_EQUAL_INT(0, vb_rma_create(b.conn, &attr, &p));
	rma = p;
	TEST_ASSERT_EQUAL_INT(-EAGAIN, submit(GANTRY_RMA_READ, 0, 1));
	expect_none();
	ends_until(submit(GANTRY_RMA_READ, 0, 2) == 0);
	vb_rma_flush(rma);
	expect_end(2, 0);
	close_all();
}

/* A length of 0 moves no bytes. In a scatter/gather entry it would mean 2^31 bytes. */
static void length_of_zero(void)
{
	open_all(NULL, 2);
	memset(s.bytes, 0x55, BYTES);
	TEST_ASSERT_EQUAL_INT(0, rma_do(rma, &b, GANTRY_RMA_WRITE, 0, &s, BYTES, 0, 1));
	TEST_ASSERT_EQUAL_INT(0, rma_do(rma, &b, GANTRY_RMA_READ, 0, &s, 0, 0, 2));
	vb_rma_flush(rma);
	expect_end(1, 0);
	expect_end(2, 0);
	TEST_ASSERT_EQUAL_HEX8(0x55, s.bytes[0]);
	TEST_ASSERT_EQUAL_HEX8(0, b.bytes[0]);
	close_all();
}

static void several_rma_queues_of_one_lane(void)
{
	struct vb_rma *first, *second;

	open_all("max_depth=8", 8);
	first = rma;
	second = rma_open(&b, 0, 8);
	for (uint64_t i = 0; i < 4; i++) {
		TEST_ASSERT_EQUAL_INT(0, submit(GANTRY_RMA_WRITE, 0, i));
		rma = second;
		TEST_ASSERT_EQUAL_INT(0, submit(GANTRY_RMA_WRITE, 1, 10 + i));
		rma = first;
	}
	TEST_ASSERT_EQUAL_INT(-EAGAIN, submit(GANTRY_RMA_WRITE, 0, 4)); /* the queue pair is full */
	for (uint64_t i = 0; i < 4; i++)
		expect_end(i, 0);
	expect_none();
	rma = second;
	for (uint64_t i = 0; i < 4; i++)
		expect_end(10 + i, 0);
	expect_none();
	vb_rma_destroy(second);
	rma = first;
	close_all();
}

/* Destruction of an rma queue drops the completions of its operations in flight. */
static void rma_queue_is_destroyed_with_operations_in_flight(void)
{
	struct vb_rma *other;

	open_all("max_depth=8", 4);
	fill(b.bytes, BYTES, 9);
	other = rma_open(&b, 0, 4);
	fake_wire_hold(1);
	TEST_ASSERT_EQUAL_INT(0, submit(GANTRY_RMA_WRITE, 0, 1));
	vb_rma_flush(rma);
	TEST_ASSERT_EQUAL_INT(0, submit(GANTRY_RMA_WRITE, 1, 2)); /* not started */
	vb_rma_destroy(rma);
	rma = other;
	TEST_ASSERT_EQUAL_INT(0, submit(GANTRY_RMA_WRITE, 2, 3));
	vb_rma_flush(rma);
	fake_wire_hold(0);
	expect_end(3, 0);
	expect_none();
	TEST_ASSERT_TRUE(filled(s.bytes, 3 * 64, 9));
	close_all();
}

static void invalid_operations_are_rejected(void)
{
	struct gantry_region strange = {.addr = b.bytes, .length = 64, .fd = -1};
	struct gantry_rma op = {.op = GANTRY_RMA_READ, .length = 64};

	open_all(NULL, 2);
	op.local = b.bytes;
	op.local_region = &strange;
	op.remote = s.imported;
	TEST_ASSERT_EQUAL_INT(-EINVAL, vb_rma_submit(rma, &op));
	op.local_region = NULL;
	TEST_ASSERT_EQUAL_INT(-EINVAL, vb_rma_submit(rma, &op));
	op.local_region = &b.local;
	op.local = b.bytes + ENDS_LOCAL - 63;
	TEST_ASSERT_EQUAL_INT(-EINVAL, vb_rma_submit(rma, &op));
	op.local = b.bytes - 1;
	TEST_ASSERT_EQUAL_INT(-EINVAL, vb_rma_submit(rma, &op));
	op.local = b.bytes;
	op.remote_offset = BYTES - 63;
	TEST_ASSERT_EQUAL_INT(-ERANGE, vb_rma_submit(rma, &op));
	op.remote_offset = UINT64_MAX - 10;
	TEST_ASSERT_EQUAL_INT(-ERANGE, vb_rma_submit(rma, &op));
	op.remote_offset = 0;
	op.remote = &s.region; /* a region of this process, not an import */
	TEST_ASSERT_EQUAL_INT(-EACCES, vb_rma_submit(rma, &op));
	expect_none();
	close_all();
}

/* -- notes -- */

static int submit_noted(uint32_t slot, uint32_t length, uint64_t cookie, uint32_t number)
{
	const struct gantry_rma op = {.op = GANTRY_RMA_WRITE,
				      .length = length,
				      .local = b.bytes + slot * 64,
				      .local_region = &b.local,
				      .remote = s.imported,
				      .remote_offset = slot * 64,
				      .cookie = cookie};

	return vb_rma_write_imm(rma, &op, number);
}

static void expect_note(struct queue *there, uint32_t number)
{
	struct gantry_msg msg;
	uint32_t came;

	TEST_ASSERT_EQUAL_INT(1, vb_poll_recv(there->rx, &msg, 1));
	memcpy(&came, msg.imm, sizeof(came));
	TEST_ASSERT_EQUAL_UINT32(sizeof(number), msg.imm_len);
	TEST_ASSERT_EQUAL_HEX32(number, came);
	TEST_ASSERT_EQUAL_UINT32(0, msg.length);
	TEST_ASSERT_EQUAL_INT(0, msg.status);
}

/*
 * With each setting of data_qp, a write with a note uses the queue pair of messages: one request,
 * one doorbell, and no note before all data has arrived.
 */
static void note_comes_with_its_data(const char *settings)
{
	struct fake_counters before;
	struct gantry_msg msg;
	struct queue there;

	open_all(settings, 16);
	queue_open(&there, &a, 0, &b, 0, 4, 0);
	TEST_ASSERT_EQUAL_INT(0, vb_post_recv(there.rx, 4));
	queue_transfer_credit(&there);
	fill(b.bytes, BYTES, 3);
	fake_wire_hold(1);
	before = counters();
	TEST_ASSERT_EQUAL_INT(0, submit_noted(0, 64, 1, 0x01020304));
	/* the message does not share a work request with a write */
	TEST_ASSERT_EQUAL_INT(0, queue_send(&there, 5, GANTRY_SEND_MORE));
	TEST_ASSERT_EQUAL_INT(0, submit_noted(1, 0, 2, 0xfffffffe)); /* no data */
	TEST_ASSERT_EQUAL_UINT64(0, counters().doorbells - before.doorbells);
	vb_rma_flush(rma);
	TEST_ASSERT_EQUAL_UINT64(1, counters().doorbells - before.doorbells);
	TEST_ASSERT_EQUAL_UINT64(1, counters().signalled - before.signalled);
	TEST_ASSERT_EQUAL_UINT64(3, counters().send_wrs - before.send_wrs);
	TEST_ASSERT_EQUAL_INT(0, vb_poll_recv(there.rx, &msg, 1));
	TEST_ASSERT_EQUAL_INT(1, fake_wire_step(NULL));
	TEST_ASSERT_TRUE(filled(s.bytes, 64, 3));
	expect_note(&there, 0x01020304);
	fake_wire_hold(0);
	TEST_ASSERT_EQUAL_UINT64(5, queue_take(&there, NULL));
	expect_note(&there, 0xfffffffe);
	expect_end(1, 0);
	expect_end(2, 0);
	expect_none();
	pipes_check();
	queue_close(&there);
	close_all();
}

static void note_with_queue_pairs_apart(void)
{
	note_comes_with_its_data("max_depth=16");
}

static void note_with_a_shared_queue_pair(void)
{
	note_comes_with_its_data("max_depth=16 data_qp=shared");
}

/*
 * A note needs credit like a message: the receives of the peer limit the notes in flight. In a long
 * run, the peer posts the slot of each note again.
 */
static void notes_need_credit(void)
{
	struct queue there;

	open_all("max_depth=4", 4);
	queue_open(&there, &a, 0, &b, 0, 4, 0);
	TEST_ASSERT_EQUAL_INT(-EAGAIN, submit_noted(0, 64, 1, 1));
	TEST_ASSERT_EQUAL_INT(0, vb_post_recv(there.rx, 2));
	queue_transfer_credit(&there);
	TEST_ASSERT_EQUAL_INT(0, submit_noted(0, 64, 0, 100));
	TEST_ASSERT_EQUAL_INT(0, submit_noted(0, 64, 1, 101));
	TEST_ASSERT_EQUAL_INT(-EAGAIN, submit_noted(0, 64, 2, 102));
	TEST_ASSERT_EQUAL_INT(-EAGAIN, queue_send(&there, 1, 0));
	for (uint32_t i = 0; i < 40; i++) {
		if (i >= 2) {
			TEST_ASSERT_EQUAL_INT(0, vb_post_recv(there.rx, 1));
			queue_transfer_credit(&there);
			TEST_ASSERT_EQUAL_INT(0, submit_noted(0, 64, i, 100 + i));
			vb_rma_flush(rma);
		}
		expect_note(&there, 100 + i);
		expect_end(i, 0);
		pipes_check();
	}
	queue_close(&there);
	close_all();
	wire_check();
}

/* A note for a destroyed consumer is dropped, and its slot is posted again. */
static void note_for_a_destroyed_consumer(void)
{
	struct vb_pipe *far;
	struct queue there;

	open_all("max_depth=4", 4);
	queue_open(&there, &a, 0, &b, 0, 4, 0);
	TEST_ASSERT_EQUAL_INT(0, vb_post_recv(there.rx, 4));
	queue_transfer_credit(&there);
	far = queue_far_pipe(&there);
	vb_consumer_destroy(there.rx);
	there.rx = NULL;
	TEST_ASSERT_EQUAL_INT(0, submit_noted(0, 64, 1, 1));
	vb_rma_flush(rma);
	expect_end(1, 0);
	ends_settle();
	TEST_ASSERT_EQUAL_INT(0, a.conn->lost);
	TEST_ASSERT_EQUAL_UINT32(0, far->waiting);
	queue_close(&there);
	close_all();
}

static void invalid_notes_are_rejected(void)
{
	struct gantry_rma op = {.op = GANTRY_RMA_READ, .length = 64, .local_region = &b.local};
	struct vb_import_peer peer = {.session = 1};
	struct vb_import *im;

	open_all("max_depth=4", 4);
	im = s.imported->transport;
	op.local = b.bytes;
	op.remote = s.imported;
	TEST_ASSERT_EQUAL_INT(-EINVAL, vb_rma_write_imm(rma, &op, 1));
	op.op = GANTRY_RMA_WRITE;
	op.remote_offset = BYTES - 63;
	TEST_ASSERT_EQUAL_INT(-ERANGE, vb_rma_write_imm(rma, &op, 1));
	op.remote_offset = 0;
	op.local_region = NULL;
	TEST_ASSERT_EQUAL_INT(-EINVAL, vb_rma_write_imm(rma, &op, 1));
	op.local_region = &b.local;
	im->peer = &peer; /* as in an import of memory of a third party */
	TEST_ASSERT_EQUAL_INT(-EINVAL, vb_rma_write_imm(rma, &op, 1));
	im->peer = NULL;
	/* a write of this length would delay later messages on the same queue pair */
	im->pub.length = op.length = VB_SHORT_BYTES + 1;
	TEST_ASSERT_EQUAL_INT(-EMSGSIZE, vb_rma_write_imm(rma, &op, 1));
	im->pub.length = BYTES;
	vb_conn_fail(b.conn, -ENOTCONN);
	op.length = 64;
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, vb_rma_write_imm(rma, &op, 1));
	expect_none();
	close_all();
}

/* -- loss -- */

/*
 * When the connection is lost, each operation that is built, in flight or completed completes once.
 * Operations in flight complete only when no agent can touch their memory any more.
 */
static void operations_end_when_the_connection_is_lost(void)
{
	open_all("max_depth=16", 16);
	for (uint64_t i = 0; i < 2; i++) {
		TEST_ASSERT_EQUAL_INT(0, submit(GANTRY_RMA_READ, (uint32_t)i, i));
		vb_rma_flush(rma);
	}
	fake_wire_hold(1);
	for (uint64_t i = 2; i < 4; i++) {
		TEST_ASSERT_EQUAL_INT(0, submit(GANTRY_RMA_READ, (uint32_t)i, i));
		vb_rma_flush(rma);
	}
	TEST_ASSERT_EQUAL_INT(0, submit(GANTRY_RMA_READ, 4, 4));
	memset(s.bytes, 0x77, BYTES);
	vb_conn_fail(b.conn, -ENOTCONN);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, submit(GANTRY_RMA_READ, 5, 5));
	expect_end(0, 0);
	expect_end(1, 0);
	expect_none();
	fake_wire_step(NULL); /* operations in flight still run until the device has stopped them */
	TEST_ASSERT_EQUAL_HEX8(0x77, b.bytes[2 * 64]);
	expect_end(2, 0);
	expect_none();
	ends_until(b.n_closed == 1);
	expect_end(3, -ENOTCONN);
	expect_end(4, -ENOTCONN);
	expect_none();
	fake_wire_hold(0);
	TEST_ASSERT_EQUAL_HEX8(0, b.bytes[3 * 64]);
	close_all();
}

static void flush_after_the_pipe_has_failed(void)
{
	open_all("max_depth=16", 16);
	fake_wire_hold(1);
	TEST_ASSERT_EQUAL_INT(0, submit(GANTRY_RMA_WRITE, 0, 1));
	vb_rma_flush(rma);
	/* the control thread does this before it reports the end */
	vb_pipe_fail(vb_lane_pipe(rma->lane, VB_DATA, VB_NO_LANE));
	TEST_ASSERT_EQUAL_INT(0, submit(GANTRY_RMA_WRITE, 1, 2));
	vb_rma_flush(rma);
	expect_end(1, -ENOTCONN);
	expect_end(2, -ENOTCONN);
	expect_none();
	fake_wire_hold(0);
	ends_until(b.n_closed == 1);
	close_all();
}

static void network_that_is_cut(void)
{
	open_all("max_depth=16", 16);
	fake_wire_cut(1);
	for (uint64_t i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_INT(0, submit(GANTRY_RMA_WRITE, (uint32_t)i, i));
	vb_rma_flush(rma);
	expect_none();
	fake_wire_timeout(10);
	expect_none();
	ends_until(b.n_closed == 1);
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, b.reason);
	for (uint64_t i = 0; i < 3; i++)
		expect_end(i, -ENOTCONN);
	expect_none();
	vb_conn_fail(a.conn, -ETIMEDOUT);
	ends_until(a.n_closed == 1);
	close_all();
}

/*
 * After revoke_timeout the exporter invalidates the key of a region that the peer has not released.
 * A peer that still uses the key loses the connection, and accesses no memory.
 */
static void access_after_a_revoke(void)
{
	open_all("max_depth=16 revoke_timeout=1ms", 16);
	memset(s.bytes, 0x33, BYTES);
	TEST_ASSERT_EQUAL_INT(0, vb_revoke(a.conn, s.token.handle));
	ends_settle();
	a.host.now_ns += 2000000;
	ends_until(a.n_revoked == 1);
	TEST_ASSERT_EQUAL_INT(0, a.revoked_rc);
	TEST_ASSERT_EQUAL_INT(0, submit(GANTRY_RMA_WRITE, 0, 1));
	vb_rma_flush(rma);
	ends_until(b.n_closed == 1 && a.n_closed == 1);
	expect_end(1, -ENOTCONN);
	expect_none();
	TEST_ASSERT_EQUAL_HEX8(0x33, s.bytes[0]);
	close_all();
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(data_pipe_is_separate);
	RUN_TEST(much_data_is_posted_in_batches);
	RUN_TEST(data_pipe_can_be_shared_with_messages);
	RUN_TEST(passive_end_has_no_lane);
	RUN_TEST(message_behind_a_write);
	RUN_TEST(messages_behind_their_writes);
	RUN_TEST(submit_fails_until_there_is_a_pipe);
	RUN_TEST(length_of_zero);
	RUN_TEST(several_rma_queues_of_one_lane);
	RUN_TEST(rma_queue_is_destroyed_with_operations_in_flight);
	RUN_TEST(invalid_operations_are_rejected);
	RUN_TEST(operations_end_when_the_connection_is_lost);
	RUN_TEST(flush_after_the_pipe_has_failed);
	RUN_TEST(network_that_is_cut);
	RUN_TEST(access_after_a_revoke);
	RUN_TEST(note_with_queue_pairs_apart);
	RUN_TEST(note_with_a_shared_queue_pair);
	RUN_TEST(notes_need_credit);
	RUN_TEST(note_for_a_destroyed_consumer);
	RUN_TEST(invalid_notes_are_rejected);
	return UNITY_END();
}
