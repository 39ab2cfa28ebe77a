/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine between a fake role host and a test: every IO completes exactly once, however the
 * session ends.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "clients/rig.h"
#include "unity.h"

#define BLOCK RIG_BLOCK
#define DEPTH 4u

void setUp(void)
{
	rig_begin(2, DEPTH);
}

void tearDown(void)
{
	fake_role_fini(&rig.rh); /* a test that has failed did not reach its rig_end() */
}

static struct gantry_engine_queue *start(void)
{
	return rig_start(2);
}

static void close_session(unsigned quarantined)
{
	rig_close();
	rig_end(quarantined);
}

/* -- pages -- */

static struct {
	unsigned turn;        /* of the control thread */
	unsigned last;        /* turn in which pages were last allocated */
	uint64_t bytes, most; /* allocated bytes: in all turns; most in one turn */
	void *first;
	uint64_t this_turn;
	int fail; /* errno of madvise */
} pages;

int __wrap_madvise(void *addr, size_t length, int advice);

int __wrap_madvise(void *addr, size_t length, int advice)
{
	(void)advice;
	if (pages.fail) {
		errno = pages.fail;
		return -1;
	}
	if (!pages.bytes)
		pages.first = addr;
	if (pages.last != pages.turn) {
		pages.last = pages.turn;
		pages.this_turn = 0;
	}
	pages.bytes += length;
	pages.this_turn += length;
	if (pages.this_turn > pages.most)
		pages.most = pages.this_turn;
	return 0;
}

static void turn_until_started(void)
{
	for (unsigned i = 0; i < 1000 && !rig.n_started && !rig.n_closed; i++) {
		pages.turn++;
		rig_turn(1);
	}
	TEST_ASSERT_EQUAL_UINT(1, rig.n_started);
}

static void test_session_can_be_closed_while_pages_are_allocated(void)
{
	for (unsigned n = 1; n < 4; n++) { /* close the session while pages are allocated */
		if (n > 1)
			setUp();
		rig.shared = 256ull << 20;
		TEST_ASSERT_EQUAL_INT(0, rig_open(2));
		rig_turn(n);
		close_session(0);
		TEST_ASSERT_EQUAL_UINT(0, rig.n_started);
	}
}

/* Allocating all pages at a time would take so long that the peer treats the client as lost. */
static void test_all_pages_are_allocated_a_part_in_each_turn(void)
{
	memset(&pages, 0, sizeof(pages));
	rig.shared = (256ull << 20) + 3 * BLOCK;
	TEST_ASSERT_EQUAL_INT(0, rig_open(2));
	turn_until_started();
	TEST_ASSERT_EQUAL_INT(GANTRY_REGION_LAZY, rig.rh.region_flags);
	TEST_ASSERT_EQUAL_PTR(rig.rh.region->addr, pages.first);
	TEST_ASSERT_EQUAL_UINT64(2 * DEPTH * BLOCK + rig.shared, pages.bytes);
	TEST_ASSERT_EQUAL_UINT64(pages.bytes, rig.pages_bytes);
	TEST_ASSERT_LESS_OR_EQUAL_UINT64(64ull << 20, pages.most);
	close_session(0);
}

static void test_session_ends_when_pages_cannot_be_allocated(void)
{
	static const int errors[][2] = {
		{ENOMEM, -ENOMEM}, {EFAULT, -ENOMEM}, {EHWPOISON, -EHWPOISON}};

	for (unsigned i = 0; i < 3; i++) {
		memset(&pages, 0, sizeof(pages));
		pages.fail = errors[i][0];
		TEST_ASSERT_EQUAL_INT(0, rig_open(2));
		rig_turn(8);
		TEST_ASSERT_EQUAL_UINT(1, rig.n_closed);
		TEST_ASSERT_EQUAL_INT(errors[i][1], rig.reason);
		TEST_ASSERT_NOT_NULL(strstr(rig.text, "cannot allocate the region of"));
		TEST_ASSERT_EQUAL_UINT64(0, rig.pages_bytes);
		rig_end(0);
		setUp();
	}
	pages.fail = 0;
	start();
	close_session(0);
}

/*
 * The export fails with -ENOTCONN because the session is lost. The engine must not report this
 * error: it waits for the event `closed` of the host, which has the reason of the loss.
 */
