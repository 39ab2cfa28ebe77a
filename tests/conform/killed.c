/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * killed.c - conformance: a peer that dies, in any state, damages no other connection. Its death is
 * reported once and in time.
 */
#include "conform/peer.h"

#define BYTES 65536u

/* Start the peer as end a: it connects to the listener of this process. */
static void start(const char *part, const char *step)
{
	if (!rig.b.listener)
		rig_listen(rig_service(0));
	peer_start('a', part, step);
}

static void accept_the_peer(void)
{
	int n = rig.b.n_accept;

	rig_until(rig.b.n_accept, n + 1);
	rig_register(&rig.b);
}

/* Create a consumer of this process for the peer, with buffers for 16 messages. */
static struct rig_queue *consumer_for_the_peer(uint8_t **bufs)
{
	struct gantry_queue_attr attr = {.depth = 16, .max_data = 4096};
	struct rig_queue *q = &rig.queues[0];

	TEST_ASSERT_EQUAL_INT(0, rig.ops->consumer_create(rig.b.conn, &attr, &q->id, &q->rx));
	q->used = 1;
	for (uint64_t i = 0; i < 16; i++) {
		bufs[i] = rig_local(4096);
		TEST_ASSERT_EQUAL_INT(0, rig_post(q, bufs[i], 4096, i));
	}
	return q;
}

static void export_to_the_peer(struct rig_memory *m)
{
	struct gantry_token token;

	rig_memory_open(m, BYTES, 3);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->export_region(rig.b.conn, &m->region, 3, 4, &token));
	TEST_ASSERT_EQUAL_INT(0, rig_ctrl(&rig.b, &token, sizeof(token)));
}

static void expect_end_reported_once(void)
{
	peer_await_report(&rig.b.n_closed, 1);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, rig.b.reason);
	rig_settle();
	TEST_ASSERT_EQUAL_INT(1, rig.b.n_closed);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, rig.ops->send_ctrl(rig.b.conn, "x", 1));
}

static void peer_is_killed_at_rest(void)
{
	start("connects", "connected");
	accept_the_peer();
	peer_wait();
	peer_kill();
	expect_end_reported_once();
}

static void peer_exits_without_cleanup(void)
{
	start("connects", "connected");
	accept_the_peer();
	peer_wait();
	peer_exit();
	expect_end_reported_once();
}

/*
 * The listener can have accepted the peer before the peer died, or not. An accepted connection is
 * reported as closed.
 */
static void peer_is_killed_while_it_connects(void)
{
	for (int i = 0; i < 3; i++) {
		start("connects", "connecting");
		while (!peer_is_there())
			if (i % 2)
				rig_turn();
		peer_kill();
		if (i < 2)
			rig_until(rig.b.n_closed, rig.b.n_accept);
	}
	peer_await_limit();
	TEST_ASSERT_EQUAL_INT(rig.b.n_accept, rig.b.n_closed);
}

static void messages_of_a_killed_peer_can_still_be_received(void)
{
	uint32_t length = rig.info.max_inline < 1000 ? rig.info.max_inline : 1000, n = 0;
	uint8_t *bufs[16];
	struct gantry_msg msg;
	struct rig_queue *q;

	start("sends", "sent");
	accept_the_peer();
	q = consumer_for_the_peer(bufs);
	q->resting = 1;
	/* poll the consumer, which sends credit to the peer */
	for (uint64_t late = 0; rig.b.n_msgs == 0; rig_wait(&late, 0))
		TEST_ASSERT_EQUAL_INT(0, rig.ops->poll_recv(q->rx, &msg, 0));
	peer_wait();
	peer_kill();
	peer_await_report(&rig.b.n_closed, 1);
	for (; rig_poll(q, &msg, 1) == 1; n++) {
		uint64_t seq = n;

		TEST_ASSERT_EQUAL_MEMORY(&seq, msg.imm, 8);
		TEST_ASSERT_EQUAL_INT(0, msg.status);
		TEST_ASSERT_EQUAL_UINT(length, msg.length);
		TEST_ASSERT_TRUE(rig_filled(bufs[msg.cookie], length, n));
	}
	TEST_ASSERT_EQUAL_UINT(5, n);
	rig_queue_close(q);
}

static void peer_is_killed_while_it_can_send(void)
{
	struct gantry_msg msg;
	struct rig_queue *q;
	uint8_t *bufs[16];

	start("sends", "producer");
	accept_the_peer();
	q = consumer_for_the_peer(bufs);
	peer_wait();
	peer_kill();
	peer_await_report(&rig.b.n_closed, 1);
	TEST_ASSERT_EQUAL_INT(0, rig_poll(q, &msg, 1));
	rig_queue_close(q);
}

