/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chains with several stages: descriptors on the way down and back, rejections, and unexpected
 * completions.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "fake/host.h"
#include "fake/worker.h"
#include "pipeline/pipeline.h"
#include "unity.h"

static struct fake_worker fw;
static char walk[256];     /* calls of hops, one character each */
static uint64_t seen_size; /* size of the volume that the last stage saw */
static int lose_at, double_at, refuse_at = -1, refuse_rc, fail_open, fail_start;

static uint64_t delay[256]; /* ns that a call of a hop takes, by its character in `walk` */

static void step(char c)
{
	size_t len = strlen(walk);

	walk[len] = c;
	walk[len + 1] = '\0';
	if (delay[(unsigned char)c] != 0)
		fake_clock_advance(delay[(unsigned char)c]);
}

/* Stages a, b, c ...: conf points to the letter. */
static int stage_open(const struct gantry_host *host, const void *conf, void **stage_p)
{
	(void)host;
	if (fail_open && *(const char *)conf == fail_open)
		return -EINVAL;
	*stage_p = (void *)(uintptr_t)conf;
	step('O');
	return 0;
}

static int stage_start(void *stage, struct gantry_lane *lane, void **self_p)
{
	(void)lane;
	if (fail_start && *(const char *)stage == fail_start)
		return -ENOMEM;
	*self_p = stage;
	step('S');
	return 0;
}

static int stage_submit(void *self, struct gantry_io *io)
{
	char c = *(const char *)self;

	*gantry_stage_ctx(io) += (uint64_t)c;
	seen_size = gantry_stage_volume(io) ? gantry_stage_volume(io)->size : 0;
	step(c);
	if (lose_at == c)
		return 0;
	if (refuse_at == c)
		return refuse_rc;
	return gantry_submit(io);
}

static void stage_complete(void *self, struct gantry_io *io)
{
	step((char)(*(const char *)self - 'a' + 'A'));
	gantry_complete(io);
	if (double_at == *(const char *)self)
		gantry_complete(io);
}

static struct gantry_io *poll_completes; /* stage b completes it in its poll */

static int stage_poll(void *self)
{
	struct gantry_io *io = poll_completes;

	if (!io || *(const char *)self != 'b')
		return 0;
	poll_completes = NULL;
	gantry_complete(io);
	return 1;
}

static uint64_t never(void *self)
{
	(void)self;
	return 0;
}

static void stage_drain(void *self, const void *owner)
{
	(void)self;
	(void)owner;
	step('d');
}

static void stage_stop(void *self)
{
	(void)self;
	step('x');
}

static void stage_close(void *self)
{
	(void)self;
	step('X');
}

static void stage_report(void *stage, struct gantry_writer *w)
{
	w->string(w, "letter", stage);
}

static const struct gantry_stage_ops plain = {
	.open = stage_open,
	.start = stage_start,
	.submit = stage_submit,
	.complete = stage_complete,
	.poll = stage_poll,
	.wake_ns = never,
	.drain = stage_drain,
	.stop = stage_stop,
	.report = stage_report,
	.close = stage_close,
};
static struct gantry_stage_ops framed;

#define PART(letter, table) \
	{ \
		.name = letter, .ops = &(table), .conf = letter \
	}
static const struct gn_plugin_instance parts[] = {
	PART("a", framed), PART("b", framed), PART("c", framed),
	PART("d", framed), PART("e", plain),  PART("f", plain),
	PART("g", plain),  PART("h", plain),  PART("i", plain),
};

static struct gantry_io *last;
static int hold;

static int terminal_submit(void *self, struct gantry_io *io)
{
	(void)self;
	step('|');
	if (refuse_at == '|')
		return refuse_rc;
	last = io;
	if (!hold)
		gantry_fail(io, GANTRY_S_OK);
	return 0;
}

static unsigned n_done;

static void owner_complete(void *self, struct gantry_io *io)
{
	(void)self;
	step('.');
	n_done += gantry_io_end(io) == 0;
}

static int owner_submit(void *self, struct gantry_io *io)
{
	(void)self;
	(void)io;
	return -EINVAL;
}

static struct gantry_chain *chain;
static struct gantry_io *ios;

