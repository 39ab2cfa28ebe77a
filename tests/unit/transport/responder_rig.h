/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * responder_rig.h - a responder of the core with the test at both ends: as the peer behind the
 * queues, and as the terminal.
 */
#ifndef TEST_TRANSPORT_PORT_RIG_H
#define TEST_TRANSPORT_PORT_RIG_H

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "fake/host.h"
#include "fake/transport.h"
#include "fake/worker.h"
#include "pipeline/split.h"
#include "transport/responder_priv.h"
#include "unity.h"

#define DEPTH 4
#define REGION 4096u
#define ROOM 2 /* pages of bounce buffers: fewer than DEPTH IOs need */

static struct fake_transport ft;
static struct fake_worker fw;
static struct fake_conn *conn;
static struct fake_queue *consumer, *producer;
static struct fake_rma *rma;
static struct gn_responder *port;
static uint8_t buffers[ROOM * 4096];
static const struct gantry_region move_memory = {
	.addr = buffers, .length = sizeof(buffers), .fd = -1};
static struct gantry_region memory = {
	.addr = ft.memory, .length = REGION, .rights = GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE};
static struct gantry_region read_only = {
	.addr = ft.memory, .length = REGION, .rights = GANTRY_REMOTE_READ};
static struct gantry_region write_only = {
	.addr = ft.memory, .length = REGION, .rights = GANTRY_REMOTE_WRITE};
static struct gantry_region *regions[] = {NULL, &memory, &read_only, &write_only};
static struct gn_io_rules rules;
/* settings of the responder that make_port() creates */
static int ordered, takes_lists;
static uint32_t max_noted;
static uint32_t quantum = GN_SPLIT_QUANTUM;
static unsigned n_broken, n_idle, n_drained;
static int broken_reason;

/*
 * State of the terminal, which rejects IOs (terminal_rc), completes them at submit, or holds them.
 */
static struct gantry_io *held[64]; /* more than DEPTH: a large IO has several parts */
static _Atomic unsigned n_held, n_seen, n_refused;
static _Atomic unsigned n_named; /* accepted IOs whose hop has the session */
static _Atomic int terminal_rc, terminal_now;
static uint32_t seen_bytes[64]; /* lengths of the first accepted IOs */

static int terminal_submit(void *self, struct gantry_io *io)
{
	int rc = terminal_rc;

	(void)self;
	if (rc != 0) {
		n_refused++;
		return rc;
	}
	if (n_seen < sizeof(seen_bytes) / sizeof(seen_bytes[0]))
		seen_bytes[n_seen] = io->length;
	n_seen++;
	n_named += io->hop->session == &rules;
	io->tag = ~io->peer_tag; /* a requester as terminal also sets the tag */
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

static void on_drained(void *arg)
{
	(void)arg;
	n_drained++;
}

/* memory that moves use instead of move_memory; NULL: move_memory */
static const struct gantry_region *store;

static inline void make_port(int moved)
{
	const struct gantry_region *through = store ? store : &move_memory;

	struct gantry_queue_attr queue = {.depth = 2 * DEPTH};
	struct gn_responder_attr attr = {
		.lane = &fw.lane,
		.ops = &fake_transport_ops,
		.rules = &rules,
		.volume = &rules.volume,
		.terminal = {.submit = terminal_submit},
		.session = &rules,
		.depth = DEPTH,
		.quantum = quantum,
		.broken = on_broken,
		.idle = on_idle,
		.drained = on_drained,
		.takes_lists = takes_lists,
	};
	uint32_t id;

	conn = fake_conn_bare(&ft);
	TEST_ASSERT_EQUAL_INT(
		0, fake_transport_ops.consumer_create(conn, &queue, &id, (void **)&consumer));
	TEST_ASSERT_EQUAL_INT(0, fake_transport_ops.post_recv(consumer, queue.depth));
	TEST_ASSERT_EQUAL_INT(
		0, fake_transport_ops.producer_create(conn, 1, &queue, (void **)&producer));
	rma = NULL;
	if (moved) {
		TEST_ASSERT_EQUAL_INT(0, fake_transport_ops.register_region(conn, through));
		TEST_ASSERT_EQUAL_INT(0,
				      fake_transport_ops.rma_create(conn, &queue, (void **)&rma));
	}
	memory.addr = moved ? NULL : ft.memory;
	attr.consumer = consumer;
	attr.producer = producer;
	attr.rma = rma;
	attr.move_memory = through;
	attr.moves_store = store != NULL;
	attr.ordered = ordered;
	attr.notes = max_noted != 0;
	ft.max_noted = max_noted;
	TEST_ASSERT_EQUAL_INT(0, gn_responder_create(&attr, &port));
}

static inline struct gn_io_counts counted(void)
{
	struct gn_io_counts sum = {.failed = 0};

	gn_responder_add_counts(port, &sum);
	return sum;
}

static inline uint64_t done(void)
{
	const struct gn_io_counts sum = counted();

	return gn_io_counts_done(&sum);
}

void setUp(void)
{
	rules = (struct gn_io_rules){
		.volume = {.size = 1 << 20, .block_size = 512, .ops = 0x1f, .max_io = 2048},
		.regions = regions,
		.n_regions = 4,
		.io_timeout_ns = 3 * GN_NS_PER_S,
	};
	gn_io_rules_ready(&rules);
	takes_lists = 0;
	n_broken = n_idle = n_drained = 0;
	ordered = 0;
	max_noted = 0;
	memory.unordered = 0;
	n_held = 0;
	n_seen = 0;
	n_named = 0;
	n_refused = 0;
	terminal_rc = 0;
	terminal_now = 0;
	store = NULL;
	fake_clock_start();
	fake_transport_init(&ft);
	fake_worker_start(&fw);
}

void tearDown(void)
{
	gn_responder_destroy(&port);
	fake_transport_ops.producer_destroy(producer);
	fake_transport_ops.consumer_destroy(consumer);
	if (rma) {
		fake_transport_ops.rma_destroy(rma);
		fake_transport_ops.unregister_region(conn, store ? store : &move_memory);
	}
	fake_transport_ops.disconnect(conn);
	fake_worker_stop(&fw);
	fake_transport_fini(&ft);
	fake_clock_stop();
}

static inline struct gantry_io request(uint32_t tag, uint8_t opcode)
{
	return (struct gantry_io){.opcode = opcode,
				  .tag = tag,
				  .offset = 1024,
				  .length = 1024,
				  .region = 1,
				  .region_offset = 512};
}

static inline void ask(struct gantry_io wire)
{
	fake_arrive(consumer, &wire, GANTRY_IO_WIRE_BYTES);
	fake_settle(&fw);
}

static inline struct gantry_io replied(void)
{
	struct gantry_io wire = {.opcode = 0};
	uint8_t imm[GANTRY_IMM_MAX];

	TEST_ASSERT_EQUAL_INT(1, fake_taken(producer, imm));
	memcpy(&wire, imm, sizeof(imm));
	return wire;
}

static inline void no_reply(void)
{
	uint8_t imm[GANTRY_IMM_MAX];

	TEST_ASSERT_EQUAL_INT(0, fake_taken(producer, imm));
}

static inline void finish_on_lane(void *arg)
{
	gantry_fail(held[0], *(enum gantry_status *)arg);
	memmove(&held[0], &held[1], --n_held * sizeof(held[0]));
}

static inline void finish(enum gantry_status status)
{
	gn_worker_call(fw.worker, finish_on_lane, &status);
	fake_settle(&fw);
}

#endif
