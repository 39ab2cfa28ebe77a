/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client end of sessions. The test is the server, correct or malicious. The core calls `closed`
 * once, as the last callback.
 */
#include "session/role_priv.h"
#include "unit/session/client_rig.h"

static void a_whole_session(void)
{
	uint8_t imm[GANTRY_IMM_MAX];

	reach(OPENED);
	TEST_ASSERT_EQUAL_STRING("volume0", conn->service);
	fake_accept(conn);
	fake_core_turn(&fc);
	answer(GN_FRAME_HELLO);
	answer(GN_FRAME_QUERY);
	TEST_ASSERT_EQUAL_UINT(1, n_ready);
	TEST_ASSERT_EQUAL_INT(0, fc.rh->client_export(client, &region, GANTRY_REMOTE_READ, 1));
	TEST_ASSERT_EQUAL_INT(-EBUSY, fc.rh->client_export(client, &region, GANTRY_REMOTE_READ, 2));
	answer(GN_FRAME_EXPORT);
	TEST_ASSERT_EQUAL_UINT(1, n_exported);
	make_chain();
	TEST_ASSERT_EQUAL_INT(0, fc.rh->client_start(client));
	TEST_ASSERT_EQUAL_INT(-EBUSY, fc.rh->client_start(client));
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, submit());
	answer(GN_FRAME_QUEUES);
	TEST_ASSERT_EQUAL_UINT(22, conn->producers[1].id);
	TEST_ASSERT_NOT_NULL(conn->producers[1].thread);
	TEST_ASSERT_EQUAL_PTR(conn->producers[1].thread, conn->consumers[1].thread);
	TEST_ASSERT_EQUAL_UINT(gn_device_queue_depth(fc.device, DEPTH), conn->consumers[1].posted);
	answer(GN_FRAME_START);
	TEST_ASSERT_EQUAL_UINT(1, n_started);
	TEST_ASSERT_EQUAL_INT(0, submit());
	TEST_ASSERT_EQUAL_INT(1, fake_taken(&conn->producers[1], imm));
	fake_arrive(&conn->consumers[1], imm, GANTRY_IO_WIRE_BYTES);
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_UINT(1, n_io_done);
	TEST_ASSERT_EQUAL_INT(-EBUSY, fc.rh->client_start(client));
	fc.rh->client_close(client);
	fc.rh->client_close(client);
	answer(GN_FRAME_STOP);
	answer(GN_FRAME_BYE);
	closed(0);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, submit());
}

/*
 * Close a session, started (ran 1) or only exported (ran 0), up to the point where the client has
 * revoked its export and waits for the release. The client calls `closed` only after the release.
 */
static void part(int ran)
{
	reach(ran ? STARTED : EXPORTED);
	fc.ft.keeps = 1;
	fc.rh->client_close(client);
	if (ran)
		answer(GN_FRAME_STOP);
	TEST_ASSERT_EQUAL_UINT(0, conn->n_revokes);
	answer(GN_FRAME_BYE);
	TEST_ASSERT_EQUAL_UINT(1, conn->n_revokes);
	TEST_ASSERT_EQUAL_INT(0, conn->disconnected);
	TEST_ASSERT_EQUAL_UINT(0, n_closed);
	TEST_ASSERT_EQUAL_INT(0, fc.rh->client_regions_released(client));
}

static void close_waits_until_the_peer_has_released_the_region(void)
{
	part(1);
	fake_revoked(conn, 1, 0);
	closed(0);
	TEST_ASSERT_EQUAL_INT(1, fc.rh->client_regions_released(client));
}

static void region_whose_revocation_fails_is_not_released(void)
{
	part(1);
	fake_revoked(conn, 1, -ETIMEDOUT);
	closed(0);
	TEST_ASSERT_EQUAL_INT(0, fc.rh->client_regions_released(client));
	again();
	reach(STARTED);
	fake_fail_op(&fc.ft, FAKE_REVOKE, 1, -ENOTSUP);
	fc.rh->client_close(client);
	answer(GN_FRAME_STOP);
	answer(GN_FRAME_BYE);
	closed(0);
	TEST_ASSERT_EQUAL_INT(0, fc.rh->client_regions_released(client));
}

