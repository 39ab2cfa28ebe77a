/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "rig.h"

#define SIZE (1u << 20)

static char path[64];
static uint8_t content[2 * SIZE];

/*
 * If `active`, fstat() reports files as block devices. fdatasync() is counted in `syncs`, and fails
 * with `error` if that is not 0.
 */
static struct {
	int active, syncs, error;
} device;

__attribute__((visibility("default"))) int fstat(int fd, struct stat *st)
{
	int rc = fstatat(fd, "", st, AT_EMPTY_PATH);

	if (!rc && device.active)
		st->st_mode = (st->st_mode & ~(mode_t)S_IFMT) | S_IFBLK;
	return rc;
}

__attribute__((visibility("default"))) int fdatasync(int fd)
{
	(void)fd;
	device.syncs++;
	errno = device.error;
	return device.error ? -1 : 0;
}

/*
 * Create a file of `size` bytes. Of every three blocks of 64 KiB, the first block is zero. Sets
 * `path`.
 */
static void make_file(uint32_t size)
{
	int fd;

	snprintf(path, sizeof(path), "initiator-copy.XXXXXX");
	fd = mkostemp(path, O_CLOEXEC);
	TEST_ASSERT_TRUE(fd >= 0);
	for (uint32_t i = 0; i < size; i++)
		content[i] = i / 65536 % 3 ? (uint8_t)(i * 7 + i / 251) : 0;
	TEST_ASSERT_EQUAL_INT64(size, write(fd, content, size));
	close(fd);
}

static char *setting(const char *name, const char *value)
{
	static char text[2][128];
	static int which;

	which = !which;
	snprintf(text[which], sizeof(text[0]), "%s=%s", name, value);
	return text[which];
}

static int copy_in(uint32_t n_lanes, uint32_t file_bytes, const char *more)
{
	int status;

	make_file(file_bytes);
	rig_init(n_lanes, SIZE, 4096);
	memset(rig.rh.data, 0xee, SIZE);
	status = rig_run(
		RIG_CONF(setting("copy.from", path), "copy.block=64KiB", "copy.depth=3", more));
	unlink(path);
	return status;
}

static void expect_volume(uint32_t size)
{
	uint32_t padded = (size + 4095) / 4096 * 4096;

	TEST_ASSERT_EQUAL_INT(0, memcmp(content, rig.rh.data, size));
	for (uint32_t i = size; i < padded; i++)
		TEST_ASSERT_EQUAL_UINT(0, rig.rh.data[i]);
	for (uint32_t i = padded; i < SIZE; i++)
		TEST_ASSERT_EQUAL_UINT(0xee, rig.rh.data[i]);
}

static void test_file_into_volume(void)
{
	static const uint32_t sizes[] = {SIZE, SIZE - 5, 300001, 65536, 1, 0};

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (uint32_t n_lanes = 1; n_lanes <= 3; n_lanes++) {
			TEST_ASSERT_EQUAL_INT(0, copy_in(n_lanes, sizes[i], "copy.sparse=false"));
			expect_volume(sizes[i]);
			TEST_ASSERT_EQUAL_UINT64(n_lanes, rig.rh.n_ops[GANTRY_OP_FLUSH]);
			if (sizes[i])
				TEST_ASSERT_EQUAL_UINT64(sizes[i], reported("progress.done"));
		}
	}
}

static void test_zeroes_are_not_sent(void)
{
	TEST_ASSERT_EQUAL_INT(0, copy_in(1, SIZE, "copy.sparse=true"));
	expect_volume(SIZE);
	TEST_ASSERT_EQUAL_UINT64(6, rig.rh.n_ops[GANTRY_OP_WRITE_ZEROES]);
	TEST_ASSERT_EQUAL_UINT64(10, rig.rh.n_ops[GANTRY_OP_WRITE]);
}

static void test_a_file_that_is_too_large_writes_nothing(void)
{
	TEST_ASSERT_EQUAL_INT(1, copy_in(1, SIZE + 1, "copy.sparse=false"));
	TEST_ASSERT_TRUE(fake_logged(&rig.host, "has 1048577 bytes, the volume only 1048576"));
	expect_volume(0);
}

static void test_missing_source_file_is_an_error(void)
{
	rig_init(1, SIZE, 4096);
	TEST_ASSERT_EQUAL_INT(-ENOENT, rig_open(RIG_CONF("copy.from=no/such/file")));
	TEST_ASSERT_TRUE(fake_logged(&rig.host, "cannot open no/such/file: No such file"));
	TEST_ASSERT_EQUAL_INT(-EISDIR, rig_open(RIG_CONF("copy.from=.")));
}

