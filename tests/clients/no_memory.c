/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opens, uses and closes a volume while one allocation fails: the first, then the second, and so on
 * until no allocation is left to fail; or while this and all later ones fail. Open succeeds or
 * returns a documented error. Nothing leaks, and the next open succeeds. Each case runs in a new
 * process, which loads the plugins again.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clients/served.h"
#include "fake/shortage.h"
#include "unity.h"

#define PATIENCE 60 /* seconds: a process that takes longer hangs */
#define MOST 5000   /* limit of allocations in a case */
#define THEIRS 4    /* blocks that the linker or libltdl can keep */

struct held {
	long fds, regions, blocks, maps;
};

static struct shared {
	struct shortage shortage;
	struct held held; /* held after two opens without failures: includes the plugins */
	char text[600];
} * shared;

static struct gantry_volume_attr attr;

void setUp(void)
{
	if (!shortage_can())
		TEST_IGNORE_MESSAGE("allocations cannot fail in this build");
	attr = (struct gantry_volume_attr)GANTRY_VOLUME_ATTR_INIT;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	TEST_ASSERT_TRUE(shared != MAP_FAILED);
}

void tearDown(void)
{
	served_end();
	if (shared)
		munmap(shared, sizeof(*shared));
	shared = NULL;
}

/* -- in the process whose allocations fail -- */

static void leave(const char *why, long a, long b)
{
	snprintf(shared->text, sizeof(shared->text), "%s: %ld, %ld; allocation %u, of %s: %.300s",
		 why, a, b, shared->shortage.at, shared->shortage.file, gantry_error());
	_exit(1);
}

static int use(struct gantry_volume *volume)
{
	static char buf[SERVED_BLOCK];
	struct gantry_queue *queue;
	int rc = gantry_queue_open(volume, &queue);

	if (rc)
		return rc;
	rc = served_read(queue, buf, sizeof(buf), 0);
	gantry_queue_close(&queue);
	return rc;
}

static int once(void)
{
	struct gantry_volume *volume = (struct gantry_volume *)1;
	int rc = gantry_volume_open_role(served_file, "load", &attr, &volume), used = 0;

	if (rc && volume)
		leave("there is a volume that was not opened", rc, 0);
	if (!rc) {
		used = use(volume);
		rc = gantry_volume_close(&volume);
		if (rc)
			leave("it does not close", rc, 0);
	}
	return rc ? rc : used;
}

/* ld.so does not always report the lack of memory; for a thread pthread_create() returns EAGAIN. */
static bool is_clean(int rc)
{
	return rc == -ENOMEM || (rc == -EAGAIN && strstr(gantry_error(), "thread")) ||
	       (rc == -ENOEXEC && strstr(gantry_error(), "does not load"));
}

static void check(const char *what, long has, long may)
{
	if (has > may)
		leave(what, has, may);
}

/* libltdl, ld.so and libc leak memory if one of their allocations fails. */
static bool is_theirs(void)
{
	return strstr(shared->shortage.file, "ltdl") || strstr(shared->shortage.file, "ld-") ||
	       strstr(shared->shortage.file, "libc.so");
}

/* An emulator runs an extra thread. A joined thread stays in /proc for a moment. */
static void no_thread_left(long before)
{
	uint64_t until = served_ms() + PATIENCE * 500;

	while (shortage_entries("/proc/self/task") != before) {
		if (served_ms() > until)
			leave("threads that stay", shortage_entries("/proc/self/task") - before, 0);
		sched_yield();
	}
}

static void process(void)
{
	long threads = shortage_entries("/proc/self/task");
	struct held held;
	int rc;

	alarm(PATIENCE);
	shortage_use(&shared->shortage);
	rc = once();
	shortage_use(NULL);
	if (rc && !shared->shortage.failed)
		leave("it fails though nothing was missing", rc, 0);
	if (rc && !is_clean(rc))
		leave("it is another error", rc, 0);
	no_thread_left(threads);
	rc = once();
	if (rc)
		leave("it fails the second time", rc, 0);
	held = (struct held){shortage_entries("/proc/self/fd"), shortage_regions(),
			     shortage_blocks(), shortage_maps()};
	if (!shared->shortage.at)
		shared->held = held;
	check("descriptors", held.fds, shared->held.fds);
	check("regions", held.regions, shared->held.regions);
	check("blocks", held.blocks, shared->held.blocks + (is_theirs() ? THEIRS : 0));
	check("mappings", held.maps, shared->held.maps);
	_exit(0);
}

static void run(uint32_t at, uint32_t lasts)
{
	char text[700];
	int status;
	pid_t pid;

	shared->shortage = (struct shortage){.at = at, .lasts = lasts};
	shared->text[0] = '\0';
	fflush(NULL);
	pid = fork();
	TEST_ASSERT_GREATER_OR_EQUAL(0, pid);
	if (pid == 0)
		process();
	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
	snprintf(text, sizeof(text), "allocation %u of %u, status %#x: %s", at, shared->shortage.n,
		 (unsigned)status, shared->text);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, status, text);
}

static void walk(uint32_t lasts)
{
	uint32_t n = 0;

	served_begin(NULL);
	served_start("store");
	served_start("bridge");
	run(0, 0);
	do {
		run(++n, lasts);
		TEST_ASSERT_LESS_THAN(MOST, n);
	} while (shared->shortage.failed);
	TEST_ASSERT_GREATER_THAN(100, n);
}

static void test_one_allocation_fails(void)
{
	walk(0);
}

static void test_all_allocations_fail_from_one_on(void)
{
	walk(1);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_one_allocation_fails);
	RUN_TEST(test_all_allocations_fail_from_one_on);
	return UNITY_END();
}
