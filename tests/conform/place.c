/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place.c - shm-comch: the directory of the sockets, the options, and what a peer can do with
 * memory that it receives.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conform/rig.h"

static struct fake_host host;
static char base[128], option[160];

/* Opens one more device with these settings and closes it again. Returns the result of open(). */
static int try_open(const char *one, const char *two)
{
	const struct gantry_plugin *plugin = fake_plugin("shm-comch");
	void *conf = fake_conf(plugin, one, two, NULL), *dev = NULL;
	int rc;

	fake_host_init(&host, "x");
	rc = fake_check(&host, plugin, conf);
	if (rc == 0)
		rc = rig.ops->open(&host.pub, conf, &dev);
	if (rc == 0)
		rig.ops->close(dev);
	else
		TEST_ASSERT_TRUE_MESSAGE(host.n_logged[GANTRY_LOG_ERROR] == 1, "it must say why");
	free(conf);
	return rc;
}

/* Returns the setting "dir=" with a directory below `base`, which `clean` removes. */
static const char *in_base(const char *name)
{
	snprintf(option, sizeof(option), "dir=%s%s%s", base, *name ? "/" : "", name);
	return option;
}

static void make_base(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(base, sizeof(base), "%s/gantry-place-XXXXXX",
		 tmp && strlen(tmp) < 80 ? tmp : "/tmp");
	TEST_ASSERT_NOT_NULL(mkdtemp(base));
}

static void clean(void)
{
	char command[200];

	snprintf(command, sizeof(command), "rm -rf '%s'", base);
	TEST_ASSERT_EQUAL_INT(0, system(command));
}

static void directory_is_created_for_this_user_alone(void)
{
	struct stat st;

	make_base();
	TEST_ASSERT_EQUAL_INT(0, try_open(in_base("new"), NULL));
	TEST_ASSERT_EQUAL_INT(0, stat(option + 4, &st));
	TEST_ASSERT_EQUAL_HEX(0700, st.st_mode & 0777);
	clean();
}

static void directory_writable_by_others_is_rejected(void)
{
	make_base();
	chmod(base, 0770);
	TEST_ASSERT_EQUAL_INT(-EACCES, try_open(in_base(""), NULL));
	chmod(base, 0702);
	TEST_ASSERT_EQUAL_INT(-EACCES, try_open(in_base(""), NULL));
	TEST_ASSERT_TRUE(fake_logged(&host, "written by other users"));
	chmod(base, 0755);
	TEST_ASSERT_EQUAL_INT(0, try_open(in_base(""), NULL));
	clean();
}

static void directory_of_another_user_is_rejected(void)
{
	if (getuid() != 0)
		TEST_IGNORE_MESSAGE("needs root");
	make_base();
	TEST_ASSERT_EQUAL_INT(0, chown(base, 65534, 65534));
	TEST_ASSERT_EQUAL_INT(-EACCES, try_open(in_base(""), NULL));
	TEST_ASSERT_TRUE(fake_logged(&host, "another user"));
	clean();
}

static void path_that_is_no_directory_is_rejected(void)
{
	char path[160];

	make_base();
	snprintf(path, sizeof(path), "%s/link", base);
	TEST_ASSERT_EQUAL_INT(0, symlink("/tmp", path));
	TEST_ASSERT_TRUE(try_open(in_base("link"), NULL) < 0);
	snprintf(path, sizeof(path), "%s/file", base);
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	TEST_ASSERT_TRUE(try_open(in_base("file"), NULL) < 0);
	TEST_ASSERT_TRUE(try_open(in_base("not/there"), NULL) < 0);
	snprintf(path, sizeof(path), "%s/03%%3A00.0", base);
	TEST_ASSERT_EQUAL_INT(0, symlink("/tmp", path)); /* the path of a card is a symbolic link */
	TEST_ASSERT_TRUE(try_open(in_base(""), "pci=03:00.0") < 0);
	clean();
}

static void card_names_stay_in_the_directory(void)
{
	struct stat st;
	char path[160];

	make_base();
	TEST_ASSERT_EQUAL_INT(0, try_open(in_base("run"), "pci=../../x"));
	snprintf(path, sizeof(path), "%s/run/%%2E.%%2F..%%2Fx", base);
	TEST_ASSERT_EQUAL_INT(0, stat(path, &st));
	TEST_ASSERT_TRUE(try_open(in_base("run"), "pci=") < 0);
	TEST_ASSERT_TRUE(try_open(in_base("run"), "pci=0123456789012345678901234567890123456789"
						  "0123456789012345678901234567890123456789") < 0);
	clean();
}

