/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session.c - a role that serves sessions, with a peer that sends any frame at any time, a
 * transport that fails, and a slow role
 *
 * The input is a list of steps, see step(). At the end the role is stopped, and must have finished:
 * each session that sent HELLO was closed exactly once, and no connection, queue, region, IO or
 * file descriptor leaks. fake_core_fini checks all of these except file descriptors. The role must
 * get the steps of each session in their order: see check_order().
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "fake/core.h"
#include "fuzz/quick_fd.h"
#include "fuzz/require.h"
#include "fuzz/rewind.h"

#define STEPS 48
#define PEERS 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz {
	const uint8_t *data;
	size_t left;
	struct fake_core fc;
	struct fake_conn *peers[PEERS], *peer; /* peer: the connection of the current step */
};

/* -- the order of steps -- */

#define SESSIONS 64

static struct order {
	struct gantry_session *session;
	unsigned steps; /* bits: enum fake_step */
} orders[SESSIONS];
static struct gantry_server_ops fake; /* the operations of fake/core.c */

static struct order *order_of(const struct gantry_session *session)
{
	for (unsigned i = 0; i < SESSIONS; i++)
		if (orders[i].session == session)
			return &orders[i];
	return NULL;
}

/* Check that the session has done all steps `after` and no step of `before`, and record `step`. */
static void check_order(const struct gantry_session *session, enum fake_step step, unsigned after,
			unsigned before)
{
	struct order *o = order_of(session);

	require(o && (o->steps & after) == after && (o->steps & before) == 0);
	o->steps |= 1u << step;
}

static int on_hello(void *role, struct gantry_session *session,
		    const struct gantry_session_attr *attr)
{
	struct order *o = order_of(NULL);

	require(o && !order_of(session));
	*o = (struct order){session, 1u << FAKE_HELLO};
	require(attr->lanes >= 1 && attr->depth >= 1 && attr->epoch != 0);
	return fake.hello(role, session, attr);
}

static int on_query(void *role, struct gantry_session *session, struct gantry_volume_info *volume)
{
	check_order(session, FAKE_QUERY, 1u << FAKE_HELLO, 1u << FAKE_START | 1u << FAKE_STOP);
	return fake.query(role, session, volume);
}

static int on_region(void *role, struct gantry_session *session, struct gantry_region *region)
{
	check_order(session, FAKE_REGION, 1u << FAKE_QUERY, 1u << FAKE_STOP);
	return fake.region(role, session, region);
}

static int on_unexport(void *role, struct gantry_session *session, struct gantry_region *region)
{
	check_order(session, FAKE_UNEXPORT, 1u << FAKE_REGION, 1u << FAKE_STOP);
	return fake.unexport(role, session, region);
}

static int on_lane(void *role, struct gantry_session *session, struct gantry_lane *lane,
		   uint32_t index, struct gantry_hop *terminal)
{
	check_order(session, FAKE_LANE, 1u << FAKE_QUERY, 1u << FAKE_START | 1u << FAKE_STOP);
	return fake.lane(role, session, lane, index, terminal);
}

static int on_start(void *role, struct gantry_session *session)
{
	check_order(session, FAKE_START, 1u << FAKE_LANE, 1u << FAKE_START | 1u << FAKE_STOP);
	return fake.start(role, session);
}

static int on_stop(void *role, struct gantry_session *session)
{
	check_order(session, FAKE_STOP, 1u << FAKE_START, 1u << FAKE_STOP);
	return fake.stop(role, session);
}

static int on_closed(void *role, struct gantry_session *session, int reason)
{
	struct order *o = order_of(session);

	require(o != NULL);
	o->session = NULL;
	return fake.closed(role, session, reason);
}

static void watch_order(struct gantry_server_ops *ops)
{
	memset(orders, 0, sizeof(orders));
	fake = *ops;
	ops->hello = on_hello;
	ops->query = on_query;
	ops->region = on_region;
	ops->lane = on_lane;
	ops->start = on_start;
	ops->stop = on_stop;
	ops->closed = on_closed;
	ops->unexport = on_unexport;
}

/* -- the peer -- */

static unsigned byte(struct fuzz *f)
{
	if (f->left == 0)
		return 0;
	f->left--;
	return *f->data++;
}

/* Replace bytes of a message. The input has their number, then the position and value of each. */
static void patch(struct fuzz *f, uint8_t *msg, size_t len)
{
	for (unsigned n = byte(f) % 8; n > 0; n--) {
		size_t at = byte(f) | (byte(f) & 1) << 8;
		unsigned value = byte(f);

		if (at < len)
			msg[at] = (uint8_t)value;
	}
}

