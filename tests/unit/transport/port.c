/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiving end of a lane: what arrives is checked, done once, answered once; and the end comes, whatever the peer does. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "fake/host.h"
#include "fake/transport.h"
#include "fake/worker.h"
#include "transport/port.h"
#include "unity.h"

#define DEPTH 4
#define REGION 4096u

static struct fake_transport ft;
static struct fake_worker fw;
static struct fake_conn *conn;
static struct fake_queue *consumer, *producer;
static struct fake_rma *rma;
static struct gn_port *port;
static uint64_t done, failed;
static struct gantry_region memory = {.addr = ft.memory, .length = REGION, .rights = GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE};
static struct gantry_region read_only = {.addr = ft.memory, .length = REGION, .rights = GANTRY_REMOTE_READ};
static struct gantry_region write_only = {.addr = ft.memory, .length = REGION, .rights = GANTRY_REMOTE_WRITE};
static struct gantry_region *regions[] = {NULL, &memory, &read_only, &write_only};
static struct gn_io_rules rules;
static unsigned n_broken, n_idle;
static int broken_reason;

/* the terminal: holds what it gets, or refuses it */
static struct gantry_io *held[DEPTH];
static _Atomic unsigned n_held, n_seen, n_refused;
static _Atomic int terminal_rc, terminal_now;
static uint32_t last_tag[DEPTH];

static int terminal_submit(void *self, struct gantry_io *io)
{
	int rc = terminal_rc;

	(void)self;
	if ((io->tag & 0xffff) != io->slot || io->tag == last_tag[io->slot])
		fake_fail("our own tag is %x in slot %u", io->tag, io->slot);
	if (rc != 0) {
		n_refused++;
		return rc;
	}
	n_seen++;
	last_tag[io->slot] = io->tag;
	if (terminal_now)
		gantry_complete(io);
	else
		held[n_held++] = io;
	return 0;
}

static void on_broken(void *arg, int reason)
{
	(void)arg;
	n_broken++;
	broken_reason = reason;
}

static void on_idle(void *arg)
{
	(void)arg;
	n_idle++;
}

static void make_port(int moved)
{
	struct gantry_queue_attr queue = {.depth = 2 * DEPTH};
	struct gn_port_attr attr = {
		.lane = &fw.lane,
		.ops = &fake_transport_ops,
		.rules = &rules,
		.terminal = {.submit = terminal_submit},
		.depth = DEPTH,
		.broken = on_broken,
		.idle = on_idle,
		.ops_done = &done,
		.ops_failed = &failed,
	};
	uint32_t id;

	conn = fake_conn_bare(&ft);
	TEST_ASSERT_EQUAL_INT(0, fake_transport_ops.consumer_create(conn, &queue, &id, (void **)&consumer));
	TEST_ASSERT_EQUAL_INT(0, fake_transport_ops.post_recv(consumer, NULL, queue.depth));
	TEST_ASSERT_EQUAL_INT(0, fake_transport_ops.producer_create(conn, 1, &queue, (void **)&producer));
	rma = NULL;
	if (moved)
		TEST_ASSERT_EQUAL_INT(0, fake_transport_ops.rma_create(conn, &queue, (void **)&rma));
	memory.addr = moved ? NULL : ft.memory;
	attr.consumer = consumer;
	attr.producer = producer;
	attr.rma = rma;
	TEST_ASSERT_EQUAL_INT(0, gn_port_create(&attr, &port));
}

void setUp(void)
{
	rules = (struct gn_io_rules){
		.volume = {.size = 1 << 20, .block_size = 512, .ops = 0x1f, .max_io = 2048},
		.regions = regions,
		.n_regions = 4,
		.io_timeout_ns = 3 * GN_NS_PER_S,
		.hop = GANTRY_HOP_TARGET,
	};
	done = failed = 0;
	n_broken = n_idle = 0;
	n_held = 0;
	n_seen = 0;
	n_refused = 0;
	terminal_rc = 0;
	terminal_now = 0;
	memset(last_tag, 0, sizeof(last_tag));
	fake_clock_start();
	fake_transport_init(&ft);
	fake_worker_start(&fw);
}