static void test_a_session_that_is_lost_while_pages_are_allocated_reports_why(void)
{
	memset(&pages, 0, sizeof(pages));
	rig.shared = 256ull << 20;
	TEST_ASSERT_EQUAL_INT(0, rig_open(2));
	while (rig.pages_bytes < rig.shared / 2)
		rig_turn(1);
	rig.rh.export_rc = -ENOTCONN;
	while (rig.pages_bytes < 2 * DEPTH * BLOCK + rig.shared)
		rig_turn(1);
	rig.rh.lose_rc = -EPROTO;
	rig_turn(2);
	TEST_ASSERT_EQUAL_UINT(1, rig.n_closed);
	TEST_ASSERT_EQUAL_INT(-EPROTO, rig.reason);
	TEST_ASSERT_EQUAL_STRING("lost on purpose", rig.text);
	rig_end(0);
}

/* A region that the peer would reject is rejected before any of it is allocated. */
static void test_a_region_that_is_too_large_is_not_made(void)
{
	memset(&pages, 0, sizeof(pages));
	rig.shared = 1 << 20;
	rig.rh.export_limit = 1 << 20; /* the slots need additional memory */
	TEST_ASSERT_EQUAL_INT(0, rig_open(2));
	rig_turn(8);
	TEST_ASSERT_EQUAL_UINT(1, rig.n_closed);
	TEST_ASSERT_EQUAL_INT(-E2BIG, rig.reason);
	TEST_ASSERT_NOT_NULL(
		strstr(rig.text, "longer than the device here or at the peer accepts"));
	TEST_ASSERT_EQUAL_UINT64(0, pages.bytes);
	rig_end(0);
}

static uint64_t shared_offset(void)
{
	uint64_t offset;

	gn_engine_ops.shared(rig.session, &offset);
	return offset;
}

static void test_data_is_written_and_read_back(void)
{
	struct gantry_engine_queue *queue = start(), *other = gn_engine_ops.queue(rig.session, 1);
	struct gantry_io *io = rig_filled(queue, GANTRY_OP_WRITE, BLOCK);

	TEST_ASSERT_EQUAL_UINT64(BLOCK, queue->slot_bytes);
	TEST_ASSERT_EQUAL_UINT64(BLOCK * DEPTH, other->buffers_offset);
	TEST_ASSERT_EQUAL_UINT64(BLOCK * DEPTH * 2, shared_offset());
	TEST_ASSERT_EQUAL_UINT64(BLOCK * DEPTH * 2 + RIG_SHARED, rig.rh.region->length);
	memset(gantry_engine_slot_buffer(queue, io), 0x5a, BLOCK);
	TEST_ASSERT_EQUAL_INT(0, gantry_engine_submit(queue, io));
	TEST_ASSERT_EQUAL_UINT32(1, queue->n_inflight);
	rig_turn(1);
	TEST_ASSERT_EQUAL_UINT(1, rig.n_done);
	TEST_ASSERT_EQUAL_UINT32(0, queue->n_inflight);
	rig.keep = 1;
	io = rig_submit(other, GANTRY_OP_READ, BLOCK);
	memset(gantry_engine_slot_buffer(other, io), 0, BLOCK);
	rig_turn(1);
	TEST_ASSERT_EQUAL_PTR(io, rig.done[1].io);
	for (unsigned i = 0; i < BLOCK; i++)
		TEST_ASSERT_EQUAL_HEX8(0x5a, ((uint8_t *)gantry_engine_slot_buffer(other, io))[i]);
	gantry_engine_put(other, io);
	rig.keep = 0;
	rig_submit(queue, GANTRY_OP_FLUSH, 0);
	rig_submit(queue, GANTRY_OP_DISCARD, 0);
	rig_turn(1);
	TEST_ASSERT_EQUAL_UINT(4, rig.n_done);
	close_session(0);
}

static void test_queue_has_as_many_slots_as_requested(void)
{
	struct gantry_engine_queue *queue = start();

	for (unsigned i = 0; i < DEPTH; i++)
		rig_submit(queue, GANTRY_OP_READ, 0);
	TEST_ASSERT_NULL(gantry_engine_get(queue));
	rig_turn(1);
	TEST_ASSERT_EQUAL_UINT(DEPTH, rig.n_done);
	gantry_engine_put(queue, gantry_engine_get(queue));
	for (unsigned i = 0; i < DEPTH; i++)
		rig_submit(queue, GANTRY_OP_READ, 0);
	rig_turn(1);
	TEST_ASSERT_EQUAL_UINT(2 * DEPTH, rig.n_done);
	close_session(0);
}