static void peer_is_killed_while_data_is_sent_to_it(void)
{
	struct gantry_queue_attr attr = {.depth = 16, .max_data = 4096};
	struct rig_queue *q = &rig.queues[0];
	struct gantry_send send = {.imm = "x", .imm_len = 1};
	struct gantry_token token;
	struct rig_memory m;

	start("receives", "posted");
	accept_the_peer();
	rig_memory_open(&m, BYTES, 3);
	TEST_ASSERT_EQUAL_INT(
		0, rig.ops->export_region(rig.b.conn, &m.region, GANTRY_REMOTE_READ, 4, &token));
	rig_until(rig.b.n_up, 1);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->producer_create(rig.b.conn, rig.b.up[0], &attr, &q->tx));
	q->used = 1;
	TEST_ASSERT_EQUAL_INT(0, rig_send(q, &send));
	peer_wait();
	peer_stop();
	send.region = &m.region;
	send.length = 4096;
	TEST_ASSERT_EQUAL_INT(0, rig_send(q, &send)); /* the peer dies before it copies the data */
	peer_kill();
	peer_await_report(&rig.b.n_closed, 1);
	TEST_ASSERT_EQUAL_INT(1, rig.b.n_revoked); /* reported before `closed` */
	TEST_ASSERT_EQUAL_INT(0, rig.b.revoked_rc);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, rig.ops->send(q->tx, &send, 0));
	rig_queue_close(q);
	rig_close();
	rig_memory_close(&m);
}

static struct gantry_region *import_from_the_peer(void)
{
	struct gantry_region *r = NULL;
	struct gantry_token token;

	start("exports", "exported");
	accept_the_peer();
	rig_until(rig.b.n_msgs, 1);
	memcpy(&token, rig.b.msg, sizeof(token));
	TEST_ASSERT_EQUAL_INT(0, rig.ops->import_region(rig.b.conn, &token, rig_map(), &r));
	peer_wait();
	return r;
}

static void region_of_a_killed_peer_can_still_be_released(void)
{
	struct gantry_region *r = import_from_the_peer();
	uint8_t *local = rig_local(BYTES);
	struct rig_rma *q = rig_rma_open(&rig.b, 4, 0);

	TEST_ASSERT_EQUAL_INT(0, rig_rma_move(q, GANTRY_RMA_READ, local, r, 0, BYTES));
	TEST_ASSERT_TRUE(rig_filled(local, BYTES, 77));
	peer_kill();
	peer_await_report(&rig.b.n_closed, 1);
	if (r->addr)
		TEST_ASSERT_TRUE(rig_filled(r->addr, BYTES, 77)); /* sealed, so no SIGBUS */
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, rig_rma(q, GANTRY_RMA_READ, local, r, 0, 64, 0));
	rig_rma_close(q);
	rig.ops->release_region(rig.b.conn, r);
}

/* Each remote access completes once, also if it was submitted after the death. */
static void peer_is_killed_while_its_memory_is_read(void)
{
	struct gantry_region *r = import_from_the_peer();
	uint8_t *local = rig_local(BYTES);
	struct rig_rma *q = rig_rma_open(&rig.b, 8, 0);
	struct gantry_rma rma = {
		.local = local, .local_region = &rig.local, .remote = r, .length = BYTES};
	uint64_t next = 0, ended = 0, late = 0;
	int rc = 0, n;

	TEST_ASSERT_EQUAL_INT(0, rig_rma_move(q, GANTRY_RMA_READ, local, r, 0, BYTES));
	while (rig.b.n_closed == 0 || ended != next) {
		struct gantry_rma_done done;

		rma.cookie = next;
		rc = rig.b.n_closed ? rc : rig.ops->rma_submit(q->q, &rma);
		if (rc == 0 && !rig.b.n_closed)
			next++;
		rig.ops->rma_flush(q->q);
		n = rig.ops->rma_poll(q->q, &done, 1);
		if (n) {
			TEST_ASSERT_EQUAL_INT(1, n);
			TEST_ASSERT_EQUAL_UINT64(ended++, done.cookie);
			TEST_ASSERT_TRUE(done.status == 0 || done.status == -ENOTCONN);
		}
		if (ended == 20 && peer.died_ns == 0)
			peer_kill();
		rig_turn();
		rig_wait(&late, n);
	}
	TEST_ASSERT_TRUE(ended >= 20);
	rig_rma_close(q);
	rig.ops->release_region(rig.b.conn, r);
}

/* A region that the dead peer had imported is reported as revoked, before `closed`. */
static void region_that_a_killed_peer_imported_is_revoked(void)
{
	struct rig_memory m;

	start("imports", "imported");
	accept_the_peer();
	export_to_the_peer(&m);
	peer_wait();
	peer_kill();
	peer_await_report(&rig.b.n_closed, 1);
	TEST_ASSERT_EQUAL_INT(1, rig.b.n_revoked);
	TEST_ASSERT_EQUAL_UINT(4, rig.b.revoked);
	TEST_ASSERT_EQUAL_INT(0, rig.b.revoked_rc);
	rig_close();
	rig_memory_close(&m);
}