void tearDown(void)
{
	gn_port_destroy(&port);
	fake_transport_ops.producer_destroy(producer);
	fake_transport_ops.consumer_destroy(consumer);
	if (rma != NULL)
		fake_transport_ops.rma_destroy(rma);
	fake_transport_ops.disconnect(conn);
	fake_worker_stop(&fw);
	fake_transport_fini(&ft);
	fake_clock_stop();
}

static struct gantry_io request(uint32_t tag, uint8_t opcode)
{
	return (struct gantry_io){.opcode = opcode, .tag = tag, .offset = 1024, .length = 1024, .region = 1, .region_offset = 512};
}

static void ask(struct gantry_io wire)
{
	fake_arrive(consumer, &wire, GANTRY_IO_WIRE_BYTES);
	fake_settle(&fw);
}

static struct gantry_io replied(void)
{
	struct gantry_io wire = {.opcode = 0};
	uint8_t imm[GANTRY_IMM_MAX];

	TEST_ASSERT_EQUAL_INT(1, fake_taken(producer, imm));
	memcpy(&wire, imm, sizeof(imm));
	return wire;
}

static void no_reply(void)
{
	uint8_t imm[GANTRY_IMM_MAX];

	TEST_ASSERT_EQUAL_INT(0, fake_taken(producer, imm));
}

static void finish_on_lane(void *arg)
{
	gantry_fail(held[0], *(enum gantry_status *)arg);
	memmove(&held[0], &held[1], --n_held * sizeof(held[0]));
}

static void finish(enum gantry_status status)
{
	gn_worker_call(fw.worker, finish_on_lane, &status);
	fake_settle(&fw);
}

static void a_request_goes_down_and_its_answer_back(void)
{
	struct gantry_io wire;

	make_port(0);
	ask(request(0xabcd0007, GANTRY_OP_WRITE));
	TEST_ASSERT_EQUAL_UINT(1, n_held);
	TEST_ASSERT_EQUAL_PTR(ft.memory + 512, held[0]->data);
	TEST_ASSERT_EQUAL_UINT(3000000, held[0]->deadline_us);
	TEST_ASSERT_NOT_EQUAL(0xabcd0007, held[0]->tag);
	no_reply();
	fake_clock_advance(7000);
	finish(GANTRY_S_OK);
	wire = replied();
	TEST_ASSERT_EQUAL_HEX32(0xabcd0007, wire.tag);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, wire.status);
	TEST_ASSERT_EQUAL_UINT(7000, wire.hop_ns[GANTRY_HOP_TARGET]);
	TEST_ASSERT_EQUAL_UINT(0, fake_peek(producer, &producer->n_unflushed));
	TEST_ASSERT_EQUAL_UINT64(1, done);
	TEST_ASSERT_EQUAL_UINT(2 * DEPTH, fake_peek(consumer, &consumer->posted));
}