/*
 * The other end of the FIFO is not open. The role must not block in open(), because the process
 * could not be stopped.
 */
static void test_a_fifo(void)
{
	snprintf(path, sizeof(path), "initiator-fifo.%d", (int)getpid());
	TEST_ASSERT_EQUAL_INT(0, mkfifo(path, 0600));
	alarm(60);
	rig_init(1, SIZE, 4096);
	TEST_ASSERT_EQUAL_INT(-EINVAL, rig_open(RIG_CONF(setting("copy.from", path))));
	TEST_ASSERT_EQUAL_INT(1, rig_run(RIG_CONF(setting("copy.to", path))));
	alarm(0);
	unlink(path);
	TEST_ASSERT_TRUE(
		fake_logged(&rig.host, "only a regular file or a block device can be copied"));
}

static void test_an_error_ends_the_copy(void)
{
	make_file(SIZE);
	rig_init(1, SIZE, 4096);
	fake_role_fault(&rig.rh, (struct fake_fault){.kind = FAKE_STATUS,
						     .opcode = GANTRY_OP_WRITE,
						     .nth = 2,
						     .status = GANTRY_S_NOSPC});
	TEST_ASSERT_EQUAL_INT(1, rig_run(RIG_CONF(setting("copy.from", path), "copy.depth=1",
						  "copy.block=64KiB", "continue_on_error=true")));
	unlink(path);
	TEST_ASSERT_EQUAL_UINT64(2, rig.rh.n_ops[GANTRY_OP_WRITE]);
	TEST_ASSERT_EQUAL_UINT64(0, rig.rh.n_ops[GANTRY_OP_FLUSH]);
	TEST_ASSERT_EQUAL_UINT64(1, reported("errors.NOSPC"));
}

/* Copy the volume to a file that is longer than the copy. size 0: the whole volume. */
static void copy_out(uint32_t n_lanes, uint32_t size, const char *more, uint64_t max_blocks)
{
	static uint8_t back[2 * SIZE];
	char text[32];
	struct stat st;
	int fd;

	make_file(2 * SIZE);
	rig_init(n_lanes, SIZE, 512);
	memcpy(rig.rh.data, content, SIZE);
	snprintf(text, sizeof(text), "copy.size=%u", size);
	TEST_ASSERT_EQUAL_INT(
		0, rig_run(RIG_CONF(setting("copy.to", path), "copy.block=64KiB", text, more)));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	TEST_ASSERT_EQUAL_INT(0, fstat(fd, &st));
	TEST_ASSERT_EQUAL_INT64(size ? size : SIZE, st.st_size);
	TEST_ASSERT_EQUAL_INT64(st.st_size, read(fd, back, sizeof(back)));
	TEST_ASSERT_EQUAL_INT(0, memcmp(back, content, (size_t)st.st_size));
	TEST_ASSERT_TRUE((uint64_t)st.st_blocks <= max_blocks);
	close(fd);
	unlink(path);
}

static void test_volume_into_file(void)
{
	copy_out(1, 0, "copy.sparse=false", UINT64_MAX);
	copy_out(3, 0, "copy.sparse=false", UINT64_MAX);
	copy_out(3, 100001, "copy.sparse=false", UINT64_MAX);
	copy_out(2, 0, "copy.sparse=true", 11 * 65536 / 512);
}

/* Copy the volume to a simulated block device. Returns the exit status. */
static int copy_to_device(uint32_t n_lanes, int sync_error)
{
	int status;

	make_file(2 * SIZE);
	rig_init(n_lanes, SIZE, 512);
	device.active = 1;
	device.syncs = 0;
	device.error = sync_error;
	status = rig_run(RIG_CONF(setting("copy.to", path), "copy.block=64KiB"));
	device.active = device.error = 0;
	unlink(path);
	return status;
}

/* Data in the page cache of a device can still be lost, so the role must sync the device. */
static void test_a_device_is_synced(void)
{
	TEST_ASSERT_EQUAL_INT(0, copy_to_device(2, 0));
	TEST_ASSERT_EQUAL_INT(2, device.syncs);
	TEST_ASSERT_EQUAL_INT(1, copy_to_device(1, EIO));
	TEST_ASSERT_TRUE(fake_logged(&rig.host, "cannot sync"));
}

