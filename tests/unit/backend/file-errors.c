/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the file backend handles errors of a disk. A script replaces the system calls of the sync
 * engine.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>

#include "file.h"

static struct script {
	/* results of successive calls; FULL: the whole length */
	ssize_t read[8], write[8], sync[8], allocate[8];
	unsigned n_read, n_write, n_sync, n_allocate;
	int stable, mode, lost, lost_fd;
	size_t written;
} script;

#define FULL INT32_MAX

static ssize_t next(const ssize_t *results, unsigned *n, size_t asked)
{
	ssize_t result = results[*n < 7 ? *n : 7];

	++*n;
	return result == FULL ? (ssize_t)asked : result;
}

static ssize_t fake_read(int fd, void *data, size_t n, off_t offset)
{
	ssize_t rc = next(script.read, &script.n_read, n);

	(void)fd;
	(void)offset;
	if (rc > 0)
		memset(data, 0x11, (size_t)rc);
	return rc;
}

static ssize_t fake_write(int fd, const void *data, size_t n, off_t offset, int stable)
{
	ssize_t rc = next(script.write, &script.n_write, n);

	(void)fd;
	(void)data;
	(void)offset;
	script.stable = stable;
	if (rc > 0)
		script.written += (size_t)rc;
	return rc;
}

static ssize_t fake_sync(int fd)
{
	(void)fd;
	return next(script.sync, &script.n_sync, 0);
}

static ssize_t fake_allocate(int fd, int mode, off_t offset, off_t n)
{
	(void)fd;
	(void)offset;
	script.mode = mode;
	return next(script.allocate, &script.n_allocate, (size_t)n);
}

static int fake_set_attribute(int fd, const char *name, const char *value)
{
	(void)fd;
	(void)name;
	(void)value;
	return 0;
}

static int fake_sync_all(int fd)
{
	(void)fd;
	return 0;
}

static int fake_lost(int fd)
{
	script.lost_fd = fd;
	return script.lost;
}

static const struct file_calls calls = {fake_read,          fake_write,    fake_sync, fake_allocate,
					fake_set_attribute, fake_sync_all, fake_lost, NULL};
static uint8_t data[64 * KIB] __attribute__((aligned(4096)));

static void open_with(const char *setting)
{
	OPEN("engine=sync", setting);
	store()->calls = &calls;
}

void setUp(void)
{
	fake_host_init(&host, "test");
	fake_chain_init(&chain, &host);
	folder_make();
	volume_make(MIB);
	script = (struct script){0};
	for (unsigned i = 0; i < 8; i++)
		script.read[i] = script.write[i] = FULL;
}

void tearDown(void)
{
	fake_chain_fini(&chain);
	folder_remove();
}

static void errno_becomes_status(void)
{
	static const struct {
		int err;
		unsigned status;
	} table[] = {
		{EIO, GANTRY_S_IO},       {ENOSPC, GANTRY_S_NOSPC},    {EDQUOT, GANTRY_S_NOSPC},
		{EFBIG, GANTRY_S_NOSPC},  {EROFS, GANTRY_S_READ_ONLY}, {EINVAL, GANTRY_S_INVALID},
		{ENOMEM, GANTRY_S_NOMEM}, {ENXIO, GANTRY_S_IO},        {ETIMEDOUT, GANTRY_S_IO},
		{ENOTCONN, GANTRY_S_IO},  {ECANCELED, GANTRY_S_IO},    {EBUSY, GANTRY_S_IO}};

	open_with("direct=false");
	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		script.n_write = 0;
		script.write[0] = -table[i].err;
		TEST_ASSERT_EQUAL_UINT(table[i].status, run(GANTRY_OP_WRITE, 0, 4 * KIB, data));
		TEST_ASSERT_EQUAL_UINT(1, script.n_write);
	}
	TEST_ASSERT_EQUAL_UINT(sizeof table / sizeof *table, chain.n_done);
	TEST_ASSERT_EQUAL_UINT64(chain.n_done, store()->n_errors);
}

