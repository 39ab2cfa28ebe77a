/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_victim.c - see tcp_victim.h */
#include "fuzz/tcp_victim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/quick_fd.h"
#include "fuzz/rewind.h"

#define BYTES 512u /* of each region */
#define GUARD 64u  /* bytes before and after it */
#define DEPTH 8u
#define DATA 64u /* bytes of data in a message to the consumer */
#define SLOTS 4u
#define TIME_NS 20000000ull /* unit of the time that an input lets pass */
#define PATTERN 0xa5

extern const struct gantry_plugin tcp_LTX_gantry_plugin;

struct memory {
	uint8_t before[GUARD], bytes[BYTES], after[GUARD];
};

struct victim victim;

static const struct gantry_transport_ops *ops;
static struct fake_host host;
static void *conf;
static struct memory writable, readable, local;
static struct memory inbox;         /* buffers of receives: DATA bytes for each */
static struct gantry_region own[8]; /* by handle of the export */
static uint8_t frozen_copy[BYTES];
static bool frozen;                   /* `writable` is not exported: frozen_copy is its content */
static uint32_t exported;             /* bit mask of handles */
static const uint32_t writers = 0x55; /* handles of `writable`: even ones */
static struct gantry_region *held[VICTIM_CONNS];
static void *consumer, *producers[SLOTS], *rmas[SLOTS];
static uint32_t consumer_id, consumer_data; /* of the last consumer; its max_data */
static uint32_t posted, taken, submitted, completed;
static uint32_t sent_data, done_data; /* messages from regions; cookies */
static unsigned fds_kept, blocks_kept;

static void fill(struct memory *memory)
{
	memset(memory, PATTERN, sizeof(*memory));
}

/* Nothing has written to the memory. */
static void check_full(const struct memory *memory)
{
	for (unsigned i = 0; i < BYTES; i++)
		require(memory->bytes[i] == PATTERN);
}

/* -- the user -- */

static void release(unsigned which)
{
	struct gantry_region *region = held[which];

	held[which] = NULL;
	if (region)
		ops->release_region(victim.conns[which], region);
}

/* No data may arrive in its buffers after that. */
static void destroy_consumer(void)
{
	ops->consumer_destroy(consumer);
	consumer = NULL;
	consumer_data = 0;
	fill(&inbox);
}

static void destroy_queues(void)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		if (producers[i])
			ops->producer_destroy(producers[i]);
		if (rmas[i])
			ops->rma_destroy(rmas[i]);
		producers[i] = rmas[i] = NULL;
	}
	if (consumer)
		destroy_consumer();
}

/* A region that the other connection relays is revoked before its import ends. */
static void let_go(unsigned which)
{
	struct tcp_conn *conn = victim.conns[which];

	if (!conn)
		return;
	if (which == 0)
		destroy_queues();
	release(which);
	victim.conns[which] = NULL;
	ops->disconnect(conn);
	if (which == 0)
		exported = 0;
}

static unsigned index_of(const void *conn)
{
	unsigned i = 0;

	while (i < VICTIM_CONNS && victim.conns[i] != conn)
		i++;
	return i;
}

static int on_accept(void *arg, void *conn, const struct gantry_peer *peer, void **conn_arg_p)
{
	unsigned i = index_of(NULL);

	(void)arg;
	(void)peer;
	*conn_arg_p = NULL;
	if (i == VICTIM_CONNS)
		return -EBUSY;
	victim.conns[i] = conn;
	return 0;
}

static void on_connected(void *arg, void *conn, const struct gantry_peer *peer)
{
	(void)arg;
	(void)conn;
	(void)peer;
}

static void on_message(void *arg, void *conn, const void *msg, size_t len)
{
	unsigned i = index_of(conn);
	struct gantry_token token;

	(void)arg;
	require(len >= 1 && len <= GANTRY_CTRL_MAX);
	if (i == VICTIM_CONNS || len != sizeof(token) || held[i])
		return;
	memcpy(&token, msg, sizeof(token));
	if (ops->import_region(conn, &token, 0, &held[i]) != 0)
		held[i] = NULL;
}

