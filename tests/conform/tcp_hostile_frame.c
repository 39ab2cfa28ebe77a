/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_hostile_frame.c - wrong frames on a link, and frames at the wrong time. */
#include "conform/tcp_hostile.h"

#include <malloc.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define UNKNOWN "sends an unknown frame"
#define OPENS "opens an invalid producer"
#define MESSAGE "sends an invalid message"
#define CREDIT "exceeds its credit"
#define MEMORY "accesses memory that this end does not export"
#define NO_READ "answers a read that does not exist"
#define NO_WRITE "acknowledges a write that does not exist"
#define DEPTH 8u

/*
 * The victim exports {1, 1} with both rights, {2, 2} for reads, {3, 3} for writes, and has revoked
 * {4, 4}. {9, 1} is an export to the honest peer. Its consumer has the number 1 and a depth of
 * DEPTH.
 */
static const struct {
	const char *what;
	struct tcp_frame frame;
	const char *log;
} frames[] = {
	{"kind 0", {.kind = 0}, UNKNOWN},
	{"READY again", {.kind = TCP_READY, .ops = 1}, UNKNOWN},
	{"next kind", {.kind = TCP_FRAMES}, UNKNOWN},
	{"last kind", {.kind = 255}, UNKNOWN},
	{"OPEN of producer 64", {.kind = TCP_OPEN, .queue = 64, .open.consumer = 1}, OPENS},
	{"OPEN of the last producer",
	 {.kind = TCP_OPEN, .queue = UINT16_MAX, .open.consumer = 1},
	 OPENS},
	{"OPEN twice", {.kind = TCP_OPEN, .queue = 0, .open.consumer = 1}, OPENS},
	{"SHUT of producer 64", {.kind = TCP_SHUT, .queue = 64}, "ends an invalid producer"},
	{"MESSAGE of producer 64", {.kind = TCP_MESSAGE, .queue = 64}, MESSAGE},
	{"57 bytes", {.kind = TCP_MESSAGE, .imm_len = GANTRY_IMM_MAX + 1}, MESSAGE},
	{"255 bytes", {.kind = TCP_MESSAGE, .imm_len = 255}, MESSAGE},
	{"MESSAGE with data", {.kind = TCP_MESSAGE, .length = 1}, MESSAGE},
	{"MESSAGE with 4 GiB of data", {.kind = TCP_MESSAGE, .length = UINT32_MAX}, MESSAGE},
	{"read of no region", {.kind = TCP_READ, .length = 1}, MEMORY},
	{"read of generation 0", {.kind = TCP_READ, .length = 1, .access = {{1, 0}, 0}}, MEMORY},
	{"read of a later generation",
	 {.kind = TCP_READ, .length = 1, .access = {{1, 2}, 0}},
	 MEMORY},
	{"last generation",
	 {.kind = TCP_READ, .length = 1, .access = {{1, UINT32_MAX}, 0}},
	 MEMORY},
	{"another handle", {.kind = TCP_READ, .length = 1, .access = {{2, 1}, 0}}, MEMORY},
	{"last handle", {.kind = TCP_READ, .length = 1, .access = {{UINT32_MAX, 1}, 0}}, MEMORY},
	{"read for the honest peer",
	 {.kind = TCP_READ, .length = 1, .access = {{9, 1}, 0}},
	 MEMORY},
	{"write for the honest peer",
	 {.kind = TCP_WRITE, .length = 1, .access = {{9, 1}, 0}},
	 MEMORY},
	{"write without the right",
	 {.kind = TCP_WRITE, .length = 1, .access = {{2, 2}, 0}},
	 MEMORY},
	{"empty write without the right", {.kind = TCP_WRITE, .access = {{2, 2}, 0}}, MEMORY},
	{"read without the right", {.kind = TCP_READ, .length = 1, .access = {{3, 3}, 0}}, MEMORY},
	{"read of what was revoked",
	 {.kind = TCP_READ, .length = 1, .access = {{4, 4}, 0}},
	 MEMORY},
	{"write of what was revoked",
	 {.kind = TCP_WRITE, .length = 1, .access = {{4, 4}, 0}},
	 MEMORY},
	{"a byte too long",
	 {.kind = TCP_WRITE, .length = EVIL_BYTES + 1, .access = {{1, 1}, 0}},
	 MEMORY},
	{"read of 4 GiB", {.kind = TCP_READ, .length = UINT32_MAX, .access = {{1, 1}, 0}}, MEMORY},
	{"write of 4 GiB",
	 {.kind = TCP_WRITE, .length = UINT32_MAX, .access = {{1, 1}, 1}},
	 MEMORY},
	{"end beyond the region",
	 {.kind = TCP_WRITE, .length = 2, .access = {{1, 1}, EVIL_BYTES - 1}},
	 MEMORY},
	{"start beyond the region",
	 {.kind = TCP_WRITE, .access = {{1, 1}, EVIL_BYTES + 1}},
	 MEMORY},
	{"offset of 2^63",
	 {.kind = TCP_WRITE, .length = 1, .access = {{1, 1}, 1ull << 63}},
	 MEMORY},
	{"offset that wraps",
	 {.kind = TCP_WRITE, .length = 2, .access = {{1, 1}, UINT64_MAX}},
	 MEMORY},
	{"last offset", {.kind = TCP_READ, .length = 1, .access = {{1, 1}, UINT64_MAX}}, MEMORY},
	{"offset below the region",
	 {.kind = TCP_READ, .length = 64, .access = {{1, 1}, -32ull}},
	 MEMORY},
	{"data of no read", {.kind = TCP_DATA, .length = 1}, NO_READ},
	{"empty data of no read", {.kind = TCP_DATA}, NO_READ},
	{"data of the last read", {.kind = TCP_DATA, .queue = UINT16_MAX, .length = 1}, NO_READ},
	{"data of a read after the table", {.kind = TCP_DATA, .queue = 256, .length = 1}, NO_READ},
	{"4 GiB of no read", {.kind = TCP_DATA, .length = UINT32_MAX}, NO_READ},
	{"ACK of no write", {.kind = TCP_ACK, .acks = {.n = 1}}, NO_WRITE},
	{"ACK of the last write", {.kind = TCP_ACK, .acks = {1, {UINT16_MAX}}}, NO_WRITE},
	{"ACK of 28 writes", {.kind = TCP_ACK, .acks = {.n = TCP_ACKS + 1}}, "too many writes"},
	{"ACK of 65535 writes", {.kind = TCP_ACK, .acks = {.n = UINT16_MAX}}, "too many writes"},
};

