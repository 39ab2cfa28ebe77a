/* SPDX-License-Identifier: BSD-3-Clause */
/* The core allocates all pages of a region before its export, some in each turn of the loop. */
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gantry/memfd.h"
#include "unit/session/client_rig.h"

#define LARGE (80ull << 20)
#define AT_ONCE (32ull << 20)

static uint64_t bytes_there(void)
{
	struct stat st;

	TEST_ASSERT_EQUAL_INT(0, fstat(region.fd, &st));
	return (uint64_t)st.st_blocks * 512;
}

static const struct gantry_region small_region = {.addr = fc.ft.memory, .length = 4096, .fd = -1};

/*
 * known_by_fd 0: the region has an fd and is mapped; 1, 2: it has only an fd; 2: the peer cannot
 * write to it.
 */
static void have_large_region(int known_by_fd)
{
	region = (struct gantry_region){.length = LARGE,
					.fd_offset = 512,
					.rights = GANTRY_REMOTE_READ |
						  (known_by_fd > 1 ? 0 : GANTRY_REMOTE_WRITE)};
	region.fd = gantry_memfd_create("test", LARGE + 4096, 0);
	TEST_ASSERT_TRUE(region.fd >= 0);
	if (known_by_fd)
		return;
	region.addr = mmap(NULL, LARGE + 4096, PROT_READ | PROT_WRITE, MAP_SHARED, region.fd, 0);
	TEST_ASSERT_NOT_EQUAL(MAP_FAILED, region.addr);
}

static void drop_large_region(void)
{
	close(region.fd);
	if (region.addr)
		munmap(region.addr, LARGE + 4096);
	region = small_region;
}

static void expect_pages_bit_by_bit(void)
{
	uint64_t last = bytes_there();

	TEST_ASSERT_LESS_OR_EQUAL_UINT64(AT_ONCE, last);
	for (int i = 0; i < 100 && conn->n_exports == 0; i++) {
		uint64_t now;

		TEST_ASSERT_EQUAL_INT(-EBUSY,
				      fc.rh->client_export(client, &region, GANTRY_REMOTE_READ, 2));
		TEST_ASSERT_EQUAL_INT(-EBUSY, fc.rh->client_start(client));
		gn_loop_turn(fc.loop, 0);
		now = bytes_there();
		TEST_ASSERT_LESS_OR_EQUAL_UINT64(AT_ONCE, now - last);
		last = now;
	}
	TEST_ASSERT_EQUAL_UINT(1, conn->n_exports);
	TEST_ASSERT_GREATER_OR_EQUAL_UINT64(LARGE, last);
}

/* Allocating all pages in one turn would take seconds, without heartbeats. */
static void pages_are_allocated_before_the_export(void)
{
	for (int i = 0; i < 6; i++) {
		const int known_by_fd = i % 3;

		reach(READY);
		if (i >= 3)
			fc.ft.caps |= GANTRY_CAP_PINS;
		have_large_region(known_by_fd);
		TEST_ASSERT_EQUAL_INT(0,
				      fc.rh->client_export(client, &region, GANTRY_REMOTE_READ, 1));
		expect_pages_bit_by_bit();
		answer(GN_FRAME_EXPORT);
		TEST_ASSERT_EQUAL_UINT(1, n_exported);
		fc.rh->client_close(client);
		answer(GN_FRAME_BYE);
		closed(0);
		drop_large_region();
		again();
	}
}

/*
 * The core allocates no pages for a region that has all its pages, or that belongs to another
 * process. It also allocates none for a region without a file descriptor, because no other process
 * can use such a region.
 */