static void make(const struct gn_plugin_instance *from, uint32_t n)
{
	struct gantry_hop owner = {.submit = owner_submit, .complete = owner_complete},
			  terminal = {.submit = terminal_submit};
	struct gantry_volume_info volume = {.size = 512};

	gn_pipeline_close(&fw.pipeline);
	TEST_ASSERT_EQUAL_INT(0,
			      gn_pipeline_open("roles.test", from, n, &fw.lane, 1, &fw.pipeline));
	TEST_ASSERT_EQUAL_INT(
		0, gn_chain_create(&fw.lane, &owner, &terminal, &volume, 4, &chain, &ios));
	walk[0] = '\0';
}

void setUp(void)
{
	framed = plain;
	framed.n_ctx_words = 1;
	memset(delay, 0, sizeof(delay));
	refuse_at = -1;
	lose_at = double_at = fail_open = fail_start = hold = 0;
	n_done = 0;
	walk[0] = '\0';
	gn_log_set_level(GN_LOG_ERROR);
	fake_clock_start();
	fake_worker_start(&fw);
}

void tearDown(void)
{
	gn_chain_destroy(chain);
	chain = NULL;
	fake_worker_stop(&fw);
	fake_clock_stop();
}

static int submit(struct gantry_io *io)
{
	gantry_io_begin(io, 1);
	return gantry_submit(io);
}

static void down_and_back_through_every_stage(void)
{
	make(parts, 3);
	TEST_ASSERT_EQUAL_INT(0, submit(&ios[1]));
	TEST_ASSERT_EQUAL_STRING("abc|CBA.", walk);
	TEST_ASSERT_EQUAL_UINT(1, n_done);
	TEST_ASSERT_EQUAL_UINT64('a', ios[1].frame[0]);
	TEST_ASSERT_EQUAL_UINT64('b', ios[1].frame[1]);
	TEST_ASSERT_EQUAL_UINT64('c', ios[1].frame[2]);
	TEST_ASSERT_EQUAL_UINT(1, ios[1].slot);
}

static void pipeline_can_have_no_stages(void)
{
	make(parts, 0);
	TEST_ASSERT_EQUAL_INT(0, submit(&ios[0]));
	TEST_ASSERT_EQUAL_STRING("|.", walk);
}

static void a_refusal_puts_the_descriptor_back(void)
{
	const struct gantry_hop *rest;

	make(parts, 3);
	rest = ios[0].hop;
	refuse_rc = -EAGAIN;
	for (int i = 0; i < 3; i++) {
		refuse_at = i == 0 ? 'a' : i == 1 ? 'c' : '|';
		TEST_ASSERT_EQUAL_INT(-EAGAIN, submit(&ios[0]));
		TEST_ASSERT_EQUAL_PTR(rest, ios[0].hop);
	}
	TEST_ASSERT_EQUAL_UINT(0, n_done);
	refuse_at = -1;
	TEST_ASSERT_EQUAL_INT(0, submit(&ios[0]));
	TEST_ASSERT_EQUAL_UINT(1, n_done);
	TEST_ASSERT_EQUAL_PTR(rest, ios[0].hop);
}

/*
 * The count covers the descriptors in flight on all chains of the lane, including those that a
 * stage has lost.
 */
static void held_descriptors_are_counted_by_place(void)
{
	static const uint32_t none[GN_CHAIN_PLACES], expected[GN_CHAIN_PLACES] = {1, 0, 2, 0, 1};
	struct gantry_hop owner = {.submit = owner_submit, .complete = owner_complete},
			  terminal = {.submit = terminal_submit};
	struct gantry_chain *other;
	struct gantry_io *others;
	uint32_t held[GN_CHAIN_PLACES];

	make(parts, 3);
	TEST_ASSERT_EQUAL_INT(
		0, gn_chain_create(&fw.lane, &owner, &terminal, NULL, 2, &other, &others));
	lose_at = 'b';
	TEST_ASSERT_EQUAL_INT(0, submit(&ios[0]));
	TEST_ASSERT_EQUAL_UINT64(512, seen_size);
	TEST_ASSERT_EQUAL_INT(0, submit(&others[1]));
	TEST_ASSERT_EQUAL_UINT64(0, seen_size); /* that chain has no volume */
	lose_at = 0;
	hold = 1;
	TEST_ASSERT_EQUAL_INT(0, submit(&ios[1]));
	refuse_at = 'a';
	refuse_rc = -EAGAIN;
	TEST_ASSERT_EQUAL_INT(-EAGAIN, submit(&ios[2]));
	gn_lane_count_held(&fw.lane, NULL, held);
	TEST_ASSERT_EQUAL_MEMORY(expected, held, sizeof(held));
	gantry_fail(last, GANTRY_S_OK);
	gantry_io_end(&ios[0]);
	gantry_io_end(&ios[2]);
	gn_chain_destroy(other);
	gn_lane_count_held(&fw.lane, NULL, held);
	TEST_ASSERT_EQUAL_MEMORY(none, held, sizeof(held));
}

