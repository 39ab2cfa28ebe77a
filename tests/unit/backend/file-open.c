/* SPDX-License-Identifier: BSD-3-Clause */
/* The file backend opens files and block devices, and rejects what it cannot use safely. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "file.h"

void setUp(void)
{
	fake_host_init(&host, "test");
	fake_chain_init(&chain, &host);
	folder_make();
}

void tearDown(void)
{
	fake_chain_fini(&chain);
	folder_remove();
}

static void refused(int rc, const char *setting, const char *text)
{
	TEST_ASSERT_EQUAL_INT(rc, TRY(setting));
	TEST_ASSERT_EQUAL_UINT(1, host.n_logged[GANTRY_LOG_ERROR]);
	if (!fake_logged(&host, text))
		TEST_FAIL_MESSAGE(host.log);
}

static void missing_file_is_refused_with_advice(void)
{
	refused(-ENOENT, "size=1MiB", "create = true");
	TEST_ASSERT_TRUE(fake_logged(&host, path));
}

static void directory_is_refused(void)
{
	snprintf(path_setting, sizeof path_setting, "path=%s", dir);
	refused(-EISDIR, "size=1MiB", "is a directory");
}

static void special_file_is_refused(void)
{
	snprintf(path_setting, sizeof path_setting, "path=/dev/null");
	refused(-EINVAL, "size=1MiB", "is a special file");
}

static void fifo_is_refused_without_blocking(void)
{
	TEST_ASSERT_EQUAL_INT(0, mkfifo(path, 0600));
	refused(-EINVAL, "read_only=true", "is a special file");
}

static void too_small_file_is_refused(void)
{
	volume_make(64 * KIB);
	refused(-EINVAL, "size=1MiB", "has 65536 bytes");
}

static void empty_file_is_refused(void)
{
	volume_make(0);
	refused(-EINVAL, "size=0", "is empty");
}

static void size_that_is_no_multiple_of_the_block_is_refused(void)
{
	volume_make(64 * KIB + 512);
	refused(-EINVAL, "block=4KiB", "not a multiple");
}

static void odd_block_is_refused(void)
{
	volume_make(64 * KIB);
	refused(-EINVAL, "block=1000", "power of two");
}

static void volume_has_the_size_of_the_file_or_of_the_option(void)
{
	struct gantry_volume_info v;

	volume_make(MIB);
	OPEN("block=512");
	chain.backend_ops->volume(chain.backend, &v);
	TEST_ASSERT_EQUAL_UINT64(MIB, v.size);
	TEST_ASSERT_EQUAL_UINT(512, v.block_size);
	TEST_ASSERT_EQUAL_UINT(0, v.flags);
	fake_chain_fini(&chain);

	fake_chain_init(&chain, &host);
	OPEN("size=512KiB");
	chain.backend_ops->volume(chain.backend, &v);
	TEST_ASSERT_EQUAL_UINT64(512 * KIB, v.size);
}

static void create_makes_and_extends_but_never_cuts(void)
{
	struct stat st;

	OPEN("create=true", "size=64KiB");
	fake_chain_fini(&chain);
	TEST_ASSERT_EQUAL_INT(0, stat(path, &st));
	TEST_ASSERT_EQUAL_INT64(64 * KIB, st.st_size);
	TEST_ASSERT_EQUAL_INT(0600, st.st_mode & 0777);

	fake_chain_init(&chain, &host);
	OPEN("create=true", "size=128KiB");
	fake_chain_fini(&chain);
	fake_chain_init(&chain, &host);
	OPEN("create=true", "size=32KiB");
	TEST_ASSERT_EQUAL_INT(0, stat(path, &st));
	TEST_ASSERT_EQUAL_INT64(128 * KIB, st.st_size);
}

static void second_owner_is_rejected_until_the_first_closes(void)
{
	struct fake_chain second;

	volume_make(MIB);
	OPEN("engine=auto");
	fake_chain_init(&second, &host);
	TEST_ASSERT_EQUAL_INT(
		-EBUSY, fake_chain_backend(&second, fake_plugin("file"),
					   fake_conf(fake_plugin("file"), path_setting, NULL)));
	TEST_ASSERT_TRUE(fake_logged(&host, "in use by another process"));
	TEST_ASSERT_TRUE(fake_logged(&host, "lock_wait"));
	TEST_ASSERT_TRUE(fake_logged(&host, path));
	fake_chain_fini(&chain);
	TEST_ASSERT_EQUAL_INT(
		0, fake_chain_backend(&second, fake_plugin("file"),
				      fake_conf(fake_plugin("file"), path_setting, NULL)));
	fake_chain_fini(&second);
}

static int lock_fd;
static unsigned n_asked;

/* The owner of the lock releases it when the backend reads the clock for the third time. */
static uint64_t owner_leaves(const struct gantry_host *pub)
{
	(void)pub;
	if (++n_asked == 3)
		close(lock_fd);
	return n_asked * 1000000u;
}

