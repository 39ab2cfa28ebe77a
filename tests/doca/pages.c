/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages that become shareable at their address: no data of the program must be lost. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mmap/mmap_maps.h"
#include "mmap/mmap_pages.h"
#include "scarce.h"
#include "unity.h"

#define PAGE 4096u
#define MIB (1u << 20)

static int fd; /* memfd of the last hold */

static int hold(const void *addr, size_t length, bool write)
{
	int rc = gd_pages_hold(addr, length, write, false);
	struct gd_run run;

	if (rc != 0)
		return rc;
	TEST_ASSERT_EQUAL_INT(1, gd_pages_give(addr, length, &run, 1));
	fd = run.fd;
	return 0;
}

/* Returns the byte that an importer would read at this address. */
static int seen(const void *at)
{
	unsigned char byte = 0;

	return pread(fd, &byte, 1, (off_t)(uintptr_t)at) == 1 ? byte : -1;
}

static void put(const void *at, unsigned char byte)
{
	TEST_ASSERT_EQUAL_INT(1, pwrite(fd, &byte, 1, (off_t)(uintptr_t)at));
}

static void check_shared(volatile unsigned char *memory, size_t n)
{
	for (size_t i = 0; i < n; i++)
		memory[i] = (unsigned char)(i * 7);
	TEST_ASSERT_EQUAL_INT(0, hold((void *)memory, n, true));
	for (size_t i = 0; i < n; i++)
		if (memory[i] != (unsigned char)(i * 7))
			TEST_FAIL_MESSAGE("not what was there before");
	TEST_ASSERT_EQUAL_INT((unsigned char)((n - 1) * 7), seen((void *)&memory[n - 1]));
	memory[n / 2] = 200;
	TEST_ASSERT_EQUAL_INT(200, seen((void *)&memory[n / 2]));
	put((void *)&memory[0], 201);
	TEST_ASSERT_EQUAL_INT(201, memory[0]);
	gd_pages_drop((void *)memory, n);
	memory[0] = 1; /* the program can still write */
}

static void heap_of_any_place_and_length(void)
{
	static const size_t lengths[] = {1, 100, 4096, 5000, 70000, 3 * MIB + 17};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (size_t shift = 0; shift < 3; shift++) {
			unsigned char *memory = malloc(lengths[i] + shift);

			check_shared(memory + shift, lengths[i]);
			free(memory);
		}
}

/* Returns the bytes of the memfd that have pages. */
static uint64_t present(void)
{
	struct stat st;

	TEST_ASSERT_EQUAL_INT(0, fstat(fd, &st));
	return (uint64_t)st.st_blocks * 512;
}

/*
 * A hold allocates all pages. Otherwise the importer could touch a page first, and the kernel would
 * charge the cgroup of the importer for it.
 */