static void send_frame(const struct tcp_frame *frame)
{
	evil_send(evil.link, frame, sizeof(*frame));
}

/* Read frames until one of this kind. */
static struct tcp_frame expect(uint8_t kind)
{
	struct tcp_frame frame;

	do {
		if (evil_read(evil.link, &frame, sizeof(frame)) != sizeof(frame))
			rig_fail_at(__FILE__, __LINE__, "no frame of kind %u", kind);
	} while (frame.kind != kind);
	return frame;
}

/* Connect the attacker, with a link of lane 0 and a consumer of the victim. */
static void connect_link(uint32_t receives)
{
	evil_connect(&evil);
	evil_consumer(&evil, DEPTH, receives);
	evil_link(&evil);
}

static void connect_with_objects(void)
{
	const struct tcp_name four = {4, 4};
	int n;

	connect_link(0);
	evil_export(&evil, EVIL_BOTH, 1);
	evil_export(&evil, GANTRY_REMOTE_READ, 2);
	evil_export(&evil, GANTRY_REMOTE_WRITE, 3);
	evil_export(&evil, EVIL_BOTH, 4);
	n = rig.b.n_revoked;
	RIG_OK(rig.ops->revoke_region(evil.conn, 4));
	evil_ctrl(&evil, TCP_CTRL_RELEASED, &four, sizeof(four));
	rig_until(rig.b.n_revoked, n + 1);
	send_frame(&(struct tcp_frame){.kind = TCP_OPEN, .open.consumer = 1});
	log_check("valid frames", 0, NULL);
}

