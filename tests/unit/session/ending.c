/* SPDX-License-Identifier: BSD-3-Clause */
/* The server end of sessions: a session ends once, for any reason, and leaks nothing. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "unit/session/rig.h"

static void session_without_requests_is_ended_unless_it_runs(void)
{
	fake_core_start(&fc, 1);
	for (unsigned state = GN_NEW; state <= GN_STOPPED; state++) {
		struct fake_conn *conn = fake_reach(&fc, (enum gn_state)state);

		for (int i = 0; i < 4; i++) {
			fake_core_pass(&fc, GN_NS_PER_S + GN_NS_PER_S / 5, GN_NS_PER_S / 5);
			if (state != GN_NEW)
				fake_ask(&fc, conn, GN_FRAME_PING, 0, NULL, 0);
		}
		TEST_ASSERT_EQUAL_INT(0, conn->disconnected);
		fake_core_pass(&fc, GN_NS_PER_S / 5, GN_NS_PER_S / 5);
		TEST_ASSERT_EQUAL_INT(state != GN_RUNNING, conn->disconnected);
		if (state == GN_RUNNING)
			fake_close(conn, -ENOTCONN);
		else
			expect_answer(conn, GN_FRAME_END, GANTRY_S_TIMEOUT);
		fake_core_turn(&fc);
	}
	TEST_ASSERT_EQUAL_UINT(GN_STOPPED, fc.n_closed);
}

static unsigned count_pings(struct fake_conn *conn)
{
	uint8_t buf[GANTRY_CTRL_MAX];
	unsigned n = 0;
	size_t len;

	while ((len = fake_ctrl_recv(conn, buf)) != 0) {
		TEST_ASSERT_EQUAL_INT(0, gn_frame_parse(buf, len, &p));
		TEST_ASSERT_EQUAL_HEX64(fake_session(&fc, conn), p.head.session);
		n += p.type == GN_FRAME_PING;
	}
	return n;
}

static void heartbeats_go_out_and_a_silent_peer_is_lost(void)
{
	struct fake_conn *conn;

	fake_core_start(&fc, 1);
	conn = fake_reach(&fc, GN_RUNNING);
	fake_core_pass(&fc, GN_NS_PER_S, GN_NS_PER_S);
	/* the server sends its first PING after two silent intervals; the client earlier */
	TEST_ASSERT_EQUAL_UINT(0, count_pings(conn));
	fake_core_pass(&fc, 3 * GN_NS_PER_S, GN_NS_PER_S);
	TEST_ASSERT_EQUAL_INT(0, conn->disconnected);
	TEST_ASSERT_EQUAL_UINT(3, count_pings(conn));
	fake_ask(&fc, conn, GN_FRAME_PING, GN_PING, NULL, 0);
	/* the server answers a PING, for a peer with a shorter heartbeat */
	TEST_ASSERT_EQUAL_UINT(1, count_pings(conn));
	fake_ask(&fc, conn, GN_FRAME_PING, GN_PING_ECHO, NULL, 0);
	TEST_ASSERT_EQUAL_UINT(0, count_pings(conn));
	fake_core_pass(&fc, 4 * GN_NS_PER_S, GN_NS_PER_S);
	TEST_ASSERT_EQUAL_INT(0, conn->disconnected);
	TEST_ASSERT_EQUAL_UINT(3, count_pings(conn));
	fake_core_pass(&fc, GN_NS_PER_S, GN_NS_PER_S);
	gone(conn, 1);
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, fc.closed_reason);
}

static void server_that_receives_pings_sends_no_heartbeats(void)
{
	struct fake_conn *conn;

	fake_core_start(&fc, 1);
	conn = fake_reach(&fc, GN_RUNNING);
	for (int i = 0; i < 20; i++) {
		fake_core_pass(&fc, GN_NS_PER_S + GN_NS_PER_S / 16, GN_NS_PER_S / 16);
		fake_ask(&fc, conn, GN_FRAME_PING, GN_PING, NULL, 0);
		TEST_ASSERT_EQUAL_UINT(1, count_pings(conn)); /* the answer to the PING */
	}
}

