/* SPDX-License-Identifier: BSD-3-Clause */
/* hostile_pages.c - attackers that free pages of a region that the server has imported. */
#include <fcntl.h>
#include <unistd.h>

#include <gantry/memfd.h>

#include "conform/hostile.h"

#define FIXED (F_SEAL_SHRINK | F_SEAL_GROW)
#define BYTES 65536u
#define PAGE 4096u
#define FREED "pages of a region were freed"

static struct evil_memory memory;

static struct comch_region_up region_up(uint32_t number)
{
	return (struct comch_region_up){
		.ref = COMCH_REF(number, 1), .handle = number, .length = BYTES, .rights = 3};
}

static int import_as(const struct comch_region_up *up, uint32_t flags,
		     struct gantry_region **region_p)
{
	struct gantry_token token = {.handle = up->handle, .generation = up->ref};

	rig_settle();
	return rig.ops->import_region(evil.conn, &token, rig_map() | flags, region_p);
}

static int import(const struct comch_region_up *up, struct gantry_region **region_p)
{
	return import_as(up, GANTRY_IMPORT_KEEPS_PAGES, region_p);
}

/* Let the attacker export BYTES of memory, and the server import them. Returns the import. */
static struct gantry_region *imported(uint32_t number, const struct evil_memory *m)
{
	const struct comch_region_up up = region_up(number);
	struct gantry_region *region = NULL;

	evil_frame(COMCH_REGION, &up, sizeof(up), &m->fd, 1);
	TEST_ASSERT_EQUAL_INT(0, import(&up, &region));
	return region;
}

static void punch(const struct evil_memory *m, off_t at, off_t bytes)
{
	TEST_ASSERT_EQUAL_INT(
		0, fallocate(m->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, bytes));
}

/* Advance the clock of the server to its next check. Returns the ns until the check after that. */
static uint64_t next_check(void)
{
	const uint64_t at = rig.ops->wake_ns(rig.b.dev);

	TEST_ASSERT_TRUE(at != 0);
	rig.b.host.real_clock = 0;
	rig.b.host.now_ns = rig.b.wake_ns = at; /* the host reads wake_ns after each progress() */
	rig_settle();
	return rig.ops->wake_ns(rig.b.dev) - at;
}

/*
 * The next check makes the server end the connection, and the attacker reads the reason. Then this
 * test, as the code that imported the regions at the server, releases them.
 */
static void expect_the_end(struct gantry_region *region, const char *text,
			   struct gantry_region *another)
{
	struct comch_frame frame;

	rig.b.disconnect_on_close = 0;
	next_check();
	TEST_ASSERT_EQUAL_INT(1, rig.b.n_closed);
	evil_expect(COMCH_REFUSED, &frame, NULL);
	TEST_ASSERT_EQUAL_STRING(text, frame.refused.text);
	TEST_ASSERT_EQUAL_UINT(COMCH_REASON_PROTOCOL, frame.refused.reason);
	/*
	 * the server has replaced the mapping: a lane that writes to it does not touch memory of
	 * the attacker, where a page fault could block the lane
	 */
	if (region->addr) {
		*((volatile char *)region->addr + BYTES - 1) = 1;
		TEST_ASSERT_EQUAL_INT(0, ((volatile char *)memory.p)[BYTES - 1]);
	}
	rig.ops->release_region(evil.conn, region);
	rig.ops->release_region(evil.conn, another);
	rig_disconnect(&rig.b);
	evil_memory_close(&memory);
}

ATTACK(peer_that_frees_a_page, 1, FREED)
{
	struct gantry_region *region;

	evil_memory(&memory, BYTES, FIXED);
	region = imported(1, &memory);
	punch(&memory, 3 * PAGE, PAGE);
	expect_the_end(
		region,
		"protocol error: pages of a region were freed or replaced (region=1, blocks=120, expected=128)",
		NULL);
}

ATTACK(peer_that_frees_pages_of_another_region, 1, FREED)
{
	struct gantry_region *first, *region;
	struct evil_memory whole;

	evil_memory(&whole, BYTES, FIXED);
	first = imported(1, &whole);
	evil_memory(&memory, BYTES, FIXED);
	region = imported(63, &memory);
	punch(&memory, 0, BYTES);
	expect_the_end(
		region,
		"protocol error: pages of a region were freed or replaced (region=63, blocks=0, expected=128)",
		first);
	evil_memory_close(&whole);
}

/* After a revoke the server still checks the region, until the import of it is released. */
ATTACK(peer_that_frees_pages_of_a_revoked_region, 1, FREED)
{
	const struct comch_id id = {.id = COMCH_REF(1, 1)};
	struct gantry_region *region;

	evil_memory(&memory, BYTES, FIXED);
	region = imported(1, &memory);
	evil_frame(COMCH_REVOKE, &id, sizeof(id), NULL, 0);
	rig_until(rig.b.n_revoke, 1);
	punch(&memory, 0, PAGE);
	expect_the_end(
		region,
		"protocol error: pages of a region were freed or replaced (region=1, blocks=120, expected=128)",
		NULL);
}

