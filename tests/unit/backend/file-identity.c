/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The uuid that the file backend reports, and when it changes the verifier because unflushed writes
 * can be lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "file.h"

#define UUID "0e7a1ed7-5c2c-4f5e-9a53-6d6f1c0f8b11"
#define UUID_ATTRIBUTE "user.gantry.uuid"
#define GENERATION_ATTRIBUTE "user.gantry.generation"

static char other[310];
static ssize_t sync_result;

void setUp(void)
{
	fake_host_init(&host, "test");
	fake_chain_init(&chain, &host);
	folder_make();
	snprintf(other, sizeof other, "%s.other", path);
	volume_make(MIB);
	setenv("XDG_RUNTIME_DIR", dir, 1);
	sync_result = 0;
}

/* Remove the runtime directory and its files. */
static void runtime_remove(void)
{
	char name[600];
	struct dirent *entry;
	DIR *d;

	snprintf(name, sizeof name, "%s/gantry", dir);
	d = opendir(name);
	if (!d)
		return;
	while ((entry = readdir(d)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(d), entry->d_name, 0);
	closedir(d);
	rmdir(name);
}

void tearDown(void)
{
	fake_chain_fini(&chain);
	runtime_remove();
	unlink(other);
	folder_remove();
}

static void need_attributes(void)
{
	if (setxattr(path, "user.test", "1", 1, 0))
		TEST_IGNORE_MESSAGE("the file system of TMPDIR has no user attributes");
	removexattr(path, "user.test");
}

static struct gantry_volume_info volume(void)
{
	struct gantry_volume_info v = {0};

	chain.backend_ops->volume(chain.backend, &v);
	return v;
}

/* Simulate the end of the process and the start of another one. */
static void close_volume(void)
{
	fake_chain_fini(&chain);
	fake_host_init(&host, "test");
	fake_chain_init(&chain, &host);
}

/* Open the backend with this setting, read its volume information, and close it. */
static struct gantry_volume_info volume_with(const char *setting)
{
	struct gantry_volume_info v;

	OPEN("engine=sync", setting);
	v = volume();
	close_volume();
	return v;
}

static struct gantry_volume_info volume_now(void)
{
	return volume_with("direct=false");
}

static void same_volume(const struct gantry_volume_info *a, const struct gantry_volume_info *b)
{
	TEST_ASSERT_EQUAL_MEMORY(a->uuid, b->uuid, sizeof a->uuid);
}

static int is_same_volume(const struct gantry_volume_info *a, const struct gantry_volume_info *b)
{
	return memcmp(a->uuid, b->uuid, sizeof a->uuid) == 0;
}

static void known(const struct gantry_volume_info *v)
{
	static const uint8_t none[16];

	TEST_ASSERT_TRUE(memcmp(v->uuid, none, sizeof none) != 0);
	TEST_ASSERT_TRUE(v->verifier != 0);
}

static ssize_t fake_sync(int fd)
{
	(void)fd;
	return sync_result;
}

static struct file_calls calls, file_calls_of_plugin;

static void open_with_fakes(void)
{
	OPEN("engine=sync", "direct=false");
	calls = *store()->calls;
	calls.sync = fake_sync;
	store()->calls = &calls;
}

static void fail_a_flush(void)
{
	sync_result = -EIO;
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, run(GANTRY_OP_FLUSH, 0, 0, NULL));
	sync_result = 0;
}

static void an_orderly_end_or_a_kill_changes_nothing(void)
{
	static uint8_t data[4 * KIB] __attribute__((aligned(4096)));
	struct gantry_volume_info before = volume_now(), after;
	int status = 0;
	pid_t pid;

	known(&before);
	pid = fork();
	if (pid == 0) {
		if (TRY("engine=sync") || run(GANTRY_OP_WRITE, 0, sizeof data, data))
			_exit(1);
		kill(getpid(), SIGKILL);
	}
	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
	TEST_ASSERT_TRUE(WIFSIGNALED(status));
	after = volume_now();
	same_volume(&before, &after);
	TEST_ASSERT_EQUAL_HEX64(before.verifier, after.verifier);
}

