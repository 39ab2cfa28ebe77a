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
	RIG_HOLDS(p->fd >= 0, "consumer_fd of a device with the slot consumer_fd");
	rig_settle();
	while (rig.ops->consumer_arm(q->rx) || poll(p, 1, 0)) {
		rig.ops->consumer_disarm(q->rx);
		rig_wait(
			&late, 0,
			"consumer_arm() to return 0 and consumer_fd() not to be readable: no message is left");
	}
}

/* Wait until the fd of the consumer is readable. The rig must not poll the consumer meanwhile. */
static void wait_rung(struct pollfd *p)
{
	uint64_t late = 0;

	while (poll(p, 1, 1) == 0)
		rig_wait(
			&late, 0,
			"consumer_fd() to become readable: the consumer is armed, and a message was sent");
}

static void arm_reports_available_messages(void)
{
	struct gantry_msg msg;
	struct rig_queue *q;
	struct pollfd p;
	uint64_t late = 0;
	int rings = 0;

	rig_need(RIG_SLEEP);
	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, 8, 0);
	rig_warm(q);
	RIG_OK(rig.ops->post_recv(q->rx, 8));
	rest(q, &p);
	q->resting = 1; /* otherwise a turn of the rig would poll and so disarm the consumer */
	RIG_OK(rig_send_imm(q, 1));
	wait_rung(&p);
	rig.ops->consumer_disarm(q->rx);
	while (rig.ops->consumer_arm(q->rx) == 0) { /* 0: the message has not arrived yet */
		wait_rung(&p);
		rig.ops->consumer_disarm(q->rx);
		rig_wait(&late, 0, "consumer_arm() to return 1: a message was sent");
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
		RIG_OK(rig_send_imm(q, 1));
		rig_take(q, &msg);
		rings += poll(&p, 1, 0);
		rig.ops->consumer_disarm(q->rx);
	}
	RIG_HOLDS(rings <= 1, "doorbells of a consumer that is not armed");
	rig_queue_close(q);
}

