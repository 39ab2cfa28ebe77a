/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel charges the client for the pages of its region, also if servers touch them; servers
 * end the session of a client that frees pages.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clients/served.h"
#include "unity.h"

#define DEPTH 160u
#define IO_BYTES (1u << 20)
/* memory limit of both servers: the volume has 16 MiB, the slots of the client have 160 MiB */
#define LIMIT_BYTES "67108864"
#define HOSTILE_DEPTH 32u /* regions of 32 MiB */

static struct gantry_volume *volume;
static struct gantry_queue *queue;
static struct gantry_volume_attr attr;
static struct served_io ios[DEPTH];
static uint8_t *buffers;
static int region_fd = -1; /* memory of the hostile client; stays open after the session is lost */
static char group[128];    /* "": no control group was created */

void setUp(void)
{
	attr = (struct gantry_volume_attr)GANTRY_VOLUME_ATTR_INIT;
	attr.depth = DEPTH;
	attr.copy_bytes = IO_BYTES;
	buffers = malloc((size_t)DEPTH * IO_BYTES);
	memset(ios, 0, sizeof(ios));
}

void tearDown(void)
{
	served_finish(&queue, &volume);
	free(buffers);
	if (region_fd >= 0)
		close(region_fd);
	region_fd = -1;
	if (group[0])
		rmdir(group);
	group[0] = '\0';
}

/* -- a memory control group, version 2 or 1 -- */

static int set(const char *name, const char *value)
{
	char path[192];
	FILE *f;
	int rc;

	snprintf(path, sizeof(path), "%s/%s", group, name);
	f = fopen(path, "r+e"); /* creates no file if there is no control group */
	if (!f)
		return -1;
	rc = fputs(value, f) < 0;
	return fclose(f) || rc ? -1 : 0;
}

static int make_group(const char *in, const char *limit)
{
	snprintf(group, sizeof(group), "%s/gantry-pages-%d", in, (int)getpid());
	if (mkdir(group, 0755) == 0) {
		if (set(limit, LIMIT_BYTES) == 0)
			return 1;
		rmdir(group);
	}
	group[0] = '\0';
	return 0;
}

/* Forbid swap: otherwise pages beyond the limit would move there. */
static void limit_memory(void)
{
	if (make_group("/sys/fs/cgroup", "memory.max"))
		set("memory.swap.max", "0");
	else if (make_group("/sys/fs/cgroup/memory", "memory.limit_in_bytes"))
		set("memory.memsw.limit_in_bytes", LIMIT_BYTES);
	else
		TEST_IGNORE_MESSAGE("no memory control group can be made here as this user");
}

static void limit_server(const char *role)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)served_pid(role));
	TEST_ASSERT_EQUAL_INT(0, set("cgroup.procs", pid));
}

/* -- the client -- */

static void open_all(const char *role)
{
	int rc = gantry_volume_open_role(served_file, role, &attr, &volume);

	TEST_ASSERT_EQUAL_INT_MESSAGE(0, rc, gantry_error());
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_open(volume, &queue));
}

/* The gate holds the reads until all slots are in use. */
static void read_into_every_slot(void)
{
	for (unsigned int i = 0; i < attr.depth; i++) {
		ios[i].result = 1;
		TEST_ASSERT_EQUAL_INT(0, gantry_queue_read(queue, buffers + (size_t)i * IO_BYTES,
							   IO_BYTES, SERVED_BYTES - IO_BYTES,
							   served_done, &ios[i]));
	}
	served_wait_gate(queue);
	served_open_gate();
	served_wait(queue, ios, (int)attr.depth, (int)attr.depth);
	for (unsigned int i = 0; i < attr.depth; i++)
		TEST_ASSERT_EQUAL_INT(0, ios[i].result);
}

static void test_a_target_is_not_charged_for_the_region(void)
{
	limit_memory();
	served_gated((struct served_options){.backend = NULL});
	limit_server("store");
	open_all("direct");
	read_into_every_slot();
}

static void test_gateway_and_target_are_not_charged_for_the_region(void)
{
	limit_memory();
	served_gated((struct served_options){.backend = NULL});
	limit_server("store");
	limit_server("bridge");
	open_all("load");
	read_into_every_slot();
}