static void a_failed_sync_changes_the_verifier_at_once_and_for_the_next_start(void)
{
	struct gantry_volume_info before, failed, restarted;

	open_with_fakes();
	before = volume();
	fail_a_flush();
	failed = volume();
	close_volume();
	restarted = volume_now();
	known(&before);
	TEST_ASSERT_TRUE(before.verifier != failed.verifier);
	TEST_ASSERT_EQUAL_HEX64(failed.verifier, restarted.verifier);
	same_volume(&before, &restarted);
}

static void another_file_under_the_same_name_is_another_volume(void)
{
	struct gantry_volume_info first, second;

	need_attributes();
	first = volume_now();
	/* rename keeps the inode of the first file in use, so the new file gets another inode */
	TEST_ASSERT_EQUAL_INT(0, rename(path, other));
	volume_make(MIB);
	second = volume_now();
	known(&second);
	TEST_ASSERT_FALSE(is_same_volume(&first, &second));
	TEST_ASSERT_TRUE(first.verifier != second.verifier);
}

static void a_copy_with_its_attributes_is_the_volume_with_another_verifier(void)
{
	struct gantry_volume_info first, second;
	char command[700];

	need_attributes();
	first = volume_now();
	snprintf(command, sizeof command, "cp --preserve=xattr '%s' '%s'", path, other);
	TEST_ASSERT_EQUAL_INT(0, system(command));
	TEST_ASSERT_EQUAL_INT(0, rename(other, path));
	second = volume_now();
	known(&first);
	same_volume(&first, &second);
	TEST_ASSERT_TRUE(first.verifier != second.verifier);
}

static void uuid_of_the_option_is_used(void)
{
	static const uint8_t uuid[16] = {0x0e, 0x7a, 0x1e, 0xd7, 0x5c, 0x2c, 0x4f, 0x5e,
					 0x9a, 0x53, 0x6d, 0x6f, 0x1c, 0x0f, 0x8b, 0x11};
	struct gantry_volume_info v = volume_with("uuid=" UUID);
	void *conf = fake_conf(fake_plugin("file"), path_setting, "uuid=" UUID, NULL);
	struct gantry_check check = {.flags = 0};

	TEST_ASSERT_EQUAL_MEMORY(uuid, v.uuid, sizeof uuid);
	/* with the option uuid, the backend stores no attribute */
	TEST_ASSERT_EQUAL_INT(-1, getxattr(path, UUID_ATTRIBUTE, NULL, 0));
	fake_plugin("file")->check(conf, &check);
	v = check.volume;
	free(conf);
	TEST_ASSERT_EQUAL_MEMORY(uuid, v.uuid, sizeof uuid);
	TEST_ASSERT_EQUAL_HEX64(0, v.verifier);
}

static void an_option_that_is_no_uuid_is_refused(void)
{
	TEST_ASSERT_EQUAL_INT(-EINVAL, TRY("uuid=" UUID "0"));
	TEST_ASSERT_TRUE(fake_logged(&host, "is not a UUID"));
	TEST_ASSERT_EQUAL_INT(-EINVAL, TRY("uuid=00000000-0000-0000-0000-000000000000"));
}

static void the_uuid_is_stored_in_the_file_and_reported(void)
{
	struct gantry_volume_info v;
	struct fake_report report;
	char text[40] = "";

	need_attributes();
	v = volume_now();
	known(&v);
	TEST_ASSERT_EQUAL_INT64(36, getxattr(path, UUID_ATTRIBUTE, text, sizeof text));
	TEST_ASSERT_EQUAL_INT(0, rename(path, other));
	snprintf(path_setting, sizeof path_setting, "path=%s", other);
	OPEN("engine=sync");
	fake_chain_report(&chain, -1, &report);
	TEST_ASSERT_EQUAL_MEMORY(text, fake_reported(&report, "uuid"), 36);
	snprintf(text, sizeof text, "%016llx\n", (unsigned long long)v.verifier);
	TEST_ASSERT_EQUAL_MEMORY(text, fake_reported(&report, "verifier"), 17);
}

