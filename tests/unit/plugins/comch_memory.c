/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that is passed to another process must have its seals and pages. Huge pages are accepted
 * only from the same user.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../plugins/transport/shm-comch/shm_memory.c"
#include "unity.h"

#define BYTES (2u << 20)

static struct comch_device dev = {.uids = {1000}};
static struct comch_conn conn = {.dev = &dev};
static char why[COMCH_WHY];
static int fd;

void setUp(void)
{
	fd = -1;
}

void tearDown(void)
{
	if (fd >= 0)
		close(fd);
}

static int check(uint32_t uid)
{
	conn.peer.uid = uid;
	return comch_memory_check(&conn, &(struct comch_memory){"region", 3, fd, 0, BYTES, BYTES},
				  why);
}

static void sealed_memory_can_be_passed_to_any_user(void)
{
	fd = gantry_memfd_create("small", BYTES, 0);
	TEST_ASSERT_TRUE(fd >= 0);
	TEST_ASSERT_EQUAL_INT(0, fallocate(fd, 0, 0, BYTES));
	TEST_ASSERT_EQUAL_INT(-EPERM, check(1000));
	TEST_ASSERT_EQUAL_STRING("memory is not sealed against shrinking and growing", why);
	TEST_ASSERT_EQUAL_INT(0, gantry_memfd_seal(fd, 0));
	TEST_ASSERT_EQUAL_INT(0, check(1000));
	TEST_ASSERT_EQUAL_INT(0, check(1001));
	TEST_ASSERT_EQUAL_INT(0, check(0));
}

static void memory_with_missing_pages_is_rejected(void)
{
	struct comch_memory part = {.what = "region",
				    .number = 4,
				    .offset = BYTES / 2,
				    .bytes = BYTES / 2,
				    .quota_bytes = BYTES};

	fd = gantry_memfd_create("holes", BYTES, 0);
	TEST_ASSERT_TRUE(fd >= 0);
	TEST_ASSERT_EQUAL_INT(0, gantry_memfd_seal(fd, 0));
	TEST_ASSERT_EQUAL_INT(-ENOMEM, check(1000));
	TEST_ASSERT_EQUAL_STRING("region 3 has holes: 0 of 2097152 bytes are present", why);
	TEST_ASSERT_EQUAL_INT(0, fallocate(fd, 0, 0, BYTES / 2 - 4096));
	part.fd = fd;
	TEST_ASSERT_EQUAL_INT(-ENOMEM, comch_memory_check(&conn, &part, why));
	TEST_ASSERT_EQUAL_STRING("region 4 has holes: 1044480 of 1048576 bytes are present", why);
	TEST_ASSERT_EQUAL_INT(0, fallocate(fd, 0, BYTES / 2, BYTES / 2));
	TEST_ASSERT_EQUAL_INT(0, comch_memory_check(&conn, &part, why));
	TEST_ASSERT_EQUAL_INT(-ENOMEM, check(1000));
	TEST_ASSERT_EQUAL_STRING("region 3 has holes: 2093056 of 2097152 bytes are present", why);
	TEST_ASSERT_EQUAL_INT(0, fallocate(fd, 0, 0, BYTES));
	TEST_ASSERT_EQUAL_INT(0, check(1000));
}

/* The peer can free pages of a writable memfd. F_SEAL_FUTURE_WRITE prevents that. */
static void queue_memory_keeps_its_pages(void)
{
	struct comch_memory ring = {
		.what = "ring", .number = 7, .bytes = BYTES, .quota_bytes = BYTES};

	conn.peer.uid = 1000;
	fd = gantry_memfd_create("ring", BYTES, 0);
	TEST_ASSERT_TRUE(fd >= 0);
	ring.fd = fd;
	TEST_ASSERT_EQUAL_INT(0, fallocate(fd, 0, 0, BYTES));
	TEST_ASSERT_EQUAL_INT(0, fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW));
	TEST_ASSERT_EQUAL_INT(-EPERM, comch_memory_check_frozen(&conn, &ring, why));
	TEST_ASSERT_EQUAL_STRING("ring 7 is not sealed against writing", why);
	TEST_ASSERT_EQUAL_INT(0, gantry_memfd_seal(fd, F_SEAL_FUTURE_WRITE));
	TEST_ASSERT_EQUAL_INT(0, comch_memory_check_frozen(&conn, &ring, why));
	TEST_ASSERT_EQUAL_INT(-1,
			      fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
	TEST_ASSERT_EQUAL_INT(EPERM, errno);
}

/* The test reserves no huge pages: the memory has no pages, so the same user gets ENOMEM. */
static void huge_pages_cannot_be_passed_to_another_user(void)
{
	fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
	if (fd < 0 || ftruncate(fd, BYTES) || gantry_memfd_seal(fd, 0))
		TEST_IGNORE_MESSAGE("this kernel has no huge pages that can be sealed");
	TEST_ASSERT_EQUAL_INT(-ENOMEM, check(1000));
	TEST_ASSERT_EQUAL_INT(-EPERM, check(1001));
	TEST_ASSERT_NOT_NULL(strstr(why, "huge pages cannot be passed between users"));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(sealed_memory_can_be_passed_to_any_user);
	RUN_TEST(memory_with_missing_pages_is_rejected);
	RUN_TEST(queue_memory_keeps_its_pages);
	RUN_TEST(huge_pages_cannot_be_passed_to_another_user);
	return UNITY_END();
}