/* Report the number of named double completions of stage i; -1: of the terminal. */
static uint64_t doubled_by(int stage)
{
	struct gn_place_counts counts;

	gn_pipeline_count(fw.pipeline, &counts);
	return counts
		.doubled[stage < 0 ? gn_pipeline_length(fw.pipeline) + 1 : (uint32_t)stage + 1];
}

static void set_poll_completes(void *io)
{
	poll_completes = io;
}

static void nothing(void *arg)
{
	(void)arg;
}

/* Let stage b complete a descriptor in its next poll, and wait for that. */
static void complete_in_poll(struct gantry_io *io)
{
	gn_worker_call(fw.worker, set_poll_completes, io);
	gn_worker_call(fw.worker, nothing, NULL);
	gn_worker_call(fw.worker, nothing, NULL);
}

static int submit_rc;

static void submit_now(void *io)
{
	submit_rc = submit(io);
}

static void submit_on_lane(struct gantry_io *io)
{
	gn_worker_call(fw.worker, submit_now, io);
	TEST_ASSERT_EQUAL_INT(0, submit_rc);
}

static void fail_now(void *io)
{
	gantry_fail(io, GANTRY_S_OK);
}

static void fail_on_lane(struct gantry_io *io)
{
	gn_worker_call(fw.worker, fail_now, io);
}

/* The checks belong to the thread of the lane, so the test runs each step there. */
static void a_double_completion_is_counted_against_its_stage(void)
{
	fw.lane.check_stages = true;
	make(parts, 3);
	/* to the guard: the descriptor is idle */
	double_at = 'b';
	submit_on_lane(&ios[0]);
	TEST_ASSERT_EQUAL_STRING("abc|CBA.", walk);
	TEST_ASSERT_EQUAL_UINT64(1, doubled_by(1));
	/* to another stage: the terminal holds the descriptor again */
	double_at = 0;
	hold = 1;
	submit_on_lane(&ios[0]);
	complete_in_poll(&ios[0]);
	TEST_ASSERT_EQUAL_UINT64(2, doubled_by(1));
	TEST_ASSERT_EQUAL_UINT(1, n_done);
	fail_on_lane(last);
	TEST_ASSERT_EQUAL_UINT(2, n_done);
	TEST_ASSERT_EQUAL_UINT64(0, doubled_by(-1));
	/* the terminal, while stage b holds the descriptor, and afterwards */
	lose_at = 'b';
	submit_on_lane(&ios[0]);
	fail_on_lane(&ios[0]);
	TEST_ASSERT_EQUAL_UINT64(1, doubled_by(-1));
	TEST_ASSERT_EQUAL_UINT(2, n_done);
	complete_in_poll(&ios[0]);
	TEST_ASSERT_EQUAL_UINT(3, n_done);
	fail_on_lane(&ios[0]);
	TEST_ASSERT_EQUAL_UINT64(2, doubled_by(-1));
	TEST_ASSERT_EQUAL_UINT64(0, doubled_by(0) + doubled_by(2));
	TEST_ASSERT_EQUAL_UINT64(4, gn_host_counter(&fw.host, "double_completions"));
	TEST_ASSERT_EQUAL_UINT(3, n_done);
}