static void close_ends_without_a_region_that_is_not_released_in_time(void)
{
	part(1);
	fake_core_pass(&fc, 4 * GN_NS_PER_S - 1, 4 * GN_NS_PER_S);
	say(GN_FRAME_PING, GN_PING, FAKE_SESSION, NULL, NULL, 0);
	TEST_ASSERT_EQUAL_UINT(0, n_closed);
	fake_core_pass(&fc, GN_NS_PER_S + 1, GN_NS_PER_S + 1);
	closed(0);
	TEST_ASSERT_EQUAL_INT(0, fc.rh->client_regions_released(client));
}

static void peer_can_disconnect_before_it_releases_the_region(void)
{
	part(1);
	fake_close(conn, -ENOTCONN);
	closed(0);
	TEST_ASSERT_EQUAL_INT(0, fc.rh->client_regions_released(client));
	again();
	part(0); /* without IO, no agent can use a buffer */
	fake_close(conn, -ENOTCONN);
	closed(0);
	TEST_ASSERT_EQUAL_INT(1, fc.rh->client_regions_released(client));
}

/* With GANTRY_CAP_DISCONNECT_REVOKES the end of a connection releases its regions. */
static void lost_session_releases_its_region_if_the_transport_revokes_it(void)
{
	for (int quiet = 0; quiet < 2; quiet++) {
		reach(STARTED);
		if (quiet)
			fc.ft.caps |= GANTRY_CAP_DISCONNECT_REVOKES;
		/* the transport released the region unasked, because the peer died */
		fake_revoked(conn, 1, 0);
		fake_close(conn, -ENOTCONN);
		closed(-ENOTCONN);
		TEST_ASSERT_EQUAL_UINT(0, conn->n_revokes);
		TEST_ASSERT_EQUAL_INT(quiet, fc.rh->client_regions_released(client));
		again();
	}
}

static void rejection_at_each_step_closes_the_session(void)
{
	static const struct gn_verdict no = {.status = GANTRY_S_NOSPC, .text = "the quay is full"};

	for (unsigned i = CONNECTED; i < POINTS; i++) {
		reach((enum point)i);
		if (i == READY)
			TEST_ASSERT_EQUAL_INT(0, fc.rh->client_export(client, &region, 3, 1));
		if (i == EXPORTED) {
			make_chain();
			TEST_ASSERT_EQUAL_INT(0, fc.rh->client_start(client));
		}
		if (i == STARTED)
			fc.rh->client_close(client);
		TEST_ASSERT_EQUAL_INT(1, fake_next_frame(conn, &p));
		say(p.type, p.head.id, FAKE_SESSION, &no, NULL, 0);
		closed(-ENOSPC);
		TEST_ASSERT_NOT_NULL(strstr(close_text, "the quay is full"));
		TEST_ASSERT_NOT_NULL(strstr(close_text, "test:2"));
		again();
	}
}

static void unexpected_answers_close_the_session(void)
{
	static const struct gn_verdict ok = {.status = 0};
	uint8_t payload[GANTRY_CTRL_MAX] = {0};

	for (unsigned i = CONNECTED; i < POINTS; i++)
		for (int how = 0; how < 6; how++) {
			unsigned type = pending_at((enum point)i);
			size_t len = answer_payload(type, payload);

			reach((enum point)i);
			if (type != 0)
				asked(type);
			switch (how) {
			case 0:
				say(type ? type : GN_FRAME_START, p.head.id + 1, FAKE_SESSION, &ok,
				    payload, len);
				break;
			case 1:
				say(GN_FRAME_BYE, p.head.id, FAKE_SESSION, &ok, NULL, 0);
				break;
			case 2:
				say(GN_FRAME_QUERY, p.head.id, FAKE_SESSION, NULL, NULL, 0);
				break;
			case 3:
				say(type ? type : GN_FRAME_START, p.head.id, FAKE_SESSION + 1, &ok,
				    payload, len);
				break;
			case 4:
				fake_ctrl_send(conn, "GRY1", 4);
				break;
			default:
				say(type ? type : GN_FRAME_START, p.head.id, FAKE_SESSION, &ok,
				    payload, len + 1);
				break;
			}
			closed(-EPROTO);
			again();
		}
}

