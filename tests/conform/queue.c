/* SPDX-License-Identifier: BSD-3-Clause */
/* queue.c - conformance: consumers, producers, credit, order, the end of a queue. */
#include <sys/resource.h>
#include <unistd.h>

#include "conform/rig.h"

static void consumer_is_announced_and_withdrawn(void)
{
	struct gantry_queue_attr attr = {.depth = 8};
	void *consumer, *producer;
	uint32_t id;

	rig_connect();
	RIG_OK(rig.ops->consumer_create(rig.b.conn, &attr, &id, &consumer));
	rig_until(rig.a.n_up, 1);
	RIG_NUM(id, rig.a.up[0], "id of the announced consumer");
	rig.ops->consumer_destroy(consumer);
	rig_until(rig.a.n_down, 1);
	RIG_NUM(id, rig.a.down, "id of the destroyed consumer");
	RIG_RC(-ENOENT, rig.ops->producer_create(rig.a.conn, id, &attr, &producer),
	       "producer_create for a destroyed consumer");
}

static void attributes_are_checked(void)
{
	struct gantry_queue_attr none = {.depth = 0}, huge = {.depth = rig.info.max_depth + 1},
				 fine = {.depth = 1};
	void *p, *consumer;
	uint32_t id;

	rig_connect();
	RIG_RC(-EINVAL, rig.ops->consumer_create(rig.b.conn, &none, &id, &p),
	       "consumer_create with the depth 0");
	RIG_RC(-EINVAL, rig.ops->consumer_create(rig.b.conn, &huge, &id, &p),
	       "consumer_create with a depth of info.max_depth + 1");
	RIG_OK(rig.ops->consumer_create(rig.b.conn, &fine, &id, &consumer));
	rig_until(rig.a.n_up, 1);
	RIG_RC(-ENOENT, rig.ops->producer_create(rig.a.conn, id + 77, &fine, &p),
	       "producer_create for a consumer that never was");
	RIG_RC(-EINVAL, rig.ops->producer_create(rig.a.conn, id, &none, &p),
	       "producer_create with the depth 0");
	RIG_RC(-EINVAL, rig.ops->producer_create(rig.a.conn, id, &huge, &p),
	       "producer_create with a depth of info.max_depth + 1");
	if (rig_has(RIG_RMA)) {
		RIG_RC(-EINVAL, rig.ops->rma_create(rig.a.conn, &none, &p),
		       "rma_create with the depth 0");
		RIG_RC(-EINVAL, rig.ops->rma_create(rig.a.conn, &huge, &p),
		       "rma_create with a depth of info.max_depth + 1");
	}
	rig.ops->consumer_destroy(consumer);
}

/* Send a message, and set the local peer of the consumer before the message is taken. */
static void *peer_behind_a_message(void *consumer, void *producer, void *peer)
{
	void *const *place = (void *const *)rig.ops->producer_local_peer(producer);
	struct gantry_msg msg;
	uint64_t late = 0;
	void *seen;

	TEST_ASSERT_EQUAL_INT(0, rig.ops->post_recv(consumer, 1));
	do {
		TEST_ASSERT_EQUAL_INT(0, rig.ops->poll_recv(consumer, &msg, 1));
		rig_wait(&late, 0, "send() to be accepted after post_recv()");
	} while (rig.ops->send(producer, "x", 1, 0) != 0);
	rig.ops->consumer_set_local_peer(consumer, peer);
	seen = *place;
	for (late = 0; rig.ops->poll_recv(consumer, &msg, 1) == 0;)
		rig_wait(&late, 0, "poll_recv() to return a message that send() accepted");
	return seen;
}

/*
 * Producers on the thread of the consumer see its local peer, if the transport has local peers.
 * Messages in the queue hide the peer.
 */