static void memory_that_was_never_touched_has_all_its_pages(void)
{
	static const int prots[] = {PROT_READ, PROT_READ | PROT_WRITE};

	for (int i = 0; i < 2; i++) {
		void *memory = mmap(NULL, 64 * PAGE, prots[i], MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		TEST_ASSERT_EQUAL_INT(0, hold(memory, 64 * PAGE, i != 0));
		TEST_ASSERT_EQUAL_UINT64(64 * PAGE, present());
		gd_pages_drop(memory, 64 * PAGE);
		munmap(memory, 64 * PAGE);
	}
}

static void pages_that_the_program_has_freed_are_allocated_again(void)
{
	unsigned char *memory = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memory[0] = 1;
	TEST_ASSERT_EQUAL_INT(0, hold(memory, 64 * PAGE, true));
	gd_pages_drop(memory, 64 * PAGE);
	TEST_ASSERT_EQUAL_INT(0, madvise(memory + PAGE, 62 * PAGE, MADV_REMOVE));
	TEST_ASSERT_EQUAL_UINT64(2 * PAGE, present());
	TEST_ASSERT_EQUAL_INT(0, hold(memory, 64 * PAGE, true));
	TEST_ASSERT_EQUAL_UINT64(64 * PAGE, present());
	TEST_ASSERT_EQUAL_INT(1, seen(memory));
	gd_pages_drop(memory, 64 * PAGE);
	munmap(memory, 64 * PAGE);
}

static unsigned char data[3 * PAGE] = {1}, zeroes[3 * PAGE];

static void variables_of_the_program(void)
{
	check_shared(data + 100, 2 * PAGE);
	check_shared(zeroes + 100, 2 * PAGE);
}

static __attribute__((noinline)) void on_the_stack(size_t n)
{
	unsigned char memory[20000];

	check_shared(memory, n);
}

static __attribute__((noinline)) int deeper(int n)
{
	volatile char room[1000];

	room[n % 1000] = (char)n;
	return n == 0 ? room[0] : deeper(n - 1) + (room[n % 1000] == (char)n);
}

static void the_stack_that_calls(void)
{
	for (size_t n = 1; n <= 20000; n += 6666)
		on_the_stack(n);
	TEST_ASSERT_EQUAL_INT(1000, deeper(1000)); /* the stack grows as before */
}

static void *stack_of_a_thread(void *arg)
{
	(void)arg;
	the_stack_that_calls();
	return NULL;
}

static void the_stack_of_a_thread_that_calls(void)
{
	pthread_t thread;
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 4 * MIB);
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, &attr, stack_of_a_thread, NULL));
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
}

/* -- threads that write at the same time -- */

#define N_THREADS 3u
#define SLOTS (MIB / 4)

static uint32_t *slots;
static unsigned stop;
static size_t written[N_THREADS];

/* Writes each of its slots once. The slots of all threads are interleaved on all pages. */
static void *writer(void *arg)
{
	size_t me = (size_t)(uintptr_t)arg, i = 0;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED) && i < SLOTS / 8) {
		size_t at = (i * 8191 % (SLOTS / 8)) * 8 + me;

		__atomic_store_n(&slots[at], (uint32_t)at + 1, __ATOMIC_RELAXED);
		i++;
	}
	written[me] = i;
	return NULL;
}

static size_t lost_by(size_t me)
{
	size_t n = 0;

	for (size_t i = 0; i < written[me]; i++) {
		size_t at = (i * 8191 % (SLOTS / 8)) * 8 + me;

		n += slots[at] != (uint32_t)at + 1;
	}
	return n;
}

static void writes_of_threads_during_a_replacement_are_not_lost(void)
{
	size_t lost = 0, total = 0;

	for (int round = 0; round < 100; round++) {
		pthread_t threads[N_THREADS];

		slots = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		stop = 0;
		if (round % 2)
			TEST_ASSERT_EQUAL_INT(0, hold(slots, MIB, true));
		for (size_t i = 0; i < N_THREADS; i++)
			pthread_create(&threads[i], NULL, writer, (void *)(uintptr_t)i);
		TEST_ASSERT_EQUAL_INT(0, round % 2 ? gd_pages_replace(slots, MIB, false)
						   : hold(slots, MIB, true));
		__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
		for (size_t i = 0; i < N_THREADS; i++)
			pthread_join(threads[i], NULL);
		for (size_t i = 0; i < N_THREADS; i++) {
			lost += lost_by(i);
			total += written[i];
		}
		gd_pages_drop(slots, MIB);
		munmap(slots, MIB);
	}
	TEST_ASSERT_TRUE(total > 0);
	TEST_ASSERT_EQUAL_UINT64(0, lost);
}

/* An importer keeps the old pages. No later hold returns to them, whatever its range. */
static void pages_that_are_replaced_never_return(void)
{
	unsigned char *memory = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int old;

	memset(memory, 5, 8 * PAGE);
	TEST_ASSERT_EQUAL_INT(0, hold(memory + 2 * PAGE, 4 * PAGE, true));
	old = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	put(memory + 2 * PAGE, 6);
	TEST_ASSERT_EQUAL_INT(0, gd_pages_replace(memory + 2 * PAGE, 4 * PAGE, false));
	gd_pages_drop(memory + 2 * PAGE, 4 * PAGE);
	for (size_t i = 0; i < 4; i++) {
		const size_t from = i % 2 ? 2 : 1, n = i < 2 ? 4 : 3;

		TEST_ASSERT_EQUAL_INT(0, hold(memory + from * PAGE, n * PAGE, true));
		fd = old;
		put(memory + 2 * PAGE, 77);
		put(memory + 3 * PAGE, 77);
		TEST_ASSERT_EQUAL_INT(6, memory[2 * PAGE]);
		TEST_ASSERT_EQUAL_INT(5, memory[3 * PAGE]);
		gd_pages_drop(memory + from * PAGE, n * PAGE);
	}
	close(old);
	munmap(memory, 8 * PAGE);
}