static void wrong_frames(void)
{
	static const uint8_t data[64];

	honest_begin(NULL);
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		connect_with_objects();
		send_frame(&frames[i].frame);
		evil_send(evil.link, data, sizeof(data));
		log_dropped(&evil, frames[i].what, frames[i].log);
		honest_check();
	}
	honest_end();
}

/* Frames that have no effect, and end nothing: their object can have ended shortly before. */
static void frames_without_effect(void)
{
	static const struct tcp_frame idle[] = {
		{.kind = TCP_SHUT, .queue = 5},
		{.kind = TCP_MESSAGE, .queue = 5},
		{.kind = TCP_CREDIT, .queue = 0, .credit.allowed = 4000},
		{.kind = TCP_CREDIT, .queue = 64, .credit.allowed = 1},
		{.kind = TCP_CREDIT, .queue = UINT16_MAX, .credit.allowed = UINT32_MAX},
		{.kind = TCP_OPEN, .queue = 7, .open.consumer = 2},
		{.kind = TCP_OPEN, .queue = 8, .open.consumer = UINT32_MAX},
		{.kind = TCP_ACK},
	};
	struct tcp_frame read = {.kind = TCP_READ, .length = 1, .access = {{1, 1}, 0}};

	honest_begin(NULL);
	connect_with_objects();
	for (size_t i = 0; i < sizeof(idle) / sizeof(idle[0]); i++)
		send_frame(&idle[i]);
	send_frame(&read);
	RIG_NUM(1, expect(TCP_DATA).length, "bytes of a read after frames without effect");
	log_check("frames without effect", 0, NULL);
	evil_leave(&evil);
	honest_end();
}

/* -- messages and their credit -- */

static void messages_beyond_credit(void)
{
	const struct tcp_frame message = {.kind = TCP_MESSAGE, .imm_len = 4};
	uint32_t allowed;

	honest_begin(NULL);
	connect_link(3);
	send_frame(&(struct tcp_frame){.kind = TCP_OPEN, .open.consumer = 1});
	allowed = expect(TCP_CREDIT).credit.allowed;
	RIG_NUM(3, allowed, "credit for three receives");
	for (uint32_t i = 0; i < allowed; i++)
		send_frame(&message);
	log_check("messages within the credit", 0, NULL);
	RIG_NUM(3, evil.taken, "messages");
	send_frame(&message);
	log_dropped(&evil, "a message beyond its credit", CREDIT);
	honest_end();
}

static void message_without_credit(void)
{
	const struct tcp_frame message = {.kind = TCP_MESSAGE};

	honest_begin(NULL);
	connect_link(0);
	send_frame(&(struct tcp_frame){.kind = TCP_OPEN, .open.consumer = 1});
	send_frame(&message);
	log_dropped(&evil, "a message without credit", CREDIT);
	honest_end();
}

/* The memory for producers that have come and gone is released, also without a poll. */
static void producers_that_come_and_go(void)
{
	struct tcp_frame pair[2] = {{.kind = TCP_OPEN, .open.consumer = 1}, {.kind = TCP_SHUT}};
	const struct tcp_frame read = {.kind = TCP_READ, .length = 1, .access = {{1, 1}, 0}};
	void *consumer;
	size_t before;

	honest_begin(NULL);
	connect_link(8);
	evil_export(&evil, GANTRY_REMOTE_READ, 1);
	consumer = evil.consumer;
	evil.consumer = NULL; /* it is not polled any more */
	before = mallinfo2().uordblks;
	for (int i = 0; i < 20000; i++)
		evil_send(evil.link, pair, sizeof(pair));
	send_frame(&read);
	expect(TCP_DATA);
	RIG_HOLDS(mallinfo2().uordblks < before + (1u << 20), "memory of producers that ended");
	evil.consumer = consumer;
	log_check("producers that come and go", 0, NULL);
	evil_leave(&evil);
	honest_end();
}

