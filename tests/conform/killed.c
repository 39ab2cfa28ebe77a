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

/* Create a consumer for the peer, with buffers for 16 messages if they have data. */
static struct rig_queue *consumer_for_the_peer(uint8_t **bufs)
{
	struct gantry_queue_attr attr = {.depth = 16, .max_data = 4096};
	struct rig_queue *q = &rig.queues[0];

	RIG_OK(rig.ops->consumer_create(rig.b.conn, &attr, &q->id, &q->rx));
	q->used = 1;
	for (uint64_t i = 0; i < 16; i++) {
		bufs[i] = rig_local(4096);
		RIG_OK(rig.ops->data ? rig_post_data(q, bufs[i], 4096, i)
				     : rig.ops->post_recv(q->rx, 1));
	}
	return q;
}

static void export_to_the_peer(struct rig_memory *m)
{
	struct gantry_token token;

	rig_memory_open(m, BYTES, 3);
	RIG_OK(rig.ops->export_region(rig.b.conn, &m->region, 3, 4, &token));
	RIG_OK(rig_ctrl(&rig.b, &token, sizeof(token)));
}

static void expect_end_reported_once(void)
{
	peer_await_report(&rig.b.n_closed, 1);
	RIG_RC(-ENOTCONN, rig.b.reason, "reason of `closed` after the death of the peer");
	rig_settle();
	RIG_RC(1, rig.b.n_closed, "number of events `closed` of one connection");
	RIG_RC(-ENOTCONN, rig.ops->send_ctrl(rig.b.conn, "x", 1), "send_ctrl to a dead peer");
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
	RIG_RC(rig.b.n_accept, rig.b.n_closed,
	       "number of events `closed` of all accepted connections");
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
	for (uint64_t late = 0; rig.b.n_msgs == 0;
	     rig_wait(&late, 0, "the message of the peer, which sends five messages first"))
		RIG_RC(0, rig.ops->poll_recv(q->rx, &msg, 0), "poll_recv with room for no message");
	peer_wait();
	peer_kill();
	peer_await_report(&rig.b.n_closed, 1);
	for (; rig_poll(q, &msg, 1) == 1; n++) {
		uint64_t seq = n;

		RIG_SAME(&seq, msg.imm, 8,
			 "immediate data of a dead peer: messages arrive in order");
		if (!rig.ops->data)
			continue;
		RIG_RC(0, msg.status, "status of a message of a dead peer");
		RIG_NUM(length, msg.length, "length of received data");
		RIG_HOLDS(rig_filled(bufs[msg.cookie], length, n), "received data of a dead peer");
	}
	RIG_NUM(5, n, "number of messages that the dead peer had sent");
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
	RIG_RC(0, rig_poll(q, &msg, 1), "poll_recv after a peer died that sent no message");
	rig_queue_close(q);
}

static void peer_is_killed_while_data_is_sent_to_it(void)
{
	struct gantry_queue_attr attr = {.depth = 16, .max_data = 4096};
	struct rig_queue *q = &rig.queues[0];
	struct gantry_send send = {.imm = "x", .imm_len = 1};
	struct gantry_token token;
	struct rig_memory m;

	rig_need(RIG_DATA);
	start("receives", "posted");
	accept_the_peer();
	rig_memory_open(&m, BYTES, 3);
	RIG_OK(rig.ops->export_region(rig.b.conn, &m.region, GANTRY_REMOTE_READ, 4, &token));
	rig_until(rig.b.n_up, 1);
	RIG_OK(rig.ops->producer_create(rig.b.conn, rig.b.up[0], &attr, &q->tx));
	q->used = 1;
	RIG_OK(rig_send_data(q, &send));
	peer_wait();
	peer_stop();
	send.region = &m.region;
	send.length = 4096;
	RIG_OK(rig_send_data(q, &send)); /* the peer dies before it copies the data */
	peer_kill();
	peer_await_report(&rig.b.n_closed, 1);
	RIG_RC(1, rig.b.n_revoked,
	       "number of events `revoked` before `closed`, for one export"); /* reported before `closed` */
	RIG_RC(0, rig.b.revoked_rc, "rc of `revoked` after the death of the peer");
	RIG_RC(-ENOTCONN, rig.ops->data->send(q->tx, &send, 0), "send to a dead peer");
	rig_queue_close(q);
}