static void local_peer_is_seen_on_its_thread_only(void)
{
	static int threads[2];
	struct gantry_queue_attr attr = {.depth = 4, .thread = &threads[0]};
	void *peer = threads, *expected = rig.ops->flags & GANTRY_TRANSPORT_INSIDE ? peer : NULL;
	void *consumer, *tx[4];
	uint32_t id;

	rig_connect();
	TEST_ASSERT_EQUAL_INT(0, rig.ops->consumer_create(rig.b.conn, &attr, &id, &consumer));
	rig_until(rig.a.n_up, 1);
	for (int i = 0; i < 4; i++) {
		attr.thread = i < 3 ? &threads[i % 2] : NULL;
		if (i == 2)
			rig.ops->consumer_set_local_peer(consumer, peer);
		TEST_ASSERT_EQUAL_INT(0, rig.ops->producer_create(rig.a.conn, id, &attr, &tx[i]));
	}
	for (int i = 0; i < 4; i++)
		TEST_ASSERT_EQUAL_PTR(i % 2 == 0 ? expected : NULL,
				      *rig.ops->producer_local_peer(tx[i]));
	rig.ops->consumer_set_local_peer(consumer, NULL);
	for (int i = 0; i < 4; i++)
		TEST_ASSERT_NULL(*rig.ops->producer_local_peer(tx[i]));
	TEST_ASSERT_NULL(peer_behind_a_message(consumer, tx[0], peer));
	rig.ops->consumer_set_local_peer(consumer, peer);
	TEST_ASSERT_EQUAL_PTR(expected, *rig.ops->producer_local_peer(tx[0]));
	rig.ops->consumer_set_local_peer(consumer, NULL);
	for (int i = 0; i < 4; i++)
		rig.ops->producer_destroy(tx[i]);
	rig.ops->consumer_destroy(consumer);
}

/* on 1: let this process open no more descriptors. on 0: restore the limit. */
static void limit_descriptors(int on)
{
	static struct rlimit old;
	struct rlimit none;
	int lowest;

	if (!on) {
		setrlimit(RLIMIT_NOFILE, &old);
		return;
	}
	getrlimit(RLIMIT_NOFILE, &old);
	lowest = dup(STDERR_FILENO);
	close(lowest);
	none = (struct rlimit){.rlim_cur = (rlim_t)lowest, .rlim_max = old.rlim_max};
	setrlimit(RLIMIT_NOFILE, &none);
}

/* A lack of descriptors is reported as EMFILE, not as ENOMEM. */
static void missing_descriptors_are_reported_as_emfile(void)
{
	struct gantry_queue_attr attr = {.depth = 4};
	void *consumer = NULL, *producer = NULL;
	uint32_t id;
	int rc;

	rig_connect();
	limit_descriptors(1);
	rc = rig.ops->consumer_create(rig.b.conn, &attr, &id, &consumer);
	limit_descriptors(0);
	if (rc) { /* a transport that needs no descriptor succeeds */
		RIG_RC(-EMFILE, rc, "create of a queue without free descriptors");
		RIG_OK(rig.ops->consumer_create(rig.b.conn, &attr, &id, &consumer));
	}
	rig_until(rig.a.n_up, 1);
	limit_descriptors(1);
	rc = rig.ops->producer_create(rig.a.conn, id, &attr, &producer);
	limit_descriptors(0);
	if (rc)
		RIG_RC(-EMFILE, rc, "create of a queue without free descriptors");
	else
		rig.ops->producer_destroy(producer);
	rig.ops->consumer_destroy(consumer);
}

/* Wait, and expect that the producer has got no credit. */
static void expect_no_credit(struct rig_queue *q)
{

	for (int i = 0; i < 5; i++) {
		RIG_RC(-EAGAIN, rig.ops->send(q->tx, "x", 1, 0), "send without a posted receive");
		rig_fence();
	}
}

static void send_needs_a_posted_receive(void)
{
	struct gantry_msg msg;
	struct rig_queue *q;

	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, 4, 0);
	RIG_RC(0, rig_poll(q, &msg, 1), "poll_recv when no message was sent");
	expect_no_credit(q);
	RIG_OK(rig.ops->post_recv(q->rx, 1));
	RIG_RC(0, rig_poll(q, &msg, 1), "poll_recv when no message was sent");
	RIG_OK(rig_send(q, "x", 1));
	expect_no_credit(q);
	rig_take(q, &msg);
	RIG_NUM(1, msg.imm_len, "imm_len of a received message");
	RIG_NUM('x', msg.imm[0], "immediate data");
	expect_no_credit(q); /* poll_recv alone returns no credit */
	RIG_RC(0, rig_poll(q, &msg, 1), "poll_recv when no message was sent");
	rig_queue_close(q);
}