static void pages_are_allocated_only_if_needed(void)
{
	reach(READY);
	have_large_region(1);
	TEST_ASSERT_EQUAL_INT(0, fallocate(region.fd, 0, 0, LARGE + 4096));
	TEST_ASSERT_EQUAL_INT(0, fc.rh->client_export(client, &region, GANTRY_REMOTE_READ, 1));
	TEST_ASSERT_EQUAL_UINT(1, conn->n_exports);
	answer(GN_FRAME_EXPORT);
	drop_large_region();
	again();
	reach(READY);
	have_large_region(1);
	region.domain = 4711; /* an import whose owner has freed the pages */
	TEST_ASSERT_EQUAL_INT(0, fc.rh->client_export(client, &region, GANTRY_REMOTE_READ, 1));
	TEST_ASSERT_EQUAL_UINT(1, conn->n_exports);
	TEST_ASSERT_EQUAL_UINT64(0, bytes_there());
	answer(GN_FRAME_EXPORT);
	drop_large_region();
	again();
	reach(READY);
	have_large_region(0);
	close(region.fd);
	region.fd = -1;
	TEST_ASSERT_EQUAL_INT(0, fc.rh->client_export(client, &region, GANTRY_REMOTE_READ, 1));
	TEST_ASSERT_EQUAL_UINT(1, conn->n_exports);
	answer(GN_FRAME_EXPORT);
	munmap(region.addr, LARGE + 4096);
	region = small_region;
}

/* The memfd is too small for the region, so the kernel cannot allocate all pages. */
static void a_region_whose_pages_cannot_be_allocated_is_not_exported(void)
{
	for (int first = 0; first < 2; first++) {
		reach(READY);
		region = (struct gantry_region){.length = LARGE,
						.rights = GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE};
		region.fd = gantry_memfd_create("test", first ? 4096 : LARGE - 4096, 0);
		TEST_ASSERT_EQUAL_INT(0, gantry_memfd_seal(region.fd, 0));
		TEST_ASSERT_EQUAL_INT(first ? -EPERM : 0,
				      fc.rh->client_export(client, &region, GANTRY_REMOTE_READ, 1));
		if (first)
			fc.rh->client_abort(client);
		for (int i = 0; i < 100 && n_closed == 0; i++)
			gn_loop_turn(fc.loop, 0);
		closed(first ? -ECANCELED : -EPERM);
		TEST_ASSERT_EQUAL_UINT(0, conn->n_exports);
		close(region.fd);
		region = small_region;
		again();
	}
}

static void region_beyond_the_export_limit_gets_no_pages(void)
{
	reach(READY);
	fc.ft.caps |= GANTRY_CAP_PINS;
	TEST_ASSERT_EQUAL_UINT64(UINT64_MAX, fc.rh->client_export_limit(client));
	fc.ft.room = LARGE - 1;
	TEST_ASSERT_EQUAL_UINT64(LARGE - 1, fc.rh->client_export_limit(client));
	have_large_region(0);
	fake_fail_op(&fc.ft, FAKE_EXPORT, 1, -E2BIG);
	TEST_ASSERT_EQUAL_INT(-E2BIG, fc.rh->client_export(client, &region, GANTRY_REMOTE_READ, 1));
	TEST_ASSERT_EQUAL_UINT64(0, bytes_there());
	drop_large_region();
}

/* step 0: the role closes the client, 1: aborts it, 2: the peer is lost, 3: the export fails. */
static void session_can_end_while_pages_are_allocated(void)
{
	for (int step = 0; step < 4; step++) {
		static const int reasons[] = {0, -ECANCELED, -ENOTCONN, -ENOMEM};

		reach(READY);
		fc.ft.caps |= GANTRY_CAP_PINS;
		have_large_region(0);
		fake_fail_op(&fc.ft, FAKE_EXPORT, 1, -ENOMEM);
		TEST_ASSERT_EQUAL_INT(0,
				      fc.rh->client_export(client, &region, GANTRY_REMOTE_READ, 1));
		if (step == 0) {
			fc.rh->client_close(client);
			fake_core_turn(&fc);
			answer(GN_FRAME_BYE);
		} else if (step == 1) {
			fc.rh->client_abort(client);
		} else if (step == 2) {
			fake_close(conn, -ENOTCONN);
		}
		closed(reasons[step]);
		TEST_ASSERT_EQUAL_UINT(0, conn->n_exports);
		drop_large_region();
		again();
	}
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(pages_are_allocated_before_the_export);
	RUN_TEST(pages_are_allocated_only_if_needed);
	RUN_TEST(a_region_whose_pages_cannot_be_allocated_is_not_exported);
	RUN_TEST(region_beyond_the_export_limit_gets_no_pages);
	RUN_TEST(session_can_end_while_pages_are_allocated);
	return UNITY_END();
}