static void what_is_wrong_with_an_io_fails_that_io(void)
{
	static const struct {
		struct gantry_io io;
		unsigned status;
	} table[] = {
		{{.opcode = GANTRY_OP_COUNT}, GANTRY_S_INVALID},
		{{.opcode = 255}, GANTRY_S_INVALID},
		{{.opcode = GANTRY_OP_DISCARD, .length = 512}, GANTRY_S_UNSUPPORTED},
		{{.opcode = GANTRY_OP_READ, .flags = 4, .length = 512, .region = 1}, GANTRY_S_INVALID},
		{{.opcode = GANTRY_OP_READ, .length = 0, .region = 1}, GANTRY_S_INVALID},
		{{.opcode = GANTRY_OP_READ, .length = 513, .region = 1}, GANTRY_S_INVALID},
		{{.opcode = GANTRY_OP_READ, .length = 512, .offset = 1, .region = 1}, GANTRY_S_INVALID},
		{{.opcode = GANTRY_OP_READ, .length = 2560, .region = 1}, GANTRY_S_INVALID},
		{{.opcode = GANTRY_OP_READ, .length = 512, .offset = 1 << 20, .region = 1}, GANTRY_S_RANGE},
		{{.opcode = GANTRY_OP_READ, .length = 1024, .offset = UINT64_MAX - 511, .region = 1}, GANTRY_S_RANGE},
		{{.opcode = GANTRY_OP_WRITE_ZEROES, .length = 1u << 31}, GANTRY_S_RANGE},
		{{.opcode = GANTRY_OP_READ, .length = 512, .region = 0}, GANTRY_S_ACCESS},
		{{.opcode = GANTRY_OP_READ, .length = 512, .region = 4}, GANTRY_S_ACCESS},
		{{.opcode = GANTRY_OP_READ, .length = 512, .region = UINT32_MAX}, GANTRY_S_ACCESS},
		{{.opcode = GANTRY_OP_READ, .length = 512, .region = 2}, GANTRY_S_ACCESS},
		{{.opcode = GANTRY_OP_WRITE, .length = 512, .region = 3}, GANTRY_S_ACCESS},
		{{.opcode = GANTRY_OP_READ, .length = 512, .region = 1, .region_offset = REGION - 511}, GANTRY_S_RANGE},
		{{.opcode = GANTRY_OP_READ, .length = 512, .region = 1, .region_offset = UINT64_MAX}, GANTRY_S_RANGE},
	};

	make_port(0);
	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct gantry_io io = table[i].io, wire;

		io.tag = i << 16;
		ask(io);
		wire = replied();
		TEST_ASSERT_EQUAL_UINT(table[i].status, wire.status);
		TEST_ASSERT_EQUAL_UINT(i << 16, wire.tag);
	}
	TEST_ASSERT_EQUAL_UINT(0, n_seen);
	TEST_ASSERT_EQUAL_UINT(0, n_broken);
	TEST_ASSERT_EQUAL_UINT64(sizeof(table) / sizeof(table[0]), failed);
	rules.volume.flags = GANTRY_VOLUME_READ_ONLY;
	ask(request(1, GANTRY_OP_WRITE));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_READ_ONLY, replied().status);
	ask(request(1, GANTRY_OP_READ));
	ask((struct gantry_io){.opcode = GANTRY_OP_FLUSH, .offset = 3, .length = 5});
	ask((struct gantry_io){.opcode = GANTRY_OP_NOP, .region = 99});
	TEST_ASSERT_EQUAL_UINT(3, n_seen);
	while (n_held > 0)
		finish(GANTRY_S_OK);
}

static void a_terminal_that_refuses_for_good_fails_the_io(void)
{
	make_port(0);
	terminal_rc = -EROFS;
	ask(request(5, GANTRY_OP_READ));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_READ_ONLY, replied().status);
	terminal_rc = -EBUSY;
	ask(request(6, GANTRY_OP_READ));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, replied().status);
}

static void a_terminal_that_is_full_is_asked_again(void)
{
	make_port(0);
	terminal_rc = -EAGAIN;
	ask(request(5, GANTRY_OP_READ));
	ask(request(6, GANTRY_OP_READ));
	no_reply();
	TEST_ASSERT_TRUE(n_refused >= 2);
	terminal_rc = 0;
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(2, n_held);
	finish(GANTRY_S_OK);
	finish(GANTRY_S_IO);
	TEST_ASSERT_EQUAL_UINT(5, replied().tag);
	TEST_ASSERT_EQUAL_UINT(6, replied().tag);
}

