/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parts/resume.c - a client opens its session again while the server still has the older one:
 * core/session with the fake transport of the unit tests
 *
 *     control   the loop of the server; between its turns the peers open the session with several
 *               epochs and secrets
 *     worker    a thread of the product: the lanes of all sessions, which pass IO to the backend
 *     backend   holds each IO and completes it later
 *
 * When core/session asks the role for a new session, the older ones must have ended. None of their
 * IO may be in flight then, or reach the role later.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "fake/core.h"
#include "fake/host.h"
#include "part.h"
#include "pipeline/worker.h"

#define ID 0xabcdefull
#define IOS 8u
#define SESSIONS 8u

enum rival { NO_RIVAL, STALE_EPOCH, SAME_EPOCH, WRONG_SECRET, NO_SECRET, NEWER, RIVALS };

static struct {
	enum rival rival; /* a third HELLO, sent after the second */
	uint32_t n_lanes; /* of each session */
	/* number of IOs of the first session, sent before and after the second HELLO */
	uint32_t n_before, n_after;
	bool closes;     /* the first connection ends before the peer opens the second one */
	bool starts;     /* the newest session is started before the role stops */
	bool slow_close; /* the role delays the end of a session */
} as;

struct session {
	uint32_t epoch, n_in_flight;
	bool open;
	struct gantry_session *session;
};

static struct fake_core fc;
static struct session sessions[SESSIONS];
static uint32_t n_sessions, n_held, n_completed;
static struct {
	struct gantry_io *io;
	struct session *session;
} held[2 * IOS];
static bool holds, at_end, finished, has_held, backend_ended;
static uint8_t secret[GANTRY_SECRET_BYTES];

/* Plain accesses are points in few schedules: most belong to one thread, which opens a session. */
static void tune(struct sim_rates *rates)
{
	rates->plain_points = sim_draw(32) == 0;
	rates->call_one_in = 2u << sim_draw(4);
}

static void begin(void)
{
	as.rival = (enum rival)sim_draw(RIVALS);
	as.n_lanes = sim_draw(8) != 0 ? 1 : 2;
	as.n_before = sim_draw(3);
	as.n_after = sim_draw(3);
	as.closes = sim_draw(4) == 0;
	as.slow_close = sim_draw(4) == 0;
	as.starts = sim_draw(3) == 0;
	holds = sim_draw(4) != 0;
	memset(sessions, 0, sizeof(sessions));
	memset(secret, 0, sizeof(secret));
	n_sessions = n_held = n_completed = 0;
	at_end = finished = has_held = backend_ended = false;
}

/* -- the role -- */

static int on_hello(void *role, struct gantry_session *session,
		    const struct gantry_session_attr *attr)
{
	struct session *s;

	(void)role;
	for (uint32_t i = 0; i < n_sessions; i++)
		PART_CHECK(!sessions[i].open && sessions[i].n_in_flight == 0,
			   "a session is opened again before the older one has ended");
	if (n_sessions == SESSIONS)
		part_fail("too many sessions");
	s = &sessions[n_sessions++];
	*s = (struct session){.epoch = attr->epoch, .open = true, .session = session};
	fc.rh->session_set(session, s);
	return 0;
}

static int on_query(void *role, struct gantry_session *session, struct gantry_volume_info *volume)
{
	(void)role;
	(void)session;
	*volume = fc.volume;
	return 0;
}

static int on_region(void *role, struct gantry_session *session, struct gantry_region *region)
{
	(void)role;
	(void)session;
	(void)region;
	return 0;
}

static int nothing(void *role, struct gantry_session *session)
{
	(void)role;
	(void)session;
	return 0;
}

static void complete(struct session *s, struct gantry_io *io)
{
	s->n_in_flight--;
	n_completed++;
	gantry_fail(io, GANTRY_S_OK);
}