static void test_copy_beyond_the_end_of_the_volume_fails(void)
{
	rig_init(1, SIZE, 4096);
	TEST_ASSERT_EQUAL_INT(1, rig_run(RIG_CONF("copy.to=never-made", "copy.size=2MiB")));
	TEST_ASSERT_TRUE(
		fake_logged(&rig.host, "the volume has 1048576 bytes, less than the 2097152"));
	TEST_ASSERT_EQUAL_INT(-1, access("never-made", F_OK));
}

/* -- holes -- */

/* Give the file at `path` holes where `content` has zeroes. */
static void punch_holes(uint32_t size)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	for (uint32_t at = 0; at < size; at += 3 * 65536)
		TEST_ASSERT_EQUAL_INT(
			0, fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, 65536));
	close(fd);
}

static int copy_file_with_holes(unsigned without_op)
{
	int status;

	make_file(SIZE - 5);
	punch_holes(SIZE - 5);
	rig_init(2, SIZE, 4096);
	rig.rh.volume.ops &= ~(1u << without_op);
	memset(rig.rh.data, 0xee, SIZE);
	status = rig_run(RIG_CONF(setting("copy.from", path), "copy.block=64KiB"));
	unlink(path);
	return status;
}

static void test_holes_of_the_file_are_not_read(void)
{
	TEST_ASSERT_EQUAL_INT(0, copy_file_with_holes(GANTRY_OP_NOP));
	expect_volume(SIZE - 5);
	TEST_ASSERT_EQUAL_UINT64(6, rig.rh.n_ops[GANTRY_OP_WRITE_ZEROES]);
	TEST_ASSERT_EQUAL_UINT64(SIZE - 5, reported("progress.done"));
	TEST_ASSERT_EQUAL_INT(0, copy_file_with_holes(GANTRY_OP_WRITE_ZEROES));
	expect_volume(SIZE - 5);
	TEST_ASSERT_EQUAL_UINT64(0, rig.rh.n_ops[GANTRY_OP_WRITE_ZEROES]);
}

static void expect_file(uint32_t size)
{
	static uint8_t back[SIZE];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	TEST_ASSERT_EQUAL_INT64(size, read(fd, back, sizeof(back)));
	TEST_ASSERT_EQUAL_INT(0, memcmp(back, rig.rh.data, size));
	close(fd);
}

static void test_holes_of_the_volume_are_not_read(void)
{
	for (int bad = 0; bad < 2; bad++) {
		make_file(SIZE);
		rig_init(2, SIZE, 512);
		rig.rh.bad_extents = bad;
		memcpy(rig.rh.data, content, SIZE);
		TEST_ASSERT_EQUAL_INT(
			0, rig_run(RIG_CONF(setting("copy.to", path), "copy.block=64KiB")));
		expect_file(SIZE);
		unlink(path);
		TEST_ASSERT_EQUAL_UINT64(bad ? 16 : 10, rig.rh.n_ops[GANTRY_OP_READ]);
		TEST_ASSERT_EQUAL_UINT64(SIZE, reported("progress.done"));
	}
}

/* -- a copy that continues -- */

#define STATE "initiator-copy.state"
#define SEGMENTS "copy.state=" STATE, "copy.segment=64KiB", "copy.block=16KiB", "copy.depth=2"

static const char *const direction[] = {"copy.from", "copy.to"};

/* Prepare a volume and a file with different content; the copy must make them the same. */
static void begin_copy(int out)
{
	unlink(STATE);
	make_file(SIZE);
	rig_init(2, SIZE, 512);
	memset(rig.rh.volume.uuid, 7, sizeof(rig.rh.volume.uuid));
	if (!out)
		memset(rig.rh.data, 0xee, SIZE);
	else
		memcpy(rig.rh.data, content, SIZE);
	rig.rh.data[SIZE / 2] ^= (uint8_t)out;
}

static int run_copy(int out, const char *more)
{
	return rig_run(RIG_CONF(setting(direction[out], path), SEGMENTS, more));
}

static int run_failing_copy(int out, unsigned opcode, uint64_t nth)
{
	fake_role_fault(&rig.rh, (struct fake_fault){.kind = FAKE_STATUS,
						     .opcode = opcode,
						     .nth = nth,
						     .status = GANTRY_S_IO});
	return run_copy(out, "copy.verify=false");
}

static void end_copy(void)
{
	TEST_ASSERT_EQUAL_INT(-1, access(STATE, F_OK));
	expect_file(SIZE);
	unlink(path);
}

