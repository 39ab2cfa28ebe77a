/* SPDX-License-Identifier: BSD-3-Clause */
/* Extents of the rbd backend: rounding, limits, errors, deadlines and fences. */
#include <errno.h>
#include <poll.h>

#include "rbd.h"

#define MIB (1024u * KIB)
#define HOLE (GANTRY_EXTENT_HOLE | GANTRY_EXTENT_ZERO)

static struct gantry_extents e;

static void extents_are(uint32_t length, uint32_t block, unsigned n, const uint32_t want[][2])
{
	TEST_ASSERT_TRUE(gantry_extents_are_valid(&e, length, block));
	TEST_ASSERT_EQUAL_UINT(n, e.count);
	for (unsigned i = 0; i < n; i++) {
		TEST_ASSERT_EQUAL_UINT(want[i][0], e.extent[i].length);
		TEST_ASSERT_EQUAL_UINT(want[i][1], e.extent[i].flags);
	}
}

#define EXTENTS_ARE(length, block, ...) \
	do { \
		static const uint32_t want_[][2] = {__VA_ARGS__}; \
		extents_are(length, block, sizeof want_ / sizeof *want_, want_); \
	} while (0)

static void data_is_rounded_to_blocks(void)
{
	memset(out, 0, 64 * KIB);
	out[1000] = 1;           /* in block 0 */
	out[8 * KIB - 1] = 1;    /* in block 1 */
	out[16 * KIB] = 1;       /* in block 4 */
	out[24 * KIB - 200] = 1; /* blocks 5 and 6 */
	out[24 * KIB + 200] = 1;
	OPEN("block=4KiB");
	OK(GANTRY_OP_EXTENTS, 0, 0, FAKE_RBD_BYTES, &e);
	EXTENTS_ARE(FAKE_RBD_BYTES, 4096, {FAKE_RBD_BYTES, HOLE});
	OK(GANTRY_OP_WRITE, 0, MIB, 64 * KIB, out);
	for (int reverse = 0; reverse < 2; reverse++) {
		fake_rbd_reverse_diff(reverse);
		OK(GANTRY_OP_EXTENTS, 0, MIB - 4 * KIB, 36 * KIB, &e);
		EXTENTS_ARE(36 * KIB, 4096, {4 * KIB, HOLE}, {8 * KIB, 0}, {8 * KIB, HOLE},
			    {12 * KIB, 0}, {4 * KIB, HOLE});
		/* the range begins and ends in the middle of data */
		OK(GANTRY_OP_EXTENTS, 0, MIB + 4 * KIB, 20 * KIB, &e);
		EXTENTS_ARE(20 * KIB, 4096, {4 * KIB, 0}, {8 * KIB, HOLE}, {8 * KIB, 0});
	}
	OK(GANTRY_OP_DISCARD, 0, MIB, 64 * KIB, NULL);
	OK(GANTRY_OP_EXTENTS, 0, 0, FAKE_RBD_BYTES, &e);
	EXTENTS_ARE(FAKE_RBD_BYTES, 4096, {FAKE_RBD_BYTES, HOLE});
}

static void extents_end_when_they_are_many(void)
{
	OPEN("block=512");
	for (unsigned i = 0; i < 600; i++)
		OK(GANTRY_OP_WRITE, 0, i * KIB, 512, out);
	OK(GANTRY_OP_EXTENTS, 0, 0, MIB, &e);
	TEST_ASSERT_TRUE(gantry_extents_are_valid(&e, MIB, 512));
	TEST_ASSERT_EQUAL_UINT(GANTRY_EXTENTS_MAX, e.count);
	TEST_ASSERT_EQUAL_UINT(GANTRY_EXTENTS_MAX * 512, e.bytes);
}

static void a_diff_has_a_limit(void)
{
	fake_rbd_resize(4096ull * MIB);
	OPEN("block=512");
	OK(GANTRY_OP_EXTENTS, 0, 0, 3072 * MIB, &e);
	EXTENTS_ARE(3072 * MIB, 512, {128 * MIB, HOLE});
	TEST_ASSERT_EQUAL_UINT64(128 * MIB, fake_rbd_longest_diff());
	fake_chain_fini(&chain);
	fake_chain_init(&chain, &host);
	OPEN("block=64KiB");
	OK(GANTRY_OP_EXTENTS, 0, 1024 * MIB, 3072 * MIB, &e);
	EXTENTS_ARE(3072 * MIB, 65536, {1024 * MIB, HOLE});
	TEST_ASSERT_EQUAL_UINT64(1024 * MIB, fake_rbd_longest_diff());
}