/* -- a hostile client -- */

static void punch(int fd, off_t at, off_t bytes)
{
	TEST_ASSERT_EQUAL_INT(0,
			      fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, bytes));
}

/* Free all pages of the region of this process, which its servers have mapped. */
static void punch_region(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	unsigned int n = 0;

	TEST_ASSERT_NOT_NULL(dir);
	while ((entry = readdir(dir))) {
		char target[64] = "";

		if (readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1) < 0 ||
		    !strstr(target, "gantry-region"))
			continue;
		region_fd = dup(atoi(entry->d_name));
		punch(region_fd, 0, (off_t)HOSTILE_DEPTH * IO_BYTES);
		n++;
	}
	closedir(dir);
	TEST_ASSERT_EQUAL_UINT(1, n);
}

static uint64_t charged(void)
{
	static const char *const names[] = {"memory.current", "memory.usage_in_bytes"};
	unsigned long long bytes = 0;
	char path[192];

	for (unsigned int i = 0; i < 2; i++) {
		FILE *f;

		snprintf(path, sizeof(path), "%s/%s", group, names[i]);
		f = fopen(path, "re");
		if (!f)
			continue;
		TEST_ASSERT_EQUAL_INT(1, fscanf(f, "%llu", &bytes));
		fclose(f);
	}
	return bytes;
}

/*
 * Read until the server has ended the session; gantry_error() then has the reason. Reads into all
 * slots can allocate all pages again between two checks of the server, so each turn frees the pages
 * of the last slot.
 */
static void read_until_lost(void)
{
	int rc = 0;

	for (unsigned int i = 0; rc == 0 || rc == -EAGAIN || strstr(gantry_error(), "just now");
	     i++) {
		punch(region_fd, (HOSTILE_DEPTH - 1) * IO_BYTES, IO_BYTES);
		rc = gantry_queue_read(queue, buffers + (size_t)(i % attr.depth) * IO_BYTES,
				       IO_BYTES, SERVED_BYTES - IO_BYTES, served_done,
				       &ios[i % attr.depth]);
		gantry_queue_poll(queue);
	}
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, rc);
}

static void test_a_target_is_charged_for_freed_pages_up_to_the_quota(void)
{
	uint64_t before;

	limit_memory();
	served_gated((struct served_options){.listen = "max_region_bytes = \"32MiB\";"});
	limit_server("store");
	TEST_ASSERT_EQUAL_INT(-EACCES,
			      gantry_volume_open_role(served_file, "direct", &attr, &volume));
	TEST_ASSERT_NOT_NULL(strstr(gantry_error(), "limit listen.max_region_bytes=33554432)"));
	attr.depth = HOSTILE_DEPTH;
	open_all("direct");
	served_open_gate();
	before = charged();
	punch_region();
	read_until_lost();
	TEST_ASSERT_TRUE(charged() < before + 2ull * HOSTILE_DEPTH * IO_BYTES);
}

static void ends_a_client_that_frees_pages(const char *role)
{
	attr.depth = HOSTILE_DEPTH;
	served_gated((struct served_options){.backend = NULL});
	served_open_gate();
	open_all(role);
	punch_region();
	read_until_lost();
	TEST_ASSERT_NOT_NULL_MESSAGE(
		strstr(gantry_error(),
		       "protocol error: pages of a region were freed or replaced (region=1, blocks="),
		gantry_error());
}

static void test_a_target_ends_a_client_that_frees_pages(void)
{
	ends_a_client_that_frees_pages("direct");
}

static void test_a_gateway_ends_a_client_that_frees_pages(void)
{
	ends_a_client_that_frees_pages("load");
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_a_target_is_not_charged_for_the_region);
	RUN_TEST(test_gateway_and_target_are_not_charged_for_the_region);
	RUN_TEST(test_a_target_is_charged_for_freed_pages_up_to_the_quota);
	RUN_TEST(test_a_target_ends_a_client_that_frees_pages);
	RUN_TEST(test_a_gateway_ends_a_client_that_frees_pages);
	return UNITY_END();
}