static void on_consumer(void *arg, void *conn, uint32_t id, int up)
{
	const struct gantry_queue_attr attr = {.depth = DEPTH, .max_data = BYTES, .lane = id % 3};

	(void)arg;
	for (unsigned i = 0; i < SLOTS && up && conn == victim.conns[0]; i++)
		if (!producers[i]) {
			if (ops->producer_create(conn, id, &attr, &producers[i]) != 0)
				producers[i] = NULL;
			return;
		}
}

static void on_revoke(void *arg, void *conn, uint32_t handle)
{
	unsigned i = index_of(conn);

	(void)arg;
	(void)handle;
	if (i < VICTIM_CONNS)
		release(i);
}

static void freeze(void)
{
	bool now = !(exported & writers);

	if (now && !frozen)
		memcpy(frozen_copy, writable.bytes, BYTES);
	frozen = now;
}

static void on_revoked(void *arg, void *conn, uint32_t handle, int rc)
{
	(void)arg;
	(void)rc;
	require(conn == victim.conns[0] && exported & 1u << handle);
	exported &= ~(1u << handle);
	freeze();
}

static void on_closed(void *arg, void *conn, int reason)
{
	unsigned i = index_of(conn);

	(void)arg;
	require(i < VICTIM_CONNS && reason < 0 && (i != 0 || !exported));
	let_go(i);
}

static const struct gantry_conn_events events = {.accept = on_accept,
						 .connected = on_connected,
						 .message = on_message,
						 .consumer = on_consumer,
						 .revoke = on_revoke,
						 .revoked = on_revoked,
						 .closed = on_closed};

/* Post n receives of a consumer with data. The cookie is the length of the buffer. */
static void post(unsigned n, uint32_t length)
{
	for (unsigned i = 0; i < n; i++) {
		const struct gantry_recv recv = {.buf = inbox.bytes + posted % DEPTH * DATA,
						 .length = length,
						 .cookie = length};

		if (ops->data->post_recv(consumer, &recv, 1) == 0)
			posted++;
	}
}

static void receive(unsigned how)
{
	struct gantry_msg msgs[4];
	int n;

	if (!consumer)
		return;
	if (how & 1 && consumer_data)
		post(how >> 4 & 3, how & 4 ? DATA : DATA / 4);
	else if (how & 1 && ops->post_recv(consumer, how >> 4 & 3) == 0)
		posted += how >> 4 & 3;
	if (how & 2) {
		ops->consumer_arm(consumer);
		ops->consumer_disarm(consumer);
	}
	n = ops->poll_recv(consumer, msgs, 4);
	if (n == 0) /* the first poll after a poll that received data can return 0 */
		n = ops->poll_recv(consumer, msgs, 4);
	require(n >= 0 && n <= 4);
	taken += (uint32_t)n;
	require(taken <= posted);
	for (int i = 0; i < n; i++)
		require(msgs[i].imm_len <= GANTRY_IMM_MAX && msgs[i].length <= msgs[i].cookie &&
			(msgs[i].status == 0 || (consumer_data && msgs[i].status == -EMSGSIZE)));
}

static void send_some(unsigned how)
{
	void *producer = producers[how % SLOTS];

	if (!producer)
		return;
	ops->send(producer, "0123456789abcdef", how >> 4, how & 8 ? GANTRY_SEND_MORE : 0);
	if (how & 4)
		ops->flush(producer);
}

/* Send data of an export, or of other memory, which changes after that. */
static void send_data(unsigned how, unsigned length)
{
	static uint8_t bytes[BYTES];
	struct gantry_send send = {
		.imm = "0123456789abcdef", .imm_len = how >> 4, .length = length};
	void *producer = producers[how % SLOTS];
	uint64_t cookies[4];
	int n;

	if (!producer)
		return;
	if (how & 4)
		send.region = &own[1];
	else
		send.data = bytes;
	if (ops->data->send(producer, &send, how & 8 ? GANTRY_SEND_MORE : 0) == 0 && length)
		sent_data += how >> 2 & 1;
	bytes[length % BYTES]++;
	n = ops->data->poll_send(producer, cookies, 4);
	require(n >= 0 && n <= 4);
	done_data += (uint32_t)n;
	require(done_data <= sent_data);
}

