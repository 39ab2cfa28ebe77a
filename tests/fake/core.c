/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "core.h"
#include "host.h"
#include "worker.h"

#define HELLO_LANES 2
#define HELLO_DEPTH 4
#define HELLO_REGIONS 2

static int take_step(struct fake_core *fc, enum fake_step step, struct gantry_session *session)
{
	fc->n[step]++;
	fc->session = session;
	if (fc->rc[step] != 0 && fc->rc[step] != -EINPROGRESS && fc->text)
		fc->rh->session_refuse(session, "%s", fc->text);
	return fc->rc[step];
}

static int on_hello(void *role, struct gantry_session *session,
		    const struct gantry_session_attr *attr)
{
	struct fake_core *fc = role;

	if (attr->id != fc->rh->session_id(session))
		fake_fail("core: hello with another id");
	fc->n_open++;
	fc->rh->session_set(session, fc);
	return take_step(fc, FAKE_HELLO, session);
}

static int on_query(void *role, struct gantry_session *session, struct gantry_volume_info *volume)
{
	struct fake_core *fc = role;

	if (fc->rh->session_user(session) != fc)
		fake_fail("core: the session forgot its user");
	*volume = fc->volume;
	return take_step(fc, FAKE_QUERY, session);
}

static int on_region(void *role, struct gantry_session *session, struct gantry_region *region)
{
	if (region->handle == 0)
		fake_fail("core: region without a handle");
	return take_step(role, FAKE_REGION, session);
}

static int terminal_submit(void *self, struct gantry_io *io)
{
	struct fake_core *fc = self;

	if (!fc->hold)
		gantry_fail(io, GANTRY_S_OK);
	else
		fc->held[fc->n_held++] = io;
	return 0;
}

static int on_lane(void *role, struct gantry_session *session, struct gantry_lane *lane,
		   uint32_t index, struct gantry_hop *terminal)
{
	(void)lane;
	(void)index;
	*terminal = (struct gantry_hop){.submit = terminal_submit, .self = role};
	return take_step(role, FAKE_LANE, session);
}

static int on_unexport(void *role, struct gantry_session *session, struct gantry_region *region)
{
	if (region->handle == 0)
		fake_fail("core: unexport of a region without a handle");
	return take_step(role, FAKE_UNEXPORT, session);
}

static int on_start(void *role, struct gantry_session *session)
{
	return take_step(role, FAKE_START, session);
}

static int on_stop(void *role, struct gantry_session *session)
{
	return take_step(role, FAKE_STOP, session);
}

static int on_closed(void *role, struct gantry_session *session, int reason)
{
	struct fake_core *fc = role;

	if (fc->n_open == 0)
		fake_fail("core: closed, but never opened");
	fc->n_open--;
	fc->n_closed++;
	fc->closed_reason = reason;
	fc->session = fc->closed_rc != 0 ? session : NULL;
	return fc->closed_rc;
}

static int role_open(const struct gantry_role_host *rh, const void *conf, void **role_p)
{
	struct fake_core *fc = (void *)(uintptr_t)conf;

	fc->rh = rh;
	*role_p = fc;
	return 0;
}

static int role_start(void *role)
{
	struct fake_core *fc = role;

	return fc->serves ? fc->rh->serve(fc->rh, &fc->server_ops, fc) : 0;
}

static void role_stop(void *role)
{
	struct fake_core *fc = role;

	if (!fc->serves)
		fc->rh->finished(fc->rh, 0);
}

static void role_close(void *role)
{
	(void)role;
}

static void role_report(void *role, struct gantry_writer *w)
{
	(void)role;
	(void)w;
}

static const struct gantry_role_ops role_ops = {
	.open = role_open,
	.start = role_start,
	.stop = role_stop,
	.close = role_close,
	.report = role_report,
	.flags = GANTRY_ROLE_LISTENS,
};

static void on_finished(void *arg, int status)
{
	struct fake_core *fc = arg;

	fc->n_finished++;
	fc->status = status;
}

/* The default of fc->ft.answers: every peer answers a PING. With NULL no peer answers. */
static int answer_question(struct fake_conn *conn, const void *msg, size_t len)
{
	uint8_t buf[GANTRY_CTRL_MAX];
	struct gn_parsed parsed;

	if (gn_frame_parse(msg, len, &parsed) != 0 || parsed.type != GN_FRAME_PING ||
	    parsed.head.id < GN_PING_NEXT || (parsed.head.id & GN_PING_ECHO) != 0)
		return 0;
	len = gn_frame_build(buf, GN_FRAME_PING, parsed.head.id | GN_PING_ECHO, parsed.head.session,
			     NULL, NULL, 0);
	fake_ctrl_send(conn, buf, len);
	return 1;
}