static void test_an_interrupted_copy_continues(void)
{
	for (int out = 0; out < 2; out++) {
		uint64_t first;

		begin_copy(out);
		TEST_ASSERT_EQUAL_INT(
			1, run_failing_copy(out, out ? GANTRY_OP_READ : GANTRY_OP_WRITE, 30));
		first = reported("progress.done");
		TEST_ASSERT_EQUAL_INT(0, access(STATE, F_OK));
		TEST_ASSERT_TRUE(fake_logged(&rig.host, "the copy is incomplete (segments="));
		TEST_ASSERT_EQUAL_INT(0, run_copy(out, "copy.verify=false"));
		TEST_ASSERT_TRUE(fake_logged(&rig.host, "continuing (copied="));
		TEST_ASSERT_TRUE(reported("progress.done") < SIZE);
		TEST_ASSERT_TRUE(first + reported("progress.done") >= SIZE);
		end_copy();
	}
}

/* Data in the cache of the store can be lost, so the segment is not copied before the flush. */
static void test_a_segment_whose_flush_failed_is_copied_again(void)
{
	begin_copy(0);
	rig.rh.inline_completion = 1; /* the lane continues in the turn in which the flush failed */
	fake_role_fault(&rig.rh, (struct fake_fault){.kind = FAKE_STATUS,
						     .opcode = GANTRY_OP_FLUSH,
						     .nth = 1,
						     .more = 100,
						     .status = GANTRY_S_IO});
	TEST_ASSERT_EQUAL_INT(1, run_copy(0, "copy.verify=false"));
	memset(rig.rh.data, 0xee, SIZE);
	memset(rig.rh.faults, 0, sizeof(rig.rh.faults));
	TEST_ASSERT_EQUAL_INT(0, run_copy(0, "copy.verify=false"));
	TEST_ASSERT_EQUAL_UINT64(SIZE, reported("progress.done"));
	end_copy();

	begin_copy(1);
	device.error = EIO;
	TEST_ASSERT_EQUAL_INT(1, run_copy(1, "copy.verify=false"));
	device.error = 0;
	TEST_ASSERT_EQUAL_INT(0, run_copy(1, "copy.verify=false"));
	TEST_ASSERT_EQUAL_UINT64(SIZE, reported("progress.done"));
	end_copy();
}

/* Overwrite the segments of the file that the state file does not record. */
static void fill_other_segments(void)
{
	static uint8_t garbage[65536];
	int state = open(STATE, O_RDONLY | O_CLOEXEC), file = open(path, O_WRONLY | O_CLOEXEC);
	uint8_t copied;

	memset(garbage, 0x55, sizeof(garbage));
	for (int i = 0; i < 16; i++) {
		TEST_ASSERT_EQUAL_INT64(1, pread(state, &copied, 1, 112 + i));
		if (!copied)
			TEST_ASSERT_EQUAL_INT64(65536, pwrite(file, garbage, 65536, i * 65536));
	}
	close(state);
	close(file);
}

/* What an interrupted copy has left in the file does not stay where the volume has zeroes. */
static void test_holes_replace_what_the_file_had(void)
{
	begin_copy(1);
	TEST_ASSERT_EQUAL_INT(1, run_failing_copy(1, GANTRY_OP_READ, 1));
	fill_other_segments();
	TEST_ASSERT_EQUAL_INT(0, run_copy(1, "copy.sparse=true"));
	end_copy();
}

static void expect_rejected(int out, const char *difference, const char *more)
{
	char text[128];

	snprintf(text, sizeof(text), "belongs to another copy (difference=%s)", difference);
	TEST_ASSERT_EQUAL_INT(1, run_copy(out, more));
	TEST_ASSERT_TRUE_MESSAGE(fake_logged(&rig.host, text), difference);
	TEST_ASSERT_EQUAL_INT(0, access(STATE, F_OK));
}