static void access_memory(unsigned how, unsigned offset)
{
	struct gantry_rma op = {.op = how & 4 ? GANTRY_RMA_WRITE : GANTRY_RMA_READ,
				.length = how * 2 % BYTES,
				.local = local.bytes,
				.remote = held[0],
				.remote_offset = offset * 17};
	struct gantry_rma_done done[4];
	void *rma = rmas[how % SLOTS];
	int n;

	if (!rma)
		return;
	if (held[0] && ops->rma_submit(rma, &op) == 0)
		submitted++;
	if (how & 8)
		ops->rma_flush(rma);
	n = how & 16 ? ops->rma_poll(rma, done, 4) : 0;
	if (how & 16 && n == 0)
		n = ops->rma_poll(rma, done, 4);
	require(n >= 0 && n <= 4);
	completed += (uint32_t)n;
	require(completed <= submitted);
}

static void export(unsigned handle, unsigned how)
{
	struct memory *memory = 1u << handle & writers ? &writable : &readable;
	const struct gantry_region *region = held[1];
	uint32_t rights = memory == &writable ? 1 + how % 3 : GANTRY_REMOTE_READ;
	struct gantry_token token;

	if (exported & 1u << handle)
		return;
	if (how & 16 && region) { /* it belongs to the peer of the other connection */
		rights = region->rights;
	} else {
		own[handle] = (struct gantry_region){
			.addr = memory->bytes, .length = BYTES, .fd = -1, .rights = TCP_RIGHTS};
		region = &own[handle];
		if (memory == &writable && frozen) {
			require(memcmp(frozen_copy, writable.bytes, BYTES) == 0);
			frozen = false;
		}
	}
	if (ops->export_region(victim.conns[0], region, rights, handle, &token) == 0)
		exported |= 1u << handle;
	freeze();
}

static void make_queue(unsigned how)
{
	const struct gantry_queue_attr attr = {.depth = DEPTH, .lane = how >> 3 & 3};
	void **rma = &rmas[how % SLOTS], **producer = &producers[how % SLOTS];

	if (how & 4 && *producer) {
		ops->producer_destroy(*producer);
		*producer = NULL;
	} else if (how & 32 && *rma) {
		ops->rma_destroy(*rma);
		*rma = NULL;
	} else if (!*rma && ops->rma_create(victim.conns[0], &attr, rma) != 0) {
		*rma = NULL;
	}
}

static void remake_consumer(uint32_t max_data)
{
	const struct gantry_queue_attr attr = {.depth = DEPTH, .max_data = max_data};

	if (consumer) {
		destroy_consumer();
		posted = taken = 0;
		return;
	}
	if (ops->consumer_create(victim.conns[0], &attr, &consumer_id, &consumer) != 0)
		consumer = NULL;
	consumer_data = consumer ? max_data : 0;
}

static void user(unsigned what, unsigned how, unsigned more)
{
	if (!victim.conns[0])
		return;
	switch (what) {
	case 0:
		receive(how);
		break;
	case 1:
		send_some(how);
		break;
	case 2:
		access_memory(how, more);
		break;
	case 3:
		export(more % 8, how);
		break;
	case 4:
		ops->revoke_region(victim.conns[0], more % 8);
		break;
	case 5:
		make_queue(how);
		break;
	case 6:
		if (how & 1)
			remake_consumer(how & 2 ? DATA : 0);
		else
			ops->send_ctrl(victim.conns[0], "control", 7);
		break;
	default:
		if (more & 2)
			send_data(how, (more >> 2) * 8);
		else
			release(more & 1);
		break;
	}
	if (!consumer)
		check_full(&inbox);
}

/* -- the device -- */

/* A device accepts a socket in one turn, and reads from it in the next. */
void victim_turn(void)
{
	ops->progress(victim.device);
	ops->progress(victim.device);
	if (consumer)
		receive(0);
}

