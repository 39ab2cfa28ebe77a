/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A parent descriptor with several children: their pieces, first error, checksums, times, and
 * children that wait. The thread of the lane makes all calls.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "fake/host.h"
#include "fake/worker.h"
#include "gantry/random.h"
#include "pipeline/fanout.h"
#include "unity.h"

#define PARENTS 3
#define PIECES 4
#define TERMINALS 3

/* A terminal: accepts IOs, rejects them, or completes them in submit. */
struct terminal {
	_Atomic int rc, now;
	_Atomic int pipelines; /* completes what it holds when it gets another IO */
	unsigned now_status;
	struct gantry_io *held[PARENTS * PIECES];
	_Atomic unsigned n_held, n_taken, n_refused;
};

static struct fake_worker fw;
static struct terminal terminals[TERMINALS];
static struct gantry_fanout *fanout;
static struct gantry_chain *chain;
static struct gantry_io *ios;
static _Atomic unsigned n_done[PARENTS];
static _Atomic unsigned status[PARENTS];
/* while n_again is not 0, a parent that completes is submitted again with this one piece */
static const struct gantry_piece *again;
/* not NULL: a parent is submitted again with these pieces of `shared`, which is overwritten */
static const struct gantry_piece *overwriting;
static struct gantry_piece shared[2];
static _Atomic unsigned n_again;
static _Atomic int again_rc;
static char data[4096];

static int terminal_submit(void *self, struct gantry_io *io)
{
	struct terminal *t = self;
	int rc = t->rc;

	if (rc != 0) {
		t->n_refused++;
		return rc;
	}
	t->n_taken++;
	if (t->pipelines && t->n_held > 0)
		gantry_fail(t->held[--t->n_held], GANTRY_S_OK);
	if (t->now)
		gantry_fail(io, (enum gantry_status)t->now_status);
	else
		t->held[t->n_held++] = io;
	return 0;
}

static void parent_done(void *self, struct gantry_io *io)
{
	(void)self;
	if (gantry_io_end(io) != 0)
		fake_fail("parent completed twice");
	n_done[io->slot]++;
	status[io->slot] = io->status;
	if (n_again > 0) {
		n_again--;
		gantry_io_begin(io, gn_now_ns());
		io->hop++;
		if (overwriting)
			memcpy(shared, overwriting, sizeof(shared));
		again_rc = gn_fanout_submit(fanout, io, overwriting ? shared : again,
					    overwriting ? 2 : 1);
	}
}

static int reject_submit(void *self, struct gantry_io *io)
{
	(void)self;
	(void)io;
	return -EINVAL;
}

void setUp(void)
{
	struct gantry_hop owner = {.submit = reject_submit, .complete = parent_done},
			  end = {.submit = reject_submit}, hops[TERMINALS];

	memset(terminals, 0, sizeof(terminals));
	memset(n_done, 0, sizeof(n_done));
	n_again = 0;
	overwriting = NULL;
	fake_clock_start();
	fake_worker_start(&fw);
	for (int i = 0; i < TERMINALS; i++)
		hops[i] = (struct gantry_hop){.submit = terminal_submit, .self = &terminals[i]};
	TEST_ASSERT_EQUAL_INT(
		0, gn_fanout_create(&fw.lane, hops, TERMINALS, PARENTS, PIECES, &fanout));
	TEST_ASSERT_EQUAL_INT(0,
			      gn_chain_create(&fw.lane, &owner, &end, NULL, PARENTS, &chain, &ios));
}

void tearDown(void)
{
	gn_fanout_destroy(fanout);
	gn_chain_destroy(chain);
	fake_worker_stop(&fw);
	fake_clock_stop();
}

struct job {
	unsigned slot, n;
	const struct gantry_piece *pieces;
	int rc;
};

static void submit_on_lane(void *arg)
{
	struct job *job = arg;
	struct gantry_io *io = &ios[job->slot];

	gantry_io_begin(io, gn_now_ns());
	io->opcode = GANTRY_OP_READ;
	io->flags = GANTRY_IO_CRC | GANTRY_IO_FUA;
	io->crc32c = 5;
	io->offset = 10000;
	io->length = 1024;
	io->region = 3;
	io->region_offset = 100;
	io->data = data;
	io->deadline_us = 1000;
	io->hop++; /* the state in which the chain calls its terminal */
	job->rc = gn_fanout_submit(fanout, io, job->pieces, job->n);
	if (job->rc != 0) {
		io->hop--;
		gantry_io_end(io);
	}
}

