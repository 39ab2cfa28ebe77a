/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plugin whose file has one wrong byte in the ELF header, the program headers or the dynamic
 * section. The loader must reject it or load it; it must neither crash nor hang. Each file is
 * loaded in a separate process.
 */
#include "loader/loader.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gantry/stage.h>

#include "unity.h"

#define PLUGIN "noop"
#define CPU_SECONDS 60 /* limit for one load, far above the normal time even with sanitizers */
#define SHOWN 8        /* maximum number of printed crashes */

static const unsigned char masks[] = {0x01, 0x80, 0xff};

static char dir[64], path[128];
static unsigned char *image;
static size_t image_bytes;
static unsigned n_files, n_loaded, n_crashed;

void setUp(void)
{
	struct stat st;
	FILE *f = fopen(TEST_PLUGINDIR "/" PLUGIN ".so", "re");

	umask(022);
	strcpy(dir, "/tmp/gantry-flipped-XXXXXX");
	TEST_ASSERT_NOT_NULL(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/" PLUGIN ".so", dir);
	if (!f)
		TEST_IGNORE_MESSAGE("built without the plugin " PLUGIN);
	TEST_ASSERT_EQUAL_INT(0, fstat(fileno(f), &st));
	image_bytes = (size_t)st.st_size;
	image = malloc(image_bytes);
	TEST_ASSERT_NOT_NULL(image);
	TEST_ASSERT_EQUAL_UINT(image_bytes, fread(image, 1, image_bytes, f));
	fclose(f);
	n_files = n_loaded = n_crashed = 0;
}

void tearDown(void)
{
	unlink(path);
	rmdir(dir);
	free(image);
	image = NULL;
}

static void write_image(void)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	TEST_ASSERT_TRUE(fd >= 0);
	TEST_ASSERT_EQUAL_INT((int)image_bytes, (int)write(fd, image, image_bytes));
	close(fd);
}

/* In the child: load the plugin and use it. Returns 0 if it was loaded, 1 if it was rejected. */
static int load_and_use(void)
{
	const struct rlimit limit = {CPU_SECONDS, CPU_SECONDS}, no_core = {0, 0};
	const char *dirs[] = {dir}, *text;
	const struct gantry_stage_ops *ops;
	const struct gn_plugin *plugin;
	struct gn_loader *loader;
	void *stage = NULL, *self;

	setrlimit(RLIMIT_CPU, &limit);
	setrlimit(RLIMIT_CORE, &no_core);
	if (!freopen("/dev/null", "w", stderr) || gn_loader_open(dirs, 1, &loader, &text))
		abort();
	gn_loader_probe(loader);
	if (gn_loader_find(loader, GANTRY_KIND_STAGE, PLUGIN, &plugin))
		return gn_loader_error(loader)[0] ? 1 : 2;
	ops = plugin->ops;
	if (ops->open(NULL, NULL, &stage) || ops->start(stage, NULL, &self))
		abort();
	ops->wake_ns(self);
	ops->stop(self);
	ops->close(stage);
	return 0;
}

/* Load the image in a child. where, mask: offset and changed bits of the wrong byte. */
static void try_image(size_t where, unsigned mask)
{
	int status;
	pid_t pid;

	write_image();
	fflush(stdout);
	pid = fork();
	TEST_ASSERT_TRUE(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(load_and_use());
	}
	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
	n_files++;
	if (WIFEXITED(status) && WEXITSTATUS(status) <= 1)
		n_loaded += WEXITSTATUS(status) == 0;
	else if (n_crashed++ < SHOWN)
		printf("# byte 0x%zx ^ 0x%02x: wait status 0x%x\n", where, mask, (unsigned)status);
}

static void flip(size_t from, size_t bytes)
{
	TEST_ASSERT_TRUE(bytes > 0 && from <= image_bytes && bytes <= image_bytes - from);
	for (size_t at = from; at < from + bytes; at++) {
		for (unsigned m = 0; m < sizeof(masks); m++) {
			image[at] ^= masks[m];
			try_image(at, masks[m]);
			image[at] ^= masks[m];
		}
	}
	printf("# %u files: %u loaded, %u crashed\n", n_files, n_loaded, n_crashed);
	TEST_ASSERT_EQUAL_UINT(0, n_crashed);
	TEST_ASSERT_TRUE(n_loaded < n_files);
}

static const ElfW(Phdr) *segment(unsigned type)
{
	const ElfW(Ehdr) *head = (const void *)image;
	const ElfW(Phdr) *part = (const void *)(image + head->e_phoff);

	for (unsigned i = 0; i < head->e_phnum; i++)
		if (part[i].p_type == type)
			return &part[i];
	return NULL;
}

static void the_whole_file_loads(void)
{
	try_image(0, 0);
	TEST_ASSERT_EQUAL_UINT(1, n_loaded);
}

static void elf_header(void)
{
	flip(0, sizeof(ElfW(Ehdr)));
}

static void program_headers(void)
{
	const ElfW(Ehdr) *head = (const void *)image;

	flip(head->e_phoff, head->e_phnum * sizeof(ElfW(Phdr)));
}

static void dynamic_section(void)
{
	const ElfW(Phdr) *part = segment(PT_DYNAMIC);

	TEST_ASSERT_NOT_NULL(part);
	flip(part->p_offset, part->p_filesz);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(the_whole_file_loads);
	RUN_TEST(elf_header);
	RUN_TEST(program_headers);
	RUN_TEST(dynamic_section);
	return UNITY_END();
}