static void close_device(void)
{
	if (victim.listener)
		ops->unlisten(victim.listener);
	ops->close(victim.device);
	free(conf);
}

static void check_guards(const struct memory *memory)
{
	for (unsigned i = 0; i < GUARD; i++)
		require(memory->before[i] == PATTERN && memory->after[i] == PATTERN);
}

void victim_equip(void)
{
	const struct gantry_queue_attr attr = {.depth = DEPTH};

	require(ops->consumer_create(victim.conns[0], &attr, &consumer_id, &consumer) == 0 &&
		ops->post_recv(consumer, 4) == 0);
	posted = 4;
	export(2, 2);
	export(1, 0);
	victim_dial(TCP_LINK, 0, 0);
	victim.link = victim.links[0];
	victim_turn();
}

void victim_connect(void)
{
	require(ops->connect(victim.device, "127.0.0.1:4791", &events, NULL,
			     (void **)&victim.conns[0]) == 0);
}

static void leave(void)
{
	quick_stream_hang_up();
	for (int i = 0; i < 4; i++)
		ops->progress(victim.device);
	for (unsigned i = 0; i < VICTIM_CONNS; i++)
		let_go(i);
	host.now_ns += 10000000000ull;
	for (int i = 0; i < 4; i++)
		ops->progress(victim.device);
	victim.n_links = 0;
}

static void prepare(void (*setup)(void))
{
	posted = taken = submitted = completed = 0;
	sent_data = done_data = consumer_data = 0;
	exported = 0;
	frozen = false;
	fill(&writable);
	fill(&readable);
	fill(&local);
	fill(&inbox);
	setup();
}

static void open_device(void (*warm)(void))
{
	const struct gantry_plugin *plugin = &tcp_LTX_gantry_plugin;

	ops = plugin->ops;
	fake_host_init(&host, "fuzz");
	conf = fake_conf(plugin, "max_depth=8", "revoke_timeout=100ms", "connect_timeout=1s", NULL);
	require(ops->open(&host.pub, conf, &victim.device) == 0);
	require(ops->listen(victim.device, "127.0.0.1:4791", &events, NULL, &victim.listener) == 0);
	atexit(close_device);
	prepare(warm);
	leave();
	rewind_trim();
	fds_kept = quick_fd_count();
	blocks_kept = rewind_count();
}

void victim_begin(void (*warm)(void), void (*setup)(void))
{
	if (rewind_begin())
		return;
	if (!victim.device)
		open_device(warm);
	prepare(setup);
	rewind_mark();
}

void victim_end(void)
{
	leave();
	check_guards(&writable);
	check_guards(&readable);
	check_guards(&local);
	check_guards(&inbox);
	check_full(&readable);
	require(!frozen || memcmp(frozen_copy, writable.bytes, BYTES) == 0);
	host.log_used = 0;
	require(quick_fd_count() == fds_kept);
	rewind_end(blocks_kept);
}

/* -- the peer -- */

static struct tcp_hello hello_of(unsigned kind, unsigned which, unsigned lanes)
{
	const struct tcp_conn *conn = victim.conns[which % VICTIM_CONNS];
	struct tcp_hello hello = {.magic = TCP_MAGIC,
				  .version = TCP_VERSION,
				  .kind = (uint8_t)kind,
				  .session = 1 + which,
				  .connects_lane = lanes & 3,
				  .listens_lane = lanes >> 2 & 3,
				  .ops = DEPTH};

	if (conn && kind != TCP_CONTROL) {
		hello.session = conn->session;
		memcpy(hello.secret, conn->secret, sizeof(hello.secret));
	}
	return hello;
}

static void add_link(int stream)
{
	if (stream >= 0 && victim.n_links < QUICK_STREAMS)
		victim.links[victim.n_links++] = stream;
}

void victim_dial(unsigned kind, unsigned which, unsigned lanes)
{
	const struct tcp_hello hello = hello_of(kind, which, lanes);
	int stream = quick_stream_dial();

	if (stream < 0)
		return;
	quick_stream_send(stream, &hello, sizeof(hello));
	add_link(stream);
}