static void what_nobody_takes_by_its_deadline_is_canceled(void)
{
	struct gantry_io io = request(5, GANTRY_OP_READ);

	make_port(0);
	terminal_rc = -EAGAIN;
	io.deadline_us = 1000;
	ask(io);
	io.tag = 6;
	io.deadline_us = 0;
	ask(io);
	fake_clock_advance(GN_NS_PER_MS - 1);
	fake_settle(&fw);
	no_reply();
	fake_clock_advance(1);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_CANCELED, replied().status);
	no_reply();
	fake_clock_advance(3 * GN_NS_PER_S);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(6, replied().tag);
	TEST_ASSERT_EQUAL_UINT(0, n_seen);
}

static void replies_wait_for_the_peer_in_order(void)
{
	make_port(0);
	terminal_now = 1;
	fake_queue_refuse(producer, -EAGAIN);
	for (uint32_t i = 0; i < DEPTH; i++)
		ask(request(i, GANTRY_OP_READ));
	no_reply();
	TEST_ASSERT_EQUAL_UINT(DEPTH, n_seen);
	fake_queue_refuse(producer, 0);
	fake_settle(&fw);
	for (uint32_t i = 0; i < DEPTH; i++)
		TEST_ASSERT_EQUAL_UINT(i, replied().tag);
	ask(request(9, GANTRY_OP_READ));
	TEST_ASSERT_EQUAL_UINT(9, replied().tag);
	TEST_ASSERT_EQUAL_UINT(0, n_broken);
}

static void let_one_pass(void *arg)
{
	(void)arg;
	producer->send_rc = 0;
	gantry_fail(held[0], GANTRY_S_OK);
	n_held = 0;
}

static void a_reply_does_not_overtake_one_that_waits(void)
{
	make_port(0);
	ask(request(1, GANTRY_OP_READ));
	ask(request(2, GANTRY_OP_READ));
	fake_queue_refuse(producer, -EAGAIN);
	finish(GANTRY_S_OK);
	gn_worker_call(fw.worker, let_one_pass, NULL); /* both wait now, and there is room */
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, replied().tag);
	TEST_ASSERT_EQUAL_UINT(2, replied().tag);
}

static void more_in_flight_than_agreed_breaks(void)
{
	make_port(0);
	for (uint32_t i = 0; i < DEPTH; i++)
		ask(request(i, GANTRY_OP_READ));
	TEST_ASSERT_EQUAL_UINT(0, n_broken);
	ask(request(9, GANTRY_OP_READ));
	ask(request(9, GANTRY_OP_READ));
	TEST_ASSERT_EQUAL_UINT(1, n_broken);
	TEST_ASSERT_EQUAL_INT(-EPROTO, broken_reason);
	TEST_ASSERT_EQUAL_UINT(DEPTH, n_seen);
	while (n_held > 0)
		finish(GANTRY_S_OK);
	no_reply();
}

static void a_short_message_breaks(void)
{
	struct gantry_io io = request(1, GANTRY_OP_READ);

	make_port(0);
	fake_arrive(consumer, &io, GANTRY_IO_WIRE_BYTES - 8);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, n_broken);
	TEST_ASSERT_EQUAL_UINT(0, n_seen);
}

static void a_broken_queue_breaks(void)
{
	make_port(0);
	fake_queue_break(consumer, -EPROTO);
	fake_settle(&fw);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, n_broken);
}

static void a_second_completion_is_ignored(void)
{
	struct gantry_io *io;
	enum gantry_status ok = GANTRY_S_OK;

	make_port(0);
	ask(request(1, GANTRY_OP_READ));
	io = held[0];
	finish(GANTRY_S_OK);
	held[n_held++] = io;
	gn_worker_call(fw.worker, finish_on_lane, &ok);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, replied().tag);
	no_reply();
	TEST_ASSERT_EQUAL_UINT64(1, gn_host_counter(&fw.host, "double_completions"));
}