static void test_ios_rejected_with_eagain_are_retried_in_order(void)
{
	struct gantry_engine_queue *queue;
	struct gantry_io *first, *second, *third;

	RIG_FAULT(.kind = FAKE_REFUSED, .opcode = GANTRY_OP_READ, .nth = 2, .more = 2,
		  .rc = -EAGAIN);
	queue = start();
	first = rig_submit(queue, GANTRY_OP_READ, 0);
	second = rig_submit(queue, GANTRY_OP_READ, BLOCK);
	third = rig_submit(queue, GANTRY_OP_FLUSH, 0);
	TEST_ASSERT_EQUAL_UINT32(2, queue->n_waiting);
	TEST_ASSERT_EQUAL_UINT32(3, queue->n_inflight);
	rig_turn(1);
	TEST_ASSERT_EQUAL_UINT(1, rig.n_done);
	rig_turn(6);
	TEST_ASSERT_EQUAL_UINT(3, rig.n_done);
	TEST_ASSERT_EQUAL_PTR(first, rig.done[0].io);
	TEST_ASSERT_EQUAL_PTR(second, rig.done[1].io);
	TEST_ASSERT_EQUAL_PTR(third, rig.done[2].io);
	TEST_ASSERT_EQUAL_UINT32(0, queue->n_waiting);
	close_session(0);
}

static void test_rejected_io_fails_by_return_value_or_by_status(void)
{
	struct gantry_engine_queue *queue;
	struct gantry_io *io;

	RIG_FAULT(.kind = FAKE_REFUSED, .opcode = GANTRY_OP_READ, .nth = 1, .rc = -EROFS);
	RIG_FAULT(.kind = FAKE_REFUSED, .opcode = GANTRY_OP_READ, .nth = 2, .rc = -EAGAIN);
	RIG_FAULT(.kind = FAKE_REFUSED, .opcode = GANTRY_OP_READ, .nth = 3, .rc = -EROFS);
	queue = start();
	io = rig_filled(queue, GANTRY_OP_READ, 0);
	TEST_ASSERT_EQUAL_INT(-EROFS, gantry_engine_submit(queue, io));
	TEST_ASSERT_EQUAL_UINT32(0, queue->n_inflight);
	gantry_engine_put(queue, io);
	rig_submit(queue, GANTRY_OP_READ, 0);
	rig_turn(2);
	TEST_ASSERT_EQUAL_UINT(1, rig.n_done);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_READ_ONLY, rig.done[0].status);
	close_session(0);
}

static void test_lost_session_completes_each_io_once(void)
{
	struct gantry_engine_queue *queue;
	struct gantry_io *io;

	RIG_FAULT(.kind = FAKE_REFUSED, .opcode = GANTRY_OP_WRITE, .nth = 2, .more = 99,
		  .rc = -EAGAIN);
	queue = start();
	rig_submit(queue, GANTRY_OP_WRITE, 0);
	rig_submit(queue, GANTRY_OP_WRITE, 0);
	rig_submit(queue, GANTRY_OP_FLUSH, 0);
	rig.rh.lose_rc = -ECONNRESET;
	rig_turn(3);
	TEST_ASSERT_EQUAL_UINT(1, rig.n_closed);
	TEST_ASSERT_EQUAL_INT(-ECONNRESET, rig.reason);
	TEST_ASSERT_EQUAL_STRING("lost on purpose", rig.text);
	TEST_ASSERT_EQUAL_UINT(3, rig.n_done);
	for (unsigned i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_UINT(GANTRY_S_SESSION_LOST, rig.done[i].status);
	TEST_ASSERT_EQUAL_UINT32(0, queue->n_inflight + queue->n_waiting);
	TEST_ASSERT_EQUAL_UINT32(2, queue->n_quarantined);
	io = rig_filled(queue, GANTRY_OP_READ, 0);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, gantry_engine_submit(queue, io));
	gantry_engine_put(queue, io);
	TEST_ASSERT_EQUAL_UINT(1, rig.rh.n_withdrawn);
	rig_end(0);
}

/*
 * The host has no memory to copy the region to private pages: the owner repeats
 * gn_engine_ops.withdraw() until it succeeds.
 */