static void a_peer_that_answers_with_another_secret_is_lost(void)
{
	static const struct gn_verdict ok = {.status = 0};
	uint8_t payload[GANTRY_CTRL_MAX], secret[GANTRY_SECRET_BYTES], kept[GANTRY_SECRET_BYTES];
	size_t len = answer_payload(GN_FRAME_HELLO, payload);

	memcpy(secret, payload + offsetof(struct gn_hello_answer, secret), sizeof(secret));
	for (unsigned differs = 0; differs < 2; differs++) {
		open_client();
		fc.rh->client_use_secret(client, secret);
		fake_accept(conn);
		fake_core_turn(&fc);
		asked(GN_FRAME_HELLO);
		TEST_ASSERT_EQUAL_MEMORY(
			secret, (const uint8_t *)p.payload + offsetof(struct gn_hello, secret),
			sizeof(secret));
		payload[offsetof(struct gn_hello_answer, secret) + 15] ^= (uint8_t)differs;
		say(GN_FRAME_HELLO, p.head.id, FAKE_SESSION, &ok, payload, len);
		if (differs) {
			closed(-EPROTO);
			TEST_ASSERT_NOT_NULL(strstr(close_text, "another secret"));
			return;
		}
		asked(GN_FRAME_QUERY);
		fc.rh->client_secret(client, kept);
		TEST_ASSERT_EQUAL_MEMORY(secret, kept, sizeof(secret));
		fc.rh->client_abort(client);
		closed(-ECANCELED);
		again();
	}
}

static void invalid_answers_close_the_session(void)
{
	static const struct gn_verdict ok = {.status = 0};
	static const struct {
		enum point point;
		unsigned type;
		size_t at;
		uint32_t value;
	} table[] = {
		{CONNECTED, GN_FRAME_HELLO, offsetof(struct gn_hello_answer, version),
		 GN_FRAME_VERSION + 1},
		{CONNECTED, GN_FRAME_HELLO, offsetof(struct gn_hello_answer, epoch), 7},
		{CONNECTED, GN_FRAME_HELLO, offsetof(struct gn_hello_answer, features), 0x80},
		/* the transport has no GANTRY_CAP_WRITE_IMM */
		{CONNECTED, GN_FRAME_HELLO, offsetof(struct gn_hello_answer, features),
		 GN_FEATURE_NOTES},
		/* all words of the secret are 0: a reply without a secret */
		{CONNECTED, GN_FRAME_HELLO, offsetof(struct gn_hello_answer, secret), 0},
		{GREETED, GN_FRAME_QUERY, offsetof(struct gantry_volume_info, size), 513},
		{GREETED, GN_FRAME_QUERY, offsetof(struct gantry_volume_info, size), 0},
		{GREETED, GN_FRAME_QUERY, offsetof(struct gantry_volume_info, block_size), 0},
		{GREETED, GN_FRAME_QUERY, offsetof(struct gantry_volume_info, block_size), 513},
		{GREETED, GN_FRAME_QUERY, offsetof(struct gantry_volume_info, max_io), 0},
		{EXPORTED, GN_FRAME_QUEUES, offsetof(struct gn_queues, n), 1},
		{EXPORTED, GN_FRAME_QUEUES, offsetof(struct gn_queues, n), UINT32_MAX},
		{EXPORTED, GN_FRAME_QUEUES, offsetof(struct gn_queues, depth), DEPTH - 1},
		{EXPORTED, GN_FRAME_QUEUES, offsetof(struct gn_queues, depth), DEPTH + 1},
	};
	uint8_t payload[GANTRY_CTRL_MAX];

	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		size_t len = answer_payload(table[i].type, payload);

		memcpy(payload + table[i].at, &table[i].value, sizeof(uint32_t));
		reach(table[i].point);
		if (table[i].point == EXPORTED) {
			make_chain();
			TEST_ASSERT_EQUAL_INT(0, fc.rh->client_start(client));
		}
		asked(table[i].type);
		say(table[i].type, p.head.id, FAKE_SESSION, &ok, payload, len);
		closed(-EPROTO);
		again();
	}
}