static void short_results_continue_with_the_remaining_bytes(void)
{
	open_with("direct=false");
	script.write[0] = 100;
	script.write[1] = 8092;
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_WRITE, 0, 64 * KIB, data));
	TEST_ASSERT_EQUAL_UINT(3, script.n_write);
	TEST_ASSERT_EQUAL_UINT64(64 * KIB, script.written);
	TEST_ASSERT_EQUAL_UINT64(2, store()->n_short);

	script.read[0] = 4 * KIB;
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_READ, 0, 64 * KIB, data));
	TEST_ASSERT_EQUAL_UINT(2, script.n_read);
	TEST_ASSERT_EQUAL_HEX8(0x11, data[64 * KIB - 1]);
}

static void short_direct_write_continues_at_a_block(void)
{
	open_with("direct=true");
	if (!store()->direct)
		TEST_IGNORE_MESSAGE("no direct IO here");
	script.write[0] = 4 * KIB + 100;
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_WRITE, 0, 64 * KIB, data));
	TEST_ASSERT_EQUAL_UINT64(64 * KIB + 100, script.written);
}

static void no_progress_twice_is_an_error(void)
{
	open_with("direct=false");
	script.read[0] = 0;
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_READ, 0, 4 * KIB, data));
	script.n_read = 0;
	script.read[1] = 0;
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, run(GANTRY_OP_READ, 0, 4 * KIB, data));
	TEST_ASSERT_EQUAL_UINT(2, script.n_read);
}

static void io_rejected_with_eagain_is_retried_three_times(void)
{
	open_with("direct=false");
	script.write[0] = script.write[1] = script.write[2] = -EAGAIN;
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_WRITE, 0, 4 * KIB, data));
	TEST_ASSERT_EQUAL_UINT(4, script.n_write);
	script.n_write = 0;
	script.write[3] = -EAGAIN;
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, run(GANTRY_OP_WRITE, 0, 4 * KIB, data));
	TEST_ASSERT_EQUAL_UINT(4, script.n_write);
}

static void failed_sync_makes_the_volume_read_only_for_good(void)
{
	struct fake_report report;

	open_with("direct=false");
	script.sync[0] = -EIO;
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_WRITE, 0, 4 * KIB, data));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, run(GANTRY_OP_FLUSH, 0, 0, NULL));
	/* the kernel reports a failure once: a second sync would succeed without the lost data */
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, run(GANTRY_OP_FLUSH, 0, 0, NULL));
	TEST_ASSERT_EQUAL_UINT(1, script.n_sync);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_READ_ONLY, run(GANTRY_OP_WRITE, 0, 4 * KIB, data));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_READ_ONLY, run(GANTRY_OP_WRITE_ZEROES, 0, 4 * KIB, NULL));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_READ_ONLY, run(GANTRY_OP_DISCARD, 0, 4 * KIB, NULL));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_READ, 0, 4 * KIB, data));
	TEST_ASSERT_EQUAL_UINT(1, host.n_logged[GANTRY_LOG_ERROR]);
	TEST_ASSERT_TRUE(fake_logged(&host, "read-only until restart"));
	fake_chain_report(&chain, -1, &report);
	TEST_ASSERT_EQUAL_MEMORY("true", fake_reported(&report, "failed"), 4);
}

static void failed_stable_write_is_a_failed_sync(void)
{
	open_with("direct=false");
	script.write[0] = -EIO;
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO,
			       run_flags(GANTRY_OP_WRITE, GANTRY_IO_FUA, 0, 4 * KIB, data));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_READ_ONLY, run(GANTRY_OP_WRITE, 0, 4 * KIB, data));
}

/*
 * A full thin volume loses acknowledged data. The kernel reports the loss once, as the failure of a
 * later stable write, and the retry of that write succeeds.
 */