static void no_heartbeat_before_hello(void)
{
	struct fake_conn *conn;

	fake_core_start(&fc, 1);
	conn = fake_reach(&fc, GN_NEW);
	fake_core_pass(&fc, 3 * GN_NS_PER_S, GN_NS_PER_S);
	TEST_ASSERT_EQUAL_UINT(0, conn->n_ctrl);
}

static void end_and_disconnection_end_the_session_in_every_state(void)
{
	unsigned known = 0;

	fake_core_start(&fc, 1);
	for (unsigned state = GN_NEW; state <= GN_STOPPED; state++)
		for (int how = 0; how < 3; how++) {
			struct fake_conn *conn = fake_reach(&fc, (enum gn_state)state);

			known += state != GN_NEW;
			if (how == 0)
				ask(conn, GN_FRAME_END);
			else if (how == 1)
				fake_close(conn, -EPROTO);
			else
				fake_revoke(conn, 1);
			gone(conn, known);
			if (state != GN_NEW)
				TEST_ASSERT_EQUAL_INT(how == 1 ? -EPROTO : -ECONNRESET,
						      fc.closed_reason);
		}
}

static void stop_waits_for_ios_in_flight(void)
{
	struct fake_conn *conn;

	fake_core_start(&fc, 1);
	fc.hold = 1;
	fc.server_ops.map_regions = 0;
	conn = fake_reach(&fc, GN_KNOWN);
	ask(conn, GN_FRAME_EXPORT);
	ask(conn, GN_FRAME_QUEUES);
	ask(conn, GN_FRAME_START);
	arrive(conn, 0, 1);
	arrive(conn, 1, 2);
	TEST_ASSERT_EQUAL_UINT(2, fc.n_held);
	TEST_ASSERT_NULL(fc.held[0]->data);
	while (fake_next_frame(conn, &p))
		;
	ask(conn, GN_FRAME_STOP);
	TEST_ASSERT_EQUAL_INT(0, fake_next_frame(conn, &p));
	fc.rh->session_continue(fc.session, 0); /* no effect: the role has no step in progress */
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_INT(0, fake_next_frame(conn, &p));
	TEST_ASSERT_EQUAL_UINT(0, fc.n[FAKE_STOP]);
	fake_core_finish(&fc, GANTRY_S_OK);
	expect_answer(conn, GN_FRAME_STOP, 0);
	TEST_ASSERT_EQUAL_UINT(1, fc.n[FAKE_STOP]);
	ask(conn, GN_FRAME_BYE);
	gone(conn, 1);
}

static void a_session_that_is_lost_waits_for_its_ios(void)
{
	struct fake_conn *conn;

	fake_core_start(&fc, 1);
	fc.hold = 1;
	conn = fake_reach(&fc, GN_KNOWN);
	ask(conn, GN_FRAME_EXPORT);
	ask(conn, GN_FRAME_QUEUES);
	ask(conn, GN_FRAME_START);
	arrive(conn, 0, 1);
	fake_close(conn, -ENOTCONN);
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_INT(0, conn->disconnected);
	TEST_ASSERT_EQUAL_UINT(0, fc.n_closed);
	fake_core_finish(&fc, GANTRY_S_OK);
	gone(conn, 1);
}

static unsigned n_held_lines;
static char held_line[256];

static void record_held(enum gn_log_level level, const char *source, const char *message)
{
	(void)level;
	(void)source;
	if (strncmp(message, "IOs are not completed", 21) != 0)
		return;
	n_held_lines++;
	snprintf(held_line, sizeof(held_line), "%s", message);
}