static struct gantry_region *import_from_the_peer(void)
{
	struct gantry_region *r = NULL;
	struct gantry_token token;

	start("exports", "exported");
	accept_the_peer();
	rig_until(rig.b.n_msgs, 1);
	memcpy(&token, rig.b.msg, sizeof(token));
	RIG_OK(rig.ops->import_region(rig.b.conn, &token, rig_map(), &r));
	peer_wait();
	return r;
}

static void region_of_a_killed_peer_can_still_be_released(void)
{
	struct gantry_region *r = import_from_the_peer();
	uint8_t *local = rig_local(BYTES);
	struct rig_rma *q = rig_rma_open(&rig.b, 4, 0);

	if (q)
		RIG_OK(rig_rma_move(q, GANTRY_RMA_READ, local, r, 0, BYTES));
	RIG_HOLDS(rig_filled(q ? local : r->addr, BYTES, 77), "imported memory of the peer");
	peer_kill();
	peer_await_report(&rig.b.n_closed, 1);
	if (r->addr)
		RIG_HOLDS(rig_filled(r->addr, BYTES, 77),
			  "imported memory of a dead peer"); /* sealed, so no SIGBUS */
	if (q)
		RIG_RC(-ENOTCONN, rig_rma(q, GANTRY_RMA_READ, local, r, 0, 64, 0),
		       "remote read of the memory of a dead peer");
	rig_rma_close(q);
	rig.ops->release_region(rig.b.conn, r);
}

/* Each remote access completes once, also if it was submitted after the death. */
static void peer_is_killed_while_its_memory_is_read(void)
{
	struct gantry_rma rma = {.local_region = &rig.local, .length = BYTES};
	uint64_t next = 0, ended = 0, late = 0;
	struct gantry_region *r;
	struct rig_rma *q;
	uint8_t *local;
	int rc = 0, n;

	rig_need(RIG_RMA);
	rma.remote = r = import_from_the_peer();
	rma.local = local = rig_local(BYTES);
	q = rig_rma_open(&rig.b, 8, 0);
	RIG_OK(rig_rma_move(q, GANTRY_RMA_READ, local, r, 0, BYTES));
	while (rig.b.n_closed == 0 || ended != next) {
		struct gantry_rma_done done;

		rma.cookie = next;
		rc = rig.b.n_closed ? rc : rig.ops->rma_submit(q->q, &rma);
		if (rc == 0 && !rig.b.n_closed)
			next++;
		rig.ops->rma_flush(q->q);
		n = rig.ops->rma_poll(q->q, &done, 1);
		if (n) {
			RIG_RC(1, n, "rma_poll with room for one operation");
			RIG_NUM(ended++, done.cookie, "cookies of rma_poll come in order");
			RIG_HOLDS(done.status == 0 || done.status == -ENOTCONN,
				  "status of rma_poll around the death of the peer");
		}
		if (ended == 20 && peer.died_ns == 0)
			peer_kill();
		rig_turn();
		rig_wait(&late, n, "rma_poll() to return an operation that rma_submit() accepted");
	}
	RIG_HOLDS(ended >= 20, "remote reads before the death of the peer");
	rig_rma_close(q);
	rig.ops->release_region(rig.b.conn, r);
}