static void test_a_withdrawal_without_memory_can_be_repeated(void)
{
	struct gantry_engine_queue *queue = start();

	rig_submit(queue, GANTRY_OP_WRITE, 0);
	rig.rh.withdraw_rc = -ENOMEM;
	rig.rh.lose_rc = -ECONNRESET;
	rig_turn(3);
	TEST_ASSERT_EQUAL_UINT(1, rig.n_closed);
	TEST_ASSERT_EQUAL_INT(-ENOMEM, gn_engine_ops.withdraw(rig.session));
	rig.rh.withdraw_rc = 0;
	TEST_ASSERT_EQUAL_INT(0, gn_engine_ops.withdraw(rig.session));
	TEST_ASSERT_EQUAL_INT(0, gn_engine_ops.withdraw(rig.session));
	TEST_ASSERT_EQUAL_UINT(3, rig.rh.n_withdrawn);
	rig_end(0);
}

/* If no withdrawal has succeeded when the session is freed, the engine quarantines the region. */
static void test_a_region_that_was_never_withdrawn_is_quarantined(void)
{
	struct gantry_engine_queue *queue = start();

	rig_submit(queue, GANTRY_OP_WRITE, 0);
	rig.rh.withdraw_rc = -ENOMEM;
	rig.rh.lose_rc = -ECONNRESET;
	rig_turn(3);
	rig_end(1);
}

/*
 * A rejected IO reached no peer, so its slot is not quarantined. The status that the previous IO
 * left in this slot does not matter.
 */
static void test_rejected_io_is_not_quarantined(void)
{
	struct gantry_engine_queue *queue;
	struct gantry_io *io;

	RIG_FAULT(.kind = FAKE_REFUSED, .opcode = GANTRY_OP_FLUSH, .nth = 1, .more = 99,
		  .rc = -EAGAIN);
	queue = start();
	rig_submit(queue, GANTRY_OP_FLUSH, 0);
	rig.rh.lose_rc = -ECONNRESET;
	rig_turn(3);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_SESSION_LOST, rig.done[0].status);
	io = rig_filled(queue, GANTRY_OP_READ, 0);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_SESSION_LOST, io->status);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, gantry_engine_submit(queue, io));
	gantry_engine_put(queue, io);
	TEST_ASSERT_EQUAL_UINT32(0, queue->n_quarantined);
	TEST_ASSERT_EQUAL_UINT64(0, queue->n_doubtful);
	rig_end(0);
}

static void test_buffers_of_timed_out_ios_are_quarantined(void)
{
	struct gantry_engine_queue *queue;
	struct gantry_io *io;

	RIG_FAULT(.kind = FAKE_STATUS, .opcode = GANTRY_OP_READ, .nth = 1, .more = DEPTH,
		  .status = GANTRY_S_TIMEOUT);
	queue = start();
	io = gantry_engine_get(queue);
	gantry_engine_fill(queue, io, GANTRY_OP_READ, 0, 0, BLOCK, shared_offset());
	TEST_ASSERT_EQUAL_INT(0, gantry_engine_submit(queue, io));
	rig_turn(1);
	/* only the caller's buffer is in quarantine */
	TEST_ASSERT_EQUAL_UINT32(0, queue->n_quarantined);
	TEST_ASSERT_EQUAL_UINT64(1, queue->n_doubtful);
	for (unsigned i = 0; i < DEPTH; i++)
		rig_submit(queue, GANTRY_OP_READ, 0);
	rig_turn(1);
	TEST_ASSERT_EQUAL_UINT32(DEPTH, queue->n_quarantined);
	TEST_ASSERT_NULL(gantry_engine_get(queue));
	rig.rh.quiet = 1; /* no agent can touch the buffers after the end */
	close_session(0);
}