/*
 * The fd of a consumer is edge-triggered: consumer_arm() must not return 0 while a message waits in
 * the socket, behind more frames than one poll takes.
 */
static void message_behind_many_frames(void)
{
	static struct tcp_frame idle[2800]; /* fits into the receive buffer */
	const struct tcp_frame message = {.kind = TCP_MESSAGE};
	struct gantry_msg msg;
	void *consumer;
	int work, n;

	honest_begin("socket_buffer=1MiB");
	connect_link(1);
	send_frame(&(struct tcp_frame){.kind = TCP_OPEN, .open.consumer = 1});
	expect(TCP_CREDIT);
	for (unsigned i = 0; i < sizeof(idle) / sizeof(idle[0]); i++)
		idle[i] = (struct tcp_frame){.kind = TCP_SHUT, .queue = 9};
	consumer = evil.consumer;
	evil.consumer = NULL; /* the rig does not poll it */
	rig.ops->consumer_arm(consumer);
	send(evil.link, idle, sizeof(idle), 0);
	send(evil.link, &message, sizeof(message), 0);
	work = rig.ops->consumer_arm(consumer);
	n = rig.ops->poll_recv(consumer, &msg, 1);
	RIG_HOLDS(work || n == 0, "consumer_arm() while a message waits");
	rig.ops->consumer_disarm(consumer);
	evil.consumer = consumer;
	log_check("many frames", 0, NULL);
	evil_leave(&evil);
	honest_end();
}

/* Credit that goes back, or repeats, does not count. */
static void credit_that_goes_back(void)
{
	const struct tcp_ctrl_consumer consumer = {.id = 3, .up = 1};
	const struct gantry_queue_attr attr = {.depth = DEPTH};
	int up;
	void *producer;

	honest_begin(NULL);
	evil_connect(&evil);
	evil_link(&evil);
	up = rig.b.n_up;
	evil_ctrl(&evil, TCP_CTRL_CONSUMER, &consumer, sizeof(consumer));
	rig_until(rig.b.n_up, up + 1);
	RIG_OK(rig.ops->producer_create(evil.conn, 3, &attr, &producer));
	expect(TCP_OPEN);
	RIG_RC(-EAGAIN, rig.ops->send(producer, "x", 1, 0), "send without credit");
	for (uint32_t i = 4; i; i--)
		send_frame(&(struct tcp_frame){.kind = TCP_CREDIT, .credit.allowed = i});
	send_frame(&(struct tcp_frame){.kind = TCP_CREDIT, .credit.allowed = 0});
	send_frame(&(struct tcp_frame){.kind = TCP_CREDIT, .credit.allowed = 4 + (1u << 31)});
	rig_settle();
	for (uint32_t i = 0; i < 4; i++)
		RIG_OK(rig.ops->send(producer, "x", 1, 0));
	RIG_RC(-EAGAIN, rig.ops->send(producer, "x", 1, 0), "send beyond the credit");
	rig.ops->producer_destroy(producer);
	log_check("credit that goes back", 0, NULL);
	evil_leave(&evil);
	honest_end();
}

/*
 * The attacker does not read, while the user creates and destroys producers. When it reads, the
 * frames must come once, and in order.
 */
