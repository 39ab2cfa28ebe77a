/* SPDX-License-Identifier: BSD-3-Clause */
/* Exportable memory is sealed and zeroed, and is not released while a peer can touch it. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "gantry/memfd.h"
#include "memory/region.h"
#include "unity.h"

#define PAGE ((uint64_t)sysconf(_SC_PAGESIZE))

static void a_region_is_sealed_zeroed_and_whole_pages(void)
{
	struct gantry_region *region;
	uint64_t bytes, whole = 2 * PAGE;

	TEST_ASSERT_EQUAL_INT(0, gn_region_create(PAGE + 904, 0, &region));
	TEST_ASSERT_EQUAL_UINT64(whole, region->length);
	TEST_ASSERT_EQUAL_UINT(GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE, region->rights);
	TEST_ASSERT_EQUAL_INT(0, gantry_memfd_check(region->fd, whole, whole, &bytes, NULL));
	TEST_ASSERT_EQUAL_UINT64(whole, bytes);
	TEST_ASSERT_EQUAL_INT(FD_CLOEXEC, fcntl(region->fd, F_GETFD));
	TEST_ASSERT_EQUAL_INT(-1, ftruncate(region->fd, 0));
	TEST_ASSERT_EQUAL_INT(-1, fcntl(region->fd, F_ADD_SEALS, F_SEAL_WRITE));
	for (uint64_t i = 0; i < whole; i++)
		TEST_ASSERT_EQUAL_INT(0, ((char *)region->addr)[i]);
	memset(region->addr, 1, whole);
	gn_region_destroy(&region, 1);
	TEST_ASSERT_NULL(region);
	gn_region_destroy(&region, 1);
}

static uint64_t bytes_there(const struct gantry_region *region)
{
	struct stat st;

	TEST_ASSERT_EQUAL_INT(0, fstat(region->fd, &st));
	return (uint64_t)st.st_blocks * 512;
}

static void pages_are_prefaulted_or_faulted_in_lazily(void)
{
	struct gantry_region *region;

	TEST_ASSERT_EQUAL_INT(0, gn_region_create(64 * PAGE, 0, &region));
	TEST_ASSERT_EQUAL_UINT64(64 * PAGE, bytes_there(region));
	gn_region_destroy(&region, 1);
	TEST_ASSERT_EQUAL_INT(0, gn_region_create(64 * PAGE, GANTRY_REGION_LAZY, &region));
	TEST_ASSERT_EQUAL_UINT64(0, bytes_there(region));
	((char *)region->addr)[PAGE + 904] = 1;
	TEST_ASSERT_TRUE(bytes_there(region) > 0 && bytes_there(region) < 64 * PAGE);
	gn_region_destroy(&region, 1);
}

static void absurd_sizes_are_refused(void)
{
	struct gantry_region *region = NULL;

	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_region_create(0, 0, &region));
	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_region_create(UINT64_MAX, 0, &region));
	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_region_create(INT64_MAX, GANTRY_REGION_HUGE, &region));
	TEST_ASSERT_TRUE(gn_region_create(1ull << 62, 0, &region) < 0);
	TEST_ASSERT_NULL(region);
}

static uint64_t page_of(int fd)
{
	struct stat st;

	TEST_ASSERT_EQUAL_INT(0, fstat(fd, &st));
	return (uint64_t)st.st_blksize;
}

/*
 * GANTRY_REGION_HUGE uses huge pages if the machine has free ones, else ordinary pages with a
 * warning. It never fails for lack of huge pages.
 */
static void huge_pages_are_asked_for(void)
{
	int probe = gantry_memfd_create("probe", 2 << 20, GANTRY_MEMFD_HUGE),
	    log = memfd_create("log", MFD_CLOEXEC);
	struct gantry_region *region;
	char text[512] = "";

	if (probe >= 0)
		close(probe);
	gn_log_set_sink(log, GN_LOG_TEXT);
	TEST_ASSERT_EQUAL_INT(0, gn_region_create(PAGE, GANTRY_REGION_HUGE, &region));
	gn_log_set_sink(2, GN_LOG_TEXT);
	TEST_ASSERT_TRUE(pread(log, text, sizeof(text) - 1, 0) >= 0);
	close(log);
	if (probe >= 0) {
		TEST_ASSERT_EQUAL_UINT64(2 << 20, page_of(region->fd));
		TEST_ASSERT_EQUAL_UINT64(2 << 20, region->length);
	} else {
		TEST_ASSERT_EQUAL_UINT64(PAGE, region->length);
		TEST_ASSERT_NOT_NULL(strstr(text, "no huge pages"));
	}
	memset(region->addr, 1, region->length);
	gn_region_destroy(&region, 1);
}