/* gd_pages_replace() with `true` also replaces private pages, and copies their content. */
static void private_pages_are_replaced_when_asked_for(void)
{
	unsigned char *memory = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct gd_piece *pieces = NULL;
	size_t n = 0;

	memset(memory, 5, 4 * PAGE);
	TEST_ASSERT_EQUAL_INT(0, gd_pages_replace(memory, 4 * PAGE, true));
	TEST_ASSERT_EQUAL_INT(
		0, gd_maps_read((uintptr_t)memory, (uintptr_t)(memory + 4 * PAGE), &pieces, &n));
	TEST_ASSERT_EQUAL_size_t(1, n);
	TEST_ASSERT_TRUE(pieces[0].shared);
	TEST_ASSERT_EQUAL_INT(5, memory[4 * PAGE - 1]);
	free(pieces);
	munmap(memory, 4 * PAGE);
}

static struct gd_run runs[GD_RUNS];

static void check_runs(const unsigned char *at, unsigned pages, int n)
{
	TEST_ASSERT_EQUAL_INT(n, gd_pages_give(at, pages * PAGE, runs, GD_RUNS));
	TEST_ASSERT_EQUAL_UINT64((uintptr_t)at, runs[0].from);
	for (int i = 1; i < n; i++)
		TEST_ASSERT_TRUE(runs[i].from == runs[i - 1].to && runs[i].fd != runs[i - 1].fd);
	TEST_ASSERT_EQUAL_UINT64((uintptr_t)at + pages * PAGE, runs[n - 1].to);
}

/*
 * Two ranges that other processes import cannot be merged. A range between them has pages of both.
 */
static void a_range_between_others_has_pages_of_both(void)
{
	unsigned char *memory = mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(memory, 5, 9 * PAGE);
	TEST_ASSERT_EQUAL_INT(0, hold(memory, 3 * PAGE, true));
	TEST_ASSERT_EQUAL_INT(0, hold(memory + 6 * PAGE, 3 * PAGE, true));
	TEST_ASSERT_EQUAL_INT(0, gd_pages_hold(memory + 2 * PAGE, 5 * PAGE, true, false));
	check_runs(memory + 2 * PAGE, 5, 2);
	fd = runs[1].fd;
	put(memory + 6 * PAGE, 8);
	TEST_ASSERT_EQUAL_INT(8, memory[6 * PAGE]);
	TEST_ASSERT_EQUAL_INT(-EOPNOTSUPP, gd_pages_give(memory + 2 * PAGE, 5 * PAGE, runs, 1));
	gd_pages_drop(memory + 2 * PAGE, 5 * PAGE);
	gd_pages_drop(memory, 3 * PAGE);
	gd_pages_drop(memory + 6 * PAGE, 3 * PAGE);
	/* ranges that no process imports are merged */
	TEST_ASSERT_EQUAL_INT(0, gd_pages_hold(memory + PAGE, 2 * PAGE, true, false));
	TEST_ASSERT_EQUAL_INT(0, gd_pages_hold(memory + 5 * PAGE, 2 * PAGE, true, false));
	TEST_ASSERT_EQUAL_INT(0, gd_pages_hold(memory + 2 * PAGE, 4 * PAGE, true, false));
	check_runs(memory + 2 * PAGE, 4, 1);
	gd_pages_drop(memory + PAGE, 2 * PAGE);
	gd_pages_drop(memory + 5 * PAGE, 2 * PAGE);
	gd_pages_drop(memory + 2 * PAGE, 4 * PAGE);
	munmap(memory, 9 * PAGE);
}

