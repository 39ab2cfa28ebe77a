/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gantry/shm.h with its loads replaced, and gantry/memfd.h with descriptors that a hostile peer can
 * send.
 */
#define GANTRY_SHM_TEST
#include <gantry/shm.h>

#include <gantry/memfd.h>
#include <stdlib.h>
#include <string.h>

#include "unity.h"

#define PAGE 4096u

static unsigned int loads;
static uint64_t liar; /* if not 0: every load returns a new value */

uint64_t gantry_shm_test_load(const volatile void *p, unsigned int width)
{
	loads++;
	if (liar)
		return liar++;
	return width == 32 ? *(const volatile uint32_t *)p : *(const volatile uint64_t *)p;
}

void setUp(void)
{
	loads = 0;
	liar = 0;
}

static void stored_words_are_loaded(void)
{
	uint64_t word = 0;
	uint32_t half = 0;

	gantry_shm_st64_release(&word, 0x1122334455667788u);
	TEST_ASSERT_EQUAL_HEX64(0x1122334455667788u, gantry_shm_ld64_acquire(&word));
	gantry_shm_st64(&word, 5);
	TEST_ASSERT_EQUAL_UINT64(5, gantry_shm_ld64(&word));
	gantry_shm_st32(&half, 0xdeadbeef);
	TEST_ASSERT_EQUAL_HEX32(0xdeadbeef, gantry_shm_ld32_acquire(&half));
	gantry_shm_st32(&half, 6);
	TEST_ASSERT_EQUAL_UINT32(6, gantry_shm_ld32(&half));
	gantry_shm_fence();
	TEST_ASSERT_EQUAL_UINT(4, loads);
}

static void a_record_is_read_with_one_load_for_each_word(void)
{
	uint64_t shared[8], copy[8];
	char text[64] = "sixty-four bytes, written and read again";

	gantry_shm_write(shared, text, sizeof(shared));
	TEST_ASSERT_EQUAL_UINT(0, loads);
	gantry_shm_read(copy, shared, sizeof(copy));
	TEST_ASSERT_EQUAL_UINT(8, loads);
	TEST_ASSERT_EQUAL_MEMORY(text, copy, sizeof(copy));
	liar = 100;
	gantry_shm_read(copy, shared, sizeof(copy));
	TEST_ASSERT_EQUAL_UINT64(100, copy[0]);
	TEST_ASSERT_EQUAL_UINT64(107, copy[7]);
}

static void sealed_memfd_passes_the_check(void)
{
	uint64_t bytes = 0;
	const char *reason = NULL;
	int fd = gantry_memfd_create("test", 4 * PAGE, 0);

	TEST_ASSERT_GREATER_OR_EQUAL_INT(0, fd);
	TEST_ASSERT_EQUAL_INT(FD_CLOEXEC, fcntl(fd, F_GETFD));
	TEST_ASSERT_EQUAL_INT(-EPERM, gantry_memfd_check(fd, PAGE, 4 * PAGE, &bytes, &reason));
	TEST_ASSERT_EQUAL_STRING("memory is not sealed against shrinking and growing", reason);
	TEST_ASSERT_EQUAL_INT(0, gantry_memfd_seal(fd, 0));
	TEST_ASSERT_EQUAL_INT(0, gantry_memfd_check(fd, PAGE, 4 * PAGE, &bytes, &reason));
	TEST_ASSERT_EQUAL_UINT64(4 * PAGE, bytes);
	TEST_ASSERT_EQUAL_INT(0, gantry_memfd_check(fd, 4 * PAGE, UINT64_MAX, NULL, NULL));
	close(fd);
}

static void sealed_memory_keeps_its_size_and_its_seals(void)
{
	int fd = gantry_memfd_create("test", 2 * PAGE, 0);

	TEST_ASSERT_EQUAL_INT(0, gantry_memfd_seal(fd, 0));
	TEST_ASSERT_EQUAL_INT(-1, ftruncate(fd, PAGE));
	TEST_ASSERT_EQUAL_INT(-1, ftruncate(fd, 3 * PAGE));
	TEST_ASSERT_EQUAL_INT(-EPERM, gantry_memfd_seal(fd, F_SEAL_FUTURE_WRITE));
	close(fd);
}