void fake_core_init(struct fake_core *fc)
{
	memset(fc, 0, sizeof(*fc));
	fake_clock_start();
	fake_transport_init(&fc->ft);
	fc->ft.answers = answer_question;
	fc->n_turns = 6;
	fc->ops = &role_ops;
	fc->volume = (struct gantry_volume_info){
		.size = 1 << 20, .block_size = 512, .ops = 0x3f, .max_io = 65536};
	fc->server_ops = (struct gantry_server_ops){
		.hello = on_hello,
		.query = on_query,
		.region = on_region,
		.start = on_start,
		.lane = on_lane,
		.stop = on_stop,
		.closed = on_closed,
		.map_regions = 1,
		.unexport = on_unexport,
	};
	fc->listen = (struct gn_endpoint){
		.name = "volume0",
		.service = "volume0",
		.where = "test:1",
		.control_timeout_ns = 5 * GN_NS_PER_S,
		.heartbeat_ns = GN_NS_PER_S,
		.io_timeout_ns = 10 * GN_NS_PER_S,
		.max_sessions = 8,
		.max_lanes = 4,
		.max_depth = 16,
		.max_regions = 4,
		.max_region_bytes = 3 * 4096,
		.move_memory = 1 << 20,
		.max_half_open = 8,
		.max_peer_queue_memory = 1ull << 30,
	};
	fc->connect = fc->listen;
	fc->connect.where = "test:2";
	fc->connect.connect_timeout_ns = 2 * GN_NS_PER_S;
}

void fake_core_start(struct fake_core *fc, int serves)
{
	struct gn_worker_attr attr = {.name = "lane", .cpu = -1, .driven = fc->driven};
	struct gn_worker *workers[FAKE_CORE_LANES];
	struct gn_role_spec spec = {
		.name = "test",
		.part = {.name = "test", .ops = fc->ops, .conf = fc->conf ? fc->conf : fc},
		.n_lanes = FAKE_CORE_LANES,
		.workers = workers,
		.listen = serves ? &fc->listen : NULL,
		.connects = &fc->connect,
		.n_connects = 1,
		.stages = fc->stages,
		.n_stages = fc->n_stages,
		.finished = on_finished,
		.arg = fc,
	};

	fc->serves = serves;
	fc->loop = gn_loop_create();
	if (!fc->loop || gn_worker_create(&attr, &fc->worker) != 0 ||
	    gn_device_open(fc->loop, "dev0", "fake", &fake_transport_ops, &fc->ft, NULL,
			   &fc->device) != 0)
		fake_fail("core: cannot be made");
	fc->listen.device = fc->connect.device = fc->device;
	for (int i = 0; i < FAKE_CORE_LANES; i++)
		workers[i] = fc->worker;
	if (gn_role_create(fc->loop, &spec, &fc->role) != 0 || gn_role_start(fc->role) != 0)
		fake_fail("core: no role");
	fake_core_turn(fc);
}

static void nothing(void *arg)
{
	(void)arg;
}

/* Make a turn of the driven lane. */
static int drive(struct gn_worker *worker)
{
	int n;

	gn_worker_enter(worker);
	n = gn_worker_turn(worker);
	gn_worker_leave(worker);
	return n;
}

/* A turn of the loop can leave work for the lane, and the reverse: repeat both. */
static void turn_until_asleep(struct fake_core *fc)
{
	int n = 1;

	for (int i = 0; i < 6; i++) {
		gn_loop_turn(fc->loop, -1);
		if (n == 0 && fc->slept())
			return;
		n = drive(fc->worker);
	}
}

void fake_core_turn(struct fake_core *fc)
{
	if (fc->slept) {
		turn_until_asleep(fc);
		return;
	}
	for (unsigned i = 0; i < fc->n_turns; i++) {
		gn_loop_turn(fc->loop, 0);
		if (fc->driven)
			drive(fc->worker);
		for (int j = 0; j < 3 && !fc->driven; j++)
			gn_worker_call(fc->worker, nothing, NULL);
	}
}

void fake_core_pass(struct fake_core *fc, uint64_t ns, uint64_t step_ns)
{
	while (ns > 0) {
		uint64_t step = ns < step_ns ? ns : step_ns;

		fake_clock_advance(step);
		fake_core_turn(fc);
		ns -= step;
	}
}

struct finish {
	struct fake_core *fc;
	unsigned status;
};

static void finish_on_lane(void *arg)
{
	struct finish *f = arg;

	while (f->fc->n_held > 0)
		gantry_fail(f->fc->held[--f->fc->n_held], (enum gantry_status)f->status);
}

void fake_core_finish(struct fake_core *fc, unsigned status)
{
	struct finish f = {fc, status};

	gn_worker_call(fc->worker, finish_on_lane, &f);
	fake_core_turn(fc);
}

