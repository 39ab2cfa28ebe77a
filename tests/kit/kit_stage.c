/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kit_stage.c - cases of stages: one stage between an owner and a scripted terminal. The clock of
 * the host moves only when the cases let it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fake/chain.h"
#include "fake/shortage.h"
#include "kit/kit_program.h"

#define BLOCK 4096u
#define TURNS 100000u /* turns after which an IO counts as lost */
#define LATE 1000u    /* turns in which a second completion would come */
#define TURN_NS 1000000u
#define FEW 16

static struct fake_host host;
static struct fake_chain chain;
static uint8_t data[FAKE_IOS * BLOCK] __attribute__((aligned(4096)));

/* -- steps -- */

static const struct gantry_stage_ops *ops(void)
{
	return kit_program.plugin->ops;
}

static void open_chain(void)
{
	if (ops()->needs_bounce)
		rig_skip("skipped: the stage needs bounce buffers, which this host does not have");
	fake_host_init(&host, "test");
	fake_chain_init(&chain, &host);
	RIG_RC(0, fake_chain_stage(&chain, kit_program.plugin, kit_conf_copy()), host.log);
	fake_chain_terminal(&chain);
	chain.terminal.status = GANTRY_S_OK;
}

static void turn(void)
{
	uint64_t wake = fake_wake_ns(&chain);

	fake_poll(&chain);
	fake_advance(&chain.lane, wake > host.now_ns ? wake - host.now_ns : TURN_NS);
}

static void turns_until_done(unsigned n)
{
	for (unsigned i = 0; chain.n_done < n && i < TURNS; i++)
		turn();
	RIG_NUM(n, chain.n_done, "completions of the accepted IOs");
}

static void expect_no_more(unsigned n)
{
	for (unsigned i = 0; i < LATE; i++)
		turn();
	RIG_NUM(0, chain.n_stray, "second completions of an IO");
	RIG_NUM(n, chain.n_done, "completions of the accepted IOs, some time later");
}

/* Make IO i: each operation in turn, each block at another place. */
static struct gantry_io *make_io(unsigned i)
{
	static const unsigned opcodes[] = {GANTRY_OP_READ, GANTRY_OP_WRITE, GANTRY_OP_FLUSH,
					   GANTRY_OP_DISCARD, GANTRY_OP_WRITE_ZEROES};
	unsigned opcode = opcodes[i % (sizeof(opcodes) / sizeof(opcodes[0]))];
	int range = gantry_op_has_range(opcode);

	return fake_io(&chain, opcode, range ? (uint64_t)i * BLOCK : 0, range ? BLOCK : 0,
		       gantry_op_has_data(opcode) ? data + i % FAKE_IOS * BLOCK : NULL);
}

/* Submit an IO again while the stage rejects it for now. */
static void submit(struct gantry_io *io)
{
	int rc = gantry_submit(io);

	for (unsigned i = 0; rc == -EAGAIN && i < TURNS; i++) {
		turn();
		rc = gantry_submit(io);
	}
	RIG_RC(0, rc, "submit of an IO that the next hop accepts");
}

/* Submit n IOs once each. Returns how many the stage has accepted. */
static unsigned submit_once(unsigned n)
{
	unsigned accepted = 0;

	for (unsigned i = 0; i < n; i++)
		accepted += fake_submit(make_io(i)) == 0;
	return accepted;
}

static void finish_all(unsigned status)
{
	while (chain.terminal.n_held)
		fake_finish(&chain, status);
}

/* -- cases -- */

static void every_io_completes_once(void)
{
	open_chain();
	for (unsigned i = 0; i < FAKE_IOS; i++)
		submit(make_io(i));
	turns_until_done(FAKE_IOS);
	expect_no_more(FAKE_IOS);
}

static void completed_descriptors_are_as_submitted(void)
{
	struct gantry_io *ios[FAKE_IOS], before[FAKE_IOS];

	open_chain();
	for (unsigned i = 0; i < FAKE_IOS; i++) {
		ios[i] = make_io(i);
		before[i] = *ios[i];
	}
	for (unsigned i = 0; i < FAKE_IOS; i++)
		submit(ios[i]);
	turns_until_done(FAKE_IOS);
	for (unsigned i = 0; i < FAKE_IOS; i++) {
		RIG_NUM(before[i].opcode, ios[i]->opcode, "operation of a completed IO");
		RIG_NUM(before[i].offset, ios[i]->offset, "offset of a completed IO");
		RIG_NUM(before[i].length, ios[i]->length, "length of a completed IO");
		RIG_NUM((uintptr_t)before[i].data, (uintptr_t)ios[i]->data,
			"data pointer of a completed IO");
	}
}

static void io_of_the_next_hop_is_left_alone(void)
{
	open_chain();
	chain.terminal.hold = 1;
	for (unsigned i = 0; i < FEW; i++)
		submit(make_io(i));
	for (unsigned i = 0; i < LATE; i++)
		turn();
	for (unsigned i = 0; i < chain.terminal.n_held; i++)
		RIG_HOLDS(
			chain.terminal.held[i]->busy,
			"an IO that the stage has passed on completes after the next hop completes it");
	finish_all(GANTRY_S_OK);
	chain.terminal.hold = 0;
	turns_until_done(FEW);
	expect_no_more(FEW);
}