static int submit(unsigned slot, const struct gantry_piece *pieces, unsigned n)
{
	struct job job = {.slot = slot, .n = n, .pieces = pieces};

	gn_worker_call(fw.worker, submit_on_lane, &job);
	return job.rc;
}

struct finish {
	unsigned terminal, status;
};

static void finish_on_lane(void *arg)
{
	const struct finish *f = arg;
	struct terminal *t = &terminals[f->terminal];

	if (t->n_held > 0)
		gantry_fail(t->held[--t->n_held], (enum gantry_status)f->status);
}

static void finish(unsigned terminal, unsigned st)
{
	struct finish f = {terminal, st};

	gn_worker_call(fw.worker, finish_on_lane, &f);
}

static const struct gantry_piece halves[] = {
	{.terminal = 0, .length = 512, .offset = 9, .skip = 0},
	{.terminal = 2, .length = 512, .offset = 7, .skip = 512}};
static const struct gantry_piece whole[] = {{.terminal = 1, .length = 1024, .offset = 77}};

static void children_have_the_range_and_the_flags_of_their_parent(void)
{
	struct gantry_io *child;

	TEST_ASSERT_EQUAL_INT(0, submit(1, halves, 2));
	child = terminals[2].held[0];
	TEST_ASSERT_EQUAL_UINT(GANTRY_OP_READ, child->opcode);
	TEST_ASSERT_EQUAL_UINT64(7, child->offset);
	TEST_ASSERT_EQUAL_UINT(512, child->length);
	TEST_ASSERT_EQUAL_UINT64(612, child->region_offset);
	TEST_ASSERT_EQUAL_UINT(3, child->region);
	TEST_ASSERT_EQUAL_PTR(data + 512, child->data);
	TEST_ASSERT_EQUAL_UINT(GANTRY_IO_FUA, child->flags);
	TEST_ASSERT_EQUAL_UINT(1000, child->deadline_us);
	TEST_ASSERT_EQUAL_UINT(0, terminals[1].n_taken);
	finish(2, 0);
	TEST_ASSERT_EQUAL_UINT(0, n_done[1]);
	finish(0, 0);
	TEST_ASSERT_EQUAL_UINT(1, n_done[1]);
	TEST_ASSERT_EQUAL_UINT(0, status[1]);
	TEST_ASSERT_EQUAL_UINT(GANTRY_IO_FUA, ios[1].flags);
}

static void answer_with_times(void *arg)
{
	struct gantry_io *child = arg;

	child->flags |= GANTRY_IO_CRC;
	child->crc32c = 99;
	child->hop_ns[1] = 40;
	gantry_fail(child, GANTRY_S_OK);
}

static void a_covered_parent_keeps_its_checksum_both_ways(void)
{
	struct gantry_io *submitted;

	TEST_ASSERT_EQUAL_INT(0, submit(0, whole, 1));
	submitted = terminals[1].held[0];
	TEST_ASSERT_EQUAL_PTR(&ios[0], submitted);
	TEST_ASSERT_EQUAL_UINT(GANTRY_IO_FUA | GANTRY_IO_CRC, submitted->flags);
	TEST_ASSERT_EQUAL_UINT(5, submitted->crc32c);
	gn_worker_call(fw.worker, answer_with_times, submitted);
	TEST_ASSERT_EQUAL_UINT(1, n_done[0]);
	TEST_ASSERT_EQUAL_UINT(99, ios[0].crc32c);
	TEST_ASSERT_EQUAL_UINT(40, ios[0].hop_ns[1]);
}

/*
 * The terminal gets the parent with the offset of the piece. The owner gets it back with its own
 * offset.
 */
static void a_parent_that_one_piece_covers_has_no_child(void)
{
	uint32_t held[GN_CHAIN_PLACES];

	TEST_ASSERT_EQUAL_INT(0, submit(2, whole, 1));
	TEST_ASSERT_EQUAL_PTR(&ios[2], terminals[1].held[0]);
	TEST_ASSERT_EQUAL_UINT64(77, ios[2].offset);
	gn_lane_count_held(&fw.lane, NULL, held);
	TEST_ASSERT_EQUAL_UINT(1, held[1]); /* at the terminal */
	finish(1, GANTRY_S_NOSPC);
	TEST_ASSERT_EQUAL_UINT(1, n_done[2]);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_NOSPC, status[2]);
	TEST_ASSERT_EQUAL_UINT64(10000, ios[2].offset);
	terminals[1].held[terminals[1].n_held++] = &ios[2];
	finish(1, GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(1, n_done[2]);
	TEST_ASSERT_EQUAL_UINT64(1, gn_host_counter(&fw.host, "double_completions"));
}