static void stable_write_that_gets_the_error_of_older_data_is_a_failed_sync(void)
{
	open_with("direct=false");
	script.write[0] = -ENOSPC;
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_NOSPC,
			       run_flags(GANTRY_OP_WRITE, GANTRY_IO_FUA, 0, 4 * KIB, data));
	TEST_ASSERT_EQUAL_UINT(2, script.n_write);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, run(GANTRY_OP_FLUSH, 0, 0, NULL));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_READ_ONLY, run(GANTRY_OP_WRITE, 0, 4 * KIB, data));
}

static void a_stable_write_without_space_is_no_failed_sync(void)
{
	open_with("direct=false");
	script.write[0] = script.write[1] = -ENOSPC;
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_NOSPC,
			       run_flags(GANTRY_OP_WRITE, GANTRY_IO_FUA, 0, 4 * KIB, data));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK,
			       run_flags(GANTRY_OP_WRITE, GANTRY_IO_FUA, 0, 4 * KIB, data));
	TEST_ASSERT_EQUAL_INT(1, script.stable);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_FLUSH, 0, 0, NULL));
}

/*
 * Simulates another lane whose sync fails during this write. The kernel reports the failure to that
 * lane only, so this write succeeds.
 */
static ssize_t write_while_another_lane_fails(int fd, const void *from, size_t n, off_t offset,
					      int stable)
{
	store()->failed = FILE_FAILED;
	return fake_write(fd, from, n, offset, stable);
}

static void a_stable_write_does_not_succeed_once_a_sync_has_failed(void)
{
	struct file_calls failing = calls;

	open_with("direct=false");
	failing.write = write_while_another_lane_fails;
	store()->calls = &failing;
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO,
			       run_flags(GANTRY_OP_WRITE, GANTRY_IO_FUA, 0, 4 * KIB, data));
	TEST_ASSERT_EQUAL_INT(1, script.stable);
}

/*
 * Two lanes sync concurrently: the kernel reports the failure to one, and the sync of the other
 * succeeds. So each lane also checks its witness, an open file that no IO uses.
 */
static void sync_fails_although_another_sync_got_the_error(void)
{
	open_with("direct=false");
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_FLUSH, 0, 0, NULL));
	TEST_ASSERT_TRUE(script.lost_fd != store()->fd);
	/* the witness was opened separately: a dup() of the fd of the store would be O_RDWR */
	TEST_ASSERT_EQUAL_INT(O_RDONLY, fcntl(script.lost_fd, F_GETFL) & O_ACCMODE);
	script.lost = -EIO;
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, run(GANTRY_OP_FLUSH, 0, 0, NULL));
	script.lost = 0; /* the kernel reports a loss once */
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, run(GANTRY_OP_FLUSH, 0, 0, NULL));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_READ_ONLY, run(GANTRY_OP_WRITE, 0, 4 * KIB, data));
	TEST_ASSERT_TRUE(fake_logged(&host, "read-only until restart"));
}

static void stable_write_fails_although_another_sync_got_the_error(void)
{
	open_with("direct=false");
	script.lost = -ENOSPC;
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_WRITE, 0, 4 * KIB, data));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO,
			       run_flags(GANTRY_OP_WRITE, GANTRY_IO_FUA, 0, 4 * KIB, data));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_READ_ONLY, run(GANTRY_OP_WRITE, 0, 4 * KIB, data));
}

static void fua_writes_through(void)
{
	open_with("direct=false");
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK,
			       run_flags(GANTRY_OP_WRITE, GANTRY_IO_FUA, 0, 4 * KIB, data));
	TEST_ASSERT_EQUAL_INT(1, script.stable);
	TEST_ASSERT_EQUAL_UINT(0, script.n_sync);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_WRITE, 0, 4 * KIB, data));
	TEST_ASSERT_EQUAL_INT(0, script.stable);
}

static void fua_syncs_where_stable_writes_are_not_supported(void)
{
	open_with("direct=false");
	script.write[0] = -EOPNOTSUPP;
	for (unsigned i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK,
				       run_flags(GANTRY_OP_WRITE, GANTRY_IO_FUA, 0, 4 * KIB, data));
	TEST_ASSERT_EQUAL_UINT(3, script.n_write);
	TEST_ASSERT_EQUAL_UINT(2, script.n_sync);
}

