/* SPDX-License-Identifier: BSD-3-Clause */
/* pipe.c - slots, credit, doorbells and signals of message pipes between two ends. */
#include <poll.h>

#include "unit/verbs/ends.h"

static struct fake_counters before;

static void count_from_here(void)
{
	fake_verbs_counters(&before);
}

static struct fake_counters counted(void)
{
	struct fake_counters now;

	fake_verbs_counters(&now);
	now.doorbells -= before.doorbells;
	now.send_wrs -= before.send_wrs;
	now.signalled -= before.signalled;
	now.inlined -= before.inlined;
	now.sends -= before.sends;
	now.writes -= before.writes;
	now.reads -= before.reads;
	return now;
}

void setUp(void)
{
	fake_verbs_reset();
	draw_seed(1);
}

void tearDown(void)
{
	TEST_ASSERT_EQUAL_STRING("", fake_verbs_check_clean());
}

static void post_all(struct queue *q, uint32_t depth)
{
	TEST_ASSERT_EQUAL_INT(0, vb_post_recv(q->rx, depth));
	queue_transfer_credit(q);
}

/* Take all messages that arrived, and post their receives again. Returns their number. */
static uint32_t take_some(struct queue *q, uint64_t value)
{
	struct gantry_msg msgs[64];
	int n = vb_poll_recv(q->rx, msgs, 64);

	TEST_ASSERT_TRUE_MESSAGE(n > 0, "no message");
	for (int i = 0; i < n; i++)
		TEST_ASSERT_EQUAL_MEMORY(&value, msgs[i].imm, sizeof(value));
	TEST_ASSERT_EQUAL_INT(0, vb_post_recv(q->rx, (uint32_t)n));
	return (uint32_t)n;
}

static void send_all(struct queue *q, uint32_t n, uint64_t value)
{
	for (uint32_t i = 0; i < n; i++)
		TEST_ASSERT_EQUAL_INT(0, queue_send(q, value, 0));
}

/*
 * Send `depth` requests at a time, and their responses. The responses carry all the credit that the
 * next requests need, so no credit is written.
 */
static void requests_and_responses(uint32_t depth, uint32_t rounds)
{
	struct queue there, back;
	struct fake_counters n;

	ends_open(NULL, NULL, NULL);
	queue_open(&there, &b, 0, &a, 0, depth, 0);
	queue_open(&back, &a, 0, &b, 0, depth, 0);
	post_all(&there, depth);
	post_all(&back, depth);
	count_from_here();
	for (uint64_t i = 0; i < rounds; i++) {
		send_all(&there, depth, i);
		for (uint32_t k = 0; k < depth;) {
			uint32_t some = take_some(&there, i);

			send_all(&back, some, i);
			k += some;
		}
		for (uint32_t k = 0; k < depth;)
			k += take_some(&back, i);
		pipes_check();
	}
	n = counted();
	TEST_ASSERT_EQUAL_UINT64(2ull * depth * rounds, n.doorbells);
	TEST_ASSERT_EQUAL_UINT64(2ull * depth * rounds, n.sends);
	TEST_ASSERT_EQUAL_UINT64(0, n.writes);
	queue_close(&there);
	queue_close(&back);
	ends_close();
}

static void responses_bring_credit(void)
{
	requests_and_responses(1, 1000);
}

static void responses_bring_credit_at_depth(void)
{
	requests_and_responses(32, 100);
}