/*
 * Two overlapping ranges share a memfd, and the pages of the first range are replaced. A later hold
 * of both ranges must not put these pages back into the old memfd, which earlier importers can
 * still write.
 */
static void hold_of_adjacent_pages_does_not_restore_replaced_pages(void)
{
	unsigned char *memory = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int old;

	memset(memory, 5, 8 * PAGE);
	TEST_ASSERT_EQUAL_INT(0, hold(memory, 4 * PAGE, true));
	TEST_ASSERT_EQUAL_INT(0, hold(memory + 3 * PAGE, 4 * PAGE, true)); /* the same memfd */
	old = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	TEST_ASSERT_EQUAL_INT(0, gd_pages_replace(memory, 4 * PAGE, false));
	gd_pages_drop(memory, 4 * PAGE);
	TEST_ASSERT_EQUAL_INT(0, gd_pages_hold(memory, 7 * PAGE, true, false));
	fd = old;
	for (unsigned i = 0; i < 4; i++) {
		put(memory + i * PAGE, 77);
		TEST_ASSERT_EQUAL_INT(5, memory[i * PAGE]);
	}
	TEST_ASSERT_EQUAL_INT(2, gd_pages_give(memory, 7 * PAGE, runs, GD_RUNS));
	gd_pages_drop(memory, 7 * PAGE);
	gd_pages_drop(memory + 3 * PAGE, 4 * PAGE);
	close(old);
	munmap(memory, 8 * PAGE);
}

/*
 * Three ranges share one memfd, because the second overlaps the first and the third. The pages of
 * the first are replaced; the third still uses the old memfd. A later hold of pages of both must
 * not put the replaced pages back into the old memfd.
 */
static void memfd_with_replaced_pages_gets_no_further_pages(void)
{
	unsigned char *memory = mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int old;

	memset(memory, 5, 9 * PAGE);
	TEST_ASSERT_EQUAL_INT(0, hold(memory, 4 * PAGE, true));
	TEST_ASSERT_EQUAL_INT(0, hold(memory + 3 * PAGE, 3 * PAGE, true));
	TEST_ASSERT_EQUAL_INT(0, hold(memory + 5 * PAGE, 4 * PAGE, true));
	old = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	gd_pages_drop(memory + 3 * PAGE, 3 * PAGE);
	TEST_ASSERT_EQUAL_INT(0, gd_pages_replace(memory, 4 * PAGE, false));
	gd_pages_drop(memory, 4 * PAGE);
	TEST_ASSERT_EQUAL_INT(0, gd_pages_hold(memory + 2 * PAGE, 4 * PAGE, true, false));
	fd = old;
	put(memory + 3 * PAGE, 77);
	TEST_ASSERT_EQUAL_INT(5, memory[3 * PAGE]);
	put(memory + 5 * PAGE, 77);
	TEST_ASSERT_EQUAL_INT(77, memory[5 * PAGE]);
	gd_pages_drop(memory + 2 * PAGE, 4 * PAGE);
	gd_pages_drop(memory + 5 * PAGE, 4 * PAGE);
	close(old);
	munmap(memory, 9 * PAGE);
}

static void maps_that_overlap_are_one(void)
{
	unsigned char *memory = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(memory, 5, 8 * PAGE);
	TEST_ASSERT_EQUAL_INT(0, hold(memory + 100, 2 * PAGE, true));
	put(memory + 200, 6);
	TEST_ASSERT_EQUAL_INT(0, hold(memory + 50, 6 * PAGE, true));
	TEST_ASSERT_EQUAL_INT(6, memory[200]);
	put(memory + 200, 7);
	TEST_ASSERT_EQUAL_INT(7, memory[200]);
	gd_pages_drop(memory + 100, 2 * PAGE);
	put(memory + 200, 8);
	TEST_ASSERT_EQUAL_INT(8, memory[200]);
	gd_pages_drop(memory + 50, 6 * PAGE);
	munmap(memory, 8 * PAGE);
}