static void a_snapshot_has_extents(void)
{
	fake_rbd_owner("client.4242");
	OPEN("snapshot=old");
	OK(GANTRY_OP_EXTENTS, 0, 0, FAKE_RBD_BYTES, &e);
	EXTENTS_ARE(FAKE_RBD_BYTES, 4096, {FAKE_RBD_BYTES, HOLE});
}

/* Reads beyond the end fail, so a copy by extents must not skip that part. */
static void what_an_image_has_lost_is_data(void)
{
	OPEN("block=4KiB");
	fake_rbd_resize(MIB + 512);
	OK(GANTRY_OP_EXTENTS, 0, MIB - 8 * KIB, 64 * KIB, &e);
	EXTENTS_ARE(64 * KIB, 4096, {8 * KIB, HOLE}, {56 * KIB, 0});
	FAILS(GANTRY_S_RANGE, GANTRY_OP_EXTENTS, 0, 2 * MIB, 64 * KIB, &e);
}

static void an_image_with_a_cache_is_data(void)
{
	fake_rbd_setting("rbd_cache", "true");
	OPEN("cache=true");
	OK(GANTRY_OP_EXTENTS, 0, 0, FAKE_RBD_BYTES, &e);
	EXTENTS_ARE(FAKE_RBD_BYTES, 4096, {FAKE_RBD_BYTES, 0});
	TEST_ASSERT_EQUAL_UINT(0, fake_rbd_calls(FAKE_RBD_diff));
}

/* A diff changes nothing, so its errors do not replace the client. */
static void errors_have_a_status(void)
{
	static const int errors[] = {-EIO, -ETIMEDOUT, -ESHUTDOWN, -EROFS, -EAGAIN, -ECANCELED};

	OPEN("block=4KiB");
	for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++) {
		fake_rbd_fail(FAKE_RBD_diff, errors[i], 1);
		FAILS(GANTRY_S_IO, GANTRY_OP_EXTENTS, 0, 0, MIB, &e);
		OK(GANTRY_OP_EXTENTS, 0, 0, MIB, &e);
	}
	fake_rbd_fail(FAKE_RBD_size, -EIO, 1);
	FAILS(GANTRY_S_IO, GANTRY_OP_EXTENTS, 0, 0, MIB, &e);
	TEST_ASSERT_EQUAL_STRING("open", reported("state"));
	TEST_ASSERT_EQUAL_UINT(1, n_reported("timeout_ops"));
	TEST_ASSERT_EQUAL_UINT(sizeof errors / sizeof *errors + 1, n_reported("error_ops"));
}

static void held_diffs_become(unsigned n)
{
	for (unsigned i = 0; i < 20000 && fake_rbd_held_diffs() != n; i++)
		pause_briefly();
	TEST_ASSERT_EQUAL_UINT(n, fake_rbd_held_diffs());
}

/* Begin a request that the fake holds. */
static struct gantry_io *begin_held(void)
{
	struct gantry_io *io;

	fake_rbd_hold_diff(1);
	io = begin(GANTRY_OP_EXTENTS, 0, 0, MIB, &e);
	held_diffs_become(1);
	return io;
}

/* A lane goes on while a diff runs, sleeps, and wakes when the diff is done. */
static void a_diff_does_not_block_the_lane(void)
{
	struct pollfd fd = {.events = POLLIN};
	struct gantry_io *io;

	OPEN("block=4KiB");
	fd.fd = chain.backend_ops->fd(chain.backend_self);
	io = begin_held();
	OK(GANTRY_OP_WRITE, 0, 0, 4096, out);
	OK(GANTRY_OP_READ, 0, 0, 4096, in);
	TEST_ASSERT_EQUAL_MEMORY(out, in, 4096);
	TEST_ASSERT_TRUE(io->busy);
	TEST_ASSERT_EQUAL_INT(0, chain.backend_ops->arm(chain.backend_self));
	fake_rbd_hold_diff(0);
	TEST_ASSERT_EQUAL_INT(1, poll(&fd, 1, 10000));
	chain.backend_ops->disarm(chain.backend_self);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, end(io));
	EXTENTS_ARE(MIB, 4096, {4 * KIB, 0}, {MIB - 4 * KIB, HOLE});
}