static int mapped(const void *addr)
{
	unsigned char vec;

	return mincore((void *)(uintptr_t)addr, PAGE, &vec) == 0;
}

static void region_that_is_not_released_is_quarantined(void)
{
	uint64_t before = gn_region_quarantined();
	struct gantry_region *region;
	char *addr;
	int fd;

	TEST_ASSERT_EQUAL_INT(0, gn_region_create(PAGE, 0, &region));
	addr = region->addr;
	fd = region->fd;
	gn_region_destroy(&region, 0);
	TEST_ASSERT_NULL(region);
	TEST_ASSERT_EQUAL_UINT64(before + PAGE, gn_region_quarantined());
	TEST_ASSERT_TRUE(mapped(addr));
	TEST_ASSERT_EQUAL_INT(-1, fcntl(fd, F_GETFD));
	munmap(addr, PAGE);
	TEST_ASSERT_EQUAL_INT(0, gn_region_create(PAGE, 0, &region));
	addr = region->addr;
	gn_region_destroy(&region, 1);
	TEST_ASSERT_FALSE(mapped(addr));
	TEST_ASSERT_EQUAL_UINT64(before + PAGE, gn_region_quarantined());
}

/* After withdraw the peer has the old pages, and its writes no longer change the region. */
static void a_withdrawn_region_has_its_content_for_itself(int flags)
{
	struct gantry_region *region;
	char *peer, *memory;
	uint64_t bytes;

	TEST_ASSERT_EQUAL_INT(0, gn_region_create(3 * PAGE, flags, &region));
	bytes = region->length;
	memory = region->addr;
	memset(memory, 1, bytes);
	peer = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, region->fd, 0);
	TEST_ASSERT_TRUE(peer != MAP_FAILED);
	TEST_ASSERT_EQUAL_INT(0, gn_region_withdraw(region));
	TEST_ASSERT_EQUAL_PTR(memory, region->addr);
	TEST_ASSERT_EQUAL_INT(-1, region->fd);
	memset(peer, 2, bytes);
	for (uint64_t i = 0; i < bytes; i++)
		TEST_ASSERT_EQUAL_INT(1, memory[i]);
	memset(memory, 3, bytes);
	for (uint64_t i = 0; i < bytes; i++)
		TEST_ASSERT_EQUAL_INT(2, peer[i]);
	TEST_ASSERT_EQUAL_INT(0, gn_region_withdraw(region)); /* a second call has no effect */
	munmap(peer, bytes);
	gn_region_destroy(&region, 1);
	TEST_ASSERT_FALSE(mapped(memory));
}

static int copies_to_fail; /* calls of MADV_POPULATE_WRITE that fail */

int __real_madvise(void *addr, size_t length, int advice);
int __wrap_madvise(void *addr, size_t length, int advice);

int __wrap_madvise(void *addr, size_t length, int advice)
{
	if (advice != MADV_POPULATE_WRITE || copies_to_fail == 0)
		return __real_madvise(addr, length, advice);
	copies_to_fail--;
	errno = ENOMEM;
	return -1;
}

static void a_withdrawal_without_memory_can_be_repeated(void)
{
	struct gantry_region *region;
	char *peer, *memory;

	TEST_ASSERT_EQUAL_INT(0, gn_region_create(2 * PAGE, 0, &region));
	memory = region->addr;
	memset(memory, 1, 2 * PAGE);
	peer = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, region->fd, 0);
	TEST_ASSERT_TRUE(peer != MAP_FAILED);
	copies_to_fail = 2;
	TEST_ASSERT_EQUAL_INT(-ENOMEM, gn_region_withdraw(region));
	memset(peer, 2, PAGE); /* the page is not copied yet */
	TEST_ASSERT_EQUAL_INT(2, memory[0]);
	memory[PAGE] = 3; /* copies the second page */
	TEST_ASSERT_EQUAL_INT(-ENOMEM, gn_region_withdraw(region));
	TEST_ASSERT_EQUAL_INT(0, gn_region_withdraw(region));
	memset(peer, 4, 2 * PAGE);
	TEST_ASSERT_EQUAL_PTR(memory, region->addr);
	TEST_ASSERT_EQUAL_INT(2, memory[0]);
	TEST_ASSERT_EQUAL_INT(3, memory[PAGE]);
	TEST_ASSERT_EQUAL_INT(1, memory[PAGE + 1]);
	munmap(peer, 2 * PAGE);
	gn_region_destroy(&region, 1);
	TEST_ASSERT_FALSE(mapped(memory));
}