static void read_only_volume_stores_no_attribute(void)
{
	struct gantry_volume_info first = volume_with("read_only=true"),
				  again = volume_with("read_only=true"), elsewhere;

	known(&first);
	TEST_ASSERT_EQUAL_INT(-1, getxattr(path, UUID_ATTRIBUTE, NULL, 0));
	TEST_ASSERT_EQUAL_MEMORY(&first, &again, sizeof first);
	TEST_ASSERT_EQUAL_INT(0, rename(path, other));
	snprintf(path_setting, sizeof path_setting, "path=%s", other);
	elsewhere = volume_with("read_only=true");
	TEST_ASSERT_FALSE(is_same_volume(&first, &elsewhere));
}

static void an_attribute_that_is_no_uuid_is_refused(void)
{
	need_attributes();
	TEST_ASSERT_EQUAL_INT(0, setxattr(path, UUID_ATTRIBUTE, "rubbish", 7, 0));
	TEST_ASSERT_EQUAL_INT(-EINVAL, TRY("engine=sync"));
	TEST_ASSERT_TRUE(fake_logged(&host, "setfattr -x user.gantry.uuid"));
	TEST_ASSERT_EQUAL_INT(0, TRY("engine=sync", "uuid=" UUID));
}

static void a_generation_that_cannot_be_read_counts_as_a_loss_each_time(void)
{
	struct gantry_volume_info before, first, second;

	need_attributes();
	before = volume_now();
	TEST_ASSERT_EQUAL_INT(0, setxattr(path, GENERATION_ATTRIBUTE, "7x", 2, 0));
	first = volume_now();
	OPEN("engine=sync");
	second = volume();
	TEST_ASSERT_TRUE(fake_logged(&host, "cannot read user.gantry.generation"));
	known(&first);
	TEST_ASSERT_TRUE(before.verifier != first.verifier && first.verifier != second.verifier);
}

/* -- a failed sync -- */

static int attribute_result;
static struct gantry_io *watched;
static unsigned n_stored;

/*
 * The backend stores the generation before the IO completes and before the volume counts as failed.
 */
static int watching_set_attribute(int fd, const char *name, const char *value)
{
	TEST_ASSERT_EQUAL_STRING(GENERATION_ATTRIBUTE, name);
	TEST_ASSERT_TRUE(watched->busy);
	TEST_ASSERT_TRUE(store()->failed != FILE_FAILED);
	n_stored++;
	return attribute_result ? attribute_result
				: file_calls_of_plugin.set_attribute(fd, name, value);
}

static void failing_open(int result)
{
	open_with_fakes();
	file_calls_of_plugin = calls;
	calls.set_attribute = watching_set_attribute;
	attribute_result = result;
	n_stored = 0;
}

static void fail_a_watched_flush(void)
{
	watched = fake_io(&chain, GANTRY_OP_FLUSH, 0, 0, NULL);
	sync_result = -EIO;
	TEST_ASSERT_EQUAL_INT(0, fake_submit(watched));
	sync_result = 0;
	TEST_ASSERT_FALSE(watched->busy);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, watched->status);
}

static void generation_is_stored_before_the_failed_flush_completes(void)
{
	struct gantry_volume_info before, after;
	char text[24] = "";

	need_attributes();
	failing_open(0);
	before = volume();
	fail_a_watched_flush();
	TEST_ASSERT_EQUAL_UINT(1, n_stored);
	TEST_ASSERT_EQUAL_INT64(1, getxattr(path, GENERATION_ATTRIBUTE, text, sizeof text));
	TEST_ASSERT_EQUAL_STRING("1", text);
	TEST_ASSERT_EQUAL_UINT(1, host.n_logged[GANTRY_LOG_ERROR]);
	/* a second failed flush does not store the generation again */
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, run(GANTRY_OP_FLUSH, 0, 0, NULL));
	TEST_ASSERT_EQUAL_UINT(1, n_stored);
	close_volume();

	/* a failure after a restart is another loss */
	failing_open(0);
	after = volume();
	fail_a_watched_flush();
	TEST_ASSERT_EQUAL_INT64(1, getxattr(path, GENERATION_ATTRIBUTE, text, sizeof text));
	TEST_ASSERT_EQUAL_STRING("2", text);
	TEST_ASSERT_TRUE(volume().verifier != before.verifier &&
			 volume().verifier != after.verifier);
}

