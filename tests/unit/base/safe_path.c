/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Paths that other users have prepared. Cases that give files to another user need root; the other
 * cases run as any user.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/safe_path.h"
#include "unity.h"

#define STRANGER 65534

static char top[64], why[GN_PATH_WHY];

/* Returns a path below the directory of the test, in one of four buffers used in turn. */
static const char *in(const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned n;
	char *path = paths[n++ % 4];

	snprintf(path, PATH_MAX, "%s/%s", top, name);
	return path;
}

static void make(const char *name, const char *text, mode_t mode)
{
	int fd = open(in(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	TEST_ASSERT_TRUE(fd >= 0);
	TEST_ASSERT_EQUAL_INT(strlen(text), write(fd, text, strlen(text)));
	TEST_ASSERT_EQUAL_INT(0, fchmod(fd, mode));
	close(fd);
}

static void make_dir(const char *name, mode_t mode)
{
	TEST_ASSERT_EQUAL_INT(0, mkdir(in(name), 0700));
	TEST_ASSERT_EQUAL_INT(0, chmod(in(name), mode));
}

static void give(const char *name)
{
	if (geteuid() != 0)
		TEST_IGNORE_MESSAGE("only root can give a file away");
	TEST_ASSERT_EQUAL_INT(0, lchown(in(name), STRANGER, STRANGER));
}

static off_t size_of(const char *name)
{
	struct stat st;

	return stat(in(name), &st) ? -1 : st.st_size;
}

/* Open a path and close it. Returns 0 or -errno; `why` has the reason. */
static int try_path(const char *path, int flags, enum gn_path_rule rule)
{
	int fd = gn_path_open(path, flags, 0600, rule, why);

	if (fd < 0)
		return fd;
	TEST_ASSERT_EQUAL_STRING("", why);
	TEST_ASSERT_EQUAL_INT(FD_CLOEXEC, fcntl(fd, F_GETFD));
	close(fd);
	return 0;
}

static int output(const char *name)
{
	return try_path(in(name), O_RDWR | O_CREAT | O_TRUNC, GN_PATH_OUTPUT);
}

static int trusted(const char *name)
{
	return try_path(in(name), O_RDONLY, GN_PATH_TRUSTED);
}

static void says(const char *piece)
{
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(why, piece), why);
}

void setUp(void)
{
	umask(022);
	unsetenv("GANTRY_TRUST_UID");
	strcpy(top, "/tmp/gantry-path-XXXXXX");
	TEST_ASSERT_NOT_NULL(mkdtemp(top));
	make_dir("shared", 01777);
	make_dir("own", 0755);
	make("precious", "precious", 0600);
}

void tearDown(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", top);
	TEST_ASSERT_EQUAL_INT(0, chdir("/"));
	TEST_ASSERT_EQUAL_INT(0, system(command));
}

static void files_are_made_and_cut(void)
{
	struct stat st;

	TEST_ASSERT_EQUAL_INT(0, output("own/new"));
	TEST_ASSERT_EQUAL_INT(0, stat(in("own/new"), &st));
	TEST_ASSERT_EQUAL_HEX(0600, st.st_mode & 07777);
	TEST_ASSERT_EQUAL_INT(0, output("shared/new"));
	TEST_ASSERT_EQUAL_INT(0, output("precious"));
	TEST_ASSERT_EQUAL_INT(0, size_of("precious"));
	TEST_ASSERT_EQUAL_INT(-ENOENT, try_path(in("none"), O_RDWR, GN_PATH_OUTPUT));
	TEST_ASSERT_EQUAL_INT(-ENOENT, try_path("", O_RDWR | O_CREAT, GN_PATH_OUTPUT));
	TEST_ASSERT_EQUAL_INT(-ENOENT, output("none/new"));
	TEST_ASSERT_EQUAL_INT(-ENOTDIR, output("precious/new"));
	TEST_ASSERT_EQUAL_INT(-EISDIR, output("own"));
	TEST_ASSERT_EQUAL_INT(-EISDIR, output("own/"));
	TEST_ASSERT_EQUAL_INT(-ENOENT, output("none/"));
}

static void any_form_of_a_path(void)
{
	char name[NAME_MAX + 2], path[PATH_MAX + 10];

	TEST_ASSERT_EQUAL_INT(0, chdir(top));
	TEST_ASSERT_EQUAL_INT(0, try_path("precious", O_RDWR, GN_PATH_OUTPUT));
	TEST_ASSERT_EQUAL_INT(0, try_path("own/..//./precious", O_RDWR, GN_PATH_OUTPUT));
	TEST_ASSERT_EQUAL_INT(0, try_path("precious", O_RDONLY, GN_PATH_TRUSTED));
	TEST_ASSERT_EQUAL_INT(0, try_path("/", O_PATH | O_DIRECTORY, GN_PATH_TRUSTED));
	TEST_ASSERT_EQUAL_INT(0, try_path("own/", O_PATH | O_DIRECTORY, GN_PATH_TRUSTED));
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	TEST_ASSERT_EQUAL_INT(-ENAMETOOLONG, try_path(name, O_RDWR, GN_PATH_OUTPUT));
	memset(path, '/', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	TEST_ASSERT_EQUAL_INT(-ENAMETOOLONG, try_path(path, O_RDWR, GN_PATH_OUTPUT));
}

static void own_links_are_followed(void)
{
	TEST_ASSERT_EQUAL_INT(0, symlink("../precious", in("shared/relative")));
	TEST_ASSERT_EQUAL_INT(0, symlink(in("own"), in("shared/dir")));
	TEST_ASSERT_EQUAL_INT(0, symlink("../own/made", in("shared/dangling")));
	TEST_ASSERT_EQUAL_INT(0, symlink("loop", in("own/loop")));
	TEST_ASSERT_EQUAL_INT(0, output("shared/relative"));
	TEST_ASSERT_EQUAL_INT(0, size_of("precious"));
	TEST_ASSERT_EQUAL_INT(0, output("shared/dir/../own/./file"));
	TEST_ASSERT_EQUAL_INT(0, size_of("own/file"));
	TEST_ASSERT_EQUAL_INT(0, output("shared/dangling"));
	TEST_ASSERT_EQUAL_INT(0, size_of("own/made"));
	TEST_ASSERT_EQUAL_INT(-ELOOP, output("own/loop"));
	TEST_ASSERT_EQUAL_INT(0, try_path(in("shared/dir"), O_PATH | O_DIRECTORY, GN_PATH_OUTPUT));
	TEST_ASSERT_EQUAL_INT(0, try_path(in("shared/relative"), O_PATH, GN_PATH_OUTPUT));
}

static void links_of_others(void)
{
	TEST_ASSERT_EQUAL_INT(0, symlink(in("precious"), in("shared/file")));
	TEST_ASSERT_EQUAL_INT(0, symlink(in("own"), in("shared/dir")));
	TEST_ASSERT_EQUAL_INT(0, symlink(in("precious"), in("own/file")));
	give("shared/file");
	give("shared/dir");
	give("own/file");
	TEST_ASSERT_EQUAL_INT(-EPERM, output("shared/file"));
	says("/shared/file: symbolic link of another user");
	says("owner=65534");
	TEST_ASSERT_EQUAL_INT(-EPERM, output("shared/dir/new"));
	TEST_ASSERT_EQUAL_INT(-EPERM, try_path(in("shared/file"), O_PATH, GN_PATH_OUTPUT));
	TEST_ASSERT_EQUAL_INT(8, size_of("precious"));
	TEST_ASSERT_EQUAL_INT(-1, size_of("own/new"));
	TEST_ASSERT_EQUAL_INT(0, output("own/file")); /* only this user can have put a link there */
}

static void links_of_the_owner_of_the_directory(void)
{
	TEST_ASSERT_EQUAL_INT(0, symlink(in("precious"), in("shared/file")));
	give("shared/file");
	give("shared");
	TEST_ASSERT_EQUAL_INT(0, output("shared/file"));
}

static void files_of_others(void)
{
	make("shared/theirs", "x", 0666);
	make("own/theirs", "x", 0666);
	TEST_ASSERT_EQUAL_INT(0, link(in("precious"), in("shared/second")));
	TEST_ASSERT_EQUAL_INT(0, link(in("precious"), in("own/second")));
	TEST_ASSERT_EQUAL_INT(-EPERM, output("shared/second"));
	says("file with several hard links");
	says("links=3");
	TEST_ASSERT_EQUAL_INT(8, size_of("precious"));
	TEST_ASSERT_EQUAL_INT(0, output("own/second"));
	give("shared/theirs");
	give("own/theirs");
	TEST_ASSERT_EQUAL_INT(-EPERM, output("shared/theirs"));
	says("file of another user");
	TEST_ASSERT_EQUAL_INT(1, size_of("shared/theirs"));
	TEST_ASSERT_EQUAL_INT(0, output("own/theirs"));
}

static void descriptors_by_name(void)
{
	char path[40];
	int fds[2];

	TEST_ASSERT_EQUAL_INT(0, pipe(fds));
	snprintf(path, sizeof(path), "/dev/fd/%d", fds[1]);
	TEST_ASSERT_EQUAL_INT(0, try_path(path, O_WRONLY | O_CREAT | O_TRUNC, GN_PATH_OUTPUT));
	close(fds[0]);
	close(fds[1]);
	fds[0] = open(in("precious"), O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[0]);
	TEST_ASSERT_EQUAL_INT(0, try_path(path, O_WRONLY, GN_PATH_OUTPUT));
	TEST_ASSERT_EQUAL_INT(0, try_path(path, O_RDONLY, GN_PATH_TRUSTED));
	close(fds[0]);
}

static void trusted_files(void)
{
	static const struct {
		mode_t mode;
		int rc;
		const char *text;
	} cases[] = {
		{0600, 0, ""},
		{0644, 0, ""},
		{0444, 0, ""},
		{0646, -EPERM, "is writable by all users (owner="},
		{0602, -EPERM, "mode=0602): fix its owner or mode"},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		TEST_ASSERT_EQUAL_INT(0, chmod(in("precious"), cases[i].mode));
		TEST_ASSERT_EQUAL_INT(cases[i].rc, trusted("precious"));
		says(cases[i].text);
	}
}

static void files_that_a_group_may_write(void)
{
	make("own/grouped", "x", 0664);
	give("own/grouped");
	TEST_ASSERT_EQUAL_INT(0, chown(in("own/grouped"), 0, STRANGER));
	TEST_ASSERT_EQUAL_INT(-EPERM, trusted("own/grouped"));
	says("/own/grouped is writable by its group");
}

static void directories_on_the_way(void)
{
	make("shared/mine", "x", 0600);
	make("own/mine", "x", 0600);
	TEST_ASSERT_EQUAL_INT(0, trusted("own/mine"));
	TEST_ASSERT_EQUAL_INT(0, chmod(in("own"), 0777));
	TEST_ASSERT_EQUAL_INT(-EPERM, trusted("own/mine"));
	says("the directory /tmp/gantry-path-");
	says("/own is writable by all users (owner=");
	TEST_ASSERT_EQUAL_INT(0, chmod(in("own"), 0755));
	give("own");
	/* `shared` is sticky and belongs to root */
	TEST_ASSERT_EQUAL_INT(0, trusted("shared/mine"));
	TEST_ASSERT_EQUAL_INT(-EPERM, trusted("own/mine"));
	says("/own belongs to neither root nor the user that runs gantry (owner=65534, mode=0755)");
}

static void links_to_trusted_files(void)
{
	make("own/mine", "x", 0600);
	TEST_ASSERT_EQUAL_INT(0, symlink(in("own/mine"), in("shared/link")));
	TEST_ASSERT_EQUAL_INT(0, symlink("own", in("link")));
	TEST_ASSERT_EQUAL_INT(0, trusted("link/mine"));
	give("shared/link");
	/* the owner of the link chooses its target */
	TEST_ASSERT_EQUAL_INT(-EPERM, trusted("shared/link"));
}

static void users_of_the_environment(void)
{
	make("own/mine", "x", 0600);
	give("own/mine");
	TEST_ASSERT_EQUAL_INT(-EPERM, trusted("own/mine"));
	says("or list the owner in GANTRY_TRUST_UID");
	setenv("GANTRY_TRUST_UID", "1,65534", 1);
	TEST_ASSERT_EQUAL_INT(0, trusted("own/mine"));
	/* the variable lists owners only: the mode is still checked */
	TEST_ASSERT_EQUAL_INT(0, chmod(in("own/mine"), 0602));
	TEST_ASSERT_EQUAL_INT(-EPERM, trusted("own/mine"));
	TEST_ASSERT_EQUAL_INT(0, chmod(in("own/mine"), 0600));
	setenv("GANTRY_TRUST_UID", "655345", 1);
	TEST_ASSERT_EQUAL_INT(-EPERM, trusted("own/mine"));
	setenv("GANTRY_TRUST_UID", "x,65534", 1);
	TEST_ASSERT_EQUAL_INT(-EPERM, trusted("own/mine"));
}

static void directories_are_claimed(void)
{
	struct stat st;

	TEST_ASSERT_EQUAL_INT(0, gn_path_claim_dir(in("own/run/"), why));
	TEST_ASSERT_EQUAL_INT(0, stat(in("own/run"), &st));
	TEST_ASSERT_EQUAL_HEX(0700, st.st_mode & 07777);
	TEST_ASSERT_EQUAL_INT(0, gn_path_claim_dir(in("own/run"), why));
	TEST_ASSERT_EQUAL_INT(0, chdir(top));
	TEST_ASSERT_EQUAL_INT(0, gn_path_claim_dir("here", why));
	TEST_ASSERT_EQUAL_INT(0, stat(in("here"), &st));
	TEST_ASSERT_EQUAL_INT(0, gn_path_claim_dir("/", why));
	TEST_ASSERT_EQUAL_INT(-EPERM, gn_path_claim_dir("/tmp", why));
	says("the directory /tmp is writable by other users (owner=");
	TEST_ASSERT_EQUAL_INT(-EPERM, gn_path_claim_dir(in("shared"), why));
	says("): fix its owner or mode, or use another directory");
	TEST_ASSERT_EQUAL_INT(-ENOTDIR, gn_path_claim_dir(in("precious"), why));
	TEST_ASSERT_EQUAL_INT(-ENOENT, gn_path_claim_dir(in("none/run"), why));
	TEST_ASSERT_EQUAL_INT(0, symlink("run", in("own/link")));
	TEST_ASSERT_EQUAL_INT(-ENOTDIR, gn_path_claim_dir(in("own/link"), why));
	TEST_ASSERT_EQUAL_INT(0, symlink(in("own"), in("shared/dir")));
	TEST_ASSERT_EQUAL_INT(0, gn_path_claim_dir(in("shared/dir/run"), why));
	give("shared/dir");
	TEST_ASSERT_EQUAL_INT(-EPERM, gn_path_claim_dir(in("shared/dir/run"), why));
	says("symbolic link of another user");
	if (gn_path_claim_dir("/sys/gantry-test", why) == -EPERM) /* the kernel rejects root, too */
		says("/sys/gantry-test cannot be created: Operation not permitted: use another directory");
	give("own/run");
	TEST_ASSERT_EQUAL_INT(-EPERM, gn_path_claim_dir(in("own/run"), why));
	says("own/run belongs to another user (owner=");
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(files_are_made_and_cut);
	RUN_TEST(any_form_of_a_path);
	RUN_TEST(own_links_are_followed);
	RUN_TEST(links_of_others);
	RUN_TEST(links_of_the_owner_of_the_directory);
	RUN_TEST(files_of_others);
	RUN_TEST(descriptors_by_name);
	RUN_TEST(directories_are_claimed);
	RUN_TEST(trusted_files);
	RUN_TEST(files_that_a_group_may_write);
	RUN_TEST(directories_on_the_way);
	RUN_TEST(links_to_trusted_files);
	RUN_TEST(users_of_the_environment);
	return UNITY_END();
}
