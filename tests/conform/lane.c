/* SPDX-License-Identifier: BSD-3-Clause */
/* lane.c - conformance: sleeping and waking; lanes that are independent of each other. */
#include <poll.h>

#include "conform/rig.h"

#define LANES 8u
#define BYTES 4096u

/*
 * Arm the consumer. While its fd is readable, disarm and arm the consumer again, because events of
 * the peer can still be in flight.
 */
static void rest(struct rig_queue *q, struct pollfd *p)
{
	uint64_t late = 0;

	*p = (struct pollfd){.fd = rig.ops->consumer_fd(q->rx), .events = POLLIN};
	TEST_ASSERT_TRUE(p->fd >= 0);
	rig_settle();
	while (rig.ops->consumer_arm(q->rx) || poll(p, 1, 0)) {
		rig.ops->consumer_disarm(q->rx);
		rig_wait(&late, 0);
	}
}

/* Wait until the fd of the consumer is readable. The rig must not poll the consumer meanwhile. */
static void wait_rung(struct pollfd *p)
{
	uint64_t late = 0;

	while (poll(p, 1, 1) == 0)
		rig_wait(&late, 0);
}

static void arm_reports_available_messages(void)
{
	struct gantry_msg msg;
	struct rig_queue *q;
	struct pollfd p;
	uint64_t late = 0;
	int rings = 0;

	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, 8, 0);
	rig_warm(q);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->post_recv(q->rx, NULL, 8));
	rest(q, &p);
	q->resting = 1; /* otherwise a turn of the rig would poll and so disarm the consumer */
	TEST_ASSERT_EQUAL_INT(0, rig_send_imm(q, 1));
	wait_rung(&p);
	rig.ops->consumer_disarm(q->rx);
	while (rig.ops->consumer_arm(q->rx) == 0) { /* 0: the message has not arrived yet */
		wait_rung(&p);
		rig.ops->consumer_disarm(q->rx);
		rig_wait(&late, 0);
	}
	rig.ops->consumer_disarm(q->rx);
	q->resting = 0;
	rig_take(q, &msg);
	rest(q, &p);
	rig.ops->consumer_disarm(q->rx);
	/*
	 * the consumer is not armed. The producer can notice this too late, but then it rings the
	 * doorbell only once
	 */
	for (int i = 0; i < 7; i++) {
		TEST_ASSERT_EQUAL_INT(0, rig_send_imm(q, 1));
		rig_take(q, &msg);
		rings += poll(&p, 1, 0);
		rig.ops->consumer_disarm(q->rx);
	}
	TEST_ASSERT_TRUE(rings <= 1);
	rig_queue_close(q);
}

static void flush_rings_for_messages_held_back(void)
{
	struct gantry_send send = {.imm = "x", .imm_len = 1};
	struct rig_queue *q;
	struct pollfd p;
	uint64_t late = 0;
	int rc;

	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, 8, 0);
	rig_warm(q);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->post_recv(q->rx, NULL, 8));
	rest(q, &p);
	q->resting = 1;
	while ((rc = rig.ops->send(q->tx, &send, GANTRY_SEND_MORE)) == -EAGAIN)
		rig_wait(&late, 0);
	TEST_ASSERT_EQUAL_INT(0, rc);
	rig.ops->flush(q->tx);
	wait_rung(&p);
	rig.ops->consumer_disarm(q->rx);
	rig_queue_close(q);
}

/*
 * A producer that fills the queue with GANTRY_SEND_MORE and then finds it full has rung the
 * doorbell.
 */
static void full_queue_rings(void)
{
	struct gantry_send send = {.imm = "x", .imm_len = 1};
	struct rig_queue *q;
	struct pollfd p;
	uint64_t late = 0;
	int n = 0;

	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, 8, 0);
	rig_warm(q);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->post_recv(q->rx, NULL, 8));
	rest(q, &p);
	q->resting = 1;
	while (n < 8) { /* the credit can arrive in several parts */
		int rc = rig.ops->send(q->tx, &send, GANTRY_SEND_MORE);

		TEST_ASSERT_TRUE(rc == 0 || rc == -EAGAIN);
		n += rc == 0;
		rig_wait(&late, rc == 0);
	}
	TEST_ASSERT_EQUAL_INT(-EAGAIN, rig.ops->send(q->tx, &send, GANTRY_SEND_MORE));
	wait_rung(&p);
	rig.ops->consumer_disarm(q->rx);
	q->resting = 0;
	for (struct gantry_msg msg; n > 0; n--)
		rig_take(q, &msg);
	rig_queue_close(q);
}

