/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queues.c - consumers and producers: data that the consumer fetches, many queues on one pipe, and
 * the destruction of a queue during traffic.
 */
#include "unit/verbs/ends.h"

#include <poll.h>

#define BYTES 8192u

static uint8_t buf[4][BYTES];

void setUp(void)
{
	fake_verbs_reset();
	memset(buf, 0, sizeof(buf));
}

void tearDown(void)
{
	TEST_ASSERT_EQUAL_STRING("", fake_verbs_check_clean());
}

static void post(struct queue *q, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct gantry_recv recv = {.buf = buf[i % 4], .length = BYTES, .cookie = i};

		TEST_ASSERT_EQUAL_INT(0, vb_post_recv_data(q->rx, &recv, 1));
	}
	queue_transfer_credit(q);
}

static void open_all(struct queue *q, struct shared *s)
{
	ends_open("max_depth=8 keepalive=60s", NULL, NULL);
	queue_open(q, &b, 0, &a, 0, 8, BYTES);
	share_begin(s, &a, &b, BYTES, GANTRY_REMOTE_READ);
	fill(s->bytes, BYTES, 1);
	post(q, 8);
}

static void close_all(struct queue *q, struct shared *s)
{
	pipes_check();
	TEST_ASSERT_EQUAL_INT(0, a.conn->lost | b.conn->lost);
	queue_close(q);
	share_end(s);
	ends_close();
}

static uint64_t ended(struct queue *q)
{
	uint64_t cookie = 0;

	TEST_ASSERT_EQUAL_INT(1, vb_poll_send(q->tx, &cookie, 1));
	return cookie;
}

static void none_ended(struct queue *q)
{
	uint64_t cookie;

	TEST_ASSERT_EQUAL_INT(0, vb_poll_send(q->tx, &cookie, 1));
}

