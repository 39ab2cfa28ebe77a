/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A session resumes only on the same volume, a flush fails when acknowledged writes may be lost,
 * and the size of the volume is that of its file. GANTRY_ROUNDS repeats each case.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "clients/served.h"
#include "unity.h"

#define BLOCK SERVED_BLOCK

static struct gantry_volume *volume;
static struct gantry_queue *queue;
static char path[128], backend[256];
static uint8_t data[BLOCK];
static uint64_t seen_size, seen_verifier; /* of the last call of on_changed() */
static unsigned n_changes;
static void *seen_arg;

void setUp(void)
{
	volume = NULL;
	queue = NULL;
	path[0] = '\0';
	n_changes = 0;
	memset(data, 'x', sizeof(data));
}

void tearDown(void)
{
	if (path[0])
		remove(path);
	served_finish(&queue, &volume);
}

/* The thread of the volume calls it. */
static void on_changed(void *arg, const struct gantry_volume_info *info)
{
	seen_arg = arg;
	__atomic_store_n(&seen_size, info->size, __ATOMIC_RELAXED);
	__atomic_store_n(&seen_verifier, info->verifier, __ATOMIC_RELAXED);
	__atomic_fetch_add(&n_changes, 1, __ATOMIC_RELEASE);
}

static unsigned count_changes(void)
{
	return __atomic_load_n(&n_changes, __ATOMIC_ACQUIRE);
}

static struct served_options options(void)
{
	return (struct served_options){.connect = "resume = \"50s\";",
				       .backend = backend[0] ? backend : NULL};
}

static void serve(void)
{
	struct gantry_volume_attr attr = GANTRY_VOLUME_ATTR_INIT;
	struct served_options o = options();
	int rc;

	served_conf(&o);
	served_start("store");
	served_start("bridge");
	attr.changed = on_changed;
	attr.changed_arg = data;
	rc = gantry_volume_open_role(served_file, "load", &attr, &volume);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, rc, gantry_error());
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_open(volume, &queue));
}

static void serve_memory(void)
{
	served_begin(NULL);
	backend[0] = '\0';
	serve();
}

static void serve_file(void)
{
	served_begin(NULL);
	snprintf(path, sizeof(path), "%s/volume.img", served_dir);
	snprintf(
		backend, sizeof(backend),
		"type = \"file\"; path = \"%s\"; create = true; size = \"1MiB\"; lock_wait = \"30s\";",
		path); /* the killed target can still hold the lock for a moment */
	serve();
	if (getxattr(path, "user.gantry.uuid", NULL, 0) < 0)
		TEST_IGNORE_MESSAGE("the file system has no user attributes");
}

/* Kill the target, submit a write, and start the target again. Returns the result of the write. */
static int write_across_the_death_of_the_target(void (*meanwhile)(void))
{
	struct served_io io = {0, 1};

	TEST_ASSERT_EQUAL_INT(0, served_write(queue, data, BLOCK, 0));
	served_kill("store", SIGKILL);
	if (meanwhile)
		meanwhile();
	TEST_ASSERT_EQUAL_INT(0,
			      gantry_queue_write(queue, data, BLOCK, BLOCK, 0, served_done, &io));
	served_start("store");
	served_wait(queue, &io, 1, 1);
	return io.result;
}

static void expect_stale(const char *text)
{
	TEST_ASSERT_EQUAL_INT(-ESTALE, served_flush(queue));
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(gantry_error(), text), gantry_error());
}

static void test_a_volatile_volume_that_was_started_again_is_stale(void)
{
	serve_memory();
	TEST_ASSERT_EQUAL_INT(-ESTALE, write_across_the_death_of_the_target(NULL));
	expect_stale("has lost its data");
}

static void make_file(void)
{
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

	TEST_ASSERT_GREATER_OR_EQUAL(0, fd);
	TEST_ASSERT_EQUAL_INT(0, ftruncate(fd, 1 << 20));
	close(fd);
}

static void replace_file(void)
{
	TEST_ASSERT_EQUAL_INT(0, remove(path));
	make_file();
}

static void test_another_file_under_the_same_name_is_stale(void)
{
	serve_file();
	TEST_ASSERT_EQUAL_INT(-ESTALE, write_across_the_death_of_the_target(replace_file));
	expect_stale("another volume (uuid=");
}

static uint64_t verifier(void)
{
	struct gantry_volume_info info;

	gantry_volume_get_info(volume, &info);
	return info.verifier;
}

/* The page cache keeps the data after the end of the process. */
static void test_a_file_whose_target_was_killed_has_lost_nothing(void)
{
	uint64_t was;

	serve_file();
	was = verifier();
	TEST_ASSERT_NOT_EQUAL(0, was);
	TEST_ASSERT_EQUAL_INT(0, write_across_the_death_of_the_target(NULL));
	TEST_ASSERT_EQUAL_HEX64(was, verifier());
	TEST_ASSERT_EQUAL_UINT(0, count_changes());
	TEST_ASSERT_EQUAL_INT(0, served_flush(queue));
}

