/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that goes from one process to another: that of huge pages does only between processes of one user. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../plugins/transport/shm-comch/memory.c"
#include "unity.h"

#define BYTES (2u << 20)

static struct comch_device dev = {.uids = {1000}};
static struct comch_conn conn = {.dev = &dev};
static const char *why;
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
	return comch_memory_check(&conn, fd, BYTES, BYTES, &why);
}

static void sealed_memory_goes_to_everybody(void)
{
	fd = gantry_memfd_create("small", BYTES, 0);
	TEST_ASSERT_TRUE(fd >= 0);
	TEST_ASSERT_EQUAL_INT(-EPERM, check(1000));
	TEST_ASSERT_EQUAL_STRING("memory is not sealed against shrinking and growing", why);
	TEST_ASSERT_EQUAL_INT(0, gantry_memfd_seal(fd, 0));
	TEST_ASSERT_EQUAL_INT(0, check(1000));
	TEST_ASSERT_EQUAL_INT(0, check(1001));
	TEST_ASSERT_EQUAL_INT(0, check(0));
}

/* None need be reserved: what the two are told tells them apart. */
static void huge_pages_stay_with_their_user(void)
{
	fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
	if (fd < 0 || ftruncate(fd, BYTES) || gantry_memfd_seal(fd, 0))
		TEST_IGNORE_MESSAGE("this kernel has no huge pages that can be sealed");
	TEST_ASSERT_EQUAL_INT(-ENOMEM, check(1000));
	TEST_ASSERT_EQUAL_INT(-EPERM, check(1001));
	TEST_ASSERT_NOT_NULL(strstr(why, "huge pages do not go from user to user"));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(sealed_memory_goes_to_everybody);
	RUN_TEST(huge_pages_stay_with_their_user);
	return UNITY_END();
}