static void requests_are_executed_in_turn(void)
{
	static struct gantry_extents results[FAKE_IOS - 1];
	struct gantry_io *first, *ios[FAKE_IOS - 1];

	OPEN("block=4KiB");
	first = begin_held();
	for (unsigned i = 0; i < FAKE_IOS - 1; i++)
		ios[i] = begin(GANTRY_OP_EXTENTS, 0, 0, (i + 1) * 4096, &results[i]);
	fake_rbd_hold_diff(0);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, end(first));
	for (unsigned i = 0; i < FAKE_IOS - 1; i++) {
		TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, end(ios[i]));
		TEST_ASSERT_EQUAL_UINT64((i + 1) * 4096, results[i].bytes);
	}
	TEST_ASSERT_EQUAL_UINT(FAKE_IOS, fake_rbd_calls(FAKE_RBD_diff));
}

/* A request that waits behind a slow diff fails if its deadline is near; it starts no diff. */
static void a_request_that_waited_too_long_fails(void)
{
	struct gantry_io *first, *late, *last;

	OPEN("block=4KiB");
	first = begin_held();
	late = fake_io(&chain, GANTRY_OP_EXTENTS, 0, MIB, &e);
	late->deadline_us = 80000;
	TEST_ASSERT_EQUAL_INT(0, fake_submit(late));
	last = begin(GANTRY_OP_EXTENTS, 0, 0, MIB, &e);
	fake_advance(&chain.lane, 70000000);
	fake_rbd_hold_diff(0);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, end(late));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, end(first));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, end(last));
	TEST_ASSERT_EQUAL_UINT(2, fake_rbd_calls(FAKE_RBD_diff));
	/* without a deadline: osd_op_timeout */
	first = begin_held();
	late = begin(GANTRY_OP_EXTENTS, 0, 0, MIB, &e);
	fake_advance(&chain.lane, TIMEOUT_NS);
	fake_rbd_hold_diff(0);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, end(late));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, end(first));
}

/*
 * The old client is closed only after its diff has returned, and the diff fails. The request behind
 * it, and a new one, wait for the new client.
 */
static void requests_wait_for_a_new_client(void)
{
	struct gantry_io *first, *second, *third;

	OPEN("block=4KiB");
	first = begin_held();
	second = begin(GANTRY_OP_EXTENTS, 0, 0, MIB, &e);
	fake_rbd_break(-ETIMEDOUT, 1);
	FAILS(GANTRY_S_IO, GANTRY_OP_WRITE, 0, 0, 4096, out);
	for (unsigned i = 0; i < 20000 && fake_rbd_calls(FAKE_RBD_osdmap) == 0; i++)
		pause_briefly();
	third = begin(GANTRY_OP_EXTENTS, 0, 0, MIB, in);
	for (unsigned i = 0; i < 1000; i++)
		fake_poll(&chain);
	TEST_ASSERT_EQUAL_STRING("fencing", reported("state"));
	TEST_ASSERT_EQUAL_UINT(1, fake_rbd_calls(FAKE_RBD_open));
	TEST_ASSERT_TRUE(first->busy && second->busy && third->busy);
	fake_rbd_hold_diff(0);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, end(first));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, end(second));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, end(third));
	TEST_ASSERT_EQUAL_UINT(1, n_reported("fences"));
	TEST_ASSERT_EQUAL_UINT(3, fake_rbd_calls(FAKE_RBD_diff));
}

static void a_lost_image_has_no_extents(void)
{
	struct gantry_io *first, *second;

	OPEN("block=4KiB");
	first = begin_held();
	second = begin(GANTRY_OP_EXTENTS, 0, 0, MIB, &e);
	fake_rbd_break(-ESHUTDOWN, 1);
	FAILS(GANTRY_S_IO, GANTRY_OP_WRITE, 0, 0, 4096, out);
	state_becomes("lost");
	fake_rbd_fail(FAKE_RBD_diff, -ESHUTDOWN, 1);
	fake_rbd_hold_diff(0);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, end(first));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, end(second));
	FAILS(GANTRY_S_IO, GANTRY_OP_EXTENTS, 0, 0, MIB, &e);
	TEST_ASSERT_EQUAL_UINT(1, fake_rbd_calls(FAKE_RBD_diff));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(data_is_rounded_to_blocks);
	RUN_TEST(extents_end_when_they_are_many);
	RUN_TEST(a_diff_has_a_limit);
	RUN_TEST(a_snapshot_has_extents);
	RUN_TEST(what_an_image_has_lost_is_data);
	RUN_TEST(an_image_with_a_cache_is_data);
	RUN_TEST(errors_have_a_status);
	RUN_TEST(a_diff_does_not_block_the_lane);
	RUN_TEST(requests_are_executed_in_turn);
	RUN_TEST(a_request_that_waited_too_long_fails);
	RUN_TEST(requests_wait_for_a_new_client);
	RUN_TEST(a_lost_image_has_no_extents);
	return UNITY_END();
}
