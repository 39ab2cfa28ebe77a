/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client.c - a role that opens a session, with a server that sends any frame at any time, and a
 * transport that fails; the role itself exports, starts, submits, closes and aborts
 *
 * The input is a list of steps, see step(). A client starts only after an answer with at most the
 * lanes and the depth that it has requested. At the end the role is stopped. `closed` must have
 * been called once for each client, as the last callback. Each accepted IO must have completed
 * once. No connection, queue, region or file descriptor may leak: fake_core_fini checks the former
 * three.
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
#define LANES 2
#define IOS 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz {
	const uint8_t *data;
	size_t left;
	struct fake_core fc;
	/* the fields from here on are cleared for each input */
	struct fake_conn *conn; /* the connection that the role opened last */
	struct gantry_client *client;
	struct gantry_chain *chain;
	struct gantry_io *ios;
	uint32_t busy; /* IOs that were accepted and have not completed */
	int is_ready, is_closed;
	uint32_t unexporting; /* bits: 1 << handle, from client_unexport to `unexported` */
	/* the server has sent a QUEUES answer within the limits that this client requested */
	int queues_fit;
	unsigned epoch;
	struct gantry_region region;
};

static struct fuzz f;

static unsigned byte(void)
{
	if (f.left == 0)
		return 0;
	f.left--;
	return *f.data++;
}

static void patch(uint8_t *msg, size_t len)
{
	for (unsigned n = byte() % 8; n > 0; n--) {
		size_t at = byte() | (byte() & 1) << 8;
		unsigned value = byte();

		if (at < len)
			msg[at] = (uint8_t)value;
	}
}

/* -- the role -- */

static void on_ready(void *arg, struct gantry_client *c, const struct gantry_volume_info *volume)
{
	(void)arg;
	require(c == f.client && !f.is_ready && !f.is_closed);
	require(volume->block_size != 0 && (volume->block_size & (volume->block_size - 1)) == 0 &&
		volume->size != 0);
	require(volume->size % volume->block_size == 0);
	f.is_ready = 1;
}

static void on_exported(void *arg, struct gantry_client *c, const struct gantry_region *region)
{
	(void)arg;
	require(c == f.client && region == &f.region && f.is_ready && !f.is_closed);
}

static void on_resized(void *arg, struct gantry_client *c, uint64_t size)
{
	(void)arg;
	require(c == f.client && !f.is_closed && size != 0);
}

static void on_unexported(void *arg, struct gantry_client *c, uint32_t handle)
{
	(void)arg;
	require(c == f.client && !f.is_closed && handle < 4 && (f.unexporting & 1u << handle));
	f.unexporting &= ~(1u << handle);
}

static void on_started(void *arg, struct gantry_client *c)
{
	(void)arg;
	require(c == f.client && f.is_ready && !f.is_closed && f.queues_fit);
}

static void on_closed(void *arg, struct gantry_client *c, int reason, const char *text)
{
	(void)arg;
	require(c == f.client && !f.is_closed && reason <= 0 && text && f.busy == 0);
	f.is_closed = 1;
}

static const struct gantry_client_events events = {
	.ready = on_ready,
	.exported = on_exported,
	.started = on_started,
	.closed = on_closed,
	.unexported = on_unexported,
	.resized = on_resized,
};

static void owner_complete(void *self, struct gantry_io *io)
{
	uint32_t bit = 1u << (io - f.ios);

	(void)self;
	require(io >= f.ios && io < f.ios + IOS && (f.busy & bit) && io->status < GANTRY_S_COUNT &&
		gantry_io_end(io) == 0);
	f.busy &= ~bit;
}

static int no_submit(void *self, struct gantry_io *io)
{
	(void)self;
	(void)io;
	return -EINVAL;
}

static void free_client(void)
{
	gn_chain_destroy(f.chain);
	f.fc.rh->client_free(f.client);
	f.chain = NULL;
	f.client = NULL;
}