/* Simulate a failed sync: a changed generation means that acknowledged writes may be lost. */
static void raise_generation(void)
{
	TEST_ASSERT_EQUAL_INT(0, setxattr(path, "user.gantry.generation", "41", 2, 0));
}

static void test_one_flush_fails_when_unflushed_writes_may_be_lost(void)
{
	uint64_t was;

	serve_file();
	was = verifier();
	TEST_ASSERT_EQUAL_INT(0, write_across_the_death_of_the_target(raise_generation));
	TEST_ASSERT_NOT_EQUAL(was, verifier());
	TEST_ASSERT_EQUAL_UINT(1, count_changes());
	TEST_ASSERT_EQUAL_HEX64(verifier(), seen_verifier);
	TEST_ASSERT_EQUAL_INT(-EIO, served_flush(queue));
	TEST_ASSERT_EQUAL_INT(0, served_flush(queue));
	TEST_ASSERT_EQUAL_INT(0, served_write(queue, data, BLOCK, 0));
	TEST_ASSERT_EQUAL_INT(0, served_flush(queue));
}

static uint64_t size(void)
{
	struct gantry_volume_info info;

	gantry_volume_get_info(volume, &info);
	return info.size;
}

/* Wait for call n of on_changed(), and expect that it reports this size. */
static void expect_size(unsigned n, uint64_t bytes)
{
	const uint64_t end = served_ms() + 60000;

	while (count_changes() < n && served_ms() < end)
		poll(NULL, 0, 5);
	TEST_ASSERT_EQUAL_UINT(n, count_changes());
	TEST_ASSERT_EQUAL_PTR(data, seen_arg);
	TEST_ASSERT_EQUAL_UINT64(bytes, seen_size);
	TEST_ASSERT_EQUAL_UINT64(bytes, size());
}

static void resize_to(off_t bytes)
{
	const unsigned before = count_changes();

	TEST_ASSERT_EQUAL_INT(0, truncate(path, bytes));
	expect_size(before + 1, (uint64_t)bytes);
}

/* The volume has the size of its file: the backend has no option `size`. */
static void serve_whole_file(void)
{
	served_begin(NULL);
	snprintf(path, sizeof(path), "%s/volume.img", served_dir);
	snprintf(backend, sizeof(backend),
		 "type = \"file\"; path = \"%s\"; direct = false; lock_wait = \"30s\";", path);
	make_file();
	serve();
}

static void test_the_size_follows_the_file(void)
{
	const uint64_t beyond = 1 << 20;

	serve_whole_file();
	TEST_ASSERT_EQUAL_UINT64(beyond, size());
	TEST_ASSERT_EQUAL_INT(-ERANGE, served_write(queue, data, BLOCK, beyond));
	resize_to(2 << 20);
	TEST_ASSERT_EQUAL_INT(0, served_write(queue, data, BLOCK, beyond));
	TEST_ASSERT_EQUAL_INT(0, write_across_the_death_of_the_target(NULL));
	TEST_ASSERT_EQUAL_UINT64(2 << 20, size());
	resize_to(1 << 20);
	TEST_ASSERT_EQUAL_INT(-ERANGE, served_read(queue, data, BLOCK, beyond));
	TEST_ASSERT_EQUAL_INT(0, served_read(queue, data, BLOCK, 0));
}

static void grow_file(void)
{
	TEST_ASSERT_EQUAL_INT(0, truncate(path, 2 << 20));
}

static void shrink_file(void)
{
	TEST_ASSERT_EQUAL_INT(0, truncate(path, BLOCK));
}

static void test_the_size_changes_while_the_session_is_lost(void)
{
	const uint64_t end = 1 << 20;

	serve_whole_file();
	TEST_ASSERT_EQUAL_INT(0, write_across_the_death_of_the_target(grow_file));
	expect_size(1, 2 << 20);
	TEST_ASSERT_EQUAL_INT(0, served_write(queue, data, BLOCK, end));
	TEST_ASSERT_EQUAL_INT(-ERANGE, write_across_the_death_of_the_target(shrink_file));
	expect_size(2, BLOCK);
	TEST_ASSERT_EQUAL_INT(0, served_read(queue, data, BLOCK, 0));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_ROUNDS(test_a_volatile_volume_that_was_started_again_is_stale);
	RUN_ROUNDS(test_another_file_under_the_same_name_is_stale);
	RUN_ROUNDS(test_a_file_whose_target_was_killed_has_lost_nothing);
	RUN_ROUNDS(test_one_flush_fails_when_unflushed_writes_may_be_lost);
	RUN_ROUNDS(test_the_size_follows_the_file);
	RUN_ROUNDS(test_the_size_changes_while_the_session_is_lost);
	return UNITY_END();
}