static void a_parent_without_children_waits_for_its_terminal(void)
{
	terminals[1].rc = -EAGAIN;
	TEST_ASSERT_EQUAL_INT(0, submit(0, whole, 1));
	TEST_ASSERT_EQUAL_INT(0, submit(1, whole, 1));
	TEST_ASSERT_EQUAL_INT(0, submit(2, halves, 2)); /* the other terminals accept */
	TEST_ASSERT_EQUAL_UINT(1, terminals[2].n_taken);
	fake_settle(&fw);
	terminals[1].rc = 0;
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(2, terminals[1].n_taken);
	finish(1, GANTRY_S_OK);
	finish(1, GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(1, n_done[0]);
	TEST_ASSERT_EQUAL_UINT(1, n_done[1]);
	terminals[1].rc = -EAGAIN;
	TEST_ASSERT_EQUAL_INT(0, submit(0, whole, 1));
	fake_clock_advance(GN_NS_PER_MS);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(2, n_done[0]);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_CANCELED, status[0]);
	terminals[1].rc = -ENOTCONN;
	TEST_ASSERT_EQUAL_INT(0, submit(1, whole, 1));
	TEST_ASSERT_EQUAL_UINT(2, n_done[1]);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_SESSION_LOST, status[1]);
	TEST_ASSERT_EQUAL_UINT64(10000, ios[1].offset);
	TEST_ASSERT_EQUAL_UINT64(0, gn_host_counter(&fw.host, "double_completions"));
}

/*
 * A submit completes another parent, whose owner submits it again. Both submits use one array of
 * pieces, as in a gateway.
 */
static void each_parent_of_nested_submits_has_its_pieces(void)
{
	static const struct gantry_piece first[] = {{.length = 1024, .offset = 50}};
	static const struct gantry_piece others[] = {
		{.terminal = 0, .length = 512, .offset = 1000},
		{.terminal = 1, .length = 512, .offset = 2000, .skip = 512}};

	TEST_ASSERT_EQUAL_INT(0, submit(0, first, 1));
	terminals[0].pipelines = 1;
	overwriting = others;
	n_again = 1;
	memcpy(shared, halves, sizeof(shared));
	TEST_ASSERT_EQUAL_INT(0, submit(1, shared, 2));
	TEST_ASSERT_EQUAL_INT(0, again_rc);
	TEST_ASSERT_EQUAL_UINT(1, terminals[1].n_held);
	TEST_ASSERT_EQUAL_UINT64(2000, terminals[1].held[0]->offset);
	TEST_ASSERT_EQUAL_UINT(1, terminals[2].n_held);
	TEST_ASSERT_EQUAL_UINT64(7, terminals[2].held[0]->offset);
	finish(0, GANTRY_S_OK);
	finish(0, GANTRY_S_OK);
	finish(1, GANTRY_S_OK);
	finish(2, GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(2, n_done[0]);
	TEST_ASSERT_EQUAL_UINT(1, n_done[1]);
}

static void the_slowest_child_gives_the_time(void)
{
	TEST_ASSERT_EQUAL_INT(0, submit(0, halves, 2));
	terminals[0].held[0]->hop_ns[2] = 10;
	terminals[2].held[0]->hop_ns[2] = 30;
	finish(2, 0);
	finish(0, 0);
	TEST_ASSERT_EQUAL_UINT(30, ios[0].hop_ns[2]);
}

static void the_first_error_wins(void)
{
	TEST_ASSERT_EQUAL_INT(0, submit(0, halves, 2));
	finish(2, GANTRY_S_NOSPC);
	finish(0, GANTRY_S_IO);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_NOSPC, status[0]);
	TEST_ASSERT_EQUAL_INT(0, submit(0, halves, 2));
	finish(2, GANTRY_S_OK);
	finish(0, GANTRY_S_IO);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, status[0]);
	terminals[0].rc = -ENOTCONN;
	TEST_ASSERT_EQUAL_INT(0, submit(0, halves, 2));
	TEST_ASSERT_EQUAL_UINT(2, n_done[0]);
	finish(2, GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_SESSION_LOST, status[0]);
	terminals[0].rc = -ENODEV;
	TEST_ASSERT_EQUAL_INT(0, submit(0, halves, 1));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, status[0]);
	TEST_ASSERT_EQUAL_UINT(4, n_done[0]);
}