static void test_the_state_of_another_copy_is_rejected(void)
{
	static const uint8_t garbage[100] = "not a state file";
	char first[sizeof(path)];
	int fd;

	begin_copy(0);
	TEST_ASSERT_EQUAL_INT(1, run_failing_copy(0, GANTRY_OP_WRITE, 30));
	expect_rejected(0, "verify", "copy.verify=true");
	expect_rejected(0, "bytes to copy", "copy.size=512KiB");
	rig.rh.volume.uuid[3]++;
	expect_rejected(0, "volume", "copy.verify=false");
	rig.rh.volume.uuid[3]--;
	rig.rh.volume.flags |= GANTRY_VOLUME_VOLATILE;
	rig.rh.volume.verifier = 5;
	expect_rejected(0, "content of the volume", "copy.verify=false");
	rig.rh.volume.flags = 0;
	expect_rejected(1, "direction", "copy.verify=false");
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	TEST_ASSERT_EQUAL_INT64(1, write(fd, "x", 1));
	close(fd);
	expect_rejected(0, "content of the file", "copy.size=1MiB");
	strcpy(first, path);
	make_file(SIZE);
	expect_rejected(0, "file", "copy.verify=false");
	unlink(first);
	fd = open(STATE, O_WRONLY | O_TRUNC | O_CLOEXEC);
	TEST_ASSERT_EQUAL_INT64(100, write(fd, garbage, 100));
	expect_rejected(0, "format", "copy.verify=false");
	close(fd);
	unlink(path);
	unlink(STATE);
}

static void test_a_damaged_state_is_rejected(void)
{
	int fd;

	begin_copy(0);
	TEST_ASSERT_EQUAL_INT(1, run_failing_copy(0, GANTRY_OP_WRITE, 30));
	fd = open(STATE, O_WRONLY | O_CLOEXEC);
	TEST_ASSERT_EQUAL_INT64(1, pwrite(fd, "x", 1, 116));
	expect_rejected(0, "length or content", "copy.verify=false");
	TEST_ASSERT_EQUAL_INT(0, ftruncate(fd, 116));
	expect_rejected(0, "length or content", "copy.verify=false");
	close(fd);
	unlink(path);
	unlink(STATE);
}

/* The size of a destination shows that it is not the file of the interrupted copy. */
static void test_a_destination_without_its_size_is_rejected(void)
{
	begin_copy(1);
	TEST_ASSERT_EQUAL_INT(1, run_failing_copy(1, GANTRY_OP_READ, 30));
	TEST_ASSERT_EQUAL_INT(0, truncate(path, 0));
	expect_rejected(1, "content of the file", "copy.verify=false");
	unlink(path);
	unlink(STATE);
}

/* A copy without the state file has replaced the content that the state file records. */
static void test_a_destination_that_another_copy_has_truncated_is_rejected(void)
{
	uint8_t id[16];

	begin_copy(1);
	TEST_ASSERT_EQUAL_INT(1, run_failing_copy(1, GANTRY_OP_READ, 30));
	if (getxattr(path, "user.gantry.copy", id, sizeof(id)) < 0)
		TEST_IGNORE_MESSAGE("the file system has no attributes");
	TEST_ASSERT_EQUAL_INT(0, rig_run(RIG_CONF(setting("copy.to", path), "copy.size=1MiB")));
	TEST_ASSERT_EQUAL_INT(-1, getxattr(path, "user.gantry.copy", id, sizeof(id)));
	expect_rejected(1, "another copy has truncated the file", "copy.verify=false");
	unlink(path);
	unlink(STATE);
}