static int pick(unsigned which)
{
	return victim.n_links ? victim.links[which % victim.n_links] : victim.control;
}

/*
 * A frame with valid values of the fields that the bytes do not replace. data: of a message, in
 * units of 8 bytes.
 */
static void send_frame(int stream, unsigned kind, unsigned data, const uint8_t *bytes, size_t len)
{
	struct {
		struct tcp_frame frame;
		uint8_t data[64];
	} msg = {.frame = {.kind = (uint8_t)kind}};
	uint32_t length;

	if (len > 3)
		memcpy((uint8_t *)&msg.frame + 1, bytes, len < 63 ? len : 63);
	else if (kind == TCP_READ || kind == TCP_WRITE)
		msg.frame.length = 16;
	else if (kind == TCP_MESSAGE)
		msg.frame.length = data * 8;
	if (kind == TCP_OPEN && len <= 3)
		msg.frame.open.consumer = consumer_id;
	if (len <= 3 && kind != TCP_OPEN && kind != TCP_RECALL)
		msg.frame.access.name = (struct tcp_name){2, 1};
	if (len <= 3)
		msg.frame.queue = len ? bytes[0] & 7 : 0;
	length = kind == TCP_WRITE || kind == TCP_DATA || kind == TCP_MESSAGE ? msg.frame.length
									      : 0;
	quick_stream_send(stream, &msg, sizeof(msg.frame) + (length < 64 ? length : 64));
}

/* max_data: of a consumer whose message has only the fields before it. */
static void send_message(unsigned kind, uint32_t max_data, const uint8_t *bytes, size_t len)
{
	const size_t before = offsetof(struct tcp_ctrl_consumer, max_data);
	struct {
		struct tcp_ctrl head;
		uint8_t body[256];
	} msg = {.head = {.kind = (uint8_t)kind, .length = (uint16_t)len}};

	if (len)
		memcpy(msg.body, bytes, len);
	if (kind == TCP_CTRL_CONSUMER && len == before) {
		memcpy(msg.body + before, &max_data, sizeof(max_data));
		len += sizeof(max_data);
		msg.head.length = (uint16_t)len;
	}
	quick_stream_send(victim.control, &msg, sizeof(msg.head) + len);
}

static void disturb(int stream, unsigned how, unsigned n)
{
	if (how % 4 < 2)
		quick_stream_end(stream, how & 1);
	else if (how % 4 == 2)
		quick_stream_allow(stream, n < 255 ? n : SIZE_MAX);
	else
		quick_stream_cut(stream, n < 255 ? n + 1 : SIZE_MAX);
}

static void dial_any(unsigned kind, unsigned how, const uint8_t *bytes, size_t len)
{
	int stream;

	if (!len) {
		victim_dial(1 + kind % 3, how & 1, how >> 1);
		return;
	}
	stream = quick_stream_dial();
	if (stream < 0)
		return;
	quick_stream_send(stream, bytes, len);
	add_link(stream);
}

size_t victim_step(const uint8_t *p, size_t left)
{
	const uint8_t *bytes = p + 4;
	size_t len = p[1] < left - 4 ? p[1] : left - 4;

	switch (p[0] % 8) {
	case 0:
		quick_stream_send(victim.control, bytes, len);
		break;
	case 1:
		send_message(p[2] & 31, (p[2] >> 5) * DATA, bytes, len);
		break;
	case 2:
		quick_stream_send(pick(p[2]), bytes, len);
		break;
	case 3:
		send_frame(pick(p[2]), p[3] & 15, p[3] >> 4, bytes, len);
		break;
	case 4:
		len = 0;
		user(p[1] & 7, p[2], p[3]);
		break;
	case 5:
		dial_any(p[2], p[3], bytes, len);
		break;
	case 6:
		len = 0;
		disturb(p[1] & 1 ? victim.control : pick(p[2]), p[1] >> 1, p[3]);
		break;
	default:
		len = 0;
		host.now_ns += p[1] * TIME_NS;
		break;
	}
	if (!(p[0] & 8))
		victim_turn();
	add_link(quick_stream_dialed());
	return 4 + len;
}