/* The log names the IO of the session that does not end, not that of another session. */
static void a_late_end_names_the_ios_of_its_session(void)
{
	struct fake_conn *conns[2];

	fc.listen.control_timeout_ns = GN_NS_PER_S;
	fake_core_start(&fc, 1);
	fc.hold = 1;
	for (int i = 0; i < 2; i++) {
		conns[i] = fake_reach(&fc, GN_KNOWN);
		ask(conns[i], GN_FRAME_EXPORT);
		ask(conns[i], GN_FRAME_QUEUES);
		ask(conns[i], GN_FRAME_START);
		arrive(conns[i], 0, 1);
	}
	n_held_lines = 0;
	gn_log_set_level(GN_LOG_WARN);
	gn_log_set_hook(record_held);
	fake_close(conns[0], -ENOTCONN);
	fake_core_pass(&fc, 2 * GN_NS_PER_S, GN_NS_PER_S);
	gn_log_set_hook(NULL);
	TEST_ASSERT_EQUAL_UINT(1, n_held_lines);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(held_line, "(n=1, lane=0)"), held_line);
	fake_core_finish(&fc, GANTRY_S_OK);
	TEST_ASSERT_EQUAL_INT(1, conns[0]->disconnected);
	TEST_ASSERT_EQUAL_INT(0, conns[1]->disconnected);
}

/*
 * `closed` of a role returns -EINPROGRESS, because the role has exported the regions to another
 * peer. Regions and connection stay until session_continue().
 */
static void role_can_release_a_closed_session_later(void)
{
	struct fake_conn *conn;

	fc.closed_rc = -EINPROGRESS;
	fake_core_start(&fc, 1);
	conn = fake_reach(&fc, GN_KNOWN);
	ask(conn, GN_FRAME_EXPORT);
	ask(conn, GN_FRAME_QUEUES);
	ask(conn, GN_FRAME_START);
	fake_close(conn, -ENOTCONN);
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_UINT(1, fc.n_closed);
	TEST_ASSERT_EQUAL_UINT(1, conn->n_imports);
	TEST_ASSERT_EQUAL_INT(0, conn->disconnected);
	gn_role_stop(fc.role);
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_UINT(0, fc.n_finished);
	fc.rh->session_continue(fc.session, 0);
	/* session_continue() releases nothing: its caller can still use the session */
	TEST_ASSERT_EQUAL_UINT(1, conn->n_imports);
	gone(conn, 1);
	TEST_ASSERT_EQUAL_UINT(1, fc.n_finished);
}

static void peer_that_reads_no_replies_does_not_block_the_stop_of_a_role(void)
{
	struct fake_conn *conn;

	fake_core_start(&fc, 1);
	conn = fake_reach(&fc, GN_KNOWN);
	ask(conn, GN_FRAME_EXPORT);
	ask(conn, GN_FRAME_QUEUES);
	ask(conn, GN_FRAME_START);
	fake_queue_refuse(&conn->producers[0], -EAGAIN);
	arrive(conn, 0, 1);
	while (fake_next_frame(conn, &p))
		;
	ask(conn, GN_FRAME_STOP);
	/* the answer to STOP waits for the reply of the IO, which cannot be sent */
	TEST_ASSERT_EQUAL_INT(0, fake_next_frame(conn, &p));
	gn_role_stop(fc.role);
	gone(conn, 1);
	TEST_ASSERT_EQUAL_UINT(1, fc.n_finished);
}

static void a_queue_that_is_broken_ends_the_session(void)
{
	struct fake_conn *conn;
	uint8_t junk[8] = {0};

	fake_core_start(&fc, 1);
	conn = fake_reach(&fc, GN_RUNNING);
	fake_arrive(&conn->consumers[1], junk, sizeof(junk));
	fake_arrive(&conn->consumers[0], junk, sizeof(junk));
	gone(conn, 1);
	TEST_ASSERT_EQUAL_INT(-EPROTO, fc.closed_reason);
}