/* A file system without a partition table begins with zeroes. */
static void test_a_file_that_is_no_state_is_kept(void)
{
	struct stat st;

	begin_copy(1);
	close(open(STATE, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	TEST_ASSERT_EQUAL_INT(0, truncate(STATE, 4096));
	expect_rejected(1, "format", "copy.verify=false");
	TEST_ASSERT_EQUAL_INT(0, stat(STATE, &st));
	TEST_ASSERT_EQUAL_INT64(4096, st.st_size);
	unlink(path);
	unlink(STATE);
}

/* The record of a complete copy is no record, even if the state file cannot be removed. */
static void test_the_state_of_a_complete_copy_is_empty(void)
{
	struct stat st;

	begin_copy(0);
	TEST_ASSERT_EQUAL_INT(0, symlink("initiator-copy.real", STATE));
	TEST_ASSERT_EQUAL_INT(0, run_copy(0, "copy.verify=false"));
	TEST_ASSERT_EQUAL_INT(0, stat("initiator-copy.real", &st));
	TEST_ASSERT_EQUAL_INT64(0, st.st_size);
	unlink("initiator-copy.real");
	end_copy();
}

/* Another copy has made a state file of the same name meanwhile. */
static void exchange_state(struct fake_role_host *rh, const struct gantry_io *io)
{
	if (io->opcode != GANTRY_OP_FLUSH || rh->n_ops[GANTRY_OP_FLUSH] != 1)
		return;
	unlink(STATE);
	close(open(STATE, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

static void test_the_state_of_another_copy_is_not_removed(void)
{
	begin_copy(0);
	rig.rh.seen = exchange_state;
	TEST_ASSERT_EQUAL_INT(0, run_copy(0, "copy.verify=false"));
	TEST_ASSERT_EQUAL_INT(0, access(STATE, F_OK));
	unlink(STATE);
	end_copy();
}

/* Extents save time: without them, the copy reads everything. */
static void test_failed_queries_for_extents(void)
{
	begin_copy(1);
	fake_role_fault(&rig.rh, (struct fake_fault){.kind = FAKE_STATUS,
						     .opcode = GANTRY_OP_EXTENTS,
						     .nth = 1,
						     .more = 100,
						     .status = GANTRY_S_IO});
	TEST_ASSERT_EQUAL_INT(0, run_copy(1, "copy.verify=true"));
	TEST_ASSERT_EQUAL_UINT64(2 * 64, rig.rh.n_ops[GANTRY_OP_READ]);
	end_copy();
	begin_copy(1);
	fake_role_fault(&rig.rh, (struct fake_fault){.kind = FAKE_STATUS,
						     .opcode = GANTRY_OP_EXTENTS,
						     .nth = 1,
						     .status = GANTRY_S_TIMEOUT});
	TEST_ASSERT_EQUAL_INT(1, run_copy(1, "copy.verify=true"));
	unlink(path);
	unlink(STATE);
}

/* -- copy.verify -- */

static void test_verify_finds_nothing_in_a_good_copy(void)
{
	for (int out = 0; out < 2; out++) {
		begin_copy(out);
		TEST_ASSERT_EQUAL_INT(0, run_copy(out, "copy.verify=true"));
		TEST_ASSERT_EQUAL_UINT64(SIZE, reported("progress.done"));
		TEST_ASSERT_TRUE(rig.rh.n_ops[GANTRY_OP_READ] >= 10 * 4 * (1u + (unsigned)out));
		end_copy();
	}
}

static void test_verify_finds_a_difference(void)
{
	static const struct fake_fault faults[] = {
		{.kind = FAKE_LOST, .opcode = GANTRY_OP_WRITE, .nth = 3},
		{.kind = FAKE_FLIPPED, .opcode = GANTRY_OP_WRITE, .nth = 40},
		{.kind = FAKE_FLIPPED, .opcode = GANTRY_OP_READ, .nth = 1},
	};

	for (unsigned i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		int out = faults[i].opcode == GANTRY_OP_READ;

		begin_copy(out);
		fake_role_fault(&rig.rh, faults[i]);
		TEST_ASSERT_EQUAL_INT(1, run_copy(out, "copy.verify=true"));
		TEST_ASSERT_TRUE(fake_logged(&rig.host, "and the volume differ after the copy"));
		/* the segment is not recorded: the copy repairs it */
		TEST_ASSERT_EQUAL_INT(0, run_copy(out, "copy.verify=true"));
		end_copy();
	}
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_file_into_volume);
	RUN_TEST(test_zeroes_are_not_sent);
	RUN_TEST(test_a_file_that_is_too_large_writes_nothing);
	RUN_TEST(test_missing_source_file_is_an_error);
	RUN_TEST(test_a_fifo);
	RUN_TEST(test_an_error_ends_the_copy);
	RUN_TEST(test_volume_into_file);
	RUN_TEST(test_a_device_is_synced);
	RUN_TEST(test_copy_beyond_the_end_of_the_volume_fails);
	RUN_TEST(test_holes_of_the_file_are_not_read);
	RUN_TEST(test_holes_of_the_volume_are_not_read);
	RUN_TEST(test_an_interrupted_copy_continues);
	RUN_TEST(test_a_segment_whose_flush_failed_is_copied_again);
	RUN_TEST(test_holes_replace_what_the_file_had);
	RUN_TEST(test_the_state_of_another_copy_is_rejected);
	RUN_TEST(test_a_damaged_state_is_rejected);
	RUN_TEST(test_a_destination_without_its_size_is_rejected);
	RUN_TEST(test_a_destination_that_another_copy_has_truncated_is_rejected);
	RUN_TEST(test_a_file_that_is_no_state_is_kept);
	RUN_TEST(test_the_state_of_a_complete_copy_is_empty);
	RUN_TEST(test_the_state_of_another_copy_is_not_removed);
	RUN_TEST(test_failed_queries_for_extents);
	RUN_TEST(test_verify_finds_nothing_in_a_good_copy);
	RUN_TEST(test_verify_finds_a_difference);
	return UNITY_END();
}