static void flush_rings_for_messages_held_back(void)
{
	struct rig_queue *q;
	struct pollfd p;
	uint64_t late = 0;
	int rc;

	rig_need(RIG_SLEEP);
	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, 8, 0);
	rig_warm(q);
	RIG_OK(rig.ops->post_recv(q->rx, 8));
	rest(q, &p);
	q->resting = 1;
	while ((rc = rig.ops->send(q->tx, "x", 1, GANTRY_SEND_MORE)) == -EAGAIN)
		rig_wait(&late, 0,
			 "send() not to return -EAGAIN: the consumer has posted receives");
	RIG_RC(0, rc, "send with a posted receive");
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
	struct rig_queue *q;
	struct pollfd p;
	uint64_t late = 0;
	int n = 0;

	rig_need(RIG_SLEEP);
	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, 8, 0);
	rig_warm(q);
	RIG_OK(rig.ops->post_recv(q->rx, 8));
	rest(q, &p);
	q->resting = 1;
	while (n < 8) { /* the credit can arrive in several parts */
		int rc = rig.ops->send(q->tx, "x", 1, GANTRY_SEND_MORE);

		RIG_HOLDS(rc == 0 || rc == -EAGAIN, "send");
		n += rc == 0;
		rig_wait(&late, rc == 0,
			 "send() not to return -EAGAIN: the consumer has posted receives");
	}
	RIG_RC(-EAGAIN, rig.ops->send(q->tx, "x", 1, GANTRY_SEND_MORE),
	       "send without a posted receive");
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

	rig_need(RIG_DATA);
	rig_need(RIG_SLEEP);
	rig_connect();
	rig_memory_open(&m, 4096, GANTRY_REMOTE_READ);
	RIG_OK(rig.ops->export_region(rig.a.conn, &m.region, GANTRY_REMOTE_READ, 1, &token));
	rig_fence();
	send = (struct gantry_send){.length = 64, .region = &m.region};
	q = rig_queue_open(&rig.b, &rig.a, 8, 64);
	rig.ops->producer_destroy(q->tx);
	RIG_OK(rig.ops->producer_create(rig.a.conn, q->id, &attr, &q->tx));
	RIG_OK(rig_post_data(q, buf, 64, 0));
	RIG_OK(rig_send_data(q, &send));
	rig_take(q, &msg);
	rig_take_done(q);
	for (int i = 0; i < 8; i++)
		RIG_OK(rig_post_data(q, buf, 64, 0));
	rest(q, &p);
	q->resting = 1;
	while ((rc = rig.ops->data->send(q->tx, &send, GANTRY_SEND_MORE)) == 0 || n == 0) {
		RIG_HOLDS(rc == 0 || rc == -EAGAIN, "send");
		n += rc == 0;
		rig_wait(
			&late, rc == 0,
			"send() of region data not to return -EAGAIN: the consumer has posted receives");
	}
	RIG_RC(-EAGAIN, rc, "send of region data to a peer that reads none");
	wait_rung(&p);
	rig.ops->consumer_disarm(q->rx);
	q->resting = 0;
	for (; n > 0; n--) {
		rig_take(q, &msg);
		rig_take_done(q);
	}
	rig_queue_close(q);
	RIG_OK(rig.ops->revoke_region(rig.a.conn, 1));
	rig_until(rig.a.n_revoked, 1);
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
	RIG_OK(rig.ops->post_recv(stuck->rx, 4));
	for (uint64_t i = 0; i < 4; i++)
		RIG_OK(rig_send_imm(stuck, 1000 + i));
	stuck->resting = 1; /* the rig does not take the messages of this lane */
	for (; value < rig_rounds(2000); value++) {

		RIG_RC(-EAGAIN, rig.ops->send(stuck->tx, "x", 1, 0),
		       "send without a posted receive");
		RIG_OK(rig.ops->post_recv(free_lane->rx, 1));
		RIG_OK(rig_send_imm(free_lane, value));
		rig_take(free_lane, &msg);
		RIG_SAME(&value, msg.imm, 8, "immediate data");
	}
	stuck->resting = 0;
	for (uint64_t i = 0; i < 4; i++) {
		uint64_t want = 1000 + i;

		rig_take(stuck, &msg);
		RIG_SAME(&want, msg.imm, 8, "immediate data");
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
		RIG_OK(rig.ops->post_recv(q[2]->rx, 1));
		RIG_OK(rig_send_imm(q[2], i));
		rig_take(q[2], &msg);
		RIG_SAME(&i, msg.imm, 8, "immediate data");
	}
	RIG_RC(0, rig.a.n_closed + rig.b.n_closed,
	       "number of events `closed`: the end of a lane does not end the connection");
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
		RIG_OK(rig.ops->post_recv(there->rx, 1));
		RIG_OK(rig.ops->post_recv(back->rx, 1));
		RIG_OK(rig_send_imm(there, i));
		RIG_OK(rig_send_imm(back, ~i));
		rig_take(there, &msg);
		RIG_SAME(&i, msg.imm, 8, "immediate data");
		rig_take(back, &msg);
		RIG_NUM((uint8_t)~i, msg.imm[0], "immediate data");
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
		RIG_HOLDS(id != q->id, "id of a second consumer");
		rig.ops->consumer_destroy(second);
		rig_until(rig.a.n_down, 1);
		RIG_NUM(id, rig.a.down, "id of the destroyed consumer");
	} else {
		RIG_HOLDS(rc == -EEXIST || rc == -EBUSY,
			  "consumer_create for a lane that has a consumer");
		rig_fence();
		RIG_RC(1, rig.a.n_up, "number of announced consumers");
	}
	RIG_OK(rig.ops->post_recv(q->rx, 1));
	RIG_OK(rig_send_imm(q, 1));
	rig_take(q, &msg);
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
	struct gantry_msg msg;

	RIG_OK(rig_send(l->there, value, 8));
	RIG_OK(rig_send(l->back, value, 8));
	if (l->rma) {
		rig_fill(l->local, BYTES, i * 1000 + round);
		RIG_OK(rig_rma_move(l->rma, GANTRY_RMA_WRITE, l->local, r, i * BYTES, BYTES));
		RIG_HOLDS(rig_filled(bytes + i * BYTES, BYTES, i * 1000 + round),
			  "memory after a remote write");
	}
	for (int k = 0; k < 2; k++) {
		rig_take(k ? l->back : l->there, &msg);
		RIG_SAME(value, msg.imm, 8, "immediate data");
		RIG_OK(rig.ops->post_recv((k ? l->back : l->there)->rx, 1));
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

	RIG_HOLDS(n >= 1, "lanes that fit into info.max_queues");
	rig_connect();
	rig_memory_open(&m, LANES * BYTES, GANTRY_REMOTE_WRITE);
	RIG_OK(rig.ops->export_region(rig.a.conn, &m.region, GANTRY_REMOTE_WRITE, 1, &token));
	rig_fence();
	RIG_OK(rig.ops->import_region(rig.b.conn, &token, 0, &r));
	for (uint32_t i = 0; i < n; i++) {
		lane[i] = (struct full_lane){
			.there = rig_queue_open_lanes(&rig.b, i, &rig.a, i, 4, 0),
			.back = rig_queue_open_lanes(&rig.a, i, &rig.b, i, 4, 0),
			.rma = rig_rma_open(&rig.b, 4, i),
			.local = rig_local(BYTES),
		};
		RIG_OK(rig.ops->post_recv(lane[i].there->rx, 4));
		RIG_OK(rig.ops->post_recv(lane[i].back->rx, 4));
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