/* The server checks at random intervals, and stops when the import of the region is released. */
ATTACK(peer_that_frees_nothing, 1, NULL)
{
	struct gantry_region *region;
	uint64_t last = 0;
	int differ = 0;

	evil_memory(&memory, BYTES, FIXED);
	region = imported(1, &memory);
	next_check();
	for (int i = 0; i < 8; i++) {
		const uint64_t ns = next_check();

		TEST_ASSERT_TRUE(ns >= 50000000 && ns < 150000000);
		differ |= last && ns != last;
		last = ns;
	}
	TEST_ASSERT_TRUE_MESSAGE(differ, "a peer knows when the next check is");
	TEST_ASSERT_EQUAL_INT(0, rig.b.n_closed);
	rig.ops->release_region(evil.conn, region);
	next_check();
	TEST_ASSERT_EQUAL_UINT64(0, rig.ops->wake_ns(rig.b.dev));
	evil_memory_close(&memory);
}

/*
 * The server does not check region 2, which it has not imported: only messages of the attacker use
 * it, so freed pages damage only the attacker.
 */
ATTACK(peer_that_frees_pages_of_a_region_for_messages, 1, NULL)
{
	const struct comch_region_up up = region_up(2);
	struct gantry_region *region;
	struct evil_memory whole;

	evil_memory(&whole, BYTES, FIXED);
	region = imported(1, &whole);
	evil_memory(&memory, BYTES, FIXED);
	evil_frame(COMCH_REGION, &up, sizeof(up), &memory.fd, 1);
	rig_settle();
	punch(&memory, 0, BYTES);
	next_check();
	next_check();
	TEST_ASSERT_EQUAL_INT(0, rig.b.n_closed);
	rig.ops->release_region(evil.conn, region);
	evil_memory_close(&whole);
	evil_memory_close(&memory);
}

/* With F_SEAL_FUTURE_WRITE no process can free pages: the server need not check this memory. */
ATTACK(peer_that_cannot_free_pages, 1, NULL)
{
	const uint64_t wake_ns = rig.ops->wake_ns(rig.b.dev);
	struct comch_region_up up = region_up(1);
	struct gantry_region *region = NULL;

	up.rights = GANTRY_REMOTE_READ;
	evil_memory(&memory, BYTES, FIXED | F_SEAL_FUTURE_WRITE);
	TEST_ASSERT_EQUAL_INT(
		-1, fallocate(memory.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE));
	TEST_ASSERT_EQUAL_INT(EPERM, errno);
	evil_frame(COMCH_REGION, &up, sizeof(up), &memory.fd, 1);
	TEST_ASSERT_EQUAL_INT(0, import(&up, &region));
	TEST_ASSERT_EQUAL_UINT64(wake_ns, rig.ops->wake_ns(rig.b.dev));
	rig.ops->release_region(evil.conn, region);
	evil_memory_close(&memory);
}

/*
 * Make memory whose first BYTES can be exported. flags FALLOC_FL_KEEP_SIZE: the file ends there,
 * and has as many pages behind its end. flags 0: the file is twice as long, and its second half is
 * a hole.
 */