static void receives_are_bounded_by_depth(void)
{
	struct rig_queue *q;

	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, 5, 0);
	RIG_RC(-ENOSPC, rig.ops->post_recv(q->rx, 6), "post_recv of more receives than depth");
	RIG_OK(rig.ops->post_recv(q->rx, 5));
	RIG_RC(-ENOSPC, rig.ops->post_recv(q->rx, 1), "post_recv of more receives than depth");
	rig_queue_close(q);
}

static void as_many_sends_as_posted_receives_of(uint32_t depth, uint32_t rounds)
{
	struct gantry_msg msg;
	struct rig_queue *q;
	uint64_t value = 0;

	q = rig_queue_open(&rig.b, &rig.a, depth, 0);
	for (uint32_t round = 0; round < rounds; round++) {
		RIG_OK(rig.ops->post_recv(q->rx, depth));
		for (uint32_t i = 0; i < depth; i++, value++)
			RIG_OK(rig_send(q, &value, 8));
		RIG_RC(-EAGAIN, rig.ops->send(q->tx, &value, 8, 0),
		       "send without a posted receive");
		for (uint32_t i = 0; i < depth; i++) {
			uint64_t want = value - depth + i;

			rig_take(q, &msg);
			RIG_SAME(&want, msg.imm, 8, "immediate data: messages arrive in order");
		}
		RIG_RC(0, rig_poll(q, &msg, 1), "poll_recv when no message was sent");
		RIG_RC(-EAGAIN, rig.ops->send(q->tx, &value, 8, 0),
		       "send without a posted receive");
	}
	rig_queue_close(q);
}

static void as_many_sends_as_posted_receives(void)
{
	rig_connect();
	as_many_sends_as_posted_receives_of(16, rig_rounds(200));
}

static void queue_of_depth_one(void)
{
	rig_connect();
	as_many_sends_as_posted_receives_of(1, rig_rounds(200));
}

/*
 * The transport accepts max_depth receives. Its ring can have fewer slots: then sends wait until
 * the consumer takes messages.
 */
static void deepest_queue(void)
{
	uint32_t depth = rig.info.max_depth, sent = 0, taken = 0;
	struct rig_queue *q;
	uint64_t late = 0;

	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, depth, 0);
	RIG_OK(rig.ops->post_recv(q->rx, depth));
	while (taken < depth) {
		struct gantry_msg msg;
		int rc, n = 0;

		while ((rc = rig.ops->send(q->tx, &sent, 4, 0)) == 0)
			sent++;
		RIG_RC(-EAGAIN, rc, "send without a posted receive");
		RIG_HOLDS(sent <= depth, "sends that posted receives permit");
		n = rig_poll(q, &msg, 1);
		if (n)
			RIG_SAME(&taken, msg.imm, 4, "immediate data: messages arrive in order");
		taken += n == 1;
		rig_wait(&late, n, "poll_recv() to return a message that send() accepted");
	}
	expect_no_credit(q);
	rig_queue_close(q);
}

static void order_is_kept(void)
{
	uint64_t sent = 0, taken = 0, total = rig_rounds(200000), late = 0;
	struct gantry_msg msgs[7];
	struct rig_queue *q;

	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, 64, 0);
	RIG_OK(rig.ops->post_recv(q->rx, 64));
	while (taken < total) {
		int n;

		while (rig.ops->send(q->tx, &sent, 8, sent % 5 ? GANTRY_SEND_MORE : 0) == 0)
			sent++;
		rig.ops->flush(q->tx);
		n = rig_poll(q, msgs, 7);
		RIG_HOLDS(n >= 0, "poll_recv of an open queue");
		for (int i = 0; i < n; i++, taken++) {
			uint64_t got;

			memcpy(&got, msgs[i].imm, 8);
			RIG_NUM(taken, got, "immediate data: messages arrive in order");
		}
		RIG_OK(rig.ops->post_recv(q->rx, (uint32_t)n));
		rig_wait(&late, n, "poll_recv() to return a message that send() accepted");
	}
	rig_queue_close(q);
}