static void invalid_options_are_rejected(void)
{
	make_base();
	TEST_ASSERT_EQUAL_INT(-EINVAL, try_open(in_base("run"), "ring_slots=1000"));
	TEST_ASSERT_EQUAL_INT(-EINVAL, try_open(in_base("run"), "uids=root"));
	TEST_ASSERT_EQUAL_INT(-EINVAL, try_open(in_base("run"), "uids=1,-2"));
	TEST_ASSERT_EQUAL_INT(-EINVAL, try_open(in_base("run"), "uids=4294967295"));
	TEST_ASSERT_EQUAL_INT(-EINVAL, try_open(in_base("run"),
						"uids=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"));
	TEST_ASSERT_EQUAL_INT(0, try_open(in_base("run"), "uids=1,2,3"));
	clean();
}

/* Other files have the path of the socket or of its lock. */
static void listen_on_names_that_other_files_have(void)
{
	struct gantry_conn_events none = {0};
	char path[200];
	void *l = NULL;

	snprintf(path, sizeof(path), "%s/x.lock", rig.info.detail);
	TEST_ASSERT_EQUAL_INT(0, symlink("/tmp/gantry-not-to-be-made", path));
	TEST_ASSERT_TRUE(rig.ops->listen(rig.b.dev, "x", &none, NULL, &l) < 0);
	TEST_ASSERT_TRUE(access("/tmp/gantry-not-to-be-made", F_OK) != 0);
	unlink(path);
	snprintf(path, sizeof(path), "%s/x.sock", rig.info.detail);
	TEST_ASSERT_EQUAL_INT(0, mkdir(path, 0700));
	TEST_ASSERT_TRUE(rig.ops->listen(rig.b.dev, "x", &none, NULL, &l) < 0);
	rmdir(path);
	/* listen() replaces a stale file */
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	TEST_ASSERT_EQUAL_INT(0, rig.ops->listen(rig.b.dev, "x", &none, NULL, &l));
	rig.ops->unlisten(l);
}

/* `gantry check` calls the check of a name, `gantry run` serves it: both must agree. */
static void names_that_pass_the_check_can_be_served(void)
{
	struct gantry_conn_events none = {0};
	char name[64] = "";
	unsigned n_good = 0;
	void *l;

	for (size_t n = 1; n < sizeof(name); n++) {
		int good, rc;

		name[n - 1] = '/';
		good = rig_serves(name);
		rc = rig.ops->listen(rig.b.dev, name, &none, NULL, &l);
		TEST_ASSERT_EQUAL_INT(good ? 0 : -ENAMETOOLONG, rc);
		if (good)
			rig.ops->unlisten(l);
		n_good += (unsigned)good;
	}
	TEST_ASSERT_TRUE(n_good > 0 && n_good < sizeof(name) - 1);
}

static void client_does_not_reach_a_server_of_another_card(void)
{
	const struct gantry_plugin *plugin = fake_plugin("shm-comch");
	char other[160];
	void *conf;

	rig_listen("vol");
	rig.ops->close(rig.a.dev);
	free(rig.a.conf);
	conf = fake_conf(plugin, rig_driver.setting[0], "pci=04:00.0", NULL);
	rig.a.conf = conf;
	TEST_ASSERT_EQUAL_INT(0, rig.ops->open(&rig.a.host.pub, conf, &rig.a.dev));
	rig_start_connect("vol");
	rig_until(rig.a.n_closed, 1);
	TEST_ASSERT_EQUAL_INT(-ECONNREFUSED, rig.a.reason);
	snprintf(other, sizeof(other), "%s/04%%3A00.0", rig_driver.setting[0] + 4);
	rmdir(other);
}

/*
 * The descriptor that a peer receives enforces the rights: without the right to write, it cannot be
 * mapped or opened for writing. This child, as another user that received the descriptor, opens its
 * file again. Exit status 0: the result is as expected.
 */
