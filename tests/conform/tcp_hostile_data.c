/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_hostile_data.c - the attacker sends messages with data to a consumer of the victim, and
 * receives messages with data from a producer of the victim.
 */
#include "conform/tcp_hostile.h"

#include <sys/socket.h>
#include <unistd.h>

#define DEPTH 8u
#define MAX_DATA 4096u
#define DATA_BYTES 40u      /* of a message that is cut */
#define BIG (1u << 17)      /* more than the sockets take, if they have small buffers */
#define INLINE_BYTES 16384u /* max_inline of tcp */

static uint8_t buffer[MAX_DATA + 64]; /* of the receives of the victim */

static void send_frame(const struct tcp_frame *frame)
{
	evil_send(evil.link, frame, sizeof(*frame));
}

/* Read frames until one of this kind. The frames before it have no data. */
static struct tcp_frame expect(uint8_t kind)
{
	struct tcp_frame frame;

	do {
		if (evil_read(evil.link, &frame, sizeof(frame)) != sizeof(frame))
			rig_fail_at(__FILE__, __LINE__, "no frame of kind %u", kind);
	} while (frame.kind != kind);
	return frame;
}

/* -- the victim receives -- */

/* Connect the attacker, with n receives of `room` bytes, and a producer with their credit. */
static void connect_to_consumer(uint32_t n, uint32_t room)
{
	const struct gantry_queue_attr attr = {.depth = DEPTH, .max_data = MAX_DATA};

	memset(buffer, 0xaa, sizeof(buffer));
	evil_connect(&evil);
	RIG_OK(rig.ops->consumer_create(evil.conn, &attr, &evil.consumer_id, &evil.consumer));
	for (uint32_t i = 0; i < n; i++) {
		const struct gantry_recv recv = {.buf = buffer, .length = room, .cookie = i};

		RIG_OK(rig.ops->data->post_recv(evil.consumer, &recv, 1));
	}
	evil_link(&evil);
	send_frame(&(struct tcp_frame){.kind = TCP_OPEN, .open.consumer = 1});
	if (n)
		RIG_NUM(n, expect(TCP_CREDIT).credit.allowed, "credit for all receives");
}

static const struct {
	const char *what;
	uint32_t receives;
	struct tcp_frame frame;
	const char *log;
} frames[] = {
	{"a byte more than max_data",
	 1,
	 {.kind = TCP_MESSAGE, .length = MAX_DATA + 1},
	 "sends an invalid message"},
	{"4 GiB", 1, {.kind = TCP_MESSAGE, .length = UINT32_MAX}, "sends an invalid message"},
	{"data of producer 64",
	 1,
	 {.kind = TCP_MESSAGE, .queue = 64, .length = 1},
	 "sends an invalid message"},
	{"57 bytes with data",
	 1,
	 {.kind = TCP_MESSAGE, .imm_len = 57, .length = 1},
	 "sends an invalid message"},
	{"data without credit", 0, {.kind = TCP_MESSAGE, .length = 1}, "exceeds its credit"},
	{"a message without credit", 0, {.kind = TCP_MESSAGE}, "exceeds its credit"},
	{"RETURN without RECALL", 1, {.kind = TCP_RETURN}, "returns credit that was not recalled"},
	{"RETURN without credit", 0, {.kind = TCP_RETURN}, "returns credit that was not recalled"},
};

static void wrong_data_frames(void)
{
	static const uint8_t data[64];

	honest_begin(NULL);
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		connect_to_consumer(frames[i].receives, MAX_DATA);
		send_frame(&frames[i].frame);
		evil_send(evil.link, data, sizeof(data));
		log_dropped(&evil, frames[i].what, frames[i].log);
		RIG_HOLDS(rig_all(buffer, sizeof(buffer), 0xaa), "the buffer of the receive");
		honest_check();
	}
	honest_end();
}