static void a_withdrawn_region_is_private(void)
{
	a_withdrawn_region_has_its_content_for_itself(0);
	a_withdrawn_region_has_its_content_for_itself(GANTRY_REGION_HUGE);
}

#define PAGES 64
#define ROUNDS 50

struct writer {
	volatile uint64_t *memory;
	uint64_t last[PAGES]; /* last value that the thread wrote to each page */
	_Atomic int runs, stop;
};

/* Write to one page after the other until `stop` is set. */
static void *write_pages(void *arg)
{
	struct writer *w = arg;

	for (uint64_t n = 1; !w->stop; n++) {
		w->memory[n % PAGES * (PAGE / 8)] = n;
		w->last[n % PAGES] = n;
		w->runs = 1;
	}
	return NULL;
}

static void writes_of_the_owner_during_a_withdrawal_are_kept(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct gantry_region *region;
		struct writer w = {.runs = 0};
		pthread_t thread;

		TEST_ASSERT_EQUAL_INT(0, gn_region_create(PAGES * PAGE, 0, &region));
		w.memory = region->addr;
		TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, write_pages, &w));
		while (!w.runs)
			;
		TEST_ASSERT_EQUAL_INT(0, gn_region_withdraw(region));
		w.stop = 1;
		pthread_join(thread, NULL);
		for (unsigned i = 0; i < PAGES; i++)
			TEST_ASSERT_EQUAL_UINT64(w.last[i], w.memory[i * (PAGE / 8)]);
		gn_region_destroy(&region, 1);
	}
}

static void a_child_does_not_hold_the_pages(void)
{
	struct gantry_region *region;
	int wstatus;
	pid_t pid;

	TEST_ASSERT_EQUAL_INT(0, gn_region_create(PAGE, 0, &region));
	pid = fork();
	if (pid == 0)
		_exit(mapped(region->addr));
	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &wstatus, 0));
	TEST_ASSERT_EQUAL_INT(0, wstatus);
	gn_region_destroy(&region, 1);
}

/* Returns whether the mapping at addr has this flag in its VmFlags line. */
static int has_flag(const void *addr, const char *flag)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long begin = 0, at;
	char line[512];
	int has = 0;

	TEST_ASSERT_NOT_NULL(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-", &at) == 1 && strchr(line, '-'))
			begin = at;
		else if (begin == (unsigned long)addr && strncmp(line, "VmFlags:", 8) == 0)
			has = strstr(line, flag) != NULL;
	}
	fclose(f);
	return has;
}

static void a_core_dump_does_not_have_the_data(void)
{
	struct gantry_region *region;

	TEST_ASSERT_EQUAL_INT(0, gn_region_create(PAGE, 0, &region));
	TEST_ASSERT_TRUE(has_flag(region->addr, " wr"));
	TEST_ASSERT_TRUE(has_flag(region->addr, " dd"));
	gn_region_destroy(&region, 1);
}

/* Memory as a virtual machine makes it: sealed, and without pages. */
static int foreign_memfd(uint64_t bytes, int seals)
{
	int fd = memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	TEST_ASSERT_TRUE(fd >= 0);
	TEST_ASSERT_EQUAL_INT(0, ftruncate(fd, (off_t)bytes));
	TEST_ASSERT_EQUAL_INT(0, seals ? fcntl(fd, F_ADD_SEALS, seals) : 0);
	return fd;
}

static void parts_of_a_memfd_of_another_process_are_mapped(void)
{
	const char *why = NULL;
	struct gantry_region *low, *high;
	int fd = foreign_memfd(8 * PAGE, GANTRY_MEMFD_SEALS), second = dup(fd);
	char byte = 0;

	TEST_ASSERT_EQUAL_INT(0, gn_region_map(fd, 0, 2 * PAGE, &low, &why));
	TEST_ASSERT_EQUAL_STRING("", why);
	TEST_ASSERT_EQUAL_INT(0, gn_region_map(second, 5 * PAGE, 3 * PAGE, &high, &why));
	TEST_ASSERT_EQUAL_UINT64(0, bytes_there(low));
	TEST_ASSERT_EQUAL_UINT64(5 * PAGE, high->fd_offset);
	TEST_ASSERT_EQUAL_UINT64(3 * PAGE, high->length);
	TEST_ASSERT_EQUAL_UINT(GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE, high->rights);
	((char *)high->addr)[PAGE + 7] = 'x';
	TEST_ASSERT_EQUAL_INT(1, pread(fd, &byte, 1, (off_t)(6 * PAGE + 7)));
	TEST_ASSERT_EQUAL_INT('x', byte);
	gn_region_destroy(&low, 1);
	TEST_ASSERT_EQUAL_INT(-1, fcntl(fd, F_GETFD));
	TEST_ASSERT_EQUAL_INT('x', ((char *)high->addr)[PAGE + 7]);
	gn_region_destroy(&high, 1);
	TEST_ASSERT_EQUAL_INT(-1, fcntl(second, F_GETFD));
}