static void client_tries_to_connect_until_its_deadline(void)
{
	open_client();
	for (int i = 0; i < 40; i++) {
		fake_close(conn, -ECONNREFUSED);
		fake_core_turn(&fc);
		TEST_ASSERT_EQUAL_INT(1, conn->disconnected);
		TEST_ASSERT_EQUAL_UINT(0, n_closed);
		TEST_ASSERT_NULL(fake_pending(&fc.ft));
		fake_core_pass(&fc, 50 * GN_NS_PER_MS, 50 * GN_NS_PER_MS);
		conn = fake_pending(&fc.ft);
		TEST_ASSERT_NOT_NULL(conn);
	}
	fake_close(conn, -ECONNREFUSED);
	closed(-ECONNREFUSED);
	TEST_ASSERT_NOT_NULL(strstr(close_text, "no listener"));
}

static void client_connects_to_a_server_that_starts_late(void)
{
	open_client();
	fake_close(conn, -ECONNREFUSED);
	fake_core_turn(&fc);
	fake_core_pass(&fc, 50 * GN_NS_PER_MS, 50 * GN_NS_PER_MS);
	conn = fake_pending(&fc.ft);
	fake_accept(conn);
	fake_core_turn(&fc);
	/* connecting does not count for the time limit of HELLO */
	fake_core_pass(&fc, 3 * GN_NS_PER_S, GN_NS_PER_S);
	TEST_ASSERT_EQUAL_UINT(0, n_closed);
	answer(GN_FRAME_HELLO);
	answer(GN_FRAME_QUERY);
	TEST_ASSERT_EQUAL_UINT(1, n_ready);
}

static const struct gn_verdict busy = {
	.status = GANTRY_S_BUSY,
	.text = "busy: listen.max_half_open=64 reached by uid 7: raise it or close connections"};

/* After a busy peer ended the last connection, expect that the client connects again. */
static void connects_again(void)
{
	struct fake_conn *last = conn;

	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_UINT(0, n_closed);
	fake_core_pass(&fc, 50 * GN_NS_PER_MS, 50 * GN_NS_PER_MS);
	TEST_ASSERT_EQUAL_INT(1, last->disconnected);
	conn = fake_pending(&fc.ft);
	TEST_ASSERT_NOT_NULL(conn);
}

/*
 * A busy peer rejects the client. how 0: by END, and HELLO cannot be sent; 1: by END, after HELLO;
 * 2: by its reply to HELLO; 3: the transport rejects the connection.
 */
static void reject_as_busy(int how)
{
	if (how == 3) {
		conn->refusal = busy.text;
		fake_close(conn, -EBUSY);
		return;
	}
	fake_accept(conn);
	if (how == 0) /* the connection is lost before HELLO is sent; the client still gets END */
		fake_fail_op(&fc.ft, FAKE_SEND_CTRL, 1, -ENOTCONN);
	if (how != 2)
		say(GN_FRAME_END, 0, 0, &busy, NULL, 0);
	else
		fake_core_turn(&fc);
	if (how == 2) {
		TEST_ASSERT_EQUAL_INT(1, fake_next_frame(conn, &p));
		say(p.type, p.head.id, FAKE_SESSION, &busy, NULL, 0);
	}
	fake_close(conn, -ENOTCONN);
}

static void client_retries_a_busy_server_until_its_deadline(void)
{
	for (int how = 0; how < 4; how++) {
		open_client();
		for (int i = 0; i < 12; i++) { /* limited by FAKE_CONNS */
			reject_as_busy(how);
			connects_again();
		}
		fake_core_pass(&fc, 2 * GN_NS_PER_S - 12 * 50 * GN_NS_PER_MS, GN_NS_PER_S);
		reject_as_busy(how);
		closed(-EBUSY);
		TEST_ASSERT_NOT_NULL_MESSAGE(strstr(close_text, busy.text), close_text);
		TEST_ASSERT_NULL_MESSAGE(strstr(close_text, "no listener"), close_text);
		again();
	}
}