static void future_write_seal_leaves_only_the_old_mapping_writable(void)
{
	int fd = gantry_memfd_create("test", PAGE, 0);
	char *mine = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), *peer;

	TEST_ASSERT_TRUE(mine != MAP_FAILED);
	TEST_ASSERT_EQUAL_INT(0, gantry_memfd_seal(fd, F_SEAL_FUTURE_WRITE));
	TEST_ASSERT_TRUE(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	peer = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	TEST_ASSERT_TRUE(peer != MAP_FAILED);
	mine[7] = 'x';
	TEST_ASSERT_EQUAL_INT('x', peer[7]);
	munmap(peer, PAGE);
	munmap(mine, PAGE);
	close(fd);
}

static void memory_of_a_wrong_size_is_rejected(void)
{
	const char *reason;
	int fd = gantry_memfd_create("test", 2 * PAGE, 0);

	TEST_ASSERT_EQUAL_INT(0, gantry_memfd_seal(fd, 0));
	TEST_ASSERT_EQUAL_INT(-ERANGE,
			      gantry_memfd_check(fd, 2 * PAGE + 1, UINT64_MAX, NULL, &reason));
	TEST_ASSERT_EQUAL_STRING("memory is smaller than claimed", reason);
	TEST_ASSERT_EQUAL_INT(-EDQUOT, gantry_memfd_check(fd, 0, 2 * PAGE - 1, NULL, &reason));
	TEST_ASSERT_EQUAL_STRING("memory exceeds the quota", reason);
	close(fd);
	TEST_ASSERT_EQUAL_INT(-EINVAL, gantry_memfd_create("test", 0, 0));
	TEST_ASSERT_EQUAL_INT(-EINVAL, gantry_memfd_create("test", UINT64_MAX, 0));
}

static void descriptors_of_other_kinds_are_refused(void)
{
	char path[] = "/tmp/gantry-shm-XXXXXX";
	int fds[2], file = mkstemp(path);
	const char *reason;

	TEST_ASSERT_GREATER_OR_EQUAL_INT(0, file);
	unlink(path);
	TEST_ASSERT_EQUAL_INT(0, ftruncate(file, PAGE));
	TEST_ASSERT_EQUAL_INT(-EPERM, gantry_memfd_check(file, 0, PAGE, NULL, &reason));
	TEST_ASSERT_EQUAL_INT(0, gantry_memfd_is_huge(file));
	close(file);
	TEST_ASSERT_EQUAL_INT(0, pipe(fds));
	TEST_ASSERT_EQUAL_INT(-EINVAL, gantry_memfd_check(fds[0], 0, PAGE, NULL, &reason));
	TEST_ASSERT_EQUAL_STRING("not a memory file", reason);
	close(fds[0]);
	close(fds[1]);
	TEST_ASSERT_EQUAL_INT(-EBADF, gantry_memfd_check(-1, 0, PAGE, NULL, &reason));
	TEST_ASSERT_EQUAL_INT(-EBADF, gantry_memfd_is_huge(-1));
	TEST_ASSERT_EQUAL_STRING("descriptor cannot be examined", reason);
}

static void huge_memory_without_pages_is_refused(void)
{
	const char *reason;
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);

	if (fd < 0)
		TEST_IGNORE_MESSAGE("no hugetlbfs in this kernel");
	if (ftruncate(fd, 1 << 30) || gantry_memfd_seal(fd, 0)) {
		close(fd);
		TEST_IGNORE_MESSAGE("hugetlbfs refuses to be sealed");
	}
	TEST_ASSERT_EQUAL_INT(1, gantry_memfd_is_huge(fd));
	TEST_ASSERT_EQUAL_INT(-ENOMEM, gantry_memfd_check(fd, 0, UINT64_MAX, NULL, &reason));
	TEST_ASSERT_EQUAL_STRING("huge pages are not reserved", reason);
	close(fd);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(stored_words_are_loaded);
	RUN_TEST(a_record_is_read_with_one_load_for_each_word);
	RUN_TEST(sealed_memfd_passes_the_check);
	RUN_TEST(sealed_memory_keeps_its_size_and_its_seals);
	RUN_TEST(future_write_seal_leaves_only_the_old_mapping_writable);
	RUN_TEST(memory_of_a_wrong_size_is_rejected);
	RUN_TEST(descriptors_of_other_kinds_are_refused);
	RUN_TEST(huge_memory_without_pages_is_refused);
	return UNITY_END();
}