/*
 * A producer that cannot send more data of a region, because the peer has not read the earlier data
 * yet, has rung the doorbell too.
 */
static void queue_full_of_region_data_rings(void)
{
	uint8_t *buf = rig_local(64);
	struct gantry_token token;
	struct gantry_send send;
	struct gantry_msg msg;
	/* region data fills the queue before the receives are used up */
	struct gantry_queue_attr attr = {.depth = 4, .max_data = 64};
	struct rig_queue *q;
	struct rig_memory m;
	struct pollfd p;
	uint64_t late = 0;
	int n = 0, rc;

	rig_connect();
	rig_memory_open(&m, 4096, GANTRY_REMOTE_READ);
	TEST_ASSERT_EQUAL_INT(
		0, rig.ops->export_region(rig.a.conn, &m.region, GANTRY_REMOTE_READ, 1, &token));
	rig_fence();
	send = (struct gantry_send){.length = 64, .region = &m.region};
	q = rig_queue_open(&rig.b, &rig.a, 8, 64);
	rig.ops->producer_destroy(q->tx);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->producer_create(rig.a.conn, q->id, &attr, &q->tx));
	TEST_ASSERT_EQUAL_INT(0, rig_post(q, buf, 64, 0));
	TEST_ASSERT_EQUAL_INT(0, rig_send(q, &send));
	rig_take(q, &msg);
	rig_take_done(q);
	for (int i = 0; i < 8; i++)
		TEST_ASSERT_EQUAL_INT(0, rig_post(q, buf, 64, 0));
	rest(q, &p);
	q->resting = 1;
	while ((rc = rig.ops->send(q->tx, &send, GANTRY_SEND_MORE)) == 0 || n == 0) {
		TEST_ASSERT_TRUE(rc == 0 || rc == -EAGAIN);
		n += rc == 0;
		rig_wait(&late, rc == 0);
	}
	TEST_ASSERT_EQUAL_INT(-EAGAIN, rc);
	wait_rung(&p);
	rig.ops->consumer_disarm(q->rx);
	q->resting = 0;
	for (; n > 0; n--) {
		rig_take(q, &msg);
		rig_take_done(q);
	}
	rig_queue_close(q);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->revoke_region(rig.a.conn, 1));
	rig_until(rig.a.n_revoked, 1);
	rig_memory_close(&m);
}

/* If one lane has used up its credit, another lane can still send. */
static void lanes_are_independent(void)
{
	struct rig_queue *stuck, *free_lane;
	struct gantry_msg msg;
	uint64_t value = 0;

	rig_connect();
	stuck = rig_queue_open_lanes(&rig.b, 0, &rig.a, 0, 4, 0);
	free_lane = rig_queue_open_lanes(&rig.b, 1, &rig.a, 1, 4, 0);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->post_recv(stuck->rx, NULL, 4));
	for (uint64_t i = 0; i < 4; i++)
		TEST_ASSERT_EQUAL_INT(0, rig_send_imm(stuck, 1000 + i));
	stuck->resting = 1; /* the rig does not take the messages of this lane */
	for (; value < rig_rounds(2000); value++) {
		struct gantry_send send = {.imm = "x", .imm_len = 1};

		TEST_ASSERT_EQUAL_INT(-EAGAIN, rig.ops->send(stuck->tx, &send, 0));
		TEST_ASSERT_EQUAL_INT(0, rig_post(free_lane, NULL, 0, value));
		TEST_ASSERT_EQUAL_INT(0, rig_send_imm(free_lane, value));
		rig_take(free_lane, &msg);
		TEST_ASSERT_EQUAL_UINT64(value, msg.cookie);
		TEST_ASSERT_EQUAL_MEMORY(&value, msg.imm, 8);
	}
	stuck->resting = 0;
	for (uint64_t i = 0; i < 4; i++) {
		uint64_t want = 1000 + i;

		rig_take(stuck, &msg);
		TEST_ASSERT_EQUAL_MEMORY(&want, msg.imm, 8);
	}
	rig_queue_close(free_lane);
	rig_queue_close(stuck);
}