/* A new pipe wakes a consumer that was armed before the pipe existed. */
static void new_pipe_wakes_a_sleeping_consumer(void)
{
	const struct gantry_queue_attr attr = {.depth = 4};
	struct queue q = {.to = &b};
	struct pollfd p = {.events = POLLIN};
	void *rx = NULL;

	ends_open(NULL, NULL, NULL);
	TEST_ASSERT_EQUAL_INT(0, vb_consumer_create(b.conn, &attr, &q.id, &rx));
	TEST_ASSERT_EQUAL_INT(0, vb_post_recv(rx, 4));
	TEST_ASSERT_EQUAL_INT(0, vb_consumer_arm(rx));
	p.fd = vb_consumer_fd(rx);
	ends_until(a.n_up == 1);
	TEST_ASSERT_EQUAL_INT(0, poll(&p, 1, 0));
	queue_join(&q, &q, &a, 0, 4);
	TEST_ASSERT_EQUAL_INT(-EAGAIN, queue_send(&q, 1, 0));
	TEST_ASSERT_EQUAL_INT(1, poll(&p, 1, 0));
	vb_consumer_disarm(rx);
	while (vb_consumer_arm(rx))
		vb_consumer_disarm(rx);
	TEST_ASSERT_EQUAL_INT(0, queue_send(&q, 7, 0));
	TEST_ASSERT_EQUAL_INT(1, poll(&p, 1, 0));
	q.rx = rx;
	TEST_ASSERT_EQUAL_UINT64(7, queue_take(&q, NULL));
	queue_close(&q);
	ends_close();
}

/* A consumer that polls sends credit to a new pipe, also if it is never armed. */
static void new_pipe_gets_credit(void)
{
	const struct gantry_queue_attr attr = {.depth = 4};
	struct queue q = {.to = &b};
	struct gantry_msg msg;
	void *rx = NULL;

	ends_open(NULL, NULL, NULL);
	TEST_ASSERT_EQUAL_INT(0, vb_consumer_create(b.conn, &attr, &q.id, &rx));
	TEST_ASSERT_EQUAL_INT(0, vb_post_recv(rx, 4));
	for (int i = 0; i < 5; i++)
		TEST_ASSERT_EQUAL_INT(0, vb_poll_recv(rx, &msg, 1));
	ends_until(a.n_up == 1);
	queue_join(&q, &q, &a, 0, 4);
	TEST_ASSERT_EQUAL_INT(0, vb_poll_recv(rx, &msg, 1));
	for (int i = 0; i < 4; i++)
		TEST_ASSERT_EQUAL_INT(0, queue_send(&q, 7, 0));
	TEST_ASSERT_EQUAL_INT(-EAGAIN, queue_send(&q, 7, 0));
	q.rx = rx;
	queue_close(&q);
	ends_close();
}

/* Advance the counters by n messages in each direction, without any write of credit. */
static void skip(struct vb_pipe *pipe, uint32_t n)
{
	pipe->sent += n;
	pipe->allowed += n;
	pipe->received += n;
	pipe->credit_sent += n;
}

/*
 * If a credit word is 2^31 messages old, it looks newer than the credit in messages. So an end
 * writes its credit word before that, also if messages carry all credit.
 */
static void credit_word_is_written_before_it_is_too_old(void)
{
	struct queue there, back;

	ends_open(NULL, NULL, NULL);
	queue_open(&there, &b, 0, &a, 0, 2, 0);
	queue_open(&back, &a, 0, &b, 0, 2, 0);
	post_all(&there, 2);
	post_all(&back, 2);
	count_from_here();
	for (uint64_t i = 0; i < 40; i++) {
		for (int k = 0; k < 10; k++) {
			send_all(&there, 1, i);
			take_some(&there, i);
			send_all(&back, 1, i);
			take_some(&back, i);
			pipes_check();
		}
		TEST_ASSERT_EQUAL_INT(0, a.conn->lost | b.conn->lost);
		skip(queue_pipe(&there), 1u << 28);
		skip(queue_far_pipe(&there), 1u << 28);
	}
	TEST_ASSERT_EQUAL_UINT64(2 * 9, counted().writes);
	queue_close(&there);
	queue_close(&back);
	ends_close();
}

/*
 * messages without data that share one slot: each has 64 bytes, and a slot has 64 bytes and the 128
 * bytes of the option `inline`
 */
#define SEATS 3u