static void immediate_data_of_all_sizes(void)
{
	uint8_t imm[GANTRY_IMM_MAX + 1];
	struct gantry_msg msg;
	struct rig_queue *q;

	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, 4, 0);
	for (uint32_t len = 0; len <= GANTRY_IMM_MAX; len++) {

		rig_fill(imm, sizeof(imm), len);
		RIG_OK(rig.ops->post_recv(q->rx, 1));
		RIG_OK(rig_send(q, len ? imm : NULL, len));
		memset(imm, 0, sizeof(imm)); /* send has copied it */
		rig_take(q, &msg);
		RIG_NUM(len, msg.imm_len, "imm_len of a received message");
		RIG_HOLDS(rig_filled(msg.imm, len, len), "immediate data");
	}
	RIG_OK(rig.ops->post_recv(q->rx, 1));
	RIG_HOLDS(rig_send(q, imm, GANTRY_IMM_MAX + 1) < 0,
		  "send of GANTRY_IMM_MAX + 1 bytes of immediate data");
	rig_queue_close(q);
}

struct share {
	struct rig_queue *q[3];
	uint64_t sent[3], taken[3];
};

/* Each producer tries to send one message. Returns how many messages the consumer took. */
static int share_turn(struct share *s)
{
	struct gantry_msg msgs[4];
	int n;

	for (int i = 0; i < 3; i++) {
		uint64_t imm[2] = {(uint64_t)i, s->sent[i]};

		s->sent[i] += rig.ops->send(s->q[i]->tx, imm, 16, 0) == 0;
	}
	n = rig_poll(s->q[0], msgs, 4);
	RIG_HOLDS(n >= 0, "poll_recv of an open queue");
	for (int i = 0; i < n; i++) {
		uint64_t imm[2];

		memcpy(imm, msgs[i].imm, 16);
		RIG_HOLDS(imm[0] < 3, "immediate data");
		RIG_NUM(s->taken[imm[0]]++, imm[1],
			"number of the message: those of one producer arrive in order");
	}
	RIG_OK(rig.ops->post_recv(s->q[0]->rx, (uint32_t)n));
	return n;
}

/*
 * Several producers share a consumer: each keeps its order, and no message is lost, although the
 * consumer has fewer receives than the producers together have credit for.
 */
static void producers_share_a_consumer(void)
{
	uint64_t end = rig_rounds(30000), total = 0, late = 0, before[3];
	struct share s = {.sent = {0}};

	rig_connect();
	s.q[0] = rig_queue_open(&rig.b, &rig.a, 8, 0);
	for (uint32_t i = 1; i < 3; i++)
		s.q[i] = rig_queue_join(s.q[0], &rig.a, i, 32);
	RIG_OK(rig.ops->post_recv(s.q[0]->rx, 8));
	while (!s.taken[0] || !s.taken[1] || !s.taken[2]) { /* until all producers are connected */
		RIG_HOLDS(total < 1000000, "messages until each of three producers has sent one");
		total += (uint64_t)share_turn(&s);
		rig_wait(&late, 0, "a message of each of three producers");
	}
	memcpy(before, s.taken, sizeof(before));
	for (total = 0, late = 0; total < end;) {
		int n = share_turn(&s);

		total += (uint64_t)n;
		rig_wait(&late, n, "poll_recv() to return a message that send() accepted");
	}
	for (int i = 0; i < 3; i++)
		RIG_HOLDS(
			s.taken[i] - before[i] > end / 10,
			"messages of each of three producers: none starves"); /* no producer starves */
	for (int i = 2; i >= 0; i--)
		rig_queue_close(s.q[i]);
}

static void consumers_do_not_mix(void)
{
	struct rig_queue *q[2], *back;
	struct gantry_msg msg;

	rig_connect();
	q[0] = rig_queue_open_lanes(&rig.b, 0, &rig.a, 0, 4, 0);
	q[1] = rig_queue_open_lanes(&rig.b, 1, &rig.a, 1, 4, 0);
	back = rig_queue_open(&rig.a, &rig.b, 4, 0);
	for (int i = 0; i < 2; i++)
		RIG_OK(rig.ops->post_recv(q[i]->rx, 4));
	RIG_OK(rig.ops->post_recv(back->rx, 4));
	RIG_OK(rig_send_imm(q[1], 11));
	RIG_OK(rig_send_imm(back, 22));
	rig_take(q[1], &msg);
	RIG_NUM(11, msg.imm[0], "immediate data");
	rig_take(back, &msg);
	RIG_NUM(22, msg.imm[0], "immediate data");
	rig_fence();
	RIG_RC(0, rig_poll(q[0], &msg, 1),
	       "poll_recv when messages were sent to other consumers only");
	rig_queue_close(back);
	rig_queue_close(q[0]);
	rig_queue_close(q[1]);
}

