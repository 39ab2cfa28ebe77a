/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_hostile_cut.c - every hello, message and frame is cut at every byte. Then the socket ends, is
 * reset, or stays silent.
 */
#include "conform/tcp_hostile.h"

#include <sys/socket.h>
#include <unistd.h>

#define DATA_BYTES 40u

enum end { FIN, RST, SILENCE, ENDS };

/* Close a socket of the attacker; 0: it stays. */
static void end_socket(int *fd, enum end how)
{
	if (*fd >= 0 && how == FIN)
		close(*fd);
	else if (*fd >= 0 && how == RST)
		evil_reset(*fd);
	if (how != SILENCE)
		*fd = -1;
}

/* The victim forgets the connection, and logs no protocol error. */
static void leave(const char *what, enum end how)
{
	end_socket(&evil.link, how);
	end_socket(&evil.control, how);
	if (how == SILENCE)
		rig_settle();
	else
		rig_until(rig.b.n_closed, 1);
	RIG_HOLDS(how == SILENCE || rig.b.reason == -ENOTCONN, what);
	evil_leave(&evil);
	log_check(what, 0, NULL);
}

/* -- hellos -- */

static void cut_hellos(void)
{
	int fd;

	honest_begin(NULL);
	evil_connect(&evil);
	for (size_t n = 0; n < 2 * sizeof(struct tcp_hello); n++) {
		struct tcp_hello hello = evil_hello(&evil, n % 2 ? TCP_LINK : TCP_CONTROL);

		for (enum end how = FIN; how < ENDS; how++) {
			fd = evil_socket();
			evil_send(fd, &hello, n / 2);
			rig_settle();
			if (how == RST)
				evil_reset(fd);
			else
				close(fd);
		}
		log_check("a cut hello", 0, NULL);
	}
	honest_check();
	evil_leave(&evil);
	honest_end();
}

/* -- control messages -- */

static void cut_messages(void)
{
	static const struct {
		unsigned kind;
		uint16_t length;
		union {
			struct tcp_ctrl_consumer consumer;
			struct tcp_ctrl_region region;
			struct tcp_name name;
			uint8_t bytes[96];
		} body;
	} messages[] = {
		{TCP_CTRL_USER, 32, {.bytes = "user"}},
		{TCP_CTRL_CONSUMER, sizeof(struct tcp_ctrl_consumer), {.consumer = {3, 0, 1, 0}}},
		{TCP_CTRL_REGION,
		 sizeof(struct tcp_ctrl_region),
		 {.region = {.name = {1, 1}, .length = 64, .rights = 3}}},
		{TCP_CTRL_REVOKE, sizeof(struct tcp_name), {.name = {8, 8}}},
		{TCP_CTRL_RELEASED, sizeof(struct tcp_name), {.name = {1, 1}}},
		{TCP_CTRL_BYE, 0, {.bytes = ""}},
	};
	const struct tcp_ctrl_region held = {.name = {8, 1}, .length = 64, .rights = 1};

	honest_begin("revoke_timeout=60s");
	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		struct {
			struct tcp_ctrl head;
			uint8_t body[96];
		} msg = {.head = {.kind = (uint8_t)messages[i].kind, .length = messages[i].length}};

		memcpy(msg.body, &messages[i].body, messages[i].length);
		for (size_t n = 0; n < sizeof(msg.head) + messages[i].length; n++)
			for (enum end how = FIN; how < ENDS; how++) {
				evil_connect(&evil);
				evil_export(&evil, EVIL_BOTH, 1);
				RIG_OK(rig.ops->revoke_region(evil.conn, 1));
				evil_ctrl(&evil, TCP_CTRL_REGION, &held, sizeof(held));
				evil_send(evil.control, &msg, n);
				rig_settle();
				leave("a cut message", how);
			}
		honest_check();
	}
	honest_end();
}

/* -- frames -- */

static void run_frame(const struct tcp_frame *frame, size_t n, enum end how)
{
	evil_connect(&evil);
	evil_export(&evil, GANTRY_REMOTE_READ, 1);
	evil_consumer(&evil, 8, 4);
	evil_link(&evil);
	evil_send(evil.link, frame, n);
	rig_settle();
	leave("a cut frame", how);
}