/* Destruction of the consumer or producer of one lane does not affect the other lanes. */
static void lanes_end_by_themselves(void)
{
	struct rig_queue *q[3];
	struct gantry_msg msg;

	rig_connect();
	for (uint32_t i = 0; i < 3; i++)
		q[i] = rig_queue_open_lanes(&rig.b, i, &rig.a, i, 4, 0);
	for (int i = 0; i < 3; i++)
		rig_warm(q[i]);
	rig_queue_close_rx(q[0]);
	rig_queue_close_tx(q[1]);
	rig_until(rig.a.n_down, 1);
	for (uint64_t i = 0; i < 20; i++) {
		TEST_ASSERT_EQUAL_INT(0, rig_post(q[2], NULL, 0, i));
		TEST_ASSERT_EQUAL_INT(0, rig_send_imm(q[2], i));
		rig_take(q[2], &msg);
		TEST_ASSERT_EQUAL_UINT64(i, msg.cookie);
	}
	TEST_ASSERT_EQUAL_INT(0, rig.a.n_closed + rig.b.n_closed);
	for (int i = 0; i < 3; i++)
		rig_queue_close(q[i]);
}

/* Each end numbers its lanes independently: producer and consumer can have different lanes. */
static void lanes_of_different_numbers(void)
{
	struct rig_queue *there, *back;
	struct gantry_msg msg;

	rig_connect();
	there = rig_queue_open_lanes(&rig.b, 5, &rig.a, 0, 4, 0);
	back = rig_queue_open_lanes(&rig.a, 0, &rig.b, 3, 4, 0);
	for (uint64_t i = 0; i < 50; i++) {
		TEST_ASSERT_EQUAL_INT(0, rig_post(there, NULL, 0, i));
		TEST_ASSERT_EQUAL_INT(0, rig_post(back, NULL, 0, ~i));
		TEST_ASSERT_EQUAL_INT(0, rig_send_imm(there, i));
		TEST_ASSERT_EQUAL_INT(0, rig_send_imm(back, ~i));
		rig_take(there, &msg);
		TEST_ASSERT_EQUAL_UINT64(i, msg.cookie);
		TEST_ASSERT_EQUAL_MEMORY(&i, msg.imm, 8);
		rig_take(back, &msg);
		TEST_ASSERT_EQUAL_UINT64(~i, msg.cookie);
	}
	rig_queue_close(back);
	rig_queue_close(there);
}

/* The transport rejects a second consumer on a lane, or supports it. The first one still works. */
static void second_consumer_of_a_lane(void)
{
	struct gantry_queue_attr attr = {.depth = 4};
	struct rig_queue *q;
	struct gantry_msg msg;
	void *second = NULL;
	uint32_t id = 0;
	int rc;

	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, 4, 0);
	rc = rig.ops->consumer_create(rig.b.conn, &attr, &id, &second);
	if (rc == 0) {
		rig_until(rig.a.n_up, 2);
		TEST_ASSERT_TRUE(id != q->id);
		rig.ops->consumer_destroy(second);
		rig_until(rig.a.n_down, 1);
		TEST_ASSERT_EQUAL_UINT(id, rig.a.down);
	} else {
		TEST_ASSERT_TRUE(rc == -EEXIST || rc == -EBUSY);
		rig_fence();
		TEST_ASSERT_EQUAL_INT(1, rig.a.n_up);
	}
	TEST_ASSERT_EQUAL_INT(0, rig_post(q, NULL, 0, 7));
	TEST_ASSERT_EQUAL_INT(0, rig_send_imm(q, 1));
	rig_take(q, &msg);
	TEST_ASSERT_EQUAL_UINT64(7, msg.cookie);
	rig_queue_close(q);
}