static void peer_is_killed_while_it_writes_an_imported_region(void)
{
	static uint8_t seen[BYTES];
	struct rig_memory m;

	start("imports", "writing");
	accept_the_peer();
	export_to_the_peer(&m);
	peer_wait();
	for (uint64_t late = 0; rig_all(m.bytes, BYTES, 0);)
		rig_wait(&late, 0);
	peer_kill();
	rig_until(rig.b.n_revoked, 1);
	memcpy(seen, m.bytes, BYTES);
	TEST_ASSERT_EQUAL_INT(0, rig.b.revoked_rc);
	peer_await_report(&rig.b.n_closed, 1);
	peer_await_limit();
	TEST_ASSERT_EQUAL_MEMORY(seen, m.bytes, BYTES);
	TEST_ASSERT_EQUAL_INT(1, rig.b.n_revoked);
	rig_close();
	rig_memory_close(&m);
}

static void peer_is_killed_before_it_releases_a_revoked_region(void)
{
	struct rig_memory m;

	start("imports", "imported");
	accept_the_peer();
	export_to_the_peer(&m);
	peer_wait();
	TEST_ASSERT_EQUAL_INT(0, rig.ops->revoke_region(rig.b.conn, 4)); /* gets no reply */
	rig_settle();
	TEST_ASSERT_EQUAL_INT(0, rig.b.n_revoked);
	peer_kill();
	peer_await_report(&rig.b.n_closed, 1);
	TEST_ASSERT_EQUAL_INT(1, rig.b.n_revoked);
	TEST_ASSERT_EQUAL_INT(0, rig.b.revoked_rc);
	rig_close();
	rig_memory_close(&m);
}

/*
 * Peers connect and die, one after the other. The listener accepts each next peer, and no death
 * counts as a protocol error.
 */
static void connection_and_name_of_a_killed_peer_can_be_reused(void)
{
	static const char *const steps[] = {"connected", "idle"};

	rig.b.disconnect_on_close = 1;
	for (int i = 0; i < (int)rig_rounds(50); i++) {
		start("connects", steps[i % 2]);
		accept_the_peer();
		if (i % 3)
			peer_wait();
		peer_kill();
		peer_await_report(&rig.b.n_closed, i + 1);
	}
	rig_settle();
	TEST_ASSERT_EQUAL_INT(0, fake_counter(&rig.b.host, "protocol_errors"));
}

/* The peer is end b, and this process connects to it. */
static void connected_server_is_killed(void)
{
	peer_start('b', "listens", "accepted");
	for (uint64_t late = 0; rig.a.n_connected == 0; rig_wait(&late, 0)) {
		if (!rig.a.conn || rig.a.n_closed) { /* the peer does not listen yet */
			rig_disconnect(&rig.a);
			rig.a.n_closed = 0;
			rig_start_connect(rig_service(0));
		}
	}
	peer_wait();
	peer_kill();
	peer_await_report(&rig.a.n_closed, 1);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, rig.a.reason);
}

/* The server listens and never answers: the connection ends when the server dies, or before. */
static void server_is_killed_before_it_answers(void)
{
	peer_start('b', "listens", "listening");
	peer_wait();
	rig_start_connect(rig_service(0));
	rig_settle();
	peer_kill();
	peer_await_report(&rig.a.n_closed, 1);
	TEST_ASSERT_EQUAL_INT(0, rig.a.n_connected);
	TEST_ASSERT_TRUE(rig.a.reason < 0);
	rig_settle();
	TEST_ASSERT_EQUAL_INT(1, rig.a.n_closed);
	rig_disconnect(&rig.a);
	rig_connect(); /* the name of the server is free */
}

static void deaths_are_reported_in_time(void)
{
	peer_times();
}

int main(void)
{
	if (!rig_can_run())
		return 77;
	UNITY_BEGIN();
	RIG_CASE(peer_is_killed_at_rest);
	RIG_CASE(peer_exits_without_cleanup);
	RIG_CASE(peer_is_killed_while_it_connects);
	RIG_CASE(messages_of_a_killed_peer_can_still_be_received);
	RIG_CASE(peer_is_killed_while_it_can_send);
	RIG_CASE(peer_is_killed_while_data_is_sent_to_it);
	RIG_CASE(region_of_a_killed_peer_can_still_be_released);
	RIG_CASE(peer_is_killed_while_its_memory_is_read);
	RIG_CASE(region_that_a_killed_peer_imported_is_revoked);
	RIG_CASE(peer_is_killed_while_it_writes_an_imported_region);
	RIG_CASE(peer_is_killed_before_it_releases_a_revoked_region);
	RIG_CASE(connection_and_name_of_a_killed_peer_can_be_reused);
	RIG_CASE(connected_server_is_killed);
	RIG_CASE(server_is_killed_before_it_answers);
	RIG_CASE(deaths_are_reported_in_time);
	return UNITY_END();
}