static void cut_frames(void)
{
	static const struct tcp_frame frames[] = {
		{.kind = TCP_OPEN, .open.consumer = 1},
		{.kind = TCP_SHUT},
		{.kind = TCP_CREDIT, .credit.allowed = 4},
		{.kind = TCP_MESSAGE, .imm_len = 4},
		{.kind = TCP_READ, .length = DATA_BYTES, .access = {{1, 1}, 0}},
		{.kind = TCP_ACK},
	};

	honest_begin(NULL);
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++)
		for (size_t n = 0; n < sizeof(frames[i]); n++)
			for (enum end how = FIN; how < ENDS; how++)
				run_frame(&frames[i], n, how);
	honest_end();
}

/* A write changes only the bytes that have arrived, and only in the memory that it names. */
static void cut_writes(void)
{
	const struct tcp_frame write = {
		.kind = TCP_WRITE, .length = DATA_BYTES, .access = {{5, 1}, 100}};
	uint8_t bytes[sizeof(write) + DATA_BYTES];
	static uint8_t target[4096];
	const struct gantry_region region = {
		.addr = target, .length = sizeof(target), .fd = -1, .rights = EVIL_BOTH};
	struct gantry_token token;

	honest_begin(NULL);
	memcpy(bytes, &write, sizeof(write));
	memset(bytes + sizeof(write), 0xee, DATA_BYTES);
	for (size_t n = 0; n < sizeof(bytes); n++)
		for (enum end how = FIN; how < ENDS; how++) {
			size_t arrived = n > sizeof(write) ? n - sizeof(write) : 0;

			memset(target, 0, 4096);
			evil_connect(&evil);
			RIG_OK(rig.ops->export_region(evil.conn, &region, EVIL_BOTH, 5, &token));
			evil_link(&evil);
			evil_send(evil.link, bytes, n);
			rig_settle();
			leave("a cut write", how);
			RIG_HOLDS(rig_all(target, 100, 0), "bytes before a cut write");
			RIG_HOLDS(rig_all(target + 100, arrived, 0xee), "a cut write");
			RIG_HOLDS(rig_all(target + 100 + arrived, 4096 - 100 - arrived, 0),
				  "bytes after a cut write");
		}
	honest_end();
}

/* The answer of the attacker to a read is cut: the read fails. */
static void cut_answers(void)
{
	const struct tcp_ctrl_region r = {.name = {7, 7}, .length = 4096, .rights = 3};
	const struct gantry_token token = {.handle = 7, .generation = 7};
	const struct gantry_queue_attr attr = {.depth = 8};
	const struct tcp_frame data = {.kind = TCP_DATA, .length = DATA_BYTES};
	uint8_t bytes[sizeof(data) + DATA_BYTES] = {0};
	struct gantry_region *region;
	struct gantry_rma op = {.op = GANTRY_RMA_READ, .length = DATA_BYTES};
	struct gantry_rma_done done;
	void *rma;

	honest_begin(NULL);
	op.local = rig_local(4096);
	memcpy(bytes, &data, sizeof(data));
	for (size_t n = 0; n < sizeof(bytes); n++)
		for (enum end how = FIN; how < SILENCE; how++) {
			struct tcp_frame read;
			uint64_t end = 0;

			evil_connect(&evil);
			evil_ctrl(&evil, TCP_CTRL_REGION, &r, sizeof(r));
			rig_settle();
			evil_link(&evil);
			RIG_OK(rig.ops->import_region(evil.conn, &token, 0, &region));
			RIG_OK(rig.ops->rma_create(evil.conn, &attr, &rma));
			op.remote = region;
			RIG_OK(rig.ops->rma_submit(rma, &op));
			rig.ops->rma_flush(rma);
			evil_read(evil.link, &read, sizeof(read));
			evil_send(evil.link, bytes, n);
			end_socket(&evil.link, how);
			end_socket(&evil.control, how);
			while (rig.ops->rma_poll(rma, &done, 1) == 0)
				rig_wait(&end, 0, "the end of a read");
			RIG_RC(-ENOTCONN, done.status, "a read with a cut answer");
			rig.ops->rma_destroy(rma);
			rig.ops->release_region(evil.conn, region);
			leave("a cut answer", how);
		}
	honest_end();
}

void cut_attacks(void)
{
	RIG_CASE(cut_hellos);
	RIG_CASE(cut_messages);
	RIG_CASE(cut_frames);
	RIG_CASE(cut_writes);
	RIG_CASE(cut_answers);
}