static void one_doorbell_for_a_flush(void)
{
	struct queue q[2];

	ends_open("max_depth=64", NULL, NULL);
	queue_open(&q[0], &b, 0, &a, 0, 64, 0);
	queue_join(&q[1], &q[0], &a, 0, 64);
	post_all(&q[0], 64);
	count_from_here();
	for (int i = 0; i < 30; i++)
		TEST_ASSERT_EQUAL_INT(0, queue_send(&q[i % 2], 5, GANTRY_SEND_MORE));
	TEST_ASSERT_EQUAL_UINT64(0, counted().doorbells);
	vb_flush(q[0].tx);
	TEST_ASSERT_EQUAL_UINT64(1, counted().doorbells);
	TEST_ASSERT_EQUAL_UINT64(30 / SEATS, counted().sends);
	TEST_ASSERT_TRUE(counted().signalled <= 1);
	vb_flush(q[0].tx);
	vb_flush(q[1].tx);
	TEST_ASSERT_EQUAL_UINT64(1, counted().doorbells);
	TEST_ASSERT_EQUAL_INT(0, queue_send(&q[0], 5, GANTRY_SEND_MORE));
	TEST_ASSERT_EQUAL_INT(0, queue_send(&q[1], 5, 0)); /* rings the doorbell for both queues */
	TEST_ASSERT_EQUAL_UINT64(2, counted().doorbells);
	TEST_ASSERT_EQUAL_UINT64(30 / SEATS + 1, counted().sends);
	queue_close(&q[1]);
	queue_close(&q[0]);
	ends_close();
}

static int send_imm(struct queue *q, uint64_t value, uint32_t imm_len, const void *data,
		    uint32_t length)
{
	uint8_t imm[GANTRY_IMM_MAX];
	const struct gantry_send send = {
		.imm = imm, .imm_len = imm_len, .data = data, .length = length};

	fill(imm, sizeof(imm), value);
	memcpy(imm, &value, sizeof(value));
	return vb_send_data(q->tx, &send, GANTRY_SEND_MORE);
}

static void expect_imm(struct queue *q, uint64_t value, uint32_t imm_len, uint32_t length)
{
	uint8_t imm[GANTRY_IMM_MAX];
	struct gantry_msg msg;

	TEST_ASSERT_EQUAL_UINT64(value, queue_take(q, &msg));
	fill(imm, sizeof(imm), value);
	memcpy(imm, &value, sizeof(value));
	TEST_ASSERT_EQUAL_UINT32(imm_len, msg.imm_len);
	TEST_ASSERT_EQUAL_MEMORY(imm, msg.imm, imm_len);
	TEST_ASSERT_EQUAL_UINT32(length, msg.length);
}

/*
 * Messages that wait for a doorbell share slots, as many as fit. A message with data has its own
 * slot.
 */
static void messages_share_a_slot(uint32_t max_inline)
{
	const uint32_t lens[] = {8, 56, 20, 33, 8, 56, 8, 9};
	struct gantry_recv recv = {.length = 128};
	uint8_t data[128], into[128];
	struct vb_pipe *far;
	struct queue q;

	fake_device(0)->max_inline = max_inline;
	ends_open("max_depth=16", NULL, NULL);
	queue_open(&q, &b, 0, &a, 0, 16, 128);
	recv.buf = into;
	for (int i = 0; i < 9; i++)
		TEST_ASSERT_EQUAL_INT(0, vb_post_recv_data(q.rx, &recv, 1));
	queue_transfer_credit(&q);
	fill(data, sizeof(data), 3);
	far = queue_far_pipe(&q);
	count_from_here();
	for (uint64_t i = 0; i < 4; i++)
		TEST_ASSERT_EQUAL_INT(0, send_imm(&q, i, lens[i], NULL, 0));
	TEST_ASSERT_EQUAL_INT(0, send_imm(&q, 100, 8, data, 128));
	for (uint64_t i = 4; i < 8; i++)
		TEST_ASSERT_EQUAL_INT(0, send_imm(&q, i, lens[i], NULL, 0));
	TEST_ASSERT_EQUAL_INT(-EAGAIN, send_imm(&q, 9, 8, NULL, 0)); /* full: rings the doorbell */
	TEST_ASSERT_EQUAL_UINT64(1, counted().doorbells);
	TEST_ASSERT_EQUAL_UINT64(5, counted().sends);
	TEST_ASSERT_EQUAL_UINT64(max_inline >= 192 ? 5 : 0, counted().inlined);
	for (uint64_t i = 0; i < 4; i++) {
		expect_imm(&q, i, lens[i], 0);
		/* the poll after the last message of a slot releases the slot */
		TEST_ASSERT_EQUAL_UINT32(i < 3 ? 9 : 6, far->waiting);
		pipes_check();
	}
	expect_imm(&q, 100, 8, 128);
	TEST_ASSERT_TRUE(filled(into, 128, 3));
	for (uint64_t i = 4; i < 8; i++)
		expect_imm(&q, i, lens[i], 0);
	TEST_ASSERT_EQUAL_INT(0, vb_poll_recv(q.rx, NULL, 0));
	TEST_ASSERT_EQUAL_UINT32(0, far->waiting);
	pipes_check();
	queue_close(&q);
	ends_close();
}