/* realloc() can move shared pages to another address */
static void pages_that_have_moved_are_shared_anew(void)
{
	unsigned char *memory = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		      *moved;

	memset(memory, 3, 4 * PAGE);
	TEST_ASSERT_EQUAL_INT(0, hold(memory, 4 * PAGE, true));
	gd_pages_drop(memory, 4 * PAGE);
	moved = mmap(NULL, 8 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	moved = mremap(memory, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, moved);
	TEST_ASSERT_TRUE(moved != MAP_FAILED);
	check_shared(moved, 4 * PAGE);
	munmap(moved, 8 * PAGE);
}

static void memory_that_cannot_be_shared_is_left_alone(void)
{
	unsigned char *m = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0);
	unsigned char *s = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
				0);
	int file;

	memset(m, 9, 4 * PAGE);
	TEST_ASSERT_EQUAL_INT(-EOPNOTSUPP, hold(s, PAGE, false));
	mprotect(m + 2 * PAGE, PAGE, PROT_READ);
	TEST_ASSERT_EQUAL_INT(-EACCES, hold(m, 4 * PAGE, true));
	TEST_ASSERT_EQUAL_INT(0, hold(m, 4 * PAGE, false));
	TEST_ASSERT_EQUAL_INT(9, seen(m + 2 * PAGE));
	gd_pages_drop(m, 4 * PAGE);
	munmap(m + PAGE, PAGE);
	TEST_ASSERT_EQUAL_INT(-EFAULT, hold(m, 4 * PAGE, false));
	TEST_ASSERT_EQUAL_INT(-EFAULT, hold(m, 0, false));
	TEST_ASSERT_EQUAL_INT(-EFAULT, hold((void *)(uintptr_t)64, 1, false));
	TEST_ASSERT_EQUAL_INT(-EFAULT, hold((void *)(UINTPTR_MAX - PAGE), PAGE / 2, false));
	TEST_ASSERT_EQUAL_INT(9, m[0]);
	munmap(m, 4 * PAGE);
	munmap(s, PAGE);
	/* pages behind the end of a file */
	file = memfd_create("short", MFD_CLOEXEC);
	TEST_ASSERT_EQUAL_INT(0, ftruncate(file, 100));
	m = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	TEST_ASSERT_TRUE(hold(m, 3 * PAGE, true) < 0);
	TEST_ASSERT_EQUAL_INT(0, m[0]);
	munmap(m, 3 * PAGE);
	close(file);
}

static long blocks(void)
{
	struct stat st;

	TEST_ASSERT_EQUAL_INT(0, fstat(fd, &st));
	return (long)st.st_blocks;
}

static void unmapped_memory_is_released(void)
{
	unsigned char *small = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				    -1, 0),
		      *memory;

	for (int i = 0; i < 3; i++) {
		TEST_ASSERT_EQUAL_INT(0, hold(small, PAGE, false));
		memory = mmap(NULL, 8 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			      -1, 0);
		TEST_ASSERT_EQUAL_INT(0, hold(memory, 8 * MIB, false));
		TEST_ASSERT_EQUAL_INT64(8 * (long)MIB / 512, blocks());
		munmap(memory, 6 * MIB);
		gd_pages_drop(memory, 8 * MIB);
		TEST_ASSERT_EQUAL_INT64(2 * (long)MIB / 512, blocks());
		munmap(memory + 6 * MIB, 2 * MIB);
		gd_pages_drop(small, PAGE);
		TEST_ASSERT_EQUAL_INT(-1, fcntl(fd, F_GETFD)); /* the memfd is closed */
	}
	munmap(small, PAGE);
}

/* -- fork -- */