/* The next hop is full: a rejected IO is the caller's, an accepted one waits in the stage. */
static void rejected_io_stays_with_the_caller(void)
{
	unsigned accepted;

	open_chain();
	chain.terminal.refuse = -EAGAIN;
	chain.terminal.n_refuse = UINT32_MAX;
	accepted = submit_once(FEW);
	for (unsigned i = 0; i < LATE; i++)
		turn();
	RIG_NUM(0, chain.n_stray, "completions of IOs that the stage has rejected");
	RIG_NUM(0, chain.n_done, "completions while the next hop returns -EAGAIN");
	chain.terminal.n_refuse = 0;
	turns_until_done(accepted);
	for (unsigned i = accepted; i < FEW; i++)
		submit(make_io(i));
	turns_until_done(FEW);
	expect_no_more(FEW);
}

/* The next hop rejects an IO for good. */
static void failed_submit_is_reported(void)
{
	open_chain();
	chain.terminal.refuse = -EIO;
	for (unsigned i = 0; i < FEW; i++) {
		struct gantry_io *io = make_io(i);
		unsigned done = chain.n_done;
		int rc;

		chain.terminal.n_refuse = 1;
		rc = fake_submit(io);
		RIG_HOLDS(rc != -EAGAIN, "submit after the next hop has returned -EIO");
		if (rc == 0) {
			turns_until_done(done + 1);
			RIG_HOLDS(io->status != GANTRY_S_OK,
				  "status of an IO that the next hop has rejected with -EIO");
		}
		chain.terminal.n_refuse = 0;
	}
}

static void errors_are_passed_back(void)
{
	open_chain();
	chain.terminal.status = GANTRY_S_IO;
	for (unsigned i = 0; i < FEW; i++) {
		struct gantry_io *io = make_io(i);

		submit(io);
		turns_until_done(i + 1);
		RIG_HOLDS(io->status != GANTRY_S_OK,
			  "status of an IO that the next hop completes with an error");
	}
}

/* Submit IOs until the stage holds some. Returns how many are accepted. */
static unsigned load(void)
{
	chain.terminal.hold = 1;
	return submit_once(FAKE_IOS / 2);
}

static unsigned n_held_by_stage(unsigned accepted)
{
	return accepted - chain.terminal.n_held - chain.n_done;
}

static void drain_cancels_what_the_stage_holds(void)
{
	static int other; /* its address is another owner */
	unsigned accepted, done, held;

	open_chain();
	accepted = load();
	done = chain.n_done;
	held = n_held_by_stage(accepted);
	fake_drain(&chain, &other);
	RIG_NUM(done, chain.n_done, "completions after drain with another owner");
	fake_drain(&chain, &chain);
	RIG_NUM(done + held, chain.n_done, "completions after drain with the owner of all IOs");
	for (unsigned i = done; i < done + held; i++)
		RIG_NUM(GANTRY_S_CANCELED, chain.done[i]->status,
			"status of an IO that drain completes (GANTRY_S_CANCELED)");
	for (unsigned i = 0; i < chain.terminal.n_held; i++)
		RIG_HOLDS(chain.terminal.held[i]->busy,
			  "drain leaves an IO alone that the stage has passed on");
	finish_all(GANTRY_S_OK);
	turns_until_done(accepted);
	expect_no_more(accepted);
}

/* Load, drain, stop and close; what is left of memory and descriptors. */
static void close_under_load(void)
{
	unsigned accepted;

	open_chain();
	accepted = load();
	turn();
	fake_drain(&chain, NULL);
	RIG_NUM(0, n_held_by_stage(accepted), "IOs that the stage holds after drain");
	finish_all(GANTRY_S_SESSION_LOST);
	fake_drain(&chain, NULL);
	RIG_NUM(accepted, chain.n_done, "completions of the accepted IOs after the last drain");
	if (ops()->report) {
		struct fake_report report;

		fake_chain_report(&chain, 0, &report);
	}
	fake_chain_fini(&chain);
	RIG_NUM(0, chain.n_stray, "second completions of an IO");
}

static void teardown_under_load_leaves_nothing(void)
{
	long blocks, fds;

	close_under_load(); /* do not count what libraries allocate once and keep */
	blocks = shortage_blocks();
	fds = shortage_entries("/proc/self/fd");
	close_under_load();
	RIG_NUM((uint64_t)fds, (uint64_t)shortage_entries("/proc/self/fd"),
		"open descriptors after close");
	RIG_NUM((uint64_t)blocks, (uint64_t)shortage_blocks(), "blocks of memory after close");
}

void kit_stage_cases(void)
{
	RIG_CASE(every_io_completes_once);
	RIG_CASE(completed_descriptors_are_as_submitted);
	RIG_CASE(io_of_the_next_hop_is_left_alone);
	RIG_CASE(rejected_io_stays_with_the_caller);
	RIG_CASE(failed_submit_is_reported);
	RIG_CASE(errors_are_passed_back);
	RIG_CASE(drain_cancels_what_the_stage_holds);
	RIG_CASE(teardown_under_load_leaves_nothing);
}
