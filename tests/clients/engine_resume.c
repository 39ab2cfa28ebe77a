/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A session that is lost and opened again, between a fake role host and a test: nothing is lost,
 * doubled or out of order.
 */
#include <errno.h>
#include <string.h>

#include "clients/rig.h"
#include "engine/engine_priv.h"
#include "unity.h"

#define BLOCK RIG_BLOCK
#define DEPTH 8u
#define MS 1000000ull

static struct gantry_engine_queue *queue;
static uint64_t seen_offset[64];
static unsigned n_seen;

static void seen(struct fake_role_host *fake, const struct gantry_io *io)
{
	(void)fake;
	seen_offset[n_seen++] = io->offset;
	TEST_ASSERT_EQUAL_HEX8(GANTRY_IO_FUA, io->flags);
	TEST_ASSERT_EQUAL_UINT32(77, io->deadline_us);
	TEST_ASSERT_EQUAL_HEX32(0xc5c32 + io->offset, io->crc32c);
	queue->ios[io->slot].flags = 0; /* stages and peers are allowed to change the flags */
	queue->ios[io->slot].deadline_us = queue->ios[io->slot].crc32c = 0;
}

static void begin(uint32_t depth, uint64_t resume_ns)
{
	rig_begin(1, depth);
	rig.rh.resume_ns = resume_ns;
	rig.rh.turn_ns = 10 * MS;
	rig.rh.quiet = 1;
	rig.rh.volume.verifier = 7;
	n_seen = 0;
	queue = rig_start(1);
}

void setUp(void)
{
	begin(DEPTH, 1000 * MS);
	rig.rh.seen = seen;
}

void tearDown(void)
{
	rig_end(0);
}

static void write_block(uint32_t block, uint8_t value)
{
	struct gantry_io *io = gantry_engine_get(queue);

	TEST_ASSERT_NOT_NULL(io);
	memset(gantry_engine_slot_buffer(queue, io), value, BLOCK);
	gantry_engine_fill(queue, io, GANTRY_OP_WRITE, GANTRY_IO_FUA, (uint64_t)block * BLOCK,
			   BLOCK, gantry_engine_slot_offset(queue, io));
	io->deadline_us = 77;
	io->crc32c = (uint32_t)(0xc5c32 + io->offset);
	TEST_ASSERT_EQUAL_INT(0, gantry_engine_submit(queue, io));
}

static void lose(void)
{
	rig.rh.lose_rc = -ECONNRESET;
	rig_turn(1);
	TEST_ASSERT_EQUAL_INT(1, queue->paused);
	TEST_ASSERT_EQUAL_UINT(0, rig.n_closed);
}

static void expect_done(unsigned n, unsigned status)
{
	TEST_ASSERT_EQUAL_UINT(n, rig.n_done);
	for (unsigned i = 0; i < n; i++)
		TEST_ASSERT_EQUAL_UINT(status, rig.done[i].status);
	TEST_ASSERT_EQUAL_UINT32(0, queue->n_inflight + queue->n_waiting + queue->n_lost);
}