/* Returns how many lanes a connection can have if both devices have the limits of rig.info. */
static uint32_t lanes_that_fit(void)
{
	uint32_t each = rig.info.lane_queues ? rig.info.lane_queues : 1, room;

	if (rig.info.max_queues == 0)
		return LANES;
	room = rig.info.max_queues > 2 * rig.info.conn_queues
		       ? (rig.info.max_queues - 2 * rig.info.conn_queues) / 2
		       : 0;
	return room / each < LANES ? room / each : LANES;
}

struct full_lane {
	struct rig_queue *there, *back;
	struct rig_rma *rma;
	uint8_t *local;
};

static void use_lane(struct full_lane *l, uint32_t i, uint32_t round, const struct gantry_region *r,
		     const uint8_t *bytes)
{
	uint32_t value[2] = {i, round};
	struct gantry_send send = {.imm = value, .imm_len = 8};
	struct gantry_msg msg;

	TEST_ASSERT_EQUAL_INT(0, rig_send(l->there, &send));
	TEST_ASSERT_EQUAL_INT(0, rig_send(l->back, &send));
	if (l->rma) {
		rig_fill(l->local, BYTES, i * 1000 + round);
		TEST_ASSERT_EQUAL_INT(
			0, rig_rma_move(l->rma, GANTRY_RMA_WRITE, l->local, r, i * BYTES, BYTES));
		TEST_ASSERT_TRUE(rig_filled(bytes + i * BYTES, BYTES, i * 1000 + round));
	}
	for (int k = 0; k < 2; k++) {
		rig_take(k ? l->back : l->there, &msg);
		TEST_ASSERT_EQUAL_MEMORY(value, msg.imm, 8);
		TEST_ASSERT_EQUAL_INT(0, rig_post(k ? l->back : l->there, NULL, 0, 0));
	}
}

/*
 * Use a connection as a session does: messages in both directions and remote access on each lane.
 */
static void many_lanes(void)
{
	struct gantry_region *r = NULL;
	struct full_lane lane[LANES];
	uint32_t n = lanes_that_fit();
	struct gantry_token token;
	struct rig_memory m;

	TEST_ASSERT_TRUE(n >= 1);
	rig_connect();
	rig_memory_open(&m, LANES * BYTES, GANTRY_REMOTE_WRITE);
	TEST_ASSERT_EQUAL_INT(
		0, rig.ops->export_region(rig.a.conn, &m.region, GANTRY_REMOTE_WRITE, 1, &token));
	rig_fence();
	TEST_ASSERT_EQUAL_INT(0, rig.ops->import_region(rig.b.conn, &token, 0, &r));
	for (uint32_t i = 0; i < n; i++) {
		lane[i] = (struct full_lane){
			.there = rig_queue_open_lanes(&rig.b, i, &rig.a, i, 4, 0),
			.back = rig_queue_open_lanes(&rig.a, i, &rig.b, i, 4, 0),
			.rma = rig_rma_open(&rig.b, 4, i),
			.local = rig_local(BYTES),
		};
		TEST_ASSERT_EQUAL_INT(0, rig.ops->post_recv(lane[i].there->rx, NULL, 4));
		TEST_ASSERT_EQUAL_INT(0, rig.ops->post_recv(lane[i].back->rx, NULL, 4));
	}
	for (uint32_t round = 0; round < 20; round++)
		for (uint32_t i = 0; i < n; i++)
			use_lane(&lane[(i * 5 + round) % n], (i * 5 + round) % n, round, r,
				 m.bytes);
	for (uint32_t i = 0; i < n; i++) {
		rig_rma_close(lane[i].rma);
		rig_queue_close(lane[i].back);
		rig_queue_close(lane[i].there);
	}
	rig.ops->release_region(rig.b.conn, r);
	rig_close();
	rig_memory_close(&m);
}

void lane_cases(void)
{
	RIG_CASE(arm_reports_available_messages);
	RIG_CASE(flush_rings_for_messages_held_back);
	RIG_CASE(full_queue_rings);
	RIG_CASE(queue_full_of_region_data_rings);
	RIG_CASE(lanes_are_independent);
	RIG_CASE(lanes_end_by_themselves);
	RIG_CASE(lanes_of_different_numbers);
	RIG_CASE(second_consumer_of_a_lane);
	RIG_CASE(many_lanes);
}