/* The owner of the memory may be needed to read it. */
static void access_to_a_stopped_peer_ends(void)
{
	struct gantry_region *r = import_from_the_peer();
	uint8_t *local = rig_local(BYTES);
	struct rig_rma *q = rig_rma_open(&rig.b, 4, 0);
	int rc;

	if (q)
		RIG_OK(rig_rma_move(q, GANTRY_RMA_READ, local, r, 0, BYTES));
	peer_stop();
	if (q) {
		rc = rig_rma_move(q, GANTRY_RMA_READ, local, r, 0, BYTES);
		RIG_HOLDS(rc == 0 || rc == -ENOTCONN, "status of an access to a stopped peer");
		rig_rma_close(q);
	}
	rig.ops->release_region(rig.b.conn, r);
	peer_kill();
	peer_await_report(&rig.b.n_closed, 1);
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
	RIG_RC(1, rig.b.n_revoked, "number of events `revoked` before `closed`, for one export");
	RIG_NUM(4, rig.b.revoked, "handle of the event `revoked`");
	RIG_RC(0, rig.b.revoked_rc, "rc of `revoked` after the death of the peer");
}

static void peer_is_killed_while_it_writes_an_imported_region(void)
{
	static uint8_t seen[BYTES];
	struct rig_memory m;

	rig_need(RIG_RMA);
	start("imports", "writing");
	accept_the_peer();
	export_to_the_peer(&m);
	peer_wait();
	for (uint64_t late = 0; rig_all(m.bytes, BYTES, 0);)
		rig_wait(&late, 0, "remote writes of the peer");
	peer_kill();
	rig_until(rig.b.n_revoked, 1);
	memcpy(seen, m.bytes, BYTES);
	RIG_RC(0, rig.b.revoked_rc, "rc of `revoked` after the death of the peer");
	peer_await_report(&rig.b.n_closed, 1);
	peer_await_limit();
	RIG_SAME(seen, m.bytes, BYTES, "memory that was reported as revoked: it does not change");
	RIG_RC(1, rig.b.n_revoked, "number of events `revoked` before `closed`, for one export");
}

static void peer_is_killed_before_it_releases_a_revoked_region(void)
{
	struct rig_memory m;

	start("imports", "imported");
	accept_the_peer();
	export_to_the_peer(&m);
	peer_wait();
	RIG_OK(rig.ops->revoke_region(rig.b.conn, 4)); /* gets no reply */
	rig_settle();
	RIG_RC(0, rig.b.n_revoked, "number of events `revoked` while the peer has an import");
	peer_kill();
	peer_await_report(&rig.b.n_closed, 1);
	RIG_RC(1, rig.b.n_revoked, "number of events `revoked` before `closed`, for one export");
	RIG_RC(0, rig.b.revoked_rc, "rc of `revoked` after the death of the peer");
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
	RIG_RC(0, fake_counter(&rig.b.host, "protocol_errors"),
	       "counter protocol_errors: the death of a peer is no protocol error");
}

/* The peer is end b, and this process connects to it. */
static void connected_server_is_killed(void)
{
	peer_start('b', "listens", "accepted");
	for (uint64_t late = 0; rig.a.n_connected == 0;
	     rig_wait(&late, 0, "`connected`: the peer calls listen()")) {
		if (!rig.a.conn || rig.a.n_closed) { /* the peer does not listen yet */
			rig_disconnect(&rig.a);
			rig.a.n_closed = 0;
			rig_start_connect(rig_service(0));
		}
	}
	peer_wait();
	peer_kill();
	peer_await_report(&rig.a.n_closed, 1);
	RIG_RC(-ENOTCONN, rig.a.reason, "reason of `closed` after the death of the peer");
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
	RIG_RC(0, rig.a.n_connected,
	       "number of events `connected` of a listener that never answered");
	RIG_HOLDS(rig.a.reason < 0, "reason of `closed` of a listener that died");
	rig_settle();
	RIG_RC(1, rig.a.n_closed, "number of events `closed` of one connection");
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
	RIG_CASE(access_to_a_stopped_peer_ends);
	RIG_CASE(region_that_a_killed_peer_imported_is_revoked);
	RIG_CASE(peer_is_killed_while_it_writes_an_imported_region);
	RIG_CASE(peer_is_killed_before_it_releases_a_revoked_region);
	RIG_CASE(connection_and_name_of_a_killed_peer_can_be_reused);
	RIG_CASE(connected_server_is_killed);
	RIG_CASE(server_is_killed_before_it_answers);
	RIG_CASE(deaths_are_reported_in_time);
	return UNITY_END();
}