static void test_ios_in_flight_are_submitted_again_in_order(void)
{
	for (uint8_t i = 0; i < 4; i++)
		write_block(i, (uint8_t)(i + 1));
	rig.rh.newest_first = 1; /* the IOs complete in another order */
	lose();
	write_block(4, 5);
	write_block(5, 6);
	TEST_ASSERT_EQUAL_UINT(0, rig.n_done);
	TEST_ASSERT_EQUAL_UINT32(6, queue->n_inflight);
	rig.rh.newest_first = 0;
	rig_turn(10);
	TEST_ASSERT_EQUAL_UINT(1, rig.n_started);
	TEST_ASSERT_EQUAL_UINT32(2, rig.rh.attr.epoch);
	TEST_ASSERT_NOT_EQUAL(0, rig.rh.attr.id);
	expect_done(6, GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(4 + 6, n_seen);
	for (unsigned i = 0; i < 6; i++) {
		TEST_ASSERT_EQUAL_UINT64(i * BLOCK, seen_offset[4 + i]);
		TEST_ASSERT_EQUAL_UINT64(i * BLOCK, rig.done[i].offset);
		TEST_ASSERT_EQUAL_HEX8(i + 1, rig.rh.data[i * BLOCK]);
	}
	TEST_ASSERT_TRUE(fake_logged(&rig.host, "4 IOs submitted again"));
	TEST_ASSERT_EQUAL_UINT32(0, queue->n_quarantined);
	rig_close();
}

static void test_the_secret_of_the_session_is_presented(void)
{
	static const uint8_t none[GANTRY_SECRET_BYTES];
	uint8_t secret[GANTRY_SECRET_BYTES];

	rig_end(0);
	rig_begin(1, DEPTH);
	memset(rig.rh.secret, 0x5e, sizeof(secret));
	memcpy(secret, rig.rh.secret, sizeof(secret));
	rig.rh.resume_ns = 1000 * MS;
	rig.rh.turn_ns = 10 * MS;
	rig.rh.quiet = 1;
	queue = rig_start(1);
	TEST_ASSERT_EQUAL_MEMORY(none, rig.rh.presented, sizeof(secret));
	for (unsigned round = 0; round < 2; round++) {
		lose();
		rig_turn(20);
		TEST_ASSERT_EQUAL_INT(0, queue->paused);
		TEST_ASSERT_EQUAL_MEMORY(secret, rig.rh.presented, sizeof(secret));
	}
	rig_close();
}

/*
 * The peer cancels the IO that is submitted again. But the lost session can have executed the IO,
 * so its status must not be CANCELED. An IO that has only waited for the resume stays CANCELED.
 */
static void test_io_that_is_submitted_again_never_completes_as_canceled(void)
{
	RIG_FAULT(.kind = FAKE_STATUS, .opcode = GANTRY_OP_WRITE, .nth = 2, .more = 1,
		  .status = GANTRY_S_CANCELED);
	write_block(0, 1);
	lose();
	write_block(1, 2);
	TEST_ASSERT_EQUAL_UINT32(1, queue->n_waiting);
	rig_turn(10);
	TEST_ASSERT_EQUAL_UINT(2, rig.n_done);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_TIMEOUT, rig.done[0].status);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_CANCELED, rig.done[1].status);
	TEST_ASSERT_EQUAL_UINT32(0, queue->n_quarantined); /* no IO is in flight any more */
	TEST_ASSERT_EQUAL_UINT64(0, queue->n_doubtful);
	rig_close();
}

static void test_session_that_is_lost_repeatedly_resumes(void)
{
	for (unsigned round = 0; round < 3; round++) {
		write_block(round, 9);
		lose();
		rig_turn(4); /* also lose the session while it is being opened */
		rig.rh.lose_rc = -ECONNRESET;
		rig_turn(30);
		TEST_ASSERT_EQUAL_INT(0, queue->paused);
		TEST_ASSERT_EQUAL_UINT(round + 1, rig.n_done);
	}
	expect_done(3, GANTRY_S_OK);
	rig_close();
}

static void test_session_resumes_after_failed_attempts(void)
{
	write_block(0, 1);
	rig.rh.open_rc = -ENOMEM;
	lose();
	rig_turn(20);
	TEST_ASSERT_EQUAL_UINT(0, rig.n_done);
	rig.rh.open_rc = 0;
	rig_turn(20);
	TEST_ASSERT_GREATER_THAN_UINT(2, rig.rh.attr.epoch);
	expect_done(1, GANTRY_S_OK);
	rig_close();
}

/* Attempts must become rare, because both ends log each one. */
static void test_failed_attempts_become_less_frequent(void)
{
	rig_end(0);
	begin(DEPTH, 100000 * MS);
	rig.rh.open_rc = -EMFILE;
	lose();
	rig_turn(6000);
	rig.rh.open_rc = 0;
	rig_turn(110);
	TEST_ASSERT_EQUAL_INT(0, queue->paused);
	TEST_ASSERT_GREATER_THAN_UINT(50, rig.rh.attr.epoch);
	TEST_ASSERT_LESS_THAN_UINT(80, rig.rh.attr.epoch);
	/* the pauses do not delay the first attempt after the next loss */
	lose();
	rig_turn(3);
	TEST_ASSERT_EQUAL_INT(0, queue->paused);
	rig_close();
}