static void test_quarantined_buffers_are_reused_after_their_ios_settled(void)
{
	struct gantry_engine_queue *queue;
	struct gantry_io *first = NULL;

	RIG_FAULT(.kind = FAKE_STATUS, .opcode = GANTRY_OP_READ, .nth = 1, .more = DEPTH - 1,
		  .status = GANTRY_S_TIMEOUT);
	queue = start();
	for (unsigned i = 0; i < DEPTH; i++) {
		struct gantry_io *io = rig_submit(queue, GANTRY_OP_READ, 0);

		if (i == 0)
			first = io;
		rig_turn(1);
	}
	TEST_ASSERT_EQUAL_UINT32(DEPTH, queue->n_quarantined);
	rig.rh.settled_ns = first->start_ns;
	rig_turn(1);
	TEST_ASSERT_EQUAL_UINT32(DEPTH, queue->n_quarantined);
	rig.rh.settled_ns++;
	rig_turn(1);
	TEST_ASSERT_EQUAL_UINT32(DEPTH - 1, queue->n_quarantined);
	TEST_ASSERT_EQUAL_PTR(first, gantry_engine_get(queue));
	TEST_ASSERT_NULL(gantry_engine_get(queue));
	first->status = GANTRY_S_OK;
	gantry_engine_put(queue, first);
	rig.rh.settled_ns = UINT64_MAX;
	rig_turn(1);
	TEST_ASSERT_EQUAL_UINT32(0, queue->n_quarantined);
	for (unsigned i = 0; i < DEPTH; i++)
		rig_submit(queue, GANTRY_OP_READ, 0);
	TEST_ASSERT_NULL(gantry_engine_get(queue));
	rig_turn(1);
	TEST_ASSERT_EQUAL_UINT(2 * DEPTH, rig.n_done);
	close_session(0); /* the region is not in quarantine either */
}

static void test_a_second_completion_is_counted_and_ignored(void)
{
	struct gantry_engine_queue *queue;

	RIG_FAULT(.kind = FAKE_DOUBLED, .opcode = GANTRY_OP_READ, .nth = 1);
	queue = start();
	rig_submit(queue, GANTRY_OP_READ, 0);
	rig_turn(1);
	TEST_ASSERT_EQUAL_UINT(1, rig.n_done);
	TEST_ASSERT_EQUAL_UINT64(1, queue->n_doubled);
	TEST_ASSERT_EQUAL_UINT32(0, queue->n_inflight);
	close_session(0);
}

static void test_the_owner_may_refuse_the_volume(void)
{
	rig.ready_rc = -EMEDIUMTYPE;
	TEST_ASSERT_EQUAL_INT(0, rig_open(1));
	rig_turn(4);
	TEST_ASSERT_EQUAL_UINT(0, rig.n_started);
	TEST_ASSERT_EQUAL_UINT(1, rig.n_closed);
	TEST_ASSERT_EQUAL_INT(-EMEDIUMTYPE, rig.reason);
	rig_end(0);
}

static void test_session_can_be_closed_at_each_step(void)
{
	for (unsigned step = 0; step < 5; step++) {
		fake_role_fini(&rig.rh);
		setUp();
		TEST_ASSERT_EQUAL_INT(0, rig_open(2));
		rig_turn(step);
		close_session(0);
	}
	fake_role_fini(&rig.rh);
	setUp();
	rig.close_when_ready = 1;
	TEST_ASSERT_EQUAL_INT(0, rig_open(2));
	rig_turn(5);
	TEST_ASSERT_EQUAL_UINT(0, rig.n_started);
	close_session(0);
}

static void test_session_fails_if_the_client_cannot_be_opened(void)
{
	rig.rh.open_rc = -ENOMEM;
	TEST_ASSERT_EQUAL_INT(-ENOMEM, rig_open(1));
	TEST_ASSERT_NULL(rig.session);
	gn_engine_ops.free(NULL);
}

/* -- further regions -- */

static char guest[4][2 * BLOCK] __attribute__((aligned(4096)));

static struct gantry_region guest_region(unsigned i)
{
	return (struct gantry_region){.addr = guest[i], .length = sizeof(guest[i]), .fd = -1};
}

static struct gantry_engine_queue *start_with_regions(uint32_t regions)
{
	rig.regions = regions;
	return start();
}