static int submit(void *self, struct gantry_io *io)
{
	struct session *s = self;

	PART_CHECK(s->open, "IO of a session that has ended");
	PART_CHECK(s == &sessions[n_sessions - 1], "IO of an older session");
	s->n_in_flight++;
	if (!holds) {
		complete(s, io);
	} else {
		held[n_held].io = io;
		held[n_held++].session = s;
		part_set(&has_held);
	}
	return 0;
}

static int on_lane(void *role, struct gantry_session *session, struct gantry_lane *lane,
		   uint32_t index, struct gantry_hop *terminal)
{
	(void)role;
	(void)lane;
	(void)index;
	*terminal = (struct gantry_hop){.submit = submit, .self = fc.rh->session_user(session)};
	return 0;
}

static void let_go(void *arg)
{
	struct session *s = arg;

	s->open = false;
	fc.rh->session_continue(s->session, 0);
}

static int on_closed(void *role, struct gantry_session *session, int reason)
{
	struct session *s = fc.rh->session_user(session);

	(void)role;
	(void)reason;
	PART_CHECK(s->open, "a session ends twice");
	PART_CHECK(s->n_in_flight == 0, "a session ends with IO in flight");
	if (as.slow_close) {
		fc.rh->post(fc.rh, let_go, s);
		return -EINPROGRESS;
	}
	s->open = false;
	return 0;
}

static const struct gantry_server_ops server_ops = {.hello = on_hello,
						    .query = on_query,
						    .region = on_region,
						    .start = nothing,
						    .lane = on_lane,
						    .stop = nothing,
						    .closed = on_closed,
						    .map_regions = 1};

/* -- the backend -- */

static void complete_one(void *arg)
{
	(void)arg;
	if (n_held != 0) {
		n_held--;
		complete(held[n_held].session, held[n_held].io);
	}
}

static void *backend(void *arg)
{
	for (;;) {
		part_wait(&has_held);
		if (n_held != 0)
			gn_worker_call(fc.worker, complete_one, NULL);
		else if (at_end)
			break;
		else
			has_held = false;
	}
	part_set(&backend_ended);
	return arg;
}

/* -- the peers -- */

static void turn_some(void)
{
	for (uint32_t n = sim_draw(3); n > 0; n--)
		gn_loop_turn(fc.loop, 0);
}

static void await(struct fake_conn *conn, struct gn_parsed *p)
{
	while (!fake_next_frame(conn, p))
		gn_loop_turn(fc.loop, -1);
}

static void send_frame(struct fake_conn *conn, unsigned type, uint32_t epoch,
		       const uint8_t *with_secret)
{
	uint8_t payload[GANTRY_CTRL_MAX], buf[GANTRY_CTRL_MAX];
	size_t len = fake_payload(type, payload);

	if (type == GN_FRAME_QUEUES)
		memcpy(payload + offsetof(struct gn_queues, n), &as.n_lanes, sizeof(as.n_lanes));
	if (type == GN_FRAME_HELLO) {
		memcpy(payload + offsetof(struct gn_hello, lanes), &as.n_lanes, sizeof(as.n_lanes));
		memcpy(payload + offsetof(struct gn_hello, epoch), &epoch, sizeof(epoch));
		memcpy(payload + offsetof(struct gn_hello, secret), with_secret,
		       GANTRY_SECRET_BYTES);
	}
	fake_ctrl_send(conn, buf, gn_frame_build(buf, type, 9, ID, NULL, payload, len));
}

static struct fake_conn *hello(uint32_t epoch, const uint8_t *with_secret)
{
	struct fake_conn *conn = fake_dial(&fc.ft, fc.listen.service);

	PART_CHECK(conn != NULL, "no listener");
	turn_some();
	send_frame(conn, GN_FRAME_HELLO, epoch, with_secret);
	return conn;
}

static void answered(struct fake_conn *conn, unsigned type, unsigned status, struct gn_parsed *p)
{
	await(conn, p);
	PART_CHECK(p->type == type && p->answer, "the answer to a request has the wrong type");
	PART_CHECK(p->verdict.status == (int)status,
		   status == 0 ? "a request is rejected"
			       : "the server accepts a session that it must reject");
}

