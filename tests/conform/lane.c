/* SPDX-License-Identifier: BSD-3-Clause */
/* lane.c - conformance: queues used by two threads; who finds nothing goes to rest, and is woken. */
#include <poll.h>
#include <pthread.h>
#include <sched.h>

#include "conform/rig.h"

#define ROUNDS 3000u
#define STREAM 100000u

static void arm_says_when_there_is_work(void)
{
	struct gantry_msg msg;
	struct rig_queue q;
	struct pollfd p;

	rig_connect();
	rig_queue_open(&q, &rig.b, &rig.a, 8, 0);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->post_recv(q.rx, NULL, 8));
	p = (struct pollfd){.fd = rig.ops->consumer_fd(q.rx), .events = POLLIN};
	TEST_ASSERT_TRUE(p.fd >= 0);
	rig.ops->consumer_arm(q.rx);
	rig.ops->consumer_disarm(q.rx);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->consumer_arm(q.rx));
	TEST_ASSERT_EQUAL_INT(0, poll(&p, 1, 0));
	TEST_ASSERT_EQUAL_INT(0, rig_send_imm(&q, 1));
	TEST_ASSERT_EQUAL_INT(1, poll(&p, 1, 10000)); /* rung */
	rig.ops->consumer_disarm(q.rx);
	TEST_ASSERT_EQUAL_INT(0, poll(&p, 1, 0)); /* and cleared */
	TEST_ASSERT_TRUE(rig.ops->consumer_arm(q.rx) != 0);
	rig.ops->consumer_disarm(q.rx);
	rig_take(&q, &msg);
	TEST_ASSERT_EQUAL_INT(0, rig_send_imm(&q, 1)); /* awake: nobody rings */
	TEST_ASSERT_EQUAL_INT(0, poll(&p, 1, 0));
	rig_queue_close(&q);
}

static void flush_rings_for_what_was_held_back(void)
{
	struct gantry_send send = {.imm = "x", .imm_len = 1};
	struct rig_queue q;
	struct pollfd p;

	rig_connect();
	rig_queue_open(&q, &rig.b, &rig.a, 8, 0);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->post_recv(q.rx, NULL, 8));
	p = (struct pollfd){.fd = rig.ops->consumer_fd(q.rx), .events = POLLIN};
	rig.ops->consumer_arm(q.rx);
	rig.ops->consumer_disarm(q.rx);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->consumer_arm(q.rx));
	TEST_ASSERT_EQUAL_INT(0, rig.ops->send(q.tx, &send, GANTRY_SEND_MORE));
	rig.ops->flush(q.tx);
	TEST_ASSERT_EQUAL_INT(1, poll(&p, 1, 10000));
	rig.ops->consumer_disarm(q.rx);
	rig_queue_close(&q);
}

/* Who fills the queue with "more follows" and then finds it full has rung as well. */
static void full_queue_rings(void)
{
	struct gantry_send send = {.imm = "x", .imm_len = 1};
	struct rig_queue q;
	struct pollfd p;

	rig_connect();
	rig_queue_open(&q, &rig.b, &rig.a, 8, 0);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->post_recv(q.rx, NULL, 8));
	p = (struct pollfd){.fd = rig.ops->consumer_fd(q.rx), .events = POLLIN};
	rig.ops->consumer_arm(q.rx);
	rig.ops->consumer_disarm(q.rx);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->consumer_arm(q.rx));
	for (int i = 0; i < 8; i++)
		TEST_ASSERT_EQUAL_INT(0, rig.ops->send(q.tx, &send, GANTRY_SEND_MORE));
	TEST_ASSERT_EQUAL_INT(-EAGAIN, rig.ops->send(q.tx, &send, GANTRY_SEND_MORE));
	TEST_ASSERT_EQUAL_INT(1, poll(&p, 1, 10000));
	rig.ops->consumer_disarm(q.rx);
	rig_queue_close(&q);
}

struct lane {
	struct rig_queue *in, *out;
	uint32_t rounds;
	int sleeps, failed, first;
};

/* Sleep until there is a message, as a lane does. */
static int wait_message(struct lane *l, struct gantry_msg *msg)
{
	int n;

	while ((n = rig.ops->poll_recv(l->in->rx, msg, 1)) == 0) {
		struct pollfd p = {.fd = rig.ops->consumer_fd(l->in->rx), .events = POLLIN};

		if (rig.ops->consumer_arm(l->in->rx) == 0) {
			l->sleeps++;
			if (poll(&p, 1, 10000) != 1)
				return -ETIMEDOUT;
		}
		rig.ops->consumer_disarm(l->in->rx);
	}
	return n;
}

static void *ping(void *arg)
{
	struct lane *l = arg;

	for (uint32_t i = 0; i < l->rounds && !l->failed; i++) {
		struct gantry_send send = {.imm = &i, .imm_len = 4};
		struct gantry_msg msg;
		int rc;

		if (l->first || i)
			while ((rc = rig.ops->send(l->out->tx, &send, 0)) == -EAGAIN)
				sched_yield();
		else
			rc = 0;
		if (rc || (l->first && i + 1 == l->rounds))
			break;
		l->failed = wait_message(l, &msg) != 1 || msg.imm_len != 4;
		rig.ops->post_recv(l->in->rx, NULL, 1);
	}
	return NULL;
}