static void test_io_uses_further_regions_while_they_are_exported(void)
{
	const struct gantry_region a = guest_region(0), b = guest_region(1);
	struct gantry_engine_queue *queue = start_with_regions(2);
	struct gantry_io *io;

	TEST_ASSERT_EQUAL_UINT32(3, rig.rh.attr.regions);
	TEST_ASSERT_EQUAL_INT(0, gn_engine_ops.region_export(rig.session, &a, 2));
	TEST_ASSERT_EQUAL_INT(0, gn_engine_ops.region_export(rig.session, &b, 3));
	TEST_ASSERT_EQUAL_UINT(0, rig.n_exported);
	rig_turn(2);
	TEST_ASSERT_EQUAL_UINT(2, rig.n_exported);
	memset(guest[1] + BLOCK, 0x5a, BLOCK);
	io = rig_filled(queue, GANTRY_OP_WRITE, 3 * BLOCK);
	io->region = 3;
	io->region_offset = BLOCK;
	io->data = guest[1] + BLOCK;
	TEST_ASSERT_EQUAL_INT(0, gantry_engine_submit(queue, io));
	rig_turn(2);
	TEST_ASSERT_EQUAL_UINT(1, rig.n_done);
	TEST_ASSERT_EQUAL_HEX8(0x5a, rig.rh.data[3 * BLOCK]);
	TEST_ASSERT_EQUAL_INT(0, gn_engine_ops.region_unexport(rig.session, 2));
	TEST_ASSERT_EQUAL_INT(-ENOENT, gn_engine_ops.region_unexport(rig.session, 2));
	TEST_ASSERT_EQUAL_INT(-EEXIST, gn_engine_ops.region_export(rig.session, &a, 2));
	rig_turn(1);
	TEST_ASSERT_EQUAL_UINT(1, rig.n_unexported);
	TEST_ASSERT_EQUAL_UINT32(2, rig.last_handle);
	TEST_ASSERT_EQUAL_INT(0, gn_engine_ops.region_export(rig.session, &b, 2));
	rig_turn(1);
	TEST_ASSERT_EQUAL_UINT(3, rig.n_exported);
	close_session(0);
}

static void test_further_regions_that_cannot_be_exported_are_refused(void)
{
	const struct gantry_region a = guest_region(0);

	start_with_regions(1);
	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_engine_ops.region_export(rig.session, &a, 1));
	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_engine_ops.region_export(rig.session, &a, 3));
	TEST_ASSERT_EQUAL_INT(-ENOENT, gn_engine_ops.region_unexport(rig.session, 2));
	rig.rh.export_limit = BLOCK;
	TEST_ASSERT_EQUAL_INT(-E2BIG, gn_engine_ops.region_export(rig.session, &a, 2));
	TEST_ASSERT_EQUAL_UINT64(BLOCK, gn_engine_ops.export_limit(rig.session));
	rig.rh.export_limit = 0;
	TEST_ASSERT_EQUAL_INT(0, gn_engine_ops.region_export(rig.session, &a, 2));
	TEST_ASSERT_EQUAL_INT(-ENOENT, gn_engine_ops.region_unexport(rig.session, 2));
	rig_turn(1);
	rig_close();
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, gn_engine_ops.region_export(rig.session, &a, 2));
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, gn_engine_ops.region_unexport(rig.session, 2));
	rig.rh.export_limit = BLOCK;
	TEST_ASSERT_EQUAL_UINT64(UINT64_MAX, gn_engine_ops.export_limit(rig.session));
	rig_end(0);
}

static void test_a_session_ends_when_a_further_region_cannot_be_exported(void)
{
	const struct gantry_region a = guest_region(0);

	start_with_regions(1);
	rig.rh.export_rc = -ENOTSUP;
	TEST_ASSERT_EQUAL_INT(0, gn_engine_ops.region_export(rig.session, &a, 2));
	rig_turn(3);
	TEST_ASSERT_EQUAL_UINT(1, rig.n_closed);
	TEST_ASSERT_EQUAL_INT(-ENOTSUP, rig.reason);
	TEST_ASSERT_NOT_NULL(strstr(rig.text, "the peer does not support it"));
	TEST_ASSERT_EQUAL_UINT(0, rig.n_exported);
	rig_end(0);
}

static void test_session_ends_when_the_transport_cannot_access_memory(void)
{
	const struct gantry_region a = guest_region(0);

	for (int i = 0; i < 2; i++) {
		if (i)
			rig_begin(2, DEPTH);
		rig.regions = 1;
		rig.rh.export_rc = i ? 0 : -EXDEV;
		TEST_ASSERT_EQUAL_INT(0, rig_open(1));
		rig_turn(5);
		rig.rh.export_rc = -EXDEV;
		if (i)
			TEST_ASSERT_EQUAL_INT(0, gn_engine_ops.region_export(rig.session, &a, 2));
		rig_turn(3);
		TEST_ASSERT_EQUAL_UINT(1, rig.n_closed);
		TEST_ASSERT_EQUAL_INT(-EXDEV, rig.reason);
		TEST_ASSERT_NOT_NULL_MESSAGE(
			strstr(rig.text, "the transport of the device cannot access the memory"),
			rig.text);
		rig_end(0);
	}
}