/* Frames that have no effect: their object can have ended shortly before. */
static void data_frames_without_effect(void)
{
	static const struct tcp_frame idle[] = {
		{.kind = TCP_ASK},
		{.kind = TCP_ASK},
		{.kind = TCP_ASK, .queue = 5},
		{.kind = TCP_ASK, .queue = UINT16_MAX},
		{.kind = TCP_RETURN, .queue = 5},
		{.kind = TCP_RETURN, .queue = UINT16_MAX},
		{.kind = TCP_RECALL},
		{.kind = TCP_RECALL, .queue = UINT16_MAX},
		{.kind = TCP_MESSAGE, .queue = 5, .length = 64},
	};
	const struct tcp_frame message = {.kind = TCP_MESSAGE, .length = 64};
	static const uint8_t data[64];
	uint64_t end = 0;

	honest_begin(NULL);
	connect_to_consumer(1, MAX_DATA);
	for (size_t i = 0; i < sizeof(idle) / sizeof(idle[0]); i++)
		send_frame(&idle[i]);
	evil_send(evil.link, data, sizeof(data)); /* of the last frame: dropped */
	send_frame(&message);
	evil_send(evil.link, data, sizeof(data));
	while (evil.taken == 0)
		rig_wait(&end, 0, "the message after frames without effect");
	RIG_HOLDS(rig_all(buffer, 64, 0), "data of the message");
	RIG_HOLDS(rig_all(buffer + 64, sizeof(buffer) - 64, 0xaa), "bytes after the data");
	log_check("frames without effect", 0, NULL);
	evil_leave(&evil);
	honest_end();
}

/* Data that does not fit is dropped, also in pieces, and the next message arrives. */
static void data_beyond_the_buffer(void)
{
	struct tcp_frame message = {.kind = TCP_MESSAGE, .length = MAX_DATA};
	static const uint8_t data[MAX_DATA];
	uint64_t end = 0;

	honest_begin(NULL);
	connect_to_consumer(2, 100);
	send_frame(&message);
	for (uint32_t i = 0; i < MAX_DATA; i += 64) {
		evil_send(evil.link, data, 64);
		rig_settle();
	}
	RIG_NUM(0, evil.taken, "messages with data that fits");
	RIG_HOLDS(rig_all(buffer, sizeof(buffer), 0xaa), "the buffer of the receive");
	message.length = 100;
	send_frame(&message);
	evil_send(evil.link, data, 100);
	while (evil.taken == 0)
		rig_wait(&end, 0, "the message after one that does not fit");
	RIG_HOLDS(rig_all(buffer + 100, sizeof(buffer) - 100, 0xaa), "bytes after the data");
	log_check("data beyond the buffer", 0, NULL);
	evil_leave(&evil);
	honest_end();
}

/* A message whose data is cut at any byte is not delivered, and changes only the bytes before. */
static void cut_data(void)
{
	const struct tcp_frame message = {.kind = TCP_MESSAGE, .length = DATA_BYTES};
	uint8_t bytes[sizeof(message) + DATA_BYTES];

	honest_begin(NULL);
	memcpy(bytes, &message, sizeof(message));
	memset(bytes + sizeof(message), 0xee, DATA_BYTES);
	for (size_t n = 0; n < 3 * sizeof(bytes); n++) {
		size_t sent = n / 3, arrived = sent > sizeof(message) ? sent - sizeof(message) : 0;

		connect_to_consumer(1, MAX_DATA);
		evil_send(evil.link, bytes, sent);
		rig_settle();
		if (n % 3 < 2) {
			if (n % 3 == 0)
				close(evil.link);
			else
				evil_reset(evil.link);
			close(evil.control);
			evil.link = evil.control = -1;
			rig_until(rig.b.n_closed, 1);
			rig_settle();
		}
		RIG_NUM(0, evil.taken, "messages whose data is cut");
		RIG_HOLDS(n % 3 == 1 || rig_all(buffer, arrived, 0xee), "bytes that have arrived");
		RIG_HOLDS(rig_all(buffer + arrived, sizeof(buffer) - arrived, 0xaa),
			  "bytes that have not");
		evil_leave(&evil);
		log_begin();
	}
	honest_end();
}

/* When the consumer has ended, the rest of the data must not reach the buffer. */
static void consumer_that_ends_while_data_arrives(void)
{
	const struct tcp_frame message = {.kind = TCP_MESSAGE, .length = MAX_DATA};
	const struct tcp_frame read = {.kind = TCP_READ, .length = 1, .access = {{1, 1}, 0}};
	static const uint8_t data[MAX_DATA];

	honest_begin(NULL);
	connect_to_consumer(1, MAX_DATA);
	evil_export(&evil, GANTRY_REMOTE_READ, 1);
	send_frame(&message);
	evil_send(evil.link, data, 100);
	rig_settle();
	RIG_HOLDS(rig_all(buffer, 100, 0), "data before the end of the consumer");
	rig.ops->consumer_destroy(evil.consumer);
	evil.consumer = NULL;
	evil_send(evil.link, data, MAX_DATA - 100);
	send_frame(&read);
	expect(TCP_DATA);
	RIG_HOLDS(rig_all(buffer + 100, sizeof(buffer) - 100, 0xaa),
		  "data after the end of the consumer");
	log_check("a consumer that ends", 0, NULL);
	evil_leave(&evil);
	honest_end();
}