/*
 * The ring wraps many times. All words of a message depend on its number, so that a message with
 * words of two messages is detected.
 */
static void ring_wraps_and_nothing_is_torn(void)
{
	uint64_t sent = 0, taken = 0, total = rig_rounds(2000000), late = 0;
	struct gantry_msg msgs[32];
	uint32_t depth = rig.info.max_depth < 128 ? rig.info.max_depth : 128;
	struct rig_queue *q;

	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, depth, 0);
	RIG_OK(rig.ops->post_recv(q->rx, depth));
	while (taken < total) {
		uint64_t imm[7];
		int n;

		for (;;) {
			for (uint64_t i = 0; i < 7; i++)
				imm[i] = sent * (i + 1);
			if (rig.ops->send(q->tx, imm, sizeof(imm), GANTRY_SEND_MORE))
				break;
			sent++;
		}
		n = rig_poll(q, msgs, 32);
		for (int k = 0; k < n; k++, taken++) {
			memcpy(imm, msgs[k].imm, sizeof(imm));
			for (uint64_t i = 0; i < 7; i++)
				if (imm[i] != taken * (i + 1))
					TEST_FAIL_MESSAGE("torn or lost");
		}
		RIG_HOLDS(n >= 0, "poll_recv of an open queue");
		rig.ops->post_recv(q->rx, (uint32_t)n);
		rig_wait(&late, n, "poll_recv() to return a message that send() accepted");
	}
	rig_queue_close(q);
}

static void new_producer(struct rig_queue *q)
{
	struct gantry_queue_attr attr = {.depth = 8};

	rig_queue_close_tx(q);
	rig_settle();
	RIG_OK(rig.ops->producer_create(rig.a.conn, q->id, &attr, &q->tx));
	rig_settle();
}

/* Messages sent before the producer was destroyed are delivered. */
static void messages_of_a_destroyed_producer_are_delivered(void)
{
	struct gantry_msg msg;
	struct rig_queue *q;

	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, 8, 0);
	RIG_OK(rig.ops->post_recv(q->rx, 8));
	for (uint64_t i = 0; i < 5; i++)
		RIG_OK(rig_send_imm(q, i));
	rig_queue_close_tx(q);
	rig_settle();
	for (uint64_t i = 0; i < 5; i++) {
		rig_take(q, &msg);
		RIG_NUM(i, msg.imm[0], "immediate data: messages arrive in order");
	}
	RIG_RC(0, rig_poll(q, &msg, 1), "poll_recv when no message was sent");
	new_producer(q);
	/* the consumer sends its credit in its next poll */
	RIG_RC(0, rig_poll(q, &msg, 1), "poll_recv when no message was sent");
	RIG_OK(rig_send_imm(q, 99));
	rig_take(q, &msg);
	RIG_NUM(99, msg.imm[0], "immediate data");
	rig_queue_close(q);
}

/* Create and destroy more producers in succession than a consumer can have at the same time. */
static void producer_is_replaced_many_times(void)
{
	struct gantry_msg msg;
	struct rig_queue *q;

	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, 8, 0);
	for (uint64_t i = 0; i < 200; i++) {
		RIG_OK(rig.ops->post_recv(q->rx, 1));
		RIG_OK(rig_send_imm(q, i));
		rig_take(q, &msg);
		RIG_NUM((uint8_t)i, msg.imm[0], "immediate data: messages arrive in order");
		RIG_OK(rig.ops->post_recv(q->rx, 1));
		new_producer(q);
		RIG_RC(0, rig_poll(q, &msg, 1), "poll_recv when no message was sent");
		RIG_OK(rig_send_imm(q, i));
		rig_take(q, &msg);
	}
	rig_queue_close(q);
}