static void double_memory(struct evil_memory *m, int flags)
{
	m->bytes = BYTES;
	m->fd = memfd_create("evil", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	TEST_ASSERT_TRUE(m->fd >= 0);
	TEST_ASSERT_EQUAL_INT(0, ftruncate(m->fd, flags ? BYTES : 2 * BYTES));
	TEST_ASSERT_EQUAL_INT(0, fallocate(m->fd, 0, 0, BYTES));
	if (flags)
		TEST_ASSERT_EQUAL_INT(0, fallocate(m->fd, flags, BYTES, BYTES));
	m->p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
	TEST_ASSERT_TRUE(m->p != MAP_FAILED);
	TEST_ASSERT_EQUAL_INT(0, fcntl(m->fd, F_ADD_SEALS, FIXED));
}

/*
 * The server compares the number of blocks of the file. The seals prevent the peer from adding
 * pages behind the end, which would hide freed pages.
 */
ATTACK(peer_that_adds_pages_behind_the_end, 1, FREED)
{
	struct gantry_region *region;

	evil_memory(&memory, BYTES, FIXED);
	region = imported(1, &memory);
	TEST_ASSERT_EQUAL_INT(-1, fallocate(memory.fd, FALLOC_FL_KEEP_SIZE, BYTES, BYTES));
	TEST_ASSERT_EQUAL_INT(EPERM, errno);
	punch(&memory, 0, PAGE);
	expect_the_end(
		region,
		"protocol error: pages of a region were freed or replaced (region=1, blocks=120, expected=128)",
		NULL);
}

/*
 * Pages behind the end of the file hide that a page was freed. When the attacker touches that page
 * again, the server finds more pages than in its previous check.
 */
ATTACK(peer_with_pages_behind_the_end, 1, FREED)
{
	struct gantry_region *region;

	double_memory(&memory, FALLOC_FL_KEEP_SIZE);
	region = imported(1, &memory);
	punch(&memory, 0, PAGE);
	next_check();
	TEST_ASSERT_EQUAL_INT(0, rig.b.n_closed);
	*(volatile char *)memory.p = 1;
	expect_the_end(
		region,
		"protocol error: pages of a region were freed or replaced (region=1, blocks=256, expected=248)",
		NULL);
}

ATTACK(peer_that_frees_more_than_is_behind_the_end, 1, FREED)
{
	struct gantry_region *region;

	double_memory(&memory, FALLOC_FL_KEEP_SIZE);
	region = imported(1, &memory);
	punch(&memory, 0, BYTES);
	punch(&memory, BYTES, PAGE);
	expect_the_end(
		region,
		"protocol error: pages of a region were freed or replaced (region=1, blocks=120, expected=128)",
		NULL);
}

/*
 * A file with holes is rejected, also if only its first half is exported: pages that the peer
 * allocates in the holes would hide freed pages.
 */
ATTACK(region_in_a_file_with_holes, 1, NULL)
{
	const uint64_t wake_ns = rig.ops->wake_ns(rig.b.dev);
	const struct comch_region_up up = region_up(1);
	struct gantry_region *region = NULL;

	double_memory(&memory, 0);
	evil_frame(COMCH_REGION, &up, sizeof(up), &memory.fd, 1);
	TEST_ASSERT_EQUAL_INT(-ENOMEM, import(&up, &region));
	TEST_ASSERT_EQUAL_STRING("the file of region 1 has holes (blocks=128, expected=256)",
				 rig.ops->import_error(evil.conn));
	TEST_ASSERT_EQUAL_UINT64(wake_ns, rig.ops->wake_ns(rig.b.dev));
	TEST_ASSERT_EQUAL_INT(0, fallocate(memory.fd, 0, BYTES, BYTES));
	TEST_ASSERT_EQUAL_INT(0, import(&up, &region));
	TEST_ASSERT_EQUAL_STRING("", rig.ops->import_error(evil.conn));
	rig.ops->release_region(evil.conn, region);
	evil_memory_close(&memory);
}

/*
 * Import without GANTRY_IMPORT_KEEPS_PAGES. A part of a file with holes can then be imported, and
 * the server does not check whether the peer frees pages. The DOCA library needs this: it exports
 * ranges of one sparse file.
 */
ATTACK(peer_that_frees_pages_of_an_unchecked_region, 1, NULL)
{
	const uint64_t wake_ns = rig.ops->wake_ns(rig.b.dev);
	const struct comch_region_up up = region_up(1);
	struct gantry_region *region = NULL;

	double_memory(&memory, 0);
	evil_frame(COMCH_REGION, &up, sizeof(up), &memory.fd, 1);
	TEST_ASSERT_EQUAL_INT(0, import_as(&up, 0, &region));
	TEST_ASSERT_EQUAL_STRING("", rig.ops->import_error(evil.conn));
	TEST_ASSERT_EQUAL_UINT64(wake_ns, rig.ops->wake_ns(rig.b.dev));
	rig.ops->release_region(evil.conn, region);
	evil_memory_close(&memory);
}

/*
 * The server checks the pages of a region from its first import with GANTRY_IMPORT_KEEPS_PAGES. It
 * stops when all imports of the region are released, also those without this flag.
 */
ATTACK(peer_that_frees_pages_of_a_region_imported_twice, 1, FREED)
{
	const struct comch_region_up up = region_up(1);
	struct gantry_region *region = NULL, *checked = NULL;

	evil_memory(&memory, BYTES, FIXED);
	evil_frame(COMCH_REGION, &up, sizeof(up), &memory.fd, 1);
	TEST_ASSERT_EQUAL_INT(0, import_as(&up, 0, &region));
	TEST_ASSERT_EQUAL_INT(0, import(&up, &checked));
	rig.ops->release_region(evil.conn, checked);
	punch(&memory, 0, PAGE);
	expect_the_end(
		region,
		"protocol error: pages of a region were freed or replaced (region=1, blocks=120, expected=128)",
		NULL);
}

void page_attacks(void)
{
	RUN_TEST(peer_that_frees_a_page);
	RUN_TEST(peer_that_frees_pages_of_another_region);
	RUN_TEST(peer_that_frees_pages_of_a_revoked_region);
	RUN_TEST(peer_that_frees_nothing);
	RUN_TEST(peer_that_frees_pages_of_a_region_for_messages);
	RUN_TEST(peer_that_cannot_free_pages);
	RUN_TEST(peer_that_adds_pages_behind_the_end);
	RUN_TEST(peer_with_pages_behind_the_end);
	RUN_TEST(peer_that_frees_more_than_is_behind_the_end);
	RUN_TEST(region_in_a_file_with_holes);
	RUN_TEST(peer_that_frees_pages_of_an_unchecked_region);
	RUN_TEST(peer_that_frees_pages_of_a_region_imported_twice);
}