/*
 * Two producers: the first has all credit, sends part of a message, and gives nothing back. Only
 * its own messages, and those of its peer's other producers, wait.
 */
static void credit_that_is_not_returned(void)
{
	const struct tcp_frame open = {.kind = TCP_OPEN, .queue = 1, .open.consumer = 1};
	const struct tcp_frame ask = {.kind = TCP_ASK, .queue = 1};
	struct tcp_frame frame;

	honest_begin(NULL);
	connect_to_consumer(2, MAX_DATA);
	send_frame(&open);
	send_frame(&ask);
	frame = expect(TCP_RECALL);
	RIG_NUM(0, frame.queue, "the producer whose credit is recalled");
	send_frame(&ask);
	rig_settle();
	honest_check();
	/* a message within the credit, which the RETURN follows */
	send_frame(&(struct tcp_frame){.kind = TCP_MESSAGE});
	send_frame(&(struct tcp_frame){.kind = TCP_RETURN});
	frame = expect(TCP_CREDIT);
	RIG_NUM(1, frame.queue, "the producer that gets the credit");
	RIG_NUM(1, frame.credit.allowed, "the credit that was returned");
	send_frame(&(struct tcp_frame){.kind = TCP_MESSAGE});
	log_dropped(&evil, "a message after RETURN", "exceeds its credit");
	honest_end();
}

/* -- the victim sends -- */

static void *producer;

/* Connect the attacker, whose consumer accepts data and gives credit for n messages. */
static void connect_to_producer(uint32_t n)
{
	const struct tcp_ctrl_consumer consumer = {.id = 3, .up = 1, .max_data = BIG};
	const struct gantry_queue_attr attr = {.depth = DEPTH, .max_data = BIG};
	int up;

	evil_connect(&evil);
	evil_link(&evil);
	up = rig.b.n_up;
	evil_ctrl(&evil, TCP_CTRL_CONSUMER, &consumer, sizeof(consumer));
	rig_until(rig.b.n_up, up + 1);
	RIG_OK(rig.ops->producer_create(evil.conn, 3, &attr, &producer));
	expect(TCP_OPEN);
	send_frame(&(struct tcp_frame){.kind = TCP_CREDIT, .credit.allowed = n});
	rig_settle();
}

/* Read n messages of `length` bytes, and check their data. */
static void read_messages(uint32_t n, uint32_t length, uint32_t seed)
{
	static uint8_t data[BIG];

	for (uint32_t i = 0; i < n; i++) {
		RIG_NUM(length, expect(TCP_MESSAGE).length, "length of the data");
		RIG_NUM(length, evil_read(evil.link, data, length), "bytes of the data");
		RIG_HOLDS(rig_filled(data, length, seed), "the data at the time of the send");
	}
}

enum then { PRODUCER_ENDS, REGION_ENDS };

/*
 * The attacker does not read, so data waits. Then the memory is no longer the transport's: what the
 * attacker reads later is the data at the time of the send.
 */
static void change_while_data_waits(enum then then)
{
	static uint8_t memory[BIG];
	const struct gantry_region region = {
		.addr = memory, .length = BIG, .fd = -1, .rights = GANTRY_REMOTE_READ};
	const struct gantry_send send = {.length = BIG, .region = &region, .cookie = 7};
	const struct tcp_name name = {5, 1};
	struct gantry_token token;
	uint64_t cookie = 0, end = 0;
	uint32_t n_sent = 0;
	int n;

	connect_to_producer(DEPTH + 1);
	rig_fill(memory, BIG, 3);
	RIG_OK(rig.ops->export_region(evil.conn, &region, GANTRY_REMOTE_READ, 5, &token));
	while (rig.ops->data->send(producer, &send, 0) == 0)
		n_sent++;
	RIG_HOLDS(n_sent >= 2 && n_sent <= DEPTH, "messages until the queue is full");
	RIG_RC(0, rig.ops->data->poll_send(producer, &cookie, 1),
	       "cookies before the data is read");
	if (then == PRODUCER_ENDS) {
		rig.ops->producer_destroy(producer);
	} else {
		n = rig.b.n_revoked;
		RIG_OK(rig.ops->revoke_region(evil.conn, 5));
		evil_ctrl(&evil, TCP_CTRL_RELEASED, &name, sizeof(name));
		rig_until(rig.b.n_revoked, n + 1);
		RIG_OK(rig.b.revoked_rc);
	}
	memset(memory, 0xbb, BIG);
	read_messages(n_sent, BIG, 3);
	if (then == PRODUCER_ENDS) {
		expect(TCP_SHUT);
	} else {
		for (uint32_t i = 0; i < n_sent; i += (uint32_t)n) {
			n = rig.ops->data->poll_send(producer, &cookie, 1);
			rig_wait(&end, n, "the cookies of data that was sent");
		}
		RIG_RC(0, rig.ops->data->poll_send(producer, &cookie, 1), "further cookies");
		rig.ops->producer_destroy(producer);
	}
	log_check("data that waits", 0, NULL);
	evil_leave(&evil);
}