static int child_status(pid_t pid)
{
	int status = -1;

	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static __attribute__((noinline)) void fork_with(volatile unsigned char *memory, size_t n)
{
	pid_t pid;

	memset((void *)memory, 10, n);
	TEST_ASSERT_EQUAL_INT(0, hold((void *)memory, n, true));
	pid = fork();
	if (pid == 0) {
		if (memory[0] != 10 || memory[n - 1] != 10)
			_exit(1);
		memset((void *)memory, 20, n);
		_exit(deeper(100) == 100 && memory[n / 2] == 20 ? 0 : 2);
	}
	TEST_ASSERT_TRUE(pid > 0);
	memory[n / 2] = 30;
	TEST_ASSERT_EQUAL_INT(0, child_status(pid));
	TEST_ASSERT_EQUAL_INT(10, memory[0]);
	TEST_ASSERT_EQUAL_INT(10, memory[n - 1]);
	put((void *)&memory[1], 40); /* the importers still share it */
	TEST_ASSERT_EQUAL_INT(40, memory[1]);
	TEST_ASSERT_EQUAL_INT(30, seen((void *)&memory[n / 2]));
	gd_pages_drop((void *)memory, n);
}

static __attribute__((noinline)) void fork_with_stack(void)
{
	unsigned char memory[3 * PAGE];

	fork_with(memory, sizeof(memory));
}

static void a_forked_child_has_pages_of_its_own(void)
{
	unsigned char *memory = malloc(100000);

	fork_with(memory, 100000);
	fork_with_stack();
	fork_with(data, sizeof(data));
	free(memory);
}

static void a_forked_child_can_share_pages_itself(void)
{
	unsigned char *memory = malloc(100000);
	pid_t pid;

	check_shared(memory, 100000);
	pid = fork();
	if (pid == 0) {
		if (TEST_PROTECT()) {
			check_shared(memory, 100000);
			_exit(0);
		}
		_exit(1);
	}
	TEST_ASSERT_EQUAL_INT(0, child_status(pid));
	free(memory);
}

/*
 * The end of a map starts a search for pages that can be released. If memory for the search is
 * lacking, the library keeps its record of all held pages.
 */
static void a_forked_child_has_pages_of_its_own_after_memory_ran_out(void)
{
	const size_t n = 20000;
	volatile unsigned char *memory;
	bool was_scarce = true;
	pid_t pid;

	if (!scarce_can())
		TEST_IGNORE_MESSAGE("allocations cannot fail in this build");
	memory = malloc(n);
	for (unsigned i = 0; was_scarce; i++) {
		memset((void *)memory, 10, n);
		TEST_ASSERT_EQUAL_INT(0, hold((void *)memory, n, true));
		scarce_after(i);
		gd_pages_drop((void *)memory, n);
		was_scarce = scarce_end();
		pid = fork();
		if (pid == 0) {
			memset((void *)memory, 20, n);
			_exit(0);
		}
		TEST_ASSERT_EQUAL_INT(0, child_status(pid));
		TEST_ASSERT_EQUAL_INT(10, memory[n / 2]);
	}
	free((void *)memory);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(heap_of_any_place_and_length);
	RUN_TEST(memory_that_was_never_touched_has_all_its_pages);
	RUN_TEST(pages_that_the_program_has_freed_are_allocated_again);
	RUN_TEST(variables_of_the_program);
	RUN_TEST(the_stack_that_calls);
	RUN_TEST(the_stack_of_a_thread_that_calls);
	RUN_TEST(writes_of_threads_during_a_replacement_are_not_lost);
	RUN_TEST(pages_that_are_replaced_never_return);
	RUN_TEST(private_pages_are_replaced_when_asked_for);
	RUN_TEST(a_range_between_others_has_pages_of_both);
	RUN_TEST(hold_of_adjacent_pages_does_not_restore_replaced_pages);
	RUN_TEST(memfd_with_replaced_pages_gets_no_further_pages);
	RUN_TEST(maps_that_overlap_are_one);
	RUN_TEST(pages_that_have_moved_are_shared_anew);
	RUN_TEST(memory_that_cannot_be_shared_is_left_alone);
	RUN_TEST(unmapped_memory_is_released);
	RUN_TEST(a_forked_child_has_pages_of_its_own);
	RUN_TEST(a_forked_child_can_share_pages_itself);
	RUN_TEST(a_forked_child_has_pages_of_its_own_after_memory_ran_out);
	return UNITY_END();
}