static void nothing_comes(struct queue *q)
{
	struct gantry_msg msg;

	for (int i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_INT(0, vb_poll_recv(q->rx, &msg, 1));
}

/* Check the data of a message that was just taken. */
static void expect_data(const struct gantry_msg *msg, const struct shared *s, uint64_t offset,
			uint32_t length)
{
	TEST_ASSERT_EQUAL_INT(0, msg->status);
	TEST_ASSERT_EQUAL_UINT32(length, msg->length);
	TEST_ASSERT_EQUAL_MEMORY(s->bytes + offset, buf[msg->cookie % 4], length);
}

/* -- data that is fetched -- */

/* One read fetches the data. The sender gets its completion only after that read. */
static void data_is_fetched_once(void)
{
	struct fake_counters before, after;
	struct gantry_msg msg;
	struct shared s;
	struct queue q;

	open_all(&q, &s);
	fake_verbs_counters(&before);
	TEST_ASSERT_EQUAL_INT(0, queue_send_region(&q, &s, 100, 5000, 77));
	none_ended(&q);
	TEST_ASSERT_EQUAL_UINT64(77, queue_take(&q, &msg));
	expect_data(&msg, &s, 100, 5000);
	TEST_ASSERT_EQUAL_UINT64(5000, fake_counter(&b.host, "payload_bytes"));
	queue_transfer_credit(&q);
	TEST_ASSERT_EQUAL_UINT64(77, ended(&q));
	none_ended(&q);
	fake_verbs_counters(&after);
	TEST_ASSERT_EQUAL_UINT64(1, after.sends - before.sends);
	TEST_ASSERT_EQUAL_UINT64(1, after.reads - before.reads);
	TEST_ASSERT_EQUAL_UINT64(1, after.writes - before.writes);
	close_all(&q, &s);
}

/* A message waits until the data of the message before it has been fetched. */
static void messages_wait_for_data(void)
{
	struct gantry_msg msg;
	struct shared s;
	struct queue q;

	open_all(&q, &s);
	TEST_ASSERT_EQUAL_INT(0, queue_send_region(&q, &s, 0, BYTES, 1));
	TEST_ASSERT_EQUAL_INT(0, queue_send(&q, 2, 0));
	fake_wire_hold(1);
	nothing_comes(&q);
	TEST_ASSERT_EQUAL_UINT(1, fake_wire_waiting(NULL));
	fill(s.bytes, BYTES, 2); /* changed before the read, so the consumer gets the new data */
	TEST_ASSERT_EQUAL_INT(1, fake_wire_step(NULL));
	TEST_ASSERT_EQUAL_UINT64(1, queue_take(&q, &msg));
	expect_data(&msg, &s, 0, BYTES);
	TEST_ASSERT_EQUAL_UINT64(2, queue_take(&q, &msg));
	fake_wire_hold(0);
	close_all(&q, &s);
}

/* If the receive has a buffer that is too small, or no buffer, the message arrives without data. */
static void no_room_for_data(void)
{
	const struct gantry_recv small = {.buf = buf[0], .length = 99};
	struct fake_counters before, after;
	struct gantry_msg msg;
	struct shared s;
	struct queue q;

	ends_open("max_depth=8", NULL, NULL);
	queue_open(&q, &b, 0, &a, 0, 8, BYTES);
	share_begin(&s, &a, &b, BYTES, GANTRY_REMOTE_READ);
	TEST_ASSERT_EQUAL_INT(0, vb_post_recv_data(q.rx, &small, 1));
	TEST_ASSERT_EQUAL_INT(0, vb_post_recv_data(q.rx, &(struct gantry_recv){.buf = NULL}, 1));
	queue_transfer_credit(&q);
	fake_verbs_counters(&before);
	for (uint64_t i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_INT(0, queue_send_region(&q, &s, 0, 100, i));
	for (uint64_t i = 0; i < 2; i++) {
		TEST_ASSERT_EQUAL_UINT64(i, queue_take(&q, &msg));
		TEST_ASSERT_EQUAL_INT(-EMSGSIZE, msg.status);
		TEST_ASSERT_EQUAL_UINT32(0, msg.length);
	}
	queue_transfer_credit(&q);
	TEST_ASSERT_EQUAL_UINT64(0, ended(&q));
	TEST_ASSERT_EQUAL_UINT64(1, ended(&q));
	fake_verbs_counters(&after);
	TEST_ASSERT_EQUAL_UINT64(before.reads, after.reads);
	close_all(&q, &s);
}

/* The message overtakes the announcement of its region, which is sent on another pipe. */
static void message_before_its_region(void)
{
	struct gantry_region region = {.fd = -1, .rights = GANTRY_REMOTE_READ};
	struct gantry_token token;
	struct gantry_msg msg;
	struct shared s;
	struct queue q;

	open_all(&q, &s);
	region.addr = s.bytes;
	region.length = BYTES;
	fake_wire_hold(1);
	TEST_ASSERT_EQUAL_INT(0, vb_export(a.conn, &region, GANTRY_REMOTE_READ, 1000, &token));
	s.region.addr = NULL; /* the send must use `region`, which has the same memory */
	{
		const struct gantry_send send = {.imm = "12345678",
						 .imm_len = 8,
						 .length = 100,
						 .region = &region,
						 .cookie = 3};

		TEST_ASSERT_EQUAL_INT(0, vb_send_data(q.tx, &send, 0));
	}
	TEST_ASSERT_EQUAL_INT(1, fake_wire_step(queue_pipe(&q)->qp.qp));
	nothing_comes(&q);
	TEST_ASSERT_EQUAL_INT(1, q.rx->head != q.rx->tail);
	fake_wire_hold(0);
	nothing_comes(&q);
	ends_settle();
	queue_take(&q, &msg);
	expect_data(&msg, &s, 0, 100);
	TEST_ASSERT_EQUAL_INT(0, vb_revoke(a.conn, 1000));
	ends_until(a.n_revoked == 1);
	close_all(&q, &s);
}

/* If the region was revoked before the read, the message arrives without its data. */
static void revoked_before_it_is_read(void)
{
	struct gantry_msg msg;
	struct shared s;
	struct queue q;

	open_all(&q, &s);
	vb_release(b.conn, s.imported);
	s.imported = NULL;
	TEST_ASSERT_EQUAL_INT(0, queue_send_region(&q, &s, 0, 100, 5));
	TEST_ASSERT_EQUAL_INT(0, vb_revoke(a.conn, s.token.handle));
	ends_until(a.n_revoked == 1);
	TEST_ASSERT_EQUAL_UINT64(5, queue_take(&q, &msg));
	TEST_ASSERT_EQUAL_INT(-EFAULT, msg.status);
	TEST_ASSERT_EQUAL_UINT32(0, msg.length);
	queue_transfer_credit(&q);
	TEST_ASSERT_EQUAL_UINT64(5, ended(&q));
	TEST_ASSERT_EQUAL_INT(-EINVAL, queue_send_region(&q, &s, 0, 100, 6));
	close_all(&q, &s);
}

/* Deliver messages of the control pipes only. */
static void step_control(void)
{
	for (int i = 0; i < 20; i++) {
		while (fake_wire_step(a.conn->control->qp.qp) ||
		       fake_wire_step(b.conn->control->qp.qp))
			;
		ends_turn();
	}
}

/* If the region is revoked during the read, the revoke completes after the read. */
static void revoked_while_it_is_read(void)
{
	struct gantry_msg msg;
	struct shared s;
	struct queue q;

	open_all(&q, &s);
	vb_release(b.conn, s.imported);
	s.imported = NULL;
	TEST_ASSERT_EQUAL_INT(0, queue_send_region(&q, &s, 0, BYTES, 5));
	/* b has polled neither the message nor the notice of this revoke */
	TEST_ASSERT_EQUAL_INT(0, vb_revoke(a.conn, s.token.handle));
	fake_wire_hold(1);
	nothing_comes(&q);
	TEST_ASSERT_EQUAL_PTR(&s.region, a.conn->exports[0].region);
	step_control();
	TEST_ASSERT_EQUAL_INT(0, a.n_revoked);
	fake_wire_hold(0);
	TEST_ASSERT_EQUAL_UINT64(5, queue_take(&q, &msg));
	expect_data(&msg, &s, 0, BYTES);
	ends_until(a.n_revoked == 1);
	TEST_ASSERT_EQUAL_INT(0, a.revoked_rc);
	close_all(&q, &s);
}

/* -- destroyed consumers and producers -- */

/*
 * A consumer is destroyed while the device fetches data: the device still writes to the buffer of
 * the consumer, and reads from a region that cannot be released yet.
 */
static void consumer_is_destroyed_while_it_reads(void)
{
	const struct gantry_queue_attr attr = {.depth = 8, .max_data = BYTES};
	struct queue q, again = {.to = &b};
	struct gantry_msg msg;
	struct shared s;
	void *rx = NULL;

	open_all(&q, &s);
	vb_release(b.conn, s.imported);
	s.imported = NULL;
	TEST_ASSERT_EQUAL_INT(0, queue_send_region(&q, &s, 0, BYTES, 1));
	TEST_ASSERT_EQUAL_INT(0, queue_send(&q, 2, 0));
	fake_wire_hold(1);
	nothing_comes(&q);
	vb_consumer_destroy(q.rx);
	q.rx = NULL;
	TEST_ASSERT_EQUAL_INT(0, vb_consumer_create(b.conn, &attr, &again.id, &rx));
	again.rx = rx;
	TEST_ASSERT_EQUAL_INT(0, vb_revoke(a.conn, s.token.handle));
	step_control();
	TEST_ASSERT_EQUAL_INT(1, a.n_down);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, queue_send(&q, 3, 0));
	TEST_ASSERT_EQUAL_INT(0, a.n_revoked);
	fake_wire_hold(0);
	nothing_comes(&again);
	ends_until(a.n_revoked == 1);
	TEST_ASSERT_EQUAL_UINT64(1, ended(&q)); /* the old producer can still poll its completion */
	vb_producer_destroy(q.tx);
	queue_join(&q, &again, &a, 0, 8);
	q.rx = rx;
	post(&q, 8);
	TEST_ASSERT_EQUAL_INT(0, queue_send(&q, 4, 0));
	TEST_ASSERT_EQUAL_UINT64(4, queue_take(&q, &msg));
	close_all(&q, &s);
}

/*
 * A consumer is destroyed during a read, and then the last producer of the lane is destroyed. So no
 * thread of a lane polls the end of the read any more.
 */
static void lane_is_destroyed_while_it_reads(void)
{
	const uint64_t soon_ns = 1000000000;
	const struct gantry_host *host;
	struct queue q, back;
	struct shared s;

	open_all(&q, &s);
	host = &b.host.pub;
	queue_open(&back, &a, 0, &b, 0, 8, 0);
	vb_release(b.conn, s.imported);
	s.imported = NULL;
	TEST_ASSERT_EQUAL_INT(0, queue_send_region(&q, &s, 0, BYTES, 1));
	fake_wire_hold(1);
	nothing_comes(&q);
	vb_consumer_destroy(q.rx);
	q.rx = NULL;
	TEST_ASSERT_EQUAL_INT(0, vb_revoke(a.conn, s.token.handle));
	step_control();
	/* the thread of the producer can still poll the lane: no timer is needed */
	TEST_ASSERT_TRUE(vb_wake_ns(b.device) > host->now_ns(host) + soon_ns);
	vb_producer_destroy(back.tx);
	back.tx = NULL;
	TEST_ASSERT_EQUAL_INT(
		1, poll(&(struct pollfd){.fd = vb_fd(b.device), .events = POLLIN}, 1, 0));
	step_control();
	/* no descriptor signals the end of the read, so a timer polls for it */
	TEST_ASSERT_TRUE(vb_wake_ns(b.device) < host->now_ns(host) + soon_ns);
	TEST_ASSERT_EQUAL_INT(0, a.n_revoked);
	fake_wire_hold(0);
	ends_until(a.n_revoked == 1);
	TEST_ASSERT_EQUAL_INT(0, a.revoked_rc);
	TEST_ASSERT_TRUE(vb_wake_ns(b.device) > host->now_ns(host) + soon_ns);
	TEST_ASSERT_EQUAL_UINT64(1, ended(&q));
	queue_close(&back);
	close_all(&q, &s);
}

/* A consumer is destroyed during a read, and the connection ends before that read. */
static void connection_ends_while_a_destroyed_consumer_reads(void)
{
	struct shared s;
	struct queue q;

	open_all(&q, &s);
	TEST_ASSERT_EQUAL_INT(0, queue_send_region(&q, &s, 0, BYTES, 1));
	fake_wire_hold(1);
	nothing_comes(&q);
	vb_producer_destroy(q.tx);
	vb_consumer_destroy(q.rx);
	vb_disconnect(b.conn);
	b.conn = NULL;
	fake_wire_hold(0);
	ends_until(a.n_closed == 1);
	munmap(s.bytes, BYTES);
	ends_close();
}

/*
 * Messages in flight to a consumer that is destroyed are dropped. The next consumer of the lane
 * does not get them.
 */
static void messages_of_a_destroyed_consumer(void)
{
	const struct gantry_queue_attr attr = {.depth = 8, .max_data = BYTES};
	struct queue q, again = {.to = &b};
	struct gantry_msg msg;
	struct shared s;
	void *rx = NULL;

	open_all(&q, &s);
	fake_wire_hold(1);
	TEST_ASSERT_EQUAL_INT(0, queue_send(&q, 1, 0));
	TEST_ASSERT_EQUAL_INT(0, queue_send_region(&q, &s, 0, 10, 2));
	vb_consumer_destroy(q.rx);
	q.rx = NULL;
	TEST_ASSERT_EQUAL_INT(0, vb_consumer_create(b.conn, &attr, &again.id, &rx));
	again.rx = rx;
	fake_wire_hold(0);
	ends_settle();
	nothing_comes(&again);
	TEST_ASSERT_EQUAL_UINT32(0, queue_far_pipe(&q)->waiting);
	TEST_ASSERT_EQUAL_UINT64(2, ended(&q));
	vb_producer_destroy(q.tx);
	queue_join(&q, &again, &a, 0, 8);
	q.rx = rx;
	post(&q, 8);
	for (uint64_t i = 0; i < 20; i++) {
		TEST_ASSERT_EQUAL_INT(0, queue_send(&q, i, 0));
		TEST_ASSERT_EQUAL_UINT64(i, queue_take(&q, &msg));
		post(&q, 1);
	}
	close_all(&q, &s);
}

/*
 * A message is built but not posted when its consumer is destroyed. It does not share a slot with
 * the next message, which goes to the next consumer of the lane.
 */
static void messages_of_two_consumers(void)
{
	const struct gantry_queue_attr attr = {.depth = 8, .max_data = BYTES};
	struct queue old, q = {.to = &b};
	struct shared s;
	void *rx = NULL;

	open_all(&old, &s);
	TEST_ASSERT_EQUAL_INT(0, queue_send(&old, 1, GANTRY_SEND_MORE));
	vb_consumer_destroy(old.rx);
	old.rx = NULL;
	TEST_ASSERT_EQUAL_INT(0, vb_consumer_create(b.conn, &attr, &q.id, &rx));
	q.rx = rx;
	ends_until(a.up == q.id);
	queue_join(&q, &q, &a, 0, 8);
	q.rx = rx;
	post(&q, 8);
	TEST_ASSERT_EQUAL_UINT32(1, queue_pipe(&q)->qp.built - queue_pipe(&q)->qp.posted);
	TEST_ASSERT_EQUAL_INT(0, queue_send(&q, 2, GANTRY_SEND_MORE));
	vb_flush(q.tx);
	TEST_ASSERT_EQUAL_UINT64(2, queue_take(&q, NULL));
	nothing_comes(&q);
	vb_producer_destroy(old.tx);
	close_all(&q, &s);
}

/*
 * A producer is destroyed: the completions that it has not polled are dropped, and the sends of
 * another producer on the same pipe complete as before.
 */
static void producer_is_destroyed_with_unpolled_completions(void)
{
	struct queue q, other;
	struct gantry_msg msg;
	struct shared s;

	open_all(&q, &s);
	queue_join(&other, &q, &a, 0, 4);
	TEST_ASSERT_EQUAL_INT(0, queue_send_region(&other, &s, 0, 10, 100));
	TEST_ASSERT_EQUAL_INT(0, queue_send_region(&q, &s, 10, 10, 1));
	TEST_ASSERT_EQUAL_INT(0, queue_send_region(&other, &s, 20, 10, 101));
	TEST_ASSERT_EQUAL_INT(0, queue_send_region(&q, &s, 30, 10, 2));
	for (uint64_t i = 0; i < 4; i++) {
		queue_take(&q, &msg);
		expect_data(&msg, &s, i * 10, 10);
	}
	queue_transfer_credit(&q);
	queue_close(&other); /* destroyed before it polled its completions */
	TEST_ASSERT_EQUAL_UINT64(1, ended(&q));
	TEST_ASSERT_EQUAL_UINT64(2, ended(&q));
	none_ended(&q);
	close_all(&q, &s);
}

/*
 * A producer is destroyed before the peer has read its data, which the sender can change then. The
 * peer gets messages whose data it read before, and no changed data: the connection ends.
 */
static void producer_is_destroyed_before_its_data_is_read(void)
{
	struct queue q;
	struct gantry_msg msg;
	struct shared s;
	uint8_t sent[20];

	for (int n_taken = 0; n_taken < 2; n_taken++) {
		open_all(&q, &s);
		memcpy(sent, s.bytes, sizeof(sent));
		TEST_ASSERT_EQUAL_INT(0, queue_send_region(&q, &s, 0, 10, 1));
		TEST_ASSERT_EQUAL_INT(0, queue_send_region(&q, &s, 10, 10, 2));
		if (n_taken) {
			queue_take(&q, &msg);
			expect_data(&msg, &s, 0, 10);
			queue_transfer_credit(&q);
		}
		vb_producer_destroy(q.tx);
		q.tx = NULL;
		TEST_ASSERT_TRUE(a.conn->lost);
		memset(s.bytes, 0xee, BYTES);
		for (int i = 0; i < 8; i++) {
			if (vb_poll_recv(q.rx, &msg, 1) == 1 && msg.status == 0)
				/* the data was fetched before it was changed */
				TEST_ASSERT_EQUAL_MEMORY(sent + 10, buf[msg.cookie % 4], 10);
		}
		ends_until(a.n_closed && b.n_closed);
		queue_close(&q);
		share_end(&s);
		ends_close();
	}
}

/* -- several producers of one consumer -- */

/* Completions that one producer does not poll do not block another producer. */
static void producers_have_independent_completions(void)
{
	struct queue q, other;
	struct gantry_msg msg;
	struct shared s;

	open_all(&q, &s);
	queue_join(&other, &q, &a, 0, 8);
	for (uint64_t round = 0; round < 3; round++) {
		uint64_t first = round ? 8 : 0;

		for (uint64_t i = first; i < 8; i++)
			TEST_ASSERT_EQUAL_INT(0, queue_send_region(&other, &s, 0, 10, i));
		for (uint64_t i = first; i < 8; i++)
			queue_take(&q, &msg);
		if (!round)
			post(&q, 8);
		queue_transfer_credit(&q);
		TEST_ASSERT_EQUAL_INT(-EAGAIN, queue_send_region(&other, &s, 0, 10, 8));
		for (uint64_t i = 0; i < 8; i++) {
			TEST_ASSERT_EQUAL_INT(0, queue_send_region(&q, &s, 0, 10, i));
			queue_take(&q, &msg);
		}
		post(&q, 8);
		for (uint64_t i = 0; i < 8; i++)
			TEST_ASSERT_EQUAL_UINT64(i, ended(&q));
	}
	for (uint64_t i = 0; i < 8; i++)
		TEST_ASSERT_EQUAL_UINT64(i, ended(&other));
	queue_close(&other);
	close_all(&q, &s);
}

/*
 * Several lanes of the peer share a consumer. Each lane gets credit for all receives; messages
 * beyond the receives wait.
 */
static void lanes_share_a_consumer(void)
{
	uint64_t next[5] = {0}, total = 0;
	struct queue q[5];

	ends_open("max_depth=8", NULL, NULL);
	queue_open(&q[0], &b, 0, &a, 0, 4, 0);
	for (uint32_t i = 1; i < 5; i++)
		queue_join(&q[i], &q[0], &a, i, 8);
	TEST_ASSERT_EQUAL_INT(0, vb_post_recv(q[0].rx, 4));
	while (total < 2000) {
		struct gantry_msg msgs[4];
		int n;

		for (uint64_t i = 0; i < 5; i++) {
			while (queue_send(&q[i], i << 32 | next[i], 0) == 0)
				next[i]++;
			vb_lane_poll(q[i].tx->lane);
		}
		n = vb_poll_recv(q[0].rx, msgs, 4);
		for (int i = 0; i < n; i++, total++) {
			uint64_t value;

			memcpy(&value, msgs[i].imm, 8);
			TEST_ASSERT_TRUE((uint32_t)value < next[value >> 32]);
		}
		TEST_ASSERT_EQUAL_INT(0, vb_post_recv(q[0].rx, (uint32_t)n));
		pipes_check();
	}
	for (uint32_t i = 0; i < 5; i++)
		TEST_ASSERT_TRUE(next[i] > 200);
	for (uint32_t i = 4; i > 0; i--)
		queue_close(&q[i]);
	queue_close(&q[0]);
	ends_close();
}

/* -- loss -- */

static void connection_ends_while_it_reads(void)
{
	struct gantry_msg msg;
	struct shared s;
	struct queue q;

	open_all(&q, &s);
	for (uint64_t i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_INT(0, queue_send_region(&q, &s, 0, BYTES, i));
	TEST_ASSERT_EQUAL_INT(0, queue_send(&q, 2, 0));
	fake_wire_hold(1);
	nothing_comes(&q);
	vb_conn_fail(b.conn, -ETIMEDOUT);
	nothing_comes(&q); /* the device can still write to the buffer */
	ends_until(b.n_closed == 1);
	for (uint64_t i = 0; i < 2; i++) {
		TEST_ASSERT_EQUAL_UINT64(i, queue_take(&q, &msg));
		TEST_ASSERT_EQUAL_INT(-EFAULT, msg.status);
	}
	TEST_ASSERT_EQUAL_UINT64(2, queue_take(&q, &msg));
	TEST_ASSERT_EQUAL_INT(0, msg.status);
	nothing_comes(&q);
	fake_wire_hold(0);
	queue_close(&q);
	munmap(s.bytes, BYTES);
	ends_close();
}

/*
 * Control messages to a peer that does not read are queued up to a limit, at which the connection
 * ends. They must not be dropped: the peer would not learn of new consumers.
 */
static void peer_that_does_not_read_its_control_messages(void)
{
	const struct gantry_queue_attr attr = {.depth = 1};
	void *consumer;
	uint32_t id;

	ends_open("max_depth=8 keepalive=60s", NULL, NULL);
	for (int i = 0; i < 2000 && vb_consumer_create(a.conn, &attr, &id, &consumer) == 0; i++)
		vb_consumer_destroy(consumer);
	TEST_ASSERT_EQUAL_INT(-EPROTO, a.conn->lost);
	TEST_ASSERT_TRUE(fake_logged(&a.host, "does not read its control messages"));
	ends_until(a.n_closed);
	TEST_ASSERT_EQUAL_INT(-EPROTO, a.reason);
	ends_close();
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(data_is_fetched_once);
	RUN_TEST(messages_wait_for_data);
	RUN_TEST(no_room_for_data);
	RUN_TEST(message_before_its_region);
	RUN_TEST(revoked_before_it_is_read);
	RUN_TEST(revoked_while_it_is_read);
	RUN_TEST(consumer_is_destroyed_while_it_reads);
	RUN_TEST(lane_is_destroyed_while_it_reads);
	RUN_TEST(connection_ends_while_a_destroyed_consumer_reads);
	RUN_TEST(messages_of_a_destroyed_consumer);
	RUN_TEST(messages_of_two_consumers);
	RUN_TEST(producer_is_destroyed_with_unpolled_completions);
	RUN_TEST(producer_is_destroyed_before_its_data_is_read);
	RUN_TEST(producers_have_independent_completions);
	RUN_TEST(lanes_share_a_consumer);
	RUN_TEST(connection_ends_while_it_reads);
	RUN_TEST(peer_that_does_not_read_its_control_messages);
	return UNITY_END();
}