static void client_connects_to_a_server_that_is_no_longer_busy(void)
{
	open_client();
	reject_as_busy(1);
	say(GN_FRAME_END, 0, 1, &busy, NULL, 0); /* the client has no session: it ignores this */
	connects_again();
	fake_accept(conn);
	fake_core_turn(&fc);
	answer(GN_FRAME_HELLO);
	answer(GN_FRAME_QUERY);
	TEST_ASSERT_EQUAL_UINT(1, n_ready);
}

/* Only an END before the reply to HELLO can have session id 0, and it must have a reason. */
static void end_without_a_session_id_is_valid_only_before_the_answer_to_hello(void)
{
	static const struct gn_verdict none = {.status = 0};

	reach(CONNECTED);
	say(GN_FRAME_END, 0, 0, &none, NULL, 0);
	closed(-EPROTO);
	again();
	reach(READY);
	say(GN_FRAME_END, 0, 0, &busy, NULL, 0);
	closed(-EPROTO);
	again();
	reach(CONNECTED);
	say(GN_FRAME_PING, 0, 0, NULL, NULL, 0);
	closed(-EPROTO);
	again();
	reach(CONNECTED);
	TEST_ASSERT_EQUAL_INT(1, fake_next_frame(conn, &p));
	say(p.type, p.head.id, 0, &busy, NULL, 0);
	closed(-EPROTO);
}

static void close_while_a_busy_server_is_waited_for(void)
{
	open_client();
	reject_as_busy(1);
	fake_core_turn(&fc);
	fc.rh->client_close(client);
	closed(0);
	again();
	reach(CONNECTED);
	fc.rh->client_close(client);
	say(GN_FRAME_END, 0, 0, &busy, NULL, 0);
	closed(-EBUSY);
}

static void the_reason_of_a_peer_that_ends_the_connection_is_reported(void)
{
	reach(STARTED);
	conn->refusal = "busy: limit of file descriptors=768 reached";
	fake_close(conn, -ENOTCONN);
	closed(-ENOTCONN);
	TEST_ASSERT_NOT_NULL_MESSAGE(
		strstr(close_text, "the peer is gone: busy: limit of file descriptors=768 reached"),
		close_text);
}

static void a_lost_session_exports_nothing(void)
{
	reach(READY);
	fake_fail_op(&fc.ft, FAKE_SEND_CTRL, 1, -EMFILE);
	TEST_ASSERT_EQUAL_INT(-EMFILE, fc.rh->client_export(client, &region, 3, 1));
	/* the client is lost, and `closed` was not called yet */
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, fc.rh->client_export(client, &region, 3, 1));
	closed(-EMFILE);
}

static void other_errors_of_connect_are_final(void)
{
	open_client();
	fake_close(conn, -EACCES);
	closed(-EACCES);
	again();
	fake_fail_op(&fc.ft, FAKE_CONNECT, 1, -EINVAL);
	TEST_ASSERT_EQUAL_INT(
		0,
		fc.rh->client_open(fc.rh, 0, &(struct gantry_session_attr){.lanes = 1, .depth = 1},
				   &events, NULL, &client));
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_UINT(1, n_closed);
	TEST_ASSERT_EQUAL_INT(-EINVAL, close_reason);
}

static void connect_times_out_if_the_listener_never_accepts(void)
{
	open_client();
	fake_core_pass(&fc, 5 * GN_NS_PER_S - 1, GN_NS_PER_S);
	TEST_ASSERT_EQUAL_UINT(0, n_closed);
	fake_core_pass(&fc, 1, 1);
	closed(-ETIMEDOUT);
	TEST_ASSERT_NOT_NULL(strstr(close_text, "connect"));
}