static void producers_while_nothing_is_read(void)
{
	const struct tcp_ctrl_consumer consumer = {.id = 3, .up = 1};
	const struct gantry_queue_attr attr = {.depth = DEPTH};
	const struct tcp_frame read = {
		.kind = TCP_READ, .length = EVIL_BYTES, .access = {{1, 1}, 0}};
	struct tcp_frame frame;
	static uint8_t data[EVIL_BYTES];
	uint32_t serial = 0;
	int up, rc = 0;
	void *producer;

	honest_begin(EVIL_UNREAD);
	evil_connect(&evil);
	evil_export(&evil, GANTRY_REMOTE_READ, 1);
	evil_link(&evil);
	up = rig.b.n_up;
	evil_ctrl(&evil, TCP_CTRL_CONSUMER, &consumer, sizeof(consumer));
	rig_until(rig.b.n_up, up + 1);
	for (int i = 0; i < 64; i++)
		send_frame(&read);
	rig_settle();
	for (int i = 0; i < 4000 && !rc; i++) {
		rc = rig.ops->producer_create(evil.conn, 3, &attr, &producer);
		if (!rc)
			rig.ops->producer_destroy(producer);
	}
	RIG_RC(-ENOSPC, rc, "producer_create while the peer reads nothing");
	for (int n = 0; n < 64;) {
		RIG_NUM(sizeof(frame), evil_read(evil.link, &frame, sizeof(frame)), "a frame");
		if (frame.kind == TCP_DATA) {
			RIG_HOLDS(frame.length <= sizeof(data), "length of a piece");
			evil_read(evil.link, data, frame.length);
			n += frame.length == EVIL_BYTES;
		} else if (frame.kind == TCP_OPEN) {
			RIG_NUM(serial++, frame.open.serial, "serial number of OPEN");
		} else {
			RIG_NUM(TCP_SHUT, frame.kind, "kind of a frame");
		}
	}
	log_check("producers while nothing is read", 0, NULL);
	evil_leave(&evil);
	honest_end();
}

/* -- accesses -- */

/*
 * The attacker sends more reads than the victim accepts, and takes no data. Before that the answers
 * wait.
 */
static void too_many_accesses(void)
{
	struct tcp_frame read = {.kind = TCP_READ, .length = EVIL_BYTES, .access = {{1, 1}, 0}};

	honest_begin(EVIL_UNREAD);
	evil_connect(&evil);
	evil_export(&evil, GANTRY_REMOTE_READ, 1);
	evil_link(&evil);
	for (uint16_t i = 0; i < 256; i++) {
		read.queue = i;
		send_frame(&read);
	}
	log_check("as many accesses as permitted", 0, NULL);
	honest_check();
	for (uint16_t i = 0; i < 256 && !rig.b.n_closed; i++) {
		read.queue = i;
		send_frame(&read);
		rig_settle();
	}
	log_dropped(&evil, "too many accesses", "exceeds its limit of accesses");
	honest_end();
}

/*
 * The attacker reads without taking the data. When the region is revoked, the data that waits must
 * not leave any more: the memory can have other content from then on.
 */
static void revoke_while_data_waits(void)
{
	const struct tcp_frame read = {
		.kind = TCP_READ, .length = EVIL_BYTES, .access = {{1, 1}, 0}};
	int n;

	honest_begin(EVIL_UNREAD " revoke_timeout=100ms");
	evil_connect(&evil);
	evil_export(&evil, GANTRY_REMOTE_READ, 1);
	evil_link(&evil);
	for (int i = 0; i < 32; i++)
		send_frame(&read);
	rig_settle();
	n = rig.b.n_revoked;
	RIG_OK(rig.ops->revoke_region(evil.conn, 1));
	rig_until(rig.b.n_revoked, n + 1);
	rig_until(rig.b.n_closed, 1);
	RIG_RC(-ETIMEDOUT, rig.b.reason, "reason of the end");
	evil_leave(&evil);
	honest_end();
}

/* A write that has begun must not go on after the region was revoked, by consent or by time. */
static void revoke_while_a_write_arrives(void)
{
	const struct tcp_frame write = {.kind = TCP_WRITE, .length = 100, .access = {{1, 1}, 0}};
	static const uint8_t evil_data[100] = {0};
	const struct tcp_name one = {1, 1};
	int n;

	honest_begin("revoke_timeout=100ms");
	for (int releases = 0; releases < 2; releases++) {
		evil_connect(&evil);
		evil_export(&evil, GANTRY_REMOTE_WRITE, 1);
		evil_link(&evil);
		send_frame(&write);
		rig_settle();
		n = rig.b.n_revoked;
		RIG_OK(rig.ops->revoke_region(evil.conn, 1));
		if (releases)
			evil_ctrl(&evil, TCP_CTRL_RELEASED, &one, sizeof(one));
		rig_until(rig.b.n_revoked, n + 1);
		evil_send(evil.link, evil_data, sizeof(evil_data));
		rig_until(rig.b.n_closed, 1);
		evil_leave(&evil);
		log_begin();
		honest_check();
	}
	honest_end();
}