static void say_frame(struct fuzz *f)
{
	static const struct gn_verdict fine = {.status = 0};
	uint8_t payload[GANTRY_CTRL_MAX], msg[GANTRY_CTRL_MAX];
	unsigned type = byte(f), id = byte(f);
	size_t len = fake_payload(type & 0xf, payload);

	/*
	 * A HELLO with an id without bit 0x40 has always the same secret, so that a later one can
	 * present the secret of a session. The other HELLOs have none: then the server creates a
	 * secret, which these peers do not read from the answer.
	 */
	if ((type & 0xf) == GN_FRAME_HELLO && !(id & 0x40))
		memset(payload + offsetof(struct gn_hello, secret), 0x5e, GANTRY_SECRET_BYTES);
	patch(f, payload, len);
	len = gn_frame_build(msg, type & 0xf, id & 0x7f, FAKE_SESSION + (id >> 7),
			     type & 0x80 ? &fine : NULL, payload, len);
	fake_ctrl_send(f->peer, msg, len);
}

static void say_bytes(struct fuzz *f)
{
	uint8_t msg[256];
	size_t len = byte(f) + 1;

	for (size_t i = 0; i < len; i++)
		msg[i] = (uint8_t)byte(f);
	fake_ctrl_send(f->peer, msg, len);
}

static void send_io(struct fuzz *f)
{
	struct fake_queue *q = &f->peer->consumers[byte(f) % 2];
	struct gantry_io io = {
		.opcode = GANTRY_OP_READ, .tag = byte(f), .length = 512, .region = 1};
	uint8_t msg[GANTRY_IO_WIRE_BYTES];

	memcpy(msg, &io, sizeof(msg));
	patch(f, msg, sizeof(msg));
	if (q->conn && q->n_in < FAKE_MSGS)
		fake_arrive(q, msg, byte(f) == 255 ? 8 : sizeof(msg));
}

static void trouble(struct fuzz *f)
{
	static const int rcs[] = {0, -EINPROGRESS, -EIO, -ENOMEM};
	struct fake_queue *q = &f->peer->producers[byte(f) % 2];
	unsigned what = byte(f), how = byte(f);

	switch (what % 8) {
	case 0:
		f->fc.rc[how % FAKE_STEPS] = rcs[how / FAKE_STEPS % 4];
		break;
	case 1:
		fake_fail_op(&f->fc.ft, FAKE_SEND_CTRL + how % 7, how / 7 % 4, -ENOMEM);
		break;
	case 2:
		f->fc.hold = how & 1;
		break;
	case 3:
		fake_core_finish(&f->fc, how % GANTRY_S_COUNT);
		break;
	case 4:
		if (q->conn)
			fake_queue_refuse(q, how & 1 ? -EAGAIN : 0);
		break;
	case 5:
		if (!f->peer->closed)
			fake_close(f->peer, -ENOTCONN);
		break;
	case 6:
		fake_revoke(f->peer, how);
		break;
	case 7:
		if (f->fc.session && how & 1)
			f->fc.rh->session_continue(f->fc.session, rcs[how / 2 % 2 * 2]);
		else if (f->fc.session)
			f->fc.rh->session_end(f->fc.session, -EIO);
		break;
	}
}

static void step(struct fuzz *f)
{
	unsigned op = byte(f);

	f->peer = f->peers[op >> 6];
	switch (op % 8) {
	case 0:
	case 1:
	case 2:
	case 3:
		say_frame(f);
		break;
	case 4:
		say_bytes(f);
		break;
	case 5:
		send_io(f);
		break;
	case 6:
		fake_core_pass(&f->fc, byte(f) % 64 * 100 * GN_NS_PER_MS, GN_NS_PER_S);
		break;
	case 7:
		trouble(f);
		break;
	}
	fake_core_turn(&f->fc);
}

static void start(struct fuzz *f)
{
	gn_log_set_level(GN_LOG_ERROR);
	fake_core_init(&f->fc);
	f->fc.driven = 1;
	f->fc.slept = quick_fd_slept;
	watch_order(&f->fc.server_ops);
	fake_core_start(&f->fc, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz f;

	fake_transport_spare();
	if (!rewind_begin()) {
		start(&f);
		rewind_mark();
	}
	f.data = data;
	f.left = size;
	if (byte(&f) & 1)
		f.fc.ft.caps = GANTRY_CAP_RMA;
	for (int i = 0; i < PEERS; i++)
		f.peers[i] = fake_dial(&f.fc.ft, "volume0");
	fake_core_turn(&f.fc);
	for (int i = 0; i < STEPS && f.left > 0; i++)
		step(&f);
	fake_core_fini(&f.fc);
	if (quick_fd_count() != 0)
		abort();
	f.data = NULL;
	rewind_end(0);
	return 0;
}