static void number_file(char *out, size_t bytes)
{
	snprintf(out, bytes, "%s/gantry/generation-%016llx", dir,
		 (unsigned long long)store()->place);
}

static void without_attributes_the_generation_is_in_the_runtime_directory(void)
{
	struct gantry_volume_info before, failed, restarted;
	char number[400];
	struct stat st;

	failing_open(-ENOTSUP);
	before = volume();
	fail_a_watched_flush();
	failed = volume();
	number_file(number, sizeof number);
	close_volume();
	restarted = volume_now();
	TEST_ASSERT_TRUE(before.verifier != failed.verifier);
	TEST_ASSERT_EQUAL_HEX64(failed.verifier, restarted.verifier);
	TEST_ASSERT_EQUAL_INT(0, stat(number, &st));
	TEST_ASSERT_EQUAL_INT(0600, st.st_mode & 0777);

	failing_open(-ENOTSUP);
	fail_a_watched_flush();
	failed = volume();
	close_volume();
	TEST_ASSERT_TRUE(failed.verifier != restarted.verifier &&
			 failed.verifier != before.verifier);
	restarted = volume_now();
	TEST_ASSERT_EQUAL_HEX64(failed.verifier, restarted.verifier);
}

static void an_attribute_that_cannot_be_synced_is_recorded_twice(void)
{
	struct gantry_volume_info failed, restarted;

	failing_open(-EIO);
	fail_a_watched_flush();
	failed = volume();
	TEST_ASSERT_TRUE(fake_logged(&host, "until the next reboot"));
	close_volume();
	restarted = volume_now();
	TEST_ASSERT_EQUAL_HEX64(failed.verifier, restarted.verifier);
}

static void a_loss_that_cannot_be_recorded_is_an_error_and_a_random_verifier(void)
{
	struct gantry_volume_info before, failed;

	setenv("XDG_RUNTIME_DIR", "/proc/nowhere", 1);
	failing_open(-ENOTSUP);
	before = volume();
	fail_a_watched_flush();
	failed = volume();
	known(&failed);
	TEST_ASSERT_TRUE(failed.verifier != before.verifier);
	TEST_ASSERT_EQUAL_UINT(2, host.n_logged[GANTRY_LOG_ERROR]);
	TEST_ASSERT_TRUE(fake_logged(&host, "a restart of the target hides the loss"));
}

static void links_in_the_runtime_directory_are_not_followed(void)
{
	char number[400];
	struct stat st;

	failing_open(-ENOTSUP);
	snprintf(number, sizeof number, "%s/gantry", dir);
	TEST_ASSERT_EQUAL_INT(0, mkdir(number, 0700));
	number_file(number, sizeof number);
	TEST_ASSERT_EQUAL_INT(0, symlink(other, number));
	fail_a_watched_flush();
	TEST_ASSERT_EQUAL_INT(-1, stat(other, &st));
	TEST_ASSERT_TRUE(fake_logged(&host, "a restart of the target hides the loss"));
}

static void a_runtime_directory_that_others_can_write_is_not_used(void)
{
	char shared[400];

	snprintf(shared, sizeof shared, "%s/gantry", dir);
	TEST_ASSERT_EQUAL_INT(0, mkdir(shared, 0700));
	TEST_ASSERT_EQUAL_INT(0, chmod(shared, 0777));
	failing_open(-ENOTSUP);
	TEST_ASSERT_TRUE(fake_logged(&host, "each restart counts as a loss"));
	fail_a_watched_flush();
	TEST_ASSERT_TRUE(fake_logged(&host, "a restart of the target hides the loss"));
}

/* -- another lane -- */

static struct second_lane {
	pthread_t thread;
	struct fake_chain chain;
	const struct gantry_backend_ops *ops;
	unsigned opcode;
	pid_t tid;
	int done;
	int too_early; /* the IO completed before the generation was stored */
	unsigned status;
} second;