/* Credit on its way to a producer that ends must not reach the producer that takes its place. */
static void credit_of_a_destroyed_producer(void)
{
	const struct gantry_queue_attr attr = {.depth = 8};
	struct gantry_msg msg;
	struct rig_queue *q;

	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, 8, 0);
	rig_warm(q);
	RIG_OK(rig.ops->post_recv(q->rx, 4));
	RIG_RC(0, rig.ops->poll_recv(q->rx, &msg, 1), "poll_recv when no message was sent");
	rig_queue_close_tx(q);
	RIG_OK(rig.ops->producer_create(rig.a.conn, q->id, &attr, &q->tx));
	for (uint64_t i = 0; i < 4; i++)
		RIG_OK(rig_send_imm(q, i));
	for (uint64_t i = 0; i < 4; i++) {
		rig_take(q, &msg);
		RIG_NUM((uint8_t)i, msg.imm[0], "immediate data: messages arrive in order");
	}
	RIG_RC(-EAGAIN, rig.ops->send(q->tx, "x", 1, 0), "send without a posted receive");
	RIG_NUM(0, (uint64_t)(rig.a.n_closed + rig.b.n_closed), "connections that ended");
	rig_queue_close(q);
}

static void sends_to_a_destroyed_consumer_fail(void)
{
	struct rig_queue *q;

	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, 8, 0);
	RIG_OK(rig.ops->post_recv(q->rx, 8));
	RIG_OK(rig_send_imm(q, 1));
	rig_queue_close_rx(q);
	rig_until(rig.a.n_down, 1);
	RIG_RC(-ENOTCONN, rig.ops->send(q->tx, "x", 1, 0), "send to a destroyed consumer");
	rig_queue_close(q);
}

/* The consumer can still take messages that were published before the end of the connection. */
static void messages_of_a_disconnected_peer_are_delivered(void)
{
	struct rig_queue *q, *back;
	struct gantry_msg msg;

	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, 8, 0);
	back = rig_queue_open(&rig.a, &rig.b, 8, 0);
	RIG_OK(rig.ops->post_recv(q->rx, 8));
	RIG_OK(rig.ops->post_recv(back->rx, 8));
	for (uint64_t i = 0; i < 3; i++)
		RIG_OK(rig_send_imm(q, i));
	rig_queue_close_tx(q);
	rig_queue_close_rx(back);
	rig_disconnect(&rig.a);
	rig_until(rig.b.n_closed, 1);
	for (uint64_t i = 0; i < 3; i++) {
		rig_take(q, &msg);
		RIG_NUM(i, msg.imm[0], "immediate data: messages arrive in order");
	}
	RIG_RC(0, rig_poll(q, &msg, 1), "poll_recv when no message was sent");
	RIG_RC(-ENOTCONN, rig.ops->send(back->tx, "x", 1, 0),
	       "send after the peer has disconnected");
	rig_queue_close(q);
	rig_queue_close(back);
}

void queue_cases(void)
{
	RIG_CASE(consumer_is_announced_and_withdrawn);
	RIG_CASE(attributes_are_checked);
	RIG_CASE(local_peer_is_seen_on_its_thread_only);
	RIG_CASE(missing_descriptors_are_reported_as_emfile);
	RIG_CASE(send_needs_a_posted_receive);
	RIG_CASE(receives_are_bounded_by_depth);
	RIG_CASE(as_many_sends_as_posted_receives);
	RIG_CASE(queue_of_depth_one);
	RIG_CASE(deepest_queue);
	RIG_CASE(order_is_kept);
	RIG_CASE(immediate_data_of_all_sizes);
	RIG_CASE(producers_share_a_consumer);
	RIG_CASE(consumers_do_not_mix);
	RIG_CASE(ring_wraps_and_nothing_is_torn);
	RIG_CASE(messages_of_a_destroyed_producer_are_delivered);
	RIG_CASE(producer_is_replaced_many_times);
	RIG_CASE(credit_of_a_destroyed_producer);
	RIG_CASE(sends_to_a_destroyed_consumer_fail);
	RIG_CASE(messages_of_a_disconnected_peer_are_delivered);
}