static void idle_comes_once_and_after_the_last_reply(void)
{
	make_port(0);
	ask(request(1, GANTRY_OP_READ));
	gn_port_quiesce(port);
	ask(request(2, GANTRY_OP_READ));
	TEST_ASSERT_EQUAL_UINT(0, n_idle);
	TEST_ASSERT_EQUAL_UINT(1, n_seen);
	fake_queue_refuse(producer, -EAGAIN);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(0, n_idle);
	fake_queue_refuse(producer, 0);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, n_idle);
	TEST_ASSERT_EQUAL_UINT(1, replied().tag);
	no_reply();
	gn_port_quiesce(port);
	gn_port_abandon(port);
	TEST_ASSERT_EQUAL_UINT(1, n_idle);
}

static void quiesce_at_rest_is_idle_at_once(void)
{
	make_port(0);
	gn_port_quiesce(port);
	TEST_ASSERT_EQUAL_UINT(1, n_idle);
}

/* The last reply, its doorbell, idle: also when nobody polls the port between completion and destruction. */
static void quiesce_then_finish_on_lane(void *arg)
{
	(void)arg;
	gn_port_quiesce(port);
	gantry_fail(held[0], GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(1, n_idle);
	TEST_ASSERT_EQUAL_UINT(0, producer->n_unflushed);
}

static void the_doorbell_rings_before_idle(void)
{
	make_port(0);
	ask(request(1, GANTRY_OP_READ));
	gn_worker_call(fw.worker, quiesce_then_finish_on_lane, NULL);
	n_held = 0;
}

static void an_abandoned_port_waits_for_nobody_but_its_terminal(void)
{
	make_port(0);
	ask(request(1, GANTRY_OP_READ)); /* the terminal has it */
	terminal_rc = -EAGAIN;
	ask(request(2, GANTRY_OP_READ)); /* nobody takes it */
	fake_queue_refuse(producer, -EAGAIN);
	rules.n_regions = 0;
	ask(request(3, GANTRY_OP_READ)); /* its refusal is not read */
	gn_port_quiesce(port);
	TEST_ASSERT_EQUAL_UINT(0, n_idle);
	gn_port_abandon(port);
	TEST_ASSERT_EQUAL_UINT(0, n_idle);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(1, n_idle);
	no_reply();
}

static void a_lost_connection_swallows_replies(void)
{
	make_port(0);
	ask(request(1, GANTRY_OP_READ));
	conn->closed = 1;
	finish(GANTRY_S_OK);
	gn_port_quiesce(port);
	TEST_ASSERT_EQUAL_UINT(1, n_idle);
}

static void data_that_is_not_mapped_is_moved(void)
{
	make_port(1);
	memset(ft.memory, 0x11, FAKE_REGION_BYTES);
	ask(request(1, GANTRY_OP_WRITE));
	TEST_ASSERT_EQUAL_UINT(1, n_held);
	TEST_ASSERT_EQUAL_UINT(0x11, ((uint8_t *)held[0]->data)[1023]);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, replied().status);
	ask(request(2, GANTRY_OP_READ));
	memset(held[0]->data, 0x22, 1024);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, replied().status);
	TEST_ASSERT_EQUAL_UINT(0x11, ft.memory[511]);
	TEST_ASSERT_EQUAL_UINT(0x22, ft.memory[512]);
	TEST_ASSERT_EQUAL_UINT(0x22, ft.memory[1535]);
	TEST_ASSERT_EQUAL_UINT(0x11, ft.memory[1536]);
	ask(request(3, GANTRY_OP_READ));
	finish(GANTRY_S_IO); /* nothing to move */
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, replied().status);
	TEST_ASSERT_EQUAL_UINT(2, rma->n_submits);
}

static void a_move_that_fails_fails_the_io(void)
{
	make_port(1);
	fake_rma_set(rma, 0, -EACCES, 0);
	ask(request(1, GANTRY_OP_WRITE));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_ACCESS, replied().status);
	ask(request(2, GANTRY_OP_READ));
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_ACCESS, replied().status);
	fake_rma_set(rma, -ERANGE, 0, 0);
	ask(request(3, GANTRY_OP_WRITE));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_RANGE, replied().status);
	TEST_ASSERT_EQUAL_UINT(1, n_seen);
}