static void test_ios_fail_when_the_resume_time_expires(void)
{
	write_block(0, 1);
	write_block(1, 2);
	rig.rh.open_rc = -ENOMEM;
	lose();
	write_block(2, 3);
	rig_turn(120);
	expect_done(3, GANTRY_S_SESSION_LOST);
	TEST_ASSERT_EQUAL_UINT(1, rig.n_closed);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, rig.reason);
	TEST_ASSERT_NOT_NULL_MESSAGE(
		strstr(rig.text, "lost on purpose; not resumed within 1000 ms"), rig.text);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, gantry_engine_submit(queue, &queue->ios[7]));
	TEST_ASSERT_EQUAL_UINT32(3, queue->n_quarantined);
}

static void test_session_is_not_resumed_beyond_the_last_epoch(void)
{
	rig.session->epoch = GANTRY_EPOCH_MAX - 1;
	write_block(0, 1);
	lose();
	rig_turn(20);
	expect_done(1, GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT32(GANTRY_EPOCH_MAX, rig.rh.attr.epoch);
	write_block(1, 2);
	rig.rh.lose_rc = -ECONNRESET;
	rig_turn(3);
	TEST_ASSERT_EQUAL_UINT32(GANTRY_EPOCH_MAX, rig.rh.attr.epoch);
	TEST_ASSERT_EQUAL_UINT(2, rig.n_done);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_SESSION_LOST, rig.done[1].status);
	TEST_ASSERT_EQUAL_UINT(1, rig.n_closed);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, rig.reason);
	TEST_ASSERT_EQUAL_STRING(
		"lost on purpose; not resumed: no epoch is left (limit epoch=4294901759): open the volume again",
		rig.text);
}

static void test_new_size_of_the_same_volume_is_reported_at_the_resume(void)
{
	memset(rig.session->info.uuid, 7, sizeof(rig.session->info.uuid));
	memset(rig.rh.volume.uuid, 7, sizeof(rig.rh.volume.uuid));
	write_block(0, 1);
	rig.rh.volume.size = 2 * RIG_SIZE;
	lose();
	rig_turn(20);
	expect_done(1, GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(1, rig.n_resized);
	TEST_ASSERT_EQUAL_UINT64(2 * RIG_SIZE, rig.size);
	TEST_ASSERT_EQUAL_UINT64(2 * RIG_SIZE, rig.session->info.size);
	TEST_ASSERT_EQUAL_UINT64(2 * RIG_SIZE, rig.rh.chain_size); /* stages see it */
	lose();
	rig_turn(20);
	TEST_ASSERT_EQUAL_UINT(1, rig.n_resized);
	rig_close();
}

static void test_new_size_with_another_verifier_is_stale(void)
{
	memset(rig.session->info.uuid, 7, sizeof(rig.session->info.uuid));
	memset(rig.rh.volume.uuid, 7, sizeof(rig.rh.volume.uuid));
	write_block(0, 1);
	rig.rh.volume.size = 2 * RIG_SIZE;
	rig.rh.volume.verifier++;
	lose();
	rig_turn(20);
	expect_done(1, GANTRY_S_STALE);
	TEST_ASSERT_EQUAL_INT(-ESTALE, rig.reason);
	TEST_ASSERT_EQUAL_UINT(0, rig.n_resized);
}

/* Without a UUID, a volume of another size is another volume. */
static void test_volume_of_another_size_is_stale(void)
{
	write_block(0, 1);
	rig.rh.volume.size /= 2;
	lose();
	rig_turn(20);
	expect_done(1, GANTRY_S_STALE);
	TEST_ASSERT_EQUAL_INT(-ESTALE, rig.reason);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(rig.text, "another size"), rig.text);
	TEST_ASSERT_EQUAL_INT(-ESTALE,
			      gantry_engine_submit(queue, rig_filled(queue, GANTRY_OP_READ, 0)));
}

