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
	TEST_ASSERT_EQUAL_INT(0, vb_post_recv(q->rx, NULL, depth));
	queue_tell(q);
}

/* Take what is there, and post the receives again. */
static uint32_t take_some(struct queue *q, uint64_t value)
{
	struct gantry_msg msgs[64];
	int n = vb_poll_recv(q->rx, msgs, 64);

	TEST_ASSERT_TRUE_MESSAGE(n > 0, "no message");
	for (int i = 0; i < n; i++)
		TEST_ASSERT_EQUAL_MEMORY(&value, msgs[i].imm, sizeof(value));
	TEST_ASSERT_EQUAL_INT(0, vb_post_recv(q->rx, NULL, (uint32_t)n));
	return (uint32_t)n;
}

static void send_all(struct queue *q, uint32_t n, uint64_t value)
{
	for (uint32_t i = 0; i < n; i++)
		TEST_ASSERT_EQUAL_INT(0, queue_send(q, value, 0));
}

/* So many requests at a time, and their responses: these bring all the credit that the next ones need. */
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

/* A consumer may sleep before there is a pipe at all. */
static void new_pipe_wakes_who_sleeps(void)
{
	const struct gantry_queue_attr attr = {.depth = 4};
	struct queue q = {.to = &b};
	struct pollfd p = {.events = POLLIN};
	void *rx = NULL;

	ends_open(NULL, NULL, NULL);
	TEST_ASSERT_EQUAL_INT(0, vb_consumer_create(b.conn, &attr, &q.id, &rx));
	TEST_ASSERT_EQUAL_INT(0, vb_post_recv(rx, NULL, 4));
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

/* Nor does one that polls have to do more than that. */
static void new_pipe_is_told(void)
{
	const struct gantry_queue_attr attr = {.depth = 4};
	struct queue q = {.to = &b};
	struct gantry_msg msg;
	void *rx = NULL;

	ends_open(NULL, NULL, NULL);
	TEST_ASSERT_EQUAL_INT(0, vb_consumer_create(b.conn, &attr, &q.id, &rx));
	TEST_ASSERT_EQUAL_INT(0, vb_post_recv(rx, NULL, 4));
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

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(responses_bring_credit);
	RUN_TEST(responses_bring_credit_at_depth);
	RUN_TEST(new_pipe_wakes_who_sleeps);
	RUN_TEST(new_pipe_is_told);
	return UNITY_END();
}