static void lock_wait_waits_for_the_owner_to_leave(void)
{
	volume_make(MIB);
	lock_fd = open(path, O_RDWR | O_CLOEXEC);
	TEST_ASSERT_EQUAL_INT(0, flock(lock_fd, LOCK_EX));
	n_asked = 0;
	host.pub.now_ns = owner_leaves;
	OPEN("lock_wait=1s");
	TEST_ASSERT_TRUE(n_asked >= 3);
}

static void readers_share_a_volume_and_exclude_writers(void)
{
	struct fake_chain second;

	volume_make(MIB);
	OPEN("read_only=true");
	fake_chain_init(&second, &host);
	TEST_ASSERT_EQUAL_INT(0, fake_chain_backend(&second, fake_plugin("file"),
						    fake_conf(fake_plugin("file"), path_setting,
							      "read_only=true", NULL)));
	fake_chain_fini(&second);
	fake_chain_init(&second, &host);
	TEST_ASSERT_EQUAL_INT(
		-EBUSY, fake_chain_backend(&second, fake_plugin("file"),
					   fake_conf(fake_plugin("file"), path_setting, NULL)));
}

static void read_only_volume_refuses_writes(void)
{
	static uint8_t data[4 * KIB] __attribute__((aligned(4096)));
	struct gantry_volume_info v;

	volume_make(MIB);
	OPEN("read_only=true");
	chain.backend_ops->volume(chain.backend, &v);
	TEST_ASSERT_EQUAL_UINT(GANTRY_VOLUME_READ_ONLY, v.flags);
	TEST_ASSERT_FALSE(v.ops & 1u << GANTRY_OP_WRITE);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_READ, 0, sizeof data, data));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_READ_ONLY, run(GANTRY_OP_WRITE, 0, sizeof data, data));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_FLUSH, 0, 0, NULL));
}

/* From now on, io_uring_setup() fails with this error in this process. */
static int forbid_rings(int err)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof code / sizeof *code, code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

static int without_rings(int err)
{
	static uint8_t out[4 * KIB] __attribute__((aligned(4096))),
		in[4 * KIB] __attribute__((aligned(4096)));
	struct fake_report report;

	memset(out, 0x5a, sizeof out);
	if (forbid_rings(err))
		return 77;
	if (TRY("engine=auto"))
		return 1;
	fake_chain_report(&chain, -1, &report);
	if (strncmp(fake_reported(&report, "engine"), "sync\n", 5) != 0)
		return 2;
	if (!fake_logged(&host, strerror(err)) ||
	    fake_logged(&host, "LimitMEMLOCK") != (err == ENOMEM))
		return 5;
	if (run(GANTRY_OP_WRITE, 0, sizeof out, out) || run(GANTRY_OP_READ, 0, sizeof in, in))
		return 3;
	fake_chain_fini(&chain);
	return memcmp(in, out, sizeof in) ? 4 : 0;
}

static void without_io_uring_the_sync_engine_serves(void)
{
	static const int errors[] = {EPERM, ENOSYS, ENOMEM};
	int status;

#ifndef HAVE_LIBURING
	TEST_IGNORE_MESSAGE("built without io_uring");
#endif
	volume_make(MIB);
	for (unsigned i = 0; i < 3; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(without_rings(errors[i]));
		TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			TEST_IGNORE_MESSAGE("no seccomp filters here");
		TEST_ASSERT_EQUAL_INT(0, status);
	}
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(missing_file_is_refused_with_advice);
	RUN_TEST(directory_is_refused);
	RUN_TEST(special_file_is_refused);
	RUN_TEST(fifo_is_refused_without_blocking);
	RUN_TEST(too_small_file_is_refused);
	RUN_TEST(empty_file_is_refused);
	RUN_TEST(size_that_is_no_multiple_of_the_block_is_refused);
	RUN_TEST(odd_block_is_refused);
	RUN_TEST(volume_has_the_size_of_the_file_or_of_the_option);
	RUN_TEST(create_makes_and_extends_but_never_cuts);
	RUN_TEST(second_owner_is_rejected_until_the_first_closes);
	RUN_TEST(lock_wait_waits_for_the_owner_to_leave);
	RUN_TEST(readers_share_a_volume_and_exclude_writers);
	RUN_TEST(read_only_volume_refuses_writes);
	RUN_TEST(without_io_uring_the_sync_engine_serves);
	return UNITY_END();
}