static void turn_until_path(uint32_t path)
{
	for (unsigned i = 0; i < 20 && rig.session->path != path; i++)
		rig_turn(1);
	TEST_ASSERT_EQUAL_UINT32(path, rig.session->path);
}

static void test_other_path_is_tried_when_one_leads_to_another_volume(void)
{
	rig.session->n_paths = 2;
	for (unsigned i = 0; i < 2; i++) {
		const uint32_t path = rig.session->path;

		write_block(i, 1);
		rig.rh.volume.size /= 2;
		lose();
		turn_until_path(!path);
		turn_until_path(path);
		rig.rh.volume.size *= 2;
		rig_turn(20);
		expect_done(i + 1, GANTRY_S_OK);
	}
	rig_close();
}

static void test_session_ends_when_each_path_leads_to_another_volume(void)
{
	rig.session->n_paths = 3;
	write_block(0, 1);
	rig.rh.volume.size /= 2;
	lose();
	turn_until_path(1);
	turn_until_path(2);
	turn_until_path(0);
	rig_turn(20);
	expect_done(1, GANTRY_S_STALE);
	TEST_ASSERT_EQUAL_INT(-ESTALE, rig.reason);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(rig.text, "another size"), rig.text);
}

static void test_server_can_report_that_the_volume_is_stale(void)
{
	write_block(0, 1);
	lose();
	rig.rh.lose_rc = -ESTALE;
	rig_turn(20);
	expect_done(1, GANTRY_S_STALE);
	TEST_ASSERT_EQUAL_INT(-ESTALE, rig.reason);
}

static void flush(void)
{
	struct gantry_io *io = rig_filled(queue, GANTRY_OP_FLUSH, 0);

	io->length = 0;
	TEST_ASSERT_EQUAL_INT(0, gantry_engine_submit(queue, io));
}

static unsigned count_done(unsigned status)
{
	unsigned n = 0;

	for (unsigned i = 0; i < rig.n_done; i++)
		n += rig.done[i].status == status;
	return n;
}

static void resume_with_verifier(uint64_t verifier)
{
	rig.rh.volume.verifier = verifier;
	lose();
	rig_turn(20);
	TEST_ASSERT_EQUAL_INT(0, queue->paused);
}

/*
 * Acknowledged writes may be lost: the next flush of the queue fails once, and the engine submits
 * the IOs in flight again.
 */
static void test_the_next_flush_fails_when_the_verifier_has_changed(void)
{
	rig.rh.seen = NULL;
	write_block(0, 1);
	resume_with_verifier(8);
	expect_done(1, GANTRY_S_OK);
	flush();
	rig_turn(2);
	TEST_ASSERT_EQUAL_UINT(1, count_done(GANTRY_S_IO));
	flush();
	rig_turn(2);
	TEST_ASSERT_EQUAL_UINT(2, count_done(GANTRY_S_OK));
	resume_with_verifier(8);
	flush();
	rig_turn(2);
	TEST_ASSERT_EQUAL_UINT(3, count_done(GANTRY_S_OK));
}

/*
 * A program has a thread for each queue. The first flush of each queue must fail, also if a flush
 * of another queue has failed before: no thread knows the results of the other threads.
 */
static void test_the_next_flush_of_each_queue_fails(void)
{
	rig_end(0);
	rig_begin(2, DEPTH);
	rig.rh.resume_ns = 1000 * MS;
	rig.rh.turn_ns = 10 * MS;
	rig.rh.quiet = 1;
	rig.rh.volume.verifier = 7;
	queue = rig_start(2);
	resume_with_verifier(8);
	for (uint32_t i = 0; i < 2; i++) {
		queue = gn_engine_ops.queue(rig.session, i);
		flush();
		rig_turn(2);
		TEST_ASSERT_EQUAL_UINT(i + 1, count_done(GANTRY_S_IO));
		flush();
		rig_turn(2);
		TEST_ASSERT_EQUAL_UINT(i + 1, count_done(GANTRY_S_OK));
	}
}