static void *run_second(void *arg)
{
	static uint8_t data[4 * KIB] __attribute__((aligned(4096)));
	struct gantry_io *io = fake_io(&second.chain, second.opcode, 0,
				       second.opcode == GANTRY_OP_FLUSH ? 0 : sizeof data, data);

	__atomic_store_n(&second.tid, gettid(), __ATOMIC_RELEASE);
	fake_submit(io);
	second.status = io->status;
	second.too_early = store()->failed != FILE_FAILED;
	__atomic_store_n(&second.done, 1, __ATOMIC_RELEASE);
	return arg;
}

/*
 * Called to store the generation: starts the thread of the second lane, and returns when that
 * thread has ended or sleeps.
 */
static int meeting_set_attribute(int fd, const char *name, const char *value)
{
	char file[64], state = 'R';

	(void)fd;
	(void)name;
	(void)value;
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&second.thread, NULL, run_second, NULL));
	while (!__atomic_load_n(&second.done, __ATOMIC_ACQUIRE) && state != 'S') {
		pid_t tid = __atomic_load_n(&second.tid, __ATOMIC_ACQUIRE);
		FILE *f;

		if (!tid)
			continue;
		snprintf(file, sizeof file, "/proc/self/task/%d/stat", (int)tid);
		f = fopen(file, "r");
		if (f && fscanf(f, "%*d %*s %c", &state) != 1)
			state = 'R';
		if (f)
			fclose(f);
	}
	return 0;
}

static void meet(unsigned opcode, unsigned status)
{
	open_with_fakes();
	calls.set_attribute = meeting_set_attribute;
	second = (struct second_lane){.ops = chain.backend_ops, .opcode = opcode};
	fake_chain_init(&second.chain, &host);
	TEST_ASSERT_EQUAL_INT(0, second.ops->start(chain.backend, &second.chain.lane, FAKE_IOS,
						   &second.chain.backend_self));
	second.chain.hops[second.chain.n_hops++] = (struct gantry_hop){
		.submit = second.ops->submit, .self = second.chain.backend_self};
	fail_a_flush();
	TEST_ASSERT_EQUAL_INT(0, pthread_join(second.thread, NULL));
	second.ops->stop(second.chain.backend_self);
	TEST_ASSERT_EQUAL_UINT(status, second.status);
	TEST_ASSERT_FALSE(second.too_early);
}

static void a_flush_of_another_lane_waits_for_the_generation(void)
{
	meet(GANTRY_OP_FLUSH, GANTRY_S_IO);
}

static void a_write_of_another_lane_waits_for_the_generation(void)
{
	meet(GANTRY_OP_WRITE, GANTRY_S_READ_ONLY);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(an_orderly_end_or_a_kill_changes_nothing);
	RUN_TEST(a_failed_sync_changes_the_verifier_at_once_and_for_the_next_start);
	RUN_TEST(another_file_under_the_same_name_is_another_volume);
	RUN_TEST(a_copy_with_its_attributes_is_the_volume_with_another_verifier);
	RUN_TEST(uuid_of_the_option_is_used);
	RUN_TEST(an_option_that_is_no_uuid_is_refused);
	RUN_TEST(the_uuid_is_stored_in_the_file_and_reported);
	RUN_TEST(read_only_volume_stores_no_attribute);
	RUN_TEST(an_attribute_that_is_no_uuid_is_refused);
	RUN_TEST(a_generation_that_cannot_be_read_counts_as_a_loss_each_time);
	RUN_TEST(generation_is_stored_before_the_failed_flush_completes);
	RUN_TEST(without_attributes_the_generation_is_in_the_runtime_directory);
	RUN_TEST(an_attribute_that_cannot_be_synced_is_recorded_twice);
	RUN_TEST(a_loss_that_cannot_be_recorded_is_an_error_and_a_random_verifier);
	RUN_TEST(links_in_the_runtime_directory_are_not_followed);
	RUN_TEST(a_runtime_directory_that_others_can_write_is_not_used);
	RUN_TEST(a_flush_of_another_lane_waits_for_the_generation);
	RUN_TEST(a_write_of_another_lane_waits_for_the_generation);
	return UNITY_END();
}