static void the_role_stops_with_sessions_in_every_state(void)
{
	struct fake_conn *conns[GN_ENDED];

	fake_core_start(&fc, 1);
	for (unsigned state = GN_NEW; state <= GN_STOPPED; state++)
		conns[state] = fake_reach(&fc, (enum gn_state)state);
	gn_role_stop(fc.role);
	gn_role_stop(fc.role);
	fake_core_turn(&fc);
	for (unsigned state = GN_NEW; state <= GN_STOPPED; state++) {
		TEST_ASSERT_EQUAL_INT(1, conns[state]->disconnected);
		/* BUSY: a client without a session connects again */
		expect_answer(conns[state], GN_FRAME_END,
			      state == GN_NEW ? GANTRY_S_BUSY : GANTRY_S_CANCELED);
		TEST_ASSERT_NOT_NULL(strstr(p.verdict.text, "stops"));
	}
	TEST_ASSERT_EQUAL_UINT(GN_STOPPED, fc.n_closed);
	TEST_ASSERT_EQUAL_UINT(1, fc.n_finished);
	TEST_ASSERT_EQUAL_INT(0, fc.status);
	TEST_ASSERT_NULL(fake_dial(&fc.ft, "volume0"));
}

static void role_that_finishes_ends_its_sessions_first(void)
{
	struct fake_conn *conn;

	fake_core_start(&fc, 1);
	conn = fake_reach(&fc, GN_RUNNING);
	fc.rh->finished(fc.rh, 1);
	fc.rh->finished(fc.rh, 0);
	TEST_ASSERT_EQUAL_UINT(0, fc.n_finished);
	gone(conn, 1);
	TEST_ASSERT_EQUAL_UINT(1, fc.n_finished);
	TEST_ASSERT_EQUAL_INT(1, fc.status);
}

/* -- a stage that holds its IOs until it is drained, while the peer sends more -- */

static struct fake_conn *asker;
static struct gantry_io *kept[4];
static _Atomic unsigned n_kept;

static int keeper_submit(void *self, struct gantry_io *io)
{
	(void)self;
	kept[n_kept++] = io;
	return 0;
}

static void keeper_drain(void *self, const void *owner)
{
	struct gantry_io more = request(7);

	(void)self;
	if (n_kept > 0 && (!owner || kept[0]->owner == owner))
		gantry_fail(kept[--n_kept], GANTRY_S_CANCELED);
	if (asker && asker->consumers[0].conn)
		fake_arrive(&asker->consumers[0], &more, GANTRY_IO_WIRE_BYTES);
}

static int keeper_open(const struct gantry_host *host, const void *conf, void **stage_p)
{
	(void)host;
	(void)conf;
	*stage_p = kept;
	return 0;
}

static int keeper_start(void *stage, struct gantry_lane *lane, void **self_p)
{
	(void)lane;
	*self_p = stage;
	return 0;
}

static void keeper_complete(void *self, struct gantry_io *io)
{
	(void)self;
	gantry_complete(io);
}

static int keeper_poll(void *self)
{
	(void)self;
	return 0;
}

static uint64_t keeper_wake(void *self)
{
	(void)self;
	return 0;
}

static void keeper_end(void *self)
{
	(void)self;
}

static void keeper_report(void *self, struct gantry_writer *w)
{
	(void)self;
	(void)w;
}

enum ending { STOPPED_BY_US, GIVES_UP, IS_LOST };

static void end_with_a_keeper(enum ending how)
{
	static const struct gantry_stage_ops ops = {
		.open = keeper_open,
		.start = keeper_start,
		.submit = keeper_submit,
		.complete = keeper_complete,
		.poll = keeper_poll,
		.wake_ns = keeper_wake,
		.drain = keeper_drain,
		.stop = keeper_end,
		.report = keeper_report,
		.close = keeper_end,
	};
	static const struct gn_plugin_instance part = {.name = "keeper", .ops = &ops};
	struct fake_conn *conn;
	uint8_t imm[GANTRY_IMM_MAX];

	fc.stages = &part;
	fc.n_stages = 1;
	fake_core_start(&fc, 1);
	conn = fake_reach(&fc, GN_KNOWN);
	ask(conn, GN_FRAME_EXPORT);
	ask(conn, GN_FRAME_QUEUES);
	ask(conn, GN_FRAME_START);
	arrive(conn, 0, 1);
	TEST_ASSERT_EQUAL_UINT(1, n_kept);
	asker = conn;
	switch (how) {
	case STOPPED_BY_US:
		gn_role_stop(fc.role);
		break;
	case GIVES_UP:
		fc.rh->finished(fc.rh, 0);
		break;
	case IS_LOST:
		fake_close(conn, -ENOTCONN);
		break;
	}
	if (how != IS_LOST) /* the responder sends no reply CANCELED: the session ends */
		TEST_ASSERT_EQUAL_INT(0, fake_taken(&conn->producers[0], imm));
	gone(conn, 1);
	TEST_ASSERT_EQUAL_UINT(0, n_kept);
	TEST_ASSERT_EQUAL_UINT(how != IS_LOST, fc.n_finished);
	asker = NULL;
}