static void changes_while_data_waits(void)
{
	honest_begin(EVIL_UNREAD);
	change_while_data_waits(PRODUCER_ENDS);
	change_while_data_waits(REGION_ENDS);
	honest_end();
}

/* Data that send() takes from memory of the caller is copied if the attacker does not read. */
static void copies_while_nothing_is_read(void)
{
	static uint8_t data[INLINE_BYTES];
	const struct gantry_send send = {.length = sizeof(data), .data = data};
	uint32_t n_sent = 0;

	honest_begin(EVIL_UNREAD);
	connect_to_producer(DEPTH + 1000);
	rig_fill(data, sizeof(data), 4);
	while (n_sent < 1000 && rig.ops->data->send(producer, &send, 0) == 0) {
		memset(data, 0xbb, sizeof(data));
		rig_fill(data, sizeof(data), 4 + ++n_sent);
	}
	RIG_HOLDS(n_sent >= DEPTH && n_sent < 1000, "messages until the queue is full");
	for (uint32_t i = 0; i < n_sent; i++)
		read_messages(1, sizeof(data), 4 + i);
	for (uint64_t end = 0; rig.ops->data->send(producer, &send, 0);)
		rig_wait(&end, 0, "the queue to have room again");
	rig.ops->producer_destroy(producer);
	log_check("data that is not read", 0, NULL);
	evil_leave(&evil);
	honest_end();
}

/* The attacker recalls the credit of a producer, and again before it has read the answer. */
static void credit_that_is_recalled(void)
{
	const struct gantry_send send = {.length = 3, .data = "abc"};
	static uint8_t data[INLINE_BYTES];
	const struct gantry_send much = {.length = sizeof(data), .data = data};
	const struct tcp_frame recall = {.kind = TCP_RECALL};

	honest_begin(EVIL_UNREAD);
	connect_to_producer(2);
	RIG_OK(rig.ops->data->send(producer, &send, 0));
	send_frame(&recall);
	expect(TCP_MESSAGE);
	evil_read(evil.link, data, 3);
	expect(TCP_RETURN);
	RIG_RC(-EAGAIN, rig.ops->data->send(producer, &send, 0), "send after RECALL");
	expect(TCP_ASK);
	send_frame(&(struct tcp_frame){.kind = TCP_CREDIT, .credit.allowed = 1000});
	rig_settle();
	for (uint64_t end = 0; rig.ops->data->send(producer, &much, 0) == 0;)
		rig_wait(&end, 1, "the queue to be full");
	send_frame(&recall);
	rig_settle();
	send_frame(&recall);
	for (uint64_t end = 0; rig.b.n_closed == 0;) {
		rig.ops->flush(producer);
		rig_wait(&end, 0, "the end of the connection");
	}
	RIG_RC(-ENOTCONN, rig.ops->data->send(producer, &send, 0), "send after the end");
	rig.ops->producer_destroy(producer);
	log_dropped(&evil, "RECALL twice", "recalls credit that is being returned");
	honest_end();
}

void data_attacks(void)
{
	RIG_CASE(wrong_data_frames);
	RIG_CASE(data_frames_without_effect);
	RIG_CASE(data_beyond_the_buffer);
	RIG_CASE(cut_data);
	RIG_CASE(consumer_that_ends_while_data_arrives);
	RIG_CASE(credit_that_is_not_returned);
	RIG_CASE(changes_while_data_waits);
	RIG_CASE(copies_while_nothing_is_read);
	RIG_CASE(credit_that_is_recalled);
}
