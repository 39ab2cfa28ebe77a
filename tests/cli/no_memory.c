/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * no_memory.c - tests of gantry check, copy, and run with and without --report, without memory. One
 * allocation fails: the first, then the second, and so on; or this and all later allocations fail.
 * Or the process has a size limit, which grows in small steps from the size of the loaded program.
 * In each case gantry exits with a documented status, reports the reason, and leaves no socket and
 * no temporary file.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake/shortage.h"
#include "unity.h"

#define PATIENCE 60 /* seconds: a process that takes longer hangs */
#define MOST 20000  /* limit of allocations in a case */
#define EACH 400    /* each of the first EACH allocations fails, then one in STEP */
#define STEP 11
#define LITTLE 4u        /* MiB: not enough for the libraries */
#define PLENTY 512u      /* MiB */
#define PIECE (1u << 18) /* step of the size limit in bytes */
#define CRUMB 4096u

static char dir[] = "/tmp/gantry-cli-no-memory.XXXXXX";
static char conf[64], log_file[64], page[64], sockets[64];
static struct shortage *shortage;
static int fd = -1;

void setUp(void)
{
	FILE *f;

	if (!shortage_can())
		TEST_IGNORE_MESSAGE("allocations cannot fail in this build");
	TEST_ASSERT_NOT_NULL(getenv("GANTRY"));
	strcpy(dir + sizeof(dir) - 7, "XXXXXX");
	TEST_ASSERT_NOT_NULL(mkdtemp(dir));
	snprintf(conf, sizeof(conf), "%s/conf", dir);
	snprintf(log_file, sizeof(log_file), "%s/log", dir);
	snprintf(page, sizeof(page), "%s/page.html", dir);
	snprintf(sockets, sizeof(sockets), "%s/run/00%%3A00.0", dir);
	f = fopen(conf, "we");
	TEST_ASSERT_NOT_NULL(f);
	fprintf(f,
		"runtime = { stat = false; };\n"
		"devices = { wire = { transport = \"shm-comch\"; dir = \"%s/run\"; }; };\n"
		"roles = {\n"
		"  store = { role = \"target\"; listen = { device = \"wire\"; name = \"disk\"; };\n"
		"            backend = { type = \"memory\"; size = \"16MiB\"; }; };\n"
		"  bridge = { role = \"gateway\"; listen = { device = \"wire\"; name = \"volume\"; };\n"
		"             stages = ( { type = \"stats\"; } ); connect = { device = \"wire\"; name = \"disk\"; }; };\n"
		"  load = { role = \"initiator\"; connect = { device = \"wire\"; name = \"volume\"; };\n"
		"           workload = { pattern = \"randrw\"; time = \"0s\"; ops = 50; size = \"1MiB\";\n"
		"                        verify = \"stamp\"; }; };\n"
		"};\n",
		dir);
	fclose(f);
	fd = memfd_create("shortage", 0);
	TEST_ASSERT_GREATER_OR_EQUAL(0, fd);
	TEST_ASSERT_EQUAL_INT(0, ftruncate(fd, sizeof(*shortage)));
	shortage = mmap(NULL, sizeof(*shortage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	TEST_ASSERT_TRUE(shortage != MAP_FAILED);
}

/* Returns the number of temporary files of `gantry run --report`. */
static unsigned count_temporary(void)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	unsigned n = 0;

	while (d && (e = readdir(d)))
		n += !strncmp(e->d_name, ".gantry-report", strlen(".gantry-report"));
	if (d)
		closedir(d);
	return n;
}

static unsigned count_sockets(int remove_them)
{
	DIR *d = opendir(sockets);
	struct dirent *e;
	unsigned n = 0;

	while (d && (e = readdir(d))) {
		struct stat st;

		if (e->d_name[0] == '.' || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		n += S_ISSOCK(st.st_mode);
		if (remove_them)
			unlinkat(dirfd(d), e->d_name, 0);
	}
	if (d)
		closedir(d);
	return n;
}

void tearDown(void)
{
	char path[64];

	if (!shortage)
		return;
	munmap(shortage, sizeof(*shortage));
	shortage = NULL;
	close(fd);
	count_sockets(1);
	rmdir(sockets);
	snprintf(path, sizeof(path), "%s/run", dir);
	rmdir(path);
	unlink(conf);
	unlink(page);
	unlink(log_file);
	rmdir(dir);
}

static void preload(void)
{
	char number[16], library[512];

	snprintf(number, sizeof(number), "%d", fd);
	snprintf(library, sizeof(library), "%s/tests/.libs/shortage.so", getenv("top_builddir"));
	setenv(SHORTAGE_ENV, number, 1);
	setenv("LD_PRELOAD", library, 1);
}

/* size: limit of the address space in bytes; 0: `shortage` makes allocations fail */
static void gantry(const char *command, uint64_t size)
{
	const struct rlimit limit = {.rlim_cur = size, .rlim_max = size};
	int log = open(log_file, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (!size)
		preload();
	dup2(log, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	alarm(PATIENCE);
	if (size && setrlimit(RLIMIT_AS, &limit))
		_exit(126);
	/*
	 * no server runs to which `gantry copy` could connect: the invalid option roles.load.no
	 * makes it exit after it has found the role
	 */
	if (!strcmp(command, "copy"))
		execl(getenv("GANTRY"), "gantry", command, "-p", getenv("GANTRY_PLUGINS"), "-c",
		      conf, "--set", "roles.load.no=1", "volume:", "copied", (char *)NULL);
	if (!strcmp(command, "page"))
		execl(getenv("GANTRY"), "gantry", "run", "-p", getenv("GANTRY_PLUGINS"), conf,
		      "--report", page, (char *)NULL);
	execl(getenv("GANTRY"), "gantry", command, "-p", getenv("GANTRY_PLUGINS"), conf,
	      (char *)NULL);
	_exit(127);
}

static int status_of(const char *command, uint64_t size)
{
	pid_t pid = fork();
	int status;

	TEST_ASSERT_GREATER_OR_EQUAL(0, pid);
	if (pid == 0)
		gantry(command, size);
	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
	return status;
}

/* Whether the log contains this text. */
static bool says(const char *what)
{
	char text[8192];
	int log = open(log_file, O_RDONLY);
	ssize_t n = read(log, text, sizeof(text) - 1);

	close(log);
	text[n < 0 ? 0 : n] = '\0';
	return strstr(text, what) != NULL;
}

static void run(const char *command, uint32_t at, uint32_t lasts)
{
	int status, most = !strcmp(command, "copy") ? 2 : 0; /* exit status without failures */
	char text[200];
	struct stat st;

	*shortage = (struct shortage){.at = at, .lasts = lasts};
	status = status_of(command, 0);
	snprintf(text, sizeof(text), "gantry %s: allocation %u of %u fails, of %s: status %#x",
		 command, at, shortage->n, shortage->file, (unsigned)status);
	TEST_ASSERT_TRUE_MESSAGE(
		WIFEXITED(status) && WEXITSTATUS(status) <= (shortage->failed ? 2 : most), text);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, stat(log_file, &st), text);
	TEST_ASSERT_TRUE_MESSAGE(!status || st.st_size, text);
	/* the file has such a role: lack of memory must not look like its absence */
	TEST_ASSERT_FALSE_MESSAGE(says("has 0 roles that can copy"), text);
	TEST_ASSERT_EQUAL_UINT_MESSAGE(0, count_sockets(0), text);
	TEST_ASSERT_EQUAL_UINT_MESSAGE(0, count_temporary(), text);
}

static void walk(const char *command, uint32_t lasts)
{
	uint32_t n = 0;

	run(command, 0, 0);
	do {
		n += n < EACH ? 1 : STEP;
		run(command, n, lasts);
		TEST_ASSERT_LESS_THAN(MOST, n);
	} while (shortage->failed);
	TEST_ASSERT_GREATER_THAN(100, n);
}

static void test_check_with_one_failed_allocation(void)
{
	walk("check", 0);
}

static void test_check_with_no_memory_from_one_allocation_on(void)
{
	walk("check", 1);
}

static void test_run_with_one_failed_allocation(void)
{
	walk("run", 0);
}

static void test_run_with_no_memory_from_one_allocation_on(void)
{
	walk("run", 1);
}

static void test_page_with_one_failed_allocation(void)
{
	walk("page", 0);
}

static void test_page_with_no_memory_from_one_allocation_on(void)
{
	walk("page", 1);
}

/* Tests copy until it has found its role; after that it behaves like run. */
static void test_copy_with_one_failed_allocation(void)
{
	walk("copy", 0);
}

static void test_copy_with_no_memory_from_one_allocation_on(void)
{
	walk("copy", 1);
}

/* -- the size of the process -- */

static bool is_said(const char *what)
{
	FILE *f = fopen(log_file, "re");
	char line[1000];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, what) != NULL;
	if (f)
		fclose(f);
	return found;
}

/* Returns whether the loader of libc has said why it did not load the program. */
static bool loader_says(void)
{
	return is_said("error while loading shared libraries") ||
	       is_said("cannot allocate TLS data structures");
}

/* Returns whether this size was enough. Status 127: the program was not loaded. */
static bool fits(uint64_t size)
{
	int status = status_of("run", size);
	bool loaded = WIFEXITED(status) && WEXITSTATUS(status) != 127;
	char text[120];

	snprintf(text, sizeof(text), "gantry run within %llu bytes: status %#x",
		 (unsigned long long)size, (unsigned)status);
	if (loaded)
		TEST_ASSERT_TRUE_MESSAGE(WEXITSTATUS(status) <= 2, text);
	else
		TEST_ASSERT_TRUE_MESSAGE(WIFEXITED(status) && loader_says(), text);
	TEST_ASSERT_TRUE_MESSAGE(!status || !loaded || is_said("allocate memory") ||
					 is_said("out of memory") || is_said("ulimit -v") ||
					 is_said("shared object"),
				 text);
	TEST_ASSERT_EQUAL_UINT_MESSAGE(0, count_sockets(0), text);
	TEST_ASSERT_EQUAL_UINT_MESSAGE(0, count_temporary(), text);
	/* after a success, the directory in which sockets were counted must exist */
	TEST_ASSERT_TRUE_MESSAGE(status || access(sockets, F_OK) == 0, sockets);
	return status == 0;
}

static void test_run_in_a_small_address_space(void)
{
	uint64_t size = (uint64_t)LITTLE << 20;

	TEST_ASSERT_FALSE(fits(size));
	while (!fits(size)) {
		size += PIECE;
		TEST_ASSERT_LESS_THAN_UINT64((uint64_t)PLENTY << 20, size);
	}
	for (uint64_t less = PIECE; less; less -= CRUMB)
		fits(size - less);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_check_with_one_failed_allocation);
	RUN_TEST(test_check_with_no_memory_from_one_allocation_on);
	RUN_TEST(test_page_with_one_failed_allocation);
	RUN_TEST(test_page_with_no_memory_from_one_allocation_on);
	RUN_TEST(test_copy_with_one_failed_allocation);
	RUN_TEST(test_copy_with_no_memory_from_one_allocation_on);
	RUN_TEST(test_run_with_one_failed_allocation);
	RUN_TEST(test_run_with_no_memory_from_one_allocation_on);
	RUN_TEST(test_run_in_a_small_address_space);
	return UNITY_END();
}