/* No wake-up is lost: both ends wait whenever they find nothing. */
static void ping_pong_of_sleepers(void)
{
	struct rig_queue there, back;
	struct lane a, b;
	pthread_t t;

	rig_connect();
	rig_queue_open(&there, &rig.b, &rig.a, 4, 0);
	rig_queue_open(&back, &rig.a, &rig.b, 4, 0);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->post_recv(there.rx, NULL, 4));
	TEST_ASSERT_EQUAL_INT(0, rig.ops->post_recv(back.rx, NULL, 4));
	a = (struct lane){.in = &back, .out = &there, .rounds = ROUNDS, .first = 1};
	b = (struct lane){.in = &there, .out = &back, .rounds = ROUNDS};
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&t, NULL, ping, &b));
	ping(&a);
	pthread_join(t, NULL);
	TEST_ASSERT_EQUAL_INT(0, a.failed);
	TEST_ASSERT_EQUAL_INT(0, b.failed);
	TEST_ASSERT_TRUE(a.sleeps + b.sleeps > 0);
	rig_queue_close(&there);
	rig_queue_close(&back);
}

static void *stream(void *arg)
{
	struct rig_queue *q = arg;

	for (uint64_t i = 0; i < STREAM;) {
		uint64_t imm[7] = {i, ~i, i * 3, i * 5, i * 7, i * 11, i * 13};
		struct gantry_send send = {.imm = imm, .imm_len = sizeof(imm)};

		if (rig.ops->send(q->tx, &send, i % 16 ? GANTRY_SEND_MORE : 0) == 0)
			i++;
		else
			sched_yield();
	}
	rig.ops->flush(q->tx);
	return NULL;
}

/* One thread sends as fast as it can, one takes. */
static void stream_between_threads(void)
{
	struct gantry_msg msgs[32];
	struct rig_queue q;
	uint64_t taken = 0, bad = 0;
	pthread_t t;

	rig_connect();
	rig_queue_open(&q, &rig.b, &rig.a, 256, 0);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->post_recv(q.rx, NULL, 256));
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&t, NULL, stream, &q));
	while (taken < STREAM) {
		int n = rig.ops->poll_recv(q.rx, msgs, 32);

		for (int i = 0; i < n; i++, taken++) {
			uint64_t imm[7];

			memcpy(imm, msgs[i].imm, sizeof(imm));
			bad += imm[0] != taken || imm[1] != ~taken || imm[3] != taken * 5 || imm[6] != taken * 13;
		}
		if (n > 0)
			rig.ops->post_recv(q.rx, NULL, (uint32_t)n);
		else
			sched_yield();
	}
	pthread_join(t, NULL);
	TEST_ASSERT_EQUAL_UINT64(0, bad);
	rig_queue_close(&q);
}

static void *stream_region(void *arg)
{
	struct rig_queue *q = ((void **)arg)[0];
	struct rig_memory *m = ((void **)arg)[1];
	uint64_t cookies[4], done = 0;
	uint32_t free_slots = 0xf;

	for (uint32_t i = 0; i < 2000 || done < 2000;) {
		int slot = __builtin_ffs((int)free_slots) - 1, n;
		struct gantry_send send = {.length = 4096, .region = &m->region, .cookie = (uint64_t)slot,
					   .region_offset = (uint64_t)slot * 4096, .imm = &i, .imm_len = 4};

		if (slot >= 0 && i < 2000) {
			rig_fill(m->bytes + send.region_offset, 4096, i);
			if (rig.ops->send(q->tx, &send, 0) == 0) {
				free_slots &= ~(1u << slot);
				i++;
			}
		}
		n = rig.ops->poll_send(q->tx, cookies, 4);
		for (int k = 0; k < n; k++, done++)
			free_slots |= 1u << cookies[k]; /* may be filled again */
		sched_yield();
	}
	return NULL;
}

/* The sender writes a buffer again as soon as its completion came; the receiver never sees that. */
static void region_buffers_are_reused_after_completion(void)
{
	static uint8_t buf[4096];
	struct gantry_token token;
	struct gantry_msg msg;
	struct rig_memory m;
	struct rig_queue q;
	void *arg[2] = {&q, &m};
	uint32_t taken = 0, bad = 0;
	pthread_t t;

	rig_connect();
	rig_memory_open(&m, 16384, GANTRY_REMOTE_READ);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->export_region(rig.a.conn, &m.region, GANTRY_REMOTE_READ, 1, &token));
	rig_queue_open(&q, &rig.b, &rig.a, 4, 4096);
	rig_settle();
	TEST_ASSERT_EQUAL_INT(0, rig_post(&q, buf, 4096, 0));
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&t, NULL, stream_region, arg));
	while (taken < 2000) {
		if (rig.ops->poll_recv(q.rx, &msg, 1) != 1) {
			sched_yield();
			continue;
		}
		bad += msg.status != 0 || memcmp(msg.imm, &taken, 4) != 0 || !rig_filled(buf, 4096, taken);
		taken++;
		rig_post(&q, buf, 4096, 0);
	}
	/* the completions of the last ones */
	rig.ops->poll_recv(q.rx, &msg, 1);
	pthread_join(t, NULL);
	TEST_ASSERT_EQUAL_UINT(0, bad);
	rig_queue_close(&q);
	rig_close();
	rig_memory_close(&m);
}

void lane_cases(void)
{
	RIG_CASE(arm_says_when_there_is_work);
	RIG_CASE(flush_rings_for_what_was_held_back);
	RIG_CASE(full_queue_rings);
	RIG_CASE(ping_pong_of_sleepers);
	RIG_CASE(stream_between_threads);
	RIG_CASE(region_buffers_are_reused_after_completion);
}