static void open_client(void)
{
	const struct gantry_session_attr attr = {
		.id = FAKE_SESSION, .epoch = ++f.epoch, .lanes = LANES, .depth = IOS, .regions = 2};

	if (f.client && f.is_closed)
		free_client();
	if (f.client)
		return;
	f.is_ready = f.is_closed = f.queues_fit = 0;
	f.unexporting = 0;
	if (f.fc.rh->client_open(f.fc.rh, 0, &attr, &events, NULL, &f.client) != 0)
		f.client = NULL;
}

static void start_client(void)
{
	struct gantry_hop owner = {.submit = no_submit, .complete = owner_complete}, terminal;

	for (uint32_t i = 0; i < LANES && !f.chain && f.is_ready && !f.is_closed; i++)
		if (f.fc.rh->client_hop(f.client, i, f.fc.rh->lane(f.fc.rh, i), &terminal) != 0)
			return;
	if (!f.chain && f.is_ready && !f.is_closed)
		require(f.fc.rh->chain_create(f.fc.rh->lane(f.fc.rh, 1), &owner, &terminal, NULL,
					      IOS, &f.chain, &f.ios) == 0);
	f.fc.rh->client_start(f.client);
}

static void submit_on_lane(void *arg)
{
	unsigned what = *(unsigned *)arg;
	struct gantry_io *io = &f.ios[what % IOS];
	uint32_t bit = 1u << what % IOS;

	if (f.busy & bit)
		return;
	gantry_io_begin(io, gn_now_ns());
	io->opcode = (what & 4) ? GANTRY_OP_WRITE : GANTRY_OP_READ;
	io->offset = what / 8 % 4 * 512;
	io->length = 512;
	io->region = 1;
	f.busy |= bit;
	if (gantry_submit(io) != 0) {
		require(f.busy & bit);
		f.busy &= ~bit;
		gantry_io_end(io);
	}
}

static void unexport(uint32_t handle)
{
	if (f.fc.rh->client_unexport(f.client, handle) == 0)
		f.unexporting |= 1u << handle;
}

static void user(void)
{
	unsigned what = byte(), how = byte();

	if (what % 8 == 0)
		open_client();
	if (!f.client)
		return;
	switch (what % 8) {
	case 1:
		if (how & 0x80)
			unexport(1 + how % 3);
		else
			f.fc.rh->client_export(f.client, &f.region, GANTRY_REMOTE_READ | (how & 2),
					       1 + how % 3);
		break;
	case 2:
		start_client();
		break;
	case 3:
	case 4:
		if (f.chain)
			gn_worker_call(f.fc.worker, submit_on_lane, &how);
		break;
	case 5:
		f.fc.rh->client_close(f.client);
		break;
	case 6:
		f.fc.rh->client_abort(f.client);
		break;
	case 7:
		if (f.is_closed)
			free_client();
		break;
	}
}

/* -- the server -- */

static size_t answer_payload(unsigned type, void *buf)
{
	const struct gn_hello_answer hello = {.version = GN_FRAME_VERSION,
					      .epoch = f.epoch,
					      .features = GN_FEATURE_UNEXPORT | GN_FEATURE_VOLUME,
					      .secret = {1, 2, 3}};
	const struct gn_queues queues = {.n = LANES, .depth = IOS, .consumer = {21, 22}};

	return fake_answer_payload(type, &hello, &queues, buf);
}

static void send_message(const uint8_t *msg, size_t len)
{
	struct gn_parsed parsed;
	struct gn_queues queues;

	if (gn_frame_parse(msg, len, &parsed) == 0 && parsed.type == GN_FRAME_QUEUES &&
	    parsed.answer && parsed.verdict.status == 0 && parsed.payload_len == sizeof(queues)) {
		memcpy(&queues, parsed.payload, sizeof(queues));
		f.queues_fit |= queues.n <= LANES && queues.depth <= IOS;
	}
	fake_ctrl_send(f.conn, msg, len);
}

