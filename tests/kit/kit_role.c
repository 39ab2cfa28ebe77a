/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kit_role.c - cases of roles that open a session and do work by themselves, on one lane: the host
 * has a volume in memory, and makes the errors that a case asks for.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fake/role_host.h"
#include "fake/shortage.h"
#include "kit/kit_program.h"

#define VOLUME (16u << 20)
#define BLOCK 4096u
#define TURN_NS 1000000u
#define SOME_TURNS 1000 /* turns in which a second end would come */

static struct fake_host host;
static struct fake_role_host rh;
static void *conf, *role;
static unsigned n_bad_export; /* of n_bad: what the host says of the rights of the export */

static const struct gantry_role_ops *ops(void)
{
	return kit_program.loaded->ops;
}

static void seen(struct fake_role_host *fake, const struct gantry_io *io)
{
	(void)io;
	if (!n_bad_export)
		n_bad_export = 1 + fake->n_bad;
}

static void open_role(void)
{
	const uint32_t needs = GANTRY_ROLE_CONNECTS | GANTRY_ROLE_WORKS;

	if ((ops()->flags & (needs | GANTRY_ROLE_LISTENS)) != needs)
		rig_skip("skipped: the role does not work by itself through one connect");
	conf = kit_conf_copy();
	n_bad_export = 0;
	fake_host_init(&host, "test");
	fake_role_init(&rh, &host, 1, VOLUME, BLOCK);
	rh.turn_ns = TURN_NS;
	rh.seen = seen;
	rh.quiet = 1;
	RIG_RC(0, ops()->open(&rh.pub, conf, &role), host.log);
}

static void start(void)
{
	RIG_RC(0, ops()->start(role), "start of a role whose host works");
}

static void close_role(void)
{
	ops()->close(role);
	free(conf);
	fake_role_fini(&rh);
}

/* Run to the end. Returns the status. */
static int run(void)
{
	int status = fake_role_run(&rh);

	for (unsigned i = 0; i < SOME_TURNS; i++)
		fake_role_turn(&rh);
	RIG_NUM(1, (uint64_t)rh.finished, "calls of finished()");
	RIG_NUM(0, rh.n_held, "IOs in flight after finished()");
	return status;
}

static uint64_t n_ops(void)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < GANTRY_OP_COUNT; i++)
		n += rh.n_ops[i];
	return n;
}

/* Run once without a fault. Returns an operation of which the role does at least three. */
static unsigned find_opcode(void)
{
	unsigned opcode = 0;

	open_role();
	start();
	RIG_NUM(0, (uint64_t)run(), "status of a run without faults");
	while (opcode < GANTRY_OP_COUNT && rh.n_ops[opcode] < 3)
		opcode++;
	close_role();
	if (opcode == GANTRY_OP_COUNT)
		rig_skip("skipped: the role does no operation three times");
	return opcode;
}

static void until_io(void)
{
	while (!n_ops() && !rh.finished)
		fake_role_turn(&rh);
	RIG_HOLDS(!rh.finished, "the role submits an IO before it ends");
}

/* -- cases -- */

static void work_ends_once(void)
{
	open_role();
	start();
	RIG_NUM(0, (uint64_t)run(), "status of a run without faults");
	RIG_NUM(n_bad_export ? n_bad_export - 1 : 0, rh.n_bad, "descriptors that a host rejects");
	RIG_NUM(0, rh.n_chains, "chains that are left at the end");
	RIG_NUM(0, rh.n_regions, "regions that are left at the end");
	RIG_NUM(1, rh.n_freed, "calls of client_free()");
	close_role();
}

static void failed_io_fails_the_role(void)
{
	unsigned opcode = find_opcode();

	open_role();
	fake_role_fault(&rh, (struct fake_fault){.kind = FAKE_STATUS,
						 .opcode = opcode,
						 .nth = 2,
						 .status = GANTRY_S_IO});
	start();
	RIG_HOLDS(run() != 0, "status of a run in which an IO fails");
	close_role();
}

static void rejected_io_is_submitted_again(void)
{
	unsigned opcode = find_opcode();

	open_role();
	fake_role_fault(&rh, (struct fake_fault){.kind = FAKE_REFUSED,
						 .opcode = opcode,
						 .nth = 2,
						 .more = 5,
						 .rc = -EAGAIN});
	start();
	RIG_NUM(0, (uint64_t)run(), "status of a run in which a submit returns -EAGAIN six times");
	close_role();
}

static void second_completion_is_ignored(void)
{
	unsigned opcode = find_opcode();

	open_role();
	fake_role_fault(&rh, (struct fake_fault){.kind = FAKE_DOUBLED, .opcode = opcode, .nth = 2});
	start();
	run();
	RIG_NUM(n_bad_export ? n_bad_export - 1 : 0, rh.n_bad,
		"descriptors that a host rejects, after one has completed twice");
	close_role();
}

static void lost_session_fails_the_role(void)
{
	open_role();
	start();
	until_io();
	rh.lose_rc = -ENOTCONN;
	RIG_HOLDS(run() != 0, "status of a run whose session is lost");
	close_role();
}

static void stop_ends_the_work(void)
{
	uint64_t before;

	open_role();
	start();
	until_io();
	before = n_ops();
	ops()->stop(role);
	ops()->stop(role); /* it is idempotent */
	run();
	RIG_NUM(before, n_ops(), "IOs that the role has submitted at the end, as many as at stop");
	close_role();
}

static void stop_before_the_session(void)
{
	open_role();
	start();
	ops()->stop(role);
	run();
	RIG_NUM(0, n_ops(), "IOs of a role that was stopped before it had a session");
	RIG_NUM(0, rh.n_regions, "regions that are left at the end");
	close_role();
}

static void session_that_cannot_be_opened(void)
{
	open_role();
	rh.open_rc = -EIO;
	if (!ops()->start(role))
		RIG_HOLDS(run() != 0, "status of a run whose client_open() has failed");
	close_role();
}

static void region_that_cannot_be_exported(void)
{
	open_role();
	rh.export_rc = -ENOMEM;
	start();
	RIG_HOLDS(run() != 0, "status of a run whose client_export() has failed");
	close_role();
}

static void close_after_work_leaves_nothing(void)
{
	long blocks;

	work_ends_once(); /* do not count what libraries allocate once and keep */
	blocks = shortage_blocks();
	work_ends_once();
	RIG_NUM((uint64_t)blocks, (uint64_t)shortage_blocks(), "blocks of memory after close");
}

void kit_role_cases(void)
{
	RIG_CASE(work_ends_once);
	RIG_CASE(failed_io_fails_the_role);
	RIG_CASE(rejected_io_is_submitted_again);
	RIG_CASE(second_completion_is_ignored);
	RIG_CASE(lost_session_fails_the_role);
	RIG_CASE(stop_ends_the_work);
	RIG_CASE(stop_before_the_session);
	RIG_CASE(session_that_cannot_be_opened);
	RIG_CASE(region_that_cannot_be_exported);
	RIG_CASE(close_after_work_leaves_nothing);
}