static void a_move_that_finds_no_room_is_tried_again(void)
{
	make_port(1);
	fake_rma_set(rma, -EAGAIN, 0, 0);
	ask(request(1, GANTRY_OP_WRITE));
	ask(request(2, GANTRY_OP_READ));
	finish(GANTRY_S_OK);
	no_reply();
	fake_rma_set(rma, 0, 0, 0);
	fake_settle(&fw);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(2, replied().tag);
	TEST_ASSERT_EQUAL_UINT(1, n_held);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(1, replied().tag);
}

static uint64_t turns(void)
{
	static struct fake_report report;

	fake_report_init(&report);
	gn_worker_report(fw.worker, &report.pub);
	return fake_reported_u64(&report, "turns");
}

/* Nothing rings at the end of a move: the lane has to look by itself. */
static void a_lane_does_not_sleep_while_data_moves(void)
{
	uint64_t before;

	make_port(1);
	fake_rma_set(rma, 0, 0, 1);
	terminal_now = 1;
	ask(request(1, GANTRY_OP_WRITE));
	before = turns();
	while (turns() < before + 100)
		; /* it goes round */
	fake_rma_set(rma, 0, 0, 0);
	while (fake_peek(producer, &producer->n_sends) == 0)
		;
	TEST_ASSERT_EQUAL_UINT(1, replied().tag);
}

static void an_abandoned_port_gives_up_moves_that_have_not_begun(void)
{
	make_port(1);
	fake_rma_set(rma, -EAGAIN, 0, 0);
	ask(request(1, GANTRY_OP_WRITE));
	gn_port_abandon(port);
	TEST_ASSERT_EQUAL_UINT(1, n_idle);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_CANCELED, replied().status);
}

/* A move that was under way ends later: its descriptor must not go down any more, where a stage could keep it. */
static void an_abandoned_port_sends_nothing_down(void)
{
	make_port(1);
	fake_rma_set(rma, 0, 0, 1);
	ask(request(1, GANTRY_OP_WRITE));
	gn_port_abandon(port);
	TEST_ASSERT_EQUAL_UINT(0, n_idle);
	fake_rma_set(rma, 0, 0, 0);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(0, n_seen);
	TEST_ASSERT_EQUAL_UINT(1, n_idle);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_CANCELED, replied().status);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(a_request_goes_down_and_its_answer_back);
	RUN_TEST(what_is_wrong_with_an_io_fails_that_io);
	RUN_TEST(a_terminal_that_refuses_for_good_fails_the_io);
	RUN_TEST(a_terminal_that_is_full_is_asked_again);
	RUN_TEST(what_nobody_takes_by_its_deadline_is_canceled);
	RUN_TEST(replies_wait_for_the_peer_in_order);
	RUN_TEST(a_reply_does_not_overtake_one_that_waits);
	RUN_TEST(more_in_flight_than_agreed_breaks);
	RUN_TEST(a_short_message_breaks);
	RUN_TEST(a_broken_queue_breaks);
	RUN_TEST(a_second_completion_is_ignored);
	RUN_TEST(idle_comes_once_and_after_the_last_reply);
	RUN_TEST(quiesce_at_rest_is_idle_at_once);
	RUN_TEST(the_doorbell_rings_before_idle);
	RUN_TEST(an_abandoned_port_waits_for_nobody_but_its_terminal);
	RUN_TEST(a_lost_connection_swallows_replies);
	RUN_TEST(data_that_is_not_mapped_is_moved);
	RUN_TEST(a_move_that_fails_fails_the_io);
	RUN_TEST(a_move_that_finds_no_room_is_tried_again);
	RUN_TEST(a_lane_does_not_sleep_while_data_moves);
	RUN_TEST(an_abandoned_port_gives_up_moves_that_have_not_begun);
	RUN_TEST(an_abandoned_port_sends_nothing_down);
	return UNITY_END();
}