/* Send an answer to the oldest request, or a frame of any type. */
static void say_frame(int answers)
{
	struct gn_verdict verdict = {.status = 0};
	uint8_t payload[GANTRY_CTRL_MAX] = {0}, msg[GANTRY_CTRL_MAX];
	unsigned type = byte() & 0xf, id = byte();
	struct gn_parsed asked;
	size_t len;

	if (answers && fake_next_frame(f.conn, &asked)) {
		verdict.status = id < 240 ? 0 : id % GANTRY_S_COUNT;
		type = asked.type;
		id = asked.head.id;
	}
	len = verdict.status ? 0 : answer_payload(type, payload);
	patch(payload, len);
	len = gn_frame_build(msg, type, id, FAKE_SESSION, answers ? &verdict : NULL, payload, len);
	patch(msg, len);
	send_message(msg, len);
}

static void say_bytes(void)
{
	uint8_t msg[256];
	size_t len = byte() + 1;

	for (size_t i = 0; i < len; i++)
		msg[i] = (uint8_t)byte();
	send_message(msg, len);
}

static void reply(void)
{
	struct fake_queue *in = &f.conn->consumers[byte() % LANES],
			  *out = &f.conn->producers[byte() % LANES];
	uint8_t msg[GANTRY_IMM_MAX] = {0};

	if (out->conn)
		fake_taken(out, msg);
	patch(msg, GANTRY_IO_WIRE_BYTES);
	if (in->conn && in->n_in < in->posted)
		fake_arrive(in, msg, byte() == 255 ? 8 : GANTRY_IO_WIRE_BYTES);
}

static void trouble(void)
{
	struct fake_queue *q = &f.conn->producers[byte() % LANES];
	unsigned what = byte(), how = byte();

	switch (what % 6) {
	case 0:
		fake_fail_op(&f.fc.ft, how % FAKE_OPS, how / FAKE_OPS % 4, -ENOMEM);
		break;
	case 1:
		if (q->conn)
			fake_queue_refuse(q, how & 1 ? -EAGAIN : 0);
		break;
	case 2:
		if (!f.conn->closed)
			fake_close(f.conn, -ENOTCONN);
		break;
	case 3:
		f.fc.ft.keeps = how & 1;
		break;
	case 4:
		if (f.conn->by_core && !f.conn->established && !f.conn->closed)
			fake_accept(f.conn);
		break;
	case 5:
		f.fc.ft.room = how * 64u;
		break;
	}
}

static void step(void)
{
	unsigned op = byte() % 10;

	if (op == 0)
		fake_core_pass(&f.fc, byte() % 16 * 400 * GN_NS_PER_MS, GN_NS_PER_S);
	else if (op < 4 || !f.conn)
		user();
	else if (op < 7)
		say_frame(op < 6);
	else if (op == 7)
		reply();
	else if (op == 8)
		trouble();
	else
		say_bytes();
	fake_core_turn(&f.fc);
	for (unsigned i = 0; i < f.fc.ft.n_conns; i++)
		f.conn = f.fc.ft.conns[i];
}

static void start(void)
{
	gn_log_set_level(GN_LOG_ERROR);
	fake_core_init(&f.fc);
	memset((uint8_t *)&f + offsetof(struct fuzz, conn), 0,
	       sizeof(f) - offsetof(struct fuzz, conn));
	f.region = (struct gantry_region){.addr = f.fc.ft.memory, .length = 4096, .fd = -1};
	f.fc.driven = 1;
	f.fc.slept = quick_fd_slept;
	fake_core_start(&f.fc, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fake_transport_spare();
	if (!rewind_begin()) {
		start();
		rewind_mark();
	}
	f.data = data;
	f.left = size;
	open_client();
	fake_core_turn(&f.fc);
	f.conn = fake_pending(&f.fc.ft);
	if (f.conn && byte() & 1)
		fake_accept(f.conn);
	fake_core_turn(&f.fc);
	for (int i = 0; i < STEPS && f.left > 0; i++)
		step();
	f.fc.ft.keeps = 0;
	if (f.client && !f.is_closed)
		f.fc.rh->client_abort(f.client);
	fake_core_pass(&f.fc, 20 * GN_NS_PER_S, 5 * GN_NS_PER_S);
	require(!f.client || f.is_closed);
	if (f.client)
		free_client();
	fake_core_fini(&f.fc);
	require(quick_fd_count() == 0);
	f.data = NULL;
	rewind_end(0);
	return 0;
}