static void ios_held_by_stages_are_drained_when_the_role_stops(void)
{
	end_with_a_keeper(STOPPED_BY_US);
}

static void ios_held_by_stages_are_drained_when_the_role_finishes(void)
{
	end_with_a_keeper(GIVES_UP);
}

static void ios_held_by_stages_are_drained_when_the_session_is_lost(void)
{
	end_with_a_keeper(IS_LOST);
}

static void client_ready(void *arg, struct gantry_client *client,
			 const struct gantry_volume_info *volume)
{
	(void)arg;
	(void)client;
	(void)volume;
}

static void client_closed(void *arg, struct gantry_client *client, int reason, const char *text)
{
	(void)client;
	(void)text;
	*(int *)arg = reason == 0 ? 1 : reason;
}

static void role_that_finishes_closes_its_client_sessions(void)
{
	static const struct gantry_client_events events = {.ready = client_ready,
							   .closed = client_closed};
	const struct gantry_session_attr attr = {.lanes = 1, .depth = 1};
	struct gantry_client *client;
	int client_reason = 0;

	fake_core_start(&fc, 1);
	TEST_ASSERT_EQUAL_INT(
		0, fc.rh->client_open(fc.rh, 0, &attr, &events, &client_reason, &client));
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_UINT(0, fc.n_finished);
	fc.rh->finished(fc.rh, 0);
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_INT(1, client_reason);
	TEST_ASSERT_EQUAL_UINT(1, fc.n_finished);
}

static void role_finishes_after_exit_after_sessions(void)
{
	struct fake_conn *first, *second, *late;

	fc.listen.exit_after = 2;
	fake_core_start(&fc, 1);
	first = fake_reach(&fc, GN_GREETED);
	second = fake_reach(&fc, GN_NEW);
	fake_close(second, -ENOTCONN); /* not a session, because it has sent no HELLO */
	fake_core_turn(&fc);
	second = fake_reach(&fc, GN_RUNNING);
	fake_close(second, -ENOTCONN);
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_INT(1, second->disconnected);
	TEST_ASSERT_EQUAL_UINT(1, fc.n_closed);
	TEST_ASSERT_EQUAL_UINT(0, fc.n_finished);
	ask(first, GN_FRAME_BYE);
	fake_core_turn(&fc);
	TEST_ASSERT_EQUAL_UINT(1, fc.n_finished);
	late = fake_reach(&fc, GN_NEW);
	TEST_ASSERT_EQUAL_INT(1, late->refused);
}

static void only_permitted_users_can_connect(void)
{
	static const uint32_t uids[] = {4242};
	struct fake_conn *conn;

	fc.listen.max_sessions = 1;
	fake_core_start(&fc, 1);
	fc.ft.peer.uid = getuid() + 1;
	conn = fake_reach(&fc, GN_NEW);
	TEST_ASSERT_EQUAL_INT(1, conn->refused);
	fc.ft.peer.pid = -1; /* a process of another PID namespace */
	TEST_ASSERT_EQUAL_INT(1, fake_reach(&fc, GN_NEW)->refused);
	fc.ft.peer.uid = UINT32_MAX; /* another machine */
	conn = fake_reach(&fc, GN_KNOWN);
	TEST_ASSERT_EQUAL_INT(0, conn->refused);
	fake_close(conn, -ENOTCONN);
	fake_core_turn(&fc);
	fc.listen.uids = uids;
	fc.listen.n_uids = 1;
	fc.ft.peer.uid = getuid();
	TEST_ASSERT_EQUAL_INT(1, fake_reach(&fc, GN_NEW)->refused);
	fc.ft.peer.uid = 4242;
	TEST_ASSERT_EQUAL_INT(0, fake_reach(&fc, GN_NEW)->refused);
	TEST_ASSERT_EQUAL_UINT64(3, counter("sessions_refused"));
}