static _Noreturn void open_again(int fd)
{
	char path[40];
	int may_read, may_write;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534) ||
	    prctl(PR_SET_DUMPABLE, 1))
		_exit(2);
	may_read = open(path, O_RDONLY | O_CLOEXEC) >= 0;
	may_write = open(path, O_RDWR | O_CLOEXEC) >= 0;
	_exit(!may_read || may_write);
}

static void read_only_region_cannot_be_reopened_by_another_user(void)
{
	struct gantry_token token;
	struct gantry_region *r;
	struct rig_memory m;
	int status;
	pid_t child;

	if (getuid() != 0)
		TEST_IGNORE_MESSAGE("needs root");
	rig_connect();
	rig_memory_open(&m, 65536, 3);
	TEST_ASSERT_EQUAL_INT(
		0, rig.ops->export_region(rig.a.conn, &m.region, GANTRY_REMOTE_READ, 1, &token));
	rig_settle();
	TEST_ASSERT_EQUAL_INT(0, rig.ops->import_region(rig.b.conn, &token, GANTRY_IMPORT_MAP, &r));
	child = fork();
	if (child == 0)
		open_again(r->fd);
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	TEST_ASSERT_TRUE(WIFEXITED(status));
	TEST_ASSERT_EQUAL_INT(0, WEXITSTATUS(status));
	rig.ops->release_region(rig.b.conn, r);
}

/* Memory that could shrink is not exported: the peer would reject it. */
static void unsealed_memory_is_not_exported(void)
{
	int fd = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct gantry_region region = {.length = 4096, .fd = fd, .rights = 3};
	struct gantry_token token;

	rig_connect();
	TEST_ASSERT_EQUAL_INT(0, ftruncate(fd, 4096));
	TEST_ASSERT_EQUAL_INT(-EPERM, rig.ops->export_region(rig.a.conn, &region, 3, 1, &token));
	region.fd = -1;
	TEST_ASSERT_EQUAL_INT(-EXDEV, rig.ops->export_region(rig.a.conn, &region, 3, 1, &token));
	close(fd);
}

/*
 * At the limit of descriptors the server accepts no connection, and existing connections continue.
 * It accepts connections again when descriptors are free.
 */
static void connections_continue_when_descriptors_run_out(void)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	struct rlimit old, tight;
	int fds[16];

	rig_connect();
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/vol.sock", rig.info.detail);
	for (int i = 0; i < 16; i++) {
		fds[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		TEST_ASSERT_EQUAL_INT(0, connect(fds[i], (struct sockaddr *)&sun, sizeof(sun)));
	}
	getrlimit(RLIMIT_NOFILE, &old);
	tight = old;
	tight.rlim_cur = (rlim_t)fds[15] + 3; /* enough for one or two more connections */
	setrlimit(RLIMIT_NOFILE, &tight);
	for (int i = 0; i < 100; i++)
		rig.ops->progress(rig.b.dev);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->send_ctrl(rig.a.conn, "good", 4));
	rig_until(rig.b.n_msgs, 1);
	setrlimit(RLIMIT_NOFILE, &old);
	for (int i = 0; i < 16; i++)
		close(fds[i]);
	rig_settle();
	TEST_ASSERT_EQUAL_INT(0, rig.a.n_closed + rig.b.n_closed);
	TEST_ASSERT_EQUAL_INT(1, rig.b.n_accept);
}

