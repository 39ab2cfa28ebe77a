/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
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
	return UNITY_END();
}