static void messages_share_a_slot_inline(void)
{
	messages_share_a_slot(256);
}

static void messages_share_a_slot_from_memory(void)
{
	messages_share_a_slot(0);
}

/* A producer that goes to sleep, or finds the queue full, has rung the doorbell. */
static void messages_held_back_are_sent_before_a_sleep_or_a_full_queue(void)
{
	struct queue there, back;

	ends_open(NULL, NULL, NULL);
	queue_open(&there, &b, 0, &a, 0, 4, 0);
	queue_open(&back, &a, 0, &b, 0, 4, 0);
	post_all(&there, 4);
	TEST_ASSERT_EQUAL_INT(0, queue_send(&there, 1, GANTRY_SEND_MORE));
	TEST_ASSERT_EQUAL_UINT(0, fake_wire_waiting(NULL));
	vb_consumer_arm(back.rx);
	TEST_ASSERT_EQUAL_UINT64(1, queue_take(&there, NULL));
	for (int i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_INT(0, queue_send(&there, 2, GANTRY_SEND_MORE));
	TEST_ASSERT_EQUAL_INT(-EAGAIN, queue_send(&there, 2, GANTRY_SEND_MORE));
	for (int i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_UINT64(2, queue_take(&there, NULL));
	queue_close(&there);
	queue_close(&back);
	ends_close();
}

/* A stream of messages needs few signals, and few writes of credit. */
static void stream(uint32_t max_inline, uint32_t depth)
{
	const uint32_t total = 20 * 256;
	struct fake_counters n;
	struct queue q;
	uint32_t sent = 0, taken = 0;

	fake_device(0)->max_inline = max_inline;
	ends_open("max_depth=256", NULL, NULL);
	queue_open(&q, &b, 0, &a, 0, depth, 0);
	post_all(&q, depth);
	count_from_here();
	while (taken < total) {
		struct gantry_msg msgs[8];
		int got;

		for (int i = 0; i < 8 && sent < total && queue_send(&q, sent, 0) == 0; i++)
			sent++;
		got = vb_poll_recv(q.rx, msgs, 8);
		for (int i = 0; i < got; i++, taken++)
			TEST_ASSERT_EQUAL_MEMORY(&taken, msgs[i].imm, sizeof(taken));
		TEST_ASSERT_EQUAL_INT(0, vb_post_recv(q.rx, (uint32_t)got));
		pipes_check();
	}
	n = counted();
	TEST_ASSERT_EQUAL_UINT64(total, n.sends);
	TEST_ASSERT_LESS_OR_EQUAL_UINT64(n.send_wrs / (queue_pipe(&q)->qp.depth / 4) + 2,
					 n.signalled);
	TEST_ASSERT_LESS_OR_EQUAL_UINT64(total / (depth / 2) + 1, n.writes);
	TEST_ASSERT_EQUAL_UINT64(max_inline ? total : 0, n.inlined - n.writes);
	queue_close(&q);
	ends_close();
}

static void stream_inline(void)
{
	stream(512, 256);
	stream(512, 8);
}

static void stream_from_slots(void)
{
	stream(0, 256);
}

/* A lane whose send queue can be filled with remote writes, which the wire holds. */
struct crowd {
	struct queue there, back;
	struct vb_rma *rma[3];
	struct shared memory;
	struct vb_pipe *pipe;
	uint32_t n;
};

static void crowd_open(struct crowd *c)
{
	*c = (struct crowd){.n = 0};
	ends_open("max_depth=32 data_qp=shared", NULL, NULL);
	queue_open(&c->there, &b, 0, &a, 0, 4, 0);
	queue_open(&c->back, &a, 0, &b, 0, 4, 0);
	share_begin(&c->memory, &b, &a, 64, GANTRY_REMOTE_WRITE);
	c->pipe = queue_pipe(&c->there);
	for (int i = 0; i < 3; i++)
		c->rma[i] = rma_open(&a, 0, 32);
	post_all(&c->there, 4);
}

static void crowd_fill(struct crowd *c)
{
	fake_wire_hold(1);
	for (int i = 0; i < 3; i++)
		while (rma_do(c->rma[i], &a, GANTRY_RMA_WRITE, 0, &c->memory, 0, 64, 0) == 0)
			c->n++;
	TEST_ASSERT_EQUAL_UINT32(0, vb_qp_room(&c->pipe->qp));
	vb_rma_flush(c->rma[0]);
}

static void crowd_end(struct crowd *c)
{
	struct gantry_rma_done done[64];

	for (int i = 0; i < 3; i++) {
		int some;

		while ((some = vb_rma_poll(c->rma[i], done, 64)) > 0)
			c->n -= (uint32_t)some;
	}
	TEST_ASSERT_EQUAL_UINT32(0, c->n);
}

static void crowd_close(struct crowd *c)
{
	pipes_check();
	for (int i = 0; i < 3; i++)
		vb_rma_destroy(c->rma[i]);
	queue_close(&c->there);
	queue_close(&c->back);
	share_end(&c->memory);
	ends_close();
}

static void full_send_queue_recovers(void)
{
	struct crowd c;

	crowd_open(&c);
	for (uint64_t round = 0; round < 5; round++) {
		crowd_fill(&c);
		TEST_ASSERT_TRUE(vb_pipe_credit(c.pipe) > 0);
		TEST_ASSERT_EQUAL_INT(-EAGAIN, queue_send(&c.there, round, 0));
		fake_wire_hold(0);
		send_all(&c.there, 1, round);
		TEST_ASSERT_EQUAL_UINT32(1, take_some(&c.there, round));
		queue_transfer_credit(&c.there);
		crowd_end(&c);
	}
	crowd_close(&c);
}

/* If the send queue is full, credit is sent as soon as the send queue has space. */
static void credit_waits_for_room(void)
{
	struct gantry_msg msg;
	struct crowd c;

	crowd_open(&c);
	crowd_fill(&c);
	TEST_ASSERT_EQUAL_INT(0, vb_post_recv(c.back.rx, 4));
	for (int i = 0; i < 5; i++)
		TEST_ASSERT_EQUAL_INT(0, vb_poll_recv(c.back.rx, &msg, 1));
	TEST_ASSERT_EQUAL_INT(-EAGAIN, queue_send(&c.back, 1, 0));
	fake_wire_hold(0);
	for (int i = 0; i < 5; i++)
		TEST_ASSERT_EQUAL_INT(0, vb_poll_recv(c.back.rx, &msg, 1));
	send_all(&c.back, 4, 3);
	crowd_end(&c);
	crowd_close(&c);
}

/* -- the end of a pipe -- */

static void expect_closed(int of_a, int of_b)
{
	ends_until(a.n_closed == 1 && b.n_closed == 1);
	TEST_ASSERT_EQUAL_INT(of_a, a.reason);
	TEST_ASSERT_EQUAL_INT(of_b, b.reason);
}

/* Messages that arrived before the end of the connection can be taken after it. */
static void loss_in_the_middle(void)
{
	struct queue there, back;
	struct gantry_msg msg;

	ends_open(NULL, NULL, NULL);
	queue_open(&there, &b, 0, &a, 0, 8, 0);
	queue_open(&back, &a, 0, &b, 0, 8, 0);
	post_all(&there, 8);
	send_all(&there, 3, 5);
	fake_wire_cut(1);
	send_all(&there, 2, 6); /* these messages never arrive */
	fake_wire_timeout(10);
	vb_lane_poll(there.tx->lane);
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, a.conn->lost);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, queue_send(&there, 7, 0));
	vb_conn_fail(b.conn, -ENOTCONN);
	expect_closed(-ETIMEDOUT, -ENOTCONN);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, queue_send(&back, 7, 0));
	for (int i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_UINT64(5, queue_take(&there, NULL));
	TEST_ASSERT_EQUAL_INT(0, vb_poll_recv(there.rx, &msg, 1));
	TEST_ASSERT_EQUAL_INT(0, vb_post_recv(there.rx, 1));
	vb_consumer_arm(there.rx);
	vb_consumer_disarm(there.rx);
	queue_close(&there);
	queue_close(&back);
	ends_close();
}