/* A parent completes with CANCELED only if none of its children was started. */
static void partly_started_parent_is_not_canceled(void)
{
	TEST_ASSERT_EQUAL_INT(0, submit(0, halves, 2));
	finish(2, GANTRY_S_CANCELED);
	finish(0, GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_TIMEOUT, status[0]);
	TEST_ASSERT_EQUAL_INT(0, submit(0, halves, 2));
	finish(2, GANTRY_S_CANCELED);
	finish(0, GANTRY_S_CANCELED);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_CANCELED, status[0]);
}

static void status_of_an_unreleased_buffer_takes_precedence(void)
{
	TEST_ASSERT_EQUAL_INT(0, submit(0, halves, 2));
	finish(2, GANTRY_S_IO);
	finish(0, GANTRY_S_TIMEOUT);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_TIMEOUT, status[0]);
	TEST_ASSERT_EQUAL_INT(0, submit(0, halves, 2));
	finish(2, GANTRY_S_UNKNOWN);
	finish(0, GANTRY_S_TIMEOUT);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_UNKNOWN, status[0]);
}

static void child_rejected_with_eagain_is_submitted_again(void)
{
	terminals[2].rc = -EAGAIN;
	TEST_ASSERT_EQUAL_INT(0, submit(0, halves, 2));
	TEST_ASSERT_EQUAL_INT(0, submit(1, halves, 2));
	fake_settle(&fw);
	TEST_ASSERT_TRUE(terminals[2].n_refused > 2);
	terminals[2].rc = 0;
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(2, terminals[2].n_taken);
	TEST_ASSERT_EQUAL_PTR(&ios[0], &ios[terminals[2].held[0]->region_offset == 612 ? 0 : 1]);
	for (int i = 0; i < 2; i++) {
		finish(0, 0);
		finish(2, 0);
	}
	TEST_ASSERT_EQUAL_UINT(1, n_done[0]);
	TEST_ASSERT_EQUAL_UINT(1, n_done[1]);
}

static void child_that_no_terminal_accepts_ends_at_its_deadline(void)
{
	terminals[2].rc = -EAGAIN;
	TEST_ASSERT_EQUAL_INT(0, submit(0, halves, 2));
	finish(0, 0);
	fake_clock_advance(GN_NS_PER_MS - 1);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(0, n_done[0]);
	fake_clock_advance(1);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_UINT(1, n_done[0]);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_TIMEOUT, status[0]); /* the other half was executed */
	TEST_ASSERT_EQUAL_UINT(0, terminals[2].n_taken);
}

/*
 * All children wait in the list, because their terminals return -EAGAIN. Then the terminals reject
 * them for good, and each parent completes with an error. Its owner submits it again inside that
 * completion, while children of other parents are still in the list.
 */
static void parents_submitted_again_in_their_completion_find_a_slot(void)
{
	static const struct gantry_piece pieces[PIECES] = {
		{.length = 1}, {.length = 1}, {.length = 1}, {.terminal = 1, .length = 1}};

	terminals[0].rc = -EAGAIN;
	terminals[1].rc = -EAGAIN;
	for (unsigned i = 0; i < PARENTS; i++)
		TEST_ASSERT_EQUAL_INT(0, submit(i, pieces, PIECES));
	again = pieces;
	n_again = 100;
	again_rc = -1;
	terminals[1].rc = -ENODEV;
	fake_settle(&fw);
	terminals[0].rc = -ENODEV;
	fake_settle(&fw);
	while (n_again > 0)
		fake_settle(&fw);
	for (int i = 0; i < 2; i++) {
		terminals[i].rc = 0;
		terminals[i].now = 1;
	}
	fake_settle(&fw);
	fake_settle(&fw);
	TEST_ASSERT_EQUAL_INT(0, again_rc);
	TEST_ASSERT_EQUAL_UINT(PARENTS + 100, n_done[0] + n_done[1] + n_done[2]);
	TEST_ASSERT_EQUAL_UINT64(0, gn_host_counter(&fw.host, "double_completions"));
}