static void each_answer_has_a_deadline(void)
{
	for (unsigned i = CONNECTED; i < POINTS; i++) {
		reach((enum point)i);
		if (i == STARTED)
			fc.rh->client_close(client);
		else if (pending_at((enum point)i) == 0)
			TEST_ASSERT_EQUAL_INT(0, fc.rh->client_export(client, &region, 3, 2));
		fake_core_turn(&fc);
		/* the server sends PING, but no reply; START has twice the time limit of others */
		for (int s = 0; s < (pending_at((enum point)i) == GN_FRAME_START ? 9 : 4); s++) {
			fake_core_pass(&fc, GN_NS_PER_S, GN_NS_PER_S);
			say(GN_FRAME_PING, 0, FAKE_SESSION, NULL, NULL, 0);
		}
		TEST_ASSERT_EQUAL_UINT(0, n_closed);
		fake_core_pass(&fc, GN_NS_PER_S, GN_NS_PER_S);
		closed(-ETIMEDOUT);
		again();
	}
}

static void a_silent_server_is_lost(void)
{
	reach(STARTED);
	fake_core_pass(&fc, 4 * GN_NS_PER_S, GN_NS_PER_S);
	TEST_ASSERT_EQUAL_UINT(0, n_closed);
	fake_core_pass(&fc, GN_NS_PER_S, GN_NS_PER_S);
	closed(-ETIMEDOUT);
	TEST_ASSERT_NOT_NULL(strstr(close_text, "heartbeat"));
}

static void end_and_disconnection_close_the_session_in_every_state(void)
{
	static const struct gn_verdict why = {.status = GANTRY_S_READ_ONLY, .text = "low tide"},
				       none = {.status = 0};

	for (unsigned i = CONNECTED; i < POINTS; i++)
		for (int how = 0; how < 3; how++) {
			reach((enum point)i);
			if (how == 0)
				say(GN_FRAME_END, 0, FAKE_SESSION, &why, NULL, 0);
			else if (how == 1)
				say(GN_FRAME_END, 0, FAKE_SESSION, &none, NULL, 0);
			else
				fake_close(conn, -ENOTCONN);
			closed(how == 0 ? -EROFS : how == 1 ? -ECONNRESET : -ENOTCONN);
			if (how == 0)
				TEST_ASSERT_NOT_NULL(strstr(close_text, "low tide"));
			again();
		}
}

static void close_is_possible_at_every_point(void)
{
	for (unsigned i = OPENED; i < POINTS; i++) {
		unsigned type = pending_at((enum point)i), ready;

		reach((enum point)i);
		ready = n_ready;
		fc.rh->client_close(client);
		fake_core_turn(&fc);
		if (type != 0) {
			answer(type); /* the client finishes the step in progress first */
			TEST_ASSERT_EQUAL_UINT(ready, n_ready);
		}
		if (i >= QUEUED)
			answer(GN_FRAME_STOP);
		if (i >= CONNECTED)
			answer(GN_FRAME_BYE);
		closed(0);
		again();
	}
}

static void close_before_the_first_connect(void)
{
	const struct gantry_session_attr attr = {.lanes = 1, .depth = 1};

	TEST_ASSERT_EQUAL_INT(0, fc.rh->client_open(fc.rh, 0, &attr, &events, NULL, &client));
	fc.rh->client_close(client);
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_UINT(1, n_closed);
	TEST_ASSERT_EQUAL_INT(0, close_reason);
	TEST_ASSERT_EQUAL_UINT(0, fc.ft.n_conns);
}

static unsigned count_cells(void)
{
	unsigned n = 0;

	for (const struct gn_counter *c = fc.role->host.counters; c; c = c->next)
		n++;
	return n;
}

/* A gateway opens and ends many client sessions: their counters must be removed. */
static void ended_sessions_leave_no_counters(void)
{
	unsigned first = 0;

	for (unsigned i = 0; i < 4; i++) {
		reach(STARTED);
		fc.rh->client_abort(client);
		fake_core_turn(&fc);
		TEST_ASSERT_EQUAL_UINT(i + 1, n_closed);
		gn_chain_destroy(chain);
		chain = NULL;
		fc.rh->client_free(client);
		client = NULL;
		if (i == 0)
			first = count_cells();
	}
	TEST_ASSERT_EQUAL_UINT(first, count_cells());
}

static void close_while_the_client_waits_to_reconnect(void)
{
	open_client();
	fake_close(conn, -ECONNREFUSED);
	fake_core_turn(&fc);
	fc.rh->client_close(client);
	fake_core_pass(&fc, GN_NS_PER_S, GN_NS_PER_S / 4);
	closed(0);
	TEST_ASSERT_EQUAL_UINT(1, fc.ft.n_conns);
}