/* Let a call of the library fail, and expect this reason of the end. */
static void fails(const char *function, int reason)
{
	struct queue q;

	fake_verbs_reset();
	ends_open(NULL, NULL, NULL);
	queue_open(&q, &b, 0, &a, 0, 8, 0);
	post_all(&q, 8);
	fake_verbs_fail(function, 1, EIO);
	queue_send(&q, 1, 0);
	vb_lane_poll(q.tx->lane);
	TEST_ASSERT_EQUAL_INT_MESSAGE(reason, a.conn->lost, function);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, queue_send(&q, 7, 0));
	expect_closed(reason, -ENOTCONN);
	queue_close(&q);
	ends_close();
	TEST_ASSERT_EQUAL_STRING("", fake_verbs_check_clean());
}

static void calls_that_fail_end_the_connection(void)
{
	fails("ibv_post_send", -EIO);
	fails("ibv_poll_cq", -EIO);
}

static void receive_that_cannot_be_posted(void)
{
	struct queue q;

	ends_open(NULL, NULL, NULL);
	queue_open(&q, &b, 0, &a, 0, 8, 0);
	post_all(&q, 8);
	send_all(&q, 1, 9);
	fake_verbs_fail("ibv_post_recv", 1, EIO);
	/* the message arrived before the failure */
	TEST_ASSERT_EQUAL_UINT64(9, queue_take(&q, NULL));
	TEST_ASSERT_EQUAL_INT(0, vb_poll_recv(q.rx, NULL, 0));
	TEST_ASSERT_EQUAL_INT(-EIO, b.conn->lost);
	expect_closed(-ENOTCONN, -EIO);
	queue_close(&q);
	ends_close();
}