/* The victim accesses memory of the attacker, which answers wrongly. */

static struct gantry_region *evil_region;
static void *rma;

static void connect_owner(void)
{
	const struct tcp_ctrl_region r = {.name = {7, 7}, .length = 1u << 30, .rights = 3};
	const struct gantry_token token = {.handle = 7, .generation = 7};
	const struct gantry_queue_attr attr = {.depth = 8};

	evil_connect(&evil);
	evil_ctrl(&evil, TCP_CTRL_REGION, &r, sizeof(r));
	rig_settle();
	evil_link(&evil);
	RIG_OK(rig.ops->import_region(evil.conn, &token, 0, &evil_region));
	RIG_OK(rig.ops->rma_create(evil.conn, &attr, &rma));
}

static void submit(enum gantry_rma_op op, void *local, uint32_t length)
{
	const struct gantry_rma access = {
		.op = op, .local = local, .remote = evil_region, .length = length};

	RIG_OK(rig.ops->rma_submit(rma, &access));
	rig.ops->rma_flush(rma);
}

/* No access may have completed with success. */
static void drop_owner(const char *what, const char *log)
{
	struct gantry_rma_done done[8];
	uint64_t end = 0;

	while (rig.b.n_closed == 0) {
		int n = rig.ops->rma_poll(rma, done, 8);

		for (int i = 0; i < n; i++)
			RIG_RC(-ENOTCONN, done[i].status, what);
		rig_wait(&end, n, what);
	}
	rig.ops->rma_destroy(rma);
	rig.ops->release_region(evil.conn, evil_region);
	log_dropped(&evil, what, log);
	honest_check();
}

static const struct {
	const char *what;
	enum gantry_rma_op op;
	struct tcp_frame frame;
	const char *log;
} answers[] = {
	{"more data than the read", GANTRY_RMA_READ, {.kind = TCP_DATA, .length = 65}, NO_READ},
	{"4 GiB for a read", GANTRY_RMA_READ, {.kind = TCP_DATA, .length = UINT32_MAX}, NO_READ},
	{"no data for a read", GANTRY_RMA_READ, {.kind = TCP_DATA}, NO_READ},
	{"data of another read",
	 GANTRY_RMA_READ,
	 {.kind = TCP_DATA, .queue = 1, .length = 64},
	 NO_READ},
	{"data for a write", GANTRY_RMA_WRITE, {.kind = TCP_DATA, .length = 64}, NO_READ},
	{"ACK for a read", GANTRY_RMA_READ, {.kind = TCP_ACK, .acks = {1, {0}}}, NO_WRITE},
	{"ACK of another write", GANTRY_RMA_WRITE, {.kind = TCP_ACK, .acks = {1, {1}}}, NO_WRITE},
};

static void wrong_answers(void)
{
	uint8_t *local;

	honest_begin(NULL);
	local = rig_local(4096);
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		rig_fill(local, 4096, 5);
		connect_owner();
		submit(answers[i].op, local + 64, 64);
		expect(answers[i].op == GANTRY_RMA_READ ? TCP_READ : TCP_WRITE);
		send_frame(&answers[i].frame);
		drop_owner(answers[i].what, answers[i].log);
		RIG_HOLDS(rig_filled(local, 4096, 5), "local memory after a wrong answer");
	}
	honest_end();
}