/* By its flags, the transport reports the uid of every peer, but it reports none for this peer. */
static void peer_without_a_uid_is_rejected_if_the_transport_reports_uids(void)
{
	static struct gantry_transport_ops ops;

	fake_core_start(&fc, 1);
	ops = *fc.device->ops;
	ops.flags = GANTRY_TRANSPORT_UIDS;
	fc.device->ops = &ops;
	fc.ft.peer.pid = -1;
	fc.ft.peer.uid = UINT32_MAX;
	TEST_ASSERT_EQUAL_INT(1, fake_reach(&fc, GN_NEW)->refused);
}

static void data_is_moved_where_regions_cannot_be_mapped(void)
{
	struct gantry_volume_info volume;
	struct fake_conn *conn;
	uint8_t imm[GANTRY_IMM_MAX];

	fc.ft.caps = GANTRY_CAP_RMA;
	fc.volume.max_io = 2 << 20;
	fake_core_start(&fc, 1);
	conn = fake_reach(&fc, GN_GREETED);
	ask(conn, GN_FRAME_QUERY);
	expect_answer(conn, GN_FRAME_QUERY, 0);
	memcpy(&volume, p.payload, sizeof(volume));
	TEST_ASSERT_EQUAL_UINT(1 << 20, volume.max_io);
	ask(conn, GN_FRAME_EXPORT);
	TEST_ASSERT_EQUAL_UINT(GANTRY_IMPORT_KEEPS_PAGES, fc.ft.import_flags);
	ask(conn, GN_FRAME_QUEUES);
	TEST_ASSERT_EQUAL_UINT(2, conn->n_rmas);
	TEST_ASSERT_EQUAL_UINT(2, conn->n_registered);
	TEST_ASSERT_EQUAL_UINT64(1 << 20, conn->registered[0]->length);
	ask(conn, GN_FRAME_START);
	arrive(conn, 0, 1);
	TEST_ASSERT_EQUAL_INT(1, fake_taken(&conn->producers[0], imm));
	TEST_ASSERT_EQUAL_UINT(0, imm[2]);
	ask(conn, GN_FRAME_STOP);
	TEST_ASSERT_EQUAL_UINT(0, conn->n_rmas);
	TEST_ASSERT_EQUAL_UINT(0, conn->n_registered);
	fake_close(conn, -ENOTCONN);
	conn = fake_reach(&fc, GN_KNOWN);
	fake_fail_op(&fc.ft, FAKE_RMA, 2, -ENOTSUP);
	ask(conn, GN_FRAME_QUEUES);
	expect_answer(conn, GN_FRAME_QUEUES, GANTRY_S_UNSUPPORTED);
	gone(conn, 2);
}