static void without_stages_each_double_completion_is_of_the_terminal(void)
{
	make(parts, 0);
	TEST_ASSERT_EQUAL_INT(0, submit(&ios[0]));
	gantry_fail(&ios[0], GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT64(1, doubled_by(-1));
}

static void guard_ignores_and_counts_a_second_completion(void)
{
	const struct gantry_hop *rest;

	make(parts, 1);
	rest = ios[0].hop;
	hold = 1;
	TEST_ASSERT_EQUAL_INT(0, submit(&ios[0]));
	gantry_fail(last, GANTRY_S_OK);
	for (unsigned i = 1; i <= 3; i++) {
		gantry_fail(last, GANTRY_S_IO);
		TEST_ASSERT_EQUAL_PTR(rest, ios[0].hop);
		TEST_ASSERT_EQUAL_UINT64(i, gn_host_counter(&fw.host, "double_completions"));
	}
	TEST_ASSERT_EQUAL_UINT(1, n_done);
	TEST_ASSERT_EQUAL_STRING("a|A.", walk);
	TEST_ASSERT_EQUAL_INT(0, submit(&ios[0]));
	gantry_fail(last, GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(2, n_done);
	TEST_ASSERT_EQUAL_INT(-EINVAL, ios[0].hop[-1].submit(ios[0].hop[-1].self, &ios[0]));
}

/* -- own times -- */

static struct fake_report report;

/* Returns a value of the own time of stage i; -1: of the terminal. */
static uint64_t own_time(int stage, const char *key)
{
	struct gn_place_counts counts;
	char path[64];

	fake_report_init(&report);
	gn_pipeline_count(fw.pipeline, &counts);
	gn_pipeline_report(fw.pipeline, &counts, &report.pub);
	report.pub.object(&report.pub, "terminal");
	gn_place_report(&counts, gn_pipeline_length(fw.pipeline) + 1, &report.pub);
	report.pub.end(&report.pub);
	snprintf(path, sizeof(path),
		 stage < 0 ? "terminal.own_time.%s" : "stages.%2$d.own_time.%1$s", key, stage);
	return fake_reported_u64(&report, path);
}

static void measure(bool on)
{
	TEST_ASSERT_EQUAL_INT(0, gn_lane_measure(&fw.lane, on));
}

static void each_place_has_its_own_time(void)
{
	make(parts, 2);
	submit_on_lane(&ios[0]); /* before the measurement */
	delay['a'] = 100;
	delay['b'] = 1000;
	delay['|'] = 50000;
	delay['B'] = 2000;
	delay['A'] = 10000;
	measure(true);
	submit_on_lane(&ios[0]);
	TEST_ASSERT_EQUAL_STRING("ab|BA.ab|BA.", walk);
	TEST_ASSERT_EQUAL_UINT64(1, own_time(0, "count"));
	TEST_ASSERT_EQUAL_UINT64(10100, own_time(0, "max_ns"));
	TEST_ASSERT_EQUAL_UINT64(3000, own_time(1, "max_ns"));
	TEST_ASSERT_EQUAL_UINT64(50000, own_time(-1, "max_ns"));
	measure(false);
	submit_on_lane(&ios[0]);
	TEST_ASSERT_EQUAL_UINT64(1, own_time(0, "count"));
	TEST_ASSERT_EQUAL_UINT64(1, own_time(-1, "count"));
}

/* The chain can be in any state when the measurement begins and ends. */
static void an_io_in_flight_is_measured_where_it_comes(void)
{
	make(parts, 2);
	hold = 1;
	submit_on_lane(&ios[0]);
	measure(true);
	fake_clock_advance(500);
	fail_on_lane(last); /* began before the measurement */
	TEST_ASSERT_EQUAL_UINT(1, n_done);
	TEST_ASSERT_EQUAL_UINT64(0, own_time(-1, "count"));
	submit_on_lane(&ios[0]);
	measure(false);
	measure(true);
	fake_clock_advance(500);
	fail_on_lane(last); /* began in an earlier measurement */
	TEST_ASSERT_EQUAL_UINT64(0, own_time(-1, "count"));
	submit_on_lane(&ios[0]);
	fake_clock_advance(700);
	measure(false);
	fail_on_lane(last);
	TEST_ASSERT_EQUAL_UINT(3, n_done);
	TEST_ASSERT_EQUAL_UINT64(0, own_time(-1, "count"));
}

static void a_rejected_or_lost_io_has_no_time_below(void)
{
	make(parts, 2);
	measure(true);
	refuse_at = '|';
	refuse_rc = -EAGAIN;
	delay['|'] = 300;
	gn_worker_call(fw.worker, submit_now, &ios[0]);
	TEST_ASSERT_EQUAL_INT(-EAGAIN, submit_rc);
	TEST_ASSERT_EQUAL_UINT64(0, own_time(0, "count"));
	refuse_at = -1;
	submit_on_lane(&ios[0]);
	TEST_ASSERT_EQUAL_UINT64(300, own_time(-1, "max_ns"));
	TEST_ASSERT_EQUAL_UINT64(0, own_time(1, "max_ns"));
	lose_at = 'b'; /* stage b completes it without the terminal */
	submit_on_lane(&ios[0]);
	fake_clock_advance(40);
	complete_in_poll(&ios[0]);
	TEST_ASSERT_EQUAL_UINT64(40, own_time(1, "max_ns"));
	TEST_ASSERT_EQUAL_UINT64(1, own_time(-1, "count"));
}

static void measured_chains_are_checked_too(void)
{
	fw.lane.check_stages = true;
	make(parts, 2);
	measure(true);
	delay['b'] = 1000;
	double_at = 'b';
	submit_on_lane(&ios[0]);
	TEST_ASSERT_EQUAL_UINT64(1, doubled_by(1));
	TEST_ASSERT_EQUAL_UINT64(1, own_time(1, "count"));
	TEST_ASSERT_EQUAL_UINT64(1000, own_time(1, "max_ns"));
	measure(false);
	submit_on_lane(&ios[0]);
	TEST_ASSERT_EQUAL_UINT64(2, doubled_by(1));
	TEST_ASSERT_EQUAL_UINT64(1, own_time(1, "count"));
}

/* -- bounce buffers -- */

static char program[4096], store[4096];

static int xor_submit(void *self, struct gantry_io *io)
{
	const char *before = gantry_bounce_begin(io);

	(void)self;
	TEST_ASSERT_EQUAL_PTR(program, before);
	for (uint32_t i = 0; i < io->length && io->opcode == GANTRY_OP_WRITE; i++)
		((char *)io->data)[i] = before[i] ^ 1;
	return gantry_submit(io);
}

static void xor_complete(void *self, struct gantry_io *io)
{
	const char *bounce = gantry_bounce_end(io);

	(void)self;
	TEST_ASSERT_EQUAL_PTR(program, io->data);
	for (uint32_t i = 0; i < io->length && io->opcode == GANTRY_OP_READ; i++)
		((char *)io->data)[i] = bounce[i] ^ 1;
	gantry_complete(io);
}

static int store_submit(void *self, struct gantry_io *io)
{
	(void)self;
	if (io->opcode == GANTRY_OP_WRITE)
		memcpy(store, io->data, io->length);
	else
		memcpy(io->data, store, io->length);
	gantry_fail(io, GANTRY_S_OK);
	return 0;
}

static void transfer(struct gantry_io *io, uint8_t opcode)
{
	io->opcode = opcode;
	io->data = program;
	io->length = sizeof(program);
	TEST_ASSERT_EQUAL_INT(0, submit(io));
	TEST_ASSERT_EQUAL_PTR(program, io->data);
}

static void a_stage_transforms_data_in_its_bounce_buffer(void)
{
	struct gantry_stage_ops xor = framed;
	const struct gn_plugin_instance stages[] = {PART("a", xor), PART("b", framed)};
	struct gantry_hop owner = {.submit = owner_submit, .complete = owner_complete},
			  terminal = {.submit = store_submit};
	struct gantry_volume_info volume = {.size = 1 << 20, .max_io = 5000};
	char expected[sizeof(program)];

	xor.submit = xor_submit;
	xor.complete = xor_complete;
	xor.needs_bounce = 1;
	gn_pipeline_close(&fw.pipeline);
	TEST_ASSERT_EQUAL_INT(0,
			      gn_pipeline_open("roles.test", stages, 2, &fw.lane, 1, &fw.pipeline));
	TEST_ASSERT_EQUAL_INT(-EINVAL,
			      gn_chain_create(&fw.lane, &owner, &terminal, NULL, 4, &chain, &ios));
	TEST_ASSERT_EQUAL_INT(
		0, gn_chain_create(&fw.lane, &owner, &terminal, &volume, 4, &chain, &ios));
	memset(program, 'p', sizeof(program));
	memset(expected, 'p', sizeof(expected));
	transfer(&ios[3], GANTRY_OP_WRITE);
	TEST_ASSERT_EQUAL_MEMORY(expected, program, sizeof(expected));
	TEST_ASSERT_EQUAL_INT('p' ^ 1, store[0]);
	TEST_ASSERT_EQUAL_INT('p' ^ 1, store[sizeof(store) - 1]);
	memset(program, 0, sizeof(program));
	transfer(&ios[0], GANTRY_OP_READ);
	TEST_ASSERT_EQUAL_MEMORY(expected, program, sizeof(expected));
	gn_chain_destroy(chain);
	chain = NULL;
	gn_pipeline_close(&fw.pipeline);
}

static void sizes_of_chains(void)
{
	struct gantry_hop hop = {.submit = terminal_submit};

	TEST_ASSERT_EQUAL_INT(-EINVAL,
			      gn_chain_create(&fw.lane, &hop, &hop, NULL, 0, &chain, &ios));
	TEST_ASSERT_EQUAL_INT(-EINVAL,
			      gn_chain_create(&fw.lane, &hop, &hop, NULL, 65536, &chain, &ios));
	TEST_ASSERT_EQUAL_INT(0, gn_chain_create(&fw.lane, &hop, &hop, NULL, 65535, &chain, &ios));
	TEST_ASSERT_EQUAL_UINT(65534, ios[65534].slot);
	TEST_ASSERT_EQUAL_UINT(0, (uintptr_t)ios % GANTRY_CACHE_LINE);
	gn_chain_destroy(NULL);
}

static void too_many_stages_or_frames_are_refused(void)
{
	struct gn_pipeline *pl = NULL;

	TEST_ASSERT_EQUAL_INT(-E2BIG, gn_pipeline_open("t", parts, 9, &fw.lane, 1, &pl));
	TEST_ASSERT_EQUAL_INT(-E2BIG, gn_pipeline_open("t", parts, 4, &fw.lane, 1, &pl));
	TEST_ASSERT_EQUAL_STRING("OSOSOSxXxXxX", walk);
	TEST_ASSERT_NULL(pl);
	make(&parts[4], 5);
	TEST_ASSERT_EQUAL_INT(0, submit(&ios[0]));
	TEST_ASSERT_EQUAL_STRING("efghi|IHGFE.", walk);
}

static void stage_that_fails_to_open_or_start_closes_the_others(void)
{
	struct gn_pipeline *pl = NULL;

	fail_open = 'b';
	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_pipeline_open("t", parts, 3, &fw.lane, 1, &pl));
	TEST_ASSERT_EQUAL_STRING("OSxX", walk);
	walk[0] = '\0';
	fail_open = 0;
	fail_start = 'b';
	TEST_ASSERT_EQUAL_INT(-ENOMEM, gn_pipeline_open("t", parts, 3, &fw.lane, 1, &pl));
	TEST_ASSERT_EQUAL_STRING("OSOXxX", walk);
}

static void drain_and_report_reach_each_stage(void)
{
	struct gn_place_counts counts;

	make(parts, 2);
	gn_pipeline_drain(&fw.lane, NULL);
	TEST_ASSERT_EQUAL_STRING("dd", walk);
	fake_report_init(&report);
	lose_at = 'b';
	TEST_ASSERT_EQUAL_INT(0, submit(&ios[0]));
	gn_pipeline_count(fw.pipeline, &counts);
	gn_pipeline_report(fw.pipeline, &counts, &report.pub);
	TEST_ASSERT_NOT_NULL(strstr(report.text, "stages.1.letter=b\n"));
	TEST_ASSERT_NOT_NULL(strstr(report.text, "stages.0.held_ops=0\n"));
	TEST_ASSERT_NOT_NULL(strstr(report.text, "stages.1.held_ops=1\n"));
	TEST_ASSERT_NOT_NULL(strstr(report.text, "stages.1.double_completions=0\n"));
	TEST_ASSERT_EQUAL_UINT(2, gn_pipeline_length(fw.pipeline));
	TEST_ASSERT_EQUAL_STRING("b", gn_pipeline_stage_name(fw.pipeline, 1));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(down_and_back_through_every_stage);
	RUN_TEST(pipeline_can_have_no_stages);
	RUN_TEST(a_refusal_puts_the_descriptor_back);
	RUN_TEST(held_descriptors_are_counted_by_place);
	RUN_TEST(a_double_completion_is_counted_against_its_stage);
	RUN_TEST(without_stages_each_double_completion_is_of_the_terminal);
	RUN_TEST(guard_ignores_and_counts_a_second_completion);
	RUN_TEST(each_place_has_its_own_time);
	RUN_TEST(an_io_in_flight_is_measured_where_it_comes);
	RUN_TEST(a_rejected_or_lost_io_has_no_time_below);
	RUN_TEST(measured_chains_are_checked_too);
	RUN_TEST(a_stage_transforms_data_in_its_bounce_buffer);
	RUN_TEST(sizes_of_chains);
	RUN_TEST(too_many_stages_or_frames_are_refused);
	RUN_TEST(stage_that_fails_to_open_or_start_closes_the_others);
	RUN_TEST(drain_and_report_reach_each_stage);
	return UNITY_END();
}
