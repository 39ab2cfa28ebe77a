/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * requester_rig.h - a requester of the core with the test at both ends: as the owner of IOs, and as
 * the peer behind the queues.
 */
#ifndef TEST_TRANSPORT_LINK_RIG_H
#define TEST_TRANSPORT_LINK_RIG_H

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "fake/host.h"
#include "fake/transport.h"
#include "fake/worker.h"
#include "io/wire.h"
#include "transport/requester.h"
#include "unity.h"

#define DEPTH 8
#define IOS 12
#define IO_TIMEOUT_NS (5 * GN_NS_PER_S)
#define FENCE_TIMEOUT_NS (20 * GN_NS_PER_S)

static struct fake_transport ft;
static struct fake_worker fw;
static struct fake_conn *conn;
static struct fake_queue *consumer, *producer;
static struct gn_requester *link;
static struct gn_fence fence;
static struct gantry_chain *chain;
static struct gantry_io *ios;
static unsigned n_done[IOS], n_broken;
static uint16_t status[IOS];
static int broken_reason, resubmit_rc, resubmit;
static uint8_t opcode; /* opcode of the next IO */

static void owner_complete(void *self, struct gantry_io *io)
{
	(void)self;
	if (gantry_io_end(io) != 0)
		fake_fail("completed at rest");
	n_done[io->slot]++;
	status[io->slot] = io->status;
	if (resubmit) {
		gantry_io_begin(io, 0);
		resubmit_rc = gantry_submit(io);
	}
}

static int owner_submit(void *self, struct gantry_io *io)
{
	(void)self;
	(void)io;
	return -EINVAL;
}

static void on_broken(void *arg, int reason)
{
	(void)arg;
	n_broken++;
	broken_reason = reason;
}

static void make_queues(void)
{
	struct gantry_queue_attr attr = {.depth = 2 * DEPTH};
	uint32_t id;

	conn = fake_conn_bare(&ft);
	TEST_ASSERT_EQUAL_INT(
		0, fake_transport_ops.consumer_create(conn, &attr, &id, (void **)&consumer));
	TEST_ASSERT_EQUAL_INT(0, fake_transport_ops.post_recv(consumer, attr.depth));
	TEST_ASSERT_EQUAL_INT(
		0, fake_transport_ops.producer_create(conn, 1, &attr, (void **)&producer));
}

static void begin(bool notes)
{
	struct gn_requester_attr attr = {.ops = &fake_transport_ops,
					 .depth = DEPTH,
					 .io_timeout_ns = IO_TIMEOUT_NS,
					 .broken = on_broken,
					 .notes = notes,
					 .left_out = GANTRY_IO_CRC,
					 .fence = &fence,
					 .late_timeout_ns = FENCE_TIMEOUT_NS};
	struct gantry_hop owner = {.submit = owner_submit, .complete = owner_complete}, terminal;

	memset(n_done, 0, sizeof(n_done));
	n_broken = 0;
	resubmit = 0;
	opcode = GANTRY_OP_READ;
	gn_fence_init(&fence);
	fake_clock_start();
	fake_transport_init(&ft);
	fake_worker_start(&fw);
	make_queues();
	attr.lane = &fw.lane;
	attr.stale = fw.host.pub.counter(&fw.host.pub, "late_replies");
	TEST_ASSERT_EQUAL_INT(0, gn_requester_create(&attr, &link));
	gn_requester_hop(link, &terminal);
	TEST_ASSERT_EQUAL_INT(
		0, gn_chain_create(&fw.lane, &owner, &terminal, NULL, IOS, &chain, &ios));
}

void setUp(void)
{
	begin(false);
}

static void end(void)
{
	gn_requester_stop(link);
	gn_chain_destroy(chain);
	gn_requester_free(&link);
	fake_transport_ops.flush(producer);
	fake_transport_ops.producer_destroy(producer);
	fake_transport_ops.consumer_destroy(consumer);
	fake_transport_ops.disconnect(conn);
	fake_worker_stop(&fw);
	fake_transport_fini(&ft);
	fake_clock_stop();
}

void tearDown(void)
{
	end();
}

static inline void start(void)
{
	TEST_ASSERT_EQUAL_INT(0, gn_requester_start(link, consumer, producer));
}

struct submission {
	unsigned slot;
	uint32_t deadline_us;
	int rc;
};

static inline void submit_on_lane(void *arg)
{
	struct submission *s = arg;
	struct gantry_io *io = &ios[s->slot];

	gantry_io_begin(io, gn_now_ns());
	io->opcode = opcode;
	io->flags = 0;
	io->offset = 4096 * (s->slot + 1);
	io->length = 4096;
	io->region = 1;
	io->deadline_us = s->deadline_us;
	s->rc = gantry_submit(io);
	if (s->rc != 0)
		gantry_io_end(io);
}

static inline int submit(unsigned slot, uint32_t deadline_us)
{
	struct submission s = {.slot = slot, .deadline_us = deadline_us};

	gn_worker_call(fw.worker, submit_on_lane, &s);
	return s.rc;
}

static inline struct gantry_io taken(void)
{
	struct gantry_io wire = {.opcode = 0};
	uint8_t imm[GANTRY_IMM_MAX];

	TEST_ASSERT_EQUAL_INT(1, fake_taken(producer, imm));
	memcpy(&wire, imm, sizeof(imm));
	return wire;
}

static inline void answer(struct gantry_io wire, uint16_t st)
{
	wire.status = st;
	fake_arrive(consumer, &wire, GANTRY_IO_WIRE_BYTES);
}

static inline void ask_on_lane(void *arg)
{
	uint64_t *settled_ns = arg;

	*settled_ns = gn_requester_settled_ns(link);
}

static inline uint64_t settled_ns(void)
{
	uint64_t ns;

	fake_settle(&fw);
	gn_worker_call(fw.worker, ask_on_lane, &ns);
	return ns;
}

#endif