/* A read completes when all its data has arrived, and takes no byte more. */
static void data_in_pieces(void)
{
	const struct tcp_frame half = {.kind = TCP_DATA, .length = 32};
	static const uint8_t data[32];
	struct gantry_rma_done done;
	uint8_t *local;

	honest_begin(NULL);
	local = rig_local(4096);
	rig_fill(local, 4096, 5);
	connect_owner();
	submit(GANTRY_RMA_READ, local, 64);
	expect(TCP_READ);
	for (int i = 0; i < 2; i++) {
		rig_settle();
		RIG_NUM(0, (uint64_t)rig.ops->rma_poll(rma, &done, 1),
			"completions before the data");
		send_frame(&half);
		evil_send(evil.link, data, sizeof(data));
	}
	for (uint64_t end = 0; rig.ops->rma_poll(rma, &done, 1) == 0;)
		rig_wait(&end, 0, "the read");
	RIG_OK(done.status);
	RIG_HOLDS(rig_all(local, 64, 0), "the data of the read");
	send_frame(&half);
	drop_owner("data after the end of its read", NO_READ);
	honest_end();
}

/*
 * The owner acknowledges writes that it has not received: their data waits at the victim, and must
 * not be taken from memory that its user uses for something else after the completion.
 */
static void ack_before_the_write(void)
{
	struct tcp_frame ack = {.kind = TCP_ACK, .acks = {.n = 1}};
	uint8_t *local;

	honest_begin(EVIL_UNREAD);
	local = rig_local(1u << 20);
	connect_owner();
	for (int i = 0; i < 8; i++)
		submit(GANTRY_RMA_WRITE, local, 1u << 20);
	rig_settle();
	ack.acks.done[0] = 7;
	send_frame(&ack);
	drop_owner("ACK of a write that was not received", NO_WRITE);
	honest_end();
}

/* As that, for a read whose request waits behind the data of writes. */
static void data_before_the_read(void)
{
	const struct tcp_frame data = {.kind = TCP_DATA, .queue = 7, .length = 64};
	static const uint8_t bytes[64];
	uint8_t *local;

	honest_begin(EVIL_UNREAD);
	local = rig_local(1u << 20);
	connect_owner();
	for (int i = 0; i < 7; i++)
		submit(GANTRY_RMA_WRITE, local, 1u << 20);
	submit(GANTRY_RMA_READ, local, 64);
	rig_settle();
	send_frame(&data);
	evil_send(evil.link, bytes, sizeof(bytes));
	drop_owner("data of a read that was not received", NO_READ);
	honest_end();
}

/*
 * The user destroys its queue while writes wait, so the transport keeps copies. The attacker resets
 * the socket: the copies are freed.
 */
static void reset_while_copies_wait(void)
{
	uint8_t *local;
	int link;

	honest_begin(EVIL_UNREAD);
	local = rig_local(1u << 20);
	connect_owner();
	for (int i = 0; i < 8; i++)
		submit(GANTRY_RMA_WRITE, local, 1u << 20);
	rig_settle();
	rig.ops->rma_destroy(rma);
	rig.ops->release_region(evil.conn, evil_region);
	link = evil.link;
	evil.link = -1;
	evil_reset(link);
	evil_reset(evil.control);
	evil.control = -1;
	rig_until(rig.b.n_closed, 1);
	evil_leave(&evil);
	honest_end();
}

void frame_attacks(void)
{
	RIG_CASE(wrong_frames);
	RIG_CASE(frames_without_effect);
	RIG_CASE(messages_beyond_credit);
	RIG_CASE(message_without_credit);
	RIG_CASE(producers_that_come_and_go);
	RIG_CASE(message_behind_many_frames);
	RIG_CASE(credit_that_goes_back);
	RIG_CASE(producers_while_nothing_is_read);
	RIG_CASE(too_many_accesses);
	RIG_CASE(revoke_while_data_waits);
	RIG_CASE(revoke_while_a_write_arrives);
	RIG_CASE(wrong_answers);
	RIG_CASE(data_in_pieces);
	RIG_CASE(ack_before_the_write);
	RIG_CASE(data_before_the_read);
	RIG_CASE(reset_while_copies_wait);
}