static void closed_by_the_owner(void)
{
	rig_turn(3);
	TEST_ASSERT_EQUAL_UINT(1, rig.n_closed);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, rig.reason, rig.text);
	rig_end(0);
}

/* No request follows for the other region that waits. */
static void test_session_can_be_closed_in_an_event_of_a_region(void)
{
	const struct gantry_region a = guest_region(0), b = guest_region(1);

	start_with_regions(2);
	TEST_ASSERT_EQUAL_INT(0, gn_engine_ops.region_export(rig.session, &a, 2));
	TEST_ASSERT_EQUAL_INT(0, gn_engine_ops.region_export(rig.session, &b, 3));
	rig.close_in_event = 1;
	closed_by_the_owner();
	rig_begin(2, DEPTH);
	start_with_regions(2);
	TEST_ASSERT_EQUAL_INT(0, gn_engine_ops.region_export(rig.session, &a, 2));
	rig_turn(1);
	TEST_ASSERT_EQUAL_INT(0, gn_engine_ops.region_unexport(rig.session, 2));
	TEST_ASSERT_EQUAL_INT(0, gn_engine_ops.region_export(rig.session, &b, 3));
	rig.close_in_event = 1;
	closed_by_the_owner();
}

static void test_session_can_be_closed_in_the_event_of_pages(void)
{
	rig.close_with_pages = 1;
	TEST_ASSERT_EQUAL_INT(0, rig_open(1));
	closed_by_the_owner();
}

static void test_session_can_be_closed_when_it_starts(void)
{
	const struct gantry_region a = guest_region(0);

	rig.regions = 1;
	rig.close_in_event = 1;
	TEST_ASSERT_EQUAL_INT(0, rig_open(1));
	for (unsigned i = 0; i < 20 && rig.n_started == 0; i++) {
		if (rig.rh.n_chains) /* the client is starting: the region waits */
			gn_engine_ops.region_export(rig.session, &a, 2);
		rig_turn(1);
	}
	closed_by_the_owner();
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_io_uses_further_regions_while_they_are_exported);
	RUN_TEST(test_further_regions_that_cannot_be_exported_are_refused);
	RUN_TEST(test_a_session_ends_when_a_further_region_cannot_be_exported);
	RUN_TEST(test_data_is_written_and_read_back);
	RUN_TEST(test_session_can_be_closed_while_pages_are_allocated);
	RUN_TEST(test_all_pages_are_allocated_a_part_in_each_turn);
	RUN_TEST(test_session_ends_when_pages_cannot_be_allocated);
	RUN_TEST(test_a_session_that_is_lost_while_pages_are_allocated_reports_why);
	RUN_TEST(test_a_region_that_is_too_large_is_not_made);
	RUN_TEST(test_queue_has_as_many_slots_as_requested);
	RUN_TEST(test_ios_rejected_with_eagain_are_retried_in_order);
	RUN_TEST(test_rejected_io_fails_by_return_value_or_by_status);
	RUN_TEST(test_lost_session_completes_each_io_once);
	RUN_TEST(test_a_withdrawal_without_memory_can_be_repeated);
	RUN_TEST(test_a_region_that_was_never_withdrawn_is_quarantined);
	RUN_TEST(test_rejected_io_is_not_quarantined);
	RUN_TEST(test_buffers_of_timed_out_ios_are_quarantined);
	RUN_TEST(test_quarantined_buffers_are_reused_after_their_ios_settled);
	RUN_TEST(test_a_second_completion_is_counted_and_ignored);
	RUN_TEST(test_the_owner_may_refuse_the_volume);
	RUN_TEST(test_session_can_be_closed_at_each_step);
	RUN_TEST(test_session_fails_if_the_client_cannot_be_opened);
	RUN_TEST(test_session_ends_when_the_transport_cannot_access_memory);
	RUN_TEST(test_session_can_be_closed_in_an_event_of_a_region);
	RUN_TEST(test_session_can_be_closed_in_the_event_of_pages);
	RUN_TEST(test_session_can_be_closed_when_it_starts);
	return UNITY_END();
}
