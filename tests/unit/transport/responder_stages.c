/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A responder with a stage, which can hold an IO. The responder checks the deadline of an IO, and
 * divides a large IO, after the IO has passed the stage.
 */
#include "responder_rig.h"

#define LARGE (2u << 20)

static struct gantry_io *kept; /* the IO that the stage holds, or NULL */
static int keeps;

static int stage_open(const struct gantry_host *host, const void *conf, void **stage_p)
{
	(void)host;
	(void)conf;
	*stage_p = &keeps;
	return 0;
}

static int stage_start(void *stage, struct gantry_lane *lane, void **self_p)
{
	(void)lane;
	*self_p = stage;
	return 0;
}

static int stage_submit(void *self, struct gantry_io *io)
{
	(void)self;
	if (!keeps)
		return gantry_submit(io);
	kept = io;
	return 0;
}

static void stage_complete(void *self, struct gantry_io *io)
{
	(void)self;
	gantry_complete(io);
}

static int stage_poll(void *self)
{
	(void)self;
	return 0;
}

static uint64_t stage_wake(void *self)
{
	(void)self;
	return 0;
}

static void stage_drain(void *self, const void *owner)
{
	(void)self;
	(void)owner;
}

static void stage_nothing(void *self)
{
	(void)self;
}

static void stage_report(void *stage, struct gantry_writer *w)
{
	(void)stage;
	(void)w;
}

static const struct gantry_stage_ops ops = {.open = stage_open,
					    .start = stage_start,
					    .submit = stage_submit,
					    .complete = stage_complete,
					    .poll = stage_poll,
					    .wake_ns = stage_wake,
					    .drain = stage_drain,
					    .stop = stage_nothing,
					    .report = stage_report,
					    .close = stage_nothing};

static void make_stage_and_port(int that_keeps)
{
	const struct gn_plugin_instance part = {.name = "keeper", .ops = &ops};

	keeps = that_keeps;
	gn_pipeline_close(&fw.pipeline);
	TEST_ASSERT_EQUAL_INT(0,
			      gn_pipeline_open("roles.test", &part, 1, &fw.lane, 1, &fw.pipeline));
	make_port(0);
}

static void pass_on_lane(void *arg)
{
	(void)arg;
	TEST_ASSERT_EQUAL_INT(0, gantry_submit(kept));
}

static void pass(void)
{
	gn_worker_call(fw.worker, pass_on_lane, NULL);
	fake_settle(&fw);
}

static void an_io_that_expires_in_a_stage_does_not_reach_the_backend(void)
{
	struct gantry_io wire = request(3, GANTRY_OP_WRITE);

	make_stage_and_port(1);
	wire.deadline_us = 1000;
	ask(wire);
	fake_clock_advance(GN_NS_PER_MS);
	fake_settle(&fw);
	pass();
	TEST_ASSERT_EQUAL_UINT(0, n_seen);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_CANCELED, replied().status);
}

static void an_io_that_a_stage_passes_in_time_reaches_the_backend(void)
{
	struct gantry_io wire = request(3, GANTRY_OP_WRITE);

	make_stage_and_port(1);
	wire.deadline_us = 1000;
	ask(wire);
	fake_clock_advance(GN_NS_PER_MS - 1);
	fake_settle(&fw);
	pass();
	TEST_ASSERT_EQUAL_UINT(1, n_seen);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, replied().status);
}

static void a_large_io_is_divided_below_the_stages(void)
{
	struct gantry_io wire = {.opcode = GANTRY_OP_READ, .tag = 7, .length = LARGE, .region = 1};

	rules.volume.size = 1 << 30;
	rules.volume.max_io = LARGE;
	gn_io_rules_ready(&rules);
	make_stage_and_port(0);
	memory.length = LARGE;
	terminal_now = 1;
	ask(wire);
	TEST_ASSERT_EQUAL_UINT(7, replied().tag);
	TEST_ASSERT_EQUAL_UINT(LARGE / GN_SPLIT_PIECE, n_seen);
	memory.length = REGION;
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(an_io_that_expires_in_a_stage_does_not_reach_the_backend);
	RUN_TEST(an_io_that_a_stage_passes_in_time_reaches_the_backend);
	RUN_TEST(a_large_io_is_divided_below_the_stages);
	return UNITY_END();
}