static void the_export_of_a_part_allocates_this_part(void)
{
	const char *why;
	struct gantry_region *region;
	int fd = foreign_memfd(64 * PAGE, GANTRY_MEMFD_SEALS);

	TEST_ASSERT_EQUAL_INT(0, gn_region_map(fd, 16 * PAGE, 8 * PAGE, &region, &why));
	TEST_ASSERT_EQUAL_INT(0, gn_region_make_pages(region, 0, region->length));
	TEST_ASSERT_EQUAL_UINT64(8 * PAGE, bytes_there(region));
	gn_region_destroy(&region, 1);
}

static void expect_unmapped(int fd, uint64_t offset, uint64_t bytes, int rc, const char *text)
{
	struct gantry_region *region = NULL;
	const char *why = "";

	TEST_ASSERT_EQUAL_INT(rc, gn_region_map(fd, offset, bytes, &region, &why));
	TEST_ASSERT_NULL(region);
	if (!strstr(why, text))
		TEST_FAIL_MESSAGE(why);
	TEST_ASSERT_EQUAL_INT(FD_CLOEXEC, fcntl(fd, F_GETFD));
}

static void memory_that_its_owner_can_take_away_is_refused(void)
{
	const int both = F_SEAL_SHRINK | F_SEAL_GROW;
	int fd = foreign_memfd(4 * PAGE, F_SEAL_GROW), pipes[2];

	expect_unmapped(fd, 0, PAGE, -EPERM, "not sealed");
	close(fd);
	fd = foreign_memfd(4 * PAGE, both);
	expect_unmapped(fd, 0, 0, -EINVAL, "page size");
	expect_unmapped(fd, 512, PAGE, -EINVAL, "page size");
	expect_unmapped(fd, 0, PAGE + 1, -EINVAL, "page size");
	expect_unmapped(fd, PAGE, -PAGE, -EINVAL, "page size");
	expect_unmapped(fd, 4 * PAGE, PAGE, -ERANGE, "smaller");
	expect_unmapped(fd, 1ull << 62, PAGE, -ERANGE, "smaller");
	close(fd);
	fd = foreign_memfd(4 * PAGE, both | F_SEAL_FUTURE_WRITE);
	expect_unmapped(fd, 0, PAGE, -EPERM, "sealed against writing");
	close(fd);
	TEST_ASSERT_EQUAL_INT(0, pipe2(pipes, O_CLOEXEC));
	expect_unmapped(pipes[0], 0, PAGE, -EINVAL, "not a memory file");
	close(pipes[0]);
	close(pipes[1]);
}

/* The parts of a virtual machine's memory need not begin or end at a huge page. */
static void parts_of_huge_pages_are_mapped(void)
{
	const char *why;
	struct gantry_region *region;
	int fd = gantry_memfd_create("guest", 4 << 20, GANTRY_MEMFD_HUGE);
	char *addr;

	if (fd < 0)
		return; /* this machine has no huge pages */
	TEST_ASSERT_EQUAL_INT(0, gantry_memfd_seal(fd, 0));
	TEST_ASSERT_EQUAL_INT(0, gn_region_map(fd, 0xc0000, 0x200000, &region, &why));
	addr = region->addr;
	memset(addr, 1, region->length);
	TEST_ASSERT_TRUE(mapped(addr));
	gn_region_destroy(&region, 1);
	TEST_ASSERT_FALSE(mapped(addr));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(parts_of_a_memfd_of_another_process_are_mapped);
	RUN_TEST(the_export_of_a_part_allocates_this_part);
	RUN_TEST(memory_that_its_owner_can_take_away_is_refused);
	RUN_TEST(parts_of_huge_pages_are_mapped);
	RUN_TEST(a_region_is_sealed_zeroed_and_whole_pages);
	RUN_TEST(pages_are_prefaulted_or_faulted_in_lazily);
	RUN_TEST(absurd_sizes_are_refused);
	RUN_TEST(huge_pages_are_asked_for);
	RUN_TEST(region_that_is_not_released_is_quarantined);
	RUN_TEST(a_withdrawn_region_is_private);
	RUN_TEST(a_withdrawal_without_memory_can_be_repeated);
	RUN_TEST(writes_of_the_owner_during_a_withdrawal_are_kept);
	RUN_TEST(a_child_does_not_hold_the_pages);
	RUN_TEST(a_core_dump_does_not_have_the_data);
	return UNITY_END();
}
