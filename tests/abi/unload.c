/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unload.c - a program loads the libraries like plugins of its own, and unloads them, repeatedly:
 * no resource leaks
 */
#include <dirent.h>
#include <dlfcn.h>
#include <doca_comch.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_pe.h>
#include <errno.h>
#include <gantry/client.h>
#include <unistd.h>

#include "doca/run_dir.h"
#include "unity.h"

#define BUILT TEST_PLUGINDIR "/../../"

void setUp(void)
{
	setenv("GANTRY_PLUGIN_PATH", TEST_PLUGINDIR, 1);
	setenv("GANTRY_DOCA_PROFILE", "host", 1);
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

static void *library;

static void *function(const char *name)
{
	void *found = dlsym(library, name);

	TEST_ASSERT_NOT_NULL_MESSAGE(found, name);
	return found;
}

#define CALL(f) ((__typeof__(&(f)))function(#f))
#define OK(f, ...) TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, CALL(f)(__VA_ARGS__))

static void sent(struct doca_comch_task_send *task, union doca_data a, union doca_data b)
{
	(void)task;
	(void)a;
	(void)b;
}

static void came(struct doca_comch_event_msg_recv *event, uint8_t *text, uint32_t length,
		 struct doca_comch_connection *conn)
{
	(void)event;
	(void)text;
	(void)length;
	(void)conn;
}

/* Start a client, which loads the plugin of its transport. There is no server. */
static void connect_in_vain(struct doca_dev *dev)
{
	struct doca_comch_client *client;
	struct doca_ctx *ctx;
	struct doca_pe *pe;
	enum doca_ctx_states state;

	OK(doca_pe_create, &pe);
	OK(doca_comch_client_create, dev, "nobody", &client);
	ctx = CALL(doca_comch_client_as_ctx)(client);
	OK(doca_comch_client_task_send_set_conf, client, sent, sent, 1);
	OK(doca_comch_client_event_msg_recv_register, client, came);
	OK(doca_pe_connect_ctx, pe, ctx);
	CALL(doca_ctx_start)(ctx);
	do {
		CALL(doca_pe_progress)(pe);
		OK(doca_ctx_get_state, ctx, &state);
	} while (state != DOCA_CTX_STATE_IDLE);
	OK(doca_comch_client_destroy, client);
	OK(doca_pe_destroy, pe);
}

static void use_doca(void)
{
	struct doca_devinfo **list;
	struct doca_dev *dev;
	uint32_t n;

	OK(doca_devinfo_create_list, &list, &n);
	TEST_ASSERT_EQUAL_UINT(1, n);
	OK(doca_dev_open, list[0], &dev);
	connect_in_vain(dev);
	OK(doca_dev_close, dev);
	OK(doca_devinfo_destroy_list, list);
}

/* Open a volume, which loads a plugin. There is no server. */
static void use_client(void)
{
	struct gantry_volume *volume;

	TEST_ASSERT_EQUAL_INT(-EINVAL, CALL(gantry_volume_open)("gantry:///nobody?transport=loop",
								NULL, &volume));
}

static void again_and_again(const char *path, void (*use)(void))
{
	unsigned n = 0;

	if (access(path, F_OK))
		TEST_IGNORE_MESSAGE("it is not built");
	for (unsigned i = 0; i < 4; i++) {
		library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		TEST_ASSERT_NOT_NULL_MESSAGE(library, dlerror());
		use();
		TEST_ASSERT_EQUAL_INT(0, dlclose(library));
		if (i == 0)
			n = n_open_files();
	}
	TEST_ASSERT_EQUAL_UINT(n, n_open_files());
}

static void libgantry(void)
{
	again_and_again(BUILT "clients/.libs/libgantry.so", use_client);
}

static void libgantry_doca(void)
{
	again_and_again(BUILT "doca/.libs/libgantry-doca.so", use_doca);
}

int main(void)
{
	int rc;

	make_run_dir();
	UNITY_BEGIN();
	RUN_TEST(libgantry);
	RUN_TEST(libgantry_doca);
	rc = UNITY_END();
	remove_run_dir();
	return rc;
}