/* After the server lost its reserve descriptor, it opens a new one for the next shortage. */
static void reserve_descriptor_is_opened_again(void)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	struct rlimit old, limit;
	int fds[2], fill[256], n = 0, n_short;
	uint64_t end = 0;
	char c;

	rig_connect();
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/vol.sock", rig.info.detail);
	for (int i = 0; i < 2; i++)
		fds[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	getrlimit(RLIMIT_NOFILE, &old);
	/* the server closes its reserve and cannot open it again */
	limit = (struct rlimit){.rlim_cur = 0, .rlim_max = old.rlim_max};
	setrlimit(RLIMIT_NOFILE, &limit);
	TEST_ASSERT_EQUAL_INT(0, connect(fds[0], (struct sockaddr *)&sun, sizeof(sun)));
	for (int i = 0; i < 10; i++)
		rig.ops->progress(rig.b.dev);
	limit.rlim_cur = 256;
	setrlimit(RLIMIT_NOFILE, &limit);
	n_short = rig_fds();
	/* two new descriptors: the reserve, and the socket of the accepted client */
	while (rig_fds() < n_short + 2)
		rig_wait(&end, 0, "the reserve descriptor and the accepted client");
	rig_settle();
	while (n < 256 && (fill[n] = dup(fds[1])) >= 0)
		n++;
	TEST_ASSERT_EQUAL_INT(0, connect(fds[1], (struct sockaddr *)&sun, sizeof(sun)));
	for (int i = 0; i < 10; i++)
		rig.ops->progress(rig.b.dev);
	setrlimit(RLIMIT_NOFILE, &old);
	TEST_ASSERT_EQUAL_INT_MESSAGE(1, recv(fds[1], &c, 1, MSG_DONTWAIT), "no refusal was sent");
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, recv(fds[1], &c, 1, MSG_DONTWAIT),
				      "the connection was not closed");
	while (n > 0)
		close(fill[--n]);
	for (int i = 0; i < 2; i++)
		close(fds[i]);
	rig_settle();
}

/* An export that the peer would reject fails at the exporter, which can report the reason. */
static void region_beyond_the_limit_of_the_peer_is_not_exported(void)
{
	struct gantry_token token;
	struct rig_memory m;

	rig.ops->close(rig.b.dev);
	free(rig.b.conf);
	rig_open_end(&rig.b, "max_bytes=65537");
	rig_connect();
	rig_memory_open(&m, 40960, GANTRY_REMOTE_READ);
	TEST_ASSERT_EQUAL_UINT64(69632, rig.ops->export_limit(rig.a.conn));
	TEST_ASSERT_EQUAL_INT(
		0, rig.ops->export_region(rig.a.conn, &m.region, GANTRY_REMOTE_READ, 1, &token));
	TEST_ASSERT_EQUAL_UINT64(69632 - 40960, rig.ops->export_limit(rig.a.conn));
	TEST_ASSERT_EQUAL_INT(-E2BIG, rig.ops->export_region(rig.a.conn, &m.region,
							     GANTRY_REMOTE_READ, 2, &token));
	TEST_ASSERT_TRUE_MESSAGE(
		fake_logged(&rig.a.host, "region 2 of 40960 bytes cannot be exported"),
		rig.a.host.log);
	TEST_ASSERT_TRUE_MESSAGE(fake_logged(&rig.a.host, "(exported=40960, max_bytes=69632)"),
				 rig.a.host.log);
	rig_settle();
	TEST_ASSERT_EQUAL_INT(0, rig.a.n_closed + rig.b.n_closed);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->revoke_region(rig.a.conn, 1));
	rig_until(rig.a.n_revoked, 1);
	TEST_ASSERT_EQUAL_INT(
		0, rig.ops->export_region(rig.a.conn, &m.region, GANTRY_REMOTE_READ, 2, &token));
	for (uint32_t i = 1; i < 5; i++) /* the limit of a is larger */
		TEST_ASSERT_EQUAL_INT(0, rig.ops->export_region(rig.b.conn, &m.region,
								GANTRY_REMOTE_READ, i, &token));
	rig_settle();
	TEST_ASSERT_EQUAL_INT(0, rig.a.n_closed + rig.b.n_closed);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(directory_is_created_for_this_user_alone);
	RUN_TEST(directory_writable_by_others_is_rejected);
	RUN_TEST(directory_of_another_user_is_rejected);
	RUN_TEST(path_that_is_no_directory_is_rejected);
	RUN_TEST(card_names_stay_in_the_directory);
	RUN_TEST(invalid_options_are_rejected);
	RUN_TEST(listen_on_names_that_other_files_have);
	RUN_TEST(names_that_pass_the_check_can_be_served);
	RUN_TEST(client_does_not_reach_a_server_of_another_card);
	RUN_TEST(read_only_region_cannot_be_reopened_by_another_user);
	RUN_TEST(unsealed_memory_is_not_exported);
	RUN_TEST(region_beyond_the_limit_of_the_peer_is_not_exported);
	RUN_TEST(connections_continue_when_descriptors_run_out);
	RUN_TEST(reserve_descriptor_is_opened_again);
	return UNITY_END();
}
