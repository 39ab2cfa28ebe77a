/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that loads libgantry as a plugin of its own does, and lets go of it again and again: nothing piles up. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include <gantry/client.h>

#include "unity.h"

#define LIBRARY TEST_PLUGINDIR "/../../clients/.libs/libgantry.so"

void setUp(void)
{
	setenv("GANTRY_PLUGIN_PATH", TEST_PLUGINDIR, 1);
}

void tearDown(void)
{
}

static unsigned n_open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	TEST_ASSERT_NOT_NULL(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* It loads a plugin, and then finds that nobody can be reached. */
static void use_once(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	__typeof__(&gantry_volume_open) volume_open;
	struct gantry_volume *volume;

	TEST_ASSERT_NOT_NULL_MESSAGE(library, dlerror());
	*(void **)&volume_open = dlsym(library, "gantry_volume_open");
	TEST_ASSERT_NOT_NULL(volume_open);
	TEST_ASSERT_EQUAL_INT(-EINVAL, volume_open("gantry:///nobody?transport=loop", NULL, &volume));
	TEST_ASSERT_EQUAL_INT(0, dlclose(library));
}

static void test_it_is_loaded_again_and_again(void)
{
	unsigned n;

	use_once();
	n = n_open_files();
	for (unsigned i = 0; i < 3; i++)
		use_once();
	TEST_ASSERT_EQUAL_UINT(n, n_open_files());
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_it_is_loaded_again_and_again);
	return UNITY_END();
}