static void close_from_inside_ready(void)
{
	close_in_ready = 1;
	reach(READY);
	answer(GN_FRAME_BYE);
	closed(0);
}

static void ios_in_flight_complete_before_closed(void)
{
	reach(STARTED);
	TEST_ASSERT_EQUAL_INT(0, submit());
	TEST_ASSERT_EQUAL_UINT(0, n_io_done);
	fake_close(conn, -ENOTCONN);
	closed(-ENOTCONN);
	TEST_ASSERT_EQUAL_UINT(1, n_io_done);
	TEST_ASSERT_EQUAL_INT(1, io_done_before_closed);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_SESSION_LOST, io_status);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, submit());
}

static int rc_on_lane_1;

/* In the completion of an IO of lane 0, submit an IO on lane 1. One thread runs both lanes. */
static void submit_on_lane_1(void *self, struct gantry_io *io)
{
	(void)self;
	if (gantry_io_end(io) != 0)
		fake_fail("completed twice");
	submit_on_lane(&rc_on_lane_1);
}

static void submit_on_lane_0(void *arg)
{
	struct gantry_io *io = arg;

	gantry_io_begin(io, gn_now_ns());
	io->opcode = GANTRY_OP_WRITE;
	io->length = 512;
	TEST_ASSERT_EQUAL_INT(0, gantry_submit(io));
}

/* The peer can execute the lost write late, so no lane must send a write that overlaps it. */
static void no_lane_sends_after_the_write_of_another_is_lost(void)
{
	static const struct gn_verdict none = {.status = 0};
	struct gantry_hop owner = {.submit = no_submit, .complete = submit_on_lane_1}, terminal;
	struct gantry_chain *chain_0;
	struct gantry_io *ios_0;

	reach(STARTED);
	TEST_ASSERT_EQUAL_INT(0, fc.rh->client_hop(client, 0, fc.rh->lane(fc.rh, 0), &terminal));
	TEST_ASSERT_EQUAL_INT(0, fc.rh->chain_create(fc.rh->lane(fc.rh, 0), &owner, &terminal, NULL,
						     1, &chain_0, &ios_0));
	gn_worker_call(fc.worker, submit_on_lane_0, &ios_0[0]);
	rc_on_lane_1 = 1;
	say(GN_FRAME_END, 0, FAKE_SESSION, &none, NULL, 0);
	closed(-ECONNRESET);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, rc_on_lane_1);
	gn_chain_destroy(chain_0);
}

static void forged_answer_to_an_io_closes_the_session(void)
{
	struct gantry_io wire = {.tag = 0x12340001};

	reach(STARTED);
	fake_arrive(&conn->consumers[1], &wire, GANTRY_IO_WIRE_BYTES);
	closed(-EPROTO);
	TEST_ASSERT_NOT_NULL(strstr(close_text, "unexpected reply"));
}

static void transport_errors_are_returned_or_close_the_session(void)
{
	static const struct {
		enum fake_op op;
		unsigned in;
	} table[] = {
		{FAKE_CONSUMER, 1}, {FAKE_CONSUMER, 2}, {FAKE_POST_RECV, 1}, {FAKE_POST_RECV, 2}};

	reach(READY);
	fake_fail_op(&fc.ft, FAKE_EXPORT, 1, -ENOMEM);
	TEST_ASSERT_EQUAL_INT(-ENOMEM, fc.rh->client_export(client, &region, 3, 1));
	TEST_ASSERT_EQUAL_INT(-EINVAL, fc.rh->client_start(client)); /* no chain yet */
	make_chain();
	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		fake_fail_op(&fc.ft, table[i].op, table[i].in, -ENOMEM);
		TEST_ASSERT_EQUAL_INT(-ENOMEM, fc.rh->client_start(client));
		TEST_ASSERT_EQUAL_UINT(0, conn->n_consumers);
	}
	TEST_ASSERT_EQUAL_INT(0, fc.rh->client_start(client));
	fake_fail_op(&fc.ft, FAKE_PRODUCER, 2, -EMFILE);
	answer(GN_FRAME_QUEUES);
	closed(-EMFILE);
	TEST_ASSERT_EQUAL_UINT(0, conn->n_producers);
	again();
	reach(READY);
	fake_fail_op(&fc.ft, FAKE_SEND_CTRL, 1, -EAGAIN);
	TEST_ASSERT_EQUAL_INT(-EAGAIN, fc.rh->client_export(client, &region, 3, 1));
	closed(-EAGAIN);
}