static void run(struct fake_conn *conn)
{
	static const unsigned path[] = {GN_FRAME_QUERY, GN_FRAME_EXPORT, GN_FRAME_QUEUES,
					GN_FRAME_START};
	struct gn_parsed p;

	for (unsigned i = 0; i < 4; i++) {
		send_frame(conn, path[i], 0, NULL);
		answered(conn, path[i], 0, &p);
	}
}

static void welcomed(struct fake_conn *conn, uint32_t epoch)
{
	struct gn_hello_answer answer;
	struct gn_parsed p;

	answered(conn, GN_FRAME_HELLO, 0, &p);
	memcpy(&answer, p.payload, sizeof(answer));
	PART_CHECK(answer.epoch == epoch && sessions[n_sessions - 1].epoch == epoch,
		   "the session has the wrong epoch");
	memcpy(secret, answer.secret, sizeof(secret));
}

static void arrive(struct fake_conn *conn, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct gantry_io io = {
			.opcode = GANTRY_OP_READ, .tag = i, .length = 512, .region = 1};
		struct fake_queue *queue = &conn->consumers[i % as.n_lanes];

		turn_some();
		if (queue->conn)
			fake_arrive(queue, &io, GANTRY_IO_WIRE_BYTES);
	}
}

/* Start the newest session, and send IO that completes. */
static void use(struct fake_conn *conn)
{
	const uint32_t n = n_completed;

	run(conn);
	arrive(conn, 2);
	while (n_completed < n + 2)
		gn_loop_turn(fc.loop, 0);
}

/*
 * Send the third HELLO. The server must reject it, unless it is NEWER: then it starts a session.
 * Returns the connection of the newest session, and stores its epoch.
 */
static struct fake_conn *rival(struct fake_conn *second, uint32_t *epoch)
{
	uint8_t wrong[GANTRY_SECRET_BYTES];
	struct gn_parsed p;
	struct fake_conn *conn;

	memcpy(wrong, secret, sizeof(wrong));
	if (as.rival == WRONG_SECRET)
		wrong[sim_draw(GANTRY_SECRET_BYTES)] ^= 1;
	if (as.rival == NO_SECRET)
		memset(wrong, 0, sizeof(wrong));
	turn_some();
	conn = hello(as.rival == STALE_EPOCH  ? 2 + sim_draw(3)
		     : as.rival == SAME_EPOCH ? 5
					      : 9,
		     wrong);
	if (as.rival == NEWER) {
		*epoch = 9;
		return conn;
	}
	answered(conn, GN_FRAME_HELLO, GANTRY_S_ACCESS, &p);
	return second;
}

static void *control(void *arg)
{
	struct fake_conn *first, *newest;
	uint32_t epoch = 5;

	gn_log_set_level(GN_LOG_ERROR);
	fake_core_init(&fc);
	fc.n_turns = 1; /* a schedule is short */
	fc.server_ops = server_ops;
	fake_core_start(&fc, 1);
	first = hello(1, secret);
	welcomed(first, 1);
	run(first);
	arrive(first, as.n_before);
	if (as.closes)
		fake_close(first, -ENOTCONN);
	turn_some();
	newest = hello(epoch, secret);
	arrive(first, as.n_after);
	if (as.rival != NO_RIVAL)
		newest = rival(newest, &epoch);
	welcomed(newest, epoch);
	if (as.starts)
		use(newest);
	at_end = true;
	part_set(&has_held);
	part_wait(&backend_ended);
	gn_role_stop(fc.role);
	while (fc.n_finished == 0)
		gn_loop_turn(fc.loop, -1);
	fake_core_fini(&fc);
	finished = true;
	return arg;
}

static const char *check(void)
{
	return !finished ? "the role does not end" : n_held != 0 ? "an IO has not completed" : NULL;
}

const struct part part_resume = {.name = "resume",
				 .steps = 60000,
				 .tune = tune,
				 .begin = begin,
				 .threads = {control, backend},
				 .check = check};