/* A consumer that cannot be armed reports work until the connection has ended. */
static void arming_that_fails(void)
{
	struct queue q;

	ends_open(NULL, NULL, NULL);
	queue_open(&q, &b, 0, &a, 0, 8, 0);
	fake_verbs_fail("ibv_req_notify_cq", 1, EIO);
	TEST_ASSERT_TRUE(vb_consumer_arm(q.rx) != 0);
	vb_consumer_disarm(q.rx);
	queue_close(&q);
	ends_close();
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(responses_bring_credit);
	RUN_TEST(responses_bring_credit_at_depth);
	RUN_TEST(new_pipe_wakes_a_sleeping_consumer);
	RUN_TEST(new_pipe_gets_credit);
	RUN_TEST(credit_word_is_written_before_it_is_too_old);
	RUN_TEST(one_doorbell_for_a_flush);
	RUN_TEST(messages_share_a_slot_inline);
	RUN_TEST(messages_share_a_slot_from_memory);
	RUN_TEST(messages_held_back_are_sent_before_a_sleep_or_a_full_queue);
	RUN_TEST(stream_inline);
	RUN_TEST(stream_from_slots);
	RUN_TEST(full_send_queue_recovers);
	RUN_TEST(credit_waits_for_room);
	RUN_TEST(loss_in_the_middle);
	RUN_TEST(calls_that_fail_end_the_connection);
	RUN_TEST(receive_that_cannot_be_posted);
	RUN_TEST(arming_that_fails);
	return UNITY_END();
}