void fake_core_fini(struct fake_core *fc)
{
	fc->hold = 0;
	fake_core_finish(fc, GANTRY_S_CANCELED);
	if (fc->n_finished == 0) {
		gn_role_stop(fc->role);
		fake_core_turn(fc);
	}
	if (fc->n_finished != 1)
		fake_fail("core: the role finished %u times", fc->n_finished);
	if (fc->n_open != 0)
		fake_fail("core: %u sessions were not closed", fc->n_open);
	gn_role_destroy(&fc->role);
	gn_device_close(&fc->device);
	gn_worker_destroy(&fc->worker);
	gn_loop_destroy(&fc->loop);
	fake_transport_fini(&fc->ft);
	fake_clock_stop();
}

/* -- the peer -- */

uint64_t fake_session(const struct fake_core *fc, const struct fake_conn *conn)
{
	unsigned i = 0;

	while (fc->ft.conns[i] != conn)
		i++;
	return FAKE_SESSION + i;
}

void fake_ask(struct fake_core *fc, struct fake_conn *conn, unsigned type, uint32_t id,
	      const void *payload, size_t len)
{
	uint8_t buf[GANTRY_CTRL_MAX];

	fake_ctrl_send(conn, buf,
		       gn_frame_build(buf, type, id, fake_session(fc, conn), NULL, payload, len));
	fake_core_turn(fc);
}

int fake_next_frame(struct fake_conn *conn, struct gn_parsed *parsed)
{
	static uint8_t buf[GANTRY_CTRL_MAX];
	size_t len;

	while ((len = fake_ctrl_recv(conn, buf)) != 0) {
		if (gn_frame_parse(buf, len, parsed) != 0)
			fake_fail("core: sent a malformed frame");
		if (parsed->type != GN_FRAME_PING)
			return 1;
	}
	return 0;
}

size_t fake_payload(unsigned type, void *buf)
{
	const struct gn_hello hello = {.version_min = GN_FRAME_VERSION,
				       .version_max = GN_FRAME_VERSION,
				       .epoch = 1,
				       .features = GN_FEATURE_UNEXPORT | GN_FEATURE_VOLUME |
						   GN_FEATURE_LISTS,
				       .lanes = HELLO_LANES,
				       .depth = HELLO_DEPTH,
				       .regions = HELLO_REGIONS};
	const struct gantry_token token = {.handle = 1, .generation = 4096};
	const struct gn_queues queues = {
		.n = HELLO_LANES, .depth = HELLO_DEPTH, .consumer = {11, 12}};
	const struct gn_verdict verdict = {.status = GANTRY_S_CANCELED, .text = "enough"};
	const struct gn_unexport unexport = {.handle = 1};

	switch (type) {
	case GN_FRAME_HELLO:
		memcpy(buf, &hello, sizeof(hello));
		return sizeof(hello);
	case GN_FRAME_EXPORT:
		memcpy(buf, &token, sizeof(token));
		return sizeof(token);
	case GN_FRAME_QUEUES:
		memcpy(buf, &queues, sizeof(queues));
		return sizeof(queues);
	case GN_FRAME_UNEXPORT:
		memcpy(buf, &unexport, sizeof(unexport));
		return sizeof(unexport);
	case GN_FRAME_END:
		memcpy(buf, &verdict, sizeof(verdict));
		return sizeof(verdict);
	default:
		return 0;
	}
}

size_t fake_answer_payload(unsigned type, const struct gn_hello_answer *hello,
			   const struct gn_queues *queues, void *buf)
{
	const struct gantry_volume_info volume = {
		.size = 1 << 20, .block_size = 512, .ops = 0x3f, .max_io = 65536};

	switch (type) {
	case GN_FRAME_HELLO:
		memcpy(buf, hello, sizeof(*hello));
		return sizeof(*hello);
	case GN_FRAME_QUERY:
		memcpy(buf, &volume, sizeof(volume));
		return sizeof(volume);
	case GN_FRAME_QUEUES:
		memcpy(buf, queues, sizeof(*queues));
		return sizeof(*queues);
	default:
		return 0;
	}
}

struct fake_conn *fake_reach(struct fake_core *fc, enum gn_state state)
{
	static const unsigned path[] = {GN_FRAME_HELLO, GN_FRAME_QUERY, GN_FRAME_QUEUES,
					GN_FRAME_START, GN_FRAME_STOP,  GN_FRAME_BYE};
	struct fake_conn *conn = fake_dial(&fc->ft, fc->listen.service);
	uint8_t payload[GANTRY_CTRL_MAX];
	struct gn_parsed p;

	if (!conn)
		fake_fail("core: no listener");
	fake_core_turn(fc);
	for (unsigned i = 0; i < (unsigned)state; i++) {
		fake_ask(fc, conn, path[i], i + 1, payload, fake_payload(path[i], payload));
		if (path[i] == GN_FRAME_STOP && fc->n_held > 0)
			return conn;
		if (!fake_next_frame(conn, &p) || p.type != path[i] || !p.answer ||
		    p.head.id != i + 1 || p.verdict.status != 0)
			fake_fail("core: no answer to %s: %s", gn_frame_name(path[i]),
				  p.verdict.text);
	}
	return conn;
}