static void limits(void)
{
	struct gantry_hop hop = {.submit = reject_submit};
	struct gantry_fanout *f;

	TEST_ASSERT_EQUAL_INT(-E2BIG, submit(0, halves, 0));
	TEST_ASSERT_EQUAL_INT(-E2BIG, submit(0, halves, PIECES + 1));
	ios[0].slot = PARENTS;
	TEST_ASSERT_EQUAL_INT(-E2BIG, submit(0, halves, 1));
	ios[0].slot = 0;
	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_fanout_create(&fw.lane, &hop, 0, 1, 1, &f));
	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_fanout_create(&fw.lane, &hop, 1, 0, 1, &f));
	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_fanout_create(&fw.lane, &hop, 1, 65536, 1, &f));
	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_fanout_create(&fw.lane, &hop, 1, 1u << 31, 4, &f));
	gn_fanout_destroy(NULL);
}

static void a_child_that_completes_twice_is_counted(void)
{
	struct gantry_io *child;

	TEST_ASSERT_EQUAL_INT(0, submit(0, halves, 2));
	child = terminals[0].held[0];
	finish(0, 0);
	terminals[0].held[terminals[0].n_held++] = child;
	finish(0, GANTRY_S_IO);
	TEST_ASSERT_EQUAL_UINT(0, n_done[0]);
	TEST_ASSERT_EQUAL_UINT64(1, gn_host_counter(&fw.host, "double_completions"));
	finish(2, 0);
	TEST_ASSERT_EQUAL_UINT(0, status[0]);
}

/*
 * Random pieces, temporary rejections (-EAGAIN) and orders of completion: each parent completes
 * once.
 */
static void any_order_completes_each_parent_once(void)
{
	unsigned n_submitted[PARENTS] = {0}, total = 0;
	struct gantry_random r;

	gantry_random_seed(&r, 3);
	while (total < 2000) {
		unsigned slot = (unsigned)gantry_random_below(&r, PARENTS),
			 t = (unsigned)gantry_random_below(&r, TERMINALS);

		terminals[t].rc = gantry_random_below(&r, 3) ? 0 : -EAGAIN;
		if (n_done[slot] == n_submitted[slot]) {
			struct gantry_piece pieces[PIECES];
			unsigned n = 1 + (unsigned)gantry_random_below(&r, PIECES);

			for (unsigned i = 0; i < n; i++)
				pieces[i] = (struct gantry_piece){
					.length = n == 1 ? 1024 : 8,
					.terminal = (uint32_t)gantry_random_below(&r, TERMINALS)};
			TEST_ASSERT_EQUAL_INT(0, submit(slot, pieces, n));
			n_submitted[slot]++;
			total++;
		}
		fake_settle(&fw);
		t = (unsigned)gantry_random_below(&r, TERMINALS);
		finish(t, 0);
	}
	for (int i = 0; i < TERMINALS; i++)
		terminals[i].rc = 0;
	fake_settle(&fw);
	for (unsigned i = 0; i < TERMINALS; i++)
		while (terminals[i].n_held > 0)
			finish(i, 0);
	for (int i = 0; i < PARENTS; i++)
		TEST_ASSERT_EQUAL_UINT(n_submitted[i], n_done[i]);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(children_have_the_range_and_the_flags_of_their_parent);
	RUN_TEST(a_covered_parent_keeps_its_checksum_both_ways);
	RUN_TEST(each_parent_of_nested_submits_has_its_pieces);
	RUN_TEST(a_parent_that_one_piece_covers_has_no_child);
	RUN_TEST(a_parent_without_children_waits_for_its_terminal);
	RUN_TEST(the_slowest_child_gives_the_time);
	RUN_TEST(the_first_error_wins);
	RUN_TEST(partly_started_parent_is_not_canceled);
	RUN_TEST(status_of_an_unreleased_buffer_takes_precedence);
	RUN_TEST(child_rejected_with_eagain_is_submitted_again);
	RUN_TEST(child_that_no_terminal_accepts_ends_at_its_deadline);
	RUN_TEST(parents_submitted_again_in_their_completion_find_a_slot);
	RUN_TEST(limits);
	RUN_TEST(a_child_that_completes_twice_is_counted);
	RUN_TEST(any_order_completes_each_parent_once);
	return UNITY_END();
}