/*
 * Direct IO bypasses the page cache, but ends in the cache of the disk. Only a sync or a stable
 * write flushes the cache of the disk.
 */
static void direct_io_alone_makes_nothing_stable(void)
{
	open_with("direct=true");
	if (!store()->direct)
		TEST_IGNORE_MESSAGE("no direct IO here");
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_WRITE, 0, 4 * KIB, data));
	TEST_ASSERT_EQUAL_INT(0, script.stable);
	TEST_ASSERT_EQUAL_UINT(0, script.n_sync);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_FLUSH, 0, 0, NULL));
	TEST_ASSERT_EQUAL_UINT(1, script.n_sync);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK,
			       run_flags(GANTRY_OP_WRITE, GANTRY_IO_FUA, 0, 4 * KIB, data));
	TEST_ASSERT_EQUAL_INT(1, script.stable);
}

static void without_fsync_nothing_waits_for_the_disk(void)
{
	open_with("fsync=false");
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK,
			       run_flags(GANTRY_OP_WRITE, GANTRY_IO_FUA, 0, 4 * KIB, data));
	TEST_ASSERT_EQUAL_INT(0, script.stable);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_FLUSH, 0, 0, NULL));
	TEST_ASSERT_EQUAL_UINT(0, script.n_sync);
}

static void zeroes_are_written_where_they_cannot_be_allocated(void)
{
	open_with("direct=false");
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_WRITE_ZEROES, 0, 512 * KIB, NULL));
	TEST_ASSERT_EQUAL_INT(FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, script.mode);
	TEST_ASSERT_EQUAL_UINT(0, script.n_write);
	script.allocate[1] = -EOPNOTSUPP;
	for (unsigned i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK,
				       run(GANTRY_OP_WRITE_ZEROES, 0, 512 * KIB, NULL));
	TEST_ASSERT_EQUAL_UINT(2, script.n_allocate);
	TEST_ASSERT_EQUAL_UINT(4, script.n_write);
	TEST_ASSERT_EQUAL_UINT64(1024 * KIB, script.written);
}

static void discard_is_a_hint(void)
{
	open_with("direct=false");
	script.allocate[0] = -EOPNOTSUPP;
	script.allocate[1] = -EIO;
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_DISCARD, 0, 64 * KIB, NULL));
	TEST_ASSERT_EQUAL_INT(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, script.mode);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, run(GANTRY_OP_DISCARD, 0, 64 * KIB, NULL));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(errno_becomes_status);
	RUN_TEST(short_results_continue_with_the_remaining_bytes);
	RUN_TEST(short_direct_write_continues_at_a_block);
	RUN_TEST(no_progress_twice_is_an_error);
	RUN_TEST(io_rejected_with_eagain_is_retried_three_times);
	RUN_TEST(failed_sync_makes_the_volume_read_only_for_good);
	RUN_TEST(failed_stable_write_is_a_failed_sync);
	RUN_TEST(stable_write_that_gets_the_error_of_older_data_is_a_failed_sync);
	RUN_TEST(a_stable_write_without_space_is_no_failed_sync);
	RUN_TEST(a_stable_write_does_not_succeed_once_a_sync_has_failed);
	RUN_TEST(sync_fails_although_another_sync_got_the_error);
	RUN_TEST(stable_write_fails_although_another_sync_got_the_error);
	RUN_TEST(fua_writes_through);
	RUN_TEST(fua_syncs_where_stable_writes_are_not_supported);
	RUN_TEST(direct_io_alone_makes_nothing_stable);
	RUN_TEST(without_fsync_nothing_waits_for_the_disk);
	RUN_TEST(zeroes_are_written_where_they_cannot_be_allocated);
	RUN_TEST(discard_is_a_hint);
	return UNITY_END();
}