static void test_next_flush_fails_even_if_nothing_was_written(void)
{
	rig.rh.seen = NULL;
	flush();
	rig_turn(2);
	TEST_ASSERT_EQUAL_UINT(1, count_done(GANTRY_S_OK));
	resume_with_verifier(8);
	flush();
	rig_turn(2);
	TEST_ASSERT_EQUAL_UINT(1, count_done(GANTRY_S_IO));
}

/* The flushes that were in flight fail; a later flush does not fail again. */
static void test_flushes_in_flight_fail_instead_of_the_next(void)
{
	rig.rh.seen = NULL;
	flush();
	write_block(0, 1);
	flush();
	resume_with_verifier(9);
	TEST_ASSERT_EQUAL_UINT(3, rig.n_done);
	TEST_ASSERT_EQUAL_UINT(2, count_done(GANTRY_S_IO));
	TEST_ASSERT_EQUAL_UINT(1, count_done(GANTRY_S_OK));
	flush();
	rig_turn(2);
	TEST_ASSERT_EQUAL_UINT(2, count_done(GANTRY_S_OK));
}

/* The session is lost again before a flush has reported the change of the verifier. */
static void test_flush_that_waits_for_a_second_resume_fails(void)
{
	rig.rh.seen = NULL;
	resume_with_verifier(8);
	lose();
	flush();
	rig_turn(20);
	TEST_ASSERT_EQUAL_INT(0, queue->paused);
	TEST_ASSERT_EQUAL_UINT(1, count_done(GANTRY_S_IO));
	flush();
	rig_turn(2);
	TEST_ASSERT_EQUAL_UINT(1, count_done(GANTRY_S_OK));
}

static void test_session_can_be_closed_while_it_is_paused(void)
{
	write_block(0, 1);
	rig.rh.open_rc = -ENOMEM;
	lose();
	rig_turn(3);
	rig_close();
	expect_done(1, GANTRY_S_SESSION_LOST);
}

/* The program closes between two attempts, during an attempt, or after the session resumed. */
static void test_owner_can_cancel_the_resume_at_each_step(void)
{
	int n_lost = 0, n_up = 0;

	for (unsigned turns = 0; turns < 10; turns++) {
		rig_end(0);
		begin(DEPTH, 1000 * MS);
		write_block(0, 1);
		rig.rh.quiet = 1;
		lose();
		rig_turn(turns);
		gn_engine_ops.give_up(rig.session);
		gn_engine_ops.give_up(rig.session);
		rig_turn(10);
		TEST_ASSERT_EQUAL_UINT(1, rig.n_done);
		if (rig.n_closed) {
			n_lost++;
			expect_done(1, GANTRY_S_SESSION_LOST);
			TEST_ASSERT_EQUAL_INT(0, rig.reason);
			TEST_ASSERT_EQUAL_STRING("lost on purpose; given up", rig.text);
		} else {
			n_up++;
			expect_done(1, GANTRY_S_OK);
			rig.rh.lose_rc = -ECONNRESET;
			rig_turn(3);
			TEST_ASSERT_EQUAL_INT(-ECONNRESET, rig.reason);
		}
		TEST_ASSERT_EQUAL_UINT(1, rig.n_closed);
	}
	TEST_ASSERT_GREATER_THAN_INT(2, n_lost);
	TEST_ASSERT_GREATER_THAN_INT(0, n_up);
}

static void test_io_rejected_with_enotconn_waits_for_the_resumed_session(void)
{
	RIG_FAULT(.kind = FAKE_REFUSED, .opcode = GANTRY_OP_WRITE, .nth = 1, .rc = -ENOTCONN);
	write_block(0, 1);
	TEST_ASSERT_EQUAL_UINT32(1, queue->n_waiting);
	lose();
	rig_turn(10);
	expect_done(1, GANTRY_S_OK);
	TEST_ASSERT_EQUAL_HEX8(1, rig.rh.data[0]);
	rig_close();
}