static void invalid_session_attributes_are_rejected(void)
{
	struct gantry_session_attr attr = {.lanes = 1, .depth = 1};
	struct gantry_client *c;

	TEST_ASSERT_EQUAL_INT(-EINVAL, fc.rh->client_open(fc.rh, 1, &attr, &events, NULL, &c));
	attr.lanes = 0;
	TEST_ASSERT_EQUAL_INT(-EINVAL, fc.rh->client_open(fc.rh, 0, &attr, &events, NULL, &c));
	attr.lanes = GN_MAX_LANES + 1;
	TEST_ASSERT_EQUAL_INT(-EINVAL, fc.rh->client_open(fc.rh, 0, &attr, &events, NULL, &c));
	attr.lanes = 1;
	attr.depth = 0;
	TEST_ASSERT_EQUAL_INT(-EINVAL, fc.rh->client_open(fc.rh, 0, &attr, &events, NULL, &c));
	fc.rh->client_free(NULL);
}

static void destroyed_role_destroys_its_clients(void)
{
	reach(STARTED);
	TEST_ASSERT_EQUAL_INT(0, submit());
	/* tearDown destroys the role with an open session: the core must not call `closed` */
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(a_whole_session);
	RUN_TEST(close_waits_until_the_peer_has_released_the_region);
	RUN_TEST(region_whose_revocation_fails_is_not_released);
	RUN_TEST(close_ends_without_a_region_that_is_not_released_in_time);
	RUN_TEST(peer_can_disconnect_before_it_releases_the_region);
	RUN_TEST(lost_session_releases_its_region_if_the_transport_revokes_it);
	RUN_TEST(rejection_at_each_step_closes_the_session);
	RUN_TEST(unexpected_answers_close_the_session);
	RUN_TEST(invalid_answers_close_the_session);
	RUN_TEST(a_peer_that_answers_with_another_secret_is_lost);
	RUN_TEST(client_tries_to_connect_until_its_deadline);
	RUN_TEST(client_connects_to_a_server_that_starts_late);
	RUN_TEST(client_retries_a_busy_server_until_its_deadline);
	RUN_TEST(client_connects_to_a_server_that_is_no_longer_busy);
	RUN_TEST(end_without_a_session_id_is_valid_only_before_the_answer_to_hello);
	RUN_TEST(close_while_a_busy_server_is_waited_for);
	RUN_TEST(the_reason_of_a_peer_that_ends_the_connection_is_reported);
	RUN_TEST(a_lost_session_exports_nothing);
	RUN_TEST(other_errors_of_connect_are_final);
	RUN_TEST(connect_times_out_if_the_listener_never_accepts);
	RUN_TEST(each_answer_has_a_deadline);
	RUN_TEST(a_silent_server_is_lost);
	RUN_TEST(end_and_disconnection_close_the_session_in_every_state);
	RUN_TEST(close_is_possible_at_every_point);
	RUN_TEST(close_before_the_first_connect);
	RUN_TEST(ended_sessions_leave_no_counters);
	RUN_TEST(close_while_the_client_waits_to_reconnect);
	RUN_TEST(close_from_inside_ready);
	RUN_TEST(ios_in_flight_complete_before_closed);
	RUN_TEST(no_lane_sends_after_the_write_of_another_is_lost);
	RUN_TEST(forged_answer_to_an_io_closes_the_session);
	RUN_TEST(transport_errors_are_returned_or_close_the_session);
	RUN_TEST(invalid_session_attributes_are_rejected);
	RUN_TEST(destroyed_role_destroys_its_clients);
	return UNITY_END();
}