static void bounce_memory_is_bounded(void)
{
	struct gantry_volume_info volume;
	struct fake_conn *conn;

	fc.ft.caps = GANTRY_CAP_RMA;
	fc.listen.move_memory = 65536;
	fc.volume.max_io = 2 << 20;
	fake_core_start(&fc, 1);
	conn = fake_reach(&fc, GN_GREETED);
	ask(conn, GN_FRAME_QUERY);
	expect_answer(conn, GN_FRAME_QUERY, 0);
	memcpy(&volume, p.payload, sizeof(volume));
	TEST_ASSERT_EQUAL_UINT(65536, volume.max_io);
	ask(conn, GN_FRAME_QUEUES);
	TEST_ASSERT_EQUAL_UINT64(65536, conn->registered[0]->length);
	fake_close(conn, -ENOTCONN);
	gone(conn, 1);
	fc.volume.max_io = 5000; /* a lane has 4 such IOs in flight */
	conn = fake_reach(&fc, GN_KNOWN);
	ask(conn, GN_FRAME_QUEUES);
	TEST_ASSERT_EQUAL_UINT64(4 * 8192, conn->registered[0]->length);
	fake_close(conn, -ENOTCONN);
	gone(conn, 2);
	conn = fake_reach(&fc, GN_KNOWN);
	fake_fail_op(&fc.ft, FAKE_REGISTER, 2, -ENOMEM);
	ask(conn, GN_FRAME_QUEUES);
	expect_answer(conn, GN_FRAME_QUEUES, GANTRY_S_NOMEM);
	TEST_ASSERT_NOT_NULL(strstr(p.verdict.text, "ulimit -l"));
	gone(conn, 3);
}

static void a_report_and_a_description(void)
{
	struct fake_report *report = malloc(sizeof(*report));

	fake_core_start(&fc, 1);
	fake_reach(&fc, GN_RUNNING);
	fake_report_init(report);
	gn_role_report(fc.role, &report->pub);
	TEST_ASSERT_NOT_NULL(strstr(report->text, "test.sessions.0.state=running\n"));
	fake_report_init(report);
	gn_role_describe(fc.role, &report->pub);
	TEST_ASSERT_NOT_NULL(strstr(report->text, "receives_per_queue=64\n"));
	free(report);
}

/*
 * A queue has two receives for each IO, but at least 64, so that a peer seldom waits for credit,
 * and at most as many as the device supports. Columns: IOs, limit of the device, receives.
 */
static void receives_of_a_queue(void)
{
	static const uint32_t depths[][3] = {{1, 256, 64},    {32, 256, 64}, {33, 256, 66},
					     {100, 256, 200}, {1, 2, 2},     {16, 48, 48}};

	fake_core_start(&fc, 1);
	for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		fc.ft.max_depth = depths[i][1];
		TEST_ASSERT_EQUAL_UINT(depths[i][2],
				       gn_device_queue_depth(fc.device, depths[i][0]));
	}
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(session_without_requests_is_ended_unless_it_runs);
	RUN_TEST(heartbeats_go_out_and_a_silent_peer_is_lost);
	RUN_TEST(server_that_receives_pings_sends_no_heartbeats);
	RUN_TEST(no_heartbeat_before_hello);
	RUN_TEST(end_and_disconnection_end_the_session_in_every_state);
	RUN_TEST(stop_waits_for_ios_in_flight);
	RUN_TEST(a_session_that_is_lost_waits_for_its_ios);
	RUN_TEST(a_late_end_names_the_ios_of_its_session);
	RUN_TEST(role_can_release_a_closed_session_later);
	RUN_TEST(peer_that_reads_no_replies_does_not_block_the_stop_of_a_role);
	RUN_TEST(a_queue_that_is_broken_ends_the_session);
	RUN_TEST(the_role_stops_with_sessions_in_every_state);
	RUN_TEST(role_that_finishes_ends_its_sessions_first);
	RUN_TEST(ios_held_by_stages_are_drained_when_the_role_stops);
	RUN_TEST(ios_held_by_stages_are_drained_when_the_role_finishes);
	RUN_TEST(ios_held_by_stages_are_drained_when_the_session_is_lost);
	RUN_TEST(role_that_finishes_closes_its_client_sessions);
	RUN_TEST(role_finishes_after_exit_after_sessions);
	RUN_TEST(only_permitted_users_can_connect);
	RUN_TEST(peer_without_a_uid_is_rejected_if_the_transport_reports_uids);
	RUN_TEST(data_is_moved_where_regions_cannot_be_mapped);
	RUN_TEST(bounce_memory_is_bounded);
	RUN_TEST(a_report_and_a_description);
	RUN_TEST(receives_of_a_queue);
	return UNITY_END();
}