static void test_session_lost_status_of_a_stage_starts_a_resume(void)
{
	RIG_FAULT(.kind = FAKE_STATUS, .opcode = GANTRY_OP_WRITE, .nth = 1,
		  .status = GANTRY_S_SESSION_LOST);
	write_block(0, 1);
	rig_turn(30);
	expect_done(1, GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT32(2, rig.rh.attr.epoch);
	rig_close();
}

static void test_repeated_session_lost_status_of_a_stage_fails_the_io(void)
{
	RIG_FAULT(.kind = FAKE_STATUS, .opcode = GANTRY_OP_WRITE, .nth = 1, .more = 1000,
		  .status = GANTRY_S_SESSION_LOST);
	write_block(0, 1);
	for (unsigned i = 0; i < 10000 && !rig.n_done; i++) {
		rig_turn(1);
		n_seen = 0;
	}
	expect_done(1, GANTRY_S_SESSION_LOST);
	TEST_ASSERT_LESS_THAN_UINT(1000, rig.rh.attr.epoch);
	rig_close();
}

/*
 * The number of comparisons of two slots: a measure of work that does not depend on the speed of
 * the machine. The linker option --wrap replaces the function.
 */
static uint64_t n_compared;
static int (*compare)(const void *a, const void *b, void *arg);

void __real_qsort_r(void *base, size_t n, size_t size,
		    int (*order)(const void *a, const void *b, void *arg), void *arg);
void __wrap_qsort_r(void *base, size_t n, size_t size,
		    int (*order)(const void *a, const void *b, void *arg), void *arg);

static int count_and_compare(const void *a, const void *b, void *arg)
{
	n_compared++;
	return compare(a, b, arg);
}

void __wrap_qsort_r(void *base, size_t n, size_t size,
		    int (*order)(const void *a, const void *b, void *arg), void *arg)
{
	compare = order;
	__real_qsort_r(base, n, size, count_and_compare, arg);
}

static void seen_by_slot(struct fake_role_host *fake, const struct gantry_io *io)
{
	(void)fake;
	TEST_ASSERT_EQUAL_UINT(n_seen++, io->slot);
}

static void test_a_deep_queue_is_put_in_order_with_little_work(void)
{
	const uint32_t depth = 30000;

	rig_end(0);
	begin(depth, 1000 * MS);
	for (uint32_t i = 0; i < depth; i++)
		TEST_ASSERT_EQUAL_UINT(i, rig_submit(queue, GANTRY_OP_FLUSH, 0)->slot);
	rig.rh.newest_first = 1;
	n_compared = 0;
	lose();
	rig.rh.seen = seen_by_slot;
	rig_turn(10);
	TEST_ASSERT_EQUAL_UINT(depth, n_seen);
	TEST_ASSERT_EQUAL_UINT(depth, rig.n_done);
	TEST_ASSERT_GREATER_THAN_UINT64(0, n_compared);
	TEST_ASSERT_LESS_THAN_UINT64(16ull * depth, n_compared);
	rig_close();
}

/* -- further regions -- */

static char guest[3][BLOCK] __attribute__((aligned(4096)));
static struct gantry_region guest_regions[3];

static void begin_with_regions(void)
{
	rig_close();
	rig_end(0);
	rig_begin(1, DEPTH);
	rig.rh.resume_ns = 1000 * MS;
	rig.rh.turn_ns = 10 * MS;
	rig.rh.quiet = 1;
	rig.regions = 3;
	queue = rig_start(1);
	for (uint32_t i = 0; i < 3; i++) {
		guest_regions[i] = (struct gantry_region){
			.addr = guest[i], .length = sizeof(guest[i]), .fd = -1};
		TEST_ASSERT_EQUAL_INT(
			0, gn_engine_ops.region_export(rig.session, &guest_regions[i], 2 + i));
	}
	rig_turn(3);
	TEST_ASSERT_EQUAL_UINT(3, rig.n_exported);
}

/* An IO that is submitted again names a further region, so this must be exported before. */
static void test_further_regions_are_exported_again_before_the_session_starts(void)
{
	struct gantry_io *io;

	begin_with_regions();
	memset(guest[2], 0x77, BLOCK);
	io = rig_filled(queue, GANTRY_OP_WRITE, 5 * BLOCK);
	io->region = 4;
	io->region_offset = 0;
	io->data = guest[2];
	TEST_ASSERT_EQUAL_INT(0, gantry_engine_submit(queue, io));
	lose();
	rig_turn(12);
	TEST_ASSERT_EQUAL_UINT(3, rig.rh.n_exported);
	TEST_ASSERT_EQUAL_UINT(3, rig.n_exported); /* no event for the second export */
	expect_done(1, GANTRY_S_OK);
	TEST_ASSERT_EQUAL_HEX8(0x77, rig.rh.data[5 * BLOCK]);
	rig_close();
}

static void test_requests_during_a_resume_are_kept(void)
{
	begin_with_regions();
	rig.rh.quiet = 0; /* only the drain of the lost session ends all accesses */
	TEST_ASSERT_EQUAL_INT(0, gn_engine_ops.region_unexport(rig.session, 2)); /* not answered */
	lose();
	TEST_ASSERT_EQUAL_INT(0, gn_engine_ops.region_unexport(rig.session, 3));
	TEST_ASSERT_EQUAL_UINT(0, rig.n_unexported);
	for (unsigned i = 0; i < 100 && rig.n_unexported < 2; i++)
		rig_turn(1);
	TEST_ASSERT_EQUAL_UINT(2, rig.n_unexported); /* the server has drained the lost session */
	TEST_ASSERT_EQUAL_INT(0, gn_engine_ops.region_export(rig.session, &guest_regions[0], 2));
	rig_turn(8);
	TEST_ASSERT_EQUAL_UINT(4, rig.n_exported);
	TEST_ASSERT_EQUAL_UINT32(2, rig.last_handle);
	TEST_ASSERT_EQUAL_UINT(2, rig.rh.n_exported); /* handles 4 and 2 */
	TEST_ASSERT_NULL(rig.rh.regions[3]);
	rig_close();
}

/* The end of the connection has revoked the regions: `unexported` does not wait for the resume. */
static void test_revoked_region_is_unexported_at_the_loss(void)
{
	begin_with_regions();
	TEST_ASSERT_EQUAL_INT(0, gn_engine_ops.region_unexport(rig.session, 2)); /* not answered */
	lose();
	TEST_ASSERT_EQUAL_UINT(1, rig.n_unexported);
	TEST_ASSERT_EQUAL_UINT32(2, rig.last_handle);
	TEST_ASSERT_EQUAL_INT(0, gn_engine_ops.region_unexport(rig.session, 3));
	rig_turn(1);
	TEST_ASSERT_EQUAL_UINT(2, rig.n_unexported);
	TEST_ASSERT_EQUAL_UINT(1, queue->paused);
	rig_turn(20);
	TEST_ASSERT_EQUAL_UINT(2, rig.n_unexported);
	TEST_ASSERT_EQUAL_UINT(0, queue->paused);
	TEST_ASSERT_NULL(rig.rh.regions[3]);
	rig_close();
}

/* Make turns until the client of the resumed session has requested the first export. */
static void turn_until_ready(void)
{
	for (unsigned i = 0; i < 100 && !(rig.rh.attr.epoch == 2 && rig.rh.regions[1]); i++)
		rig_turn(1);
	TEST_ASSERT_EQUAL_UINT32(2, rig.rh.attr.epoch);
	TEST_ASSERT_NOT_NULL(rig.rh.regions[1]);
}

/* The client that resumes never exports a region that the owner does not want any more. */
static void test_region_can_be_unexported_before_it_is_exported_again(void)
{
	begin_with_regions();
	lose();
	turn_until_ready();
	TEST_ASSERT_EQUAL_INT(0, gn_engine_ops.region_unexport(rig.session, 3));
	rig_turn(12);
	TEST_ASSERT_EQUAL_UINT(1, rig.n_unexported);
	TEST_ASSERT_EQUAL_UINT32(3, rig.last_handle);
	TEST_ASSERT_EQUAL_UINT(2, rig.rh.n_exported); /* handles 2 and 4 */
	TEST_ASSERT_EQUAL_UINT32(2, rig.rh.attr.epoch);
	TEST_ASSERT_EQUAL_UINT(0, queue->paused);
	TEST_ASSERT_EQUAL_UINT(0, rig.n_closed);
	rig_close();
}

static void test_region_can_be_unexported_after_it_is_exported_again(void)
{
	begin_with_regions();
	lose();
	turn_until_ready();
	for (unsigned i = 0; i < 100 && rig.rh.n_exported == 0; i++)
		rig_turn(1);
	TEST_ASSERT_EQUAL_INT(0, gn_engine_ops.region_unexport(rig.session, 2));
	TEST_ASSERT_EQUAL_UINT(0, rig.n_unexported);
	rig_turn(12);
	TEST_ASSERT_EQUAL_UINT(1, rig.n_unexported);
	TEST_ASSERT_EQUAL_UINT32(2, rig.last_handle);
	TEST_ASSERT_EQUAL_UINT(3, rig.rh.n_exported);
	TEST_ASSERT_NULL(rig.rh.regions[2]);
	TEST_ASSERT_EQUAL_UINT32(2, rig.rh.attr.epoch);
	TEST_ASSERT_EQUAL_UINT(0, queue->paused);
	rig_close();
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_further_regions_are_exported_again_before_the_session_starts);
	RUN_TEST(test_requests_during_a_resume_are_kept);
	RUN_TEST(test_revoked_region_is_unexported_at_the_loss);
	RUN_TEST(test_region_can_be_unexported_before_it_is_exported_again);
	RUN_TEST(test_region_can_be_unexported_after_it_is_exported_again);
	RUN_TEST(test_ios_in_flight_are_submitted_again_in_order);
	RUN_TEST(test_the_secret_of_the_session_is_presented);
	RUN_TEST(test_io_that_is_submitted_again_never_completes_as_canceled);
	RUN_TEST(test_session_that_is_lost_repeatedly_resumes);
	RUN_TEST(test_session_resumes_after_failed_attempts);
	RUN_TEST(test_failed_attempts_become_less_frequent);
	RUN_TEST(test_ios_fail_when_the_resume_time_expires);
	RUN_TEST(test_session_is_not_resumed_beyond_the_last_epoch);
	RUN_TEST(test_new_size_of_the_same_volume_is_reported_at_the_resume);
	RUN_TEST(test_new_size_with_another_verifier_is_stale);
	RUN_TEST(test_volume_of_another_size_is_stale);
	RUN_TEST(test_other_path_is_tried_when_one_leads_to_another_volume);
	RUN_TEST(test_session_ends_when_each_path_leads_to_another_volume);
	RUN_TEST(test_server_can_report_that_the_volume_is_stale);
	RUN_TEST(test_the_next_flush_fails_when_the_verifier_has_changed);
	RUN_TEST(test_the_next_flush_of_each_queue_fails);
	RUN_TEST(test_next_flush_fails_even_if_nothing_was_written);
	RUN_TEST(test_flushes_in_flight_fail_instead_of_the_next);
	RUN_TEST(test_flush_that_waits_for_a_second_resume_fails);
	RUN_TEST(test_session_can_be_closed_while_it_is_paused);
	RUN_TEST(test_owner_can_cancel_the_resume_at_each_step);
	RUN_TEST(test_io_rejected_with_enotconn_waits_for_the_resumed_session);
	RUN_TEST(test_session_lost_status_of_a_stage_starts_a_resume);
	RUN_TEST(test_repeated_session_lost_status_of_a_stage_fails_the_io);
	RUN_TEST(test_a_deep_queue_is_put_in_order_with_little_work);
	return UNITY_END();
}
